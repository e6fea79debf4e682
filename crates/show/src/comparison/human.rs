//! A comparison as tables for people.

use std::io::{self, Write};

use ask::words::counted;
use model::Advice as _;
use stats::compare::{Effect, Extent, MetricRow, Scale, Settings, TRIM_PERCENT, Verdict};

use super::Compared;
use super::words::{difference, distinct, end, ratio, tone, value, verdict_words};
use crate::table::{Cell, Table, write_paragraph};

/// Outliers of one set that are told.
const OUTLIERS_TOLD: usize = 4;

/// Writes who was ejected or let tasks starve, and the answer in short; a table of the goals of
/// each load and one of what describes it, in
/// as many columns as `width` has room for; and what follows. Behind tables the answer stands a
/// second time: of a long output a person sees the end.
///
/// # Errors
/// When `to` does not take it.
pub fn write(compared: &Compared<'_>, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
    let Compared { rows, settings, .. } = *compared;
    let room = width.unwrap_or(usize::MAX);
    let answer = [compared.family.voids(), summary(rows)].concat();
    for line in &answer {
        write_paragraph(line, room, to)?;
    }
    writeln!(to)?;
    let mut is_whole = true;
    for place in distinct(rows.iter().map(|row| row.place.as_str())) {
        let mut shown = |is_goal| {
            let here = rows.iter().filter(|row| row.place == place);
            let here: Vec<&MetricRow> = here.filter(|row| row.is_goal == is_goal).collect();
            let (text, has_all) = fitted(&here, width);
            is_whole &= has_all;
            text
        };
        let (goals, rest) = (shown(true), shown(false));
        let has_rows = !goals.is_empty() || !rest.is_empty();
        if has_rows && !place.is_empty() {
            writeln!(to, "{place}")?;
        }
        if !goals.is_empty() {
            writeln!(to, "{goals}")?;
        }
        if !rest.is_empty() {
            writeln!(to, "what describes it, without a verdict:\n{rest}")?;
        }
    }
    if !is_whole {
        writeln!(to, "--wide shows all columns.\n")?;
    }
    let told = [answer, noise(rows), outliers(rows), refused(rows)].concat();
    let told = told.into_iter().chain(compared.family.notes.clone());
    for line in told.chain(method(rows, settings)) {
        write_paragraph(&line, room, to)?;
    }
    Ok(())
}

/// What else is to be said of a comparison, as lines.
pub fn notes_of(rows: &[MetricRow], settings: &Settings) -> Vec<String> {
    [
        noise(rows),
        outliers(rows),
        refused(rows),
        method(rows, settings),
    ]
    .concat()
}

/// What could not be compared.
fn refused(rows: &[MetricRow]) -> Vec<String> {
    let refused = rows.iter().filter_map(|row| {
        let refusal = row.result.as_ref().err()?;
        Some(format!(
            "{}, {}: not compared: {}",
            row.named.title,
            row.arm,
            refusal.in_full()
        ))
    });
    refused.collect()
}

/// The columns behind the metric: the heading that neighbours share, the title, and whether its
/// cells are names.
const COLUMNS: [(&str, &str, bool); 10] = [
    ("", "scheduler", true),
    ("", "runs", false),
    ("", "median", false),
    ("", "min", false),
    ("", "max", false),
    ("", "difference", false),
    ("", "ratio", false),
    ("interval", "from", false),
    ("interval", "to", false),
    ("", "verdict", true),
];
/// Which of them are shown where there is no room for all; the widest that fits is taken.
const NARROW: [&[usize]; 4] = [
    &[0, 1, 2, 5, 6, 7, 8, 9],
    &[0, 2, 5, 6, 7, 8, 9],
    &[0, 2, 5, 6, 9],
    &[0, 2, 5, 9],
];

fn columns(table: Table, shown: &[usize]) -> Table {
    shown.iter().fold(table, |table, at| match COLUMNS[*at] {
        (_, title, true) => table.names(title),
        (above, title, false) => table.numbers_of(above, title),
    })
}

/// The baseline's row once for each metric, and for each that is held against it a row and one
/// without the ends.
pub fn table(rows: &[&MetricRow]) -> Table {
    whole(&lines(rows))
}

fn whole(lines: &[Line]) -> Table {
    let all: Vec<usize> = (0..COLUMNS.len()).collect();
    let mut table = columns(Table::default().names("metric"), &all);
    for (metric, cells, verdict) in lines {
        let tone = tone(*verdict);
        let toned = |(at, text): (usize, &String)| {
            let cell = Cell::from(text.clone());
            if matches!(at, 5 | 9) {
                cell.toned(tone)
            } else {
                cell
            }
        };
        let front = [Cell::from(metric.clone())];
        table.row(front.into_iter().chain(cells.iter().enumerate().map(toned)));
    }
    table
}

/// The table, where it is too wide with each metric on a line of its own and without the columns
/// that matter least; and whether it has all columns.
fn fitted(rows: &[&MetricRow], width: Option<usize>) -> (String, bool) {
    let lines = lines(rows);
    if lines.is_empty() {
        return (String::new(), true);
    }
    let is_narrow = |text: &str| {
        let mut lines = text.lines();
        width.is_none_or(|most| lines.all(|line| line.chars().count() <= most))
    };
    let whole = whole(&lines).to_string();
    if is_narrow(&whole) {
        return (whole, true);
    }
    let mut texts = NARROW.iter().map(|shown| below_metrics(&lines, shown));
    let found = texts.find(|text| is_narrow(text));
    let least = || below_metrics(&lines, NARROW[NARROW.len() - 1]);
    (found.unwrap_or_else(least), false)
}

/// A table of these columns in which each metric stands on a line above its schedulers.
fn below_metrics(lines: &[Line], shown: &[usize]) -> String {
    let mut table = columns(Table::default(), shown);
    for (_, cells, _) in lines {
        table.row(shown.iter().map(|at| match at {
            0 => format!("  {}", cells[0]),
            at => cells[*at].clone(),
        }));
    }
    let table = table.to_string();
    // Above the rows stand the headings.
    let above = table.lines().count() - lines.len();
    let metrics = lines.iter().map(|(metric, ..)| metric.as_str());
    let metrics = (0..above).map(|_| "").chain(metrics);
    let mut text = String::new();
    for (metric, line) in metrics.zip(table.lines()) {
        if !metric.is_empty() {
            text += &format!("{metric}\n");
        }
        text += &format!("{line}\n");
    }
    text
}

/// The cells of a row, with its metric where that is another one than before, and its verdict.
type Line = (String, Vec<String>, Option<Verdict>);

fn lines(rows: &[&MetricRow]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut last: Option<(&str, &str)> = None;
    for row in rows {
        let Ok(judged) = &row.result else { continue };
        let this = (row.metric.as_str(), row.base.as_str());
        if last != Some(this) {
            let first = match last {
                Some((metric, _)) if metric == row.metric => String::new(),
                _ => row.named.title.clone(),
            };
            let side = side(row, &row.base, row.base_extent);
            let nothing = [(); 4].map(|()| String::new());
            let word = ["baseline".to_owned()];
            let cells = side.into_iter().chain(nothing).chain(word);
            lines.push((first, cells.collect(), None));
            last = Some(this);
        }
        let effect = &judged.effect;
        let changed = |[shift, low, high]: [f64; 3]| {
            let [low, high] = [low, high].map(|it| end(row, effect, it));
            [
                difference(row, effect, shift),
                ratio(effect, shift),
                low,
                high,
            ]
        };
        let side = side(row, &row.arm, row.arm_extent);
        let word = judged.verdict.map_or("", verdict_words).to_owned();
        let changes = changed([effect.shift, effect.low, effect.high]);
        let cells = side.into_iter().chain(changes).chain([word]);
        lines.push((String::new(), cells.collect(), judged.verdict));
        if row.is_goal {
            let name = [format!("  middle {} %", 100 - 2 * TRIM_PERCENT)];
            let nothing = [(); 4].map(|()| String::new());
            let it = effect.trimmed;
            let changes = changed([it.shift, it.low, it.high]);
            let out = [far(row, judged.p_outliers)];
            let cells = name.into_iter().chain(nothing).chain(changes).chain(out);
            lines.push((String::new(), cells.collect(), None));
        }
    }
    lines
}

/// How many runs of both sets lie far from the others, and how probable that is by chance.
fn far(row: &MetricRow, p: f64) -> String {
    let [ours, theirs] = [0, 1].map(|at| row.outliers[at].len());
    match ours + theirs {
        0 => "no outliers".to_owned(),
        _ => format!("outliers: {ours} and {theirs} (p {p:.2})"),
    }
}

fn side(row: &MetricRow, name: &str, extent: Option<Extent>) -> [String; 5] {
    let Some(extent) = extent else {
        return [name, "0", "-", "-", "-"].map(str::to_owned);
    };
    [
        name.to_owned(),
        extent.runs.to_string(),
        value(row, extent.median),
        value(row, extent.min),
        value(row, extent.max),
    ]
}

/// What two arms of the same scheduler differed by.
fn noise(rows: &[MetricRow]) -> Vec<String> {
    let parts = rows.iter().filter_map(|row| {
        let judged = row.result.as_ref().ok()?;
        let floor = judged.floor?;
        let floor = match judged.effect.scale {
            Scale::Log => format!("{:.1} %", (judged.effect.scale.said(floor) - 1.0) * 100.0),
            Scale::Linear => value(row, floor),
        };
        Some(format!("{} {floor}", row.named.title))
    });
    let parts = distinct(parts).join(", ");
    let base = rows.first().map_or("", |row| &row.base);
    if parts.is_empty() {
        Vec::new()
    } else {
        vec![format!("noise between two arms of {base}: {parts}")]
    }
}

/// Simulated runs that lie far from the others: nothing but the scheduler and the seed can be the
/// reason.
fn outliers(rows: &[MetricRow]) -> Vec<String> {
    let simulated = rows
        .iter()
        .filter(|row| row.is_goal && row.world == "simulated");
    let lines = simulated.flat_map(|row| {
        let sides = [&row.base, &row.arm].into_iter().zip(&row.outliers);
        let line = |(arm, far): (&String, &Vec<_>)| {
            let told = far
                .iter()
                .take(OUTLIERS_TOLD)
                .filter_map(|it: &stats::compare::Outlier| {
                    let value = value(row, it.value);
                    Some(format!("{value} with seed {}", it.seed?))
                });
            let told: Vec<String> = told.collect();
            let more = match far.len() {
                0..=OUTLIERS_TOLD => String::new(),
                len => format!(" and {} more", len - OUTLIERS_TOLD),
            };
            let told = (!told.is_empty()).then(|| told.join(", "));
            told.map(|told| format!("finding: {} under {arm}: {told}{more}", row.named.title))
        };
        sides.filter_map(line).collect::<Vec<_>>()
    });
    let mut lines = distinct(lines);
    if let Some(last) = lines.last_mut() {
        *last +=
            "; far from the other runs, which in simulation is no noise: `sim --seed` repeats it";
    }
    lines
}

/// One line a scheduler: at what it is what, under how many of several loads or machines, and why
/// it is undecided where it is.
fn summary(rows: &[MetricRow]) -> Vec<String> {
    let places = distinct(rows.iter().map(|row| row.place.as_str())).len();
    let arms = distinct(rows.iter().map(|row| (row.arm.as_str(), row.base.as_str())));
    let lines = arms.into_iter().map(|(arm, base)| {
        let here = rows.iter().filter(|row| row.arm == arm && row.base == base);
        let judged: Vec<(&str, Verdict, Option<usize>)> = here
            .filter_map(|row| {
                let judged = row.result.as_ref().ok()?;
                Some((
                    row.named.title.as_str(),
                    judged.verdict?,
                    judged.runs_needed,
                ))
            })
            .collect();
        let words = [
            "better",
            "worse",
            "more",
            "less",
            "no difference",
            "undecided",
        ];
        let parts = words.into_iter().filter_map(|word| {
            let of_word = judged
                .iter()
                .filter(|(_, verdict, _)| verdict_words(*verdict) == word);
            let goals: Vec<&str> = of_word.map(|(goal, ..)| *goal).collect();
            let names = distinct(goals.iter().copied()).into_iter().map(|goal| {
                let count = goals.iter().filter(|it| **it == goal).count();
                match places {
                    1 => goal.to_owned(),
                    _ => format!("{goal} ({count} of {places})"),
                }
            });
            let names: Vec<String> = names.collect();
            (!names.is_empty()).then(|| format!("{word} at {}", names.join(", ")))
        });
        let parts: Vec<String> = parts.collect();
        let mut line = if parts.is_empty() {
            format!("{arm} against {base}: not compared")
        } else {
            format!("{arm} against {base}: {}", parts.join("; "))
        };
        let doubts = distinct(judged.iter().filter_map(|(_, verdict, _)| match verdict {
            Verdict::Undecided(doubt) => Some(doubt.words()),
            _ => None,
        }));
        let needed = judged.iter().filter_map(|(.., needed)| *needed).max();
        let needed = needed.map_or_else(String::new, |runs| {
            format!(": it takes at least {runs} runs of each")
        });
        if !doubts.is_empty() {
            line += &format!(" ({}{needed})", doubts.join("; "));
        }
        line
    });
    lines.collect()
}

/// How it was compared.
fn method(rows: &[MetricRow], settings: &Settings) -> Vec<String> {
    let made: Vec<&Effect> = rows
        .iter()
        .filter_map(|row| Some(&row.result.as_ref().ok()?.effect))
        .collect();
    let pairs = made.iter().filter(|effect| effect.is_paired).count();
    let way = match pairs {
        0 => "by relabeling the runs",
        _ if pairs == made.len() => "by flipping pairs of runs with the same seed",
        _ => "by relabeling the runs, or flipping pairs of the same seed",
    };
    let is_tested = |row: &&MetricRow| {
        let judged = row.result.as_ref().ok();
        row.is_goal && judged.is_some_and(|it| it.effect.p_least < 1.0)
    };
    let goals = rows.iter().filter(is_tested);
    let looks = match settings.looks {
        0 | 1 => String::new(),
        looks => format!(", {looks} looks"),
    };
    let mut lines = vec![format!(
        "intervals of {} % {way}, {} (Holm){looks}, changes of interest from {} %",
        (1.0 - settings.level()) * 100.0,
        counted(goals.count() as u64, "comparison"),
        settings.margin * 100.0,
    )];
    if made.iter().any(|effect| !effect.low.is_finite()) {
        lines.push("-: so few runs set no limit".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use stats::compare::{
        Better, Choice, Measure, MeasuredNumber, Question, Role, Set, Settings, compare,
    };

    use super::*;

    /// Rows of `b` against `a`, whose values are those of the seeds from 0.
    fn rows(world: &str, base: &[f64], other: &[f64]) -> Vec<MetricRow> {
        let set = |arm: &str, values: &[f64]| {
            let mut set = Set::new(arm, "", world);
            for (seed, value) in (0..).zip(values) {
                let measured = MeasuredNumber {
                    name: "missed".to_owned(),
                    measure: Measure::Count,
                    better: Better::Lower,
                    role: Role::Goal,
                    value: *value,
                };
                set.add(vec![measured], Some(seed));
            }
            set
        };
        let (base, others) = (set("a", base), [set("b", other)]);
        let question = Question {
            base: &base,
            others: &others,
            again: None,
            only: None,
        };
        compare(&[question], Choice::Stated, &Settings::default())
    }

    const BASE: [f64; 8] = [50.0, 51.0, 52.0, 50.0, 49.0, 51.0, 50.0, 51.0];

    #[test]
    fn an_outlier_is_a_finding_with_its_seed_in_simulation_alone() {
        let mut other = BASE;
        other[6] = 90.0;
        let told = outliers(&rows("simulated", &BASE, &other));
        let want = "finding: missed under b: 90 with seed 6; far from the other runs, which in \
                    simulation is no noise: `sim --seed` repeats it";
        assert_eq!(told, [want]);
        assert!(outliers(&rows("played", &BASE, &other)).is_empty());
        assert!(outliers(&rows("simulated", &BASE, &BASE)).is_empty());
        let row = &rows("played", &BASE, &other)[0];
        assert_eq!(far(row, 0.5), "outliers: 0 and 1 (p 0.50)");
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_each_metric_a_line_of_its_own() {
        let other = BASE.map(|it| it + 20.0);
        let rows = rows("simulated", &BASE, &other);
        let rows: Vec<&MetricRow> = rows.iter().collect();
        let whole = fitted(&rows, None);
        assert_eq!(whole, (table(&rows).to_string(), true));
        assert_eq!(fitted(&rows, Some(200)), whole);
        let (text, has_all) = fitted(&rows, Some(60));
        assert!(!has_all, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        assert!(text.contains("\nmissed\n  a "), "{text}");
        assert_eq!(text.matches("worse").count(), 1, "{text}");
        assert_eq!(fitted(&[], Some(60)), (String::new(), true));
    }

    #[test]
    fn what_is_undecided_says_how_many_runs_it_takes() {
        let told = |runs: usize, by: f64| {
            let other: Vec<f64> = BASE.iter().map(|it| it + by).collect();
            summary(&rows("played", &BASE[..runs], &other[..runs])).concat()
        };
        assert_eq!(told(8, 20.0), "b against a: worse at missed");
        assert_eq!(told(8, 0.0), "b against a: no difference at missed");
        let few = "b against a: undecided at missed (so few runs cannot decide so many \
                   comparisons: it takes at least 6 runs of each)";
        assert_eq!(told(4, 20.0), few);
        let other: Vec<f64> = BASE.iter().map(|it| it + 20.0).collect();
        let mut twice = rows("played", &BASE, &other);
        twice.extend(twice.clone());
        twice[1].place = "another machine".to_owned();
        assert_eq!(summary(&twice), ["b against a: worse at missed (2 of 2)"]);
        let few = rows("played", &BASE[..4], &BASE[1..5]);
        let lines = method(&few, &Settings::default());
        assert_eq!(lines.last().unwrap(), "-: so few runs set no limit");
        assert!(
            lines[0].contains("by flipping pairs of runs with the same seed, 1 comparison (Holm)")
        );
    }
}
