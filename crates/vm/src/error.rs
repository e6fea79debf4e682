//! Why no virtual machine could be run.

use std::io;
use std::path::{Path, PathBuf};

use model::Advice;

/// Why no virtual machine could be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// A program of this computer that the harness itself needs.
    #[error("{program} is not there")]
    ToolMissing {
        /// The program.
        program: &'static str,
        /// Debian's and Ubuntu's name for its package.
        package: &'static str,
    },
    /// `busybox` needs shared libraries, which the guest does not have yet when it starts.
    #[error("{} is not linked statically", .path.display())]
    BusyboxDynamic {
        /// Where it was found.
        path: PathBuf,
    },
    /// The command, or a program to bring along, is not on this computer.
    #[error("`{name}` is neither a program on the PATH nor one of busybox")]
    ProgramMissing {
        /// The name as the user wrote it.
        name: String,
    },
    /// The loader does not find a library that a program needs.
    #[error("{} needs the library {library}, which the loader does not find", .program.display())]
    LibraryMissing {
        /// The program.
        program: PathBuf,
        /// The library.
        library: String,
    },
    /// No kernel of that name, and nothing near it.
    #[error("no kernel {wanted} with sched_ext: {reason}")]
    KernelMissing {
        /// What was asked for.
        wanted: String,
        /// What was tried.
        reason: String,
    },
    /// A tool failed.
    #[error("{program} failed: {words}")]
    ToolFailed {
        /// The program.
        program: String,
        /// The end of what it printed.
        words: String,
    },
    /// There is no folder for downloads.
    #[error("neither XDG_CACHE_HOME nor HOME names a folder for downloaded kernels")]
    NoCache,
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Advice for VmError {
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::ToolMissing { package, .. } => format!("install the package {package}"),
            Self::BusyboxDynamic { .. } => "install the package busybox-static".to_owned(),
            Self::KernelMissing { .. } => "give the path of a vmlinuz instead".to_owned(),
            _ => return None,
        })
    }
}

impl VmError {
    /// For `map_err`: says which file it was.
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { path, source }
    }
}
