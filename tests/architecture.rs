//! The invariants of docs/ARCHITECTURE.md that the compiler does not hold.
