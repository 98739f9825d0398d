//! What `cargo xtask bench writer` drives: makes data, writes it through the API, and serves a body that is
//! longer than any memory. Each prints one line of JSON.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lavra_db::{Database, Schema, Target, migrate};
use lavra_writer::{Access, Config, Service, Timing, router};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match words.as_slice() {
        ["generate", rows, bytes, price, bad, bad_price, directory] => {
            let prices = [*price, *bad_price];
            generate(rows.parse()?, bytes.parse()?, prices, bad.parse()?, Path::new(directory))
        }
        ["insert" | "upsert", database, place] => {
            runtime.block_on(write(words[0], database, place))
        }
        ["serve", bytes] => runtime.block_on(serve(bytes.parse()?)),
        _ => Err(
            "generate ROWS BYTES PRICE BAD BAD-PRICE DIRECTORY | insert|upsert DATABASE FILE-OR-URL | serve BYTES"
                .into(),
        ),
    }
}

fn say(value: &Value) -> Result<()> {
    writeln!(std::io::stdout(), "{value}")?;
    Ok(())
}

/// An item of about so many bytes.
fn item(number: usize, bytes: usize, price: &str, pad: &str) -> String {
    let mut text = format!(
        "{{\"sku\":\"SKU-{number:09}\",\"name\":\"Product name number {number}\",\"price\":{price},\
         \"url\":\"https://example.com/p/{number}/some-slug\",\"scraped_at\":\"2025-01-01T00:00:00Z\",\
         \"attrs\":{{\"color\":\"red\",\"n\":{number},\"pad\":\""
    );
    let rest = bytes.saturating_sub(text.len() + 3);
    text.push_str(&pad[..rest.min(pad.len())]);
    text.push_str("\"}}");
    text
}

/// The items as JSON, and as text for COPY. Every `bad`th has the second of the prices.
fn generate(
    rows: usize,
    bytes: usize,
    [price, bad_price]: [&str; 2],
    bad: usize,
    directory: &Path,
) -> Result<()> {
    let pad: String = (0..bytes).map(|n| char::from(b'a' + (n * 7 % 26) as u8)).collect();
    let mut array = std::io::BufWriter::new(std::fs::File::create(directory.join("items.json"))?);
    let mut copy = std::io::BufWriter::new(std::fs::File::create(directory.join("items.copy"))?);
    for number in 0..rows {
        let is_bad = bad > 0 && number % bad == bad / 2;
        let text = item(number, bytes, if is_bad { bad_price } else { price }, &pad);
        array.write_all(if number == 0 { b"[" } else { b",\n" })?;
        array.write_all(text.as_bytes())?;
        let value: Value = serde_json::from_str(&text)?;
        let mut line = String::new();
        for name in ["sku", "name", "price", "url", "scraped_at", "attrs"] {
            let field = &value[name];
            let field = field.as_str().map_or_else(|| field.to_string(), str::to_owned);
            write!(line, "{}\t", field.replace('\\', "\\\\"))?;
        }
        line.pop();
        writeln!(copy, "{line}")?;
    }
    array.write_all(b"]")?;
    array.flush()?;
    copy.flush()?;
    say(&json!({ "rows": rows }))
}

async fn write(operation: &str, database: &str, place: &str) -> Result<()> {
    let target = Target::parse(database)?;
    let database = Database::open(&target, Schema::default(), Duration::from_secs(10)).await?;
    migrate(&database, lavra_writer::MIGRATIONS).await?;
    let is_url = place.starts_with("http:");
    let directories = Path::new(place).parent().map(PathBuf::from).into_iter().collect();
    let config = Config {
        access: Access { directories, private: vec!["127.0.0.1".parse()?], ..Access::default() },
        timing: Timing { poll: Duration::from_millis(100), ..Timing::default() },
        ..Config::default()
    };
    let service = Service::new(&database, config, None)?;
    let stop = CancellationToken::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let app = router(service.clone(), Some(&"bench".to_owned().into()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { service.run(stop).await }
    });
    let source = if is_url {
        json!({ "type": "url", "url": place })
    } else {
        json!({ "type": "file", "path": place })
    };
    let mut destination = json!({ "table": "items", "schema": "public", "operation": operation });
    if operation == "upsert" {
        destination["conflict_key"] = "sku".into();
    }
    let order = json!({ "config": destination, "source": source });
    let http =
        reqwest::Client::builder().tls_backend_preconfigured(lavra_db::tls()).no_proxy().build()?;
    let begun = Instant::now();
    let posted =
        http.post(format!("{base}/process")).header("x-api-key", "bench").body(order.to_string());
    let posted: Value = serde_json::from_str(&posted.send().await?.text().await?)?;
    let id = posted["job_id"].as_str().ok_or_else(|| posted.to_string())?.to_owned();
    let job = loop {
        let asked = http.get(format!("{base}/status/{id}")).header("x-api-key", "bench");
        let job: Value = serde_json::from_str(&asked.send().await?.text().await?)?;
        if job["status"] != "processing" {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let seconds = begun.elapsed().as_secs_f64();
    stop.cancel();
    running.await?;
    let rows = job["progress"]["processed"].as_f64().unwrap_or(0.0);
    say(&json!({
        "status": job["status"], "rows": rows, "seconds": seconds, "rows_per_s": rows / seconds,
        "failed": job["progress"]["failed_count"], "error": job["error_message"],
        "peak_mb": peak_mb(),
    }))
}

/// The most memory that this process had.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

/// One array of so many bytes to everybody who comes; ends with its stdin.
async fn serve(bytes: u64) -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address: SocketAddr = listener.local_addr()?;
    say(&json!({ "url": format!("http://{address}/items.json") }))?;
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _gone = body(socket, bytes).await;
            });
        }
    });
    let _ended =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()))
            .await?;
    Ok(())
}

async fn body(mut socket: tokio::net::TcpStream, bytes: u64) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    socket
        .write_all(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n[",
        )
        .await?;
    let pad: String = "x".repeat(1500);
    let (mut sent, mut number) = (0, 0_usize);
    let mut piece = String::new();
    while sent < bytes {
        piece.clear();
        while piece.len() < 256 << 10 {
            if number > 0 {
                piece.push(',');
            }
            // Few keys, so that the table stays small: the body is what is long.
            piece.push_str(&item(number % 20_000, 1500, "1.5", &pad));
            number += 1;
        }
        socket.write_all(piece.as_bytes()).await?;
        sent += piece.len() as u64;
    }
    socket.write_all(b"]").await?;
    socket.shutdown().await?;
    Ok(())
}
