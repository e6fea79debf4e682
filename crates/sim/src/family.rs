//! Who is whose child: `real_parent` and `group_leader` of tasks.
//!
//! Source: `copy_process()` in kernel/fork.c, `forget_original_parent()` in kernel/exit.c, Linux
//! 6.18.

use model::TaskId;

use crate::machine::Machine;
use crate::task::{Family, RunState};
use crate::work::Birth;

impl Machine {
    /// The family of a task that `creator` forks, before it is a child of anybody: while
    /// `init_task` runs, it still has its creator's parent.
    pub(crate) fn family_of_new(&self, creator: Option<TaskId>, birth: &Birth) -> Family {
        let Some(creator) = creator else {
            return Family::default();
        };
        let theirs = self.task(creator).seldom.family;
        Family {
            parent: theirs.parent,
            leader: (!birth.process).then(|| theirs.leader.unwrap_or(creator)),
            ..Family::default()
        }
    }

    /// `id` becomes a child of who the kernel says it is: a process of its `creator`, a thread of
    /// its creator's parent (`CLONE_THREAD`). A thread of the kernel is a child of `kthreadd`,
    /// which no load has.
    pub(crate) fn become_child(&mut self, id: TaskId, creator: TaskId, birth: &Birth) {
        let parent = if birth.kernel {
            None
        } else if birth.process {
            Some(creator)
        } else {
            self.task(creator).seldom.family.parent
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
