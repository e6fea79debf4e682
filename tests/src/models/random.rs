//! Random workloads and runs for comparisons with models.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{MachineSpec, Nanos, PolicySpec, Rng, Sink, Summary};
use workload::{RunSpec, Workload};

use crate::policy;

/// A run of a shipped or test policy.
///
/// # Panics
/// If the workload is none, or no policy is called so.
#[must_use]
pub fn spec(policy: &str, set: &[(&str, u32)], machine: MachineSpec, tasks: &str) -> RunSpec {
    let text = format!("[workload]\nname = \"scenario\"\n{tasks}");
    let workload =
        Workload::parse(&text, "scenario").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let set = set.iter();
    RunSpec {
        policy: PolicySpec {
            name: policy.to_owned(),
            object: policy::object(policy).expect("a policy"),
            table: None,
            set: set
                .map(|(knob, value)| ((*knob).to_owned(), value.to_string()))
                .collect(),
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        },
        workload: Arc::new(workload),
        machine,
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: None,
    }
}

/// Runs it.
///
/// # Panics
/// If it cannot be run, or if the policy is ejected.
pub fn run(spec: &RunSpec, sink: &mut impl Sink) -> Summary {
    let summary = sim::run(spec, sink).expect("a run");
    assert!(
        summary.exit.kind == model::ExitKind::Unreg && summary.exit.fault.is_none(),
        "{:?}",
        summary.exit
    );
    summary
}

/// Tasks of all sorts on one CPU: hogs and sleepers, with and without shared address spaces,
/// nice values that change, yields, families. Groups called `process...` are processes.
#[must_use]
pub fn tasks(seed: u64) -> String {
    let mut rng = Rng::new(seed, 0);
    let mut text = String::from("stop = \"duration:1500ms\"\n");
    let groups = 1 + rng.below(5);
    for group in 0..groups {
        let kind = if rng.below(2) == 0 {
            "process"
        } else {
            "thread"
        };
        let (count, nice) = (1 + rng.below(3), nice(&mut rng));
        let start = rng.below(40);
        let _ = writeln!(
            text,
            "[task.{kind}{group}]\nkind = \"{kind}\"\ncount = {count}\nnice = {nice}\n\
             start = \"uniform(0ms, {start}ms)\"\ndo = \"{}\"",
            body(&mut rng)
        );
    }
    let kind = if rng.below(2) == 0 {
        "process"
    } else {
        "thread"
    };
    let nice = nice(&mut rng);
    let _ = writeln!(
        text,
        "[task.{kind}child]\nkind = \"{kind}\"\ncount = 0\nnice = {nice}\n\
         do = \"loop(3)[ run(exp(4ms)), sleep(exp(3ms)) ]\"\n\
         [task.parent]\ndo = \"loop(inf)[ fork({kind}child), run(exp(5ms)), waitpid(any), \
         sleep(exp(20ms)) ]\""
    );
    text
}

fn nice(rng: &mut Rng) -> i64 {
    match rng.below(3) {
        0 => 0,
        _ => rng.below(40) as i64 - 20,
    }
}

/// What a task does. Spans are whole milliseconds now and then, so that ends of work, wakeups and
/// ticks meet.
fn body(rng: &mut Rng) -> String {
    let mut span = |most: u64| match rng.below(3) {
        0 => format!("{}ms", 1 + rng.below(most)),
        1 => format!("uniform(100us, {most}ms)"),
        _ => format!("exp({}us)", 100 * (1 + rng.below(most * 10))),
    };
    let (work, pause, short) = (span(60), span(60), span(3));
    match rng.below(6) {
        0 => "run(inf)".to_owned(),
        1 => format!("loop(inf)[ run({work}), sleep({pause}) ]"),
        2 => format!("loop(inf)[ run({short}), sleep({pause}) ]"),
        3 => format!("loop(inf)[ run({work}), yield ]"),
        4 => format!("loop(inf)[ run({short}), yield, choose(3: yield, 1: sleep({pause})) ]"),
        _ => format!(
            "loop(inf)[ run({work}), choose(1: setnice(self, rand(40) - 20), \
             1: setnice(parent, rand(40) - 20)), sleep({short}) ]"
        ),
    }
}
