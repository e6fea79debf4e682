//! Maps, as programs and their host meet them, on every back end.

use super::BACKEND;
use crate::scene::insn::{EXIT, add, address, call, copy, load, mov, store, store_u32};
use crate::scene::{SceneObject, SceneWorld};
use crate::{Errno, Insn, MapKind, Update};

/// `update(map0, key 1, value 7, flags of the context)`; then the look-up's value plus `r0`.
fn update_and_look_up() -> [Insn; 18] {
    let [map, map_high] = address(1, 1, 0);
    [
        load(4, 1, 0),
        store_u32(10, -4, 1),
        mov(3, 7),
        store(10, -16, 3),
        map,
        map_high,
        copy(2, 10),
        add(2, -4),
        copy(3, 10),
        add(3, -16),
        call(0),
        copy(6, 0),
        map,
        map_high,
        copy(2, 10),
        add(2, -4),
        call(1),
        EXIT,
    ]
}

fn map_object(kind: MapKind, entries: u32) -> SceneObject {
    SceneObject::default()
        .map(kind, 4, 8, entries)
        .import("bpf_map_update_elem", "")
        .import("bpf_map_lookup_elem", "")
        .function(&[&update_and_look_up()])
}

#[test]
fn a_program_updates_and_finds_a_value_of_its_cpu() {
    for kind in [
        MapKind::Array,
        MapKind::PercpuArray,
        MapKind::Hash,
        MapKind::PercpuHash,
    ] {
        let mut vm = map_object(kind, 2).instance(BACKEND);
        let mut host = SceneWorld {
            cpu: 2,
            ..SceneWorld::default()
        };
        let value = vm.call_program(0, &[0], &mut host).unwrap();
        assert_eq!(vm.memory().load_u64(value), 7, "{kind:?}");
        let key = 1_u32.to_le_bytes();
        assert_eq!(vm.map_value_addr(0, &key, 2), Some(value));
        let percpu = matches!(kind, MapKind::PercpuArray | MapKind::PercpuHash);
        let other = vm.map_value_addr(0, &key, 3).unwrap();
        assert_eq!(
            vm.memory().load_u64(other),
            if percpu { 0 } else { 7 },
            "{kind:?}"
        );
        assert_eq!(vm.map_sum(0, &key, 0), Some(7));
    }
}

#[test]
fn the_host_sees_the_kernels_errors() {
    let host = &mut SceneWorld::default();
    let mut vm = map_object(MapKind::Hash, 1).instance(BACKEND);
    let (one, two) = (1_u32.to_le_bytes(), 2_u32.to_le_bytes());
    assert_eq!(vm.map_update(0, &Update::new(&one, &[1; 8]), host), Ok(()));
    assert_eq!(
        vm.map_update(0, &Update::new(&two, &[1; 8]), host),
        Err(Errno::E2BIG)
    );
    assert_eq!(
        vm.map_update(0, &Update::new(&two, &[1; 7]), host),
        Err(Errno::EINVAL)
    );
    assert_eq!(vm.map_delete(0, &two, host), Err(Errno::ENOENT));
    assert_eq!(vm.map_delete(0, &one, host), Ok(()));
    assert_eq!(vm.map_keys(0), Vec::<Vec<u8>>::new());
    let mut array = map_object(MapKind::Array, 1).instance(BACKEND);
    assert_eq!(
        array.map_update(0, &Update::new(&one, &[1; 8]), host),
        Err(Errno::E2BIG)
    );
    assert_eq!(array.map_delete(0, &[0; 4], host), Err(Errno::EINVAL));
}

#[test]
fn flags_of_an_update_mean_what_they_mean_in_the_kernel() {
    let read_status = |insns: &mut [Insn; 18]| insns[16] = copy(0, 6);
    let status = |kind, flags: [u64; 2]| {
        let mut code = update_and_look_up();
        read_status(&mut code);
        let mut object = map_object(kind, 4);
        object.code = code.to_vec();
        let mut vm = object.instance(BACKEND);
        flags.map(|flags| {
            vm.call_program(0, &[flags], &mut SceneWorld::default())
                .unwrap() as i64
        })
    };
    assert_eq!(status(MapKind::Hash, [0, 0]), [0, 0]);
    assert_eq!(status(MapKind::Hash, [1, 1]), [0, -17]);
    assert_eq!(status(MapKind::Hash, [2, 3]), [-2, -22]);
    assert_eq!(status(MapKind::Array, [2, 1]), [0, -17]);
}

#[test]
fn a_replaced_value_stays_readable_until_the_outermost_call_returns() {
    // Look up key 1, update it, and read the old value through the old pointer.
    let [map, high] = address(1, 1, 0);
    let code = [
        store_u32(10, -4, 1),
        map,
        high,
        copy(2, 10),
        add(2, -4),
        call(1),
        copy(7, 0),
        mov(3, 9),
        store(10, -16, 3),
        map,
        high,
        copy(2, 10),
        add(2, -4),
        copy(3, 10),
        add(3, -16),
        mov(4, 0),
        call(0),
        load(0, 7, 0),
        EXIT,
    ];
    let mut object = map_object(MapKind::Hash, 4);
    object = object.function(&[&code]);
    let mut vm = object.instance(BACKEND);
    let host = &mut SceneWorld::default();
    let first = vm.call_program(0, &[0], host).unwrap();
    assert_eq!(vm.call_program(1, &[], host), Ok(7), "the old value");
    assert_eq!(
        vm.map_value(0, &1_u32.to_le_bytes(), 0),
        Some(&9_u64.to_le_bytes()[..])
    );
    vm.map_update(0, &Update::new(&2_u32.to_le_bytes(), &[0; 8]), host)
        .unwrap();
    let reused = vm.map_value_addr(0, &2_u32.to_le_bytes(), 0);
    assert_eq!(reused, Some(first), "its memory is used again afterwards");
}

#[test]
fn storage_goes_with_its_owner_and_drops_what_it_holds() {
    let [map, high] = address(1, 1, 0);
    let get = [map, high, mov(2, 4096), mov(3, 0), mov(4, 1), call(0), EXIT];
    let object = SceneObject::default()
        .map(MapKind::TaskStorage, 4, 16, 0)
        .last_map(|map| map.kptrs_at = vec![8])
        .import("bpf_task_storage_get", "")
        .function(&[&get]);
    let mut vm = object.instance(BACKEND);
    let host = &mut SceneWorld::default();
    let value = vm.call_program(0, &[], host).unwrap();
    assert_eq!(vm.call_program(0, &[], host), Ok(value));
    vm.memory().poke_u64(value + 8, 0xabc);
    vm.free_owner(4096, host);
    assert_eq!(host.released, [0xabc]);
    assert_eq!(vm.map_value_addr(0, &4096_u64.to_le_bytes(), 0), None);
    vm.free_owner(4096, host);
    assert_eq!(host.released, [0xabc], "only once");
}

/// Function 0 arms the timer in map 0; function 1, its callback, gives the key.
fn timer_object(kind: MapKind) -> SceneObject {
    let [map, high] = address(2, 1, 0);
    let [callback, callback_high] = address(2, 4, 1);
    let arm = [
        load(6, 1, 0),
        copy(1, 6),
        map,
        high,
        mov(3, 1),
        call(0),
        copy(1, 6),
        callback,
        callback_high,
        call(1),
        copy(1, 6),
        mov(2, 500),
        mov(3, 2),
        call(2),
        EXIT,
    ];
    let note_key = [
        Insn {
            code: 0x61,
            ..load(4, 2, 0)
        },
        store(3, 24, 4),
        mov(0, 0),
        EXIT,
    ];
    SceneObject::default()
        .map(kind, 4, 32, 3)
        .last_map(|map| map.timer_at = Some(8))
        .import("bpf_timer_init", "")
        .import("bpf_timer_set_callback", "")
        .import("bpf_timer_start", "")
        .function(&[&arm])
        .function(&[&note_key])
}

#[test]
fn a_timers_callback_gets_map_key_and_value() {
    for kind in [MapKind::Array, MapKind::Hash] {
        let mut vm = timer_object(kind).instance(BACKEND);
        let host = &mut SceneWorld::default();
        let key = 2_u32.to_le_bytes();
        vm.map_update(0, &Update::new(&key, &[0; 32]), host)
            .unwrap();
        let value = vm.map_value_addr(0, &key, 0).unwrap();
        assert_eq!(vm.call_program(0, &[value + 8], host), Ok(0));
        assert_eq!(host.armed, [(value + 8, 500, false, true)]);
        vm.fire_timer(value + 8, host).unwrap();
        assert_eq!(vm.memory().load_u64(value + 24), 2, "{kind:?}");
    }
}

#[test]
fn a_deleted_value_takes_its_timer_along() {
    let mut vm = timer_object(MapKind::Hash).instance(BACKEND);
    let host = &mut SceneWorld::default();
    let key = 2_u32.to_le_bytes();
    vm.map_update(0, &Update::new(&key, &[0; 32]), host)
        .unwrap();
    let timer = vm.map_value_addr(0, &key, 0).unwrap() + 8;
    vm.call_program(0, &[timer], host).unwrap();
    vm.map_delete(0, &key, host).unwrap();
    assert_eq!(host.armed, []);
    let retired = vm.retired();
    vm.fire_timer(timer, host).unwrap();
    assert_eq!(vm.retired(), retired, "a late expiry does nothing");
}

#[test]
fn an_instance_repeats_itself() {
    let run = || {
        let mut vm = map_object(MapKind::Hash, 100).instance(BACKEND);
        let host = &mut SceneWorld::default();
        let values: Vec<_> = (0..5).map(|_| vm.call_program(0, &[0], host)).collect();
        (values, vm.retired(), vm.map_keys(0))
    };
    assert_eq!(run(), run());
}
