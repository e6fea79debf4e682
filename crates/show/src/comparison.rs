//! Comparisons of sets of runs, as tables, pages, JSON and rows for programs.

mod headline;
mod human;
mod matrix;
mod page;
mod words;

use std::io::{self, Write};

use ask::AnswerKind;
use model::Advice;
use serde::Serialize;
use stats::compare::{
    Better, Extent, JudgedSets, Measure, MetricRow, Outlier, SAMPLES_MAX, Scale, Verdict,
};

use crate::Origin;
use crate::export::{ColumnKind, ExportTable};

pub use headline::verdict;
pub use human::write as text;
pub use page::{Compared, page};
pub use words::verdict_words;
pub(crate) use words::{difference, unit};

#[derive(Serialize)]
struct Document<'a> {
    runslice_comparison: u32,
    version: &'static str,
    command: &'a [String],
    alpha_ppm: u64,
    looks: u32,
    margin_ppm: u64,
    relabelings_max: usize,
    resample_seed: u64,
    notes: Vec<String>,
    comparisons: Vec<Comparison<'a>>,
}

/// One comparison as documents have it.
#[derive(Serialize)]
pub struct Comparison<'a> {
    place: &'a str,
    metric: &'a str,
    measure: Measure,
    better: Better,
    goal: bool,
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
    outliers: Vec<Far>,
}

/// A run that lies far from the others.
#[derive(Serialize)]
struct Far {
    value: f64,
    seed: Option<u64>,
}

#[derive(Serialize)]
struct Found {
    scale: Scale,
    paired: bool,
    /// `None` of a difference, where values are 0.
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    /// `None`: so few runs set no limit.
    ratio_high: Option<f64>,
    /// `None` of a ratio.
    difference: Option<f64>,
    difference_low: Option<f64>,
    difference_high: Option<f64>,
    trimmed: f64,
    trimmed_low: f64,
    trimmed_high: f64,
    p: f64,
    p_holm: f64,
    p_same: f64,
    p_same_holm: f64,
    p_outliers: f64,
    noise: Option<f64>,
    /// `None` of a metric that is no goal.
    verdict: Option<Verdict>,
    doubt: Option<&'static str>,
    runs_needed: Option<usize>,
}

impl From<&JudgedSets> for Found {
    fn from(judged: &JudgedSets) -> Self {
        let effect = &judged.effect;
        let of = |scale: Scale, shift: f64| {
            let value = Some(scale.said(shift));
            value.filter(|_| effect.scale == scale && shift.is_finite())
        };
        let trimmed = effect.trimmed;
        let [center, low, high] =
            [trimmed.shift, trimmed.low, trimmed.high].map(|it| effect.scale.said(it));
        Self {
            scale: effect.scale,
            paired: effect.is_paired,
            ratio: of(Scale::Log, effect.shift),
            ratio_low: of(Scale::Log, effect.low),
            ratio_high: of(Scale::Log, effect.high),
            difference: of(Scale::Linear, effect.shift),
            difference_low: of(Scale::Linear, effect.low),
            difference_high: of(Scale::Linear, effect.high),
            trimmed: center,
            trimmed_low: low,
            trimmed_high: high,
            p: effect.p,
            p_holm: judged.p_holm,
            p_same: effect.p_same,
            p_same_holm: judged.p_same_holm,
            p_outliers: judged.p_outliers,
            noise: judged.floor.map(|floor| match effect.scale {
                Scale::Log => effect.scale.said(floor) - 1.0,
                Scale::Linear => floor,
            }),
            verdict: judged.verdict,
            doubt: match judged.verdict {
                Some(Verdict::Undecided(doubt)) => Some(doubt.words()),
                _ => None,
            },
            runs_needed: judged.runs_needed,
        }
    }
}

impl<'a> From<&'a MetricRow> for Comparison<'a> {
    fn from(row: &'a MetricRow) -> Self {
        let side = |name, extent, outliers: &[Outlier]| Side {
            name,
            extent,
            outliers: outliers
                .iter()
                .map(|it| Far {
                    value: it.value,
                    seed: it.seed,
                })
                .collect(),
        };
        let [ours, theirs] = &row.outliers;
        Self {
            place: &row.place,
            metric: &row.metric,
            measure: row.measure,
            better: row.better,
            goal: row.is_goal,
            baseline: side(&row.base, row.base_extent, ours),
            against: side(&row.arm, row.arm_extent, theirs),
            result: row.result.as_ref().ok().map(Found::from),
            refused: row.result.as_ref().err().map(Advice::in_full),
        }
    }
}

/// Writes one document.
///
/// # Errors
/// When `to` does not take it.
pub fn json(compared: &Compared<'_>, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let Compared { rows, settings, .. } = *compared;
    let document = Document {
        runslice_comparison: AnswerKind::Comparison.version(),
        version: crate::VERSION,
        command: origin.words(),
        alpha_ppm: (settings.alpha * 1e6).round() as u64,
        looks: settings.looks,
        margin_ppm: (settings.margin * 1e6).round() as u64,
        relabelings_max: SAMPLES_MAX,
        resample_seed: settings.seed,
        notes: compared.notes(),
        comparisons: rows.iter().map(Comparison::from).collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &document).map_err(io::Error::from)?;
    writeln!(to)
}

/// A number for CSV: as short as possible, and exact.
fn plain(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

/// The columns of the exported table.
const COLUMNS: [(&str, ColumnKind); 20] = [
    ("schema", ColumnKind::Text),
    ("version", ColumnKind::Text),
    ("command", ColumnKind::Text),
    ("place", ColumnKind::Text),
    ("metric", ColumnKind::Text),
    ("baseline", ColumnKind::Text),
    ("against", ColumnKind::Text),
    ("baseline_runs", ColumnKind::Whole),
    ("baseline_median", ColumnKind::Real),
    ("against_runs", ColumnKind::Whole),
    ("against_median", ColumnKind::Real),
    ("ratio", ColumnKind::Real),
    ("ratio_low", ColumnKind::Real),
    ("ratio_high", ColumnKind::Real),
    ("difference", ColumnKind::Real),
    ("difference_low", ColumnKind::Real),
    ("difference_high", ColumnKind::Real),
    ("p_holm", ColumnKind::Real),
    ("verdict", ColumnKind::Text),
    ("refused", ColumnKind::Text),
];

/// The rows as a table for programs.
#[must_use]
pub fn table_of(rows: &[MetricRow], origin: &Origin) -> ExportTable {
    let words = |at: usize| {
        let judged = rows[at].result.as_ref().ok();
        judged.and_then(|it| it.verdict).map(Verdict::words)
    };
    table_saying(rows, &words, origin)
}

/// The same with other words for the verdict of the row of each number.
#[must_use]
pub fn table_saying(
    rows: &[MetricRow],
    words: &dyn Fn(usize) -> Option<&'static str>,
    origin: &Origin,
) -> ExportTable {
    let mut table = ExportTable::new(COLUMNS);
    for (at, row) in rows.iter().enumerate() {
        let side = |extent: Option<Extent>| match extent {
            Some(extent) => [extent.runs.to_string(), plain(extent.median)],
            None => ["0".to_owned(), String::new()],
        };
        let names = [&row.place, &row.metric, &row.base, &row.arm].map(Clone::clone);
        let mut result = [(); 9].map(|()| String::new());
        match &row.result {
            Ok(judged) => {
                let effect = &judged.effect;
                let column = if effect.scale == Scale::Log { 0 } else { 3 };
                let shifts = [effect.shift, effect.low, effect.high];
                let said = shifts.map(|it| {
                    if it.is_finite() {
                        plain(effect.scale.said(it))
                    } else {
                        String::new()
                    }
                });
                result[column..column + 3].clone_from_slice(&said);
                if judged.verdict.is_some() {
                    result[6] = plain(judged.p_holm);
                }
            }
            Err(refusal) => result[8] = refusal.in_full(),
        }
        words(at).unwrap_or_default().clone_into(&mut result[7]);
        let sides = [side(row.base_extent), side(row.arm_extent)].concat();
        let front = origin.cells("comparison", AnswerKind::Comparison.version());
        table.row(front.into_iter().chain(names).chain(sides).chain(result));
    }
    table
}
