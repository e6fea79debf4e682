//! What a sweep's file cannot ask for, and where it stands.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use model::Advised;
use sim::MachinePart;
use toml::Spanned;

use super::{Arm, Cell, Draft, Seeds, Source};

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

/// Refuses no seeds, and one that is listed twice: its runs would be one.
pub(super) fn seeds(seeds: &Spanned<Seeds>, source: &Source<'_>) -> anyhow::Result<()> {
    let place = source.of(seeds);
    if seeds.get_ref().count() == 0 {
        return Err(anyhow!(Advised::new(
            format!("{place}: there are no seeds"),
            "give a number or a list"
        )));
    }
    let Seeds::List(list) = seeds.get_ref() else {
        return Ok(());
    };
    let mut seen = BTreeSet::new();
    match list.iter().find(|it| !seen.insert(**it)) {
        None => Ok(()),
        Some(seed) => Err(anyhow!(Advised::new(
            format!("{place}: the seed {seed} is there twice"),
            "leave one out"
        ))),
    }
}

/// Refuses two policies of one name: their runs would be told as those of one.
pub(super) fn of_one_name(arms: &[Arm<'_>]) -> anyhow::Result<()> {
    let mut seen: BTreeMap<&str, &Arm<'_>> = BTreeMap::new();
    for arm in arms {
        let name = arm.found.policy.name.as_str();
        if let Some(other) = seen.insert(name, arm) {
            let words = if other.policy == arm.policy {
                [name, name]
            } else {
                [other.policy, arm.policy]
            };
            return Err(twice(&arm.place, words));
        }
    }
    Ok(())
}

/// Refuses a combination that is included if its policy has the name of another one.
pub(super) fn mixed(cells: &[Cell]) -> anyhow::Result<()> {
    let mut seen: BTreeMap<&str, &Cell> = BTreeMap::new();
    for cell in cells {
        let policy = &cell.policy_spec;
        let first = *seen.entry(&policy.name).or_insert(cell);
        // One policy may be written in two ways, with a knob in its name or beside it.
        let is_other =
            first.policy != cell.policy && first.policy_spec.object[..] != policy.object[..];
        if is_other {
            return Err(twice(&cell.place, [&first.policy, &cell.policy]));
        }
    }
    Ok(())
}

fn twice(place: &str, [one, other]: [&str; 2]) -> anyhow::Error {
    let (what, advice) = if one == other {
        (format!("`{one}` is there twice"), "leave one out")
    } else {
        let what = format!("`{one}` and `{other}` have the same name");
        (what, "rename a file, or leave one out")
    };
    anyhow!(Advised::new(format!("{place}: {what}"), advice))
}
