use super::super::{EventMask, insert};
use super::*;

const BY: Cause = Cause {
    caller: Caller::Callback(Op::Enqueue),
    place: 7,
};
const QUEUE: InQueue = InQueue { queue: 3, depth: 4 };

/// At least one of each kind, with another number in every field.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn everything() -> Vec<What> {
    let wakeup = Wakeup {
        waker: TaskId(5),
        waker_cpu: CpuId(6),
        sync: true,
        new: true,
        cause: WakeCause::Outside,
    };
    vec![
        What::New {
            group: 1,
            index: 2,
            pid: 3,
            parent: TaskId(4),
        },
        What::Exit,
        What::Wakeup(wakeup),
        What::Wakeup(Wakeup {
            sync: false,
            ..wakeup
        }),
        What::Wakeup(Wakeup {
            waker: TaskId::NONE,
            new: false,
            ..wakeup
        }),
        What::Switch {
            prev: TaskId::NONE,
            state: PrevState::Sleeping,
            overhead: Nanos::new(9),
        },
        What::Migrate { from: CpuId(8) },
        What::Callback {
            op: Op::CgroupSetIdle,
            a: u64::MAX,
            b: 1,
        },
        What::Steal {
            span: Nanos::new(u64::MAX),
        },
        What::Report {
            priority: 140,
            level: 2,
            flags: 1,
        },
        What::SpanBegin { span: 1 },
        What::SpanEnd {
            span: 1,
            length: Nanos::new(2),
        },
        What::Deadline {
            deadline: 1,
            late: Nanos::new(2),
        },
        What::Skipped {
            deadline: 1,
            periods: 2,
        },
        What::Count { counter: 1, by: 2 },
        What::Phase { phase: 1 },
        What::Kick {
            flags: 2,
            caller: CpuId(1),
        },
        What::Change(Change::Nice(-20)),
        What::Change(Change::Affinity(3)),
        What::Change(Change::Class {
            class: TaskClass::RealTime,
            priority: 50,
        }),
        What::Change(Change::class(TaskClass::Unknown(6))),
        What::Queue {
            caller: Caller::Program,
            id: 1 << 63,
            queue: 1,
            exists: true,
        },
        What::Insert {
            by: BY,
            into: QUEUE,
            flags: insert::HEAD | insert::MOVED,
        },
        What::Look {
            by: BY,
            at: InQueue::NONE,
            how: Looked::LetGo,
        },
        What::Remove {
            by: Cause::KERNEL,
            from: QUEUE,
            why: Removed::Leaves,
        },
        What::Ignored { by: BY, id: 9 },
        What::KickEnd {
            by: BY,
            fate: Kicked::Taken,
            caller: CpuId(2),
        },
        What::Idle {
            by: BY,
            how: IdleChange::Busy,
        },
        What::Slice {
            by: BY,
            slice: Nanos::new(u64::MAX),
            why: Sliced::Cut,
        },
        What::Allowed {
            caller: Caller::Kernel,
            cpus: 4,
            mask: 15,
        },
        What::Failed { by: BY, kind: 1024 },
        What::Suspend {
            by: BY,
            until: Until::Events,
            word: 3,
        },
        What::Resume {
            by: BY,
            lasted: Nanos::new(4),
        },
        What::Scheduler {
            scheduler: 2,
            cgroup: u64::MAX,
        },
        What::Frequency {
            khz: 2_802_000,
            rate: 1 << 20,
        },
        What::Vtime {
            by: BY,
            vtime: u64::MAX,
        },
    ]
}

const AT: (SimTime, CpuId, TaskId) = (SimTime::from_nanos(1), CpuId(2), TaskId(3));

fn event(what: What) -> Event {
    Event::new(AT.0, AT.1, AT.2, what)
}

#[test]
fn what_is_packed_into_an_event_comes_out_of_it() {
    for what in everything() {
        assert_eq!(event(what).what(), what);
        assert_eq!(event(what).kind, what.kind());
        let read = Event::from_words(AT, what.kind(), event(what).words());
        assert_eq!(read, Some(event(what)), "{what:?}");
    }
}

#[test]
fn every_kind_is_tried() {
    let mut tried = EventMask::NONE;
    for what in everything() {
        tried = tried.with(what.kind());
    }
    for kind in EventKind::ALL {
        assert!(tried.has(kind), "{kind:?}");
    }
}

#[test]
fn the_named_causes_states_and_reasons_keep_their_numbers() {
    let states = [
        PrevState::Idle,
        PrevState::Runnable,
        PrevState::Sleeping,
        PrevState::Dead,
    ];
    for state in states {
        let what = What::Switch {
            prev: TaskId(1),
            state,
            overhead: Nanos::ZERO,
        };
        assert_eq!(event(what).words().detail, state as u8);
        assert_eq!(event(what).what(), what);
    }
    for op in Op::ALL {
        let caller = Caller::Callback(op);
        assert_eq!(Caller::numbered(caller.number()), caller);
    }
    for class in [
        TaskClass::RealTime,
        TaskClass::Fair,
        TaskClass::Policy,
        TaskClass::Deadline,
    ] {
        assert_eq!(TaskClass::of(class.number()), class);
    }
}

#[test]
fn numbers_without_a_meaning_are_no_event() {
    let words = |detail, a, b| EventWords { detail, a, b };
    for (kind, words) in [
        (EventKind::Switch, words(4, 0, 0)),
        (EventKind::Wakeup, words(5, 0, 0)),
        (EventKind::Callback, words(Op::ALL.len() as u8, 0, 0)),
        (EventKind::Change, words(0, 3, 0)),
        (EventKind::Change, words(1, 0, 0)),
        (EventKind::Exit, words(1, 0, 0)),
        (EventKind::Insert, words(u8::MAX, 0, 0)),
        (EventKind::Look, words(0, 0, 6 << 32)),
        (EventKind::Remove, words(0, 0, 2 << 32)),
        (EventKind::Slice, words(0, 0, 4 << 32)),
        (EventKind::Suspend, words(0, 0, 3 << 32)),
        (EventKind::KickEnd, words(0, 4, 0)),
        (EventKind::Idle, words(0, 3, 0)),
    ] {
        assert_eq!(
            Event::from_words(AT, kind, words),
            None,
            "{kind:?} {words:?}"
        );
    }
}
