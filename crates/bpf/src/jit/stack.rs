//! How much of the thread's native stack is left.

use std::cell::Cell;
use std::mem::MaybeUninit;

/// Left for host functions, which nest as deep as programs do, bytes.
pub(super) const FOR_HOST_FUNCTIONS: usize = 256 << 10;

thread_local! {
    /// Lowest usable address of this thread's stack; 0 before it was asked for.
    static LOWEST: Cell<usize> = const { Cell::new(0) };
}

/// Whether `bytes` more fit onto this thread's stack.
pub(super) fn has_room(bytes: usize) -> bool {
    let here = 0_u8;
    let here = std::ptr::from_ref(&here).addr();
    let lowest = match LOWEST.get() {
        0 => find_lowest(),
        lowest => lowest,
    };
    here.saturating_sub(lowest) >= bytes
}

/// Asks the system. If it does not know, there is no room: `usize::MAX`.
#[cold]
fn find_lowest() -> usize {
    let lowest = lowest_address().unwrap_or(usize::MAX);
    LOWEST.set(lowest);
    lowest
}

#[cfg(target_os = "linux")]
fn lowest_address() -> Option<usize> {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: The first call initialises the attributes if it gives 0; the others read them and
    // free what they own. The pointers are to locals.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let mut lowest = std::ptr::null_mut();
        let (mut size, mut guard) = (0, 0);
        let attributes = attributes.as_mut_ptr();
        let found = libc::pthread_attr_getstack(attributes, &raw mut lowest, &raw mut size) == 0
            && libc::pthread_attr_getguardsize(attributes, &raw mut guard) == 0;
        libc::pthread_attr_destroy(attributes);
        // Some C libraries count the guard as part of the stack, so it is left out anyway.
        found.then(|| lowest.addr() + guard)
    }
}

#[cfg(not(target_os = "linux"))]
fn lowest_address() -> Option<usize> {
    None
}
