//! Reads the operations that use something shared.

use super::{Failure, Parser};
use crate::names::{find, intern};
use crate::{DeviceOp, Expr, Operation, Place, Where};
use model::file::Problem;

impl Parser<'_> {
    /// The arguments of the operation `name`, if it is one of these.
    pub fn device(&mut self, name: &str) -> Result<Option<DeviceOp>, Failure> {
        Ok(Some(match name {
            "lock_shared" => DeviceOp::LockShared(self.lock_place()?),
            "unlock_all" => DeviceOp::UnlockAll(self.keyed_lock()?),
            "sem_wait" => DeviceOp::SemWait(self.semaphore()?),
            "sem_post" => DeviceOp::SemPost(self.semaphore()?),
            "wait" => {
                let cond = self.condition()?;
                self.expect(",")?;
                let lock = self.lock_place()?;
                DeviceOp::CondWait { cond, lock }
            }
            "signal" => DeviceOp::Signal(self.condition()?),
            "broadcast" => DeviceOp::Broadcast(self.condition()?),
            "connect" => {
                let to = self.listener()?;
                let value = if self.accept(",") {
                    self.expr()?
                } else {
                    Expr::Me
                };
                let slot = self.hidden();
                DeviceOp::Connect { to, value, slot }
            }
            "accept" => DeviceOp::Accept(self.listener()?),
            "done" => {
                let arrival = self.requests()?;
                let request = if self.accept(",") {
                    self.expr()?
                } else {
                    Expr::Got
                };
                DeviceOp::Done { arrival, request }
            }
            "read" => {
                let (disk, bytes, at) = self.transfer()?;
                DeviceOp::Read { disk, bytes, at }
            }
            "write" => {
                let (disk, bytes, at) = self.transfer()?;
                DeviceOp::Write { disk, bytes, at }
            }
            "fsync" => DeviceOp::Sync(self.disk()?),
            "writeback" => DeviceOp::WriteBack(self.disk()?),
            "touch" => {
                self.need_memory("touch")?;
                let bytes = self.expr()?;
                let of = self.accept(",").then(|| self.expr()).transpose()?;
                let slots = [self.hidden(), self.hidden()];
                DeviceOp::Touch { bytes, of, slots }
            }
            _ => return Ok(None),
        }))
    }

    /// `span_begin(name)` and `span_end(name)`, with or without a key.
    pub fn span_edge(&mut self, operation: &str) -> Result<Operation, Failure> {
        let span = intern(&self.label()?, &mut self.names.spans);
        let begins = operation == "span_begin";
        if !self.accept(",") {
            return Ok(match begins {
                true => Operation::SpanBegin(span),
                false => Operation::SpanEnd(span),
            });
        }
        let key = self.expr()?;
        Ok(Operation::Device(match begins {
            true => DeviceOp::SpanBegin { span, key },
            false => DeviceOp::SpanEnd { span, key },
        }))
    }

    fn lock_place(&mut self) -> Result<Place, Failure> {
        self.place("lock", |names| &names.locks)
    }

    fn semaphore(&mut self) -> Result<Place, Failure> {
        self.place("semaphore", |names| &names.semaphores)
    }

    fn condition(&mut self) -> Result<Place, Failure> {
        self.place("condition variable", |names| &names.conditions)
    }

    fn listener(&mut self) -> Result<Place, Failure> {
        self.place("listening socket", |names| &names.listeners)
    }

    /// The name of a keyed lock.
    pub fn keyed_lock(&mut self) -> Result<u32, Failure> {
        let (name, at) = self.name("the name of a keyed lock")?;
        let locks = self.names.locks.iter().map(|(name, _)| name.as_str());
        let of = find("lock", &name, locks).map_err(|problem| (problem, at))?;
        if self.names.keyed[of as usize] {
            return Ok(of);
        }
        let expected = "a lock of the kind \"keyed\"";
        Err((Problem::unexpected(format!("`{name}`"), expected), at))
    }

    /// A disk, bytes, and where: `D, 16KiB, rand`.
    fn transfer(&mut self) -> Result<(u32, Expr, Where), Failure> {
        let disk = self.disk()?;
        self.expect(",")?;
        let bytes = self.expr()?;
        if !self.accept(",") {
            return Ok((disk, bytes, Where::Next));
        }
        let at = match self.word(&["seq", "rand", "at"])?.as_str() {
            "seq" => Where::Next,
            "rand" => Where::Anywhere,
            _ => {
                self.expect("(")?;
                let at = self.deeper(Self::expr)?;
                self.expect(")")?;
                Where::At(at)
            }
        };
        Ok((disk, bytes, at))
    }

    /// The name of a disk.
    pub fn disk(&mut self) -> Result<u32, Failure> {
        let (name, at) = self.name("the name of a disk")?;
        let disks = self.names.disks.iter().map(String::as_str);
        find("disk", &name, disks).map_err(|problem| (problem, at))
    }

    /// `operation` makes sense only where memory is limited.
    pub fn need_memory(&self, operation: &str) -> Result<(), Failure> {
        if self.names.has_memory {
            return Ok(());
        }
        let expected = "a table [mem] that limits memory";
        Err((
            Problem::unexpected(format!("`{operation}` without limits"), expected),
            self.offset(),
        ))
    }

    /// The name of arrivals.
    pub fn requests(&mut self) -> Result<u32, Failure> {
        let (name, at) = self.name("the name of an arrival")?;
        let requests = self.names.requests.iter().map(String::as_str);
        find("arrival", &name, requests).map_err(|problem| (problem, at))
    }
}
