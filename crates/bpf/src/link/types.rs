//! Types of variables and contexts, as far as their values can be written as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::maps::problem;
use super::value_fields::ValueFields;
use crate::btf::{Btf, BtfKind, Composite, MAX_DEPTH, TypeId};
use crate::image::{OwnType, Scalar, Type, TypeField};
use crate::{LoadError, MapProblem, Object};

/// The types of one object, each described once.
pub(super) struct Types<'a> {
    btf: &'a Btf,
    /// `None` for what has no values that can be written, and for what is being described: a
    /// structure cannot contain itself.
    known: BTreeMap<TypeId, Option<Arc<Type>>>,
    /// Functions by name; made when the first is asked for.
    functions: Option<BTreeMap<&'a str, TypeId>>,
}

impl<'a> Types<'a> {
    pub(super) const fn new(btf: &'a Btf) -> Self {
        Self {
            btf,
            known: BTreeMap::new(),
            functions: None,
        }
    }

    /// The type `ty`; `None` if no value of it can be written as text.
    pub(super) fn of(&mut self, ty: TypeId) -> Option<Arc<Type>> {
        self.describe(ty, MAX_DEPTH)
    }

    /// What the first argument of the function `name` points to.
    pub(super) fn argument(&mut self, name: &str) -> Option<Arc<Type>> {
        let btf = self.btf;
        let functions = self.functions.get_or_insert_with(|| {
            let all = btf.iter();
            all.filter_map(|(id, ty)| match ty.kind {
                BtfKind::Func { prototype, .. } => Some((btf.name(id), prototype)),
                _ => None,
            })
            .collect()
        });
        let prototype = *functions.get(name)?;
        let BtfKind::FuncProto { params, .. } = &btf.get(prototype).kind else {
            return None;
        };
        self.of(btf.pointee(*params.first()?)?)
    }

    fn describe(&mut self, ty: TypeId, depth: u32) -> Option<Arc<Type>> {
        let depth = depth.checked_sub(1)?;
        let ty = self.btf.strip(ty);
        if let Some(known) = self.known.get(&ty) {
            return known.clone();
        }
        self.known.insert(ty, None);
        let described = match &self.btf.get(ty).kind {
            BtfKind::Array { element, len } => self.array(*element, *len, depth),
            BtfKind::Struct(composite) | BtfKind::Union(composite) => {
                Some(self.composite(composite, depth))
            }
            kind => scalar(kind).map(Type::Scalar),
        };
        let described = described.map(Arc::new);
        self.known.insert(ty, described.clone());
        described
    }

    fn array(&mut self, element: TypeId, len: u32, depth: u32) -> Option<Type> {
        let stride = self.btf.size(element)?;
        let element = self.describe(element, depth)?;
        Some(Type::Array {
            element,
            len,
            stride,
        })
    }

    fn composite(&mut self, composite: &Composite, depth: u32) -> Type {
        let mut fields = Vec::new();
        for member in &composite.members {
            // Anonymous members within each other could multiply without end.
            if fields.len() >= MAX_FIELDS {
                break;
            }
            let whole = member.bits == 0 && member.bit_offset.is_multiple_of(8);
            let Some(ty) = self.describe(member.ty, depth).filter(|_| whole) else {
                continue;
            };
            let offset = member.bit_offset / 8;
            match (self.btf.text(member.name), &*ty) {
                ("", Type::Struct { fields: inner, .. }) => {
                    fields.extend(inner.iter().filter_map(|field| {
                        let offset = offset.checked_add(field.offset)?;
                        Some(TypeField {
                            offset,
                            ..field.clone()
                        })
                    }));
                }
                ("", _) => {}
                (name, _) => fields.push(TypeField {
                    name: name.to_owned(),
                    offset,
                    ty,
                }),
            }
        }
        Type::Struct {
            size: composite.size,
            fields,
        }
    }
}

/// Fields of a structure that can be named; the largest of known schedulers have about a hundred.
const MAX_FIELDS: usize = 4096;

/// A number's type.
pub(super) fn scalar(kind: &BtfKind) -> Option<Scalar> {
    let (size, signed) = match kind {
        BtfKind::Int(int) if int.bool && int.size == 1 => return Some(Scalar::Bool),
        BtfKind::Int(int) => (int.size, int.signed),
        BtfKind::Enum(list) => (list.size, list.signed),
        _ => return None,
    };
    let size = u8::try_from(size)
        .ok()
        .filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
    Some(if signed {
        Scalar::Signed(size)
    } else {
        Scalar::Unsigned(size)
    })
}

/// `BPF_CORE_TYPE_ID_LOCAL` (kernel 6.18, include/uapi/linux/bpf.h).
const LOCAL_TYPE_ID: u32 = 6;

/// Greatest size of a type that the kernel allocates for a program: it is cut from a per-CPU cache
/// (`bpf_mem_alloc()`, kernel 6.18, kernel/bpf/memalloc.c).
const MOST_BYTES: u32 = 4096;

/// The structures whose numbers the object's programs ask for.
pub(super) fn allocated(object: &Object) -> Result<Vec<OwnType>, LoadError> {
    let relocs = object.ext.relocs.iter();
    let asked = relocs.filter(|reloc| reloc.kind == LOCAL_TYPE_ID);
    let mut ids: Vec<TypeId> = asked.map(|reloc| reloc.ty).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut types = Vec::new();
    for id in ids {
        let BtfKind::Struct(composite) = &object.btf.get(id).kind else {
            continue;
        };
        if composite.size == 0 || composite.size > MOST_BYTES {
            continue;
        }
        let name = object.btf.name(id);
        let fields = ValueFields::find(&object.btf, id);
        let fields = fields.ok_or_else(|| problem(name, MapProblem::TooManyFields))?;
        types.push(OwnType {
            source: 0,
            id: id.0,
            size: composite.size,
            kptrs_at: fields.kptrs_at,
        });
    }
    Ok(types)
}
