//! The built-in functions, called by programs of one call.

use super::BACKEND;
use crate::map::MapStore;
use crate::scene::insn::{EXIT, add, address, call, copy, load, mov, store_u32};
use crate::scene::{SceneObject, SceneWorld};
use crate::{Errno, Instance, MapKind, Prices, Stop, Update};

/// An object whose functions call one import each with the words of their context.
struct Calls {
    vm: Instance<SceneWorld>,
    host: SceneWorld,
    names: Vec<(&'static str, &'static str)>,
}

impl Calls {
    /// Function `n` calls `names[n]`; maps and callbacks stand behind in `object`.
    fn of(names: &[(&'static str, &'static str)], object: SceneObject) -> Self {
        let mut object = names.iter().fold(object, |object, (name, prototype)| {
            object.import(name, prototype)
        });
        for import in 0..names.len() {
            let words = [
                load(2, 1, 8),
                load(3, 1, 16),
                load(4, 1, 24),
                load(5, 1, 32),
            ];
            object = object.function(&[&words, &[load(1, 1, 0), call(import as i32), EXIT]]);
        }
        Self {
            vm: object.instance(BACKEND),
            host: SceneWorld::default(),
            names: names.to_vec(),
        }
    }

    fn try_call(&mut self, name: &str, args: &[u64]) -> Result<u64, Stop> {
        let mut words = [0; 5];
        words[..args.len()].copy_from_slice(args);
        let known = self.names.iter().position(|(other, _)| *other == name);
        let at = known.unwrap_or_else(|| panic!("{name} is not imported"));
        let function = self.vm.image().functions.len() - self.names.len() + at;
        Ok(self
            .vm
            .call_program(function as u32, &words, &mut self.host)?)
    }

    fn call(&mut self, name: &str, args: &[u64]) -> u64 {
        self.try_call(name, args)
            .unwrap_or_else(|stop| panic!("{name}: {stop}"))
    }

    fn status(&mut self, name: &str, args: &[u64]) -> Result<(), Errno> {
        match self.call(name, args).cast_signed() {
            0 => Ok(()),
            error => Err(Errno(i32::try_from(-error).expect("an error number"))),
        }
    }

    fn buffer(&mut self, bytes: &[u8]) -> u64 {
        let address = self.vm.memory().alloc_map(bytes.len() as u64).unwrap();
        self.vm.memory().write(address, bytes);
        address
    }

    fn handle(&self) -> u64 {
        self.vm.maps.handle(0).unwrap()
    }

    fn bytes(&self, address: u64, len: u64) -> &[u8] {
        self.vm.memory.bytes(address, len).unwrap()
    }
}

const QUEUE: [(&str, &str); 3] = [
    ("bpf_map_push_elem", ""),
    ("bpf_map_pop_elem", ""),
    ("bpf_map_peek_elem", ""),
];

/// Pushes 1, 2, 3 into room for two, with and without overwriting, and pops all.
fn pushed_and_popped(kind: MapKind) -> Vec<Result<u64, Errno>> {
    let mut calls = Calls::of(&QUEUE, SceneObject::default().map(kind, 0, 8, 2));
    let map = calls.handle();
    let place = calls.buffer(&[0; 8]);
    let mut seen = Vec::new();
    for (value, flags) in [(1, 0), (2, 0), (3, 0), (3, 2), (4, 1)] {
        calls.vm.memory().poke_u64(place, value);
        seen.push(
            calls
                .status("bpf_map_push_elem", &[map, place, flags])
                .map(|()| value),
        );
    }
    for take in [
        "bpf_map_peek_elem",
        "bpf_map_pop_elem",
        "bpf_map_pop_elem",
        "bpf_map_pop_elem",
    ] {
        let status = calls.status(take, &[map, place]);
        seen.push(status.map(|()| calls.vm.memory().load_u64(place)));
    }
    assert_eq!(
        calls.vm.memory().load_u64(place),
        0,
        "an empty queue zeroes the value"
    );
    seen
}

#[test]
fn a_queue_gives_the_oldest_and_a_stack_the_newest() {
    let pushes = [Ok(1), Ok(2), Err(Errno::E2BIG), Ok(3), Err(Errno::EINVAL)];
    let queue = [Ok(2), Ok(2), Ok(3), Err(Errno::ENOENT)];
    let stack = [Ok(3), Ok(3), Ok(2), Err(Errno::ENOENT)];
    assert_eq!(
        pushed_and_popped(MapKind::Queue),
        [&pushes[..], &queue].concat()
    );
    assert_eq!(
        pushed_and_popped(MapKind::Stack),
        [&pushes[..], &stack].concat()
    );
}

#[test]
fn a_ring_buffer_is_full_until_it_is_read() {
    let names = [
        ("bpf_ringbuf_reserve", ""),
        ("bpf_ringbuf_submit", ""),
        ("bpf_ringbuf_discard", ""),
        ("bpf_ringbuf_output", ""),
        ("bpf_ringbuf_query", ""),
    ];
    let mut calls = Calls::of(
        &names,
        SceneObject::default().map(MapKind::Ringbuf, 0, 0, 64),
    );
    let map = calls.handle();
    let first = calls.call("bpf_ringbuf_reserve", &[map, 8, 0]);
    let second = calls.call("bpf_ringbuf_reserve", &[map, 20, 0]);
    let text = calls.buffer(b"ring");
    assert_eq!(
        calls.status("bpf_ringbuf_output", &[map, text, 4, 0]),
        Ok(())
    );
    assert_eq!(calls.call("bpf_ringbuf_query", &[map, 0]), 16 + 32 + 16);
    assert_eq!(
        calls.call("bpf_ringbuf_reserve", &[map, 1, 0]),
        0,
        "it is full"
    );
    assert_eq!(
        calls.status("bpf_ringbuf_output", &[map, text, 4, 0]),
        Err(Errno(11))
    );
    calls.call("bpf_ringbuf_discard", &[second, 0]);
    assert_eq!(
        calls.vm.ringbuf_drain(0),
        Vec::<Vec<u8>>::new(),
        "the first is unfinished"
    );
    calls.vm.memory().poke_u64(first, 5);
    calls.call("bpf_ringbuf_submit", &[first, 0]);
    assert_eq!(
        calls.vm.ringbuf_drain(0),
        [5_u64.to_le_bytes().to_vec(), b"ring".to_vec()]
    );
    assert_ne!(calls.call("bpf_ringbuf_reserve", &[map, 50, 0]), 0);
    assert!(
        calls.try_call("bpf_ringbuf_submit", &[first, 0]).is_err(),
        "submitted twice"
    );
}

#[test]
fn the_number_iterator_counts_from_start_to_end() {
    let names = [
        ("bpf_iter_num_new", "s32(ptr,s32,s32)"),
        ("bpf_iter_num_next", "ptr(ptr)"),
        ("bpf_iter_num_destroy", "void(ptr)"),
    ];
    let mut calls = Calls::of(&names, SceneObject::default());
    let iterator = calls.buffer(&[0; 8]);
    let mut numbers = |start: i32, end: i32| {
        let args = [
            iterator,
            u64::from(start.cast_unsigned()),
            u64::from(end.cast_unsigned()),
        ];
        let status = calls.call("bpf_iter_num_new", &args);
        let mut seen = Vec::new();
        while let at @ 1.. = calls.call("bpf_iter_num_next", &[iterator]) {
            seen.push(calls.vm.memory().load_u32(at) as i32);
        }
        calls.call("bpf_iter_num_destroy", &[iterator]);
        (status as i32, seen)
    };
    assert_eq!(numbers(-2, 2), (0, vec![-2, -1, 0, 1]));
    assert_eq!(
        numbers(i32::MIN, i32::MIN + 2),
        (0, vec![i32::MIN, i32::MIN + 1])
    );
    assert_eq!(numbers(3, 3), (0, vec![]));
    assert_eq!(numbers(3, 2), (-22, vec![]));
    assert_eq!(numbers(0, (8 << 20) + 1), (-7, vec![]));
}

/// Function 0 adds its first argument (`bpf_loop`) to the context, and stops at 3.
fn sum_until_three() -> SceneObject {
    use crate::Insn;
    let add = Insn {
        code: 0xdb,
        dst: 2,
        src: 1,
        ..Insn::default()
    };
    let is_three = Insn {
        code: 0x55,
        dst: 1,
        off: 1,
        imm: 3,
        ..Insn::default()
    };
    SceneObject::default().function(&[&[add, mov(0, 0), is_three, mov(0, 1), EXIT]])
}

#[test]
fn a_loop_ends_when_its_callback_says_so() {
    let mut calls = Calls::of(&[("bpf_loop", "")], sum_until_three());
    let sum = calls.buffer(&[0; 8]);
    let callback = calls.vm.function_address(0).unwrap();
    assert_eq!(calls.call("bpf_loop", &[2, callback, sum, 0]), 2);
    assert_eq!(calls.call("bpf_loop", &[10, callback, sum, 0]), 4);
    assert_eq!(calls.vm.memory().load_u64(sum), 1 + 6);
    assert_eq!(
        calls.status("bpf_loop", &[10, callback, sum, 1]),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        calls.status("bpf_loop", &[1 << 24, callback, sum, 0]),
        Err(Errno::E2BIG)
    );
    assert_eq!(
        calls.try_call("bpf_loop", &[1, sum, sum, 0]),
        Err(Stop::WildCall(sum))
    );
}

/// Function 0 appends the byte of its key to the 64-bit word at the context.
fn collect_keys(kind: MapKind) -> SceneObject {
    use crate::Insn;
    let shift = Insn {
        code: 0x67,
        dst: 6,
        imm: 8,
        ..Insn::default()
    };
    let key = Insn {
        code: 0x71,
        dst: 7,
        src: 2,
        ..Insn::default()
    };
    let join = Insn {
        code: 0x4f,
        dst: 6,
        src: 7,
        ..Insn::default()
    };
    let write = Insn {
        code: 0x7b,
        dst: 4,
        src: 6,
        ..Insn::default()
    };
    SceneObject::default().map(kind, 4, 8, 4).function(&[&[
        load(6, 4, 0),
        shift,
        key,
        join,
        write,
        mov(0, 0),
        EXIT,
    ]])
}

#[test]
fn every_element_of_a_map_is_visited_in_a_fixed_order() {
    for (kind, order) in [(MapKind::Hash, 0x0003_0102), (MapKind::Array, 0x0001_0203)] {
        let mut calls = Calls::of(&[("bpf_for_each_map_elem", "")], collect_keys(kind));
        for key in [3_u32, 1, 2] {
            let Calls { vm, host, .. } = &mut calls;
            vm.map_update(0, &Update::new(&key.to_le_bytes(), &[0; 8]), host)
                .unwrap();
        }
        let seen = calls.buffer(&[0; 8]);
        let callback = calls.vm.function_address(0).unwrap();
        let args = [calls.handle(), callback, seen, 0];
        let count = if kind == MapKind::Array { 4 } else { 3 };
        assert_eq!(calls.call("bpf_for_each_map_elem", &args), count);
        assert_eq!(calls.vm.memory().load_u64(seen), order, "{kind:?}");
    }
}

#[test]
fn probing_reads_copy_or_zero_the_buffer() {
    let names = [
        ("bpf_probe_read_kernel", ""),
        ("bpf_probe_read_kernel_str", ""),
        ("bpf_probe_read", ""),
        ("bpf_probe_read_str", ""),
    ];
    let mut calls = Calls::of(&names, SceneObject::default());
    let from = calls.buffer(b"kernel\0rest");
    let to = calls.buffer(&[0xff; 8]);
    assert_eq!(calls.call("bpf_probe_read_str", &[to, 8, from]), 7);
    assert_eq!(calls.status("bpf_probe_read", &[to, 8, from]), Ok(()));
    assert_eq!(calls.bytes(to, 8), b"kernel\0r");
    assert_eq!(
        calls.status("bpf_probe_read", &[to, 8, 16]),
        Err(Errno::EFAULT)
    );
    let to = calls.buffer(&[0xff; 8]);
    assert_eq!(calls.call("bpf_probe_read_kernel_str", &[to, 8, from]), 7);
    assert_eq!(calls.bytes(to, 8), b"kernel\0\xff");
    assert_eq!(calls.call("bpf_probe_read_kernel_str", &[to, 4, from]), 4);
    assert_eq!(calls.bytes(to, 4), b"ker\0");
    assert_eq!(
        calls.status("bpf_probe_read_kernel", &[to, 8, from + 3]),
        Ok(())
    );
    assert_eq!(calls.bytes(to, 8), b"nel\0rest");
    assert_eq!(
        calls.status("bpf_probe_read_kernel", &[to, 4, 16]),
        Err(Errno::EFAULT)
    );
    assert_eq!(calls.bytes(to, 8), b"\0\0\0\0rest");
    let wild = calls.try_call("bpf_probe_read_kernel", &[16, 4, from]);
    assert_eq!(
        wild,
        Err(Stop::WildStore {
            address: 16,
            size: 4
        })
    );
}

#[test]
fn strings_compare_up_to_a_length() {
    let mut calls = Calls::of(&[("bpf_strncmp", "")], SceneObject::default());
    let [left, right] = [b"abc\0x", b"abd\0y"].map(|text| calls.buffer(text));
    assert_eq!(
        calls.call("bpf_strncmp", &[left, 5, right]).cast_signed(),
        -1
    );
    assert_eq!(calls.call("bpf_strncmp", &[right, 5, left]), 1);
    assert_eq!(calls.call("bpf_strncmp", &[left, 2, right]), 0);
    assert_eq!(calls.call("bpf_strncmp", &[left, 5, left]), 0);
}

#[test]
fn printing_reaches_the_host_and_snprintf_the_buffer() {
    let names = [
        ("bpf_trace_printk", ""),
        ("bpf_trace_vprintk", ""),
        ("bpf_snprintf", ""),
    ];
    let mut calls = Calls::of(&names, SceneObject::default());
    let pattern = calls.buffer(b"%d of %s\0");
    let name = calls.buffer(b"four\0");
    assert_eq!(calls.call("bpf_trace_printk", &[pattern, 9, 3, name]), 9);
    let array = calls.buffer(&[7_u64.to_le_bytes(), name.to_le_bytes()].concat());
    assert_eq!(calls.call("bpf_trace_vprintk", &[pattern, 9, array, 16]), 9);
    assert_eq!(calls.host.printed, "3 of four7 of four");
    let to = calls.buffer(&[0xff; 8]);
    assert_eq!(calls.call("bpf_snprintf", &[to, 6, pattern, array, 16]), 10);
    assert_eq!(calls.bytes(to, 8), b"7 of \0\xff\xff");
    let status = calls.status("bpf_snprintf", &[to, 6, pattern, array, 12]);
    assert_eq!(status, Err(Errno::EINVAL));
}

#[test]
fn the_current_task_has_a_name_and_the_cpu_a_node() {
    let names = [("bpf_get_current_comm", ""), ("bpf_get_numa_node_id", "")];
    let mut calls = Calls::of(&names, SceneObject::default());
    calls.host.comm = calls.buffer(b"a-rather-long-name\0");
    let to = calls.buffer(&[7; 24]);
    assert_eq!(calls.status("bpf_get_current_comm", &[to, 20]), Ok(()));
    // A kernel's name has 15 bytes; behind it the buffer is zeroed.
    assert_eq!(
        calls.bytes(to, 24),
        b"a-rather-long-n\0\0\0\0\0\x07\x07\x07\x07"
    );
    assert_eq!(calls.status("bpf_get_current_comm", &[to, 3]), Ok(()));
    assert_eq!(calls.bytes(to, 4), b"a-\0a");
    assert_eq!(calls.call("bpf_get_numa_node_id", &[]), 7);
}

#[test]
fn an_iterators_text_is_printed() {
    let names = [("bpf_seq_write", ""), ("bpf_seq_printf", "")];
    let mut calls = Calls::of(&names, SceneObject::default());
    let (text, number) = (
        calls.buffer(b"%d rows\0"),
        calls.buffer(&[5, 0, 0, 0, 0, 0, 0, 0]),
    );
    assert_eq!(calls.status("bpf_seq_write", &[0, text + 3, 4]), Ok(()));
    assert_eq!(
        calls.status("bpf_seq_printf", &[0, text, 8, number, 8]),
        Ok(())
    );
    assert_eq!(calls.host.printed, "rows5 rows");
    let wrong = calls.status("bpf_seq_printf", &[0, text, 8, number, 7]);
    assert_eq!(wrong, Err(Errno::EINVAL));
    let refused = calls.try_call("bpf_seq_write", &[0, 16, 4]);
    assert!(matches!(refused, Err(Stop::Refused(_))), "{refused:?}");
}

#[test]
fn a_kernel_pointer_changes_hands() {
    let mut calls = Calls::of(&[("bpf_kptr_xchg", "")], SceneObject::default());
    let place = calls.buffer(&[0; 8]);
    assert_eq!(calls.call("bpf_kptr_xchg", &[place, 77]), 0);
    assert_eq!(calls.call("bpf_kptr_xchg", &[place, 0]), 77);
    assert_eq!(calls.vm.memory().load_u64(place), 0);
}

#[test]
fn the_world_answers_through_the_host() {
    let names = [
        ("bpf_ktime_get_ns", ""),
        ("bpf_get_smp_processor_id", ""),
        ("bpf_get_prandom_u32", ""),
        ("bpf_get_current_pid_tgid", ""),
    ];
    let mut calls = Calls::of(&names, SceneObject::default());
    calls.host.cpu = 3;
    let answers = names.map(|(name, _)| calls.call(name, &[]));
    assert_eq!(answers, [1234, 3, 4, 0x7_0000_0008]);
}

#[test]
fn arena_pages_are_zero_and_forget_what_was_written() {
    let names = [
        ("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)"),
        ("bpf_arena_free_pages", "void(ptr,ptr,u32)"),
    ];
    // Function 0 writes to, function 1 reads from the address in its context.
    let object = SceneObject::default()
        .map(MapKind::Arena, 0, 0, 10)
        .function(&[&[load(1, 1, 0), store_u32(1, 8, 5), mov(0, 0), EXIT]])
        .function(&[&[load(1, 1, 0), load(0, 1, 8), EXIT]]);
    let mut calls = Calls::of(&names, object);
    let map = calls.handle();
    let page = calls.call("bpf_arena_alloc_pages", &[map, 0, 2, 0, 0]);
    let Calls { vm, host, .. } = &mut calls;
    assert_eq!(vm.call_program(0, &[page], host), Ok(0));
    assert_eq!(vm.call_program(1, &[page], host), Ok(5));
    calls.call("bpf_arena_free_pages", &[map, page, 2]);
    let Calls { vm, host, .. } = &mut calls;
    assert_eq!(
        vm.call_program(0, &[page], host),
        Ok(0),
        "the store is skipped, as in the kernel"
    );
    assert_eq!(vm.call_program(1, &[page], host), Ok(0));
    assert_eq!(
        calls.call("bpf_arena_alloc_pages", &[map, page, 1, 0, 0]),
        page
    );
    assert_eq!(calls.call("bpf_arena_alloc_pages", &[map, 0, 10, 0, 0]), 0);
}

#[test]
fn a_timer_must_be_one_of_its_map() {
    let names = [
        ("bpf_timer_init", ""),
        ("bpf_timer_set_callback", ""),
        ("bpf_timer_start", ""),
        ("bpf_timer_cancel", ""),
    ];
    let object = SceneObject::default()
        .map(MapKind::Array, 4, 32, 2)
        .last_map(|map| map.timer_at = Some(8))
        .function(&[&[EXIT]]);
    let mut calls = Calls::of(&names, object);
    let map = calls.handle();
    let timer = calls.vm.map_value_addr(0, &[1, 0, 0, 0], 0).unwrap() + 8;
    for wild in [0, 4, timer + 8, timer + 32] {
        assert!(
            calls.try_call("bpf_timer_init", &[wild, map, 1]).is_err(),
            "{wild:#x}"
        );
    }
    assert_eq!(
        calls.status("bpf_timer_start", &[timer, 5, 0]),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        calls.status("bpf_timer_init", &[timer, map, 9]),
        Err(Errno::EINVAL)
    );
    assert_eq!(calls.status("bpf_timer_init", &[timer, map, 1]), Ok(()));
    assert_eq!(
        calls.status("bpf_timer_init", &[timer, map, 1]),
        Err(Errno::EBUSY)
    );
    assert_eq!(
        calls.status("bpf_timer_start", &[timer, 5, 0]),
        Err(Errno::EINVAL)
    );
    let callback = calls.vm.function_address(0).unwrap();
    assert_eq!(
        calls.status("bpf_timer_set_callback", &[timer, callback]),
        Ok(())
    );
    assert_eq!(
        calls.status("bpf_timer_start", &[timer, 5, 4]),
        Err(Errno::EINVAL)
    );
    assert_eq!(calls.status("bpf_timer_start", &[timer, 5, 1]), Ok(()));
    assert_eq!(calls.host.armed, [(timer, 5, true, false)]);
    assert_eq!(calls.call("bpf_timer_cancel", &[timer]), 1);
    assert_eq!(calls.call("bpf_timer_cancel", &[timer]), 0);
}

#[test]
fn a_map_of_maps_gives_the_inner_maps_handle() {
    let object = SceneObject::default()
        .map(MapKind::ArrayOfMaps, 4, 4, 2)
        .last_map(|map| map.inner = Some((1, vec![(1, 1)])))
        .map(MapKind::Array, 4, 8, 1);
    let mut calls = Calls::of(&[("bpf_map_lookup_elem", "")], object);
    let map = calls.handle();
    let [absent, present] = [0_u32, 1].map(|key| calls.buffer(&key.to_le_bytes()));
    assert_eq!(calls.call("bpf_map_lookup_elem", &[map, absent]), 0);
    assert_eq!(
        calls.call("bpf_map_lookup_elem", &[map, present]),
        calls.vm.maps.handle(1).unwrap()
    );
    calls.vm.map_set_inner(0, &[0; 4], 1).unwrap();
    assert_ne!(calls.call("bpf_map_lookup_elem", &[map, absent]), 0);
}

#[test]
fn a_pointer_that_is_no_map_or_key_is_refused() {
    let object = SceneObject::default().map(MapKind::Array, 4, 8, 1);
    let mut calls = Calls::of(&[("bpf_map_lookup_elem", "")], object);
    let map = calls.handle();
    assert!(matches!(
        calls.try_call("bpf_map_lookup_elem", &[map + 1, 0]),
        Err(Stop::Refused(_))
    ));
    assert!(matches!(
        calls.try_call("bpf_map_lookup_elem", &[map, 8]),
        Err(Stop::Refused(_))
    ));
}

#[test]
fn work_inside_built_in_functions_uses_up_the_budget() {
    // An endless loop of comparisons of a mebibyte each would take a day without it.
    use crate::Insn;
    let back = Insn {
        code: 0x05,
        off: -7,
        ..Insn::default()
    };
    let [low, high] = address(1, 0, 0);
    let turn = [
        low,
        high,
        mov(2, 1 << 20),
        mov(3, 0),
        call(0),
        mov(0, 0),
        back,
    ];
    let mut vm = SceneObject::default()
        .import("bpf_strncmp", "")
        .function(&[&turn])
        .instance(BACKEND);
    let fault = vm
        .call_program(0, &[], &mut SceneWorld::default())
        .unwrap_err();
    assert_eq!(
        fault.stop,
        Stop::Budget {
            budget: 100_000_000
        }
    );
    assert!(vm.retired() < 6 * 1000);
}

#[test]
fn every_function_stands_in_the_table_once() {
    let table = crate::builtin::table::<SceneWorld>(&Prices::new(|name| name.len() as u64));
    let mut names: Vec<_> = table.iter().map(|function| function.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(
        table
            .iter()
            .all(|function| function.cost_ps == function.name.len() as u64)
    );
}

#[test]
fn storage_is_no_plain_map_to_programs() {
    let object = SceneObject::default().map(MapKind::TaskStorage, 4, 8, 0);
    let mut calls = Calls::of(&[("bpf_map_lookup_elem", "")], object);
    let map = calls.handle();
    let key = calls.buffer(&[0; 8]);
    assert!(matches!(
        calls.vm.maps.by_handle(map).unwrap().store,
        MapStore::Hash(_)
    ));
    assert_eq!(calls.call("bpf_map_lookup_elem", &[map, key]), 0);
}

#[test]
fn sections_without_interrupts_nest_and_end_in_reverse_order() {
    let names = [
        ("bpf_local_irq_save", "void(ptr)"),
        ("bpf_local_irq_restore", "void(ptr)"),
    ];
    // Function 0 opens two sections and closes them in the order of its context's word.
    let save = |slot: i16| [copy(1, 10), add(1, slot.into()), call(0)];
    let restore = |slot: i16| [copy(1, 10), add(1, slot.into()), call(1)];
    let object = SceneObject::default()
        .function(&[
            &save(-8),
            &save(-16),
            &restore(-16),
            &restore(-8),
            &[mov(0, 0), EXIT],
        ])
        .function(&[
            &save(-8),
            &save(-16),
            &restore(-8),
            &restore(-16),
            &[mov(0, 0), EXIT],
        ])
        .function(&[&save(-8), &[mov(0, 0), EXIT]]);
    let mut calls = Calls::of(&names, object);
    let mut run = |function| {
        let result = calls.vm.call_program(function, &[], &mut calls.host);
        result.map_err(|fault| fault.stop.to_string())
    };
    assert_eq!(run(0), Ok(0));
    assert_eq!(run(1), Err("interrupts were restored out of order".into()));
    let left = run(2).unwrap_err();
    assert!(left.ends_with("left disabled interrupts"), "{left}");
    assert_eq!(run(0), Ok(0), "nothing is left of the failures");
}

#[test]
fn a_resilient_lock_is_held_once_and_beside_others() {
    let names = [
        ("bpf_res_spin_lock", "s32(ptr)"),
        ("bpf_res_spin_unlock", "void(ptr)"),
    ];
    let (lock, unlock) = (0, 1);
    let on = |register: u8, function: i32| [copy(1, register), call(function)];
    let begin = [load(6, 1, 0), load(7, 1, 8)];
    let end = [mov(0, 0), EXIT];
    let object = SceneObject::default()
        .function(&[
            &begin,
            &on(6, lock),
            &on(7, lock),
            &on(7, unlock),
            &on(6, unlock),
            &end,
        ])
        .function(&[
            &begin,
            &on(6, lock),
            &on(6, lock),
            &[copy(8, 0)],
            &on(6, unlock),
            &[copy(0, 8), EXIT],
        ])
        .function(&[&begin, &on(6, unlock), &end])
        .function(&[&begin, &on(7, lock), &end]);
    let mut calls = Calls::of(&names, object);
    let locks = [(); 2].map(|()| calls.buffer(&[0; 8]));
    let mut run = |function| {
        let result = calls.vm.call_program(function, &locks, &mut calls.host);
        result.map_err(|fault| fault.stop.to_string())
    };
    assert_eq!(run(0), Ok(0));
    assert_eq!(run(1).map(|it| it as u32 as i32), Ok(-Errno::EDEADLK.0));
    let wrong = run(2).unwrap_err();
    assert!(wrong.ends_with("was released and is not held"), "{wrong}");
    let left = run(3).unwrap_err();
    assert!(left.ends_with("left a resilient spin lock"), "{left}");
}
