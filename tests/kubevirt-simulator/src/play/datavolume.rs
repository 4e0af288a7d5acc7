//! Looks at a DataVolume, and plays CDI: a claim of its name, and its phase. Nothing is imported.
//!
//! CDI v1.66.0, pkg/controller/datavolume.

use std::time::Duration;

use serde_json::{Value, json};

use super::watches::Kind;
use super::{Shared, lock};

/// Does the next thing, and says when to look again.
pub(crate) async fn look(shared: &Shared, namespace: &str, name: &str) -> Result<Option<Duration>, kube::Error> {
    let (volume, claim, class, has_owner) = {
        let world = lock(&shared.world);
        let Some(volume) = world.get(Kind::DataVolume, namespace, name) else { return Ok(None) };
        let claim = world.get(Kind::Claim, namespace, name);
        let class = |claim: &Value| world.get(Kind::Class, "", claim["spec"]["storageClassName"].as_str()?);
        let class = claim.as_deref().and_then(class);
        let mut owners = volume["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let machine = owners.find(|owner| owner["kind"] == "VirtualMachine");
        let has_owner = machine.is_none_or(|owner| {
            let machine = world.get(Kind::Machine, namespace, owner["name"].as_str().unwrap_or_default());
            machine.is_some_and(|machine| machine["metadata"]["uid"] == owner["uid"])
        });
        (volume.clone(), claim, class, has_owner)
    };
    if !volume["metadata"]["deletionTimestamp"].is_null() {
        return Ok(None);
    }
    if !has_owner {
        // Plays the garbage collector.
        shared.delete(Kind::DataVolume, &volume).await?;
        return Ok(None);
    }
    let Some(claim) = claim else {
        shared.create(Kind::Claim, &claim_of(&volume)).await?;
        return Ok(None);
    };
    let waits = class.is_some_and(|class| class["volumeBindingMode"] == "WaitForFirstConsumer");
    let (phase, progress) = match (claim["status"]["phase"] == "Bound", waits) {
        (true, _) => ("Succeeded", "100.0%"),
        (false, true) => ("WaitForFirstConsumer", "N/A"),
        (false, false) => ("Pending", "N/A"),
    };
    if volume["status"]["phase"] != phase {
        let mut next = volume.as_ref().clone();
        next["status"] = json!({"phase": phase, "progress": progress, "claimName": name});
        shared.replace_status(Kind::DataVolume, &next).await?;
    }
    Ok(None)
}

fn claim_of(volume: &Value) -> Value {
    let spec = &volume["spec"];
    let asked = if spec["storage"].is_null() { &spec["pvc"] } else { &spec["storage"] };
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": volume["metadata"]["name"], "namespace": volume["metadata"]["namespace"],
            "ownerReferences": [{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
                "name": volume["metadata"]["name"], "uid": volume["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": asked["resources"]},
    });
    for key in ["accessModes", "storageClassName", "volumeMode"] {
        if !asked[key].is_null() {
            claim["spec"][key] = asked[key].clone();
        }
    }
    claim
}
