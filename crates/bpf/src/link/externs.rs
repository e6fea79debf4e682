//! What the object wants from the kernel: functions, variables, configuration values.

use std::collections::{BTreeMap, BTreeSet};

use crate::btf::{Btf, BtfKind, Linkage, Steps, TypeId, essential};
use crate::core_reloc::are_compatible;
use crate::image::Variable;
use crate::object::SectionPlace;
use crate::target::Kconfig;
use crate::{ExternKind, LoadError, MissingExtern, Object, Target};

/// Steps of all comparisons of types together; a prototype takes about ten.
const MAX_STEPS: u32 = 10_000_000;

/// Every extern of an object, resolved or not.
pub(super) struct Externs {
    /// By index of the ELF symbol.
    by_symbol: BTreeMap<usize, Extern>,
    pub(super) variables: Vec<Variable>,
    pub(super) missing: Vec<MissingExtern>,
}

/// What an extern stands for.
#[derive(Clone, Debug)]
pub(super) enum Extern {
    /// A kernel function: its type in the target.
    Function(TypeId),
    /// A kernel function that the object's callbacks may not call, and why.
    Denied(TypeId, String),
    /// Index into the image's variables.
    Variable(u32),
    /// The target lacks it; why.
    Absent(String),
}

/// What an extern is, or what the target has in its place.
type Resolved = Result<Extern, Option<String>>;

impl Externs {
    pub(super) fn resolve(object: &Object, target: &Target) -> Self {
        let mut resolver = Resolver {
            object,
            target,
            declarations: declarations(&object.btf),
            kconfig: kconfig_variables(&object.btf),
            steps: Steps::new(MAX_STEPS),
            variables: Vec::new(),
            structures: super::struct_ops::structures(object),
        };
        let mut users = users(object);
        let mut by_symbol = BTreeMap::new();
        let mut missing = Vec::new();
        for (index, symbol) in object.elf.symbols.iter().enumerate() {
            if symbol.place != SectionPlace::Undefined || symbol.name.is_empty() {
                continue;
            }
            let (kind, wanted, resolved) = resolver.resolve(&symbol.name);
            let resolved = resolved.unwrap_or_else(|found| {
                let lack = MissingExtern {
                    name: symbol.name.clone(),
                    kind,
                    weak: symbol.is_weak,
                    wanted,
                    found,
                    users: users.remove(&index).unwrap_or_default(),
                };
                let reason = format!("the target kernel {} lacks the {lack}", target.name());
                missing.push(lack);
                Extern::Absent(reason)
            });
            by_symbol.insert(index, resolved);
        }
        Self {
            by_symbol,
            variables: resolver.variables,
            missing,
        }
    }

    /// Refuses what lacks something that it cannot do without.
    pub(super) fn check(&self, target: &Target) -> Result<(), LoadError> {
        let missing: Vec<_> = self
            .missing
            .iter()
            .filter(|lack| !lack.weak)
            .cloned()
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(LoadError::Missing {
            target: target.name().to_owned(),
            missing,
        })
    }

    /// The extern of an ELF symbol, `None` if the symbol is not one.
    pub(super) fn get(&self, symbol: usize) -> Option<&Extern> {
        self.by_symbol.get(&symbol)
    }
}

/// Functions and variables that the object declares and does not define.
fn declarations(btf: &Btf) -> BTreeMap<&str, TypeId> {
    btf.iter()
        .filter(|(_, ty)| {
            matches!(
                ty.kind,
                BtfKind::Func {
                    linkage: Linkage::Extern,
                    ..
                } | BtfKind::Var {
                    linkage: Linkage::Extern,
                    ..
                }
            )
        })
        .map(|(id, _)| (btf.name(id), id))
        .collect()
}

fn kconfig_variables(btf: &Btf) -> BTreeSet<TypeId> {
    btf.section_variables(".kconfig")
        .into_iter()
        .map(|(variable, _)| variable)
        .collect()
}

/// The names of the functions that refer to each symbol.
fn users(object: &Object) -> BTreeMap<usize, Vec<String>> {
    let mut users = BTreeMap::<usize, Vec<String>>::new();
    for function in &object.functions {
        let range = function.byte_range();
        let relocs = &object.section_of(function).relocs;
        let first = relocs.partition_point(|reloc| reloc.offset < range.start);
        for reloc in relocs[first..]
            .iter()
            .take_while(|reloc| reloc.offset < range.end)
        {
            let is_extern = object.elf.symbols[reloc.symbol].place == SectionPlace::Undefined;
            let names = users.entry(reloc.symbol).or_default();
            if is_extern && names.last() != Some(&function.name) {
                names.push(function.name.clone());
            }
        }
    }
    users
}

struct Resolver<'a> {
    object: &'a Object,
    target: &'a Target,
    declarations: BTreeMap<&'a str, TypeId>,
    kconfig: BTreeSet<TypeId>,
    steps: Steps,
    variables: Vec<Variable>,
    /// The types of the object's tables of callbacks.
    structures: Vec<&'a str>,
}

impl Resolver<'_> {
    /// What kind of thing the name is, what the object declares it as, and what it stands for.
    fn resolve(&mut self, name: &str) -> (ExternKind, String, Resolved) {
        let local = &self.object.btf;
        let declared = self
            .declarations
            .get(name)
            .map(|&id| (id, &local.get(id).kind));
        match declared {
            Some((id, BtfKind::Var { ty, .. })) if self.kconfig.contains(&id) => {
                (ExternKind::Kconfig, String::new(), self.kconfig(name, *ty))
            }
            Some((_, BtfKind::Var { ty, .. })) => (
                ExternKind::Variable,
                String::new(),
                self.variable(name, *ty),
            ),
            Some((id, BtfKind::Func { prototype, .. })) => {
                let wanted = local.prototype(id).unwrap_or_default();
                (
                    ExternKind::Function,
                    wanted,
                    self.function(name, *prototype),
                )
            }
            // Without type information nothing says what it is; it must be an undefined function.
            _ => (ExternKind::Function, String::new(), Err(None)),
        }
    }

    /// A kernel function is found by name and by prototype: `dsq_move___v2(a, b)` must not be bound
    /// to a kernel's older `dsq_move(a)`.
    fn function(&self, name: &str, ours: TypeId) -> Resolved {
        let target = &self.target.btf;
        let function = self.target.function(essential(name)).ok_or(None)?;
        let BtfKind::Func {
            prototype: theirs, ..
        } = target.get(function).kind
        else {
            return Err(None);
        };
        let fits = are_compatible(&self.object.btf, ours, target, theirs, &self.steps);
        if fits != Some(true) {
            return Err(target.prototype(function));
        }
        let mut tables = self.structures.iter();
        let denial = tables.find_map(|table| self.target.denial(table, essential(name)));
        Ok(match denial {
            Some(reason) => Extern::Denied(function, reason),
            None => Extern::Function(function),
        })
    }

    fn variable(&mut self, name: &str, ours: TypeId) -> Resolved {
        let local = &self.object.btf;
        let target = &self.target.btf;
        let variable = self.target.variable(essential(name)).ok_or(None)?;
        let BtfKind::Var { ty: theirs, .. } = target.get(variable).kind else {
            return Err(None);
        };
        // `extern const void name __ksym` asks for the address only.
        let is_typeless = matches!(local.stripped(ours), BtfKind::Void);
        let fits = are_compatible(local, ours, target, theirs, &self.steps);
        if !is_typeless && fits != Some(true) {
            return Err(Some(format!("{} {name}", target.word(theirs))));
        }
        let size = target.size(theirs).filter(|&size| size > 0).unwrap_or(8);
        Ok(self.add(Variable {
            name: essential(name).to_owned(),
            size,
            percpu: self.target.is_percpu(variable),
            initial: Vec::new(),
        }))
    }

    fn kconfig(&mut self, name: &str, ours: TypeId) -> Resolved {
        let value = self.target.kconfig(name).ok_or(None)?;
        let initial = encode(&self.object.btf, ours, value);
        let initial = initial.ok_or_else(|| Some(format!("{value:?}")))?;
        let size = u32::try_from(initial.len()).map_err(|_| None)?;
        Ok(self.add(Variable {
            name: name.to_owned(),
            size,
            percpu: false,
            initial,
        }))
    }

    fn add(&mut self, variable: Variable) -> Extern {
        self.variables.push(variable);
        Extern::Variable((self.variables.len() - 1) as u32)
    }
}

/// Largest text that a configuration value may fill.
const MAX_TEXT: u32 = 4096;

/// The bytes of a configuration value in a variable of the object's type; `None` if the type
/// cannot hold it.
fn encode(btf: &Btf, ty: TypeId, value: &Kconfig) -> Option<Vec<u8>> {
    match (btf.stripped(ty), value) {
        (BtfKind::Int(int), Kconfig::Bool(value)) if int.bool => Some(vec![u8::from(*value)]),
        // A `char` holds the letter of the configuration file.
        (BtfKind::Int(int), Kconfig::Bool(value)) if int.size == 1 => {
            Some(vec![if *value { b'y' } else { b'n' }])
        }
        (BtfKind::Int(int), Kconfig::Module) if int.size == 1 && !int.bool => Some(vec![b'm']),
        (BtfKind::Int(int), Kconfig::Int(value)) if !int.bool => {
            let size = usize::try_from(int.size)
                .ok()
                .filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
            let bits = 8 * int.size;
            let fits = match (int.signed, bits) {
                (_, 64) => true,
                (true, _) => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(value),
                (false, _) => (0..1i64 << bits).contains(value),
            };
            fits.then(|| value.to_le_bytes()[..size].to_vec())
        }
        // `enum libbpf_tristate`: no, yes, module.
        (BtfKind::Enum(list), Kconfig::Bool(_) | Kconfig::Module) if list.size == 4 => {
            let number = match value {
                Kconfig::Bool(value) => u32::from(*value),
                _ => 2,
            };
            Some(number.to_le_bytes().to_vec())
        }
        (BtfKind::Array { element, len }, Kconfig::Text(text)) => {
            if btf.size(*element) != Some(1) || !(1..=MAX_TEXT).contains(len) {
                return None;
            }
            let mut bytes = text.clone().into_bytes();
            // What is too long is cut, and a NUL always fits.
            bytes.truncate(*len as usize - 1);
            bytes.resize(*len as usize, 0);
            Some(bytes)
        }
        _ => None,
    }
}
