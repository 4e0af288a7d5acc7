//! The changes that a running machine cannot take. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed for directories),
//! pkg/controller/common/reconcile.go: `isConfigReconcilable`;
//! pkg/controller/render/render_controller.go: `generateAndValidateRenderedMachineConfig` (who is
//! named).

use serde_json::Value;

use crate::api::{MachineConfig, MachineConfigSpec};
use crate::rules::render::{RenderError, Rendered};

/// Refuses a rendered configuration that machines with the current one cannot take.
///
/// # Errors
/// [`RenderError::Irreconcilable`], with the first MachineConfig that has the part in question.
pub(crate) fn check(current: &MachineConfig, new: &Rendered, configs: &[&MachineConfig]) -> Result<(), RenderError> {
    let Some(part) = PARTS.iter().find(|part| (part.changed)(&current.spec, &new.spec)) else {
        return Ok(());
    };
    let base = configs.iter().find(|config| (part.present)(&config.spec));
    Err(RenderError::Irreconcilable {
        current: current.metadata.name.clone().unwrap_or_default(),
        base: base.and_then(|config| config.metadata.name.clone()).unwrap_or_default(),
        reason: part.reason.to_owned(),
    })
}

struct Part {
    reason: &'static str,
    changed: fn(&MachineConfigSpec, &MachineConfigSpec) -> bool,
    present: fn(&MachineConfigSpec) -> bool,
}

macro_rules! section {
    ($pointer:literal, $reason:literal) => {
        Part {
            reason: $reason,
            changed: |old, new| entries(old, $pointer) != entries(new, $pointer),
            present: |spec| !entries(spec, $pointer).is_empty(),
        }
    };
}

const PARTS: &[Part] = &[
    section!("/passwd/groups", "ignition passwd groups section contains changes"),
    Part {
        reason: "ignition passwd user section contains unsupported changes: only user core can change",
        changed: |old, new| foreign_users(old) != foreign_users(new),
        present: |spec| !foreign_users(spec).is_empty(),
    },
    section!("/storage/disks", "ignition disks section contains changes"),
    section!("/storage/filesystems", "ignition filesystems section contains changes"),
    section!("/storage/raid", "ignition raid section contains changes"),
    section!("/storage/luks", "ignition luks section contains changes"),
    section!("/storage/directories", "ignition directories section contains changes"),
    section!("/storage/links", "ignition links section contains changes"),
    Part {
        reason: "detected change to FIPS flag; refusing to modify FIPS on a running cluster",
        changed: |old, new| (old.fips == Some(true)) != (new.fips == Some(true)),
        present: |spec| spec.fips == Some(true),
    },
];

fn entries<'a>(spec: &'a MachineConfigSpec, pointer: &str) -> &'a [Value] {
    spec.config.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn foreign_users(spec: &MachineConfigSpec) -> Vec<&Value> {
    entries(spec, "/passwd/users").iter().filter(|user| user["name"] != "core").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::release::MAIN;
    use crate::rules::render::render;
    use serde_json::json;

    fn config(name: &str, spec: Value) -> MachineConfig {
        MachineConfig::new(name, serde_json::from_value(spec).expect("specs of the tests parse"))
    }

    fn ignition(section: Value) -> Value {
        let mut config = json!({"ignition": {"version": "3.2.0"}});
        for (key, value) in section.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        json!({ "config": config })
    }

    fn verdict(change: Value) -> Result<(), RenderError> {
        let base = config("00-worker", ignition(json!({"passwd": {"users": [{"name": "core"}]}})));
        let change = config("50-change", change);
        let before = render("worker", &[&base], MAIN).expect("renders");
        let current = MachineConfig::new(&before.name, before.spec);
        let configs = [&base, &change];
        check(&current, &render("worker", &configs, MAIN).expect("renders"), &configs)
    }

    #[test]
    fn parts_that_cannot_change_are_refused_with_the_name_of_the_culprit() {
        for change in [
            ignition(json!({"storage": {"directories": [{"path": "/d"}]}})),
            ignition(json!({"storage": {"disks": [{"device": "/dev/sda"}]}})),
            ignition(json!({"storage": {"links": [{"path": "/l"}]}})),
            ignition(json!({"passwd": {"users": [{"name": "eve"}]}})),
            ignition(json!({"passwd": {"groups": [{"name": "g"}]}})),
            json!({"fips": true}),
        ] {
            let text = verdict(change.clone()).expect_err("is refused").to_string();
            assert!(text.contains("\"50-change\""), "{change}: {text}");
        }
    }

    #[test]
    fn files_units_keys_of_core_and_kernel_arguments_can_change() {
        for change in [
            ignition(json!({"storage": {"files": [{"path": "/f"}]}})),
            ignition(json!({"systemd": {"units": [{"name": "u.service"}]}})),
            ignition(json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k"]}]}})),
            json!({"kernelArguments": ["psi=1"], "kernelType": "realtime"}),
        ] {
            assert_eq!(verdict(change.clone()), Ok(()), "{change}");
        }
    }
}
