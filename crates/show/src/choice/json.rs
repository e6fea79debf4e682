//! The answer for programs.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::choose::Chosen;
use ask::choose::errors::ErrorTable;
use ask::choose::field::Field;
use ask::choose::rank::Ranking;
use serde_json::{Value, json};
use stats::compare::Extent;

use super::sentences::said;
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
    let goals = field.goals.iter().enumerate().map(|(at, goal)| {
        let plan = field.plan();
        let of = |times: &[Option<model::Nanos>]| times.get(at).copied().flatten();
        json!({
            "goal": goal.to_string(),
            "measure": goal.measure(),
            "better": goal.better(),
            "block_ns": plan.and_then(|it| of(&it.blocks)).map(model::Nanos::get),
            "lacks_ns": plan.and_then(|it| of(&it.lacks)).map(model::Nanos::get),
        })
    });
    let winner = chosen.winner().map(|at| {
        json!({
            "name": field.name(at),
            "try": words::command(chosen, at),
            "undo": "sudo runslice stop",
        })
    });
    let worse = ranking.worse.iter().map(|(row, said)| {
        json!({ "answer": said.answer, "said": said.words(),
            "comparison": Comparison::from(&said.judged(row)) })
    });
    let parts: serde_json::Map<String, Value> = said(chosen)
        .into_iter()
        .map(|part| (part.name.to_owned(), json!(part.sentences)))
        .collect();
    let mut document = json!({
        AnswerKind::Choice.key(): AnswerKind::Choice.version(),
        "version": crate::VERSION,
        "command": origin.words(),
        "answer": super::answer(chosen),
        "answer_parts": parts,
        "workload": field.load,
        "machine": field.machine,
        "runs": field.runs,
        "recording_ns": field.plan().map(|it| it.length.get()),
        "warm_up_ns": field.plan().map(|it| it.warm_up.get()),
        "start_jitter_ns": field.start_jitter.get(),
        "seed": field.seed,
        "recording": field.identity,
        "objects": objects(&field.objects()),
        "inputs": chosen.inputs,
        "ratio_errors": ratio_errors(),
        "baseline": field.name(0),
        "winner": winner,
        "ties": names(&ranking.ties),
        "goals": goals.collect::<Vec<_>>(),
        "candidates": candidates(field, ranking),
        "worse_figures": ranking.looked_at,
        "worse": worse.collect::<Vec<_>>(),
    });
    if !chosen.spread.is_empty() {
        let corners = chosen
            .spread
            .iter()
            .map(|it| json!({ "corner": it.corner, "winner": it.winner.map(|at| field.name(at)) }));
        document["spread"] = corners.collect();
    }
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

/// The objects of candidates.
pub fn objects(of: &[(String, Option<String>)]) -> Vec<Value> {
    let all = of.iter();
    all.map(|(name, hash)| json!({ "name": name, "blake3": hash }))
        .collect()
}

/// Which table of errors it was.
pub fn ratio_errors() -> Value {
    let table = ErrorTable::own();
    json!({
        "measured_on": table.measured_on,
        "loads": table.loads.len(),
        "blake3": ErrorTable::own_hash(),
    })
}

/// The candidates in their order.
fn candidates(field: &Field, ranking: &Ranking) -> Vec<Value> {
    let of = |&at: &usize| {
        let goals = field.goals.iter().enumerate().map(|(goal, of)| {
            let series = field.sets[at].find(&of.to_string());
            let row = ranking.row(field, at, goal);
            let said = ranking.said[at].get(goal);
            let error = ranking.errors[at].get(goal).filter(|_| said.is_some());
            let row = row.zip(said).map(|(row, said)| said.judged(row));
            json!({
                "goal": of.to_string(),
                "value": field.value(at, goal),
                "spread": series.and_then(|it| Extent::of(&it.values)),
                "answer": said.map(|it| it.answer),
                "said": said.map(stats::compare::Answered::words),
                "not_worse": said.map(|it| it.is_not_worse),
                "error_factor": error.map(stats::compare::RatioError::factor),
                "error_source": error.map(|it| &it.source),
                "comparison": row.as_ref().map(Comparison::from),
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
