//! What came of a virtual machine.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::VmError;
use super::archive::{self, ArchiveEntry};
use super::qemu::{CONSOLE, RESULT, TCG, Waited};
use folder::OwnFolder;

/// How the command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status; above 128 a signal ended it.
    Exited(u8),
    /// It was still running when its time was over; what it had printed is there.
    TimedOut,
    /// Nothing is known of it: the guest ended or was ended before it could tell.
    NoResult {
        /// What was seen instead.
        reason: String,
    },
}

/// Outcome of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestOutcome {
    /// How the command ended.
    pub end: End,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// The guest kernel's messages; the serial console's text when there is no result.
    pub kernel_log: String,
    /// Files below the shared folder that the command wrote.
    pub changed: Vec<ChangedFile>,
    /// `kvm` or `tcg`.
    pub accelerator: &'static str,
    /// How many guests the emulator broke before this one.
    pub broken: u32,
    /// How many bytes of both streams were handed on while the command ran.
    pub followed: [usize; 2],
}

/// A file of the shared folder that the command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Path from the shared folder. Leads nowhere else.
    pub path: PathBuf,
    /// Permission bits.
    pub mode: u32,
    /// The bytes.
    pub contents: Vec<u8>,
}

/// Reads what the guest has left behind.
///
/// # Errors
/// When a file of the scratch folder cannot be read.
pub fn read(
    waited: &Waited,
    scratch: &OwnFolder,
    accelerator: &'static str,
) -> Result<GuestOutcome, VmError> {
    let path = scratch.join(RESULT);
    let sent = fs::read(&path).map_err(VmError::file(&path))?;
    let console = fs::read(scratch.join(CONSOLE)).unwrap_or_default();
    let console = String::from_utf8_lossy(&console).into_owned();
    let parsed = archive::read(&sent)
        .ok()
        .and_then(|entries| GuestOutcome::parse(entries, accelerator));
    Ok(parsed.unwrap_or_else(|| GuestOutcome {
        end: End::NoResult {
            reason: reason(waited, &console),
        },
        stdout: Vec::new(),
        stderr: Vec::new(),
        kernel_log: console,
        changed: Vec::new(),
        accelerator,
        broken: 0,
        followed: [0; 2],
    }))
}

impl GuestOutcome {
    /// `None`: the archive has no status. That is its last file, so that an archive that was cut
    /// off is no result.
    fn parse(entries: Vec<ArchiveEntry>, accelerator: &'static str) -> Option<Self> {
        let contents = |path: &str| {
            let found = entries.iter().find(|entry| entry.path == path)?;
            Some(found.contents.clone())
        };
        let status = String::from_utf8(contents("out/status")?).ok()?;
        let end = match contents("out/timed_out") {
            Some(_) => End::TimedOut,
            None => End::Exited(status.trim().parse().ok()?),
        };
        let kernel_log = contents("out/kernel_log").unwrap_or_default();
        Some(Self {
            end,
            stdout: contents("out/stdout").unwrap_or_default(),
            stderr: contents("out/stderr").unwrap_or_default(),
            kernel_log: String::from_utf8_lossy(&kernel_log).into_owned(),
            changed: entries.into_iter().filter_map(changed).collect(),
            accelerator,
            broken: 0,
            followed: [0; 2],
        })
    }

    /// Whether the kernel has not said one word: QEMU itself failed.
    #[must_use]
    pub fn never_started(&self) -> bool {
        matches!(self.end, End::NoResult { .. }) && self.kernel_log.trim().is_empty()
    }

    /// Whether the guest died of a fault of the emulator, or was ended because of one.
    #[must_use]
    pub fn broke_by_itself(&self) -> bool {
        matches!(self.end, End::NoResult { .. })
            && self.accelerator == TCG
            && self.kernel_log.lines().any(is_emulators_fault)
    }

    /// The process that the guest's kernel killed last because there was no memory left, by its
    /// name.
    #[must_use]
    pub fn killed_for_memory(&self) -> Option<&str> {
        // `__oom_kill_process()`, mm/oom_kill.c, 6.18: "Out of memory: Killed process 7 (name)
        // ...".
        let killed = self.kernel_log.lines().rev().find_map(|line| {
            let (_, rest) = line.split_once("Out of memory: Killed process ")?;
            rest.split_once('(')
        });
        Some(killed?.1.split_once(')')?.0)
    }

    /// The kernel's complaints about itself: stalls, lock-ups, warnings, crashes.
    #[must_use]
    pub fn kernel_complaints(&self) -> Vec<&str> {
        let words = [
            "WARNING:",
            "BUG:",
            "Oops",
            "rcu_preempt detected",
            "rcu: INFO",
            "self-detected stall",
            "workqueue lockup",
            "blocked for more than",
            "Kernel panic",
            "verifier bug",
        ];
        let bad = |line: &&str| words.iter().any(|word| line.contains(word));
        self.kernel_log.lines().filter(bad).collect()
    }
}

/// Whether a line of a kernel's log tells of a fault of the emulator. QEMU 7.2 with a thread for
/// each CPU at times runs a breakpoint that the kernel, which patches its own code whenever a
/// policy is attached, has taken away again; the kernel then finds a breakpoint that is nobody's.
/// And behind a compare-and-exchange of 16 bytes its flags may be a part of an address, with which
/// the next interrupt becomes a double fault. One counting guest of some hundred has a general
/// protection fault at the first instruction of its first process, a shell, which signal 11 then
/// ends; it has none with another word on the kernel's command line.
pub fn is_emulators_fault(line: &str) -> bool {
    const FIRST_PROCESS: &str = "Attempted to kill init! exitcode=0x0000000b";
    line.contains("Oops: int3") || line.contains(FIRST_PROCESS) || has_impossible_flags(line)
}

/// Whether the kernel found flags in the processor that none can have: bits 22 to 31 are always 0
/// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, section 3.4.3).
fn has_impossible_flags(line: &str) -> bool {
    let flags = line.split_once(" EFLAGS: ").and_then(|(_, rest)| {
        let word = rest.split_whitespace().next()?;
        u32::from_str_radix(word, 16).ok()
    });
    flags.is_some_and(|flags| flags >> 22 != 0)
}

/// A file of the shared folder. A guest is not trusted: its paths stay inside.
fn changed(entry: ArchiveEntry) -> Option<ChangedFile> {
    let path = Path::new(&entry.path)
        .strip_prefix("share")
        .ok()?
        .to_path_buf();
    let stays = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (stays && path.components().next().is_some()).then_some(ChangedFile {
        path,
        mode: entry.mode,
        contents: entry.contents,
    })
}

/// Why there is no result, from what can be seen from outside.
fn reason(waited: &Waited, console: &str) -> String {
    let panic = console.lines().find(|line| line.contains("Kernel panic"));
    if let Some(panic) = panic {
        return panic.trim().to_owned();
    }
    let how = match waited {
        Waited::TimedOut(limit) => {
            format!("the guest did not end within {} s", limit.as_secs())
        }
        Waited::Broken => "the emulator has broken the guest's kernel".to_owned(),
        Waited::Ended { success: true, .. } => "the guest ended without a result".to_owned(),
        Waited::Ended { words, .. } => format!("QEMU failed: {}", words.trim()),
    };
    match console.lines().rfind(|line| !line.trim().is_empty()) {
        Some(last) => format!("{how}; the console's last line is: {}", last.trim()),
        None => format!("{how}; the console is empty: the kernel did not start"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(path: &str, contents: &str) -> ArchiveEntry {
        ArchiveEntry {
            path: path.to_owned(),
            mode: 0o644,
            contents: contents.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_status_makes_a_result() {
        let entries = vec![entry("out/stdout", "hello\n"), entry("out/status", "7\n")];
        let outcome = GuestOutcome::parse(entries, "tcg").unwrap();
        assert_eq!(outcome.end, End::Exited(7));
        assert_eq!(outcome.stdout, b"hello\n");
        assert_eq!(
            GuestOutcome::parse(vec![entry("out/stdout", "hello\n")], "tcg"),
            None
        );
    }

    #[test]
    fn a_command_that_ran_out_of_time_has_no_status_of_its_own() {
        let entries = vec![entry("out/status", "143\n"), entry("out/timed_out", "")];
        assert_eq!(
            GuestOutcome::parse(entries, "tcg").unwrap().end,
            End::TimedOut
        );
    }

    #[test]
    fn only_what_no_processor_does_is_the_emulators_fault() {
        let dead = |log: &str, accelerator| GuestOutcome {
            end: End::NoResult {
                reason: String::new(),
            },
            stdout: Vec::new(),
            stderr: Vec::new(),
            kernel_log: log.to_owned(),
            changed: Vec::new(),
            accelerator,
            broken: 0,
            followed: [0; 2],
        };
        assert!(dead("[ 6.9] Oops: int3: 0000 [#1] SMP NOPTI\n", "tcg").broke_by_itself());
        assert!(!dead("[ 6.9] Oops: int3: 0000 [#1] SMP NOPTI\n", "kvm").broke_by_itself());
        let flags = |flags| {
            let log = format!(
                "[ 8.0] Oops: double fault: 0000 [#1] SMP NOPTI\n\
                 [ 8.0] RSP: 0018:ffa00000004d3a10 EFLAGS: {flags}\n\
                 [ 8.0] RSP: 002b:00007fffffffbd48 EFLAGS: 00000246 ORIG_RAX: 0000000000000038\n"
            );
            dead(&log, "tcg").broke_by_itself()
        };
        assert!(flags("05a6a37a"));
        assert!(!flags("00010246"));
        let ended = |code| {
            let log = format!(
                "[ 1.6] Kernel panic - not syncing: Attempted to kill init! exitcode={code}\n"
            );
            dead(&log, "tcg").broke_by_itself()
        };
        assert!(ended("0x0000000b"));
        assert!(!ended("0x00000100"), "the shell ended by itself");
        assert!(!dead("[ 6.9] BUG: kernel NULL pointer\n", "tcg").broke_by_itself());
        assert!(dead("", "kvm").never_started());
        assert!(!dead("[ 0.0] Linux version 6.18\n", "kvm").never_started());
    }

    #[test]
    fn changed_files_stay_in_their_folder() {
        let kept = changed(entry("share/a/b", "x")).unwrap();
        assert_eq!(kept.path, Path::new("a/b"));
        for bad in [
            "share/../etc/passwd",
            "share",
            "out/stdout",
            "share/a/../../x",
        ] {
            assert_eq!(changed(entry(bad, "x")), None, "{bad}");
        }
    }

    #[test]
    fn no_result_says_what_was_seen_instead() {
        let late = Waited::TimedOut(Duration::from_secs(90));
        assert!(reason(&late, "").contains("within 90 s; the console is empty"));
        assert!(reason(&late, "boot\nlast words\n").contains("last line is: last words"));
        assert!(reason(&Waited::Broken, "x\n").starts_with("the emulator has broken"));
        let panic = "x\n[ 1.0] Kernel panic - not syncing: no init\n[ 1.1] ---\n";
        let ended = Waited::Ended {
            success: true,
            words: String::new(),
        };
        assert_eq!(
            reason(&ended, panic),
            "[ 1.0] Kernel panic - not syncing: no init"
        );
    }

    #[test]
    fn a_process_that_was_killed_for_memory_is_named() {
        let mut outcome = GuestOutcome::parse(vec![entry("out/status", "137")], "tcg").unwrap();
        assert_eq!(outcome.killed_for_memory(), None);
        outcome.kernel_log = "[1] x\n[ 12.3] Out of memory: Killed process 112 (runslice) \
                              total-vm:1, UID:0\n[13] y\n"
            .to_owned();
        assert_eq!(outcome.killed_for_memory(), Some("runslice"));
    }

    #[test]
    fn warnings_in_the_kernels_log_are_found() {
        let log = "[1] ok\n[2] WARNING: CPU: 1 PID: 1 at x.c:1\n[3] rcu: INFO: stall\n";
        let mut outcome = GuestOutcome::parse(vec![entry("out/status", "0")], "tcg").unwrap();
        outcome.kernel_log = log.to_owned();
        assert_eq!(outcome.kernel_complaints().len(), 2);
    }
}
