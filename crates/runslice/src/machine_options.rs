//! The machine to simulate, as options of the verbs that simulate.

use std::path::Path;

use ask::machine::{CPUS_MAX, MachineChange, SMT_MAX, parse_governor, parse_hz, parse_smt_share};
use ask::machine_file::file_of;
use clap::Args;
use model::{Governor, Hardware, Interleave, Kernel, Profile, SmtShare, Textbook};

use crate::kernel;

/// Changes to the simulated machine. Other settings stay as in the workload or bundle.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct MachineOptions {
    /// CPUs of the machine, 1 to 1024. Default: as in the workload or bundle.
    #[arg(long, value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(1..=CPUS_MAX.into()))]
    cpus: Option<u16>,

    /// Hardware threads of each core, 1 or 2. Default: as in the workload or bundle.
    #[arg(long, value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(1..=SMT_MAX.into()))]
    smt: Option<u16>,

    /// CPUs that share a last-level cache; 0 for all CPUs of a NUMA node. Default: as in the
    /// workload or bundle.
    #[arg(long, value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(0..=CPUS_MAX.into()))]
    llc: Option<u16>,

    /// CPUs of each NUMA node; 0 for all CPUs. Default: as in the workload or bundle.
    #[arg(long, value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(0..=CPUS_MAX.into()))]
    node: Option<u16>,

    /// Timer ticks per second, the kernel's HZ: 100, 250, 300 or 1000. Default: as in the workload
    /// or bundle.
    #[arg(long, value_name = "NUMBER", value_parser = parse_hz)]
    hz: Option<u32>,

    /// Kernel version to simulate: 6.12 or 6.16 to 7.3. Default: as in the workload or bundle.
    #[arg(long, value_name = "VERSION", value_parser = kernel::parse)]
    kernel: Option<Kernel>,

    /// Simulate a machine as textbooks have it: `textbook`, with one CPU, no costs and no ticks, so
    /// that a quantum ends to the nanosecond. Default: a computer. See docs/guide/src/lab.md.
    ///
    /// Whoever arrives just when a quantum ends stands in the queue before the task whose quantum
    /// it is, or behind it with `textbook:arrivals=last`.
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Textbook>)]
    machine: Option<Textbook>,

    /// Cost of context switches, wakeups and other actions: `ideal` (none), `default-v0`, or a file
    /// with your own costs. Default: as in the workload or bundle.
    ///
    /// Built-in workloads, and files that name no profile, have `ideal`. See docs/profiles.md.
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,

    /// What a task keeps of its speed while the other thread of its core executes, too: low (0.5),
    /// typical (0.6), high (0.68), or a number of 0.1 to 1. Default: as in the workload or bundle,
    /// else all of it.
    #[arg(long, value_name = "NAME|SHARE", value_parser = parse_smt_share)]
    smt_share: Option<SmtShare>,

    /// Let CPUs come in between while the policy's code runs on another one: `timed` (code takes
    /// the time that the profile says), `seed:N[,every=N][,stall=TIME]` (a CPU stops before about
    /// every Nth access to shared memory), or `at=POINT:TIME[+...]`. Default: callbacks are atomic.
    ///
    /// The same request gives the same events. Finds races between callbacks: see docs/races.md.
    #[arg(long, value_name = "HOW", value_parser = str::parse::<Interleave>)]
    interleave: Option<Interleave>,

    /// Machine whose CPUs differ: a name of `list --machines`, or a file with your own. It says the
    /// number of CPUs, their speeds and which belong together. Default: as in the workload or
    /// bundle. See docs/hardware.md.
    #[arg(long, value_name = "NAME|FILE")]
    hardware: Option<String>,

    /// Who chooses the frequencies of the hardware: performance (the highest), powersave (the
    /// lowest), schedutil (as the policy asks) or hwp (the CPU: the highest). Default: as the
    /// hardware says.
    #[arg(long, value_name = "NAME", value_parser = parse_governor)]
    governor: Option<Governor>,
}

impl MachineOptions {
    /// The file that the profile is read from, if one is named, so that no result is written over
    /// it.
    pub fn profile_file(&self) -> Option<&Path> {
        self.profile.as_deref().and_then(file_of::<Profile>)
    }

    /// The file that the hardware is read from, if one is named.
    pub fn hardware_file(&self) -> Option<&Path> {
        self.hardware.as_deref().and_then(file_of::<Hardware>)
    }

    /// As a question has them.
    pub fn asked(&self) -> MachineChange {
        MachineChange {
            cpus: self.cpus,
            smt: self.smt,
            llc: self.llc,
            node: self.node,
            hz: self.hz,
            kernel: self.kernel,
            profile: self.profile.clone(),
            smt_share: self.smt_share,
            interleave: self.interleave.clone(),
            hardware: self.hardware.clone(),
            governor: self.governor,
            corner: None,
            textbook: self.machine,
        }
    }
}
