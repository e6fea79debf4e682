//! Places of the kernel that programs can be attached to, and the programs that are.

use std::collections::BTreeSet;

use bpf::Attachment;
use model::user_space::BpfId;

/// What of the kernel this machine has that programs can be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachPoint {
    SchedSwitch,
    SchedWaking,
    SchedWakeup,
    SchedWakeupNew,
    SchedProcessFork,
    SchedProcessExit,
    SchedProcessFree,
    TaskNewtask,
    TaskRename,
    CgroupAttachTask,
    /// The function `scx_tick()`.
    ScxTick,
    /// The function `bpf_scx_reg()`.
    ScxReg,
}

/// Tracepoints, by name.
const TRACEPOINTS: [(&str, AttachPoint); 10] = [
    ("sched_switch", AttachPoint::SchedSwitch),
    ("sched_waking", AttachPoint::SchedWaking),
    ("sched_wakeup", AttachPoint::SchedWakeup),
    ("sched_wakeup_new", AttachPoint::SchedWakeupNew),
    ("sched_process_fork", AttachPoint::SchedProcessFork),
    ("sched_process_exit", AttachPoint::SchedProcessExit),
    ("sched_process_free", AttachPoint::SchedProcessFree),
    ("task_newtask", AttachPoint::TaskNewtask),
    ("task_rename", AttachPoint::TaskRename),
    ("cgroup_attach_task", AttachPoint::CgroupAttachTask),
];

/// Functions, by name.
const FUNCTIONS: [(&str, AttachPoint); 2] = [
    ("scx_tick", AttachPoint::ScxTick),
    ("bpf_scx_reg", AttachPoint::ScxReg),
];

/// A set of places.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places(u16);

impl Places {
    /// Whether a program is attached anywhere. All that a run without such programs pays.
    #[inline(always)]
    pub const fn any(self) -> bool {
        self.0 != 0
    }

    pub const fn has(self, place: AttachPoint) -> bool {
        self.0 & 1 << place as u16 != 0
    }
}

/// A program that is attached.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub link: BpfId,
    pub place: AttachPoint,
    /// A function returns; else it is entered, or this is a tracepoint.
    pub at_exit: bool,
    /// Through a trampoline, which keeps its task from migrating; tracepoints have none.
    pub is_function: bool,
    pub function: u32,
}

/// Programs that are attached, in the order in which a kernel calls them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    pub all: Vec<Hook>,
    /// Links whose programs have faulted.
    pub broken: BTreeSet<BpfId>,
    /// What programs were attached to that never happens here.
    absent: BTreeSet<String>,
    /// Where the text of a name or a path stands for a program.
    pub text_at: Option<u64>,
}

impl Hooks {
    /// Tracepoints and functions that never occur here, for a note.
    pub fn absent(&self) -> Option<String> {
        let names: Vec<_> = self.absent.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the program attached BPF programs to what this machine does not have; they were \
                 never called: {}",
                names.join(", ")
            )
        })
    }

    /// Takes over what is attached now, in the order of the links.
    pub fn set(&mut self, links: &[(BpfId, Attachment, Option<u32>)]) -> Places {
        self.all.clear();
        for (link, to, function) in links {
            let (found, name, at_exit, is_function) = match to {
                Attachment::Tracepoint(name) => (found(&TRACEPOINTS, name), name, false, false),
                Attachment::Entry(name) => (found(&FUNCTIONS, name), name, false, true),
                Attachment::Exit(name) => (found(&FUNCTIONS, name), name, true, true),
                Attachment::StructOps(_) | Attachment::Iterator(_) => continue,
            };
            let (Some(place), Some(function)) = (found, *function) else {
                self.absent.insert(name.clone());
                continue;
            };
            let hook = Hook {
                link: *link,
                place,
                at_exit,
                is_function,
                function,
            };
            if is_function {
                // The newest first (`__bpf_trampoline_link_prog()`).
                self.all.insert(0, hook);
            } else {
                self.all.push(hook);
            }
        }
        let places = self.all.iter().map(|hook| 1 << hook.place as u16);
        Places(places.fold(0, |all, one: u16| all | one))
    }
}

fn found(table: &[(&str, AttachPoint)], name: &str) -> Option<AttachPoint> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, place)| *place)
}
