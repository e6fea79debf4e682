//! Policies and workloads that were given as values.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use bpf::{Knob, Object};
use model::Kernel;
use workload::Workload;

use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::policy::Found;
use crate::recording::{self, Wanted};
use crate::scheduler::{self, LoaderOptions};
use crate::workload_arg::{self, Written};
use crate::{kernel, policy, profile, source};

use super::failure::{Answer, Failure, answer};

/// A policy, and the word of the command line that names it.
#[derive(Clone, Debug)]
pub struct Policy {
    word: String,
    pub(super) found: Found,
}

impl Policy {
    /// What the command line calls so: a built-in name, an object, a source, a bundle; with knobs
    /// behind a colon. A file is read now.
    ///
    /// # Errors
    /// As the command line.
    pub fn named(word: &str) -> Result<Answer<Self>, Failure> {
        answer(|| {
            Ok(Self {
                word: word.to_owned(),
                found: policy::open(word)?,
            })
        })
    }

    /// A file that nobody has written: an object, a bundle, or a scheduler's binary. `word` is what
    /// it would be called, such as `mine.bpf.o`.
    ///
    /// # Errors
    /// As the command line for such a file.
    pub fn of_bytes(word: &str, file: Vec<u8>) -> Result<Answer<Self>, Failure> {
        answer(|| {
            Ok(Self {
                word: word.to_owned(),
                found: policy::of_bytes(word, file)?,
            })
        })
    }

    /// A C source that is in no file. `word` is what it would be called, such as `mine.bpf.c`.
    ///
    /// # Errors
    /// When there is no clang, or the source does not compile.
    pub fn of_source(word: &str, text: &str) -> Result<Answer<Self>, Failure> {
        answer(|| {
            let object = source::object_of_text(word, text)?;
            Ok(Self {
                word: word.to_owned(),
                found: policy::of_bytes(word, object)?,
            })
        })
    }

    /// What a scheduler's own program attaches, as with `--scheduler`: `command` has its words, as
    /// in a shell. It is started when it runs.
    ///
    /// # Errors
    /// When `command` has no words, or a quote that is not closed.
    pub fn of_program(command: &str) -> Result<Answer<Self>, Failure> {
        answer(|| {
            let policy = scheduler::policy_of(command, &LoaderOptions::default())?;
            Ok(Self {
                word: command.to_owned(),
                found: Found::of_policy(policy),
            })
        })
    }

    /// Whether it is a scheduler's own program, which `--scheduler` names.
    pub(super) fn is_program(&self) -> bool {
        let program = self.found.policy.program.as_ref();
        program.is_some_and(|it| it.recorded.is_none())
    }

    /// The same with these knobs, too; a later one of a name counts. Whether they exist is seen
    /// when the policy runs.
    ///
    /// # Errors
    /// When a knob has no name, or the policy is a scheduler's program or its recording.
    pub fn with(&self, knobs: &[(String, String)]) -> Result<Self, Failure> {
        if self.found.policy.program.is_some() && !knobs.is_empty() {
            let message = format!(
                "{} is a scheduler's own program, which sets its policy up by itself: it has no \
                 knobs here",
                self.word
            );
            return Err(anyhow::Error::from(UsageError::new(message)).into());
        }
        let mut new = self.clone();
        for (name, value) in knobs {
            let text = format!("{name}={value}");
            let setting = policy::setting(&text).map_err(UsageError::new);
            new.found
                .policy
                .set
                .push(setting.map_err(anyhow::Error::from)?);
            for of in [&mut new.word, &mut new.found.policy.name] {
                let sign = if of.contains(':') { ',' } else { ':' };
                *of += &format!("{sign}{text}");
            }
        }
        Ok(new)
    }

    /// The word of the command line.
    #[must_use]
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.found.policy.name
    }

    /// The BPF object, as a kernel loads it; empty if a scheduler's own program brings it.
    #[must_use]
    pub fn object(&self) -> &[u8] {
        &self.found.policy.object
    }

    /// Its settings, as they were written.
    #[must_use]
    pub fn set(&self) -> &[(String, String)] {
        &self.found.policy.set
    }

    /// The knobs of its object, with default, range, unit and effect.
    ///
    /// # Errors
    /// When it is no object, or needs what no simulated kernel has.
    pub fn knobs(&self) -> Result<Vec<Knob>, Failure> {
        let knobs = || -> anyhow::Result<_> {
            let name = || self.word.clone();
            let object = Object::parse(&self.found.policy.object).with_context(name)?;
            let image = kernel::link(&object, Kernel::default()).with_context(name)?;
            Ok(image.knobs)
        };
        Ok(knobs()?)
    }
}

/// Name of a workload, and its parameters with their values.
pub type Parameters = (String, Vec<(String, i64)>);

/// A workload, and the word of the command line that names it.
#[derive(Clone, Debug)]
pub enum Load {
    /// What the command line calls so: a built-in name, a file, a trace.
    Named(String),
    /// A text that is in no file.
    Text(Arc<Written>),
    /// A recording, as with `--from`.
    Recorded(String),
}

impl Load {
    /// What the command line calls so. It is read when it runs.
    #[must_use]
    pub fn named(word: &str) -> Self {
        Self::Named(word.to_owned())
    }

    /// What the command line calls so behind `--from`: the file of `--events`, or a trace.
    #[must_use]
    pub fn recorded(word: &str) -> Self {
        Self::Recorded(word.to_owned())
    }

    /// A text that is in no file. `word` is what the file would be called, such as `mine.toml`;
    /// `.json` is a configuration of rt-app.
    ///
    /// # Errors
    /// When the text is wrong; the message names line and column.
    pub fn of_text(word: &str, text: &str) -> Result<Answer<Self>, Failure> {
        answer(|| {
            let written = Written {
                file: word.to_owned(),
                text: text.to_owned(),
            };
            parse(&written, &[])?;
            Ok(Self::Text(Arc::new(written)))
        })
    }

    /// The word of the command line.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Named(word) | Self::Recorded(word) => word,
            Self::Text(written) => &written.file,
        }
    }

    /// The file's text.
    ///
    /// # Errors
    /// When there is no such workload, or it is a trace.
    pub fn text(&self) -> Result<String, Failure> {
        match self {
            Self::Recorded(word) => {
                let message = format!("{word} is a recording, which has no text of a workload");
                Err(anyhow::Error::from(UsageError::new(message)).into())
            }
            Self::Named(word) => Ok(Written::find(&COMPUTER, word)?.text),
            Self::Text(written) => Ok(written.text.clone()),
        }
    }

    /// What it is called, and its parameters with their values.
    ///
    /// # Errors
    /// The errors of [`Load::of_text`].
    pub fn parameters(&self) -> Result<Answer<Parameters>, Failure> {
        answer(|| {
            let load = match self {
                Self::Named(word) => workload_arg::find(word, &[])?,
                Self::Text(written) => parse(written, &[])?,
                Self::Recorded(word) => recording::load(Path::new(word), Wanted::default())?,
            };
            Ok((load.name, load.scale))
        })
    }

    /// The workload, if it is not to be found by its word.
    pub(super) fn given(&self, scale: &[(String, i64)]) -> anyhow::Result<Option<Workload>> {
        match self {
            Self::Named(_) => Ok(None),
            Self::Text(written) => parse(written, scale).map(Some),
            Self::Recorded(word) if scale.is_empty() => {
                recording::load(Path::new(word), Wanted::default()).map(Some)
            }
            Self::Recorded(word) => {
                let message = format!("{word} is a recording, which has no parameters to --scale");
                Err(UsageError::new(message).into())
            }
        }
    }
}

/// A profile's file lies where the workload says, seen from this process's folder.
fn parse(written: &Written, scale: &[(String, i64)]) -> anyhow::Result<Workload> {
    written.parse(&COMPUTER, scale, &|name| {
        profile::find_in(Path::new(""), name)
    })
}
