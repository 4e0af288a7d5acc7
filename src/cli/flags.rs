//! The flags of `virt-advisor run`: those of the Go program, with the same names.
//!
//! A flag that can't have its effect prevents the start, with a sentence: whoever sets it relies on
//! it.

use std::path::PathBuf;

use clap::{Args, Command};
use operator_kit::flags::{Difference, ElectionFlags, EndpointFlags, LogFlags, differ};

/// Defaults of this program.
const DIFFERENCES: &[Difference] =
    &[Difference { flag: "leader-election-id", variable: None, default: crate::LEASE_NAME }];

/// The command line of `run` with this program's defaults.
pub(super) fn with_defaults(run: Command) -> Command {
    differ(run, DIFFERENCES)
}

/// Switches are written as in Go: `--flag`, `--flag=true` or `--flag=false`.
#[derive(Debug, Args)]
// As in Go, the last one wins: scripts that append arguments rely on it.
#[command(args_override_self = true)]
pub(super) struct RunFlags {
    /// Kubeconfig of the cluster. If unset: KUBECONFIG, then ~/.kube/config, then the Pod's service account.
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    pub(super) logs: LogFlags,

    #[command(flatten)]
    pub(super) election: ElectionFlags,

    #[command(flatten)]
    pub(super) endpoints: EndpointFlags,

    #[command(flatten)]
    unsupported: UnsupportedFlags,
}

/// Flags of the Go program for what this one does not have.
#[derive(Debug, Args)]
struct UnsupportedFlags {
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

impl UnsupportedFlags {
    fn problems(&self) -> impl Iterator<Item = String> {
        let webhook = (!self.webhook_cert_path.is_empty())
            .then_some("--webhook-cert-path is not supported, because there is no webhook: leave it out");
        let http2 = self
            .enable_http2
            .then_some("--enable-http2 is not supported, because probes and metrics use HTTP/1.1: leave it out");
        webhook.into_iter().chain(http2).map(ToOwned::to_owned)
    }
}

impl RunFlags {
    /// The problem with each flag that can't have its effect, with the remedy, all at once.
    pub(super) fn problems(&self) -> Vec<String> {
        self.unsupported.problems().chain(self.logs.problems()).chain(self.election.problems()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: RunFlags,
    }

    fn parse(arguments: &[&str]) -> RunFlags {
        let command = with_defaults(Line::command());
        let matches = command.try_get_matches_from([&["run"], arguments].concat()).unwrap();
        Line::from_arg_matches(&matches).unwrap().flags
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
            let (one, other) =
                (parse(flags).election.identity("virt-advisor"), parse(flags).election.identity("virt-advisor"));
            assert!(one != other && one.len() > 36, "{one} {other}");
        }
        assert!(parse(&["--pod-name=virt-advisor-0"]).election.identity("virt-advisor").starts_with("virt-advisor-0_"));
    }

    #[test]
    fn the_last_one_of_a_flag_wins() {
        let flags = parse(&[
            "--leader-elect",
            "--metrics-bind-address=:8443",
            "--leader-elect=false",
            "--metrics-bind-address=0",
        ]);
        assert!(!flags.election.leader_elect && flags.endpoints.metrics().is_none());
    }

    #[test]
    fn log_levels_are_those_of_zap() {
        for (arguments, level) in [
            (&[][..], "info"),
            (&["--zap-devel"], "debug"),
            (&["--zap-log-level=1"], "debug"),
            (&["--zap-log-level=5"], "trace"),
        ] {
            assert_eq!(parse(arguments).logs.level().unwrap(), level, "{arguments:?}");
        }
        assert!(parse(&["--zap-log-level=loud"]).logs.level().unwrap_err().contains("loud"));
    }
}
