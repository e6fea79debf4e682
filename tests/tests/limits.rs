//! What a policy or a workload can ask of the machine has an end, and what it does wrong without
//! being ejected is said.

use model::{Nanos, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use sim::{Backend, Error, Options, Simulation};
use workload::{RunSpec, Workload};

/// One task that computes for 10 ms.
const ONE: &str = "[task.A]\ndo = \"run(10ms)\"\n";

/// `greedy_case` of `policies/greedy.bpf.c`.
#[derive(Clone, Copy)]
enum Case {
    Nothing = 0,
    Clocks = 1,
    Iterators = 2,
    Timers = 3,
    PassesOver = 4,
    Livelock = 5,
    EndlessExitTask = 6,
    WildExitTask = 7,
    EndlessExit = 8,
    NoKick = 9,
    Forgets = 10,
    Absolute = 11,
}

fn spec(case: Case, cpus: u16, workload: &str) -> RunSpec {
    let number = (case as u32).to_string();
    let set = [("greedy_case", number.as_str())];
    let run = Run {
        set: &set,
        cpus,
        until: Nanos::from_secs(4),
        ..Run::new("greedy", workload)
    };
    run.spec()
}

/// Runs it with little instructions a callback on both back ends, which must agree.
fn both(spec: &RunSpec) -> Summary {
    let on = |backend| {
        let options = Options {
            backend,
            budget: Some(2_000_000),
            ..Options::default()
        };
        Simulation::new(spec)
            .with_options(options)
            .with_sink(&mut Collector::default())
            .start()
            .expect("the run can be made")
            .summary
    };
    let (interpreted, native) = (on(Backend::Interpreter), on(Backend::Jit));
    assert_eq!(interpreted, native);
    native
}

fn run_with(case: Case, cpus: u16, workload: &str) -> Summary {
    both(&spec(case, cpus, workload))
}

#[test]
fn the_machine_has_been_up_for_an_hour_when_a_run_begins() {
    let summary = run_with(Case::Clocks, 1, ONE);
    // Jiffies of 1 ms, from five minutes before the wrap of the low half on.
    let jiffies = (1_u64 << 32) - 300_000 + 3_600_000;
    let hour = 3_600_000_000_000_u64;
    let line = format!("{hour} {hour} {jiffies}");
    assert_eq!(summary.printed.lines().next(), Some(line.as_str()));
    assert_eq!(
        summary.exit.time.as_nanos(),
        10_000_000,
        "a run begins at 0"
    );
}

#[test]
fn a_timer_at_an_absolute_time_fires_then() {
    let summary = run_with(Case::Absolute, 1, ONE);
    let line = summary.printed.lines().next();
    assert_eq!(line, Some("fired at 3600001000000"));
}

#[test]
fn iterators_that_nobody_destroys_end_the_policy() {
    let summary = run_with(Case::Iterators, 1, ONE);
    assert!(summary.exit.kind.is_error(), "{:?}", summary.exit);
    let message = &summary.exit.message;
    assert!(message.contains("iterators"), "{message}");
}

#[test]
fn timers_that_arm_more_timers_without_delay_end_the_policy() {
    let summary = run_with(Case::Timers, 1, "[task.A]\ndo = \"run(inf)\"\n");
    let exit = &summary.exit;
    assert_eq!(exit.message, "the machine is busy with timers alone");
    assert!(exit.time.as_nanos() < 1_000_000_000, "{exit:?}");
}

#[test]
fn tasks_that_are_passed_over_use_up_the_budget() {
    // All wait for CPU 0; CPU 1 asks again and again.
    let tasks = "[task.A]\ncount = 2000\ncpus = \"0\"\ndo = \"run(10ms)\"\n\
                 [task.B]\ncpus = \"1\"\nstart = \"1ms\"\ndo = \"run(10ms)\"\n";
    let summary = run_with(Case::PassesOver, 2, tasks);
    assert!(summary.exit.kind.is_error(), "{:?}", summary.exit);
    // 2,000 tasks at ten instructions each leave no room for many calls within 2 million.
    assert!(summary.instructions < 1_000_000, "{}", summary.instructions);
}

#[test]
fn the_limit_of_a_livelock_does_not_grow_with_tasks() {
    let few = run_with(
        Case::Livelock,
        1,
        "[task.A]\ncount = 2\ndo = \"run(inf)\"\n",
    );
    let hogs = "[task.A]\ncount = 5000\nstart = \"uniform(0ms, 1ms)\"\ndo = \"run(inf)\"\n";
    let many = run_with(Case::Livelock, 1, hogs);
    for summary in [&few, &many] {
        let message = &summary.exit.message;
        assert_eq!(message, "the machine is busy with scheduling alone");
    }
    let more = many.instructions - few.instructions;
    // Beside what each task's own callbacks retire: less than a thousand.
    assert!(more < 5_000 * 2_000, "{more} instructions more");
}

#[test]
fn a_hundred_thousand_tasks_may_start_together() {
    let tasks = "[task.A]\ncount = 100000\ndo = \"sleep(1ms), run(1us)\"\n";
    let mut spec = spec(Case::Nothing, 4, tasks);
    spec.duration = Some(Nanos::from_millis(50));
    let summary = sim::run(&spec, &mut Collector::default()).expect("the run can be made");
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
}

#[test]
fn a_policy_that_fails_while_it_is_taken_off_is_reported_and_not_called_again() {
    let sleepers = "[task.A]\ncount = 50\ndo = \"sleep(10s)\"\n";
    for case in [Case::EndlessExitTask, Case::WildExitTask] {
        let summary = run_with(case, 1, sleepers);
        let exit = &summary.exit;
        assert!(exit.kind.is_error(), "{exit:?}");
        let fault = exit.fault.as_deref().unwrap_or_default();
        assert!(fault.contains("greedy_exit_task"), "{exit:?}");
        assert!(summary.instructions < 3_000_000, "{}", summary.instructions);
        assert_eq!(summary.printed, "", "exit is not called");
    }
    let summary = run_with(Case::EndlessExit, 1, sleepers);
    let exit = &summary.exit;
    assert!(exit.kind.is_error(), "{exit:?}");
    let fault = exit.fault.as_deref().unwrap_or_default();
    assert!(fault.contains("greedy_exit"), "{exit:?}");
}

/// A note of `summary` that contains `text`.
fn has_note(summary: &Summary, text: &str) -> bool {
    summary.told().iter().any(|note| note.contains(text))
}

#[test]
fn a_policy_that_kicks_nobody_hears_of_the_cpus_that_idle() {
    // All wake on CPU 0, which A keeps busy, and may run anywhere.
    let tasks = "[task.A]\ncpus = \"0\"\ndo = \"run(inf)\"\n\
                 [task.B]\ncount = 8\ncpus = \"0\"\n\
                 do = \"setaffinity(self, all), sleep(1ms), run(300ms)\"\n";
    let summary = run_with(Case::NoKick, 4, tasks);
    let kicks = run_with(Case::Nothing, 4, tasks);
    assert!(!has_note(&kicks, "scx_bpf_kick_cpu"), "{:?}", kicks.notes);
    assert!(
        has_note(&summary, "scx_bpf_kick_cpu"),
        "{:?}",
        summary.notes
    );
}

#[test]
fn a_task_that_starves_when_the_run_ends_is_named() {
    let tasks = "[task.A]\ndo = \"run(inf)\"\n[task.Z]\nstart = \"500ms\"\ndo = \"run(1ms)\"\n";
    let fed = run_with(Case::Nothing, 1, tasks);
    assert_eq!(fed.starved, []);
    let summary = run_with(Case::Forgets, 1, tasks);
    assert!(!summary.exit.kind.is_error(), "the watchdog waits longer");
    let [starved] = &summary.starved[..] else {
        panic!("{:?}", summary.starved)
    };
    assert_eq!(starved.waited, Nanos::from_millis(3_500));
    assert!(has_note(&summary, &starved.name), "{:?}", summary.notes);
}

#[test]
fn many_tasks_that_wait_for_their_turn_do_not_starve() {
    let tasks = "[task.A]\ncount = 1000\ndo = \"run(inf)\"\n";
    assert_eq!(run_with(Case::Nothing, 1, tasks).starved, []);
}

#[test]
fn a_duration_that_lengthens_nothing_and_a_load_without_end_are_said() {
    let long = "[task.A]\ndo = \"run(inf)\"\n";
    let mut spec = spec(Case::Nothing, 1, long);
    spec.duration = None;
    let summary = sim::run(&spec, &mut Collector::default()).expect("the run can be made");
    assert_eq!(summary.end.as_nanos(), 3_600_000_000_000);
    assert!(
        has_note(&summary, "nothing says when"),
        "{:?}",
        summary.notes
    );
    let text = format!("[workload]\nname = \"test\"\nstop = \"duration:1s\"\n{long}");
    spec.workload = Workload::parse(&text, "test").expect("a workload").into();
    spec.duration = Some(Nanos::from_secs(2));
    let summary = sim::run(&spec, &mut Collector::default()).expect("the run can be made");
    assert_eq!(summary.end.as_nanos(), 1_000_000_000);
    assert!(has_note(&summary, "cannot lengthen"), "{:?}", summary.notes);
}

#[test]
fn a_load_in_which_only_interrupts_go_on_ends_and_says_so() {
    let tasks = "[chan.c]\nkind = \"pipe\"\n[irq.mouse]\nevery = \"1s\"\n\
                 [task.A]\ndo = \"recv(c)\"\n";
    let mut spec = spec(Case::Nothing, 1, tasks);
    spec.duration = None;
    let summary = sim::run(&spec, &mut Collector::default()).expect("the run can be made");
    assert_eq!(summary.end.as_nanos(), 3_600_000_000_000);
    assert!(has_note(&summary, "`mouse` goes on"), "{:?}", summary.notes);
}

#[test]
fn a_run_that_lasts_longer_than_the_clock_is_an_error_with_a_place() {
    for steps in ["timer(8640000s)", "sleep(8640000s)"] {
        let tasks = format!("[task.A]\ndo = \"loop(2300)[{steps}]\"\n");
        let mut spec = spec(Case::Nothing, 1, &tasks);
        spec.duration = None;
        let result = sim::run(&spec, &mut Collector::default());
        let Err(Error::Work(error)) = result else {
            panic!("{result:?}")
        };
        let text = error.to_string();
        assert!(
            text.contains("test:4: A") && text.contains("10 years"),
            "{text}"
        );
    }
}
