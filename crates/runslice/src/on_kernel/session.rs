//! What a `runslice run` leaves on the machine for `set`, `status` and `stop`: who it is, which
//! object it loaded, and where its variables are pinned.
//!
//! The process holds a lock on a file as long as it lives, so that a killed one is told from a
//! living one without trust in process numbers. Whoever comes next removes what it left.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use live::pins::{self, Pins};
use live::{Dump, SchedExt};
use model::Advised;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Below the root of the system: state that does not outlive a boot.
const FOLDER: &str = "run/runslice";
/// Below the root of the system: where maps are pinned.
const PINS: &str = "sys/fs/bpf/runslice";
/// What the trace buffer for dumps is called.
pub const TRACE: &str = "runslice";
/// Version of the record; it grows when a field is removed or changes its meaning. Another version
/// is named and not read: a guess about fields that happen to fit could stop the wrong process.
const VERSION: u32 = 1;
/// The lock may be held without a record: while a policy is loaded, and, on a busy machine, by a
/// command between its fork and its exec when the runslice that started it is gone. Neither lasts.
const LOOKS: u32 = 250;
const LOOK: Duration = Duration::from_millis(20);

/// Where things are.
#[derive(Clone, Debug)]
pub struct SessionPaths {
    root: PathBuf,
}

/// What the living runslice says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Version of this record.
    pub runslice_session: u32,
    /// The process.
    pub pid: u32,
    /// The policy as tables call it, knobs included.
    pub policy: String,
    /// When it was attached, in seconds since 1970.
    pub since_unix_s: u64,
    /// The kernel's number of the attachment.
    pub sequence: Option<u64>,
    /// Only tasks that ask for it are scheduled by the policy.
    pub is_partial: bool,
    /// How often it was loaded again because it asked for that.
    pub restarts: u32,
    /// Variables that were set when it was loaded.
    pub set: Vec<(String, String)>,
    /// The names of the policy's counters, in the order of their map.
    pub counters: Vec<String>,
    /// The service that was stopped for it and is started again afterwards.
    pub replaced: Option<String>,
}

/// The process that runs a policy through runslice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunningProcess {
    /// Nobody, and nothing is left of anybody.
    Nobody,
    /// Nobody; one that was killed left something, which is removed now.
    Left(Option<Box<SessionRecord>>),
    /// This one.
    Running(Box<SessionRecord>),
}

/// This process's own claim; dropped, everything of it is removed.
#[derive(Debug)]
pub struct Session {
    place: SessionPaths,
    _lock: File,
}

impl SessionRecord {
    /// The policy's name without knobs.
    pub fn name(&self) -> &str {
        self.policy.split(':').next().unwrap_or_default()
    }

    /// A record of this process.
    pub fn of_this_process(policy: &str) -> Self {
        Self {
            runslice_session: VERSION,
            pid: std::process::id(),
            policy: policy.to_owned(),
            since_unix_s: 0,
            sequence: None,
            is_partial: false,
            restarts: 0,
            set: Vec::new(),
            counters: Vec::new(),
            replaced: None,
        }
    }
}

/// The counters of the policy that a runslice of this machine has attached: names and totals;
/// empty if none has.
pub fn counters() -> Vec<(String, u64)> {
    let place = SessionPaths::below(Path::new("/"));
    match place.find() {
        Ok(RunningProcess::Running(record)) => record.counted(&place).unwrap_or_default(),
        _ => Vec::new(),
    }
}

impl SessionRecord {
    /// The policy's counters: names and totals of this moment.
    ///
    /// # Errors
    /// When the pinned map cannot be read.
    pub fn counted(&self, place: &SessionPaths) -> Result<Vec<(String, u64)>, live::Error> {
        if self.counters.is_empty() {
            return Ok(Vec::new());
        }
        let totals = pins::counters(&place.pins(), self.counters.len())?;
        Ok(self.counters.iter().cloned().zip(totals).collect())
    }
}

impl SessionPaths {
    /// The files of the system below `root`, which is `/` but in tests.
    pub fn below(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// The folder of the pinned maps.
    pub fn pins(&self) -> PathBuf {
        self.root.join(PINS)
    }

    /// The copy of the object that is attached.
    pub fn object(&self) -> PathBuf {
        self.file("policy.bpf.o")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join(FOLDER).join(name)
    }

    fn record(&self) -> Option<SessionRecord> {
        let text = fs::read(self.file("session.json")).ok()?;
        let record: Option<SessionRecord> = serde_json::from_slice(&text).ok();
        record.filter(|record| record.runslice_session == VERSION)
    }

    /// Refuses the record of another version of this program, such as one that has been replaced on
    /// the disk and runs on.
    fn refuse_other_version(&self) -> anyhow::Result<()> {
        let Ok(text) = fs::read(self.file("session.json")) else {
            return Ok(());
        };
        let record: Value = serde_json::from_slice(&text).unwrap_or_default();
        let Some(found) = record["runslice_session"].as_u64() else {
            return Ok(());
        };
        if found == u64::from(VERSION) {
            return Ok(());
        }
        let pid = record["pid"].as_u64().unwrap_or_default();
        bail!(Advised::new(
            format!(
                "process {pid} is another version of runslice, whose record has version {found}"
            ),
            format!("this program reads {VERSION}; kill {pid} ends it and detaches its policy")
        ))
    }

    /// Who runs a policy. Removes what a killed one left.
    ///
    /// # Errors
    /// When a living one has left a record that this version does not understand.
    pub fn find(&self) -> anyhow::Result<RunningProcess> {
        // Whoever runs a policy has made the file first.
        let Ok(lock) = File::open(self.file("lock")) else {
            return Ok(RunningProcess::Nobody);
        };
        for _ in 0..LOOKS {
            match lock.try_lock_shared() {
                Err(TryLockError::WouldBlock) => {
                    if let Some(record) = self.record() {
                        return Ok(RunningProcess::Running(Box::new(record)));
                    }
                    self.refuse_other_version()?;
                    thread::sleep(LOOK);
                }
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(self.clean()),
            }
        }
        bail!(Advised::new(
            "another runslice is attaching a policy",
            "try again"
        ))
    }

    /// How tables call the policy that is attached: as its user did if a runslice attached it, else
    /// as its operations do (`.name`), which is all that the kernel knows. `None` without a policy.
    pub fn scheduler(&self) -> Option<String> {
        let in_kernel = SchedExt::below(&self.root).policy()?;
        match self.find() {
            Ok(RunningProcess::Running(record)) => Some(record.policy),
            _ => Some(in_kernel),
        }
    }

    /// The process that has claimed the machine and has not said yet what it attaches. Other
    /// programs share the claim for a moment only, between a fork and an exec.
    pub fn attaching(&self) -> Option<u32> {
        if self.file("session.json").exists() || !self.is_held() {
            return None;
        }
        let facts = fs::metadata(self.file("lock")).ok()?;
        let locks = fs::read_to_string("/proc/locks").ok()?;
        holder(&locks, facts.dev(), facts.ino())
    }

    /// Whether a runslice lives that runs a policy.
    pub fn is_held(&self) -> bool {
        let lock = File::open(self.file("lock"));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Removes what a killed one left; the caller holds the lock.
    fn clean(&self) -> RunningProcess {
        let record = self.record();
        let had_pins = Pins::remove_left(&self.pins()).unwrap_or(true);
        // It cannot be removed by those who may not; the next one who may does it.
        let _ = Dump::remove_left(&self.root, TRACE);
        if !self.file("session.json").exists() && !had_pins {
            return RunningProcess::Nobody;
        }
        self.forget();
        if self.file("session.json").exists() || self.pins().exists() {
            // This process may not; whoever may says it then.
            return RunningProcess::Nobody;
        }
        RunningProcess::Left(record.map(Box::new))
    }

    fn forget(&self) {
        for name in ["session.json", "policy.bpf.o"] {
            let _ = fs::remove_file(self.file(name));
        }
    }
}

impl Session {
    /// Claims the machine for this process.
    ///
    /// # Errors
    /// When another runslice has it, or the folder cannot be written.
    pub fn begin(place: &SessionPaths) -> anyhow::Result<Self> {
        let folder = place.root.join(FOLDER);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = place.file("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(model::CannotWrite::at(path.display()))?;
        let mut looks = 0;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    place.refuse_other_version()?;
                    if let Some(record) = place.record() {
                        let SessionRecord { policy, pid, .. } = record;
                        bail!(Advised::new(
                            format!("another runslice ({policy}, process {pid}) runs"),
                            "stop it first"
                        ));
                    }
                    looks += 1;
                    if looks > LOOKS {
                        bail!(Advised::new(
                            "another runslice is attaching a policy",
                            "try again"
                        ));
                    }
                    thread::sleep(LOOK);
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
        }
        place.clean();
        Ok(Self {
            place: place.clone(),
            _lock: lock,
        })
    }

    /// Says to others what is attached. A scheduler's own program has no object to show.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, record: &SessionRecord, object: Option<&[u8]>) -> anyhow::Result<()> {
        let put = |name: &str, bytes: &[u8]| -> io::Result<()> {
            // Readers see the old file or the new one, never a half.
            let new = self.place.file(&format!("{name}.new"));
            let mut file = File::create(&new)?;
            file.write_all(bytes)?;
            fs::rename(&new, self.place.file(name))
        };
        let record = serde_json::to_vec_pretty(record).context("the record")?;
        object
            .map_or(Ok(()), |object| put("policy.bpf.o", object))
            .and_then(|()| put("session.json", &record))
            .with_context(|| {
                format!(
                    "cannot write into {}",
                    self.place.root.join(FOLDER).display()
                )
            })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.place.forget();
    }
}

/// Who holds the lock on a file alone, by /proc/locks (`lock_get_status()`, fs/locks.c, 6.18):
/// `1: FLOCK  ADVISORY  WRITE 1234 00:1a:77 0 EOF`.
fn holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
    let minor = device & 0xff | (device >> 12) & !0xff;
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, "WRITE", pid, place, ..] if place == file => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_attaching_is_found_until_it_says_what() {
        let root = Root::new("attaching");
        let place = SessionPaths::below(&root.0);
        assert_eq!(place.attaching(), None);
        let session = Session::begin(&place).unwrap();
        assert_eq!(place.attaching(), Some(std::process::id()));
        session
            .write(&SessionRecord::of_this_process("mlfq"), Some(b""))
            .unwrap();
        assert_eq!(place.attaching(), None);
        drop(session);
    }

    #[test]
    fn the_holder_of_a_lock_is_read_as_the_kernel_writes_it() {
        let locks = "1: POSIX  ADVISORY  WRITE 3 00:1a:77 0 EOF\n\
                     2: FLOCK  ADVISORY  READ  4 00:1a:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 5 00:1a:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 6 00:1b:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 7 00:1a:77 0 EOF\n";
        assert_eq!(holder(locks, 0x1a, 77), Some(7));
        assert_eq!(holder(locks, 0x1b, 77), Some(6));
        assert_eq!(holder(locks, 0x1a, 78), None);
    }

    /// A root of one's own that goes away.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let name = format!("runslice-session-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_session_is_found_while_it_lives_and_leaves_nothing() {
        let root = Root::new("lives");
        let place = SessionPaths::below(&root.0);
        assert_eq!(place.find().unwrap(), RunningProcess::Nobody);
        let session = Session::begin(&place).unwrap();
        let record = SessionRecord {
            set: vec![("slice_ns".to_owned(), "5".to_owned())],
            ..SessionRecord::of_this_process("fifo:slice_ns=5")
        };
        session.write(&record, Some(b"object")).unwrap();
        assert_eq!(record.name(), "fifo");
        assert_eq!(
            place.find().unwrap(),
            RunningProcess::Running(Box::new(record))
        );
        assert!(place.is_held());
        assert_eq!(fs::read(place.object()).unwrap(), b"object");
        drop(session);
        assert_eq!(place.find().unwrap(), RunningProcess::Nobody);
        assert!(!place.object().exists());
    }

    #[test]
    fn a_policy_has_its_users_name_in_tables_and_the_kernels_if_nobody_gave_one() {
        let root = Root::new("names");
        let place = SessionPaths::below(&root.0);
        assert_eq!(place.scheduler(), None);
        let class = root.0.join("sys/kernel/sched_ext/root");
        fs::create_dir_all(&class).unwrap();
        fs::write(class.join("ops"), "rustland\n").unwrap();
        assert_eq!(place.scheduler().unwrap(), "rustland");
        let session = Session::begin(&place).unwrap();
        let record = SessionRecord::of_this_process("mine:slice_ns=5");
        session.write(&record, Some(b"")).unwrap();
        assert_eq!(place.scheduler().unwrap(), "mine:slice_ns=5");
        drop(session);
        while place.is_held() {
            thread::sleep(LOOK);
        }
        assert_eq!(place.scheduler().unwrap(), "rustland");
    }

    #[test]
    fn a_second_session_is_refused_by_name() {
        let root = Root::new("second");
        let place = SessionPaths::below(&root.0);
        let session = Session::begin(&place).unwrap();
        session
            .write(&SessionRecord::of_this_process("mlfq"), Some(b""))
            .unwrap();
        let error = Session::begin(&place).unwrap_err().to_string();
        let want = format!(
            "another runslice (mlfq, process {}) runs",
            std::process::id()
        );
        assert!(error.starts_with(&want), "{error}");
        drop(session);
        Session::begin(&place).unwrap();
    }

    #[test]
    fn a_record_of_another_version_is_refused_while_its_process_lives_and_removed_after() {
        let root = Root::new("version");
        let place = SessionPaths::below(&root.0);
        let session = Session::begin(&place).unwrap();
        let later = r#"{"runslice_session":2,"pid":31,"other":"fields"}"#;
        let file = root.0.join(FOLDER).join("session.json");
        fs::write(&file, later).unwrap();
        let want = "process 31 is another version of runslice, whose record has version 2; this \
                    program reads 1; kill 31 ends it and detaches its policy";
        assert_eq!(crate::exit::in_full(&place.find().unwrap_err()), want);
        assert_eq!(
            crate::exit::in_full(&Session::begin(&place).unwrap_err()),
            want
        );
        // It does not attach any more, so `stop` does not take it for one that does.
        assert_eq!(place.attaching(), None);
        drop(session);
        fs::write(&file, later).unwrap();
        while place.is_held() {
            thread::sleep(LOOK);
        }
        assert_eq!(place.find().unwrap(), RunningProcess::Left(None));
        assert!(!file.exists());
    }

    #[test]
    fn what_cannot_be_removed_is_not_said_to_be() {
        let root = Root::new("kept");
        let place = SessionPaths::below(&root.0);
        drop(Session::begin(&place).unwrap());
        // A file where a folder should be is not removed, whoever asks.
        fs::create_dir_all(place.pins().parent().unwrap()).unwrap();
        fs::write(place.pins(), "").unwrap();
        assert_eq!(place.find().unwrap(), RunningProcess::Nobody);
        assert!(place.pins().exists());
    }

    #[test]
    fn what_a_killed_one_left_is_removed_and_told_once() {
        let root = Root::new("killed");
        let place = SessionPaths::below(&root.0);
        let session = Session::begin(&place).unwrap();
        let record = SessionRecord::of_this_process("mlfq");
        session.write(&record, Some(b"")).unwrap();
        // As SIGKILL does: the lock goes, the files stay.
        let files = root.0.join(FOLDER);
        let kept = fs::read(files.join("session.json")).unwrap();
        drop(session);
        // Other tests start programs, which share the lock until they have begun.
        while place.is_held() {
            thread::sleep(LOOK);
        }
        fs::write(files.join("session.json"), kept).unwrap();
        fs::create_dir_all(place.pins()).unwrap();
        fs::write(place.pins().join("data_knobs"), "").unwrap();
        assert_eq!(
            place.find().unwrap(),
            RunningProcess::Left(Some(Box::new(record)))
        );
        assert!(!place.pins().exists());
        assert_eq!(place.find().unwrap(), RunningProcess::Nobody);
    }
}
