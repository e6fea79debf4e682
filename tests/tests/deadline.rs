//! Deadline tasks: the rule of the constant bandwidth server, by hand.

use model::{EventKind, Nanos, Op};
use runslice_tests::call::Who;
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use runslice_tests::simulate::on_both;
use workload::RunSpec;

/// Who runs on each CPU when, in milliseconds, under the policy `fifo` with a tick of 1 ms.
fn turns(cpus: u16, tasks: &str) -> Vec<Vec<(String, f64, f64)>> {
    let run = Run {
        cpus,
        until: Nanos::from_millis(200),
        ..Run::new("fifo", tasks)
    };
    let mut collect = Collector::default();
    let end = on_both(&run.spec(), &mut collect)
        .unwrap_or_else(|e| panic!("{e}"))
        .end;
    let ms = |time: model::SimTime| time.as_nanos() as f64 / 1e6;
    let of = |cpu| collect.turns(cpu, end).into_iter();
    (0..cpus)
        .map(|cpu| of(cpu).map(|(name, a, b)| (name, ms(a), ms(b))).collect())
        .collect()
}

fn turn(name: &str, from: f64, to: f64) -> (String, f64, f64) {
    (name.to_owned(), from, to)
}

fn of(turns: &[(String, f64, f64)], name: &str) -> Vec<(f64, f64)> {
    let own = turns.iter().filter(|turn| turn.0 == name);
    own.map(|turn| (turn.1, turn.2)).collect()
}

#[test]
fn a_budget_is_had_in_each_period_above_real_time_tasks() {
    let tasks = "[task.d]\npolicy = \"deadline:2ms/10ms\"\ndo = \"run(5ms)\"\n\
                 [task.rt]\npolicy = \"fifo:99\"\ndo = \"run(20ms)\"\n";
    let turns = turns(1, tasks);
    assert_eq!(of(&turns[0], "d"), [(0.0, 2.0), (10.0, 12.0), (20.0, 21.0)]);
    assert_eq!(
        of(&turns[0], "rt"),
        [(2.0, 10.0), (12.0, 20.0), (21.0, 25.0)]
    );
}

#[test]
fn a_budget_ends_at_a_tick_and_what_was_too_much_is_paid_back() {
    // It begins at 0.5 ms; its 2 ms are used up at 2.5 ms, seen at 3 ms. The next period gives
    // 1.5 ms, from 10.5 ms to 12 ms.
    let tasks = "[task.d]\npolicy = \"deadline:2ms/10ms\"\nstart = \"500us\"\ndo = \"run(9ms)\"\n";
    let turns = turns(1, tasks);
    assert_eq!(of(&turns[0], "d")[..2], [(0.5, 3.0), (10.5, 12.0)]);
}

#[test]
fn the_earliest_deadline_comes_first() {
    let tasks = "[task.late]\npolicy = \"deadline:10ms/100ms\"\ndo = \"run(5ms)\"\n\
                 [task.soon]\npolicy = \"deadline:10ms/40ms\"\nstart = \"2ms\"\ndo = \"run(3ms)\"\n\
                 [task.later]\npolicy = \"deadline:10ms/100ms\"\nstart = \"3ms\"\n\
                 do = \"run(1ms)\"\n";
    let turns = turns(1, tasks);
    let want = [
        turn("late", 0.0, 2.0),
        turn("soon", 2.0, 5.0),
        turn("late", 5.0, 8.0),
        turn("later", 8.0, 9.0),
    ];
    assert_eq!(turns[0], want);
}

#[test]
fn yield_gives_the_rest_of_the_budget_up() {
    let tasks = "[task.d]\npolicy = \"deadline:5ms/10ms\"\n\
                 do = \"run(1ms), yield, run(6ms), yield, run(1ms)\"\n";
    let turns = turns(1, tasks);
    // 5 ms of the second period, 1 ms of the third, and the rest of that one is given up again.
    let want = [(0.0, 1.0), (10.0, 15.0), (20.0, 21.0), (30.0, 31.0)];
    assert_eq!(of(&turns[0], "d"), want);
}

#[test]
fn a_short_sleep_brings_no_new_budget_and_a_long_one_does() {
    // 4 of 10 ms. After 3 ms and a sleep of 1 ms, the 1 ms that is left lasts until 5 ms.
    let tasks = "[task.d]\npolicy = \"deadline:4ms/10ms\"\n\
                 do = \"run(3ms), sleep(1ms), run(3ms), sleep(20ms), run(4ms)\"\n";
    let turns = turns(1, tasks);
    let want = [(0.0, 3.0), (4.0, 5.0), (10.0, 12.0), (32.0, 36.0)];
    assert_eq!(of(&turns[0], "d"), want);
}

#[test]
fn a_constrained_task_that_comes_after_its_deadline_waits_for_its_period() {
    // 2 ms within 5 ms of each 20 ms: back at 8 ms, it has to wait until 20 ms.
    let tasks = "[task.d]\npolicy = \"deadline:2ms/5ms/20ms\"\n\
                 do = \"run(1ms), sleep(7ms), run(2ms)\"\n";
    let turns = turns(1, tasks);
    assert_eq!(of(&turns[0], "d"), [(0.0, 1.0), (20.0, 22.0)]);
}

#[test]
fn the_most_urgent_run_wherever_there_is_a_cpu() {
    let task = |name: &str, period: u32, start: u32| {
        format!(
            "[task.{name}]\npolicy = \"deadline:20ms/{period}ms\"\nstart = \"{start}ms\"\n\
             do = \"run(6ms)\"\n"
        )
    };
    let tasks = task("a", 60, 0) + &task("b", 100, 0) + &task("c", 50, 2);
    let turns = turns(2, &tasks);
    let with = |name: &str| {
        let mut found = [of(&turns[0], name), of(&turns[1], name)].concat();
        found.sort_by(|x, y| x.0.total_cmp(&y.0));
        found
    };
    // c, due at 52 ms, takes the CPU of a, due at 60 ms, which takes the one of b, due at 100 ms.
    assert_eq!(with("c"), [(2.0, 8.0)]);
    assert_eq!(with("a"), [(0.0, 2.0), (2.0, 6.0)]);
    assert_eq!(with("b"), [(0.0, 2.0), (6.0, 10.0)]);
}

#[test]
fn a_policy_hears_why_it_loses_the_cpu() {
    let tasks = "[task.A]\ndo = \"run(20ms)\"\n\
                 [task.d]\npolicy = \"deadline:1ms/9ms\"\nstart = \"3ms\"\ndo = \"run(1ms)\"\n";
    let run = Run {
        until: Nanos::from_millis(50),
        ..Run::new("probe", tasks)
    };
    let (collect, _) = run.execute();
    let release = collect.calls.iter().find(|call| call.op == Op::CpuRelease);
    // SCX_CPU_PREEMPT_DL
    assert_eq!(release.expect("the CPU was lost").b, 1);
    assert!(
        collect
            .calls
            .iter()
            .all(|call| call.op != Op::Enqueue || call.task != Who::Task("d".into()))
    );
}

#[test]
fn a_task_that_changes_its_policy_leaves_and_enters_the_policys_class() {
    let tasks = "[task.t]\ndo = \"run(1ms), setpolicy(self, deadline:1ms/10ms), run(3ms), \
                 setpolicy(self, normal), run(1ms)\"\n";
    let (collect, summary) = Run::new("probe", tasks).execute();
    let class: Vec<_> = (collect.calls.iter())
        .filter(|call| [Enable, Disable].contains(&call.op))
        .map(|call| call.op)
        .collect();
    use Op::{Disable, Enable};
    // The last one is the exit's.
    assert_eq!(class, [Enable, Disable, Enable, Disable]);
    // 1 ms as ever, then 1 ms in each of three periods, and 1 ms more.
    assert_eq!(summary.end.as_nanos(), 23_000_000);
}

fn refused(cpus: u16, tasks: &str) -> String {
    let run = Run {
        cpus,
        ..Run::new("fifo", tasks)
    };
    let spec: RunSpec = run.spec();
    match sim::run(&spec, &mut Collector::default()) {
        Err(error) => model::Advice::in_full(&error),
        Ok(summary) => panic!("it ran: {:?}", summary.exit),
    }
}

#[test]
fn more_than_the_kernel_admits_ends_the_run() {
    let tasks = |count: u32| {
        format!("[task.d]\ncount = {count}\npolicy = \"deadline:3ms/10ms\"\ndo = \"run(1ms)\"\n")
    };
    // 6 times 30 % is 90 % of each of two CPUs, and rounded down; 7 times is more.
    let _ = Run {
        cpus: 2,
        ..Run::new("fifo", &tasks(6))
    }
    .execute();
    let message = refused(2, &tasks(7));
    assert!(
        message.starts_with("test: d.6: a deadline task that needs 29 % of a CPU"),
        "{message}"
    );
    assert!(
        message.contains("179 % are taken, and the kernel answers EBUSY"),
        "{message}"
    );
}

#[test]
fn an_exited_deadline_task_makes_room() {
    let tasks = "[task.t]\ndo = \"pool(d, 1, 9)\"\n\
                 [task.d]\npolicy = \"deadline:5ms/10ms\"\ndo = \"run(1ms)\"\n";
    let (collect, _) = Run::new("fifo", tasks).execute();
    assert_eq!(collect.exits.len(), 10);
}

#[test]
fn a_deadline_task_cannot_be_bound() {
    let bound = "[task.t]\ncpus = \"1\"\ndo = \"run(1ms), setpolicy(self, deadline:1ms/9ms)\"\n";
    assert!(refused(2, bound).contains("the kernel answers EPERM"));
    let binds = "[task.t]\npolicy = \"deadline:1ms/9ms\"\ndo = \"setaffinity(self, {0})\"\n";
    assert!(refused(2, binds).contains("CPUs of a deadline task"));
}

#[test]
fn events_give_the_class_a_number_of_its_own() {
    let tasks = "[task.t]\ndo = \"run(1ms), setpolicy(self, deadline:1ms/10ms), run(1ms)\"\n";
    let mut taker = runslice_tests::two_machines::Taker::default();
    sim::run(&Run::new("fifo", tasks).spec(), &mut taker).unwrap();
    let change = taker
        .events
        .iter()
        .find(|event| event.kind == EventKind::Change);
    let change = change.expect("a change");
    let words = change.words();
    assert_eq!((words.a, words.b), (2, 5));
}
