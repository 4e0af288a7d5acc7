//! `virt-advisor diff NAME`: the whole plan, uncut, from the live cluster. It writes nothing.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use profile_sdk::Remembered;

use super::printed;
use advisor_cluster::Cluster;
use advisor_core::api::{FIELD_MANAGER, VirtPlatformConfig};
use advisor_core::plan::decision::observed;
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::items::prune;
use advisor_core::plan::overrides::Choices;
use advisor_core::plan::{Basis, Plan};
use advisor_core::rollout::{MachineConfigPools, Rollouts};
use advisor_engine::engine::{DraftedPlan, Drafting, Engine, Task};
use advisor_engine::registry;
use object::limits;
use operator_kit::clock::now;
use operator_kit::command::{CommandFailure, DIFFERENT, FAILED, SAME};

/// Print what a configuration would change, as complete unified diffs, with the plan hash. Writes nothing.
///
/// Exit codes: 0 no differences, 1 differences, 2 the plan could not be made or is blocked.
#[derive(Debug, Args)]
pub(super) struct DiffFlags {
    /// Name of the VirtPlatformConfig, which is that of its profile.
    name: String,

    /// Kubeconfig of the cluster. If unset: KUBECONFIG, then ~/.kube/config, then the Pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Makes the plan, and prints it with `print`.
pub(super) fn run(
    flags: DiffFlags,
    print: impl FnOnce(&str) -> Result<(), String>,
) -> Result<ExitCode, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CommandFailure::of_comparison(format!("the program can't start: {error}")))?;
    let outcome = runtime.block_on(async {
        let client = advisor_cluster::connect(flags.kubeconfig).await.map_err(|error| error.to_string())?;
        plan(&Cluster::new(advisor_cluster::bounded(client), FIELD_MANAGER), &flags.name).await
    });
    let (plan, published) = outcome.map_err(|problem| CommandFailure::of_comparison(limits::visible(&problem)))?;
    print(&text(&plan, published.as_deref())).map_err(CommandFailure::of_comparison)?;
    Ok(ExitCode::from(if plan.blocked().next().is_some() {
        FAILED
    } else if plan.is_satisfied() {
        SAME
    } else {
        DIFFERENT
    }))
}

/// The current plan of the configuration called `name`, and the digest of the published one.
async fn plan(cluster: &Cluster, name: &str) -> Result<(Plan, Option<String>), String> {
    let profile = registry::profile_named(name)?;
    let config = cluster
        .find::<VirtPlatformConfig>(name)
        .await
        .map_err(|error| format!("reading VirtPlatformConfig {name} failed: {error}"))?;
    let config =
        config.ok_or_else(|| format!("there is no VirtPlatformConfig {name}: create it, or start the operator"))?;
    if let Some(problem) = advisor_core::api::spec_problem(&config.spec) {
        return Err(problem);
    }
    let options = config.spec.options.clone();
    let terms = observed::Wanted::of(&config).terms();
    let own = options.as_ref().and_then(|options| options.get(profile.about().options_key));
    let planner = profile.configure(own).map_err(|error| error.to_string())?;

    let pools = MachineConfigPools::default();
    let unheard = |_, _| {};
    let engine = Engine::new(cluster, &pools, &unheard);
    let kinds = profile.kinds().iter().map(|declared| declared.kind).chain([pools.watched_kind()]);
    let served = engine.served(kinds).await.map_err(|error| error.to_string())?;
    if let Some(kind) = served.served.get(&pools.watched_kind()) {
        let all =
            cluster.list(kind).await.map_err(|error| format!("listing {} failed: {error}", kind.resource.plural))?;
        pools.pools_listed(&all);
    }
    let drafting = engine
        .draft(
            planner.as_ref(),
            &advisor_engine::engine::manager(profile.about().name),
            profile.kinds(),
            &served,
            Remembered::default(),
        )
        .await;
    let DraftedPlan { mut drafts, inputs, exclusions, left_out, .. } =
        match drafting.map_err(|error| error.to_string())? {
            Drafting::Drafted(wanted) => wanted,
            Drafting::Missing(missing) => return Err(missing.join("\n")),
            Drafting::Invalid(problem) => return Err(problem),
        };
    let overrides = config.spec.overrides.clone();
    let choices = Choices { overrides, items: config.spec.items.clone(), exclusions }.at(now());
    let status = config.status.unwrap_or_default();
    drafts.extend(prune::departed(&status, &drafts, config.spec.options.as_ref()));
    let all = cluster
        .find_all::<VirtPlatformConfig>()
        .await
        .map_err(|error| format!("listing configurations failed: {error}"))?;
    let others = all.iter().filter(|other| other.spec.profile != name);
    let claims: Vec<_> = others.flat_map(Claim::all_of).collect();
    let basis = Basis { profile: name.to_owned(), options, inputs, terms };
    let task = Task {
        profile: name,
        kinds: profile.kinds(),
        drafts: &drafts,
        remembered: &status.items,
        claims: &claims,
        choices: &choices,
        unwatched: &std::collections::BTreeMap::new(),
        rivals: profile.rivals(),
        exact: true,
    };
    let plan = engine.plan(basis, task).await.map_err(|error| error.to_string())?;
    Ok((Plan { left_out, ..plan }, status.plan_hash))
}

/// Diffs with comments between them, which `patch` skips.
fn text(plan: &Plan, published: Option<&str>) -> String {
    let mut text = printed::live(plan);
    let shown = match published {
        Some(hash) if hash == plan.digest => "the status shows this plan",
        Some(_) => "the status shows another plan",
        None => "the status shows no plan",
    };
    let _ = writeln!(text, "#\n# plan {}: {shown}", plan.digest);
    text
}
