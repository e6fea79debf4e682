//! Whether sets of runs differ.

use ask::compare::{self, FailIf, parse_percent, refuse_nothing};
use ask::sets::{self, File};
use ask::simulate::RUNS_MAX;
use schemars::JsonSchema;
use serde::Deserialize;
use show::Origin;
use show::comparison::{Compared, json};
use show::report::json::write_runs;

use super::parts::{simulate, written};
use crate::answer::Answered;
use crate::arguments::{Arguments, parsed, usage, within};
use crate::desk::Desk;

/// The arguments of the comparison, where the others are of the runs.
const JUDGING: [&str; 6] = [
    "again",
    "baseline",
    "fail_if",
    "margin",
    "metrics",
    "resample_seed",
];
/// Runs of each policy where the call does not say how many.
const RUNS: u32 = 20;

/// What of a comparison no other tool has.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ComparePart {
    /// Files or folders with results of `sim` with several runs. Of one, its policies are compared;
    /// of several, each with the first. Give either these or `policies`.
    #[serde(default)]
    sets: Vec<String>,
    /// Policies to simulate and to compare with the first, as those of `sim`.
    #[serde(default)]
    policies: Vec<String>,
    /// Runs of each policy of `policies`, at least 6. Default: 20.
    runs: Option<u64>,
    /// The policy to compare with. Default: the first.
    baseline: Option<String>,
    /// A policy that is the baseline once more, to estimate noise.
    again: Option<String>,
    /// Metrics to compare, such as `all.wakeup_ns_p99`; `*` stands for any text. Default: the goals
    /// of the workload.
    #[serde(default)]
    metrics: Vec<String>,
    /// Smallest change that matters, in per cent. Default: 3.
    margin: Option<f64>,
    /// Seed of the random resampling. Default: 1.
    resample_seed: Option<u64>,
    /// What is not to happen: slower, slower=PERCENT or different. The status is 5 if it does.
    fail_if: Option<String>,
}

/// Reads the sets or makes the runs, and compares.
///
/// # Errors
/// When an argument or a file is wrong, or nothing can be compared.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: ComparePart = arguments.take()?;
    let margin = own.margin.map(|it| it.to_string());
    let question = compare::Compare {
        files: own.sets.iter().map(Into::into).collect(),
        baseline: own.baseline.clone(),
        again: own.again.clone(),
        metrics: own.metrics.clone(),
        margin: parsed("margin", margin.as_deref(), parse_percent)?.unwrap_or(0.03),
        resample_seed: own.resample_seed.unwrap_or(1),
        fail_if: parsed("fail_if", own.fail_if.as_deref(), FailIf::parse)?,
    };
    let files = match (own.sets.is_empty(), own.policies.is_empty()) {
        (false, true) => {
            if own.runs.is_some() {
                let what = "`runs` has no effect: `sets` are results of runs that were made";
                return Err(usage(what, "leave it out").into());
            }
            arguments.finish("`sets` are results of runs that were made")?;
            sets::read_all(&desk.services, &question.files)?
        }
        (true, false) => vec![own.simulated(arguments, desk)?],
        _ => {
            let what = "give either `sets` or `policies`";
            return Err(usage(what, "`policies` are simulated, `sets` are read").into());
        }
    };
    let judged = question.judge(files).map_err(ask::Error::into_cause)?;
    refuse_nothing(&judged.rows)?;
    let compared = Compared {
        family: &judged.family,
        rows: &judged.rows,
        settings: &judged.settings,
    };
    let origin = Origin::new(own.command(arguments));
    let document = written(|to| json(&compared, &origin, to))?;
    Ok(Answered {
        status: judged.ending.into(),
        ..Answered::done(document)
    })
}

impl ComparePart {
    /// The command line that asks for the same: what it compares it does not make itself.
    fn command(&self, arguments: &Arguments) -> Vec<String> {
        if self.policies.is_empty() {
            return arguments.command("compare", &["sets"]);
        }
        let judges = |name: &str| JUDGING.contains(&name);
        let sim = arguments.only(|name| !judges(name));
        let mut sim = sim.command("sim", &["policies"]);
        if self.runs.is_none() {
            sim.extend(["--runs".to_owned(), RUNS.to_string()]);
        }
        sim.extend(["--format", "json"].map(str::to_owned));
        let mut compare = arguments.only(judges).command("compare", &[]);
        compare.insert(2, "-".to_owned());
        let both = [sim, compare].map(|words| Origin::new(words).command());
        vec!["sh".to_owned(), "-c".to_owned(), both.join(" | ")]
    }

    /// The runs of the policies, as the file of them that `sim` writes.
    fn simulated(&self, arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<File> {
        let mut question = simulate(&self.policies, arguments, desk)?;
        let runs = within("runs", self.runs, 6..=RUNS_MAX.into())?;
        question.runs = Some(runs.unwrap_or(RUNS));
        let simulated = question.ask(&desk.services);
        let results = simulated.map_err(ask::Error::into_cause)?.results;
        let origin = Origin::new(arguments.command("sim", &["policies"]));
        let document = written(|to| write_runs(&results, &origin, to))?;
        File::of_document("runs.json", &document)
    }
}
