//! Packages of other releases, fetched through the system's own package manager into a folder of
//! ours. Nothing is installed, and the system's lists and settings stay as they are.
//!
//! The mirror, its keys and any proxy are the system's: only the name of the release differs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{VmError, cache};

/// Settings on top of the system's. Hooks that clean or tell other programs are not for us, and
/// of all indexes only that of packages is used.
const SETTINGS: &str = "\
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {
    MetaKey \"$(COMPONENT)/binary-$(ARCHITECTURE)/Packages\";
    flatMetaKey \"Packages\";
    ShortDescription \"Packages\";
    Description \"$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Packages\";
    Optional \"false\";
};
APT::Architecture \"amd64\";
APT::Architectures { \"amd64\"; };
APT::Sandbox::User \"\";
Acquire::Retries \"3\";
";

/// One release of the distribution, with lists of its own.
#[derive(Debug)]
pub struct Release {
    name: &'static str,
    folder: PathBuf,
}

/// Where Debian's package debian-archive-keyring puts its keys, by its age.
const KEYS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

impl Release {
    /// The release `name`; its lists are fetched by [`Release::update`].
    ///
    /// # Errors
    /// When the system has no Debian mirror, no apt, or the cache cannot be written.
    pub fn open(name: &'static str) -> Result<Self, VmError> {
        let mirror = mirror()?;
        let folder = cache::folder("apt")?.join(name);
        for part in ["etc", "state/lists/partial", "cache/archives/partial"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(VmError::file(&part))?;
        }
        let keys = KEYS.iter().find(|path| Path::new(path).is_file());
        // Without them apt refuses what it cannot verify, and says so.
        let keys = keys.map_or_else(String::new, |keys| format!("[signed-by={keys}] "));
        let release = Self { name, folder };
        release.write(
            "etc/sources.list",
            &format!("deb {keys}{mirror} {name} main\n"),
        )?;
        release.write("state/status", "")?;
        release.write("etc/settings", &release.settings())?;
        Ok(release)
    }

    /// Fetches the lists of packages.
    ///
    /// # Errors
    /// When the mirror does not answer.
    pub fn update(&self) -> Result<(), VmError> {
        self.run("apt-get", &["--quiet", "update"]).map(drop)
    }

    /// The names of the packages that begin with `prefix`; empty before the first update.
    ///
    /// # Errors
    /// When apt does not run.
    pub fn packages(&self, prefix: &str) -> Result<Vec<String>, VmError> {
        let names = self.run("apt-cache", &["pkgnames", prefix])?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// How large the download of a package is, in MB; `None` if the lists do not say.
    ///
    /// # Errors
    /// When apt does not run.
    pub fn size_mb(&self, package: &str) -> Result<Option<u64>, VmError> {
        let told = self.run("apt-cache", &["--no-all-versions", "show", package])?;
        Ok(parse_size(&told).map(|bytes| bytes.div_ceil(1_000_000)))
    }

    /// Downloads a package and unpacks those of its files that match `patterns` below `to`.
    ///
    /// # Errors
    /// When the mirror does not answer, or the package has no such file.
    pub fn unpack(&self, package: &str, patterns: &[&str], to: &Path) -> Result<(), VmError> {
        fs::create_dir_all(to).map_err(VmError::file(to))?;
        self.run_in(to, "apt-get", &["--quiet", "download", package])?;
        let archive = first_archive(to)?;
        // Only a pipe spares the disk the other 500 MB of a kernel package. Each pattern may miss:
        // where a kernel lies in its package depends on the version.
        let script = r#"dpkg-deb --fsys-tarfile "$1" | { shift; tar -x --wildcards "$@"; }"#;
        let unpacked = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(&archive)
            .args(patterns)
            .current_dir(to)
            .env("LC_ALL", "C")
            .output()
            .map_err(VmError::file(Path::new("sh")))?;
        if let Some(words) = unwritten(&String::from_utf8_lossy(&unpacked.stderr)) {
            return Err(VmError::ToolFailed {
                program: format!("unpacking {package}"),
                words,
            });
        }
        fs::remove_file(&archive).map_err(VmError::file(&archive))
    }

    /// The release's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self) -> String {
        let folder = self.folder.display();
        format!(
            "{SETTINGS}Dir::Etc \"{folder}/etc\";\nDir::State \"{folder}/state\";\n\
             Dir::State::status \"{folder}/state/status\";\nDir::Cache \"{folder}/cache\";\n"
        )
    }

    fn write(&self, name: &str, text: &str) -> Result<(), VmError> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(VmError::file(&path))
    }

    fn run(&self, program: &'static str, arguments: &[&str]) -> Result<String, VmError> {
        self.run_in(&self.folder, program, arguments)
    }

    fn run_in(
        &self,
        folder: &Path,
        program: &'static str,
        arguments: &[&str],
    ) -> Result<String, VmError> {
        let mut command = Command::new(program);
        command
            .arg("-c")
            .arg(self.folder.join("etc/settings"))
            .args(arguments);
        output(program, command.current_dir(folder))
    }
}

/// What tar says of a file that it could not write; `None` if it wrote all. That a pattern was not
/// found is no such thing.
fn unwritten(words: &str) -> Option<String> {
    let line = words.lines().find(|line| line.contains(": Cannot "));
    line.map(str::to_owned)
}

/// The address of the system's Debian mirror.
fn mirror() -> Result<String, VmError> {
    let mut command = Command::new("apt-get");
    command.args([
        "indextargets",
        "--no-release-info",
        "--format",
        "$(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages",
    ]);
    let listed = output("apt-get", &mut command)?;
    choose_mirror(&listed)
        .map(str::to_owned)
        .ok_or_else(|| VmError::KernelMissing {
            wanted: "package".to_owned(),
            reason: "apt's sources have no Debian mirror".to_owned(),
        })
}

/// The first mirror of a whole Debian release. Those of updates and of security fixes have no
/// other releases beside them.
fn choose_mirror(listed: &str) -> Option<&str> {
    listed.lines().find_map(|line| {
        let mut words = line.split(' ');
        let [address, release, component] = [words.next()?, words.next()?, words.next()?];
        let is_whole = component == "main" && !release.contains(['-', '/']);
        let is_debian = address.trim_end_matches('/').ends_with("/debian");
        (is_whole && is_debian).then_some(address)
    })
}

/// Bytes of an archive, from its entry in the lists.
fn parse_size(entry: &str) -> Option<u64> {
    let mut lines = entry.lines();
    lines.find_map(|line| line.strip_prefix("Size: ")?.trim().parse().ok())
}

fn first_archive(folder: &Path) -> Result<PathBuf, VmError> {
    let entries = fs::read_dir(folder).map_err(VmError::file(folder))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.extension().is_some_and(|it| it == "deb"))
        .ok_or_else(|| VmError::ToolFailed {
            program: "apt-get download".to_owned(),
            words: "it has left no package".to_owned(),
        })
}

/// What a program prints; an error if it fails.
pub(super) fn output(program: &'static str, command: &mut Command) -> Result<String, VmError> {
    let output = command.env("LC_ALL", "C").output();
    let output = output.map_err(|_| VmError::ToolMissing {
        program,
        package: match program {
            "dpkg-deb" => "dpkg",
            _ => "apt",
        },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(VmError::ToolFailed {
        program: program.to_owned(),
        words: reason(&String::from_utf8_lossy(&output.stderr)),
    })
}

/// Why a tool failed, in one line: the last that is no warning, but for a full disk, which the last
/// line does not name; with the way out where it is known.
fn reason(words: &str) -> String {
    let full = words.lines().rfind(|line| line.contains("No space left"));
    let is_said = |line: &&str| !line.trim().is_empty() && !line.starts_with("W:");
    let line = full.or(words.lines().rfind(is_said)).unwrap_or_default();
    if line.contains("Unable to locate package") {
        format!("{line}; perhaps `apt-get update` was never run here")
    } else {
        line.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_download_is_read_and_not_that_of_what_it_installs() {
        let entry = "Package: linux-image\nInstalled-Size: 600000\nSize: 166500000\n";
        assert_eq!(parse_size(entry), Some(166_500_000));
        assert_eq!(parse_size("Package: x\n"), None);
    }

    #[test]
    fn a_full_disk_and_a_package_without_lists_are_told_as_such() {
        let tar = "tar: ./usr/sbin/x: Cannot write: No space left on device\n\
                   tar: Exiting with failure status due to previous errors\n\
                   dpkg-deb: error: tar subprocess returned error exit status 2\n";
        assert!(reason(tar).contains("No space left"), "{}", reason(tar));
        let unknown = reason("Reading...\nE: Unable to locate package x\n");
        assert!(unknown.contains("apt-get update"), "{unknown}");
        let proxy = "Err:1 x\nE: Failed to fetch x  Could not connect to 127.0.0.1:9\n\
                     W: Download is performed unsandboxed\n";
        assert_eq!(
            reason(proxy),
            "E: Failed to fetch x  Could not connect to 127.0.0.1:9"
        );
    }

    #[test]
    fn a_file_that_was_not_written_is_told_and_a_pattern_that_misses_is_not() {
        let misses = "tar: ./boot/vmlinuz-*: Not found in archive\n\
                      tar: Exiting with failure status due to previous errors\n";
        assert_eq!(unwritten(misses), None);
        let full = "tar: ./boot/vmlinuz-7: Cannot write: No space left on device\n";
        assert!(unwritten(full).unwrap().contains("No space left"));
    }

    #[test]
    fn the_mirror_is_that_of_a_whole_debian_release() {
        let listed = "https://other.example/apt stable main\n\
             http://mirror.example/debian-security/ bookworm-security main\n\
             http://mirror.example/debian/ bookworm-updates main\n\
             http://second.example/debian/ bookworm contrib\n\
             http://third.example/debian/ bookworm main\n";
        assert_eq!(choose_mirror(listed), Some("http://third.example/debian/"));
        assert_eq!(
            choose_mirror("http://mirror.example/ubuntu/ noble main\n"),
            None
        );
    }
}
