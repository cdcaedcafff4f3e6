//! Rules for which tests run when: the cases of `make quick`, and the tests that run alone.

use std::fs;

use crate::source::{files, root};

/// Largest number of tests that need a quiet machine.
const QUIET_TESTS_MAX: usize = 5;

#[test]
fn quick_cases_name_paths_and_modules_that_exist() {
    let table = fs::read_to_string(root().join("tests/quick-cases.tsv")).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    for row in rows {
        let (path, cases) = row.split_once('\t').unwrap();
        assert!(root().join(path).exists(), "{path} does not exist");
        for case in cases.split(' ') {
            let module = root().join("tests/it").join(case.replace("::", "/"));
            let exists = module.is_dir() || module.with_extension("rs").is_file();
            assert!(exists, "tests/it has no module {case}");
        }
    }
}

#[test]
fn few_tests_need_a_quiet_machine() {
    let mut quiet = 0;
    for path in files(&root().join("tests/it"), "rs") {
        let text = fs::read_to_string(&path).unwrap();
        let is_quiet = path.to_string_lossy().contains("/quiet/");
        quiet += text
            .split("#[tokio::test")
            .skip(1)
            .filter(|test| is_quiet || names_quiet(test))
            .count();
    }
    assert!((1..=QUIET_TESTS_MAX).contains(&quiet), "{quiet} tests");
}

/// Returns true if the function that begins a text has `quiet` in its name.
fn names_quiet(test: &str) -> bool {
    let name = test.split("async fn ").nth(1).unwrap_or_default();
    name.split('(').next().unwrap_or_default().contains("quiet")
}
