//! Lavra itself, as a user would have it: a source file of their own with a higher cap, one command.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::IN_FLIGHT;
use super::world::World;
use crate::bench::numbers::field;
use crate::exec;
use crate::workspace::Workspace;

const MONTH: &str = "2024-07";

/// As the built-in source has it, but for the cap and for what the world does not hold.
const SOURCE: &str = r#"
name = "bench"
base_url = "http://127.0.0.1/api/consulta"

[limits]
in_flight = {in_flight}
max_pages = 1_000_000

[request]
date_format = "%Y%m%d"
from = "dataInicial"
to = "dataFinal"
page = "pagina"
page_size = "tamanhoPagina"

[response]
records = "/data"
total = "/totalRegistros"
pages = "/totalPaginas"

[[endpoint]]
name = "contratacoes_publicacao"
path = "/v1/contratacoes/publicacao"
first_month = "2021-08"
page_size = 50
page_size_range = [10, 50]
key = ["/numeroControlePNCP"]

[endpoint.fan_out]
parameter = "codigoModalidadeContratacao"
label = "modalidade"
values = [6]
"#;

#[derive(Debug)]
pub(crate) struct Lavra {
    program: PathBuf,
    library: PathBuf,
}

impl Lavra {
    /// Builds it, unless it is there.
    pub(crate) fn prepare(workspace: &Workspace, there: Option<PathBuf>) -> Result<Self> {
        let program = match there {
            Some(program) => program,
            None => {
                let mut cargo = workspace.cargo();
                exec::run_beside_data(cargo.args(["build", "--release", "--package", "lavra"]))?;
                workspace.target().join("release/lavra")
            }
        };
        ensure!(program.is_file(), "{} is not there", program.display());
        Ok(Self { program, library: workspace.target().join("release") })
    }

    /// The extraction of all that the world holds.
    pub(crate) fn extract(
        &self,
        world: &World,
        directory: &Path,
        database: &Path,
    ) -> Result<Command> {
        let source = directory.join("bench.toml");
        std::fs::write(&source, SOURCE.replace("{in_flight}", &IN_FLIGHT.to_string()))?;
        let mut command = self.command(directory);
        command.arg("--database").arg(database).args(["extract", "run", "--source"]).arg(source);
        command.args(["--from", MONTH, "--to", MONTH, "--base-url", &world.base()]);
        Ok(command)
    }

    /// How many rows there are, and of how many pages.
    pub(crate) fn count(&self, database: &Path) -> Result<(usize, usize)> {
        let rows = self.sql(
            database,
            "SELECT count(*) AS rows, count(DISTINCT page) AS pages
             FROM psa.bench_raw_responses WHERE outcome = 'data'",
        )?;
        let row = rows.first().context("a count gives a row")?;
        Ok((field(row, "rows")? as usize, field(row, "pages")? as usize))
    }

    pub(crate) fn sql(&self, database: &Path, query: &str) -> Result<Vec<Value>> {
        let directory = database.parent().context("a database lies in a directory")?;
        let mut command = self.command(directory);
        command.arg("--database").arg(database).args(["--json", "sql", query]);
        serde_json::from_str(&exec::capture(&mut command)?).context("lavra printed no JSON")
    }

    /// In a directory that has no settings file. A binary from elsewhere finds its library with ours.
    pub(crate) fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(directory).env("LD_LIBRARY_PATH", &self.library);
        command
    }
}
