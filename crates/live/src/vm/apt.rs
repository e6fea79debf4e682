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
";

/// One release of the distribution, with lists of its own.
#[derive(Debug)]
pub struct Release {
    name: &'static str,
    folder: PathBuf,
}

/// Where the system gets its packages.
#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    address: String,
    /// A file of keys, or nothing for the system's default.
    keys: String,
}

impl Release {
    /// The release `name`; its lists are fetched by [`Release::update`].
    ///
    /// # Errors
    /// When the system has no Debian mirror, no apt, or the cache cannot be written.
    pub fn open(name: &'static str) -> Result<Self, VmError> {
        let mirror = Mirror::of_the_system()?;
        let folder = cache::folder("apt")?.join(name);
        for part in ["etc", "state/lists/partial", "cache/archives/partial"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(VmError::file(&part))?;
        }
        let keys = match mirror.keys.as_str() {
            "" => String::new(),
            keys => format!("[signed-by={keys}] "),
        };
        let release = Self { name, folder };
        release.write(
            "etc/sources.list",
            &format!("deb {keys}{} {name} main\n", mirror.address),
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
        let _ = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(&archive)
            .args(patterns)
            .current_dir(to)
            .output()
            .map_err(VmError::file(Path::new("sh")))?;
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

impl Mirror {
    fn of_the_system() -> Result<Self, VmError> {
        let mut command = Command::new("apt-get");
        command.args([
            "indextargets",
            "--no-release-info",
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT) $(SIGNED_BY)",
            "Created-By: Packages",
        ]);
        let listed = output("apt-get", &mut command)?;
        Self::parse(&listed).ok_or_else(|| VmError::KernelMissing {
            wanted: "package".to_owned(),
            reason: "apt's sources have no Debian mirror".to_owned(),
        })
    }

    /// The first mirror of a whole Debian release. Those of updates and of security fixes have
    /// no other releases beside them.
    fn parse(listed: &str) -> Option<Self> {
        listed.lines().find_map(|line| {
            let mut words = line.split(' ');
            let address = words.next()?;
            let release = words.next()?;
            let component = words.next()?;
            let is_whole = component == "main" && !release.contains(['-', '/']);
            let is_debian = address.trim_end_matches('/').ends_with("/debian");
            (is_whole && is_debian).then(|| Self {
                address: address.to_owned(),
                keys: words.next().unwrap_or_default().to_owned(),
            })
        })
    }
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
fn output(program: &'static str, command: &mut Command) -> Result<String, VmError> {
    let output = command.output().map_err(|_| VmError::ToolMissing {
        program,
        package: "apt",
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = words.lines().rev().take(3).collect();
    let words = last.into_iter().rev().collect::<Vec<_>>().join("; ");
    Err(VmError::ToolFailed {
        program: program.to_owned(),
        words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_a_whole_debian_release() {
        let listed = "https://other.example/apt stable main \n\
             http://mirror.example/debian-security/ bookworm-security main /k.gpg\n\
             http://mirror.example/debian/ bookworm-updates main /k.gpg\n\
             http://mirror.example/debian/ bookworm contrib /k.gpg\n\
             http://mirror.example/debian/ bookworm main /k.gpg\n";
        let want = Mirror {
            address: "http://mirror.example/debian/".to_owned(),
            keys: "/k.gpg".to_owned(),
        };
        assert_eq!(Mirror::parse(listed), Some(want));
        assert_eq!(
            Mirror::parse("http://mirror.example/ubuntu/ noble main /k.gpg\n"),
            None
        );
    }
}
