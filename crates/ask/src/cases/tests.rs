//! The form of a case's file, and the files of the project.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::services::tests::FILES;

const GOOD: &str = r#"
scheduler = "scx_x"
title = "it stalls"
source = ["https://example.org/1"]
seen = "a stall"
trigger = "load"
bad = ["1.0"]
good = ["1.1"]
added = "2026-11-28"
status = "shown"

[run]
command = "scx_x --fast 'a b'"
load = "desk"
duration = "2s"
machine = { cpus = 2, kernel = "7.2", interleave = "seed:7" }

[shows]
class = ["lost"]
task = "shell"

[[near]]
machine = { hz = 1000 }
"#;

fn read_case(text: &str) -> Result<PublicCase, String> {
    let load = |name: &str| Written::find(&Services::default(), name);
    let read = read::case(("c", text), "c.toml", &load);
    read.map_err(|error| crate::error::in_full(&error))
}

#[test]
fn a_case_has_a_run_near_loads_and_a_signature() {
    let case = read_case(GOOD).unwrap();
    assert_eq!(case.status, CaseStatus::Shown);
    let run = case.run.unwrap();
    assert_eq!(run.arguments, ["--fast", "a b"]);
    let [near] = run.near.try_into().unwrap();
    assert_eq!((near.machine.cpus, near.machine.hz), (Some(2), Some(1000)));
    assert_eq!(near.duration, run.load.duration);
    let interleave: Option<model::Interleave> = "seed:7".parse().ok();
    assert_eq!(run.load.machine.interleave, interleave);
    assert_eq!(near.machine.interleave, interleave);
    assert_eq!(run.shows.classes, [explain::why::Fault::Lost]);
}

#[test]
fn no_wait_is_not_worse_than_none() {
    let shows = CaseSignature {
        worse: Some(("p99 wait of shell".parse().unwrap(), 5.0)),
        ..CaseSignature::default()
    };
    let is_worse = |value, usual| {
        let seen = CaseSeen {
            value: Some(value),
            ..CaseSeen::default()
        };
        shows.is_in(&seen, Some(usual))
    };
    // Nanoseconds; 10 us are the least that means something.
    assert!(!is_worse(0.0, 0.0));
    assert!(!is_worse(49_000.0, 0.0));
    assert!(is_worse(50_000.0, 0.0));
    assert!(is_worse(5e6, 1e6) && !is_worse(4.9e6, 1e6));
}

/// What is written instead of what, and a part of the error.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "status = \"shown\"",
        "status = \"seen\"",
        "c.toml:10:10: `seen` is no status; write one",
    ),
    (
        "status = \"shown\"",
        "status = \"not run\"",
        "says why: it lacks `reason`",
    ),
    (
        "added = \"2026-11-28\"",
        "added = \"2026-13-28\"",
        "c.toml:9:9: `2026-13-28` is no day",
    ),
    (
        "bad = [\"1.0\"]",
        "bad = [\"../1.0\"]",
        "c.toml:7:8: `../1.0` is no name of a version",
    ),
    (
        "bad = [\"1.0\"]",
        "bad = []",
        "c.toml:12:1: a run needs `bad` and `good` versions",
    ),
    (
        "scx_x --fast",
        "scx_y --fast",
        "c.toml:13:11: `scx_y` is not the scheduler; begin with",
    ),
    ("command", "comand", "c.toml:13:1: unknown field `comand`"),
    (
        "\"desk\"",
        "\"dsk\"",
        "c.toml:14:8: no workload is called `dsk`; did you mean `desk`?",
    ),
    (
        "\"2s\"",
        "\"0s\"",
        "c.toml:15:12: in no time nothing happens",
    ),
    (
        "cpus = 2",
        "cpus = 0",
        "c.toml:16:20: found 0; expected 1 to 1024",
    ),
    (
        "\"7.2\"",
        "\"5.4\"",
        "c.toml:16:32: no such kernel; there are: 6.12",
    ),
    (
        "[\"lost\"]",
        "[\"gone\"]",
        "c.toml:19:10: `gone` is no class of faults; write one of",
    ),
    (
        "class = [\"lost\"]",
        "",
        "it asks for nothing: every run would show it; give",
    ),
    (
        "task = \"shell\"",
        "worse = \"cpu\"",
        "`worse` and `by` are given together",
    ),
    (
        "task = \"shell\"",
        "worse = \"cpu\"\nby = 0.5",
        "c.toml:21:6: found 0.5; expected a factor",
    ),
    ("hz = 1000", "hz = 10", "c.toml:23:18: a kernel ticks 100"),
    ("seed:7", "seed:x", "`x` is no number for a seed"),
];

#[test]
fn a_mistake_is_told_with_its_place_and_what_to_write() {
    for &(from, to, told) in MISTAKES {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD, "{from}");
        let error = read_case(&text).unwrap_err();
        assert!(error.contains(told), "{to}: {error}");
    }
    let front = GOOD.split("[[near]]").next().unwrap();
    let error = read_case(front).unwrap_err();
    assert!(error.contains("it lacks `[[near]]`"), "{error}");
    let front = GOOD.split("[run]").next().unwrap();
    let error = read_case(front).unwrap_err();
    assert!(error.contains("says how: it lacks `[run]`"), "{error}");
}

#[test]
fn every_case_and_load_of_the_project_is_built_in_and_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let toml = paths.filter(|it| it.extension().is_some_and(|it| it == "toml"));
        toml.map(|it| it.file_stem().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    let shipped = |all: &[(&str, &str)]| all.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&folder), shipped(shipped::CASES));
    assert_eq!(names(&folder.join("loads")), shipped(shipped::LOADS));
    let mut used = BTreeSet::new();
    let policy = crate::policy::find(&FILES, "fifo").unwrap();
    for case in all().unwrap() {
        let Some(run) = &case.run else { continue };
        for load in std::iter::once(&run.load).chain(&run.near) {
            let spec = load.spec(&FILES, (&policy, None), 1);
            let spec = spec.unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
            sim::check_machine(&spec.machine).unwrap();
            used.insert(load.written.file.clone());
        }
    }
    let of = |name: &String| format!("cases/loads/{name}.toml");
    let loads: BTreeSet<String> = names(&folder.join("loads")).iter().map(of).collect();
    assert!(loads.is_subset(&used), "{loads:?} {used:?}");
}

#[test]
fn a_case_is_named_or_a_file() {
    let error = find(&FILES, "lavd-renq").unwrap_err();
    let told = crate::error::in_full(&error);
    assert!(told.contains("did you mean `lavd-reenq`?"), "{told}");
    assert!(error.is::<UsageError>());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/lavd-reenq.toml");
    let (named, read) = (
        find(&FILES, "lavd-reenq").unwrap(),
        find(&FILES, file).unwrap(),
    );
    assert_eq!((named.name, named.bad), (read.name, read.bad));
    let loads = [named.run, read.run].map(|it| it.unwrap().load.written.text);
    assert_eq!(loads[0], loads[1]);
    let missing = find(&FILES, "no/such.toml").unwrap_err();
    assert!(missing.to_string().starts_with("cannot read no/such.toml"));
}

#[test]
fn a_case_that_sets_something_is_run_as_an_object() {
    let folder = std::env::temp_dir().join(format!("runslice-cases-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let object = policies::find("fifo").unwrap().object;
    for (name, content) in [
        ("scx_x-1.0", &b"a program"[..]),
        ("scx_x-1.0.bpf.o", object),
    ] {
        fs::write(folder.join(name), content).unwrap();
    }
    let is_program = |text: &str| {
        let case = read_case(text).unwrap();
        let run = case.run.as_ref().unwrap();
        let found = versions::open(&FILES, (&case, run), "1.0", &folder);
        found.unwrap().unwrap().policy.program.is_some()
    };
    assert!(is_program(GOOD));
    let set = GOOD.replace("[shows]", "set = [\"slice_ns=1000000\"]\n\n[shows]");
    assert!(!is_program(&set));
    fs::remove_dir_all(&folder).unwrap();
}
