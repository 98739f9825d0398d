//! Whose clock decides: the server's, whatever this machine believes.

use std::path::Path;

use jiff::Timestamp;
use lavra_db::{Pg, Schema};
use secrecy::ExposeSecret;

use crate::support::child::{self, role, tell};
use crate::support::faketime;
use crate::support::place::{PATIENCE, Server};

#[tokio::test]
async fn child() {
    // The «file» of this role is the server's URL.
    let Some((_, url)) = role() else { return };
    let url = url.to_str().unwrap().to_owned().into();
    let pg = Pg::connect(&url, Schema::default(), PATIENCE).await.unwrap();
    let rows = pg.query("ask the server", "SELECT clock_timestamp()", &[]).await.unwrap();
    let (server, ours): (Timestamp, _) = (rows[0].get(0), pg.clock().now());
    tell(Timestamp::now().duration_since(server).as_secs());
    tell(ours.duration_since(server).as_secs());
    let id = pg.clock().new_id().get_timestamp().unwrap().to_unix().0;
    tell(id as i64 - server.as_second());
}

async fn an_hour_off(shift: &str) -> Vec<i64> {
    let server = Server::direct().await;
    let url = server.url();
    let mut command = child::command(module_path!(), "ask", Path::new(url.expose_secret()));
    faketime(&mut command, shift);
    child::finish(command).iter().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_machine_that_is_an_hour_ahead_goes_by_the_server() {
    let [wall, clock, id] = an_hour_off("+1h").await[..] else { panic!() };
    assert!(wall > 3500, "the machine is not ahead: this proves nothing");
    assert!(clock.abs() < 5 && id.abs() < 5, "off by {clock} s, ids by {id} s");
}

#[tokio::test]
async fn a_machine_that_is_an_hour_behind_goes_by_the_server() {
    let [wall, clock, id] = an_hour_off("-1h").await[..] else { panic!() };
    assert!(wall < -3500, "the machine is not behind: this proves nothing");
    assert!(clock.abs() < 5 && id.abs() < 5, "off by {clock} s, ids by {id} s");
}
