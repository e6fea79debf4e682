//! A folder for the files of one virtual machine, deleted with the value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::VmError;

/// Tells the machines of one process apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder of its own below the system's folder for temporary files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder.
    ///
    /// # Errors
    /// When it is there already or cannot be made.
    pub fn create() -> Result<Self, VmError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("runslice-vm-{}-{number}", process::id());
        let path = std::env::temp_dir().join(name);
        // Not `create_dir_all`: a folder that somebody else has put there is not ours to use.
        fs::create_dir(&path).map_err(VmError::file(&path))?;
        Ok(Self { path })
    }

    /// The path of `name` in the folder.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody can be told, and the system cleans the place up.
        let _ = fs::remove_dir_all(&self.path);
    }
}
