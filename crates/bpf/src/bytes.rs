//! Checked reads of little-endian numbers. Nothing here can panic, whatever the bytes are.

use std::ffi::CStr;

/// Reads numbers one after another; `None` when the bytes end early.
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

/// The part of `bytes` that begins at `offset` and has `len` bytes, if there is one.
pub(crate) fn slice(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = usize::try_from(offset.checked_add(len)?).ok()?;
    bytes.get(start..end)
}

/// The text at `offset` up to its NUL, if there is a NUL within `limit` bytes and it is UTF-8.
pub(crate) fn text(bytes: &[u8], offset: u32, limit: usize) -> Option<&str> {
    let rest = bytes.get(usize::try_from(offset).ok()?..)?;
    let within = &rest[..rest.len().min(limit)];
    CStr::from_bytes_until_nul(within).ok()?.to_str().ok()
}

/// The little-endian number in up to 8 `bytes`, zero-extended.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// [`number`], sign-extended from its width.
pub(crate) fn signed_number(bytes: &[u8]) -> Option<i64> {
    let unsigned = number(bytes)?;
    let shift = 64 - 8 * u32::try_from(bytes.len()).ok()?;
    if shift == 64 {
        return Some(0);
    }
    Some((unsigned << shift).cast_signed() >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_past_the_end_is_refused_and_moves_nothing() {
        let mut reader = ByteReader::new(&[1, 0, 2]);
        assert_eq!(reader.u16(), Some(1));
        assert_eq!(reader.u16(), None);
        assert_eq!(reader.u8(), Some(2));
        assert!(reader.is_empty());
    }

    #[test]
    fn numbers_extend_from_their_width() {
        assert_eq!(number(&[0xff, 0xff]), Some(0xffff));
        assert_eq!(signed_number(&[0xfe, 0xff]), Some(-2));
        assert_eq!(signed_number(&[]), Some(0));
        assert_eq!(number(&[0; 9]), None);
    }

    #[test]
    fn text_needs_its_end_within_the_limit() {
        assert_eq!(text(b"ab\0", 1, 8), Some("b"));
        assert_eq!(text(b"abc\0", 0, 3), None);
        assert_eq!(text(b"ab", 0, 8), None);
        assert_eq!(text(b"\0", u32::MAX, 8), None);
    }
}
