//! What a program has written.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::anchor::Anchor;

/// Bytes of each stream that are looked at.
const BYTES_MAX: u64 = 8192;
/// Lines of each stream.
const LINES_MAX: usize = 20;
/// Characters of a line.
const LINE_MAX: usize = 400;

/// The file of a stream. It has no name: nobody can put another one in its place.
#[derive(Debug)]
pub struct Printed {
    file: File,
    /// Its device and inode.
    pub inode: (u64, u64),
}

impl Printed {
    /// Makes the file, and the program's descriptor of it, which can only append.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(folder: &Anchor, name: &str) -> io::Result<(Self, OwnedFd)> {
        let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = folder.open(Path::new(name), new, Mode::from_raw_mode(0o600))?;
        let append = OFlags::WRONLY | OFlags::APPEND;
        let written = folder.open(Path::new(name), append, Mode::empty())?;
        folder.remove(Path::new(name), AtFlags::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let inode = (stat.st_dev, stat.st_ino);
        let file = File::from(file);
        Ok((Self { file, inode }, written))
    }

    /// Its last bytes, at most `max`, however long the file was made.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn end(&self, max: u64) -> io::Result<Vec<u8>> {
        let len = self.file.metadata()?.len();
        let mut bytes = vec![0; usize::try_from(len.min(max)).unwrap_or(0)];
        let mut got = 0;
        while got < bytes.len() {
            let at = len.saturating_sub(max) + got as u64;
            match self.file.read_at(&mut bytes[got..], at) {
                // It has become shorter.
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(got);
        Ok(bytes)
    }
}

/// The last lines of the standard output and of the error output. A program's output may have
/// anything in it: what is not text is escaped, long lines are cut.
#[must_use]
pub fn last_lines(files: &[Printed; 2]) -> String {
    let mut lines = Vec::new();
    for file in files {
        let bytes = file.end(BYTES_MAX).unwrap_or_default();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let all = bytes.split(|byte| *byte == b'\n');
        let all: Vec<&[u8]> = all.filter(|_| !bytes.is_empty()).collect();
        let from = all.len().saturating_sub(LINES_MAX);
        lines.extend(all[from..].iter().map(|it| plain(it)));
    }
    lines.join("\n")
}

/// A line that does nothing to a terminal, whatever its bytes are, cut where nobody reads on.
fn plain(line: &[u8]) -> String {
    let text = model::plain::shown(line.strip_suffix(b"\r").unwrap_or(line));
    match text.char_indices().nth(LINE_MAX) {
        Some((cut, _)) => text[..cut].to_owned() + " ...",
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn only_the_end_of_a_file_is_read_however_long_it_was_made() {
        let folder = folder::OwnFolder::new().unwrap();
        let anchor = Anchor::at(folder.path()).unwrap();
        let (output, writer) = Printed::new(&anchor, "out").unwrap();
        assert!(!folder.join("out").exists(), "it has no name");
        let writer = File::from(writer);
        writer.set_len(1 << 36).unwrap();
        (&writer).write_all(b"end").unwrap();
        assert_eq!(output.end(5).unwrap(), b"\0\0end");
    }

    #[test]
    fn the_last_lines_are_plain_and_few() {
        let folder = folder::OwnFolder::new().unwrap();
        let anchor = Anchor::at(folder.path()).unwrap();
        let [(out, to_out), (err, to_err)] =
            ["out", "err"].map(|it| Printed::new(&anchor, it).unwrap());
        let many: String = (0..5000).map(|it| format!("line {it}\n")).collect();
        File::from(to_out).write_all(many.as_bytes()).unwrap();
        let long = "x".repeat(1000);
        let told = format!("\u{1b}[31mred\u{202e}\r\n{long}\n");
        let mut to_err = File::from(to_err);
        to_err.write_all(told.as_bytes()).unwrap();
        to_err.write_all(b"caf\xe9\n").unwrap();
        let files = [out, err];
        let text = last_lines(&files);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), LINES_MAX + 3);
        assert_eq!((lines[0], lines[19]), ("line 4980", "line 4999"));
        assert_eq!(lines[20], "\\u001b[31mred\\u202e");
        assert_eq!(lines[21].len(), LINE_MAX + 4);
        assert_eq!(lines[22], r"caf\xe9");
    }
}
