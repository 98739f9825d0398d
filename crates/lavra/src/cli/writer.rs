//! `lavra writer`.

use clap::Args;

#[derive(Debug, Default, Args)]
pub(crate) struct Writer {
    /// Where to listen; beyond this machine only with an API key [default: 127.0.0.1:8091].
    #[arg(long, value_name = "HOST:PORT", env = "LAVRA_WRITER_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,

    /// The database whose tables are filled, and where the jobs stand beside them [default: --database].
    #[arg(long, value_name = "FILE|URL", env = "LAVRA_WRITER_TARGET", hide_env_values = true)]
    pub(crate) target: Option<String>,

    /// A host that may be asked, and no others: NAME, NAME:PORT or *.NAME; may be repeated.
    #[arg(
        long,
        value_name = "HOST",
        env = "LAVRA_WRITER_ALLOW_HOSTS",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) allow_host: Vec<String>,

    /// An internal network that may be asked all the same, such as 10.0.0.0/8; may be repeated.
    #[arg(
        long,
        value_name = "NETWORK",
        env = "LAVRA_WRITER_ALLOW_PRIVATE",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) allow_private: Vec<String>,

    /// A directory below which files may be read; may be repeated.
    #[arg(
        long,
        value_name = "DIR",
        env = "LAVRA_WRITER_DIRECTORIES",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) directory: Vec<String>,
}
