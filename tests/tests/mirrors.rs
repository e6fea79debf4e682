//! What programs see of a task is true when they look, also where only they make it be kept.

use model::Nanos;
use runslice_tests::run::Run;

/// Two turns of 5 ms on the second of two CPUs, of a slice that never ends. The time charged is
/// there when the turn stops; the task sleeps then (state 1), and executes the callback itself,
/// which pins it. A timer enqueues it, whose callback nobody executes, while it is being woken
/// (`TASK_WAKING`, 512).
#[test]
fn every_field_that_a_program_names_is_up_to_date() {
    let run = Run {
        cpus: 2,
        until: Nanos::from_millis(30),
        ..Run::new(
            "mirrors",
            "[task.t]\ncpus = \"1\"\ndo = \"loop(2)[ run(5ms), sleep(5ms) ]\"",
        )
    };
    let (_, summary) = run.execute();
    let turn = |what: &str, ran: u64, state: u32, pinned: u32| {
        format!(
            "{what}: ran {ran}, user {ran}\n{what}: state {state}, pinned {pinned}\n\
             {what}: on 1, woken for 1\n"
        )
    };
    let ms = |ms: u64| Nanos::from_millis(ms).get();
    let wanted = [
        turn("in", 0, 512, 0),
        turn("out", ms(5), 1, 1),
        turn("in", ms(5), 512, 0),
        turn("out", ms(10), 1, 1),
        turn("in", ms(10), 512, 0),
    ];
    let wanted: String = wanted.concat();
    let printed = &summary.printed;
    assert!(
        printed.starts_with(&wanted),
        "{printed}\ninstead of\n{wanted}"
    );
}

/// What the policy `family` prints of a load on one CPU: the pid of each turn's task, and those of
/// its parent and of its process's first thread. The first task has pid 100. Whose parent is no
/// task of the load is its own.
fn families(load: &str) -> Vec<[u32; 3]> {
    let run = Run {
        cpus: 1,
        until: Nanos::from_millis(200),
        ..Run::new("family", load)
    };
    let (_, summary) = run.execute();
    let number = |word: &str| {
        word.parse()
            .unwrap_or_else(|_| panic!("{word} is no number"))
    };
    let line = |line: &str| {
        let words: Vec<&str> = line
            .split([':', ',', ' '])
            .filter(|it| !it.is_empty())
            .collect();
        [number(words[0]), number(words[2]), number(words[4])]
    };
    summary.printed.lines().map(line).collect()
}

/// A thread is no child of the thread that makes it, but of its process's parent, and so is a
/// thread that it makes; a process is a child of the thread that forks it. A kernel (6.18.15 and
/// 7.2.12) was asked for both when counters of ended threads were missing at their makers.
#[test]
fn a_thread_is_a_child_of_its_makers_parent() {
    let seen = families(
        "[task.t]\nkind = \"process\"\ndo = \"fork(process), run(90ms)\"\n\
         [task.process]\nkind = \"process\"\ndo = \"fork(thread), run(30ms)\"\n\
         [task.thread]\ndo = \"fork(second), run(1ms)\"\n\
         [task.second]\ndo = \"run(1ms)\"",
    );
    for of in [
        [100, 100, 100],
        [101, 100, 101],
        [102, 100, 101],
        [103, 100, 101],
    ] {
        assert!(seen.contains(&of), "{of:?} not in {seen:?}");
        assert!(
            seen.iter().all(|it| it[0] != of[0] || *it == of),
            "{seen:?}"
        );
    }
}

/// Children whose parent ends are those of the process's first thread, or of the machine's first
/// process, of which nobody is a child here.
#[test]
fn a_child_whose_parent_has_ended_gets_another() {
    let seen = families(
        "[task.t]\nkind = \"process\"\ndo = \"fork(maker), loop(20)[ run(1ms), yield ]\"\n\
         [task.maker]\ndo = \"fork(orphan), loop(5)[ run(1ms), yield ]\"\n\
         [task.orphan]\nkind = \"process\"\n\
         do = \"fork(grandchild), loop(40)[ run(1ms), yield ]\"\n\
         [task.grandchild]\nkind = \"process\"\ndo = \"loop(60)[ run(1ms), yield ]\"",
    );
    let parents = |pid| {
        let mut parents: Vec<u32> = seen
            .iter()
            .filter(|it| it[0] == pid)
            .map(|it| it[1])
            .collect();
        parents.dedup();
        parents
    };
    // Pid 101 is the maker, a thread of 100; then 100 ends, too.
    assert_eq!(parents(102), [101, 100, 102], "{seen:?}");
    assert_eq!(parents(103), [102, 103], "{seen:?}");
}
