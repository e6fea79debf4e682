//! What accesses to the arena do, on every back end. Source of each answer: `arena.rs`.

use super::BACKEND;
use crate::scene::insn::{EXIT, add, address, call, cast, copy, load, mov, store, store_u32};
use crate::scene::{SceneObject, SceneWorld};
use crate::{ArenaFault, Config, Insn, Instance, MapKind, Pages, Stop};

/// An atomic operation of 64 bits: `imm` says which.
const fn atomic(dst: u8, off: i16, src: u8, imm: i32) -> Insn {
    Insn {
        code: 0xdb,
        dst,
        src,
        off,
        imm,
    }
}

/// A load of another kind than 64 bits.
const fn load_of(code: u8, dst: u8, src: u8, off: i16) -> Insn {
    Insn {
        code,
        ..load(dst, src, off)
    }
}

/// An arena of 10 pages at a multiple of 4 GiB. Function 0 allocates the page at the address in
/// its context, or any one; function 1 is `code`.
fn with_arena(code: &[Insn]) -> Instance<SceneWorld> {
    let alloc = [
        load(2, 1, 0),
        mov(3, 1),
        mov(4, 0),
        mov(5, 0),
        call(0),
        EXIT,
    ];
    SceneObject::default()
        .map(MapKind::Arena, 0, 0, 10)
        .import("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)")
        .function(&[&alloc[..1], &address(1, 1, 0), &alloc[1..]])
        .function(&[code])
        .with(
            BACKEND,
            &[],
            Config {
                cpus: 4,
                ..Config::default()
            },
        )
}

fn base(vm: &mut Instance<SceneWorld>) -> u64 {
    vm.memory().arena().expect("an arena").base()
}

/// Allocates a page, at `at` bytes from the arena's begin or anywhere.
fn allocate(vm: &mut Instance<SceneWorld>, at: Option<u64>) -> u64 {
    let wanted = at.map_or(0, |at| base(vm) + at);
    vm.call_program(0, &[wanted], &mut SceneWorld::default())
        .expect("there is room")
}

/// Calls the code with a word in its context.
fn run(vm: &mut Instance<SceneWorld>, word: u64) -> u64 {
    let result = vm.call_program(1, &[word], &mut SceneWorld::default());
    result.expect("an access to the arena ends nothing")
}

/// Whether each fault is a store, where it was from the arena's begin, its instruction, and how
/// often.
fn faults(vm: &mut Instance<SceneWorld>) -> Vec<(bool, i64, u32, u64)> {
    let base = base(vm);
    let at = |fault: ArenaFault| {
        let at = fault.address.wrapping_sub(base).cast_signed();
        assert_eq!(fault.program, "function1");
        (fault.is_store, at, fault.insn, fault.count)
    };
    vm.arena_faults().into_iter().map(at).collect()
}

#[test]
fn a_pointer_of_0_is_the_arenas_first_page() {
    let code = [
        mov(1, 0),
        cast(1, 1),
        store_u32(1, 16, 7),
        load(0, 1, 16),
        EXIT,
    ];
    let mut vm = with_arena(&code);
    let first = allocate(&mut vm, None);
    assert_eq!(first, base(&mut vm), "a kernel gives the first page first");
    assert_eq!(run(&mut vm, 0), 7);
    assert_eq!(vm.memory().load_u64(first + 16), 7);
    assert_eq!(faults(&mut vm), []);
}

#[test]
fn where_no_page_is_a_load_gives_0_and_a_store_is_lost_and_both_are_counted() {
    let code = [
        load(2, 1, 0),
        cast(2, 2),
        mov(0, 5),
        store_u32(2, 8, 7),
        load(0, 2, 8),
        EXIT,
    ];
    let mut vm = with_arena(&code);
    // The first page is none as long as nobody has it, and no null pointer either.
    for word in [0, 4096, 0] {
        assert_eq!(run(&mut vm, word), 0);
    }
    assert_eq!(faults(&mut vm), [(true, 8, 3, 3), (false, 8, 4, 3)]);
    let page = allocate(&mut vm, Some(4096));
    assert_eq!(vm.memory().load_u64(page + 8), 0, "it was lost");
    assert_eq!(run(&mut vm, page), 7);
    assert_eq!(faults(&mut vm).len(), 2);
    // Beyond the arena's 10 pages there is nothing, and nothing below them.
    assert_eq!(run(&mut vm, 10 * 4096), 0);
    assert_eq!(faults(&mut vm)[0], (true, 8, 3, 4));
}

#[test]
fn only_the_low_half_of_a_pointer_counts_and_arithmetic_goes_round() {
    let code = [
        load(2, 1, 0),
        cast(2, 2),
        // Two billions twice, and 0x2000: round to 0x1000 behind where it began.
        add(2, i32::MAX),
        add(2, i32::MAX),
        add(2, 0x1002),
        store_u32(2, 0, 9),
        load_of(0x61, 0, 2, 0),
        EXIT,
    ];
    let mut vm = with_arena(&code);
    let page = allocate(&mut vm, Some(4096));
    assert_eq!(run(&mut vm, 0xdead_beef << 32), 9);
    assert_eq!(vm.memory().load_u64(page), 9);
    assert_eq!(faults(&mut vm), []);
}

#[test]
fn beside_the_window_nothing_is_reached() {
    let code = [
        load(2, 1, 0),
        cast(2, 2),
        store_u32(2, -0x8000, 7),
        load(0, 2, -0x8000),
        load(3, 2, 0x7fff),
        store(2, 0x7fff, 3),
        EXIT,
    ];
    let mut vm = with_arena(&code);
    allocate(&mut vm, None);
    assert_eq!(run(&mut vm, 0), 0);
    assert_eq!(run(&mut vm, 0xffff_ffff), 0);
    let (low, high) = (-0x8000, 0x7fff);
    assert_eq!(
        faults(&mut vm),
        [
            (true, low, 2, 2),
            (false, low, 3, 2),
            (false, high, 4, 2),
            (true, high, 5, 2)
        ]
    );
}

#[test]
fn an_access_over_the_end_of_a_page_needs_both() {
    let code = [
        load(2, 1, 0),
        cast(2, 2),
        mov(3, -1),
        store(2, 4092, 3),
        load(0, 2, 4092),
        EXIT,
    ];
    let mut vm = with_arena(&code);
    let page = allocate(&mut vm, Some(0));
    assert_eq!(run(&mut vm, page), 0);
    assert_eq!(faults(&mut vm), [(true, 4092, 3, 1), (false, 4092, 4, 1)]);
    assert_eq!(vm.memory().load_u64(page + 4088), 0, "not even half of it");
    allocate(&mut vm, Some(4096));
    assert_eq!(run(&mut vm, page), u64::MAX);
    assert_eq!(vm.memory().load_u64(page + 4096), u64::from(u32::MAX));
    assert_eq!(faults(&mut vm).len(), 2);
}

#[test]
fn an_atomic_operation_faults_once_and_has_found_0() {
    const ADD_FETCH: i32 = 0x01;
    const COMPARE: i32 = 0xf1;
    let code = [
        load(6, 1, 0),
        cast(6, 6),
        mov(2, 5),
        atomic(6, 0, 2, ADD_FETCH),
        // With what is there, so that it stores; then with something else.
        copy(0, 2),
        add(0, 5),
        mov(3, 40),
        atomic(6, 0, 3, COMPARE),
        mov(0, 77),
        atomic(6, 0, 3, COMPARE),
        EXIT,
    ];
    let mut vm = with_arena(&code);
    assert_eq!(run(&mut vm, 0), 0);
    assert_eq!(
        faults(&mut vm),
        [(true, 0, 3, 1), (true, 0, 7, 1), (true, 0, 9, 1)]
    );
    let page = allocate(&mut vm, None);
    assert_eq!(run(&mut vm, page), 40);
    assert_eq!(vm.memory().load_u64(page), 40);
    assert_eq!(faults(&mut vm)[0].3, 1);
}

#[test]
fn narrow_and_signed_accesses_do_the_same() {
    let code = [
        load(2, 1, 0),
        cast(2, 2),
        mov(3, -2),
        Insn {
            code: 0x73, // u8
            ..store(2, 0, 3)
        },
        Insn {
            code: 0x6b, // u16
            ..store(2, 2, 3)
        },
        Insn {
            code: 0x63, // u32
            ..store(2, 4, 3)
        },
        load_of(0x91, 0, 2, 0), // s8
        load_of(0x89, 4, 2, 2), // s16
        load_of(0x81, 5, 2, 4), // s32
        load_of(0x71, 3, 2, 0), // u8
        Insn {
            code: 0x0f,
            ..copy(0, 4)
        },
        Insn {
            code: 0x0f,
            ..copy(0, 5)
        },
        Insn {
            code: 0x0f,
            ..copy(0, 3)
        },
        EXIT,
    ];
    let mut vm = with_arena(&code);
    let page = allocate(&mut vm, None);
    assert_eq!(run(&mut vm, page).cast_signed(), -6 + 0xfe);
    assert_eq!(vm.memory().load_u64(page), 0xffff_fffe_fffe_00fe);
    assert_eq!(run(&mut vm, page + Pages::SIZE), 0);
    assert_eq!(faults(&mut vm).len(), 7);
}

#[test]
fn what_a_kernel_would_not_take_for_the_arena_is_a_wild_store_still() {
    let wild = |code: &[Insn]| {
        let mut vm = with_arena(code);
        allocate(&mut vm, None);
        let fault = vm.call_program(1, &[0], &mut SceneWorld::default());
        let fault = fault.expect_err("a verifier would refuse it");
        assert_eq!(faults(&mut vm), []);
        fault.stop
    };
    let at = |address| Stop::WildStore { address, size: 4 };
    // A null pointer that no cast has made.
    let null = [mov(2, 0), store_u32(2, 16, 7), mov(0, 0), EXIT];
    assert_eq!(wild(&null), at(16));
    // One of user space's, and one that was loaded from the arena.
    let to_user = Insn {
        imm: 1 << 16,
        ..cast(2, 2)
    };
    let user = [
        load(2, 1, 0),
        cast(2, 2),
        to_user,
        store_u32(2, 0, 7),
        mov(0, 0),
        EXIT,
    ];
    assert_eq!(wild(&user), at(0));
    let loaded = [
        load(2, 1, 0),
        cast(2, 2),
        load(2, 2, 8),
        store_u32(2, 24, 7),
        mov(0, 0),
        EXIT,
    ];
    assert_eq!(wild(&loaded), at(24));
}
