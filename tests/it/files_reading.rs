//! Reading of uploaded files in a child process of the real program.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use switchboard_schemas::{file::FileType, ids::OrgId, secret::InstallationSecret};
use switchboard_workers::files::{FileReader, FileReading, ReaderPlace};

use crate::support::eventually;

/// Longest time for one file in an unoptimized program.
const PATIENCE: Duration = Duration::from_secs(25);
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

fn program() -> String {
    let built = env!("CARGO_BIN_EXE_switchboard").to_owned();
    std::env::var("TESTED_BINARY").unwrap_or(built)
}

async fn read(kind: FileType, bytes: Vec<u8>) -> FileReading {
    let program = program().into();
    let reader = FileReader::new(ReaderPlace::Child { program });
    let started = Instant::now();
    let org = OrgId::derive(&InstallationSecret::from_bytes([7; 32]), "shop");
    let permit = reader.permit(&org).await;
    let reading = reader.read(&permit, kind, bytes.into()).await.unwrap();
    let time = started.elapsed();
    assert!(time < PATIENCE, "{time:?}");
    reading
}

#[tokio::test]
async fn child_returns_texts_pictures_and_reasons() {
    let text = read(FileType::Text, b"a\0b".to_vec()).await;
    let expected = FileReading::Text {
        text: "ab".to_owned(),
        is_cut: false,
        pages: None,
    };
    assert_eq!(text, expected);
    let picture = STANDARD.decode(PICTURE).unwrap();
    let picture = read(FileType::Png, picture).await;
    let is_one_pixel = matches!(
        &picture,
        FileReading::Image { width: 1, height: 1, bytes, .. } if !bytes.is_empty()
    );
    assert!(is_one_pixel, "{picture:?}");
    let damaged = read(FileType::Gif, b"GIF89a".to_vec()).await;
    assert!(
        matches!(&damaged, FileReading::Unreadable { failure } if failure.sentence().contains("damaged"))
    );
}

#[tokio::test]
async fn child_has_its_limits_before_it_reads() {
    let mut child = Command::new(program())
        .args(["read-file", "--type", "text/plain"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/limits", child.id());
    for (name, limit) in [
        ("Max address space", "1073741824"),
        ("Max cpu time", "10"),
        ("Max open files", "0"),
        ("Max processes", "0"),
        ("Max core file size", "0"),
    ] {
        let is_set = || {
            let limits = fs::read_to_string(&path).unwrap();
            let line = limits.lines().find_map(|line| line.strip_prefix(name));
            line.is_some_and(|line| line.split_whitespace().next() == Some(limit))
        };
        eventually(name, PATIENCE, async || is_set().then_some(())).await;
    }
    child.stdin.take().unwrap().write_all(b"read").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.stdout.ends_with(b"\nread"), "{output:?}");
}

#[tokio::test]
async fn page_that_needs_memory_or_depth_ends_only_its_child() {
    let values = [&b"["[..], &b"1 ".repeat(500_000), b"] TJ"].concat();
    for content in [b"[".repeat(8_000_000), b"(".repeat(8_000_000), values] {
        let reading = read(FileType::Pdf, document(&content)).await;
        assert!(
            matches!(reading, FileReading::Unreadable { .. }),
            "{reading:?}"
        );
    }
}

/// A PDF document of one page.
fn document(content: &[u8]) -> Vec<u8> {
    let head = format!(
        "%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
         2 0 obj\n<< /Type /Pages /Count 1 /Kids [3 0 R] >>\nendobj\n\
         3 0 obj\n<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>\nendobj\n\
         4 0 obj\n<< /Length {} >>\nstream\n",
        content.len()
    );
    // Without a table of objects, which readers build anew.
    let tail = b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n";
    [head.as_bytes(), content, tail].concat()
}
