//! Loads of tasks that wait for people, and what stands beside them.

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use load::levels::Behaviour;
use load::{Error, LoadOutcome, echo, levels, sampler, turnaround};
use model::Nanos;
use traces::JsonLines;

use super::builds::Sources;
use super::{To, duration};
use model::span;

/// Arguments of `runslice load echo`.
#[derive(Debug, Args)]
pub struct Echo {
    /// Number of key presses.
    #[arg(long, value_name = "N", default_value_t = 240)]
    keys: u32,

    /// Average time between two key presses. Each press comes at a random moment of its period.
    #[arg(long, value_name = "TIME", default_value = "33ms", value_parser = span::parse)]
    period: Nanos,

    /// CPU time for each answer.
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = span::parse)]
    work: Nanos,

    /// Tasks that compute without end, beside the key presses.
    #[arg(long, value_name = "N", default_value_t = 0)]
    hogs: u32,

    /// Builds beside the key presses. Each has its own source tree, runs one job at a time, and
    /// starts again when it ends.
    #[arg(long, value_name = "N", default_value_t = 0)]
    builds: u32,

    #[command(flatten)]
    sources: Sources,

    /// Least CPU time of other tasks that counts as the reason why an answer waited.
    ///
    /// As root, the results group the answers by the tasks that had the CPU while the program
    /// waited: hogs, builds, the kernel, others, or none. Less CPU time than this counts as none,
    /// because a policy needs some time to preempt a task.
    #[arg(long, value_name = "TIME", default_value = "20us", value_parser = span::parse)]
    least: Nanos,

    /// Seed for the moments of the key presses.
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

/// Arguments of `runslice load levels`.
#[derive(Debug, Args)]
pub struct Levels {
    /// Task to start: `NAME: STEPS`, with a nice value `NAME/NICE: STEPS`, or bound to a CPU
    /// `NAME/NICE@CPU: STEPS`. May be repeated.
    ///
    /// Steps are `run TIME`, `sleep TIME`, and `run` without end. A `;` separates phases. A phase
    /// with `500x` before its steps repeats them 500 times. The last phase repeats until the end.
    ///
    /// Examples: `editor: run 2ms sleep 30ms` computes and sleeps in turn; `hog/10@0: run` computes
    /// without end on CPU 0 with nice 10; `late: 500x sleep 10ms run 100us; run` sleeps 500 times
    /// and then computes without end.
    #[arg(long = "task", value_name = "TASK", required = true, value_parser = task)]
    tasks: Vec<Behaviour>,

    /// Time for which the tasks run.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = span::parse)]
    time: Nanos,

    /// Time at the start that is left out of the results.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span::parse)]
    settle: Nanos,

    /// Trace every slice, and the level that the policy reports for it (needs root).
    #[arg(long)]
    slices: bool,

    /// Write the events of the tasks and the policy's reports to this file as JSON lines.
    #[arg(long, value_name = "FILE", requires = "slices")]
    events: Option<PathBuf>,

    /// Briefly preempt the measured tasks at this interval, so that a task that runs alone is
    /// rescheduled and its level recorded (needs root).
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    sample: Option<Nanos>,
    /// Briefly preempt the measured tasks after each tick, so that a task that runs alone is
    /// rescheduled and its level recorded. O(1) counts these interruptions against a task.
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
    /// The file of its events.
    pub(super) fn events(&self) -> Option<&Path> {
        self.events.as_deref()
    }

    pub(super) fn run(&self) -> Result<LoadOutcome, Error> {
        let Some(path) = &self.events else {
            return self.load().run(None);
        };
        let failed = |source| Error::System {
            doing: format!("write {}", path.display()),
            source,
        };
        let file = folder::create(path).map_err(failed)?;
        let mut sink = JsonLines::new(BufWriter::new(file));
        let outcome = self.load().run(Some(&mut sink))?;
        let closed = sink.close();
        if closed.is_err() && path.is_file() {
            // What could not be written to its end does not stay.
            let _ = fs::remove_file(path);
        }
        closed.map_err(failed)?;
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

/// Arguments of `runslice load sampler`.
#[derive(Debug, Args)]
pub struct Sampler {
    /// Time that the script sleeps between two readings.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span::parse)]
    every: Nanos,

    /// Number of intervals to measure.
    #[arg(long, value_name = "N", default_value_t = 5)]
    intervals: u32,

    /// Tasks that compute without end.
    #[arg(long, value_name = "N", default_value_t = 0)]
    hogs: u32,

    /// Tasks that compute for 0.3 ms and then sleep for 2 to 12 ms, as if they waited for a disk.
    #[arg(long, value_name = "N", default_value_t = 0)]
    waiters: u32,

    /// Time that these tasks run before the script starts.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = span::parse)]
    settle: Nanos,

    /// Seed for the lengths of the sleeps.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    pub(super) to: To,
}

impl Sampler {
    pub(super) fn load(&self) -> sampler::LoadSampler {
        sampler::LoadSampler {
            every: duration(self.every),
            intervals: self.intervals,
            hogs: self.hogs,
            waiters: self.waiters,
            settle: duration(self.settle),
            seed: self.seed,
        }
    }
}

/// Arguments of `runslice load turnaround`.
#[derive(Debug, Args)]
pub struct Turnaround {
    /// Hogs: tasks that only compute.
    #[arg(long, value_name = "N", default_value_t = 16)]
    hogs: u32,

    /// CPU time of each hog.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span::parse)]
    hog_work: Nanos,

    /// Interactive tasks: they compute a little and sleep, in turn.
    #[arg(long, value_name = "N", default_value_t = 16)]
    interactive: u32,

    /// Number of turns of each interactive task.
    #[arg(long, value_name = "N", default_value_t = 20)]
    turns: u32,

    /// CPU time of each turn.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = span::parse)]
    turn_work: Nanos,

    /// Sleep after the work of each turn.
    #[arg(long, value_name = "TIME", default_value = "15ms", value_parser = span::parse)]
    turn_sleep: Nanos,

    /// Compilations. Each compiles one file after the other, with a process for each file.
    #[arg(long, value_name = "N", default_value_t = 1)]
    compiles: u32,

    /// Files of each compilation.
    #[arg(long, value_name = "N", default_value_t = 50)]
    files: u32,

    /// CPU time of each file.
    #[arg(long, value_name = "TIME", default_value = "320ms", value_parser = span::parse)]
    file_work: Nanos,

    /// Sleep for each file, as if it waited for the disk.
    #[arg(long, value_name = "TIME", default_value = "190ms", value_parser = span::parse)]
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
