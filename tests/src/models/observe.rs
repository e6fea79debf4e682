//! What a small workload does under a policy: who ran when, at which priority.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{
    CpuId, Event, EventKind, EventMask, Header, Nanos, PolicySpec, SimTime, Sink, Summary, TaskId,
};
use workload::{RunSpec, Workload};

use crate::policy;

/// A stay of a task on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The task's group.
    pub task: String,
    /// The CPU.
    pub cpu: CpuId,
    /// Priority at its begin.
    pub prio: u32,
    /// Begin.
    pub start: SimTime,
    /// End; that of the run for the last turn.
    pub end: SimTime,
}

/// A change of what the policy reported of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// When.
    pub time: SimTime,
    /// Priority.
    pub prio: u32,
    /// Level, in the policy's own numbers.
    pub level: u32,
    /// Flags.
    pub flags: u64,
}

/// A finished run.
#[derive(Debug)]
pub struct Observed {
    /// Turns, in the order of their begins.
    pub turns: Vec<Turn>,
    /// What is left of the run.
    pub summary: Summary,
    reports: Vec<(TaskId, Report)>,
    names: Vec<String>,
}

#[derive(Default)]
struct Watch {
    groups: Vec<String>,
    names: Vec<String>,
    reports: Vec<(TaskId, Report)>,
    prio: Vec<u32>,
    open: Vec<Option<usize>>,
    turns: Vec<Turn>,
}

impl Sink for Watch {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Switch)
            .with(EventKind::Report)
    }

    fn begin(&mut self, header: &Header) {
        self.groups = header.groups.iter().map(|g| g.name.clone()).collect();
        self.open = vec![None; usize::from(header.machine.cpus)];
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.kind {
                EventKind::New => {
                    let group = (event.words().a & 0xffff_ffff) as usize;
                    self.names.push(self.groups[group].clone());
                    self.prio.push(0);
                }
                EventKind::Report => self.reported(event),
                EventKind::Switch => self.switched(event),
                _ => {}
            }
        }
    }

    fn finish(&mut self, end: SimTime) {
        for turn in self.open.iter().flatten() {
            self.turns[*turn].end = end;
        }
    }
}

impl Watch {
    fn reported(&mut self, event: &Event) {
        let report = Report {
            time: event.time,
            prio: event.words().a as u32,
            level: (event.words().a >> 32) as u32,
            flags: event.words().b,
        };
        self.prio[event.task.index()] = report.prio;
        self.reports.push((event.task, report));
    }

    fn switched(&mut self, event: &Event) {
        let open = &mut self.open[event.cpu.index()];
        if let Some(turn) = open.take() {
            self.turns[turn].end = event.time;
        }
        if event.task != TaskId::NONE {
            *open = Some(self.turns.len());
            self.turns.push(Turn {
                task: self.names[event.task.index()].clone(),
                cpu: event.cpu,
                prio: self.prio[event.task.index()],
                start: event.time,
                end: event.time,
            });
        }
    }
}

/// Runs the tasks of `tables` under `policy` (knobs behind colons, as on the command line) on
/// `cpus` CPUs with 1000 ticks a second.
///
/// # Panics
/// If anything of it is wrong, or the policy is ejected.
#[must_use]
pub fn observe(policy: &str, cpus: u16, millis: u64, tables: &str) -> Observed {
    observe_at(1000, policy, cpus, millis, tables)
}

/// As [`observe`], with `hz` ticks a second.
///
/// # Panics
/// If anything of it is wrong, or the policy is ejected.
#[must_use]
pub fn observe_at(hz: u32, policy: &str, cpus: u16, millis: u64, tables: &str) -> Observed {
    let mut words = policy.split(':');
    let name = words.next().unwrap_or_default();
    let set = words
        .map(|word| word.split_once('=').expect("knob=value"))
        .map(|(knob, value)| (knob.to_owned(), value.to_owned()));
    let text = format!("[workload]\nname = \"observed\"\nstop = \"duration:1000s\"\n{tables}");
    let workload = Workload::parse(&text, "observed").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut machine = workload.machine.clone();
    machine.cpus = cpus;
    machine.hz = hz;
    let spec = RunSpec {
        policy: PolicySpec {
            name: name.to_owned(),
            object: policy::object(name).expect("a policy"),
            table: None,
            set: set.collect(),
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        },
        workload: Arc::new(workload),
        machine,
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(Nanos::from_millis(millis)),
    };
    let mut watch = Watch::default();
    let summary = sim::run(&spec, &mut watch).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(summary.exit.message, "");
    Observed {
        turns: watch.turns,
        summary,
        reports: watch.reports,
        names: watch.names,
    }
}

impl Observed {
    /// The first `count` turns in the notation of the documents: name, priority, begin and length
    /// in milliseconds.
    #[must_use]
    pub fn turns(&self, count: usize) -> String {
        let mut turns = String::new();
        for turn in self.turns.iter().take(count) {
            let start = ms(turn.start.as_nanos());
            let length = ms(turn.end.since(turn.start).get());
            let _ = write!(turns, "{}{} {start} {length}; ", turn.task, turn.prio);
        }
        turns.trim_end_matches("; ").to_owned()
    }

    /// What was reported of the first task of a group.
    #[must_use]
    pub fn reports(&self, task: &str) -> Vec<Report> {
        let at = self.names.iter().position(|name| name == task);
        let own = |id: TaskId| Some(id.index()) == at;
        let reports = self.reports.iter().filter(|(id, _)| own(*id));
        reports.map(|(_, report)| report.clone()).collect()
    }

    /// CPU time of all tasks of a group, in milliseconds.
    #[must_use]
    pub fn run_ms(&self, task: &str) -> f64 {
        let tasks = self.names.iter().zip(&self.summary.tasks);
        let own = tasks.filter(|(name, _)| *name == task);
        own.map(|(_, times)| times.run.as_secs_f64() * 1e3).sum()
    }

    /// A counter of the policy.
    ///
    /// # Panics
    /// If it has none of that name.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        let mut counters = self.summary.policy_counters.iter();
        let found = counters.find(|(own, _)| own == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }

    /// How often CPU time of `a` is that of `b`.
    #[must_use]
    pub fn share(&self, a: &str, b: &str) -> f64 {
        self.run_ms(a) / self.run_ms(b)
    }
}

/// Nanoseconds as milliseconds without trailing zeros.
fn ms(nanos: u64) -> String {
    let text = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Tables for hogs with these names and nice values, in this order.
#[must_use]
pub fn hogs(hogs: &[(&str, i32)]) -> String {
    let mut tables = String::new();
    for (name, nice) in hogs {
        let _ = writeln!(tables, "[task.{name}]\nnice = {nice}\ndo = \"run(inf)\"");
    }
    tables
}

/// The table of a task that takes the CPU every 5 ms for a microsecond, between the ticks, so that
/// the policy reports the task that it interrupts.
pub const SAMPLER: &str = "[task.sampler]\nnice = -20\nstart = \"2500us\"\n\
                           do = \"loop(inf)[ timer(5ms), run(1us) ]\"\n";
