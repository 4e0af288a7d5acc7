//! Sentences as errors.

use std::fmt;
use std::ops::Deref;

/// Why something can't be planned, and what to do about it: a sentence that a person reads in the
/// message of an item, or of a plan. It never contains values that may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy(String);

impl Deref for Remedy {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Remedy> for String {
    fn from(remedy: Remedy) -> Self {
        remedy.0
    }
}

impl From<String> for Remedy {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<&str> for Remedy {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Remedy {}
