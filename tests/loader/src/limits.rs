//! Cases that ask for more than a run allows.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use std::ffi::{CStr, CString};

use crate::cases::errno;

/// Runs the case of that name, if there is one.
pub fn run(case: &str) -> bool {
    match case {
        "nests" => nests(),
        "winds" => winds(),
        "bomb" => bomb(),
        "one after another" => one_after_another(),
        "stillborn one after another" => stillborn(),
        "calls for ever" => loop {
            unsafe { libc::getppid() };
        },
        "looks for ever" => looks_for_ever(),
        "fills memory" => fills(libc::MAP_PRIVATE),
        "fills shared memory" => fills(libc::MAP_SHARED),
        "closed folders" => closed_folders(),
        _ => return false,
    }
    true
}

/// Takes ever more memory, and writes into it.
fn fills(kind: i32) -> ! {
    const LEN: usize = 1 << 20;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    loop {
        unsafe {
            let flags = kind | libc::MAP_ANONYMOUS;
            let part = libc::mmap(std::ptr::null_mut(), LEN, rights, flags, -1, 0);
            if part == libc::MAP_FAILED {
                exit();
            }
            part.cast::<u8>().write_bytes(1, LEN);
            // So that the time that the test gives it does not decide.
            libc::getppid();
        }
    }
}

fn exit() -> ! {
    unsafe { libc::_exit(0) }
}

/// Makes a folder and goes there: the error of the first that is refused.
fn deeper() -> Result<(), i32> {
    let made = unsafe { libc::mkdir(c"d".as_ptr(), 0o755) };
    let gone = unsafe { libc::chdir(c"d".as_ptr()) };
    match (made, gone) {
        (0, 0) => Ok(()),
        (0, _) => Err(errno(gone.into())),
        _ => Err(errno(made.into())),
    }
}

/// Folders below one another, in the working folder and by a descriptor.
fn nests() {
    assert_eq!(unsafe { libc::chdir(c"/tmp".as_ptr()) }, 0);
    let mut folders = 0;
    let refused = loop {
        match deeper() {
            Ok(()) => folders += 1,
            Err(errno) => break errno,
        }
    };
    println!("{folders} folders, then {refused}");
    let at = unsafe { libc::open(c".".as_ptr(), libc::O_DIRECTORY) };
    println!("below {}", unsafe {
        errno(libc::mkdirat(at, c"e".as_ptr(), 0o755).into())
    });
    println!("above {}", unsafe {
        errno(libc::chdir(c"..".as_ptr()).into())
    });
    // One part of the tree, moved to the end of another one.
    unsafe {
        assert_eq!(libc::chdir(c"/tmp".as_ptr()), 0);
        let half = CString::new(vec!["d"; 60].join("/")).unwrap();
        assert_eq!(libc::rename(half.as_ptr(), c"half".as_ptr()), 0);
        let rest = CString::new(vec!["d"; 59].join("/")).unwrap();
        assert_eq!(libc::chdir(rest.as_ptr()), 0);
        assert_eq!((0..30).find_map(|_| deeper().err()), None);
        let tail = CString::new(format!("/tmp/half/{}", vec!["d"; 30].join("/"))).unwrap();
        let tail = libc::open(tail.as_ptr(), libc::O_DIRECTORY);
        assert_eq!(libc::rename(c"/tmp/half".as_ptr(), c"half".as_ptr()), 0);
        println!(
            "by a descriptor {}",
            errno(libc::mkdirat(tail, c"e".as_ptr(), 0o755).into())
        );
        println!("to it {}", errno(libc::fchdir(tail).into()));
    }
}

fn stat(path: &CStr) -> i32 {
    let mut facts = std::mem::MaybeUninit::<libc::stat>::uninit();
    unsafe { errno(libc::stat(path.as_ptr(), facts.as_mut_ptr()).into()) }
}

/// Paths of many parts, by themselves and by links.
fn winds() {
    unsafe {
        assert_eq!(libc::chdir(c"/tmp".as_ptr()), 0);
        assert_eq!(libc::mkdir(c"d".as_ptr(), 0o755), 0);
    }
    let turns = |count: usize| CString::new(["d/.."].repeat(count).join("/")).unwrap();
    println!("few {}", stat(&turns(100)));
    println!("many {}", stat(&turns(800)));
    assert_eq!(
        unsafe { libc::symlink(turns(200).as_ptr(), c"long".as_ptr()) },
        0
    );
    println!("links {}", stat(c"long/long"));
    println!("many links {}", stat(c"long/long/long"));
}

/// Every process makes processes.
fn bomb() {
    loop {
        unsafe { libc::syscall(libc::SYS_fork) };
    }
}

/// Never more than one child at a time.
fn one_after_another() {
    loop {
        let child = unsafe { libc::syscall(libc::SYS_fork) as i32 };
        if child == 0 {
            exit();
        }
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}

/// Children that die before they make a call.
fn stillborn() {
    loop {
        let child = unsafe { libc::syscall(libc::SYS_fork) as i32 };
        if child == 0 {
            unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
        }
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}

/// Long paths, without an end.
fn looks_for_ever() {
    let path = CString::new("/tmp/..".repeat(400)).unwrap();
    loop {
        stat(&path);
    }
}

/// Folders into which their owner may not look or write, with something in them; then it sleeps.
fn closed_folders() {
    use std::os::unix::fs::PermissionsExt as _;
    for mode in [0o000, 0o500, 0o300] {
        let folder = std::path::PathBuf::from(format!("/tmp/{mode:o}"));
        std::fs::create_dir_all(folder.join("below/below")).unwrap();
        std::fs::write(folder.join("below/file"), "x").unwrap();
        for closed in [folder.join("below"), folder] {
            std::fs::set_permissions(closed, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    std::fs::write("/tmp/ready", "").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1000));
}
