//! The code base's own rules, as tests: what a reviewer would otherwise have to look for.

#![expect(
    clippy::unwrap_used,
    reason = "a rule that cannot read the source fails"
)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Longest source file, in lines.
const FILE_LINES_MAX: usize = 500;
/// Folders that hold what we wrote.
const OURS: [&str; 7] = [
    "src", "schemas", "backends", "ingress", "workers", "tests", "fuzz",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "assets", "node_modules"].contains(&name.as_str()) {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in OURS {
        files(&root().join(folder), "rs", &mut found);
    }
    assert!(
        found.len() > 50,
        "the walk found only {} files",
        found.len()
    );
    found
}

fn complaints(rule: impl Fn(&Path, &str) -> Option<String>) -> Vec<String> {
    let check = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        rule(&path, &text).map(|complaint| {
            format!(
                "{}: {complaint}",
                path.strip_prefix(root()).unwrap().display()
            )
        })
    };
    sources().into_iter().filter_map(check).collect()
}

#[test]
fn no_source_file_has_more_than_500_lines() {
    let long = complaints(|_, text| {
        let lines = text.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{lines} lines"))
    });
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn no_source_file_of_the_web_has_more_than_500_lines() {
    let mut found = Vec::new();
    for extension in ["ts", "css", "mjs"] {
        files(&root().join("web/widget"), extension, &mut found);
    }
    assert!(
        found.len() > 20,
        "the walk found only {} files",
        found.len()
    );
    let lines = |path: &PathBuf| fs::read_to_string(path).unwrap().lines().count();
    let long: Vec<_> = found
        .iter()
        .filter(|path| lines(path) > FILE_LINES_MAX)
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_source_file_opens_by_saying_why_it_exists() {
    let silent =
        complaints(|_, text| (!text.starts_with("//! ")).then(|| "does not begin with //!".into()));
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn dependencies_between_the_crates_point_one_way() {
    let allowed = [
        ("schemas", BTreeSet::new()),
        ("backends", BTreeSet::from(["schemas"])),
        ("ingress", BTreeSet::from(["schemas", "backends"])),
        ("workers", BTreeSet::from(["schemas", "backends"])),
    ];
    for (member, may) in allowed {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        let used: BTreeSet<&str> = ["schemas", "backends", "ingress", "workers"]
            .into_iter()
            .filter(|other| manifest.contains(&format!("switchboard-{other}.workspace")))
            .collect();
        assert!(
            used.is_subset(&may),
            "{member} depends on {used:?}, may depend on {may:?}"
        );
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
    let left = complaints(|_, text| {
        words
            .iter()
            .find(|word| text.contains(**word))
            .map(|word| (*word).to_owned())
    });
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn no_lint_is_switched_off_without_a_reason() {
    let silenced = complaints(|_, text| {
        let bare = text.lines().find(|line| {
            let line = line.trim_start();
            line.starts_with("#[allow(") || line.starts_with("#![allow(")
        });
        bare.map(str::to_owned)
    });
    assert!(silenced.is_empty(), "{silenced:#?}");
}

#[test]
fn every_direct_dependency_is_declared_once_for_the_workspace() {
    for member in ["schemas", "backends", "ingress", "workers"] {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        for line in manifest
            .lines()
            .filter(|line| line.contains("version = ") || line.contains("= \""))
        {
            let own = ["name =", "description =", "version.workspace"]
                .iter()
                .any(|field| line.starts_with(field));
            assert!(own, "{member}: {line:?} names a version of its own");
        }
    }
}

/// Where a test stands that `tests/CONTRACT.md` names: `module::name` is one of `tests/it`, and
/// `path.rs::name` a unit test.
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

/// The rows of `tests/CONTRACT.md`, each with the tests that it names.
fn contract_rows() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("tests/CONTRACT.md")).unwrap();
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.ends_with("| tests |"));
    let named = |row: &str| {
        row.split('`')
            .skip(1)
            .step_by(2)
            .filter(|text| text.contains("::"))
            .map(Into::into)
            .collect()
    };
    rows.map(|row| (row.to_owned(), named(row))).collect()
}

#[test]
fn every_row_of_the_contract_names_tests_that_exist_or_says_that_it_is_not_built_yet() {
    let rows = contract_rows();
    assert!(rows.len() > 150, "the table has only {} rows", rows.len());
    for (row, tests) in rows {
        assert!(
            !tests.is_empty() || row.contains("not built yet"),
            "no test: {row}"
        );
        let missing: Vec<_> = tests.iter().filter(|test| !test_exists(test)).collect();
        assert!(missing.is_empty(), "{missing:?} in {row}");
    }
}

#[test]
fn every_test_of_the_specification_stands_beside_its_sentence() {
    let named: BTreeSet<String> = contract_rows()
        .into_iter()
        .flat_map(|(_, tests)| tests)
        .collect();
    let mut modules = Vec::new();
    files(&root().join("tests/it/specification"), "rs", &mut modules);
    for module in modules {
        let text = fs::read_to_string(&module).unwrap();
        let stem = module.file_stem().unwrap().to_string_lossy().into_owned();
        for rest in text.split("#[tokio::test]\nasync fn ").skip(1) {
            let test = rest.split('(').next().unwrap();
            let reference = format!("specification::{stem}::{test}");
            assert!(
                named.contains(&reference),
                "{reference} is not in tests/CONTRACT.md"
            );
        }
    }
}
