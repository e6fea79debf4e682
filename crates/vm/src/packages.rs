//! Programs of Debian packages that are not installed: downloaded through the system's own apt and
//! unpacked into the cache, with the packages that they need and that are not installed either.
//! Nothing is installed, and no lists are changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt::output;
use super::{VmError, cache, programs};

/// Packages unpacked into one folder.
#[derive(Clone, Debug)]
pub struct Packages {
    root: PathBuf,
}

/// Written last, so that a folder with it is whole.
const WHOLE: &str = "whole";

impl Packages {
    /// The packages `names` with what they need, from the cache or downloaded now; `progress` hears
    /// of a download.
    ///
    /// # Errors
    /// When apt knows no such package, the mirror does not answer, or the cache cannot be written.
    pub fn fetch(names: &[&str], progress: &mut dyn FnMut(&str)) -> Result<Self, VmError> {
        let root = cache::folder("packages")?.join(names.join("+"));
        let packages = Self { root };
        if packages.root.join(WHOLE).is_file() {
            return Ok(packages);
        }
        let needed = needed(names)?;
        progress(&format!(
            "fetching {} packages for {}",
            needed.len(),
            names.join(", ")
        ));
        // Made beside and moved at the end: a download that fails, or another one at the same time,
        // leaves no half of a folder.
        let beside = cache::Beside::of(&packages.root)?;
        let unpacked = beside.path().join("root");
        unpack(&needed, beside.path(), &unpacked)?;
        let whole = unpacked.join(WHOLE);
        fs::write(&whole, needed.join("\n")).map_err(VmError::file(&whole))?;
        // What an earlier version left half done is in the way.
        if !packages.root.join(WHOLE).is_file() {
            let _ = fs::remove_dir_all(&packages.root);
            fs::rename(&unpacked, &packages.root).map_err(VmError::file(&packages.root))?;
        }
        Ok(packages)
    }

    /// Where the packages' files are, as if it were `/`.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The program `name` of them.
    ///
    /// # Errors
    /// When none of the packages has it.
    pub fn program(&self, name: &str) -> Result<PathBuf, VmError> {
        let folders = ["usr/bin", "usr/sbin", "bin", "sbin"];
        let paths = folders.map(|folder| self.root.join(folder).join(name));
        let found = paths.into_iter().find(|path| path.is_file());
        found.ok_or_else(|| VmError::ProgramMissing {
            name: name.to_owned(),
        })
    }
}

/// Whether a program of that name is on the PATH.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    programs::find(program).is_some()
}

/// `program` of `package`, from the cache or downloaded now.
///
/// # Errors
/// As [`Packages::fetch`] and [`Packages::program`].
pub fn fetch_program(
    program: &str,
    package: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, VmError> {
    Packages::fetch(&[package], progress)?.program(program)
}

/// Where the shared libraries of unpacked packages lie, for a program among them: the folder in
/// the cache is the root of a tree of its own.
pub fn library_folders(program: &Path) -> Vec<PathBuf> {
    let Ok(cache) = cache::folder("packages") else {
        return Vec::new();
    };
    let Ok(below) = program.strip_prefix(&cache) else {
        return Vec::new();
    };
    let Some(name) = below.components().next() else {
        return Vec::new();
    };
    let root = cache.join(name);
    let folders = [
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
        "usr/lib",
    ];
    let folders = folders.map(|folder| root.join(folder));
    folders.into_iter().filter(|it| it.is_dir()).collect()
}

/// Downloads packages into `beside` and unpacks them into `root`.
fn unpack(packages: &[String], beside: &Path, root: &Path) -> Result<(), VmError> {
    let archives = beside.join("archives");
    for folder in [root, &archives] {
        fs::create_dir_all(folder).map_err(VmError::file(folder))?;
    }
    let mut download = Command::new("apt-get");
    download
        .args(["--quiet", "-o", "APT::Sandbox::User=", "download"])
        .args(packages)
        .current_dir(&archives);
    output("apt-get", &mut download)?;
    let entries = fs::read_dir(&archives).map_err(VmError::file(&archives))?;
    for entry in entries {
        let archive = entry.map_err(VmError::file(&archives))?.path();
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(&archive).arg(root);
        output("dpkg-deb", &mut unpack)?;
        // Both at a time would need twice the room.
        fs::remove_file(&archive).map_err(VmError::file(&archive))?;
    }
    Ok(())
}

/// `names` and what they need, without what is installed.
fn needed(names: &[&str]) -> Result<Vec<String>, VmError> {
    let mut list = Command::new("apt-get");
    list.args([
        "--quiet",
        "--quiet",
        "--print-uris",
        "--yes",
        "--no-install-recommends",
    ])
    .arg("install")
    .args(names);
    let listed = output("apt-get", &mut list)?;
    let mut needed: Vec<String> = listed.lines().filter_map(parse_archive).collect();
    // apt names none that are installed, and one that is installed may not be what is asked for.
    for name in names {
        if !needed.iter().any(|it| it.split('=').next() == Some(name)) {
            needed.push((*name).to_owned());
        }
    }
    Ok(needed)
}

/// A line `'address' name_version_architecture.deb size hash`, as `name=version`. Colons of
/// versions are written `%3a`.
fn parse_archive(line: &str) -> Option<String> {
    let file = line.split(' ').nth(1)?.strip_suffix(".deb")?;
    let mut parts = file.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(format!("{name}={}", version.replace("%3a", ":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_known_by_name_and_version() {
        let line = "'http://m.example/p/x/libx_1%3a2.0-1+b2_amd64.deb' libx_1%3a2.0-1+b2_amd64.deb \
                    27624 MD5Sum:0";
        assert_eq!(parse_archive(line), Some("libx=1:2.0-1+b2".to_owned()));
        assert_eq!(parse_archive("Reading package lists..."), None);
    }

    #[test]
    fn programs_outside_the_cache_have_no_libraries_there() {
        assert_eq!(
            library_folders(Path::new("/usr/bin/env")),
            Vec::<PathBuf>::new()
        );
    }
}
