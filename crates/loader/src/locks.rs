//! Locks of files: of the program's own, and without waiting inside of the kernel. A lock of
//! another file of the computer would hold up the programs whose file it is.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use model::Nanos;
use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fstat};

use crate::anchor;
use crate::paths::resolve;
use crate::state::{CallContext, Errno, Reply, Then};
use crate::time::later;

type Answer = Result<Reply, Errno>;

/// How long a `flock()` waits until it asks again.
const AGAIN: Nanos = Nanos::from_millis(1);

/// Refuses the files of the computer. What may be written is the program's own.
fn is_own(cx: &CallContext<'_>, file: &OwnedFd) -> Result<(), Errno> {
    let flags = fcntl_getfl(file)?;
    if flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return Ok(());
    }
    let shown = cx.state.shown_path(&anchor::path_of(file.as_fd())?);
    let name = shown.into_os_string().into_encoded_bytes();
    let found = resolve(cx.state, cx.call.tid, Path::new("/"), &name, false)?;
    found.changeable()?;
    let (open, named) = (fstat(file)?, found.stat(cx.state)?);
    if (open.st_dev, open.st_ino) != (named.st_dev, named.st_ino) {
        return Err(Errno(libc::EACCES));
    }
    Ok(())
}

/// `flock()`: done on a second descriptor, to which the lock belongs as well.
pub fn flock(cx: &mut CallContext<'_>) -> Answer {
    let file = cx.duplicate(cx.int(0))?;
    let operation = match cx.int(1) & !libc::LOCK_NB {
        libc::LOCK_SH => FlockOperation::NonBlockingLockShared,
        libc::LOCK_EX => FlockOperation::NonBlockingLockExclusive,
        libc::LOCK_UN => FlockOperation::NonBlockingUnlock,
        _ => return Err(Errno(libc::EINVAL)),
    };
    is_own(cx, &file)?;
    match rustix::fs::flock(&file, operation) {
        Err(rustix::io::Errno::WOULDBLOCK) if cx.int(1) & libc::LOCK_NB == 0 => {
            let until = later(cx.now(), AGAIN);
            Ok(Reply::Park(Then::Files(Vec::new()), Some(until)))
        }
        done => Ok(done.map(|()| Reply::Value(0))?),
    }
}

/// `fcntl()` with a lock that does not wait: the kernel knows its owner by the call.
pub fn range(cx: &mut CallContext<'_>) -> Answer {
    let file = cx.duplicate(cx.int(0))?;
    is_own(cx, &file)?;
    Ok(Reply::Continue)
}
