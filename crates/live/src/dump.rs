//! The kernel's dump of an ejected policy: which tasks waited where, and the policy's own words.
//!
//! The kernel hands it to the policy's exit callback, which need not keep it. It also gives each
//! line to the trace event `sched_ext_dump` (`dump_line()` in kernel/sched/ext.c, 6.18), and that
//! is read here: for every object, whatever its callbacks do.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Error, patience};

/// Where trace files are, the newer place first.
const PLACES: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
/// Trace buffer of one CPU in KiB, at most; a dump of the default length has 32.
const BUFFER_KIB: usize = 1024;
/// Trace buffers of all CPUs in KiB, at most.
const BUFFERS_KIB: usize = 64 * 1024;
/// How long the removal of a buffer may take: the kernel waits meanwhile until no program can run
/// in a trace event any more (`tracepoint_synchronize_unregister()`, 6.18).
const PATIENCE: Duration = Duration::from_secs(10);

/// A trace buffer of its own that gets the dump of the policy that is ejected next. Goes away
/// with this value.
#[derive(Debug)]
pub struct Dump {
    folder: PathBuf,
}

impl Dump {
    /// Begins to listen. `root` is `/` but in tests, `name` that of the buffer.
    ///
    /// # Errors
    /// When the kernel has no trace files, or this process may not use them.
    pub fn listen(root: &Path, name: &str) -> Result<Self, Error> {
        let folder = instances(root).join(name);
        fs::create_dir(&folder).map_err(Error::file(&folder))?;
        let dump = Self { folder };
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let size = (BUFFERS_KIB / cpus).clamp(64, BUFFER_KIB);
        dump.write("buffer_size_kb", &size.to_string())?;
        dump.write("events/sched_ext/sched_ext_dump/enable", "1")?;
        Ok(dump)
    }

    /// What came so far: the dump's lines, or nothing.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn text(&self) -> Result<String, Error> {
        let path = self.folder.join("trace");
        let trace = fs::read(&path).map_err(Error::file(&path))?;
        Ok(lines_of(&String::from_utf8_lossy(&trace)))
    }

    /// Removes the buffer. What cannot be removed is left to the next command.
    ///
    /// # Errors
    /// When it cannot be removed, or not within ten seconds; a process of its own goes on then.
    pub fn remove(mut self) -> Result<(), Error> {
        // Nothing is left for the value's end, which would wait as long again.
        patience::remove_folder(&std::mem::take(&mut self.folder), PATIENCE)
    }

    /// Removes the buffer that a killed process left.
    ///
    /// # Errors
    /// The errors of [`Dump::remove`].
    pub fn remove_left(root: &Path, name: &str) -> Result<(), Error> {
        patience::remove_folder(&instances(root).join(name), PATIENCE)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(Error::file(&path))
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        // The next command finds what could not be removed, and tries again.
        let _ = patience::remove_folder(&self.folder, PATIENCE);
    }
}

/// Where trace buffers are made. The older place is not touched where the newer one is there: the
/// kernel would mount it and complain.
fn instances(root: &Path) -> PathBuf {
    let [newer, older] = PLACES.map(|place| root.join(place).join("instances"));
    if newer.is_dir() { newer } else { older }
}

/// The lines of the event in a trace: each has the task, CPU and time in front, and the whole
/// begins with lines of its own (Documentation/trace/ftrace.rst, kernel 6.18).
fn lines_of(trace: &str) -> String {
    const EVENT: &str = ": sched_ext_dump:";
    let mut text = String::new();
    for line in trace.lines() {
        if line.starts_with("CPU:") && line.contains("[LOST") {
            text += line;
            text += "\n";
        } else if let Some((_, words)) = line.split_once(EVENT) {
            text += words.strip_prefix(' ').unwrap_or(words);
            text += "\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_words_are_kept_with_their_indents_and_empty_lines() {
        let trace = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 3/3   #P:2
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
   kworker/1:1-29      [001] d..2.     4.1: sched_ext_dump: loser[7] triggered exit kind 1026:
   kworker/1:1-29      [001] d..2.     4.1: sched_ext_dump:   runnable task stall
   kworker/1:1-29      [001] d..2.     4.1: sched_ext_dump: \n\
   kworker/1:1-29      [001] d..2.     4.1: sched_ext_dump: CPU states
CPU:1 [LOST 12 EVENTS]
";
        let want = "loser[7] triggered exit kind 1026:\n  runnable task stall\n\nCPU states\n\
                    CPU:1 [LOST 12 EVENTS]\n";
        assert_eq!(lines_of(trace), want);
        assert_eq!(lines_of("# tracer: nop\n"), "");
    }

    #[test]
    fn a_kernel_without_trace_files_is_an_error_that_names_them() {
        let root = std::env::temp_dir().join(format!("runslice-no-trace-{}", std::process::id()));
        let error = Dump::listen(&root, "runslice").unwrap_err().to_string();
        assert!(error.contains("tracing/instances/runslice"), "{error}");
        Dump::remove_left(&root, "runslice").unwrap();
    }
}
