//! Frames: how large and how many, what a call puts aside, and where a program stopped.

use crate::stop::Stop;

/// Bytes of a function's stack frame (`MAX_BPF_STACK`, Linux 6.18, include/linux/filter.h).
pub(crate) const FRAME_BYTES: u64 = 512;

/// Functions on top of each other (`MAX_CALL_FRAMES`, Linux 6.18, `include/linux/bpf_verifier.h`).
pub(crate) const MAX_FRAMES: usize = 8;

/// What `may_goto` allows a frame (`BPF_MAX_LOOPS`, Linux 6.18, include/linux/bpf.h).
pub(crate) const MAY_GOTO_TURNS: u32 = 8 << 20;

/// What a call puts aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) kept: [u64; 4],
    pub(crate) back: usize,
    pub(crate) may_goto: u32,
}

/// Why and at which operation a program stopped.
#[derive(Debug)]
pub(crate) struct Trap {
    pub(crate) stop: Stop,
    pub(crate) op: usize,
}
