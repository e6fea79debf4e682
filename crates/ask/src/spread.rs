//! Whether the same scheduler is best at every end of what is uncertain about the hardware.

use model::{Advised, MachineSpec};
use stats::compare::{Better, Extent, Set};

use crate::ends::{AS_GIVEN, EndBest, GoalSpread};
use crate::error::UsageError;
use crate::outcome::Results;
use crate::stated::{self, StatedGoal};

/// The names of the ends of what is uncertain about `machine`.
///
/// # Errors
/// When its CPUs do not differ, or nothing about them is uncertain.
pub fn corners(machine: &MachineSpec) -> Result<Vec<String>, UsageError> {
    let refused = |what: String, advice: &str| Err(UsageError::new(Advised::new(what, advice)));
    let Some(hardware) = machine.hardware.as_deref() else {
        return refused(
            "`--hardware-spread`: the CPUs of this machine do not differ".to_owned(),
            "give --hardware, too (runslice list --machines)",
        );
    };
    let corners = hardware.corners().into_iter().map(|(name, _)| name);
    let corners: Vec<String> = corners.collect();
    if corners.is_empty() {
        return refused(
            format!(
                "`--hardware-spread`: `{}` has no threads, powers or smaller CPUs that are \
                 uncertain",
                hardware.name
            ),
            "leave out `--hardware-spread`",
        );
    }
    Ok(corners)
}

/// Who is best at each goal of the load, and with a millijoule, in runs as the hardware's file says
/// and at each end.
#[must_use]
pub fn spreads(given: &Results, ends: &[(String, Results)]) -> Vec<GoalSpread> {
    let of_given = stated::sets(given);
    let mut goals = stated::goals(given, &of_given);
    goals.retain(|goal| goal.better != Better::Neither);
    goals.push(StatedGoal {
        of: stated::ALL.to_owned(),
        what: "work per joule".to_owned(),
        shown: "hardware.all.work_per_mj_ns".to_owned(),
        tested: "hardware.all.work_per_mj_ns".to_owned(),
        better: Better::Higher,
    });
    let of_ends = ends
        .iter()
        .map(|(name, it)| (name.clone(), stated::sets(it)));
    let all: Vec<(String, Vec<Set>)> = [(AS_GIVEN.to_owned(), of_given)]
        .into_iter()
        .chain(of_ends)
        .collect();
    let spreads = goals.iter().map(|goal| GoalSpread {
        goal: goal.title(),
        ends: all
            .iter()
            .map(|(corner, sets)| EndBest {
                corner: corner.clone(),
                best: best(goal, sets),
            })
            .collect(),
    });
    spreads
        .filter(|it| it.ends.iter().any(|end| !end.best.is_empty()))
        .collect()
}

/// The schedulers whose medians are best; those that were ejected or starved a task are left out.
fn best(goal: &StatedGoal, sets: &[Set]) -> Vec<String> {
    let sound = sets.iter().filter(|set| set.void == 0 && set.starved == 0);
    let values: Vec<(&str, f64)> = sound
        .filter_map(|set| {
            let median = Extent::of(&set.find(&goal.shown)?.values)?.median;
            Some((set.arm.as_str(), median))
        })
        .collect();
    let signed = |value: f64| {
        if goal.better == Better::Higher {
            -value
        } else {
            value
        }
    };
    let least = values
        .iter()
        .map(|(_, value)| signed(*value))
        .min_by(f64::total_cmp);
    let firsts = values
        .iter()
        .filter(|(_, value)| Some(signed(*value)) == least);
    firsts.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certain_has_no_ends() {
        let refusal = corners(&MachineSpec::default()).unwrap_err().to_string();
        assert!(refusal.contains("do not differ"), "{refusal}");
        let graviton = model::Hardware::find("graviton3").expect("it is built in");
        let refusal = corners(&MachineSpec::default().with_hardware(graviton)).unwrap_err();
        assert!(refusal.to_string().contains("graviton3"), "{refusal}");
    }
}
