//! A request for a list, parsed into what cannot be wrong, or refused as the real one refuses it.
//!
//! First what the framework does by itself (missing and unreadable parameters), then the page, then
//! the dates: the order in which one mistake hides another.

use super::params::{Params, number};
use super::refusal::Refusal;
use crate::day::Day;
use crate::endpoint::{Dates, Endpoint, FanOut};
use crate::listing::{Filter, Selection};
use crate::truth::IN_FORCE;

/// The longest window, in days between its ends.
const LONGEST: i32 = 365;
const SMALLEST_PAGE: i64 = 10;

/// A page of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Query {
    pub(crate) selection: Selection,
    pub(crate) asked: Asked,
    pub(crate) page: u64,
    pub(crate) size: u64,
}

/// What the request named, for those who count requests.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Asked {
    pub(crate) endpoint: Endpoint,
    /// As in the request: `20240701..20240731`, `..20261231` or `2024`.
    pub(crate) window: String,
    pub(crate) fan_out: Option<u16>,
    pub(crate) filter: Filter,
}

/// A single contratação.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Compra<'a> {
    pub(crate) cnpj: &'a str,
    pub(crate) year: i32,
    pub(crate) sequence: u64,
}

impl<'a> Compra<'a> {
    pub(crate) fn parse(cnpj: &'a str, year: &str, sequence: &str) -> Result<Self, Refusal> {
        let year: i32 = number(year, "java.lang.Integer")?;
        let sequence: i32 = number(sequence, "java.lang.Integer")?;
        match u64::try_from(sequence) {
            Ok(sequence) if sequence > 0 => Ok(Self { cnpj, year, sequence }),
            _ => Err(Refusal::pncp(400, "sequencial: must be greater than or equal to 1")),
        }
    }
}

pub(crate) fn parse(endpoint: Endpoint, query: &str, today: Day) -> Result<Query, Refusal> {
    let params = Params::new(query);
    let (fan_out, fans) = fan_out(endpoint, &params)?;
    let texts = texts(endpoint, &params)?;
    let (page, size) = page(endpoint, &params)?;
    let filter = filter(endpoint, &params)?;
    let (first, last, window) = days(endpoint, &params, texts, today)?;
    let selection = Selection { endpoint, fans, first, last, filter: filter.clone() };
    Ok(Query { selection, asked: Asked { endpoint, window, fan_out, filter }, page, size })
}

/// The fan-out value as it was given, and the values to read.
fn fan_out(endpoint: Endpoint, params: &Params<'_>) -> Result<(Option<u16>, Vec<u16>), Refusal> {
    // A code that is none of ours, however large, is one without records.
    let code = |value: i64| u16::try_from(value).unwrap_or(u16::MAX);
    let given = match endpoint.fan_out() {
        FanOut::None => return Ok((None, vec![0])),
        FanOut::Modality { required: true } => {
            Some(params.required_number("codigoModalidadeContratacao", "Long")?)
        }
        FanOut::Modality { required: false } => {
            params.number("codigoModalidadeContratacao", "Long")?
        }
        FanOut::Class => {
            params.required("codigoClassificacaoSuperior", "String")?;
            let text = params.bounded("codigoClassificacaoSuperior", 100)?;
            Some(text.and_then(|text| text.parse().ok()).unwrap_or(i64::MAX))
        }
        FanOut::System => Some(params.required_number("idUsuario", "Long")?),
    };
    let given = given.map(code);
    Ok((given, given.map_or_else(|| endpoint.fans(), |fan| vec![fan])))
}

/// The texts of the parameters that say when: one or two.
fn texts<'p>(endpoint: Endpoint, params: &'p Params<'_>) -> Result<(&'p str, &'p str), Refusal> {
    match endpoint.dates() {
        Dates::Closed => {
            Ok((params.required("dataInicial", "String")?, params.required("dataFinal", "String")?))
        }
        Dates::HalfOpen => {
            Ok((params.required("dataInicio", "String")?, params.required("dataFim", "String")?))
        }
        Dates::Until => Ok(("", params.required("dataFinal", "String")?)),
        Dates::Year => Ok((params.required("anoPca", "Integer")?, "")),
    }
}

fn page(endpoint: Endpoint, params: &Params<'_>) -> Result<(u64, u64), Refusal> {
    let page: i32 = params.required_number("pagina", "Integer")?;
    let size = params.number::<i32>("tamanhoPagina", "Integer")?.map(i64::from);
    if page < 1 {
        return Err(Refusal::pncp(400, "pagina: must be greater than or equal to 1"));
    }
    let size = size.unwrap_or(endpoint.usual_page() as i64);
    if size < SMALLEST_PAGE {
        return Err(Refusal::pncp(400, "tamanhoPagina: must be greater than or equal to 10"));
    }
    if size > endpoint.page_cap() as i64 {
        return Err(Refusal::pncp(400, "Tamanho de página inválido"));
    }
    Ok((u64::from(page.unsigned_abs()), size.unsigned_abs()))
}

fn filter(endpoint: Endpoint, params: &Params<'_>) -> Result<Filter, Refusal> {
    let unit = "codigoUnidadeAdministrativa";
    let number = |name| params.number::<i64>(name, "Long");
    Ok(match endpoint {
        Endpoint::Contratos | Endpoint::ContratosAtualizacao => Filter {
            cnpj: params.owned("cnpjOrgao"),
            unit: params.owned(unit),
            system: number("usuarioId")?,
            ..Filter::default()
        },
        Endpoint::ContratacoesPublicacao | Endpoint::ContratacoesAtualizacao => Filter {
            cnpj: params.owned("cnpj"),
            unit: params.owned(unit),
            state: params.owned("uf"),
            town: params.owned("codigoMunicipioIbge"),
            system: number("idUsuario")?,
            dispute: number("codigoModoDisputa")?,
            ..Filter::default()
        },
        Endpoint::ContratacoesProposta => Filter {
            cnpj: params.owned("cnpj"),
            unit: params.bounded(unit, 30)?,
            state: params.owned("uf"),
            town: params.owned("codigoMunicipioIbge"),
            system: number("idUsuario")?,
            ..Filter::default()
        },
        Endpoint::Atas | Endpoint::AtasAtualizacao => Filter {
            cnpj: params.owned("cnpj"),
            unit: params.bounded(unit, 30)?,
            system: number("idUsuario")?,
            ..Filter::default()
        },
        Endpoint::InstrumentosCobranca => Filter {
            cnpj: params.owned("cnpjOrgao"),
            instrument: number("tipoInstrumentoCobranca")?,
            // Works, though no document says so.
            state: params.owned("uf"),
            ..Filter::default()
        },
        Endpoint::PcaAtualizacao => {
            let filter = Filter {
                cnpj: params.owned("cnpj"),
                unit: params.owned("codigoUnidade"),
                ..Filter::default()
            };
            if filter.unit.is_some() && filter.cnpj.is_none() {
                return Err(Refusal::pncp(422, "Código da Unidade exige a informação do CNPJ"));
            }
            filter
        }
        Endpoint::Pca => Filter::default(),
        Endpoint::PcaUsuario => Filter {
            cnpj: params.owned("cnpj"),
            class: params.owned("codigoClassificacaoSuperior"),
            ..Filter::default()
        },
    })
}

/// The days of the records, both included, and the window in the words of the request.
fn days(
    endpoint: Endpoint,
    params: &Params<'_>,
    (from, to): (&str, &str),
    today: Day,
) -> Result<(Day, Day, String), Refusal> {
    let day = |text: &str, name| {
        Day::parse(text).ok_or_else(|| Refusal::pncp(422, format!("{name} inválida")))
    };
    let window = format!("{from}..{to}");
    match endpoint.dates() {
        Dates::Year => {
            let year: i32 = params.required_number("anoPca", "Integer")?;
            let first = Day::first_of(year.clamp(1, 9998));
            Ok((first, first, year.to_string()))
        }
        Dates::Until => {
            let last = day(to, "Data Final")?;
            if last < today {
                let message =
                    "Data Final inválida. Data Final deve ser maior ou igual a data atual";
                return Err(Refusal::pncp(422, message));
            }
            let (first, last) = open_days(today, last);
            Ok((first, last, window))
        }
        Dates::Closed | Dates::HalfOpen => {
            let silent = |text: &str| text.contains('-') && Day::parse(text).is_none();
            if endpoint.dates() == Dates::HalfOpen && (silent(from) || silent(to)) {
                return Err(Refusal::Silent);
            }
            let (first, last) = (day(from, "Data Inicial")?, day(to, "Data Final")?);
            if first > last {
                let message = "Data Inicial deve ser anterior ou igual à Data Final";
                return Err(Refusal::pncp(422, message));
            }
            if first.until(last) > LONGEST {
                let message = "Período inicial e final maior que 365 dias.";
                return Err(Refusal::pncp(422, message));
            }
            let (first, last) = record_days(endpoint, first, last);
            Ok((first, last, window))
        }
    }
}

/// The days on which open proposals close, up to `last`. Nobody's stay open for twenty years, and the
/// year 9999 costs no more than that.
pub(crate) fn open_days(today: Day, last: Day) -> (Day, Day) {
    (today, last.min(today.plus(20 * 366)))
}

/// The days whose records a window of the request takes in.
pub(crate) fn record_days(endpoint: Endpoint, first: Day, last: Day) -> (Day, Day) {
    match endpoint {
        Endpoint::Atas => (first.plus(1 - IN_FORCE), last),
        Endpoint::PcaAtualizacao => (first, last.plus(-1)),
        _ => (first, last),
    }
}
