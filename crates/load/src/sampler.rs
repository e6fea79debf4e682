//! A script that reads the kernel's counters and sleeps, in turn, beside a load: how long its
//! intervals really are.
//!
//! Source: section 6 of "The Cursor Wiggles Faster" (Lindsley, Linux Symposium 2004): loops that
//! sleep for 10 s take 15 to 20 s on a loaded machine, so that rates need the timestamps.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::Rng;

use super::processes::{self, Gate, Processes};
use super::{Error, LoadOutcome, count, percent};
use crate::play::spin::Spin;
use crate::play::sys;
use live::record;

/// What the script reads; kernels without `CONFIG_SCHEDSTATS` have none.
const COUNTERS: &str = "/proc/schedstat";
/// Work of a waiter between two waits, nanoseconds.
const TURN_NS: u64 = 300_000;
/// Its shortest and longest wait, nanoseconds.
const WAIT_NS: (u64, u64) = (2_000_000, 12_000_000);

/// A sampler and what it looks at.
#[derive(Clone, Debug)]
pub struct LoadSampler {
    /// How long the script sleeps between two readings.
    pub every: Duration,
    /// Intervals, at least 1.
    pub intervals: u32,
    /// Tasks that compute for ever.
    pub hogs: u32,
    /// Tasks with short turns, which wait as for a disk.
    pub waiters: u32,
    /// How long these go on before the script begins.
    pub settle: Duration,
    /// Seed of the waits.
    pub seed: u64,
}

/// One reading of the script.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    /// Since the machine has booted, with its idle time.
    at: Duration,
    /// What tasks have run, on all CPUs.
    ran: Duration,
}

impl LoadSampler {
    /// Samples.
    ///
    /// # Errors
    /// When there is no interval, the script fails, or the kernel has no such counters.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.intervals == 0 || self.every.is_zero() {
            let wrong = "there is at least one interval, and it takes some time";
            return Err(Error::Size(wrong.to_owned()));
        }
        // Else the script would fail without a word of what lacks.
        File::open(COUNTERS).map_err(Error::doing(format!("read {COUNTERS}")))?;
        let spin = Spin::calibrate();
        let mut processes = Processes::new()?;
        for _ in 0..self.hogs {
            processes.spawn("hog", |gate| compute(spin, gate))?;
        }
        for number in 0..self.waiters {
            let rng = Rng::new(self.seed, u64::from(number));
            processes.spawn("waiter", |gate| wait(spin, gate, rng))?;
        }
        if processes.len() > 0 {
            processes.open(processes.len())?;
            std::thread::sleep(self.settle);
        }
        let mut script = Command::new("sh");
        script
            .args(["-c", &self.script()])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let (_, said) = processes::output("sh", "dash", &mut script)?;
        processes.check()?;
        processes.end();
        let readings = readings(&said);
        if readings.len() != self.intervals as usize + 1 {
            return Err(Error::Tool {
                program: "cat".to_owned(),
                words: format!("it gave {} readings", readings.len()),
            });
        }
        Ok(self.tell(&readings, record::cpus()))
    }

    /// As the document's: reads with a program of its own, and sleeps.
    fn script(&self) -> String {
        let cat = format!("cat /proc/uptime {COUNTERS}");
        let (intervals, every) = (self.intervals, self.every.as_secs_f64());
        format!(
            "i=0; while [ $i -lt {intervals} ]; do {cat}; sleep {every}; i=$((i+1)); done; {cat}"
        )
    }

    fn tell(&self, readings: &[Reading], cpus: u16) -> LoadOutcome {
        let pairs = || readings.windows(2);
        let mut outcome = LoadOutcome::default();
        let lengths: Vec<f64> = pairs()
            .map(|two| (two[1].at.saturating_sub(two[0].at)).as_secs_f64())
            .collect();
        let sum: f64 = lengths.iter().sum();
        let mean = sum / count(lengths.len() as u64);
        let asked = self.every.as_secs_f64();
        outcome.add("interval_mean", "s", mean);
        outcome.add(
            "interval_min",
            "s",
            lengths.iter().copied().fold(f64::INFINITY, f64::min),
        );
        outcome.add(
            "interval_max",
            "s",
            lengths.iter().copied().fold(0.0, f64::max),
        );
        outcome.add("stretch", "", mean / asked);
        let (first, last) = (readings[0], readings[readings.len() - 1]);
        let ran = last.ran.saturating_sub(first.ran);
        let whole = last.at.saturating_sub(first.at);
        outcome.add("busy", "%", percent(ran, whole * cpus.into()));
        let believed = self.every * self.intervals * cpus.into();
        outcome.add("busy_by_asked_interval", "%", percent(ran, believed));
        outcome
    }
}

/// What the script has printed: a line of `/proc/uptime`, then `/proc/schedstat`.
fn readings(said: &str) -> Vec<Reading> {
    let mut readings: Vec<Reading> = Vec::new();
    for line in said.lines() {
        let Some(first) = line.split_whitespace().next() else {
            continue;
        };
        if let (Ok(at), true) = (first.parse(), first.contains('.')) {
            readings.push(Reading {
                at: Duration::try_from_secs_f64(at).unwrap_or_default(),
                ran: Duration::ZERO,
            });
        } else if let Some(reading) = readings.last_mut()
            && let Some(ran) = record::busy_of(line)
        {
            reading.ran += Duration::from_nanos(ran);
        }
    }
    readings
}

/// Never returns by itself.
fn compute(spin: Spin, gate: Gate) -> io::Result<()> {
    gate.pass();
    loop {
        spin.burn(1_000_000_000);
    }
}

/// Never returns by itself.
fn wait(spin: Spin, gate: Gate, mut rng: Rng) -> io::Result<()> {
    sys::no_timer_slack();
    gate.pass();
    loop {
        let (least, most) = WAIT_NS;
        sys::sleep_until(record::clock() + least + rng.below(most - least));
        spin.burn(TURN_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(intervals: u32, every_ms: u64) -> LoadSampler {
        LoadSampler {
            every: Duration::from_millis(every_ms),
            intervals,
            hogs: 1,
            waiters: 1,
            settle: Duration::from_millis(20),
            seed: 1,
        }
    }

    #[test]
    fn intervals_are_read_from_what_the_script_prints() {
        let reading = |at: &str, ran: [u64; 2]| {
            let [a, b] = ran;
            format!(
                "{at} 9.00\nversion 17\ntimestamp 4295\ncpu0 0 0 0 0 0 0 {a} 5 9\n\
                 domain0 MC 3 1 2 3\ncpu1 0 0 0 0 0 0 {b} 5 9\n"
            )
        };
        let said = [
            reading("100.00", [1_000_000_000, 0]),
            reading("101.50", [2_000_000_000, 500_000_000]),
            reading("104.00", [4_000_000_000, 1_000_000_000]),
        ];
        let readings = readings(&said.concat());
        assert_eq!(readings.len(), 3);
        let outcome = sampler(2, 1000).tell(&readings, 2);
        let value = |name| outcome.value(name).unwrap();
        assert_eq!(value("interval_mean"), 2.0);
        assert_eq!((value("interval_min"), value("interval_max")), (1.5, 2.5));
        assert_eq!(value("stretch"), 2.0);
        // 4 s of 2 CPUs in 4 s, and in the 2 s that were asked for.
        assert_eq!(
            (value("busy"), value("busy_by_asked_interval")),
            (50.0, 100.0)
        );
    }

    #[test]
    fn nothing_to_sample_is_refused() {
        assert!(sampler(0, 100).run().is_err());
        assert!(sampler(1, 0).run().is_err());
    }
}
