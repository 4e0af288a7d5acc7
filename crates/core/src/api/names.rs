//! What the values of the API are called: words that automation matches, in one place.

use std::fmt;

use super::{ApprovedBy, ItemState, Operation, Phase, Severity};

macro_rules! names {
    ($($type:ident: $($value:ident),*;)*) => {
        $(
            impl $type {
                /// All values, in the order of the API.
                pub const ALL: &[Self] = &[$(Self::$value),*];

                /// What it is called in the API, in metrics, logs and events.
                #[must_use]
                pub fn name(self) -> &'static str {
                    match self {
                        $(Self::$value => stringify!($value)),*
                    }
                }
            }

            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.name())
                }
            }
        )*

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn every_value_is_called_what_the_api_calls_it() {
                $(
                    for value in $type::ALL {
                        assert_eq!(serde_json::to_value(value).unwrap(), value.name());
                    }
                    let schema = serde_json::to_value(schemars::schema_for!($type)).unwrap();
                    let of_schema = schema["oneOf"].as_array().or_else(|| schema["enum"].as_array()).map_or(0, Vec::len);
                    assert_eq!($type::ALL.len(), of_schema, "{schema:#}");
                )*
            }
        }
    };
}

names! {
    Phase: Pending, Drafting, PrerequisiteFailed, ReviewRequired, InProgress, Completed, CompletedWithErrors, CompletedWithUpgrade, Failed, Drifted, Ignored;
    Severity: Low, Medium, High;
    ApprovedBy: Hash, Action, InAdvance, Policy, Bypass;
    Operation: Create, Update, Remove, NoChange, Blocked, Deferred, Skipped;
    ItemState: Pending, InProgress, Completed, Failed;
}
