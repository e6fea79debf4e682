//! What bounds a program's time and memory, on every back end.

use super::BACKEND;
use crate::scene::insn::{EXIT, add, address, call, copy, ja, load, mov, store};
use crate::scene::{SceneObject, SceneWorld};
use crate::{CallCtx, Config, Errno, HostFunction, Insn, Instance, MapKind, Stop, Update};

/// How often the import `name` was called.
fn calls_of(vm: &Instance<SceneWorld>, name: &str) -> u64 {
    vm.calls()
        .filter(|(other, _)| *other == name)
        .map(|(_, calls)| calls)
        .sum()
}

#[test]
fn pages_that_are_looked_at_and_not_freed_use_up_the_budget() {
    let alloc = [
        copy(6, 1),
        load(2, 6, 0),
        mov(3, 1),
        mov(4, 0),
        mov(5, 0),
        call(0),
        EXIT,
    ];
    // Frees a million pages, of which one was ever allocated, again and again.
    let free = [copy(2, 6), mov(3, 1 << 20), call(1), ja(-6)];
    let config = Config {
        budget: 1_000_000,
        tally: true,
        ..Config::default()
    };
    let handle = address(1, 1, 0);
    let mut vm = SceneObject::default()
        .map(MapKind::Arena, 0, 0, 1 << 20)
        .import("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)")
        .import("bpf_arena_free_pages", "void(ptr,ptr,u32)")
        .function(&[&alloc[..1], &handle, &alloc[1..]])
        .function(&[&[load(6, 1, 0)], &handle, &free])
        .with(BACKEND, &[], config);
    let host = &mut SceneWorld::default();
    let base = vm.memory().arena().expect("an arena").base();
    let last = base + ((1 << 20) - 17) * 4096;
    assert_eq!(vm.call_program(0, &[last], host), Ok(last));
    let fault = vm.call_program(1, &[base], host).unwrap_err();
    assert_eq!(fault.stop, Stop::Budget { budget: 1_000_000 });
    let calls = calls_of(&vm, "bpf_arena_free_pages");
    assert!((1..=9).contains(&calls), "{calls} calls");
}

#[test]
fn a_block_of_any_length_is_one_whether_it_fits_into_the_budget_ends_or_fails() {
    let host = &mut SceneWorld::default();
    for len in [254, 255, 256, 257, 511, 512, 513, 5000] {
        let adds = vec![add(0, 1); len];
        let with = |budget, rest: &[Insn]| {
            let config = Config {
                budget,
                ..Config::default()
            };
            let object = SceneObject::default().function(&[&[mov(0, 0)], &adds, rest]);
            object.with(BACKEND, &[], config)
        };
        let len = len as u64;
        let mut vm = with(len + 2, &[EXIT]);
        assert_eq!(vm.call_program(0, &[], host), Ok(len));
        assert_eq!(vm.retired(), len + 2);
        let mut vm = with(len + 1, &[EXIT]);
        let fault = vm.call_program(0, &[], host).unwrap_err();
        assert_eq!(fault.stop, Stop::Budget { budget: len + 1 });
        assert_eq!((fault.insn, vm.retired()), (0, 0));
        // A store to nowhere, and as much again behind it.
        let rest = [&[store(2, 0, 0)], &adds[..], &[EXIT]].concat();
        let mut vm = with(20_000, &rest);
        let fault = vm.call_program(0, &[], host).unwrap_err();
        assert!(matches!(fault.stop, Stop::WildStore { address: 0, .. }));
        assert_eq!((u64::from(fault.insn), vm.retired()), (len + 1, len + 2));
    }
}

#[test]
fn the_budget_of_the_whole_run_ends_it_with_its_own_name() {
    // Turns of three instructions behind one, as in `tests.rs`: 10 fit into a budget of 12.
    let code = [mov(0, 0), add(0, 1), add(0, 1), ja(-3)];
    let config = Config {
        budget: 12,
        total_budget: Some(25),
        ..Config::default()
    };
    let object = SceneObject::default().function(&[&code]);
    let mut vm = object.with(BACKEND, &[], config);
    let mut stops = Vec::new();
    for _ in 0..4 {
        let fault = vm
            .call_program(0, &[], &mut SceneWorld::default())
            .unwrap_err();
        stops.push(fault.stop);
    }
    let (own, whole) = (
        Stop::Budget { budget: 12 },
        Stop::TotalBudget { budget: 25 },
    );
    assert_eq!(stops, [own.clone(), own, whole.clone(), whole]);
    // Two calls with 10 each, one with a first block and a turn; then one instruction is left.
    assert_eq!(vm.retired(), 25);
}

#[test]
fn what_functions_do_for_a_program_counts_into_the_budget_of_the_whole_run() {
    let compare = [mov(2, 1 << 20), mov(3, 0), call(0), mov(0, 0), EXIT];
    let config = Config {
        // A comparison of a mebibyte is worth 131,072 instructions.
        total_budget: Some(300_000),
        ..Config::default()
    };
    let mut vm = SceneObject::default()
        .import("bpf_strncmp", "")
        .function(&[&address(1, 0, 0), &compare])
        .with(BACKEND, &[], config);
    let host = &mut SceneWorld::default();
    assert_eq!(vm.call_program(0, &[], host), Ok(0));
    assert_eq!(vm.call_program(0, &[], host), Ok(0));
    let fault = vm.call_program(0, &[], host).unwrap_err();
    assert_eq!(fault.stop, Stop::TotalBudget { budget: 300_000 });
}

/// A host that keeps something for each iterator, of 48 bytes as the one over a queue.
fn iterators() -> [HostFunction<SceneWorld>; 2] {
    let function = |name, body| HostFunction {
        name,
        prototype: "void()",
        cost_ps: 0,
        body: Some(body),
        direct: None,
    };
    let new: crate::Body<SceneWorld> =
        |ctx: &mut CallCtx<'_, SceneWorld>, _| ctx.vm.open_iterator(48).map(|()| 0);
    let destroy: crate::Body<SceneWorld> =
        |ctx: &mut CallCtx<'_, SceneWorld>, _| ctx.vm.close_iterator().map(|()| 0);
    [function("new", new), function("destroy", destroy)]
}

#[test]
fn an_iterator_must_be_ended_and_few_can_be_open() {
    let mut vm = SceneObject::default()
        .import("new", "void()")
        .import("destroy", "void()")
        .function(&[&[call(0), call(1), mov(0, 0), EXIT]])
        .function(&[&[call(0), EXIT]])
        .function(&[&[call(0), ja(-2)]])
        .function(&[&[call(1), EXIT]])
        .with(BACKEND, &iterators(), Config::default());
    let refusal = |vm: &mut Instance<SceneWorld>, function| match vm.call_program(
        function,
        &[],
        &mut SceneWorld::default(),
    ) {
        Err(fault) => fault.stop.to_string(),
        Ok(result) => panic!("function {function} gave {result}"),
    };
    assert_eq!(vm.call_program(0, &[], &mut SceneWorld::default()), Ok(0));
    assert_eq!(
        refusal(&mut vm, 1),
        "the program ended and left an open iterator"
    );
    assert_eq!(refusal(&mut vm, 2), "more than 85 iterators are open");
    assert_eq!(
        refusal(&mut vm, 3),
        "an iterator was released and is not held"
    );
    assert_eq!(vm.call_program(0, &[], &mut SceneWorld::default()), Ok(0));
}

#[test]
fn objects_pages_and_elements_share_one_limit_and_end_the_program_that_reaches_it() {
    let object = |function: &[Insn]| {
        SceneObject::default()
            .map(MapKind::Arena, 0, 0, 1 << 20)
            .map(MapKind::Hash, 8, 8, 1 << 20)
            .map(MapKind::TaskStorage, 4, 64, 0)
            .own_type(40, 4000, &[])
            .own_type(41, 1, &[])
            .import("bpf_obj_new_impl", "ptr(u64,ptr)")
            .import("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)")
            .import("bpf_map_update_elem", "")
            .import("bpf_task_storage_get", "")
            .function(&[function])
    };
    let config = || Config {
        memory_bytes: 1 << 20,
        ..Config::default()
    };
    let object_of = |ty| vec![mov(1, ty), mov(2, 0), call(0)];
    let arena = [
        &address(1, 1, 0)[..],
        &[mov(2, 0), mov(3, 1), mov(4, 0), mov(5, 0), call(1)],
    ];
    let on_stack = [copy(2, 10), add(2, -8), copy(3, 2), mov(4, 0)];
    let update = [&address(1, 1, 1)[..], &on_stack, &[call(2)]];
    let storage = [
        &address(1, 1, 2)[..],
        &[mov(2, 77), mov(3, 0), mov(4, 1), call(3)],
    ];
    let cases = [
        object_of(40),
        object_of(41),
        arena.concat(),
        update.concat(),
        storage.concat(),
    ];
    for ask in cases {
        let code = [&ask[..], &[EXIT]].concat();
        let mut vm = object(&code).with(BACKEND, &[], config());
        // Without the others there is room.
        let given = vm.call_program(0, &[], &mut SceneWorld::default());
        assert!(given.is_ok(), "{given:?}");
        let mut vm = object(&code).with(BACKEND, &[], config());
        for size in [4096, 16] {
            while vm.memory().alloc_map(size).is_ok() {}
        }
        let fault = vm
            .call_program(0, &[], &mut SceneWorld::default())
            .unwrap_err();
        let limit = config().memory_bytes;
        assert_eq!(fault.stop, Stop::OutOfMemory { limit });
        assert_eq!(fault.insn as usize, ask.len() - 1, "where it asked");
    }
}

#[test]
fn what_user_space_was_refused_ends_no_program() {
    let ask = [mov(1, 40), mov(2, 0), call(0), EXIT];
    let mut vm = SceneObject::default()
        .map(MapKind::Hash, 8, 8, 1 << 20)
        .own_type(40, 40, &[])
        .import("bpf_obj_new_impl", "ptr(u64,ptr)")
        .function(&[&ask])
        .with(
            BACKEND,
            &[],
            Config {
                memory_bytes: 1 << 20,
                ..Config::default()
            },
        );
    let room = vm.memory().alloc_map(40).unwrap();
    for size in [4096, 16] {
        while vm.memory().alloc_map(size).is_ok() {}
    }
    let (key, value) = (7_u64.to_le_bytes(), [0; 8]);
    let refused = vm.map_update(0, &Update::new(&key, &value), &mut SceneWorld::default());
    assert_eq!(refused, Err(Errno::ENOMEM));
    vm.memory().free_map(room, 40);
    let made = vm.call_program(0, &[], &mut SceneWorld::default());
    assert!(made.as_ref().is_ok_and(|it| *it != 0), "{made:?}");
}

#[test]
fn an_arena_that_is_full_gives_null_as_in_a_kernel() {
    let ask = [
        &address(1, 1, 0)[..],
        &[mov(2, 0), mov(3, 3), mov(4, 0), mov(5, 0), call(0), EXIT],
    ];
    let mut vm = SceneObject::default()
        .map(MapKind::Arena, 0, 0, 2)
        .import("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)")
        .function(&[&ask.concat()])
        .with(BACKEND, &[], Config::default());
    assert_eq!(vm.call_program(0, &[], &mut SceneWorld::default()), Ok(0));
}
