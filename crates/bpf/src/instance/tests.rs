//! What an instance promises, seen by a host.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::BACKEND;
use crate::scene::insn::{
    EXIT, add, address, call, copy, ja, load, may_goto, mov, store, store_u32,
};
use crate::scene::{SceneObject, SceneWorld};
use crate::{CallCtx, Config, Direct, HostFunction, Insn, Instance, InstanceError, MapKind, Stop};

fn host_function(
    name: &'static str,
    body: crate::Body<SceneWorld>,
    direct: Option<Direct<SceneWorld>>,
) -> HostFunction<SceneWorld> {
    HostFunction {
        name,
        prototype: "void()",
        cost_ps: 700,
        body: Some(body),
        direct,
    }
}

#[test]
fn a_callback_finds_its_arguments_behind_r1_and_cannot_change_them() {
    let read = SceneObject::default().function(&[&[load(0, 1, 8), EXIT]]);
    let mut vm = read.instance(BACKEND);
    assert_eq!(
        vm.call_program(0, &[5, 6], &mut SceneWorld::default()),
        Ok(6)
    );

    let write = SceneObject::default().function(&[&[store_u32(1, 0, 1), EXIT]]);
    let mut host = SceneWorld::default();
    let fault = write
        .instance(BACKEND)
        .call_program(0, &[5], &mut host)
        .unwrap_err();
    assert!(matches!(fault.stop, Stop::WildStore { size: 4, .. }));
    assert_eq!(host.protected.len(), 1, "the host was asked");
}

/// Panics in the third of calls that call each other.
fn calls_until_it_panics(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
    assert!(ctx.vm.stack.depth < 3, "deep enough");
    Ok(ctx.vm.call_program(0, &[], ctx.host)?)
}

#[test]
fn a_panic_of_the_host_leaves_every_call_that_was_entered() {
    let table = [host_function("panics", calls_until_it_panics, None)];
    let calls = [call(0), EXIT];
    let object = SceneObject::default()
        .function(&[&calls])
        .function(&[&[mov(0, 7), EXIT]])
        .import("panics", "void()");
    let mut vm = object.with(BACKEND, &table, Config::default());
    let before = (vm.stack.progress.fuel, vm.stack.progress.frame);
    let call = AssertUnwindSafe(|| vm.call_program(0, &[], &mut SceneWorld::default()));
    let panic = catch_unwind(call).expect_err("the host panics");
    assert_eq!(panic.downcast_ref(), Some(&"deep enough"));
    assert_eq!(vm.stack.depth, 0);
    assert_eq!((vm.stack.progress.fuel, vm.stack.progress.frame), before);
    assert_eq!(vm.call_program(1, &[], &mut SceneWorld::default()), Ok(7));
}

#[test]
fn a_fault_counts_up_to_the_failing_instruction_and_names_its_place() {
    let code = [mov(2, 1), mov(3, 0), store(3, 0, 2), mov(0, 0), EXIT];
    let mut vm = SceneObject::default()
        .function(&[&[EXIT]])
        .function(&[&code])
        .instance(BACKEND);
    let fault = vm
        .call_program(1, &[], &mut SceneWorld::default())
        .unwrap_err();
    assert_eq!((fault.program.as_str(), fault.insn), ("function1", 2));
    assert_eq!(vm.retired(), 3);
}

#[test]
fn the_budget_ends_a_program_before_the_block_that_would_exceed_it() {
    // Turns of three instructions behind one: 1 + 3 * 3 = 10, and the next turn would make 13.
    let code = [mov(0, 0), add(0, 1), add(0, 1), ja(-3)];
    let config = Config {
        budget: 12,
        ..Config::default()
    };
    let mut vm = SceneObject::default()
        .function(&[&code])
        .with(BACKEND, &[], config);
    for call in 1..=2 {
        let fault = vm
            .call_program(0, &[], &mut SceneWorld::default())
            .unwrap_err();
        assert_eq!(fault.stop, Stop::Budget { budget: 12 });
        assert_eq!(fault.insn, 1);
        assert_eq!(
            vm.retired(),
            10 * call,
            "each outermost call has its own budget"
        );
    }
}

#[test]
fn may_goto_lets_a_loop_turn_eight_mebi_times() {
    let code = [mov(0, 0), may_goto(2), add(0, 1), ja(-3), EXIT];
    let mut vm = SceneObject::default().function(&[&code]).instance(BACKEND);
    assert_eq!(
        vm.call_program(0, &[], &mut SceneWorld::default()),
        Ok(8 << 20)
    );
}

/// Calls function 1 of the object, and hands on what it gives.
fn nest(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
    let before = ctx.vm.retired();
    let result = ctx.vm.call_program(1, &[before], ctx.host)?;
    Ok(result)
}

/// As native code calls it directly, and as it calls a function that it only has a pointer to.
fn nest_both_ways() -> [HostFunction<SceneWorld>; 2] {
    [None, Some(Direct::of(nest))].map(|direct| host_function("nest", nest, direct))
}

#[test]
fn a_host_function_may_call_a_program_and_counts_are_exact_meanwhile() {
    for nest in nest_both_ways() {
        let object = SceneObject::default()
            .import("nest", "void()")
            .function(&[&[mov(6, 1), call(0), add(0, 1000), EXIT]])
            .function(&[&[load(0, 1, 0), EXIT]]);
        let mut vm = object.with(BACKEND, &[nest], Config::default());
        for turn in 0..3 {
            let result = vm.call_program(0, &[], &mut SceneWorld::default());
            assert_eq!(result, Ok(6 * turn + 1002), "2 more were retired");
            assert_eq!(vm.retired(), 6 * (turn + 1));
            assert_eq!(vm.charged(), 700 * (turn + 1));
        }
    }
}

#[test]
fn a_nested_call_leaves_the_outer_ones_arguments_alone_and_is_over_with_it() {
    for nest in nest_both_ways() {
        let object = SceneObject::default()
            .import("nest", "void()")
            .function(&[&[copy(6, 1), call(0), load(0, 6, 0), EXIT]])
            .function(&[&[mov(0, 0), EXIT]]);
        let mut vm = object.with(BACKEND, &[nest], Config::default());
        for argument in [77, 78] {
            let result = vm.call_program(0, &[argument], &mut SceneWorld::default());
            assert_eq!((result, vm.stack.depth), (Ok(argument), 0));
        }
    }
}

#[test]
fn a_nested_fault_is_reported_where_it_happened() {
    for nest in nest_both_ways() {
        let object = SceneObject::default()
            .import("nest", "void()")
            .function(&[&[call(0), EXIT]])
            .function(&[&[mov(0, 0), store(0, 0, 0), EXIT]]);
        let mut vm = object.with(BACKEND, &[nest], Config::default());
        let fault = vm
            .call_program(0, &[], &mut SceneWorld::default())
            .unwrap_err();
        assert_eq!((fault.program.as_str(), fault.insn), ("function1", 1));
    }
}

#[test]
fn a_nested_fault_that_the_host_keeps_to_itself_is_forgotten() {
    fn swallow(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
        let fault = ctx.vm.call_program(1, &[], ctx.host).unwrap_err();
        Ok(fault.insn.into())
    }
    let object = SceneObject::default()
        .import("swallow", "void()")
        .function(&[&[call(0), EXIT]])
        .function(&[&[mov(0, 0), store(0, 0, 0), EXIT]])
        .function(&[&[mov(1, 1), mov(0, 0), store(0, 0, 0), EXIT]]);
    let swallow = host_function("swallow", swallow, Some(Direct::of(swallow)));
    let mut vm = object.with(BACKEND, &[swallow], Config::default());
    let host = &mut SceneWorld::default();
    assert_eq!(vm.call_program(0, &[], host), Ok(1));
    let fault = vm.call_program(2, &[], host).unwrap_err();
    assert_eq!((fault.program.as_str(), fault.insn), ("function2", 2));
    let again = vm.call_program(1, &[], host).unwrap_err();
    assert_eq!((again.program.as_str(), again.insn), ("function1", 1));
}

#[test]
fn a_lock_is_still_held_behind_a_nested_fault() {
    fn swallow(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
        Ok(ctx.vm.call_program(2, &[], ctx.host).is_err().into())
    }
    let call_self = Insn {
        code: 0x85,
        src: 1,
        imm: 2,
        ..Insn::default()
    };
    let swallow = host_function("swallow", swallow, Some(Direct::of(swallow)));
    let mut vm = SceneObject::default()
        .import("swallow", "void()")
        .import("bpf_rcu_read_lock", "void()")
        .import("bpf_rcu_read_unlock", "void()")
        .function(&[&[call(1), call(0), EXIT]])
        .function(&[&[call(1), call(0), copy(6, 0), call(2), copy(0, 6), EXIT]])
        .function(&[&[call(1), call_self, EXIT]])
        .with(BACKEND, &[swallow], Config::default());
    let host = &mut SceneWorld::default();
    let kept = vm.call_program(0, &[], host).unwrap_err().stop;
    let message = "the program ended and left the RCU read lock";
    assert_eq!(kept, Stop::Refused(message.into()));
    assert_eq!(vm.call_program(1, &[], host), Ok(1), "all was left");
}

#[test]
fn nesting_ends_at_its_limit_and_shares_one_budget() {
    let object = || {
        SceneObject::default()
            .import("nest", "void()")
            .function(&[&[call(0), EXIT]])
            .function(&[&[call(0), EXIT]])
    };
    for nest in nest_both_ways() {
        let mut vm = object().with(BACKEND, &[nest], Config::default());
        let fault = vm
            .call_program(0, &[], &mut SceneWorld::default())
            .unwrap_err();
        assert_eq!(fault.stop, Stop::CallDepth { limit: 8 });
        assert_eq!(vm.retired(), 9);
    }
    for nest in nest_both_ways() {
        let config = Config {
            budget: 5,
            ..Config::default()
        };
        let mut vm = object().with(BACKEND, &[nest], config);
        let fault = vm
            .call_program(0, &[], &mut SceneWorld::default())
            .unwrap_err();
        assert_eq!(fault.stop, Stop::Budget { budget: 5 });
        assert_eq!(vm.retired(), 5);
    }
}

#[test]
fn frames_of_all_nested_calls_share_one_stack() {
    let call_self = Insn {
        code: 0x85,
        src: 1,
        imm: 0,
        ..Insn::default()
    };
    let config = Config {
        stack_bytes: 1024,
        ..Config::default()
    };
    let mut vm = SceneObject::default()
        .function(&[&[call_self, EXIT]])
        .with(BACKEND, &[], config);
    let fault = vm
        .call_program(0, &[], &mut SceneWorld::default())
        .unwrap_err();
    assert_eq!(fault.stop, Stop::StackOverflow { limit: 1024 });
}

#[test]
fn a_stack_without_room_for_a_frame_lets_nothing_run() {
    let config = Config {
        stack_bytes: 511,
        ..Config::default()
    };
    let mut vm = SceneObject::default()
        .function(&[&[mov(0, 1), EXIT]])
        .with(BACKEND, &[], config);
    let fault = vm
        .call_program(0, &[], &mut SceneWorld::default())
        .unwrap_err();
    assert_eq!(fault.stop, Stop::StackOverflow { limit: 511 });
    assert_eq!(vm.retired(), 0);
}

#[test]
fn all_missing_functions_are_reported_at_once_with_the_prototypes_that_exist() {
    let object = || {
        SceneObject::default()
            .import("bpf_rcu_read_lock", "void(u32)")
            .import("bpf_ktime_get_ns", "")
            .import("scx_bpf_now", "u64()")
            .function(&[&[call(2), EXIT]])
    };
    let refused = Instance::<SceneWorld>::new(object().image(), &[], Config::default());
    let Err(InstanceError::Missing(missing)) = refused else {
        panic!("nothing is missing")
    };
    let names: Vec<&str> = missing
        .iter()
        .map(|function| function.name.as_str())
        .collect();
    assert_eq!(names, ["bpf_rcu_read_lock", "scx_bpf_now"]);
    assert_eq!(missing[0].offered, ["void()"]);
    let message = "`bpf_rcu_read_lock`: void(u32) (called by function0); simulated only as void()";
    assert_eq!(missing[0].to_string(), message);
    assert_eq!(missing[1].callers, ["function0"]);

    let mut vm = object().with(
        BACKEND,
        &[],
        Config {
            lenient: true,
            ..Config::default()
        },
    );
    let fault = vm
        .call_program(0, &[], &mut SceneWorld::default())
        .unwrap_err();
    assert_eq!(
        fault.stop,
        Stop::Poison("function `scx_bpf_now` is not simulated".into())
    );
}

/// An object of two programs, the second of which calls a function that nobody offers.
fn with_a_program_in(section: &str) -> crate::Image {
    let object = SceneObject::default().import("scx_bpf_now", "u64()");
    let object = object.function(&[&[mov(0, 3), EXIT]]);
    let mut image = Arc::unwrap_or_clone(object.function(&[&[call(0), EXIT]]).image());
    image.imports[0].callers = vec!["function1".into()];
    let programs = [("syscall", 0), (section, 1)];
    image.programs.extend(programs.map(|(section, function)| {
        let (name, section) = (format!("function{function}"), section.to_owned());
        crate::EntryPoint {
            name,
            section,
            function,
            autoload: true,
            context: None,
        }
    }));
    image
}

#[test]
fn a_function_that_only_an_uncalled_program_needs_ends_the_run_where_it_is_reached() {
    let config = || Config {
        backend: BACKEND,
        ..Config::default()
    };
    let image = Arc::new(with_a_program_in("tp_btf/sched_switch"));
    let mut vm = Instance::new(image, &[], config()).expect("nobody calls what is missing");
    let host = &mut SceneWorld::default();
    assert_eq!(vm.call_program(0, &[], host), Ok(3));
    let fault = vm.call_program(1, &[], host).unwrap_err();
    let reason = "function `scx_bpf_now` is not simulated";
    assert_eq!(fault.stop, Stop::Poison(reason.into()));

    // A set-up program is called by a loader.
    let image = Arc::new(with_a_program_in("syscall"));
    let refused = Instance::<SceneWorld>::new(image, &[], config());
    assert!(matches!(refused, Err(InstanceError::Missing(_))));
}

#[test]
fn a_callback_address_is_a_function_or_a_fault() {
    let mut vm = SceneObject::default()
        .function(&[&[copy(0, 2), EXIT]])
        .instance(BACKEND);
    let at = vm.function_address(0).unwrap();
    assert_eq!(
        vm.call_function(at, [1, 2, 3, 4, 5], &mut SceneWorld::default()),
        Ok(2)
    );
    for wild in [0, at + 8, at + 16] {
        let fault = vm
            .call_function(wild, [0; 5], &mut SceneWorld::default())
            .unwrap_err();
        assert_eq!(fault.stop, Stop::WildCall(wild));
    }
}

#[test]
fn a_syscall_program_changes_its_context() {
    let mut vm = SceneObject::default()
        .function(&[&[store_u32(1, 4, 7), mov(0, 3), EXIT]])
        .instance(BACKEND);
    let mut context = [1; 8];
    assert_eq!(
        vm.run_syscall(0, &mut context, &mut SceneWorld::default()),
        Ok(3)
    );
    assert_eq!(context, [1, 1, 1, 1, 7, 0, 0, 0]);
}

#[test]
fn a_large_data_section_of_zeros_is_written_where_programs_write() {
    // As large as the variables of scx_layered.
    let size = 165_706_292;
    let mut vm = SceneObject::default()
        .map(MapKind::Array, 4, size, 1)
        .last_map(|map| map.initial = Some(Arc::from(&[9][..])))
        .function(&[
            &address(1, 2, 0),
            &address(2, 2, 0),
            &[load(0, 2, 0), add(1, size as i32 - 8), store(1, 0, 0), EXIT],
        ])
        .instance(BACKEND);
    let zero = 0_u32.to_le_bytes();
    assert_eq!(vm.call_program(0, &[], &mut SceneWorld::default()), Ok(9));
    let value = vm.map_value(0, &zero, 0).unwrap();
    assert_eq!(value.len(), size as usize);
    assert_eq!(value[value.len() - 8..], 9_u64.to_le_bytes());
    assert!(value[1..4096].iter().all(|byte| *byte == 0));
}

#[test]
fn data_sections_have_their_initial_bytes_and_frozen_ones_are_protected() {
    let section = |frozen| {
        SceneObject::default()
            .map(MapKind::Array, 4, 8, 1)
            .last_map(|map| {
                map.initial = Some(Arc::from(&[9, 0, 0, 0, 0, 0, 0, 0][..]));
                map.frozen = frozen;
            })
            .function(&[
                &address(1, 2, 0),
                &[load(0, 1, 0), store_u32(1, 0, 5), EXIT],
            ])
    };
    let mut vm = section(false).instance(BACKEND);
    assert_eq!(vm.call_program(0, &[], &mut SceneWorld::default()), Ok(9));
    assert_eq!(vm.call_program(0, &[], &mut SceneWorld::default()), Ok(5));
    let fault = section(true)
        .instance(BACKEND)
        .call_program(0, &[], &mut SceneWorld::default());
    assert!(matches!(
        fault.unwrap_err().stop,
        Stop::WildStore { size: 4, .. }
    ));
}

#[test]
fn a_program_that_keeps_a_lock_is_refused() {
    let object = SceneObject::default()
        .import("bpf_rcu_read_lock", "void()")
        .import("bpf_rcu_read_unlock", "void()")
        .function(&[&[call(0), call(1), mov(0, 0), EXIT]])
        .function(&[&[call(0), EXIT]])
        .function(&[&[call(1), EXIT]]);
    let mut vm = object.instance(BACKEND);
    let host = &mut SceneWorld::default();
    assert_eq!(vm.call_program(0, &[], host), Ok(0));
    let kept = vm.call_program(1, &[], host).unwrap_err().stop;
    assert_eq!(
        kept,
        Stop::Refused("the program ended and left the RCU read lock".into())
    );
    let twice = vm.call_program(2, &[], host).unwrap_err().stop;
    assert_eq!(
        twice,
        Stop::Refused("the RCU read lock was released and is not held".into())
    );
    assert_eq!(
        vm.call_program(0, &[], host),
        Ok(0),
        "a fault leaves nothing behind"
    );
}

#[test]
fn calls_of_host_functions_are_counted_by_name_when_asked() {
    // Also of those that native code would enter without passing the counter.
    let body = |_: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]| Ok(0);
    let table = [
        host_function("often", body, Some(Direct::of(body))),
        host_function("never", body, None),
    ];
    let config = Config {
        tally: true,
        ..Config::default()
    };
    let code = [call(0), call(1), call(0), EXIT];
    let mut vm = SceneObject::default()
        .import("often", "void()")
        .import("bpf_ktime_get_ns", "")
        .import("never", "void()")
        .function(&[&code])
        .with(BACKEND, &table, config);
    for _ in 0..3 {
        vm.call_program(0, &[], &mut SceneWorld::default()).unwrap();
    }
    let calls: Vec<_> = vm.calls().collect();
    assert_eq!(calls, [("often", 6), ("bpf_ktime_get_ns", 3), ("never", 0)]);
}

/// Remembers where the program is that calls it.
fn where_it_is(ctx: &mut CallCtx<'_, SceneWorld>, _: [u64; 5]) -> Result<u64, Stop> {
    ctx.host.released.push(ctx.vm.current_place().into());
    Ok(0)
}

#[test]
fn a_program_is_where_it_called_or_chose_last() {
    let jump_if_zero = Insn {
        code: 0x15,
        dst: 6,
        src: 0,
        off: 1,
        imm: 0,
    };
    let function = |name| HostFunction {
        name,
        prototype: "void()",
        cost_ps: 0,
        body: Some(where_it_is as crate::Body<SceneWorld>),
        direct: None,
    };
    // Calls that only end something are behind all others, and say nothing.
    let table = ["host", "host_release"].map(function);
    let program = [
        mov(6, 1),
        call(0),
        call(0),
        jump_if_zero,
        mov(6, 2),
        call(1),
        EXIT,
    ];
    let object = SceneObject::default()
        .import("host", "void()")
        .import("host_release", "void()")
        .function(&[&program]);
    let config = Config {
        places: true,
        ..Config::default()
    };
    let (mut vm, mut host) = (object.with(BACKEND, &table, config), SceneWorld::default());
    vm.begin_place(0);
    assert_eq!(vm.current_place(), 0);
    assert_eq!(vm.call_program(0, &[], &mut host), Ok(0));
    assert_eq!(host.released, [1, 2, 3]);
    assert_eq!(vm.current_place(), 3, "the choice, not what follows");
    assert_eq!(
        vm.place(3).map(|place| place.line),
        Some(0),
        "no line information"
    );
    assert_eq!(vm.place(u32::MAX), None);
}
