//! A command whose end is seen when it comes, with what the kernel counted for it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use rustix::time::Timespec;

/// A command that runs: in a group of processes of its own, or beside this process.
#[derive(Debug)]
pub struct Timed {
    pid: Pid,
    /// Whether it has a group of its own, which ends with it.
    has_group: bool,
    /// Becomes readable when the process ends.
    pidfd: OwnedFd,
    began: Instant,
    ended: Option<TimedEnd>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub struct TimedEnd {
    /// Its status.
    pub status: ExitStatus,
    /// From just before it was started until its end was seen.
    pub took: Duration,
    /// In user space: it, and those of its descendants that were waited for.
    pub user: Duration,
    /// In the kernel, of the same.
    pub system: Duration,
    /// The most memory that one of these processes had, in bytes.
    pub memory: u64,
}

impl Timed {
    /// Starts `command` in a group of its own. What of the group outlives the command is ended with
    /// it, and all of it when this value is dropped.
    ///
    /// # Errors
    /// When it cannot be started or watched.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0);
        Self::start_as_it_is(command, true)
    }

    /// Starts `command` in the group of this process, so that it may read from its terminal and
    /// gets the terminal's signals. What it has started goes on after its end, and so does it when
    /// this value is dropped.
    ///
    /// # Errors
    /// When it cannot be started or watched.
    pub fn start_beside(command: &mut Command) -> io::Result<Self> {
        Self::start_as_it_is(command, false)
    }

    fn start_as_it_is(command: &mut Command, has_group: bool) -> io::Result<Self> {
        let began = Instant::now();
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        // The process is our child and not waited for, so that its number belongs to it.
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                send(pid, has_group, Signal::KILL);
                let _ = child.wait();
                return Err(error.into());
            }
        };
        Ok(Self {
            pid,
            has_group,
            pidfd,
            began,
            ended: None,
        })
    }

    /// Waits for its end, but not longer than `patience`, and not beyond a signal. `None` when it
    /// goes on.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<TimedEnd>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let limit = Timespec::try_from(patience).ok();
        let ready = poll(
            &mut [PollFd::new(&self.pidfd, PollFlags::IN)],
            limit.as_ref(),
        );
        let took = self.began.elapsed();
        match ready {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => {
                self.ended = Some(self.reap(took)?);
                Ok(self.ended)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn reap(&self, took: Duration) -> io::Result<TimedEnd> {
        // Before the process is waited for, its number can belong to no other group.
        if self.has_group {
            send(self.pid, true, Signal::KILL);
        }
        let mut status = 0;
        // SAFETY: a zeroed `rusage` is a valid one; both pointers are to live values.
        #[expect(unsafe_code, reason = "neither std nor rustix has wait4")]
        let (result, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let result = libc::wait4(
                self.pid.as_raw_nonzero().get(),
                &raw mut status,
                0,
                &raw mut usage,
            );
            (result, usage)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(TimedEnd {
            status: ExitStatus::from_raw(status),
            took,
            user: span(usage.ru_utime),
            system: span(usage.ru_stime),
            // In kibibytes (man 2 getrusage).
            memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        })
    }

    /// Interrupts the command and all of its own group, as Ctrl-C does.
    pub fn interrupt(&self) {
        if self.ended.is_none() {
            send(self.pid, self.has_group, Signal::INT);
        }
    }

    /// Asks the command and all of its own group to end, as a terminal would.
    pub fn ask_to_end(&self) {
        if self.ended.is_none() {
            send(self.pid, self.has_group, Signal::TERM);
        }
    }

    /// Ends it without asking.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn end(mut self) -> io::Result<TimedEnd> {
        if let Some(end) = self.ended {
            return Ok(end);
        }
        send(self.pid, self.has_group, Signal::KILL);
        let end = self.reap(self.began.elapsed())?;
        self.ended = Some(end);
        Ok(end)
    }
}

impl Drop for Timed {
    /// Leaves no process of its own group behind.
    fn drop(&mut self) {
        if self.ended.is_none() && self.has_group {
            let _ = self.reap(Duration::ZERO);
        }
    }
}

/// Sends a signal to the group that `pid` leads, or to it alone.
fn send(pid: Pid, to_group: bool, signal: Signal) {
    // One that has ended needs no signal.
    let _ = if to_group {
        kill_process_group(pid, signal)
    } else {
        kill_process(pid, signal)
    };
}

fn span(time: libc::timeval) -> Duration {
    let micros = time.tv_sec * 1_000_000 + time.tv_usec;
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Timed {
        let mut command = Command::new("sh");
        Timed::start(command.args(["-c", script])).unwrap()
    }

    #[test]
    fn a_command_is_waited_for_and_its_status_and_memory_are_known() {
        let mut timed = sh("exit 7");
        let end = timed.wait(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(end.status.code(), Some(7));
        assert!(end.memory > 0);
        // Asked again, the same.
        let again = timed.wait(Duration::ZERO).unwrap().unwrap();
        assert_eq!((again.status, again.took), (end.status, end.took));
    }

    #[test]
    fn a_command_that_goes_on_is_none_and_ends_when_it_is_asked_with_its_children() {
        let mut timed = sh("sleep 600 & sleep 600; true");
        assert!(timed.wait(Duration::from_millis(1)).unwrap().is_none());
        timed.ask_to_end();
        let end = timed.wait(Duration::from_secs(60)).unwrap().unwrap();
        assert!(!end.status.success());
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let error = Timed::start(&mut Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn beside_this_process_it_has_no_group_and_only_it_is_ended() {
        let group = |pid: Pid| {
            let stat =
                std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
            // Behind the name: state, parent, group.
            let (_, rest) = stat.rsplit_once(") ").unwrap();
            rest.split(' ')
                .nth(2)
                .unwrap()
                .parse::<libc::pid_t>()
                .unwrap()
        };
        let mut command = Command::new("sleep");
        let timed = Timed::start_beside(command.arg("600")).unwrap();
        let own = rustix::process::getpid();
        assert_eq!(group(timed.pid), group(own));
        let end = timed.end().unwrap();
        assert_eq!(end.status.signal(), Some(Signal::KILL.as_raw()));
        // Dropped, it goes on.
        let timed = Timed::start_beside(Command::new("sleep").arg("600")).unwrap();
        let pid = timed.pid;
        drop(timed);
        assert_eq!(group(pid), group(own));
        send(pid, false, Signal::KILL);
    }

    #[test]
    fn nothing_is_left_behind() {
        let timed = sh("exec sleep 600");
        let pid = timed.pid;
        drop(timed);
        assert!(!std::path::Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists());
    }
}
