//! This process while it holds a policy: signals become a question instead of a sudden end, and
//! its memory stays in memory.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

/// The last signal that came, or 0.
static CAME: AtomicI32 = AtomicI32::new(0);

/// The signals that people and services end programs with.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// From now on the signals that end programs are noted and [`signal`] tells of them. A second one
/// of the same kind ends the process, in case it does not listen any more.
pub fn catch_signals() {
    for number in SIGNALS {
        // SAFETY: a zeroed `sigaction` is a valid one; the handler only stores to an atomic, which
        // is safe in a signal handler; the pointers are to live values or null as allowed.
        #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as libc::sighandler_t;
            // Waits end with the signal, so that it is seen at once.
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(number, &raw const action, std::ptr::null_mut());
        }
    }
}

/// The signal that came since [`catch_signals`]; `None` so far.
#[must_use]
pub fn signal() -> Option<i32> {
    match CAME.load(Ordering::Relaxed) {
        0 => None,
        number => Some(number),
    }
}

/// Keeps all memory of this process in memory: whoever watches a scheduler must not wait for a
/// disk whose tasks that scheduler starves.
///
/// # Errors
/// When the limit on locked memory is too low.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: the call takes flags only and changes no memory that Rust knows of.
    #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
    let result = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process may do everything.
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: takes nothing.
    #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
    unsafe {
        libc::geteuid() == 0
    }
}

/// Asks a child process to end, as a terminal would.
pub fn ask_to_end(child: &std::process::Child) {
    let Ok(pid) = libc::pid_t::try_from(child.id()) else {
        return;
    };
    // SAFETY: the call takes numbers only; the child is not waited for yet, so that its number
    // belongs to it.
    #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
    unsafe {
        libc::kill(pid, libc::SIGTERM);
    }
}

extern "C" fn note(number: libc::c_int) {
    CAME.store(number, Ordering::Relaxed);
}
