//! A trace buffer of our own.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::events::Event;
use super::read_up_to;
use crate::{Error, patience};

/// What the names of our buffers begin with. Process and its start follow.
const PREFIX: &str = "runslice-";
/// How long the removal of a buffer may take; see [`patience::remove_folder`].
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of a small file of the kernel.
const SMALL: u64 = 1 << 16;
/// CPUs from this number on are taken for damage.
const CPUS: u32 = 4096;
/// Entries of a folder that are looked at.
const ENTRIES: usize = 1 << 14;

/// A trace buffer. Goes away with this value, and its contents with it.
#[derive(Debug)]
pub struct TraceInstance {
    folder: PathBuf,
    /// When the last process that has it open is gone, the kernel stops to record and gives the
    /// memory back: after a SIGKILL, too.
    keeper: Option<File>,
}

impl TraceInstance {
    /// Makes one below `tracefs`, switched off. `root` is `/` but in tests.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make(root: &Path, tracefs: &Path) -> Result<Self, Error> {
        let own = Process::this(root);
        let folder = tracefs.join("instances").join(own.name());
        // One of the same name is of a process that had our number and began with us: of none.
        fs::create_dir(&folder).map_err(Error::file(&folder))?;
        let mut instance = Self {
            folder,
            keeper: None,
        };
        instance.write("tracing_on", "0")?;
        instance.keeper = instance.keep();
        Ok(instance)
    }

    /// One that is there already.
    #[cfg(test)]
    pub const fn at(folder: PathBuf) -> Self {
        Self {
            folder,
            keeper: None,
        }
    }

    /// Sees to it that the kernel stops when this process is gone. Where it cannot, the next
    /// recording removes what is left. Nothing of ours runs behind SIGKILL, and a second process
    /// that watches could be killed, too, and would be a task of the load.
    fn keep(&self) -> Option<File> {
        let path = self.folder.join("free_buffer");
        let option = self.folder.join("options/disable_on_free");
        put(&option, "1").ok()?;
        OpenOptions::new().write(true).open(path).ok()
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        put(&path, text).map_err(Error::file(&path))
    }

    /// Has it record `event`.
    ///
    /// # Errors
    /// When the kernel does not do it.
    pub fn enable(&self, event: &Event) -> Result<(), Error> {
        let folder = event.folder(&self.folder);
        if !event.filter.is_empty() {
            // Without it there are more records, and no other ones.
            let _ = put(&folder.join("filter"), event.filter);
        }
        let path = folder.join("enable");
        put(&path, "1").map_err(Error::file(&path))
    }

    /// Has it record nothing more.
    ///
    /// # Errors
    /// When the kernel does not do it.
    pub fn disable_all(&self) -> io::Result<()> {
        put(&self.folder.join("events/enable"), "0")
    }

    /// Chooses the clock that is the same on all CPUs. Returns what the kernel then says of its
    /// clocks: all names, that of the chosen one in brackets.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn set_clock(&self) -> Result<String, Error> {
        // A kernel without it keeps its default.
        let _ = self.write("trace_clock", "mono");
        let path = self.folder.join("trace_clock");
        let text = read_up_to(&path, SMALL).map_err(Error::file(&path))?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// The CPUs that have a buffer.
    ///
    /// # Errors
    /// When the folder cannot be read, or has none.
    pub fn cpus(&self) -> Result<Vec<u32>, Error> {
        let path = self.folder.join("per_cpu");
        let entries = fs::read_dir(&path).map_err(Error::file(&path))?;
        let names = entries
            .take(ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let numbers = names.filter_map(|name| name.strip_prefix("cpu")?.parse::<u32>().ok());
        let mut cpus: Vec<u32> = numbers.filter(|cpu| *cpu < CPUS).collect();
        cpus.sort_unstable();
        if cpus.is_empty() {
            let none = io::Error::new(io::ErrorKind::NotFound, "no CPU has a trace buffer");
            Err(Error::file(&path)(none))
        } else {
            Ok(cpus)
        }
    }

    /// The path of a CPU's file.
    pub fn of_cpu(&self, cpu: u32, name: &str) -> PathBuf {
        self.folder.join(format!("per_cpu/cpu{cpu}/{name}"))
    }

    /// The kernel's counters of a CPU; empty if it has none.
    pub fn counted(&self, cpu: u32) -> String {
        let text = read_up_to(&self.of_cpu(cpu, "stats"), SMALL).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Removes it.
    ///
    /// # Errors
    /// The errors of [`patience::remove_folder`].
    pub fn remove(mut self) -> Result<(), Error> {
        self.keeper = None;
        let folder = std::mem::take(&mut self.folder);
        remove(&folder)
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        self.keeper = None;
        if !self.folder.as_os_str().is_empty() {
            // The next recording finds what could not be removed, and tries again.
            let _ = remove(&self.folder);
        }
    }
}

fn remove(folder: &Path) -> Result<(), Error> {
    // The kernel ends everything that the buffer records, whatever is switched on.
    patience::remove_folder(folder, PATIENCE)
}

/// Writes without making a file: what is not there is an error.
fn put(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;

    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Removes the buffers of recordings whose process is gone. Returns how many; those that cannot be
/// removed, since somebody reads them, stay.
pub fn remove_left(root: &Path, tracefs: &Path) -> usize {
    let entries = fs::read_dir(tracefs.join("instances"))
        .into_iter()
        .flatten();
    let names = entries
        .take(ENTRIES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left = names.filter(|name| Process::is_left(name, root));
    let removed = left.filter(|name| remove(&tracefs.join("instances").join(name)).is_ok());
    removed.count()
}

/// A process, told from later ones with its number by when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pid: u32,
    /// Clock ticks since the machine's start.
    began: u64,
}

impl Process {
    pub(super) fn this(root: &Path) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            began: Self::began(root, pid).unwrap_or(0),
        }
    }

    /// When the process `pid` began; `None`: there is none.
    fn began(root: &Path, pid: u32) -> Option<u64> {
        let stat = read_up_to(&root.join(format!("proc/{pid}/stat")), SMALL).ok()?;
        let stat = String::from_utf8_lossy(&stat).into_owned();
        // The name may have anything in it; the 22nd field is the 20th after it.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(19)?.parse().ok()
    }

    pub(super) fn name(self) -> String {
        format!("{PREFIX}{}-{}", self.pid, self.began)
    }

    fn of_name(name: &str) -> Option<Self> {
        let (pid, began) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self {
            pid: pid.parse().ok()?,
            began: began.parse().ok()?,
        })
    }

    /// Whether something of this name is of a recording whose process is gone.
    pub(super) fn is_left(name: &str, root: &Path) -> bool {
        Self::of_name(name).is_some_and(|process| !process.lives(root))
    }

    fn lives(self, root: &Path) -> bool {
        Self::began(root, self.pid) == Some(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(root: &Path, pid: u32, began: u64) {
        let folder = root.join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        let fields = "S 1 2 3 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0";
        let text = format!("{pid} (a) b (c)) {fields} {began} 9 9\n");
        fs::write(folder.join("stat"), text).unwrap();
    }

    #[test]
    fn only_buffers_of_processes_that_are_gone_are_removed() {
        let root = folder::OwnFolder::new().unwrap();
        let tracefs = root.join("tracing");
        let of = |name: &str| tracefs.join("instances").join(name);
        stat(root.path(), 70, 500);
        // One that lives; one with a number that is used again; one of nobody; others' own.
        for name in [
            "runslice-70-500",
            "runslice-70-400",
            "runslice-99-1",
            "runslice",
            "mine-1-1",
        ] {
            fs::create_dir_all(of(name)).unwrap();
        }
        assert_eq!(remove_left(root.path(), &tracefs), 2);
        let left = ["runslice-70-500", "runslice", "mine-1-1"];
        assert!(left.iter().all(|name| of(name).is_dir()));
        assert!(!of("runslice-70-400").exists() && !of("runslice-99-1").exists());
        assert_eq!(remove_left(root.path(), &root.join("nowhere")), 0);
    }

    #[test]
    fn this_process_has_the_name_that_the_next_one_understands() {
        let own = Process::this(Path::new("/"));
        assert!(own.began > 0);
        assert_eq!(Process::of_name(&own.name()), Some(own));
        assert!(own.lives(Path::new("/")));
        for bad in [
            "runslice",
            "runslice-",
            "runslice-1",
            "runslice-x-1",
            "a-1-2",
        ] {
            assert_eq!(Process::of_name(bad), None, "{bad}");
        }
    }
}
