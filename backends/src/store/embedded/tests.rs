//! Tests of the file of the embedded store: durability and migrations.

use super::{
    super::conformance::{Talk, replied},
    rows::PUT_ORIGIN,
    *,
};

async fn write_a_turn(path: &Path, talk: &Talk) -> EmbeddedStore {
    let store = EmbeddedStore::open(path).unwrap();
    let turn = talk.turn(0, "question");
    store.begin_turn(&turn.start(1)).await.unwrap();
    store
        .finish_turn(&turn.end(1, replied("answer")))
        .await
        .unwrap();
    store
}

async fn assert_it_is_there(path: &Path, talk: &Talk) {
    let messages = EmbeddedStore::open(path)
        .unwrap()
        .messages(&talk.org, &talk.id, 0, 10)
        .await
        .unwrap();
    assert_eq!(
        messages
            .iter()
            .map(|message| message.content.as_str())
            .collect::<Vec<_>>(),
        ["question", "answer"]
    );
}

#[tokio::test]
async fn conversations_survive_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let (path, talk) = (directory.path().join("store.db"), Talk::new());
    drop(write_a_turn(&path, &talk).await);
    assert_it_is_there(&path, &talk).await;
}

/// A copy of the files of an open store equals the files of a killed process.
#[tokio::test]
async fn completed_writes_survive_a_killed_process() {
    let (living, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let talk = Talk::new();
    let store = write_a_turn(&living.path().join("store.db"), &talk).await;
    for file in ["store.db", "store.db-wal"] {
        std::fs::copy(living.path().join(file), left.path().join(file)).unwrap();
    }
    assert_it_is_there(&left.path().join("store.db"), &talk).await;
    drop(store);
}

#[tokio::test]
async fn conversations_of_an_older_file_are_listed_by_their_start() {
    let directory = tempfile::tempdir().unwrap();
    let (path, talk) = (directory.path().join("store.db"), Talk::new());
    let start = StartRows::from_start(&talk.turn(0, "question").start(1)).unwrap();
    let (row, older) = (
        start.list_row.unwrap(),
        SqliteDatabase::open(&path, FileSharing::OneProcess, &MIGRATIONS[..2]).unwrap(),
    );
    let (org, id) = (talk.org.to_string(), talk.id.to_string());
    let put = move |connection: &Connection| {
        connection
            .prepare_cached(PUT_ORIGIN)?
            .execute(params![org, id, start.origin, 1])?;
        Ok(())
    };
    older.write(put).await.unwrap();
    drop(older);
    let store = EmbeddedStore::open(&path).unwrap();
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let listed = store.conversations(&talk.org, &query).await.unwrap();
    assert_eq!(
        listed
            .iter()
            .map(|listed| listed.began_at.micros())
            .collect::<Vec<_>>(),
        [row.began_at]
    );
    let range = ListRange {
        list: row.lists[1].clone(),
        ..ListRange::from_query(&talk.org, &query)
    };
    assert_ne!(range.list, "");
    let count = "SELECT count(*) FROM conversation_lists WHERE list = ?1";
    let counted = store.database.read(move |connection| {
        Ok(connection.query_row(count, [range.list], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(counted.await.unwrap(), 1);
}
