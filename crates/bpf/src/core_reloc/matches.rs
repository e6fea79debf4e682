//! The strict comparison behind `bpf_core_type_matches`: the object's type must be a part of the
//! target's type, by names and exact integer types.

use super::compat::same_kind;
use crate::btf::{Btf, BtfKind, Composite, Enum, MAX_DEPTH, Name, Steps, TypeId, essential};

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
                (BtfKind::Ptr(one), BtfKind::Ptr(other)) => {
                    behind_pointer = true;
                    (ours, theirs) = (*one, *other);
                }
                (
                    BtfKind::Array { element: one, len },
                    BtfKind::Array {
                        element: other,
                        len: other_len,
                    },
                ) if len == other_len => (ours, theirs) = (*one, *other),
                (
                    BtfKind::FuncProto {
                        result: one,
                        params: list,
                    },
                    BtfKind::FuncProto {
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
        one: &BtfKind,
        other: &BtfKind,
        behind_pointer: bool,
        depth: u32,
    ) -> Option<bool> {
        Some(match (one, other) {
            (BtfKind::Void, BtfKind::Void) => true,
            (BtfKind::Int(one), BtfKind::Int(other)) => {
                (one.bits, one.signed) == (other.bits, other.signed)
            }
            (BtfKind::Enum(one), BtfKind::Enum(other)) => return self.enums_match(one, other),
            (BtfKind::Fwd { is_union: one }, BtfKind::Fwd { is_union: other }) => one == other,
            // Behind a pointer, a forward declaration stands for its structure.
            (BtfKind::Fwd { is_union }, BtfKind::Struct(_))
            | (BtfKind::Struct(_), BtfKind::Fwd { is_union }) => behind_pointer && !is_union,
            (BtfKind::Fwd { is_union }, BtfKind::Union(_))
            | (BtfKind::Union(_), BtfKind::Fwd { is_union }) => behind_pointer && *is_union,
            (BtfKind::Struct(ours), BtfKind::Struct(theirs))
            | (BtfKind::Union(ours), BtfKind::Union(theirs)) => {
                return if behind_pointer {
                    Some(true)
                } else {
                    self.members_match(ours, theirs, depth)
                };
            }
            (BtfKind::Float { .. }, _) => same_kind(one, other),
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
