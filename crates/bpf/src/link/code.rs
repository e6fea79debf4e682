//! Instructions: symbols become indices, and CO-RE adapts the rest to the target.

use std::collections::BTreeMap;

use super::code_sections;
use super::data::Data;
use super::externs::{Extern, Externs};
use ::object::elf::{R_BPF_64_32, R_BPF_64_64};

use crate::core_reloc::{Relocator, apply};
use crate::helper_names::helper_name;
use crate::image::{FieldRead, Import, Insn};
use crate::isa::{CALL, CALL_LOCAL, LD_IMM64, SLOT, ld_imm64};
use crate::object::{Function, Reloc, SectionPlace};
use crate::verify::Violation;
use crate::{LoadError, Object, Target};

/// What the address of a kernel function looks like to a program, which can only compare it with
/// zero. Source: kernel 6.18, `arch/x86/include/asm/page_64_types.h`, where kernel text begins.
pub(crate) const KERNEL_TEXT: u64 = 0xffff_ffff_8100_0000;

/// The relocated instructions, and the tables that they refer to.
pub(super) struct Code {
    pub(super) insns: Vec<Insn>,
    pub(super) imports: Vec<Import>,
    pub(super) poisons: Vec<String>,
    pub(super) reads: Vec<FieldRead>,
}

pub(super) fn link(
    object: &Object,
    target: &Target,
    data: &Data,
    externs: &Externs,
) -> Result<Code, LoadError> {
    let mut linker = Linker {
        object,
        target,
        data,
        externs,
        import_indices: BTreeMap::new(),
        poison_indices: BTreeMap::new(),
        code: Code {
            insns: Vec::new(),
            imports: Vec::new(),
            poisons: Vec::new(),
            reads: Vec::new(),
        },
    };
    let mut answers = linker.answers();
    for (index, function) in object.functions.iter().enumerate() {
        let mut insns = linker.function(function)?;
        for (at, answer) in answers.remove(&index).unwrap_or_default() {
            let applied = answer.and_then(|answer| apply(&mut insns, at, answer));
            applied.unwrap_or_else(|reason| linker.poison(&mut insns, at, reason));
        }
        linker.code.insns.append(&mut insns);
    }
    Ok(linker.code)
}

/// By function: instruction slots and what CO-RE says of them.
type Answers = BTreeMap<usize, Vec<(usize, Result<crate::core_reloc::Answer, String>)>>;

struct Linker<'a> {
    object: &'a Object,
    target: &'a Target,
    data: &'a Data,
    externs: &'a Externs,
    /// Imports by name; kernel functions and helpers never share one.
    import_indices: BTreeMap<String, usize>,
    poison_indices: BTreeMap<String, i32>,
    code: Code,
}

impl<'a> Linker<'a> {
    fn answers(&mut self) -> Answers {
        let sections = code_sections(self.object);
        let mut relocator = Relocator::new(&self.object.btf, self.target);
        let mut answers = Answers::new();
        for reloc in &self.object.ext.relocs {
            let name = self.object.btf.text_at(reloc.section);
            let slot = reloc.offset as usize / SLOT;
            let place = name
                .and_then(|name| sections.get(name))
                .and_then(|&section| self.object.function_at(section, slot));
            let Some(function) = place else { continue };
            let within = slot - self.object.functions[function].start;
            let answer = relocator.answer(reloc);
            let read = answer.as_ref().ok();
            let read = read.and_then(|answer| relocator.reads(reloc, answer));
            self.code.reads.extend(read);
            answers.entry(function).or_default().push((within, answer));
        }
        answers
    }

    fn function(&mut self, function: &'a Function) -> Result<Vec<Insn>, LoadError> {
        let section = self.object.section_of(function);
        let range = function.start * SLOT..(function.start + function.len) * SLOT;
        let (words, _) = section.bytes[range].as_chunks::<SLOT>();
        let mut insns: Vec<Insn> = words.iter().copied().map(Insn::decode).collect();
        let mut at = 0;
        while at < insns.len() {
            let offset = ((function.start + at) * SLOT) as u64;
            let site = Site {
                function,
                at,
                reloc: section.reloc_at(offset),
            };
            if !site.fits(insns[at]) {
                return Err(self.fault(&site, "a relocation of the wrong kind"));
            }
            match insns[at].code {
                LD_IMM64 => {
                    self.load(&site, &mut insns)?;
                    at += 1;
                }
                CALL => self.call(&site, &mut insns)?,
                _ => {}
            }
            at += 1;
        }
        Ok(insns)
    }

    /// Gives a 64-bit load the meaning of its symbol.
    fn load(&self, site: &Site<'_>, insns: &mut [Insn]) -> Result<(), LoadError> {
        let insn = insns[site.at];
        let Some(reloc) = site.reloc else {
            return if insn.src == ld_imm64::CONSTANT {
                Ok(())
            } else {
                Err(site.undefined(insn))
            };
        };
        let symbol = &self.object.elf.symbols[reloc.symbol];
        // The addend is in the instruction.
        let offset = symbol.value.wrapping_add_signed(insn.imm.into());
        let (src, low, high) = match symbol.place {
            SectionPlace::Undefined => self.load_extern(site, reloc, insn)?,
            SectionPlace::Section(section) => {
                let loaded = self.load_address(section, offset);
                loaded.ok_or_else(|| self.fault(site, "the address of something unknown"))?
            }
            SectionPlace::Nowhere => return Err(self.fault(site, "the address of nothing")),
        };
        insns[site.at] = Insn {
            src,
            imm: low.cast_signed(),
            ..insn
        };
        if let Some(second) = insns.get_mut(site.at + 1) {
            second.imm = high.cast_signed();
        }
        Ok(())
    }

    fn load_extern(
        &self,
        site: &Site<'_>,
        reloc: &Reloc,
        insn: Insn,
    ) -> Result<(u8, u32, u32), LoadError> {
        match self.externs.get(reloc.symbol) {
            Some(Extern::Function(id) | Extern::Denied(id, _)) => {
                let address = KERNEL_TEXT + u64::from(id.0) * 16;
                Ok((ld_imm64::CONSTANT, address as u32, (address >> 32) as u32))
            }
            Some(Extern::Variable(index)) => {
                Ok((ld_imm64::VARIABLE, *index, insn.imm.cast_unsigned()))
            }
            // Programs test for it: the address of what a kernel lacks is zero.
            Some(Extern::Absent(_)) => Ok((ld_imm64::CONSTANT, 0, 0)),
            None => Err(self.fault(site, "the address of a nameless symbol")),
        }
    }

    fn load_address(&self, section: usize, offset: u64) -> Option<(u8, u32, u32)> {
        if let Some(&map) = self.data.of_section.get(&section) {
            return Some((ld_imm64::MAP_VALUE, map, u32::try_from(offset).ok()?));
        }
        if self.data.declared_section == Some(section) {
            return Some((ld_imm64::MAP, *self.data.declared_at.get(&offset)?, 0));
        }
        let function = self.function_starting_at(section, offset)?;
        Some((ld_imm64::FUNCTION, function, 0))
    }

    fn function_starting_at(&self, section: usize, offset: u64) -> Option<u32> {
        let slot = usize::try_from(offset)
            .ok()
            .filter(|offset| offset.is_multiple_of(SLOT))?;
        let index = self.object.function_at(section, slot / SLOT)?;
        let starts = self.object.functions[index].start == slot / SLOT;
        starts.then(|| u32::try_from(index).ok())?
    }

    /// Gives a call its meaning: a function of the object, of the kernel, or a helper.
    fn call(&mut self, site: &Site<'a>, insns: &mut [Insn]) -> Result<(), LoadError> {
        let insn = insns[site.at];
        // Distances are counted in slots from the next instruction.
        let distance = i64::from(insn.imm) + 1;
        let (section, slot) = match site.reloc {
            None if insn.src == 0 => return self.call_helper(site, insns),
            None if insn.src == CALL_LOCAL => {
                let here = (site.function.start + site.at) as i64;
                (site.function.section, here + distance)
            }
            None => return Err(site.undefined(insn)),
            Some(reloc) => {
                let symbol = &self.object.elf.symbols[reloc.symbol];
                match symbol.place {
                    SectionPlace::Undefined => return self.call_extern(site, insns, reloc),
                    SectionPlace::Section(section) => {
                        let slot = i64::try_from(symbol.value / SLOT as u64).unwrap_or(i64::MAX);
                        (section, slot.saturating_add(distance))
                    }
                    SectionPlace::Nowhere => return Err(self.fault(site, "a call of nothing")),
                }
            }
        };
        let offset = u64::try_from(slot)
            .ok()
            .and_then(|slot| slot.checked_mul(SLOT as u64));
        let callee = offset.and_then(|offset| self.function_starting_at(section, offset));
        let callee = callee.ok_or_else(|| self.fault(site, "a call that reaches no function"))?;
        insns[site.at] = Insn {
            src: CALL_LOCAL,
            imm: callee.cast_signed(),
            ..insn
        };
        Ok(())
    }

    fn call_helper(&mut self, site: &Site<'_>, insns: &mut [Insn]) -> Result<(), LoadError> {
        let number = insns[site.at].imm.cast_unsigned();
        let Some(name) = helper_name(number) else {
            self.poison(
                insns,
                site.at,
                format!("no kernel has a helper number {number}"),
            );
            return Ok(());
        };
        self.import(site, insns, name, || (String::new(), Some(number)));
        Ok(())
    }

    fn call_extern(
        &mut self,
        site: &Site<'_>,
        insns: &mut [Insn],
        reloc: &Reloc,
    ) -> Result<(), LoadError> {
        match self.externs.get(reloc.symbol) {
            Some(Extern::Function(id)) => {
                let target = self.target;
                let prototype = || target.btf.prototype(*id).unwrap_or_default();
                let name = target.btf.name(*id);
                self.import(site, insns, name, || (prototype(), None));
                Ok(())
            }
            Some(Extern::Absent(reason) | Extern::Denied(_, reason)) => {
                self.poison(insns, site.at, reason.clone());
                Ok(())
            }
            _ => Err(self.fault(site, "a call of what is no function")),
        }
    }

    /// Points a call to the import called `name`; `made` gives prototype and number of a new one.
    fn import(
        &mut self,
        site: &Site<'_>,
        insns: &mut [Insn],
        name: &str,
        made: impl FnOnce() -> (String, Option<u32>),
    ) {
        let index = self.import_indices.get(name).copied().unwrap_or_else(|| {
            let (prototype, helper) = made();
            let (name, callers) = (name.to_owned(), Vec::new());
            self.import_indices
                .insert(name.clone(), self.code.imports.len());
            self.code.imports.push(Import {
                name,
                prototype,
                helper,
                callers,
            });
            self.code.imports.len() - 1
        });
        let callers = &mut self.code.imports[index].callers;
        if callers.last() != Some(&site.function.name) {
            callers.push(site.function.name.clone());
        }
        let insn = insns[site.at];
        insns[site.at] = Insn {
            src: 0,
            imm: (index as u32).cast_signed(),
            ..insn
        };
    }

    /// Makes an instruction one that ends the run when it is reached.
    fn poison(&mut self, insns: &mut [Insn], at: usize, reason: String) {
        let poisons = &mut self.code.poisons;
        let index = *self
            .poison_indices
            .entry(reason)
            .or_insert_with_key(|reason| {
                poisons.push(reason.clone());
                (poisons.len() - 1) as i32
            });
        let trap = Insn {
            code: CALL,
            src: Insn::POISON,
            imm: index,
            ..Insn::default()
        };
        let slots = if insns.get(at).is_some_and(|insn| insn.code == LD_IMM64) {
            2
        } else {
            1
        };
        insns
            .iter_mut()
            .skip(at)
            .take(slots)
            .for_each(|insn| *insn = trap);
    }

    fn fault(&self, site: &Site<'_>, problem: &'static str) -> LoadError {
        let symbol = site
            .reloc
            .map(|reloc| &self.object.elf.symbols[reloc.symbol]);
        LoadError::Relocation {
            function: site.function.name.clone(),
            insn: site.at as u32,
            symbol: symbol.map_or_else(String::new, |symbol| symbol.name.clone()),
            problem,
        }
    }
}

/// An instruction of the object.
struct Site<'a> {
    function: &'a Function,
    /// Slot within the function.
    at: usize,
    reloc: Option<&'a Reloc>,
}

impl Site<'_> {
    /// Relocations stand at 64-bit loads and calls, each with its kind.
    fn fits(&self, insn: Insn) -> bool {
        match (insn.code, self.reloc.map(|reloc| reloc.kind)) {
            (_, None) | (LD_IMM64, Some(R_BPF_64_64)) | (CALL, Some(R_BPF_64_32)) => true,
            (_, Some(_)) => false,
        }
    }

    /// A source register that means something only after linking.
    fn undefined(&self, insn: Insn) -> LoadError {
        LoadError::Structure {
            function: self.function.name.clone(),
            insn: self.at as u32,
            violation: Violation::UndefinedField {
                code: insn.code,
                field: "src",
                value: insn.src.into(),
            },
        }
    }
}
