//! The forms of a page, as a browser would find them.

use super::Reply;

/// A form with what would be sent if nobody touched it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) action: String,
    pub(crate) is_post: bool,
    /// In the order of the page, without the token.
    pub(crate) fields: Vec<(String, String)>,
}

impl Form {
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Those of a page that send something somewhere.
pub(crate) fn forms(page: &Reply) -> Vec<Form> {
    let parts = page.text.split("<form ").skip(1);
    let forms = parts.filter_map(|part| {
        let (head, rest) = part.split_once('>')?;
        let body = rest.split("</form>").next()?;
        let is_post = attribute(head, "method")? == "post";
        Some(Form { action: attribute(head, "action")?, is_post, fields: fields(body) })
    });
    forms.collect()
}

fn fields(body: &str) -> Vec<(String, String)> {
    let tags = body.split('<').filter_map(|tag| tag.split_once('>'));
    let mut found: Vec<(String, String)> = Vec::new();
    let mut has_choice = true;
    for (tag, text) in tags {
        let value = attribute(tag, "value");
        let is = |kind: &str| tag == kind || tag.starts_with(&format!("{kind} "));
        if is("option") && !has_choice {
            has_choice = true;
            found.last_mut().unwrap().1 = value.clone().unwrap_or_else(|| plain(text));
        }
        let Some(name) = attribute(tag, "name").filter(|name| name != "csrf") else { continue };
        if is("select") {
            has_choice = false;
            found.push((name, String::new()));
        } else if is("textarea") {
            found.push((name, plain(text)));
        } else if is("input") || is("button") {
            found.push((name, value.unwrap_or_default()));
        }
    }
    found
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\"")).or_else(|| {
        let rest = tag.strip_prefix(name)?.strip_prefix("=\"")?;
        Some(("", rest))
    })?;
    Some(plain(rest.split('"').next()?))
}

fn plain(text: &str) -> String {
    let marks = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    marks.iter().fold(text.to_owned(), |text, (mark, letter)| text.replace(mark, letter))
}
