//! A private RabbitMQ node with a port mapper of its own, so that it neither meets another node on this
//! machine nor leaves a mapper running. It can be stopped, killed and started again on the same port and data.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::apt::Package;
use crate::daemon::Daemon;
use crate::ports;
use crate::scratch::Scratch;
use crate::user::{DeathSignal, User};

const PATIENCE: Duration = Duration::from_secs(90);
const READY: &str = "Server startup complete";

/// The broker, running or stopped.
#[derive(Debug)]
pub(crate) struct RabbitMq {
    daemon: Option<Daemon>,
    _port_mapper: Daemon,
    ports: Ports,
    program: PathBuf,
    user: User,
    scratch: Scratch,
}

#[derive(Debug)]
struct Ports {
    amqp: u16,
    distribution: u16,
    mapper: u16,
}

impl RabbitMq {
    pub(crate) fn start() -> Result<Self> {
        let program = Package::RabbitMq.path()?;
        let user = User::of_service("rabbitmq")?;
        let scratch = Scratch::new("rabbitmq", &user)?;
        let ports =
            Ports { amqp: ports::free()?, distribution: ports::free()?, mapper: ports::free()? };
        prepare(&scratch, &user).context("cannot set up a private RabbitMQ")?;
        let port_mapper = start_port_mapper(&scratch, &user, ports.mapper)?;
        let mut server =
            Self { daemon: None, _port_mapper: port_mapper, ports, program, user, scratch };
        server.resume()?;
        Ok(server)
    }

    /// Starts it again after [`Self::stop`] or [`Self::kill`].
    pub(crate) fn resume(&mut self) -> Result<()> {
        let log = self.log();
        let _ = std::fs::remove_file(&log);
        let mut daemon =
            Daemon::start("RabbitMQ", self.command(), &self.scratch.join("console.log"))?;
        daemon.wait_until(PATIENCE, || says_ready(&log) && speaks_amqp(self.ports.amqp))?;
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Asks it to stop in order and waits until it has.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.daemon.take().map_or(Ok(()), |daemon| daemon.stop(Signal::TERM, PATIENCE))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.daemon.take().map_or(Ok(()), |daemon| daemon.stop(Signal::KILL, PATIENCE))
    }

    pub(crate) fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.ports.amqp)
    }

    pub(crate) fn port(&self) -> u16 {
        self.ports.amqp
    }

    /// A `rabbitmqctl` for this node: Debian's own speaks to the system-wide one.
    pub(crate) fn control(&self) -> String {
        format!(
            "#!/bin/sh\nexport HOME='{}' ERL_EPMD_PORT={} RABBITMQ_NODENAME={}\nexec '{}' \"$@\"\n",
            self.scratch.path().display(),
            self.ports.mapper,
            self.node(),
            self.program.with_file_name("rabbitmqctl").display(),
        )
    }

    fn node(&self) -> String {
        format!("lavra-{}@localhost", self.ports.amqp)
    }

    /// Since it was last started.
    pub(crate) fn log(&self) -> PathBuf {
        self.scratch.join("log").join(format!("{}.log", self.node()))
    }

    /// Debian's own starter insists on its one system-wide node, so this is the script behind it. Told that
    /// systemd watches, it becomes the Erlang machine instead of waiting for it: signals reach the server.
    fn command(&self) -> Command {
        let home = self.scratch.path();
        let mut command = self.user.command(&self.program, Some(DeathSignal::Terminate));
        command
            .env_clear()
            .current_dir(home)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", home);
        command.env("RUNNING_UNDER_SYSTEMD", "true").env("RABBITMQ_NODENAME", self.node());
        command
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.ports.amqp.to_string());
        command.env("RABBITMQ_DIST_PORT", self.ports.distribution.to_string());
        command
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", self.ports.mapper.to_string());
        command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-start_epmd false");
        for (variable, name) in [
            ("RABBITMQ_MNESIA_BASE", "data"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_PID_FILE", "pid"),
            ("RABBITMQ_CONFIG_FILE", "none"),
            ("RABBITMQ_CONF_ENV_FILE", "none.sh"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
        ] {
            command.env(variable, home.join(name));
        }
        command
    }
}

/// The files a node wants. Settings stand in Erlang's own notation: the friendlier one takes a second to translate.
fn prepare(scratch: &Scratch, user: &User) -> Result<()> {
    let cookie = scratch.write(".erlang.cookie", "LAVRAPRIVATE", user)?;
    std::fs::set_permissions(cookie, std::fs::Permissions::from_mode(0o600))?;
    scratch.write("enabled_plugins", "[].\n", user)?;
    scratch.write(
        "advanced.config",
        "[{rabbit, [{vm_memory_high_watermark, {absolute, 2147483648}}]}].\n",
        user,
    )?;
    Ok(())
}

fn start_port_mapper(scratch: &Scratch, user: &User, port: u16) -> Result<Daemon> {
    let mut command = user.command(Path::new("epmd"), Some(DeathSignal::Terminate));
    command.args(["-address", "127.0.0.1", "-port", &port.to_string()]).current_dir(scratch.path());
    let mut daemon = Daemon::start("Erlang's port mapper", command, &scratch.join("epmd.log"))?;
    daemon.wait_until(Duration::from_secs(10), || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    })?;
    Ok(daemon)
}

fn says_ready(log: &Path) -> bool {
    std::fs::read_to_string(log).is_ok_and(|text| text.contains(READY))
}

/// Whether the port answers the protocol header with a method frame.
fn speaks_amqp(port: u16) -> bool {
    let greet = || -> std::io::Result<u8> {
        let wait = Duration::from_millis(500);
        let mut stream =
            TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), wait)?;
        stream.set_read_timeout(Some(wait))?;
        stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        Ok(kind[0])
    };
    greet().is_ok_and(|kind| kind == 1)
}
