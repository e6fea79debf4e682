//! What the guest finds in its memory when it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Archive;
use super::{GuestRequest, Pace, VmError, programs};

/// Where busybox's own programs are.
const FOLDERS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Where the guest finds programs that have another name there.
const NAMED: &str = "/runslice/bin";

/// The files that a guest gets, by where they lie on both sides.
#[derive(Debug, Default)]
struct Luggage {
    files: BTreeSet<PathBuf>,
    /// Programs that were asked for by the name that they have in the guest only.
    named: BTreeMap<String, PathBuf>,
    /// Folders of programs that were asked for by name.
    program_folders: BTreeSet<PathBuf>,
    /// Folders of shared libraries.
    library_folders: BTreeSet<PathBuf>,
}

/// The archive that the kernel unpacks.
///
/// # Errors
/// When busybox, a program or a library is missing, or a file cannot be read.
pub fn archive(request: &GuestRequest) -> Result<Vec<u8>, VmError> {
    let busybox = Busybox::find()?;
    let mut luggage = Luggage::default();
    for (index, word) in request.command.iter().enumerate() {
        let starts = index == 0 || request.command[index - 1] == "--";
        luggage.take_word(word, starts, &request.named, &busybox)?;
    }
    // A script among the words may start them, too.
    for (name, _) in &request.named {
        luggage.take_program(name, &request.named, &busybox)?;
    }
    for program in &request.programs {
        luggage.take_program(program, &request.named, &busybox)?;
    }
    for path in &request.files {
        luggage.take_all(path)?;
    }
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev", "tmp", "run", "out", "root"] {
        archive.folder(folder);
    }
    // The kernel opens it for the first process before anything is mounted.
    archive.device("dev/console", 5, 1);
    archive.file("init", 0o755, include_bytes!("init.sh"));
    archive.file("bin/busybox", 0o755, &busybox.bytes);
    archive.file(
        "runslice/settings",
        0o644,
        settings(request, &luggage).as_bytes(),
    );
    archive.file("runslice/quiet", 0o644, include_bytes!("quiet.sh"));
    archive.file("runslice/job", 0o644, job(&request.command).as_bytes());
    if let Some(config) = &request.kernel.config {
        add(&mut archive, config, "runslice/config")?;
    }
    for path in &luggage.files {
        add(&mut archive, path, &path.to_string_lossy())?;
    }
    for (name, path) in &luggage.named {
        archive.link(&format!("{}/{name}", &NAMED[1..]), &path.to_string_lossy());
    }
    if let Some(share) = &request.share {
        archive.folder("share");
        add_folder(&mut archive, share, "share")?;
    }
    Ok(archive.finish())
}

impl Luggage {
    /// Brings what a word of the command names: the program if one stands here, or a file.
    fn take_word(
        &mut self,
        word: &str,
        starts: bool,
        named: &[(String, PathBuf)],
        busybox: &Busybox,
    ) -> Result<(), VmError> {
        if starts {
            return self.take_program(word, named, busybox);
        }
        // A policy's file may have knobs behind a colon.
        let names = [Some(word), word.split_once(':').map(|(file, _)| file)];
        let file = names
            .into_iter()
            .flatten()
            .find(|name| Path::new(name).is_file());
        match file {
            Some(name) => self.take_file(Path::new(name)),
            None => Ok(()),
        }
    }

    fn take_program(
        &mut self,
        name: &str,
        named: &[(String, PathBuf)],
        busybox: &Busybox,
    ) -> Result<(), VmError> {
        if let Some((_, path)) = named.iter().find(|(known, _)| known == name) {
            self.named.insert(name.to_owned(), path.clone());
            return self.take_file(path);
        }
        let Some(path) = programs::find(name) else {
            let is_builtin = busybox.programs.contains(name);
            return is_builtin
                .then_some(())
                .ok_or_else(|| VmError::ProgramMissing {
                    name: name.to_owned(),
                });
        };
        self.program_folders
            .extend(path.parent().map(Path::to_path_buf));
        self.take_file(&path)
    }

    /// Brings a file, or a folder with all that is in it.
    fn take_all(&mut self, path: &Path) -> Result<(), VmError> {
        if !path.is_dir() {
            return self.take_file(path);
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        for entry in entries.map_err(VmError::file(path))? {
            let path = entry.path();
            // A link that leads nowhere has nothing to bring, and a device or a pipe has no end.
            if path.is_dir() || path.is_file() {
                self.take_all(&path)?;
            }
        }
        Ok(())
    }

    fn take_file(&mut self, path: &Path) -> Result<(), VmError> {
        let path = std::path::absolute(path).map_err(VmError::file(path))?;
        if path.exists() && !path.is_file() {
            let what = "it is no plain file, and only those can be brought into a guest";
            return Err(VmError::file(&path)(io::Error::other(what)));
        }
        let needs = programs::with_needs(&path)?;
        let libraries = needs.iter().filter(|need| **need != path);
        self.library_folders.extend(
            libraries
                .filter_map(|it| it.parent())
                .map(Path::to_path_buf),
        );
        self.files.extend(needs);
        Ok(())
    }
}

/// Whether there is a busybox that a guest can begin with.
pub fn check_busybox() -> Result<(), VmError> {
    Busybox::find().map(drop)
}

/// The one program that makes a system of a kernel.
struct Busybox {
    bytes: Vec<u8>,
    programs: BTreeSet<String>,
}

impl Busybox {
    fn find() -> Result<Self, VmError> {
        let missing = VmError::ToolMissing {
            program: "busybox",
            package: "busybox-static",
        };
        let path = programs::find("busybox").ok_or(missing)?;
        let bytes = fs::read(&path).map_err(VmError::file(&path))?;
        if !programs::is_static(&bytes) {
            return Err(VmError::BusyboxDynamic { path });
        }
        let list = Command::new(&path)
            .arg("--list")
            .output()
            .map_err(VmError::file(&path))?;
        let programs = String::from_utf8_lossy(&list.stdout)
            .lines()
            .map(str::to_owned)
            .collect();
        Ok(Self { bytes, programs })
    }
}

/// What the guest's first process must know, as shell.
fn settings(request: &GuestRequest, luggage: &Luggage) -> String {
    let result = match request.pace {
        Pace::Fast => "/dev/vport0p1",
        Pace::Counted { .. } => "/dev/ttyS1",
    };
    let own = FOLDERS.iter().map(PathBuf::from);
    let brought = luggage.program_folders.iter().cloned();
    let path = joined([PathBuf::from(NAMED)].into_iter().chain(brought).chain(own));
    let libraries = joined(luggage.library_folders.iter().cloned());
    let folder = match &request.share {
        Some(_) => PathBuf::from("/share"),
        None => request.folder.clone(),
    };
    let variables = [
        ("RESULT", result.to_owned()),
        ("TIMEOUT", request.timeout.as_secs().to_string()),
        ("FOLDER", folder.to_string_lossy().into_owned()),
        ("PATH", path),
        ("LD_LIBRARY_PATH", libraries),
        ("HOME", "/root".to_owned()),
    ];
    let lines = variables.map(|(name, value)| format!("export {name}={}\n", quoted(&value)));
    let follow = if request.is_followed() {
        "FOLLOW=yes\n"
    } else {
        ""
    };
    lines.concat() + follow
}

fn joined(folders: impl Iterator<Item = PathBuf>) -> String {
    let folders: Vec<_> = folders
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    folders.join(":")
}

/// The command as a line of shell.
fn job(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    format!("exec {}\n", words.join(" "))
}

/// A word that the shell leaves as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn add(archive: &mut Archive, path: &Path, at: &str) -> Result<(), VmError> {
    let facts = fs::metadata(path).map_err(VmError::file(path))?;
    let contents = fs::read(path).map_err(VmError::file(path))?;
    archive.file(at, facts.permissions().mode(), &contents);
    Ok(())
}

/// Adds a folder's files, sorted by name so that the archive is always the same.
fn add_folder(archive: &mut Archive, folder: &Path, at: &str) -> Result<(), VmError> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(VmError::file(folder))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let at = format!("{at}/{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().map_err(VmError::file(&path))?;
        if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(VmError::file(&path))?;
            archive.link(&at, &target.to_string_lossy());
        } else if kind.is_dir() {
            archive.folder(&at);
            add_folder(archive, &path, &at)?;
        } else if kind.is_file() {
            add(archive, &path, &at)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_gets_each_word_as_it_is() {
        let words = ["echo", "it's $HOME", "a b", ""].map(str::to_owned);
        let said = Command::new("sh")
            .arg("-c")
            .arg(job(&words))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "it's $HOME a b \n");
    }

    /// How often the shell looks at a guest whose /proc/stat says `times` look by look.
    fn looks(times: &[[u64; 8]]) -> usize {
        let folder = folder::OwnFolder::new().unwrap();
        for (number, times) in times.iter().enumerate() {
            let times = times.map(|it| it.to_string()).join(" ");
            let line = format!("cpu  {times} 0 0\n");
            fs::write(folder.join(&format!("stat{number}")), line).unwrap();
        }
        // In place of a pause the next state comes; the last one stays.
        let script = format!(
            "cd {}; PROC=.; cp stat0 stat; n=0\n\
             sleep() {{ n=$((n + 1)); if [ -e stat$n ]; then cp stat$n stat; fi; }}\n\
             {}\necho $n\n",
            folder.path().display(),
            include_str!("quiet.sh")
        );
        let said = Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert!(said.stderr.is_empty(), "{said:?}");
        String::from_utf8_lossy(&said.stdout)
            .trim()
            .parse()
            .unwrap()
    }

    #[test]
    fn a_command_waits_until_the_guest_is_idle_and_not_for_ever() {
        // Half a CPU of two is busy, then nearly nothing is.
        let busy = [
            [0; 8],
            [5, 0, 5, 30, 0, 0, 0, 0],
            [5, 0, 15, 60, 0, 0, 0, 0],
        ];
        let idle = [6, 0, 16, 95, 3, 0, 0, 0];
        assert_eq!(looks(&[busy[0], busy[1], busy[2], idle]), 3);
        assert_eq!(looks(&[busy[0], [1, 0, 1, 38, 0, 0, 0, 0]]), 1);
        // Time that stands still says nothing.
        assert_eq!(looks(&[[0; 8]]), 15);
    }

    #[test]
    fn what_has_no_end_is_not_brought_along() {
        let mut luggage = Luggage::default();
        let error = luggage.take_all(Path::new("/dev/zero")).unwrap_err();
        let want = "/dev/zero: it is no plain file, and only those can be brought into a guest";
        assert_eq!(error.to_string(), want);

        let folder = folder::OwnFolder::new().unwrap();
        fs::write(folder.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("endless")).unwrap();
        luggage.take_all(folder.path()).unwrap();
        assert_eq!(luggage.files, BTreeSet::from([folder.join("file")]));
    }

    #[test]
    fn a_program_has_the_name_by_which_it_was_asked_for() {
        let mut luggage = Luggage::default();
        let busybox = Busybox {
            bytes: Vec::new(),
            programs: BTreeSet::new(),
        };
        let me = std::env::current_exe().unwrap();
        let named = [("runslice".to_owned(), me.clone())];
        luggage.take_program("runslice", &named, &busybox).unwrap();
        assert!(luggage.files.contains(&me));
        assert_eq!(luggage.named.get("runslice"), Some(&me));
        let error = luggage.take_program("no-such-program", &named, &busybox);
        assert!(error.unwrap_err().to_string().contains("no-such-program"));
    }
}
