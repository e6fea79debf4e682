//! What stands in the way of a policy, said before anything is attached.
//!
//! Looking and judging are apart: [`MachineFacts`] are read from files below a root that tests
//! choose, and [`judge`] knows only facts.

mod config;
mod functions;
mod groups;

use std::fs;
use std::path::Path;

use model::KernelConfig;

use crate::{ClassState, Holder, SchedExt};

pub use functions::{FunctionFault, function_faults};
pub use groups::GroupRule;

/// The oldest kernel that policies are tested on.
const OLDEST: (u32, u32) = (6, 16);
/// The newest one.
const NEWEST: (u32, u32) = (7, 3);
/// `CAP_SYS_ADMIN` (include/uapi/linux/capability.h, kernel 6.18).
const CAP_SYS_ADMIN: u32 = 21;

/// Facts about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFacts {
    /// The kernel's version as it calls itself, such as `6.18.15+deb13-amd64`.
    pub release: String,
    /// Phase of the kernel's sched_ext; `None`: the kernel has none.
    pub state: Option<ClassState>,
    /// The policy that is attached now.
    pub attached: Option<String>,
    /// The process that has attached it.
    pub holder: Option<Holder>,
    /// Options that the kernel was built without, among those that matter here; empty also where
    /// it does not tell.
    pub lacking: Vec<&'static str>,
    /// The kernel describes its own types.
    pub has_types: bool,
    /// This process may administer the system.
    pub is_administrator: bool,
    /// The kernel interprets programs instead of translating them (`net.core.bpf_jit_enable`).
    pub is_interpreting: bool,
    /// The kernel hides its memory from programs (lockdown mode `confidentiality`).
    pub is_locked_down: bool,
    /// CPUs that were taken from the scheduler at boot (`isolcpus=domain`), as the kernel lists
    /// them; empty for none.
    pub isolated: String,
    /// CPUs without a tick (`nohz_full=`), as the kernel lists them; empty for none.
    pub tickless: String,
    /// SysRq-S, which detaches any policy, is switched on.
    pub has_sysrq: bool,
    /// Groups of processes with a limit or share that only the kernel's own scheduler enforces,
    /// each with the reason.
    pub groups: Vec<(String, GroupRule)>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A policy cannot be attached.
    Blocks,
    /// Nobody has tried policies there; attached only when told to.
    Untested,
    /// A limit that somebody relies on would stop to work; attached only when told to ignore it.
    Breaks,
    /// Something behaves otherwise while a policy is attached.
    Changes,
}

/// Something that the user should know beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightFinding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub way_out: String,
}

impl MachineFacts {
    /// Looks at the machine through the files below `root`, which is `/` but in tests.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        let class = SchedExt::below(root);
        let status = read(root, "proc/self/status");
        let lockdown = read(root, "sys/kernel/security/lockdown");
        let release = read(root, "proc/sys/kernel/osrelease");
        Self {
            lacking: config::lacking(root, &release),
            release,
            state: class.state(),
            attached: class.policy(),
            holder: class.policy().and_then(|_| Holder::below(root)),
            has_types: root.join("sys/kernel/btf/vmlinux").is_file(),
            is_administrator: has_capability(&status, CAP_SYS_ADMIN),
            is_interpreting: read(root, "proc/sys/net/core/bpf_jit_enable") == "0",
            is_locked_down: lockdown.contains("[confidentiality]"),
            isolated: read(root, "sys/devices/system/cpu/isolated"),
            tickless: cpu_list(&read(root, "sys/devices/system/cpu/nohz_full")),
            has_sysrq: sysrq_detaches(&read(root, "proc/sys/kernel/sysrq")),
            groups: groups::below(&root.join("sys/fs/cgroup")),
        }
    }
}

/// What the facts mean for whoever wants to attach a policy; the worst first.
#[must_use]
pub fn judge(facts: &MachineFacts) -> Vec<PreflightFinding> {
    let mut findings = of_the_kernel(facts);
    findings.extend(of_the_system(facts));
    for rule in [GroupRule::Quota, GroupRule::Weight, GroupRule::Clamp] {
        let groups = facts.groups.iter().filter(|(_, it)| *it == rule);
        let names: Vec<&str> = groups.map(|(name, _)| name.as_str()).collect();
        findings.extend(rule.finding(&names));
    }
    findings.extend(changes(facts));
    findings.sort_by_key(|finding| finding.severity as u8);
    findings
}

fn finding(severity: Severity, what: impl Into<String>, way_out: &str) -> PreflightFinding {
    PreflightFinding {
        severity,
        what: what.into(),
        way_out: way_out.to_owned(),
    }
}

/// Why the kernel takes no policy.
fn of_the_kernel(facts: &MachineFacts) -> Vec<PreflightFinding> {
    let mut findings = Vec::new();
    match facts.state {
        None => findings.push(finding(
            Severity::Blocks,
            no_sched_ext(facts),
            "boot a kernel of 6.16 or newer with CONFIG_SCHED_CLASS_EXT=y, or try the policy in \
             one: runslice vm -- runslice run POLICY",
        )),
        Some(ClassState::Disabled) => {}
        Some(_) => findings.push(finding(
            Severity::Blocks,
            occupied(facts),
            &way_past(facts.holder.as_ref()),
        )),
    }
    if facts.state.is_some() && version(&facts.release).is_none_or(|version| version < OLDEST) {
        findings.push(finding(
            Severity::Untested,
            format!(
                "the kernel {} is older than {}.{}, the oldest that is tested",
                facts.release, OLDEST.0, OLDEST.1
            ),
            "boot a newer kernel, try one: runslice vm -- runslice run POLICY, or give --untested",
        ));
    }
    if facts.state.is_some() && version(&facts.release).is_some_and(|version| version > NEWEST) {
        findings.push(finding(
            Severity::Changes,
            format!(
                "the kernel {} is newer than {}.{}, the newest that is tested",
                facts.release, NEWEST.0, NEWEST.1
            ),
            "policies are attached all the same; what the kernel refuses, it says itself",
        ));
    }
    if facts.state.is_some() && !facts.has_types {
        findings.push(finding(
            Severity::Blocks,
            "the kernel does not describe its types (/sys/kernel/btf/vmlinux)",
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        ));
    }
    findings
}

/// Why the system, as it is set up, takes no policy from this process.
fn of_the_system(facts: &MachineFacts) -> Vec<PreflightFinding> {
    let mut findings = Vec::new();
    let mut find =
        |what: &str, way_out: &str| findings.push(finding(Severity::Blocks, what, way_out));
    if facts.is_interpreting {
        // add_kfunc_call() in kernel/bpf/verifier.c, 6.18.
        find(
            "the kernel does not translate programs (net.core.bpf_jit_enable=0), and only \
             translated ones can call it",
            "sysctl net.core.bpf_jit_enable=1 switches that on",
        );
    }
    if !facts.is_administrator {
        find(
            "this process may not administer the system",
            "run it as root: sudo runslice run POLICY",
        );
    }
    if facts.is_locked_down {
        find(
            "the kernel is locked down (confidentiality) and lets no program read its memory",
            "boot without lockdown=confidentiality",
        );
    }
    if !facts.isolated.is_empty() {
        find(
            &format!(
                "CPUs {} are isolated, which sched_ext refuses",
                facts.isolated
            ),
            "boot without isolcpus=",
        );
    }
    findings
}

/// What does not keep a policy out but makes a difference to it.
fn changes(facts: &MachineFacts) -> Vec<PreflightFinding> {
    let mut findings = Vec::new();
    let mut find =
        |what: &str, way_out: &str| findings.push(finding(Severity::Changes, what, way_out));
    if facts.state.is_some() && !facts.has_sysrq {
        find(
            "SysRq-S, which brings the kernel's own scheduler back, is switched off",
            "sysctl kernel.sysrq=1 switches it on",
        );
    }
    for (option, effect) in config::USEFUL {
        if facts.lacking.contains(&option) {
            find(
                &format!("the kernel is built without {option}: {effect}"),
                &format!("boot a kernel with {option}=y for that"),
            );
        }
    }
    if !facts.tickless.is_empty() {
        find(
            &format!(
                "CPUs {} have no tick (nohz_full); slices there end late",
                facts.tickless
            ),
            "boot without nohz_full= for exact slices",
        );
    }
    findings
}

/// That there is no sched_ext, and the options that it is missing for.
fn no_sched_ext(facts: &MachineFacts) -> String {
    let missing: Vec<&str> = KernelConfig::OF_SCHED_EXT
        .into_iter()
        .filter(|option| facts.lacking.contains(option))
        .collect();
    let why = match missing.as_slice() {
        [] => String::new(),
        options => format!("; it is built without {}", options.join(", ")),
    };
    format!("the kernel {} has no sched_ext{why}", facts.release)
}

/// Who schedules already, in words; of use when a policy is attached.
#[must_use]
pub fn occupied(facts: &MachineFacts) -> String {
    let name = facts.attached.as_deref().unwrap_or("of somebody else");
    let by = facts.holder.as_ref().map_or_else(String::new, |holder| {
        let service = holder.service.as_ref();
        let service = service.map_or_else(String::new, |unit| format!(" of {unit}"));
        format!(" by {}{service} (process {})", holder.name, holder.pid)
    });
    format!("the scheduler {name} is attached already{by}")
}

/// How to get the policy of `holder` out of the way.
#[must_use]
pub fn way_past(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) if holder.name == "runslice" && !holder.can_be_replaced() => {
            "runslice stop ends it; runslice set changes its tunables".to_owned()
        }
        Some(
            holder @ Holder {
                service: Some(unit),
                ..
            },
        ) if holder.can_be_replaced() => {
            format!("--replace stops {unit} for the time; systemctl stop {unit} for good")
        }
        Some(Holder { pid, .. }) => format!("end the process that runs it: kill {pid}"),
        None => "stop the program or service that runs it".to_owned(),
    }
}

/// Whether the setting lets SysRq-S through: all, or the bit `SYSRQ_ENABLE_RTNICE`
/// (include/linux/sysrq.h and `sysrq_sched_ext_reset_op`, kernel 6.18). A system without the file
/// has no such keys.
fn sysrq_detaches(setting: &str) -> bool {
    const ENABLE_RTNICE: u64 = 0x100;
    number(setting).is_some_and(|bits| bits == 1 || bits & ENABLE_RTNICE != 0)
}

/// A file's text without the line's end; empty when there is none.
fn read(root: &Path, name: &str) -> String {
    let text = fs::read_to_string(root.join(name)).unwrap_or_default();
    text.trim().to_owned()
}

/// Major and minor number.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Whether `/proc/self/status` grants a capability.
fn has_capability(status: &str, number: u32) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> number & 1 == 1)
}

/// A list of CPUs, or nothing where the kernel says that there is none.
fn cpu_list(text: &str) -> String {
    match text {
        "(null)" => String::new(),
        list => list.to_owned(),
    }
}

/// A number that the kernel writes in a file; `None` when it does not.
fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests;
