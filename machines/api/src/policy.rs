//! What is refused at admission, without a webhook server: mistakes that can be told from the
//! object alone. The operator tells the same of Machines that are stored without this policy.

use serde_json::{Value, json};

const NAME: &str = "machines.vitistack.io";

fn rule(expression: &str, message: &str) -> Value {
    json!({"expression": expression, "message": message, "reason": "Invalid"})
}

/// The policy and its binding.
#[must_use]
pub fn objects() -> [Value; 2] {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [crate::GROUP], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["machines"],
            }]},
            // A Machine that is being deleted must be let go, and one of another provider is not
            // ours.
            "matchConditions": [
                {"name": "is-not-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
                {"name": "is-ours", "expression": "!has(object.spec.provider) || object.spec.provider in ['', 'kubevirt']"},
            ],
            "variables": [
                {"name": "disks", "expression": "has(object.spec.disks) ? object.spec.disks : []"},
                {"name": "networks", "expression": "has(object.spec.networks) ? object.spec.networks : []"},
            ],
            "validations": rules(),
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    });
    [policy, binding]
}

fn rules() -> Vec<Value> {
    vec![
        rule(
            "object.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && object.metadata.name.size() <= 63",
            "metadata.name becomes the name of a virtual machine: use at most 63 lower-case letters, digits and dashes",
        ),
        rule(
            "!has(object.spec.template) || object.spec.template in ['small', 'medium', 'large']",
            "spec.template: use small, medium or large",
        ),
        rule(
            "!has(object.spec.template) || !has(object.spec.machineClass)",
            "spec.template and spec.machineClass: set one of them, because their sizes differ even under one name",
        ),
        rule(
            "variables.disks.all(d, !has(d.name) || (d.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && d.name.size() <= 63 \
             && !(d.name in ['cloudinitdisk', 'cdrom-iso'])))",
            "spec.disks: name each disk with at most 63 lower-case letters, digits and dashes, and none cloudinitdisk or cdrom-iso",
        ),
        rule(
            "variables.disks.all(d, !has(d.name) || variables.disks.filter(e, has(e.name) && e.name == d.name).size() == 1)",
            "spec.disks: give each disk its own name",
        ),
        rule(
            "variables.disks.all(d, !has(d.size) || (isQuantity(d.size) && quantity(d.size).isGreaterThan(quantity('0'))))",
            "spec.disks: write each size as an amount of bytes such as 20Gi",
        ),
        rule(
            "variables.disks.filter(d, has(d.boot) && d.boot).size() <= 1",
            "spec.disks: leave boot: true at one disk",
        ),
        rule(
            "!has(object.spec.resources) || !has(object.spec.resources.memory) || !has(object.spec.resources.memory.size) \
             || (isQuantity(object.spec.resources.memory.size) && quantity(object.spec.resources.memory.size).isGreaterThan(quantity('0')))",
            "spec.resources.memory.size: write it as an amount of bytes such as 4Gi",
        ),
        rule(
            "variables.networks.all(n, n.name.matches('^[A-Za-z0-9_-]+$') && n.name.size() <= 63)",
            "spec.networks: name each interface with at most 63 letters, digits, dashes and underscores",
        ),
        rule(
            "variables.networks.all(n, variables.networks.filter(m, m.name == n.name).size() == 1)",
            "spec.networks: give each interface its own name",
        ),
        rule(
            "variables.networks.all(n, !has(n.macAddress) || n.macAddress == '' \
             || n.macAddress.matches('^[0-9A-Fa-f][02468ACEace]([:-][0-9A-Fa-f]{2}){5}$'))",
            "spec.networks: write each macAddress as that of one card, such as 52:54:00:12:34:56",
        ),
        rule(
            "variables.networks.filter(n, !has(n.networkName) || n.networkName == '').size() <= 1",
            "spec.networks: only one interface can be on the pod network: name the networks of the others",
        ),
        rule(
            "!has(object.spec.domain) || !has(object.spec.domain.firmware) || !has(object.spec.domain.firmware.bootloader) \
             || !has(object.spec.domain.firmware.bootloader.secureBoot) || !object.spec.domain.firmware.bootloader.secureBoot \
             || (has(object.spec.domain.firmware.bootloader.efi) && object.spec.domain.firmware.bootloader.efi)",
            "spec.domain.firmware.bootloader.secureBoot: secure boot needs efi: set that to true",
        ),
        rule(
            "!has(object.spec.cloudInit) || !has(object.spec.cloudInit.secretRef) || object.spec.cloudInit.secretRef.name != ''",
            "spec.cloudInit.secretRef.name: name a Secret in this namespace",
        ),
        rule(
            "!has(object.spec.cloudInit) || !has(object.spec.cloudInit.secretRef) || !has(object.spec.cloudInit.secretRef.key) \
             || object.spec.cloudInit.secretRef.key.matches('^[-._a-zA-Z0-9]{1,253}$')",
            "spec.cloudInit.secretRef.key: name a key of the Secret, or leave it out for userdata",
        ),
    ]
}
