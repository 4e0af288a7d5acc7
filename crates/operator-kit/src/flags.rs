//! Flags that every operator has, in groups that a program flattens into its own.
//!
//! Names are those of controller-runtime's scaffold, so that a Deployment of a Go operator starts
//! ours. A program that reads a flag from the environment as well, or that has another default,
//! says so with [`differ`].

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command};
use kube::Client;

use crate::endpoints::CertificateFiles;
use crate::leader::{Election, Timing};
use crate::logs::Encoder;

/// How a program's flag differs from the group's.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// The name without dashes, for example `metrics-bind-address`.
    pub flag: &'static str,
    /// The environment variable that sets it where the flag is not given.
    pub variable: Option<&'static str>,
    /// The default of this program.
    pub default: &'static str,
}

/// The command line with a program's differences.
#[must_use]
pub fn differ(command: Command, differences: &[Difference]) -> Command {
    differences.iter().fold(command, |command, difference| {
        command.mut_arg(difference.flag.replace('-', "_"), |arg| {
            let arg = arg.required(false).default_value(difference.default);
            match difference.variable {
                Some(variable) => arg.env(variable),
                None => arg,
            }
        })
    })
}

/// What to log, and how.
#[derive(Debug, Args)]
pub struct LogFlags {
    /// Log for development: level debug, human-readable lines.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    zap_devel: bool,

    /// Format of log lines; json unless --zap-devel is set.
    #[arg(long, value_name = "FORM")]
    zap_encoder: Option<Encoder>,

    /// Log level: error, info, debug, or a number (1 is debug, higher is more detailed).
    #[arg(long, value_name = "LEVEL")]
    zap_log_level: Option<String>,

    /// Level from which log lines carry a stack trace. Not supported: errors carry their causes.
    #[arg(long, value_name = "LEVEL")]
    zap_stacktrace_level: Option<String>,

    /// Format of times in log lines. Only the default, rfc3339, is supported.
    #[arg(long, value_name = "FORM")]
    zap_time_encoding: Option<String>,
}

impl LogFlags {
    /// The problem with each flag that can't have its effect, with the remedy.
    pub fn problems(&self) -> Vec<String> {
        let stack = self
            .zap_stacktrace_level
            .as_ref()
            .map(|_| "--zap-stacktrace-level is not supported: leave it out; errors carry their causes".to_owned());
        let form = self
            .zap_time_encoding
            .as_deref()
            .filter(|form| !matches!(*form, "rfc3339" | "rfc3339nano"))
            .map(|_| "--zap-time-encoding supports only rfc3339: leave it out".to_owned());
        stack.into_iter().chain(form).chain(self.level().err()).collect()
    }

    /// The format of log lines.
    #[must_use]
    pub fn encoder(&self) -> Encoder {
        self.zap_encoder.unwrap_or(if self.zap_devel { Encoder::Console } else { Encoder::Json })
    }

    /// The level, as `tracing` names it.
    ///
    /// # Errors
    /// The flag holds no level.
    pub fn level(&self) -> Result<&'static str, String> {
        match self.zap_log_level.as_deref() {
            None if self.zap_devel => Ok("debug"),
            None | Some("info" | "0") => Ok("info"),
            Some("error" | "panic") => Ok("error"),
            Some("debug" | "1") => Ok("debug"),
            Some(level) if level.parse::<u8>().is_ok() => Ok("trace"),
            Some(level) => Err(format!("--zap-log-level must be error, info, debug or a number, not {level:?}")),
        }
    }
}

/// Which of several replicas is active.
#[derive(Debug, Args)]
pub struct ElectionFlags {
    /// Elect a leader, so that only one of several replicas is active.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub leader_elect: bool,

    /// Namespace of the lease; the Pod's own if it is not set.
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    leader_election_namespace: String,

    /// Name of the lease. The default is that of the Go program: while that program leads, this one waits.
    #[arg(long, value_name = "NAME")]
    pub leader_election_id: String,

    /// How long other replicas wait before they take over a lease that is not renewed.
    #[arg(long, value_name = "DURATION", default_value = "137s", value_parser = duration)]
    leader_election_lease_duration: Duration,

    /// How long after its last renewal a leader stops writing and exits.
    #[arg(long, value_name = "DURATION", default_value = "107s", value_parser = duration)]
    leader_election_renew_deadline: Duration,

    /// Time between two renewals.
    #[arg(long, value_name = "DURATION", default_value = "26s", value_parser = duration)]
    leader_election_retry_period: Duration,

    /// Name of this replica, as shown in the lease; a random suffix is added.
    #[arg(long, value_name = "NAME", default_value = "")]
    pod_name: String,
}

impl ElectionFlags {
    /// The problem with each duration that can't have its effect, with the remedy. None where no
    /// leader is elected.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        if self.leader_elect { self.timing().problems() } else { Vec::new() }
    }

    /// How long a lease holds, and how often it is renewed.
    #[must_use]
    pub fn timing(&self) -> Timing {
        Timing {
            lease_duration: self.leader_election_lease_duration,
            renew_deadline: self.leader_election_renew_deadline,
            retry_period: self.leader_election_retry_period,
        }
    }

    /// The namespace of the lease; `own` is that of the kubeconfig or of the Pod.
    #[must_use]
    pub fn namespace<'a>(&'a self, own: &'a str) -> &'a str {
        if self.leader_election_namespace.is_empty() { own } else { &self.leader_election_namespace }
    }

    /// A name that no other replica has, whatever its environment: two with one name would both
    /// lead.
    #[must_use]
    pub fn identity(&self, program: &str) -> String {
        let name = if self.pod_name.is_empty() { program } else { &self.pod_name };
        format!("{name}_{}", uuid::Uuid::new_v4())
    }

    /// The election in which this replica takes part, unless none is asked for.
    #[must_use]
    pub fn election(&self, client: &Client, program: &str) -> Option<Election> {
        let namespace = self.namespace(client.default_namespace());
        let identity = self.identity(program);
        self.leader_elect
            .then(|| Election::new(client.clone(), namespace, &self.leader_election_id, identity, self.timing()))
    }
}

/// Where probes and metrics are served.
#[derive(Debug, Args)]
pub struct EndpointFlags {
    /// Address of /healthz and /readyz, for example :8081; 0 disables them.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    health_probe_bind_address: String,

    /// Address of the metrics, for example :8443; 0 disables them.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    metrics_bind_address: String,

    /// Serve metrics over HTTPS, and only to users who may get the URL /metrics. Has no effect if metrics are disabled.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub metrics_secure: bool,

    /// Folder of the metrics certificate, which is reloaded when it changes. If unset, a self-signed certificate is generated.
    #[arg(long, value_name = "FOLDER", default_value = "")]
    metrics_cert_path: String,

    /// File name of the metrics certificate.
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    metrics_cert_name: String,

    /// File name of the metrics certificate's key.
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    metrics_cert_key: String,
}

impl EndpointFlags {
    /// The address of the probes, unless they are disabled.
    #[must_use]
    pub fn probes(&self) -> Option<&str> {
        served(&self.health_probe_bind_address)
    }

    /// The address of the metrics, unless they are disabled.
    #[must_use]
    pub fn metrics(&self) -> Option<&str> {
        served(&self.metrics_bind_address)
    }

    /// The files of the metrics certificate, if they are named.
    #[must_use]
    pub fn certificate(&self) -> Option<CertificateFiles> {
        let folder = Some(&self.metrics_cert_path).filter(|path| !path.is_empty()).map(PathBuf::from)?;
        let (certificate, key) = (folder.join(&self.metrics_cert_name), folder.join(&self.metrics_cert_key));
        Some(CertificateFiles { certificate, key })
    }
}

fn served(address: &str) -> Option<&str> {
    Some(address).filter(|address| !matches!(*address, "" | "0"))
}

/// Reads a duration as Go writes them.
///
/// # Errors
/// The text is no such duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    object::duration::parse(text).ok_or_else(|| "it must be a duration, such as 137s or 2m".to_owned())
}
