//! What candidates of a search came to: one document, for programs and for people.
//!
//! The document has no command line, time or cost of this computer: the same question gives the
//! same bytes.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::evaluate::limits::LimitKind;
use ask::evaluate::score::SearchScore;
use ask::evaluate::{self, Breach, Evaluation, GoalMetric, Stage, percent};
use ask::words;
use explain::why::Finding;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stats::compare::{Better, Measure};

use crate::report::runs::shown_value;
use crate::table::{Table, write_paragraph};

/// The status of a candidate that broke a limit, and of one that did not.
const REFUSED: &str = "refused";
const SCORED: &str = "scored";
/// The last stage of a candidate that the gate has judged.
const GATE: &str = Stage::Gate.word();

/// A candidate in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateDocument {
    /// As it was named.
    pub candidate: String,
    /// BLAKE3 of its object.
    pub object: Option<String>,
    /// Which draws.
    pub epoch: u64,
    /// `scored` or `refused`.
    pub status: String,
    /// The last stage.
    pub stage: String,
    /// The one number of a search, a log ratio to the baseline; -1 of a candidate that is refused.
    pub combined_score: f64,
    /// The ends of its interval; `None` where nothing bounds it.
    pub interval: [Option<f64>; 2],
    /// The load that it does worst at.
    pub worst_load: Option<String>,
    /// By load.
    pub loads: Vec<LoadDocument>,
    /// By load and goal.
    pub metrics: Vec<MetricDocument>,
    /// Limits that it broke.
    pub limits: Vec<LimitDocument>,
    /// What to change, in at most 4 KB.
    pub artifacts: ArtifactsDocument,
    /// What it took.
    pub cost: CostDocument,
}

/// A load in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadDocument {
    /// The load.
    pub load: String,
    /// Its mean log ratio, and the ends of the interval.
    pub score: f64,
    /// See `score`.
    pub interval: [Option<f64>; 2],
    /// Whether it is shown worse by more than 5 %.
    pub shown_worse: bool,
}

/// A goal of a load in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricDocument {
    /// The load.
    pub load: String,
    /// The goal.
    pub goal: String,
    /// The unit: `nanos`, `millionths`, `rate`, ...
    pub measure: Measure,
    /// `lower` or `higher`.
    pub better: String,
    /// How much it counts.
    pub weight: f64,
    /// Means, in the unit.
    pub baseline: Option<f64>,
    /// See `baseline`.
    pub candidate: Option<f64>,
    /// Mean log ratio, positive if the candidate is better, and the ends of the interval.
    pub gain: f64,
    /// See `gain`.
    pub interval: [Option<f64>; 2],
    /// Both means, for people.
    pub shown: Option<[String; 2]>,
}

/// A limit that was broken, in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitDocument {
    /// The limit.
    pub limit: String,
    /// The load.
    pub load: Option<String>,
    /// Runs that broke it, and all of them.
    pub runs: [usize; 2],
    /// The facts.
    pub words: String,
    /// What to do.
    pub advice: String,
    /// What `explain` says of the run.
    pub finding: Option<FindingDocument>,
    /// A file with the run, for `runslice explain`.
    pub capsule: Option<String>,
}

/// A finding in short, in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingDocument {
    /// Its class.
    pub fault: String,
    /// The same as a sentence.
    pub sentence: String,
    /// The task.
    pub victim: Option<String>,
    /// The file of the line to look at.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
}

/// Texts for whoever writes the next candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactsDocument {
    /// What to change.
    pub advice: String,
}

/// What an evaluation took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostDocument {
    /// Runs.
    pub runs: u64,
    /// Simulated time.
    pub simulated_ns: u64,
    /// BPF instructions.
    pub instructions: u64,
}

/// What is the same for all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationFrame {
    /// The file that they were evaluated by.
    pub spec: String,
    /// What they were held against.
    pub baseline: String,
    /// SHA-256 of the key, in hexadecimal; `None`: everybody can know the draws.
    pub key_sha256: Option<String>,
}

impl CandidateDocument {
    /// Of an evaluation whose broken limits have capsules of these names.
    #[must_use]
    pub fn of(evaluation: &Evaluation, epoch: u64, capsules: &[Option<String>]) -> Self {
        let scored = evaluation.scored.as_ref();
        let loads = scored.iter().flat_map(|it| &it.loads);
        let loads: Vec<LoadDocument> = loads
            .map(|it| LoadDocument {
                load: it.load.clone(),
                score: it.score[0],
                interval: ends(it.score),
                shown_worse: it.is_worse,
            })
            .collect();
        let worst = loads.iter().min_by(|a, b| a.score.total_cmp(&b.score));
        let cost = evaluation.cost;
        let whole = Self {
            candidate: evaluation.candidate.clone(),
            object: evaluation.object.clone(),
            epoch,
            status: if evaluation.is_refused() {
                REFUSED.to_owned()
            } else {
                SCORED.to_owned()
            },
            stage: evaluation.stage.word().to_owned(),
            combined_score: evaluation.combined(),
            interval: scored.map_or([None, None], |it| ends(it.combined_bounds())),
            worst_load: worst.map(|it| it.load.clone()),
            loads,
            metrics: evaluation.metrics.iter().map(metric).collect(),
            limits: LimitDocument::all(&evaluation.breaches, capsules),
            artifacts: ArtifactsDocument {
                advice: evaluate::artifact(evaluation),
            },
            cost: CostDocument {
                runs: cost.runs,
                simulated_ns: cost.simulated.get(),
                instructions: cost.instructions,
            },
        };
        whole.rounded()
    }

    /// The same with nine digits of each number. Readers of JSON may take a neighbour of a longer
    /// one, and an answer that was kept is to have the bytes that it had.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        let round = |ends: &mut [Option<f64>; 2]| {
            for end in ends.iter_mut().flatten() {
                *end = nine_digits(*end);
            }
        };
        self.combined_score = nine_digits(self.combined_score);
        round(&mut self.interval);
        for load in &mut self.loads {
            load.score = nine_digits(load.score);
            round(&mut load.interval);
        }
        for metric in &mut self.metrics {
            (metric.gain, metric.weight) = (nine_digits(metric.gain), nine_digits(metric.weight));
            metric.baseline = metric.baseline.map(nine_digits);
            metric.candidate = metric.candidate.map(nine_digits);
            round(&mut metric.interval);
        }
        self
    }

    /// Whether a limit was broken that refuses it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.status == REFUSED
    }
}

fn nine_digits(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

/// The ends of an interval that has some.
fn ends([_, low, high]: [f64; 3]) -> [Option<f64>; 2] {
    [low, high].map(|it| Some(it).filter(|it| it.is_finite()))
}

fn metric(metric: &GoalMetric) -> MetricDocument {
    let shown = metric
        .means
        .map(|(base, other)| [base, other].map(|it| shown_value(metric.measure, it)));
    MetricDocument {
        load: metric.load.clone(),
        goal: metric.goal.clone(),
        measure: metric.measure,
        better: match metric.better {
            Better::Higher => "higher".to_owned(),
            _ => "lower".to_owned(),
        },
        weight: metric.weight,
        baseline: metric.means.map(|it| it.0),
        candidate: metric.means.map(|it| it.1),
        gain: metric.gain[0],
        interval: ends(metric.gain),
        shown,
    }
}

impl LimitDocument {
    /// Of limits that were broken, each in the run that the capsule of its number has.
    #[must_use]
    pub fn all(breaches: &[Breach], capsules: &[Option<String>]) -> Vec<Self> {
        let capsule = |at: usize| capsules.get(at).cloned().flatten();
        let breaches = breaches.iter().enumerate();
        breaches.map(|(at, it)| Self::of(it, capsule(at))).collect()
    }

    fn of(breach: &Breach, capsule: Option<String>) -> Self {
        Self {
            limit: breach.limit.word().to_owned(),
            load: breach.load.clone(),
            runs: breach.draws,
            words: breach.words.clone(),
            advice: breach.advice().to_owned(),
            finding: breach.finding.as_ref().map(finding),
            capsule,
        }
    }

    /// The command that shows the run: `explain` where it says more than the figures do.
    fn again(&self) -> Option<String> {
        let capsule = words::quoted(self.capsule.as_ref()?);
        let is = |kind: LimitKind| self.limit == kind.word();
        Some(if is(LimitKind::Ejected) || is(LimitKind::Fault) {
            format!("runslice explain {capsule}")
        } else if is(LimitKind::Starvation) {
            format!("runslice explain {capsule} --worst 1")
        } else {
            format!("runslice sim {capsule}")
        })
    }

    /// For people.
    #[must_use]
    pub fn line(&self) -> String {
        let load = self.load.as_ref().map(|it| format!(" under {it}"));
        let (load, words) = (load.unwrap_or_default(), self.words.trim_end());
        let [broken, all] = self.runs;
        let runs = match all {
            0 => String::new(),
            all => format!(" (in {broken} of {all} runs)"),
        };
        let capsule = self.again();
        let capsule = capsule.map(|it| format!(" `{it}` shows it."));
        let capsule = capsule.unwrap_or_default();
        format!(
            "`{}`{load}{runs}: {words}.{capsule} {}",
            self.limit, self.advice
        )
    }
}

fn finding(finding: &Finding) -> FindingDocument {
    let line = finding.culprit.as_ref().and_then(|act| act.place.as_ref());
    FindingDocument {
        fault: finding.fault.word().to_owned(),
        sentence: finding.fault.sentence().to_owned(),
        victim: finding.victim.as_ref().map(|it| it.name.clone()),
        file: line.and_then(|it| it.file.clone()),
        line: line.map(|it| it.line),
        function: line.map(|it| it.function.clone()),
    }
}

/// The document.
#[must_use]
pub fn document(frame: &EvaluationFrame, candidates: &[CandidateDocument]) -> Value {
    json!({
        AnswerKind::Evaluation.key(): AnswerKind::Evaluation.version(),
        "version": crate::VERSION,
        "spec": frame.spec,
        "baseline": frame.baseline,
        "held_out": frame.key_sha256.is_some(),
        "key_sha256": frame.key_sha256,
        "candidates": candidates,
    })
}

/// Writes the document.
///
/// # Errors
/// When `to` does not take it.
pub fn json(
    frame: &EvaluationFrame,
    candidates: &[CandidateDocument],
    to: &mut dyn Write,
) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &document(frame, candidates))?;
    writeln!(to)
}

/// Writes the answer for people, in at most `room` columns: the candidates from the best to the
/// worst, and why those are refused that are.
///
/// # Errors
/// When `to` does not take it.
pub fn text(
    frame: &EvaluationFrame,
    candidates: &[CandidateDocument],
    room: usize,
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut order: Vec<&CandidateDocument> = candidates.iter().collect();
    order.sort_by(|a, b| b.combined_score.total_cmp(&a.combined_score));
    let mut table = Table::default()
        .names("candidate")
        .names("status")
        .numbers("score")
        .numbers("interval")
        .rank(1)
        .names("worst load")
        .rank(2);
    for candidate in &order {
        table.row([
            candidate.candidate.clone(),
            candidate.status.clone(),
            score(candidate),
            interval(candidate),
            candidate.worst_load.clone().unwrap_or_default(),
        ]);
    }
    table.fit(Some(room)).0.write(to)?;
    writeln!(to)?;
    let mut say = |line: &str| write_paragraph(line, room, to);
    for candidate in order {
        for limit in &candidate.limits {
            say(&format!("{} breaks {}", candidate.candidate, limit.line()))?;
        }
    }
    // Whoever does not need a key knows all draws.
    let kind = frame.key_sha256.as_ref();
    let kind = kind.map_or("", |_| ", which are held out");
    for candidate in candidates
        .iter()
        .filter(|it| it.stage == GATE && !it.is_refused())
    {
        say(&format!(
            "{}: no limit is broken in the gate's draws{kind}.",
            candidate.candidate
        ))?;
    }
    let baseline = &frame.baseline;
    say(&format!(
        "Scores are changes against {baseline}; more is better."
    ))?;
    match &frame.key_sha256 {
        Some(hash) => say(&format!("Drawn from the key of SHA-256 {hash}.")),
        None => say(
            "Not held out: without --secret everybody can know the draws, and write a policy for \
             them.",
        ),
    }
}

fn score(candidate: &CandidateDocument) -> String {
    if candidate.is_refused() {
        return "-".to_owned();
    }
    percent(candidate.combined_score)
}

fn interval(candidate: &CandidateDocument) -> String {
    if candidate.is_refused() {
        return "-".to_owned();
    }
    between(candidate.interval)
}

fn between(interval: [Option<f64>; 2]) -> String {
    match interval {
        [Some(low), Some(high)] => format!("{} to {}", percent(low), percent(high)),
        _ => "-".to_owned(),
    }
}

/// A nominee in the document of a search that is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SealedDocument {
    /// As it was named.
    pub candidate: String,
    /// Its score in the open draws, if the search has one.
    pub open_score: Option<f64>,
    /// Its score in the sealed draws: the gain that may be reported.
    pub sealed_score: f64,
    /// The ends of its interval.
    pub interval: [Option<f64>; 2],
    /// Whether it is shown better than the baseline, by Holm over all nominees.
    pub shown_better: bool,
    /// Limits that it broke.
    pub limits: Vec<LimitDocument>,
}

impl SealedDocument {
    /// Of a nominee that came to `scored`, and broke `breaches`.
    #[must_use]
    pub fn of(
        (candidate, open_score): (String, Option<f64>),
        (scored, breaches): (&SearchScore, &[Breach]),
        is_shown: bool,
    ) -> Self {
        Self {
            candidate,
            open_score,
            sealed_score: scored.score[0],
            interval: ends(scored.score),
            shown_better: is_shown && breaches.is_empty(),
            limits: LimitDocument::all(breaches, &[]),
        }
    }
}

/// The document of a search that is over, with its key, which is spent.
#[must_use]
pub fn sealed_document(frame: &EvaluationFrame, nominees: &[SealedDocument], key: &str) -> Value {
    json!({
        AnswerKind::Evaluation.key(): AnswerKind::Evaluation.version(),
        "version": crate::VERSION,
        "spec": frame.spec,
        "baseline": frame.baseline,
        "held_out": true,
        "key_sha256": frame.key_sha256,
        "key_hex": key,
        "nominees": nominees,
    })
}

/// The same for people.
///
/// # Errors
/// When `to` does not take it.
pub fn sealed_text(
    frame: &EvaluationFrame,
    nominees: &[SealedDocument],
    (key, room): (&str, usize),
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut table = Table::default()
        .names("nominee")
        .numbers("sealed")
        .numbers("interval")
        .rank(1)
        .numbers("open")
        .rank(2)
        .names("answer");
    for it in nominees {
        let answer = match (it.shown_better, it.limits.first()) {
            (true, _) => "shown better".to_owned(),
            (false, Some(limit)) => format!("breaks `{}`", limit.limit),
            (false, None) => "not shown better".to_owned(),
        };
        let open = it.open_score.map_or("-".to_owned(), percent);
        table.row([
            it.candidate.clone(),
            percent(it.sealed_score),
            between(it.interval),
            open,
            answer,
        ]);
    }
    table.fit(Some(room)).0.write(to)?;
    let baseline = &frame.baseline;
    let told = [
        format!("The gain against {baseline} is the sealed one; the open one had its luck."),
        format!("The key is spent. In hexadecimal: {key}"),
    ];
    writeln!(to)?;
    told.iter()
        .try_for_each(|line| write_paragraph(line, room, to))
}
