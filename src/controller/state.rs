//! Metrics of the present state: computed from what the operator watches when they are requested.
//! At rest they cost nothing.

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt;
use operator_kit::Pulse;
use operator_kit::leader::Fence;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::telemetry::definitions::{self as define, Definition};
use crate::telemetry::{Label, Metrics};
use advisor_core::api::{ItemState, Operation, Phase, VirtPlatformConfig};
use advisor_core::plan::status::conditions;

use super::{Health, WatchState};

/// The sources of the metrics.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The version of the program.
    pub version: &'static str,
    /// The watches and the configurations they have seen.
    pub health: Health,
    /// Whether this replica leads.
    pub fence: Fence,
    /// The counted metrics.
    pub metrics: Metrics,
    /// The state of the working thread.
    pub pulse: Pulse,
}

impl Sources {
    /// All metrics.
    #[must_use]
    pub fn registry(self) -> Registry {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        registry.register_collector(Box::new(self));
        registry
    }
}

type Samples<T> = Vec<(Vec<Label>, T)>;

impl Sources {
    fn gauges(&self) -> Vec<(&'static Definition, Samples<f64>)> {
        let flag = |value: bool| f64::from(u8::from(value));
        let controller = ("controller", "virtplatformconfig".to_owned());
        let queue = vec![controller.clone(), ("name", controller.1.clone())];
        let under_way = self.metrics.under_way();
        let seconds: Vec<_> = under_way.iter().map(std::time::Duration::as_secs_f64).collect();
        let count = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
        let mut all = vec![
            (&define::BUILD, vec![(vec![("version", self.version.to_owned())], 1.0)]),
            (&define::LEADER, vec![(Vec::new(), flag(self.fence.is_open()))]),
            (&define::READY, vec![(Vec::new(), flag(self.health.problems().is_empty()))]),
            (&define::LONGEST_STALL, vec![(Vec::new(), self.pulse.longest_stall().as_secs_f64())]),
            (&define::ACTIVE_WORKERS, vec![(vec![controller.clone()], count(under_way.len()))]),
            (&define::MAX_WORKERS, vec![(vec![controller], count(usize::from(super::CONCURRENCY)))]),
            (&define::QUEUE_UNFINISHED, vec![(queue.clone(), seconds.iter().sum())]),
            (&define::QUEUE_LONGEST, vec![(queue, seconds.iter().copied().fold(0.0, f64::max))]),
        ];
        let watches = self.health.watches().into_iter();
        let open = watches
            .map(|watch| (vec![("group", watch.group), ("kind", watch.kind)], flag(watch.state == WatchState::Open)));
        all.push((&define::WATCH_OPEN, once_each(open)));
        let configs = self.health.configurations();
        let of_each = |value: &dyn Fn(&VirtPlatformConfig) -> Option<f64>| -> Samples<f64> {
            let found = configs.iter().filter_map(|config| Some((vec![name(config)], value(config)?)));
            found.collect()
        };
        all.push((&define::PHASE_SINCE, of_each(&phase_began)));
        all.push((
            &define::BLOCKED,
            of_each(&|config| {
                let items = &config.status.as_ref()?.items;
                Some(count(items.iter().filter(|item| item.operation == Operation::Blocked).count()))
            }),
        ));
        all.push((
            &define::READING_FAILED,
            of_each(&|config| Some(flag(conditions::is_unreadable(&config.status.as_ref()?.conditions)))),
        ));
        let phases =
            configs.iter().filter_map(|config| Some((vec![name(config), ("phase", phase(config)?.to_string())], 1.0)));
        all.push((&define::PHASE, phases.collect()));
        let mut items = Vec::new();
        for config in &configs {
            let Some(status) = &config.status else { continue };
            for state in ItemState::ALL {
                let number = status.items.iter().filter(|item| item.state == *state).count();
                items.push((vec![name(config), ("state", state.to_string())], count(number)));
            }
        }
        all.push((&define::ITEMS, items));
        all
    }

    fn counters(&self) -> Vec<(&'static Definition, Samples<u64>)> {
        let of_each = |value: &dyn Fn(&super::WatchHealth) -> u64| {
            let watches = self.health.watches();
            let samples = watches
                .iter()
                .map(|watch| (vec![("group", watch.group.clone()), ("kind", watch.kind.clone())], value(watch)));
            once_each(samples)
        };
        vec![
            (&define::WATCH_OPENED, of_each(&|watch| watch.opened)),
            (&define::WATCH_FAILURES, of_each(&|watch| watch.failures)),
        ]
    }
}

/// A kind that is watched in several namespaces, or once more while an older watch ends, has one
/// sample: the lowest.
fn once_each<T: PartialOrd>(samples: impl Iterator<Item = (Vec<Label>, T)>) -> Samples<T> {
    let mut least = BTreeMap::new();
    for (labels, value) in samples {
        match least.entry(labels) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(value);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) if value < *entry.get() => {
                entry.insert(value);
            }
            std::collections::btree_map::Entry::Occupied(_) => {}
        }
    }
    least.into_iter().collect()
}

fn name(config: &VirtPlatformConfig) -> Label {
    ("name", config.name_any())
}

fn phase(config: &VirtPlatformConfig) -> Option<Phase> {
    config.status.as_ref()?.phase
}

/// When the condition of the present phase became true, in seconds since the epoch.
fn phase_began(config: &VirtPlatformConfig) -> Option<f64> {
    let wanted = phase(config)?.name();
    let conditions = &config.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == wanted && condition.status == "True")?;
    Some(found.last_transition_time.0.as_second() as f64)
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for (metric, samples) in self.gauges() {
            let mut family = encoder.encode_descriptor(metric.base(), metric.short_help(), None, MetricType::Gauge)?;
            for (labels, value) in samples {
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        for (metric, samples) in self.counters() {
            let mut family =
                encoder.encode_descriptor(metric.base(), metric.short_help(), None, MetricType::Counter)?;
            for (labels, value) in samples {
                ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
