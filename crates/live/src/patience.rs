//! Calls into the kernel that may not come back, made where this process need not wait for them.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// From one look at a process to the next.
const PAUSE: Duration = Duration::from_millis(5);

/// Removes an empty folder of the kernel's and waits for that at most `limit`. Whether it was
/// there does not matter.
///
/// The kernel may wait meanwhile until each task has been seen at rest, and one that never gets a
/// CPU never is. A thread that waits there cannot be killed and keeps its process from ending, so
/// that a process of its own does it.
///
/// # Errors
/// [`Error::Slow`] when it takes longer; it names the process that goes on. Otherwise when the
/// folder is there and cannot be removed.
pub fn remove_folder(path: &Path, limit: Duration) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    let name = CString::new(path.as_os_str().as_bytes());
    let name = name.map_err(|error| Error::file(path)(error.into()))?;
    let remove = || {
        // SAFETY: the call reads a string that lives.
        #[expect(unsafe_code, reason = "std allocates, which a forked child must not")]
        let result = unsafe { libc::rmdir(name.as_ptr()) };
        result
    };
    let pid = fork(remove).map_err(Error::file(path))?;
    match wait(pid, limit) {
        None => Err(Error::Slow {
            what: format!("removes {}", path.display()),
            pid,
            seconds: limit.as_secs(),
        }),
        Some(0 | libc::ENOENT) => Ok(()),
        Some(number) => Err(Error::file(path)(io::Error::from_raw_os_error(number))),
    }
}

/// Starts a process that makes a system call and ends with 0, or with the error's number. It has
/// none of this process's files and does not belong to its terminal.
///
/// `call` must be one of the calls that are safe between fork and exec.
fn fork(call: impl FnOnce() -> libc::c_int) -> io::Result<libc::pid_t> {
    // SAFETY: the child makes system calls only, takes no lock and allocates nothing, and ends
    // without coming back.
    #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // Whoever reads what this process prints need not wait for the child.
                libc::close_range(0, libc::c_uint::MAX, 0);
                libc::setsid();
                let number = match call() {
                    0 => 0,
                    _ => *libc::__errno_location(),
                };
                libc::_exit(number)
            }
            pid => Ok(pid),
        }
    }
}

/// The status with which a child ends within `limit`.
fn wait(pid: libc::pid_t, limit: Duration) -> Option<libc::c_int> {
    let end = Instant::now() + limit;
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a live value.
        #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            return Some(if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                libc::EINTR
            });
        }
        if Instant::now() > end {
            return None;
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_removed_and_a_missing_one_is_no_error() {
        let path = std::env::temp_dir().join(format!("runslice-patience-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let minute = Duration::from_mins(1);
        remove_folder(&path, minute).unwrap();
        assert!(!path.exists());
        remove_folder(&path, minute).unwrap();
        fs::create_dir_all(path.join("x")).unwrap();
        let error = remove_folder(&path, minute).unwrap_err().to_string();
        assert!(error.contains("not empty"), "{error}");
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_call_that_does_not_come_back_is_left_behind() {
        let pid = fork(|| {
            // SAFETY: the call takes nothing.
            #[expect(unsafe_code, reason = "a call that waits for ever")]
            unsafe {
                libc::pause()
            }
        });
        let pid = pid.unwrap();
        assert_eq!(wait(pid, Duration::from_millis(50)), None);
        let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        assert_eq!(files.count(), 0, "it holds none of our files");
        // SAFETY: the process is ours and was not waited for.
        #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
        unsafe {
            libc::kill(pid, libc::SIGKILL);
        }
        assert_eq!(wait(pid, Duration::from_mins(1)), Some(libc::EINTR));
    }
}
