//! What programs hand to bpf(2).

use crate::state::{u32_at, u64_at};

/// The `union bpf_attr` of a call.
pub struct Attr {
    bytes: Vec<u8>,
    /// Where the program has it.
    pub at: u64,
}

impl Attr {
    /// `bytes` has its greatest length.
    pub const fn new(bytes: Vec<u8>, at: u64) -> Self {
        Self { bytes, at }
    }

    /// A number of 32 bits.
    pub fn u32(&self, at: usize) -> u32 {
        u32_at(&self.bytes, at)
    }

    /// A number of 64 bits.
    pub fn u64(&self, at: usize) -> u64 {
        u64_at(&self.bytes, at)
    }

    /// A name of up to 15 bytes.
    pub fn name(&self, at: usize) -> String {
        let bytes = &self.bytes[at..at + 16];
        let end = bytes.iter().position(|it| *it == 0).unwrap_or(15);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}
