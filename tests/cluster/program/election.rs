//! Two and three replicas, of which one works, whatever happens to it.

use std::time::Duration;

use advisor_core::api::{Phase, VirtPlatformConfigStatus};
use controlplane::{Mark, Request};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{Fixture, OWN_NAMESPACE, PROFILE, Setup, USER, descheduler};
use crate::program::replica::{LEASE, Replica, holder, leader_but};

/// Printed also where the test passes, whose output is not shown otherwise.
fn tell(text: &str) {
    use std::io::Write as _;
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// K6 (a), (e): one of two works; one that is stopped hands over at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k6_one_of_two_replicas_works_and_hands_over_when_it_is_stopped() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    let mut first = Replica::start(&fixture, &[]).await;
    assert_eq!(leader_but(&fixture, &[]).await, first.name);
    let second = Replica::start(&fixture, &[]).await;
    second.says("waiting for the lease").await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.target_writes(&mark), ["patch kubedeschedulers cluster"]);

    // At rest there are watches, and the renewals of one. The version of a settled configuration
    // stays.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mark, before) = (fixture.mark(), fixture.config().await.metadata.resource_version);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = fixture.requests(&mark);
    let others: Vec<_> = asked.iter().filter(|request| !request.is_watch() && request.verb != "update").collect();
    assert!(others.is_empty(), "{others:#?}");
    let renewals = asked.iter().filter(|request| request.verb == "update").count();
    assert!((2..=6).contains(&renewals) && asked.iter().all(|request| request.resource == "leases"), "{asked:#?}");

    let asked = Instant::now();
    first.process.terminate().unwrap();
    assert_eq!(leader_but(&fixture, &[&first.name]).await, second.name);
    tell(&format!("takeover after SIGTERM: {} ms", asked.elapsed().as_millis()));
    assert!(first.ended().await.success(), "{}", first.process.log());
    first.says("the lease is released").await;
    assert!(asked.elapsed() < LEASE, "nobody has to wait for a lease that was given back");
    fixture.edit(&descheduler(json!({})), json!({"spec": {"deschedulingIntervalSeconds": 3600}}), "somebody").await;
    fixture.wait_for(Phase::Drifted).await;
    assert_eq!(
        fixture.plane.audit().since(&mark).iter().filter(|request| request.user == USER && request.forbidden).count(),
        0,
        "the generated roles are enough"
    );
    drop((before, second));
    fixture.finish().await;
}

/// K6 (c): without the right to use the lease nothing is planned, and it is said why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k6_without_a_right_to_the_lease_nothing_is_done_and_it_says_why() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    let bindings: Api<RoleBinding> = Api::namespaced(fixture.admin.clone(), OWN_NAMESPACE);
    let binding = bindings.get("virt-advisor-leader").await.unwrap();
    bindings.delete("virt-advisor-leader", &Default::default()).await.unwrap();
    let mark = fixture.mark();
    let replica = Replica::start(&fixture, &[]).await;
    replica.says("nothing is planned or written: this user may not use the lease 8f83cc6e.kubevirt.io in namespace virt-advisor-operator; it needs get, create, update and watch on leases").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let written: Vec<_> = fixture.requests(&mark).into_iter().filter(|request| request.is_write()).collect();
    assert!(written.is_empty(), "{written:#?}");
    assert_eq!(replica.process.log().matches("may not use the lease").count(), 1, "said once");
    let metadata = kube::core::ObjectMeta { name: binding.metadata.name.clone(), ..Default::default() };
    bindings.create(&Default::default(), &RoleBinding { metadata, ..binding }).await.unwrap();
    fixture.wait_for(Phase::Ignored).await;
    drop(replica);
    fixture.finish_after_outage().await;
}

/// A lease that somebody else edits, takes or deletes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_loses_the_lease_ends() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    let leases: Api<Lease> = Api::namespaced(fixture.admin.clone(), OWN_NAMESPACE);
    let mut replica = Replica::start(&fixture, &[]).await;
    leader_but(&fixture, &[]).await;
    let edit = async |patch| {
        leases.patch(virt_advisor::LEASE_NAME, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    };
    edit(json!({"metadata": {"labels": {"a": "b"}}})).await;
    tokio::time::sleep(LEASE).await;
    assert!(replica.process.exited().is_none(), "an edit of something else costs nothing: {}", replica.process.log());
    edit(json!({"spec": {"holderIdentity": "somebody"}})).await;
    assert_eq!(replica.ended().await.code(), Some(1));
    replica.says("somebody holds the lease now; exiting").await;

    // Somebody does not renew it: the next one waits for its end, whatever the clock of its holder
    // says.
    let began = Instant::now();
    edit(json!({"spec": {"renewTime": "2099-01-01T00:00:00.000000Z", "leaseDurationSeconds": 2}})).await;
    let mut replica = Replica::start(&fixture, &[]).await;
    leader_but(&fixture, &["somebody"]).await;
    assert!(holder(&fixture).await.unwrap().starts_with(&format!("{}_", replica.name)));
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    leases.delete(virt_advisor::LEASE_NAME, &Default::default()).await.unwrap();
    assert_eq!(replica.ended().await.code(), Some(1));
    fixture.finish().await;
}

/// What happens to the leader.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// SIGKILL.
    Killed,
    /// SIGSTOP, and SIGCONT when another one leads.
    Suspended,
    /// Nothing gets through to the API server.
    Cut,
}

/// When it happens: so many milliseconds after the action was set, or after somebody's edit at the
/// end.
const POINTS: [(&str, u64); 10] = [
    ("DryRun", 0),
    ("DryRun", 15),
    ("Apply", 0),
    ("Apply", 5),
    ("Apply", 10),
    ("Apply", 20),
    ("Apply", 40),
    ("Apply", 100),
    ("Apply", 500),
    ("edit", 0),
];

/// DryRun, Apply, Completed, Drifted with two replicas, whose leader meets its fate at `point`.
/// Returns how long it took until the other one led.
async fn story(fate: Fate, point: (&str, u64)) -> Duration {
    let what = format!("{fate:?} {} ms after {}", point.1, point.0);
    let fixture = Fixture::without_operator(Setup { workers: 1, ..Setup::default() }).await;
    let mark = fixture.mark();
    let mut leader = Replica::start(&fixture, &[]).await;
    leader_but(&fixture, &[]).await;
    let mut other = Replica::start(&fixture, &[]).await;
    other.says("waiting for the lease").await;
    fixture.wait_for(Phase::Ignored).await;
    let mut takeover = None;
    let mut third = None;
    for action in ["DryRun", "Apply", "edit"] {
        match action {
            "edit" => {
                let edit = json!({"spec": {"deschedulingIntervalSeconds": 3600}});
                fixture.edit(&descheduler(json!({})), edit, "somebody").await
            }
            _ => fixture.patch(json!({"action": action})).await,
        }
        if point.0 == action {
            tokio::time::sleep(Duration::from_millis(point.1)).await;
            let began = Instant::now();
            match fate {
                Fate::Killed => {
                    let dead = std::mem::replace(&mut leader, Replica::start(&fixture, &[]).await);
                    let name = dead.name.clone();
                    drop(dead);
                    leader_but(&fixture, &[&name]).await;
                }
                Fate::Suspended => {
                    leader.process.pause().unwrap();
                    leader_but(&fixture, &[&leader.name]).await;
                }
                Fate::Cut => {
                    leader.cut();
                    leader_but(&fixture, &[&leader.name]).await;
                }
            }
            takeover = Some(began.elapsed());
            if fate != Fate::Killed {
                // It finds itself late, and ends without having written anything.
                if fate == Fate::Suspended {
                    leader.process.resume().unwrap();
                }
                assert_eq!(leader.ended().await.code(), Some(1), "{what}: {}", leader.process.log());
                third = Some(Replica::start(&fixture, &[]).await);
            }
        }
        match action {
            "DryRun" => drop(fixture.wait_for(Phase::ReviewRequired).await),
            "Apply" => {
                let done: VirtPlatformConfigStatus = fixture.wait_for(Phase::Completed).await;
                assert_eq!(done.history.len(), 1, "{what}: {done:#?}");
            }
            _ => drop(fixture.wait_for(Phase::Drifted).await),
        }
    }
    let machine = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "99-worker-psi-karg"}});
    // A change makes a new generation: ours made the first one of each, somebody's edit the second
    // of the descheduler.
    for (object, changes) in [(machine, 1), (descheduler(json!({})), 2)] {
        let live = fixture.get(&object).await.unwrap();
        assert_eq!(live["metadata"]["generation"], changes, "{what}: each is written once: {live:#}");
    }
    let writers = writers(&fixture, &mark);
    assert_eq!(writers.len(), 2, "{what}: the first, and then the other one: {writers:?}");
    let ended = other.process.exited();
    assert!(ended.is_none(), "{what}: who took over works on: {}", other.process.log());
    drop((leader, other, third));
    fixture.finish().await;
    takeover.unwrap()
}

/// The replicas that wrote something, leases aside, in the order in which they began, and again
/// each time one follows another.
fn writers(fixture: &Fixture, mark: &Mark) -> Vec<String> {
    let mut writes: Vec<_> = fixture.plane.audit().since(mark);
    writes.retain(|request| request.user == USER && request.is_write() && request.resource != "leases");
    writes.sort_by_key(|request| request.at);
    let replica = |request: Request| request.groups.into_iter().find(|group| group.starts_with("replica-")).unwrap();
    let mut writers: Vec<_> = writes.into_iter().map(replica).collect();
    writers.dedup();
    writers
}

async fn stories(fate: Fate) {
    let all = std::env::var("ADVISOR_TEST_FAULTS").is_ok_and(|which| which == "all");
    let mut times = Vec::new();
    for point in POINTS.into_iter().step_by(if all { 1 } else { 3 }) {
        times.push(story(fate, point).await.as_millis());
    }
    tell(&format!(
        "{PROFILE}, leader {fate:?}: {} stories, the same end; takeover after {times:?} ms, lease {LEASE:?}",
        times.len()
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_is_followed_and_nothing_is_written_twice() {
    stories(Fate::Killed).await;
}

/// K6 (b): what it was about to write when it was suspended is not written when it wakes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k6_a_leader_that_is_suspended_stops_before_another_one_starts() {
    stories(Fate::Suspended).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k6_a_leader_that_is_cut_off_stops_before_another_one_starts() {
    stories(Fate::Cut).await;
}
