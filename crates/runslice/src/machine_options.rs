//! The machine to simulate, as options of the verbs that simulate.

use std::path::Path;

use ask::machine::MachineChange;
use clap::Args;
use model::Kernel;

use crate::{kernel, profile};

/// Changes to the simulated machine. Other settings stay as in the workload or bundle.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct MachineOptions {
    /// CPUs of the machine, 1 to 1024. Default: as in the workload or bundle.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,

    /// Hardware threads of each core, 1 or 2. Default: as in the workload or bundle.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=2))]
    smt: Option<u16>,

    /// CPUs that share a last-level cache; 0 for all CPUs of a NUMA node. Default: as in the
    /// workload or bundle.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=1024))]
    llc: Option<u16>,

    /// CPUs of each NUMA node; 0 for all CPUs. Default: as in the workload or bundle.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=1024))]
    node: Option<u16>,

    /// Timer ticks per second, the kernel's HZ: 100, 250, 300 or 1000. Default: as in the workload
    /// or bundle.
    #[arg(long, value_name = "NUMBER", value_parser = parse_hz)]
    hz: Option<u32>,

    /// Kernel version to simulate: 6.12 or 6.16 to 7.3. Default: as in the workload or bundle.
    #[arg(long, value_name = "VERSION", value_parser = kernel::parse)]
    kernel: Option<Kernel>,

    /// Cost of context switches, wakeups and other actions: `ideal` (none), `default-v0`, or a file
    /// with your own costs. Default: as in the workload or bundle.
    ///
    /// Built-in workloads, and files that name no profile, have `ideal`. See docs/profiles.md.
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
}

impl MachineOptions {
    /// The file that the profile is read from, if one is named, so that no result is written over
    /// it.
    pub fn profile_file(&self) -> Option<&Path> {
        self.profile.as_deref().and_then(profile::file_of)
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
        }
    }
}

/// The tick rates that a kernel can be configured with (kernel 6.18, kernel/Kconfig.hz).
fn parse_hz(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(hz @ (100 | 250 | 300 | 1000)) => Ok(hz),
        _ => Err("a kernel ticks 100, 250, 300 or 1000 times a second".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_ticks_at_four_rates() {
        assert_eq!(
            [100, 250, 300, 1000].map(|hz| parse_hz(&hz.to_string()).unwrap()),
            [100, 250, 300, 1000]
        );
        assert!(parse_hz("123").is_err() && parse_hz("").is_err());
    }
}
