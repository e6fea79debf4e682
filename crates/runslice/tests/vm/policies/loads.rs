//! Every shipped policy under loads, on both kernels.
//!
//! These guests count instructions instead of time, so whether a watchdog fires depends on the
//! policy and not on what else this computer does. They run at a fraction of the usual speed: a
//! minute of a guest at 62 MIPS takes this computer about as long. One guest serves many policies.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Instant;

use super::{KERNELS, complaints, said, vm};

/// What the guests run.
pub(crate) const LOADS: &str = include_str!("loads.sh");

/// Set by who cannot or does not want to boot kernels.
const NO_VM: &str = "RUNSLICE_NO_VM";

/// Names the policies to run, with spaces between them, for who works on one.
const ONLY: &str = "RUNSLICE_VM_POLICIES";

/// A load of `loads.sh`, and the guest for it.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// The function, which prints `result POLICY NAME ENDING`; then `took POLICY NAME SECONDS`
    /// says how long that was in the guest's time.
    name: &'static str,
    /// The ending that is due: the status of `runslice run`, the state of the kernel's sched_ext,
    /// and how many tasks never ran where that is asked.
    ending: &'static str,
    cpus: &'static str,
    mips: &'static str,
    /// How long a policy may take, in the guest's time, with the verifier's.
    seconds: u64,
}

impl Load {
    const fn on_two_cpus(name: &'static str) -> Self {
        Self {
            name,
            ending: "0 disabled",
            cpus: "2",
            mips: "62",
            seconds: 400,
        }
    }

    /// Tasks that compete; each must have run. Twice as fast, because at 62 MIPS a walk through
    /// 300 tasks takes longer than a tick.
    const fn competing(name: &'static str, cpus: &'static str) -> Self {
        Self {
            ending: "0 disabled 0",
            cpus,
            mips: "125",
            ..Self::on_two_cpus(name)
        }
    }
}

fn every_policy() -> Vec<&'static str> {
    policies::ALL.iter().map(|policy| policy.name).collect()
}

/// Past the test runner, which keeps what a passing test prints.
fn tell(line: &str) {
    // Nobody can be told when standard error is closed.
    let _ = writeln!(io::stderr(), "vm: {line}");
}

/// Those of `policies` that [`ONLY`] lets through. What it leaves out is told by name.
fn chosen<'a>(kernel: &str, load: Load, policies: &[&'a str]) -> Vec<&'a str> {
    let only = std::env::var(ONLY).unwrap_or_default();
    let only: Vec<&str> = only.split_whitespace().collect();
    if only.is_empty() {
        return policies.to_vec();
    }
    for name in &only {
        let known = policies::ALL.iter().any(|policy| policy.name == *name);
        assert!(known, "{ONLY}: no policy is called `{name}`");
    }
    let (run, skip): (Vec<&str>, Vec<&str>) = policies
        .iter()
        .copied()
        .partition(|name| only.contains(name));
    for name in skip {
        tell(&format!(
            "{kernel} {} {name}: SKIPPED, {ONLY} is set",
            load.name
        ));
    }
    run
}

/// Boots a guest, runs `load` in it under each policy, and returns all that came out.
fn play(kernel: &str, load: Load, policies: &[&str]) -> String {
    let names = policies.join(" ");
    let script = format!(
        "{LOADS}\nfor policy in {names}; do timed {} $policy; done",
        load.name
    );
    let seconds = load.seconds * policies.len() as u64;
    let seconds = format!("{seconds}s");
    let words = [
        "--kernel", kernel, "--det", "--mips", load.mips, "--cpus", load.cpus,
    ];
    let mut words = Vec::from(words);
    words.extend(["--memory", "1536", "--timeout", &seconds, "--kernel-log"]);
    for program in ["runslice", "stress-ng", "hackbench"] {
        words.extend(["--with", program]);
    }
    words.extend(["--", "sh", "-c", &script]);
    said(&vm(&words))
}

/// The rest of the line of `text` that begins with these words.
pub(crate) fn line_of<'a>(text: &'a str, kind: &str, policy: &str, load: &str) -> Option<&'a str> {
    let begin = format!("{kind} {policy} {load} ");
    text.lines().find_map(|line| line.strip_prefix(&*begin))
}

/// Runs `load` under each policy in one guest, prints a line for each, and fails if any has not
/// ended as it should or the kernel complained.
fn survive(kernel: &str, load: Load, policies: &[&str]) {
    let policies = chosen(kernel, load, policies);
    if policies.is_empty() {
        return;
    }
    let begun = Instant::now();
    let text = play(kernel, load, &policies);
    let wall = begun.elapsed().as_secs();
    let mut failed = String::new();
    for policy in policies {
        let ending = line_of(&text, "result", policy, load.name);
        let guest = line_of(&text, "took", policy, load.name).unwrap_or("?");
        let what = format!("{kernel} {} {policy}", load.name);
        if ending == Some(load.ending) {
            tell(&format!("{what}: ok, {guest} s in the guest"));
        } else {
            let ending = ending.unwrap_or("no result");
            tell(&format!("{what}: FAILED, {ending}"));
            let _ = writeln!(failed, "{what}: {ending}, not {}", load.ending);
        }
    }
    for line in complaints(&text) {
        let _ = writeln!(failed, "{kernel} {}: {line}", load.name);
    }
    tell(&format!(
        "{kernel} {}: {wall} s on this computer",
        load.name
    ));
    assert!(failed.is_empty(), "{failed}\n{text}");
}

/// The part of these tests that `make test` runs: minutes less than the whole. It needs QEMU and
/// both kernels, and fails without them, unless `RUNSLICE_NO_VM` says that it shall not run.
#[test]
fn every_shipped_policy_is_accepted_schedules_and_goes_on_both_kernels() {
    if std::env::var_os(NO_VM).is_some() {
        tell(&format!(
            "{NO_VM} is set, SKIPPED: every_shipped_policy_is_accepted_schedules_and_goes_on_both_\
             kernels"
        ));
        return;
    }
    let load = Load {
        mips: "250",
        seconds: 100,
        ..Load::on_two_cpus("accept")
    };
    for kernel in KERNELS {
        survive(kernel, load, &every_policy());
    }
}

/// The loads that both kernels must stand, each as a test of its own.
macro_rules! on_each_kernel {
    ($($module:ident: $kernel:literal),+ $(,)?) => { $(
        mod $module {
            use super::{Load, every_policy, survive};

            #[test]
            #[ignore = "boots a kernel: make test-vm"]
            fn every_shipped_policy_survives_31_s_of_stress() {
                survive($kernel, Load::on_two_cpus("stress"), &every_policy());
            }

            #[test]
            #[ignore = "boots a kernel: make test-vm"]
            fn every_shipped_policy_survives_hackbench_with_400_tasks() {
                survive($kernel, Load::on_two_cpus("hackbench400"), &every_policy());
            }

            #[test]
            #[ignore = "boots a kernel: make test-vm"]
            fn a_cpu_goes_and_comes_under_load_with_tasks_bound_to_it() {
                survive($kernel, Load::on_two_cpus("hotplug"), &every_policy());
            }

            #[test]
            #[ignore = "boots a kernel: make test-vm"]
            fn a_killed_runslice_leaves_the_default_scheduler_and_the_load_goes_on() {
                survive($kernel, Load::on_two_cpus("killed"), &every_policy());
            }
        }
    )+ };
}

on_each_kernel! {
    on_6_18: "6.18",
    on_7_2: "7.2",
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn three_hundred_hogs_on_one_cpu_eject_no_shipped_policy() {
    for policy in every_policy() {
        survive("6.18", Load::competing("hogs300", "1"), &[policy]);
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn an_endless_stream_of_short_tasks_ejects_no_shipped_policy() {
    for policy in every_policy() {
        survive("6.18", Load::competing("forks", "1"), &[policy]);
    }
}

/// What the test above rests on: this load does starve the hogs, and the kernel does eject.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn without_its_guard_a_stream_of_short_tasks_ejects_mlfq() {
    let unguarded = "mlfq:guard_ms=0";
    let load = Load::competing("forks", "1");
    let text = play("6.18", load, &[unguarded]);
    let ending = line_of(&text, "result", unguarded, load.name).unwrap_or("no result");
    assert!(ending.starts_with("3 disabled"), "{ending}\n{text}");
    assert!(text.contains("was ejected: runnable task stall"), "{text}");
}

/// Both walk through one queue while they hold its lock.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_thousand_runnable_tasks_lock_no_cpu_up_under_goodness_and_elsc() {
    for policy in ["goodness", "elsc"] {
        let load = Load {
            mips: "250",
            ..Load::competing("runnable1000", "4")
        };
        survive("6.18", load, &[policy]);
    }
}
