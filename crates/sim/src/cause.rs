//! Who decides, and where in the policy's source: what [`crate::decision`] tells of.

use std::collections::BTreeSet;

use bpf::{Host, Instance};
use model::{Caller, Cause, EventMask, TaskId};

use crate::dsq::DsqIndex;
use crate::schedulers::SchedId;

/// What is known of the decision that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Decisions {
    pub listens: bool,
    pub cause: Cause,
    /// The cause at the end of the callback that has ended last.
    pub last: Cause,
    /// The task that the last callback or request was about.
    pub subject: TaskId,
    /// The queue that a task has left last.
    pub left: Option<DsqIndex>,
}

/// What those who listen have been told of beside decisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Places, and those among them that are still to be described.
    pub places: BTreeSet<u32>,
    pub new: Vec<u32>,
    /// The built-in queues were named.
    pub has_named: bool,
    /// Whose decisions and callbacks follow.
    pub scheduler: SchedId,
    /// Schedulers below the root that were described, and those that are still to be.
    pub schedulers: Vec<SchedId>,
    pub new_schedulers: Vec<SchedId>,
}

impl Decisions {
    pub fn new(wants: EventMask) -> Self {
        Self {
            listens: wants.intersection(EventMask::DECISIONS) != EventMask::NONE,
            cause: Cause::KERNEL,
            last: Cause::KERNEL,
            subject: TaskId::NONE,
            left: None,
        }
    }

    /// No decision has been made, of which as much would be told as of these.
    pub const fn another(&self) -> Self {
        Self {
            listens: self.listens,
            cause: Cause::KERNEL,
            last: Cause::KERNEL,
            subject: TaskId::NONE,
            left: None,
        }
    }

    /// The run is over: how the policy is taken off is no part of it.
    pub const fn end(&mut self) {
        self.listens = false;
    }

    /// Who decides now.
    #[inline]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// A program is `here`.
    #[inline]
    pub const fn set_place(&mut self, here: u32) {
        if self.listens {
            self.cause.place = here;
        }
    }

    /// A program goes on, `here`, after what it asked for earlier was carried out.
    #[inline]
    pub const fn come_back(&mut self, here: u32) {
        if self.listens {
            self.cause = Cause {
                caller: self.last.caller,
                place: here,
            };
        }
    }

    /// What follows was decided by `cause`.
    #[inline]
    pub const fn decide_for(&mut self, cause: Cause) {
        if self.listens {
            self.cause = cause;
        }
    }

    /// What follows is about `task`.
    #[inline]
    pub const fn turn_to(&mut self, task: TaskId) {
        self.subject = task;
    }

    /// What follows was decided by the program that has ended last.
    pub const fn decide_at_last(&mut self) {
        if self.listens {
            self.cause = self.last;
        }
    }

    /// `caller` begins, in `function` if that is known. Returns what [`Decisions::leave`] needs.
    #[inline]
    pub fn enter<H: Host>(
        &mut self,
        vm: &mut Instance<H>,
        caller: Caller,
        function: Option<u32>,
    ) -> (Cause, u32) {
        let outer = (self.cause, vm.current_place());
        if self.listens {
            if let Some(function) = function {
                vm.begin_place(function);
            }
            self.cause = Cause {
                caller,
                place: vm.current_place(),
            };
            // For `come_back`, as long as no other has ended.
            self.last = self.cause;
        }
        outer
    }

    /// A program has ended, and the one around it goes on.
    #[inline]
    pub fn leave<H: Host>(&mut self, vm: &mut Instance<H>, (outer, here): (Cause, u32)) {
        if self.listens {
            self.last = Cause {
                place: vm.current_place(),
                ..self.cause
            };
            self.cause = outer;
            vm.return_to(here);
        }
    }

    /// A task has left `dsq`.
    #[inline]
    pub const fn note_left(&mut self, dsq: DsqIndex) {
        if self.listens {
            self.left = Some(dsq);
        }
    }
}
