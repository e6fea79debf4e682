//! The simulated kernel, as an object is linked against it.

use std::sync::OnceLock;

use bpf::{HostFunction, Kconfig, Target};
use model::{Kernel, MachineSpec};

use crate::kernels::rules_of;
use crate::kfunc::CPU_ONLY;
use crate::machine::Machine;
use crate::ops::CID_FORM;

/// The kernel of `machine`: types, constants, functions, version, configuration.
///
/// # Panics
/// If our own header does not compile to types that can be read; a test sees to that.
#[must_use]
pub fn target(machine: &MachineSpec) -> Target {
    // Reading the types takes as long as 10 ms of simulated time, so the copies of a process share
    // them. They are the same whoever reads them first.
    static TARGETS: [OnceLock<Target>; Kernel::ALL.len()] =
        [const { OnceLock::new() }; Kernel::ALL.len()];
    TARGETS[machine.kernel as usize]
        .get_or_init(|| of_kernel(machine.kernel))
        .clone()
        .with_kconfig("CONFIG_HZ", Kconfig::Int(i64::from(machine.hz)))
}

/// The kernel but for what a machine says of it.
fn of_kernel(kernel: Kernel) -> Target {
    let [_, major, minor, patch] = kernel.version_code().to_be_bytes();
    let version = (major, minor, patch);
    let types = rules_of(kernel).types;
    // Source: configurations of Debian's 6.18.15 and 7.2.12 for amd64.
    Target::new(kernel.name(), version, types)
        .expect("the simulated kernel's types are well formed")
        .with_denied(CID_FORM, CPU_ONLY)
        .with_kconfig("CONFIG_NR_CPUS", Kconfig::Int(1024))
        .with_kconfig("CONFIG_PREEMPT_RCU", Kconfig::Bool(true))
        .with_kconfig("CONFIG_X86_64", Kconfig::Bool(true))
        .with_kconfig("CONFIG_SMP", Kconfig::Bool(true))
        .with_kconfig("CONFIG_NUMA", Kconfig::Bool(true))
        .with_kconfig("CONFIG_CC_VERSION_TEXT", Kconfig::Text("gcc".into()))
        .with_kconfig("CONFIG_LOCALVERSION", Kconfig::Text(String::new()))
}

/// The functions that the simulated kernel offers to policies, beside those that the object
/// machine has built in.
#[must_use]
pub fn host_functions() -> Vec<HostFunction<Machine>> {
    crate::kfunc::table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_reads_the_configuration_that_objects_are_linked_with() {
        let machine = MachineSpec {
            hz: 300,
            ..MachineSpec::default()
        };
        let config = target(&machine).configuration();
        for line in [
            "CONFIG_HZ=300",
            "CONFIG_PREEMPT_RCU=y",
            "CONFIG_CC_VERSION_TEXT=\"gcc\"",
        ] {
            assert!(config.lines().any(|it| it == line), "{line}: {config}");
        }
        assert!(!config.contains("LINUX_KERNEL_VERSION"), "{config}");
    }

    /// Offsets as libbpf computes them from `/sys/kernel/btf/vmlinux`.
    #[test]
    fn loaders_find_what_they_look_up_in_the_kernels_types() {
        for kernel in Kernel::ALL {
            let target = target(&MachineSpec {
                kernel,
                ..MachineSpec::default()
            });
            assert_eq!(target.btf()[..2], [0x9f, 0xeb], "raw BTF");
            let value = "bpf_struct_ops_sched_ext_ops";
            let data = target.field(value, "data").expect("the callbacks");
            assert_eq!(data.offset, 64, "in a line of the cache of its own");
            assert_eq!(
                target.field(value, "common.state").map(|it| it.offset),
                Ok(4)
            );
            assert!(target.size_of("btf_trace_sched_switch").is_ok());
            for function in [
                "bpf_scx_reg",
                "scx_tick",
                "cpuset_write_resmask",
                "bpf_iter_task",
            ] {
                assert!(target.prototype(function).is_some(), "{function}");
            }
        }
        let default = target(&MachineSpec {
            kernel: Kernel::V6_18,
            ..MachineSpec::default()
        });
        assert_eq!(default.size_of("bpf_struct_ops_sched_ext_ops"), Ok(512));
    }
}
