//! Reads workload files.

use toml::de::{DeTable, DeValue};

use super::error::{Problem, WorkloadError};
use super::names::{Names, number};
use super::parser::{Failure, Parser, range};
use super::table::{Source, Table, Text, Value, describe, text, texts};
use super::{
    Arrival, Barrier, Capacity, Channel, ChannelKind, CpuSet, Deadline, Dist, Effect, Group,
    Handoff, Interrupt, Lock, Step, Stop, TaskKind, Workload,
};
use crate::{CpuId, Kernel, MachineSpec, Nanos, Profile};

/// Most instances of one declaration, and most tasks of one group.
const COUNT_MAX: i64 = 1_000_000;

/// Tables of the language that nothing executes yet.
const NOT_SIMULATED: [&str; 7] = [
    "disk", "mem", "cgroup", "hotplug", "arrival", "profile", "scenario",
];

impl Workload {
    /// Reads a workload. `file` is what messages call it.
    ///
    /// # Errors
    /// If `text` is no workload: the first mistake, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, WorkloadError> {
        Self::parse_with(text, file, &[])
    }

    /// Reads a workload with other values for some parameters of its `scale`.
    ///
    /// # Errors
    /// If `text` is no workload, or has no such parameter.
    pub fn parse_with(
        text: &str,
        file: &str,
        scale: &[(String, i64)],
    ) -> Result<Self, WorkloadError> {
        let source = Source { text, file };
        let root = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            source.error(at, Problem::Toml(error.message().to_owned()))
        })?;
        Reader::new(&source, root.get_ref(), scale)?.workload()
    }
}

/// Tables of one kind, in the order of the file.
type Entries<'a> = Vec<(&'a str, usize, Value<'a>)>;

struct Reader<'a> {
    source: &'a Source<'a>,
    names: Names,
    head: Table<'a>,
    machine: Option<Value<'a>>,
    channels: Entries<'a>,
    locks: Entries<'a>,
    barriers: Entries<'a>,
    interrupts: Entries<'a>,
    deadlines: Entries<'a>,
    groups: Entries<'a>,
}

impl<'a> Reader<'a> {
    fn new(
        source: &'a Source<'a>,
        root: &'a DeTable<'a>,
        scale: &[(String, i64)],
    ) -> Result<Self, WorkloadError> {
        let mut root = Table::root(source, root);
        let refused = root
            .entries()
            .into_iter()
            .find(|(name, ..)| NOT_SIMULATED.contains(name));
        if let Some((name, at, _)) = refused {
            return Err(source.error(at, Problem::NotSimulated(format!("[{name}]"))));
        }
        let head = root.require("workload", "a table with the workload's name")?;
        let reader = Self {
            source,
            names: Names::default(),
            head: Table::new(source, "[workload]".to_owned(), head)?,
            machine: root.get("machine"),
            channels: declared(source, &mut root, "chan")?,
            locks: declared(source, &mut root, "lock")?,
            barriers: declared(source, &mut root, "barrier")?,
            interrupts: declared(source, &mut root, "irq")?,
            deadlines: declared(source, &mut root, "deadline")?,
            groups: declared(source, &mut root, "task")?,
        };
        let no_task = root.missing("task", "at least one table [task.NAME]");
        root.finish()?;
        if reader.groups.is_empty() {
            return Err(no_task);
        }
        reader.with_scale(scale)
    }

    /// Reads the parameters: everything else may use them.
    fn with_scale(mut self, set: &[(String, i64)]) -> Result<Self, WorkloadError> {
        let Some(value) = self.head.get("scale") else {
            return self.refuse_unknown_scale(set, 0);
        };
        let table = Table::new(self.source, "scale".to_owned(), value)?;
        for (name, at, value) in table.entries() {
            self.check_name(name, at)?;
            let file_value = self.integer(value, i64::MIN..=i64::MAX, name)?;
            let other = set.iter().rev().find(|(known, _)| known == name);
            let value = other.map_or(file_value, |(_, value)| *value);
            self.names.scale.push((name.to_owned(), value));
        }
        self.refuse_unknown_scale(set, value.span().start)
    }

    fn refuse_unknown_scale(self, set: &[(String, i64)], at: usize) -> Result<Self, WorkloadError> {
        let known = || self.names.scale.iter().map(|(name, _)| name.as_str());
        for (name, _) in set {
            if !known().any(|scale| scale == name) {
                return Err(self
                    .source
                    .error(at, Problem::unknown("parameter", name, known())));
            }
        }
        Ok(self)
    }

    fn workload(mut self) -> Result<Workload, WorkloadError> {
        let channels = self.channels()?;
        let locks = self.locks()?;
        let barriers = self.barriers()?;
        let deadlines = self.deadlines()?;
        for (name, at, _) in self.groups.clone() {
            self.check_name(name, at)?;
            self.names.groups.push(name.to_owned());
        }
        let groups = self.groups()?;
        let interrupts = self.interrupts()?;
        let machine = self.machine()?;
        let name = self.head.require("name", "a string")?;
        let name = text(self.source, name, "a string")?.text.to_owned();
        let seed = self.head.get("seed");
        let seed = seed.map_or(Ok(1), |seed| self.integer(seed, 0..=i64::MAX, "the seed"))?;
        let stop = self.stop()?;
        self.head.finish()?;
        Ok(Workload {
            name,
            file: self.source.file.to_owned(),
            seed: seed.unsigned_abs(),
            stop,
            machine,
            scale: self.names.scale,
            channels,
            locks,
            barriers,
            interrupts,
            deadlines,
            groups,
            spans: self.names.spans,
            counters: self.names.counters,
            phases: self.names.phases,
        })
    }

    fn channels(&mut self) -> Result<Vec<Channel>, WorkloadError> {
        let mut channels = Vec::new();
        for (name, at, value) in self.channels.clone() {
            self.check_name(name, at)?;
            let mut table = Table::new(self.source, format!("[chan.{name}]"), value)?;
            let kind = table.require("kind", "\"unix\", \"pipe\", \"tcp\" or \"queue\"")?;
            let kind = self.choice(
                kind,
                &[
                    ("unix", ChannelKind::Unix),
                    ("pipe", ChannelKind::Pipe),
                    ("tcp", ChannelKind::Tcp),
                    ("queue", ChannelKind::Queue),
                ],
            )?;
            let count = self.count(&mut table, 1..=COUNT_MAX)?.unwrap_or(1);
            let msg = table.get("msg");
            let bytes = 1..=i64::from(i32::MAX);
            let msg = msg
                .map_or(Ok(100), |msg| self.integer(msg, bytes, "msg"))?
                .unsigned_abs();
            let capacity = self.capacity(&mut table)?;
            table.finish()?;
            self.names.channels.push((name.to_owned(), count));
            channels.push(Channel {
                name: name.to_owned(),
                kind,
                count,
                capacity,
                msg,
            });
        }
        Ok(channels)
    }

    fn capacity(&mut self, table: &mut Table<'a>) -> Result<Capacity, WorkloadError> {
        let expected = "\"278msg\", \"64KiB\" or \"inf\"";
        let Some(text) = table.text("cap", expected)? else {
            return Ok(Capacity::Kernel);
        };
        if text.text == "inf" {
            return Ok(Capacity::Unbounded);
        }
        let messages = text.before("msg");
        let value = self.read(messages.unwrap_or(text), Parser::constant)?;
        let value = u64::try_from(value)
            .ok()
            .filter(|&value| value > 0)
            .ok_or_else(|| {
                self.source
                    .error(text.place(0), range("the capacity", value, "1 or more"))
            })?;
        let capacity = if messages.is_some() {
            Capacity::Messages
        } else {
            Capacity::Bytes
        };
        Ok(capacity(value))
    }

    fn locks(&mut self) -> Result<Vec<Lock>, WorkloadError> {
        let mut locks = Vec::new();
        for (name, at, value) in self.locks.clone() {
            self.check_name(name, at)?;
            let mut table = Table::new(self.source, format!("[lock.{name}]"), value)?;
            if let Some(kind) = table.get("kind") {
                self.choice(kind, &[("mutex", ())])?;
            }
            let count = self.count(&mut table, 1..=COUNT_MAX)?.unwrap_or(1);
            let kinds = [("fifo", Handoff::Fifo), ("barge", Handoff::Barge)];
            let handoff = table.get("handoff");
            let handoff = handoff.map_or(Ok(Handoff::Fifo), |value| self.choice(value, &kinds))?;
            table.finish()?;
            self.names.locks.push((name.to_owned(), count));
            locks.push(Lock {
                name: name.to_owned(),
                count,
                handoff,
            });
        }
        Ok(locks)
    }

    fn barriers(&mut self) -> Result<Vec<Barrier>, WorkloadError> {
        let mut barriers = Vec::new();
        for (name, at, value) in self.barriers.clone() {
            self.check_name(name, at)?;
            let mut table = Table::new(self.source, format!("[barrier.{name}]"), value)?;
            let count = self.count(&mut table, 1..=COUNT_MAX)?.unwrap_or(1);
            let parties = table.require("parties", "how many tasks it waits for")?;
            let parties = self.integer(parties, 1..=COUNT_MAX, "parties")?;
            table.finish()?;
            self.names.barriers.push((name.to_owned(), count));
            barriers.push(Barrier {
                name: name.to_owned(),
                count,
                parties: small(parties),
            });
        }
        Ok(barriers)
    }

    fn deadlines(&mut self) -> Result<Vec<Deadline>, WorkloadError> {
        let mut deadlines = Vec::new();
        for (name, at, value) in self.deadlines.clone() {
            self.check_name(name, at)?;
            let mut table = Table::new(self.source, format!("[deadline.{name}]"), value)?;
            let period = self.span(&mut table, "period", false)?;
            let slack = self.span(&mut table, "slack", true)?.or(period);
            let slack = slack.ok_or_else(|| table.missing("slack", "a span of time"))?;
            let kinds = [("skip", true), ("queue", false)];
            let passed = table.get("passed");
            let skip = passed.map_or(Ok(true), |value| self.choice(value, &kinds))?;
            let miss = table
                .text("miss", "a word")?
                .map_or("missed", |text| text.text)
                .to_owned();
            table.finish()?;
            self.names.deadlines.push(name.to_owned());
            deadlines.push(Deadline {
                name: name.to_owned(),
                period,
                slack,
                skip,
                miss,
            });
        }
        Ok(deadlines)
    }

    fn groups(&mut self) -> Result<Vec<Group>, WorkloadError> {
        let mut counts = Vec::new();
        let mut groups = Vec::new();
        for (name, _, value) in self.groups.clone() {
            let mut table = Table::new(self.source, format!("[task.{name}]"), value)?;
            counts.push(self.count(&mut table, 0..=COUNT_MAX)?);
            groups.push(self.group(name, &mut table)?);
            table.finish()?;
        }
        for (index, (group, count)) in groups.iter_mut().zip(counts).enumerate() {
            let is_forked = self.names.forked.contains(&number(index));
            group.count = count.unwrap_or(u32::from(!is_forked));
        }
        Ok(groups)
    }

    /// A group, whose count is filled in when all forks are known.
    fn group(&mut self, name: &str, table: &mut Table<'a>) -> Result<Group, WorkloadError> {
        let nice = table.get("nice");
        let nice = nice.map_or(Ok(0), |nice| self.integer(nice, -20..=19, "nice"))?;
        let policy = table.text(
            "policy",
            "a scheduling policy, as \"normal\" or \"fifo:50\"",
        )?;
        let policy = policy
            .map(|text| self.read(text, Parser::policy))
            .transpose()?;
        let cpus = self.cpus(table)?;
        let start = table.text("start", "a span of time, as \"1.5ms\"")?;
        let start = start
            .map(|text| self.read(text, Parser::dist))
            .transpose()?;
        let kind = table.get("kind");
        let kinds = [("thread", TaskKind::Thread), ("process", TaskKind::Process)];
        let kind = kind.map_or(Ok(TaskKind::Thread), |kind| self.choice(kind, &kinds))?;
        let expected = "operations, as \"loop(inf)[ run(1ms), sleep(2ms) ]\"";
        let body = table.require("do", "what the task does")?;
        let (body, variables) = self.body(&texts(self.source, body, expected)?)?;
        Ok(Group {
            name: name.to_owned(),
            count: 0,
            nice: i8::try_from(nice).expect("the range was checked"),
            policy: policy.unwrap_or_default(),
            cpus,
            start: start.unwrap_or(Dist::Const(Nanos::ZERO)),
            kind,
            body,
            variables,
        })
    }

    /// A list of operations and how many variables they have.
    fn body(&mut self, texts: &[Text]) -> Result<(Vec<Step>, u32), WorkloadError> {
        let source = self.source;
        let mut parser = Parser::new("", &mut self.names).expect("no text has no mistakes");
        let mut steps = Vec::new();
        for text in texts {
            let fail = |(problem, at): Failure| source.error(text.place(at), problem);
            parser.next_text(text.text).map_err(fail)?;
            let line = |at| source.line(text.place(at));
            steps.extend(parser.steps_to_end(&line).map_err(fail)?);
        }
        Ok((steps, parser.variables))
    }

    fn cpus(&self, table: &mut Table<'a>) -> Result<Option<CpuSet>, WorkloadError> {
        let expected = "CPUs, as \"0-3,5\" or \"all\"";
        let Some(text) = table.text("cpus", expected)? else {
            return Ok(None);
        };
        if text.text == "all" {
            return Ok(None);
        }
        let found = Problem::unexpected(format!("\"{}\"", text.text), expected);
        let error = || self.source.error(text.place(0), found);
        CpuSet::parse(text.text).map(Some).ok_or_else(error)
    }

    fn interrupts(&mut self) -> Result<Vec<Interrupt>, WorkloadError> {
        let mut interrupts = Vec::new();
        for (name, at, value) in self.interrupts.clone() {
            let mut table = Table::new(self.source, format!("[irq.{name}]"), value)?;
            let cpu = table.get("cpu");
            let cpu = cpu.map_or(Ok(0), |cpu| self.integer(cpu, 0..=1023, "cpu"))?;
            let start = self.span(&mut table, "start", true)?.unwrap_or(Nanos::ZERO);
            let arrival = self.arrival(&mut table)?;
            let cost = table.text("cost", "a span of time, as \"5us\"")?;
            let cost = cost.map(|text| self.read(text, Parser::dist)).transpose()?;
            let effect = self.effect(&mut table)?;
            table.finish()?;
            interrupts.push(Interrupt {
                name: name.to_owned(),
                cpu: CpuId(u16::try_from(cpu).expect("the range was checked")),
                start,
                arrival,
                cost: cost.unwrap_or(Dist::Const(Nanos::ZERO)),
                effect,
                line: self.source.line(at),
            });
        }
        Ok(interrupts)
    }

    fn arrival(&mut self, table: &mut Table<'a>) -> Result<Arrival, WorkloadError> {
        let period = self.span(table, "every", false)?;
        let mean = self.span(table, "poisson", false)?;
        let is_once = table.flag("once")?;
        let jitter = table.text("jitter", "a distribution of spans")?;
        let jitter_at = jitter.map(|text| text.place(0));
        let jitter = jitter
            .map(|text| self.read(text, Parser::dist))
            .transpose()?;
        match (period, mean, is_once, jitter_at) {
            (Some(period), None, false, _) => Ok(Arrival::Periodic { period, jitter }),
            (None, Some(mean), false, None) => Ok(Arrival::Poisson { mean }),
            (None, None, true, None) => Ok(Arrival::Once),
            (None, Some(_), false, Some(at)) | (None, None, true, Some(at)) => Err(self
                .source
                .error(at, Problem::unexpected("`jitter`", "it only with `every`"))),
            _ => Err(table.missing("every", "one of `every`, `poisson` and `once`")),
        }
    }

    fn effect(&mut self, table: &mut Table<'a>) -> Result<Effect, WorkloadError> {
        let send = table.text("send", "a channel")?;
        let resume = table.text("resume", "a task")?;
        match (send, resume) {
            (None, None) => Ok(Effect::None),
            (Some(text), None) => Ok(Effect::Send(self.read(text, Parser::constant_channel)?)),
            (None, Some(text)) => Ok(Effect::Resume(self.read(text, Parser::constant_target)?)),
            (Some(_), Some(text)) => {
                let problem = Problem::unexpected("`send` and `resume`", "one of them");
                Err(self.source.error(text.place(0), problem))
            }
        }
    }

    fn machine(&self) -> Result<MachineSpec, WorkloadError> {
        let mut machine = MachineSpec::default();
        let Some(value) = self.machine else {
            return Ok(machine);
        };
        let mut table = Table::new(self.source, "[machine]".to_owned(), value)?;
        let mut integer = |key, low, high| -> Result<Option<i64>, WorkloadError> {
            table
                .get(key)
                .map(|value| self.integer(value, low..=high, key))
                .transpose()
        };
        let cpus = integer("cpus", 1, 1024)?;
        let smt = integer("smt", 1, 2)?;
        let llc = integer("llc", 0, 1024)?;
        let hz = integer("hz", 100, 1000)?;
        let narrow = |value: i64| u16::try_from(value).expect("the range was checked");
        machine.cpus = cpus.map_or(machine.cpus, narrow);
        machine.smt = smt.map_or(machine.smt, narrow);
        machine.llc = llc.map_or(machine.llc, narrow);
        if let Some(value) = table.get("hz") {
            machine.hz = small(hz.expect("the key is there"));
            if ![100, 250, 300, 1000].contains(&machine.hz) {
                return Err(table.unexpected(value, "100, 250, 300 or 1000"));
            }
        }
        if let Some(profile) = table.get("profile") {
            machine.profile = self.choice(profile, &[("ideal", Profile::Ideal)])?;
        }
        if let Some(kernel) = table.get("kernel") {
            let latest = Kernel::V6_18;
            machine.kernel = self.choice(kernel, &[(latest.name(), latest)])?;
        }
        table.finish()?;
        Ok(machine)
    }

    fn stop(&mut self) -> Result<Stop, WorkloadError> {
        let mut stop = Stop::default();
        let Some(value) = self.head.get("stop") else {
            return Ok(stop);
        };
        let expected = "\"all-exit\", \"duration:30s\" or \"task:NAME\"";
        for text in texts(self.source, value, expected)? {
            if text.text == "all-exit" {
                continue;
            }
            if let Some(name) = text.after("task:") {
                stop.groups.push(self.read(name, Parser::group)?);
            } else if let Some(span) = text.after("duration:") {
                let span = self.read(span, Parser::span)?;
                stop.after = Some(stop.after.map_or(span, |after| after.min(span)));
            } else {
                let problem = Problem::unexpected(format!("\"{}\"", text.text), expected);
                return Err(self.source.error(text.place(0), problem));
            }
        }
        Ok(stop)
    }

    /// Reads all of `text`.
    fn read<'n, T>(
        &'n mut self,
        text: Text,
        read: impl FnOnce(&mut Parser<'n>) -> Result<T, Failure>,
    ) -> Result<T, WorkloadError> {
        let source = self.source;
        let fail = |(problem, at): Failure| source.error(text.place(at), problem);
        let mut parser = Parser::new(text.text, &mut self.names).map_err(fail)?;
        let value = read(&mut parser).map_err(fail)?;
        parser.expect_end().map_err(fail)?;
        Ok(value)
    }

    /// The span of time at `key`.
    fn span(
        &mut self,
        table: &mut Table<'a>,
        key: &'static str,
        zero: bool,
    ) -> Result<Option<Nanos>, WorkloadError> {
        let Some(text) = table.text(key, "a span of time, as \"1.5ms\"")? else {
            return Ok(None);
        };
        let span = self.read(text, Parser::span)?;
        if span.is_zero() && !zero {
            return Err(self
                .source
                .error(text.place(0), range(key, 0, "1ns or more")));
        }
        Ok(Some(span))
    }

    fn count(
        &mut self,
        table: &mut Table<'a>,
        allowed: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<u32>, WorkloadError> {
        let Some(value) = table.get("count") else {
            return Ok(None);
        };
        Ok(Some(small(self.integer(value, allowed, "count")?)))
    }

    /// An integer, or a string with a constant expression.
    fn integer(
        &self,
        value: Value<'a>,
        allowed: std::ops::RangeInclusive<i64>,
        what: &str,
    ) -> Result<i64, WorkloadError> {
        let at = value.span().start;
        let found = match value.get_ref() {
            DeValue::Integer(integer) => {
                let digits = i64::from_str_radix(integer.as_str(), integer.radix());
                digits.map_err(|_| {
                    self.source
                        .error(at, Problem::unexpected(describe(value), "63 bits"))
                })?
            }
            DeValue::String(_) => {
                let text = text(self.source, value, "an integer")?;
                let mut names = Names {
                    scale: self.names.scale.clone(),
                    ..Names::default()
                };
                let fail = |(problem, at): Failure| self.source.error(text.place(at), problem);
                let mut parser = Parser::new(text.text, &mut names).map_err(fail)?;
                let value = parser.constant().map_err(fail)?;
                parser.expect_end().map_err(fail)?;
                value
            }
            _ => {
                let problem = Problem::unexpected(describe(value), "an integer");
                return Err(self.source.error(at, problem));
            }
        };
        if allowed.contains(&found) {
            return Ok(found);
        }
        let expected = format!("{} to {}", allowed.start(), allowed.end());
        Err(self.source.error(at, range(what, found, &expected)))
    }

    /// The meaning of a string that says one of several words.
    fn choice<T: Copy>(&self, value: Value<'a>, words: &[(&str, T)]) -> Result<T, WorkloadError> {
        let list: Vec<String> = words
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        let text = text(self.source, value, &list.join(" or "))?;
        let found = words.iter().find(|(word, _)| *word == text.text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let problem = Problem::unexpected(format!("\"{}\"", text.text), list.join(" or "));
            self.source.error(text.place(0), problem)
        })
    }

    /// Names are words that expressions can use.
    fn check_name(&self, name: &str, at: usize) -> Result<(), WorkloadError> {
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if super::parser::KEYWORDS.contains(&name) {
            return Err(self.source.error(at, Problem::Taken(name.to_owned())));
        }
        if starts_well && is_word {
            return Ok(());
        }
        let expected = "a name of letters, digits and `_` that begins with a letter";
        Err(self
            .source
            .error(at, Problem::unexpected(format!("`{name}`"), expected)))
    }
}

/// The tables `[kind.NAME]`.
fn declared<'a>(
    source: &'a Source<'a>,
    root: &mut Table<'a>,
    kind: &'static str,
) -> Result<Entries<'a>, WorkloadError> {
    let Some(value) = root.get(kind) else {
        return Ok(Vec::new());
    };
    Ok(Table::new(source, format!("{kind}.NAME"), value)?.entries())
}

fn small(value: i64) -> u32 {
    u32::try_from(value).expect("the range was checked")
}
