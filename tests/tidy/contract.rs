//! Rules for `tests/CONTRACT.md`: each promise names tests, and the tests exist.

use std::{collections::BTreeSet, fs};

use crate::source::{files, root};

/// A row of the table, with the tests that it names.
struct ContractRow {
    text: String,
    tests: Vec<String>,
}

fn contract_rows() -> Vec<ContractRow> {
    let contract = fs::read_to_string(root().join("tests/CONTRACT.md")).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && !line.ends_with("| tests |");
    let tests = |line: &str| -> Vec<String> {
        let quoted = line.split('`').skip(1).step_by(2);
        let tests = quoted.filter(|text| text.contains("::"));
        tests.map(Into::into).collect()
    };
    let row = |line: &str| ContractRow {
        text: line.to_owned(),
        tests: tests(line),
    };
    contract.lines().filter(is_row).map(row).collect()
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
    for ContractRow { text, tests } in rows {
        assert!(!tests.is_empty(), "no test: {text}");
        let missing: Vec<_> = tests.iter().filter(|test| !test_exists(test)).collect();
        assert!(missing.is_empty(), "{missing:?} in {text}");
    }
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
