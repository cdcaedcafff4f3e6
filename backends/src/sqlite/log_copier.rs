//! Copies the write-ahead log into its file beside the commits (checkpoints), so that hardly one of
//! them does.

use std::{
    ffi::c_int,
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use rusqlite::{Connection, hooks::Wal};

/// Pages in the log from which it is copied.
const COPY_FROM_PAGES: c_int = 750;
/// Pages that the log grows by between two copies.
const COPY_STEP_PAGES: c_int = 100;
/// Pages in the log from which a commit copies the rest itself, so that the log starts again. This
/// is SQLite's own limit, and less than the log keeps.
const FINISH_FROM_PAGES: c_int = 1000;

/// Starts a thread that copies the log of `writer`'s file with `copier`, another connection to it.
/// The thread ends with `writer`.
///
/// # Errors
/// [`rusqlite::Error::ToSqlConversionFailure`] if there is no thread.
pub(crate) fn start(writer: &mut Connection, copier: Connection) -> rusqlite::Result<()> {
    let (wake, wakes) = sync_channel(1);
    thread::Builder::new()
        .name("sqlite-copier".into())
        .spawn(move || copy_until_closed(&copier, &wakes))
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let mut copied_at = 0;
    writer.wal_hook(Some(move |log: &mut Wal, pages: c_int| {
        if pages < copied_at {
            copied_at = 0;
        }
        if pages >= FINISH_FROM_PAGES {
            // The thread may be copying; then the next commit tries again. The commit of this call
            // has succeeded, whatever becomes of the copy.
            let _ = log.checkpoint();
        } else if pages >= COPY_FROM_PAGES.max(copied_at + COPY_STEP_PAGES) {
            copied_at = pages;
            let _ = wake.try_send(());
        }
        Ok(())
    }))
}

fn copy_until_closed(copier: &Connection, wakes: &Receiver<()>) {
    while wakes.recv().is_ok() {
        let copied = copier.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = copied {
            tracing::warn!(%error, "a write-ahead log was not copied; a commit will do it");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;
    use crate::sqlite::{FileSharing, connect};

    const PAGE_BYTES: u64 = 4096;

    fn open(path: &Path) -> Connection {
        let mut writer = connect(path, FileSharing::OneProcess).unwrap();
        let copier = connect(path, FileSharing::OneProcess).unwrap();
        start(&mut writer, copier).unwrap();
        writer
            .execute_batch("CREATE TABLE texts (text TEXT)")
            .unwrap();
        writer
    }

    /// Fills at least one page.
    fn fill_page(writer: &Connection) {
        let text = "a".repeat(PAGE_BYTES as usize);
        writer
            .execute("INSERT INTO texts VALUES (?1)", [text])
            .unwrap();
    }

    fn pages(path: &Path) -> u64 {
        std::fs::metadata(path).unwrap().len() / PAGE_BYTES
    }

    #[test]
    fn log_is_copied_before_a_commit_has_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("texts.db");
        let writer = open(&path);
        // A new log grows with every page in it.
        while pages(&directory.path().join("texts.db-wal")) < COPY_FROM_PAGES as u64 + 10 {
            fill_page(&writer);
        }
        for _ in 0..500 {
            if pages(&path) > 100 {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("nothing was copied");
    }

    #[test]
    fn log_stays_small_under_load() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("texts.db");
        let writer = open(&path);
        for _ in 0..3000 {
            fill_page(&writer);
        }
        let log = pages(&directory.path().join("texts.db-wal"));
        assert!(log < 2 * FINISH_FROM_PAGES as u64, "{log} pages");
    }
}
