//! CPU, memory, and what template and class bring.

use std::fmt;

use machines_api::MachineSpec;
use machines_api::references::MachineClassSpec;
use object::quantity;
use serde_json::Value;

use super::agreed;
use crate::problem::{Problem, Reason};

/// A CPU topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Cores of each socket.
    pub cores: u32,
    /// Threads of each core.
    pub threads: u32,
    /// Sockets.
    pub sockets: u32,
}

impl Topology {
    /// Virtual CPUs in all.
    #[must_use]
    pub fn count(self) -> u32 {
        self.cores.saturating_mul(self.threads).saturating_mul(self.sockets)
    }
}

/// A size of the documentation.
struct Template {
    name: &'static str,
    cores: u32,
    memory: &'static str,
    root: &'static str,
}

/// The templates of the documentation (vitistack/docs, the page of kubevirt-operator, 2025-10-10).
const TEMPLATES: [Template; 3] = [
    Template { name: "small", cores: 1, memory: "2Gi", root: "20Gi" },
    Template { name: "medium", cores: 2, memory: "4Gi", root: "40Gi" },
    Template { name: "large", cores: 4, memory: "8Gi", root: "80Gi" },
];

/// What a Machine in the spelling of the published CRD gets if it says nothing: the defaults of the
/// Go program (vitistack/kubevirt-operator at 63ee0ee, internal/machine/vm/resources.go and
/// internal/machine/storage/storage_manager.go).
const PUBLISHED: Template = Template { name: "", cores: 2, memory: "2Gi", root: "10Gi" };

/// One MiB, the unit of guest memory that every hypervisor accepts.
const MIB: i128 = 1 << 20;

/// A size.
pub(super) struct Size {
    pub(super) cpu: Topology,
    pub(super) memory: String,
    /// Size of the root disk that the template brings; `None` where the Machine lists its disks.
    pub(super) root: Option<&'static str>,
}

/// Whether a Machine is written with fields of the published CRD only.
fn is_published(spec: &MachineSpec) -> bool {
    let documented = spec.template.is_some()
        || spec.resources.is_some()
        || spec.networks.is_some()
        || spec.boot_order.is_some()
        || spec.domain.is_some()
        || spec.disks.iter().flatten().any(|disk| disk.size.is_some());
    let published = spec.provider.is_some()
        || spec.machine_class.is_some()
        || spec.cpu.is_some()
        || spec.memory.is_some()
        || spec.os.is_some()
        || spec.network.is_some()
        || spec.disks.is_some();
    published && !documented
}

/// CPU and memory of the Machine, and the root disk that its template brings.
pub(super) fn size(spec: &MachineSpec, class: Option<&MachineClassSpec>, problems: &mut Vec<Problem>) -> Size {
    let template = template(spec, problems);
    let class = machine_class(spec, class, problems);
    let cpu = topology(spec, template, class, problems);
    let memory = memory(spec, template, class, problems);
    Size { cpu, memory, root: template.map(|template| template.root) }
}

fn template(spec: &MachineSpec, problems: &mut Vec<Problem>) -> Option<&'static Template> {
    let Some(name) = spec.template.as_deref() else {
        return is_published(spec).then_some(&PUBLISHED);
    };
    let found = TEMPLATES.iter().find(|template| template.name == name);
    if found.is_none() {
        let message = format!("there is no template {name:?}: use small, medium or large");
        problems.push(Problem::new(Reason::TemplateNotFound, "spec.template", message));
    }
    found
}

fn machine_class<'a>(
    spec: &MachineSpec,
    class: Option<&'a MachineClassSpec>,
    problems: &mut Vec<Problem>,
) -> Option<&'a MachineClassSpec> {
    let name = spec.machine_class.as_deref()?;
    if let Some(template) = spec.template.as_deref() {
        let message = format!(
            "it is {name}, and spec.template is {template}: set one of them, because their sizes differ even under one name"
        );
        problems.push(Problem::new(Reason::InvalidSpec, "spec.machineClass", message));
        return None;
    }
    match class {
        None => {
            let message = format!("there is no MachineClass {name}: create it, or set spec.template");
            problems.push(Problem::new(Reason::TemplateNotFound, "spec.machineClass", message));
        }
        Some(class) if class.enabled == Some(false) => {
            let message = format!("the MachineClass {name} is not enabled: use another one, or have it enabled");
            problems.push(Problem::new(Reason::TemplateNotFound, "spec.machineClass", message));
        }
        Some(_) => {}
    }
    class
}

fn topology(
    spec: &MachineSpec,
    template: Option<&Template>,
    class: Option<&MachineClassSpec>,
    problems: &mut Vec<Problem>,
) -> Topology {
    let documented = spec.resources.as_ref().and_then(|resources| resources.cpu.as_ref());
    let published = spec.cpu.as_ref();
    let mut field =
        |documented: Option<u32>, path, published: Option<u32>, published_path, most: u32, default: Option<u32>| {
            for (path, value) in [(path, documented), (published_path, published)] {
                if let Some(value) = value.filter(|value| !(1..=most).contains(value)) {
                    let message = format!("it must be between 1 and {most}, not {value}");
                    problems.push(Problem::new(Reason::InvalidSpec, path, message));
                }
            }
            let set =
                agreed(documented.map(|value| (path, value)), published.map(|value| (published_path, value)), problems);
            set.or(default).unwrap_or(1)
        };
    let of_class = class.map(|class| &class.cpu);
    let cores = of_class.and_then(|cpu| cpu.cores).or(template.map(|template| template.cores));
    Topology {
        cores: field(
            documented.and_then(|cpu| cpu.cores),
            "spec.resources.cpu.cores",
            published.and_then(|cpu| cpu.cores),
            "spec.cpu.cores",
            256,
            cores,
        ),
        threads: field(
            documented.and_then(|cpu| cpu.threads),
            "spec.resources.cpu.threads",
            published.and_then(|cpu| cpu.threads_per_core),
            "spec.cpu.threadsPerCore",
            8,
            of_class.and_then(|cpu| cpu.threads),
        ),
        sockets: field(
            documented.and_then(|cpu| cpu.sockets),
            "spec.resources.cpu.sockets",
            published.and_then(|cpu| cpu.sockets),
            "spec.cpu.sockets",
            16,
            of_class.and_then(|cpu| cpu.sockets),
        ),
    }
}

/// An amount of bytes that keeps the spelling in which it was written.
#[derive(Clone)]
struct Bytes(i128, String);

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.1)
    }
}

fn memory(
    spec: &MachineSpec,
    template: Option<&Template>,
    class: Option<&MachineClassSpec>,
    problems: &mut Vec<Problem>,
) -> String {
    const DOCUMENTED: &str = "spec.resources.memory.size";
    const PUBLISHED: &str = "spec.memory";
    let size = spec.resources.as_ref().and_then(|resources| resources.memory.as_ref()?.size.as_deref());
    let documented = size
        .and_then(|size| bytes(DOCUMENTED, size, problems).map(|bytes| (DOCUMENTED, Bytes(bytes, size.to_owned()))));
    let published = spec.memory.and_then(|bytes| {
        if bytes <= 0 || i128::from(bytes) % MIB != 0 {
            let message = format!("{bytes} bytes is not a positive whole number of MiB (1048576 bytes): round it");
            problems.push(Problem::new(Reason::InvalidSpec, PUBLISHED, message));
            return None;
        }
        Some((PUBLISHED, Bytes(bytes.into(), format!("{}Mi", i128::from(bytes) / MIB))))
    });
    let is_set = size.is_some() || spec.memory.is_some();
    let set = agreed(documented, published, problems);
    let chosen = set.map(|bytes| bytes.1).or_else(|| {
        let of_class = class.and_then(|class| class.memory.quantity.clone());
        of_class.or_else(|| template.map(|template| template.memory.to_owned()))
    });
    if let (Some(class), Some(memory)) = (class, &chosen) {
        within_class(class, memory, problems);
    }
    if chosen.is_none() && !is_set && spec.template.is_none() && spec.machine_class.is_none() {
        let message = "it is missing: set it, for example to 4Gi, or set spec.template to small, medium or large";
        problems.push(Problem::new(Reason::InvalidSpec, DOCUMENTED, message));
    }
    chosen.unwrap_or_default()
}

/// A class may limit what Machines ask for.
fn within_class(class: &MachineClassSpec, memory: &str, problems: &mut Vec<Problem>) {
    let amount = |text: &str| quantity::amount(&Value::from(text));
    let Some(wanted) = amount(memory) else { return };
    let least = class.memory.min_quantity.as_deref().filter(|least| amount(least).is_some_and(|least| wanted < least));
    let most = class.memory.max_quantity.as_deref().filter(|most| amount(most).is_some_and(|most| wanted > most));
    let bound = least.map(|least| format!("at least {least}")).or(most.map(|most| format!("at most {most}")));
    if let Some(bound) = bound {
        let message = format!("its class allows {bound}, not {memory}: change it, or use another class");
        problems.push(Problem::new(Reason::InvalidSpec, "spec.memory", message));
    }
}

/// The bytes of a positive quantity that is a whole number.
pub(super) fn bytes(path: &str, text: &str, problems: &mut Vec<Problem>) -> Option<i128> {
    const UNIT: i128 = 1_000_000_000;
    let amount = quantity::amount(&Value::from(text)).filter(|amount| *amount > 0 && amount % UNIT == 0);
    if amount.is_none() {
        let message = format!("{text:?} is not an amount of bytes: write one such as 20Gi");
        problems.push(Problem::new(Reason::InvalidSpec, path, message));
    }
    amount.map(|amount| amount / UNIT)
}
