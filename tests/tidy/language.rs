//! Rules for names and doc comments. They have no exceptions.

use std::{collections::BTreeSet, fs};

use crate::source::{SourceFile, files, findings, root};

/// Longest name of a test, in characters.
const TEST_NAME_MAX: usize = 60;

/// First words that turn a doc comment into a clause instead of a statement.
const CLAUSE_WORDS: [&str; 8] = [
    "what", "who", "whose", "whom", "whether", "how", "where", "which",
];

/// Extensions of files with comments besides Rust's.
const OTHER_LANGUAGES: [&str; 9] = ["css", "js", "lua", "py", "sh", "sql", "toml", "ts", "tsx"];

/// Past participles that do not end in "ed", as type names.
const IRREGULAR_PARTICIPLES: &str = "Begun Bound Bought Broken Brought Built Chosen Cut Done Drawn \
     Fallen Found Given Gone Grown Heard Held Hidden Kept Known Led Left Lost Made Meant Met Paid \
     Put Read Said Seen Sent Set Shown Sold Sought Spent Spoken Sworn Taken Taught Thought Told Torn \
     Understood Worn Written";
/// Nouns and verbs that only look like participles.
const PARTICIPLE_LOOKALIKES: &str = "Bed Billing Binding Breed Embed Encoding Feed Greeting King \
     Mapping Need Ping Pricing Rating Red Ring Routing Seed Setting Speed String Thing Thread Timing";

#[test]
fn doc_comment_opens_with_a_verb_or_a_noun() {
    check(clause_openings);
}

#[test]
fn one_word_type_name_is_a_domain_noun() {
    let list = fs::read_to_string(root().join("tests/tidy/names.txt")).unwrap();
    let nouns: BTreeSet<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    check(|source| {
        let names = type_names(source).into_iter();
        names
            .filter(|name| is_one_word(name) && !nouns.contains(name.as_str()))
            .collect()
    });
}

#[test]
fn type_name_is_no_participle() {
    let list = fs::read_to_string(root().join("tests/tidy/names.txt")).unwrap();
    let listed: Vec<_> = list.lines().filter(|name| is_participle(name)).collect();
    assert!(listed.is_empty(), "in names.txt: {listed:?}");
    check(|source| {
        let names = type_names_in(&source.text).into_iter();
        names.filter(|name| is_participle(name)).collect()
    });
}

#[test]
fn comment_of_another_language_opens_with_a_statement() {
    let files = OTHER_LANGUAGES.map(|extension| files(root(), extension));
    let openings = files.into_iter().flatten().flat_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let openings = other_clause_openings(&text).into_iter();
        let findings = openings.map(|opening| format!("{}: {opening}", path.display()));
        findings.collect::<Vec<_>>()
    });
    let openings: Vec<_> = openings.collect();
    assert!(openings.is_empty(), "{openings:#?}");
}

#[test]
fn test_name_is_short() {
    check(|source| {
        let names = test_names(&source.text).into_iter();
        names
            .filter(|name| name.chars().count() > TEST_NAME_MAX)
            .collect()
    });
}

/// Fails if `rule` finds anything.
fn check(rule: impl Fn(&SourceFile) -> Vec<String>) {
    let found = findings(rule);
    assert!(found.is_empty(), "{found:#?}");
}

/// Returns the first lines of doc comments that open with a clause.
fn clause_openings(source: &SourceFile) -> Vec<String> {
    let mut openings = Vec::new();
    let mut in_comment = false;
    for line in source.text.lines() {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
        if let Some(comment) = comment.filter(|_| !in_comment) {
            let word = comment.split_whitespace().next().unwrap_or_default();
            let word = word.trim_matches(['`', '*', '_', ',']).to_lowercase();
            if CLAUSE_WORDS.contains(&word.as_str()) {
                openings.push(line.to_owned());
            }
        }
        in_comment = comment.is_some();
    }
    openings
}

/// Returns the comments at the beginning of a line, and doc comments, that open with a clause.
fn other_clause_openings(text: &str) -> Vec<String> {
    let mut openings = Vec::new();
    let mut in_comment = false;
    for line in text.lines() {
        let markers = ["-- ", "# ", "// ", "/* "].iter();
        let outer = markers.clone().find_map(|marker| line.strip_prefix(marker));
        let line = line.trim_start();
        let doc = line.strip_prefix("/** ").or(line.strip_prefix("\"\"\""));
        let comment = outer.or(doc).filter(|_| !in_comment);
        let word = comment.and_then(|comment| comment.split_whitespace().next());
        if word.is_some_and(|word| CLAUSE_WORDS.contains(&word.to_lowercase().as_str())) {
            openings.push(line.to_owned());
        }
        in_comment = outer.is_some();
    }
    openings
}

/// Returns the names of the types that a file of the product defines.
fn type_names(source: &SourceFile) -> Vec<String> {
    if source.is_test() {
        return Vec::new();
    }
    type_names_in(source.product_text())
}

fn type_names_in(text: &str) -> Vec<String> {
    let name = |line: &str| {
        // An indented `type` belongs to a trait, which chose its name.
        let indented = line.starts_with(' ');
        let mut words = line.split_whitespace().peekable();
        words.next_if(|word| word.starts_with("pub"));
        let keyword = words.next()?;
        let is_type = ["struct", "enum", "trait", "union"].contains(&keyword);
        if !is_type && (keyword != "type" || indented) {
            return None;
        }
        let rest = words.next()?;
        let end = rest.find(|letter: char| !letter.is_alphanumeric());
        let name = &rest[..end.unwrap_or(rest.len())];
        name.starts_with(char::is_uppercase)
            .then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// Returns the names of test functions.
fn test_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            let end = rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
            names.push(rest[..end.unwrap_or(rest.len())].to_owned());
            is_test = false;
        }
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    }
    names
}

fn is_one_word(name: &str) -> bool {
    name.chars().filter(|letter| letter.is_uppercase()).count() == 1
}

fn is_participle(name: &str) -> bool {
    let listed = |list: &str| list.split_whitespace().any(|word| word == name);
    let regular = name.ends_with("ed") || name.ends_with("ing");
    is_one_word(name)
        && !listed(PARTICIPLE_LOOKALIKES)
        && (regular || listed(IRREGULAR_PARTICIPLES))
}

#[test]
fn clause_opening_is_found_in_the_first_line_only() {
    let text = "/// What it does.\nfn a() {}\n/// Returns\n/// what it does.\nfn b() {}\n";
    let source = SourceFile {
        path: "a.rs".into(),
        text: text.into(),
    };
    assert_eq!(clause_openings(&source), ["/// What it does."]);
}

#[test]
fn clause_opening_of_another_language_is_found() {
    let text =
        "-- What it is.\n-- how\nCREATE;\n  -- Which is fine here\n  /** Whether it is. */\n";
    assert_eq!(
        other_clause_openings(text),
        ["-- What it is.", "/** Whether it is. */"]
    );
}

#[test]
fn type_names_exclude_associated_types_and_unit_tests() {
    let text = "pub(crate) struct Told<T>(T);\nimpl A for B {\n    type Error = C;\n}\n\
                enum TurnEnd {\n#[cfg(test)]\nmod tests {\nstruct Known;\n}\n";
    let source = SourceFile {
        path: "a.rs".into(),
        text: text.into(),
    };
    assert_eq!(type_names(&source), ["Told", "TurnEnd"]);
}

#[test]
fn participles_differ_from_nouns() {
    let names = ["Told", "Asked", "Holding", "Routing", "KeyUsed", "Agent"];
    assert_eq!(
        names.map(is_participle),
        [true, true, true, false, false, false]
    );
}
