//! What can be asked about a field: place, size, sign, and the shifts that extract a bit field.

use super::path::{Path, Step};
use super::{Access, Answer};
use crate::btf::{Btf, BtfKind, MAX_DEPTH, TypeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldMeasure {
    /// Bytes from the start of the root to the integer that holds the field.
    ByteOffset,
    /// Bytes of the integer that holds the field.
    ByteSize,
    Exists,
    Signed,
    /// Left shift of the holding integer, widened to 64 bits, that drops what is above the field.
    LeftShift,
    /// Right shift after that, which drops what is below.
    RightShift,
}

/// A measure of one field in one set of types.
struct Measured {
    value: u64,
    /// For `ByteOffset` of anything but a bit field: bytes and type of what lies there.
    lies_there: Option<(u32, TypeId)>,
    /// For `ByteOffset`: bytes that may be read from there on.
    reach: Option<u32>,
    is_bit_field: bool,
}

/// The answer for a field at `here` in the object and at `there` in the target, if the target has
/// it. `None`: there is no answer.
pub(super) fn compare(
    local: &Btf,
    here: &Path,
    target: &Btf,
    there: Option<&Path>,
    measure: FieldMeasure,
) -> Option<Answer> {
    let Some(there) = there else {
        let is_answer = measure == FieldMeasure::Exists;
        return is_answer.then_some(Answer {
            old: None,
            new: 0,
            access: Access::Same,
            reach: None,
        });
    };
    let old = measured(local, here, measure)?;
    let new = measured(target, there, measure)?;
    let access = match (old.lies_there, new.lies_there) {
        (Some((size, ours)), Some((new_size, theirs))) if size != new_size => {
            // A load of the new size zero-extends, which is right for unsigned numbers and
            // for pointers (32 bits in the object's types of a 32-bit kernel).
            if is_zero_extended(local, ours) && is_zero_extended(target, theirs) {
                Access::Resized(new_size)
            } else {
                Access::Impossible
            }
        }
        _ => Access::Same,
    };
    // The compiler need not have used the same holding integer for a bit field.
    let old = (!old.is_bit_field).then_some(old.value);
    Some(Answer {
        old,
        new: new.value,
        access,
        reach: new.reach,
    })
}

fn is_zero_extended(btf: &Btf, ty: TypeId) -> bool {
    match btf.stripped(ty) {
        BtfKind::Ptr(_) => true,
        BtfKind::Int(int) => !int.signed,
        _ => false,
    }
}

fn measured(btf: &Btf, path: &Path, measure: FieldMeasure) -> Option<Measured> {
    let plain = |value| Measured {
        value,
        lies_there: None,
        reach: None,
        is_bit_field: false,
    };
    if measure == FieldMeasure::Exists {
        return Some(plain(1));
    }
    if let Some(member) = path.last_member(btf) {
        let width = Some(member.bits).filter(|&bits| bits > 0);
        return Field::new(btf, path.bits, member.ty, width)?.measure(btf, measure);
    }
    let Some(Step::Element { ty, .. }) = path.steps.last() else {
        return None;
    };
    let value = match measure {
        FieldMeasure::ByteOffset => path.bits / 8,
        FieldMeasure::ByteSize => btf.size(*ty)?.into(),
        _ => return None,
    };
    let lies_there = access_size(btf, *ty).filter(|_| measure == FieldMeasure::ByteOffset);
    Some(Measured {
        lies_there,
        // From one element a program may go on to its neighbours.
        reach: (measure == FieldMeasure::ByteOffset).then_some(u32::MAX),
        ..plain(value)
    })
}

/// Bytes that one load of a type moves, with the type: of an array, one element.
fn access_size(btf: &Btf, mut ty: TypeId) -> Option<(u32, TypeId)> {
    for _ in 0..MAX_DEPTH {
        match btf.stripped(ty) {
            BtfKind::Array { element, .. } => ty = *element,
            _ => return Some((btf.size(ty)?, btf.strip(ty))),
        }
    }
    None
}

/// A member and the integer that a program loads to read it.
struct Field {
    ty: TypeId,
    bits: u64,
    width: u64,
    byte_offset: u64,
    byte_size: u64,
    is_bit_field: bool,
}

impl Field {
    fn new(btf: &Btf, bits: u64, ty: TypeId, bit_width: Option<u8>) -> Option<Self> {
        let ty = btf.strip(ty);
        let is_bit_field = bit_width.is_some();
        let mut byte_size = u64::from(btf.size(ty)?);
        let Some(width) = bit_width.map(u64::from) else {
            let (byte_offset, width) = (bits / 8, byte_size * 8);
            return Some(Self {
                ty,
                bits,
                width,
                byte_offset,
                byte_size,
                is_bit_field,
            });
        };
        if !matches!(byte_size, 1 | 2 | 4 | 8) {
            return None;
        }
        // The smallest aligned integer, from the declared one up, that holds the whole field.
        loop {
            let byte_offset = bits / 8 / byte_size * byte_size;
            if bits + width <= (byte_offset + byte_size) * 8 {
                return Some(Self {
                    ty,
                    bits,
                    width,
                    byte_offset,
                    byte_size,
                    is_bit_field,
                });
            }
            if byte_size >= 8 {
                return None;
            }
            byte_size *= 2;
        }
    }

    fn measure(&self, btf: &Btf, measure: FieldMeasure) -> Option<Measured> {
        let value = match measure {
            FieldMeasure::ByteOffset => self.byte_offset,
            FieldMeasure::ByteSize => self.byte_size,
            FieldMeasure::Exists => 1,
            FieldMeasure::Signed => match btf.stripped(self.ty) {
                BtfKind::Int(int) => int.signed.into(),
                BtfKind::Enum(list) => list.signed.into(),
                _ => return None,
            },
            // Positions within the holding integer; BPF objects here are little-endian.
            FieldMeasure::LeftShift => {
                64u64.checked_sub(self.bits + self.width - self.byte_offset * 8)?
            }
            FieldMeasure::RightShift => 64u64.checked_sub(self.width)?,
        };
        let is_plain_offset = measure == FieldMeasure::ByteOffset && !self.is_bit_field;
        let lies_there = if is_plain_offset {
            access_size(btf, self.ty)
        } else {
            None
        };
        let reach = match btf.stripped(self.ty) {
            BtfKind::Struct(_) | BtfKind::Union(_) | BtfKind::Array { .. } => u32::MAX,
            _ => u32::try_from(self.byte_size).unwrap_or(u32::MAX),
        };
        Some(Measured {
            value,
            lies_there,
            reach: (measure == FieldMeasure::ByteOffset).then_some(reach),
            is_bit_field: self.is_bit_field,
        })
    }
}
