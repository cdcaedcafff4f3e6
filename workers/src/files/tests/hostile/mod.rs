//! Hostile files of all types, and the outcome of each, which `docs/hostile-files.md` lists.
//! `UPDATE_HOSTILE=1` writes the list anew.

mod office;
mod pdf;
mod pictures;
mod texts;

use std::{collections::BTreeSet, fs, path::PathBuf, time::Instant};

use switchboard_schemas::file::FileType;

use crate::files::{FileReading, PAGES_MAX, TEXT_BYTES_MAX, read_document};

/// Least number of hostile files.
const CASES_MIN: usize = 60;
/// Longest time for one file in an unoptimized program, in seconds. The outcome of a file that
/// takes longer is tested with a child process.
const SECONDS_MAX: u64 = 15;
const LIST: &str = "docs/hostile-files.md";
const LIST_HEAD: &str = "\
# Hostile files

Visitors can send any bytes. This page lists files that were made to do harm, and what Switchboard does with each.
A test of `workers/src/files` builds them and compares the outcomes: `UPDATE_HOSTILE=1 cargo test -p switchboard-workers hostile` writes the page anew.

What holds for all of them:

- A file is read in a child process that can use 1 GiB of memory and 20 seconds, and can open no file and no connection.
- A reader that crashes, is ended or takes too long is an unreadable file. The worker and all other messages go on.
- Pictures are decoded and encoded anew, so that nothing but pixels reaches the model.
- Texts lose control characters and characters that people do not see. Their words stay: instructions in a file are marked as content of a file when the prompt is made.
- The first 256 KiB of a text and the first 100 pages of a document are read.
";

/// A file that was made to do harm.
struct HostileFile {
    /// Description in simple words.
    name: &'static str,
    kind: FileType,
    /// The file, or several of the same kind.
    files: Vec<Vec<u8>>,
    /// Text that the outcome has.
    expected: Option<&'static str>,
    /// Text that no outcome has.
    forbidden: Option<&'static str>,
}

impl HostileFile {
    fn new(name: &'static str, kind: FileType, file: impl Into<Vec<u8>>) -> Self {
        Self::group(name, kind, vec![file.into()])
    }

    fn group(name: &'static str, kind: FileType, files: Vec<Vec<u8>>) -> Self {
        Self {
            name,
            kind,
            files,
            expected: None,
            forbidden: None,
        }
    }

    fn with(self, expected: &'static str) -> Self {
        let expected = Some(expected);
        Self { expected, ..self }
    }

    fn without(self, forbidden: &'static str) -> Self {
        let forbidden = Some(forbidden);
        Self { forbidden, ..self }
    }

    /// Reads the files and returns their outcome.
    fn outcome(&self) -> String {
        let started = Instant::now();
        let readings = self.files.iter().map(|file| read_document(self.kind, file));
        let outcomes: BTreeSet<String> = readings.map(|reading| self.describe(&reading)).collect();
        let seconds = started.elapsed().as_secs();
        assert!(seconds < SECONDS_MAX, "{}: {seconds} s", self.name);
        match outcomes.len() {
            1 => outcomes.into_iter().next().unwrap_or_default(),
            _ => "some are read, the others are refused".to_owned(),
        }
    }

    fn describe(&self, reading: &FileReading) -> String {
        let (content, outcome) = match reading {
            FileReading::Image {
                bytes,
                width,
                height,
                ..
            } => {
                let picture = image::load_from_memory(bytes).unwrap();
                assert_eq!((picture.width(), picture.height()), (*width, *height));
                (&bytes[..], format!("picture of {width} x {height}"))
            }
            FileReading::Text {
                text,
                is_cut,
                pages,
            } => {
                assert!(text.len() <= TEXT_BYTES_MAX, "{}", self.name);
                let is_clean = |shown: char| !shown.is_control() || matches!(shown, '\n' | '\t');
                assert!(text.chars().all(is_clean), "{}: {text:?}", self.name);
                let cut = if *is_cut { ", cut" } else { "" };
                let pages = match pages {
                    Some(pages) if *pages as usize > PAGES_MAX => format!(" of {pages} pages"),
                    _ => String::new(),
                };
                (text.as_bytes(), format!("text{pages}{cut}"))
            }
            FileReading::Unreadable { failure } => {
                (&[][..], format!("refused: {}", failure.sentence()))
            }
        };
        let has = |text: &str| {
            content
                .windows(text.len())
                .any(|found| found == text.as_bytes())
        };
        if let Some(expected) = self.expected {
            assert!(
                has(expected),
                "{}: no {expected:?} in {reading:?}",
                self.name
            );
        }
        if let Some(forbidden) = self.forbidden {
            assert!(!has(forbidden), "{}: {forbidden:?}", self.name);
        }
        outcome
    }
}

fn case(name: &'static str, kind: FileType, file: impl Into<Vec<u8>>) -> HostileFile {
    HostileFile::new(name, kind, file)
}

#[test]
fn hostile_files_have_the_listed_outcomes() {
    let sections = [
        ("Pictures", pictures::files()),
        ("Texts", texts::files()),
        ("Word and Excel documents", office::files()),
        ("PDF documents", pdf::files()),
    ];
    let count: usize = sections.iter().map(|(_, files)| files.len()).sum();
    assert!(count >= CASES_MIN, "{count} files");
    let mut list = LIST_HEAD.to_owned();
    for (title, files) in sections {
        list.push_str(&format!(
            "\n## {title}\n\n| file | type | outcome |\n|---|---|---|\n"
        ));
        for file in files {
            let kind = file.kind.extensions()[0];
            let outcome = file.outcome();
            list.push_str(&format!("| {} | {kind} | {outcome} |\n", file.name));
        }
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(LIST);
    if std::env::var_os("UPDATE_HOSTILE").is_some() {
        fs::write(&path, &list).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap();
    let mut lines = listed.lines().zip(list.lines());
    let different = lines.find(|(listed, found)| listed != found);
    assert_eq!(different, None, "{LIST} differs from the outcome");
    assert_eq!(listed.len(), list.len(), "{LIST}");
}

/// Returns a file cut after a tenth, a half and almost all of its bytes.
fn cuts(file: &[u8]) -> Vec<Vec<u8>> {
    let lengths = [
        file.len() / 10,
        file.len() / 2,
        file.len() - file.len().min(20),
    ];
    lengths.map(|length| file[..length].to_vec()).to_vec()
}

/// Returns copies of a file with one bit changed in each, spread over the file.
fn with_changed_bits(file: &[u8], count: usize) -> Vec<Vec<u8>> {
    let copies = (0..count).map(|number| {
        let mut copy = file.to_vec();
        let place = number * file.len() / count;
        copy[place] ^= 1 << (number % 8);
        copy
    });
    copies.collect()
}
