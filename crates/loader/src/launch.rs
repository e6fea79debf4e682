//! Starts a program under a filter, up to its first system call.

use std::collections::BTreeMap;
use std::ffi::{CString, NulError, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Advice, Advised, Nanos};

use crate::anchor::Anchor;
use crate::clock::Clock;
use crate::deaths::PATIENCE;
use crate::exec::{self, Executed};
use crate::executable::Executable;
use crate::filter::{self, FilterError};
use crate::output::{Printed, last_lines};
use crate::processes::random;
use crate::state::{Errno, Process, Settings, LoaderState, Then, Thread};
use crate::sys::{self, Start, StartFailed};
use crate::tree::FolderTree;
use crate::watcher::Watcher;
use crate::work::WorkDone;

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program.
    #[error("{}: {_1}", model::plain::shown(_0.as_os_str().as_bytes()))]
    Program(PathBuf, io::Error),
    /// An argument or a variable of the environment has a zero byte.
    #[error("an argument: {0}")]
    Text(#[from] NulError),
    /// The folder of the simulated machine's files.
    #[error("the files of the simulated machine: {0}")]
    Tree(io::Error),
    /// Another supervisor of system calls is there already.
    #[error(
        "another program already answers this one's system calls (seccomp), as in some containers"
    )]
    Listener,
    /// The host's kernel has no such filters.
    #[error("running a loader needs Linux 5.19 or newer with seccomp ({0})")]
    Kernel(io::Error),
    /// The filter of system calls cannot be built.
    #[error("the filter of system calls: {0}")]
    Filter(#[from] FilterError),
    /// A step of starting.
    #[error("starting the program, {0}: {1}")]
    Step(&'static str, io::Error),
    /// It ended before its first call: its status, and what it said.
    #[error("{0} ended (status {1}) before it made a call{2}")]
    Ended(String, i32, String),
}

impl Advice for StartError {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Program(_, error) => return model::to_read(error),
            Self::Listener => "run it outside, or use a bundle of it",
            Self::Kernel(_) => "a bundle of it runs anywhere",
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

/// The file of a program that is named with or without its folder, and its path. It is opened here:
/// what is looked at is what runs.
fn find(program: &Path) -> Result<(PathBuf, OwnedFd), StartError> {
    let missing = |error| StartError::Program(program.to_owned(), error);
    let is_program = |path: &PathBuf| {
        let facts = fs::metadata(path);
        facts.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let mut found = program.to_owned();
    if program.components().count() == 1 && !program.as_os_str().as_bytes().contains(&b'/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let each = std::env::split_paths(&path).map(|it| it.join(program));
        // The kind alone would say "entity not found".
        let words = Advised::new("there is no such program", "install it, or give its path");
        let missing = || missing(io::Error::new(io::ErrorKind::NotFound, words.clone()));
        found = each.into_iter().find(is_program).ok_or_else(missing)?;
    }
    let found = found.canonicalize().map_err(missing)?;
    // Neither a pipe nor a device is opened.
    if !is_program(&found) {
        return Err(missing(io::ErrorKind::PermissionDenied.into()));
    }
    let file = File::open(&found).map_err(missing)?;
    Ok((found, file.into()))
}

/// The environment: nothing of the user's, so that a run depends on nothing of it.
fn environment(settings: &Settings) -> Result<Vec<CString>, NulError> {
    let fixed = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/root"),
        ("LANG", "C.UTF-8"),
    ];
    let given = &settings.environment;
    let fixed = fixed.iter().filter(|(name, _)| !given.iter().any(|it| it.0 == *name));
    let fixed = fixed.map(|(name, value)| format!("{name}={value}"));
    let given = given.iter().map(|(name, value)| format!("{name}={value}"));
    fixed.chain(given).map(CString::new).collect()
}

/// The folders and files of a run.
struct Opened {
    tree: FolderTree,
    host: Anchor,
    given: Option<(PathBuf, Anchor)>,
    beside: Anchor,
    output: [Printed; 2],
    stdio: [OwnedFd; 3],
}

/// Refuses folders in which a program that writes would change the computer itself.
fn may_be_given(folder: &Path) -> io::Result<()> {
    let is_machine = ["/proc", "/sys", "/dev"].iter().any(|it| folder.starts_with(it));
    if folder == Path::new("/") || is_machine && !folder.starts_with("/dev/shm") {
        let text = format!("--loader-dir {}: choose a folder for files", folder.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// Makes and opens them; from here on each is known by its descriptor.
fn open(settings: &Settings, random: &[u8]) -> io::Result<Opened> {
    let given = settings.folder.as_ref().map(|folder| {
        let folder = folder.canonicalize()?;
        may_be_given(&folder)?;
        let anchor = Anchor::at(&folder)?;
        io::Result::Ok((folder, anchor))
    });
    let tree = FolderTree::new(&settings.shown)?;
    let beside = Anchor::at(tree.folder().path())?;
    beside.write(Path::new("random"), random)?;
    let (out, to_out) = Printed::new(&beside, "stdout")?;
    let (err, to_err) = Printed::new(&beside, "stderr")?;
    Ok(Opened {
        given: given.transpose()?,
        host: Anchor::at(Path::new("/"))?,
        tree,
        beside,
        output: [out, err],
        stdio: [File::open("/dev/null")?.into(), to_out, to_err],
    })
}

/// Whether an argument asks for something that goes by the power of CPUs, as `--enable-eas` and
/// `--powersave`.
fn names_energy(arg: &OsStr) -> bool {
    const WORDS: [&str; 5] = ["eas", "energy", "power", "powersave", "autopower"];
    let arg = arg.to_string_lossy().to_lowercase();
    let mut words = arg.split(|c: char| !c.is_alphanumeric());
    words.any(|word| WORDS.contains(&word))
}

/// Starts a program: what is known of it, and its name.
///
/// # Errors
/// See [`StartError`].
pub fn launch(
    program: &Path,
    args: &[&OsStr],
    settings: Settings,
) -> Result<(LoaderState, String), StartError> {
    let (found, program_file) = find(program)?;
    let mut seed = 0;
    let Opened { tree, host, given, beside, output, stdio } =
        open(&settings, &random(&mut seed, 1 << 20)).map_err(StartError::Tree)?;
    let file = found.file_name().unwrap_or_default().to_string_lossy();
    let name: String = file.into_owned();
    let mut words = vec![CString::new(program.as_os_str().as_bytes())?];
    let asks_energy = args.iter().any(|arg| names_energy(arg));
    for arg in args {
        words.push(CString::new(arg.as_bytes())?);
    }
    let start = Start {
        program: CString::new(found.as_os_str().as_bytes())?,
        args: words,
        environment: environment(&settings)?,
        stdio,
        filter: filter::filter(settings.net)?,
    };
    let (pid, fd, listener) = sys::start(&start).map_err(|it| match it {
        StartFailed::Filter(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            StartError::Listener
        }
        StartFailed::Filter(error) => StartError::Kernel(error),
        StartFailed::Step(step, error) => StartError::Step(step, error),
    })?;
    let watcher = Watcher::start((pid, &fd), tree.folder()).map_err(|error| {
        let _ = rustix::process::pidfd_send_signal(&fd, rustix::process::Signal::KILL);
        StartError::Step("fork", error)
    })?;
    // Where the user is, so that names of files on the command line mean what they mean in a shell.
    let begun_in = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let (process, thread) = first(&settings, &name, begun_in, (pid, fd));
    let state = LoaderState {
        settings,
        tree,
        host,
        given,
        beside,
        grown: 0,
        work: WorkDone::default(),
        listener,
        processes: vec![process],
        threads: vec![thread],
        objects: BTreeMap::new(),
        pins: BTreeMap::new(),
        rings: BTreeMap::new(),
        sockets: BTreeMap::new(),
        clock: Clock::new(Nanos::new(0)),
        woken: Vec::new(),
        notes: BTreeMap::new(),
        asks_energy,
        random: seed,
        order: 0,
        output,
        _watcher: watcher,
    };
    let named = found.as_os_str().as_bytes().to_vec();
    let program = Executable::of_file(&state, pid, program_file, named);
    match program {
        Ok(program) => begin(state, name, &program, &found),
        Err(errno) => {
            ended(&state, name);
            Err(not_executed(&found, errno))
        }
    }
}

/// The program's first process and its first thread.
fn first(
    settings: &Settings,
    name: &str,
    cwd: PathBuf,
    (pid, fd): (i32, OwnedFd),
) -> (Process, Thread) {
    let process = Process {
        real: pid,
        shown: 0,
        fd: Arc::new(fd),
        cwd,
        parent: None,
        lives: true,
        charged: Nanos::new(0),
    };
    let thread = Thread {
        tid: pid,
        shown: 0,
        process: 0,
        name: name.chars().take(15).collect(),
        parked: None,
        lives: true,
        clear: None,
        policy: (0, 0),
        nice: 0,
        affinity: (0..settings.shown.machine.cpus).collect(),
        charged: Nanos::new(0),
        signals: Vec::new(),
    };
    (process, thread)
}

/// Lets the program execute, up to its first call.
fn begin(
    mut state: LoaderState,
    name: String,
    program: &Executable,
    found: &Path,
) -> Result<(LoaderState, String), StartError> {
    let tracing = |error| StartError::Step("exec", error);
    let call = loop {
        match state.look_out(Some(0), PATIENCE) {
            (true, _) => {
                if let Some(call) = state.listener.receive().map_err(tracing)? {
                    break call;
                }
            }
            (false, _) => return Err(ended(&state, name)),
        }
    };
    match exec::exec(&mut state, 0, &call, program) {
        Ok(Executed::Done) => {}
        Ok(Executed::Refused(errno)) => {
            let error = not_executed(found, errno);
            ended(&state, name);
            return Err(error);
        }
        Ok(Executed::Died(_)) => return Err(ended(&state, name)),
        Err(errno) => return Err(tracing(io::Error::from_raw_os_error(errno.0))),
    }
    loop {
        match state.look_out(Some(0), PATIENCE) {
            (true, _) => {
                if let Some(call) = state.listener.receive().map_err(tracing)? {
                    state.park(0, call, Then::Handle, None);
                    return Ok((state, name));
                }
            }
            (false, _) => return Err(ended(&state, name)),
        }
    }
}

fn not_executed(found: &Path, errno: Errno) -> StartError {
    StartError::Program(found.to_owned(), io::Error::from_raw_os_error(errno.0))
}

fn ended(state: &LoaderState, name: String) -> StartError {
    state.kill_all();
    // Its end is awaited, so that no zombie stays.
    state.look_out(Some(0), PATIENCE);
    let status = sys::ended(state.processes[0].real).unwrap_or(255);
    let said = match last_lines(&state.output) {
        lines if lines.is_empty() => lines,
        lines => format!(": {lines}"),
    };
    StartError::Ended(name, status, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_of_the_machine_itself_is_given_to_a_program() {
        for folder in ["/", "/dev", "/dev/pts", "/proc", "/proc/1", "/sys/kernel"] {
            let error = may_be_given(Path::new(folder)).unwrap_err().to_string();
            assert!(error.contains(folder), "{error}");
        }
        for folder in ["/tmp", "/dev/shm/x", "/devices"] {
            may_be_given(Path::new(folder)).unwrap();
        }
    }

    #[test]
    fn options_that_go_by_the_power_of_cpus_are_known_by_their_words() {
        for arg in ["--enable-eas", "--powersave", "--primary-domain=powersave", "--Energy"] {
            assert!(names_energy(OsStr::new(arg)), "{arg}");
        }
        for arg in ["--performance", "--slice-us=500", "--increase", "--lease", "-v"] {
            assert!(!names_energy(OsStr::new(arg)), "{arg}");
        }
    }
}
