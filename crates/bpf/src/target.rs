//! The kernel that an object is linked against.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::LoadError;
use crate::btf::{Btf, BtfKind, MAX_DEPTH, Name, Steps, TypeId, essential};
use crate::object::{Elf, ObjectLimits};

/// Members that the search for one field looks at; the largest kernel structures have hundreds.
const MAX_MEMBERS: u32 = 1 << 20;

/// A kernel: its types, functions and variables, its version and configuration.
///
/// Everything that an object may ask about comes from here, and nothing from the machine on which
/// this process runs.
///
/// A copy shares the types.
#[derive(Clone, Debug)]
pub struct Target {
    name: String,
    pub(crate) btf: Arc<Btf>,
    /// What `btf` was read from.
    bytes: Arc<[u8]>,
    names: Arc<Names>,
    kconfig: BTreeMap<String, Kconfig>,
    denied: Vec<Denied>,
}

/// Functions that no callback of a structure may call.
#[derive(Clone, Copy, Debug)]
struct Denied {
    structure: &'static str,
    functions: &'static [&'static str],
}

/// Where names stand: no name is copied.
#[derive(Debug)]
struct Names {
    /// Types with a name, by the hash of the essential name and by their ids.
    types: Vec<(u32, TypeId)>,
    /// Enumerators by the hash of their name, in the order in which they were declared.
    enumerators: Vec<(u32, u32, (Name, i64))>,
}

impl Names {
    fn of(btf: &Btf) -> Self {
        let mut types = Vec::new();
        let mut enumerators = Vec::new();
        for (id, ty) in btf.iter() {
            let name = btf.name(id);
            if !name.is_empty() {
                types.push((hash(essential(name)), id));
            }
            if let BtfKind::Enum(list) = &ty.kind {
                for value in &list.values {
                    let number = enumerators.len() as u32;
                    enumerators.push((hash(btf.text(value.0)), number, *value));
                }
            }
        }
        types.sort_unstable();
        enumerators.sort_unstable_by_key(|&(hash, number, _)| (hash, number));
        Self { types, enumerators }
    }
}

/// FNV-1a with 32 bits; whoever finds something by it compares the names.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |state, byte| {
        (state ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The entries with this hash.
fn with_hash<T>(sorted: &[T], hash: u32, hash_of: impl Fn(&T) -> u32) -> &[T] {
    let begin = sorted.partition_point(|entry| hash_of(entry) < hash);
    let rest = &sorted[begin..];
    let same = rest.iter().take_while(|&entry| hash_of(entry) == hash);
    &rest[..same.count()]
}

/// A value of the kernel's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kconfig {
    /// `y` is 1 or true; `n` is 0 or false.
    Bool(bool),
    /// Built as a module.
    Module,
    /// A number.
    Int(i64),
    /// Text, without quotes.
    Text(String),
}

/// Where a field lies in a kernel structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetField {
    /// Bytes from the start of the structure.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

impl Target {
    /// A kernel called `name` of `version` (major, minor, patch), whose types are in `types`: raw
    /// BTF such as `/sys/kernel/btf/vmlinux`, or an object that clang compiled with
    /// `-target bpf -g` from a C header.
    ///
    /// `LINUX_KERNEL_VERSION` is set from `version`.
    ///
    /// # Errors
    /// [`LoadError`] if `types` is neither.
    pub fn new(name: &str, version: (u8, u8, u8), types: &[u8]) -> Result<Self, LoadError> {
        let bytes: Arc<[u8]> = if types.starts_with(b"\x7fELF") {
            let elf = Elf::parse(types, &ObjectLimits::default())?;
            let section = elf
                .section(".BTF")
                .ok_or(LoadError::NotBpf("it has no types"))?;
            Arc::from(&*section.1.bytes)
        } else {
            Arc::from(types)
        };
        let btf = Btf::parse(&bytes)?;
        let names = Arc::new(Names::of(&btf));
        let (major, minor, patch) = version;
        // Source: kernel 6.18, Makefile, `KERNEL_VERSION(a, b, c)`.
        let code = i64::from(major) << 16 | i64::from(minor) << 8 | i64::from(patch);
        let kconfig = BTreeMap::from([("LINUX_KERNEL_VERSION".to_owned(), Kconfig::Int(code))]);
        Ok(Self {
            name: name.to_owned(),
            btf: Arc::new(btf),
            bytes,
            names,
            kconfig,
            denied: Vec::new(),
        })
    }

    /// The same kernel, where callbacks of `structure` may not call these `functions`.
    #[must_use]
    pub fn with_denied(
        mut self,
        structure: &'static str,
        functions: &'static [&'static str],
    ) -> Self {
        self.denied.push(Denied {
            structure,
            functions,
        });
        self
    }

    /// Why callbacks of `structure` may not call `function`; `None` if they may.
    ///
    /// Source: `fetch_kfunc_meta()` in kernel/bpf/verifier.c, kernel 7.3.
    pub(crate) fn denial(&self, structure: &str, function: &str) -> Option<String> {
        let here = |denied: &&Denied| denied.structure == structure;
        let mut names = self.denied.iter().filter(here).flat_map(|it| it.functions);
        let is_denied = names.any(|name| *name == function);
        is_denied.then(|| format!("calling kernel function {function} is not allowed"))
    }

    /// The same kernel with a configuration value: `CONFIG_HZ`, for example.
    #[must_use]
    pub fn with_kconfig(mut self, name: &str, value: Kconfig) -> Self {
        self.kconfig.insert(name.to_owned(), value);
        self
    }

    /// The configuration as `/boot/config-RELEASE` tells it, a line each.
    #[must_use]
    pub fn configuration(&self) -> String {
        let lines = self.kconfig.iter().filter_map(|(name, value)| {
            let value = match value {
                _ if !name.starts_with("CONFIG_") => return None,
                Kconfig::Bool(true) => "y".to_owned(),
                Kconfig::Bool(false) => return Some(format!("# {name} is not set\n")),
                Kconfig::Module => "m".to_owned(),
                Kconfig::Int(value) => value.to_string(),
                Kconfig::Text(text) => format!("\"{text}\""),
            };
            Some(format!("{name}={value}\n"))
        });
        lines.collect()
    }

    /// The kernel's name, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The types as a loader reads them: `/sys/kernel/btf/vmlinux`. Numbers of types that programs
    /// carry are those of these bytes.
    #[must_use]
    pub fn btf(&self) -> &[u8] {
        &self.bytes
    }

    /// A kernel function's prototype in normal form; `None` if the kernel has no such function.
    ///
    /// The form is `result(argument,argument,...)` where each is one of `void`, `bool`, `u8`,
    /// `u16`, `u32`, `u64`, `s8`, `s16`, `s32`, `s64`, `ptr`, `float` and `struct` (a structure by
    /// value). Typedefs are resolved, and an enumeration is the integer of its size and sign.
    #[must_use]
    pub fn prototype(&self, function: &str) -> Option<String> {
        let id = self.function(function)?;
        self.btf.prototype(id)
    }

    /// All kernel functions with their prototypes in normal form, by name.
    pub fn functions(&self) -> impl Iterator<Item = (&str, String)> {
        let mut ids: Vec<TypeId> = self.names.types.iter().map(|&(_, id)| id).collect();
        ids.sort_by_key(|&id| (essential(self.btf.name(id)), id));
        ids.into_iter().filter_map(|id| {
            let is_function = matches!(self.btf.get(id).kind, BtfKind::Func { .. });
            let prototype = self.btf.prototype(id).filter(|_| is_function)?;
            Some((self.btf.name(id), prototype))
        })
    }

    /// The value of an enumerator, in whichever enumeration it is; unsigned 64-bit values keep
    /// their bits.
    #[must_use]
    pub fn enumerator(&self, name: &str) -> Option<i64> {
        let all = with_hash(&self.names.enumerators, hash(name), |entry| entry.0);
        let mut values = all.iter().map(|&(_, _, value)| value);
        let found = values.find(|(own, _)| self.btf.is_called(*own, name));
        found.map(|(_, value)| value)
    }

    /// Bytes of a structure, union, enumeration or typedef.
    ///
    /// # Errors
    /// [`LoadError::NoSuchType`].
    pub fn size_of(&self, name: &str) -> Result<u32, LoadError> {
        self.value_type(name)
            .and_then(|id| self.btf.size(id))
            .ok_or_else(|| self.no_such_type(name.to_owned()))
    }

    /// Where a field lies: `field("task_struct", "scx.slice")`. Members of anonymous structures
    /// are found as in C.
    ///
    /// # Errors
    /// [`LoadError::NoSuchType`], also for a bit field, which has no place of whole bytes.
    pub fn field(&self, structure: &str, path: &str) -> Result<TargetField, LoadError> {
        let absent = || self.no_such_type(format!("{structure}.{path}"));
        let mut id = self.value_type(structure).ok_or_else(absent)?;
        let mut bits = 0;
        let steps = Steps::new(MAX_MEMBERS);
        for name in path.split('.') {
            let (at, ty) = self
                .member(id, name, MAX_DEPTH, &steps)
                .ok_or_else(absent)?;
            bits += at;
            id = ty;
        }
        let size = self.btf.size(id).ok_or_else(absent)?;
        let offset = u32::try_from(bits / 8).map_err(|_| absent())?;
        Ok(TargetField { offset, size })
    }

    fn member(&self, id: TypeId, name: &str, depth: u32, steps: &Steps) -> Option<(u64, TypeId)> {
        let depth = depth.checked_sub(1)?;
        self.btf.composite(id)?.members.iter().find_map(|member| {
            steps.take()?;
            let at = u64::from(member.bit_offset);
            if self.btf.is_called(member.name, "") {
                let (inner, ty) = self.member(member.ty, name, depth, steps)?;
                return Some((at + inner, ty));
            }
            let is_it = || self.btf.is_called(member.name, name);
            (member.bits == 0 && at.is_multiple_of(8) && is_it()).then_some((at, member.ty))
        })
    }

    fn no_such_type(&self, name: String) -> LoadError {
        LoadError::NoSuchType {
            target: self.name.clone(),
            name,
        }
    }

    /// Types whose essential name is `name`, in the order of their ids.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = TypeId> {
        let all = with_hash(&self.names.types, hash(name), |entry| entry.0);
        let ids = all.iter().map(|&(_, id)| id);
        ids.filter(move |&id| essential(self.btf.name(id)) == name)
    }

    fn find(&self, name: &str, is_wanted: impl Fn(&BtfKind) -> bool) -> Option<TypeId> {
        let all = with_hash(&self.names.types, hash(essential(name)), |entry| entry.0);
        let mut ids = all.iter().map(|&(_, id)| id);
        ids.find(|&id| {
            let ty = self.btf.get(id);
            self.btf.is_called(ty.name, name) && is_wanted(&ty.kind)
        })
    }

    fn value_type(&self, name: &str) -> Option<TypeId> {
        self.find(name, |kind| {
            matches!(
                kind,
                BtfKind::Struct(_) | BtfKind::Union(_) | BtfKind::Enum(_) | BtfKind::Typedef(_)
            )
        })
    }

    /// The structure of exactly this name.
    pub(crate) fn structure(&self, name: &str) -> Option<TypeId> {
        self.find(name, |kind| matches!(kind, BtfKind::Struct(_)))
    }

    /// The function of exactly this name.
    pub(crate) fn function(&self, name: &str) -> Option<TypeId> {
        self.find(name, |kind| matches!(kind, BtfKind::Func { .. }))
    }

    /// The variable of exactly this name.
    pub(crate) fn variable(&self, name: &str) -> Option<TypeId> {
        self.find(name, |kind| matches!(kind, BtfKind::Var { .. }))
    }

    /// Whether the kernel keeps one instance of the variable for each CPU.
    pub(crate) fn is_percpu(&self, variable: TypeId) -> bool {
        // Source: kernel 6.18, include/asm-generic/percpu.h, the section of per-CPU variables.
        let sections = [".data..percpu", ".data.percpu"];
        sections.iter().any(|section| {
            self.btf
                .section_variables(section)
                .iter()
                .any(|(id, _)| *id == variable)
        })
    }

    pub(crate) fn kconfig(&self, name: &str) -> Option<&Kconfig> {
        self.kconfig.get(name)
    }
}
