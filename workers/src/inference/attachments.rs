//! Reads the files of a conversation for its prompt. What was read is kept beside the file, so that
//! later turns do not read it again.

use std::{collections::HashMap, sync::Arc};

use switchboard_backends::{
    StoreError,
    files::{FileStore, StoredFile},
};
use switchboard_schemas::{
    agent::Agent, conversation::Message, conversation_job::ReplyJob, file::Attachment,
    ids::ConversationId,
};

use super::prompt_files::{FileContent, PromptFile, PromptFiles};
use crate::files::{FileReader, FileReading};

/// Most files of earlier messages in a prompt, the newest.
const EARLIER_FILES_MAX: usize = 10;
const NOT_ACCEPTED: &str = "You do not take such files, so you cannot see what is in it; say so.";
const NOT_STORED: &str = "It is not stored any more.";
const UNREACHABLE: &str = "It cannot be read at the moment; say so.";
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
    /// Returns the files of the new message as ones that cannot be read.
    pub(super) fn unreachable_files(job: &ReplyJob) -> PromptFiles {
        let unreachable = |attachment: &Attachment| PromptFile {
            attachment: attachment.clone(),
            content: FileContent::NotShown(UNREACHABLE),
        };
        PromptFiles {
            new: job.turn.attachments.iter().map(unreachable).collect(),
            ..PromptFiles::default()
        }
    }

    /// Reads the files of the new message and of the latest ones in `past`.
    ///
    /// # Errors
    /// The files cannot be reached.
    pub(super) async fn read_files(
        &self,
        audience: &FileAudience<'_>,
        past: &[Message],
    ) -> Result<PromptFiles, StoreError> {
        let mut files = PromptFiles::default();
        for attachment in &audience.job.turn.attachments {
            files.new.push(self.read_file(audience, attachment).await?);
        }
        let mut earlier: HashMap<_, Vec<_>> = HashMap::new();
        let newest_first = past.iter().rev();
        let named = newest_first.flat_map(|message| {
            let attachments = message.attachments.iter();
            attachments.map(|attachment| (&message.id, attachment))
        });
        let named: Vec<_> = named.take(EARLIER_FILES_MAX).collect();
        for (message, attachment) in named {
            let file = self.read_file(audience, attachment).await?;
            earlier.entry(message.clone()).or_default().push(file);
        }
        files.earlier = earlier;
        Ok(files)
    }

    async fn read_file(
        &self,
        audience: &FileAudience<'_>,
        attachment: &Attachment,
    ) -> Result<PromptFile, StoreError> {
        let content = match self.content_of(audience, attachment).await {
            Ok(content) => content,
            Err(StoreError::Malformed(error)) => {
                tracing::error!(error, file.id = %attachment.file_id, "file is damaged");
                FileContent::NotShown(UNREACHABLE)
            }
            Err(error) => return Err(error),
        };
        Ok(PromptFile {
            content,
            attachment: attachment.clone(),
        })
    }

    async fn content_of(
        &self,
        audience: &FileAudience<'_>,
        attachment: &Attachment,
    ) -> Result<FileContent, StoreError> {
        let kind = attachment.mime_type;
        let accepted = audience.agent.settings.accepted_files();
        if !accepted.is_some_and(|accepted| accepted.types.contains(&kind)) {
            return Ok(FileContent::NotShown(NOT_ACCEPTED));
        }
        if kind.is_image() && !audience.sees_pictures {
            return Ok(FileContent::NotShown(BLIND));
        }
        let turn = &audience.job.turn;
        let found = self.files.find(&turn.org_id, &attachment.file_id).await?;
        let is_readable = |file: &StoredFile| audience.may_read(file, &turn.conversation_id);
        let Some(file) = found.filter(is_readable) else {
            return Ok(FileContent::NotShown(NOT_STORED));
        };
        self.reading_of(&file).await.map(FileContent::Read)
    }

    async fn reading_of(&self, file: &StoredFile) -> Result<FileReading, StoreError> {
        match self.files.reading(file).await {
            Ok(kept) => {
                if let Some(reading) = kept.as_deref().and_then(FileReading::from_frame) {
                    return Ok(reading);
                }
            }
            // It is read again.
            Err(StoreError::Malformed(_)) => {}
            Err(error) => return Err(error),
        }
        let content = self.files.read(file).await?;
        let kind = file.attachment.mime_type;
        let reading = self.reader.read(kind, content.into()).await;
        if let Err(error) = self.files.put_reading(file, &reading.to_frame()).await {
            tracing::warn!(%error, "reading of a file not kept; it will be read again");
        }
        Ok(reading)
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
