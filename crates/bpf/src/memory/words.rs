//! Words of kernel objects that native code may store into by itself.
//!
//! A store into the read-only half is the host's to allow, and to ask it takes longer than all the
//! rest of a short callback. So the host may say beforehand which words programs may write
//! ([`crate::Memory::open_word`]). Native code then stores and notes the address; the host hears of
//! it ([`crate::Host::word_stored`]) before anything else of it is called, and at the end of the
//! call at the latest.

use std::mem::offset_of;

use super::layout::BASE;

/// Stores that are noted before the host must hear of them.
const NOTES: u8 = 16;

/// The words, and the stores that the host has not heard of.
#[derive(Debug, Default)]
pub(crate) struct OpenWords {
    /// For every 8 bytes of the lower half, as far as the last open word: 0 if it is not open.
    /// Otherwise [`NOTES`], so that one comparison also finds out whether there is room for a note.
    flags: Vec<u8>,
    /// Host address of the flags, and their number, for native code.
    flags_at: u64,
    count: u64,
    /// Notes that wait for the host.
    waiting: u64,
    notes: [u64; NOTES as usize],
}

impl Clone for OpenWords {
    fn clone(&self) -> Self {
        let mut flags = self.flags.clone();
        Self {
            flags_at: flags.as_mut_ptr().expose_provenance() as u64,
            flags,
            ..*self
        }
    }
}

impl OpenWords {
    pub(crate) const FLAGS_AT: usize = offset_of!(Self, flags_at);
    pub(crate) const COUNT: usize = offset_of!(Self, count);
    pub(crate) const WAITING: usize = offset_of!(Self, waiting);
    pub(crate) const NOTES_AT: usize = offset_of!(Self, notes);

    /// Opens the word at `address`, in the lower half and aligned.
    pub(crate) fn open(&mut self, address: u64) {
        let at = ((address - BASE) / 8) as usize;
        if at >= self.flags.len() {
            self.flags.resize((at + 1).next_power_of_two(), 0);
            self.flags_at = self.flags.as_mut_ptr().expose_provenance() as u64;
            self.count = self.flags.len() as u64;
        }
        self.flags[at] = NOTES;
    }

    /// Closes all words in a block of the lower half.
    pub(crate) fn close(&mut self, address: u64, len: u64) {
        let known = self.flags.len();
        let word = |at: u64| ((at / 8) as usize).min(known);
        let start = address - BASE;
        self.flags[word(start)..word((start + len).next_multiple_of(8))].fill(0);
    }

    /// How many addresses were stored into since the last time; from now on they are known.
    #[inline]
    pub(crate) const fn take(&mut self) -> usize {
        std::mem::replace(&mut self.waiting, 0) as usize
    }

    /// The address number `at`, in the order of the stores, below what [`OpenWords::take`] gave.
    #[inline]
    pub(crate) const fn note(&self, at: usize) -> u64 {
        self.notes[at]
    }

    /// Asks the processor for the flag of the word at `address`.
    #[inline]
    pub(crate) fn prefetch(&self, address: u64) {
        let at = (address.wrapping_sub(BASE) / 8) as usize;
        if let Some(flag) = self.flags.get(at) {
            allocator::prefetch(flag);
        }
    }

    /// Whether there is something to take.
    #[inline]
    pub(crate) const fn is_waiting(&self) -> bool {
        self.waiting != 0
    }
}
