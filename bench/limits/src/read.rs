//! Every page once, over as many connections as there may be requests in flight. Nothing is parsed but
//! what frames a page, and nothing is stored until the clock has stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bodies;

const LIST: &str = "/api/consulta/v1/contratacoes/publicacao?dataInicial=20240701\
                    &dataFinal=20240731&codigoModalidadeContratacao=6&tamanhoPagina=50";

/// Its number and its body.
type Page = (usize, Vec<u8>);

pub fn run(port: u16, pages: usize, in_flight: usize, path: &Path) -> Result<Value> {
    let next = AtomicUsize::new(1);
    let start = Instant::now();
    let read: Vec<Result<Vec<Page>>> = std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..in_flight).map(|_| scope.spawn(|| connection(port, pages, &next))).collect();
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap_or_else(|_| bail!("a reader panicked")))
            .collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut read = read.into_iter().collect::<Result<Vec<_>>>()?.concat();
    read.sort_unstable_by_key(|(page, _)| *page);
    let read: Vec<Vec<u8>> = read.into_iter().map(|(_, body)| body).collect();
    ensure!(read.len() == pages, "{} pages came instead of {pages}", read.len());
    bodies::save(path, &read)?;
    let bytes: usize = read.iter().map(Vec::len).sum();
    Ok(json!({ "pages": pages, "bytes": bytes, "pages_per_s": pages as f64 / seconds }))
}

fn connection(port: u16, pages: usize, next: &AtomicUsize) -> Result<Vec<Page>> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(256 << 10, &stream);
    let mut read = Vec::new();
    loop {
        let page = next.fetch_add(1, Ordering::Relaxed);
        if page > pages {
            return Ok(read);
        }
        let request = format!("GET {LIST}&pagina={page} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        (&stream).write_all(request.as_bytes())?;
        read.push((page, answer(&mut reader).with_context(|| format!("page {page}"))?));
    }
}

fn answer(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    ensure!(line.starts_with("HTTP/1.1 200"), "the world said {}", line.trim());
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line)?;
    }
    let mut body = Vec::with_capacity(128 << 10);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16)
            .with_context(|| format!("not the size of a chunk: {line}"))?;
        reader.by_ref().take(size as u64).read_to_end(&mut body)?;
        line.clear();
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}
