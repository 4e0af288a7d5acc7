//! The documented examples, and the objects that become of them.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::BTreeMap;
use std::path::Path;

use machines_api::Machine;
use machines_core::facts::{Facts, KubeVirt, Network, StorageClass};
use machines_core::{objects, plan, resolve, understand};
use serde_json::Value;

fn facts() -> Facts {
    let class = |name: &str, is_default| StorageClass { name: name.to_owned(), is_default, ..StorageClass::default() };
    let network = |name: &str| (name.to_owned(), Some(Network::Attachment(name.to_owned())));
    let secret = BTreeMap::from([("userdata".to_owned(), b"#cloud-config\n".to_vec())]);
    Facts {
        storage_classes: vec![class("standard", true), class("fast", false), class("fast-ssd", false)],
        networks: ["prod-network", "storage-network"].map(network).into(),
        secrets: ["s", "machine-secrets"].map(|name| (name.to_owned(), Some(secret.clone()))).into(),
        kubevirt: Some(KubeVirt::default()),
        has_data_volumes: true,
        ..Facts::default()
    }
}

fn objects_of(machine: &Machine) -> Vec<Value> {
    let wanted = understand::understand(machine, None).unwrap();
    let resolved = resolve::resolve(&wanted, &facts()).unwrap();
    let mut all = objects::claims(&resolved);
    all.extend(objects::secret(&resolved));
    all.push(plan::desired_vm(&resolved, None, &BTreeMap::new()));
    all
}

fn sample(name: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/machines").join(name);
    let mut machine: Machine = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    machine.metadata.uid = Some("00000000-0000-0000-0000-000000000001".to_owned());
    machine
}

#[test]
fn each_documented_example_becomes_its_objects() {
    for name in ["basic", "cloudinit", "cloudinit-secret", "custom", "full", "networked"] {
        let objects = objects_of(&sample(&format!("{name}.yaml")));
        let texts: Vec<_> = objects.iter().map(|object| serde_saphyr::to_string(object).unwrap()).collect();
        insta::assert_snapshot!(name, texts.join("---\n"));
        let again = objects_of(&sample(&format!("{name}.yaml")));
        assert_eq!(objects, again, "the same input gives the same objects");
    }
}
