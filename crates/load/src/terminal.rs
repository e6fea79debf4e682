//! A pair of a terminal and who looks at it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

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
        let both = |path: &str| File::options().read(true).write(true).open(path);
        let outside = both("/dev/ptmx")?;
        let (mut locked, mut number): (libc::c_int, libc::c_uint) = (0, 0);
        // SAFETY: each request reads or fills one integer that is alive for the call.
        #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
        let refused = unsafe {
            let fd = outside.as_raw_fd();
            libc::ioctl(fd, libc::TIOCSPTLCK, &raw mut locked) != 0
                || libc::ioctl(fd, libc::TIOCGPTN, &raw mut number) != 0
        };
        if refused {
            return Err(io::Error::last_os_error());
        }
        let inside = both(&format!("/dev/pts/{number}"))?;
        // SAFETY: a zeroed `termios` is a valid one; the pointers are to a live value, and the
        // calls keep none.
        #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
        let refused = unsafe {
            let mut how: libc::termios = std::mem::zeroed();
            let fd = inside.as_raw_fd();
            let got = libc::tcgetattr(fd, &raw mut how);
            libc::cfmakeraw(&raw mut how);
            got != 0 || libc::tcsetattr(fd, libc::TCSANOW, &raw const how) != 0
        };
        match refused {
            true => Err(io::Error::last_os_error()),
            false => Ok(Self { outside, inside }),
        }
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
