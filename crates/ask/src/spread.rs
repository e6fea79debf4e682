//! Whether the same scheduler is best at every end of what is uncertain about the hardware.

use std::fmt::Write as _;

use model::{Advised, MachineSpec};
use serde::Serialize;
use stats::compare::{Better, Extent, Set};

use crate::error::UsageError;
use crate::outcome::Results;
use crate::stated::{self, StatedGoal};
use crate::words::counted;

/// What the figures of the file itself are called.
const AS_GIVEN: &str = "the figures of its file";

/// Who is best at a goal, at each end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GoalSpread {
    /// The goal, as answers call it.
    pub goal: String,
    /// The ends, with what the hardware's file says in front.
    pub ends: Vec<EndBest>,
}

/// Who is best at a goal at one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndBest {
    /// The end: `smt low`.
    pub corner: String,
    /// The schedulers whose medians are best; none if there is no value.
    pub best: Vec<String>,
}

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

impl GoalSpread {
    /// Whether the same schedulers are best at all ends.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.ends.iter().all(|end| end.best == self.ends[0].best)
    }

    /// Who is best where, in a sentence.
    #[must_use]
    pub fn said(&self) -> String {
        let name = |best: &[String]| match best {
            [] => "nobody".to_owned(),
            best => best.join(" and "),
        };
        if self.holds() {
            let [first, rest @ ..] = self.ends.as_slice() else {
                return String::new();
            };
            return format!(
                "{} at all {} ends of what is uncertain about the hardware",
                name(&first.best),
                rest.len()
            );
        }
        let mut said = String::from("undecided");
        let mut told: Vec<&[String]> = Vec::new();
        for end in &self.ends {
            if told.contains(&end.best.as_slice()) {
                continue;
            }
            let same = self.ends.iter().filter(|other| other.best == end.best);
            let corners: Vec<&str> = same.map(|other| other.corner.as_str()).collect();
            // Of the first, who is best with the file's figures, the number says enough.
            let (mark, corners) = match (told.is_empty(), corners.as_slice()) {
                (true, [first, rest @ ..]) if !rest.is_empty() => (
                    ": ",
                    format!("{first} and at {}", counted(rest.len() as u64, "end")),
                ),
                (true, _) => (": ", corners.join(", ")),
                (false, _) => ("; ", corners.join(", ")),
            };
            let _ = write!(said, "{mark}{} with {corners}", name(&end.best));
            told.push(&end.best);
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(best: &[(&str, &[&str])]) -> GoalSpread {
        let end = |(corner, best): &(&str, &[&str])| EndBest {
            corner: (*corner).to_owned(),
            best: best.iter().map(|it| (*it).to_owned()).collect(),
        };
        GoalSpread {
            goal: "time to end".to_owned(),
            ends: best.iter().map(end).collect(),
        }
    }

    #[test]
    fn a_winner_is_named_only_if_it_wins_at_all_ends() {
        let same = spread(&[
            (AS_GIVEN, &["a"]),
            ("smt low", &["a"]),
            ("smt high", &["a"]),
        ]);
        assert!(same.holds());
        let said = "a at all 2 ends of what is uncertain about the hardware";
        assert_eq!(same.said(), said);
        let other = spread(&[
            (AS_GIVEN, &["a"]),
            ("smt low", &["b"]),
            ("smt high", &["a", "b"]),
        ]);
        assert!(!other.holds());
        let said =
            "undecided: a with the figures of its file; b with smt low; a and b with smt high";
        assert_eq!(other.said(), said);
        let ends = [
            (AS_GIVEN, &["a"][..]),
            ("smt low", &["b"]),
            ("smt high", &["a"]),
        ];
        let said = "undecided: a with the figures of its file and at 1 end; b with smt low";
        assert_eq!(spread(&ends).said(), said);
    }

    #[test]
    fn what_is_certain_has_no_ends() {
        let refusal = corners(&MachineSpec::default()).unwrap_err().to_string();
        assert!(refusal.contains("do not differ"), "{refusal}");
        let graviton = model::Hardware::find("graviton3").expect("it is built in");
        let refusal = corners(&MachineSpec::default().with_hardware(graviton)).unwrap_err();
        assert!(refusal.to_string().contains("graviton3"), "{refusal}");
    }
}
