//! Which scheduler for many machines, of each of which there is a recording: the machine is the
//! observation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use model::{Advice as _, Advised};
use stats::compare::{Answered, Better, MetricRow, RatioAnswer, at_least};

use super::inputs::InputFile;
use super::rank::Standing;
use super::{Choose, Chosen};
use crate::error::{Error, ErrorKind, UsageError};
use crate::input;
use crate::load_source::LoadSource;
use crate::recording::{Wanted, is_lost, is_recording};
use crate::services::Services;

/// From so many machines on they are counted, and below that each is told by itself.
pub const COUNTED: usize = 20;

/// What was said of each machine.
#[derive(Debug)]
pub struct Fleet {
    /// What the candidates are held against.
    pub baseline: String,
    /// The candidates without it.
    pub candidates: Vec<String>,
    /// The machines, by the names of their recordings.
    pub machines: Vec<FleetMachine>,
    /// Recordings of which nothing can be said, and why.
    pub unread: Vec<(String, String)>,
    /// All candidates with the hashes of their objects, the baseline first.
    pub objects: Vec<(String, Option<String>)>,
    /// The files that it follows from.
    pub inputs: Vec<InputFile>,
}

/// What was said of one machine.
#[derive(Debug)]
pub struct FleetMachine {
    /// The name of its recording.
    pub name: String,
    /// Number of CPUs.
    pub cpus: u16,
    /// The kernel that it was recorded on; else the simulated one.
    pub kernel: String,
    /// By candidate.
    pub candidates: Vec<FleetCandidate>,
}

/// What was said of a candidate on one machine.
#[derive(Debug)]
pub struct FleetCandidate {
    /// Over all goals.
    pub standing: Standing,
    /// Whether it is better or surely not worse at every goal.
    pub is_not_worse: bool,
    /// Why it cannot be chosen.
    pub failure: Option<String>,
    /// By goal: the comparison with the widened interval, and the answer.
    pub said: Vec<(MetricRow, Answered)>,
}

/// On how many machines a candidate is so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Better at a goal, and surely not worse at any other.
    pub better: usize,
    /// Alike at every goal.
    pub alike: usize,
    /// Worse at a goal, ejected, or a task starved.
    pub worse: usize,
    /// Everything else.
    pub cannot_tell: usize,
    /// Surely not worse at any goal, whatever else is told.
    pub not_worse: usize,
}

impl Tally {
    /// All machines.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.better + self.alike + self.worse + self.cannot_tell
    }

    /// The share of such machines on which the candidate is not worse, at least, with a
    /// probability of 95 %.
    #[must_use]
    pub fn not_worse_at_least(&self) -> f64 {
        at_least(self.not_worse, self.all())
    }

    fn add(&mut self, of: &FleetCandidate) {
        let to = match of.standing {
            Standing::Better => &mut self.better,
            Standing::Alike | Standing::Baseline => &mut self.alike,
            Standing::Mixed | Standing::Worse | Standing::Failed => &mut self.worse,
            Standing::BetterForSome | Standing::CannotTell | Standing::NotMeasured => {
                &mut self.cannot_tell
            }
        };
        *to += 1;
        self.not_worse += usize::from(of.is_not_worse);
    }
}

impl FleetCandidate {
    fn of(chosen: &Chosen, at: usize, place: &str) -> Self {
        let (field, ranking) = (&chosen.field, &chosen.ranking);
        let said = &ranking.said[at];
        let rows = said.iter().enumerate().filter_map(|(goal, said)| {
            let mut row = said.judged(ranking.row(field, at, goal)?);
            place.clone_into(&mut row.place);
            Some((row, *said))
        });
        let is_fine = |it: &Answered| it.answer == RatioAnswer::Better || it.is_not_worse;
        Self {
            standing: ranking.standings[at],
            is_not_worse: field.failures[at].is_none()
                && !said.is_empty()
                && said.iter().all(is_fine),
            failure: field.failures[at].clone(),
            said: rows.collect(),
        }
    }

    /// The comparison that is worst for the candidate. `None` if nothing was compared.
    #[must_use]
    pub fn worst(&self) -> Option<&(MetricRow, Answered)> {
        let compared = self.said.iter().filter(|(_, it)| it.shift.is_some());
        compared.max_by(|a, b| badness(a).total_cmp(&badness(b)))
    }

    /// The comparison from which the machine's count follows, so that its answer is the one that
    /// is counted: where the candidate is better the one with the largest gain, else the worst one
    /// that keeps it from being better. `None` if none was compared, or the candidate failed.
    #[must_use]
    pub fn deciding(&self) -> Option<&(MetricRow, Answered)> {
        let is_wanted = |it: &Answered| match self.standing {
            Standing::Failed => false,
            Standing::Better => it.answer == RatioAnswer::Better,
            Standing::Alike | Standing::Baseline => it.answer == RatioAnswer::Alike,
            Standing::Mixed | Standing::Worse => it.answer == RatioAnswer::Worse,
            Standing::NotMeasured => it.answer == RatioAnswer::NotMeasured,
            Standing::CannotTell => it.answer == RatioAnswer::CannotTell,
            Standing::BetterForSome => it.answer != RatioAnswer::Better && !it.is_not_worse,
        };
        let such = self.said.iter().filter(|(_, it)| is_wanted(it));
        let sign = if self.standing == Standing::Better {
            -1.0
        } else {
            1.0
        };
        such.max_by(|a, b| (sign * badness(a)).total_cmp(&(sign * badness(b))))
    }
}

/// By how much a candidate is worse at a comparison: a log ratio, which is below 0 if it is better,
/// and minus infinity if nothing could be compared.
fn badness((row, said): &(MetricRow, Answered)) -> f64 {
    said.shift
        .map_or(f64::NEG_INFINITY, |[shift, ..]| match row.better {
            Better::Higher => -shift,
            _ => shift,
        })
}

impl Fleet {
    /// Asks `question` of each of these recordings instead of its load.
    ///
    /// # Errors
    /// When nothing can be said of any machine: the error of the first.
    pub fn ask(
        question: &Choose,
        recordings: &[impl AsRef<Path>],
        services: &Services<'_>,
    ) -> Result<Self, Error> {
        let mut fleet = Self {
            baseline: String::new(),
            candidates: Vec::new(),
            machines: Vec::new(),
            unread: Vec::new(),
            objects: Vec::new(),
            inputs: Vec::new(),
        };
        let wanted = match &question.load {
            LoadSource::Recorded(_, wanted) => *wanted,
            _ => Wanted::default(),
        };
        let mut first = None;
        for path in recordings.iter().map(AsRef::as_ref) {
            let name = input::shown(path);
            let stem = path.file_stem().unwrap_or(path.as_os_str());
            let asked = Choose {
                load: LoadSource::Recorded(Arc::from(path), wanted),
                ..question.clone()
            };
            match asked.ask(services) {
                Ok(chosen) => fleet.add(&stem.to_string_lossy(), chosen),
                Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                Err(error) => {
                    fleet.unread.push((name, error.in_full()));
                    first = first.or(Some(error));
                }
            }
        }
        match first {
            Some(error) if fleet.machines.is_empty() => Err(error),
            _ => Ok(fleet),
        }
    }

    fn add(&mut self, name: &str, chosen: Chosen) {
        let field = &chosen.field;
        let candidates = 1..field.sets.len();
        field.name(0).clone_into(&mut self.baseline);
        self.objects = field.objects();
        self.candidates = candidates
            .clone()
            .map(|at| field.name(at).to_owned())
            .collect();
        self.machines.push(FleetMachine {
            name: name.to_owned(),
            cpus: field.machine.cpus,
            kernel: field.recorded_on(),
            candidates: candidates
                .map(|at| FleetCandidate::of(&chosen, at, name))
                .collect(),
        });
        let inputs: BTreeSet<InputFile> = std::mem::take(&mut self.inputs)
            .into_iter()
            .chain(chosen.inputs)
            .collect();
        self.inputs = inputs.into_iter().collect();
    }

    /// On how many machines candidate `at` is how.
    #[must_use]
    pub fn tally(&self, at: usize) -> Tally {
        tally(self.machines.iter().map(|it| &it.candidates[at]))
    }

    /// The same by number of CPUs and kernel, with the share of all machines.
    #[must_use]
    pub fn by_kind(&self, at: usize) -> Vec<((u16, &str), Tally)> {
        let mut kinds: BTreeMap<(u16, &str), Vec<&FleetCandidate>> = BTreeMap::new();
        for machine in &self.machines {
            let kind = (machine.cpus, machine.kernel.as_str());
            kinds.entry(kind).or_default().push(&machine.candidates[at]);
        }
        let kinds = kinds.into_iter();
        kinds.map(|(kind, its)| (kind, tally(its))).collect()
    }

    /// The tenth of the machines, at least one, on which candidate `at` does worst: those where it
    /// failed, and those with the largest change for the worse.
    #[must_use]
    pub fn worst_tenth(&self, at: usize) -> Vec<&FleetMachine> {
        let bad = |it: &FleetMachine| {
            let of = &it.candidates[at];
            let worst = of.worst().map_or(f64::NEG_INFINITY, badness);
            of.failure.as_ref().map_or(worst, |_| f64::INFINITY)
        };
        let mut all: Vec<&FleetMachine> = self.machines.iter().collect();
        all.sort_by(|a, b| bad(b).total_cmp(&bad(a)));
        all.truncate(self.machines.len().div_ceil(10));
        all
    }

    /// The candidates, those that are worse on fewest machines first, then those that are better
    /// on most.
    #[must_use]
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.sort_by_cached_key(|at| {
            let Tally { better, worse, .. } = self.tally(*at);
            (worse, std::cmp::Reverse(better))
        });
        order
    }

    /// The candidate to change to on all of them: better on a machine, and surely not worse on any
    /// other.
    #[must_use]
    pub fn winner(&self) -> Option<usize> {
        let first = *self.order().first()?;
        let tally = self.tally(first);
        let is_everywhere = tally.not_worse == tally.all() && self.unread.is_empty();
        (tally.better > 0 && tally.worse == 0 && is_everywhere).then_some(first)
    }

    /// Whether there is an answer: a candidate is better, or of each it is known how it stands on
    /// every machine.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let mut all = 0..self.candidates.len();
        let is_known = self.unread.is_empty() && all.all(|at| self.tally(at).cannot_tell == 0);
        self.winner().is_some() || is_known
    }
}

fn tally<'a>(of: impl IntoIterator<Item = &'a FleetCandidate>) -> Tally {
    let mut tally = Tally::default();
    of.into_iter().for_each(|it| tally.add(it));
    tally
}

/// The recordings among these files of a folder, in the order of their names, with those that one
/// sees to be lost.
///
/// # Errors
/// When there is none.
pub fn recordings<P: AsRef<Path> + Ord>(
    services: &Services<'_>,
    folder: &Path,
    mut files: Vec<P>,
) -> Result<Vec<P>, UsageError> {
    files.retain(|it| {
        let path = it.as_ref();
        services.is_file(path) && (is_recording(services, path) || is_lost(services, path))
    });
    files.sort();
    if files.is_empty() {
        return Err(UsageError::new(Advised::new(
            format!(
                "{}: there is no recording in this folder",
                input::shown(folder)
            ),
            "put one recording of each machine there; docs/import.md says how to record",
        )));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use stats::compare::{Measure, Named, Refusal};

    use super::*;

    /// A comparison at a goal, with its answer and by which factor the candidate takes longer.
    fn compared(goal: &str, answer: RatioAnswer, factor: f64) -> (MetricRow, Answered) {
        let shift = factor.ln();
        let row = MetricRow {
            metric: goal.to_owned(),
            named: Named {
                title: goal.to_owned(),
                share_of_one: None,
            },
            measure: Measure::Nanos,
            better: Better::Lower,
            is_goal: true,
            base: "eevdf".to_owned(),
            arm: "mine".to_owned(),
            place: String::new(),
            world: String::new(),
            base_extent: None,
            arm_extent: None,
            outliers: [Vec::new(), Vec::new()],
            result: Err(Refusal::Missing),
        };
        let said = Answered {
            answer,
            is_shown: false,
            shift: Some([shift, shift - 0.1, shift + 0.1]),
            is_not_worse: matches!(answer, RatioAnswer::Better | RatioAnswer::Alike),
        };
        (row, said)
    }

    #[test]
    fn a_machine_is_counted_by_the_answer_at_the_goal_that_is_named() {
        use RatioAnswer::{Alike, Better, CannotTell, Worse};
        let said = [
            compared("gain", Better, 0.5),
            compared("same", Alike, 1.0),
            compared("open", CannotTell, 1.1),
            compared("far open", CannotTell, 1.2),
            compared("harm", Worse, 1.5),
            compared("more harm", Worse, 2.0),
        ];
        let named = |standing, goals: &[usize]| {
            let goals = goals.iter().map(|at| said[*at].clone()).collect();
            let of = FleetCandidate {
                said: goals,
                ..candidate(standing, false)
            };
            of.deciding().map(|(row, _)| row.metric.clone())
        };
        for (standing, goals, want) in [
            (Standing::Better, &[0, 1][..], Some("gain")),
            (Standing::Alike, &[1], Some("same")),
            (Standing::CannotTell, &[1, 2, 3], Some("far open")),
            (Standing::BetterForSome, &[0, 1, 2], Some("open")),
            (Standing::Mixed, &[0, 3, 4, 5], Some("more harm")),
            (Standing::Worse, &[3, 4], Some("harm")),
            (Standing::CannotTell, &[], None),
            (Standing::Failed, &[], None),
        ] {
            assert_eq!(named(standing, goals).as_deref(), want, "{standing:?}");
        }
    }

    fn candidate(standing: Standing, is_not_worse: bool) -> FleetCandidate {
        FleetCandidate {
            standing,
            is_not_worse,
            failure: (standing == Standing::Failed).then(|| "it stalled".to_owned()),
            said: Vec::new(),
        }
    }

    fn fleet(standings: &[(Standing, bool)]) -> Fleet {
        let machine = |(at, &(standing, is_not_worse)): (usize, &(Standing, bool))| FleetMachine {
            name: format!("m{at}"),
            cpus: if at % 2 == 0 { 4 } else { 8 },
            kernel: "6.18".to_owned(),
            candidates: vec![candidate(standing, is_not_worse)],
        };
        Fleet {
            baseline: "eevdf".to_owned(),
            candidates: vec!["mine".to_owned()],
            machines: standings.iter().enumerate().map(machine).collect(),
            unread: Vec::new(),
            objects: Vec::new(),
            inputs: Vec::new(),
        }
    }

    #[test]
    fn fifty_nine_machines_without_a_worse_one_show_95_per_cent() {
        let all = fleet(&[(Standing::Better, true); 59]);
        let tally = all.tally(0);
        assert!((0.95..0.951).contains(&tally.not_worse_at_least()));
        let fewer = fleet(&[(Standing::Better, true); 58]);
        assert!(fewer.tally(0).not_worse_at_least() < 0.95);
        // One of which nothing can be told is not one that is not worse.
        let mut standings = [(Standing::Better, true); 59];
        standings[7] = (Standing::CannotTell, false);
        assert!(fleet(&standings).tally(0).not_worse_at_least() < 0.93);
    }

    #[test]
    fn each_machine_counts_once_and_a_winner_is_worse_on_none() {
        use Standing::{Alike, Better, BetterForSome, CannotTell, Failed, Mixed};
        let found = fleet(&[
            (Better, true),
            (Alike, true),
            (Mixed, false),
            (BetterForSome, false),
            (CannotTell, true),
            (Failed, false),
        ]);
        let want = Tally {
            better: 1,
            alike: 1,
            worse: 2,
            cannot_tell: 2,
            not_worse: 3,
        };
        assert_eq!(found.tally(0), want);
        assert_eq!(found.winner(), None);
        assert!(!found.is_decided());
        let kinds = found.by_kind(0);
        let counts: Vec<_> = kinds.iter().map(|(kind, it)| (kind.0, it.all())).collect();
        assert_eq!(counts, [(4, 3), (8, 3)]);
        // The worst tenth is at least one machine: the one where it failed.
        let worst: Vec<_> = found.worst_tenth(0).iter().map(|it| &*it.name).collect();
        assert_eq!(worst, ["m5"]);
        let found = fleet(&[(Better, true), (Alike, true), (CannotTell, true)]);
        assert_eq!(found.winner(), Some(0));
        let found = fleet(&[(Better, true), (CannotTell, false)]);
        assert_eq!(found.winner(), None);
        // Nobody is told to change all machines while one of them could not be read.
        let mut found = fleet(&[(Better, true)]);
        found
            .unread
            .push(("b.txt".to_owned(), "no switch".to_owned()));
        assert_eq!(found.winner(), None);
        assert!(!found.is_decided());
        let mut found = fleet(&[(Standing::Worse, false)]);
        assert!(found.is_decided());
        found
            .unread
            .push(("b.txt".to_owned(), "no switch".to_owned()));
        assert!(!found.is_decided());
    }
}
