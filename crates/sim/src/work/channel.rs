//! Channels: what they hold, who waits for them, and whom an operation wakes.
//!
//! The rules are those of Linux 6.18 as far as they show in wakeups; docs/workload.md has the
//! table.

use std::collections::VecDeque;

use model::growth::Level;
use model::{SimTime, TaskId};
use workload::{Capacity, Channel, ChannelKind};

/// What the kernel lets a stream socket of `AF_UNIX` have in flight: `net.core.wmem_default`
/// (212,992 bytes).
const UNIX_BYTES: u64 = 212_992;

/// `PIPE_DEF_BUFFERS` and the page size (x86-64), Linux 6.18, `include/linux/pipe_fs_i.h`.
const PIPE_PAGES: u64 = 16;
const PAGE: u64 = 4096;

/// Payload that a TCP connection over the loopback device took before its writer blocked, its
/// window grown to the limit: 39,482 messages of 100 bytes, measured on Linux 6.18.
const TCP_BYTES: u64 = 3_948_200;

/// What one message of an `AF_UNIX` socket is charged: the buffer's head is 256 bytes, its data
/// lie in an allocation of a power of two together with 320 bytes of `skb_shared_info` (Linux
/// 6.18, x86-64, `SKB_TRUESIZE` in `include/linux/skbuff.h`).
fn unix_charge(bytes: u64) -> u64 {
    256 + (bytes + 320).next_power_of_two()
}

/// A message in flight.
#[derive(Clone, Copy, Debug)]
struct Message {
    sent: SimTime,
    value: i64,
    /// What it takes of the capacity, in the channel's own unit.
    charge: u64,
}

/// One instance of a channel.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    kind: ChannelKind,
    capacity: Capacity,
    messages: VecDeque<Message>,
    /// How many there are, over time, where they may become ever more.
    level: Option<Box<Level>>,
    /// What the messages take of the capacity.
    used: u64,
    /// Pipes only: for each page, how many of its bytes have been written, and how many of its
    /// messages are still unread.
    pages: VecDeque<(u64, u64)>,
    /// Pipes only: pages of the longest message that ever found no room.
    pages_wanted: u64,
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
}

/// Whom an operation wakes, and whether it tells the kernel that it is about to sleep.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wakes {
    pub tasks: Vec<TaskId>,
    pub sync: bool,
}

impl Queue {
    pub fn new(channel: &Channel) -> Self {
        Self {
            kind: channel.kind,
            capacity: channel.capacity,
            messages: VecDeque::new(),
            level: None,
            used: 0,
            pages: VecDeque::new(),
            pages_wanted: 1,
            readers: VecDeque::new(),
            writers: VecDeque::new(),
        }
    }

    /// Follows how many messages wait.
    pub fn follow(&mut self) {
        self.level = Some(Box::default());
    }

    /// Whether the messages that wait still became more in the second half of a run that ends at
    /// `end`.
    pub fn grows(&mut self, end: SimTime) -> bool {
        let level = self.level.as_mut();
        level.is_some_and(|it| it.grown_to(end).is_some())
    }

    /// Messages that wait and were sent before `time`.
    pub fn sent_before(&self, time: SimTime) -> u64 {
        let sent = self.messages.iter().filter(|it| it.sent < time);
        sent.count() as u64
    }

    /// Messages that wait.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Puts a message of so many bytes with a value in, or says `None` when the channel is full.
    /// `woken`: the sender had waited for this.
    pub fn send(&mut self, (bytes, value): (u64, i64), now: SimTime, woken: bool) -> Option<Wakes> {
        if !self.has_room(bytes) {
            self.pages_wanted = self.pages_wanted.max(bytes.div_ceil(PAGE));
            return None;
        }
        let was_empty = self.messages.is_empty();
        let charge = self.charge(bytes);
        if self.is_paged() {
            self.fill_pages(bytes);
        }
        self.messages.push_back(Message {
            sent: now,
            value,
            charge,
        });
        if let Some(level) = &mut self.level {
            level.step(now, true);
        }
        self.used += charge;
        let tells_reader = self.kind != ChannelKind::Pipe || was_empty;
        let mut wakes = Wakes {
            tasks: Vec::new(),
            sync: self.kind != ChannelKind::Queue,
        };
        wakes
            .tasks
            .extend(tells_reader.then(|| self.readers.pop_front()).flatten());
        // pipe_write() passes the wakeup on when it leaves room (`wake_next_writer`).
        let passes_on = woken && self.kind == ChannelKind::Pipe && !self.is_full();
        wakes
            .tasks
            .extend(passes_on.then(|| self.writers.pop_front()).flatten());
        Some(wakes)
    }

    /// Takes a message out and says its value and when it was sent, or `None` when there is
    /// none. `woken`: the reader had waited for this.
    pub fn recv(&mut self, now: SimTime, woken: bool) -> Option<((i64, SimTime), Wakes)> {
        let was_full = self.is_full();
        let message = self.messages.pop_front()?;
        if let Some(level) = &mut self.level {
            level.step(now, false);
        }
        self.used -= message.charge;
        let frees_page = self.is_paged() && self.empty_page();
        let sync = matches!(self.kind, ChannelKind::Unix | ChannelKind::Pipe);
        let mut wakes = Wakes {
            tasks: Vec::new(),
            sync,
        };
        match self.kind {
            ChannelKind::Unix if self.at_most(1, 4) => wakes.tasks.extend(self.writers.drain(..)),
            ChannelKind::Tcp if self.at_most(2, 3) => wakes.tasks.extend(self.writers.drain(..)),
            ChannelKind::Pipe => {
                let tells_writer = if self.is_paged() {
                    was_full && frees_page
                } else {
                    true
                };
                wakes
                    .tasks
                    .extend(tells_writer.then(|| self.writers.pop_front()).flatten());
                // pipe_read() passes the wakeup on when it leaves data (`wake_next_reader`).
                let passes_on = woken && !self.messages.is_empty();
                wakes
                    .tasks
                    .extend(passes_on.then(|| self.readers.pop_front()).flatten());
            }
            ChannelKind::Queue => wakes.tasks.extend(self.writers.pop_front()),
            ChannelKind::Unix | ChannelKind::Tcp => {}
        }
        Some(((message.value, message.sent), wakes))
    }

    /// `task` sleeps until there is a message.
    pub fn wait_to_recv(&mut self, task: TaskId) {
        self.readers.push_back(task);
    }

    /// `task` sleeps until there is room.
    pub fn wait_to_send(&mut self, task: TaskId) {
        self.writers.push_back(task);
    }

    /// A pipe with the kernel's own capacity counts pages, not bytes.
    fn is_paged(&self) -> bool {
        self.kind == ChannelKind::Pipe && matches!(self.capacity, Capacity::Kernel)
    }

    /// Whether a pipe has no page left, or too few for a message that waits: the kernel would have
    /// filled them with that message's begin.
    fn is_full(&self) -> bool {
        self.is_paged() && self.pages.len() as u64 + self.pages_wanted > PIPE_PAGES
    }

    fn charge(&self, bytes: u64) -> u64 {
        match (self.capacity, self.kind) {
            (Capacity::Messages(_), _) => 1,
            (Capacity::Kernel, ChannelKind::Unix) => unix_charge(bytes),
            _ => bytes,
        }
    }

    /// The limit of `used`; `None` where there is none, or pages are counted.
    fn limit(&self) -> Option<u64> {
        match (self.capacity, self.kind) {
            (Capacity::Messages(limit) | Capacity::Bytes(limit), _) => Some(limit),
            (Capacity::Kernel, ChannelKind::Unix) => Some(UNIX_BYTES),
            (Capacity::Kernel, ChannelKind::Tcp) => Some(TCP_BYTES),
            (Capacity::Kernel, ChannelKind::Pipe | ChannelKind::Queue)
            | (Capacity::Unbounded, _) => None,
        }
    }

    /// Sockets take a message whole while anything is free (`sock_alloc_send_pskb()`); the rest
    /// take what fits, but an empty channel takes any message.
    fn has_room(&self, bytes: u64) -> bool {
        if self.is_paged() {
            return self.pages_for(bytes) + self.pages.len() as u64 <= PIPE_PAGES
                || self.messages.is_empty();
        }
        let Some(limit) = self.limit() else {
            return true;
        };
        match self.kind {
            ChannelKind::Unix | ChannelKind::Tcp => self.used < limit,
            _ => self.used + self.charge(bytes) <= limit || self.messages.is_empty(),
        }
    }

    /// Whether at most `part / whole` of the capacity is in use.
    fn at_most(&self, part: u64, whole: u64) -> bool {
        self.limit()
            .is_none_or(|limit| self.used * whole <= limit * part)
    }

    /// New pages that a message needs: none if it fits the last page whole.
    fn pages_for(&self, bytes: u64) -> u64 {
        let fits = self
            .pages
            .back()
            .is_some_and(|(written, _)| written + bytes <= PAGE);
        if fits { 0 } else { bytes.div_ceil(PAGE) }
    }

    fn fill_pages(&mut self, bytes: u64) {
        if self.pages_for(bytes) == 0 {
            let (written, unread) = self
                .pages
                .back_mut()
                .expect("the message fits the last page");
            *written += bytes;
            *unread += 1;
            return;
        }
        // A long message fills pages of its own; the last one counts it as unread, so that all
        // of them become free together with it.
        for _ in 1..bytes.div_ceil(PAGE) {
            self.pages.push_back((PAGE, 0));
        }
        self.pages.push_back(((bytes - 1) % PAGE + 1, 1));
    }

    /// The oldest message has been read: whether that frees a page.
    fn empty_page(&mut self) -> bool {
        let whole = self
            .pages
            .iter()
            .take_while(|(_, unread)| *unread == 0)
            .count();
        self.pages.drain(..whole);
        let (_, unread) = self.pages.front_mut().expect("a message lies in a page");
        *unread -= 1;
        let is_read = *unread == 0;
        if is_read {
            self.pages.pop_front();
        }
        whole > 0 || is_read
    }
}
