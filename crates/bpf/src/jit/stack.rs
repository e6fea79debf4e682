//! How much of the thread's native stack is left.

use std::mem::MaybeUninit;

use crate::frame::MAX_FRAMES;

/// Bytes of native stack that a frame may take.
pub(super) const MAX_FRAME: u32 = 2048;

/// Frames that native code may have on the stack at a time: eight functions deep in each of the
/// outermost call and the eight that can nest in it.
const FRAMES: usize = MAX_FRAMES * 9;

/// Left for host functions, which nest as deep as programs do, bytes.
const FOR_HOST_FUNCTIONS: usize = 256 << 10;

/// What native code and host functions may need together, bytes.
const NEEDED: usize = FRAMES * MAX_FRAME as usize + FOR_HOST_FUNCTIONS;

/// The part of a thread's stack from which native code may be entered. It is remembered, because
/// asking the system takes long; another thread is noticed by its other addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    lowest: usize,
    size: usize,
}

impl Room {
    /// Whether the current frame lies in it.
    #[inline]
    pub(super) fn is_here(&mut self) -> bool {
        let local = MaybeUninit::<u8>::uninit();
        let here = local.as_ptr().addr();
        if here.wrapping_sub(self.lowest) < self.size {
            return true;
        }
        *self = Self::find().unwrap_or_default();
        here.wrapping_sub(self.lowest) < self.size
    }

    /// Asks the system. If it does not know, there is no room.
    #[cold]
    fn find() -> Option<Self> {
        let (lowest, size) = own_stack()?;
        Some(Self {
            lowest: lowest + NEEDED,
            size: size.saturating_sub(NEEDED),
        })
    }
}

/// The lowest usable address of this thread's stack, and its size in bytes.
#[cfg(target_os = "linux")]
fn own_stack() -> Option<(usize, usize)> {
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
        found.then(|| (lowest.addr() + guard, size.saturating_sub(guard)))
    }
}

#[cfg(not(target_os = "linux"))]
fn own_stack() -> Option<(usize, usize)> {
    None
}
