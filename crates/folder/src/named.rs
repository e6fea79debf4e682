//! Files that a user names for results: which links on the way are followed, and what is no file.
//!
//! Whoever is not root goes where the name leads. Root follows a link only if nobody else can have
//! put it there: else whoever may write into `/tmp` would choose which file root writes over. The
//! rules are those of `fs.protected_symlinks`, `fs.protected_regular` and `fs.protected_hardlinks`
//! (Documentation/admin-guide/sysctl/fs.rst, kernel 6.18), with three differences: they hold
//! whatever the system has set, in every folder and not in sticky ones alone, and for each part
//! of the way. A link that its owner may lead elsewhere is what systemd calls an unsafe transition
//! (`CHASE_SAFE`).
//!
//! | on root's way | |
//! | --- | --- |
//! | a link of root, or of the user who called `sudo` | followed |
//! | any link in a folder that everybody may write and that is not sticky | refused |
//! | a link of anybody else | refused |
//! | a file of somebody else in a folder that everybody may write | refused |
//! | a file with other names (hard links) in a folder that somebody else may write | refused |

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use model::Advised;
use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::{EVERYBODY_WRITES, STICKY, own_users};

/// As many links as a kernel follows (`MAXSYMLINKS`, include/linux/namei.h, 6.18).
const LINKS_MAX: u32 = 40;

/// What becomes of a file that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Emptied,
    WrittenOn,
    Refused,
}

/// Opens `path` for results; a file that is there is emptied. See the module.
///
/// # Errors
/// When root would follow another user's link or write into another user's file. When `path` is a
/// pipe, a socket or a device; `/dev/null`, `/dev/full`, terminals, and open files as
/// `/dev/stdout` and `/dev/fd/3` are taken. When the system refuses.
pub fn create(path: &Path) -> io::Result<File> {
    open(path, There::Emptied)
}

/// Opens a file to write on at its end; creates it if it is not there.
///
/// # Errors
/// The errors of [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    open(path, There::WrittenOn)
}

/// Creates a file that must not be there.
///
/// # Errors
/// The errors of [`create`]; [`io::ErrorKind::AlreadyExists`] when it is there.
pub fn create_new(path: &Path) -> io::Result<File> {
    open(path, There::Refused)
}

/// Checks the way to the folder of `path`, in which a file is about to be made that replaces what
/// is there: a link at `path` itself is not followed. See the module.
///
/// # Errors
/// When root would follow another user's link. What is not there is no error here.
pub fn check_way(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if !is_root() {
        return Ok(());
    }
    // A name that no folder has.
    match walk(
        &folder.unwrap_or(Path::new(".")).join("\u{1}"),
        &own_users(),
    ) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        walked => walked.map(drop),
    }
}

/// Checks the way to the file `path`, which is about to be looked at and then written: root would
/// else look at what another user's link leads to. See the module.
///
/// # Errors
/// When root would follow another user's link. What is not there is no error here.
pub fn check_file(path: &Path) -> io::Result<()> {
    if !is_root() || is_open_file(path) {
        return Ok(());
    }
    match walk(path, &own_users()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        walked => walked.map(drop),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn open(path: &Path, there: There) -> io::Result<File> {
    if is_root() && !is_open_file(path) {
        return open_guarded(path, there, &own_users());
    }
    if let Ok(facts) = path.metadata()
        && !is_open_file(path)
    {
        check_kind(&facts.file_type(), facts.rdev())?;
    }
    let mut options = File::options();
    match there {
        There::Emptied => options.write(true).create(true).truncate(true),
        There::WrittenOn => options.append(true).create(true),
        There::Refused => options.write(true).create_new(true),
    };
    options.open(path)
}

/// Whether `path` stands for a file that is open already: a pipe of a shell is one.
fn is_open_file(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let number = [&b"/dev/fd/"[..], b"/proc/self/fd/"]
        .iter()
        .find_map(|folder| bytes.strip_prefix(*folder));
    matches!(bytes, b"/dev/stdout" | b"/dev/stderr")
        || number.is_some_and(|it| !it.is_empty() && it.iter().all(u8::is_ascii_digit))
}

/// Refuses what is no file for results.
fn check_kind(kind: &std::fs::FileType, device: u64) -> io::Result<()> {
    let (what, advice) = if kind.is_fifo() {
        (
            "is a pipe",
            "write to standard output and let a shell connect it",
        )
    } else if kind.is_socket() {
        ("is a socket", "name a file")
    } else if kind.is_block_device() || kind.is_char_device() && !is_harmless(device) {
        ("is a device", "name a file")
    } else {
        return Ok(());
    };
    let refused = Advised::new(what, advice);
    Err(io::Error::new(io::ErrorKind::InvalidInput, refused))
}

/// `/dev/null`, `/dev/full`, `/dev/tty`, and terminals.
///
/// Source: Documentation/admin-guide/devices.txt, kernel 6.18.
fn is_harmless(device: u64) -> bool {
    let number = (rustix::fs::major(device), rustix::fs::minor(device));
    matches!(number, (1, 3 | 7) | (5, 0 | 1) | (4 | 136..=143, _))
}

fn open_guarded(path: &Path, there: There, users: &[u32]) -> io::Result<File> {
    let (folder, name) = walk(path, users)?;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let flags = match there {
        There::WrittenOn => flags | OFlags::APPEND,
        There::Emptied | There::Refused => flags,
    };
    let fresh = flags | OFlags::CREATE | OFlags::EXCL;
    let made = rustix::fs::openat(&folder, &name, fresh, Mode::from_raw_mode(0o666));
    match made {
        Err(Errno::EXIST) if there != There::Refused => {}
        made => return Ok(made?.into()),
    }
    // A pipe without a reader would be ENXIO, and one with a reader is not to be opened.
    let flags_path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let seen = File::from(rustix::fs::openat(
        &folder,
        &name,
        flags_path,
        Mode::empty(),
    )?);
    let facts = seen.metadata()?;
    check_kind(&facts.file_type(), facts.rdev())?;
    let file = File::from(rustix::fs::openat(&folder, &name, flags, Mode::empty())?);
    let facts = file.metadata()?;
    check_kind(&facts.file_type(), facts.rdev())?;
    if facts.is_file() {
        let facts = (facts.uid(), facts.nlink());
        check_entry(&rustix::fs::fstat(folder.as_fd())?, facts, users)?;
        if there == There::Emptied {
            file.set_len(0)?;
        }
    }
    Ok(file)
}

/// Whether root may write into a file, of an owner and with so many names, that is in `folder`.
fn check_entry(folder: &Stat, (owner, names): (u32, u64), users: &[u32]) -> io::Result<()> {
    let open_to_all = folder.st_mode & EVERYBODY_WRITES != 0;
    let is_others = !users.contains(&folder.st_uid);
    let why = if open_to_all && !users.contains(&owner) {
        format!("the file belongs to user {owner}, in a folder that everybody may write")
    } else if (open_to_all || is_others) && names > 1 {
        "the file has other names (hard links), and another user may have given it this one".into()
    } else {
        return Ok(());
    };
    Err(denied(&why))
}

fn denied(why: &str) -> io::Error {
    let refused = Advised::new(why, "root does not write there, name another file");
    io::Error::new(io::ErrorKind::PermissionDenied, refused)
}

/// The folder and the name of what `path` leads to. No link is followed that another user can have
/// put there; the name itself is none when this returns.
fn walk(path: &Path, users: &[u32]) -> io::Result<(OwnedFd, OsString)> {
    walk_on(path, users, |_, _| Err(Errno::NOENT.into()))
}

/// As [`walk`]; a folder on the way that is missing is made by `make`.
fn walk_on(
    path: &Path,
    users: &[u32],
    make: impl Fn(&OwnedFd, &OsStr) -> io::Result<()>,
) -> io::Result<(OwnedFd, OsString)> {
    let mut left: VecDeque<OsString> = parts(path);
    let mut folder = open_folder(CWD.as_fd(), OsStr::new("."))?;
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        let is_last = left.is_empty();
        if part == "/" || part == ".." {
            folder = open_folder(folder.as_fd(), &part)?;
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = match rustix::fs::openat(&folder, &part, flags, Mode::empty()) {
            Err(Errno::NOENT) if is_last => return Ok((folder, part)),
            Err(Errno::NOENT) => {
                make(&folder, &part)?;
                // What stands there now may be a link that somebody has put there meanwhile.
                left.push_front(part);
                continue;
            }
            entry => File::from(entry?),
        };
        let facts = entry.metadata()?;
        if facts.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            check_link(&rustix::fs::fstat(&folder)?, (&part, facts.uid()), users)?;
            let target = rustix::fs::readlinkat(&entry, "", Vec::new())?;
            let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
            for part in parts(&target).into_iter().rev() {
                left.push_front(part);
            }
        } else if is_last {
            return Ok((folder, part));
        } else {
            folder = open_folder(folder.as_fd(), &part)?;
        }
    }
    Err(io::ErrorKind::IsADirectory.into())
}

/// Whether root may follow the link `name` of `owner` in `folder`.
fn check_link(folder: &Stat, (name, owner): (&OsStr, u32), users: &[u32]) -> io::Result<()> {
    let is_replaceable = folder.st_mode & EVERYBODY_WRITES != 0 && folder.st_mode & STICKY == 0;
    if users.contains(&owner) && !is_replaceable {
        return Ok(());
    }
    let name = name.to_string_lossy();
    Err(denied(&if is_replaceable {
        format!("`{name}` is a link in a folder in which everybody may replace it")
    } else {
        format!("`{name}` is a link of user {owner}")
    }))
}

/// Makes the folder at `path`, with those above it that are missing. Root follows no link on the
/// way that another user can have put there: see the module.
///
/// # Errors
/// When root would follow such a link. When the system refuses.
pub fn make_folders(path: &Path) -> io::Result<()> {
    if is_root() {
        make_guarded(path, &own_users())
    } else {
        std::fs::create_dir_all(path)
    }
}

/// As [`make_folders`] for root, with its own users.
pub(crate) fn make_guarded(path: &Path, users: &[u32]) -> io::Result<()> {
    // A name that no folder has: what it is looked for in is made.
    walk_on(
        &path.join("\u{1}"),
        users,
        |folder, part| match rustix::fs::mkdirat(folder, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        },
    )
    .map(drop)
}

fn open_folder(from: impl std::os::fd::AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(from, name, flags, Mode::empty())?)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let named = |part: Component<'_>| match part {
        Component::CurDir => None,
        part => Some(part.as_os_str().to_owned()),
    };
    path.components().filter_map(named).collect()
}

#[cfg(test)]
mod tests;
