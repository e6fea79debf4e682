//! Deletes what is in a folder by descriptors: no link is followed, and nothing that was put where
//! the folder or a part of it has been is touched.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Deletes all that is in `folder`, however deep. Subfolders are moved up into `folder` first, so
/// that neither the depth nor the number of open files grows with what somebody has nested.
///
/// # Errors
/// When the system refuses, or somebody else keeps adding files.
pub fn empty(folder: BorrowedFd<'_>) -> io::Result<()> {
    /// Far more than there are levels or files, for a folder that never becomes empty.
    const ROUNDS_MAX: u32 = 1 << 20;
    let mut moved = 0_u64;
    // Each round deletes the files of all subfolders and lifts what they hold by one level.
    for _ in 0..ROUNDS_MAX {
        let names = names(folder)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if unlink(folder, &name)? {
                continue;
            }
            let below = open_folder(folder, &name)?;
            lift(below.as_fd(), folder, &mut moved)?;
            unlinkat(folder, &name, AtFlags::REMOVEDIR)?;
        }
    }
    Err(io::Error::other(
        "somebody adds files to a folder that is being deleted",
    ))
}

/// Deletes the files in `from`, and moves its folders into `to`.
fn lift(from: BorrowedFd<'_>, to: BorrowedFd<'_>, moved: &mut u64) -> io::Result<()> {
    loop {
        let names = names(from)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if unlink(from, &name)? {
                continue;
            }
            // A folder whose owner may not write into it cannot be moved.
            make_writable(from, &name)?;
            rename(from, &name, to, moved)?;
        }
    }
}

/// Moves a folder to a name that is free.
fn rename(
    from: BorrowedFd<'_>,
    name: &CString,
    to: BorrowedFd<'_>,
    moved: &mut u64,
) -> io::Result<()> {
    loop {
        *moved += 1;
        match renameat(from, name, to, format!(".runslice-{moved}")) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            done => return Ok(done?),
        }
    }
}

/// Deletes a file or a link; `false` of a folder.
fn unlink(folder: BorrowedFd<'_>, name: &CString) -> io::Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // Linux says the first, POSIX the second.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a folder whatever its mode is; a link is refused.
fn open_folder(parent: BorrowedFd<'_>, name: &CString) -> io::Result<OwnedFd> {
    make_writable(parent, name)?;
    Ok(openat(parent, name, FOLDER, Mode::empty())?)
}

/// Lets the owner delete in a folder and move it.
#[cfg(target_os = "linux")]
fn make_writable(parent: BorrowedFd<'_>, name: &CString) -> io::Result<()> {
    // `chmod()` of a name would follow a link; the descriptor is the folder itself.
    let folder = openat(parent, name, FOLDER | OFlags::PATH, Mode::empty())?;
    let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let mode = fs::Permissions::from_mode(0o700);
    // Without /proc it may still be writable.
    let _ = fs::set_permissions(itself, mode);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn make_writable(_: BorrowedFd<'_>, _: &CString) -> io::Result<()> {
    Ok(())
}

fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    /// So many names at once, so that the memory does not grow with the folder.
    const NAMES_MAX: usize = 4096;
    let entries = Dir::read_from(folder)?.filter_map(|entry| match entry {
        Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
        Ok(entry) => Some(Ok(entry.file_name().to_owned())),
        Err(error) => Some(Err(error.into())),
    });
    entries.take(NAMES_MAX).collect()
}
