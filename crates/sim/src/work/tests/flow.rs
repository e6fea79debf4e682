//! What one task does after another: control flow, children, changes.

use super::toy::{Toy, run};
use crate::work::*;

#[test]
fn a_process_wakes_its_waiting_parent_before_it_is_gone() {
    let toy = run("[task.p]\ndo = \"fork(c), waitpid(all), count(done)\"\n\
                   [task.c]\nkind = \"process\"\ndo = \"run(1ms)\"\n");
    let child: Vec<_> = (toy.actions.iter().filter(|(_, task, _)| *task == TaskId(1)))
        .map(|(_, _, action)| action.clone())
        .collect();
    let run = Action::Run(Nanos::from_millis(1));
    assert_eq!(
        child,
        [
            run,
            Action::Wake {
                task: TaskId(0),
                sync: true
            },
            Action::Exit
        ]
    );
    assert_eq!(toy.counted("done"), 1);
}

#[test]
fn waiting_for_any_takes_one_child_and_waiting_without_children_takes_none() {
    let toy = run("[task.p]\n\
        do = \"waitpid(any), fork(c), fork(c), waitpid(any), count(one), \
        waitpid(all), count(two)\"\n\
        [task.c]\ndo = \"sleep(1ms * self)\"\n");
    let times: Vec<_> = toy
        .events
        .iter()
        .map(|(time, _, _)| time.as_nanos() / 1_000)
        .collect();
    assert_eq!(times, [0, 1000]);
    assert!(toy.all_dead());
}

#[test]
fn a_pool_keeps_its_width_and_starts_its_total() {
    let toy = run("[task.make]\ndo = \"pool(job, 3, 10), count(done)\"\n\
                   [task.job]\nkind = \"process\"\ndo = \"sleep(1ms), count(jobs)\"\n");
    assert_eq!((toy.counted("jobs"), toy.counted("done")), (10, 1));
    let forks = toy.times(|a| matches!(a, Action::Fork(_)));
    let at: Vec<u64> = forks.into_iter().map(|(time, _)| time).collect();
    assert_eq!(at, [0, 0, 0, 1000, 1000, 1000, 2000, 2000, 2000, 3000]);
}

#[test]
fn a_pool_goes_on_when_a_fork_fails() {
    let text = "[workload]\nname = \"t\"\n[task.make]\ndo = \"pool(job, 2, 5), count(done)\"\n\
                [task.job]\ndo = \"sleep(1ms), count(jobs)\"\n";
    let mut toy = Toy::new(text, 1);
    toy.failing_forks = vec![0, 3];
    toy.run().unwrap();
    assert_eq!((toy.counted("jobs"), toy.counted("done")), (3, 1));
}

#[test]
fn control_flow_counts_as_written() {
    let toy = run("[task.t]\ndo = [\n\
        \"let x = 0, for(i, 4)[ for(j, i)[ x = x + 10 * i + j ] ], count(nested, x)\",\n\
        \"let n = 3, loop(n)[ n = n - 1, count(turns) ], count(rest, n)\",\n\
        \"while(x > 100)[ x = x - 7 ], count(left, x)\",\n\
        \"if(not x == 98 or 1 > 2)[ count(yes) ] else [ count(no) ]\"]\n");
    let sum: i64 = (0..4).flat_map(|i| (0..i).map(move |j| 10 * i + j)).sum();
    assert_eq!(toy.counted("nested"), sum.unsigned_abs());
    assert_eq!(
        (toy.counted("turns"), toy.counted("rest")),
        (3, 0),
        "n is evaluated once"
    );
    assert_eq!(
        toy.counted("left"),
        (sum - 7 * ((sum - 100) as u64).div_ceil(7) as i64) as u64
    );
    assert_eq!(toy.counted("yes") + toy.counted("no"), 1);
}

#[test]
fn choices_follow_their_weights() {
    let toy = run("[task.t]\ndo = \"loop(4000)[ choose(3: count(a), 1: [count(b)], 0: exit) ]\"\n");
    let (a, b) = (toy.counted("a"), toy.counted("b"));
    assert_eq!(a + b, 4000);
    // Five standard deviations around 3000.
    assert!((2863..=3137).contains(&a), "{a}");
}

#[test]
fn changes_reach_the_machine_with_their_target() {
    let toy = run("[task.a]\ndo = \"sleep(1ms)\"\n[task.b]\n\
        do = \"setnice(a, -3), setaffinity(self, {1}), setaffinity(a, all), setpolicy(a, rr:7), \
        sleep(2ms), setnice(a, 5)\"\n");
    let of_b: Vec<_> = (toy.actions.iter().filter(|(_, task, _)| *task == TaskId(1)))
        .map(|(_, _, action)| action.clone())
        .take(4)
        .collect();
    let (a, b) = (TaskId(0), TaskId(1));
    let want = [
        Action::SetNice { task: a, nice: -3 },
        Action::SetAffinity {
            task: b,
            cpus: CpuSet::parse("1").unwrap(),
        },
        Action::SetAffinity {
            task: a,
            cpus: CpuSet::all(2),
        },
        Action::SetPolicy {
            task: a,
            policy: workload::SchedPolicy::RoundRobin(7),
        },
    ];
    assert_eq!(of_b, want);
    assert_eq!(
        toy.times(|action| matches!(action, Action::SetNice { .. }))
            .len(),
        1
    );
}

#[test]
fn what_a_task_draws_does_not_depend_on_the_others() {
    let draws = |others: &str| {
        let toy = run(&format!(
            "[task.t]\ndo = \"loop(20)[ run(exp(1ms)) ]\"\n[task.u]\ndo = \"{others}\"\n"
        ));
        let of_t = toy
            .actions
            .into_iter()
            .filter(|(_, task, _)| *task == TaskId(0));
        of_t.map(|(_, _, action)| action).collect::<Vec<_>>()
    };
    assert_eq!(draws("exit"), draws("loop(30)[ run(exp(2ms)), yield ]"));
}
