//! Bytes to [`Btf`].

use super::{
    Btf, BtfKind, BtfMember, Composite, Enum, Int, Linkage, MAX_DEPTH, Name, SectionVariable, Type,
    TypeId,
};
use crate::LoadError;
use crate::bytes::{self, ByteReader};

/// A distribution's kernel has about 150,000.
const MAX_TYPES: usize = 1 << 21;
/// Longest name that a type may have, NUL included. The kernel's own limit is 512.
const MAX_NAME: usize = 1024;

const MAGIC: u16 = 0xeb9f;

/// Where the parts of a `.BTF` or `.BTF.ext` section lie.
pub(super) struct Header<'a> {
    /// Little-endian numbers that follow the header's length.
    pub(super) fields: ByteReader<'a>,
    /// All bytes after the header.
    pub(super) body: &'a [u8],
}

/// Reads the start that `.BTF` and `.BTF.ext` share.
pub(super) fn header<'a>(section: &str, bytes: &'a [u8]) -> Result<Header<'a>, LoadError> {
    let mut fields = ByteReader::new(bytes);
    let fault = |offset: usize, problem| malformed(section, offset, problem);
    if fields.u16() != Some(MAGIC) {
        return Err(fault(
            0,
            "no little-endian BTF: the magic number is not 0xeb9f",
        ));
    }
    if fields.u8() != Some(1) {
        return Err(fault(2, "unknown BTF version; only 1 is known"));
    }
    fields.u8();
    let len = fields
        .u32()
        .ok_or_else(|| fault(4, "the header is cut short"))?;
    let body = usize::try_from(len)
        .ok()
        .and_then(|len| bytes.get(len..))
        .ok_or_else(|| fault(4, "the header is longer than the section"))?;
    Ok(Header { fields, body })
}

pub(super) fn malformed(section: &str, offset: usize, problem: &'static str) -> LoadError {
    LoadError::Malformed {
        section: section.to_owned(),
        offset: offset as u64,
        problem,
    }
}

fn fault(offset: usize, problem: &'static str) -> LoadError {
    malformed(".BTF", offset, problem)
}

fn bad(id: usize, problem: &'static str) -> LoadError {
    LoadError::BadType { id, problem }
}

impl Btf {
    /// No types but `void`: what an object compiled without `-g` has.
    pub(crate) fn empty() -> Self {
        let void = Type {
            name: Name(0),
            kind: BtfKind::Void,
        };
        Self {
            types: vec![void],
            strings: vec![0],
        }
    }

    /// Parses a raw `.BTF` section and checks all references in it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, LoadError> {
        let Header { mut fields, body } = header(".BTF", bytes)?;
        let mut part = || {
            let offset = fields.u32()?;
            bytes::slice(body, offset.into(), fields.u32()?.into())
        };
        let (Some(types), Some(strings)) = (part(), part()) else {
            return Err(fault(8, "types or strings lie outside the section"));
        };
        if strings.first() != Some(&0) || strings.last() != Some(&0) {
            return Err(fault(8, "the strings do not begin and end with a NUL"));
        }
        let mut btf = Self {
            strings: strings.to_vec(),
            ..Self::empty()
        };
        let mut reader = ByteReader::new(types);
        while !reader.is_empty() {
            if btf.types.len() >= MAX_TYPES {
                return Err(LoadError::TooLarge {
                    what: "BTF types",
                    limit: MAX_TYPES as u64,
                });
            }
            let at = reader.position();
            let ty = parse_type(&mut reader).ok_or_else(|| fault(at, "unreadable type"))?;
            btf.types.push(ty);
        }
        btf.check_references()?;
        btf.check_chains()?;
        Ok(btf)
    }

    fn check_references(&self) -> Result<(), LoadError> {
        let names_type = |id: TypeId| (id.0 as usize) < self.types.len();
        // Of plain strings every part is text, and no name need be looked at.
        let mut strings = self.strings.split(|byte| *byte == 0);
        let plain = self.strings.is_ascii() && strings.all(|text| text.len() < MAX_NAME);
        let has_text = |name: Name| {
            if plain {
                (name.0 as usize) < self.strings.len()
            } else {
                bytes::text(&self.strings, name.0, MAX_NAME).is_some()
            }
        };
        for (index, ty) in self.types.iter().enumerate() {
            let ids_fine = ty.kind.refers_to(names_type);
            let names_fine = has_text(ty.name) && ty.kind.names().all(has_text);
            if !ids_fine {
                return Err(bad(index, "refers to an absent type"));
            }
            if !names_fine {
                return Err(bad(index, "has an unreadable name"));
            }
        }
        Ok(())
    }

    fn check_chains(&self) -> Result<(), LoadError> {
        for index in 0..self.types.len() {
            let mut id = TypeId(u32::try_from(index).unwrap_or(0));
            let mut links = 0;
            while let Some(next) = self.get(id).kind.modified() {
                links += 1;
                if links > MAX_DEPTH {
                    return Err(bad(index, "begins a chain of modifiers without end"));
                }
                id = next;
            }
        }
        Ok(())
    }

    /// The text of a name. Names inside a parsed `Btf` always have one.
    pub(crate) fn text(&self, name: Name) -> &str {
        bytes::text(&self.strings, name.0, MAX_NAME).unwrap_or_default()
    }

    /// Whether the text of a name is `text`, which has no NUL: that need not look for its end.
    pub(crate) fn is_called(&self, name: Name, text: &str) -> bool {
        let rest = self.strings.get(name.0 as usize..).unwrap_or_default();
        let behind = rest.strip_prefix(text.as_bytes());
        behind.is_some_and(|behind| behind.first() == Some(&0))
    }

    /// The text at an offset that comes from outside, such as from `.BTF.ext`.
    pub(crate) fn text_at(&self, offset: u32) -> Option<&str> {
        bytes::text(&self.strings, offset, MAX_NAME)
    }
}

impl BtfKind {
    /// The type that a modifier or typedef stands for.
    pub(crate) fn modified(&self) -> Option<TypeId> {
        match *self {
            Self::Typedef(id)
            | Self::Volatile(id)
            | Self::Const(id)
            | Self::Restrict(id)
            | Self::TypeTag(id) => Some(id),
            _ => None,
        }
    }

    /// Whether all types that it refers to are such.
    fn refers_to(&self, is_such: impl Fn(TypeId) -> bool) -> bool {
        match self {
            Self::Void | Self::Int(_) | Self::Enum(_) | Self::Fwd { .. } | Self::Float { .. } => {
                true
            }
            Self::Ptr(id)
            | Self::Array { element: id, .. }
            | Self::Typedef(id)
            | Self::Volatile(id)
            | Self::Const(id)
            | Self::Restrict(id)
            | Self::TypeTag(id)
            | Self::Func { prototype: id, .. }
            | Self::Var { ty: id, .. }
            | Self::DeclTag { target: id, .. } => is_such(*id),
            Self::Struct(composite) | Self::Union(composite) => {
                composite.members.iter().all(|member| is_such(member.ty))
            }
            Self::FuncProto { result, params } => {
                is_such(*result) && params.iter().all(|id| is_such(*id))
            }
            Self::Datasec(variables) => variables.iter().all(|variable| is_such(variable.ty)),
        }
    }

    fn names(&self) -> impl Iterator<Item = Name> {
        let members = match self {
            Self::Struct(composite) | Self::Union(composite) => &composite.members[..],
            _ => &[],
        };
        let values = match self {
            Self::Enum(list) => &list.values[..],
            _ => &[],
        };
        members
            .iter()
            .map(|member| member.name)
            .chain(values.iter().map(|value| value.0))
    }
}

/// The numbers that every type begins with.
struct Head {
    kind: u32,
    vlen: u32,
    flag: bool,
    size_or_type: u32,
}

fn parse_type(reader: &mut ByteReader<'_>) -> Option<Type> {
    let name = Name(reader.u32()?);
    let packed = reader.u32()?;
    let head = Head {
        kind: packed >> 24 & 0x1f,
        vlen: packed & 0xffff,
        flag: packed >> 31 == 1,
        size_or_type: reader.u32()?,
    };
    Some(Type {
        name,
        kind: parse_kind(&head, reader)?,
    })
}

fn parse_kind(head: &Head, reader: &mut ByteReader<'_>) -> Option<BtfKind> {
    let id = TypeId(head.size_or_type);
    let size = head.size_or_type;
    // The numbers are BTF_KIND_* of include/uapi/linux/btf.h, kernel 6.18.
    Some(match head.kind {
        1 => BtfKind::Int(parse_int(size, reader.u32()?)),
        2 => BtfKind::Ptr(id),
        3 => parse_array(reader)?,
        4 => BtfKind::Struct(parse_composite(head, reader)?),
        5 => BtfKind::Union(parse_composite(head, reader)?),
        6 => BtfKind::Enum(parse_enum(head, reader)?),
        7 => BtfKind::Fwd {
            is_union: head.flag,
        },
        8 => BtfKind::Typedef(id),
        9 => BtfKind::Volatile(id),
        10 => BtfKind::Const(id),
        11 => BtfKind::Restrict(id),
        12 => BtfKind::Func {
            prototype: id,
            linkage: linkage(head.vlen)?,
        },
        13 => BtfKind::FuncProto {
            result: id,
            params: parse_params(head, reader)?,
        },
        14 => BtfKind::Var {
            ty: id,
            linkage: linkage(reader.u32()?)?,
        },
        15 => BtfKind::Datasec(parse_datasec(head, reader)?),
        16 => BtfKind::Float { size },
        17 => BtfKind::DeclTag {
            target: id,
            component: reader.u32()?.cast_signed(),
        },
        18 => BtfKind::TypeTag(id),
        19 => BtfKind::Enum(parse_enum64(head, reader)?),
        _ => return None,
    })
}

fn linkage(number: u32) -> Option<Linkage> {
    match number {
        0 => Some(Linkage::Static),
        1 => Some(Linkage::Global),
        2 => Some(Linkage::Extern),
        _ => None,
    }
}

fn parse_int(size: u32, packed: u32) -> Int {
    let [bits, _, offset, encoding] = packed.to_le_bytes();
    Int {
        size,
        bits,
        offset,
        signed: encoding & 1 != 0,
        bool: encoding & 4 != 0,
    }
}

fn parse_array(reader: &mut ByteReader<'_>) -> Option<BtfKind> {
    let element = TypeId(reader.u32()?);
    let _index_type = reader.u32()?;
    Some(BtfKind::Array {
        element,
        len: reader.u32()?,
    })
}

fn parse_composite(head: &Head, reader: &mut ByteReader<'_>) -> Option<Composite> {
    let member = |reader: &mut ByteReader<'_>| {
        let (name, ty, place) = (Name(reader.u32()?), TypeId(reader.u32()?), reader.u32()?);
        // With the kind flag, the top byte of the offset is the width of a bit field.
        let (bits, bit_offset) = if head.flag {
            ((place >> 24) as u8, place & 0x00ff_ffff)
        } else {
            (0, place)
        };
        Some(BtfMember {
            name,
            ty,
            bit_offset,
            bits,
        })
    };
    Some(Composite {
        size: head.size_or_type,
        members: list(head, reader, member)?,
    })
}

fn parse_enum(head: &Head, reader: &mut ByteReader<'_>) -> Option<Enum> {
    let value = |reader: &mut ByteReader<'_>| {
        let (name, bits) = (Name(reader.u32()?), reader.u32()?);
        Some((
            name,
            if head.flag {
                bits.cast_signed().into()
            } else {
                bits.into()
            },
        ))
    };
    let values = list(head, reader, value)?;
    Some(Enum {
        size: head.size_or_type,
        signed: head.flag,
        values,
    })
}

fn parse_enum64(head: &Head, reader: &mut ByteReader<'_>) -> Option<Enum> {
    let value = |reader: &mut ByteReader<'_>| {
        let (name, low, high) = (Name(reader.u32()?), reader.u32()?, reader.u32()?);
        Some((name, (u64::from(high) << 32 | u64::from(low)).cast_signed()))
    };
    let values = list(head, reader, value)?;
    Some(Enum {
        size: head.size_or_type,
        signed: head.flag,
        values,
    })
}

fn parse_params(head: &Head, reader: &mut ByteReader<'_>) -> Option<Box<[TypeId]>> {
    list(head, reader, |reader| {
        let _name = reader.u32()?;
        reader.u32().map(TypeId)
    })
}

fn parse_datasec(head: &Head, reader: &mut ByteReader<'_>) -> Option<Box<[SectionVariable]>> {
    list(head, reader, |reader| {
        // Offset and size are zero in what clang writes; a loader's library fills them in.
        Some(SectionVariable {
            ty: TypeId(reader.u32()?),
            offset: reader.u32()?,
            size: reader.u32()?,
        })
    })
}

fn list<'a, T>(
    head: &Head,
    reader: &mut ByteReader<'a>,
    mut one: impl FnMut(&mut ByteReader<'a>) -> Option<T>,
) -> Option<Box<[T]>> {
    (0..head.vlen).map(|_| one(reader)).collect()
}
