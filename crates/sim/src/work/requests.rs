//! Requests that come from outside of the machine, and the users who send them.

use std::collections::BTreeMap;

use model::{CpuId, Nanos, Rng, SimTime, TaskId};
use workload::{Demand, Entrance, Requests, Source};

use super::{InterruptWork, Work};

/// A user whose request is lost tries again after this at the earliest.
const LEAST_RETRY: Nanos = Nanos::from_millis(1);
/// Attempts to connect after which the wait is doubled no more, so that it stays below two minutes
/// with the kernel's first wait (`TCP_RTO_MAX`, Linux 6.18).
const DOUBLINGS: u32 = 6;

/// Who sends one request, and since when.
#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    since: SimTime,
    /// Attempts that found no room.
    retries: u32,
}

/// One `[arrival.A]` in execution.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    source: Source,
    rng: Rng,
    /// What an interrupt of this source is for: by time, then in the order of asking.
    due: BTreeMap<(SimTime, u64), Option<Request>>,
    asked: u64,
    /// Requests that have come.
    pub begun: u64,
    /// Requests that have come and are neither done nor lost.
    open: BTreeMap<u64, Request>,
    /// Requests that are done.
    pub done: u64,
    /// Requests that are lost, and attempts that were repeated, since a task last told of them.
    pub lost: u64,
    pub retried: u64,
    pub lost_in_all: u64,
}

/// What the end of a request says.
pub(super) struct Ended {
    pub latency: Nanos,
    pub lost: u64,
    pub retried: u64,
    /// When the next interrupt of this source comes.
    pub next: Option<SimTime>,
}

impl Arrivals {
    pub fn new(declared: &Requests, seed: u64, number: u32) -> Self {
        Self {
            source: Source::new(&declared.irq, Rng::of_arrival(seed, number)),
            rng: Rng::of_think(seed, number),
            due: BTreeMap::new(),
            asked: 0,
            begun: 0,
            open: BTreeMap::new(),
            done: 0,
            lost: 0,
            retried: 0,
            lost_in_all: 0,
        }
    }

    /// When the first interrupts come.
    pub fn first(&mut self, declared: &Requests) -> Vec<SimTime> {
        let times = match &declared.demand {
            Demand::Open(_) => vec![self.source.first(&declared.irq)],
            Demand::Closed { users, think } => {
                let start = SimTime::ZERO + declared.irq.start;
                let users = u64::from(*users).min(declared.limit.unwrap_or(u64::MAX));
                let mut think = || start + think.sample(&mut self.rng);
                (0..users).map(|_| think()).collect()
            }
        };
        times.iter().for_each(|&time| self.plan(time, None));
        times
    }

    fn plan(&mut self, time: SimTime, request: Option<Request>) {
        self.asked += 1;
        self.due.insert((time, self.asked), request);
    }

    /// Whether every request has come to its end.
    pub fn is_over(&self, declared: &Requests) -> bool {
        declared
            .limit
            .is_some_and(|limit| self.done + self.lost_in_all >= limit)
    }

    /// The user of a request that has ended thinks; when the next one comes.
    fn think(&mut self, declared: &Requests, now: SimTime, least: Nanos) -> Option<SimTime> {
        let Demand::Closed { users, think } = &declared.demand else {
            return None;
        };
        // Requests that users think about are as good as begun.
        let under_way = self.due.values().filter(|due| due.is_none()).count() as u64;
        let left = declared.limit.unwrap_or(u64::MAX) - self.begun;
        debug_assert!(under_way <= u64::from(*users), "a user thinks once");
        if under_way >= left {
            return None;
        }
        let span = think.sample(&mut self.rng).max(least);
        self.plan(now + span, None);
        Some(now + span)
    }

    /// Request `number` is done; `None` if there is no such request.
    pub fn done(&mut self, declared: &Requests, number: i64, now: SimTime) -> Option<Ended> {
        let request = self.open.remove(&u64::try_from(number).ok()?)?;
        self.done += 1;
        Some(Ended {
            latency: now.since(request.since),
            lost: std::mem::take(&mut self.lost),
            retried: std::mem::take(&mut self.retried),
            next: self.think(declared, now, Nanos::new(1)),
        })
    }

    /// The request that the interrupt of `now` brings, and when the next interrupt comes that
    /// does not depend on it.
    fn next(&mut self, declared: &Requests, now: SimTime) -> (Request, Option<SimTime>) {
        let first = self.due.pop_first();
        let ((time, _), due) = first.expect("an interrupt comes for something");
        debug_assert!(time <= now, "interrupts come in time");
        if let Some(request) = due {
            return (request, None);
        }
        let number = self.begun;
        self.begun += 1;
        let is_last = declared.limit == Some(self.begun);
        let next = match &declared.demand {
            Demand::Open(_) if !is_last => self.source.next(&declared.irq, now),
            _ => None,
        };
        if let Some(next) = next {
            self.plan(next, None);
        }
        let request = Request {
            number,
            since: now,
            retries: 0,
        };
        (request, next)
    }

    fn cost(&mut self, declared: &Requests) -> Nanos {
        self.source.cost(&declared.irq)
    }
}

impl Work {
    /// Request interrupts that are due from the start: CPU and time of each.
    pub(super) fn first_requests(&mut self, arrival: usize) -> Vec<(CpuId, SimTime)> {
        let declared = &self.workload.requests[arrival];
        let cpu = declared.irq.cpu;
        let times = self.arrivals[arrival].first(declared);
        times.into_iter().map(|time| (cpu, time)).collect()
    }

    /// A request comes, or tries again.
    pub(super) fn request(&mut self, arrival: usize, now: SimTime) -> InterruptWork {
        let workload = std::sync::Arc::clone(&self.workload);
        let declared = &workload.requests[arrival];
        let (request, next) = self.arrivals[arrival].next(declared, now);
        let steal = self.arrivals[arrival].cost(declared);
        let mut comes = InterruptWork {
            steal,
            wakes: Vec::new(),
            next: next.into_iter().collect(),
        };
        let value = i64::try_from(request.number).expect("fewer than 2^63 requests");
        let index = usize::try_from(declared.to.index()).expect("the front end has checked it");
        let woken: Option<Vec<TaskId>> = match &declared.to {
            Entrance::Channel(to) => {
                let of = to.of as usize;
                let bytes = workload.channels[of].msg;
                let sent = self.channels[of][index].send((bytes, value), now, false);
                sent.map(|wakes| wakes.tasks)
            }
            Entrance::Listener(to) => {
                let socket = &mut self.listeners[to.of as usize][index];
                let woken = socket.connect(value, request.since);
                woken.map(|task| task.into_iter().collect())
            }
        };
        let arrivals = &mut self.arrivals[arrival];
        match (woken, &declared.to) {
            (Some(tasks), _) => {
                arrivals.open.insert(request.number, request);
                comes.wakes = tasks;
            }
            (None, Entrance::Channel(_)) => {
                arrivals.lost += 1;
                arrivals.lost_in_all += 1;
                comes
                    .next
                    .extend(arrivals.think(declared, now, LEAST_RETRY));
            }
            (None, Entrance::Listener(to)) => {
                arrivals.retried += 1;
                let wait = retry_after(workload.listeners[to.of as usize].retry, request.retries);
                let retries = request.retries + 1;
                arrivals.plan(now + wait, Some(Request { retries, ..request }));
                comes.next.push(now + wait);
            }
        }
        self.is_stopped |= self.requests_are_over();
        comes
    }

    /// Whether one of the arrivals that end the run has come to its end.
    pub(super) fn requests_are_over(&self) -> bool {
        let mut ending = self.workload.stop.requests.iter().map(|&of| of as usize);
        ending.any(|of| self.arrivals[of].is_over(&self.workload.requests[of]))
    }

    /// What is to be said of requests that nobody has told of, at the end of a run.
    pub(super) fn note_requests(&self) -> Vec<String> {
        let declared = self.workload.requests.iter().zip(&self.arrivals);
        let rows = declared.filter(|(_, arrivals)| {
            arrivals.lost > 0 || arrivals.retried > 0 || !arrivals.open.is_empty()
        });
        rows.map(|(declared, arrivals)| {
            format!(
                "arrival {}: of {} requests {} are done, {} lost, {} under way; {} lost and {} \
                 repeated attempts since the last one was done are in no counter",
                declared.irq.name,
                arrivals.begun,
                arrivals.done,
                arrivals.lost_in_all,
                arrivals.open.len(),
                arrivals.lost,
                arrivals.retried,
            )
        })
        .collect()
    }
}

/// How long a client waits after `attempts` earlier attempts: twice as long each time.
pub(super) fn retry_after(first: Nanos, attempts: u32) -> Nanos {
    Nanos::new(first.get().saturating_mul(1 << attempts.min(DOUBLINGS))).min(workload::DRAW_MAX)
}
