//! JSON without what is nested too deep: one object must not make the list that it is in unreadable.

use bytes::Bytes;

use super::WIRE_DEPTH;

/// Leaves out of a stream of JSON what is nested deeper than [`WIRE_DEPTH`]: `null` takes its place. It needs no memory however large the
/// answer is, and passes on what it need not change without a copy. Documents may follow each other, as in a watch.
#[derive(Debug, Default)]
pub struct Shallow {
    depth: usize,
    quoted: bool,
    escaped: bool,
}

impl Shallow {
    /// The next part of the stream.
    #[must_use]
    pub fn filter(&mut self, part: Bytes) -> Bytes {
        let mut kept: Vec<u8> = Vec::new();
        // What has been looked at and not been copied begins here.
        let mut from = 0;
        let mut copies = self.depth > WIRE_DEPTH;
        for (index, byte) in part.iter().enumerate() {
            let before = self.depth;
            self.step(*byte);
            if before == WIRE_DEPTH && self.depth > WIRE_DEPTH {
                copies = true;
                kept.extend_from_slice(part.get(from..index).unwrap_or_default());
                kept.extend_from_slice(b"null");
            } else if before > WIRE_DEPTH && self.depth == WIRE_DEPTH {
                from = index + 1;
            }
        }
        if !copies {
            return part;
        }
        if self.depth <= WIRE_DEPTH {
            kept.extend_from_slice(part.get(from..).unwrap_or_default());
        }
        Bytes::from(kept)
    }

    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.quoted => self.escaped = true,
            b'"' => self.quoted = !self.quoted,
            _ if self.quoted => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::{OBJECT_DEPTH, depth};

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn filtered(parts: &[&[u8]]) -> Vec<u8> {
        let mut shallow = Shallow::default();
        parts.iter().flat_map(|part| shallow.filter(Bytes::copy_from_slice(part)).to_vec()).collect()
    }

    /// T6: a value that is nested too deep for the parser is left out, and its neighbours are read.
    #[test]
    fn t6_one_deep_object_of_a_list_leaves_the_others_readable() {
        for levels in [WIRE_DEPTH + 1, 140, 5000] {
            let list = format!(r#"{{"items":[{{"a":"]}}\"[["}},{},{{"b":2}}]}}"#, nested(levels));
            assert!(levels < 127 || serde_json::from_str::<Value>(&list).is_err(), "{levels}: this test shows nothing");
            let list: Value = serde_json::from_slice(&filtered(&[list.as_bytes()])).unwrap();
            assert_eq!((&list["items"][0], &list["items"][2]), (&json!({"a": "]}\"[["}), &json!({"b": 2})), "{levels}");
            assert!(depth(&list["items"][1]) > OBJECT_DEPTH, "what is left of it is still too deep");
        }
        let events = format!("{{\"object\":{}}}\n{{\"object\":2}}\n", nested(300));
        let events = String::from_utf8(filtered(&[events.as_bytes()])).unwrap();
        let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events[1], json!({"object": 2}));
    }

    #[test]
    fn what_is_shallow_is_passed_on_without_a_copy() {
        let part = Bytes::from(format!("{{\"a\":{}}}", nested(WIRE_DEPTH - 1)));
        let passed = Shallow::default().filter(part.clone());
        assert_eq!((passed.as_ptr(), &passed), (part.as_ptr(), &part));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn where_a_stream_is_cut_makes_no_difference(
            levels in 100_usize..200, text in "[\\[\\]{}\"\\\\a]{0,12}", cuts in prop::collection::vec(0_usize..600, 0..6)
        ) {
            let document = json!({"text": text, "more": [1, {"x": text}]}).to_string();
            let stream = format!("{document}\n{}\n{document}", nested(levels).replace('1', &document));
            let whole = filtered(&[stream.as_bytes()]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
            cuts.sort_unstable();
            let parts: Vec<_> = cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&filtered(&parts), &whole);
            let lines = String::from_utf8(whole).unwrap();
            for line in lines.lines() {
                prop_assert!(serde_json::from_str::<Value>(line).is_ok(), "{}", line);
            }
        }
    }
}
