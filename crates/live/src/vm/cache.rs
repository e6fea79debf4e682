//! The folder for what is downloaded once: `runslice` in the user's cache (XDG base directories).

use std::env;
use std::fs;
use std::path::PathBuf;

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
