//! Cases that mean harm to files.

use std::ffi::CString;
use std::fs;
use std::io::Error;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::errno;

fn number(error: Option<Error>) -> i32 {
    error.map_or(0, |it| it.raw_os_error().unwrap_or(-1))
}

fn say<T>(what: &str, done: Result<T, Error>) {
    println!("{what} {}", number(done.err()));
}

/// Everything below a folder, what is inside before the folder itself.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), found);
        }
        found.push(entry.path());
    }
}

/// Has the supervisor write all that it writes while a program runs.
fn look() {
    let _ = fs::read("/proc/stat");
    let _ = fs::read("/proc/uptime");
    let _ = fs::metadata("/sys/kernel/sched_ext/state");
}

/// Puts a link at a path, and says what is to be moved back. A file that the supervisor writes anew
/// as soon as its name is missing is renamed over, and so is the folder above.
fn plant(victim: &Path, path: &Path, n: usize) -> Option<Vec<(PathBuf, PathBuf)>> {
    let aside = PathBuf::from(format!("/tmp/aside{n}"));
    fs::rename(path, &aside).ok()?;
    if symlink(victim, path).is_ok() {
        return Some(vec![(aside, path.into())]);
    }
    let parent = path.parent()?;
    let link = parent.join("planted");
    symlink(victim, &link).ok()?;
    if fs::rename(&link, path).is_ok() {
        return Some(vec![(aside, path.into())]);
    }
    fs::remove_file(&link).ok()?;
    let new = PathBuf::from(format!("/tmp/new{n}"));
    fs::create_dir(&new).ok()?;
    symlink(victim, new.join(path.file_name()?)).ok()?;
    let above = PathBuf::from(format!("/tmp/above{n}"));
    fs::rename(parent, &above).ok()?;
    fs::rename(&new, parent).ok()?;
    Some(vec![(above, parent.into()), (aside, path.into())])
}

/// Puts a link to the same path below a folder of the host in the place of one file or folder after
/// the other.
pub fn plants(args: &[String]) {
    let mut paths = Vec::new();
    for folder in ["/proc", "/sys", "/boot", "/run"] {
        below(folder.as_ref(), &mut paths);
        paths.push(folder.into());
    }
    let mut planted = 0;
    for (n, path) in paths.into_iter().enumerate() {
        let victim = Path::new(&args[0]).join(path.strip_prefix("/").unwrap());
        let Some(moved) = plant(&victim, &path, n) else {
            println!("stays {}", path.display());
            continue;
        };
        look();
        // Reading by the link is what the user may do.
        let _ = fs::read(&path);
        for (from, to) in moved {
            // Deleting would not come to an end where the supervisor writes anew.
            let _ = fs::rename(&to, from.with_extension("gone"));
            let _ = fs::rename(&from, &to);
        }
        planted += 1;
    }
    // One of each is left, for the end.
    fs::rename("/sys/kernel", "/tmp/kernel").unwrap();
    symlink(Path::new(&args[0]).join("sys/kernel"), "/sys/kernel").unwrap();
    symlink(&args[0], "/tmp/kernel/victim").unwrap();
    println!("planted {planted}");
}

/// Does to the folder that it may write in what would put another one in its place.
pub fn takes(args: &[String]) {
    let given = Path::new(&args[0]);
    say(
        "chmod",
        fs::set_permissions(given, fs::Permissions::from_mode(0o777)),
    );
    let open = fs::File::open(given).unwrap();
    say(
        "fchmod",
        open.set_permissions(fs::Permissions::from_mode(0o777)),
    );
    say("rename", fs::rename(given, "/tmp/taken"));
    say("rename below", fs::rename(given, given.join("below")));
    fs::create_dir("/tmp/other").unwrap();
    say("rename over", fs::rename("/tmp/other", given));
    say("rmdir", fs::remove_dir(given));
    say("unlink", fs::remove_file(given));
    say("dots", fs::rename(given.join("below/.."), "/tmp/taken"));
    say("null", fs::remove_file("/dev/null"));
    say(
        "null mode",
        fs::set_permissions("/dev/null", fs::Permissions::from_mode(0o0)),
    );
    say("write", fs::write(given.join("file"), "written"));
    // The tree, if it lies there.
    for folder in fs::read_dir(given).unwrap().flatten() {
        if !folder.path().join("r/proc").is_dir() {
            continue;
        }
        say("move tree", fs::rename(folder.path(), given.join("moved")));
        fs::create_dir_all(folder.path().join("r/sys/kernel/sched_ext/root")).unwrap();
        fs::write(
            folder.path().join("r/sys/kernel/sched_ext/root/ops"),
            "kept",
        )
        .unwrap();
        look();
        say("look", fs::read_to_string("/proc/sys/kernel/osrelease"));
    }
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output();
    let said = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    println!("{program}: {:?}", said.map_err(|it| it.raw_os_error()));
}

/// Executes programs by links, by relative names, by descriptors, as scripts, and from a thread.
pub fn executes(args: &[String]) {
    let helper = &args[0];
    symlink("/bin/echo", helper).unwrap();
    // Meanwhile somebody puts another program there.
    thread::sleep(Duration::from_secs(1));
    run(helper, &["linked"]);
    fs::write("/tmp/script", "#! /bin/sh -e\necho \"$0 says $1\"\n").unwrap();
    fs::set_permissions("/tmp/script", fs::Permissions::from_mode(0o755)).unwrap();
    run("/tmp/script", &["one", "two"]);
    fs::write("/tmp/nested", "#!/tmp/script nested\n").unwrap();
    fs::set_permissions("/tmp/nested", fs::Permissions::from_mode(0o755)).unwrap();
    run("/tmp/nested", &["three"]);
    std::env::set_current_dir("/tmp").unwrap();
    run("./script", &["four"]);
    fs::write("/tmp/text", "no program\n").unwrap();
    fs::set_permissions("/tmp/text", fs::Permissions::from_mode(0o755)).unwrap();
    let none = std::ptr::null::<*const libc::c_char>();
    for path in [c"/tmp/text", c"/tmp", c"/etc/passwd", c"/tmp/missing"] {
        let refused = unsafe { libc::execve(path.as_ptr(), none, none) };
        println!("{path:?} {}", errno(refused.into()));
    }
    let left = fs::read_dir("/proc/self/fd").unwrap().count();
    println!("descriptors {left}");
    let echo = fs::File::open("/bin/echo").unwrap();
    let words = [
        c"echo".as_ptr(),
        c"by descriptor".as_ptr(),
        std::ptr::null(),
    ];
    // Another thread than the first one becomes the program.
    let fd = echo.as_raw_fd();
    let words = words.map(|it| it as usize);
    let run = move || unsafe {
        let (flags, none) = (libc::AT_EMPTY_PATH, std::ptr::null::<*const libc::c_char>());
        libc::syscall(
            libc::SYS_execveat,
            fd,
            c"".as_ptr(),
            &raw const words,
            none,
            flags,
        )
    };
    println!("execveat {}", errno(thread::spawn(run).join().unwrap()));
}

/// Makes files longer in each way that there is.
pub fn grows() {
    const GIB: i64 = 1 << 30;
    unsafe {
        println!("ftruncate {}", errno(libc::ftruncate(1, 64 * GIB).into()));
        println!(
            "fallocate {}",
            errno(libc::fallocate(1, 0, 0, 3 * GIB).into())
        );
        let kept = libc::fallocate(1, libc::FALLOC_FL_KEEP_SIZE, 0, 3 * GIB);
        println!("fallocate beyond {}", errno(kept.into()));
        let memory = libc::memfd_create(c"x".as_ptr(), 0);
        println!("memory {}", errno(libc::ftruncate(memory, 2 * GIB).into()));
        assert_eq!(libc::ftruncate(memory, 1 << 20), 0);
        println!(
            "sendfile {}",
            errno(libc::sendfile(1, memory, &mut 0, 1 << 20) as i64)
        );
        let (mut from, none) = (0, std::ptr::null_mut());
        let copied = libc::copy_file_range(memory, &raw mut from, 1, none, 1 << 20, 0);
        println!("copy_file_range {}", errno(copied as i64));
        let mut pipe = [0; 2];
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        assert_eq!(libc::write(pipe[1], c"x".as_ptr().cast(), 1), 1);
        println!(
            "splice {}",
            errno(libc::splice(pipe[0], none, 1, none, 1, 0) as i64)
        );
        let mebibyte = vec![b'A'; 1 << 20];
        for _ in 0..40 {
            // The standard output appends, wherever it is told to write.
            assert_eq!(
                libc::pwrite(2, mebibyte.as_ptr().cast(), 1 << 20, 0),
                1 << 20
            );
        }
    }
    let file = fs::File::create("/tmp/big").unwrap();
    say("far", file.write_at(b"x", 1 << 40));
    say("long", file.set_len(2 << 30));
    let big = CString::new("/tmp/big").unwrap();
    println!("truncate {}", unsafe {
        errno(libc::truncate(big.as_ptr(), 64 * GIB).into())
    });
    let many = (0..).take_while(|n| {
        let file = fs::File::create(format!("/tmp/file{n}"));
        // Without a name it takes its room all the same.
        let _ = fs::remove_file(format!("/tmp/file{n}"));
        file.is_ok_and(|it| it.set_len(100 << 20).is_ok())
    });
    println!("files {}", many.count());
    let folders = (0..).take_while(|n| fs::create_dir(format!("/tmp/folder{n}")).is_ok());
    let few = folders.count() < 1 << 18;
    println!("few {few} {}", number(fs::create_dir("/tmp/folder").err()));
    say("link", symlink("x", "/tmp/link"));
    say("new", fs::File::create("/tmp/new"));
}
