//! The program as a process among others like it, behind a connection that can be cut.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use controlplane::Process;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, OWN_NAMESPACE, PATIENCE, USER};

/// How long a lease lasts in these tests. The renewals that it takes have to be in time on a busy
/// machine.
pub const LEASE: Duration = Duration::from_secs(4);
const TIMING: [&str; 3] = [
    "--leader-election-lease-duration=4s",
    "--leader-election-renew-deadline=3s",
    "--leader-election-retry-period=500ms",
];

/// A running replica; dropping it kills it.
pub struct Replica {
    pub name: String,
    pub process: Process,
    cut: CancellationToken,
    proxy: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.proxy.abort();
    }
}

impl Replica {
    /// Starts one that takes part in the election, with more `flags`.
    pub async fn start(fixture: &Fixture, flags: &[&str]) -> Self {
        let election = ["--leader-elect", "--leader-election-namespace", OWN_NAMESPACE];
        Self::spawn(fixture, None, &[&election, &TIMING, flags].concat()).await
    }

    /// Starts one that takes part in the election as whoever has the token.
    pub async fn start_as(fixture: &Fixture, token: &str, flags: &[&str]) -> Self {
        Self::spawn(fixture, Some(token), &[&["--leader-elect"][..], &TIMING, flags].concat()).await
    }

    /// Starts one with these flags only.
    pub async fn start_alone(fixture: &Fixture, flags: &[&str]) -> Self {
        Self::spawn(fixture, None, flags).await
    }

    async fn spawn(fixture: &Fixture, token: Option<&str>, flags: &[&str]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("replica-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let cut = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = fixture.plane.url().trim_start_matches("https://").to_owned();
        let proxy = tokio::spawn(forward(listener, server, cut.clone()));
        let kubeconfig = fixture.plane.kubeconfig().with_file_name(format!("{name}.kubeconfig"));
        // The group tells in the audit log which replica asked.
        fixture.plane.write_kubeconfig(USER, &[&name], &kubeconfig).unwrap();
        let text = std::fs::read_to_string(&kubeconfig).unwrap();
        let mut content: Value = serde_saphyr::from_str(&text).unwrap();
        content["clusters"][0]["cluster"]["server"] = json!(format!("https://127.0.0.1:{port}"));
        if let Some(token) = token {
            content["users"][0]["user"] = json!({"token": token});
        }
        std::fs::write(&kubeconfig, content.to_string()).unwrap();
        let first = ["run", "--zap-encoder=console", "--kubeconfig", kubeconfig.to_str().unwrap(), "--pod-name", &name];
        let args: Vec<_> = first.iter().chain(flags).map(|arg| (*arg).to_owned()).collect();
        let program = Path::new(env!("CARGO_BIN_EXE_virt-advisor"));
        let process = fixture.plane.spawn(program, &args, &format!("{name}.log")).unwrap();
        Self { name, process, cut, proxy }
    }

    /// Nothing gets through any more in either direction; connections stay open, as behind a broken
    /// switch.
    pub fn cut(&self) {
        self.cut.cancel();
    }

    /// Waits until it has ended, and returns how.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.exited() {
                return status;
            }
            assert!(Instant::now() < until, "{} does not end:\n{}", self.name, self.process.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The port that it says it serves `what` on.
    pub async fn port(&self, what: &str) -> u16 {
        self.says(what).await;
        let log = self.process.log();
        let line = log.lines().find(|line| line.contains(what)).unwrap();
        let address = line.split("address=\"").nth(1).unwrap().split('"').next().unwrap();
        address.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Waits until its log has `text`.
    pub async fn says(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.process.log().contains(text) {
            assert!(Instant::now() < until, "{} does not say {text:?}:\n{}", self.name, self.process.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn forward(listener: TcpListener, server: String, cut: CancellationToken) {
    loop {
        let Ok((mut client, _)) = listener.accept().await else { return };
        let (server, cut) = (server.clone(), cut.clone());
        tokio::spawn(async move {
            let connected = async {
                let Ok(mut server) = TcpStream::connect(&server).await else { return };
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => {}
                    () = cut.cancelled() => std::future::pending().await,
                }
            };
            connected.await;
        });
    }
}

/// Who holds the lease, wherever it is.
pub async fn holder(fixture: &Fixture) -> Option<String> {
    let leases: Api<Lease> = Api::all(fixture.admin.clone());
    let params = ListParams::default().fields(&format!("metadata.name={}", virt_advisor::LEASE_NAME));
    let lease = leases.list(&params).await.ok()?.items.pop()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// Waits until somebody leads who is none of `others`.
pub async fn leader_but(fixture: &Fixture, others: &[&str]) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = holder(fixture).await;
        let found = found.map(|holder| holder.split('_').next().unwrap_or_default().to_owned());
        if let Some(found) = found.filter(|holder| !others.contains(&holder.as_str())) {
            return found;
        }
        assert!(Instant::now() < until, "nobody leads");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
