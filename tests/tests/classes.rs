//! What takes the CPU from a policy's tasks: interrupts and the classes above.

use std::sync::Arc;

use model::{Change, EventKind, Nanos, PolicySpec, SimTime, What};
use runslice_tests::collect::{Collector, Kept};
use runslice_tests::models::observe::observe_at;
use runslice_tests::policy;
use workload::{RunSpec, Workload};

fn load(cpus: u16, tasks: &str) -> Workload {
    let text = format!(
        "[workload]\nname = \"classes\"\nstop = \"duration:500ms\"\n[machine]\ncpus = {cpus}\n\
         hz = 1000\n{tasks}"
    );
    Workload::parse(&text, "classes.toml").unwrap()
}

/// Who runs on each CPU when, in milliseconds, under the policy `fifo` with slices of 20 ms.
fn turns(cpus: u16, attach_after: Nanos, tasks: &str) -> Vec<Vec<(String, f64, f64)>> {
    turns_of(load(cpus, tasks), attach_after)
}

/// A run of `workload` on its machine, under the policy `name`.
fn spec_of(name: &str, workload: Workload) -> RunSpec {
    RunSpec {
        policy: PolicySpec::of_object(name, policy::object(name).unwrap()),
        machine: workload.machine.clone(),
        seed: 1,
        workload: Arc::new(workload),
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: None,
    }
}

fn turns_of(workload: Workload, attach_after: Nanos) -> Vec<Vec<(String, f64, f64)>> {
    let cpus = workload.machine.cpus;
    let spec = RunSpec {
        attach_after,
        ..spec_of("fifo", workload)
    };
    let mut collect = Collector::default();
    let end = sim::run(&spec, &mut collect).unwrap().end;
    let ms = |time: SimTime| time.as_nanos() as f64 / 1e6;
    (0..cpus)
        .map(|cpu| collect.turns(cpu, end))
        .map(|turns| {
            turns
                .into_iter()
                .map(|(name, a, b)| (name, ms(a), ms(b)))
                .collect()
        })
        .collect()
}

fn turn(name: &str, from: f64, to: f64) -> (String, f64, f64) {
    (name.to_owned(), from, to)
}

#[test]
fn interrupt_time_is_not_charged_to_slices_and_delays_the_work() {
    let tasks = "[irq.I]\nonce = true\nstart = \"5ms\"\ncost = \"2ms\"\n\
                 [task.A]\ndo = \"run(30ms)\"\n[task.B]\ndo = \"run(1ms)\"\n";
    // A's 20 ms of slice last until 22 ms, and its 30 ms of work end at 33 ms, not before.
    let want = [
        turn("A", 0.0, 22.0),
        turn("B", 22.0, 23.0),
        turn("A", 23.0, 33.0),
    ];
    assert_eq!(turns(1, Nanos::ZERO, tasks)[0], want);
}

#[test]
fn as_played_an_interrupt_is_a_thread_that_preempts_and_has_its_own_time() {
    let tasks = "[chan.c]\nkind = \"pipe\"\n[irq.I]\nevery = \"400ms\"\nstart = \"5ms\"\n\
                 cost = \"2ms\"\nsend = \"c\"\n[task.A]\ndo = \"run(30ms)\"\n\
                 [task.B]\ndo = [\"recv(c)\", \"run(1ms)\"]\n";
    // B waits from the message on, as after an interrupt; A keeps what is left of its slice. The
    // thread, which begins to wait at once, keeps no run going that its load has left.
    let want = [
        turn("irq/I", 0.0, 0.0),
        turn("A", 0.0, 5.0),
        turn("irq/I", 5.0, 7.0),
        turn("A", 7.0, 22.0),
        turn("B", 22.0, 23.0),
        turn("A", 23.0, 33.0),
    ];
    assert_eq!(
        turns_of(load(1, tasks).as_played(Nanos::ZERO), Nanos::ZERO)[0],
        want
    );
}

#[test]
fn a_load_without_interrupts_is_played_as_it_is() {
    let load = load(2, "[task.A]\ndo = \"run(30ms)\"\n");
    assert_eq!(load.as_played(Nanos::ZERO), load);
}

/// The run as it is played, and when it begins.
fn played(spec: &RunSpec, before: Nanos) -> (RunSpec, Nanos) {
    let played = spec.as_played(before);
    let begin = played.workload.begin.map_or(Nanos::ZERO, |begin| begin.at);
    (played, begin)
}

#[test]
fn a_play_that_begins_after_its_tasks_have_slept_is_the_same_run_later() {
    // Each has a CPU of its own, so that nobody has to wait for a turn in which it begins to sleep.
    let tasks = "[chan.c]\nkind = \"queue\"\n\
                 [irq.I]\nevery = \"40ms\"\nstart = \"5ms\"\ncost = \"1ms\"\nsend = \"c\"\n\
                 [hotplug.H]\ncpu = 4\noffline = \"120ms\"\nonline = \"190ms\"\n\
                 [task.hog]\ncpus = \"0\"\ndo = \"loop(inf)[ run(29ms), sleep(1ms) ]\"\n\
                 [task.woken]\ncpus = \"1\"\ndo = \"loop(inf)[ recv(c), run(3ms) ]\"\n\
                 [task.late]\ncpus = \"2\"\nstart = \"33ms\"\n\
                 do = \"loop(inf)[ run(2ms), timer(9ms) ]\"\n\
                 [task.sure]\ncpus = \"3\"\ndo = [\"sleepuntil(77ms)\", \"run(11ms)\"]\n\
                 [task.far]\ncpus = \"4-5\"\ncount = 2\ndo = \"run(inf)\"\n";
    let turns_after = |before: Nanos| {
        let workload = load(6, tasks);
        let spec = spec_of("fifo", workload);
        let mut collect = Collector::default();
        let (played, begin) = played(&spec, before);
        let mut later = traces::Later::new(begin, &mut collect);
        sim::run(&played, &mut later).unwrap();
        let end = SimTime::from_nanos(500_000_000);
        [0, 1, 2, 3, 4, 5].map(|cpu| collect.turns(cpu, end))
    };
    let (new, slept) = (
        turns_after(Nanos::ZERO),
        turns_after(Nanos::from_millis(300)),
    );
    // Who lets them begin takes no time; those who are forked take none before they sleep.
    let of_load = |turns: &[(String, SimTime, SimTime)]| -> Vec<(String, SimTime, SimTime)> {
        let real = turns
            .iter()
            .filter(|(name, from, to)| from < to && name != "play");
        real.cloned().collect()
    };
    for (new, slept) in new.iter().zip(&slept) {
        assert_eq!(of_load(slept), of_load(new));
    }
    let all: Vec<_> = new.iter().flat_map(|turns| of_load(turns)).collect();
    for (task, ms) in [("late", 33), ("sure", 77)] {
        let begins = SimTime::from_nanos(ms * 1_000_000);
        let is_there = all
            .iter()
            .any(|(name, from, _)| (name == task) && (*from == begins));
        assert!(is_there, "{task}: {all:?}");
    }
    assert!(all.len() > 100, "{all:?}");
}

/// Changes of a task's nice value and affinity: which, new value.
fn changes_of(task: u32, kept: &Kept) -> Vec<Change> {
    let its = kept.events.iter().filter(|event| event.task.0 == task);
    its.map(|event| match event.what() {
        What::Change(change) => change,
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn tasks_that_wait_for_a_play_to_begin_take_turns_of_the_cpus_and_may_leave_them() {
    // Under goodness a task wakes where it slept.
    let tasks = "[task.a]\ncount = 3\ndo = \"loop(inf)[ run(2ms), sleep(3ms) ]\"\n";
    let before = Nanos::from_millis(50);
    let workload = load(3, tasks);
    let spec = spec_of("goodness", workload);
    let mut collect = Collector::default();
    let (played, begin) = played(&spec, before);
    let mut later = traces::Later::new(begin, &mut collect);
    sim::run(&played, &mut later).unwrap();
    let end = SimTime::from_nanos(100_000_000);
    for cpu in 0..3 {
        let turns = collect.turns(cpu, end);
        let real = |(name, from, to): &&(String, SimTime, SimTime)| from < to && name != "play";
        let (name, from, _) = turns.iter().find(real).unwrap();
        let want = format!("a.{cpu}");
        assert_eq!((&**name, *from), (&*want, SimTime::ZERO));
    }
    // Each may use one CPU alone, and then all three again.
    let mut changes = Kept::of(EventKind::Change);
    sim::run(&played, &mut changes).unwrap();
    for task in 0..3 {
        let of_it = changes_of(task, &changes);
        assert_eq!(of_it, [Change::Affinity(1), Change::Affinity(3)]);
    }
}

/// Under O(1) a task that has slept is a better one, and the policy of a play comes when its tasks
/// sleep already: who has waited for long begins as a new task does.
#[test]
fn a_policy_knows_of_no_sleep_before_a_play_begins() {
    let tasks = "[task.a]\ndo = \"run(90ms)\"\n";
    let reports = |before: Nanos| {
        let spec = spec_of("o1", load(1, tasks));
        let mut reports = Kept::of(EventKind::Report);
        sim::run(&played(&spec, before).0, &mut reports).unwrap();
        let of_it = reports.events.iter().filter(|event| event.task.0 == 0);
        let of_it: Vec<(u64, u64)> = of_it
            .map(|event| (event.words().a, event.words().b))
            .collect();
        of_it
    };
    let new = reports(Nanos::ZERO);
    assert!(!new.is_empty());
    assert_eq!(reports(Nanos::from_millis(900)), new);
}

/// Under O(1) a child of nice 19 began with its parent's priority on a kernel and kept it for its
/// whole turn here, so that its parent got on.
#[test]
fn as_played_a_child_is_what_its_parent_is_until_it_changes_itself() {
    let tasks = "[task.parent]\nnice = 3\ndo = [\"fork(child)\", \"waitpid(all)\"]\n\
                 [task.child]\nnice = 19\ncpus = \"1\"\ndo = \"run(1ms)\"\n";
    let before = Nanos::from_millis(50);
    let workload = load(2, tasks);
    let spec = spec_of("fifo", workload);
    let mut changes = Kept::of(EventKind::Change);
    sim::run(&spec, &mut changes).unwrap();
    assert_eq!(changes.events, []);
    let (played, begin) = played(&spec, before);
    let mut later = traces::Later::new(begin, &mut changes);
    sim::run(&played, &mut later).unwrap();
    // There are the parent, who lets it begin, and the child.
    let want = [Change::Nice(19), Change::Affinity(1)];
    assert_eq!(changes_of(2, &changes), want);
}

#[test]
fn an_interrupt_on_an_idle_cpu_delays_the_task_that_it_wakes() {
    let tasks = "[chan.c]\nkind = \"pipe\"\n[irq.I]\nonce = true\nstart = \"5ms\"\n\
                 cost = \"2ms\"\nsend = \"c\"\n[task.A]\ndo = [\"recv(c)\", \"run(1ms)\"]\n";
    assert_eq!(
        turns(1, Nanos::ZERO, tasks)[0].last(),
        Some(&turn("A", 7.0, 8.0))
    );
}

#[test]
fn fifo_tasks_of_one_priority_do_not_share_and_round_robin_tasks_do() {
    let tasks = |policy: &str| {
        format!(
            "[task.A]\npolicy = \"{policy}\"\ndo = \"run(150ms)\"\n\
                 [task.B]\npolicy = \"{policy}\"\ndo = \"run(150ms)\"\n"
        )
    };
    let fifo = [turn("A", 0.0, 150.0), turn("B", 150.0, 300.0)];
    assert_eq!(turns(1, Nanos::ZERO, &tasks("fifo:10"))[0], fifo);
    let shared = [
        turn("A", 0.0, 100.0),
        turn("B", 100.0, 200.0),
        turn("A", 200.0, 250.0),
        turn("B", 250.0, 300.0),
    ];
    assert_eq!(turns(1, Nanos::ZERO, &tasks("rr:10"))[0], shared);
}

#[test]
fn the_more_urgent_real_time_task_takes_the_cpu_and_gives_it_back() {
    let tasks = "[task.low]\npolicy = \"fifo:10\"\ndo = \"run(10ms)\"\n\
                 [task.high]\npolicy = \"fifo:20\"\nstart = \"3ms\"\ndo = \"run(2ms)\"\n";
    let want = [
        turn("low", 0.0, 3.0),
        turn("high", 3.0, 5.0),
        turn("low", 5.0, 12.0),
    ];
    assert_eq!(turns(1, Nanos::ZERO, tasks)[0], want);
}

#[test]
fn a_real_time_task_goes_where_the_least_urgent_work_is() {
    let tasks = "[task.busy]\ncpus = \"0\"\npolicy = \"fifo:50\"\ndo = \"run(20ms)\"\n\
                 [task.other]\ncpus = \"1\"\npolicy = \"fifo:20\"\ndo = \"run(20ms)\"\n\
                 [task.third]\npolicy = \"fifo:30\"\nstart = \"5ms\"\ndo = \"run(1ms)\"\n";
    let cpus = turns(2, Nanos::ZERO, tasks);
    assert_eq!(cpus[0], [turn("busy", 0.0, 20.0)]);
    let want = [
        turn("other", 0.0, 5.0),
        turn("third", 5.0, 6.0),
        turn("other", 6.0, 21.0),
    ];
    assert_eq!(cpus[1], want);
}

#[test]
fn fair_tasks_take_turns_until_the_policy_is_attached() {
    let tasks = "[task.A]\ndo = \"run(30ms)\"\n[task.B]\ndo = \"run(30ms)\"\n";
    let turns = &turns(1, Nanos::from_millis(20), tasks)[0];
    let longest = |from: f64, to: f64| {
        let inside = turns.iter().filter(|turn| turn.1 >= from && turn.1 < to);
        inside.map(|turn| turn.2 - turn.1).fold(0.0, f64::max)
    };
    assert!(longest(0.0, 15.0) <= 3.0, "{turns:?}");
    assert!(longest(20.0, 60.0) >= 19.0, "{turns:?}");
}

/// How long a task waits that a real-time task wakes after so many milliseconds, on one CPU that it
/// shares with `others`, from the end of the real-time task's work on.
fn waits(policy: &str, after: u64, others: &str) -> Option<Nanos> {
    let tables = format!(
        "[chan.c]\nkind = \"queue\"\n\
         [task.S]\nnice = -10\ndo = \"recv(c), run(1ms)\"\n{others}\
         [task.R]\npolicy = \"fifo:1\"\ndo = \"sleep({after}ms), send(c), run(10us)\"\n"
    );
    let seen = observe_at(250, policy, 1, after + 100, &tables);
    let from = SimTime::ZERO + Nanos::from_micros(1000 * after + 10);
    let mut turns = seen.turns.iter();
    let turn = turns.find(|turn| turn.task == "S" && turn.start >= from)?;
    Some(turn.start.since(from))
}

/// A policy may have made its choice when a real-time task takes the CPU. The chosen task then
/// begins without another choice, and must look for those who came meanwhile.
#[test]
fn who_comes_while_a_real_time_task_keeps_the_chosen_one_waiting_goes_before_it() {
    // The choice of the other hog, because a slice has ended when the real-time task comes.
    let hogs = "[task.H]\ncount = 2\nnice = 5\ndo = \"run(inf)\"\n";
    for policy in ["staircase", "staircase5"] {
        for after in 1..=40 {
            assert_eq!(
                waits(policy, after, hogs),
                Some(Nanos::ZERO),
                "{policy}, {after} ms"
            );
        }
    }
    // The choice of a task that wakes in the same moment and takes the CPU from the hog.
    let woken = [
        "goodness",
        "elsc",
        "o1",
        "staircase",
        "staircase5",
        "cfs",
        "eevdf",
    ];
    for policy in woken {
        for after in 1..=40 {
            let woken = format!(
                "[task.W]\ndo = \"sleep({after}ms), run(50ms)\"\n\
                 [task.H]\nnice = 5\ndo = \"run(inf)\"\n"
            );
            assert_eq!(
                waits(policy, after, &woken),
                Some(Nanos::ZERO),
                "{policy}, {after} ms"
            );
        }
    }
    // mlfq knows no nice values: W wakes in queue 1, the hog is in queue 5 by then.
    let sunk = "[task.W]\ndo = \"run(45ms), sleep(255ms), run(50ms)\"\n\
                [task.H]\nstart = \"100ms\"\ndo = \"run(inf)\"\n";
    assert_eq!(waits("mlfq", 300, sunk), Some(Nanos::ZERO));
}
