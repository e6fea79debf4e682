//! `.BTF.ext`: which source line an instruction came from, and which instructions depend on the
//! layout of the kernel's types.

use super::parse::{Header, header, malformed};
use super::{Btf, TypeId};
use crate::LoadError;
use crate::bytes::{self, ByteReader};

/// The parts of `.BTF.ext` that a loader needs, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ext {
    pub(crate) lines: Vec<ExtLine>,
    pub(crate) relocs: Vec<CoreReloc>,
}

#[derive(Clone, Debug)]
pub(crate) struct ExtLine {
    /// ELF section of the instruction: offset of its name in the BTF strings.
    pub(crate) section: u32,
    /// Byte offset in the section.
    pub(crate) offset: u32,
    /// File name: offset in the BTF strings.
    pub(crate) file: u32,
    /// From 1.
    pub(crate) line: u32,
}

/// An instruction whose number depends on the target kernel's types.
#[derive(Clone, Debug)]
pub(crate) struct CoreReloc {
    /// ELF section of the instruction: offset of its name in the BTF strings.
    pub(crate) section: u32,
    /// Byte offset in the section.
    pub(crate) offset: u32,
    /// The object's type.
    pub(crate) ty: TypeId,
    /// Numbers joined by colons, such as `0:2:1`: offset in the BTF strings.
    pub(crate) access: u32,
    /// `enum bpf_core_relo_kind`, checked by whoever applies it.
    pub(crate) kind: u32,
}

const SECTION: &str = ".BTF.ext";
/// Records of one kind: as many as there may be instructions.
const MAX_RECORDS: usize = 1 << 20;

impl Ext {
    pub(crate) fn parse(bytes: &[u8], btf: &Btf) -> Result<Self, LoadError> {
        let Header { mut fields, body } = header(SECTION, bytes)?;
        let mut part = || {
            let offset = fields.u32()?;
            bytes::slice(body, offset.into(), fields.u32()?.into())
        };
        let (Some(_functions), Some(lines)) = (part(), part()) else {
            return Err(malformed(SECTION, 8, "a table lies outside the section"));
        };
        // Objects of compilers before CO-RE have a shorter header and no third table.
        let has_relocs = bytes::slice(bytes, 4, 4).and_then(bytes::number) >= Some(32);
        let relocs = if has_relocs {
            part().ok_or_else(|| malformed(SECTION, 24, "a table lies outside the section"))?
        } else {
            &[]
        };
        let bad = || malformed(SECTION, 8, "unreadable record");
        let relocs = records(relocs, |section, record| reloc(section, record, btf));
        Ok(Self {
            lines: records(lines, line).ok_or_else(bad)?,
            relocs: relocs.ok_or_else(bad)?,
        })
    }
}

fn line(section: u32, record: &mut ByteReader<'_>) -> Option<ExtLine> {
    let (offset, file, _text) = (record.u32()?, record.u32()?, record.u32()?);
    // The column is in the low 10 bits.
    Some(ExtLine {
        section,
        offset,
        file,
        line: record.u32()? >> 10,
    })
}

fn reloc(section: u32, record: &mut ByteReader<'_>, btf: &Btf) -> Option<CoreReloc> {
    let (offset, ty, access) = (record.u32()?, btf.id(record.u32()?)?, record.u32()?);
    Some(CoreReloc {
        section,
        offset,
        ty,
        access,
        kind: record.u32()?,
    })
}

/// A table: the size of a record, then for each section its name, a count, and the records.
fn records<T>(
    table: &[u8],
    mut one: impl FnMut(u32, &mut ByteReader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut list = Vec::new();
    if table.is_empty() {
        return Some(list);
    }
    let mut reader = ByteReader::new(table);
    let size = usize::try_from(reader.u32()?).ok()?;
    while !reader.is_empty() {
        let (section, count) = (reader.u32()?, reader.u32()?);
        for _ in 0..count {
            if list.len() >= MAX_RECORDS {
                return None;
            }
            list.push(one(section, &mut ByteReader::new(reader.take(size)?))?);
        }
    }
    Some(list)
}
