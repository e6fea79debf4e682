//! The protobuf wire format, as far as writing a trace needs it.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>.

/// A message under construction. Fields are written in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A field of type `uint32`, `uint64` or `enum`.
    pub fn number(mut self, field: u64, value: u64) -> Self {
        varint(field << 3 | VARINT, &mut self.0);
        varint(value, &mut self.0);
        self
    }

    /// A field of type `int32` or `int64`; a negative value takes ten bytes.
    pub fn signed(self, field: u64, value: i64) -> Self {
        self.number(field, value.cast_unsigned())
    }

    /// A field of type `string`.
    pub fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// A field whose type is a message.
    pub fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        varint(field << 3 | LENGTH, &mut self.0);
        varint(value.len() as u64, &mut self.0);
        self.0.extend_from_slice(value);
        self
    }

    /// How many bytes it has.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends it to `to` as a field of a message that is being written there.
    pub fn write(&self, field: u64, to: &mut Vec<u8>) {
        varint(field << 3 | LENGTH, to);
        varint(self.0.len() as u64, to);
        to.extend_from_slice(&self.0);
    }
}

/// Seven bits a byte, least significant first; the top bit says that more follow.
fn varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Reads what [`Message`] wrote; for tests.
#[cfg(test)]
pub(crate) mod decode {
    /// A value of a field.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Field {
        Number(u64),
        Bytes(Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// The fields of a message, in their order.
    ///
    /// # Panics
    /// If it is not one, or has fields of other wire types than the two that are written.
    pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                super::VARINT => Field::Number(varint(&mut bytes)),
                super::LENGTH => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(value.to_vec())
                }
                other => panic!("wire type {other} is never written"),
            };
            fields.push((tag >> 3, value));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::decode::{Field, fields};
    use super::*;

    #[test]
    fn the_examples_of_the_format_documentation_come_out() {
        assert_eq!(Message::new().number(1, 150).0, [0x08, 0x96, 0x01]);
        let text = Message::new().text(2, "testing");
        assert_eq!(text.0, *b"\x12\x07testing");
        let nested = Message::new().message(3, &Message::new().number(1, 150));
        assert_eq!(nested.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = [
            0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(Message::new().signed(1, -2).0, minus_two);
    }

    #[test]
    fn what_is_written_reads_back() {
        let message = Message::new()
            .number(114, u64::MAX)
            .text(1, "a")
            .number(15, 0);
        let mut bytes = Vec::new();
        message.write(7, &mut bytes);
        let Field::Bytes(inner) = &fields(&bytes)[0].1 else {
            panic!("a message has a length");
        };
        assert_eq!(inner.len(), message.len());
        let want = vec![
            (114, Field::Number(u64::MAX)),
            (1, Field::Bytes(b"a".to_vec())),
            (15, Field::Number(0)),
        ];
        assert_eq!(fields(inner), want);
    }
}
