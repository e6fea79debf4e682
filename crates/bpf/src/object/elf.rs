//! The ELF container: sections, symbols, relocations, copied out and checked.

use ::object::elf::{
    self, FileHeader64, RelocationType, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_PROGBITS,
    SHT_REL, SHT_RELA, SHT_SYMTAB,
};
use ::object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use ::object::{LittleEndian, SectionIndex};

use crate::LoadError;
use crate::bytes;

/// How large an object may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLimits {
    /// Bytes of the file, and of the sections that are kept, without what the next field counts.
    pub file_bytes: u64,
    /// Bytes of variables that begin as zeros (`.bss`). They take memory only where programs
    /// write; what an instance may take has a limit of its own.
    pub zero_bytes: u64,
}

impl Default for ObjectLimits {
    /// Room for the biggest schedulers known: cake has 9 MB of zeros in its arena, layered
    /// 165,706,292 bytes of variables.
    fn default() -> Self {
        Self {
            file_bytes: 128 << 20,
            zero_bytes: 256 << 20,
        }
    }
}
const MAX_SECTIONS: usize = 4096;
const MAX_SYMBOLS: usize = 1 << 18;
/// Bytes of a name; one limit keeps the time to read many overlapping names small.
const MAX_NAME: usize = 1024;

type Sections<'a> = SectionTable<'a, FileHeader64<LittleEndian>>;
type Header = elf::SectionHeader64<LittleEndian>;

const ENDIAN: LittleEndian = LittleEndian;

/// The file's contents. Both lists keep the file's numbering.
#[derive(Clone, Debug)]
pub(crate) struct Elf {
    pub(crate) sections: Vec<Section>,
    pub(crate) symbols: Vec<Symbol>,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: SectionKind,
    /// Contents; none of `.bss`. Empty when the kind is `Ignored`.
    pub(crate) bytes: Vec<u8>,
    /// Zeros behind them.
    pub(crate) zeros: u64,
    /// Sorted by offset, one an offset.
    pub(crate) relocs: Vec<Reloc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// Instructions.
    Code,
    /// What programs or the loader read.
    Data,
    /// Debug information and the like; not kept.
    Ignored,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reloc {
    /// Byte within the section.
    pub(crate) offset: u64,
    /// Index into [`Elf::symbols`].
    pub(crate) symbol: usize,
    /// `R_BPF_*`.
    pub(crate) kind: RelocationType,
}

#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) place: SectionPlace,
    /// Offset in its section.
    pub(crate) value: u64,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) kind: SymbolKind,
    pub(crate) is_weak: bool,
    /// Visible in its own file only (`static`).
    pub(crate) is_local: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionPlace {
    /// Defined elsewhere: in the kernel.
    Undefined,
    /// Index into [`Elf::sections`].
    Section(usize),
    /// A file name or another symbol that is nowhere.
    Nowhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    Function,
    Object,
    Section,
    Other,
}

impl Elf {
    pub(crate) fn parse(file: &[u8], limits: &ObjectLimits) -> Result<Self, LoadError> {
        if file.len() as u64 > limits.file_bytes {
            return Err(LoadError::TooLarge {
                what: "bytes",
                limit: limits.file_bytes,
            });
        }
        let header = header(file)?;
        let table = header
            .sections(ENDIAN, file)
            .map_err(|_| malformed("ELF header", "unreadable section table"))?;
        if table.len() > MAX_SECTIONS {
            return Err(LoadError::TooLarge {
                what: "sections",
                limit: MAX_SECTIONS as u64,
            });
        }
        let names = header.shstrndx(ENDIAN, file).ok();
        let names = names.map_or(&[][..], |index| contents(&table, index as usize, file));
        let mut used = Used::default();
        let mut sections = Vec::with_capacity(table.len());
        for header in table.iter() {
            let name = text(names, header.sh_name(ENDIAN))
                .ok_or_else(|| malformed("ELF header", "a section has an unreadable name"))?;
            sections.push(section(name, header, file, &mut used)?);
            used.check(limits)?;
        }
        let symbols = symbols(&table, file)?;
        let mut elf = Self { sections, symbols };
        for header in table.iter() {
            elf.read_relocs(header, file)?;
        }
        Ok(elf)
    }

    /// The first section of that name.
    pub(crate) fn section(&self, name: &str) -> Option<(usize, &Section)> {
        self.sections
            .iter()
            .enumerate()
            .find(|(_, section)| section.name == name)
    }

    fn read_relocs(&mut self, header: &Header, file: &[u8]) -> Result<(), LoadError> {
        let target = header.sh_info(ENDIAN) as usize;
        let is_wanted = |section: &Section| {
            section.kind != SectionKind::Ignored && !section.name.starts_with(".BTF")
        };
        let ty = header.sh_type(ENDIAN);
        let Some(section) = self
            .sections
            .get_mut(target)
            .filter(|section| is_wanted(section))
        else {
            return Ok(());
        };
        let fault = |problem| malformed(&section.name, problem);
        if ty == SHT_RELA {
            return Err(fault("relocations with addends; the BPF machine has none"));
        }
        if ty != SHT_REL {
            return Ok(());
        }
        let list = header
            .rel(ENDIAN, file)
            .map_err(|_| fault("unreadable relocations"))?
            .map_or(&[][..], |(list, _)| list);
        for rel in list {
            let symbol = rel.r_sym(ENDIAN) as usize;
            if symbol >= self.symbols.len() {
                return Err(fault("a relocation names an absent symbol"));
            }
            let offset = rel.r_offset.get(ENDIAN);
            section.relocs.push(Reloc {
                offset,
                symbol,
                kind: rel.r_type(ENDIAN),
            });
        }
        section.relocs.sort_by_key(|reloc| reloc.offset);
        section.relocs.dedup_by_key(|reloc| reloc.offset);
        Ok(())
    }
}

impl Section {
    /// Bytes.
    pub(crate) const fn size(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add(self.zeros)
    }

    /// The relocation at a byte offset.
    pub(crate) fn reloc_at(&self, offset: u64) -> Option<&Reloc> {
        let at = self
            .relocs
            .binary_search_by_key(&offset, |reloc| reloc.offset)
            .ok()?;
        self.relocs.get(at)
    }
}

fn header(file: &[u8]) -> Result<&FileHeader64<LittleEndian>, LoadError> {
    let header = FileHeader64::<LittleEndian>::parse(file)
        .map_err(|_| LoadError::NotBpf("no 64-bit ELF file"))?;
    if !header.is_little_endian() {
        return Err(LoadError::NotBpf(
            "it is big-endian; compile for -target bpfel",
        ));
    }
    if header.e_machine(ENDIAN) != elf::EM_BPF {
        return Err(LoadError::NotBpf("it was compiled for another machine"));
    }
    Ok(header)
}

/// The bytes of a section, none if there is no such section or it lies outside the file.
fn contents<'a>(table: &Sections<'a>, index: usize, file: &'a [u8]) -> &'a [u8] {
    let header = table.section(SectionIndex(index)).ok();
    header
        .and_then(|header| header.data(ENDIAN, file).ok())
        .unwrap_or_default()
}

/// A name in a section of strings. The section's first and empty name need not be there.
fn text(strings: &[u8], offset: u32) -> Option<&str> {
    if offset == 0 {
        Some("")
    } else {
        bytes::text(strings, offset, MAX_NAME)
    }
}

fn section(
    name: &str,
    header: &Header,
    file: &[u8],
    used: &mut Used,
) -> Result<Section, LoadError> {
    let flags = header.sh_flags(ENDIAN);
    let ty = header.sh_type(ENDIAN);
    let has_contents = matches!(ty, SHT_PROGBITS | SHT_NOBITS);
    let kind = match () {
        () if has_contents && flags.contains(SHF_EXECINSTR) => SectionKind::Code,
        () if has_contents && (flags.contains(SHF_ALLOC) || name.starts_with(".BTF")) => {
            SectionKind::Data
        }
        () => SectionKind::Ignored,
    };
    let mut section = Section {
        name: name.to_owned(),
        kind,
        bytes: Vec::new(),
        zeros: 0,
        relocs: Vec::new(),
    };
    if kind == SectionKind::Ignored {
        return Ok(section);
    }
    if ty == SHT_NOBITS {
        section.zeros = header.sh_size(ENDIAN);
        used.zeros = used.zeros.saturating_add(section.zeros);
        return Ok(section);
    }
    let outside = || malformed(name, "its contents lie outside the file");
    section.bytes = header.data(ENDIAN, file).map_err(|_| outside())?.to_vec();
    used.kept = used.kept.saturating_add(section.bytes.len() as u64);
    Ok(section)
}

/// What the sections take that are kept, bytes.
#[derive(Default)]
struct Used {
    kept: u64,
    zeros: u64,
}

impl Used {
    fn check(&self, limits: &ObjectLimits) -> Result<(), LoadError> {
        let pairs = [
            (self.kept, "bytes in its sections", limits.file_bytes),
            (self.zeros, "bytes of zeroed variables", limits.zero_bytes),
        ];
        let over = pairs.into_iter().find(|(used, _, limit)| used > limit);
        over.map_or(Ok(()), |(_, what, limit)| {
            Err(LoadError::TooLarge { what, limit })
        })
    }
}

fn symbols(table: &Sections<'_>, file: &[u8]) -> Result<Vec<Symbol>, LoadError> {
    let fault = |problem| malformed(".symtab", problem);
    let list = table
        .symbols(ENDIAN, file, SHT_SYMTAB)
        .map_err(|_| fault("unreadable symbol table"))?;
    if list.len() > MAX_SYMBOLS {
        return Err(LoadError::TooLarge {
            what: "symbols",
            limit: MAX_SYMBOLS as u64,
        });
    }
    let names = contents(table, list.string_section().0, file);
    let mut symbols = Vec::with_capacity(list.len());
    for (index, symbol) in list.enumerate() {
        let name = text(names, symbol.st_name(ENDIAN))
            .ok_or_else(|| fault("a symbol has an unreadable name"))?;
        let section = list
            .symbol_section(ENDIAN, symbol, index)
            .map_err(|_| fault("a symbol lies in an absent section"))?;
        let place = match section {
            Some(SectionIndex(section)) if section < table.len() => SectionPlace::Section(section),
            Some(_) => return Err(fault("a symbol lies in an absent section")),
            None if symbol.is_undefined(ENDIAN) => SectionPlace::Undefined,
            None if symbol.is_common(ENDIAN) => {
                return Err(fault("a common symbol; compile with -fno-common"));
            }
            None => SectionPlace::Nowhere,
        };
        symbols.push(Symbol {
            name: name.to_owned(),
            place,
            value: symbol.st_value(ENDIAN),
            size: symbol.st_size(ENDIAN),
            kind: match symbol.st_type() {
                elf::STT_FUNC => SymbolKind::Function,
                elf::STT_OBJECT => SymbolKind::Object,
                elf::STT_SECTION => SymbolKind::Section,
                _ => SymbolKind::Other,
            },
            is_weak: symbol.st_bind() == elf::STB_WEAK,
            is_local: symbol.st_bind() == elf::STB_LOCAL,
        });
    }
    Ok(symbols)
}

fn malformed(section: &str, problem: &'static str) -> LoadError {
    LoadError::Malformed {
        section: section.to_owned(),
        offset: 0,
        problem,
    }
}
