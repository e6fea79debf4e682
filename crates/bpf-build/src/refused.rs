//! What the compiler says of a file that it may not read, in words that say why.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::place::PreparedSource;

/// A file that the compiler did not find or could not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MissingFile {
    /// Which file asks for it, as the compiler names it; none for assembly in a source.
    pub by: Option<PathBuf>,
    /// The line in it, from 1.
    pub line: u64,
    /// The name that it asks for, as it is written.
    pub wanted: String,
    /// Whether the kernel has refused it: it is there.
    pub is_denied: bool,
}

/// How messages of clang 16 to 23 begin behind their place, and where they name the file.
const MESSAGES: [(&str, &str); 6] = [
    (": fatal error: '", "' file not found"),
    (": error: '", "' file not found"),
    (": fatal error: cannot open file '", "'"),
    (": error: cannot open file '", "'"),
    (": error: Could not find incbin file '", "'"),
    (": error: Could not find include file '", "'"),
];

impl MissingFile {
    /// The first one of these messages.
    pub(crate) fn find(said: &str) -> Option<Self> {
        said.lines().find_map(Self::of)
    }

    fn of(line: &str) -> Option<Self> {
        MESSAGES.iter().find_map(|(before, behind)| {
            let (place, message) = line.split_once(before)?;
            let (wanted, _) = message.split_once(behind)?;
            let mut parts = place.rsplitn(3, ':');
            let (_column, line, by) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Self {
                by: (by != "<inline asm>").then(|| by.into()),
                line: line.parse().ok()?,
                wanted: wanted.to_owned(),
                is_denied: before.contains("cannot open"),
            })
        })
    }

    /// The error that it is, if `place` does not let it be read.
    pub(crate) fn refused(self, source: &Path, place: &PreparedSource) -> Option<Error> {
        let asks = self.by.as_deref().unwrap_or(Path::new(&place.name));
        let beside = asks.parent().unwrap_or(Path::new("")).join(&self.wanted);
        // It is not there, or a link in a folder that may be read leads out of it.
        let is_inside = place.lies_inside(&beside) && !self.is_denied;
        if !place.is_alone && is_inside {
            return None;
        }
        let own = asks == Path::new(&place.name);
        let path = if own { source } else { asks };
        let line = self.by.is_some().then(|| format!(":{}", self.line));
        let at = format!("{}{}", path.display(), line.unwrap_or_default());
        let wanted = self.wanted;
        Some(if place.is_alone {
            Error::Alone { at, wanted }
        } else {
            Error::Outside { at, wanted }
        })
    }
}
