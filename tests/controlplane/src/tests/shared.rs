//! The pool, and what a test leaves for the next one: nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};

use crate::{apply_yaml, install_crds, lease};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec:
  group: example.dev
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: left-over, finalizers: [example.dev/never]}
---
# an empty document

---
apiVersion: example.dev/v1
kind: Widget
metadata: {name: held, namespace: left-over, finalizers: [example.dev/never]}
---
apiVersion: example.dev/v1
kind: Widget
metadata: {name: in-default}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: left-over, finalizers: [example.dev/never]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: in-default}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: left-over}
spec: {nodeName: worker-0, containers: [{name: one, image: none}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: left-over}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nothing-goes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [DELETE], resources: ['nodes', 'configmaps']}]
  validations: [{expression: 'false'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: nothing-goes}
spec: {policyName: nothing-goes, validationActions: [Deny]}
";

async fn count<K>(client: &Client) -> usize
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap().items.len()
}

#[tokio::test]
async fn wiping_leaves_a_plane_as_it_was() {
    let plane = lease().await;
    let client = plane.admin();
    let before = (count::<ConfigMap>(&client).await, count::<ClusterRole>(&client).await);
    let bindings = count::<ClusterRoleBinding>(&client).await;

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("widgets.yaml"), DEFINITION).unwrap();
    std::fs::write(folder.path().join("README.md"), "not YAML: [").unwrap();
    // Twice: the second round meets the kind that the first has just removed.
    for round in 1..=2 {
        let start = Instant::now();
        install_crds(&client, &[folder.path().to_owned()]).await.unwrap();
        let installed = start.elapsed();
        apply_yaml(&client, OBJECTS, "test").await.unwrap();
        // Events of a real length of time, in number as a busy test leaves them.
        let events: String = (0..100)
            .map(|index| format!("---\napiVersion: v1\nkind: Event\nmetadata: {{name: e{index}}}\ninvolvedObject: {{kind: Node, namespace: default}}\n"))
            .collect();
        apply_yaml(&client, &events, "test").await.unwrap();

        let start = Instant::now();
        plane.wipe().await.unwrap();
        println!("round {round}: installed in {installed:?}, wiped in {:?}", start.elapsed());

        assert_eq!(count::<CustomResourceDefinition>(&client).await, 0);
        assert_eq!(count::<Node>(&client).await, 0);
        assert_eq!(count::<Pod>(&client).await, 0);
        assert_eq!(count::<Namespace>(&client).await, 4);
        assert_eq!((count::<ConfigMap>(&client).await, count::<ClusterRole>(&client).await), before);
        assert_eq!(count::<ClusterRoleBinding>(&client).await, bindings);
    }
    // The objects are gone, not only out of sight with their definition.
    install_crds(&client, &[folder.path().join("widgets.yaml")]).await.unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.dev", "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    assert_eq!(widgets.list(&ListParams::default()).await.unwrap().items.len(), 0);

    plane.wipe().await.unwrap();
    let start = Instant::now();
    plane.wipe().await.unwrap();
    println!("wiped an empty plane in {:?}", start.elapsed());
}

#[tokio::test]
async fn two_leases_run_side_by_side() {
    if std::env::var("ADVISOR_TEST_PLANES").is_ok_and(|planes| planes == "1") {
        return;
    }
    let (one, two) = tokio::join!(lease(), lease());
    assert_ne!(one.url(), two.url());
    one.admin().apiserver_version().await.unwrap();
    two.admin().apiserver_version().await.unwrap();
}

#[tokio::test]
async fn a_plane_that_was_left_stopped_is_not_leased_again() {
    let url = {
        let plane = lease().await;
        plane.stop_server().await.unwrap();
        plane.url()
    };
    let plane = lease().await;
    assert_ne!(plane.url(), url);
    plane.admin().apiserver_version().await.unwrap();
}

/// For people: `CRDS=folder:folder cargo test -p controlplane real_definitions -- --ignored
/// --nocapture`.
#[tokio::test]
#[ignore = "needs definitions from elsewhere"]
async fn real_definitions_are_installed_and_wiped() {
    let paths: Vec<PathBuf> = std::env::var("CRDS").unwrap().split(':').map(PathBuf::from).collect();
    let plane = lease().await;
    for _ in 0..2 {
        let start = Instant::now();
        install_crds(&plane.admin(), &paths).await.unwrap();
        let installed = start.elapsed();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let start = Instant::now();
        plane.wipe().await.unwrap();
        println!("installed in {installed:?}, wiped in {:?}", start.elapsed());
    }
}
