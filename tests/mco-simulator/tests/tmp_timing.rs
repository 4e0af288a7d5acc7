//! temporary
use futures::StreamExt;
use kube::{Api, runtime::{watcher, WatchStreamExt}};
use mco_simulator::{*, api::*};
#[tokio::test]
async fn timing() {
    let lease = controlplane::lease().await;
    let client = lease.admin();
    controlplane::install_crds(&client, &[std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crds/third-party")]).await.unwrap();
    let settings = Settings { speed: 1.0, rendered_padding: 150000 };
    seed(&client, &Cluster { workers: 3, masters: 1 }, &settings).await.unwrap();
    let simulator = Simulator::start(client.clone(), settings);
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    let start = std::time::Instant::now();
    add_kernel_arguments(&client, "50-psi", "worker", &["psi=1"]).await.unwrap();
    let mut events = Box::pin(watcher(Api::<MachineConfigPool>::all(client.clone()), watcher::Config::default()).applied_objects());
    while let Some(Ok(pool)) = events.next().await {
        if pool.metadata.name.as_deref() != Some("worker") { continue }
        let s = pool.status.unwrap_or_default();
        println!("{:5.1} {}/{} {}/{}/{} upd={} same={}", start.elapsed().as_secs_f64(), pool.metadata.generation.unwrap(), s.observed_generation.unwrap(), s.updated_machine_count, s.ready_machine_count, s.unavailable_machine_count, s.is("Updated","True"), s.configuration.name == pool.spec.configuration.name);
        if start.elapsed().as_secs() > 20 && s.is("Updated","True") { break }
    }
    simulator.stop().await;
}
