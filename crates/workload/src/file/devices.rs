//! Reads the tables of what tasks share, and of what comes from outside.

use super::{COUNT_MAX, FileReader, small};
use crate::names::intern;
use crate::parser::{Parser, range};
use crate::{
    Arrival, Condition, Demand, Dist, Effect, Entrance, Hotplug, Interrupt, Keys, Listener,
    LockKind, Requests, Semaphore, Woken,
};
use model::file::FileTable;
use model::file::{FileError, Problem};
use model::{CpuId, Nanos};

/// Most keys of a lock. Only those that are held take memory.
const KEYS_MAX: i64 = 1_000_000_000;

/// Most arrivals a second: one each nanosecond.
const RATE_MAX: i64 = 1_000_000_000;

/// The wait before a client's second attempt to connect (`TCP_TIMEOUT_INIT`, Linux 6.18).
const RETRY: Nanos = Nanos::from_secs(1);

/// `SOMAXCONN`, Linux 5.4 and later.
const BACKLOG: u32 = 4096;

impl<'a> FileReader<'a> {
    /// Kind of a lock, and how many there are.
    pub(super) fn lock_kind(
        &mut self,
        table: &mut FileTable<'a>,
    ) -> Result<(LockKind, u32), FileError> {
        let kinds = [
            ("mutex", LockKind::Mutex),
            ("rw", LockKind::ReadWrite),
            (
                "keyed",
                LockKind::Keyed(Keys {
                    count: 1,
                    hot: 1,
                    percent: 0,
                }),
            ),
        ];
        let kind = table.get("kind");
        let kind = kind.map_or(Ok(LockKind::Mutex), |kind| self.choice(kind, &kinds))?;
        if !matches!(kind, LockKind::Keyed(_)) {
            let count = self.count(table, 1..=COUNT_MAX)?.unwrap_or(1);
            return Ok((kind, count));
        }
        let keys = table.require("keys", "how many keys there are")?;
        let count = small(self.integer(keys, 1..=KEYS_MAX, "keys")?);
        let hot = table.get("hot");
        let limits = 1..=i64::from(count);
        let hot = hot
            .map(|hot| self.integer(hot, limits, "hot").map(small))
            .transpose()?;
        let percent = match hot {
            None => 0,
            Some(_) => {
                let percent = table.require("hot_percent", "how many draws are hot keys")?;
                self.integer(percent, 1..=100, "hot_percent")?
            }
        };
        let keys = Keys {
            count,
            hot: hot.unwrap_or(count),
            percent: u8::try_from(percent).expect("the range was checked"),
        };
        Ok((LockKind::Keyed(keys), count))
    }

    pub(super) fn semaphores(&mut self) -> Result<Vec<Semaphore>, FileError> {
        let mut semaphores = Vec::new();
        for (name, at, value) in self.semaphores.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[sem.{name}]"), value)?;
            let count = self.count(&mut table, 1..=COUNT_MAX)?.unwrap_or(1);
            let tokens = table.get("value");
            let tokens = tokens.map_or(Ok(0), |value| self.integer(value, 0..=COUNT_MAX, "value"));
            let value = small(tokens?);
            table.finish()?;
            self.names.semaphores.push((name.to_owned(), count));
            let name = name.to_owned();
            semaphores.push(Semaphore { name, count, value });
        }
        Ok(semaphores)
    }

    pub(super) fn conditions(&mut self) -> Result<Vec<Condition>, FileError> {
        let mut conditions = Vec::new();
        for (name, at, value) in self.conditions.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[cond.{name}]"), value)?;
            let count = self.count(&mut table, 1..=COUNT_MAX)?.unwrap_or(1);
            table.finish()?;
            self.names.conditions.push((name.to_owned(), count));
            let name = name.to_owned();
            conditions.push(Condition { name, count });
        }
        Ok(conditions)
    }

    pub(super) fn listeners(&mut self) -> Result<Vec<Listener>, FileError> {
        let mut listeners = Vec::new();
        for (name, at, value) in self.listeners.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[listen.{name}]"), value)?;
            let count = self.count(&mut table, 1..=COUNT_MAX)?.unwrap_or(1);
            let backlog = table.get("backlog");
            let backlog = backlog
                .map(|backlog| self.integer(backlog, 0..=COUNT_MAX, "backlog").map(small))
                .transpose()?;
            let retry = self.span(&mut table, "retry", false)?;
            let wake = table.get("wake");
            let kinds = [("fifo", Woken::First), ("lifo", Woken::Last)];
            let woken = wake.map_or(Ok(Woken::First), |value| self.choice(value, &kinds))?;
            table.finish()?;
            self.names.listeners.push((name.to_owned(), count));
            listeners.push(Listener {
                name: name.to_owned(),
                count,
                backlog: backlog.unwrap_or(BACKLOG),
                retry: retry.unwrap_or(RETRY),
                woken,
                retries: intern(&format!("{name}_retries"), &mut self.names.counters),
            });
        }
        Ok(listeners)
    }

    pub(super) fn requests(&mut self) -> Result<Vec<Requests>, FileError> {
        let mut requests = Vec::new();
        for (name, at, value) in self.requests.clone() {
            self.check_name(name, at)?;
            let mut table = FileTable::new(self.source, format!("[arrival.{name}]"), value)?;
            let demand = self.demand(&mut table)?;
            let to = self.entrance(&mut table)?;
            let limit = table.get("limit");
            let limit = limit
                .map(|limit| self.integer(limit, 1..=i64::MAX, "limit"))
                .transpose()?;
            let irq = self.bringer(name, at, &mut table, &demand)?;
            table.finish()?;
            self.names.requests.push(name.to_owned());
            let counters = &mut self.names.counters;
            requests.push(Requests {
                demand,
                to,
                limit: limit.map(i64::unsigned_abs),
                irq,
                span: intern(name, &mut self.names.spans),
                lost: intern(&format!("{name}_lost"), counters),
                retries: intern(&format!("{name}_retries"), counters),
            });
        }
        Ok(requests)
    }

    /// The interrupt that brings a request.
    fn bringer(
        &mut self,
        name: &str,
        at: usize,
        table: &mut FileTable<'a>,
        demand: &Demand,
    ) -> Result<Interrupt, FileError> {
        let cpu = table.get("cpu");
        let cpu = cpu.map_or(Ok(0), |cpu| self.integer(cpu, 0..=1023, "cpu"))?;
        let start = self.span(table, "start", true)?.unwrap_or(Nanos::ZERO);
        let cost = table.text("cost", "a span of time, as \"5us\"")?;
        let cost = cost.map(|text| self.read(text, Parser::dist)).transpose()?;
        Ok(Interrupt {
            name: name.to_owned(),
            cpu: CpuId(u16::try_from(cpu).expect("the range was checked")),
            start,
            arrival: match demand {
                Demand::Open(arrival) => arrival.clone(),
                Demand::Closed { .. } => Arrival::Once,
            },
            cost: cost.unwrap_or(Dist::Const(Nanos::ZERO)),
            effect: Effect::None,
            line: self.source.line(at),
        })
    }

    fn demand(&mut self, table: &mut FileTable<'a>) -> Result<Demand, FileError> {
        let kind = table.require("kind", "\"poisson\", \"periodic\" or \"closed\"")?;
        let kind = self.choice(kind, &[("poisson", 0), ("periodic", 1), ("closed", 2)])?;
        if kind == 2 {
            let users = table.require("users", "how many users there are")?;
            let users = small(self.integer(users, 1..=COUNT_MAX, "users")?);
            let think = table.text("think", "a distribution of spans")?;
            let think = think
                .map(|text| self.read(text, Parser::dist))
                .transpose()?;
            let think = think.unwrap_or(Dist::Const(Nanos::ZERO));
            return Ok(Demand::Closed { users, think });
        }
        let gap = self.gap(table)?;
        if kind == 0 {
            return Ok(Demand::Open(Arrival::Poisson { mean: gap }));
        }
        let jitter = table.text("jitter", "a distribution of spans")?;
        let jitter = jitter
            .map(|text| self.read(text, Parser::dist))
            .transpose()?;
        let period = gap;
        Ok(Demand::Open(Arrival::Periodic { period, jitter }))
    }

    /// The mean time between two requests: `every`, or one second by `rate`, rounded down.
    fn gap(&mut self, table: &mut FileTable<'a>) -> Result<Nanos, FileError> {
        let every = self.span(table, "every", false)?;
        let rate = table.get("rate");
        match (every, rate) {
            (Some(every), None) => Ok(every),
            (None, Some(rate)) => {
                let rate = self.integer(rate, 1..=RATE_MAX, "rate")?.unsigned_abs();
                Ok(Nanos::new(1_000_000_000 / rate))
            }
            (Some(_), Some(rate)) => {
                let problem = Problem::unexpected("`every` and `rate`", "one of them");
                Err(self.source.error(rate.span().start, problem))
            }
            (None, None) => Err(table.missing("rate", "requests a second, or `every`, a span")),
        }
    }

    fn entrance(&mut self, table: &mut FileTable<'a>) -> Result<Entrance, FileError> {
        let send = table.text("send", "a channel")?;
        let connect = table.text("connect", "a listening socket")?;
        let (text, to, count) = match (send, connect) {
            (Some(text), None) => {
                let to = self.read(text, Parser::constant_channel)?;
                let count = self.names.channels[to.of as usize].1;
                (text, Entrance::Channel(to), count)
            }
            (None, Some(text)) => {
                let to = self.read(text, Parser::constant_listener)?;
                let count = self.names.listeners[to.of as usize].1;
                (text, Entrance::Listener(to), count)
            }
            (Some(_), Some(text)) => {
                let problem = Problem::unexpected("`send` and `connect`", "one of them");
                return Err(self.source.error(text.place(0), problem));
            }
            (None, None) => {
                return Err(table.missing("send", "a channel, or `connect`, a listening socket"));
            }
        };
        let index = to.index();
        if (0..i64::from(count)).contains(&index) {
            return Ok(to);
        }
        let expected = format!("0 to {}", count - 1);
        let problem = range("the instance", index, &expected);
        Err(self.source.error(text.place(0), problem))
    }

    pub(super) fn hotplugs(&mut self) -> Result<Vec<Hotplug>, FileError> {
        let mut hotplugs = Vec::new();
        for (name, at, value) in self.hotplugs.clone() {
            let mut table = FileTable::new(self.source, format!("[hotplug.{name}]"), value)?;
            let cpu = table.require("cpu", "the CPU that goes offline, 1 or more")?;
            let cpu = self.integer(cpu, 1..=1023, "cpu")?;
            let offline = self.span(&mut table, "offline", true)?;
            let offline = offline.ok_or_else(|| table.missing("offline", "when it goes"))?;
            let online_at = table.get("online").map(|value| value.span().start);
            let online = self.span(&mut table, "online", false)?;
            if let (Some(online), Some(at)) = (online, online_at)
                && online <= offline
            {
                let problem = Problem::Range {
                    what: "online".to_owned(),
                    found: online.to_string(),
                    expected: format!("later than {offline}"),
                };
                return Err(self.source.error(at, problem));
            }
            table.finish()?;
            hotplugs.push(Hotplug {
                name: name.to_owned(),
                cpu: CpuId(u16::try_from(cpu).expect("the range was checked")),
                offline,
                online,
                line: self.source.line(at),
            });
        }
        Ok(hotplugs)
    }
}
