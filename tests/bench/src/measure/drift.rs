//! From somebody's edit of a target until it is told, and from its end until that is told.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::bench::{Bench, tell};
use crate::counts::{self, Counts};
use crate::observer::Observer;
use crate::table::{Bound, Figure, Table};

const TIMES: usize = 20;

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    tell("drift");
    let mut observer = bench.observe();
    let (mut there, mut back) = (Series::default(), Series::default());
    for _ in 0..TIMES {
        there.add(bench, &mut observer, json!({"deschedulingIntervalSeconds": 3600}), "Drifted").await?;
        back.add(bench, &mut observer, json!({"deschedulingIntervalSeconds": 60}), "Completed").await?;
    }
    let figure = format!("a target's edit -> Drifted, {TIMES} times");
    table.row(figure, &Figure::times(&there.times), Bound::Under(46.0), "46 ms");
    table.row("  requests", &there.figure(Counts::requests), Bound::Under(12.0), "12");
    table.row("  status writes", &there.figure(Counts::status_writes), Bound::Under(2.0), "2");
    let figure = format!("the edit taken back -> Completed, {TIMES} times");
    table.row(figure, &Figure::times(&back.times), Bound::None, "never");
    table.row("  requests", &back.figure(Counts::requests), Bound::None, "");
    table.row("  status writes", &back.figure(Counts::status_writes), Bound::None, "");
    table.note(format!("Drifted: {}. Completed again: {}.", there.told(), back.told()));
    Ok(())
}

#[derive(Default)]
pub struct Series {
    pub times: Vec<Duration>,
    counts: Vec<Counts>,
}

impl Series {
    pub async fn add(&mut self, bench: &Bench, observer: &mut Observer, spec: Value, phase: &str) -> Result<()> {
        observer.forget();
        let mark = bench.stage.plane().audit().mark();
        let sent = bench.edit_descheduler(spec).await?;
        let seen = observer.wait(phase, 0).await?;
        self.times.push(seen.at - sent);
        self.counts.push(counts::settled(&bench.stage, &mark).await?);
        Ok(())
    }

    pub fn figure(&self, count: impl Fn(&Counts) -> usize) -> Figure {
        Figure::counts(self.counts.iter().map(count))
    }

    /// That many of a hundred took no longer.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    fn told(&self) -> String {
        self.counts.last().map(Counts::told).unwrap_or_default()
    }
}
