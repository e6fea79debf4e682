//! The cases.
#![expect(unsafe_code, reason = "system calls that std does not make")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "a test program: it may crash"
)]

mod attacks;

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub fn run() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = &args[1..];
    match args[0].as_str() {
        "clocks" => clocks(),
        "threads" => threads(),
        "identity" => identity(),
        "pipes" => pipes(),
        "sockets" => sockets(),
        "epoll" => epoll(),
        "signals" => signals(rest),
        "denied" => denied(),
        "calls" => calls(rest),
        "reaches" => reaches(rest),
        "escapes" => escapes(rest),
        "plants" => attacks::plants(rest),
        "takes" => attacks::takes(rest),
        "executes" => attacks::executes(rest),
        "grows" => attacks::grows(),
        "fork" => fork(),
        "forks" => forks(),
        "failing vforks" => failing_vforks(),
        "child of forks" => spin_silently(),
        "floods" => floods(),
        "hang" => hang(),
        "spin" => spin(),
        "sleep" => thread::sleep(Duration::from_secs(1000)),
        "files" => files(),
        "joules" => println!("{:?}", fs::exists("/sys/kernel/debug/energy_model").ok()),
        "maps" => maps(),
        "pins" => pins(),
        "inherits" => inherits(),
        "attaches" => attaches(),
        "batches" => crate::batches::run(),
        "devices" => crate::devices::run(rest),
        "waits" => crate::waits::run(),
        "hostile" => crate::hostile::run(rest),
        "fail" => fail(),
        "name" => println!("a child process"),
        "barriers" => barriers(),
        "yield" => (0..5).for_each(|_| thread::yield_now()),
        other => assert!(
            crate::children::run(other, rest)
                || crate::sockets::run(other, rest)
                || crate::limits::run(other)
                || crate::deaths::run(other, rest),
            "no case {other}"
        ),
    }
}

/// As schedulers do it that read what their other threads have written: a barrier a reading.
fn barriers() {
    let barrier = |command: libc::c_int, flags: libc::c_int| unsafe {
        libc::syscall(libc::SYS_membarrier, command, flags, 0)
    };
    let done = (0..300).filter(|_| barrier(libc::MEMBARRIER_CMD_GLOBAL, 0) == 0);
    println!("global {}", done.count());
    for (name, command, flags) in [
        ("flags", libc::MEMBARRIER_CMD_GLOBAL, 2),
        ("none", 1 << 30, 0),
    ] {
        let answer = barrier(command, flags);
        println!("{name} {answer} {}", errno(answer));
    }
    let known = barrier(libc::MEMBARRIER_CMD_QUERY, 0);
    println!(
        "private {}",
        known & i64::from(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0
    );
}

fn clocks() {
    let begin = Instant::now();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    println!("wall {}", wall.as_nanos());
    thread::sleep(Duration::from_millis(1500));
    println!("slept {}", begin.elapsed().as_nanos());
    let until = Instant::now() + Duration::from_millis(1);
    let mut looks = 0;
    while Instant::now() < until {
        looks += 1;
    }
    println!("looks {looks}");
    let pair = (Mutex::new(()), Condvar::new());
    let begin = Instant::now();
    let lock = pair.0.lock().unwrap();
    let (_lock, late) = pair
        .1
        .wait_timeout(lock, Duration::from_millis(250))
        .unwrap();
    println!(
        "timed out {} {}",
        late.timed_out(),
        begin.elapsed().as_millis()
    );
    println!(
        "uptime {}",
        fs::read_to_string("/proc/uptime").unwrap().trim()
    );
}

fn threads() {
    let (send, receive) = mpsc::channel();
    let turn = Arc::new((Mutex::new(0), Condvar::new()));
    let each: Vec<_> = (0..8)
        .map(|n| {
            let (send, turn) = (send.clone(), turn.clone());
            let work = move || {
                for round in 0..10 {
                    let mut now = turn.0.lock().unwrap();
                    if n == 3 {
                        *now += 1;
                        turn.1.notify_all();
                    } else if round % 5 == n % 5 {
                        let late = Duration::from_micros(100 * (n + 1));
                        now = turn.1.wait_timeout(now, late).unwrap().0;
                    }
                    send.send((n, round, *now)).unwrap();
                    drop(now);
                    if round % 7 == 0 {
                        thread::yield_now();
                    }
                }
            };
            thread::Builder::new()
                .name(format!("worker-{n}"))
                .spawn(work)
                .unwrap()
        })
        .collect();
    drop(send);
    for (n, round, now) in receive {
        println!("{n} {round} {now}");
    }
    for one in each {
        one.join().unwrap();
    }
    println!("joined");
}

fn identity() {
    let random: u64 = {
        let mut word = [0; 8];
        fs::File::open("/dev/urandom")
            .unwrap()
            .read_exact(&mut word)
            .unwrap();
        u64::from_le_bytes(word)
    };
    let mut drawn = 0_u64;
    unsafe {
        libc::syscall(libc::SYS_getrandom, &raw mut drawn, 8, 0);
        println!(
            "pid {} tid {} uid {}",
            libc::getpid(),
            libc::gettid(),
            libc::getuid()
        );
        println!("cpu {}", libc::sched_getcpu());
    }
    println!("random {random} {drawn}");
    let auxiliary = unsafe { libc::getauxval(libc::AT_RANDOM) as *const [u8; 16] };
    println!("auxiliary {:?}", unsafe { *auxiliary });
    println!("cpus {}", thread::available_parallelism().unwrap());
    println!("address {:?}", Box::into_raw(Box::new(1_u64)));
    let me = thread::spawn(|| unsafe { libc::gettid() }).join().unwrap();
    println!("thread {me}");
    println!("exe {}", std::env::current_exe().unwrap().display());
    println!("cwd {}", std::env::current_dir().unwrap().display());
    let mut vars: Vec<_> = std::env::vars().map(|it| it.0).collect();
    vars.sort();
    println!("{vars:?}");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let told = ["Tgid:", "Pid:", "PPid:", "Uid:", "CapEff:", "Seccomp:"];
    let told = status
        .lines()
        .filter(|line| told.iter().any(|it| line.starts_with(it)));
    println!("{:?}", told.collect::<Vec<_>>());
    for path in ["/proc/self/stat", "/proc/thread-self/stat"] {
        print!("{}", fs::read_to_string(path).unwrap());
    }
    println!(
        "{:?}",
        fs::read_to_string("/proc/self/sched").unwrap_err().kind()
    );
}

fn pipe() -> (fs::File, fs::File) {
    let mut fds = [0; 2];
    unsafe {
        assert_eq!(libc::pipe(fds.as_mut_ptr()), 0);
        (fs::File::from_raw_fd(fds[0]), fs::File::from_raw_fd(fds[1]))
    }
}

fn pipes() {
    let (mut from, mut to) = pipe();
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        all.len()
    });
    // More than a pipe holds: the writer waits for the reader.
    to.write_all(&vec![7; 300_000]).unwrap();
    drop(to);
    println!("read {}", reader.join().unwrap());
}

fn sockets() {
    fs::create_dir_all("/var/run/scx/root").unwrap();
    let path = "/var/run/scx/root/stats";
    let listener = UnixListener::bind(path).unwrap();
    let server = thread::spawn(move || {
        let (mut one, _) = listener.accept().unwrap();
        let mut text = String::new();
        one.read_to_string(&mut text).unwrap();
        text.len()
    });
    let mut client = UnixStream::connect(path).unwrap();
    client.write_all("x".repeat(1_000_000).as_bytes()).unwrap();
    drop(client);
    println!("served {}", server.join().unwrap());
    println!(
        "outside {:?}",
        std::net::TcpStream::connect("127.0.0.1:1")
            .unwrap_err()
            .kind()
    );
}

fn epoll() {
    let event = |fd: u64| libc::epoll_event {
        events: libc::EPOLLIN as u32,
        u64: fd,
    };
    unsafe {
        let epoll = libc::epoll_create1(0);
        let wake = libc::eventfd(0, 0);
        assert_eq!(
            libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, wake, &mut event(5)),
            0
        );
        let mut found = [event(0); 4];
        let begin = Instant::now();
        let none = libc::epoll_wait(epoll, found.as_mut_ptr(), 4, 30);
        println!("none {none} after {}", begin.elapsed().as_millis());
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            libc::write(wake, (&raw const ONE).cast(), 8);
        });
        for _ in 0..2 {
            let some = libc::epoll_wait(epoll, found.as_mut_ptr(), 4, -1);
            println!("level {some} {}", { found[0].u64 });
        }
        other.join().unwrap();
        let mut word = 0_u64;
        libc::read(wake, (&raw mut word).cast(), 8);
        println!(
            "empty {}",
            libc::epoll_wait(epoll, found.as_mut_ptr(), 4, 0)
        );
        let ring = map(27, 0, 0, 4096);
        assert_eq!(
            libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, ring, &mut event(9)),
            0
        );
        let some = libc::epoll_wait(epoll, found.as_mut_ptr(), 4, -1);
        println!("ring {some} {}", { found[0].u64 });
        assert_eq!(
            libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, ring, &mut event(9)),
            0
        );
        println!(
            "gone {}",
            libc::epoll_wait(epoll, found.as_mut_ptr(), 4, 20)
        );
    }
}

static ONE: u64 = 1;

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: i32) {
    STOP.store(true, Ordering::Relaxed);
}

fn signals(args: &[String]) {
    if args.first().is_some_and(|it| it == "default") {
        thread::sleep(Duration::from_secs(100));
    }
    let handler = stop as extern "C" fn(i32);
    unsafe { libc::signal(libc::SIGINT, handler as libc::sighandler_t) };
    let begin = Instant::now();
    let mut sleeps = 0;
    while !STOP.load(Ordering::Relaxed) {
        let span = libc::timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        unsafe { libc::nanosleep(&raw const span, std::ptr::null_mut()) };
        sleeps += 1;
    }
    println!(
        "stopped after {} and {sleeps} sleeps",
        begin.elapsed().as_millis()
    );
}

pub fn errno(result: i64) -> i32 {
    if result >= 0 {
        0
    } else {
        std::io::Error::last_os_error().raw_os_error().unwrap()
    }
}

fn denied() {
    unsafe {
        let calls: &[(&str, i64)] = &[
            ("mount", libc::SYS_mount),
            ("ptrace", libc::SYS_ptrace),
            ("unshare", libc::SYS_unshare),
            ("setns", libc::SYS_setns),
            ("chroot", libc::SYS_chroot),
            ("reboot", libc::SYS_reboot),
            ("clock_settime", libc::SYS_clock_settime),
            ("process_vm_readv", libc::SYS_process_vm_readv),
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("timerfd_create", libc::SYS_timerfd_create),
            ("getpid of x32", 0x4000_0000 | libc::SYS_getpid),
        ];
        for (name, nr) in calls {
            println!("{name} {}", errno(libc::syscall(*nr, 0, 0, 0, 0, 0, 0)));
        }
        println!(
            "socket {}",
            errno(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0).into())
        );
        println!(
            "netlink {}",
            errno(libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).into())
        );
        let attr = [0_u64; 8];
        println!(
            "bpf {}",
            errno(libc::syscall(libc::SYS_bpf, 40, &raw const attr, 64))
        );
        println!("kill {}", errno(libc::kill(1, 9).into()));
        let path = libc::open(c"/".as_ptr(), libc::O_PATH);
        println!("path {}", errno(path.into()));
        println!("bad pointer {}", errno(libc::syscall(libc::SYS_open, 8, 0)));
    }
}

/// System calls by their numbers, with no arguments.
fn calls(numbers: &[String]) {
    for number in numbers {
        let nr: libc::c_long = number.parse().unwrap();
        let answer = unsafe { libc::syscall(nr, 0, 0, 0, 0, 0, 0) };
        println!("{number} {}", errno(answer));
    }
}

/// Reaches for a process of the host, and for a socket of the host's at a path.
fn reaches(args: &[String]) {
    let victim: i32 = args[0].parse().unwrap();
    let limit = |pid: i32, most: u64| {
        let pair = [most, most];
        let none = std::ptr::null::<u64>();
        unsafe {
            libc::syscall(
                libc::SYS_prlimit64,
                pid,
                libc::RLIMIT_NOFILE,
                &raw const pair,
                none,
            )
        }
    };
    unsafe {
        println!("limits {}", errno(limit(victim, 64)));
        println!(
            "nice {}",
            errno(libc::setpriority(libc::PRIO_PROCESS, victim as u32, 19).into())
        );
        let mask = 1_u64;
        let cpus = libc::syscall(libc::SYS_sched_setaffinity, victim, 8, &raw const mask);
        println!("affinity {}", errno(cpus));
        println!("kill {}", errno(libc::kill(victim, libc::SIGKILL).into()));
        println!(
            "tgkill {}",
            errno(libc::syscall(libc::SYS_tgkill, victim, victim, 9))
        );
        println!("kill all {}", errno(libc::kill(-1, libc::SIGKILL).into()));
        let mut pipe = [0; 2];
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let signal = libc::fcntl(pipe[0], F_SETSIG, libc::SIGKILL);
        println!("signal of a file {}", errno(signal.into()));
        println!(
            "owner of a file {}",
            errno(libc::fcntl(pipe[0], libc::F_SETOWN, victim).into())
        );
        // What would send the signal.
        let asked = libc::fcntl(pipe[0], libc::F_SETFL, libc::O_ASYNC);
        println!("asked to signal {}", errno(asked.into()));
        assert_eq!(libc::write(pipe[1], (&raw const ONE).cast(), 1), 1);
        println!(
            "core {}",
            errno(libc::prctl(libc::PR_SCHED_CORE, 1, victim, 0, 0).into())
        );
        let name = b"\0runslice-abstract";
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        for (to, byte) in address.sun_path.iter_mut().zip(name) {
            *to = *byte as libc::c_char;
        }
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
        let connected = libc::connect(socket, (&raw const address).cast(), 2 + name.len() as u32);
        println!("abstract {}", errno(connected.into()));
    }
    let number = |it: Option<std::io::Error>| it.and_then(|it| it.raw_os_error()).unwrap_or(0);
    println!("connect {}", number(UnixStream::connect(&args[1]).err()));
    let datagram = std::os::unix::net::UnixDatagram::unbound().unwrap();
    println!("send {}", number(datagram.send_to(b"x", &args[1]).err()));
    // Its own limit is its own, by its number too.
    println!("own {}", errno(limit(std::process::id() as i32, 40)));
    let open: Vec<_> = (0..100)
        .map_while(|_| fs::File::open("/dev/null").ok())
        .collect();
    println!("few {}", open.len() < 40);
}

/// Linux 6.18, include/uapi/asm-generic/fcntl.h.
const F_SETSIG: i32 = 10;

fn escapes(args: &[String]) {
    let outside = &args[0];
    let inside = &args[1];
    let say = |what: &str, error: Option<std::io::Error>| {
        println!(
            "{what}: {}",
            error.map_or(0, |it| it.raw_os_error().unwrap_or(-1))
        );
    };
    say("write outside", fs::write(outside, "x").err());
    say("write below tree", fs::write("/sys/new", "x").err());
    say("write given", fs::write(inside, "given").err());
    say("dots", fs::write(format!("/sys/../{outside}"), "x").err());
    std::os::unix::fs::symlink(outside, "/run/link").unwrap();
    say("link", fs::write("/run/link", "x").err());
    println!("read by link: {}", fs::read_to_string("/run/link").unwrap());
    say("mkdir", fs::create_dir("/etc/runslice-test").err());
    say("rename", fs::rename("/sys/new", "/etc/runslice-test").err());
    say("unlink", fs::remove_file(outside).err());
    say("hard link", fs::hard_link(outside, "/run/hard").err());
    let read = fs::File::open(outside).unwrap();
    let again = format!("/proc/self/fd/{}", read.as_raw_fd());
    say(
        "open again",
        fs::OpenOptions::new().write(true).open(again).err(),
    );
    say(
        "chmod",
        fs::set_permissions(outside, std::os::unix::fs::PermissionsExt::from_mode(0o0)).err(),
    );
    say(
        "fchmod",
        read.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o0))
            .err(),
    );
    say("other process", fs::read_to_string("/proc/1/status").err());
    say(
        "memory",
        fs::OpenOptions::new()
            .write(true)
            .open("/proc/self/mem")
            .err(),
    );
    std::env::set_current_dir("/sys/devices").unwrap();
    let cpus = fs::read_to_string("system/cpu/online").unwrap();
    println!(
        "relative: {} in {}",
        cpus.trim(),
        std::env::current_dir().unwrap().display()
    );
    println!(
        "mounts: {}",
        fs::read_to_string("/etc/mtab").map_or(0, |it| it.lines().count())
    );
    println!(
        "root: {}",
        fs::metadata("/proc/self/root/proc/stat").is_ok()
    );
}

fn fork() {
    let me = std::env::current_exe().unwrap();
    let output = Command::new(&me).arg("name").output().unwrap();
    println!("child said {:?}", String::from_utf8_lossy(&output.stdout));
    println!(
        "missing {:?}",
        Command::new("/no/such/program")
            .status()
            .unwrap_err()
            .kind()
    );
    let child = unsafe { libc::fork() };
    if child == 0 {
        thread::sleep(Duration::from_millis(20));
        unsafe { libc::_exit(7) };
    }
    let begin = Instant::now();
    let mut status = 0;
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    println!(
        "{} {} after {}",
        ended == child,
        status >> 8,
        begin.elapsed().as_millis()
    );
    // Left behind on purpose.
    if unsafe { libc::fork() } == 0 {
        thread::sleep(Duration::from_secs(1000));
    }
}

/// Children that cannot start another program. They have many files to close, so that their parent
/// goes on, and calls, some time before they have ended.
fn failing_vforks() {
    let me = fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let _files: Vec<fs::File> = (0..800).map(|_| me.try_clone().unwrap()).collect();
    let start = |_: &i32| Command::new("/no/such/program").status().is_err();
    println!("{} failed", (0..30).filter(start).count());
}

/// A child sleeps, and another one makes no system call; both lose their parent.
fn forks() {
    if unsafe { libc::fork() } == 0 {
        thread::sleep(Duration::from_secs(100_000));
    }
    if unsafe { libc::fork() } == 0 {
        let me = std::env::current_exe().unwrap();
        // Nobody waits for it: its parent ends at once.
        drop(Command::new(me).arg("child of forks").spawn().unwrap());
        unsafe { libc::_exit(0) };
    }
    spin();
}

/// Writes more than anybody keeps, in one piece and in many, in both ways.
fn floods() {
    let piece = vec![b'x'; 40 << 20];
    let parts = [libc::iovec {
        iov_base: piece.as_ptr().cast_mut().cast(),
        iov_len: piece.len(),
    }; 2];
    unsafe {
        println!("kept");
        let all = libc::write(1, piece.as_ptr().cast(), piece.len());
        assert_eq!(all, piece.len() as isize);
        let all = libc::writev(1, parts.as_ptr(), 2);
        assert_eq!(all, 2 * piece.len() as isize);
        for _ in 0..1000 {
            let all = libc::write(2, piece.as_ptr().cast(), 100_000);
            assert_eq!(all, 100_000);
        }
    }
}

fn hang() {
    println!("hangs");
    spin_silently();
}

pub fn spin_silently() -> ! {
    let mut n = 0_u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

fn spin() {
    println!("{}", unsafe { libc::getpid() });
    loop {
        thread::yield_now();
    }
}

fn files() {
    for path in [
        "/sys/devices/system/cpu/online",
        "/sys/kernel/sched_ext/state",
        "/proc/sys/kernel/osrelease",
        "/proc/self/cgroup",
        "/proc/self/comm",
    ] {
        println!("{path} {}", fs::read_to_string(path).unwrap().trim());
    }
    let facts = fs::metadata("/sys/fs/cgroup/work").unwrap();
    println!("cgroup {}", std::os::unix::fs::MetadataExt::ino(&facts));
    let stat = fs::read_to_string("/proc/stat").unwrap();
    println!(
        "stat {}",
        stat.lines().filter(|it| it.starts_with("cpu")).count()
    );
    let mut cpus: Vec<_> = fs::read_dir("/sys/devices/system/cpu")
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|it| {
            it.strip_prefix("cpu")
                .is_some_and(|it| it.parse::<u32>().is_ok())
        })
        .collect();
    cpus.sort();
    println!("{cpus:?}");
}

pub fn bpf(command: i64, attr: &[u8]) -> i64 {
    unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_ptr(), attr.len()) }
}

pub fn map(kind: u32, key: u32, value: u32, entries: u32) -> i32 {
    let flags: u32 = if kind == 2 { 0x400 } else { 0 };
    let mut attr = [0; 80];
    for (n, word) in [kind, key, value, entries, flags].into_iter().enumerate() {
        attr[4 * n..4 * n + 4].copy_from_slice(&word.to_le_bytes());
    }
    let fd = bpf(0, &attr);
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    fd as i32
}

fn map_pages(fd: i32, len: usize, rights: i32, address: usize) -> (*mut u8, i32) {
    let flags = libc::MAP_SHARED | if address == 0 { 0 } else { libc::MAP_FIXED };
    let at = unsafe { libc::mmap(address as *mut _, len, rights, flags, fd, 0) };
    (
        at.cast(),
        errno(if at == libc::MAP_FAILED { -1 } else { 0 }),
    )
}

fn element(command: i64, fd: i32, key: &u32, value: *mut u64) -> i32 {
    let mut attr = [0; 32];
    attr[..4].copy_from_slice(&fd.to_le_bytes());
    attr[8..16].copy_from_slice(&(&raw const *key as u64).to_le_bytes());
    attr[16..24].copy_from_slice(&(value as u64).to_le_bytes());
    errno(bpf(command, &attr))
}

fn maps() {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let fd = map(2, 4, 8, 4);
    let (pages, _) = map_pages(fd, 4096, both, 0);
    unsafe { pages.cast::<u64>().add(2).write(77) };
    let mut value = 0_u64;
    println!("lookup {} {value}", element(1, fd, &2, &raw mut value));
    println!("value {value}");
    value = 5;
    println!("update {}", element(2, fd, &3, &raw mut value));
    println!("mapped {}", unsafe { pages.cast::<u64>().add(3).read() });
    let freeze = |fd: i32| {
        let mut attr = [0; 8];
        attr[..4].copy_from_slice(&fd.to_le_bytes());
        errno(bpf(22, &attr))
    };
    println!("freeze of what is mapped {}", freeze(fd));
    unsafe { libc::munmap(pages.cast(), 4096) };
    println!("freeze {}", freeze(fd));
    println!("write {}", map_pages(fd, 4096, both, 0).1);
    let (pages, read) = map_pages(fd, 4096, libc::PROT_READ, 0);
    println!("read {read}");
    let raise = unsafe { libc::mprotect(pages.cast(), 4096, both) };
    println!("mprotect {}", errno(raise.into()));
    println!(
        "truncate {}",
        errno(unsafe { libc::ftruncate(fd, 0) }.into())
    );
    let arena = map(33, 0, 0, 16);
    let (pages, error) = map_pages(arena, 16 * 4096, both, 0);
    println!("arena {pages:?} {error}");
    unsafe { pages.add(5 * 4096).write(1) };
    let copy = unsafe { OwnedFd::from_raw_fd(libc::dup(fd)) };
    unsafe { libc::close(fd) };
    println!("copy {}", element(1, copy.as_raw_fd(), &3, &raw mut value));
}

/// `BPF_OBJ_PIN` (6) and `BPF_OBJ_GET` (7).
fn pins() {
    let pin = |command: i64, path: &std::ffi::CStr, fd: i32| {
        let mut attr = [0; 24];
        attr[..8].copy_from_slice(&(path.as_ptr() as u64).to_le_bytes());
        attr[8..12].copy_from_slice(&fd.to_le_bytes());
        bpf(command, &attr)
    };
    let fd = map(2, 4, 8, 4);
    let mut value = 9_u64;
    println!("update {}", element(2, fd, &1, &raw mut value));
    println!("elsewhere {}", errno(pin(6, c"/etc/pinned", fd)));
    println!("no folder {}", errno(pin(6, c"/sys/fs/bpf/a/pinned", fd)));
    println!("pin {}", errno(pin(6, c"/sys/fs/bpf/pinned", fd)));
    println!("again {}", errno(pin(6, c"/sys/fs/bpf/pinned", fd)));
    unsafe { libc::close(fd) };
    fs::rename("/sys/fs/bpf/pinned", "/sys/fs/bpf/moved").unwrap();
    let again = pin(7, c"/sys/fs/bpf/moved", 0) as i32;
    value = 0;
    let found = element(1, again, &1, &raw mut value);
    println!("value {found} {value}");
    fs::remove_file("/sys/fs/bpf/moved").unwrap();
    println!("still {}", element(1, again, &1, &raw mut value));
    unsafe { libc::close(again) };
    println!("gone {}", errno(pin(7, c"/sys/fs/bpf/moved", 0)));
}

/// `BPF_LINK_CREATE` (28) of a table of callbacks, and a word after it.
fn attaches() {
    let mut attr = [0; 16];
    attr[..4].copy_from_slice(&map(2, 4, 8, 4).to_le_bytes());
    attr[8..12].copy_from_slice(&44_u32.to_le_bytes());
    assert!(bpf(28, &attr) >= 0);
    println!("went on");
}

/// A thread that is born where its parent may be only on one CPU, with another nice value.
fn inherits() {
    let mask = 1_u64 << 2;
    unsafe {
        libc::sched_setaffinity(0, 8, (&raw const mask).cast());
        libc::setpriority(libc::PRIO_PROCESS, 0, 5);
    }
    thread::spawn(|| println!("cpu {}", unsafe { libc::sched_getcpu() }))
        .join()
        .unwrap();
}

fn fail() {
    eprintln!("\u{1b}[31mno CPUs\u{7}");
    std::process::exit(3);
}
