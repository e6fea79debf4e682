//! What a policy's loader would do before it attaches, as options of the verbs that simulate.

use clap::Args;
use model::{PolicySpec, SetUp, SetUpTime};

use crate::policy;

/// How policies are made ready.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct Prepare {
    /// Sets a knob or a global variable of every policy before it is loaded, or a number of its
    /// table of callbacks. NAME may lead into a variable: `mode.slice_ns`, `weights[3]`,
    /// `weights[0-7]`, `weights[*]`, `mine_ops.flags`; or be a map with keys: `nodes[0-7]`. VALUE
    /// may be constants of the kernel, as `SCX_OPS_ENQ_LAST|SCX_OPS_ENQ_EXITING`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = policy::setting)]
    set: Vec<(String, String)>,

    /// Runs a `SEC("syscall")` program of every policy before it is attached, as its loader would.
    /// VALUES, by commas, are the numbers of the program's argument in their order, or FIELD=VALUE;
    /// the rest is 0. May be repeated.
    #[arg(long, value_name = "PROGRAM[:VALUES]", value_parser = policy::setup)]
    run: Vec<(String, String)>,

    /// As --run, but as soon as the policy is attached. May be repeated.
    #[arg(long, value_name = "PROGRAM[:VALUES]", value_parser = policy::setup)]
    run_attached: Vec<(String, String)>,

    /// Table of callbacks to attach. Needed only for an object that has several.
    #[arg(long, value_name = "NAME")]
    ops: Option<String>,
}

impl Prepare {
    /// Adds to `policy` what was asked for.
    pub fn apply(&self, policy: &mut PolicySpec) {
        policy.set.extend(self.set.iter().cloned());
        for (list, when) in [
            (&self.run, SetUpTime::Loaded),
            (&self.run_attached, SetUpTime::Attached),
        ] {
            policy
                .setup
                .extend(list.iter().map(|(program, args)| SetUp {
                    program: program.clone(),
                    args: args.clone(),
                    when,
                }));
        }
        if self.ops.is_some() {
            policy.table.clone_from(&self.ops);
        }
    }
}
