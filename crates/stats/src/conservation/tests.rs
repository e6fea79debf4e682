use model::{CpuTimes, Exit, ExitKind};

use super::*;
use traces::testing::{self, StreamWriter, event, raw};

const RUNNABLE: PrevState = PrevState::Runnable;
const SLEEPING: PrevState = PrevState::Sleeping;
const DEAD: PrevState = PrevState::Dead;

fn at(ns: u64) -> SimTime {
    SimTime::from_nanos(ns)
}

fn checked(stream: &StreamWriter) -> Conservation {
    let mut check = Conservation::new();
    stream.feed(&mut check, 2, 100);
    check
}

fn violation(stream: &StreamWriter) -> Violation {
    checked(stream)
        .violation()
        .expect("the stream breaks a rule")
        .clone()
}

/// A task that waits from 0 to 10 and then runs on CPU 0.
fn running() -> StreamWriter {
    StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .switch(10, 0, None, Some(0))
}

/// A task that ran from 10 to 30, was cut short by an interrupt of 4, and sleeps.
fn asleep() -> StreamWriter {
    running()
        .steal(15, 0, Some(0), 4)
        .switch(30, 0, Some((0, SLEEPING)), None)
}

fn summary() -> Summary {
    let [run, stolen, wait, sleep] = [16, 4, 10, 70].map(Nanos::new);
    let cpu = CpuTimes {
        run,
        stolen,
        idle: Nanos::new(80),
        overhead: Nanos::ZERO,
        switches: 2,
    };
    let other = CpuTimes {
        idle: Nanos::new(100),
        ..CpuTimes::default()
    };
    Summary {
        end: at(100),
        exit: Exit {
            kind: ExitKind::Unreg,
            code: 0,
            message: String::new(),
            time: at(100),
            fault: None,
        },
        cpus: vec![cpu, other],
        tasks: vec![TaskTimes {
            run,
            stolen,
            wait,
            sleep,
        }],
        counters: Vec::new(),
        spent: Vec::new(),
        policy_counters: Vec::new(),
        printed: String::new(),
        instructions: 0,
        callbacks: 0,
        starved: Vec::new(),
        excused: None,
        hardware: None,
        growing: Vec::new(),
        blocked: Vec::new(),
        watchdog: None,
        subs: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn a_stream_that_keeps_the_rules_agrees_with_a_summary_that_adds_up() {
    assert_eq!(checked(&asleep()).check(&summary()), Ok(()));
}

#[test]
fn a_whole_life_breaks_no_rule() {
    let life = asleep()
        .wakeup(40, 0, 0)
        .switch(45, 0, None, Some(0))
        .overhead(5)
        .born(55, 1, 1, 0)
        .start(55, 1, 0)
        .switch(60, 0, Some((0, RUNNABLE)), Some(1))
        .migrate(61, 0, 0, 1)
        .switch(61, 1, None, Some(0))
        .switch(70, 1, Some((0, DEAD)), None)
        .exit(70, 0, 1)
        .push(event(80, EventKind::Callback, 1, TaskId(0)));
    assert_eq!(checked(&life).violation(), None);
}

#[test]
fn time_may_not_run_backwards_or_past_the_end() {
    let back = running().steal(5, 0, Some(0), 1);
    assert_eq!(
        violation(&back),
        Violation::Order {
            time: at(5),
            after: at(10)
        }
    );
    let late = running().steal(101, 0, Some(0), 1);
    assert_eq!(
        violation(&late),
        Violation::Order {
            time: at(101),
            after: at(100)
        }
    );
}

#[test]
fn a_task_is_born_once_in_turn_and_before_anything_else() {
    let twice = running().born(20, 0, 0, 0);
    assert_eq!(
        violation(&twice),
        Violation::Birth {
            time: at(20),
            task: TaskId(0),
            next: 1
        }
    );
    let gap = running().born(20, 2, 0, 0);
    assert_eq!(
        violation(&gap),
        Violation::Birth {
            time: at(20),
            task: TaskId(2),
            next: 1
        }
    );
    let unborn = StreamWriter::new().start(3, 0, 0);
    assert_eq!(
        violation(&unborn),
        Violation::Unborn {
            time: at(3),
            task: TaskId(0),
            next: 0
        }
    );
    let unborn = StreamWriter::new().switch(3, 0, None, Some(7));
    assert_eq!(
        violation(&unborn),
        Violation::Unborn {
            time: at(3),
            task: TaskId(7),
            next: 0
        }
    );
}

#[test]
fn a_cpu_must_exist() {
    let stream = running().steal(20, 2, None, 1);
    assert_eq!(
        violation(&stream),
        Violation::NoCpu {
            time: at(20),
            cpu: CpuId(2)
        }
    );
}

#[test]
fn nothing_but_callbacks_happens_to_a_task_after_its_exit() {
    let dead = || {
        running()
            .switch(20, 0, Some((0, DEAD)), None)
            .exit(20, 0, 0)
    };
    let (time, task) = (at(30), TaskId(0));
    let woken = dead().wakeup(30, 0, 0);
    let kind = EventKind::Wakeup;
    assert_eq!(violation(&woken), Violation::Exited { time, task, kind });
    let run = dead().switch(30, 0, None, Some(0));
    let kind = EventKind::Switch;
    assert_eq!(violation(&run), Violation::Exited { time, task, kind });
    let count = dead().on(30, EventKind::Count, 0, 0, 1);
    let kind = EventKind::Count;
    assert_eq!(violation(&count), Violation::Exited { time, task, kind });
}

#[test]
fn wakeups_alternate_with_sleep() {
    let (time, task) = (at(20), TaskId(0));
    let running = running().wakeup(20, 0, 0);
    assert_eq!(violation(&running), Violation::WokenAwake { time, task });
    let runnable = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .wakeup(20, 0, 0);
    assert_eq!(violation(&runnable), Violation::WokenAwake { time, task });
}

#[test]
fn only_the_first_wakeup_is_a_start_and_that_of_a_fork_must_be() {
    let child = |stream: StreamWriter| {
        let at = (SimTime::from_nanos(20), CpuId(0), TaskId(1));
        // Its parent is task 0.
        stream.push(raw(at, EventKind::New, (0, 1, 1001)))
    };
    let first = child(running()).wakeup(25, 1, 0);
    assert_eq!(
        violation(&first),
        Violation::WrongNew {
            time: at(25),
            task: TaskId(1)
        }
    );
    assert_eq!(checked(&child(running()).start(25, 1, 0)).violation(), None);
    // A task without a parent was there before the run, and may simply be woken.
    let there = StreamWriter::new().born(0, 0, 0, 0).wakeup(5, 0, 0);
    assert_eq!(checked(&there).violation(), None);
    let second = asleep().start(40, 0, 0);
    assert_eq!(
        violation(&second),
        Violation::WrongNew {
            time: at(40),
            task: TaskId(0)
        }
    );
}

#[test]
fn a_cpu_takes_runnable_tasks_only() {
    let (time, task, cpu) = (at(40), TaskId(0), CpuId(0));
    let run = asleep().switch(40, 0, None, Some(0));
    assert_eq!(violation(&run), Violation::RunAsleep { time, task, cpu });
}

#[test]
fn a_task_is_on_one_cpu() {
    let both = running().switch(20, 1, None, Some(0));
    let (time, task, cpu, on) = (at(20), TaskId(0), CpuId(1), CpuId(0));
    assert_eq!(
        violation(&both),
        Violation::TwoCpus {
            time,
            task,
            cpu,
            on
        }
    );
}

#[test]
fn switches_and_interrupts_name_the_task_that_is_there() {
    let (time, cpu) = (at(20), CpuId(0));
    let switch = running().switch(20, 0, None, None);
    let kind = EventKind::Switch;
    let (named, on) = (None, Some(TaskId(0)));
    assert_eq!(
        violation(&switch),
        Violation::WrongTask {
            time,
            cpu,
            kind,
            named,
            on
        }
    );
    let steal = running().steal(20, 0, None, 1);
    let kind = EventKind::Steal;
    assert_eq!(
        violation(&steal),
        Violation::WrongTask {
            time,
            cpu,
            kind,
            named,
            on
        }
    );
}

#[test]
fn a_switch_changes_the_task_and_says_in_which_state() {
    let (time, cpu) = (at(20), CpuId(0));
    let same = running().switch(20, 0, Some((0, RUNNABLE)), Some(0));
    assert_eq!(
        violation(&same),
        Violation::NoSwitch {
            time,
            cpu,
            task: Some(TaskId(0))
        }
    );
    let idle = StreamWriter::new().switch(20, 0, None, None);
    assert_eq!(
        violation(&idle),
        Violation::NoSwitch {
            time,
            cpu,
            task: None
        }
    );
    let state = running().switch(20, 0, Some((0, PrevState::Idle)), None);
    assert_eq!(
        violation(&state),
        Violation::WrongState {
            time,
            cpu,
            state: 0
        }
    );
}

#[test]
fn an_exit_follows_the_last_switch_at_once() {
    let (time, task) = (at(20), TaskId(0));
    let alive = running().exit(20, 0, 0);
    assert_eq!(violation(&alive), Violation::ExitAlive { time, task });
    let late = running()
        .switch(20, 0, Some((0, DEAD)), None)
        .exit(25, 0, 0);
    assert_eq!(
        violation(&late),
        Violation::ExitAlive { time: at(25), task }
    );
    let dead = || running().switch(20, 0, Some((0, DEAD)), None);
    assert_eq!(violation(&dead()), Violation::NoExit { task, since: time });
    let other = dead().steal(30, 0, None, 1);
    assert_eq!(violation(&other), Violation::NoExit { task, since: time });
}

#[test]
fn a_task_runs_and_wakes_where_it_is() {
    let (time, task, cpu, place) = (at(40), TaskId(0), CpuId(1), CpuId(0));
    let wakeup = asleep().wakeup(40, 0, 1);
    let kind = EventKind::Wakeup;
    assert_eq!(
        violation(&wakeup),
        Violation::WrongPlace {
            time,
            task,
            kind,
            cpu,
            place
        }
    );
    let run = asleep().wakeup(35, 0, 0).switch(40, 1, None, Some(0));
    let kind = EventKind::Switch;
    assert_eq!(
        violation(&run),
        Violation::WrongPlace {
            time,
            task,
            kind,
            cpu,
            place
        }
    );
    let from = asleep().migrate(40, 0, 1, 1);
    let kind = EventKind::Migrate;
    assert_eq!(
        violation(&from),
        Violation::WrongPlace {
            time,
            task,
            kind,
            cpu,
            place
        }
    );
}

#[test]
fn a_migration_changes_the_place_of_a_task_that_does_not_run() {
    let running = running().migrate(20, 0, 0, 1);
    let (time, task) = (at(20), TaskId(0));
    assert_eq!(
        violation(&running),
        Violation::NoMigration {
            time,
            task,
            cpu: CpuId(1)
        }
    );
    let nowhere = asleep().migrate(40, 0, 0, 0);
    let time = at(40);
    assert_eq!(
        violation(&nowhere),
        Violation::NoMigration {
            time,
            task,
            cpu: CpuId(0)
        }
    );
}

#[test]
fn a_cpu_does_not_switch_inside_an_interrupt_or_a_switch() {
    let (time, cpu) = (at(20), CpuId(0));
    let interrupt = running()
        .steal(18, 0, Some(0), 5)
        .switch(20, 0, Some((0, SLEEPING)), None);
    assert_eq!(
        violation(&interrupt),
        Violation::KernelBusy {
            time,
            cpu,
            due: Nanos::new(3)
        }
    );
    let switch = running()
        .overhead(30)
        .switch(20, 0, Some((0, SLEEPING)), None);
    assert_eq!(
        violation(&switch),
        Violation::KernelBusy {
            time,
            cpu,
            due: Nanos::new(20)
        }
    );
}

#[test]
fn the_first_violation_stays() {
    let both = running().wakeup(20, 0, 0).exit(30, 0, 0);
    assert_eq!(
        violation(&both),
        Violation::WokenAwake {
            time: at(20),
            task: TaskId(0)
        }
    );
    let error = checked(&both).check(&summary()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "at 0.000000020: task 0 is woken and does not sleep"
    );
}

#[test]
fn a_summary_whose_task_lost_or_gained_time_is_found() {
    for change in [-1_i64, 1] {
        let mut summary = summary();
        let wait = &mut summary.tasks[0].wait;
        *wait = Nanos::new(wait.get().strict_add_signed(change));
        let found = checked(&asleep()).check(&summary).unwrap_err();
        assert!(
            matches!(found, Violation::TaskTimes { task: 0, .. }),
            "{found}"
        );
    }
}

#[test]
fn a_summary_that_adds_up_but_books_time_wrongly_is_found() {
    let mut swapped = summary();
    let task = &mut swapped.tasks[0];
    (task.wait, task.sleep) = (task.sleep, task.wait);
    let found = checked(&asleep()).check(&swapped).unwrap_err();
    assert!(
        matches!(found, Violation::TaskTimes { task: 0, .. }),
        "{found}"
    );
}

#[test]
fn a_summary_whose_cpu_lost_time_or_switches_is_found() {
    let mut idle = summary();
    idle.cpus[1].idle = Nanos::new(99);
    let found = checked(&asleep()).check(&idle).unwrap_err();
    assert!(
        matches!(found, Violation::CpuTimes { cpu: 1, .. }),
        "{found}"
    );
    let mut switches = summary();
    switches.cpus[0].switches = 3;
    let found = checked(&asleep()).check(&switches).unwrap_err();
    assert!(
        matches!(found, Violation::CpuTimes { cpu: 0, .. }),
        "{found}"
    );
}

#[test]
fn a_summary_of_another_run_is_found() {
    let mut other = summary();
    other.end = at(101);
    let found = checked(&asleep()).check(&other).unwrap_err();
    assert!(matches!(found, Violation::Run { .. }), "{found}");
    let mut other = summary();
    other.tasks.clear();
    assert!(matches!(
        checked(&asleep()).check(&other),
        Err(Violation::Run { .. })
    ));
}

#[test]
fn a_machine_without_tasks_idles() {
    let mut check = Conservation::new();
    check.begin(&testing::header(2));
    check.finish(at(100));
    assert_eq!(check.violation(), None);
    assert_eq!(check.cpus[1].times().idle.get(), 100);
}
