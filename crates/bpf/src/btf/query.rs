//! Questions to a [`Btf`].

use super::{Btf, BtfKind, Composite, Enum, MAX_DEPTH, Type, TypeId};

/// The name without its flavour: `task_struct` of `task_struct___old`.
///
/// A flavour is what follows three underscores, if something stands before and behind them.
/// Source: kernel 6.18, `tools/lib/bpf/relo_core.c`; the rule is part of CO-RE.
pub(crate) fn essential(name: &str) -> &str {
    let bytes = name.as_bytes();
    // From the end, so that the last flavour is cut: `a___b___c` is a flavour of `a___b`.
    let cut = (1..bytes.len().saturating_sub(3)).rev().find(|&at| {
        bytes[at..].starts_with(b"___") && bytes[at - 1] != b'_' && bytes[at + 3] != b'_'
    });
    cut.map_or(name, |at| &name[..at])
}

impl Btf {
    /// The type of an id that this `Btf` itself gave out.
    ///
    /// # Panics
    /// If the id is of another `Btf`.
    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// The id of a number that comes from outside, if there is such a type.
    pub(crate) fn id(&self, number: u32) -> Option<TypeId> {
        ((number as usize) < self.types.len()).then_some(TypeId(number))
    }

    /// All types with their ids, `void` first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0..).map(TypeId).zip(&self.types)
    }

    /// The name of a type, empty if it has none.
    pub(crate) fn name(&self, id: TypeId) -> &str {
        self.text(self.get(id).name)
    }

    /// What a type is beneath its typedefs and modifiers.
    pub(crate) fn strip(&self, mut id: TypeId) -> TypeId {
        while let Some(next) = self.get(id).kind.modified() {
            id = next;
        }
        id
    }

    /// The kind of [`Btf::strip`].
    pub(crate) fn stripped(&self, id: TypeId) -> &BtfKind {
        &self.get(self.strip(id)).kind
    }

    /// Structure or union beneath typedefs and modifiers.
    pub(crate) fn composite(&self, id: TypeId) -> Option<&Composite> {
        match self.stripped(id) {
            BtfKind::Struct(composite) | BtfKind::Union(composite) => Some(composite),
            _ => None,
        }
    }

    /// Enumeration beneath typedefs and modifiers.
    pub(crate) fn enumeration(&self, id: TypeId) -> Option<&Enum> {
        match self.stripped(id) {
            BtfKind::Enum(list) => Some(list),
            _ => None,
        }
    }

    /// Bytes of a value of the type; `None` if it has no size or none that fits 32 bits.
    pub(crate) fn size(&self, id: TypeId) -> Option<u32> {
        let mut id = id;
        let mut count = 1u32;
        for _ in 0..MAX_DEPTH {
            let size = match self.stripped(id) {
                BtfKind::Array { element, len } => {
                    count = count.checked_mul(*len)?;
                    id = *element;
                    continue;
                }
                BtfKind::Ptr(_) => 8,
                BtfKind::Int(int) => int.size,
                BtfKind::Struct(composite) | BtfKind::Union(composite) => composite.size,
                BtfKind::Enum(list) => list.size,
                BtfKind::Float { size } => *size,
                BtfKind::Var { ty, .. } => {
                    id = *ty;
                    continue;
                }
                _ => return None,
            };
            return count.checked_mul(size);
        }
        None
    }

    /// The type that a pointer points to.
    pub(crate) fn pointee(&self, id: TypeId) -> Option<TypeId> {
        match self.stripped(id) {
            BtfKind::Ptr(to) => Some(*to),
            _ => None,
        }
    }

    /// The variables of the data section called `name`, as (variable's id, its type).
    pub(crate) fn section_variables(&self, name: &str) -> Vec<(TypeId, TypeId)> {
        self.iter()
            .filter_map(|(id, ty)| match &ty.kind {
                BtfKind::Datasec(list) if self.name(id) == name => Some(list),
                _ => None,
            })
            .flat_map(|list| list.iter())
            .filter_map(|variable| match self.get(variable.ty).kind {
                BtfKind::Var { ty, .. } => Some((variable.ty, ty)),
                _ => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flavour_is_what_follows_three_underscores() {
        assert_eq!(essential("task_struct___old"), "task_struct");
        assert_eq!(essential("scx_bpf_dsq_move___v2"), "scx_bpf_dsq_move");
        assert_eq!(essential("a___b___c"), "a___b");
    }

    #[test]
    fn a_name_that_only_looks_flavoured_stays_whole() {
        for name in ["", "a", "a__b", "___a", "a___", "a____b", "___"] {
            assert_eq!(essential(name), name);
        }
    }
}
