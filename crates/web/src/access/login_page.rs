//! The login page as HTML. It says where a key comes from, and nothing about this server.

/// What the page shows.
#[derive(Debug)]
pub(crate) struct LoginPage<'a> {
    pub(crate) csrf: &'a str,
    /// Where to go afterwards: a path of ours.
    pub(crate) next: &'a str,
    /// What was wrong with the last try.
    pub(crate) message: Option<&'a str>,
}

pub(crate) fn login_page(page: &LoginPage<'_>) -> String {
    let message = page
        .message
        .map_or(String::new(), |message| format!("<p role=\"alert\">{}</p>", escaped(message)));
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Lavra: log in</title></head><body><main><h1>Log in</h1>{message}\
         <form method=\"post\" action=\"/ui/login\">\
         <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
         <input type=\"hidden\" name=\"next\" value=\"{next}\">\
         <p><label for=\"key\">API key</label> \
         <input id=\"key\" name=\"key\" type=\"password\" autocomplete=\"current-password\" required autofocus></p>\
         <p><button>Log in</button></p></form>\
         <p>An administrator makes keys: <code>lavra key create NAME --role viewer</code></p>\
         </main></body></html>",
        csrf = escaped(page.csrf),
        next = escaped(page.next),
    )
}

/// Text as it may stand in HTML, attributes included.
pub(super) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, letter| {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
        safe
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_the_page_stays_text() {
        let odd = "\"><script>alert('x')</script>&";
        let page = login_page(&LoginPage { csrf: odd, next: odd, message: Some(odd) });
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(page.matches("&lt;script&gt;alert(&#39;x&#39;)").count(), 3, "{page}");
    }
}
