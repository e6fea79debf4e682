//! What the options of `hunt` ask for.

use ask::hunt::{Hunt as Question, Range};
use ask::like::Like;

use super::Hunt;
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::policy::{self, FoundPolicy};
use crate::workload_arg::Written;

impl Hunt {
    /// The question.
    ///
    /// # Errors
    /// When a policy or the workload is bad.
    pub(super) fn question(&self) -> anyhow::Result<Question> {
        let question = Question::new(&COMPUTER, self.found()?, self.machine.asked())?;
        let against = self.against.as_deref().map(|it| {
            let mut old = policy::open(&COMPUTER, it)?;
            self.prepare.apply(&mut old.policy)?;
            anyhow::Ok(old.policy)
        });
        let workload = self.workload.as_deref().map(|name| {
            let written = Written::find(&COMPUTER, name)?;
            anyhow::Ok((written, self.scale.clone()))
        });
        let like = self.like.as_deref().map(|it| Like::open(&COMPUTER, it));
        Ok(Question {
            seed: self.seed,
            properties: self.properties(),
            range: Range {
                workload: workload.transpose()?,
                like: like.transpose()?,
                ..question.range
            },
            against: against.transpose()?,
            ..question
        })
    }

    /// The policy or the program to search.
    fn found(&self) -> anyhow::Result<FoundPolicy> {
        let mut found = match (&self.policy, self.schedulers.one()?) {
            (Some(policy), None) => policy::open(&COMPUTER, policy)?,
            (None, Some(program)) => FoundPolicy::of_policy(program),
            _ => return Err(UsageError::new("give a policy or --scheduler").into()),
        };
        self.prepare.apply(&mut found.policy)?;
        Ok(found)
    }
}
