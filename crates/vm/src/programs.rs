//! Programs of this computer and what they need to run elsewhere.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use super::{VmError, packages};

/// The program that `name` means: a path, or the first one on the PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = std::path::absolute(name).ok()?;
        return is_program(&path).then_some(path);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

/// The program itself, the interpreter of a script, the loader and all shared libraries.
///
/// # Errors
/// When a file cannot be read or the loader does not find a library.
pub fn with_needs(program: &Path) -> Result<BTreeSet<PathBuf>, VmError> {
    let bytes = fs::read(program).map_err(VmError::file(program))?;
    let mut files = BTreeSet::from([program.to_path_buf()]);
    if let Some(interpreter) = script_interpreter(&bytes) {
        if let Some(interpreter) = find(&interpreter) {
            files.extend(with_needs(&interpreter)?);
        }
    } else if let Some(loader) = loader(&bytes) {
        files.extend(libraries(program, &loader)?);
        files.insert(loader);
    } else if is_library(&bytes) {
        // It has no loader of its own; that of this program is the same.
        let me = fs::read("/proc/self/exe").map_err(VmError::file(Path::new("/proc/self/exe")))?;
        if let Some(loader) = loader(&me) {
            files.extend(libraries(program, &loader)?);
        }
    }
    Ok(files)
}

/// Whether a program needs nothing but a kernel.
pub fn is_static(bytes: &[u8]) -> bool {
    loader(bytes).is_none()
}

/// Whether it is a shared object.
fn is_library(bytes: &[u8]) -> bool {
    let header = FileHeader64::<Endianness>::parse(bytes);
    header.is_ok_and(|it| it.e_type(it.endian().unwrap_or_default()) == object::elf::ET_DYN)
}

fn is_program(path: &Path) -> bool {
    let Ok(facts) = fs::metadata(path) else {
        return false;
    };
    facts.is_file() && facts.permissions().mode() & 0o111 != 0
}

/// What stands behind `#!`.
fn script_interpreter(bytes: &[u8]) -> Option<String> {
    let line = bytes
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    Some(line.split_whitespace().next()?.to_owned())
}

/// The loader that an ELF program names (`PT_INTERP`).
fn loader(bytes: &[u8]) -> Option<PathBuf> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let name = segments
        .iter()
        .find_map(|s| s.interpreter(endian, bytes).ok()?)?;
    Some(PathBuf::from(String::from_utf8_lossy(name).into_owned()))
}

/// What the loader would map for `program`. It lists and does not run the program.
fn libraries(program: &Path, loader: &Path) -> Result<BTreeSet<PathBuf>, VmError> {
    let folders = packages::library_folders(program);
    let mut command = Command::new(loader);
    if !folders.is_empty() {
        let folders = env::join_paths(folders).unwrap_or_default();
        command.arg("--library-path").arg(folders);
    }
    let listed = command
        .arg("--list")
        .arg(program)
        .output()
        .map_err(VmError::file(loader))?;
    let mut found = BTreeSet::new();
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        match parse_library(line) {
            Some(Ok(path)) => drop(found.insert(path)),
            Some(Err(library)) => {
                return Err(VmError::LibraryMissing {
                    program: program.to_path_buf(),
                    library,
                });
            }
            None => {}
        }
    }
    Ok(found)
}

/// One line of the loader's list: `name => path (address)`, `path (address)`, or
/// `name => not found`. `None`: a part of the kernel, which has no file.
fn parse_library(line: &str) -> Option<Result<PathBuf, String>> {
    let line = line.trim();
    let (name, place) = line.split_once(" => ").unwrap_or((line, line));
    if place == "not found" {
        return Some(Err(name.to_owned()));
    }
    let path = place.rsplit_once(" (").map_or(place, |(path, _)| path);
    path.starts_with('/').then(|| Ok(PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_loaders_list_is_understood() {
        let path = |text: &str| Some(Ok(PathBuf::from(text)));
        assert_eq!(parse_library("\tlinux-vdso.so.1 (0x00007ffd)"), None);
        assert_eq!(
            parse_library("\tlibz.so.1 => /lib/libz.so.1 (0x00007f)"),
            path("/lib/libz.so.1")
        );
        assert_eq!(
            parse_library("\t/lib64/ld.so.2 (0x00007f)"),
            path("/lib64/ld.so.2")
        );
        assert_eq!(
            parse_library("\tlibq.so => not found"),
            Some(Err("libq.so".to_owned()))
        );
    }

    #[test]
    fn this_test_brings_its_loader_and_the_c_library() {
        let me = env::current_exe().unwrap();
        let needs = with_needs(&me).unwrap();
        let has = |part: &str| {
            needs
                .iter()
                .any(|path| path.to_string_lossy().contains(part))
        };
        assert!(
            needs.contains(&me) && has("ld-linux") && has("libc.so"),
            "{needs:?}"
        );
    }

    #[test]
    fn a_script_names_its_interpreter() {
        assert_eq!(
            script_interpreter(b"#! /bin/sh -e\necho"),
            Some("/bin/sh".to_owned())
        );
        assert_eq!(script_interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn a_program_is_found_by_name_and_a_plain_file_is_none() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
        assert_eq!(find("/etc/passwd"), None);
    }
}
