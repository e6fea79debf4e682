//! How far simulated ratios of two schedulers were from those of a kernel, and what follows for an
//! interval.
//!
//! The unit is a load on a machine: of its candidates and figures the one counts whose played value
//! lies farthest outside of the simulated interval. Of n such numbers the ceil((n + 1) 0.95)-th
//! smallest widens every interval, so that the widened intervals of a call hold together. A call
//! counts its own candidates only, and figures of the kinds that it asks for.
//!
//! `scripts/errors.sh` has the protocol, and makes the table.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use model::{Kernel, MachineSpec, Nanos, Profile};
use serde::{Deserialize, Serialize};
use stats::Report;
use stats::compare::{RatioError, at_least};

use super::kinds::FigureKind;
use crate::goal::{Goal, Spans};
use crate::words::counted;

/// Fewer loads have no quantile of 95 %: the largest of their errors is taken, and nothing is
/// *shown*.
pub const LOADS_MIN: usize = 19;

/// Of fewer loads not even their largest error says much: the next one is below that of ten with a
/// probability of 91 %.
const LOADS_FEW: usize = 10;

/// The part of loads whose candidates are all covered by their widened intervals, in thousandths.
const COVERED: usize = 950;

/// So many tasks that begin in each second of CPU time are many: at a millisecond each, which a
/// fork costs a guest, they take a hundredth of it.
const MANY_FORKS: u128 = 10;

/// Nanoseconds of a second.
const NANOS: u128 = 1_000_000_000;

/// The loads that were played, as `fidelity --errors` writes them.
const TABLE: &str = include_str!("errors.json");

/// What kind of load it is, by its figures and never by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadClass {
    /// Many tasks begin while it runs.
    Forks,
    /// Few do.
    Steady,
}

/// One load that was played under several policies and simulated under the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadError {
    /// Its name.
    pub load: String,
    /// The seed of its first play. Generated loads have a name of their own in each seed only.
    pub seed: u64,
    /// What kind of load it is.
    pub class: LoadClass,
    /// The kernel that played it.
    pub kernel: String,
    /// CPUs of the machine.
    pub cpus: u16,
    /// The profile of the simulated machine.
    pub profile: String,
    /// The policy that the others were held against.
    pub baseline: String,
    /// Plays of each policy.
    pub plays: u32,
    /// By policy and kind of figure: how far the played ratio to the baseline lies outside of the
    /// simulated interval, as a logarithm, the largest over all groups; 0 if all lie inside. A kind
    /// without enough values in each play is not there.
    pub outside: BTreeMap<String, BTreeMap<FigureKind, f64>>,
}

/// The loads that were played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorTable {
    /// What it was measured on, for people.
    pub measured_on: String,
    /// The loads.
    pub loads: Vec<LoadError>,
}

impl LoadClass {
    /// That of a run.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let groups = report.groups.iter();
        let begun = groups.clone().map(|it| it.start.count).sum();
        Self::of_begun(begun, groups.map(|it| it.times.run).sum())
    }

    /// That of a run in which so many tasks began and which took so much CPU time.
    fn of_begun(tasks: u64, cpu_time: Nanos) -> Self {
        if u128::from(tasks) * NANOS > MANY_FORKS * u128::from(cpu_time.get()) {
            Self::Forks
        } else {
            Self::Steady
        }
    }
}

impl FromStr for LoadClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "forks" => Ok(Self::Forks),
            "steady" => Ok(Self::Steady),
            _ => Err(format!(
                "`{text}` is no class of loads: `forks` or `steady`"
            )),
        }
    }
}

impl LoadError {
    /// How far ratios of this policy to the baseline lay outside, at any of these kinds of figures;
    /// `None` if it was not measured.
    fn of(&self, policy: &str, kinds: &[FigureKind]) -> Option<f64> {
        if policy == self.baseline {
            return Some(0.0);
        }
        let outside = self.outside.get(policy)?;
        let of_kinds = kinds.iter().filter_map(|kind| outside.get(kind));
        of_kinds.copied().reduce(f64::max)
    }

    /// The largest of what is asked for: of the ratios of all candidates that were played, else of
    /// all policies that were. Errors of two ratios to one policy add up in that of their own.
    fn largest(&self, of: &Simulated<'_>) -> Option<f64> {
        let played = |policy: &&&str| self.of(policy, of.kinds).is_some();
        let known: Vec<&str> = of.candidates.iter().filter(played).copied().collect();
        let others = known.iter().copied().filter(|it| *it != of.base);
        let base = self.of(of.base, of.kinds);
        let all: Vec<f64> = match base {
            Some(base) if known.len() > 1 => others
                .filter_map(|it| Some(self.of(it, of.kinds)? + base))
                .collect(),
            _ => {
                let all = self.outside.keys();
                all.filter_map(|it| self.of(it, of.kinds)).collect()
            }
        };
        all.into_iter().reduce(f64::max)
    }
}

/// What an error is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Simulated<'a> {
    /// The machine.
    pub machine: &'a MachineSpec,
    /// What kind of load it is.
    pub class: LoadClass,
    /// All candidates of the call, by name.
    pub candidates: &'a [&'a str],
    /// The one whose ratio it is.
    pub candidate: &'a str,
    /// To which one.
    pub base: &'a str,
    /// The kinds of all figures that the call asks for.
    pub kinds: &'a [FigureKind],
}

impl Simulated<'_> {
    /// The same of whatever policies were played.
    const fn of_any(self) -> Self {
        Self {
            candidates: &[],
            ..self
        }
    }
}

impl ErrorTable {
    /// The loads that are part of the program.
    ///
    /// # Panics
    /// Never: a test reads the same bytes.
    #[must_use]
    pub fn own() -> Self {
        serde_json::from_str(TABLE).expect("a test reads it")
    }

    /// The table as it stands in its file: a line for each load.
    ///
    /// # Errors
    /// Never in practice: names are text and errors are numbers.
    pub fn text(&self) -> serde_json::Result<String> {
        let loads = self.loads.iter().map(serde_json::to_string);
        let loads: Vec<String> = loads.collect::<Result<_, _>>()?;
        let on = serde_json::to_string(&self.measured_on)?;
        let loads = loads.join(",\n    ");
        Ok(format!(
            "{{\n  \"measured_on\": {on},\n  \"loads\": [\n    {loads}\n  ]\n}}\n"
        ))
    }

    /// Hash of the table that is part of the program: what a decision names it by.
    #[must_use]
    pub fn own_hash() -> String {
        blake3::hash(TABLE.as_bytes()).to_hex().to_string()
    }

    /// The table with these loads in the place of those of the same name, seed, kernel and CPUs.
    #[must_use]
    pub fn with(mut self, loads: Vec<LoadError>) -> Self {
        let key = |it: &LoadError| {
            let place = (it.kernel.clone(), it.cpus, it.profile.clone());
            (it.seed, it.load.clone(), place)
        };
        self.loads
            .retain(|old| loads.iter().all(|new| key(new) != key(old)));
        self.loads.extend(loads);
        self.loads.sort_by_key(key);
        self
    }

    /// Whether a play was made of this policy.
    #[must_use]
    pub fn has_policy(&self, policy: &str) -> bool {
        let mut loads = self.loads.iter();
        loads.any(|it| it.baseline == policy || it.outside.contains_key(policy))
    }

    /// What the machines of all plays had, in words, if this one is another; `None` of such a one.
    #[must_use]
    pub fn machines_apart(&self, machine: &MachineSpec) -> Option<String> {
        let kernel = Kernel::name(machine.kernel);
        let is_like = |it: &LoadError| it.kernel == kernel && it.cpus == machine.cpus;
        let mut like = self.loads.iter().filter(|it| is_like(it)).peekable();
        let had: BTreeSet<String> = if like.peek().is_none() {
            let all = self.loads.iter();
            let cpus = |it: &LoadError| counted(it.cpus.into(), "CPU");
            all.map(|it| format!("{} and Linux {}", cpus(it), it.kernel))
                .collect()
        } else {
            like.map(|it| format!("profile {}", it.profile)).collect()
        };
        let own = format!("profile {}", machine.profile.name());
        let had: Vec<String> = had.into_iter().collect();
        (!had.contains(&own)).then(|| had.join(" or "))
    }

    /// By how much intervals of such a candidate on such a machine are widened.
    #[must_use]
    pub fn error(&self, of: Simulated<'_>) -> RatioError {
        let own = of.machine.profile.name();
        let is_own = !self.under(own, &of).is_empty();
        // A profile that nobody measured may be as bad as none.
        let profile = if is_own { own } else { Profile::Ideal.name() };
        let mut loads = self.under(profile, &of);
        loads.retain(|it| it.class == of.class);
        // What hardly any load tells may be luck: nothing is as bad as the worst of all.
        let is_few = loads.len() < LOADS_FEW;
        let asked = if is_few { of.of_any() } else { of };
        if is_few {
            loads = self.under(profile, &asked);
        }
        let all: Vec<f64> = loads.iter().filter_map(|it| it.largest(&asked)).collect();
        let is_known = is_own && has(&loads, &of);
        let is_enough = !is_few && all.len() >= LOADS_MIN;
        let found = if is_enough {
            widening(&all)
        } else {
            all.iter().copied().fold(0.0, f64::max)
        };
        let unknown = if is_known { 0.0 } else { left_out(&loads, &of) };
        RatioError {
            widening: found.max(unknown),
            is_shown: is_known && is_enough,
            // Siblings of a core slow each other down, which no play has and nothing models.
            is_measured: of.machine.smt <= 1 && !all.is_empty(),
            source: self.source(&all, is_enough),
        }
    }

    /// The loads that have what is asked for, under this profile.
    fn under(&self, profile: &str, of: &Simulated<'_>) -> Vec<&LoadError> {
        let its = self.loads.iter().filter(|it| it.profile == profile);
        its.filter(|it| it.largest(of).is_some()).collect()
    }

    fn source(&self, all: &[f64], is_enough: bool) -> String {
        let right = (0..all.len()).filter(|own| {
            let others = all.iter().enumerate().filter(|(at, _)| at != own);
            let others: Vec<f64> = others.map(|(_, it)| *it).collect();
            all[*own] <= widening(&others)
        });
        let (right, loads) = (right.count(), counted(all.len() as u64, "load"));
        let worst = if is_enough { "" } else { "worst of " };
        format!(
            "{worst}{loads} {}; right for {right} of {} such loads (at least {:.0} %)",
            self.measured_on,
            all.len(),
            at_least(right, all.len()) * 100.0,
        )
    }
}

/// Whether plays of these policies were made on such a machine.
fn has(loads: &[&LoadError], of: &Simulated<'_>) -> bool {
    let kernel = Kernel::name(of.machine.kernel);
    loads.iter().any(|it| {
        let played = |policy: &str| it.of(policy, of.kinds).is_some();
        let is_there = it.cpus == of.machine.cpus && it.kernel == kernel;
        is_there && played(of.candidate) && played(of.base)
    })
}

/// The largest widening that a policy, a kernel or a machine needs that no other load tells.
fn left_out(loads: &[&LoadError], of: &Simulated<'_>) -> f64 {
    let mut parts: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for load in loads {
        let all = load.outside.keys();
        let all = all.filter_map(|it| Some((it, load.of(it, of.kinds)?)));
        let all: Vec<(&String, f64)> = all.collect();
        let largest = all.iter().map(|it| it.1).fold(0.0, f64::max);
        let machine = [
            format!("kernel {}", load.kernel),
            format!("{} CPUs", load.cpus),
        ];
        for part in machine {
            parts.entry(part).or_default().push(largest);
        }
        for (policy, outside) in all {
            parts.entry(policy.clone()).or_default().push(outside);
        }
    }
    parts.values().map(|it| widening(it)).fold(0.0, f64::max)
}

/// The widening that a further load needs with a probability of 95 %; the largest of too few.
fn widening(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = ((sorted.len() + 1) * COVERED)
        .div_ceil(1000)
        .min(sorted.len());
    sorted
        .get(rank.wrapping_sub(1))
        .copied()
        .unwrap_or(0.0)
        .max(0.0)
}

/// What `score` calls that which a goal is about; `None` if it does not score it.
#[must_use]
pub const fn scored_as(goal: &Goal) -> Option<&'static str> {
    match goal {
        Goal::Time { spans, .. } => match spans {
            Spans::Wait => Some("wait"),
            Spans::Delay => Some("delay"),
            Spans::Slice => Some("preemptions"),
            Spans::Named(_) => Some("response"),
            Spans::Sleep => None,
        },
        Goal::Late { .. } => Some("response"),
        Goal::Work { .. } | Goal::End { .. } => Some("elapsed"),
        Goal::Cpu { .. } | Goal::Energy { .. } | Goal::Efficiency { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(at: usize, outside: f64) -> LoadError {
        LoadError {
            load: format!("load-{at}"),
            seed: 1,
            class: LoadClass::Steady,
            kernel: "6.18".to_owned(),
            cpus: 2,
            profile: "ideal".to_owned(),
            baseline: "eevdf".to_owned(),
            plays: 5,
            outside: [("fifo", outside), ("mlfq", outside / 2.0)]
                .map(|(policy, outside)| {
                    let kinds = [(FigureKind::Wait, outside), (FigureKind::Cpu, 0.001)];
                    (policy.to_owned(), kinds.into())
                })
                .into(),
        }
    }

    fn table(loads: usize) -> ErrorTable {
        ErrorTable {
            measured_on: "in counting VMs".to_owned(),
            loads: (0..loads).map(|at| load(at, at as f64 / 100.0)).collect(),
        }
    }

    fn asked<'a>(machine: &'a MachineSpec, candidates: &'a [&'a str]) -> Simulated<'a> {
        Simulated {
            machine,
            class: LoadClass::Steady,
            candidates,
            candidate: candidates[1],
            base: candidates[0],
            kinds: &[FigureKind::Wait],
        }
    }

    fn machine(cpus: u16) -> MachineSpec {
        MachineSpec {
            cpus,
            ..MachineSpec::default()
        }
    }

    fn error(table: &ErrorTable, policy: &str, cpus: u16) -> RatioError {
        table.error(asked(&machine(cpus), &["eevdf", policy]))
    }

    #[test]
    fn the_table_of_the_program_is_read_and_shows_what_nineteen_of_its_loads_tell() {
        let own = ErrorTable::own();
        assert!(!own.loads.is_empty());
        assert_eq!(
            own.text().unwrap(),
            TABLE,
            "its file is as the script writes it"
        );
        let found = error(&own, "mlfq", 2);
        let told = own.loads.iter().filter(|it| {
            let is_asked = it.class == LoadClass::Steady && it.profile == "ideal";
            is_asked && it.of("mlfq", &[FigureKind::Wait]).is_some()
        });
        assert_eq!(found.is_shown, told.count() >= LOADS_MIN);
        assert!(found.is_measured && found.widening > 0.0, "{found:?}");
    }

    #[test]
    fn few_loads_give_the_largest_error_and_nothing_is_shown() {
        let found = error(&table(18), "fifo", 2);
        assert!((found.widening - 0.17).abs() < 1e-12, "{found:?}");
        assert!(!found.is_shown);
        assert!(
            found
                .source
                .starts_with("worst of 18 loads in counting VMs; "),
            "{found:?}"
        );
        // The largest of 18 is larger than all others.
        assert!(
            found
                .source
                .ends_with("right for 17 of 18 such loads (at least 76 %)"),
            "{found:?}"
        );
    }

    #[test]
    fn of_many_loads_the_quantile_of_95_per_cent_counts() {
        let found = error(&table(59), "fifo", 2);
        // ceil(60 * 0.95) is the 57th of 0.00 to 0.58.
        assert!((found.widening - 0.56).abs() < 1e-12, "{found:?}");
        assert!(found.is_shown);
    }

    #[test]
    fn a_policy_or_a_machine_that_was_not_played_is_likely_at_most() {
        let table = table(59);
        assert!(!error(&table, "mine", 2).is_shown);
        assert!(!error(&table, "fifo", 8).is_shown);
        assert!(error(&table, "fifo", 8).is_measured);
        let smt = MachineSpec {
            cpus: 4,
            smt: 2,
            ..MachineSpec::default()
        };
        assert!(!table.error(asked(&smt, &["eevdf", "fifo"])).is_measured);
    }

    #[test]
    fn it_says_which_plays_there_are() {
        let table = table(2);
        assert!(table.has_policy("eevdf") && table.has_policy("mlfq"));
        assert!(!table.has_policy("mine"));
        let apart = |machine| table.machines_apart(&machine);
        assert_eq!(apart(machine(8)).as_deref(), Some("2 CPUs and Linux 6.18"));
        assert_eq!(apart(machine(2)), None);
        let costs = MachineSpec {
            profile: Profile::DefaultV0,
            ..machine(2)
        };
        assert_eq!(apart(costs).as_deref(), Some("profile ideal"));
    }

    #[test]
    fn a_class_of_few_loads_is_never_shown_and_one_of_hardly_any_is_as_bad_as_the_worst() {
        let machine = machine(2);
        let of_class = |forks: usize| {
            let mut table = table(59);
            for load in table.loads.iter_mut().take(forks) {
                load.class = LoadClass::Forks;
            }
            let mut of = asked(&machine, &["eevdf", "mlfq"]);
            of.class = LoadClass::Forks;
            table.error(of)
        };
        // The largest of these 18, half of 0.17.
        let found = of_class(18);
        assert!((found.widening - 0.085).abs() < 1e-12, "{found:?}");
        assert!(
            !found.is_shown && found.source.starts_with("worst of 18 loads"),
            "{found:?}"
        );
        // The largest of all loads and policies.
        let found = of_class(9);
        assert!((found.widening - 0.58).abs() < 1e-12, "{found:?}");
        assert!(
            !found.is_shown && found.source.starts_with("worst of 59 loads"),
            "{found:?}"
        );
        assert!(of_class(19).is_shown);
    }

    #[test]
    fn a_load_forks_if_more_than_ten_tasks_begin_in_a_second_of_cpu_time() {
        let with = |tasks, ms| LoadClass::of_begun(tasks, Nanos::from_millis(ms));
        assert_eq!(with(0, 0), LoadClass::Steady);
        assert_eq!(with(10, 1000), LoadClass::Steady);
        assert_eq!(with(11, 1000), LoadClass::Forks);
        assert_eq!(with(1, 0), LoadClass::Forks);
        assert_eq!("forks".parse(), Ok(LoadClass::Forks));
        assert!("idle".parse::<LoadClass>().is_err());
    }

    #[test]
    fn candidates_and_kinds_that_nobody_asks_for_widen_nothing() {
        let table = table(59);
        let machine = machine(2);
        assert!((error(&table, "mlfq", 2).widening - 0.28).abs() < 1e-12);
        let mut both = asked(&machine, &["eevdf", "mlfq", "fifo"]);
        assert!((table.error(both).widening - 0.56).abs() < 1e-12);
        both.kinds = &[FigureKind::Cpu];
        assert!((table.error(both).widening - 0.001).abs() < 1e-12);
        both.kinds = &[FigureKind::Cpu, FigureKind::Wait];
        assert!((table.error(both).widening - 0.56).abs() < 1e-12);
        // Nothing of the kind was measured.
        both.kinds = &[FigureKind::Slice];
        assert!(!table.error(both).is_measured);
    }

    #[test]
    fn the_errors_of_two_candidates_add_up_in_their_own_ratio() {
        let table = table(59);
        let machine = machine(2);
        let found = table.error(asked(&machine, &["fifo", "mlfq"]));
        assert!((found.widening - 0.84).abs() < 1e-12, "{found:?}");
        assert!(found.is_shown);
    }

    #[test]
    fn an_unknown_policy_needs_as_much_as_the_worst_known_one() {
        let table = table(59);
        let machine = machine(2);
        let found = table.error(asked(&machine, &["eevdf", "mine"]));
        assert!((found.widening - 0.56).abs() < 1e-12, "{found:?}");
        // Beside a known candidate, too.
        let found = table.error(asked(&machine, &["eevdf", "mine", "mlfq"]));
        assert!((found.widening - 0.56).abs() < 1e-12, "{found:?}");
    }
}
