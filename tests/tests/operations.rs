//! What operations of a workload take on the simulated machine while others have its CPU.

use model::{EventKind, ExitKind, Nanos, SYNC_BIT, SimTime};
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;

/// From a task's first turn on the CPU to its exit, in microseconds; one for each of `count` tasks
/// that do `operations`. They take turns of 1 ms on one CPU.
fn lengths(count: u32, operations: &str) -> Vec<u64> {
    let workload = format!("[task.t]\ncount = {count}\ndo = \"{operations}\"\n");
    let run = Run {
        set: &[("slice_ns", "1000000")],
        ..Run::new("fifo", &workload)
    };
    let (collector, _) = run.execute();
    let end = SimTime::ZERO + Nanos::from_secs(10);
    let turns = collector.turns(0, end);
    let length = |name: &String| {
        let turn = turns.iter().find(|(who, ..)| who == name);
        let (_, begin, _) = turn.expect("each task runs");
        collector.exit_of(name).since(*begin).get() / 1_000
    };
    let tasks = collector.names.iter();
    let tasks = tasks.filter(|name| name.starts_with('t'));
    tasks.map(length).collect()
}

#[test]
fn a_poller_that_is_preempted_ends_by_the_clock_and_who_computes_makes_up_for_it() {
    let poll = "poll(10500us, 100us)";
    assert_eq!(lengths(1, poll), [10_500]);
    assert_eq!(lengths(2, poll), [10_500, 10_500]);
    let run = "run(10500us)";
    assert_eq!(lengths(1, run), [10_500]);
    // The second begins a turn later, and ends when both have had their time: after 21 ms.
    assert_eq!(lengths(2, run), [20_500, 20_000]);
}

#[test]
fn an_affinity_changes_nothing_for_a_task_that_may_not_migrate() {
    let workload = "\
        [task.t]\nkind = \"kernel\"\ncpus = \"1\"\nmigration_disabled = true\n\
        do = \"loop(inf)[ run(17us), sleep(exp(500us)) ]\"\n\
        [task.other]\n\
        do = \"loop(inf)[ sleep(10ms), setaffinity(t[0], {0}), sleep(10ms), \
        setaffinity(t[0], all) ]\"\n";
    let run = Run {
        cpus: 2,
        until: Nanos::from_millis(100),
        ..Run::new("fifo", workload)
    };
    let (collector, summary) = run.execute();
    let turns = collector.turns(1, SimTime::ZERO + Nanos::from_millis(100));
    assert!(turns.iter().filter(|(who, ..)| who == "t").count() > 50);
    let is_told = |note: &String| note.contains("an affinity of t") && note.contains("is left out");
    assert!(summary.notes.iter().any(is_told), "{:?}", summary.notes);
}

#[test]
fn of_two_affinities_at_once_the_second_says_where_a_running_task_goes() {
    let workload = "[task.t]\ncpus = \"2\"\ndo = \"run(inf)\"\n\
        [task.mover]\ncpus = \"0\"\n\
        do = \"sleep(10ms), setaffinity(t, {1}), setaffinity(t, {0}), sleep(10ms), \
        setaffinity(t, {1}), setaffinity(t, all)\"\n";
    let run = Run {
        cpus: 3,
        until: Nanos::from_millis(40),
        ..Run::new("fifo", workload)
    };
    let (collector, _) = run.execute();
    let turns = |cpu| {
        let turns = collector.turns(cpu, SimTime::ZERO + Nanos::from_millis(40));
        let turns = turns.iter().filter(|(who, ..)| who == "t");
        turns
            .map(|(_, begin, _)| begin.since(SimTime::ZERO).get() / 1_000_000)
            .collect::<Vec<_>>()
    };
    assert_eq!(turns(1), [0; 0]);
    assert_eq!((turns(2).first(), turns(0).first()), (Some(&0), Some(&10)));
    assert!(turns(2).iter().all(|&begin| begin < 10));
}

#[test]
fn who_wakes_is_named_with_its_flag_and_who_is_interrupted_is_not() {
    let workload = "\
        [chan.pipe]\nkind = \"pipe\"\n[chan.queue]\nkind = \"queue\"\n\
        [task.piped]\nnice = -5\ndo = \"loop(inf)[ recv(pipe) ]\"\n\
        [task.queued]\nnice = -5\ndo = \"loop(inf)[ recv(queue) ]\"\n\
        [task.clocked]\ndo = \"loop(inf)[ sleep(3ms), run(10us) ]\"\n\
        [task.served]\ndo = \"loop(inf)[ recv(outside) ]\"\n[chan.outside]\nkind = \"unix\"\n\
        [irq.device]\nevery = \"7ms\"\nstart = \"7ms\"\nsend = \"outside\"\n\
        [task.busy]\ndo = \"loop(inf)[ run(2ms), send(pipe), run(2ms), send(queue) ]\"\n";
    let run = Run {
        set: &[("slice_ns", "1000000")],
        until: Nanos::from_millis(200),
        ..Run::new("fifo", workload)
    };
    let mut taker = Taker::default();
    let summary = run.feed(&mut taker);
    assert_eq!(summary.exit.kind, ExitKind::Unreg);
    let groups: Vec<_> = taker
        .events
        .iter()
        .filter(|it| it.kind == EventKind::New)
        .collect();
    let group = |task: u32| {
        groups
            .get(task as usize)
            .map(|event| event.words().a as u32)
    };
    let told = |target| -> Vec<_> {
        let mut told: Vec<_> = taker
            .events
            .iter()
            .filter(|it| it.kind == EventKind::Wakeup && group(it.task.0) == Some(target))
            // All begin at once, and nobody makes them.
            .filter(|it| it.time > SimTime::ZERO)
            .map(|it| (group(it.words().a as u32), it.words().a >> SYNC_BIT))
            .collect();
        assert!(told.len() > 10, "{target}: {told:?}");
        told.dedup();
        told
    };
    let [piped, queued, clocked, served, busy] = [0, 1, 2, 3, 4];
    assert_eq!(told(piped), [(Some(busy), 1)]);
    assert_eq!(told(queued), [(Some(busy), 0)]);
    // `busy` has the CPU nearly always.
    assert_eq!(told(clocked), [(None, 0)]);
    assert_eq!(told(served), [(None, 0)]);
}
