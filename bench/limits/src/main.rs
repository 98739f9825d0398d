//! What bounds any extraction: how fast the world can be read by somebody who does nothing else, and
//! how fast DuckDB takes the same bodies from its own appender.
//!
//! ```text
//! limits read --port 8090 --pages 960 --in-flight 16 --bodies FILE   reads every page once and keeps it
//! limits append --bodies FILE --database FILE                        appends what was read
//! ```
//!
//! Each prints one line of JSON.

mod append;
mod bodies;
mod read;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let command = args.next().context("say read or append")?;
    let flags = Flags::parse(args)?;
    let result = match command.as_str() {
        "read" => read::run(
            flags.number("--port")? as u16,
            flags.number("--pages")?,
            flags.number("--in-flight")?,
            Path::new(flags.text("--bodies")?),
        )?,
        "append" => {
            append::run(Path::new(flags.text("--bodies")?), Path::new(flags.text("--database")?))?
        }
        other => bail!("unknown command {other}"),
    };
    println!("{result}");
    Ok(())
}

struct Flags(HashMap<String, String>);

impl Flags {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut flags = HashMap::new();
        while let Some(flag) = args.next() {
            let value = args.next().with_context(|| format!("{flag} wants a value"))?;
            flags.insert(flag, value);
        }
        Ok(Self(flags))
    }

    fn text(&self, flag: &str) -> Result<&str> {
        self.0.get(flag).map(String::as_str).with_context(|| format!("{flag} is missing"))
    }

    fn number(&self, flag: &str) -> Result<usize> {
        self.text(flag)?.parse().with_context(|| format!("{flag} wants a number"))
    }
}
