//! Policies that want a good score and not to be good: each is refused, and its twin, which looks
//! at the same things and does nothing with them, is not. No shipped policy is refused.

use std::path::Path;
use std::sync::Arc;

use ask::Services;
use ask::evaluate::draw::Secret;
use ask::evaluate::score::WORSE;
use ask::evaluate::spec::Spec;
use ask::evaluate::{ARTIFACT_MAX, Evaluation, Evaluator, Stage, artifact};
use ask::policy::FoundPolicy;
use model::{Nanos, PolicySpec, Profile};
use runslice_tests::policy;
use runslice_tests::run::Run;
use sim::{Backend, Options, Simulation};
use traces::TraceHash;

/// Two loads, machines of several sizes, and random loads behind the gate.
const SPEC: &str = "baseline = \"fifo\"\ndraws = 6\nduration = \"2s\"\n\
    [[load]]\nload = \"desk\"\n[[load]]\nload = \"chat\"\nscale = { rooms = 1 }\n\
    [machine]\ncpus = [2, 4]\nhz = [250, 1000]\n[held-out]\ngenerated = 6\n";

/// Where the sources of the shipped policies lie.
const POLICIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");

fn spec(text: &str) -> Spec {
    let services = Services::default();
    let spec = Spec::of_text(&services, "e.toml", Path::new(""), text.to_owned());
    spec.unwrap_or_else(|error| panic!("{error:#}"))
}

fn evaluator<'a>(services: &'a Services<'a>, spec: &'a Spec) -> Evaluator<'a> {
    let drawn = (Secret::of(b"a key that nobody else knows"), 0);
    let evaluator = Evaluator::new(services, spec, drawn, None);
    evaluator.unwrap_or_else(|error| panic!("{error:#}"))
}

fn found(name: &str, set: &[(&str, &str)]) -> FoundPolicy {
    let set = set
        .iter()
        .map(|(knob, value)| ((*knob).to_owned(), (*value).to_owned()));
    FoundPolicy::of_policy(PolicySpec {
        name: name.to_owned(),
        object: policy::object(name).unwrap_or_else(|error| panic!("{error}")),
        table: None,
        set: set.collect(),
        setup: Vec::new(),
        program: None,
        subs: Vec::new(),
    })
}

/// The numbers of `enum kind` in tests/policies/cheats.h, in its order from 1 on, with the limit
/// that tells why it is refused.
const CHEATS: &[(&str, &[&str])] = &[
    ("by name", &["starvation", "fault", "share", "gate"]),
    // Whose numbers it serves are drawn: it gains nothing.
    ("by pid", &[]),
    ("no hogs", &["starvation", "fault", "share", "gate"]),
    ("no nice", &["starvation", "fault", "share", "gate"]),
    ("no pinned", &["starvation", "fault", "share", "gate"]),
    ("no late", &["starvation", "fault", "share", "gate"]),
    ("lifo", &["starvation", "fault", "share", "gate"]),
    ("inverted", &["share", "weights", "gate"]),
    ("learnt", &["idle", "fault", "starvation", "ejected"]),
    ("by clock", &["idle", "fault", "starvation", "ejected"]),
    ("by cpus", &["idle", "fault", "starvation", "ejected"]),
    (
        "by absence",
        &["idle", "fault", "starvation", "ejected", "gate"],
    ),
    ("by crowd", &["idle", "fault", "starvation", "ejected"]),
    ("one idle", &["idle", "fault"]),
    ("lazy", &["idle", "fault"]),
    ("sleepy", &["idle", "fault", "starvation"]),
    ("drops", &["fault", "starvation", "share", "idle"]),
    ("holds", &["fault", "starvation", "share", "gate"]),
    ("late error", &["ejected"]),
    ("late exit", &["ejected"]),
    ("late queue", &["ejected"]),
    ("late loop", &["ejected"]),
    ("burns", &["ejected"]),
    (
        "hoards",
        &["fault", "idle", "starvation", "share", "ejected"],
    ),
    ("wrong cpu", &["ejected", "idle"]),
    ("chance", &["starvation", "fault", "share", "gate"]),
    ("by half", &["starvation", "fault", "share", "gate"]),
    ("by size", &["gate"]),
    // What its computations take is charged.
    ("tolls", &[]),
    ("timed", &["idle", "fault", "starvation", "ejected"]),
];

/// The number of a cheat.
fn number_of(name: &str) -> String {
    let at = CHEATS.iter().position(|it| it.0 == name);
    (at.expect("it is one") + 1).to_string()
}

fn words(evaluation: &Evaluation) -> Vec<&'static str> {
    evaluation
        .breaches
        .iter()
        .map(|it| it.limit.word())
        .collect()
}

fn cheat(evaluator: &Evaluator<'_>, object: &str, kind: usize, honest: &str) -> Evaluation {
    let kind = kind.to_string();
    let found = found(object, &[("kind", &kind), ("honest", honest)]);
    let evaluation = evaluator.evaluate(object, &found, true);
    evaluation.unwrap_or_else(|error| panic!("{error:#}"))
}

/// With every promise: shares by weight, none, and nothing said.
#[test]
fn every_cheat_is_refused_with_its_reason_whatever_it_promises() {
    let (services, spec) = (Services::default(), spec(SPEC));
    let evaluator = evaluator(&services, &spec);
    let mut wrong = Vec::new();
    for object in ["cheats-weight", "cheats-none", "cheats-silent"] {
        for (at, (name, limits)) in CHEATS.iter().enumerate() {
            let evaluation = cheat(&evaluator, object, at + 1, "0");
            let said = words(&evaluation);
            let is_said = said.iter().any(|it| limits.contains(it));
            let score = evaluation.combined();
            let is_right = match (evaluation.is_refused(), *limits) {
                // What it counts on is drawn: it gains less on its honest twin than what matters.
                (false, []) => score <= cheat(&evaluator, object, at + 1, "1").combined() + WORSE,
                (false, _) => false,
                (true, limits) => limits.is_empty() || is_said,
            };
            if !is_right {
                wrong.push(format!("{object}, {name}: {said:?}, score {score:.3}"));
            }
            let artifact = artifact(&evaluation);
            let tells = !evaluation.is_refused() || artifact.contains("Limit `");
            assert!(artifact.len() <= ARTIFACT_MAX && tells, "{artifact}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// On a machine where nothing takes time they would have one score.
#[test]
fn computations_that_a_kernel_pays_for_cost_score() {
    let services = Services::default();
    let tolls = number_of("tolls");
    let [charged, free] = ["", "profile = \"ideal\"\n"].map(|profile| {
        let spec = spec(&SPEC.replace("[machine]\n", &format!("[machine]\n{profile}")));
        let evaluator = evaluator(&services, &spec);
        ["0", "1"].map(|honest| {
            let found = found("cheats-none", &[("kind", &tolls), ("honest", honest)]);
            let evaluation = evaluator.evaluate("tolls", &found, false);
            evaluation
                .unwrap_or_else(|error| panic!("{error:#}"))
                .combined()
        })
    });
    assert!(charged[0] < charged[1] - WORSE, "{charged:?}");
    assert_eq!(free[0], free[1]);
}

/// Hash and number of the events of the cheat `timed` on two CPUs that six tasks want.
fn timed(moving_clock: bool, backend: Backend) -> (u64, u64) {
    let number = number_of("timed");
    let set = [("kind", &*number)];
    let mut spec = Run {
        set: &set,
        cpus: 2,
        until: Nanos::from_secs(1),
        ..Run::new("cheats-none", "[task.t]\ncount = 6\ndo = \"run(inf)\"\n")
    }
    .spec();
    spec.machine.profile = Profile::DefaultV0;
    let options = Options {
        backend,
        moving_clock,
        ..Options::default()
    };
    let mut hash = TraceHash::new();
    Simulation::new(&spec)
        .with_options(options)
        .with_sink(&mut hash)
        .start()
        .expect("the run can be made");
    (hash.value(), hash.count())
}

#[test]
fn a_clock_that_goes_on_in_callbacks_is_seen_on_both_back_ends() {
    let [stands, goes_on] = [false, true].map(|moves| {
        let back_ends = [Backend::Interpreter, Backend::Jit];
        let [interpreted, native] = back_ends.map(|it| timed(moves, it));
        assert_eq!(interpreted, native);
        native
    });
    // Half of the machine idles where the cheat sees a kernel.
    assert!(goes_on.1 < stands.1, "{goes_on:?} {stands:?}");
}

/// Here those that promise nothing; the long test has the others.
#[test]
fn no_honest_twin_of_a_cheat_is_refused() {
    honest_twins(&["cheats-none"], SPEC);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn no_honest_twin_is_refused_behind_a_long_gate_whatever_it_promises() {
    let long = SPEC.replace("generated = 6", "generated = 40");
    honest_twins(&["cheats-weight", "cheats-none", "cheats-silent"], &long);
}

fn honest_twins(objects: &[&str], text: &str) {
    let (services, spec) = (Services::default(), spec(text));
    let evaluator = evaluator(&services, &spec);
    let mut wrong = Vec::new();
    for object in objects {
        for (at, (name, _)) in CHEATS.iter().enumerate() {
            let evaluation = cheat(&evaluator, object, at + 1, "1");
            assert_eq!(
                evaluation.stage,
                Stage::Gate,
                "{object}, {name}: {:?}",
                words(&evaluation)
            );
            if evaluation.is_refused() {
                wrong.push(format!("{object}, {name}: {:?}", evaluation.breaches));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_shipped_policy_is_refused_for_what_it_promises() {
    let services = Services::default();
    let mut wrong = Vec::new();
    for baseline in ["eevdf", "fifo"] {
        let spec = spec(&SPEC.replace("\"fifo\"", &format!("\"{baseline}\"")));
        let evaluator = evaluator(&services, &spec);
        for known in policies::ALL {
            let evaluation = evaluator.evaluate(known.name, &found(known.name, &[]), true);
            let evaluation = evaluation.unwrap_or_else(|error| panic!("{error:#}"));
            if evaluation.is_refused() {
                let said = evaluation.breaches.iter().map(|it| &it.words);
                let said: Vec<_> = said.collect();
                wrong.push(format!("{} against {baseline}: {said:?}", known.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Published schedulers declare nothing, and some serve short turns first, as shipped ones do.
#[test]
fn no_shipped_policy_is_refused_that_does_not_say_what_it_promises() {
    let services = Services::default();
    let spec = spec(&SPEC.replace("\"fifo\"", "\"eevdf\""));
    let evaluator = evaluator(&services, &spec);
    let mut wrong = Vec::new();
    for name in ["mlfq", "o1", "staircase", "cfs"] {
        let mut silent = found(name, &[]);
        silent.policy.object = silent_object(name);
        let evaluation = evaluator.evaluate("silent", &silent, true);
        let evaluation = evaluation.unwrap_or_else(|error| panic!("{error:#}"));
        if evaluation.is_refused() {
            wrong.push(format!("{name}: {:?}", words(&evaluation)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_baseline_has_the_score_zero_and_an_answer_is_the_same_again() {
    let (services, spec) = (Services::default(), spec(SPEC));
    let answers = [(); 2].map(|()| {
        let evaluator = evaluator(&services, &spec);
        let [base, other] = ["fifo", "eevdf"].map(|name| {
            let evaluation = evaluator.evaluate(name, &found(name, &[]), true);
            evaluation.unwrap_or_else(|error| panic!("{error:#}"))
        });
        assert_eq!((base.combined(), base.is_refused()), (0.0, false));
        assert!(other.combined() != 0.0);
        format!("{base:?} {other:?}")
    });
    assert_eq!(answers[0], answers[1]);
}

/// A name of the policy, its functions or its variables is nothing that a run depends on.
#[test]
fn renamings_of_a_policy_have_one_score() {
    renamings(4);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_hundred_renamings_of_a_policy_have_one_score() {
    renamings(100);
}

fn renamings(count: u32) {
    let (services, spec) = (Services::default(), spec(SPEC));
    let evaluator = evaluator(&services, &spec);
    let scores: Vec<f64> = (0..count)
        .map(|number| {
            let mut renamed = found("fifo", &[]);
            renamed.policy.object = renamed_object(number);
            let evaluation = evaluator.evaluate("renamed", &renamed, false);
            evaluation
                .unwrap_or_else(|error| panic!("{error:#}"))
                .combined()
        })
        .collect();
    assert!(scores.iter().all(|it| *it == scores[0]), "{scores:?}");
}

/// The source of a shipped policy.
fn source(name: &str) -> String {
    let path = Path::new(POLICIES).join(format!("{name}.bpf.c"));
    std::fs::read_to_string(path).expect("a source")
}

fn compiled(name: &str, text: &str) -> Arc<[u8]> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("{name}.bpf.c"));
    std::fs::write(&path, text).expect("writable");
    let include = Path::new(POLICIES).join("include");
    let object = bpf_build::compile(&path, &[&include]).unwrap_or_else(|error| panic!("{error}"));
    object.into()
}

/// A shipped policy without what it declares.
fn silent_object(name: &str) -> Arc<[u8]> {
    let text = source(name);
    let lines = text.lines().filter(|it| !it.starts_with("POLICY_RIGHT("));
    let silent = lines.collect::<Vec<_>>().join("\n") + "\n";
    assert!(silent.len() < text.len(), "{name} declares nothing");
    compiled(name, &silent)
}

/// `fifo` under another name, with comments of its own.
fn renamed_object(number: u32) -> Arc<[u8]> {
    let text = source("fifo").replace("fifo", &format!("other{number}"));
    let text = format!("/* {} */\n{text}", "x".repeat(number as usize * 7 + 1));
    compiled(&format!("other{number}"), &text)
}
