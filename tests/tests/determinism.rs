//! A run is a function of its spec: the same events, bit for bit, whenever, wherever and however
//! the simulator was built.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs, thread};

use model::{MachineSpec, Nanos, PolicySpec};
use runslice_tests::policy;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use runslice_tests::simulate;
use sim::Backend;
use traces::TraceHash;
use workload::{RunSpec, Workload};

/// Says to a child process what to print; see `hashes_for_another_process`.
const CHILD: &str = "RUNSLICE_PRINT_HASHES";

/// Name and spec of every run that is compared.
fn runs() -> Vec<(String, RunSpec)> {
    let mut runs = Vec::new();
    for policy in ["fifo", "mlfq"] {
        runs.push((format!("{policy}/desk"), shipped(policy, "desk")));
    }
    // Random streams, ties, interrupts, affinities, timers, devices, nodes; the last two with
    // cgroups and deadline tasks.
    for seed in [3, 14, 15, 92, 89, 653, 793] {
        runs.push((format!("random/{seed}"), RandomRun::new(seed).spec));
    }
    runs
}

fn shipped(policy: &str, workload: &str) -> RunSpec {
    let file = format!("workloads/{workload}.toml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&file);
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let workload = Workload::parse(&text, &file).unwrap_or_else(|error| panic!("{error}"));
    RunSpec {
        policy: PolicySpec::of_object(policy, policy::object(policy).expect("a shipped policy")),
        machine: MachineSpec {
            cpus: 4,
            ..workload.machine.clone()
        },
        seed: workload.seed,
        workload: Arc::new(workload),
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(Nanos::from_millis(300)),
    }
}

fn hash(spec: &RunSpec) -> u64 {
    let mut hash = TraceHash::new();
    let summary = sim::run(spec, &mut hash).expect("a run");
    assert!(
        hash.count() > 100,
        "only {} events: {:?}",
        hash.count(),
        summary.exit
    );
    hash.value()
}

/// One line a run: its name and the hash of its events.
fn table() -> String {
    runs()
        .iter()
        .fold(String::new(), |mut table, (name, spec)| {
            let _ = writeln!(table, "{name} {:016x}", hash(spec));
            table
        })
}

/// The lottery draws with `bpf_get_prandom_u32()`; nothing else in this run is drawn.
#[test]
fn another_seed_draws_other_numbers_for_the_policy() {
    let turns = |seed: u64| {
        let mut spec = Run::new("lottery", "[task.A]\ncount = 3\ndo = \"run(1s)\"").spec();
        spec.seed = seed;
        let mut hash = TraceHash::new();
        sim::run(&spec, &mut hash).expect("a run");
        hash.value()
    };
    assert_eq!(turns(1), turns(1));
    let different: std::collections::BTreeSet<u64> = (1..9).map(turns).collect();
    assert_eq!(different.len(), 8);
}

#[test]
fn fifty_runs_of_one_spec_have_one_hash() {
    for (name, spec) in runs() {
        let first = hash(&spec);
        for nth in 1..50 {
            assert_eq!(hash(&spec), first, "{name}, run {nth}");
        }
    }
}

#[test]
fn runs_in_parallel_threads_do_not_disturb_each_other() {
    let spec = RandomRun::new(14).spec;
    let alone = hash(&spec);
    let threads: Vec<_> = (0..4)
        .map(|nth| {
            let spec = if nth % 2 == 0 {
                spec.clone()
            } else {
                shipped("fifo", "desk")
            };
            thread::spawn(move || (nth, hash(&spec)))
        })
        .collect();
    for thread in threads {
        let (nth, together) = thread.join().expect("a thread");
        assert_eq!(together == alone, nth % 2 == 0, "thread {nth}");
    }
}

/// Not a test of its own: another process runs it to say what its hashes are.
#[test]
fn hashes_for_another_process() {
    if env::var_os(CHILD).is_some() {
        print!("\n{}", table());
    }
}

#[test]
fn two_processes_with_other_environments_get_the_same_hashes() {
    let here = table();
    let output = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "determinism::hashes_for_another_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env_clear()
        .env(CHILD, "1")
        .env("TZ", "Asia/Kathmandu")
        .env("LANG", "tr_TR.UTF-8")
        .env("HOME", "/nowhere")
        .current_dir("/")
        .output()
        .expect("a second process");
    let text = String::from_utf8(output.stdout).expect("text");
    let names: Vec<String> = runs().into_iter().map(|(name, _)| name).collect();
    let named = |line: &&str| {
        names
            .iter()
            .any(|name| line.starts_with(&format!("{name} ")))
    };
    let there: String = text
        .lines()
        .filter(named)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(there, here);
}

#[test]
fn every_recorded_run_has_the_same_events_on_each_back_end() {
    for (name, spec) in runs() {
        let mut usual = TraceHash::new();
        let _ = simulate::on_both(&spec, &mut usual).unwrap_or_else(|e| panic!("{name}: {e}"));
        let native = simulate::on(&spec, Backend::Jit, None).expect("it ran before");
        assert_eq!(
            (usual.value(), usual.count()),
            (native.0, native.1),
            "{name}"
        );
    }
}

/// The recorded hashes are the same for every build, debug or release, on every machine.
///
/// `UPDATE_GOLDEN=1` records them anew when the simulator is meant to do something else.
#[test]
fn the_hashes_are_those_that_were_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/hashes.txt");
    let table = table();
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, table).expect("the file of hashes is writable");
        return;
    }
    let recorded = fs::read_to_string(path).expect("the file of hashes");
    let lines = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        pairs
            .map(|(name, hash)| (name.to_owned(), hash.to_owned()))
            .collect()
    };
    assert_eq!(
        lines(&table),
        lines(&recorded),
        "other events than when the hashes were recorded"
    );
}

#[test]
fn another_seed_or_another_policy_is_another_run() {
    let spec = shipped("fifo", "desk");
    let seeded = RunSpec {
        seed: spec.seed + 1,
        ..spec.clone()
    };
    let hashes = [hash(&spec), hash(&seeded), hash(&shipped("mlfq", "desk"))];
    assert!(
        hashes[0] != hashes[1] && hashes[0] != hashes[2],
        "{hashes:x?}"
    );
}
