//! Tests of a `sched_ext` scheduler in `cargo test` of its own repository, without a kernel.
//!
//! ```
//! runslice_test::scheduler! {
//!     /// Four busy loops do not make the pointer late.
//!     fn the_pointer_moves(
//!         policy: "mlfq",                     // or "src/mine.bpf.c", "mine.bpf.o"
//!         load: "desk",
//!         machine: "8cpu-2llc-smt",
//!         limits: &["p99 wait of pointer < 20ms", "late < 1%"],
//!         duration: "500ms",
//!     );
//! }
//! ```
//!
//! No test passes whose policy is ejected or lets a task starve. A failure says the limit, the
//! value, the line of the policy and the command that repeats the run. Files are sought from the
//! folder of `Cargo.toml`, where cargo starts tests. A C source takes clang 16 or newer.

#![forbid(unsafe_code)]

mod failure;
mod machine;

use std::num::NonZeroUsize;

use ask::error::UsageError;
use ask::explain::{Explain, ExplainOf, Explanation};
use ask::goal::{Goal, Whose};
use ask::limit::Limit;
use ask::outcome::Outcome;
use ask::simulate::Simulate;
use ask::workload_arg::parse_duration;
use ask::{Services, policy};
use model::{Advised, seeds};
use runslice::{COMPUTER, Sources};
use workload::RunSpec;

pub use failure::TestFailure;

/// A test of a scheduler. All but policy and load has a default.
#[derive(Clone, Copy, Debug)]
pub struct Test<'a> {
    /// A built-in name, a BPF object, the program that has it inside, or a C source, with knobs
    /// behind a colon.
    pub policy: &'a str,
    /// A built-in load, or a TOML file.
    pub load: &'a str,
    /// Parameters of the load.
    pub scale: &'a [(&'a str, i64)],
    /// Words apart by commas: a topology as ktstr names its presets (`8cpu-2llc-smt`,
    /// `2numa-16cpu-4llc-nosmt`), and options of `runslice sim` (`cpus=4,hz=1000,kernel=7.2`).
    /// Empty: as the load says.
    pub machine: &'a str,
    /// Each a goal as of `runslice choose`, `<` or `>`, and a value: `late of audio < 1%`.
    pub limits: &'a [&'a str],
    /// Runs, which differ in their seeds. Each must keep all limits.
    pub runs: u32,
    /// Seed of the first run; `None`: that of the load.
    pub seed: Option<u64>,
    /// Longest simulated time, such as `2s`. Empty: until the load ends.
    pub duration: &'a str,
}

impl Default for Test<'_> {
    fn default() -> Self {
        Self {
            policy: "",
            load: "desk",
            scale: &[],
            machine: "",
            limits: &[],
            runs: 1,
            seed: None,
            duration: "",
        }
    }
}

/// Declares tests: see the crate's first page. The arguments are fields of [`Test`].
#[macro_export]
macro_rules! scheduler {
    ($($(#[$about:meta])* fn $name:ident($($field:ident: $value:expr),* $(,)?);)*) => {$(
        $(#[$about])*
        #[test]
        fn $name() {
            $crate::check(&$crate::Test {
                $($field: $value,)*
                ..$crate::Test::default()
            });
        }
    )*};
}

/// Simulates the policy under the load.
///
/// # Panics
/// If the policy breaks a limit, is ejected or lets a task starve, or if the test itself is wrong.
#[track_caller]
pub fn check(test: &Test<'_>) {
    if let Err(failure) = outcome(test) {
        panic!("{failure}");
    }
}

/// [`check`] without a panic.
///
/// # Errors
/// When it would panic; the message has several lines.
pub fn outcome(test: &Test<'_>) -> Result<(), Box<TestFailure>> {
    // A test's own thread has a small stack, and a workload may be nested.
    let stack = 8 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack);
        let started = thread.spawn_scoped(scope, || judged(test));
        let started = started.map_err(|error| TestFailure::wrong(&error.into()))?;
        let result = started.join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn judged(test: &Test<'_>) -> Result<(), Box<TestFailure>> {
    let sources = Sources::new();
    let services = Services {
        compiler: Some(&sources),
        ..COMPUTER
    };
    match broken(&services, test).map_err(|error| TestFailure::wrong(&error))? {
        Some(failure) => Err(Box::new(failure)),
        None => Ok(()),
    }
}

/// What the policy breaks, in the first run in which it does; `None` if it keeps all limits. It is
/// asked with what `services` lend.
///
/// # Errors
/// When the test itself is wrong, or nobody waits for the answer any more.
pub fn broken(services: &Services<'_>, test: &Test<'_>) -> anyhow::Result<Option<TestFailure>> {
    let services = Services {
        // Tests of a program run side by side, and a mistake is told in the failure.
        hears: None,
        words: None,
        programs: None,
        ..*services
    };
    test.broken(&services)
}

impl Test<'_> {
    /// See [`broken`].
    fn broken(&self, services: &Services<'_>) -> anyhow::Result<Option<TestFailure>> {
        let limits = self
            .limits
            .iter()
            .map(|text| Ok((*text, Limit::parse(text)?)));
        let limits: Vec<(&str, Limit)> = limits
            .collect::<Result<_, Advised>>()
            .map_err(UsageError::new)?;
        let question = self.question(services, &limits)?;
        let specs = question.specs(services).map_err(ask::Error::into_cause)?;
        let first = specs[0].clone();
        let simulated = question
            .run(services, specs)
            .map_err(ask::Error::into_cause)?;
        let runs = simulated.results.outcomes.iter().zip(&simulated.goals);
        for (number, (outcome, values)) in runs.enumerate() {
            let seed = seeds::of_run(first.seed, number as u64);
            let spec = RunSpec {
                seed,
                ..first.clone()
            };
            let found = broken_by(outcome, &limits, values)?;
            if let Some((limit, value, goal)) = found {
                let failure = self.failure(services, &spec, goal)?;
                return Ok(Some(failure.of(self, &limit, &value)));
            }
        }
        Ok(None)
    }

    fn question(
        &self,
        services: &Services<'_>,
        limits: &[(&str, Limit)],
    ) -> anyhow::Result<Simulate> {
        let wrong = |what: &str, advice: &str| UsageError::new(Advised::new(what, advice));
        if self.policy.is_empty() {
            return Err(wrong("there is no policy", "name one: policy: \"src/mine.bpf.c\"").into());
        }
        if self.runs == 0 {
            return Err(wrong("`runs: 0` tests nothing", "give 1 or more").into());
        }
        let duration = Some(self.duration).filter(|it| !it.is_empty());
        let duration = duration.map(parse_duration).transpose();
        let scale = self
            .scale
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Ok(Simulate {
            schedulers: vec![policy::open(services, self.policy)?],
            load: Some(ask::load_source::LoadSource::Named(self.load.into())),
            scale: scale.collect(),
            machine: machine::parse(self.machine)?,
            seed: self.seed,
            duration: duration.map_err(UsageError::new)?,
            runs: Some(self.runs),
            // Cargo runs tests on all CPUs.
            jobs: Some(NonZeroUsize::MIN),
            goals: limits.iter().map(|(_, it)| it.goal.clone()).collect(),
            ..Simulate::default()
        })
    }

    /// Why, with the line.
    fn failure(
        &self,
        services: &Services<'_>,
        spec: &RunSpec,
        goal: Option<&Goal>,
    ) -> anyhow::Result<TestFailure> {
        let task = goal.and_then(group_of);
        let explain = Explain {
            of: ExplainOf::Run(Box::new(spec.clone()), sim::Options::default()),
            task: task.clone(),
            worst: goal.map(|_| 1),
            right: None,
        };
        let explanation: Explanation = explain.ask(services).map_err(ask::Error::into_cause)?;
        Ok(TestFailure::explained(
            &explanation,
            self.again(spec.seed, goal.is_some(), task),
        ))
    }

    /// The command that explains the same run.
    fn again(&self, seed: u64, has_waits: bool, task: Option<String>) -> String {
        let mut words = ["runslice", "explain", self.policy, "-w", self.load]
            .map(str::to_owned)
            .to_vec();
        let mut put = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for (name, value) in self.scale {
            put("--scale", format!("{name}={value}"));
        }
        for (option, value) in machine::options(self.machine) {
            put(&option, value);
        }
        put("--seed", seed.to_string());
        if !self.duration.is_empty() {
            put("--duration", self.duration.to_owned());
        }
        if let Some(task) = task {
            put("--task", task);
        }
        if has_waits {
            put("--worst", "1".to_owned());
        }
        ask::words::command(&words)
    }
}

/// The limit that a run breaks, its value, and the goal that it is of.
type Broken<'a> = (String, String, Option<&'a Goal>);

fn broken_by<'a>(
    outcome: &Outcome,
    limits: &'a [(&str, Limit)],
    values: &[Option<f64>],
) -> anyhow::Result<Option<Broken<'a>>> {
    if let Some(ejection) = outcome.ejection() {
        return Ok(Some(("no ejection".to_owned(), ejection, None)));
    }
    if let Some(starved) = outcome.summary.starved.first() {
        let value = format!("{} waits for {} at the end", starved.name, starved.waited);
        return Ok(Some(("nobody starves".to_owned(), value, None)));
    }
    for ((text, limit), value) in limits.iter().zip(values) {
        let Some(value) = value else {
            let what = format!("`{text}`: the run has no such figure");
            return Err(UsageError::new(Advised::new(what, "test a longer run")).into());
        };
        if !limit.holds(*value) {
            let shown = show::report::runs::shown_value(limit.goal.measure(), *value);
            return Ok(Some(((*text).to_owned(), shown, Some(&limit.goal))));
        }
    }
    Ok(None)
}

/// The group of tasks that a goal names.
fn group_of(goal: &Goal) -> Option<String> {
    let (Goal::Time { whose, .. }
    | Goal::Late { whose, .. }
    | Goal::Work { whose, .. }
    | Goal::Cpu { whose }
    | Goal::Energy { whose }
    | Goal::Efficiency { whose }
    | Goal::End { whose }) = goal;
    match whose {
        Whose::Groups(name) if !name.contains('*') => Some(name.clone()),
        _ => None,
    }
}
