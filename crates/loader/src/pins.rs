//! `BPF_OBJ_PIN` and `BPF_OBJ_GET`: objects of bpf(2) that have a name below `/sys/fs/bpf`.
//!
//! The name is an empty file of the tree, known by its inode, so that it can be renamed. Offsets
//! are those of `union bpf_attr`, Linux 6.18, include/uapi/linux/bpf.h.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use crate::attr::Attr;
use crate::bpf::end;
use crate::paths::{self, PathOwner, Resolved};
use crate::state::{CallContext, Errno, Reply};

/// `BPF_F_PATH_FD`: the path goes from a folder that is named by its descriptor.
const PATH_FD: u32 = 1 << 14;

fn path(cx: &mut CallContext<'_>, attr: &Attr) -> Result<Resolved, Errno> {
    let has_folder = attr.u32(12) & PATH_FD != 0;
    let folder = if has_folder { attr.u32(16).cast_signed() } else { libc::AT_FDCWD };
    let found = paths::path(cx, folder, attr.u64(0), true)?;
    let is_ours = found.place == PathOwner::Tree && found.shown.starts_with("/sys/fs/bpf");
    // As on every other file system.
    is_ours.then_some(found).ok_or(Errno(libc::EPERM))
}

fn inode(cx: &CallContext<'_>, found: &Resolved) -> Result<(u64, u64), Errno> {
    let stat = found.stat(cx.state)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Gives an object a name, which keeps it when its last descriptor is closed.
///
/// # Errors
/// What the program gets as `errno`.
pub fn pin(cx: &mut CallContext<'_>, attr: &Attr) -> Result<Reply, Errno> {
    if attr.u32(12) & !PATH_FD != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let object = cx.object(attr.u32(8).cast_signed()).ok_or(Errno(libc::EBADF))?;
    let stat = rustix::fs::fstat(&object.file)?;
    let found = path(cx, attr)?;
    // Fails with `EEXIST` as the kernel does.
    crate::growth::name(cx, &found)?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    found.open(cx.state, new, Mode::from_raw_mode(0o600))?;
    let key = inode(cx, &found)?;
    cx.state.pins.insert(key, (stat.st_dev, stat.st_ino));
    Ok(Reply::Value(0))
}

/// A descriptor for what has that name.
///
/// # Errors
/// What the program gets as `errno`.
pub fn get(cx: &mut CallContext<'_>, attr: &Attr) -> Result<Reply, Errno> {
    let found = path(cx, attr)?;
    let pinned = cx.state.pins.get(&inode(cx, &found)?);
    let object = pinned.and_then(|key| cx.state.objects.get(key));
    let object = object.ok_or(Errno(libc::EACCES))?;
    Ok(Reply::Fd(OwnedFd::from(object.file.try_clone()?), true))
}

/// The inode of a file that is about to be unlinked, if it is a name.
pub fn named(cx: &CallContext<'_>, found: &Resolved) -> Option<(u64, u64)> {
    let key = inode(cx, found).ok()?;
    cx.state.pins.contains_key(&key).then_some(key)
}

/// A name is gone, and its object too, unless somebody has it by another name or a descriptor.
pub fn unlinked(cx: &mut CallContext<'_>, name: (u64, u64)) {
    let Some(object) = cx.state.pins.remove(&name) else {
        return;
    };
    if cx.state.orphans().contains(&object) {
        end(cx, object);
    }
}
