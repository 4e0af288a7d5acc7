//! The example profile, which is kept to one namespace: from plan to drift with a right on one
//! ConfigMap only.

use advisor_core::api::{Operation, Phase, VirtPlatformConfig};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::fixture::{Fixture, Setup};

const EXAMPLE: &str = "example-profile";

impl Fixture {
    async fn configure_example(&self, spec: serde_json::Value) {
        let mut object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": EXAMPLE}, "spec": spec});
        object["spec"]["profile"] = json!(EXAMPLE);
        let config: VirtPlatformConfig = serde_json::from_value(object).unwrap();
        self.configs().create(&PostParams::default(), &config).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_goes_all_the_way_inside_of_one_namespace() {
    let fixture = Fixture::start(Setup { profile: EXAMPLE, ..Setup::default() }).await;
    assert!(fixture.configs().get_opt(EXAMPLE).await.unwrap().is_none(), "it is not advertised");
    let mark = fixture.mark();
    fixture.configure_example(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.rest().await;
    let of_config_maps = fixture.requests(&mark).into_iter().filter(|request| request.resource == "configmaps");
    for request in of_config_maps {
        assert!(request.uri.contains("/namespaces/openshift-cnv/"), "{request:?}");
    }
    let maps: Api<ConfigMap> = Api::namespaced(fixture.admin.clone(), "openshift-cnv");
    let map = maps.get("example-config").await.unwrap();
    assert_eq!(map.data.unwrap().into_iter().collect::<Vec<_>>(), [("example-key".into(), "example-value".into())]);

    // A neighbour of the same name elsewhere is none of its business.
    let mut other: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "example-config"}})).unwrap();
    other.data = Some([("example-key".to_owned(), "other".to_owned())].into());
    Api::namespaced(fixture.admin.clone(), "default").create(&PostParams::default(), &other).await.unwrap();
    fixture.rest().await;

    fixture.patch(json!({"options": {"exampleProfile": {"value": "another"}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert!(
        plan.items[0].diff.contains("-  example-key: example-value\n+  example-key: another"),
        "{}",
        plan.items[0].diff
    );
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    maps.delete("example-config", &Default::default()).await.unwrap();
    let gone = fixture.wait_for(Phase::Drifted).await;
    assert_eq!(gone.items[0].operation, Operation::Create);
    fixture.finish().await;
}
