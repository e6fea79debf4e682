//! Programs at tracepoints and kernel functions: where, when and by whom they are called.

use std::cell::RefCell;
use std::rc::Rc;

use model::user_space::{BpfAnswer, BpfCall, BpfId, TurnEnd};
use model::{
    Event, EventKind, EventMask, Header, Nanos, PrevState, Profile, SimTime, Sink, Summary,
};
use runslice_tests::in_process::{self, Step, Within};
use runslice_tests::run::Run;

const LOAD: &str = r#"
    [cgroup.web]
    [task.parent]
    kind = "process"
    do = ["run(100us)", "fork(child)", "sleep(3ms)", "fork(thread)",
          "cgroup_move(self, web, process)", "run(2ms)"]
    [task.child]
    kind = "process"
    do = ["run(500us)", "sleep(1ms)", "run(100us)"]
    [task.thread]
    do = ["run(300us)", "yield", "sleep(1ms)"]
    [task.hog]
    count = 2
    do = ["run(60ms)"]
    [task.urgent]
    policy = "fifo:10"
    do = ["loop(4)[ sleep(5ms), run(200us) ]"]
    [task.mover]
    cpus = "0"
    start = "6ms"
    do = ["run(1ms)", "setaffinity(hog[0], {0}), setaffinity(hog[1], {0})", "run(1ms)"]
    [task.binder]
    cpus = "0"
    start = "15ms"
    do = """loop(4)[ setaffinity(hog[0], all), setaffinity(hog[1], all), sleep(3ms),
            setaffinity(hog[0], {0}), setaffinity(hog[1], {0}), sleep(3ms) ]"""
"#;

const SWITCH: u32 = 1;
const WAKING: u32 = 2;
const WAKEUP: u32 = 3;
const WAKEUP_NEW: u32 = 4;
const FORK: u32 = 5;
const PROCESS_EXIT: u32 = 6;
const FREE: u32 = 7;
const NEWTASK: u32 = 8;
const RENAME: u32 = 9;
const ATTACH: u32 = 10;
const TICK_ENTERED: u32 = 11;
const TICK_LEFT: u32 = 12;
const REG_ENTERED: u32 = 13;
const REG_LEFT: u32 = 14;
const RAW_SWITCH: u32 = 15;
const RUNNING: u32 = 16;
const STOPPING: u32 = 17;
const ENQUEUE: u32 = 18;
const TICK: u32 = 19;
const EXIT_TASK: u32 = 20;
const NEVER: u32 = 21;

/// What a program has written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    what: u32,
    cpu: u32,
    current: i32,
    moves: u32,
    words: [u64; 4],
}

/// Entries as the policy keeps them: their number, and behind it, on the next 8 bytes, the list.
fn entries(bytes: &[u8], nr: usize) -> Vec<Entry> {
    let list = bytes.chunks_exact(48).take(nr).map(|entry| {
        let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap());
        Entry {
            what: word(0),
            cpu: word(4),
            current: word(8) as i32,
            moves: word(12),
            words: [long(16), long(24), long(32), long(40)],
        }
    });
    list.collect()
}

#[derive(Default)]
struct Events {
    all: Vec<Event>,
    /// The process number of each task.
    pids: Vec<u32>,
}

impl Events {
    /// The idle task has the number 0.
    fn pid(&self, task: u32) -> u64 {
        self.pids.get(task as usize).copied().unwrap_or(0).into()
    }

    fn of(&self, kind: EventKind) -> impl Iterator<Item = &Event> {
        self.all.iter().filter(move |event| event.kind == kind)
    }
}

impl Sink for Events {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }
    fn begin(&mut self, _: &Header) {}
    fn events(&mut self, events: &[Event]) {
        for event in events {
            if event.kind == EventKind::New {
                self.pids.push(event.words().b as u32);
            }
        }
        self.all.extend_from_slice(events);
    }
    fn finish(&mut self, _: SimTime) {}
}

struct Ran {
    entries: Vec<Entry>,
    /// What the iterator over tasks wrote.
    tasks: Vec<u32>,
    /// When it was read, since the begin of the run.
    read_at: u64,
    events: Events,
    summary: Summary,
}

impl Ran {
    fn of(&self, what: u32) -> Vec<Entry> {
        let found = self.entries.iter().filter(|entry| entry.what == what);
        found.copied().collect()
    }
}

/// The uptime at which the run begins, and from which on the program reads the iterator.
const UPTIME: u64 = 3_600_000_000_000;
const LOOK: Nanos = Nanos::new(UPTIME + 4_000_000);

/// The load under the policy, whose program sleeps until it is asked to end.
fn run(attaches: bool, profile: Profile) -> Ran {
    let run = Run {
        cpus: 2,
        ..Run::new("hooks", LOAD)
    };
    let mut spec = run.spec();
    spec.machine.profile = profile;
    let left = Rc::new(RefCell::new((Vec::new(), Vec::new(), Nanos::ZERO)));
    let found = Rc::clone(&left);
    let mut events = Events::default();
    let step = move |within: &mut Within<'_>| {
        let mut found = found.borrow_mut();
        if within.now < LOOK {
            return (TurnEnd::Wait { until: Some(LOOK) }, Vec::new());
        }
        if within.interrupted {
            found.0 = within.read(".bss");
            return (TurnEnd::Exit, Vec::new());
        }
        let iterator = *within.links.last().unwrap_or(&BpfId(0));
        let read = BpfCall::IterRead { link: iterator };
        if let Ok(BpfAnswer::Bytes(bytes)) = within.kernel.bpf(within.thread, read) {
            found.1 = bytes;
            found.2 = within.now;
        }
        (TurnEnd::Wait { until: None }, Vec::new())
    };
    let how = (attaches, Box::new(step) as Step);
    let ran = in_process::run(&spec, &mut events, None, how);
    let (summary, report) = ran.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.end.map(|end| end.status), Some(0));
    let (bytes, tasks, read_at) = left.take();
    let nr = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    assert!(nr < 16384, "the list is full");
    Ran {
        entries: entries(&bytes[8..], nr),
        tasks: tasks
            .chunks_exact(4)
            .map(|pid| u32::from_le_bytes(pid.try_into().unwrap()))
            .collect(),
        read_at: read_at.get().saturating_sub(UPTIME),
        events,
        summary,
    }
}

fn hooked() -> Ran {
    run(true, Profile::Ideal)
}

/// The migration threads have numbers of their own.
const STOPPERS: std::ops::Range<u64> = 3_900_000..4_000_000;

fn text(word: u64) -> String {
    let bytes = word.to_le_bytes();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(8);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[test]
fn every_switch_is_traced_while_the_task_before_is_still_the_current_one() {
    let ran = hooked();
    let state = |detail: u8, kind: u64| match detail {
        it if it == PrevState::Sleeping as u8 => kind & 0xff00 | u64::from(kind >> 8 == 2) << 8,
        it if it == PrevState::Dead as u8 => 0x8000,
        _ => 0,
    };
    // Events do not tell the migration thread from the idle task.
    let idle = |pid: u64| if STOPPERS.contains(&pid) { 0 } else { pid };
    let traced = ran.of(SWITCH).into_iter().filter_map(|entry| {
        let [prev, next, kind, _] = entry.words;
        assert_eq!(entry.current as u64, prev, "the current task");
        (idle(prev) != idle(next)).then_some((entry.cpu, idle(prev), idle(next), kind))
    });
    let traced: Vec<_> = traced.collect();
    let events = ran.events.of(EventKind::Switch);
    let mut count = 0;
    for (event, (cpu, prev, next, kind)) in events.zip(&traced) {
        let pids = (
            ran.events.pid(event.words().a as u32),
            ran.events.pid(event.task.0),
        );
        assert_eq!((event.cpu.0.into(), pids), (*cpu, (*prev, *next)));
        if !STOPPERS.contains(prev) && *prev != 0 {
            assert_eq!(*kind, state(event.words().detail, *kind), "{event:?}");
        }
        count += 1;
    }
    assert_eq!(count, traced.len());
    assert!(count > 20, "{count}");
    let seen = |what| {
        let entries = ran.of(what).into_iter();
        let words = entries.map(|entry| [entry.words[0], entry.words[1], entry.words[2]]);
        words.collect::<Vec<_>>()
    };
    assert_eq!(seen(SWITCH), seen(RAW_SWITCH));
}

#[test]
fn a_switch_comes_behind_the_callbacks_of_both_tasks() {
    let ran = hooked();
    let mut seen = [0; 2];
    for (at, entry) in ran.entries.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| ran.entries[at]);
        match (entry.what, before) {
            (SWITCH, Some(before)) if before.what == RUNNING => {
                assert_eq!(before.words[0], entry.words[1], "the next task runs");
                // `pick_next_task()` calls it, before `rq->curr` and `current` change.
                assert_eq!(before.current as u64, entry.words[0], "is still current");
                assert_eq!(before.words[1], 0, "it is not on the CPU yet");
                let earlier = &ran.entries[..at - 1];
                let told = earlier.iter().rev().take_while(|it| it.what != SWITCH);
                let stopped = told.clone().find(|it| it.what == STOPPING);
                if let Some(stopped) = stopped {
                    assert_eq!(stopped.words[0], entry.words[0], "the previous one stops");
                    seen[1] += 1;
                }
                seen[0] += 1;
            }
            (RAW_SWITCH, before) => {
                assert_eq!(
                    before.map(|it| it.what),
                    Some(SWITCH),
                    "as they were attached"
                );
            }
            _ => {}
        }
    }
    assert!(seen[0] > 10 && seen[1] > 5, "{seen:?}");
}

#[test]
fn a_switch_to_the_migration_thread_and_back_is_traced() {
    let ran = hooked();
    let to: Vec<_> = ran
        .of(SWITCH)
        .into_iter()
        .filter(|it| STOPPERS.contains(&it.words[1]))
        .collect();
    let from: Vec<_> = ran
        .of(SWITCH)
        .into_iter()
        .filter(|it| STOPPERS.contains(&it.words[0]))
        .collect();
    assert!(!to.is_empty(), "a task had to leave its CPU");
    assert_eq!(to.len(), from.len());
    for (to, from) in to.iter().zip(&from) {
        assert_eq!(to.words[3], 0, "above all real-time tasks");
        assert_eq!(to.words[1], from.words[0]);
    }
    let idle = ran.of(SWITCH).into_iter().find(|it| it.words[1] == 0);
    assert_eq!(idle.expect("a CPU idles").words[3], 120);
}

#[test]
fn wakeups_are_traced_around_the_choice_of_a_cpu() {
    let ran = hooked();
    // Who is interrupted is no waker, but the current task.
    let mut on = std::collections::BTreeMap::new();
    let mut plain = Vec::new();
    for event in &ran.events.all {
        match event.kind {
            EventKind::Switch => {
                on.insert(u32::from(event.cpu.0), ran.events.pid(event.task.0));
            }
            EventKind::Wakeup if event.words().b == 0 => {
                let cpu = u32::from((event.words().a >> 32) as u16);
                let current = on.get(&cpu).copied().unwrap_or(0);
                plain.push((ran.events.pid(event.task.0), cpu, current));
                // All of these are by timers; `operations` has others.
                assert_eq!(ran.events.pid(event.words().a as u32), 0);
            }
            _ => {}
        }
    }
    let traced = |what| {
        let entries = ran.of(what).into_iter();
        entries
            .map(|it| (it.words[0], it.cpu, it.current as u64))
            .collect::<Vec<_>>()
    };
    assert!(plain.len() > 10);
    assert_eq!(traced(WAKING), plain);
    assert_eq!(traced(WAKEUP), plain);
    assert!(ran.of(WAKING).iter().all(|it| it.words[1] != 0), "asleep");
    assert!(ran.of(WAKEUP).iter().all(|it| it.words[1] == 0), "runnable");
    let about = |pid: u64| {
        let entries = ran.entries.iter().filter(move |it| it.words[0] == pid);
        entries
            .filter(|it| [WAKING, WAKEUP, ENQUEUE].contains(&it.what))
            .map(|it| it.what)
    };
    let mover = plain
        .iter()
        .map(|it| it.0)
        .find(|&pid| about(pid).eq([WAKING, ENQUEUE, WAKEUP]));
    assert!(
        mover.is_some(),
        "a task that was woken once and never preempted"
    );
}

#[test]
fn births_and_deaths_are_traced_in_the_kernels_order() {
    let ran = hooked();
    let [first, second] = ran.of(NEWTASK)[..] else {
        panic!("two forks");
    };
    assert_eq!(
        (first.words[1], second.words[1]),
        (0x0120_0000, 0x003d_0f00)
    );
    for (new, comm) in [(first, "child.0"), (second, "thread.0")] {
        let child = new.words[0];
        let kinds = [
            NEWTASK,
            FORK,
            WAKEUP_NEW,
            RENAME,
            PROCESS_EXIT,
            FREE,
            EXIT_TASK,
        ];
        let about = ran.entries.iter().filter(|it| {
            let pid = it.words[usize::from(it.what == FORK)];
            kinds.contains(&it.what) && pid == child
        });
        let about: Vec<_> = about.collect();
        assert!(about.iter().map(|it| it.what).eq(kinds), "{about:?}");
        assert_eq!(
            about[1].words[0], about[0].current as u64,
            "its parent forks it"
        );
        assert_eq!(
            (text(about[3].words[1]), text(about[3].words[2])),
            (comm.into(), "parent".into())
        );
        assert_eq!(
            (about[4].current as u64, about[4].words[2]),
            (child, 4),
            "it exits itself"
        );
    }
    let parent = first.current as u64;
    let exits = ran.of(PROCESS_EXIT);
    let last = |pid: u64| {
        exits
            .iter()
            .find(|it| it.words[0] == pid)
            .expect("it exits")
            .words[1]
    };
    assert_eq!(last(first.words[0]), 1, "a process of one thread");
    assert_eq!(
        last(parent) + last(second.words[0]),
        1,
        "one of the two is the last"
    );
    let of_events = ran
        .events
        .of(EventKind::Exit)
        .map(|event| ran.events.pid(event.task.0));
    assert!(exits.iter().map(|it| it.words[0]).eq(of_events));
}

#[test]
fn a_move_to_a_cgroup_is_traced_with_its_path() {
    let ran = hooked();
    let [attached] = ran.of(ATTACH)[..] else {
        panic!("one move");
    };
    let [id, path, task, whole] = attached.words;
    assert_eq!((id, text(path), whole), (2, "/web".to_owned(), 1));
    assert_eq!(task, attached.current as u64, "it moves itself");
}

#[test]
fn the_end_of_a_tick_is_traced_on_every_busy_cpu_the_newest_program_first() {
    let ran = hooked();
    let mut ticks = [0; 2];
    for (at, entry) in ran.entries.iter().enumerate() {
        if (entry.what, entry.words[1]) != (TICK_ENTERED, 2) {
            continue;
        }
        let [next, last] = [ran.entries[at + 1], ran.entries[at + 2]];
        assert_eq!(
            (next.what, next.words[1], last.what),
            (TICK_ENTERED, 1, TICK_LEFT)
        );
        assert_eq!(
            (entry.words[0], last.words[0]),
            (entry.cpu.into(), entry.cpu.into())
        );
        assert_eq!(
            [entry.moves, last.moves],
            [1; 2],
            "a trampoline holds its task"
        );
        let before = ran.entries[at - 1];
        ticks[usize::from(before.what == TICK && before.words[0] == entry.current as u64)] += 1;
    }
    assert_eq!(ticks[1], ran.of(TICK).len(), "each behind the callback");
    assert_eq!(ticks[0] + ticks[1], ran.of(TICK_LEFT).len());
    assert!(ticks[1] > 20, "{ticks:?}");
    assert!(
        ran.of(SWITCH).iter().all(|it| it.moves == 0),
        "a tracepoint holds none"
    );
}

#[test]
fn the_registration_of_the_table_is_traced() {
    let ran = hooked();
    let [entered] = ran.of(REG_ENTERED)[..] else {
        panic!("once");
    };
    assert_eq!((ran.entries[0], entered.moves), (entered, 1));
    let left = ran.entries.iter().position(|it| it.what == REG_LEFT);
    let switch = ran.entries.iter().position(|it| it.what == SWITCH);
    assert!(left < switch && left.is_some());
    assert_eq!(ran.of(REG_LEFT)[0].words[0], 0, "it succeeded");
}

#[test]
fn what_is_never_called_and_what_fails_is_said_once() {
    let ran = hooked();
    assert!(ran.of(NEVER).is_empty());
    assert!(!ran.summary.exit.kind.is_error(), "{:?}", ran.summary.exit);
    let about = |word: &str| {
        let notes = ran.summary.notes.iter();
        notes.filter(|note| note.contains(word)).count()
    };
    assert_eq!(
        (about("cpu_frequency"), about("faulty")),
        (1, 1),
        "{:?}",
        ran.summary.notes
    );
}

#[test]
fn programs_cost_what_callbacks_cost_and_change_nothing_else() {
    let (with, without) = (hooked(), run(false, Profile::Ideal));
    assert_eq!(with.events.all, without.events.all);
    let spent = |attaches| {
        let ran = run(attaches, Profile::DefaultV0);
        let found = ran
            .summary
            .spent
            .iter()
            .find(|(kind, _)| *kind == "callbacks");
        found.expect("the profile has costs").1
    };
    assert!(spent(true).get() > 3 * spent(false).get() / 2);
}

#[test]
fn an_iterator_visits_every_task_that_lives_by_its_number() {
    let ran = hooked();
    let (mut born, mut alive) = (ran.events.pids.iter(), Vec::new());
    let before = |event: &&Event| event.time.as_nanos() <= ran.read_at;
    for event in ran.events.all.iter().take_while(before) {
        match event.kind {
            EventKind::New => alive.extend(born.next()),
            EventKind::Exit => {
                let pid = ran.events.pid(event.task.0);
                alive.retain(|it| u64::from(*it) != pid);
            }
            _ => {}
        }
    }
    alive.sort_unstable();
    assert!(alive.len() >= 5, "{alive:?}");
    // The last call is without a task.
    alive.push(u32::MAX);
    assert_eq!(ran.tasks, alive);
}
