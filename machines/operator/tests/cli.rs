//! The command line as people use it, without a cluster.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubevirt-operator"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_sample_is_rendered_without_a_cluster() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/machines");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let output = run(&["render", "-f", path.to_str().unwrap()], "");
        assert!(output.status.success(), "{}: {}", path.display(), text(&output.stderr));
        assert!(text(&output.stdout).contains("kind: VirtualMachine"), "{}", path.display());
        count += 1;
    }
    assert!(count >= 6);
}

#[test]
fn mistakes_are_all_named_with_their_paths_and_exit_with_two() {
    let machine = "{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: m}, spec: \
                   {template: huge, disks: [{name: A, size: big}], memory: 1, resources: {memory: {size: 1Gi}}}}";
    let output = run(&["render", "-f", "-"], machine);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for words in ["spec.template", "spec.disks[0].name", "spec.disks[0].size", "spec.memory"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_field_that_does_not_exist_is_named() {
    let machine = "{kind: Machine, metadata: {name: m}, spec: {template: small, disks: [{name: a, sise: 1Gi}]}}";
    let output = run(&["render", "-f", "-"], machine);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("spec.disks[0].sise"), "{}", text(&output.stderr));
}

#[test]
fn a_class_in_the_file_gives_the_size() {
    let both = "{kind: MachineClass, metadata: {name: big}, spec: {cpu: {cores: 6}, memory: {quantity: 12Gi}}}\n---\n\
                {kind: Machine, metadata: {name: m}, spec: {machineClass: big}}";
    let output = run(&["render", "-f", "-"], both);
    let said = text(&output.stdout);
    assert!(said.contains("cores: 6") && said.contains("guest: 12Gi"), "{said} {}", text(&output.stderr));
}

#[test]
fn files_that_can_not_be_are_refused_with_a_sentence() {
    for (arguments, input, words) in [
        (&["render", "-f", "/nowhere"][..], "", "can't be read"),
        (&["render", "-f", "-"], "kind: [", "is not YAML"),
        (&["render", "-f", "-"], "kind: Pod", "has no Machine"),
    ] {
        let output = run(arguments, input);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(words), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// What dashboards and alerts ask for exists.
#[test]
fn dashboards_and_alerts_ask_for_metrics_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/machines");
    for (path, least) in [("dashboards/grafana.json", 6), ("dashboards/perses.yaml", 6), ("prometheus/rules.yaml", 2)] {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: Vec<_> = words.filter(|word| word.starts_with("kubevirt_operator_")).collect();
        for word in &asked {
            let base = word.trim_end_matches("_bucket").trim_end_matches("_count");
            let is_known = kubevirt_operator::telemetry::DEFINITIONS.iter().any(|(name, ..)| *name == base);
            assert!(is_known, "{path} asks for {word}");
        }
        assert!(asked.len() >= least, "{path}");
    }
}
