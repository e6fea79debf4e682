//! Everything that played tasks share: channels, locks, barriers, counts, and how they fail.

use std::hint::spin_loop;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use model::SimTime;
use workload::{ChannelKind, Code, Handoff, ResourceInstance, TaskFault, Workload};

use super::marks::{self, Marks};
use super::queue::{PlayQueue, QUEUE_MAX};
use super::shared::{self, MemoryPlan, Shared};
use super::spin::Spin;
use super::{refuse, sys};
use crate::Error;
use live::record::clock;

/// Tasks that a group may have, the forked ones included.
pub const MEMBERS_MAX: usize = 1 << 16;

/// Everything that played tasks share. Never freed: tasks in other processes point to it.
#[derive(Debug)]
pub struct SharedState {
    pub workload: Workload,
    pub codes: Vec<Code>,
    pub seed: u64,
    pub cpus: u16,
    /// Whether each count is told, or only their sum at the end.
    pub tell_counts: bool,
    pub spin: Spin,
    pub marks: Marks,
    pub shared: Shared,
    at: Places,
    channels: Vec<Vec<Pipe>>,
    listeners: Vec<Vec<(TcpListener, SocketAddr)>>,
    /// Where the cgroups are, by number; none if the workload has none.
    pub cgroups: Vec<PathBuf>,
}

/// Where things are in shared memory.
#[derive(Debug)]
struct Places {
    /// Whether the play is over, whether somebody failed, how many tasks are ready, how many are
    /// alive.
    common: Range<usize>,
    /// For each task that exists from the start, and then each interrupt source: whether it may
    /// begin.
    gates: Range<usize>,
    /// Begin and end of the play; what the failed task says.
    times: Range<usize>,
    failure: Range<usize>,
    /// For each group: born, alive.
    groups: Range<usize>,
    /// For each group: the members' words.
    members: Vec<Range<usize>>,
    /// For each lock and instance: 4 words.
    locks: Vec<Range<usize>>,
    /// For each semaphore, each condition variable and instance: 2 words.
    semaphores: Vec<Range<usize>>,
    conditions: Vec<Range<usize>>,
    /// For each barrier and instance: 2 words.
    barriers: Vec<Range<usize>>,
    /// For each group and counter: a sum.
    sums: Range<usize>,
    /// For each group, member and deadline: when the work that is not done was asked for, plus 1.
    releases: Range<usize>,
}

/// A task's deadlines that were due and are not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    pub group: u32,
    pub index: u32,
    pub deadline: u32,
    pub count: u64,
}

const OVER: usize = 0;
const FAILED: usize = 1;
const READY: usize = 2;
const ALIVE: usize = 3;

/// One instance of a channel.
#[derive(Debug)]
enum Pipe {
    /// Descriptors to read from and to write to.
    Stream { read: OwnedFd, write: OwnedFd },
    /// A queue in shared memory.
    Queue(PlayQueue),
}

/// One task, as others see it.
pub struct MemberState<'a>(&'a [AtomicU32]);

const MEMBER_WORDS: usize = 3;
const LOCK_WORDS: usize = 4;

impl MemberState<'_> {
    /// Its number within the play, 0 before its birth.
    pub fn tid(&self) -> &AtomicU32 {
        &self.0[0]
    }

    /// Whether it was resumed.
    pub fn resumed(&self) -> &AtomicU32 {
        &self.0[1]
    }

    /// How many of its threads have ended.
    pub fn ended(&self) -> &AtomicU32 {
        &self.0[2]
    }
}

/// Why a task cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Failure {
    /// An expression has no value.
    Eval = 1,
    /// An index names no instance; the value is the index.
    Index,
    /// A number is outside what the operation takes; the value is the number.
    Range,
    /// Takes a lock that it holds.
    LockedTwice,
    /// Gives back a lock that it does not hold.
    NotLocked,
    /// A span or a deadline's work ended that had not begun.
    NotBegun,
    /// More tasks of a group than are played.
    TooMany,
    /// More messages than a queue holds.
    QueueFull,
    /// The system refused something; the value is its number for the error.
    System,
    /// A process of the play was killed; the value is the signal.
    Killed,
    /// The task asks for a time that no play reaches.
    TooLate,
}

impl Failure {
    const ALL: [Self; 11] = [
        Self::Eval,
        Self::Index,
        Self::Range,
        Self::LockedTwice,
        Self::NotLocked,
        Self::NotBegun,
        Self::TooMany,
        Self::QueueFull,
        Self::System,
        Self::Killed,
        Self::TooLate,
    ];

    fn in_words(self, value: i64) -> String {
        match self {
            Self::Eval => "an expression has no value: overflow, division by zero, or an \
                           instance that does not exist"
                .to_owned(),
            Self::Index => format!("there is no instance {value}"),
            Self::Range => format!("{value} is outside what the operation takes"),
            Self::LockedTwice => "takes a lock that it holds".to_owned(),
            Self::NotLocked => "gives back a lock that it does not hold".to_owned(),
            Self::NotBegun => "ends what it has not begun".to_owned(),
            Self::TooMany => format!("more than {MEMBERS_MAX} tasks of a group are not played"),
            Self::QueueFull => format!("more than {QUEUE_MAX} messages in a queue are not played"),
            Self::System => {
                let number = i32::try_from(value).unwrap_or(0);
                format!(
                    "the system refused it: {}",
                    io::Error::from_raw_os_error(number)
                )
            }
            Self::Killed => format!("a process was killed by signal {value}"),
            Self::TooLate => TaskFault::TooLate.to_string(),
        }
    }
}

/// The tasks that exist from the start.
fn tasks_of(workload: &Workload) -> usize {
    let counts = workload.groups.iter().map(|group| group.count as usize);
    counts.sum()
}

/// The sockets at which the workload listens, and their addresses.
fn listen(workload: &Workload) -> Result<Vec<Vec<(TcpListener, SocketAddr)>>, Error> {
    let all = workload.listeners.iter().map(|declared| {
        let instances = (0..declared.count).map(|_| {
            let listener = sys::listen(declared.backlog)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let instances: io::Result<_> = instances.collect();
        instances.map_err(Error::doing(format!("listen at {}", declared.name)))
    });
    all.collect()
}

impl SharedState {
    /// Opens channels and makes the memory.
    ///
    /// # Errors
    /// When the system gives too few files or too little memory.
    pub fn new(
        workload: &Workload,
        seed: u64,
        cpus: u16,
        tell_counts: bool,
        cgroups: Vec<PathBuf>,
    ) -> Result<Self, Error> {
        let mut plan = MemoryPlan::default();
        let marks = marks::RingPlace::plan(&mut plan);
        let groups = workload.groups.len();
        let at = Places {
            common: plan.words(4),
            times: plan.longs(2),
            failure: plan.longs(5),
            gates: plan.words(tasks_of(workload) + workload.interrupts.len()),
            groups: plan.words(2 * groups),
            members: (0..groups)
                .map(|_| plan.words(MEMBER_WORDS * MEMBERS_MAX))
                .collect(),
            locks: (workload.locks.iter())
                .map(|lock| plan.words(LOCK_WORDS * lock.count as usize))
                .collect(),
            semaphores: (workload.semaphores.iter())
                .map(|semaphore| plan.words(2 * semaphore.count as usize))
                .collect(),
            conditions: (workload.conditions.iter())
                .map(|condition| plan.words(2 * condition.count as usize))
                .collect(),
            barriers: (workload.barriers.iter())
                .map(|barrier| plan.words(2 * barrier.count as usize))
                .collect(),
            sums: plan.longs(groups * workload.counters.len()),
            releases: plan.longs(groups * MEMBERS_MAX * workload.deadlines.len()),
        };
        sys::raise_file_limit();
        let mut channels = Vec::new();
        for channel in &workload.channels {
            let instances = (0..channel.count).map(|_| match channel.kind {
                ChannelKind::Queue => Ok(Pipe::Queue(PlayQueue::plan(&mut plan, channel))),
                kind => {
                    stream(kind).map_err(Error::doing(format!("open the channel {}", channel.name)))
                }
            });
            channels.push(instances.collect::<Result<_, _>>()?);
        }
        let listeners = listen(workload)?;
        let shared = plan.build()?;
        for (declared, place) in workload.semaphores.iter().zip(&at.semaphores) {
            for words in shared.words[place.clone()].chunks(2) {
                words[1].store(declared.value, Ordering::Relaxed);
            }
        }
        Ok(Self {
            codes: (workload.groups.iter())
                .map(|group| Code::new(&group.body, group.variables))
                .collect(),
            workload: workload.clone(),
            seed,
            cpus,
            tell_counts,
            spin: Spin::calibrate(),
            marks: Marks::new(shared, marks),
            shared,
            at,
            channels,
            listeners,
            cgroups,
        })
    }

    fn common(&self, which: usize) -> &AtomicU32 {
        &self.shared.words[self.at.common.start + which]
    }

    fn time(&self, which: usize) -> &AtomicU64 {
        &self.shared.longs[self.at.times.start + which]
    }

    /// Says that task `index` of `group` is ready, and waits for the start.
    pub fn wait_for_start(&self, group: u32, index: u32) {
        let before = self.workload.groups.iter().take(group as usize);
        let before: usize = before.map(|group| group.count as usize).sum();
        self.wait_at(before + index as usize);
    }

    /// The same for an interrupt source.
    pub fn source_waits_for_start(&self, source: usize) {
        self.wait_at(tasks_of(&self.workload) + source);
    }

    fn wait_at(&self, gate: usize) {
        let gate = &self.shared.words[self.at.gates.clone()][gate];
        self.common(READY).fetch_add(1, Ordering::AcqRel);
        shared::wake(self.common(READY), 1);
        while gate.load(Ordering::Acquire) == 0 {
            shared::wait(gate, 0, None);
        }
    }

    /// How many tasks are ready.
    pub fn ready(&self) -> u32 {
        self.common(READY).load(Ordering::Acquire)
    }

    /// Lets all tasks begin: one after the other, in the order of the file, as on the simulated
    /// machine. They have come here in another order, and behind one gate that would be the order
    /// of those that wait for one CPU.
    ///
    /// Between them is a `pause`, at which the CPUs of a counting VM take turns. In one call each
    /// woken task would wait until the last one is woken, because a CPU does not let others go on
    /// in the kernel.
    pub fn start(&self) {
        self.time(0).store(clock(), Ordering::Release);
        for gate in &self.shared.words[self.at.gates.clone()] {
            gate.store(1, Ordering::Release);
            shared::wake(gate, 1);
            spin_loop();
        }
    }

    /// When the play began: `CLOCK_MONOTONIC`, nanoseconds.
    pub fn began(&self) -> u64 {
        self.time(0).load(Ordering::Acquire)
    }

    /// When the play was over by itself; `None` so far.
    pub fn ended(&self) -> Option<u64> {
        Some(self.time(1).load(Ordering::Acquire)).filter(|ended| *ended != 0)
    }

    /// The time since the begin.
    pub fn now(&self) -> SimTime {
        SimTime::from_nanos(clock().saturating_sub(self.began()))
    }

    /// A moment of the play on the system's clock.
    pub fn moment(&self, time: SimTime) -> u64 {
        self.began() + time.as_nanos()
    }

    /// Waits until the play is over, at most for `limit`; whether it is.
    pub fn wait_for_end(&self, limit: std::time::Duration) -> bool {
        if self.common(OVER).load(Ordering::Acquire) == 0 {
            shared::wait(self.common(OVER), 0, Some(limit));
        }
        self.common(OVER).load(Ordering::Acquire) != 0
    }

    fn finish(&self) {
        let _ = self
            .time(1)
            .compare_exchange(0, clock(), Ordering::AcqRel, Ordering::Relaxed);
        self.common(OVER).store(1, Ordering::Release);
        shared::wake(self.common(OVER), i32::MAX);
    }

    fn group(&self, group: u32) -> &[AtomicU32] {
        let start = self.at.groups.start + 2 * group as usize;
        &self.shared.words[start..start + 2]
    }

    /// Takes the next index of a group; `None` when there are too many.
    pub fn admit(&self, group: u32) -> Option<u32> {
        let index = self.group(group)[0].fetch_add(1, Ordering::AcqRel);
        if index as usize >= MEMBERS_MAX {
            return None;
        }
        self.group(group)[1].fetch_add(1, Ordering::AcqRel);
        self.common(ALIVE).fetch_add(1, Ordering::AcqRel);
        Some(index)
    }

    /// A task has ended; the play may be over with it.
    pub fn dismiss(&self, group: u32) {
        let declared = &self.workload.groups[group as usize];
        let [born, alive] = self.group(group) else {
            unreachable!("two words a group")
        };
        let group_left = alive.fetch_sub(1, Ordering::AcqRel) - 1;
        let left = self.common(ALIVE).fetch_sub(1, Ordering::AcqRel) - 1;
        let complete = born.load(Ordering::Acquire) >= declared.count.max(1);
        let stops = self.workload.stop.groups.contains(&group) && group_left == 0 && complete;
        if left == 0 || stops {
            self.finish();
        }
    }

    /// The words of a member; `None` if there can be none of that index.
    pub fn member(&self, group: u32, index: i64) -> Option<MemberState<'_>> {
        let index = usize::try_from(index)
            .ok()
            .filter(|index| *index < MEMBERS_MAX)?;
        let words = &self.shared.words[self.at.members[group as usize].clone()];
        Some(MemberState(
            &words[MEMBER_WORDS * index..MEMBER_WORDS * (index + 1)],
        ))
    }

    /// Adds to a counter's sum.
    pub fn add(&self, group: u32, counter: u32, by: u64) {
        let counters = self.workload.counters.len();
        let at = self.at.sums.start + group as usize * counters + counter as usize;
        self.shared.longs[at].fetch_add(by, Ordering::Relaxed);
    }

    /// The sums: group, counter, sum.
    pub fn sums(&self) -> Vec<super::Sum> {
        let counters = self.workload.counters.len();
        let sums = self.shared.longs[self.at.sums.clone()].chunks(counters.max(1));
        let mut found = Vec::new();
        for (group, sums) in (0..).zip(sums) {
            for (counter, sum) in (0..).zip(sums) {
                let sum = sum.load(Ordering::Relaxed);
                if sum > 0 {
                    found.push((group, counter, sum));
                }
            }
        }
        found
    }

    /// A member's deadlines.
    fn releases(&self, group: u32, index: u32) -> &[AtomicU64] {
        let deadlines = self.workload.deadlines.len();
        let before = group as usize * MEMBERS_MAX + index as usize;
        let start = self.at.releases.start + before * deadlines;
        &self.shared.longs[start..start + deadlines]
    }

    /// Work with a deadline was asked for at `release`, or with `None` it is done.
    pub fn released(&self, [group, index]: [u32; 2], deadline: u32, release: Option<SimTime>) {
        let word = release.map_or(0, |release| release.as_nanos().saturating_add(1));
        self.releases(group, index)[deadline as usize].store(word, Ordering::Relaxed);
    }

    /// A task has ended by itself: it leaves nothing undone.
    pub fn forgive(&self, group: u32, index: u32) {
        for word in self.releases(group, index) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Deadlines that were due before `end` and whose work is not done. Nobody will do it if the
    /// play ends then.
    pub fn overdue(&self, end: SimTime) -> Vec<Overdue> {
        let mut found = Vec::new();
        for group in (0..).take(self.workload.groups.len()) {
            let born = self.group(group)[0].load(Ordering::Acquire);
            for index in (0..born).take(MEMBERS_MAX) {
                for (deadline, word) in (0..).zip(self.releases(group, index)) {
                    let Some(release) = word.load(Ordering::Relaxed).checked_sub(1) else {
                        continue;
                    };
                    let declared = &self.workload.deadlines[deadline as usize];
                    let of = (declared.period, declared.slack);
                    if let Some(count) = workload::overdue(SimTime::from_nanos(release), of, end) {
                        found.push(Overdue {
                            group,
                            index,
                            deadline,
                            count,
                        });
                    }
                }
            }
        }
        found
    }

    /// Messages that nobody took until `end`, although they were due before: deadlines of their
    /// receivers, in each group the first task that lives. To be asked when no task runs any more,
    /// because it empties the channels.
    pub fn unread(&self, end: SimTime) -> Vec<Overdue> {
        let mut found = Vec::new();
        let receivers = workload::receivers(&self.workload, &self.codes, |group| {
            Some((group, self.first_alive(group)?))
        });
        for ((group, index), channel, deadline) in receivers {
            let slack = self.workload.deadlines[deadline as usize].slack;
            let latest = workload::latest(end, slack).as_nanos();
            let instances = 0..self.channels[channel as usize].len();
            let sent = instances.flat_map(|index| self.left_in(channel, index));
            let count = sent.filter(|sent| *sent < latest).count() as u64;
            if count > 0 {
                found.push(Overdue {
                    group,
                    index,
                    deadline,
                    count,
                });
            }
        }
        found
    }

    /// A group's first task that has not ended.
    fn first_alive(&self, group: u32) -> Option<u32> {
        let born = self.group(group)[0].load(Ordering::Acquire);
        let mut all = (0..born).take(MEMBERS_MAX);
        all.find(|index| {
            let member = self.member(group, (*index).into());
            member.is_some_and(|it| it.ended().load(Ordering::Relaxed) == 0)
        })
    }

    /// Takes all messages out of a channel: when each was sent.
    fn left_in(&self, of: u32, index: usize) -> Vec<u64> {
        match &self.channels[of as usize][index] {
            Pipe::Queue(queue) => queue.left(self.shared),
            Pipe::Stream { read, .. } => {
                let size = self.workload.channels[of as usize].msg.max(1);
                let Ok(size) = usize::try_from(size) else {
                    return Vec::new();
                };
                let bytes = sys::read_waiting(read.as_fd());
                // Whoever was killed in the middle of a message has left a part of it.
                let whole = bytes.chunks_exact(size);
                let stamps = whole.filter_map(|message| message.first_chunk());
                stamps.map(|stamp| u64::from_ne_bytes(*stamp)).collect()
            }
        }
    }

    /// Notes why a task cannot go on, if none has before, and ends the play.
    pub fn fail(&self, failure: Failure, place: [u32; 3], value: i64) {
        let first = self.common(FAILED);
        if first
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            let [line, group, index] = place.map(u64::from);
            let words = [failure as u64, line, group, index, value.cast_unsigned()];
            for (to, word) in self.shared.longs[self.at.failure.clone()].iter().zip(words) {
                to.store(word, Ordering::Release);
            }
        }
        self.finish();
    }

    /// What the task that failed says: file, line, task, and what happened.
    pub fn failure(&self) -> Option<String> {
        let words: Vec<u64> = (self.shared.longs[self.at.failure.clone()].iter())
            .map(|word| word.load(Ordering::Acquire))
            .collect();
        let failure = Failure::ALL.into_iter().find(|it| *it as u64 == words[0])?;
        let told = failure.in_words(words[4].cast_signed());
        let file = &self.workload.file;
        let number = |word: u64| u32::try_from(word).unwrap_or(0);
        if failure == Failure::Killed {
            return Some(format!("{file}: {told}"));
        }
        let name = self.workload.task_name(number(words[2]), number(words[3]));
        Some(format!("{file}:{}: {name}: {told}", words[1]))
    }

    /// The four words of a lock: for a mutex two of [`shared`]'s locks and one for the holder, for
    /// a read-write lock three and one for who writes.
    pub fn lock(&self, lock: ResourceInstance) -> &[AtomicU32] {
        self.instance(&self.at.locks, LOCK_WORDS, lock)
    }

    /// The two words of a semaphore.
    pub fn semaphore(&self, semaphore: ResourceInstance) -> &[AtomicU32] {
        self.instance(&self.at.semaphores, 2, semaphore)
    }

    /// The two words of a condition variable.
    pub fn condition(&self, condition: ResourceInstance) -> &[AtomicU32] {
        self.instance(&self.at.conditions, 2, condition)
    }

    /// A listening socket, and where it listens.
    pub fn listener(&self, listener: ResourceInstance) -> &(TcpListener, SocketAddr) {
        &self.listeners[listener.of as usize][listener.index as usize]
    }

    /// Whether a lock is handed over in the order of arrival.
    pub fn is_fifo(&self, of: u32) -> bool {
        self.workload.locks[of as usize].handoff == Handoff::Fifo
    }

    /// The two words of a barrier.
    pub fn barrier(&self, barrier: ResourceInstance) -> &[AtomicU32] {
        self.instance(&self.at.barriers, 2, barrier)
    }

    fn instance(&self, places: &[Range<usize>], size: usize, it: ResourceInstance) -> &[AtomicU32] {
        let start = places[it.of as usize].start + size * it.index as usize;
        &self.shared.words[start..start + size]
    }

    fn pipe(&self, channel: ResourceInstance) -> &Pipe {
        &self.channels[channel.of as usize][channel.index as usize]
    }

    /// Messages that wait in a channel.
    pub fn queued(&self, channel: ResourceInstance) -> u64 {
        match self.pipe(channel) {
            Pipe::Queue(queue) => queue.length(self.shared).into(),
            Pipe::Stream { read, .. } => {
                let declared = &self.workload.channels[channel.of as usize];
                sys::waiting(read.as_fd()) / declared.msg.max(1)
            }
        }
    }

    /// Puts a message into a channel; `buffer` has room for one. Without `block` it is lost when
    /// the channel is full.
    ///
    /// # Errors
    /// Why the task cannot go on, and the number that belongs to it.
    pub fn send(
        &self,
        to: ResourceInstance,
        buffer: &mut [u8],
        block: bool,
    ) -> Result<(), (Failure, i64)> {
        let sent = self.now().as_nanos();
        match self.pipe(to) {
            Pipe::Queue(queue) => queue.send(self.shared, sent, block),
            Pipe::Stream { write, .. } => {
                if !block && !sys::has_room(write.as_fd()) {
                    return Ok(());
                }
                let message = self.message(to.of, buffer);
                if let Some(stamp) = message.first_chunk_mut::<8>() {
                    *stamp = sent.to_ne_bytes();
                }
                sys::write_all(write.as_fd(), message).map_err(|error| system(&error))
            }
        }
    }

    /// Takes a message out of a channel, and returns when it was sent.
    ///
    /// # Errors
    /// The errors of [`SharedState::send`].
    pub fn recv(
        &self,
        from: ResourceInstance,
        buffer: &mut [u8],
    ) -> Result<SimTime, (Failure, i64)> {
        let now = || self.now().as_nanos();
        let sent = match self.pipe(from) {
            Pipe::Queue(queue) => queue.recv(self.shared),
            Pipe::Stream { read, .. } => {
                let message = self.message(from.of, buffer);
                sys::read_all(read.as_fd(), message).map_err(|error| system(&error))?;
                message
                    .first_chunk()
                    .map_or_else(now, |stamp| u64::from_ne_bytes(*stamp))
            }
        };
        // Two readers of one stream may get halves of two messages.
        Ok(SimTime::from_nanos(sent.min(now())))
    }

    fn message<'a>(&self, of: u32, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let size = self.workload.channels[of as usize].msg.max(1);
        let size = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        &mut buffer[..size]
    }

    /// Bytes of the longest message of a stream.
    pub fn message_max(&self) -> usize {
        let streams = self.workload.channels.iter();
        let streams = streams.filter(|channel| channel.kind != ChannelKind::Queue);
        let longest = streams.map(|channel| channel.msg).max().unwrap_or(0);
        usize::try_from(longest.max(refuse::STAMP)).unwrap_or(usize::MAX)
    }
}

/// Failure for a call that the system refused.
pub fn system(error: &io::Error) -> (Failure, i64) {
    (
        Failure::System,
        error.raw_os_error().unwrap_or(libc::EPIPE).into(),
    )
}

fn stream(kind: ChannelKind) -> io::Result<Pipe> {
    let (read, write) = match kind {
        ChannelKind::Pipe => {
            let (read, write) = io::pipe()?;
            (read.into(), write.into())
        }
        ChannelKind::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let write = TcpStream::connect(listener.local_addr()?)?;
            let (read, _) = listener.accept()?;
            write.set_nodelay(true)?;
            (read.into(), write.into())
        }
        ChannelKind::Unix | ChannelKind::Queue => {
            let (read, write) = UnixStream::pair()?;
            (read.into(), write.into())
        }
    };
    Ok(Pipe::Stream { read, write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    fn ms(ms: u64) -> SimTime {
        SimTime::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn what_living_tasks_have_not_done_in_time_is_overdue() {
        let text = "[workload]\nname = \"x\"\n\
                    [deadline.frame]\nperiod = \"10ms\"\nslack = \"12ms\"\n\
                    [deadline.other]\nperiod = \"10ms\"\n\
                    [task.a]\ndo = [\"release(other), complete(other)\"]\n\
                    [task.b]\ncount = 3\ndo = [\"release(frame), complete(frame)\"]\n";
        let workload = Workload::parse(text, "x.toml").unwrap();
        let state = SharedState::new(&workload, 1, 1, false, Vec::new()).unwrap();
        for group in [0, 1, 1, 1] {
            state.admit(group).unwrap();
        }
        let frame = u32::from(workload.deadlines[0].name != "frame");
        for index in 0..3 {
            state.released([1, index], frame, Some(ms(5)));
        }
        state.released([1, 0], frame, None);
        state.forgive(1, 1);
        // Due at 17, 27, 37.
        assert_eq!(state.overdue(ms(17)), []);
        let overdue = |count| Overdue {
            group: 1,
            index: 2,
            deadline: frame,
            count,
        };
        assert_eq!(state.overdue(ms(18)), [overdue(1)]);
        assert_eq!(state.overdue(ms(28)), [overdue(2)]);
        state.released([0, 0], 1 - frame, Some(SimTime::ZERO));
        assert_eq!(state.overdue(ms(28)).len(), 2, "a release at 0 is one, too");
    }

    #[test]
    fn messages_that_nobody_took_are_overdue_when_their_slack_has_passed() {
        for kind in ["unix", "pipe", "tcp", "queue"] {
            let text = format!(
                "[workload]\nname = \"x\"\n[deadline.d]\nslack = \"16ms\"\n\
                 [chan.c]\nkind = \"{kind}\"\n\
                 [task.t]\ncount = 2\ndo = [\"recv(c), release(d), complete(d)\"]\n"
            );
            let workload = Workload::parse(&text, "x.toml").unwrap();
            let state = SharedState::new(&workload, 1, 1, false, Vec::new()).unwrap();
            for _ in 0..2 {
                state.admit(0).unwrap();
            }
            state
                .member(0, 0)
                .unwrap()
                .ended()
                .store(1, Ordering::Relaxed);
            let mut buffer = vec![0; state.message_max()];
            let channel = ResourceInstance { of: 0, index: 0 };
            let mut send = || state.send(channel, &mut buffer, true).unwrap();
            send();
            let before = state.now();
            send();
            send();
            state.recv(channel, &mut vec![0; 4096]).unwrap();
            // Of two that are left, none was due at this moment; both were, long after.
            if kind == "pipe" {
                assert_eq!(state.unread(before), []);
                continue;
            }
            let overdue = state.unread(before + Nanos::from_secs(1));
            let two = Overdue {
                group: 0,
                index: 1,
                deadline: 0,
                count: 2,
            };
            assert_eq!(overdue, [two], "{kind}");
            assert_eq!(state.queued(channel) > 0, kind == "queue", "it is emptied");
        }
    }
}
