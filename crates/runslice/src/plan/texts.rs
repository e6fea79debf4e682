//! How much the names and knobs of a sweep's runs are together. Each run has its own: a file of
//! some kilobytes could ask for more of them than any computer holds.

use anyhow::anyhow;
use model::{Advised, PolicySpec};

use super::{Cell, Source, Table};

/// Most bytes of the names and knobs of all runs together.
const MOST: usize = 1 << 30;

/// Refuses runs whose names and knobs nobody can have written, before they are made.
///
/// # Errors
/// When they have more than [`MOST`] bytes.
pub(super) fn check(bytes: usize, place: &str) -> anyhow::Result<()> {
    if bytes > MOST {
        return Err(anyhow!(Advised::new(
            format!(
                "{place}: the names and knobs of all runs have more than {} MiB",
                MOST >> 20
            ),
            "split the sweep, or shorten them"
        )));
    }
    Ok(())
}

/// As [`check`], of the combinations of the lists of each policy or workload, whose values have as
/// many bytes as `long` says.
///
/// # Errors
/// The errors of [`check`]; the message names the table.
pub(super) fn check_lists<T>(
    table: &Table<T>,
    long: fn(&T) -> usize,
    source: &Source<'_>,
) -> anyhow::Result<()> {
    for (name, lists) in table {
        let longest = lists.iter().map(|(name, values)| {
            let values = values.iter().map(long);
            name.len() + values.max().unwrap_or(0)
        });
        let longest: usize = longest.sum();
        let count = lists.values().map(Vec::len);
        let count = count.fold(1_usize, usize::saturating_mul);
        check(longest.saturating_mul(count), &source.of(name))?;
    }
    Ok(())
}

/// Bytes of a policy's name and of what is set in it.
pub(super) fn of(policy: &PolicySpec) -> usize {
    let set = policy
        .set
        .iter()
        .map(|(name, value)| name.len() + value.len());
    policy.name.len() + set.sum::<usize>()
}

/// Bytes of a workload's name and of the names of what is set in it.
pub(super) fn of_load(name: &str, scale: &[(String, i64)]) -> usize {
    let scale = scale.iter().map(|(name, _)| name.len());
    name.len() + scale.sum::<usize>()
}

impl Cell {
    /// Bytes of its names and knobs.
    pub(super) fn texts(&self) -> usize {
        // The knobs stand in it as in the file, too.
        2 * of(&self.policy_spec) + of_load(&self.workload, &self.scale)
    }
}
