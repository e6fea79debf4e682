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

/// Refuses a cache with more CPUs than each machine of the sweep has: those of its list, else those
/// of its loads.
pub(super) fn caches(
    draft: &Draft,
    source: &Source<'_>,
    loads: impl Iterator<Item = u16>,
) -> anyhow::Result<()> {
    let listed = draft.cpus.iter().map(|it| *it.get_ref()).max();
    let most = listed.or_else(|| loads.max()).unwrap_or(u16::MAX);
    match draft.llc.iter().find(|it| *it.get_ref() > most) {
        None => Ok(()),
        Some(llc) => Err(anyhow!(
            Advised::new(
                format!(
                    "llc is {}, and no machine has more than {most} CPUs",
                    llc.get_ref()
                ),
                format!("give at most {most}"),
            )
            .at(source.file.place(llc.span().start))
        )),
    }
}

/// A kernel that is not simulated; `all` says which are.
pub(super) fn kernel(place: &str, all: String) -> anyhow::Error {
    anyhow!(Advised::new(format!("{place}: no such kernel"), all))
}
