//! Calls that a kernel would have a thread wait in.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use std::fs::File;
use std::io::{Error, IoSlice, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

fn errno(answer: i64) -> i32 {
    let errno = Error::last_os_error().raw_os_error().unwrap_or(-1);
    if answer < 0 { errno } else { 0 }
}

pub fn run() {
    locks();
    refused();
    counter();
    pipe();
    small_buffer();
}

/// A lock that another thread holds is waited for.
fn locks() {
    let open = || File::create("/tmp/lock").unwrap();
    let (first, second) = (open(), open());
    let lock = |file: &File, how| errno(unsafe { libc::flock(file.as_raw_fd(), how) }.into());
    assert_eq!(lock(&first, libc::LOCK_EX), 0);
    println!("locked {}", lock(&second, libc::LOCK_EX | libc::LOCK_NB));
    let began = Instant::now();
    let waits = thread::spawn(move || lock(&second, libc::LOCK_EX));
    thread::sleep(Duration::from_millis(5));
    println!("unlock {}", lock(&first, libc::LOCK_UN));
    println!("lock {}", waits.join().unwrap());
    println!("waited {}", began.elapsed() >= Duration::from_millis(5));
    let foreign = File::open("/etc/passwd").unwrap();
    println!("foreign {}", lock(&foreign, libc::LOCK_EX));
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    for (what, file, command, kind) in [
        ("foreign range", &foreign, libc::F_SETLK, libc::F_RDLCK),
        (
            "foreign open range",
            &foreign,
            libc::F_OFD_SETLK,
            libc::F_RDLCK,
        ),
        ("range", &first, libc::F_SETLK, libc::F_WRLCK),
        ("range that waits", &first, libc::F_SETLKW, libc::F_WRLCK),
        (
            "open range that waits",
            &first,
            libc::F_OFD_SETLKW,
            libc::F_WRLCK,
        ),
    ] {
        range.l_type = kind as libc::c_short;
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut range) };
        println!("{what} {}", errno(answer.into()));
    }
}

/// What would wait for more than is there.
fn refused() {
    let (one, mut other) = UnixStream::pair().unwrap();
    other.write_all(b"x").unwrap();
    let (fd, mut byte, none) = (one.as_raw_fd(), [0_u8; 8], std::ptr::null_mut::<u8>());
    unsafe {
        let all = libc::recv(fd, byte.as_mut_ptr().cast(), 8, libc::MSG_WAITALL);
        println!("all {}", errno(all as i64));
        let many = libc::syscall(libc::SYS_recvmmsg, fd, none, 2, 0, none);
        println!("many {}", errno(many));
        for option in [libc::SO_RCVLOWAT, libc::SO_LINGER, libc::SO_PEEK_OFF] {
            let set = libc::setsockopt(fd, libc::SOL_SOCKET, option, byte.as_ptr().cast(), 8);
            println!("option {}", errno(set.into()));
        }
        for nr in [libc::SYS_splice, libc::SYS_tee, libc::SYS_sendfile] {
            println!(
                "{nr} {}",
                errno(libc::syscall(nr, fd, none, fd, none, 1, 0))
            );
        }
        let flags = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
        let thread = libc::syscall(libc::SYS_clone, flags, none, none, none, 0);
        println!("own table {}", errno(thread));
    }
}

/// A counter that has no room for a number, though it has for one.
fn counter() {
    let mut file = unsafe { File::from_raw_fd(libc::eventfd(8, 0)) };
    let mut reader = file.try_clone().unwrap();
    let took = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        let mut bytes = [0; 8];
        reader.read_exact(&mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    });
    let began = Instant::now();
    file.write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
    println!(
        "counter {} {}",
        took.join().unwrap(),
        began.elapsed() >= Duration::from_millis(5)
    );
}

/// Far more at once than a pipe takes.
fn pipe() {
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let [mut reader, mut writer] = ends.map(|fd| unsafe { File::from_raw_fd(fd) });
    let part = vec![b'x'; 100_000];
    let writes = thread::spawn(move || {
        let mut parts = &mut [IoSlice::new(&part), IoSlice::new(&part)][..];
        while !parts.is_empty() {
            let written = writer.write_vectored(parts).unwrap();
            IoSlice::advance_slices(&mut parts, written);
        }
    });
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    writes.join().unwrap();
    println!("pipe {}", read.len());
    let (reader, mut writer) = UnixStream::pair().unwrap();
    drop(reader);
    println!(
        "broken {:?}",
        writer.write(b"x").unwrap_err().raw_os_error()
    );
}

/// A short message for a socket with a shorter buffer.
fn small_buffer() {
    let (mut reader, writer) = UnixStream::pair().unwrap();
    let size = 1_i32;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDBUF);
    unsafe {
        libc::setsockopt(
            writer.as_raw_fd(),
            level,
            option,
            (&raw const size).cast(),
            4,
        )
    };
    let sends = thread::spawn(move || {
        let (mut left, bytes) = (40_960, [0_u8; 4096]);
        while left > 0 {
            let len = left.min(4096);
            let (fd, at) = (writer.as_raw_fd(), bytes.as_ptr().cast());
            let sent = unsafe { libc::send(fd, at, len, 0) };
            assert!(sent > 0, "{}", Error::last_os_error());
            left -= sent as usize;
        }
    });
    thread::sleep(Duration::from_millis(5));
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    sends.join().unwrap();
    println!("small {}", read.len());
}
