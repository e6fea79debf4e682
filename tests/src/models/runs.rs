//! Random workloads for one CPU.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{Nanos, PolicySpec, Rng};
use workload::{RunSpec, Workload};

use crate::policy;

/// A run of two seconds on one CPU under the shipped policy `name`: hogs, sleepers of many
/// rhythms, readers of a disk, tasks that yield, fork and change nice values, from `seed` alone.
///
/// # Panics
/// If there is no such policy.
#[must_use]
pub fn one_cpu(name: &str, set: Vec<(String, String)>, seed: u64) -> RunSpec {
    let mut rng = Rng::new(seed, 0);
    let text = workload(&mut rng, seed);
    let workload = Workload::parse(&text, "random").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut machine = workload.machine.clone();
    machine.cpus = 1;
    machine.hz = [100, 250, 1000][rng.below(3) as usize];
    RunSpec {
        policy: PolicySpec {
            name: name.to_owned(),
            object: policy::object(name).expect("a policy"),
            table: None,
            set,
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        },
        workload: Arc::new(workload),
        machine,
        seed,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(Nanos::from_millis(2000)),
    }
}

fn workload(rng: &mut Rng, seed: u64) -> String {
    let tasks = 2 + rng.below(5);
    let mut text = format!("[workload]\nname = \"random{seed}\"\nstop = \"duration:2s\"\n");
    for task in 0..tasks {
        let nice = nice(rng);
        let body = body(rng, task, tasks);
        let _ = write!(
            text,
            "[task.t{task}]\nnice = {nice}\nstart = \"{}us\"\ndo = \"{body}\"\n",
            [0, 0, 1000, 2500, 10_300][rng.below(5) as usize],
        );
    }
    if seed.is_multiple_of(3) {
        let (run, wait) = (span(rng), span(rng));
        let _ = write!(
            text,
            "[disk.D]\nbase = \"{wait}\"\n[task.reader]\ncount = {}\n\
             do = \"loop(inf)[ run({run}), read(D, 4KiB) ]\"\n",
            1 + rng.below(2),
        );
    }
    // Children of both kinds; a replay takes the kind from the name.
    let kind = ["process", "thread"][usize::from(!seed.is_multiple_of(4))];
    let _ = write!(
        text,
        "[task.{kind}child]\nkind = \"{kind}\"\ncount = 0\n\
         do = \"run(uniform(50us, 20ms)), sleep(3ms), run(2ms)\"\n"
    );
    text.replace("fork(child)", &format!("fork({kind}child)"))
}

fn nice(rng: &mut Rng) -> i64 {
    match rng.below(3) {
        0 => 0,
        1 => 5 * i64::try_from(rng.below(8)).expect("small") - 20,
        _ => i64::try_from(rng.below(40)).expect("small") - 20,
    }
}

fn span(rng: &mut Rng) -> &'static str {
    SPANS[rng.below(SPANS.len() as u64) as usize]
}

fn body(rng: &mut Rng, task: u64, tasks: u64) -> String {
    let (run, sleep) = (span(rng), span(rng));
    let nice = nice(rng);
    let other = rng.below(tasks);
    match rng.below(8) {
        0 | 1 => "run(inf)".to_owned(),
        2 => format!("loop(inf)[ run({run}), yield ]"),
        3 => format!("loop(inf)[ run({run}), fork(child), sleep({sleep}), waitpid(any) ]"),
        4 => format!("loop(inf)[ run({run}), setnice(t{other}, {nice}), sleep({sleep}) ]"),
        5 => format!("run({run}), setnice(t{task}, {nice}), loop(inf)[ run(3ms), sleep({sleep}) ]"),
        _ => format!("loop(inf)[ run({run}), sleep({sleep}) ]"),
    }
}

const SPANS: &[&str] = &[
    "400us",
    "1ms",
    "2ms",
    "10ms",
    "uniform(20us, 900us)",
    "uniform(100us, 30ms)",
    "exp(5ms)",
    "exp(40ms)",
    "uniform(80ms, 300ms)",
];
