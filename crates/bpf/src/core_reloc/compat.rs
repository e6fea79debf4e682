//! When a type of the object may stand for a type of the kernel.

use crate::btf::{Btf, BtfKind, MAX_DEPTH, Steps, TypeId, essential};

/// The same kind of type; enumerations of any width are one kind.
pub(super) fn same_kind(one: &BtfKind, other: &BtfKind) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Whether a member of the object's type may be read as a member of the target's type.
///
/// Integers may differ in size and sign, enumerations in their values, pointers in what they point
/// to; the names of enumerations must agree if both have one.
pub(super) fn fields_are_compatible(
    local: &Btf,
    mut ours: TypeId,
    target: &Btf,
    mut theirs: TypeId,
    steps: &Steps,
) -> bool {
    while steps.take().is_some() {
        (ours, theirs) = (local.strip(ours), target.strip(theirs));
        return match (&local.get(ours).kind, &target.get(theirs).kind) {
            (BtfKind::Struct(_) | BtfKind::Union(_), BtfKind::Struct(_) | BtfKind::Union(_))
            | (BtfKind::Ptr(_), BtfKind::Ptr(_))
            | (BtfKind::Float { .. }, BtfKind::Float { .. }) => true,
            (BtfKind::Int(one), BtfKind::Int(other)) => one.offset == 0 && other.offset == 0,
            (BtfKind::Enum(_), BtfKind::Enum(_)) | (BtfKind::Fwd { .. }, BtfKind::Fwd { .. }) => {
                let (one, other) = (local.name(ours), target.name(theirs));
                one.is_empty() || other.is_empty() || essential(one) == essential(other)
            }
            (BtfKind::Array { element: one, .. }, BtfKind::Array { element: other, .. }) => {
                (ours, theirs) = (*one, *other);
                continue;
            }
            _ => false,
        };
    }
    false
}

/// Whether two types agree in kind, all the way through pointers, arrays and prototypes; names of
/// structures beneath do not matter. `None` when the search takes too long.
///
/// The same rule says whether a kernel function has the prototype that an object expects.
pub(crate) fn are_compatible(
    local: &Btf,
    ours: TypeId,
    target: &Btf,
    theirs: TypeId,
    steps: &Steps,
) -> Option<bool> {
    let pair = Pair {
        local,
        target,
        steps,
    };
    pair.compatible(ours, theirs, MAX_DEPTH)
}

struct Pair<'a> {
    local: &'a Btf,
    target: &'a Btf,
    steps: &'a Steps,
}

impl Pair<'_> {
    fn compatible(&self, mut ours: TypeId, mut theirs: TypeId, depth: u32) -> Option<bool> {
        for depth in (0..depth).rev() {
            self.steps.take()?;
            match (self.local.stripped(ours), self.target.stripped(theirs)) {
                (BtfKind::Ptr(one), BtfKind::Ptr(other))
                | (BtfKind::Array { element: one, .. }, BtfKind::Array { element: other, .. }) => {
                    (ours, theirs) = (*one, *other);
                }
                (
                    BtfKind::FuncProto {
                        result: one,
                        params: list,
                    },
                    BtfKind::FuncProto {
                        result: other,
                        params: others,
                    },
                ) => {
                    if list.len() != others.len() {
                        return Some(false);
                    }
                    for (&one, &other) in list.iter().zip(others) {
                        if !self.compatible(one, other, depth)? {
                            return Some(false);
                        }
                    }
                    (ours, theirs) = (*one, *other);
                }
                (BtfKind::Int(one), BtfKind::Int(other)) => {
                    return Some(one.offset == 0 && other.offset == 0);
                }
                (one, other) => return Some(is_leaf(one) && same_kind(one, other)),
            }
        }
        None
    }
}

/// Types that agree when their kind does.
fn is_leaf(kind: &BtfKind) -> bool {
    matches!(
        kind,
        BtfKind::Void
            | BtfKind::Struct(_)
            | BtfKind::Union(_)
            | BtfKind::Enum(_)
            | BtfKind::Fwd { .. }
    )
}
