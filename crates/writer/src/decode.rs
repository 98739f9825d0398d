//! Bodies that are packed, and those that are packed to burst.

use std::io::{self, BufRead, BufReader, Read};

use crate::config::Limits;
use crate::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Zstd,
    Brotli,
}

/// Below this nothing is taken for a bomb, however far it expands.
const HARMLESS: u64 = 16 << 20;
/// A frame that wants a larger window than these 8 MB wants too much memory; RFC 9659 has none that do.
const WINDOW_LOG: u32 = 23;
const BUFFER: usize = 64 << 10;

impl Encoding {
    /// Of the header `Content-Encoding`.
    pub(crate) fn of_header(text: &str) -> Result<Option<Self>, Failure> {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "zstd" => Ok(Some(Self::Zstd)),
            "br" => Ok(Some(Self::Brotli)),
            _ => Err(Failure::storage(
                "the source is encoded in a way that is not known here: gzip, zstd and br are",
            )),
        }
    }

    /// Of a name's ending; brotli has no other mark.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        name.to_ascii_lowercase().ends_with(".br").then_some(Self::Brotli)
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1F, 0x8B, ..] => Some(Self::Gzip),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The text of a source: unpacked by what it says it is, or by its first bytes, and measured.
pub(crate) fn unpacked(
    bytes: impl Read + Send + 'static,
    encoding: Option<Encoding>,
    limits: &Limits,
) -> Result<Box<dyn Read + Send>, Failure> {
    let (limit, most) = (limits.bytes, limits.unpacked_bytes);
    let packed = Counted { bytes, count: 0, limit, is_over: false };
    let mut packed = BufReader::with_capacity(BUFFER, packed);
    let first = packed.fill_buf().map_err(failure)?;
    let encoding = encoding.or_else(|| Encoding::of_bytes(first));
    let expansion = limits.expansion;
    let measured = |bytes| Measured { bytes, count: 0, most, expansion };
    Ok(match encoding {
        None => Box::new(packed),
        Some(Encoding::Gzip) => {
            Box::new(measured(Unpacker::Gzip(flate2::bufread::MultiGzDecoder::new(packed))))
        }
        Some(Encoding::Zstd) => {
            let mut decoder = zstd::Decoder::with_buffer(packed).map_err(failure)?;
            decoder.window_log_max(WINDOW_LOG).map_err(failure)?;
            Box::new(measured(Unpacker::Zstd(decoder)))
        }
        Some(Encoding::Brotli) => {
            let decoder = brotli_decompressor::Decompressor::new(packed, BUFFER);
            Box::new(measured(Unpacker::Brotli(Box::new(decoder))))
        }
    })
}

/// Counts what it is read from.
struct Counted<R> {
    bytes: R,
    count: u64,
    limit: u64,
    is_over: bool,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read(buffer)?;
        self.count += length as u64;
        self.is_over = length == 0;
        if self.count > self.limit {
            let text = format!("the source is longer than {} bytes", self.limit);
            return Err(io::Error::other(Failure::storage(text)));
        }
        Ok(length)
    }
}

type Packed<R> = BufReader<Counted<R>>;

enum Unpacker<R: Read> {
    Gzip(flate2::bufread::MultiGzDecoder<Packed<R>>),
    Zstd(zstd::Decoder<'static, Packed<R>>),
    Brotli(Box<brotli_decompressor::Decompressor<Packed<R>>>),
}

impl<R: Read> Unpacker<R> {
    fn packed(&self) -> &Counted<R> {
        match self {
            Self::Gzip(decoder) => decoder.get_ref().get_ref(),
            Self::Zstd(decoder) => decoder.get_ref().get_ref(),
            Self::Brotli(decoder) => decoder.get_ref().get_ref(),
        }
    }

    /// What an error of unpacking means.
    fn broken(&self, error: io::Error) -> io::Error {
        if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Failure>) {
            return error;
        }
        // Brotli does not say that it needed more.
        let is_early = error.kind() == io::ErrorKind::UnexpectedEof
            || (matches!(self, Self::Brotli(_)) && self.packed().is_over);
        if is_early {
            // Perhaps only this time, as with a body that is not packed.
            return io::Error::other(Failure::storage("the source ends early").passing());
        }
        let why = match self {
            Self::Zstd(_) if error.to_string().contains("too much memory") => {
                "it needs more than a window of 8 MB (zstd --long)".into()
            }
            Self::Gzip(_) | Self::Zstd(_) | Self::Brotli(_) => error.to_string(),
        };
        io::Error::other(Failure::storage(format!("the source cannot be unpacked: {why}")))
    }
}

/// Unpacks, and stops at what becomes too long or expands too far.
struct Measured<R: Read> {
    bytes: Unpacker<R>,
    count: u64,
    most: u64,
    expansion: u64,
}

impl<R: Read> Read for Measured<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = match &mut self.bytes {
            Unpacker::Gzip(decoder) => decoder.read(buffer),
            Unpacker::Zstd(decoder) => decoder.read(buffer),
            Unpacker::Brotli(decoder) => decoder.read(buffer),
        };
        let length = length.map_err(|error| self.bytes.broken(error))?;
        self.count += length as u64;
        if self.count > self.most {
            let text = format!("the source is longer than {} bytes when unpacked", self.most);
            return Err(io::Error::other(Failure::storage(text)));
        }
        if self.count > HARMLESS && self.count / self.bytes.packed().count.max(1) > self.expansion {
            let text = format!(
                "the source becomes more than {} times as long when unpacked: a bomb",
                self.expansion
            );
            return Err(io::Error::other(Failure::storage(text)));
        }
        Ok(length)
    }
}

/// What an error of reading means for a job.
pub(crate) fn failure(error: io::Error) -> Failure {
    match error.downcast::<Failure>() {
        Ok(failure) => failure,
        Err(error) => Failure::storage(format!("the source cannot be read: {error}")).passing(),
    }
}
