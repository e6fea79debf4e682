//! Archives in the kernel's format for initial file systems, written and read.
//!
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst, kernel 6.18: thirteen
//! fields of eight hexadecimal digits behind a magic number, then the name and the contents, each
//! padded to four bytes.

use std::collections::BTreeSet;

const MAGIC: &[u8] = b"070701";
const FIELDS: usize = 13;
const HEADER: usize = MAGIC.len() + FIELDS * 8;
/// Ends an archive; a file of this name cannot be in one.
const TRAILER: &str = "TRAILER!!!";

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const DEVICE: u32 = 0o020_000;
const LINK: u32 = 0o120_000;
/// The bits that say what kind of file it is.
const KIND: u32 = 0o170_000;

/// An archive that is being written. The same calls give the same bytes: times are zero and inode
/// numbers count up.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
    /// Folders that are in already.
    folders: BTreeSet<String>,
}

/// What there is besides a file's name and contents.
#[derive(Clone, Copy, Default)]
struct Attributes {
    mode: u32,
    /// Major and minor number of a device.
    device: (u32, u32),
}

impl Archive {
    /// Adds a folder and those above it, once.
    pub fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || !self.folders.insert(path.to_owned()) {
            return;
        }
        self.folder_above(path);
        self.entry(
            path,
            Attributes {
                mode: FOLDER | 0o755,
                ..Attributes::default()
            },
            &[],
        );
    }

    /// Adds a file with the permission bits `mode`, and the folders above it.
    pub fn file(&mut self, path: &str, mode: u32, contents: &[u8]) {
        let attributes = Attributes {
            mode: FILE | mode & 0o7777,
            ..Attributes::default()
        };
        self.folder_above(path);
        self.entry(path, attributes, contents);
    }

    /// Adds a symbolic link, and the folders above it.
    pub fn link(&mut self, path: &str, target: &str) {
        self.folder_above(path);
        let attributes = Attributes {
            mode: LINK | 0o777,
            ..Attributes::default()
        };
        self.entry(path, attributes, target.as_bytes());
    }

    /// Adds a character device, and the folders above it.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.folder_above(path);
        self.entry(
            path,
            Attributes {
                mode: DEVICE | 0o600,
                device: (major, minor),
            },
            &[],
        );
    }

    /// Ends the archive.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, Attributes::default(), &[]);
        self.bytes
    }

    fn folder_above(&mut self, path: &str) {
        if let Some((above, _)) = path.trim_matches('/').rsplit_once('/') {
            self.folder(above);
        }
    }

    /// # Panics
    /// When the file is larger than the format's 4 GiB; no guest has room for it.
    fn entry(&mut self, path: &str, attributes: Attributes, contents: &[u8]) {
        let path = path.trim_matches('/');
        let size = u32::try_from(contents.len()).expect("a file of less than 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a path of less than 4 GiB");
        self.inode += 1;
        let (major, minor) = attributes.device;
        // Inode, mode, owner, group, links, time, size, device of the file system (2), device
        // that the file is (2), size of the name with its zero, checksum (unused).
        let fields = [
            self.inode,
            attributes.mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            major,
            minor,
            name_size,
            0,
        ];
        self.bytes.extend_from_slice(MAGIC);
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// A regular file of an archive that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path without a slash in front.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Its bytes.
    pub contents: Vec<u8>,
}

/// Why an archive cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CpioError {
    /// It stops before its trailer: the writer was interrupted.
    #[error("the archive is cut off after {0} bytes")]
    CutOff(usize),
    /// Something else stands where a header should.
    #[error("no header at byte {0} of the archive")]
    NoHeader(usize),
}

/// Reads the regular files of an archive, in its order.
///
/// # Errors
/// When the archive is cut off or is none.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, CpioError> {
    let mut entries = Vec::new();
    let mut at = 0;
    loop {
        let header = part(bytes, at, HEADER)?;
        let fields = fields(header).ok_or(CpioError::NoHeader(at))?;
        let [mode, size, name_size] = [fields[1], fields[6], fields[11]];
        let name = part(bytes, at + HEADER, name_size as usize)?;
        let name = String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name)).into_owned();
        let start = (at + HEADER + name_size as usize).next_multiple_of(4);
        if name == TRAILER {
            return Ok(entries);
        }
        let contents = part(bytes, start, size as usize)?;
        if mode & KIND == FILE {
            let path = name
                .trim_start_matches("./")
                .trim_start_matches('/')
                .to_owned();
            entries.push(Entry {
                path,
                mode: mode & 0o7777,
                contents: contents.to_vec(),
            });
        }
        at = (start + size as usize).next_multiple_of(4);
    }
}

fn part(bytes: &[u8], start: usize, size: usize) -> Result<&[u8], CpioError> {
    bytes
        .get(start..start + size)
        .ok_or(CpioError::CutOff(bytes.len()))
}

fn fields(header: &[u8]) -> Option<[u32; FIELDS]> {
    let digits = header.strip_prefix(MAGIC)?;
    let mut fields = [0; FIELDS];
    for (field, text) in fields.iter_mut().zip(digits.chunks_exact(8)) {
        *field = u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.file("/usr/bin/tool", 0o755, b"odd");
        archive.link("usr/bin/alias", "tool");
        archive.device("dev/console", 5, 1);
        archive.file("empty", 0o644, b"");
        archive.finish()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let entries = read(&sample()).unwrap();
        let shown: Vec<_> = entries
            .iter()
            .map(|e| (&*e.path, e.mode, e.contents.as_slice()))
            .collect();
        assert_eq!(
            shown,
            [
                ("usr/bin/tool", 0o755, b"odd".as_slice()),
                ("empty", 0o644, b"".as_slice())
            ]
        );
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_each_folder_once() {
        let bytes = sample();
        assert_eq!(bytes, sample());
        let folders = bytes.windows(8).filter(|w| w == b"usr/bin\0").count();
        assert_eq!(folders, 1);
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn an_archive_that_was_cut_off_is_told_from_a_whole_one() {
        let bytes = sample();
        for len in [0, 60, HEADER, bytes.len() / 2, bytes.len() - 8] {
            assert_eq!(read(&bytes[..len]), Err(CpioError::CutOff(len)), "{len}");
        }
        let mut broken = bytes;
        broken[3] = b'x';
        assert_eq!(read(&broken), Err(CpioError::NoHeader(0)));
    }
}
