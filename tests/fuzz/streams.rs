//! Answers of the API server, cut anywhere.

use bytes::Bytes;
use object::limits::{Shallow, WIRE_DEPTH, depth};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

use crate::harness::run;
use crate::values::{name, nested, value};

fn filtered(stream: &[u8], cuts: &[Index]) -> Vec<u8> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).chain([0, stream.len()]).collect();
    cuts.sort_unstable();
    let mut shallow = Shallow::default();
    cuts.windows(2).flat_map(|cut| shallow.filter(Bytes::copy_from_slice(&stream[cut[0]..cut[1]])).to_vec()).collect()
}

fn document() -> impl Strategy<Value = Value> {
    (value(), 0_usize..160, name(), value()).prop_map(
        |(inner, levels, name, beside)| serde_json::json!({"deep": nested(levels, &name, inner), "beside": beside}),
    )
}

#[test]
fn what_is_json_stays_json_wherever_it_is_cut() {
    let bytes = prop_oneof![
        prop::collection::vec(select(b"[]{}\"\\,:0a\n\xc3\xa9".to_vec()), 0..400),
        prop::collection::vec(any::<u8>(), 0..200),
        (100_usize..400).prop_map(|levels| vec![b'['; levels]),
    ];
    let cuts = prop::collection::vec(any::<Index>(), 0..8);
    run("streams", (bytes, cuts, prop::collection::vec(document(), 1..4)), |(bytes, cuts, documents)| {
        prop_assert_eq!(&filtered(&bytes, &cuts), &filtered(&bytes, &[]));
        let stream: String = documents.iter().map(|document| format!("{document}\n")).collect();
        let passed = filtered(stream.as_bytes(), &cuts);
        let passed = String::from_utf8(passed).unwrap();
        prop_assert_eq!(passed.lines().count(), documents.len());
        for (line, document) in passed.lines().zip(&documents) {
            let read: Value = serde_json::from_str(line).unwrap();
            prop_assert!(depth(&read) <= WIRE_DEPTH);
            if depth(document) <= WIRE_DEPTH {
                prop_assert_eq!(&read, document);
            }
            prop_assert_eq!(read.get("beside"), document.get("beside"));
        }
        Ok(())
    });
}
