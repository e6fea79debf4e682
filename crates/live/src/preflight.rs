//! What stands in the way of a policy, said before anything is attached.
//!
//! Looking and judging are apart: [`Facts`] are read from files below a root that tests choose,
//! and [`judge`] knows only facts.

use std::fs;
use std::path::Path;

use crate::{SchedExt, State};

/// The oldest kernel that policies are tested on.
const OLDEST: (u32, u32) = (6, 18);
/// `CAP_SYS_ADMIN` (include/uapi/linux/capability.h, kernel 6.18).
const CAP_SYS_ADMIN: u32 = 21;

/// What was found out about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The kernel's version as it calls itself, such as `6.18.15+deb13-amd64`.
    pub release: String,
    /// Phase of the kernel's sched_ext; `None`: the kernel has none.
    pub state: Option<State>,
    /// The policy that is attached now.
    pub attached: Option<String>,
    /// The kernel describes its own types.
    pub has_types: bool,
    /// This process may administer the system.
    pub is_administrator: bool,
    /// The kernel hides its memory from programs (lockdown mode `confidentiality`).
    pub is_locked_down: bool,
    /// CPUs that were taken from the scheduler at boot (`isolcpus=domain`), as the kernel lists
    /// them; empty for none.
    pub isolated: String,
    /// CPUs without a tick (`nohz_full=`), as the kernel lists them; empty for none.
    pub tickless: String,
    /// Groups of processes with a limit or share that only the kernel's own scheduler enforces,
    /// each with the reason.
    pub groups: Vec<(String, GroupRule)>,
}

/// What a group of processes asks of the kernel's own scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRule {
    /// `cpu.max`: at most so much CPU time.
    Quota,
    /// `cpu.weight` other than 100: another share than its neighbours.
    Weight,
    /// `cpu.uclamp.*`: a range of CPU speeds.
    Clamp,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A policy cannot be attached.
    Blocks,
    /// A limit that somebody relies on would stop to work; attached only when told to ignore it.
    Breaks,
    /// Something behaves otherwise while a policy is attached.
    Changes,
}

/// Something that the user should know beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub way_out: String,
}

impl Facts {
    /// Looks at the machine through the files below `root`, which is `/` but in tests.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        let class = SchedExt::below(root);
        let status = read(root, "proc/self/status");
        let lockdown = read(root, "sys/kernel/security/lockdown");
        Self {
            release: read(root, "proc/sys/kernel/osrelease"),
            state: class.state(),
            attached: class.policy(),
            has_types: root.join("sys/kernel/btf/vmlinux").is_file(),
            is_administrator: has_capability(&status, CAP_SYS_ADMIN),
            is_locked_down: lockdown.contains("[confidentiality]"),
            isolated: read(root, "sys/devices/system/cpu/isolated"),
            tickless: cpu_list(&read(root, "sys/devices/system/cpu/nohz_full")),
            groups: groups(&root.join("sys/fs/cgroup")),
        }
    }
}

/// What the facts mean for whoever wants to attach a policy; the worst first.
#[must_use]
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |severity, what: String, way_out: &str| {
        findings.push(Finding {
            severity,
            what,
            way_out: way_out.to_owned(),
        });
    };
    use Severity::{Blocks, Breaks, Changes};
    match facts.state {
        None => find(
            Blocks,
            format!("the kernel {} has no sched_ext", facts.release),
            "boot a kernel of 6.18 or newer with CONFIG_SCHED_CLASS_EXT=y, or try the policy in \
             one: runslice vm -- runslice run POLICY",
        ),
        Some(State::Disabled) => {}
        Some(_) => find(
            Blocks,
            format!(
                "the scheduler {} is attached already",
                facts.attached.as_deref().unwrap_or("of somebody else")
            ),
            "stop the program or service that runs it",
        ),
    }
    if facts.state.is_some() && version(&facts.release).is_none_or(|version| version < OLDEST) {
        find(
            Blocks,
            format!(
                "the kernel {} is older than 6.18, the oldest that is tested",
                facts.release
            ),
            "boot a newer kernel, or try one: runslice vm -- runslice run POLICY",
        );
    }
    if facts.state.is_some() && !facts.has_types {
        find(
            Blocks,
            "the kernel does not describe its types (/sys/kernel/btf/vmlinux)".to_owned(),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        );
    }
    if !facts.is_administrator {
        find(
            Blocks,
            "this process may not administer the system".to_owned(),
            "run it as root: sudo runslice run POLICY",
        );
    }
    if facts.is_locked_down {
        find(
            Blocks,
            "the kernel is locked down (confidentiality) and lets no program read its memory"
                .to_owned(),
            "boot without lockdown=confidentiality",
        );
    }
    if !facts.isolated.is_empty() {
        find(
            Blocks,
            format!(
                "CPUs {} are isolated, which sched_ext refuses",
                facts.isolated
            ),
            "boot without isolcpus=",
        );
    }
    for (group, rule) in &facts.groups {
        match rule {
            GroupRule::Quota => find(
                Breaks,
                format!("the group {group} has a quota (cpu.max), which no policy enforces"),
                "lift the quota, or give --ignore-cgroups",
            ),
            GroupRule::Weight => find(
                Changes,
                format!("the group {group} has a weight (cpu.weight), which policies ignore"),
                "nothing, if the group's share does not matter meanwhile",
            ),
            GroupRule::Clamp => find(
                Changes,
                format!("the group {group} limits CPU speeds (uclamp), which policies ignore"),
                "nothing, if its speed does not matter meanwhile",
            ),
        }
    }
    if !facts.tickless.is_empty() {
        find(
            Changes,
            format!(
                "CPUs {} have no tick (nohz_full); slices there end late",
                facts.tickless
            ),
            "boot without nohz_full= for exact slices",
        );
    }
    findings.sort_by_key(|finding| finding.severity as u8);
    findings
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

/// The groups below `folder` that ask something of the kernel's scheduler, by path.
fn groups(folder: &Path) -> Vec<(String, GroupRule)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        let name = path
            .strip_prefix(folder)
            .unwrap_or(&path)
            .display()
            .to_string();
        found.extend(
            rules(&path)
                .into_iter()
                .map(|rule| (format!("/{name}"), rule)),
        );
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(below.map(|entry| entry.path()));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// What one group asks.
fn rules(group: &Path) -> Vec<GroupRule> {
    let is_set = |name: &str, unset: &[&str]| {
        let text = read(group, name);
        let first = text.split_whitespace().next();
        first.is_some_and(|first| !unset.contains(&first))
    };
    let mut rules = Vec::new();
    if is_set("cpu.max", &["max"]) {
        rules.push(GroupRule::Quota);
    }
    if is_set("cpu.weight", &["100"]) {
        rules.push(GroupRule::Weight);
    }
    if is_set("cpu.uclamp.min", &["0.00", "0"]) || is_set("cpu.uclamp.max", &["max"]) {
        rules.push(GroupRule::Clamp);
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            release: "6.18.15+deb13-amd64".to_owned(),
            state: Some(State::Disabled),
            attached: None,
            has_types: true,
            is_administrator: true,
            is_locked_down: false,
            isolated: String::new(),
            tickless: String::new(),
            groups: Vec::new(),
        }
    }

    /// The only finding's severity and text.
    fn only(facts: &Facts) -> (Severity, String) {
        match judge(facts).as_slice() {
            [finding] => (finding.severity, finding.what.clone()),
            findings => panic!("{findings:?}"),
        }
    }

    #[test]
    fn nothing_stands_in_the_way_on_a_machine_that_has_all() {
        assert_eq!(judge(&good()), []);
    }

    #[test]
    fn each_obstacle_is_named() {
        let obstacles = [
            (
                Facts {
                    state: None,
                    ..good()
                },
                "has no sched_ext",
            ),
            (
                Facts {
                    state: Some(State::Enabled),
                    attached: Some("lavd".to_owned()),
                    ..good()
                },
                "the scheduler lavd is attached already",
            ),
            (
                Facts {
                    release: "6.12.1".to_owned(),
                    ..good()
                },
                "older than 6.18",
            ),
            (
                Facts {
                    has_types: false,
                    ..good()
                },
                "does not describe its types",
            ),
            (
                Facts {
                    is_administrator: false,
                    ..good()
                },
                "may not administer",
            ),
            (
                Facts {
                    is_locked_down: true,
                    ..good()
                },
                "locked down",
            ),
            (
                Facts {
                    isolated: "2-3".to_owned(),
                    ..good()
                },
                "CPUs 2-3 are isolated",
            ),
        ];
        for (facts, words) in obstacles {
            let (severity, what) = only(&facts);
            assert_eq!(severity, Severity::Blocks, "{what}");
            assert!(what.contains(words), "{what}");
        }
    }

    #[test]
    fn a_quota_breaks_and_a_weight_only_changes() {
        let groups = vec![
            ("/a".to_owned(), GroupRule::Weight),
            ("/b".to_owned(), GroupRule::Quota),
        ];
        let found = judge(&Facts {
            groups,
            tickless: "1".to_owned(),
            ..good()
        });
        let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
        assert_eq!(
            severities,
            [Severity::Breaks, Severity::Changes, Severity::Changes]
        );
    }

    #[test]
    fn facts_are_read_from_the_kernels_files() {
        let root = std::env::temp_dir().join(format!("runslice-facts-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.18.15\n");
        write("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
        write("sys/kernel/sched_ext/state", "enabled\n");
        write("sys/kernel/sched_ext/root/ops", "lavd\n");
        write("sys/kernel/btf/vmlinux", "");
        write(
            "sys/kernel/security/lockdown",
            "none integrity [confidentiality]\n",
        );
        write("sys/devices/system/cpu/isolated", "\n");
        write("sys/devices/system/cpu/nohz_full", "(null)\n");
        write("sys/fs/cgroup/web/cpu.max", "50000 100000\n");
        write("sys/fs/cgroup/web/cpu.weight", "100\n");
        write("sys/fs/cgroup/idle/cpu.max", "max 100000\n");
        write("sys/fs/cgroup/idle/cpu.weight", "10\n");
        let facts = Facts::below(&root);
        fs::remove_dir_all(&root).unwrap();
        let want = Facts {
            release: "6.18.15".to_owned(),
            state: Some(State::Enabled),
            attached: Some("lavd".to_owned()),
            is_locked_down: true,
            groups: vec![
                ("/idle".to_owned(), GroupRule::Weight),
                ("/web".to_owned(), GroupRule::Quota),
            ],
            ..good()
        };
        assert_eq!(facts, want);
    }
}
