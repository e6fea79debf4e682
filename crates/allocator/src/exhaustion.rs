//! What happens when the system gives no more memory: a message and a status, not an abort.
//!
//! Rust ends a process by `SIGABRT` when an allocation fails, with a message that names no cause.
//! An allocator that looks at the result is the only stable way to end it otherwise.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;

/// The system's allocator for a whole program. Large blocks lie in large pages, where the system
/// has such. When memory is exhausted it says so on standard error and ends the process, except
/// below [`or_error`].
#[derive(Clone, Copy, Debug)]
pub struct CheckedAllocator {
    /// The program's name, before the message.
    pub program: &'static str,
    /// The exit status.
    pub status: i32,
}

thread_local! {
    /// Whether this thread's failed allocations are results, see [`or_error`].
    static OR_ERROR: Cell<bool> = const { Cell::new(false) };
}

/// Does `work`, in which an allocation that fails is an error for who asked (`try_reserve()` and
/// `read_to_end()` hand it on), so that its message can say what was too large. Others abort there.
pub fn or_error<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            OR_ERROR.set(self.0);
        }
    }
    let _restore = Restore(OR_ERROR.replace(true));
    work()
}

impl CheckedAllocator {
    #[inline]
    fn checked(&self, address: *mut u8, bytes: usize) -> *mut u8 {
        ask_for_large_pages(address, bytes);
        if address.is_null() && !OR_ERROR.get() {
            self.end(bytes);
        }
        address
    }

    /// Says that `bytes` more were refused, and ends the process. Allocates nothing.
    #[cold]
    fn end(&self, bytes: usize) -> ! {
        let mut room = [0; 512];
        let mut rest = room.as_mut_slice();
        // A message that is cut short is better than none.
        let _ = writeln!(
            rest,
            "{}: out of memory: the system refused {bytes} bytes more (see `ulimit -v`). Ask for \
             less: fewer tasks, CPUs or runs, a smaller --jobs, a smaller file. Files that were \
             being written are incomplete.",
            self.program
        );
        let left = rest.len();
        let text = &room[..room.len() - left];
        end_with(text, self.status)
    }
}

/// Writes `text` to standard error and ends the process with `status`.
#[cfg(unix)]
fn end_with(text: &[u8], status: i32) -> ! {
    // SAFETY: `text` can be read for all of its length. `_exit()` takes any number and never
    // comes back; it runs nothing that could ask for memory.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(status)
    }
}

/// Writes `text` to standard error, where there is one, and ends the process with `status`. A
/// browser stops the instance.
#[cfg(not(unix))]
fn end_with(text: &[u8], status: i32) -> ! {
    let _ = std::io::stderr().write_all(text);
    std::process::exit(status)
}

/// Blocks of at least so many bytes are asked for in large pages: a processor finds some 3,000
/// pages of the usual size, 12 MiB, without a walk through page tables. What is smaller gains
/// nothing, and a large page takes long to fill with zeros.
#[cfg(target_os = "linux")]
const LARGE: usize = 16 << 20;

/// Asks the system for large pages where `block` of `bytes` bytes lies, which is new or has grown.
/// A system that has none changes nothing but the time that a run takes.
#[inline]
fn ask_for_large_pages(block: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= LARGE && !block.is_null() {
        ask_for_some(block, bytes);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (block, bytes);
}

#[cfg(target_os = "linux")]
#[cold]
fn ask_for_some(block: *mut u8, bytes: usize) {
    // No system has smaller ones. An address that fits no page is refused.
    const PAGE: usize = 4096;
    // Whole pages, also those that belong to the block in part: the system moves a mapping that
    // grows only if all of it has the same properties.
    let lead = block.addr() % PAGE;
    let len = (lead + bytes).next_multiple_of(PAGE);
    // SAFETY: This advice changes nothing that anybody can read in memory, whoever it belongs to.
    unsafe { libc::madvise(block.wrapping_sub(lead).cast(), len, libc::MADV_HUGEPAGE) };
}

// SAFETY: Every call goes to the system's allocator as it came, and its result comes back as it is.
// `OR_ERROR` needs neither memory nor a destructor.
unsafe impl GlobalAlloc for CheckedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's promise.
        self.checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's promise.
        self.checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: The caller's promise.
        self.checked(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: The caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKED: CheckedAllocator = CheckedAllocator {
        program: "x",
        status: 1,
    };

    #[test]
    fn a_failed_allocation_is_a_result_where_it_was_asked_for() {
        let too_large = Layout::from_size_align(isize::MAX as usize & !4095, 4096).unwrap();
        // SAFETY: Its size is not 0, and nothing comes of it.
        let address = or_error(|| unsafe { CHECKED.alloc(too_large) });
        assert!(address.is_null());
        assert!(!OR_ERROR.get(), "only inside");
    }
}
