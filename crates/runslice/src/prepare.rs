//! What a policy's loader would do before it attaches, as options of the verbs that simulate.

use ask::policy::Preparation;
use clap::Args;
use model::{Advised, PolicySpec};

use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::policy;

/// Options that prepare a policy before it runs.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct Prepare {
    /// Set a knob or a global variable of every policy before it is loaded. May be repeated.
    ///
    /// NAME may be part of a variable (`mode.slice_ns`, `weights[3]`, `weights[0-7]`,
    /// `weights[*]`), a number in the table of callbacks (`mine_ops.flags`), a callback to take out
    /// of it (`mine_ops.tick=0`), or entries of a map (`nodes[0-7]`). VALUE may be constants of the
    /// kernel, such as `SCX_OPS_ENQ_LAST|SCX_OPS_ENQ_EXITING`. With a time behind the name,
    /// `interactive@5s=0`, the variable changes when the run has lasted so long.
    #[arg(long, value_name = "NAME=VALUE", value_parser = policy::setting)]
    set: Vec<(String, String)>,

    /// Run a `SEC("syscall")` program of every policy before the policy is attached, as its loader
    /// would. May be repeated.
    ///
    /// VALUES is a list with commas. It fills the numbers of the program's argument in their order,
    /// or by name as FIELD=VALUE. All others are 0.
    #[arg(long, value_name = "PROGRAM[:VALUES]", value_parser = policy::setup)]
    run: Vec<(String, String)>,

    /// Like --run, but right after the policy is attached. May be repeated.
    #[arg(long, value_name = "PROGRAM[:VALUES]", value_parser = policy::setup)]
    run_attached: Vec<(String, String)>,

    /// Table of callbacks to attach. Needed only if the object has several.
    #[arg(long, value_name = "NAME")]
    ops: Option<String>,

    /// Attach a scheduler below every policy: at this cgroup of the workload, whose tasks are its
    /// own then. May be repeated, also below one that was given before. Kernel 7.3.
    ///
    /// POLICY is written as the root is. Both need the cid form, and the one above `sub_attach`.
    /// With a time behind the cgroup, `app@2s=POLICY`, it is attached then; with a part of the run,
    /// `app@2s..5s=POLICY`, it is taken off at the end of it.
    #[arg(long, value_name = "CGROUP=POLICY")]
    sub: Vec<String>,
}

impl Prepare {
    /// As a question has it.
    fn asked(&self) -> Preparation {
        Preparation {
            set: self.set.clone(),
            run: self.run.clone(),
            run_attached: self.run_attached.clone(),
            ops: self.ops.clone(),
        }
    }

    /// See [`Preparation::refuse_for_programs`].
    pub fn refuse_for_programs(&self) -> Result<(), UsageError> {
        if !self.sub.is_empty() {
            let message = Advised::new(
                "--sub attaches a scheduler below a policy that is given as an object",
                "give the program's file as the policy, with --set for what it would set",
            );
            return Err(UsageError::new(message));
        }
        self.asked().refuse_for_programs()
    }

    /// See [`Preparation::apply`]; schedulers below it are found, too.
    ///
    /// # Errors
    /// If one of these is no cgroup and policy, or a program was to be prepared.
    pub fn apply(&self, policy: &mut PolicySpec) -> anyhow::Result<()> {
        if policy.program.is_some() {
            return Ok(self.refuse_for_programs()?);
        }
        self.asked().apply(policy)?;
        policy
            .subs
            .extend(ask::sub::find_all(&COMPUTER, &self.sub)?);
        Ok(())
    }
}
