//! What tasks share besides channels, mutexes and barriers: the tables that declare it and the
//! operations that use it. docs/workload.md has the exact meaning.

use crate::{Arrival, CgroupOp, Dist, Expr, Handoff, IndexedResource, Interrupt, Where};
use model::{Nanos, Rng};

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// One task at a time.
    Mutex,
    /// One task, or any number that only read. Nobody who comes later passes one who waits.
    ReadWrite,
    /// A mutex for each of many keys, which a task may take again while it has it.
    Keyed(Keys),
}

/// How the keys of a keyed lock are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Keys that there are, 1 or more.
    pub count: u32,
    /// The first of them, which are drawn more often; at most `count`.
    pub hot: u32,
    /// Chance in percent that a draw is one of the hot keys; the rest is drawn from all keys.
    pub percent: u8,
}

impl Keys {
    /// One key: hot with the chance that was given, else any, each equally likely.
    ///
    /// # Panics
    /// Never: a draw below 32 bits fits them.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let hot = self.percent > 0 && rng.below(100) < u64::from(self.percent);
        let below = if hot { self.hot } else { self.count };
        u32::try_from(rng.below(below.into())).expect("a draw below 32 bits fits them")
    }
}

/// `[lock.L]`: a lock, or many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// How many there are: instances, or keys.
    pub count: u32,
    /// What it is.
    pub kind: LockKind,
    /// Action of an unlock on waiting tasks.
    pub handoff: Handoff,
}

/// `[sem.S]`: a counting semaphore. A token goes to the task that has waited longest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semaphore {
    /// Its name.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Tokens at the start.
    pub value: u32,
}

/// `[cond.C]`: a condition variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// How many there are.
    pub count: u32,
}

/// Which of the tasks that wait in `accept` is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The one that has waited longest, as in `accept()`.
    First,
    /// The one that came last, as with `epoll_wait()` on one socket.
    Last,
}

/// `[listen.A]`: a listening socket, at which connections wait to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// The backlog as `listen()` takes it; one connection more than that may wait.
    pub backlog: u32,
    /// How long a client waits before it tries again when there is no room; doubled each time.
    pub retry: Nanos,
    /// Task that a connection wakes.
    pub woken: Woken,
    /// Index of the counter of repeated attempts.
    pub retries: u32,
}

/// Source of the requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// The world: requests come whether or not the last one is done.
    Open(Arrival),
    /// So many users, each of whom waits for an answer and thinks before the next request.
    Closed {
        /// Users, 1 or more.
        users: u32,
        /// From an answer to the user's next request, and before the first.
        think: Dist,
    },
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Entrance {
    /// Into a channel, as a message. The index is a number.
    Channel(IndexedResource),
    /// To a listening socket, as a connection. The index is a number.
    Listener(IndexedResource),
}

/// `[arrival.A]`: requests that come from outside of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// Source of the requests.
    pub demand: Demand,
    /// Where to.
    pub to: Entrance,
    /// How many in all; `None`: without end.
    pub limit: Option<u64>,
    /// The interrupt that brings a request: name, CPU, cost, start and line. Its arrival is that
    /// of an open demand, and it has no effect of its own.
    pub irq: Interrupt,
    /// Index of the span that a request is, from its arrival to its `done`.
    pub span: u32,
    /// Index of the counter of requests that found a channel full.
    pub lost: u32,
    /// Index of the counter of attempts that found no room at a listening socket.
    pub retries: u32,
}

/// Operation of a task on a shared object.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceOp {
    /// Takes a read-write lock for reading.
    LockShared(IndexedResource),
    /// Takes a lock unless tasks would then wait for each other in a circle.
    TryLock {
        /// The lock.
        lock: IndexedResource,
        /// Variable that becomes 1 if they would, else 0.
        failed: u32,
    },
    /// Gives back everything that the task holds of a keyed lock; its declaration.
    UnlockAll(u32),
    /// Takes a token of a semaphore.
    SemWait(IndexedResource),
    /// Gives a token.
    SemPost(IndexedResource),
    /// Gives a lock back, sleeps until signalled, and takes the lock again.
    CondWait {
        /// The condition variable.
        cond: IndexedResource,
        /// The lock.
        lock: IndexedResource,
    },
    /// Wakes one task that waits for a condition.
    Signal(IndexedResource),
    /// Wakes all of them.
    Broadcast(IndexedResource),
    /// Connects to a listening socket.
    Connect {
        /// The socket.
        to: IndexedResource,
        /// What the accepting task sees as `got`.
        value: Expr,
    },
    /// Accepts a connection.
    Accept(IndexedResource),
    /// A request from outside is done.
    Done {
        /// Index of the arrivals' declaration.
        arrival: u32,
        /// Its number, which the task got with it.
        request: Expr,
    },
    /// Reads from a disk.
    Read {
        /// Index of the disk.
        disk: u32,
        /// Bytes, 1 or more.
        bytes: Expr,
        /// Where.
        at: Where,
    },
    /// Writes to a disk, or to its cache.
    Write {
        /// Index of the disk.
        disk: u32,
        /// Bytes, 1 or more.
        bytes: Expr,
        /// Where.
        at: Where,
    },
    /// Waits until what was written is on the disk.
    Sync(u32),
    /// Writes the dirty pages of a disk's cache to it.
    WriteBack(u32),
    /// Uses memory of the task, page by page.
    Touch {
        /// Bytes, 0 or more.
        bytes: Expr,
        /// Bytes of memory from which pages are drawn; `None`: from the first page on, in order.
        of: Option<Expr>,
    },
    /// Waits until memory is short, and makes room.
    Reclaim,
    /// Moves tasks between cgroups, or writes into a cgroup's files.
    Cgroup(CgroupOp),
    /// Begins a span that any task may end.
    SpanBegin {
        /// Which.
        span: u32,
        /// Which one of them.
        key: Expr,
    },
    /// Ends a span that any task has begun.
    SpanEnd {
        /// Which.
        span: u32,
        /// Which one of them.
        key: Expr,
    },
}

impl Entrance {
    /// Which instance of the channel or the socket.
    ///
    /// # Panics
    /// If it is no number: the front end asks for a constant.
    #[must_use]
    pub fn index(&self) -> i64 {
        let (Self::Channel(place) | Self::Listener(place)) = self;
        match place.index {
            Expr::Number(index) => index,
            ref other => unreachable!("{other:?} is no constant"),
        }
    }
}

impl DeviceOp {
    /// The expressions that it evaluates, in no particular order.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::LockShared(place)
            | Self::TryLock { lock: place, .. }
            | Self::SemWait(place)
            | Self::SemPost(place)
            | Self::Signal(place)
            | Self::Broadcast(place)
            | Self::Accept(place) => vec![&place.index],
            Self::CondWait { cond, lock } => vec![&cond.index, &lock.index],
            Self::Connect { to, value } => vec![&to.index, value],
            Self::Done { request, .. } => vec![request],
            Self::Cgroup(op) => op.exprs(),
            Self::SpanBegin { key, .. } | Self::SpanEnd { key, .. } => vec![key],
            Self::Read { bytes, at, .. } | Self::Write { bytes, at, .. } => match at {
                Where::At(at) => vec![bytes, at],
                Where::Next | Where::Anywhere => vec![bytes],
            },
            Self::Touch { bytes, of } => std::iter::once(bytes).chain(of).collect(),
            Self::UnlockAll(_) | Self::Sync(_) | Self::WriteBack(_) | Self::Reclaim => Vec::new(),
        }
    }

    /// Its name in the table of [`OPERATIONS`](crate::OPERATIONS).
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::LockShared(_) => "lock_shared",
            Self::TryLock { .. } => "lock ... else",
            Self::UnlockAll(_) => "unlock_all",
            Self::SemWait(_) => "sem_wait",
            Self::SemPost(_) => "sem_post",
            Self::CondWait { .. } => "wait",
            Self::Signal(_) => "signal",
            Self::Broadcast(_) => "broadcast",
            Self::Connect { .. } => "connect",
            Self::Accept(_) => "accept",
            Self::Done { .. } => "done",
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Sync(_) => "fsync",
            Self::WriteBack(_) => "writeback",
            Self::Touch { .. } => "touch",
            Self::Reclaim => "reclaim",
            Self::SpanBegin { .. } => "span_begin with a key",
            Self::SpanEnd { .. } => "span_end with a key",
            Self::Cgroup(CgroupOp::Move { .. }) => "cgroup_move",
            Self::Cgroup(CgroupOp::Weight { .. }) => "cgroup_weight",
            Self::Cgroup(CgroupOp::Max { .. }) => "cgroup_max",
            Self::Cgroup(CgroupOp::Idle { .. }) => "cgroup_idle",
        }
    }
}
