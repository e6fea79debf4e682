//! Calls about scheduling and limits.

use model::user_space::{ThreadKernel, SetSched, ThreadId};

use crate::state::{CallContext, Errno, Reply, Thread, thread_id, u32_at, u64_at};
use crate::sys;

type Answer = Result<Reply, Errno>;

/// The thread of that number, 0 for the one that calls.
fn target(cx: &CallContext<'_>, number: i32) -> Result<usize, Errno> {
    match number {
        0 => Ok(cx.at),
        number => cx.state.find_thread(number).ok_or(Errno(libc::ESRCH)),
    }
}

fn set(cx: &mut CallContext<'_>, at: usize, change: SetSched) -> Result<(), Errno> {
    let thread: ThreadId = thread_id(at);
    let done = cx.kernel.set_sched(thread, change);
    done.map_err(|it| Errno(it.errno))
}

/// A new thread has its parent's scheduling; the simulated machine begins with the usual one.
pub fn inherit(kernel: &mut dyn ThreadKernel, thread: ThreadId, of: &Thread, cpus: u16) {
    let (policy, priority) = of.policy;
    // The parent has it, so that a refusal cannot come of its values.
    if policy != 0 {
        let _ = kernel.set_sched(thread, SetSched::Policy(policy, priority));
    }
    if of.nice != 0 {
        let _ = kernel.set_sched(thread, SetSched::Nice(of.nice));
    }
    if of.affinity.len() < usize::from(cpus) {
        let _ = kernel.set_sched(thread, SetSched::Affinity(of.affinity.clone()));
    }
}

pub fn set_affinity(cx: &mut CallContext<'_>) -> Answer {
    let at = target(cx, cx.int(0))?;
    let mask = cx.read(cx.arg(2), cx.arg(1).min(128))?;
    let cpus = cx.state.settings.shown.machine.cpus;
    let has = |cpu: u16| {
        let byte = mask.get(usize::from(cpu) / 8);
        byte.is_some_and(|it| it & 1 << (cpu % 8) != 0)
    };
    let found: Vec<u16> = (0..cpus).filter(|cpu| has(*cpu)).collect();
    if found.is_empty() {
        return Err(Errno(libc::EINVAL));
    }
    set(cx, at, SetSched::Affinity(found.clone()))?;
    cx.state.threads[at].affinity = found;
    Ok(Reply::Value(0))
}

pub fn get_affinity(cx: &mut CallContext<'_>) -> Answer {
    let at = target(cx, cx.int(0))?;
    // As many bytes as `nr_cpu_ids` take, in whole words.
    let len = usize::from(cx.state.settings.shown.machine.cpus).div_ceil(64) * 8;
    if cx.arg(1) < len as u64 || !cx.arg(1).is_multiple_of(8) {
        return Err(Errno(libc::EINVAL));
    }
    let mut mask = vec![0_u8; len];
    for cpu in &cx.state.threads[at].affinity {
        mask[usize::from(*cpu) / 8] |= 1 << (cpu % 8);
    }
    cx.write(cx.arg(2), &mask)?;
    Ok(Reply::Value(len as i64))
}

/// `getcpu()`: where the thread runs, within a turn the same; of one that takes no CPU the first
/// CPU that it may run on.
pub fn getcpu(cx: &mut CallContext<'_>) -> Answer {
    let first = cx.thread().affinity.first().copied();
    let cpu = cx.kernel.cpu().or(first).unwrap_or(0);
    let machine = &cx.state.settings.shown.machine;
    let placed = machine.hardware.as_ref().and_then(|it| it.places.as_ref());
    let told = placed.and_then(|it| it.node.get(usize::from(cpu)).copied());
    let node = told.unwrap_or(cpu / machine.node_size());
    for (n, value) in [(0, cpu), (1, node)] {
        if cx.arg(n) != 0 {
            cx.write(cx.arg(n), &u32::from(value).to_le_bytes())?;
        }
    }
    Ok(Reply::Value(0))
}

/// `sched_setscheduler()` and `sched_setparam()`.
pub fn set_scheduler(cx: &mut CallContext<'_>) -> Answer {
    const RESET_ON_FORK: u32 = 0x4000_0000;
    let at = target(cx, cx.int(0))?;
    let (policy, place) = match cx.call.nr {
        libc::SYS_sched_setscheduler => (cx.arg(1) as u32 & !RESET_ON_FORK, cx.arg(2)),
        _ => (cx.state.threads[at].policy.0, cx.arg(1)),
    };
    let priority = cx.read_u32(place)?.cast_signed();
    set(cx, at, SetSched::Policy(policy, priority))?;
    cx.state.threads[at].policy = (policy, priority);
    Ok(Reply::Value(0))
}

pub fn get_scheduler(cx: &mut CallContext<'_>) -> Answer {
    let at = target(cx, cx.int(0))?;
    let (policy, priority) = cx.state.threads[at].policy;
    if cx.call.nr == libc::SYS_sched_getscheduler {
        return Ok(Reply::Value(policy.into()));
    }
    cx.write(cx.arg(1), &priority.to_le_bytes())?;
    Ok(Reply::Value(0))
}

/// `sched_setattr()`: policy, nice value and priority of `struct sched_attr`.
pub fn set_attr(cx: &mut CallContext<'_>) -> Answer {
    let at = target(cx, cx.int(0))?;
    let size = cx.read_u32(cx.arg(1))?.clamp(48, 4096);
    let attr = cx.read(cx.arg(1), size.into())?;
    let (policy, priority) = (u32_at(&attr, 4), u32_at(&attr, 20).cast_signed());
    let nice = clamp(u32_at(&attr, 16).cast_signed());
    set(cx, at, SetSched::Policy(policy, priority))?;
    set(cx, at, SetSched::Nice(nice))?;
    let thread = &mut cx.state.threads[at];
    (thread.policy, thread.nice) = ((policy, priority), nice);
    Ok(Reply::Value(0))
}

pub fn get_attr(cx: &mut CallContext<'_>) -> Answer {
    let at = target(cx, cx.int(0))?;
    let Thread { policy, nice, .. } = &cx.state.threads[at];
    let mut attr = [0; 56];
    attr[..4].copy_from_slice(&56_u32.to_le_bytes());
    attr[4..8].copy_from_slice(&policy.0.to_le_bytes());
    attr[16..20].copy_from_slice(&i32::from(*nice).to_le_bytes());
    attr[20..24].copy_from_slice(&policy.1.to_le_bytes());
    let len = (cx.arg(2) as usize).min(attr.len());
    cx.write(cx.arg(1), &attr[..len])?;
    Ok(Reply::Value(0))
}

fn clamp(nice: i32) -> i8 {
    nice.clamp(-20, 19) as i8
}

/// `setpriority()` and `getpriority()`: of a thread, also by the number of its process.
pub fn priority(cx: &mut CallContext<'_>) -> Answer {
    const PRIO_PROCESS: i32 = 0;
    if cx.int(0) != PRIO_PROCESS {
        return Err(Errno(libc::EINVAL));
    }
    let at = target(cx, cx.int(1))?;
    if cx.call.nr == libc::SYS_getpriority {
        return Ok(Reply::Value(20 - i64::from(cx.state.threads[at].nice)));
    }
    let nice = clamp(cx.int(2));
    set(cx, at, SetSched::Nice(nice))?;
    cx.state.threads[at].nice = nice;
    Ok(Reply::Value(0))
}

/// `getrlimit()`, `setrlimit()` and `prlimit64()`: root has no limits but those of the stack and
/// of descriptors, and setting one changes nothing.
pub fn limits(cx: &mut CallContext<'_>) -> Answer {
    let (resource, old, new) = match cx.call.nr {
        libc::SYS_getrlimit => (cx.arg(0), cx.arg(1), 0),
        libc::SYS_setrlimit => (cx.arg(0), 0, cx.arg(1)),
        _ => (cx.arg(1), cx.arg(3), cx.arg(2)),
    };
    let resource = resource as u32;
    if resource > libc::RLIMIT_RTTIME {
        return Err(Errno(libc::EINVAL));
    }
    // The number is the simulated machine's: the kernel would take it for one of the host.
    let of = match cx.call.nr {
        libc::SYS_prlimit64 => target(cx, cx.int(0))?,
        _ => cx.at,
    };
    if new != 0 {
        let pair = cx.read(new, 16)?;
        if u64_at(&pair, 0) > u64_at(&pair, 8) {
            return Err(Errno(libc::EINVAL));
        }
        // More descriptors are the host's to give, and nobody can see that they were.
        if resource == libc::RLIMIT_NOFILE && old == 0 {
            let process = &cx.state.processes[cx.state.threads[of].process];
            sys::limit_files(process.real, u64_at(&pair, 0), u64_at(&pair, 8))?;
        }
    }
    if old != 0 {
        let (soft, hard) = match resource {
            libc::RLIMIT_STACK => (8 << 20, u64::MAX),
            libc::RLIMIT_NOFILE => (1024, 1 << 20),
            libc::RLIMIT_FSIZE => (sys::FILE_MAX, sys::FILE_MAX),
            libc::RLIMIT_CORE => (0, u64::MAX),
            _ => (u64::MAX, u64::MAX),
        };
        let mut pair = [0; 16];
        pair[..8].copy_from_slice(&soft.to_le_bytes());
        pair[8..].copy_from_slice(&hard.to_le_bytes());
        cx.write(old, &pair)?;
    }
    Ok(Reply::Value(0))
}
