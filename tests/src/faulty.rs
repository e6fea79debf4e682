//! Faulty policies, each with one fault, and what is to be found in their runs.

use std::fs;
use std::path::Path;

use explain::why::Fault;

/// A policy of `policies/faulty-*.bpf.c`, a load that shows its fault, and what is to be found.
#[derive(Debug)]
pub struct Case {
    /// Its name, without `faulty-`.
    pub policy: &'static str,
    /// CPUs of the machine.
    pub cpus: u16,
    /// How long the load runs.
    pub seconds: u64,
    /// The load.
    pub workload: &'static str,
    /// The class.
    pub fault: Fault,
    /// The task, or the group, that suffers.
    pub victim: &'static str,
}

/// Tasks that wake often.
pub const SHELLS: &str = "[task.shell]\ncount = 6\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n";
/// Tasks that never sleep.
pub const HOGS: &str = "[task.hog]\ncount = 3\ndo = \"run(inf)\"\n";
/// Tasks that wake often, and one of them is bound.
pub const BOUND: &str = "[task.bound]\ncpus = \"0\"\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n\
    [task.shell]\ncount = 3\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n";

/// The twenty.
pub const CASES: &[Case] = &[
    case("drops", 2, SHELLS, Fault::Lost, "shell"),
    case("unread", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("stops", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("wrong-cpu", 2, BOUND, Fault::CpuNotAllowed, "bound"),
    case("cpu-99", 2, SHELLS, Fault::NoSuchCpu, "shell"),
    case("twice", 2, SHELLS, Fault::InsertedTwice, "shell"),
    case(
        "no-kick",
        2,
        "[task.shell]\ncpus = \"0\"\ndo = [\"setaffinity(shell, all), sleep(10ms), run(1s)\"]\n\
         [task.hog]\ncpus = \"0\"\ndo = \"run(inf)\"\n",
        Fault::ForgottenKick,
        "shell",
    ),
    case("endless-slice", 2, HOGS, Fault::CpuHeld, "hog"),
    case("endless-loop", 2, SHELLS, Fault::EndlessLoop, "shell"),
    case(
        "affinity",
        2,
        "[task.shell]\ncpus = \"0\"\n\
         do = [\"loop(5)[ run(7ms), setaffinity(moved, {0}), run(7ms), \
         setaffinity(moved, all) ]\", \
         \"run(inf)\"]\n[task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
         [task.moved]\ndo = \"run(inf)\"\n",
        Fault::Lost,
        "moved",
    ),
    case(
        "hotplug",
        3,
        "[hotplug.h]\ncpu = 2\noffline = \"50ms\"\n\
         [task.shell]\ncount = 12\ndo = \"loop(inf)[ run(3ms), sleep(1ms) ]\"\n",
        Fault::UnreadQueue,
        "shell",
    ),
    case(
        "real-time",
        1,
        "[task.shell]\ncount = 3\ndo = \"loop(inf)[ run(3ms), sleep(1ms) ]\"\n\
         [task.rt]\npolicy = \"fifo:50\"\ndo = \"loop(inf)[ sleep(50ms), run(1ms) ]\"\n",
        Fault::Lost,
        "shell",
    ),
    case(
        "vtime-wrap",
        1,
        "[task.early]\ncount = 2\ndo = \"run(inf)\"\n\
         [task.late]\ndo = [\"sleep(1500ms), run(inf)\"]\n",
        Fault::PassedOver,
        "late",
    ),
    case(
        "stream",
        1,
        "[task.hog]\ndo = \"run(inf)\"\n\
         [task.short]\ncount = 3\nnice = -5\ndo = \"loop(inf)[ run(2ms), sleep(1ms) ]\"\n",
        Fault::PassedOver,
        "hog",
    ),
    case("dead-queue", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("other-cpu", 2, BOUND, Fault::UnreachableQueue, "bound"),
    case("freed", 1, HOGS, Fault::Lost, "hog"),
    case("timer", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case(
        "weight",
        1,
        "[task.heavy]\ncount = 2\nnice = -5\ndo = \"run(inf)\"\n\
         [task.light]\ncount = 2\nnice = 5\ndo = \"run(inf)\"\n",
        Fault::UnfairShare,
        "heavy",
    ),
    case(
        "last",
        2,
        "[task.hog]\ndo = \"run(inf)\"\n",
        Fault::UnreadQueue,
        "hog",
    ),
];

/// Found while the verdicts were read for mistakes, or made for faults that the judge was not
/// written for; they are not part of the twenty.
pub const MORE: &[Case] = &[
    case("renews", 1, HOGS, Fault::CpuHeld, "hog"),
    case("stays", 1, HOGS, Fault::CpuHeld, "hog"),
    case("tires", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("quits", 2, SHELLS, Fault::OwnError, "shell"),
    case(
        "half",
        1,
        "[task.child]\ndo = \"run(1813us)\"\n[task.parent]\ndo = \"pool(child, 15, 15)\"\n",
        Fault::UnreadQueue,
        "child",
    ),
    case("lock", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case(
        "head",
        3,
        "[task.hog]\ncount = 2\ncpus = \"0\"\ndo = \"run(7ms)\"\n\
         [task.bound]\ncpus = \"1\"\ndo = \"run(1ms)\"\n",
        Fault::Skipped,
        "bound",
    ),
    case(
        "wakers",
        2,
        "[task.hog]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
         [task.shell]\ncount = 6\ndo = \"loop(inf)[ run(4ms), sleep(1ms) ]\"\n",
        Fault::PassedOver,
        "hog",
    ),
    case(
        "central",
        2,
        "[task.bound]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
         [task.shell]\ncpus = \"0\"\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::UnreachableQueue,
        "bound",
    ),
    case(
        "map-full",
        1,
        "[task.crowd]\ncount = 80\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::Lost,
        "crowd",
    ),
    case(
        "vtime-unit",
        1,
        "[task.hog]\ncount = 2\ndo = \"run(inf)\"\n\
         [task.shell]\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::PassedOver,
        "shell",
    ),
];

/// Kinds of faults that the judge was not written for. The class and the line of each were
/// written down before it was first asked about them.
pub const KEPT_ASIDE: &[Case] = &[
    case(
        "ring",
        1,
        "[task.crowd]\ncount = 40\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::Lost,
        "crowd",
    ),
    case(
        "kicks-self",
        4,
        "[task.shell]\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::ForgottenKick,
        "shell",
    ),
    case(
        "lonely",
        4,
        "[task.rt]\ncount = 2\ncpus = \"0-1\"\npolicy = \"fifo:50\"\n\
         do = \"sleep(102500us), run(inf)\"\n\
         [task.shell]\ncount = 4\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::UnreadQueue,
        "shell",
    ),
    case(
        "credit",
        1,
        "[task.hog]\ndo = \"run(inf)\"\n[task.late]\ncount = 2\ndo = \"sleep(2500ms), run(inf)\"\n",
        Fault::PassedOver,
        "hog",
    ),
    case(
        "keeps-local",
        2,
        "[task.rt]\ncpus = \"0\"\npolicy = \"fifo:50\"\ndo = \"sleep(101500us), run(inf)\"\n\
         [task.shell]\ncount = 3\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::CpuHeld,
        "shell",
    ),
    case(
        "batch",
        2,
        "[task.bound]\ncpus = \"0\"\ndo = \"run(inf)\"\n\
         [task.hog]\ncount = 3\ndo = \"run(inf)\"\n",
        Fault::Lost,
        "bound",
    ),
    case(
        "tokens",
        1,
        "[task.shell]\ndo = \"loop(inf)[ run(100us), sleep(870us) ]\"\n",
        Fault::UnreadQueue,
        "shell",
    ),
];

/// Kinds of faults that were not in the corpus, written after `hunt` had missed two of those
/// above. Class, victim and line of each were written down before `explain` or `hunt` was asked.
pub const LATER: &[Case] = &[
    case(
        "front",
        1,
        "[task.hog]\ndo = \"run(inf)\"\n\
         [task.shell]\ncount = 2\nstart = \"100ms\"\n\
         do = \"loop(inf)[ run(4ms), sleep(1ms) ]\"\n",
        Fault::PassedOver,
        "hog",
    ),
    case(
        "anticipates",
        1,
        "[task.short]\ndo = \"run(5ms)\"\n\
         [task.shell]\ncount = 2\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::UnreadQueue,
        "shell",
    ),
    case(
        "claims-twice",
        4,
        "[task.shell]\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::ForgottenKick,
        "shell",
    ),
    case(
        "shift",
        1,
        "[task.heavy]\nnice = -20\ndo = \"run(inf)\"\n\
         [task.light]\ndo = \"run(inf)\"\n",
        Fault::CpuHeld,
        "light",
    ),
    case(
        "refills",
        2,
        "[task.hog]\ncount = 4\ndo = \"run(inf)\"\n\
         [task.bound]\ncpus = \"1\"\ndo = \"sleep(1ms), run(inf)\"\n",
        Fault::LocalRefilled,
        "bound",
    ),
    case(
        "cgroup-move",
        1,
        "[cgroup.other]\n[task.moved]\n\
         do = \"sleep(100ms), cgroup_move(self, other), run(inf)\"\n\
         [task.shell]\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        Fault::UnreadQueue,
        "moved",
    ),
];

/// Every case.
pub fn all() -> impl Iterator<Item = &'static Case> {
    let first = CASES.iter().chain(MORE);
    first.chain(KEPT_ASIDE).chain(LATER)
}

/// Policies of which `explain` names another line than the stated one, and that line.
pub const WRONG_LINES: &[(&str, u32)] = &[("claims-twice", 14)];

const fn case(
    policy: &'static str,
    cpus: u16,
    workload: &'static str,
    fault: Fault,
    victim: &'static str,
) -> Case {
    Case {
        policy,
        cpus,
        seconds: 4,
        workload,
        fault,
        victim,
    }
}

/// The lines of the source that say "the fault", from 1.
///
/// # Panics
/// If there is no such policy.
#[must_use]
pub fn marked(policy: &str) -> Vec<u32> {
    let name = format!("policies/faulty-{policy}.bpf.c");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(path).expect("the source is there");
    let lines = (1..).zip(text.lines());
    let marked = lines.filter(|(_, line)| line.contains("/* the fault */"));
    marked.map(|(number, _)| number).collect()
}
