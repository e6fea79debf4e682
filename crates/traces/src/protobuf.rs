//! The protobuf wire format, as far as reading and writing traces needs it.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>.

mod read;

pub(crate) use read::{Column, Damaged, FieldValue, Fields, Small};

/// A message under construction. Fields are written in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

/// The form of a number that takes as many bytes as it needs.
const VARINT: u64 = 0;
/// The form of a text, a message or packed numbers.
pub(crate) const LENGTH: u64 = 2;

impl Message {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Goes on after the fields in `bytes`.
    pub const fn after(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// What was written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Nothing, in the same memory.
    pub fn cleared(mut self) -> Self {
        self.0.clear();
        self
    }

    /// A field of type `uint32`, `uint64` or `enum`.
    #[inline]
    pub fn number(mut self, field: u64, value: u64) -> Self {
        varint(field << 3 | VARINT, &mut self.0);
        varint(value, &mut self.0);
        self
    }

    /// A field of type `int32` or `int64`; a negative value takes ten bytes.
    #[inline]
    pub fn signed(self, field: u64, value: i64) -> Self {
        self.number(field, value.cast_unsigned())
    }

    /// A field of type `string`.
    #[inline]
    pub fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// Fields that another message has.
    #[inline]
    pub fn fields(mut self, of: &Self) -> Self {
        self.0.extend_from_slice(&of.0);
        self
    }

    /// A field whose type is a message, with the fields that `fill` appends.
    ///
    /// They are written where they stay. Nearly always their length takes one byte; otherwise they
    /// are moved.
    #[inline]
    pub fn message(mut self, field: u64, fill: impl FnOnce(Self) -> Self) -> Self {
        varint(field << 3 | LENGTH, &mut self.0);
        let at = self.0.len();
        self.0.push(0);
        let mut filled = fill(self);
        let length = filled.0.len() - at - 1;
        match u8::try_from(length) {
            Ok(short) if short < 0x80 => filled.0[at] = short,
            _ => filled.lengthen(at, length),
        }
        filled
    }

    #[cold]
    fn lengthen(&mut self, at: usize, length: usize) {
        let mut bytes = Vec::new();
        varint(length as u64, &mut bytes);
        self.0.splice(at..=at, bytes);
    }

    /// A field that is `value`, as bytes.
    pub fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        varint(field << 3 | LENGTH, &mut self.0);
        varint(value.len() as u64, &mut self.0);
        self.0.extend_from_slice(value);
        self
    }

    /// How many bytes it has.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Seven bits a byte, least significant first; the top bit says that more follow.
#[inline]
fn varint(value: u64, to: &mut Vec<u8>) {
    if value < 0x80 {
        to.push(value as u8);
    } else {
        long_varint(value, to);
    }
}

/// The bytes that are not wanted are cut off again: so many are copied without a call.
fn long_varint(mut value: u64, to: &mut Vec<u8>) {
    let mut bytes = [0; 10];
    let mut length = 0;
    for byte in &mut bytes {
        *byte = value as u8 | 0x80;
        value >>= 7;
        length += 1;
        if value == 0 {
            *byte &= 0x7f;
            break;
        }
    }
    let before = to.len();
    to.extend_from_slice(&bytes);
    to.truncate(before + length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Vec<(u64, FieldValue<'_>)> {
        let fields: Result<_, _> = Fields::of(message).collect();
        fields.expect("it was written here")
    }

    #[test]
    fn the_examples_of_the_format_documentation_come_out() {
        assert_eq!(Message::new().number(1, 150).0, [0x08, 0x96, 0x01]);
        let text = Message::new().text(2, "testing");
        assert_eq!(text.0, *b"\x12\x07testing");
        let nested = Message::new().message(3, |inner| inner.number(1, 150));
        assert_eq!(nested.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = [
            0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(Message::new().signed(1, -2).0, minus_two);
    }

    #[test]
    fn what_is_written_reads_back() {
        let outer = Message::new().message(7, |inner| {
            inner.number(114, u64::MAX).text(1, "a").number(15, 0)
        });
        let FieldValue::Bytes(inner) = fields(outer.as_bytes())[0].1 else {
            panic!("a message has a length");
        };
        let want = vec![
            (114, FieldValue::Number(u64::MAX)),
            (1, FieldValue::Bytes(b"a")),
            (15, FieldValue::Number(0)),
        ];
        assert_eq!(fields(inner), want);
    }

    #[test]
    fn a_length_takes_as_many_bytes_as_it_needs() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 100_000] {
            let text = "x".repeat(length);
            let whole = Message::new().number(2, 9).bytes(3, text.as_bytes());
            let filled = Message::new().number(2, 9).message(3, |mut to| {
                to.0.extend_from_slice(text.as_bytes());
                to
            });
            assert_eq!(filled.0, whole.0, "{length}");
        }
    }

    #[test]
    fn every_length_of_a_number_reads_back() {
        for bits in 0..64 {
            for value in [1 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                let want = vec![(1, FieldValue::Number(value)), (2, FieldValue::Number(7))];
                assert_eq!(
                    fields(&Message::new().number(1, value).number(2, 7).0),
                    want
                );
            }
        }
    }
}
