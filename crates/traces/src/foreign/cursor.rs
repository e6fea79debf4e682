//! Reading numbers, strings and blocks, with the offset for errors.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use crate::foreign::error::Error;

/// The order of a file's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    #[default]
    Little,
    Big,
}

impl Endian {
    /// The unsigned number that `bytes`, at most 8 of them, are.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, add),
            Self::Big => bytes.iter().fold(0, add),
        }
    }
}

/// Most bytes of a string without a length.
const STRING: u64 = 1 << 12;

/// Goes to a byte that the file itself names.
pub fn seek<R: Read + Seek>(input: &mut BufReader<R>, offset: u64) -> Result<(), Error> {
    let sought = input.seek(SeekFrom::Start(offset));
    sought.map_err(|source| {
        // Beyond what a file can have the system speaks of an argument, and not of the file.
        if source.kind() == std::io::ErrorKind::InvalidInput {
            let what = "no file is that long: the place of a section is damaged";
            return Error::Malformed { offset, what };
        }
        Error::Io { offset, source }
    })?;
    Ok(())
}

/// A reader that knows where it is.
pub struct Cursor<R> {
    input: R,
    pub offset: u64,
    pub endian: Endian,
}

impl<R: BufRead> Cursor<R> {
    pub const fn new(input: R, offset: u64, endian: Endian) -> Self {
        Self {
            input,
            offset,
            endian,
        }
    }

    /// Fills `bytes`; `what` is what they belong to.
    pub fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), Error> {
        let offset = self.offset;
        self.input.read_exact(bytes).map_err(|source| {
            if source.kind() == std::io::ErrorKind::UnexpectedEof {
                Error::Truncated { offset, what }
            } else {
                Error::Io { offset, source }
            }
        })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, Error> {
        Ok(self.array::<1>(what)?[0])
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        let number = self.endian.number(&self.array::<2>(what)?);
        Ok(u16::try_from(number).expect("two bytes"))
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        let number = self.endian.number(&self.array::<4>(what)?);
        Ok(u32::try_from(number).expect("four bytes"))
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64, Error> {
        Ok(self.endian.number(&self.array::<8>(what)?))
    }

    /// The next `long` bytes, at most `most`.
    pub fn bytes(&mut self, long: u64, most: u64, what: &'static str) -> Result<Vec<u8>, Error> {
        let offset = self.offset;
        if long > most {
            let found = long;
            return Err(Error::TooLong {
                offset,
                what,
                found,
                most,
            });
        }
        // Grows with what is really there, whatever the file claims.
        let mut bytes = Vec::new();
        let got = (&mut self.input).take(long).read_to_end(&mut bytes);
        let got = got.map_err(|source| Error::Io { offset, source })? as u64;
        if got < long {
            return Err(Error::Truncated { offset, what });
        }
        self.offset += got;
        Ok(bytes)
    }

    /// What stands before the next NUL.
    pub fn string(&mut self, what: &'static str) -> Result<String, Error> {
        let offset = self.offset;
        let mut bytes = Vec::new();
        let got = (&mut self.input).take(STRING).read_until(0, &mut bytes);
        let got = got.map_err(|source| Error::Io { offset, source })? as u64;
        if bytes.pop() != Some(0) {
            return Err(Error::Truncated { offset, what });
        }
        self.offset += got;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Demands that the next bytes are `wanted`.
    pub fn expect(&mut self, wanted: &'static [u8], what: &'static str) -> Result<(), Error> {
        let offset = self.offset;
        let mut bytes = vec![0; wanted.len()];
        self.fill(&mut bytes, what)?;
        if bytes == wanted {
            return Ok(());
        }
        Err(Error::Malformed { offset, what })
    }
}
