//! Reads the tables that declare something.

use super::{COUNT_MAX, FileReader, small};
use crate::names::number;
use crate::parser::{Failure, Parser, range};
use crate::{
    Arrival, Barrier, Capacity, Channel, ChannelKind, CpuSet, Deadline, Dist, Effect, Group,
    Handoff, Interrupt, Lock, LockKind, SchedPolicy, Step, TASKS_MAX, TaskKind, UtilClamps,
};
use model::file::{FileError, Problem};
use model::file::{FileTable, Text, texts};
use model::{CpuId, Nanos};

/// Most bytes that a task uses of a cache: 16 GiB, as the largest cache.
const FOOTPRINT_MAX: i64 = 16 << 30;

impl<'a> FileReader<'a> {
    pub(super) fn channels(&mut self) -> Result<Vec<Channel>, FileError> {
        let mut channels = Vec::new();
        for (name, at, value) in self.channels.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[chan.{name}]"), value)?;
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

    pub(super) fn capacity(&mut self, table: &mut FileTable<'a>) -> Result<Capacity, FileError> {
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

    pub(super) fn locks(&mut self) -> Result<Vec<Lock>, FileError> {
        let mut locks = Vec::new();
        for (name, at, value) in self.locks.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[lock.{name}]"), value)?;
            let (kind, count) = self.lock_kind(&mut table)?;
            let kinds = [("fifo", Handoff::Fifo), ("barge", Handoff::Barge)];
            let handoff = table.get("handoff");
            let handoff = handoff.map_or(Ok(Handoff::Fifo), |value| self.choice(value, &kinds))?;
            table.finish()?;
            self.names.locks.push((name.to_owned(), count));
            self.names.keyed.push(matches!(kind, LockKind::Keyed(_)));
            locks.push(Lock {
                name: name.to_owned(),
                count,
                kind,
                handoff,
            });
        }
        Ok(locks)
    }

    pub(super) fn barriers(&mut self) -> Result<Vec<Barrier>, FileError> {
        let mut barriers = Vec::new();
        for (name, at, value) in self.barriers.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[barrier.{name}]"), value)?;
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

    pub(super) fn deadlines(&mut self) -> Result<Vec<Deadline>, FileError> {
        let mut deadlines = Vec::new();
        for (name, at, value) in self.deadlines.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[deadline.{name}]"), value)?;
            let period = self.span(&mut table, "period", false)?;
            let begins = self.span(&mut table, "begins", true)?;
            if begins.is_some() && period.is_none() {
                return Err(table.missing("period", "a span of time, as it has `begins`"));
            }
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
                begins,
                slack,
                skip,
                miss,
            });
        }
        Ok(deadlines)
    }

    pub(super) fn groups(&mut self) -> Result<Vec<Group>, FileError> {
        let mut counts = Vec::new();
        let mut groups = Vec::new();
        let mut forks = Vec::new();
        for (name, at, value) in self.groups.clone() {
            let mut table = FileTable::new(self.source, format!("[task.{name}]"), value)?;
            let count_at = table.get("count").map(|value| value.span().start);
            let count = self.count(&mut table, 0..=TASKS_MAX.into())?;
            counts.push((count, count_at.unwrap_or(at)));
            let known = self.names.forked.len();
            groups.push(self.group(name, &mut table)?);
            forks.push(self.names.forked[known..].to_vec());
            table.finish()?;
        }
        self.refuse_unbegun(&counts, &forks)?;
        let mut tasks = 0;
        for (index, (group, (count, at))) in groups.iter_mut().zip(counts).enumerate() {
            let is_forked = self.names.forked.contains(&number(index));
            group.count = count.unwrap_or(u32::from(!is_forked));
            tasks += i64::from(group.count);
            if tasks > i64::from(TASKS_MAX) {
                let expected = format!("at most {TASKS_MAX}");
                let problem = range("the number of tasks of all groups so far", tasks, &expected);
                return Err(self.source.error(at, problem));
            }
        }
        Ok(groups)
    }

    /// Refuses a group that does not say how many tasks exist from the start, and that only groups
    /// fork of which none ever begins, such as itself. `forks` are the groups that each one forks.
    fn refuse_unbegun(
        &self,
        counts: &[(Option<u32>, usize)],
        forks: &[Vec<u32>],
    ) -> Result<(), FileError> {
        let forked = &self.names.forked;
        let says = |index: usize| counts[index].0.is_some() || !forked.contains(&number(index));
        let mut begins: Vec<bool> = (0..counts.len()).map(says).collect();
        let mut left: Vec<usize> = (0..counts.len()).filter(|it| begins[*it]).collect();
        while let Some(forker) = left.pop() {
            for group in &forks[forker] {
                let group = *group as usize;
                if !std::mem::replace(&mut begins[group], true) {
                    left.push(group);
                }
            }
        }
        let Some(never) = begins.iter().position(|begins| !begins) else {
            return Ok(());
        };
        let found = "a group that is forked only by tasks that nobody begins";
        let problem = Problem::unexpected(found, "`count = 1`, so that a task begins");
        Err(self.source.error(counts[never].1, problem))
    }

    /// A group, whose count is filled in when all forks are known.
    pub(super) fn group(
        &mut self,
        name: &str,
        table: &mut FileTable<'a>,
    ) -> Result<Group, FileError> {
        let nice = table.get("nice");
        let nice = nice.map_or(Ok(0), |nice| self.integer(nice, -20..=19, "nice"))?;
        let policy = table.text(
            "policy",
            "a scheduling policy, as \"normal\" or \"fifo:50\"",
        )?;
        let policy = policy
            .map(|text| self.read(text, Parser::policy))
            .transpose()?;
        let cgroup = self.cgroup_of(table)?;
        let cpus_at = table.get("cpus").map(|value| value.span().start);
        let cpus = self.cpus(table)?;
        if let (Some(SchedPolicy::Deadline(_)), Some(_), Some(at)) = (policy, &cpus, cpus_at) {
            let expected = "\"all\": the kernel refuses to bind a deadline task to CPUs";
            let problem = Problem::unexpected("`cpus` of a deadline task", expected);
            return Err(self.source.error(at, problem));
        }
        let start = table.text("start", "a span of time, as \"1.5ms\"")?;
        let start = start
            .map(|text| self.read(text, Parser::dist))
            .transpose()?;
        let kind = table.get("kind");
        let kinds = [
            ("thread", TaskKind::Thread),
            ("process", TaskKind::Process),
            ("kernel", TaskKind::Kernel),
        ];
        let kind = kind.map_or(Ok(TaskKind::Thread), |kind| self.choice(kind, &kinds))?;
        let migration_disabled = table.flag("migration_disabled")?;
        let footprint = table.get("footprint");
        let footprint = footprint
            .map(|value| self.integer(value, 0..=FOOTPRINT_MAX, "footprint"))
            .transpose()?;
        let mem = table.get("mem");
        let mem = mem.map(|value| self.integer(value, 0..=100, "mem"));
        let mem = mem.transpose()?.unwrap_or(0);
        let clamps = self.clamps(table)?;
        let expected = "operations, as \"loop(inf)[ run(1ms), sleep(2ms) ]\"";
        let body = table.require("do", "what the task does")?;
        let (body, variables) = self.body(&texts(self.source, body, expected)?)?;
        Ok(Group {
            name: name.to_owned(),
            count: 0,
            nice: i8::try_from(nice).expect("the range was checked"),
            policy: policy.unwrap_or_default(),
            cgroup,
            cpus,
            start: start.unwrap_or(Dist::Const(Nanos::ZERO)),
            kind,
            migration_disabled,
            one_each_cpu: false,
            free_elsewhere: false,
            background: false,
            footprint: footprint.map(i64::unsigned_abs),
            mem: u8::try_from(mem).expect("the range was checked"),
            clamps,
            body,
            variables,
        })
    }

    /// `util_min` and `util_max`.
    fn clamps(&self, table: &mut FileTable<'a>) -> Result<UtilClamps, FileError> {
        let mut clamp = |key| {
            let value = table.get(key);
            let found = value.map(|value| self.integer(value, 0..=1024, key));
            let narrow = |found: i64| u16::try_from(found).expect("the range was checked");
            found.transpose().map(|found| found.map(narrow))
        };
        let (min, max) = (clamp("util_min")?, clamp("util_max")?);
        if let (Some(least), Some(most), Some(value)) = (min, max, table.get("util_min"))
            && least > most
        {
            let found = format!("`util_min` of {least} above `util_max` of {most}");
            let problem = Problem::unexpected(found, "at most `util_max`");
            return Err(self.source.error(value.span().start, problem));
        }
        Ok(UtilClamps { min, max })
    }

    /// A list of operations and how many variables they have.
    pub(super) fn body(&mut self, texts: &[Text]) -> Result<(Vec<Step>, u32), FileError> {
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

    pub(super) fn cpus(&self, table: &mut FileTable<'a>) -> Result<Option<CpuSet>, FileError> {
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

    pub(super) fn interrupts(&mut self) -> Result<Vec<Interrupt>, FileError> {
        let mut interrupts = Vec::new();
        for (name, at, value) in self.interrupts.clone() {
            let mut table = FileTable::new(self.source, format!("[irq.{name}]"), value)?;
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

    pub(super) fn arrival(&mut self, table: &mut FileTable<'a>) -> Result<Arrival, FileError> {
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

    pub(super) fn effect(&mut self, table: &mut FileTable<'a>) -> Result<Effect, FileError> {
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
}
