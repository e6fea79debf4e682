//! The score for programs.

use std::io::{self, Write};

use ask::score::Scored;
use ask::score::trial::{NULL, kernel};
use ask::score_file::VERSION;
use serde_json::json;
use stats::compare::skill::Interval;

use super::words;
use crate::Origin;
use crate::export::{ExportTable, Kind};

/// Writes one document.
///
/// # Errors
/// When `to` does not take it.
pub fn json(scored: &Scored, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let Scored { held, rows } = scored;
    let document = json!({
        "runslice_score": VERSION,
        "version": crate::VERSION,
        "command": origin.words(),
        "answer": words::answer(scored),
        "recording": held.identity,
        "second": held.second,
        "recorded_under": held.under.policy,
        "recorded_under_source": held.under.source,
        "null_model": NULL,
        "cpus": held.machine.cpus,
        "hz": held.machine.hz,
        "profile": held.machine.profile.name(),
        "simulated_kernel": kernel(&held.machine),
        "first_ns": held.lengths[0].get(),
        "second_ns": held.lengths[1].get(),
        "notes": held.notes,
        "parts": rows,
    });
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

/// The columns of the exported table.
const COLUMNS: [(&str, Kind); 21] = [
    ("schema", Kind::Text),
    ("version", Kind::Text),
    ("command", Kind::Text),
    ("part", Kind::Text),
    ("verdict", Kind::Text),
    ("error_simulated", Kind::Real),
    ("error_null", Kind::Real),
    ("error_itself", Kind::Real),
    ("skill", Kind::Real),
    ("skill_low", Kind::Real),
    ("skill_high", Kind::Real),
    ("ceiling", Kind::Real),
    ("ceiling_low", Kind::Real),
    ("ceiling_high", Kind::Real),
    ("reach", Kind::Real),
    ("reach_low", Kind::Real),
    ("reach_high", Kind::Real),
    ("excess", Kind::Real),
    ("excess_low", Kind::Real),
    ("excess_high", Kind::Real),
    ("covered", Kind::Real),
];

/// A row for each part.
#[must_use]
pub fn table(scored: &Scored, origin: &Origin) -> ExportTable {
    let mut table = ExportTable::new(COLUMNS);
    let plain = |value: f64| {
        if value.is_finite() {
            value.to_string()
        } else {
            String::new()
        }
    };
    for row in &scored.rows {
        let factors = [row.factors.simulated, row.factors.null, row.factors.itself];
        let none = Interval {
            value: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
        };
        let intervals = [
            row.skill,
            row.ceiling,
            row.reach.unwrap_or(none),
            row.excess,
        ];
        let intervals = intervals.map(|it| [it.value, it.low, it.high]).concat();
        let numbers = factors.into_iter().chain(intervals).chain([row.covered]);
        let names = [row.part.name(), row.verdict.word()].map(str::to_owned);
        let front = origin.cells("score", VERSION);
        table.row(front.into_iter().chain(names).chain(numbers.map(plain)));
    }
    table
}
