//! What lies at an address, by the names that the object gives it.

use crate::host::Host;
use crate::image::{Image, Type};
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
        in_map.or_else(|| arena.is_some_and(in_arena).then(|| "the arena".to_owned()))
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
        let stride = map.shape.stride.max(u64::from(def.value_size));
        let mut values = map.values().into_iter();
        let value = values.find(|value| (*value..*value + stride).contains(&address))?;
        let offset = (address - value) % u64::from(def.value_size.next_multiple_of(8).max(8));
        Some(format!("{}+{offset}", def.name))
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
/// they are one variable to whoever looks for it.
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
            let mut fields = fields.iter().rev();
            if let Some(field) = fields.find(|field| field.offset <= offset) {
                name.push('.');
                name.push_str(&field.name);
                push_path(name, &field.ty, offset - field.offset);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::image::{Scalar, TypeField};

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
    }
}
