//! The program's sockets, and the computer's, which it does not reach.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use crate::support::{BOOT, Driven, settings};
use loader::Supervisor;
use model::Nanos;

const LONG: Nanos = Nanos::from_secs(4000);
const STATS: &str = "run/scx/root/stats";

fn printed(mut driven: Driven<Supervisor>) -> Vec<String> {
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}{}", driven.out(), driven.err());
    driven.out().lines().map(str::to_owned).collect()
}

#[test]
fn no_socket_of_the_computer_is_reached_with_the_net_or_by_moving_it() {
    let folder = tempfile::tempdir().unwrap();
    let [stream, datagram] = ["stream", "datagram"].map(|it| folder.path().join(it));
    let listener = UnixListener::bind(&stream).unwrap();
    let receiver = UnixDatagram::bind(&datagram).unwrap();
    let name = SocketAddr::from_abstract_name("runslice-of-others").unwrap();
    let named = UnixListener::bind_addr(&name).unwrap();
    for socket in [&listener, &named] {
        socket.set_nonblocking(true).unwrap();
    }
    receiver.set_nonblocking(true).unwrap();
    let mut settings = settings(4);
    settings.net = true;
    settings.folder = Some(folder.path().to_owned());
    let args = [
        "sockets of others",
        stream.to_str().unwrap(),
        datagram.to_str().unwrap(),
    ];
    let expected = [
        "connect 13",
        "connect datagrams 13",
        "send 13",
        "message 13",
        "abstract 111",
        "send abstract 111",
        "link 13",
        "moved true 13",
        "bind abstract 13",
        "another family 22",
    ];
    assert_eq!(printed(Driven::subject(&args, settings)), expected);
    assert!(
        listener.accept().is_err() && named.accept().is_err(),
        "somebody has connected"
    );
    assert!(receiver.recv(&mut [0; 8]).is_err(), "somebody has sent");
}

#[test]
fn a_program_sends_by_name_and_hands_over_descriptors() {
    let expected = [
        "by name",
        "message 0",
        "received 1",
        "hands over 0",
        "read through",
        "broken BrokenPipe",
        "broken message 32",
    ];
    assert_eq!(
        printed(Driven::subject(&["own sockets"], settings(4))),
        expected
    );
}

#[test]
fn a_connection_waits_in_simulated_time_until_there_is_room() {
    assert_eq!(
        printed(Driven::subject(&["a full queue"], settings(4))),
        ["4 came"]
    );
}

/// Why a client has no connection to a program, while that runs.
fn refusal(args: &[&str]) -> Option<i32> {
    let mut driven = Driven::subject(args, settings(4));
    driven.run(BOOT + Nanos::from_millis(500));
    assert!(!driven.out().is_empty(), "{}", driven.err());
    driven
        .user
        .connect(STATS)
        .err()
        .and_then(|it| it.raw_os_error())
}

/// A link is no socket. Linux 6.18, include/uapi/asm-generic/errno.h.
const REFUSED: i32 = 111;
const AGAIN: i32 = 11;

#[test]
fn a_client_follows_no_link_out_of_the_tree_and_never_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let to = path.to_str().unwrap();
    assert_eq!(refusal(&["a link for clients", to]), Some(REFUSED));
    assert!(listener.accept().is_err(), "somebody has connected");
    assert_eq!(refusal(&["no room for clients"]), Some(AGAIN));
    assert_eq!(refusal(&["a socket for clients"]), None);
}
