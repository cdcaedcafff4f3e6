//! Rules of the code base that a machine can check.

#![expect(
    clippy::unwrap_used,
    reason = "a rule that cannot read the source fails"
)]

mod contract;
mod imports;
mod language;
mod selection;
mod source;

use std::{collections::BTreeSet, fs};

use source::{files, findings, root};

/// Longest source file, in lines.
const FILE_LINES_MAX: usize = 500;
/// Longest comment line, in characters; the formatter breaks code alone.
const COMMENT_COLUMNS_MAX: usize = 100;
const CRATES: [&str; 4] = ["schemas", "backends", "ingress", "workers"];

fn long_file(text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > FILE_LINES_MAX).then(|| format!("{lines} lines"))
}

#[test]
fn source_file_has_at_most_500_lines() {
    let long = findings(|source| long_file(&source.text).into_iter().collect());
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn web_source_file_has_at_most_500_lines() {
    let widget = ["ts", "css", "mjs"].map(|kind| files(&root().join("web/widget"), kind));
    let dashboard = ["ts", "tsx"].map(|kind| files(&root().join("web/dashboard/src"), kind));
    let files = [widget.concat(), dashboard.concat()].concat();
    assert!(files.len() > 100, "found only {} files", files.len());
    for path in files {
        if path.ends_with("src/api/admin-api.ts") {
            continue; // generated
        }
        let long = long_file(&fs::read_to_string(&path).unwrap());
        assert_eq!(long, None, "{}", path.display());
    }
}

#[test]
fn source_file_opens_with_its_purpose() {
    let silent = findings(|source| {
        let opens = source.text.starts_with("//! ");
        (!opens)
            .then(|| "does not begin with //!".into())
            .into_iter()
            .collect()
    });
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn comment_line_has_at_most_100_columns() {
    let wide = findings(|source| {
        let comments = source
            .text
            .lines()
            .filter(|line| line.trim_start().starts_with("//"));
        let wide = comments.filter(|line| line.chars().count() > COMMENT_COLUMNS_MAX);
        wide.map(str::to_owned).collect()
    });
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn dependencies_between_crates_point_one_way() {
    let allowed = [
        &[][..],
        &["schemas"],
        &["schemas", "backends"],
        &["schemas", "backends"],
    ];
    for (member, allowed) in CRATES.into_iter().zip(allowed) {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        let is_used = |other: &&str| manifest.contains(&format!("switchboard-{other}"));
        let used: BTreeSet<&str> = CRATES.into_iter().filter(is_used).collect();
        let forbidden: Vec<_> = used
            .iter()
            .filter(|used| **used != member && !allowed.contains(*used))
            .collect();
        assert!(forbidden.is_empty(), "{member} depends on {forbidden:?}");
    }
}

#[test]
fn no_test_is_ignored_and_no_code_is_left_for_later() {
    let words = [
        concat!("#[", "ignore"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
    ];
    let left = findings(|source| {
        let found = words.iter().filter(|word| source.text.contains(**word));
        found.map(|word| (*word).to_owned()).collect()
    });
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn lint_is_expected_with_a_reason_instead_of_allowed() {
    let silenced = findings(|source| {
        let lines = source.text.lines().map(str::trim_start);
        let allows =
            lines.filter(|line| line.starts_with("#[allow(") || line.starts_with("#![allow("));
        allows.map(str::to_owned).collect()
    });
    assert!(silenced.is_empty(), "{silenced:#?}");
}

#[test]
fn dependency_version_is_declared_in_the_workspace() {
    for member in CRATES {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        for line in manifest.lines() {
            let has_version = line.contains("version = ") || line.contains("= \"");
            let fields = ["name =", "description =", "version.workspace"];
            let is_field = fields.iter().any(|field| line.starts_with(field));
            assert!(
                !has_version || is_field,
                "{member}: {line:?} names a version of its own"
            );
        }
    }
}
