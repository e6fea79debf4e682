//! `runslice explain`: from a policy, a file of events or a dump to an answer and a status.

use std::fs;
use std::path::PathBuf;

use runslice_tests::command;

/// A folder of one test's own, with a load in it: a real-time task takes the only CPU for ever.
struct Folder(PathBuf);

const LOAD: &str = "[workload]\nname = \"load\"\nstop = \"duration:4s\"\n[machine]\ncpus = 1\n\
    [task.shell]\ndo = \"run(inf)\"\n\
    [task.rt]\npolicy = \"fifo:50\"\nstart = \"100ms\"\ndo = \"run(inf)\"\n";

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("explain-{name}");
        let path = command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &name);
        fs::write(path.join("load.toml"), LOAD).expect("writable");
        Self(path)
    }

    /// What a command that ends with `status` prints, errors included.
    fn said(&self, arguments: &str, status: i32) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (out, err) = command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status);
        out + &err
    }
}

#[test]
fn a_held_cpu_is_explained_from_the_run_and_from_its_file_alike() {
    let folder = Folder::new("held");
    let run = folder.said("explain fifo -w load.toml", 0);
    assert!(run.starts_with("outranked: "), "{run}");
    assert!(
        run.contains("shell[") && run.contains("CPU 0 has rt since 0.1"),
        "{run}"
    );
    assert!(
        run.ends_with("\nAgain:\n  runslice explain fifo -w load.toml\n"),
        "{run}"
    );
    for line in run.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    folder.said("sim fifo -w load.toml --events e.jsonl --decisions", 0);
    let file = folder.said("explain --events e.jsonl", 0);
    assert_eq!(
        run.split("\nAgain:").next().map(str::trim_end),
        Some(file.trim_end())
    );
    let json = folder.said("explain --events e.jsonl --json", 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["finding"]["fault"], "outranked");
    assert_eq!(json["finding"]["victim"]["name"], "shell");
    assert_eq!(json["finding"]["is_fault"], false, "no policy could help");
}

/// Who promises no share breaks none; who says `--right` asks for one.
#[test]
fn a_share_gives_a_status_only_if_somebody_promises_or_asks_for_it() {
    let folder = Folder::new("rights");
    let load = "[workload]\nname = \"two\"\nstop = \"duration:5s\"\n[machine]\ncpus = 1\n\
        [task.a]\ncount = 2\ndo = \"run(inf)\"\n";
    fs::write(folder.0.join("two.toml"), load).expect("writable");
    let text = folder.said("explain fcfs -w two.toml", 0);
    assert!(
        text.contains("share, no fault: the policy declares no right"),
        "{text}"
    );
    let text = folder.said("explain fcfs -w two.toml --right weight", 3);
    assert!(text.contains("share, by the right `weight`"), "{text}");
    for right in ["rank", "deadline", "none"] {
        let text = folder.said(&format!("explain fcfs -w two.toml --right {right}"), 0);
        // One task waits for all of the run.
        let want = "Nothing to explain: no ejection, and no wait that is a fault.";
        assert!(text.starts_with(want), "{right}: {text}");
    }
    let text = folder.said("explain fcfs -w two.toml --right birth", 2);
    assert!(
        text.contains("write one of weight, cgroup, rank, deadline, none"),
        "{text}"
    );
    let text = folder.said("sim fcfs -w two.toml --fail-on share", 3);
    assert!(text.contains("fcfs: cpu-held"), "{text}");
    folder.said(
        "sim fifo -w two.toml --fail-on share --fail-on idle-beside-waiting",
        0,
    );
}

/// Of a policy that wastes CPU time in two ways each is told, not the first alone.
#[test]
fn what_is_large_is_told_by_sim_and_by_explain_alike() {
    let folder = Folder::new("large");
    let object = runslice_tests::policy::object("wasteful").expect("a test policy");
    fs::write(folder.0.join("wasteful.bpf.o"), &*object).expect("writable");
    let load = "[workload]\nname = \"short\"\nstop = \"duration:500ms\"\n[machine]\ncpus = 4\n\
        [task.short]\ncount = 12\ndo = \"loop(inf)[ run(800us), sleep(1200us) ]\"\n";
    fs::write(folder.0.join("short.toml"), load).expect("writable");
    let sim = folder.said("sim wasteful.bpf.o -w short.toml", 0);
    let explain = folder.said("explain wasteful.bpf.o -w short.toml", 0);
    let explain: Vec<_> = explain.split_whitespace().collect();
    let explain = explain.join(" ");
    for word in ["idle-beside-waiting", "preemptions"] {
        let told = sim.lines().find(|line| line.contains(word));
        let told = told.unwrap_or_else(|| panic!("no {word} in {sim}"));
        let (_, told) = told.split_once(&format!("{word} (")).expect("its amount");
        let wanted = format!("large: {word} ({told}");
        assert!(explain.contains(&wanted), "{wanted}: {explain}");
    }
    // Under `fifo` nothing is.
    let sim = folder.said("sim fifo -w short.toml", 0);
    let explain = folder.said("explain fifo -w short.toml", 0);
    assert!(
        !sim.contains("beside-waiting") && !explain.contains("large:"),
        "{sim}{explain}"
    );
}

/// A scheduler's own program is a policy, too: its run can be made small.
#[test]
fn a_run_of_a_program_may_be_shrunk_and_one_that_is_over_may_not() {
    let folder = Folder::new("program");
    let asked = "explain --scheduler ./none -w load.toml --shrink small.bundle";
    let text = folder.said(asked, 1);
    assert!(text.contains("./none"), "{text}");
    assert!(!text.contains("`<POLICY>`"), "{text}");
    let text = folder.said("explain --events e.jsonl --shrink small.bundle", 2);
    assert!(text.contains("--shrink"), "{text}");
}

#[test]
fn the_ending_of_the_file_says_how_an_explanation_is_written() {
    let folder = Folder::new("ending");
    folder.said("explain fifo -w load.toml -o why.json", 0);
    let json = fs::read_to_string(folder.0.join("why.json")).expect("it is written");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["finding"]["fault"], "outranked");
    let text = folder.said("explain fifo -w load.toml -o why.html", 2);
    assert!(text.contains("an explanation is text or JSON"), "{text}");
    assert!(text.contains("ends in .txt or .json"), "{text}");
    assert!(!folder.0.join("why.html").exists(), "a page that is none");
}

#[test]
fn a_run_without_a_fault_ends_well_and_its_longest_waits_are_told() {
    let folder = Folder::new("well");
    let text = folder.said("explain fifo -w desk --duration 1s", 0);
    assert!(text.starts_with("Nothing to explain"), "{text}");
    let text = folder.said("explain fifo -w desk --duration 1s --task hog --worst 2", 0);
    assert!(
        text.contains("Wait 2 of 2: ") && text.contains("hog"),
        "{text}"
    );
    let text = folder.said("explain fifo -w desk --duration 1s --task hogg", 2);
    for part in [
        "no task of the run was called `hogg`",
        "did you mean `hog`?",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_dump_is_explained_and_anything_else_refused() {
    let folder = Folder::new("dump");
    let dump = "x[1] triggered exit kind 1026:\n\
        \u{20} runnable task stall (a[7] failed to run for 30s)\n\
        \nCPU states\n\nCPU 0   : nr_run=1 flags=0x1\n          curr=b[8] class=ext_sched_class\n\
        \n  R a[7] -30000ms\n      ops_state/qseq=0/0\n      dsq_id=0x5\n";
    fs::write(folder.0.join("a.dump"), dump).expect("writable");
    let text = folder.said("explain --dump a.dump", 3);
    assert!(
        text.starts_with("stuck-in-queue: ") && text.contains("not in a dump"),
        "{text}"
    );
    let second = dump
        .replace("a[7]", "c[9]")
        .replace("curr=b[8] class=ext", "curr=d[5] class=rt");
    fs::write(folder.0.join("c.dump"), format!("{dump}\n{second}")).expect("writable");
    let text = folder.said("explain --dump c.dump", 3);
    assert!(
        text.starts_with(
            "The text has 2 dumps; each is explained.\n\nDump 1 of 2\nstuck-in-queue: "
        ) && text.contains("\nDump 2 of 2\noutranked: "),
        "{text}"
    );
    // SysRq-D shows a moment in which nobody waits for long: there is no fault.
    let (_, states) = dump.split_once("CPU states").expect("it has them");
    let calm = states.replace("-30000ms", "-30ms");
    fs::write(
        folder.0.join("d.dump"),
        format!("Debug dump triggered by SysRq-D\n{calm}"),
    )
    .expect("writable");
    let text = folder.said("explain --dump d.dump", 0);
    assert!(text.starts_with("waited: "), "{text}");
    // Of a policy that nothing has ended (SysRq-D) all is supposed.
    let calm = dump.split_once("\n\n").expect("two parts").1;
    fs::write(folder.0.join("e.dump"), format!("\n{calm}")).expect("writable");
    let text = folder.said("explain --dump e.dump", 0);
    assert!(text.starts_with("stuck-in-queue (supposed): "), "{text}");
    fs::write(folder.0.join("b.dump"), "hello\n").expect("writable");
    assert!(
        folder
            .said("explain --dump b.dump", 1)
            .contains("not a dump of sched_ext")
    );
    folder.said("explain fifo", 2);
    folder.said("explain", 2);
}

/// Its callbacks were to find what two programs of its loader leave.
#[test]
fn an_object_without_its_loaders_settings_is_said_to_be_one() {
    let folder = Folder::new("settings");
    let object = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/policies/setup.bpf.c"
    );
    let command = format!("explain {object} -w desk --duration 100ms");
    let text = folder.said(&command, 0);
    assert!(
        text.contains("runs without its loader's settings") && text.contains("configure"),
        "{text}"
    );
    let text = folder.said("explain fifo -w desk --duration 100ms", 0);
    assert!(!text.contains("settings"), "{text}");
}

#[test]
fn a_wait_of_a_given_length_gives_status_3() {
    let folder = Folder::new("fail-on");
    folder.said("sim fifo -w desk --duration 1s --fail-on wait=10s", 0);
    let text = folder.said("sim fifo -w desk --duration 1s --fail-on wait=1us", 3);
    assert!(
        text.contains("tasks waited for 1.00 us or longer: "),
        "{text}"
    );
    folder.said("sim fifo -w desk --fail-on run=1s", 2);
}
