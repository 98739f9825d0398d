//! Where what tasks produce is kept: a directory, or an S3-compatible bucket. `task_results`
//! holds only the pointer, the type, the size and the hash.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lavra_db::hex;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use crate::error::{Error, Result};

/// A part of a file; the smallest that S3 takes is 5 MB.
const PART: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 2;

#[derive(Clone, Debug)]
pub struct Artefacts {
    store: Arc<dyn ObjectStore>,
    /// How a person names the place: the directory, or `s3://bucket`.
    place: String,
}

/// The pointer that a result holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    pub location: String,
    pub key: String,
    pub content_type: String,
    pub size: u64,
    pub sha256: String,
}

/// Where a machine of a cloud asks for its role, which is asked where nothing else gives credentials.
const ROLES: &str = "169.254.";

fn failed(operation: &'static str) -> impl Fn(object_store::Error) -> Error {
    move |source| {
        if format!("{source:?}").contains(ROLES) {
            let text = "there are no credentials for the bucket: set AWS_ACCESS_KEY_ID and \
                        AWS_SECRET_ACCESS_KEY (and AWS_ENDPOINT for others than Amazon's)";
            return Error::Invalid(text.into());
        }
        Error::Artefact { operation, source }
    }
}

impl Artefacts {
    /// `s3://bucket` or `s3://bucket/below` (with the usual `AWS_*` variables, `AWS_ENDPOINT` for
    /// others than Amazon's) or a directory, which is made if it is missing.
    pub fn open(place: &str) -> Result<Self> {
        if let Some(rest) = place.strip_prefix("s3://") {
            let (bucket, below) = rest.split_once('/').unwrap_or((rest, ""));
            let below = Key::parse(below).map_err(|error| Error::Invalid(error.to_string()))?;
            let store = AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .build()
                .map_err(failed("opened"))?;
            let store: Arc<dyn ObjectStore> = if below.is_root() {
                Arc::new(store)
            } else {
                Arc::new(PrefixStore::new(store, below))
            };
            return Ok(Self { store, place: place.trim_end_matches('/').to_owned() });
        }
        std::fs::create_dir_all(place)
            .map_err(|error| Error::Invalid(format!("{place} cannot be made: {error}")))?;
        let root = Path::new(place)
            .canonicalize()
            .map_err(|error| Error::Invalid(format!("{place} cannot be used: {error}")))?;
        let store = LocalFileSystem::new_with_prefix(&root).map_err(failed("opened"))?;
        Ok(Self { store: Arc::new(store), place: root.to_string_lossy().into_owned() })
    }

    /// Stores bytes under `key`, replacing what an earlier attempt left there.
    pub async fn put(&self, key: &str, content_type: &str, bytes: Bytes) -> Result<Pointer> {
        let pointer = Pointer {
            location: self.place.clone(),
            key: key.to_owned(),
            content_type: content_type.to_owned(),
            size: bytes.len() as u64,
            sha256: hex(&Sha256::digest(&bytes)),
        };
        let path = Key::parse(key).map_err(|error| Error::Invalid(error.to_string()))?;
        self.store.put(&path, PutPayload::from(bytes)).await.map_err(failed("stored"))?;
        Ok(pointer)
    }

    /// Stores a file, a part at a time, replacing what an earlier attempt left there.
    pub async fn put_file(&self, key: &str, content_type: &str, file: &Path) -> Result<Pointer> {
        let invalid = |error: std::io::Error| {
            Error::Invalid(format!("{} cannot be read: {error}", file.display()))
        };
        let path = Key::parse(key).map_err(|error| Error::Invalid(error.to_string()))?;
        let mut from = tokio::fs::File::open(file).await.map_err(invalid)?;
        let upload = self.store.put_multipart(&path).await.map_err(failed("stored"))?;
        let mut to = WriteMultipart::new_with_chunk_size(upload, PART);
        let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, BytesMut::new());
        loop {
            buffer.reserve(PART);
            let read = from.read_buf(&mut buffer).await.map_err(invalid)?;
            if read == 0 {
                break;
            }
            let part = buffer.split().freeze();
            hash.update(&part);
            size += part.len() as u64;
            to.wait_for_capacity(PARTS_AT_ONCE).await.map_err(failed("stored"))?;
            to.put(part);
        }
        to.finish().await.map_err(failed("stored"))?;
        Ok(Pointer {
            location: self.place.clone(),
            key: key.to_owned(),
            content_type: content_type.to_owned(),
            size,
            sha256: hex(&hash.finalize()),
        })
    }

    pub async fn get(&self, key: &str) -> Result<Bytes> {
        let path = Key::parse(key).map_err(|error| Error::Invalid(error.to_string()))?;
        let found = self.store.get(&path).await.map_err(failed("read"))?;
        found.bytes().await.map_err(failed("read"))
    }

    /// Removes an artefact of this place; one that is gone already is no error.
    pub async fn remove(&self, key: &str) -> Result<()> {
        let path = Key::parse(key).map_err(|error| Error::Invalid(error.to_string()))?;
        match self.store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(Error::Artefact { operation: "removed", source }),
        }
    }

    pub fn place(&self) -> &str {
        &self.place
    }
}
