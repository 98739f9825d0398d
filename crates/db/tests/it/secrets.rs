//! Secrets: sealed in the database, and nowhere in plain text.

use jiff::Timestamp;
use lavra_db::{Database, Error, Keyring, Secrets};
use secrecy::{ExposeSecret, SecretString};

use crate::support::place::{Place, on_each_engine};

const PLAIN: &str = "correct horse battery staple";

on_each_engine!(
    what_is_put_is_got_changed_listed_and_removed,
    another_key_cannot_open_it_and_says_what_to_do,
    the_plain_text_is_nowhere_in_the_database,
);

fn keyring() -> Keyring {
    Keyring::parse(&Keyring::generate().into()).unwrap()
}

async fn got(secrets: &Secrets, name: &str) -> Option<String> {
    let secret = secrets.get(name).await.unwrap();
    secret.map(|secret| secret.expose_secret().to_owned())
}

async fn what_is_put_is_got_changed_listed_and_removed(place: Place) {
    let database = place.ground().await;
    let secrets = Secrets::new(database.clone(), keyring());
    assert_eq!(got(&secrets, "proxy-1").await, None);
    secrets.put("proxy-2", &"other".into()).await.unwrap();
    secrets.put("proxy-1", &PLAIN.into()).await.unwrap();
    assert_eq!(got(&secrets, "proxy-1").await.as_deref(), Some(PLAIN));
    let changed: SecretString = "ünïcödé ⚿".into();
    secrets.put("proxy-1", &changed).await.unwrap();
    assert_eq!(got(&secrets, "proxy-1").await.as_deref(), Some("ünïcödé ⚿"));
    let listed = secrets.list().await.unwrap();
    let names: Vec<_> = listed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["proxy-1", "proxy-2"]);
    let now: Timestamp = database.clock().now();
    assert!(listed.iter().all(|(_, at)| now.duration_since(*at).abs().as_secs() < 5));
    assert!(secrets.remove("proxy-1").await.unwrap());
    assert!(!secrets.remove("proxy-1").await.unwrap(), "removed twice");
    assert_eq!(got(&secrets, "proxy-1").await, None);
    assert_eq!(got(&secrets, "proxy-2").await.as_deref(), Some("other"));
}

async fn another_key_cannot_open_it_and_says_what_to_do(place: Place) {
    let database = place.ground().await;
    Secrets::new(database.clone(), keyring()).put("proxy-1", &PLAIN.into()).await.unwrap();
    let error = Secrets::new(database, keyring()).get("proxy-1").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the secret proxy-1 was sealed with another key: add that key to LAVRA_SECRET_KEY, or set \
         the secret again"
    );
    assert!(matches!(error, Error::Secret(_)), "{error:?}");
}

/// The rows, and, for a file, its bytes and those of its log.
async fn the_plain_text_is_nowhere_in_the_database(place: Place) {
    let database = place.ground().await;
    let secrets = Secrets::new(database.clone(), keyring());
    secrets.put("proxy-1", &PLAIN.into()).await.unwrap();
    let contains = |bytes: &[u8]| bytes.windows(PLAIN.len()).any(|part| part == PLAIN.as_bytes());
    match &database {
        Database::Duck(duck) => {
            let log = duck.path().with_extension("duckdb.wal");
            let bytes = std::fs::read(log).unwrap();
            assert!(bytes.windows(7).any(|part| part == b"proxy-1"), "this proves nothing");
            assert!(!contains(&bytes), "it is in the log");
        }
        Database::Postgres(pg) => {
            let sql = "SELECT name, sealed FROM lavra.secrets";
            let rows = pg.query("read the seals", sql, &[]).await.unwrap();
            assert_eq!(rows[0].get::<_, &str>(0), "proxy-1");
            assert!(!contains(rows[0].get(1)), "it is in the table");
        }
    }
    drop((secrets, database));
    if let Place::File(directory) = &place {
        let bytes = std::fs::read(directory.path().join("lavra.duckdb")).unwrap();
        assert!(!contains(&bytes), "it is in the file");
    }
}
