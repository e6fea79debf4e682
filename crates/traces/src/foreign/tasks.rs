//! From records to events: who is where, and in what state.
//!
//! Traces lack records, begin in the middle, and have races. Whatever comes in, what goes out obeys
//! the rules of docs/events.md: what must have happened in between is made up, and counted.

use std::collections::HashMap;

use model::{
    Change, CpuId, Event, Nanos, PrevState, SimTime, TaskClass, TaskId, WakeCause, Wakeup,
};

use crate::foreign::findings::Findings;
use crate::foreign::priority::Priority;
use crate::foreign::record::{
    CURRENT, Comm, CpuContext, InterruptSource, Left, Record, RecordWhat, Who,
};

/// A thread that was woken while it still ran went to sleep within this time, in nanoseconds, or
/// it was not that sleep which the wakeup ended.
const RACE_NS: u64 = 100_000;

/// A thread for ever: what the header says of it.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its last name.
    pub comm: Comm,
    /// Its number.
    pub pid: u32,
    /// The priority that it began with.
    pub prio: Option<i16>,
    /// The priority at most of its wakeups; of equals the least urgent.
    pub mostly: Option<i16>,
    /// Its parent; `None`: it existed before the trace began.
    pub parent: Option<TaskId>,
    /// Whether it had ended when the trace did.
    pub ended: bool,
    /// When its alarm clock rang last.
    pub alarm: Option<SimTime>,
}

/// How many records of a thread's wakeups show each priority: of the first four that it had, since
/// a file may name any number of them.
#[derive(Clone, Copy, Debug, Default)]
struct Priorities {
    last: Option<i16>,
    counts: [(i16, u32); 4],
}

impl Priorities {
    /// Counts one more.
    fn add(&mut self, prio: i16) {
        self.last = Some(prio);
        let is_place = |it: &&mut (i16, u32)| it.1 == 0 || it.0 == prio;
        if let Some((known, count)) = self.counts.iter_mut().find(is_place) {
            (*known, *count) = (prio, count.saturating_add(1));
        }
    }

    fn most(&self) -> Option<i16> {
        let seen = self.counts.iter().filter(|(_, count)| *count > 0);
        let most = seen.max_by_key(|(prio, count)| (*count, *prio));
        most.map(|(prio, _)| *prio)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Asleep(Left),
    Ready,
    Running(u32),
}

/// A thread that lives.
#[derive(Clone, Copy, Debug)]
struct Live {
    id: TaskId,
    state: ThreadState,
    cpu: u32,
    forked: bool,
    /// Whether it was woken at all.
    started: bool,
    /// The last `sched_waking` of it that no wakeup has followed, and when.
    waking: Option<(Waker, u64)>,
    priorities: Priorities,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waker {
    task: TaskId,
    cpu: u32,
    cause: WakeCause,
    /// It told the kernel that it is about to sleep.
    sync: bool,
}

impl Waker {
    const fn nobody(cause: WakeCause) -> Self {
        Self {
            task: TaskId::NONE,
            cpu: 0,
            cause,
            sync: false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// The thread that runs; 0 for none, `None` if nothing is known yet.
    current: Option<u32>,
    devices: u8,
    device_clocks: u8,
    softs: u8,
    soft_clocks: u8,
    timers: u8,
    /// Who is woken next here by one that is about to sleep.
    sync: Option<u32>,
}

/// Follows the threads of a trace.
#[derive(Debug, Default)]
pub struct Tasks {
    /// Every thread that there was, by its [`TaskId`].
    pub named: Vec<Named>,
    pub findings: Findings,
    live: HashMap<u32, Live>,
    /// Names of threads that a reader has seen beside records.
    heard: HashMap<u32, Comm>,
    cpus: Vec<Cpu>,
    base: u64,
    now: u64,
    out: Vec<Event>,
}

impl Tasks {
    /// Begins with what the first records say of the moment before them.
    pub fn begin(&mut self, first: &[Record]) {
        let Some(start) = first.first() else {
            return;
        };
        self.base = start.time;
        self.now = start.time;
        for record in first {
            self.note_kind(record);
        }
        let knows_wakeups = self.findings.kinds.waking || self.findings.kinds.wakeup;
        let mut seen: HashMap<u32, ()> = HashMap::new();
        for record in first {
            match record.what {
                RecordWhat::Switch { next, .. } | RecordWhat::SwitchTo { next, .. } => {
                    let prev = match record.what {
                        RecordWhat::Switch { prev, .. } => prev,
                        _ => Who::default(),
                    };
                    if self.cpu(record.cpu).current.is_none() {
                        self.runs_at_begin(record.cpu, prev);
                    }
                    let is_new = seen.insert(next.pid, ()).is_none();
                    if is_new && knows_wakeups && !self.live.contains_key(&next.pid) {
                        self.ready_at_begin(record.cpu, next);
                    }
                    seen.insert(prev.pid, ());
                }
                RecordWhat::Waking(who, _)
                | RecordWhat::Wakeup { who, .. }
                | RecordWhat::Fork { child: who, .. } => {
                    seen.insert(who.pid, ());
                }
                _ => {}
            }
        }
        for record in first {
            self.runs_unswitched(record);
        }
    }

    /// A thread that never leaves its CPU has no switch, but its number stands in what happens
    /// there: a loop that spins, or one that polls.
    fn runs_unswitched(&mut self, record: &Record) {
        let is_known = self.cpu(record.cpu).current.is_some();
        let is_thread = record.pid != CURRENT && record.pid != 0;
        if is_known || !is_thread || self.live.contains_key(&record.pid) {
            return;
        }
        let who = Who {
            pid: record.pid,
            comm: self.heard.get(&record.pid).copied().unwrap_or_default(),
            prio: None,
        };
        self.runs_at_begin(record.cpu, who);
    }

    /// The machine has at least so many CPUs.
    pub fn has_cpus(&mut self, cpus: u32) {
        if let Some(last) = cpus.checked_sub(1) {
            self.cpu(last);
        }
    }

    /// A thread has this name, should it run without a record that says it.
    pub fn heard(&mut self, pid: u32, name: Comm) {
        /// As many as computers commonly have numbers for.
        const MOST: usize = 1 << 15;
        if !name.is_empty() && self.heard.len() < MOST {
            self.heard.entry(pid).or_insert(name);
        }
    }

    fn runs_at_begin(&mut self, cpu: u32, who: Who) {
        self.cpu(cpu).current = Some(0);
        if who.pid == 0 || self.live.contains_key(&who.pid) {
            return;
        }
        self.born(who, cpu, None);
        self.wake(who.pid, Waker::nobody(WakeCause::Before), cpu);
        self.enter(who.pid, cpu);
    }

    fn ready_at_begin(&mut self, cpu: u32, who: Who) {
        if who.pid != 0 {
            self.born(who, cpu, None);
            self.wake(who.pid, Waker::nobody(WakeCause::Before), cpu);
        }
    }

    fn note_kind(&mut self, record: &Record) {
        let kinds = &mut self.findings.kinds;
        kinds.contexts |= record.context != CpuContext::Unsaid;
        match record.what {
            RecordWhat::Switch { .. } | RecordWhat::SwitchTo { .. } => kinds.switch = true,
            RecordWhat::Waking(..) => kinds.waking = true,
            RecordWhat::Wakeup { new, .. } => kinds.wakeup |= !new,
            RecordWhat::Migrate { .. } => kinds.migrate = true,
            RecordWhat::Fork { .. } => kinds.fork = true,
            RecordWhat::Enter(InterruptSource::Timer) => kinds.timers = true,
            RecordWhat::Enter(_) => kinds.interrupts = true,
            _ => {}
        }
    }

    /// Takes the next record, in the order of time.
    pub fn take(&mut self, record: &Record) {
        self.findings.records += 1;
        self.note_kind(record);
        if record.time < self.now {
            self.findings.late += 1;
            let by = self.now - record.time;
            self.findings.late_ns_max = self.findings.late_ns_max.max(by);
        }
        self.now = self.now.max(record.time);
        if !matches!(
            record.what,
            RecordWhat::Switch { .. } | RecordWhat::SwitchTo { .. }
        ) {
            self.runs_unswitched(record);
        }
        let current = self.cpu(record.cpu).current.unwrap_or(0);
        let record = &match record.pid {
            CURRENT => Record {
                pid: current,
                ..*record
            },
            _ => *record,
        };
        // Ends of interrupts may be missing. None is open where a thread's own context is.
        let in_thread = matches!(
            record.what,
            RecordWhat::Switch { .. } | RecordWhat::SwitchTo { .. }
        );
        if in_thread || record.context == CpuContext::Task {
            self.no_interrupt(record.cpu);
        }
        match record.what {
            RecordWhat::SwitchTo { left, next } => {
                let prev = Who {
                    pid: current,
                    ..Who::default()
                };
                self.switch(record.cpu, prev, left, next);
            }
            RecordWhat::Switch { prev, left, next } => self.switch(record.cpu, prev, left, next),
            RecordWhat::Waking(who, cpu) => {
                self.prioritise(who);
                self.waking(record, who, cpu);
            }
            RecordWhat::Wakeup { who, cpu, new } => {
                self.prioritise(who);
                self.wakeup(record, who, cpu, new);
            }
            RecordWhat::Migrate { who, from, to } => self.migrate(who, from, to),
            RecordWhat::Fork { parent, child } => self.fork(record.cpu, parent, child),
            RecordWhat::Exec { pid, old } => self.exec(pid, old),
            // Some kernels (6.18.15) leave out whom: the thread that renames itself.
            RecordWhat::Rename(who) if who.pid == 0 => self.learn(Who {
                pid: record.pid,
                ..who
            }),
            RecordWhat::Rename(who) => self.learn(who),
            RecordWhat::Enter(interrupt) => self.interrupt(record.cpu, interrupt, true),
            RecordWhat::Leave(interrupt) => self.interrupt(record.cpu, interrupt, false),
            RecordWhat::Lost(many) => {
                self.findings.gaps += 1;
                self.findings.lost = self.findings.lost.saturating_add(many);
                self.no_interrupt(record.cpu);
            }
            RecordWhat::WakingSync(pid) => self.cpu(record.cpu).sync = Some(pid),
            RecordWhat::Alarm(pid) => {
                let now = self.end();
                if let Some(live) = self.live.get(&pid) {
                    self.named[live.id.index()].alarm = Some(now);
                }
            }
            RecordWhat::Exit(_) => {}
        }
    }

    fn no_interrupt(&mut self, cpu: u32) {
        let cpu = self.cpu(cpu);
        *cpu = Cpu {
            current: cpu.current,
            sync: cpu.sync,
            ..Cpu::default()
        };
    }

    /// The events up to now, which are given once.
    pub fn drain(&mut self, out: &mut dyn FnMut(&[Event])) {
        if !self.out.is_empty() {
            out(&self.out);
            self.out.clear();
        }
    }

    /// The last moment of the trace.
    pub const fn end(&self) -> SimTime {
        SimTime::from_nanos(self.now - self.base)
    }

    /// CPUs that were seen.
    pub const fn cpus(&self) -> usize {
        self.cpus.len()
    }

    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        let index = cpu as usize;
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, Cpu::default());
        }
        &mut self.cpus[index]
    }

    fn emit(&mut self, task: TaskId, cpu: u32, what: model::What) {
        // A thread may be sent to a CPU that reports nothing: the machine has it all the same.
        self.cpu(cpu);
        let cpu = CpuId(u16::try_from(cpu).expect("the stream has looked at it"));
        self.out.push(Event::new(self.end(), cpu, task, what));
    }

    fn emit_switch(&mut self, cpu: u32, (prev, state): (TaskId, PrevState), next: TaskId) {
        let overhead = Nanos::ZERO;
        let what = model::What::Switch {
            prev,
            state,
            overhead,
        };
        self.emit(next, cpu, what);
    }

    fn born(&mut self, who: Who, cpu: u32, parent: Option<TaskId>) {
        let id = TaskId(u32::try_from(self.named.len()).expect("fewer threads than 2^32"));
        self.named.push(Named {
            comm: who.comm,
            pid: who.pid,
            prio: who.prio,
            mostly: None,
            parent,
            ended: false,
            alarm: None,
        });
        self.findings.before += u64::from(parent.is_none());
        let live = Live {
            id,
            state: ThreadState::Asleep(Left::Sleeping),
            cpu,
            forked: parent.is_some(),
            started: false,
            waking: None,
            priorities: Priorities::default(),
        };
        self.live.insert(who.pid, live);
        let new = model::What::New {
            group: id.0,
            index: 0,
            pid: who.pid,
            parent: parent.unwrap_or(TaskId::NONE),
        };
        self.emit(id, cpu, new);
    }

    /// The thread's entry, which is made if there is none.
    fn ensure(&mut self, who: Who, cpu: u32) -> Live {
        if !self.live.contains_key(&who.pid) {
            self.born(who, cpu, None);
        }
        self.learn(who);
        self.live[&who.pid]
    }

    fn learn(&mut self, who: Who) {
        let Some(live) = self.live.get(&who.pid) else {
            return;
        };
        let named = &mut self.named[live.id.index()];
        if !who.comm.is_empty() {
            named.comm = who.comm;
        }
        // Until it is woken. Inheritance makes a thread more urgent only.
        if live.priorities.last.is_none() {
            named.prio = named.prio.max(who.prio);
        }
    }

    /// What a sleeping thread's wakeup tells of its priority, which is mostly its own then:
    /// inheritance is of those who hold a lock.
    fn prioritise(&mut self, who: Who) {
        let Some((live, prio)) = self.live.get_mut(&who.pid).zip(who.prio) else {
            return;
        };
        if !matches!(live.state, ThreadState::Asleep(_)) {
            return;
        }
        let before = live.priorities.last;
        live.priorities.add(prio);
        let (id, cpu) = (live.id, live.cpu);
        let named = &mut self.named[id.index()];
        named.mostly = live.priorities.most();
        // Whoever seemed more urgent before the first wakeup held a lock.
        if before.is_none() && named.prio.is_none_or(|was| was < prio) {
            named.prio = Some(prio);
        }
        let was = before.or(named.prio);
        if was == Some(prio) {
            return;
        }
        let (was, now) = (Priority(was), Priority(Some(prio)));
        match now.realtime() {
            Some(priority) => {
                let class = TaskClass::RealTime;
                self.emit(
                    id,
                    cpu,
                    model::What::Change(Change::Class { class, priority }),
                );
            }
            None if was.realtime().is_some() => {
                self.emit(id, cpu, model::What::Change(Change::class(TaskClass::Fair)));
            }
            None => {}
        }
        if now.realtime().is_none() && now.nice() != was.nice() {
            let nice = i64::from(now.nice());
            self.emit(id, cpu, model::What::Change(Change::Nice(nice)));
        }
    }

    fn change(&mut self, pid: u32, change: impl FnOnce(&mut Live)) {
        change(self.live.get_mut(&pid).expect("the caller has made sure"));
    }

    /// Makes a sleeping thread runnable at `cpu`.
    fn wake(&mut self, pid: u32, waker: Waker, cpu: u32) {
        self.place(pid, cpu);
        let live = self.live[&pid];
        let is_start = live.forked && !live.started;
        self.change(pid, |live| {
            live.state = ThreadState::Ready;
            live.started = true;
            live.waking = None;
        });
        let causes = &mut self.findings.wakeups;
        match waker.cause {
            _ if is_start => {}
            WakeCause::Before => {}
            WakeCause::Clock => causes.clock += 1,
            WakeCause::Device => causes.device += 1,
            WakeCause::Outside => causes.outside += 1,
            WakeCause::Unsaid if waker.task != TaskId::NONE => causes.task += 1,
            WakeCause::Unsaid => causes.unsaid += 1,
        }
        let wakeup = Wakeup {
            waker: waker.task,
            waker_cpu: CpuId(waker.cpu as u16),
            sync: waker.sync,
            new: is_start,
            cause: waker.cause,
        };
        self.emit(live.id, cpu, model::What::Wakeup(wakeup));
    }

    /// Puts a thread that does not run at `cpu`.
    fn place(&mut self, pid: u32, cpu: u32) {
        let live = self.live[&pid];
        if live.cpu == cpu {
            return;
        }
        self.change(pid, |live| live.cpu = cpu);
        // The first wakeup places a thread: that is no move.
        if live.started {
            let from = CpuId(u16::try_from(live.cpu).expect("it was sent there"));
            self.emit(live.id, cpu, model::What::Migrate { from });
        }
    }

    /// Gives `cpu`, which idles, to a runnable thread.
    fn enter(&mut self, pid: u32, cpu: u32) {
        self.place(pid, cpu);
        let id = self.live[&pid].id;
        self.change(pid, |live| live.state = ThreadState::Running(cpu));
        self.cpu(cpu).current = Some(pid);
        self.emit_switch(cpu, (TaskId::NONE, PrevState::Idle), id);
    }

    /// Takes a thread off the CPU on which it runs, which idles then.
    fn leave(&mut self, pid: u32, cpu: u32) {
        let id = self.live[&pid].id;
        self.change(pid, |live| live.state = ThreadState::Ready);
        self.cpu(cpu).current = Some(0);
        self.emit_switch(cpu, (id, PrevState::Runnable), TaskId::NONE);
    }

    fn switch(&mut self, cpu: u32, prev: Who, left: Left, next: Who) {
        if prev.pid == next.pid {
            return;
        }
        self.make_current(cpu, prev);
        let wanted = if next.pid == 0 {
            TaskId::NONE
        } else {
            self.make_ready(cpu, next)
        };
        let (prev_id, state) = match self.live.get(&prev.pid) {
            Some(live) if prev.pid != 0 => (live.id, state_of(left)),
            _ => (TaskId::NONE, PrevState::Idle),
        };
        self.cpu(cpu).current = Some(next.pid);
        // Both idle: nothing changes.
        if (prev_id, wanted) == (TaskId::NONE, TaskId::NONE) {
            return;
        }
        self.emit_switch(cpu, (prev_id, state), wanted);
        if wanted != TaskId::NONE {
            self.change(next.pid, |live| live.state = ThreadState::Running(cpu));
        }
        if prev_id != TaskId::NONE {
            self.has_left(cpu, prev.pid, prev_id, left);
        }
    }

    /// Sees to it that `who`, which is about to leave `cpu`, is what runs there.
    fn make_current(&mut self, cpu: u32, who: Who) {
        let current = self.cpu(cpu).current;
        if current == Some(who.pid) {
            self.learn(who);
            return;
        }
        match current {
            Some(_) => self.findings.mismatched += 1,
            None => {
                let since = self.now - self.base;
                let (cpus, until) = self.findings.late_cpus;
                self.findings.late_cpus = (cpus + 1, until.max(since));
            }
        }
        if let Some(other) = current.filter(|pid| *pid != 0) {
            self.leave(other, cpu);
        }
        self.cpu(cpu).current = Some(0);
        if who.pid == 0 {
            return;
        }
        self.make_ready(cpu, who);
        self.enter(who.pid, cpu);
    }

    /// Sees to it that `who` is runnable and at `cpu`.
    fn make_ready(&mut self, cpu: u32, who: Who) -> TaskId {
        let live = self.ensure(who, cpu);
        match live.state {
            ThreadState::Running(elsewhere) => {
                self.findings.mismatched += 1;
                self.leave(who.pid, elsewhere);
            }
            ThreadState::Asleep(_) => {
                let known = self.findings.kinds.wakeup || self.findings.kinds.waking;
                self.findings.unwoken += u64::from(known);
                let waker = live
                    .waking
                    .map_or(Waker::nobody(WakeCause::Unsaid), |it| it.0);
                self.wake(who.pid, waker, cpu);
            }
            ThreadState::Ready => {}
        }
        self.findings.unmoved += u64::from(self.live[&who.pid].cpu != cpu);
        self.place(who.pid, cpu);
        live.id
    }

    /// What follows from a switch for the thread that it took off the CPU.
    fn has_left(&mut self, cpu: u32, pid: u32, id: TaskId, left: Left) {
        match left {
            Left::Runnable => self.change(pid, |live| {
                live.state = ThreadState::Ready;
                live.waking = None;
            }),
            Left::Dead => {
                self.live.remove(&pid);
                self.named[id.index()].ended = true;
                self.emit(id, cpu, model::What::Exit);
            }
            Left::Sleeping | Left::Blocked => {
                self.change(pid, |live| live.state = ThreadState::Asleep(left));
                let waking = self.live[&pid].waking;
                let Some((waker, at)) = waking.filter(|_| !self.findings.kinds.wakeup) else {
                    return;
                };
                self.change(pid, |live| live.waking = None);
                if self.now - at <= RACE_NS {
                    self.findings.races += 1;
                    self.wake(pid, waker, cpu);
                }
            }
        }
    }

    /// Who wakes `whom` by `record`, if `left` is how it fell asleep.
    fn waker(&mut self, record: &Record, whom: Who, left: Left) -> Waker {
        let has_interrupts = self.findings.kinds.interrupts;
        let cpu = *self.cpu(record.cpu);
        let inside = cpu.devices > 0 || cpu.softs > 0 || cpu.timers > 0;
        let in_task = match record.context {
            CpuContext::Task => record.pid != 0,
            // What is left of softirqs wakes the thread that serves them: when the last one has
            // ended, so that no record encloses it (6.18, kernel/softirq.c, `handle_softirqs`).
            CpuContext::Unsaid => record.pid != 0 && !inside && !whom.comm.serves_softirqs(),
            CpuContext::Hard | CpuContext::Soft => false,
        };
        if in_task {
            let task = self
                .live
                .get(&record.pid)
                .map_or(TaskId::NONE, |live| live.id);
            return Waker {
                task,
                cpu: record.cpu,
                cause: WakeCause::Unsaid,
                sync: false,
            };
        }
        // An interrupt that no device raised is the CPU's own timer, or a call from another CPU.
        let local = record.context == CpuContext::Hard && has_interrupts && cpu.devices == 0;
        let by_clock = cpu.timers > 0 || cpu.device_clocks > 0 || cpu.soft_clocks > 0 || local;
        Waker::nobody(match left {
            _ if by_clock => WakeCause::Clock,
            Left::Blocked => WakeCause::Device,
            _ => WakeCause::Outside,
        })
    }

    fn waking(&mut self, record: &Record, who: Who, cpu: Option<u32>) {
        if who.pid == 0 {
            return;
        }
        let live = self.ensure(who, cpu.unwrap_or(record.cpu));
        let left = match live.state {
            ThreadState::Asleep(left) => left,
            ThreadState::Ready | ThreadState::Running(_) => Left::Sleeping,
        };
        let mut waker = self.waker(record, who, left);
        let sync = self.cpu(record.cpu).sync.take();
        waker.sync = waker.task != TaskId::NONE && sync == Some(who.pid);
        match live.state {
            // `target_cpu` is the previous CPU: the new one is seen at the switch.
            ThreadState::Asleep(_) if !self.findings.kinds.wakeup => {
                self.wake(who.pid, waker, live.cpu);
            }
            ThreadState::Ready if !self.findings.kinds.wakeup => {}
            _ => {
                let now = self.now;
                self.change(who.pid, |live| live.waking = Some((waker, now)));
            }
        }
    }

    fn wakeup(&mut self, record: &Record, who: Who, cpu: Option<u32>, new: bool) {
        if who.pid == 0 {
            return;
        }
        let live = self.ensure(who, cpu.unwrap_or(record.cpu));
        let ThreadState::Asleep(left) = live.state else {
            // It had not left its CPU yet, or was woken by the one who forked it.
            self.change(who.pid, |live| live.waking = None);
            return;
        };
        let waker = match live.waking {
            Some((waker, _)) => waker,
            // The fork itself is the cause.
            None if new => self.waker(record, who, left),
            // It may come on the CPU that takes the thread: whoever runs there woke nobody.
            None => Waker::nobody(WakeCause::Unsaid),
        };
        self.wake(who.pid, waker, cpu.unwrap_or(live.cpu));
    }

    fn migrate(&mut self, who: Who, from: u32, to: u32) {
        if who.pid == 0 {
            return;
        }
        let live = self.ensure(who, from);
        match live.state {
            // It has left that CPU already, or will be seen at its next switch.
            ThreadState::Running(_) => {}
            ThreadState::Ready | ThreadState::Asleep(_) => self.place(who.pid, to),
        }
    }

    fn fork(&mut self, cpu: u32, parent: u32, child: Who) {
        if child.pid == 0 {
            return;
        }
        let who = Who {
            pid: parent,
            ..Who::default()
        };
        let parent = (parent != 0).then(|| self.ensure(who, cpu).id);
        if let Some(old) = self.live.get(&child.pid).copied() {
            self.findings.reused += 1;
            if let ThreadState::Running(cpu) = old.state {
                self.leave(child.pid, cpu);
            }
            self.live.remove(&child.pid);
            self.named[old.id.index()].ended = true;
        }
        self.born(child, cpu, parent);
    }

    fn exec(&mut self, pid: u32, old: u32) {
        if pid == old || pid == 0 || old == 0 {
            return;
        }
        let Some(live) = self.live.remove(&old) else {
            return;
        };
        if let Some(Live {
            state: ThreadState::Running(cpu),
            ..
        }) = self.live.get(&pid).copied()
        {
            self.leave(pid, cpu);
        }
        self.named[live.id.index()].pid = pid;
        self.live.insert(pid, live);
        if let ThreadState::Running(cpu) = live.state {
            self.cpu(cpu).current = Some(pid);
        }
    }

    fn interrupt(&mut self, cpu: u32, interrupt: InterruptSource, begins: bool) {
        let cpu = self.cpu(cpu);
        let count = |depth: &mut u8| {
            *depth = if begins {
                depth.saturating_add(1)
            } else {
                depth.saturating_sub(1)
            };
        };
        match interrupt {
            InterruptSource::Device { clock } => {
                count(&mut cpu.devices);
                if clock || !begins {
                    count(&mut cpu.device_clocks);
                }
            }
            InterruptSource::Soft { clock } => {
                count(&mut cpu.softs);
                if clock {
                    count(&mut cpu.soft_clocks);
                }
            }
            InterruptSource::Timer => count(&mut cpu.timers),
        }
    }
}

const fn state_of(left: Left) -> PrevState {
    match left {
        Left::Runnable => PrevState::Runnable,
        Left::Sleeping | Left::Blocked => PrevState::Sleeping,
        Left::Dead => PrevState::Dead,
    }
}
