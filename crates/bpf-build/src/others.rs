//! Sources of other people: their warnings are shown and stop nothing, and they read only what
//! [`Readable`] names.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::place::PreparedSource;
use crate::refused::MissingFile;
use crate::runtime::{LIBRARIES, Runtime};
use crate::walls::{self, Reach};
use crate::watch::{self, CompilerEnd, MOST, Most};
use crate::{Error, FLAGS, Readable};

/// An object, and what the compiler said about its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The object's bytes.
    pub object: Vec<u8>,
    /// Warnings as the compiler prints them; empty if there are none.
    pub warnings: String,
    /// The compiler's major version.
    pub clang: u32,
    /// Whether the kernel held the compiler to the files that the source may read. Else only the
    /// compiler's own names of files were held to them, not those in its assembly and links.
    pub is_walled: bool,
}

/// What sources ask for to know where their object will run.
pub(crate) const MACHINE: &str = if cfg!(target_arch = "aarch64") {
    "-D__TARGET_ARCH_arm64"
} else {
    "-D__TARGET_ARCH_x86"
};

/// Compiles `source`. Headers are looked for in its own folder, in the folders of `may`, and in
/// `headers`, in this order; nothing else can be read, nothing written, no connection made and no
/// other program started. Time, memory and what is written are limited. The object does not depend
/// on where `headers` lies. `scratch` is an empty folder of the caller's own.
///
/// # Errors
/// [`Error`] when there is no suitable clang, the source does not compile, asks for a file that it
/// may not read, or takes too much; when a file cannot be read or written; and where the kernel
/// has no walls for a source that may read nothing but itself.
pub fn compile_others(
    source: &Path,
    may: &Readable,
    headers: &Path,
    scratch: &Path,
) -> Result<Built, Error> {
    let place = PreparedSource::prepare(source, may, headers, scratch)?;
    compile_in(&place, source, scratch, &MOST)
}

/// As [`compile_others`], of a source that is ready; takes at most `most`.
pub(crate) fn compile_in(
    place: &PreparedSource,
    source: &Path,
    scratch: &Path,
    most: &Most,
) -> Result<Built, Error> {
    let runtime = Runtime::find()?;
    let view = place.write_view(scratch)?;
    let reach = Reach {
        runtime: &runtime,
        place,
        view: view.as_deref(),
    };
    let of_program = |source| Error::File {
        path: runtime.program.clone(),
        source,
    };
    let mut command = command(&reach).map_err(of_program)?;
    let started = walls::start(&mut command, &reach, place.is_alone);
    let started = started.map_err(|error| match error {
        Some(error) => of_program(error),
        None => Error::NoWalls {
            path: source.to_path_buf(),
        },
    })?;
    let ended = watch::until_end(started.child, most).map_err(of_program)?;
    let ended = judged(ended, source, place, most)?;
    Ok(Built {
        object: ended.object,
        warnings: ended.said,
        clang: runtime.version,
        is_walled: started.is_walled,
    })
}

/// The compiler with an empty environment and nothing to read from; it writes the object into a
/// pipe.
fn command(reach: &Reach) -> std::io::Result<Command> {
    let place = reach.place;
    let mut command = Command::new(&reach.runtime.program);
    command.env_clear().env("LC_ALL", "C");
    command.envs(env::var_os(LIBRARIES).map(|it| (LIBRARIES, it)));
    // A file with more options could lie beside the compiler, and be another one tomorrow. A report
    // of a crash would be written into a folder that is out of reach.
    command.args(["--no-default-config", "-fno-crash-diagnostics"]);
    command.args(FLAGS).arg(MACHINE);
    if let Some(view) = reach.view {
        command.arg("-ivfsoverlay").arg(view);
    }
    for include in &place.includes {
        command.arg("-I").arg(include);
    }
    // Names in the object, so that its bytes are the same wherever the headers were written.
    let mut map = OsString::from("-ffile-prefix-map=");
    map.push(&place.headers);
    map.push("=runslice");
    command.arg(map).arg("-I").arg(&place.headers);
    command.args(["-o", "-", "-c", "--"]).arg(&place.name);
    // It is opened here: behind the walls there is no such device.
    command.stdin(File::open("/dev/null")?);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.current_dir(&place.folder).process_group(0);
    Ok(command)
}

/// Why the compiler broke down, in its words; of the frames of its stack, which name errors too,
/// none.
pub fn reason(said: &str) -> Option<&str> {
    let lines = || said.lines().map(str::trim);
    let without_memory = ["out of memory", "bad_alloc", "Cannot allocate memory"];
    if without_memory.iter().any(|it| said.contains(it)) {
        return Some("out of memory");
    }
    let is_frame = |line: &str| line.starts_with(|it: char| it == '#' || it.is_ascii_digit());
    lines().find(|line| line.contains("rror") && !is_frame(line))
}

/// What the end of the compiler means.
fn judged(
    ended: CompilerEnd,
    source: &Path,
    place: &PreparedSource,
    most: &Most,
) -> Result<CompilerEnd, Error> {
    let path = source.to_path_buf();
    let Some(status) = ended.status else {
        let seconds = most.patience.as_secs();
        return Err(Error::Endless { path, seconds });
    };
    if ended.object.len() as u64 > most.object {
        return Err(Error::TooLong {
            path,
            most: most.object >> 20,
        });
    }
    if status.success() {
        return Ok(ended);
    }
    if let Some(missing) = MissingFile::find(&ended.said)
        && let Some(error) = missing.refused(source, place)
    {
        return Err(error);
    }
    // A shell's number for a signal is 128 and more; so is the compiler's for one in a part of it.
    if status.signal().is_some() || status.code() >= Some(128) {
        return Err(Error::Broken {
            path,
            said: reason(&ended.said).map_or_else(String::new, |line| format!(" ({line})")),
            memory: most.memory >> 20,
            seconds: most.cpu_s,
        });
    }
    Err(Error::Compile {
        path,
        stderr: ended.said,
    })
}
