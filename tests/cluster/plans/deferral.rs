//! Objects whose namespace or kind comes with an earlier item.

use advisor_core::api::Operation;
use profile_sdk::Draft;
use serde_json::{Value, json};

use super::world::{World, config_map, draft};

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn in_namespace(name: &str) -> Value {
    let mut object = config_map("c", json!({"a": "b"}));
    object["metadata"]["namespace"] = json!(name);
    object
}

fn gadget_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Cluster",
            "names": {"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}}}}}],
        },
    })
}

fn wave(wave: u32, draft: Draft) -> Draft {
    Draft { wave, ..draft }
}

/// P19: no server can preview it yet; after the earlier item it is a plan of its own, with another
/// digest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p19_what_an_earlier_item_brings_is_deferred_and_planned_anew_afterwards() {
    let mut world = World::start(&[]).await;
    let gadget = json!({"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {}});
    let drafts = [
        draft("namespace", &namespace("planned")),
        draft("kind", &gadget_crd()),
        draft("other", &config_map("other", json!({"a": "b"}))),
        wave(1, draft("object", &in_namespace("planned"))),
        wave(1, draft("gadget", &gadget)),
    ];
    let mark = world.plane.audit().mark();
    let plan = world.plan(&drafts).await;
    let operations: Vec<_> = plan.items.iter().map(|item| item.operation).collect();
    let (create, deferred) = (Operation::Create, Operation::Deferred);
    assert_eq!(operations, [create, create, create, deferred, deferred], "{}", plan.items[0].review.message);
    let object = &plan.items[3];
    assert!(
        object.review.diff.contains("+  a: b\n") && object.review.message.contains("Not previewed"),
        "{}",
        object.review.message
    );
    assert!(object.review.message.contains("before item namespace is applied"), "{}", object.review.message);
    let asked = world.plane.audit().since(&mark);
    assert!(
        asked.iter().all(|request| request.namespace != "planned" || request.name == "planned"),
        "no dry run in a namespace that is not there"
    );

    world.execute(&plan.items[0]).await;
    world.execute(&plan.items[1]).await;
    world.start_anew();
    let mut after = world.plan(&drafts).await;
    for _ in 0..100 {
        if after.items.iter().all(|item| item.operation != Operation::Blocked) {
            break;
        }
        // The kind is served a moment after its CRD is stored.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        world.start_anew();
        after = world.plan(&drafts).await;
    }
    let operations: Vec<_> = after.items.iter().map(|item| item.operation).collect();
    assert_eq!(operations, [Operation::NoChange, Operation::NoChange, create, create, create]);
    assert!(
        after.items[4].review.diff.contains("+  size: 3\n"),
        "a real preview, with defaults: {}",
        after.items[4].review.diff
    );
    assert_ne!(after.digest, plan.digest, "it waits for another approval");
    world.delete(&namespace("planned")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_later_than_it_is_needed_is_a_fault_of_the_profile() {
    let world = World::start(&[]).await;
    let drafts = [draft("object", &in_namespace("planned")), wave(1, draft("namespace", &namespace("planned")))];
    let plan = world.plan(&drafts).await;
    assert_eq!(plan.items[0].operation, Operation::Blocked);
    assert!(
        plan.items[0].review.message.contains("namespace planned is created only by the later item namespace"),
        "{}",
        plan.items[0].review.message
    );
    // Without anybody who brings it, the remedy is the administrator's.
    let alone = world.item(&in_namespace("planned")).await;
    assert!(
        alone.review.message.starts_with("namespace planned does not exist: create it"),
        "{}",
        alone.review.message
    );
}

/// Namespace and kind are brought by two items: it is enough that one of them is still to come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p19_an_object_in_a_namespace_that_is_there_waits_for_its_kind() {
    let world = World::start(&[]).await;
    let mut crd = gadget_crd();
    crd["spec"]["scope"] = json!("Namespaced");
    let gadget = json!({"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": "default"}, "spec": {}});
    let drafts = [draft("namespace", &namespace("default")), draft("kind", &crd), wave(1, draft("gadget", &gadget))];
    let plan = world.plan(&drafts).await;
    let operations: Vec<_> = plan.items.iter().map(|item| item.operation).collect();
    assert_eq!(
        operations,
        [Operation::NoChange, Operation::Create, Operation::Deferred],
        "{}",
        plan.items[2].review.message
    );
}
