//! The table that is printed: figures, bounds, and whether they are kept.

use std::fmt;
use std::time::Duration;

/// All that was measured.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
    notes: Vec<String>,
}

struct Row {
    figure: String,
    ours: String,
    bound: String,
    go: &'static str,
    verdict: &'static str,
}

/// What a figure must be.
#[derive(Clone, Copy)]
pub enum Bound {
    /// Not more than this.
    AtMost(f64),
    /// Less than this.
    Under(f64),
    /// Only told.
    None,
}

/// What a figure counts.
#[derive(Clone, Copy)]
pub enum Unit {
    Count,
    Milliseconds,
    Mebibytes,
}

/// One or more measurements of the same thing.
pub struct Figure {
    samples: Vec<f64>,
    unit: Unit,
}

impl Figure {
    pub fn count(count: usize) -> Self {
        Self::counts([count])
    }

    pub fn counts(counts: impl IntoIterator<Item = usize>) -> Self {
        let exact = |count| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        Self { samples: sorted(counts.into_iter().map(exact)), unit: Unit::Count }
    }

    pub fn times(times: &[Duration]) -> Self {
        Self { samples: sorted(times.iter().map(|time| time.as_secs_f64() * 1000.0)), unit: Unit::Milliseconds }
    }

    pub fn kibibytes(kibibytes: u32) -> Self {
        Self { samples: vec![f64::from(kibibytes) / 1024.0], unit: Unit::Mebibytes }
    }

    /// The lower one of the two in the middle, if there are two.
    fn median(&self) -> f64 {
        self.samples.get(self.samples.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }
}

fn sorted(samples: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut samples: Vec<_> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Amount(self.median(), self.unit))?;
        match (self.samples.first(), self.samples.last()) {
            (Some(least), Some(most)) if least < most => {
                write!(f, " ({} to {})", Plain(*least, self.unit), Plain(*most, self.unit))
            }
            _ => Ok(()),
        }
    }
}

struct Amount(f64, Unit);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.1 {
            Unit::Count => "",
            Unit::Milliseconds => " ms",
            Unit::Mebibytes => " MiB",
        };
        write!(f, "{}{unit}", Plain(self.0, self.1))
    }
}

struct Plain(f64, Unit);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Unit::Count => write!(f, "{:.0}", self.0),
            Unit::Milliseconds | Unit::Mebibytes if self.0.fract() == 0.0 => write!(f, "{:.0}", self.0),
            Unit::Milliseconds | Unit::Mebibytes => write!(f, "{:.1}", self.0),
        }
    }
}

impl Table {
    /// Adds a figure; the median counts. `go` is what the Go program was measured at, on a machine
    /// like this.
    pub fn row(&mut self, figure: impl Into<String>, ours: &Figure, bound: Bound, go: &'static str) {
        let (text, kept) = match bound {
            Bound::AtMost(most) => (format!("at most {}", Amount(most, ours.unit)), Some(ours.median() <= most)),
            Bound::Under(limit) => (format!("under {}", Amount(limit, ours.unit)), Some(ours.median() < limit)),
            Bound::None => (String::new(), None),
        };
        let verdict = kept.map_or("", |kept| if kept { "kept" } else { "MISSED" });
        self.rows.push(Row { figure: figure.into(), ours: ours.to_string(), bound: text, go, verdict });
    }

    /// Adds a line under the table.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let head = ["figure", "ours", "bound", "Go program", ""].map(str::to_owned);
        let cells = self.rows.iter().map(|row| {
            [row.figure.clone(), row.ours.clone(), row.bound.clone(), row.go.to_owned(), row.verdict.to_owned()]
        });
        let cells: Vec<_> = std::iter::once(head).chain(cells).collect();
        let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths = [0, 1, 2, 3].map(width);
        for (number, row) in cells.iter().enumerate() {
            let line: String = widths.iter().zip(row).map(|(width, cell)| format!("{cell:<width$}  ")).collect();
            writeln!(f, "{}", format!("{line}{}", row[4]).trim_end())?;
            if number == 0 {
                writeln!(f, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len() + "MISSED".len()))?;
            }
        }
        writeln!(f, "\nMedians, with the least and the most where they differ. Watches are not counted as requests.")?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}
