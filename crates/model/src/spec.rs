//! The policy of a run, and what is left of a run besides its events.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Exit, Nanos, SimTime, TaskId};

/// A policy to run: the bytes of its object, and what to set in it before it is loaded.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// How tables call it.
    pub name: String,
    /// The object file, byte for byte as a kernel would load it.
    pub object: Arc<[u8]>,
    /// Which of several tables of callbacks to attach; `None` when there is one.
    pub table: Option<String>,
    /// Knobs and raw variables to set, as the user wrote them: name and value.
    pub set: Vec<(String, String)>,
    /// Programs to run as the policy's loader would, in this order.
    pub setup: Vec<SetUp>,
    /// The scheduler's own program, which loads and attaches its object by itself; `object` is
    /// empty then, and nothing is set.
    pub program: Option<Program>,
    /// Schedulers that are attached below it, in this order where times are equal.
    pub subs: Vec<SubSpec>,
}

impl PolicySpec {
    /// The object alone: nothing is set in it, run before it or attached below it.
    #[must_use]
    pub fn of_object(name: impl Into<String>, object: Arc<[u8]>) -> Self {
        Self {
            name: name.into(),
            object,
            table: None,
            set: Vec::new(),
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        }
    }
}

/// A scheduler that is attached below another one: it schedules the tasks of a cgroup.
#[derive(Clone, Debug)]
pub struct SubSpec {
    /// The cgroup: its name in the workload, or where it is (`/a/b`).
    pub cgroup: String,
    /// Its policy, an object; nothing is attached below it by this.
    pub policy: PolicySpec,
    /// When it is attached: so long after the run's begin, but not before the root.
    pub attach_at: Nanos,
    /// When it is taken off; `None`: with the root.
    pub detach_at: Option<Nanos>,
}

impl SubSpec {
    /// Schedulers that may come below one root.
    pub const MOST: usize = 100;
}

/// A scheduler's own program, its loader, and how it is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The command and its arguments; at least the command.
    pub command: Vec<String>,
    /// Whether its threads take no CPU of the simulated machine.
    pub free: bool,
    /// Whether it may use the network.
    pub net: bool,
    /// A folder in which it may write, besides what the simulated machine shows it.
    pub folder: Option<PathBuf>,
    /// Where what it writes goes to; `None`: only the last lines are kept.
    pub output: Option<PathBuf>,
    /// Where its metrics go to, a line each, and how often it is asked for them.
    pub stats: Option<(PathBuf, Nanos)>,
    /// A number of the bytes of the command's file, for keys of results; 0 if it is not known.
    pub file: u128,
    /// A recording in place of the program; the command only says what was recorded.
    pub recorded: Option<Recorded>,
}

/// Recording of a program's calls, to be played back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The recording, as crate `loader` reads it.
    pub bytes: Arc<[u8]>,
    /// Only up to the end of the turn in which the program attached its policy: it does nothing
    /// afterwards, so that the recording fits any load and seed.
    pub setup_only: bool,
}

/// A run of one of an object's `SEC("syscall")` programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// The program's name.
    pub program: String,
    /// Its argument's values as the user wrote them, by commas; empty: all zero.
    pub args: String,
    /// When it is run.
    pub when: SetUpTime,
}

/// When a set-up program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetUpTime {
    /// When the object is loaded and its table is not attached yet.
    Loaded,
    /// As soon as the table is attached.
    Attached,
}

/// How one CPU spent the run. The four spans sum to the run's length, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Tasks ran.
    pub run: Nanos,
    /// Interrupts and work of higher classes that is no task of the workload.
    pub stolen: Nanos,
    /// Nothing to do.
    pub idle: Nanos,
    /// Switches, callbacks, kernel work charged by the profile.
    pub overhead: Nanos,
    /// Context switches, idle included.
    pub switches: u64,
}

/// How one task spent its life. The four spans sum to its lifetime, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// On a CPU, executing its own work.
    pub run: Nanos,
    /// On a CPU, but interrupted or waiting for kernel work to finish.
    pub stolen: Nanos,
    /// Runnable, not on a CPU.
    pub wait: Nanos,
    /// Not runnable.
    pub sleep: Nanos,
}

/// Work done on a machine whose CPUs differ. Work is time on a CPU of capacity 1024 that has its
/// core to itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HardwareUse {
    /// One entry a CPU.
    pub cpus: Vec<CpuUse>,
    /// By name, in the order of the workload.
    pub groups: Vec<(String, CpuUse)>,
    /// Energy that is there without any CPU, femtojoules.
    pub base_fj: u128,
    /// Energy of what CPUs share, femtojoules.
    pub cluster_fj: u128,
    /// Whether energies are known; else they are zero.
    pub has_energy: bool,
    /// What the energies have, in the words of the hardware's file.
    pub parts: String,
    /// The hardware's name; empty: a workload said how CPUs differ.
    pub name: String,
}

/// How long a CPU had a frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyUse {
    /// Kilohertz.
    pub khz: u32,
    /// Time in which the CPU executed something.
    pub executing: Nanos,
    /// Time in which it idled.
    pub idle: Nanos,
}

/// Work that a CPU did, or that was done for a group of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Work done, rounded down.
    pub work: Nanos,
    /// Time in which it was done.
    pub executed: Nanos,
    /// The part of that time in which the other thread of the core executed, too.
    pub shared: Nanos,
    /// The part in which a task was too much for its CPU while a bigger one idled that it may use.
    pub misfit: Nanos,
    /// The part in which the other thread executed, too, while a whole core idled that the task may
    /// use.
    pub halved: Nanos,
    /// The part in which a task would have fitted the smallest CPUs, of which one idled that it may
    /// use.
    pub misplaced: Nanos,
    /// The part in which its memory was in another node.
    pub remote: Nanos,
    /// The part that was not work, by what took it: the capacity of CPUs, their frequency, the
    /// other thread of the core, memory.
    pub lost: [Nanos; 4],
    /// Energy, femtojoules: of a CPU in the whole run, of a group while its tasks executed.
    pub energy_fj: u128,
    /// Of a CPU: the frequencies that it had.
    pub frequencies: Vec<FrequencyUse>,
    /// Of a group: the classes of CPUs on which its tasks executed.
    pub classes: Vec<ClassUse>,
}

/// What was done for a group on the CPUs of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassUse {
    /// The name of the class.
    pub class: String,
    /// Time in which it executed there.
    pub executed: Nanos,
    /// Work done there, rounded down.
    pub work: Nanos,
}

impl CpuUse {
    /// Work done in the time in which it was done, in thousandths, rounded: the mean rate.
    #[must_use]
    pub fn rate_permille(&self) -> u64 {
        let executed = u128::from(self.executed.get()).max(1);
        ((u128::from(self.work.get()) * 1000 + executed / 2) / executed) as u64
    }
}

impl HardwareUse {
    /// All CPUs together.
    #[must_use]
    pub fn total(&self) -> CpuUse {
        let mut all = CpuUse::default();
        for cpu in &self.cpus {
            all.work += cpu.work;
            all.executed += cpu.executed;
            all.shared += cpu.shared;
            all.misfit += cpu.misfit;
            all.halved += cpu.halved;
            all.misplaced += cpu.misplaced;
            all.remote += cpu.remote;
            for (sum, lost) in all.lost.iter_mut().zip(cpu.lost) {
                *sum += lost;
            }
            all.energy_fj += cpu.energy_fj;
        }
        all.energy_fj += self.base_fj + self.cluster_fj;
        all
    }
}

/// A task that the policy did not let run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starved {
    /// Which.
    pub task: TaskId,
    /// `comm[pid]`, as messages name it.
    pub name: String,
    /// How long it had been runnable without running when the run ended.
    pub waited: Nanos,
}

/// Tasks that waited for long to the end of a run, although nobody is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excused {
    /// Which, the longest wait first.
    pub tasks: Vec<Starved>,
    /// Why it is no fault of the policy, as half a sentence.
    pub why: String,
}

/// A task that sleeps until another one gives a lock back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Which.
    pub task: TaskId,
    /// The lock.
    pub lock: String,
    /// A task that has it.
    pub holder: TaskId,
}

/// A queue of messages that still grew when the run ended: nothing about waits in it is known but
/// that they grow with the duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingQueue {
    /// Its name in the workload, such as `key[2]`.
    pub name: String,
    /// The groups that take its messages.
    pub takers: Vec<u32>,
    /// Their deadlines that count from when a message was sent: group and deadline.
    pub deadlines: Vec<(u32, u32)>,
}

/// Results of a run besides its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The last moment simulated.
    pub end: SimTime,
    /// How the policy's time ended; `Unreg` when the run came to its end under it.
    pub exit: Exit,
    /// One entry a CPU.
    pub cpus: Vec<CpuTimes>,
    /// One entry a task, in the order of creation.
    pub tasks: Vec<TaskTimes>,
    /// The kernel's event counters (`scx_bpf_events`, kernel 6.18), by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Time that was no task's work, by kind, all CPUs together; empty if nothing costs anything,
    /// and on a real machine.
    pub spent: Vec<(&'static str, Nanos)>,
    /// The policy's own counters (report.bpf.h), by name, summed over CPUs.
    pub policy_counters: Vec<(String, u64)>,
    /// Text that the policy printed with `bpf_printk` and the like; at most 64 KiB.
    pub printed: String,
    /// BPF instructions retired.
    pub instructions: u64,
    /// Callbacks of the policy called.
    pub callbacks: u64,
    /// Tasks that waited at the end of the run and had done so for long, the longest wait first;
    /// empty if the policy was ejected, under a machine without a watchdog, and on a real machine.
    pub starved: Vec<Starved>,
    /// Such tasks of a run that was looked at once more, and found to be nobody's fault.
    pub excused: Option<Excused>,
    /// What CPUs did and what was done for tasks, on a machine whose CPUs differ.
    pub hardware: Option<HardwareUse>,
    /// Queues of messages that still grew at the end.
    pub growing: Vec<GrowingQueue>,
    /// Tasks that wait for a lock at the end.
    pub blocked: Vec<Blocked>,
    /// How long a task may wait before the watchdog ejects the policy; `None` on a machine without
    /// a watchdog, and on a real machine.
    pub watchdog: Option<Nanos>,
    /// Schedulers that were attached below the policy, in the order in which they came.
    pub subs: Vec<SubSummary>,
    /// Warnings that the kernel would have logged, and what only a simulator can tell: that a
    /// run ended early because nobody was left to wake anybody.
    pub notes: Vec<String>,
}

/// What became of a scheduler below the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubSummary {
    /// Where its cgroup is, as `/a/b`.
    pub cgroup: String,
    /// Name of its policy.
    pub policy: String,
    /// How many schedulers are above it: 1 to 3.
    pub level: u8,
    /// Tasks that it has owned, each counted once for every time that it came.
    pub tasks: u64,
    /// CPU time of tasks while it owned them.
    pub ran: Nanos,
    /// How its time ended: of kind `Parent` if that was with the scheduler above it.
    pub exit: Exit,
    /// Its own event counters, by name.
    pub counters: Vec<(&'static str, u64)>,
}

impl Summary {
    /// The end of the first scheduler that ended with an error: the root, else one below it. What
    /// such a run measured says nothing of the policy.
    #[must_use]
    pub fn error(&self) -> Option<&Exit> {
        let below = self.subs.iter().map(|sub| &sub.exit);
        let mut all = std::iter::once(&self.exit).chain(below);
        all.find(|exit| exit.kind.is_error())
    }

    /// What people are told of the run: of the tasks that waited for long to its end, of queues
    /// that grew to it, then the notes.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let starved =
            (!self.starved.is_empty()).then(|| format!("STARVED: {}", self.waiting(&self.starved)));
        let excused = self.excused.as_ref().map(|it| {
            let waiting = self.waiting(&it.tasks);
            format!("no fault of the policy ({}): {waiting}", it.why)
        });
        let waits = starved.into_iter().chain(excused);
        let growing = (!self.growing.is_empty()).then(|| {
            let (named, more) = named(&self.growing, |it| it.name.clone());
            let (noun, grows) = match self.growing.as_slice() {
                [_] => ("queue", "grows"),
                _ => ("queues", "grow"),
            };
            format!(
                "the {noun} {named}{more} {grows} with the duration: messages came faster than \
                 they were taken"
            )
        });
        let all = waits.chain(growing);
        all.chain(self.notes.iter().cloned()).collect()
    }

    /// How long the first few of `tasks` have waited, and what a longer run would bring.
    fn waiting(&self, tasks: &[Starved]) -> String {
        let (named, more) = named(tasks, |it| format!("{} for {}", it.name, it.waited));
        let watchdog = self.watchdog.map_or_else(String::new, |timeout| {
            let seconds = timeout.get() / 1_000_000_000;
            format!(". The watchdog would end the policy after {seconds} s")
        });
        let counted = match tasks {
            [_] => "1 task is runnable at the end and has".to_owned(),
            _ => format!("{} tasks are runnable at the end and have", tasks.len()),
        };
        format!("{counted} not run for long: {named}{more}{watchdog}")
    }
}

/// The first few of many, with commas, and dots if there are more.
fn named<T>(all: &[T], name: impl Fn(&T) -> String) -> (String, &'static str) {
    const NAMED: usize = 5;
    let named: Vec<String> = all.iter().take(NAMED).map(name).collect();
    let more = if all.len() > NAMED { ", ..." } else { "" };
    (named.join(", "), more)
}
