//! Files of a conversation on their way into its prompt.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc};

use switchboard_backends::files::{FileHeader, FileStore};
use switchboard_schemas::{
    agent::Agent,
    conversation::{ConversationOwner, Message, MessageAuthor},
    conversation_job::ReplyJob,
    file::{Attachment, FileType},
    ids::MessageId,
    time::Timestamp,
};
use tokio::time::{Duration, Instant};

use super::{agents, finished, world::World};
use crate::{
    ReaderPlace,
    files::{FileReader, FileReading},
    inference::{
        attachments::{AttachmentReader, FileAudience},
        prompt_files::{FileContent, PromptFile},
        turn_deadlines::TurnDeadlines,
        turn_store::{ConversationTurnStore, TurnStore as _},
    },
    retry::RetryDelays,
    testing::says,
};

/// Reads pictures and tables at once, and never a text.
const READER: &str = r#"#!/bin/sh
PATH=/bin:/usr/bin
case "$3" in
  text/plain) exec sleep 100 ;;
  image/*) printf '{"kind":"image","format":"png","width":1,"height":1,"bytes":2}\nab' ;;
  *) printf '{"kind":"text","isCut":false,"pages":null,"bytes":2}\nab' ;;
esac
"#;

/// Returns an agent that takes files.
fn agent() -> Agent {
    let mut agent = agents::shop();
    agent.settings.features.enable_file_upload = true;
    agent.settings.files.types = FileType::ALL.to_vec();
    agent
}

/// Uploads a file, as a client of the agent does.
async fn upload(files: &FileStore, job: &ReplyJob, name: &str, kind: FileType) -> Attachment {
    let header = FileHeader {
        name: name.into(),
        mime_type: kind,
        owner: ConversationOwner::Agent(job.agent_id.clone()),
        key_id: None,
        visitor_id: None,
        session_id: None,
        is_playground: false,
    };
    let mut upload = files.begin_upload(&job.turn.org_id).await.unwrap();
    upload.write(b"ab").await.unwrap();
    let check = None::<fn(&[u8]) -> Result<(), ()>>;
    let file = upload.finish(files, header, check).await.unwrap().unwrap();
    file.attachment
}

/// Files of one conversation with their reader.
struct Shelf {
    job: ReplyJob,
    reader: AttachmentReader,
    _folder: tempfile::TempDir,
}

impl Shelf {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("reader");
        fs::write(&program, READER).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let world = World::new(vec![says("ok")], false).await;
        Self {
            job: world.job("read this"),
            reader: AttachmentReader {
                files: Arc::new(FileStore::in_memory(&agents::secret())),
                reader: FileReader::new(ReaderPlace::Child { program }),
            },
            _folder: folder,
        }
    }

    /// Stores a file of the conversation.
    async fn put(&self, name: &str, kind: FileType) -> Attachment {
        let (files, turn) = (&self.reader.files, &self.job.turn);
        let attachment = upload(files, &self.job, name, kind).await;
        let id = &attachment.file_id;
        let attached = files.attach(&turn.org_id, &turn.conversation_id, id).await;
        attached.unwrap();
        attachment
    }

    fn message(&self, position: u64, attachment: Attachment) -> Message {
        Message {
            id: MessageId::new_in(&self.job.turn.conversation_id),
            position,
            content: String::new(),
            attachments: vec![attachment],
            created_at: Timestamp::now(),
            author: MessageAuthor::User,
        }
    }

    /// Returns the files of the new message, and of the earlier ones from old to new.
    async fn read(&self, past: &[Message], time: Duration) -> (Vec<PromptFile>, Vec<PromptFile>) {
        let agent = agent();
        let audience = FileAudience {
            job: &self.job,
            agent: &agent,
            sees_pictures: true,
            is_playground: false,
        };
        let delays = RetryDelays::of_store(&crate::testing::quick());
        let end = Instant::now() + time;
        let mut files = self.reader.read_files(&audience, past, end, delays).await;
        let earlier = past.iter().map(|message| files.earlier.remove(&message.id));
        let earlier = earlier.flatten().flatten().collect();
        (files.new, earlier)
    }
}

fn is_read(file: &PromptFile) -> bool {
    matches!(file.content, FileContent::Read(_))
}

fn reason(file: &PromptFile) -> &'static str {
    match file.content {
        FileContent::NotShown(reason) => reason,
        FileContent::Read(_) => panic!("{} was read", file.attachment.name),
    }
}

#[tokio::test]
async fn file_that_takes_too_long_leaves_the_others_readable() {
    let mut shelf = Shelf::new().await;
    let slow = shelf.put("slow.txt", FileType::Text).await;
    let quick = shelf.put("quick.csv", FileType::Csv).await;
    shelf.job.turn.attachments = vec![quick.clone(), slow.clone()];
    let late = shelf.put("late.csv", FileType::Csv).await;
    let past = [shelf.message(0, late)];
    let (new, earlier) = shelf.read(&past, Duration::from_secs(3)).await;
    assert!(is_read(&new[0]));
    for file in [&new[1], &earlier[0]] {
        assert!(reason(file).contains("at the moment"), "{file:?}");
    }
    // What was read is kept; that a reader was slow is not.
    let (files, org) = (&shelf.reader.files, &shelf.job.turn.org_id);
    for (attachment, is_kept) in [(quick, true), (slow, false)] {
        let file = files.find(org, &attachment.file_id).await.unwrap().unwrap();
        let reading = files.reading(&file).await.unwrap();
        assert_eq!(reading.is_some(), is_kept, "{}", attachment.name);
    }
}

#[tokio::test]
async fn older_files_and_pictures_are_named_but_not_shown() {
    let shelf = Shelf::new().await;
    for (kind, shown) in [(FileType::Csv, 10), (FileType::Png, 5)] {
        let mut past = Vec::new();
        for position in 0..12 {
            let attachment = shelf.put("a", kind).await;
            past.push(shelf.message(position, attachment));
        }
        let (_, earlier) = shelf.read(&past, Duration::from_secs(30)).await;
        let (older, newer) = earlier.split_at(12 - shown);
        assert!(newer.iter().all(is_read), "{kind}");
        for file in older {
            assert!(reason(file).contains("not shown again"), "{kind}");
        }
    }
}

#[tokio::test]
async fn reading_of_a_file_that_was_removed_meanwhile_is_not_kept() {
    let shelf = Shelf::new().await;
    let attachment = shelf.put("a.csv", FileType::Csv).await;
    let (files, turn) = (&shelf.reader.files, &shelf.job.turn);
    let found = files.find(&turn.org_id, &attachment.file_id).await.unwrap();
    let file = found.unwrap();
    let removed = files.remove_conversation(&turn.org_id, &turn.conversation_id);
    removed.await.unwrap();
    let reading = FileReading::Text {
        text: "secret".into(),
        is_cut: false,
        pages: None,
    };
    files.put_reading(&file, &reading.to_frame()).await.unwrap();
    assert_eq!(files.reading(&file).await.unwrap(), None);
}

#[tokio::test]
async fn late_turn_of_a_deleted_conversation_leaves_no_file() {
    let world = World::new(vec![says("ok")], false).await;
    let mut job = world.job("see this");
    let files = &world.inference.attachments.files;
    let attachment = upload(files, &job, "a.csv", FileType::Csv).await;
    assert!(finished(&world.run(&job).await));
    assert!(finished(&world.run_deletion(&world.deletion(&job)).await));
    // A worker that lost its partition goes on behind the deletion.
    job.turn.attachments = vec![attachment.clone()];
    let deadlines = TurnDeadlines::from_now(&world.inference.config);
    let store = ConversationTurnStore::new(&world.inference, &job, 1, deadlines);
    assert!(store.attach_files().await);
    let (org, id) = (&job.turn.org_id, &attachment.file_id);
    assert!(files.find(org, id).await.unwrap().is_none());
}
