//! The runs by which the speed of the simulated machine is measured: tasks that do nothing but need
//! it, under a queue for the whole machine, ordered by virtual time (`policies/vtime.bpf.c`), or
//! under another policy.

use std::fmt;
use std::sync::Arc;

use model::{MachineSpec, Nanos, PolicySpec};
use workload::{RunSpec, Workload};

use crate::policy;

/// What a task runs before it sleeps.
const TURN: Nanos = Nanos::from_micros(500);

/// CPU time asked for, of what there is, in per cent: of tasks that sleep.
const LOAD: u64 = 80;

/// A machine and its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// CPUs of the machine.
    pub cpus: u16,
    /// Tasks that run and sleep, or only run.
    pub tasks: u32,
    /// Whether they never sleep. Else each runs 500 us and sleeps so long that they ask for 80 % of
    /// the CPUs together; they start spread over one such period.
    pub hogs: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpus, tasks, hogs } = self;
        let kind = if *hogs { " hogs" } else { "" };
        write!(f, "{cpus}x{tasks}{kind}")
    }
}

impl Case {
    /// Tasks that sleep.
    #[must_use]
    pub const fn sleepers(cpus: u16, tasks: u32) -> Self {
        Self {
            cpus,
            tasks,
            hogs: false,
        }
    }

    /// Tasks that never sleep.
    #[must_use]
    pub const fn hogs(cpus: u16, tasks: u32) -> Self {
        Self {
            cpus,
            tasks,
            hogs: true,
        }
    }

    /// From one begin of a task's turn to the next, if it never waits.
    fn period(&self) -> Nanos {
        let turns = TURN.get() * u64::from(self.tasks) * 100;
        Nanos::new(turns / (LOAD * u64::from(self.cpus)))
    }

    /// Simulated time in which there are about so many switches to tasks under `vtime`.
    #[must_use]
    pub fn time_for(&self, switches: u64) -> Nanos {
        let (turn, percent) = if self.hogs {
            (self.machine().tick(), 100)
        } else {
            (TURN, LOAD)
        };
        Nanos::new(switches * turn.get() * 100 / (percent * u64::from(self.cpus)))
    }

    fn machine(&self) -> MachineSpec {
        MachineSpec {
            cpus: self.cpus,
            ..MachineSpec::default()
        }
    }

    /// A run under `vtime` that ends at `end`, made exactly so by everyone who measures this case.
    ///
    /// A hog's slice is one tick, 4 ms: with 20 ms the last of 10,000 hogs on 4 CPUs would wait
    /// beyond the watchdog's 30 s.
    ///
    /// # Panics
    /// If there is no CPU or no task.
    #[must_use]
    pub fn spec(&self, end: Nanos) -> RunSpec {
        let slice = if self.hogs {
            self.machine().tick()
        } else {
            Nanos::from_millis(20)
        };
        let mut spec = self.spec_under("vtime", end);
        let slice = ("slice_ns".to_owned(), slice.get().to_string());
        spec.policy.set.push(slice);
        spec
    }

    /// As [`Case::spec`], under `policy` as it is.
    ///
    /// # Panics
    /// If there is no such policy, no CPU or no task.
    #[must_use]
    pub fn spec_under(&self, policy: &str, end: Nanos) -> RunSpec {
        let period = self.period().get();
        let (start, body) = if self.hogs {
            (0, "run(inf)".to_owned())
        } else {
            let turn = TURN.get();
            let sleep = period.saturating_sub(turn);
            let body = format!("loop(inf)[ run({turn}ns), sleep({sleep}ns) ]");
            (period, body)
        };
        let text = format!(
            "[workload]\nname = \"{self}\"\nstop = \"duration:{}ns\"\n[task.t]\ncount = {}\n\
             start = \"uniform(0ns, {start}ns)\"\ndo = \"{body}\"\n",
            end.get(),
            self.tasks
        );
        let workload = Workload::parse(&text, "speed").unwrap_or_else(|error| panic!("{error}"));
        RunSpec {
            policy: PolicySpec::of_object(
                policy,
                policy::object(policy).unwrap_or_else(|error| panic!("{error}")),
            ),
            workload: Arc::new(workload),
            machine: self.machine(),
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: None,
        }
    }
}
