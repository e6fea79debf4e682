//! The bodies that hold on both machines, on a real kernel: one guest plays all of their workloads,
//! and each body looks at its recording.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use runslice_tests::guest::KERNELS;
use runslice_tests::two_machines::{Scenario, Taker, Yield, all};
use runslice_tests::{folder, guest, policy};

/// Names a folder with recordings of an earlier run in `two-machines-6.18` and so on, to look at
/// them again without a guest.
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
    let folder = folder!(&format!("two-machines-{kernel}"));
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
    let guest = guest!().kernel(kernel).counted();
    let _ = guest.timeout("280s").share(&folder).good(&script, &[]);
    folder
}

/// What a kernel, by its place in [`KERNELS`], made of a scenario.
fn on_the_kernel(at: usize, scenario: &Scenario) -> Yield {
    static FOLDERS: [OnceLock<PathBuf>; KERNELS.len()] = [const { OnceLock::new() }; _];
    let kernel = KERNELS[at];
    let folder = FOLDERS[at].get_or_init(|| match std::env::var_os(AGAIN) {
        Some(folder) => Path::new(&folder).join(format!("two-machines-{kernel}")),
        None => played(kernel),
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
    traces::replay(BufReader::new(events), &mut taker).unwrap_or_else(|e| panic!("{e}: {said}"));
    taker.with((kind, message))
}

mod on_6_18 {
    runslice_tests::every_body!(
        |scenario: &super::Scenario| super::on_the_kernel(0, scenario),
        #[ignore = "boots a kernel: make test-vm"]
    );
}

mod on_7_2 {
    runslice_tests::every_body!(
        |scenario: &super::Scenario| super::on_the_kernel(1, scenario),
        #[ignore = "boots a kernel: make test-vm"]
    );
}
