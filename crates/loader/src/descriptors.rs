//! Calls that may wait for a file, and calls that make and close descriptors.
//!
//! A call that would wait is held until it would not. Then the kernel does it, where `poll()` has
//! promised that it does not wait; else it is done on a second descriptor of the same open file,
//! without waiting. What would wait for more than `poll()` tells is refused here or by the filter.

use std::collections::btree_map::Entry;
use std::fs;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use model::Nanos;
use model::user_space::{BpfAnswer, BpfCall, BpfId};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::sockopt::socket_type;
use rustix::net::{SendFlags, SocketType};

use crate::bpf;
use crate::growth;
use crate::state::{CallContext, Errno, ObjectKind, Reply, Then, Watch, u32_at, u64_at};
use crate::sys;
use crate::time::{later, timespec};
use crate::work;

type Answer = Result<Reply, Errno>;

/// What fits into a pipe at once when `poll()` says that something does.
const PIPE_CHUNK: u64 = 4096;
/// What is sent on a socket at once; more than it takes.
const SOCKET_CHUNK: u64 = 1 << 20;
/// How long a call waits until it asks again where nothing tells when there is room.
pub const ROOM_AGAIN: Nanos = Nanos::from_millis(1);

fn stat(cx: &CallContext<'_>, fd: i32) -> Result<rustix::fs::Stat, Errno> {
    let path = format!("/proc/{}/fd/{fd}", cx.call.tid);
    rustix::fs::stat(path).map_err(|_| Errno(libc::EBADF))
}

/// Whether using the file can wait at all.
fn can_wait(mode: u32) -> bool {
    let kind = FileType::from_raw_mode(mode);
    !matches!(
        kind,
        FileType::RegularFile | FileType::Directory | FileType::CharacterDevice
    )
}

/// Lets the kernel do a call on `fd` once the file is ready for it.
pub fn when_ready(cx: &mut CallContext<'_>, fd: i32, flags: PollFlags, dont_wait: bool) -> Answer {
    let file = cx.duplicate(fd)?;
    if dont_wait || fcntl_getfl(&file)?.contains(OFlags::NONBLOCK) {
        return Ok(Reply::Continue);
    }
    let watches = vec![Watch::File(file, flags)];
    if cx.state.is_ready(&watches, &*cx.kernel) {
        return Ok(Reply::Continue);
    }
    Ok(Reply::Park(Then::Files(watches), None))
}

/// `read()` and `readv()`.
pub fn read(cx: &mut CallContext<'_>) -> Answer {
    let fd = cx.int(0);
    match cx.object(fd).map(|it| &it.kind) {
        Some(ObjectKind::Iter(link, false)) => {
            let link = *link;
            return fill(cx, fd, link);
        }
        Some(ObjectKind::Iter(_, true)) => return Ok(Reply::Continue),
        Some(_) => return Err(Errno(libc::EINVAL)),
        None => {}
    }
    // What has no type of its own among the anonymous files is a regular file in new kernels.
    let stat = stat(cx, fd)?;
    if !can_wait(stat.st_mode) && !is_anonymous(cx, fd) {
        return Ok(Reply::Continue);
    }
    when_ready(cx, fd, PollFlags::IN, false)
}

fn is_anonymous(cx: &CallContext<'_>, fd: i32) -> bool {
    let link = fs::read_link(format!("/proc/{}/fd/{fd}", cx.call.tid));
    link.is_ok_and(|it| it.to_string_lossy().starts_with("anon_inode:"))
}

/// The text of an iterator is made when it is read first.
fn fill(cx: &mut CallContext<'_>, fd: i32, link: BpfId) -> Answer {
    let thread = cx.id();
    let asked = cx.kernel.bpf(thread, BpfCall::IterRead { link });
    let Ok(BpfAnswer::Bytes(text)) = asked else {
        return Err(Errno(asked.err().map_or(libc::EINVAL, |it| it.errno)));
    };
    let stat = stat(cx, fd)?;
    let key = (stat.st_dev, stat.st_ino);
    let object = cx.state.objects.get_mut(&key).ok_or(Errno(libc::EBADF))?;
    object.kind = ObjectKind::Iter(link, true);
    object.file.write_all(&text)?;
    rustix::fs::seek(&object.file, rustix::fs::SeekFrom::Start(0))?;
    Ok(Reply::Continue)
}

/// `write()` and `writev()`.
pub fn write(cx: &mut CallContext<'_>) -> Answer {
    let fd = cx.int(0);
    let stat = stat(cx, fd)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if matches!(kind, FileType::RegularFile) && !is_anonymous(cx, fd) {
        let len = match cx.call.nr {
            libc::SYS_write => cx.arg(2).min(i64::MAX as u64),
            _ => growth::len_of_parts(cx, cx.arg(1), cx.arg(2))?,
        };
        return growth::write(cx, fd, len);
    }
    if !can_wait(stat.st_mode) && !is_anonymous(cx, fd) {
        return Ok(Reply::Continue);
    }
    in_part(cx, fd, matches!(kind, FileType::Socket).then(SendFlags::empty))
}

/// Writes what fits: the rest would make the thread wait inside of the kernel. On a socket with
/// `flags`.
pub fn in_part(cx: &mut CallContext<'_>, fd: i32, flags: Option<SendFlags>) -> Answer {
    let reply = when_ready(cx, fd, PollFlags::OUT, false)?;
    let file = cx.duplicate(fd)?;
    if matches!(reply, Reply::Park(..)) || fcntl_getfl(&file)?.contains(OFlags::NONBLOCK) {
        return Ok(reply);
    }
    let max = if flags.is_some() { SOCKET_CHUNK } else { PIPE_CHUNK };
    let bytes = if cx.call.nr == libc::SYS_writev {
        growth::parts(cx, cx.arg(1), cx.arg(2), max)?
    } else {
        cx.read(cx.arg(1), cx.arg(2).min(max))?
    };
    let done = match flags {
        Some(flags) => {
            let flags = flags | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            rustix::net::send(&file, &bytes, flags)
        }
        None => without_waiting(&file, |file| rustix::io::write(file, &bytes))?.0,
    };
    match done {
        Ok(done) => Ok(Reply::Value(done as i64)),
        // `poll()` has promised room for less, as in a counter, or its receiver has none.
        Err(rustix::io::Errno::AGAIN) => Ok(ask_again(cx)),
        Err(rustix::io::Errno::PIPE) => broken(cx, flags),
        Err(error) => Err(error.into()),
    }
}

/// A call waits, though nothing tells when it could go on.
pub fn ask_again(cx: &CallContext<'_>) -> Reply {
    Reply::Park(Then::Files(Vec::new()), Some(later(cx.now(), ROOM_AGAIN)))
}

/// Nobody reads any more: the thread gets its signal, if it is to have one.
fn broken(cx: &mut CallContext<'_>, flags: Option<SendFlags>) -> Answer {
    let is_stream = match flags {
        Some(_) => {
            let socket = cx.duplicate(cx.int(0))?;
            socket_type(&socket)? == SocketType::STREAM
        }
        None => true,
    };
    if is_stream && !flags.is_some_and(|it| it.contains(SendFlags::NOSIGNAL)) {
        let process = cx.process().real;
        sys::signal_thread(process, cx.call.tid, libc::SIGPIPE)?;
    }
    Err(Errno(libc::EPIPE))
}

/// Does a call on a file that does not wait meanwhile: what it answers, and whether the program
/// wants it to wait.
pub fn without_waiting<T>(
    file: &OwnedFd,
    call: impl FnOnce(BorrowedFd<'_>) -> T,
) -> Result<(T, bool), Errno> {
    let flags = fcntl_getfl(file)?;
    let waits = !flags.contains(OFlags::NONBLOCK);
    if waits {
        fcntl_setfl(file, flags | OFlags::NONBLOCK)?;
    }
    let done = call(file.as_fd());
    if waits {
        fcntl_setfl(file, flags)?;
    }
    Ok((done, waits))
}

/// Calls that receive or accept on a socket.
pub fn receive(cx: &mut CallContext<'_>) -> Answer {
    let flags = match cx.call.nr {
        libc::SYS_recvfrom => cx.int(3),
        libc::SYS_recvmsg => cx.int(2),
        // A time limit of `recvmmsg()` would be the host's.
        libc::SYS_recvmmsg if cx.arg(4) != 0 => return Err(Errno(libc::ENOSYS)),
        libc::SYS_recvmmsg => cx.int(3),
        _ => 0,
    };
    let has = |flag| flags & flag != 0;
    let fd = cx.int(0);
    let waits = !has(libc::MSG_DONTWAIT)
        && !fcntl_getfl(&cx.duplicate(fd)?)?.contains(OFlags::NONBLOCK);
    // These wait inside of the kernel for more than what is there.
    if waits && cx.call.nr == libc::SYS_recvmmsg && !has(libc::MSG_WAITFORONE) {
        return Err(Errno(libc::ENOSYS));
    }
    if waits && has(libc::MSG_WAITALL) {
        cx.state.note("MSG_WAITALL is not there; the program was told EOPNOTSUPP".into());
        return Err(Errno(libc::EOPNOTSUPP));
    }
    when_ready(cx, fd, PollFlags::IN, !waits)
}

/// What `poll()` asks of a descriptor; `None` of one that is not open.
fn watch(cx: &mut CallContext<'_>, fd: i32, flags: PollFlags) -> Option<Watch> {
    cx.state.work.add(work::LOOK);
    if let Some(object) = cx.object(fd) {
        return Some(Watch::Map(object.id));
    }
    Some(Watch::File(cx.duplicate(fd).ok()?, flags))
}

/// What of `flags` is true of a watch now; 0 if nothing.
fn ready_flags(cx: &CallContext<'_>, watch: &Watch, flags: PollFlags) -> u16 {
    match watch {
        Watch::Map(map) if cx.kernel.is_ready(*map) => {
            (flags & (PollFlags::IN | PollFlags::OUT)).bits()
        }
        Watch::Map(_) => 0,
        Watch::File(fd, _) => {
            let mut polled = [rustix::event::PollFd::new(fd, flags)];
            let none = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            match rustix::event::poll(&mut polled, Some(&none)) {
                Ok(1) => polled[0].revents().bits(),
                _ => 0,
            }
        }
    }
}

/// The end of a wait of so many milliseconds; negative: for ever.
fn after_millis(cx: &CallContext<'_>, millis: i32) -> Option<Nanos> {
    let millis = u64::try_from(millis).ok()?;
    Some(later(cx.now(), Nanos::from_millis(millis)))
}

fn after_timespec(cx: &CallContext<'_>, at: u64) -> Result<Option<Nanos>, Errno> {
    if at == 0 {
        return Ok(None);
    }
    let span = timespec(&cx.read(at, 16)?)?;
    Ok(Some(later(cx.now(), span)))
}

/// The answer of a call that found nothing: it waits, or its time is over.
fn park_or_end(cx: &mut CallContext<'_>, watches: Vec<Watch>, until: Option<Nanos>) -> Reply {
    if until.is_some_and(|it| it <= cx.now()) {
        Reply::Value(0)
    } else {
        Reply::Park(Then::Files(watches), until)
    }
}

/// `poll()` and `ppoll()`.
pub fn poll(cx: &mut CallContext<'_>) -> Answer {
    let count = cx.arg(1);
    if count > 4096 {
        return Err(Errno(libc::EINVAL));
    }
    let mut bytes = cx.read(cx.arg(0), count * 8)?;
    let until = match cx.waited {
        Some(until) => until,
        None if cx.call.nr == libc::SYS_poll => after_millis(cx, cx.int(2)),
        None => after_timespec(cx, cx.arg(2))?,
    };
    let (mut found, mut watches) = (0, Vec::new());
    for entry in bytes.chunks_exact_mut(8) {
        let fd = u32_at(entry, 0).cast_signed();
        let flags = PollFlags::from_bits_retain(u16::from_le_bytes([entry[4], entry[5]]));
        let told = match fd {
            i32::MIN..0 => 0,
            _ => match watch(cx, fd, flags) {
                Some(watch) => {
                    let told = ready_flags(cx, &watch, flags);
                    watches.push(watch);
                    told
                }
                None => PollFlags::NVAL.bits(),
            },
        };
        entry[6..].copy_from_slice(&told.to_le_bytes());
        found += i64::from(told != 0);
    }
    cx.write(cx.arg(0), &bytes)?;
    if found > 0 {
        return Ok(Reply::Value(found));
    }
    Ok(park_or_end(cx, watches, until))
}

/// `select()` and `pselect6()`.
pub fn select(cx: &mut CallContext<'_>) -> Answer {
    let count = cx.arg(0);
    if count > 1024 {
        return Err(Errno(libc::EINVAL));
    }
    let until = match (cx.waited, cx.call.nr) {
        (Some(until), _) => until,
        (None, libc::SYS_select) if cx.arg(4) != 0 => {
            let mut span = cx.read(cx.arg(4), 16)?;
            let nanos = u64_at(&span, 8).saturating_mul(1000);
            span[8..].copy_from_slice(&nanos.to_le_bytes());
            Some(later(cx.now(), timespec(&span)?))
        }
        (None, libc::SYS_select) => None,
        (None, _) => after_timespec(cx, cx.arg(4))?,
    };
    let len = count.div_ceil(64) * 8;
    let (mut found, mut watches, mut sets) = (0, Vec::new(), Vec::new());
    for (n, flags) in [(1, PollFlags::IN), (2, PollFlags::OUT), (3, PollFlags::PRI)] {
        if cx.arg(n) == 0 {
            continue;
        }
        let mut set = cx.read(cx.arg(n), len)?;
        for fd in 0..count as usize {
            if set[fd / 8] & 1 << (fd % 8) == 0 {
                continue;
            }
            let watch = watch(cx, fd as i32, flags).ok_or(Errno(libc::EBADF))?;
            if ready_flags(cx, &watch, flags) == 0 {
                set[fd / 8] &= !(1 << (fd % 8));
            } else {
                found += 1;
            }
            watches.push(watch);
        }
        sets.push((cx.arg(n), set));
    }
    let reply = match found {
        0 => park_or_end(cx, watches, until),
        found => Reply::Value(found),
    };
    if let Reply::Value(_) = reply {
        for (at, set) in sets {
            cx.write(at, &set)?;
        }
    }
    Ok(reply)
}

/// `epoll_ctl()`: a ring buffer is represented by a descriptor of the supervisor's.
pub fn epoll_ctl(cx: &mut CallContext<'_>) -> Answer {
    let Some(map) = cx.object(cx.int(2)).map(|it| it.id) else {
        return Ok(Reply::Continue);
    };
    let epoll = cx.duplicate(cx.int(0))?;
    let mut event = [0; 12];
    if cx.int(1) != libc::EPOLL_CTL_DEL {
        event.copy_from_slice(&cx.read(cx.arg(3), 12)?);
    }
    let op = cx.int(1);
    let (fd, _) = match cx.state.rings.entry(map) {
        Entry::Occupied(ring) => ring.into_mut(),
        Entry::Vacant(place) => {
            let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            place.insert((fd, false))
        }
    };
    sys::epoll_ctl(&epoll, op, fd, event)?;
    Ok(Reply::Value(0))
}

/// `epoll_wait()`, `epoll_pwait()` and `epoll_pwait2()`.
pub fn epoll_wait(cx: &mut CallContext<'_>) -> Answer {
    let max = usize::try_from(cx.int(2)).unwrap_or(0);
    if max == 0 {
        return Err(Errno(libc::EINVAL));
    }
    let until = match cx.waited {
        Some(until) => until,
        None if cx.call.nr == libc::SYS_epoll_pwait2 => after_timespec(cx, cx.arg(3))?,
        None => after_millis(cx, cx.int(3)),
    };
    let epoll = cx.duplicate(cx.int(0))?;
    let kernel = &*cx.kernel;
    cx.state.set_levels(kernel);
    let events = sys::epoll_take(&epoll, max)?;
    if !events.is_empty() {
        cx.write(cx.arg(1), &events)?;
        return Ok(Reply::Value((events.len() / 12) as i64));
    }
    let watches = vec![Watch::File(epoll, PollFlags::IN)];
    Ok(park_or_end(cx, watches, until))
}

/// `close()`: the last one ends an object.
pub fn close(cx: &mut CallContext<'_>) -> Answer {
    close_range_of(cx, cx.arg(0) as u32, cx.arg(0) as u32);
    Ok(Reply::Continue)
}

/// `close_range()`.
pub fn close_range(cx: &mut CallContext<'_>) -> Answer {
    const CLOEXEC: u64 = 4;
    const UNSHARE: u64 = 2;
    if cx.arg(2) & UNSHARE != 0 {
        return Err(Errno(libc::EINVAL));
    }
    if cx.arg(2) & CLOEXEC == 0 {
        close_range_of(cx, cx.arg(0) as u32, cx.arg(1) as u32);
    }
    Ok(Reply::Continue)
}

/// `dup2()` and `dup3()`: what the new number was is closed.
pub fn dup2(cx: &mut CallContext<'_>) -> Answer {
    if cx.int(0) != cx.int(1) && stat(cx, cx.int(0)).is_ok() {
        close_range_of(cx, cx.arg(1) as u32, cx.arg(1) as u32);
    }
    Ok(Reply::Continue)
}

/// Ends the objects that no descriptor but those from `first` to `last` of this process is for.
fn close_range_of(cx: &mut CallContext<'_>, first: u32, last: u32) {
    if first == last && cx.object(first.cast_signed()).is_none() {
        return;
    }
    let process = cx.process().real;
    let fds = cx.state.object_fds(cx.call.tid);
    let (going, staying): (Vec<_>, Vec<_>) =
        fds.into_iter().partition(|(fd, _)| (first..=last).contains(fd));
    let others = cx.state.processes.iter().filter(|it| it.lives && it.real != process);
    let others = others.flat_map(|it| cx.state.object_fds(it.real));
    let held: Vec<BpfId> = staying.into_iter().chain(others).map(|it| it.1).collect();
    let mut done = Vec::new();
    for (_, id) in going {
        if held.contains(&id) || done.contains(&id) {
            continue;
        }
        done.push(id);
        let key = cx.state.objects.iter().find(|(_, it)| it.id == id);
        if let Some(key) = key.map(|it| *it.0)
            && !cx.state.pins.values().any(|it| *it == key)
        {
            bpf::end(cx, key);
        }
    }
}

/// `mmap()` of a descriptor.
pub fn mmap(cx: &mut CallContext<'_>) -> Answer {
    let fd = cx.int(4);
    let Some(id) = cx.object(fd).map(|it| it.id) else {
        return Ok(Reply::Continue);
    };
    let Some(mappable) = cx.kernel.mappable(id) else {
        return Err(Errno(libc::ENODEV));
    };
    if cx.arg(3) as i32 & libc::MAP_SHARED == 0 {
        return Err(Errno(libc::EINVAL));
    }
    let is_arena = matches!(
        cx.object(fd).map(|it| &it.kind),
        Some(ObjectKind::Map(map, _)) if map.kind == bpf::ARENA
    );
    if !is_arena {
        return Ok(Reply::Continue);
    }
    bpf::arena_at(cx, id, mappable)
}
