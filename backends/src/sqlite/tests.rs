//! Tests of the writer, the readers and what deletions leave.

use futures::future::join_all;

use super::*;

/// The log after the last write of an erasure, which changes only the first page.
const LOG_OF_ONE_PAGE_BYTES: u64 = 32 + 24 + 4096;
const TABLE: &str = "CREATE TABLE numbers (number INTEGER PRIMARY KEY) STRICT";

fn open(directory: &tempfile::TempDir, migrations: &[&str]) -> Result<SqliteDatabase, StoreError> {
    SqliteDatabase::open(
        &directory.path().join("numbers.db"),
        FileSharing::OneProcess,
        migrations,
    )
}

async fn insert(database: &SqliteDatabase, number: u32) -> Result<(), StoreError> {
    let insert = move |connection: &Connection| {
        connection
            .prepare_cached("INSERT INTO numbers VALUES (?1)")?
            .execute([number])?;
        Ok(())
    };
    database.write(insert).await
}

async fn numbers(database: &SqliteDatabase) -> Vec<u32> {
    let select = |connection: &Connection| {
        let mut statement =
            connection.prepare_cached("SELECT number FROM numbers ORDER BY number")?;
        Ok(statement
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?)
    };
    database.read(select).await.unwrap()
}

#[tokio::test]
async fn failed_write_does_not_undo_others_of_its_commit() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, &[TABLE]).unwrap();
    let outcomes = join_all([1, 2, 1, 3].map(|number| insert(&database, number))).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 3);
    assert_eq!(numbers(&database).await, [1, 2, 3]);
}

#[tokio::test]
async fn read_sees_all_acknowledged_writes() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, &[TABLE]).unwrap();
    for number in 0..50 {
        insert(&database, number).await.unwrap();
        assert_eq!(numbers(&database).await.len() as u32, number + 1);
    }
}

#[tokio::test]
async fn paused_reads_keep_no_reader_from_others() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, &[TABLE]).unwrap();
    let mut paused: Vec<_> = (0..4 * READERS)
        .map(|_| Box::pin(numbers(&database)))
        .collect();
    for read in &mut paused {
        let _ = futures::poll!(read);
    }
    assert!(numbers(&database).await.is_empty());
}

#[tokio::test]
async fn waiting_writes_share_commits() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, &[TABLE]).unwrap();
    let outcomes = join_all((0..2000).map(|number| insert(&database, number))).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(numbers(&database).await.len(), 2000);
}

#[tokio::test]
async fn migrations_run_once_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    insert(&open(&directory, &[TABLE]).unwrap(), 7)
        .await
        .unwrap();
    let second = "INSERT INTO numbers SELECT number + 1 FROM numbers";
    for _ in 0..2 {
        assert_eq!(
            numbers(&open(&directory, &[TABLE, second]).unwrap()).await,
            [7, 8]
        );
    }
}

#[tokio::test]
async fn deleted_data_is_not_left_in_the_file() {
    const WORDS: &str = "zebra crossing";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("numbers.db");
    let database = open(&directory, &["CREATE TABLE texts (text TEXT) STRICT"]).unwrap();
    let log = path.with_file_name("numbers.db-wal");
    let holds_words = || {
        let bytes = [&path, &log]
            .map(|path| std::fs::read(path).unwrap())
            .concat();
        bytes
            .windows(WORDS.len())
            .any(|part| part == WORDS.as_bytes())
    };
    for (statement, is_there) in [
        ("INSERT INTO texts VALUES (?1)", true),
        ("DELETE FROM texts WHERE text = ?1", false),
    ] {
        let run = move |connection: &Connection| {
            Ok(connection.execute(statement, [WORDS]).map(|_| ())?)
        };
        database.write(run).await.unwrap();
        database.erase_residue().await.unwrap();
        assert_eq!(holds_words(), is_there, "{statement}");
    }
    assert!(std::fs::metadata(log).unwrap().len() <= LOG_OF_ONE_PAGE_BYTES);
}

#[tokio::test]
async fn log_is_emptied_behind_a_reader_that_needs_it() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, &[TABLE]).unwrap();
    let log = directory.path().join("numbers.db-wal");
    let (begun, has_begun) = oneshot::channel();
    let slow_read = database.read(move |connection| {
        connection.query_row("SELECT count(*) FROM numbers", [], |_| Ok(()))?;
        let _ = begun.send(());
        thread::sleep(Duration::from_secs(1));
        Ok(())
    });
    let deletion = async {
        has_begun.await.unwrap();
        let write = |connection: &Connection| {
            Ok(connection.execute("DELETE FROM numbers", []).map(|_| ())?)
        };
        database.write(write).await.unwrap();
        database.erase_residue().await.unwrap();
        std::fs::metadata(&log).unwrap().len()
    };
    let (read, left) = tokio::join!(slow_read, deletion);
    read.unwrap();
    assert!(
        left <= LOG_OF_ONE_PAGE_BYTES,
        "busy is no success: {left} bytes"
    );
}

#[test]
fn file_of_a_newer_version_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory, &[TABLE, "SELECT 1"]).unwrap());
    assert!(matches!(
        open(&directory, &[TABLE]),
        Err(StoreError::Malformed(_))
    ));
}
