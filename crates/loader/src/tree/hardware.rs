//! The files that tell programs how CPUs differ: capacities, frequencies, the energy model.
//!
//! Sources: `drivers/base/arch_topology.c`, `drivers/acpi/cppc_acpi.c`, `cpufreq.c` and
//! `amd-pstate.c` of `drivers/cpufreq`, and `kernel/power/energy_model.c`, kernel 6.18.

use std::io;

use model::{
    CAPACITY_ONE, CpuClass, CpuGroups, CpuId, CpuPlaces, Governor, Hardware, MachineSpec, Sysfs,
};

use super::{FolderTree, KHZ, group, ranges};

/// The numbers of the core and of the cluster of `cpu`. Device trees of arm count the cores of each
/// cluster, so that a number comes several times; clusters are here the CPUs of one clock.
///
/// Source: `parse_cluster()`, `drivers/base/arch_topology.c`, kernel 6.18.
pub(super) fn core_and_cluster(
    machine: &MachineSpec,
    places: &CpuPlaces,
    cpu: CpuId,
) -> (u16, u16) {
    let usual = (places.cores.of(cpu), places.l2s.of(cpu));
    let hardware = machine.hardware.as_deref();
    let arm = hardware.filter(|it| it.sysfs == Some(Sysfs::Arm));
    let Some(domains) = arm.map(Hardware::domains) else {
        return usual;
    };
    let cluster = domains.with(cpu);
    if cluster.len() == 1 {
        return usual;
    }
    let own = places.cores.of(cpu);
    let mut before: Vec<u16> = cluster.iter().map(|other| places.cores.of(*other)).collect();
    before.retain(|core| *core < own);
    before.sort_unstable();
    before.dedup();
    (before.len() as u16, domains.of(cpu))
}

impl FolderTree {
    /// What the kind of computer tells of `cpu`, whose files are below `base`.
    pub(super) fn capacity(&self, machine: &MachineSpec, cpu: CpuId, base: &str) -> io::Result<()> {
        let hardware = machine.hardware.as_deref();
        let class = hardware.map(|it| it.class(cpu.0));
        let capacity = class.map_or(CAPACITY_ONE, CpuClass::told);
        let Some((sysfs, class)) = hardware.and_then(|it| it.sysfs).zip(class) else {
            self.line(&format!("{base}/acpi_cppc/highest_perf"), 100)?;
            self.line(&format!("{base}/cpufreq/base_frequency"), KHZ)?;
            return self.line(&format!("{base}/cpu_capacity"), capacity);
        };
        if sysfs == Sysfs::Arm {
            return self.line(&format!("{base}/cpu_capacity"), capacity);
        }
        if let Some(perf) = class.cppc {
            self.line(&format!("{base}/acpi_cppc/highest_perf"), perf)?;
        }
        if let Some(khz) = class.base_khz {
            self.line(&format!("{base}/cpufreq/base_frequency"), khz)?;
        }
        if let Some(rank) = class.prefcore.filter(|_| sysfs == Sysfs::Amd) {
            let file = format!("{base}/cpufreq/amd_pstate_prefcore_ranking");
            self.line(&file, rank)?;
            let file = format!("{base}/cpufreq/amd_pstate_highest_perf");
            self.line(&file, rank)?;
        }
        Ok(())
    }

    /// The frequencies of `cpu`, whose files are below `base`.
    pub(super) fn frequencies(
        &self,
        machine: &MachineSpec,
        cpu: CpuId,
        base: &str,
    ) -> io::Result<()> {
        let hardware = machine.hardware.as_deref();
        let class = hardware.map(|it| it.class(cpu.0));
        let opps = class.map_or(&[][..], |class| &class.opps);
        let least = opps.first().map_or(KHZ, |opp| opp.khz);
        let most = opps.last().map_or(KHZ, |opp| opp.khz);
        let governor = hardware.map_or(Governor::Performance, |it| it.governor);
        let now = if governor == Governor::Powersave { least } else { most };
        for (name, khz) in [
            ("cpuinfo_max_freq", most),
            ("cpuinfo_min_freq", least),
            ("scaling_max_freq", most),
            ("scaling_min_freq", least),
            ("scaling_cur_freq", now),
        ] {
            self.line(&format!("{base}/cpufreq/{name}"), khz)?;
        }
        let latency = class.map_or(0, |class| class.transition_ns);
        self.line(&format!("{base}/cpufreq/cpuinfo_transition_latency"), latency)?;
        let governor = match governor {
            // Drivers that leave the choice to the CPU have two, and begin with this one.
            Governor::Hwp => "powersave",
            governor => governor.name(),
        };
        self.line(&format!("{base}/cpufreq/scaling_governor"), governor)?;
        let alone = cpu.to_string();
        let related = hardware.map_or(alone, |it| group(&it.domains(), cpu));
        self.line(&format!("{base}/cpufreq/related_cpus"), related)?;
        if hardware.is_some_and(|it| it.sysfs == Some(Sysfs::Arm)) && !opps.is_empty() {
            let all: Vec<_> = opps.iter().map(|opp| opp.khz.to_string()).collect();
            let file = format!("{base}/cpufreq/scaling_available_frequencies");
            self.line(&file, all.join(" "))?;
        }
        Ok(())
    }

    /// Writes the frequency that each CPU has now, kHz.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn show_frequencies(&self, khz: &[u32]) -> io::Result<()> {
        khz.iter().enumerate().try_for_each(|(cpu, khz)| {
            self.line(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"), khz)
        })
    }

    /// The kernel's energy model in debugfs, if there is one.
    pub(super) fn energy_model(&self, hardware: &Hardware) -> io::Result<()> {
        let has_power = hardware.classes.iter().all(CpuClass::has_power);
        if hardware.sysfs != Some(Sysfs::Arm) || !has_power {
            return Ok(());
        }
        let domains: CpuGroups = hardware.domains();
        for cpus in domains.iter() {
            let class = hardware.class(cpus[0].0);
            let base = format!("sys/kernel/debug/energy_model/cpu{}", cpus[0]);
            self.line(&format!("{base}/cpus"), ranges(cpus))?;
            // EM_PERF_DOMAIN_MICROWATTS
            self.line(&format!("{base}/flags"), "0x1")?;
            for (at, opp) in class.opps.iter().enumerate() {
                let state = format!("{base}/ps:{}", opp.khz);
                for (name, value) in [
                    ("frequency", opp.khz.into()),
                    ("performance", class.performance(at)),
                    ("power", opp.uw.unwrap_or(0)),
                    ("cost", class.cost(at).unwrap_or(0)),
                    ("inefficient", class.is_inefficient(at).into()),
                ] {
                    self.line(&format!("{state}/{name}"), value)?;
                }
            }
        }
        Ok(())
    }
}
