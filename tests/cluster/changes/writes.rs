//! The one way in which targets are written: what each precondition lets through, and what it
//! refuses.

use advisor_cluster::{ApplyMode, Cluster, ClusterError, Precondition};
use advisor_core::api::FIELD_MANAGER;
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup, descheduler};

const MANAGER: &str = "virt-advisor-operator/test";

fn exactly(object: &Value) -> Precondition {
    let text = |key: &str| object["metadata"][key].as_str().unwrap().to_owned();
    Precondition::Exactly { uid: text("uid"), resource_version: text("resourceVersion") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_to_an_object_that_is_not_the_one_that_was_looked_at() {
    let fixture = Fixture::without_operator(Setup { pools: false, ..Setup::default() }).await;
    let cluster = Cluster::new(fixture.admin.clone(), FIELD_MANAGER);
    let desired = descheduler(json!({"deschedulingIntervalSeconds": 60}));
    let kind = cluster.resolve_object(&desired).await.unwrap().unwrap();
    let apply = async |precondition: &Precondition| {
        cluster.apply(&kind, &desired, MANAGER, ApplyMode::Forced, precondition).await
    };
    let remove = async || fixture.api(&desired).delete("cluster", &Default::default()).await.unwrap();

    // Created only if nobody was faster.
    let theirs = descheduler(json!({"deschedulingIntervalSeconds": 3600}));
    fixture.create(&theirs, "somebody").await;
    assert!(matches!(apply(&Precondition::Absent).await, Err(ClusterError::Moved)));
    let seen = fixture.get(&desired).await.unwrap();

    // Changed only as it was seen.
    fixture
        .edit(&desired, json!({"spec": {"mode": "Predictive"}, "metadata": {"labels": {"a": "b"}}}), "somebody")
        .await;
    assert!(matches!(apply(&exactly(&seen)).await, Err(ClusterError::Moved)));
    let seen = fixture.get(&desired).await.unwrap();

    // Not created again after a deletion, and not taken for another object of that name.
    remove().await;
    assert!(matches!(apply(&exactly(&seen)).await, Err(ClusterError::Moved)));
    assert!(fixture.get(&desired).await.is_none(), "a deleted object stays deleted");
    fixture.create(&theirs, "somebody").await;
    assert!(matches!(apply(&exactly(&seen)).await, Err(ClusterError::Moved)));
    let live = fixture.get(&desired).await.unwrap();
    assert_eq!(live["spec"]["deschedulingIntervalSeconds"], 3600, "nothing of ours was written");

    // Nor is anything else than what was seen removed, by version or by uid.
    let text = |object: &Value, key: &str| object["metadata"][key].as_str().unwrap().to_owned();
    let namespace = Some(text(&live, "namespace"));
    let removed = async |uid: &str, version: &str| {
        cluster.remove(&kind, (namespace.as_deref(), "cluster"), uid, version, false).await
    };
    for (uid, version) in [
        (text(&seen, "uid"), text(&seen, "resourceVersion")),
        (text(&seen, "uid"), text(&live, "resourceVersion")),
        (text(&live, "uid"), text(&seen, "resourceVersion")),
    ] {
        let found = removed(&uid, &version).await;
        assert!(matches!(found, Err(ClusterError::Moved)), "{uid} {version}: {found:?}");
    }
    assert!(fixture.get(&desired).await.is_some());

    // And as it was seen, it is.
    assert_eq!(apply(&exactly(&live)).await.unwrap()["spec"]["deschedulingIntervalSeconds"], 60);
    let live = fixture.get(&desired).await.unwrap();
    removed(&text(&live, "uid"), &text(&live, "resourceVersion")).await.unwrap();
    assert!(fixture.get(&desired).await.is_none());
    assert!(apply(&Precondition::Absent).await.is_ok());
}
