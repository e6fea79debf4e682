//! The answer for programs.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::choose::Chosen;
use ask::choose::rank::Ranking;
use ask::choose::runs::Field;
use serde_json::{Value, json};
use stats::compare::Extent;

use super::words;
use crate::Origin;
use crate::comparison::Comparison;

/// Writes one document.
///
/// # Errors
/// When `to` does not take it.
pub fn write(chosen: &Chosen, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let Chosen { field, ranking, .. } = chosen;
    let names = |all: &[usize]| -> Vec<&str> { all.iter().map(|at| field.name(*at)).collect() };
    let goals = field
        .goals
        .iter()
        .zip(&ranking.margins)
        .map(|(goal, margin)| {
            json!({
                "goal": goal.to_string(),
                "measure": goal.measure(),
                "better": goal.better(),
                "not_modelled_factor": margin.factor,
                "not_modelled_source": margin.source,
            })
        });
    let winner = ranking.winner.map(|at| {
        json!({
            "name": field.name(at),
            "try": words::command(chosen, at),
            "undo": "sudo runslice stop",
        })
    });
    let worse = ranking.worse.iter().map(Comparison::from);
    let document = json!({
        AnswerKind::Choice.key(): AnswerKind::Choice.version(),
        "version": crate::VERSION,
        "command": origin.words(),
        "answer": words::answer(chosen),
        "workload": field.load,
        "machine": field.machine,
        "runs": field.runs,
        "runs_are_parts": field.is_parts,
        "start_jitter_ns": field.start_jitter.get(),
        "baseline": field.name(0),
        "winner": winner,
        "ties": names(&ranking.ties),
        "close": names(&ranking.close),
        "goals": goals.collect::<Vec<_>>(),
        "candidates": candidates(field, ranking),
        "worse_figures": ranking.looked_at,
        "worse": worse.collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

/// The candidates, best first.
fn candidates(field: &Field, ranking: &Ranking) -> Vec<Value> {
    let of = |&at: &usize| {
        let said = ranking.said(field, at);
        let goals = field.goals.iter().enumerate().map(|(goal, of)| {
            let series = field.sets[at].find(&of.to_string());
            let row = ranking.row(field, at, goal);
            json!({
                "goal": of.to_string(),
                "spread": series.and_then(|it| Extent::of(&it.values)),
                "said": row.map(|_| said[goal].word()),
                "comparison": row.map(Comparison::from),
            })
        });
        json!({
            "name": field.name(at),
            "standing": ranking.standings[at].word(),
            "failure": field.failures[at],
            "goals": goals.collect::<Vec<_>>(),
        })
    };
    ranking.order.iter().map(of).collect()
}
