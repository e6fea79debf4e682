//! The bodies that hold on both machines, on a real kernel: one guest plays all of their workloads,
//! and each body looks at its recording.

#![cfg(feature = "live")]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use runslice_tests::policy;
use runslice_tests::two_machines::{Scenario, Taker, Yield, all};

/// Names a folder of recordings that an earlier run has made, to look at them again without a
/// guest.
const AGAIN: &str = "RUNSLICE_TWO_MACHINES";

/// What the guest executes, once for each scenario, in its shared folder.
const PLAY: &str = "\
    play() {
        timeout 60 runslice play $1.toml --policy $2 --events $1.jsonl \\
            --format json -o $1.json 2>$1.err
        echo $? >$1.status
    }
";

/// The folder with what `kernel` made of every scenario.
fn played(kernel: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("two-machines-{kernel}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let mut script = PLAY.to_owned();
    for scenario in all().iter().map(|body| body.scenario) {
        let toml = folder.join(format!("{}.toml", scenario.name));
        fs::write(toml, scenario.workload()).expect("writable");
        let mut name = scenario.policy.to_owned();
        if policies::find(scenario.policy).is_none() {
            let object = policy::object(scenario.policy).expect("a test policy");
            name = format!("./{name}.bpf.o");
            fs::write(folder.join(&name), object).expect("writable");
        }
        let knobs = match scenario.knobs {
            "" => String::new(),
            knobs => format!(":{knobs}"),
        };
        script += &format!("play {} {name}{knobs}\n", scenario.name);
    }
    let share = folder.to_string_lossy();
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(["vm", "--kernel", kernel, "--with", "runslice", "--det"])
        .args([
            "--timeout",
            "280s",
            "--share",
            &share,
            "--",
            "sh",
            "-c",
            &script,
        ])
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    folder
}

/// What 6.18 made of a scenario.
fn on_the_kernel(scenario: &Scenario) -> Yield {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| match std::env::var_os(AGAIN) {
        Some(folder) => PathBuf::from(folder),
        None => played("6.18"),
    });
    let read = |ending: &str| {
        let path = folder.join(format!("{}.{ending}", scenario.name));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let said = format!("status {}{}", read("status"), read("err"));
    let results: serde_json::Value =
        serde_json::from_str(&read("json")).unwrap_or_else(|error| panic!("{error}: {said}"));
    let exit = &results["runs"][0]["exit"];
    let kind = exit["kind"].as_u64().expect("a kind");
    let kind = u32::try_from(kind).expect("a kind of exit");
    let message = exit["message"].as_str().expect("a message").to_owned();
    let events = folder.join(format!("{}.jsonl", scenario.name));
    let events = File::open(&events).unwrap_or_else(|error| panic!("{error}: {said}"));
    let mut taker = Taker::default();
    stats::replay(BufReader::new(events), &mut taker).unwrap_or_else(|e| panic!("{e}: {said}"));
    taker.with((kind, message))
}

runslice_tests::every_body!(on_the_kernel, #[ignore = "boots a kernel: make test-vm"]);
