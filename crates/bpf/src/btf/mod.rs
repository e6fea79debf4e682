//! BPF Type Format: the types of an object or of a kernel.
//!
//! Source: kernel documentation `bpf/btf.rst` (6.18). A parsed [`Btf`] is well formed: every type
//! id and every name it holds exists, and every chain of modifiers ends. What it does not promise
//! is that structures do not contain themselves; whoever walks members counts the depth.

mod ext;
mod parse;
mod prototype;
mod query;
mod steps;

pub(crate) use ext::{CoreReloc, Ext};
pub(crate) use query::essential;
pub(crate) use steps::Steps;

/// Chains of modifiers, nested arrays, nested anonymous members: none deeper than this.
/// Source: kernel 6.18, `kernel/bpf/btf.c`, `MAX_RESOLVE_DEPTH`.
pub(crate) const MAX_DEPTH: u32 = 32;

/// All types of an object or kernel, by id. Id 0 is `void`.
#[derive(Clone, Debug)]
pub(crate) struct Btf {
    types: Vec<Type>,
    strings: Vec<u8>,
}

/// Number of a type within its [`Btf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TypeId(pub(crate) u32);

/// Offset of a name in the strings; 0 is the empty name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(u32);

#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) name: Name,
    pub(crate) kind: BtfKind,
}

#[derive(Clone, Debug)]
pub(crate) enum BtfKind {
    Void,
    Int(Int),
    Ptr(TypeId),
    Array {
        element: TypeId,
        len: u32,
    },
    Struct(Composite),
    Union(Composite),
    Enum(Enum),
    Fwd {
        is_union: bool,
    },
    Typedef(TypeId),
    Volatile(TypeId),
    Const(TypeId),
    Restrict(TypeId),
    Func {
        prototype: TypeId,
        linkage: Linkage,
    },
    FuncProto {
        result: TypeId,
        params: Box<[TypeId]>,
    },
    Var {
        ty: TypeId,
        linkage: Linkage,
    },
    Datasec(Box<[SectionVariable]>),
    Float {
        size: u32,
    },
    DeclTag {
        target: TypeId,
        component: i32,
    },
    TypeTag(TypeId),
}

/// A variable of a data section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionVariable {
    pub(crate) ty: TypeId,
    /// Bytes from the section's begin, as soon as the object is linked.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) size: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Int {
    /// Bytes.
    pub(crate) size: u32,
    pub(crate) bits: u8,
    /// Offset in bits; 0 but in BTF of very old compilers.
    pub(crate) offset: u8,
    pub(crate) signed: bool,
    pub(crate) bool: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Composite {
    /// Bytes.
    pub(crate) size: u32,
    pub(crate) members: Box<[BtfMember]>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BtfMember {
    pub(crate) name: Name,
    pub(crate) ty: TypeId,
    /// Offset in the structure, in bits.
    pub(crate) bit_offset: u32,
    /// Width of a bit field, 0 for all other members.
    pub(crate) bits: u8,
}

/// `enum` of any width.
#[derive(Clone, Debug)]
pub(crate) struct Enum {
    /// Bytes.
    pub(crate) size: u32,
    pub(crate) signed: bool,
    /// Names and values; an unsigned 64-bit value keeps its bits.
    pub(crate) values: Box<[(Name, i64)]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    Static,
    Global,
    Extern,
}

#[cfg(test)]
mod tests;
