//! `make eval-routing`: prints how well the router by intent chooses on labeled sets.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "it prints its results and stops at the first error"
)]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use switchboard_workers::evaluation::{
    AvailableModels, EvaluatedDecision, LabeledSet, RoutingEvaluation, VisitorMessageKind,
};

/// The labeled parts with a note for the headline.
const PARTS: [(&str, &str); 2] = [
    ("tuning", "weights were fitted on it"),
    ("held_out", "never tuned on"),
];
/// Percentile of the printed decision time.
const PERCENTILE: usize = 95;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let directory = variable("SWITCHBOARD_TEST_EMBEDDINGS")
        .expect("SWITCHBOARD_TEST_EMBEDDINGS names no sentence-transformers directory: make eval-routing fetches one");
    let local = AvailableModels {
        embedding_model_dir: Some(directory),
        ..AvailableModels::default()
    };
    let mut ways = vec![
        ("words only", AvailableModels::default()),
        ("words and vectors", local.clone()),
    ];
    if let Some(directory) = variable("SWITCHBOARD_TEST_MULTILINGUAL") {
        ways.push((
            "words and vectors of many languages",
            AvailableModels {
                embedding_model_dir: Some(directory),
                ..AvailableModels::default()
            },
        ));
    }
    if let Some(base_url) = variable("SWITCHBOARD_TEST_EMBEDDINGS_URL") {
        ways.push((
            "words and vectors of a provider",
            AvailableModels {
                embeddings: Some((base_url, "e5-query".into())),
                ..AvailableModels::default()
            },
        ));
    }
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if let Some(base_url) = variable("SWITCHBOARD_TEST_MODEL") {
        ways.push((
            "with a model",
            AvailableModels {
                model: Some((base_url, "test".into())),
                ..local
            },
        ));
    }
    for (part, note) in parts(&asked) {
        let sets = sets(&part);
        for (way, means) in &ways {
            println!("\n=== {part} ({note}), {way}");
            let outcomes = runtime.block_on(async {
                let evaluation = RoutingEvaluation::new(means).unwrap();
                let mut outcomes = Vec::new();
                for set in &sets {
                    outcomes.extend(evaluation.run(set).await);
                }
                outcomes
            });
            print(&outcomes);
        }
    }
}

/// Returns both parts and the folder of public sets, or the requested ones; any other name is a
/// folder of the caller's own sets.
fn parts(asked: &[String]) -> Vec<(String, &'static str)> {
    let note = |name: &str| {
        PARTS
            .iter()
            .find(|(part, _)| *part == name)
            .map_or("yours", |(_, note)| *note)
    };
    let of_ours = PARTS.iter().map(|(part, _)| (*part).to_owned());
    let names: Vec<String> = if asked.is_empty() {
        of_ours
            .chain(variable("SWITCHBOARD_TEST_PUBLIC_SETS"))
            .collect()
    } else {
        asked.to_vec()
    };
    names
        .into_iter()
        .map(|name| (name.clone(), note(&name)))
        .collect()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn sets(part: &str) -> Vec<LabeledSet> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/routing")
        .join(part);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap())
        .collect()
}

fn print(outcomes: &[EvaluatedDecision]) {
    println!(
        "{:24}{:>9} {:>8} {:>12} {:>10} {:>11} {:>12} {:>9}",
        "", "messages", "right", "right first", "nobody", "slots moved", "others moved", "changes"
    );
    row("all", &outcomes.iter().collect::<Vec<_>>());
    for (name, of) in grouped(outcomes, |outcome| {
        format!("{:?}", outcome.manner).to_lowercase()
    }) {
        row(&name, &of);
    }
    for (name, of) in grouped(outcomes, |outcome| {
        format!("{:?} {}", outcome.manner, outcome.language).to_lowercase()
    }) {
        row(&name, &of);
    }
    for (name, of) in grouped(outcomes, |outcome| outcome.team.clone()) {
        row(&name, &of);
    }
    print_calibration(outcomes);
    print_confidence(outcomes);
    let mut stages = BTreeMap::new();
    for outcome in outcomes {
        *stages.entry(outcome.stage).or_insert(0) += 1;
    }
    let mut took: Vec<Duration> = outcomes.iter().map(|outcome| outcome.took).collect();
    took.sort();
    println!(
        "decided by {stages:?}; p95 {:.1} ms",
        took[took.len() * PERCENTILE / 100].as_secs_f64() * 1000.0
    );
}

/// Prints the accuracy by score, which equals the score if the scores are well calibrated.
fn print_calibration(outcomes: &[EvaluatedDecision]) {
    let openings: Vec<&EvaluatedDecision> = outcomes
        .iter()
        .filter(|outcome| is_opening(outcome))
        .collect();
    let by_share = |bounds: &[f32]| {
        let of: Vec<_> = openings
            .iter()
            .filter(|outcome| (bounds[0]..bounds[1]).contains(&outcome.share))
            .copied()
            .collect();
        format!(
            "{}: {} of {}",
            bounds[0],
            share(&of, |outcome| outcome.is_right),
            of.len()
        )
    };
    let lines: Vec<String> = [0.0, 0.4, 0.6, 0.8, 0.9, 1.1]
        .windows(2)
        .map(by_share)
        .collect();
    println!("right from a share of {}", lines.join("; "));
}

/// Prints the confidence of the local stage: of all openings, of English and of other ones, and of
/// each team.
fn print_confidence(outcomes: &[EvaluatedDecision]) {
    println!(
        "{:24}{:>9} {:>12} {:>12} {:>13} {:>12} {:>9}",
        "openings",
        "messages",
        "ask a model",
        "local right",
        "certain wrong",
        "nobody found",
        "lost"
    );
    let openings: Vec<_> = outcomes
        .iter()
        .filter(|outcome| is_opening(outcome))
        .collect();
    confidence_row("all", &openings);
    let by_language = |english: bool| -> Vec<_> {
        let is_meant = |outcome: &&&EvaluatedDecision| (outcome.language == "en") == english;
        openings.iter().filter(is_meant).copied().collect()
    };
    confidence_row("English", &by_language(true));
    confidence_row("other languages", &by_language(false));
    for (team, of) in grouped(outcomes, |outcome| outcome.team.clone()) {
        let openings = of.into_iter().filter(|outcome| is_opening(outcome));
        confidence_row(&team, &openings.collect::<Vec<_>>());
    }
}

/// Prints one row: the share for which a model would be asked, of right decisions among the others,
/// of wrong decisions for which no model would be asked, of recognized messages that are out of
/// scope, and of messages in scope that the default agent got.
fn confidence_row(name: &str, openings: &[&EvaluatedDecision]) {
    let of = |holds: fn(&EvaluatedDecision) -> bool| -> Vec<_> {
        openings
            .iter()
            .filter(|outcome| holds(outcome))
            .copied()
            .collect()
    };
    println!(
        "{name:24}{:>9} {:>12} {:>12} {:>13} {:>12} {:>9}",
        openings.len(),
        share(openings, |outcome| !outcome.is_sure),
        share(&of(|outcome| outcome.is_sure), |outcome| outcome.is_right),
        share(openings, |outcome| outcome.is_sure && !outcome.is_right),
        share(&of(|outcome| outcome.expects_nobody), |outcome| outcome
            .is_right),
        share(&of(|outcome| !outcome.expects_nobody), |outcome| outcome
            .chose_default),
    );
}

/// Returns true for a message that opens a conversation.
fn is_opening(outcome: &EvaluatedDecision) -> bool {
    matches!(outcome.kind, None | Some(VisitorMessageKind::Opening))
}

fn grouped(
    outcomes: &[EvaluatedDecision],
    by: impl Fn(&EvaluatedDecision) -> String,
) -> BTreeMap<String, Vec<&EvaluatedDecision>> {
    let mut groups: BTreeMap<String, Vec<&EvaluatedDecision>> = BTreeMap::new();
    for outcome in outcomes {
        groups.entry(by(outcome)).or_default().push(outcome);
    }
    groups
}

/// Prints one row. Of messages that open a conversation: the share of right choices; of those in
/// scope, the share for which the labeled member had the highest score; of those out of scope, the
/// share of right choices. Of later turns: the shares of slot answers and of other turns that moved
/// by mistake, of changes that moved, of changes that moved to the labeled member, and of changes
/// that moved or for which a model would be asked.
fn row(name: &str, outcomes: &[&EvaluatedDecision]) {
    let of = |kinds: &[VisitorMessageKind]| -> Vec<&EvaluatedDecision> {
        outcomes
            .iter()
            .filter(|outcome| outcome.kind.is_some_and(|kind| kinds.contains(&kind)))
            .copied()
            .collect()
    };
    let messages: Vec<_> = outcomes
        .iter()
        .filter(|outcome| is_opening(outcome))
        .copied()
        .collect();
    let nobody: Vec<_> = messages
        .iter()
        .filter(|outcome| outcome.expects_nobody)
        .copied()
        .collect();
    let fitting: Vec<_> = messages
        .iter()
        .filter(|outcome| !outcome.expects_nobody)
        .copied()
        .collect();
    let (slots, others, changes) = (
        of(&[VisitorMessageKind::Slot]),
        of(&[VisitorMessageKind::FollowUp, VisitorMessageKind::Digression]),
        of(&[VisitorMessageKind::Change]),
    );
    println!(
        "{name:24}{:>9} {:>8} {:>12} {:>10} {:>11} {:>12} {:>9}, {} right, {} moved or asked",
        messages.len(),
        share(&messages, |outcome| outcome.is_right),
        share(&fitting, |outcome| outcome.is_first),
        share(&nobody, |outcome| outcome.is_right),
        share(&slots, |outcome| outcome.moved),
        share(&others, |outcome| outcome.moved),
        share(&changes, |outcome| outcome.moved),
        share(&changes, |outcome| outcome.is_right),
        share(&changes, |outcome| outcome.moved || !outcome.is_sure),
    );
}

fn share(outcomes: &[&EvaluatedDecision], holds: impl Fn(&EvaluatedDecision) -> bool) -> String {
    let count = outcomes.iter().filter(|outcome| holds(outcome)).count();
    match outcomes.len() {
        0 => "-".into(),
        all => format!("{:.1} %", 100.0 * count as f64 / all as f64),
    }
}
