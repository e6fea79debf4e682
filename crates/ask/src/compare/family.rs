//! Which sets are held against which.

use std::collections::BTreeSet;

use anyhow::bail;
use stats::compare::{Question, Set};

use crate::error::UsageError;
use crate::outcome::World;
use crate::sets::File;
use model::{Advised, suggest};

/// One baseline and what is held against it.
#[derive(Debug)]
struct Member {
    base: Set,
    others: Vec<Set>,
    again: Option<Set>,
}

/// All comparisons of one call.
#[derive(Debug)]
pub struct Family {
    members: Vec<Member>,
    /// Sets that nothing could be held against, as sentences.
    pub notes: Vec<String>,
}

impl Family {
    /// Of one file, its arms against `baseline`, load by load; of several, each against the first.
    ///
    /// # Errors
    /// When there are no two sets to compare, or a name is unknown.
    pub fn of(
        files: Vec<File>,
        baseline: Option<&str>,
        again: Option<&str>,
    ) -> anyhow::Result<Self> {
        one_world(&files)?;
        let mut files = files;
        if files.len() == 1 {
            return Self::of_one(files.remove(0), baseline, again);
        }
        if baseline.is_some() || again.is_some() {
            let message = Advised::new(
                "--baseline and --again need a single file",
                "of several files, the first is the baseline",
            );
            return Err(UsageError::new(message).into());
        }
        Self::of_several(&files)
    }

    fn of_one(file: File, baseline: Option<&str>, again: Option<&str>) -> anyhow::Result<Self> {
        let arms: BTreeSet<String> = file.sets.iter().map(|set| set.arm.clone()).collect();
        for name in [baseline, again].into_iter().flatten() {
            if !arms.contains(name) {
                let hint = suggest::hint(name, arms.iter().map(String::as_str));
                return Err(UsageError::new(Advised::new(
                    format!("no scheduler is called `{name}`"),
                    hint,
                ))
                .into());
            }
        }
        let known = file.baseline.as_deref().unwrap_or(&file.sets[0].arm);
        let baseline = baseline.unwrap_or(known).to_owned();
        let again = again.map(str::to_owned).or(file.again);
        let mut members: Vec<Member> = Vec::new();
        let mut rest = Vec::new();
        for set in file.sets {
            if set.arm != baseline {
                rest.push(set);
                continue;
            }
            members.push(Member {
                base: set,
                others: Vec::new(),
                again: None,
            });
        }
        let mut notes = Vec::new();
        for set in rest {
            match members.iter_mut().find(|it| it.base.place == set.place) {
                None => notes.push(format!("{} under {}: no baseline", set.place, set.arm)),
                Some(member) if Some(&set.arm) == again.as_ref() => member.again = Some(set),
                Some(member) => member.others.push(set),
            }
        }
        // The second half of the baseline alone can be compared, too: that is the noise.
        for member in members.iter_mut().filter(|it| it.others.is_empty()) {
            member.others.extend(member.again.take());
        }
        Self::check(members, notes)
    }

    fn of_several(files: &[File]) -> anyhow::Result<Self> {
        let mut arms: Vec<&str> = files
            .iter()
            .flat_map(|file| &file.sets)
            .map(arm_of)
            .collect();
        let all = arms.len();
        arms.sort_unstable();
        arms.dedup();
        let is_told_apart = arms.len() == all;
        let named = |file: &File, set: &Set| {
            let mut set = set.clone();
            if !is_told_apart {
                set.arm = format!("{} ({})", set.arm, file.stem);
            }
            set
        };
        let Some((first, others)) = files.split_first() else {
            bail!("there is no file");
        };
        let mut notes = Vec::new();
        let mut members: Vec<(&Set, Member)> = Vec::new();
        for set in &first.sets {
            let member = Member {
                base: named(first, set),
                others: Vec::new(),
                again: None,
            };
            members.push((set, member));
        }
        for file in others {
            for set in &file.sets {
                let here = |(base, _): &&mut (&Set, Member)| base.place == set.place;
                let mut places: Vec<_> = members.iter_mut().filter(here).collect();
                let at = match places.len() {
                    1 => Some(0),
                    _ => places.iter().position(|(base, _)| base.arm == set.arm),
                };
                match at {
                    Some(at) => {
                        let (base, member) = &mut *places[at];
                        let other = named(file, set);
                        if is_same(base, set) {
                            notes.push(format!(
                                "{} ({}) has the same runs as {} ({}), figure for figure: either \
                                 one file is a copy, or what differs between them has no effect",
                                set.arm, file.stem, base.arm, first.stem
                            ));
                        }
                        member.others.push(other);
                    }
                    None => notes.push(format!(
                        "{} ({}), {}: nothing like it in {}",
                        set.arm, file.stem, set.place, first.stem
                    )),
                }
            }
        }
        let members = members.into_iter().map(|(_, member)| member).collect();
        Self::check(members, notes)
    }

    fn check(mut members: Vec<Member>, notes: Vec<String>) -> anyhow::Result<Self> {
        members.retain(|member| !member.others.is_empty());
        if members.is_empty() {
            let mut message = "there is nothing to compare: it takes two sets of runs under the \
                               same load on the same machine"
                .to_owned();
            for note in notes {
                message += &format!("\n  {note}");
            }
            return Err(UsageError::new(message).into());
        }
        Ok(Self { members, notes })
    }

    /// For the statistics.
    #[must_use]
    pub fn questions(&self) -> Vec<Question<'_>> {
        let questions = self.members.iter().map(|member| Question {
            base: &member.base,
            others: &member.others,
            again: member.again.as_ref(),
            only: None,
        });
        questions.collect()
    }

    /// All sets, the baselines before what is held against them, each once.
    #[must_use]
    pub fn sets(&self) -> Vec<&Set> {
        let mut sets: Vec<&Set> = Vec::new();
        for member in &self.members {
            let all = [&member.base]
                .into_iter()
                .chain(&member.again)
                .chain(&member.others);
            for set in all {
                let same = |it: &&Set| (&it.arm, &it.place) == (&set.arm, &set.place);
                if !sets.iter().any(same) {
                    sets.push(set);
                }
            }
        }
        sets
    }

    /// The names of all metrics of the baselines.
    #[must_use]
    pub fn metrics(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for series in self.members.iter().flat_map(|member| &member.base.series) {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }

    /// Sets with runs that do not count, or in which a task starved, as sentences.
    #[must_use]
    pub fn voids(&self) -> Vec<String> {
        let sets = self.members.iter().flat_map(|member| {
            let others = member.others.iter().chain(&member.again);
            [&member.base].into_iter().chain(others)
        });
        let mut sentences = Vec::new();
        for set in sets {
            if set.void > 0 {
                let (arm, void, all) = (&set.arm, set.void, set.void + set.runs);
                // Only a command or a play fails otherwise.
                let why = if set.world == World::Simulated.name() {
                    "ejected in"
                } else {
                    "ejected, or its command failed, in"
                };
                sentences.push(format!(
                    "{arm}: {why} {void} of {all} runs, which are left out"
                ));
            }
            sentences.extend(set.starvation());
        }
        sentences
    }
}

/// Whether both sets have the same figures for the same seeds.
fn is_same(one: &Set, other: &Set) -> bool {
    one.runs > 0 && one.runs == other.runs && one.series == other.series
}

fn arm_of(set: &Set) -> &str {
    &set.arm
}

/// Runs of machines that differ in kind say nothing about each other.
fn one_world(files: &[File]) -> Result<(), UsageError> {
    let worlds: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| &file.sets)
        .map(|set| set.world.as_str())
        .collect();
    if worlds.len() > 1 {
        let worlds: Vec<&str> = worlds.into_iter().collect();
        return Err(UsageError::new(format!(
            "runs of different kinds are not compared: {}",
            worlds.join(", ")
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use stats::compare::{Better, Measure, MeasuredNumber, Role};

    use super::*;

    fn file(stem: &str, sets: &[(&str, &str)]) -> File {
        let sets = sets
            .iter()
            .map(|(arm, place)| Set::new(arm, place, "simulated"));
        File {
            stem: stem.to_owned(),
            sets: sets.collect(),
            baseline: None,
            again: None,
            looks: 1,
            unique: BTreeSet::new(),
        }
    }

    /// The comparisons as text.
    fn told(family: &Family) -> Vec<String> {
        let questions = family.questions();
        let told = questions.iter().map(|question| {
            let arms: Vec<&str> = question.others.iter().map(arm_of).collect();
            format!("{}: {}", question.base.arm, arms.join(", "))
        });
        told.collect()
    }

    #[test]
    fn one_file_compares_its_arms_load_by_load() {
        let sets = [("a", "x"), ("b", "x"), ("a", "y"), ("c", "y"), ("c", "z")];
        let family = Family::of(vec![file("f", &sets)], None, None).unwrap();
        assert_eq!(told(&family), ["a: b", "a: c"]);
        assert_eq!(family.notes, ["z under c: no baseline"]);
        let family = Family::of(vec![file("f", &sets)], Some("b"), None).unwrap();
        assert_eq!(told(&family), ["b: a"]);
    }

    #[test]
    fn the_baselines_second_arm_gives_the_noise_and_is_compared_only_when_alone() {
        let sets = [("a", "x"), ("a again", "x"), ("b", "x")];
        let family = Family::of(vec![file("f", &sets)], None, Some("a again")).unwrap();
        assert_eq!(told(&family), ["a: b"]);
        assert!(family.questions()[0].again.is_some());
        let family = Family::of(vec![file("f", &sets[..2])], None, Some("a again")).unwrap();
        assert_eq!(told(&family), ["a: a again"]);
    }

    #[test]
    fn of_several_files_the_same_load_is_compared_and_equal_names_get_their_file() {
        let before = file("before", &[("a", "x"), ("b", "x")]);
        let after = file("after", &[("b", "x"), ("a", "x"), ("a", "y")]);
        let family = Family::of(vec![before, after], None, None).unwrap();
        assert_eq!(
            told(&family),
            ["a (before): a (after)", "b (before): b (after)"]
        );
        assert_eq!(family.notes.len(), 1);
        let family = Family::of(
            vec![file("f", &[("a", "x")]), file("g", &[("b", "x")])],
            None,
            None,
        );
        assert_eq!(told(&family.unwrap()), ["a: b"]);
    }

    #[test]
    fn the_same_runs_in_two_files_are_noticed() {
        let of = |stem: &str, elapsed: f64| {
            let mut file = file(stem, &[("a", "x")]);
            let measured = MeasuredNumber {
                name: "machine.elapsed_ns".to_owned(),
                measure: Measure::Millionths,
                better: Better::Lower,
                role: Role::Goal,
                value: elapsed,
            };
            file.sets[0].add(vec![measured], Some(1));
            file
        };
        let family = Family::of(vec![of("f", 5.0), of("g", 5.0), of("h", 6.0)], None, None);
        let notes = family.unwrap().notes;
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with("a (g) has the same runs as a (f), figure for figure"),
            "{notes:?}"
        );
    }

    #[test]
    fn what_cannot_be_compared_is_a_usage_error() {
        let alone = Family::of(vec![file("f", &[("a", "x")])], None, None).unwrap_err();
        assert!(alone.is::<UsageError>(), "{alone}");
        let sets = [("a", "x"), ("b", "x")];
        let unknown = Family::of(vec![file("f", &sets)], Some("c"), None).unwrap_err();
        assert!(
            crate::error::in_full(&unknown).contains("There are: a, b"),
            "{unknown}"
        );
        let mut other = file("g", &[("a", "x")]);
        other.sets[0].world = "run".to_owned();
        let mixed = Family::of(vec![file("f", &sets), other], None, None).unwrap_err();
        assert!(mixed.to_string().ends_with(": run, simulated"), "{mixed}");
        let elsewhere = vec![file("f", &[("a", "x")]), file("g", &[("a", "y")])];
        let error = Family::of(elsewhere, None, None).unwrap_err();
        assert!(
            error.to_string().contains("nothing like it in f"),
            "{error}"
        );
    }
}
