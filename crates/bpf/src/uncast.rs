//! Accesses to the arena through numbers that no `addr_space_cast` has made pointers.
//!
//! This machine follows such a number to where it leads; a kernel's verifier refuses the program.
//! Compilers before clang 22 make some: they compute the address of a field from what was loaded,
//! and cast too late or not at all.
//!
//! The registers of each function are followed as far as a verifier would know them to be numbers:
//! what was loaded from the arena or from a map, constants, and what arithmetic makes of them. A
//! register that may hold anything else, on some way, is not complained about.
//!
//! Source: `check_mem_access()` in kernel/bpf/verifier.c, kernel 7.3.

use std::fmt;

use crate::frame::FRAME_BYTES;
use crate::image::{Image, Insn, MapKind};
use crate::isa::{
    ALU, ALU64, CALL, CALL_LOCAL, CLASS, EXIT, GOTOL, JA, JMP, JMP32, LD_IMM64, LDX, MAY_GOTO,
    MODE, OPERATION, SOURCE_REGISTER, ST, STX, TO_USER, ld_imm64,
};
use crate::reach;

/// An instruction that loads or stores through a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncastAccess {
    /// The function's name.
    pub function: String,
    /// Instruction within the function.
    pub insn: u32,
    /// The register with the number.
    pub register: u8,
    /// Source file and line, if the object has line information.
    pub place: Option<(String, u32)>,
}

impl fmt::Display for UncastAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            function,
            insn,
            register,
            place,
        } = self;
        write!(f, "{function}+{insn}")?;
        if let Some((file, line)) = place {
            write!(f, " ({file}:{line})")?;
        }
        write!(
            f,
            " uses r{register} as an address in the arena without a cast"
        )
    }
}

impl Image {
    /// The accesses of a program with an arena that a kernel refuses because their address is a
    /// number and no pointer, in the order of the code. Empty without an arena.
    #[must_use]
    pub fn uncast_accesses(&self) -> Vec<UncastAccess> {
        if !self.has_arena() {
            return Vec::new();
        }
        let functions = reach::loaded(self).into_iter();
        functions
            .flat_map(|function| of_function(self, function))
            .collect()
    }
}

/// What is known of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Anything,
    /// It was written down in the program, and so is no address that lacks a cast.
    Constant,
    /// It was loaded, or made of what was loaded.
    Number,
    /// It points into the arena.
    Arena,
    /// It points to a value of a map, or is null.
    MapValue,
    /// The frame pointer plus so many bytes.
    Frame(i64),
}

impl Held {
    const fn is_number(self) -> bool {
        matches!(self, Self::Constant | Self::Number)
    }
}

/// What is known before an instruction.
#[derive(Clone, PartialEq, Eq)]
struct State {
    registers: [Held; 11],
    /// Words of the frame that hold numbers.
    numbers: u64,
}

impl State {
    fn at_begin() -> Self {
        let mut registers = [Held::Anything; 11];
        registers[10] = Held::Frame(0);
        Self {
            registers,
            numbers: 0,
        }
    }

    fn get(&self, register: u8) -> Held {
        let held = self.registers.get(usize::from(register));
        held.copied().unwrap_or(Held::Anything)
    }

    fn set(&mut self, register: u8, held: Held) {
        if let Some(place) = self.registers.get_mut(usize::from(register)) {
            *place = held;
        }
    }

    fn meet(&mut self, other: &Self) {
        for (one, other) in self.registers.iter_mut().zip(other.registers) {
            if *one != other {
                *one = if one.is_number() && other.is_number() {
                    Held::Number
                } else {
                    Held::Anything
                };
            }
        }
        self.numbers &= other.numbers;
    }

    /// The word of the frame at `off` from `register`.
    fn word(&self, register: u8, off: i16) -> Option<u32> {
        let Held::Frame(at) = self.get(register) else {
            return None;
        };
        let from_start = at.checked_add(i64::from(off) + FRAME_BYTES as i64)?;
        let inside = (0..FRAME_BYTES as i64).contains(&from_start);
        inside.then_some((from_start / 8) as u32)
    }

    /// Something is stored at `off` from `register`.
    fn store(&mut self, insn: Insn, held: Held) {
        match (self.word(insn.dst, insn.off), self.get(insn.dst)) {
            (Some(word), _) => {
                let whole = held == Held::Number && insn.access_size() == 8;
                self.numbers = self.numbers & !(1 << word) | u64::from(whole) << word;
            }
            // It may be the frame.
            (None, Held::Anything) => self.numbers = 0,
            (None, _) => {}
        }
    }
}

struct Walk<'a> {
    image: &'a Image,
    code: &'a [Insn],
    /// Values of maps hold numbers: no map has pointers to kernel objects.
    plain_maps: bool,
}

fn of_function(image: &Image, function: u32) -> Vec<UncastAccess> {
    let Some(range) = image.functions.get(function as usize) else {
        return Vec::new();
    };
    let slots = range.start as usize..(range.start + range.len) as usize;
    let Some(code) = image.code.get(slots) else {
        return Vec::new();
    };
    let walk = Walk {
        image,
        code,
        plain_maps: image.maps.iter().all(|map| map.kptrs_at.is_empty()),
    };
    let states = walk.states();
    let found = code.iter().zip(&states).enumerate();
    let found = found.filter_map(|(at, (insn, state))| {
        let register = base_of(*insn)?;
        (state.as_ref()?.get(register) == Held::Number).then_some((at as u32, register))
    });
    let place = |at: u32| {
        let line = image.line_of(range.start + at)?;
        (line.insn >= range.start).then(|| (line.file.to_string(), line.line))
    };
    found
        .map(|(insn, register)| UncastAccess {
            function: range.name.clone(),
            insn,
            register,
            place: place(insn),
        })
        .collect()
}

/// The register through which an instruction accesses memory.
fn base_of(insn: Insn) -> Option<u8> {
    match insn.code & CLASS {
        LDX => Some(insn.src),
        ST | STX => Some(insn.dst),
        _ => None,
    }
}

impl Walk<'_> {
    /// What is known before each instruction that can be reached.
    fn states(&self) -> Vec<Option<State>> {
        let mut states = vec![None; self.code.len()];
        let mut pending = vec![(0, State::at_begin())];
        while let Some((at, mut state)) = pending.pop() {
            let (Some(&insn), Some(known)) = (self.code.get(at), states.get_mut(at)) else {
                continue;
            };
            if let Some(known) = known {
                state.meet(known);
            }
            if known.as_ref() == Some(&state) {
                continue;
            }
            *known = Some(state.clone());
            let next = self.step(at, insn, &mut state);
            pending.extend(next.into_iter().map(|next| (next, state.clone())));
        }
        states
    }

    /// Executes one instruction; the instructions that can be next.
    fn step(&self, at: usize, insn: Insn, state: &mut State) -> Vec<usize> {
        let jump = |off: i32| (at as i64 + 1 + i64::from(off)) as usize;
        match (insn.code, insn.code & CLASS) {
            (EXIT, _) => return Vec::new(),
            (CALL, _) if insn.src == Insn::POISON => return Vec::new(),
            (CALL, _) => self.call(insn, state),
            (JA, _) => return vec![jump(insn.off.into())],
            (GOTOL, _) => return vec![jump(insn.imm)],
            (MAY_GOTO, _) | (_, JMP | JMP32) => return vec![at + 1, jump(insn.off.into())],
            (LD_IMM64, _) => {
                state.set(insn.dst, self.constant(insn));
                return vec![at + 2];
            }
            (_, LDX) => {
                let loaded = self.load(insn, state);
                state.set(insn.dst, loaded);
            }
            (_, ST) => state.store(insn, Held::Constant),
            (_, STX) if insn.code & MODE == 0x60 => state.store(insn, state.get(insn.src)),
            (_, STX) => {
                state.store(insn, Held::Anything);
                // An atomic operation may give back what it found.
                state.set(insn.src, Held::Anything);
                state.set(0, Held::Anything);
            }
            (_, ALU | ALU64) => {
                let result = calculate(insn, state);
                state.set(insn.dst, result);
            }
            _ => state.set(insn.dst, Held::Anything),
        }
        vec![at + 1]
    }

    fn constant(&self, insn: Insn) -> Held {
        let is_arena = |map: u32| {
            let map = self.image.maps.get(map as usize);
            map.is_some_and(|map| map.kind == MapKind::Arena)
        };
        match insn.src {
            ld_imm64::CONSTANT => Held::Constant,
            ld_imm64::MAP_VALUE if is_arena(insn.imm.cast_unsigned()) => Held::Number,
            ld_imm64::MAP_VALUE => Held::MapValue,
            _ => Held::Anything,
        }
    }

    fn load(&self, insn: Insn, state: &State) -> Held {
        match state.get(insn.src) {
            Held::Arena => Held::Number,
            Held::MapValue if self.plain_maps => Held::Number,
            Held::Frame(_) => {
                let word = state.word(insn.src, insn.off);
                let held = word.is_some_and(|word| state.numbers >> word & 1 != 0);
                if held { Held::Number } else { Held::Anything }
            }
            _ => Held::Anything,
        }
    }

    fn call(&self, insn: Insn, state: &mut State) {
        /// Helpers that give a value of a map.
        const GIVE_VALUES: [&str; 4] = [
            "bpf_map_lookup_elem",
            "bpf_map_lookup_percpu_elem",
            "bpf_task_storage_get",
            "bpf_cgrp_storage_get",
        ];
        let import = self.image.imports.get(insn.imm as usize);
        let name = import.filter(|_| insn.src != CALL_LOCAL);
        let gives_value = name.is_some_and(|import| GIVE_VALUES.contains(&&*import.name));
        state.registers[..=5].fill(Held::Anything);
        if gives_value {
            state.set(0, Held::MapValue);
        }
        // What is called may have written to the frame.
        state.numbers = 0;
    }
}

/// The result of arithmetic.
fn calculate(insn: Insn, state: &State) -> Held {
    const MOVE: u8 = 0xb0;
    const ADD: u8 = 0x00;
    const CAST: i16 = 1;
    let wide = insn.code & CLASS == ALU64;
    let from_register = insn.code & SOURCE_REGISTER != 0;
    let right = if from_register {
        state.get(insn.src)
    } else {
        Held::Constant
    };
    let operation = insn.code & OPERATION;
    if operation == MOVE {
        return match (wide && from_register, insn.off) {
            (true, CAST) if i64::from(insn.imm) == TO_USER => Held::Number,
            (true, CAST) => Held::Arena,
            (true, 0) => right,
            _ if right.is_number() => right,
            _ => Held::Anything,
        };
    }
    match (state.get(insn.dst), right) {
        (Held::Constant, Held::Constant) => Held::Constant,
        (left, right) if left.is_number() && right.is_number() => Held::Number,
        (Held::Arena, _) | (_, Held::Arena) if wide => Held::Arena,
        (Held::MapValue, right) if wide && right.is_number() => Held::MapValue,
        (Held::Frame(at), Held::Constant) if wide && operation == ADD && !from_register => {
            Held::Frame(at.saturating_add(insn.imm.into()))
        }
        _ => Held::Anything,
    }
}

#[cfg(test)]
mod tests {
    use crate::scene::SceneObject;
    use crate::scene::insn::{EXIT, add, cast, copy, ja, load, mov, store};
    use crate::{Insn, MapKind};

    /// Slots of the accesses through numbers, and the registers.
    fn found(code: &[Insn], has_arena: bool) -> Vec<(u32, u8)> {
        let object = SceneObject::default();
        let object = if has_arena {
            object.map(MapKind::Arena, 0, 0, 10)
        } else {
            object
        };
        let image = object.function(&[code]).image();
        let found = image.uncast_accesses().into_iter();
        found.map(|access| (access.insn, access.register)).collect()
    }

    #[test]
    fn a_number_from_the_arena_is_no_address_until_it_is_cast() {
        let code = [
            cast(2, 1),
            load(3, 2, 0),
            load(0, 3, 0), // 2: what was loaded is a number
            cast(4, 3),
            load(0, 4, 8), // a pointer
            EXIT,
        ];
        assert_eq!(found(&code, true), [(2, 3)]);
        assert_eq!(found(&code, false), []);
    }

    #[test]
    fn the_address_of_a_field_that_is_taken_before_the_cast_is_a_number() {
        let code = [
            cast(2, 1),
            load(3, 2, 0),
            copy(7, 3),
            add(7, 16),
            cast(3, 3),
            load(0, 3, 0),
            store(7, 0, 3), // 6
            EXIT,
        ];
        assert_eq!(found(&code, true), [(6, 7)]);
    }

    #[test]
    fn a_number_is_followed_through_the_frame() {
        let code = [
            cast(2, 1),
            load(3, 2, 0),
            store(10, -8, 3),
            load(4, 10, -8),
            load(0, 4, 0), // 4
            store(10, -8, 1),
            load(4, 10, -8),
            load(0, 4, 0), // the context
            EXIT,
        ];
        assert_eq!(found(&code, true), [(4, 4)]);
    }

    #[test]
    fn a_constant_is_another_mistake() {
        let code = [mov(2, 0), add(2, 8), store(2, 0, 1), mov(0, 0), EXIT];
        assert_eq!(found(&code, true), []);
    }

    #[test]
    fn what_may_be_a_pointer_on_some_way_is_left_alone() {
        let code = [
            cast(2, 1),
            load(3, 2, 0),
            Insn {
                code: 0x15,
                dst: 3,
                src: 0,
                off: 1,
                imm: 0,
            },
            copy(3, 1),
            load(0, 3, 0),
            mov(0, 0),
            ja(0),
            EXIT,
        ];
        assert_eq!(found(&code, true), []);
    }
}
