//! What the server will not do: each refusal blocks its item, says what to do, and hides no other
//! item.

use std::sync::Arc;
use std::time::Duration;

use advisor_cluster::Cluster;
use advisor_core::api::{FIELD_MANAGER, Operation};
use advisor_core::plan::items::PlanItem;
use controlplane::install_crds;
use profile_sdk::{Body, Draft};
use serde_json::{Value, json};

use super::world::{World, config_map, draft, widget};
use controlplane::faults::{self, status};

fn blocked(item: &PlanItem, says: &str) {
    assert_eq!(item.operation, Operation::Blocked, "{}", item.review.message);
    assert!(item.review.message.contains(says), "{says}: {}", item.review.message);
}

/// Plans until the item is blocked with that text: policies and rights take effect a moment after
/// they are stored.
async fn becomes_blocked(world: &World, object: &Value, says: &str) -> PlanItem {
    let fits = |item: &PlanItem| item.operation == Operation::Blocked && item.review.message.contains(says);
    world.until(object, says, fits).await
}

/// S18: five items, the second refused and the fourth new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s18_one_bad_item_hides_no_other() {
    let world = World::start(&[]).await;
    for name in ["c1", "c3", "c5"] {
        world.create(&config_map(name, json!({"a": "theirs"})), "somebody").await;
    }
    let mut drafts: Vec<Draft> = ["c1", "c2", "c3", "c4", "c5"]
        .iter()
        .map(|name| draft(name, &config_map(name, json!({"a": "ours"}))))
        .collect();
    drafts[1].body = Body::Ensure(widget(json!({"mode": "Sideways"})));
    let plan = world.plan(&drafts).await;
    let operations: Vec<_> = plan.items.iter().map(|item| item.operation).collect();
    assert_eq!(
        operations,
        [Operation::Update, Operation::Blocked, Operation::Update, Operation::Create, Operation::Update]
    );
    assert!(
        plan.items[3].review.diff.lines().skip(3).all(|line| line.starts_with('+')),
        "{}",
        plan.items[3].review.diff
    );
    blocked(&plan.items[1], "spec.mode: unsupported value: supported values: \"Slow\", \"Fast\"");
    assert!(plan.blocked().count() == 1 && !plan.is_satisfied());
}

/// S16: what a schema does not know or does not take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s16_what_the_served_schema_does_not_know_is_said_with_the_field() {
    let world = World::start(&[]).await;
    for (spec, says) in [
        (
            json!({"unknown": 1}),
            "this cluster's Widget (example.dev/v1) does not have the field .spec.unknown, so its operator is older or newer",
        ),
        (json!({"size": "text"}), ".spec.size: expected numeric"),
        (
            json!({"map": [{"size": 1}]}),
            "the desired object does not match the schema of Widget (example.dev/v1): .spec.map",
        ),
        (
            json!({"map": [{"name": "a"}, {"name": "a"}]}),
            "the desired object does not match the schema of Widget (example.dev/v1): .spec.map",
        ),
        (
            json!({"set": ["a", "a"]}),
            "the desired object does not match the schema of Widget (example.dev/v1): .spec.set",
        ),
        (json!({"size": 6000}), "spec.size"),
        (json!({"size": 2000}), "size must stay below 1000"),
    ] {
        blocked(&world.item(&widget(spec)).await, says);
    }
    // What a free-form part takes is taken, misspelt or not: only the profile's own tests find
    // that.
    assert_eq!(world.item(&widget(json!({"free": {"mispelt": 1}}))).await.operation, Operation::Create);

    let Some(crd) = controlplane::real_crd("descheduler/kubedeschedulers-ocp-4.14.yaml") else {
        return;
    };
    install_crds(&world.admin, &[crd]).await.unwrap();
    let descheduler = |spec: Value| json!({"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "metadata": {"name": "cluster", "namespace": "default"}, "spec": spec});
    blocked(
        &world.item(&descheduler(json!({"evictionLimits": {"node": 2}}))).await,
        "does not have the field .spec.evictionLimits",
    );
    let item = world.item(&descheduler(json!({"profiles": ["KubeVirtRelieveAndMigrate"]}))).await;
    blocked(&item, "supported values: \"AffinityAndTaints\"");
}

const POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-speed}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.dev], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}
  validations:
  - {expression: "object.spec.?mode.orValue('Slow') != 'Fast'", message: "speed is not allowed here"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-speed}
spec: {policyName: no-speed, validationActions: [Deny]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: default}
spec: {hard: {count/configmaps: "1"}}
"#;

/// Who else refuses, each with its remedy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_by_admission_quota_and_namespace_say_what_to_do() {
    let world = World::start(&[]).await;
    world.install(POLICY).await;
    let fast = widget(json!({"mode": "Fast"}));
    let item = becomes_blocked(&world, &fast, "admission refuses it: ").await;
    blocked(
        &item,
        "ValidatingAdmissionPolicy 'no-speed' with binding 'no-speed' denied request: speed is not allowed here",
    );
    assert_eq!(world.item(&widget(json!({"mode": "Slow"}))).await.operation, Operation::Create);
    let version = "admissionregistration.k8s.io/v1";
    let installed =
        [(version, "ValidatingAdmissionPolicyBinding", "no-speed"), (version, "ValidatingAdmissionPolicy", "no-speed")];
    world.lift(&installed, &fast, |item| item.operation == Operation::Create).await;

    let quota =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"}});
    // No controller counts here; a quota without a status is ignored.
    let counted = json!({"status": {"hard": {"count/configmaps": "1"}, "used": {"count/configmaps": "1"}}});
    let quotas: kube::Api<k8s_openapi::api::core::v1::ResourceQuota> =
        kube::Api::namespaced(world.admin.clone(), "default");
    quotas.patch_status("few", &Default::default(), &kube::api::Patch::Merge(counted)).await.unwrap();
    becomes_blocked(&world, &config_map("c", json!({})), "Raise the quota, or free resources").await;
    world.delete(&quota).await;

    let mut astray = config_map("c", json!({}));
    astray["metadata"]["namespace"] = json!("nowhere");
    blocked(&world.item(&astray).await, "namespace nowhere does not exist: create it");
    let mut clusterwide = widget(json!({}));
    clusterwide["metadata"].as_object_mut().unwrap().remove("namespace");
    blocked(&world.item(&clusterwide).await, "Widget is namespaced, but the draft has no namespace");
    let unknown = json!({"apiVersion": "none.example/v1", "kind": "Nothing", "metadata": {"name": "n"}});
    blocked(&world.item(&unknown).await, "the cluster does not serve none.example/v1 Nothing: install its operator");
}

/// An object that is going away is not planned into its grave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_under_deletion_is_waited_for() {
    let world = World::start(&[]).await;
    let ours = widget(json!({"size": 1}));
    let mut held = ours.clone();
    held["metadata"]["finalizers"] = json!(["example.dev/hold"]);
    world.create(&held, "somebody").await;
    world.delete(&ours).await;
    let item = world.item(&ours).await;
    blocked(&item, "is being deleted, held by finalizer example.dev/hold; it will be planned again once it is deleted");
    assert!(!item.review.blocked_temporarily, "a finalizer may hold it for days: that is told");
    world.edit(&ours, json!({"metadata": {"finalizers": null}}), "somebody").await;
    assert_eq!(world.item(&ours).await.operation, Operation::Create);
}

/// The rule that is missing, and no other 403 taken for one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_right_is_told_as_the_rule_to_add() {
    let mut world = World::start(&[]).await;
    world.create(&widget(json!({})), "somebody").await;
    world.as_user_with(json!([{"apiGroups": ["example.dev"], "resources": ["widgets"], "verbs": ["get"]}])).await;
    let rule = |verbs: &str| {
        format!("{{apiGroups: [\"example.dev\"], resources: [\"widgets\"], resourceNames: [\"w\"], verbs: [{verbs}]}}")
    };
    blocked(&world.item(&widget(json!({"size": 1}))).await, &rule("\"patch\""));
    let reading = world.item(&config_map("c", json!({}))).await;
    blocked(
        &reading,
        "{apiGroups: [\"\"], resources: [\"configmaps\"], resourceNames: [\"c\"], verbs: [\"get\", \"create\", \"patch\"]}",
    );
    assert!(reading.review.message.contains("a Role in namespace default"), "{}", reading.review.message);
}

/// W1: a webhook without dry-run support. No server of today stores such a webhook, so its answer
/// is played; the text is the real one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w1_a_webhook_that_supports_no_dry_run_blocks_with_its_name() {
    let mut world = World::start(&[]).await;
    let rule = |request: &http::Request<kube::client::Body>| {
        let refuses = request.method() == "PATCH" && request.uri().path().contains("widgets");
        refuses.then(|| status(400, "BadRequest", "admission webhook \"old.example.dev\" does not support dry run"))
    };
    let config = world.plane.client_config("tester", &["system:masters"]).unwrap();
    let client = advisor_cluster::client(config).unwrap();
    world.cluster = Cluster::new(faults::ruled(client, Arc::new(rule)), FIELD_MANAGER);
    let plan = world.plan(&[draft("a", &widget(json!({"size": 1}))), draft("b", &config_map("c", json!({})))]).await;
    blocked(&plan.items[0], "webhook old.example.dev does not support dry runs");
    assert!(
        plan.items[0].review.message.contains("sideEffects None or NoneOnDryRun"),
        "{}",
        plan.items[0].review.message
    );
    assert!(!plan.items[0].review.blocked_temporarily, "only a person changes that");
    assert_eq!(plan.items[1].operation, Operation::Create);
}

const UNREACHABLE: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: down}
webhooks:
- name: down.example.dev
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 1
  clientConfig: {url: "https://127.0.0.1:1/validate"}
  rules:
  - {apiGroups: [example.dev], apiVersions: [v1], operations: ["*"], resources: [widgets]}
"#;

/// S17 and its kind: webhooks that are down, for admission and for conversion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s17_a_webhook_that_does_not_answer_blocks_its_object_for_the_time_being() {
    let world = World::start(&[]).await;
    world.install(UNREACHABLE).await;
    let item = becomes_blocked(&world, &widget(json!({"size": 1})), "while a webhook does not respond").await;
    assert!(
        item.review.blocked_temporarily && item.review.message.contains("down.example.dev"),
        "{}",
        item.review.message
    );
    let installed = [("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "down")];
    world.lift(&installed, &widget(json!({"size": 1})), |item| item.operation == Operation::Create).await;

    // A kind in two versions, converted by nobody.
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let conversion = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "doubles.example.dev"},
        "spec": {"group": "example.dev", "scope": "Cluster",
            "names": {"kind": "Double", "listKind": "DoubleList", "plural": "doubles", "singular": "double"},
            "versions": [version("v1", true), version("v2", false)]},
    });
    world.install(&crd.to_string()).await;
    let old = json!({"apiVersion": "example.dev/v1", "kind": "Double", "metadata": {"name": "d"}, "spec": {"a": 1}});
    for _ in 0..100 {
        world.cluster.forget_kinds("example.dev");
        if world.item(&old).await.operation == Operation::Create {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.create(&old, "somebody").await;
    world.edit(&crd, json!({"spec": {"conversion": conversion}}), "somebody").await;
    let mut new = old.clone();
    new["apiVersion"] = json!("example.dev/v2");
    let item = becomes_blocked(&world, &new, "conversion webhook for example.dev").await;
    assert!(item.review.blocked_temporarily, "{}", item.review.message);
    let plan = world.plan(&[draft("a", &new), draft("b", &config_map("c", json!({})))]).await;
    assert_eq!(plan.items[1].operation, Operation::Create, "others are planned all the same");
}

/// Bad drafts: a Blocked item each, and the profile's owners are told what is wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_profile_are_blocked_items_or_a_clear_error() {
    let world = World::start(&[]).await;
    let with = |pointer: &str, value: Value| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let mut object = widget(json!({}));
        object.pointer_mut(parent).unwrap()[key] = value;
        object
    };
    let mark = world.plane.audit().mark();
    for (object, says) in [
        (with("/metadata/name", json!("")), "has no metadata.name"),
        (with("/metadata/name", json!("No DNS")), "\"No DNS\" is not a valid name for a Widget"),
        (with("/status", json!({"phase": "Running"})), "sets status"),
        (with("/metadata/uid", json!("u")), "metadata.uid"),
        (with("/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z")), "metadata.creationTimestamp"),
        (with("/spec/size", json!(f64::NAN)), "no value at /spec/size"),
        (with("/spec/text", json!("x".repeat(2 << 20))), "the API server stores at most 1572000"),
    ] {
        let item = world.item(&object).await;
        blocked(&item, says);
        assert!(item.review.message.ends_with("Report this to the profile's owners"), "{}", item.review.message);
    }
    assert!(world.plane.audit().since(&mark).iter().all(|request| request.verb != "patch"), "nothing of it is sent");

    // A YAML template with a number that JSON can't hold is an error of the template, with its
    // name.
    let nan = profile_sdk::render("widget.yaml", "spec: {size: .nan}", &()).unwrap_err().to_string();
    assert!(nan.contains("widget.yaml"), "{nan}");

    let twice = [draft("a", &widget(json!({"size": 1}))), draft("b", &widget(json!({"size": 2})))];
    for item in world.plan(&twice).await.items {
        blocked(&item, "items ");
        blocked(&item, "are about the same object, Widget default/w");
    }
    let error =
        world.try_plan(&[draft("a", &widget(json!({}))), draft("a", &config_map("c", json!({})))]).await.unwrap_err();
    assert!(error.to_string().contains("two items called a"), "{error}");
}

/// A dry run does not know etcd's limit; what would be refused for its size is not tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_no_server_would_store_is_blocked() {
    let world = World::start(&[]).await;
    let theirs = widget(json!({"text": "x".repeat(1_000_000)}));
    world.create(&theirs, "somebody").await;
    let ours = widget(json!({"labels": {"a": "y".repeat(700_000)}}));
    blocked(&world.item(&ours).await, "the API server stores at most 1572000");
    let fits = widget(json!({"labels": {"a": "y".repeat(500_000)}}));
    let item = world.item(&fits).await;
    assert_eq!(item.operation, Operation::Update);
    world.execute(&item).await;
}
