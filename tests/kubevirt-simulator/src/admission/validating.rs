//! What KubeVirt refuses in a VirtualMachine, in its own words.
//!
//! pkg/virt-api/webhooks/validating-webhook/admitters/vms-admitter.go and vmi-create-admitter.go,
//! pkg/storage/admitters/disks.go, pkg/network/admitter; each rule names its function.

use serde_json::{Value, json};

use super::{NAME, matching};

/// Names for what the rules speak about: name and expression.
const VARIABLES: [(&str, &str); 11] = [
    ("spec", "object.spec.template.spec"),
    ("volumes", "has(variables.spec.volumes) ? variables.spec.volumes : []"),
    ("disks", "has(variables.spec.domain.devices.disks) ? variables.spec.domain.devices.disks : []"),
    ("filesystems", "has(variables.spec.domain.devices.filesystems) ? variables.spec.domain.devices.filesystems : []"),
    ("interfaces", "has(variables.spec.domain.devices.interfaces) ? variables.spec.domain.devices.interfaces : []"),
    ("networks", "has(variables.spec.networks) ? variables.spec.networks : []"),
    (
        "orders",
        "variables.disks.transformList(i, d, has(d.bootOrder), \
         {'at': dyn('disks[' + string(i) + ']'), 'order': dyn(d.bootOrder)}) + \
         variables.interfaces.transformList(i, d, has(d.bootOrder), \
         {'at': dyn('interfaces[' + string(i) + ']'), 'order': dyn(d.bootOrder)})",
    ),
    (
        "loader",
        "has(variables.spec.domain.firmware) && has(variables.spec.domain.firmware.bootloader) ? \
         [variables.spec.domain.firmware.bootloader] : []",
    ),
    (
        "smm",
        "has(variables.spec.domain.features) && has(variables.spec.domain.features.smm) && \
         (!has(variables.spec.domain.features.smm.enabled) || variables.spec.domain.features.smm.enabled)",
    ),
    ("pods", "variables.networks.filter(n, has(n.pod)).map(n, n.name)"),
    (
        "labels",
        "has(object.spec.template.metadata) && has(object.spec.template.metadata.labels) ? \
         object.spec.template.metadata.labels : {}",
    ),
];

/// Lists what is wrong, each as a sentence: the first one is the message.
const RULES: [&str; 29] = [
    // validateRunStrategy
    "has(object.spec.running) && has(object.spec.runStrategy) ? ['Running and RunStrategy are mutually exclusive. \
     Note that Running is deprecated, please use RunStrategy instead'] : []",
    "!has(object.spec.running) && !has(object.spec.runStrategy) ? ['RunStrategy must be specified'] : []",
    "has(object.spec.runStrategy) && object.spec.runStrategy == 'WaitAsReceiver' ? ['Invalid RunStrategy \
     (WaitAsReceiver), DecentralizedLiveMigration feature gate is not enabled in kubevirt resource'] : []",
    "has(object.spec.runStrategy) && !(object.spec.runStrategy in ['Always', 'Halted', 'Manual', 'RerunOnFailure', \
     'Once', 'WaitAsReceiver']) ? ['Invalid RunStrategy (' + object.spec.runStrategy + ')'] : []",
    // ValidateVirtualMachineInstanceMetadata
    "variables.labels.exists(l, l in ['kubevirt.io/created-by', 'kubevirt.io/migrationJobUID', \
     'kubevirt.io/nodeName', 'kubevirt.io/migrationTargetNodeName', 'kubevirt.io/schedulable', \
     'kubevirt.io/install-strategy']) ? ['creation of the following reserved kubevirt.io/ labels on a VMI object is \
     prohibited'] : []",
    // validateVirtualMachineInstanceSpecVolumeDisks
    "variables.volumes.transformList(i, v, !has(v.memoryDump) && !variables.disks.exists(d, d.name == v.name) && \
     !variables.filesystems.exists(f, f.name == v.name), \
     'spec.template.spec.domain.volumes[' + string(i) + \"].name '\" + v.name + \"' not found.\")",
    // validateBootOrder
    "variables.disks.transformList(i, d, !has(d.cdrom) && !variables.volumes.exists(v, v.name == d.name), \
     'spec.template.spec.domain.devices.disks[' + string(i) + \"].Name '\" + d.name + \"' not found.\")",
    "variables.orders.transformList(i, o, variables.orders.exists(j, p, j < i && p.order == o.order), \
     'Boot order for spec.template.spec.domain.devices.' + o.at + '.bootOrder already set for a different device.')",
    // validateBootOrderValue; of interfaces: validateInterfaceBootOrder, with its own path
    "variables.disks.transformList(i, d, has(d.bootOrder) && d.bootOrder < 1, \
     'spec.template.spec.domain.devices.disks[' + string(i) + '] must have a boot order > 0, if supplied')",
    "variables.interfaces.transformList(i, d, has(d.bootOrder) && d.bootOrder < 1, \
     'spec.template.spec[' + string(i) + '] must have a boot order > 0, if supplied')",
    // validateVolumes
    "variables.volumes.transformList(i, v, variables.volumes.exists(j, w, j < i && w.name == v.name), \
     'spec.template.spec.volumes[' + string(i) + '] and spec.template.spec.volumes[' + \
     string(variables.volumes.map(w, w.name).indexOf(v.name)) + '] must not have the same Name.')",
    "variables.volumes.transformList(i, v, (has(v.cloudInitConfigDrive) ? 1 : 0) + (has(v.cloudInitNoCloud) ? 1 : 0) + \
     (has(v.configMap) ? 1 : 0) + (has(v.containerDisk) ? 1 : 0) + (has(v.containerPath) ? 1 : 0) + \
     (has(v.dataVolume) ? 1 : 0) + (has(v.downwardAPI) ? 1 : 0) + (has(v.downwardMetrics) ? 1 : 0) + \
     (has(v.emptyDisk) ? 1 : 0) + (has(v.ephemeral) ? 1 : 0) + (has(v.hostDisk) ? 1 : 0) + \
     (has(v.memoryDump) ? 1 : 0) + (has(v.persistentVolumeClaim) ? 1 : 0) + (has(v.secret) ? 1 : 0) + \
     (has(v.serviceAccount) ? 1 : 0) + (has(v.sysprep) ? 1 : 0) != 1, \
     'spec.template.spec.volumes[' + string(i) + '] must have exactly one source type set')",
    "variables.inits.filter(c, c.user > 2048).map(c, c.at + ' userdata exceeds 2048 byte limit. Should use \
     UserDataSecretRef for larger data.')",
    "variables.inits.filter(c, c.network > 2048).map(c, c.at + ' networkdata exceeds 2048 byte limit. Should use \
     NetworkDataSecretRef for larger data.')",
    "variables.inits.filter(c, c.user + c.network + c.refs == 0).map(c, c.at + ' must have at least one \
     userdatasource or one networkdatasource set.')",
    // validateDiskName, validateDiskNameAsContainerName
    "variables.disks.transformList(i, d, variables.disks.exists(j, e, j < i && e.name == d.name), \
     'spec.template.spec.domain.devices.disks[' + string(i) + '] and spec.template.spec.domain.devices.disks[' + \
     string(variables.disks.map(e, e.name).indexOf(d.name)) + '] must not have the same Name.')",
    "variables.disks.filter(d, format.dns1123Label().validate(d.name).hasValue())\
     .map(d, format.dns1123Label().validate(d.name).value()[0])",
    // validateBootloader, validateDomainSpec
    "variables.loader.filter(l, has(l.efi) && has(l.bios)).map(l, 'spec.template.spec.domain.firmware.bootloader has \
     both EFI and BIOS configured, but they are mutually exclusive.')",
    "variables.loader.filter(l, has(l.efi) && (!has(l.efi.secureBoot) || l.efi.secureBoot) && !variables.smm)\
     .map(l, 'spec.template.spec.domain has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently \
     disabled.')",
    // validateEmulatedMachine, for amd64
    "has(variables.spec.domain.machine) && has(variables.spec.domain.machine.type) && \
     !variables.spec.domain.machine.type.startsWith('q35') && \
     !variables.spec.domain.machine.type.startsWith('pc-q35') && variables.spec.domain.machine.type != '' ? \
     ['spec.template.spec.domain.machine.type is not supported: ' + variables.spec.domain.machine.type + \
      ' (allowed values: [q35* pc-q35*])'] : []",
    // pkg/network/admitter: validateSinglePodNetwork, and networks and interfaces by name
    "variables.pods.size() > 1 ? ['more than one interface is connected to a pod network in spec.interfaces'] : []",
    "variables.networks.transformList(i, n, !variables.interfaces.exists(f, f.name == n.name), \
     'spec.networks[' + string(i) + \"].name '\" + n.name + \"' not found.\")",
    "variables.interfaces.transformList(i, f, !variables.networks.exists(n, n.name == f.name), \
     'spec.domain.devices.interfaces[' + string(i) + \"].name '\" + f.name + \"' not found.\")",
    "variables.interfaces.exists(i, f, variables.interfaces.exists(j, g, j < i && g.name == f.name)) ? \
     ['Only one interface can be connected to one specific network'] : []",
    // validateInterfaceNameFormat, validateInterfaceModel
    "variables.interfaces.exists(f, !f.name.matches('^[A-Za-z0-9-_]+$')) ? ['Network interface name can only contain \
     alphabetical characters, numbers, dashes (-) or underscores (_)'] : []",
    "variables.interfaces.transformList(i, f, has(f.model) && f.model != '' && !(f.model in ['e1000', 'e1000e', 'igb', \
     'ne2k_pci', 'pcnet', 'rtl8139', 'virtio']), 'interface spec.domain.devices.interfaces[' + string(i) + \
     '].name uses model ' + f.model + ' that is not supported.')",
    // validateMacAddress: net.ParseMAC, and six bytes at most
    "variables.interfaces.transformList(i, f, has(f.macAddress) && f.macAddress != '' && !f.macAddress.matches(\
     '^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{4}[.]){2}[0-9A-Fa-f]{4}$'), \
     'interface spec.domain.devices.interfaces[' + string(i) + '].name has malformed MAC address (' + f.macAddress + \
     ').')",
    // validateLiveUpdateCPU
    "has(variables.spec.domain.cpu) && has(variables.spec.domain.cpu.sockets) && \
     has(variables.spec.domain.cpu.maxSockets) && variables.spec.domain.cpu.maxSockets > 0 && \
     variables.spec.domain.cpu.sockets > variables.spec.domain.cpu.maxSockets ? \
     ['Number of sockets in CPU topology is greater than the maximum sockets allowed'] : []",
    // validateMasqueradeBinding
    "variables.interfaces.exists(f, has(f.masquerade) && !(f.name in variables.pods)) ? \
     ['Masquerade interface only implemented with pod network'] : \
     variables.interfaces.exists(f, has(f.masquerade) && has(f.macAddress) && f.macAddress == '02:00:00:00:00:00') ? \
     ['The requested MAC address is reserved for the in-pod bridge. Please choose another one.'] : []",
];

pub(super) fn policy() -> Value {
    let (constraints, alive) = matching();
    let mut variables: Vec<Value> =
        VARIABLES.iter().map(|(name, expression)| json!({"name": name, "expression": expression})).collect();
    let inits = ["cloudInitNoCloud", "cloudInitConfigDrive"].map(inits).join(" + ");
    variables.push(json!({"name": "inits", "expression": inits}));
    let mut validations = Vec::new();
    for (index, rule) in RULES.iter().enumerate() {
        let name = format!("wrong{index}");
        validations.push(json!({
            "expression": format!("variables.{name}.size() == 0"),
            "messageExpression": format!("variables.{name}[0]"),
            "reason": "Invalid",
        }));
        variables.push(json!({"name": name, "expression": rule}));
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "matchConstraints": constraints, "matchConditions": alive, "failurePolicy": "Fail",
            "variables": variables, "validations": validations,
        },
    })
}

/// The volumes with this source: where they are, how many bytes of data they have, and how many
/// references to Secrets. CEL cannot decode base64 here, but the number of bytes follows from the
/// text.
fn inits(source: &str) -> String {
    let bytes = |data: &str| {
        let (plain, encoded) = (format!("v.{source}.{data}"), format!("v.{source}.{data}Base64"));
        format!(
            "has({plain}) ? bytes({plain}).size() : has({encoded}) ? {encoded}.size() / 4 * 3 - \
             ({encoded}.endsWith('==') ? 2 : {encoded}.endsWith('=') ? 1 : 0) : 0"
        )
    };
    let count = |reference: &str| format!("(has(v.{source}.{reference}) ? 1 : 0)");
    format!(
        "variables.volumes.transformList(i, v, has(v.{source}), \
         {{'at': dyn('spec.template.spec.volumes[' + string(i) + '].{source}'), 'user': dyn({}), \
         'network': dyn({}), 'refs': dyn({} + {})}})",
        bytes("userData"),
        bytes("networkData"),
        count("secretRef"),
        count("networkDataSecretRef"),
    )
}
