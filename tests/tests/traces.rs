//! The recorded scenarios happen in the simulator as on a real kernel, whatever executes the
//! policy.
//!
//! What is compared, and what is not, is the business of one function:
//! `runslice_tests::comparable::comparable`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use model::{Kernel, MachineSpec, Nanos, PolicySpec};
use runslice_tests::call::Call;
use runslice_tests::collect::Collector;
use runslice_tests::comparable::{Comparable, comparable, difference};
use runslice_tests::custody::{Dialect, as_6_18};
use runslice_tests::policy;
use runslice_tests::recording::{self, Section};
use runslice_tests::simulate;
use workload::{RunSpec, Workload};

/// The CPU of which a recording has every callback.
const WHOLE_CPU: u16 = 1;

/// A recording, and the test policy that does what the recorded one did.
struct Recorded {
    name: &'static str,
    text: &'static str,
    kernel: Kernel,
    policy: &'static str,
    set: &'static [(&'static str, &'static str)],
}

/// The recordings of one kernel under the policy that wakes CPUs by kicks, and under the one that
/// looks for idle CPUs.
macro_rules! recorded {
    ($kernel:ident, $kicks:literal, $selects:literal) => {
        [
            recorded!($kernel, $kicks, "probe", "kick", "1"),
            recorded!($kernel, $selects, "probe", "select", "1"),
        ]
    };
    ($kernel:ident, $name:literal, $policy:literal, $knob:literal, $value:literal) => {
        Recorded {
            name: $name,
            text: include_str!(concat!("../golden/traces/", $name, ".txt")),
            kernel: Kernel::$kernel,
            policy: $policy,
            set: &[($knob, $value)],
        }
    };
}

const RECORDED: [&[Recorded]; 8] = [
    &recorded!(V6_16, "a616", "b616"),
    &recorded!(V6_17, "a617", "b617"),
    &[
        recorded!(V6_18, "a618", "probe", "kick", "1"),
        recorded!(V6_18, "b618", "probe", "select", "1"),
        recorded!(V6_18, "c618", "probe-last", "kick", "1"),
        recorded!(V6_18, "k618", "probe", "kick", "2"),
    ],
    &recorded!(V6_19, "a619", "b619"),
    &recorded!(V7_0, "a70", "b70"),
    // Debian's 7.1.13 misdescribes the function that kicks.
    &[recorded!(V7_1, "b71", "probe", "select", "1")],
    &recorded!(V7_2, "a72", "b72"),
    &recorded!(V7_3, "a73", "b73"),
];

/// What is replaced by what in a workload.
type Edit = (&'static str, &'static str);

/// Recorded scenarios that no workload repeats. In a616 the driver was late by 30 ms, and changed
/// the affinity of A when A had ended and was not waited for yet.
const WENT_ASTRAY: &[(&str, &str)] = &[("a616", "T10")];

/// A kernel thread keeps CPU 1 from the reader when it is born.
const ON_CPU_0: &[Edit] = &[(
    "[task.main]\n",
    "[task.kthread]\ncpus = \"1\"\ndo = \"run(2ms)\"\n\n[task.main]\nstart = \"1ms\"\n",
)];

/// Where emulation stretched a recording so far that other tasks ran when the driver acted, the
/// scenario is simulated with the times of that recording: recording, scenario, changes of the
/// workload.
const STRETCHED: &[(&str, &str, &[Edit])] = &[
    // A kernel thread ran on CPU 1 when the reader was forked, so the reader began on CPU 0.
    (
        "b618",
        "T9",
        &[(
            "[task.main]\n",
            "[task.kthread]\ncpus = \"1\"\ndo = \"run(2ms)\"\n\n[task.main]\nstart = \"1ms\"\n",
        )],
    ),
    // Kernel threads took the turns in which a lone task is enqueued as the last one. With less
    // to compute there are none.
    (
        "c618",
        "T8",
        &[("sleep(30ms)", "sleep(20ms)"), ("run(100ms)", "run(35ms)")],
    ),
    // B ran when the driver reniced both and changed their affinities.
    (
        "b618",
        "T10",
        &[
            ("sleep(25ms)", "sleep(30ms)"),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvB",
                "sleep(5ms)\",\n    \"setaffinity(tvB",
            ),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvA",
                "sleep(5ms)\",\n    \"setaffinity(tvA",
            ),
        ],
    ),
    // B ran when the driver reniced both, and A when it changed the affinities.
    (
        "c618",
        "T10",
        &[
            ("sleep(25ms)", "sleep(40ms)"),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvB",
                "sleep(10ms)\",\n    \"setaffinity(tvB",
            ),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvA",
                "sleep(0ms)\",\n    \"setaffinity(tvA",
            ),
        ],
    ),
    // B woke a little later than A and preempted it; then as in c618.
    (
        "k618",
        "T10",
        &[
            ("sleep(25ms)", "sleep(15ms)"),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvB",
                "sleep(20ms)\",\n    \"setaffinity(tvB",
            ),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvA",
                "sleep(0ms)\",\n    \"setaffinity(tvA",
            ),
            ("fork(tvB)", "run(1ms), fork(tvB)"),
        ],
    ),
    // A ran when the driver reniced both, B when it changed the affinities.
    (
        "a72",
        "T10",
        &[
            (
                "sleep(30ms)\",\n    \"setaffinity(tvB",
                "sleep(5ms)\",\n    \"setaffinity(tvB",
            ),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvA",
                "sleep(10ms)\",\n    \"setaffinity(tvA",
            ),
        ],
    ),
    (
        "b72",
        "T10",
        &[
            (
                "sleep(30ms)\",\n    \"setaffinity(tvB",
                "sleep(5ms)\",\n    \"setaffinity(tvB",
            ),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvA",
                "sleep(10ms)\",\n    \"setaffinity(tvA",
            ),
        ],
    ),
    // Here the reader begins on CPU 0, where its parent is.
    ("b616", "T9", ON_CPU_0),
    ("b617", "T9", ON_CPU_0),
    ("b619", "T9", ON_CPU_0),
    ("b70", "T9", ON_CPU_0),
    ("b71", "T9", ON_CPU_0),
    ("b73", "T9", ON_CPU_0),
    // B ran when the driver reniced both.
    ("a70", "T10", &[("sleep(25ms)", "sleep(30ms)")]),
    ("b71", "T10", &[("sleep(25ms)", "sleep(30ms)")]),
    ("a73", "T10", &[("sleep(25ms)", "sleep(30ms)")]),
    ("b73", "T10", &[("sleep(25ms)", "sleep(30ms)")]),
    // A ran again when the driver reniced both, and later when it changed the affinities.
    (
        "b619",
        "T10",
        &[
            ("sleep(25ms)", "sleep(55ms)"),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvB",
                "sleep(45ms)\",\n    \"setaffinity(tvB",
            ),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvA",
                "sleep(5ms)\",\n    \"setaffinity(tvA",
            ),
        ],
    ),
    // B ran when the driver changed its affinity.
    (
        "a619",
        "T10",
        &[
            (
                "sleep(30ms)\",\n    \"setaffinity(tvB",
                "sleep(55ms)\",\n    \"setaffinity(tvB",
            ),
            (
                "sleep(30ms)\",\n    \"setaffinity(tvA",
                "sleep(20ms)\",\n    \"setaffinity(tvA",
            ),
        ],
    ),
    // As b618.
    (
        "b72",
        "T9",
        &[(
            "[task.main]\n",
            "[task.kthread]\ncpus = \"1\"\ndo = \"run(2ms)\"\n\n[task.main]\nstart = \"1ms\"\n",
        )],
    ),
];

fn stretched(recorded: &str, section: &str, mut text: String) -> String {
    let edits = STRETCHED
        .iter()
        .find(|(name, scenario, _)| (*name, *scenario) == (recorded, section));
    for (from, to) in edits.map_or(&[][..], |(_, _, edits)| edits) {
        assert!(text.contains(from), "{recorded} {section}: no {from}");
        text = text.replacen(from, to, 1);
    }
    text
}

fn simulated(recorded: &Recorded, section: &Section) -> Comparable {
    let file = format!("workloads/traces/{}.toml", section.name.to_lowercase());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&file);
    let text = fs::read_to_string(path).expect(&file);
    let text = stretched(recorded.name, &section.name, text);
    let workload = Workload::parse(&text, &file).expect("a workload");
    let set = recorded
        .set
        .iter()
        .map(|(knob, value)| ((*knob).to_owned(), (*value).to_owned()));
    let spec = RunSpec {
        policy: PolicySpec {
            name: recorded.name.to_owned(),
            object: policy::object(recorded.policy).expect("a test policy"),
            table: None,
            set: set.collect(),
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        },
        machine: MachineSpec {
            kernel: recorded.kernel,
            ..workload.machine.clone()
        },
        workload: Arc::new(workload),
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: None,
    };
    let mut collector = Collector::default();
    let summary = simulate::on_both(&spec, &mut collector).expect("a run");
    assert_eq!(
        summary.exit.message, "",
        "{} {}",
        recorded.name, section.name
    );
    recorded.comparable(&collector.as_recorded(), &section.name)
}

impl Recorded {
    /// Its scenarios, but for those that went another way.
    fn sections(&self) -> Vec<Section> {
        let mut sections = recording::parse(self.text).expect(self.name);
        let is_other = |section: &Section| WENT_ASTRAY.contains(&(self.name, &*section.name));
        sections.retain(|section| !is_other(section));
        sections
    }

    /// What is compared, in the words of 6.18.
    fn comparable(&self, calls: &[Call], section: &str) -> Comparable {
        let Some(dialect) = Dialect::of(self.kernel) else {
            return comparable(calls, WHOLE_CPU);
        };
        let calls = as_6_18(calls, dialect)
            .unwrap_or_else(|error| panic!("{} {section}: {error}", self.name));
        comparable(&calls, WHOLE_CPU)
    }
}

#[test]
fn every_task_of_every_recorded_scenario_has_the_same_sequence() {
    let mut failures = String::new();
    for recorded in RECORDED.iter().copied().flatten() {
        for section in &recorded.sections() {
            let kernel = recorded.comparable(&section.calls, &section.name);
            if let Some(what) = difference(&kernel, &simulated(recorded, section)) {
                failures += &format!("{} {}: {what}\n", recorded.name, section.name);
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Exchanges that the kernel showed and the simulated scenarios do not, and why.
const NOT_SIMULATED: &[(&str, &str)] = &[(
    "p: stopping 0, p: quiescent 0x19, q: running cpu1",
    "k618 T3: a kernel thread's wakeup preempted the hog q while it was exiting, so that q waited \
     in the local queue when p came to its end. Vector 21 has the same without kernel threads.",
)];

/// Exchanges of one kernel that only the kernel, and that only the simulator showed. Noise leaves
/// some exchanges clean under one policy only, so the policies are taken together.
fn exchanges(version: Kernel) -> [BTreeSet<String>; 2] {
    let mut kernel: BTreeSet<String> = BTreeSet::new();
    let mut machine: BTreeSet<String> = BTreeSet::new();
    for recorded in RECORDED
        .iter()
        .copied()
        .flatten()
        .filter(|it| it.kernel == version)
    {
        for section in &recorded.sections() {
            kernel.extend(recorded.comparable(&section.calls, &section.name).exchanges);
            machine.extend(simulated(recorded, section).exchanges);
        }
    }
    assert!(kernel.len() > 15, "{kernel:#?}");
    let lacking = kernel.difference(&machine).cloned().collect();
    let invented = machine.difference(&kernel).cloned().collect();
    [lacking, invented]
}

#[test]
fn the_orders_of_a_cpu_s_callbacks_are_those_that_6_18_showed() {
    let expected: BTreeSet<String> = NOT_SIMULATED
        .iter()
        .map(|(one, _)| (*one).to_owned())
        .collect();
    let [lacking, invented] = exchanges(Kernel::V6_18);
    assert_eq!(lacking, expected, "only on the kernel");
    assert!(invented.is_empty(), "only simulated: {invented:#?}");
}

/// a617 T1: the idle CPU looked for a task and found none, 5 ms before p woke. Who told it to look
/// stands in no recording.
const NOTHING_FOUND: &str = "dispatch cpu1 queued=0, p: runnable 0x9, p: enqueue 0x9 cpu1, \
     dispatch cpu1 queued=0, update_idle cpu1 0, p: running cpu1";

/// Two recordings of a counting guest show fewer coincidences than four of a guest that is
/// stretched: two tasks never wake in one instant. So a simulated order may be one that another
/// kernel showed.
#[test]
fn the_orders_of_a_cpu_s_callbacks_are_those_that_the_other_kernels_showed() {
    let mut shown = BTreeSet::new();
    for recorded in RECORDED.iter().copied().flatten() {
        for section in &recorded.sections() {
            shown.extend(recorded.comparable(&section.calls, &section.name).exchanges);
        }
    }
    for recordings in RECORDED {
        let kernel = recordings[0].kernel;
        if kernel == Kernel::V6_18 {
            continue;
        }
        let [lacking, mut invented] = exchanges(kernel);
        if kernel != Kernel::V7_2 {
            invented.retain(|order| !shown.contains(order));
        }
        let name = kernel.name();
        let known = |order: &String| kernel == Kernel::V6_17 && order == NOTHING_FOUND;
        let lacking: Vec<_> = lacking.into_iter().filter(|it| !known(it)).collect();
        assert!(lacking.is_empty(), "only on {name}: {lacking:#?}");
        assert!(
            invented.is_empty(),
            "only in the simulated {name}: {invented:#?}"
        );
    }
}
