//! Names that others have: nothing of theirs is touched.

use serde_json::json;

use crate::world::{World, condition, text};

#[tokio::test]
async fn v3_a_virtual_machine_of_that_name_is_not_touched_and_adopted_by_word() {
    let Some(world) = World::new().await else { return };
    let foreign = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"},
        "spec": {"runStrategy": "Halted", "template": {"spec": {
            "domain": {"devices": {"disks": [], "interfaces": [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:07"}]}, "memory": {"guest": "1Gi"}},
            "networks": [{"name": "default", "pod": {}}],
        }}},
    });
    let before = world.create(&world.vms(), &foreign).await.unwrap();
    world.has("web", json!({"template": "small"})).await;
    let machine = world.phase("web", "Failed").await;
    assert_eq!(condition(&machine, "NameTaken")["status"], "True");
    assert_eq!(condition(&machine, "Stalled")["reason"], "NameTaken");
    let uid = text(&before, "/metadata/uid");
    assert!(text(condition(&machine, "NameTaken"), "/message").contains(uid), "{machine:#}");
    assert!(machine["status"]["pending"].to_string().contains("domain.memory.guest"), "previewed: {machine:#}");
    let vm = world.get(&world.vms(), "web").await.unwrap();
    assert_eq!(vm["spec"], before["spec"]);
    assert!(world.get(&world.claims(), "web-root").await.is_none(), "nothing is made beside it");
    let adopt = json!({"metadata": {"annotations": {"machine.vitistack.io/adopt": uid}}});
    world.patch(&world.machines(), "web", adopt).await;
    let machine = world.phase("web", "Stopped").await;
    let vm = world.until(&world.vms(), "web", |vm| !vm["metadata"]["ownerReferences"].is_null()).await;
    assert_eq!(vm["metadata"]["ownerReferences"][0]["uid"], machine["metadata"]["uid"]);
    assert_eq!(vm["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]["macAddress"], "02:00:00:00:00:07");
    world.end().await;
}

/// A Secret of the wanted name is taken over by word, though others own its fields.
#[tokio::test]
async fn a_secret_of_that_name_is_not_touched_and_adopted_by_word() {
    let Some(world) = World::new().await else { return };
    let secrets = world.api("", "v1", "Secret", "secrets");
    let foreign = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-cloudinit"}, "stringData": {"userdata": "theirs"}});
    let before = world.create(&secrets, &foreign).await.unwrap();
    world.has("web", json!({"template": "small", "cloudInit": {"userData": "#cloud-config\n"}})).await;
    let machine = world.phase("web", "Failed").await;
    assert!(text(condition(&machine, "NameTaken"), "/message").contains("Secret web-cloudinit"), "{machine:#}");
    assert_eq!(world.get(&secrets, "web-cloudinit").await.unwrap()["data"], before["data"]);
    let adopt = json!({"metadata": {"annotations": {"machine.vitistack.io/adopt": before["metadata"]["uid"]}}});
    world.patch(&world.machines(), "web", adopt).await;
    world.phase("web", "Running").await;
    // One that is deleted is made again when the machine is looked at.
    world.delete(&secrets, "web-cloudinit").await;
    world.patch(&world.machines(), "web", json!({"spec": {"template": "medium"}})).await;
    world.until(&secrets, "web-cloudinit", |secret| secret["metadata"]["ownerReferences"].is_array()).await;
    world.end().await;
}

/// V2: Machine `web` with disk `db` and Machine `web-db` with disk `root` never share a claim, nor
/// does one take over what somebody else has made.
#[tokio::test]
async fn v2_claims_are_used_only_by_whom_they_belong_to() {
    let Some(world) = World::new().await else { return };
    world.has("a", json!({"template": "small", "disks": [{"name": "b-c", "size": "1Gi"}]})).await;
    world.phase("a", "Running").await;
    world.has("a-b", json!({"template": "small", "disks": [{"name": "c", "size": "1Gi"}]})).await;
    let machine = world.phase("a-b", "Failed").await;
    assert_eq!(condition(&machine, "Ready")["reason"], "DiskConflict", "{machine:#}");
    assert!(text(&machine, "/status/message").contains("a-b-c"));
    assert!(world.get(&world.vms(), "a-b").await.is_none());
    // Even by word: it is in use.
    let claim = world.get(&world.claims(), "a-b-c").await.unwrap();
    let adopt = json!({"metadata": {"annotations": {"machine.vitistack.io/adopt": claim["metadata"]["uid"]}}});
    world.patch(&world.machines(), "a-b", adopt).await;
    world
        .until(&world.machines(), "a-b", |machine| text(machine, "/status/message").contains("VirtualMachine a uses"))
        .await;
    // Deleting the one in conflict touches nothing of the other.
    world.delete(&world.machines(), "a-b").await;
    world.until_gone(&world.machines(), "a-b").await;
    let kept = world.get(&world.claims(), "a-b-c").await.unwrap();
    assert_eq!(kept["metadata"]["uid"], claim["metadata"]["uid"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_null());
    world.end().await;
}

/// Who may write Machines in one namespace gets no VLAN that somebody has in another.
#[tokio::test]
async fn a_network_configuration_of_another_namespace_is_not_used() {
    let Some(world) = World::new().await else { return };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    controlplane::apply_yaml(&world.client, &namespace.to_string(), "test").await.unwrap();
    let network = json!({
        "apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration",
        "metadata": {"name": "net", "namespace": "other"}, "spec": {"vlan": 7},
    });
    controlplane::apply_yaml(&world.client, &network.to_string(), "test").await.unwrap();
    world.has("web", json!({"template": "small", "networks": [{"name": "eth0", "networkName": "other/net"}]})).await;
    let machine = world.phase("web", "Pending").await;
    assert_eq!(condition(&machine, "NetworkReady")["reason"], "NetworkFailed", "{machine:#}");
    let nad = world.api("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions");
    assert!(world.get(&nad, "vlan7").await.is_none());
    world.end().await;
}

#[tokio::test]
async fn all_problems_of_a_machine_are_told_at_once_and_left_when_they_are_gone() {
    let Some(world) = World::new().await else { return };
    let spec = json!({
        "template": "small",
        "disks": [{"name": "data", "size": "1Gi", "storageClass": "none"}],
        "networks": [{"name": "eth0", "networkName": "nowhere"}],
        "cloudInit": {"secretRef": {"name": "missing", "key": "userdata"}},
    });
    world.has("web", spec).await;
    let machine = world.phase("web", "Pending").await;
    let message = text(&machine, "/status/message");
    for words in
        ["storage class none", "nowhere", "missing", "spec.disks[0].storageClass", "spec.networks[0].networkName"]
    {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(condition(&machine, "StorageReady")["reason"], "StorageClassNotFound");
    assert_eq!(condition(&machine, "NetworkReady")["reason"], "NetworkFailed");
    kubevirt_simulator::storage_class(&world.client, "none", kubevirt_simulator::Binding::Immediate, true, false)
        .await
        .unwrap();
    let network = json!({
        "apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": {"name": "nowhere"}, "spec": {"vlan": 7},
    });
    world
        .create(&world.api("vitistack.io", "v1alpha1", "NetworkConfiguration", "networkconfigurations"), &network)
        .await
        .unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "missing"}, "stringData": {"userdata": "#cloud-config\n"}});
    world.create(&world.api("", "v1", "Secret", "secrets"), &secret).await.unwrap();
    world.phase("web", "Running").await;
    let nad = world.api("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions");
    let made = world.get(&nad, "vlan7").await.unwrap();
    assert!(text(&made, "/spec/config").contains("\"vlan\":7"), "{made:#}");
    world.end().await;
}

/// Labels can be copied, and an earlier Machine of the name leaves them: a claim that bears ours is
/// used only by word, and never deleted.
#[tokio::test]
async fn a_claim_with_our_labels_is_not_taken_for_ours() {
    let Some(world) = World::new().await else { return };
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "web-root", "labels": {
            "vitistack.io/managed-by": "kubevirt-operator", "vitistack.io/machine": "web", "vitistack.io/source-machine": "web",
        }},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}, "storageClassName": "standard"},
    });
    let before = world.create(&world.claims(), &claim).await.unwrap();
    world.has("web", json!({"template": "small"})).await;
    let machine = world.phase("web", "Failed").await;
    assert_eq!(condition(&machine, "Ready")["reason"], "DiskConflict", "{machine:#}");
    // It stays so, however often it is looked at.
    world.patch(&world.machines(), "web", json!({"metadata": {"labels": {"looked": "again"}}})).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(world.get(&world.vms(), "web").await.is_none());
    let adopt = json!({"metadata": {"annotations": {"machine.vitistack.io/adopt": before["metadata"]["uid"]}}});
    world.patch(&world.machines(), "web", adopt).await;
    world.phase("web", "Running").await;
    world.delete(&world.machines(), "web").await;
    world.until_gone(&world.machines(), "web").await;
    let kept = world.get(&world.claims(), "web-root").await.unwrap();
    assert_eq!(kept["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept:#}");
    world.end().await;
}
