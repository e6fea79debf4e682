//! What the loader hands to the machine: relocated code, maps, symbols.
//!
//! The encoding is the ISA's (RFC 9669) with these meanings fixed by the loader:
//!
//! | instruction | `src` | `imm` |
//! | --- | --- | --- |
//! | `LD_IMM64` | 0 | low half of a constant; the next slot's `imm` is the high half |
//! | `LD_IMM64` | 1 | index into [`Image::maps`]: the address of the map's handle |
//! | `LD_IMM64` | 2 | index into [`Image::maps`]; next slot's `imm`: offset into its first value |
//! | `LD_IMM64` | 3 | index into [`Image::variables`]; next slot's `imm`: offset |
//! | `LD_IMM64` | 4 | index into [`Image::functions`]: a callback's address |
//! | `CALL` | 0 | index into [`Image::imports`] |
//! | `CALL` | 1 | index into [`Image::functions`] |
//! | `CALL` | [`Insn::POISON`] | index into [`Image::poisons`]: traps when reached |

use std::sync::Arc;

/// One instruction slot of 8 bytes. `LD_IMM64` takes two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insn {
    /// Operation.
    pub code: u8,
    /// Destination register, `0..=10`.
    pub dst: u8,
    /// Source register, `0..=10`, or what the module table says.
    pub src: u8,
    /// Signed offset.
    pub off: i16,
    /// Signed immediate.
    pub imm: i32,
}

impl Insn {
    /// The `src` of a call that no kernel of the target version could execute: a failed CO-RE
    /// relocation, or a call to an absent weak function. Normal on branches never taken.
    pub const POISON: u8 = 15;
}

/// A loaded object: immutable, shared by any number of instances.
#[derive(Clone, Debug)]
pub struct Image {
    /// All functions, one after another. Checked by the loader: registers in range, no reserved
    /// field set, every jump lands on an instruction of its own function, every function ends in
    /// an exit or a jump.
    pub code: Vec<Insn>,
    /// Every function.
    pub functions: Vec<Function>,
    /// The functions that a kernel could call: one for each program of the object.
    pub programs: Vec<EntryPoint>,
    /// Maps, the object's data sections among them.
    pub maps: Vec<MapDef>,
    /// Host functions that are called by at least one live instruction.
    pub imports: Vec<Import>,
    /// Kernel variables.
    pub variables: Vec<Variable>,
    /// Why each poisoned instruction cannot run.
    pub poisons: Vec<String>,
    /// `struct_ops` tables.
    pub struct_ops: Vec<StructOps>,
    /// Global variables of the object.
    pub symbols: Vec<Symbol>,
    /// Tunables.
    pub knobs: Vec<Knob>,
    /// The object's own types that its programs ask the kernel about by number, to allocate them.
    pub types: Vec<OwnType>,
    /// Which source line each instruction came from; sorted by instruction.
    pub lines: Vec<Line>,
    /// Which fields of the kernel's structures its programs may read, as far as CO-RE says it. A
    /// program that knows a field's place by other means is not in it. Empty: nothing is known, and
    /// they may read all.
    pub reads: Vec<FieldRead>,
    /// The licence string of the object.
    pub license: String,
}

/// Bytes of a kernel's structure that programs may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRead {
    /// The structure that the program has a pointer to, without its flavour.
    pub structure: String,
    /// The first byte, in the target's structure.
    pub at: u32,
    /// How many; `u32::MAX` if no end is known.
    pub len: u32,
}

/// A function: `code[start..start + len]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Symbol name.
    pub name: String,
    /// Index of the first instruction slot.
    pub start: u32,
    /// Slots.
    pub len: u32,
}

/// An entry into the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// Symbol name.
    pub name: String,
    /// ELF section name, for example `struct_ops/fifo_enqueue` or `syscall`.
    pub section: String,
    /// Index into [`Image::functions`].
    pub function: u32,
    /// False for sections that begin with `?`: a kernel loads those only when asked.
    pub autoload: bool,
    /// Type that its one argument points to, if the object says it: the context of a
    /// `SEC("syscall")` program.
    pub context: Option<Arc<Type>>,
}

/// A map as the object declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDef {
    /// Symbol name; a data section's map is called by its section (`.rodata`, `.data.knobs`).
    pub name: String,
    /// Kind of the map.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value, unpadded; of an arena those of its variables.
    pub value_size: u32,
    /// Type of a value, as far as values inside it can be written as text; `None` of a data
    /// section, whose variables are [`Image::symbols`].
    pub value: Option<Arc<Type>>,
    /// Capacity.
    pub max_entries: u32,
    /// `BPF_F_*` flags.
    pub flags: u32,
    /// Initial bytes: of a data section's single value, or of an arena from its first byte on.
    /// What is not given here is zero.
    pub initial: Option<Arc<[u8]>>,
    /// No program may write it: `.rodata`.
    pub frozen: bool,
    /// Offset in the value of a `struct bpf_timer`, if there is one.
    pub timer_at: Option<u32>,
    /// Offset in the value of a `struct bpf_spin_lock`, if there is one.
    pub lock_at: Option<u32>,
    /// Offsets in the value of pointers to kernel objects (`__kptr`).
    pub kptrs_at: Vec<u32>,
    /// Map in map: the inner map's definition (index into [`Image::maps`]) and the initial
    /// entries (key, index into [`Image::maps`]).
    pub inner: Option<(u32, Vec<(u32, u32)>)>,
}

impl MapDef {
    /// `len` bytes of a data section's value from `at` on; `None` beyond its end, and for a map
    /// that the object declares without a value.
    #[must_use]
    pub fn initial_bytes(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        let given = self.initial.as_ref()?;
        let end = at.checked_add(len)?;
        if end > given.len().max(self.value_size as usize) {
            return None;
        }
        let known = given.get(at..end.min(given.len())).unwrap_or_default();
        let mut bytes = known.to_vec();
        bytes.resize(len, 0);
        Some(bytes)
    }
}

/// Kinds of maps (`enum bpf_map_type`, kernel 6.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "the kernel's names")]
pub enum MapKind {
    Hash = 1,
    Array = 2,
    PerfEventArray = 4,
    PercpuHash = 5,
    PercpuArray = 6,
    LruHash = 9,
    ArrayOfMaps = 12,
    HashOfMaps = 13,
    Queue = 22,
    Stack = 23,
    Ringbuf = 27,
    TaskStorage = 29,
    UserRingbuf = 31,
    CgrpStorage = 32,
    Arena = 33,
}

/// A function of the host that the object calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The kernel's name, without the object's `___flavour`: `scx_bpf_dsq_insert`,
    /// `bpf_map_lookup_elem`.
    pub name: String,
    /// Prototype in the kernel of the target version, in the loader's normal form, for example
    /// `void(ptr,u64,u64,u64)`; empty for helpers, whose prototypes are fixed by their number.
    pub prototype: String,
    /// The helper's number, `None` for a kernel function.
    pub helper: Option<u32>,
    /// The functions of the object that call it, for error messages.
    pub callers: Vec<String>,
}

/// A kernel variable (`extern ... __ksym`, or a `__kconfig` value).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Bytes; 0 when the target kernel lacks it, which makes its address 0.
    pub size: u32,
    /// One instance for each CPU.
    pub percpu: bool,
    /// Initial bytes (kconfig values); zero when empty.
    pub initial: Vec<u8>,
}

impl Image {
    /// Whether the object has an arena.
    #[must_use]
    pub fn has_arena(&self) -> bool {
        self.maps.iter().any(|map| map.kind == MapKind::Arena)
    }
}

/// A `struct_ops` table: the object's `sched_ext_ops`, for example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructOps {
    /// The variable's name.
    pub name: String,
    /// The kernel type's name.
    pub type_name: String,
    /// False for sections that begin with `?`: a kernel registers those only when asked.
    pub autoload: bool,
    /// Members that are not zero, by name.
    pub members: Vec<(String, MemberValue)>,
    /// Numbers of the type that the kernel has too, set or not.
    pub numbers: Vec<(String, Scalar)>,
}

/// A member's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberValue {
    /// A callback: index into [`Image::programs`].
    Program(u32),
    /// A number, zero-extended from its width.
    Int(u64),
    /// Text or another array of bytes, trailing zeros cut.
    Bytes(Vec<u8>),
}

/// A global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// The data section's map: index into [`Image::maps`].
    pub map: u32,
    /// Offset in the section.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// The type, as far as a value can be written as text.
    pub scalar: Option<Scalar>,
    /// The type, as far as values inside it can be written as text.
    pub ty: Option<Arc<Type>>,
}

/// A type in which values can be found by a path such as `.weights[3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number or truth value.
    Scalar(Scalar),
    /// So many elements, each `stride` bytes.
    Array {
        /// Type of an element.
        element: Arc<Self>,
        /// Elements.
        len: u32,
        /// Bytes from one element to the next.
        stride: u32,
    },
    /// Fields of a structure or union, in the order of their declaration; without bit fields,
    /// pointers and floating point.
    Struct {
        /// Bytes.
        size: u32,
        /// The fields; those of anonymous members among them.
        fields: Vec<TypeField>,
    },
}

/// A field of a [`Type::Struct`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeField {
    /// Its name.
    pub name: String,
    /// Bytes from the structure's start.
    pub offset: u32,
    /// Its type.
    pub ty: Arc<Type>,
}

/// A type whose values can be written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Unsigned integer of so many bytes.
    Unsigned(u8),
    /// Signed integer of so many bytes.
    Signed(u8),
    /// `bool`.
    Bool,
}

/// A type of the object's that programs may allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnType {
    /// Number of the BTF with its types: 0 for that of the object that the image was made of.
    pub source: u32,
    /// Its number in the object's types.
    pub id: u32,
    /// Bytes.
    pub size: u32,
    /// Offsets of pointers to kernel objects and to allocated objects (`__kptr`).
    pub kptrs_at: Vec<u32>,
}

/// A tunable of a policy: a global in the section `.data.knobs` with declaration tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its name; also the symbol's.
    pub name: String,
    /// Index into [`Image::symbols`].
    pub symbol: u32,
    /// Unit as the tag says: `ns`, `ms`, `levels`, `bool`.
    pub unit: String,
    /// Its purpose, one line.
    pub doc: String,
    /// Value in the object.
    pub default: i64,
    /// Value that a kernel's loader sets in its place, if that is another one.
    pub on_kernel: Option<i64>,
    /// Whether the policy reads it when it is loaded, and never again.
    pub at_load: bool,
    /// Least value allowed.
    pub min: i64,
    /// Greatest value allowed.
    pub max: i64,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Index of the first instruction slot that it covers.
    pub insn: u32,
    /// File, as the compiler saw it.
    pub file: Arc<str>,
    /// Line number, from 1.
    pub line: u32,
}
