//! Cases about threads and processes that die where their supervisor does something for them.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Runs the case of that name, if there is one.
pub fn run(case: &str, rest: &[String]) -> bool {
    match case {
        "all that is traced" => all_that_is_traced(),
        "signal to a maker" => signal_to_a_maker(rest),
        "signals in vfork" => signals_in_vfork(rest),
        "vforked child that kills itself" => vforked_child_that_kills_itself(),
        "thread that dies alone" => thread_that_dies_alone(rest),
        "closed interpreter" => closed_interpreter(),
        "many words" => many_words(),
        _ => return false,
    }
    true
}

const THREAD: i32 =
    libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD | libc::CLONE_FS | libc::CLONE_FILES;

/// A new thread, or a child, on a stack of its own: its number.
fn begin(child: extern "C" fn(*mut libc::c_void) -> i32, flags: i32) -> i32 {
    let stack = Box::leak(vec![0_u8; 1 << 16].into_boxed_slice());
    let top = unsafe { stack.as_mut_ptr().add(1 << 16) };
    unsafe { libc::clone(child, top.cast(), flags, std::ptr::null_mut()) }
}

/// The first word of a `struct timespec` that is a millisecond, for a child that shares memory.
static MILLISECOND: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

fn sleep() {
    unsafe { libc::nanosleep(&raw const MILLISECOND, std::ptr::null_mut()) };
}

/// Each way to make a thread or a process, and to execute another program.
fn all_that_is_traced() {
    extern "C" fn ends(_: *mut libc::c_void) -> i32 {
        0
    }
    extern "C" fn executes(_: *mut libc::c_void) -> i32 {
        let words = [
            c"/proc/self/exe".as_ptr(),
            c"name".as_ptr(),
            std::ptr::null(),
        ];
        unsafe { libc::execv(words[0], words.as_ptr()) };
        1
    }
    begin(ends, THREAD);
    let child = unsafe { libc::syscall(libc::SYS_fork) } as i32;
    if child == 0 {
        unsafe { libc::_exit(0) }
    }
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    let vfork = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let child = begin(executes, vfork);
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    executes(std::ptr::null_mut());
}

static CALLS: AtomicU32 = AtomicU32::new(0);

/// Ends itself, by its first thread, while another one is about to make threads.
fn signal_to_a_maker(args: &[String]) {
    extern "C" fn nothing(_: *mut libc::c_void) -> i32 {
        0
    }
    extern "C" fn maker(_: *mut libc::c_void) -> i32 {
        loop {
            begin(nothing, THREAD);
        }
    }
    let calls: u32 = args[0].parse().unwrap();
    let maker = begin(maker, THREAD);
    while CALLS.fetch_add(1, Ordering::Relaxed) < calls {
        unsafe { libc::getppid() };
    }
    let own = unsafe { libc::getpid() };
    unsafe { libc::syscall(libc::SYS_tgkill, own, maker, libc::SIGUSR1) };
    loop {
        sleep();
    }
}

static SIGNALS: AtomicI32 = AtomicI32::new(0);

/// Signals for a thread that waits in `vfork()`, with a handler or without.
fn signals_in_vfork(args: &[String]) {
    extern "C" fn count(_: i32) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn sends(_: *mut libc::c_void) -> i32 {
        sleep();
        let own = unsafe { libc::getpid() };
        for signal in [libc::SIGUSR2, libc::SIGUSR1, libc::SIGUSR2] {
            unsafe { libc::syscall(libc::SYS_tgkill, own, own, signal) };
        }
        0
    }
    extern "C" fn waits(_: *mut libc::c_void) -> i32 {
        (0..3).for_each(|_| sleep());
        SIGNALS.store(SIGNALS.load(Ordering::Relaxed) * 100, Ordering::Relaxed);
        0
    }
    if args[0] == "handled" {
        for signal in [libc::SIGUSR1, libc::SIGUSR2] {
            let handler = count as extern "C" fn(i32);
            unsafe { libc::signal(signal, handler as libc::sighandler_t) };
        }
    }
    begin(sends, THREAD);
    let vfork = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let child = begin(waits, vfork);
    sleep();
    let mut status = -1;
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    let signals = SIGNALS.load(Ordering::Relaxed);
    println!("{} {status} {signals} signals", ended == child);
}

/// Its maker goes on before anybody can have noticed the end.
fn vforked_child_that_kills_itself() {
    extern "C" fn child(_: *mut libc::c_void) -> i32 {
        unsafe { libc::syscall(libc::SYS_tkill, libc::gettid(), libc::SIGUSR1) as i32 }
    }
    for _ in 0..20 {
        let vfork = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let child = begin(child, vfork);
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    println!("its maker goes on");
}

/// Sets a filter that ends the thread at `getpgrp()`.
fn forbid() {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_getpgrp as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_KILL_THREAD,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    let done = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// A thread that a filter of its own ends: at its first call, or at a later one.
fn thread_that_dies_alone(args: &[String]) {
    extern "C" fn at_once(_: *mut libc::c_void) -> i32 {
        unsafe { libc::getpgrp() };
        unreachable!();
    }
    extern "C" fn later(_: *mut libc::c_void) -> i32 {
        sleep();
        unsafe { libc::getpgrp() };
        unreachable!();
    }
    forbid();
    let thread = if args[0] == "at once" { at_once } else { later };
    assert!(begin(thread, THREAD) > 0);
    (0..3).for_each(|_| sleep());
    println!("the others go on");
}

/// Executes a copy of this program whose interpreter may be executed, but not read.
fn closed_interpreter() {
    let mut program = fs::read("/proc/self/exe").unwrap();
    let found = |of: &[u8], word: &[u8]| of.windows(word.len()).position(|it| it == word);
    let begin = found(&program, b"/lib64/ld-linux").expect("an interpreter");
    let len = found(&program[begin..], &[0]).unwrap();
    let path = String::from_utf8(program[begin..begin + len].to_vec()).unwrap();
    let [interpreter, copy] = ["/tmp/i", "/tmp/p"];
    fs::copy(path, interpreter).unwrap();
    let file = File::open(interpreter).unwrap();
    // It is open in the program that executes it, too.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    assert!(name.len() <= len);
    program[begin..begin + len].fill(0);
    program[begin..begin + name.len()].copy_from_slice(name.as_bytes());
    fs::write(copy, program).unwrap();
    fs::set_permissions(copy, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(interpreter, fs::Permissions::from_mode(0o111)).unwrap();
    let child = unsafe { libc::syscall(libc::SYS_fork) } as i32;
    if child == 0 {
        let copy = CString::new(copy).unwrap();
        let words = [copy.as_ptr(), c"name".as_ptr(), std::ptr::null()];
        unsafe { libc::execv(words[0], words.as_ptr()) };
        println!("{}", std::io::Error::last_os_error());
        unsafe { libc::_exit(1) }
    }
    let mut status = 0;
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    println!("status {status}");
}

/// Executes itself with more than two megabytes of pointers to words.
fn many_words() {
    let mut words = vec![c"".as_ptr(); 300_000];
    words[1] = c"name".as_ptr();
    words.push(std::ptr::null());
    unsafe { libc::execv(c"/proc/self/exe".as_ptr(), words.as_ptr()) };
    println!("{}", std::io::Error::last_os_error());
}
