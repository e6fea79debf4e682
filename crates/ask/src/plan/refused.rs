//! What a sweep's file cannot ask for, and where it stands.

use anyhow::anyhow;
use model::Advised;
use sim::MachinePart;
use toml::Spanned;

use super::{Draft, Source};

/// Says in which list the impossible machine stands.
pub(super) fn machine(draft: &Draft, source: &Source<'_>, error: &sim::Error) -> anyhow::Error {
    let list = match error {
        sim::Error::Machine { part, .. } => match part {
            MachinePart::Cpus => draft.cpus.first().map(Spanned::span),
            MachinePart::Hz => draft.hz.first().map(Spanned::span),
            MachinePart::Smt => draft.smt.first().map(Spanned::span),
            MachinePart::Llc => draft.llc.first().map(Spanned::span),
            // A plan has no list of nodes: what does not fit into one is its caches.
            MachinePart::Node => draft.llc.first().map(Spanned::span),
        },
        _ => None,
    };
    let said = Advised::of(error);
    anyhow!(match list {
        Some(span) => said.at(source.file.place(span.start)),
        None => said.at(source.file.file),
    })
}

/// A kernel that is not simulated; `all` says which are.
pub(super) fn kernel(place: &str, all: String) -> anyhow::Error {
    anyhow!(Advised::new(format!("{place}: no such kernel"), all))
}
