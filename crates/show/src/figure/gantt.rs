//! Who has the CPU under each policy, one below the other, as textbooks draw it.

use super::chart::{Body, Chart, Lane};
use super::collect::Collector;
use super::ink::COLOURS;
use super::run::{joined, names_of, winner};

/// Rows of the figure at most: of more nobody can tell who is who.
const ROWS: usize = 24;
/// Tasks of the load at most.
const TASKS: u64 = 8;

/// Who had which CPU in each of these runs of one load, if it has few tasks and all rows fit.
#[must_use]
pub fn gantt(runs: &[&Collector]) -> Option<Chart> {
    let header = runs.first()?.header()?;
    let groups = &header.groups;
    let alike = |run: &&Collector| run.header().is_some_and(|it| it.groups == *groups);
    let rows: usize = runs.iter().map(|run| run.rows.len()).sum();
    let tasks: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    let are_few = groups.len() <= COLOURS && tasks <= TASKS;
    // Groups that are only forked have as many tasks as the run likes.
    let are_known = groups.iter().all(|group| group.count > 0);
    if !are_few || !are_known || rows > ROWS || !runs.iter().all(alike) {
        return None;
    }
    let spans = runs.iter().map(|run| run.span);
    let span = (
        spans.clone().map(|span| span.0).min()?,
        spans.map(|span| span.1).max()?,
    );
    let names = names_of(runs);
    let lanes = runs.iter().zip(&names).flat_map(|(run, name)| {
        let several = run.rows.len() > 1;
        run.rows.iter().enumerate().map(move |(cpu, row)| {
            let columns = row.spans().map(|((from, to), share)| {
                let to = to.min(run.span.1);
                let who = winner(share, to.saturating_sub(from));
                (from, to, who.map(|group| group as usize))
            });
            let place = if several {
                format!(", CPU {cpu}")
            } else {
                String::new()
            };
            Lane {
                name: format!("{name}{place}"),
                stretches: joined(columns),
            }
        })
    });
    Some(Chart {
        id: "gantt".into(),
        title: "Who had the CPU".into(),
        subtitle: runs[0].place(),
        description: "Each row is a policy. A piece of time has the colour of the task that had \
                      the CPU longest in it, and none if it was idle for more than half of it."
            .into(),
        body: Body::Lanes {
            span,
            names: groups.iter().map(|group| group.name.clone()).collect(),
            lanes: lanes.collect(),
        },
    })
}
