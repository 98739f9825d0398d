//! The API to the letter: what a request asks for, or how it is refused.

mod params;
mod parse;
mod refusal;

pub(crate) use parse::{Asked, Compra, Query, open_days, parse, record_days};
pub(crate) use refusal::{Refusal, Shape, body as error_body, brasilia};

use crate::endpoint::Endpoint;

/// Where the same API stands: the public base, the one its own errors name, and none.
const BASES: [&str; 2] = ["/api/consulta", "/pncp-consulta"];

/// What a path leads to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Route<'a> {
    List(Endpoint),
    Compra { cnpj: &'a str, year: &'a str, sequence: &'a str },
    Nowhere,
}

/// The path without the base.
pub(crate) fn below_base(path: &str) -> &str {
    BASES.iter().find_map(|base| path.strip_prefix(base)).unwrap_or(path)
}

pub(crate) fn route(path: &str) -> Route<'_> {
    let path = below_base(path);
    if let Ok(endpoint) = path.parse() {
        return Route::List(endpoint);
    }
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["", "v1", "orgaos", cnpj, "compras", year, sequence] => {
            Route::Compra { cnpj, year, sequence }
        }
        _ => Route::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_same_places_below_each_base() {
        for base in ["", "/api/consulta", "/pncp-consulta"] {
            for endpoint in Endpoint::ALL {
                let path = format!("{base}{}", endpoint.path());
                assert_eq!(route(&path), Route::List(endpoint));
            }
            let path = format!("{base}/v1/orgaos/1/compras/2024/3");
            assert_eq!(route(&path), Route::Compra { cnpj: "1", year: "2024", sequence: "3" });
        }
        for path in
            ["", "/", "/v1/pca", "/v1/contratos/", "/v2/contratos", "/v1/orgaos/1/compras/2"]
        {
            assert_eq!(route(path), Route::Nowhere, "{path}");
        }
    }
}
