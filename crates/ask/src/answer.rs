//! The answers that programs read, and the version of each one's form.

use crate::score_file;

/// An answer that a program can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// What runs came to.
    Results,
    /// How far the runs of a sweep are spread.
    Spread,
    /// How sets of runs differ.
    Comparison,
    /// Which scheduler is best.
    Choice,
    /// Which scheduler is best for many machines.
    Fleet,
    /// How far a simulation can be trusted.
    Score,
    /// How far machine and kernel are apart.
    Fidelity,
    /// Why a task waited.
    Explanation,
    /// Where two policies part.
    Difference,
    /// Questions about a run.
    Sheet,
    /// Which policies have which properties.
    Grades,
    /// Which bugs of published schedulers show.
    Cases,
    /// How good candidates of a search are.
    Evaluation,
    /// Whether a new version may replace an old one.
    Gate,
}

impl AnswerKind {
    /// Every answer.
    pub const ALL: [Self; 14] = [
        Self::Results,
        Self::Spread,
        Self::Comparison,
        Self::Choice,
        Self::Fleet,
        Self::Score,
        Self::Fidelity,
        Self::Explanation,
        Self::Difference,
        Self::Sheet,
        Self::Grades,
        Self::Cases,
        Self::Evaluation,
        Self::Gate,
    ];

    /// The key of a document that has its version.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Results => "runslice_results",
            Self::Spread => "runslice_sweep_spread",
            Self::Comparison => "runslice_comparison",
            Self::Choice => "runslice_choice",
            Self::Fleet => "runslice_fleet",
            Self::Score => "runslice_score",
            Self::Fidelity => "runslice_fidelity_results",
            Self::Explanation => "runslice_explanation",
            Self::Difference => "runslice_difference",
            Self::Sheet => "runslice_sheet",
            Self::Grades => "runslice_grades",
            Self::Cases => "runslice_cases",
            Self::Evaluation => "runslice_evaluation",
            Self::Gate => "runslice_gate",
        }
    }

    /// The version of its form. It grows when something is removed from it or changes its meaning.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            Self::Results | Self::Comparison | Self::Choice | Self::Cases => 2,
            Self::Score => score_file::VERSION,
            _ => 1,
        }
    }
}
