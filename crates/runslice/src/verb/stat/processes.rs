//! What the kernel counts for each process: /proc/PID/schedstat.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use stats::schedstat::TaskCounters;

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its command as the kernel knows it, at most 15 bytes; what a terminal could take for a
    /// command is replaced.
    pub name: String,
    /// The number of its process: that of the first thread.
    pub process: u32,
    /// Its numbers, in nanoseconds.
    pub counters: TaskCounters,
}

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOwner {
    /// A process, with all its threads.
    Processes,
    /// A thread.
    Threads,
}

/// All threads that can be read below `proc`. One that ends meanwhile is not in it.
pub fn read(proc: &Path) -> BTreeMap<u32, Process> {
    let mut tasks = BTreeMap::new();
    for pid in numbers(proc) {
        let threads = proc.join(pid.to_string()).join("task");
        for thread in numbers(&threads) {
            let found = task(&threads.join(thread.to_string()), pid);
            tasks.extend(found.map(|task| (thread, task)));
        }
    }
    tasks
}

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Reads a file of a task: a line of the kernel's.
///
/// # Errors
/// When it cannot be read, or is longer than any of these lines.
pub fn line(path: &Path) -> io::Result<Vec<u8>> {
    /// Bytes. Three numbers and a name of 15 bytes have less than a hundred.
    const LONGEST: u64 = 4096;
    let mut bytes = Vec::new();
    let read = File::open(path)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)?;
    if read as u64 > LONGEST {
        let text = format!("it is longer than {LONGEST} bytes, which no line of a task is");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

fn task(folder: &Path, process: u32) -> Option<Process> {
    let text = String::from_utf8(line(&folder.join("schedstat")).ok()?).ok()?;
    let counters = TaskCounters::from_schedstat(&text).ok()?;
    // A name is bytes, and anybody chooses it. Its own newlines are not the kernel's last one.
    let name = line(&folder.join("comm")).ok()?;
    Some(Process {
        name: model::plain::shown(name.strip_suffix(b"\n").unwrap_or(&name)),
        process,
        counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_and_their_names_cannot_command_a_terminal() {
        let proc = std::env::temp_dir().join(format!("runslice-proc-{}", std::process::id()));
        for (pid, name, counters) in [
            ("7", "sh\u{1b}[2J\n", "5 6 7\n"),
            ("8", "gone\n", "torn"),
            ("self", "x", "1 2 3"),
        ] {
            let folder = proc.join(pid).join("task").join(pid);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("comm"), name).unwrap();
            fs::write(folder.join("schedstat"), counters).unwrap();
        }
        let tasks = read(&proc);
        fs::remove_dir_all(&proc).unwrap();
        assert_eq!(tasks.keys().copied().collect::<Vec<_>>(), [7]);
        assert_eq!(tasks[&7].name, "sh\\u001b[2J");
        assert_eq!(tasks[&7].counters.pcnt, 7);
    }

    #[test]
    fn a_file_of_a_task_that_has_no_end_is_not_read_to_its_end() {
        let error = line(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(
            error,
            "it is longer than 4096 bytes, which no line of a task is"
        );
    }

    #[test]
    fn this_process_is_among_all_and_so_are_its_threads() {
        let tasks = read(Path::new("/proc"));
        let mine = tasks.get(&std::process::id());
        assert!(mine.is_some_and(|task| task.process == std::process::id()));
    }
}
