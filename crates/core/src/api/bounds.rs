//! What a spec may hold before anything is made of it.

use object::limits::{OBJECT_DEPTH, SPEC_SIZE, SPEC_VALUES, count, depth, size};

use super::VirtPlatformConfigSpec;

/// Why nothing can be planned from `spec`: the place and what to do, in a sentence. `None` if it is
/// within its bounds.
///
/// Counts and lengths of single fields are in the CRD, whose schema the API server enforces; the
/// depth and the size of values that the schema leaves open can be bounded here only.
#[must_use]
pub fn spec_problem(spec: &VirtPlatformConfigSpec) -> Option<String> {
    for (index, entry) in spec.overrides.iter().enumerate() {
        for (operation, patch) in entry.patch.iter().enumerate() {
            // A part of it may have been left out already: what is left is deeper than the bound
            // all the same.
            if patch.value.as_ref().is_some_and(|value| depth(value) > OBJECT_DEPTH / 2) {
                return Some(format!(
                    "spec.overrides[{index}].patch[{operation}].value is nested more than {} levels deep. Use a flatter value, or remove \
                     this operation.",
                    OBJECT_DEPTH / 2
                ));
            }
        }
    }
    if spec.options.as_ref().is_some_and(|options| depth(options) > OBJECT_DEPTH / 2) {
        return Some(format!(
            "spec.options is nested more than {} levels deep. Use flatter options.",
            OBJECT_DEPTH / 2
        ));
    }
    let (bytes, values) =
        serde_json::to_value(spec).map_or((usize::MAX, usize::MAX), |spec| (size(&spec), count(&spec)));
    if bytes > SPEC_SIZE {
        return Some(format!(
            "spec has {bytes} bytes, but at most {SPEC_SIZE} bytes are accepted, so that there is room for the status. Make the \
             values in spec.overrides and spec.options smaller."
        ));
    }
    (values > SPEC_VALUES).then(|| {
        format!(
            "spec has {values} values, but at most {SPEC_VALUES} values are accepted, so that planning does not run out of memory. \
             Shorten the lists and maps in spec.options and spec.overrides."
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(value: Value) -> VirtPlatformConfigSpec {
        let target = json!({"kind": "ConfigMap", "name": "x"});
        let patch = json!([{"op": "add", "path": "/data/a", "value": value}]);
        serde_json::from_value(json!({"profile": "p", "overrides": [{"target": target, "patch": patch}]})).unwrap()
    }

    #[test]
    fn t6_t16_a_spec_that_is_too_deep_or_too_large_is_told_with_its_place() {
        let mut deep = json!("x");
        for _ in 0..60 {
            deep = json!({"a": deep});
        }
        let problem = spec_problem(&spec(deep)).unwrap();
        assert!(
            problem.starts_with("spec.overrides[0].patch[0].value is nested more than 50 levels deep"),
            "{problem}"
        );
        let problem = super::spec_problem(&spec(json!("x".repeat(1_570_000)))).unwrap();
        assert!(
            problem.starts_with("spec has 15") && problem.contains("at most 524288 bytes are accepted"),
            "{problem}"
        );
        assert_eq!(super::spec_problem(&spec(json!({"a": [1, {"b": "x".repeat(100_000)}]}))), None);
    }

    /// T5: bytes say little of the memory that small values take.
    #[test]
    fn t5_a_spec_of_many_small_values_is_told_what_to_shorten() {
        let problem = spec_problem(&spec(json!(vec![json!({"a": 0}); 50_000]))).unwrap();
        assert!(
            problem.starts_with("spec has 1000") && problem.contains("at most 10000 values are accepted"),
            "{problem}"
        );
        assert_eq!(super::spec_problem(&spec(json!(vec![json!({"a": 0}); 4900]))), None);
    }
}
