//! What the command prints, as it comes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use folder::OwnFolder;

/// Where a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The streams with their files in the scratch folder; the guest has a device for each, in this
/// order.
pub const STREAMS: [(OutputStream, &str); 2] = [
    (OutputStream::Stdout, "stdout"),
    (OutputStream::Stderr, "stderr"),
];

/// Bytes that are handed on at once, at most.
const PIECE: usize = 64 << 10;

/// Hands on what is new in a file, of which `read` bytes were handed on before. What cannot be read
/// now comes another time, or with the result.
pub fn read_on(path: &Path, read: &mut u64, mut hand_on: impl FnMut(&[u8])) {
    let Ok(mut file) = File::open(path) else {
        return;
    };
    if file.seek(SeekFrom::Start(*read)).is_err() {
        return;
    }
    let mut piece = vec![0; PIECE];
    while let Ok(count @ 1..) = file.read(&mut piece) {
        *read += count as u64;
        hand_on(&piece[..count]);
    }
}

/// Called with what was printed since the last time.
pub type OutputListener<'a> = dyn FnMut(OutputStream, &[u8]) + 'a;

/// Reads what a guest prints while it runs.
#[derive(Debug, Default)]
pub struct Follower {
    read: [u64; STREAMS.len()],
}

impl Follower {
    /// Hands on what is new in the files of `scratch`.
    pub fn look(&mut self, scratch: &OwnFolder, listener: &mut OutputListener) {
        for (read, (stream, name)) in self.read.iter_mut().zip(STREAMS) {
            read_on(&scratch.join(name), read, |piece| listener(stream, piece));
        }
    }

    /// How many bytes of each stream were handed on.
    pub fn read(&self) -> [usize; STREAMS.len()] {
        self.read
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_byte_is_handed_on_once() {
        let scratch = OwnFolder::new().unwrap();
        let (mut follower, mut seen) = (Follower::default(), Vec::new());
        let mut look = |follower: &mut Follower| {
            follower.look(&scratch, &mut |stream, bytes| {
                seen.push((stream, String::from_utf8_lossy(bytes).into_owned()));
            });
        };
        look(&mut follower);
        fs::write(scratch.join("stdout"), "one\n").unwrap();
        look(&mut follower);
        look(&mut follower);
        fs::write(scratch.join("stdout"), "one\ntwo").unwrap();
        fs::write(scratch.join("stderr"), "bad\n").unwrap();
        look(&mut follower);
        let want = [
            (OutputStream::Stdout, "one\n"),
            (OutputStream::Stdout, "two"),
            (OutputStream::Stderr, "bad\n"),
        ];
        assert_eq!(seen, want.map(|(stream, text)| (stream, text.to_owned())));
        assert_eq!(follower.read(), [7, 4]);
    }
}
