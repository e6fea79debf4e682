//! Calls that name a socket: done by the supervisor, on a second descriptor of the program's socket
//! and with its own copy of the name, which the kernel would read a second time.
//!
//! A Unix socket is reached only if the program has bound it below the tree: no name of the
//! computer, with a path or without, and no socket that was moved into the tree. The internet is
//! for those who were given it: the filter lets no other socket be made.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl};
use rustix::net::sockopt::{socket_domain, socket_error, socket_type};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrAny,
    SocketAddrUnix, SocketFlags, SocketType,
};

use crate::anchor::link_to;
use crate::descriptors::{ask_again, in_part, when_ready, without_waiting};
use crate::growth;
use crate::paths::{PathOwner, Resolved, resolve};
use crate::state::{CallContext, Errno, Reply, LoaderState, Then, Watch, u32_at, u64_at};
use crate::sys;

type Answer = Result<Reply, Errno>;

/// Sockets with a name that a program may have at once.
const BOUND_MAX: usize = 256;
/// Bytes of an address (`sizeof(struct sockaddr_storage)`).
const ADDRESS_MAX: u64 = 128;
/// The longest message; more than a socket takes at once.
const MESSAGE_MAX: u64 = 1 << 20;
/// The longest ancillary data: 253 descriptors (`SCM_MAX_FD`) and their head, and room.
const CONTROL_MAX: u64 = 4096;

/// The address of what a descriptor stands for: a whole path may be longer than an address.
fn address_of(fd: &OwnedFd, below: Option<&OsStr>) -> Result<SocketAddrUnix, Errno> {
    let mut path = link_to(fd.as_fd());
    path.extend(below);
    Ok(SocketAddrUnix::new(path)?)
}

/// A socket of the program's own, at a path below the tree.
fn reach(state: &LoaderState, path: &Path) -> Result<OwnedFd, Errno> {
    let file = state.tree.anchor().name(path)?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(Errno(libc::ECONNREFUSED));
    }
    if !state.sockets.contains_key(&(stat.st_dev, stat.st_ino)) {
        return Err(Errno(libc::EACCES));
    }
    Ok(file)
}

/// Connects to the program's socket at a path below the tree, without waiting.
///
/// # Errors
/// `EACCES` if the program has not bound it, `EAGAIN` if its queue of connections is full.
pub fn connect_from_outside(state: &LoaderState, path: &Path) -> io::Result<UnixStream> {
    let error = |it: Errno| io::Error::from_raw_os_error(it.0);
    let file = reach(state, path).map_err(error)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let family = AddressFamily::UNIX;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address_of(&file, None).map_err(error)?)?;
    Ok(UnixStream::from(socket))
}

/// Where a name leads that stands in an address: below the tree.
fn place(cx: &mut CallContext<'_>, address: &[u8], unnamed: i32) -> Result<Resolved, Errno> {
    if family(address) != libc::AF_UNIX {
        return Err(Errno(libc::EINVAL));
    }
    let name = &address[2..];
    let end = name.iter().position(|it| *it == 0).unwrap_or(name.len());
    // Names that are no paths are the computer's.
    if end == 0 {
        return Err(Errno(unnamed));
    }
    let cwd = cx.process().cwd.clone();
    let found = resolve(cx.state, cx.call.tid, &cwd, &name[..end], true)?;
    if found.place == PathOwner::Tree { Ok(found) } else { Err(Errno(libc::EACCES)) }
}

fn family(address: &[u8]) -> i32 {
    i32::from(u16::from_le_bytes([address[0], address[1]]))
}

/// An address of the internet.
fn inet(address: &[u8]) -> Result<SocketAddr, Errno> {
    let port = |it: &[u8]| u16::from_be_bytes([it[2], it[3]]);
    match (family(address), address.len()) {
        (libc::AF_INET, 16..) => {
            let [a, b, c, d] = [4, 5, 6, 7].map(|at| address[at]);
            Ok((Ipv4Addr::new(a, b, c, d), port(address)).into())
        }
        (libc::AF_INET6, 28..) => {
            let bytes: [u8; 16] = address[8..24].try_into().unwrap_or_default();
            let flow = u32::from_be_bytes([4, 5, 6, 7].map(|at| address[at]));
            let ip = Ipv6Addr::from(bytes);
            Ok(SocketAddrV6::new(ip, port(address), flow, u32_at(address, 24)).into())
        }
        (libc::AF_INET | libc::AF_INET6, _) => Err(Errno(libc::EINVAL)),
        _ => Err(Errno(libc::EAFNOSUPPORT)),
    }
}

/// The address of `bind()` or `connect()`, and the socket.
fn named(cx: &mut CallContext<'_>) -> Result<(Vec<u8>, OwnedFd, AddressFamily), Errno> {
    let len = cx.arg(2) & 0xffff_ffff;
    if !(2..=ADDRESS_MAX).contains(&len) {
        return Err(Errno(libc::EINVAL));
    }
    let address = cx.read(cx.arg(1), len)?;
    let socket = cx.duplicate(cx.int(0))?;
    let domain = socket_domain(&socket)?;
    Ok((address, socket, domain))
}

/// `bind()`.
pub fn bind(cx: &mut CallContext<'_>) -> Answer {
    let (address, socket, domain) = named(cx)?;
    if domain != AddressFamily::UNIX {
        rustix::net::bind(&socket, &inet(&address)?)?;
        return Ok(Reply::Value(0));
    }
    let found = place(cx, &address, libc::EACCES)?;
    let has_name = |fd: &OwnedFd| rustix::fs::fstat(fd).is_ok_and(|it| it.st_nlink > 0);
    cx.state.sockets.retain(|_, fd| has_name(fd));
    if cx.state.sockets.len() >= BOUND_MAX {
        return Err(Errno(libc::ENOSPC));
    }
    growth::name(cx, &found)?;
    let (folder, last) = found.folder(cx.state)?;
    rustix::net::bind(&socket, &address_of(&folder, Some(last))?)?;
    let named = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&folder, last, named, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    cx.state.sockets.insert((stat.st_dev, stat.st_ino), file);
    Ok(Reply::Value(0))
}

/// `connect()`, without waiting inside of the kernel.
pub fn connect(cx: &mut CallContext<'_>) -> Answer {
    let (address, socket, domain) = named(cx)?;
    if family(&address) == libc::AF_UNSPEC {
        rustix::net::connect_unspec(&socket)?;
        return Ok(Reply::Value(0));
    }
    if domain != AddressFamily::UNIX {
        // What was begun has ended.
        if cx.waited.is_some() {
            socket_error(&socket)??;
            return Ok(Reply::Value(0));
        }
        let to = inet(&address)?;
        return match without_waiting(&socket, |socket| rustix::net::connect(socket, &to))? {
            (Err(rustix::io::Errno::INPROGRESS), true) => {
                let watches = vec![Watch::File(socket, PollFlags::OUT)];
                Ok(Reply::Park(Then::Files(watches), None))
            }
            (done, _) => done.map(|()| Reply::Value(0)).map_err(Errno::from),
        };
    }
    let found = place(cx, &address, libc::ECONNREFUSED)?;
    let to = reach(cx.state, &found.below)?;
    let to = address_of(&to, None).map(|address| (to, address))?;
    match without_waiting(&socket, |socket| rustix::net::connect(socket, &to.1))? {
        // No descriptor of the program's tells when the listener has room.
        (Err(rustix::io::Errno::AGAIN), true) => {
            Ok(ask_again(cx))
        }
        (done, _) => done.map(|()| Reply::Value(0)).map_err(Errno::from),
    }
}

/// A message, out of the program's memory.
#[derive(Debug, Default)]
struct Message {
    name: Vec<u8>,
    data: Vec<u8>,
    fds: Vec<OwnedFd>,
}

/// Calls that send on a socket.
pub fn send(cx: &mut CallContext<'_>) -> Answer {
    let fd = cx.int(0);
    let flags = match cx.call.nr {
        libc::SYS_sendto => cx.int(3),
        libc::SYS_sendmsg => cx.int(2),
        _ => return Err(Errno(libc::ENOSYS)),
    };
    let dont_wait = flags & libc::MSG_DONTWAIT != 0;
    let is_plain = cx.call.nr == libc::SYS_sendto && cx.arg(4) == 0;
    if is_plain && dont_wait {
        // Its arguments stand in registers.
        return Ok(Reply::Continue);
    }
    if is_plain {
        return in_part(cx, fd, Some(SendFlags::from_bits_retain(flags.cast_unsigned())));
    }
    let socket = cx.duplicate(fd)?;
    let waits = !dont_wait && !fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK);
    let reply = when_ready(cx, fd, PollFlags::OUT, dont_wait)?;
    if matches!(reply, Reply::Park(..)) {
        return Ok(reply);
    }
    let stream = socket_type(&socket)? == SocketType::STREAM;
    let message = match cx.call.nr {
        libc::SYS_sendto => Message {
            name: name(cx, cx.arg(4), cx.arg(5))?,
            data: cx.read(cx.arg(1), part(cx.arg(2), stream)?)?,
            fds: Vec::new(),
        },
        _ => gather(cx, stream)?,
    };
    let flags = SendFlags::from_bits_retain(flags.cast_unsigned());
    let is_quiet = flags.contains(SendFlags::NOSIGNAL);
    match transmit(cx, &socket, &message, flags | SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(sent) => Ok(Reply::Value(sent as i64)),
        // Its receiver has no room, and nothing tells when it has.
        Err(Errno(libc::EAGAIN)) if waits => {
            Ok(ask_again(cx))
        }
        Err(Errno(libc::EPIPE)) if stream && !is_quiet => {
            let process = cx.process().real;
            sys::signal_thread(process, cx.call.tid, libc::SIGPIPE)?;
            Err(Errno(libc::EPIPE))
        }
        Err(error) => Err(error),
    }
}

/// As much of a message as is sent at once: of a stream a part will do.
fn part(len: u64, stream: bool) -> Result<u64, Errno> {
    match len {
        0..=MESSAGE_MAX => Ok(len),
        _ if stream => Ok(MESSAGE_MAX),
        _ => Err(Errno(libc::EMSGSIZE)),
    }
}

fn name(cx: &CallContext<'_>, at: u64, len: u64) -> Result<Vec<u8>, Errno> {
    let len = len & 0xffff_ffff;
    match (at, len) {
        (0, _) | (_, 0) => Ok(Vec::new()),
        (_, 2..=ADDRESS_MAX) => cx.read(at, len),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// The message of a `sendmsg()`: `struct msghdr`, Linux 6.18, include/linux/socket.h.
fn gather(cx: &mut CallContext<'_>, stream: bool) -> Result<Message, Errno> {
    /// `UIO_MAXIOV`, Linux 6.18, include/uapi/linux/uio.h.
    const PARTS_MAX: u64 = 1024;
    let head = cx.read(cx.arg(1), 56)?;
    let parts = u64_at(&head, 24);
    if parts > PARTS_MAX {
        return Err(Errno(libc::EMSGSIZE));
    }
    let name = name(cx, u64_at(&head, 0), u64_at(&head, 8))?;
    let parts = cx.read(u64_at(&head, 16), parts * 16)?;
    let mut data = Vec::new();
    for each in parts.chunks_exact(16) {
        let all = (data.len() as u64).saturating_add(u64_at(each, 8));
        let len = part(all, stream)? - data.len() as u64;
        data.extend(cx.read(u64_at(each, 0), len)?);
    }
    let control = match (u64_at(&head, 32), u64_at(&head, 40)) {
        (0, _) | (_, 0) => Vec::new(),
        (_, CONTROL_MAX..) => return Err(Errno(libc::ENOBUFS)),
        (at, len) => cx.read(at, len)?,
    };
    let fds = rights(&control)?.into_iter().map(|fd| cx.duplicate(fd));
    let fds = fds.collect::<Result<_, _>>()?;
    Ok(Message { name, data, fds })
}

/// The descriptors that ancillary data hands over; nothing else is passed on.
fn rights(control: &[u8]) -> Result<Vec<i32>, Errno> {
    const HEAD: usize = 16;
    let (mut at, mut fds) = (0, Vec::new());
    while control.len() - at >= HEAD {
        let len = u64_at(control, at);
        let (level, kind) = (u32_at(control, at + 8), u32_at(control, at + 12));
        let end = usize::try_from(len).ok().and_then(|len| at.checked_add(len));
        let end = end.filter(|end| *end >= at + HEAD && *end <= control.len());
        let end = end.ok_or(Errno(libc::EINVAL))?;
        if (level, kind) != (libc::SOL_SOCKET as u32, libc::SCM_RIGHTS as u32) {
            return Err(Errno(libc::EINVAL));
        }
        let each = control[at + HEAD..end].chunks_exact(4);
        fds.extend(each.map(|fd| u32_at(fd, 0).cast_signed()));
        at = end.next_multiple_of(8).min(control.len());
    }
    Ok(fds)
}

/// Sends the copy of a message.
fn transmit(
    cx: &mut CallContext<'_>,
    socket: &OwnedFd,
    message: &Message,
    flags: SendFlags,
) -> Result<usize, Errno> {
    let data = [io::IoSlice::new(&message.data)];
    let fds: Vec<BorrowedFd<'_>> = message.fds.iter().map(|it| it.as_fd()).collect();
    let rights = SendAncillaryMessage::ScmRights(&fds);
    let mut room = vec![MaybeUninit::uninit(); if fds.is_empty() { 0 } else { rights.size() }];
    let mut control = SendAncillaryBuffer::new(&mut room);
    if !fds.is_empty() && !control.push(rights) {
        return Err(Errno(libc::EINVAL));
    }
    if message.name.is_empty() {
        return Ok(rustix::net::sendmsg(socket, &data, &mut control, flags)?);
    }
    let (_held, to) = if socket_domain(socket)? == AddressFamily::UNIX {
        let found = place(cx, &message.name, libc::ECONNREFUSED)?;
        let file = reach(cx.state, &found.below)?;
        let address = address_of(&file, None)?;
        (Some(file), SocketAddrAny::from(address))
    } else {
        (None, SocketAddrAny::from(inet(&message.name)?))
    };
    Ok(rustix::net::sendmsg_addr(socket, &to, &data, &mut control, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_internet_are_read_whole_or_refused() {
        let mut bytes = vec![2, 0, 0x1f, 0x90, 127, 0, 0, 1];
        assert_eq!(inet(&bytes), Err(Errno(libc::EINVAL)));
        bytes.resize(16, 0);
        assert_eq!(inet(&bytes), Ok("127.0.0.1:8080".parse().unwrap()));
        bytes[0] = 10;
        assert_eq!(inet(&bytes), Err(Errno(libc::EINVAL)));
        bytes = vec![0; 28];
        (bytes[0], bytes[3], bytes[23]) = (10, 80, 1);
        assert_eq!(inet(&bytes), Ok("[::1]:80".parse().unwrap()));
        bytes[0] = 1;
        assert_eq!(inet(&bytes), Err(Errno(libc::EAFNOSUPPORT)));
    }

    #[test]
    fn ancillary_data_hands_over_descriptors_and_nothing_else() {
        let message = |len: u64, level: i32, kind: i32, fds: &[i32]| {
            let mut bytes = len.to_le_bytes().to_vec();
            bytes.extend([level, kind].iter().chain(fds).flat_map(|it| it.to_le_bytes()));
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes
        };
        let own = |len, fds| message(len, libc::SOL_SOCKET, libc::SCM_RIGHTS, fds);
        assert_eq!(rights(&own(28, &[5, 6, 7])), Ok(vec![5, 6, 7]));
        assert_eq!(rights(&[own(20, &[5]), own(20, &[6])].concat()), Ok(vec![5, 6]));
        // Who sends it, and data of another level.
        let who = message(28, libc::SOL_SOCKET, libc::SCM_CREDENTIALS, &[1, 0, 0]);
        assert_eq!(rights(&who), Err(Errno(libc::EINVAL)));
        assert_eq!(rights(&message(20, libc::SOL_IP, 8, &[1])), Err(Errno(libc::EINVAL)));
        for len in [0, 15, 29, u64::MAX] {
            assert_eq!(rights(&own(len, &[5])), Err(Errno(libc::EINVAL)), "{len}");
        }
    }
}
