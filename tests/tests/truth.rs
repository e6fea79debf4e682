//! What the judge says, held against what is counted without it.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

use ask::Services;
use ask::explain::{Explain, ExplainOf};
use ask::measure::Measure;
use runslice_tests::crowds::Crowd;
use runslice_tests::mutants;
use runslice_tests::truth::{Bound, SOUND, Seen, Stated, Truth};
use workload::RunSpec;

/// Loads of every run of the tests, and of a long one.
const FEW: u64 = 8;
const MANY: u64 = 500;
/// Mutants of a long run. Those with an odd number are kept closed until the judge is finished:
/// `MUTANTS=closed` opens them.
const MUTANTS: u64 = 200;
/// Loads under which a mutant is tried.
const TRIES: u64 = 12;

/// What the judge accuses the policy of, what was counted, and whether the judge at least tells
/// that CPUs idled beside those who waited.
fn told(spec: &RunSpec, stated: Stated) -> (Option<String>, Seen, bool) {
    let mut truth = Truth::new(stated, spec);
    let summary = sim::run(spec, &mut truth).unwrap_or_else(|error| panic!("{error}"));
    let question = Explain {
        of: ExplainOf::Run(Box::new(spec.clone()), sim::Options::default()),
        task: None,
        worst: None,
        right: None,
    };
    let told = question.ask(&Services::default());
    let told = told.unwrap_or_else(|error| panic!("{error}"));
    let accused = told.finding.as_ref().filter(|_| told.accuses());
    let word = accused.map(|finding| finding.fault.word().to_owned());
    let tells_idle = told.large.contains(&Measure::Idle);
    (word, truth.seen(&summary), tells_idle)
}

/// What the judge accuses the policy of, and what was counted.
fn both(spec: &RunSpec, stated: Stated) -> (Option<String>, Seen) {
    let (accused, seen, _) = told(spec, stated);
    (accused, seen)
}

/// The accusations of sound policies under `loads` loads each, as lines; and runs in which only
/// the count saw something, by policy.
fn accusations(loads: u64) -> (Vec<String>, BTreeMap<&'static str, [u64; 3]>) {
    let (mut lines, mut table) = (Vec::new(), BTreeMap::new());
    let only = env::var("POLICIES").unwrap_or_default();
    let is_asked = |it: &&Stated| only.is_empty() || only.split(',').any(|name| name == it.policy);
    for stated in SOUND.iter().filter(is_asked) {
        let row = table.entry(stated.policy).or_insert([0; 3]);
        for number in 0..loads {
            let crowd = Crowd::draw(47, number);
            let (accused, seen) = both(&crowd.under_known(stated.policy), *stated);
            match (accused, seen) {
                (Some(word), Seen::Nothing) => {
                    row[0] += 1;
                    lines.push(format!(
                        "{} of load {number}: {word}\n{}",
                        stated.policy, crowd.text
                    ));
                }
                (Some(_), Seen::CannotSay(_)) => row[1] += 1,
                (_, Seen::Nothing | Seen::CannotSay(_)) => {}
                (accused, seen) => {
                    row[2] += 1;
                    lines.push(format!(
                        "{} of load {number}: counted {seen:?}, the judge says {accused:?}",
                        stated.policy
                    ));
                }
            }
        }
    }
    (lines, table)
}

#[test]
fn no_sound_policy_is_accused_where_nothing_is_counted() {
    let (lines, _) = accusations(FEW);
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[test]
#[ignore = "takes minutes; `make test-long` runs it"]
fn no_sound_policy_is_accused_under_many_loads() {
    let loads = env::var("LOADS").ok().and_then(|it| it.parse().ok());
    let (lines, table) = accusations(loads.unwrap_or(MANY));
    println!("policy, accused and nothing counted, accused and it cannot be said, counted");
    for (policy, row) in &table {
        println!("{policy:18} {:4} {:4} {:4}", row[0], row[1], row[2]);
    }
    println!("{}", lines.join("\n"));
    let accused = table.values().filter(|row| row[0] > 0).count();
    assert_eq!(accused, 0, "policies of {} that are accused", table.len());
}

/// The bounds that a mutant breaks are those of the policy that it was made of.
fn stated_of(policy: &str) -> Stated {
    let name = policy.trim_start_matches("lessons/");
    let name = name.trim_end_matches(".bpf.c");
    let stated = SOUND.iter().find(|it| it.policy == name);
    *stated.expect("each base is sound")
}

#[test]
#[ignore = "takes minutes; `make test-long` runs it"]
fn mutants_of_sound_policies_are_found_or_missed_by_operator() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_open = env::var("MUTANTS").is_ok_and(|it| it == "closed");
    let mut table: BTreeMap<&str, [u64; 5]> = BTreeMap::new();
    for number in 0..MUTANTS {
        if number % 2 == 1 && !is_open {
            continue;
        }
        let Some((mutant, object)) = mutants::make(47, number, folder.path()) else {
            continue;
        };
        let object: Arc<[u8]> = object.into();
        let stated = stated_of(mutant.policy);
        let row = table.entry(mutant.operator.name()).or_insert([0; 5]);
        let results: Vec<_> = (0..TRIES)
            .map(|at| {
                told(
                    &Crowd::draw(4_711, at).under("mutant", Arc::clone(&object)),
                    stated,
                )
            })
            .collect();
        let shows = |seen: &Seen| !matches!(seen, Seen::Nothing | Seen::CannotSay(_));
        let shown = results.iter().find(|(_, seen, _)| shows(seen));
        let accused = results.iter().find_map(|(accused, _, _)| accused.clone());
        let hit = results
            .iter()
            .any(|(accused, seen, _)| shows(seen) && accused.is_some());
        // A policy that leaves a queue to one CPU may mean it: that is told, and no accusation.
        let is_told = results
            .iter()
            .any(|(_, seen, tells_idle)| shows(seen) && *tells_idle);
        let at = match (shown, &accused) {
            (Some(_), Some(_)) if hit => 0,
            (Some(_), _) if is_told => 1,
            (Some(_), _) => 2,
            (None, Some(_)) => 3,
            (None, None) => 4,
        };
        row[at] += 1;
        let (file, line) = &mutant.at;
        println!(
            "{number:3} {} {} {file}:{line} `{}`: counted {:?}, the judge says {accused:?}",
            mutant.policy,
            mutant.operator.name(),
            mutant.line,
            shown.map(|(_, seen, _)| seen),
        );
    }
    println!(
        "operator, found, told as idle CPUs, missed, accused and nothing counted, nothing to be \
         seen"
    );
    for (operator, row) in &table {
        let [found, large, missed, alone, equal] = row;
        println!("{operator:14} {found:3} {large:3} {missed:3} {alone:3} {equal:3}");
    }
    let found: u64 = table.values().map(|row| row[0]).sum();
    let missed: u64 = table.values().map(|row| row[2]).sum();
    assert!(found > missed, "{found} found, {missed} missed");
}

/// A count that saw nothing in any run would excuse every judge.
#[test]
fn the_count_sees_what_faulty_policies_do() {
    let seen = |policy: &str, number: u64| {
        let stated = Stated {
            policy: "faulty",
            bound: Bound::Round(model::Nanos::from_millis(5)),
            may_idle: false,
        };
        both(&Crowd::draw(47, number).under_known(policy), stated).1
    };
    let shows = |policy: &str| {
        let all = (0..12).map(|number| seen(policy, number));
        all.filter(|seen| !matches!(seen, Seen::Nothing | Seen::CannotSay(_)))
            .count()
    };
    for policy in ["faulty-unread", "faulty-drops", "faulty-endless-slice"] {
        assert!(shows(policy) > 0, "{policy}");
    }
}
