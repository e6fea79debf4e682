//! The folder for what is downloaded once: `runslice` in the user's cache (XDG base directories).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::VmError;

/// The folder `name` in the cache, made if it is not there.
///
/// # Errors
/// When no variable says where the cache is, or the folder cannot be made.
pub fn folder(name: &str) -> Result<PathBuf, VmError> {
    let base = match (env::var_os("XDG_CACHE_HOME"), env::var_os("HOME")) {
        (Some(cache), _) if !cache.is_empty() => PathBuf::from(cache),
        (_, Some(home)) if !home.is_empty() => PathBuf::from(home).join(".cache"),
        _ => return Err(VmError::NoCache),
    };
    let folder = base.join("runslice").join(name);
    fs::create_dir_all(&folder).map_err(VmError::file(&folder))?;
    Ok(folder)
}

/// A folder in which something for the cache is made, to be moved into its place when it is whole.
/// It goes when this is dropped, with what is still in it.
#[derive(Debug)]
pub struct Beside(PathBuf);

impl Beside {
    /// An empty folder beside `place`, of this process's own.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn of(place: &Path) -> Result<Self, VmError> {
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part{}", std::process::id()));
        let path = place.with_file_name(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(VmError::file(&path))?;
        Ok(Self(path))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // What cannot be removed is made anew by the next one of its name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_halfway_is_gone_and_what_was_moved_stays() {
        let place = env::temp_dir().join(format!("runslice-beside-{}", std::process::id()));
        let beside = Beside::of(&place).unwrap();
        let made = beside.path().join("root");
        fs::create_dir_all(&made).unwrap();
        fs::write(made.join("whole"), "x").unwrap();
        fs::write(beside.path().join("half"), "x").unwrap();
        fs::rename(&made, &place).unwrap();
        let path = beside.path().to_owned();
        drop(beside);
        assert!(!path.exists() && place.join("whole").is_file());
        fs::remove_dir_all(place).unwrap();
    }
}
