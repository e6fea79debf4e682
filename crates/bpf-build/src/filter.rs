//! Which system calls the compiler may make. All others do not exist for it (`ENOSYS`), those that
//! a later kernel has included.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

type FilterResult<T> = Result<T, seccompiler::BackendError>;

/// What passes whatever its arguments are: memory, files (the walls say which), signals to be
/// received, threads, clocks, and the start of the compiler itself.
const PASS: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_chdir,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Older forms of these, which younger machines do not have.
#[cfg(target_arch = "x86_64")]
const PASS_OLD: &[libc::c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_stat,
];
#[cfg(not(target_arch = "x86_64"))]
const PASS_OLD: &[libc::c_long] = &[];

/// Flags of `clone` for namespaces of an own, which would be another view of the system.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// `fork()` of the C library, by which a program without shared libraries starts another one.
const FORK: i32 = libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID | libc::SIGCHLD;

/// The filter for this machine.
///
/// # Errors
/// When the library knows no such machine.
pub(crate) fn filter() -> FilterResult<BpfProgram> {
    let pass = PASS.iter().chain(PASS_OLD);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = pass.map(|nr| (*nr, Vec::new())).collect();
    rules.insert(libc::SYS_clone, clone()?);
    let fcntl = [
        libc::F_DUPFD,
        libc::F_DUPFD_CLOEXEC,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
    ];
    rules.insert(libc::SYS_fcntl, one_of(1, &fcntl.map(i32::cast_unsigned))?);
    let terminal = [libc::TCGETS, libc::TIOCGWINSZ];
    rules.insert(libc::SYS_ioctl, one_of(1, &terminal.map(|it| it as u32))?);
    let names = [libc::PR_SET_NAME, libc::PR_SET_VMA];
    rules.insert(libc::SYS_prctl, one_of(0, &names.map(i32::cast_unsigned))?);
    // Into a group of its own, when it is started; a compiler in it stays.
    rules.insert(libc::SYS_setpgid, vec![rule(0, SeccompCmpOp::Eq, 0)?]);
    // Limits are read and not set.
    let nothing = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![nothing])?]);
    let absent = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, absent, SeccompAction::Allow, machine)?.try_into()
}

/// Threads, and a process that shares the memory of its maker, which waits until it starts a
/// program: that is how this thread starts the compiler. `clone3` has its flags in memory, where
/// no filter sees them.
fn clone() -> FilterResult<Vec<SeccompRule>> {
    let mask = (NAMESPACES | libc::CLONE_VM).cast_unsigned();
    let shares = |flags: i32| {
        let mask = u64::from(mask | flags.cast_unsigned());
        let flags = u64::from((libc::CLONE_VM | flags).cast_unsigned());
        rule(0, SeccompCmpOp::MaskedEq(mask), flags)
    };
    let mut rules = vec![shares(libc::CLONE_THREAD)?, shares(libc::CLONE_VFORK)?];
    if cfg!(target_feature = "crt-static") {
        rules.push(rule(0, SeccompCmpOp::Eq, u64::from(FORK.cast_unsigned()))?);
    }
    Ok(rules)
}

fn rule(argument: u8, is: SeccompCmpOp, value: u64) -> FilterResult<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)?;
    SeccompRule::new(vec![condition])
}

fn one_of(argument: u8, values: &[u32]) -> FilterResult<Vec<SeccompRule>> {
    let rules = values
        .iter()
        .map(|it| rule(argument, SeccompCmpOp::Eq, u64::from(*it)));
    rules.collect()
}
