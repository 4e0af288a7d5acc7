//! The effect of planned MachineConfigs, by the observed merge rules.

use serde_json::json;

use super::*;
use crate::plan::items::{PoolEffect, one_by_one};
use crate::plan::remedy::Remedy;

pub(super) fn machine_config(name: &str, role: &str, spec: Value) -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE: role}}, "spec": spec})
}

pub(super) fn kargs(arguments: &[&str]) -> Value {
    json!({"kernelArguments": arguments})
}

pub(super) fn files(files: &[(&str, &str)]) -> Value {
    let files: Vec<_> =
        files.iter().map(|(path, source)| json!({"path": path, "contents": {"source": source}})).collect();
    json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": files}}})
}

/// Pools with their rendered configurations, and the sources of these.
pub(super) struct World {
    pub(super) pools: BTreeMap<String, Pool>,
    pub(super) objects: BTreeMap<String, Value>,
    pub(super) policies: Policies,
}

impl World {
    pub(super) fn new(rendered: Value, sources: &[Value]) -> Self {
        let mut objects = BTreeMap::from([("rendered".to_owned(), json!({"spec": rendered}))]);
        objects.extend(sources.iter().map(|source| (name(source).to_owned(), source.clone())));
        let world = Self { pools: BTreeMap::new(), objects, policies: Policies::of(&[]) };
        world.with_pool("worker", json!({"matchLabels": {ROLE: "worker"}}), 3, false)
    }

    fn with_pool(mut self, name: &str, selector: Value, machines: u32, paused: bool) -> Self {
        let sources: Vec<_> =
            self.objects.keys().filter(|name| *name != "rendered").map(|name| json!({"name": name})).collect();
        let pool = json!({
            "metadata": {"name": name},
            "spec": {"machineConfigSelector": selector, "paused": paused,
                "configuration": {"name": "rendered", "source": sources}},
            "status": {"machineCount": machines},
        });
        self.pools.insert(name.to_owned(), Pool::read(&pool));
        self
    }

    /// The effect, and the number of objects that were read for it.
    pub(super) fn effect(&self, live: Option<&Value>, result: Option<&Value>) -> (Result<Effect, Remedy>, usize) {
        self.effect_where(PlannedChange { live, result, takes_back: false, leaving: &[] })
    }

    fn effect_where(&self, planned: PlannedChange<'_>) -> (Result<Effect, Remedy>, usize) {
        let (mut facts, mut read) = (Facts::default(), 0);
        loop {
            match forecast(&self.pools, &facts, Some(&self.policies), planned) {
                Forecast::Unlisted(kind) => panic!("{kind:?}"),
                Forecast::Known(known) => return (known, read),
                Forecast::Unread(all) => {
                    for needed in all {
                        read += 1;
                        record(&mut facts, &self.pools, planned, &needed, self.objects.get(needed.name()));
                    }
                }
            }
        }
    }
}

#[test]
fn m6_a_kernel_argument_that_another_machine_config_provides_is_said_with_its_name() {
    let theirs = machine_config("50-worker-psi", "worker", kargs(&["psi=1"]));
    let world =
        World::new(kargs(&["quiet", "psi=1"]), &[machine_config("00-worker", "worker", kargs(&["quiet"])), theirs]);
    let ours = machine_config("99-worker-psi-karg", "worker", kargs(&["psi=1"]));
    let (effect, read) = world.effect(None, Some(&ours));
    let effect = effect.unwrap();
    assert_eq!(effect.pools, one_by_one(&[("worker", 3)]), "it would be there twice, which is another content");
    assert_eq!(
        effect.notes,
        [
            "Kernel argument psi=1 is already provided by 50-worker-psi: it would be set twice, and the machines would reboot unnecessarily. Turn off the option that sets it, or skip the item in spec.items."
        ]
    );
    assert_eq!(read, 3, "what is rendered, and two sources");
}

/// A pool that can't render still has what an earlier version of the same object contained.
#[test]
fn a_kernel_argument_that_nobody_sets_any_more_is_said_to_be_rendered() {
    let edited = machine_config("99-worker-psi-karg", "worker", kargs(&["zzz"]));
    let ours = machine_config("99-worker-psi-karg", "worker", kargs(&["psi=1"]));
    let world = World::new(kargs(&["psi=1"]), std::slice::from_ref(&edited));
    let notes = world.effect(Some(&edited), Some(&ours)).0.unwrap().notes;
    assert_eq!(
        notes,
        [
            "Kernel argument psi=1 is in the rendered configuration of pool worker, although no other MachineConfig of the pool sets it now: its machines may have it already."
        ]
    );
}

#[test]
fn m6_a_kernel_argument_with_another_value_is_said_with_both() {
    let theirs = machine_config("50-worker-psi", "worker", kargs(&["psi=0"]));
    let world = World::new(kargs(&["psi=0"]), &[theirs]);
    let ours = machine_config("99-worker-psi-karg", "worker", kargs(&["psi=1"]));
    let notes = world.effect(None, Some(&ours)).0.unwrap().notes;
    assert!(
        notes[0].contains("psi=0 is set by 50-worker-psi") && notes[0].contains("together with psi=1"),
        "{notes:?}"
    );
}

#[test]
fn m7_taking_a_kernel_argument_out_reboots_and_other_arguments_are_not_spoken_of() {
    let ours = machine_config("99-worker-psi-karg", "worker", kargs(&["psi=1"]));
    let world = World::new(kargs(&["hugepagesz=1G", "hugepages=4", "psi=1"]), std::slice::from_ref(&ours));
    let (effect, read) = world.effect(Some(&ours), None);
    let effect = effect.unwrap();
    assert_eq!((effect.machines(), effect.notes.len(), read), (3, 0, 1));
    let other_order = machine_config("99-worker-psi-karg", "worker", kargs(&["b", "a"]));
    let before = machine_config("99-worker-psi-karg", "worker", kargs(&["a", "b"]));
    assert_eq!(world.effect(Some(&before), Some(&other_order)).0.unwrap().machines(), 3, "the order counts");
}

#[test]
fn m8_every_pool_that_renders_it_is_named_with_its_machines() {
    let world = World::new(kargs(&[]), &[])
        .with_pool(
            "infra",
            json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]}),
            2,
            true,
        )
        .with_pool("master", json!({"matchLabels": {ROLE: "master"}}), 3, false);
    let ours = machine_config("99-worker-psi-karg", "worker", kargs(&["psi=1"]));
    let effect = world.effect(None, Some(&ours)).0.unwrap();
    assert_eq!(effect.pools, one_by_one(&[("infra", 2), ("worker", 3)]));
    assert!(effect.notes[0].contains("infra is paused"), "{:?}", effect.notes);
}

#[test]
fn m8_a_file_that_a_later_machine_config_overrides_stays_as_it_is() {
    let theirs = machine_config("10-infra-swap", "infra", files(&[("/etc/swap", "data:,theirs")]));
    let world = World::new(files(&[("/etc/swap", "data:,theirs")]), &[theirs]);
    let ours = machine_config("99-worker-swap", "worker", files(&[("/etc/swap", "data:,ours")]));
    let effect = world.effect(None, Some(&ours)).0.unwrap();
    assert!(effect.pools.is_empty(), "{effect:?}");
    assert!(effect.notes[0].contains("10-infra-swap overrides /etc/swap"), "{:?}", effect.notes);

    let earlier = machine_config("10-worker-swap", "worker", files(&[("/etc/swap", "data:,theirs")]));
    let world = World::new(files(&[("/etc/swap", "data:,theirs")]), &[earlier]);
    let effect = world.effect(None, Some(&ours)).0.unwrap();
    assert_eq!(effect.machines(), 3);
    assert!(effect.notes[0].contains("replaces /etc/swap of MachineConfig 10-worker-swap"), "{:?}", effect.notes);
}

#[test]
fn what_the_machines_have_already_reboots_none() {
    let world = World::new(files(&[("/etc/a", "data:,a"), ("/etc/b", "data:,b")]), &[]);
    let ours = machine_config("99-worker-a", "worker", files(&[("/etc/a", "data:,a")]));
    let (effect, read) = world.effect(None, Some(&ours));
    let effect = effect.unwrap();
    assert!(effect.pools.is_empty() && effect.notes[0].contains("none reboots"), "{effect:?}");
    assert_eq!(read, 1);
}

#[test]
fn m9_what_no_machine_would_get_is_no_plan() {
    let ours = machine_config("99-worker-psi-karg", "worker", kargs(&["psi=1"]));
    let mut world = World::new(kargs(&[]), &[]);
    world = world.with_pool("worker", json!({"matchLabels": {ROLE: "worker"}}), 0, false);
    assert!(world.effect(None, Some(&ours)).0.unwrap_err().contains("target pool master"));
    let astray = machine_config("99-gpu", "gpu", kargs(&["psi=1"]));
    assert!(world.effect(None, Some(&astray)).0.unwrap_err().contains("no MachineConfigPool selects"));
    assert_eq!(world.effect(Some(&astray), None).0.unwrap(), Effect::default(), "but it can be removed");
}

/// A label that moves an object takes it from one pool, whose machines reboot too.
#[test]
fn a_pool_that_loses_the_object_reboots_like_the_one_that_gets_it() {
    let world =
        World::new(kargs(&["psi=1"]), &[]).with_pool("infra", json!({"matchLabels": {ROLE: "infra"}}), 2, false);
    let (before, after) =
        (machine_config("99-psi", "worker", kargs(&["psi=1"])), machine_config("99-psi", "infra", kargs(&["psi=1"])));
    let effect = world.effect(Some(&before), Some(&after)).0.unwrap();
    assert_eq!(effect.pools, one_by_one(&[("infra", 2), ("worker", 3)]));

    // The object that stays with others' labels is selected by no pool: the pool that had it is
    // still reported.
    let mut left = machine_config("99-psi", "worker", json!({}));
    left["metadata"]["labels"] = json!({"team": "a"});
    let planned = PlannedChange { live: Some(&before), result: Some(&left), takes_back: true, leaving: &[] };
    let mut facts = Facts::default();
    let Forecast::Unread(all) = forecast(&world.pools, &facts, None, planned) else { panic!("unread") };
    for needed in all {
        record(&mut facts, &world.pools, planned, &needed, world.objects.get(needed.name()));
    }
    let Forecast::Known(Ok(effect)) = forecast(&world.pools, &facts, Some(&world.policies), planned) else {
        panic!("known")
    };
    assert_eq!(effect.pools, one_by_one(&[("worker", 3)]));
}

/// An object that does not exist proves nothing and blocks nothing.
#[test]
fn a_rendered_configuration_or_a_source_that_is_gone_is_no_obstacle() {
    let ours = machine_config("99-a", "worker", files(&[("/etc/a", "data:,a")]));
    let mut world = World::new(files(&[("/etc/a", "data:,other")]), &[machine_config("50-a", "worker", json!({}))]);
    world.objects.remove("50-a");
    assert_eq!(world.effect(None, Some(&ours)).0.unwrap().machines(), 3);
    world.objects.remove("rendered");
    assert_eq!(world.effect(None, Some(&ours)).0.unwrap().machines(), 3);
}

/// The fields of others may not be a complete configuration: pools that select it could not be
/// rendered.
#[test]
fn what_no_pool_could_render_is_no_plan() {
    let world = World::new(files(&[]), &[]);
    let whole = machine_config("m", "worker", files(&[("/a", "data:,x")]));
    let mut rest = whole.clone();
    rest["spec"]["config"]["ignition"] = json!({});
    let empty = machine_config("m", "worker", json!({"config": {}}));
    let forecast_of = |result: &Value, takes_back| {
        forecast(
            &world.pools,
            &Facts::default(),
            Some(&Policies::of(&[])),
            PlannedChange { live: Some(&whole), result: Some(result), takes_back, leaving: &[] },
        )
    };
    for (takes_back, says) in
        [(true, "Have its other owners apply all of it"), (false, "Set spec.config.ignition.version")]
    {
        let Forecast::Known(Err(remedy)) = forecast_of(&rest, takes_back) else { panic!("a plan") };
        assert!(remedy.contains("MachineConfigPool worker could not be rendered") && remedy.contains(says), "{remedy}");
        assert!(
            !matches!(forecast_of(&empty, takes_back), Forecast::Known(Err(_))),
            "nothing to read is nothing wrong"
        );
    }
    rest["metadata"]["labels"] = json!({});
    assert!(!matches!(forecast_of(&rest, true), Forecast::Known(Err(_))), "no pool selects it");
}

/// `count` files with the same content.
fn many_files(count: usize, content: &str) -> Value {
    let paths: Vec<_> = (0..count).map(|n| format!("/etc/file-{n:04}")).collect();
    files(&paths.iter().map(|path| (path.as_str(), content)).collect::<Vec<_>>())
}

/// Six pools, each with a rendered configuration of its own, with `count` files from a source.
fn six_pools(count: usize) -> World {
    let theirs = many_files(count, "data:,theirs");
    let mut world = World::new(Value::Null, &[machine_config("10-worker", "worker", theirs.clone())]);
    for n in 0..6 {
        let (name, rendered) = (format!("pool-{n}"), format!("rendered-{n}"));
        let sources = json!([{"name": "10-infra"}, {"name": "10-worker"}]);
        let pool = json!({
            "metadata": {"name": name},
            "spec": {"machineConfigSelector": {"matchLabels": {ROLE: "worker"}},
                "configuration": {"name": rendered, "source": sources}},
            "status": {"machineCount": 3},
        });
        world.pools.insert(name, Pool::read(&pool));
        world.objects.insert(rendered, json!({"spec": theirs}));
    }
    world.pools.remove("worker");
    world
}

/// Fault T8: each file is compared only with the file of the same path.
#[test]
fn t8_thousands_of_files_on_many_pools_are_told_in_a_sentence_for_each_pool() {
    let ours = machine_config("99-worker", "worker", many_files(9_000, "data:,ours"));
    let effect = six_pools(9_000).effect(None, Some(&ours)).0.unwrap();
    assert_eq!((effect.machines(), effect.notes.len()), (18, 6), "{:?}", effect.notes);
    let told = &effect.notes[0];
    let start =
        "On pool pool-0, it replaces 9000 files of other MachineConfigs: /etc/file-0000 (of 10-worker); /etc/file-0001";
    assert!(told.starts_with(start), "{told}");
    assert!(told.ends_with("; /etc/file-0009 (of 10-worker); and 8990 more."), "{told}");
}

#[test]
fn t8_files_that_stay_as_they_are_are_told_in_a_sentence_too() {
    let ours = machine_config("99-worker", "worker", many_files(12, "data:,ours"));
    let mut world = six_pools(12);
    let infra = machine_config("10-infra", "infra", many_files(12, "data:,theirs"));
    world.objects.insert("10-infra".to_owned(), infra);
    let effect = world.effect(None, Some(&ours)).0.unwrap();
    assert_eq!((effect.machines(), effect.notes.len()), (0, 12), "{:?}", effect.notes);
    let told = &effect.notes[0];
    let start = "On pool pool-0, 12 files are overridden and stay as they are: /etc/file-0000 (by 10-infra); ";
    assert!(told.starts_with(start) && told.ends_with("; and 2 more."), "{told}");
    assert_eq!(effect.notes[1], "The machines of pool pool-0 have all of it already: none reboots.");

    let infra = machine_config("10-infra", "infra", many_files(9, "data:,theirs"));
    world.objects.insert("10-infra".to_owned(), infra);
    let notes = world.effect(None, Some(&ours)).0.unwrap().notes;
    assert_eq!(
        notes[1],
        "On pool pool-0, it replaces 3 files of other MachineConfigs: /etc/file-0009 (of 10-worker); /etc/file-0010 (of \
         10-worker); /etc/file-0011 (of 10-worker)."
    );
}

/// Fault T8: the number of pairs of rival arguments is the product of their numbers.
#[test]
fn t8_of_thousands_of_kernel_arguments_of_one_name_some_are_told() {
    let arguments = |of: &str| (0..5_000).map(|n| format!("console=tty{of}{n}")).collect::<Vec<_>>();
    let spec = |of: &str| json!({"kernelArguments": arguments(of)});
    let world = World::new(spec("S"), &[machine_config("50-worker", "worker", spec("S"))]);
    let ours = machine_config("99-worker", "worker", spec("U"));
    let notes = world.effect(None, Some(&ours)).0.unwrap().notes;
    assert_eq!(notes.len(), 11, "{notes:?}");
    assert_eq!(notes[10], "There are 24999990 more such pairs of kernel arguments on pool worker.");
}

/// The values as openshift/machine-config-operator interprets them, in release-4.14 to release-5.0.
#[test]
fn t13_as_many_machines_reboot_at_once_as_the_pool_allows() {
    for (written, machines, at_once) in [
        (json!(null), 3, 1),
        (json!(0), 3, 1),
        (json!(1), 3, 1),
        (json!(2), 3, 2),
        (json!(3), 3, 3),
        (json!(7), 3, 7),
        (json!(-1), 3, 0),
        (json!("0%"), 3, 1),
        (json!("33%"), 3, 1),
        (json!("67%"), 3, 2),
        (json!("100%"), 3, 3),
        (json!("200%"), 3, 6),
        (json!("10%"), 100, 10),
        (json!("10%"), 19, 1),
        (json!("10%"), 0, 1),
        (json!("-10%"), 3, 0),
        (json!("2"), 3, 0),
        (json!("half"), 3, 0),
        (json!("1.5%"), 3, 0),
        (json!("99999999999999999999%"), 3, 0),
        (json!(""), 3, 0),
    ] {
        let mut world = World::new(kargs(&[]), &[]);
        let pool = json!({
            "metadata": {"name": "worker"},
            "spec": {"machineConfigSelector": {"matchLabels": {ROLE: "worker"}}, "maxUnavailable": written,
                "configuration": {"name": "rendered", "source": []}},
            "status": {"machineCount": machines},
        });
        world.pools.insert("worker".to_owned(), Pool::read(&pool));
        let ours = machine_config("99-psi", "worker", kargs(&["psi=1"]));
        let Ok(effect) = world.effect(None, Some(&ours)).0 else {
            assert_eq!(machines, 0, "{written}");
            continue;
        };
        let PoolEffect { machines: all, at_once: together, .. } = effect.pools["worker"];
        assert_eq!((all, together), (machines, at_once), "{written}");
        let told = effect.notes.iter().any(|note| note.contains("maxUnavailable of MachineConfigPool worker"));
        assert_eq!(told, at_once == 0, "{written}: {:?}", effect.notes);
    }
}

/// Fault R6: units that a later MachineConfig overrides are reported like files; parts that are
/// merged with them are not.
#[test]
fn r6_parts_of_units_that_a_later_one_overrides_are_told_and_reboot_nothing() {
    let unit = |more: Value| {
        let mut unit = json!({"name": "swap-provision.service"});
        unit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"config": {"ignition": {"version": "3.4.0"}, "systemd": {"units": [unit]}}})
    };
    let ours = machine_config("90-ours", "worker", unit(json!({"contents": "ours", "enabled": true})));
    let theirs = |name: &str, more: Value| machine_config(name, "worker", unit(more));
    let cases = [
        // All of it is overridden: nothing is left to do.
        (json!({"contents": "theirs", "enabled": false}), "95-theirs", Some("contents (by 95-theirs)"), false),
        // One member is overridden, the other is ours.
        (json!({"contents": "theirs"}), "95-theirs", Some("contents (by 95-theirs)"), true),
        // Another drop-in, or an earlier source, overrides nothing of ours.
        (json!({"dropins": [{"name": "05-user.conf", "contents": "x"}]}), "95-theirs", None, true),
        (json!({"contents": "theirs"}), "50-theirs", None, true),
    ];
    for (more, name, told, reboots) in cases {
        let world = World::new(unit(more.clone()), &[theirs(name, more.clone())]);
        let (effect, _) = world.effect(None, Some(&ours));
        let effect = effect.unwrap();
        assert_eq!(!effect.pools.is_empty(), reboots, "{more} {name}: {effect:?}");
        let notes = effect.notes.join(" ");
        assert_eq!(notes.contains("override parts of units"), told.is_some(), "{more} {name}: {notes}");
        assert!(notes.contains(told.unwrap_or_default()), "{notes}");
    }
}

/// Fault R28: an entry that is removed, but that another source contains too, reboots nothing.
#[test]
fn r28_a_copy_that_stays_keeps_the_machines_as_they_are() {
    let ours = machine_config("90-ours", "worker", files(&[("/etc/a", "data:,1")]));
    let beside = |name: &str, content: &str| machine_config(name, "worker", files(&[("/etc/a", content)]));
    let rendered = files(&[("/etc/a", "data:,1")]);
    for (name, sources, reboots) in [
        ("nobody else", vec![], true),
        ("the same", vec![beside("50-theirs", "data:,1")], false),
        ("something else", vec![beside("50-theirs", "data:,2")], true),
        ("the last of them counts", vec![beside("50-theirs", "data:,2"), beside("60-theirs", "data:,1")], false),
        ("and no earlier one", vec![beside("50-theirs", "data:,1"), beside("60-theirs", "data:,2")], true),
    ] {
        let sources: Vec<_> = sources.into_iter().chain([ours.clone()]).collect();
        let world = World::new(rendered.clone(), &sources);
        let effect = world.effect(Some(&ours), None).0.unwrap();
        assert_eq!(!effect.pools.is_empty(), reboots, "{name}: {effect:?}");
    }
    let unit = |name: &str, contents: &str| {
        let units = json!([{"name": "a.service", "enabled": true, "contents": contents}]);
        machine_config(
            name,
            "worker",
            json!({"config": {"ignition": {"version": "3.2.0"}, "systemd": {"units": units}}}),
        )
    };
    let ours = unit("90-ours", "x");
    for (theirs, reboots) in [(unit("50-theirs", "x"), false), (unit("50-theirs", "y"), true)] {
        let world = World::new(ours["spec"].clone(), &[theirs, ours.clone()]);
        assert_eq!(!world.effect(Some(&ours), None).0.unwrap().pools.is_empty(), reboots);
    }
}

/// Fault R28: a pool without machines reboots none.
#[test]
fn r28_a_pool_without_machines_is_not_said_to_reboot() {
    let selector = json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]});
    let world = World::new(kargs(&[]), &[]).with_pool("infra", selector, 0, false);
    let ours = machine_config("99-ours", "worker", kargs(&["psi=1"]));
    let effect = world.effect(None, Some(&ours)).0.unwrap();
    assert_eq!(effect.pools, one_by_one(&[("worker", 3)]));
    assert!(effect.notes.iter().any(|note| note.starts_with("Pool infra has no machines now")), "{effect:?}");
}

/// Fault R19: pools whose machines get nothing are named, and the message for a cluster without
/// pools says what that means.
#[test]
fn r19_pools_that_take_in_nothing_for_workers_are_named() {
    let own = json!({"matchLabels": {ROLE: "gpu"}});
    let both = json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]});
    let world = World::new(kargs(&[]), &[])
        .with_pool("master", json!({"matchLabels": {ROLE: "master"}}), 3, false)
        .with_pool("arbiter", json!({"matchLabels": {ROLE: "arbiter"}}), 1, false)
        .with_pool("empty", own.clone(), 0, false)
        .with_pool("infra", both, 2, false)
        .with_pool("gpu", own, 4, false);
    let ours = machine_config("99-ours", "worker", kargs(&["psi=1"]));
    let effect = world.effect(None, Some(&ours)).0.unwrap();
    assert_eq!(effect.pools, one_by_one(&[("worker", 3), ("infra", 2)]));
    let told: Vec<_> = effect.notes.iter().filter(|note| note.contains("do not get it")).collect();
    assert!(told.len() == 1 && told[0].contains("does not select it: gpu (machines: 4). Extend"), "{effect:?}");
    let for_masters = machine_config("99-ours", "master", kargs(&["psi=1"]));
    assert!(!world.effect(None, Some(&for_masters)).0.unwrap().notes.concat().contains("do not get it"));

    let none = World { pools: BTreeMap::new(), objects: BTreeMap::new(), policies: Policies::of(&[]) };
    let refused = none.effect(None, Some(&ours)).0.unwrap_err();
    assert!(refused.contains("no MachineConfigPool") && refused.contains("hosted"), "{refused}");
}

/// A MachineConfig for workers with a unit that has the members `more`.
fn unit(name: &str, more: Value) -> Value {
    let mut unit = json!({"name": "a.service"});
    unit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config = json!({"ignition": {"version": "3.2.0"}, "systemd": {"units": [unit]}});
    machine_config(name, "worker", json!({ "config": config }))
}

/// Observed with the controllers of 4.17: a member that an earlier source sets and a later one
/// lacks remains.
#[test]
fn what_lasts_of_another_source_is_no_plan() {
    let file = |name: &str, more: Value| {
        let mut file = json!({"path": "/etc/a", "contents": {"source": "data:,1"}});
        file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        machine_config(
            name,
            "worker",
            json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}}),
        )
    };
    let ours = file("90-ours", json!({"contents": {"source": "data:,2"}}));
    for (more, member) in [
        (json!({"contents": {"source": "data:,1", "verification": {"hash": "sha512-x"}}}), "contents.verification"),
        (json!({"user": {"name": "core"}}), "user"),
    ] {
        let theirs = file("10-theirs", more);
        let world = World::new(theirs["spec"].clone(), &[theirs]);
        let refused = world.effect(None, Some(&ours)).0.unwrap_err();
        assert!(
            refused.contains("/etc/a is also in MachineConfig 10-theirs, with") && refused.contains(member),
            "{refused}"
        );
    }
    let plain = file("10-theirs", json!({}));
    assert!(World::new(plain["spec"].clone(), &[plain]).effect(None, Some(&ours)).0.is_ok());
}

/// What a later source adds to a file or unit is reported as an override; what an earlier one has
/// remains in ours.
#[test]
fn only_what_an_earlier_source_has_lasts_in_ours() {
    let ours = unit("50-ours", json!({"enabled": true, "contents": "x"}));
    for (theirs, masked, refuses) in
        [("10-theirs", true, true), ("10-theirs", false, false), ("90-theirs", true, false)]
    {
        let theirs = unit(theirs, json!({"mask": masked}));
        let outcome = World::new(theirs["spec"].clone(), &[theirs]).effect(None, Some(&ours)).0;
        assert_eq!(outcome.is_err(), refuses, "{outcome:?}");
    }
}

/// A source that the same plan removes leaves nothing behind, overrides nothing, and sets no rival
/// arguments.
#[test]
fn what_the_same_plan_removes_is_in_nobodys_way() {
    let ours = unit("50-ours", json!({"enabled": true, "contents": "x"}));
    let with = |theirs: &Value, ours: &Value, goes: bool| {
        let leaving = Vec::from_iter(goes.then(|| name(theirs).to_owned()));
        let planned = PlannedChange { live: None, result: Some(ours), takes_back: false, leaving: &leaving };
        World::new(theirs["spec"].clone(), std::slice::from_ref(theirs)).effect_where(planned).0
    };
    let masked = unit("10-theirs", json!({"mask": true}));
    assert!(with(&masked, &ours, false).is_err());
    assert!(with(&masked, &ours, true).is_ok());

    let file = |name: &str, text: &str| machine_config(name, "worker", files(&[("/etc/a", text)]));
    let (theirs, ours) = (file("90-theirs", "data:,1"), file("50-ours", "data:,2"));
    let overridden = with(&theirs, &ours, false).unwrap();
    assert!(!overridden.overridden.is_empty() && overridden.pools.is_empty(), "{overridden:?}");
    let ours_alone = with(&theirs, &ours, true).unwrap();
    assert!(ours_alone.overridden.is_empty() && !ours_alone.pools.is_empty(), "{ours_alone:?}");

    let argument = |name: &str, value: &str| machine_config(name, "worker", kargs(&[value]));
    let (theirs, ours) = (argument("90-theirs", "psi=0"), argument("50-ours", "psi=1"));
    let notes = |goes: bool| with(&theirs, &ours, goes).unwrap().notes.concat();
    assert!(notes(false).contains("psi=0 is set by"), "{}", notes(false));
    assert_eq!(notes(true), "");
}

/// A copy that the same plan removes does not stay, and neither does one that is no longer listed.
#[test]
fn a_copy_that_goes_too_keeps_nothing() {
    let ours = machine_config("90-ours", "worker", files(&[("/etc/a", "data:,1")]));
    let copy = machine_config("50-ours-too", "worker", files(&[("/etc/a", "data:,1")]));
    let world = World::new(files(&[("/etc/a", "data:,1")]), &[ours.clone(), copy.clone()]);
    let too = ["50-ours-too".to_owned()];
    for (leaving, listed, reboots) in [(&[][..], true, false), (&too[..], true, true), (&[][..], false, true)] {
        let planned = PlannedChange { live: Some(&ours), result: None, takes_back: false, leaving };
        let mut facts = Facts::default();
        let mut pools = world.pools.clone();
        for needed in [Needed::Rendered("rendered".to_owned()), Needed::Source("50-ours-too".to_owned())] {
            record(&mut facts, &pools, planned, &needed, world.objects.get(needed.name()));
        }
        if !listed {
            pools.values_mut().for_each(|pool| pool.sources.retain(|source| source != "50-ours-too"));
        }
        let Forecast::Known(Ok(effect)) = forecast(&pools, &facts, Some(&Policies::of(&[])), planned) else {
            panic!("not known")
        };
        assert_eq!(!effect.pools.is_empty(), reboots, "{effect:?}");
    }
}
