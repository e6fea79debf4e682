//! What recording costs: the kernel's own measurement of the programs, against all CPU time.

use std::io::Write as _;

use live::record::Depth;
use model::Nanos;
use stats::Millionths;
use traces::Tee;
use workload::RunSpec;

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
pub fn run(request: &Play, spec: &RunSpec) -> anyhow::Result<Status> {
    let mut table = Table::default()
        .names("recording")
        .numbers("program runs")
        .numbers("took")
        .numbers("each")
        .numbers("CPU time")
        .numbers("share")
        .numbers("lost");
    for (name, depth) in DEPTHS {
        // Only what recording costs is looked at.
        let (_, take) = request.play(spec, depth, &mut Tee::new(Vec::new()))?;
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
            take.totals.lost.to_string(),
        ]);
        match super::status(&spec.policy.name, &take) {
            Status::Done => {}
            status => return Ok(status),
        }
    }
    let mut to = output::open(request.to.output.as_deref())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_two_places() {
        assert_eq!(percent(Millionths(12_345)), "1.23 %");
        assert_eq!(percent(Millionths(1_000_000)), "100.00 %");
        assert_eq!(percent(Millionths(49)), "0.00 %");
    }
}
