//! `runslice evaluate SPEC CANDIDATE...`: how good policies are that programs write.

mod kept;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ask::evaluate::draw::Secret;
use ask::evaluate::score::{self, SearchScore};
use ask::evaluate::search::{GATE_EVERY, NOMINEES, Nominee};
use ask::evaluate::spec::Spec;
use ask::evaluate::{Evaluator, Opened, Stage};
use ask::key::bytes_of_policy;
use ask::policy;
use clap::Args;
use model::{Advised, PolicySpec};
use show::Format;
use show::evaluation::{self, CandidateDocument, EvaluationFrame, SealedDocument};
use show::format::MEASURED;
use stats::compare::{Settings, runs_to_decide};

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::output;
use crate::report::format_of;
use crate::say::say;
use crate::store::{Key, SIMULATES};
use crate::{interrupt, look, secret};

use kept::Kept;

/// Arguments of `runslice evaluate`.
#[derive(Debug, Args)]
pub struct Evaluate {
    /// TOML file with goals, loads, machines, limits and the baseline. docs/evaluate.md describes
    /// it.
    spec: PathBuf,

    /// Policies to evaluate: built-in names, BPF objects or C sources, with knobs after a colon.
    #[arg(required_unless_present = "seal")]
    candidates: Vec<String>,

    /// Read the key of the draws from this file descriptor, such as 3 with `3< key`. Whoever does
    /// not know the key cannot write a policy for the draws. Default: a key that everybody can
    /// know, and the answer says so.
    #[arg(long, value_name = "FD")]
    secret: Option<u32>,

    /// Epoch of the draws. Default: the one that the search in the folder has come to; it counts
    /// an epoch for each 100 evaluations.
    #[arg(long, value_name = "NUMBER")]
    epoch: Option<u64>,

    /// Ask the gate, which says only whether a limit is broken in draws that are held out. It
    /// answers once in 20 evaluations; others are told so.
    #[arg(long)]
    gate: bool,

    /// End the search: judge the best five of it, or at most five CANDIDATEs, in the sealed draws,
    /// and print the key, which is spent then.
    #[arg(long, requires = "secret", conflicts_with = "gate")]
    seal: bool,

    /// Folder for answers, which are not made twice, and for how far the search is. Default: the
    /// file's name, ending in .evaluated.
    #[arg(short = 'd', long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Threads. The number does not change the answer. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Output format. Default: what the ending of the output file stands for (.json), else `human`.
    #[arg(long, value_parser = format_of(MEASURED))]
    format: Option<Format>,

    /// Write the answer to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Evaluates the candidates, or ends the search.
///
/// # Errors
/// When the file, the baseline or the key is bad, or a candidate cannot be read.
pub fn run(request: &Evaluate) -> anyhow::Result<Status> {
    let form = output::form(request.format, request.output.as_deref(), MEASURED)?;
    output::spare(
        &[("the spec", Some(&request.spec))],
        &[("--output", request.output.as_deref())],
    )?;
    let spec = Spec::read(&COMPUTER, &request.spec)?;
    let key = request.secret.map(secret::read).transpose()?;
    let folder = match &request.folder {
        Some(folder) => folder.clone(),
        None => request.spec.with_extension("evaluated"),
    };
    let kept = Kept::open(&folder, &spec.asked(), key.as_deref().map(secret::sha256))?;
    interrupt::keeps("answers", &folder);
    let search = Search {
        request,
        spec: &spec,
        key,
        kept,
    };
    if request.seal {
        search.seal(form)
    } else {
        search.evaluate(form)
    }
}

/// A search that goes on in a folder.
struct Search<'a> {
    request: &'a Evaluate,
    spec: &'a Spec,
    key: Option<Vec<u8>>,
    kept: Kept,
}

impl<'a> Search<'a> {
    fn secret(&self) -> Secret {
        match &self.key {
            Some(key) => Secret::of(key),
            None => Secret::of(self.spec.text.as_bytes()),
        }
    }

    fn evaluator(&self, epoch: u64) -> anyhow::Result<Evaluator<'a>> {
        Evaluator::new(
            &COMPUTER,
            self.spec,
            (self.secret(), epoch),
            self.request.jobs,
        )
    }

    fn frame(&self) -> EvaluationFrame {
        EvaluationFrame {
            spec: self.request.spec.display().to_string(),
            baseline: self.spec.baseline.policy.name.clone(),
            key_sha256: self.key.as_deref().map(secret::sha256),
        }
    }

    fn evaluate(mut self, form: Format) -> anyhow::Result<Status> {
        self.kept.check_unspent()?;
        let mut documents = Vec::new();
        let mut words = self.request.candidates.iter().peekable();
        // More candidates than an epoch has are several epochs.
        while words.peek().is_some() {
            let epoch = self.epoch();
            let evaluator = self.evaluator(epoch)?;
            if self.request.epoch.is_none() {
                judge_anew(&evaluator, &mut self.kept)?;
            }
            while self.epoch() == epoch
                && let Some(word) = words.next()
            {
                let course = (epoch, self.request.gate);
                documents.push(one(&evaluator, &mut self.kept, word, course)?);
            }
        }
        let mut to = output::open(self.request.output.as_deref())?;
        let frame = self.frame();
        match form {
            Format::Json => evaluation::json(&frame, &documents, &mut to)?,
            _ => evaluation::text(&frame, &documents, look::width(), &mut to)?,
        }
        to.flush()?;
        let is_refused = documents.iter().any(CandidateDocument::is_refused);
        Ok(if is_refused {
            Status::Ejected
        } else {
            Status::Done
        })
    }

    /// The epoch of the next candidate.
    fn epoch(&self) -> u64 {
        self.request.epoch.unwrap_or(self.kept.ledger.epoch())
    }

    /// Judges the nominees in draws that no search has seen.
    fn seal(mut self, form: Format) -> anyhow::Result<Status> {
        self.kept.check_unspent()?;
        let evaluator = self.evaluator(0)?;
        let nominees = self.nominees(&evaluator)?;
        let mut judged = Vec::new();
        for (_, _, policy) in &nominees {
            judged.push(evaluator.sealed(policy)?);
        }
        let scores: Vec<SearchScore> = judged.iter().map(|it| it.0.clone()).collect();
        let shown = score::shown_better(&scores, &Settings::default());
        let documents: Vec<SealedDocument> = nominees
            .into_iter()
            .zip(&judged)
            .zip(shown)
            .map(|(((word, open, _), (scored, breaches)), is_shown)| {
                SealedDocument::of((word, open), (scored, breaches), is_shown)
            })
            .collect();
        drop(evaluator);
        self.kept.spend()?;
        let key = secret::hex(self.key.as_deref().unwrap_or_default());
        let mut to = output::open(self.request.output.as_deref())?;
        let frame = self.frame();
        match form {
            Format::Json => {
                let document = evaluation::sealed_document(&frame, &documents, &key);
                writeln!(to, "{document:#}")?;
            }
            _ => evaluation::sealed_text(&frame, &documents, (&key, look::width()), &mut to)?,
        }
        to.flush()?;
        let is_shown = documents.iter().any(|it| it.shown_better);
        Ok(if is_shown {
            Status::Done
        } else {
            Status::Inconclusive
        })
    }

    /// Those that the user names, or the best of the search, with their open scores.
    fn nominees(
        &self,
        evaluator: &Evaluator<'_>,
    ) -> anyhow::Result<Vec<(String, Option<f64>, PolicySpec)>> {
        let named = &self.request.candidates;
        let draws = self.spec.draws;
        // The key is spent, whatever comes of it.
        let level = Settings::default().level();
        let can_decide = |it: &usize| runs_to_decide(*it, true, level) <= draws as usize;
        let most = (1..=NOMINEES).rev().find(can_decide).unwrap_or(1);
        let count = named.len().max(self.kept.ledger.best.len());
        let message = match (count, named.len()) {
            (0, _) => Some("the search has no candidate yet".to_owned()),
            (_, more) if more > NOMINEES => {
                Some(format!("{more} nominees are more than {NOMINEES}"))
            }
            (_, more) if more > most => Some(format!(
                "{draws} draws cannot show any of {more} nominees better, only of {most}"
            )),
            _ => None,
        };
        if let Some(message) = message {
            let advice = format!("name at most {most}");
            return Err(UsageError::new(Advised::new(message, advice)).into());
        }
        if named.is_empty() {
            let best = self.kept.ledger.best.iter().take(most);
            let best = best.map(|it| {
                let policy = policy::find(&COMPUTER, &self.kept.path_of(it))?;
                Ok((it.candidate.clone(), Some(it.score), policy))
            });
            return best.collect();
        }
        let mut nominees = Vec::new();
        for word in named {
            let Opened::Found(found) = evaluator.open(word)? else {
                let message = Advised::new(format!("{word} does not compile"), "name another");
                return Err(UsageError::new(message).into());
            };
            let id = id_of(&found.policy);
            let best = self.kept.ledger.best.iter().find(|it| it.id == id);
            nominees.push((word.clone(), best.map(|it| it.score), found.policy));
        }
        Ok(nominees)
    }
}

/// Judges the best of the last epoch in the draws of this one.
fn judge_anew(evaluator: &Evaluator<'_>, kept: &mut Kept) -> anyhow::Result<()> {
    for nominee in kept.ledger.to_judge_anew() {
        let found = policy::open(&COMPUTER, &kept.path_of(&nominee))?;
        let evaluation = evaluator.evaluate(&nominee.candidate, &found, false)?;
        kept.change(|ledger| ledger.judged_anew(&nominee.id, evaluation.combined()))?;
        let (name, old, new) = (&nominee.candidate, nominee.score, evaluation.combined());
        say(
            "evaluate",
            &format!("{name} in new draws: {new:.4}, it was {old:.4}"),
        );
    }
    Ok(())
}

/// The number of a policy with what is set in it and what is below it.
fn id_of(policy: &PolicySpec) -> String {
    Key::of(SIMULATES, bytes_of_policy(policy)).to_string()
}

/// Evaluates one candidate, unless that was done before.
fn one(
    evaluator: &Evaluator<'_>,
    kept: &mut Kept,
    word: &str,
    (epoch, wants_gate): (u64, bool),
) -> anyhow::Result<CandidateDocument> {
    let found = match evaluator.open(word)? {
        Opened::Found(found) => found,
        Opened::Refused(refused) => {
            kept.change(|ledger| ledger.evaluated(None, false))?;
            return Ok(CandidateDocument::of(&refused, epoch, &[]));
        }
    };
    let id = id_of(&found.policy);
    let has_gate = wants_gate && kept.ledger.may_ask_gate();
    let answer = |has_gate: bool| format!("{id} {epoch} {has_gate}");
    // An answer of the gate that is there already is no new one.
    let known = wants_gate.then(|| kept.get(&answer(true))).flatten();
    if let Some(mut known) = known.or_else(|| kept.get(&answer(has_gate))) {
        word.clone_into(&mut known.candidate);
        return Ok(known);
    }
    if wants_gate && !has_gate {
        let text = format!("the gate answers once in {GATE_EVERY} evaluations, and not for {word}");
        say("evaluate", &text);
    }
    let evaluation = evaluator.evaluate(word, &found, has_gate)?;
    let capsules = kept.capsules((&id, epoch), &evaluation)?;
    let document = CandidateDocument::of(&evaluation, epoch, &capsules);
    kept.put(&answer(has_gate), &document)?;
    let nominee = Nominee {
        id,
        candidate: word.to_owned(),
        score: evaluation.combined(),
        epoch,
        outcome: Key::of(SIMULATES, format!("{:?}", evaluation.metrics)).to_string(),
    };
    let nominee = Some(nominee).filter(|_| !evaluation.is_refused());
    kept.note(nominee, &found.policy, evaluation.stage == Stage::Gate)?;
    interrupt::made(1);
    Ok(document)
}
