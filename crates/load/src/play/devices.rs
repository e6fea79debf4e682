//! Operations on what tasks share besides channels, mutexes and barriers.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use workload::{CGROUP_WEIGHTS, CgroupOp, DeviceOp, LockKind, Place, Target};

use super::cgroups;
use super::stage::{Failure, system};
use super::task::{Failed, Task};
use super::{shared, sys};

impl Task {
    pub(super) fn device(&mut self, op: &DeviceOp) -> Result<(), Failed> {
        match op {
            DeviceOp::LockShared(lock) => self.lock_shared(lock)?,
            DeviceOp::SemWait(semaphore) => {
                let words = self.semaphore(semaphore)?;
                shared::take_token(&words[0], &words[1]);
            }
            DeviceOp::SemPost(semaphore) => {
                let words = self.semaphore(semaphore)?;
                shared::give_token(&words[1]);
            }
            DeviceOp::CondWait { cond, lock } => {
                let words = self.condition(cond)?;
                let ticket = shared::begin_to_wait(&words[0]);
                self.unlock(lock)?;
                shared::wait_for_turn(&words[1], ticket);
                self.lock(lock)?;
            }
            DeviceOp::Signal(cond) => {
                let words = self.condition(cond)?;
                shared::signal(&words[0], &words[1], false);
            }
            DeviceOp::Broadcast(cond) => {
                let words = self.condition(cond)?;
                shared::signal(&words[0], &words[1], true);
            }
            DeviceOp::Connect { to, .. } => {
                let (of, index) = self.place(to)?;
                let listener = self.stage().listener(of, index);
                let (_, address) = listener.ok_or((Failure::Index, index))?;
                match TcpStream::connect(address) {
                    // It was accepted and has ended before this task was told.
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
                    connected => drop(connected.map_err(|error| system(&error))?),
                }
            }
            DeviceOp::Accept(from) => {
                let (of, index) = self.place(from)?;
                let listener = self.stage().listener(of, index);
                let (listener, _) = listener.ok_or((Failure::Index, index))?;
                let (connection, _) = listener.accept().map_err(|error| system(&error))?;
                // Thousands of closed connections would keep their ports for a minute.
                sys::close_at_once(connection.as_fd());
            }
            DeviceOp::Cgroup(op) => self.cgroup(op)?,
            other => unreachable!("{other:?} is refused before the play"),
        }
        Ok(())
    }

    fn semaphore(&mut self, place: &Place) -> Result<&'static [AtomicU32], Failed> {
        let (of, index) = self.place(place)?;
        let words = self.stage().semaphore(of, index);
        words.ok_or((Failure::Index, index))
    }

    fn condition(&mut self, place: &Place) -> Result<&'static [AtomicU32], Failed> {
        let (of, index) = self.place(place)?;
        let words = self.stage().condition(of, index);
        words.ok_or((Failure::Index, index))
    }

    /// Takes a read-write lock for reading.
    fn lock_shared(&mut self, lock: &Place) -> Result<(), Failed> {
        let (of, index) = self.place(lock)?;
        let words = self
            .stage()
            .lock(of, index)
            .ok_or((Failure::Index, index))?;
        let tid = sys::tid().cast_unsigned();
        if words[3].load(Ordering::Relaxed) == tid || self.reads((of, index)) {
            return Err((Failure::LockedTwice, 0));
        }
        shared::lock_to_read(words);
        self.reading.push((of, index));
        Ok(())
    }

    pub(super) fn reads(&self, lock: (u32, i64)) -> bool {
        self.reading.contains(&lock)
    }

    /// Takes a read-write lock alone.
    pub(super) fn lock_to_write(&self, words: &[AtomicU32]) {
        shared::lock_to_write(words);
        words[3].store(sys::tid().cast_unsigned(), Ordering::Relaxed);
    }

    /// Gives back what [`Task::lock_shared`] or [`Task::lock_to_write`] took; whether there was
    /// something.
    pub(super) fn unlock_rw(&mut self, lock: (u32, i64), words: &[AtomicU32]) -> bool {
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
        self.stage().workload.locks[of as usize].kind == LockKind::ReadWrite
    }

    fn cgroup(&mut self, op: &CgroupOp) -> Result<(), Failed> {
        match op {
            CgroupOp::Move {
                target,
                to,
                process,
            } => {
                let file = if *process {
                    "cgroup.procs"
                } else {
                    "cgroup.threads"
                };
                self.enter(target, *to, file)
            }
            CgroupOp::Weight { of, weight } => {
                let (low, high) = (*CGROUP_WEIGHTS.start(), *CGROUP_WEIGHTS.end());
                let weight = self.within(weight, low, high)?;
                self.write(*of, "cpu.weight", &weight.to_string())
            }
            CgroupOp::Max { of, max } => self.write(*of, "cpu.max", &cgroups::max(*max)),
            CgroupOp::Idle { of, idle } => {
                let idle = self.within(idle, 0, 1)?;
                self.write(*of, "cpu.idle", &idle.to_string())
            }
        }
    }

    fn enter(&mut self, target: &Target, to: u32, file: &str) -> Result<(), Failed> {
        let folder = &self.stage().cgroups[to as usize];
        self.change(target, |tid| put(folder, file, &tid.to_string()))
    }

    fn write(&self, of: u32, file: &str, text: &str) -> Result<(), Failed> {
        let folder = &self.stage().cgroups[of as usize];
        put(folder, file, text).map_err(|error| system(&error))
    }
}

/// Writes into a file of a cgroup.
pub(super) fn put(folder: &Path, file: &str, text: &str) -> std::io::Result<()> {
    fs::write(folder.join(file), text)
}
