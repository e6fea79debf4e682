//! Where a load comes from: a name, a text that is in no file, or a recording.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use model::MachineSpec;
use workload::Workload;

use crate::error::UsageError;
use crate::machine::MachineChange;
use crate::recording::{self, Rerun, Wanted};
use crate::services::{FileKind, Services};
use crate::workload_arg::{self, Written};

/// Where a load comes from. It is read when it is asked for.
#[derive(Clone, Debug)]
pub enum LoadSource {
    /// What a question calls so: a built-in name, a file, a trace.
    Named(Arc<str>),
    /// A text that is in no file.
    Text(Arc<Written>),
    /// A recording that is rerun.
    Recorded(Arc<Path>, Wanted),
}

impl LoadSource {
    /// A text that is in no file. `word` is what the file would be called, such as `mine.toml`;
    /// `.json` is a configuration of rt-app.
    ///
    /// # Errors
    /// When the text is wrong; the message names line and column.
    pub fn of_text(services: &Services<'_>, word: &str, text: &str) -> anyhow::Result<Self> {
        let written = Written {
            file: word.to_owned(),
            text: text.to_owned(),
        };
        parse(services, &written, &[])?;
        Ok(Self::Text(Arc::new(written)))
    }

    /// Its name, or that of its file.
    #[must_use]
    pub fn word(&self) -> Cow<'_, str> {
        match self {
            Self::Named(word) => Cow::Borrowed(word),
            Self::Recorded(path, _) => path.to_string_lossy(),
            Self::Text(written) => Cow::Borrowed(&written.file),
        }
    }

    /// As somebody wrote it.
    ///
    /// # Errors
    /// When there is no such workload, or it is a recording.
    pub fn written(&self, services: &Services<'_>) -> anyhow::Result<Written> {
        match self {
            Self::Recorded(path, _) => {
                let word = path.display();
                let message = format!("{word} is a recording, which has no text of a workload");
                Err(UsageError::new(message).into())
            }
            Self::Named(word) => Written::find(services, word),
            Self::Text(written) => Ok(Written::clone(written)),
        }
    }

    /// The load, with its parameters `scale` set anew.
    ///
    /// # Errors
    /// When there is none, it is wrong, or a recording has parameters.
    pub fn load(
        &self,
        services: &Services<'_>,
        scale: &[(String, i64)],
    ) -> anyhow::Result<Workload> {
        match self {
            Self::Named(word) => workload_arg::find(services, word, scale),
            Self::Text(written) => parse(services, written, scale),
            Self::Recorded(path, wanted) if scale.is_empty() => {
                let load = recording::load(services, path, *wanted)?;
                recording::say_score(services, path);
                Ok(load)
            }
            Self::Recorded(path, _) => {
                let word = path.display();
                let message = format!("{word} is a recording, which has no parameters to --scale");
                Err(UsageError::new(message).into())
            }
        }
    }

    /// The same as a machine that is so changed, or that of a bundle, runs it: of a trace in it
    /// what that charges anew is taken off.
    ///
    /// # Errors
    /// When there is no such profile.
    pub(crate) fn charged(
        &self,
        services: &Services<'_>,
        by: &MachineChange,
        bundled: Option<&MachineSpec>,
    ) -> anyhow::Result<Self> {
        Ok(match self {
            Self::Recorded(path, wanted) => {
                let costs = by.recorded_costs(services, bundled)?;
                Self::Recorded(Arc::clone(path), Wanted { costs, ..*wanted })
            }
            other => other.clone(),
        })
    }

    /// The file or folder that it names, whether it is there or not.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Recorded(path, _) => Some(&**path),
            Self::Named(word) => workload_arg::file_of(word),
            Self::Text(_) => None,
        }
    }

    /// The folder that it names, with a recording of each of many machines.
    #[must_use]
    pub fn folder(&self, services: &Services<'_>) -> Option<&Path> {
        let path = self.path()?;
        (services.kind(path) == Some(FileKind::Folder)).then_some(path)
    }

    /// Its name, or if it has none the load.
    pub(crate) fn given(
        &self,
        services: &Services<'_>,
        scale: &[(String, i64)],
    ) -> anyhow::Result<(Option<&str>, Option<Workload>)> {
        match self {
            Self::Named(name) => Ok((Some(name), None)),
            _ => Ok((None, Some(self.load(services, scale)?))),
        }
    }

    /// Whether another process cannot read it by its name or text.
    pub(crate) fn is_recording(&self, services: &Services<'_>) -> bool {
        match self {
            Self::Recorded(..) => true,
            Self::Named(word) => recording::is_recording(services, Path::new(&**word)),
            Self::Text(_) => false,
        }
    }
}

impl Rerun {
    /// The recording as a source of a load, if there is one.
    ///
    /// # Errors
    /// When a factor or a part is of a recording that is not there.
    pub fn source(&self) -> Result<Option<LoadSource>, UsageError> {
        if self.from.is_none() && self.cost_scale.is_some() {
            let message = "--cost-scale changes the cost of a recording: it needs --from";
            return Err(UsageError::new(message));
        }
        if self.from.is_none() && self.window.is_some() {
            let message = "--window is a part of a recording: it needs --from";
            return Err(UsageError::new(message));
        }
        let path = self.from.as_deref();
        Ok(path.map(|path| LoadSource::Recorded(path.into(), self.wanted())))
    }
}

/// A profile's file lies where the workload says, seen from this process's folder.
fn parse(
    services: &Services<'_>,
    written: &Written,
    scale: &[(String, i64)],
) -> anyhow::Result<Workload> {
    written.parse_beside(services, scale, Path::new(""))
}
