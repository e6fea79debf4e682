//! Which files a source of somebody may read.

use std::path::{Path, PathBuf};

/// The files that a source may read: always itself and the headers that the caller brings, and what
/// is said here. A folder stands for all that lies in it and below; a link in it leads nowhere
/// else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable {
    pub(crate) own_folder: bool,
    pub(crate) folders: Vec<PathBuf>,
}

impl Readable {
    /// Nothing more: for sources that others wrote. They are not compiled at all where the kernel
    /// cannot hold the compiler to it.
    #[must_use]
    pub fn source_alone() -> Self {
        Self {
            own_folder: false,
            folders: Vec::new(),
        }
    }

    /// The folder of the source: for a source that the user names as his own.
    #[must_use]
    pub fn own_folder() -> Self {
        Self {
            own_folder: true,
            folders: Vec::new(),
        }
    }

    /// This folder, too; headers are looked for in it.
    #[must_use]
    pub fn with(mut self, folder: &Path) -> Self {
        self.folders.push(folder.to_path_buf());
        self
    }
}
