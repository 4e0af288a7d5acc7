//! What the audit log tells.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::server::config_map;
use crate::{Stage, apply_yaml, lease};

const RIGHTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: writer}]
";

#[tokio::test]
async fn requests_are_told_by_user_verb_and_code_and_dry_runs_are_no_writes() {
    let plane = lease().await;
    apply_yaml(&plane.admin(), RIGHTS, "test").await.unwrap();
    let mut config = plane.client_config("writer", &[]).unwrap();
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("the-writer/1")));
    let api: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
    let mark = plane.audit().mark();

    let object = config_map("one");
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" } });
    api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await.unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    api.create(&PostParams::default(), &object).await.unwrap_err();
    api.patch("one", &PatchParams::apply("test").dry_run(), &Patch::Apply(&body)).await.unwrap();
    api.patch("one", &PatchParams::apply("test"), &Patch::Apply(&body)).await.unwrap();
    api.delete("one", &DeleteParams::default().dry_run()).await.unwrap();
    api.delete("one", &DeleteParams::default()).await.unwrap();
    api.get("one").await.unwrap_err();

    let mut requests = plane.audit().since(&mark);
    requests.retain(|request| request.user == "writer");
    let told: Vec<_> = requests.iter().map(|one| (one.verb.as_str(), one.dry_run, one.code, one.is_write())).collect();
    assert_eq!(
        told,
        [
            ("create", true, 201, false),
            ("create", false, 201, true),
            ("create", false, 409, false),
            ("patch", true, 200, false),
            ("patch", false, 200, true),
            ("delete", true, 200, false),
            ("delete", false, 200, true),
            ("get", false, 404, false),
        ]
    );
    let patch = &requests[4];
    assert_eq!((patch.group.as_str(), patch.resource.as_str(), patch.subresource.as_str()), ("", "configmaps", ""));
    assert_eq!((patch.namespace.as_str(), patch.name.as_str()), ("default", "one"));
    assert_eq!(patch.stage, Stage::ResponseComplete);
    assert_eq!(patch.user_agent, "the-writer/1");
    assert!(patch.uri.contains("fieldManager=test"), "{patch:?}");
    assert!(patch.at >= requests[0].at);
    assert_eq!(plane.audit().since(&plane.audit().mark()), []);
}

#[tokio::test]
async fn a_watch_is_told_once_when_it_begins() {
    let plane = lease().await;
    let api: Api<ConfigMap> = Api::default_namespaced(plane.admin());
    let mark = plane.audit().mark();
    let watch = api.watch(&WatchParams::default().timeout(1), "0").await.unwrap();
    let begun = plane.audit().since(&mark);
    let middle = plane.audit().mark();
    watch.map(|event| event.map(drop)).try_collect::<Vec<()>>().await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;

    let watches =
        |requests: Vec<crate::Request>| requests.into_iter().filter(crate::Request::is_watch).collect::<Vec<_>>();
    let begun = watches(begun);
    assert_eq!(begun.len(), 1, "{begun:#?}");
    assert_eq!((begun[0].code, begun[0].stage), (200, Stage::ResponseStarted));
    assert_eq!(watches(plane.audit().since(&mark)), begun);
    assert_eq!(watches(plane.audit().since(&middle)), []);
}

#[tokio::test]
async fn what_authorization_refuses_is_told_from_other_refusals() {
    let plane = lease().await;
    let mark = plane.audit().mark();
    let stranger: Api<ConfigMap> = Api::default_namespaced(plane.client("stranger", &[]).unwrap());
    assert!(stranger.get("one").await.is_err());
    let quota: Api<ResourceQuota> = Api::default_namespaced(plane.admin());
    let none: ResourceQuota =
        serde_json::from_value(json!({"metadata": {"name": "none"}, "spec": {"hard": {"count/secrets": "0"}}}))
            .unwrap();
    quota.create(&PostParams::default(), &none).await.unwrap();
    let counted = json!({"status": {"hard": {"count/secrets": "0"}, "used": {"count/secrets": "0"}}});
    quota.patch_status("none", &PatchParams::default(), &Patch::Merge(counted)).await.unwrap();
    let secrets: Api<Secret> = Api::default_namespaced(plane.admin());
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    // The quota is known to admission a moment later.
    for _ in 0..100 {
        if secrets.create(&PostParams::default(), &secret).await.is_err() {
            break;
        }
        secrets.delete("s", &Default::default()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let refused = plane.audit().since(&mark).into_iter().filter(|request| request.code == 403);
    let refused: Vec<_> = refused.map(|request| (request.resource, request.forbidden)).collect();
    assert_eq!(refused, [("configmaps".to_owned(), true), ("secrets".to_owned(), false)]);
}
