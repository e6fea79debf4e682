//! Calls about threads and processes: who they are, how they begin and end, their signals.

use std::fs;

use crate::executable::Executable;
use crate::state::{CallContext, Errno, Parked, Reply, LoaderState, Then};
use crate::sys;
use crate::work;

use model::user_space::SetSched;

type Answer = Result<Reply, Errno>;

/// Calls without arguments that tell who the program is.
pub fn identity(cx: &mut CallContext<'_>) -> Answer {
    let group = |it: u32| Reply::Value(it.into());
    Ok(match cx.call.nr {
        libc::SYS_getpid => group(cx.process().shown),
        libc::SYS_gettid => group(cx.thread().shown),
        libc::SYS_getppid => match cx.process().parent {
            Some(parent) => group(cx.state.processes[parent].shown),
            None => Reply::Value(1),
        },
        libc::SYS_getpgrp | libc::SYS_getpgid | libc::SYS_getsid => {
            group(cx.state.processes[0].shown)
        }
        // Groups of processes and sessions are for terminals. All else is root's: 0.
        libc::SYS_setsid => group(cx.process().shown),
        _ => Reply::Value(0),
    })
}

/// `getresuid()` and `getresgid()`.
pub fn getres(cx: &mut CallContext<'_>) -> Answer {
    for n in 0..3 {
        cx.write(cx.arg(n), &[0; 4])?;
    }
    Ok(Reply::Value(0))
}

/// `capget()`: root has all 41.
pub fn capget(cx: &mut CallContext<'_>) -> Answer {
    /// `_LINUX_CAPABILITY_VERSION_3`, Linux 6.18, include/uapi/linux/capability.h.
    const VERSION: u32 = 0x2008_0522;
    if cx.read_u32(cx.arg(0))? != VERSION {
        cx.write(cx.arg(0), &VERSION.to_le_bytes())?;
        return match cx.arg(1) {
            0 => Ok(Reply::Value(0)),
            _ => Err(Errno(libc::EINVAL)),
        };
    }
    if cx.arg(1) != 0 {
        let words = [u32::MAX, u32::MAX, 0, 0x1ff, 0x1ff, 0];
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        cx.write(cx.arg(1), &bytes)?;
    }
    Ok(Reply::Value(0))
}

pub fn uname(cx: &mut CallContext<'_>) -> Answer {
    let release = crate::tree::release(&cx.state.settings.shown.machine);
    let fields = ["Linux", "runslice", &release, "#1 SMP PREEMPT_DYNAMIC", "x86_64", "(none)"];
    let mut bytes = [0; 6 * 65];
    for (n, text) in fields.into_iter().enumerate() {
        bytes[65 * n..65 * n + text.len()].copy_from_slice(text.as_bytes());
    }
    cx.write(cx.arg(0), &bytes)?;
    Ok(Reply::Value(0))
}

/// The next bytes of `getrandom()`, the same in every run: splitmix64.
pub fn random(state: &mut u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = *state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((word ^ word >> 31).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub fn getrandom(cx: &mut CallContext<'_>) -> Answer {
    let len = cx.arg(1).min(1 << 20);
    let bytes = random(&mut cx.state.random, len as usize);
    cx.write(cx.arg(0), &bytes)?;
    Ok(Reply::Value(len.cast_signed()))
}

/// `set_tid_address()`: the number must be the shown one, so the supervisor clears the word itself.
pub fn set_tid_address(cx: &mut CallContext<'_>) -> Answer {
    let address = cx.arg(0);
    let thread = cx.thread();
    thread.clear = Some((address, false));
    Ok(Reply::Value(thread.shown.into()))
}

pub fn prctl(cx: &mut CallContext<'_>) -> Answer {
    match cx.int(0) {
        libc::PR_SET_NAME => {
            let mut bytes = cx.read_string(cx.arg(1), 4096)?;
            bytes.truncate(15);
            name(cx, String::from_utf8_lossy(&bytes).into_owned());
            Ok(Reply::Continue)
        }
        // What would cut the program loose of its supervisor, or crash it.
        libc::PR_SET_PDEATHSIG | libc::PR_SET_DUMPABLE | libc::PR_SET_TIMERSLACK => {
            Ok(Reply::Value(0))
        }
        libc::PR_SET_PTRACER | libc::PR_SET_CHILD_SUBREAPER => Ok(Reply::Value(0)),
        // `PR_SCHED_CORE` names processes of the host.
        libc::PR_SET_TSC | libc::PR_SET_MM | libc::PR_SCHED_CORE => Err(Errno(libc::EPERM)),
        _ => Ok(Reply::Continue),
    }
}

fn name(cx: &mut CallContext<'_>, name: String) {
    cx.thread().name.clone_from(&name);
    let thread = cx.id();
    // A name is no wish that could be refused.
    let _ = cx.kernel.set_sched(thread, SetSched::Name(name));
}

/// `seccomp()`: filters of the program's own, but no second listener.
pub fn seccomp(cx: &mut CallContext<'_>) -> Answer {
    const NEW_LISTENER: u64 = 1 << 3;
    if cx.arg(1) & NEW_LISTENER != 0 {
        return Err(Errno(libc::EBUSY));
    }
    Ok(Reply::Continue)
}

/// `personality()`: addresses stay as they are.
pub fn personality(cx: &mut CallContext<'_>) -> Answer {
    if cx.arg(0) as u32 == u32::MAX {
        return Ok(Reply::Value(0));
    }
    Err(Errno(libc::EPERM))
}

/// `execve()` and `execveat()`.
pub fn exec(cx: &mut CallContext<'_>) -> Answer {
    let program = Executable::of_call(cx)?;
    let mut text = program.name.clone();
    while text.len() > 15 {
        text.pop();
    }
    name(cx, text);
    Ok(Reply::Exec(Box::new(program)))
}

/// `kill()`, `tkill()` and `tgkill()`: within the program.
pub fn kill(cx: &mut CallContext<'_>) -> Answer {
    let (number, signal) = match cx.call.nr {
        libc::SYS_tgkill => (cx.int(1), cx.int(2)),
        _ => (cx.int(0), cx.int(1)),
    };
    if !(0..=64).contains(&signal) {
        return Err(Errno(libc::EINVAL));
    }
    let own = cx.thread().process;
    let at = match (cx.call.nr, number) {
        (libc::SYS_kill, 0) => receiver(cx.state, own, signal),
        (libc::SYS_kill, number) => {
            let number = number.unsigned_abs();
            let each = cx.state.processes.iter();
            let found = each.clone().position(|it| it.lives && it.shown == number);
            let real = each.clone().position(|it| it.lives && it.real.cast_unsigned() == number);
            found.or(real).and_then(|it| receiver(cx.state, it, signal))
        }
        (_, number) => cx.state.find_thread(number),
    };
    let at = at.ok_or(Errno(libc::ESRCH))?;
    if signal == 0 {
        return Ok(Reply::Value(0));
    }
    if at == cx.at {
        let process = cx.process().real;
        sys::signal_thread(process, cx.call.tid, signal)?;
        return Ok(Reply::Value(0));
    }
    interrupt(cx.state, at, signal);
    Ok(Reply::Value(0))
}

/// Which thread of a process takes a signal: the first that does not block it, else one that waits
/// for it, else the first.
pub fn receiver(state: &LoaderState, process: usize, signal: i32) -> Option<usize> {
    let each = || {
        let each = state.threads.iter().enumerate();
        each.filter(|(_, it)| it.lives && it.process == process)
    };
    let waits = |parked: &Parked| matches!(parked.then, Then::Signal);
    let open = each().find(|(_, it)| !has_signal(it.tid, "SigBlk:", signal));
    let open = open.or_else(|| each().find(|(_, it)| it.parked.as_ref().is_some_and(waits)));
    open.or_else(|| each().next()).map(|it| it.0)
}

/// Whether a set of signals in `/proc/TID/status` has this one.
pub fn has_signal(tid: i32, set: &str, signal: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|it| it.strip_prefix(set));
    let mask = line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    mask.is_some_and(|it| it & 1 << (signal - 1).clamp(0, 63) != 0)
}

/// A thread gets a signal at its next turn; its wait is over if the signal is one that ends waits.
pub fn interrupt(state: &mut LoaderState, at: usize, signal: i32) {
    let thread = &mut state.threads[at];
    let waits_for_it = matches!(&thread.parked, Some(it) if matches!(it.then, Then::Signal));
    let ends = !has_signal(thread.tid, "SigIgn:", signal)
        && !has_signal(thread.tid, "SigBlk:", signal);
    // What is ignored by default ends no wait unless there is a handler.
    let is_quiet = matches!(signal, libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH)
        && !has_signal(thread.tid, "SigCgt:", signal);
    if !thread.signals.contains(&signal) {
        thread.signals.push(signal);
    }
    // A thread in `vfork()` takes it when its child lets it go on.
    let can_stop = |it: &Parked| it.waits() && !matches!(it.then, Then::Vfork(_));
    if thread.parked.as_ref().is_some_and(can_stop) && (waits_for_it || ends && !is_quiet) {
        let then = interrupted(thread.parked.as_ref());
        state.wake(at, then);
    }
}

/// What a call answers that a signal has interrupted.
fn interrupted(parked: Option<&Parked>) -> Then {
    /// The kernel does the call again, unless the handler was set without `SA_RESTART`.
    /// Linux 6.18, include/linux/errno.h.
    const RESTARTSYS: i64 = -512;
    let Some(parked) = parked else {
        return Then::Handle;
    };
    let again = match (&parked.then, parked.call.nr) {
        (Then::Signal, _) => return Then::Handle,
        (Then::Futex(..), _) => parked.until.is_none(),
        (Then::Child, _) => true,
        (
            Then::Files(_),
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_accept
            | libc::SYS_accept4,
        ) => true,
        _ => false,
    };
    Then::Answer(if again { RESTARTSYS } else { -i64::from(libc::EINTR) })
}

/// `pause()`, `rt_sigsuspend()` and `rt_sigtimedwait()`: the kernel does them when there is a
/// signal, so that they do not wait.
pub fn wait_signal(cx: &mut CallContext<'_>) -> Answer {
    if !cx.thread().signals.is_empty() {
        return Ok(Reply::Continue);
    }
    let until = match (cx.waited, cx.call.nr) {
        (Some(until), _) => until,
        (None, libc::SYS_rt_sigtimedwait) if cx.arg(2) != 0 => {
            let span = crate::time::timespec(&cx.read(cx.arg(2), 16)?)?;
            Some(crate::time::later(cx.now(), span))
        }
        _ => None,
    };
    if until.is_some_and(|it| it <= cx.now()) {
        return Err(Errno(libc::EAGAIN));
    }
    let own = pending(cx);
    if own {
        return Ok(Reply::Continue);
    }
    Ok(Reply::Park(Then::Signal, until))
}

/// Whether a signal is already there.
fn pending(cx: &CallContext<'_>) -> bool {
    let text = fs::read_to_string(format!("/proc/{}/status", cx.call.tid)).unwrap_or_default();
    let sets = ["SigPnd:", "ShdPnd:"];
    text.lines().any(|line| {
        let rest = sets.iter().find_map(|it| line.strip_prefix(it));
        rest.is_some_and(|it| it.trim().bytes().any(|digit| digit != b'0'))
    })
}

/// `wait4()` and `waitid()`: the kernel does them once they would not wait.
pub fn wait_child(cx: &mut CallContext<'_>) -> Answer {
    let options = match cx.call.nr {
        libc::SYS_wait4 => cx.int(2),
        _ => cx.int(3),
    };
    if options & libc::WNOHANG != 0 {
        return Ok(Reply::Continue);
    }
    let own = cx.thread().process;
    let tid = cx.process().real;
    let mut children = cx.state.processes.iter().filter(|it| it.parent == Some(own));
    let lives = children.clone().any(|it| it.lives);
    // The numbers of children are the host's: `fork()` has told them.
    let (named, number) = match cx.call.nr {
        libc::SYS_wait4 => (cx.int(0) > 0, cx.int(0)),
        _ => (cx.int(0) == libc::P_PID as i32, cx.int(1)),
    };
    let count = &cx.state.work;
    let is_zombie = |pid: i32| {
        count.add(work::LOOK);
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = text.rsplit_once(") ").map_or("", |it| it.1);
        let parent = after.split(' ').nth(1).and_then(|it| it.parse().ok());
        after.starts_with('Z') && parent == Some(tid)
    };
    let ready = if named {
        !children.any(|it| it.real == number && it.lives)
    } else {
        !lives || children.any(|it| !it.lives && is_zombie(it.real))
    };
    if ready {
        return Ok(Reply::Continue);
    }
    Ok(Reply::Park(Then::Child, None))
}
