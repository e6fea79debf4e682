//! Several objects in one machine, as a kernel has one BPF for all of them.
//!
//! An object that is joined keeps its code and its maps; kernel variables and functions that both
//! use are there once. Arenas of all objects lie in one window, whose pages are given out to
//! whichever asks, up to the sum of their sizes: pointers of one object into its arena are no other
//! object's.

use crate::Image;
use crate::image::{FieldRead, Import, Insn, Line, MemberValue, Variable};
use crate::isa::{CALL, LD_IMM64};

/// Where the parts of a joined object begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The first of its [`Image::functions`].
    pub function: u32,
    /// The first of its [`Image::maps`].
    pub map: u32,
}

/// What indices of a joined object become.
struct Places {
    at: Joined,
    program: u32,
    poison: u32,
    /// By the object's own index.
    imports: Vec<u32>,
    variables: Vec<u32>,
}

impl Image {
    /// Adds the object `other`, bound to the same kernel, behind what there is. Names of its
    /// functions, programs, maps, tables and variables get `prefix`, so that each name is there
    /// once. Says where its parts are.
    ///
    /// Types that it allocates ([`Image::types`]) are left out: its programs know them by numbers
    /// that may be those of others. Its tunables are left out, too: they are set by now.
    pub fn join(&mut self, other: &Self, prefix: &str) -> Joined {
        let places = Places {
            at: Joined {
                function: self.functions.len() as u32,
                map: self.maps.len() as u32,
            },
            program: self.programs.len() as u32,
            poison: self.poisons.len() as u32,
            imports: other.imports.iter().map(|it| self.add_import(it)).collect(),
            variables: other
                .variables
                .iter()
                .map(|it| self.add_variable(it))
                .collect(),
        };
        let insns = self.code.len() as u32;
        self.add_code(other, &places);
        self.poisons.extend(other.poisons.iter().cloned());
        self.lines.extend(other.lines.iter().map(|line| Line {
            insn: line.insn + insns,
            ..line.clone()
        }));
        self.add_names(other, &places, (prefix, insns));
        self.add_reads(&other.reads);
        places.at
    }

    fn add_import(&mut self, import: &Import) -> u32 {
        let same = |known: &Import| {
            let of = |it: &Import| (it.name.clone(), it.prototype.clone(), it.helper);
            of(known) == of(import)
        };
        if let Some(at) = self.imports.iter().position(same) {
            let callers = &mut self.imports[at].callers;
            callers.extend(import.callers.iter().cloned());
            return at as u32;
        }
        self.imports.push(import.clone());
        self.imports.len() as u32 - 1
    }

    fn add_variable(&mut self, variable: &Variable) -> u32 {
        let known = self.variables.iter().position(|it| it == variable);
        known.map_or_else(
            || {
                self.variables.push(variable.clone());
                self.variables.len() as u32 - 1
            },
            |at| at as u32,
        )
    }

    /// An object without a list may read every field, and so may one that is joined with it.
    fn add_reads(&mut self, reads: &[FieldRead]) {
        if self.reads.is_empty() || reads.is_empty() {
            self.reads.clear();
        } else {
            self.reads.extend(reads.iter().cloned());
        }
    }

    fn add_code(&mut self, other: &Self, places: &Places) {
        let mut is_second = false;
        for insn in &other.code {
            // The second half of a wide load is no instruction.
            let insn = if is_second {
                *insn
            } else {
                places.moved(*insn)
            };
            is_second = !is_second && insn.code == LD_IMM64;
            self.code.push(insn);
        }
    }

    /// All that has a name, and what refers to it.
    fn add_names(&mut self, other: &Self, places: &Places, (prefix, insns): (&str, u32)) {
        let named = |name: &str| format!("{prefix}{name}");
        for function in &other.functions {
            let mut function = function.clone();
            (function.name, function.start) = (named(&function.name), function.start + insns);
            self.functions.push(function);
        }
        for program in &other.programs {
            let mut program = program.clone();
            program.name = named(&program.name);
            program.function += places.at.function;
            self.programs.push(program);
        }
        for map in &other.maps {
            let mut map = map.clone();
            map.name = named(&map.name);
            if let Some((inner, entries)) = &mut map.inner {
                *inner += places.at.map;
                entries.iter_mut().for_each(|(_, at)| *at += places.at.map);
            }
            self.maps.push(map);
        }
        for symbol in &other.symbols {
            let mut symbol = symbol.clone();
            (symbol.name, symbol.map) = (named(&symbol.name), symbol.map + places.at.map);
            self.symbols.push(symbol);
        }
        for table in &other.struct_ops {
            let mut table = table.clone();
            table.name = named(&table.name);
            for (_, value) in &mut table.members {
                if let MemberValue::Program(program) = value {
                    *program += places.program;
                }
            }
            self.struct_ops.push(table);
        }
    }
}

impl Places {
    /// An instruction as it refers to the parts of the joined image; see [`crate::image`].
    fn moved(&self, insn: Insn) -> Insn {
        let at = insn.imm.cast_unsigned();
        let moved = match (insn.code, insn.src) {
            (LD_IMM64, 1 | 2) => at + self.at.map,
            (LD_IMM64, 3) => self.variables[at as usize],
            (LD_IMM64, 4) | (CALL, 1) => at + self.at.function,
            (CALL, 0) => self.imports[at as usize],
            (CALL, Insn::POISON) => at + self.poison,
            _ => return insn,
        };
        Insn {
            imm: moved.cast_signed(),
            ..insn
        }
    }
}

#[cfg(test)]
mod tests;
