//! A parsed object: everything that does not depend on a target kernel.

mod elf;

pub use elf::ObjectLimits;
pub(crate) use elf::{Elf, Reloc, Section, SectionKind, SectionPlace, Symbol, SymbolKind};

use std::collections::BTreeMap;

use crate::btf::{Btf, Ext};
use crate::isa::SLOT;
use crate::{LoadError, Target};

/// More than ten times what the biggest scheduler known (lavd, 28,552) has.
const MAX_INSNS: usize = 1 << 20;

/// A compiled policy, read and checked but not yet bound to a kernel.
///
/// Two steps make a program that can run: [`Object::parse`], then [`Object::link`].
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) elf: Elf,
    pub(crate) btf: Btf,
    pub(crate) ext: Ext,
    /// In the order of sections and offsets.
    pub(crate) functions: Vec<Function>,
    pub(crate) license: String,
    /// What [`Object::set_autoload`] said, by program.
    autoload: BTreeMap<String, bool>,
}

/// A function as the object holds it.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Index into the sections.
    pub(crate) section: usize,
    /// Instruction slots before it in its section.
    pub(crate) start: usize,
    /// Instruction slots.
    pub(crate) len: usize,
    /// The kernel may call it: it is global and in a section of its own kind, not in `.text`.
    pub(crate) is_program: bool,
}

impl Function {
    /// Where the function lies in its section, in bytes.
    pub(crate) fn byte_range(&self) -> std::ops::Range<u64> {
        (self.start * SLOT) as u64..((self.start + self.len) * SLOT) as u64
    }
}

impl Object {
    /// Reads an object file.
    ///
    /// The bytes may be anything; only what clang or libbpf's static linker writes is accepted.
    ///
    /// # Errors
    /// [`LoadError`] says which part of the file is not as it should be.
    pub fn parse(file: &[u8]) -> Result<Self, LoadError> {
        Self::parse_within(file, &ObjectLimits::default())
    }

    /// Parses an object within `limits`.
    ///
    /// # Errors
    /// The errors of [`Object::parse`].
    pub fn parse_within(file: &[u8], limits: &ObjectLimits) -> Result<Self, LoadError> {
        let elf = Elf::parse(file, limits)?;
        let btf = match elf.section(".BTF") {
            Some((_, section)) => Btf::parse(&section.bytes)?,
            None => Btf::empty(),
        };
        let ext = match elf.section(".BTF.ext") {
            Some((_, section)) => Ext::parse(&section.bytes, &btf)?,
            None => Ext::default(),
        };
        let functions = functions(&elf)?;
        let license = text_in(&elf, "license").unwrap_or_default();
        Ok(Self {
            elf,
            btf,
            ext,
            functions,
            license,
            autoload: BTreeMap::new(),
        })
    }

    /// The text in the ELF section of this name, up to its first zero byte; `None` if the object
    /// has no such section. What is no UTF-8 is replaced.
    #[must_use]
    pub fn text(&self, section: &str) -> Option<String> {
        text_in(&self.elf, section)
    }

    /// The programs, as (name, ELF section, whether a kernel loads it by itself).
    pub fn programs(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        self.functions
            .iter()
            .filter(|function| function.is_program)
            .map(|function| {
                (
                    &*function.name,
                    &*self.section_of(function).name,
                    self.is_autoloaded(function),
                )
            })
    }

    /// Names of the `struct_ops` tables, in the object's order.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        let sections = &self.elf.sections;
        let is_table = |section: usize| {
            let name = sections[section].name.trim_start_matches('?');
            name.starts_with(".struct_ops")
        };
        let tables = self.elf.symbols.iter().filter(|symbol| {
            symbol.kind == SymbolKind::Object
                && matches!(symbol.place, SectionPlace::Section(section) if is_table(section))
        });
        tables.map(|symbol| symbol.name.clone()).collect()
    }

    /// Read-only variables named like an enumerator of `target` with two leading underscores
    /// (`const volatile u64 __SCX_DSQ_LOCAL __weak`), and the enumerators' values.
    ///
    /// Schedulers that must run on kernels with other values read these variables, and their
    /// loaders fill them one by one; the name alone says what belongs there.
    pub fn constants<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = (&'a str, i64)> {
        let is_constant = |symbol: &&Symbol| {
            let SectionPlace::Section(section) = symbol.place else {
                return false;
            };
            let section = &self.elf.sections[section].name;
            symbol.is_weak && symbol.size == 8 && section.starts_with(".rodata")
        };
        let symbols = self.elf.symbols.iter().filter(is_constant);
        symbols.filter_map(|symbol| {
            let enumerator = symbol.name.strip_prefix("__")?;
            Some((&*symbol.name, target.enumerator(enumerator)?))
        })
    }

    /// Says whether a program is loaded; by default those are whose section has no leading `?`.
    ///
    /// # Errors
    /// [`LoadError::NoSuchProgram`] lists the programs.
    pub fn set_autoload(&mut self, program: &str, load: bool) -> Result<(), LoadError> {
        if !self.programs().any(|(name, _, _)| name == program) {
            let programs = self
                .programs()
                .map(|(name, _, _)| name.to_owned())
                .collect();
            return Err(LoadError::NoSuchProgram {
                name: program.to_owned(),
                programs,
            });
        }
        self.autoload.insert(program.to_owned(), load);
        Ok(())
    }

    pub(crate) fn is_autoloaded(&self, function: &Function) -> bool {
        let by_section = || !self.section_of(function).name.starts_with('?');
        self.autoload
            .get(&function.name)
            .copied()
            .unwrap_or_else(by_section)
    }

    pub(crate) fn section_of(&self, function: &Function) -> &Section {
        &self.elf.sections[function.section]
    }

    /// The function that holds an instruction slot of a section: its index.
    pub(crate) fn function_at(&self, section: usize, slot: usize) -> Option<usize> {
        let after = self
            .functions
            .partition_point(|function| (function.section, function.start) <= (section, slot));
        let index = after.checked_sub(1)?;
        let function = &self.functions[index];
        let holds = function.section == section && slot - function.start < function.len;
        holds.then_some(index)
    }
}

fn functions(elf: &Elf) -> Result<Vec<Function>, LoadError> {
    check_code_sections(elf)?;
    let mut functions = Vec::new();
    for symbol in &elf.symbols {
        let SectionPlace::Section(section) = symbol.place else {
            continue;
        };
        let is_code = elf.sections[section].kind == SectionKind::Code;
        if is_code && symbol.kind == SymbolKind::Function {
            functions.push(function(elf, symbol, section)?);
        }
    }
    functions.sort_by_key(|function| (function.section, function.start));
    for pair in functions.windows(2) {
        if pair[0].section == pair[1].section && pair[0].start + pair[0].len > pair[1].start {
            let section = &elf.sections[pair[1].section].name;
            return Err(malformed(
                section,
                pair[1].start * SLOT,
                "functions overlap",
            ));
        }
    }
    Ok(functions)
}

fn check_code_sections(elf: &Elf) -> Result<(), LoadError> {
    let mut slots = 0;
    for section in elf
        .sections
        .iter()
        .filter(|section| section.kind == SectionKind::Code)
    {
        if !section.bytes.len().is_multiple_of(SLOT) {
            let problem = "the code does not consist of instructions of 8 bytes";
            return Err(malformed(&section.name, section.bytes.len(), problem));
        }
        slots += section.bytes.len() / SLOT;
    }
    if slots > MAX_INSNS {
        return Err(LoadError::TooLarge {
            what: "instructions",
            limit: MAX_INSNS as u64,
        });
    }
    Ok(())
}

fn function(elf: &Elf, symbol: &Symbol, section: usize) -> Result<Function, LoadError> {
    let Section { name, bytes, .. } = &elf.sections[section];
    let size = SLOT as u64;
    let is_inside = symbol
        .value
        .checked_add(symbol.size)
        .is_some_and(|end| end <= bytes.len() as u64);
    let is_whole = symbol.value.is_multiple_of(size) && symbol.size.is_multiple_of(size);
    if !is_inside || !is_whole || symbol.size == 0 {
        let offset = usize::try_from(symbol.value).unwrap_or(usize::MAX);
        return Err(malformed(
            name,
            offset,
            "a function is empty, split or outside the section",
        ));
    }
    Ok(Function {
        name: symbol.name.clone(),
        section,
        start: (symbol.value / size) as usize,
        len: (symbol.size / size) as usize,
        is_program: name != ".text" && !symbol.is_local,
    })
}

fn malformed(section: &str, offset: usize, problem: &'static str) -> LoadError {
    LoadError::Malformed {
        section: section.to_owned(),
        offset: offset as u64,
        problem,
    }
}

/// The text in a section, as [`Object::text`] gives it.
fn text_in(elf: &Elf, section: &str) -> Option<String> {
    let (_, section) = elf.section(section)?;
    let text = section.bytes.split(|&byte| byte == 0).next();
    Some(String::from_utf8_lossy(text.unwrap_or_default()).into_owned())
}
