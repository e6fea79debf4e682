//! Data sections: each becomes a map with one value, and its variables can be found by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::maps::{Declared, problem};
use super::types::Types;
use crate::btf::{Btf, BtfKind, TypeId};
use crate::image::{MapDef, MapKind, Symbol, Type};
use crate::object::{Section, SectionKind, SectionPlace, SymbolKind};
use crate::{LoadError, MapProblem, Object, Target};

/// Source: kernel 6.18, `include/uapi/linux/bpf.h`.
const BPF_F_RDONLY_PROG: u32 = 1 << 7;
const BPF_F_MMAPABLE: u32 = 1 << 10;

/// The section of variables in the arena, which is address space 1 to clang.
const ARENA_SECTION: &str = ".addr_space.1";

/// All maps of the image and what can be found in them.
pub(super) struct Data {
    pub(super) maps: Vec<MapDef>,
    pub(super) symbols: Vec<Symbol>,
    /// The map of a data section, by the section's index.
    pub(super) of_section: BTreeMap<usize, u32>,
    /// See [`Declared::at`].
    pub(super) declared_at: BTreeMap<u64, u32>,
    /// See [`Declared::section`].
    pub(super) declared_section: Option<usize>,
}

impl Data {
    pub(super) fn new(
        object: &Object,
        target: &Target,
        declared: Declared,
    ) -> Result<Self, LoadError> {
        let mut data = Self {
            maps: declared.maps,
            symbols: Vec::new(),
            of_section: BTreeMap::new(),
            declared_at: declared.at,
            declared_section: declared.section,
        };
        for (index, section) in object.elf.sections.iter().enumerate() {
            if section.kind == SectionKind::Data && section.size() > 0 {
                data.add_section(index, section)?;
            }
        }
        data.add_symbols(object);
        data.fill_enumerators(object, target);
        Ok(data)
    }

    fn add_section(&mut self, index: usize, section: &Section) -> Result<(), LoadError> {
        if section.name == ARENA_SECTION {
            let arena = self.maps.iter().position(|map| map.kind == MapKind::Arena);
            let arena = arena.ok_or_else(|| problem(&section.name, MapProblem::NoArena))?;
            let too_large = |_| problem(&section.name, MapProblem::TooLarge);
            self.maps[arena].value_size = u32::try_from(section.size()).map_err(too_large)?;
            self.maps[arena].initial = Some(Arc::from(&*section.bytes));
            self.of_section.insert(index, arena as u32);
        } else if is_variables(&section.name) {
            let too_large = |_| problem(&section.name, MapProblem::TooLarge);
            let frozen = section.name.starts_with(".rodata");
            self.of_section.insert(index, self.maps.len() as u32);
            self.maps.push(MapDef {
                name: section.name.clone(),
                kind: MapKind::Array,
                key_size: 4,
                value_size: u32::try_from(section.size()).map_err(too_large)?,
                value: None,
                max_entries: 1,
                flags: BPF_F_MMAPABLE | if frozen { BPF_F_RDONLY_PROG } else { 0 },
                initial: Some(Arc::from(&*section.bytes)),
                frozen,
                timer_at: None,
                lock_at: None,
                kptrs_at: Vec::new(),
                inner: None,
            });
        }
        Ok(())
    }

    fn add_symbols(&mut self, object: &Object) {
        let types = variable_types(&object.btf);
        let mut known = Types::new(&object.btf);
        for symbol in &object.elf.symbols {
            let SectionPlace::Section(section) = symbol.place else {
                continue;
            };
            let Some(&map) = self.of_section.get(&section) else {
                continue;
            };
            let bytes = object.elf.sections[section].size();
            let is_inside = symbol
                .value
                .checked_add(symbol.size)
                .is_some_and(|end| end <= bytes);
            let (Ok(offset), Ok(size)) = (symbol.value.try_into(), symbol.size.try_into()) else {
                continue;
            };
            if symbol.kind != SymbolKind::Object || !is_inside {
                continue;
            }
            let ty = types.get(&(&*object.elf.sections[section].name, &*symbol.name));
            let ty = ty.and_then(|&ty| known.of(ty));
            let ty = ty.filter(|ty| ty.size() == Some(size));
            let scalar = match ty.as_deref() {
                Some(Type::Scalar(scalar)) => Some(*scalar),
                _ => None,
            };
            self.symbols.push(Symbol {
                name: symbol.name.clone(),
                map,
                offset,
                size,
                scalar,
                ty,
            });
        }
    }

    /// Gives the target's values to [`Object::constants`].
    fn fill_enumerators(&mut self, object: &Object, target: &Target) {
        let values: BTreeMap<_, _> = object.constants(target).collect();
        for symbol in &self.symbols {
            let map = &mut self.maps[symbol.map as usize];
            let (Some(value), Some(bytes), true) =
                (values.get(&*symbol.name), &mut map.initial, map.frozen)
            else {
                continue;
            };
            let start = symbol.offset as usize;
            if let Some(place) = Arc::make_mut(bytes).get_mut(start..start + 8) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
}

fn is_variables(section: &str) -> bool {
    [".data", ".rodata", ".bss"].iter().any(|kind| {
        let rest = section.strip_prefix(kind);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Types of variables by section and name.
pub(super) fn variable_types(btf: &Btf) -> BTreeMap<(&str, &str), TypeId> {
    let mut types = BTreeMap::new();
    for (id, section) in btf.iter() {
        let BtfKind::Datasec(variables) = &section.kind else {
            continue;
        };
        for variable in variables.iter().map(|variable| variable.ty) {
            if let BtfKind::Var { ty, .. } = btf.get(variable).kind {
                types.insert((btf.name(id), btf.name(variable)), ty);
            }
        }
    }
    types
}
