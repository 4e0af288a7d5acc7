//! The size of the program.

use std::path::Path;

use anyhow::{Context, Result};

use crate::table::{Bound, Figure, Table};

/// In mebibytes. The tables that unwinding needs are 1.9 of it: the price of a panic that stops the
/// plan of one configuration and not the operator.
const LARGEST: f64 = 12.0;

pub fn measure(operator: &Path, table: &mut Table) -> Result<()> {
    let bytes = operator
        .metadata()
        .with_context(|| format!("there is no operator at {}: build it first", operator.display()))?
        .len();
    let size = Figure::kibibytes(u32::try_from(bytes / 1024).unwrap_or(u32::MAX));
    table.row("size of the program", &size, Bound::Under(LARGEST), "50 MiB");
    Ok(())
}
