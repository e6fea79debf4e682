//! Asking the processor for memory before it is needed.

/// Asks the processor to bring the line of its cache in which `value` begins. Nobody waits for it,
/// and nothing else happens; where we know no such instruction, nothing at all.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: It reads nothing that anybody can see and cannot fail, whatever the address; and
        // every processor of this architecture has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
