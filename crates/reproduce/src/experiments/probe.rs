//! What only a run's events have: who made a task wait, and where the policy had put it.

use std::collections::BTreeMap;

use model::{
    Event, EventKind, EventMask, Header, Nanos, PrevState, Sample, SimTime, Sink, TaskId, What,
};
use stats::Histogram;
use traces::task_name;

mod rate;
#[cfg(test)]
mod tests;

use rate::Rate;

/// What to look for in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedProbe {
    /// How its numbers begin: `response` for `probe.response.all.mean_ns`.
    pub name: String,
    /// A task, or a group and so all of its tasks; nobody where the policy's counters are
    /// followed.
    pub who: String,
    /// What happens before this does not count.
    pub after: Nanos,
    /// What of it.
    pub form: ProbeForm,
}

/// What a probe looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeForm {
    /// Waits from a wakeup to the first instruction after it, by who had the CPU meanwhile.
    Waits {
        /// Names of classes, and the groups that are in them. A wait belongs to the class that had
        /// the CPU for longest.
        classes: Vec<(String, Vec<String>)>,
        /// Others that had the CPU for less than this had not; the wait is `direct` then.
        least: Nanos,
        /// The share of waits longer than this is told.
        longer: Nanos,
    },
    /// Where the policy had put the task at each of its runs.
    Levels {
        /// What is followed: the policy's priority (0 to 139), else its level.
        priority: bool,
        /// Whether a level is another one when the policy flags the task differently; flags are
        /// written behind it: `i` interactive, `e` expired.
        flags: bool,
        /// How the sequence is written.
        steps: Steps,
    },
    /// Lengths of the spans of this name that a task ended.
    Spans {
        /// Its name in the workload.
        span: String,
    },
    /// Deadlines of this name, by whether they were met.
    Deadlines {
        /// Its name in the workload.
        deadline: String,
    },
    /// How often something happens, over time.
    Rate {
        /// The policy's counters of it, by name, which are added up. None: tasks that begin.
        counters: Vec<String>,
        /// The length of the spans that are told apart. A span that the run cuts off is not told.
        every: Nanos,
    },
}

/// How a sequence of levels is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// The level of every run.
    Runs,
    /// Every level that differs from the one before.
    Changes,
    /// The same, with the time that was run at it, in these units, rounded: `120:3`. The last,
    /// which may not be over, is left out.
    Times(Nanos),
    /// The same, with the time of its first run before it: `120@40:3`.
    Stays(Nanos),
}

/// Entries of a sequence after which no more are kept.
const MOST_ENTRIES: usize = 20_000;

/// What a probe found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// Numbers by their name; docs in experiments/README.md.
    pub values: Vec<(String, f64)>,
    /// The sequence, entries parted by spaces; empty for waits.
    pub trace: String,
    /// The same with its times in nanoseconds; empty where it has none.
    pub exact: String,
    /// When the level changed, nanoseconds, and to what; or the begin of each span of time, and
    /// how often it happened in a second. For a figure.
    pub points: Vec<(u64, u64)>,
}

/// Looks for one thing in a run.
#[derive(Debug)]
pub struct Probe {
    wanted: WantedProbe,
    header: Option<Header>,
    /// By number.
    tasks: Vec<ProbedTask>,
    /// By number: who has it, and since when.
    cpus: Vec<(TaskId, SimTime)>,
    /// Tasks whose wait is under way.
    waiting: Vec<TaskId>,
    waits: BTreeMap<String, Histogram>,
    shortest: BTreeMap<String, Nanos>,
    /// How many were longer than is asked for, and the sum of what they were longer by.
    long: BTreeMap<String, (u64, Nanos)>,
    levels: Levels,
    /// Deadlines that were met, and those that were not.
    deadlines: (u64, u64),
    rate: Rate,
}

#[derive(Clone, Debug, Default)]
struct ProbedTask {
    watched: bool,
    /// Index of its class; `None` for a task of none.
    class: Option<usize>,
    /// The wait that is under way.
    wait: Option<Wait>,
    /// What the policy last said of it: level and flags.
    standing: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct Wait {
    ready: SimTime,
    cpu: usize,
    /// What each class had of the CPU meanwhile.
    had: Vec<Nanos>,
}

/// A stay at a level.
#[derive(Clone, Copy, Debug)]
struct Stay {
    level: u64,
    flags: u64,
    since: SimTime,
    ran: Nanos,
}

#[derive(Debug, Default)]
struct Levels {
    entries: Vec<Stay>,
    points: Vec<(u64, u64)>,
    runs: u64,
    flagged: u64,
    lowest: Option<u64>,
    highest: Option<u64>,
    sum: u128,
    changes: u64,
    first_change: Option<SimTime>,
    last_change: Option<SimTime>,
    steepest: u64,
}

impl Probe {
    /// A probe for one run.
    #[must_use]
    pub fn new(wanted: WantedProbe) -> Self {
        Self {
            wanted,
            header: None,
            tasks: Vec::new(),
            cpus: Vec::new(),
            waiting: Vec::new(),
            waits: BTreeMap::new(),
            shortest: BTreeMap::new(),
            long: BTreeMap::new(),
            levels: Levels::default(),
            deadlines: (0, 0),
            rate: Rate::default(),
        }
    }

    /// How often it must be shown the policy's counters, if at all.
    #[must_use]
    pub fn interval(&self) -> Option<Nanos> {
        match &self.wanted.form {
            ProbeForm::Rate { counters, every } => (!counters.is_empty()).then_some(*every),
            _ => None,
        }
    }

    /// Takes the policy's counters, as a [`model::Sampler`] does; samples between those that
    /// [`Self::interval`] asks for change nothing.
    pub fn sample(&mut self, sample: &Sample) {
        let ProbeForm::Rate { counters, every } = &self.wanted.form else {
            return;
        };
        let counts = sample.policy.iter();
        let wanted = counts.filter(|(name, _)| counters.contains(name));
        let total = wanted.flat_map(|(_, of_cpus)| of_cpus).sum();
        self.rate.counted(sample.time, total, *every);
    }

    fn classes(&self) -> usize {
        match &self.wanted.form {
            ProbeForm::Waits { classes, .. } => classes.len(),
            ProbeForm::Levels { .. }
            | ProbeForm::Spans { .. }
            | ProbeForm::Deadlines { .. }
            | ProbeForm::Rate { .. } => 0,
        }
    }

    fn born(&mut self, event: &Event, group: u32, index: u32) {
        let header = self.header.as_ref().expect("a header comes first");
        let group_name = header.groups.get(group as usize).map(|it| it.name.as_str());
        let who = self.wanted.who.as_str();
        let watched = group_name == Some(who) || task_name(header, group, index) == who;
        let class = match &self.wanted.form {
            ProbeForm::Waits { classes, .. } => classes
                .iter()
                .position(|(_, groups)| groups.iter().any(|it| Some(it.as_str()) == group_name)),
            ProbeForm::Levels { .. }
            | ProbeForm::Spans { .. }
            | ProbeForm::Deadlines { .. }
            | ProbeForm::Rate { .. } => None,
        };
        self.tasks.push(ProbedTask {
            watched,
            class,
            wait: None,
            standing: None,
        });
        if let ProbeForm::Rate { counters, every } = &self.wanted.form
            && counters.is_empty()
            && watched
        {
            self.rate.happened(event.time, *every);
        }
    }

    fn is_early(&self, time: SimTime) -> bool {
        time.since(SimTime::ZERO) < self.wanted.after
    }

    fn woken(&mut self, event: &Event, is_new: bool) {
        let classes = self.classes();
        let early = self.is_early(event.time);
        let task = &mut self.tasks[event.task.index()];
        if task.watched && !is_new && !early {
            task.wait = Some(Wait {
                ready: event.time,
                cpu: event.cpu.index(),
                had: vec![Nanos::ZERO; classes],
            });
            self.waiting.push(event.task);
        }
    }

    /// Whoever had `cpu` until now made those wait who wait there.
    fn settle(&mut self, cpu: usize, now: SimTime) {
        let (task, since) = self.cpus[cpu];
        self.cpus[cpu].1 = now;
        let Some(class) = self.tasks.get(task.index()).and_then(|task| task.class) else {
            return;
        };
        for task in &self.waiting {
            let wait = self.tasks[task.index()].wait.as_mut();
            if let Some(wait) = wait.filter(|wait| wait.cpu == cpu) {
                wait.had[class] += now.since(since.max(wait.ready));
            }
        }
    }

    fn switched(&mut self, event: &Event, state: PrevState, overhead: Nanos) {
        let (cpu, now) = (event.cpu.index(), event.time);
        let (before, since) = self.cpus[cpu];
        if matches!(self.wanted.form, ProbeForm::Waits { .. }) {
            self.settle(cpu, now);
            self.cpus[cpu] = (event.task, now);
            self.end_wait(event, overhead);
            return;
        }
        let ended = state != PrevState::Idle;
        let watched = self.tasks.get(before.index()).is_some_and(|it| it.watched);
        if ended && watched {
            self.stayed(since, now);
        }
        self.cpus[cpu] = (event.task, now + overhead);
        self.note(event.task, now);
    }

    /// The watched task ran from `since` to `now` where it was put last.
    fn stayed(&mut self, since: SimTime, now: SimTime) {
        let after = SimTime::ZERO + self.wanted.after;
        let ran = now.since(since.max(after).min(now));
        if let Some(last) = self.levels.entries.last_mut() {
            last.ran += ran;
        }
    }

    /// A task begins to run, or is put elsewhere while it runs.
    fn note(&mut self, task: TaskId, now: SimTime) {
        let ProbeForm::Levels { flags, steps, .. } = self.wanted.form else {
            return;
        };
        let standing = self.tasks.get(task.index()).and_then(|task| task.standing);
        if let Some((level, said)) = standing.filter(|_| !self.is_early(now)) {
            self.levels.flagged += said & model::report::INTERACTIVE;
            let shown = if flags { said } else { 0 };
            self.levels.add(now, level, shown, steps);
        }
    }

    fn end_wait(&mut self, event: &Event, overhead: Nanos) {
        let Some(task) = self.tasks.get_mut(event.task.index()) else {
            return;
        };
        let Some(wait) = task.wait.take() else { return };
        self.waiting.retain(|waiting| *waiting != event.task);
        let length = event.time.since(wait.ready) + overhead;
        let ProbeForm::Waits { classes, least, .. } = &self.wanted.form else {
            return;
        };
        // The first of equals: an order of the file, not of chance.
        let mut longest: Option<usize> = None;
        for (class, had) in wait.had.iter().enumerate() {
            if had >= least && longest.is_none_or(|other| *had > wait.had[other]) {
                longest = Some(class);
            }
        }
        let class = longest.map_or("direct", |class| classes[class].0.as_str());
        let class = class.to_owned();
        self.record(&class, length);
        self.record("all", length);
    }

    fn reported(&mut self, event: &Event, (number, level): (u32, u32), flags: u64) {
        let ProbeForm::Levels { priority, .. } = self.wanted.form else {
            return;
        };
        let task = &mut self.tasks[event.task.index()];
        if !task.watched {
            return;
        }
        // Said when it changes only, and before the switch to the task.
        let level = if priority { number } else { level };
        task.standing = Some((u64::from(level), flags));
        let (running, since) = self.cpus[event.cpu.index()];
        if running == event.task {
            self.stayed(since, event.time);
            self.cpus[event.cpu.index()].1 = since.max(event.time);
            self.note(event.task, event.time);
        }
    }

    /// What it found, after the run.
    #[must_use]
    pub fn found(&self) -> Probed {
        match &self.wanted.form {
            ProbeForm::Waits { classes, .. } => self.found_waits(classes),
            ProbeForm::Levels { steps, .. } => self.levels.found(*steps, self.wanted.after),
            ProbeForm::Spans { .. } => self.found_spans(),
            ProbeForm::Deadlines { .. } => self.found_deadlines(),
            ProbeForm::Rate { every, .. } => self.rate.found(self.wanted.after, *every),
        }
    }

    fn found_spans(&self) -> Probed {
        let none = Histogram::new();
        let all = self.waits.get("all").unwrap_or(&none);
        let mut values = vec![("count".to_owned(), all.count() as f64)];
        for (key, value) in [
            ("mean_ns", all.mean()),
            ("min_ns", self.shortest.get("all").copied()),
            ("p50_ns", all.quantile(500)),
            ("p95_ns", all.quantile(950)),
            ("p99_ns", all.quantile(990)),
            ("max_ns", all.max()),
        ] {
            values.extend(value.map(|value| (key.to_owned(), value.get() as f64)));
        }
        Probed {
            values,
            ..Probed::default()
        }
    }

    fn found_deadlines(&self) -> Probed {
        let (met, missed) = self.deadlines;
        let values = [("met", met), ("missed", missed)];
        Probed {
            values: values
                .map(|(key, count)| (key.to_owned(), count as f64))
                .into(),
            ..Probed::default()
        }
    }

    /// So many deadlines with this number were met, and so many missed.
    fn due(&mut self, event: &Event, number: u32, (met, missed): (u64, u64)) {
        let ProbeForm::Deadlines { deadline } = &self.wanted.form else {
            return;
        };
        let header = self.header.as_ref().expect("a header comes first");
        let name = header.deadlines.get(number as usize).map(|(name, _)| name);
        let is_it = name == Some(deadline);
        let task = self.tasks.get(event.task.index());
        if is_it && task.is_some_and(|it| it.watched) && !self.is_early(event.time) {
            self.deadlines.0 = self.deadlines.0.saturating_add(met);
            self.deadlines.1 = self.deadlines.1.saturating_add(missed);
        }
    }

    fn ended_span(&mut self, event: &Event, number: u32, length: Nanos) {
        let ProbeForm::Spans { span } = &self.wanted.form else {
            return;
        };
        let header = self.header.as_ref().expect("a header comes first");
        let is_it = header.spans.get(number as usize) == Some(span);
        let watched = self
            .tasks
            .get(event.task.index())
            .is_some_and(|it| it.watched);
        if is_it && watched && !self.is_early(event.time) {
            self.record("all", length);
        }
    }

    fn record(&mut self, name: &str, length: Nanos) {
        self.waits
            .entry(name.to_owned())
            .or_default()
            .record(length);
        let shortest = self.shortest.entry(name.to_owned()).or_insert(length);
        *shortest = length.min(*shortest);
        if let ProbeForm::Waits { longer, .. } = self.wanted.form
            && length > longer
        {
            let long = self.long.entry(name.to_owned()).or_default();
            long.0 += 1;
            long.1 += length - longer;
        }
    }

    fn found_waits(&self, classes: &[(String, Vec<String>)]) -> Probed {
        let names = classes.iter().map(|(name, _)| name.as_str());
        let none = Histogram::new();
        let of = |name: &str| self.waits.get(name).unwrap_or(&none);
        let all = of("all").count();
        let mut values = Vec::new();
        for name in ["all", "direct"].into_iter().chain(names) {
            let waits = of(name);
            let mut put = |key: &str, value: Option<f64>| {
                values.extend(value.map(|value| (format!("{name}.{key}"), value)));
            };
            let whole = |span: Option<Nanos>| span.map(|span| span.get() as f64);
            put("count", Some(waits.count() as f64));
            put("mean_ns", whole(waits.mean()));
            put("min_ns", whole(self.shortest.get(name).copied()));
            put("p50_ns", whole(waits.quantile(500)));
            put("p99_ns", whole(waits.quantile(990)));
            put("max_ns", whole(waits.max()));
            let share = (all > 0).then(|| waits.count() as f64 / all as f64);
            put("share", share);
            let (long, excess) = self.long.get(name).copied().unwrap_or_default();
            let longer = (waits.count() > 0).then(|| long as f64 / waits.count() as f64);
            put("excess_ns", Some(excess.get() as f64));
            put("longer", longer);
        }
        Probed {
            values,
            ..Probed::default()
        }
    }
}

impl Sink for Probe {
    fn wants(&self) -> EventMask {
        let both = EventMask::NONE.with(EventKind::New).with(EventKind::Switch);
        match self.wanted.form {
            ProbeForm::Waits { .. } => both.with(EventKind::Wakeup).with(EventKind::Migrate),
            ProbeForm::Levels { .. } => both.with(EventKind::Report),
            ProbeForm::Spans { .. } => both.with(EventKind::SpanEnd),
            ProbeForm::Deadlines { .. } => both.with(EventKind::Deadline).with(EventKind::Skipped),
            ProbeForm::Rate { .. } => EventMask::NONE.with(EventKind::New),
        }
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = vec![(TaskId::NONE, SimTime::ZERO); usize::from(header.machine.cpus)];
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.what() {
                What::New { group, index, .. } => self.born(event, group, index),
                What::Wakeup(wakeup) => self.woken(event, wakeup.new),
                What::Switch {
                    state, overhead, ..
                } => self.switched(event, state, overhead),
                What::Report {
                    priority,
                    level,
                    flags,
                } => self.reported(event, (priority, level), flags),
                What::SpanEnd { span, length } => self.ended_span(event, span, length),
                What::Deadline { deadline, late } => {
                    let met = u64::from(late.is_zero());
                    self.due(event, deadline, (met, 1 - met));
                }
                What::Skipped { deadline, periods } => self.due(event, deadline, (0, periods)),
                What::Migrate { from } => {
                    let to = event.cpu.index();
                    self.settle(from.index(), event.time);
                    self.settle(to, event.time);
                    if let Some(wait) = &mut self.tasks[event.task.index()].wait {
                        wait.cpu = to;
                    }
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, now: SimTime) {
        if let ProbeForm::Rate { counters, every } = &self.wanted.form
            && counters.is_empty()
        {
            self.rate.ended(now, *every);
        }
    }
}

impl Levels {
    fn add(&mut self, now: SimTime, value: u64, flags: u64, steps: Steps) {
        self.runs += 1;
        self.lowest = Some(self.lowest.map_or(value, |it| it.min(value)));
        self.highest = Some(self.highest.map_or(value, |it| it.max(value)));
        self.sum += u128::from(value);
        let last = self.points.last().map(|(_, value)| *value);
        if let Some(last) = last.filter(|last| *last != value) {
            self.changes += 1;
            self.first_change.get_or_insert(now);
            self.last_change = Some(now);
            self.steepest = self.steepest.max(last.abs_diff(value));
        }
        let changed = last != Some(value);
        if changed && self.points.len() < MOST_ENTRIES {
            self.points.push((now.as_nanos(), value));
        }
        let same = |stay: &Stay| stay.level == value && stay.flags == flags;
        let stays = self.entries.last().is_some_and(same) && steps != Steps::Runs;
        if !stays && self.entries.len() < MOST_ENTRIES {
            self.entries.push(Stay {
                level: value,
                flags,
                since: now,
                ran: Nanos::ZERO,
            });
        }
    }

    fn found(&self, steps: Steps, after: Nanos) -> Probed {
        let mut values: Vec<(String, f64)> = Vec::new();
        let mut put = |key: &str, value: Option<f64>| {
            values.extend(value.map(|value| (key.to_owned(), value)));
        };
        let number = |value: u64| value as f64;
        let from_start = |time: Option<SimTime>| {
            time.map(|time| number((time.since(SimTime::ZERO) - after).get()))
        };
        put("runs", Some(number(self.runs)));
        put("lowest", self.lowest.map(number));
        put("highest", self.highest.map(number));
        let range = self.highest.zip(self.lowest).map(|(a, b)| number(a - b));
        put("range", range);
        let share = |part: f64| (self.runs > 0).then(|| part / number(self.runs));
        put("mean", share(self.sum as f64));
        put("interactive", share(number(self.flagged)));
        put("changes", Some(number(self.changes)));
        put("steepest", Some(number(self.steepest)));
        put(
            "first",
            self.points.first().map(|(_, value)| number(*value)),
        );
        put("last", self.points.last().map(|(_, value)| number(*value)));
        put("first_change_ns", from_start(self.first_change));
        put("last_change_ns", from_start(self.last_change));
        Probed {
            values,
            trace: self.trace(steps),
            exact: match steps {
                Steps::Runs | Steps::Changes => String::new(),
                Steps::Times(_) => self.trace(Steps::Times(Nanos::new(1))),
                Steps::Stays(_) => self.trace(Steps::Stays(Nanos::new(1))),
            },
            points: self.points.clone(),
        }
    }

    fn trace(&self, steps: Steps) -> String {
        let flag = |stay: &Stay, flag: u64, word: &'static str| match stay.flags & flag {
            0 => "",
            _ => word,
        };
        let text = |stay: &Stay| {
            let level = format!(
                "{}{}{}",
                stay.level,
                flag(stay, model::report::INTERACTIVE, "i"),
                flag(stay, model::report::EXPIRED, "e")
            );
            let rounded = |ns: u64, unit: Nanos| (ns + unit.get() / 2) / unit.get().max(1);
            match steps {
                Steps::Runs | Steps::Changes => level,
                Steps::Times(unit) => format!("{level}:{}", rounded(stay.ran.get(), unit)),
                Steps::Stays(unit) => {
                    let since = rounded(stay.since.as_nanos(), unit);
                    format!("{level}@{since}:{}", rounded(stay.ran.get(), unit))
                }
            }
        };
        let over = match steps {
            Steps::Times(_) | Steps::Stays(_) => self.entries.len().saturating_sub(1),
            _ => self.entries.len(),
        };
        let texts: Vec<String> = self.entries[..over].iter().map(text).collect();
        texts.join(" ")
    }
}
