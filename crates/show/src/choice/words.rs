//! The answer for people: a sentence first, then the ranking, then its price and what to type.

use std::io::{self, Write};

use ask::choose::Chosen;
use ask::choose::rank::{Ranking, Said, Standing};
use ask::choose::runs::Field;
use ask::words::{counted, listed};
use model::{Advice as _, Nanos};
use stats::compare::{Effect, Measure, MetricRow, Refusal, Scale};

use crate::report::runs::shown_value;
use crate::table::{Table, wrapped};

/// Columns of a wide terminal.
const WIDTH: usize = 80;
/// Columns for the name of a candidate in tables.
const NAME: usize = 20;
/// Millionths of a hundredth.
const PER_CENT: f64 = 10_000.0;
/// What is worse that is told one by one.
const TOLD: usize = 12;

/// Writes all of it, sentences in lines of at most `width` columns.
///
/// # Errors
/// When `to` does not take it.
pub fn write(chosen: &Chosen, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let Chosen { field, ranking, .. } = chosen;
    for sentence in answer(chosen) {
        paragraph(&sentence, width, to)?;
    }
    writeln!(to)?;
    paragraph(&heading(field), width, to)?;
    for goal in 0..field.goals.len() {
        writeln!(to, "\n{}", field.goals[goal])?;
        write!(to, "{}", table(field, ranking, goal))?;
    }
    notes(field, ranking, width, to)?;
    let Some(winner) = ranking.winner else {
        return Ok(());
    };
    price((field, ranking), winner, width, to)?;
    writeln!(to, "\nTry it: {}", command(chosen, winner))?;
    writeln!(to, "Undo:   {UNDO}")
}

/// What to type after a policy was tried.
const UNDO: &str = "Ctrl-C, or `sudo runslice stop`; the kernel's own scheduler is back";

/// How candidate `at` is run for real.
///
/// # Panics
/// If there is no such candidate.
#[must_use]
pub fn command(chosen: &Chosen, at: usize) -> String {
    format!("sudo runslice run {}", chosen.field.candidates[at].call)
}

/// The answer: one sentence, and what belongs to it.
#[must_use]
pub fn answer(chosen: &Chosen) -> Vec<String> {
    let Chosen { field, ranking, .. } = chosen;
    let base = field.name(0);
    let mut sentences = Vec::new();
    match ranking.winner {
        Some(winner) => {
            sentences.push(won(field, ranking, winner));
            let name = field.name(winner);
            if !ranking.ties.is_empty() {
                let ties = names(field, &ranking.ties);
                sentences.push(format!("The runs cannot tell {ties} from {name}."));
            }
            if !ranking.close.is_empty() {
                let close = names(field, &ranking.close);
                sentences.push(format!(
                    "{close}: another value than {name}, but the difference may be smaller than \
                     what is not modelled."
                ));
            }
        }
        None => {
            sentences.push(format!(
                "No candidate is better than {base} for {}, as far as this simulation can say.",
                field.load
            ));
            sentences.extend(refused(field, ranking));
        }
    }
    sentences.extend(margins(ranking));
    sentences
}

/// Who is best, and by how much.
fn won(field: &Field, ranking: &Ranking, winner: usize) -> String {
    let said = ranking.said(field, winner);
    let gains = (0..field.goals.len()).filter(|goal| said[*goal] == Said::Better);
    let gains: Vec<String> = gains
        .filter_map(|goal| {
            let row = ranking.row(field, winner, goal)?;
            Some(format!("{} {}", field.goals[goal], instead(row)?))
        })
        .collect();
    let (name, base, load) = (field.name(winner), field.name(0), &field.load);
    let rest = match said.len() - gains.len() {
        0 => "",
        _ => "; at the other goals the runs do not show it worse",
    };
    format!(
        "{name} is best for {load}: {} under {base}{rest}.",
        gains.join("; ")
    )
}

/// A value instead of the baseline's, with the change and its interval.
fn instead(row: &MetricRow) -> Option<String> {
    let effect = &row.result.as_ref().ok()?.effect;
    let [shift, low, high] = [effect.shift, effect.low, effect.high];
    let [shift, low, high] = [shift, low, high].map(|it| change(effect, row.measure, it));
    Some(format!(
        "{} ({shift}, interval {low} to {high}) instead of {}",
        shown_value(row.measure, effect.other),
        shown_value(row.measure, effect.base),
    ))
}

/// Why candidates that seem better are not preferred.
fn refused(field: &Field, ranking: &Ranking) -> Vec<String> {
    let base = field.name(0);
    let mut sentences = Vec::new();
    let mut more = Vec::new();
    for &at in &ranking.order {
        let said = ranking.said(field, at);
        let within = said.iter().position(|it| *it == Said::BetterWithin);
        let within = within.and_then(|goal| {
            let row = ranking.row(field, at, goal)?;
            Some((goal, instead(row)?))
        });
        let name = field.name(at);
        if ranking.standings[at] == Standing::Within
            && let Some((goal, instead)) = within
        {
            let factor = ranking.margins[goal].factor;
            if !sentences.is_empty() {
                more.push(at);
                continue;
            }
            sentences.push(format!(
                "{name} seems better, and is refused: {} {instead}, which may be less than the \
                 factor {factor:.2} that is not modelled.",
                field.goals[goal],
            ));
        }
        if ranking.standings[at] == Standing::Mixed {
            let better = goals_of(field, &said, &[Said::Better]);
            let worse = goals_of(field, &said, &[Said::Worse, Said::WorseWithin]);
            sentences.push(format!(
                "{name} is better at {better}, and worse at {worse}."
            ));
        }
    }
    if !more.is_empty() {
        let more = names(field, &more);
        sentences.push(format!("Refused for the same reason: {more}."));
    }
    let open = (0..field.sets.len()).filter(|at| ranking.standings[*at] == Standing::Undecided);
    let open: Vec<usize> = open.collect();
    if !open.is_empty() {
        let rows = ranking.rows.iter();
        let judged = rows.filter_map(|row| row.result.as_ref().ok());
        let needed = judged.filter_map(|it| it.runs_needed).max();
        let refusal = ranking
            .rows
            .iter()
            .find_map(|row| row.result.as_ref().err());
        let help = match (needed, refusal) {
            (_, Some(Refusal::NoSpread { .. })) => ": their runs are all alike, because nothing \
                in this load is left to chance, and the judge needs runs that vary. `runslice \
                convert FILE -o load.toml` makes of a recording a load that varies, for `choose -w \
                load.toml`"
                .to_owned(),
            (_, Some(refusal)) => format!(": {}", refusal.in_full()),
            (Some(runs), None) => format!("; about {runs} runs might decide"),
            (None, None) => String::new(),
        };
        let open = names(field, &open);
        sentences.push(format!("Not decided against {base}: {open}{help}."));
    }
    sentences
}

/// The goals at which one of these is said.
fn goals_of(field: &Field, said: &[Said], wanted: &[Said]) -> String {
    let its = field
        .goals
        .iter()
        .zip(said)
        .filter(|(_, it)| wanted.contains(it));
    its.map(|(goal, _)| goal.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// How large a change must be, once for each source.
fn margins(ranking: &Ranking) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for margin in &ranking.margins {
        let sentence = format!(
            "What is not modelled: only a change that is surely beyond a factor of {:.2} counts \
             ({}).",
            margin.factor, margin.source
        );
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

fn heading(field: &Field) -> String {
    let machine = &field.machine;
    let runs = if field.is_parts {
        format!("{} parts of the trace", field.runs)
    } else {
        counted(field.runs as u64, "run")
    };
    let later = match field.start_jitter {
        Nanos::ZERO => String::new(),
        most => format!(" in which tasks begin up to {most} later"),
    };
    format!(
        "{}: {}, HZ {}, kernel {}, {runs} of each candidate{later}, {}.",
        model::plain::shown(&field.load),
        counted(machine.cpus.into(), "CPU"),
        machine.hz,
        machine.kernel.name(),
        if field.is_asked {
            "goals as asked"
        } else {
            "the load's own goals"
        },
    )
}

/// The candidates in their order at one goal.
fn table(field: &Field, ranking: &Ranking, goal: usize) -> Table {
    let mut table = Table::default()
        .names("candidate")
        .numbers("mean")
        .numbers("change")
        .numbers_of("interval", "from")
        .numbers_of("interval", "to")
        .names("verdict");
    let metric = field.goals[goal].to_string();
    for &at in &ranking.order {
        let dash = || "-".to_owned();
        let series = field.sets[at].find(&metric);
        let value = series.map_or_else(dash, |it| {
            let mean = it.values.iter().sum::<f64>() / it.values.len() as f64;
            shown_value(it.measure, mean)
        });
        let name = short(field.name(at));
        let row = ranking.row(field, at, goal);
        let judged = row.and_then(|row| Some((row, row.result.as_ref().ok()?)));
        let word = match ranking.standings[at] {
            Standing::Baseline => "baseline",
            Standing::Failed => "failed",
            _ => ranking.said(field, at)[goal].word(),
        };
        let [shift, low, high] = match judged {
            Some((row, judged)) => {
                let effect = &judged.effect;
                [effect.shift, effect.low, effect.high].map(|it| change(effect, row.measure, it))
            }
            None => [(); 3].map(|()| String::new()),
        };
        let value = match ranking.standings[at] {
            Standing::Failed => dash(),
            _ => value,
        };
        table.row([name, value, shift, low, high, word.to_owned()]);
    }
    table
}

/// Who failed and why, and names that were too long for the tables.
fn notes(field: &Field, ranking: &Ranking, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let long = ranking
        .order
        .iter()
        .filter(|at| short(field.name(**at)) != field.name(**at));
    let long = long.map(|at| format!("{} is {}", short(field.name(*at)), field.name(*at)));
    let failed = ranking.order.iter().filter_map(|at| {
        let why = field.failures[*at].as_ref()?;
        Some(format!("{} failed: {why}", field.name(*at)))
    });
    let all: Vec<String> = long.chain(failed).collect();
    if !all.is_empty() {
        writeln!(to)?;
    }
    all.iter().try_for_each(|it| paragraph(it, width, to))
}

/// What is worse for whom under the winner.
fn price(
    (field, ranking): (&Field, &Ranking),
    winner: usize,
    width: usize,
    to: &mut dyn Write,
) -> io::Result<()> {
    let (name, base) = (field.name(winner), field.name(0));
    let figures = counted(ranking.looked_at as u64, "other figure");
    writeln!(to)?;
    if ranking.worse.is_empty() {
        return paragraph(
            &format!(
                "The judge calls nothing else worse under {name} than under {base}, of {figures}: \
                 the load's own goals, what it counts, and the p99 delay of its groups."
            ),
            width,
            to,
        );
    }
    writeln!(to, "Worse under {name} than under {base}, of {figures}:")?;
    for row in ranking.worse.iter().take(TOLD) {
        if let Some(instead) = instead(row) {
            paragraph(&format!("  {}: {instead}", row.metric), width, to)?;
        }
    }
    match ranking.worse.len().saturating_sub(TOLD) {
        0 => Ok(()),
        more => writeln!(to, "  and {more} more; --format json has all"),
    }
}

/// A shift as people read it: a factor, or a difference where values are 0.
fn change(effect: &Effect, measure: Measure, shift: f64) -> String {
    let said = effect.scale.said(shift);
    match effect.scale {
        _ if !shift.is_finite() => "-".to_owned(),
        Scale::Log if said < 0.1 => {
            // Two digits that count.
            let digits = (-said.log10()).ceil().clamp(1.0, 9.0) as usize + 1;
            format!("x {said:.digits$}")
        }
        Scale::Log => format!("x {said:.2}"),
        Scale::Linear if measure == Measure::Millionths => {
            format!("{:+.1} points", said / PER_CENT)
        }
        Scale::Linear => {
            let sign = if said < 0.0 { "-" } else { "+" };
            format!("{sign}{}", shown_value(measure, said.abs()))
        }
    }
}

/// A name that fits its column.
fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME {
        return name.to_owned();
    }
    let half = (NAME - 3) / 2;
    let ends = [
        &letters[..NAME - 3 - half],
        &letters[letters.len() - half..],
    ];
    let [front, back] = ends.map(|it| it.iter().collect::<String>());
    format!("{front}...{back}")
}

fn names(field: &Field, all: &[usize]) -> String {
    let names = all.iter().map(|at| field.name(*at));
    listed(&names.collect::<Vec<_>>())
}

/// A sentence in lines that a terminal has room for. What begins it stands before each line.
fn paragraph(text: &str, width: usize, to: &mut dyn Write) -> io::Result<()> {
    let words = text.trim_start();
    let indent = &text[..text.len() - words.len()];
    let room = width.min(WIDTH);
    for (at, line) in wrapped(words, room.saturating_sub(indent.len() + 2))
        .iter()
        .enumerate()
    {
        let deeper = if at > 0 && !indent.is_empty() {
            "  "
        } else {
            ""
        };
        writeln!(to, "{indent}{deeper}{line}")?;
    }
    Ok(())
}
