//! Tests of `render.rs`.

use super::*;
use crate::rules::release::{MAIN, V4_17, V4_20};

fn config(name: &str, role: &str, spec: Value) -> MachineConfig {
    let spec = serde_json::from_value(spec).expect("specs of the tests parse");
    let mut config = MachineConfig::new(name, spec);
    config.metadata.labels = Some([(ROLE_LABEL.to_owned(), role.to_owned())].into());
    config
}

fn arguments(name: &str, role: &str, arguments: &[&str]) -> MachineConfig {
    config(name, role, json!({ "kernelArguments": arguments }))
}

fn file(name: &str, path: &str, text: &str) -> MachineConfig {
    let file = json!({"path": path, "mode": 420, "contents": {"source": format!("data:,{text}")}});
    config(name, "worker", json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}}))
}

fn rendered(configs: &[MachineConfig]) -> Rendered {
    render("worker", &configs.iter().collect::<Vec<_>>(), MAIN).expect("renders")
}

fn kernel_arguments(configs: &[MachineConfig]) -> Vec<String> {
    rendered(configs).spec.kernel_arguments.expect("always there")
}

#[test]
fn duplicates_of_kernel_arguments_stay_in_order_of_names() {
    let configs = [
        arguments("c", "worker", &["psi=1"]),
        arguments("a", "worker", &["psi=1"]),
        arguments("b", "worker", &["psi=0"]),
    ];
    assert_eq!(kernel_arguments(&configs), ["psi=1", "psi=0", "psi=1"]);
}

#[test]
fn other_roles_come_after_all_of_worker() {
    let configs = [arguments("10-infra-z", "infra", &["z=1"]), arguments("99-worker", "worker", &["a=1"])];
    assert_eq!(kernel_arguments(&configs), ["a=1", "z=1"]);
}

#[test]
fn equal_content_has_an_equal_hash_in_every_pool() {
    let base = file("00", "/a", "1");
    let name = |configs: &[&MachineConfig], pool| {
        render(pool, configs, MAIN).expect("renders").name.rsplit('-').next().map(str::to_owned)
    };
    let hash = name(&[&base], "worker");
    assert_eq!(hash.as_ref().map(String::len), Some(32));
    assert_eq!(hash, name(&[&base], "infra"), "not of the pool");
    assert_eq!(hash, name(&[&file("17", "/a", "1")], "worker"), "not of names");
    assert_eq!(hash, name(&[&base, &config("50", "worker", json!({}))], "worker"), "an empty one adds nothing");
    assert_eq!(hash, name(&[&base, &file("50", "/a", "1")], "worker"), "byte for byte the same file");
    assert_ne!(hash, name(&[&base, &file("50", "/a", "2")], "worker"));
    assert_ne!(hash, name(&[&base, &arguments("50", "worker", &["psi=1"])], "worker"));
}

#[test]
fn later_files_and_units_replace_earlier_ones() {
    let unit = |name: &str, unit: Value| {
        config(name, "worker", json!({"config": {"ignition": {"version": "3.2.0"}, "systemd": {"units": [unit]}}}))
    };
    let result = rendered(&[
        file("01", "/a", "old"),
        file("02", "/b", "b"),
        file("03", "/a", "new"),
        unit("04", json!({"name": "u", "contents": "old", "dropins": [{"name": "d", "contents": "d"}]})),
        unit("05", json!({"name": "u", "contents": "new"})),
    ]);
    let files = &result.spec.config["storage"]["files"];
    assert_eq!(files[0]["contents"]["source"], "data:,new");
    assert_eq!((&files[1]["path"], files.as_array().map(Vec::len)), (&json!("/b"), Some(2)));
    assert_eq!(files[1]["overwrite"], true);
    let units = &result.spec.config["systemd"]["units"];
    assert_eq!(units, &json!([{"name": "u", "contents": "new", "dropins": [{"name": "d", "contents": "d"}]}]));
    assert_eq!(result.spec.config["ignition"]["version"], IGNITION_VERSION);
}

#[test]
fn single_values_win_by_their_rule() {
    let configs = [
        config("00", "worker", json!({"osImageURL": "base", "kernelType": "default"})),
        config("10", "worker", json!({"osImageURL": "mine", "kernelType": "realtime", "fips": true})),
        config("20", "worker", json!({"fips": false, "extensions": ["usbguard"]})),
        config("30", "worker", json!({"extensions": ["usbguard"], "kernelArguments": null})),
    ];
    let spec = rendered(&configs).spec;
    assert_eq!((spec.os_image_url.as_str(), spec.kernel_type.as_str(), spec.fips), ("mine", "realtime", Some(true)));
    assert_eq!(spec.extensions.unwrap_or_default(), ["usbguard", "usbguard"]);
    assert_eq!(rendered(&[file("00", "/a", "1")]).spec.kernel_type, "default");
}

#[test]
fn invalid_ones_are_named() {
    let refused = |config: MachineConfig| render("worker", &[&config], MAIN).expect_err("is refused");
    assert_eq!(
        refused(config("50", "worker", json!({"kernelType": "banana"}))),
        RenderError::KernelType("banana".into())
    );
    assert_eq!(
        refused(config("50", "worker", json!({"config": {"storage": {}}}))),
        RenderError::Ignition("50".into(), String::new())
    );
    let huge = refused(file("50", "/a", &"x".repeat(MAX_SIZE)));
    assert!(matches!(huge, RenderError::Size(size) if size > MAX_SIZE));
}

/// What remains of an earlier file in a later one with the same path, by release (OCPBUGS-55327).
#[test]
fn files_are_merged_member_by_member() {
    let with = |name: &str, file: Value| {
        config(name, "worker", json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}}))
    };
    let earlier =
        with("10-a", json!({"path": "/a", "mode": 384, "contents": {"source": "data:,1", "compression": "gzip"}}));
    let merged = |later: Value, release| {
        let later = with("20-b", later);
        let rendered = render("worker", &[&earlier, &later], release).expect("renders");
        rendered.spec.config["storage"]["files"][0].clone()
    };
    let (plain, empty) = (
        json!({"path": "/a", "contents": {"source": "data:,2"}}),
        json!({"path": "/a", "contents": {"source": "data:,2", "compression": ""}}),
    );
    let survived = json!({"source": "data:,2", "compression": "gzip"});
    assert_eq!(merged(plain.clone(), V4_17)["contents"], survived);
    assert_eq!(merged(empty.clone(), V4_17)["contents"], json!({"source": "data:,2", "compression": ""}));
    for later in [plain, empty] {
        let file = merged(later, V4_20);
        assert_eq!((&file["contents"], &file["mode"]), (&json!({"source": "data:,2"}), &json!(384)));
    }
}
