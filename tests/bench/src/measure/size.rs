//! The size of the program.

use std::path::Path;

use anyhow::{Context, Result};

use crate::table::{Bound, Figure, Table};

pub fn measure(operator: &Path, table: &mut Table) -> Result<()> {
    let bytes = operator
        .metadata()
        .with_context(|| format!("there is no operator at {}: build it first", operator.display()))?
        .len();
    let size = Figure::kibibytes(u32::try_from(bytes / 1024).unwrap_or(u32::MAX));
    table.row("size of the program", &size, Bound::Under(10.0), "50 MiB");
    Ok(())
}
