//! One file for each group of figures.

pub mod apply;
pub mod catalogue;
pub mod drift;
pub mod engine;
pub mod hostile;
pub mod memory;
pub mod plan;
pub mod rest;
pub mod size;
pub mod start;
