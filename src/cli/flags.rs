//! The flags of `virt-advisor run`: those of the Go program, under their names.
//!
//! A flag whose feature does not exist yet ends the start with a sentence: whoever sets it relies on it.

use std::path::PathBuf;

use clap::Args;

use crate::telemetry::Encoder;

/// Switches are written as in Go: `--flag`, `--flag=true` or `--flag=false`.
#[derive(Debug, Args)]
pub(super) struct RunFlags {
    /// Kubeconfig of the cluster. Without it: KUBECONFIG, then the one in the home folder, then the Pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Log for development: level debug, lines for people.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    zap_devel: bool,

    /// Form of log lines; json unless --zap-devel is set.
    #[arg(long, value_name = "FORM")]
    zap_encoder: Option<Encoder>,

    /// Log level: error, info, debug, or a number (1 is debug, more is finer).
    #[arg(long, value_name = "LEVEL")]
    zap_log_level: Option<String>,

    /// Level from which log lines carry a stack trace. Not supported: errors carry their causes.
    #[arg(long, value_name = "LEVEL")]
    zap_stacktrace_level: Option<String>,

    /// Form of times in log lines. Only the default, rfc3339, is supported.
    #[arg(long, value_name = "FORM")]
    zap_time_encoding: Option<String>,

    /// Elect a leader, so that only one of several replicas works. Not supported yet: run one replica.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    leader_elect: bool,

    /// Address of /healthz and /readyz; 0 is none. Not supported yet.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    health_probe_bind_address: String,

    /// Address of the metrics; 0 is none. Not supported yet.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    metrics_bind_address: String,

    /// Serve metrics over HTTPS, to authorized users only. Has no effect without metrics.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    metrics_secure: bool,

    /// Folder of the metrics certificate. Not supported yet.
    #[arg(long, value_name = "FOLDER", default_value = "")]
    metrics_cert_path: String,

    /// File name of the metrics certificate.
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    metrics_cert_name: String,

    /// File name of the metrics certificate's key.
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    metrics_cert_key: String,

    /// Folder of the webhook certificate. There is no webhook.
    #[arg(long, value_name = "FOLDER", default_value = "")]
    webhook_cert_path: String,

    /// File name of the webhook certificate.
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    webhook_cert_name: String,

    /// File name of the webhook certificate's key.
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    webhook_cert_key: String,

    /// Serve HTTP/2 too. Not supported yet.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    enable_http2: bool,
}

impl RunFlags {
    /// Says of every flag that is set and does nothing yet what to do instead, all at once.
    pub(super) fn refuse_unfinished(&self) -> Result<(), String> {
        let served = |address: &str| !matches!(address, "" | "0");
        let unfinished = [
            (
                self.leader_elect,
                "--leader-elect is not supported by this version: leave it out and run exactly one replica",
            ),
            (
                served(&self.health_probe_bind_address),
                "--health-probe-bind-address is not supported by this version: leave it out, together with the probes",
            ),
            (
                served(&self.metrics_bind_address),
                "--metrics-bind-address is not supported by this version: leave it out",
            ),
            (
                !self.metrics_cert_path.is_empty(),
                "--metrics-cert-path is not supported by this version, which serves no metrics: leave it out",
            ),
            (
                !self.webhook_cert_path.is_empty(),
                "--webhook-cert-path has no meaning, there is no webhook: leave it out",
            ),
            (self.enable_http2, "--enable-http2 is not supported by this version, which serves nothing: leave it out"),
            (
                self.zap_stacktrace_level.is_some(),
                "--zap-stacktrace-level is not supported: leave it out; errors carry their causes",
            ),
            (
                self.zap_time_encoding.as_deref().is_some_and(|form| !matches!(form, "rfc3339" | "rfc3339nano")),
                "--zap-time-encoding supports only rfc3339: leave it out",
            ),
        ];
        let problems: Vec<_> = unfinished.iter().filter(|(set, _)| *set).map(|(_, problem)| *problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\nvirt-advisor: ")) }
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
            Some(level) => Err(format!("--zap-log-level is error, info, debug or a number, not {level:?}")),
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
    fn every_unfinished_flag_is_named_with_its_remedy() {
        let deployment = ["--leader-elect", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8443"];
        let problem = parse(&deployment).refuse_unfinished().unwrap_err();
        for flag in ["--leader-elect", "--health-probe-bind-address", "--metrics-bind-address"] {
            assert!(problem.contains(flag), "{problem}");
        }
        assert!(parse(&[]).refuse_unfinished().is_ok());
        assert!(parse(&["--leader-elect=false", "--metrics-bind-address=0"]).refuse_unfinished().is_ok());
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
