//! How a subject is tried: a few inputs, or as many as its share of `FUZZ_SECONDS` allows. The
//! seeds of failures are kept.

#![expect(clippy::print_stdout, reason = "whoever runs it for ten minutes wants to know how much was tried")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseResult, TestRunner};

use crate::SUBJECTS;

/// As many inputs of each subject as `cargo test` tries.
const FEW: u32 = 48;
/// As many as are tried between two looks at the clock.
const BATCH: u32 = 200;

/// How many inputs of each finished subject were tried.
static TRIED: Mutex<BTreeMap<&str, u64>> = Mutex::new(BTreeMap::new());

/// Tries inputs of `strategy`: `holds` must hold for each of them, and nothing may panic.
pub fn run<S: Strategy>(subject: &'static str, strategy: S, holds: impl Fn(S::Value) -> TestCaseResult)
where
    S::Value: Debug,
{
    assert!(SUBJECTS.contains(&subject), "{subject} has no share of the time");
    let end = share().map(|share| Instant::now() + share);
    let mut tried = 0;
    loop {
        let cases = if end.is_some() { BATCH } else { FEW };
        let mut runner = TestRunner::new(config(subject, cases));
        if let Err(problem) = runner.run(&strategy, &holds) {
            panic!(
                "{subject}: {problem}\nIts seed is in tests/fuzz/regressions/{subject}.txt: keep the input as a named test, too."
            );
        }
        tried += u64::from(cases);
        if end.is_none_or(|end| Instant::now() >= end) {
            break;
        }
    }
    report(subject, tried);
}

/// What each subject has of the time, which they use one after the other.
fn share() -> Option<Duration> {
    let seconds = std::env::var("FUZZ_SECONDS").ok()?;
    let seconds: f64 = seconds.parse().expect("FUZZ_SECONDS is a number of seconds");
    let subjects = u32::try_from(SUBJECTS.len()).unwrap_or(u32::MAX);
    Some(Duration::from_secs_f64(seconds / f64::from(subjects)))
}

fn config(subject: &str, cases: u32) -> Config {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fuzz/regressions/{subject}.txt"));
    // It is kept for as long as the process runs, which ends with the last subject.
    let file: &'static str = Box::leak(file.to_string_lossy().into_owned().into_boxed_str());
    Config {
        cases,
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..Config::default()
    }
}

fn report(subject: &'static str, tried: u64) {
    let mut all = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    all.insert(subject, tried);
    println!("{subject}: {tried} inputs");
    if all.len() == SUBJECTS.len() {
        println!("{} inputs in all", all.values().sum::<u64>());
    }
}
