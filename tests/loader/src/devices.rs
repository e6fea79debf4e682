//! Each call that changes a name or a file, on what is the computer's.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use std::ffi::CString;
use std::io::Error;

const HERE: i64 = libc::AT_FDCWD as i64;

fn say(path: &str, what: &str, answer: i64) {
    let errno = Error::last_os_error().raw_os_error().unwrap_or(-1);
    println!("{path} {what} {}", if answer < 0 { errno } else { 0 });
}

/// Says which error each call gets, for each path.
pub fn run(paths: &[String]) {
    for path in paths {
        change(path);
    }
}

fn change(path: &str) {
    let name = CString::new(path).unwrap();
    let (at, own) = (name.as_ptr() as i64, c"/tmp/own".as_ptr() as i64);
    let value = c"x".as_ptr() as i64;
    let create = i64::from(libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY);
    let removed = i64::from(libc::AT_REMOVEDIR);
    let calls: &[(&str, i64, [i64; 5])] = &[
        ("unlink", libc::SYS_unlink, [at, 0, 0, 0, 0]),
        ("unlinkat", libc::SYS_unlinkat, [HERE, at, 0, 0, 0]),
        ("removed", libc::SYS_unlinkat, [HERE, at, removed, 0, 0]),
        ("rmdir", libc::SYS_rmdir, [at, 0, 0, 0, 0]),
        ("mkdir", libc::SYS_mkdir, [at, 0o777, 0, 0, 0]),
        ("rename", libc::SYS_rename, [at, own, 0, 0, 0]),
        ("over", libc::SYS_rename, [own, at, 0, 0, 0]),
        ("renameat2", libc::SYS_renameat2, [HERE, at, HERE, own, 0]),
        ("link", libc::SYS_link, [at, own, 0, 0, 0]),
        ("linked", libc::SYS_link, [own, at, 0, 0, 0]),
        ("symlink", libc::SYS_symlink, [own, at, 0, 0, 0]),
        ("mknod", libc::SYS_mknod, [at, 0o100_600, 0, 0, 0]),
        ("mount", libc::SYS_mount, [own, at, value, 0x1000, 0]),
        ("chmod", libc::SYS_chmod, [at, 0, 0, 0, 0]),
        ("fchmodat", libc::SYS_fchmodat, [HERE, at, 0, 0, 0]),
        ("chown", libc::SYS_chown, [at, 1, 1, 0, 0]),
        ("lchown", libc::SYS_lchown, [at, 1, 1, 0, 0]),
        ("utimensat", libc::SYS_utimensat, [HERE, at, 0, 0, 0]),
        ("utimes", libc::SYS_utimes, [at, 0, 0, 0, 0]),
        ("setxattr", libc::SYS_setxattr, [at, value, value, 1, 0]),
        ("new", libc::SYS_open, [at, create, 0o600, 0, 0]),
        ("truncate", libc::SYS_truncate, [at, 0, 0, 0, 0]),
    ];
    std::fs::write("/tmp/own", "own").unwrap();
    for (what, nr, [a, b, c, d, e]) in calls {
        say(path, what, unsafe {
            libc::syscall(*nr, *a, *b, *c, *d, *e)
        });
    }
    let fd = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY) };
    if fd >= 0 {
        say(path, "fchmod", unsafe { libc::fchmod(fd, 0).into() });
        say(path, "fchown", unsafe { libc::fchown(fd, 1, 1).into() });
        say(path, "flock", unsafe {
            libc::flock(fd, libc::LOCK_SH).into()
        });
        let none = std::ptr::null();
        say(path, "futimens", unsafe { libc::futimens(fd, none).into() });
    }
}
