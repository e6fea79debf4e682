//! CO-RE: an instruction that depends on the layout of a kernel type gets the target's number.
//!
//! The compiler records, for each such instruction, the object's type and a path into it. The
//! loader looks for a type of the same name in the target, follows the path by the names of the
//! members, and writes what it finds into the instruction. A type or member that the target lacks
//! is nothing unusual: objects test for it and branch. The instruction that needs it is poisoned
//! and ends the run only if it is reached.
//!
//! Source: kernel documentation `bpf/llvm_reloc.rst` and `bpf/libbpf/libbpf_overview.rst` (6.18);
//! the rules of compatibility are those that libbpf 1.7 applies.

mod compat;
mod field;
mod matches;
mod patch;
mod path;

pub(crate) use compat::are_compatible;
pub(crate) use patch::apply;

use std::collections::BTreeMap;

use crate::Target;
use crate::btf::{Btf, CoreReloc, Steps, TypeId, essential};
use crate::image::FieldRead;
use field::FieldMeasure;
use path::Path;

/// Steps for all relocations of an object together. A relocation against a full kernel takes about
/// 250, the members of `task_struct`, and the object with the most has fewer than a thousand.
const MAX_STEPS: u32 = 50_000_000;

/// What one record asks for. The numbers are `enum bpf_core_relo_kind` of the kernel's
/// `include/uapi/linux/bpf.h` (6.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelocKind {
    Field(FieldMeasure),
    LocalTypeId,
    TargetTypeId,
    TypeExists,
    TypeSize,
    EnumeratorExists,
    EnumeratorValue,
    TypeMatches,
}

impl RelocKind {
    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Field(FieldMeasure::ByteOffset),
            1 => Self::Field(FieldMeasure::ByteSize),
            2 => Self::Field(FieldMeasure::Exists),
            3 => Self::Field(FieldMeasure::Signed),
            4 => Self::Field(FieldMeasure::LeftShift),
            5 => Self::Field(FieldMeasure::RightShift),
            6 => Self::LocalTypeId,
            7 => Self::TargetTypeId,
            8 => Self::TypeExists,
            9 => Self::TypeSize,
            10 => Self::EnumeratorExists,
            11 => Self::EnumeratorValue,
            12 => Self::TypeMatches,
            _ => return None,
        })
    }

    /// Whether the answer for an absent type is 0, and none only for a member's place or an
    /// enumerator's value.
    fn is_zero_if_absent(self) -> bool {
        match self {
            Self::Field(measure) => measure == FieldMeasure::Exists,
            Self::EnumeratorValue => false,
            _ => true,
        }
    }
}

/// The answer to one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// What the compiler wrote; `None` if that cannot be checked.
    pub(crate) old: Option<u64>,
    /// What belongs there for the target.
    pub(crate) new: u64,
    /// For a field's offset: how the load or store of the field changes.
    pub(crate) access: Access,
    /// For a field's offset: bytes that the program may read from there on. `u32::MAX` if no end
    /// is known, as for an array or a whole structure.
    pub(crate) reach: Option<u32>,
}

/// How a load or store must change with the size of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Not at all.
    Same,
    /// It moves so many bytes instead.
    Resized(u32),
    /// No load or store could do; arithmetic with the offset is fine.
    Impossible,
}

/// Why an instruction is poisoned, a whole phrase.
pub(crate) type Reason = String;

/// Answers the records of one object for one target.
pub(crate) struct Relocator<'a> {
    local: &'a Btf,
    target: &'a Target,
    candidates: BTreeMap<TypeId, Vec<TypeId>>,
    steps: Steps,
}

impl<'a> Relocator<'a> {
    pub(crate) fn new(local: &'a Btf, target: &'a Target) -> Self {
        Self {
            local,
            target,
            candidates: BTreeMap::new(),
            steps: Steps::new(MAX_STEPS),
        }
    }

    /// The target's number for a record, or why there is none.
    pub(crate) fn answer(&mut self, reloc: &CoreReloc) -> Result<Answer, Reason> {
        let question = RelocKind::from_number(reloc.kind)
            .ok_or_else(|| format!("unknown CO-RE relocation kind {}", reloc.kind))?;
        let path = self
            .local
            .text_at(reloc.access)
            .and_then(|text| Path::parse(self.local, reloc.ty, text, question))
            .ok_or("a CO-RE relocation has an unreadable path")?;
        if question == RelocKind::LocalTypeId {
            // A static linker renumbers types and leaves the instruction as it was.
            let new = reloc.ty.0.into();
            return Ok(Answer {
                old: None,
                new,
                access: Access::Same,
                reach: None,
            });
        }
        let mut found: Option<(u64, Answer)> = None;
        for candidate in self.candidates(reloc.ty) {
            let followed = self
                .steps
                .take()
                .and_then(|()| self.follow(&path, question, candidate));
            let Some(there) = followed else {
                continue;
            };
            let answer = self.compare(question, &path, Some(&there))?;
            match found {
                Some((bits, first)) if bits != there.bits || first.new != answer.new => {
                    let name = path.describe(self.local);
                    return Err(format!(
                        "`{name}` means several things in the target kernel"
                    ));
                }
                _ => found = Some((there.bits, answer)),
            }
        }
        if self.steps.are_exhausted() {
            return Err("the object's types are too entangled to search".to_owned());
        }
        match found {
            Some((_, answer)) => Ok(answer),
            None => self.compare(question, &path, None),
        }
    }

    /// What a record that has got `answer` lets the program read.
    pub(crate) fn reads(&self, reloc: &CoreReloc, answer: &Answer) -> Option<FieldRead> {
        let (at, len) = match (RelocKind::from_number(reloc.kind)?, answer.reach) {
            (RelocKind::TypeSize, _) => (0, u32::MAX),
            (_, reach) => (u32::try_from(answer.new).ok()?, reach?),
        };
        let structure = essential(self.local.name(self.local.strip(reloc.ty)));
        Some(FieldRead {
            structure: structure.to_owned(),
            at,
            len,
        })
    }

    /// Types of the target with the essential name and the kind of an object's type.
    fn candidates(&mut self, local: TypeId) -> Vec<TypeId> {
        if let Some(list) = self.candidates.get(&local) {
            return list.clone();
        }
        let name = essential(self.local.name(local));
        let kind = &self.local.get(local).kind;
        let is_alike = |id: &TypeId| compat::same_kind(kind, &self.target.btf.get(*id).kind);
        let list: Vec<_> = self.target.named(name).filter(is_alike).collect();
        self.candidates.insert(local, list.clone());
        list
    }

    fn follow(&self, path: &Path, question: RelocKind, candidate: TypeId) -> Option<Path> {
        let (local, target) = (self.local, &self.target.btf);
        let is_it = match question {
            RelocKind::Field(_) => return path.follow(local, target, candidate, &self.steps),
            RelocKind::EnumeratorExists | RelocKind::EnumeratorValue => {
                return path.same_enumerator(local, target, candidate);
            }
            RelocKind::TypeMatches => {
                matches::matches(local, path.root, target, candidate, &self.steps)
            }
            _ => are_compatible(local, path.root, target, candidate, &self.steps),
        };
        is_it?.then(|| Path::of_type(candidate))
    }

    fn compare(
        &self,
        question: RelocKind,
        here: &Path,
        there: Option<&Path>,
    ) -> Result<Answer, Reason> {
        if let RelocKind::Field(measure) = question {
            return field::compare(self.local, here, &self.target.btf, there, measure)
                .ok_or_else(|| self.absent(here));
        }
        let value = |btf: &Btf, path: Option<&Path>| match path {
            Some(path) => type_value(btf, path, question),
            None => question.is_zero_if_absent().then_some(0),
        };
        // The object's own value may be unknown, as the size of a forward declaration is.
        let old = value(self.local, Some(here));
        let new = value(&self.target.btf, there).ok_or_else(|| self.absent(here))?;
        // clang writes 1 for every question of existence, and for type ids its own numbers.
        let old = old.filter(|_| question != RelocKind::TargetTypeId);
        Ok(Answer {
            old,
            new,
            access: Access::Same,
            reach: None,
        })
    }

    fn absent(&self, path: &Path) -> Reason {
        let name = path.describe(self.local);
        format!(
            "the target kernel {} has no usable `{name}`",
            self.target.name()
        )
    }
}

fn type_value(btf: &Btf, path: &Path, question: RelocKind) -> Option<u64> {
    match question {
        RelocKind::TypeExists | RelocKind::TypeMatches | RelocKind::EnumeratorExists => Some(1),
        RelocKind::TypeSize => btf.size(path.root).map(u64::from),
        RelocKind::TargetTypeId => Some(path.root.0.into()),
        RelocKind::EnumeratorValue => path.enumerator(btf).map(|(_, value)| value.cast_unsigned()),
        RelocKind::LocalTypeId | RelocKind::Field(_) => None,
    }
}
