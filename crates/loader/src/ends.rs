//! The ends of threads and processes: what is known of them is brought up to date.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::user_space::{ThreadKernel, ProgramEnd, UserSpaceError};

use crate::deaths::PATIENCE;
use crate::exec;
use crate::output::last_lines;
use crate::processes::{interrupt, receiver};
use crate::state::Then;
use crate::supervisor::Supervisor;
use crate::sys::{self, InterceptedCall};

impl Supervisor {
    /// Keeps the status of the program itself, which the kernel tells only once.
    pub(crate) fn note_status(&mut self, process: usize, status: Option<i32>) {
        if process == 0 && self.status.is_none() {
            self.status = status;
        }
    }

    /// A thread ends by its own call.
    pub(crate) fn exit(
        &mut self,
        at: usize,
        call: &InterceptedCall,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<(), UserSpaceError> {
        drop(self.state.listener.go_on(call.id));
        self.thread_ended(at, kernel)
    }

    /// A thread has ended, or is about to, and its process with it if there is no other.
    pub(crate) fn thread_ended(
        &mut self,
        at: usize,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<(), UserSpaceError> {
        let process = self.state.threads[at].process;
        let mut each = self.state.threads.iter().enumerate();
        if !each.any(|(other, it)| other != at && it.lives && it.process == process) {
            return self.process_ended(process, at, kernel);
        }
        let began = Instant::now();
        while !self.state.is_gone(at) {
            if began.elapsed() > PATIENCE {
                return Err(self.hangs(at));
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        self.state.threads[at].lives = false;
        let mut others = self.state.threads.iter();
        let other = others.find(|it| it.lives && it.process == process).map(|it| it.tid);
        if let Some((address, is_cleared)) = self.state.threads[at].clear.take() {
            if let (false, Some(other)) = (is_cleared, other) {
                let _ = sys::write_memory(other, address, &[0; 4]);
            }
            // The host's kernel wakes nobody: all waits are held here.
            self.state.wake_futex(process, address, u32::MAX, 1);
        }
        exec::release(&mut self.state, &[at]);
        Ok(())
    }

    /// A process has ended, or is about to.
    pub(crate) fn process_ended(
        &mut self,
        process: usize,
        at: usize,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<(), UserSpaceError> {
        if !self.wait_for_end(process) {
            return Err(self.hangs(at));
        }
        self.bury(process, at);
        let threads = self.state.threads_of(process);
        exec::release(&mut self.state, &threads);
        if process == 0 {
            self.program_ended(at);
        } else if let Some(parent) = self.state.processes[process].parent {
            let children = self.state.parked(|it| matches!(it.then, Then::Child));
            for waits in children {
                if self.state.threads[waits].process == parent {
                    self.state.wake(waits, Then::Handle);
                }
            }
            if let Some(to) = receiver(&self.state, parent, libc::SIGCHLD) {
                interrupt(&mut self.state, to, libc::SIGCHLD);
            }
        }
        self.end_orphans(at, kernel);
        Ok(())
    }

    /// The first process has ended, and all that it has made ends with it.
    fn program_ended(&mut self, at: usize) {
        // All of them have its group, whose number is free once it is waited for.
        self.state.kill_all();
        let real = self.state.processes[0].real;
        // The last of its filter's users is gone a moment before its status is there.
        let began = Instant::now();
        while self.status.is_none() && began.elapsed() < PATIENCE {
            self.status = sys::ended(real);
        }
        let status = self.status.unwrap_or(255);
        self.status = Some(status);
        self.state.wait_for_nobody();
        for other in 1..self.state.processes.len() {
            self.bury(other, at);
        }
        self.end = Some(ProgramEnd {
            status,
            last_lines: last_lines(&self.state.output),
        });
    }

    /// Whether the process has ended, within [`PATIENCE`].
    fn wait_for_end(&mut self, process: usize) -> bool {
        let began = Instant::now();
        loop {
            let (called, ended) = self.state.look_out(Some(process), PATIENCE);
            if ended || began.elapsed() > PATIENCE {
                return ended;
            }
            if called && let Ok(Some(call)) = self.state.listener.receive() {
                // A thread of it that is being killed calls in vain. A parent in `vfork()` goes on
                // before its child has ended.
                let from = self.state.living(call.tid);
                if from.is_some_and(|from| self.state.threads[from].process != process) {
                    exec::take_in(&mut self.state, call);
                }
            }
        }
    }

    /// All threads of a process are dead.
    fn bury(&mut self, process: usize, at: usize) {
        let processes = &mut self.state.processes;
        // A program may make thousands of children one after another, and a process has a thousand
        // descriptors: one that has ended answers as any other that has. The first is the group's.
        let ended = processes.iter().skip(1).find(|it| !it.lives);
        if let Some(fd) = ended.map(|it| Arc::clone(&it.fd))
            && process > 0
        {
            processes[process].fd = fd;
        }
        processes[process].lives = false;
        for (other, thread) in self.state.threads.iter_mut().enumerate() {
            if thread.process == process && thread.lives {
                thread.lives = false;
                thread.parked = None;
                if other != at {
                    self.state.woken.push(other);
                }
            }
        }
    }
}
