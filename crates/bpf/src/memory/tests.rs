//! What the region promises.

use super::*;

fn memory() -> Memory {
    Memory::reserve(1 << 20, None).expect("address space")
}

#[test]
fn what_lies_outside_the_region_reads_as_zero() {
    let memory = memory();
    for address in [0, 8, BASE - 1, BASE + GIB_4 - 7, BASE + GIB_4, u64::MAX] {
        assert_eq!(memory.load_u64(address), 0, "{address:#x}");
    }
    assert_eq!(memory.bytes(BASE + GIB_4 - 4, 8), None);
}

#[test]
fn a_store_is_taken_only_where_something_was_allocated() {
    let mut memory = memory();
    let block = memory.alloc_map(16).unwrap();
    assert!(memory.store(block + 8, [0xff; 8]));
    assert!(
        !memory.store(block + 9, [0xff; 8]),
        "its last byte lies behind the block"
    );
    assert!(!memory.store(block - 1, [0xff; 1]));
    assert_eq!(memory.load_u64(block + 8), u64::MAX);
    assert_eq!(memory.verdict(block + 16, 1), StoreVerdict::Wild);
}

#[test]
fn the_lower_half_is_protected_from_programs_but_not_from_the_host() {
    let mut memory = memory();
    let object = memory.alloc_kernel(64, 64).unwrap();
    assert_eq!(object % 64, 0);
    assert!(!memory.store(object, [1; 4]));
    assert_eq!(memory.verdict(object, 4), StoreVerdict::Protected);
    memory.poke_u32(object, 0x0102_0304);
    assert_eq!(memory.load_u32(object), 0x0102_0304);
}

#[test]
fn a_freed_block_is_reused_zeroed_and_only_for_its_size() {
    let mut memory = memory();
    let block = memory.alloc_kernel(40, 8).unwrap();
    memory.poke_u64(block, 7);
    memory.free_kernel(block, 40);
    assert_ne!(memory.alloc_kernel(80, 8).unwrap(), block);
    assert_eq!(
        memory.alloc_kernel(41, 8).unwrap(),
        block,
        "both round up to 48"
    );
    assert_eq!(memory.load_u64(block), 0);
}

#[test]
fn the_cap_on_map_memory_holds() {
    let mut memory = memory();
    let refused = memory.alloc_map((1 << 20) + 1).unwrap_err();
    assert_eq!(
        refused,
        OutOfMemory {
            wanted: (1 << 20) + 1,
            limit: 1 << 20
        }
    );
    assert!(memory.alloc_map(u64::MAX).is_err());
    // What the machine itself keeps of the block counts, too.
    assert!(memory.alloc_map((1 << 20) - 63).is_err());
    assert!(memory.alloc_map((1 << 20) - 64).is_ok());
    assert!(memory.alloc_map(1).is_err());
}

#[test]
fn one_limit_holds_for_maps_objects_the_arena_and_what_a_host_keeps() {
    let mut memory = Memory::reserve(1 << 20, Some(1 << 20)).unwrap();
    memory.arena.as_mut().unwrap().resize(1000);
    let quarter = (1 << 18) - 64;
    let map = memory.alloc_map(quarter).unwrap();
    let object = memory.alloc_object(quarter, 8).unwrap();
    memory.hold(quarter).unwrap();
    assert_eq!(memory.alloc_arena(None, 65), None, "64 pages are a quarter");
    let pages = memory.alloc_arena(None, 64).unwrap();
    assert!(memory.alloc_map(1).is_err());
    assert!(memory.alloc_object(1, 8).is_err());
    assert!(memory.hold(1).is_err());
    // What is given back can be had again, for the same use.
    memory.free_map(map, quarter);
    assert_eq!(memory.alloc_map(quarter), Ok(map));
    memory.free_object(object, quarter);
    assert_eq!(memory.alloc_object(quarter, 8), Ok(object));
    memory.release_held(quarter);
    assert!(memory.hold(quarter).is_ok());
    // The process has the pages for good; other ones would be more.
    assert_eq!(memory.free_arena(pages, 64), 64);
    assert_eq!(memory.alloc_arena(Some(pages + (64 << 12)), 1), None);
    assert_eq!(memory.alloc_arena(None, 64), Some(pages));
}

#[test]
fn short_cuts_decide_as_the_whole_question_does() {
    let mut memory = memory();
    let frozen = memory.alloc_kernel(24, 8).unwrap();
    memory.freeze(frozen, 24);
    let object = memory.alloc_kernel(40, 8).unwrap();
    let value = memory.alloc_map(40).unwrap();
    let mut seen = Vec::new();
    for block in [BASE, frozen, object, object + 48, value, value + 48, 0] {
        for (distance, len) in (-9_i64..=9).flat_map(|at| [1, 2, 4, 8].map(|len| (at, len))) {
            let address = block.wrapping_add_signed(distance);
            let verdict = memory.verdict(address, len);
            let is_object = memory.is_kernel_object(address, len);
            assert_eq!(
                is_object,
                verdict == StoreVerdict::Protected,
                "{address:#x} {len}"
            );
            let stored = memory.store_bytes(address, &[7; 8][..len as usize]);
            assert_eq!(
                stored,
                verdict == StoreVerdict::Allowed,
                "{address:#x} {len}"
            );
            seen.push(verdict);
        }
    }
    for verdict in [
        StoreVerdict::Protected,
        StoreVerdict::Allowed,
        StoreVerdict::Wild,
    ] {
        assert!(seen.contains(&verdict), "{verdict:?} did not occur");
    }
}

#[test]
#[should_panic(expected = "which nobody allocated")]
fn the_host_cannot_write_what_nobody_allocated() {
    memory().poke_u32(BASE + 4096, 1);
}

#[test]
fn addresses_repeat_from_instance_to_instance() {
    let run = || {
        let mut memory = memory();
        let first = memory.alloc_kernel(100, 8).unwrap();
        memory.free_kernel(first, 100);
        [
            memory.alloc_kernel(90, 8).unwrap(),
            memory.alloc_map(8).unwrap(),
        ]
    };
    assert_eq!(run(), run());
}

/// Other tests may take the mapping in between, so there are several rounds. Part of what is
/// written is zeroed in place, part of it lies behind that.
#[test]
fn a_region_is_zero_whatever_was_in_its_mapping_before() {
    for round in 0..8_u64 {
        let mut memory = Memory::reserve(64 << 20, Some(64 << 20)).expect("address space");
        memory.open_user_arena(2_000);
        let mut blocks = Vec::new();
        for size in [104, 5_000, 400 << 10, 3 << 20] {
            blocks.push((memory.alloc_kernel(size, 64).unwrap(), size));
            blocks.push((memory.alloc_map(size).unwrap(), size));
            let pages = memory.alloc_arena(None, size.div_ceil(Pages::SIZE));
            blocks.push((pages.unwrap(), size));
        }
        for (block, size) in blocks {
            let bytes = memory.bytes(block, size).unwrap();
            let dirty = bytes.iter().position(|byte| *byte != 0);
            assert_eq!(dirty, None, "round {round}, {size} bytes at {block:#x}");
            memory.write(block, &vec![0xa5; size as usize]);
        }
    }
}
