//! Fewer and shorter stalls, of a run in which CPUs come in between.

use model::{Interleave, MachineSpec, Nanos, Stall};
use sim::{Options, Simulation};

use super::Case;
use crate::services::Services;

/// So many stalls are tried one by one.
const FEW: usize = 64;
/// Accesses of which each is tried as the only one before which a CPU stops.
const MOST_POINTS: u64 = 3_000;
/// The shortest stall that is tried, and what the length of one is a multiple of.
const LEAST: Nanos = Nanos::new(100);

fn with(case: &Case, stalls: Vec<Stall>) -> Case {
    let machine = MachineSpec {
        interleave: Some(Interleave::At(stalls)),
        ..case.machine.clone()
    };
    Case {
        machine,
        ..case.clone()
    }
}

fn stalls(case: &Case) -> &[Stall] {
    match &case.machine.interleave {
        Some(Interleave::At(stalls)) => stalls,
        _ => &[],
    }
}

/// The same run with its stalls by name instead of a seed. `None`: it has none.
pub(super) fn named(services: &Services<'_>, case: &Case, options: Options) -> Option<Case> {
    let Some(Interleave::Seeded { .. }) = case.machine.interleave else {
        return None;
    };
    let spec = case.spec(services).ok()?;
    let run = Simulation::new(&spec).with_options(options).start().ok()?;
    let stalls = run.interleaved?.stalls;
    (!stalls.is_empty()).then(|| with(case, stalls))
}

/// Without some of the stalls: the last ones alone, each alone, without a part, without each.
pub(super) fn fewer(case: &Case) -> Vec<Case> {
    let all = stalls(case);
    if all.len() < 2 {
        return Vec::new();
    }
    let last = |count: usize| (count < all.len()).then(|| all[all.len() - count..].to_vec());
    let mut found: Vec<Vec<Stall>> = [1, 2, 4, 16].into_iter().filter_map(last).collect();
    for parts in [2, 4, 8] {
        let size = all.len().div_ceil(parts);
        for at in (0..all.len()).step_by(size) {
            let end = (at + size).min(all.len());
            found.push([&all[..at], &all[end..]].concat());
        }
    }
    if all.len() <= FEW {
        found.extend(all.iter().map(|one| vec![*one]));
        found.extend((0..all.len()).map(|at| [&all[..at], &all[at + 1..]].concat()));
    }
    found.retain(|it| !it.is_empty());
    found.into_iter().map(|it| with(case, it)).collect()
}

/// One stall instead of several, before any of the first accesses.
pub(super) fn single(case: &Case) -> Vec<Case> {
    let all = stalls(case);
    let Some(longest) = all.iter().map(|it| it.span).max().filter(|_| all.len() > 1) else {
        return Vec::new();
    };
    let last = all.iter().map(|it| it.point).max().unwrap_or(0);
    let points = 1..=last.min(MOST_POINTS);
    let one = |point| {
        with(
            case,
            vec![Stall {
                point,
                span: longest,
            }],
        )
    };
    points.rev().map(one).collect()
}

/// With one stall shorter.
pub(super) fn shorter(case: &Case) -> Vec<Case> {
    let all = stalls(case);
    let mut found = Vec::new();
    for at in 0..all.len().min(FEW) {
        for part in [8, 4, 2] {
            let span = all[at].span.get() / part / LEAST.get() * LEAST.get();
            if span >= LEAST.get() && span < all[at].span.get() {
                let mut shorter = all.to_vec();
                shorter[at].span = Nanos::new(span);
                found.push(with(case, shorter));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload_arg::Written;

    fn case(points: &[u64]) -> Case {
        let span = Nanos::from_micros(20);
        let stalls = points.iter().map(|point| Stall {
            point: *point,
            span,
        });
        let bare = Case {
            policy: model::PolicySpec::of_object("x", std::sync::Arc::from([])),
            machine: MachineSpec::default(),
            workload: Written {
                file: String::new(),
                text: String::new(),
            },
            scale: Vec::new(),
            seed: 1,
            duration: None,
        };
        with(&bare, stalls.collect())
    }

    #[test]
    fn every_stall_is_tried_alone_and_left_out() {
        let tried: Vec<Vec<u64>> = fewer(&case(&[3, 7, 9]))
            .iter()
            .map(|case| stalls(case).iter().map(|it| it.point).collect())
            .collect();
        for wanted in [
            vec![3],
            vec![7],
            vec![9],
            vec![7, 9],
            vec![3, 9],
            vec![3, 7],
        ] {
            assert!(tried.contains(&wanted), "{wanted:?}");
        }
        assert!(fewer(&case(&[3])).is_empty());
    }

    #[test]
    fn a_stall_gets_shorter_down_to_a_tenth_of_a_microsecond() {
        let mut now = case(&[5]);
        while let Some(next) = shorter(&now).pop() {
            now = next;
        }
        assert_eq!(stalls(&now)[0].span, LEAST);
    }

    #[test]
    fn one_stall_is_looked_for_among_the_accesses_before_the_last() {
        assert_eq!(single(&case(&[2, 40])).len(), 40);
        assert!(single(&case(&[40])).is_empty());
    }
}
