//! Deletes what is in a folder by descriptors: no link is followed, and nothing that was put where
//! the folder or a part of it has been is touched.
//!
//! On Linux nothing here allocates memory, takes a lock or starts a program: a process that was
//! forked off one with threads may delete, also where the user may have no more processes.

use std::ffi::CStr;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::{Errno, Result};

/// Far more than there are levels or files, for a folder that never becomes empty.
const ROUNDS_MAX: u32 = 1 << 20;

/// Deletes all that is in `folder`, however deep. Subfolders are moved up into `folder` first, so
/// that neither the depth nor the number of open files grows with what somebody has nested.
///
/// # Errors
/// When the system refuses; `EBUSY` if somebody else keeps adding files.
pub fn empty(folder: BorrowedFd<'_>) -> Result<()> {
    let mut moved = 0_u64;
    // Each round deletes the files of some subfolders and lifts what they hold by one level.
    for _ in 0..ROUNDS_MAX {
        let any = each_name(folder, &mut |name| {
            if unlink(folder, name)? {
                return Ok(());
            }
            let below = open_folder(folder, name)?;
            lift(&below, folder, &mut moved)?;
            unlinkat(folder, name, AtFlags::REMOVEDIR)
        })?;
        if !any {
            return Ok(());
        }
    }
    Err(Errno::BUSY)
}

/// Deletes the files in `from`, and moves its folders into `to`.
fn lift(from: &OwnedFd, to: BorrowedFd<'_>, moved: &mut u64) -> Result<()> {
    use std::os::fd::AsFd as _;
    let from = from.as_fd();
    for _ in 0..ROUNDS_MAX {
        let any = each_name(from, &mut |name| {
            if unlink(from, name)? {
                return Ok(());
            }
            // A folder whose owner may not write into it cannot be moved.
            make_writable(from, name)?;
            rename(from, name, to, moved)
        })?;
        if !any {
            return Ok(());
        }
    }
    Err(Errno::BUSY)
}

/// Moves a folder to a name that is free.
fn rename(from: BorrowedFd<'_>, name: &CStr, to: BorrowedFd<'_>, moved: &mut u64) -> Result<()> {
    loop {
        *moved += 1;
        let mut room = [0; TEXT];
        match renameat(from, name, to, text(&mut room, ".runslice-", *moved)) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            done => return done,
        }
    }
}

/// Room for a short word, a number and a zero byte.
const TEXT: usize = 40;

/// A word and a number.
fn text<'a>(room: &'a mut [u8; TEXT], word: &str, number: impl std::fmt::Display) -> &'a CStr {
    // One byte is left: the zero at the end.
    let _ = write!(&mut room[..TEXT - 1], "{word}{number}");
    CStr::from_bytes_until_nul(room).unwrap_or_default()
}

/// Deletes a file or a link; `false` of a folder.
fn unlink(folder: BorrowedFd<'_>, name: &CStr) -> Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // Linux says the first, POSIX the second.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a folder whatever its mode is; a link is refused.
fn open_folder(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    make_writable(parent, name)?;
    openat(parent, name, FOLDER, Mode::empty())
}

/// Lets the owner delete in a folder and move it.
#[cfg(target_os = "linux")]
fn make_writable(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    // `chmod()` of a name would follow a link; the descriptor is the folder itself.
    let folder = openat(parent, name, FOLDER | OFlags::PATH, Mode::empty())?;
    let mut room = [0; TEXT];
    let itself = text(&mut room, "/proc/self/fd/", folder.as_raw_fd());
    // Without /proc it may still be writable.
    let _ = rustix::fs::chmod(itself, Mode::RWXU);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn make_writable(_: BorrowedFd<'_>, _: &CStr) -> Result<()> {
    Ok(())
}

type EachName<'a> = &'a mut dyn FnMut(&CStr) -> Result<()>;

/// Calls `act` with some of the names in a folder: whether there are any. What is deleted while a
/// folder is read may hide other names, so that it is read anew for more.
#[cfg(target_os = "linux")]
fn each_name(folder: BorrowedFd<'_>, act: EachName<'_>) -> Result<bool> {
    // Its own position: that of `folder` stays.
    let folder = openat(folder, c".", FOLDER, Mode::empty())?;
    let mut room = [const { std::mem::MaybeUninit::uninit() }; 8192];
    let mut entries = rustix::fs::RawDir::new(folder, &mut room);
    let mut any = false;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            act(entry.file_name())?;
            any = true;
        }
        if any && entries.is_buffer_empty() {
            break;
        }
    }
    Ok(any)
}

#[cfg(not(target_os = "linux"))]
fn each_name(folder: BorrowedFd<'_>, act: EachName<'_>) -> Result<bool> {
    /// So many names at once, so that the memory does not grow with the folder.
    const NAMES_MAX: usize = 4096;
    let entries = rustix::fs::Dir::read_from(folder)?.filter_map(|entry| match entry {
        Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
        Ok(entry) => Some(Ok(entry.file_name().to_owned())),
        Err(error) => Some(Err(error)),
    });
    let names: Vec<_> = entries.take(NAMES_MAX).collect::<Result<_>>()?;
    for name in &names {
        act(name)?;
    }
    Ok(!names.is_empty())
}
