//! Who is whose child: `real_parent` and `group_leader` of tasks.
//!
//! Source: `copy_process()` in kernel/fork.c, `forget_original_parent()` in kernel/exit.c, Linux
//! 6.18.

use model::TaskId;

use crate::machine::Machine;
use crate::task::RunState;
use crate::work::Birth;

/// The place of a task among its relatives. Lists, so that a task that ends finds its children
/// among a million tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// Its parent; `None`: the machine's first process, which is no task of a load.
    pub parent: Option<TaskId>,
    /// The first thread of its process; `None`: itself.
    pub leader: Option<TaskId>,
    /// Its newest child.
    child: Option<TaskId>,
    /// The next older child of its parent.
    older: Option<TaskId>,
    /// The next newer one.
    newer: Option<TaskId>,
}

impl Family {
    /// That of a task that `creator` forks, before it is a child of anybody: while `init_task`
    /// runs, it still has its creator's parent.
    pub(crate) fn of_new(machine: &Machine, creator: Option<TaskId>, birth: &Birth) -> Self {
        let Some(creator) = creator else {
            return Self::default();
        };
        let theirs = machine.task(creator).seldom.family;
        Self {
            parent: theirs.parent,
            leader: (!birth.process).then(|| theirs.leader.unwrap_or(creator)),
            ..Self::default()
        }
    }
}

impl Machine {
    /// `id` becomes a child of who the kernel says it is: a process of its `creator`, a thread of
    /// its creator's parent (`CLONE_THREAD`). A thread of the kernel is a child of `kthreadd`,
    /// which no load has.
    pub(crate) fn become_child(&mut self, id: TaskId, creator: TaskId, birth: &Birth) {
        let parent = match birth.process {
            _ if birth.kernel => None,
            true => Some(creator),
            false => self.task(creator).seldom.family.parent,
        };
        self.set_parent(id, parent);
    }

    /// The parent of `id` is `parent`, and it stands in its list; it stood in none.
    fn set_parent(&mut self, id: TaskId, parent: Option<TaskId>) {
        let older = parent.and_then(|it| self.task_mut(it).seldom.family.child.replace(id));
        if let Some(older) = older {
            self.task_mut(older).seldom.family.newer = Some(id);
        }
        let family = &mut self.task_mut(id).seldom.family;
        (family.parent, family.older, family.newer) = (parent, older, None);
        self.mirror_parent(id);
    }

    /// `id` has ended: it is in nobody's list, and its children are those of its process's first
    /// thread if that still lives, else of the machine's first process.
    pub(crate) fn leave_family(&mut self, id: TaskId) {
        let Family {
            parent,
            leader,
            child,
            older,
            newer,
        } = self.task(id).seldom.family;
        if let Some(older) = older {
            self.task_mut(older).seldom.family.newer = newer;
        }
        match (newer, parent) {
            (Some(newer), _) => self.task_mut(newer).seldom.family.older = older,
            (None, Some(parent)) => self.task_mut(parent).seldom.family.child = older,
            (None, None) => {}
        }
        let lives = |leader: &TaskId| {
            let leader = self.task(*leader);
            !leader.exiting && leader.state != RunState::Dead
        };
        let heir = leader.filter(lives);
        let mut next = child;
        while let Some(orphan) = next {
            next = self.task(orphan).seldom.family.older;
            self.set_parent(orphan, heir);
        }
        let family = &mut self.task_mut(id).seldom.family;
        (family.child, family.older, family.newer) = (None, None, None);
    }
}
