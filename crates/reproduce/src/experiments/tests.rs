//! Experiments of a few lines, with results made by hand.

use std::collections::BTreeMap;

use model::{MachineSpec, PolicySpec};
use workload::Workload;

use super::*;
use crate::experiments::cells::{CellId, RunSample};
use crate::experiments::error::Result;
use crate::experiments::files::Files;

const STATEMENTS: &str = "[C1]\ndocument = \"002\"\ntext = \"it is so\"\n\
                          [D1]\ndocument = \"003\"\ntext = \"another\"\n";
const LOAD: &str = "[workload]\nname = \"l\"\nstop = \"duration:1s\"\nscale = { hogs = 1 }\n\
                    [task.hog]\ncount = \"hogs\"\ndo = \"run(inf)\"\n";
const HEAD: &str = "[experiment]\ndocument = \"002\"\ntitle = \"t\"\nsource = \"Table I\"\n\
                    baseline = \"a\"\nseeds = 2\n\
                    [arm.a]\npolicy = \"fifo\"\n[arm.b]\npolicy = \"fifo:slice_ns=1000000\"\n\
                    [runs.r]\nworkload = \"l.toml\"\nscale = { hogs = [1, 2, 4] }\n\
                    [metric.m]\nvalue = \"machine.switches\"\nunit = \"s\"\n\
                    [across.most]\nmetric = \"m\"\nx = \"hogs\"\ntake = \"max\"\n";

/// Has every policy, and no workload.
struct Anything;

impl Catalog for Anything {
    fn policy(&self, words: &str) -> Result<PolicySpec, Cause> {
        Ok(PolicySpec::of_object(words, [].into()))
    }

    fn workload(&self, name: &str, _: &[(String, i64)]) -> Result<Workload, Cause> {
        Err(format!("no workload is called `{name}`").into())
    }

    fn check(&self, machine: &MachineSpec) -> Result<(), Cause> {
        match machine.cpus {
            0 => Err("no CPUs".into()),
            _ => Ok(()),
        }
    }
}

fn files(experiment: &str, expected: &str) -> Files {
    Files::of_texts(&[
        ("statements.toml", STATEMENTS),
        ("x/experiment.toml", experiment),
        ("x/expected.csv", expected),
        ("x/l.toml", LOAD),
    ])
}

fn read(more: &str, expected: &str) -> Result<Experiment> {
    let rows = format!("{}\n{expected}", expected::HEADER);
    experiment::read(&files(&format!("{HEAD}{more}"), &rows), "x", &Anything)
}

/// An experiment with a test of this text, and cells whose metric `m` is 100 times the hogs,
/// less a tenth under `b`.
fn judged(test: &str, expected: &str) -> Result<Vec<(String, ClaimFinding)>> {
    let more = format!("[[statement]]\nid = \"C1\"\n[[statement.test]]\n{test}");
    let experiments = [read(&more, expected)?];
    let mut results = ExperimentResults::default();
    for arm in 0..2 {
        for (point, hogs) in [1.0, 2.0, 4.0].into_iter().enumerate() {
            let value = 100.0 * hogs * (1.0 - 0.1 * arm as f64);
            let sample = RunSample {
                numbers: BTreeMap::from([("machine.switches".to_owned(), value)]),
                ..RunSample::default()
            };
            let cell = CellId { set: 0, arm, point };
            results.cells.insert(cell, vec![sample.clone(), sample]);
        }
    }
    let rules = Rules::default();
    let judged = judge_all(&experiments, &[results], "sim", &rules);
    let parts = judged.into_iter().flat_map(|it| it.parts);
    Ok(parts.collect())
}

fn verdicts(test: &str, expected: &str) -> Vec<ClaimVerdict> {
    let parts = judged(test, expected).unwrap();
    parts
        .into_iter()
        .map(|(_, finding)| finding.verdict)
        .collect()
}

#[test]
fn a_test_without_x_is_a_question_for_each_point() {
    let test = "kind = \"ratio\"\nruns = \"r\"\nmetric = \"m\"\narm = \"b\"\nbase = \"a\"\n";
    let below = format!("{test}side = \"below\"\n");
    assert_eq!(verdicts(&below, ""), [ClaimVerdict::Reproduced; 3]);
    let names = judged(&below, "").unwrap();
    assert_eq!(names[1].0, "C1 hogs 2");
    let chosen = format!("{below}at = {{ hogs = [1, 4] }}\n");
    assert_eq!(verdicts(&chosen, ""), [ClaimVerdict::Reproduced; 2]);
    // The published ratio is that of the table, at each point.
    let table = "T,r,hogs=1,a,m,10,\nT,r,hogs=1,b,m,9,\nT,r,hogs=2,a,m,10,\nT,r,hogs=2,b,m,5,\n\
                 T,r,hogs=4,a,m,10,\nT,r,hogs=4,b,m,20,\n";
    let want = [
        ClaimVerdict::Reproduced,
        ClaimVerdict::SameDirection,
        ClaimVerdict::NotReproduced,
    ];
    assert_eq!(verdicts(test, table), want);
}

/// B8 was "not reproduced" alone and "undecided" among all others.
#[test]
fn a_statement_is_judged_as_if_it_were_alone() {
    let test = "kind = \"ratio\"\nruns = \"r\"\nmetric = \"m\"\narm = \"b\"\nbase = \"a\"\n\
                at = { hogs = 1 }\nside = \"above\"\n";
    let more = format!("[[statement]]\nid = \"C1\"\n[[statement.test]]\n{test}");
    let one = || read(&more, "").unwrap();
    // 6 % lower, with a spread that leaves p near 0.01.
    let results = |shift: f64| {
        let mut results = ExperimentResults::default();
        for arm in 0..2 {
            let sample = |run: u32| {
                let spread = f64::from(run * 7 % 20) - 9.5;
                let value = 1000.0 + 14.0 * spread - shift * f64::from(arm);
                RunSample {
                    numbers: BTreeMap::from([("machine.switches".to_owned(), value)]),
                    ..RunSample::default()
                }
            };
            let id = CellId {
                set: 0,
                arm: arm as usize,
                point: 0,
            };
            results.cells.insert(id, (0..20).map(sample).collect());
        }
        results
    };
    let rules = Rules::default();
    let alone = judge_all(&[one()], &[results(60.0)], "sim", &rules)[0]
        .parts
        .clone();
    assert_eq!(alone[0].1.verdict, ClaimVerdict::NotReproduced, "{alone:?}");
    let experiments: Vec<Experiment> = (0..52).map(|_| one()).collect();
    let all: Vec<ExperimentResults> = [60.0].into_iter().chain([0.0; 51]).map(results).collect();
    let judged = judge_all(&experiments, &all, "sim", &rules);
    assert_eq!(judged[0].parts, alone);
    assert_eq!(judged[0].verdict, ClaimVerdict::NotReproduced);
    assert_eq!(judged[1].verdict, ClaimVerdict::Undecided);
    assert!((false_refutations(&judged, &rules) - 2.6).abs() < 1e-9);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_kind_of_test_is_a_question() {
    let m = "runs = \"r\"\nmetric = \"m\"\n";
    for (test, want) in [
        (
            "kind = \"equal\"\narm = \"b\"\nbase = \"a\"\nat = { hogs = 1 }",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"equal\"\narm = \"b\"\nbase = \"a\"\nmargin = 0.2\nat = { hogs = 1 }",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"within\"\narm = \"a\"\nlow = 90\nhigh = 110\nat = { hogs = 1 }",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"within\"\narm = \"a\"\npublished = 120\nmargin = 0.1\nat = { hogs = 1 }",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"within\"\narm = \"a\"\npublished = 300\nmargin = 0.1\nat = { hogs = 4 }",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"within\"\narm = \"a\"\nlow = 3.9\nhigh = 4.1\nat = { hogs = 4 }\n\
             base = { at = { hogs = 1 } }",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"every\"\narm = \"b\"\nlow = 90\nhigh = 360",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"every\"\narm = \"b\"\nhigh = 359",
            ClaimVerdict::NotReproduced,
        ),
        ("kind = \"flat\"\narm = \"a\"", ClaimVerdict::NotReproduced),
        (
            "kind = \"slope\"\narm = \"a\"\nx = \"hogs\"\nlow = 99\nhigh = 101",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"slope\"\narm = \"a\"\nx = \"hogs\"\nlow = 0.68\nhigh = 0.7\n\
             log_x = true\nlog_y = true",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"rises\"\narm = \"a\"\nx = \"hogs\"",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"falls\"\narm = \"a\"\nx = \"hogs\"",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"order\"\narms = [\"b\", \"a\"]\nat = { hogs = 1 }",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"order\"\narms = [\"a\", \"b\"]\nat = { hogs = 1 }",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"lowest\"\narm = \"b\"\nat = { hogs = 1 }",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"highest\"\narm = \"b\"\nat = { hogs = 1 }",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"lowest-at\"\narm = \"a\"\nx = \"hogs\"\namong = [1, 2]",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"highest-at\"\narm = \"a\"\nx = \"hogs\"\namong = [1, 2]",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"crosses\"\narm = \"b\"\nbase = \"a\"\nx = \"hogs\"\namong = [1]",
            ClaimVerdict::NotReproduced,
        ),
        (
            "kind = \"agree\"\narm = \"a\"\nat = { hogs = 4 }\nbase = { metric = \"most\" }",
            ClaimVerdict::Reproduced,
        ),
        (
            "kind = \"rises\"\narm = \"a\"\nx = \"hogs\"\ncannot_fail = \"so made\"",
            ClaimVerdict::CannotFail,
        ),
        (
            "kind = \"untestable\"\nwhy = \"no disk\"",
            ClaimVerdict::NotTestable,
        ),
        (
            "kind = \"equal\"\narm = \"b\"\nbase = \"a\"\nmachines = [\"vm\"]",
            ClaimVerdict::NotTestable,
        ),
    ] {
        let text = if test.contains("untestable") {
            test.to_owned()
        } else {
            format!("{m}{test}")
        };
        assert_eq!(verdicts(&text, ""), [want], "{test}");
    }
}

/// Two rates of nothing agree whatever is true of them.
#[test]
fn a_pair_with_nothing_to_compare_is_undecided() {
    let test = |least: u32| {
        format!(
            "kind = \"within\"\nruns = \"r\"\nmetric = \"m\"\narm = \"b\"\nbase = \"a\"\n\
             at = {{ hogs = 1 }}\nlow = 0.8\nhigh = 1.2\nleast = {least}\n"
        )
    };
    // The means are 90 and 100.
    assert_eq!(verdicts(&test(100), ""), [ClaimVerdict::Reproduced]);
    assert_eq!(verdicts(&test(101), ""), [ClaimVerdict::Undecided]);
    let words = &judged(&test(101), "").unwrap()[0].1.words;
    assert!(words.starts_with("nothing to compare"), "{words}");
}

/// What is said of runs that have brought nothing, or that `--quick` leaves out.
#[test]
fn a_test_of_runs_that_lack_something_is_undecided_and_says_why() {
    let more = "[runs.rare]\nworkload = \"l.toml\"\nquick = false\n\
                [probe.p]\nwho = \"hog\"\nlevels = \"changes\"\n\
                [[statement]]\nid = \"C1\"\n\
                [[statement.test]]\nkind = \"trace\"\nruns = \"r\"\nat = { hogs = 1 }\n\
                probe = \"p\"\narm = \"a\"\nwant = \"1 2\"\n\
                [[statement.test]]\nkind = \"trace\"\nruns = \"rare\"\n\
                probe = \"p\"\narm = \"a\"\nwant = \"1 2\"\n\
                [[statement.test]]\nkind = \"every\"\nruns = \"rare\"\n\
                metric = \"m\"\narm = \"a\"\nlow = 1\n";
    let experiments = [read(more, "").unwrap()];
    let said = |sample: RunSample, quick: bool| -> Vec<(ClaimVerdict, String)> {
        let mut results = ExperimentResults::default();
        let [arm, point] = [0; 2];
        let set = experiments[0].sets.iter().position(|set| set.name == "r");
        let set = set.unwrap();
        let cell = CellId { set, arm, point };
        results.cells.insert(cell, vec![sample]);
        let rules = Rules {
            quick,
            ..Rules::default()
        };
        let judged = judge_all(&experiments, &[results], "vm", &rules);
        let parts = judged.into_iter().flat_map(|it| it.parts);
        parts.map(|(_, it)| (it.verdict, it.words)).collect()
    };
    let failed = RunSample {
        failure: Some("no kernel 6.18".to_owned()),
        ..RunSample::default()
    };
    let all = said(failed, true);
    assert!(
        all.iter()
            .all(|(verdict, _)| *verdict == ClaimVerdict::Undecided)
    );
    assert!(all[0].1.ends_with("no kernel 6.18"), "{all:?}");
    for (_, words) in &all[1..] {
        assert_eq!(words, "--quick leaves out the runs `rare`");
    }
    let (verdict, words) = &said(RunSample::default(), false)[0];
    assert_eq!(*verdict, ClaimVerdict::Undecided);
    assert!(words.contains("probe `p`"), "{words}");
    let sequence = cells::Sequence {
        rounded: "1 2".to_owned(),
        exact: String::new(),
    };
    let traced = RunSample {
        traces: BTreeMap::from([("p".to_owned(), sequence)]),
        ..RunSample::default()
    };
    let all = said(traced, false);
    assert_eq!(all[0].0, ClaimVerdict::Reproduced, "{all:?}");
    assert!(all[1].1.ends_with("it was not run"), "{all:?}");
}

/// A trace with one entry that comes 3 ms late.
#[test]
fn times_of_a_trace_may_be_off_as_far_as_its_test_says_and_each_point_is_named() {
    let traced = |test: &str| {
        let more = format!(
            "[probe.p]\nwho = \"hog\"\nlevels = \"times\"\nunit = \"1ms\"\n\
             [[statement]]\nid = \"C1\"\n[[statement.test]]\nkind = \"trace\"\nruns = \"r\"\n\
             probe = \"p\"\narm = \"a\"\nwant = \"1:10 2:20\"\n{test}"
        );
        let experiments = [read(&more, "").unwrap()];
        let mut results = ExperimentResults::default();
        for point in 0..3 {
            let sequence = cells::Sequence {
                rounded: "1:10 2:23".to_owned(),
                exact: "1:10000000 2:23000000".to_owned(),
            };
            let sample = RunSample {
                traces: BTreeMap::from([("p".to_owned(), sequence)]),
                ..RunSample::default()
            };
            let [set, arm] = [0; 2];
            results
                .cells
                .insert(CellId { set, arm, point }, vec![sample]);
        }
        let judged = judge_all(&experiments, &[results], "sim", &Rules::default());
        let parts = judged.into_iter().flat_map(|it| it.parts);
        parts
            .map(|(name, it)| (name, it.verdict))
            .collect::<Vec<_>>()
    };
    let one = "at = { hogs = 1 }\n";
    let said = |verdict| [("C1".to_owned(), verdict)];
    assert_eq!(traced(one), said(ClaimVerdict::NotReproduced));
    let within = |span: &str| format!("{one}within = \"{span}\"\n");
    assert_eq!(traced(&within("4ms")), said(ClaimVerdict::Reproduced));
    assert_eq!(traced(&within("2ms")), said(ClaimVerdict::NotReproduced));
    let names: Vec<String> = traced("").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["C1 hogs 1", "C1 hogs 2", "C1 hogs 4"]);
}

#[test]
fn parts_of_one_name_are_numbered() {
    let test = "name = \"x\"\nkind = \"every\"\nruns = \"r\"\nmetric = \"m\"\narm = \"a\"\n\
                low = 1\n";
    let parts = judged(&format!("{test}[[statement.test]]\n{test}"), "").unwrap();
    let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["C1 x", "C1 x (2)"]);
}

#[test]
fn another_metric_than_the_tests_is_named_beside_its_cell() {
    let test = "kind = \"ratio\"\nruns = \"r\"\nmetric = \"m\"\narm = \"b\"\n\
                at = { hogs = 1 }\nside = \"below\"\n";
    let of = |base: &str| {
        let parts = judged(&format!("{test}base = {base}\n"), "").unwrap();
        parts[0].1.parts[0].name.clone()
    };
    assert!(!of("\"a\"").contains(" of "), "{}", of("\"a\""));
    let other = of("{ arm = \"a\", metric = \"most\" }");
    assert!(other.contains("most of "), "{other}");
}

#[test]
fn a_metric_over_several_points_is_one_number() {
    let test = "kind = \"within\"\nruns = \"r\"\nmetric = \"most\"\narm = \"b\"\n\
                low = 359\nhigh = 361\n";
    assert_eq!(verdicts(test, ""), [ClaimVerdict::Reproduced]);
}

#[test]
fn a_ratio_of_two_points_is_made_in_every_run() {
    let across = "[across.growth]\nmetric = \"m\"\nx = \"hogs\"\ntake = \"ratio\"\n\
                  from = 1\nto = 4\n";
    let experiment = read(across, "").unwrap();
    let metric = experiment.metric("growth").unwrap();
    let mut results = ExperimentResults::default();
    // The runs of a seed belong together: 30 / 10 and 28 / 8.
    for (point, values) in [[10.0, 8.0], [20.0, 20.0], [30.0, 28.0]]
        .into_iter()
        .enumerate()
    {
        let samples = values.map(|value| RunSample {
            numbers: BTreeMap::from([("machine.switches".to_owned(), value)]),
            ..RunSample::default()
        });
        let cell = CellId {
            set: 0,
            arm: 0,
            point,
        };
        results.cells.insert(cell, samples.to_vec());
    }
    let cell = CellId {
        set: 0,
        arm: 0,
        point: 1,
    };
    let found = results.values(&experiment, cell, metric);
    assert_eq!(found, Ok(vec![3.0, 3.5]));
}

#[test]
#[expect(clippy::too_many_lines, reason = "tables of cases")]
fn what_is_wrong_is_said_with_its_place() {
    let wrong = |more: &str, expected: &str| {
        let error = read(more, expected).err();
        error.map_or_else(String::new, |error| format!("{error:#}"))
    };
    for (more, want) in [
        (
            "[runs.q]\nworkload = \"no.toml\"",
            "e/x/experiment.toml:22:12: there is no x/no.toml",
        ),
        (
            "[runs.q]\nworkload = \"l.toml\"\narms = [\"c\"]",
            "e/x/experiment.toml:23:9: there is no arm `c`",
        ),
        (
            "[runs.q]\nworkload = \"l.toml\"\nduration = \"2s\"",
            "e/x/experiment.toml:23:12: the workload `l` ends after 1.00 s by itself",
        ),
        (
            "[runs.q]\nworkload = \"l.toml\"\nscale = { hog = 1 }",
            "e/x/l.toml",
        ),
        (
            "[runs.q]\nworkload = \"l.toml\"\nscale = { hogs = \"m.h\" }",
            "e/x/experiment.toml:23:11: e/calibration.toml has no `m.h`",
        ),
        (
            "[metric.n]\nvalue = \"1 +\"",
            "e/x/experiment.toml:22:9: expected a number",
        ),
        (
            "[across.n]\nmetric = \"q\"\nx = \"hogs\"\ntake = \"max\"",
            "e/x/experiment.toml:22:10: there is no metric `q`",
        ),
        (
            "[across.n]\nmetric = \"m\"\nx = \"hogs\"\ntake = \"mix\"",
            "e/x/experiment.toml:24:8: expected \"max\"",
        ),
        (
            "[probe.p]\nwho = \"hog\"",
            "e/x/experiment.toml:21:8: a probe has one of",
        ),
        (
            "[probe.p]\nwho = \"hog\"\nlevels = \"times\"",
            "e/x/experiment.toml:23:10: this needs a `unit`",
        ),
        (
            "[machine]\nprofile = \"vax\"",
            "e/x/experiment.toml:22:11: there is no profile `vax`",
        ),
        (
            "[[statement]]\nid = \"C9\"",
            "e/x/experiment.toml:22:6: there is no statement `C9`",
        ),
        (
            "[[statement]]\nid = \"D1\"",
            "e/x/experiment.toml:22:6: this is a statement of document 003",
        ),
        (
            "[[statement]]\nid = \"C1\"",
            "e/x/experiment.toml:22:6: nothing tests this statement",
        ),
        ("[colour]", "e/x/experiment.toml:21:2: unknown field"),
    ] {
        let said = wrong(more, "");
        assert!(said.starts_with(want), "{more}: {said}");
    }
    for (rows, want) in [
        ("T,q,,a,m,1,", "e/x/expected.csv:2: there are no runs `q`"),
        ("T,r,,c,m,1,", "e/x/expected.csv:2: there is no arm `c`"),
        ("T,r,,a,n,1,", "e/x/expected.csv:2: there is no metric `n`"),
        (
            "T,r,hogs=3,a,m,1,",
            "e/x/expected.csv:2: no run of `r` is at that point",
        ),
    ] {
        let said = wrong("", rows);
        assert!(said.starts_with(want), "{rows}: {said}");
    }
    let m = "runs = \"r\"\nmetric = \"m\"\narm = \"b\"\n";
    for (test, want) in [
        (
            "kind = \"ratios\"",
            "e/x/experiment.toml:24:8: unknown variant `ratios`, expected one of `ratio`",
        ),
        (
            "kind = \"ratio\"",
            "e/x/experiment.toml:24:8: a test of this kind needs `base`",
        ),
        (
            "kind = \"ratio\"\nbase = \"a\"",
            "e/x/experiment.toml:24:8: no ratio is published",
        ),
        (
            "kind = \"ratio\"\nbase = \"c\"",
            "e/x/experiment.toml:25:8: there is no arm `c`",
        ),
        ("kind = \"within\"", "e/x/experiment.toml:24:8: needs `low`"),
        (
            "kind = \"within\"\nlow = 1\nleast = 1",
            "e/x/experiment.toml:24:8: `least` is for `within` with a `base`",
        ),
        (
            "kind = \"rises\"\nx = \"hog\"",
            "e/x/experiment.toml:25:5: there is no parameter `hog`",
        ),
        (
            "kind = \"lowest-at\"\nx = \"hogs\"\namong = [3]",
            "e/x/experiment.toml:24:8: no run has hogs 3",
        ),
        (
            "kind = \"flat\"\nat = { hogs = 3 }",
            "e/x/experiment.toml:24:8: no run is at the points",
        ),
        (
            "kind = \"equal\"\nbase = { at = { hogs = [1, 2] } }",
            "e/x/experiment.toml:24:8: several runs",
        ),
    ] {
        let error = judged(&format!("{test}\n{m}"), "").err();
        let said = error.map_or_else(String::new, |error| format!("{error:#}"));
        assert!(said.starts_with(want), "{test}: {said}");
    }
}
