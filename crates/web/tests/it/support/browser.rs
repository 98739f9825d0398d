//! A person's browser, for pages.

use reqwest::{Method, RequestBuilder};

use super::{Client, Reply, Server};

/// What nobody types on purpose.
pub(crate) const ODD: &[&str] = &[
    "",
    " ",
    "\0",
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "';DROP TABLE missions;--",
    "%00%0a%0d",
    "../../etc/passwd",
    "\u{202e}txt.exe",
    "😀👩‍👩‍👧‍👦",
    "a\r\nset-cookie: a=b",
    "-1",
    "99999999999999999999",
    "1e999",
    "NaN",
    "0000-00-00",
    "9999-12-31",
    "-9999-01-01",
    "2025-02-30",
    "{}",
    "[]",
    "null",
    "true",
    "${7*7}{{7*7}}",
    "\u{feff}",
    "ﷺ",
    "mis_",
];

/// A person's browser, as far as this goes: it keeps cookies and follows nothing by itself.
pub(crate) struct Browser {
    pub(crate) client: Client,
    pub(crate) cookies: Vec<String>,
}

impl Browser {
    pub(crate) fn new(server: &Server) -> Self {
        Self { client: server.at_address([127, 0, 0, 1]), cookies: Vec::new() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, path).header("Accept", "text/html,*/*;q=0.8");
        request.header("Cookie", self.cookies.join("; "))
    }

    pub(crate) async fn send(&mut self, request: RequestBuilder) -> Reply {
        let reply = self.client.send(request).await;
        for line in reply.headers.get_all("set-cookie") {
            let pair = line.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.retain(|cookie| !cookie.starts_with(&format!("{name}=")));
            if !value.is_empty() {
                self.cookies.push(pair.to_owned());
            }
        }
        reply
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Reply {
        self.send(filled(self.request(Method::POST, path), form)).await
    }

    /// Sends a form of a page, with the token that the page has.
    pub(crate) async fn submit(
        &mut self,
        page: &str,
        action: &str,
        form: &[(&str, &str)],
    ) -> Reply {
        let page = self.get(page).await;
        let csrf = token(&page);
        let form = [&[("csrf", csrf.as_str())], form].concat();
        self.post(action, &form).await
    }

    /// Fills in the login page.
    pub(crate) async fn log_in(&mut self, key: &str) -> Reply {
        let page = self.get("/ui/login").await;
        assert_eq!(page.status, 200, "{page:?}");
        let form = [("csrf", token(&page)), ("next", "/ui/missions".into()), ("key", key.into())];
        let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, &**value)).collect();
        self.post("/ui/login", &form).await
    }

    pub(crate) fn has_session(&self) -> bool {
        self.cookies.iter().any(|cookie| cookie.starts_with("lavra_session="))
    }

    /// What pages have in their forms, which the cookie stands for.
    pub(crate) fn token(&self) -> String {
        let session = self.cookies.iter().find_map(|cookie| cookie.strip_prefix("lavra_session="));
        lavra_web::access::Hash::of(&format!("lavra csrf {}", session.unwrap())).to_hex()
    }
}

/// A request with the form as a browser sends it.
pub(crate) fn filled(request: RequestBuilder, form: &[(&str, &str)]) -> RequestBuilder {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    request.header("Content-Type", "application/x-www-form-urlencoded").body(body)
}

pub(crate) fn token(page: &Reply) -> String {
    let (_, rest) = page.text.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}
