//! Schedulers one below the other: who is told what, in the order in which a kernel 7.3.4 told it
//! (the recordings of a root and one scheduler below it), and what rights on CPUs do.

use model::{ExitKind, Kernel, Nanos, SubSpec, Summary};
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;
use workload::RunSpec;

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

/// Knobs of a policy.
pub type Knobs<'a> = &'a [(&'a str, &'a str)];

/// `sub` as the root of 2 CPUs with a tick of 4 ms, for 400 ms.
pub fn spec(set: Knobs<'_>, load: &str) -> RunSpec {
    let mut spec = Run {
        cpus: 2,
        hz: 250,
        until: ms(400),
        set,
        ..Run::new("sub", load)
    }
    .spec();
    spec.machine.kernel = Kernel::V7_3;
    spec
}

/// `sub` below it at a cgroup, with 1 as its tag, from the 50th millisecond on.
pub fn below(cgroup: &str, set: Knobs<'_>) -> SubSpec {
    let set = [&[("tag", "1")], set].concat();
    SubSpec {
        cgroup: cgroup.to_owned(),
        policy: Run {
            set: &set,
            ..Run::new("sub", SPINNER)
        }
        .spec()
        .policy,
        attach_at: ms(50),
        detach_at: None,
    }
}

fn run(spec: &RunSpec) -> (Taker, Summary) {
    let mut taker = Taker::default();
    let summary = sim::run(spec, &mut taker).unwrap_or_else(|error| panic!("{error}"));
    (taker, summary)
}

/// Whether `wanted` stand in the printed lines one behind the other. Lines of several schedulers
/// may stand between them only if they begin with none of the two tags of `wanted`.
#[track_caller]
fn assert_told(summary: &Summary, wanted: &[&str]) {
    let lines: Vec<_> = summary.printed.lines().collect();
    let is_there = lines.windows(wanted.len()).any(|part| {
        part.iter()
            .zip(wanted)
            .all(|(line, end)| line.ends_with(end))
    });
    assert!(is_there, "{wanted:#?}\nis not in\n{}", summary.printed);
}

/// A spinner on CPU 1 in cgroup `a`.
pub const SPINNER: &str = "[cgroup.a]\n[cgroup.b]\n\
    [task.tvp]\ncgroup = \"/a\"\ncpus = \"1\"\ndo = \"run(inf)\"\n";

#[test]
fn one_that_attaches_takes_over_a_running_task() {
    let mut spec = spec(&[], SPINNER);
    spec.policy.subs.push(below("a", &[]));
    let (_, summary) = run(&spec);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_told(
        &summary,
        &[
            "S1 init 0",
            "S0 sub_attach 2",
            "S0 grant 0",
            "S1 cpuctl_init 64",
            "S0 cpuctl_exit 0",
            "S1 init_task 0",
            "S0 stopping 0",
            "S0 quiescent 20000000e",
            "S0 disable 0",
            "S0 exit_task 0",
            "S1 enable 0",
            "S1 set_cmask 2",
            "S1 set_weight 64",
            "S1 runnable 100000000000000e",
            "S1 running 0",
            "S1 sub_caps_updated 30f",
        ],
    );
    for told in [
        "S1 sub_ecaps_updated f",
        "S1 sub_ecaps_updated 1000f",
        "S1 update_idle 1",
    ] {
        assert_told(&summary, &[told]);
    }
    let [sub] = &summary.subs[..] else {
        panic!("{:?}", summary.subs);
    };
    assert_eq!((sub.level, sub.tasks), (1, 1));
    assert_eq!(sub.exit.kind, ExitKind::Parent);
    assert!(sub.ran >= ms(345), "{}", sub.ran);
}

#[test]
fn a_move_to_another_scheduler_is_told_to_both_and_by_no_move() {
    let mover = "[task.main]\ncpus = \"0\"\ndo = \"sleep(150ms), cgroup_move(tvp, b), \
        sleep(50ms), cgroup_move(tvp, a), suspend\"\n";
    let mut spec = spec(&[], &format!("{SPINNER}{mover}"));
    spec.policy.subs.push(below("a", &[]));
    let (_, summary) = run(&spec);
    let way = |old: &str, new: &str| {
        [
            format!("{new} init_task 0"),
            format!("{old} stopping 0"),
            format!("{old} quiescent 20000000e"),
            format!("{old} runnable 100000000000000e"),
        ]
    };
    for (old, new) in [("S1", "S0"), ("S0", "S1")] {
        let wanted = way(old, new);
        assert_told(&summary, &wanted.each_ref().map(String::as_str));
        let wanted = [
            format!("{old} stopping 0"),
            format!("{old} quiescent 20000000e"),
            format!("{old} disable 0"),
            format!("{old} exit_task 0"),
            format!("{new} enable 0"),
            format!("{new} set_cmask 2"),
            format!("{new} set_weight 64"),
            format!("{new} runnable 100000000000000e"),
            format!("{new} running 0"),
        ];
        assert_told(&summary, &wanted.each_ref().map(String::as_str));
    }
    assert!(!summary.printed.contains("_move"), "{}", summary.printed);
    assert_eq!(summary.subs[0].tasks, 2);
}

#[test]
fn changes_of_a_task_are_told_to_its_owner_and_weights_to_the_one_above_the_cgroup() {
    let load = "[cgroup.a]\n[cgroup.d]\npath = \"/a/d\"\n\
        [task.tvp]\ncgroup = \"/a\"\ncpus = \"1\"\ndo = \"run(inf)\"\n\
        [task.main]\ncpus = \"0\"\ndo = \"sleep(150ms), setnice(tvp, 5), sleep(20ms), \
        cgroup_weight(a, 50), cgroup_weight(d, 70), sleep(30ms), setaffinity(tvp, {0}), \
        suspend\"\n";
    let mut spec = spec(&[], load);
    spec.policy.subs.push(below("a", &[]));
    let (_, summary) = run(&spec);
    assert_told(
        &summary,
        &[
            "S1 stopping 0",
            "S1 quiescent 20000000a",
            "S1 set_weight 21",
            "S1 runnable 100000000000000a",
            "S1 running 2",
        ],
    );
    assert_told(
        &summary,
        &["S0 cpuctl_set_weight 32", "S1 cpuctl_set_weight 46"],
    );
    assert_told(
        &summary,
        &[
            "S1 stopping 0",
            "S1 quiescent 20000000a",
            "S1 set_cmask 1",
            "S1 runnable 100000000000000a",
        ],
    );
    // On the CPU that is left to it.
    assert_told(&summary, &["S1 stopping 1", "S1 enqueue 40000"]);
    assert_told(&summary, &["S1 dequeue 0"]);
}

#[test]
fn a_child_belongs_to_the_scheduler_of_its_cgroup() {
    let load = "[cgroup.a]\n[cgroup.aa]\npath = \"/a/aa\"\n\
        [task.tvm]\ncgroup = \"/a/aa\"\ncpus = \"1\"\ndo = \"sleep(150ms), fork(tvc), suspend\"\n\
        [task.tvc]\ncount = 0\ncpus = \"0-1\"\ndo = \"run(1ms)\"\n";
    let mut spec = spec(&[], load);
    spec.policy.subs.push(below("/a", &[]));
    let (_, summary) = run(&spec);
    assert_told(
        &summary,
        &[
            "S1 init_task 1",
            "S1 enable 1312d00",
            "S1 set_cmask 3",
            "S1 set_weight 64",
            "S1 select_cid 4",
            "S1 runnable 80008",
            "S1 enqueue 80008",
        ],
    );
    let later = summary.printed.split_once("S1 init 0").expect("it comes").1;
    assert!(!later.contains("S0 enqueue"), "{later}");
}

#[test]
fn one_that_is_taken_off_gives_its_tasks_back() {
    let two = format!("{SPINNER}[task.tvq]\ncgroup = \"/a\"\ncpus = \"1\"\ndo = \"run(inf)\"\n");
    let mut spec = spec(&[], &two);
    let mut sub = below("a", &[]);
    sub.detach_at = Some(ms(200));
    spec.policy.subs.push(sub);
    let (taker, summary) = run(&spec);
    assert_told(
        &summary,
        &[
            "S0 init_task 0",
            "S1 stopping 0",
            "S1 quiescent 20000000e",
            "S1 disable 0",
            "S1 exit_task 0",
            "S0 enable 0",
        ],
    );
    assert_told(
        &summary,
        &[
            "S0 init_task 0",
            "S1 quiescent 20000000e",
            "S1 disable 0",
            "S1 exit_task 0",
            "S0 enable 0",
            "S0 set_cmask 2",
            "S0 set_weight 64",
            "S0 runnable e",
            "S0 enqueue e",
        ],
    );
    assert_told(
        &summary,
        &["S1 cpuctl_exit 0", "S0 cpuctl_init 64", "S0 init_task 0"],
    );
    assert_told(&summary, &["S0 sub_detach 2", "S1 exit 40"]);
    let exit = &summary.subs[0].exit;
    assert_eq!(
        (exit.kind, exit.time.as_nanos()),
        (ExitKind::Unreg, 200_000_000)
    );
    // All go on under the root.
    let late = taker
        .events
        .iter()
        .filter(|it| it.time.as_nanos() > 210_000_000);
    let switches = late.filter(|it| it.kind == model::EventKind::Switch);
    assert!(switches.count() >= 8);
}

#[test]
fn the_end_of_the_root_ends_those_below_it_first() {
    let mut spec = spec(&[], SPINNER);
    spec.policy.subs.push(below("a", &[]));
    let (_, summary) = run(&spec);
    assert_told(&summary, &["S0 sub_detach 2", "S1 exit 44"]);
    let printed = summary.printed.as_str();
    assert!(printed.trim_end().ends_with("S0 exit 40"), "{printed}");
}

#[test]
fn an_error_ends_one_and_not_the_other() {
    // It has rights to tasks that run at once only, and inserts plainly.
    let mut spec = spec(&[("caps", "9")], &format!("{SPINNER}{DISTURBER}"));
    spec.policy.subs.push(below("a", &[("to_local", "1")]));
    let (_, summary) = run(&spec);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    let sub = &summary.subs[0];
    assert_eq!(sub.exit.kind, ExitKind::ErrorReenq, "{:?}", sub.exit);
    let message = &sub.exit.message;
    assert!(
        message.ends_with("] reenqueued 257 times without running"),
        "{message}"
    );
    assert_eq!(summary.error(), Some(&sub.exit));
    let told = ask::outcome::ejection_in("root", &summary).expect("one was ejected");
    assert!(told.contains(" at /a was ejected at "), "{told}");
    assert_told(&summary, &["S1 enqueue 0", "S1 enqueue 10000000000"]);
    let again = "S1 enqueue 10000000000";
    assert_eq!(summary.printed.matches(again).count(), 256);
    assert_told(&summary, &["S0 sub_detach 2", "S1 exit 403"]);
    let repeats = sub.counters.iter().find(|it| it.0 == "SCX_EV_REENQ_REPEAT");
    assert_eq!(repeats.map(|it| it.1), Some(256));
}

#[test]
fn a_cid_that_does_not_exist_ends_who_named_it() {
    let mut spec = spec(&[], &format!("{SPINNER}{DISTURBER}"));
    spec.policy.subs.push(below("a", &[("local_on", "99")]));
    let (_, summary) = run(&spec);
    let exit = &summary.subs[0].exit;
    assert_eq!(
        (exit.kind, &*exit.message),
        (ExitKind::Error, "invalid cid 99")
    );
    // The root goes on with its tasks.
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_told(&summary, &["S0 sub_detach 2", "S1 exit 400"]);
}

#[test]
fn rights_that_are_revoked_take_effect_at_the_next_dispatch() {
    let two = format!("{SPINNER}[task.tvq]\ncgroup = \"/a\"\ncpus = \"1\"\ndo = \"run(inf)\"\n");
    let set = [("caps", "3"), ("revokes@150ms", "2"), ("grants@250ms", "2")];
    let mut spec = spec(
        &set,
        &format!("{two}[task.idle]\ncpus = \"0\"\ndo = \"run(inf)\"\n"),
    );
    spec.policy.subs.push(below("a", &[]));
    let (taker, summary) = run(&spec);
    assert_told(&summary, &["S1 sub_caps_updated 203", "S0 revoked 0"]);
    assert_told(
        &summary,
        &[
            "S1 sub_ecaps_updated 10300",
            "S1 stopping 1",
            "S1 enqueue 0",
        ],
    );
    assert_told(&summary, &["S1 sub_caps_updated 203", "S0 granted 0"]);
    assert_told(&summary, &["S1 sub_ecaps_updated 10003"]);
    let on_it = taker.events.iter().filter(|it| {
        it.kind == model::EventKind::Switch && it.cpu.0 == 1 && it.task != model::TaskId::NONE
    });
    let between = on_it.filter(|it| (200..250).contains(&(it.time.as_nanos() / 1_000_000)));
    assert_eq!(between.count(), 0);
    assert!(summary.subs[0].ran > ms(200), "{}", summary.subs[0].ran);
}

/// Inserts on CPU 0, to which it has no right, and asks for rescues.
const RESCUED: Knobs<'static> = &[("local_on", "0"), ("insert_flags", "17179869184")];

#[test]
fn a_task_on_a_cpu_without_rights_is_rescued_now_and_then() {
    let load = "[cgroup.a]\n[cgroup.b]\n\
        [task.tvp]\ncgroup = \"/b\"\ncpus = \"0\"\ndo = \"run(inf)\"\n\
        [task.main]\ncpus = \"1\"\ndo = \"sleep(150ms), cgroup_move(tvp, a), suspend\"\n";
    let mut spec = spec(&[("caps", "3"), ("cids", "2")], load);
    spec.duration = Some(ms(3_000));
    spec.policy.subs.push(below("a", RESCUED));
    let (_, summary) = run(&spec);
    assert_eq!(summary.error(), None, "{:?}", summary.exit);
    let idled = summary.notes.iter().find(|it| it.contains("idled"));
    assert_eq!(idled, None);
    let turn = ["S1 enqueue 0", "S1 running 5", "S1 stopping 1"];
    assert_told(&summary, &[turn, turn].concat());
    assert!(
        !summary.printed.contains("S1 dequeue"),
        "{}",
        summary.printed
    );
    let [sub] = &summary.subs[..] else {
        panic!("{:?}", summary.subs);
    };
    // A fiftieth of 2.85 s, the 5 ms that were saved, and at most a tick and a slice too many.
    assert!((ms(45)..=ms(72)).contains(&sub.ran), "{}", sub.ran);
    let rescues = sub.counters.iter().find(|it| it.0 == "SCX_EV_SUB_RESCUE");
    let enqueues = summary.printed.matches("S1 enqueue ").count() as u64;
    assert_eq!(rescues.map(|it| it.1), Some(enqueues));
}

#[test]
fn who_makes_others_wait_too_long_for_a_rescue_ends() {
    let load = "[cgroup.a]\n[cgroup.b]\n\
        [task.crowd]\ncount = 40\ncgroup = \"/a\"\ncpus = \"0\"\ndo = \"run(inf)\"\n";
    let mut spec = spec(&[("caps", "3"), ("cids", "2")], load);
    spec.duration = Some(ms(6_000));
    spec.policy.subs.push(below("a", RESCUED));
    let (_, summary) = run(&spec);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    let exit = &summary.subs[0].exit;
    assert_eq!(exit.kind, ExitKind::ErrorRescue, "{exit:?}");
    let message = &exit.message;
    let (begin, end) = ("used too much rescue CPU time (", "s to be rescued");
    let is_right = message.starts_with(begin) && message.ends_with(end);
    assert!(is_right, "{message}");
}

#[test]
fn nobody_runs_where_the_one_above_does_not_hand_down() {
    let mut spec = spec(&[("hands_down", "0")], &format!("{SPINNER}{DISTURBER}"));
    spec.policy.subs.push(below("a", &[]));
    let (_, summary) = run(&spec);
    assert_eq!(summary.exit.kind, ExitKind::Unreg);
    // It is kept for as long as nothing else wants the CPU.
    assert!(
        summary.printed.contains("S1 enqueue"),
        "{}",
        summary.printed
    );
    assert!(summary.subs[0].ran < ms(100), "{}", summary.subs[0].ran);
}

#[test]
fn the_one_above_may_kill_one_below() {
    let mut spec = spec(&[("kills@150ms", "1")], SPINNER);
    spec.policy.subs.push(below("a", &[]));
    let (_, summary) = run(&spec);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    let exit = &summary.subs[0].exit;
    assert_eq!(
        (exit.kind, &*exit.message),
        (ExitKind::ParentKill, "asked for")
    );
    assert_told(&summary, &["S0 sub_detach 2", "S1 exit 45"]);
}

#[test]
fn one_that_is_not_accepted_never_gets_a_task() {
    for (above, own, message) in [
        (("accepts", "-12"), ("tag", "1"), "parent rejected (-12)"),
        (
            ("accepts", "0"),
            ("init_answer", "-12"),
            "ops.init_task() failed (-12) for tvp",
        ),
    ] {
        let mut spec = spec(&[above], SPINNER);
        spec.policy.subs.push(below("a", &[own]));
        let (_, summary) = run(&spec);
        let exit = &summary.subs[0].exit;
        assert!(exit.message.starts_with(message), "{exit:?}");
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
        assert!(
            !summary.printed.contains("S1 enable"),
            "{}",
            summary.printed
        );
        assert_eq!(summary.subs[0].ran, Nanos::ZERO);
    }
}

/// Four cgroups, one in the other.
const NESTED: &str = "[cgroup.a]\n[cgroup.b]\npath = \"/a/b\"\n[cgroup.c]\npath = \"/a/b/c\"\n\
    [cgroup.d]\npath = \"/a/b/c/d\"\n\
    [task.tvp]\ncgroup = \"/a/b/c/d\"\ncpus = \"1\"\ndo = \"run(inf)\"\n";

#[test]
fn a_cgroup_is_found_by_its_name_or_its_path() {
    for asked in ["b", "/a/b", "a/b"] {
        let mut spec = spec(&[], NESTED);
        spec.policy.subs.push(below(asked, &[]));
        let (_, summary) = run(&spec);
        assert_eq!(summary.subs[0].cgroup, "/a/b", "{asked}");
    }
}

#[test]
fn one_that_was_to_come_after_the_end_is_told() {
    let mut spec = spec(&[], SPINNER);
    let after = SubSpec {
        attach_at: ms(500),
        ..below("b", &[])
    };
    spec.policy.subs.extend([below("a", &[]), after]);
    let (_, summary) = run(&spec);
    assert_eq!(summary.subs.len(), 1, "{:?}", summary.subs);
    let never = |it: &&String| it.contains("was never attached");
    let told: Vec<_> = summary.notes.iter().filter(never).collect();
    assert_eq!(
        told,
        ["`sub` at /b was never attached: the run ended before"]
    );
}

#[test]
fn three_may_stand_below_the_root_and_not_a_fourth() {
    let mut spec = spec(&[], NESTED);
    for cgroup in ["a", "b", "c", "d"] {
        spec.policy.subs.push(below(cgroup, &[]));
    }
    let (_, summary) = run(&spec);
    let levels = summary.subs.iter().map(|sub| sub.level);
    assert_eq!(levels.collect::<Vec<_>>(), [1, 2, 3, 4]);
    let exit = &summary.subs[3].exit;
    assert_eq!(
        (exit.kind, &*exit.message),
        (ExitKind::Error, "max nesting depth 4 violated")
    );
    let [a, b, c, _] = &summary.subs[..] else {
        panic!("{:?}", summary.subs)
    };
    assert_eq!(
        (a.exit.kind, c.exit.kind),
        (ExitKind::Parent, ExitKind::Parent)
    );
    // Each hands the CPU down to the next.
    assert!(c.ran > ms(300), "{}", c.ran);
    // The task comes back when the one below ends.
    assert_eq!((a.tasks, b.tasks, c.tasks), (2, 2, 1));
}

fn refusal(spec: &RunSpec) -> String {
    let error = sim::run(spec, &mut Taker::default()).expect_err("a refusal");
    let advice = model::Advice::advice(&error).unwrap_or_default();
    let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
    format!("{error}{}: {advice}", cause.unwrap_or_default())
}

#[test]
fn what_cannot_be_attached_is_refused_with_what_to_do() {
    let with = |load: &str, subs: &[SubSpec]| {
        let mut spec = spec(&[], load);
        spec.policy.subs.extend(subs.iter().cloned());
        spec
    };
    let a = || below("a", &[]);
    let mut cpu_form = a();
    cpu_form.policy = Run::new("fifo", SPINNER).spec().policy;
    let mut cpu_root = with(SPINNER, &[a()]);
    cpu_root.policy = PolicyOf("fifo").with(vec![a()]);
    let mut placed = with(SPINNER, &[]);
    placed.policy = PolicyOf("refused-sub").with(Vec::new());
    // Its tables have what that kernel's have not.
    let mut old = with(SPINNER, &[a()]);
    old.machine.kernel = Kernel::V7_2;
    let many = with(SPINNER, &vec![a(); SubSpec::MOST + 1]);
    for (spec, what) in [
        (
            with(SPINNER, &[below(&"a".repeat(256), &[])]),
            "more than 255 bytes",
        ),
        (
            many,
            "101 schedulers are below the root: attach 100 at most",
        ),
        (with(SPINNER, &[a(), a()]), "EBUSY"),
        (
            with(NESTED, &[below("a", &[]), below("c", &[]), below("b", &[])]),
            "EBUSY",
        ),
        (
            with(SPINNER, &[below("z", &[])]),
            "no such cgroup: the workload has /a, /b",
        ),
        (
            with("[task.t]\ndo = \"run(1ms)\"\n", &[a()]),
            "declare it in the workload",
        ),
        (
            with(SPINNER, &[cpu_form]),
            "sub-sched requires cid-form struct_ops",
        ),
        (cpu_root, "EOPNOTSUPP"),
        (
            placed,
            "`placed_ops.sub_cgroup_id` is 5: it attaches below another scheduler: leave it 0",
        ),
        (
            old,
            "no scheduler is attached below another one on a simulated 7.2",
        ),
    ] {
        let said = refusal(&spec);
        assert!(said.contains(what), "{what}: {said}");
    }
}

/// What is kept of the policies of one run is no other run's.
#[test]
fn runs_with_other_settings_below_do_not_share_what_was_made_ready() {
    let printed = |cgroup: &str, tag: &str| {
        let mut spec = spec(&[], SPINNER);
        spec.policy.subs.push(below(cgroup, &[("tag", tag)]));
        run(&spec).1.printed
    };
    let first = printed("a", "7");
    assert!(first.contains("S7 init"), "{first}");
    assert!(printed("a", "8").contains("S8 init"));
    assert!(printed("b", "7").contains("S0 sub_attach 3"));
    assert_eq!(printed("a", "7"), first);
}

#[test]
fn a_table_that_names_a_cgroup_attaches_below_a_root() {
    let mut spec = spec(&[], SPINNER);
    let policy = PolicyOf("refused-sub").with(Vec::new());
    let below = below("a", &[]);
    spec.policy.subs.push(SubSpec { policy, ..below });
    let (_, summary) = run(&spec);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_eq!(summary.subs[0].tasks, 1, "{:?}", summary.subs);
}

struct PolicyOf<'a>(&'a str);

impl PolicyOf<'_> {
    fn with(&self, subs: Vec<SubSpec>) -> model::PolicySpec {
        model::PolicySpec {
            subs,
            ..Run::new(self.0, SPINNER).spec().policy
        }
    }
}

/// A task of the root's on the spinner's CPU, which takes that a little every 100 ms.
pub const DISTURBER: &str =
    "[task.other]\ncpus = \"1\"\ndo = \"loop(inf)[ sleep(100ms), run(1ms) ]\"\n";

/// A root and a scheduler below it, as they were measured on a kernel.
struct Pair {
    /// Whether the root hands CPUs down, and the rights that it grants.
    above: [(&'static str, &'static str); 2],
    below: (&'static str, &'static str),
    /// Hundredths of a second that a spinner got in the first three seconds under the one below
    /// on a 7.3.4, whose clock gave up to 330: in the cgroup from the start, and moved there later.
    kernel: [u64; 2],
}

const fn pair(
    hands_down: &'static str,
    caps: &'static str,
    below: (&'static str, &'static str),
    kernel: [u64; 2],
) -> Pair {
    Pair {
        above: [("hands_down", hands_down), ("caps", caps)],
        below,
        kernel,
    }
}

/// Its inserts run at once or come back.
const IMMED: (&str, &str) = ("insert_flags", "8589934592");
/// All its tasks go to its global queue.
const BARE: (&str, &str) = ("sub_ops.enqueue", "0");
const PAIRS: [Pair; 5] = [
    pair("1", "15", ("to_local", "0"), [330, 320]),
    pair("1", "9", IMMED, [313, 312]),
    pair("0", "9", IMMED, [0, 0]),
    pair("1", "9", BARE, [7, 0]),
    pair("0", "9", BARE, [0, 5]),
];

/// A spinner that is in the cgroup when the scheduler attaches, and one that comes a second later.
const ORDERS: [(&str, Nanos); 2] = [
    (
        "[task.tvp]\ncgroup = \"/a\"\ncpus = \"3\"\ndo = \"run(inf)\"\n",
        ms(1_000),
    ),
    (
        "[task.tvp]\ncpus = \"3\"\ndo = \"run(inf)\"\n\
         [task.main]\ncpus = \"0\"\ndo = \"sleep(1s), cgroup_move(tvp, a), suspend\"\n",
        ms(100),
    ),
];

/// What a spinner gets in the three seconds from the first one on, on CPU 3 of four.
fn three_seconds(pair: &Pair, (spinner, attach_at): (&str, Nanos), beside: &str) -> Summary {
    let other = "[task.other]\ncpus = \"2\"\ndo = \"run(inf)\"\n";
    let load = format!("[cgroup.a]\n{other}{beside}{spinner}");
    let mut spec = spec(&pair.above, &load);
    spec.machine.cpus = 4;
    spec.duration = Some(ms(4_000));
    spec.policy.subs.push(SubSpec {
        attach_at,
        ..below("a", &[pair.below])
    });
    let (_, summary) = run(&spec);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_eq!(summary.subs[0].exit.kind, ExitKind::Parent);
    summary
}

/// What a task gets depends on rights and on who hands down, and not on whether it or its scheduler
/// came first. One without a way back to the CPU runs until something else wants that CPU.
#[test]
fn who_lacks_a_right_starves_whatever_came_first() {
    let interrupts = "do = \"sleep(1050ms), loop(inf)[ run(200us), sleep(1s) ]\"\n";
    let of_root = format!("[task.other1]\ncpus = \"3\"\n{interrupts}");
    let higher = format!("[task.higher]\npolicy = \"fifo:50\"\ncpus = \"3\"\n{interrupts}");
    for (at, pair) in PAIRS.iter().enumerate() {
        for beside in [&of_root, &higher] {
            let both = ORDERS.map(|order| three_seconds(pair, order, beside));
            for (summary, kernel) in both.iter().zip(pair.kernel) {
                let wanted = match kernel {
                    297.. => ms(2_970)..=ms(3_000),
                    _ => ms(0)..=ms(100),
                };
                let ran = summary.subs[0].ran;
                assert!(wanted.contains(&ran), "pair {at}: {ran}, a kernel {kernel}");
            }
            let [first, later] = both.map(|it| (it.subs[0].ran, it.subs[0].counters.clone()));
            assert_eq!(first, later, "pair {at}");
        }
        for order in ORDERS {
            let summary = three_seconds(pair, order, "");
            assert_eq!(summary.subs[0].ran, ms(3_000), "pair {at}");
        }
    }
}

/// A task in a global queue is taken and turned away, again at each interruption that leads there:
/// the kernel counted two and three repeats in the two orders.
#[test]
fn a_task_that_is_turned_away_is_offered_again_as_often_as_on_a_kernel() {
    let bare = &PAIRS[3];
    for (policy, wanted) in [("", 2), ("policy = \"fifo:50\"\n", 3)] {
        let beside = format!(
            "[task.kworker]\ncpus = \"3\"\n{policy}\
             do = \"sleep(1050ms), loop(inf)[ run(200us), sleep(1s) ]\"\n"
        );
        let summary = three_seconds(bare, ORDERS[0], &beside);
        let mut counters = summary.subs[0].counters.iter();
        let repeats = counters.find(|it| it.0 == "SCX_EV_REENQ_REPEAT");
        assert_eq!(repeats.map(|it| it.1), Some(wanted), "{policy}");
    }
}
