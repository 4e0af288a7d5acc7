//! Section 4 of the observations: paused, empty, custom and unrendered pools.

use super::world::{World, lists, reduced_crds, seconds};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use mco_simulator::api::{MachineConfig, MachineConfigPool};
use mco_simulator::{Cluster, base};
use serde_json::json;

const SETTLED: &str = "2/2 B B 3/3/0 True False";

#[tokio::test]
async fn a_paused_pool_renders_and_is_neither_updated_nor_updating() -> anyhow::Result<()> {
    let world = World::new().await?;
    mco_simulator::pause(&world.client, "worker").await?;
    world.until("worker", "3/3 B B 3/3/0 True False").await;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "4/4 C B 0/0/0 False False").await;
    seconds(15.0).await;
    let status = world.pool("worker").await?.status.unwrap_or_default();
    let message = status.condition("Updating").map(|condition| condition.message.clone()).unwrap_or_default();
    assert!(message.starts_with("Pool is paused; will not update to MachineConfig rendered-worker-"), "{message}");
    mco_simulator::unpause(&world.client, "worker").await?;
    world.until("worker", "C C").await;
    let lines = world.lines("worker");
    assert_eq!(
        lines[..6],
        [
            SETTLED,
            "3/2 B B 3/3/0 True False",
            "3/3 B B 3/3/0 True False",
            "4/3 C B 3/3/0 True False",
            "4/4 C B 0/0/0 False False",
            "5/4 C B 0/0/0 False False",
        ]
    );
    assert_eq!(lines[6], "5/5 C B 0/0/0 False True");
    world.end().await
}

#[tokio::test]
async fn a_pool_paused_in_the_middle_stops_after_the_machines_at_work() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C B 0/0/1 False True").await;
    mco_simulator::pause(&world.client, "worker").await?;
    world.until("worker", "C B 1/1/0 False False").await;
    seconds(15.0).await;
    assert_eq!(world.told(), ["worker-0 C"], "the one at work finished, no other was told");
    mco_simulator::unpause(&world.client, "worker").await?;
    world.until("worker", "C C 3/3/0 True False").await;
    world.end().await
}

#[tokio::test]
async fn a_pool_without_machines_is_always_updated_even_when_paused() -> anyhow::Result<()> {
    let world = World::with(&reduced_crds(), Cluster { workers: 0, masters: 1 }, 0).await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "3/3 C C").await;
    mco_simulator::pause(&world.client, "worker").await?;
    world.until("worker", "4/4").await;
    world.arguments("51-other", &["other=1"]).await?;
    world.until("worker", "5/5 D D").await;
    assert_eq!(
        world.lines("worker"),
        [
            "2/2 B B 0/0/0 True False",
            "3/2 C B 0/0/0 True False",
            "3/3 C C 0/0/0 True False",
            "4/3 C C 0/0/0 True False",
            "4/4 C C 0/0/0 True False",
            "5/4 D C 0/0/0 True False",
            "5/5 D D 0/0/0 True False",
        ]
    );
    world.end().await
}

#[tokio::test]
async fn a_custom_pool_has_the_workers_hash_and_its_own_roll_out() -> anyhow::Result<()> {
    let world = World::new().await?;
    mco_simulator::add_pool(&world.client, "infra").await?;
    world.until("infra", "B B 0/0/0 True False").await;
    // RenderDegraded and zero counts first, everything else later; the spec is written before any
    // status.
    assert_eq!(world.lines("infra"), ["1/0 - - 0/0/0 - -", "2/0 B - 0/0/0 - -", "2/2 B B 0/0/0 True False"]);
    let hash = |pool: MachineConfigPool| pool.spec.configuration.name.rsplit('-').next().map(str::to_owned);
    assert_eq!(hash(world.pool("worker").await?), hash(world.pool("infra").await?));

    mco_simulator::set_role(&world.client, "worker-2", "infra", true).await?;
    world.until("infra", "1/1/0 True False").await;
    world.until("worker", "2/2/0 True False").await;
    let lines = world.lines("infra");
    assert!(lines.contains(&"2/2 B B 0/0/0 False True".to_owned()), "one machine, not told yet: {lines:?}");
    assert!(
        !world.machine_states("worker-2", |node| node.spec.clone().and_then(|s| s.unschedulable)).contains(&Some(true)),
        "equal content: no drain, no reboot"
    );

    world.create_config("10-infra-z", "infra", json!({"kernelArguments": ["z=1"]})).await?;
    world.arguments("50-a", &["a=1"]).await?;
    // Which of the two pools is rendered first is open: each is followed from B to its own.
    for (pool, counts) in [("worker", " 2/2/0 True False"), ("infra", " 1/1/0 True False")] {
        world.until_line(pool, counts, |line| !line.contains('B') && line.ends_with(counts)).await;
    }
    assert_eq!(world.kernel_arguments("worker").await?, ["a=1"]);
    assert_eq!(world.kernel_arguments("infra").await?, ["a=1", "z=1"], "all of role worker first");
    let letter =
        |pool: &str| world.lines(pool).last().and_then(|line| line.split(' ').nth(1).map(str::to_owned)).unwrap();
    let (infra, worker) = (format!("worker-2 {}", letter("infra")), format!("worker-1 {}", letter("worker")));
    let told = world.told();
    let (first, last) = (told.iter().position(|line| *line == infra), told.iter().position(|line| *line == worker));
    assert!(first.is_some() && first < last, "side by side, each with its own maxUnavailable: {told:?}");
    world.end().await
}

#[tokio::test]
async fn a_deleted_pool_leaves_its_rendered_configurations_and_gives_its_machines_back() -> anyhow::Result<()> {
    let world = World::new().await?;
    mco_simulator::add_pool(&world.client, "infra").await?;
    world.until("infra", "B B 0/0/0 True False").await;
    world.delete::<MachineConfigPool>("infra").await?;
    seconds(12.0).await;
    let names = world.rendered_names().await?;
    assert!(names.iter().any(|name| name.starts_with("rendered-infra-")), "{names:?}");
    world.end().await
}

#[tokio::test]
async fn a_pool_that_selects_nothing_is_render_degraded_until_long_after_its_first_config() -> anyhow::Result<()> {
    let world = World::new().await?;
    let mut pool = base::custom_pool("gpu");
    let own = json!({"matchLabels": {mco_simulator::api::ROLE_LABEL: "gpu"}});
    pool.spec.machine_config_selector = serde_json::from_value(own)?;
    Api::all(world.client.clone()).create(&PostParams::default(), &pool).await?;
    world.until("gpu", "1/0 - - 0/0/0 - - RenderDegraded").await;
    // Errors in a row: the next successes inherit a long pause.
    seconds(40.0).await;
    assert_eq!(world.lines("gpu").len(), 2, "no Updated condition, no observedGeneration: {:?}", world.lines("gpu"));
    world.create_config("10-gpu", "gpu", json!({"kernelArguments": ["gpu=1"]})).await?;
    world.until_end("gpu", "2/2 C C 0/0/0 True False").await;
    assert_eq!(
        world.lines("gpu"),
        [
            "1/0 - - 0/0/0 - -",
            "1/0 - - 0/0/0 - - RenderDegraded",
            "2/0 C - 0/0/0 - - RenderDegraded",
            "2/2 C C 0/0/0 True False RenderDegraded Degraded",
            "2/2 C C 0/0/0 True False Degraded",
            "2/2 C C 0/0/0 True False",
        ]
    );
    world.end().await
}

#[tokio::test]
async fn max_unavailable_two_tells_two_machines_at_once() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.patch::<MachineConfigPool>("worker", json!({"spec": {"maxUnavailable": 2}})).await?;
    world.until("worker", "3/3 B B").await;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C B 0/0/2").await;
    assert_eq!(world.told(), ["worker-0 C", "worker-1 C"]);
    world.until("worker", "C C").await;
    assert_eq!(world.told().len(), 3);
    assert!(lists(&world.pool("worker").await?.spec.configuration, "50-psi"));
    world.delete::<MachineConfig>("50-psi").await?;
    world.until("worker", "B B 3/3/0 True False").await;
    assert!(world.rendered("worker").await?.name_any().starts_with("rendered-worker-"));
    world.end().await
}
