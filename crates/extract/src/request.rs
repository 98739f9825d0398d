//! What is asked for: the URL of a page of a window.

use jiff::civil::Date;
use url::Url;

use crate::error::{Error, Result};
use crate::model::Window;
use crate::source::{End, Period, Series, Source};

/// A page's URL, with its query by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub url: Url,
    pub query: Vec<(String, String)>,
}

/// Page `page` of a window; `today` is for those endpoints that know no other day.
pub fn request(
    source: &Source,
    series: &Series<'_>,
    window: &Window,
    page: i64,
    today: Date,
) -> Result<Request> {
    let endpoint = series.endpoint;
    let day = |date: Date| {
        jiff::fmt::strtime::format(&source.request.date_format, date)
            .map_err(|error| Error::Invalid(format!("date_format: {error}")))
    };
    let mut query: Vec<(String, String)> =
        endpoint.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    match &endpoint.period {
        Period::Month { from, to, end } => {
            let last = match end {
                End::Inclusive => window.last_day,
                End::Exclusive => window.last_day.tomorrow().unwrap_or(window.last_day),
            };
            query.push((from.clone(), day(window.first_day)?));
            query.push((to.clone(), day(last)?));
        }
        Period::Year { parameter } => {
            query.push((parameter.clone(), window.first_day.year().to_string()));
        }
        Period::Snapshot { to, horizon_days } => {
            let ahead =
                jiff::Span::new().try_days(*horizon_days).and_then(|s| today.checked_add(s));
            query.push((to.clone(), day(ahead.unwrap_or(today))?));
        }
    }
    if let (Some(fan_out), Some(value)) = (&endpoint.fan_out, series.value) {
        query.push((fan_out.parameter.clone(), value.to_owned()));
    }
    query.push((source.request.page.clone(), page.to_string()));
    if let Some(name) = &source.request.page_size {
        query.push((name.clone(), endpoint.page_size.to_string()));
    }
    let mut url = source.base_url.clone();
    let path = format!("{}{}", url.path().trim_end_matches('/'), endpoint.path);
    url.set_path(&path);
    url.query_pairs_mut().extend_pairs(&query);
    Ok(Request { url, query })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn url(name: &str) -> String {
        let source = Source::built_in("pncp").unwrap().unwrap();
        let mut source = source;
        for endpoint in &mut source.endpoints {
            if let Some(fan_out) = &mut endpoint.fan_out
                && fan_out.values.is_empty()
            {
                fan_out.values.push("x".into());
            }
        }
        let series = source.series(name).unwrap();
        let (first_day, last_day) = (date(2024, 2, 1), date(2024, 2, 29));
        let window = Window { number: 1, first_day, last_day, base: 0, totals: None };
        let today = date(2026, 11, 16);
        request(&source, &series, &window, 7, today).unwrap().url.to_string()
    }

    #[test]
    fn each_endpoint_is_asked_in_its_own_way() {
        let base = "https://pncp.gov.br/api/consulta/v1";
        let rows = [
            (
                "contratos_publicacao",
                "/contratos?dataInicial=20240201&dataFinal=20240229&pagina=7&tamanhoPagina=500",
            ),
            (
                "contratacoes_publicacao_modalidade_6",
                "/contratacoes/publicacao?dataInicial=20240201&dataFinal=20240229&codigoModalidadeContratacao=6&pagina=7&tamanhoPagina=50",
            ),
            (
                "pca_atualizacao",
                "/pca/atualizacao?dataInicio=20240201&dataFim=20240301&pagina=7&tamanhoPagina=500",
            ),
            (
                "pca_classificacao_classificacao_x",
                "/pca/?anoPca=2024&codigoClassificacaoSuperior=x&pagina=7&tamanhoPagina=500",
            ),
            (
                "contratacoes_proposta",
                "/contratacoes/proposta?dataFinal=20271116&pagina=7&tamanhoPagina=50",
            ),
        ];
        for (name, expected) in rows {
            assert_eq!(url(name), format!("{base}{expected}"));
        }
    }
}
