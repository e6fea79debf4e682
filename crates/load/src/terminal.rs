//! A pair of a terminal and who looks at it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// A terminal that hands on each byte as it is.
#[derive(Debug)]
pub struct Terminal {
    /// Where keys are typed and the screen is read.
    pub outside: File,
    /// What a program has as its terminal.
    pub inside: File,
}

impl Terminal {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no terminals to give, as without `/dev/pts`.
    pub fn open() -> io::Result<Self> {
        let outside = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::CLOEXEC)?);
        unlockpt(&outside)?;
        let name = ptsname(&outside, Vec::new())?;
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        let inside = File::options().read(true).write(true).open(path)?;
        let mut how = tcgetattr(&inside)?;
        how.make_raw();
        tcsetattr(&inside, OptionalActions::Now, &how)?;
        Ok(Self { outside, inside })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_key_arrives_without_a_new_line_and_is_not_changed() {
        let mut terminal = Terminal::open().unwrap();
        terminal.outside.write_all(b"\r").unwrap();
        let mut key = [0];
        terminal.inside.read_exact(&mut key).unwrap();
        assert_eq!(&key, b"\r");
        terminal.inside.write_all(b"\n").unwrap();
        terminal.outside.read_exact(&mut key).unwrap();
        // Not a carriage return more.
        assert_eq!(&key, b"\n");
    }
}
