//! The compiler as a program that may start nothing else: its own file, and the files that the
//! system loads with it.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::{Clang, Error, clang};

/// What runs when others' sources are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// The compiler's own file, without links.
    pub program: PathBuf,
    /// Shared libraries and what finds them. Folders of libraries where nobody names the files.
    pub libraries: Vec<PathBuf>,
    /// The compiler's major version.
    pub version: u32,
}

/// The variable by which a user's own build of a compiler finds its libraries. It is the only one
/// that the compiler keeps.
pub(crate) const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Variables that decide which compiler is found, and how it starts.
const DECIDE: [&str; 3] = [clang::VARIABLE, "PATH", LIBRARIES];

/// Where systems keep libraries, for a loader that does not list them.
const FOLDERS: [&str; 5] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"];

impl Runtime {
    /// The compiler, asked once in the life of this process as long as the environment stays.
    ///
    /// # Errors
    /// The errors of [`Clang::find`]; [`Error::Wrapper`] when `RUNSLICE_CLANG` names no compiler
    /// itself.
    pub(crate) fn find() -> Result<Self, Error> {
        type Known = (Vec<Option<OsString>>, Runtime);
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let key: Vec<_> = DECIDE.iter().map(env::var_os).collect();
        let mut known = KNOWN.lock().expect("whoever held it did not panic");
        if let Some((of, runtime)) = &*known
            && *of == key
        {
            return Ok(runtime.clone());
        }
        let runtime = Self::of(&Clang::find()?, env::var_os(clang::VARIABLE).is_some())?;
        *known = Some((key, runtime.clone()));
        Ok(runtime)
    }

    /// That of this compiler; `asked` says that the user named it.
    pub(crate) fn of(clang: &Clang, asked: bool) -> Result<Self, Error> {
        let named = on_path(clang.path()).canonicalize().ok();
        let program = match named.filter(|path| is_compiler(path)) {
            Some(program) => program,
            None => behind_wrapper(clang, asked)?,
        };
        let mut libraries = libraries(&program);
        if libraries.is_empty() {
            libraries = FOLDERS.iter().map(PathBuf::from).collect();
            libraries.extend(program.parent().map(|folder| folder.join("../lib")));
        }
        libraries.extend(["/etc/ld.so.cache", "/etc/ld.so.preload"].map(PathBuf::from));
        libraries.retain(|path| path.exists());
        Ok(Self {
            program,
            libraries,
            version: clang.version(),
        })
    }
}

/// A wrapper, such as a script or ccache, starts the compiler as another program, which the walls
/// forbid. One that stands on the `PATH` is gone round; one that was asked for may add flags, so
/// the user decides.
fn behind_wrapper(clang: &Clang, asked: bool) -> Result<PathBuf, Error> {
    let installed = clang.installed().map(|folder| folder.join("clang"));
    let program = installed.and_then(|path| path.canonicalize().ok());
    match program.filter(|path| !asked && is_program(path)) {
        Some(program) => Ok(program),
        None => Err(Error::Wrapper {
            path: clang.path().to_path_buf(),
        }),
    }
}

/// The file that a bare name stands for.
fn on_path(name: &Path) -> PathBuf {
    if name.components().count() > 1 {
        return name.to_path_buf();
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&folders).map(|folder| folder.join(name));
    files
        .find(|file| file.is_file())
        .unwrap_or_else(|| name.to_path_buf())
}

fn is_compiler(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("clang") && is_program(path)
}

/// Whether it is machine code: the first bytes of an ELF file.
fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// The files that the system's loader says it loads; none if it does not say.
///
/// Source: ld.so(8), `LD_TRACE_LOADED_OBJECTS`.
pub(crate) fn libraries(program: &Path) -> Vec<PathBuf> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear();
    command.env("LD_TRACE_LOADED_OBJECTS", "1");
    command.envs(env::var_os(LIBRARIES).map(|it| (LIBRARIES, it)));
    let output = command.stdin(Stdio::null()).output();
    let text = output.map(|it| it.stdout).unwrap_or_default();
    listed(&String::from_utf8_lossy(&text))
}

/// The paths of lines such as `libc.so.6 => /lib/libc.so.6 (0x7f)` and `/lib/ld.so (0x7f)`.
pub(crate) fn listed(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (before, _) = line.trim().rsplit_once(" (0x")?;
        let path = before.rsplit_once("=> ").map_or(before, |(_, path)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}
