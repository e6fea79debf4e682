//! How many jiffies a second a kernel counts: what its own statistics tell of it.
//!
//! The timestamp is in jiffies, and no version says how long one is. To take every kernel of today
//! for one of 250 makes 40 s of 10 s.

use super::interval::Interval;
use super::layout::TimeUnit;
use super::snapshot::Snapshot;

/// The values that kernels can be built with on most machines (`kernel/Kconfig.hz`), the more
/// usual ones first.
const USUAL: [u32; 4] = [250, 1_000, 300, 100];

/// Spans between two readings that people ask for, in seconds. Among them no one is four times
/// another, so that 250 and 1000 are told apart.
const ASKED: [u64; 6] = [1, 2, 5, 10, 30, 60];

/// The first jiffy beyond 32 bits.
const WORD: u64 = 1 << 32;

/// Jiffies from the boot to a clock's `timestamp`. The clock begins five minutes before it exceeds
/// 32 bits; on a kernel of 32 bits it then goes on at 0.
pub(super) fn uptime(timestamp: u64, hz: u32) -> u64 {
    let begin = WORD.saturating_sub(300 * u64::from(hz));
    timestamp
        .checked_sub(begin)
        .unwrap_or(timestamp + (WORD - begin))
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HzFound {
    /// The likeliest number of jiffies a second.
    pub hz: u32,
    /// All usual values that fit, that one included; the likeliest first.
    pub fitting: Vec<u32>,
}

/// Collects what snapshots tell of their kernel's HZ.
#[derive(Clone, Debug, Default)]
pub struct HzEvidence {
    /// Values that a snapshot contradicts.
    refuted: Vec<u32>,
    /// The shortest time between two snapshots, in jiffies.
    shortest: Option<u64>,
    /// Jiffies of all intervals.
    jiffies: u64,
    /// CPU time of all intervals in nanoseconds, of the CPU that ran longest.
    run_ns: u64,
    /// Before 2.6.13 the usual machine had 1000.
    old: bool,
}

impl HzEvidence {
    /// Takes a snapshot into account: no CPU has run for longer than the machine has been up, and
    /// no clock is before its first jiffy.
    pub fn snapshot(&mut self, snapshot: &Snapshot) {
        /// What the clocks of times and of jiffies may differ by at boot.
        const SLACK_NS: u128 = 1_000_000_000;
        let timestamp = snapshot.timestamp();
        self.old |= snapshot.layout().version <= 14;
        let earliest = WORD - 300 * 1_000;
        if timestamp < earliest {
            return;
        }
        let run = snapshot.cpus().filter_map(|cpu| cpu.get("cpu_time")).max();
        let run = run.filter(|_| snapshot.layout().time_unit == TimeUnit::Nanoseconds);
        for hz in USUAL {
            let up = uptime(timestamp, hz);
            let up_ns = u128::from(up) * 1_000_000_000 / u128::from(hz);
            let before_boot = timestamp < WORD - 300 * u64::from(hz);
            let ran_longer = run.is_some_and(|run| u128::from(run) > up_ns + SLACK_NS);
            if (before_boot || ran_longer) && !self.refuted.contains(&hz) {
                self.refuted.push(hz);
            }
        }
    }

    /// Takes an interval between two neighbouring snapshots into account.
    pub fn interval(&mut self, interval: &Interval) {
        let jiffies = interval.jiffies();
        let shortest = self.shortest.map_or(jiffies, |known| known.min(jiffies));
        self.shortest = Some(shortest);
        self.jiffies = self.jiffies.saturating_add(jiffies);
        if interval.layout().time_unit == TimeUnit::Nanoseconds {
            let run = |name| {
                let times = interval.cpus.iter();
                times
                    .filter_map(|cpu| cpu.get(interval.layout(), name))
                    .max()
            };
            let run = u64::try_from(run("cpu_time").unwrap_or(0)).unwrap_or(u64::MAX);
            self.run_ns = self.run_ns.saturating_add(run);
        }
    }

    /// Values of HZ that fit all snapshots. First come those that make the time between two
    /// readings one that people ask for, and then the usual ones. Up to version 14 that is 1000, as
    /// on i386 with Linux 2.6.
    #[must_use]
    pub fn find(&self) -> HzFound {
        let mut fitting: Vec<u32> = USUAL.into_iter().filter(|&hz| self.fits(hz)).collect();
        if fitting.is_empty() {
            fitting = USUAL.to_vec();
        }
        fitting.sort_by_key(|&hz| {
            let first = if self.old {
                hz == 1_000
            } else {
                self.as_asked(hz)
            };
            !first
        });
        HzFound {
            hz: fitting[0],
            fitting,
        }
    }

    /// A turn counts when it ends, so one that began before the first snapshot counts whole: a
    /// tenth and a second more than there was are possible.
    fn fits(&self, hz: u32) -> bool {
        let length_ns = u128::from(self.jiffies) * 1_000_000_000 / u128::from(hz);
        let most = length_ns * 11 / 10 + 1_000_000_000;
        !self.refuted.contains(&hz) && u128::from(self.run_ns) <= most
    }

    /// Whether the shortest interval is a span that people ask for; a loaded machine sleeps a
    /// little longer.
    fn as_asked(&self, hz: u32) -> bool {
        let hz = u64::from(hz);
        self.shortest.is_some_and(|shortest| {
            ASKED.iter().any(|seconds| {
                let jiffies = seconds * hz;
                (jiffies - jiffies / 50..=jiffies + jiffies / 20).contains(&shortest)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedstat::Layout;

    /// Evidence of snapshots of version 17 with one CPU: timestamp and run time.
    fn found(snapshots: &[(u64, u64)]) -> HzFound {
        let mut evidence = HzEvidence::default();
        let snapshots = snapshots.iter().map(|&(timestamp, run_ns)| {
            let mut snapshot = Snapshot::new(Layout::of(17).unwrap(), timestamp);
            snapshot.push_cpu(0, &[0, 0, 0, 0, 0, 0, run_ns, 0, 1]);
            snapshot
        });
        let snapshots: Vec<Snapshot> = snapshots.collect();
        for snapshot in &snapshots {
            evidence.snapshot(snapshot);
        }
        for pair in snapshots.windows(2) {
            evidence.interval(&Interval::new(&pair[0], &pair[1]).unwrap());
        }
        evidence.find()
    }

    #[test]
    fn a_log_of_each_ten_seconds_is_one_of_ten_seconds_on_every_usual_kernel() {
        for hz in [250, 300, 1_000] {
            let at = |n: u64| (WORD + 7 + n * (10 * hz + 3), n * 1_000_000);
            let log = [0, 1, 2].map(at);
            assert_eq!(u64::from(found(&log).hz), hz);
        }
        // And one of each second.
        assert_eq!(found(&[(WORD + 7, 0), (WORD + 1_008, 5)]).hz, 1_000);
        assert_eq!(found(&[(WORD + 7, 0), (WORD + 259, 5)]).hz, 250);
    }

    #[test]
    fn a_cpu_does_not_run_for_longer_than_the_interval() {
        // 7 s of a busy CPU in 1750 jiffies: with 1000 of them a second it would be 1.75 s.
        let second = 1_000_000_000;
        let found = found(&[(1 << 40, 0), ((1 << 40) + 1_750, 7 * second)]);
        assert_eq!((found.hz, found.fitting.contains(&1_000)), (250, false));
    }

    #[test]
    fn a_clock_is_not_before_its_boot_and_no_cpu_ran_before_it() {
        // 250 s after boot with HZ=1000; with 250 it would be 125 s before it.
        let found_early = found(&[(WORD - 50_000 * 2, 0)]);
        assert_eq!(found_early.fitting, [1_000]);
        // Up for 1000 s, of which a CPU ran 900 s; with 1000 a second it would be 475 s.
        let found = found(&[(WORD + 700 * 250, 900_000_000_000)]);
        assert_eq!(found.fitting, [250, 100]);
    }

    #[test]
    fn old_kernels_have_1000() {
        let mut evidence = HzEvidence::default();
        evidence.snapshot(&Snapshot::new(Layout::of(4).unwrap(), 7));
        assert_eq!(evidence.find().hz, 1_000);
        assert_eq!(HzEvidence::default().find().hz, 250);
    }

    #[test]
    fn the_time_since_boot_goes_on_over_the_end_of_32_bits() {
        assert_eq!(uptime(WORD - 300_000 + 5, 1_000), 5);
        assert_eq!(uptime(WORD + 5, 1_000), 300_005);
        assert_eq!(uptime(5, 250), 75_005);
    }
}
