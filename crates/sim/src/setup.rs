//! Set-up programs: what a policy's loader runs in the kernel before and after it attaches.
//!
//! Source: `bpf_prog_test_run_syscall()`, kernel 6.18, `net/bpf/test_run.c`: a program gets a copy
//! of the caller's context, runs on the caller's CPU and gives its result back. What it does is
//! outside every callback.

use bpf::Image;
use model::{SetUp, SetUpTime};

use crate::Error;
use crate::entries::Entries;
use crate::machine::{Machine, Vm};

/// A program to run, found in the object.
#[derive(Debug)]
pub(crate) struct Run {
    name: String,
    function: u32,
    context: Vec<u8>,
    when: SetUpTime,
}

impl Run {
    /// Finds what `wanted` names.
    pub(crate) fn find(image: &Image, wanted: &SetUp) -> Result<Self, bpf::SetUpError> {
        let (function, context) = image.context(&wanted.program, &wanted.args)?;
        Ok(Self {
            name: wanted.program.clone(),
            function,
            context,
            when: wanted.when,
        })
    }
}

/// What a loader does that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    what: String,
    why: String,
}

impl Failure {
    /// As an error of the run of `policy`.
    pub(crate) fn of(self, policy: &str) -> Error {
        Error::SetUpFailed {
            policy: policy.to_owned(),
            what: self.what,
            why: self.why,
        }
    }
}

/// What the policy's loader puts into maps and runs, and which of it failed.
#[derive(Debug)]
pub(crate) struct Plan {
    entries: Vec<Entries>,
    runs: Vec<Run>,
    failure: Option<Failure>,
}

impl Plan {
    /// Nothing of it has been done.
    pub(crate) fn new(entries: Vec<Entries>, runs: Vec<Run>) -> Self {
        Self {
            entries,
            runs,
            failure: None,
        }
    }

    /// What failed, if anything did.
    pub(crate) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

impl Machine {
    /// Fills maps and runs the set-up programs whose time is `when`. False if something failed,
    /// which ends the run: a loader would give up too.
    pub(crate) fn set_up(&mut self, vm: &mut Vm, when: SetUpTime) -> bool {
        self.setup.failure = self.try_to_set_up(vm, when).err();
        let failed = self.setup.failure.is_some();
        self.halt_if(failed);
        !failed
    }

    fn try_to_set_up(&mut self, vm: &mut Vm, when: SetUpTime) -> Result<(), Failure> {
        for entries in std::mem::take(&mut self.setup.entries) {
            entries.put(vm, self).map_err(|errno| Failure {
                what: format!("map entry `{}`", entries.name()),
                why: errno.to_string(),
            })?;
        }
        let runs = std::mem::take(&mut self.setup.runs);
        let mut due = runs.iter().filter(|run| run.when == when);
        let done = due.try_for_each(|run| self.set_up_with(vm, run));
        self.setup.runs = runs;
        done
    }

    fn set_up_with(&mut self, vm: &mut Vm, run: &Run) -> Result<(), Failure> {
        let mut context = run.context.clone();
        let result = self.outside_callbacks(vm, |vm, machine| {
            vm.run_syscall(run.function, &mut context, machine)
        });
        let why = match result {
            // A program's result is an `int`.
            Ok(result) if result as u32 == 0 => return Ok(()),
            Ok(result) => format!("it returned {}", result as u32 as i32),
            Err(fault) => fault.to_string(),
        };
        let what = format!("set-up program `{}`", run.name);
        Err(Failure { what, why })
    }
}
