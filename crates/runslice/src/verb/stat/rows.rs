//! One row of figures, in the three forms.

use std::io::{self, Write};

use model::Nanos;
use serde::Serialize;
use stats::Millionths;
use stats::schedstat::{CpuInterval, Figures, Interval};

use crate::export::{ColumnKind, ExportTable};
use crate::report::Format;
use crate::table::Table;

/// Figures of one CPU, one domain's level or all, over one interval.
#[derive(Debug, Serialize)]
pub struct StatRow {
    /// Seconds from the first snapshot to the end of the interval.
    #[serde(rename = "until_s")]
    pub until: f64,
    /// Length of the interval.
    #[serde(rename = "interval_s")]
    pub length: f64,
    /// `all`, `cpu3`, or `domain0 MC`.
    pub of: String,
    #[serde(flatten)]
    pub figures: Figures,
    /// Calls of `schedule()` in a second; none where the version has no such counter, or where the
    /// kernel's counters were switched off.
    #[serde(rename = "schedule_calls_per_s")]
    pub schedule_calls: Option<f64>,
    /// Calls of the balancer in a second.
    #[serde(rename = "balance_calls_per_s")]
    pub balance_calls: Option<f64>,
    /// Whether a counter began anew in the interval.
    pub restarted: bool,
}

impl StatRow {
    /// The figures of `of`, which stands for `cpus` CPUs.
    pub fn new(interval: &Interval, of: &CpuInterval, name: String, cpus: usize, hz: u32) -> Self {
        let length = seconds(interval.jiffies(), hz);
        let counted = length > 0.0 && interval.counted().has_calls();
        let per_second = |count: u128| counted.then(|| count as f64 / length);
        let layout = interval.layout();
        Self {
            until: length,
            length,
            of: name,
            figures: interval.figures(of, cpus, hz),
            schedule_calls: of.get(layout, "sched_cnt").and_then(per_second),
            balance_calls: of.balance_calls(layout).and_then(per_second),
            restarted: of.restarted,
        }
    }

    /// Without what is counted for CPUs and not for domains.
    pub fn of_domain(mut self) -> Self {
        self.figures.slices = None;
        self.figures.busy = None;
        self.schedule_calls = None;
        self
    }
}

/// A number of jiffies in seconds.
pub fn seconds(jiffies: u64, hz: u32) -> f64 {
    jiffies as f64 / f64::from(hz)
}

/// Writes rows in the form that the user chose.
pub fn write(rows: &[StatRow], format: Format, to: &mut dyn Write) -> io::Result<()> {
    match (format, format.export()) {
        (_, Some(form)) => export(rows).write(form, to),
        (Format::Json, _) => {
            serde_json::to_writer_pretty(&mut *to, rows)?;
            writeln!(to)
        }
        _ => write!(to, "{}", human(rows)),
    }
}

fn human(rows: &[StatRow]) -> Table {
    let mut table = Table::default()
        .numbers("until")
        .names("of")
        .numbers("busy")
        .numbers("slices")
        .numbers("latency")
        .numbers("runslice")
        .numbers_of("calls/s", "schedule")
        .numbers_of("calls/s", "balance")
        .names("imbalance a call (a find)");
    for row in rows {
        let figures = &row.figures;
        table.row([
            format!("{:.1} s", row.until),
            if row.restarted {
                format!("{} (restarted)", row.of)
            } else {
                row.of.clone()
            },
            share(figures.busy),
            figures
                .slices
                .map_or_else(dash, |slices| slices.to_string()),
            span(figures.latency),
            span(figures.runslice),
            rate(row.schedule_calls),
            rate(row.balance_calls),
            imbalance(figures),
        ]);
    }
    table
}

fn dash() -> String {
    "-".to_owned()
}

fn share(share: Option<Millionths>) -> String {
    share.map_or_else(dash, |share| format!("{:.1} %", share.0 as f64 / 1e4))
}

fn span(span: Option<Nanos>) -> String {
    span.map_or_else(dash, |span| span.to_string())
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(dash, |rate| format!("{rate:.1}"))
}

fn imbalance(figures: &Figures) -> String {
    let decimal = |value: Option<Millionths>| {
        value.map_or_else(dash, |value| format!("{:.3}", value.0 as f64 / 1e6))
    };
    let kinds = figures.imbalance.iter().map(|kind| {
        format!(
            "{} {} ({})",
            kind.kind,
            decimal(kind.per_call),
            decimal(kind.per_found)
        )
    });
    let shown: Vec<String> = kinds.collect();
    if shown.is_empty() {
        dash()
    } else {
        shown.join(", ")
    }
}

/// The columns of the exported table; an imbalance of a kind that the version lacks is empty.
const COLUMNS: [(&str, ColumnKind); 13] = [
    ("until_s", ColumnKind::Real),
    ("interval_s", ColumnKind::Real),
    ("of", ColumnKind::Text),
    ("busy_ppm", ColumnKind::Whole),
    ("slices", ColumnKind::Whole),
    ("latency_ns", ColumnKind::Whole),
    ("runslice_ns", ColumnKind::Whole),
    ("schedule_calls_per_s", ColumnKind::Real),
    ("balance_calls_per_s", ColumnKind::Real),
    ("imbalance_kind", ColumnKind::Text),
    ("imbalance_per_call_millionths", ColumnKind::Whole),
    ("imbalance_per_found_millionths", ColumnKind::Whole),
    ("restarted", ColumnKind::Truth),
];

/// One line for each kind of imbalance, as a table of one kind of row must have it.
fn export(rows: &[StatRow]) -> ExportTable {
    let mut table = ExportTable::new(COLUMNS);
    for row in rows {
        let figures = &row.figures;
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let real = |value: f64| format!("{value:.3}");
        let ratio = |value: Option<f64>| value.map_or_else(String::new, real);
        let head = [
            real(row.until),
            real(row.length),
            row.of.clone(),
            number(figures.busy.map(|share| share.0)),
            number(figures.slices),
            number(figures.latency.map(Nanos::get)),
            number(figures.runslice.map(Nanos::get)),
            ratio(row.schedule_calls),
            ratio(row.balance_calls),
        ];
        let mut kinds: Vec<[String; 3]> = Vec::new();
        for kind in &figures.imbalance {
            let [call, found] = [kind.per_call, kind.per_found].map(|v| number(v.map(|v| v.0)));
            kinds.push([kind.kind.to_string(), call, found]);
        }
        if kinds.is_empty() {
            kinds.push(Default::default());
        }
        for kind in kinds {
            let last = [row.restarted.to_string()];
            table.row(head.iter().cloned().chain(kind).chain(last));
        }
    }
    table
}
