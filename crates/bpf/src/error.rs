//! Why an object could not be loaded.

use std::fmt;

use model::Advice;

use crate::verify::Violation;

/// Why a policy object could not be loaded. The user's or the file's fault, never the policy's
/// behaviour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is not an ELF object for the BPF machine.
    #[error("not a BPF object ({0})")]
    NotBpf(&'static str),
    /// The file is damaged, or no compiler wrote it.
    #[error("broken object: section `{section}`, byte {offset}: {problem}")]
    Malformed {
        /// ELF section, or `ELF header`.
        section: String,
        /// Byte within the section.
        offset: u64,
        /// What is wrong there.
        problem: &'static str,
    },
    /// Type information that contradicts itself.
    #[error("broken object: BTF type {id} {problem}")]
    BadType {
        /// Number of the type.
        id: usize,
        /// What is wrong with it, a verb first.
        problem: &'static str,
    },
    /// Something exceeds what a reasonable object holds.
    #[error("object too large: it has more than {limit} {what}")]
    TooLarge {
        /// Plural noun.
        what: &'static str,
        /// The cap.
        limit: u64,
    },
    /// A relocation that no loader could apply.
    #[error("`{function}`, instruction {insn}: {problem}: `{symbol}`")]
    Relocation {
        /// The function.
        function: String,
        /// Instruction slot within the function.
        insn: u32,
        /// The symbol that the relocation names.
        symbol: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An instruction that breaks the rules of the instruction set.
    #[error("`{function}`, instruction {insn}: {violation}")]
    Structure {
        /// The function.
        function: String,
        /// Instruction slot within the function.
        insn: u32,
        /// The broken rule.
        violation: Violation,
    },
    /// A map declaration that cannot be honoured.
    #[error("map `{map}`: {problem}")]
    Map {
        /// The map's name.
        map: String,
        /// What is wrong with it.
        problem: MapProblem,
    },
    /// Functions, variables or settings that the target kernel lacks; all of them.
    #[error("the target kernel {target} lacks what the object needs:{}", list(.missing))]
    Missing {
        /// The kernel's name.
        target: String,
        /// Everything that is missing, in the order of the object's symbols.
        missing: Vec<MissingExtern>,
    },
    /// A `struct_ops` table that cannot be honoured.
    #[error("struct_ops table `{table}`{}: {problem}", of_member(.member))]
    StructOps {
        /// The table's name.
        table: String,
        /// The member; empty when it is the whole table.
        member: String,
        /// What is wrong with it.
        problem: StructOpsProblem,
    },
    /// A tunable whose declaration is not usable.
    #[error("knob `{knob}`: {problem}")]
    Knob {
        /// The variable's name.
        knob: String,
        /// What is wrong with it.
        problem: KnobProblem,
    },
    /// A program that [`Object::set_autoload`](crate::Object::set_autoload) does not find.
    #[error("no program `{name}`")]
    NoSuchProgram {
        /// What was asked for.
        name: String,
        /// What there is.
        programs: Vec<String>,
    },
    /// The target has no such type or field.
    #[error("the target kernel {target} has no `{name}`")]
    NoSuchType {
        /// The kernel's name.
        target: String,
        /// `type` or `type.field`.
        name: String,
    },
}

impl Advice for LoadError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::NotBpf(_) => Some("`runslice build` makes one of a policy in C".to_owned()),
            Self::NoSuchProgram { programs, .. } => {
                Some(format!("the object has {}", programs.join(", ")))
            }
            Self::Map { problem, .. } => problem.advice(),
            Self::StructOps { problem, .. } => problem.advice(),
            _ => None,
        }
    }
}

/// Problem of a map declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapProblem {
    /// `SEC("maps")`, which libbpf 1.0 dropped as well.
    #[error("legacy declaration")]
    Legacy,
    /// The object has no usable type information for it.
    #[error("no BTF declaration")]
    NoType,
    /// Unknown member of the declaration.
    #[error("unknown attribute `{0}`")]
    UnknownAttribute(String),
    /// A member whose type is not what the attribute wants.
    #[error("attribute `{0}` has an unexpected type")]
    BadAttribute(String),
    /// An attribute is there twice, or two attributes contradict each other.
    #[error("attribute `{0}` is given twice with different values")]
    Contradiction(String),
    /// A kind that the object machine does not implement.
    #[error("map type {0} is not supported")]
    UnsupportedKind(u32),
    /// Globals for an arena, but no arena.
    #[error("the object has arena variables but no map of type BPF_MAP_TYPE_ARENA")]
    NoArena,
    /// Map in map in map.
    #[error("maps nested more than one level deep")]
    Nesting,
    /// A map of maps without inner definition.
    #[error("a map of maps needs a `values` attribute")]
    NoInner,
    /// An initial value that is no map.
    #[error("an initial value is not a map, or lies outside `values`")]
    BadInitialValue,
    /// More timers, locks or kernel pointers than a kernel accepts.
    #[error("the value type has too many timers, locks or kernel pointers")]
    TooManyFields,
    /// A size that does not fit.
    #[error("a size or count does not fit 32 bits")]
    TooLarge,
}

impl Advice for MapProblem {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Legacy => "use SEC(\".maps\") with BTF types",
            Self::NoType => "compile with -g",
            Self::NoArena => "link it with the object that declares one (`bpftool gen object`)",
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

/// Problem of a `struct_ops` table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StructOpsProblem {
    /// No BTF for the variable, or it is no structure, or it does not fit its section.
    #[error("no usable BTF declaration")]
    NoType,
    /// The kernel has no such type.
    #[error("the target kernel has no type `{0}`")]
    UnknownType(String),
    /// The object sets a member that the kernel lacks.
    #[error("it is set, but the target kernel has no such member")]
    AbsentMember,
    /// The kernel's member has another size or kind.
    #[error("the target kernel declares it with another type")]
    OtherType,
    /// A pointer that is not a program of the object.
    #[error("it does not point to a program of a struct_ops section")]
    NotAProgram,
}

impl Advice for StructOpsProblem {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::NoType => "compile with -g",
            Self::UnknownType(_) => "use a newer kernel (`--kernel`)",
            Self::AbsentMember => "leave it unset or use a newer kernel (`--kernel`)",
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

/// Problem of a tunable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KnobProblem {
    /// Not an integer or bool of at most 8 bytes.
    #[error("a knob is an integer or a bool")]
    NotScalar,
    /// `min:`, `max:` or `kernel:` is not a decimal number.
    #[error("the tag `{0}` is not a decimal number")]
    BadNumber(String),
    /// The bounds exclude the object's own value, that for kernels, or each other.
    #[error("its value {value} lies outside {min}..={max}")]
    DefaultOutOfRange {
        /// Value in the object, or that for kernels.
        value: i64,
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
}

impl Advice for KnobProblem {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// Something that the object wants from the kernel and the target lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingExtern {
    /// Name in the object, flavour included.
    pub name: String,
    /// Kind of the external.
    pub kind: ExternKind,
    /// The object can do without it (`__weak`).
    pub weak: bool,
    /// Normal form of the prototype that the object declares; empty for variables and settings.
    pub wanted: String,
    /// Prototype or type that the target has under that name.
    pub found: Option<String>,
    /// The functions of the object that refer to it.
    pub users: Vec<String>,
}

/// Kind of the missing thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternKind {
    /// A kernel function.
    Function,
    /// A kernel variable.
    Variable,
    /// A kernel configuration value.
    Kconfig,
}

impl fmt::Display for MissingExtern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = match self.kind {
            ExternKind::Function => "function",
            ExternKind::Variable => "variable",
            ExternKind::Kconfig => "configuration value",
        };
        write!(f, "{noun} `{}`", self.name)?;
        if !self.wanted.is_empty() {
            write!(f, " as `{}`", self.wanted)?;
        }
        if let Some(found) = &self.found {
            write!(f, " (it has `{found}`)")?;
        }
        if !self.users.is_empty() {
            write!(f, ", used by {}", self.users.join(", "))?;
        }
        Ok(())
    }
}

fn of_member(member: &str) -> String {
    if member.is_empty() {
        String::new()
    } else {
        format!(", member `{member}`")
    }
}

fn list(missing: &[MissingExtern]) -> String {
    missing
        .iter()
        .map(|missing| format!("\n  {missing}"))
        .collect()
}
