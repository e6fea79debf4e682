//! Archives in the kernel's format for initial file systems (`newc`), written and read.

use std::collections::BTreeSet;
use std::io::{self, Read as _};

use cpio::NewcBuilder;
use cpio::NewcReader;
use cpio::newc::{ModeFileType, trailer};

/// The bits of a mode that say what kind of file it is, and those of a regular one.
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;

/// An archive that is being written. The same calls give the same bytes: times are zero and inode
/// numbers count up.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
    /// Folders that are in already.
    folders: BTreeSet<String>,
}

impl Archive {
    /// Adds a folder and those above it, once.
    pub fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || !self.folders.insert(path.to_owned()) {
            return;
        }
        self.folder_above(path);
        self.entry(path, ModeFileType::Directory, 0o755, &[]);
    }

    /// Adds a file with the permission bits `mode`, and the folders above it.
    pub fn file(&mut self, path: &str, mode: u32, contents: &[u8]) {
        self.folder_above(path);
        self.entry(path, ModeFileType::Regular, mode & 0o7777, contents);
    }

    /// Adds a symbolic link, and the folders above it.
    pub fn link(&mut self, path: &str, target: &str) {
        self.folder_above(path);
        self.entry(path, ModeFileType::Symlink, 0o777, target.as_bytes());
    }

    /// Adds a character device, and the folders above it.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.folder_above(path);
        let builder = self.builder(path, ModeFileType::Char, 0o600);
        self.write(builder.rdev_major(major).rdev_minor(minor), &[]);
    }

    /// Ends the archive.
    ///
    /// # Panics
    /// Never: memory takes what is written into it.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        trailer(self.bytes).expect("memory takes it")
    }

    fn folder_above(&mut self, path: &str) {
        if let Some((above, _)) = path.trim_matches('/').rsplit_once('/') {
            self.folder(above);
        }
    }

    fn entry(&mut self, path: &str, kind: ModeFileType, mode: u32, contents: &[u8]) {
        let builder = self.builder(path, kind, mode);
        self.write(builder, contents);
    }

    fn builder(&mut self, path: &str, kind: ModeFileType, mode: u32) -> NewcBuilder {
        self.inode += 1;
        let builder = NewcBuilder::new(path.trim_matches('/'));
        builder.ino(self.inode).mode(mode).set_mode_file_type(kind)
    }

    /// # Panics
    /// When the file is larger than the format's 4 GiB; no guest has room for it.
    fn write(&mut self, builder: NewcBuilder, contents: &[u8]) {
        let size = u32::try_from(contents.len()).expect("a file of less than 4 GiB");
        let mut writer = builder.write(&mut self.bytes, size);
        let written = io::Write::write_all(&mut writer, contents).and_then(|()| writer.finish());
        written.expect("memory takes it");
    }
}

/// A regular file of an archive that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveEntry {
    /// Path without a slash in front.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Its bytes.
    pub contents: Vec<u8>,
}

/// Reads the regular files of an archive, in its order.
///
/// # Errors
/// `UnexpectedEof` when the archive is cut off because its writer was interrupted; `InvalidData`
/// when something else stands where a header should.
pub fn read(mut bytes: &[u8]) -> io::Result<Vec<ArchiveEntry>> {
    let mut entries = Vec::new();
    loop {
        let mut reader = NewcReader::new(bytes)?;
        let entry = reader.entry();
        if entry.is_trailer() {
            return Ok(entries);
        }
        let (mode, size) = (entry.mode(), entry.file_size() as usize);
        let path = entry.name().trim_start_matches("./");
        let path = path.trim_start_matches('/').to_owned();
        let mut contents = Vec::new();
        reader.read_to_end(&mut contents)?;
        if contents.len() < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if mode & KIND == FILE {
            entries.push(ArchiveEntry {
                path,
                mode: mode & 0o7777,
                contents,
            });
        }
        bytes = reader.finish()?;
    }
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
        for len in [0, 60, 110, bytes.len() / 2, bytes.len() - 8] {
            let error = read(&bytes[..len]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{len}");
        }
        let mut broken = bytes;
        broken[3] = b'x';
        let error = read(&broken).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
