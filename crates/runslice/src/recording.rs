//! A recording as a workload: the file that `--events` wrote.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::say::say;
use anyhow::Context as _;
use workload::{CostScale, Recorded, Wakeups, Workload};

/// Reads the recording at `path`, and says what became of its wakeups.
///
/// # Errors
/// When the file cannot be read, or is no recording; the message names file and line.
pub fn load(path: &Path, scale: CostScale) -> anyhow::Result<Workload> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let mut recorded = Recorded::new();
    stats::replay(BufReader::new(file), &mut recorded).with_context(|| name.clone())?;
    let wakeups = recorded.wakeups();
    let workload = recorded.into_workload(&name, scale);
    let workload = workload.filter(|workload| !workload.groups.is_empty());
    let workload = workload.with_context(|| format!("{name}: no task ran in this recording"))?;
    say("from", &told(wakeups));
    Ok(workload)
}

fn told(wakeups: Wakeups) -> String {
    let Wakeups {
        by_tasks,
        by_timers,
    } = wakeups;
    let all = by_tasks + by_timers;
    let share = stats::Value::Share(stats::Millionths::of(by_timers.into(), all.into()));
    format!(
        "{all} wakeups: {by_tasks} wait for the task that woke, {by_timers} stay timers ({share})"
    )
}

/// A factor such as `0.5`, up to 1000 and to a millionth.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_scale(text: &str) -> Result<CostScale, String> {
    let wrong = || format!("`{text}` is no number from 0.000001 to 1000, such as 0.5");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let whole: u32 = whole.parse().map_err(|_| wrong())?;
    let part: u32 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let millionths = whole
        .checked_mul(1_000_000)
        .and_then(|whole| whole.checked_add(part));
    match millionths {
        Some(millionths @ 1..=1_000_000_000) => Ok(CostScale::millionths(millionths)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_a_decimal_number() {
        let cases = [("0.5", 500_000), ("1", 1_000_000), ("2.000001", 2_000_001)];
        for (text, want) in cases {
            assert_eq!(parse_scale(text), Ok(CostScale::millionths(want)), "{text}");
        }
        for bad in [
            "",
            "0",
            "-1",
            ".5",
            "1e3",
            "1001",
            "0.0000001",
            "1.2.3",
            "99999999999",
        ] {
            assert!(
                parse_scale(bad).unwrap_err().contains("such as 0.5"),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_share_of_timers_is_said() {
        let wakeups = Wakeups {
            by_tasks: 3,
            by_timers: 1,
        };
        let want = "4 wakeups: 3 wait for the task that woke, 1 stay timers (25.0 %)";
        assert_eq!(told(wakeups), want);
    }
}
