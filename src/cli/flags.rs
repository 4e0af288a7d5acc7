//! The flags of `virt-advisor run`: those of the Go program, with the same names.
//!
//! A flag that can't have its effect prevents the start, with a sentence: whoever sets it relies on
//! it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use advisor_core::api;
use operator_kit::endpoints::CertificateFiles;
use operator_kit::leader::Timing;
use operator_kit::logs::Encoder;

/// Switches are written as in Go: `--flag`, `--flag=true` or `--flag=false`.
#[derive(Debug, Args)]
// As in Go, the last one wins: scripts that append arguments rely on it.
#[command(args_override_self = true)]
pub(super) struct RunFlags {
    /// Kubeconfig of the cluster. If unset: KUBECONFIG, then ~/.kube/config, then the Pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

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

    /// Elect a leader, so that only one of several replicas is active.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(super) leader_elect: bool,

    /// Namespace of the lease; the Pod's own if it is not set.
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    leader_election_namespace: String,

    /// Name of the lease. The default is that of the Go program: while that program leads, this one waits.
    #[arg(long, value_name = "NAME", default_value = crate::LEASE_NAME)]
    pub(super) leader_election_id: String,

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

    /// Address of /healthz and /readyz, for example :8081; 0 disables them.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    health_probe_bind_address: String,

    /// Address of the metrics, for example :8443; 0 disables them.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    metrics_bind_address: String,

    /// Serve metrics over HTTPS, and only to users who may get the URL /metrics. Has no effect if metrics are disabled.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(super) metrics_secure: bool,

    /// Folder of the metrics certificate, which is reloaded when it changes. If unset, a self-signed certificate is generated.
    #[arg(long, value_name = "FOLDER", default_value = "")]
    metrics_cert_path: String,

    /// File name of the metrics certificate.
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    metrics_cert_name: String,

    /// File name of the metrics certificate's key.
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    metrics_cert_key: String,

    /// Folder of the webhook certificate. Not supported: there is no webhook.
    #[arg(long, value_name = "FOLDER", default_value = "")]
    webhook_cert_path: String,

    /// File name of the webhook certificate. Has no effect.
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    webhook_cert_name: String,

    /// File name of the webhook certificate's key. Has no effect.
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    webhook_cert_key: String,

    /// Also serve HTTP/2. Not supported yet.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    enable_http2: bool,
}

/// The address, unless serving is switched off.
fn served(address: &str) -> Option<&str> {
    Some(address).filter(|address| !matches!(*address, "" | "0"))
}

fn duration(text: &str) -> Result<Duration, String> {
    api::parse_duration(text).ok_or_else(|| "it must be a duration, such as 137s or 2m".to_owned())
}

impl RunFlags {
    /// The problem with each flag that can't have its effect, with the remedy, all at once.
    pub(super) fn problems(&self) -> Vec<String> {
        let unsupported = [
            (
                !self.webhook_cert_path.is_empty(),
                "--webhook-cert-path is not supported, because there is no webhook: leave it out",
            ),
            (
                self.enable_http2,
                "--enable-http2 is not supported, because probes and metrics use HTTP/1.1: leave it out",
            ),
            (
                self.zap_stacktrace_level.is_some(),
                "--zap-stacktrace-level is not supported: leave it out; errors carry their causes",
            ),
            (
                self.zap_time_encoding.as_deref().is_some_and(|form| !matches!(form, "rfc3339" | "rfc3339nano")),
                "--zap-time-encoding supports only rfc3339: leave it out",
            ),
        ];
        let unsupported = unsupported.iter().filter(|(set, _)| *set).map(|(_, problem)| (*problem).to_owned());
        let mut problems: Vec<_> = unsupported.chain(self.level().err()).collect();
        if self.leader_elect {
            problems.extend(self.timing().problems());
        }
        problems
    }

    pub(super) fn timing(&self) -> Timing {
        Timing {
            lease_duration: self.leader_election_lease_duration,
            renew_deadline: self.leader_election_renew_deadline,
            retry_period: self.leader_election_retry_period,
        }
    }

    /// The namespace of the lease; `own` is that of the kubeconfig or of the Pod.
    pub(super) fn lease_namespace<'a>(&'a self, own: &'a str) -> &'a str {
        if self.leader_election_namespace.is_empty() { own } else { &self.leader_election_namespace }
    }

    /// A name that no other replica has, whatever its environment: two with one name would both
    /// lead.
    pub(super) fn identity(&self) -> String {
        let name = if self.pod_name.is_empty() { "virt-advisor" } else { &self.pod_name };
        format!("{name}_{}", uuid::Uuid::new_v4())
    }

    pub(super) fn probes(&self) -> Option<&str> {
        served(&self.health_probe_bind_address)
    }

    pub(super) fn metrics(&self) -> Option<&str> {
        served(&self.metrics_bind_address)
    }

    pub(super) fn certificate(&self) -> Option<CertificateFiles> {
        let folder = Some(&self.metrics_cert_path).filter(|path| !path.is_empty()).map(PathBuf::from)?;
        let (certificate, key) = (folder.join(&self.metrics_cert_name), folder.join(&self.metrics_cert_key));
        Some(CertificateFiles { certificate, key })
    }

    pub(super) fn kubeconfig(&self) -> Option<PathBuf> {
        self.kubeconfig.clone()
    }

    pub(super) fn encoder(&self) -> Encoder {
        self.zap_encoder.unwrap_or(if self.zap_devel { Encoder::Console } else { Encoder::Json })
    }

    pub(super) fn level(&self) -> Result<&'static str, String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: RunFlags,
    }

    fn parse(arguments: &[&str]) -> RunFlags {
        Line::try_parse_from([&["run"], arguments].concat()).unwrap().flags
    }

    #[test]
    fn every_flag_that_can_not_be_is_named_with_its_remedy_at_once() {
        let wrong = [
            "--enable-http2",
            "--webhook-cert-path=/x",
            "--leader-elect",
            "--leader-election-lease-duration=10s",
            "--zap-log-level=loud",
        ];
        let problems = parse(&wrong).problems();
        for flag in ["--enable-http2", "--webhook-cert-path", "--leader-election-lease-duration", "--zap-log-level"] {
            assert!(problems.iter().any(|problem| problem.contains(flag)), "{flag}: {problems:?}");
        }
        let deployment = ["--leader-elect", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8443"];
        for fine in [&[][..], &deployment, &["--leader-elect=false", "--metrics-bind-address=0"]] {
            assert_eq!(parse(fine).problems(), Vec::<String>::new(), "{fine:?}");
        }
    }

    /// K6 (d): two replicas without a name, or with the same name, have different identities.
    #[test]
    fn k6_no_two_replicas_have_one_identity() {
        for flags in [&[][..], &["--pod-name=", "--leader-elect"], &["--pod-name=virt-advisor-0"]] {
            let (one, other) = (parse(flags).identity(), parse(flags).identity());
            assert!(one != other && one.len() > 36, "{one} {other}");
        }
        assert!(parse(&["--pod-name=virt-advisor-0"]).identity().starts_with("virt-advisor-0_"));
    }

    #[test]
    fn the_last_one_of_a_flag_wins() {
        let flags = parse(&[
            "--leader-elect",
            "--metrics-bind-address=:8443",
            "--leader-elect=false",
            "--metrics-bind-address=0",
        ]);
        assert!(!flags.leader_elect && flags.metrics().is_none());
    }

    #[test]
    fn log_levels_are_those_of_zap() {
        for (arguments, level) in [
            (&[][..], "info"),
            (&["--zap-devel"], "debug"),
            (&["--zap-log-level=1"], "debug"),
            (&["--zap-log-level=5"], "trace"),
        ] {
            assert_eq!(parse(arguments).level().unwrap(), level, "{arguments:?}");
        }
        assert!(parse(&["--zap-log-level=loud"]).level().unwrap_err().contains("loud"));
    }
}
