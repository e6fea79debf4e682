//! Operations on what tasks share besides channels, mutexes and barriers.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use workload::{CgroupChange, Command, LockKind, ResourceInstance};

use super::cgroups;
use super::state::{Failure, system};
use super::task::{Failed, PlayTask};
use super::{shared, sys};

impl PlayTask {
    pub(super) fn device(&mut self, command: &Command) -> Result<(), Failed> {
        match *command {
            Command::LockShared(lock) => self.lock_shared(lock)?,
            Command::SemWait(semaphore) => {
                let words = self.state().semaphore(semaphore);
                shared::take_token(&words[0], &words[1]);
            }
            Command::SemPost(semaphore) => {
                let words = self.state().semaphore(semaphore);
                shared::give_token(&words[1]);
            }
            Command::CondWait { cond, lock } => {
                let words = self.state().condition(cond);
                let ticket = shared::begin_to_wait(&words[0]);
                self.unlock(lock)?;
                shared::wait_for_turn(&words[1], ticket);
                self.lock(lock)?;
            }
            Command::Signal(cond) => {
                let words = self.state().condition(cond);
                shared::signal(&words[0], &words[1], false);
            }
            Command::Broadcast(cond) => {
                let words = self.state().condition(cond);
                shared::signal(&words[0], &words[1], true);
            }
            Command::Connect { to, .. } => {
                let (_, address) = self.state().listener(to);
                match TcpStream::connect(address) {
                    // It was accepted and has ended before this task was told.
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
                    connected => drop(connected.map_err(|error| system(&error))?),
                }
            }
            Command::Accept(from) => {
                let (listener, _) = self.state().listener(from);
                let (connection, _) = listener.accept().map_err(|error| system(&error))?;
                // Thousands of closed connections would keep their ports for a minute.
                sys::close_at_once(connection.as_fd());
            }
            Command::MoveCgroup { task, to, process } => {
                let folder = &self.state().cgroups[to as usize];
                let file = if process {
                    "cgroup.procs"
                } else {
                    "cgroup.threads"
                };
                self.change(task, |tid| put(folder, file, &tid.to_string()))?;
            }
            Command::SetCgroup { number, change } => self.set_cgroup(number, change)?,
            ref other => unreachable!("{other:?} is refused before the play"),
        }
        Ok(())
    }

    fn set_cgroup(&self, number: u32, change: CgroupChange) -> Result<(), Failed> {
        let (file, text) = match change {
            CgroupChange::Weight(weight) => ("cpu.weight", weight.to_string()),
            CgroupChange::Max(max) => ("cpu.max", cgroups::max(max)),
            CgroupChange::Idle(idle) => ("cpu.idle", u8::from(idle).to_string()),
        };
        let folder = &self.state().cgroups[number as usize];
        put(folder, file, &text).map_err(|error| system(&error))
    }

    /// Takes a read-write lock for reading.
    fn lock_shared(&mut self, lock: ResourceInstance) -> Result<(), Failed> {
        let words = self.state().lock(lock);
        let tid = sys::tid().cast_unsigned();
        if words[3].load(Ordering::Relaxed) == tid || self.reads(lock) {
            return Err((Failure::LockedTwice, 0));
        }
        shared::lock_to_read(words);
        self.reading.push(lock);
        Ok(())
    }

    pub(super) fn reads(&self, lock: ResourceInstance) -> bool {
        self.reading.contains(&lock)
    }

    /// Takes a read-write lock alone.
    pub(super) fn lock_to_write(&self, words: &[AtomicU32]) {
        shared::lock_to_write(words);
        words[3].store(sys::tid().cast_unsigned(), Ordering::Relaxed);
    }

    /// Gives back what [`PlayTask::lock_shared`] or [`PlayTask::lock_to_write`] took; whether there
    /// was something.
    pub(super) fn unlock_rw(&mut self, lock: ResourceInstance, words: &[AtomicU32]) -> bool {
        if words[3].load(Ordering::Relaxed) == sys::tid().cast_unsigned() {
            words[3].store(0, Ordering::Relaxed);
            shared::unlock_written(words);
            return true;
        }
        let Some(at) = self.reading.iter().position(|other| *other == lock) else {
            return false;
        };
        self.reading.swap_remove(at);
        shared::unlock_read(words);
        true
    }

    pub(super) fn is_rw(&self, of: u32) -> bool {
        self.state().workload.locks[of as usize].kind == LockKind::ReadWrite
    }
}

/// Writes into a file of a cgroup.
pub(super) fn put(folder: &Path, file: &str, text: &str) -> std::io::Result<()> {
    fs::write(folder.join(file), text)
}
