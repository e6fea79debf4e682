//! Random machines and loads, among which some may show a fault of a policy.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use ask::explain::Explanation;
use ask::hunt::{Hunt, Range};
use ask::key::fingerprint;
use ask::like::Like;
use ask::right;
use ask::shrink::Case;
use ask::violation::{Property, Signature, explains};
use ask::workload_arg::Written;
use runslice::door::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::parts::{MachinePart, PreparePart};
use crate::answer::Answered;
use crate::arguments::{Arguments, all_parsed, parsed, within};
use crate::desk::Desk;

/// Trials where the call does not say how many.
const TRIALS: u64 = 200;
/// Most trials of a call.
const TRIALS_MAX: u64 = 1_000_000;
/// Trials between two looks at the clock.
const ROUND: u64 = 16;

/// What a search is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HuntPart {
    /// Policy to search, as those of `sim`, or a bundle.
    policy: String,
    /// A kernel's debug dump: search for a run that ends as it does.
    like: Option<String>,
    /// Earlier version of the policy: only faults that it does not show in the same run are told.
    against: Option<String>,
    /// Workload of all trials. Default: each trial has a random load.
    workload: Option<String>,
    /// Parameters of the workload, by name.
    #[serde(default)]
    scale: BTreeMap<String, i64>,
    /// Properties that every run must have besides, such as "wait < 100ms", "weights" or "share".
    #[serde(default)]
    properties: Vec<String>,
    /// Right by which shares of the CPUs are judged: weight, cgroup, rank, deadline or none.
    right: Option<String>,
    /// Seed of the trials. The same seed tries the same machines and loads. Default: 1.
    seed: Option<u64>,
    /// Number of the first trial; a search goes on where another call ended. Default: 0.
    first: Option<u64>,
    /// Number of trials. Default: 200. Fewer are made where the time ends before.
    trials: Option<u64>,
    /// Go on after the first fault, and tell each fault once.
    #[serde(default)]
    all: bool,
}

/// Makes trials until a fault shows, all are made, or three quarters of the time are over.
///
/// # Errors
/// When an argument or the policy is wrong.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: HuntPart = arguments.take()?;
    let question = own.question(arguments, desk)?;
    let first = own.first.unwrap_or(0);
    let trials = within("trials", own.trials, 1..=TRIALS_MAX)?.unwrap_or(TRIALS);
    let last = first.saturating_add(trials);
    let mut search = Search {
        question: &question,
        desk,
        found: Vec::new(),
        next: first,
    };
    while search.next < last && !desk.is_late() && (own.all || search.found.is_empty()) {
        search.round(last, own.all)?;
    }
    let Search { found, next, .. } = search;
    let is_found = !found.is_empty();
    let is_cut = next < last && (own.all || !is_found);
    let document = json!({
        "policy": question.policy.name,
        "seed": question.seed,
        "first": first,
        "next": next,
        "found": found.into_iter().map(|it| it.1).collect::<Vec<_>>(),
    });
    let late = || format!("the time was over before trial {next}: go on with `first`");
    Ok(Answered {
        document,
        status: if is_found {
            Status::Ejected
        } else {
            Status::Done
        },
        notes: is_cut.then(late).into_iter().collect(),
    })
}

impl HuntPart {
    fn question(&self, arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Hunt> {
        let machine: MachinePart = arguments.take()?;
        let prepare: PreparePart = arguments.take()?;
        let found = prepare.policy(desk, &self.policy)?;
        let question = Hunt::new(&desk.services, found, machine.change()?)?;
        let against = self.against.as_deref();
        let against = against.map(|word| prepare.policy(desk, word)).transpose()?;
        let right = parsed("right", self.right.as_deref(), right::parse)?;
        let mut properties = all_parsed("properties", &self.properties, Property::parse)?;
        properties.extend(right.map(Property::Right));
        let workload = self.workload.as_deref().map(|name| {
            let scale = self
                .scale
                .iter()
                .map(|(name, value)| (name.clone(), *value));
            anyhow::Ok((Written::find(&desk.services, name)?, scale.collect()))
        });
        let like = self.like.as_deref();
        let like = like.map(|it| Like::open(&desk.services, Path::new(it)));
        Ok(Hunt {
            range: Range {
                workload: workload.transpose()?,
                like: like.transpose()?,
                ..question.range
            },
            seed: self.seed.unwrap_or(question.seed),
            properties,
            against: against.map(|it| it.policy),
            ..question
        })
    }
}

struct Search<'a> {
    question: &'a Hunt,
    desk: &'a Desk<'a>,
    /// Each fault with what is told of it.
    found: Vec<(String, Value)>,
    next: u64,
}

impl Search<'_> {
    /// Makes the next trials below `last`.
    fn round(&mut self, last: u64, all: bool) -> anyhow::Result<()> {
        let services = &self.desk.services;
        let numbers: Vec<u64> = (self.next..last.min(self.next.saturating_add(ROUND))).collect();
        let trial = |number: &u64| {
            let found = self.question.trial(services, *number);
            found.map_err(ask::Error::into_cause)
        };
        let jobs = services.jobs(self.desk.jobs());
        let results = services.map(&numbers, jobs, "trials", trial)?;
        for (number, result) in numbers.into_iter().zip(results) {
            self.next = number + 1;
            let Some((case, finding)) = result else {
                continue;
            };
            let fault = Signature::of(&finding).text();
            if self.found.iter().any(|it| it.0 == fault) {
                continue;
            }
            let word = finding.fault.word();
            let explanation = Explanation {
                finding: Some(finding),
                ..Explanation::default()
            };
            let told = self.told((number, word, &fault), &case, explanation)?;
            self.found.push((fault, told));
            if !all {
                break;
            }
        }
        Ok(())
    }

    /// The file with the run, whose name begins with `front`, if there is a folder for it. After a
    /// change of the policy it is another one.
    fn kept(&self, front: &str, case: &Case) -> anyhow::Result<Option<String>> {
        if self.desk.owner.folder.is_none() {
            return Ok(None);
        }
        let bytes = case.capsule(&self.desk.services)?.write();
        let name = format!("{front}-{:08x}.bundle", fingerprint(&bytes) >> 96);
        self.desk.keep(&name, &bytes).map(Some)
    }

    /// What is told of a fault. Its run is kept where that is allowed.
    fn told(
        &self,
        (number, word, fault): (u64, &str, &str),
        case: &Case,
        explanation: Explanation,
    ) -> anyhow::Result<Value> {
        let services = &self.desk.services;
        let spec = case.spec(services)?;
        let mut explanation = explanation.tried(services, &spec, sim::Options::default())?;
        let policy: String = case.policy.name.chars().map(letter).collect();
        let front = format!("{word}-{policy}-{}-{number}", self.question.seed);
        let capsule = self.kept(&front, case)?;
        let file = capsule.as_ref().map(Path::new);
        explanation.again = file.map(|it| explains(it, &self.question.properties));
        let explanation = show::explanation::json::of(&explanation);
        let explanation: Value = serde_json::from_str(&explanation).context("our own JSON")?;
        Ok(json!({
            "fault": fault,
            "trial": number,
            "capsule": capsule,
            "workload": case.workload.text,
            "explanation": explanation,
        }))
    }
}

/// What of a policy's name can stand in that of a file.
fn letter(letter: char) -> char {
    match letter {
        '-' | '_' | '.' | '=' | ',' => letter,
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    }
}
