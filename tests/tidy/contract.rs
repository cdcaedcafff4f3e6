//! Rules for `tests/CONTRACT.md` and `tests/FAULTS.md`: each promise names tests that exist, and
//! each fault names them or says that it is not tested.

use std::{collections::BTreeSet, fs};

use crate::source::{files, root};

/// A row of a table, with the tests that it names.
struct TableRow {
    text: String,
    tests: Vec<String>,
}

fn contract_rows() -> Vec<TableRow> {
    rows_of("tests/CONTRACT.md", |line| {
        line.starts_with("| ") && !line.ends_with("| tests |")
    })
}

fn rows_of(file: &str, is_row: impl Fn(&str) -> bool) -> Vec<TableRow> {
    let table = fs::read_to_string(root().join(file)).unwrap();
    let tests = |line: &str| -> Vec<String> {
        let quoted = line.split('`').skip(1).step_by(2);
        let tests = quoted.filter(|text| text.contains("::"));
        tests.map(Into::into).collect()
    };
    let row = |line: &str| TableRow {
        text: line.to_owned(),
        tests: tests(line),
    };
    let rows = table.lines().filter(|line| is_row(line));
    rows.map(row).collect()
}

impl TableRow {
    fn cells(&self) -> Vec<&str> {
        self.text.split('|').map(str::trim).collect()
    }

    fn assert_tests_exist(&self) {
        let missing: Vec<_> = self.tests.iter().filter(|it| !test_exists(it)).collect();
        assert!(missing.is_empty(), "{missing:?} in {}", self.text);
    }
}

/// Returns true if a test exists. `module::name` is a test in `tests/it`, `path.rs::name` a unit
/// test.
fn test_exists(reference: &str) -> bool {
    let Some((place, name)) = reference.rsplit_once("::") else {
        return false;
    };
    let path = if place.ends_with(".rs") {
        place.to_owned()
    } else {
        format!("tests/it/{}.rs", place.replace("::", "/"))
    };
    fs::read_to_string(root().join(path)).is_ok_and(|text| text.contains(&format!("fn {name}(")))
}

#[test]
fn every_promise_names_tests_that_exist() {
    let rows = contract_rows();
    assert!(rows.len() > 150, "the table has only {} rows", rows.len());
    for row in rows {
        assert!(!row.tests.is_empty(), "no test: {}", row.text);
        row.assert_tests_exist();
    }
}

#[test]
fn every_fault_names_tests_that_exist() {
    let rows = rows_of("tests/FAULTS.md", |line| line.starts_with("| F"));
    assert!(rows.len() >= 48, "the table has only {} rows", rows.len());
    let injected = fs::read_to_string(root().join("tests/it/real/chaos/named.rs")).unwrap();
    for row in &rows {
        row.assert_tests_exist();
        let cells = row.cells();
        let (number, shown_by) = (cells[1], cells[6]);
        let by_chaos = shown_by.strip_prefix("chaos").map(|rest| {
            let named = rest.trim_start().split(',').next().unwrap();
            if named.is_empty() { number } else { named }
        });
        if let Some(named) = by_chaos {
            let is_injected = injected.contains(&format!("\"{named}\""));
            assert!(is_injected, "no chaos run injects {named}");
        }
        let is_shown = by_chaos.is_some() || !row.tests.is_empty();
        assert_ne!(is_shown, row.text.contains("not tested"), "{}", row.text);
    }
    let listed: BTreeSet<&str> = rows.iter().map(|row| row.cells()[1]).collect();
    for number in injected.split('"').filter(|text| is_fault_number(text)) {
        assert!(
            listed.contains(number),
            "{number} is not in tests/FAULTS.md"
        );
    }
}

/// Returns true for `F` and digits.
fn is_fault_number(text: &str) -> bool {
    let digits = text.strip_prefix('F').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn every_specification_test_belongs_to_a_promise() {
    let rows = contract_rows();
    let named: BTreeSet<_> = rows.iter().flat_map(|row| &row.tests).collect();
    for path in files(&root().join("tests/it/specification"), "rs") {
        let text = fs::read_to_string(&path).unwrap();
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        for rest in text.split("#[tokio::test]\nasync fn ").skip(1) {
            let test = rest.split('(').next().unwrap();
            let reference = format!("specification::{module}::{test}");
            assert!(
                named.contains(&reference),
                "{reference} is not in tests/CONTRACT.md"
            );
        }
    }
}
