//! How many pages a second one core serves over loopback, each asked for once:
//! `cargo run --release -p lavra-world --example rate -- [connections] [seconds]`.
//!
//! The server has one thread of its own; the clients have others and only count bytes. Where the
//! machine is busy with other things, the rate by the processor time of the server's thread tells more
//! than the one by the clock.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lavra_world::{Fixed, World, WorldConfig};
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let connections: u64 = args.next().map_or(Ok(2), |text| text.parse())?;
    let seconds: u64 = args.next().map_or(Ok(5), |text| text.parse())?;
    let fixed = Fixed { pages: 1_000_000, ..Fixed::default() };
    let world = World::new(WorldConfig { fixed: Some(fixed), ..WorldConfig::default() });
    let (send, receive) = std::sync::mpsc::channel();
    let (serving, stop) = (world.clone(), CancellationToken::new());
    let stopped = stop.clone();
    let server = std::thread::spawn(move || -> Result<f64, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            send.send(listener.local_addr()?)?;
            Ok::<_, Failed>(serving.serve(listener, stopped).await?)
        })?;
        processor_seconds()
    });
    let address = receive.recv()?;
    let (next, bytes) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(0)));
    let start = Instant::now();
    let until = start + Duration::from_secs(seconds);
    let readers: Vec<_> = (0..connections)
        .map(|_| {
            let (next, bytes) = (next.clone(), bytes.clone());
            std::thread::spawn(move || read(address, &next, &bytes, until))
        })
        .collect();
    for reader in readers {
        reader.join().map_err(|_| "a reader panicked")??;
    }
    let took = start.elapsed().as_secs_f64();
    let pages = world.stats().whole_pages as f64;
    let bytes = bytes.load(Ordering::Relaxed) as f64;
    stop.cancel();
    let busy = server.join().map_err(|_| "the server panicked")??;
    say(&format!(
        "{:.0} pages a second of {:.0} bytes over {connections} connections, \
         {:.0} by the server's processor time",
        pages / took,
        bytes / pages,
        pages / busy
    ));
    Ok(())
}

/// What this thread has had of a processor so far.
fn processor_seconds() -> Result<f64, Failed> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().ok_or("no time")?.parse()?;
    Ok(nanoseconds / 1e9)
}

#[expect(clippy::print_stdout, reason = "the line on stdout is what this program is for")]
fn say(line: &str) {
    println!("{line}");
}

/// Asks for one page after another on one connection, and looks for nothing but its end.
fn read(
    address: SocketAddr,
    next: &AtomicU64,
    bytes: &AtomicU64,
    until: Instant,
) -> Result<(), Failed> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 256 * 1024];
    while Instant::now() < until {
        let page = next.fetch_add(1, Ordering::Relaxed);
        write!(
            stream,
            "GET /v1/contratacoes/publicacao?dataInicial=20240701&dataFinal=20240731\
             &codigoModalidadeContratacao=6&tamanhoPagina=50&pagina={page} HTTP/1.1\r\nhost: x\r\n\r\n"
        )?;
        loop {
            let count = stream.read(&mut buffer)?;
            bytes.fetch_add(count as u64, Ordering::Relaxed);
            // Nothing in a page ends like the last chunk.
            if count == 0 || buffer[..count].ends_with(b"0\r\n\r\n") {
                break;
            }
        }
    }
    Ok(())
}
