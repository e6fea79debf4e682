//! `struct_ops` tables: the callbacks and settings that a policy registers with the kernel.

use std::collections::BTreeMap;

use super::data::variable_types;
use super::types::scalar;
use crate::btf::{Btf, BtfKind, TypeId, essential};
use crate::bytes;
use crate::image::{MemberValue, StructOps};
use crate::object::{Section, SectionPlace, Symbol, SymbolKind};
use crate::{LoadError, Object, StructOpsProblem, Target};

/// Members of one table; `sched_ext_ops` has about 40.
const MAX_MEMBERS: usize = 1024;
/// Tables in one object; schedulers have one, tests a handful.
const MAX_TABLES: usize = 256;

pub(super) fn tables(object: &Object, target: &Target) -> Result<Vec<StructOps>, LoadError> {
    let types = variable_types(&object.btf);
    let programs = (0..).zip(
        object
            .functions
            .iter()
            .filter(|function| function.is_program),
    );
    let programs: BTreeMap<_, _> = programs
        .map(|(index, function)| ((function.section, function.byte_range().start), index))
        .collect();
    let mut tables = Vec::new();
    for (symbol, section) in declared(object) {
        if tables.len() >= MAX_TABLES {
            return Err(LoadError::TooLarge {
                what: "struct_ops tables",
                limit: MAX_TABLES as u64,
            });
        }
        let ty = types.get(&(&*section.name, &*symbol.name)).copied();
        let table = Table {
            object,
            target,
            programs: &programs,
            symbol,
            section,
        };
        tables.push(table.read(ty)?);
    }
    Ok(tables)
}

/// The types of the object's tables, essential names.
pub(super) fn structures(object: &Object) -> Vec<&str> {
    let (btf, types) = (&object.btf, variable_types(&object.btf));
    let names = declared(object).filter_map(|(symbol, section)| {
        let ty = types.get(&(&*section.name, &*symbol.name))?;
        Some(essential(btf.name(btf.strip(*ty))))
    });
    names.take(MAX_TABLES).collect()
}

/// The variables that are tables, and the sections that they lie in.
fn declared(object: &Object) -> impl Iterator<Item = (&Symbol, &Section)> {
    object.elf.symbols.iter().filter_map(|symbol| {
        let SectionPlace::Section(index) = symbol.place else {
            return None;
        };
        let section = &object.elf.sections[index];
        let name = section.name.trim_start_matches('?');
        let is_table =
            symbol.kind == SymbolKind::Object && matches!(name, ".struct_ops" | ".struct_ops.link");
        is_table.then_some((symbol, section))
    })
}

struct Table<'a> {
    object: &'a Object,
    target: &'a Target,
    /// Index of the program that begins at a byte of a section.
    programs: &'a BTreeMap<(usize, u64), u32>,
    symbol: &'a Symbol,
    section: &'a Section,
}

/// A member of the object's type.
struct Slot<'a> {
    name: &'a str,
    ty: TypeId,
    /// Byte within the section.
    offset: u64,
    bytes: &'a [u8],
}

impl Table<'_> {
    fn read(&self, ty: Option<TypeId>) -> Result<StructOps, LoadError> {
        let btf = &self.object.btf;
        let whole = |problem| self.problem("", problem);
        let no_type = || whole(StructOpsProblem::NoType);
        let ty = btf.strip(ty.ok_or_else(no_type)?);
        let BtfKind::Struct(composite) = &btf.get(ty).kind else {
            return Err(no_type());
        };
        if composite.members.len() > MAX_MEMBERS {
            return Err(LoadError::TooLarge {
                what: "callbacks",
                limit: MAX_MEMBERS as u64,
            });
        }
        let type_name = essential(btf.name(ty));
        let unknown = || whole(StructOpsProblem::UnknownType(type_name.to_owned()));
        let kernel_type = self.target.structure(type_name).ok_or_else(unknown)?;
        let kernel = &self.target.btf;
        let kernel_members: BTreeMap<_, _> = kernel
            .composite(kernel_type)
            .map_or(&[][..], |composite| &composite.members)
            .iter()
            .map(|member| (kernel.text(member.name), member.ty))
            .collect();
        let mut members = Vec::new();
        let mut numbers = Vec::new();
        for member in &composite.members {
            let name = btf.text(member.name);
            let size = btf.size(member.ty).ok_or_else(no_type)?;
            let offset = self
                .symbol
                .value
                .saturating_add((member.bit_offset / 8).into());
            let bytes = bytes::slice(&self.section.bytes, offset, size.into());
            let slot = Slot {
                name,
                ty: member.ty,
                offset,
                bytes: bytes.ok_or_else(no_type)?,
            };
            if let (Some(scalar), true) = (
                scalar(btf.stripped(member.ty)),
                kernel_members.contains_key(name),
            ) {
                numbers.push((name.to_owned(), scalar));
            }
            let Some(value) = self.value(&slot)? else {
                continue;
            };
            let kernel_type = kernel_members.get(name);
            let absent = || self.problem(name, StructOpsProblem::AbsentMember);
            if !same_shape(btf, member.ty, kernel, *kernel_type.ok_or_else(absent)?) {
                return Err(self.problem(name, StructOpsProblem::OtherType));
            }
            members.push((name.to_owned(), value));
        }
        Ok(StructOps {
            name: self.symbol.name.clone(),
            type_name: type_name.to_owned(),
            members,
            numbers,
            autoload: !self.section.name.starts_with('?'),
        })
    }

    /// What a member holds; `None` if nothing.
    fn value(&self, slot: &Slot<'_>) -> Result<Option<MemberValue>, LoadError> {
        let not_a_program = || self.problem(slot.name, StructOpsProblem::NotAProgram);
        if let Some(reloc) = self.section.reloc_at(slot.offset) {
            let symbol = &self.object.elf.symbols[reloc.symbol];
            let SectionPlace::Section(section) = symbol.place else {
                return Err(not_a_program());
            };
            // The addend is in the data.
            let addend = bytes::number(slot.bytes).ok_or_else(not_a_program)?;
            let program = self
                .programs
                .get(&(section, symbol.value.wrapping_add(addend)));
            let is_callback = self.object.elf.sections[section]
                .name
                .trim_start_matches('?')
                .starts_with("struct_ops");
            let program = program.filter(|_| is_callback).ok_or_else(not_a_program)?;
            return Ok(Some(MemberValue::Program(*program)));
        }
        let len = slot
            .bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1);
        if len == 0 {
            return Ok(None);
        }
        match self.object.btf.stripped(slot.ty) {
            BtfKind::Int(_) | BtfKind::Enum(_) => {
                Ok(bytes::number(slot.bytes).map(MemberValue::Int))
            }
            BtfKind::Ptr(_) => Err(not_a_program()),
            _ => Ok(Some(MemberValue::Bytes(slot.bytes[..len].to_vec()))),
        }
    }

    fn problem(&self, member: &str, problem: StructOpsProblem) -> LoadError {
        LoadError::StructOps {
            table: self.symbol.name.clone(),
            member: member.to_owned(),
            problem,
        }
    }
}

/// The kernel copies members as they are, so kind and size must agree.
fn same_shape(local: &Btf, ours: TypeId, kernel: &Btf, theirs: TypeId) -> bool {
    let (one, other) = (local.stripped(ours), kernel.stripped(theirs));
    let is_number = |kind: &BtfKind| matches!(kind, BtfKind::Int(_) | BtfKind::Enum(_));
    let same_kind = std::mem::discriminant(one) == std::mem::discriminant(other);
    (same_kind || is_number(one) && is_number(other)) && local.size(ours) == kernel.size(theirs)
}
