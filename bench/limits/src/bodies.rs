//! The bodies of all pages in one file: the length of each, then the body.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};

pub fn save(path: &Path, bodies: &[Vec<u8>]) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for body in bodies {
        file.write_all(&(body.len() as u32).to_le_bytes())?;
        file.write_all(body)?;
    }
    Ok(file.flush()?)
}

pub fn load(path: &Path) -> Result<Vec<String>> {
    let mut file = BufReader::new(File::open(path)?);
    let (mut bodies, mut length) = (Vec::new(), [0; 4]);
    while file.read_exact(&mut length).is_ok() {
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        file.read_exact(&mut body).context("the file of the bodies breaks off")?;
        bodies.push(String::from_utf8(body).context("a body that is no text")?);
    }
    Ok(bodies)
}
