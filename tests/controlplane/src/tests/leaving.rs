//! Nothing is left behind, however we end.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ControlPlane;

const CHILD: &str = "tests::leaving::starts_a_plane_and_waits_to_be_killed";

/// Whether a process runs; one that nobody has waited for yet does not.
fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_none_or(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

fn left(folder: &Path, pids: &[u32]) -> Vec<String> {
    let mut left: Vec<_> = pids.iter().filter(|pid| runs(**pid)).map(|pid| format!("process {pid}")).collect();
    left.extend(folder.exists().then(|| folder.display().to_string()));
    left
}

#[tokio::test]
#[ignore = "the part of the next test that is killed"]
async fn starts_a_plane_and_waits_to_be_killed() {
    let plane = ControlPlane::start().await.unwrap();
    let (folder, pids) = plane.traces();
    println!("\ntraces {} {} {}", pids[0], pids[1], folder.display());
    std::future::pending::<()>().await;
}

#[test]
fn a_killed_process_leaves_nothing() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("traces ").map(String::from)).unwrap();
    let mut words = line.splitn(3, ' ');
    let pids: Vec<u32> = words.by_ref().take(2).map(|pid| pid.parse().unwrap()).collect();
    let folder = PathBuf::from(words.next().unwrap());
    assert_eq!(left(&folder, &pids).len(), 3);

    child.kill().unwrap();
    child.wait().unwrap();
    let killed = Instant::now();
    while !left(&folder, &pids).is_empty() {
        assert!(killed.elapsed() < Duration::from_secs(10), "still there: {:?}", left(&folder, &pids));
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("gone after {:?}", killed.elapsed());
}

#[test]
fn a_panic_leaves_nothing_and_neither_does_a_stopped_or_paused_server() {
    for case in ["running", "paused", "stopped"] {
        let (sender, receiver) = std::sync::mpsc::channel();
        let panicked = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let plane = ControlPlane::start().await.unwrap();
                sender.send(plane.traces()).unwrap();
                match case {
                    "paused" => plane.pause_server().unwrap(),
                    "stopped" => plane.stop_server().await.unwrap(),
                    _ => {}
                }
                panic!("as a failing test does");
            });
        })
        .join();
        assert!(panicked.is_err());
        let (folder, pids) = receiver.recv().unwrap();
        assert_eq!(left(&folder, &pids), [] as [&str; 0], "{case}");
    }
}
