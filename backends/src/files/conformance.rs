//! Conformance tests of [`super::FileStore`], run on a folder and on a store that speaks S3.

use std::{convert::Infallible, ops::Range};

use futures::{TryStreamExt, future::join};
use switchboard_schemas::ids::AgentId;

use super::{seal::BLOCK_BYTES, *};

/// A store under test, with an organization of its own.
struct Subject {
    files: FileStore,
    org: OrgId,
    folder: Option<tempfile::TempDir>,
}

fn secret() -> InstallationSecret {
    InstallationSecret::from_bytes([7; 32])
}

fn folder_subject() -> Subject {
    let folder = tempfile::tempdir().unwrap();
    Subject {
        files: FileStore::open_folder(folder.path(), &FilesConfig::default(), &secret()).unwrap(),
        org: org("folder"),
        folder: Some(folder),
    }
}

#[cfg(feature = "real-services")]
fn bucket_subject() -> Subject {
    let setting = |name: &str| {
        let name = format!("SWITCHBOARD__FILES__{name}");
        std::env::var(&name).unwrap_or_else(|_| panic!("{name} is not set"))
    };
    let _ = rustls_provider();
    let config = FilesConfig {
        bucket: setting("BUCKET"),
        endpoint: setting("ENDPOINT"),
        region: setting("REGION"),
        access_key_id: setting("ACCESS_KEY_ID"),
        secret_access_key: Some(setting("SECRET_ACCESS_KEY").into()),
        ..FilesConfig::default()
    };
    let run = FileId::now().to_string();
    Subject {
        files: FileStore::open_bucket(&config, &run, &secret()).unwrap(),
        org: org(&run),
        folder: None,
    }
}

/// Installs the cryptography of TLS, as the program does at its start.
#[cfg(feature = "real-services")]
fn rustls_provider() -> Result<(), impl Sized> {
    rustls::crypto::ring::default_provider().install_default()
}

macro_rules! file_tests {
    ($($test:ident,)*) => {
        mod folder {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(super::folder_subject()).await;
                }
            )*
        }

        #[cfg(feature = "real-services")]
        mod real_bucket {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(super::bucket_subject()).await;
                }
            )*
        }
    };
}

file_tests! {
    upload_is_read_whole_and_by_range,
    rejected_or_abandoned_upload_leaves_nothing,
    attached_file_moves_to_its_conversation_and_stays,
    file_is_attached_to_one_of_two_conversations,
    interrupted_attach_is_completed_or_swept,
    reading_is_kept_beside_the_file,
    removed_conversation_takes_its_files_along,
    removed_visitor_takes_waiting_uploads_along,
    removed_organization_leaves_nothing,
    expired_upload_is_swept,
    waiting_uploads_are_limited_per_organization,
    stored_bytes_do_not_show_the_content,
}

fn org(slug: &str) -> OrgId {
    OrgId::derive(&secret(), slug)
}

fn agent() -> AgentId {
    AgentId::derive(&secret(), &org("folder"), "agent")
}

fn conversation(session: &str) -> ConversationId {
    ConversationId::of_agent(&org("folder"), &agent(), &session.parse().unwrap())
}

fn header(name: &str, visitor: Option<&str>) -> FileHeader {
    FileHeader {
        name: name.into(),
        mime_type: FileType::Text,
        owner: ConversationOwner::Agent(agent()),
        key_id: None,
        visitor_id: visitor.map(|id| id.parse().unwrap()),
        session_id: None,
        is_playground: false,
    }
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|n| b"switchboard"[n % 11] ^ (n / 997) as u8)
        .collect()
}

impl Subject {
    async fn upload(&self, visitor: Option<&str>, content: &[u8]) -> FileId {
        let mut upload = self.files.begin_upload(&self.org).await.unwrap();
        for part in content.chunks(10_007) {
            upload.write(part).await.unwrap();
        }
        let expected = content.to_vec();
        let check = move |seen: &[u8]| {
            assert!(seen == expected);
            Ok::<_, Infallible>(())
        };
        let header = header("notes.txt", visitor);
        let Ok(file) = upload
            .finish(&self.files, header, Some(check))
            .await
            .unwrap();
        file.attachment.file_id
    }

    async fn find(&self, id: &FileId) -> Option<StoredFile> {
        self.files.find(&self.org, id).await.unwrap()
    }

    async fn attach(&self, session: &str, id: &FileId) -> AttachOutcome {
        let conversation = conversation(session);
        let outcome = self.files.attach(&self.org, &conversation, id).await;
        outcome.unwrap()
    }

    async fn objects(&self) -> Vec<String> {
        let found: Vec<_> = self
            .files
            .objects()
            .unwrap()
            .list(None)
            .try_collect()
            .await
            .unwrap();
        found
            .into_iter()
            .map(|object| object.location.to_string())
            .collect()
    }
}

async fn upload_is_read_whole_and_by_range(subject: Subject) {
    for bytes in [1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 5] {
        let content = content(bytes);
        let id = subject.upload(None, &content).await;
        let file = subject.find(&id).await.unwrap();
        assert_eq!(
            (file.attachment.name.as_str(), file.attachment.bytes),
            ("notes.txt", bytes as u64)
        );
        assert!(subject.files.read(&file).await.unwrap() == content);
        let end = bytes as u64;
        let ranges: [Range<u64>; 4] = [0..end, 0..1, end - 1..end, end / 3..end];
        for range in ranges {
            let read = subject
                .files
                .read_range(&file, range.clone())
                .await
                .unwrap();
            let parts: Vec<_> = read.try_collect().await.unwrap();
            let expected = &content[range.start as usize..range.end as usize];
            assert!(parts.concat() == expected, "{range:?} of {bytes}");
        }
    }
    assert!(
        subject
            .files
            .find(&org("other"), &FileId::now())
            .await
            .unwrap()
            .is_none()
    );
}

async fn rejected_or_abandoned_upload_leaves_nothing(subject: Subject) {
    let files = &subject.files;
    let mut rejected = files.begin_upload(&subject.org).await.unwrap();
    rejected.write(b"text").await.unwrap();
    let check = Some(|_: &[u8]| Err("no"));
    let outcome = rejected
        .finish(files, header("notes.txt", None), check)
        .await;
    assert_eq!(outcome.unwrap().err(), Some("no"));
    let mut abandoned = files.begin_upload(&subject.org).await.unwrap();
    abandoned.write(&content(2 * BLOCK_BYTES)).await.unwrap();
    drop(abandoned);
    assert_eq!(subject.objects().await, [""; 0]);
    if let Some(folder) = &subject.folder {
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

async fn attached_file_moves_to_its_conversation_and_stays(subject: Subject) {
    let id = subject.upload(None, b"text").await;
    for _ in 0..2 {
        assert_eq!(subject.attach("s", &id).await, AttachOutcome::Attached);
        let file = subject.find(&id).await.unwrap();
        assert_eq!(file.conversation, Some(conversation("s")));
        assert_eq!(subject.files.read(&file).await.unwrap(), b"text");
    }
    let later = Timestamp::now().after(Duration::from_hours(48));
    assert_eq!(subject.files.sweep(later).await.unwrap(), 0);
    assert!(subject.find(&id).await.is_some());
    assert_eq!(
        subject.attach("s", &FileId::now()).await,
        AttachOutcome::Missing
    );
    assert_eq!(subject.objects().await.len(), 2, "content and owner");
}

async fn file_is_attached_to_one_of_two_conversations(subject: Subject) {
    for _ in 0..10 {
        let id = subject.upload(None, b"text").await;
        let outcomes = join(subject.attach("a", &id), subject.attach("b", &id)).await;
        let expected = [AttachOutcome::Attached, AttachOutcome::OfOther];
        assert!(outcomes == expected.into() || outcomes == (expected[1], expected[0]));
    }
}

async fn interrupted_attach_is_completed_or_swept(subject: Subject) {
    let objects = subject.files.objects().unwrap();
    let claim = conversation("s").as_str().to_owned();
    let (lost, kept) = (
        subject.upload(None, b"lost").await,
        subject.upload(None, b"kept").await,
    );
    for id in [&lost, &kept] {
        let owner = owner_path(&subject.org, id);
        objects.put(&owner, claim.clone().into()).await.unwrap();
        assert!(subject.find(id).await.is_some(), "still an upload");
    }
    // The second one was copied before the crash.
    let content = content_path(&subject.org, &conversation("s"), &kept);
    objects
        .copy(&upload_path(&subject.org, &kept), &content)
        .await
        .unwrap();
    let later = Timestamp::now().after(Duration::from_hours(26));
    assert_eq!(subject.files.sweep(later).await.unwrap(), 2);
    assert!(subject.find(&lost).await.is_none());
    assert_eq!(subject.attach("s", &kept).await, AttachOutcome::Attached);
    assert_eq!(subject.objects().await.len(), 2);
}

async fn reading_is_kept_beside_the_file(subject: Subject) {
    let id = subject.upload(None, b"text").await;
    subject.attach("s", &id).await;
    let file = subject.find(&id).await.unwrap();
    assert_eq!(subject.files.reading(&file).await.unwrap(), None);
    for reading in [content(2 * BLOCK_BYTES), b"short".to_vec()] {
        subject.files.put_reading(&file, &reading).await.unwrap();
        assert!(subject.files.reading(&file).await.unwrap().unwrap() == reading);
    }
}

async fn removed_conversation_takes_its_files_along(subject: Subject) {
    let (gone, kept) = (
        subject.upload(None, b"gone").await,
        subject.upload(None, b"kept").await,
    );
    subject.attach("gone", &gone).await;
    subject.attach("kept", &kept).await;
    let file = subject.find(&gone).await.unwrap();
    subject.files.put_reading(&file, b"reading").await.unwrap();
    for _ in 0..2 {
        let conversation = conversation("gone");
        let removed = subject
            .files
            .remove_conversation(&subject.org, &conversation);
        removed.await.unwrap();
        assert!(subject.find(&gone).await.is_none());
        assert!(subject.files.read(&file).await.is_err());
    }
    assert!(subject.find(&kept).await.is_some());
    assert_eq!(subject.objects().await.len(), 2);
}

async fn removed_visitor_takes_waiting_uploads_along(subject: Subject) {
    let own = subject.upload(Some("vis-1"), b"own").await;
    let other = subject.upload(Some("vis-2"), b"other").await;
    let visitor = "vis-1".parse().unwrap();
    subject
        .files
        .remove_visitor(&subject.org, &visitor)
        .await
        .unwrap();
    assert!(subject.find(&own).await.is_none());
    assert!(subject.find(&other).await.is_some());
}

async fn removed_organization_leaves_nothing(subject: Subject) {
    subject.upload(None, b"waiting").await;
    let attached = subject.upload(None, b"attached").await;
    subject.attach("s", &attached).await;
    let (files, org) = (&subject.files, &subject.org);
    for _ in 0..2 {
        files.remove_organization(org).await.unwrap();
    }
    assert_eq!(subject.objects().await, [""; 0]);
}

async fn expired_upload_is_swept(subject: Subject) {
    let id = subject.upload(None, b"text").await;
    let (soon, later) = (
        Timestamp::now().after(Duration::from_hours(24)),
        Timestamp::now().after(Duration::from_hours(26)),
    );
    assert_eq!(subject.files.sweep(soon).await.unwrap(), 0);
    assert_eq!(subject.files.sweep(later).await.unwrap(), 1);
    assert!(subject.find(&id).await.is_none());
    assert_eq!(subject.objects().await, [""; 0]);
}

async fn waiting_uploads_are_limited_per_organization(mut subject: Subject) {
    subject.upload(None, b"before the first sum").await;
    subject.files.waiting_bytes_max = 100_000;
    assert!(subject.files.has_room(&subject.org).await.unwrap());
    let id = subject.upload(None, &content(100_000)).await;
    assert!(!subject.files.has_room(&subject.org).await.unwrap());
    assert!(subject.files.has_room(&org("another")).await.unwrap());
    // A sum is used for a while, and then listed again.
    subject.attach("s", &id).await;
    assert!(!subject.files.has_room(&subject.org).await.unwrap());
    subject.files.waiting = WaitingBytes::new();
    assert!(subject.files.has_room(&subject.org).await.unwrap());
    subject.upload(None, &content(100_000)).await;
    subject.files.waiting = WaitingBytes::new();
    assert!(!subject.files.has_room(&subject.org).await.unwrap());
}

async fn stored_bytes_do_not_show_the_content(subject: Subject) {
    let secret = b"a secret of a visitor".repeat(100);
    let id = subject.upload(None, &secret).await;
    let path = upload_path(&subject.org, &id);
    let object = subject.files.objects().unwrap().get(&path).await.unwrap();
    let bytes = object.bytes().await.unwrap();
    for word in [&b"secret"[..], b"notes.txt"] {
        assert!(!bytes.windows(word.len()).any(|part| part == word));
    }
}

#[tokio::test]
async fn upload_leaves_space_on_the_disk() {
    let mut subject = folder_subject();
    subject.files.free_bytes_min = u64::MAX;
    let mut upload = subject.files.begin_upload(&subject.org).await.unwrap();
    let refused = upload.write(&[b'x'; BLOCK_BYTES + 1]).await.unwrap_err();
    assert!(refused.to_string().contains("bytes free"), "{refused}");
    let small = subject.files.begin_upload(&subject.org).await.unwrap();
    let check = Some(|_: &[u8]| Ok::<_, Infallible>(()));
    let refused = small.finish(&subject.files, header("a", None), check).await;
    assert!(refused.is_err());
    assert_eq!(subject.objects().await, [""; 0]);
}

#[tokio::test]
async fn unfinished_write_is_removed_at_the_next_start() {
    let subject = folder_subject();
    let id = subject.upload(None, b"text").await;
    let folder = subject.folder.as_ref().unwrap().path();
    let unfinished = folder.join(format!("uploads/{}/{id}#1", subject.org));
    fs::write(&unfinished, "half").unwrap();
    let again = FileStore::open_folder(folder, &FilesConfig::default(), &secret()).unwrap();
    assert!(!unfinished.exists());
    assert!(again.find(&subject.org, &id).await.unwrap().is_some());
}
