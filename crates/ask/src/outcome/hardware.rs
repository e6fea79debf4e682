//! What a summary says of CPUs that differ, as tables have it.

use model::{ClassUse, CpuUse, HardwareUse, Summary};
use stats::{ClassReport, FrequencyReport, HardwareReport, Millionths, Report};

/// What the row for all tasks is called.
const ALL: &str = "all";

/// Femtojoules of a microjoule.
const MICROJOULE: u128 = 1_000_000_000;

/// Fills in the tables of `report` that events do not tell.
pub(super) fn fill(report: &mut Report, summary: &Summary) {
    let Some(used) = &summary.hardware else {
        return;
    };
    let all = used.total();
    let groups = used.groups.iter().map(|(name, it)| (name.as_str(), it));
    let rows = groups.chain([(ALL, &all)]);
    report.hardware = rows
        .map(|(name, it)| row(name, it, used.has_energy))
        .collect();
    report.classes = classes(used);
    report.frequencies = frequencies(used);
}

fn row(name: &str, used: &CpuUse, has_energy: bool) -> HardwareReport {
    let microjoules = u64::try_from(used.energy_fj / MICROJOULE).unwrap_or(u64::MAX);
    HardwareReport {
        group: name.to_owned(),
        work: used.work,
        executed: used.executed,
        energy_uj: has_energy.then_some(microjoules),
        sibling: used.shared,
        shared_core: used.halved,
        misfit: used.misfit,
        misplaced: used.misplaced,
        remote: used.remote,
        lost: used.lost,
    }
}

/// Each group's, and their sums for all tasks, classes in the order in which they first appear.
fn classes(used: &HardwareUse) -> Vec<ClassReport> {
    let mut sums: Vec<ClassUse> = Vec::new();
    for it in used.groups.iter().flat_map(|(_, group)| &group.classes) {
        match sums.iter_mut().find(|sum| sum.class == it.class) {
            Some(sum) => {
                sum.executed += it.executed;
                sum.work += it.work;
            }
            None => sums.push(it.clone()),
        }
    }
    let groups = used
        .groups
        .iter()
        .map(|(name, group)| (name.as_str(), &group.classes));
    let rows = groups.chain([(ALL, &sums)]).flat_map(|(name, classes)| {
        let whole: u128 = classes.iter().map(|it| u128::from(it.work.get())).sum();
        classes.iter().map(move |it| ClassReport {
            group: name.to_owned(),
            class: it.class.clone(),
            executed: it.executed,
            work: it.work,
            share: Millionths::of(it.work.get().into(), whole),
        })
    });
    rows.collect()
}

fn frequencies(used: &HardwareUse) -> Vec<FrequencyReport> {
    let rows = used.cpus.iter().zip(0..).flat_map(|(it, cpu)| {
        it.frequencies.iter().map(move |at| FrequencyReport {
            cpu,
            khz: at.khz,
            executing: at.executing,
            idle: at.idle,
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use model::Nanos;

    use super::*;

    #[test]
    fn classes_of_all_tasks_are_the_sums_of_the_groups() {
        let group = |name: &str, classes: &[(&str, u64)]| {
            let used = CpuUse {
                classes: classes
                    .iter()
                    .map(|(class, work)| ClassUse {
                        class: (*class).to_owned(),
                        executed: Nanos::new(2 * work),
                        work: Nanos::new(*work),
                    })
                    .collect(),
                ..CpuUse::default()
            };
            (name.to_owned(), used)
        };
        let used = HardwareUse {
            groups: vec![
                group("a", &[("big", 30)]),
                group("b", &[("small", 10), ("big", 60)]),
            ],
            ..HardwareUse::default()
        };
        let rows = classes(&used);
        let rows: Vec<_> = rows
            .iter()
            .map(|it| {
                (
                    it.group.as_str(),
                    it.class.as_str(),
                    it.work.get(),
                    it.share.0,
                )
            })
            .collect();
        let wanted = [
            ("a", "big", 30, 1_000_000),
            ("b", "small", 10, 142_857),
            ("b", "big", 60, 857_143),
            ("all", "big", 90, 900_000),
            ("all", "small", 10, 100_000),
        ];
        assert_eq!(rows, wanted);
    }
}
