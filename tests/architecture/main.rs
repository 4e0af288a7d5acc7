//! The invariants of docs/ARCHITECTURE.md that the compiler does not hold: who depends on whom,
//! what pure code knows, and that documents are true.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod documents;
mod layers;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below `folder`.
fn sources(folder: &str) -> Vec<PathBuf> {
    files(folder, "rs")
}

fn files(folder: &str, wanted: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == wanted) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no files *.{wanted}");
    found
}

/// The file without its comments and its tests, which may name what they like.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let mut code = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            // The item after it, which ends with a semicolon, or at a brace as far to the right as
            // the attribute.
            let indent = line.split('#').next().unwrap_or_default();
            let is_end = |line: &str| {
                let at_brace = line.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}'));
                at_brace || (line.ends_with(';') && line.len() - line.trim_start().len() == indent.len())
            };
            lines.find(|line| is_end(line));
        } else if !line.trim_start().starts_with("//") {
            code.push(line);
        }
    }
    code.join("\n")
}

#[test]
fn tests_are_left_out_item_by_item() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.rs");
    let text = "// a comment\n#[cfg(test)]\nmod model;\nstruct A;\nimpl A {\n    #[cfg(test)]\n    fn of() {\n        x;\n    }\n    fn b() {}\n}\n\
                #[cfg(test)]\nmod tests {\n    fn c() {}\n}\nfn d() {}\n";
    fs::write(&file, text).unwrap();
    assert_eq!(code(&file), "struct A;\nimpl A {\n    fn b() {}\n}\nfn d() {}");
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
}
