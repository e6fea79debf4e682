//! What the files below `/proc/PID` tell of the program: the simulated machine's numbers, and
//! nothing that would differ from run to run.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::paths::{PathOwner, Resolved};
use crate::state::{CallContext, Errno, LoaderState};

/// Files that tell how the host ran the program: they do not exist, as in kernels without them.
const HIDDEN: &[&str] = &[
    "clear_refs",
    "io",
    "numa_maps",
    "pagemap",
    "sched",
    "schedstat",
    "smaps",
    "smaps_rollup",
    "stack",
    "syscall",
    "timers",
    "timerslack_ns",
    "wchan",
];

/// The text of a file that the supervisor writes itself; none of any other file.
///
/// # Errors
/// `ENOENT` of a file that does not exist here. If the host's file cannot be read.
pub fn text(cx: &CallContext<'_>, found: &Resolved) -> Result<Option<String>, Errno> {
    if found.place != PathOwner::Process {
        return Ok(None);
    }
    let Some((real, name)) = file_of(&found.below) else {
        return Ok(None);
    };
    match name {
        "status" => Ok(Some(status(cx.state, &read(cx.state, found)?))),
        "stat" => Ok(Some(stat(cx.state, real, &read(cx.state, found)?))),
        name if HIDDEN.contains(&name) => Err(Errno(libc::ENOENT)),
        _ => Ok(None),
    }
}

/// The host's own text. A thread may give itself a name that is no UTF-8.
fn read(state: &LoaderState, found: &Resolved) -> Result<String, Errno> {
    let mut text = Vec::new();
    let file = found.open(state, OFlags::RDONLY, Mode::empty())?;
    File::from(file).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The host's number and the file's name, of a path `proc/PID/NAME` or `proc/PID/task/TID/NAME`
/// from the root.
fn file_of(host: &Path) -> Option<(i32, &str)> {
    let parts: Option<Vec<&str>> = host.iter().map(OsStr::to_str).collect();
    match parts?[..] {
        ["proc", number, name] | ["proc", _, "task", number, name] => {
            Some((number.parse().ok()?, name))
        }
        _ => None,
    }
}

/// The number that the program knows a process or a thread by. The parent of all is 1.
fn shown(state: &LoaderState, real: i32) -> u32 {
    let thread = state.living(real).map(|at| &state.threads[at]);
    let process = state.processes.iter().find(|it| it.real == real);
    let shown = thread.map(|it| it.shown).or(process.map(|it| it.shown));
    shown.unwrap_or(1)
}

/// `/proc/PID/status` as calls answer, whoever the user is: the program is root and has the
/// simulated machine's numbers. What only the supervisor does to it is not told.
fn status(state: &LoaderState, text: &str) -> String {
    let number = |real: &str| shown(state, real.trim().parse().unwrap_or(0));
    let line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value = match name {
            "Tgid" | "Pid" | "PPid" => number(value).to_string(),
            "Ngid" | "TracerPid" | "NoNewPrivs" | "Seccomp" | "Seccomp_filters" => "0".into(),
            "Uid" | "Gid" => "0\t0\t0\t0".into(),
            "Groups" => String::new(),
            "CapPrm" | "CapEff" | "CapBnd" => "000001ffffffffff".into(),
            "CapInh" | "CapAmb" => "0000000000000000".into(),
            // How often the host has taken the CPU away.
            "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" => "0".into(),
            name if name.starts_with("NS") => return None,
            _ => return Some(format!("{line}\n")),
        };
        Some(format!("{name}:\t{value}\n"))
    };
    text.lines().filter_map(line).collect()
}

/// `/proc/PID/stat`: who it is and what it was charged; all that is the host's is 0.
fn stat(state: &LoaderState, real: i32, text: &str) -> String {
    /// Fields of the file, Linux 6.18, fs/proc/array.c.
    const FIELDS: usize = 52;
    let name = text.split_once('(').and_then(|(_, it)| it.rsplit_once(')'));
    let name = name.map_or("", |it| it.0);
    let thread = state.living(real).map(|at| &state.threads[at]);
    let process = thread.map(|it| it.process);
    let process = process.or(state.processes.iter().position(|it| it.real == real));
    let parent = process.and_then(|it| state.processes[it].parent);
    let lives = state.threads.iter().filter(|it| it.lives && Some(it.process) == process);
    let charged = process.map_or(0, |it| state.processes[it].charged.get());
    let nice = thread.map_or(0, |it| i64::from(it.nice));
    let mut fields = [0; FIELDS + 1];
    fields[4] = parent.map_or(1, |it| i64::from(state.processes[it].shown));
    (fields[5], fields[6]) = (state.processes[0].shown.into(), state.processes[0].shown.into());
    fields[8] = -1;
    // In hundredths of a second.
    fields[14] = i64::try_from(charged / 10_000_000).unwrap_or(i64::MAX);
    (fields[18], fields[19]) = (20 + nice, nice);
    fields[20] = lives.count() as i64;
    let rest: Vec<String> = fields[4..].iter().map(ToString::to_string).collect();
    format!("{} ({name}) R {}\n", shown(state, real), rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_processes_and_of_threads_are_told_from_others() {
        let of = |path: &'static str| file_of(Path::new(path));
        assert_eq!(of("proc/12/stat"), Some((12, "stat")));
        assert_eq!(of("proc/12/task/13/stat"), Some((13, "stat")));
        assert_eq!(of("proc/12/fd/stat"), None);
        assert_eq!(of("proc/12/map_files/stat"), None);
        assert_eq!(of("proc/stat"), None);
    }
}
