//! A process that waits for the end of this one, however that comes, and then ends what is left of
//! the program and deletes its folder.
//!
//! The kernel ends the program's first process together with its supervisor, but not the processes
//! that the first one has made.
#![expect(unsafe_code, reason = "a fork that must not allocate")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use folder::OwnFolder;

use crate::sys;

/// The process. It ends when this is dropped, and leaves everything as it is.
#[derive(Debug)]
pub struct Watcher {
    pid: i32,
    /// Nobody else has it: it is closed when this process is no more.
    _alive: OwnedFd,
}

impl Watcher {
    /// Watches over the processes of the group of a process, by its number and its descriptor, and
    /// over `folder`.
    ///
    /// # Errors
    /// If the kernel makes no pipe or no process, or the folder's name is none.
    pub fn start(group: (i32, &OwnedFd), folder: &OwnFolder) -> io::Result<Self> {
        let group = (group.0, group.1.as_raw_fd());
        let name = folder.path().file_name().unwrap_or_default();
        let folder = Remains {
            itself: folder.as_fd().as_raw_fd(),
            parent: folder.parent().as_raw_fd(),
            name: CString::new(name.as_bytes())?,
        };
        let mut ends = [0; 2];
        // SAFETY: there is room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both are new, and nobody else has them.
        let [wait, alive] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: the child calls nothing that allocates or takes a lock.
        match unsafe { libc::fork() } {
            0 => watch(wait.as_raw_fd(), group, &folder),
            pid if pid > 0 => Ok(Self { pid, _alive: alive }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // SAFETY: calls without pointers on our own child, which is not reaped elsewhere.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// What is to be deleted: the folder's descriptor, that of the folder above it, and its name there.
struct Remains {
    itself: i32,
    parent: i32,
    name: CString,
}

/// The process: system calls and nothing else. It starts no other: the program may have left no
/// room for one.
fn watch(wait: i32, group: (i32, i32), folder: &Remains) -> ! {
    // SAFETY: calls on descriptors and signals of this process; none allocates.
    unsafe {
        // No signal that is meant for the parent's terminal or its group comes here.
        libc::setsid();
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        // Whoever ends processes by the name of the parent means the parent.
        libc::prctl(libc::PR_SET_NAME, c"loader-watcher".as_ptr());
        // Whoever reads what the parent writes must see its end, and so must other watchers. What
        // stays may have had one of the numbers that they get.
        libc::fchdir(folder.itself);
        let stay = [wait, folder.parent, group.1, folder.itself];
        let stay = stay.map(|it| libc::fcntl(it, libc::F_DUPFD, 4));
        for (to, from) in (0..).zip(stay) {
            if libc::dup2(from, to) < 0 {
                libc::_exit(1);
            }
        }
        libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0);
        let mut byte = 0_u8;
        while libc::read(0, (&raw mut byte).cast(), 1) != 0 {}
        sys::kill_group(2, group.0);
    }
    // SAFETY: both are open, as nobody closes them up to the end.
    let (parent, itself) = unsafe { (BorrowedFd::borrow_raw(1), BorrowedFd::borrow_raw(3)) };
    folder::delete(itself, parent, folder.name.as_c_str());
    // SAFETY: ends this process without running anything of the parent's.
    unsafe { libc::_exit(0) }
}
