//! Cases of published schedulers: for people, as Markdown and as JSON.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::cases::{CaseResult, CaseSeen, CaseStatus, CaseVerdict, PublicCase, VersionRuns};
use serde_json::{Value, json};

use crate::origin::Origin;
use crate::table::Table;

/// Writes what runs of cases came to, for people, in at most so many columns.
///
/// # Errors
/// When `to` does not take it.
pub fn human(results: &[CaseResult], width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default()
        .names("case")
        .names("verdict")
        .names("version")
        .names("runs")
        .rank(1)
        .prose("seen");
    for result in results {
        let mut front = [result.case.name.clone(), word(result).to_owned()];
        if result.versions.is_empty() {
            let [name, word] = front;
            table.row([name, word, String::new(), String::new(), why(result)]);
            continue;
        }
        for version in &result.versions {
            let [name, word] = std::mem::take(&mut front);
            let what = if version.is_bad { "bad" } else { "good" };
            let told = format!("{} ({what})", version.version);
            table.row([name, word, told, runs(version), seen(result, version)]);
        }
    }
    write!(to, "{}", table.fit(width).0)?;
    let judged = results.iter().filter(|it| !it.versions.is_empty());
    for result in judged.filter(|it| it.verdict != CaseVerdict::Shown) {
        writeln!(
            to,
            "\n{}: {}: {}",
            result.case.name,
            word(result),
            why(result)
        )?;
    }
    for result in results.iter().filter(|it| it.is_otherwise()) {
        let (name, status) = (&result.case.name, result.case.status.word());
        writeln!(to, "\n{name}: its file says `{status}`.")?;
    }
    Ok(())
}

/// Writes the cases, for people.
///
/// # Errors
/// When `to` does not take them.
pub fn list(cases: &[PublicCase], width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default()
        .names("case")
        .names("bad")
        .rank(1)
        .names("good")
        .rank(2)
        .names("status")
        .prose("what was seen");
    for case in cases {
        let reason = case.reason.as_ref().map(|it| format!(" ({it})"));
        let what = format!(
            "{}: {}{}",
            case.scheduler,
            case.title,
            reason.unwrap_or_default()
        );
        table.row([
            case.name.clone(),
            case.bad.join(", "),
            case.good.join(", "),
            case.status.word().to_owned(),
            what,
        ]);
    }
    write!(to, "{}", table.fit(width).0)
}

/// Writes what runs came to as a table in Markdown. A case that was not run has no row.
///
/// # Errors
/// When `to` does not take it.
pub fn markdown(results: &[CaseResult], to: &mut dyn Write) -> io::Result<()> {
    let first = results.iter().find_map(|it| it.versions.first());
    let runs = first.map_or(0, |it| it.runs.len());
    writeln!(
        to,
        "| case | bad version | showed it, of {runs} | explained as |"
    )?;
    writeln!(to, "| --- | --- | --- | --- |")?;
    for result in results {
        let case = &result.case;
        let Some(bad) = result.versions.iter().find(|it| it.is_bad) else {
            continue;
        };
        let word = match result.verdict {
            CaseVerdict::Shown if case.status == CaseStatus::Direction => ": direction",
            CaseVerdict::Shown => "",
            CaseVerdict::NotShown(_) => ": not shown",
            CaseVerdict::CannotRun(_) | CaseVerdict::Listed => continue,
        };
        writeln!(
            to,
            "| {} | {} | {}{word} | {} |",
            case.name,
            case.bad.join(", "),
            bad.count(),
            seen(result, bad).replace('|', "\\|"),
        )?;
    }
    Ok(())
}

/// Writes what runs came to as one JSON document.
///
/// # Errors
/// When `to` does not take it.
pub fn json(results: &[CaseResult], origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let cases: Vec<Value> = results.iter().map(of_result).collect();
    let document = json!({
        AnswerKind::Cases.key(): AnswerKind::Cases.version(),
        "version": crate::VERSION,
        "command": origin.words(),
        "cases": cases,
    });
    writeln!(to, "{document:#}")
}

fn of_result(result: &CaseResult) -> Value {
    let case = &result.case;
    let reasons = match &result.verdict {
        CaseVerdict::NotShown(all) | CaseVerdict::CannotRun(all) => all.as_slice(),
        CaseVerdict::Shown | CaseVerdict::Listed => &[],
    };
    let versions: Vec<Value> = result.versions.iter().map(of_version).collect();
    let ran = result.verdict != CaseVerdict::Listed;
    json!({
        "case": case.name,
        "scheduler": case.scheduler,
        "title": case.title,
        "source": case.source,
        "bad": case.bad,
        "good": case.good,
        "dated": case.dated.as_ref().map(ToString::to_string),
        "added": case.added.to_string(),
        "status": case.status.word(),
        "reason": case.reason,
        "seen_on_kernel": case.seen_on_kernel,
        "verdict": ran.then(|| word(result)),
        "reasons": reasons,
        "as_its_file_says": ran.then(|| !result.is_otherwise()),
        "versions": versions,
    })
}

fn of_version(version: &VersionRuns) -> Value {
    let (clean, all) = version.clean();
    let runs = version.runs.iter().zip(&version.shown);
    let runs: Vec<Value> = runs.map(of_run).collect();
    json!({
        "version": version.version,
        "bad": version.is_bad,
        "shown": version.count(),
        "clean": clean,
        "runs_and_near_runs": all,
        "usual": version.usual,
        "runs": runs,
    })
}

fn of_run((seen, shown): (&CaseSeen, &bool)) -> Value {
    json!({
        "seed": seen.seed,
        "shown": shown,
        "fault": seen.fault.map(explain::why::Fault::word),
        "task": seen.victim,
        "line": place(seen),
        "at_ns": seen.at.map(model::SimTime::as_nanos),
        "ended": seen.ended,
        "starved": seen.starved,
        "value": seen.value,
    })
}

fn word(result: &CaseResult) -> &'static str {
    match result.verdict {
        CaseVerdict::Shown => "shown",
        CaseVerdict::NotShown(_) => "not shown",
        CaseVerdict::CannotRun(_) => "cannot run",
        CaseVerdict::Listed => result.case.status.word(),
    }
}

fn why(result: &CaseResult) -> String {
    match &result.verdict {
        CaseVerdict::Shown => String::new(),
        CaseVerdict::NotShown(all) | CaseVerdict::CannotRun(all) => all.join("; "),
        CaseVerdict::Listed => result.case.reason.clone().unwrap_or_default(),
    }
}

/// In how many runs a bad version shows the case, and how many of a good one are clean.
fn runs(version: &VersionRuns) -> String {
    if version.is_bad {
        return format!("{} of {} show it", version.count(), version.runs.len());
    }
    let (clean, all) = version.clean();
    format!("{clean} of {all} clean")
}

/// What the first run that shows the case shows: class, task, line, second.
fn seen(result: &CaseResult, version: &VersionRuns) -> String {
    let Some(first) = version.first() else {
        return String::new();
    };
    let class = first.fault.map(|it| it.word().to_owned());
    let task = first.victim.as_ref().map(|it| format!("task {it}"));
    let at = first
        .at
        .map(|it| format!("at {:.1} s", it.as_nanos() as f64 / 1e9));
    let number = first.value.zip(version.usual).and_then(|(value, usual)| {
        let goal = result.case.run.as_ref()?.shows.goal()?;
        (usual > 0.0).then(|| format!("{goal}: {:.2} times the usual", value / usual))
    });
    let parts = [class, task, place(first), at, number];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn place(seen: &CaseSeen) -> Option<String> {
    let place = seen.place.as_ref()?;
    let file = place.file.as_ref()?;
    let name = file.rsplit('/').next().unwrap_or(file);
    Some(format!("{name}:{}", place.line))
}
