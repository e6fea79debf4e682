//! The strict comparison behind `bpf_core_type_matches`: the object's type must be a part of the
//! target's type, by names and exact integer types.

use super::compat::same_kind;
use crate::btf::{Btf, Composite, Enum, Kind, MAX_DEPTH, Name, Steps, TypeId, essential};

/// Whether the object's type matches the target's. `None` when the search takes too long.
pub(super) fn matches(
    local: &Btf,
    ours: TypeId,
    target: &Btf,
    theirs: TypeId,
    steps: &Steps,
) -> Option<bool> {
    Pair {
        local,
        target,
        steps,
    }
    .matches(ours, theirs, false, MAX_DEPTH)
}

struct Pair<'a> {
    local: &'a Btf,
    target: &'a Btf,
    steps: &'a Steps,
}

impl Pair<'_> {
    fn matches(
        &self,
        mut ours: TypeId,
        mut theirs: TypeId,
        mut behind_pointer: bool,
        depth: u32,
    ) -> Option<bool> {
        for depth in (0..depth).rev() {
            self.steps.take()?;
            (ours, theirs) = (self.local.strip(ours), self.target.strip(theirs));
            let (one, other) = (self.local.get(ours), self.target.get(theirs));
            if !self.same_name(one.name, other.name) {
                return Some(false);
            }
            match (&one.kind, &other.kind) {
                (Kind::Ptr(one), Kind::Ptr(other)) => {
                    behind_pointer = true;
                    (ours, theirs) = (*one, *other);
                }
                (
                    Kind::Array { element: one, len },
                    Kind::Array {
                        element: other,
                        len: other_len,
                    },
                ) if len == other_len => (ours, theirs) = (*one, *other),
                (
                    Kind::FuncProto {
                        result: one,
                        params: list,
                    },
                    Kind::FuncProto {
                        result: other,
                        params: others,
                    },
                ) if list.len() == others.len() => {
                    for (&one, &other) in list.iter().zip(others) {
                        if !self.matches(one, other, behind_pointer, depth)? {
                            return Some(false);
                        }
                    }
                    (ours, theirs) = (*one, *other);
                }
                (one, other) => return self.leaves_match(one, other, behind_pointer, depth),
            }
        }
        None
    }

    fn leaves_match(
        &self,
        one: &Kind,
        other: &Kind,
        behind_pointer: bool,
        depth: u32,
    ) -> Option<bool> {
        Some(match (one, other) {
            (Kind::Void, Kind::Void) => true,
            (Kind::Int(one), Kind::Int(other)) => {
                (one.bits, one.signed) == (other.bits, other.signed)
            }
            (Kind::Enum(one), Kind::Enum(other)) => return self.enums_match(one, other),
            (Kind::Fwd { is_union: one }, Kind::Fwd { is_union: other }) => one == other,
            // Behind a pointer, a forward declaration stands for its structure.
            (Kind::Fwd { is_union }, Kind::Struct(_))
            | (Kind::Struct(_), Kind::Fwd { is_union }) => behind_pointer && !is_union,
            (Kind::Fwd { is_union }, Kind::Union(_)) | (Kind::Union(_), Kind::Fwd { is_union }) => {
                behind_pointer && *is_union
            }
            (Kind::Struct(ours), Kind::Struct(theirs))
            | (Kind::Union(ours), Kind::Union(theirs)) => {
                return if behind_pointer {
                    Some(true)
                } else {
                    self.members_match(ours, theirs, depth)
                };
            }
            (Kind::Float { .. }, _) => same_kind(one, other),
            _ => false,
        })
    }

    fn enums_match(&self, ours: &Enum, theirs: &Enum) -> Option<bool> {
        for value in &ours.values {
            self.steps.take()?;
            let mut others = theirs.values.iter();
            if !others.any(|other| self.same_name(value.0, other.0)) {
                return Some(false);
            }
        }
        Some(true)
    }

    fn members_match(&self, ours: &Composite, theirs: &Composite, depth: u32) -> Option<bool> {
        for member in &ours.members {
            let mut is_there = false;
            for other in &theirs.members {
                self.steps.take()?;
                if self.same_name(member.name, other.name)
                    && self.matches(member.ty, other.ty, false, depth)?
                {
                    is_there = true;
                    break;
                }
            }
            if !is_there {
                return Some(false);
            }
        }
        Some(true)
    }

    fn same_name(&self, ours: Name, theirs: Name) -> bool {
        essential(self.local.text(ours)) == essential(self.target.text(theirs))
    }
}
