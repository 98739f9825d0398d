//! The list endpoints, as data: what each asks for, how much it gives at once, and how it says that
//! there is nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A list of the API.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Endpoint {
    Contratos,
    ContratosAtualizacao,
    ContratacoesPublicacao,
    ContratacoesAtualizacao,
    ContratacoesProposta,
    Atas,
    AtasAtualizacao,
    InstrumentosCobranca,
    PcaAtualizacao,
    Pca,
    PcaUsuario,
}

/// The parameters that say which days.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Dates {
    /// Both ends belong to the window.
    Closed,
    /// The last day does not, and the names are others.
    HalfOpen,
    /// From today to the day given.
    Until,
    /// A year, and no day.
    Year,
}

/// What a list with nothing in it looks like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Empty {
    NoContent,
    NotFound,
    ZeroLength,
}

/// What splits a list further.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FanOut {
    None,
    /// `codigoModalidadeContratacao`, and whether it must be there.
    Modality {
        required: bool,
    },
    /// `codigoClassificacaoSuperior`
    Class,
    /// `idUsuario`
    System,
}

/// Modalidades that the API knows. Codes beyond these are answered as empty.
pub(crate) const MODALITIES: [u16; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

/// Classes of items that carry data, and what they are called.
pub(crate) const CLASSES: [(u16, &str); 8] = [
    (5410, "SERVIÇOS DE MANUTENÇÃO PREDIAL"),
    (6532, "MATERIAIS DE USO CLÍNICO"),
    (7060, "PARTES E PEÇAS DE COMPUTADOR"),
    (7115, "MÓVEIS E UTENSÍLIOS DE ESCRITÓRIO"),
    (7512, "ARTIGOS DE PAPELARIA"),
    (7931, "PRODUTOS DE LIMPEZA E HIGIENE"),
    (8316, "SERVIÇOS DE TRANSPORTE E LOCAÇÃO"),
    (8946, "GÊNEROS ALIMENTÍCIOS"),
];

/// Systems that publish, by their numbers (`idUsuario`).
pub(crate) const SYSTEMS: [(u16, &str); 6] = [
    (3, "Compras Aurora"),
    (8, "Sistema Vereda de Licitações"),
    (12, "Portal Ipê de Contratos Ltda"),
    (21, "LicitaExemplo Tecnologia e Gestão"),
    (34, "Jequitibá Sistemas Públicos"),
    (55, "Araucária Informática"),
];

impl Endpoint {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Contratos,
        Self::ContratosAtualizacao,
        Self::ContratacoesPublicacao,
        Self::ContratacoesAtualizacao,
        Self::ContratacoesProposta,
        Self::Atas,
        Self::AtasAtualizacao,
        Self::InstrumentosCobranca,
        Self::PcaAtualizacao,
        Self::Pca,
        Self::PcaUsuario,
    ];

    /// The path below the base of the API.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Contratos => "/v1/contratos",
            Self::ContratosAtualizacao => "/v1/contratos/atualizacao",
            Self::ContratacoesPublicacao => "/v1/contratacoes/publicacao",
            Self::ContratacoesAtualizacao => "/v1/contratacoes/atualizacao",
            Self::ContratacoesProposta => "/v1/contratacoes/proposta",
            Self::Atas => "/v1/atas",
            Self::AtasAtualizacao => "/v1/atas/atualizacao",
            Self::InstrumentosCobranca => "/v1/instrumentoscobranca/inclusao",
            Self::PcaAtualizacao => "/v1/pca/atualizacao",
            Self::Pca => "/v1/pca/",
            Self::PcaUsuario => "/v1/pca/usuario",
        }
    }

    /// The most records on a page; one more is refused.
    pub const fn page_cap(self) -> u64 {
        match self {
            Self::Contratos
            | Self::ContratosAtualizacao
            | Self::Atas
            | Self::AtasAtualizacao
            | Self::PcaAtualizacao
            | Self::Pca
            | Self::PcaUsuario => 500,
            Self::ContratacoesPublicacao
            | Self::ContratacoesAtualizacao
            | Self::ContratacoesProposta => 50,
            Self::InstrumentosCobranca => 100,
        }
    }

    /// The records on a page where the request does not say.
    pub(crate) const fn usual_page(self) -> u64 {
        match self {
            Self::Contratos
            | Self::ContratosAtualizacao
            | Self::Atas
            | Self::AtasAtualizacao
            | Self::PcaAtualizacao
            | Self::Pca
            | Self::PcaUsuario => 500,
            Self::ContratacoesPublicacao
            | Self::ContratacoesAtualizacao
            | Self::ContratacoesProposta
            | Self::InstrumentosCobranca => 10,
        }
    }

    pub(crate) const fn dates(self) -> Dates {
        match self {
            Self::Contratos
            | Self::ContratosAtualizacao
            | Self::ContratacoesPublicacao
            | Self::ContratacoesAtualizacao
            | Self::Atas
            | Self::AtasAtualizacao
            | Self::InstrumentosCobranca => Dates::Closed,
            Self::ContratacoesProposta => Dates::Until,
            Self::PcaAtualizacao => Dates::HalfOpen,
            Self::Pca | Self::PcaUsuario => Dates::Year,
        }
    }

    pub(crate) const fn empty(self) -> Empty {
        match self {
            Self::Contratos
            | Self::ContratosAtualizacao
            | Self::ContratacoesPublicacao
            | Self::ContratacoesAtualizacao
            | Self::ContratacoesProposta
            | Self::Atas
            | Self::AtasAtualizacao => Empty::NoContent,
            Self::InstrumentosCobranca => Empty::NotFound,
            Self::PcaAtualizacao | Self::Pca | Self::PcaUsuario => Empty::ZeroLength,
        }
    }

    pub(crate) const fn fan_out(self) -> FanOut {
        match self {
            Self::Contratos
            | Self::ContratosAtualizacao
            | Self::Atas
            | Self::AtasAtualizacao
            | Self::InstrumentosCobranca
            | Self::PcaAtualizacao => FanOut::None,
            Self::ContratacoesPublicacao | Self::ContratacoesAtualizacao => {
                FanOut::Modality { required: true }
            }
            Self::ContratacoesProposta => FanOut::Modality { required: false },
            Self::Pca => FanOut::Class,
            Self::PcaUsuario => FanOut::System,
        }
    }

    /// Every value of the fan-out that can carry data; a single 0 where there is none.
    pub(crate) fn fans(self) -> Vec<u16> {
        match self.fan_out() {
            FanOut::None => vec![0],
            FanOut::Modality { .. } => MODALITIES.to_vec(),
            FanOut::Class => CLASSES.iter().map(|(code, _)| *code).collect(),
            FanOut::System => SYSTEMS.iter().map(|(code, _)| *code).collect(),
        }
    }

    /// Whether the records are items of plans, many to an element of `data`.
    pub(crate) const fn counts_items(self) -> bool {
        matches!(self, Self::PcaAtualizacao | Self::Pca | Self::PcaUsuario)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.path())
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(path: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|endpoint| endpoint.path() == path);
        found.ok_or_else(|| format!("{path:?} is the path of no list, such as /v1/contratos"))
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(path: String) -> Result<Self, String> {
        path.parse()
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.path().to_owned()
    }
}
