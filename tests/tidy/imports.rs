//! A rule for imports: rooms, which are the files and folders at the top of a crate, form no cycle.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{SourceFile, sources};

/// The rooms that each room imports.
type ImportGraph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn rooms_form_no_import_cycle() {
    for folder in [
        "schemas/src",
        "backends/src",
        "ingress/src",
        "workers/src",
        "src",
    ] {
        let cycles = cycles(&import_graph(folder, sources()));
        assert!(cycles.is_empty(), "{folder}: {cycles:?}");
    }
}

/// Returns the imports between the rooms of a crate. Tests may import anything, and everything may
/// import what the crate root itself defines.
fn import_graph(folder: &str, mut sources: Vec<SourceFile>) -> ImportGraph {
    sources.retain(|source| source.is_below(&[folder]) && !source.is_test());
    let (roots, sources): (Vec<_>, Vec<_>) = sources
        .into_iter()
        .partition(|source| ["lib", "main"].contains(&room(folder, source)));
    let rooms: BTreeSet<&str> = sources.iter().map(|source| room(folder, source)).collect();
    let mut graph = ImportGraph::new();
    for source in &sources {
        let from = room(folder, source);
        let text = with_absolute_paths(source, folder);
        for name in names_in_crate(&text) {
            // A name that the crate root exports stands for the room that it comes from.
            let to = rooms
                .get(name)
                .copied()
                .or_else(|| exporter(name, &roots, &rooms));
            if let Some(to) = to.filter(|to| *to != from) {
                graph
                    .entry(from.to_owned())
                    .or_default()
                    .insert(to.to_owned());
            }
        }
    }
    graph
}

/// Returns the file or folder at the top of a crate that a file belongs to.
fn room<'a>(folder: &str, source: &'a SourceFile) -> &'a str {
    let inner = &source.path[folder.len() + 1..];
    inner
        .split('/')
        .next()
        .unwrap_or(inner)
        .trim_end_matches(".rs")
}

/// Returns the code of a file in which paths of `super` that reach the crate root begin with
/// `crate`.
fn with_absolute_paths(source: &SourceFile, folder: &str) -> String {
    let inner = &source.path[folder.len() + 1..];
    let depth = inner.trim_end_matches("/mod.rs").split('/').count();
    let lines = source.product_text().lines();
    let code: Vec<_> = lines
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    code.join("\n").replace(&"super::".repeat(depth), "crate::")
}

/// Returns the first names of all paths that begin with `crate`.
fn names_in_crate(code: &str) -> BTreeSet<&str> {
    let paths = code.split("crate::").skip(1);
    paths.flat_map(first_names).collect()
}

/// Returns the name that a path begins with, or all such names of a group in braces.
fn first_names(path: &str) -> Vec<&str> {
    let name = |text| -> &str {
        let text: &str = text;
        let end = text.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
        &text[..end.unwrap_or(text.len())]
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut names = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (position, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(group[start..position].trim_start()));
                start = position + 1;
            }
            _ => {}
        }
        if letter == '}' && start > position {
            break;
        }
    }
    names
}

/// Returns the room from which a crate root re-exports a name.
fn exporter<'a>(name: &str, roots: &[SourceFile], rooms: &BTreeSet<&'a str>) -> Option<&'a str> {
    let exports = roots
        .iter()
        .flat_map(|root| root.product_text().split("use ").skip(1));
    let statements = exports.filter_map(|text| text.split(';').next());
    let mut from = statements.filter(|statement| {
        let mut words = statement.split(|letter: char| letter != '_' && !letter.is_alphanumeric());
        words.any(|word| word == name)
    });
    let path = from
        .next()?
        .trim_start_matches("crate::")
        .trim_start_matches("self::");
    let first = path.split("::").next()?;
    rooms.get(first).copied()
}

/// Returns the groups of rooms that reach each other.
fn cycles(graph: &ImportGraph) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<_, _> = graph
        .keys()
        .map(|room| (room, reachable(graph, room)))
        .collect();
    let group = |room: &String| -> BTreeSet<String> {
        let back = |other: &&String| reached.get(other).is_some_and(|rooms| rooms.contains(room));
        reached[room].iter().filter(back).cloned().collect()
    };
    let groups = graph.keys().map(group);
    groups.filter(|group| !group.is_empty()).collect()
}

fn reachable(graph: &ImportGraph, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(room) = open.pop() {
        for next in graph.get(room).into_iter().flatten() {
            if reached.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    reached
}

fn source(path: &str, text: &str) -> SourceFile {
    SourceFile {
        path: path.into(),
        text: text.into(),
    }
}

#[test]
fn grouped_nested_and_relative_imports_are_read() {
    let sources = vec![
        source("c/src/lib.rs", "mod a;\npub use a::Alpha;\n"),
        source(
            "c/src/a.rs",
            "use crate::{b::{self, c}, d::E};\n// crate::no\nfn f() {}\n",
        ),
        source("c/src/b/mod.rs", "use super::d::F;\nuse self::g::H;\n"),
        source(
            "c/src/b/g.rs",
            "use super::I;\nuse super::super::e::{J, K};\n",
        ),
        source(
            "c/src/d.rs",
            "use crate::Alpha;\n#[cfg(test)]\nmod tests {\nuse crate::b;\n}\n",
        ),
        source("c/src/e.rs", ""),
    ];
    let graph = import_graph("c/src", sources);
    let graph: Vec<_> = graph
        .iter()
        .map(|(from, to)| {
            format!(
                "{from}: {}",
                to.iter().cloned().collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    assert_eq!(graph, ["a: b d", "b: d e", "d: a"]);
}

#[test]
fn cycle_lists_the_rooms_that_reach_each_other() {
    let edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")];
    let mut graph = ImportGraph::new();
    for (from, to) in edges {
        graph.entry(from.into()).or_default().insert(to.into());
    }
    let expected = BTreeSet::from([BTreeSet::from(["b".to_owned(), "c".to_owned()])]);
    assert_eq!(cycles(&graph), expected);
}
