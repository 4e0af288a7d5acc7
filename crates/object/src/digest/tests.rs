//! The digest, compared with an independent implementation of the canonical form.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::arbitrary::objects;

/// Approvals given to older versions name digests of this form.
#[test]
fn the_digest_is_that_of_the_canonical_form() {
    let value = json!({"b": [1, 2.0, "é"], "a": {"\u{1F600}": null, "\u{FB33}": true}});
    // Canonical: {"a":{"😀":null,"דּ":true},"b":[1,2,"é"]}, hashed with `sha256sum`.
    assert_eq!(sha256(&value), "d6dbb9cf499395b8890bddac9f792d7ccdb510e5c53ea91135ffd91b8866dac8");
}

/// RFC 8785, section 3.2.2 and appendix B.
#[test]
fn the_examples_of_the_rfc() {
    let canonical = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        String::from_utf8(serde_json_canonicalizer::to_vec(&value).unwrap()).unwrap()
    };
    assert_eq!(
        canonical(
            r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#
        ),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    for (bits, text) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
    ] {
        assert_eq!(canonical(&json!([f64::from_bits(bits)]).to_string()), format!("[{text}]"), "{bits:x}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn another_implementation_gives_the_same_canonical_form(object in objects()) {
        let mut object = object;
        keep_large_integers(&mut object);
        let ours = String::from_utf8(serde_json_canonicalizer::to_vec(&object).unwrap()).unwrap();
        prop_assert_eq!(&ours, &json_canon::to_string(&object).unwrap());
        // The text is JSON of the same value, and already canonical.
        let back: Value = serde_json::from_str(&ours).unwrap();
        prop_assert_eq!(&ours, &String::from_utf8(serde_json_canonicalizer::to_vec(&back).unwrap()).unwrap());
    }

    #[test]
    fn neighbours_among_large_integers_have_digests_of_their_own(number in any::<i64>(), wide in any::<u64>()) {
        prop_assert_ne!(sha256(&json!([number])), sha256(&json!([number.wrapping_add(1)])));
        prop_assert_ne!(sha256(&json!([wide])), sha256(&json!([wide.wrapping_add(1)])));
    }
}
