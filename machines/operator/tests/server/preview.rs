//! `kubevirt-operator diff`: what applying a Machine would do, before it is applied.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

/// Runs the command on Machines, and returns the exit code and what it prints.
fn diff(kubeconfig: &Path, name: &str, spec: Value) -> (i32, String) {
    let machine = json!({
        "apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    });
    let file = kubeconfig.with_file_name("machine.yaml");
    std::fs::write(&file, machine.to_string()).unwrap();
    let arguments = ["diff", "--kubeconfig", kubeconfig.to_str().unwrap(), "-f", file.to_str().unwrap()];
    let output = Command::new(env!("CARGO_BIN_EXE_kubevirt-operator")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_tells_what_an_edit_does_as_kubectl_diff_does_and_writes_nothing() {
    let Some(world) = World::new().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    world.lease.write_kubeconfig("reader", &["system:masters"], &kubeconfig).unwrap();
    let spec = json!({"template": "small", "disks": [{"name": "data", "size": "2Gi", "storageClass": "fixed"}]});
    let (code, said) = diff(&kubeconfig, "web", spec.clone());
    assert_eq!(code, 1, "{said}");
    for words in ["+kind: VirtualMachine", "+kind: PersistentVolumeClaim", "web-data"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    world.has("web", spec.clone()).await;
    world.phase("web", "Running").await;
    world.until(&world.machines(), "web", |machine| machine["status"]["ipAddresses"].is_array()).await;
    let mark = world.mark();
    assert_eq!(diff(&kubeconfig, "web", spec.clone()), (0, String::new()));
    let edit = json!({"template": "large", "disks": [{"name": "data", "size": "2Gi", "storageClass": "fixed"}], "tags": {"a": "b"}});
    let (code, said) = diff(&kubeconfig, "web", edit);
    assert_eq!(code, 1, "{said}");
    for words in [
        "-          cores: 1\n+          cores: 4",
        "# Restart: VirtualMachine/spec.template.spec.domain.cpu.cores",
        "spec.tags has no effect",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let shrunk = json!({"template": "small", "disks": [{"name": "data", "size": "1Gi", "storageClass": "fixed"}]});
    let (code, said) = diff(&kubeconfig, "web", shrunk);
    assert!(code == 2 && said.contains("# Refused: spec.disks[0].size from 2Gi to 1Gi"), "{said}");
    let gone = json!({"template": "small"});
    let (code, said) = diff(&kubeconfig, "web", gone);
    assert!(code == 1 && said.contains("the claim web-data is kept"), "{said}");
    let (code, said) = diff(&kubeconfig, "web", json!({"template": "huge"}));
    assert!(code == 2 && said.contains("small, medium or large"), "{said}");
    let stopped = json!({"template": "small", "disks": spec["disks"], "runStrategy": "Halted"});
    let (code, said) = diff(&kubeconfig, "web", stopped);
    assert!(code == 1 && said.contains("# Live: VirtualMachine/spec.runStrategy from Always to Halted"), "{said}");
    let written: Vec<_> = world
        .requests(&mark)
        .into_iter()
        .filter(|request| request.user == "reader" && request.is_write() && !request.dry_run)
        .collect();
    assert!(written.is_empty(), "{written:#?}");
    world.end().await;
}
