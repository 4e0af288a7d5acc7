//! The program as an administrator starts it: what it says when it can't work.

use std::process::{Command, Output};

use serde_json::json;
use virt_advisor::api::Phase;

use crate::fixture::{Fixture, PROFILE, Setup, descheduler, our_crd, root};

fn run(arguments: &[&str], kubeconfig: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_virt-advisor"))
        .args(arguments)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("the program starts")
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn generated_files_are_current() {
    for (command, path) in [("crd", our_crd()), ("rbac", root().join("config/rbac/role.yaml"))] {
        let output = run(&[command], "");
        assert!(output.status.success(), "{output:?}");
        let file = std::fs::read_to_string(&path).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), file, "{}: run `make generate`", path.display());
    }
}

#[test]
fn a_flag_whose_feature_is_missing_ends_the_start_with_a_sentence() {
    let output = run(&["run", "--leader-elect", "--metrics-bind-address=:8443"], "/nowhere");
    let text = complaint(&output);
    assert!(text.contains("--leader-elect is not supported by this version"), "{text}");
    assert!(text.contains("--metrics-bind-address is not supported"), "{text}");
}

#[test]
fn a_kubeconfig_that_can_not_be_used_is_named() {
    let folder = tempfile_folder();
    let broken = folder.join("broken");
    std::fs::write(
        &broken,
        "apiVersion: v1\nkind: Config\ncurrent-context: gone\ncontexts: []\nclusters: []\nusers: []\n",
    )
    .unwrap();
    let text = complaint(&run(&["run", "--kubeconfig", broken.to_str().unwrap()], ""));
    assert!(text.contains("broken") && text.contains("gone"), "{text}");
    let text = complaint(&run(&["run", "--kubeconfig", "/no/such/file"], ""));
    assert!(text.contains("/no/such/file"), "{text}");
    let text = complaint(&run(&["run"], "/no/such/file"));
    assert!(text.contains("no cluster is configured") && text.contains("--kubeconfig"), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

fn tempfile_folder() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("virt-advisor-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn help_names_every_flag_of_the_go_program() {
    let output = run(&["run", "--help"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    for flag in [
        "--kubeconfig",
        "--leader-elect",
        "--health-probe-bind-address",
        "--metrics-bind-address",
        "--metrics-secure",
        "--metrics-cert-path",
        "--metrics-cert-name",
        "--metrics-cert-key",
        "--webhook-cert-path",
        "--webhook-cert-name",
        "--webhook-cert-key",
        "--enable-http2",
        "--zap-devel",
        "--zap-encoder",
        "--zap-log-level",
        "--zap-stacktrace-level",
        "--zap-time-encoding",
    ] {
        assert!(text.contains(flag), "{flag} is missing in\n{text}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_and_one_without_the_crd_are_told_apart() {
    // Port 9 of the loopback interface: nobody answers there.
    let folder = tempfile_folder();
    let path = folder.join("unreachable");
    std::fs::write(
        &path,
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
         clusters: [{name: c, cluster: {server: \"https://127.0.0.1:9\"}}]\nusers: [{name: u, user: {}}]\n",
    )
    .unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_virt-advisor"))
        .args(["run", "--kubeconfig", path.to_str().unwrap(), "--zap-encoder=console"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "SIGTERM ends it in order: {output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches("can't be reached").count(), 1, "said once while it tries again: {text}");
}

/// `virt-advisor diff`: the plan that the status shows, uncut, with the exit codes of `kubectl diff`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn diff_prints_the_plan_of_the_live_cluster_and_exits_as_kubectl_diff() {
    let live = descheduler(json!({"profiles": ["AffinityAndTaints"], "deschedulingIntervalSeconds": 3600}));
    let fixture = Fixture::start(Setup { descheduler: Some(live), ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    let kubeconfig = tempfile_folder().join("diff.kubeconfig");
    fixture.plane.write_kubeconfig("reader", &["system:masters"], &kubeconfig).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap().to_owned();
    let diff = |name: &str| {
        let output = run(&["diff", name], &kubeconfig);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text, _) = diff(PROFILE);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the status shows no plan"), "{text}");

    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let mark = fixture.mark();
    let (code, text, _) = diff(PROFILE);
    assert_eq!(code, Some(1), "{text}");
    let digest = plan.plan_hash.unwrap();
    assert!(text.ends_with(&format!("# plan {digest}: the status shows this plan\n")), "{text}");
    for item in &plan.items {
        assert!(text.contains(&item.diff) && text.contains(&item.message), "{}: {text}", item.name);
    }
    assert!(text.contains("# takes /spec/deschedulingIntervalSeconds over from kubectl-create"), "{text}");
    let writes: Vec<_> = fixture.plane.audit().since(&mark).into_iter().filter(|request| request.is_write()).collect();
    assert!(writes.iter().all(|request| request.user != "reader" || request.dry_run), "{writes:#?}");

    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    let (code, text, _) = diff(PROFILE);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("# 2 as wanted; no machine reboots.\n") && !text.contains("\n@@"), "{text}");

    let (code, _, problem) = diff("no-such-profile");
    assert_eq!(code, Some(2));
    assert!(
        problem.contains("there is no profile no-such-profile; this version has load-aware-rebalancing"),
        "{problem}"
    );
    let output = run(&["diff", PROFILE], "/nowhere");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    fixture.finish().await;
}

/// What can't be planned is no "no differences".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn diff_of_a_blocked_plan_or_without_prerequisites_is_an_error() {
    let fixture = Fixture::start(Setup { pools: false, hyper_converged: None, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    let kubeconfig = tempfile_folder().join("blocked.kubeconfig");
    fixture.plane.write_kubeconfig("reader", &["system:masters"], &kubeconfig).unwrap();
    let output = run(&["diff", PROFILE], kubeconfig.to_str().unwrap());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(problem.contains("is not installed") && problem.contains("does not exist"), "{problem}");
    fixture.finish().await;
}
