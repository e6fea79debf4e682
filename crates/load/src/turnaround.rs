//! Hogs, interactive tasks and compilations that begin together: when each kind is done.
//!
//! Source: section 4 of "A comparison of interactivity in the Linux 2.6 scheduler and an MLFQ
//! scheduler" (Torrey, Coleman and Miller, 2007): tasks that compute for a fixed time, tasks that
//! mostly sleep, and compilations, of whose time about a third is waiting for the disk.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::processes::{Gate, Processes};
use super::{Error, LoadOutcome, Usage, count};
use crate::play::shared::MemoryPlan;
use crate::play::spin::Spin;
use crate::play::sys::{self, ChildEnd, Forked};
use live::record;

/// What runs together.
#[derive(Clone, Debug)]
pub struct Turnaround {
    /// Tasks that compute.
    pub hogs: u32,
    /// CPU time of each.
    pub hog_work: Duration,
    /// Tasks that work a little and sleep, in turn.
    pub interactive: u32,
    /// Turns of each.
    pub turns: u32,
    /// Work and sleep of a turn.
    pub turn: (Duration, Duration),
    /// Compilations, each of one file after the other, a process for each.
    pub compiles: u32,
    /// Files of each.
    pub files: u32,
    /// CPU time of a file and how long it waits for the disk.
    pub file: (Duration, Duration),
}

/// The kinds, by name.
const KINDS: [&str; 3] = ["hogs", "interactive", "compiles"];
/// Pieces of a file's work, between which it waits.
const PIECES: u32 = 4;

impl Turnaround {
    /// Runs all to their ends.
    ///
    /// # Errors
    /// When nothing is to run, or a process cannot be started.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        let numbers = [self.hogs, self.interactive, self.compiles];
        if numbers == [0; 3] {
            return Err(Error::Size("at least one task is to run".to_owned()));
        }
        let total = numbers.iter().map(|number| *number as usize).sum();
        let mut plan = MemoryPlan::default();
        plan.longs(total);
        let ends = plan.build()?.longs;
        let spin = Spin::calibrate();
        let mut processes = Processes::new()?;
        let mut at = 0;
        for (kind, number) in numbers.iter().enumerate() {
            for _ in 0..*number {
                let end = &ends[at];
                at += 1;
                processes.spawn(KINDS[kind], |gate| self.act(kind, spin, gate, end))?;
            }
        }
        // Before: whoever opens the gate is a task among hogs, and may go on a second later.
        let began = record::clock();
        processes.open(total)?;
        let usage = processes.wait()?;
        Ok(tell(numbers, began, ends, usage))
    }

    fn act(&self, kind: usize, spin: Spin, gate: Gate, end: &AtomicU64) -> io::Result<()> {
        sys::no_timer_slack();
        gate.pass();
        match kind {
            0 => spin.burn(nanos(self.hog_work)),
            1 => {
                for _ in 0..self.turns {
                    spin.burn(nanos(self.turn.0));
                    sleep(self.turn.1);
                }
            }
            _ => {
                for _ in 0..self.files {
                    self.compile(spin)?;
                }
            }
        }
        end.store(record::clock(), Ordering::SeqCst);
        Ok(())
    }

    /// A file: a process of its own that works and waits for the disk in turn.
    fn compile(&self, spin: Spin) -> io::Result<()> {
        if sys::fork()? == Forked::Child {
            sys::die_with_parent();
            for _ in 0..PIECES {
                // As for a disk: a sleep that nothing but its end may end.
                if sys::sleep_deeply(nanos(self.file.1 / PIECES)).is_err() {
                    // A signal is what the parent sees.
                    std::process::abort();
                }
                spin.burn(nanos(self.file.0 / PIECES));
            }
            sys::exit(0);
        }
        match sys::wait_child(true) {
            Some(ChildEnd::Exited) => Ok(()),
            _ => Err(io::Error::other("a compilation was ended")),
        }
    }
}

/// When the last of each kind was done, and all.
fn tell(numbers: [u32; 3], began: u64, ends: &[AtomicU64], usage: Usage) -> LoadOutcome {
    let ends: Vec<u64> = ends.iter().map(|end| end.load(Ordering::SeqCst)).collect();
    let seconds = |end: u64| Duration::from_nanos(end.saturating_sub(began)).as_secs_f64();
    let mut outcome = LoadOutcome::default();
    outcome.add(
        "time",
        "s",
        seconds(ends.iter().copied().max().unwrap_or(began)),
    );
    let mut rest = ends.as_slice();
    for (kind, number) in KINDS.iter().zip(numbers) {
        let (own, others) = rest.split_at(number as usize);
        rest = others;
        if let Some(last) = own.iter().max() {
            outcome.add(format!("{kind}_time"), "s", seconds(*last));
            let sum: f64 = own.iter().map(|end| seconds(*end)).sum();
            outcome.add(format!("{kind}_mean"), "s", sum / count(own.len() as u64));
        }
    }
    outcome.add_usage(usage);
    outcome
}

fn sleep(time: Duration) {
    if !time.is_zero() {
        sys::sleep_until(record::clock() + nanos(time));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Turnaround {
        let at = Duration::from_millis;
        Turnaround {
            hogs: 2,
            hog_work: at(20),
            interactive: 1,
            turns: 3,
            turn: (at(1), at(2)),
            compiles: 1,
            files: 2,
            file: (at(4), at(4)),
        }
    }

    #[test]
    fn all_do_their_work_and_the_whole_ends_with_the_last() {
        let outcome = load().run().unwrap();
        let of = |name: &str| outcome.value(name).unwrap();
        let last = KINDS
            .iter()
            .map(|kind| of(&format!("{kind}_time")))
            .fold(0.0, f64::max);
        assert!((of("time") - last).abs() < 1e-9, "{outcome:?}");
        // Work and sleep of the interactive one: 9 ms; of the compilation 16 ms.
        assert!(of("interactive_time") >= 0.009 - 0.001, "{outcome:?}");
        assert!(of("compiles_time") >= 0.016 - 0.001, "{outcome:?}");
        // 40 ms of hogs, 3 of the interactive one, 8 of compilers.
        assert!(of("user") + of("system") > 0.04, "{outcome:?}");
        let alone = Turnaround {
            hogs: 1,
            interactive: 0,
            compiles: 0,
            ..load()
        };
        assert_eq!(alone.run().unwrap().value("compiles_time"), None);
    }

    #[test]
    fn nothing_is_not_a_load() {
        let none = Turnaround {
            hogs: 0,
            interactive: 0,
            compiles: 0,
            ..load()
        };
        assert!(none.run().is_err());
    }
}
