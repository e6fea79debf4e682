//! Tasks that work and sleep by a rule, and where a policy puts them: levels, slices, shares.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use model::{CPUS_MAX, CpuId, Header, MachineSpec, Nanos, Sink, TaskCounters, TaskGroup};
use workload::{CpuSet, SchedPolicy};

use super::clock::Clock;
use super::processes::{Gate, Processes};
use super::trace::{Stay, Trace};
use super::{Error, LoadCell, LoadOutcome, LoadTable, count, micros};
use crate::play::spin::Spin;
use crate::play::sys;
use live::record::{self, Depth, Others, Raw, RecordKind, Recorder, Records};
use live::{SchedExt, process};

/// A phase is gone through so often at most: its steps are kept one by one.
const TIMES_MAX: usize = 10_000;

/// Tasks with rules, for a time.
#[derive(Clone, Debug)]
pub struct Levels {
    /// The tasks, with names of their own.
    pub tasks: Vec<Behaviour>,
    /// How long they go on.
    pub time: Duration,
    /// What happens before this moment counts in no figure.
    pub settle: Duration,
    /// Follows every slice, which takes root.
    pub follow: bool,
    /// How often a real-time task takes the CPUs of the tasks for an instant, so that a task that
    /// is alone there begins to run again, and a policy says where it stands. Takes root.
    pub sample: Option<Duration>,
    /// Interrupts tasks for an instant behind each tick while they are followed, so that one that
    /// is alone is seen to change its level.
    pub ticks: bool,
}

/// A task and its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Its name.
    pub name: String,
    /// Its nice value.
    pub nice: i8,
    /// The CPU that it is bound to.
    pub cpu: Option<CpuId>,
    /// What it does: each phase once, the last one again and again.
    pub phases: Vec<Vec<RuleStep>>,
}

/// A step of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleStep {
    /// So much CPU time.
    Run(Duration),
    /// Works for ever.
    Hog,
    /// Sleeps.
    Sleep(Duration),
}

/// What `/proc/PID/schedstat` says now.
fn counters(pid: libc::pid_t) -> Result<TaskCounters, Error> {
    let path = format!("/proc/{pid}/schedstat");
    let text = fs::read_to_string(&path).map_err(Error::doing(format!("read {path}")))?;
    TaskCounters::from_schedstat(&text)
        .map_err(|error| Error::doing(format!("read {path}"))(io::Error::other(error)))
}

fn since(later: TaskCounters, earlier: TaskCounters) -> TaskCounters {
    TaskCounters {
        cpu_time: later.cpu_time.saturating_sub(earlier.cpu_time),
        run_delay: later.run_delay.saturating_sub(earlier.run_delay),
        pcnt: later.pcnt.saturating_sub(earlier.pcnt),
    }
}

impl Levels {
    /// Lets the tasks go on for their time. What the kernel's trace has of them goes to `events`,
    /// if they are followed.
    ///
    /// # Errors
    /// When there is no task, two have one name, a phase has no step, or a process fails.
    pub fn run(&self, events: Option<&mut dyn Sink>) -> Result<LoadOutcome, Error> {
        self.check()?;
        let spin = Spin::calibrate();
        let mut processes = Processes::new()?;
        let mut pids = Vec::new();
        for task in &self.tasks {
            pids.push(processes.spawn(&task.name, |gate| task.act(spin, gate))?);
        }
        if let Some(period) = self.sample {
            for cpu in self.cpus() {
                processes.spawn("sampler", move |gate| sample(cpu, period, gate))?;
            }
        }
        if process::is_root() {
            // Tasks may starve all others, and somebody must end them.
            record::be_urgent();
        }
        let mut outcome = LoadOutcome::default();
        let recorder = match (self.follow, process::is_root()) {
            (true, true) => Some(Recorder::start(Depth::Events, true)?),
            (true, false) => {
                let note = "levels and slices are read from the kernel's trace, which takes root";
                outcome.notes.push(note.to_owned());
                None
            }
            (false, _) => None,
        };
        let clock = (self.ticks && recorder.is_some()).then(Clock::start);
        let began = processes.open(processes.len())?;
        let started = record::clock();
        wait_until(began, self.settle, &mut processes)?;
        let read = |pids: &[libc::pid_t]| -> Result<Vec<TaskCounters>, Error> {
            pids.iter().map(|pid| counters(*pid)).collect()
        };
        let (before, from) = (read(&pids)?, record::clock());
        wait_until(began, self.time, &mut processes)?;
        let (after, to) = (read(&pids)?, record::clock());
        let ticked = clock.map_or(Ok(()), Clock::stop);
        ticked.map_err(Error::doing("interrupt tasks behind each tick"))?;
        let recording = recorder.map(Recorder::stop).transpose()?;
        processes.end();
        if let (Some(recording), Some(sink)) = (&recording, events) {
            self.tell_events(&recording.records, &pids, started, sink);
        }
        let trace = recording.map(Trace::of);
        let counted = after
            .iter()
            .zip(before)
            .map(|(after, before)| since(*after, before));
        self.tell_shares(&mut outcome, &counted.collect::<Vec<_>>());
        if let Some(trace) = trace {
            let stays = pids.iter().map(|pid| trace.stays(pid.cast_unsigned()));
            let stays: Vec<_> = stays.collect();
            self.tell_stays(&mut outcome, started, &stays);
            for (task, stays) in self.tasks.iter().zip(&stays) {
                let traced = traced(stays, from, to);
                tell_means(&mut outcome, &format!("{}_traced", task.name), traced);
            }
        }
        Ok(outcome)
    }

    /// Sends what was recorded since `started`: each task is a group of its name.
    fn tell_events(
        &self,
        records: &Records,
        pids: &[libc::pid_t],
        started: u64,
        sink: &mut dyn Sink,
    ) {
        let groups = self.tasks.iter().map(|task| TaskGroup {
            name: task.name.clone(),
            nice: task.nice,
            count: 1,
        });
        let groups: Vec<TaskGroup> = groups.collect();
        let born = (0..).zip(pids).map(|(group, pid)| Raw {
            time: started,
            pid: pid.cast_unsigned(),
            cpu: 0,
            kind: RecordKind::Born,
            flags: 0,
            c: 0,
            a: group,
            b: 0,
        });
        let records = Records {
            raws: records.raws.iter().copied().chain(born).collect(),
            facts: records.facts.clone(),
            began: started,
            ended: records.ended,
            cpus: record::cpus(),
            ..Records::default()
        };
        let told = record::convert(&records, &groups, Others::Together);
        let policy = SchedExt::of_this_kernel().policy();
        sink.begin(&Header {
            policy: policy.unwrap_or_else(|| "kernel".to_owned()),
            workload: "levels".to_owned(),
            machine: MachineSpec {
                cpus: records.cpus,
                ..MachineSpec::default()
            },
            seed: 0,
            duration: u64::try_from(self.time.as_nanos()).ok().map(Nanos::new),
            groups: told.groups,
            spans: Vec::new(),
            deadlines: Vec::new(),
            counters: Vec::new(),
            phases: Vec::new(),
        });
        sink.events(&told.events);
        sink.finish(told.end);
    }

    /// Where the tasks run: the CPUs that they are bound to, or all, if one is bound to none.
    fn cpus(&self) -> Vec<CpuId> {
        let bound: Option<Vec<CpuId>> = self.tasks.iter().map(|task| task.cpu).collect();
        let mut cpus = bound.unwrap_or_else(|| (0..record::cpus()).map(CpuId).collect());
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Size(text.to_owned()));
        if self.sample.is_some_and(|period| period.is_zero()) {
            return wrong("the time from one sample to the next is above 0");
        }
        if self.sample.is_some() && !process::is_root() {
            return wrong("samples are taken by a real-time task, which takes root");
        }
        let mut names: Vec<&str> = self.tasks.iter().map(|task| &*task.name).collect();
        names.sort_unstable();
        names.dedup();
        if self.tasks.is_empty() || names.len() < self.tasks.len() {
            return wrong("there is at least one task, and each has a name of its own");
        }
        self.tasks.iter().try_for_each(Behaviour::check)?;
        if self.settle >= self.time {
            return wrong("the time to settle is shorter than the whole");
        }
        Ok(())
    }

    fn tell_shares(&self, outcome: &mut LoadOutcome, counted: &[TaskCounters]) {
        let whole: u64 = counted.iter().map(|it| it.cpu_time).sum();
        for (task, counted) in self.tasks.iter().zip(counted) {
            let name = &task.name;
            outcome.add(format!("{name}_run"), "us", micros(counted.cpu_time));
            outcome.add(format!("{name}_wait"), "us", micros(counted.run_delay));
            outcome.add(format!("{name}_slices"), "", count(counted.pcnt));
            let share = 100.0 * count(counted.cpu_time) / count(whole.max(1));
            outcome.add(format!("{name}_share"), "%", share);
            tell_means(outcome, name, *counted);
        }
    }

    /// Every slice goes into the table, and every part of one of which the policy says something
    /// new; figures are of those after the time to settle.
    fn tell_stays(&self, outcome: &mut LoadOutcome, started: u64, stays: &[Vec<Stay>]) {
        let settle = u64::try_from(self.settle.as_nanos()).unwrap_or(u64::MAX);
        let mut table = LoadTable {
            name: "slices".to_owned(),
            columns: vec![
                "task", "at_ns", "run_ns", "prio", "level", "flags", "forced",
            ],
            rows: Vec::new(),
        };
        for (task, stays) in self.tasks.iter().zip(stays) {
            // Before the gate was opened nothing was its behaviour.
            let stays: Vec<&Stay> = stays.iter().filter(|stay| stay.from >= started).collect();
            for stay in &stays {
                let Some(said) = stay.said else { continue };
                table.rows.push(vec![
                    LoadCell::Word(task.name.clone()),
                    LoadCell::Number(stay.from - started),
                    LoadCell::Number(stay.to - stay.from),
                    LoadCell::Number(said.prio.into()),
                    LoadCell::Number(said.level.into()),
                    LoadCell::Number(said.flags),
                    LoadCell::Number(stay.is_forced.into()),
                ]);
            }
            let settled = stays.iter().filter(|stay| stay.from >= started + settle);
            let settled: Vec<&Stay> = settled.copied().collect();
            tell_forced_wait(outcome, &task.name, &settled);
            tell_levels(outcome, &task.name, settled.into_iter());
        }
        if table.rows.is_empty() {
            let note = "no policy is attached that says where it puts tasks";
            outcome.notes.push(note.to_owned());
        }
        outcome.tables.push(table);
    }
}

/// How long the task waited at most when it had lost its CPU and wanted to go on.
fn tell_forced_wait(outcome: &mut LoadOutcome, name: &str, stays: &[&Stay]) {
    let pairs = stays.windows(2).filter(|pair| pair[0].is_forced);
    let longest = pairs.map(|pair| pair[1].from.saturating_sub(pair[0].to));
    if let Some(longest) = longest.max() {
        outcome.add(format!("{name}_forced_wait_max"), "us", micros(longest));
    }
}

/// What the counters would say of the time from `from` to `to`, from the trace: a wait counts, as
/// in the kernel, when it ends and a slice when it begins.
fn traced(stays: &[Stay], from: u64, to: u64) -> TaskCounters {
    let mut sum = TaskCounters::default();
    for stay in stays {
        sum.cpu_time += stay.to.min(to).saturating_sub(stay.from.max(from));
        if (from..to).contains(&stay.from) && !stay.goes_on {
            sum.run_delay += stay.waited.unwrap_or(0);
            sum.pcnt += 1;
        }
    }
    sum
}

/// Mean run and mean wait of a slice, if there was one: "The Cursor Wiggles Faster" (Lindsley,
/// 2004), section 3, calls them runslice and latency.
fn tell_means(outcome: &mut LoadOutcome, name: &str, counted: TaskCounters) {
    if counted.pcnt == 0 {
        return;
    }
    let mean = |ns: u64| micros(ns) / count(counted.pcnt);
    outcome.add(format!("{name}_runslice"), "us", mean(counted.cpu_time));
    outcome.add(format!("{name}_latency"), "us", mean(counted.run_delay));
}

/// On which levels slices began, and how often the policy called the task interactive.
fn tell_levels<'a>(outcome: &mut LoadOutcome, name: &str, stays: impl Iterator<Item = &'a Stay>) {
    let said: Vec<_> = stays.filter_map(|stay| stay.said).collect();
    if said.is_empty() {
        return;
    }
    let number = count(said.len() as u64);
    let mut levels: BTreeMap<u32, u64> = BTreeMap::new();
    for said in &said {
        *levels.entry(said.level).or_default() += 1;
    }
    for (level, slices) in &levels {
        let part = 100.0 * count(*slices) / number;
        outcome.add(format!("{name}_level_{level}_part"), "%", part);
    }
    let prios = said.iter().map(|said| said.prio);
    let (least, most) = (prios.clone().min(), prios.max());
    outcome.add(
        format!("{name}_prio_min"),
        "",
        f64::from(least.expect("there are slices")),
    );
    outcome.add(
        format!("{name}_prio_max"),
        "",
        f64::from(most.expect("there are slices")),
    );
    let interactive = said.iter().filter(|said| said.flags & 1 != 0).count();
    let part = 100.0 * count(interactive as u64) / number;
    outcome.add(format!("{name}_interactive_part"), "%", part);
}

/// Waits until so much time has passed since `began`, unless a task fails.
fn wait_until(began: Instant, time: Duration, processes: &mut Processes) -> Result<(), Error> {
    let left = time.saturating_sub(began.elapsed());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
    processes.check()
}

/// Takes a CPU for an instant, half way between two moments that are whole periods from the begin,
/// again and again.
fn sample(cpu: CpuId, period: Duration, gate: Gate) -> io::Result<()> {
    sys::set_affinity(0, &CpuSet::single(cpu))?;
    sys::set_policy(0, SchedPolicy::Fifo(1))?;
    gate.pass();
    let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    let mut next = record::clock() + period / 2;
    loop {
        sys::sleep_until(next);
        // One that comes too late leaves out what it has missed.
        next = (next + period).max(record::clock());
    }
}

impl Behaviour {
    /// Whether it is a rule that can be followed.
    ///
    /// # Errors
    /// When a phase has no step, or the last one takes no time.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Size(text.to_owned()));
        let Some(last) = self.phases.last() else {
            return wrong("a task has a phase");
        };
        if self.phases.iter().any(Vec::is_empty) {
            return wrong("every phase of a task has a step");
        }
        let takes_time = |step: &RuleStep| match step {
            RuleStep::Run(time) | RuleStep::Sleep(time) => !time.is_zero(),
            RuleStep::Hog => true,
        };
        if last.iter().any(takes_time) {
            Ok(())
        } else {
            wrong("the last phase of a task takes time: it is repeated")
        }
    }

    /// Follows the rule once the gate is open. Never returns by itself.
    pub(super) fn act(&self, spin: Spin, gate: Gate) -> io::Result<()> {
        if let Some(cpu) = self.cpu {
            sys::set_affinity(0, &CpuSet::single(cpu))?;
        }
        if self.nice != 0 {
            sys::set_nice(0, self.nice)?;
        }
        sys::no_timer_slack();
        gate.pass();
        let (last, first) = self.phases.split_last().expect("it was checked");
        for step in first.iter().flatten() {
            step.take(spin);
        }
        loop {
            last.iter().for_each(|step| step.take(spin));
        }
    }

    /// Reads `NAME[/NICE][@CPU]: STEP STEP; STEP`: phases between semicolons, each a list of
    /// `run SPAN`, `sleep SPAN` and `run` for ever. A phase that begins with `Nx` is gone through N
    /// times. `span` reads a span with its unit.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(
        text: &str,
        span: impl Fn(&str) -> Result<Duration, String>,
    ) -> Result<Self, String> {
        let (head, rule) = text
            .split_once(':')
            .ok_or("expected NAME: STEPS, such as `editor: run 2ms sleep 30ms`")?;
        let (head, cpu) = match head.split_once('@') {
            None => (head, None),
            Some((head, cpu)) => {
                let cpu = cpu.trim().parse().ok();
                let cpu = cpu.filter(|cpu| *cpu < CPUS_MAX);
                let cpu = cpu.ok_or("a CPU is a number from 0 to 1023")?;
                (head, Some(CpuId(cpu)))
            }
        };
        let (name, nice) = match head.split_once('/') {
            None => (head, 0),
            Some((name, nice)) => {
                let nice = nice.trim().parse().ok();
                let nice = nice.filter(|nice| (-20..=19).contains(nice));
                (name, nice.ok_or("a nice value is a number from -20 to 19")?)
            }
        };
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err("a task's name is made of letters, digits and `-`".to_owned());
        }
        let phases = rule.split(';').map(|phase| steps(phase, &span));
        Ok(Self {
            name: name.to_owned(),
            nice,
            cpu,
            phases: phases.collect::<Result<_, _>>()?,
        })
    }
}

fn steps(
    phase: &str,
    span: &impl Fn(&str) -> Result<Duration, String>,
) -> Result<Vec<RuleStep>, String> {
    let mut steps = Vec::new();
    let mut words = phase.split_whitespace().peekable();
    let times = match words.next_if(|word| word.starts_with(|first: char| first.is_ascii_digit())) {
        Some(word) => times(word)?,
        None => 1,
    };
    while let Some(word) = words.next() {
        let time = words.next_if(|next| !matches!(*next, "run" | "sleep"));
        let time = time.map(span).transpose()?;
        steps.push(match (word, time) {
            ("run", None) => RuleStep::Hog,
            ("run", Some(time)) => RuleStep::Run(time),
            ("sleep", Some(time)) => RuleStep::Sleep(time),
            _ => {
                return Err(format!(
                    "`{word}` is no step: they are `run`, `run SPAN` and `sleep SPAN`"
                ));
            }
        });
    }
    if steps.is_empty() {
        Err("a phase has no step".to_owned())
    } else {
        Ok(steps.repeat(times))
    }
}

/// How often a phase is gone through: `500x`.
fn times(word: &str) -> Result<usize, String> {
    let number = word.strip_suffix('x').and_then(|it| it.parse().ok());
    let number = number.filter(|number| (1..=TIMES_MAX).contains(number));
    number.ok_or_else(|| format!("`{word}`: a phase is gone through `1x` to `{TIMES_MAX}x`"))
}

impl RuleStep {
    fn take(self, spin: Spin) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Self::Run(time) => spin.burn(nanos(time)),
            // Short pieces, so that it is the same work as the other's.
            Self::Hog => loop {
                spin.burn(1_000_000_000);
            },
            Self::Sleep(time) => sys::sleep_until(record::clock() + nanos(time)),
        }
    }
}

#[cfg(test)]
mod tests;
