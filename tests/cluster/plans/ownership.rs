//! Who owns what, on the real server: what an apply takes, loses, leaves and gives back.

use advisor_core::api::Operation;
use advisor_core::plan::Basis;
use advisor_core::plan::overrides::Choices;
use advisor_engine::engine::{Engine, Task, manager};
use object::fields::FieldPath;
use profile_sdk::{Access, Body, Declared, Kind, ObjectRef};
use serde_json::{Value, json};

use super::world::{PROFILE, World, draft, widget};

/// S12: every manager that people meet, against a field that is equal, different, or not ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_the_owner_of_every_field_that_is_taken_over_is_named() {
    let world = World::start(&[]).await;
    for (name, applies, controller) in [
        ("kubectl-edit", false, false),
        ("kubectl-client-side-apply", false, false),
        ("argocd-controller", true, true),
        ("Mozilla", false, false),
        ("node-fetch", false, false),
        ("hyperconverged-cluster-operator", false, true),
    ] {
        let theirs = widget(json!({"size": 1, "text": "theirs"}));
        if applies {
            world.apply(&theirs, name).await;
        } else {
            world.create(&theirs, name).await;
        }
        let same = world.item(&widget(json!({"size": 1}))).await;
        assert_eq!((same.operation, same.review.conflicts.len()), (Operation::NoChange, 0), "{name}: adopted silently");

        let other = world.item(&widget(json!({"size": 2}))).await;
        let conflict = &other.review.conflicts[0];
        assert_eq!(
            (conflict.path.as_str(), conflict.manager.as_str(), conflict.controller, &conflict.live, &conflict.desired),
            ("/spec/size", name, controller, &Some(json!(1)), &Some(json!(2)))
        );
        assert!(
            other.needs_review() && other.review.message.contains(&format!("Takes 1 field over from {name}.")),
            "{}",
            other.review.message
        );
        assert_eq!(
            other.review.message.contains("looks like a controller"),
            controller,
            "{name}: {}",
            other.review.message
        );

        let absent = world.item(&widget(json!({"set": ["x"]}))).await;
        assert!(
            absent.review.conflicts.is_empty() && absent.review.diff.contains(" text: theirs"),
            "{name}: left alone: {}",
            absent.review.diff
        );
        world.delete(&theirs).await;
    }
}

/// S3, defect D39: what an apply replaces as a whole, on the real lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_entries_of_others_that_an_atomic_list_loses_are_said() {
    let world = World::start(&[]).await;
    let theirs = json!({"atomic": ["Theirs", "AlsoTheirs"], "selector": {"zone": "a"}, "set": ["theirs"], "map": [{"name": "theirs"}]});
    world.create(&widget(theirs), "somebody").await;
    let ours = json!({"atomic": ["Ours"], "selector": {"rack": "1"}, "set": ["ours"], "map": [{"name": "ours"}]});
    let item = world.item(&widget(ours)).await;
    assert_eq!(
        item.review.lost,
        ["/spec/atomic: \"Theirs\"", "/spec/atomic: \"AlsoTheirs\"", "/spec/selector/zone: \"a\""]
    );
    assert!(
        item.review.message.contains("This removes entries that this configuration does not own alone"),
        "{}",
        item.review.message
    );
    for kept in [" - theirs\n", " - mode: Slow\n     name: theirs\n"] {
        assert!(item.review.diff.contains(kept), "sets and map lists keep what others put there: {}", item.review.diff);
    }
    assert!(item.review.diff.contains("\n-  - Theirs\n-  - AlsoTheirs\n"), "{}", item.review.diff);
}

/// S1: what we gave up and others own too stays, and so does what should not be there; both are
/// said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_what_an_apply_can_not_take_away_is_said() {
    let world = World::start(&[]).await;
    for name in ["kubectl-client-side-apply", "Mozilla", "node-fetch"] {
        world.create(&widget(json!({"size": 1, "text": "theirs"})), name).await;
        world.apply(&widget(json!({"size": 1, "set": ["ours"]})), &manager(PROFILE)).await;
        let mut without = draft("item", &widget(json!({"set": ["ours"]})));
        without.unwanted = vec!["/spec/text".into(), "/spec/mode".into(), "/spec/memory".into()];
        let item = world.item_of(without.clone()).await;
        assert_eq!(item.operation, Operation::NoChange);
        let owns = format!("{name} owns it, and an apply can't remove it");
        assert_eq!(
            item.review.kept,
            [
                format!("/spec/size stays 1: {owns}"),
                format!("/spec/text stays \"theirs\": {owns}"),
                format!("/spec/mode stays \"Slow\": {owns}"),
            ]
        );
        // What nobody has set is a default.
        world.delete(&widget(json!({}))).await;
        world.apply(&widget(json!({"size": 1, "set": ["ours"]})), name).await;
        let item = world.item_of(without.clone()).await;
        assert_eq!(
            item.review.kept,
            ["/spec/mode stays \"Slow\": no field manager owns it, so it is a default of the kind"]
        );
        world.apply(&widget(json!({"size": 1, "set": ["ours"]})), &manager(PROFILE)).await;
        world.apply(&widget(json!({"size": 1})), name).await;
        // What is ours alone goes with it.
        without.body = Body::Ensure(widget(json!({"size": 1})));
        let item = world.item_of(without).await;
        assert!(item.review.diff.contains("-  set:\n-  - ours\n"), "{}", item.review.diff);
        world.delete(&widget(json!({}))).await;
    }
}

/// N1: two fields for one purpose, one of them defaulted by the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n1_a_default_of_the_server_beside_our_field_is_said() {
    let Some(crd) = controlplane::real_crd("operators/nodehealthchecks.remediation.medik8s.io.yaml") else {
        return;
    };
    let world = World::start(&[crd]).await;
    let mut object = json!({
        "apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "metadata": {"name": "n"},
        "spec": {
            "selector": {"matchExpressions": [{"key": "node-role.kubernetes.io/worker", "operator": "Exists"}]},
            "remediationTemplate": {"apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate", "name": "t", "namespace": "default"},
        },
    });
    world.create(&object, "console").await;
    let live = world.get(&object).await.unwrap();
    object["spec"]["maxUnhealthy"] = json!(2);
    let mut wanted = draft("item", &object);
    wanted.unwanted = vec!["/spec/minHealthy".into()];
    let item = world.item_of(wanted).await;
    match (live.pointer("/spec/minHealthy"), item.operation) {
        (_, Operation::Blocked) => assert!(item.review.message.contains("refuses"), "{}", item.review.message),
        (Some(_), Operation::Update) => {
            assert!(item.review.kept[0].starts_with("/spec/minHealthy stays"), "{:?}", item.review.kept)
        }
        (None, operation) => assert_eq!((operation, item.review.kept.len()), (Operation::Update, 0)),
        (Some(_), operation) => panic!("{operation:?}: {}", item.review.message),
    }
}

/// S19: our name with another operation, subresource or ending is not ours; the name without a
/// profile is that of the Go program, whose fields the reviewed plan takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s19_what_an_earlier_version_owns_is_taken_over_and_said() {
    let world = World::start(&[]).await;
    world.apply(&widget(json!({"size": 1, "text": "old"})), "virt-advisor-operator").await;
    world.edit(&widget(json!({})), json!({"spec": {"memory": "1Gi"}}), "virt-advisor-operator/tested-too").await;
    let ours = widget(json!({"size": 2}));
    let item = world.item(&ours).await;
    assert!(
        item.review
            .message
            .contains("(field manager virt-advisor-operator) owns 2 of its fields; 1 of them are taken over"),
        "{}",
        item.review.message
    );
    assert_eq!(item.review.conflicts[0].manager, "virt-advisor-operator");
    world.execute(&item).await;
    let entries = |object: &Value| object["metadata"]["managedFields"].as_array().unwrap().len();
    let before = entries(&world.get(&ours).await.unwrap());
    for _ in 0..10 {
        assert_eq!(world.item(&ours).await.operation, Operation::NoChange);
    }
    assert_eq!(entries(&world.get(&ours).await.unwrap()), before, "looking writes no managedFields");
}

/// Two configurations that want different values at one path: neither takes it from the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_of_another_configuration_is_not_taken_over() {
    let world = World::start(&[]).await;
    world.apply(&widget(json!({"size": 1})), &manager("density")).await;
    let item = world.item(&widget(json!({"size": 2}))).await;
    assert_eq!(item.operation, Operation::Blocked);
    assert!(
        item.review.message.starts_with("configuration density wants a different value at /spec/size"),
        "{}",
        item.review.message
    );
    assert_eq!(
        world.item(&widget(json!({"size": 1}))).await.operation,
        Operation::NoChange,
        "the same value is shared"
    );
}

/// Objects that were never applied, or whose managedFields somebody has stripped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_without_managed_fields_are_planned_like_others() {
    let world = World::start(&[]).await;
    let theirs = widget(json!({"size": 1, "atomic": ["x"]}));
    world.create(&theirs, "somebody").await;
    world.edit(&theirs, json!({"metadata": {"managedFields": [{}]}}), "somebody").await;
    let stripped = world.get(&theirs).await.unwrap();
    assert!(stripped["metadata"].get("managedFields").is_none(), "{stripped}");
    let item = world.item(&widget(json!({"size": 2, "atomic": ["y"]}))).await;
    let managers: Vec<_> = item.review.conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    assert_eq!(managers, ["before-first-apply", "before-first-apply"]);
    assert_eq!(item.review.lost, ["/spec/atomic: \"x\""]);
    let applied = world.execute(&item).await;
    assert_eq!(applied["spec"]["size"], 2);

    // Ours, stripped: it is as wanted, and what it was is not forgotten by the server's own doing.
    world.edit(&theirs, json!({"metadata": {"managedFields": [{}]}}), "somebody").await;
    assert_eq!(world.item(&widget(json!({"size": 2, "atomic": ["y"]}))).await.operation, Operation::NoChange);
}

/// S22: an administrator's own apply, of an older and smaller file, goes on working.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s22_kubectls_own_annotation_is_left_alone() {
    let world = World::start(&[]).await;
    let annotation = "{\"apiVersion\":\"example.dev/v1\",\"kind\":\"Widget\",\"spec\":{\"text\":\"theirs\"}}\n";
    let mut theirs = widget(json!({"text": "theirs"}));
    theirs["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": annotation});
    world.create(&theirs, "kubectl-client-side-apply").await;
    let item = world.item(&widget(json!({"size": 1}))).await;
    let after = world.execute(&item).await;
    assert_eq!(after["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"], annotation);
    let mut bad = widget(json!({"size": 1}));
    bad["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    assert_eq!(world.item(&bad).await.operation, Operation::Blocked);
}

fn removal(name: &str) -> profile_sdk::Draft {
    let target = ObjectRef {
        api_version: "example.dev/v1".into(),
        kind: "Widget".into(),
        namespace: Some("default".into()),
        name: name.into(),
    };
    profile_sdk::Draft::new("item", Body::Remove(target), "is not wanted any more")
}

/// A removal takes the object where it is ours alone, our fields where others have a part in it,
/// and nothing that never was ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_takes_back_what_is_ours_and_nothing_else() {
    let world = World::start(&[]).await;
    let ours = widget(json!({"size": 1, "labels": {"a": "b"}}));
    assert_eq!(world.item_of(removal("w")).await.operation, Operation::NoChange, "nothing is there");

    world.apply(&ours, &manager(PROFILE)).await;
    // Status, finalizers and annotations of its controller do not make it somebody else's.
    world
        .edit(
            &ours,
            json!({"metadata": {"annotations": {"c": "d"}, "finalizers": ["example.dev/hold"]}}),
            "widget-controller",
        )
        .await;
    let goes = world.item_of(removal("w")).await;
    assert_eq!(goes.operation, Operation::Remove, "{}", goes.review.message);
    assert!(
        goes.review.diff.contains("+++ /dev/null") && goes.review.message.contains("The object is deleted"),
        "{}",
        goes.review.message
    );
    assert!(world.get(&ours).await.is_some(), "planning removes nothing");

    world.edit(&ours, json!({"spec": {"text": "theirs"}}), "somebody").await;
    let stays = world.item_of(removal("w")).await;
    assert_eq!(stays.operation, Operation::Remove);
    assert!(
        stays.review.message.contains("other field managers own fields of it: somebody"),
        "{}",
        stays.review.message
    );
    assert!(
        stays.review.diff.contains("-  size: 1\n") && stays.review.diff.contains(" text: theirs"),
        "{}",
        stays.review.diff
    );
    assert!(
        matches!(world.try_execute(&goes).await, Err(advisor_cluster::ClusterError::Moved)),
        "the older plan is stale"
    );
    let released = world.execute(&stays).await;
    assert_eq!(released["spec"], json!({"text": "theirs", "mode": "Slow"}));

    // After that it is done, for whoever remembers that there was something to take back.
    let remembered = json!({
        "name": "item", "targetRef": {"apiVersion": "example.dev/v1", "kind": "Widget", "name": "w", "namespace": "default"},
        "operation": "Remove", "wave": 0, "impactSeverity": "Medium",
    });
    let remembered = [serde_json::from_value(remembered).unwrap()];
    let done = world.plan_after(&[removal("w")], &remembered).await.unwrap();
    assert!(done.is_satisfied(), "{}", done.items[0].review.message);

    let foreign = world.item_of(removal("w")).await;
    assert_eq!(foreign.operation, Operation::Blocked, "it is not ours any more");
    assert!(
        foreign.review.message.contains("can't be removed by this configuration: all of it belongs to somebody"),
        "{}",
        foreign.review.message
    );
    world.edit(&ours, json!({"metadata": {"finalizers": null}}), "widget-controller").await;
    world.delete(&ours).await;

    world.apply(&ours, &manager(PROFILE)).await;
    let goes = world.item_of(removal("w")).await;
    assert_eq!(world.try_execute(&goes).await.unwrap(), (advisor_core::plan::status::Written::Removed, None));

    // What the Go program has applied is ours, too.
    world.apply(&ours, "virt-advisor-operator").await;
    let goes = world.item_of(removal("w")).await;
    assert!(
        goes.operation == Operation::Remove && goes.review.message.contains("The object is deleted"),
        "{}",
        goes.review.message
    );
    assert_eq!(world.try_execute(&goes).await.unwrap().1, None);
}

/// What is read off an object of conflicts is what the server says of them: whoever changed the
/// field, and however.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_read_off_the_object_are_those_of_the_server() {
    let world = World::start(&[]).await;
    let ours = json!({
        "size": 1, "mode": "Fast", "atomic": ["a"], "set": ["a"], "map": [{"name": "a", "size": 1}],
        "selector": {"zone": "a"}, "labels": {"a.b/c": "1"}, "free": {"deep": {"x": 1, "list": [1]}},
    });
    let ours = widget(ours);
    let kind = world.cluster.resolve_object(&ours).await.unwrap().unwrap();
    for (number, edit) in [
        json!({"size": 2}),
        json!({"size": 2, "mode": "Slow", "text": "theirs"}),
        json!({"atomic": ["a", "b"], "set": ["b"], "selector": {"zone": "b", "rack": "1"}}),
        json!({"map": [{"name": "a", "size": 2}, {"name": "b"}]}),
        json!({"map": [{"name": "b", "size": 1}]}),
        json!({"labels": {"a.b/c": "2", "d": "1"}, "free": {"deep": {"x": 2, "y": 1, "list": [1, 2]}}}),
        json!({"labels": null, "free": null, "size": null}),
    ]
    .into_iter()
    .enumerate()
    {
        for applies in [false, true] {
            world.apply(&ours, &manager(PROFILE)).await;
            match (applies, edit.to_string().contains("null")) {
                (false, _) => world.edit(&ours, json!({"spec": edit}), "rival").await,
                (true, false) => drop(world.apply(&widget(edit.clone()), "rival").await),
                (true, true) => {}
            }
            let live = world.get(&ours).await.unwrap();
            let exact = world.cluster.preview(&kind, &ours, Some(&live), &manager(PROFILE)).await.unwrap();
            let short = world.cluster.preview_by_force(&kind, &ours, Some(&live), &manager(PROFILE)).await.unwrap();
            let sorted = |mut conflicts: Vec<(FieldPath, String)>| {
                conflicts.sort();
                conflicts
            };
            assert_eq!(sorted(short.conflicts), sorted(exact.conflicts), "edit {number}, applies {applies}");
            let without = |mut object: Value| {
                object["metadata"]["managedFields"].take();
                object
            };
            assert_eq!(without(short.result), without(exact.result));
            world.delete(&ours).await;
        }
    }
}

/// What a profile only changes and never creates, like the HyperConverged, is never deleted either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_profile_never_creates_it_never_deletes() {
    let world = World::start(&[]).await;
    let ours = widget(json!({"size": 1}));
    world.apply(&ours, &manager(PROFILE)).await;
    let kind = Kind { group: "example.dev", versions: &["v1"], kind: "Widget", plural: "widgets" };
    let kinds = [Declared { kind, access: Access::Update, name: None, namespace: None }];
    let drafts = [removal("w")];
    let unheard = |_, _| {};
    let task = Task {
        profile: PROFILE,
        kinds: &kinds,
        drafts: &drafts,
        remembered: &[],
        claims: &[],
        choices: &Choices::default(),
        unwatched: &std::collections::BTreeMap::new(),
        rivals: &[],
        exact: true,
    };
    let plan = Engine::new(&world.cluster, &world.pools, &unheard).plan(Basis::default(), task).await.unwrap();
    let item = &plan.items[0];
    assert_eq!(item.operation, Operation::Remove);
    assert!(
        item.review.message.contains("the object stays, because this profile never deletes objects of its kind"),
        "{}",
        item.review.message
    );
    let left = world.execute(item).await;
    assert_eq!(left["spec"].get("size"), None, "{left}");
}
