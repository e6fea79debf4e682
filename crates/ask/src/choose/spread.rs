//! Whether the answer holds at every end of what is uncertain about the hardware.

use std::fmt::Write as _;

use super::{Choose, Chosen};
use crate::ends::alike;
use crate::machine::MachineChange;
use crate::services::Services;
use crate::spread::corners;

/// The answer at one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtCorner {
    /// Its name: `smt low`.
    pub corner: String,
    /// The candidate to change to there, if there is one.
    pub winner: Option<usize>,
}

impl Choose {
    /// The answer at every end of what is uncertain about the machine of `chosen`.
    ///
    /// # Errors
    /// Those of [`Choose::ask`], and when nothing is uncertain.
    pub(super) fn at_corners(
        &self,
        services: &Services<'_>,
        chosen: &Chosen,
    ) -> anyhow::Result<Vec<AtCorner>> {
        let corners = corners(&chosen.field.machine)?;
        let at = |corner: String| {
            let question = Self {
                machine: MachineChange {
                    corner: Some(corner.clone()),
                    ..self.machine.clone()
                },
                // What took many runs to decide is not to be decided by fewer.
                runs: self.runs.or_else(|| u32::try_from(chosen.field.runs).ok()),
                ..self.clone()
            };
            let winner = question.chosen(services)?.ranking.winner;
            Ok(AtCorner { corner, winner })
        };
        corners.into_iter().map(at).collect()
    }
}

impl Chosen {
    /// The candidate to change to, at every end of what is uncertain where that was asked.
    #[must_use]
    pub fn winner(&self) -> Option<usize> {
        self.ranking.winner.filter(|_| self.holds_everywhere())
    }

    /// Whether the same is said at every end of what is uncertain.
    #[must_use]
    pub fn holds_everywhere(&self) -> bool {
        let winner = self.ranking.winner;
        self.spread.iter().all(|it| it.winner == winner)
    }

    /// Whether there is an answer.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.ranking.is_decided() && self.holds_everywhere()
    }

    /// What the ends say, in a sentence; `None` if they were not asked for.
    #[must_use]
    pub fn said_of_spread(&self) -> Option<String> {
        let count = self.spread.len();
        if count == 0 {
            return None;
        }
        if self.holds_everywhere() {
            return Some(format!(
                "The same is said at all {count} ends of what is uncertain about the hardware."
            ));
        }
        let name = |winner: Option<usize>| match winner {
            Some(at) => self.field.name(at).to_owned(),
            None => format!("stay with {}", self.field.name(0)),
        };
        let mut said = format!(
            "Undecided, because of what is uncertain about the hardware: {} as its file says",
            name(self.ranking.winner)
        );
        let ends = self.spread.iter().map(|it| (it.corner.as_str(), it.winner));
        let others = alike(ends).into_iter();
        for (winner, corners) in others.filter(|(winner, _)| *winner != self.ranking.winner) {
            let _ = write!(said, "; {} with {}", name(winner), corners.join(", "));
        }
        said.push('.');
        Some(said)
    }
}
