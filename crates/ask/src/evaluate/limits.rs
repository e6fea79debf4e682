//! What no candidate may do, however good it is otherwise.
//!
//! A limit is relative to the baseline in the same draw. Whoever passes it there is held against
//! the shipped policies of the same right, too: a policy that promises less than the baseline is
//! not refused for what those do that promise the same. One that declares no right promises
//! nothing, like one that says so, and is held against all of them.

use std::collections::BTreeSet;

use explain::why::{Fault, Finding, Right};
use model::Nanos;

use super::spec::Limits;
use super::taken::{GroupTaken, Taken};

/// A group of tasks that had a smaller part of all CPU time, in millionths, has no share to lose.
const SHARE_LEAST: u64 = 10_000;
/// A wait is long only if it is so many times that under the baseline.
const WAIT_TIMES: u64 = 4;
/// And only if it is longer than so many rounds: a task that waits for its turn, or until a lot
/// falls on it, does not starve.
const ROUNDS: u64 = 10;
/// Tasks that sleep lose time to nobody if they wait for at most so many times as long as all.
const USUAL_WAITS: u64 = 2;

/// Lighter tasks may get so many times the CPU time of heavier ones.
const LIGHTER_TIMES: f64 = 2.0;

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitKind {
    /// The source compiles.
    Compiles,
    /// The object can be loaded.
    Loads,
    /// The kernel does not eject the policy.
    Ejected,
    /// No fault by the judge of `explain`.
    Fault,
    /// No task waits for too long.
    Starvation,
    /// No CPU idles beside waiting tasks.
    Idle,
    /// No group of tasks loses its CPU time.
    Share,
    /// More weight is no less CPU time.
    Weights,
    /// A goal's own limit.
    Goal,
    /// No load is shown worse.
    WorseLoad,
    /// A limit in the gate's pool, of which nothing more is told.
    Gate,
}

impl LimitKind {
    /// In documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Compiles => "compiles",
            Self::Loads => "loads",
            Self::Ejected => "ejected",
            Self::Fault => "fault",
            Self::Starvation => "starvation",
            Self::Idle => "idle",
            Self::Share => "share",
            Self::Weights => "weights",
            Self::Goal => "goal",
            Self::WorseLoad => "worse-load",
            Self::Gate => "gate",
        }
    }

    /// Whether who breaks it is refused, and does not only lose score.
    #[must_use]
    pub const fn is_hard(self) -> bool {
        !matches!(self, Self::WorseLoad)
    }

    /// What is to be done about it, as a sentence.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Compiles => "Correct what the compiler names.",
            Self::Loads => {
                "Use only functions and fields that each of these kernels has, or test for them \
                 with bpf_ksym_exists() and bpf_core_field_exists()."
            }
            Self::Ejected => "Keep to the kernel's contract: correct what its message names.",
            Self::Fault => "Correct the line; `runslice explain` tells how the fault came about.",
            Self::Starvation => {
                "Give every task a CPU in time: serve each queue, also of tasks that no goal \
                 measures, and let those that wait longest go first now and then."
            }
            Self::Idle => {
                "Let no CPU idle beside a waiting task: kick an idle CPU when a task is queued, \
                 and take from every queue in dispatch."
            }
            Self::Share => {
                "Serve tasks that no goal measures, too: a gain that others pay for is none."
            }
            Self::Weights => "Charge a task's run time by its weight.",
            Self::Goal => "Keep the goal within the limit that the file states.",
            Self::WorseLoad => "Find what helps the other loads and does not harm this one.",
            Self::Gate => {
                "Make it general: what holds for the open loads does not hold for others, which \
                 are drawn from a secret key."
            }
        }
    }
}

/// Everything in which `other`, in the same draw, is beyond the limits that hold where `base` is
/// the rule; with the facts in words.
#[must_use]
pub fn beyond(limits: &Limits, base: &Taken, other: &Taken) -> Vec<(LimitKind, String)> {
    let mut all = Vec::new();
    if let Some(ejection) = &other.ejection {
        if base.ejection.is_none() {
            all.push((LimitKind::Ejected, ejection.clone()));
        }
        // The run was cut short: its other figures say nothing.
        return all;
    }
    if base.ejection.is_some() {
        return all;
    }
    if let Some(fault) = fault(other).filter(|_| fault(base).is_none()) {
        all.push((LimitKind::Fault, said(fault)));
    }
    let starved = groups(base, other).filter_map(|(name, known, group)| {
        starves(limits, known, group).then_some((name, group.longest, known.longest))
    });
    if let Some((name, longest, usual)) = starved.max_by_key(|(_, longest, _)| *longest) {
        let words = format!("{name} waits for {longest}, under the baseline for {usual} at most");
        all.push((LimitKind::Starvation, words));
    }
    if other.idle > base.idle + limits.idle {
        let [has, usual] = [other.idle, base.idle].map(|it| it * 100.0);
        let words = format!(
            "{has:.1} % of all CPU time idles beside waiting tasks, under the baseline {usual:.1} %"
        );
        all.push((LimitKind::Idle, words));
    }
    let poor = groups(base, other).filter_map(|(name, known, group)| {
        is_poor(limits, known, (other, group)).then_some((name, group.share, known.share))
    });
    if let Some((name, has, usual)) = poor.min_by_key(|(_, has, usual)| has * 1_000_000 / usual) {
        let [has, usual] = [has, usual].map(|it| it as f64 / 10_000.0);
        let words =
            format!("{name} gets {has:.1} % of all CPU time, under the baseline {usual:.1} %");
        all.push((LimitKind::Share, words));
    }
    if let Some(words) = lighter_first(base, other) {
        all.push((LimitKind::Weights, words));
    } else if is_unfair(other) && !is_unfair(base) {
        let words = "of two tasks that always want a CPU the one of less weight gets more";
        all.push((LimitKind::Weights, words.to_owned()));
    }
    all
}

/// Of tasks that never sleep, those of less weight get much more than those of more, and under the
/// baseline they do not.
fn lighter_first(base: &Taken, other: &Taken) -> Option<String> {
    let hungry = || {
        other
            .groups
            .iter()
            .filter(|(_, it)| it.hungry > Nanos::ZERO)
    };
    let part = |of: &Taken, light: &str, heavy: &str| {
        let time = |name: &str| of.groups.get(name).map_or(0, |it| it.hungry.get());
        time(light) as f64 / time(heavy).max(1) as f64
    };
    for (heavy, one) in hungry() {
        let lighter = hungry().filter(|(_, it)| it.nice > one.nice);
        for (light, _) in lighter {
            let [usual, has] = [base, other].map(|it| part(it, light, heavy));
            if has > LIGHTER_TIMES * usual.max(1.0) {
                return Some(format!(
                    "a task of {light} gets {has:.1} times the CPU time of one of {heavy}, which \
                     has more weight; under the baseline {usual:.1} times"
                ));
            }
        }
    }
    None
}

/// By name what the groups of either run got in both.
fn groups<'a>(
    base: &'a Taken,
    other: &'a Taken,
) -> impl Iterator<Item = (&'a str, GroupTaken, GroupTaken)> {
    let names: BTreeSet<&String> = base.groups.keys().chain(other.groups.keys()).collect();
    let of = |run: &Taken, name: &String| run.groups.get(name).copied().unwrap_or_default();
    let both = move |name: &'a String| (name.as_str(), of(base, name), of(other, name));
    names.into_iter().map(both)
}

/// Whether a shipped policy that is within the limits of `kind`, too, does the same: most groups
/// that starve or lose under it do so under the candidate. One that starves whoever never sleeps
/// is no excuse for starving a single group.
#[must_use]
pub fn takes_from_the_same(
    limits: &Limits,
    kind: LimitKind,
    base: &Taken,
    [candidate, peer]: [&Taken; 2],
) -> bool {
    let lose = |run: &Taken| -> BTreeSet<String> {
        let losers = groups(base, run).filter(|(_, known, group)| match kind {
            LimitKind::Starvation => starves(limits, *known, *group),
            LimitKind::Share => is_poor(limits, *known, (run, *group)),
            _ => false,
        });
        losers.map(|it| it.0.to_owned()).collect()
    };
    let (by_candidate, by_peer) = (lose(candidate), lose(peer));
    by_peer.is_empty() || by_peer.intersection(&by_candidate).count() * 2 > by_peer.len()
}

fn is_poor(limits: &Limits, usual: GroupTaken, (run, has): (&Taken, GroupTaken)) -> bool {
    usual.share >= SHARE_LEAST
        && (has.share as f64) < usual.share as f64 * limits.share
        && !waits_as_all(run, has)
}

/// Whether these sleep, and get less because every task waits longer: others do not get what they
/// have lost.
fn waits_as_all(run: &Taken, group: GroupTaken) -> bool {
    let most = Nanos::new(run.usual_wait.get().saturating_mul(USUAL_WAITS));
    group.turn.is_some_and(|it| it <= most)
}

fn starves(limits: &Limits, usual: GroupTaken, has: GroupTaken) -> bool {
    let times = usual.longest.get().saturating_mul(WAIT_TIMES);
    let rounds = usual.round.get().saturating_mul(ROUNDS);
    has.longest >= limits.starvation && has.longest >= Nanos::new(times.max(rounds))
}

/// What `explain` says of a run that breaks a limit of this kind. A task that starves is told of
/// whatever the policy has promised.
#[must_use]
pub const fn finding_of(taken: &Taken, kind: LimitKind) -> Option<&Finding> {
    match kind {
        LimitKind::Starvation | LimitKind::Share => taken.seen.as_ref(),
        _ => taken.finding.as_ref(),
    }
}

/// A fault of a run, besides one of weights.
#[must_use]
pub fn fault(taken: &Taken) -> Option<&Finding> {
    taken
        .finding
        .as_ref()
        .filter(|it| it.fault != Fault::UnfairShare)
}

fn is_unfair(taken: &Taken) -> bool {
    let fault = taken.finding.as_ref().map(|it| it.fault);
    fault == Some(Fault::UnfairShare)
}

/// A finding in one line.
fn said(finding: &Finding) -> String {
    let line = finding.culprit.as_ref().and_then(|act| act.place.as_ref());
    let at = line.map(|line| match &line.file {
        Some(file) => format!(", {file}:{} ({})", line.line, line.function),
        None => format!(", in {}", line.function),
    });
    format!("{}{}", finding.fault.sentence(), at.unwrap_or_default())
}

/// Shipped policies that a candidate is held against besides the baseline: it is not refused for
/// what one of them does, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Those of this right.
    Of(Right),
    /// All: it promises nothing, or does not say what, and could have declared the right of any.
    All,
    /// None: the baseline declares nothing either, as an old version of the candidate does.
    Nobody,
}

/// The right by which a candidate that declares `declared` is judged, and its peers.
#[must_use]
pub fn judged_by(
    limits: &Limits,
    declared: Option<Right>,
    baseline: Option<Right>,
) -> (Option<Right>, Peers) {
    match (limits.right.or(declared), baseline) {
        (Some(Right::Nothing), _) | (None, Some(_)) => (Some(Right::Nothing), Peers::All),
        (Some(right), _) => (Some(right), Peers::Of(right)),
        (None, None) => (None, Peers::Nobody),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn taken(groups: &[(&str, u64, u64)]) -> Taken {
        let group = |(name, share, longest): &(&str, u64, u64)| {
            let taken = GroupTaken {
                share: *share,
                longest: Nanos::from_millis(*longest),
                nice: i8::from(*name == "light"),
                hungry: Nanos::new(if *name == "shell" { 0 } else { *share }),
                turn: Some(Nanos::from_millis(if *name == "shell" {
                    20
                } else {
                    5_000
                })),
                round: Nanos::from_millis(*longest / 20),
            };
            ((*name).to_owned(), taken)
        };
        Taken {
            goals: Vec::new(),
            ejection: None,
            finding: None,
            seen: None,
            idle: 0.001,
            usual_wait: Nanos::from_millis(5),
            groups: groups.iter().map(group).collect::<BTreeMap<_, _>>(),
            instructions: 0,
            simulated: Nanos::from_secs(2),
        }
    }

    fn kinds(base: &Taken, other: &Taken) -> Vec<LimitKind> {
        let found = beyond(&Limits::default(), base, other);
        found.into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn a_run_is_within_the_limits_that_it_sets_itself() {
        let base = taken(&[("hog", 900_000, 5_000), ("shell", 10_000, 20)]);
        assert_eq!(kinds(&base, &base), []);
    }

    #[test]
    fn who_promises_nothing_has_all_shipped_policies_as_peers_but_in_the_gate_of_its_versions() {
        let usual = Limits::default();
        let [weight, rank, nothing] = [Right::Weight, Right::Rank, Right::Nothing].map(Some);
        for (declared, baseline, want) in [
            (rank, weight, (rank, Peers::Of(Right::Rank))),
            (rank, None, (rank, Peers::Of(Right::Rank))),
            (None, weight, (nothing, Peers::All)),
            (nothing, weight, (nothing, Peers::All)),
            (nothing, None, (nothing, Peers::All)),
            (None, None, (None, Peers::Nobody)),
        ] {
            assert_eq!(judged_by(&usual, declared, baseline), want);
        }
        let asked = Limits {
            right: weight,
            ..usual
        };
        assert_eq!(
            judged_by(&asked, rank, None),
            (weight, Peers::Of(Right::Weight))
        );
    }

    #[test]
    fn less_weight_is_not_much_more_time() {
        let fair = taken(&[("hog", 300_000, 50), ("light", 300_000, 50)]);
        let inverted = taken(&[("hog", 100_000, 50), ("light", 500_000, 50)]);
        assert_eq!(kinds(&fair, &inverted), [LimitKind::Weights]);
        assert_eq!(kinds(&inverted, &inverted), []);
        assert_eq!(kinds(&inverted, &fair), [], "the heavier one may get more");
    }

    #[test]
    fn a_policy_that_starves_many_excuses_nobody_who_starves_one() {
        let fair = [
            ("bound", 100_000, 50),
            ("hog", 300_000, 50),
            ("late", 100_000, 50),
        ];
        let base = taken(&fair);
        let of = |shares: [u64; 3]| taken(&[0, 1, 2].map(|at| (fair[at].0, shares[at], 1_500)));
        let (all, most, one) = (
            of([0; 3]),
            of([9_000, 9_000, 90_000]),
            of([0, 400_000, 90_000]),
        );
        let is_excused =
            |run| takes_from_the_same(&Limits::default(), LimitKind::Share, &base, [run, &all]);
        assert_eq!([&all, &most, &one].map(is_excused), [true, true, false]);
        let none = takes_from_the_same(&Limits::default(), LimitKind::Share, &base, [&one, &base]);
        assert!(
            none,
            "it is within the limits of one that takes from nobody"
        );
    }

    #[test]
    fn each_limit_is_relative_to_the_baseline() {
        let base = taken(&[("hog", 900_000, 100), ("shell", 20_000, 20)]);
        let starves = taken(&[("hog", 900_000, 1_500), ("shell", 20_000, 20)]);
        assert_eq!(kinds(&base, &starves), [LimitKind::Starvation]);
        let as_usual = taken(&[("hog", 900_000, 400), ("shell", 20_000, 20)]);
        assert_eq!(kinds(&as_usual, &starves), [], "less than four times");
        let mut crowded = base.clone();
        let hog = crowded.groups.get_mut("hog").unwrap();
        hog.round = Nanos::from_millis(160);
        assert_eq!(kinds(&crowded, &starves), [], "less than ten rounds");
        let poor = taken(&[("hog", 200_000, 100), ("shell", 20_000, 20)]);
        assert_eq!(kinds(&base, &poor), [LimitKind::Share]);
        let mut sleeper = taken(&[("hog", 900_000, 100), ("shell", 2_000, 20)]);
        assert_eq!(kinds(&base, &sleeper), [LimitKind::Share]);
        sleeper.usual_wait = Nanos::from_millis(10);
        assert_eq!(kinds(&base, &sleeper), [], "all wait as long");
        let gone = taken(&[("hog", 900_000, 100)]);
        assert_eq!(kinds(&base, &gone), [LimitKind::Share]);
        let idles = Taken {
            idle: 0.03,
            ..base.clone()
        };
        assert_eq!(kinds(&base, &idles), [LimitKind::Idle]);
        let less = Taken {
            idle: 0.02,
            ..base.clone()
        };
        assert_eq!(kinds(&base, &less), []);
        let ejected = Taken {
            ejection: Some("it was ejected".to_owned()),
            ..idles
        };
        assert_eq!(kinds(&base, &ejected), [LimitKind::Ejected]);
        assert_eq!(kinds(&ejected, &ejected), []);
    }
}
