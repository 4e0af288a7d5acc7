//! Looks at a claim.

use std::time::Duration;

use serde_json::Value;

use super::watches::Kind;
use super::{Shared, lock};
use crate::Fault;
use crate::rules::claims::{Step, step};
use crate::rules::guest::{is_final, phase};
use crate::rules::instance;

/// Does the next thing, and says when to look again.
pub(crate) async fn look(shared: &Shared, namespace: &str, name: &str) -> Result<Option<Duration>, kube::Error> {
    let (claim, class, instances, has_owner) = {
        let world = lock(&shared.world);
        let Some(claim) = world.get(Kind::Claim, namespace, name) else { return Ok(None) };
        let class = claim["spec"]["storageClassName"].as_str().and_then(|class| world.get(Kind::Class, "", class));
        let users = world.users(namespace, name).into_iter();
        let instances = users.filter_map(|user| Some((world.get(Kind::Instance, namespace, &user)?, user)));
        let instances = instances.filter(|(instance, _)| instance::claims(&instance["spec"]).any(|used| used == name));
        let has_owner = owner(&claim).is_none_or(|(name, uid)| {
            world.get(Kind::DataVolume, namespace, name).is_some_and(|volume| volume["metadata"]["uid"] == *uid)
        });
        (claim.clone(), class, instances.collect::<Vec<_>>(), has_owner)
    };
    if !has_owner && claim["metadata"]["deletionTimestamp"].is_null() {
        // Plays the garbage collector.
        shared.delete(Kind::Claim, &claim).await?;
        return Ok(None);
    }
    let is_scheduled = |name: &str| !shared.faults(namespace, name).contains(&Fault::Unschedulable);
    let has_consumer = instances.iter().any(|(instance, name)| {
        ["Scheduling", "Scheduled", "Running"].contains(&phase(instance)) && is_scheduled(name)
    });
    let is_used = instances.iter().any(|(instance, _)| !is_final(instance) && !phase(instance).is_empty());
    match step(&claim, class.as_deref(), has_consumer, is_used) {
        Some(Step::Write(claim)) => shared.replace(Kind::Claim, &claim).await?,
        Some(Step::Status(claim)) => shared.replace_status(Kind::Claim, &claim).await?,
        Some(Step::Grow(grown)) => {
            let wish = grown["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or_default();
            let uid = claim["metadata"]["uid"].as_str().unwrap_or_default();
            let (due, age) = (shared.settings.step() * 2, shared.age(uid, &format!("growth to {wish}")));
            if age < due {
                return Ok(Some(due - age));
            }
            shared.replace_status(Kind::Claim, &grown).await?;
        }
        None => {}
    }
    Ok(None)
}

/// Name and uid of the DataVolume that a claim belongs to.
fn owner(claim: &Value) -> Option<(&str, &Value)> {
    let owners = claim["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["kind"] == "DataVolume")?;
    Some((owner["name"].as_str()?, &owner["uid"]))
}
