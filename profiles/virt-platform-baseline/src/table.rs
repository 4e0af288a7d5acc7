//! The features as a table, for the documents.

use crate::feature::{AskedBy, Condition, Feature, Maturity};
use crate::features::FEATURES;

/// A page of Markdown for docs/profiles: for each feature its maturity, its conditions and the
/// kinds that it writes.
#[must_use]
pub fn page() -> String {
    let rows: String = FEATURES.iter().map(|feature| row(feature)).collect();
    format!(
        "# The features of virt-platform-baseline\n\n\
         Generated from the profile by `make generate`. For a description of each feature and the objects that it writes, see [its README](../../profiles/virt-platform-baseline/README.md).\n\n\
         | feature | what it does | maturity | default | also enabled by | planned only if | kinds | machines reboot |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n{rows}\n\
         Load-aware rebalancing is a separate profile, load-aware-rebalancing, so that only one configuration writes the descheduler. Its dashboard is part of `observability` where the kind KubeDescheduler is served.\n"
    )
}

fn row(feature: &Feature) -> String {
    let Feature { name, does, maturity, .. } = feature;
    let asked_by = match &feature.asked_by {
        AskedBy::Nothing => None,
        AskedBy::Annotation(name) => Some(format!("annotation `platform.kubevirt.io/{name}`")),
    };
    let named_by = feature.named_by.as_ref().map(|named_by| {
        let needed = if named_by.needed { ", which it requires" } else { "" };
        format!("option `{}`{needed}", named_by.option)
    });
    let asked_by: Vec<_> = asked_by.into_iter().chain(named_by).collect();
    let asked_by = if asked_by.is_empty() { "—".to_owned() } else { asked_by.join("; ") };
    let needs = feature.needs.iter().map(|needed| format!("no effect without `{needed}`"));
    let conditions: Vec<_> = feature.conditions.iter().map(condition).chain(needs).collect();
    let conditions = if conditions.is_empty() { "—".to_owned() } else { conditions.join("; ") };
    let default = if *maturity == Maturity::GeneralAvailability { "on" } else { "off" };
    let kinds = feature.required_kinds().iter().chain(feature.optional_kinds());
    let kinds: Vec<_> = kinds.map(|kind| kind.kind).collect();
    let (kinds, reboots) = (kinds.join(", "), if feature.reboots_machines() { "yes" } else { "no" });
    let maturity = maturity.name();
    format!("| `{name}` | {does} | {maturity} | {default} | {asked_by} | {conditions} | {kinds} | {reboots} |\n")
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::NodeHas(_, what) => format!("a node is labeled as having {what}"),
        Condition::HyperConvergedLacks { v1, .. } => format!("HyperConverged does not set `{v1}`"),
        Condition::Served(kind) => format!("{} is served", kind.kind),
        Condition::KubeletsReadDropIns => {
            "kubelets read `/etc/openshift/kubelet.conf.d`, or it is unknown whether they do".to_owned()
        }
        Condition::Planned(feature) => format!("`{}` is planned", feature.name),
    }
}
