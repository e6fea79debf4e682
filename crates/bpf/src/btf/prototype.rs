//! Prototypes in a normal form that text can be compared with.

use super::{Btf, BtfKind, TypeId};

/// Kernel functions that programs may call have 12 at most (kernel 6.18, `MAX_BPF_FUNC_ARGS`).
const MAX_PARAMS: usize = 64;

impl Btf {
    /// The normal form of a function's or prototype's type, see
    /// [`Target::prototype`](crate::Target::prototype); `None` for any other type.
    pub(crate) fn prototype(&self, id: TypeId) -> Option<String> {
        match &self.get(id).kind {
            BtfKind::Func { prototype, .. } => self.prototype_text(*prototype),
            _ => self.prototype_text(id),
        }
    }

    fn prototype_text(&self, id: TypeId) -> Option<String> {
        let BtfKind::FuncProto { result, params } = &self.get(id).kind else {
            return None;
        };
        if params.len() > MAX_PARAMS {
            return None;
        }
        let last = params.len().saturating_sub(1);
        let word = |(at, &param): (usize, &TypeId)| match self.stripped(param) {
            // A last parameter of no type is how BTF spells `...`.
            BtfKind::Void if at == last => "...",
            _ => self.word(param),
        };
        let params: Vec<_> = params.iter().enumerate().map(word).collect();
        Some(format!("{}({})", self.word(*result), params.join(",")))
    }

    /// One word for a parameter's or result's type.
    pub(crate) fn word(&self, id: TypeId) -> &'static str {
        match self.stripped(id) {
            BtfKind::Void => "void",
            BtfKind::Int(int) if int.bool => "bool",
            BtfKind::Int(int) => integer(int.size, int.signed),
            BtfKind::Enum(list) => integer(list.size, list.signed),
            BtfKind::Ptr(_) | BtfKind::Array { .. } | BtfKind::FuncProto { .. } => "ptr",
            BtfKind::Float { .. } => "float",
            _ => "struct",
        }
    }
}

fn integer(size: u32, signed: bool) -> &'static str {
    match (size, signed) {
        (1, false) => "u8",
        (2, false) => "u16",
        (4, false) => "u32",
        (8, false) => "u64",
        (1, true) => "s8",
        (2, true) => "s16",
        (4, true) => "s32",
        (8, true) => "s64",
        _ => "struct",
    }
}
