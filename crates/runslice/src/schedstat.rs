//! Files of the kernel's scheduler statistics, as users name them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use stats::schedstat::Snapshot;

use crate::exit::UnsupportedError;

/// Opens the kernel's statistics, or a file like them.
///
/// # Errors
/// When it cannot be opened; without the kernel's file the message says what the kernel lacks.
pub fn statistics(path: &Path) -> anyhow::Result<File> {
    File::open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound && path == Path::new("/proc/schedstat") {
            let message = "/proc/schedstat does not exist: this kernel was built without \
                           CONFIG_SCHEDSTATS; record on another one, or in `runslice vm`";
            return UnsupportedError(message.to_owned()).into();
        }
        anyhow!(error).context(format!("cannot read {}", path.display()))
    })
}

/// Opens a recording; `-` is standard input.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

/// The kernel's HZ: as the user says, or as is likely, and then said.
///
/// # Errors
/// When standard error does not take the line.
pub fn hz_of(asked: Option<u32>, snapshot: &Snapshot) -> io::Result<u32> {
    if let Some(hz) = asked {
        return Ok(hz);
    }
    let hz = if snapshot.layout().version <= 14 {
        1_000
    } else {
        250
    };
    writeln!(
        io::stderr(),
        "runslice: counts {hz} jiffies as a second; --hz says otherwise"
    )?;
    Ok(hz)
}
