//! Calls that name files: done by the supervisor, in the tree or, to read, on the host.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat, StatxFlags};

use crate::about;
use crate::anchor;
use crate::growth;
use crate::paths::{PATH_MAX, PathOwner, Resolved, path, path_of, resolve};
use crate::pins;
use crate::state::{CallContext, Errno, Reply, u64_at};
use crate::sys;

type Answer = Result<Reply, Errno>;

pub fn open(cx: &mut CallContext<'_>) -> Answer {
    let (fd, at, flags, mode) = match cx.call.nr {
        libc::SYS_open => (libc::AT_FDCWD, 0, cx.arg(1), cx.arg(2)),
        libc::SYS_creat => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            (libc::AT_FDCWD, 0, flags as u64, cx.arg(1))
        }
        libc::SYS_openat => (cx.int(0), 1, cx.arg(2), cx.arg(3)),
        _ => {
            let how = cx.read(cx.arg(2), 24)?;
            (cx.int(0), 1, u64_at(&how, 0), u64_at(&how, 8))
        }
    };
    let flags = OFlags::from_bits_retain(flags as u32);
    let follow = !flags.contains(OFlags::NOFOLLOW)
        && !flags.contains(OFlags::CREATE | OFlags::EXCL);
    let at = cx.arg(at);
    let found = path(cx, fd, at, follow)?;
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)
        || flags.contains(OFlags::TMPFILE);
    let is_own_pipe = found.place == PathOwner::Process && is_nameless(cx, &found);
    if writes && !is_own_pipe && found.writable().is_err() {
        // `O_CREAT` of what is there and only read is not a write.
        let reads = !flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        if !(reads && found.exists(cx.state)) {
            return Err(Errno(libc::EACCES));
        }
    }
    let mut flags = flags | OFlags::CLOEXEC;
    if !is_own_pipe && found.changeable().is_err() {
        if flags.contains(OFlags::CREATE | OFlags::EXCL) {
            return Err(Errno(libc::EEXIST));
        }
        // Nothing of the computer is made, also where it goes away at this moment.
        flags -= OFlags::CREATE;
    }
    let cloexec = flags_of(cx).contains(OFlags::CLOEXEC);
    if !writes && let Some(text) = about::text(cx, &found)? {
        let mut file = sys::memory_file("status")?;
        file.write_all(text.as_bytes())?;
        rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
        return Ok(Reply::Fd(file.into(), cloexec));
    }
    // No opening waits, of a named pipe for example.
    flags |= OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(mode as RawMode & 0o7777);
    let file = if is_own_pipe {
        rustix::fs::open(Path::new("/").join(&found.below), flags, mode)?
    } else {
        // The path has no link left, unless the last one shall not be followed.
        makes(cx, &found, flags)?;
        found.open(cx.state, flags | OFlags::NOFOLLOW, mode)?
    };
    let asked = flags_of(cx);
    if !asked.contains(OFlags::NONBLOCK) && !asked.contains(OFlags::PATH) {
        let now = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, now - OFlags::NONBLOCK)?;
    }
    Ok(Reply::Fd(file, cloexec))
}

/// Counts the file that an `open()` is about to make.
fn makes(cx: &mut CallContext<'_>, found: &Resolved, flags: OFlags) -> Result<(), Errno> {
    let is_new = flags.contains(OFlags::TMPFILE)
        || flags.contains(OFlags::CREATE) && !found.exists(cx.state);
    if is_new { growth::name(cx, found) } else { Ok(()) }
}

/// The flags as the program gave them.
fn flags_of(cx: &CallContext<'_>) -> OFlags {
    let flags = match cx.call.nr {
        libc::SYS_open => cx.arg(1),
        libc::SYS_openat => cx.arg(2),
        libc::SYS_openat2 => cx.read_u64(cx.arg(2)).unwrap_or(0),
        _ => 0,
    };
    OFlags::from_bits_retain(flags as u32)
}

/// Whether a link of `/proc/self/fd` leads to a pipe or the like.
fn is_nameless(cx: &CallContext<'_>, found: &Resolved) -> bool {
    found.read_link(cx.state).is_ok_and(|it| !it.is_absolute())
}

/// Everything of the tree belongs to root, and cgroups have the ids of the simulated ones.
fn shown_stat(cx: &CallContext<'_>, below: Option<&Path>, stat: &mut Stat) {
    let Some(below) = below else { return };
    (stat.st_uid, stat.st_gid) = (0, 0);
    if let Some(id) = cx.state.tree.cgroup_id(below) {
        stat.st_ino = id;
    }
}

fn write_stat(cx: &CallContext<'_>, at: u64, stat: &Stat) -> Answer {
    // Linux 6.18, arch/x86/include/uapi/asm/stat.h.
    let mut bytes = [0; 144];
    let mut put = |at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    put(0, stat.st_dev);
    put(8, stat.st_ino);
    put(16, stat.st_nlink);
    put(24, u64::from(stat.st_mode) | u64::from(stat.st_uid) << 32);
    put(32, stat.st_gid.into());
    put(40, stat.st_rdev);
    put(48, stat.st_size.cast_unsigned());
    put(56, stat.st_blksize.cast_unsigned());
    put(64, stat.st_blocks.cast_unsigned());
    // Times are those of the host: none is told.
    cx.write(at, &bytes)?;
    Ok(Reply::Value(0))
}

/// `stat()`, `lstat()`, `fstat()` and `newfstatat()`.
pub fn stat(cx: &mut CallContext<'_>) -> Answer {
    let (fd, at, to, flags) = match cx.call.nr {
        libc::SYS_stat => (libc::AT_FDCWD, cx.arg(0), cx.arg(1), 0),
        libc::SYS_lstat => (libc::AT_FDCWD, cx.arg(0), cx.arg(1), libc::AT_SYMLINK_NOFOLLOW),
        libc::SYS_fstat => (cx.int(0), 0, cx.arg(1), libc::AT_EMPTY_PATH),
        _ => (cx.int(0), cx.arg(1), cx.arg(2), cx.int(3)),
    };
    let (below, mut stat) = find_stat(cx, (fd, at), flags)?;
    shown_stat(cx, below.as_deref(), &mut stat);
    write_stat(cx, to, &stat)
}

/// Whether the call is about the descriptor itself.
fn is_empty(cx: &CallContext<'_>, at: u64, flags: i32) -> Result<bool, Errno> {
    if flags & libc::AT_EMPTY_PATH == 0 {
        return Ok(false);
    }
    Ok(at == 0 || cx.read_string(at, PATH_MAX)?.is_empty())
}

/// What is known of a file, and its path below the tree's root if it is in the tree.
fn find_stat(
    cx: &mut CallContext<'_>,
    (fd, at): (i32, u64),
    flags: i32,
) -> Result<(Option<PathBuf>, Stat), Errno> {
    if is_empty(cx, at, flags)? && fd != libc::AT_FDCWD {
        let link = PathBuf::from(format!("/proc/{}/fd/{fd}", cx.call.tid));
        let stat = rustix::fs::stat(&link).map_err(|_| Errno(libc::EBADF))?;
        let path = fs::read_link(&link).unwrap_or(link);
        return Ok((cx.state.below_tree(&path), stat));
    }
    let found = path(cx, fd, at, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?;
    let stat = if found.place == PathOwner::Process && is_nameless(cx, &found) {
        rustix::fs::stat(Path::new("/").join(&found.below))?
    } else {
        found.stat(cx.state)?
    };
    Ok(((found.place == PathOwner::Tree).then_some(found.below), stat))
}

/// `statx()`.
pub fn statx(cx: &mut CallContext<'_>) -> Answer {
    let flags = cx.int(2);
    let (below, mut stat) = find_stat(cx, (cx.int(0), cx.arg(1)), flags)?;
    shown_stat(cx, below.as_deref(), &mut stat);
    // Linux 6.18, include/uapi/linux/stat.h.
    let mut bytes = [0; 256];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &StatxFlags::BASIC_STATS.bits().to_le_bytes());
    put(4, &(stat.st_blksize as u32).to_le_bytes());
    put(16, &(stat.st_nlink as u32).to_le_bytes());
    put(20, &stat.st_uid.to_le_bytes());
    put(24, &stat.st_gid.to_le_bytes());
    put(28, &(stat.st_mode as u16).to_le_bytes());
    put(32, &stat.st_ino.to_le_bytes());
    put(40, &stat.st_size.to_le_bytes());
    put(48, &stat.st_blocks.to_le_bytes());
    for (at, device) in [(128, stat.st_rdev), (136, stat.st_dev)] {
        put(at, &rustix::fs::major(device).to_le_bytes());
        put(at + 4, &rustix::fs::minor(device).to_le_bytes());
    }
    cx.write(cx.arg(4), &bytes)?;
    Ok(Reply::Value(0))
}

/// `statfs()`: of the folders whose file system programs look for.
pub fn statfs(cx: &mut CallContext<'_>) -> Answer {
    let found = path(cx, libc::AT_FDCWD, cx.arg(0), true)?;
    found.stat(cx.state)?;
    let kinds = [
        ("/sys/fs/cgroup", 0x6367_7270_u64),
        ("/sys/fs/bpf", 0xcafe_4a11),
        ("/sys/kernel/tracing", 0x7472_6163),
        ("/sys", 0x6265_6572),
        ("/proc", 0x9fa0),
    ];
    let kind = kinds.iter().find(|(path, _)| found.shown.starts_with(path));
    let mut bytes = [0; 120];
    bytes[..8].copy_from_slice(&kind.map_or(0xef53, |it| it.1).to_le_bytes());
    bytes[8..16].copy_from_slice(&4096_u64.to_le_bytes());
    bytes[64..72].copy_from_slice(&255_u64.to_le_bytes());
    cx.write(cx.arg(1), &bytes)?;
    Ok(Reply::Value(0))
}

/// `access()`, `faccessat()` and `faccessat2()`: root may do all but write on the host.
pub fn access(cx: &mut CallContext<'_>) -> Answer {
    let (fd, at, mode) = match cx.call.nr {
        libc::SYS_access => (libc::AT_FDCWD, cx.arg(0), cx.int(1)),
        _ => (cx.int(0), cx.arg(1), cx.int(2)),
    };
    let found = path(cx, fd, at, true)?;
    let stat = found.stat(cx.state)?;
    if mode & libc::W_OK != 0 {
        found.writable()?;
    }
    if mode & libc::X_OK != 0 && stat.st_mode & 0o111 == 0 {
        return Err(Errno(libc::EACCES));
    }
    Ok(Reply::Value(0))
}

/// `readlink()` and `readlinkat()`.
pub fn readlink(cx: &mut CallContext<'_>) -> Answer {
    let (fd, at, to, room) = match cx.call.nr {
        libc::SYS_readlink => (libc::AT_FDCWD, cx.arg(0), cx.arg(1), cx.int(2)),
        _ => (cx.int(0), cx.arg(1), cx.arg(2), cx.int(3)),
    };
    let room = usize::try_from(room).ok().filter(|it| *it > 0);
    let room = room.ok_or(Errno(libc::EINVAL))?;
    let found = path(cx, fd, at, false)?;
    let target = found.read_link(cx.state)?;
    let target = match found.shown.file_name().and_then(OsStr::to_str) {
        Some("cwd") if found.place == PathOwner::Process => cx.process().cwd.clone(),
        _ => cx.state.shown_path(&target),
    };
    let bytes = target.as_os_str().as_bytes();
    let len = bytes.len().min(room);
    cx.write(to, &bytes[..len])?;
    Ok(Reply::Value(len as i64))
}

/// Calls that change one file by its path.
pub fn change(cx: &mut CallContext<'_>) -> Answer {
    let nr = cx.call.nr;
    let (fd, first) = match nr {
        libc::SYS_mkdirat
        | libc::SYS_unlinkat
        | libc::SYS_fchmodat
        | libc::SYS_fchownat
        | libc::SYS_utimensat => (cx.int(0), 1),
        _ => (libc::AT_FDCWD, 0),
    };
    // `futimens()` names no file.
    let at = cx.arg(first);
    if nr == libc::SYS_utimensat && at == 0 {
        return change_open(cx);
    }
    let follow = matches!(nr, libc::SYS_chmod | libc::SYS_truncate | libc::SYS_chown);
    let found = path(cx, fd, at, follow)?;
    let next = cx.arg(first + 1);
    if matches!(nr, libc::SYS_mkdir | libc::SYS_mkdirat) && found.exists(cx.state) {
        return Err(Errno(libc::EEXIST));
    }
    if nr == libc::SYS_truncate {
        return truncate(cx, &found, next);
    }
    found.changeable()?;
    let mode = Mode::from_raw_mode(next as RawMode & 0o777);
    match nr {
        libc::SYS_mkdir | libc::SYS_mkdirat => {
            growth::name(cx, &found)?;
            let (folder, name) = found.folder(cx.state)?;
            rustix::fs::mkdirat(folder, name, mode)?;
        }
        libc::SYS_rmdir => remove(cx, &found, AtFlags::REMOVEDIR)?,
        libc::SYS_unlinkat if next as i32 & libc::AT_REMOVEDIR != 0 => {
            remove(cx, &found, AtFlags::REMOVEDIR)?;
        }
        libc::SYS_unlink | libc::SYS_unlinkat => {
            let name = pins::named(cx, &found);
            remove(cx, &found, AtFlags::empty())?;
            if let Some(name) = name {
                pins::unlinked(cx, name);
            }
        }
        libc::SYS_chmod | libc::SYS_fchmodat => {
            let file = cx.state.anchor(found.place).name(&found.below)?;
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
            if kind.is_symlink() {
                return Err(Errno(libc::EOPNOTSUPP));
            }
            // The kernel changes no mode by a descriptor that only names a file.
            rustix::fs::chmod(anchor::link_to(file.as_fd()), mode)?;
        }
        // Owners and times are not kept: all is root's, and no time is told.
        _ => {
            found.stat(cx.state)?;
        }
    }
    Ok(Reply::Value(0))
}

fn remove(cx: &CallContext<'_>, found: &Resolved, flags: AtFlags) -> Result<(), Errno> {
    let (folder, name) = found.folder(cx.state)?;
    Ok(rustix::fs::unlinkat(folder, name, flags)?)
}

fn truncate(cx: &mut CallContext<'_>, found: &Resolved, len: u64) -> Answer {
    found.writable()?;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = found.open(cx.state, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    growth::lengthen(cx, &stat, len, found.place == PathOwner::Given)?;
    rustix::fs::ftruncate(file, len)?;
    Ok(Reply::Value(0))
}

/// Calls that change an open file beyond its content: what was opened to be read may be the host's.
pub fn change_open(cx: &mut CallContext<'_>) -> Answer {
    let shown = path_of(cx, cx.int(0))?;
    let name = shown.as_os_str().as_bytes();
    let found = resolve(cx.state, cx.call.tid, Path::new("/"), name, false)?;
    found.changeable()?;
    let file = cx.duplicate(cx.int(0))?;
    let (open, named) = (rustix::fs::fstat(&file)?, found.stat(cx.state)?);
    if (open.st_dev, open.st_ino) != (named.st_dev, named.st_ino) {
        // Another file has that name by now.
        return Err(Errno(libc::EACCES));
    }
    if cx.call.nr == libc::SYS_fchmod {
        let mode = Mode::from_raw_mode(cx.arg(1) as RawMode & 0o777);
        rustix::fs::fchmod(file, mode)?;
    }
    Ok(Reply::Value(0))
}

/// `rename()` and its relatives.
pub fn rename(cx: &mut CallContext<'_>) -> Answer {
    let (from, to) = match cx.call.nr {
        libc::SYS_rename => ((libc::AT_FDCWD, cx.arg(0)), (libc::AT_FDCWD, cx.arg(1))),
        libc::SYS_renameat2 if cx.arg(4) != 0 => return Err(Errno(libc::EINVAL)),
        _ => ((cx.int(0), cx.arg(1)), (cx.int(2), cx.arg(3))),
    };
    let from = path(cx, from.0, from.1, false)?;
    let to = path(cx, to.0, to.1, false)?;
    from.changeable()?;
    to.changeable()?;
    let (from, to) = (from.folder(cx.state)?, to.folder(cx.state)?);
    rustix::fs::renameat(from.0, from.1, to.0, to.1)?;
    Ok(Reply::Value(0))
}

/// `symlink()` and `symlinkat()`: where the link leads is looked at when it is followed.
pub fn symlink(cx: &mut CallContext<'_>) -> Answer {
    let (fd, at) = match cx.call.nr {
        libc::SYS_symlink => (libc::AT_FDCWD, cx.arg(1)),
        _ => (cx.int(1), cx.arg(2)),
    };
    let target = cx.read_string(cx.arg(0), PATH_MAX)?;
    let found = path(cx, fd, at, false)?;
    found.changeable()?;
    growth::name(cx, &found)?;
    let (folder, name) = found.folder(cx.state)?;
    rustix::fs::symlinkat(OsStr::from_bytes(&target), folder, name)?;
    Ok(Reply::Value(0))
}

/// `chdir()` and `fchdir()`: the supervisor remembers, the process stays where it is.
pub fn chdir(cx: &mut CallContext<'_>) -> Answer {
    let found = match cx.call.nr {
        libc::SYS_chdir => path(cx, libc::AT_FDCWD, cx.arg(0), true)?,
        _ => {
            let shown = path_of(cx, cx.int(0))?;
            let name = shown.as_os_str().as_bytes();
            resolve(cx.state, cx.call.tid, Path::new("/"), name, true)?
        }
    };
    if !FileType::from_raw_mode(found.stat(cx.state)?.st_mode).is_dir() {
        return Err(Errno(libc::ENOTDIR));
    }
    cx.process().cwd = found.shown;
    Ok(Reply::Value(0))
}

pub fn getcwd(cx: &mut CallContext<'_>) -> Answer {
    let mut bytes = cx.process().cwd.as_os_str().as_bytes().to_vec();
    bytes.push(0);
    if bytes.len() as u64 > cx.arg(1) {
        return Err(Errno(libc::ERANGE));
    }
    cx.write(cx.arg(0), &bytes)?;
    Ok(Reply::Value(bytes.len() as i64))
}

pub fn inotify_add_watch(cx: &mut CallContext<'_>) -> Answer {
    let found = path(cx, libc::AT_FDCWD, cx.arg(1), true)?;
    let inotify = cx.duplicate(cx.int(0))?;
    let flags = rustix::fs::inotify::WatchFlags::from_bits_retain(cx.arg(2) as u32);
    // The descriptor is of that very file, whatever has its name by now.
    let file = cx.state.anchor(found.place).name(&found.below)?;
    let watch = rustix::fs::inotify::add_watch(&inotify, anchor::link_to(file.as_fd()), flags)?;
    Ok(Reply::Value(watch.into()))
}
