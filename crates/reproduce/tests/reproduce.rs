//! `reproduce` from files to pages: a small experiment of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runslice_tests::command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_runslice-reproduce");

/// A folder of one test's own, with a small experiment in it.
struct Folder(PathBuf);

const STATEMENTS: &str = "
[C1]
document = \"002\"
text     = \"hogs get longer turns from a longer slice\"

[C2]
document = \"002\"
text     = \"a kernel says so, too\"
";

const EXPERIMENT: &str = "
[experiment]
document = \"002\"
title    = \"Turns of hogs\"
source   = \"Table I\"
baseline = \"short\"
seeds    = 6

[machine]
cpus = 1
hz   = 1000

[arm.short]
policy = \"fifo:slice_ns=5000000\"

[arm.long]
policy = \"fifo:slice_ns=20000000\"

[runs.hogs]
workload = \"hogs.toml\"
scale    = { hogs = [2, 3] }

[metric.turn]
value = \"hog.runslice_ns_mean / 1e6\"
unit  = \"ms\"

[[statement]]
id    = \"C1\"
cause = \"never printed: it is reproduced\"

[[statement.test]]
kind   = \"ratio\"
runs   = \"hogs\"
metric = \"turn\"
arm    = \"long\"
base   = \"short\"

[[statement]]
id = \"C2\"

[[statement.test]]
kind     = \"ratio\"
runs     = \"hogs\"
metric   = \"turn\"
arm      = \"long\"
base     = \"short\"
machines = [\"vm\"]

[[figure]]
title  = \"Turns by hogs\"
place  = \"Table I\"
runs   = \"hogs\"
metric = \"turn\"
x      = \"hogs\"
";

const EXPECTED: &str = "place,runs,at,arm,metric,value,note
Table I,hogs,,short,turn,10,
Table I,hogs,,long,turn,40,
Figure 9,,,,a curve,picture,
";

const LOAD: &str = "
[workload]
name  = \"hogs\"
stop  = \"duration:2s\"
scale = { hogs = 2 }

[task.hog]
count = \"hogs\"
start = \"uniform(0ns, 100ms)\"
do    = \"run(inf)\"
";

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reproduce-{name}"));
        let _ = fs::remove_dir_all(&path);
        let it = Self(path);
        it.write("e/statements.toml", STATEMENTS);
        it.write("e/002-turns/experiment.toml", EXPERIMENT);
        it.write("e/002-turns/expected.csv", EXPECTED);
        it.write("e/002-turns/hogs.toml", LOAD);
        it
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    fn read(&self, name: &str) -> String {
        let path = self.0.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What a call that ends with `status` prints, and says on standard error.
    fn said(&self, arguments: &str, status: i32) -> (String, String) {
        let given = arguments.split_whitespace();
        let words: Vec<&str> = given.chain(["--experiments", "e"]).collect();
        command::said(PROGRAM, &self.0, &words, status)
    }
}

#[test]
fn the_program_says_its_version_and_how_it_is_called() {
    let here = Path::new(".");
    let (out, _) = command::said(PROGRAM, here, &["--version"], 0);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(out, format!("runslice-reproduce {version}\n"));
    let (out, _) = command::said(PROGRAM, here, &["--help"], 0);
    assert!(out.contains("Usage: runslice reproduce [OPTIONS]"), "{out}");
}

#[test]
fn a_document_is_named_by_author_title_and_year() {
    let folder = Folder::new("documents");
    let text = "[002]\nauthor = \"Noun\"\ntitle = \"On turns\"\nyear = 1999\n";
    fs::write(folder.0.join("e/documents.toml"), text).expect("writable");
    let (out, _) = folder.said("", 0);
    assert!(
        out.starts_with("Document 002: Noun, \"On turns\", 1999\n002-turns "),
        "{out}"
    );
    let (out, _) = folder.said("--all --quick", 0);
    assert!(
        out.starts_with("Noun, \"On turns\", 1999: Table I\n002-turns: Turns of hogs\n"),
        "{out}"
    );
    let (by_author, _) = folder.said("noun --quick", 0);
    assert_eq!(out, by_author);
    let (by_author, _) = folder.said("--document Noun --quick", 0);
    assert_eq!(out, by_author);
    folder.said("--all --quick -o page.html", 0);
    assert!(
        folder
            .read("page.html")
            .contains("Noun, &quot;On turns&quot;, 1999.")
    );
    fs::write(folder.0.join("e/documents.toml"), "[002]\nyear = 1999\n").expect("writable");
    folder.said("", 1);
}

/// The document has one number for both points: its table has a column for each.
#[test]
fn a_table_of_a_document_is_shown_as_it_has_it() {
    let folder = Folder::new("table");
    let (out, _) = folder.said("--table i", 0);
    let lines: Vec<String> = out
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let begin = [
        "Document 002: Table I",
        "002-turns: Turns of hogs",
        "",
        "Table I: turn (ms)",
        "hogs 2 hogs 3",
        "short published 10 10",
    ];
    assert_eq!(lines[..begin.len()], begin, "{out}");
    for (line, want) in [
        (8, "long published 40 40"),
        (11, "long / short published 4 4"),
        (12, "here 3.9"),
        (13, "95 % from 3.8"),
    ] {
        assert!(lines[line].starts_with(want), "`{want}`: {out}");
    }
    assert!(lines.iter().all(|line| !line.contains("C1")), "{out}");
    let (_, said) = folder.said("--table VII", 2);
    let want = "no experiment has a table `VII`";
    assert!(
        said.contains(want) && said.contains("There are: I"),
        "{said}"
    );
}

#[test]
fn statements_of_ours_are_not_counted_and_one_that_tells_nothing_is_not_reproduced() {
    let folder = Folder::new("ours");
    let ours = STATEMENTS.replace("[C2]\n", "[C2]\nours = true\n");
    folder.write("e/statements.toml", &ours);
    let untold = EXPERIMENT.replace(
        "cause = \"never",
        "cannot_tell = \"any slice does\"\ncause = \"never",
    );
    folder.write("e/002-turns/experiment.toml", &untold);
    let (out, _) = folder.said("--all", 0);
    for line in [
        "C1: CANNOT TELL HERE",
        "cannot tell: any slice does",
        "Asked by runslice, in no document, not counted:\nC2 ",
        "1 statements, 2 tests: 0 reproduced",
    ] {
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
}

/// A slice that is no longer is noticed, and another seed changes nothing.
#[test]
fn mutants_that_make_a_statement_wrong_turn_its_verdict() {
    let folder = Folder::new("mutants");
    let wrong = "[C1]\nnear = { long = \"fifo:slice_ns=5000000\" }\nwhy = \"as short\"\n";
    folder.write("e/mutants.toml", wrong);
    let (out, _) = folder.said("002-turns --mutants", 0);
    for line in [
        "statement,test,mutant,verdict,value,outcome",
        "C1,,null,reproduced,,stays",
        "C1,,half,reproduced,,stays",
        "C1,\"as short\",near,not reproduced,,killed",
        "C1,,reversed,not reproduced,,killed",
        "C2,,whole,not testable here,,",
    ] {
        assert!(out.lines().any(|it| it == line), "no `{line}` in\n{out}");
    }
    folder.write(
        "e/mutants.toml",
        "[C1]\nnear = { none = \"fifo\" }\nwhy = \"no\"\n",
    );
    let (_, said) = folder.said("002-turns --mutants", 1);
    assert!(said.contains("002-turns has no arm `none`"), "{said}");
}

#[test]
fn experiments_are_listed_with_their_statements() {
    let folder = Folder::new("list");
    let (out, _) = folder.said("", 0);
    assert_eq!(
        out,
        "002-turns                Table I: Turns of hogs (C1 C2)\n"
    );
}

#[test]
fn a_statement_is_judged_and_a_second_call_makes_no_run_again() {
    let folder = Folder::new("judged");
    let (first, said) = folder.said("002-turns --jobs 1", 0);
    assert_eq!(said, "");
    for line in [
        "hogs, hogs 2  turn (ms)  long       40",
        "C1: REPRODUCED",
        "C2: NOT TESTABLE HERE",
        "Needs --machine vm.",
        "2 statements, 3 tests: 1 reproduced, 0 same direction, 0 undecided, 0 not reproduced, \
         1 not testable here. Each statement is judged as if alone, at 5 %: were all true, up to \
         0.05 would be refuted by chance.",
    ] {
        assert!(first.contains(line), "no `{line}` in\n{first}");
    }
    assert!(!first.contains("never printed"), "{first}");
    let (second, said) = folder.said("--document 002 --jobs 3", 0);
    assert_eq!(said, "reproduce: 24 of 24 runs were there already\n");
    assert_eq!(first, second);
    // A longer list adds the new runs only.
    let longer = EXPERIMENT.replace("[2, 3]", "[2, 3, 4]");
    folder.write("e/002-turns/experiment.toml", &longer);
    let (_, said) = folder.said("--all", 0);
    assert_eq!(said, "reproduce: 24 of 36 runs were there already\n");
}

#[test]
fn a_page_has_verdicts_numbers_and_the_figure_and_fetches_nothing() {
    let folder = Folder::new("page");
    folder.said("--all -o report.html", 0);
    let page = folder.read("report.html");
    for part in [
        "<span class=\"v reproduced\">reproduced</span>",
        "Turns by hogs",
        "<svg ",
        "default-src 'none'",
        "Figure 9: a curve: not available as numbers",
        "hogs get longer turns",
    ] {
        assert!(page.contains(part), "no `{part}`");
    }
    folder.said("--all -o again.html", 0);
    let again = folder.read("again.html");
    assert!(
        page == again.replace("again.html", "report.html"),
        "the same bytes"
    );
    folder.said("--all --format json -o all.json", 0);
    let json = folder.read("all.json");
    assert!(json.contains("\"verdict\": \"reproduced\""), "{json}");
    assert!(json.contains("\"published\": 40.0"), "{json}");
}

#[test]
fn a_quick_look_says_the_direction_at_most() {
    let folder = Folder::new("quick");
    let (out, _) = folder.said("--all --quick", 0);
    assert!(out.contains("C1: SAME DIRECTION"), "{out}");
    assert!(out.contains("A quick look at few runs"), "{out}");
}

#[test]
fn mistakes_are_told_with_their_place_before_anything_runs() {
    let folder = Folder::new("wrong");
    let wrong = EXPERIMENT.replace("x      = \"hogs\"", "x      = \"hog\"");
    folder.write("e/002-turns/experiment.toml", &wrong);
    let (_, said) = folder.said("--all", 1);
    assert!(
        said.contains("the figure \"Turns by hogs\" has no parameter `hog`"),
        "{said}"
    );
    assert!(!folder.0.join("reproduce.results").exists());
    let (_, said) = folder.said("002-turn", 2);
    assert!(said.contains("did you mean `002-turns`?"), "{said}");
    let (_, said) = folder.said("--document 009", 2);
    assert!(
        said.contains("no experiment is of a document `009`"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_written_is_refused_before_the_run() {
    let folder = Folder::new("refused");
    for (place, why) in [
        ("no/folder/x", "no such file or directory"),
        (".", "is a directory"),
    ] {
        let (_, said) = folder.said(&format!("no-such -o {place}"), 1);
        let begin = format!("runslice: cannot write {place}: {why}");
        assert!(said.to_lowercase().starts_with(&begin), "{place}: {said}");
    }
}

/// A hog that goes down its stairs, on a machine with ticks of 4 ms.
const STAIRS: &str = "
[experiment]
document = \"002\"
title    = \"Stairs\"
source   = \"Figure 2\"
seeds    = 1

[machine]
profile = \"ideal\"
hz      = 250

[arm.stairs]
policy = \"staircase5\"

[runs.hog]
workload = \"stairs.toml\"

[probe.stairs]
who      = \"hog\"
levels   = \"times\"
unit     = \"10ms\"
priority = true

[[statement]]
id = \"C1\"

[[statement.test]]
name   = \"within a tick\"
kind   = \"trace\"
runs   = \"hog\"
arm    = \"stairs\"
probe  = \"stairs\"
within = \"4ms\"
prefix = true
want   = \"120:1 121:1 122:1 123:1 124:1\"
";

/// Ticks, and a look at the hog half a millisecond behind each.
const STAIRS_LOAD: &str = "
[workload]
name = \"stairs\"
stop = \"duration:1s\"
[machine]
cpus = 1
[task.hog]
do = [\"run(inf)\"]
[task.sampler]
policy = \"fifo:1\"
start  = \"500us\"
do     = [\"loop(inf)[ timer(4ms) ]\"]
";

#[test]
fn times_of_a_sequence_may_be_off_as_far_as_its_test_says() {
    let folder = Folder::new("within");
    folder.write("e/002-turns/stairs.toml", STAIRS_LOAD);
    folder.write("e/002-turns/experiment.toml", STAIRS);
    fs::remove_file(folder.0.join("e/002-turns/expected.csv")).expect("it was written");
    let (out, _) = folder.said("--all", 0);
    // Slices of 10 ms end with a tick of 4 ms, and a task is seen at its new level at once.
    for line in [
        "C1: REPRODUCED",
        "each of 5 times within 4.00 ms; the farthest is off by 2.00 ms",
    ] {
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
    for (nearer, line) in [
        (
            STAIRS.replace("\"4ms\"", "\"1900us\""),
            "Entry 1 is 120 for 12.0 ms instead of 120:1, in units of 10.0 ms, within 1.90 ms",
        ),
        (
            STAIRS.replace("122:1", "122:2"),
            "Entry 3 is 122 for 12.0 ms instead of 122:2",
        ),
        (
            STAIRS.replace("122:1 123:1", "123:1 122:1"),
            "Entry 3 is 122 for 12.0 ms instead of 123:1",
        ),
    ] {
        folder.write("e/002-turns/experiment.toml", &nearer);
        let (out, _) = folder.said("--all", 0);
        assert!(out.contains("C1: NOT REPRODUCED"), "{out}");
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
    for (wrong, words) in [
        (
            STAIRS.replace("\"times\"", "\"changes\""),
            "the probe `stairs` writes no times",
        ),
        (
            STAIRS.replace("122:1", "122"),
            "the entry `122` of the sequence has no time",
        ),
        (
            STAIRS.replace("\"4ms\"", "\"4\""),
            "experiment.toml:33:10: expected a number with its unit",
        ),
        (
            EXPERIMENT.replace("base   = \"short\"", "base = \"short\"\nwithin = \"4ms\""),
            "`within` is for times of a trace",
        ),
    ] {
        folder.write("e/002-turns/experiment.toml", &wrong);
        let (_, said) = folder.said("--all", 1);
        assert!(said.contains(words), "no `{words}` in\n{said}");
    }
}

#[test]
fn an_ejected_policy_is_told_and_its_statement_is_undecided() {
    let folder = Folder::new("ejected");
    let starving = EXPERIMENT
        .replace("fifo:slice_ns=20000000", "mlfq")
        .replace("hogs.toml", "starve.toml")
        .replace("seeds    = 6", "seeds = 2");
    folder.write("e/002-turns/experiment.toml", &starving);
    let load = "
[workload]
name  = \"starve\"
stop  = \"duration:70s\"
scale = { hogs = 2 }
[task.short]
count = 4
do    = \"loop(inf)[ run(8ms), sleep(10ms) ]\"
[task.hog]
count = \"hogs\"
do    = \"run(inf)\"
";
    folder.write("e/002-turns/starve.toml", load);
    let (out, _) = folder.said("--all", 3);
    assert!(out.contains("the policy was ejected"), "{out}");
    assert!(out.contains("C1: UNDECIDED"), "{out}");
    // On a machine without a watchdog nobody is ejected.
    let patient = starving.replace("hz   = 1000", "hz   = 1000\nwatchdog = false");
    folder.write("e/002-turns/experiment.toml", &patient);
    folder.said("--all", 0);
}

/// What is missing for guests: it is told in a line, once, and the report says what is left open.
mod guests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const REAL: &str = "
[experiment]
document = \"002\"
title    = \"Turns of hogs\"
source   = \"Table I\"
seeds    = 2

[guest]
GUEST

[arm.short]
policy = \"fifo\"

[arm.own]
policy = \"default\"

[runs.hogs]
command = [\"runslice\", \"load\", \"levels\", \"--task\", \"a: run\", \"--format\", \"json\"]

[probe.levels]
who    = \"a\"
levels = \"changes\"

[metric.share]
value = \"a_share\"

[[statement]]
id = \"C1\"

[[statement.test]]
kind   = \"every\"
runs   = \"hogs\"
metric = \"share\"
arm    = \"short\"
low    = 100

[[statement]]
id = \"C2\"

[[statement.test]]
kind  = \"trace\"
runs  = \"hogs\"
probe = \"levels\"
arm   = \"short\"
want  = \"0\"
";

    /// What a call says whose guests ask for `guest`. `apt` is a script that stands for apt-get.
    fn said(name: &str, guest: &str, apt: &str) -> (Folder, String, String) {
        let folder = Folder::new(name);
        folder.write("e/002-turns/vm.toml", &REAL.replace("GUEST", guest));
        let bin = program(&folder, "apt-get", apt);
        let others = std::env::var("PATH").expect("there is a PATH");
        let (out, err) = on_a_path(&folder, &format!("{}:{others}", bin.display()));
        (folder, out, err)
    }

    /// Writes a script into the folder's own `bin`, whose path it gives.
    fn program(folder: &Folder, name: &str, script: &str) -> PathBuf {
        let bin = folder.0.join("bin");
        folder.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}"));
        let ours = fs::Permissions::from_mode(0o755);
        fs::set_permissions(bin.join(name), ours).expect("it is ours");
        bin
    }

    /// The report of a call that can run nothing where the PATH is `path`, and what it says on
    /// standard error.
    fn on_a_path(folder: &Folder, path: &str) -> (String, String) {
        let output = Command::new(PROGRAM)
            .args("--all --machine vm --quick --experiments e".split(' '))
            .env("XDG_CACHE_HOME", folder.0.join("cache"))
            .env("PATH", path)
            .current_dir(&folder.0)
            .stdin(Stdio::null())
            .output()
            .expect("runslice starts");
        let [out, err] = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert_eq!(output.status.code(), Some(4), "{out}{err}");
        (out, err)
    }

    /// Both statements are undecided for this reason, which was told once for both arms.
    fn assert_told(out: &str, err: &str, why: &str) {
        let sentence = format!("{}.", why.trim_end_matches('.'));
        assert_eq!(err.matches(why).count(), 1, "{err}");
        assert!(err.contains("left out for the same reason"), "{err}");
        assert!(err.contains("2 of 2 guests brought no results"), "{err}");
        for part in ["C1: UNDECIDED", "C2: UNDECIDED", "0 not reproduced"] {
            assert!(out.contains(part), "no `{part}` in\n{out}");
        }
        let open = out.lines().filter(|line| line.starts_with("  undecided"));
        assert_eq!(
            open.filter(|line| line.ends_with(&sentence[1..])).count(),
            2,
            "{out}"
        );
    }

    #[test]
    fn no_kernel() {
        let (_folder, out, err) = said("kernel", "kernel = \"./no/vmlinuz\"", "exit 1");
        assert_told(
            &out,
            &err,
            "kernel ./no/vmlinuz: ./no/vmlinuz: No such file or directory (os error 2)",
        );
        assert_eq!(
            err.matches("No such file").count(),
            1,
            "the cause, once: {err}"
        );
    }

    #[test]
    fn no_network() {
        let apt = "echo \"E: Failed to fetch x  Could not connect to mirror\" >&2\n\
                   echo \"W: a warning\" >&2\n\
                   echo asked >> \"$XDG_CACHE_HOME/../asked\"\nexit 100\n";
        let (folder, out, err) = said("network", "packages = [\"webserver\"]", apt);
        let why = "no packages webserver: apt-get failed: E: Failed to fetch x  Could not connect \
                   to mirror";
        assert_told(&out, &err, why);
        // A mirror that does not answer takes minutes to say so.
        assert_eq!(folder.read("asked"), "asked\n");
    }

    #[test]
    fn no_room_in_the_cache() {
        let apt = "case \"$*\" in\n\
                   *--print-uris*) echo \"'http://m/x.deb' webserver_1_all.deb 9 x\" ;;\n\
                   *) echo half > webserver_1_all.deb\n\
                   echo \"E: write - write (28: No space left on device)\" >&2\n\
                   echo \"E: Failed to fetch some archives\" >&2; exit 100 ;;\nesac\n";
        let (folder, out, err) = said("room", "packages = [\"webserver\"]", apt);
        assert_told(&out, &err, "(28: No space left on device)");
        let left = fs::read_dir(folder.0.join("cache/runslice/packages")).expect("was made");
        assert_eq!(left.count(), 0, "half a download is left");
    }

    #[test]
    fn no_lists_of_packages() {
        let apt = "echo \"E: Unable to locate package webserver\" >&2\nexit 100\n";
        let (_folder, out, err) = said("lists", "packages = [\"webserver\"]", apt);
        assert_told(&out, &err, "perhaps `apt-get update` was never run here");
    }

    const ON_A_KERNEL: &str = "
[experiment]
document = \"002\"
title    = \"Turns of hogs, really\"
source   = \"Table I\"

[arm.own]
policy = \"default\"

[runs.hogs]
command = [\"true\"]

[metric.turn]
value = \"hog_run\"

[[statement]]
id = \"ID\"

[[statement.test]]
kind   = \"flat\"
runs   = \"hogs\"
metric = \"turn\"
arm    = \"own\"
margin = 0.1
";

    #[test]
    fn without_an_emulator_every_experiment_says_so_in_a_line_and_the_report_is_written() {
        let folder = Folder::new("no-qemu");
        folder.write("e/002-turns/vm.toml", &ON_A_KERNEL.replace("ID", "C1"));
        folder.write("e/002-other/vm.toml", &ON_A_KERNEL.replace("ID", "C2"));
        let bin = folder.0.join("bin").display().to_string();
        // The first that it is for says it; the other was left out for the same reason.
        let lacks = |what: &str, package: &str, err: &str| {
            let line = format!("{what} is not there; install the package {package}\n");
            assert_eq!(err.matches(&line).count(), 1, "{err}");
            assert!(err.contains("left out for the same reason"), "{err}");
        };
        let (out, err) = on_a_path(&folder, &bin);
        lacks("qemu-system-x86_64", "qemu-system-x86", &err);
        assert!(
            out.contains("C1: UNDECIDED") && out.contains("C2: UNDECIDED"),
            "{out}"
        );
        assert!(out.contains("install the package qemu-system-x86"), "{out}");
        // Nothing of it was kept: with an emulator, but nothing to boot into, the next is told.
        program(&folder, "qemu-system-x86_64", "");
        let (_, err) = on_a_path(&folder, &bin);
        lacks("busybox", "busybox-static", &err);
    }
}
