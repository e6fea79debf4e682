//! Set-up programs: what a policy's loader runs in the kernel before and after it attaches.
//!
//! Source: `bpf_prog_test_run_syscall()`, kernel 6.18, net/bpf/test_run.c: a program gets a copy of
//! the caller's context, runs on the caller's CPU and gives its result back. What it does is
//! outside every callback.

use bpf::Image;
use model::{SetUp, SetUpTime};

use crate::Error;
use crate::flags::kf;
use crate::machine::{Machine, Vm};
use crate::ops::Context;

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

/// How a set-up program failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    program: String,
    why: String,
}

impl Failure {
    /// As an error of the run of `policy`.
    pub(crate) fn of(self, policy: &str) -> Error {
        Error::SetUpFailed {
            policy: policy.to_owned(),
            program: self.program,
            why: self.why,
        }
    }
}

impl Machine {
    /// Runs the set-up programs whose time is `when`. False if one failed, which ends the run: a
    /// loader would give up too.
    pub(crate) fn set_up(&mut self, vm: &mut Vm, when: SetUpTime) -> bool {
        let runs = std::mem::take(&mut self.setup);
        let mut due = runs.iter().filter(|run| run.when == when);
        let failed = due.find_map(|run| self.set_up_with(vm, run).err());
        self.setup = runs;
        if let Some(failure) = failed {
            self.setup_failure = Some(failure);
            self.over = true;
        }
        !self.over
    }

    fn set_up_with(&mut self, vm: &mut Vm, run: &Run) -> Result<(), Failure> {
        self.contexts.push(Context {
            mask: kf::UNLOCKED,
            locked: None,
            subject: None,
            direct: None,
        });
        self.flush_mirrors(vm);
        let mut context = run.context.clone();
        let result = vm.run_syscall(run.function, &mut context, self);
        self.contexts.pop();
        let why = match result {
            // A program's result is an `int`.
            Ok(result) if result as u32 == 0 => return Ok(()),
            Ok(result) => format!("it returned {}", result as u32 as i32),
            Err(fault) => fault.to_string(),
        };
        let program = run.name.clone();
        Err(Failure { program, why })
    }
}
