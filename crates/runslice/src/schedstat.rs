//! Files of the kernel's scheduler statistics, as users name them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;

use model::Advised;
use stats::schedstat::HzEvidence;

use crate::exit::UnsupportedError;

/// Opens the kernel's statistics, or a file like them.
///
/// # Errors
/// When it cannot be opened; without the kernel's file the message says what the kernel lacks.
pub fn statistics(path: &Path) -> anyhow::Result<File> {
    File::open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound && path == Path::new("/proc/schedstat") {
            let message = Advised::new(
                "/proc/schedstat does not exist: this kernel was built without CONFIG_SCHEDSTATS",
                "record on another one, or in `runslice vm`",
            );
            return UnsupportedError::new(message).into();
        }
        model::CannotRead::at(path.display())(error).into()
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
    let file = File::open(path).map_err(model::CannotRead::at(path.display()))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

/// The kernel's HZ: as the user says, as the recording says, or as is likely, and then said.
///
/// # Errors
/// When standard error does not take the line.
pub fn hz_of(asked: Option<u32>, noted: Option<u32>, evidence: &HzEvidence) -> io::Result<u32> {
    if let Some(hz) = asked.or(noted) {
        return Ok(hz);
    }
    let found = evidence.find();
    let others = found.fitting.iter().filter(|&&hz| hz != found.hz);
    let others: Vec<String> = others.map(u32::to_string).collect();
    let doubt = if others.is_empty() {
        String::new()
    } else {
        format!("; {} fit, too", others.join(", "))
    };
    writeln!(
        io::stderr(),
        "runslice: the statistics do not say their kernel's HZ: counts {} jiffies as a second\
         {doubt}; --hz says otherwise",
        found.hz
    )?;
    Ok(found.hz)
}
