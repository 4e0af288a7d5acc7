//! The rule for "done", against the states that the real controllers were observed to pass through
//! (machine-config-operator, pkg/controller/render and node, main of August 2026).

use serde_json::{Value, json};

use super::*;

const OLD: &str = "rendered-worker-old";
const NEW: &str = "rendered-worker-new";

fn psi(arguments: &[&str]) -> Value {
    json!({"metadata": {"name": "psi", "labels": {"role": "worker"}}, "spec": {"kernelArguments": arguments}})
}

fn tracked(arguments: &[&str]) -> Tracked {
    Tracked::Object(psi(arguments))
}

fn needed(rendered: &str) -> Needed {
    Needed::Rendered(rendered.to_owned())
}

fn rendered(arguments: &[&str]) -> Value {
    json!({"spec": {"kernelArguments": arguments}})
}

/// A pool of three machines that has finished with `NEW`, which includes `psi`.
fn finished() -> Value {
    json!({
        "metadata": {"name": "worker", "generation": 3},
        "spec": {
            "machineConfigSelector": {"matchLabels": {"role": "worker"}},
            "configuration": {"name": NEW, "source": [{"name": "base"}, {"name": "psi"}]},
        },
        "status": {
            "observedGeneration": 3, "configuration": {"name": NEW},
            "machineCount": 3, "updatedMachineCount": 3, "readyMachineCount": 3,
            "conditions": [{"type": "Updated", "status": "True"}],
        },
    })
}

/// `pool` with the value at each pointer replaced.
fn with(mut pool: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        pool.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    pool
}

fn pools(pool: &Value) -> MachineConfigPools {
    let pools = MachineConfigPools::default();
    pools.pools_listed(std::slice::from_ref(pool));
    pools.record_for_progress(&tracked(&["psi=1"]), &needed(OLD), Some(&rendered(&["a"])));
    pools.record_for_progress(&tracked(&["psi=1"]), &needed(NEW), Some(&rendered(&["a", "psi=1"])));
    pools
}

fn progress(pool: &Value) -> Rollout {
    match pools(pool).progress(&tracked(&["psi=1"]), ChangeKind::New) {
        Progress::Known(rollout) => rollout,
        Progress::Unread(names) => panic!("{names:?} unread"),
    }
}

#[test]
fn each_state_on_the_way_is_no_more_than_it_is() {
    let not_updated = json!([{"type": "Updated", "status": "False"}]);
    let condition = |kind: &str, message: &str| json!([{"type": "Updated", "status": "True"}, {"type": kind, "status": "True", "message": message}]);
    let before: &[(&str, Value)] = &[
        ("/spec/configuration", json!({"name": OLD, "source": [{"name": "base"}]})),
        ("/status/configuration", json!({"name": OLD})),
    ];
    for (name, changes, says) in [
        ("nothing shows of it", before.to_vec(), "has not rendered it"),
        (
            "rendered, and all looks done",
            vec![("/metadata/generation", json!(4)), ("/status/configuration", json!({"name": OLD}))],
            "has not started",
        ),
        ("the first status has the old configuration", vec![("/status/configuration", json!({"name": OLD}))], "3 of 3"),
        ("a spec that nobody has seen", vec![("/metadata/generation", json!(4))], "has not started"),
        (
            "machines one by one",
            vec![("/status/updatedMachineCount", json!(1)), ("/status/conditions", not_updated.clone())],
            "1 of 3",
        ),
        ("updated, not ready", vec![("/status/readyMachineCount", json!(2))], "3 of 3"),
        (
            "listed, but another configuration is wanted",
            vec![("/spec/configuration/name", json!(OLD)), ("/status/configuration", json!({"name": OLD}))],
            "has not rendered it",
        ),
        (
            "can not be rendered, and still Updated",
            [before.to_vec(), vec![("/status/conditions", condition("RenderDegraded", "bad kernelType"))]].concat(),
            "can't render it: bad kernelType",
        ),
        (
            "can not be rendered, and nothing says why",
            [before.to_vec(), vec![("/status/conditions", condition("RenderDegraded", ""))]].concat(),
            "can't render it. Until it can",
        ),
        (
            "a machine fails, and nothing says why",
            vec![
                ("/status/updatedMachineCount", json!(1)),
                ("/status/degradedMachineCount", json!(1)),
                ("/status/conditions", condition("NodeDegraded", "")),
            ],
            "is degraded on 1 of its 3 machines (1 of 3 machines are updated)",
        ),
        (
            "a machine fails",
            vec![
                ("/status/updatedMachineCount", json!(1)),
                ("/status/conditions", json!([{"type": "NodeDegraded", "status": "True", "message": "node-1"}])),
            ],
            "machines are updated): node-1",
        ),
        (
            "the image of a layered pool can't be built (fault R8)",
            vec![
                ("/status/updatedMachineCount", json!(0)),
                (
                    "/status/conditions",
                    json!([
                        {"type": "Degraded", "status": "True", "message": "sums up"},
                        {"type": "ImageBuildDegraded", "status": "True", "message": "Failed to build OS image"},
                        {"type": "RenderDegraded", "status": "False"},
                    ]),
                ),
            ],
            "is degraded (0 of 3 machines are updated): ImageBuildDegraded: Failed to build OS image",
        ),
        (
            "a machine is held up",
            vec![
                ("/status/updatedMachineCount", json!(0)),
                ("/status/unavailableMachineCount", json!(1)),
                ("/status/conditions", not_updated),
            ],
            "1 updating, cordoned or not ready",
        ),
    ] {
        match progress(&with(finished(), &changes)) {
            Rollout::Waiting { text, paused: false } => assert!(text.contains(says), "{name}: {text}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(matches!(progress(&finished()), Rollout::Done(_)));
}

#[test]
fn a_paused_pool_is_paused_and_an_empty_one_reaches_no_machine() {
    let paused = with(
        finished(),
        &[
            ("/spec/paused", json!(true)),
            ("/status/updatedMachineCount", json!(1)),
            ("/status/conditions", json!([{"type": "Updated", "status": "False"}])),
        ],
    );
    assert!(matches!(progress(&paused), Rollout::Waiting { paused: true, .. }));
    let empty = with(
        finished(),
        &[
            ("/status/machineCount", json!(0)),
            ("/status/updatedMachineCount", json!(0)),
            ("/status/readyMachineCount", json!(0)),
        ],
    );
    assert!(matches!(progress(&empty), Rollout::Waiting { paused: false, .. }));
    let planned = psi(&["psi=1"]);
    let pools = pools(&empty);
    pools.kind_listed(MACHINE_OS_CONFIG, &[]);
    let forecast =
        pools.forecast(PlannedChange { live: None, result: Some(&planned), takes_back: false, leaving: &[] });
    assert!(matches!(forecast, Forecast::Known(Err(_))), "blocked at planning already");
}

#[test]
fn what_is_removed_is_gone_when_no_pool_of_it_lists_it_and_all_are_done() {
    let target = TargetRef::of(
        &json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "psi"}}),
    );
    let gone = Tracked::Removed { target, pools: vec!["worker".to_owned(), "deleted".to_owned()] };
    let progress = |pool: &Value| match pools(pool).progress(&gone, ChangeKind::New) {
        Progress::Known(rollout) => rollout,
        Progress::Unread(names) => panic!("{names:?} unread"),
    };
    assert!(
        matches!(progress(&finished()), Rollout::Waiting { text, .. } if text.contains("to render a configuration without it"))
    );
    let rendered = with(finished(), &[("/spec/configuration/source", json!([{"name": "base"}]))]);
    let rolling = with(
        rendered.clone(),
        &[("/status/configuration/name", json!(OLD)), ("/status/updatedMachineCount", json!(1))],
    );
    assert!(matches!(progress(&rolling), Rollout::Waiting { text, .. } if text.contains("1 of 3")));
    assert!(matches!(progress(&rendered), Rollout::Done(_)));
    // A waiting object is notified of every step, by the part of it that is kept.
    let outline = MachineConfigPools::default().outline(&gone);
    let heard = |pool: &Value| pools(pool).progress_fingerprint(&outline);
    let told = with(rendered, &[("/metadata/generation", json!(4))]);
    let steps = BTreeSet::from([heard(&finished()), heard(&told), heard(&rolling)]);
    assert!(steps.len() == 3 && !steps.contains(""), "{steps:?}");
}

#[test]
fn after_an_edit_what_holds_the_content_may_be_the_old_rendering() {
    let (pool, object) = (finished(), tracked(&["psi=1"]));
    let pools = MachineConfigPools::default();
    pools.pools_listed(&[pool]);
    let Progress::Unread(unread) = pools.progress(&object, ChangeKind::Edited) else { panic!("nothing was read") };
    let base = Needed::Source("base".to_owned());
    assert_eq!(unread, [needed(NEW), base.clone()], "the rendering, and what else it is made of");
    pools.record_for_progress(&object, &base, Some(&rendered(&["a"])));
    pools.record_for_progress(&object, &needed(NEW), Some(&rendered(&["a", "psi=1", "debug"])));
    let left = pools.progress(&object, ChangeKind::Edited);
    assert!(matches!(left, Progress::Known(Rollout::Waiting { .. })), "debug is left from before: {left:?}");
    pools.record_for_progress(&object, &needed(NEW), Some(&rendered(&["a", "psi=1"])));
    assert!(matches!(pools.progress(&object, ChangeKind::Edited), Progress::Known(Rollout::Done(_))));
}

#[test]
fn what_a_plan_depends_on_is_not_what_progress_depends_on() {
    let object = tracked(&["psi=1"]);
    let for_plans = |pool: &Value| pools(pool).plan_fingerprint();
    let for_progress = |pool: &Value| pools(pool).progress_fingerprint(&object);
    let progress = with(finished(), &[("/status/updatedMachineCount", json!(2))]);
    assert_eq!(for_plans(&progress), for_plans(&finished()));
    assert_ne!(for_progress(&progress), for_progress(&finished()));
    for change in [
        ("/spec/paused", json!(true)),
        ("/spec/maxUnavailable", json!("50%")),
        ("/status/machineCount", json!(4)),
        ("/spec/configuration/name", json!(OLD)),
        ("/spec/configuration/source", json!([{"name": "99-worker-generated-kubelet"}])),
    ] {
        let changed = with(finished(), std::slice::from_ref(&change));
        assert_ne!(for_plans(&changed), for_plans(&finished()), "{change:?}");
    }
}

/// A KubeletConfig of generation 2, accepted, whose MachineConfig the pool lists since generation
/// 1.
fn edited_kubelet() -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig",
        "metadata": {"name": "limits", "generation": 2},
        "spec": {"machineConfigPoolSelector": {"matchLabels": {"pool": "worker"}}},
        "status": {"observedGeneration": 2, "conditions": [{"type": "Accepted", "status": "True"}]},
    })
}

/// Traps 2 and 10 of the observations: the pool lists the generated MachineConfig before and after
/// an edit, and reports Updated for a while. A setting that is only removed is in the old rendering
/// too.
#[test]
fn an_edited_kubelet_config_is_done_when_what_is_made_of_it_is_rendered_and_nothing_else() {
    const MADE: &str = "99-worker-generated-kubelet";
    let pool = with(
        finished(),
        &[
            ("/metadata/labels", json!({"pool": "worker"})),
            (
                "/spec/machineConfigSelector",
                json!({"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}}),
            ),
            ("/spec/configuration/source", json!([{"name": "base"}, {"name": MADE}])),
        ],
    );
    let object = Tracked::Object(edited_kubelet());
    for (name, held, done) in [
        ("the old content", &["old"][..], false),
        ("more than is wanted", &["new", "old"], false),
        ("the new content", &["new"], true),
    ] {
        let pools = MachineConfigPools::default();
        pools.pool_seen(&pool);
        let read = |name: &str| match name {
            MADE => rendered(&["new"]),
            "base" => rendered(&[]),
            NEW => rendered(held),
            other => panic!("{other} is read"),
        };
        let found = loop {
            match pools.progress(&object, ChangeKind::Edited) {
                Progress::Known(rollout) => break rollout,
                Progress::Unread(unread) => unread.iter().for_each(|needed| {
                    pools.record_for_progress(&object, needed, Some(&read(needed.name())));
                }),
            }
        };
        assert_eq!(matches!(found, Rollout::Done(_)), done, "{name}: {found:?}");
    }
}

/// Found by `make fuzz`: sums over the machines of pools.
#[test]
fn the_machines_of_pools_can_be_added_up_whatever_they_say() {
    let pool = |name: &str| {
        let counts = [("/metadata/name", json!(name)), ("/status/machineCount", json!(u32::MAX))];
        with(finished(), &counts)
    };
    let all = MachineConfigPools::default();
    all.pools_listed(&[pool("worker"), pool("infra"), pool("gpu")]);
    all.kind_listed(MACHINE_OS_CONFIG, &[]);
    let planned = psi(&["psi=1"]);
    let planned = PlannedChange { live: None, result: Some(&planned), takes_back: false, leaving: &[] };
    all.record_for_forecast(planned, &needed(NEW), Some(&rendered(&["a"])));
    match all.forecast(planned) {
        Forecast::Known(Ok(effect)) => assert_eq!((effect.pools.len(), effect.machines()), (3, 300_000)),
        other => panic!("{other:?}"),
    }
}

/// Found by `make fuzz`: the controller reads objects until none is unread.
#[test]
fn what_one_pool_has_rendered_and_another_one_lists_is_read_once() {
    let other = [
        ("/metadata/name", json!("infra")),
        ("/spec/configuration", json!({"name": "rendered-infra", "source": [{"name": "psi"}, {"name": NEW}, {}]})),
    ];
    let all = MachineConfigPools::default();
    all.pools_listed(&[finished(), with(finished(), &other)]);
    let (object, tracked) = (psi(&["psi=1"]), tracked(&["psi=1"]));
    let planned = psi(&["psi=1", "more"]);
    let planned = PlannedChange { live: Some(&object), result: Some(&planned), takes_back: false, leaving: &[] };
    let read = rendered(&["psi=1", "more=1"]);
    let mut rounds = 0;
    while let Progress::Unread(unread) = all.progress(&tracked, ChangeKind::Edited) {
        unread.iter().for_each(|needed| all.record_for_progress(&tracked, needed, Some(&read)));
        rounds += 1;
        assert!(rounds < 5 && !unread.iter().any(|needed| needed.name().is_empty()), "{unread:?}");
    }
    all.kind_listed(MACHINE_OS_CONFIG, &[]);
    while let Forecast::Unread(unread) = all.forecast(planned) {
        unread.iter().for_each(|needed| all.record_for_forecast(planned, needed, Some(&read)));
        rounds += 1;
        assert!(rounds < 10, "{unread:?}");
    }
}

/// Fault R6: a part of ours that a later MachineConfig overrides is never rendered and is not
/// waited for; a part that an earlier one, or nobody, has with other values is.
#[test]
fn r6_what_a_later_one_overrides_is_not_waited_for() {
    let object = |name: &str, file: &str, unit: &str| {
        json!({"metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}}, "spec": {"config": {
            "storage": {"files": [{"path": "/etc/a", "contents": {"source": file}}]},
            "systemd": {"units": [{"name": "a.service", "contents": unit, "enabled": true}]},
        }}})
    };
    let ours = Tracked::Object(object("90-ours", "data:,ours", "ours"));
    let theirs = |name: &str| object(name, "data:,theirs", "theirs");
    let role = |name: &str| {
        let sources = json!([{"name": "90-ours"}, {"name": name}]);
        let selector = json!({"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}});
        with(finished(), &[("/spec/configuration/source", sources), ("/spec/machineConfigSelector", selector)])
    };
    for (name, done) in [("95-theirs", true), ("50-theirs", false)] {
        for change in [ChangeKind::New, ChangeKind::Edited] {
            let pools = MachineConfigPools::default();
            pools.pools_listed(&[role(name)]);
            let mut read = Vec::new();
            let rollout = loop {
                match pools.progress(&ours, change) {
                    Progress::Known(rollout) => break rollout,
                    Progress::Unread(unread) => {
                        for needed in unread {
                            pools.record_for_progress(&ours, &needed, Some(&theirs(needed.name())));
                            read.push(needed);
                        }
                    }
                }
            };
            assert_eq!(matches!(rollout, Rollout::Done(_)), done, "{name} {change:?}: {rollout:?}");
            assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), read.len(), "nothing is read twice: {read:?}");
        }
    }
    // If it is held as it is, nothing else is read.
    let pools = MachineConfigPools::default();
    pools.pools_listed(&[role("95-theirs")]);
    assert_eq!(pools.progress(&ours, ChangeKind::New), Progress::Unread(vec![needed(NEW)]));
    pools.record_for_progress(&ours, &needed(NEW), Some(&object(NEW, "data:,ours", "ours")));
    assert!(matches!(pools.progress(&ours, ChangeKind::New), Progress::Known(Rollout::Done(_))));
}

/// Fault R8: for pools that a MachineOSConfig names, the plan says that an image is built first.
#[test]
fn r8_a_layered_pool_is_told_beforehand() {
    let pools = pools(&finished());
    let wanted = psi(&["psi=1", "more"]);
    let effect = || {
        let planned = PlannedChange { live: None, result: Some(&wanted), takes_back: false, leaving: &[] };
        pools.record_for_forecast(planned, &needed(NEW), Some(&rendered(&["a"])));
        match pools.forecast(planned) {
            Forecast::Known(effect) => effect.unwrap(),
            asked => panic!("{asked:?}"),
        }
    };
    let before = pools.plan_fingerprint();
    let planned = PlannedChange { live: None, result: Some(&wanted), takes_back: false, leaving: &[] };
    assert_eq!(pools.forecast(planned), Forecast::Unlisted(MACHINE_OS_CONFIG));
    for (named, layered) in [("other", false), ("worker", true)] {
        pools.kind_listed(MACHINE_OS_CONFIG, &[json!({"spec": {"machineConfigPool": {"name": named}}}), json!({})]);
        pools.pool_seen(&finished());
        assert_eq!(effect().pools["worker"].layered, layered, "{named}");
        let told =
            effect().notes.iter().any(|note| note.contains("worker is layered: if the change needs a new image"));
        assert_eq!(told, layered, "{named}");
        assert_eq!(pools.plan_fingerprint() != before, layered, "{named}: it is planned anew");
    }
}

/// Faults R8 and R9: a problem that only a person can resolve, as long as the object waits for
/// that.
#[test]
fn r8_r9_a_pool_that_can_not_be_rendered_or_built_is_stuck() {
    let not_rendered = ("/spec/configuration", json!({"name": OLD, "source": [{"name": "base"}]}));
    let rolling = ("/status/updatedMachineCount", json!(1));
    for (condition, at, stuck) in [
        ("RenderDegraded", &not_rendered, true),
        ("RenderDegraded", &rolling, false),
        ("ImageBuildDegraded", &rolling, true),
        ("NodeDegraded", &rolling, false),
        ("Updating", &not_rendered, false),
    ] {
        let said = json!([{"type": condition, "status": "True", "message": "m"}]);
        let pools = pools(&with(finished(), &[("/status/conditions", said), at.clone()]));
        assert_eq!(pools.is_stuck(&tracked(&["psi=1"]), ChangeKind::New), stuck, "{condition} {at:?}");
    }
}

/// Found in a review: an exact plan lists MachineOSConfigs again, and until it has, what watches
/// say of a layered pool is no change of it.
#[test]
fn a_layered_pool_stays_layered_while_its_configs_are_listed_again() {
    let pools = pools(&finished());
    pools.kind_listed(MACHINE_OS_CONFIG, &[json!({"spec": {"machineConfigPool": {"name": "worker"}}})]);
    let before = (pools.plan_fingerprint(), pools.progress_fingerprint(&tracked(&["psi=1"])));
    pools.read_anew();
    pools.pool_seen(&finished());
    assert_eq!((pools.plan_fingerprint(), pools.progress_fingerprint(&tracked(&["psi=1"]))), before);
    let wanted = psi(&["psi=1", "more"]);
    let planned = PlannedChange { live: None, result: Some(&wanted), takes_back: false, leaving: &[] };
    assert_eq!(pools.forecast(planned), Forecast::Unlisted(MACHINE_OS_CONFIG), "it is listed before it is believed");
}
