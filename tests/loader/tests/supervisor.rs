//! The supervisor with a program that does what loaders do.

mod files;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{BOOT, Driven, settings};
use model::Nanos;
use model::user_space::UserSpace as _;

const LONG: Nanos = Nanos::from_secs(4000);

/// Runs a case to its end: its status and its output.
fn run(args: &[&str]) -> (i32, String, String) {
    let mut driven = Driven::subject(args, settings(4));
    let end = driven
        .run(LONG)
        .unwrap_or_else(|| panic!("{:?}", driven.user.waits()));
    (end.status, driven.out(), driven.err())
}

fn lines(args: &[&str]) -> Vec<String> {
    let (status, out, err) = run(args);
    assert_eq!(status, 0, "{out}{err}");
    out.lines().map(str::to_owned).collect()
}

fn number(line: &str) -> u64 {
    let last = line.rsplit(' ').next().and_then(|it| it.parse().ok());
    last.unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn clocks_tell_simulated_time_and_never_stand_still() {
    let began = Instant::now();
    let lines = lines(&["clocks"]);
    let wall = number(&lines[0]) - 1_735_689_600_000_000_000;
    assert!(
        (BOOT.get()..BOOT.get() + 10_000_000).contains(&wall),
        "{wall}"
    );
    let slept = number(&lines[1]);
    assert!((1_500_000_000..1_500_100_000).contains(&slept), "{slept}");
    // A millisecond of looks at 200 ns.
    assert!((4000..5001).contains(&number(&lines[2])), "{}", lines[2]);
    assert_eq!(lines[3], "timed out true 250");
    assert!(lines[4].starts_with("uptime 3601.75 "), "{}", lines[4]);
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "it slept in real time"
    );
}

/// `membarrier()`, Linux 6.18, kernel/sched/membarrier.c: EINVAL for flags and unknown commands.
#[test]
fn a_global_barrier_is_answered_at_once_and_wrong_ones_as_by_the_kernel() {
    let einval = libc::EINVAL;
    assert_eq!(
        lines(&["barriers"]),
        [
            "global 300".to_owned(),
            format!("flags -1 {einval}"),
            format!("none -1 {einval}"),
            "private true".to_owned(),
        ]
    );
}

#[test]
fn threads_run_in_the_same_order_every_time_under_load() {
    /// However the test ends, the load does, too.
    struct LoadEnd<'a>(&'a AtomicBool);
    impl Drop for LoadEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end_of_load = LoadEnd(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut first = None;
        for _ in 0..20 {
            let mut driven = Driven::subject(&["threads"], settings(4));
            let end = driven.run(LONG);
            let log = (end, driven.out(), driven.kernel.log.clone());
            let first = first.get_or_insert_with(|| log.clone());
            assert!(*first == log, "{:?}\n{:?}", first.2, log.2);
        }
        drop(end_of_load);
        let (end, out, log) = first.expect("it ran");
        assert_eq!(end.expect("it ended").status, 0);
        assert_eq!(out.lines().count(), 8 * 10 + 1);
        assert!(
            log.iter().any(|it| it.ends_with("Name(\"worker-7\")")),
            "{log:?}"
        );
    });
}

#[test]
fn who_it_is_does_not_depend_on_the_host() {
    let once = lines(&["identity"]);
    assert_eq!(once, lines(&["identity"]));
    assert_eq!(once[0], "pid 1000 tid 1000 uid 0");
    assert_eq!(once[1], "cpu 0");
    assert_eq!(once[3], format!("auxiliary {:?}", b"runslice-random."));
    assert_eq!(once[4], "cpus 4");
    assert_eq!(once[6], "thread 1001");
    // Only the folder is the user's, as in a shell.
    let folder = std::env::current_dir().expect("a folder");
    assert_eq!(once[8], format!("cwd {}", folder.display()));
    assert_eq!(once[9], "[\"HOME\", \"LANG\", \"PATH\"]");
    // Root, without root's rights: programs look here, too.
    let status = [
        "Tgid:\t1000",
        "Pid:\t1000",
        "PPid:\t1",
        "Uid:\t0\t0\t0\t0",
        "CapEff:\t000001ffffffffff",
        "Seccomp:\t0",
    ];
    assert_eq!(once[10], format!("{status:?}"));
    // Of a process and of a thread: who it is, and no figure of the host's.
    let zeros = |count: usize| vec!["0"; count].join(" ");
    let stat = format!(
        "1000 (runslice-loader) R 1 1000 1000 0 -1 {} 20 0 1 {}",
        zeros(9),
        zeros(32)
    );
    assert_eq!(once[11..], [&stat, &stat, "NotFound"]);
    assert_eq!(stat.split(' ').count(), 52);
}

#[test]
fn pipes_and_sockets_hold_writers_and_readers() {
    assert_eq!(lines(&["pipes"]), ["read 300000"]);
    let lines = lines(&["sockets"]);
    assert_eq!(lines, ["served 1000000", "outside PermissionDenied"]);
}

#[test]
fn epoll_tells_levels_and_ring_buffers() {
    let mut driven = Driven::subject(&["epoll"], settings(4));
    let end = driven.run(LONG);
    assert_eq!(end, None, "it waits for the ring buffer");
    driven.kernel.ready = true;
    driven.look();
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}", driven.err());
    let out = driven.out();
    let lines: Vec<_> = out.lines().collect();
    let expected = [
        "none 0 after 30",
        "level 1 5",
        "level 1 5",
        "empty 0",
        "ring 1 9",
        "gone 0",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_interrupt_ends_a_sleep_and_the_handler_runs() {
    let mut driven = Driven::subject(&["signals"], settings(4));
    assert_eq!(driven.run(BOOT + Nanos::from_millis(5_500)), None);
    driven.interrupt();
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0);
    assert_eq!(driven.out(), "stopped after 5499 and 6 sleeps\n");
}

#[test]
fn an_interrupt_without_a_handler_kills() {
    let mut driven = Driven::subject(&["signals", "default"], settings(4));
    assert_eq!(driven.run(BOOT + Nanos::from_secs(2)), None);
    assert!(driven.user.waits()[0].contains("waits for the end of its sleep"));
    driven.interrupt();
    assert_eq!(driven.run(LONG).expect("it ends").status, 128 + 2);
}

#[test]
fn denied_calls_get_their_errno_and_unknown_ones_a_line() {
    let mut driven = Driven::subject(&["denied"], settings(4));
    assert_eq!(
        driven.run(LONG).expect("it ends").status,
        0,
        "{}",
        driven.err()
    );
    let out = driven.out();
    for (what, errno) in [
        ("mount", 1),
        ("ptrace", 1),
        ("unshare", 1),
        ("setns", 1),
        ("chroot", 1),
        ("reboot", 1),
        ("clock_settime", 1),
        ("process_vm_readv", 1),
        ("io_uring_setup", 38),
        ("perf_event_open", 2),
        ("timerfd_create", 38),
        ("getpid of x32", 38),
        ("socket", 13),
        ("netlink", 13),
        ("bpf", 22),
        ("kill", 3),
        ("path", 9),
        ("bad pointer", 14),
    ] {
        assert!(
            out.lines().any(|it| it == format!("{what} {errno}")),
            "{what}\n{out}"
        );
    }
    let text = "runslice-loader-subject: bpf command 40 is not known; the program was told EINVAL";
    assert_eq!(driven.user.summary(), [text]);
}

/// Mounts, other processes' memory, modules and kernels, clocks, namespaces, devices, names,
/// quotas, signals with a sender of one's choice, and files by their handles.
const DENIED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_chroot,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
];

/// Calls that a program finds missing.
const ABSENT: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_clone3,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_timerfd_create,
    libc::SYS_nfsservctl,
    9999,
];

/// By the kernel's own word.
#[test]
fn what_could_change_the_computer_is_denied_by_the_kernel() {
    let expected = DENIED.iter().map(|nr| (nr, libc::EPERM));
    let expected: Vec<_> = expected
        .chain(ABSENT.iter().map(|nr| (nr, libc::ENOSYS)))
        .map(|(nr, errno)| format!("{nr} {errno}"))
        .collect();
    let numbers: Vec<_> = DENIED
        .iter()
        .chain(ABSENT)
        .map(ToString::to_string)
        .collect();
    let mut arguments = vec!["calls"];
    arguments.extend(numbers.iter().map(String::as_str));
    assert_eq!(lines(&arguments), expected);
}

#[test]
fn no_process_and_no_socket_of_the_computer_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut victim = Command::new("sleep").arg("1000").spawn().unwrap();
    let limits = format!("/proc/{}/limits", victim.id());
    let before = fs::read_to_string(&limits).unwrap();
    let number = victim.id().to_string();
    let lines = lines(&["reaches", &number, path.to_str().unwrap()]);
    let is_alive = victim.try_wait().unwrap().is_none();
    let after = fs::read_to_string(&limits).unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    let expected = [
        "limits 3",
        "nice 3",
        "affinity 3",
        "kill 3",
        "tgkill 3",
        "kill all 3",
        "signal of a file 1",
        "owner of a file 1",
        "asked to signal 0",
        "core 1",
        "abstract 111",
        "connect 13",
        "send 13",
        "own 0",
        "few true",
    ];
    assert_eq!(lines, expected);
    assert!(is_alive);
    assert_eq!(before, after);
    assert!(listener.accept().is_err(), "somebody has connected");
}

#[test]
fn nothing_is_written_outside_of_the_tree_and_the_given_folder() {
    let folder = tempfile::tempdir().unwrap();
    let given = folder.path().join("given");
    fs::create_dir(&given).unwrap();
    let outside = folder.path().join("outside");
    fs::write(&outside, "kept").unwrap();
    let mut settings = settings(4);
    settings.folder = Some(given.clone());
    let inside = given.join("file");
    let names = [outside.to_str().unwrap(), inside.to_str().unwrap()];
    let mut driven = Driven::subject(&["escapes", names[0], names[1]], settings);
    let end = driven.run(LONG).expect("it ends");
    let out = driven.out();
    assert_eq!(end.status, 0, "{out}{}", driven.err());
    for line in [
        "write outside: 13",
        "write below tree: 0",
        "write given: 0",
        "dots: 13",
        "link: 13",
        "read by link: kept",
        "mkdir: 13",
        "rename: 13",
        "unlink: 13",
        "hard link: 1",
        "open again: 13",
        "chmod: 13",
        "fchmod: 13",
        "other process: 2",
        "memory: 13",
        "relative: 0-3 in /sys/devices",
        "root: true",
    ] {
        assert!(out.lines().any(|it| it == line), "{line}\n{out}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "given");
    assert!(!Path::new("/sys/new").exists() && !Path::new("/etc/runslice-test").exists());
}

#[test]
fn children_are_run_and_none_is_left_behind() {
    let mut driven = Driven::subject(&["fork"], settings(4));
    let end = driven.run(LONG);
    let end = end.unwrap_or_else(|| panic!("{:?} {:?}", driven.user.waits(), driven.kernel.log));
    let out = driven.out();
    assert_eq!(end.status, 0, "{out}{}", driven.err());
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], "child said \"a child process\\n\"");
    assert_eq!(lines[1], "missing NotFound");
    assert_eq!(lines[2], "true 7 after 20");
    // The program is a child of this process; what it has left behind was killed with it.
    let root = driven.user.root().to_owned();
    drop(driven);
    assert!(!root.exists());
    assert!(!is_running("runslice-loader-subject\0fork"));
}

/// What the parent calls while its child is still ending was once lost with the child's own calls.
#[test]
fn a_parent_goes_on_when_its_vforked_child_ends_without_exec() {
    assert_eq!(lines(&["failing vforks"]), ["30 failed"]);
}

/// Whether a process with such a command line runs; zombies have none.
fn is_running(command: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|it| fs::read_to_string(it.path().join("cmdline")).ok());
    lines.into_iter().any(|it| it.contains(command))
}

#[test]
fn a_program_that_makes_no_call_ends_the_run_with_a_message() {
    let mut driven = Driven::subject(&["hang"], settings(4));
    let error = driven.try_run(LONG).unwrap_err();
    assert!(error.contains("thread 0 (runslice-loader)"), "{error}");
    assert!(
        error.contains("has made no system call for 10 s"),
        "{error}"
    );
    assert_eq!(driven.out(), "hangs\n");
    drop(driven);
    assert!(!is_running("runslice-loader-subject\0hang"));
}

#[test]
fn what_waits_waits_in_simulated_time_or_is_refused() {
    let expected = [
        "locked 11",
        "unlock 0",
        "lock 0",
        "waited true",
        "foreign 13",
        "foreign range 13",
        "foreign open range 13",
        "range 0",
        "range that waits 37",
        "open range that waits 37",
        "all 95",
        "many 38",
        "option 92",
        "option 92",
        "option 92",
        "275 22",
        "276 22",
        "40 22",
        "own table 1",
        "counter 8 true",
        "pipe 200000",
        "broken Some(32)",
        "small 40960",
    ];
    assert_eq!(lines(&["waits"]), expected);
}

#[test]
fn output_without_end_is_not_kept() {
    let mut driven = Driven::subject(&["floods"], settings(4));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}", end.last_lines);
    assert_eq!(driven.out(), "kept\n");
    let kept = driven.err().len();
    assert!(kept > 15_000_000 && kept <= 16 << 20, "{kept}");
}

#[test]
fn a_program_that_somebody_kills_has_the_signals_status() {
    let mut driven = Driven::subject(&["spin", "shot"], settings(4));
    assert_eq!(driven.run(BOOT + Nanos::from_millis(1)), None);
    let command = "runslice-loader-subject\0spin\0shot";
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut found = processes.filter(|it| {
        let line = fs::read_to_string(it.path().join("cmdline"));
        line.is_ok_and(|it| it.contains(command))
    });
    let pid = found.next().expect("it runs").file_name();
    let kill = Command::new("kill")
        .args(["-KILL".as_ref(), pid.as_os_str()])
        .status();
    assert!(kill.unwrap().success());
    assert_eq!(driven.run(LONG).expect("it has ended").status, 128 + 9);
}

#[test]
fn a_dropped_supervisor_takes_its_program_along() {
    // Another test has a program that spins, too.
    let mut driven = Driven::subject(&["spin", "dropped"], settings(4));
    assert_eq!(driven.run(BOOT + Nanos::from_millis(1)), None);
    drop(driven);
    assert!(!is_running("runslice-loader-subject\0spin\0dropped"));
}

#[test]
#[ignore = "drives a program until it is killed: a part of the test below"]
fn drives_for_ever() {
    let Ok(what) = std::env::var("RUNSLICE_DRIVES") else {
        return;
    };
    let mut driven = Driven::subject(&[&what, "killed"], settings(4));
    driven.run(Nanos::from_secs(1_000_000));
}

/// Runs a subject, kills its supervisor as soon as a process is there with the arguments `until`,
/// and waits until no process of the subject and nothing of its folder is left.
fn kill_supervisor_of(subject: &str, until: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "supervisor::drives_for_ever"])
        .env("RUNSLICE_DRIVES", subject)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_for("the program runs", &|| is_running(until));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    let command = format!("runslice-loader-subject\0{subject}\0killed");
    wait_for("all of the program has ended", &|| {
        !is_running(&command) && !is_running(until)
    });
    let is_empty = || fs::read_dir(folder.path()).unwrap().next().is_none();
    wait_for("its folder is gone", &is_empty);
}

#[test]
fn a_killed_supervisor_takes_its_program_along() {
    kill_supervisor_of("spin", "runslice-loader-subject\0spin\0killed");
}

#[test]
fn a_killed_supervisor_takes_the_programs_children_along() {
    // One sleeps, and one makes no system call.
    kill_supervisor_of("forks", "runslice-loader-subject\0child of forks");
}

#[test]
fn the_machines_files_are_those_of_the_simulated_one() {
    let mut settings = settings(6);
    settings.shown.cgroups = vec![("work".into(), 4711)];
    let mut driven = Driven::subject(&["files"], settings);
    assert_eq!(
        driven.run(LONG).expect("it ends").status,
        0,
        "{}",
        driven.err()
    );
    let out = driven.out();
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], "/sys/devices/system/cpu/online 0-5");
    assert_eq!(lines[1], "/sys/kernel/sched_ext/state disabled");
    assert_eq!(lines[2], "/proc/sys/kernel/osrelease 6.18.15");
    assert_eq!(lines[3], "/proc/self/cgroup 0::/");
    assert_eq!(lines[5], "cgroup 4711");
    assert_eq!(lines[6], "stat 7");
    assert_eq!(
        lines[7],
        "[\"cpu0\", \"cpu1\", \"cpu2\", \"cpu3\", \"cpu4\", \"cpu5\"]"
    );
}

#[test]
fn maps_are_shared_frozen_and_placed() {
    let mut driven = Driven::subject(&["maps"], settings(4));
    assert_eq!(
        driven.run(LONG).expect("it ends").status,
        0,
        "{}",
        driven.err()
    );
    let out = driven.out();
    for line in [
        "value 77",
        "update 0",
        "mapped 5",
        "freeze of what is mapped 16",
        "freeze 0",
        "write 1",
        "read 0",
        "mprotect 13",
        "truncate 1",
        "arena 0x100200000000 0",
        "copy 0",
    ] {
        assert!(out.lines().any(|it| it == line), "{line}\n{out}");
    }
    let addresses: Vec<_> = driven.kernel.arenas.iter().map(|it| it.1).collect();
    assert_eq!(addresses.last(), Some(&0x1002_0000_0000));
}

#[test]
fn a_program_that_fails_is_reported_with_its_last_lines() {
    let mut driven = Driven::subject(&["fail"], settings(4));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(
        (end.status, end.last_lines.as_str()),
        (3, "\\u001b[31mno CPUs\\u0007")
    );
}

#[test]
fn a_name_below_sys_fs_bpf_keeps_an_object() {
    let mut driven = Driven::subject(&["pins"], settings(4));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}", driven.err());
    let out = driven.out();
    let lines: Vec<_> = out.lines().collect();
    let refused = ["elsewhere 1", "no folder 2", "pin 0", "again 17"];
    assert_eq!(lines[1..5], refused);
    assert_eq!(lines[5..], ["value 0 9", "still 0", "gone 2"]);
    // Once, when name and descriptor are gone.
    let closed = driven.kernel.log.iter().filter(|it| it.contains("closes"));
    assert_eq!(closed.count(), 1, "{:?}", driven.kernel.log);
}

#[test]
fn a_new_thread_has_its_parents_cpus_and_nice_value() {
    let mut driven = Driven::subject(&["inherits"], settings(4));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}", driven.err());
    assert_eq!(driven.out(), "cpu 2\n");
    for told in ["1 Affinity([2])", "1 Nice(5)"] {
        let found = driven.kernel.log.iter().any(|it| it == told);
        assert!(found, "{told}: {:?}", driven.kernel.log);
    }
}

#[test]
fn what_follows_an_attachment_is_another_turn() {
    let mut driven = Driven::subject(&["attaches"], settings(4));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!((end.status, driven.turns), (0, 2), "{}", driven.err());
    assert_eq!(driven.out(), "went on\n");
}

#[test]
fn a_call_of_bpf_that_asks_for_too_much_is_refused_at_once() {
    let mut driven = Driven::subject(&["batches"], settings(4));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}", driven.err());
    let out = driven.out();
    let expected = [
        "update (7, 0)",
        "delete (7, 0)",
        "few (0, 3)",
        "all (2, 3)",
        "taken (2, 3)",
        "none (2, 0)",
        "records 22",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    let told = driven.user.summary();
    let text = "a batch of more than 1048576 elements of a map with 12 bytes each is too much";
    assert!(
        told[0].contains(text) && told[0].ends_with("(2 times)"),
        "{told:?}"
    );
}
