//! Maps that the object declares in `.maps`.
//!
//! A declaration is a structure that is never used as one: each member's *type* holds an
//! attribute. `__uint(max_entries, 8)` is `int (*max_entries)[8]`, `__type(key, u32)` is
//! `u32 *key`, and `__array(values, T)` is `T *values[]`.
//!
//! Source: kernel documentation `bpf/libbpf/libbpf_overview.rst` and `bpf/btf.rst` (6.18).

use std::collections::BTreeMap;

use super::types::Types;
use super::value_fields::ValueFields;
use crate::btf::{Btf, BtfKind, TypeId};
use crate::image::{MapDef, MapKind};
use crate::object::{SectionKind, SectionPlace, SymbolKind};
use crate::{LoadError, MapProblem, Object};

/// More than the kernel lets one program use (`MAX_USED_MAPS`, 64) for any number of programs.
const MAX_MAPS: usize = 4096;
/// Initial entries of all maps of maps together.
const MAX_ENTRIES: usize = 1 << 16;

/// The declared maps, and where their declarations lie.
pub(super) struct Declared {
    pub(super) maps: Vec<MapDef>,
    /// Index of the map whose declaration begins at an offset of `.maps`.
    pub(super) at: BTreeMap<u64, u32>,
    /// Index of the section `.maps`.
    pub(super) section: Option<usize>,
}

/// One declaration, attribute by attribute.
#[derive(Default)]
struct Declaration {
    kind: Option<u32>,
    key_size: Option<u32>,
    value_size: Option<u32>,
    max_entries: Option<u32>,
    flags: Option<u32>,
    value: Option<TypeId>,
    /// What `values` holds, and the offset of its first element in the declaration.
    inner: Option<(TypeId, u32)>,
}

impl Declared {
    pub(super) fn new(object: &Object) -> Result<Self, LoadError> {
        if let Some((_, section)) = object.elf.section("maps")
            && section.kind == SectionKind::Data
        {
            return Err(problem("maps", MapProblem::Legacy));
        }
        let section = object.elf.section(".maps").map(|(index, _)| index);
        let mut declared = Self {
            maps: Vec::new(),
            at: BTreeMap::new(),
            section,
        };
        let Some(section) = section else {
            return Ok(declared);
        };
        let types: BTreeMap<_, _> = object
            .btf
            .section_variables(".maps")
            .into_iter()
            .map(|(variable, ty)| (object.btf.name(variable), ty))
            .collect();
        let mut values = Vec::new();
        let mut known = Types::new(&object.btf);
        let mut symbols: Vec<_> = object
            .elf
            .symbols
            .iter()
            .filter(|symbol| symbol.place == SectionPlace::Section(section))
            .filter(|symbol| symbol.kind == SymbolKind::Object)
            .collect();
        symbols.sort_by_key(|symbol| symbol.value);
        for symbol in symbols {
            let no_type = || problem(&symbol.name, MapProblem::NoType);
            let ty = *types.get(&*symbol.name).ok_or_else(no_type)?;
            let declaration = Declaration::read(&object.btf, &symbol.name, ty)?;
            let index = declared.add((&object.btf, &mut known), &symbol.name, &declaration)?;
            declared.at.insert(symbol.value, index);
            if let Some((_, offset)) = declaration.inner {
                let end = symbol.value.saturating_add(symbol.size);
                values.push((index, symbol.value.saturating_add(offset.into()), end));
            }
        }
        for (index, start, end) in values {
            declared.read_values(object, index, start..end)?;
        }
        Ok(declared)
    }

    /// Adds a map, and the inner definition of a map of maps before it.
    fn add(
        &mut self,
        (btf, known): (&Btf, &mut Types<'_>),
        name: &str,
        read: &Declaration,
    ) -> Result<u32, LoadError> {
        let mut map = read.map(btf, name)?;
        map.value = read.value.and_then(|ty| known.of(ty));
        let is_outer = matches!(map.kind, MapKind::ArrayOfMaps | MapKind::HashOfMaps);
        if is_outer {
            let no_inner = || problem(name, MapProblem::NoInner);
            let (ty, _) = read.inner.ok_or_else(no_inner)?;
            let inner_name = format!("{name}.inner");
            let inner = Declaration::read(btf, &inner_name, ty)?;
            if inner.inner.is_some() {
                return Err(problem(name, MapProblem::Nesting));
            }
            let mut map_inside = inner.map(btf, &inner_name)?;
            map_inside.value = inner.value.and_then(|ty| known.of(ty));
            map.inner = Some((self.push(map_inside)?, Vec::new()));
        }
        self.push(map)
    }

    fn push(&mut self, map: MapDef) -> Result<u32, LoadError> {
        if self.maps.len() >= MAX_MAPS {
            return Err(LoadError::TooLarge {
                what: "maps",
                limit: MAX_MAPS as u64,
            });
        }
        self.maps.push(map);
        Ok((self.maps.len() - 1) as u32)
    }

    /// Initial entries of a map of maps: relocations within `values`, 8 bytes a slot.
    fn read_values(
        &mut self,
        object: &Object,
        outer: u32,
        place: std::ops::Range<u64>,
    ) -> Result<(), LoadError> {
        let Some(section) = self.section else {
            return Ok(());
        };
        let relocs = &object.elf.sections[section].relocs;
        let outer = outer as usize;
        let bad = |map: &MapDef| problem(&map.name, MapProblem::BadInitialValue);
        let first = relocs.partition_point(|reloc| reloc.offset < place.start);
        for reloc in relocs[first..]
            .iter()
            .take_while(|reloc| reloc.offset < place.end)
        {
            let symbol = &object.elf.symbols[reloc.symbol];
            let inner = Some(symbol)
                .filter(|symbol| symbol.place == SectionPlace::Section(section))
                .and_then(|symbol| self.at.get(&symbol.value))
                .copied();
            let slot = (reloc.offset - place.start) / 8;
            let map = &mut self.maps[outer];
            let key = u32::try_from(slot)
                .ok()
                .filter(|&key| key < map.max_entries);
            let (Some(inner), Some(key)) = (inner, key) else {
                return Err(bad(map));
            };
            let Some((_, entries)) = &mut map.inner else {
                return Err(bad(map));
            };
            if entries.len() >= MAX_ENTRIES {
                return Err(problem(&map.name, MapProblem::TooLarge));
            }
            entries.push((key, inner));
        }
        Ok(())
    }
}

impl Declaration {
    fn read(btf: &Btf, map: &str, ty: TypeId) -> Result<Self, LoadError> {
        let no_type = || problem(map, MapProblem::NoType);
        let composite = btf.composite(ty).ok_or_else(no_type)?;
        let mut read = Self::default();
        for member in &composite.members {
            let name = btf.text(member.name);
            let bad = || problem(map, MapProblem::BadAttribute(name.to_owned()));
            let number = || number(btf, member.ty).ok_or_else(bad);
            let pointee = || btf.pointee(member.ty).ok_or_else(bad);
            let size = |ty| btf.size(ty).ok_or_else(bad);
            let is_consistent = match name {
                "type" => set(&mut read.kind, number()?),
                "max_entries" => set(&mut read.max_entries, number()?),
                "map_flags" => set(&mut read.flags, number()?),
                "key_size" => set(&mut read.key_size, number()?),
                "value_size" => set(&mut read.value_size, number()?),
                "key" => set(&mut read.key_size, size(pointee()?)?),
                "value" => {
                    read.value = Some(pointee()?);
                    set(&mut read.value_size, size(pointee()?)?)
                }
                "values" => {
                    let inner = values(btf, member.ty).ok_or_else(bad)?;
                    set(&mut read.inner, (inner, member.bit_offset / 8))
                }
                // Where a map is pinned and on which node it lies change nothing here, and the
                // extra word of an arena is an address of its user space side.
                "pinning" | "numa_node" | "map_extra" => true,
                _ => return Err(problem(map, MapProblem::UnknownAttribute(name.to_owned()))),
            };
            if !is_consistent {
                return Err(problem(map, MapProblem::Contradiction(name.to_owned())));
            }
        }
        Ok(read)
    }

    fn map(&self, btf: &Btf, name: &str) -> Result<MapDef, LoadError> {
        let number = self.kind.unwrap_or(0);
        let unsupported = || problem(name, MapProblem::UnsupportedKind(number));
        let kind = MapKind::from_number(number).ok_or_else(unsupported)?;
        // The value of a map of maps is the inner map's number.
        let default_size = if self.inner.is_some() { 4 } else { 0 };
        let fields = match self.value {
            Some(ty) => ValueFields::find(btf, ty).ok_or(MapProblem::TooManyFields),
            None => Ok(ValueFields::default()),
        };
        let fields = fields.map_err(|too_many| problem(name, too_many))?;
        Ok(MapDef {
            name: name.to_owned(),
            kind,
            key_size: self.key_size.unwrap_or(default_size),
            value_size: self.value_size.unwrap_or(default_size),
            value: None,
            max_entries: self.max_entries.unwrap_or(0),
            flags: self.flags.unwrap_or(0),
            initial: None,
            frozen: false,
            timer_at: fields.timer_at,
            lock_at: fields.lock_at,
            kptrs_at: fields.kptrs_at,
            inner: None,
        })
    }
}

/// Sets an attribute; false if it has another value already.
fn set<T: PartialEq + Copy>(attribute: &mut Option<T>, value: T) -> bool {
    *attribute.get_or_insert(value) == value
}

fn number(btf: &Btf, ty: TypeId) -> Option<u32> {
    match btf.stripped(btf.pointee(ty)?) {
        BtfKind::Array { len, .. } => Some(*len),
        _ => None,
    }
}

fn values(btf: &Btf, ty: TypeId) -> Option<TypeId> {
    match btf.stripped(ty) {
        BtfKind::Array { element, .. } => btf.pointee(*element),
        _ => None,
    }
}

impl MapKind {
    /// The kind with the kernel's number, if the object machine has it.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        let all = [
            Self::Hash,
            Self::Array,
            Self::PerfEventArray,
            Self::PercpuHash,
            Self::PercpuArray,
            Self::LruHash,
            Self::ArrayOfMaps,
            Self::HashOfMaps,
            Self::Queue,
            Self::Stack,
            Self::Ringbuf,
            Self::TaskStorage,
            Self::UserRingbuf,
            Self::CgrpStorage,
            Self::Arena,
        ];
        all.into_iter().find(|kind| *kind as u32 == number)
    }
}

pub(super) fn problem(map: &str, problem: MapProblem) -> LoadError {
    LoadError::Map {
        map: map.to_owned(),
        problem,
    }
}
