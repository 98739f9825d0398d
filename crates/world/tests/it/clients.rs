//! A client that does everything right gets everything, whatever the world does to it.

use lavra_world::{Endpoint, Entry, page_entries};
use serde_json::{Value, json};

use crate::support::{Served, contratos, date, world};

/// A page, asked for until it is one.
async fn stubborn(served: &Served, page: u64) -> (Vec<Entry>, Value) {
    loop {
        let Ok(response) = served.get(&contratos(page)).await else { continue };
        let right = response.status() == 200;
        let Ok(text) = response.text().await else { continue };
        if let (true, Ok(entries)) = (right, page_entries(Endpoint::Contratos, &text)) {
            return (entries, serde_json::from_str(&text).unwrap());
        }
    }
}

#[tokio::test]
async fn one_that_repeats_what_failed_has_the_truth_at_the_end() {
    let served = Served::new(world()).await;
    let faults = json!({
        "too_many": 0.05, "server_error": 0.05, "gateway": 0.05, "reset": 0.1, "cut_chunks": 0.1,
        "cut_length": 0.1, "html": 0.05, "zero_length": 0.05, "wrong_json": 0.1,
        "latency": {"jitter_ms": 2},
    });
    assert_eq!(served.put_faults(&faults).await.status(), 200);
    let mut read = Vec::new();
    for page in 1.. {
        let (entries, json) = stubborn(&served, page).await;
        read.extend(entries);
        if json["paginasRestantes"] == 0 {
            break;
        }
    }
    let truth = served.world.truth(Endpoint::Contratos, None, date("20240701"), date("20240731"));
    assert!(truth.entries().eq(read));
    let stats = served.world.stats();
    assert!(stats.requests > stats.whole_pages * 3 / 2, "{stats:?}");
    assert_eq!(stats.repeated().count(), 0, "no page was asked for again once it had arrived");
    assert_eq!(stats.whole_pages, truth.total().div_ceil(50));
}
