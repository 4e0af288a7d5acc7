//! Whether an edit of a running VirtualMachine waits for a restart.
//!
//! pkg/virt-controller/watch/vm/vm.go `syncRestartRequired`, `validLiveUpdateVolumes`,
//! `validLiveUpdateDisks`; pkg/network/vmliveupdate/restart.go `IsRestartRequired`.

use serde_json::{Value, json};

use super::instance::list;

/// What the condition RestartRequired says.
pub(crate) const CHANGED: &str = "a non-live-updatable field was changed in the template spec";

const DISKS: &str = "/domain/devices/disks";
const INTERFACES: &str = "/domain/devices/interfaces";

/// Whether the spec of a template has changed since the start in a field that cannot be live.
pub(crate) fn is_required(started: &Value, wanted: &Value, instance: &Value, is_live: bool) -> bool {
    let mut started = started.clone();
    let copy = |started: &mut Value, path: &[&str]| {
        let value = path.iter().fold(wanted, |value, key| &value[*key]).clone();
        let place = path.iter().fold(started, |place, key| &mut place[*key]);
        *place = value;
    };
    if volumes_are_live(&started, wanted) {
        copy(&mut started, &["volumes"]);
    }
    if disks_are_live(&started, wanted) {
        copy(&mut started, &["domain", "devices", "disks"]);
    }
    if is_live {
        if !started["domain"]["cpu"].is_null() && !wanted["domain"]["cpu"].is_null() {
            copy(&mut started, &["domain", "cpu", "sockets"]);
        }
        if !wanted["domain"]["memory"]["guest"].is_null() {
            copy(&mut started, &["domain", "memory", "guest"]);
        }
        for key in ["nodeSelector", "affinity", "tolerations"] {
            copy(&mut started, &[key]);
        }
    }
    if !networks_need_restart(wanted, &instance["spec"]) {
        copy(&mut started, &["domain", "devices", "interfaces"]);
        copy(&mut started, &["networks"]);
    }
    let firmware = &wanted["domain"]["firmware"];
    if !firmware.is_null() && instance["spec"]["domain"]["firmware"]["uuid"] == firmware["uuid"] {
        copy(&mut started, &["domain", "firmware", "uuid"]);
    }
    bare(&started) != bare(wanted)
}

/// Without what counts as absent in Go: null, and empty lists, objects of omitted fields and texts.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null() && **value != json!([]) && **value != "");
            kept.map(|(key, value)| (key.clone(), bare(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(entries) => entries.iter().map(bare).collect(),
        other => other.clone(),
    }
}

/// Whether a volume can come and go while the machine runs.
pub(crate) fn is_hotplug(volume: &Value) -> bool {
    let sources = ["persistentVolumeClaim", "dataVolume", "memoryDump"];
    sources.iter().any(|source| volume[source]["hotpluggable"] == true)
}

/// The entry of a list of this name.
pub(crate) fn named<'a>(entries: &'a [Value], name: &Value) -> Option<&'a Value> {
    entries.iter().find(|entry| entry["name"] == *name)
}

fn volumes_are_live(started: &Value, wanted: &Value) -> bool {
    let (old, new) = (list(started, "/volumes"), list(wanted, "/volumes"));
    new.iter().all(|volume| is_hotplug(volume) || named(old, &volume["name"]) == Some(volume))
        && old.iter().all(|volume| named(new, &volume["name"]).is_some() || is_hotplug(volume))
}

fn disks_are_live(started: &Value, wanted: &Value) -> bool {
    let (old_volumes, volumes) = (list(started, "/volumes"), list(wanted, "/volumes"));
    let (old, new) = (list(started, DISKS), list(wanted, DISKS));
    let may_change = |disk: &Value| named(volumes, &disk["name"]).is_some_and(is_hotplug);
    let may_go = |disk: &Value| named(old_volumes, &disk["name"]).is_none_or(is_hotplug) && disk["cdrom"].is_null();
    new.iter().all(|disk| may_change(disk) || named(old, &disk["name"]) == Some(disk))
        && old.iter().all(|disk| named(new, &disk["name"]).is_some() || may_go(disk))
}

/// Compares the template with what runs: interfaces may be added, and their state and the name of
/// their attachment may change.
pub(crate) fn networks_need_restart(wanted: &Value, runs: &Value) -> bool {
    let without_state = |interface: &Value| {
        let mut interface = interface.clone();
        if let Some(fields) = interface.as_object_mut() {
            fields.remove("state");
        }
        interface
    };
    let without_attachment = |network: &Value| {
        let mut network = network.clone();
        if let Some(multus) = network["multus"].as_object_mut() {
            multus.remove("networkName");
        }
        network
    };
    let pod = |spec: &Value| list(spec, "/networks").iter().any(|network| !network["pod"].is_null());
    let changed = |pointer: &str, bared: &dyn Fn(&Value) -> Value| {
        list(runs, pointer)
            .iter()
            .any(|one| named(list(wanted, pointer), &one["name"]).is_none_or(|new| bared(new) != bared(one)))
    };
    (pod(wanted) && !pod(runs)) || changed(INTERFACES, &without_state) || changed("/networks", &without_attachment)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_required;

    fn spec() -> Value {
        json!({
            "domain": {
                "cpu": {"cores": 1, "sockets": 1, "threads": 1}, "memory": {"guest": "2Gi"},
                "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                    "interfaces": [{"name": "default", "masquerade": {}}]},
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
        })
    }

    fn after(edit: impl FnOnce(&mut Value)) -> bool {
        let mut wanted = spec();
        edit(&mut wanted);
        is_required(&spec(), &wanted, &json!({"spec": spec()}), true)
    }

    #[test]
    fn only_some_fields_are_live() {
        assert!(!after(|_| ()));
        assert!(!after(|spec| spec["domain"]["cpu"]["sockets"] = 2.into()));
        assert!(!after(|spec| spec["domain"]["memory"]["guest"] = "4Gi".into()));
        assert!(!after(|spec| spec["nodeSelector"] = json!({"zone": "a"})));
        assert!(!after(|spec| spec["nodeSelector"] = json!(null)));
        assert!(after(|spec| spec["domain"]["cpu"]["cores"] = 2.into()));
        assert!(after(|spec| spec["hostname"] = "other".into()));
        assert!(after(|spec| spec["domain"]["devices"]["interfaces"][0]["macAddress"] = "52:54:00:00:00:01".into()));
    }

    #[test]
    fn volumes_are_live_if_they_say_so() {
        let add = |spec: &mut Value, hotpluggable: bool| {
            let claim = json!({"claimName": "data", "hotpluggable": hotpluggable});
            super::super::instance::append(
                &mut spec["volumes"],
                json!({"name": "data", "persistentVolumeClaim": claim}),
            );
            let disk = json!({"name": "data", "disk": {"bus": "scsi"}});
            super::super::instance::append(&mut spec["domain"]["devices"]["disks"], disk);
        };
        assert!(!after(|spec| add(spec, true)));
        assert!(after(|spec| add(spec, false)));
    }

    #[test]
    fn under_stage_nothing_of_the_size_is_live() {
        let mut wanted = spec();
        wanted["domain"]["cpu"]["sockets"] = 2.into();
        assert!(is_required(&spec(), &wanted, &json!({"spec": spec()}), false));
    }
}
