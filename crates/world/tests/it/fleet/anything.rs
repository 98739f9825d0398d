use std::sync::LazyLock;
use std::time::Duration;

use lavra_world::{FleetBody, FleetConfig, FleetFaults, FleetRequest, FleetWorld};
use proptest::prelude::*;
use serde_json::{Value, json};

static FLEET: LazyLock<FleetWorld> = LazyLock::new(|| {
    let config = FleetConfig { worker_key: None, writer_key: None, ..FleetConfig::default() };
    let fleet = FleetWorld::new(config, 7);
    fleet.set_faults(FleetFaults::all()).unwrap();
    fleet
});

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "(http://x)?/(worker|writer)/[0-9]{1,20}/(session|scrape|process|status|health)(/.{0,20}){0,3}",
        "/worker/[0-4]/(session|session/status|scrape|scrape/scrape_[0-9a-f]{8}(/cancel)?)",
        "/writer/0/(process|status/[%a-z0-9]{0,12}|health)",
    ]
}

fn body() -> impl Strategy<Value = Value> {
    let date = || prop_oneof!["-?[0-9]{4,6}-[0-1][0-9]-[0-3][0-9]", any::<String>()];
    let scrape = (date(), date(), "(all|video|x)", prop::collection::vec(any::<String>(), 0..4));
    prop_oneof![
        any::<String>().prop_map(Value::String),
        scrape.prop_map(|(start, end, format, languages)| json!({ "filters": {
            "date_range": { "start": start, "end": end }, "format": format, "languages": languages,
        }})),
        any::<String>()
            .prop_map(|server| json!({ "force_refresh": true, "proxy": { "server": server }})),
        (any::<String>(), any::<String>()).prop_map(|(id, url)| super::process(Some(&id), &url)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn nothing_makes_it_panic(
        method in prop::sample::select(vec!["GET", "POST", "DELETE", "PUT", ""]),
        url in path(),
        key in prop::option::of(any::<String>()),
        body in body(),
        raw in prop::option::of(any::<Vec<u8>>()),
        now in any::<Duration>(),
    ) {
        let request = FleetRequest {
            method,
            url: &url,
            api_key: None,
            idempotency_key: key.as_deref(),
            body: raw.as_deref().map_or(FleetBody::Json(&body), FleetBody::Bytes),
        };
        let answer = FLEET.answer(now, &request);
        prop_assert!(answer.status == 0 || (200..=500).contains(&answer.status), "{answer:?}");
        FLEET.stats(now);
    }
}
