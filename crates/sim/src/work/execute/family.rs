//! Children: fork, exit and waiting.

use super::{Executor, Next};
use crate::work::channel::Wakes;
use crate::work::task::Waits;
use crate::work::{Action, WorkError};
use workload::TASKS_MAX;

impl Executor<'_> {
    pub(super) fn fork(&mut self, group: u32) -> Result<Next, WorkError> {
        if self.work.alive >= TASKS_MAX {
            return Err(WorkError::TooManyTasks {
                place: self.place(),
                limit: TASKS_MAX,
            });
        }
        if self.work.tasks.len() >= self.work.born_max {
            return Err(WorkError::TooManyForks {
                place: self.place(),
                limit: self.work.born_max,
            });
        }
        let members = &mut self.work.groups[group as usize].tasks;
        let index = u32::try_from(members.len()).expect("a run has fewer than 2^32 tasks");
        members.push(None);
        Ok(Next::Act(Action::Fork(
            self.work.birth(group, index, self.now),
        )))
    }

    /// The kernel wakes a parent in `exit_notify()`, before the task's last switch (Linux 6.18,
    /// `kernel/exit.c`). `do_notify_parent()` does so synchronously; a thread's joiner is woken
    /// through its futex, plainly.
    pub(super) fn exit(&mut self) -> Next {
        let state = self.state();
        state.has_exited = true;
        let (parent, sync) = (state.parent, state.is_process);
        self.leave_memory();
        if let Some(parent) = parent {
            let parent_state = &mut self.work.tasks[parent.index()];
            parent_state.children -= 1;
            parent_state.zombies += 1;
            if parent_state.waits == Waits::Child {
                self.wake(Wakes {
                    tasks: vec![parent],
                    sync,
                });
            }
        }
        Next::Again(Action::Exit)
    }

    pub(super) fn wait(&mut self, all: bool) -> Next {
        let state = self.state();
        if all {
            state.zombies = 0;
        } else if state.zombies > 0 {
            state.zombies -= 1;
            return Next::Go;
        }
        if state.children == 0 {
            return Next::Go;
        }
        Next::Again(self.block(Waits::Child))
    }
}
