//! What came of experiments, for people.

use std::io::{self, Write};

use crate::experiments::claim::{ClaimFinding, ClaimVerdict, Rules};

use crate::experiments::cells::{CellId, ExperimentResults};
use crate::experiments::expected::Published;
use crate::experiments::experiment::{Experiment, Made, Metric};
use crate::experiments::{JudgedClaim, false_refutations};

use super::page::Page;
use super::words::number;
use super::{places, sides};
use show::table::{Table, wrapped};

/// The least that is left for prose, however narrow the terminal is.
const PROSE: usize = 30;

/// Lists experiments with the statements that they decide.
///
/// # Errors
/// When `to` does not take it.
pub fn list(experiments: &[Experiment], to: &mut dyn Write) -> io::Result<()> {
    let mut document = None;
    for experiment in experiments {
        if document.replace(&experiment.document) != Some(&experiment.document)
            && let Some(published) = &experiment.published
        {
            writeln!(to, "Document {}: {published}", experiment.document)?;
        }
        let ids: Vec<&str> = experiment
            .statements
            .iter()
            .map(|it| it.id.as_str())
            .collect();
        writeln!(
            to,
            "{:<24} {}: {} ({})",
            experiment.name,
            experiment.source,
            experiment.title,
            ids.join(" ")
        )?;
    }
    Ok(())
}

/// How results are written for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct RerunShown<'a> {
    /// Columns that tables have room for; `None` for all that there are.
    pub width: Option<usize>,
    /// Columns that prose is wrapped to; `None` where programs read it line by line.
    pub wrap: Option<usize>,
    /// The one table of the documents that is asked for, such as `VI`.
    pub table: Option<&'a str>,
}

/// Writes tables, verdicts and their sum, machine by machine, and then what several say side by
/// side.
///
/// # Errors
/// When `to` does not take it.
pub fn write(pages: &[Page<'_>], shown: RerunShown<'_>, to: &mut dyn Write) -> io::Result<()> {
    for page in pages {
        if pages.len() > 1 {
            writeln!(to, "Machine {}\n", page.machine)?;
        }
        one(page, shown, to)?;
    }
    if pages.len() < 2 || shown.table.is_some() {
        return Ok(());
    }
    writeln!(to, "\nSide by side\n")?;
    for said in sides::of(pages) {
        writeln!(to, "{:<4} {}", said.id, said.text)?;
        for (machine, judged) in said.by {
            let (verdict, words) = (judged.verdict.words(), sides::numbers(judged));
            writeln!(to, "     {machine:<4} {verdict:<17} {words}")?;
        }
    }
    Ok(())
}

fn one(page: &Page<'_>, shown: RerunShown<'_>, to: &mut dyn Write) -> io::Result<()> {
    for index in 0..page.experiments.len() {
        experiment(page, index, shown, to)?;
    }
    if shown.table.is_some() {
        return Ok(());
    }
    let (ours, published): (Vec<_>, Vec<_>) = page.judged.iter().partition(|it| it.statement.ours);
    for judged in published {
        line(judged, shown, to)?;
    }
    if !ours.is_empty() {
        writeln!(to, "\nAsked by runslice, in no document, not counted:")?;
    }
    for judged in ours {
        line(judged, shown, to)?;
    }
    writeln!(to)?;
    let sum = summary(&page.judged, page.rules);
    paragraph(
        "",
        &format!("{sum} Calibration {}.", page.calibration),
        shown,
        to,
    )
}

/// A statement with its verdict.
fn line(judged: &JudgedClaim<'_>, shown: RerunShown<'_>, to: &mut dyn Write) -> io::Result<()> {
    let (id, words) = (&judged.statement.id, judged.verdict.words());
    let begin = format!("{id:<4} {words:<18} ");
    paragraph(&begin, &judged.statement.text, shown, to)
}

/// Text behind `begin`, whose further lines stand below its first letter.
fn paragraph(begin: &str, text: &str, shown: RerunShown<'_>, to: &mut dyn Write) -> io::Result<()> {
    let before = begin.chars().count();
    let Some(width) = shown.wrap else {
        return writeln!(to, "{begin}{text}");
    };
    let lines = wrapped(text, width.saturating_sub(before).max(PROSE));
    for (at, line) in lines.iter().enumerate() {
        if at == 0 {
            writeln!(to, "{begin}{line}")?;
        } else {
            writeln!(to, "{}{line}", " ".repeat(before))?;
        }
    }
    Ok(())
}

/// Who wrote what, the document's tables as it has them, what is said of its statements, and then
/// everything that was measured.
fn experiment(
    page: &Page<'_>,
    index: usize,
    shown: RerunShown<'_>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let (experiment, results) = (&page.experiments[index], &page.results[index]);
    let published = experiment.published.as_ref().map_or_else(
        || format!("Document {}", experiment.document),
        ToString::to_string,
    );
    let head = format!("{published}: {}", experiment.source);
    paragraph("", &head, shown, to)?;
    paragraph(
        "",
        &format!("{}: {}", experiment.name, experiment.title),
        shown,
        to,
    )?;
    writeln!(to)?;
    for table in places::of(experiment, results, page.rules) {
        if shown
            .table
            .is_some_and(|name| !is_table(&table.place, name))
        {
            continue;
        }
        writeln!(to, "{}", table.heading())?;
        for piece in table.pieces(shown.width) {
            piece.write(to)?;
            writeln!(to)?;
        }
    }
    if shown.table.is_some() {
        return Ok(());
    }
    for note in &experiment.notes {
        paragraph("note: ", note, shown, to)?;
    }
    for contradiction in &experiment.contradictions {
        let begin = "the document contradicts itself: ";
        paragraph("", &format!("{begin}{contradiction}"), shown, to)?;
    }
    for judged in page.judged.iter().filter(|it| it.experiment == index) {
        statement(judged, shown, to)?;
    }
    let (table, _) = table(experiment, results, Table::names).fit(shown.width);
    if !table.is_empty() {
        writeln!(to, "\nAll that was measured")?;
        table.write(to)?;
    }
    writeln!(to)
}

/// Whether this place of a document is its table of that number: `Table VI, with daemons` is VI.
pub fn is_table(place: &str, number: &str) -> bool {
    let words = place.split(|c: char| !c.is_alphanumeric());
    let mut words = words.filter(|word| !word.is_empty());
    let is_table = words
        .next()
        .is_some_and(|it| it == "Table" || it == "Tables");
    is_table && words.any(|word| word.eq_ignore_ascii_case(number))
}

/// Every metric of every cell, beside what was published; `numbers` adds a column of these. Ours
/// are the mean with the lowest and the highest, or with the deviation. Ratios are those to the
/// baseline.
pub fn table(
    experiment: &Experiment,
    results: &ExperimentResults,
    numbers: fn(Table, &'static str) -> Table,
) -> Table {
    let names = ["runs", "metric", "scheduler"];
    let table = names.into_iter().fold(Table::default(), Table::names);
    // The last two are those that a narrow terminal does without.
    let more = [
        ("published", 0),
        ("here", 0),
        ("ratio", 1),
        ("ratio here", 2),
    ];
    let mut table = more.into_iter().fold(table, |table, (title, rank)| {
        numbers(table, title).rank(rank)
    });
    for (set_index, set) in experiment.sets.iter().enumerate() {
        for metric in &experiment.metrics {
            let shown = metric
                .runs
                .as_ref()
                .is_none_or(|runs| runs.contains(&set.name));
            if !shown {
                continue;
            }
            let across = match &metric.made {
                Made::Across { x, .. } => Some(x.as_str()),
                Made::Formula(_) => None,
            };
            for (point_index, point) in set.points.iter().enumerate() {
                // A number over several points is the same at each of them.
                if across.is_some_and(|x| set.along(point_index, x).first() != Some(&point_index)) {
                    continue;
                }
                let label = point.label_without([across, None]);
                for &arm in &set.arms {
                    let id = CellId {
                        set: set_index,
                        arm,
                        point: point_index,
                    };
                    let place = if label.is_empty() {
                        set.label.clone()
                    } else {
                        format!("{}, {label}", set.label)
                    };
                    if let Some(row) = row(experiment, results, id, metric, place) {
                        table.row(row);
                    }
                }
            }
        }
    }
    table
}

fn row(
    experiment: &Experiment,
    results: &ExperimentResults,
    id: CellId,
    metric: &Metric,
    place: String,
) -> Option<[String; 7]> {
    results.cells.get(&id)?;
    let of = |arm: usize| {
        let id = CellId { arm, ..id };
        let published = experiment.published(id.set, id.point, arm, &metric.name);
        (published, results.values(experiment, id, metric))
    };
    let (published, values) = of(id.arm);
    let base = experiment
        .baseline
        .as_ref()
        .and_then(|name| experiment.arm(name));
    let base = base.filter(|base| *base != id.arm).map(of);
    let ratio = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) if b != 0.0 => number(a / b),
        _ => String::new(),
    };
    let number_of = |it: Option<&crate::experiments::expected::Expected>| it?.value.number();
    let ratios = match &base {
        None => [String::new(), String::new()],
        Some((base_published, base_values)) => [
            ratio(number_of(published), number_of(*base_published)),
            ratio(
                values.as_ref().ok().map(|it| mean(it)),
                base_values.as_ref().ok().map(|it| mean(it)),
            ),
        ],
    };
    let unit = if metric.unit.is_empty() {
        String::new()
    } else {
        format!(" ({})", metric.unit)
    };
    let published = match published.map(|row| row.value) {
        None => String::new(),
        Some(value) => as_published(value, number),
    };
    let ours = match values {
        Err(why) => why,
        Ok(values) => {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = number(mean(&values));
            if low == high {
                number(low)
            } else if metric.deviation {
                format!("{mean} +- {}", number(deviation(&values)))
            } else {
                format!("{mean} [{}, {}]", number(low), number(high))
            }
        }
    };
    let (metric, arm) = (
        format!("{}{unit}", metric.label),
        &experiment.arms[id.arm].label,
    );
    let [of_published, of_ours] = ratios;
    Some([
        place,
        metric,
        arm.clone(),
        published,
        ours,
        of_published,
        of_ours,
    ])
}

/// What was published, of numbers as they are `written`.
pub fn as_published(value: Published, written: fn(f64) -> String) -> String {
    match value {
        Published::Number(value) => written(value),
        Published::Picture => "not available as numbers".to_owned(),
        Published::Missing => "missing".to_owned(),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of a sample.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}

fn statement(
    judged: &JudgedClaim<'_>,
    shown: RerunShown<'_>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let statement = judged.statement;
    let verdict = judged.verdict.words().to_uppercase();
    let ours = if statement.ours {
        ", in no document"
    } else {
        ""
    };
    writeln!(to, "{}: {verdict}{ours}", statement.id)?;
    paragraph("  ", &format!("\"{}\"", statement.text), shown, to)?;
    for (name, finding) in &judged.parts {
        let begin = format!("  {:<16} ", finding.verdict.words());
        paragraph(&begin, &part(&statement.id, name, finding), shown, to)?;
    }
    let is_well = judged.verdict.holds();
    let cause = statement.cause.as_ref().filter(|_| !is_well);
    let untold =
        (statement.cannot_tell.as_ref()).filter(|_| judged.verdict == ClaimVerdict::CannotTell);
    for (word, text) in [
        ("note", statement.note.as_ref()),
        ("cause", cause),
        ("cannot tell", untold),
    ] {
        if let Some(text) = text {
            paragraph(&format!("  {word}: "), &text.replace('\n', " "), shown, to)?;
        }
    }
    Ok(())
}

/// A part in sentences: what was tried, its numbers beside the published one, what else there is to
/// say, and how probable that is by chance. `id` is that of the statement.
pub fn part(id: &str, name: &str, finding: &ClaimFinding) -> String {
    let numbers: Vec<String> = finding
        .parts
        .iter()
        .map(|part| {
            let value = number(part.value);
            let (low, high) = (number(part.low), number(part.high));
            if low == high {
                format!("{} is {value}", part.name)
            } else {
                format!("{} is {value}, from {low} to {high}", part.name)
            }
        })
        .collect();
    let name = name.strip_prefix(id).unwrap_or(name).trim();
    let mut sentences = Vec::new();
    if !name.is_empty() {
        sentences.push(sentence(name));
    }
    let published = finding
        .published
        .map(|it| format!("; {} was published", number(it)));
    if !numbers.is_empty() {
        sentences.push(format!(
            "Here {}{}.",
            numbers.join("; "),
            published.unwrap_or_default()
        ));
    }
    if !finding.words.is_empty() {
        sentences.push(sentence(&finding.words));
    }
    sentences.extend(finding.p.map(|p| {
        format!(
            "Were it wrong, such runs would have a probability of {}.",
            number(p)
        )
    }));
    sentences.join(" ")
}

/// A phrase as a sentence: its first letter large, a full stop at its end.
fn sentence(words: &str) -> String {
    let mut letters = words.trim_end_matches(['.', ';']).chars();
    let first = letters.next().map(char::to_uppercase);
    let words: String = first.into_iter().flatten().chain(letters).collect();
    format!("{words}.")
}

/// How many statements of documents got which verdict, and how many of them by chance.
pub fn summary(judged: &[JudgedClaim<'_>], rules: &Rules) -> String {
    let published: Vec<&JudgedClaim<'_>> = judged.iter().filter(|it| !it.statement.ours).collect();
    let counts = ClaimVerdict::ALL.into_iter().filter_map(|verdict| {
        let count = published.iter().filter(|it| it.verdict == verdict).count();
        let is_rare = matches!(
            verdict,
            ClaimVerdict::OppositeDirection | ClaimVerdict::CannotTell | ClaimVerdict::CannotFail
        );
        (count > 0 || !is_rare).then(|| format!("{count} {}", verdict.words()))
    });
    let counts: Vec<String> = counts.collect();
    let tests: usize = published.iter().map(|it| it.parts.len()).sum();
    let chance = if rules.quick {
        "A quick look at few runs compares means alone: it says \"same direction\" or \
                 \"opposite direction\" at most."
            .to_owned()
    } else {
        format!(
            "Each statement is judged as if alone, at {} %: were all true, up to {} would be \
             refuted by chance.",
            number(rules.alpha * 100.0),
            number(false_refutations(judged, rules))
        )
    };
    let (statements, counts) = (published.len(), counts.join(", "));
    format!("{statements} statements, {tests} tests: {counts}. {chance}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_found_by_its_number_wherever_the_document_names_it() {
        for (place, number, want) in [
            ("Table VI", "VI", true),
            ("Table VI", "vi", true),
            ("Table VI", "V", false),
            ("Table VIII, with daemons", "VIII", true),
            ("Tables V, VI, VII and IX", "IX", true),
            ("Figure 2", "2", false),
            ("", "2", false),
        ] {
            assert_eq!(is_table(place, number), want, "{place}, {number}");
        }
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert!((deviation(&values) - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }
}
