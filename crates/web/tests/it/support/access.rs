//! Keys and sessions for tests: by the interface as a user makes them, or by the store as time has
//! left them.

use jiff::{SignedDuration, Timestamp};
use lavra_web::access::{Hash, Key, KeyId, Role, Session, store};
use serde_json::json;

use super::{Client, Server};

impl Client {
    /// A key as someone on this machine makes it: its id and itself.
    pub(crate) async fn make_key(&self, role: Role) -> (String, String) {
        let order = json!({ "name": format!("of a test: {role}"), "role": role });
        let made = self.post("/keys", &order).await.expect(201);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("id"), text("key"))
    }
}

/// A secret in the form of ours that everyone could guess.
fn secret(letter: char) -> String {
    letter.to_string().repeat(52)
}

/// The part of a key that is shown.
pub(crate) fn id_of(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

impl Server {
    pub(crate) fn now(&self) -> Timestamp {
        self.database.clock().now()
    }

    /// A key where nobody may make one over HTTP yet; itself.
    pub(crate) async fn put_key(&self, role: Role) -> String {
        let id = format!("{:x<8}", role.as_str());
        self.key_until(&id, role, None).await
    }

    /// A key that was made and has ended so long ago; itself.
    pub(crate) async fn key_of_the_past(
        &self,
        id: &str,
        role: Role,
        ended: SignedDuration,
    ) -> String {
        let ended = self.now() - ended;
        self.key_until(id, role, Some(ended)).await
    }

    async fn key_until(&self, id: &str, role: Role, expires_at: Option<Timestamp>) -> String {
        let key = Key {
            id: KeyId(id.to_owned()),
            name: role.to_string(),
            role,
            created_at: self.now() - SignedDuration::from_hours(24 * 365),
            last_used_at: None,
            expires_at,
            revoked_at: None,
        };
        let added = store(&self.database).add_key(key, Hash::of(&secret('x'))).await.unwrap();
        assert!(added, "{id} is taken");
        format!("lavra_{id}_{}", secret('x'))
    }

    /// A session that was opened so long ago and seen so long ago; its cookie.
    pub(crate) async fn session_of_the_past(
        &self,
        key: &str,
        opened: SignedDuration,
        seen: SignedDuration,
    ) -> String {
        let (store, now, cookie) = (store(&self.database), self.now(), secret('y'));
        let (hash, created_at) = (Hash::of(&cookie), now - opened);
        let session = Session { hash, key: KeyId(key.to_owned()), created_at, seen_at: created_at };
        store.close_session(hash).await.unwrap();
        store.open_session(session).await.unwrap();
        store.session_seen(hash, now - seen).await.unwrap();
        format!("lavra_session={cookie}")
    }
}
