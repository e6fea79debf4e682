//! `cases`: what is shown, what is not, what cannot run, and what a file may say.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use runslice_tests::command;
use serde_json::Value;

struct Folder(PathBuf);

impl Folder {
    /// Versions of a scheduler: 1 and 1.5 drop tasks, 2 and 3 are clean.
    fn new(name: &str) -> Self {
        let folder = command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &format!("cases-{name}"));
        let built = folder.join("built");
        fs::create_dir(&built).expect("writable");
        let bad = runslice_tests::policy::object("faulty-drops").expect("a test policy");
        let good = policies::find("fifo").expect("built in").object;
        for (version, object) in [("1", &*bad), ("1.5", &*bad), ("2", good), ("3", good)] {
            let file = built.join(format!("drops-{version}.bpf.o"));
            fs::write(file, object).expect("writable");
        }
        fs::write(folder.join("shells.toml"), SHELLS).expect("writable");
        Self(folder)
    }

    /// Writes the case `name` with these versions, and what must be seen.
    fn case(&self, name: &str, (bad, good): (&str, &str), status: &str, shows: &str) {
        let text = format!(
            "scheduler = \"drops\"\ntitle = \"tasks are lost\"\nsource = [\"a test\"]\n\
             seen = \"a stall\"\ntrigger = \"any load\"\nbad = [{bad}]\ngood = [{good}]\n\
             added = \"2026-11-28\"\nstatus = \"{status}\"\nreason = \"a test\"\n\
             [run]\nload = \"shells.toml\"\n[shows]\n{shows}\n[[near]]\nmachine = {{ cpus = 3 }}\n"
        );
        fs::write(self.0.join(format!("{name}.toml")), text).expect("writable");
    }

    /// What a command that ends with `status` prints on standard output and standard error.
    fn said(&self, arguments: &str, status: i32) -> (String, String) {
        let words = shlex::split(arguments).expect("a shell's words");
        command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status)
    }

    fn json(&self, case: &str, status: i32) -> Value {
        let judge = format!("cases {case} --programs built --seeds 4 --format json");
        let document: Value = serde_json::from_str(&self.said(&judge, status).0).expect("JSON");
        document["cases"][0].clone()
    }
}

const SHELLS: &str = "[workload]\nname = \"shells\"\nstop = \"duration:6s\"\n[machine]\ncpus = 2\n\
    [task.shell]\ncount = 6\ndo = \"loop(inf)[ run(exp(1ms)), sleep(3ms) ]\"\n";

const LOST: &str = "class = [\"lost\"]\ntask = \"shell\"";

#[test]
fn a_case_is_shown_if_bad_versions_show_it_and_good_ones_are_clean() {
    let folder = Folder::new("shown");
    folder.case("c", ("\"1\", \"1.5\"", "\"2\", \"3\""), "shown", LOST);
    let (out, err) = folder.said("cases c.toml --programs built --seeds 4", 0);
    for told in [
        "c     shown",
        "4 of 4 show it",
        "5 of 5 clean",
        "lost, task shell",
    ] {
        assert!(out.contains(told), "{told}: {out}{err}");
    }
    assert!(out.contains("faulty-drops.bpf.c:"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    let case = folder.json("c.toml", 0);
    assert_eq!(case["verdict"], "shown");
    let counts: Vec<_> = (0..4)
        .map(|at| &case["versions"][at])
        .map(|it| (it["shown"].as_u64(), it["clean"].as_u64()))
        .collect();
    let want = [
        (Some(4), Some(0)),
        (Some(4), Some(0)),
        (Some(0), Some(5)),
        (Some(0), Some(5)),
    ];
    assert_eq!(counts, want);
    let table = folder
        .said(
            "cases c.toml --programs built --seeds 4 --format markdown",
            0,
        )
        .0;
    assert!(table.contains("showed it, of 4"), "{table}");
    assert!(table.contains("| c | 1, 1.5 | 4 | lost"), "{table}");
    folder.case("d", ("\"1\"", "\"2\""), "direction", LOST);
    let judge = "cases d.toml --programs built --seeds 4 --format markdown";
    let table = folder.said(judge, 0).0;
    assert!(table.contains("| d | 1 | 4: direction | lost"), "{table}");
}

#[test]
fn what_a_bad_version_does_not_show_or_a_good_one_does_is_not_shown() {
    let folder = Folder::new("not-shown");
    // Each is what its file does not say.
    let versions = ("\"1\"", "\"2\"");
    for (name, versions, shows, told) in [
        (
            "clean",
            ("\"2\"", "\"3\""),
            LOST,
            "2 shows it in 0 of 4 runs",
        ),
        (
            "dirty",
            ("\"1\"", "\"2\", \"1.5\""),
            LOST,
            "1.5 is clean in 0 of 5 runs only",
        ),
        (
            "class",
            versions,
            "class = [\"cpu-held\"]",
            "1 shows it in 0 of 4 runs",
        ),
        (
            "task",
            versions,
            "class = [\"lost\"]\ntask = \"other\"",
            "1 shows it in 0 of 4 runs",
        ),
        (
            "message",
            versions,
            "message = \"runtime error*\"",
            "1 shows it in 0 of 4 runs",
        ),
        (
            "never",
            versions,
            "message = \"*\"\nnever = [\"lost\"]",
            "1 shows it in 0 of 4 runs",
        ),
        (
            "ratio",
            versions,
            "worse = \"cpu of shell\"\nby = 1e9",
            "1 shows it in 0 of 4 runs",
        ),
    ] {
        folder.case(name, versions, "shown", shows);
        let case = folder.json(&format!("{name}.toml"), 5);
        assert_eq!(case["verdict"], "not shown", "{name}");
        assert_eq!(case["as_its_file_says"], false, "{name}");
        let reasons = case["reasons"].to_string();
        assert!(reasons.contains(told), "{name}: {reasons}");
    }
    folder.case("open", ("\"2\"", "\"3\""), "not shown", LOST);
    assert_eq!(folder.json("open.toml", 0)["verdict"], "not shown");
    folder.case("stale", versions, "not shown", LOST);
    assert_eq!(folder.json("stale.toml", 5)["verdict"], "shown");
    // Twice is chance.
    let (_, said) = folder.said("cases open.toml --programs built --seeds 2", 2);
    assert!(said.contains("--seeds"), "{said}");
}

#[test]
fn a_ratio_is_held_against_the_median_of_the_good_versions() {
    let folder = Folder::new("ratio");
    folder.case(
        "r",
        ("\"1\"", "\"2\", \"3\""),
        "shown",
        "worse = \"cpu of shell\"\nby = 1.5",
    );
    let case = folder.json("r.toml", 0);
    let value = |version: usize| case["versions"][version]["runs"][0]["value"].as_f64();
    assert!(value(0) < value(1), "{case}");
    assert_eq!(value(1), value(2), "two names of one policy");
}

#[test]
fn a_number_that_the_load_does_not_have_is_refused() {
    let folder = Folder::new("unknown");
    let worse = "worse = \"p99 wait of shel\"\nby = 1.5";
    folder.case("u", ("\"1\"", "\"2\""), "shown", worse);
    let (out, err) = folder.said("cases u.toml --programs built --seeds 3", 2);
    assert_eq!(out, "");
    assert!(err.contains("this load has no group `shel`"), "{err}");
    assert!(err.contains("shell"), "{err}");
}

#[test]
fn a_case_whose_version_is_missing_or_bad_cannot_run() {
    let folder = Folder::new("missing");
    folder.case("m", ("\"1\"", "\"2\", \"9\""), "shown", LOST);
    let (out, err) = folder.said("cases m.toml --programs built", 4);
    assert!(
        out.contains("cannot run") && out.contains("built has no drops-9"),
        "{out}"
    );
    assert!(err.contains("1 case could not run"), "{err}");
    let table = folder.said("cases m.toml --programs built --format markdown", 4);
    assert!(!table.0.contains("| m |"), "{}", table.0);
    fs::write(folder.0.join("built/drops-9.bpf.o"), "no object").expect("writable");
    let (out, _) = folder.said("cases m.toml --programs built", 4);
    assert!(out.contains("9: "), "{out}");
    // A program that attaches nothing.
    fs::remove_file(folder.0.join("built/drops-9.bpf.o")).expect("it is there");
    fs::copy("/bin/true", folder.0.join("built/drops-9")).expect("writable");
    let (out, _) = folder.said("cases m.toml --programs built --seeds 3", 4);
    assert!(out.contains("9: "), "{out}");
    let (_, err) = folder.said("cases m.toml --programs nowhere", 2);
    assert!(err.contains("--programs: nowhere is no folder"), "{err}");
}

#[test]
fn without_programs_cases_are_listed() {
    let folder = Folder::new("list");
    let (out, _) = folder.said("cases", 0);
    assert!(out.contains("lavd-reenq"), "{out}");
    let (out, _) = folder.said("cases --format json -o cases.json", 0);
    assert_eq!(out, "");
    let text = fs::read_to_string(folder.0.join("cases.json")).expect("written");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let cases = document["cases"].as_array().expect("a list");
    assert!(cases.len() >= 8);
    for case in cases {
        assert!(case["status"].is_string(), "{case}");
        assert!(case["verdict"].is_null(), "nothing ran: {case}");
        assert!(case["as_its_file_says"].is_null(), "nothing ran: {case}");
    }
    let (_, err) = folder.said("cases lavd-renq", 2);
    assert!(err.contains("did you mean `lavd-reenq`?"), "{err}");
}

/// Writes an archive, as git does: its file has the time of its commit.
const GIT: &str = "#!/bin/sh
mkdir -p scheds
: >scheds/old
touch -t 200101010000 scheds/old
tar -c -f \"$5\" scheds
";

/// Builds a program, if there is a file that was not there when the last one was built.
const CARGO: &str = "#!/bin/sh
found=$(find \"${3%/scheds/*}\" -name old -newermt 2002-01-01)
[ -n \"$found\" ] || exit 1
mkdir -p \"$7/bin\"
: >\"$7/bin/scx_tickless\"
";

#[test]
fn each_commit_is_built_anew() {
    let folder = Folder::new("commits");
    let tools = folder.0.join("tools");
    fs::create_dir(&tools).expect("writable");
    for (name, text) in [("git", GIT), ("cargo", CARGO)] {
        let tool = tools.join(name);
        fs::write(&tool, text).expect("writable");
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let path = std::env::var("PATH").expect("set");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/cases.sh");
    let done = Command::new(script)
        .args(["programs", "tickless-spread"])
        .current_dir(&folder.0)
        .env("PATH", format!("{}:{path}", tools.display()))
        .envs([("BUILD", "only"), ("SCX", "."), ("BPF_CLANG", "sh")])
        .env("LIBCLANG_PATH", "/")
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    for version in ["git-e8720361c~1", "git-e8720361c"] {
        let program = format!("programs/scx_tickless-{version}.bpf.o");
        assert!(folder.0.join(program).is_file(), "{version}: {said}");
    }
}
