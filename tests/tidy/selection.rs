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
    let sources = files(&root().join("tests/it/real/quiet"), "rs");
    let texts = sources.iter().map(|path| fs::read_to_string(path).unwrap());
    let tests: usize = texts
        .map(|text| text.matches("#[tokio::test").count())
        .sum();
    assert!((1..=QUIET_TESTS_MAX).contains(&tests), "{tests} tests");
}
