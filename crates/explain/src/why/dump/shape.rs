//! The machine and its load, as far as a dump shows them.

use super::read::{Dump, Task};

/// Where a search for the same fault begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpShape {
    /// One more than the highest CPU that the text names; 0 if it names none. A dump leaves out
    /// CPUs where nobody is runnable, so there may be more.
    pub cpus: u16,
    /// Runnable tasks.
    pub runnable: usize,
    /// CPUs that the victim may use; `None` if the dump does not tell.
    pub allowed: Option<Vec<u16>>,
    /// The victim may not migrate (`no_mig`).
    pub is_pinned: bool,
    /// A task of a class above the policy's has a CPU.
    pub has_above: bool,
}

impl DumpShape {
    /// What `dump` shows. `pid` is the victim's.
    pub(super) fn of(dump: &Dump, pid: Option<u32>) -> Self {
        let victim = dump.tasks.iter().find(|task| Some(task.pid) == pid);
        let of_tasks = dump.tasks.iter().filter_map(Task::last_cpu);
        let highest = dump.cpus.keys().copied().chain(of_tasks).max();
        Self {
            cpus: highest.map_or(0, |cpu| cpu.saturating_add(1)),
            runnable: dump.tasks.len(),
            allowed: victim.and_then(Task::allowed),
            is_pinned: victim.is_some_and(|task| task.is_pinned),
            has_above: dump.cpus.values().any(super::read::Cpu::is_above),
        }
    }
}
