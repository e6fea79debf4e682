//! Compiles C to BPF objects, for build scripts, tests and `runslice build`.
//!
//! The bytes of an object depend on its sources and on the compiler's version, and on nothing
//! else: the compiler runs in the source's folder, sees relative paths only and no header of the
//! system, so that the same commit gives the same object in any folder.

#![deny(unsafe_code)]

mod clang;
mod files;
#[cfg(feature = "others")]
mod filter;
#[cfg(feature = "others")]
mod others;
mod paths;
#[cfg(feature = "others")]
mod place;
#[cfg(feature = "others")]
mod readable;
#[cfg(feature = "others")]
mod refused;
#[cfg(feature = "others")]
mod runtime;
#[cfg(feature = "others")]
mod walls;
#[cfg(feature = "others")]
mod watch;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use clang::Clang;
pub use files::files_below;
use model::Advice;
#[cfg(feature = "others")]
pub use others::{Built, compile_others};
#[cfg(feature = "others")]
pub use readable::Readable;

/// Why there is no object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No compiler on this machine.
    #[error("clang not found")]
    ClangNotFound,
    /// `RUNSLICE_CLANG` names something that does not run.
    #[error("RUNSLICE_CLANG is `{path}`, which does not run as a clang")]
    ClangUnusable {
        /// The variable's value.
        path: PathBuf,
    },
    /// The compiler cannot emit what the objects need.
    #[error("{path} is clang {version}")]
    ClangTooOld {
        /// The compiler.
        path: PathBuf,
        /// Its major version.
        version: u32,
    },
    /// `RUNSLICE_CLANG` names a program that starts the compiler as another one.
    #[error(
        "RUNSLICE_CLANG is `{}`, which starts clang as another program", .path.display()
    )]
    Wrapper {
        /// The variable's value.
        path: PathBuf,
    },
    /// The kernel cannot hold the compiler to the files that a source may read.
    #[error(
        "{}: this kernel lacks Landlock or seccomp, which keep the source from reading other \
         files", .path.display()
    )]
    NoWalls {
        /// The source.
        path: PathBuf,
    },
    /// The source cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Source {
        /// The source.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The source asks for a file that it may not read.
    #[error("{at}: cannot include {wanted}: it lies outside of the source's folder")]
    Outside {
        /// File and line that ask for it.
        at: String,
        /// The path as it is written.
        wanted: String,
    },
    /// As [`Error::Outside`], of a source that may read nothing beside itself.
    #[error(
        "{at}: cannot include {wanted}: the source is compiled alone, with the headers of \
         runslice"
    )]
    Alone {
        /// File and line that ask for it.
        at: String,
        /// The path as it is written.
        wanted: String,
    },
    /// The compiler does not come to an end.
    #[error(
        "{}: clang took longer than {seconds} s and was stopped",
        .path.display()
    )]
    Endless {
        /// The source.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The compiler ended by a signal, or as after one.
    #[error(
        "{}: clang broke down{said} (it may take {memory} MiB of memory and {seconds} s of CPU \
         time)", .path.display()
    )]
    Broken {
        /// The source.
        path: PathBuf,
        /// The first line that the compiler said, in brackets; empty if it said nothing.
        said: String,
        /// The limit of its memory in MiB.
        memory: u64,
        /// The limit of its CPU time.
        seconds: u64,
    },
    /// The object is too long.
    #[error("{}: its object is longer than {most} MiB", .path.display())]
    TooLong {
        /// The source.
        path: PathBuf,
        /// The limit in MiB.
        most: u64,
    },
    /// The source does not compile.
    #[error("{} does not compile:\n{stderr}", .path.display())]
    Compile {
        /// The source.
        path: PathBuf,
        /// What the compiler said.
        stderr: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Advice for Error {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::ClangNotFound => {
                "install clang-19 or set RUNSLICE_CLANG to a clang of at least 16"
            }
            Self::ClangUnusable { .. } => "correct or unset it",
            Self::ClangTooOld { .. } => "install clang-19 or set RUNSLICE_CLANG to 16 or newer",
            Self::Wrapper { .. } => "name clang itself, such as /usr/lib/llvm-19/bin/clang",
            Self::NoWalls { .. } => {
                "compile it on Linux 5.13 or newer, with `landlock` in its `lsm=`"
            }
            Self::Alone { .. } => "put all that it needs into its own file",
            Self::Endless { .. } | Self::Broken { .. } => "simplify the source",
            Self::TooLong { .. } => "make its variables smaller",
            Self::Source { source, .. } => return model::to_read(source),
            Self::File { source, .. } => return model::to_write(source),
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

/// Compiles `source` and returns the object's bytes. `includes` are searched for headers, in
/// this order.
///
/// # Errors
/// [`Error`] when there is no suitable clang or when the source does not compile; warnings are
/// errors.
pub fn compile(source: &Path, includes: &[&Path]) -> Result<Vec<u8>, Error> {
    let clang = Clang::find()?;
    let output = run(command(&clang, source, includes)?.args(["-o", "-"]), &clang)?;
    checked(source, &output)?;
    Ok(output.stdout)
}

/// Compiles `source` to `out`, for a build script: prints the lines that make cargo run the
/// script again when the source, one of the headers that it used, or the choice of the compiler
/// changes.
///
/// # Errors
/// The errors of [`compile`]; and when `out` or the list of headers beside it cannot be written
/// or read.
pub fn compile_into(source: &Path, includes: &[&Path], out: &Path) -> Result<(), Error> {
    println!("cargo::rerun-if-env-changed={}", clang::VARIABLE);
    println!("cargo::rerun-if-changed={}", source.display());
    let clang = Clang::find()?;
    let list = out.with_extension("d");
    let mut command = command(&clang, source, includes)?;
    command.arg("-MD").arg("-MF").arg(&list).arg("-o").arg(out);
    let output = run(&mut command, &clang)?;
    checked(source, &output)?;
    let rule = fs::read_to_string(&list).map_err(|source| Error::File { path: list, source })?;
    let folder = paths::folder(source)?;
    for header in paths::prerequisites(&rule) {
        println!("cargo::rerun-if-changed={}", folder.join(header).display());
    }
    Ok(())
}

/// The compiler's command line without its output.
fn command(clang: &Clang, source: &Path, includes: &[&Path]) -> Result<Command, Error> {
    let folder = paths::folder(source)?;
    let mut command = Command::new(clang.path());
    command.args(FLAGS).arg("-Werror");
    for include in includes {
        let include = paths::canonical(include)?;
        command.arg("-I").arg(paths::relative(&folder, &include));
    }
    command
        .arg("-c")
        .arg(source.file_name().unwrap_or_default());
    // Line information quotes the source, so the compiler must find it under the name that it
    // records; hence its working folder instead of a prefix map.
    command.current_dir(folder);
    Ok(command)
}

/// What every object is compiled with. Instruction set v3 is what kernels with sched_ext have and
/// what upstream policies use; v4 is an LLVM default from 20 on, which older kernels refuse.
const FLAGS: &[&str] = &[
    "--target=bpf",
    "-mcpu=v3",
    "-x",
    "c",
    "-std=gnu11",
    "-g",
    "-O2",
    "-Wall",
    "-nostdinc",
    "-fno-ident",
    "-fno-strict-aliasing",
    "-fno-stack-protector",
    "-fdebug-compilation-dir=.",
];

fn run(command: &mut Command, clang: &Clang) -> Result<std::process::Output, Error> {
    command.output().map_err(|source| Error::File {
        path: clang.path().to_path_buf(),
        source,
    })
}

fn checked(source: &Path, output: &std::process::Output) -> Result<(), Error> {
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Compile {
        path: source.to_path_buf(),
        stderr,
    })
}

#[cfg(all(test, feature = "others"))]
mod others_tests;
#[cfg(test)]
mod tests;
