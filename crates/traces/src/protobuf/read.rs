//! The fields of a protobuf message, one at a time: nothing is copied, so a message takes no more
//! memory than its bytes, however many fields it has.

use super::{LENGTH, VARINT};

/// A message that breaks the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A number in the form of a varint.
    Number(u64),
    /// A text, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// A number of fixed length, which no field that is read here has.
    Fixed,
}

/// The fields of a message, in the order of the file; after damage none.
///
/// Groups, which no message of Perfetto has, are damage: so nothing here is recursive.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub const fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn field(&mut self) -> Result<(u64, FieldValue<'a>), Damaged> {
        let tag = varint(&mut self.0)?;
        let value = match tag & 7 {
            VARINT => FieldValue::Number(varint(&mut self.0)?),
            1 => self.bytes(8).map(|_| FieldValue::Fixed)?,
            LENGTH => {
                let long = varint(&mut self.0)?;
                FieldValue::Bytes(self.bytes(long)?)
            }
            5 => self.bytes(4).map(|_| FieldValue::Fixed)?,
            _ => return Err(Damaged),
        };
        Ok((tag >> 3, value))
    }

    fn bytes(&mut self, long: u64) -> Result<&'a [u8], Damaged> {
        let long = usize::try_from(long).map_err(|_| Damaged)?;
        let (bytes, rest) = self.0.split_at_checked(long).ok_or(Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, FieldValue<'a>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// Field numbers of a [`Small`] message are below this.
const SMALL: usize = 8;

/// A message of few fields, of which the last of each number counts.
pub struct Small<'a>([Option<FieldValue<'a>>; SMALL]);

impl<'a> Small<'a> {
    /// The fields of a message whose numbers are below [`SMALL`].
    pub fn of(message: &'a [u8]) -> Result<Self, Damaged> {
        let mut small = [None; SMALL];
        for field in Fields::of(message) {
            let (number, value) = field?;
            let at = usize::try_from(number).ok();
            if let Some(place) = at.and_then(|at| small.get_mut(at)) {
                *place = Some(value);
            }
        }
        Ok(Self(small))
    }

    /// A number; `None` if it is not there.
    pub fn number(&self, field: u64) -> Result<Option<u64>, Damaged> {
        match self.0[field as usize] {
            None => Ok(None),
            Some(FieldValue::Number(number)) => Ok(Some(number)),
            Some(_) => Err(Damaged),
        }
    }

    /// A number of type `int32`, which is the lower half of what is written.
    pub fn int32(&self, field: u64) -> Result<Option<i32>, Damaged> {
        Ok(self.number(field)?.map(|number| number as i32))
    }

    /// A text or a message; `None` if it is not there.
    pub fn bytes(&self, field: u64) -> Result<Option<&'a [u8]>, Damaged> {
        match self.0[field as usize] {
            None => Ok(None),
            Some(FieldValue::Bytes(bytes)) => Ok(Some(bytes)),
            Some(_) => Err(Damaged),
        }
    }
}

/// Takes a number off the front.
fn varint(bytes: &mut &[u8]) -> Result<u64, Damaged> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Damaged)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Damaged)
}

/// The numbers of one repeated field, packed or not, in the order of the file.
///
/// It walks over the whole message: a column costs no memory, and one look at each other field.
#[derive(Clone, Debug)]
pub struct Column<'a> {
    fields: Fields<'a>,
    number: u64,
    packed: &'a [u8],
}

impl<'a> Column<'a> {
    /// The numbers of the field `number` in a message whose fields were looked at.
    pub const fn of(message: &'a [u8], number: u64) -> Self {
        Self {
            fields: Fields::of(message),
            number,
            packed: &[],
        }
    }
}

impl Iterator for Column<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if !self.packed.is_empty() {
                return varint(&mut self.packed).ok();
            }
            match self.fields.next()?.ok()? {
                (number, FieldValue::Number(value)) if number == self.number => return Some(value),
                (number, FieldValue::Bytes(packed)) if number == self.number => {
                    self.packed = packed;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_packed_numbers_and_single_ones_in_their_order() {
        // Field 1 packed: 1, 300; field 2: a text; field 1 alone: 7; field 1 packed: 9.
        let message = [
            0x0a, 3, 1, 0xac, 2, 0x12, 1, b'x', 0x08, 7, 0x0a, 0, 0x0a, 1, 9,
        ];
        let column: Vec<u64> = Column::of(&message, 1).collect();
        assert_eq!(column, [1, 300, 7, 9]);
        assert_eq!(Column::of(&message, 3).count(), 0);
    }

    #[test]
    fn damage_ends_the_fields_with_an_error() {
        // Cut off, too long a length, a group, a number without an end.
        let cases: [&[u8]; 4] = [&[0x08], &[0x0a, 200, 1], &[0x0b], &[0xff; 20]];
        for message in cases {
            let all: Vec<_> = Fields::of(message).collect();
            assert_eq!(all, [Err(Damaged)], "{message:?}");
        }
        assert_eq!(
            Fields::of(&[0x09, 1, 2, 3, 4, 5, 6, 7, 8]).next(),
            Some(Ok((1, FieldValue::Fixed)))
        );
    }
}
