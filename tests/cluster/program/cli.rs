//! The program as an administrator starts it: what it says when it can't work.

use std::process::{Command, Output};

use advisor_core::api::Phase;
use serde_json::json;

use crate::fixture::{Fixture, PROFILE, Setup, descheduler, our_crd, root};

pub fn run(arguments: &[&str], kubeconfig: &str) -> Output {
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
    for (command, path) in [
        (&["crd"][..], our_crd()),
        (&["rbac"], root().join("config/rbac/role.yaml")),
        (&["rbac", "--namespaces"], root().join("config/rbac-namespaces/role.yaml")),
        (&["metrics"], root().join("docs/METRICS.md")),
    ] {
        let output = run(command, "");
        assert!(output.status.success(), "{output:?}");
        let file = std::fs::read_to_string(&path).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), file, "{}: run `make generate`", path.display());
    }
}

/// Whatever is wrong with the start is told at once: flags, addresses, certificates, the cluster.
#[test]
fn everything_that_keeps_it_from_starting_is_told_at_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let probes = format!("--health-probe-bind-address={address}");
    let wrong = [
        "run",
        &probes,
        "--metrics-bind-address=nowhere",
        "--metrics-cert-path=/no/such/folder",
        "--leader-elect",
        "--leader-election-lease-duration=100s",
        "--enable-http2",
        "--zap-log-level=loud",
    ];
    let text = complaint(&run(&wrong, "/no/such/file"));
    for problem in [
        &format!("--health-probe-bind-address={address} can't be used: Address already in use"),
        "--metrics-bind-address=nowhere can't be used",
        "/no/such/folder/tls.crt",
        "--leader-election-lease-duration must be longer than --leader-election-renew-deadline",
        "--enable-http2 is not supported",
        "not \"loud\"",
        "no cluster is configured",
    ] {
        assert!(text.contains(problem), "{problem} is not in {text}");
    }
    let text = complaint(&run(&["run", "--leader-election-lease-duration=soon"], ""));
    assert!(text.contains("--leader-election-lease-duration") && text.contains("137s"), "{text}");
}

#[test]
fn traces_that_can_not_be_sent_are_said_with_the_remedy() {
    for (name, value, says) in [
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "collector:4318",
            "Use an endpoint such as https://HOST:4318 or http://HOST:4318",
        ),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "unix:///run/collector", "it is not an HTTP URL"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "set it to http/protobuf, and the endpoint to the port for it, 4318"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_virt-advisor"))
            .args(["run", "--kubeconfig", "/no/such/file"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
            .env(name, value)
            .output()
            .unwrap();
        let text = complaint(&output);
        assert!(text.contains(says) && text.contains("/no/such/file"), "{text}");
    }
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

pub fn tempfile_folder() -> std::path::PathBuf {
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
        "--leader-election-namespace",
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

/// `virt-advisor diff`: the plan that the status shows, uncut, with the exit codes of `kubectl
/// diff`. What is kept to a namespace stays in it, and what is installed brings no namespace along.
#[test]
fn what_kustomize_makes_of_the_manifests_is_in_its_place() {
    let output = Command::new("kubectl").args(["kustomize"]).arg(root().join("config/default")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let limits = serde_saphyr::options! { budget: None };
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple_with_options(&text, limits).unwrap();
    let places: Vec<_> = objects
        .iter()
        .filter_map(|object| {
            Some(format!("{} {}", object["kind"].as_str()?, object["metadata"]["namespace"].as_str()?))
        })
        .collect();
    for place in
        ["ServiceAccount virt-advisor-operator", "Role virt-advisor-operator", "Deployment virt-advisor-operator"]
    {
        assert!(places.contains(&place.to_owned()), "{place} is not among {places:?}");
    }
}

/// From files alone, with the exit codes of `kubectl diff`, and without a word of what only a
/// server knows.
#[test]
fn render_plans_from_files_alone() {
    let folder = tempfile_folder().join("objects");
    std::fs::create_dir_all(&folder).unwrap();
    let crds = root().join("crds/third-party");
    let sample = root().join("samples/virt-higher-density-options.yaml");
    let render = |arguments: &[&str]| {
        let output = run(&[&["render"], arguments].concat(), "");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let density =
        ["--profile", "virt-higher-density", "--crds", crds.to_str().unwrap(), "--objects", folder.to_str().unwrap()];
    let (code, text, problem) = render(&density);
    assert_eq!((code, text.as_str()), (Some(2), ""), "{problem}");
    assert!(problem.contains("HyperConverged kubevirt-hyperconverged is not among the objects: install"), "{problem}");

    let mut hco = crate::fixture::hyper_converged(
        "v1beta1",
        json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 120}}),
    );
    let write = |object: &serde_json::Value| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [object]});
        std::fs::write(folder.join("hco.yaml"), serde_saphyr::to_string(&list).unwrap()).unwrap();
    };
    write(&hco);
    let (code, text, _) = render(&[&density[..], &["--options", sample.to_str().unwrap()]].concat());
    assert_eq!(code, Some(1), "{text}");
    for line in [
        "1 to create, 1 to change; reboots can't be predicted",
        "-    memoryOvercommitPercentage: 120",
        "+    memoryOvercommitPercentage: 200",
        "impact High if a MachineConfigPool selects it",
        "This plan can't be approved.",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    hco["spec"] = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}, "ksmConfiguration": {"nodeLabelSelector": {}}});
    write(&hco);
    let options = folder.join("../options.yaml");
    std::fs::write(&options, "enableSwap: false\n").unwrap();
    let (code, text, _) = render(&[&density[..], &["--options", options.to_str().unwrap()]].concat());
    assert_eq!(code, Some(0), "{text}");

    // What an earlier plan has applied is not wanted any more: that is a difference.
    let machine = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "90-worker-kubelet-swap"}});
    std::fs::write(folder.join("machine.json"), machine.to_string()).unwrap();
    let (code, text, _) = render(&[&density[..], &["--options", options.to_str().unwrap()]].concat());
    assert!(
        code == Some(1) && text.contains("MachineConfig 90-worker-kubelet-swap is not part of this plan"),
        "{code:?} {text}"
    );

    // Options that an API server would refuse or drop are not taken for others.
    let foreign = root().join("samples/load-aware-rebalancing-options.yaml");
    let wrong = folder.join("../wrong.yaml");
    for (content, says) in [
        ("enableSwpa: false\n", "spec.options.virtHigherDensity.enableSwpa: there is no such option"),
        ("memoryToRequestRatio: 5000\n", "spec.options.virtHigherDensity.memoryToRequestRatio: 5000 is out of range"),
        ("ksmConfiguration: {nodeLabelSelector: {matchExpressions: [{key: a, operator: Near}]}}\n", "Near"),
        ("virtHigherDensity: {}\n", "there is no such option"),
        ("a: 1\n---\nb: 2\n", "one document is expected"),
    ] {
        std::fs::write(&wrong, content).unwrap();
        let (code, _, problem) = render(&[&density[..], &["--options", wrong.to_str().unwrap()]].concat());
        assert!(code == Some(2) && problem.contains(says), "{content}: {problem}");
    }
    let (code, _, problem) = render(&[&density[..], &["--options", foreign.to_str().unwrap()]].concat());
    assert!(code == Some(2) && problem.contains("not a configuration of profile virt-higher-density"), "{problem}");
    let (code, _, problem) = render(&["--profile", "load-aware-rebalancing"]);
    assert!(code == Some(2) && problem.contains("pass the CRDs of a release with --crds"), "{problem}");
    // Without folders nothing is known to be missing.
    let (code, text, problem) = render(&["--profile", "example-profile"]);
    assert!(code == Some(1) && text.contains("+  example-key: example-value"), "{problem}");

    std::fs::write(&options, "enableSwap: [\n").unwrap();
    for (arguments, says) in [
        (vec!["--options", options.to_str().unwrap()], "options.yaml can't be read"),
        (vec!["--options", "no-such-file"], "no-such-file can't be read"),
    ] {
        let (code, _, problem) = render(&[&density[..], &arguments].concat());
        assert_eq!(code, Some(2));
        assert!(problem.contains(says), "{problem}");
    }
    let (code, _, problem) = render(&["--profile", "fast"]);
    assert!(code == Some(2) && problem.contains("there is no profile fast"), "{problem}");
}

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
    let writes: Vec<_> = fixture
        .plane
        .audit()
        .since(&mark)
        .into_iter()
        .filter(|request| request.is_write() && request.user != "system:apiserver")
        .collect();
    assert!(writes.iter().all(|request| request.user != "reader" || request.dry_run), "{writes:#?}");

    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    let (code, text, _) = diff(PROFILE);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("# 2 unchanged; no machine reboots.\n") && !text.contains("\n@@"), "{text}");

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

/// What a bug report needs, and no secret; what can't be read is said and is no error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn must_gather_collects_what_a_report_needs_and_no_secret() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    // Somebody has put a password where everybody looks.
    let machine = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "99-worker-psi-karg"}});
    let file = json!({"path": "/etc/password", "mode": 0o600, "contents": {"source": "data:,hunter2-in-a-file"}});
    let copy = "{\"password\": \"hunter2-in-a-copy\"}";
    let config = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": copy}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [file]}}}});
    fixture.edit(&machine, config, "somebody").await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "default", "labels": {
        "app.kubernetes.io/name": "virt-advisor-operator", "control-plane": "controller-manager"}},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i", "env": [{"name": "HEADERS", "value": "hunter2-in-a-variable"}]}]}});
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}});
    for object in [account, pod] {
        controlplane::apply_yaml(&fixture.admin, &object.to_string(), "test").await.unwrap();
    }
    let gone = descheduler(json!({}));
    fixture.api(&gone).delete("cluster", &Default::default()).await.unwrap();
    fixture.wait_for(Phase::Drifted).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fixture.plane.write_kubeconfig("reader", &["system:masters"], &kubeconfig).unwrap();
    let dest = folder.path().join("bundle");
    let gather = || run(&["must-gather", "--dest-dir", dest.to_str().unwrap()], kubeconfig.to_str().unwrap());
    let mark = fixture.mark();
    let output = gather();
    assert!(output.status.success(), "{output:?}");
    for name in [
        "versions.yaml",
        "crd.yaml",
        "configurations/load-aware-rebalancing.yaml",
        "configurations/virt-higher-density.yaml",
        "targets/MachineConfig/cluster/99-worker-psi-karg.yaml",
        "machineconfigpools.yaml",
        "operator/pods/default/x.yaml",
        "problems.txt",
    ] {
        assert!(dest.join(name).is_file(), "{name} is missing");
    }
    assert!(std::fs::read_dir(dest.join("events/default")).unwrap().count() >= 3);
    let problems = std::fs::read_to_string(dest.join("problems.txt")).unwrap();
    let gone = "KubeDescheduler openshift-kube-descheduler-operator/cluster: does not exist\n";
    assert_eq!(problems, gone);
    let all = Command::new("grep").args(["-r", "hunter2"]).arg(&dest).output().unwrap();
    assert!(all.stdout.is_empty(), "{}", String::from_utf8_lossy(&all.stdout));
    let wrote =
        fixture.plane.audit().since(&mark).into_iter().filter(|request| request.user == "reader" && request.is_write());
    assert_eq!(wrote.count(), 0);
    assert!(complaint(&gather()).contains("is not empty"));
}
