//! The operator against a real API server. One binary, one module a subject: each binary would link everything again.

#![expect(missing_docs, reason = "tests are named as sentences")]

mod fixture;
mod story;
