//! The source files of the workspace and the parts of their text that the rules look at.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders with Rust code of this project.
const ROOTS: [&str; 7] = [
    "src", "schemas", "backends", "ingress", "workers", "tests", "fuzz",
];

/// A Rust source file.
pub(crate) struct SourceFile {
    /// Path from the root of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// Returns true if the file contains tests only.
    pub(crate) fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| {
            let name = part.trim_end_matches(".rs");
            let folders = ["test", "tests", "testing", "conformance", "benches", "fuzz"];
            folders.contains(&name) || name.ends_with("_test") || name.ends_with("_tests")
        })
    }

    /// Returns the text without the unit tests at its end.
    pub(crate) fn product_text(&self) -> &str {
        let end = self.text.find("#[cfg(test)]\nmod tests {");
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// Returns true if the file is one of these, or below one of these folders.
    pub(crate) fn is_below(&self, places: &[&str]) -> bool {
        places.iter().any(|place| {
            let rest = self.path.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// Returns the root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files below a folder that have an extension.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "assets", "node_modules"].contains(&name.as_str()) {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns all Rust files of this project.
pub(crate) fn sources() -> Vec<SourceFile> {
    let paths = ROOTS.map(|folder| files(&root().join(folder), "rs"));
    let read = |path: PathBuf| SourceFile {
        path: relative(&path),
        text: fs::read_to_string(&path).unwrap(),
    };
    let sources: Vec<_> = paths.into_iter().flatten().map(read).collect();
    assert!(sources.len() > 50, "found only {} files", sources.len());
    sources
}

/// Returns what `rule` finds in each file, prefixed with the path.
pub(crate) fn findings(rule: impl Fn(&SourceFile) -> Vec<String>) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources() {
        let found = rule(&source).into_iter();
        findings.extend(found.map(|finding| format!("{}: {finding}", source.path)));
    }
    findings
}

fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap();
    path.to_string_lossy().replace('\\', "/")
}
