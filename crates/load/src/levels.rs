//! Tasks that work and sleep by a rule, and where a policy puts them: levels, slices, shares.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use model::{CpuId, Header, MachineSpec, Nanos, Sink, TaskCounters, TaskGroup};
use workload::{CPUS_MAX, CpuSet, SchedPolicy};

use super::clock::Clock;
use super::processes::{Gate, Processes};
use super::trace::{Stay, Trace};
use super::{Cell, Error, Outcome, Table, count, micros};
use crate::play::spin::Spin;
use crate::play::sys;
use live::record::{self, Depth, Kind, Others, Raw, Recorder, Records};
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
    pub phases: Vec<Vec<Step>>,
}

/// A step of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
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
    /// Lets the tasks go on for their time. What the kernel's trace has of them goes to `events`, if
    /// they are followed.
    ///
    /// # Errors
    /// When there is no task, two have one name, a phase has no step, or a process fails.
    pub fn run(&self, events: Option<&mut dyn Sink>) -> Result<Outcome, Error> {
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
        let mut outcome = Outcome::default();
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
            kind: Kind::Born,
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

    fn tell_shares(&self, outcome: &mut Outcome, counted: &[TaskCounters]) {
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

    /// Every slice goes into the table; figures are of those after the time to settle.
    fn tell_stays(&self, outcome: &mut Outcome, started: u64, stays: &[Vec<Stay>]) {
        let settle = u64::try_from(self.settle.as_nanos()).unwrap_or(u64::MAX);
        let mut table = Table {
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
                    Cell::Word(task.name.clone()),
                    Cell::Number(stay.from - started),
                    Cell::Number(stay.to - stay.from),
                    Cell::Number(said.prio.into()),
                    Cell::Number(said.level.into()),
                    Cell::Number(said.flags),
                    Cell::Number(stay.is_forced.into()),
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
fn tell_forced_wait(outcome: &mut Outcome, name: &str, stays: &[&Stay]) {
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
        if (from..to).contains(&stay.from) {
            sum.run_delay += stay.waited.unwrap_or(0);
            sum.pcnt += 1;
        }
    }
    sum
}

/// Mean run and mean wait of a slice, if there was one: "The Cursor Wiggles Faster" (Lindsley,
/// 2004), section 3, calls them runslice and latency.
fn tell_means(outcome: &mut Outcome, name: &str, counted: TaskCounters) {
    if counted.pcnt == 0 {
        return;
    }
    let mean = |ns: u64| micros(ns) / count(counted.pcnt);
    outcome.add(format!("{name}_runslice"), "us", mean(counted.cpu_time));
    outcome.add(format!("{name}_latency"), "us", mean(counted.run_delay));
}

/// On which levels slices began, and how often the policy called the task interactive.
fn tell_levels<'a>(outcome: &mut Outcome, name: &str, stays: impl Iterator<Item = &'a Stay>) {
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
        let takes_time = |step: &Step| match step {
            Step::Run(time) | Step::Sleep(time) => !time.is_zero(),
            Step::Hog => true,
        };
        match last.iter().any(takes_time) {
            true => Ok(()),
            false => wrong("the last phase of a task takes time: it is repeated"),
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
) -> Result<Vec<Step>, String> {
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
            ("run", None) => Step::Hog,
            ("run", Some(time)) => Step::Run(time),
            ("sleep", Some(time)) => Step::Sleep(time),
            _ => {
                return Err(format!(
                    "`{word}` is no step: they are `run`, `run SPAN` and `sleep SPAN`"
                ));
            }
        });
    }
    match steps.is_empty() {
        true => Err("a phase has no step".to_owned()),
        false => Ok(steps.repeat(times)),
    }
}

/// How often a phase is gone through: `500x`.
fn times(word: &str) -> Result<usize, String> {
    let number = word.strip_suffix('x').and_then(|it| it.parse().ok());
    let number = number.filter(|number| (1..=TIMES_MAX).contains(number));
    number.ok_or_else(|| format!("`{word}`: a phase is gone through `1x` to `{TIMES_MAX}x`"))
}

impl Step {
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
mod tests {
    use model::{Event, EventKind, EventMask, SimTime, TaskId};

    use super::super::trace::Said;
    use super::*;

    fn millis(text: &str) -> Result<Duration, String> {
        let number = text.strip_suffix("ms").and_then(|it| it.parse().ok());
        number
            .map(Duration::from_millis)
            .ok_or_else(|| format!("`{text}`?"))
    }

    fn task(text: &str) -> Behaviour {
        Behaviour::parse(text, millis).unwrap()
    }

    /// Tasks by their rules, for 100 ms.
    fn levels(texts: &[&str]) -> Levels {
        Levels {
            tasks: texts.iter().map(|text| task(text)).collect(),
            time: Duration::from_millis(100),
            settle: Duration::ZERO,
            follow: false,
            sample: None,
            ticks: false,
        }
    }

    #[test]
    fn a_rule_is_read_and_what_is_wrong_is_said() {
        let read = task("change/5: sleep 20ms; run 5ms sleep 1ms");
        let at = Duration::from_millis;
        let first = vec![Step::Sleep(at(20))];
        let then = vec![Step::Run(at(5)), Step::Sleep(at(1))];
        assert_eq!((read.nice, read.phases), (5, vec![first, then]));
        assert_eq!(task("hog: run").phases, [[Step::Hog]]);
        let bound = task("hog/10@3: run");
        assert_eq!(
            (&*bound.name, bound.nice, bound.cpu),
            ("hog", 10, Some(CpuId(3)))
        );
        assert_eq!(task("hog: run").cpu, None);
        let nap = [Step::Sleep(at(10)), Step::Run(at(2))];
        let thrice = task("t: 3x sleep 10ms run 2ms; run").phases;
        assert_eq!(thrice, [[nap, nap, nap].concat(), vec![Step::Hog]]);
        for (text, part) in [
            ("hog", "NAME: STEPS"),
            ("hog/20: run", "nice"),
            ("hog@x: run", "CPU"),
            ("hog@99999: run", "CPU"),
            ("hog@1/5: run", "CPU"),
            ("ho g: run", "letters"),
            ("hog: run;", "no step"),
            ("hog: walk 2ms", "`walk`"),
            ("hog: sleep", "`sleep`"),
            ("hog: run 5", "`5`?"),
            ("hog: 0x run", "`0x`: a phase"),
            ("hog: 10001x run", "10000x"),
            ("hog: 3 run", "`3`: a phase"),
            ("hog: 3x", "no step"),
        ] {
            let error = Behaviour::parse(text, millis).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn tasks_run_and_wait_and_their_shares_make_a_whole() {
        let levels = Levels {
            tasks: vec![task("one: run"), task("two: run 1ms sleep 1ms")],
            time: Duration::from_millis(300),
            settle: Duration::from_millis(50),
            follow: false,
            sample: None,
            ticks: false,
        };
        let outcome = levels.run(None).unwrap();
        let share = |name: &str| outcome.value(&format!("{name}_share")).unwrap();
        assert!(
            (share("one") + share("two") - 100.0).abs() < 1e-9,
            "{outcome:?}"
        );
        assert!(share("one") > 0.0 && share("two") > 0.0, "{outcome:?}");
        assert!(outcome.value("two_slices") > Some(0.0), "{outcome:?}");
    }

    #[test]
    fn rules_that_cannot_be_are_refused() {
        assert!(levels(&[]).check().is_err());
        assert!(levels(&["a: run", "a: run"]).check().is_err());
        assert!(levels(&["a: run 0ms sleep 0ms"]).check().is_err());
        assert!(levels(&["a: run 0ms sleep 1ms"]).check().is_ok());
        let late = Levels {
            settle: Duration::from_millis(100),
            ..levels(&["a: run"])
        };
        assert!(late.check().is_err());
        let never = Levels {
            sample: Some(Duration::ZERO),
            ..levels(&["a: run"])
        };
        assert!(never.check().is_err());
    }

    #[test]
    fn samples_are_taken_where_the_tasks_are_bound_or_everywhere() {
        assert_eq!(
            levels(&["a@2: run", "b@0: run", "c@2: run"]).cpus(),
            [CpuId(0), CpuId(2)]
        );
        let all: Vec<CpuId> = (0..record::cpus()).map(CpuId).collect();
        assert_eq!(levels(&["a@2: run", "b: run"]).cpus(), all);
    }

    #[test]
    fn the_longest_wait_is_of_one_that_wanted_to_go_on() {
        let stay = |from, to, is_forced| Stay {
            from,
            to,
            said: None,
            is_forced,
            waited: None,
        };
        let stays = [
            stay(0, 10_000, true),
            stay(12_000, 20_000, true),
            // It waits 7 us and then sleeps for 900.
            stay(27_000, 30_000, false),
            stay(930_000, 940_000, true),
        ];
        let mut outcome = Outcome::default();
        tell_forced_wait(&mut outcome, "x", &stays.iter().collect::<Vec<_>>());
        assert_eq!(outcome.value("x_forced_wait_max"), Some(7.0));
        let mut none = Outcome::default();
        tell_forced_wait(&mut none, "x", &[&stays[2], &stays[3]]);
        assert_eq!(none.value("x_forced_wait_max"), None);
    }

    /// Counts the slices of a group, and keeps what the policy said of it.
    #[derive(Default)]
    struct Seen {
        header: Option<Header>,
        events: Vec<Event>,
    }

    impl Sink for Seen {
        fn wants(&self) -> EventMask {
            EventMask::ALL
        }

        fn begin(&mut self, header: &Header) {
            self.header = Some(header.clone());
        }

        fn events(&mut self, events: &[Event]) {
            self.events.extend(events);
        }

        fn finish(&mut self, _end: SimTime) {}
    }

    #[test]
    fn events_are_of_the_tasks_by_their_names_from_the_start_on() {
        let raw = |time: u64, kind: Kind, pid: u32, [a, b]: [u32; 2]| Raw {
            time,
            pid,
            cpu: 0,
            kind,
            flags: 0,
            c: 0,
            a,
            b,
        };
        let records = Records {
            raws: vec![
                // Pid 41 works, then 40; the policy has 40 on level 3.
                raw(110, Kind::Switch, 41, [0, 0]),
                raw(150, Kind::Report, 40, [120, 3]),
                raw(150, Kind::Switch, 40, [41, 0]),
                raw(190, Kind::Switch, 0, [40, 1]),
            ],
            ended: 200,
            ..Records::default()
        };
        let mut seen = Seen::default();
        levels(&["a: run", "b: run"]).tell_events(&records, &[40, 41], 100, &mut seen);
        let names: Vec<String> = (seen.header.unwrap().groups.into_iter())
            .map(|group| group.name)
            .collect();
        assert_eq!(names[..2], ["a", "b"]);
        let born = seen
            .events
            .iter()
            .filter(|it| it.kind == EventKind::New && it.a < 2);
        let born: Vec<_> = born.map(|it| (it.a, it.task)).collect();
        let task = |group: u64| born.iter().find(|it| it.0 == group).unwrap().1;
        let runs = seen.events.iter().filter(|it| it.kind == EventKind::Switch);
        let runs: Vec<_> = runs.map(|it| (it.time.as_nanos(), it.task)).collect();
        assert_eq!(runs, [(10, task(1)), (50, task(0)), (90, TaskId::NONE)]);
        let report = seen.events.iter().find(|it| it.kind == EventKind::Report);
        let report = report.unwrap();
        assert_eq!((report.task, report.a), (task(0), 120 | 3 << 32));
    }

    #[test]
    fn a_slice_is_a_row_with_what_the_policy_said() {
        let levels = Levels {
            tasks: vec![Behaviour {
                name: "a".to_owned(),
                nice: 0,
                cpu: None,
                phases: vec![vec![Step::Hog]],
            }],
            time: Duration::from_secs(1),
            settle: Duration::ZERO,
            follow: true,
            sample: None,
            ticks: false,
        };
        let stay = Stay {
            from: 150,
            to: 190,
            said: Some(Said {
                prio: 120,
                level: 3,
                flags: 1,
            }),
            is_forced: true,
            waited: None,
        };
        let early = Stay {
            from: 90,
            ..stay.clone()
        };
        let mut outcome = Outcome::default();
        levels.tell_stays(&mut outcome, 100, &[vec![early, stay]]);
        let table = &outcome.tables[0];
        // Experiments read these columns.
        let columns = [
            "task", "at_ns", "run_ns", "prio", "level", "flags", "forced",
        ];
        assert_eq!((&*table.name, &table.columns[..]), ("slices", &columns[..]));
        let numbers = [50, 40, 120, 3, 1, 1].map(Cell::Number);
        let row: Vec<Cell> = [Cell::Word("a".to_owned())]
            .into_iter()
            .chain(numbers)
            .collect();
        assert_eq!(table.rows, [row]);
    }

    #[test]
    fn levels_are_told_by_how_many_slices_began_there() {
        let stay = |level, flags| Stay {
            from: 0,
            to: 1,
            said: Some(Said {
                prio: 100 + level,
                level,
                flags,
            }),
            is_forced: true,
            waited: None,
        };
        let stays = [stay(1, 1), stay(2, 0), stay(2, 0), stay(2, 0)];
        let mut outcome = Outcome::default();
        tell_levels(&mut outcome, "x", stays.iter());
        assert_eq!(outcome.value("x_level_1_part"), Some(25.0));
        assert_eq!(outcome.value("x_level_2_part"), Some(75.0));
        assert_eq!(outcome.value("x_interactive_part"), Some(25.0));
        assert_eq!(
            (outcome.value("x_prio_min"), outcome.value("x_prio_max")),
            (Some(101.0), Some(102.0))
        );
    }
    #[test]
    fn the_trace_counts_a_wait_when_it_ends_and_a_slice_when_it_begins() {
        let stay = |from, to, waited| Stay {
            from,
            to,
            said: None,
            is_forced: true,
            waited,
        };
        // Begun before, within, and at the end of the time from 100 to 200.
        let stays = [
            stay(80, 120, Some(70)),
            stay(150, 180, Some(20)),
            stay(190, 260, Some(6)),
            stay(300, 310, Some(9)),
        ];
        let sum = traced(&stays, 100, 200);
        assert_eq!((sum.cpu_time, sum.run_delay, sum.pcnt), (60, 26, 2));
        let mut outcome = Outcome::default();
        tell_means(&mut outcome, "x_traced", sum);
        assert_eq!(outcome.value("x_traced_runslice"), Some(0.03));
        assert_eq!(outcome.value("x_traced_latency"), Some(0.013));
        tell_means(&mut outcome, "y", TaskCounters::default());
        assert_eq!(outcome.value("y_runslice"), None);
    }
}
