//! Rules that a workload breaks while it runs.

use super::toy::Toy;
use crate::work::*;
use model::Advice as _;

/// The error that `tables` end in.
fn error(tables: &str) -> String {
    let mut toy = Toy::new(&format!("[workload]\nname = \"test\"\n{tables}"), 1);
    toy.run().expect_err("the workload breaks a rule").in_full()
}

#[test]
fn a_task_that_goes_round_without_time_passing_is_stopped() {
    for body in [
        "loop(inf)[ yield ]",
        "loop(inf)[ ]",
        "while(1)[ count(n) ]",
        "loop(inf)[ fork(c) ]",
    ] {
        let text = format!("[task.t]\ndo = \"{body}\"\n[task.c]\ncount = 0\ndo = \"exit\"\n");
        let message = error(&text);
        let expected = ["without any time passing", "more than 100000 tasks"];
        assert!(
            expected.iter().any(|part| message.contains(part)),
            "{body}: {message}"
        );
        assert!(message.starts_with("test.toml:4: t: "), "{message}");
    }
}

#[test]
fn a_chain_of_forks_that_takes_no_time_is_stopped() {
    let message = error("[task.t]\ncount = 1\ndo = \"fork(t), exit\"\n");
    assert!(
        message.contains("more than 1000000 tasks are created"),
        "{message}"
    );
}

#[test]
fn broken_rules_are_named_with_their_place() {
    let cases = [
        (
            "recv(c[2])",
            "test.toml:8: t: index 2 of `c` is outside 0..2",
        ),
        (
            "recv(c[0 - 1])",
            "test.toml:8: t: index -1 of `c` is outside 0..2",
        ),
        ("count(n, 1 / self)", "test.toml:8: t: division by zero"),
        (
            "unlock(l)",
            "test.toml:8: t: gives back a lock that it does not hold",
        ),
        (
            "lock(l), lock(l)",
            "test.toml:8: t: takes a lock that it holds",
        ),
        (
            "setnice(self, 20)",
            "test.toml:8: t: the nice value is 20; expected -20 to 19",
        ),
        (
            "setnice(t[1], 2)",
            "test.toml:8: t: index 1 of `t` is outside 0..1",
        ),
        (
            "span_end(s)",
            "test.toml:8: t: `s` ends without a `span_begin(s)` before it",
        ),
        (
            "pool(t, 0, 1)",
            "test.toml:8: t: the pool's width is 0; expected 1 to 9223372036854775807",
        ),
        (
            "send(c[0], 0)",
            "test.toml:8: t: the message's size is 0; expected 1 to 2147483647",
        ),
    ];
    for (body, want) in cases {
        let channel = "[chan.c]\nkind = \"queue\"\ncount = 2\n";
        let message = error(&format!(
            "[lock.l]\n{channel}[task.t]\ndo = \"{body}\"\ncount = 1\n"
        ));
        assert_eq!(message, want, "{body}");
    }
}

#[test]
fn what_the_machine_lacks_is_refused_before_the_run() {
    let refusal = |tables: &str| {
        let text = format!("[workload]\nname = \"t\"\n{tables}");
        let workload = Workload::parse(&text, "test.toml").unwrap();
        Work::new(Arc::new(workload), 4, 1)
            .err()
            .expect("the machine lacks it")
            .in_full()
    };
    let set = refusal("[task.t]\ndo = [\n\"run(1ms)\",\n\"setaffinity(self, {4-7})\"]\n");
    assert_eq!(
        set,
        "test.toml:6: t: no CPU of 4-7 exists; the machine has CPUs 0 to 3"
    );
    let born = refusal("[task.t]\ncpus = \"9\"\ndo = \"run(1ms)\"\n");
    assert_eq!(
        born,
        "test.toml:5: t: no CPU of 9 exists; the machine has CPUs 0 to 3"
    );
    let irq = refusal("[irq.i]\ncpu = 4\nonce = true\n[task.t]\ndo = \"run(1ms)\"\n");
    assert!(irq.starts_with("test.toml:3: i: no CPU"), "{irq}");
}

/// A recording may be of a larger machine: who was bound to a CPU that is not there may use all.
#[test]
fn who_was_bound_on_a_larger_machine_is_freed_and_others_stay_bound() {
    let text = "[workload]\nname = \"t\"\n[task.a]\ncpus = \"3\"\ndo = \"run(1ms)\"\n\
                [task.b]\ncpus = \"2\"\ndo = \"run(1ms)\"\n[task.c]\ndo = \"run(1ms)\"\n";
    let mut workload = Workload::parse(text, "test.toml").unwrap();
    for group in &mut workload.groups {
        group.free_elsewhere = true;
    }
    let work = Work::new(Arc::new(workload), 3, 1).unwrap();
    let births = work.initial();
    let cpus = births
        .iter()
        .map(|birth| Some(birth.cpus.as_ref()?.first()?.0));
    assert_eq!(cpus.collect::<Vec<_>>(), [None, Some(2), None]);
}

#[test]
fn a_workload_with_too_many_tasks_is_refused() {
    let text = "[workload]\nname = \"t\"\n[task.t]\ndo = \"run(1ms)\"\n";
    let mut workload = Workload::parse(text, "test.toml").unwrap();
    workload.groups[0].count = 100_001;
    let refusal = Work::new(Arc::new(workload), 4, 1).err().unwrap();
    let many = "test.toml: more than 100000 tasks exist at once";
    assert_eq!(refusal.to_string(), many);
}

#[test]
fn a_run_longer_than_292_years_is_refused_with_its_place() {
    for body in [
        "loop(1069)[ timer(8640000s) ]",
        "loop(2300)[ sleep(8640000s) ]",
        "loop(2300)[ run(8640000s) ]",
        "loop(2300)[ run(8640000s * self), sleep(exp(8640000s)) ]",
    ] {
        let message = error(&format!("[task.t]\ndo = \"{body}\"\n"));
        let want = "test.toml:4: t: the run would last longer than 292 years";
        assert_eq!(message, want, "{body}");
    }
}

#[test]
fn a_chain_of_forks_is_stopped_with_its_place() {
    let text = "[workload]\nname = \"t\"\n[task.t]\ncount = 1\ndo = \"run(1ns), fork(t)\"\n";
    let mut toy = Toy::new(text, 1);
    toy.work.born_max = 10;
    let message = toy.run().expect_err("ten tasks are enough").in_full();
    let want = "test.toml:5: t.9: more than 10 tasks are created in one run; \
                let the run end earlier";
    assert_eq!(message, want);
}
