//! The programs that runslice consists of, and how one finds and starts another: beside its own
//! file, then on the PATH, as cargo finds its subcommands.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::{env, fs};

use anyhow::Context as _;
use model::Advised;

use crate::exit::UnsupportedError;

/// The command line.
pub const RUNSLICE: &str = "runslice";
/// The verb `reproduce`.
pub const REPRODUCE: &str = "runslice-reproduce";

/// Which of them this process runs; empty in a library that has the same inside.
static THIS: OnceLock<&'static str> = OnceLock::new();

/// From here on this process is known to run the file of the program `name`.
pub fn this_is(name: &'static str) {
    // It may be said more than once.
    let _ = THIS.set(name);
}

/// The file of the program `runslice`, to start it again or to put it into a virtual machine.
///
/// # Errors
/// When another program, such as Python's, has called its library; or when this is another program
/// of runslice, and `runslice` is not found.
pub fn runslice() -> anyhow::Result<PathBuf> {
    match THIS.get() {
        None => {
            let message = "this needs the program runslice itself, which it starts again or puts \
                           into a virtual machine, and not its Python package: build it with \
                           `make release`";
            Err(UnsupportedError::new(message).into())
        }
        Some(&RUNSLICE) => env::current_exe().context("cannot find this program's own file"),
        Some(_) => Ok(find(RUNSLICE)?),
    }
}

/// The words of this process as the command line has them: `runslice-reproduce x` is `runslice
/// reproduce x`.
pub fn words() -> Vec<OsString> {
    let verb = THIS.get().and_then(|name| name.strip_prefix("runslice-"));
    let first = [RUNSLICE].into_iter().chain(verb).map(OsString::from);
    first.chain(env::args_os().skip(1)).collect()
}

/// Goes on as the program `name` with these words: the process becomes it, with its terminal, its
/// environment and the signals that it gets, and does not come back. Where a library has called,
/// the program runs beside it, and its exit status comes back; 128 and the signal's number if one
/// has ended it.
///
/// # Errors
/// When the program is not there or cannot be started.
pub fn go_on_as(name: &'static str, words: &[OsString]) -> anyhow::Result<u8> {
    let file = find(name)?;
    let cannot = || format!("cannot start {}", file.display());
    let mut command = Command::new(&file);
    command.args(words);
    if THIS.get().is_some() {
        return Err(command.exec()).with_context(cannot);
    }
    Ok(status_of(command.status().with_context(cannot)?))
}

fn status_of(ended: ExitStatus) -> u8 {
    let by_signal = ended.signal().map(|signal| 128 + signal);
    let status = ended.code().or(by_signal).unwrap_or(1);
    u8::try_from(status).unwrap_or(1)
}

/// The file of the program `name`, to start it.
///
/// # Errors
/// When it is neither beside this program nor on the PATH.
pub fn find(name: &'static str) -> Result<PathBuf, UnsupportedError> {
    let own = THIS.get().and_then(|_| env::current_exe().ok());
    let beside = own.as_deref().and_then(Path::parent);
    let path = env::var_os("PATH").unwrap_or_default();
    find_in(name, beside, &path).ok_or_else(|| lacking(name, beside))
}

/// The first program of this name `beside`, or in a folder of `path`. An empty part of a PATH is
/// passed over. Shells take it for the current folder; whoever wants that one writes a dot.
fn find_in(name: &str, beside: Option<&Path>, path: &OsStr) -> Option<PathBuf> {
    let folders = beside.map(Path::to_owned).into_iter();
    let mut folders = folders.chain(env::split_paths(path));
    folders.find_map(|folder| {
        let file = folder.join(name);
        (!folder.as_os_str().is_empty() && can_be_started(&file).unwrap_or(false)).then_some(file)
    })
}

fn can_be_started(file: &Path) -> io::Result<bool> {
    let facts = fs::metadata(file)?;
    Ok(facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

fn lacking(name: &str, beside: Option<&Path>) -> UnsupportedError {
    let place = beside.map_or_else(
        || "not on the PATH".to_owned(),
        |folder| format!("neither in {} nor on the PATH", folder.display()),
    );
    UnsupportedError::new(Advised::new(
        format!("the program `{name}` is not installed: it is {place}"),
        format!(
            "install the package of runslice, or build it: `make release`, or in a debug build \
             `cargo build --package {name}`"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_beside_this_one_and_then_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let [beside, first, second] = ["beside", "first", "second"].map(|name| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        let path = env::join_paths([&first, &second]).unwrap();
        let found = || find_in("x", Some(&beside), &path);
        assert_eq!(found(), None);
        // Neither a folder nor a file that nobody may start is a program.
        fs::create_dir(beside.join("x")).unwrap();
        fs::write(first.join("x"), "").unwrap();
        assert_eq!(found(), None);
        let program = |folder: &Path| {
            let file = folder.join("x");
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let file = program(&second);
        assert_eq!(found(), Some(file));
        let file = program(&first);
        assert_eq!(found(), Some(file));
        fs::remove_dir(beside.join("x")).unwrap();
        let file = program(&beside);
        assert_eq!(found(), Some(file));
    }

    #[test]
    fn a_library_has_no_file_to_start_again() {
        let error = runslice().unwrap_err();
        assert!(error.is::<UnsupportedError>(), "{error}");
    }
}
