//! Removes what SQLite keeps of deleted rows: the write-ahead log, and stale copies within pages.
//!
//! `secure_delete` overwrites a deleted row. But SQLite also moves rows when it splits or joins
//! pages, and leaves the old bytes in the unallocated part of the page. Only `VACUUM` would remove
//! them, which writes the whole file twice. This overwrites the unallocated parts in the file.

use std::{
    fs::{File, OpenOptions},
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Timeout of one try to empty the write-ahead log; writes wait meanwhile.
const LOG_TRUNCATION_TRY: Duration = Duration::from_millis(200);
/// Bytes before the first page's own header.
const FILE_HEADER_BYTES: usize = 100;
/// Position of the page size in the file header.
const PAGE_SIZE_AT: u64 = 16;

/// Bytes of the file that one step looks at, a multiple of every page size; writes wait meanwhile.
const STEP_BYTES: u64 = 8 << 20;

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResidueStep {
    /// Position from which the next step goes on.
    Next(u64),
    /// The whole file has been looked at.
    Complete,
    /// A reader or a write was in the way.
    Busy,
}

/// A database file whose unallocated bytes are erased.
pub(crate) struct SqliteResidue {
    /// Kept open, because closing any handle of a file ends the locks of the process on it.
    file: File,
    log: PathBuf,
}

impl SqliteResidue {
    /// Opens an existing database file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Ok(Self {
            file: OpenOptions::new().read(true).write(true).open(path)?,
            log: log.into(),
        })
    }

    /// Erases the residue of all committed deletions without a pause, for files that nobody else
    /// writes meanwhile. `connection` is as for [`Self::erase_step`]. Returns `false` if a reader
    /// or a write was in the way.
    pub(crate) fn erase(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let mut place = 0;
        loop {
            match self.erase_step(connection, place)? {
                ResidueStep::Next(next) => place = next,
                ResidueStep::Complete => return Ok(true),
                ResidueStep::Busy => return Ok(false),
            }
        }
    }

    /// Erases the residue in the next part of the file, from a position that the last step
    /// returned; the first is 0. `connection` must be one that writes nothing else. Rows that are
    /// moved between two steps leave residue behind, but none of the rows that were deleted before
    /// the first step.
    pub(crate) fn erase_step(
        &self,
        connection: &Connection,
        from: u64,
    ) -> rusqlite::Result<ResidueStep> {
        if !truncate_log(connection)? {
            return Ok(ResidueStep::Busy);
        }
        // Nobody else writes until the commit, and with an empty log every page is in the file.
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        if std::fs::metadata(&self.log).map_err(failure)?.len() > 0 {
            return Ok(ResidueStep::Busy);
        }
        let end = self.file.metadata().map_err(failure)?.len();
        let to = end.min(from + STEP_BYTES);
        if self.zero_unallocated(from..to).map_err(failure)? {
            // Any change makes the other connections drop their copies of pages, which they would
            // write again.
            let version: i64 =
                transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
            transaction.pragma_update(None, "user_version", version)?;
        }
        transaction.commit()?;
        Ok(if to < end {
            ResidueStep::Next(to)
        } else {
            ResidueStep::Complete
        })
    }

    /// Returns true if there was anything to overwrite.
    fn zero_unallocated(&self, part: Range<u64>) -> io::Result<bool> {
        let mut size = [0; 2];
        self.file.read_exact_at(&mut size, PAGE_SIZE_AT)?;
        // The size 65,536 is written as 1.
        let size = match u16::from_be_bytes(size) {
            1 => 1 << 16,
            size => usize::from(size),
        };
        let (mut page, mut has_changed) = (vec![0; size], false);
        for start in part.step_by(size.max(1)) {
            self.file.read_exact_at(&mut page, start)?;
            let header = if start == 0 { FILE_HEADER_BYTES } else { 0 };
            let Some(range) = unallocated(&page, header) else {
                continue;
            };
            let at = start + range.start as u64;
            let unallocated = &mut page[range];
            if unallocated.iter().any(|byte| *byte != 0) {
                unallocated.fill(0);
                self.file.write_all_at(unallocated, at)?;
                has_changed = true;
            }
        }
        if has_changed {
            self.file.sync_data()?;
        }
        Ok(has_changed)
    }
}

/// Empties the write-ahead log. Returns `false` if a reader needs it, which is no error.
pub(crate) fn truncate_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(LOG_TRUNCATION_TRY)?;
    let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, bool>(0)
    })?;
    Ok(!is_busy)
}

/// Returns the bytes between the cell pointers and the cells of a B-tree page, or `None` for other
/// pages. Those start with a page number, which is that of a page beyond 128 GB if it looks like
/// the type of a B-tree page.
fn unallocated(page: &[u8], header: usize) -> Option<Range<usize>> {
    let pointers = match page.get(header)? {
        2 | 5 => header + 12,
        10 | 13 => header + 8,
        _ => return None,
    };
    let number = |at: usize| {
        let bytes = page.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes(bytes.try_into().ok()?)))
    };
    let start = pointers + 2 * number(header + 3)?;
    let end = match number(header + 5)? {
        0 => 1 << 16,
        end => end,
    };
    (start <= end && end <= page.len()).then_some(start..end)
}

fn failure(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};

    use super::*;

    const ROUNDS: u32 = 8;
    const ROWS_PER_ROUND: u32 = 100;

    fn connect(path: &Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON",
            )
            .unwrap();
        connection
    }

    /// Writes and deletes texts of many owners in random order. Returns how many deleted owners are
    /// still found in the file, before and after the residue is erased.
    fn deleted_owners_in_file(seed: u64, table_end: &str) -> (usize, usize) {
        let mut random = StdRng::seed_from_u64(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("texts.db");
        let (writer, eraser) = (connect(&path), connect(&path));
        let create = "CREATE TABLE texts (partition INTEGER, number INTEGER, text TEXT, \
                      PRIMARY KEY (partition, number)) STRICT";
        writer
            .execute_batch(&format!("{create}{table_end}"))
            .unwrap();
        let residue = SqliteResidue::open(&path).unwrap();
        let (mut before, mut after, mut number) = (0, 0, 0);
        let is_in_file = |owner: &str| {
            let bytes = std::fs::read(&path).unwrap();
            bytes
                .windows(owner.len())
                .any(|part| part == owner.as_bytes())
        };
        for round in 0..ROUNDS {
            let owners: Vec<_> = (0..5)
                .map(|owner| format!("zebra-{round:03}-{owner} "))
                .collect();
            for _ in 0..ROWS_PER_ROUND {
                number += 1;
                let owner = owners.choose(&mut random).unwrap();
                let text = owner.to_owned() + &"x".repeat(random.random_range(50..2_000));
                let row = rusqlite::params![random.random_range(0..16), number, text];
                writer
                    .execute("INSERT INTO texts VALUES (?1, ?2, ?3)", row)
                    .unwrap();
            }
            for owner in &owners[..3] {
                let pattern = format!("{owner}%");
                writer
                    .execute("DELETE FROM texts WHERE text LIKE ?1", [pattern])
                    .unwrap();
                assert!(truncate_log(&eraser).unwrap());
                before += usize::from(is_in_file(owner));
                assert!(residue.erase(&eraser).unwrap());
                assert!(truncate_log(&eraser).unwrap());
                after += usize::from(is_in_file(owner));
            }
        }
        let check: String = writer
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        (before, after)
    }

    #[test]
    fn deleted_text_is_in_no_page_of_the_file() {
        let mut found = (0, 0);
        for (seed, table_end) in [(1, ""), (2, ", WITHOUT ROWID"), (3, ", WITHOUT ROWID")] {
            let (before, after) = deleted_owners_in_file(seed, table_end);
            found = (found.0 + before, found.1 + after);
        }
        assert!(
            found.0 > 0,
            "SQLite leaves nothing: this module is not needed"
        );
        assert_eq!(found.1, 0);
    }

    #[test]
    fn other_pages_have_no_unallocated_part() {
        assert_eq!(unallocated(&[0; 512], 0), None);
        assert_eq!(unallocated(&[], 0), None);
        let mut leaf = [0; 512];
        (leaf[0], leaf[4], leaf[5]) = (13, 3, 1);
        assert_eq!(unallocated(&leaf, 0), Some(14..256));
        leaf[5] = 9;
        assert_eq!(unallocated(&leaf, 0), None, "beyond the page");
    }
}
