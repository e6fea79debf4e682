//! Cases about sockets: the program's own, and those of the computer.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::thread;

use crate::cases::errno;

/// Runs the case of that name, if there is one.
pub fn run(case: &str, rest: &[String]) -> bool {
    match case {
        "sockets of others" => others(rest),
        "own sockets" => own(),
        "a full queue" => full_queue(),
        "a link for clients" => link_for_clients(&rest[0]),
        "no room for clients" => no_room_for_clients(),
        "a socket for clients" => drop(serve(8)),
        _ => return false,
    }
    true
}

fn address(name: &[u8]) -> (libc::sockaddr_un, u32) {
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    for (to, byte) in address.sun_path.iter_mut().zip(name) {
        *to = *byte as libc::c_char;
    }
    (address, 2 + name.len() as u32)
}

fn socket(kind: i32) -> i32 {
    unsafe { libc::socket(libc::AF_UNIX, kind, 0) }
}

fn connect(kind: i32, name: &[u8]) -> i32 {
    let (address, len) = address(name);
    errno(unsafe { libc::connect(socket(kind), (&raw const address).cast(), len) }.into())
}

fn send_to(name: &[u8]) -> i32 {
    let (address, len) = address(name);
    let to = (&raw const address).cast();
    let from = socket(libc::SOCK_DGRAM);
    errno(unsafe { libc::sendto(from, b"x".as_ptr().cast(), 1, 0, to, len) } as i64)
}

/// `sendmsg()` of a byte, to a name or none, with a descriptor or none.
fn send_message(from: i32, name: &[u8], fd: Option<i32>) -> i32 {
    let (mut address, len) = address(name);
    let mut byte = *b"m";
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0_u64; 3];
    unsafe {
        let mut head: libc::msghdr = std::mem::zeroed();
        (head.msg_iov, head.msg_iovlen) = (&raw mut part, 1);
        if !name.is_empty() {
            (head.msg_name, head.msg_namelen) = ((&raw mut address).cast(), len);
        }
        if let Some(fd) = fd {
            (head.msg_control, head.msg_controllen) = (control.as_mut_ptr().cast(), 24);
            let first = libc::CMSG_FIRSTHDR(&raw const head);
            (*first).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as usize;
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            libc::CMSG_DATA(first).cast::<i32>().write(fd);
        }
        errno(libc::sendmsg(from, &raw const head, 0) as i64)
    }
}

/// Sockets of the computer: streams and datagrams at paths, a name without a path, and what was
/// moved into a folder of the program's own.
fn others(args: &[String]) {
    let (stream, datagram) = (args[0].as_bytes(), args[1].as_bytes());
    println!("connect {}", connect(libc::SOCK_STREAM, stream));
    println!("connect datagrams {}", connect(libc::SOCK_DGRAM, datagram));
    println!("send {}", send_to(datagram));
    let from = socket(libc::SOCK_DGRAM);
    println!("message {}", send_message(from, datagram, None));
    println!(
        "abstract {}",
        connect(libc::SOCK_STREAM, b"\0runslice-of-others")
    );
    println!("send abstract {}", send_to(b"\0runslice-of-others"));
    std::os::unix::fs::symlink(&args[0], "/run/link").unwrap();
    println!("link {}", connect(libc::SOCK_STREAM, b"/run/link"));
    let is_moved = fs::rename(&args[0], "/tmp/moved").is_ok();
    println!(
        "moved {is_moved} {}",
        connect(libc::SOCK_STREAM, b"/tmp/moved")
    );
    let unix = socket(libc::SOCK_STREAM);
    let (bound, len) = address(b"\0runslice-own");
    let done = unsafe { libc::bind(unix, (&raw const bound).cast(), len) };
    println!("bind abstract {}", errno(done.into()));
    let mut of_inet: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    of_inet.sin_family = libc::AF_INET as u16;
    let done = unsafe { libc::connect(unix, (&raw const of_inet).cast(), 16) };
    println!("another family {}", errno(done.into()));
}

/// Datagrams to a name, and a descriptor handed over.
fn own() {
    let here = UnixDatagram::bind("/run/own").unwrap();
    let there = UnixDatagram::unbound().unwrap();
    let mut bytes = [0; 8];
    there.send_to(b"by name", "/run/own").unwrap();
    let len = here.recv(&mut bytes).unwrap();
    println!("{}", String::from_utf8_lossy(&bytes[..len]));
    println!(
        "message {}",
        send_message(there.as_raw_fd(), b"/run/own", None)
    );
    println!("received {}", here.recv(&mut bytes).unwrap());
    let (one, other) = UnixStream::pair().unwrap();
    let mut pipe = [0; 2];
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    println!(
        "hands over {}",
        send_message(one.as_raw_fd(), b"", Some(pipe[0]))
    );
    let mut control = [0_u64; 3];
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: 8,
    };
    let mut given = unsafe {
        let mut head: libc::msghdr = std::mem::zeroed();
        (head.msg_iov, head.msg_iovlen) = (&raw mut part, 1);
        (head.msg_control, head.msg_controllen) = (control.as_mut_ptr().cast(), 24);
        assert_eq!(libc::recvmsg(other.as_raw_fd(), &raw mut head, 0), 1);
        let first = libc::CMSG_FIRSTHDR(&raw const head);
        fs::File::from_raw_fd(libc::CMSG_DATA(first).cast::<i32>().read())
    };
    unsafe { libc::write(pipe[1], b"through".as_ptr().cast(), 7) };
    let len = given.read(&mut bytes).unwrap();
    println!("read {}", String::from_utf8_lossy(&bytes[..len]));
    drop(other);
    println!("broken {:?}", (&one).write(b"x").unwrap_err().kind());
    println!("broken message {}", {
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        send_message(one.as_raw_fd(), b"", None)
    });
}

/// Clients that wait until a server, which is slow, has taken those before them.
fn full_queue() {
    let listener = UnixListener::bind("/run/slow").unwrap();
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let client = |_| thread::spawn(|| UnixStream::connect("/run/slow").is_ok());
    let clients: Vec<_> = (0..4).map(client).collect();
    for _ in 0..4 {
        thread::sleep(std::time::Duration::from_millis(50));
        listener.accept().unwrap();
    }
    println!(
        "{} came",
        clients
            .into_iter()
            .filter_map(|it| it.join().ok())
            .filter(|it| *it)
            .count()
    );
}

const STATS: &str = "/run/scx/root/stats";

/// Where clients of the program's metrics connect stands a link.
fn link_for_clients(to: &str) {
    fs::create_dir_all("/run/scx/root").unwrap();
    std::os::unix::fs::symlink(to, STATS).unwrap();
    println!("link");
}

fn serve(queue: i32) -> UnixListener {
    fs::create_dir_all("/run/scx/root").unwrap();
    let listener = UnixListener::bind(STATS).unwrap();
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), queue) }, 0);
    println!("listens");
    thread::sleep(std::time::Duration::from_secs(1));
    listener
}

/// A server whose queue its own clients fill.
fn no_room_for_clients() {
    fs::create_dir_all("/run/scx/root").unwrap();
    let listener = UnixListener::bind(STATS).unwrap();
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let client = || socket(libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
    let (address, len) = address(STATS.as_bytes());
    let connect = |fd: i32| unsafe { libc::connect(fd, (&raw const address).cast(), len) };
    for _ in 0..5 {
        println!("connects {}", errno(connect(client()).into()));
    }
    thread::sleep(std::time::Duration::from_secs(1));
}
