//! Kinds of figures: each has its own error of a ratio.

use serde::{Deserialize, Serialize};

use crate::goal::{Goal, Spans, Stat};

/// What a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// A share of the CPU time, and all that follows from it: work, and when it is done.
    Cpu,
    /// The mean or the median of waits for a CPU, and of spans that contain them.
    Wait,
    /// A high percentile of these, and the share of late ones.
    Tail,
    /// Times on a CPU.
    Slice,
}

/// Percentiles from here on are about a tail, in thousandths.
const TAIL: u16 = 900;

impl FigureKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Wait, Self::Tail, Self::Slice];

    /// For people: a figure of such a kind.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Cpu => "CPU time",
            Self::Wait => "mean waits",
            Self::Tail => "long waits",
            Self::Slice => "turns",
        }
    }

    /// The kinds whose errors a goal may have. Energy and sleeps were not measured: they may be as
    /// far off as anything else.
    #[must_use]
    pub const fn of(goal: &Goal) -> &'static [Self] {
        match goal {
            Goal::Time { stat, spans, .. } => match (spans, stat) {
                (Spans::Slice, _) => &[Self::Slice],
                (Spans::Sleep, _) => &Self::ALL,
                (_, Stat::Permille(permille)) if *permille < TAIL => &[Self::Wait],
                (_, Stat::Mean) => &[Self::Wait],
                (_, Stat::Permille(_) | Stat::Max) => &[Self::Tail],
            },
            Goal::Late { .. } => &[Self::Tail],
            Goal::Work { .. } | Goal::Cpu { .. } | Goal::End { .. } => &[Self::Cpu],
            Goal::Energy { .. } | Goal::Efficiency { .. } => &Self::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_has_the_error_of_what_it_is_about() {
        for (goal, kinds) in [
            ("mean wait of a", &[FigureKind::Wait][..]),
            ("p50 span click of a", &[FigureKind::Wait]),
            ("p90 delay of a", &[FigureKind::Tail]),
            ("max wait of a", &[FigureKind::Tail]),
            ("late", &[FigureKind::Tail]),
            ("p50 slice of a", &[FigureKind::Slice]),
            ("cpu of a", &[FigureKind::Cpu]),
            ("throughput", &[FigureKind::Cpu]),
            ("time", &[FigureKind::Cpu]),
            ("p50 sleep of a", &FigureKind::ALL),
            ("energy", &FigureKind::ALL),
            ("work per joule", &FigureKind::ALL),
        ] {
            let parsed: Goal = goal.parse().unwrap();
            assert_eq!(FigureKind::of(&parsed), kinds, "{goal}");
        }
    }
}
