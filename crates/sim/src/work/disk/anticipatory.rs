//! The anticipatory elevator: after a read the disk may wait for the next read of the same task.
//!
//! Linux 2.6.0 to 2.6.32 had it, until 2.6.17 by default. The rules are those of
//! `drivers/block/as-iosched.c`, Linux 2.6.11, the oldest version that was read in full. Times are
//! jiffies of 1 ms (HZ 1000, as on a PC). A request counts as the driver's until it ends, as with
//! an IDE disk.

use std::collections::BTreeMap;

use model::{Nanos, SimTime, TaskId};

use super::Request;
use super::waiting::Waiting;

/// Reads, and writes that a task waits for. The index of such requests in tables.
pub(super) const SYNC: usize = 0;
/// Other writes.
pub(super) const ASYNC: usize = 1;

/// Jiffies after which a request goes out of turn (`read_expire`, HZ / 8; `write_expire`, HZ / 4).
const EXPIRE: [u64; 2] = [125, 250];
/// Jiffies of a batch (`read_batch_expire`, HZ / 2; `write_batch_expire`, HZ / 8).
const BATCH: [u64; 2] = [500, 125];
/// Jiffies for which the disk waits for a read at most (`antic_expire`, HZ / 150).
const ANTIC_EXPIRE: u64 = 6;
/// The longest time between two reads of a task that is noted (`MAX_THINKTIME` - 1, HZ / 50 - 1).
const THINK_MAX: u64 = 19;
/// How far the head goes back for a request, in sectors (`MAXBACK`).
const BACK_MAX: u64 = 1024 * 1024;
/// What a way back costs, compared with one forwards (`BACK_PENALTY`).
const BACK_PENALTY: u64 = 2;
/// Another task's read at most so many sectors further is as good as the awaited one
/// (`as_close_req()`); twice as many for each jiffy of waiting after the first.
const CLOSE: u64 = 64;
/// Above this chance, in 256ths, that a new task exits instead of reading on, none is awaited.
const EXIT_MAX: u64 = 128;
/// Sectors of a page.
const SECTORS: u64 = workload::PAGE / 512;

/// A mean that forgets: each value has an eighth of the weight. In 256ths, rounded as there.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    samples: u64,
    total: u64,
    mean: u64,
}

impl Mean {
    /// `as_update_thinktime()`.
    fn add_time(&mut self, value: u64) {
        self.samples = faded(self.samples, 1);
        self.total = faded(self.total, value);
        self.mean = (self.total + 128) / self.samples;
    }

    /// `as_update_seekdist()`: far places count less, so that one of them does not spoil the mean.
    fn add_distance(&mut self, value: u64) {
        let allowed = if self.samples <= 60 {
            2 * 1024 * 1024
        } else {
            2 * 1024 * 64
        };
        let value = value.min(self.mean * 4 + allowed);
        self.samples = faded(self.samples, 1);
        self.total = faded(self.total, value);
        self.mean = (self.total + self.samples / 2) / self.samples;
    }
}

/// How a task reads.
#[derive(Clone, Debug, Default)]
struct Habits {
    /// Its requests that wait or are served.
    under_way: u32,
    /// The sector behind its last read.
    place: Option<u64>,
    /// When its last read ended.
    ended: Option<u64>,
    /// Time from the end of a read to the next.
    think: Mean,
    /// Sectors from the end of a read to the next.
    seek: Mean,
    /// Whether it has exited.
    is_gone: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is awaited.
    #[default]
    Off,
    /// Nothing is served until the awaited read comes, or time is up.
    Waiting,
    /// It has come, or time is up: the next request is served without waiting again.
    Finished,
}

/// Where the anticipatory elevator stands.
#[derive(Clone, Debug)]
pub(super) struct Anticipation {
    /// Whether this is a batch of writes.
    writes: bool,
    /// The batch ends after this.
    batch_until: u64,
    /// Whether the first read of a batch has not ended: the batch has not begun to count.
    is_new: bool,
    /// Writes of a batch, which adapts to what the disk can do in its time, and what is left of it.
    write_count: u64,
    writes_left: u64,
    /// Whether a batch of writes had no reads to hurry for: its time says nothing.
    has_idled: bool,
    /// When requests were last looked at for their age.
    looked: [u64; 2],
    /// The sector behind the last request that was served.
    ends: [u64; 2],
    state: State,
    /// Whose read was served last; nobody's after a write.
    awaited: Option<TaskId>,
    /// When that read ended.
    since: Option<u64>,
    /// The chance that a new task exits, or lets time pass, instead of reading on; in 256ths.
    exits: u64,
    /// How new tasks read.
    new_think: [u64; 2],
    new_seek: [u64; 2],
    tasks: BTreeMap<TaskId, Habits>,
    /// The point in time for which an interrupt was asked.
    timer: Option<u64>,
}

/// The kind of a request for this elevator.
pub(super) fn kind(request: &Request) -> usize {
    if request.is_sync { SYNC } else { ASYNC }
}

fn jiffies(now: SimTime) -> u64 {
    now.as_nanos() / Nanos::from_millis(1).get()
}

fn sector(page: u64) -> u64 {
    page * SECTORS
}

impl Default for Anticipation {
    fn default() -> Self {
        Self {
            writes: false,
            batch_until: BATCH[SYNC],
            is_new: false,
            write_count: BATCH[ASYNC] / 10,
            writes_left: 0,
            has_idled: false,
            looked: [0; 2],
            ends: [0; 2],
            state: State::Off,
            awaited: None,
            since: None,
            exits: 0,
            new_think: [0; 2],
            new_seek: [0; 2],
            tasks: BTreeMap::new(),
            timer: None,
        }
    }
}

impl Anticipation {
    /// A request is about to wait: notes how its task reads (`as_update_iohist()`), and whether it
    /// ends the disk's waiting (`as_update_arq()`).
    pub fn note(&mut self, request: &Request, now: SimTime) {
        let now = jiffies(now);
        let (first, end) = (sector(request.page), sector(request.page + request.pages));
        let habits = self.tasks.entry(request.by).or_default();
        if kind(request) == SYNC {
            if let Some(place) = habits.place {
                let idle_since = habits.ended.filter(|_| habits.under_way == 0);
                let think = idle_since.map_or(0, |ended| (now - ended).min(THINK_MAX));
                let distance = place.abs_diff(first);
                if habits.think.samples == 0 {
                    add_new(&mut self.new_think, think);
                    self.exits = faded(self.exits, 0);
                }
                if habits.seek.samples == 0 {
                    add_new(&mut self.new_seek, distance);
                }
                habits.think.add_time(think);
                habits.seek.add_distance(distance);
            }
            habits.place = Some(end);
        }
        habits.under_way += 1;
        if self.state == State::Waiting && self.breaks(Some(request), now) {
            self.state = State::Finished;
        }
    }

    /// A request has ended.
    pub fn ended(&mut self, request: &Request, now: SimTime) {
        let now = jiffies(now);
        if self.is_new && kind(request) == SYNC {
            self.adapt_writes(now);
            self.batch_until = now + BATCH[SYNC];
            self.is_new = false;
        }
        if self.awaited == Some(request.by) {
            self.since = Some(now);
        }
        let habits = self.tasks.get_mut(&request.by);
        let habits = habits.expect("a task with requests is known");
        habits.under_way -= 1;
        if kind(request) == SYNC {
            habits.ended = Some(now);
        }
        self.sweep(request.by);
    }

    /// A task has exited.
    pub fn leave(&mut self, task: TaskId) {
        if let Some(habits) = self.tasks.get_mut(&task) {
            habits.is_gone = true;
            self.sweep(task);
        }
    }

    /// Forgets a task that has exited, once nothing of it matters.
    fn sweep(&mut self, task: TaskId) {
        let habits = self.tasks.get(&task);
        let is_over = habits.is_some_and(|habits| habits.is_gone && habits.under_way == 0);
        if is_over && self.awaited != Some(task) {
            self.tasks.remove(&task);
        }
    }

    /// The point in time for which a timer was set has come.
    pub fn time_is_up(&mut self, now: SimTime) {
        self.timer = None;
        let now = jiffies(now);
        let is_up = self.since.is_some_and(|since| since + ANTIC_EXPIRE <= now);
        if self.state == State::Waiting && is_up {
            self.state = State::Finished;
            self.count_exit();
        }
    }

    /// When the disk is to be interrupted because it has waited long enough, unless it will be.
    /// A timer that is no longer needed is not taken back, and serves the next waiting.
    pub fn arm(&mut self) -> Option<SimTime> {
        if self.state != State::Waiting || self.timer.is_some() {
            return None;
        }
        self.timer = self.since.map(|since| since + ANTIC_EXPIRE);
        self.timer
            .map(|jiffy| SimTime::ZERO + Nanos::from_millis(jiffy))
    }

    /// The number of the request that is served next, if one is (`as_dispatch_request()`).
    /// `is_busy`: others are served.
    pub fn next(&mut self, waiting: &Waiting, is_busy: bool, now: SimTime) -> Option<u64> {
        let now = jiffies(now);
        let [reads, writes] = [SYNC, ASYNC].map(|kind| waiting.has(kind));
        if self.writes && !reads && (self.writes_left == 0 || !writes) {
            self.has_idled = true;
        }
        if !(reads || writes) || self.state == State::Waiting {
            return None;
        }
        if !(reads && writes && self.is_batch_over(now)) {
            let best = self.best(waiting, usize::from(self.writes));
            if !self.writes {
                if self.is_late(waiting, SYNC, now) {
                    let oldest = waiting.oldest(SYNC).expect("a late one waits");
                    return Some(self.serve(waiting, oldest));
                }
                let request = best.map(|number| waiting.request(number));
                if self.waits(request, now) {
                    self.state = State::Waiting;
                    return None;
                }
            }
            if let Some(best) = best {
                if reads && !writes {
                    self.batch_until = now + BATCH[SYNC];
                }
                return Some(self.serve_in_turn(waiting, best, now));
            }
        }
        // A batch of the other kind begins when nothing is served.
        if is_busy {
            return None;
        }
        let first = self.turn(waiting, now);
        Some(self.serve_in_turn(waiting, first, now))
    }

    /// Begins a batch of the other kind; its first request.
    fn turn(&mut self, waiting: &Waiting, now: u64) -> u64 {
        self.writes = !self.writes;
        self.is_new = !self.writes;
        let first = if self.writes {
            self.writes_left = self.write_count;
            self.has_idled = false;
            self.batch_until = now + BATCH[ASYNC];
            self.best(waiting, ASYNC)
        } else {
            self.looked[SYNC] = now;
            waiting.oldest(SYNC)
        };
        first.expect("a batch that ends for the other kind finds one of it")
    }

    fn serve_in_turn(&mut self, waiting: &Waiting, number: u64, now: u64) -> u64 {
        let kind = usize::from(self.writes);
        let oldest = waiting.oldest(kind);
        let late = oldest.filter(|_| self.is_late(waiting, kind, now));
        self.serve(waiting, late.unwrap_or(number))
    }

    /// `as_move_to_dispatch()`.
    fn serve(&mut self, waiting: &Waiting, number: u64) -> u64 {
        let request = waiting.request(number);
        let kind = kind(request);
        self.state = State::Off;
        self.since = None;
        self.ends[kind] = sector(request.page + request.pages);
        let before = self.awaited;
        if kind == SYNC {
            self.awaited = Some(request.by);
        } else {
            self.awaited = None;
            self.writes_left = self.writes_left.saturating_sub(1);
        }
        before.into_iter().for_each(|task| self.sweep(task));
        number
    }

    /// The nearest request: forwards, or a little backwards, else the lowest (`as_choose_req()`).
    fn best(&self, waiting: &Waiting, kind: usize) -> Option<u64> {
        let end = self.ends[kind];
        let page = end / SECTORS;
        let above = waiting.above(kind, page);
        let below = waiting.below(kind, page);
        let below = below.filter(|&(page, _)| sector(page) + BACK_MAX >= end);
        let chosen = match (above, below) {
            (Some(up), Some(down)) => {
                let back = (end - sector(down.0)) * BACK_PENALTY;
                Some(if back < sector(up.0) - end { down } else { up })
            }
            (up, down) => up.or(down).or_else(|| waiting.above(kind, 0)),
        };
        chosen.map(|(_, number)| number)
    }

    /// `as_batch_expired()`.
    fn is_batch_over(&self, now: u64) -> bool {
        !self.is_new && (now > self.batch_until || (self.writes && self.writes_left == 0))
    }

    /// Whether the oldest request of a kind has waited too long; looked at once in a while, since
    /// many such requests would mean as many seeks (`as_fifo_expired()`).
    fn is_late(&mut self, waiting: &Waiting, kind: usize, now: u64) -> bool {
        if now - self.looked[kind] < EXPIRE[kind] {
            return false;
        }
        self.looked[kind] = now;
        let oldest = waiting.oldest(kind);
        oldest.is_some_and(|oldest| now > jiffies(waiting.since(oldest)) + EXPIRE[kind])
    }

    /// Whether the disk waits for a better request than this one (`as_can_anticipate()`).
    fn waits(&mut self, request: Option<&Request>, now: u64) -> bool {
        self.awaited.is_some() && self.state != State::Finished && !self.breaks(request, now)
    }

    /// Whether waiting for the awaited task's read makes no sense, or `request` is as good
    /// (`as_can_break_anticipation()`).
    fn breaks(&mut self, request: Option<&Request>, now: u64) -> bool {
        let task = self.awaited.expect("somebody is awaited");
        if request.is_some_and(|request| request.by == task) {
            return true;
        }
        if self.since.is_some_and(|since| now >= since + ANTIC_EXPIRE) {
            return true;
        }
        if self.tasks[&task].is_gone {
            self.count_exit();
            return true;
        }
        if self.tasks[&task].under_way > 0 {
            return true;
        }
        if request.is_some_and(|request| kind(request) == SYNC && self.is_close(request, now)) {
            // Tasks that work at one place: the awaited one does not think meanwhile.
            let habits = self.tasks.get_mut(&task).expect("it is known");
            habits.ended = Some(now);
            return true;
        }
        let habits = &self.tasks[&task];
        let is_new = habits.think.samples == 0;
        let thinks = if is_new {
            self.new_think[1]
        } else {
            habits.think.mean
        };
        if thinks > ANTIC_EXPIRE || (is_new && self.exits > EXIT_MAX) {
            return true;
        }
        let is_new = habits.seek.samples == 0;
        let seeks = if is_new {
            self.new_seek[1]
        } else {
            habits.seek.mean
        };
        request.is_some_and(|request| self.ends[SYNC].abs_diff(sector(request.page)) < seeks)
    }

    /// `as_close_req()`.
    fn is_close(&self, request: &Request, now: u64) -> bool {
        let waited = match (self.state, self.since) {
            (State::Waiting, Some(since)) => now - since,
            _ => 0,
        };
        if waited > ANTIC_EXPIRE {
            return true;
        }
        let delta = CLOSE << waited.saturating_sub(1);
        let (last, next) = (self.ends[usize::from(self.writes)], sector(request.page));
        last.saturating_sub(delta / 2) <= next && next <= last + delta
    }

    /// The awaited task has exited, or let time pass: counts, if it is new.
    fn count_exit(&mut self) {
        let task = self.awaited.expect("somebody is awaited");
        if self.tasks[&task].think.samples == 0 {
            self.exits = faded(self.exits, 1);
        }
    }

    /// Writes of the next batch, by how long the last one took (`update_write_batch()`).
    fn adapt_writes(&mut self, now: u64) {
        let batch = BATCH[ASYNC];
        let time = (now + batch).saturating_sub(self.batch_until);
        if time > batch && !self.has_idled {
            if time > batch * 3 {
                self.write_count /= 2;
            } else {
                self.write_count -= 1;
            }
        } else if time < batch && self.writes_left == 0 {
            if batch > time * 3 {
                self.write_count *= 2;
            } else {
                self.write_count += 1;
            }
        }
        self.write_count = self.write_count.max(1);
    }
}

/// A sum in 256ths in which each value has an eighth of the weight, after one more value.
fn faded(sum: u64, value: u64) -> u64 {
    (7 * sum + 256 * value) / 8
}

/// A mean of values of new tasks: total in 256ths, and mean.
fn add_new(mean: &mut [u64; 2], value: u64) {
    mean[0] = faded(mean[0], value);
    mean[1] = mean[0] / 256;
}

#[cfg(test)]
mod tests;
