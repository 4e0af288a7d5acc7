//! Sections 3 and 4 of the observations: one MachineConfig, and a second one at bad moments.

use super::world::{World, lists, seconds};
use mco_simulator::api::MachineConfig;
use serde_json::json;

/// Letters: A is the master's configuration, B the worker's first, C and D those that come.
const SETTLED: &str = "2/2 B B 3/3/0 True False";

#[tokio::test]
async fn one_machine_config_and_three_machines() -> anyhow::Result<()> {
    let world = World::new().await?;
    assert_eq!(world.lines("worker"), [SETTLED]);
    world.arguments("50-psi", &["psi=1"]).await?;
    seconds(2.0).await;
    assert_eq!(world.lines("worker"), [SETTLED], "from 0 to 5 the pool shows nothing of the new object");
    world.until("worker", "3/2 C B").await;
    let seen = world.pool("worker").await?;
    let status = seen.status.clone().unwrap_or_default();
    assert!(lists(&seen.spec.configuration, "50-psi") && !lists(&status.configuration, "50-psi"));
    world.until("worker", "C C").await;
    assert_eq!(
        world.lines("worker"),
        [
            SETTLED,
            "3/2 C B 3/3/0 True False",
            "3/3 C B 0/0/0 False True",
            "3/3 C B 0/0/1 False True",
            "3/3 C B 1/1/0 False True",
            "3/3 C B 1/1/1 False True",
            "3/3 C B 2/2/0 False True",
            "3/3 C B 2/2/1 False True",
            "3/3 C C 3/3/0 True False",
        ]
    );
    assert_eq!(world.told(), ["worker-0 C", "worker-1 C", "worker-2 C"]);
    let done = world.pool("worker").await?;
    let status = done.status.clone().unwrap_or_default();
    assert_eq!(status.configuration, done.spec.configuration, "name and source together");
    assert_eq!(world.kernel_arguments("worker").await?, ["psi=1"]);
    assert_eq!(world.lines("master").len(), 1, "the other pool has nothing to do with it");

    let rendered = world.rendered_names().await?;
    world.delete::<MachineConfig>("50-psi").await?;
    world.until("worker", "B C 3/3/0 True False").await;
    world.until("worker", "B B 3/3/0 True False").await;
    assert_eq!(world.rendered_names().await?, rendered, "the old configuration exists: only the pool's spec moves");
    assert!(!lists(&world.pool("worker").await?.spec.configuration, "50-psi"));
    world.end().await
}

#[tokio::test]
async fn a_machine_goes_through_the_steps_of_an_update() -> anyhow::Result<()> {
    use mco_simulator::api::{APPLIED_DRAIN, CURRENT_CONFIG, DESIRED_CONFIG, DESIRED_DRAIN, STATE};
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C B 1/1").await;
    let steps = world.machine_states("worker-0", |node| {
        let annotation = |key: &str| node.metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let verb = |key| annotation(key).and_then(|text| text.split('-').next().map(str::to_owned)).unwrap_or_default();
        let spec = node.spec.clone().unwrap_or_default();
        let conditions = node.status.clone().unwrap_or_default().conditions.unwrap_or_default();
        let mut words = vec![annotation(STATE).unwrap_or_default(), verb(DESIRED_DRAIN), verb(APPLIED_DRAIN)];
        let flags = [
            ("told", annotation(CURRENT_CONFIG) != annotation(DESIRED_CONFIG)),
            ("cordoned", spec.unschedulable == Some(true)),
            ("away", conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status != "True")),
            ("tainted", spec.taints.iter().flatten().any(|taint| taint.key == "UpdateInProgress")),
        ];
        words.extend(flags.iter().filter(|(_, set)| *set).map(|(word, _)| (*word).to_owned()));
        words.join(" ")
    });
    let start = steps.iter().position(|step| step.contains("tainted")).unwrap_or_default();
    assert_eq!(
        steps[start..],
        [
            "Done uncordon uncordon tainted",
            "Done uncordon uncordon told tainted",
            "Working drain uncordon told tainted",
            // The taint goes at the sync after it was told; 5 s from there to the cordon.
            "Working drain uncordon told",
            "Working drain uncordon told cordoned",
            "Working drain drain told cordoned",
            "Working drain drain told cordoned away",
            "Working drain drain told cordoned",
            "Working uncordon drain told cordoned",
            "Working uncordon drain told",
            "Working uncordon uncordon told",
            "Done uncordon uncordon",
        ]
    );
    world.end().await
}

#[tokio::test]
async fn two_machine_configs_three_seconds_apart_are_one_roll_out() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-a", &["a=1"]).await?;
    seconds(3.0).await;
    world.arguments("51-b", &["b=1"]).await?;
    world.until("worker", "C C").await;
    assert_eq!(world.told().len(), 3);
    assert_eq!(world.kernel_arguments("worker").await?, ["a=1", "b=1"]);
    world.end().await
}

#[tokio::test]
async fn the_second_after_seven_seconds_may_update_one_machine_twice() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-a", &["a=1"]).await?;
    world.until("worker", "3/2 C B").await;
    seconds(2.0).await;
    world.arguments("51-b", &["b=1"]).await?;
    world.until("worker", "D D").await;
    // Telling the first machine and rendering the second change are due in the same tenth of a
    // second (observed: 10.1 and 10.2 s): which comes first is decided by the time that requests
    // take, here as on a cluster.
    let told = world.told();
    let told: Vec<_> = told.iter().map(String::as_str).collect();
    let (first, all) = told.split_at(told.len() - 3);
    assert!(matches!(first, [] | ["worker-0 C"]), "{told:?}");
    assert_eq!(all, ["worker-0 D", "worker-1 D", "worker-2 D"], "{told:?}");
    assert!(!world.lines("worker").iter().any(|line| line.contains("C C")), "never shown: {:?}", world.lines("worker"));
    world.end().await
}

#[tokio::test]
async fn the_second_during_the_first_roll_out_does_not_wait() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-a", &["a=1"]).await?;
    world.until("worker", "C B 1/1").await;
    world.arguments("51-b", &["b=1"]).await?;
    world.until("worker", "D D").await;
    let told = world.told();
    let times = |node: &str| told.iter().filter(|line| line.starts_with(node)).count();
    assert_eq!((times("worker-0"), times("worker-1"), times("worker-2")), (2, 2, 1), "{told:?}");
    let lines = world.lines("worker");
    assert!(!lines.iter().any(|line| line.contains("C C")), "overtaken configurations are never reached: {lines:?}");
    assert!(lines.iter().any(|line| line.contains("D B 0/0/")), "counts fall again: {lines:?}");
    world.end().await
}

#[tokio::test]
async fn an_edit_changes_the_hash_and_not_the_source() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C C").await;
    world.patch::<MachineConfig>("50-psi", json!({"spec": {"kernelArguments": ["psi=0"]}})).await?;
    let before = world.pool("worker").await?.spec.configuration;
    assert!(lists(&before, "50-psi"), "listed before the edit is rendered");
    assert_eq!(world.kernel_arguments("worker").await?, ["psi=1"], "and the content is still the old one");
    world.until("worker", "D C 3/3/0 True False").await;
    let after = world.pool("worker").await?.spec.configuration;
    assert_eq!(before.source, after.source);
    assert_ne!(before.name, after.name);
    world.until("worker", "D D").await;
    assert_eq!(world.kernel_arguments("worker").await?, ["psi=0"]);
    world.end().await
}

#[tokio::test]
async fn created_and_deleted_within_five_seconds_is_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    seconds(2.0).await;
    world.delete::<MachineConfig>("50-psi").await?;
    seconds(15.0).await;
    assert_eq!(world.lines("worker"), [SETTLED]);
    world.end().await
}

#[tokio::test]
async fn deleted_while_machines_work_they_finish_and_go_back() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C B 0/0/1").await;
    world.delete::<MachineConfig>("50-psi").await?;
    world.until("worker", "B B 2/2").await;
    world.until("worker", "B B 3/3/0 True False").await;
    assert_eq!(world.told(), ["worker-0 C", "worker-0 B"]);
    let finished = world.machine_states("worker-0", |node| {
        node.metadata.annotations.as_ref().and_then(|all| all.get(mco_simulator::api::CURRENT_CONFIG)).cloned()
    });
    assert_eq!(finished.len(), 3, "it had the deleted configuration for a while");
    let lines = world.lines("worker");
    assert!(!lines.iter().any(|line| line.contains(" C C ")), "status.configuration never moves: {lines:?}");
    world.end().await
}
