//! The score for programs.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::score::Scored;
use ask::score::trial::{NULL, kernel};
use serde_json::json;
use stats::compare::skill::ConfidenceInterval;

use super::words;
use crate::Origin;
use crate::export::{ColumnKind, ExportTable};

/// Writes one document.
///
/// # Errors
/// When `to` does not take it.
pub fn json(scored: &Scored, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let Scored { held, rows } = scored;
    let document = json!({
        AnswerKind::Score.key(): AnswerKind::Score.version(),
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
const COLUMNS: [(&str, ColumnKind); 21] = [
    ("schema", ColumnKind::Text),
    ("version", ColumnKind::Text),
    ("command", ColumnKind::Text),
    ("part", ColumnKind::Text),
    ("verdict", ColumnKind::Text),
    ("error_simulated", ColumnKind::Real),
    ("error_null", ColumnKind::Real),
    ("error_itself", ColumnKind::Real),
    ("skill", ColumnKind::Real),
    ("skill_low", ColumnKind::Real),
    ("skill_high", ColumnKind::Real),
    ("ceiling", ColumnKind::Real),
    ("ceiling_low", ColumnKind::Real),
    ("ceiling_high", ColumnKind::Real),
    ("reach", ColumnKind::Real),
    ("reach_low", ColumnKind::Real),
    ("reach_high", ColumnKind::Real),
    ("excess", ColumnKind::Real),
    ("excess_low", ColumnKind::Real),
    ("excess_high", ColumnKind::Real),
    ("covered", ColumnKind::Real),
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
        let none = ConfidenceInterval {
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
        let front = origin.cells("score", AnswerKind::Score.version());
        table.row(front.into_iter().chain(names).chain(numbers.map(plain)));
    }
    table
}
