//! What the options of `hunt` ask for.

use std::path::Path;

use anyhow::Context as _;
use ask::hunt::{Hunt as Question, Like, Range};
use ask::unset;
use model::{Advised, PolicySpec};

use super::Hunt;
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::input;
use crate::policy::{self, FoundPolicy};
use crate::workload_arg::Written;

impl Hunt {
    /// The question.
    ///
    /// # Errors
    /// When a policy or the workload is bad.
    pub(super) fn question(&self) -> anyhow::Result<Question> {
        let found = self.found()?;
        let against = self
            .against
            .as_deref()
            .map(|it| policy::open(&COMPUTER, it))
            .transpose()?;
        let against = against.map(|mut old| {
            self.prepare.apply(&mut old.policy)?;
            anyhow::Ok(old.policy)
        });
        let against = against.transpose()?;
        let is_recorded = |policy: &PolicySpec| {
            let program = policy.program.as_ref();
            program.is_some_and(|program| program.recorded.is_some())
        };
        let kernels = match self.machine.asked().kernel {
            Some(_) => Vec::new(),
            None => Range::kernels_of(&found.policy),
        };
        let workload = self.workload.as_deref().map(|name| {
            let written = Written::find(&COMPUTER, name)?;
            anyhow::Ok((written, self.scale.clone()))
        });
        let range = Range {
            machine: self.machine.asked(),
            recorded_on: found.machine.filter(|_| is_recorded(&found.policy)),
            workload: workload.transpose()?,
            kernels,
            like: self.like.as_deref().map(read_dump).transpose()?,
        };
        Ok(Question {
            policy: found.policy,
            seed: self.seed,
            properties: self.properties(),
            range,
            against,
        })
    }

    /// The policy or the program to search.
    fn found(&self) -> anyhow::Result<FoundPolicy> {
        let mut found = match (&self.policy, self.schedulers.one()?) {
            (Some(policy), None) => policy::open(&COMPUTER, policy)?,
            (None, Some(program)) => FoundPolicy::of_policy(program),
            _ => return Err(UsageError::new("give a policy or --scheduler").into()),
        };
        let recorded = found.policy.program.as_ref();
        let recorded = recorded.and_then(|program| program.recorded.as_ref());
        if recorded.is_some_and(|recorded| !recorded.setup_only) {
            let message = Advised::new(
                format!(
                    "{} is a recording of one run, which fits no other load",
                    found.policy.name
                ),
                "record the program with `bundle --setup-only`, or give --scheduler",
            );
            return Err(UsageError::new(message).into());
        }
        if found.policy.program.is_some() {
            self.prepare.refuse_for_programs()?;
        }
        self.prepare.apply(&mut found.policy)?;
        unset::say_of(
            &COMPUTER,
            &found.policy,
            &found.machine.clone().unwrap_or_default(),
        );
        Ok(found)
    }
}

/// The signature of the dump in `file`.
fn read_dump(file: &Path) -> anyhow::Result<Like> {
    let bytes = input::bytes(&COMPUTER, file, input::OBJECT)?;
    let text = String::from_utf8_lossy(&bytes);
    Like::read(&text).with_context(|| file.display().to_string())
}
