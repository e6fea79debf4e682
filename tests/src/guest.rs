//! Shell scripts on real kernels, in virtual machines, one at a time.

#![expect(
    clippy::missing_panics_doc,
    reason = "a guest is the inside of a test; how it fails is its business"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The kernels that policies are tested on.
pub const KERNELS: [&str; 2] = ["6.18", "7.2"];

/// What a kernel prints when something is wrong with it.
const COMPLAINTS: [&str; 5] = ["WARNING:", "BUG:", "Oops", "rcu: INFO", "workqueue lockup"];

/// Held while a guest runs: two would starve each other on a small computer.
static ONE: Mutex<()> = Mutex::new(());

/// A virtual machine in which `runslice` is at hand. It is 6.18 with two CPUs, on this computer's
/// clock, and ends after two minutes, unless something else is asked for.
#[derive(Clone, Debug)]
pub struct Guest {
    program: PathBuf,
    words: Vec<String>,
}

/// What a guest printed, and how its script ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Standard output.
    pub stdout: String,
    /// Standard error, and the kernel's log if it was asked for.
    pub stderr: String,
    /// The script's status; 6 for a guest without a result.
    pub status: Option<i32>,
}

/// The guest that runs the program under test.
#[macro_export]
macro_rules! guest {
    () => {
        $crate::guest::Guest::new(env!("CARGO_BIN_EXE_runslice"))
    };
}

/// An empty folder of the test program, for files of this name.
#[macro_export]
macro_rules! folder {
    ($name:expr) => {
        $crate::guest::empty_folder(env!("CARGO_TARGET_TMPDIR"), $name)
    };
}

impl Guest {
    /// A guest that runs `program`, the path of a `runslice`.
    #[must_use]
    pub fn new(program: &str) -> Self {
        let guest = Self {
            program: stripped(program),
            words: Vec::new(),
        };
        guest.with("runslice").timeout("120s")
    }

    /// Boots another kernel.
    #[must_use]
    pub fn kernel(self, kernel: &str) -> Self {
        self.options(&["--kernel", kernel])
    }

    /// Counts instructions instead of time: how busy this computer is does not matter.
    #[must_use]
    pub fn counted(self) -> Self {
        self.options(&["--det"])
    }

    /// Has so many CPUs.
    #[must_use]
    pub fn cpus(self, number: &str) -> Self {
        self.options(&["--cpus", number])
    }

    /// Brings along a program.
    #[must_use]
    pub fn with(self, program: &str) -> Self {
        self.options(&["--with", program])
    }

    /// Begins in a copy of `folder`, and copies back what the script writes there.
    #[must_use]
    pub fn share(self, folder: &Path) -> Self {
        self.options(&["--share", &folder.to_string_lossy()])
    }

    /// Lets the script run so long, in the guest's time. Without a result the test fails.
    #[must_use]
    pub fn timeout(mut self, span: &str) -> Self {
        // The option may be given once.
        if let Some(at) = self.words.iter().position(|word| word == "--timeout") {
            self.words.drain(at..at + 2);
        }
        self.options(&["--timeout", span])
    }

    /// Adds options of `runslice vm`.
    #[must_use]
    pub fn options(mut self, words: &[&str]) -> Self {
        self.words
            .extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Runs a script; words that name files, such as objects, come along as `$1`, `$2` and so on.
    #[must_use]
    pub fn run(&self, script: &str, files: &[&Path]) -> Said {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let output = Command::new(&self.program)
            .arg("vm")
            .args(&self.words)
            .args(["--", "sh", "-c", script, "sh"])
            .args(files)
            .stdin(Stdio::null())
            .output()
            .expect("runslice starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            status: output.status.code(),
        }
    }

    /// Runs a script that must end well, on a kernel that has nothing to complain of.
    #[must_use]
    pub fn good(&self, script: &str, files: &[&Path]) -> Said {
        let said = self.clone().options(&["--kernel-log"]).run(script, files);
        let text = said.text();
        assert_eq!(said.status, Some(0), "{}: {text}", self.words.join(" "));
        assert_eq!(complaint(&text), None, "{text}");
        said
    }
}

/// The first line of a kernel's log that says that something is wrong with it.
#[must_use]
pub fn complaint(log: &str) -> Option<&str> {
    let bad = |line: &&str| COMPLAINTS.iter().any(|word| line.contains(word));
    log.lines().find(bad)
}

impl Said {
    /// All that was printed: standard output, then the rest.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// A copy of the program without what debuggers want, which is ten times the rest: guests unpack
/// it all. It has another name, so that guests must find it by `runslice` alone.
fn stripped(program: &str) -> PathBuf {
    static ONCE: Mutex<()> = Mutex::new(());
    let _one = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = Path::new(program).with_file_name("runslice-of-guests");
    let made = |path: &Path| fs::metadata(path).and_then(|facts| facts.modified()).ok();
    if made(&copy) <= made(Path::new(program)) {
        // Another test program may do the same now, or start the copy: it must never see half.
        let own = copy.with_extension(process::id().to_string());
        let status = Command::new("strip")
            .arg("-o")
            .arg(&own)
            .arg(program)
            .status();
        let status = status.expect("strip is there; `scripts/setup.sh vm` installs it");
        assert!(status.success(), "strip: {status}");
        fs::rename(&own, &copy).expect("the copy can be named");
    }
    copy
}

/// An empty folder `name` below `parent`.
#[must_use]
pub fn empty_folder(parent: &str, name: &str) -> PathBuf {
    let folder = Path::new(parent).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    folder
}
