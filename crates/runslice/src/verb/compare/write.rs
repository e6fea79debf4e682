//! A comparison as tables, JSON and CSV.

use std::io::{self, Write};

use serde::Serialize;
use stats::compare::{Better, Extent, Judged, Measure, Row, Settings, Verdict};

use super::Form;
use super::family::Family;
use crate::report::runs::shown_value;
use crate::sheet::{Kind, Sheet};
use crate::table::Table;

/// Version of the document; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    runslice_comparison: u32,
    confidence_permille: u16,
    margin_ppm: u64,
    trim_percent: u8,
    resamples: u32,
    resample_seed: u64,
    notes: Vec<String>,
    comparisons: Vec<Comparison<'a>>,
}

#[derive(Serialize)]
struct Comparison<'a> {
    place: &'a str,
    metric: &'a str,
    measure: Measure,
    better: Better,
    baseline: Side<'a>,
    against: Side<'a>,
    #[serde(flatten)]
    result: Option<Found>,
    /// Why there is no result.
    refused: Option<String>,
}

#[derive(Serialize)]
struct Side<'a> {
    name: &'a str,
    #[serde(flatten)]
    extent: Option<Extent>,
}

#[derive(Serialize)]
struct Found {
    /// `None`: the baseline is 0.
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    /// `None`: no upper limit is known.
    ratio_high: Option<f64>,
    p: f64,
    p_holm: f64,
    noise: Option<f64>,
    verdict: Verdict,
    doubt: Option<&'static str>,
}

impl From<&Judged> for Found {
    fn from(judged: &Judged) -> Self {
        let effect = &judged.effect;
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Self {
            ratio: finite(effect.ratio),
            ratio_low: finite(effect.low),
            ratio_high: finite(effect.high),
            p: effect.p,
            p_holm: judged.p_holm,
            noise: judged.floor,
            verdict: judged.verdict,
            doubt: match judged.verdict {
                Verdict::Undecided(doubt) => Some(doubt.words()),
                _ => None,
            },
        }
    }
}

impl<'a> From<&'a Row> for Comparison<'a> {
    fn from(row: &'a Row) -> Self {
        Self {
            place: &row.place,
            metric: &row.metric,
            measure: row.measure,
            better: row.better,
            baseline: Side {
                name: &row.base,
                extent: row.base_extent,
            },
            against: Side {
                name: &row.arm,
                extent: row.arm_extent,
            },
            result: row.result.as_ref().ok().map(Found::from),
            refused: row.result.as_ref().err().map(ToString::to_string),
        }
    }
}

/// Writes the comparison.
///
/// # Errors
/// When `to` does not take it.
pub fn write(
    family: &Family,
    rows: &[Row],
    settings: &Settings,
    form: Form,
    to: &mut dyn Write,
) -> io::Result<()> {
    let notes = || family.voids().into_iter().chain(family.notes.clone());
    match (form, form.sheet()) {
        (_, Some(form)) => sheet(rows).write(form, to),
        (Form::Json, _) => {
            let document = Document {
                runslice_comparison: VERSION,
                confidence_permille: settings.confidence,
                margin_ppm: (settings.margin * 1e6).round() as u64,
                trim_percent: settings.trim,
                resamples: settings.resamples,
                resample_seed: settings.seed,
                notes: notes().collect(),
                comparisons: rows.iter().map(Comparison::from).collect(),
            };
            serde_json::to_writer_pretty(&mut *to, &document).map_err(io::Error::from)?;
            writeln!(to)
        }
        _ => human(rows, settings, &notes().collect::<Vec<_>>(), to),
    }
}

/// A number for CSV: as short as possible, and exact.
fn plain(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

/// The columns of a sheet.
const COLUMNS: [(&str, Kind); 14] = [
    ("place", Kind::Text),
    ("metric", Kind::Text),
    ("baseline", Kind::Text),
    ("against", Kind::Text),
    ("baseline_runs", Kind::Whole),
    ("baseline_median", Kind::Real),
    ("against_runs", Kind::Whole),
    ("against_median", Kind::Real),
    ("ratio", Kind::Real),
    ("ratio_low", Kind::Real),
    ("ratio_high", Kind::Real),
    ("p_holm", Kind::Real),
    ("verdict", Kind::Text),
    ("refused", Kind::Text),
];

fn sheet(rows: &[Row]) -> Sheet {
    let mut sheet = Sheet::new(COLUMNS);
    for row in rows {
        let side = |extent: Option<Extent>| match extent {
            Some(extent) => [extent.runs.to_string(), plain(extent.median)],
            None => ["0".to_owned(), String::new()],
        };
        let names = [&row.place, &row.metric, &row.base, &row.arm].map(Clone::clone);
        let mut result = [(); 6].map(|()| String::new());
        match &row.result {
            Ok(judged) => {
                let effect = &judged.effect;
                let numbers = [effect.ratio, effect.low, effect.high, judged.p_holm];
                result[..4].clone_from_slice(&numbers.map(plain));
                result[4] = judged.verdict.words().to_owned();
            }
            Err(refusal) => result[5] = refusal.to_string(),
        }
        let sides = [side(row.base_extent), side(row.arm_extent)].concat();
        sheet.row(names.into_iter().chain(sides).chain(result));
    }
    sheet
}

fn human(
    rows: &[Row],
    settings: &Settings,
    notes: &[String],
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut places: Vec<&str> = Vec::new();
    for row in rows {
        if !places.contains(&row.place.as_str()) {
            places.push(&row.place);
        }
    }
    for place in places {
        let here: Vec<&Row> = rows.iter().filter(|row| row.place == place).collect();
        let table = table(&here);
        if table.is_empty() {
            continue;
        }
        if !place.is_empty() {
            writeln!(to, "{place}")?;
        }
        writeln!(to, "{table}")?;
    }
    for line in summary(rows) {
        writeln!(to, "{line}")?;
    }
    if let Some(line) = noise(rows) {
        writeln!(to, "{line}")?;
    }
    for (row, refusal) in rows.iter().filter_map(|row| Some((row, row.result.err()?))) {
        writeln!(to, "{}, {}: not compared: {refusal}", row.metric, row.arm)?;
    }
    for note in notes {
        writeln!(to, "{note}")?;
    }
    let percent = settings.margin * 100.0;
    writeln!(
        to,
        "intervals of {} % by {} resamples, {} comparisons (Holm), changes of interest from \
         {percent} %",
        f64::from(settings.confidence) / 10.0,
        settings.resamples,
        rows.iter().filter(|row| row.result.is_ok()).count(),
    )
}

/// The baseline's row once for each metric, and a row for each that is held against it.
fn table(rows: &[&Row]) -> Table {
    let mut table = Table::default()
        .names("metric")
        .names("scheduler")
        .numbers("runs")
        .numbers("median")
        .numbers("min")
        .numbers("max")
        .numbers("change")
        .numbers_of("interval", "from")
        .numbers_of("interval", "to")
        .names("verdict");
    let mut last: Option<(&str, &str)> = None;
    for row in rows {
        let made = row.result.as_ref().ok();
        let Some(judged) = made else { continue };
        let this = (row.metric.as_str(), row.base.as_str());
        if last != Some(this) {
            let first = match last {
                Some((metric, _)) if metric == row.metric => String::new(),
                _ => row.metric.clone(),
            };
            let side = side(&row.base, row.base_extent, row.measure);
            let nothing = [(); 3].map(|()| String::new());
            let word = ["baseline".to_owned()];
            table.row([first].into_iter().chain(side).chain(nothing).chain(word));
            last = Some(this);
        }
        let side = side(&row.arm, row.arm_extent, row.measure);
        let effect = &judged.effect;
        let change = [effect.ratio, effect.low, effect.high].map(change);
        let word = [judged.verdict.words().to_owned()];
        let blank = [String::new()];
        table.row(blank.into_iter().chain(side).chain(change).chain(word));
    }
    table
}

fn side(name: &str, extent: Option<Extent>, measure: Measure) -> [String; 5] {
    let Some(extent) = extent else {
        return [name, "0", "-", "-", "-"].map(str::to_owned);
    };
    let shown = |value| shown_value(measure, value);
    [
        name.to_owned(),
        extent.runs.to_string(),
        shown(extent.median),
        shown(extent.min),
        shown(extent.max),
    ]
}

/// A ratio as a change in per cent; large ones as a factor.
fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        // Of a baseline of 0, or an interval without an end.
        return "x ?".to_owned();
    }
    match ratio {
        10.0.. => format!("x {ratio:.1}"),
        _ => format!("{:+.1} %", (ratio - 1.0) * 100.0),
    }
}

/// What two arms of the same scheduler differed by.
fn noise(rows: &[Row]) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for row in rows {
        let floor = row.result.as_ref().ok().and_then(|it| it.floor);
        let part = floor.map(|floor| format!("{} {:.1} %", row.metric, floor * 100.0));
        parts.extend(part.filter(|part| !parts.contains(part)));
    }
    let base = &rows.first()?.base;
    let parts = parts.join(", ");
    (!parts.is_empty()).then(|| format!("noise between two arms of {base}: {parts}"))
}

/// One line a scheduler: how often it is what, and why it is undecided where it is.
fn summary(rows: &[Row]) -> Vec<String> {
    let mut arms: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let pair = (row.arm.as_str(), row.base.as_str());
        if !arms.contains(&pair) {
            arms.push(pair);
        }
    }
    let lines = arms.into_iter().map(|(arm, base)| {
        let here = rows.iter().filter(|row| row.arm == arm && row.base == base);
        let judged: Vec<(&str, Verdict)> = here
            .filter_map(|row| Some((row.metric.as_str(), row.result.as_ref().ok()?.verdict)))
            .collect();
        let mut parts = Vec::new();
        for word in [
            "faster",
            "slower",
            "more",
            "less",
            "no difference",
            "undecided",
        ] {
            let of_word = judged.iter().filter(|(_, verdict)| verdict.words() == word);
            let names: Vec<&str> = of_word.map(|(metric, _)| *metric).collect();
            if !names.is_empty() {
                parts.push(format!("{word} in {}", names.join(", ")));
            }
        }
        if parts.is_empty() {
            parts.push("not compared".to_owned());
        }
        let mut line = format!("{arm} against {base}: {}", parts.join("; "));
        let mut doubts: Vec<&str> = Vec::new();
        for (_, verdict) in &judged {
            if let Verdict::Undecided(doubt) = verdict
                && !doubts.contains(&doubt.words())
            {
                doubts.push(doubt.words());
            }
        }
        if !doubts.is_empty() {
            line += &format!(" ({})", doubts.join("; "));
        }
        line
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_and_large_ones_are_factors() {
        assert_eq!(change(1.0513), "+5.1 %");
        assert_eq!(change(0.5), "-50.0 %");
        assert_eq!(change(12.34), "x 12.3");
        assert_eq!(change(f64::INFINITY), "x ?");
    }
}
