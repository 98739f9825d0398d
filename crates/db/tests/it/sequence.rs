//! Numbers that never go back, whatever happens between two runs.

use crate::support::child::{self, role, tell};
use crate::support::place::{File, open};

#[test]
fn child() {
    let Some((_, path)) = role() else { return };
    tell(open(&path).next_sequence());
}

#[test]
fn the_sequence_goes_on_when_the_file_is_opened_again() {
    let file = File::new();
    let mut last = 0;
    for _ in 0..5 {
        let duck = file.open();
        for _ in 0..1000 {
            let next = duck.next_sequence();
            assert!(next > last, "{next} came after {last}");
            last = next;
        }
    }
}

#[test]
fn a_number_found_in_the_file_is_not_given_out_again() {
    let file = File::new();
    let duck = file.open();
    let found = duck.next_sequence() + 1_000_000_000;
    duck.sequence_beyond(found);
    duck.sequence_beyond(17);
    assert_eq!(duck.next_sequence(), found + 1);
}

#[tokio::test]
async fn the_sequence_does_not_follow_a_clock_that_was_turned_back() {
    let file = File::new();
    let duck = file.open();
    let last = duck.next_sequence();
    let write = "CREATE TABLE written (n BIGINT)";
    duck.write("write", move |tx| tx.execute_batch(write)).await.unwrap();
    drop(duck);
    let mut an_hour_ago = child::command(module_path!(), "open", &file.path());
    crate::support::faketime(&mut an_hour_ago, "-1h");
    let next: i64 = child::finish(an_hour_ago)[0].parse().unwrap();
    assert!(next > last, "{next} came after {last}");
}
