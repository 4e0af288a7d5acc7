//! Source files, profiles and manifests: their names, their size and what each must have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use advisor_engine::registry::PROFILES;

use crate::{code, files, is_test, root, sources};

#[test]
fn every_file_says_what_it_owns_and_stays_readable() {
    for path in ["src", "crates", "machines", "profiles", "tests"].iter().flat_map(|folder| sources(folder)) {
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

/// One word, one thing: two types of one name are told apart by nobody who greps. This holds in
/// each of the two programs, with everything that it links: Machines have plans and phases of their
/// own.
#[test]
fn a_type_has_a_name_of_its_own() {
    let advisor = type_places(&["src", "crates", "profiles"]);
    let machines = type_places(&["machines", "crates/object", "crates/cluster", "crates/operator-kit"]);
    let twice: Vec<_> = advisor.iter().chain(&machines).filter(|(_, places)| places.len() > 1).collect();
    assert!(advisor.len() > 200 && machines.len() > 60 && twice.is_empty(), "{twice:#?}");
}

/// The files that define a type of each name.
fn type_places(folders: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in folders.iter().flat_map(|folder| sources(folder)).filter(|path| !is_test(path)) {
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
    places
}

/// Defect D1: whoever takes our manifests away again takes no namespace with them, which may be
/// that of KubeVirt itself.
#[test]
fn d1_no_manifest_of_ours_holds_a_namespace() {
    for path in files("config", "yaml") {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.lines().any(|line| line.trim() == "kind: Namespace"), "{}", path.display());
    }
}

/// Going back from Apply is free of the approver's right only as long as nothing else is edited
/// with it: a field that the policy does not compare could be slipped in.
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
