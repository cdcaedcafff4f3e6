//! Removal of files: with a conversation, a visitor or an organization, and of uploads that no
//! message came to name. Each removal can be repeated after a crash.

use std::{collections::BTreeSet, fs, io, path::Path as FolderPath, sync::Arc};

use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, path::Path};
use switchboard_schemas::{
    client_text::VisitorId,
    ids::{ConversationId, FileId, OrgId},
    time::Timestamp,
};

use super::{
    EXPIRY_GRACE, FileStore, content_path, conversation_path, delete_if_any, owner_path,
    upload_path,
};
use crate::StoreError;

/// Headers of uploads that are read at the same time.
const HEADERS_AT_ONCE: usize = 16;
/// Part of the names under which the library writes files before it renames them.
const UNFINISHED_MARK: char = '#';

impl FileStore {
    /// Removes the files of a conversation.
    ///
    /// # Errors
    /// The store cannot be reached; repeating the call removes the rest.
    pub async fn remove_conversation(
        &self,
        org: &OrgId,
        conversation: &ConversationId,
    ) -> Result<(), StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        let folder = conversation_path(org, conversation);
        let found: Vec<_> = objects.list(Some(&folder)).try_collect().await?;
        // The contents last: they are how a repeated call finds the rest.
        let files = found.iter().filter_map(|object| file_in(&folder, object));
        let files: BTreeSet<_> = files.collect();
        for id in files {
            delete_if_any(objects, &upload_path(org, &id)).await?;
            delete_if_any(objects, &owner_path(org, &id)).await?;
        }
        for object in found {
            delete_if_any(objects, &object.location).await?;
        }
        Ok(())
    }

    /// Removes a file that a message brought to a conversation which was deleted meanwhile.
    ///
    /// # Errors
    /// The store cannot be reached; repeating the call removes the rest.
    pub async fn remove_file(
        &self,
        org: &OrgId,
        conversation: &ConversationId,
        id: &FileId,
    ) -> Result<(), StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        if self.owner_of(org, id).await?.as_ref() != Some(conversation) {
            return Ok(());
        }
        delete_if_any(objects, &upload_path(org, id)).await?;
        let folder = conversation_path(org, conversation).join(id.as_str());
        let found: Vec<_> = objects.list(Some(&folder)).try_collect().await?;
        for object in found {
            delete_if_any(objects, &object.location).await?;
        }
        delete_if_any(objects, &owner_path(org, id)).await
    }

    /// Removes the uploads of a visitor that no message names; the others go with their
    /// conversations.
    ///
    /// # Errors
    /// The store cannot be reached; repeating the call removes the rest.
    pub async fn remove_visitor(&self, org: &OrgId, visitor: &VisitorId) -> Result<(), StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        let folder = Path::from_iter(["uploads", org.as_str()]);
        let uploads = objects.list(Some(&folder)).map_err(StoreError::from);
        uploads
            .try_filter_map(async |object| Ok(file_in(&folder, &object)))
            .try_for_each_concurrent(HEADERS_AT_ONCE, async |id| {
                let path = upload_path(org, &id);
                let file = match self.open(objects, &path, org, &id).await {
                    Ok(file) => file,
                    // Nobody can read it, and the sweep will remove it.
                    Err(StoreError::Malformed(_)) => return Ok(()),
                    Err(error) => return Err(error),
                };
                if file.is_some_and(|file| file.header.visitor_id.as_ref() == Some(visitor)) {
                    delete_if_any(objects, &path).await?;
                }
                Ok(())
            })
            .await
    }

    /// Removes all files of an organization.
    ///
    /// # Errors
    /// The store cannot be reached; repeating the call removes the rest.
    pub async fn remove_organization(&self, org: &OrgId) -> Result<(), StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        for kind in ["uploads", "owners", "conversations"] {
            let folder = Path::from_iter([kind, org.as_str()]);
            let paths = objects.list(Some(&folder)).map_ok(|object| object.location);
            let mut removed = objects.delete_stream(paths.boxed());
            while let Some(outcome) = removed.next().await {
                match outcome {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Removes expired uploads and returns their number.
    ///
    /// # Errors
    /// The store cannot be reached; the next call goes on.
    pub async fn sweep(&self, now: Timestamp) -> Result<u64, StoreError> {
        let Some(objects) = &self.objects else {
            return Ok(0);
        };
        let mut swept = 0;
        let mut uploads = objects.list(Some(&Path::from("uploads")));
        while let Some(upload) = uploads.next().await {
            let upload = upload?.location;
            let mut names = upload.parts().skip(1);
            let (org, id) = (names.next(), names.next());
            let org = org.and_then(|org| org.as_ref().parse::<OrgId>().ok());
            let id = id.and_then(|id| id.as_ref().parse::<FileId>().ok());
            let (Some(org), Some(id)) = (org, id) else {
                continue;
            };
            if self.expires_at(&id).after(EXPIRY_GRACE) < now {
                self.sweep_upload(objects, &org, &id).await?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Removes an upload, and its owner if it was not moved there before a crash.
    async fn sweep_upload(
        &self,
        objects: &Arc<dyn ObjectStore>,
        org: &OrgId,
        id: &FileId,
    ) -> Result<(), StoreError> {
        if let Some(conversation) = self.owner_of(org, id).await? {
            match objects.head(&content_path(org, &conversation, id)).await {
                Ok(_) => {}
                Err(object_store::Error::NotFound { .. }) => {
                    delete_if_any(objects, &owner_path(org, id)).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        delete_if_any(objects, &upload_path(org, id)).await
    }
}

/// Returns the file to which an object below `folder` belongs.
fn file_in(folder: &Path, object: &ObjectMeta) -> Option<FileId> {
    let name = object.location.prefix_match(folder)?.next()?;
    name.as_ref().parse().ok()
}

/// Removes what writes that a crash interrupted have left in a folder.
pub(super) fn remove_unfinished(folder: &FolderPath) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_unfinished(&entry.path())?;
        } else if entry
            .file_name()
            .to_string_lossy()
            .contains(UNFINISHED_MARK)
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
