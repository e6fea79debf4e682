//! The command that runs while a policy is attached, or a recording goes on.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use live::process::{ask_for_policy, signal};
use live::{Timed, TimedEnd};
use model::Advised;

use crate::files;

/// From one look at the command and at signals to the next.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A word for another program, which knows nothing of [`files::text_of`].
fn word(text: &str) -> OsString {
    files::real(Path::new(text)).into_owned().into_os_string()
}

/// The command of these words, with its program's name; `None` if there are none.
pub fn of(words: &[String]) -> Option<(&str, Command)> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(word(program));
    command.args(arguments.iter().map(|it| word(it)));
    Some((program.as_str(), command))
}

/// Looks for the command's program before anything is attached for it.
///
/// # Errors
/// When there is a command and no such program.
pub fn check(words: &[String]) -> anyhow::Result<()> {
    let Some(program) = words.first() else {
        return Ok(());
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = if program.contains('/') {
        vec![PathBuf::from(word(program))]
    } else {
        let name = word(program);
        env::split_paths(&path).map(|it| it.join(&name)).collect()
    };
    places.retain(|place| place.is_file());
    if places.is_empty() {
        bail!(Advised::new(
            format!("cannot start {program}: there is no such program"),
            "check the name and the PATH"
        ))
    } else {
        Ok(())
    }
}

/// Starts the command, if there is one; `is_partial` lets it ask for the policy.
///
/// # Errors
/// When it cannot be started.
pub fn start(words: &[String], is_partial: bool) -> anyhow::Result<Option<Timed>> {
    let Some((program, mut command)) = of(words) else {
        return Ok(None);
    };
    if is_partial {
        ask_for_policy(&mut command);
    }
    let timed = Timed::start_beside(&mut command);
    timed
        .map(Some)
        .with_context(|| format!("cannot start {program}"))
}

/// Waits for the command, whose end a signal hastens, as it does if one came already
/// (`is_interrupted`). Without the policy it goes on under the kernel's own scheduler.
///
/// # Errors
/// When it cannot be waited for.
pub fn end(child: Option<Timed>, is_interrupted: bool) -> anyhow::Result<Option<TimedEnd>> {
    const BROKEN: &str = "the command cannot be waited for";
    let Some(mut child) = child else {
        return Ok(None);
    };
    while !is_interrupted && signal().is_none() {
        if let Some(end) = child.wait(PAUSE).context(BROKEN)? {
            return Ok(Some(end));
        }
    }
    child.ask_to_end();
    let limit = Instant::now() + GRACE;
    while Instant::now() < limit {
        if let Some(end) = child.wait(PAUSE).context(BROKEN)? {
            return Ok(Some(end));
        }
    }
    // It does not listen; whoever asked twice wants it gone.
    child.end().map(Some).context(BROKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        ["sh", "-c", text].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_command_is_waited_for_and_its_status_kept() {
        let child = start(&words("exit 7"), false).unwrap();
        let end = end(child, false).unwrap().unwrap();
        assert_eq!(end.status.code(), Some(7));
    }

    #[test]
    fn after_a_signal_a_command_is_asked_to_end() {
        let child = start(&words("exec sleep 600"), false).unwrap();
        let end = end(child, true).unwrap().unwrap();
        assert_eq!(end.status.code(), None, "a signal ended it");
    }

    #[test]
    fn a_command_of_names_that_are_no_text_is_found_and_gets_them_as_they_are() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::fs::symlink;

        let folder = folder::OwnFolder::new().unwrap();
        let path = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
        let [program, other] = [path(b"sh \xff"), path(b"so \xfe")];
        symlink("/bin/sh", &program).unwrap();
        let [program, other] = [&program, &other].map(|it| files::text_of(it.as_os_str()));
        let words = [program.as_str(), "-c", ": > \"$1\"", "sh", other.as_str()].map(str::to_owned);
        check(&words).unwrap();
        let end = end(start(&words, false).unwrap(), false).unwrap().unwrap();
        assert_eq!(end.status.code(), Some(0));
        assert!(path(b"so \xfe").exists());
    }

    #[test]
    fn no_command_is_no_child_and_a_missing_one_an_error() {
        assert!(start(&[], false).unwrap().is_none());
        assert!(end(None, false).unwrap().is_none());
        for missing in ["/no/such/program", "no-such-program", "/"] {
            let error = crate::exit::in_full(&check(&[missing.to_owned()]).unwrap_err());
            assert_eq!(
                error,
                format!(
                    "cannot start {missing}: there is no such program; check the name and the PATH"
                )
            );
        }
        check(&words("true")).unwrap();
        check(&[]).unwrap();
        let error = start(&["/no/such/program".to_owned()], false).unwrap_err();
        assert_eq!(error.to_string(), "cannot start /no/such/program");
    }
}
