//! What a program asks of memory and Rust has no safe name for.

#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "an instruction that Rust has no safe name for")
)]
mod cache;
#[expect(
    unsafe_code,
    reason = "Rust offers no safe way to notice a failed allocation"
)]
mod exhaustion;

pub use cache::prefetch;
pub use exhaustion::{CheckedAllocator, or_error};
