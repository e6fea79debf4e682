//! Cases about children: how they are born, run and end.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::cases::{errno, spin_silently};

/// Runs the case of that name, if there is one.
pub fn run(case: &str, rest: &[String]) -> bool {
    match case {
        "left behind" => left_behind(),
        "beside" => beside(rest),
        "one at a time" => one_at_a_time(),
        "stillborn" => stillborn(),
        "births that fail" => births_that_fail(),
        "births without room" => births_without_room(),
        "signals of children" => signals_of_children(),
        _ => return false,
    }
    true
}

/// `fork()` without what a C library does before and after it.
fn fork() -> i32 {
    unsafe { libc::syscall(libc::SYS_fork) as i32 }
}

fn exit() -> ! {
    unsafe { libc::_exit(0) }
}

/// How a child has ended, as `wait()` tells it.
fn status_of(child: i32) -> i32 {
    let mut status = -1;
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(ended, child);
    status
}

/// A child that makes no call at all, whose parent ends at once.
fn left_behind() {
    if fork() == 0 {
        spin_silently();
    }
    println!("its parent goes on");
}

/// `clone()` with each of the flags, on a stack of its own.
fn beside(flags: &[String]) {
    extern "C" fn child(_: *mut libc::c_void) -> i32 {
        spin_silently()
    }
    for text in flags {
        let flags = i32::from_str_radix(text, 16).unwrap();
        let stack = Box::leak(vec![0_u8; 1 << 16].into_boxed_slice());
        let top = unsafe { stack.as_mut_ptr().add(1 << 16) };
        let made = unsafe { libc::clone(child, top.cast(), flags, std::ptr::null_mut()) };
        println!("{text} {}", errno(made.into()));
    }
}

const MANY: u64 = 20_000_000;

fn count(to: &AtomicU64) {
    for _ in 0..MANY {
        // Not one addition of all: it shall last.
        let next = std::hint::black_box(to.load(Ordering::Relaxed)) + 1;
        to.store(next, Ordering::Relaxed);
    }
}

/// Makes children that count in memory which both have, before they make a call. Their maker looks
/// before it makes its next one.
fn one_at_a_time() {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, both, shared, -1, 0) };
    let number: &AtomicU64 = unsafe { &*page.cast() };
    let child = fork();
    if child == 0 {
        count(number);
        exit();
    }
    let seen = number.load(Ordering::Relaxed);
    println!("process {}", seen == MANY);
    status_of(child);

    extern "C" fn thread(number: *mut libc::c_void) -> i32 {
        count(unsafe { &*number.cast() });
        0
    }
    number.store(0, Ordering::Relaxed);
    let stack = Box::leak(vec![0_u8; 1 << 16].into_boxed_slice());
    let top = unsafe { stack.as_mut_ptr().add(1 << 16) };
    let flags = libc::CLONE_VM
        | libc::CLONE_THREAD
        | libc::CLONE_SIGHAND
        | libc::CLONE_FS
        | libc::CLONE_FILES;
    let made = unsafe { libc::clone(thread, top.cast(), flags, page) };
    let seen = number.load(Ordering::Relaxed);
    assert!(made > 0);
    println!("thread {}", seen == MANY);
}

/// A child that dies before its first call.
fn stillborn() {
    let child = fork();
    if child == 0 {
        unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
    }
    println!("died of {}", status_of(child) & 127);
}

/// Calls that the kernel refuses, one after another, and one that it does not.
fn births_that_fail() {
    let clone = |flags: i32| unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    // A table of signals is shared only together with memory.
    for _ in 0..3 {
        println!(
            "refused {}",
            errno(clone(libc::CLONE_SIGHAND | libc::SIGCHLD))
        );
    }
    let child = clone(libc::SIGCHLD) as i32;
    if child == 0 {
        exit();
    }
    println!("made {}", status_of(child));
}

/// Makes children that wait until one is refused. When they have gone, there is room for another.
fn births_without_room() {
    let mut children = Vec::new();
    let why = loop {
        match fork() {
            0 => loop {
                unsafe { libc::pause() };
            },
            child if child < 0 => break errno(child.into()),
            child => children.push(child),
        }
    };
    println!("{} made, then refused {why}", children.len());
    for child in children {
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        status_of(child);
    }
    match fork() {
        0 => exit(),
        child => println!("then made {}", status_of(child)),
    }
}

static SIGNALS: AtomicI32 = AtomicI32::new(0);

extern "C" fn count_signal(_: i32) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Makes a child while the signal of the one before it has not been taken.
fn signals_of_children() {
    let handler = count_signal as extern "C" fn(i32);
    unsafe { libc::signal(libc::SIGCHLD, handler as libc::sighandler_t) };
    let mut children = Vec::new();
    for _ in 0..20 {
        match fork() {
            0 => exit(),
            child => children.push(child),
        }
    }
    for child in &children {
        assert_eq!(status_of(*child), 0);
    }
    println!("{} ended", children.len());
    println!("told {}", SIGNALS.load(Ordering::Relaxed) > 0);
}
