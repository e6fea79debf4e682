//! What recording costs: the kernel's own measurement of the programs, against all CPU time.

use std::io::Write as _;

use live::record::Depth;
use model::{Nanos, PolicySpec};
use stats::Millionths;
use workload::Workload;

use super::Play;
use crate::exit::Status;
use crate::output;
use crate::table::Table;

/// The depths, as tables call them.
const DEPTHS: [(&str, Depth); 3] = [
    ("counters", Depth::Counters),
    ("histograms", Depth::Histograms),
    ("events", Depth::Events),
];

/// Plays at every depth, and writes what each took.
pub fn run(request: &Play, load: &Workload, spec: Option<&PolicySpec>) -> anyhow::Result<Status> {
    let mut table = Table::default()
        .names("recording")
        .numbers("program runs")
        .numbers("took")
        .numbers("each")
        .numbers("CPU time")
        .numbers("share")
        .numbers("lost");
    for (name, depth) in DEPTHS {
        let take = request.take(load, spec, depth)?;
        if let Some(failure) = &take.played.failure {
            anyhow::bail!("{failure}");
        }
        let runs: u64 = take.costs.iter().map(|cost| cost.runs).sum();
        let took: u64 = take.costs.iter().map(|cost| cost.ns).sum();
        let each = took.checked_div(runs).unwrap_or(0);
        table.row([
            name.to_owned(),
            runs.to_string(),
            Nanos::new(took).to_string(),
            Nanos::new(each).to_string(),
            known(take.busy, take.busy.to_string()),
            known(
                take.busy,
                percent(Millionths::of(took.into(), take.busy.get().into())),
            ),
            take.recording.totals.lost.to_string(),
        ]);
        if take.interrupted {
            return Ok(Status::Interrupted);
        }
        if take.ejected {
            return Ok(super::status(
                spec.map_or(super::OWN, |spec| &spec.name),
                &take,
            ));
        }
    }
    let mut to = output::open(request.output.as_deref())?;
    write!(to, "{table}")?;
    to.flush()?;
    Ok(Status::Done)
}

/// A kernel without `/proc/schedstat` does not say how much CPU time was used.
fn known(busy: Nanos, text: String) -> String {
    if busy.is_zero() { "-".to_owned() } else { text }
}

/// With two places: the limits are small.
fn percent(share: Millionths) -> String {
    let hundredths = (share.0 + 50) / 100;
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// CPU time that tasks have used between two readings of `/proc/schedstat`: the seventh number of
/// each CPU (version 17, kernel 6.18).
pub fn busy_between(before: &str, after: &str) -> Nanos {
    Nanos::new(cpu_time(after).saturating_sub(cpu_time(before)))
}

fn cpu_time(text: &str) -> u64 {
    let lines = text.lines().filter(|line| line.starts_with("cpu"));
    let field = |line: &str| line.split_whitespace().nth(7)?.parse::<u64>().ok();
    lines.filter_map(field).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_the_seventh_number_of_all_cpus() {
        let at = |one: u64, two: u64| {
            format!(
                "version 17\ntimestamp 5\ncpu0 1 0 3 4 5 6 {one} 8 9\ndomain0 MC 3 1 1 1 1 1 1 1\n\
                 cpu1 1 0 3 4 5 6 {two} 8 9\n"
            )
        };
        assert_eq!(busy_between(&at(100, 50), &at(700, 60)), Nanos::new(610));
        assert_eq!(busy_between("", &at(1, 2)), Nanos::new(3));
    }

    #[test]
    fn shares_have_two_places() {
        assert_eq!(percent(Millionths(12_345)), "1.23 %");
        assert_eq!(percent(Millionths(1_000_000)), "100.00 %");
        assert_eq!(percent(Millionths(49)), "0.00 %");
    }
}
