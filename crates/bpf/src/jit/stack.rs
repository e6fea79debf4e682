//! How much of the thread's native stack is left.

use std::cell::Cell;
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
        self.has(here) || self.has_on_this_thread(here)
    }

    const fn has(&self, here: usize) -> bool {
        here.wrapping_sub(self.lowest) < self.size
    }

    #[cold]
    #[inline(never)]
    fn has_on_this_thread(&mut self, here: usize) -> bool {
        *self = Self::of_this_thread();
        self.has(here)
    }

    /// Asks the system once a thread: of the main thread the C library reads `/proc/self/maps`,
    /// which was 8 % of what a process took for runs of 200 ms. If the system does not know, there
    /// is no room.
    #[cold]
    fn of_this_thread() -> Self {
        thread_local! {
            static FOUND: Cell<Option<Room>> = const { Cell::new(None) };
        }
        FOUND.get().unwrap_or_else(|| {
            let stack = own_stack();
            let found = stack.map_or_else(Self::default, |(lowest, size)| Self {
                lowest: lowest + NEEDED,
                size: size.saturating_sub(NEEDED),
            });
            FOUND.set(Some(found));
            found
        })
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread has asked the system.
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// The lowest usable address of this thread's stack, and its size in bytes.
#[cfg(target_os = "linux")]
fn own_stack() -> Option<(usize, usize)> {
    #[cfg(test)]
    ASKED.set(ASKED.get() + 1);
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn enter(mut room: Room) -> (Room, u32) {
        assert!(room.is_here());
        (room, ASKED.get())
    }

    #[test]
    fn the_system_is_asked_once_a_thread_however_many_machines_there_are() {
        let (here, asked) = enter(Room::default());
        assert_eq!(asked, 1);
        assert_eq!(enter(Room::default()).1, 1);
        // A machine that another thread goes on with.
        let (there, asked) = std::thread::spawn(move || enter(here)).join().unwrap();
        assert_eq!(asked, 1);
        assert_ne!(there.lowest, here.lowest);
        assert_eq!(enter(there).1, 1);
    }
}
