//! Fields of a map's value that the kernel itself looks after: timers, locks, kernel pointers.

use crate::btf::{Btf, BtfKind, MAX_DEPTH, Steps, TypeId};

/// Source: kernel 6.18, `include/linux/bpf.h`, `BTF_FIELDS_MAX`.
const MAX_FIELDS: usize = 11;
/// Members of a value type that are looked at.
const MAX_MEMBERS: u32 = 1 << 16;

/// Offsets in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueFields {
    pub(crate) timer_at: Option<u32>,
    pub(crate) lock_at: Option<u32>,
    pub(crate) kptrs_at: Vec<u32>,
}

impl ValueFields {
    /// Searches a value type; `None` if it has more such fields than a kernel accepts.
    pub(crate) fn find(btf: &Btf, ty: TypeId) -> Option<Self> {
        let mut search = Search {
            btf,
            steps: Steps::new(MAX_MEMBERS),
            found: Self::default(),
        };
        search.visit(ty, 0, MAX_DEPTH)?;
        Some(search.found)
    }

    fn count(&self) -> usize {
        let single = [self.timer_at, self.lock_at];
        self.kptrs_at.len() + single.iter().flatten().count()
    }
}

/// A walk through a value type.
struct Search<'a> {
    btf: &'a Btf,
    steps: Steps,
    found: ValueFields,
}

impl Search<'_> {
    fn visit(&mut self, ty: TypeId, at: u32, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.steps.take()?;
        let Self { btf, found, .. } = self;
        let ty = btf.strip(ty);
        match &btf.get(ty).kind {
            BtfKind::Struct(_) if btf.name(ty) == "bpf_timer" => only(&mut found.timer_at, at),
            BtfKind::Struct(_) if btf.name(ty) == "bpf_spin_lock" => only(&mut found.lock_at, at),
            BtfKind::Struct(composite) => composite.members.iter().try_for_each(|member| {
                let inside = at.checked_add(member.bit_offset / 8)?;
                self.visit(member.ty, inside, depth)
            }),
            BtfKind::Ptr(to) if is_kernel_pointer(btf, *to) => {
                found.kptrs_at.push(at);
                (found.kptrs_at.len() <= MAX_FIELDS).then_some(())
            }
            BtfKind::Array { element, len } => self.visit_array((*element, *len), at, depth),
            _ => Some(()),
        }
    }

    fn visit_array(&mut self, (element, len): (TypeId, u32), at: u32, depth: u32) -> Option<()> {
        let Some(size) = self.btf.size(element).filter(|_| len > 0) else {
            return Some(());
        };
        // Numbers need no search; a large array of them would take all the steps.
        let first = self.found.count();
        self.visit(element, at, depth)?;
        if self.found.count() == first {
            return Some(());
        }
        (1..len).try_for_each(|index| {
            let inside = index
                .checked_mul(size)
                .and_then(|distance| at.checked_add(distance))?;
            self.visit(element, inside, depth)
        })
    }
}

/// Sets the place of a field that a value has once at most.
fn only(field: &mut Option<u32>, at: u32) -> Option<()> {
    field.replace(at).is_none().then_some(())
}

/// A type tag stands between a pointer and what it points to, perhaps among modifiers.
fn is_kernel_pointer(btf: &Btf, mut ty: TypeId) -> bool {
    loop {
        let kind = &btf.get(ty).kind;
        let is_tag = matches!(kind, BtfKind::TypeTag(_));
        if is_tag && matches!(btf.name(ty), "kptr" | "kptr_untrusted" | "percpu_kptr") {
            return true;
        }
        match kind.modified() {
            Some(next) if !matches!(kind, BtfKind::Typedef(_)) => ty = next,
            _ => return false,
        }
    }
}
