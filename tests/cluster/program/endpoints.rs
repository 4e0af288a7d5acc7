//! Probes and metrics of the process, as the kubelet and Prometheus ask for them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use advisor_core::api::Phase;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::authentication::v1::TokenRequest;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;
use virt_advisor::telemetry::definitions;

use crate::fixture::{Fixture, PATIENCE, Setup, descheduler};
use crate::program::replica::Replica;
use crate::program::tools::check;

/// What `curl` gets: the status and the body.
async fn get(arguments: &[&str]) -> (u16, String) {
    let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let output = tokio::task::spawn_blocking(move || {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}"]).args(arguments);
        curl.output().expect("curl is installed")
    });
    let text = String::from_utf8(output.await.unwrap().stdout).unwrap();
    let (body, code) = text.rsplit_once('\n').unwrap_or(("", &text));
    (code.parse().unwrap_or_default(), body.to_owned())
}

async fn until(url: &str, code: u16) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let (found, body) = get(&[url]).await;
        if found == code {
            return body;
        }
        assert!(Instant::now() < until, "{url}: {found} {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Alive whatever the cluster does; ready when configurations are seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_alive_without_a_cluster_and_ready_with_one() {
    let fixture = Fixture::without_operator(Setup { our_crd: false, rights: true, ..Setup::default() }).await;
    let address = "127.0.0.1";
    let mut replica = Replica::start_alone(&fixture, &["--health-probe-bind-address=:0"]).await;
    let probes = replica.port("Serving probes").await;
    let url = |path: &str| format!("http://{address}:{probes}/{path}");
    until(&url("healthz"), 200).await;
    let why = until(&url("readyz"), 503).await;
    assert!(why.contains("VirtPlatformConfig is not served or can't be listed yet"), "{why}");
    controlplane::install_crds(&fixture.admin, &[crate::fixture::our_crd()]).await.unwrap();
    until(&url("readyz"), 200).await;
    assert_eq!(get(&[&url("metrics")]).await.0, 404);

    // Who opens connections and says nothing keeps nobody else out.
    let silent: Vec<_> = (0..40).map(|_| std::net::TcpStream::connect((address, probes)).unwrap()).collect();
    until(&url("healthz"), 200).await;
    drop(silent);

    fixture.plane.stop_server().await.unwrap();
    until(&url("healthz"), 200).await;
    fixture.plane.start_server().await.unwrap();
    fixture.wait_for(Phase::Ignored).await;
    // The level of the log changes under way, and back.
    let debugs = || replica.process.log().matches(" DEBUG ").count();
    assert_eq!(debugs(), 0);
    replica.process.change_log_level().unwrap();
    replica.says("log level changed level=\"debug\"").await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    replica.says(" DEBUG ").await;
    replica.process.change_log_level().unwrap();
    replica.says("log level changed level=\"the configured one\"").await;
    let asked = Instant::now();
    replica.process.terminate().unwrap();
    assert!(replica.ended().await.success(), "{}", replica.process.log());
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
}

fn write_certificate(folder: &Path, name: &str) -> String {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    made.cert.pem()
}

/// Whoever may get /metrics gets them, over TLS, by a certificate that is renewed under way; nobody
/// else does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_for_whom_the_server_lets_and_tell_the_story() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    for (name, role) in [("reader", Some("virt-advisor-operator-metrics-reader")), ("stranger", None)] {
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}});
        controlplane::apply_yaml(&fixture.admin, &account.to_string(), "test").await.unwrap();
        let Some(role) = role else { continue };
        fixture.bind(role, json!({"kind": "ServiceAccount", "name": name, "namespace": "default"})).await;
    }
    let user = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": crate::fixture::USER});
    fixture.bind("virt-advisor-operator-metrics-auth-role", user).await;
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(fixture.admin.clone(), "default");
    let token = async |name: &str| {
        let (params, wanted) = (PostParams::default(), TokenRequest::default());
        let request = accounts.create_subresource::<TokenRequest, TokenRequest>("token", name, &params, &wanted);
        request.await.unwrap().status.unwrap().token
    };
    let folder = tempfile::tempdir().unwrap();
    let certificate = write_certificate(folder.path(), "metrics.test");
    let ca = folder.path().join("ca.crt");
    std::fs::write(&ca, certificate).unwrap();
    let cert = format!("--metrics-cert-path={}", folder.path().display());
    let replica = Replica::start(&fixture, &["--metrics-bind-address=127.0.0.1:0", &cert]).await;
    let metrics = replica.port("Serving metrics server").await;
    let resolve = format!("metrics.test:{metrics}:127.0.0.1");
    let url = format!("https://metrics.test:{metrics}/metrics");
    let ca = ca.to_str().unwrap();
    let ask = async |token: &str| {
        get(&["--resolve", &resolve, "--cacert", ca, "--header", &format!("Authorization: Bearer {token}"), &url]).await
    };

    let (reader, stranger) = (token("reader").await, token("stranger").await);
    assert_eq!(get(&["--resolve", &resolve, "--cacert", ca, &url]).await.0, 401, "nobody in particular");
    assert_eq!(ask("nonsense").await.0, 401);
    assert_eq!(ask(&stranger).await.0, 403);
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.edit(&descheduler(json!({})), json!({"spec": {"deschedulingIntervalSeconds": 3600}}), "somebody").await;
    fixture.wait_for(Phase::Drifted).await;
    fixture.rest_but_renewals().await;

    let mark = fixture.mark();
    let (code, text) = ask(&reader).await;
    assert_eq!(code, 200, "{text}");
    for line in [
        "kubevirt_advisor_leader 1",
        "kubevirt_advisor_ready 1",
        "kubevirt_advisor_config_phase{name=\"load-aware-rebalancing\",phase=\"Drifted\"} 1",
        "kubevirt_advisor_config_phase{name=\"virt-higher-density\",phase=\"Ignored\"} 1",
        "kubevirt_advisor_config_items{name=\"load-aware-rebalancing\",state=\"Pending\"} 1",
        "kubevirt_advisor_config_reading_failed{name=\"load-aware-rebalancing\"} 0",
        "kubevirt_advisor_executions_total{profile=\"load-aware-rebalancing\",outcome=\"Completed\"} 1",
        "kubevirt_advisor_execution_duration_seconds_count{profile=\"load-aware-rebalancing\"} 1",
        "kubevirt_advisor_drifts_total{profile=\"load-aware-rebalancing\"} 1",
        "kubevirt_advisor_watch_open{group=\"operator.openshift.io\",kind=\"KubeDescheduler\"} 1",
        "kubevirt_advisor_api_requests_total{verb=\"PATCH\",code=\"200\"}",
        "controller_runtime_reconcile_total{controller=\"virtplatformconfig\",result=\"success\"}",
        "workqueue_adds_total{controller=\"virtplatformconfig\",name=\"virtplatformconfig\"}",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line} is not in\n{text}");
    }
    // Every metric that is defined is served where there is something to say of it, and no other.
    let mut exported = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let found = definitions::ALL.iter().find(|metric| metric.name == name);
        let found = found.unwrap_or_else(|| panic!("{name} is not defined"));
        assert_eq!(found.kind, kind, "{name}");
        exported.insert(name);
    }
    let without: Vec<_> =
        definitions::ALL.iter().filter(|metric| !exported.contains(metric.name)).map(|metric| metric.name).collect();
    assert_eq!(without, ["controller_runtime_reconcile_errors_total", "workqueue_retries_total"], "nothing failed");
    // The answer is remembered: one review of the token and one of the right.
    for _ in 0..3 {
        assert_eq!(ask(&reader).await.0, 200);
    }
    let reviews = fixture.requests(&mark).into_iter().filter(|request| request.verb == "create").count();
    assert_eq!(reviews, 2, "{:#?}", fixture.requests(&mark));
    check("promtool", &["check", "metrics"], &text);
    assert!(!replica.process.log().contains(&reader), "a token is never logged");

    // Renewed under way: first the certificate, whose key is another for a moment, then the key.
    let old = std::fs::read(folder.path().join("tls.key")).unwrap();
    let renewed = write_certificate(folder.path(), "metrics.test");
    let key = std::fs::read(folder.path().join("tls.key")).unwrap();
    std::fs::write(folder.path().join("tls.key"), old).unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(ask(&reader).await.0, 200, "the old one is used");
    std::fs::write(folder.path().join("tls.key"), key).unwrap();
    std::fs::write(ca, renewed).unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(ask(&reader).await.0, 200, "{}", replica.process.log());
}

/// What the kubeconfig of a user has of its certificate, as files for curl.
fn client_certificate(fixture: &Fixture, user: &str, groups: &[&str], folder: &Path) -> [String; 2] {
    let kubeconfig = folder.join(format!("{user}.kubeconfig"));
    fixture.plane.write_kubeconfig(user, groups, &kubeconfig).unwrap();
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    ["client-certificate-data", "client-key-data"].map(|field| {
        let content: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        let encoded = content["users"][0]["user"][field].as_str().unwrap();
        let path = folder.join(format!("{user}.{field}"));
        std::fs::write(&path, BASE64_STANDARD.decode(encoded).unwrap()).unwrap();
        path.display().to_string()
    })
}

/// OpenShift's way: Prometheus shows a certificate of the cluster's own authority, and the API
/// server says whether its user may. And the cluster's TLS profile is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_shows_a_client_certificate_needs_no_token_and_the_clusters_tls_profile_is_kept() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    for (user, role) in [
        ("prometheus", "virt-advisor-operator-metrics-reader"),
        (crate::fixture::USER, "virt-advisor-operator-metrics-auth-role"),
    ] {
        fixture.bind(role, json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user})).await;
    }
    let profile = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "apiservers.config.openshift.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a reduced copy for a test"}},
        "spec": {
            "group": "config.openshift.io", "scope": "Cluster",
            "names": {"kind": "APIServer", "plural": "apiservers", "singular": "apiserver", "listKind": "APIServerList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let folder = tempfile::tempdir().unwrap();
    let definition = folder.path().join("apiservers.yaml");
    std::fs::write(&definition, profile.to_string()).unwrap();
    controlplane::install_crds(&fixture.admin, &[definition]).await.unwrap();
    let demand = json!({"apiVersion": "config.openshift.io/v1", "kind": "APIServer", "metadata": {"name": "cluster"},
        "spec": {"tlsSecurityProfile": {"type": "Modern", "modern": {}}}});
    controlplane::apply_yaml(&fixture.admin, &demand.to_string(), "somebody").await.unwrap();

    let replica = Replica::start_alone(&fixture, &["--metrics-bind-address=127.0.0.1:0"]).await;
    let url = format!("https://localhost:{}/metrics", replica.port("Serving metrics server").await);
    fixture.wait_for(Phase::Ignored).await;
    fixture.rest_but_renewals().await;
    let [certificate, key] = client_certificate(&fixture, "prometheus", &[], folder.path());
    let mark = fixture.mark();
    for _ in 0..3 {
        let (code, text) = get(&["--insecure", "--cert", &certificate, "--key", &key, &url]).await;
        assert_eq!(code, 200, "{text} {}", replica.process.log());
    }
    let asked = fixture.requests(&mark);
    let reviews: Vec<_> = asked.iter().filter(|request| request.verb == "create").map(|one| &one.resource).collect();
    assert_eq!(reviews, ["subjectaccessreviews"], "no token, and one answer for all");
    let demands = |resource: &str| asked.iter().filter(|request| request.resource == resource).count();
    assert_eq!((demands("configmaps"), demands("apiservers")), (1, 1), "read once, when somebody connects");

    // Kubernetes itself lets the group system:monitoring read /metrics.
    for (user, groups, code) in [("stranger", &[][..], 403), ("member", &["system:monitoring"][..], 200)] {
        let [certificate, key] = client_certificate(&fixture, user, groups, folder.path());
        assert_eq!(get(&["--insecure", "--cert", &certificate, "--key", &key, &url]).await.0, code, "{user}");
    }
    // Of another authority: as good as none, and worse: the connection ends.
    write_certificate(folder.path(), "prometheus");
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let forged = get(&["--insecure", "--cert", certificate, "--key", key, &url]).await;
    assert!(matches!(forged.0, 0 | 401), "{forged:?}");
    assert_eq!(get(&["--insecure", &url]).await.0, 401, "nobody in particular");
    assert_eq!(get(&["--insecure", "--tls-max", "1.2", &url]).await.0, 0, "Modern is TLS 1.3");
    assert_eq!(get(&["--insecure", "--tlsv1.3", &url]).await.0, 401);
}

/// Without protection, where an administrator wants it so; and with a certificate of its own
/// making.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_without_protection_and_with_an_own_certificate() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    let first = Replica::start_alone(&fixture, &["--metrics-bind-address=:0", "--metrics-secure=false"]).await;
    let open = first.port("Serving metrics server").await;
    let text = until(&format!("http://127.0.0.1:{open}/metrics"), 200).await;
    assert!(text.contains("kubevirt_advisor_build_info{version=\"v"), "{text}");
    drop(first);
    let second = Replica::start_alone(&fixture, &["--metrics-bind-address=:0"]).await;
    let own = second.port("Serving metrics server").await;
    let url = format!("https://localhost:{own}/metrics");
    assert_eq!(get(&["--insecure", &url]).await.0, 401);
    assert_eq!(get(&[&url]).await.0, 0, "nobody vouches for it");
}

/// Opens connections to `port` from several addresses, fifty of them each time, and says nothing.
async fn silent_crowd(port: u16) -> Vec<TcpStream> {
    let mut crowd = Vec::new();
    for last in (0..50).map(|number| 2 + number % 10) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, last], 0).into()).unwrap();
        crowd.push(socket.connect(([127, 0, 0, 1], port).into()).await.unwrap());
    }
    crowd
}

/// Fault T18: 20 silent connections a second kept Prometheus out, and 300 the kubelet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t18_crowds_of_silent_connections_keep_neither_the_kubelet_nor_prometheus_out() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    let flags = ["--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"];
    let replica = Replica::start_alone(&fixture, &flags).await;
    let (probes, metrics) = (replica.port("Serving probes").await, replica.port("Serving metrics server").await);
    until(&format!("http://127.0.0.1:{probes}/readyz"), 200).await;
    let mut crowds = Vec::new();
    for round in 0..10 {
        for port in [probes, metrics] {
            crowds.push(silent_crowd(port).await);
        }
        for path in ["healthz", "readyz"] {
            let (code, body) = get(&[&format!("http://127.0.0.1:{probes}/{path}")]).await;
            assert_eq!(code, 200, "{path}, round {round}: {body}");
        }
        let (code, body) = get(&["--insecure", &format!("https://127.0.0.1:{metrics}/metrics")]).await;
        assert_eq!(code, 401, "nobody in particular, and heard: round {round}: {body}");
    }
}
