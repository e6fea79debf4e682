//! Who is best at which end of what is uncertain about the hardware.

use std::fmt::Write as _;

use serde::Serialize;

use crate::words::counted;

/// What the figures of the file itself are called.
pub(crate) const AS_GIVEN: &str = "the figures of its file";

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

/// The ends that have one answer, for each answer in the order in which it comes first.
pub(crate) fn alike<'a, T: PartialEq>(
    ends: impl Iterator<Item = (&'a str, T)>,
) -> Vec<(T, Vec<&'a str>)> {
    let mut all: Vec<(T, Vec<&str>)> = Vec::new();
    for (corner, answer) in ends {
        match all.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, corners)) => corners.push(corner),
            None => all.push((answer, vec![corner])),
        }
    }
    all
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
        let ends = self.ends.iter();
        let ends = ends.map(|end| (end.corner.as_str(), end.best.as_slice()));
        for (at, (best, corners)) in alike(ends).into_iter().enumerate() {
            // Of the first, who is best with the file's figures, the number says enough.
            let (mark, corners) = match (at == 0, corners.as_slice()) {
                (true, [first, rest @ ..]) if !rest.is_empty() => (
                    ": ",
                    format!("{first} and at {}", counted(rest.len() as u64, "end")),
                ),
                (true, _) => (": ", corners.join(", ")),
                (false, _) => ("; ", corners.join(", ")),
            };
            let _ = write!(said, "{mark}{} with {corners}", name(best));
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
}
