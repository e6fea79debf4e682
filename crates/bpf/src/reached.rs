//! What the programs of an object can reach, as its constants stand: a small part of what a
//! kernel's verifier does.
//!
//! Objects test for what a kernel has and branch; CO-RE and absent symbols make constants of these
//! tests, and so do read-only variables. The registers of each function are followed as far as
//! they are constants or addresses of the object's variables. What is not known is taken to be
//! anything, so that more may be called reached than is, and never less.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::image::{Image, Insn};
use crate::isa::{
    ALU, ALU64, CALL, CALL_LOCAL, CLASS, EXIT, GOTOL, JA, JMP, JMP32, LD_IMM64, LDX, MAY_GOTO,
    MODE, OPERATION, SOURCE_REGISTER, ST, STX, ld_imm64,
};
use crate::reach;

/// Maps, functions and kernel functions that the programs of a host can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Indices into [`Image::poisons`]: each ends the policy as soon as it is executed.
    pub poisons: BTreeSet<usize>,
    /// Indices into [`Image::symbols`]: variables that are read and that no program writes.
    pub only_read: BTreeSet<usize>,
}

impl Image {
    /// Whether an instruction takes the address of the kernel's `variable`, executed or not.
    #[must_use]
    pub fn refers_to(&self, variable: &str) -> bool {
        let loads = |insn: &&Insn| insn.code == LD_IMM64 && insn.src == ld_imm64::VARIABLE;
        let mut loaded = self.code.iter().filter(loads);
        loaded.any(|insn| {
            let known = self.variables.get(insn.imm.cast_unsigned() as usize);
            known.is_some_and(|it| it.name == variable)
        })
    }

    /// Finds what callbacks and set-up programs can reach with the present values of the read-only
    /// variables.
    #[must_use]
    pub fn reached(&self) -> Reached {
        let taken = Walk::of(self, true);
        // A branch that these values do not take writes when there are others.
        let any = Walk::of(self, false);
        Reached {
            poisons: taken.poisons,
            only_read: taken.read.difference(&any.written).copied().collect(),
        }
    }
}

/// What is known of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Unknown,
    Number(u64),
    /// Bytes from the start of a data section's map.
    Address {
        map: u32,
        offset: u32,
    },
    /// Somewhere in the variable at that place.
    Within {
        map: u32,
        offset: u32,
    },
    /// A kernel variable, and bytes from its start.
    Kernel {
        variable: u32,
        offset: u32,
    },
}

type Registers = [Value; 11];

struct Walk<'a> {
    image: &'a Image,
    /// Read-only variables have the values of the image.
    knows: bool,
    poisons: BTreeSet<usize>,
    read: BTreeSet<usize>,
    written: BTreeSet<usize>,
    pending: Vec<u32>,
    seen: BTreeSet<u32>,
}

impl<'a> Walk<'a> {
    /// Follows everything that a host calls.
    fn of(image: &'a Image, knows: bool) -> Self {
        let mut walk = Self {
            image,
            knows,
            poisons: BTreeSet::new(),
            read: BTreeSet::new(),
            written: BTreeSet::new(),
            pending: reach::entries(image).collect(),
            seen: BTreeSet::new(),
        };
        while let Some(function) = walk.pending.pop() {
            if walk.seen.insert(function) {
                walk.function(function);
            }
        }
        walk
    }

    /// Follows the branches of one function.
    fn function(&mut self, function: u32) {
        let Some(range) = self.image.functions.get(function as usize) else {
            return;
        };
        let (start, len) = (range.start as usize, range.len as usize);
        let image = self.image;
        let Some(code) = image.code.get(start..start + len) else {
            return;
        };
        let mut states: BTreeMap<usize, Registers> = BTreeMap::new();
        let mut queue = VecDeque::from([0]);
        states.insert(0, [Value::Unknown; 11]);
        while let Some(at) = queue.pop_front() {
            let Some(insn) = code.get(at) else { continue };
            let mut registers = states[&at];
            for next in self.step(code, at, *insn, &mut registers) {
                let merged = match states.get(&next) {
                    None => registers,
                    Some(old) => merge(old, &registers),
                };
                if states.get(&next) != Some(&merged) {
                    states.insert(next, merged);
                    queue.push_back(next);
                }
            }
        }
    }

    /// Executes one instruction; the instructions that can be next.
    fn step(&mut self, code: &[Insn], at: usize, insn: Insn, to: &mut Registers) -> Vec<usize> {
        let jump = |off: i32| (at as i64 + 1 + i64::from(off)) as usize;
        match (insn.code, insn.code & CLASS) {
            (EXIT, _) => {
                self.escape(to[0]);
                return Vec::new();
            }
            (CALL, _) if insn.src == Insn::POISON => {
                self.poisons.insert(insn.imm as usize);
                return Vec::new();
            }
            (CALL, _) => {
                if insn.src == CALL_LOCAL {
                    self.pending.push(insn.imm as u32);
                }
                to[1..=5].iter().for_each(|value| self.escape(*value));
                to[..=5].fill(Value::Unknown);
            }
            (JA, _) => return vec![jump(insn.off.into())],
            (GOTOL, _) => return vec![jump(insn.imm)],
            (MAY_GOTO, _) => return vec![at + 1, jump(insn.off.into())],
            (LD_IMM64, _) => {
                let high = code.get(at + 1).map_or(0, |second| second.imm);
                set(to, insn.dst, self.load(insn, high));
                return vec![at + 2];
            }
            (_, JMP | JMP32) => {
                let taken = jump(insn.off.into());
                return match is_taken(insn, to) {
                    Some(true) => vec![taken],
                    Some(false) => vec![at + 1],
                    None => vec![at + 1, taken],
                };
            }
            (_, LDX) => {
                let value = self.read(insn, get(to, insn.src));
                set(to, insn.dst, value);
            }
            (_, ST) => self.escape(shifted(get(to, insn.dst), insn.off)),
            (_, STX) => {
                self.escape(shifted(get(to, insn.dst), insn.off));
                self.escape(get(to, insn.src));
                // An atomic operation may give back what it found.
                if insn.code & MODE != 0x60 {
                    set(to, insn.src, Value::Unknown);
                    to[0] = Value::Unknown;
                }
            }
            (_, ALU | ALU64) => {
                let value = calculate(insn, get(to, insn.dst), operand(insn, to));
                if value == Value::Unknown {
                    self.escape(get(to, insn.dst));
                    self.escape(operand(insn, to));
                }
                set(to, insn.dst, value);
            }
            _ => set(to, insn.dst, Value::Unknown),
        }
        vec![at + 1]
    }

    /// What a 64-bit load gives; `high` is the `imm` of its second slot.
    fn load(&mut self, insn: Insn, high: i32) -> Value {
        let (low, high) = (insn.imm.cast_unsigned(), high.cast_unsigned());
        match insn.src {
            ld_imm64::CONSTANT => Value::Number(u64::from(high) << 32 | u64::from(low)),
            ld_imm64::MAP_VALUE => Value::Address {
                map: low,
                offset: high,
            },
            ld_imm64::VARIABLE => match self.image.variables.get(low as usize) {
                // The address of what the kernel lacks.
                Some(variable) if variable.size == 0 => Value::Number(0),
                _ => Value::Kernel {
                    variable: low,
                    offset: high,
                },
            },
            ld_imm64::FUNCTION => {
                self.pending.push(low);
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    /// What a load from `address` gives.
    fn read(&mut self, insn: Insn, address: Value) -> Value {
        let image = self.image;
        let len = insn.access_size() as usize;
        let bytes = match shifted(address, insn.off) {
            Value::Address { map, offset } => {
                self.read.extend(self.symbol(map, offset));
                let map = image.maps.get(map as usize);
                let map = map.filter(|map| map.frozen && self.knows);
                map.and_then(|map| map.initial_bytes(offset as usize, len))
            }
            Value::Within { map, offset } => {
                self.read.extend(self.symbol(map, offset));
                None
            }
            Value::Kernel { variable, offset } => {
                let variable = image.variables.get(variable as usize);
                let known = variable.filter(|variable| !variable.percpu);
                let at = offset as usize;
                let bytes = known.and_then(|known| known.initial.get(at..at.checked_add(len)?));
                bytes.map(<[u8]>::to_vec)
            }
            _ => None,
        };
        // A load that extends the sign is left alone.
        let bytes = bytes.filter(|_| insn.code & MODE == 0x60);
        bytes.map_or(Value::Unknown, |bytes| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(&bytes);
            Value::Number(u64::from_le_bytes(wide))
        })
    }

    /// An address goes where it is not followed, or is written through: its variable may change.
    fn escape(&mut self, value: Value) {
        if let Value::Address { map, offset } | Value::Within { map, offset } = value {
            self.written.extend(self.symbol(map, offset));
        }
    }

    /// The variable at a place of a data section.
    fn symbol(&self, map: u32, offset: u32) -> Option<usize> {
        self.image.symbols.iter().position(|symbol| {
            let within = offset.checked_sub(symbol.offset);
            symbol.map == map && within.is_some_and(|within| within < symbol.size)
        })
    }
}

/// What is known where two ways meet.
fn merge(one: &Registers, other: &Registers) -> Registers {
    let mut merged = *one;
    for (value, other) in merged.iter_mut().zip(other) {
        if *value != *other {
            *value = Value::Unknown;
        }
    }
    merged
}

fn get(registers: &Registers, register: u8) -> Value {
    let value = registers.get(usize::from(register));
    value.copied().unwrap_or(Value::Unknown)
}

fn set(registers: &mut Registers, register: u8, value: Value) {
    if let Some(place) = registers.get_mut(usize::from(register)) {
        *place = value;
    }
}

/// An address, and the offset of a load or store from there.
fn shifted(value: Value, off: i16) -> Value {
    let moved = |offset: u32| offset.wrapping_add_signed(off.into());
    match value {
        Value::Address { map, offset } => Value::Address {
            map,
            offset: moved(offset),
        },
        Value::Kernel { variable, offset } => Value::Kernel {
            variable,
            offset: moved(offset),
        },
        other => other,
    }
}

/// The second operand of arithmetic and jumps.
fn operand(insn: Insn, registers: &Registers) -> Value {
    if insn.code & SOURCE_REGISTER != 0 {
        return get(registers, insn.src);
    }
    Value::Number(i64::from(insn.imm).cast_unsigned())
}

/// The result of arithmetic, as far as it is followed: additions to addresses, and what compilers
/// make of tests.
fn calculate(insn: Insn, left: Value, right: Value) -> Value {
    const MOVE: u8 = 0xb0;
    const ADD: u8 = 0x00;
    let wide = insn.code & CLASS == ALU64;
    if insn.off != 0 {
        return Value::Unknown;
    }
    match (insn.code & OPERATION, left, right) {
        (MOVE, _, Value::Number(number)) => Value::Number(narrow(number, wide)),
        (MOVE, _, value) if wide => value,
        (ADD, Value::Address { map, offset }, Value::Number(number)) if wide => Value::Address {
            map,
            offset: offset.wrapping_add(number as u32),
        },
        (ADD, Value::Address { map, offset } | Value::Within { map, offset }, _) if wide => {
            Value::Within { map, offset }
        }
        (ADD, _, Value::Address { map, offset } | Value::Within { map, offset }) if wide => {
            Value::Within { map, offset }
        }
        (operation, Value::Number(left), Value::Number(right)) => {
            let (left, right) = (narrow(left, wide), narrow(right, wide));
            let bits = if wide { 63 } else { 31 };
            let number = match operation {
                ADD => left.wrapping_add(right),
                0x10 => left.wrapping_sub(right),
                0x40 => left | right,
                0x50 => left & right,
                0x60 => left << (right & bits),
                0x70 => left >> (right & bits),
                0xa0 => left ^ right,
                _ => return Value::Unknown,
            };
            Value::Number(narrow(number, wide))
        }
        _ => Value::Unknown,
    }
}

fn narrow(number: u64, wide: bool) -> u64 {
    if wide { number } else { number & 0xffff_ffff }
}

/// Whether a conditional jump is taken; `None` if that is not known.
fn is_taken(insn: Insn, registers: &Registers) -> Option<bool> {
    let wide = insn.code & CLASS == JMP;
    let (left, right) = (get(registers, insn.dst), operand(insn, registers));
    let operation = insn.code & OPERATION;
    let (left, right) = match (left, right) {
        (Value::Number(left), Value::Number(right)) => (narrow(left, wide), narrow(right, wide)),
        // No variable lies at 0.
        (Value::Address { .. } | Value::Kernel { .. }, Value::Number(0)) if wide => {
            return match operation {
                0x10 => Some(false),
                0x50 => Some(true),
                _ => None,
            };
        }
        _ => return None,
    };
    let signed = |number: u64| {
        if wide {
            number.cast_signed()
        } else {
            i64::from((number as u32).cast_signed())
        }
    };
    let (less, signed_less) = (left < right, signed(left) < signed(right));
    Some(match operation {
        0x10 => left == right,
        0x20 => !less && left != right,
        0x30 => !less,
        0x40 => left & right != 0,
        0x50 => left != right,
        0x60 => !signed_less && left != right,
        0x70 => !signed_less,
        0xa0 => less,
        0xb0 => less || left == right,
        0xc0 => signed_less,
        0xd0 => signed_less || left == right,
        _ => return None,
    })
}
