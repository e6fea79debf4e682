//! Reads the operations that use something shared.

use super::{Failure, Parser};
use crate::names::{find, intern};
use crate::{DeviceOp, Expr, IndexedResource, Operation, Where};
use model::file::Problem;

impl Parser<'_> {
    /// A condition variable and a lock.
    pub fn condition_wait(&mut self) -> Result<DeviceOp, Failure> {
        let cond = self.condition()?;
        self.expect(",")?;
        let lock = self.lock_place()?;
        Ok(DeviceOp::CondWait { cond, lock })
    }

    /// A listening socket, and what the accepting task sees.
    pub fn connect(&mut self) -> Result<DeviceOp, Failure> {
        let to = self.listener()?;
        let value = self.given_or(Expr::Me)?;
        Ok(DeviceOp::Connect { to, value })
    }

    /// Arrivals, and which of them.
    pub fn done(&mut self) -> Result<DeviceOp, Failure> {
        let arrival = self.requests()?;
        let request = self.given_or(Expr::Got)?;
        Ok(DeviceOp::Done { arrival, request })
    }

    /// A comma and an expression, or what holds without.
    fn given_or(&mut self, otherwise: Expr) -> Result<Expr, Failure> {
        if self.accept(",") {
            self.expr()
        } else {
            Ok(otherwise)
        }
    }

    /// Bytes, and of how many.
    pub fn touch(&mut self) -> Result<DeviceOp, Failure> {
        self.need_memory("touch")?;
        let bytes = self.expr()?;
        let of = self.accept(",").then(|| self.expr()).transpose()?;
        Ok(DeviceOp::Touch { bytes, of })
    }

    /// `span_begin(name)` and `span_end(name)`, with or without a key.
    pub fn span_edge(&mut self, operation: &str) -> Result<Operation, Failure> {
        let span = intern(&self.label()?, &mut self.names.spans);
        let begins = operation == "span_begin";
        if !self.accept(",") {
            return Ok(if begins {
                Operation::SpanBegin(span)
            } else {
                Operation::SpanEnd(span)
            });
        }
        let key = self.expr()?;
        Ok(Operation::Device(if begins {
            DeviceOp::SpanBegin { span, key }
        } else {
            DeviceOp::SpanEnd { span, key }
        }))
    }

    /// A lock.
    pub fn lock_place(&mut self) -> Result<IndexedResource, Failure> {
        self.place("lock", |names| &names.locks)
    }

    /// A semaphore.
    pub fn semaphore(&mut self) -> Result<IndexedResource, Failure> {
        self.place("semaphore", |names| &names.semaphores)
    }

    /// A condition variable.
    pub fn condition(&mut self) -> Result<IndexedResource, Failure> {
        self.place("condition variable", |names| &names.conditions)
    }

    /// A listening socket.
    pub fn listener(&mut self) -> Result<IndexedResource, Failure> {
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
    pub fn transfer(&mut self) -> Result<(u32, Expr, Where), Failure> {
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
