//! From records of decisions to events, beside what the tasks do.

use std::collections::{BTreeMap, HashMap};

use model::{
    Caller, Cause, CpuId, Event, IdleChange, InQueue, Kicked, Looked, NOWHERE, Nanos, Op, Removed,
    SimTime, Sliced, TaskId, What, insert,
};

use crate::record::decided::{Decided, Decision};

/// Ids of built-in queues (kernel 6.18, include/linux/sched/ext.h).
const LOCAL: u64 = 1 << 63 | 2;
const LOCAL_ON: u64 = 3 << 62;

/// When and where something happened, and to whom.
type At = (SimTime, CpuId, TaskId);

const fn cause_of(record: &Decided) -> Cause {
    Cause {
        caller: record.caller,
        place: record.place,
    }
}

/// A look at a queue, or a move out of one, that is under way on a CPU.
#[derive(Clone, Copy, Debug)]
struct Look {
    queue: u32,
    depth: u32,
    how: Looked,
    cause: Cause,
    /// The task that is moved by name.
    whom: Option<TaskId>,
    has_taken: bool,
}

/// What was decided so far.
#[derive(Debug, Default)]
pub(super) struct Decider {
    /// Indexes of queues, by id.
    queues: BTreeMap<u64, u32>,
    /// Queues so far.
    count: u32,
    /// Where tasks are.
    at: HashMap<TaskId, u32>,
    /// Inserts that the kernel has not carried out yet.
    asked: HashMap<TaskId, Cause>,
    /// By CPU.
    looks: HashMap<u16, Look>,
    /// By CPU: its last look that took a task, without that anything told which one. Compilers
    /// build the function that would into some of its callers.
    silent: HashMap<u16, Look>,
    /// By CPU: whether the `dispatch` that is under way has inserted or taken a task.
    dispatches: HashMap<u16, bool>,
    events: Vec<Event>,
}

impl Decider {
    /// The events of one record, which happens `now`. `task` is whom it is about.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each kind; a split would hide the table"
    )]
    pub fn decide(&mut self, record: &Decided, task: Option<TaskId>, now: SimTime) -> Vec<Event> {
        let at = (now, CpuId(record.cpu), task.unwrap_or(TaskId::NONE));
        match (record.what, task) {
            (Decision::Dispatch | Decision::Dispatched, _) => self.dispatch(record, at),
            (Decision::Consume | Decision::Iterate | Decision::Consumed, _) => {
                self.look(record, at);
            }
            (Decision::Kick | Decision::Claim | Decision::Idle, _) => self.cpu(record, at),
            (Decision::Destroy, _) => {
                if let Some(queue) = self.queues.remove(&record.a) {
                    let gone = What::Queue {
                        caller: Caller::Kernel,
                        id: record.a,
                        queue,
                        exists: false,
                    };
                    self.push(at, gone);
                }
            }
            (Decision::Request, Some(task)) => {
                let cause = cause_of(record);
                self.asked.insert(task, cause);
                // Whoever may be inserted is in no queue, whatever was not told.
                self.at.remove(&task);
                self.acts(record.cpu);
                let slice = What::Slice {
                    by: cause,
                    slice: Nanos::new(record.b),
                    why: Sliced::Insert,
                };
                self.push(at, slice);
            }
            (Decision::Insert, Some(task)) => self.insert(record, task, at),
            (Decision::Kept, Some(task)) => {
                self.at.remove(&task);
                let cause = Cause {
                    caller: Caller::Callback(Op::Enqueue),
                    place: NOWHERE,
                };
                let kept = What::Insert {
                    by: cause,
                    into: InQueue::NONE,
                    flags: 0,
                };
                self.push(at, kept);
            }
            (Decision::Move, Some(task)) => {
                let queue = self.queue(record.a, record.cpu, at);
                let look = Look {
                    queue,
                    depth: record.b as u32,
                    how: Looked::Move,
                    cause: cause_of(record),
                    whom: Some(task),
                    has_taken: false,
                };
                self.looks.insert(record.cpu, look);
            }
            (Decision::Moved, Some(_)) => _ = self.looks.remove(&record.cpu),
            (Decision::Remove, Some(task)) => self.remove(record, task, at),
            (Decision::Slice, Some(_)) => {
                let slice = What::Slice {
                    by: cause_of(record),
                    slice: Nanos::new(record.a),
                    why: Sliced::Set,
                };
                self.push(at, slice);
            }
            (Decision::Allowed, Some(_)) => {
                let allowed = What::Allowed {
                    caller: Caller::Kernel,
                    cpus: record.b,
                    mask: record.a,
                };
                self.push(at, allowed);
            }
            // The end is told apart. Of other tasks nothing else was recorded.
            (Decision::Exit, _) | (_, None) => {}
        }
        std::mem::take(&mut self.events)
    }

    fn push(&mut self, (time, cpu, task): At, what: What) {
        self.events.push(Event::new(time, cpu, task, what));
    }

    /// A look after which so many tasks are in its queue.
    fn push_look(&mut self, at: At, look: &Look, depth: u32) {
        let what = What::Look {
            by: look.cause,
            at: InQueue {
                queue: look.queue,
                depth,
            },
            how: look.how,
        };
        self.push(at, what);
    }

    /// The index of the queue `id`, local ones that of `cpu`. The first mention is its begin: what
    /// was before the recording is not known.
    fn queue(&mut self, id: u64, cpu: u16, (time, on, _): At) -> u32 {
        let id = match id {
            LOCAL => LOCAL_ON | u64::from(cpu),
            id => id,
        };
        if let Some(index) = self.queues.get(&id) {
            return *index;
        }
        let index = self.count;
        self.count += 1;
        self.queues.insert(id, index);
        let queue = What::Queue {
            caller: Caller::Kernel,
            id,
            queue: index,
            exists: true,
        };
        self.push((time, on, TaskId::NONE), queue);
        index
    }

    /// The `dispatch` of this CPU has done something.
    fn acts(&mut self, cpu: u16) {
        if let Some(acts) = self.dispatches.get_mut(&cpu) {
            *acts = true;
        }
    }

    fn dispatch(&mut self, record: &Decided, at: At) {
        if record.what == Decision::Dispatch {
            self.dispatches.insert(record.cpu, false);
            let called = What::Callback {
                op: Op::Dispatch,
                a: record.cpu.into(),
                b: 0,
            };
            self.push(at, called);
        } else if self.dispatches.remove(&record.cpu) == Some(false) {
            let cause = Cause {
                caller: Caller::Callback(Op::Dispatch),
                place: NOWHERE,
            };
            let nothing = What::Look {
                by: cause,
                at: InQueue::NONE,
                how: Looked::Nothing,
            };
            self.push(at, nothing);
        }
    }

    fn look(&mut self, record: &Decided, at: At) {
        if record.what == Decision::Consumed {
            let look = self.looks.remove(&record.cpu);
            match look.filter(|look| !look.has_taken) {
                Some(look) if record.b == 0 => self.push_look(at, &look, look.depth),
                Some(look) => {
                    self.acts(record.cpu);
                    self.silent.insert(record.cpu, look);
                }
                None => {}
            }
            return;
        }
        let queue = self.queue(record.a, record.cpu, at);
        let cause = cause_of(record);
        let (how, depth) = match record.what {
            Decision::Iterate => (Looked::Iterate, 0),
            _ if cause.caller == Caller::Kernel => (Looked::Kernel, record.b as u32),
            _ => (Looked::MoveToLocal, record.b as u32),
        };
        let look = Look {
            queue,
            depth,
            how,
            cause,
            whom: None,
            has_taken: false,
        };
        if how == Looked::Iterate {
            // Its depth was not asked for: those that are known to be in it.
            let depth = self.at.values().filter(|index| **index == queue).count();
            return self.push_look(at, &look, u32::try_from(depth).unwrap_or(u32::MAX));
        }
        self.looks.insert(record.cpu, look);
    }

    fn insert(&mut self, record: &Decided, task: TaskId, at: At) {
        let (depth, cpu, mut flags) = unpack(record.b);
        let queue = self.queue(record.a, cpu, at);
        if self.at.insert(task, queue) == Some(queue) {
            // Two functions of the kernel tell of the same insert.
            return;
        }
        self.acts(record.cpu);
        let look = self.looks.get_mut(&record.cpu);
        let look = look.filter(|look| !look.has_taken && look.whom.is_none_or(|it| it == task));
        let taken = look.map(|look| {
            look.has_taken = true;
            *look
        });
        let cause = match (taken, self.asked.remove(&task)) {
            (Some(look), _) => {
                self.push_look(at, &look, look.depth.saturating_sub(1));
                flags |= insert::MOVED;
                look.cause
            }
            (None, Some(cause)) => cause,
            (None, None) => {
                flags |= insert::KERNEL;
                Cause::KERNEL
            }
        };
        let inserted = What::Insert {
            by: cause,
            into: InQueue { queue, depth },
            flags,
        };
        self.push(at, inserted);
    }

    fn remove(&mut self, record: &Decided, task: TaskId, at: At) {
        let (depth, cpu, runs) = unpack(record.b);
        let queue = self.queue(record.a, cpu, at);
        // To move it to another CPU, the kernel takes it off the first one's list of tasks.
        let is_moved = self
            .looks
            .get(&record.cpu)
            .is_some_and(|look| !look.has_taken);
        if is_moved {
            return;
        }
        let known = self.at.remove(&task);
        if let Some(look) =
            known.and_then(|known| self.silent.get(&cpu).filter(|it| it.queue == known))
            && known != Some(queue)
        {
            // That look took it.
            let look = *look;
            self.silent.remove(&cpu);
            self.push_look(at, &look, look.depth.saturating_sub(1));
            let inserted = What::Insert {
                by: look.cause,
                into: InQueue { queue, depth },
                flags: insert::MOVED,
            };
            self.push(at, inserted);
        } else if known != Some(queue) {
            return;
        }
        let removed = What::Remove {
            by: Cause::KERNEL,
            from: InQueue {
                queue,
                depth: depth.saturating_sub(1),
            },
            why: if runs == 0 {
                Removed::Leaves
            } else {
                Removed::Runs
            },
        };
        self.push(at, removed);
    }

    fn cpu(&mut self, record: &Decided, (time, cpu, task): At) {
        let by = cause_of(record);
        let at = (time, CpuId(record.a as u16), task);
        match record.what {
            Decision::Kick => {
                let kick = What::Kick {
                    flags: record.b,
                    caller: cpu,
                };
                self.push(at, kick);
                let end = What::KickEnd {
                    by,
                    fate: Kicked::Asked,
                    caller: cpu,
                };
                self.push(at, end);
            }
            Decision::Claim => {
                let how = IdleChange::Claimed;
                self.push(at, What::Idle { by, how });
            }
            _ => {
                let how = if record.a == 0 {
                    IdleChange::Busy
                } else {
                    IdleChange::Idles
                };
                let by = Cause::KERNEL;
                self.push((time, cpu, task), What::Idle { by, how });
            }
        }
    }
}

/// Depth, CPU, and what else a record of an insert or a removal has.
const fn unpack(word: u64) -> (u32, u16, u32) {
    (word as u32, (word >> 32) as u16, (word >> 48) as u32)
}

#[cfg(test)]
mod tests {
    use model::EventKind;

    use super::*;

    const NOW: SimTime = SimTime::from_nanos(9);
    const T: Option<TaskId> = Some(TaskId(3));

    fn record(what: Decision, a: u64, b: u64) -> Decided {
        Decided {
            time: 9,
            pid: 7,
            cpu: 1,
            what,
            a,
            b,
            place: 5,
            caller: Caller::Callback(Op::Dispatch),
        }
    }

    fn kinds(events: &[Event]) -> Vec<(EventKind, u8, u64, u64)> {
        events
            .iter()
            .map(|it| (it.kind, it.words()))
            .map(|(kind, words)| (kind, words.detail, words.a, words.b))
            .collect()
    }

    /// The life of a task in two queues: asked for, carried out, taken by CPU 1, run there.
    #[test]
    fn an_insert_has_the_cause_of_its_request_and_a_look_the_task_that_it_took() {
        let mut decider = Decider::default();
        let mut told = Vec::new();
        let by_cpu_1 = 1 << 32;
        for (what, a, b) in [
            (Decision::Request, 4, 20),
            (Decision::Insert, 4, 1),
            (Decision::Dispatch, 0, 0),
            (Decision::Consume, 4, 1),
            (Decision::Remove, 4, 1),
            (Decision::Insert, LOCAL, 1 | by_cpu_1),
            (Decision::Insert, LOCAL, 1 | by_cpu_1),
            (Decision::Consumed, 4, 1),
            (Decision::Dispatched, 0, 0),
            (Decision::Remove, LOCAL, 1 | by_cpu_1 | 1 << 48),
        ] {
            told.extend(decider.decide(&record(what, a, b), T, NOW));
        }
        let (dispatch, kernel) = (Op::Dispatch as u8, Caller::Kernel.number());
        let place = |extra: u64| 5 | extra << 32;
        let moved = u64::from(insert::MOVED);
        let want = [
            (EventKind::Slice, dispatch, 20, place(Sliced::Insert as u64)),
            (EventKind::Queue, kernel, 4, 1 << 32),
            (EventKind::Insert, dispatch, 1 << 32, place(0)),
            (EventKind::Callback, dispatch, 1, 0),
            (EventKind::Queue, kernel, LOCAL_ON | 1, 1 | 1 << 32),
            (EventKind::Look, dispatch, 0, place(0)),
            (EventKind::Insert, dispatch, 1 | 1 << 32, place(moved)),
            (EventKind::Remove, kernel, 1, NOWHERE.into()),
        ];
        assert_eq!(kinds(&told), want);
    }

    /// The kernel did not tell of the insert into the local queue: the task that leaves it tells.
    #[test]
    fn a_look_that_names_nobody_is_told_when_its_task_runs() {
        let mut decider = Decider::default();
        let mut told = Vec::new();
        let by_cpu_1 = 1 << 32;
        for (what, a, b) in [
            (Decision::Request, 4, 20),
            (Decision::Insert, 4, 1),
            (Decision::Consume, 4, 1),
            (Decision::Consumed, 4, 1),
            (Decision::Remove, LOCAL, 1 | by_cpu_1 | 1 << 48),
            (Decision::Request, 4, 20),
            (Decision::Insert, 4, 1),
        ] {
            told.extend(decider.decide(&record(what, a, b), T, NOW));
        }
        let kinds: Vec<EventKind> = told.iter().map(|event| event.kind).collect();
        let want = [
            EventKind::Slice,
            EventKind::Queue,
            EventKind::Insert,
            EventKind::Queue,
            EventKind::Look,
            EventKind::Insert,
            EventKind::Remove,
            EventKind::Slice,
            EventKind::Insert,
        ];
        assert_eq!(kinds, want);
        assert_eq!(told[5].words().b >> 32, u64::from(insert::MOVED));
    }

    #[test]
    fn a_dispatch_that_finds_nobody_says_so_and_a_kept_task_is_in_no_queue() {
        let mut decider = Decider::default();
        let mut told = Vec::new();
        for (what, task) in [
            (Decision::Dispatch, None),
            (Decision::Consume, None),
            (Decision::Consumed, None),
            (Decision::Dispatched, None),
            (Decision::Kept, T),
        ] {
            told.extend(decider.decide(&record(what, 4, 0), task, NOW));
        }
        let told = kinds(&told);
        let (dispatch, enqueue) = (Op::Dispatch as u8, Op::Enqueue as u8);
        assert_eq!(told[2], (EventKind::Look, dispatch, 0, 5));
        let nowhere = u64::from(NOWHERE);
        let nothing = nowhere | (Looked::Nothing as u64) << 32;
        assert_eq!(told[3], (EventKind::Look, dispatch, nowhere, nothing));
        assert_eq!(told[4], (EventKind::Insert, enqueue, nowhere, nowhere));
        assert_eq!(told.len(), 5);
    }

    #[test]
    fn kicks_claims_and_idle_cpus_are_those_of_the_named_cpu() {
        let mut decider = Decider::default();
        let kick = decider.decide(&record(Decision::Kick, 2, 1), None, NOW);
        assert_eq!(
            (kick[0].kind, kick[0].cpu, kick[0].words().a),
            (EventKind::Kick, CpuId(2), 1)
        );
        assert_eq!(
            (kick[1].kind, kick[1].words().b),
            (EventKind::KickEnd, 5 | 1 << 32)
        );
        let claim = decider.decide(&record(Decision::Claim, 3, 0), None, NOW);
        let how = |event: &Event| match event.what() {
            What::Idle { how, .. } => (event.cpu, how),
            _ => panic!("{event:?}"),
        };
        assert_eq!(how(&claim[0]), (CpuId(3), IdleChange::Claimed));
        let idle = decider.decide(&record(Decision::Idle, 1, 0), None, NOW);
        assert_eq!(how(&idle[0]), (CpuId(1), IdleChange::Idles));
        // Nothing is told of tasks that nobody knows.
        assert!(
            decider
                .decide(&record(Decision::Insert, 4, 1), None, NOW)
                .is_empty()
        );
    }
}
