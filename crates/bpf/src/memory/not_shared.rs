//! Where maps cannot be shared with user space.

use std::fs::File;
use std::io;

use super::Memory;

/// Nothing is shared.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) arena: Option<()>,
}

impl Shared {
    pub(super) const fn is_unused(&self) -> bool {
        self.arena.is_none()
    }
}

fn unsupported() -> io::Error {
    let why = "maps can be shared with a program on Linux only";
    io::Error::new(io::ErrorKind::Unsupported, why)
}

impl Memory {
    pub(crate) fn share(&mut self, _: u64, _: u64, _: &File) -> io::Result<()> {
        Err(unsupported())
    }

    pub(crate) fn share_arena(&mut self, _: File) -> io::Result<()> {
        Err(unsupported())
    }

    pub(crate) fn adopt_touched(&mut self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn punch(&self, _: u64) -> bool {
        false
    }

    pub(super) fn unshare(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
