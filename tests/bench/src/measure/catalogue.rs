//! A plan of everything that the platform baseline can bring, beside the same requests sent by a
//! plain client.

use std::time::Instant;

use advisor_engine::engine::CONCURRENCY;
use advisor_engine::registry;
use anyhow::{Context, Result};
use controlplane::apply_yaml;
use demo::USER;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use profile_sdk::{Body, Inputs};
use serde_json::{Value, json};

use crate::bench::{Bench, tell};
use crate::counts;
use crate::measure::memory;
use crate::observer::{Observer, configs};
use crate::table::{Bound, Figure, Table};

const PROFILE: &str = "virt-platform-baseline";
const TIMES: usize = 5;

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    tell("a plan of the whole catalogue");
    let namespaces = [
        "openshift-mtv",
        "metallb-system",
        "openshift-workload-availability",
        "openshift-logging",
        "openshift-monitoring",
    ];
    let namespaces =
        namespaces.map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    mco_simulator::set_role(&bench.admin, "master-0", "worker", true).await?;
    for object in namespaces {
        apply_yaml(&bench.admin, &object.to_string(), "bench").await?;
    }
    let objects = objects()?;
    let mut observer = Observer::of(&bench.admin, PROFILE);
    let (mut ours, mut theirs, mut last) = (Vec::new(), Vec::new(), None);
    for round in 0..=TIMES {
        // Anew, so that nothing is remembered of it; the first round, which is not counted, opens
        // what is opened once.
        bench.restart().await?;
        let mark = bench.stage.plane().audit().mark();
        let began = Instant::now();
        apply_yaml(&bench.admin, &configuration()?.to_string(), "bench").await?;
        let generation = configs(&bench.admin).get(PROFILE).await?.metadata.generation.unwrap_or_default();
        let seen = observer.wait("ReviewRequired", generation).await?;
        let took = seen.at - began;
        let counts = counts::settled(&bench.stage, &mark).await?;
        let bare = bare(&bench.stage.plane().client(USER, &[])?, &objects, &seen.status).await?;
        if round > 0 {
            ours.push(took);
            theirs.push(bare);
        }
        last = Some((counts, seen));
        configs(&bench.admin).delete(PROFILE, &kube::api::DeleteParams::default()).await?;
    }
    let (counts, seen) = last.context("a plan was made")?;
    let items = seen.status["items"].as_array().map_or(0, Vec::len);
    let limit = f64::from(u32::try_from(3 * items + 3)?);
    table.row(
        format!("first plan of the whole catalogue, {items} items: requests"),
        &Figure::count(counts.requests_but_rendered()),
        Bound::AtMost(limit),
        "",
    );
    table.note(format!("A first plan of the whole catalogue: {}.", counts.told()));
    table.row("  its status writes", &Figure::count(counts.status_writes()), Bound::AtMost(1.0), "");
    let bare = theirs.iter().map(std::time::Duration::as_secs_f64).fold(0.0, f64::max) * 1000.0;
    table.row(
        "  edit -> published plan; bound: 1.3 of the bare requests",
        &Figure::times(&ours),
        Bound::Under(bare * 1.3),
        "",
    );
    table.row("  the bare requests, and the status, by a plain client", &Figure::times(&theirs), Bound::None, "");
    let status = u32::try_from(seen.status.to_string().len().div_ceil(1024))?;
    table.row("  its status", &Figure::kibibytes(status), Bound::Under(0.25), "");
    let memory = memory::read(bench)?;
    table.row("  memory at the highest", &Figure::kibibytes(memory.highest), Bound::Under(32.0), "");
    table.row("  resident afterwards", &Figure::kibibytes(memory.resident), Bound::None, "");
    Ok(())
}

fn configuration() -> Result<Value> {
    let profile = registry::profile_named(PROFILE).map_err(anyhow::Error::msg)?;
    let schema = advisor_core::api::options_schema(profile);
    let features = schema.pointer("/properties/features/properties").and_then(Value::as_object).context("features")?;
    let features: serde_json::Map<_, _> = features.keys().map(|name| (name.clone(), json!("Enabled"))).collect();
    let device = json!({"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"});
    Ok(json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": PROFILE},
        "spec": {"profile": PROFILE, "action": "DryRun", "options": {"platformBaseline": {
            "features": features, "usbDevices": [device],
            "logging": {"storageClassName": "fast"}, "metricsExporter": {"image": "exporter:1"},
        }}},
    }))
}

/// What the profile wants, all of it.
fn objects() -> Result<Vec<Value>> {
    let profile = registry::profile_named(PROFILE).map_err(anyhow::Error::msg)?;
    let config = configuration()?;
    let planner = profile.configure(config.pointer("/spec/options/platformBaseline"))?;
    let inputs = planner.reads().into_iter().map(|read| {
        let version = read.kind.versions.last().copied().unwrap_or_default();
        let object = json!({"apiVersion": format!("{}/{version}", read.kind.group), "spec": {}});
        (read, Some(object))
    });
    let of_nodes = profile_sdk::platform::QUESTIONS.iter().map(|question| question.name).collect();
    let surroundings = profile_sdk::Surroundings { of_nodes, ..Default::default() };
    let drafts = planner.draft(&Inputs::new(inputs).in_surroundings(surroundings))?;
    Ok(drafts
        .into_iter()
        .filter_map(|draft| if let Body::Ensure(object) = draft.body { Some(object) } else { None })
        .collect())
}

/// A GET and a dry run for each object, as many at a time as the engine sends, and the status at
/// the end. What is in a namespace that comes with the plan is refused, as it is not to the
/// operator: that costs as much.
async fn bare(client: &Client, objects: &[Value], status: &Value) -> Result<std::time::Duration> {
    let params = PatchParams::apply("bare").force().dry_run().validation_strict();
    let began = Instant::now();
    stream::iter(objects)
        .map(|object| {
            let params = params.clone();
            async move {
                let name = object.pointer("/metadata/name").and_then(Value::as_str).context("a name")?;
                let api = crate::bench::api_of(client, object);
                // What the server says of it makes no difference to what it costs.
                let _ = api.get_opt(name).await;
                let _: Result<DynamicObject, _> = api.patch(name, &params, &Patch::Apply(object)).await;
                anyhow::Ok(())
            }
        })
        .buffered(CONCURRENCY)
        .try_collect::<Vec<_>>()
        .await?;
    let body = Patch::Merge(json!({"status": status}));
    configs(client).patch_status(PROFILE, &PatchParams::default(), &body).await?;
    Ok(began.elapsed())
}
