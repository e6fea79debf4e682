//! Files of this computer by the names that users give them: any bytes, `-` for standard input, and
//! pipes, which are read once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ask::services::{FileKind, Files, Opened, Services};
use folder::OwnFolder;
use model::Advised;

/// Most bytes that come through a pipe. They are kept in a file until the end.
const PIPED: u64 = 4 << 30;

/// The bytes 0x80 to 0xff of a name that is no text stand in one as U+EF80 to U+EFFF, in the
/// private area: names are text everywhere else.
///
/// Source: OPTU-8/16 of `MirBSD`, which maps them so, too.
const RAW: u32 = 0xef00;

/// A word of the command line as text, whatever its bytes are; [`real`] is the way back.
pub fn text_of(word: &OsStr) -> String {
    let mut text = String::new();
    let raw = |text: &mut String, bytes: &[u8]| {
        let chars = bytes
            .iter()
            .map(|&byte| char::from_u32(RAW + u32::from(byte)));
        text.extend(chars.map(|it| it.expect("a character of the private area")));
    };
    for chunk in word.as_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            // A name that has such a character itself must come back as it is.
            if raw_byte(char).is_some() {
                raw(&mut text, char.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(char);
            }
        }
        raw(&mut text, chunk.invalid());
    }
    text
}

/// The byte that a character of [`text_of`] stands for.
pub fn raw_byte(char: char) -> Option<u8> {
    let byte = u32::from(char).checked_sub(RAW)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

/// The path that the system knows, of one that [`text_of`] may have written.
pub fn real(path: &Path) -> Cow<'_, Path> {
    let Some(text) = path
        .to_str()
        .filter(|it| it.chars().any(|c| raw_byte(c).is_some()))
    else {
        return Cow::Borrowed(path);
    };
    let mut bytes = Vec::new();
    for char in text.chars() {
        match raw_byte(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(PathBuf::from(OsString::from_vec(bytes)))
}

/// Opens a file as often as one likes: standard input, which `-` names, and pipes are read once,
/// and kept in a file without a name.
///
/// # Errors
/// When it cannot be opened, or a pipe has more than 4 GiB.
pub fn open(path: &Path) -> io::Result<File> {
    static KEPT: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());
    let path = real(path);
    let path = match path.as_os_str().as_bytes() {
        b"-" | b"/dev/fd/0" | b"/proc/self/fd/0" => Path::new("/dev/stdin"),
        _ => &path,
    };
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = kept.get(path) {
        return again(file);
    }
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    let is_typed = path == Path::new("/dev/stdin") && io::IsTerminal::is_terminal(&file);
    if !kind.is_fifo() && !kind.is_socket() && !is_typed {
        return Ok(file);
    }
    let file = without_name(file)?;
    let first = again(&file)?;
    kept.insert(path.to_owned(), file);
    Ok(first)
}

/// A file that is open, from its begin on.
fn again(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// All that comes out of `pipe`, in a file that is gone when it is closed.
fn without_name(pipe: File) -> io::Result<File> {
    let folder = OwnFolder::new()?;
    let mut file = File::create_new(folder.join("piped"))?;
    let copied = io::copy(&mut pipe.take(PIPED + 1), &mut file)?;
    if copied > PIPED {
        return Err(io::Error::other(Advised::new(
            format!("a pipe of more than {} GiB", PIPED >> 30),
            "write it to a file, and name that",
        )));
    }
    file.flush()?;
    Ok(file)
}

/// The files of this computer, as questions are lent them.
pub struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path) -> io::Result<Opened> {
        let file = open(path)?;
        let facts = file.metadata().ok().filter(fs::Metadata::is_file);
        Ok(Opened {
            bytes: facts.map(|it| it.len()),
            content: Box::new(file),
        })
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        let facts = fs::metadata(real(path)).ok()?;
        Some(if facts.is_file() {
            FileKind::File
        } else if facts.is_dir() {
            FileKind::Folder
        } else {
            FileKind::Other
        })
    }
}

/// Files and nothing else of this computer.
pub const FILES: Services<'static> = Services {
    files: Some(&Disk),
    compiler: None,
    programs: None,
    workers: None,
    is_cancelled: None,
    hears: None,
    words: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_comes_back_as_it_was() {
        let names: [&[u8]; 5] = [
            b"plain.toml",
            b"caf\xe9.toml",
            "caf\u{e9}.toml".as_bytes(),
            "\u{ef80}\u{efff}\u{ef7f}".as_bytes(),
            b"\xff\xfe\x80/\xf0\x9f",
        ];
        for name in names {
            let text = text_of(OsStr::from_bytes(name));
            let back = real(Path::new(&text)).into_owned();
            assert_eq!(back.as_os_str().as_bytes(), name, "{text:?}");
        }
        assert_eq!(text_of(OsStr::new("caf\u{e9}")), "caf\u{e9}");
    }
}
