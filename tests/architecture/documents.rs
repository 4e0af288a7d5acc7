//! Documents: what they name exists, and what they promise is held by a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use advisor_core::plan::status::size::STATUS_LIMIT;
use advisor_engine::registry::PROFILES;
use object::limits;

use crate::{files, root, sources};

/// The text of all Rust files.
fn all_code() -> String {
    let files = ["src", "crates", "machines", "profiles", "tests"].iter().flat_map(|folder| sources(folder));
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The rows of all tables in `text`, without their heads.
fn rows(text: &str) -> Vec<&str> {
    let lines: Vec<_> = text.lines().collect();
    let is_rule = |line: &str| line.starts_with("| ---");
    let of_body = lines.iter().enumerate().filter(|(index, line)| {
        let is_head = lines.get(index + 1).is_some_and(|next| is_rule(next));
        line.starts_with('|') && !is_rule(line) && !is_head
    });
    of_body.map(|(_, line)| *line).collect()
}

/// The model promises nothing that no test holds.
#[test]
fn every_statement_of_the_security_model_is_held_by_a_test_that_exists() {
    let text = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let all = all_code();
    let mut held = 0;
    for row in rows(&text) {
        let tests = named_tests(row, &all);
        assert!(tests > 0, "no test holds: {row}");
        held += tests;
    }
    assert!(held > 40, "{held} tests are named");
}

/// The bounds that the model lists are those of the code.
#[test]
fn the_security_model_names_the_bounds_of_the_code() {
    let text = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let bounds: Vec<_> = text.split("| bound |").nth(1).unwrap().lines().collect();
    let number = |number: usize| {
        let digits = number.to_string();
        let parts: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|part| String::from_utf8_lossy(part)).collect();
        parts.join(",")
    };
    let kibibytes = |bytes: usize| format!("{} KiB", bytes / 1024);
    for (bound, stated) in [
        ("nesting of an answer", format!("{} levels", limits::WIRE_DEPTH)),
        ("nesting of a target", format!("{} levels", limits::OBJECT_DEPTH)),
        ("an object after", format!("{} bytes", number(limits::OBJECT_SIZE))),
        ("`spec`", kibibytes(limits::SPEC_SIZE)),
        ("operations", number(limits::OPERATIONS)),
        ("ignored fields", format!("{} pointers", number(limits::POINTERS))),
        ("a pointer", format!("{} bytes", number(limits::POINTER_SIZE))),
        ("an annotation", kibibytes(limits::ANNOTATION_SIZE)),
        ("objects that", number(limits::EXCLUSIONS)),
        ("words", kibibytes(limits::WORDS)),
        ("the status", kibibytes(STATUS_LIMIT)),
    ] {
        let row = bounds.iter().find(|line| line.starts_with(&format!("| {bound}"))).expect(bound);
        assert_eq!(row.split('|').nth(2).unwrap().trim(), stated, "{row}");
    }
}

#[test]
fn every_case_is_held_by_a_test_that_exists() {
    let text = fs::read_to_string(root().join("docs/TESTING.md")).unwrap();
    let table = text.split("## Cases").nth(1).unwrap();
    let all = all_code();
    let mut held = 0;
    for row in
        table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| case") && !line.starts_with("| ---"))
    {
        held += named_tests(row, &all);
    }
    assert!(held > 15, "{held} tests are named");
}

/// T3: whatever somebody may edit between reading and approving is in the digest, compared, or left
/// out for a reason.
#[test]
fn t3_the_table_of_what_an_approval_covers_has_every_field_of_spec() {
    let text = fs::read_to_string(root().join("docs/PLAN.md")).unwrap();
    let table = text.split("## What an approval covers").nth(1).unwrap().split("\n## ").next().unwrap();
    let crd = serde_json::to_value(advisor_core::api::crd(PROFILES)).unwrap();
    let fields = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties").unwrap();
    for field in fields.as_object().unwrap().keys() {
        let row = table.lines().find(|line| line.starts_with(&format!("| `spec.{field}` |")));
        let columns: Vec<_> = row.map(|row| row.split('|').skip(2).map(str::trim).collect()).unwrap_or_default();
        assert!(
            columns.iter().any(|column| !column.is_empty()),
            "docs/PLAN.md does not say how spec.{field} is approved"
        );
    }
}

/// Prose is read at any width: comments and documents are wrapped, but for tables, drawings,
/// addresses, and texts that become one paragraph elsewhere (help, descriptions of the CRD).
#[test]
fn prose_is_wrapped_at_a_hundred_columns() {
    const WIDTH: usize = 100;
    let generated = ["METRICS.md", "releases.md", "virt-platform-baseline.md"];
    let mut long = Vec::new();
    let mut check = |path: &Path, number: usize, line: &str| {
        let is_drawn = ["|", "──", "◄", "►", "://"].iter().any(|mark| line.contains(mark));
        if line.chars().count() > WIDTH && !is_drawn {
            long.push(format!("{}:{}", path.display(), number + 1));
        }
    };
    let elsewhere = [
        "crates/core/src/api",
        "crates/operator-kit/src/flags.rs",
        "machines/api/src",
        "machines/operator/src/cli",
        "src/cli",
    ]
    .map(|folder| root().join(folder));
    for path in ["src", "crates", "machines", "profiles", "tests", "xtask"].iter().flat_map(|folder| sources(folder)) {
        let becomes_text =
            elsewhere.iter().any(|folder| path.starts_with(folder)) || path.to_string_lossy().contains("options");
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//")) {
            if !(becomes_text && line.trim_start().starts_with("///")) {
                check(&path, number, line);
            }
        }
    }
    for path in documents().filter(|path| !generated.iter().any(|name| path.ends_with(name))) {
        let text = fs::read_to_string(&path).unwrap();
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            if !in_code {
                check(&path, number, line);
            }
        }
    }
    assert!(long.is_empty(), "wrap these at {WIDTH} columns: {long:#?}");
}

/// Files and folders that documents and comments name are there.
#[test]
fn every_path_that_is_named_exists() {
    let code = ["src", "crates", "machines", "profiles", "tests", "xtask"].iter().flat_map(|folder| sources(folder));
    let (mut named, mut missing) = (0, Vec::new());
    for path in documents().chain(code) {
        let text = fs::read_to_string(&path).unwrap();
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
        for line in text.lines().filter(|line| !is_code || line.trim_start().starts_with("//")) {
            let words = line.split(|c: char| c.is_whitespace() || "`()[]<>\"',;:|*".contains(c));
            for word in words.map(|word| word.trim_end_matches('.')) {
                let is_ours =
                    ["src/", "crates/", "tests/", "docs/", "config/"].iter().any(|folder| word.starts_with(folder));
                let is_pattern = word.contains(['*', '{', '…', '$']) || word.contains("NAME") || word.contains("/...");
                if !is_ours
                    || word.starts_with("config/v")
                    || is_pattern
                    || word.ends_with('/') && word.matches('/').count() == 1
                {
                    continue;
                }
                // Of a crate, its own files may be named from its root.
                let is_there = path.ancestors().any(|folder| folder.starts_with(root()) && folder.join(word).exists());
                if !is_there {
                    missing.push(format!("{} names {word}", path.display()));
                }
                named += 1;
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 100, "{named} paths are named");
}

/// How many tests the last column of a table's row names. All of them are functions in `code`.
fn named_tests(row: &str, code: &str) -> usize {
    let tests = row.split('|').rev().nth(1).unwrap_or_default();
    let missing = |test: &str| assert!(code.contains(&format!("fn {test}(")), "{test} does not exist: {row}");
    tests.split('`').skip(1).step_by(2).map(missing).count()
}

/// Every document that people read.
fn documents() -> impl Iterator<Item = PathBuf> {
    let at_root = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|file| root().join(file));
    ["docs", "profiles", "tests"].iter().flat_map(|folder| files(folder, "md")).chain(at_root)
}

/// A command that is not there is worse than none.
#[test]
fn every_target_of_make_that_is_named_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: BTreeSet<_> = makefile.lines().filter_map(|line| line.strip_prefix(".PHONY: ")).collect();
    let code = ["src", "crates", "machines", "profiles", "tests", "xtask"].iter().flat_map(|folder| sources(folder));
    let (mut named, mut missing) = (0, Vec::new());
    for path in documents().chain(code) {
        let text = fs::read_to_string(&path).unwrap();
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
        for line in text.lines().filter(|line| !is_code || line.trim_start().starts_with("//")) {
            for after in line.split("`make ").skip(1).chain(line.strip_prefix("make ")) {
                let words = after.split(['`', '#']).next().unwrap_or_default().split_whitespace();
                for target in words.take_while(|word| *word != "&&").filter(|word| !word.contains('=')) {
                    named += 1;
                    if !targets.contains(target) {
                        missing.push(format!("{} names make {target}", path.display()));
                    }
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 30, "{named} targets are named");
}
