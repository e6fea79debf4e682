use crate::scene::SceneObject;
use crate::scene::insn::{EXIT, add, address, cast, copy, ja, load, mov, store};
use crate::{Backend, Insn, MapKind};

fn call_local(function: i32) -> Insn {
    Insn {
        code: 0x85,
        dst: 0,
        src: 1,
        off: 0,
        imm: function,
    }
}

const fn jump_if_null(register: u8, off: i16) -> Insn {
    Insn {
        code: 0x15,
        dst: register,
        src: 0,
        off,
        imm: 0,
    }
}

/// Slots of the instructions of these functions that access the arena.
fn marked(functions: &[&[Insn]]) -> Vec<u32> {
    let object = SceneObject::default().map(MapKind::Arena, 0, 0, 10);
    let object = functions
        .iter()
        .fold(object, |object, code| object.function(&[*code]));
    let vm = object.instance(Backend::Interpreter);
    let ops = vm.code.ops.iter().zip(&vm.code.origin);
    ops.filter(|(op, _)| op.arena)
        .map(|(_, slot)| *slot)
        .collect()
}

#[test]
fn a_pointer_is_followed_from_its_cast_through_copies_and_arithmetic() {
    let code = [
        load(2, 1, 0), // the context's: no
        cast(3, 2),
        load(4, 3, 0), // 2
        load(5, 2, 0), // what was cast: no
        copy(5, 3),
        add(5, 64),
        store(5, 8, 4), // 6
        load(0, 4, 0),  // a number that was loaded: no
        mov(3, 0),
        load(0, 3, 0), // no more
        EXIT,
    ];
    assert_eq!(marked(&[&code]), [2, 6]);
}

#[test]
fn a_pointer_survives_in_the_frame_until_something_else_is_stored_there() {
    let code = [
        cast(2, 1),
        store(10, -16, 2),
        mov(2, 0),
        copy(3, 10),
        add(3, -16),
        load(4, 3, 0),
        load(0, 4, 0), // 6
        store(10, -16, 1),
        load(4, 10, -16),
        load(0, 4, 0), // no
        EXIT,
    ];
    assert_eq!(marked(&[&code]), [6]);
}

#[test]
fn where_ways_meet_the_arena_wins() {
    // What a compiler makes of a loop over a list: null on the way that a verifier cuts off.
    let code = [
        mov(2, 0),
        jump_if_null(1, 1),
        cast(2, 1),
        load(0, 2, 0), // 3
        copy(1, 0),
        ja(-5),
        EXIT,
    ];
    assert_eq!(marked(&[&code]), [3]);
}

#[test]
fn functions_get_and_give_pointers() {
    // The callee comes first, and is looked at again when its caller is known.
    let callee = [load(0, 1, 0), copy(0, 2), EXIT];
    let caller = [
        cast(1, 1),
        cast(2, 1),
        call_local(0),
        load(0, 0, 0), // 6
        load(0, 1, 0), // calls leave nothing in r1
        EXIT,
    ];
    assert_eq!(marked(&[&callee, &caller]), [0, 6]);
    let plain = [call_local(0), load(0, 0, 0), EXIT];
    assert_eq!(marked(&[&callee, &plain]), [0; 0]);
}

#[test]
fn without_an_arena_nothing_is_marked() {
    let object =
        SceneObject::default().function(&[&address(1, 0, 5), &[cast(1, 1), load(0, 1, 0), EXIT]]);
    let vm = object.instance(Backend::Interpreter);
    assert!(vm.code.ops.iter().all(|op| !op.arena));
}
