//! A program that makes system calls at random, from a seed: with paths, descriptors, flags and
//! numbers of processes that exist and that it must not reach; with threads, children and links.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls of a child, of each that its maker has left.
const SHARE: u64 = 8;
/// Children of children.
const DEPTH_MAX: u32 = 2;

/// What a call gets in place of one of its arguments.
#[derive(Clone, Copy)]
enum Arg {
    /// A path.
    Path,
    /// A path that a link leads to: the program's own, or of the folder that must not change.
    Target,
    /// A descriptor.
    Fd,
    /// Some of the lowest 24 bits.
    Flags,
    /// A length of at most 64 KiB.
    Len,
    /// Random words, in memory that may be written.
    Words,
    /// An address of a socket.
    Address,
    /// Its length.
    AddressLen,
    /// A `struct msghdr` with a name.
    Message,
    /// A number of a process: its own, its parent's, a foreign one's, or none.
    Pid,
    /// A signal that does not stop what it is sent to.
    Signal,
    /// A small number.
    Small,
    /// This number.
    Just(u64),
}

use Arg::{
    Address, AddressLen, Fd, Flags, Just, Len, Message, Path, Pid, Signal, Small, Target, Words,
};

const HERE: Arg = Just(-100_i64 as u64);

/// Calls with arguments that mean something.
const CALLS: &[(i64, &[Arg])] = &[
    (libc::SYS_open, &[Path, Flags, Just(0o644)]),
    (libc::SYS_openat, &[HERE, Path, Flags, Just(0o600)]),
    (libc::SYS_openat, &[Fd, Path, Flags, Just(0o600)]),
    (libc::SYS_creat, &[Path, Just(0o755)]),
    (libc::SYS_rename, &[Path, Path]),
    (libc::SYS_renameat2, &[HERE, Path, HERE, Path, Small]),
    (libc::SYS_symlink, &[Target, Path]),
    (libc::SYS_symlinkat, &[Target, Fd, Path]),
    (libc::SYS_link, &[Path, Path]),
    (libc::SYS_mkdir, &[Path, Just(0o755)]),
    (libc::SYS_rmdir, &[Path]),
    (libc::SYS_unlink, &[Path]),
    (libc::SYS_unlinkat, &[Fd, Path, Flags]),
    (libc::SYS_chmod, &[Path, Just(0o777)]),
    (libc::SYS_chmod, &[Path, Just(0)]),
    (libc::SYS_flock, &[Fd, Small]),
    (libc::SYS_fchmod, &[Fd, Just(0o777)]),
    (libc::SYS_fchmodat, &[Fd, Path, Just(0o777)]),
    (libc::SYS_chown, &[Path, Small, Small]),
    (libc::SYS_truncate, &[Path, Len]),
    (libc::SYS_ftruncate, &[Fd, Len]),
    (libc::SYS_fallocate, &[Fd, Small, Len, Len]),
    (libc::SYS_utimensat, &[HERE, Path, Just(0), Small]),
    (libc::SYS_setxattr, &[Path, Path, Words, Len, Small]),
    (libc::SYS_chdir, &[Path]),
    (libc::SYS_fchdir, &[Fd]),
    (libc::SYS_newfstatat, &[Fd, Path, Words, Flags]),
    (libc::SYS_statx, &[Fd, Path, Flags, Flags, Words]),
    (libc::SYS_readlink, &[Path, Words, Len]),
    (libc::SYS_getdents64, &[Fd, Words, Len]),
    (libc::SYS_inotify_add_watch, &[Fd, Path, Flags]),
    (libc::SYS_read, &[Fd, Words, Len]),
    (libc::SYS_write, &[Fd, Words, Len]),
    (libc::SYS_pwrite64, &[Fd, Words, Len, Small]),
    (libc::SYS_writev, &[Fd, Words, Small]),
    (libc::SYS_dup, &[Fd]),
    (libc::SYS_dup2, &[Fd, Fd]),
    (libc::SYS_close, &[Fd]),
    (libc::SYS_fcntl, &[Fd, Small, Flags]),
    (libc::SYS_fcntl, &[Fd, Just(8), Pid]),
    (libc::SYS_fcntl, &[Fd, Just(10), Signal]),
    (libc::SYS_ioctl, &[Fd, Flags, Words]),
    (libc::SYS_pipe2, &[Words, Just(libc::O_NONBLOCK as u64)]),
    (libc::SYS_eventfd2, &[Small, Just(libc::O_NONBLOCK as u64)]),
    (libc::SYS_memfd_create, &[Path, Small]),
    (
        libc::SYS_mmap,
        &[Just(0), Just(4096), Small, Flags, Fd, Just(0)],
    ),
    (libc::SYS_socket, &[Small, Flags, Just(0)]),
    (libc::SYS_socket, &[Just(1), Just(1), Just(0)]),
    (libc::SYS_socket, &[Just(1), Just(2), Just(0)]),
    (libc::SYS_socketpair, &[Small, Just(1), Just(0), Words]),
    (libc::SYS_bind, &[Fd, Address, AddressLen]),
    (libc::SYS_connect, &[Fd, Address, AddressLen]),
    (libc::SYS_listen, &[Fd, Small]),
    (libc::SYS_accept4, &[Fd, Words, Words, Flags]),
    (
        libc::SYS_sendto,
        &[Fd, Words, Len, Just(0x40), Address, AddressLen],
    ),
    (libc::SYS_sendmsg, &[Fd, Message, Just(0x40)]),
    (libc::SYS_sendmsg, &[Fd, Words, Just(0x40)]),
    (libc::SYS_sendmmsg, &[Fd, Words, Small, Just(0x40)]),
    (libc::SYS_recvmsg, &[Fd, Words, Just(0x40)]),
    (libc::SYS_setsockopt, &[Fd, Small, Small, Words, Len]),
    (libc::SYS_kill, &[Pid, Signal]),
    (libc::SYS_tkill, &[Pid, Signal]),
    (libc::SYS_tgkill, &[Pid, Pid, Signal]),
    (libc::SYS_setpriority, &[Small, Pid, Small]),
    (libc::SYS_sched_setaffinity, &[Pid, Len, Words]),
    (libc::SYS_sched_setscheduler, &[Pid, Small, Words]),
    (libc::SYS_sched_setattr, &[Pid, Words, Small]),
    (libc::SYS_prlimit64, &[Pid, Small, Words, Words]),
    (libc::SYS_setpgid, &[Pid, Pid]),
    (libc::SYS_setsid, &[]),
    (libc::SYS_prctl, &[Small, Small, Small, Small, Small]),
    (libc::SYS_ptrace, &[Small, Pid, Words, Words]),
    (
        libc::SYS_process_vm_writev,
        &[Pid, Words, Small, Words, Small, Just(0)],
    ),
    (libc::SYS_pidfd_open, &[Pid, Just(0)]),
    (libc::SYS_seccomp, &[Small, Flags, Words]),
    (libc::SYS_unshare, &[Flags]),
    (libc::SYS_setns, &[Fd, Flags]),
    (libc::SYS_mount, &[Path, Path, Path, Flags, Words]),
    (libc::SYS_chroot, &[Path]),
    (libc::SYS_bpf, &[Small, Words, Len]),
    (libc::SYS_epoll_ctl, &[Fd, Small, Fd, Words]),
    (libc::SYS_epoll_wait, &[Fd, Words, Small, Just(0)]),
    (libc::SYS_poll, &[Words, Small, Just(0)]),
    (
        libc::SYS_wait4,
        &[Just(u64::MAX), Words, Just(libc::WNOHANG as u64), Just(0)],
    ),
    (libc::SYS_sched_yield, &[]),
    (libc::SYS_getpid, &[]),
    (libc::SYS_execve, &[Path, Just(0), Just(0)]),
];

/// Numbers whose random use ends the program, or has it wait inside of the kernel for what only
/// itself could do; the cases of other tests have them.
const NOT_AT_RANDOM: &[i64] = &[
    // `uretprobe` and `uprobe`: the kernel ends who has no such probe, before any filter.
    335,
    336,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_pkey_mprotect,
    libc::SYS_mmap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_arch_prctl,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_set_robust_list,
    libc::SYS_landlock_restrict_self,
    libc::SYS_pause,
    libc::SYS_clone,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_close_range,
    libc::SYS_futex,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_seccomp,
    libc::SYS_prctl,
    libc::SYS_alarm,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
];

struct Program {
    random: u64,
    paths: Vec<CString>,
    targets: Vec<CString>,
    victim: u64,
    words: Vec<u64>,
    abstract_name: CString,
    address: libc::sockaddr_un,
    len: u64,
    part: libc::iovec,
    message: libc::msghdr,
    depth: u32,
    /// Calls that all of its threads and children have made, in pages that the test can read.
    made: &'static AtomicU64,
}

/// Makes so many calls.
pub fn run(args: &[String]) {
    let number = |n: usize| args[n].parse::<u64>().unwrap();
    let (seed, calls, folder, victim) = (number(0), number(1), &args[2], number(3));
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    hold_signals(seed);
    let mut program = Program::new(seed, folder, victim);
    program.calls(calls);
    // What a C library does at the end may wait for a lock that a thread has taken along.
    unsafe { libc::_exit(0) }
}

/// A program in four ends by the signals that it sends at random; one has a handler of them. The
/// signal of the test, which ends waits, ends no program.
fn hold_signals(seed: u64) {
    extern "C" fn handler(_: i32) {}
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as libc::sighandler_t;
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
    }
    let taken = match seed % 4 {
        0 => return,
        1 => handler as extern "C" fn(i32) as libc::sighandler_t,
        _ => libc::SIG_IGN,
    };
    for signal in [libc::SIGUSR1, libc::SIGUSR2] {
        unsafe { libc::signal(signal, taken) };
    }
}

/// Paths of the program's own and of others, and those that a link may lead to.
fn paths(folder: &str, victim: u64) -> (Vec<CString>, Vec<CString>) {
    let foreign = [
        "file",
        "folder",
        "folder/file",
        "link",
        "stream",
        "datagram",
        "new",
    ];
    let mut paths: Vec<String> = foreign.iter().map(|it| format!("{folder}/{it}")).collect();
    paths.push(folder.to_owned());
    let own = [
        "/tmp/a",
        "/tmp/b",
        "/tmp/a/b",
        "/tmp/a/c",
        "/dev/shm/d",
        "/run/e",
        "/var/run/f",
        "/run/scx",
        "/run/scx/root",
        "/run/scx/root/stats",
        "/sys/kernel",
        "/proc/self/fd/4",
        "/sys/kernel/sched_ext",
        "/sys/kernel/sched_ext/state",
        "/sys/kernel/sched_ext/root",
        "/proc/stat",
        "/proc/uptime",
        "/proc",
        "/sys/fs/bpf/g",
        "/sys/fs/cgroup",
        "a",
        "b/c",
    ];
    let targets = paths.iter().cloned().chain(own.map(str::to_owned));
    let targets: Vec<CString> = targets.map(|it| CString::new(it).unwrap()).collect();
    let ways = [
        "/proc/self/root",
        "/proc/1/root",
        "/sys/..",
        "/proc/self/cwd/../../../../..",
    ];
    let round = ways
        .iter()
        .flat_map(|way| foreign.map(|it| format!("{way}{folder}/{it}")));
    paths.extend(round.collect::<Vec<_>>());
    let odd = [
        "",
        ".",
        "/",
        "..",
        "/dev/null",
        "/dev/zero",
        "/dev/urandom",
        "/dev/tty",
        "/dev/kmsg",
        "/proc/self/exe",
        "/proc/self/mem",
    ];
    paths.extend(own.iter().chain(&odd).map(|it| (*it).to_owned()));
    let foreign = [
        format!("/proc/{victim}/oom_score_adj"),
        format!("/proc/{victim}/mem"),
    ];
    paths.extend(foreign);
    let paths = paths.into_iter().map(|it| CString::new(it).unwrap());
    (paths.collect(), targets)
}

/// The number of calls that were made, in the file `/tmp/calls`.
fn counter() -> &'static AtomicU64 {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    unsafe {
        let file = libc::open(c"/tmp/calls".as_ptr(), libc::O_RDWR | libc::O_CREAT, 0o600);
        assert_eq!(libc::ftruncate(file, 4096), 0);
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            rights,
            libc::MAP_SHARED,
            file,
            0,
        );
        assert_ne!(page, libc::MAP_FAILED);
        libc::close(file);
        &*page.cast()
    }
}

impl Program {
    fn new(seed: u64, folder: &str, victim: u64) -> Self {
        let (paths, targets) = paths(folder, victim);
        Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            paths,
            targets,
            victim,
            words: vec![0; 8192],
            abstract_name: CString::new(folder).unwrap(),
            address: unsafe { std::mem::zeroed() },
            len: 0,
            part: unsafe { std::mem::zeroed() },
            message: unsafe { std::mem::zeroed() },
            depth: 0,
            made: counter(),
        }
    }

    /// Marsaglia's xorshift.
    fn next(&mut self) -> u64 {
        for shift in [13, -7, 17_i32] {
            let moved = match shift {
                0.. => self.random << shift,
                _ => self.random >> -shift,
            };
            self.random ^= moved;
        }
        self.random
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 11) % end as u64) as usize
    }

    fn calls(&mut self, calls: u64) {
        let mut left = calls;
        while left > 0 {
            left -= 1;
            match self.below(400) {
                0 if self.depth < DEPTH_MAX => self.fork(left / SHARE),
                1 if self.depth < DEPTH_MAX => self.clone(left / SHARE),
                2..=99 => self.any(),
                _ => {
                    let (nr, args) = CALLS[self.below(CALLS.len())];
                    // Another program is the end of this one.
                    if nr != libc::SYS_execve || self.depth > 0 {
                        self.call(nr, args);
                    }
                }
            }
        }
    }

    fn fork(&mut self, calls: u64) {
        if unsafe { libc::syscall(libc::SYS_fork) } == 0 {
            self.depth += 1;
            self.random ^= 0x55aa;
            self.calls(calls);
            unsafe { libc::_exit(0) }
        }
    }

    /// A thread, or a child that shares what the flags say, on a stack of its own.
    fn clone(&mut self, calls: u64) {
        struct Begin(Program, u64);
        extern "C" fn begin(begin: *mut libc::c_void) -> i32 {
            let begin: &mut Begin = unsafe { &mut *begin.cast() };
            begin.0.calls(begin.1);
            0
        }
        const THREAD: i32 = libc::CLONE_VM
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_FS
            | libc::CLONE_FILES;
        let mut flags = (self.next() as i32) & 0x00ff_ff00;
        match self.below(3) {
            0 => flags = THREAD,
            1 => flags |= libc::CLONE_VM,
            _ => {}
        }
        // What needs more arguments, or another table of threads than the C library's.
        flags &= !(libc::CLONE_SETTLS
            | libc::CLONE_PARENT_SETTID
            | libc::CLONE_CHILD_SETTID
            | libc::CLONE_CHILD_CLEARTID);
        if flags & libc::CLONE_THREAD == 0 {
            flags |= libc::SIGCHLD;
        }
        let (random, victim) = (self.next() | 1, self.victim);
        let program = Self {
            random,
            paths: self.paths.clone(),
            targets: self.targets.clone(),
            victim,
            words: self.words.clone(),
            abstract_name: self.abstract_name.clone(),
            depth: self.depth + 1,
            ..*self
        };
        let begun = Box::into_raw(Box::new(Begin(program, calls)));
        let stack = Box::leak(vec![0_u8; 1 << 17].into_boxed_slice());
        unsafe {
            let top = stack.as_mut_ptr().add(1 << 17);
            libc::clone(begin, top.cast(), flags, begun.cast());
        }
    }

    /// Any number, with any arguments.
    fn any(&mut self) {
        let nr = self.below(470) as i64;
        let kinds = [Path, Fd, Flags, Len, Words, Pid, Small, Just(u64::MAX)];
        let args: Vec<Arg> = (0..6).map(|_| kinds[self.below(kinds.len())]).collect();
        if !NOT_AT_RANDOM.contains(&nr) {
            self.call(nr, &args);
        }
    }

    fn call(&mut self, nr: i64, args: &[Arg]) {
        let mut given = [0; 6];
        for (to, arg) in given.iter_mut().zip(args) {
            *to = self.argument(*arg);
        }
        let [a, b, c, d, e, f] = given;
        self.made.fetch_add(1, Ordering::Relaxed);
        unsafe { libc::syscall(nr, a, b, c, d, e, f) };
    }

    fn argument(&mut self, arg: Arg) -> u64 {
        match arg {
            Path => self.path(),
            Target => {
                let n = self.below(self.targets.len());
                self.targets[n].as_ptr() as u64
            }
            // Standard input and output stay.
            Fd => 3 + self.below(20) as u64,
            Flags => self.next() & self.next() & 0x00ff_ffff,
            Len => self.next() & self.next() & 0xffff,
            Words => self.words(),
            Address => self.address(),
            AddressLen => self.len,
            Message => self.message(),
            Pid => [self.victim, 0, 1, u64::MAX, 1000, 1001][self.below(6)],
            // What ends or stops a process, its own most of all, is left to other tests.
            Signal => [0, 10, 12, 17, 18, 23, 28][self.below(7)],
            Small => self.below(64) as u64,
            Just(value) => value,
        }
    }

    /// Words that are small, or lead somewhere, or neither.
    fn words(&mut self) -> u64 {
        let at = self.words.as_ptr() as u64;
        for n in 0..24 {
            self.words[n] = match self.below(6) {
                0 => at + 8 * self.below(64) as u64,
                1 => self.next(),
                2 => self.path(),
                _ => self.below(32) as u64,
            };
        }
        at
    }

    fn path(&mut self) -> u64 {
        let n = self.below(self.paths.len());
        self.paths[n].as_ptr() as u64
    }

    fn address(&mut self) -> u64 {
        self.address.sun_family = if self.below(8) == 0 {
            self.below(40) as u16
        } else {
            1
        };
        let is_path = self.below(8) > 0;
        let n = self.below(self.paths.len());
        let name = if is_path {
            &self.paths[n]
        } else {
            &self.abstract_name
        };
        // A name that is no path has a zero first, and ends where its length says.
        let bytes = name.as_bytes_with_nul();
        let first = usize::from(!is_path);
        self.address.sun_path[0] = 0;
        for (to, byte) in self.address.sun_path[first..].iter_mut().zip(bytes) {
            *to = *byte as libc::c_char;
        }
        self.len = if is_path { 110 } else { 2 + bytes.len() as u64 };
        &raw const self.address as u64
    }

    fn message(&mut self) -> u64 {
        self.address();
        let name = &raw mut self.address;
        (self.message.msg_name, self.message.msg_namelen) = (name.cast(), self.len as u32);
        self.part.iov_base = self.words.as_mut_ptr().cast();
        self.part.iov_len = self.below(4096);
        (self.message.msg_iov, self.message.msg_iovlen) = (&raw mut self.part, 1);
        &raw const self.message as u64
    }
}
