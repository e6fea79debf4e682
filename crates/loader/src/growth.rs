//! How much the program's files may hold: a disk is the user's, and so is memory, in which
//! `memfd_create()` makes files.
//!
//! What a program writes is counted as it makes files longer, holes included, and never given back:
//! a file that has no name any more still takes its room. The kernel enforces [`FILE_MAX`]
//! (`RLIMIT_FSIZE`), whatever the call is.

use std::os::fd::AsFd as _;

use rustix::fs::{FileType, OFlags, SeekFrom, Stat, fcntl_getfl, fstat, seek};

use crate::anchor;
use crate::paths::{PathOwner, Resolved};
use crate::state::{CallContext, Errno, Reply, u64_at};
use crate::sys::FILE_MAX;

type Answer = Result<Reply, Errno>;

/// Bytes by which a program may make its files longer in one run.
pub const GROWTH_MAX: u64 = 1 << 30;
/// Bytes that a name counts: of a file, a folder, a link or a socket.
const NAME: u64 = 4096;
/// The output that is kept of each stream, in bytes.
pub const OUTPUT_MAX: u64 = 16 << 20;

/// Counts bytes that files are about to grow by.
///
/// # Errors
/// `ENOSPC` if it is too much.
fn charge(cx: &mut CallContext<'_>, bytes: u64) -> Result<(), Errno> {
    let grown = cx.state.grown.saturating_add(bytes);
    if grown > GROWTH_MAX {
        let most = GROWTH_MAX >> 30;
        cx.state.note(format!(
            "its files may grow by {most} GiB in a run; the program was told ENOSPC"
        ));
        return Err(Errno(libc::ENOSPC));
    }
    cx.state.grown = grown;
    Ok(())
}

/// Counts a name that is about to be made.
///
/// # Errors
/// `ENOSPC` if there are too many.
pub fn name(cx: &mut CallContext<'_>, found: &Resolved) -> Result<(), Errno> {
    if found.place == PathOwner::Tree { charge(cx, NAME) } else { Ok(()) }
}

/// Counts a file that is about to have that length.
///
/// # Errors
/// `EFBIG`, `ENOSPC`.
pub fn lengthen(
    cx: &mut CallContext<'_>,
    stat: &Stat,
    end: u64,
    is_given: bool,
) -> Result<(), Errno> {
    if end > FILE_MAX {
        let most = FILE_MAX >> 30;
        cx.state.note(format!("a file may have {most} GiB; the program was told EFBIG"));
        return Err(Errno(libc::EFBIG));
    }
    // The user's own folder is the user's own affair.
    if is_given {
        return Ok(());
    }
    charge(cx, end.saturating_sub(stat.st_size.cast_unsigned()))
}

/// What a call on a descriptor may make longer.
struct Grown {
    stat: Stat,
    /// Where the next `write()` goes.
    at: u64,
    /// Whether each write goes to the end.
    appends: bool,
    is_given: bool,
    is_output: bool,
}

impl Grown {
    /// `None` of what is no file.
    fn of(cx: &mut CallContext<'_>, fd: i32) -> Result<Option<Self>, Errno> {
        let file = cx.duplicate(fd)?;
        let stat = fstat(&file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(None);
        }
        let appends = fcntl_getfl(&file)?.contains(OFlags::APPEND);
        let at = if appends {
            stat.st_size.cast_unsigned()
        } else {
            // What has no position, such as an anonymous file of the kernel's, does not grow.
            seek(&file, SeekFrom::Current(0)).unwrap_or(0)
        };
        let path = anchor::path_of(file.as_fd()).unwrap_or_default();
        let given = cx.state.given.as_ref();
        Ok(Some(Self {
            stat,
            at,
            appends,
            is_given: given.is_some_and(|it| path.starts_with(it.1.path())),
            is_output: cx.state.is_output(&stat),
        }))
    }

    const fn len(&self) -> u64 {
        self.stat.st_size.cast_unsigned()
    }

    /// Whether a call may write up to that end; what goes beyond the output that is kept is lost.
    fn write(&self, cx: &mut CallContext<'_>, end: u64, len: u64) -> Answer {
        if !self.is_output {
            lengthen(cx, &self.stat, end, self.is_given)?;
        } else if end > OUTPUT_MAX {
            return Ok(Reply::Value(len.cast_signed()));
        }
        Ok(Reply::Continue)
    }

    /// Whether a call may give the file that length.
    fn resize(&self, cx: &mut CallContext<'_>, end: u64) -> Answer {
        if self.is_output && end > OUTPUT_MAX {
            return Err(Errno(libc::EFBIG));
        }
        if !self.is_output {
            lengthen(cx, &self.stat, end, self.is_given)?;
        }
        Ok(Reply::Continue)
    }
}

/// `write()` and `writev()` of so many bytes.
pub fn write(cx: &mut CallContext<'_>, fd: i32, len: u64) -> Answer {
    match Grown::of(cx, fd)? {
        Some(file) => file.write(cx, file.at.saturating_add(len), len),
        None => Ok(Reply::Continue),
    }
}

/// The bytes of `writev()` and its relatives.
///
/// # Errors
/// `EINVAL`, `EFAULT`.
pub fn len_of_parts(cx: &CallContext<'_>, at: u64, parts: u64) -> Result<u64, Errno> {
    /// `UIO_MAXIOV`, Linux 6.18, include/uapi/linux/uio.h.
    const PARTS_MAX: u64 = 1024;
    if parts > PARTS_MAX {
        return Err(Errno(libc::EINVAL));
    }
    let parts = cx.read(at, parts * 16)?;
    let lens = parts.chunks_exact(16).map(|part| u64_at(part, 8));
    let sum = lens.fold(0_u64, u64::saturating_add);
    if i64::try_from(sum).is_err() {
        return Err(Errno(libc::EINVAL));
    }
    Ok(sum)
}

/// The first bytes of `writev()`, at most `max`.
///
/// # Errors
/// `EINVAL`, `EFAULT`.
pub fn parts(cx: &CallContext<'_>, at: u64, parts: u64, max: u64) -> Result<Vec<u8>, Errno> {
    len_of_parts(cx, at, parts)?;
    let mut bytes = Vec::new();
    for part in cx.read(at, parts * 16)?.chunks_exact(16) {
        let room = max - bytes.len() as u64;
        bytes.extend(cx.read(u64_at(part, 0), u64_at(part, 8).min(room))?);
    }
    Ok(bytes)
}

/// `pwrite64()`, `pwritev()` and `pwritev2()`.
pub fn write_at(cx: &mut CallContext<'_>) -> Answer {
    let len = match cx.call.nr {
        libc::SYS_pwrite64 => cx.arg(2).min(i64::MAX as u64),
        _ => len_of_parts(cx, cx.arg(1), cx.arg(2))?,
    };
    let Some(file) = Grown::of(cx, cx.int(0))? else {
        return Ok(Reply::Continue);
    };
    let flags = if cx.call.nr == libc::SYS_pwritev2 { cx.int(5) } else { 0 };
    let at = match cx.arg(3) {
        _ if file.appends || flags & libc::RWF_APPEND != 0 => file.len(),
        u64::MAX => file.at,
        at => at,
    };
    file.write(cx, at.saturating_add(len), len)
}

/// `ftruncate()`.
pub fn truncate(cx: &mut CallContext<'_>) -> Answer {
    match Grown::of(cx, cx.int(0))? {
        Some(file) => file.resize(cx, cx.arg(1)),
        None => Ok(Reply::Continue),
    }
}

/// `fallocate()`: room at the end, or a hole.
pub fn allocate(cx: &mut CallContext<'_>) -> Answer {
    const KEEP_SIZE: i32 = libc::FALLOC_FL_KEEP_SIZE;
    const HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP_SIZE;
    if !matches!(cx.int(1), 0 | KEEP_SIZE | HOLE) {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    match Grown::of(cx, cx.int(0))? {
        Some(_) if cx.int(1) == HOLE => Ok(Reply::Continue),
        Some(file) => file.resize(cx, cx.arg(2).saturating_add(cx.arg(3))),
        None => Ok(Reply::Continue),
    }
}
