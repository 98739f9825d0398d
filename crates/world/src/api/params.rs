//! Query parameters, read as a Java server reads them.

use std::borrow::Cow;

use super::refusal::Refusal;

/// The parameters of a request; of one given twice, the first.
#[derive(Debug)]
pub(super) struct Params<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Params<'a> {
    pub(super) fn new(query: &'a str) -> Self {
        Self(url::form_urlencoded::parse(query.as_bytes()).collect())
    }

    /// The value, if there is one; an empty one is none.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_ref()).filter(|value| !value.is_empty())
    }

    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub(super) fn required(&self, name: &str, kind: &str) -> Result<&str, Refusal> {
        self.text(name).ok_or_else(|| {
            let message = format!(
                "Required request parameter '{name}' for method parameter type {kind} is not present"
            );
            Refusal::spring(400, message)
        })
    }

    pub(super) fn number<N: TryFrom<i64>>(
        &self,
        name: &str,
        kind: &str,
    ) -> Result<Option<N>, Refusal> {
        self.text(name).map(|text| number(text, kind)).transpose()
    }

    pub(super) fn required_number<N: TryFrom<i64>>(
        &self,
        name: &str,
        kind: &str,
    ) -> Result<N, Refusal> {
        number(self.required(name, kind)?, kind)
    }

    /// A text of no more characters than this.
    pub(super) fn bounded(&self, name: &str, most: usize) -> Result<Option<String>, Refusal> {
        match self.text(name) {
            Some(text) if text.chars().count() > most => {
                Err(Refusal::pncp(400, format!("{name}: size must be between 0 and {most}")))
            }
            text => Ok(text.map(str::to_owned)),
        }
    }
}

pub(super) fn number<N: TryFrom<i64>>(text: &str, kind: &str) -> Result<N, Refusal> {
    let value = text.parse::<i64>().ok().and_then(|value| N::try_from(value).ok());
    value.ok_or_else(|| {
        let message = format!(
            "Failed to convert value of type 'java.lang.String' to required type '{kind}'; \
             For input string: \"{text}\""
        );
        Refusal::spring(400, message)
    })
}
