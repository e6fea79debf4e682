//! This process while it holds a policy: signals become a question instead of a sudden end, and
//! its memory stays in memory.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::process::{Pid, Signal, geteuid, kill_process};

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
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Takes back [`lock_memory`]. Locked, the address space that a simulated machine only reserves
/// would be given pages at once, and a small guest would run out of memory.
///
/// # Errors
/// What the system says.
pub fn unlock_memory() -> io::Result<()> {
    Ok(munlockall()?)
}

/// Lets the command ask for the scheduling class of policies before it starts: with it and with
/// all that it starts, so that a policy which has only such tasks has them.
pub fn ask_for_policy(command: &mut std::process::Command) {
    /// `SCHED_EXT` (include/uapi/linux/sched.h, kernel 6.18).
    const SCHED_EXT: libc::c_int = 7;
    before_exec(command, || {
        // SAFETY: a zeroed `sched_param` is a valid one; the call reads it and keeps no pointer,
        // and is safe between fork and exec.
        #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
        unsafe {
            let param: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, SCHED_EXT, &raw const param)
        }
    });
}

/// Lets the command die when the thread that starts it does, however that ends.
pub fn die_with_this_thread(command: &mut std::process::Command) {
    before_exec(command, || {
        // SAFETY: the call takes numbers only, and is safe between fork and exec.
        #[expect(unsafe_code, reason = "rustix sets it for the calling process only")]
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
        }
    });
}

/// Has the command's process make one system call before it executes its program; `call` makes no
/// other and allocates nothing. Its failure is that of the start.
fn before_exec(command: &mut std::process::Command, call: fn() -> libc::c_int) {
    use std::os::unix::process::CommandExt as _;

    let ask = move || match call() {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the closure makes one system call and allocates nothing, as is demanded of what
    // runs in a forked child.
    #[expect(unsafe_code, reason = "std has no other way to act before exec")]
    unsafe {
        command.pre_exec(ask);
    }
}

/// Asks another process to end, as a terminal would.
///
/// # Errors
/// When there is no such process, or this one may not.
pub fn ask_pid_to_end(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(kill_process(
        pid.ok_or(io::ErrorKind::InvalidInput)?,
        Signal::TERM,
    )?)
}

/// Whether this process may do everything.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

extern "C" fn note(number: libc::c_int) {
    CAME.store(number, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kilobytes of this process's memory that are locked.
    fn locked_kb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }

    #[test]
    fn memory_that_was_unlocked_again_is_not_given_pages_before_it_is_used() {
        if lock_memory().is_err() {
            // The limit of this user is too low, and then nothing is locked.
            assert_eq!(locked_kb(), 0);
            return;
        }
        assert!(locked_kb() > 0);
        unlock_memory().unwrap();
        let reserved: Vec<u8> = Vec::with_capacity(64 << 20);
        assert_eq!(locked_kb(), 0, "{:p}", reserved.as_ptr());
    }
}
