//! What the kernel says of its sched_ext class, as files below `/sys/kernel/sched_ext`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel says it (Documentation/scheduler/sched-ext.rst, kernel 6.18).
const FOLDER: &str = "sys/kernel/sched_ext";

/// The class's files, below a root that tests choose.
#[derive(Clone, Debug)]
pub struct SchedExt {
    folder: PathBuf,
}

/// Which phase of its life the class is in (`scx_enable_state_str`, kernel 6.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassState {
    /// No policy: the kernel's own scheduler has all tasks.
    Disabled,
    /// A policy is being attached.
    Enabling,
    /// A policy schedules.
    Enabled,
    /// A policy is being detached.
    Disabling,
}

impl ClassState {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "disabled" => Some(Self::Disabled),
            "enabling" => Some(Self::Enabling),
            "enabled" => Some(Self::Enabled),
            "disabling" => Some(Self::Disabling),
            _ => None,
        }
    }
}

impl fmt::Display for ClassState {
    /// The kernel's own word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Disabled => "disabled",
            Self::Enabling => "enabling",
            Self::Enabled => "enabled",
            Self::Disabling => "disabling",
        })
    }
}

impl SchedExt {
    /// The class of the running kernel.
    #[must_use]
    pub fn of_this_kernel() -> Self {
        Self::below(Path::new("/"))
    }

    /// The class as the files below `root` tell.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self {
            folder: root.join(FOLDER),
        }
    }

    /// The phase; `None` when the kernel has no sched_ext or says something unknown.
    #[must_use]
    pub fn state(&self) -> Option<ClassState> {
        ClassState::parse(&self.read("state")?)
    }

    /// The attached policy's name; `None` when there is none.
    #[must_use]
    pub fn policy(&self) -> Option<String> {
        self.read("root/ops")
    }

    /// How many policies were attached since the kernel booted.
    #[must_use]
    pub fn enable_seq(&self) -> Option<u64> {
        self.read("enable_seq")?.parse().ok()
    }

    /// How many CPUs came or went since the kernel booted.
    #[must_use]
    pub fn hotplug_seq(&self) -> Option<u64> {
        self.read("hotplug_seq")?.parse().ok()
    }

    /// How many tasks could not be given to the policy that is attached.
    #[must_use]
    pub fn rejected(&self) -> Option<u64> {
        self.read("nr_rejected")?.parse().ok()
    }

    /// Whether the policy has all tasks of the fair class, or only those that ask for
    /// `SCHED_EXT`; `None` when there is no sched_ext.
    #[must_use]
    pub fn has_all_tasks(&self) -> Option<bool> {
        Some(self.read("switch_all")? == "1")
    }

    /// The attached policy's event counters, in the kernel's order; empty when there is none.
    #[must_use]
    pub fn events(&self) -> Vec<(String, u64)> {
        let text = self.read("root/events").unwrap_or_default();
        let pairs = text.lines().filter_map(|line| {
            let (name, count) = line.split_once(' ')?;
            Some((name.to_owned(), count.trim().parse().ok()?))
        });
        pairs.collect()
    }

    fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        Some(text.trim_end().to_owned())
    }
}
