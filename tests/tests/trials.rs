//! Explanations are tried: faults of the corpus are proven, and sound policies are not accused.

use ask::Services;
use ask::explain::{Explain, ExplainOf, Explanation};
use ask::trial::Unproven;
use ask::violation;
use explain::why::Observer;
use model::{CpuId, Nanos, Rng, SimTime, TaskId};
use runslice_tests::faulty::{self, BOUND, Case, HOGS, SHELLS, marked};
use runslice_tests::run::Run;
use sim::{Deed, Intervention, Rule, Simulation};
use workload::RunSpec;

fn explain(spec: RunSpec) -> Explanation {
    let question = Explain {
        of: ExplainOf::Run(Box::new(spec), sim::Options::default()),
        task: None,
        worst: None,
        right: None,
    };
    let answer = question.ask(&Services::default());
    answer.unwrap_or_else(|error| panic!("{error}"))
}

fn of_case(case: &Case) -> Explanation {
    let policy = format!("faulty-{}", case.policy);
    let run = Run {
        cpus: case.cpus,
        until: Nanos::from_secs(case.seconds),
        ..Run::new(&policy, case.workload)
    };
    explain(run.spec())
}

/// To take a task out of a queue that the policy keeps closed for a while proves nothing, and no
/// pause before says how long the first one takes.
#[test]
fn a_queue_that_opens_again_by_itself_is_no_fault_at_its_first_pause() {
    let load = "[task.late]\nnice = 5\nstart = \"1060ms\"\ndo = \"run(inf)\"\n\
        [task.shell]\ndo = \"loop(inf)[ run(1ms), sleep(9ms) ]\"\n";
    let run = Run {
        cpus: 2,
        until: Nanos::from_millis(1490),
        ..Run::new("gated", load)
    };
    let explanation = explain(run.spec());
    let finding = explanation.finding.as_ref().expect("it waits for 430 ms");
    let victim = finding.victim.as_ref().map(|it| it.name.as_str());
    assert_eq!(victim, Some("late"), "{finding:?}");
    let trials = explanation.trials.as_ref().expect("it was tried");
    assert_eq!(trials.unproven, Some(Unproven::ComesBack), "{trials:?}");
    assert!(!explanation.accuses());
    let accused = violation::accused(&Services::default(), &run.spec(), &[]);
    assert_eq!(accused.expect("it runs"), None);
}

/// A row of a table: what was found, and what trials say of it.
fn row(case: &Case, explanation: &Explanation) -> String {
    let finding = explanation.finding.as_ref();
    let class = finding.map_or("nothing", |it| it.fault.word());
    let line = finding.and_then(|it| it.culprit.as_ref()?.place.as_ref());
    let line = line.map_or(0, |place| place.line);
    let is_right = marked(case.policy).contains(&line);
    let Some(trials) = &explanation.trials else {
        return format!("| {} | {class} | {line} | | |", case.policy);
    };
    let proof = match (&trials.unproven, trials.proven()) {
        (_, Some(trial)) => format!(
            "{:?} at {} after {:?}: {} of {}, {} of {} placebos",
            trial.cure,
            trial.at,
            trial.after,
            trial.helped,
            trial.tried,
            trial.placebos_helped,
            trial.placebos
        ),
        (Some(why), _) => format!("{} {:?}", why.text(), trials.tried),
        (None, None) => "proven".to_owned(),
    };
    format!(
        "| {} | {class} | {line} {} | {} {} | {proof} |",
        case.policy,
        if is_right { "right" } else { "wrong" },
        if trials.is_contract { "contract" } else { "" },
        if trials.unproven.is_none() {
            "proven"
        } else {
            ""
        },
    )
}

#[test]
fn faults_of_the_corpus_are_proven_or_contracts() {
    let mut open = Vec::new();
    for case in faulty::all() {
        let explanation = of_case(case);
        println!("{}", row(case, &explanation));
        if !explanation.accuses() {
            open.push(case.policy);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// What ends at whole milliseconds does so no more after the shortest interrupt.
#[test]
fn where_any_disturbance_ends_it_no_line_is_accused() {
    let load = "[task.other]\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n\
        [task.shell]\nstart = \"500ms\"\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n";
    let run = Run {
        until: Nanos::from_secs(4),
        ..Run::new("resonates", load)
    };
    let explanation = explain(run.spec());
    let trials = explanation.trials.expect("it is tried");
    assert_eq!(
        trials.unproven,
        Some(Unproven::AnyDisturbance),
        "{trials:?} {:?}",
        explanation.finding
    );
    let finding = explanation.finding.expect("it starves");
    assert!(finding.victim.is_some());
    assert_eq!(finding.culprit, None);
}

/// Cures make no fault: a sound policy to which they are done at random is not accused.
#[test]
fn a_sound_policy_is_not_accused_whatever_is_done_to_it() {
    let mut rng = Rng::new(11, 0);
    for policy in ["fifo", "mlfq", "eevdf", "o1", "staircase", "cfs"] {
        for load in [SHELLS, HOGS, BOUND] {
            let run = Run {
                cpus: 2,
                until: Nanos::from_secs(4),
                ..Run::new(policy, load)
            };
            let deeds = (0..40).map(|_| Intervention {
                at: SimTime::from_nanos(rng.below(4_000_000_000)),
                deed: drawn(&mut rng),
            });
            let deeds: Vec<_> = deeds.collect();
            let mut observer = Observer::new(0, None);
            let done = Simulation::new(&run.spec())
                .with_sink(&mut observer)
                .with_interventions(deeds.clone())
                .start();
            done.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(observer.finding(), None, "{policy}: {deeds:?}");
        }
    }
}

fn drawn(rng: &mut Rng) -> Deed {
    let task = TaskId(rng.below(6) as u32);
    let cpu = CpuId(rng.below(2) as u16);
    match rng.below(9) {
        0 => Deed::Kick(cpu),
        1 => Deed::Put { task, cpu: None },
        2 => Deed::Take { task, cpu },
        3 => Deed::EndSlice(cpu),
        4 => Deed::Keep(task),
        5 => Deed::Jitter(rng.below(100)),
        6 => Deed::Rule(Rule::SliceAtMost(Nanos::from_millis(20))),
        7 => Deed::Rule(Rule::KickIdle),
        _ => Deed::Put {
            task,
            cpu: Some(cpu),
        },
    }
}

#[test]
fn what_is_no_fault_is_explained_without_an_accusation() {
    let load = "[task.shell]\ndo = \"run(inf)\"\n\
        [task.rt]\npolicy = \"fifo:50\"\ndo = \"sleep(100ms), run(inf)\"\n";
    let run = Run {
        until: Nanos::from_secs(4),
        ..Run::new("fifo", load)
    };
    let explanation = explain(run.spec());
    assert!(explanation.finding.is_some());
    assert!(!explanation.accuses());
}
