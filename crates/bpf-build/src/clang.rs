//! Which compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// The environment variable that names the compiler.
pub(crate) const VARIABLE: &str = "RUNSLICE_CLANG";

/// Names under which distributions install clang, the version that we test with first. A name
/// without a version comes last: it may be anything.
const NAMES: &[&str] = &[
    "clang-19", "clang-20", "clang-21", "clang-22", "clang-23", "clang-18", "clang-17", "clang-16",
    "clang",
];

/// The oldest version that emits 64-bit enums and declaration tags for BPF.
const OLDEST: u32 = 16;

/// A clang that can compile BPF objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clang {
    path: PathBuf,
    version: u32,
    /// Where it says that it lies. A wrapper passes on what the compiler behind it says.
    installed: Option<PathBuf>,
}

impl Clang {
    /// The compiler that `RUNSLICE_CLANG` names, else the first one on the `PATH`.
    ///
    /// # Errors
    /// [`Error::ClangNotFound`], [`Error::ClangUnusable`] or [`Error::ClangTooOld`].
    pub fn find() -> Result<Self, Error> {
        Self::choose(env::var_os(VARIABLE).map(PathBuf::from), NAMES)
    }

    /// Where it is; a bare name is looked up on the `PATH`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its major version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The folder in which it says that its own file lies.
    #[must_use]
    pub fn installed(&self) -> Option<&Path> {
        self.installed.as_deref()
    }

    pub(crate) fn choose(asked: Option<PathBuf>, names: &[&str]) -> Result<Self, Error> {
        let found = if let Some(path) = asked {
            Self::probe(&path).ok_or(Error::ClangUnusable { path })?
        } else {
            let mut found = names.iter().filter_map(|name| Self::probe(Path::new(name)));
            found.next().ok_or(Error::ClangNotFound)?
        };
        if found.version < OLDEST {
            return Err(Error::ClangTooOld {
                path: found.path,
                version: found.version,
            });
        }
        Ok(found)
    }

    fn probe(path: &Path) -> Option<Self> {
        let output = Command::new(path).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut lines = said.lines();
        Some(Self {
            path: path.to_path_buf(),
            version: major_version(&said)?,
            installed: lines.find_map(|it| Some(it.strip_prefix("InstalledDir: ")?.into())),
        })
    }
}

/// The `19` of `Debian clang version 19.1.7 (3+b1)`.
pub(crate) fn major_version(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("clang version ")?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}
