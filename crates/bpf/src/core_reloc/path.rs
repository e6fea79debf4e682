//! A path into a type: `0:2:1` of the object, and what it leads to in the target.

use super::RelocKind;
use super::compat::fields_are_compatible;
use crate::btf::{Btf, BtfKind, BtfMember, MAX_DEPTH, Name, Steps, TypeId, essential};

/// Steps of a path; clang writes at most a dozen.
const MAX_STEPS: usize = 64;

/// Bytes after which a description ends, whatever is left of the path.
const MAX_TEXT: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) root: TypeId,
    /// Steps that have a meaning: anonymous members are passed without one.
    pub(super) steps: Vec<Step>,
    /// Distance from the start of the root, in bits.
    pub(super) bits: u64,
    /// For paths to an enumerator: its number.
    enumerator: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A named member of the composite `of`.
    Member { of: TypeId, index: u32 },
    /// An element of type `ty`. The first step of a path is one, with the root as its element.
    Element { ty: TypeId, index: u32 },
}

impl Path {
    pub(super) fn of_type(root: TypeId) -> Self {
        Self {
            root,
            steps: Vec::new(),
            bits: 0,
            enumerator: 0,
        }
    }

    /// Reads the text of a record; `None` if it does not fit the type.
    pub(super) fn parse(btf: &Btf, root: TypeId, text: &str, question: RelocKind) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| number.parse::<u32>().ok());
        let first = numbers.next()??;
        let mut path = Self::of_type(root);
        match question {
            RelocKind::Field(_) => {}
            RelocKind::EnumeratorExists | RelocKind::EnumeratorValue => {
                path.enumerator = first;
                path.enumerator(btf)?;
                return numbers.next().is_none().then_some(path);
            }
            _ => return (first == 0 && numbers.next().is_none()).then_some(path),
        }
        let mut ty = btf.strip(root);
        path.enter_element(btf, ty, first)?;
        for number in numbers {
            let number = number?;
            ty = match btf.stripped(ty) {
                BtfKind::Struct(_) | BtfKind::Union(_) => path.enter_member(btf, ty, number)?,
                BtfKind::Array { element, len } => {
                    let is_inside = number < *len || path.is_flexible(btf, *len);
                    path.enter_element(btf, *element, number)
                        .filter(|()| is_inside)?;
                    *element
                }
                _ => return None,
            };
        }
        Some(path)
    }

    fn enter_element(&mut self, btf: &Btf, ty: TypeId, index: u32) -> Option<()> {
        let size = btf.size(ty).or((index == 0).then_some(0))?;
        self.bits = self
            .bits
            .checked_add(u64::from(size) * u64::from(index) * 8)?;
        self.push(Step::Element {
            ty: btf.strip(ty),
            index,
        })
    }

    fn enter_member(&mut self, btf: &Btf, ty: TypeId, index: u32) -> Option<TypeId> {
        let of = btf.strip(ty);
        let member = btf.composite(of)?.members.get(index as usize)?;
        self.bits = self.bits.checked_add(member.bit_offset.into())?;
        if !btf.text(member.name).is_empty() {
            self.push(Step::Member { of, index })?;
        }
        Some(member.ty)
    }

    fn push(&mut self, step: Step) -> Option<()> {
        self.steps.push(step);
        (self.steps.len() <= MAX_STEPS).then_some(())
    }

    /// Whether an array of `len` elements, just entered, may be indexed without bound: it is the
    /// last member of its structure and declared without a length.
    fn is_flexible(&self, btf: &Btf, len: u32) -> bool {
        match self.steps.last() {
            Some(Step::Member { of, index }) if len == 0 => btf
                .composite(*of)
                .is_some_and(|composite| *index as usize + 1 == composite.members.len()),
            _ => false,
        }
    }

    /// The same path in the target, from `root` on: members by name, elements by number.
    pub(super) fn follow(
        &self,
        local: &Btf,
        target: &Btf,
        root: TypeId,
        steps: &Steps,
    ) -> Option<Self> {
        let mut path = Self::of_type(root);
        let mut ty = target.strip(root);
        for (at, step) in self.steps.iter().enumerate() {
            ty = match *step {
                Step::Member { of, index } => {
                    let wanted = local.composite(of)?.members.get(index as usize)?;
                    let search = Search {
                        local,
                        wanted,
                        target,
                        steps,
                    };
                    search.enter(&mut path, target.strip(ty), MAX_DEPTH)?
                }
                // The first number is an index of the root as if that were an array.
                Step::Element { index, .. } if at == 0 => {
                    path.enter_element(target, ty, index)?;
                    ty
                }
                Step::Element { index, .. } => {
                    let BtfKind::Array { element, len } = *target.stripped(ty) else {
                        return None;
                    };
                    let is_inside = index < len || path.is_flexible(target, len);
                    path.enter_element(target, element, index)
                        .filter(|()| is_inside)?;
                    element
                }
            };
        }
        Some(path)
    }

    /// The enumerator of the same essential name in an enumeration of the target.
    pub(super) fn same_enumerator(&self, local: &Btf, target: &Btf, root: TypeId) -> Option<Self> {
        let (name, _) = self.enumerator(local)?;
        let wanted = essential(local.text(name));
        let values = &target.enumeration(root)?.values;
        let index = values
            .iter()
            .position(|value| essential(target.text(value.0)) == wanted)?;
        Some(Self {
            enumerator: u32::try_from(index).ok()?,
            ..Self::of_type(root)
        })
    }

    /// Name and value of the enumerator that the path leads to.
    pub(super) fn enumerator(&self, btf: &Btf) -> Option<(Name, i64)> {
        btf.enumeration(self.root)?
            .values
            .get(self.enumerator as usize)
            .copied()
    }

    /// The last step's member, if it is one.
    pub(super) fn last_member(&self, btf: &Btf) -> Option<BtfMember> {
        match self.steps.last()? {
            Step::Member { of, index } => btf.composite(*of)?.members.get(*index as usize).copied(),
            Step::Element { .. } => None,
        }
    }

    /// The path as in C, for messages: `task_struct.scx.slice`.
    pub(super) fn describe(&self, btf: &Btf) -> String {
        let mut text = btf.name(self.root).to_owned();
        for (at, step) in self.steps.iter().enumerate() {
            if text.len() > MAX_TEXT {
                text.push_str("...");
                return text;
            }
            match *step {
                Step::Member { of, index } => {
                    let members = btf.composite(of).map_or(&[][..], |list| &list.members);
                    let name = members
                        .get(index as usize)
                        .map(|member| btf.text(member.name));
                    text.push('.');
                    text.push_str(name.unwrap_or_default());
                }
                Step::Element { index, .. } if at > 0 || index > 0 => {
                    text.push_str(&format!("[{index}]"));
                }
                Step::Element { .. } => {}
            }
        }
        if let Some((name, _)) = self.enumerator(btf) {
            text.push_str("::");
            text.push_str(btf.text(name));
        }
        text
    }
}

/// The search for one member of the object in the target.
struct Search<'a> {
    local: &'a Btf,
    wanted: &'a BtfMember,
    target: &'a Btf,
    steps: &'a Steps,
}

impl Search<'_> {
    /// Enters the member of `ty` that has the wanted name and a compatible type, through anonymous
    /// members if need be; returns its type. Leaves the path alone if there is none.
    fn enter(&self, path: &mut Path, ty: TypeId, depth: u32) -> Option<TypeId> {
        let depth = depth.checked_sub(1)?;
        let before = (path.bits, path.steps.len());
        let composite = self.target.composite(ty)?;
        for (index, member) in (0..).zip(&composite.members) {
            self.steps.take()?;
            let name = self.target.text(member.name);
            if name.is_empty() {
                path.bits = path.bits.checked_add(member.bit_offset.into())?;
                let inner = self.target.strip(member.ty);
                if let Some(found) = self.enter(path, inner, depth) {
                    return Some(found);
                }
                path.bits = before.0;
                path.steps.truncate(before.1);
            } else if name == self.local.text(self.wanted.name) {
                let (ours, theirs) = (self.wanted.ty, member.ty);
                let fits = fields_are_compatible(self.local, ours, self.target, theirs, self.steps);
                return fits.then(|| path.enter_member(self.target, ty, index))?;
            }
        }
        None
    }
}
