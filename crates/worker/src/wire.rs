//! What callers send, read into types that cannot be wrong. A filter or an option that is not known is
//! refused: without it the caller would get something else than it asked for.

use jiff::civil::Date;
use serde_json::Value;

use crate::model::{Media, Order};
use crate::proxy::Proxy;

/// The most days of a scrape.
const LONGEST: i32 = 3660;

/// `POST /session`.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) force_refresh: bool,
    pub(crate) proxy: Proxy,
}

impl OpenSession {
    pub(crate) fn parse(body: &Value) -> Result<Self, String> {
        let force_refresh = match body.get("force_refresh") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(value)) => *value,
            Some(_) => return Err("force_refresh is true or false".into()),
        };
        let proxy = body.get("proxy").ok_or("proxy is missing")?;
        let text = |name: &str| match proxy.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("proxy.{name} is a text")),
        };
        let server = text("server")?.filter(|server| !server.is_empty());
        let server = server.ok_or("proxy.server is missing, such as proxy.example.com:8080")?;
        let proxy = Proxy::parse(&server, text("username")?, text("password")?.map(Into::into))?;
        Ok(Self { force_refresh, proxy })
    }
}

impl Order {
    /// `POST /scrape`.
    pub(crate) fn parse(body: &Value) -> Result<Self, String> {
        let filters = body.get("filters").ok_or("filters are missing")?;
        known(body, "filters", &["date_range", "format", "sort_by", "languages"])?;
        known(body, "options", &["max_ads", "batch_size"])?;
        let date = |name: &str| {
            let text = filters.get("date_range").and_then(|range| range.get(name)?.as_str());
            let date = text.and_then(|text| text.parse::<Date>().ok());
            date.ok_or_else(|| format!("filters.date_range.{name} is a date, YYYY-MM-DD"))
        };
        let (start, end) = (date("start")?, date("end")?);
        let days = start.until(end).map_or(0, |span| span.get_days());
        if end < start || days >= LONGEST {
            return Err(format!(
                "filters.date_range has from 1 to {LONGEST} days, and ends when it has begun"
            ));
        }
        let media = match filters.get("format") {
            None | Some(Value::Null) => Media::All,
            Some(format) => serde_json::from_value(format.clone())
                .map_err(|_| "filters.format is all, video or image")?,
        };
        let languages: Vec<String> = match filters.get("languages") {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => serde_json::from_value(list.clone())
                .map_err(|_| "filters.languages is a list of texts")?,
        };
        if languages.len() > 100 || languages.iter().any(|name| name.is_empty() || name.len() > 40)
        {
            return Err("filters.languages has at most 100 short names".into());
        }
        let sort_by = match filters.get("sort_by") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if name.len() <= 100 => Some(name.clone()),
            Some(_) => return Err("filters.sort_by is a short text".into()),
        };
        let option = |name: &str| body.get("options").and_then(|options| options.get(name));
        let max_ads = match option("max_ads") {
            None | Some(Value::Null) => None,
            Some(Value::String(word)) if word == "all" => None,
            Some(value) => Some(
                value
                    .as_u64()
                    .filter(|most| *most > 0)
                    .ok_or("options.max_ads is \"all\", or a number above 0")?,
            ),
        };
        let batch_size = match option("batch_size") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value
                    .as_i64()
                    .filter(|size| *size > 0)
                    .ok_or("options.batch_size is a number above 0")?,
            ),
        };
        Ok(Self { start, end, media, languages, sort_by, max_ads, batch_size })
    }
}

/// Whether the object of this name has no other keys than these.
fn known(body: &Value, name: &str, keys: &[&str]) -> Result<(), String> {
    let object = body.get(name).and_then(Value::as_object);
    let stranger =
        object.and_then(|object| object.keys().find(|key| !keys.contains(&key.as_str())));
    match stranger {
        None => Ok(()),
        Some(key) => {
            let key: String = key.chars().take(40).collect();
            Err(format!("{name}.{key} is not known: {name} has {}", keys.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scrape() -> Value {
        json!({
            "filters": {
                "date_range": { "start": "2025-01-15", "end": "2025-01-15" },
                "format": "video", "sort_by": "qtd_ads", "languages": ["pt"],
            },
            "options": { "max_ads": "all", "batch_size": 150 },
        })
    }

    #[test]
    fn the_request_of_the_seed_is_read() {
        let order = Order::parse(&scrape()).unwrap();
        assert_eq!((order.media, order.max_ads, order.batch_size), (Media::Video, None, Some(150)));
        assert_eq!(order.languages, ["pt"]);
        let mut some = scrape();
        some["options"]["max_ads"] = json!(10);
        assert_eq!(Order::parse(&some).unwrap().max_ads, Some(10));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let wrong = [
            ("/filters", json!(null), "date_range"),
            ("/filters/date_range/start", json!("15/01/2025"), "date_range.start"),
            ("/filters/date_range/end", json!("2025-01-14"), "date_range"),
            ("/filters/date_range/end", json!("2045-01-14"), "date_range"),
            ("/filters/format", json!("gif"), "format"),
            ("/filters/languages", json!("pt"), "languages"),
            ("/options/max_ads", json!(0), "max_ads"),
            ("/options/max_ads", json!("some"), "max_ads"),
            ("/options/batch_size", json!(-1), "batch_size"),
            ("/options", json!({ "max_add": 3 }), "options.max_add"),
            ("/filters/languages", json!(7), "languages"),
        ];
        for (place, value, named) in wrong {
            let mut body = scrape();
            *body.pointer_mut(place).unwrap() = value;
            let refusal = Order::parse(&body).unwrap_err();
            assert!(refusal.contains(named), "{place}: {refusal}");
        }
        let mut body = scrape();
        body["filters"]["country"] = json!("BR");
        assert!(Order::parse(&body).unwrap_err().contains("filters.country"));
        assert!(Order::parse(&json!({})).is_err());
        assert!(Order::parse(&json!(null)).is_err());
    }

    #[test]
    fn a_session_needs_a_proxy_that_can_be_read() {
        let open =
            |proxy: Value| OpenSession::parse(&json!({ "force_refresh": true, "proxy": proxy }));
        open(json!({ "server": "proxy.example.com:8080", "username": "u", "password": "p" }))
            .unwrap();
        open(json!({ "server": "socks5://10.0.0.7:1080" })).unwrap();
        for wrong in [
            json!(null),
            json!({}),
            json!({ "server": "" }),
            json!({ "server": 7 }),
            json!({ "server": "ftp://x:1" }),
            json!({ "server": "http://user:secret@x:1" }),
            json!({ "server": "x:1/path" }),
            json!({ "server": "x:1", "password": 7 }),
        ] {
            let refusal = open(wrong.clone()).unwrap_err();
            assert!(!refusal.contains("secret"), "{refusal}");
        }
        assert!(OpenSession::parse(&json!({})).is_err());
    }
}
