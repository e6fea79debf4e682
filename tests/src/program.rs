//! Random objects: well formed, as the loader would let them through, and otherwise as bad as a
//! stranger's could be.
//!
//! A function is a list of snippets: arithmetic, accesses near and far, look-ups, iterators, calls
//! of every kind, jumps to any instruction. Many programs end with a fault or meet their budget,
//! which is as it should be: faults and budgets are compared too.

use std::sync::Arc;

use bpf::{EntryPoint, Function, Image, Import, Insn, MapDef, MapKind};
use model::Rng;

use crate::choices::Choices;

/// The maps of a generated object, in order.
const ARRAY: i32 = 0;
const PERCPU: i32 = 1;
const HASH: i32 = 2;
const RODATA: i32 = 3;
const DATA: i32 = 4;
const ARENA: i32 = 5;

/// What a generated object may call: name, prototype, helper number.
const IMPORTS: [(&str, &str, u32); 23] = [
    ("bpf_map_lookup_elem", "", 1),
    ("bpf_map_update_elem", "", 2),
    ("bpf_map_delete_elem", "", 3),
    ("bpf_ktime_get_ns", "", 5),
    ("bpf_get_smp_processor_id", "", 8),
    ("bpf_get_prandom_u32", "", 7),
    ("bpf_loop", "", 181),
    ("bpf_for_each_map_elem", "", 164),
    ("bpf_probe_read_kernel", "", 113),
    ("bpf_map_lookup_percpu_elem", "", 195),
    ("bpf_spin_lock", "", 93),
    ("bpf_spin_unlock", "", 94),
    ("bpf_iter_num_new", "s32(ptr,s32,s32)", 0),
    ("bpf_iter_num_next", "ptr(ptr)", 0),
    ("bpf_iter_num_destroy", "void(ptr)", 0),
    ("bpf_rcu_read_lock", "void()", 0),
    ("bpf_rcu_read_unlock", "void()", 0),
    ("bpf_preempt_disable", "void()", 0),
    ("bpf_preempt_enable", "void()", 0),
    ("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)", 0),
    ("host_clock", "u64()", 0),
    ("host_note", "u64(u64,u64,u64,u64,u64)", 0),
    ("host_nest", "u64(u64,u64)", 0),
];

const LOOKUP: i32 = 0;
const UPDATE: i32 = 1;
const CLOCK: i32 = 3;
const ITER_NEW: i32 = 12;
const ITER_NEXT: i32 = 13;
const ITER_DESTROY: i32 = 14;
const ALLOC_PAGES: i32 = 19;
const HOST_CLOCK: i32 = 20;
const NOTE: i32 = 21;
const NEST: i32 = 22;

/// The object of `seed`: always the same.
#[must_use]
pub fn generate(seed: u64) -> Image {
    let mut choices = Choices::Random(Rng::new(seed, 0));
    write(&mut choices, seed.is_multiple_of(8))
}

/// The object that `bytes` decide, with some instructions changed afterwards as no compiler would
/// have them, and the budget to run it with.
#[must_use]
pub fn generate_from(bytes: &[u8]) -> (Image, u64) {
    let choices = &mut Choices::Bytes(bytes);
    let budget = match choices.below(4) {
        0 => choices.below(64),
        1 => choices.below(4096),
        _ => 2000,
    };
    let changes = choices.below(8);
    let arena = choices.below(8) == 0;
    let mut image = write(choices, arena);
    for _ in 0..changes {
        mutate(&mut image, choices);
    }
    (image, budget)
}

/// Changes an instruction, if what comes out is still well formed.
fn mutate(image: &mut Image, choices: &mut Choices<'_>) {
    let len = image.code.len() as u64;
    let at = choices.below(len) as usize;
    let old = image.code[at];
    let insn = &mut image.code[at];
    match choices.below(8) {
        0 => insn.code = choices.next_u64() as u8,
        1 => insn.dst = choices.below(11) as u8,
        2 => insn.src = choices.below(11) as u8,
        3 => insn.off = choices.next_u64() as i16,
        4 => insn.off = choices.below(16) as i16 - 8,
        5 => insn.imm = choices.next_u64() as i32,
        6 => insn.imm = choices.below(16) as i32 - 8,
        _ => {
            let word = choices.next_u64().to_le_bytes();
            *insn = Insn {
                code: word[0],
                dst: word[1] & 15,
                src: word[1] >> 4,
                off: i16::from_le_bytes([word[2], word[3]]),
                imm: i32::from_le_bytes([word[4], word[5], word[6], word[7]]),
            };
        }
    }
    if image.check().is_err() {
        image.code[at] = old;
    }
}

fn write(choices: &mut Choices<'_>, arena: bool) -> Image {
    let mut writer = Writer {
        choices,
        code: Vec::new(),
        functions: 0,
        at: 0,
        arena,
    };
    writer.functions = 1 + writer.below(4) as i32;
    let functions: Vec<Function> = (0..writer.functions)
        .map(|at| writer.function(at))
        .collect();
    let program = |(at, function): (usize, &Function)| EntryPoint {
        name: function.name.clone(),
        section: "syscall".into(),
        function: at as u32,
        autoload: true,
        context: None,
    };
    Image {
        programs: functions.iter().enumerate().map(program).collect(),
        maps: maps(writer.arena),
        imports: IMPORTS.into_iter().map(import).collect(),
        variables: Vec::new(),
        poisons: vec!["poisoned".into()],
        struct_ops: Vec::new(),
        symbols: Vec::new(),
        knobs: Vec::new(),
        types: Vec::new(),
        lines: Vec::new(),
        reads: Vec::new(),
        license: "MIT".into(),
        code: writer.code,
        functions,
    }
}

fn import((name, prototype, number): (&str, &str, u32)) -> Import {
    Import {
        name: name.into(),
        prototype: prototype.into(),
        helper: (number != 0).then_some(number),
        callers: Vec::new(),
    }
}

fn maps(arena: bool) -> Vec<MapDef> {
    let map = |name: &str, kind, value_size, max_entries| MapDef {
        name: name.into(),
        kind,
        key_size: 4,
        value_size,
        value: None,
        max_entries,
        flags: 0,
        initial: None,
        frozen: false,
        timer_at: None,
        lock_at: None,
        kptrs_at: Vec::new(),
        inner: None,
    };
    let bytes: Arc<[u8]> = (0..64).map(|at: u8| at.wrapping_mul(37) ^ 0x5a).collect();
    let mut maps = vec![
        map("array", MapKind::Array, 20, 8),
        map("percpu", MapKind::PercpuArray, 8, 4),
        map("hash", MapKind::Hash, 16, 3),
        MapDef {
            initial: Some(bytes.clone()),
            frozen: true,
            ..map(".rodata", MapKind::Array, 64, 1)
        },
        MapDef {
            initial: Some(bytes),
            ..map(".data", MapKind::Array, 64, 1)
        },
    ];
    if arena {
        maps.push(MapDef {
            key_size: 0,
            ..map("arena", MapKind::Arena, 0, 16)
        });
    }
    maps
}

struct Writer<'a, 'b> {
    choices: &'a mut Choices<'b>,
    code: Vec<Insn>,
    functions: i32,
    /// The function that is being written.
    at: i32,
    arena: bool,
}

impl Writer<'_, '_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.choices.below(bound)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        self.choices.pick(from)
    }

    fn function(&mut self, at: i32) -> Function {
        self.at = at;
        let start = self.code.len();
        let snippets = 3 + self.below(24);
        for _ in 0..snippets {
            self.snippet();
        }
        let last = self.number();
        if self.below(2) == 0 {
            self.push(0xb7, 0, 0, 0, last);
        }
        self.push(0x95, 0, 0, 0, 0);
        self.aim(start);
        Function {
            name: format!("function{at}"),
            start: start as u32,
            len: (self.code.len() - start) as u32,
        }
    }

    /// Lets every jump of the function that begins at `start` lead to some instruction of it.
    fn aim(&mut self, start: usize) {
        let is_second = |code: &[Insn], at: usize| at > start && code[at - 1].code == 0x18;
        for at in start..self.code.len() {
            let Insn { code, off, .. } = self.code[at];
            let operation = code & 0xf0;
            let jump = code & 0x07 >= 5 && operation != 0x80 && operation != 0x90;
            if !jump || off != OPEN || is_second(&self.code, at) {
                continue;
            }
            // Mostly forward and near, so that programs get somewhere.
            let len = self.code.len();
            let target = loop {
                let target = match self.below(5) {
                    0 => start + self.below((len - start) as u64) as usize,
                    _ => (at + 1 + self.below(8) as usize).min(len - 1),
                };
                if !is_second(&self.code, target) {
                    break target;
                }
            };
            let distance = target as i32 - at as i32 - 1;
            let insn = &mut self.code[at];
            if insn.code == 0x06 {
                insn.off = 0;
                insn.imm = distance;
            } else {
                insn.off = distance as i16;
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an instruction")]
    fn push(&mut self, code: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.code.push(Insn {
            code,
            dst,
            src,
            off,
            imm,
        });
    }

    fn constant(&mut self, dst: u8, meaning: u8, low: i32, high: i32) {
        self.push(0x18, dst, meaning, 0, low);
        self.push(0, 0, 0, 0, high);
    }

    /// A register that may be written.
    fn register(&mut self) -> u8 {
        self.below(10) as u8
    }

    /// A register that may be read.
    fn operand(&mut self) -> u8 {
        self.below(11) as u8
    }

    /// A number that is likely to be at some edge.
    fn number(&mut self) -> i32 {
        let random = self.choices.next_u64() as i32;
        self.pick(&[
            0,
            1,
            -1,
            2,
            7,
            8,
            31,
            32,
            63,
            64,
            255,
            -512,
            0x7fff_ffff,
            i32::MIN,
            random,
            random & 0xff,
        ])
    }

    fn snippet(&mut self) {
        match self.below(32) {
            0..=8 => self.arithmetic(),
            9..=10 => self.wide_constant(),
            11..=12 => self.jump(),
            13..=15 => self.access_frame(),
            16..=18 => self.access_map(),
            19 if self.below(3) == 0 => self.access_anything(),
            20 => self.atomic(),
            21..=22 => self.lookup(),
            23 => self.update(),
            24 => self.iterator(),
            25..=27 => self.call_import(),
            28 => self.call_local(),
            29 => self.take_address(),
            30 => self.arena(),
            _ => self.rare(),
        }
    }

    fn arithmetic(&mut self) {
        let (dst, src, imm) = (self.register(), self.operand(), self.number());
        let class = self.pick(&[4, 7]);
        match self.below(12) {
            0 => {
                let (code, imm) = (self.pick(&[0xd4, 0xdc, 0xd7]), self.pick(&[16, 32, 64]));
                self.push(code, dst, 0, 0, imm);
            }
            1 => self.push(0x80 | class, dst, 0, 0, 0),
            2 => {
                let widths: &[i16] = if class == 7 { &[8, 16, 32] } else { &[8, 16] };
                let off = self.pick(widths);
                self.push(0xb8 | class, dst, src, off, 0);
            }
            3 => {
                let operation = self.pick(&[0x30, 0x90]);
                self.either(Insn {
                    code: operation | class,
                    dst,
                    src,
                    off: 1,
                    imm,
                });
            }
            _ => {
                let operations = [
                    0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x90, 0xa0, 0xb0, 0xc0,
                ];
                let operation = self.pick(&operations);
                self.either(Insn {
                    code: operation | class,
                    dst,
                    src,
                    off: 0,
                    imm,
                });
            }
        }
    }

    /// An instruction whose second operand is the register or the immediate.
    fn either(&mut self, insn: Insn) {
        let chosen = if self.below(2) == 0 {
            Insn {
                code: insn.code | 0x08,
                imm: 0,
                ..insn
            }
        } else {
            Insn { src: 0, ..insn }
        };
        self.code.push(chosen);
    }

    fn wide_constant(&mut self) {
        let (dst, low, high) = (self.register(), self.number(), self.number());
        self.constant(dst, 0, low, high);
    }

    fn jump(&mut self) {
        let (dst, src, imm) = (self.operand(), self.operand(), self.number());
        match self.below(12) {
            0 => self.push(0x05, 0, 0, OPEN, 0),
            1 => self.push(0x06, 0, 0, OPEN, 0),
            2 => self.push(0xe5, 0, 0, OPEN, 0),
            _ => {
                let operations = [
                    0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0,
                ];
                let (operation, class) = (self.pick(&operations), self.pick(&[5, 6]));
                self.either(Insn {
                    code: operation | class,
                    dst,
                    src,
                    off: OPEN,
                    imm,
                });
            }
        }
    }

    /// A load or a store at `base + off`.
    fn access(&mut self, base: u8, off: i16) {
        let (register, operand, imm) = (self.register(), self.operand(), self.number());
        let size = self.pick(&[0x00, 0x08, 0x10, 0x18]);
        match self.below(7) {
            0..=2 => self.push(0x61 | size, register, base, off, 0),
            3 if size != 0x18 => self.push(0x81 | size, register, base, off, 0),
            4.. if base != 10 && base != 0 && self.below(3) > 0 => {
                self.push(0x61 | size, register, base, off, 0);
            }
            4 => self.push(0x62 | size, base, 0, off, imm),
            _ => self.push(0x63 | size, base, operand, off, 0),
        }
    }

    fn access_frame(&mut self) {
        let off = match self.below(12) {
            0 => self.pick(&[-512, -505, -7, -4, -12, -20, -512, -513, -1, 8]),
            _ => -8 * (1 + self.below(6) as i16),
        };
        if self.below(3) > 0 {
            return self.access(10, off);
        }
        let register = self.register();
        self.push(0xbf, register, 10, 0, 0);
        self.push(0x07, register, 0, 0, off.into());
        let near = self.pick(&[0, 0, 4, -8]);
        self.access(register, near);
    }

    fn access_map(&mut self) {
        let register = self.register();
        let (map, size) = self.pick(&[(ARRAY, 20), (PERCPU, 8), (RODATA, 64), (DATA, 64)]);
        let offset = self.below(size) as i32;
        self.constant(register, 2, map, offset);
        if self.below(4) == 0 {
            // A block in between, so that the translator forgets the address.
            self.jump();
        }
        let near = self.pick(&[0, 0, 0, 8, -8, 56]);
        self.access(register, near);
    }

    fn access_anything(&mut self) {
        let (base, off) = (self.operand(), self.number() as i16);
        self.access(base, off);
    }

    fn atomic(&mut self) {
        let (src, code) = (self.register(), self.pick(&[0xc3, 0xdb]));
        let imms = [0x00, 0x01, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1];
        let imm = self.pick(&imms);
        let (base, off) = match self.below(4) {
            0 => {
                let map = self.pick(&[ARRAY, ARRAY, DATA, DATA, DATA, RODATA]);
                self.constant(6, 2, map, 0);
                (6, self.pick(&[0, 4, 8]))
            }
            1 if self.below(4) == 0 => (self.operand(), self.pick(&[0, -8, 16])),
            _ => (10, self.pick(&[-8, -16, -4, -12])),
        };
        match self.below(6) {
            0 => {
                let code = self.pick(&[0xc3, 0xdb, 0xcb, 0xd3]);
                self.push(code, src, base, off, 0x100);
            }
            1 => {
                let code = self.pick(&[0xc3, 0xdb, 0xcb, 0xd3]);
                self.push(code, base, src, off, 0x110);
            }
            _ => self.push(code, base, src, off, imm),
        }
    }

    /// Puts a key into the frame, and its address and the map into the registers for a call.
    fn key(&mut self) {
        let map = self.pick(&[ARRAY, PERCPU, HASH, RODATA, DATA]);
        let key = self.below(10) as i32;
        self.push(0x62, 10, 0, -4, key);
        self.constant(1, 1, map, 0);
        match self.below(8) {
            0 => self.constant(2, 2, DATA, 8),
            1 if self.below(4) == 0 => self.push(0xbf, 2, 6, 0, 0),
            _ => {
                self.push(0xbf, 2, 10, 0, 0);
                self.push(0x07, 2, 0, 0, -4);
            }
        }
        if self.below(6) == 0 {
            self.jump();
        }
    }

    fn lookup(&mut self) {
        self.key();
        self.call(LOOKUP);
        if self.below(4) > 0 {
            self.push(0x15, 0, 0, 1, 0);
            let near = self.pick(&[0, 0, 4, 8, 16, 24]);
            self.access(0, near);
        }
    }

    fn update(&mut self) {
        self.key();
        self.push(0xbf, 3, 10, 0, 0);
        self.push(0x07, 3, 0, 0, -40);
        let flags = self.pick(&[0, 0, 1, 2, 9]);
        self.push(0xb7, 4, 0, 0, flags);
        let import = self.pick(&[UPDATE, UPDATE, 2]);
        self.call(import);
    }

    /// A loop over numbers, as the C macro unfolds.
    fn iterator(&mut self) {
        let at = self.pick(&[-8, -8, -16, -16, -24, -64, -64, -516]);
        let end = self.pick(&[0, 1, 3, 3, 5, -1, 8 << 20, i32::MAX]);
        let start = self.pick(&[0, 0, 0, 1, -2, i32::MIN]);
        let iterator = |writer: &mut Self| {
            writer.push(0xbf, 1, 10, 0, 0);
            writer.push(0x07, 1, 0, 0, at);
        };
        iterator(self);
        self.push(0xb7, 2, 0, 0, start);
        self.push(0xb7, 3, 0, 0, end);
        self.call(ITER_NEW);
        iterator(self);
        self.call(ITER_NEXT);
        self.push(0x15, 0, 0, 2, 0);
        self.push(0x61, 7, 0, 0, 0);
        self.push(0x05, 0, 0, -6, 0);
        iterator(self);
        self.call(ITER_DESTROY);
    }

    fn call(&mut self, import: i32) {
        self.push(0x85, 0, 0, 0, import);
    }

    fn call_import(&mut self) {
        if self.below(3) == 0 {
            let (register, imm) = (1 + self.below(5) as u8, self.number());
            self.push(0xb7, register, 0, 0, imm);
        }
        let import = match self.below(8) {
            0 => self.below(IMPORTS.len() as u64) as i32,
            1 => return self.section(),
            _ => self.pick(&[CLOCK, 4, 5, HOST_CLOCK, NOTE, NOTE, NEST]),
        };
        self.call(import);
    }

    /// Enters a critical section and leaves it, mostly.
    fn section(&mut self) {
        let (enter, leave) = self.pick(&[(15, 16), (17, 18), (10, 11)]);
        self.call(enter);
        let register = self.register();
        self.push(0x07, register, 0, 0, 1);
        if self.below(8) > 0 {
            self.call(leave);
        }
    }

    fn call_local(&mut self) {
        // Mostly a later one, so that recursion is not all there is.
        let function = match self.below(12) {
            0 => self.below(self.functions as u64) as i32,
            _ => (self.at + 1 + self.below(2) as i32).min(self.functions - 1),
        };
        if function == self.at && self.below(4) > 0 {
            return self.arithmetic();
        }
        self.push(0x85, 0, 1, 0, function);
    }

    fn take_address(&mut self) {
        let (dst, function) = (1 + self.below(4) as u8, self.below(self.functions as u64));
        self.constant(dst, 4, function as i32, 0);
        if self.below(2) == 0 {
            // `bpf_loop(turns, function, context, 0)`.
            self.constant(2, 4, function as i32, 0);
            let turns = self.pick(&[0, 1, 3, 100]);
            self.push(0xb7, 1, 0, 0, turns);
            self.push(0xb7, 4, 0, 0, 0);
            self.call(6);
        }
    }

    fn arena(&mut self) {
        let (dst, src) = (self.register(), self.operand());
        if !self.arena || self.below(2) == 0 {
            let imm = self.pick(&[1, 1 << 16]);
            return self.push(0xbf, dst, src, 1, imm);
        }
        self.constant(1, 1, ARENA, 0);
        self.push(0xb7, 2, 0, 0, 0);
        self.push(0xb7, 3, 0, 0, 1);
        self.push(0xb7, 4, 0, 0, -1);
        self.push(0xb7, 5, 0, 0, 0);
        self.call(ALLOC_PAGES);
        let near = self.pick(&[0, 8, 4088, 4090, 4096]);
        self.access(0, near);
    }

    fn rare(&mut self) {
        match self.below(4) {
            0 => self.push(0x95, 0, 0, 0, 0),
            1 => self.push(0x85, 0, Insn::POISON, 0, 0),
            _ => self.access_anything(),
        }
    }
}

/// Marks a jump whose target is still open.
const OPEN: i16 = i16::MIN;
