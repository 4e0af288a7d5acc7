//! Processes and kinds that come and go: two replicas, rights, an API server that is away, KubeVirt
//! that is removed and comes back, a definition of Machines that is not ours.

use std::time::Duration;

use controlplane::apply_yaml;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kubevirt_operator::cli::rbac_yaml;
use kubevirt_operator::controller::Settings;
use operator_kit::leader::Fence;
use serde_json::json;

use crate::world::{World, condition, text};

/// The generated rights are enough for a whole story. That none is too many: each is used by it.
#[tokio::test]
async fn v21_the_generated_rights_are_enough() {
    let Some(world) = World::without_operator().await else { return };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kubevirt-operator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubevirt-operator"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "restricted"}],
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubevirt-operator-system"}});
    apply_yaml(&world.client, &namespace.to_string(), "test").await.unwrap();
    apply_yaml(&world.client, &rbac_yaml(), "test").await.unwrap();
    apply_yaml(&world.client, &binding.to_string(), "test").await.unwrap();
    let config = world.lease.client_config("restricted", &[]).unwrap();
    world.start_as(advisor_cluster::client(config).unwrap(), Settings::default());
    let mark = world.mark();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"other": "#cloud-config\n"}});
    world.create(&world.api("", "v1", "Secret", "secrets"), &secret).await.unwrap();
    let network = json!({
        "apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": {"name": "net"}, "spec": {"vlan": 7},
    });
    world
        .create(&world.api("vitistack.io", "v1alpha1", "NetworkConfiguration", "networkconfigurations"), &network)
        .await
        .unwrap();
    let spec = json!({
        "template": "small",
        "disks": [{"name": "data", "size": "1Gi"}],
        "networks": [{"name": "eth0", "networkName": "net"}],
        "cloudInit": {"secretRef": {"name": "s", "key": "other"}},
        "os": {"imageID": "http://example.org/image.iso"},
    });
    world.has("web", spec).await;
    world.phase("web", "Running").await;
    let edit = json!({"spec": {"updates": "Restart", "resources": {"cpu": {"cores": 2}}, "disks": [{"name": "data", "size": "2Gi"}]}});
    world.patch(&world.machines(), "web", edit).await;
    world.until(&world.vmis(), "web", |vmi| vmi["spec"]["domain"]["cpu"]["cores"] == 2).await;
    world.phase("web", "Running").await;
    world.delete(&world.machines(), "web").await;
    world.until_gone(&world.machines(), "web").await;
    let all = world.lease.audit().since(&mark);
    let own: Vec<_> = all.iter().filter(|request| request.user == "restricted").collect();
    let forbidden: Vec<_> = own.iter().filter(|request| request.forbidden).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
    let secrets: Vec<_> =
        own.iter().filter(|request| request.resource == "secrets" && request.name.is_empty()).collect();
    assert!(secrets.is_empty(), "nobody lists Secrets: {secrets:#?}");
    world.end().await;
}

/// A standby sees everything and writes nothing; it takes over in the middle of a creation.
#[tokio::test]
async fn of_two_replicas_one_writes() {
    let Some(world) = World::without_operator().await else { return };
    let closed = Fence::closed();
    world.start(Settings { fence: closed.clone(), ..Settings::default() });
    world.has("web", json!({"template": "small"})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let machine = world.get(&world.machines(), "web").await.unwrap();
    assert!(machine["status"].is_null() && machine["metadata"]["finalizers"].is_null(), "{machine:#}");
    let standby = world.second(Settings::default());
    world.phase("web", "Running").await;
    standby.abort();
    world.end().await;
}

#[tokio::test]
async fn an_api_server_that_is_away_is_waited_for() {
    let Some(world) = World::new().await else { return };
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    world.lease.stop_server().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.lease.start_server().await.unwrap();
    world.patch(&world.machines(), "web", json!({"spec": {"template": "medium"}})).await;
    world.until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2).await;
    world.end().await;
}

#[tokio::test]
async fn kubevirt_comes_goes_and_comes_back() {
    let Some(world) = World::new().await else { return };
    let definitions: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        Api::all(world.client.clone());
    let name = "virtualmachines.kubevirt.io";
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
    let gone = async {
        while definitions.get_opt(name).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    world.has("web", json!({"template": "small"})).await;
    let machine = world.phase("web", "Pending").await;
    assert!(text(&machine, "/status/message").contains("KubeVirt is not installed"), "{machine:#}");
    assert!(world.get(&world.claims(), "web-root").await.is_none());
    kubevirt_simulator::install(&world.client).await.unwrap();
    world.phase("web", "Running").await;
    world.end().await;
}

/// The definition that vitistack publishes is not replaced: with its fields alone the operator
/// runs, and says which are missing.
#[tokio::test]
async fn v7_v14_with_the_published_definition_it_runs_and_keeps_what_others_wrote() {
    let Some(published) = controlplane::real_crd("kubevirt/vitistack.io_machines-v0.8.70.yaml") else { return };
    let Some(world) = World::without_operator().await else { return };
    let text_of = std::fs::read_to_string(published).unwrap();
    let crd: serde_json::Value = serde_saphyr::from_str(&text_of).unwrap();
    let definitions: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        Api::all(world.client.clone());
    definitions
        .patch("machines.vitistack.io", &PatchParams::apply("demo").force(), &Patch::Apply(crd.clone()))
        .await
        .unwrap();
    let replaced = crd["spec"]["versions"][0]["schema"].clone();
    let change = json!([{"op": "replace", "path": "/spec/versions/0/schema", "value": replaced}]);
    let patch: Patch<serde_json::Value> = Patch::Json(serde_json::from_value(change).unwrap());
    definitions.patch("machines.vitistack.io", &PatchParams::default(), &patch).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.start(Settings::default());
    let spec = json!({
        "provider": "kubevirt", "cpu": {"cores": 2, "threadsPerCore": 1, "sockets": 1}, "memory": 2_147_483_648_u64,
        "disks": [{"name": "root", "sizeGB": 10, "boot": true, "encrypted": true}],
    });
    world.has("web", spec).await;
    let machine = world.until(&world.machines(), "web", |machine| machine["status"]["phase"] == "Running").await;
    let missing = text(condition(&machine, "FieldsMissing"), "/message");
    assert!(missing.contains("spec.template") && missing.contains("spec.updates"), "{machine:#}");
    assert!(text(condition(&machine, "FieldsIgnored"), "/message").contains("spec.disks[0].encrypted"), "{machine:#}");
    let claim = world.get(&world.claims(), "web-root").await.unwrap();
    assert_eq!(machine["status"]["disks"][0]["uuid"], claim["metadata"]["uid"]);
    let others = json!({"status": {"region": "north"}, "metadata": {"annotations": {"somebody": "else"}}});
    world.machines().patch_status("web", &PatchParams::default(), &Patch::Merge(others)).await.unwrap();
    world.patch(&world.machines(), "web", json!({"spec": {"cpu": {"cores": 3}, "tags": {"a": "b"}}})).await;
    let machine = world.until(&world.machines(), "web", |machine| machine["status"]["cpus"] == 3).await;
    assert_eq!(machine["status"]["region"], "north");
    assert_eq!(machine["spec"]["tags"]["a"], "b");
    world.end().await;
}

/// V29: a Machine of another provider is left alone, and one that becomes so is let go.
#[tokio::test]
async fn v29_machines_of_other_providers_are_left_alone() {
    let Some(world) = World::new().await else { return };
    world.has("other", json!({"provider": "proxmox", "template": "small"})).await;
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    let other = world.get(&world.machines(), "other").await.unwrap();
    assert!(other["metadata"]["finalizers"].is_null() && other["status"].is_null(), "{other:#}");
    world.patch(&world.machines(), "web", json!({"spec": {"provider": "proxmox"}})).await;
    world.until(&world.machines(), "web", |machine| machine["metadata"]["finalizers"].is_null()).await;
    let vm = world.get(&world.vms(), "web").await.unwrap();
    let owners = vm["metadata"]["ownerReferences"].as_array().map(Vec::len).unwrap_or_default();
    assert_eq!(owners, 0, "nothing deletes it with the Machine: {vm:#}");
    world.end().await;
}
