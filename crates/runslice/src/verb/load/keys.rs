//! Loads of tasks that wait for people, and what stands beside them.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::levels::Behaviour;
use load::{Error, Outcome, echo, levels, sampler, turnaround};
use model::Nanos;
use stats::JsonLines;

use super::builds::Sources;
use super::{To, duration};
use model::span;

/// What `runslice load echo` is asked.
#[derive(Debug, Args)]
pub struct Echo {
    /// Presses of the key.
    #[arg(long, value_name = "N", default_value_t = 240)]
    keys: u32,

    /// From one press to the next; each comes at a random moment of its period.
    #[arg(long, value_name = "SPAN", default_value = "33ms", value_parser = span::parse)]
    period: Nanos,

    /// CPU time of an answer.
    #[arg(long, value_name = "SPAN", default_value = "50us", value_parser = span::parse)]
    work: Nanos,

    /// Tasks that compute for ever.
    #[arg(long, value_name = "N", default_value_t = 0)]
    hogs: u32,

    /// Builds that begin anew when they end, each of a tree of its own, one job at a time.
    #[arg(long, value_name = "N", default_value_t = 0)]
    builds: u32,

    #[command(flatten)]
    sources: Sources,

    /// Who had the CPU for less than this between the wakeup and the turn was not in the way: a
    /// policy needs some time to take it away again.
    #[arg(long, value_name = "SPAN", default_value = "20us", value_parser = span::parse)]
    least: Nanos,

    /// Seed of the moments.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    pub(super) to: To,
}

impl Echo {
    pub(super) fn load(&self) -> echo::Echo {
        echo::Echo {
            samples: self.keys,
            period: duration(self.period),
            work: duration(self.work),
            hogs: self.hogs,
            builds: vec![self.sources.builder(); self.builds as usize],
            least: duration(self.least),
            seed: self.seed,
        }
    }
}

/// What `runslice load levels` is asked.
#[derive(Debug, Args)]
pub struct Levels {
    /// A task: `NAME: STEPS`, `NAME/NICE: STEPS`, or with the CPU that it is bound to
    /// `NAME/NICE@CPU: STEPS`. Steps are `run SPAN`, `sleep SPAN`, and `run` for ever. Behind a `;`
    /// begins the next phase; `500x` at its begin goes through it so often, and the last one is
    /// repeated.
    #[arg(long = "task", value_name = "TASK", required = true, value_parser = task)]
    tasks: Vec<Behaviour>,

    /// How long they go on.
    #[arg(long = "for", value_name = "SPAN", default_value = "10s", value_parser = span::parse)]
    time: Nanos,

    /// What is before this moment counts in no figure.
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = span::parse)]
    settle: Nanos,

    /// Follows every slice and what the policy says of it, which takes root.
    #[arg(long)]
    slices: bool,

    /// Writes what the tasks did and what the policy said of them to this file, as JSON lines.
    #[arg(long, value_name = "FILE", requires = "slices")]
    events: Option<PathBuf>,

    /// A real-time task takes the CPUs of the tasks for an instant that often: one that is alone
    /// begins to run again, and only then a policy says where it stands. Takes root.
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    sample: Option<Nanos>,
    /// Interrupts tasks for an instant behind each tick: a policy says where a task stands when it
    /// begins to run, and one that is alone begins once. O(1) holds interruptions against a task.
    #[arg(long, requires = "slices")]
    ticks: bool,

    #[command(flatten)]
    pub(super) to: To,
}

/// Reads a task's rule.
pub(super) fn task(text: &str) -> Result<Behaviour, String> {
    Behaviour::parse(text, |text| span::parse(text).map(duration))
}

impl Levels {
    pub(super) fn run(&self) -> Result<Outcome, Error> {
        let Some(path) = &self.events else {
            return self.load().run(None);
        };
        let failed = |source| Error::System {
            doing: format!("write {}", path.display()),
            source,
        };
        let file = File::create(path).map_err(failed)?;
        let mut sink = JsonLines::new(BufWriter::new(file));
        let outcome = self.load().run(Some(&mut sink))?;
        sink.close().map_err(failed)?;
        Ok(outcome)
    }

    fn load(&self) -> levels::Levels {
        levels::Levels {
            tasks: self.tasks.clone(),
            time: duration(self.time),
            settle: duration(self.settle),
            follow: self.slices,
            sample: self.sample.map(duration),
            ticks: self.ticks,
        }
    }
}

/// What `runslice load sampler` is asked.
#[derive(Debug, Args)]
pub struct Sampler {
    /// How long the script sleeps between two readings.
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span::parse)]
    every: Nanos,

    /// Intervals.
    #[arg(long, value_name = "N", default_value_t = 5)]
    intervals: u32,

    /// Tasks that compute for ever.
    #[arg(long, value_name = "N", default_value_t = 0)]
    hogs: u32,

    /// Tasks that compute for 0.3 ms and then wait for 2 to 12 ms, as for a disk.
    #[arg(long, value_name = "N", default_value_t = 0)]
    waiters: u32,

    /// How long these go on before the script begins.
    #[arg(long, value_name = "SPAN", default_value = "4s", value_parser = span::parse)]
    settle: Nanos,

    /// Seed of the waits.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    pub(super) to: To,
}

impl Sampler {
    pub(super) fn load(&self) -> sampler::Sampler {
        sampler::Sampler {
            every: duration(self.every),
            intervals: self.intervals,
            hogs: self.hogs,
            waiters: self.waiters,
            settle: duration(self.settle),
            seed: self.seed,
        }
    }
}

/// What `runslice load turnaround` is asked.
#[derive(Debug, Args)]
pub struct Turnaround {
    /// Tasks that compute.
    #[arg(long, value_name = "N", default_value_t = 16)]
    hogs: u32,

    /// CPU time of each.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span::parse)]
    hog_work: Nanos,

    /// Tasks that work a little and sleep, in turn.
    #[arg(long, value_name = "N", default_value_t = 16)]
    interactive: u32,

    /// Turns of each.
    #[arg(long, value_name = "N", default_value_t = 20)]
    turns: u32,

    /// Work of a turn.
    #[arg(long, value_name = "SPAN", default_value = "5ms", value_parser = span::parse)]
    turn_work: Nanos,

    /// Sleep of a turn.
    #[arg(long, value_name = "SPAN", default_value = "15ms", value_parser = span::parse)]
    turn_sleep: Nanos,

    /// Compilations, each of one file after the other, a process for each.
    #[arg(long, value_name = "N", default_value_t = 1)]
    compiles: u32,

    /// Files of each.
    #[arg(long, value_name = "N", default_value_t = 50)]
    files: u32,

    /// CPU time of a file.
    #[arg(long, value_name = "SPAN", default_value = "320ms", value_parser = span::parse)]
    file_work: Nanos,

    /// How long a file waits for the disk: a sleep.
    #[arg(long, value_name = "SPAN", default_value = "190ms", value_parser = span::parse)]
    file_wait: Nanos,

    #[command(flatten)]
    pub(super) to: To,
}

impl Turnaround {
    pub(super) fn load(&self) -> turnaround::Turnaround {
        let both =
            |work: Nanos, wait: Nanos| -> (Duration, Duration) { (duration(work), duration(wait)) };
        turnaround::Turnaround {
            hogs: self.hogs,
            hog_work: duration(self.hog_work),
            interactive: self.interactive,
            turns: self.turns,
            turn: both(self.turn_work, self.turn_sleep),
            compiles: self.compiles,
            files: self.files,
            file: both(self.file_work, self.file_wait),
        }
    }
}
