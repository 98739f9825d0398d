//! Where what tasks produce is kept: a directory, or an S3-compatible bucket. `task_results`
//! holds only the pointer, the type, the size and the hash.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::create::hex;
use crate::error::{Error, Result};

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

fn failed(operation: &'static str) -> impl Fn(object_store::Error) -> Error {
    move |source| Error::Artefact { operation, source }
}

impl Artefacts {
    /// `s3://bucket` (with the usual `AWS_*` variables, `AWS_ENDPOINT` for others than Amazon's)
    /// or a directory, which is made if it is missing.
    pub fn open(place: &str) -> Result<Self> {
        if let Some(bucket) = place.strip_prefix("s3://") {
            let store = AmazonS3Builder::from_env()
                .with_bucket_name(bucket.trim_end_matches('/'))
                .build()
                .map_err(failed("opened"))?;
            return Ok(Self { store: Arc::new(store), place: place.to_owned() });
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
