//! What programs print for user space: two streams of each program, and the text of an iterator.

use std::collections::BTreeMap;

use crate::Errno;

/// Bytes that a stream keeps for its reader (`BPF_STREAM_MAX_CAPACITY`, kernel 6.18,
/// include/linux/bpf.h).
const CAPACITY: usize = 100_000;

/// What nobody has read yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    /// Standard and error output, by what the program is called ([`Streams::open`]).
    all: BTreeMap<u64, [Vec<u8>; 2]>,
    /// Whose streams those are of the program that begins with this function. Of programs that are
    /// equal, the last one's.
    by_function: BTreeMap<u32, u64>,
    /// The text of the iterator that is being read.
    pub(crate) iterator: Option<Vec<u8>>,
}

impl Streams {
    /// The program `name`, not 0, which begins with `function`, has streams from now on.
    pub(crate) fn open(&mut self, name: u64, function: u32) {
        self.all.insert(name, Default::default());
        self.by_function.insert(function, name);
    }

    /// What the program that begins with `function` is called.
    pub(crate) fn of_function(&self, function: u32) -> Option<u64> {
        self.by_function.get(&function).copied()
    }

    /// Whether no program has streams.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The program is gone.
    pub(crate) fn close(&mut self, name: u64) {
        self.all.remove(&name);
        self.by_function.retain(|_, other| *other != name);
    }

    /// Whether the program has streams.
    pub(crate) fn are_of(&self, name: u64) -> bool {
        self.all.contains_key(&name)
    }

    fn get(&mut self, name: u64, stream: u64) -> Result<&mut Vec<u8>, Errno> {
        let at = usize::try_from(stream.wrapping_sub(1)).ok();
        let streams = self.all.get_mut(&name).ok_or(Errno::ENOENT)?;
        at.and_then(|at| streams.get_mut(at)).ok_or(Errno::ENOENT)
    }

    /// Appends to stream 1 or 2 of a program.
    ///
    /// # Errors
    /// `ENOENT` if there is no such stream, `ENOSPC` if it is full.
    pub(crate) fn print(&mut self, name: u64, stream: u64, text: &[u8]) -> Result<(), Errno> {
        let kept = self.get(name, stream)?;
        if kept.len() + text.len() >= CAPACITY {
            return Err(Errno(28));
        }
        kept.extend_from_slice(text);
        Ok(())
    }

    /// Takes `len` bytes at most out of a stream.
    ///
    /// # Errors
    /// The errors of [`Streams::print`].
    pub(crate) fn read(&mut self, name: u64, stream: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let kept = self.get(name, stream)?;
        let len = len.min(kept.len());
        Ok(kept.drain(..len).collect())
    }
}
