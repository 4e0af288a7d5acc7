//! The invariants of docs/ARCHITECTURE.md that the compiler does not hold: who depends on whom, and what pure code knows.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use advisor_core::plan::status::size::STATUS_LIMIT;
use advisor_engine::registry::PROFILES;
use object::limits;
use serde_json::Value;

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
            // The item after it, which ends with a semicolon, or at a brace as far to the right as the attribute.
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

fn dependencies() -> Vec<(String, Vec<(String, bool)>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let dependencies = dependencies.map(|found| (text(&found["name"]), found["kind"].is_null()));
            (text(&package["name"]), dependencies.collect())
        })
        .collect()
}

#[test]
fn profiles_depend_on_the_sdk_and_nothing_else_of_ours() {
    let packages = dependencies();
    let ours: BTreeSet<_> = packages.iter().map(|(name, _)| name.clone()).collect();
    let profiles: BTreeSet<_> = PROFILES.iter().map(|profile| profile.about().name.to_owned()).collect();
    for (name, dependencies) in packages.iter().filter(|(name, _)| profiles.contains(name)) {
        let of_ours: Vec<_> = dependencies.iter().map(|(name, _)| name).filter(|name| ours.contains(*name)).collect();
        assert_eq!(of_ours, ["profile-sdk"], "{name}");
    }
    let (_, sdk) = packages.iter().find(|(name, _)| name == "profile-sdk").unwrap();
    for (dependency, _) in sdk {
        assert!(!ours.contains(dependency), "profile-sdk depends on {dependency}");
        assert!(!["kube", "k8s-openapi", "tokio"].contains(&dependency.as_str()), "profile-sdk knows {dependency}");
    }
}

/// What only operators link: a command line plugin needs none of it.
const OF_OPERATORS: &[&str] =
    &["clap", "nix", "rcgen", "axum", "opentelemetry", "prometheus-client", "tracing-subscriber", "operator-kit"];

/// The crates are layers: each knows those below it, and nothing that only a layer above may use.
#[test]
fn crates_depend_downwards_only() {
    let packages = dependencies();
    let ours: BTreeSet<_> = packages.iter().map(|(name, _)| name.as_str()).collect();
    let profiles = PROFILES.iter().map(|profile| profile.about().name);
    let engine = profiles.chain(["advisor-object", "advisor-core", "advisor-cluster", "profile-sdk"]).collect();
    let layers: [(&str, BTreeSet<&str>, &[&str]); 5] = [
        ("advisor-object", BTreeSet::new(), &["kube", "k8s-openapi", "tokio", "hyper", "tower", "futures", "http"]),
        (
            "advisor-core",
            ["advisor-object", "profile-sdk"].into(),
            &["tokio", "hyper", "tower", "futures", "http", "tracing"],
        ),
        ("advisor-cluster", ["advisor-object", "profile-sdk"].into(), OF_OPERATORS),
        ("operator-kit", ["advisor-object", "advisor-cluster"].into(), &[]),
        ("advisor-engine", engine, OF_OPERATORS),
    ];
    for (layer, below, forbidden) in layers {
        let (_, of_layer) = packages.iter().find(|(name, _)| name == layer).unwrap();
        for (name, _) in of_layer.iter().filter(|(_, is_shipped)| *is_shipped) {
            assert!(!ours.contains(name.as_str()) || below.contains(name.as_str()), "{layer} depends on {name}");
            assert!(!forbidden.contains(&name.as_str()), "{layer} depends on {name}");
        }
    }
    let manifest = fs::read_to_string(root().join("crates/core/Cargo.toml")).unwrap();
    assert!(!manifest.contains("\"client\""), "the core has no client");
}

#[test]
fn the_operator_does_not_ship_what_only_tests_need() {
    let packages = dependencies();
    let (_, operator) = packages.iter().find(|(name, _)| name == "virt-advisor").unwrap();
    for dev_only in [
        "controlplane",
        "descheduler-simulator",
        "hco-simulator",
        "mco-simulator",
        "node-healthcheck-simulator",
        "demo",
        "bench",
    ] {
        assert!(!operator.contains(&(dev_only.to_owned(), true)), "{dev_only} is a dependency of the operator");
    }
}

#[test]
fn pure_code_knows_no_client_no_clock_and_no_async() {
    let forbidden = [
        "kube::Client",
        "kube::Api",
        "kube::api::Api",
        "kube::client",
        "kube::runtime",
        "async fn",
        ".await",
        "tokio::",
        "Timestamp::now",
        "SystemTime",
        "Instant",
        "std::fs",
        "std::net",
        "std::env",
        "advisor_engine",
        "virt_advisor",
    ];
    let pure = ["crates/object/src", "crates/core/src", "profiles"];
    for path in pure.iter().flat_map(|folder| sources(folder)) {
        let code = code(&path);
        for word in forbidden {
            assert!(!code.contains(word), "{} is pure and names {word}", path.display());
        }
    }
}

#[test]
fn the_core_names_no_profile_and_no_kind_of_others() {
    let mut words: Vec<&str> = vec!["MachineConfig", "KubeletConfig", "HyperConverged", "KubeDescheduler"];
    for profile in PROFILES {
        words.extend([profile.about().name, profile.about().options_key]);
        words.extend(
            profile
                .kinds()
                .iter()
                .map(|declared| declared.kind)
                // Kinds of Kubernetes itself are on every cluster.
                .filter(|kind| !kind.group.is_empty() && !kind.group.ends_with(".k8s.io"))
                .map(|kind| kind.kind),
        );
    }
    // What is special about pools lives in one module, behind a trait.
    let special = root().join("crates/core/src/rollout");
    let core = ["crates", "src/controller"];
    for path in core.iter().flat_map(|folder| sources(folder)) {
        if path.starts_with(&special) || is_test(&path) {
            continue;
        }
        let code = code(&path).replace("MachineConfigPools", "");
        for word in &words {
            assert!(!code.contains(word), "{} names {word}", path.display());
        }
    }
}

#[test]
fn every_file_says_what_it_owns_and_stays_readable() {
    for path in ["src", "crates", "profiles", "tests"].iter().flat_map(|folder| sources(folder)) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} does not open with what it owns", path.display());
        let lines = text.lines().count();
        assert!(lines <= 600, "{} has {lines} lines: it is more than one idea", path.display());
    }
}

#[test]
fn every_profile_is_complete() {
    let mut names = BTreeSet::new();
    for profile in PROFILES {
        let about = profile.about();
        let folder = root().join("profiles").join(about.name);
        for file in ["README.md", "OWNERS", "Cargo.toml"] {
            assert!(folder.join(file).is_file(), "{} has no {file}", about.name);
        }
        assert!(names.insert(about.name) && names.insert(about.options_key), "{} is there twice", about.name);
        assert!(
            about.name.len() <= 63
                && about.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        );
        assert!(
            !about.description.is_empty() && about.description.len() <= 200,
            "{}: {}",
            about.name,
            about.description
        );
        assert!(profile.configure(None).is_ok(), "{} has no valid defaults", about.name);
        let owners = fs::read_to_string(root().join("CODEOWNERS")).unwrap();
        assert!(owners.contains(&format!("/profiles/{}/", about.name)), "{} is not in CODEOWNERS", about.name);
    }
}

/// The text of all Rust files.
fn all_code() -> String {
    let files = ["src", "crates", "profiles", "tests"].iter().flat_map(|folder| sources(folder));
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
        let tests = row.split('|').rev().nth(1).unwrap_or_default();
        let tests: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test holds: {row}");
        for test in tests {
            assert!(all.contains(&format!("fn {test}(")), "{test} does not exist: {row}");
            held += 1;
        }
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
        let tests = row.split('|').rev().nth(1).unwrap_or_default();
        for test in tests.split('`').skip(1).step_by(2) {
            assert!(all.contains(&format!("fn {test}(")), "{test} does not exist: {row}");
            held += 1;
        }
    }
    assert!(held > 15, "{held} tests are named");
}

/// Defect D1: whoever takes our manifests away again takes no namespace with them, which may be that of KubeVirt itself.
#[test]
fn d1_no_manifest_of_ours_holds_a_namespace() {
    for path in files("config", "yaml") {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.lines().any(|line| line.trim() == "kind: Namespace"), "{}", path.display());
    }
}

/// T3: whatever somebody may edit between reading and approving is in the digest, compared, or left out for a reason.
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

/// Going back from Apply is free of the approver's right only as long as nothing else is edited with it: a field that the policy does
/// not compare could be slipped in.
#[test]
fn the_approval_policy_compares_every_field_of_spec() {
    let policy = fs::read_to_string(root().join("config/approval/policy.yaml")).unwrap();
    let crd = serde_json::to_value(advisor_core::api::crd(PROFILES)).unwrap();
    let fields = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties").unwrap();
    for field in fields.as_object().unwrap().keys().filter(|field| *field != "action") {
        let compared = ["", "?"]
            .iter()
            .any(|mark| policy.contains(&format!("&& object.spec.{mark}{field} == oldObject.spec.{mark}{field}\n")));
        assert!(compared, "spec.{field} is not compared by config/approval/policy.yaml");
    }
}

/// T16: a tag can be moved to other code, a commit can't.
#[test]
fn t16_every_action_of_ci_is_pinned_by_its_commit_and_names_its_release() {
    let mut used = 0;
    for path in files(".github/workflows", "yaml") {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, action)| action) {
            let (commit, release) =
                line.split_once('@').and_then(|(_, pinned)| pinned.split_once(" # v")).unwrap_or_default();
            let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
            assert!(is_commit && !release.is_empty(), "{}: {line}", path.display());
            used += 1;
        }
    }
    assert!(used > 0);
}

/// Files and folders that documents and comments name are there.
#[test]
fn every_path_that_is_named_exists() {
    let documents = ["docs", "profiles", "tests"].iter().flat_map(|folder| files(folder, "md"));
    let at_root = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|file| root().join(file));
    let code = ["src", "crates", "profiles", "tests", "xtask"].iter().flat_map(|folder| sources(folder));
    let (mut named, mut missing) = (0, Vec::new());
    for path in documents.chain(at_root).chain(code) {
        let text = fs::read_to_string(&path).unwrap();
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
        for line in text.lines().filter(|line| !is_code || line.trim_start().starts_with("//")) {
            let words = line.split(|c: char| c.is_whitespace() || "`()[]<>\"',;:|*".contains(c));
            for word in words.map(|word| word.trim_end_matches('.')) {
                let is_ours = ["src/", "crates/", "tests/", "docs/", "config/", "facts/"]
                    .iter()
                    .any(|folder| word.starts_with(folder));
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

/// The rooms of a plan, lowest first: each imports only those before it.
#[test]
fn the_rooms_of_a_plan_are_a_stair() {
    const STAIR: [&str; 12] = [
        "wire",
        "remedy",
        "target",
        "guard",
        "overrides",
        "items",
        "hash",
        "figures",
        "decision",
        "status",
        "check_drafts",
        "offline",
    ];
    let plan = root().join("crates/core/src/plan");
    let step = |room: &str| STAIR.iter().position(|other| *other == room);
    let mut steps = 0;
    for path in sources("crates/core/src/plan").iter().filter(|path| !is_test(path)) {
        let room = path.strip_prefix(&plan).unwrap().iter().next().unwrap().to_string_lossy().replace(".rs", "");
        // The model check is a test, and so are the cases of decisions.
        let Some(own) = step(&room).filter(|_| !path.starts_with(plan.join("decision/decide"))) else {
            assert!(
                ["mod", "model", "digest_vectors", "decision"].contains(&room.as_str()),
                "{room} has no place on the stair"
            );
            continue;
        };
        for imported in code(path).split("crate::plan::").skip(1) {
            let name = imported.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
            let Some(of) = step(name) else { continue };
            assert!(of <= own, "{} imports {name}, which is above it", path.display());
            steps += 1;
        }
    }
    assert!(steps > 40, "{steps} imports between rooms");
}

/// One word, one thing: two types of one name are told apart by nobody who greps.
#[test]
fn a_type_has_a_name_of_its_own() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in ["src", "crates", "profiles"].iter().flat_map(|folder| sources(folder)).filter(|path| !is_test(path)) {
        // The model check and the tests of a crate have a world of their own.
        if path.components().any(|part| part.as_os_str() == "model" || part.as_os_str() == "tests") {
            continue;
        }
        for line in code(&path).lines() {
            let item =
                line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
            let mut words = item.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            if ["struct", "enum", "trait", "type"].contains(&words.next().unwrap_or_default()) {
                let name = words.next().unwrap_or_default().to_owned();
                places.entry(name).or_default().insert(path.display().to_string());
            }
        }
    }
    let twice: Vec<_> = places.iter().filter(|(_, places)| places.len() > 1).collect();
    assert!(places.len() > 200 && twice.is_empty(), "{twice:#?}");
}
