//! Files of messages, in a folder or in a store that speaks S3.
//!
//! A file is one object: its sealed header and content are written at once, so that no crash leaves
//! one without the other. An upload waits under `uploads/` until a message names it, and expires
//! after a day. The worker of the message moves it below its conversation; `owners/` says which one
//! that is, and decides between two that ask for the same file. Everything of a conversation or an
//! organization has one prefix, by which it is removed.

#[cfg(test)]
mod conformance;
mod content;
mod removal;
mod seal;
mod upload;
mod waiting;

use std::{
    fs, io,
    path::{Path as FolderPath, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, RetryConfig,
    aws::AmazonS3Builder, local::LocalFileSystem, memory::InMemory, path::Path,
    prefix::PrefixStore,
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use switchboard_schemas::{
    client_text::{SessionId, VisitorId},
    conversation::ConversationOwner,
    file::{Attachment, FileType},
    ids::{ConversationId, FileId, KeyId, OrgId},
    secret::InstallationSecret,
    time::Timestamp,
};
use tokio::sync::Semaphore;

pub use self::upload::FileUpload;
use self::{
    seal::{BlockLayout, BlockSeal, FileVault, PREFIX_BYTES},
    waiting::WaitingBytes,
};
use crate::{StoreError, config::FilesConfig};

/// Uploads that are written to the store at the same time, by one process; each is in memory then.
const FINISHING_MAX: usize = 4;
/// Time after its expiry for which an upload can still be attached: messages that name it wait in
/// queues.
const EXPIRY_GRACE: Duration = Duration::from_secs(3600);
/// Free bytes that uploads leave on the disk of their temporary files. In the embedded profile, the
/// database is there too.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Timeouts of one request to S3.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Retries of one request to S3, and the time after which none begins.
const RETRIES_MAX: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Files of all organizations.
pub struct FileStore {
    /// None in a cluster without a bucket: nothing is accepted, and nothing is found.
    objects: Option<Arc<dyn ObjectStore>>,
    vault: FileVault,
    spool_dir: PathBuf,
    free_bytes_min: u64,
    finishing: Semaphore,
    upload_lifetime: Duration,
    waiting: WaitingBytes,
    waiting_bytes_max: u64,
}

/// Facts about a file that are sealed with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileHeader {
    /// Name that the sender gave the file. Personal data.
    pub name: String,
    /// Type of the file.
    pub mime_type: FileType,
    /// Agent or team that the file was sent to.
    pub owner: ConversationOwner,
    /// API key of the upload.
    pub key_id: Option<KeyId>,
    /// Visitor whose token was used.
    pub visitor_id: Option<VisitorId>,
    /// Session that the file is meant for.
    pub session_id: Option<SessionId>,
    /// True for the upload of an editor, which only playground runs can use.
    #[serde(default)]
    pub is_playground: bool,
}

/// A stored file without its content.
#[derive(Clone)]
pub struct StoredFile {
    /// Organization that owns the file.
    pub org_id: OrgId,
    /// Id, name, type and size.
    pub attachment: Attachment,
    /// Sender and recipient of the upload.
    pub header: FileHeader,
    /// Conversation that the file belongs to; `None` until a message was stored with it.
    pub conversation: Option<ConversationId>,
    seal: Arc<BlockSeal>,
}

/// Result of attaching a file to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachOutcome {
    /// The file belongs to the conversation, now or since an earlier message.
    Attached,
    /// The file belongs to another conversation.
    OfOther,
    /// The file has expired or was removed.
    Missing,
}

impl FileStore {
    /// Opens the files of a folder, which this process alone uses.
    ///
    /// # Errors
    /// The folder cannot be created or read.
    pub fn open_folder(
        folder: &FolderPath,
        config: &FilesConfig,
        secret: &InstallationSecret,
    ) -> Result<Self, StoreError> {
        let open = || -> io::Result<LocalFileSystem> {
            fs::create_dir_all(folder)?;
            removal::remove_unfinished(folder)?;
            let objects = LocalFileSystem::new_with_prefix(folder)?;
            Ok(objects.with_automatic_cleanup(true).with_fsync(true))
        };
        let objects = open().map_err(|error| {
            StoreError::Unavailable(format!("folder of files {}: {error}", folder.display()))
        })?;
        let spool_dir = folder.to_owned();
        Ok(Self::new(
            Some(Arc::new(objects)),
            spool_dir,
            config,
            secret,
        ))
    }

    /// Opens the files of a bucket. Without one, no files are accepted.
    ///
    /// # Errors
    /// The settings are contradictory. The bucket is not asked for.
    pub fn open_bucket(
        config: &FilesConfig,
        namespace: &str,
        secret: &InstallationSecret,
    ) -> Result<Self, StoreError> {
        let spool_dir = std::env::temp_dir();
        if config.bucket.is_empty() {
            return Ok(Self::new(None, spool_dir, config, secret));
        }
        // The environment has the credentials where no settings name them, as in AWS.
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&config.bucket)
            .with_client_options(
                ClientOptions::new()
                    .with_timeout(REQUEST_TIMEOUT)
                    .with_connect_timeout(CONNECT_TIMEOUT)
                    .with_allow_http(config.endpoint.starts_with("http://")),
            )
            .with_retry(RetryConfig {
                max_retries: RETRIES_MAX,
                retry_timeout: RETRY_TIMEOUT,
                ..RetryConfig::default()
            });
        if !config.region.is_empty() {
            builder = builder.with_region(&config.region);
        }
        if !config.endpoint.is_empty() {
            builder = builder.with_endpoint(&config.endpoint);
        }
        if let Some(key) = &config.secret_access_key {
            builder = builder
                .with_access_key_id(&config.access_key_id)
                .with_secret_access_key(key.expose_secret());
        }
        let bucket = builder
            .build()
            .map_err(|error| StoreError::Refused(format!("settings of files: {error}")))?;
        let objects: Arc<dyn ObjectStore> = if namespace.is_empty() {
            Arc::new(bucket)
        } else {
            Arc::new(PrefixStore::new(bucket, namespace))
        };
        Ok(Self::new(Some(objects), spool_dir, config, secret))
    }

    /// Opens an empty store in memory, for tests.
    pub fn in_memory(secret: &InstallationSecret) -> Self {
        let config = FilesConfig::default();
        Self::new(
            Some(Arc::new(InMemory::new())),
            std::env::temp_dir(),
            &config,
            secret,
        )
    }

    fn new(
        objects: Option<Arc<dyn ObjectStore>>,
        spool_dir: PathBuf,
        config: &FilesConfig,
        secret: &InstallationSecret,
    ) -> Self {
        Self {
            objects,
            vault: FileVault::new(secret),
            spool_dir,
            free_bytes_min: FREE_BYTES_MIN,
            finishing: Semaphore::new(FINISHING_MAX),
            upload_lifetime: Duration::from_millis(config.upload_lifetime_ms),
            waiting: WaitingBytes::new(),
            waiting_bytes_max: config.waiting_bytes_max,
        }
    }

    /// Begins an upload.
    ///
    /// # Errors
    /// No files are stored in this installation, or the local disk is full.
    pub async fn begin_upload(&self, org: &OrgId) -> Result<FileUpload, StoreError> {
        self.objects()?;
        FileUpload::begin(self, org).await
    }

    /// Returns the time after which a file that no message names is gone.
    #[must_use]
    pub fn expires_at(&self, id: &FileId) -> Timestamp {
        id.created_at().after(self.upload_lifetime)
    }

    /// Finds a file of an organization. An expired upload is not found.
    ///
    /// # Errors
    /// The store cannot be reached, or its object is damaged.
    pub async fn find(&self, org: &OrgId, id: &FileId) -> Result<Option<StoredFile>, StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(None);
        };
        if let Some(file) = self.find_attached(objects, org, id).await? {
            return Ok(Some(file));
        }
        match self.open(objects, &upload_path(org, id), org, id).await? {
            Some(upload) => Ok(Some(upload).filter(|_| Timestamp::now() < self.expires_at(id))),
            // It may have been moved between the two reads.
            None => self.find_attached(objects, org, id).await,
        }
    }

    /// Decides that an upload belongs to a conversation. Returns false if it belongs to another
    /// one. Repeating it is safe.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn claim(
        &self,
        org: &OrgId,
        conversation: &ConversationId,
        id: &FileId,
    ) -> Result<bool, StoreError> {
        let claim = Bytes::copy_from_slice(conversation.as_str().as_bytes());
        let (owner, create) = (owner_path(org, id), PutMode::Create.into());
        match self.objects()?.put_opts(&owner, claim.into(), create).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => {
                Ok(self.owner_of(org, id).await?.as_ref() == Some(conversation))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Moves an upload to the conversation of the message that names it. Repeating it is safe.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn attach(
        &self,
        org: &OrgId,
        conversation: &ConversationId,
        id: &FileId,
    ) -> Result<AttachOutcome, StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(AttachOutcome::Missing);
        };
        if !self.claim(org, conversation, id).await? {
            return Ok(AttachOutcome::OfOther);
        }
        let (upload, content) = (upload_path(org, id), content_path(org, conversation, id));
        match objects.copy(&upload, &content).await {
            Ok(()) => {
                delete_if_any(objects, &upload).await?;
                Ok(AttachOutcome::Attached)
            }
            Err(object_store::Error::NotFound { .. }) => match objects.head(&content).await {
                Ok(_) => Ok(AttachOutcome::Attached),
                Err(object_store::Error::NotFound { .. }) => {
                    delete_if_any(objects, &owner_path(org, id)).await?;
                    Ok(AttachOutcome::Missing)
                }
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    async fn find_attached(
        &self,
        objects: &Arc<dyn ObjectStore>,
        org: &OrgId,
        id: &FileId,
    ) -> Result<Option<StoredFile>, StoreError> {
        let Some(conversation) = self.owner_of(org, id).await? else {
            return Ok(None);
        };
        let path = content_path(org, &conversation, id);
        let file = self.open(objects, &path, org, id).await?;
        Ok(file.map(|file| StoredFile {
            conversation: Some(conversation),
            ..file
        }))
    }

    pub(super) async fn put_upload(
        &self,
        org: &OrgId,
        id: &FileId,
        sealed: Bytes,
    ) -> Result<(), StoreError> {
        let (path, bytes) = (upload_path(org, id), sealed.len() as u64);
        self.objects()?.put(&path, sealed.into()).await?;
        self.waiting.add(org, bytes).await;
        Ok(())
    }

    fn objects(&self) -> Result<&Arc<dyn ObjectStore>, StoreError> {
        let missing = || StoreError::Unavailable("no bucket for files is configured".into());
        self.objects.as_ref().ok_or_else(missing)
    }

    async fn owner_of(
        &self,
        org: &OrgId,
        id: &FileId,
    ) -> Result<Option<ConversationId>, StoreError> {
        let found = match self.objects()?.get(&owner_path(org, id)).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let text = str::from_utf8(&found).unwrap_or_default();
        let malformed = |_| StoreError::Malformed("owner of a file".into());
        text.parse().map(Some).map_err(malformed)
    }

    async fn open(
        &self,
        objects: &Arc<dyn ObjectStore>,
        path: &Path,
        org: &OrgId,
        id: &FileId,
    ) -> Result<Option<StoredFile>, StoreError> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(0..PREFIX_BYTES as u64)),
            ..GetOptions::default()
        };
        let found = match objects.get_opts(path, options).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let layout = BlockLayout::of_object(found.meta.size);
        let prefix = found.bytes().await?;
        let opened = self.vault.open_header::<FileHeader>(org, id, &prefix);
        let (header, seal) = opened.map_err(|error| StoreError::Malformed(error.to_string()))?;
        Ok(Some(StoredFile {
            org_id: org.clone(),
            attachment: Attachment {
                file_id: id.clone(),
                name: header.name.clone(),
                mime_type: header.mime_type,
                bytes: layout.map_or(0, BlockLayout::content_bytes),
            },
            header,
            conversation: None,
            seal: seal.into(),
        }))
    }
}

impl StoredFile {
    /// Returns the object with the content.
    fn path(&self) -> Path {
        let (org, id) = (&self.org_id, &self.attachment.file_id);
        match &self.conversation {
            Some(conversation) => content_path(org, conversation, id),
            None => upload_path(org, id),
        }
    }
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        Self::Unavailable(format!("files: {error}"))
    }
}

fn upload_path(org: &OrgId, id: &FileId) -> Path {
    Path::from_iter(["uploads", org.as_str(), id.as_str()])
}

fn owner_path(org: &OrgId, id: &FileId) -> Path {
    Path::from_iter(["owners", org.as_str(), id.as_str()])
}

fn conversation_path(org: &OrgId, conversation: &ConversationId) -> Path {
    Path::from_iter(["conversations", org.as_str(), conversation.as_str()])
}

fn content_path(org: &OrgId, conversation: &ConversationId, id: &FileId) -> Path {
    conversation_path(org, conversation)
        .join(id.as_str())
        .join("content")
}

async fn delete_if_any(objects: &Arc<dyn ObjectStore>, path: &Path) -> Result<(), StoreError> {
    match objects.delete(path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
