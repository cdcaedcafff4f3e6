//! Checks that the labeled sets of `make eval-routing` are large, consistent and disjoint.

#![expect(clippy::unwrap_used, reason = "an unreadable set fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

const MESSAGES_MIN: usize = 400;
const TEAMS_MIN: usize = 8;
const LANGUAGES_MIN: usize = 6;
const DIALOGUES_MIN: usize = 80;
/// Words of the shortest message that must not be in both parts; greetings and thanks may be.
const TELLING_WORDS_MIN: usize = 6;

fn part(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/routing")
        .join(name);
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap())
        .collect()
}

fn both() -> Vec<Value> {
    [part("tuning"), part("held_out")].concat()
}

fn rows<'a>(set: &'a Value, field: &str) -> &'a [Value] {
    set[field].as_array().unwrap()
}

fn visitor_turns(set: &Value) -> impl Iterator<Item = &Value> {
    let turns = rows(set, "dialogues")
        .iter()
        .flat_map(|dialogue| rows(dialogue, "turns"));
    turns.filter(|turn| turn.get("visitor").is_some())
}

#[test]
fn labeled_sets_are_large_and_varied() {
    let sets = both();
    let count = |field: &str| sets.iter().map(|set| rows(set, field).len()).sum::<usize>();
    let languages: BTreeSet<&str> = sets
        .iter()
        .flat_map(|set| rows(set, "messages"))
        .map(|message| message["language"].as_str().unwrap())
        .collect();
    assert!(count("messages") >= MESSAGES_MIN && count("dialogues") >= DIALOGUES_MIN);
    assert!(
        sets.len() >= TEAMS_MIN && languages.len() >= LANGUAGES_MIN,
        "{languages:?}"
    );
    let mut kinds = BTreeMap::new();
    for turn in sets.iter().flat_map(visitor_turns) {
        *kinds.entry(turn["kind"].as_str().unwrap()).or_insert(0) += 1;
    }
    let known: Vec<&str> = kinds.keys().copied().collect();
    assert_eq!(
        known,
        ["change", "digression", "follow-up", "opening", "slot"],
        "{kinds:?}"
    );
}

#[test]
fn label_names_a_member_or_the_default_agent() {
    for set in both() {
        let members: BTreeSet<&str> = rows(&set["team"], "members")
            .iter()
            .map(|member| member["slug"].as_str().unwrap())
            .collect();
        let default = set["team"]["defaultAgent"].as_str().unwrap();
        assert!(!members.contains(default), "{default}");
        for labeled in rows(&set, "messages").iter().chain(visitor_turns(&set)) {
            let expect = labeled["expect"].as_str().unwrap();
            assert!(expect == default || members.contains(expect), "{labeled}");
        }
    }
}

/// The held-out part is meaningful only if the tuning part has none of its messages.
#[test]
fn tuning_and_held_out_parts_share_no_message() {
    let texts = |name: &str| -> BTreeSet<String> {
        let sets = part(name);
        let messages = sets
            .iter()
            .flat_map(|set| rows(set, "messages"))
            .map(|message| &message["text"]);
        let turns = sets
            .iter()
            .flat_map(visitor_turns)
            .map(|turn| &turn["visitor"]);
        let words = |text: &Value| -> Vec<String> {
            let text = text.as_str().unwrap().to_lowercase();
            text.split(|character: char| !character.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(Into::into)
                .collect()
        };
        messages
            .chain(turns)
            .map(words)
            .filter(|words| words.len() >= TELLING_WORDS_MIN)
            .map(|words| words.join(" "))
            .collect()
    };
    let (tuning, held_out) = (texts("tuning"), texts("held_out"));
    let shared: Vec<_> = tuning.intersection(&held_out).collect();
    assert!(shared.is_empty(), "{shared:?}");
}
