//! Advertising: creates a configuration with action Ignore for each profile that may be used, so
//! that everybody can find it.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::ObjectMeta;
use profile_sdk::Profile;

use super::Context;
use advisor_cluster::{Cluster, ClusterError};
use advisor_core::api::{self, Action, VirtPlatformConfig, VirtPlatformConfigSpec};
use advisor_engine::registry::Profiles;

/// How long to wait before it is tried again after an error.
const PAUSE: Duration = Duration::from_secs(5);
/// How long one try may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Advertises all profiles, until that has been done; `exists` says which have a configuration.
pub(super) async fn until_done(ctx: &Context, exists: impl Fn(&str) -> bool) {
    let mut said = String::new();
    loop {
        let problem = match tokio::time::timeout(LIMIT, all(&ctx.cluster, ctx.profiles, &exists)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the API server does not answer".to_owned(),
        };
        if problem != said {
            tracing::warn!(problem, "profiles can't be advertised yet");
            said = problem;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Creates the configuration of every advertised profile in `profiles` for which `exists` returns
/// false. Never changes existing ones.
///
/// # Errors
///
/// The first error of the API server; the others were attempted all the same.
async fn all(cluster: &Cluster, profiles: Profiles, exists: impl Fn(&str) -> bool) -> Result<(), ClusterError> {
    let mut outcome = Ok(());
    for profile in profiles {
        let about = profile.about();
        if !about.advertised || exists(about.name) {
            continue;
        }
        match cluster.create(&advertisement(*profile)).await {
            Ok(true) => tracing::info!(profile = about.name, "profile advertised"),
            Ok(false) => {}
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    outcome
}

fn advertisement(profile: &dyn Profile) -> VirtPlatformConfig {
    let about = profile.about();
    let text = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let page = format!("{}/blob/main/profiles/{}/README.md", env!("CARGO_PKG_REPOSITORY"), about.name);
    let annotations = [
        (api::AUTO_CREATED_ANNOTATION, "true"),
        (api::DESCRIPTION_ANNOTATION, about.description),
        (api::IMPACT_ANNOTATION, about.impact_summary),
        (api::DOCUMENTATION_ANNOTATION, page.as_str()),
    ];
    VirtPlatformConfig {
        metadata: ObjectMeta {
            name: Some(about.name.to_owned()),
            annotations: Some(annotations.map(text).into()),
            labels: Some(BTreeMap::from([text((api::CATEGORY_LABEL, about.category))])),
            ..ObjectMeta::default()
        },
        spec: VirtPlatformConfigSpec {
            profile: about.name.to_owned(),
            action: Action::Ignore,
            failure_policy: api::FailurePolicy::default(),
            options: None,
            bypass_optimistic_lock: false,
            wait_timeout: None,
            approved_plan_hash: None,
            approval_policy: api::ApprovalPolicy::default(),
            overrides: Vec::new(),
            items: Vec::new(),
        },
        status: None,
    }
}
