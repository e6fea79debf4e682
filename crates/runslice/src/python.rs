//! The Python package `runslice`, for what takes its libraries: engines and optimisers.

use std::process::{Command, Stdio};

use model::Advised;

use crate::about::About;
use crate::exit::{Status, UnsupportedError};
use crate::interrupt;

/// Names another interpreter than `python3`.
const INTERPRETER: &str = "RUNSLICE_PYTHON";

/// Lets the package do what this program was called for. `extra` is the part of the package that
/// has the libraries for it.
///
/// # Errors
/// When there is no Python, or no such package; the message says what to install.
pub fn hand_over(extra: &str) -> anyhow::Result<Status> {
    let python = std::env::var(INTERPRETER).unwrap_or_else(|_| "python3".to_owned());
    let mut probe = Command::new(&python);
    let probe = probe.args(["-c", "import runslice"]);
    let probe = probe.stdin(Stdio::null()).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|it| it.success()) {
        let message = Advised::new(
            format!("this takes the Python package runslice, which `{python}` does not have"),
            format!(
                "docs/python.md says how to build and install it with [{extra}]; {INTERPRETER} \
                 names another interpreter"
            ),
        );
        return Err(UnsupportedError::new(message).into());
    }
    let words = About::words();
    interrupt::leave_to_others();
    let mut package = Command::new(&python);
    let package = package.args(["-m", "runslice"]).args(&words[1..]);
    let status = package.status()?;
    Ok(status.code().map_or(Status::Interrupted, Status::of))
}
