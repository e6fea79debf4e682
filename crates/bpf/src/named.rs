//! What lies at an address, by the names that the object gives it.

use crate::host::Host;
use crate::image::{Image, MapDef, Type, TypeField};
use crate::instance::Instance;

impl<H: Host> Instance<H> {
    /// The variable, with the path of fields and elements, or the map and the offset in its value,
    /// that lies at `address`. `None`: it is neither, as a kernel object is.
    #[must_use]
    pub fn name_of(&self, address: u64) -> Option<String> {
        let mut maps = 0..self.image.maps.len() as u32;
        let in_map = maps.find_map(|map| self.name_in(map, address));
        let arena = self.memory.arena().map(crate::Pages::base);
        let in_arena = |base| address.wrapping_sub(base) <= u64::from(u32::MAX);
        in_map.or_else(|| arena.is_some_and(in_arena).then(|| THE_ARENA.to_owned()))
    }

    /// Whether `address` lies in a kernel object, which programs mostly only read.
    #[must_use]
    pub fn is_of_kernel(&self, address: u64) -> bool {
        self.memory.is_kernel_object(address, 1)
    }

    fn name_in(&self, index: u32, address: u64) -> Option<String> {
        let (map, def) = (self.maps.get(index)?, self.image.maps.get(index as usize)?);
        if let Some(first) = map.first_value()
            && let Some(offset) = address.checked_sub(first)
            && offset < u64::from(def.value_size)
            && let Some(name) = variable_at(&self.image, index, offset as u32)
        {
            return Some(name);
        }
        let offset = map.offset_in_values(address)?;
        Some(path_in_map(def, offset as u32))
    }
}

impl Image {
    /// Whether [`Instance::name_of`] may give this name.
    #[must_use]
    pub fn may_name(&self, name: &str) -> bool {
        let symbols = self.symbols.iter();
        let symbols = symbols.map(|it| (it.name.clone(), it.ty.as_deref(), it.size));
        let maps = self.maps.iter();
        let maps = maps.map(|it| (root_of(it), it.value.as_deref(), it.value_size));
        let mut roots = symbols.chain(maps);
        let is_path = |(root, ty, size): (String, Option<&Type>, u32)| {
            let rest = name.strip_prefix(&root);
            rest.is_some_and(|rest| is_path(rest, ty, size))
        };
        name == THE_ARENA || roots.any(is_path)
    }
}

/// What all of an arena is called.
const THE_ARENA: &str = "the arena";

/// The name of a map's values, which are not told apart.
fn root_of(map: &MapDef) -> String {
    let elements = if map.max_entries > 1 { "[]" } else { "" };
    map.name.clone() + elements
}

/// The path to what lies at `offset` in a value of `map`.
fn path_in_map(map: &MapDef, offset: u32) -> String {
    let mut name = root_of(map);
    match &map.value {
        Some(ty) => push_path(&mut name, ty, offset),
        None => push_offset(&mut name, offset),
    }
    name
}

/// Bytes of a value of this type; what is larger than an object can be counts as that.
fn size_of(ty: &Type) -> u32 {
    ty.size().unwrap_or(u32::MAX)
}

/// Whether `rest` leads from a variable of this type to a number in it.
fn is_path(rest: &str, ty: Option<&Type>, size: u32) -> bool {
    let offset = |size: u32| {
        let offset = rest.strip_prefix('+').and_then(|it| it.parse().ok());
        offset.is_some_and(|offset: u32| offset < size)
    };
    match ty {
        None => rest.is_empty() || offset(size),
        Some(Type::Scalar(_)) => rest.is_empty(),
        Some(Type::Array {
            element, stride, ..
        }) => {
            let inner = rest.strip_prefix("[]");
            inner.is_some_and(|rest| is_path(rest, Some(element), *stride))
        }
        Some(Type::Struct { fields, size }) => {
            let named = rest.strip_prefix('.');
            offset(*size)
                || named.is_some_and(|named| {
                    fields.iter().any(|field| {
                        let rest = named.strip_prefix(field.name.as_str());
                        rest.is_some_and(|it| is_path(it, Some(&field.ty), size_of(&field.ty)))
                    })
                })
        }
    }
}

/// The variable of the data section `map` that covers `offset`.
fn variable_at(image: &Image, map: u32, offset: u32) -> Option<String> {
    let covers = |at: u32, size: u32| (at..at + size.max(1)).contains(&offset);
    let mut symbols = image.symbols.iter();
    let symbol = symbols.find(|it| it.map == map && covers(it.offset, it.size))?;
    let mut name = symbol.name.clone();
    if let Some(ty) = &symbol.ty {
        push_path(&mut name, ty, offset - symbol.offset);
    }
    Some(name)
}

/// Adds the path to what lies at `offset` in a value of this type. Elements are not told apart:
/// they are one variable to whoever looks for it. What has no type that is known, as pointers and
/// bit fields, has its offset as its name.
fn push_path(name: &mut String, ty: &Type, offset: u32) {
    match ty {
        Type::Scalar(_) => {}
        Type::Array {
            element, stride, ..
        } => {
            name.push_str("[]");
            push_path(name, element, offset % (*stride).max(1));
        }
        Type::Struct { fields, .. } => {
            let covers = |field: &&TypeField| {
                let inside = offset.checked_sub(field.offset);
                inside.is_some_and(|inside| inside < size_of(&field.ty))
            };
            match fields.iter().find(covers) {
                Some(field) => {
                    name.push('.');
                    name.push_str(&field.name);
                    push_path(name, &field.ty, offset - field.offset);
                }
                None => push_offset(name, offset),
            }
        }
    }
}

fn push_offset(name: &mut String, offset: u32) {
    name.push('+');
    name.push_str(&offset.to_string());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::image::Scalar;

    #[test]
    fn a_path_names_fields_and_leaves_out_which_element_it_is() {
        let word = Arc::new(Type::Scalar(Scalar::Unsigned(8)));
        let field = |name: &str, offset| TypeField {
            name: name.to_owned(),
            offset,
            ty: Arc::clone(&word),
        };
        let entry = Type::Struct {
            size: 16,
            fields: vec![field("lock", 0), field("next", 8)],
        };
        let table = Type::Array {
            element: Arc::new(entry),
            len: 4,
            stride: 16,
        };
        let mut name = "slabs".to_owned();
        push_path(&mut name, &table, 40);
        assert_eq!(name, "slabs[].next");
        for (path, is_one) in [
            ("[].next", true),
            ("[].lock", true),
            ("[]", false),
            ("[].nxet", false),
            ("[].next.x", false),
            (".next", false),
        ] {
            assert_eq!(is_path(path, Some(&table), 64), is_one, "{path}");
        }
    }

    /// A pointer between two numbers is neither of them.
    #[test]
    fn what_has_no_known_type_is_named_by_its_offset() {
        let word = Arc::new(Type::Scalar(Scalar::Unsigned(4)));
        let field = |name: &str, offset| TypeField {
            name: name.to_owned(),
            offset,
            ty: Arc::clone(&word),
        };
        let value = Type::Struct {
            size: 24,
            fields: vec![field("head", 0), field("tail", 16)],
        };
        let named = |offset| {
            let mut name = "ring".to_owned();
            push_path(&mut name, &value, offset);
            name
        };
        assert_eq!([0, 8, 16].map(named), ["ring.head", "ring+8", "ring.tail"]);
        assert!(is_path("+8", Some(&value), 24) && !is_path("+24", Some(&value), 24));
    }
}
