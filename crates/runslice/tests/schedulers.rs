//! Published schedulers' own programs on the simulated machine: what was promised of each.
//!
//! `RUNSLICE_SCHEDULERS=FOLDER` names a folder with the programs: `bin` in the folder of
//! `scripts/schedulers.sh`, which `BUILD=only` makes without running them. A test whose program is
//! not there is counted as ignored, by its name, so this file has its own harness:
//!
//!     RUNSLICE_SCHEDULERS=FOLDER cargo test -p runslice --test schedulers [NAME...]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use serde_json::Value;

const RUNSLICE: &str = env!("CARGO_BIN_EXE_runslice");
const VARIABLE: &str = "RUNSLICE_SCHEDULERS";

/// A test: its name, the programs that it needs, and what it does with their folder.
type Test = (&'static str, &'static [&'static str], fn(&Bin));

const TESTS: &[Test] = &[
    (
        "the_counters_of_simple_are_the_machines",
        &["scx_simple"],
        counters_of_simple,
    ),
    (
        "the_counters_of_qmap_are_the_machines",
        &["scx_qmap"],
        counters_of_qmap,
    ),
    (
        "central_is_its_object_with_the_loaders_values",
        &["scx_central"],
        central_by_hand,
    ),
    (
        "nest_is_its_object_with_the_loaders_values",
        &["scx_nest"],
        nest_by_hand,
    ),
    (
        "bpfland_is_its_object_with_the_loaders_values",
        &["scx_bpfland"],
        bpfland_by_hand,
    ),
    (
        "a_setup_only_bundle_of_bpfland_has_its_events",
        &["scx_bpfland"],
        bpfland_set_up_only,
    ),
    (
        "userland_needs_its_program_and_finishes_desk",
        &["scx_userland"],
        userland,
    ),
    (
        "rustland_needs_its_program_and_finishes_desk",
        &["scx_rustland"],
        rustland,
    ),
    ("lavd_starts_on_two_nodes", &["scx_lavd"], |bin| {
        two_nodes(bin, "scx_lavd");
    }),
    ("p2dq_starts_on_two_nodes", &["scx_p2dq"], |bin| {
        two_nodes(bin, "scx_p2dq");
    }),
    (
        "the_balancer_of_rusty_moves_tasks_between_two_caches",
        &["scx_rusty"],
        balancer_of_rusty,
    ),
    (
        "a_confined_layer_of_layered_grows_under_load",
        &["scx_layered"],
        growth_of_layered,
    ),
    (
        "a_layer_of_layered_finds_tasks_by_the_names_that_they_take",
        &["scx_layered"],
        names_of_layered,
    ),
    ("an_ejection_is_printed_by_simple", &["scx_simple"], |bin| {
        ejection(bin, "scx_simple");
    }),
    (
        "an_ejection_is_printed_by_bpfland",
        &["scx_bpfland"],
        |bin| ejection(bin, "scx_bpfland"),
    ),
    ("an_ejection_is_printed_by_rusty", &["scx_rusty"], |bin| {
        ejection(bin, "scx_rusty");
    }),
    ("an_ejection_is_printed_by_lavd", &["scx_lavd"], |bin| {
        ejection(bin, "scx_lavd");
    }),
    (
        "simple_ends_well_when_it_is_interrupted",
        &["scx_simple"],
        |bin| interrupted(bin, "scx_simple"),
    ),
    (
        "central_ends_well_when_it_is_interrupted",
        &["scx_central"],
        |bin| interrupted(bin, "scx_central"),
    ),
    (
        "bpfland_ends_well_when_it_is_interrupted",
        &["scx_bpfland"],
        |bin| interrupted(bin, "scx_bpfland"),
    ),
    (
        "lavd_ends_well_when_it_is_interrupted",
        &["scx_lavd"],
        |bin| interrupted(bin, "scx_lavd"),
    ),
    (
        "rustland_ends_well_when_it_is_interrupted",
        &["scx_rustland"],
        |bin| interrupted(bin, "scx_rustland"),
    ),
    (
        "twenty_runs_of_simple_under_load_are_one_run",
        &["scx_simple"],
        |bin| twenty_runs(bin, "scx_simple"),
    ),
    // Fourteen threads.
    (
        "twenty_runs_of_rusty_under_load_are_one_run",
        &["scx_rusty"],
        |bin| twenty_runs(bin, "scx_rusty"),
    ),
    // An arena whose pages the program touches, too.
    (
        "twenty_runs_of_lavd_under_load_are_one_run",
        &["scx_lavd"],
        |bin| twenty_runs(bin, "scx_lavd"),
    ),
    (
        "a_replay_of_userland_is_the_run",
        &["scx_userland"],
        |bin| replayed(bin, "scx_userland"),
    ),
    ("a_replay_of_rusty_is_the_run", &["scx_rusty"], |bin| {
        replayed(bin, "scx_rusty");
    }),
    (
        "a_replay_of_rustland_is_the_run",
        &["scx_rustland"],
        |bin| replayed(bin, "scx_rustland"),
    ),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    if words.iter().any(|word| word == "--list") {
        TESTS.iter().for_each(|(name, ..)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let (mut wanted, mut skipped) = (Vec::new(), Vec::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--skip" => skipped.extend(rest.next()),
            word if word.starts_with('-') => {}
            _ => wanted.push(word),
        }
    }
    let is_in = |name: &str, words: &[&String]| words.iter().any(|it| name.contains(it.as_str()));
    let is_wanted =
        |name: &str| (wanted.is_empty() || is_in(name, &wanted)) && !is_in(name, &skipped);
    let mut counts = [0; 3];
    for (name, needs, body) in TESTS.iter().filter(|(name, ..)| is_wanted(name)) {
        let missing = match &folder {
            None => Some(format!("{VARIABLE} names no folder")),
            Some(folder) => {
                let missing = needs.iter().find(|it| !folder.join(it).is_file());
                missing.map(|it| format!("{} has no {it}", folder.display()))
            }
        };
        let (result, which) = match (missing, &folder) {
            (None, Some(folder)) => {
                let bin = Bin(folder.clone());
                match std::panic::catch_unwind(|| body(&bin)) {
                    Ok(()) => ("ok".to_owned(), 0),
                    Err(_) => ("FAILED".to_owned(), 1),
                }
            }
            (missing, _) => (format!("ignored, {}", missing.unwrap_or_default()), 2),
        };
        println!("test {name} ... {result}");
        counts[which] += 1;
    }
    let [passed, failed, ignored] = counts;
    let end = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {end}. {passed} passed; {failed} failed; {ignored} ignored");
    ExitCode::from(u8::from(failed > 0))
}

/// The folder of the programs.
struct Bin(PathBuf);

impl Bin {
    /// The command of a program, for `--scheduler`.
    fn command(&self, name: &str, arguments: &str) -> String {
        format!("'{}' {arguments}", self.0.join(name).display())
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

fn runslice(arguments: &[&str]) -> Output {
    let mut command = Command::new(RUNSLICE);
    command.args(arguments).stdin(Stdio::null());
    command.output().expect("runslice starts")
}

/// All that a command prints, which must end with `status`.
fn said(arguments: &[&str], status: i32) -> String {
    let output = runslice(arguments);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    said
}

fn scratch(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("UTF-8").to_owned()
}

/// Events and hash of a run, as `--audit` prints them behind the policy's name.
fn audit(arguments: &[&str]) -> String {
    let printed = said(&[&["sim"], arguments, &["--audit"]].concat(), 0);
    let line = printed.lines().find(|line| line.contains(" hash "));
    let line = line.unwrap_or_else(|| panic!("no hash in {printed}"));
    let (_, events) = line.split_once(": ").expect("a name stands first");
    events.to_owned()
}

const DESK: [&str; 6] = ["-w", "desk", "--cpus", "8", "--duration", "2s"];
const FREE: [&str; 2] = ["--loader-cpu", "free"];

fn same_by_hand(bin: &Bin, name: &str, arguments: &str, settings: &[&str]) {
    let command = bin.command(name, arguments);
    let own = audit(&[&["--scheduler", &command], &FREE[..], &DESK].concat());
    let file = bin.file(name);
    assert_eq!(own, audit(&[&[file.as_str()], settings, &DESK].concat()));
}

// ---- Counters ----

/// One thing that the machine did: when, which callback, and whether it was an insertion.
struct Did {
    time_ns: u64,
    callback: String,
    inserts: bool,
}

/// What the machine did in a run of a program that prints its counters each second, and what that
/// printed last.
fn counted(bin: &Bin, name: &str) -> (Vec<Did>, String) {
    let (events, output) = (scratch("events.jsonl"), scratch("printed.txt"));
    let command = bin.command(name, "");
    let run = ["sim", "--scheduler", &command, "-w", "desk", "--cpus", "4"];
    let more = ["--duration", "2500ms", "--events", &events, "--decisions"];
    let kept = ["--loader-output", &output];
    said(&[&run[..], &FREE, &more, &kept].concat(), 0);
    let text = std::fs::read_to_string(&events).expect("written");
    let word = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
        let rest = rest.trim_start_matches('"');
        let end = rest.find(['"', ',', '}']).unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    };
    let did = text.lines().filter_map(|line| {
        let event = word(line, "event")?;
        // Without a queue it is the policy that keeps the task.
        let inserts = event == "insert";
        if inserts && word(line, "queue")? == "null" {
            return None;
        }
        let callback = word(line, if inserts { "callback" } else { "op" })?;
        let time_ns = word(line, "time_ns")?.parse().ok()?;
        (inserts || event == "callback").then_some(Did {
            time_ns,
            callback,
            inserts,
        })
    });
    let did = did.collect();
    (did, std::fs::read_to_string(&output).expect("kept"))
}

/// The numbers behind the `name=` of a line.
fn counter(line: &str, name: &str) -> i64 {
    let words = line.split_whitespace();
    let value = words
        .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .next();
    let value = value.and_then(|it| it.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// Fails unless the machine had `printed` at a moment of the 10 ms in which the program's turn is.
/// `counts` says of each deed which of the counters it raises.
fn is_reached(did: &[Did], printed: &[i64], counts: impl Fn(&Did, &mut [i64])) {
    const TURN: std::ops::Range<u64> = 2_000_000_000..2_010_000_000;
    let mut now = vec![0; printed.len()];
    let mut near = Vec::new();
    for one in did {
        if TURN.contains(&one.time_ns) {
            near.push(now.clone());
        }
        counts(one, &mut now);
    }
    assert!(
        printed.iter().all(|it| *it > 0),
        "nothing happened: {printed:?}"
    );
    assert!(
        near.iter().any(|it| it == printed),
        "{printed:?} is not in {near:?}"
    );
}

fn counters_of_simple(bin: &Bin) {
    let (did, printed) = counted(bin, "scx_simple");
    let line = printed.lines().rfind(|line| line.starts_with("local="));
    let line = line.unwrap_or_else(|| panic!("no counters in {printed}"));
    let printed = ["local", "global"].map(|it| counter(line, it));
    // It counts an insertion of its `select_cpu`, and each call of its `enqueue`.
    is_reached(&did, &printed, |one, counts| {
        counts[0] += i64::from(one.inserts && one.callback == "select_cpu");
        counts[1] += i64::from(!one.inserts && one.callback == "enqueue");
    });
}

fn counters_of_qmap(bin: &Bin) {
    let (did, printed) = counted(bin, "scx_qmap");
    let line = printed.lines().rfind(|line| line.starts_with("stats "));
    let line = line.unwrap_or_else(|| panic!("no counters in {printed}"));
    // Its `enqueue` puts a task into one of its rings, which it counts, or inserts it.
    is_reached(&did, &[counter(line, "enq")], |one, counts| {
        let is_enqueue = one.callback == "enqueue";
        counts[0] += i64::from(is_enqueue) * if one.inserts { -1 } else { 1 };
    });
}

// ---- Objects with the values that a loader wrote ----

fn central_by_hand(bin: &Bin) {
    let settings = [
        "--set",
        "central_cpu=0",
        "--set",
        "nr_cpu_ids=8",
        "--set",
        "slice_ns=20000000",
        "--set",
        "cpu_gimme_task[]=8",
        "--set",
        "cpu_started_at[]=8",
    ];
    same_by_hand(bin, "scx_central", "", &settings);
}

fn nest_by_hand(bin: &Bin) {
    let settings = [
        "--set",
        "nr_cpus=8",
        "--set",
        "slice_ns=20000000",
        "--set",
        "sampling_cadence_ns=2000000000",
    ];
    same_by_hand(bin, "scx_nest", "", &settings);
}

/// What the loader of 1.1.4 writes on 8 CPUs of one speed, one core each, one cache, one node.
fn bpfland_by_hand(bin: &Bin) {
    let flags = "bpfland_ops.flags=SCX_OPS_ENQ_EXITING|SCX_OPS_ENQ_LAST|\
                 SCX_OPS_ENQ_MIGRATION_DISABLED|SCX_OPS_ALLOW_QUEUED_WAKEUP";
    let mut settings: Vec<String> = vec!["--set".into(), flags.into()];
    let values = [
        "numa_enabled=0",
        "smt_enabled=0",
        "primary_all=1",
        "local_pcpu=0",
        "sticky_tasks=0",
        "local_kthreads=0",
        "cpufreq_perf_lvl=1024",
        "slice_max=1000000",
        "slice_min=0",
        "slice_lag=40000000",
        "throttle_ns=0",
        "cpu_capacity[0-7]=1024",
    ];
    settings.extend(
        values
            .iter()
            .flat_map(|it| ["--set".to_owned(), (*it).to_owned()]),
    );
    for cpu in 0..8 {
        settings.extend(["--set".to_owned(), format!("preferred_cpus[{cpu}]={cpu}")]);
    }
    settings.extend(["--run".to_owned(), "enable_primary_cpu:-1".to_owned()]);
    for cpu in 0..8 {
        settings.extend(["--run".to_owned(), format!("enable_primary_cpu:{cpu}")]);
    }
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    same_by_hand(bin, "scx_bpfland", "", &settings);
}

fn bpfland_set_up_only(bin: &Bin) {
    let bundle = scratch("bpfland.bundle");
    let command = bin.command("scx_bpfland", "");
    let make = [
        "bundle",
        "--scheduler",
        &command,
        "--setup-only",
        "--cpus",
        "8",
    ];
    said(&[&make[..], &["-o", &bundle]].concat(), 0);
    let live = audit(&[&["--scheduler", &command], &FREE[..], &DESK].concat());
    assert_eq!(audit(&[&bundle, "-w", "desk", "--duration", "2s"]), live);
}

// ---- Schedulers in user space ----

/// With its program desk finishes without starved tasks; the object alone stalls.
fn needs_its_program(bin: &Bin, name: &str) {
    let command = bin.command(name, "");
    let with = ["sim", "--scheduler", &command, "-w", "desk", "--cpus", "4"];
    said(&[&with[..], &["--duration", "10s"]].concat(), 0);
    let file = bin.file(name);
    let alone = [
        "sim",
        &file,
        "-w",
        "desk",
        "--cpus",
        "4",
        "--duration",
        "10s",
    ];
    let said = said(&alone, 3);
    assert!(
        said.contains("STARVED") || said.contains("was ejected"),
        "{said}"
    );
}

fn userland(bin: &Bin) {
    needs_its_program(bin, "scx_userland");
}

fn rustland(bin: &Bin) {
    needs_its_program(bin, "scx_rustland");
}

// ---- Topology ----

/// Its set-up walks CPUs, caches and nodes, and fails if they do not fit together.
fn two_nodes(bin: &Bin, name: &str) {
    let command = bin.command(name, "");
    let run = [
        "sim",
        "--scheduler",
        &command,
        "-w",
        "desk",
        "--cpus",
        "16",
        "--node",
        "8",
    ];
    let said = said(&[&run[..], &["--duration", "1s"]].concat(), 0);
    assert!(!said.contains("ended with status"), "{said}");
}

// ---- What user space decides ----

/// The lines of `--scheduler-stats` of a run of `command` with a workload of this text.
fn stats_of(name: &str, command: &str, text: &str) -> Vec<Value> {
    let (load, stats) = (
        scratch(&format!("{name}.toml")),
        scratch(&format!("{name}.jsonl")),
    );
    std::fs::write(&load, text).expect("written");
    let run = ["sim", "--scheduler", command, "-w", &load];
    said(&[&run[..], &["--scheduler-stats", &stats]].concat(), 0);
    let lines = std::fs::read_to_string(&stats).expect("kept");
    let read = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON");
    lines
        .lines()
        .map(|line| read(line)["stats"].take())
        .collect()
}

/// It deals new tasks out to the two caches in turn, so all that work come to one of them. With
/// stealing off only user space can move some. That the object of 1.1.4 undoes the moves is in
/// docs/your-scheduler.md; a later one may not, so it is no part of this.
fn balancer_of_rusty(bin: &Bin) {
    let text = "[workload]\nname = \"lopsided\"\nstop = \"duration:5s\"\n\
                [machine]\ncpus = 4\nllc = 2\n[task.t]\ncount = 8\n\
                do = \"if(self % 2)[ run(inf) ] else [ sleep(1000s) ]\"\n";
    let moves = |name: &str, options: &str| -> f64 {
        let command = bin.command("scx_rusty", &format!("-g 0 -D 0 {options}"));
        let lines = stats_of(name, &command, text);
        assert!(!lines.is_empty(), "no metrics");
        lines
            .iter()
            .filter_map(|it| it["nr_migrations"].as_f64())
            .sum()
    };
    assert!(moves("balanced", "") > 0.0, "nothing was moved");
    assert_eq!(moves("unbalanced", "--no-load-balance"), 0.0);
}

/// CPUs of a layer when its tasks sleep, and when they work.
fn growth_of_layered(bin: &Bin) {
    let layers = scratch("layers.json");
    let spec = r#"[
        {"name": "workers", "comment": "", "matches": [[{"CommPrefix": "worker"}]],
         "kind": {"Confined": {"util_range": [0.3, 0.6]}}},
        {"name": "rest", "comment": "", "matches": [[]], "kind": {"Open": {}}}]"#;
    std::fs::write(&layers, spec).expect("written");
    let text = "[workload]\nname = \"growth\"\nstop = \"duration:8s\"\n\
                [machine]\ncpus = 8\n[task.worker]\ncount = 4\n\
                do = \"loop(300)[ run(100us), sleep(10ms) ], run(inf)\"\n";
    let command = bin.command("scx_layered", &format!("f:{layers}"));
    let lines = stats_of("growth", &command, text);
    let cpus = |line: &Value| line["layers"]["workers"]["cur_nr_cpus"].as_u64();
    let all: Vec<u64> = lines.iter().filter_map(cpus).collect();
    let (early, late) = (all.get(1), all.last());
    assert!(early < late, "CPUs of the layer by second: {all:?}");
}

/// A forked task has its parent's name until it takes its own, of which a program at
/// `task_rename` hears.
fn names_of_layered(bin: &Bin) {
    let layers = scratch("names.json");
    let spec = r#"[
        {"name": "compilers", "comment": "", "matches": [[{"CommPrefix": "cc"}]],
         "kind": {"Confined": {"util_range": [0.3, 0.6]}}},
        {"name": "rest", "comment": "", "matches": [[]], "kind": {"Open": {}}}]"#;
    std::fs::write(&layers, spec).expect("written");
    let text = "[workload]\nname = \"names\"\nstop = \"duration:3s\"\n\
                [machine]\ncpus = 4\n\
                [task.make]\ndo = \"sleep(100ms), fork(cc), fork(cc), sleep(9s)\"\n\
                [task.cc]\nkind = \"process\"\ndo = \"loop(9999)[ run(2ms), sleep(1ms) ]\"\n";
    let command = bin.command("scx_layered", &format!("f:{layers}"));
    let lines = stats_of("names", &command, text);
    let util = |line: &Value| line["layers"]["compilers"]["util"].as_f64();
    let all: Vec<f64> = lines.iter().filter_map(util).collect();
    assert!(
        all.last().is_some_and(|it| *it > 100.0),
        "use by second, in %: {all:?}"
    );
}

// ---- Ends ----

/// A real-time task takes the only CPU until the watchdog looks.
fn ejection(bin: &Bin, name: &str) {
    let load = scratch("stall.toml");
    let output = scratch(&format!("{name}.ejected.txt"));
    let text = "[workload]\nname = \"stall\"\nstop = \"duration:50s\"\n[machine]\ncpus = 1\n\
                [task.shell]\ndo = \"run(inf)\"\n\
                [task.rt]\npolicy = \"fifo:50\"\ndo = \"sleep(100ms), run(inf)\"\n";
    std::fs::write(&load, text).expect("written");
    let command = bin.command(name, "");
    let run = [
        "sim",
        "--scheduler",
        &command,
        "-w",
        &load,
        "--loader-output",
        &output,
    ];
    said(&[&run[..], &FREE].concat(), 3);
    let printed = std::fs::read_to_string(&output).expect("kept");
    assert!(printed.contains("EXIT: runnable task stall"), "{printed}");
}

/// At its end a run interrupts the program. What that returns then is told if it is not 0.
fn interrupted(bin: &Bin, name: &str) {
    let output = scratch(&format!("{name}.end.txt"));
    let command = bin.command(name, "");
    let run = [
        "sim",
        "--scheduler",
        &command,
        "-w",
        "desk",
        "--duration",
        "1500ms",
    ];
    let said = said(&[&run[..], &["--loader-output", &output]].concat(), 0);
    for wrong in ["ended with status", "did not end within"] {
        assert!(!said.contains(wrong), "{said}");
    }
    let printed = std::fs::read_to_string(&output).expect("kept");
    assert!(printed.to_lowercase().contains("unregistered"), "{printed}");
}

// ---- The same again ----

/// Two threads that never rest keep the computer busy meanwhile.
fn twenty_runs(bin: &Bin, name: &str) {
    use std::sync::atomic::{AtomicBool, Ordering};
    let stop = AtomicBool::new(false);
    let command = bin.command(name, "");
    let run = ["--scheduler", &command, "-w", "desk", "--duration", "500ms"];
    let all: Vec<String> = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let all = std::panic::catch_unwind(|| (0..20).map(|_| audit(&run)).collect());
        stop.store(true, Ordering::Relaxed);
        all.unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    });
    assert!(all.iter().all(|it| *it == all[0]), "{all:?}");
}

fn replayed(bin: &Bin, name: &str) {
    let bundle = scratch(&format!("{name}.bundle"));
    let command = bin.command(name, "");
    let own = ["--scheduler", &command];
    let live = audit(&[&own[..], &DESK].concat());
    said(
        &[&["bundle"], &own[..], &DESK, &["-o", &bundle]].concat(),
        0,
    );
    assert_eq!(audit(&[&bundle]), live);
}
