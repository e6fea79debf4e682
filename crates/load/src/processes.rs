//! Processes that a load forks. They wait at a gate, begin together, and end with their parent.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::ops::AddAssign;
use std::panic::{self, AssertUnwindSafe};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, setpgid};

use super::Error;
use crate::play::shared::{self, MemoryPlan, Shared};
use crate::play::sys::{self, Forked};

/// What the system counted for processes that have ended, and for those that they waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user space.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Times that one gave its CPU up to wait.
    pub voluntary: u64,
    /// Times that one lost its CPU.
    pub forced: u64,
}

impl Usage {
    /// CPU time of both kinds.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }

    /// Switches of both kinds.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.voluntary + self.forced
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
        self.voluntary += other.voluntary;
        self.forced += other.forced;
    }
}

/// Processes of a load, in a group of their own. Dropping it ends them and what they started.
#[derive(Debug)]
pub struct Processes {
    /// Those that were not waited for, with their names.
    members: Vec<(libc::pid_t, String)>,
    /// The group, which is the number of its first process.
    group: libc::pid_t,
    gate: Gate,
}

/// Where members wait until all may begin.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// 0 while it is shut.
    open: &'static AtomicU32,
    /// How many stand before it.
    arrived: &'static AtomicU32,
}

impl Gate {
    /// Says that this process is ready, and waits.
    pub fn pass(self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        shared::wake(self.arrived, 1);
        while self.open.load(Ordering::SeqCst) == 0 {
            shared::wait(self.open, 0, None);
        }
    }
}

/// From one look at who has ended to the next.
const PAUSE: Duration = Duration::from_millis(100);

impl Processes {
    /// Nobody yet; the gate is shut.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new() -> Result<Self, Error> {
        let mut plan = MemoryPlan::default();
        plan.words(2);
        let Shared { words, .. } = plan.build()?;
        Ok(Self {
            members: Vec::new(),
            group: 0,
            gate: Gate {
                open: &words[0],
                arrived: &words[1],
            },
        })
    }

    /// Forks a process that does `work` and ends. Whoever calls has one thread only.
    ///
    /// # Errors
    /// When the system has no room for another.
    pub fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(Gate) -> io::Result<()>,
    ) -> Result<libc::pid_t, Error> {
        let forked = sys::fork().map_err(Error::doing(format!(
            "start process {} of the load",
            self.members.len() + 1
        )))?;
        let Forked::Parent(pid) = forked else {
            self.be_member(name, work);
        };
        if self.members.is_empty() {
            self.group = pid;
        }
        // Both sides do it, so that it is done whichever runs first. The child may have ended.
        let _ = join_group(pid, self.group);
        self.members.push((pid, name.to_owned()));
        Ok(pid)
    }

    fn be_member(&mut self, name: &str, work: impl FnOnce(Gate) -> io::Result<()>) -> ! {
        sys::die_with_parent();
        let _ = join_group(
            0,
            if self.members.is_empty() {
                0
            } else {
                self.group
            },
        );
        sys::set_name(&task_name(name));
        // They are the parent's.
        self.members.clear();
        let gate = self.gate;
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(gate)));
        sys::exit(match result {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => {
                // Nobody can be told when standard error is closed too.
                let _ = writeln!(io::stderr(), "load: {name}: {error}");
                1
            }
            Err(_) => 101,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Waits until `expected` members stand at the gate, then opens it. Returns the moment before.
    ///
    /// # Errors
    /// When a member has failed instead.
    pub fn open(&mut self, expected: usize) -> Result<Instant, Error> {
        loop {
            let arrived = self.gate.arrived.load(Ordering::SeqCst);
            if usize::try_from(arrived).is_ok_and(|arrived| arrived >= expected) {
                break;
            }
            if let Some(failed) = self.look()? {
                return Err(failed);
            }
            shared::wait(self.gate.arrived, arrived, Some(PAUSE));
        }
        let began = Instant::now();
        self.gate.open.store(1, Ordering::SeqCst);
        shared::wake(self.gate.open, i32::MAX);
        Ok(began)
    }

    /// A member that has failed, if one has.
    fn look(&mut self) -> Result<Option<Error>, Error> {
        while !self.members.is_empty() {
            match wait_group(self.group, libc::WNOHANG)? {
                None => return Ok(None),
                Some(ended) => {
                    if let Some(failed) = self.take(&ended) {
                        return Ok(Some(failed));
                    }
                }
            }
        }
        Ok(None)
    }

    fn take(&mut self, ended: &Ended) -> Option<Error> {
        let at = self.members.iter().position(|(pid, _)| *pid == ended.pid)?;
        let (_, name) = self.members.swap_remove(at);
        (ended.status != 0).then(|| Error::Member {
            name,
            how: Status(ended.status).to_string(),
        })
    }

    /// Looks whether one has failed so far.
    ///
    /// # Errors
    /// When one has.
    pub fn check(&mut self) -> Result<(), Error> {
        self.look()?.map_or(Ok(()), Err)
    }

    /// Waits until all have ended.
    ///
    /// # Errors
    /// When one has failed; the others are ended.
    pub fn wait(&mut self) -> Result<Usage, Error> {
        let mut sum = Usage::default();
        while !self.members.is_empty() {
            let Some(ended) = wait_group(self.group, 0)? else {
                continue;
            };
            sum += ended.usage;
            if let Some(failed) = self.take(&ended) {
                self.end();
                return Err(failed);
            }
        }
        Ok(sum)
    }

    /// Ends all that still run, and says what they used.
    pub fn end(&mut self) -> Usage {
        let mut sum = Usage::default();
        if self.members.is_empty() {
            return sum;
        }
        sys::kill_group(self.group);
        while let Ok(Some(ended)) = wait_group(self.group, 0) {
            sum += ended.usage;
        }
        self.members.clear();
        sum
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}

/// A status of `waitpid`, in words.
struct Status(i32);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::os::unix::process::ExitStatusExt as _;
        write!(f, "{}", std::process::ExitStatus::from_raw(self.0))
    }
}

/// A process that has ended.
#[derive(Debug)]
struct Ended {
    pid: libc::pid_t,
    status: i32,
    usage: Usage,
}

/// Runs a command to its end.
///
/// # Errors
/// When it cannot be started or fails.
pub fn run(program: &str, command: &mut Command) -> Result<(Usage, Duration), Error> {
    let began = Instant::now();
    let child = command.spawn().map_err(|source| Error::System {
        doing: format!("start `{program}`"),
        source,
    })?;
    let usage = wait_child(program, &child)?;
    Ok((usage, began.elapsed()))
}

/// Runs a command of a Debian package to its end, and says what it printed.
///
/// # Errors
/// When it is not there, cannot be read, or fails.
pub fn output(
    program: &str,
    package: &str,
    command: &mut Command,
) -> Result<(Usage, String), Error> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|source| {
        match source.kind() {
            io::ErrorKind::NotFound => Error::Missing {
                program: program.to_owned(),
                way: format!(
                    "it is in the package {package}; `--with {program}` brings it into a virtual \
                     machine"
                ),
            },
            _ => Error::doing(format!("start `{program}`"))(source),
        }
    })?;
    let mut said = Vec::new();
    if let Some(mut from) = child.stdout.take() {
        let read = from.read_to_end(&mut said);
        read.map_err(Error::doing(format!("read what `{program}` prints")))?;
    }
    let usage = wait_child(program, &child)?;
    Ok((usage, String::from_utf8_lossy(&said).into_owned()))
}

/// Waits for a child and its end without failure.
fn wait_child(program: &str, child: &Child) -> Result<Usage, Error> {
    let pid = libc::pid_t::try_from(child.id()).expect("numbers of processes fit");
    let ended = wait_for(pid, 0)?.expect("it was waited for until its end");
    match ended.status {
        0 => Ok(ended.usage),
        status => Err(Error::Tool {
            program: program.to_owned(),
            words: Status(status).to_string(),
        }),
    }
}

/// Waits for any child of this group. `None`: none has ended yet, or there is none.
fn wait_group(group: libc::pid_t, flags: libc::c_int) -> Result<Option<Ended>, Error> {
    wait_for(-group, flags)
}

fn wait_for(whom: libc::pid_t, flags: libc::c_int) -> Result<Option<Ended>, Error> {
    let mut status = 0;
    loop {
        // SAFETY: a zeroed `rusage` is a valid one; both pointers are to live values.
        #[expect(unsafe_code, reason = "neither std nor rustix has wait4")]
        let (pid, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let pid = libc::wait4(whom, &raw mut status, flags, &raw mut usage);
            (pid, usage)
        };
        match pid {
            0 => return Ok(None),
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
                error => return Err(Error::doing("wait for a process")(error)),
            },
            pid => {
                let usage = Usage::from(usage);
                return Ok(Some(Ended { pid, status, usage }));
            }
        }
    }
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        let span = |time: libc::timeval| {
            let micros = time.tv_sec * 1_000_000 + time.tv_usec;
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        };
        Self {
            user: span(usage.ru_utime),
            system: span(usage.ru_stime),
            voluntary: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
            forced: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        }
    }
}

fn join_group(pid: libc::pid_t, group: libc::pid_t) -> io::Result<()> {
    Ok(setpgid(Pid::from_raw(pid), Pid::from_raw(group))?)
}

/// The first 15 bytes of a name, as the kernel keeps it.
fn task_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_begin_together_and_what_they_used_is_known() {
        let mut processes = Processes::new().unwrap();
        let mut plan = MemoryPlan::default();
        plan.words(1);
        let passed = &plan.build().unwrap().words[0];
        for _ in 0..3 {
            processes
                .spawn("member", |gate| {
                    gate.pass();
                    passed.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                })
                .unwrap();
        }
        while processes.gate.arrived.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        assert_eq!(passed.load(Ordering::SeqCst), 0);
        processes.open(3).unwrap();
        let usage = processes.wait().unwrap();
        assert_eq!(passed.load(Ordering::SeqCst), 3);
        // Each waited at the gate.
        assert!(usage.voluntary >= 3, "{usage:?}");
    }

    #[test]
    fn one_that_fails_ends_the_others_and_is_named() {
        let mut processes = Processes::new().unwrap();
        processes
            .spawn("patient", |_| {
                std::thread::sleep(Duration::from_secs(3600));
                Ok(())
            })
            .unwrap();
        processes.spawn("hasty", |_| sys::exit(3)).unwrap();
        let error = processes.wait().unwrap_err().to_string();
        assert!(error.contains("hasty") && error.contains('3'), "{error}");
        assert_eq!(processes.len(), 0);
    }

    #[test]
    fn one_that_never_comes_to_the_gate_is_no_endless_wait() {
        let mut processes = Processes::new().unwrap();
        processes.spawn("absent", |_| sys::exit(4)).unwrap();
        let error = processes.open(1).unwrap_err().to_string();
        assert!(error.contains("absent"), "{error}");
    }

    #[test]
    fn nobody_is_left_when_it_is_dropped() {
        let mut processes = Processes::new().unwrap();
        let pid = processes
            .spawn("endless", |_| {
                std::thread::sleep(Duration::from_secs(3600));
                Ok(())
            })
            .unwrap();
        drop(processes);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_status() {
        let error = run("sh", Command::new("sh").args(["-c", "exit 9"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh` failed: exit status: 9");
        let (_, took) = run("true", &mut Command::new("true")).unwrap();
        assert!(took > Duration::ZERO);
    }
}
