//! A decision that was kept, asked again.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use ask::choose::Choose as Question;
use ask::choose::errors::ErrorTable;
use ask::choose::inputs::InputFile;
use ask::{AnswerKind, input};
use model::Advised;
use serde::Deserialize;
use serde_json::Value;

use crate::about::About;
use crate::choose::{Choose, Chosen};
use crate::cli::Cli;
use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::output;
use crate::report::Format;
use crate::verb::Verb;

/// What is read of a decision before it is asked again.
#[derive(Deserialize)]
struct Kept {
    #[serde(alias = "runslice_fleet")]
    runslice_choice: u32,
    version: String,
    command: Vec<String>,
    objects: Vec<KeptObject>,
    inputs: Vec<InputFile>,
    ratio_errors: KeptTable,
}

/// The object of a candidate.
#[derive(Deserialize)]
struct KeptObject {
    name: String,
    blake3: Option<String>,
}

/// The table of errors.
#[derive(Deserialize)]
struct KeptTable {
    blake3: String,
}

/// Asks again, and says whether the answer is the same.
///
/// # Errors
/// When the file is no decision of this program, something that it follows from has changed, or the
/// answer is another one.
pub fn run(request: &Choose, file: &Path) -> anyhow::Result<Status> {
    output::spare(
        &[("--again", Some(file))],
        &[("--output", request.output.as_deref())],
    )?;
    check_ending(request.output.as_deref())?;
    let shown = input::shown(file);
    let text = input::text(&COMPUTER, file, input::RESULTS)?;
    let kept: Kept = serde_json::from_str(&text)
        .with_context(|| format!("{shown} is no decision of `choose -o FILE.bundle`"))?;
    check_program(&kept, &shown)?;
    let mut asked = question(&kept, &shown)?;
    asked.jobs = request.jobs;
    let made = About::called(&kept.command, || {
        let chosen = Chosen::ask(&unchanged(&kept, &asked, &shown)?, &COMPUTER)?;
        let mut bytes = Vec::new();
        chosen.write(Format::Json, &About::origin(), &mut bytes)?;
        anyhow::Ok((chosen, bytes))
    });
    let (chosen, bytes) = made?;
    if let Some(path) = &request.output {
        output::write_whole(path, &bytes)?;
    }
    if bytes != text.as_bytes() {
        bail!(
            "{shown}: the answer is another one, first at {}",
            first_difference(&text, &bytes)
        );
    }
    let mut to = output::open(None)?;
    writeln!(to, "{shown}: the same answer again, byte for byte.")?;
    chosen.write(Format::Human, &About::origin(), &mut to)?;
    to.flush()?;
    Ok(chosen.status())
}

/// Refuses a file for the decision whose ending stands for another form of it.
fn check_ending(output: Option<&Path>) -> Result<(), UsageError> {
    let ending = output.and_then(Path::extension);
    let ending = ending.map(|it| it.to_string_lossy().to_lowercase());
    match (output, ending.as_deref()) {
        (Some(path), Some(ending)) if !["json", "bundle"].contains(&ending) => {
            Err(UsageError::new(Advised::new(
                format!("{}: --again writes the decision itself", path.display()),
                "name a file that ends in .json or .bundle",
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses what another program decided.
fn check_program(kept: &Kept, shown: &str) -> anyhow::Result<()> {
    let own = [AnswerKind::Choice, AnswerKind::Fleet].map(AnswerKind::version);
    if !own.contains(&kept.runslice_choice) || kept.version != About::VERSION {
        bail!(Advised::new(
            format!("{shown} is a decision of runslice {}", kept.version),
            format!("this is {}: ask with that one", About::VERSION)
        ));
    }
    if kept.ratio_errors.blake3 != ErrorTable::own_hash() {
        bail!("{shown}: this program has another table of errors of ratios");
    }
    Ok(())
}

/// The question of a decision.
fn question(kept: &Kept, shown: &str) -> anyhow::Result<Choose> {
    let no_question = || UsageError::new(format!("{shown}: its command asks `choose` for nothing"));
    match Cli::of(&kept.command).map(|it| it.verb) {
        Ok(Verb::Choose(asked)) if asked.again.is_none() => Ok(*asked),
        _ => Err(no_question().into()),
    }
}

/// What is asked, if nothing has changed since the decision; else that is named.
fn unchanged(kept: &Kept, asked: &Choose, shown: &str) -> anyhow::Result<Question> {
    let files = kept.inputs.iter().filter(|it| !it.is_same(&COMPUTER));
    let mut changed: Vec<String> = files.map(|it| it.file.clone()).collect();
    if changed.is_empty() {
        let question = asked.asked()?;
        if question.candidates.len() != kept.objects.len() {
            changed.push("the list of candidates".to_owned());
        }
        let pairs = kept.objects.iter().zip(&question.candidates);
        let others = pairs.filter(|(old, new)| old.blake3 != new.object_hash());
        changed.extend(others.map(|(old, _)| format!("the object of {}", old.name)));
        if changed.is_empty() {
            return Ok(question);
        }
    }
    let changed = ask::words::listed(&changed);
    bail!(Advised::new(
        format!("{shown}: changed or missing since the decision: {changed}"),
        "ask where the command was called, with the files that it had"
    ));
}

/// The first key at which two documents differ.
fn first_difference(old: &str, new: &[u8]) -> String {
    let old: Value = serde_json::from_str(old).unwrap_or_default();
    let new: Value = serde_json::from_slice(new).unwrap_or_default();
    let keys = old.as_object().into_iter().flatten();
    let mut others = keys.filter(|(key, value)| new.get(key) != Some(value));
    let first = others.next().map(|(key, _)| format!("`{key}`"));
    first.unwrap_or_else(|| "its spaces".to_owned())
}
