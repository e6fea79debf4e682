//! Why a test fails, in a few lines.

use std::fmt;

use ask::explain::Explanation;
use explain::why::Act;

use crate::Test;

/// Columns of an explanation.
const COLUMNS: usize = 100;

/// Why a test fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestFailure {
    /// Policy and load, or what is wrong with the test itself.
    pub what: String,
    /// The limit that is broken; `None` if the test itself is wrong.
    pub limit: Option<String>,
    /// What was measured instead.
    pub value: Option<String>,
    /// The line of the policy to look at first, such as `mine.bpf.c:74 (mine_enqueue)`.
    pub line: Option<String>,
    /// The command that explains the same run.
    pub again: Option<String>,
    /// What `runslice explain` says of the run.
    pub explanation: String,
}

impl TestFailure {
    /// Of a test that cannot be made.
    pub(crate) fn wrong(error: &anyhow::Error) -> Box<Self> {
        Box::new(Self {
            what: runslice::in_words(error),
            ..Self::default()
        })
    }

    /// Of a run that was explained.
    pub(crate) fn explained(explanation: &Explanation, again: String) -> Self {
        let whole = explanation.finding.as_ref();
        let waits = explanation.waits.iter().map(|it| &it.finding);
        let acts = whole
            .into_iter()
            .chain(waits)
            .filter_map(|it| it.culprit.as_ref());
        Self {
            line: acts.filter_map(line_of).next(),
            again: Some(again),
            explanation: show::explanation::text::of(explanation, COLUMNS),
            ..Self::default()
        }
    }

    /// Of this test.
    pub(crate) fn of(self, test: &Test<'_>, limit: &str, value: &str) -> Self {
        Self {
            what: format!("{} under {} breaks a limit", test.policy, test.load),
            limit: Some(limit.to_owned()),
            value: Some(value.to_owned()),
            ..self
        }
    }
}

fn line_of(act: &Act) -> Option<String> {
    let place = act.place.as_ref()?;
    let function = &place.function;
    Some(match &place.file {
        Some(file) => format!("{file}:{} ({function})", place.line),
        None => function.clone(),
    })
}

impl fmt::Display for TestFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.what)?;
        let lines = [
            ("limit", &self.limit),
            ("value", &self.value),
            ("line", &self.line),
            ("again", &self.again),
        ];
        for (name, line) in lines {
            if let Some(line) = line {
                write!(to, "\n  {:<7}{line}", format!("{name}:"))?;
            }
        }
        if !self.explanation.is_empty() {
            write!(to, "\n\n{}", self.explanation.trim_end())?;
        }
        Ok(())
    }
}
