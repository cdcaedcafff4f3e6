//! The table of budgets, and the comparison with it.

use std::{collections::BTreeMap, process::ExitCode};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/budget.tsv");
const HEADER: &str = "load\tcount\tper chat\ttolerance %\n";
/// Tolerance of a new row.
const TOLERANCE_PERCENT: f64 = 5.0;
/// Rarer calls get no row of their own, because a few of them more are many percent.
const SMALLEST: f64 = 1.0;

type Row = (String, String);

/// Counts per chat, by load and name.
#[derive(Default)]
pub(crate) struct ChatCosts(BTreeMap<Row, f64>);

impl ChatCosts {
    pub(crate) fn add(&mut self, load: &str, count: &str, per_chat: f64) {
        self.0.insert((load.into(), count.into()), per_chat);
    }
}

/// Prints every row and fails if one is above its budget; rewrites the table if `UPDATE_BUDGET` is
/// 1.
pub(crate) fn check(costs: &ChatCosts) -> ExitCode {
    let budgets = read();
    if std::env::var("UPDATE_BUDGET").as_deref() == Ok("1") {
        write(costs, &budgets);
        return ExitCode::SUCCESS;
    }
    let mut failures = 0;
    for (row, (budget, tolerance)) in &budgets {
        let (load, count) = row;
        let per_chat = costs.0.get(row).copied().unwrap_or(0.0);
        let percent = 100.0 * (per_chat / budget - 1.0);
        let is_above = percent > *tolerance;
        failures += u32::from(is_above);
        let verdict = if is_above { "ABOVE BUDGET" } else { "" };
        println!("{load:8} {count:24} {per_chat:12.2} {percent:+7.1} % of {tolerance} % {verdict}");
    }
    if budgets.is_empty() || failures > 0 {
        println!("{failures} rows of {PATH} are above budget; UPDATE_BUDGET=1 accepts the counts");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn read() -> BTreeMap<Row, (f64, f64)> {
    let text = std::fs::read_to_string(PATH).unwrap_or_default();
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<_> = line.split('\t').collect();
        let [load, count, per_chat, tolerance] = cells[..] else {
            panic!("not a row of {PATH}: {line}");
        };
        let numbers = (per_chat.parse().unwrap(), tolerance.parse().unwrap());
        ((load.to_owned(), count.to_owned()), numbers)
    });
    rows.collect()
}

/// Writes the counts with the tolerances that the table has.
fn write(costs: &ChatCosts, budgets: &BTreeMap<Row, (f64, f64)>) {
    let mut text = HEADER.to_owned();
    for (row, per_chat) in &costs.0 {
        if *per_chat < SMALLEST && !budgets.contains_key(row) {
            continue;
        }
        let tolerance = budgets.get(row).map_or(TOLERANCE_PERCENT, |row| row.1);
        let (load, count) = row;
        text += &format!("{load}\t{count}\t{per_chat:.2}\t{tolerance}\n");
    }
    std::fs::write(PATH, &text).unwrap();
    print!("{text}");
}
