//! MachineConfigs and KubeletConfigs: what the machines will do, from the pools as they are.

use advisor_core::api::{Operation, Severity};
use advisor_core::plan::items::{PlanItem, PoolEffect};
use advisor_core::rollout::Tracked;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::world::{World, draft};

const ROLE: &str = "machineconfiguration.openshift.io/role";

fn machine_config(name: &str, role: &str, spec: Value) -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE: role}}, "spec": spec})
}

fn psi() -> Value {
    machine_config("99-worker-psi-karg", "worker", json!({"kernelArguments": ["psi=1"]}))
}

fn base64(text: &[u8]) -> String {
    format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text))
}

/// A swap script, as a profile would bring it.
fn swap(script: &str, more: Value) -> Value {
    let mut files = vec![
        json!({"path": "/usr/local/bin/swap.sh", "mode": 493, "overwrite": true, "contents": {"source": base64(script.as_bytes())}}),
        json!({"path": "/etc/swap.secret", "mode": 384, "contents": {"source": base64(b"canary")}}),
    ];
    files.extend(more.as_array().into_iter().flatten().cloned());
    let unit = json!({"name": "swap.service", "enabled": true, "contents": "[Unit]\nDescription=Swap\n\n[Install]\nWantedBy=multi-user.target\n"});
    machine_config(
        "90-worker-swap",
        "worker",
        json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": files}, "systemd": {"units": [unit]}}, "kernelArguments": ["a=1"]}),
    )
}

/// M8, M9, defect D40, D41: figures come from the pools that render it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m8_the_pools_that_render_it_and_their_machines_are_in_the_item_and_the_summary() {
    let world = World::with_machines().await;
    let item = world.item(&psi()).await;
    assert_eq!((item.operation, item.review.severity), (Operation::Create, Severity::High));
    assert_eq!(
        item.review.effect.pools,
        [(
            "worker".to_owned(),
            PoolEffect { machines: 3, at_once: 1, max_unavailable: Some("1".into()), ..PoolEffect::default() }
        )]
        .into()
    );
    assert!(
        item.review.message.contains("Reboots the 3 machines of pool worker, one by one."),
        "{}",
        item.review.message
    );
    let master = world.item(&machine_config("99-master", "master", json!({"kernelArguments": ["psi=1"]}))).await;
    assert!(master.review.message.contains("Reboots the only machine of pool master."), "{}", master.review.message);

    // A custom pool renders what is meant for workers too.
    let pool = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "infra"},
        "spec": {"paused": true, "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/infra": ""}},
            "machineConfigSelector": {"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]}},
    });
    world.create(&pool, "admin").await;
    world.see_pools().await;
    let plan = world.plan(&[draft("psi", &psi())]).await;
    let item = &plan.items[0];
    assert_eq!(item.review.effect.pools.keys().collect::<Vec<_>>(), ["worker"], "a pool without machines reboots none");
    assert!(item.review.message.contains("Pool infra has no machines now"), "{}", item.review.message);
    assert!(item.review.message.contains("MachineConfigPool infra is paused"), "{}", item.review.message);
    assert!(advisor_core::plan::figures::in_figures(&plan).contains("3 machines reboot (pool worker)"));

    let astray = world.item(&machine_config("99-gpu", "gpu", json!({"kernelArguments": ["psi=1"]}))).await;
    assert_eq!(astray.operation, Operation::Blocked);
    assert!(astray.review.message.contains("no MachineConfigPool selects"), "{}", astray.review.message);
}

/// M6, and facts on rendering: whether the rendered result changes is read off what is rendered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_what_the_machines_have_already_is_told_from_what_they_have_not() {
    let world = World::with_machines().await;
    let pools = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    let pool = world.get(&pools).await.unwrap();
    let rendered = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": pool["spec"]["configuration"]["name"]}});
    let rendered = world.get(&rendered).await.unwrap();
    let file = rendered["spec"]["config"]["storage"]["files"][0].clone();
    let same = machine_config(
        "99-same",
        "worker",
        json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}}),
    );
    let mark = world.plane.audit().mark();
    let item = world.item(&same).await;
    assert!(item.review.effect.pools.is_empty() && item.review.severity != Severity::High, "{}", item.review.message);
    assert!(item.review.message.contains("have all of it already: none reboots"), "{}", item.review.message);
    let asked = world.plane.audit().since(&mark);
    assert_eq!(
        asked.iter().filter(|request| request.resource == "machineconfigs").count(),
        3,
        "itself, a dry run, and what is rendered"
    );

    // An argument that is rendered already, from another MachineConfig.
    let argument = rendered["spec"]["kernelArguments"][0].as_str().unwrap().to_owned();
    let item = world.item(&machine_config("99-again", "worker", json!({"kernelArguments": [argument]}))).await;
    assert_eq!(item.review.effect.machines(), 3, "arguments are joined, duplicates kept");
    assert!(
        item.review
            .message
            .contains(&format!("Kernel argument {argument} is already provided by 97-worker-generated-kubelet")),
        "{}",
        item.review.message
    );
}

/// M15: contents are shown decoded, with path and mode; a change of one line is one line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m15_files_and_units_are_shown_as_the_machine_will_have_them() {
    let world = World::with_machines().await;
    let new = world.item(&swap("#!/bin/sh\nset -e\nswapon -a\n", json!([]))).await;
    for line in [
        "+          source (decoded): |\n+            #!/bin/sh\n+            set -e\n+            swapon -a\n",
        "+        mode: 493 (octal 0755)\n",
        "+        path: /usr/local/bin/swap.sh\n",
        "+      - contents: |\n+          [Unit]\n+          Description=Swap\n+\n+          [Install]\n",
        "+  kernelArguments:\n+  - a=1\n",
        "+      - contents: (hidden 1)\n+        mode: 384 (octal 0600)\n",
    ] {
        assert!(new.review.diff.contains(line), "{line}: {}", new.review.diff);
    }
    assert!(!new.review.diff.contains("canary") && !new.review.diff.contains("base64"), "{}", new.review.diff);
    world.execute(&new).await;
    let changed = world.item(&swap("#!/bin/sh\nset -e\nswapon --all\n", json!([]))).await;
    assert!(
        changed.review.diff.contains("\n-            swapon -a\n+            swapon --all\n"),
        "{}",
        changed.review.diff
    );
    assert_eq!(
        (changed.review.diff.matches("\n-").count(), changed.review.diff.matches("\n+").count()),
        (1, 2),
        "{}",
        changed.review.diff
    );

    // The digest is of what travels: another encoding of the same contents is another plan, and is
    // seen.
    let mut percent = swap("#!/bin/sh\nset -e\nswapon -a\n", json!([]));
    percent["spec"]["config"]["storage"]["files"][0]["contents"]["source"] =
        json!("data:,%23!/bin/sh%0Aset%20-e%0Aswapon%20-a%0A");
    let encoded = world.item(&percent).await;
    assert_eq!(encoded.operation, Operation::Update);
    assert!(encoded.review.diff.contains("+          source: data:,%23!/bin/sh"), "{}", encoded.review.diff);
    let binary = json!([{"path": "/etc/blob", "mode": 420, "contents": {"source": base64(&[0, 255, 1])}}]);
    let with_blob = world.item(&swap("#!/bin/sh\nset -e\nswapon -a\n", binary)).await;
    assert!(with_blob.review.diff.contains("3 bytes of binary contents, sha256 "), "{}", with_blob.review.diff);
}

/// KubeletConfigs: the pools they select, and what the controllers would refuse after the server
/// has taken it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_config_says_whose_kubelets_restart() {
    let world = World::with_machines().await;
    let config = |kubelet: Value| {
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "k"},
            "spec": {"machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}, "kubeletConfig": kubelet},
        })
    };
    let item = world.item(&config(json!({"maxPods": 300, "systemReserved": {"memory": "1Gi"}}))).await;
    assert_eq!((item.review.severity, item.review.effect.machines()), (Severity::High, 3));
    assert!(
        item.review
            .message
            .contains("With that, the kubelet of each machine of pool worker gets another configuration."),
        "{}",
        item.review.message
    );
    assert!(
        item.review.diff.contains("+  kubeletConfig:\n+    maxPods: 300\n+    systemReserved:\n+      memory: 1Gi\n"),
        "{}",
        item.review.diff
    );
    world.execute(&item).await;
    assert_eq!(
        world
            .item(&config(json!({"maxPods": 300, "systemReserved": {"memory": "1Gi"}})))
            .await
            .review
            .effect
            .machines(),
        0
    );
    let refused = world.item(&config(json!({"failSwapOn": false}))).await;
    assert_eq!(refused.operation, Operation::Blocked);
    assert!(
        refused.review.message.contains("the Machine Config Operator rejects /spec/kubeletConfig/failSwapOn"),
        "{}",
        refused.review.message
    );
}

/// What machines must have is all of the object, also what others put into it: else an edit would
/// be waited for in vain. What is kept of the object to track it.
fn tracked(item: &PlanItem) -> &Value {
    match item.live.followed.as_ref() {
        Some(Tracked::Object(object)) => object,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_is_followed_by_the_object_as_it_is() {
    let world = World::with_machines().await;
    let theirs = machine_config("99-worker-psi-karg", "worker", json!({"extensions": ["usbguard"]}));
    world.create(&theirs, "somebody").await;
    let item = world.item(&psi()).await;
    assert_eq!(tracked(&item)["spec"]["extensions"], json!(["usbguard"]));
    world.execute(&item).await;
    let followed = tracked(&world.item(&psi()).await).clone();
    assert_eq!(
        (&followed["spec"]["extensions"], &followed["spec"]["kernelArguments"]),
        (&json!(["usbguard"]), &json!(["psi=1"]))
    );
    let astray = world.item(&machine_config("99-gpu", "gpu", json!({"kernelArguments": ["psi=1"]}))).await;
    assert!(astray.live.followed.is_some(), "a pool that comes may change the verdict");
}

/// What a pool has rendered is large, and is read once for all items of a plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_pool_has_rendered_is_read_once_for_all_items() {
    let world = World::with_machines().await;
    let drafts: Vec<_> = (0..10)
        .map(|index| {
            let name = format!("9{index}-worker-x");
            draft(
                &format!("item-{index}"),
                &machine_config(&name, "worker", json!({"kernelArguments": [format!("x{index}=1")]})),
            )
        })
        .collect();
    let mark = world.plane.audit().mark();
    let plan = world.plan(&drafts).await;
    assert!(plan.items.iter().all(|item| item.review.effect.machines() == 3));
    let asked = world.plane.audit().since(&mark);
    assert_eq!(asked.iter().filter(|request| request.name.starts_with("rendered-")).count(), 1);
}

/// A label that moves an object takes it from the machines of one pool and gives it to those of
/// another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_moves_reboots_both_pools() {
    let world = World::with_machines().await;
    world.create(&machine_config("99-x", "worker", json!({"kernelArguments": ["x=1"]})), "somebody").await;
    let item = world.item(&machine_config("99-x", "master", json!({"kernelArguments": ["x=1"]}))).await;
    assert_eq!(item.review.effect.pools.keys().collect::<Vec<_>>(), ["master", "worker"], "{}", item.review.message);
    let image = machine_config("99-image", "worker", json!({"osImageURL": "quay.io/other"}));
    assert_eq!(world.item(&image).await.review.effect.machines(), 3, "another operating system reboots");
}
