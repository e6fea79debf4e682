//! How much a program may have its supervisor do in one run.
//!
//! What is counted are steps, not seconds: a run is a function of its request, on a slow computer
//! too. A step takes about a microsecond. What one call may ask for is bounded where it is done;
//! here is the bound of their sum.

use std::cell::Cell;

use model::user_space::{THREADS_MAX, UserSpaceError};
use model::{Advised, Nanos};

/// A call that is answered.
pub const CALL: u64 = 10;
/// A part of a path that is looked up.
pub const PART: u64 = 10;
/// A process or a thread that is made, and a program that is executed.
pub const BIRTH: u64 = 1_000;
/// A file of the machine that is written anew.
pub const FILE: u64 = 50;
/// An element of a map, in a call for many.
pub const ELEMENT: u64 = 5;
/// A descriptor or a process that is looked at.
pub const LOOK: u64 = 2;
/// Bytes of the program's memory that are copied in one step.
const BYTES: u64 = 4096;

/// What a program may ask for in one run. What exceeds a limit ends the run, and the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramLimits {
    /// Steps of work for all its processes together: 20 million plain calls.
    pub steps: u64,
    /// More of them for each second of simulated time: 100,000 calls. Programs that are
    /// known make 2,000.
    pub steps_per_second: u64,
    /// Processes that live at once.
    pub processes: usize,
    /// Threads and processes that are made.
    pub births: usize,
    /// Bytes of memory that all its processes have together.
    pub memory: u64,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            steps: 200_000_000,
            steps_per_second: 1_000_000,
            processes: 256,
            births: THREADS_MAX,
            memory: 4 << 30,
        }
    }
}

/// What has been done so far.
#[derive(Debug, Default)]
pub struct WorkDone {
    steps: Cell<u64>,
    births: usize,
    /// The uptime at which the program has begun.
    began: Option<Nanos>,
}

impl WorkDone {
    /// Counts steps.
    pub fn add(&self, steps: u64) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// Counts a copy of so many bytes.
    pub fn copy(&self, bytes: u64) {
        self.add(bytes / BYTES);
    }

    /// Checks the steps at an uptime.
    ///
    /// # Errors
    /// Names the limit.
    pub fn check(
        &mut self,
        limits: &ProgramLimits,
        now: Nanos,
        name: &str,
    ) -> Result<(), UserSpaceError> {
        let began = *self.began.get_or_insert(now);
        let seconds = now.saturating_sub(began).get() / 1_000_000_000;
        let most = limits.steps.saturating_add(limits.steps_per_second.saturating_mul(seconds));
        if self.steps.get() <= most {
            return Ok(());
        }
        let (calls, more) = (limits.steps / CALL, limits.steps_per_second / CALL);
        Err(exceeded(format!(
            "{name}: it has asked for more than {most} steps of its supervisor, as in {calls} \
             system calls and {more} for each simulated second"
        )))
    }

    /// Counts a thread or process that is about to be made beside so many living processes.
    ///
    /// # Errors
    /// Names the limit.
    pub fn birth(
        &mut self,
        limits: &ProgramLimits,
        living: usize,
        name: &str,
    ) -> Result<(), UserSpaceError> {
        // The first one is there already.
        if self.births + 1 >= limits.births {
            let most = limits.births;
            let what = format!("{name}: it makes more than {most} threads and processes in a run");
            return Err(exceeded(what));
        }
        if living > limits.processes {
            let most = limits.processes;
            return Err(exceeded(format!("{name}: it has more than {most} processes at once")));
        }
        self.births += 1;
        self.add(BIRTH);
        Ok(())
    }
}

/// The error of a program called `name` whose processes have more memory than they may.
pub fn too_much_memory(limits: &ProgramLimits, name: &str) -> UserSpaceError {
    let most = limits.memory >> 20;
    exceeded(format!("{name}: its processes have more than {most} MiB of memory together"))
}

fn exceeded(what: String) -> UserSpaceError {
    UserSpaceError(Advised::new(what, "docs/your-scheduler.md lists the limits of a run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_allowed_at_once_and_for_each_second() {
        let limits = ProgramLimits {
            steps: 100,
            steps_per_second: 10,
            ..ProgramLimits::default()
        };
        let mut work = WorkDone::default();
        let at = |seconds: u64| Nanos::from_secs(3600 + seconds);
        work.add(100);
        assert!(work.check(&limits, at(0), "x").is_ok());
        work.add(1);
        let error = work.check(&limits, at(0), "x").unwrap_err().to_string();
        assert!(error.contains("more than 100 steps"), "{error}");
        assert!(work.check(&limits, at(1), "x").is_ok());
        work.copy(1 << 20);
        assert_eq!(work.steps.get(), 101 + 256);
        work.add(u64::MAX);
        assert!(work.check(&limits, at(1000), "x").is_err());
    }

    #[test]
    fn processes_are_limited_at_once_and_in_all() {
        let limits = ProgramLimits {
            processes: 2,
            births: 3,
            ..ProgramLimits::default()
        };
        let mut work = WorkDone::default();
        let error = work.birth(&limits, 3, "x").unwrap_err().to_string();
        assert!(error.contains("more than 2 processes at once"), "{error}");
        assert!(work.birth(&limits, 2, "x").is_ok());
        assert!(work.birth(&limits, 1, "x").is_ok());
        let error = work.birth(&limits, 1, "x").unwrap_err().to_string();
        assert!(error.contains("more than 3 threads and processes"), "{error}");
    }
}
