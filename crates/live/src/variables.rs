//! Where an object's global variables lie, from its type information as libbpf reads it.

use libbpf_rs::btf::types::{DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType};

/// A global variable of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The section that holds it, such as `.data` or `.data.knobs`.
    pub section: String,
    /// Bytes from the section's start.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// Finds the variable `name`.
pub fn find(btf: &Btf<'_>, name: &str) -> Option<Variable> {
    btf.type_by_kind::<DataSec<'_>>().find_map(|section| {
        let named = section.iter().find(|place| {
            let variable = btf.type_by_id::<Var<'_>>(place.ty);
            variable.is_some_and(|variable| name_of(&variable) == name)
        })?;
        Some(Variable {
            section: name_of(&section),
            offset: named.offset as usize,
            size: named.size,
        })
    })
}

/// The sections of variables that can change while the object runs, such as `.data.knobs`.
pub fn writable_sections(btf: &Btf<'_>) -> Vec<String> {
    let names = btf
        .type_by_kind::<DataSec<'_>>()
        .map(|section| name_of(&section));
    names
        .filter(|name| name.starts_with(".data") || name.starts_with(".bss"))
        .collect()
}

/// Where the field `field` of the structure `structure` lies: bytes from its start.
pub fn member(btf: &Btf<'_>, structure: &str, field: &str) -> Option<usize> {
    let structure: Struct<'_> = btf.type_by_name(structure)?;
    let member = structure
        .iter()
        .find(|member| member.name.is_some_and(|it| it == field))?;
    match member.attr {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

/// Members of the enumeration `name`: names in lower case, with their values.
#[cfg(test)]
pub fn enumerators(btf: &Btf<'_>, name: &str) -> Vec<(String, i64)> {
    use libbpf_rs::btf::types::Enum;
    let all: Option<Enum<'_>> = btf.type_by_name(name);
    let all = all.unwrap_or_else(|| panic!("the object has no enumeration {name}"));
    let members = all.iter().map(|member| {
        let name = member.name.unwrap_or_default().to_string_lossy();
        (name.to_lowercase(), member.value)
    });
    members.collect()
}

fn name_of(ty: &BtfType<'_>) -> String {
    ty.name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether libbpf's map `map` holds `section`. The map of a section that C compilers know has the
/// object's name, cut to fit, in front of it (libbpf 1.7, `internal_map_name()`).
pub fn is_section_map(map: &str, section: &str) -> bool {
    match section {
        ".data" | ".bss" | ".rodata" => map.ends_with(section),
        _ => map == section,
    }
}
