//! Who has the CPU under each policy, one below the other, as textbooks draw it.

use super::chart::{Body, Chart, Lane};
use super::collect::Collector;
use super::run::{joined, names_of, winner};
use super::turns::{TURNS_MAX, Turn, has_few_tasks};

/// Rows of the figure at most: of more nobody can tell who is who.
const ROWS: usize = 24;

/// Who had which CPU in each of these runs of one load, if it has few tasks and all rows fit.
#[must_use]
pub fn gantt(runs: &[&Collector]) -> Option<Chart> {
    let header = runs.first()?.header()?;
    let groups = &header.groups;
    let alike = |run: &&Collector| run.header().is_some_and(|it| it.groups == *groups);
    let rows: usize = runs.iter().map(|run| run.rows.len()).sum();
    if !has_few_tasks(header) || rows > ROWS || !runs.iter().all(alike) {
        return None;
    }
    let spans = runs.iter().map(|run| run.span);
    let span = (
        spans.clone().map(|span| span.0).min()?,
        spans.map(|span| span.1).max()?,
    );
    let turns = exact(runs);
    let names = names_of(runs);
    let lanes = runs
        .iter()
        .zip(&names)
        .enumerate()
        .flat_map(|(at, (run, name))| {
            let turns = turns.as_ref().map(|it| it[at]);
            let several = run.rows.len() > 1;
            (0..run.rows.len()).map(move |cpu| {
                let place = if several {
                    format!(", CPU {cpu}")
                } else {
                    String::new()
                };
                lane(run, format!("{name}{place}"), cpu, turns)
            })
        });
    let read = if turns.is_some() {
        "Point at a bar to see from when to when, and which line of the policy chose the task."
    } else {
        "A piece of time has the colour of the task that had the CPU longest in it, and none if it \
         was idle for more than half of it."
    };
    Some(Chart {
        id: "gantt".into(),
        title: "Who had the CPU".into(),
        subtitle: runs[0].place(),
        description: format!("Each row is a policy. {read}"),
        body: Body::Lanes {
            span,
            names: groups.iter().map(|group| group.name.clone()).collect(),
            lanes: lanes.collect(),
        },
    })
}

/// The turns of each run, if all of them are known and a figure has room for them.
fn exact<'a>(runs: &[&'a Collector]) -> Option<Vec<&'a [Turn]>> {
    let all: Vec<&[Turn]> = runs
        .iter()
        .map(|run| run.turns.kept())
        .collect::<Option<_>>()?;
    let count: usize = all.iter().map(|turns| turns.len()).sum();
    (count <= TURNS_MAX).then_some(all)
}

fn lane(run: &Collector, name: String, cpu: usize, turns: Option<&[Turn]>) -> Lane {
    let Some(turns) = turns else {
        let columns = run.rows[cpu].spans().map(|((from, to), share)| {
            let to = to.min(run.span.1);
            let who = winner(share, to.saturating_sub(from));
            (from, to, who.map(|group| group as usize))
        });
        let stretches = joined(columns);
        return Lane {
            name,
            stretches,
            told: Vec::new(),
        };
    };
    let here = || turns.iter().filter(|turn| turn.cpu == cpu);
    let group = |turn: &Turn| run.group_of(turn.task) as usize;
    Lane {
        stretches: here()
            .map(|turn| (turn.from, turn.to, group(turn)))
            .collect(),
        told: here()
            .map(|turn| turn.told(&name, &run.records[turn.task.index()].name))
            .collect(),
        name,
    }
}
