//! Programs that try to break out, run for ever or eat the memory, one of each class.

use std::sync::Arc;

use bpf::{BASE, Function, Image, Import, Insn, MapDef, MapKind, OwnType};

/// What must become of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The object is not made ready to run.
    Refused,
    /// It comes to its end and has done no harm.
    Harmless,
    /// It is stopped, for the reason with this name.
    Stopped(&'static str),
}

/// An attack: its class, the object whose function 0 it is, and how it must end.
#[derive(Clone, Debug)]
pub struct Attack {
    /// Class, in words.
    pub name: &'static str,
    /// The object.
    pub image: Arc<Image>,
    /// How it must end.
    pub end: End,
}

/// Functions that attacks call, by index.
const IMPORTS: [(&str, &str, u32); 10] = [
    ("bpf_map_lookup_elem", "", 1),
    ("bpf_map_update_elem", "", 2),
    ("bpf_map_delete_elem", "", 3),
    ("bpf_loop", "", 181),
    ("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)", 0),
    ("host_nest", "u64(u64,u64)", 0),
    ("bpf_trace_printk", "", 6),
    ("bpf_ringbuf_reserve", "", 131),
    ("bpf_obj_new_impl", "ptr(u64,ptr)", 0),
    ("bpf_arena_free_pages", "void(ptr,ptr,u32)", 0),
];

const LOOKUP: i32 = 0;
const UPDATE: i32 = 1;
const DELETE: i32 = 2;
const LOOP: i32 = 3;
const ALLOC_PAGES: i32 = 4;
const NEST: i32 = 5;
const RESERVE: i32 = 7;
const OBJ_NEW: i32 = 8;
const FREE_PAGES: i32 = 9;

const EXIT: Insn = insn(0x95, 0, 0, 0, 0);
/// To the instruction itself.
const SPIN: Insn = insn(0x05, 0, 0, -1, 0);

const fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
    Insn {
        code,
        dst,
        src,
        off,
        imm,
    }
}

const fn set(dst: u8, imm: i32) -> Insn {
    insn(0xb7, dst, 0, 0, imm)
}

const fn copy(dst: u8, src: u8) -> Insn {
    insn(0xbf, dst, src, 0, 0)
}

const fn add(dst: u8, imm: i32) -> Insn {
    insn(0x07, dst, 0, 0, imm)
}

const fn store_byte(base: u8) -> Insn {
    insn(0x72, base, 0, 0, 1)
}

const fn load(dst: u8, base: u8) -> Insn {
    insn(0x79, dst, base, 0, 0)
}

const fn call(import: i32) -> Insn {
    insn(0x85, 0, 0, 0, import)
}

/// Back over `count` instructions while `register` is not zero.
const fn again(register: u8, count: i16) -> Insn {
    insn(0x55, register, 0, -count - 1, 0)
}

/// The two slots of a constant, or of the address that `meaning` says.
const fn wide(dst: u8, meaning: u8, value: u64) -> [Insn; 2] {
    [
        insn(0x18, dst, meaning, 0, value as i32),
        insn(0, 0, 0, 0, (value >> 32) as i32),
    ]
}

fn map(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapDef {
    MapDef {
        name: "map".into(),
        kind,
        key_size,
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
    }
}

fn image(functions: &[Vec<Insn>], maps: Vec<MapDef>) -> Arc<Image> {
    let mut code = Vec::new();
    let mut place = |(at, body): (usize, &Vec<Insn>)| {
        let start = code.len() as u32;
        code.extend(body);
        Function {
            name: format!("function{at}"),
            start,
            len: body.len() as u32,
        }
    };
    let functions = functions.iter().enumerate().map(&mut place).collect();
    let import = |(name, prototype, number): &(&str, &str, u32)| Import {
        name: (*name).into(),
        prototype: (*prototype).into(),
        helper: (*number != 0).then_some(*number),
        callers: Vec::new(),
    };
    Arc::new(Image {
        code,
        functions,
        programs: Vec::new(),
        maps,
        imports: IMPORTS.iter().map(import).collect(),
        variables: Vec::new(),
        poisons: Vec::new(),
        reads: Vec::new(),
        struct_ops: Vec::new(),
        symbols: Vec::new(),
        knobs: Vec::new(),
        types: vec![OwnType {
            source: 0,
            id: 1,
            size: 16,
            kptrs_at: Vec::new(),
        }],
        lines: Vec::new(),
        license: "GPL".into(),
    })
}

/// A byte at every page of `size` bytes from the address in r6 on, and no other.
fn a_store_in_every_page(pages: i32) -> Vec<Insn> {
    vec![
        set(7, pages),
        store_byte(6),
        add(6, 4096),
        add(7, -1),
        again(7, 3),
        set(0, 0),
        EXIT,
    ]
}

/// Calls `import` on map 0 with a key that counts from 1 to `turns`; `more` follows each call.
fn with_every_key(turns: i32, import: i32, more: &[Insn]) -> Vec<Insn> {
    let mut code = vec![set(6, turns), insn(0x7b, 10, 6, -8, 0)];
    let start = code.len();
    code.push(insn(0x7b, 10, 6, -8, 0));
    code.extend(on_map(import));
    code.extend(more);
    code.push(add(6, -1));
    let len = (code.len() - start) as i16;
    code.extend([again(6, len), set(0, 0), EXIT]);
    code
}

/// A call of `import` with map 0, the key at `r10 - 8`, and the same place as the value.
fn on_map(import: i32) -> Vec<Insn> {
    let mut code = wide(1, 1, 0).to_vec();
    code.extend([copy(2, 10), add(2, -8), copy(3, 2), set(4, 0), call(import)]);
    code
}

/// All attacks.
#[must_use]
pub fn all() -> Vec<Attack> {
    let mut attacks = Vec::new();
    accesses(&mut attacks);
    loops(&mut attacks);
    depths(&mut attacks);
    sizes(&mut attacks);
    attacks
}

fn accesses(attacks: &mut Vec<Attack>) {
    let mut add_one = |name, functions: Vec<Vec<Insn>>, end| {
        attacks.push(Attack {
            name,
            image: image(&functions, Vec::new()),
            end,
        });
    };
    // Every 2^44th address of the whole space, then every page of 4 GiB from the region on.
    let mut everywhere = vec![set(6, 0), set(7, 1 << 20)];
    everywhere.extend(wide(8, 0, 1 << 44));
    everywhere.extend([load(0, 6), insn(0x0f, 6, 8, 0, 0), add(7, -1), again(7, 3)]);
    everywhere.extend([set(0, 0), EXIT]);
    add_one(
        "wild loads in all of the address space",
        vec![everywhere],
        End::Harmless,
    );
    let mut pages = wide(6, 0, BASE).to_vec();
    pages.extend([
        set(7, 1 << 20),
        load(0, 6),
        add(6, 4096),
        add(7, -1),
        again(7, 3),
    ]);
    pages.extend([set(0, 0), EXIT]);
    add_one(
        "a load from every page of the region",
        vec![pages],
        End::Harmless,
    );
    let wild = End::Stopped("WildStore");
    for (name, address) in [
        ("a store to nothing", 0),
        ("a store below the region", BASE - 1),
        ("a store into the host's own addresses", 0x7fff_0000_0000),
        ("a store into the kernel's half", BASE),
        (
            "a store behind what is allocated",
            BASE + (2 << 30) + (1 << 30),
        ),
        ("a store at the end of the region", BASE + (4 << 30) - 1),
        ("a store behind the region", BASE + (4 << 30)),
        ("a store that wraps around", u64::MAX),
    ] {
        let mut code = wide(6, 0, address).to_vec();
        // Eight bytes: some of these lie inside and some outside.
        code.extend([insn(0x7a, 6, 0, 0, 1), set(0, 0), EXIT]);
        add_one(name, vec![code], wild);
    }
    let mut deep = vec![copy(6, 10)];
    deep.extend([store_byte(6), add(6, -64), SPIN]);
    deep[3] = insn(0x05, 0, 0, -3, 0);
    add_one("stores down the stack and beyond", vec![deep], wild);
}

fn loops(attacks: &mut Vec<Attack>) {
    let budget = End::Stopped("Budget");
    let mut add_one = |name, functions: Vec<Vec<Insn>>, maps| {
        // What is taken without end reaches the limit of memory before the budget's.
        let takes = name == "an endless loop of objects";
        attacks.push(Attack {
            name,
            image: image(&functions, maps),
            end: if takes {
                End::Stopped("OutOfMemory")
            } else {
                budget
            },
        });
    };
    add_one("an endless loop", vec![vec![SPIN]], Vec::new());
    let mut turns = vec![set(1, 8 << 20)];
    turns.extend(wide(2, 4, 1));
    turns.extend([set(3, 0), set(4, 0), call(LOOP), insn(0x05, 0, 0, -7, 0)]);
    let body = vec![set(0, 0), EXIT];
    add_one("an endless loop of bpf_loop", vec![turns, body], Vec::new());
    let mut looks = on_map(LOOKUP);
    looks.push(insn(0x05, 0, 0, -(looks.len() as i16) - 1, 0));
    let array = map(MapKind::Array, 4, 8, 1);
    add_one("an endless loop of look-ups", vec![looks], vec![array]);
    let mut prints = wide(1, 2, 0).to_vec();
    prints.extend([set(2, 8), call(6), insn(0x05, 0, 0, -5, 0)]);
    let text = MapDef {
        initial: Some(Arc::from(*b"endless\0")),
        ..map(MapKind::Array, 4, 8, 1)
    };
    add_one("an endless loop of printing", vec![prints], vec![text]);
    let objects = vec![set(1, 1), set(2, 0), call(OBJ_NEW), insn(0x05, 0, 0, -4, 0)];
    add_one("an endless loop of objects", vec![objects], Vec::new());
    // One page at the end of the arena; then a million pages of which that is one.
    let mut frees = wide(1, 1, 0).to_vec();
    frees.extend(wide(2, 0, BASE + (16 << 30) - (17 << 12)));
    frees.extend([set(3, 1), set(4, 0), set(5, 0), call(ALLOC_PAGES)]);
    let start = frees.len();
    frees.extend(wide(1, 1, 0));
    frees.extend(wide(2, 0, BASE + (12 << 30)));
    frees.extend([set(3, 1 << 20), call(FREE_PAGES)]);
    let back = (frees.len() - start) as i16;
    frees.push(insn(0x05, 0, 0, -back - 1, 0));
    let arena = map(MapKind::Arena, 0, 0, 1 << 20);
    add_one("an endless loop of freeing pages", vec![frees], vec![arena]);
}

fn depths(attacks: &mut Vec<Attack>) {
    let depth = End::Stopped("CallDepth");
    let mut add_one = |name, functions: Vec<Vec<Insn>>| {
        attacks.push(Attack {
            name,
            image: image(&functions, Vec::new()),
            end: depth,
        });
    };
    let itself = insn(0x85, 0, 1, 0, 0);
    add_one("recursion", vec![vec![itself, EXIT]]);
    let mutual = vec![insn(0x85, 0, 1, 0, 1), EXIT];
    add_one("mutual recursion", vec![mutual, vec![itself, EXIT]]);
    let nest = vec![set(1, 0), set(2, 0), call(NEST), EXIT];
    add_one("recursion through the host", vec![nest]);
    let mut callback = vec![set(1, 1)];
    callback.extend(wide(2, 4, 0));
    callback.extend([set(3, 0), set(4, 0), call(LOOP), EXIT]);
    add_one("callbacks in callbacks", vec![callback]);
}

#[expect(clippy::too_many_lines, reason = "a list of attacks")]
fn sizes(attacks: &mut Vec<Attack>) {
    let mut add_one = |name, functions: Vec<Vec<Insn>>, maps, end| {
        attacks.push(Attack {
            name,
            image: image(&functions, maps),
            end,
        });
    };
    let nothing = || vec![vec![set(0, 0), EXIT]];
    for (name, kind, key, value, entries) in [
        ("a huge array", MapKind::Array, 4, 1 << 20, u32::MAX),
        ("an array of huge values", MapKind::Array, 4, u32::MAX, 1),
        (
            "a huge array for each CPU",
            MapKind::PercpuArray,
            4,
            1 << 20,
            1 << 12,
        ),
        ("a huge queue", MapKind::Queue, 0, 1 << 20, u32::MAX),
        ("a huge stack", MapKind::Stack, 0, 1 << 20, u32::MAX),
    ] {
        add_one(
            name,
            nothing(),
            vec![map(kind, key, value, entries)],
            End::Refused,
        );
    }
    let hash = |value| vec![map(MapKind::Hash, 8, value, u32::MAX)];
    let fill = |more: &[Insn]| vec![with_every_key(1 << 19, UPDATE, more)];
    add_one(
        "a hash that is filled until it is full",
        fill(&[]),
        hash(8),
        End::Stopped("OutOfMemory"),
    );
    add_one(
        "a hash of large values that is filled",
        fill(&[]),
        hash(512),
        End::Stopped("OutOfMemory"),
    );
    // What left a map is kept until no program can have its address.
    add_one(
        "elements that come and go",
        fill(&on_map(DELETE)),
        hash(8),
        End::Stopped("OutOfMemory"),
    );
    let lru = vec![map(MapKind::LruHash, 8, 8, u32::MAX)];
    add_one(
        "a hash that forgets, and is filled",
        fill(&[]),
        lru,
        End::Stopped("OutOfMemory"),
    );
    let pages = 3 << 9;
    let array = vec![map(MapKind::Array, 4, 4096 * pages, 1)];
    let mut touch = wide(6, 2, 0).to_vec();
    touch.extend(a_store_in_every_page(pages as i32));
    add_one(
        "a store in every page of an array",
        vec![touch],
        array,
        End::Harmless,
    );
    let arena = || vec![map(MapKind::Arena, 0, 0, 1 << 20)];
    // Offset 0 of the arena's window: its pages were not asked for.
    let mut touch = wide(6, 1, 0).to_vec();
    touch.extend([set(1, 1), set(7, 0)]);
    touch.extend(allocate(1));
    touch.extend([copy(6, 0)]);
    touch.extend(a_store_in_every_page(1 << 19));
    add_one(
        "a store in every page of an arena",
        vec![touch],
        arena(),
        End::Harmless,
    );
    let mut taken = vec![set(6, 1 << 14)];
    let start = taken.len();
    taken.extend(allocate(1));
    // Whoever got none has a null pointer, which is nobody's page.
    taken.extend([insn(0x15, 0, 0, 1, 0), store_byte(0), add(6, -1)]);
    let len = (taken.len() - start) as i16;
    taken.extend([again(6, len), set(0, 0), EXIT]);
    add_one(
        "an arena of which every page is taken",
        vec![taken],
        arena(),
        End::Stopped("OutOfMemory"),
    );
    let ring = vec![map(MapKind::Ringbuf, 0, 0, 1 << 30)];
    let mut reserve = vec![set(6, 1 << 14)];
    let start = reserve.len();
    reserve.extend(wide(1, 1, 0));
    reserve.extend([set(2, 1 << 16), set(3, 0), call(RESERVE), add(6, -1)]);
    let len = (reserve.len() - start) as i16;
    reserve.extend([again(6, len), set(0, 0), EXIT]);
    add_one(
        "a huge ring that is filled",
        vec![reserve],
        ring,
        End::Stopped("OutOfMemory"),
    );
}

/// `bpf_arena_alloc_pages(map 0, NULL, pages, NUMA_NO_NODE, 0)`.
fn allocate(pages: i32) -> Vec<Insn> {
    let mut code = wide(1, 1, 0).to_vec();
    code.extend([
        set(2, 0),
        set(3, pages),
        set(4, -1),
        set(5, 0),
        call(ALLOC_PAGES),
    ]);
    code
}
