//! What is special about native code; that it does what the interpreter does is tested elsewhere.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::scene::insn::{
    EXIT, add, add_register, address, call, copy, ja, load, mov, store, store_u32,
};
use crate::scene::{SceneObject, SceneWorld};
use crate::{
    BASE, Backend, CallCtx, Config, Direct, Execution, HostFunction, Insn, Instance, InstanceError,
    MapKind, PRICE, Refusal, Stop,
};

fn table(body: crate::Body<SceneWorld>) -> [HostFunction<SceneWorld>; 1] {
    table_with(body, None)
}

fn table_with(
    body: crate::Body<SceneWorld>,
    direct: Option<Direct<SceneWorld>>,
) -> [HostFunction<SceneWorld>; 1] {
    [HostFunction {
        name: "host",
        prototype: "void()",
        cost_ps: 0,
        body: Some(body),
        direct,
    }]
}

/// Function 0 calls the host, function 1 gives 7.
fn caller() -> SceneObject {
    SceneObject::default()
        .import("host", "void()")
        .function(&[&[mov(6, 1), call(0), copy(0, 6), EXIT]])
        .function(&[&[mov(0, 7), EXIT]])
}

fn panicking(_: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
    std::panic::panic_any("out of the host");
}

/// Calls function 0 again, until that goes too deep, and then panics.
fn deep(ctx: &mut CallCtx<'_, SceneWorld>, args: [u64; 5]) -> Result<u64, Stop> {
    match ctx.vm.call_program(0, &[], ctx.host) {
        Err(fault) if fault.stop == (Stop::CallDepth { limit: 8 }) => panicking(ctx, args),
        result => Ok(result?),
    }
}

#[test]
fn a_panic_of_a_host_function_goes_on_behind_native_code() {
    for table in [
        table(panicking),
        table(deep),
        table_with(panicking, Some(Direct::of(panicking))),
        table_with(deep, Some(Direct::of(deep))),
    ] {
        let mut vm = caller().with(Backend::Jit, &table, Config::default());
        let call = AssertUnwindSafe(|| vm.call_program(0, &[], &mut SceneWorld::default()));
        let panic = catch_unwind(call).expect_err("the host panics");
        assert_eq!(panic.downcast_ref(), Some(&"out of the host"));
    }
}

#[test]
fn an_object_above_the_limit_is_interpreted_and_says_so() {
    let config = |backend| Config {
        native_limit: 5,
        backend,
        ..Config::default()
    };
    let refusal = Refusal::TooLarge {
        instructions: 6,
        limit: 5,
    };
    let table = table(|_, _| Ok(0));
    let demanded = Instance::new(caller().image(), &table, config(Backend::Jit));
    assert!(matches!(demanded, Err(InstanceError::Native(said)) if said == refusal));

    let looping = [
        mov(0, 0),
        add(0, 1),
        Insn {
            code: 0xa5,
            off: -2,
            imm: 200_000,
            ..mov(0, 0)
        },
    ];
    let object = || SceneObject::default().function(&[&looping, &[EXIT, EXIT, EXIT]]);
    let mut vm = object().with(Backend::Auto, &[], config(Backend::Auto));
    for _ in 0..2 {
        assert_eq!(
            vm.call_program(0, &[], &mut SceneWorld::default()),
            Ok(200_000)
        );
    }
    assert_eq!(vm.execution(), Execution::Refused(refusal));
}

/// Counts to `turns` and gives that; `extra` makes the code another one.
fn counting_to(turns: i32, extra: i32) -> SceneObject {
    let turn = Insn {
        code: 0xa5,
        off: -2,
        imm: turns,
        ..mov(0, 0)
    };
    let body = [mov(3, extra), mov(0, 0), add(0, 1), turn, EXIT];
    SceneObject::default()
        .function(&[&body])
        .function(&[&[mov(0, 7), EXIT]])
}

/// Calls `function` until there is native code. Gives the calls before.
fn calls_until_native(vm: &mut Instance<SceneWorld>, function: u32, most: u32) -> u32 {
    let is_native = |vm: &Instance<SceneWorld>| matches!(vm.execution(), Execution::Native { .. });
    let mut calls = 0;
    while !is_native(vm) && calls < most {
        let result = vm.call_program(function, &[], &mut SceneWorld::default());
        result.expect("it counts");
        calls += 1;
    }
    calls
}

#[test]
fn functions_are_translated_when_interpreting_them_has_taken_as_long() {
    let turns = i32::try_from(PRICE / 2).expect("a small number");
    let mut vm = counting_to(turns, 1).with(Backend::Auto, &[], Config::default());
    // A call retires PRICE instructions, and the function has five.
    let calls = calls_until_native(&mut vm, 0, 100);
    let first_look = (crate::FIRST_LOOK / PRICE) as u32;
    assert!((5..=5 + first_look).contains(&calls), "{calls}");
    let translated = |vm: &Instance<SceneWorld>| match vm.execution() {
        Execution::Native {
            functions,
            instructions,
            ..
        } => (functions, instructions),
        _ => (0, 0),
    };
    assert_eq!(translated(&vm), (1, 5), "what nobody called stays as it is");
    // The other function is interpreted until it has become worth it, too.
    let mut host = SceneWorld::default();
    while translated(&vm).0 == 1 && vm.retired() < 1_000_000 {
        assert_eq!(vm.call_program(1, &[], &mut host), Ok(7));
    }
    assert_eq!(translated(&vm), (2, 7));
    assert_eq!(vm.call_program(0, &[], &mut host), Ok(turns as u64));
}

#[test]
fn what_instances_have_interpreted_counts_for_the_next_with_the_same_code() {
    let turns = i32::try_from(PRICE).expect("a small number");
    let auto = |extra| counting_to(turns, extra).with(Backend::Auto, &[], Config::default());
    let alone = calls_until_native(&mut auto(2), 0, 100);
    let mut instances = 0;
    let found = loop {
        let mut vm = auto(3);
        // Too short a run to be worth it, again and again.
        let calls = calls_until_native(&mut vm, 0, alone.min(11));
        if matches!(vm.execution(), Execution::Native { .. }) {
            break calls;
        }
        instances += 1;
        assert!(instances < 10, "nothing is remembered");
    };
    assert!(found <= alone, "{found} calls, {alone} alone");
    // The next one takes it at its first look.
    let mut vm = auto(3);
    let first = calls_until_native(&mut vm, 0, 100);
    assert!(u64::from(first) <= crate::FIRST_LOOK / PRICE + 1, "{first}");
}

#[test]
fn a_thread_without_stack_enough_interprets() {
    let table = table(|ctx, _| {
        ctx.host.cpu = 1 + u32::from(ctx.vm.stack.roomy);
        Ok(0)
    });
    let mut vm = caller().with(Backend::Jit, &table, Config::default());
    let roomy = |vm: &mut Instance<SceneWorld>| {
        let mut world = SceneWorld::default();
        assert_eq!(vm.call_program(0, &[], &mut world), Ok(1));
        world.cpu
    };
    assert_eq!(roomy(&mut vm), 2);
    let small = std::thread::Builder::new().stack_size(128 << 10);
    let thread = small.spawn(move || (roomy(&mut vm), vm));
    let (there, mut vm) = thread.expect("a thread").join().expect("it ends");
    assert_eq!((there, roomy(&mut vm)), (1, 2));
}

/// Loads at all distances from pointers on both sides of both ends of the region, in an order in
/// which one check serves several of them; and from a pointer into memory that is not zero.
#[test]
fn loads_around_the_ends_of_the_region_give_what_lies_there() {
    let distances = [0, 1, -1, -8, 7, 0x7fff, -0x8000, 0x1000, -0x1000];
    let loads = distances
        .map(|at| [load(2, 1, at), add_register(0, 2)])
        .concat();
    let first = [load(3, 1, 8), load(1, 1, 0), mov(0, 0)];
    // The pointer moves, and what is known of it with it or not.
    let moves = [add_register(1, 3), add(1, 0x7000), add(1, -0xe000), EXIT];
    let parts = moves
        .each_ref()
        .map(|step| [&loads[..], std::slice::from_ref(step)].concat());
    let body = [&first[..], &parts.concat()].concat();
    let object = || SceneObject::default().function(&[&body]);
    let [mut interpreted, mut native] = [Backend::Interpreter, Backend::Jit]
        .map(|backend| object().with(backend, &[], Config::default()));
    let known = [&mut interpreted, &mut native].map(|vm| {
        let object = vm
            .memory()
            .alloc_kernel(1 << 17, 8)
            .expect("a little memory");
        (0..1 << 14).for_each(|at| vm.memory().poke_u64(object + 8 * at, at + 1));
        object
    });
    assert_eq!(known[0], known[1]);
    let (size, far) = (4 << 30, 1 << 16);
    let ends = [
        0,
        BASE,
        BASE + far,
        BASE + size - far,
        BASE + size,
        known[0] + far,
    ];
    let mut found = 0;
    for end in ends {
        for near in [
            -0x8000_i64,
            -0x7fff,
            -9,
            -8,
            -1,
            0,
            1,
            0x7ff8,
            0x7fff,
            0x8000,
        ] {
            for step in [0, 1, 0x1_0000_0000, u64::MAX] {
                let args = [end.wrapping_add_signed(near), step];
                let on = |vm: &mut Instance<SceneWorld>| {
                    vm.call_program(0, &args, &mut SceneWorld::default())
                };
                let expected = on(&mut interpreted);
                assert_eq!(on(&mut native), expected, "{args:x?}");
                found += u32::from(expected != Ok(0));
            }
        }
    }
    assert!((20..200).contains(&found), "{found} of 240 found something");
}

/// A program is called with a context that lies in the region, and native code counts on that. But
/// its address can be had, and a callback's arguments are anything.
#[test]
fn a_program_can_be_called_with_something_else_than_a_context() {
    let body = [load(0, 1, 8), EXIT];
    let mut results = Vec::new();
    for backend in [Backend::Interpreter, Backend::Jit] {
        let mut image = SceneObject::default().function(&[&body]).image();
        let programs = &mut Arc::get_mut(&mut image)
            .expect("nobody else has it")
            .programs;
        programs.push(crate::EntryPoint {
            name: "program".into(),
            section: "syscall".into(),
            function: 0,
            autoload: true,
            context: None,
        });
        let config = Config {
            backend,
            ..Config::default()
        };
        let mut vm = Instance::new(image, &[], config).expect("a good object");
        let mut world = SceneWorld::default();
        assert_eq!(vm.call_program(0, &[1, 2], &mut world), Ok(2));
        let address = vm.function_address(0).expect("it has one");
        for first in [0, 1 << 40, BASE - 8, BASE, u64::MAX - 15, !BASE] {
            results.push(vm.call_function(address, [first, 0, 0, 0, 0], &mut world));
        }
    }
    assert_eq!(results, [const { Ok(0) }; 12]);
}

#[test]
fn a_frozen_section_changes_for_nobody() {
    let section = SceneObject::default()
        .import("bpf_map_update_elem", "")
        .map(MapKind::Array, 4, 8, 1)
        .last_map(|map| {
            map.initial = Some([9, 0, 0, 0, 0, 0, 0, 0].into());
            map.frozen = true;
        });
    let key = [store_u32(10, -4, 0), copy(2, 10), add(2, -4)];
    let value = [
        mov(3, 5),
        store(10, -16, 3),
        copy(3, 10),
        add(3, -16),
        mov(4, 0),
    ];
    let object = section
        .function(&[&address(1, 1, 0), &key, &value, &[call(0), EXIT]])
        .function(&[&address(1, 2, 0), &[load(0, 1, 0), EXIT]])
        .function(&[&address(1, 2, 0), &[mov(2, 1), store(1, 0, 2), EXIT]]);
    let mut vm = object.instance(Backend::Jit);
    let host = &mut SceneWorld::default();
    let refused = crate::Errno::EPERM.to_r0();
    assert_eq!(vm.call_program(0, &[], host), Ok(refused));
    let fault = vm.call_program(2, &[], host).unwrap_err();
    assert!(matches!(fault.stop, Stop::WildStore { size: 8, .. }));
    assert_eq!(host.protected, [], "the host is not asked");
    assert_eq!(vm.call_program(1, &[], host), Ok(9));
}

/// Adds `step` to a counter and a constant to that.
fn counting(step: i32, constant: u8) -> SceneObject {
    let section = |bytes: [u8; 8], frozen| {
        move |map: &mut crate::MapDef| {
            map.initial = Some(bytes.into());
            map.frozen = frozen;
        }
    };
    SceneObject::default()
        .map(MapKind::Array, 4, 8, 1)
        .last_map(section([5, 0, 0, 0, 0, 0, 0, 0], false))
        .map(MapKind::Array, 4, 8, 1)
        .last_map(section([constant, 0, 0, 0, 0, 0, 0, 0], true))
        .function(&[
            &address(1, 2, 0),
            &[load(0, 1, 0), add(0, step), store(1, 0, 0)],
            &address(2, 2, 1),
            &[load(2, 2, 0), ADD_R2, EXIT],
        ])
}

/// `r0 += r2`.
const ADD_R2: Insn = Insn {
    code: 0x0f,
    dst: 0,
    src: 2,
    off: 0,
    imm: 0,
};

#[test]
fn instances_of_one_object_share_their_code_and_nothing_else() {
    let native = |object: SceneObject| object.with(Backend::Jit, &[], Config::default());
    let host = &mut SceneWorld::default();
    let (mut first, mut second) = (native(counting(1, 100)), native(counting(1, 100)));
    assert!(Arc::ptr_eq(
        first.native.as_ref().expect("native code"),
        second.native.as_ref().expect("native code")
    ));
    assert_eq!(first.call_program(0, &[], host), Ok(106));
    assert_eq!(first.call_program(0, &[], host), Ok(107));
    assert_eq!(second.call_program(0, &[], host), Ok(106));
    drop(first);
    assert_eq!(second.call_program(0, &[], host), Ok(107));
}

#[test]
fn what_the_code_was_made_of_tells_instances_apart() {
    let host = &mut SceneWorld::default();
    let two_cpus = Config {
        cpus: 2,
        ..Config::default()
    };
    for (object, config, result) in [
        (counting(2, 100), Config::default(), 107),
        (counting(1, 90), Config::default(), 96),
        (counting(1, 100), two_cpus, 106),
        (counting(1, 100), Config::default(), 106),
    ] {
        let mut vm = object.with(Backend::Jit, &[], config);
        assert_eq!(vm.call_program(0, &[], host), Ok(result));
    }
}

#[test]
fn a_dearer_or_other_host_function_is_not_that_of_an_earlier_instance() {
    let host = &mut SceneWorld::default();
    let one: crate::Body<SceneWorld> = |_, _| Ok(1);
    let two: crate::Body<SceneWorld> = |_, _| Ok(2);
    for (body, cost_ps, result) in [(one, 0, 1), (two, 0, 2), (one, 50, 1)] {
        let [function] = table(body);
        let dear = HostFunction {
            cost_ps,
            ..function
        };
        let object = SceneObject::default().import("host", "void()");
        let object = object.function(&[&[call(0), EXIT]]);
        let mut vm = object.with(Backend::Jit, &[dear], Config::default());
        assert_eq!(vm.call_program(0, &[], host), Ok(result));
        assert_eq!(vm.charged(), cost_ps);
    }
}

/// A kernel object of 64 bytes in which the word at 8 and that at 24 are open.
fn object_with_words(vm: &mut Instance<SceneWorld>) -> u64 {
    let object = vm.memory().alloc_kernel(64, 64).expect("a little memory");
    vm.memory().open_word(object + 8);
    vm.memory().open_word(object + 24);
    object
}

/// Gives a word that the host has a copy of.
fn copied(ctx: &mut CallCtx<'_, SceneWorld>, args: [u64; 5]) -> Result<u64, Stop> {
    Ok(ctx.host.words.get(&args[0]).copied().unwrap_or(0))
}

#[test]
fn only_a_whole_open_word_is_stored_without_asking() {
    // Double words from 0 to 63 bytes behind the object's beginning, then narrower stores.
    let wide = (0..64).map(|at| store(1, at, 2));
    let narrow = [(0x63, 4), (0x6b, 2), (0x73, 1)].into_iter();
    let narrow = narrow.flat_map(|(code, _)| {
        [8, 24].map(|at| Insn {
            code,
            ..store(1, at, 2)
        })
    });
    for (turn, insn) in wide.chain(narrow).enumerate() {
        let run = |backend| {
            let program = [load(1, 1, 0), mov(2, 77), insn, mov(0, 1), EXIT];
            let object = SceneObject::default().function(&[&program]);
            let mut vm = object.with(backend, &[], Config::default());
            let (at, mut host) = (object_with_words(&mut vm), SceneWorld::default());
            let result = vm.call_program(0, &[at], &mut host);
            let bytes = vm.memory().bytes(at, 80).expect("it exists").to_vec();
            (
                (result, bytes, host.words, vm.retired()),
                host.protected.len(),
            )
        };
        let (interpreted, asked) = run(Backend::Interpreter);
        let within = !(57..64).contains(&turn);
        assert_eq!(asked, usize::from(within), "the interpreter always asks");
        let (native, asked) = run(Backend::Jit);
        assert_eq!(native, interpreted, "{turn}: {insn:?}");
        assert_eq!(
            asked,
            usize::from(within && ![8, 24].contains(&turn)),
            "{turn}: {insn:?}"
        );
    }
}

#[test]
fn a_freed_object_has_no_open_words() {
    let program = [load(1, 1, 0), mov(2, 77), store(1, 8, 2), mov(0, 1), EXIT];
    let object = SceneObject::default().function(&[&program]);
    let mut vm = object.with(Backend::Jit, &[], Config::default());
    let (at, mut host) = (object_with_words(&mut vm), SceneWorld::default());
    vm.memory().free_kernel(at, 64);
    assert_eq!(vm.memory().alloc_kernel(64, 64), Ok(at));
    assert_eq!(vm.call_program(0, &[at], &mut host), Ok(1));
    assert_eq!(host.protected, [(at + 8, 8, 77)], "the host was asked");
}

#[test]
fn the_host_knows_of_a_store_before_it_is_called_and_when_the_call_ends() {
    // Function 0 stores 1 to 40 into one word, so that there is not room for all notes; then it
    // asks what the host knows. Function 1 stores and stops: at a budget, or in a nested call.
    let turns = [
        load(6, 1, 0),
        mov(2, 0),
        add(2, 1),
        store(6, 8, 2),
        Insn {
            code: 0xa5,
            off: -3,
            imm: 40,
            ..mov(2, 0)
        },
        copy(1, 6),
        add(1, 8),
        call(0),
        EXIT,
    ];
    let endless = [load(6, 1, 0), mov(2, 9), store(6, 24, 2), ja(-1)];
    let outer = [
        load(6, 1, 0),
        mov(2, 5),
        store(6, 8, 2),
        copy(1, 6),
        call(1),
        EXIT,
    ];
    let run = |backend| {
        let object = SceneObject::default()
            .import("host", "void()")
            .import("nest", "void()");
        let object = object
            .function(&[&turns])
            .function(&[&endless])
            .function(&[&outer]);
        let [host] = table_with(copied, Some(Direct::of(copied)));
        let nest = HostFunction {
            name: "nest",
            body: Some(nested),
            direct: Some(Direct::of(nested)),
            ..table(nested)[0]
        };
        let config = Config {
            budget: 1000,
            ..Config::default()
        };
        let mut vm = object.with(backend, &[host, nest], config);
        let (at, mut host) = (object_with_words(&mut vm), SceneWorld::default());
        let results = [0, 1, 2].map(|function| {
            let result = vm.call_program(function, &[at], &mut host);
            (result, host.words.clone(), vm.retired())
        });
        (results, host.protected.len())
    };
    let (native, asked) = run(Backend::Jit);
    let (interpreted, _) = run(Backend::Interpreter);
    assert_eq!(native, interpreted);
    assert_eq!(native[0].0, Ok(40));
    assert!(matches!(&native[1].0, Err(fault) if fault.stop == Stop::Budget { budget: 1000 }));
    assert_eq!(
        asked, 4,
        "twice, the 17th and the 34th of forty find no room"
    );
}

/// Calls function 0 on the same object; what it gives must have followed what the caller stored.
fn nested(ctx: &mut CallCtx<'_, SceneWorld>, args: [u64; 5]) -> Result<u64, Stop> {
    assert_eq!(ctx.host.words.get(&(args[0] + 8)), Some(&5));
    let result = ctx.vm.call_program(0, &args[..1], ctx.host)?;
    assert_eq!(ctx.host.words.get(&(args[0] + 8)), Some(&result));
    Ok(result)
}

#[test]
fn a_store_to_every_page_of_an_arena_commits_none() {
    // r2 walks over the arena's window, a page at a time.
    let turn = [
        store_u32(2, 8, 1),
        add(2, 4096),
        add(0, 1),
        Insn {
            code: 0xa5,
            off: -4,
            imm: 1 << 20,
            ..mov(0, 0)
        },
    ];
    let object = SceneObject::default()
        .map(MapKind::Arena, 0, 0, 1 << 20)
        .function(&[&address(2, 2, 0), &[mov(0, 0)], &turn, &[EXIT]])
        .function(&[&address(2, 2, 0), &[load(0, 2, 8), EXIT]])
        .function(&[&[ja(-1), EXIT]]);
    let mut vm = object.instance(Backend::Jit);
    let before = resident();
    assert_eq!(
        vm.call_program(0, &[], &mut SceneWorld::default()),
        Ok(1 << 20)
    );
    assert!(
        resident() < before + (64 << 20),
        "{} bytes, then {}",
        before,
        resident()
    );
    assert_eq!(vm.call_program(1, &[], &mut SceneWorld::default()), Ok(0));
}

/// Memory of this process that is in use now, bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = pages
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse::<u64>().ok());
    4096 * pages.expect("a number of pages")
}
