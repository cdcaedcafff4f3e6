//! Reads the files of a conversation for its prompt. What was read is kept beside the file, so that
//! later turns do not read it again.

use std::sync::Arc;

use switchboard_backends::{
    StoreError,
    files::{FileStore, StoredFile},
};
use switchboard_schemas::{
    agent::Agent,
    conversation::Message,
    conversation_job::ReplyJob,
    file::{ATTACHMENTS_MAX, Attachment, FileSettings},
    ids::{ConversationId, FileId},
};
use tokio::time::{Instant, timeout_at};

use super::prompt_files::{FileContent, PromptFiles};
use crate::{
    files::{FileReader, FileReading},
    retry::{self, RetryDelays},
};

/// Most files of earlier messages whose content is in a prompt, the newest.
const EARLIER_FILES_MAX: usize = 10;
/// Most pictures in a prompt, the newest; one message has no more.
const IMAGES_MAX: usize = ATTACHMENTS_MAX;
const NOT_ACCEPTED: &str = "You do not take such files, so you cannot see what is in it; say so.";
const NOT_STORED: &str = "It is not stored any more.";
const UNREACHABLE: &str = "It cannot be read at the moment; say so.";
const NOT_REPEATED: &str =
    "It is not shown again, as it is an older one; ask for it if you need it.";
const BLIND: &str = "You cannot see pictures; say so.";

/// Reads files of conversations.
pub(super) struct AttachmentReader {
    pub(super) files: Arc<FileStore>,
    pub(super) reader: FileReader,
}

/// The conversation whose files are read, and who reads them.
pub(super) struct FileAudience<'a> {
    pub(super) job: &'a ReplyJob,
    pub(super) agent: &'a Agent,
    /// True if a model that may be called sees pictures.
    pub(super) sees_pictures: bool,
    /// True for an editor's test, whose files belong to no conversation.
    pub(super) is_playground: bool,
}

impl AttachmentReader {
    /// Reads the files of the new message and the latest ones of `past`, until `deadline`. A file
    /// that was not read has the reason in place of its content.
    pub(super) async fn read_files(
        &self,
        audience: &FileAudience<'_>,
        past: &[Message],
        deadline: Instant,
        delays: RetryDelays,
    ) -> PromptFiles {
        let read = |attachment| self.read_file(audience, attachment, deadline, delays);
        let mut files = PromptFiles::default();
        for attachment in &audience.job.turn.attachments {
            let content = read(attachment).await;
            files.new.push(content.of(attachment));
        }
        let images = files.new.iter().filter(|file| file.content.is_image());
        let mut images = images.count();
        let newest_first = past.iter().rev().flat_map(|message| {
            let attachments = message.attachments.iter();
            attachments.map(|attachment| (&message.id, attachment))
        });
        let newest_first: Vec<_> = newest_first.collect();
        for (count, (message, attachment)) in newest_first.into_iter().enumerate() {
            let is_cut = attachment.mime_type.is_image() && images >= IMAGES_MAX;
            let content = if is_cut || count >= EARLIER_FILES_MAX {
                FileContent::NotShown(NOT_REPEATED)
            } else {
                read(attachment).await
            };
            images += usize::from(content.is_image());
            let earlier = files.earlier.entry(message.clone()).or_default();
            earlier.push(content.of(attachment));
        }
        files
    }

    async fn read_file(
        &self,
        audience: &FileAudience<'_>,
        attachment: &Attachment,
        deadline: Instant,
        delays: RetryDelays,
    ) -> FileContent {
        let read = retry::retry_until(deadline, delays, "read a file", || {
            self.content_of(audience, attachment)
        });
        let content = timeout_at(deadline, read).await.ok().flatten();
        content.unwrap_or(FileContent::NotShown(UNREACHABLE))
    }

    async fn content_of(
        &self,
        audience: &FileAudience<'_>,
        attachment: &Attachment,
    ) -> Result<FileContent, StoreError> {
        let kind = attachment.mime_type;
        let accepted = audience.agent.settings.accepted_files();
        let is_accepted = |accepted: &FileSettings| {
            accepted.types.contains(&kind) && attachment.bytes <= u64::from(accepted.max_bytes)
        };
        if !accepted.is_some_and(is_accepted) {
            return Ok(FileContent::NotShown(NOT_ACCEPTED));
        }
        if kind.is_image() && !audience.sees_pictures {
            return Ok(FileContent::NotShown(BLIND));
        }
        match self.stored_content(audience, &attachment.file_id).await {
            Err(StoreError::Malformed(error)) => {
                tracing::error!(error, file.id = %attachment.file_id, "file is damaged");
                Ok(FileContent::NotShown(UNREACHABLE))
            }
            content => content,
        }
    }

    async fn stored_content(
        &self,
        audience: &FileAudience<'_>,
        id: &FileId,
    ) -> Result<FileContent, StoreError> {
        let turn = &audience.job.turn;
        let found = self.files.find(&turn.org_id, id).await?;
        let is_readable = |file: &StoredFile| audience.may_read(file, &turn.conversation_id);
        let Some(file) = found.filter(is_readable) else {
            return Ok(FileContent::NotShown(NOT_STORED));
        };
        match self.files.reading(&file).await {
            Ok(kept) => {
                if let Some(reading) = kept.as_deref().and_then(FileReading::from_frame) {
                    return Ok(FileContent::Read(reading));
                }
            }
            // It is read again.
            Err(StoreError::Malformed(_)) => {}
            Err(error) => return Err(error),
        }
        // The file is in memory only while it is read.
        let permit = self.reader.permit(&turn.org_id).await;
        let content = self.files.read(&file).await?;
        let kind = file.attachment.mime_type;
        let reading = match self.reader.read(&permit, kind, content.into()).await {
            Ok(reading) => reading,
            // Not kept: the next message may find a reader that works.
            Err(error) => {
                tracing::warn!(%error, %kind, "file reader failed");
                return Ok(FileContent::NotShown(UNREACHABLE));
            }
        };
        if let Err(error) = self.files.put_reading(&file, &reading.to_frame()).await {
            tracing::warn!(%error, "reading of a file not kept; it will be read again");
        }
        Ok(FileContent::Read(reading))
    }
}

impl FileAudience<'_> {
    fn may_read(&self, file: &StoredFile, conversation: &ConversationId) -> bool {
        if self.is_playground {
            file.header.is_playground
        } else {
            file.conversation.as_ref() == Some(conversation)
        }
    }
}
