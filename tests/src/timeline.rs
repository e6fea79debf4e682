//! Runs told as one line: who had a CPU from when on.

use model::{Event, EventKind, EventMask, Header, MachineSpec, SimTime, Sink, Summary, TaskId};

use crate::collect::Collector;
use crate::models::random::{run, spec};

/// A run of a policy with all its callbacks.
#[derive(Debug)]
pub struct Told {
    /// What happened.
    pub collected: Collector,
    /// What is left of it.
    pub summary: Summary,
}

impl Told {
    /// Runs `policy` with knobs on a machine; `tasks` is a workload without its name.
    #[must_use]
    pub fn of(policy: &str, set: &[(&str, u32)], machine: MachineSpec, tasks: &str) -> Self {
        let mut collected = Collector::default();
        let summary = run(&spec(policy, set, machine, tasks), &mut collected);
        Self { collected, summary }
    }

    /// Turns of a CPU from `start` (milliseconds) on that begin before `end`, in ticks of 10 ms
    /// since `start`: `0 B, 20 A`. Turns without length and those of `driver` are left out.
    #[must_use]
    pub fn turns(&self, cpu: u16, start: u64, end: u64) -> String {
        const MS: u64 = 1_000_000;
        let all = self.collected.turns(cpu, self.summary.end);
        let ms = |time: SimTime| time.as_nanos() / MS;
        let shown = all.iter().filter(|(name, from, to)| {
            from != to && name != "driver" && ms(*from) >= start && ms(*from) < end
        });
        let words = shown.map(|(name, from, _)| format!("{} {name}", (ms(*from) - start) / 10));
        words.collect::<Vec<_>>().join(", ")
    }

    /// A counter of the policy.
    ///
    /// # Panics
    /// If it has none of this name.
    #[must_use]
    pub fn counted(&self, name: &str) -> u64 {
        let mut counters = self.summary.policy_counters.iter();
        let found = counters.find(|(own, _)| own == name);
        found
            .unwrap_or_else(|| panic!("no counter is called {name}"))
            .1
    }
}

/// The levels that a policy reports for one task. Equal reports in a row are one.
#[derive(Debug)]
pub struct Levels {
    task: TaskId,
    /// The levels, in order.
    pub levels: Vec<u64>,
}

impl Levels {
    /// Of this task.
    #[must_use]
    pub const fn of(task: TaskId) -> Self {
        let levels = Vec::new();
        Self { task, levels }
    }
}

impl Sink for Levels {
    fn wants(&self) -> EventMask {
        EventMask::NONE.with(EventKind::Report)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        let own = events
            .iter()
            .filter(|event| event.kind == EventKind::Report && event.task == self.task);
        self.levels.extend(own.map(|event| event.words().a >> 32));
    }

    fn finish(&mut self, _: SimTime) {}
}

/// A machine of one socket.
#[must_use]
pub fn machine(cpus: u16, hz: u32) -> MachineSpec {
    MachineSpec {
        cpus,
        hz,
        ..MachineSpec::default()
    }
}

/// A workload whose tasks sleep since their first breath until a driver, which shares no address
/// space with them, wakes them at 10 ms, in the order of `wakes`.
#[must_use]
pub fn driven(stop_ms: u32, wakes: &str, tasks: &str) -> String {
    let wakes: Vec<_> = wakes
        .split(' ')
        .map(|task| format!("resume({task})"))
        .collect();
    format!(
        "stop = \"duration:{stop_ms}ms\"\n{tasks}\n[task.driver]\n\
         do = \"sleep(10ms), {}\"\n",
        wakes.join(", ")
    )
}
