//! One etcd and one kube-apiserver: starting, stopping and pausing them, and making clients.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Config};

use crate::Error;
use crate::audit::Audit;
use crate::binaries::Binaries;
use crate::certificates::{Authority, Identity};
use crate::error::told;
use crate::guard::{Guard, Process};
use crate::ports::Port;
use crate::settings;

/// How long a program may take until it serves; it needs about three seconds on an idle machine.
const START: Duration = Duration::from_secs(90);
/// How often that is checked.
const POLL: Duration = Duration::from_millis(25);
/// How many times a start is tried, each time with other ports.
const ATTEMPTS: usize = 3;

/// One etcd and one kube-apiserver on loopback ports, with their own certificate authority and
/// folder.
///
/// Dropping it ends both and removes the folder, and so does the end of the process, however it
/// comes. A plane is not bound to a tokio runtime; its clients are bound to the one they were made
/// in.
pub struct ControlPlane {
    // In the order in which they are dropped: the guard removes the folder once the programs are
    // gone.
    server: Mutex<Server>,
    etcd: Mutex<Process>,
    guard: Arc<Guard>,
    authority: Authority,
    binaries: Binaries,
    arguments: Vec<String>,
    port: Port,
    _etcd_port: Port,
}

/// The state of the API server.
enum Server {
    Stopped,
    Running(Process),
    Paused(Process),
}

impl Server {
    fn process(&mut self) -> Option<&mut Process> {
        match self {
            Server::Stopped => None,
            Server::Running(process) | Server::Paused(process) => Some(process),
        }
    }
}

impl ControlPlane {
    /// Starts a control plane and waits until it serves; builds the programs first if they are
    /// missing.
    ///
    /// # Errors
    /// If the programs cannot be found, built or run.
    pub async fn start() -> Result<Self, Error> {
        let found = tokio::task::spawn_blocking(Binaries::find).await;
        let binaries = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        Self::start_with(binaries).await
    }

    pub(crate) async fn start_with(binaries: Binaries) -> Result<Self, Error> {
        let mut attempt = 1;
        loop {
            match Self::start_once(binaries.clone()).await {
                Err(error) if port_is_busy(&error) && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    async fn start_once(binaries: Binaries) -> Result<Self, Error> {
        let guard = Guard::start()?;
        let authority = Authority::new()?;
        let (etcd_port, port) = (Port::reserve()?, Port::reserve()?);

        let etcd_address = SocketAddr::from((Ipv4Addr::LOCALHOST, etcd_port.number()));
        let etcd = Process::start(&guard, &binaries.etcd, &settings::etcd_arguments(etcd_port.number()), "etcd.log")?;
        // etcd starts in the meantime.
        settings::write_server_files(guard.folder(), &authority)?;
        let plane = Self {
            server: Mutex::new(Server::Stopped),
            etcd: Mutex::new(etcd),
            arguments: settings::server_arguments(port.number(), etcd_port.number()),
            guard,
            authority,
            binaries,
            port,
            _etcd_port: etcd_port,
        };
        plane.write_kubeconfig("admin", &["system:masters"], &plane.kubeconfig())?;
        plane.etcd_answers(etcd_address).await?;
        plane.launch()?;
        plane.ready().await?;
        Ok(plane)
    }

    /// The address of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port.number())
    }

    /// The audit log of the API server.
    #[must_use]
    pub fn audit(&self) -> Audit {
        Audit::new(self.guard.folder().join("audit.log"))
    }

    /// A new client that may do everything.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn admin(&self) -> Client {
        self.client("admin", &["system:masters"]).expect("a plane that has started has signed this certificate before")
    }

    /// A new client of a user, who may do what RBAC allows.
    ///
    /// # Errors
    /// If the names do not fit into a certificate; it holds at most two groups.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Client, Error> {
        let config = self.client_config(user, groups)?;
        Client::try_from(config).map_err(Error::api(format!("make a client for {user}")))
    }

    /// The configuration of such a client, to set timeouts or turn off retries.
    ///
    /// # Errors
    /// Like [`ControlPlane::client`].
    pub fn client_config(&self, user: &str, groups: &[&str]) -> Result<Config, Error> {
        // Another crate may have enabled the other provider of rustls, and then we have to choose.
        // An error means that the choice has been made already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Identity { certificate, key } = self.authority.user(user, groups)?;
        let mut config = Config::new(self.url().parse().expect("a loopback URL is a URL"));
        config.root_cert = Some(vec![self.authority.der()]);
        config.auth_info.client_certificate_data = Some(settings::base64(&certificate));
        config.auth_info.client_key_data = Some(settings::base64(&key).into());
        Ok(config)
    }

    /// Writes a self-contained kubeconfig for a user; only the owner of the file can read it.
    ///
    /// # Errors
    /// As for [`ControlPlane::client`], and if the file cannot be written.
    pub fn write_kubeconfig(&self, user: &str, groups: &[&str], path: &Path) -> Result<(), Error> {
        let identity = self.authority.user(user, groups)?;
        let text = settings::kubeconfig(&self.url(), &self.authority.pem(), user, &identity);
        settings::write_private(path, &text)
    }

    /// Starts another program beside the servers; like them it ends when we do. Its output is
    /// appended to the file `log` in the plane's folder, and its environment has only PATH and
    /// TMPDIR.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(&self, program: &Path, args: &[String], log: &str) -> Result<Process, Error> {
        Process::start(&self.guard, program, args, log)
    }

    /// The kubeconfig of the admin, in the plane's folder.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.guard.folder().join("kubeconfig")
    }

    /// Kills the API server, like a crash; etcd and the data stay. Does nothing if it is stopped
    /// already.
    ///
    /// # Errors
    /// None so far.
    pub async fn stop_server(&self) -> Result<(), Error> {
        let old = std::mem::replace(&mut *self.server(), Server::Stopped);
        // Killing it takes a moment; meanwhile this runtime can run other tasks.
        let _ = tokio::task::spawn_blocking(move || drop(old)).await;
        Ok(())
    }

    /// Starts the API server on the same port and waits until it serves; resumes it if it was
    /// paused.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start_server(&self) -> Result<(), Error> {
        let deadline = Instant::now() + START;
        loop {
            self.resume_server()?;
            self.launch()?;
            match self.ready().await {
                Err(error) if port_is_busy(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                result => return result,
            }
        }
    }

    /// Pauses the API server: connections stay open, and nothing is answered until
    /// [`ControlPlane::resume_server`].
    ///
    /// # Errors
    /// If it is stopped.
    pub fn pause_server(&self) -> Result<(), Error> {
        let mut server = self.server();
        server.process().ok_or(Error::Stopped)?.pause()?;
        *server = match std::mem::replace(&mut *server, Server::Stopped) {
            Server::Running(process) | Server::Paused(process) => Server::Paused(process),
            Server::Stopped => Server::Stopped,
        };
        Ok(())
    }

    /// Resumes a paused API server. Does nothing if it is not paused.
    ///
    /// # Errors
    /// If it has ended in the meantime.
    pub fn resume_server(&self) -> Result<(), Error> {
        let mut server = self.server();
        if let Server::Paused(process) = &*server {
            process.resume()?;
        }
        *server = match std::mem::replace(&mut *server, Server::Stopped) {
            Server::Running(process) | Server::Paused(process) => Server::Running(process),
            Server::Stopped => Server::Stopped,
        };
        Ok(())
    }

    /// Ends both programs and removes the folder. Dropping does the same, but blocks the thread.
    pub async fn shutdown(self) {
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    /// Whether both programs run, so that another test can use them.
    pub(crate) fn is_usable(&self) -> bool {
        let etcd_runs = self.etcd.lock().unwrap_or_else(PoisonError::into_inner).exited().is_none();
        let server_runs = match &mut *self.server() {
            Server::Running(process) => process.exited().is_none(),
            Server::Stopped | Server::Paused(_) => false,
        };
        etcd_runs && server_runs
    }

    /// The folder and the process IDs, to check that they are gone later.
    #[cfg(test)]
    pub(crate) fn traces(&self) -> (PathBuf, Vec<u32>) {
        let etcd = self.etcd.lock().unwrap_or_else(PoisonError::into_inner).id();
        let server = self.server().process().map(|process| process.id());
        (self.guard.folder().to_owned(), std::iter::once(etcd).chain(server).collect())
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the API server unless it runs.
    fn launch(&self) -> Result<(), Error> {
        let mut server = self.server();
        if server.process().is_none_or(|process| process.exited().is_some()) {
            let process = Process::start(&self.guard, &self.binaries.apiserver, &self.arguments, "kube-apiserver.log")?;
            *server = Server::Running(process);
        }
        Ok(())
    }

    /// Waits until etcd accepts connections: a server that starts earlier waits a whole second
    /// before it tries again.
    async fn etcd_answers(&self, address: SocketAddr) -> Result<(), Error> {
        let deadline = Instant::now() + START;
        while TcpStream::connect(address).is_err() {
            let late = Instant::now() > deadline;
            {
                let mut etcd = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(status) = etcd.exited() {
                    return Err(etcd.ended(status));
                }
                if late {
                    return Err(etcd.not_ready(START));
                }
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits until the API server is ready and has made the namespace `default`, a moment later.
    async fn ready(&self) -> Result<(), Error> {
        let deadline = Instant::now() + START;
        let mut config = self.client_config("admin", &["system:masters"])?;
        config.default_retry = false;
        let client = Client::try_from(config).map_err(Error::api("make a client"))?;
        loop {
            let answer = tokio::time::timeout(Duration::from_secs(5), serves(&client)).await;
            if matches!(answer, Ok(Ok(()))) {
                return Ok(());
            }
            {
                let mut server = self.server();
                let Some(process) = server.process() else {
                    return Err(Error::Stopped);
                };
                if let Some(status) = process.exited() {
                    let error = process.ended(status);
                    *server = Server::Stopped;
                    return Err(error);
                }
                if Instant::now() > deadline {
                    return Err(process.not_ready(START));
                }
            }
            if let Ok(Err(error)) = answer {
                tracing::trace!(error = told(&error), "kube-apiserver is not ready yet");
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

async fn serves(client: &Client) -> Result<(), kube::Error> {
    let request = http::Request::get("/readyz").body(Vec::new()).expect("a constant path is a valid request");
    client.request_text(request).await?;
    Api::<Namespace>::all(client.clone()).get_metadata("default").await?;
    Ok(())
}

fn port_is_busy(error: &Error) -> bool {
    matches!(error, Error::Exited { log, .. } if log.contains("address already in use"))
}
