//! Objects with files inside, as Ignition has them: what is shown of a change, and what never is.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::io::Write as _;
use std::sync::Arc;

use advisor_core::api::Operation;
use advisor_core::plan::items::from_preview::{compose, unmoved};
use advisor_core::plan::items::{Effect, Preview};
use advisor_core::plan::overrides::Adjusted;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use object::diff::without_noise;
use object::limits::size;
use profile_sdk::{Body, Draft};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::harness::run;
use crate::values::{mutated, text, value};

/// Stands where nobody may read it.
const SECRET: &str = "Xyzzy-Plugh-42";
/// What compressed contents may unfold to, and what a diff takes for each byte of what it is made
/// from.
const UNFOLDED: usize = 4 << 20;
const FOR_EACH_BYTE: usize = 16;

fn zipped(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

fn url(bytes: &[u8]) -> String {
    format!("data:;base64,{}", STANDARD.encode(bytes))
}

/// The member `contents` of a file: readable or not, truncated, compressed, and what unfolds to a
/// thousand times as much.
fn contents() -> impl Strategy<Value = Value> {
    let bytes = prop_oneof![
        2 => text().prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop_oneof![9 => 1_usize..50_000, 1 => 1_usize..6_000_000].prop_map(|length| vec![b'\n'; length]),
    ];
    let compressed =
        (bytes, 0_usize..40, select(vec!["gzip", "gzip", "", "xz"])).prop_map(|(bytes, cut, compression)| {
            let mut zipped = zipped(&bytes);
            zipped.truncate(zipped.len() - if cut < zipped.len() && cut > 30 { cut } else { 0 });
            json!({"source": url(&zipped), "compression": compression})
        });
    let odd = select(vec![
        "data:",
        "data:,",
        "data:,a%2",
        "data:,%ff",
        "data:;base64,",
        "data:;base64,é",
        "data:;base64,====",
        "http://x",
        "data:text/plain;charset=x,é",
        "",
    ]);
    prop_oneof![
        3 => compressed,
        2 => text().prop_map(|text| json!({"source": format!("data:,{text}")})),
        1 => odd.prop_map(|source| json!({"source": source})),
        1 => value(),
    ]
}

fn file() -> impl Strategy<Value = Value> {
    let mode = prop_oneof![select(vec![
        json!(0o600),
        json!(0o644),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!("0600"),
        json!(0.5)
    ])];
    (select(vec!["/etc/a", "/etc/b", "é"]), mode, contents(), any::<bool>()).prop_map(
        |(path, mode, contents, appended)| {
            let mut file = json!({"path": path, "mode": mode});
            file[if appended { "append" } else { "contents" }] = if appended { json!([contents]) } else { contents };
            file
        },
    )
}

fn machine_config() -> impl Strategy<Value = Value> {
    let files = prop_oneof![4 => prop::collection::vec(file(), 0..4).boxed(), 1 => (file(), 2_usize..30).prop_map(|(file, times)| vec![file; times]).boxed()];
    files.prop_flat_map(|files| {
        let base = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": "m", "uid": "u", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": {"kernelArguments": ["a=1"], "config": {"ignition": {"version": "3.5.0"}, "storage": {"files": files}}},
        });
        prop_oneof![Just(base.clone()).boxed(), mutated(base).boxed()]
    })
}

/// `object` with another configuration in it: with a password, and with a file that only its owner
/// may read.
fn with_secrets(mut object: Value, number: u8) -> Value {
    if object.is_object() {
        let secret = format!("{SECRET}-{number}");
        let file = json!({"path": "/etc/key", "mode": 0o600, "contents": {"source": format!("data:,{secret}")}});
        object["apiVersion"] = json!("machineconfiguration.openshift.io/v1");
        object["kind"] = json!("MachineConfig");
        object["more"] = json!({
            "ignition": {"version": "3.5.0"},
            "passwd": {"users": [{"name": "core", "passwordHash": secret}]},
            "storage": {"files": [file], "luks": [{"name": "l", "keyFile": {"source": format!("data:,{secret}")}}]},
        });
        object["hidden"] = json!({"a": {"b": secret}});
    }
    object
}

#[test]
fn every_change_is_shown_and_no_secret_is() {
    let states = (machine_config(), machine_config(), any::<bool>(), 0_u8..2, 0_u8..2);
    run("contents", states, |(live, result, same, one, other)| {
        let result = if same { live.clone() } else { result };
        let (live, result) = (with_secrets(live, one), with_secrets(result, other));
        let mut draft = Draft::new("m", Body::Ensure(result.clone()), "the settings");
        draft.sensitive = vec!["/hidden/*".to_owned()];
        let preview = Preview::Known {
            adjusted: Adjusted::from(result.clone()),
            live: Some(Arc::new(live.clone())),
            result: result.clone(),
            conflicts: Vec::new(),
        };
        let item = compose(&draft, None, "us", preview, Effect::default(), None);
        let unchanged = without_noise(&live) == without_noise(&result);
        prop_assert_eq!(item.operation == Operation::NoChange, unchanged);
        prop_assert_eq!(item.review.diff.is_empty(), unchanged, "{}", item.review.diff);
        let allowed = 2 * UNFOLDED + FOR_EACH_BYTE * (size(&live) + size(&result) + 64);
        prop_assert!(
            item.review.diff.len() <= allowed,
            "{} bytes of {} and {}",
            item.review.diff.len(),
            size(&live),
            size(&result)
        );
        let told = format!(
            "{} {} {:?} {:?} {}",
            item.review.diff, item.review.shown, item.review.lost, item.review.replaced, item.review.message
        );
        prop_assert!(!told.contains(SECRET), "{told}");
        let _ = unmoved(&draft, None, &item, &live);
        let removal =
            Preview::Removal { live: Some(Arc::new(live)), result: None, leaves: None, stays_for: Vec::new() };
        let removal = compose(&draft, None, "us", removal, Effect::default(), None);
        prop_assert!(!removal.review.diff.contains(SECRET) && removal.review.diff.len() <= allowed);
        Ok(())
    });
}
