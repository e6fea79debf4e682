//! Ring buffers, and maps whose pages a loader maps.

use super::*;

fn ring(loader: &mut Loader, kind: MapKind) -> BpfId {
    loader.map(kind, 0, 0, 4096)
}

/// Reserves 12 bytes, writes the context's word into them and submits them. Gives 1 if the ring
/// was full.
fn producer(map: BpfId, flags: i32) -> Vec<Insn> {
    let [a, b] = map_of(1, map, None);
    vec![
        insn::load(6, 1, 0),
        a,
        b,
        insn::mov(2, 12),
        insn::mov(3, 0),
        insn::call(131), // bpf_ringbuf_reserve
        insn(0x55, 0, 0, 2, 0),
        insn::mov(0, 1),
        insn::EXIT,
        insn::store(0, 0, 6),
        insn::copy(1, 0),
        insn::mov(2, flags),
        insn::call(132), // bpf_ringbuf_submit
        insn::mov(0, 0),
        insn::EXIT,
    ]
}

/// Bytes of a ring's pages.
fn page_bytes(loader: &Loader, map: BpfId) -> (u64, u64) {
    let index = loader.door.objects.map(map).unwrap().index.unwrap();
    loader.vm.maps.get(index).unwrap().pages.unwrap()
}

fn word(loader: &mut Loader, at: u64) -> u64 {
    loader.vm.memory().load_u64(at)
}

#[test]
fn a_ring_buffer_has_the_kernels_layout_and_wraps_into_its_second_half() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let map = ring(&mut loader, MapKind::Ringbuf);
        let (base, len) = page_bytes(&loader, map);
        assert_eq!(len, 4 * 4096);
        let mappable = loader.door.mappable(&loader.vm, map).unwrap();
        assert_eq!((mappable.len, mappable.address), (4 * 4096, None));
        let put = loader.syscall(&[&producer(map, 0)]);
        assert!(!loader.door.is_ready(&loader.vm, map));
        assert_eq!(loader.run(put, &77_u64.to_le_bytes()).unwrap().0, 0);
        assert!(loader.door.is_ready(&loader.vm, map));
        assert_eq!(loader.door.take_notified(&mut loader.vm), [map]);
        assert_eq!(
            word(&mut loader, base + 4096),
            24,
            "8 of header, 12 rounded up"
        );
        assert_eq!(word(&mut loader, base + 8192) as u32, 12);
        assert_eq!(word(&mut loader, base + 8200), 77);
        // The second one waits behind the first: nobody is woken for it.
        loader.run(put, &78_u64.to_le_bytes()).unwrap();
        assert_eq!(loader.door.take_notified(&mut loader.vm), []);
        while loader.run(put, &1_u64.to_le_bytes()).unwrap().0 == 0 {}
        let produced = word(&mut loader, base + 4096);
        assert_eq!(produced, 4095 / 24 * 24);
        // The reader has read all: the next record begins at 4080 and ends behind the first half.
        loader.vm.memory().poke_u64(base, produced);
        assert!(!loader.door.is_ready(&loader.vm, map));
        assert_eq!(loader.run(put, &79_u64.to_le_bytes()).unwrap().0, 0);
        assert_eq!(word(&mut loader, base + 8192 + 4080) as u32, 12);
        assert_eq!(word(&mut loader, base + 8192 + 4088), 79);
        assert_eq!(word(&mut loader, base + 4096), produced + 24);
    }
}

#[test]
fn positions_that_no_reader_writes_harm_nobody() {
    let mut loader = Loader::new(Backend::Interpreter);
    let map = ring(&mut loader, MapKind::Ringbuf);
    let (base, _) = page_bytes(&loader, map);
    let put = loader.syscall(&[&producer(map, 1)]);
    for consumed in [u64::MAX, 1, 1 << 40, 4096, 0] {
        loader.vm.memory().poke_u64(base, consumed);
        loader
            .vm
            .memory()
            .poke_u64(base + 4096, consumed.rotate_left(7));
        for _ in 0..200 {
            loader.run(put, &5_u64.to_le_bytes()).unwrap();
        }
    }
    assert_eq!(
        loader.door.take_notified(&mut loader.vm),
        [],
        "BPF_RB_NO_WAKEUP"
    );
}

/// Drains a user ring buffer into the context: adds up the first words of all samples, and gives
/// the helper's answer.
fn consumer(map: BpfId) -> Vec<Insn> {
    let [a, b] = map_of(1, map, None);
    vec![
        insn::copy(3, 1),
        a,
        b,
        insn(0x18, 2, 4, 0, 4), // the callback
        insn(0, 0, 0, 0, 0),
        insn::mov(4, 0),
        insn::call(209), // bpf_user_ringbuf_drain
        insn::EXIT,
        // The callback: a dynptr, the context.
        insn::copy(6, 2),
        insn::mov(2, 0),
        insn::mov(3, 8),
        insn::call(203), // bpf_dynptr_data
        insn(0x55, 0, 0, 2, 0),
        insn::mov(0, 1),
        insn::EXIT,
        insn::load(1, 0, 0),
        insn::load(2, 6, 0),
        insn::add_register(2, 1),
        insn::store(6, 0, 2),
        insn::mov(0, 0),
        insn::EXIT,
    ]
}

/// Writes samples as libbpf does: a length, a flag, and the sample.
fn put_sample(loader: &mut Loader, base: u64, (header, value): (u32, u64)) {
    let memory = loader.vm.memory();
    let produced = memory.load_u64(base + 4096);
    let at = base + 8192 + (produced & 4095);
    memory.poke_u64(at, header.into());
    memory.poke_u64(base + 8192 + ((produced + 8) & 4095), value);
    memory.poke_u64(base + 4096, produced + 16);
}

#[test]
fn a_user_ring_buffer_is_drained_sample_by_sample() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let map = ring(&mut loader, MapKind::UserRingbuf);
        let (base, _) = page_bytes(&loader, map);
        let drain = loader.syscall(&[&consumer(map)]);
        assert_eq!(loader.run(drain, &[0; 8]).unwrap().0, 0);
        assert!(loader.door.is_ready(&loader.vm, map), "there is room");
        for (header, value) in [(8, 30), (8 | 1 << 30, 500), (8, 12), (8 | 1 << 31, 7000)] {
            put_sample(&mut loader, base, (header, value));
        }
        let (samples, sum) = loader.run(drain, &[0; 8]).unwrap();
        assert_eq!((samples, sum), (2, 42_u64.to_le_bytes().to_vec()));
        assert_eq!(word(&mut loader, base), 48, "the busy one stays");
        assert_eq!(loader.door.take_notified(&mut loader.vm), [map]);
        // A length beyond what was produced.
        loader.vm.memory().poke_u64(base + 8192 + 48, 4000);
        assert_eq!(loader.run(drain, &[0; 8]).unwrap().0.cast_signed(), -EINVAL);
        loader.vm.memory().poke_u64(base + 4096, 3);
        assert_eq!(loader.run(drain, &[0; 8]).unwrap().0.cast_signed(), -EINVAL);
        assert_eq!(word(&mut loader, base), 48);
    }
}

/// An arena at `1 << 44` whose first page lies 16 pages into a block of 4 GiB.
const ARENA: u64 = 1 << 44 | 16 << 12;

fn arena(loader: &mut Loader) -> BpfId {
    loader.create(MapCreate {
        kind: MapKind::Arena as u32,
        max_entries: 100,
        flags: 1 << 10,
        extra: ARENA,
        ..MapCreate::default()
    })
}

/// Allocates a page of the arena, stores the context's word there, and puts the pointer, cast for
/// user space, into the context.
fn allocator(loader: &Loader, map: BpfId) -> Vec<Insn> {
    let [a, b] = map_of(1, map, None);
    let alloc = loader.kernel("bpf_arena_alloc_pages") as i32;
    vec![
        insn::copy(6, 1),
        insn::load(7, 1, 0),
        a,
        b,
        insn::mov(2, 0),
        insn::mov(3, 1),
        insn::mov(4, -1),
        insn::mov(5, 0),
        insn(0x85, 0, 2, 0, alloc),
        insn(0xbf, 1, 0, 1, 1), // from user space's address to ours
        insn::store(1, 0, 7),
        insn(0xbf, 2, 1, 1, 1 << 16), // and back
        insn::store(6, 0, 2),
        insn::mov(0, 0),
        insn::EXIT,
    ]
}

#[test]
fn pointers_into_an_arena_have_user_spaces_value() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let map = arena(&mut loader);
        let alloc = allocator(&loader, map);
        let alloc = loader.syscall(&[&alloc]);
        let (_, pointer) = loader.run(alloc, &123_u64.to_le_bytes()).unwrap();
        assert_eq!(pointer, ARENA.to_le_bytes(), "the first page");
        let base = loader.vm.memory().arena().unwrap().base();
        assert_eq!(word(&mut loader, base + (ARENA & 0xffff_ffff)), 123);
        // What an instruction points to is user space's address, too.
        let [a, b] = map_of(1, map, Some(0));
        let read = [
            a,
            b,
            insn(0xbf, 1, 1, 1, 1),
            insn::load(0, 1, 0),
            insn::EXIT,
        ];
        let read = loader.syscall(&[&read]);
        assert_eq!(loader.run(read, &[]).unwrap().0, 123);
    }
}

#[test]
fn a_program_is_told_of_its_faults_in_the_arena_by_its_stream_of_errors() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let map = arena(&mut loader);
        let [a, b] = map_of(2, map, None);
        let code = |access: Insn| {
            [
                a,
                b,
                insn::load(1, 1, 0),
                insn(0xbf, 1, 1, 1, 1),
                access,
                insn::mov(0, 0),
                insn::EXIT,
            ]
        };
        let reader = loader.syscall(&[&code(insn::load(0, 1, 16))]);
        let writer = loader.syscall(&[&code(insn::store(1, -8, 1))]);
        let at = |page: u64| (ARENA + page * 4096).to_le_bytes();
        // Below and behind the arena's 100 pages there is nothing, either.
        for (program, page) in [(reader, 3), (reader, 100), (writer, 0)] {
            loader.run(program, &at(page)).unwrap();
        }
        let mut said = |program| {
            let answer = loader.errno(BpfCall::StreamRead {
                program,
                stream: 2,
                len: 1000,
            });
            String::from_utf8(answer.map(bytes).unwrap()).unwrap()
        };
        let line = |access, address: u64| {
            format!(
                "ERROR: Arena {access} access at unmapped address {address:#x}\n\
                 Call trace:\ntried+4\n"
            )
        };
        let [third, last] = [3, 100].map(|page| line("READ", ARENA + page * 4096 + 16));
        assert_eq!(said(reader), third + &last);
        assert_eq!(said(writer), line("WRITE", ARENA - 8));
        assert_eq!(said(reader), "", "each is told once");
        let counts = loader.vm.arena_faults();
        let counts: Vec<u64> = counts.iter().map(|fault| fault.count).collect();
        assert_eq!(counts, [2, 1]);
    }
}

#[test]
fn an_arena_without_address_can_be_used_when_it_has_one() {
    let mut loader = Loader::new(Backend::Interpreter);
    let map = loader.create(MapCreate {
        kind: MapKind::Arena as u32,
        max_entries: 100,
        flags: 1 << 10,
        ..MapCreate::default()
    });
    let code = allocator(&loader, map);
    let load = BpfCall::ProgLoad(Box::new(program(31, &[&code])));
    assert!(
        refused(loader.call(load.clone()))
            .1
            .contains("map_extra or mmap()")
    );
    let mut at = |address| {
        let placed = loader.door.arena_at(&mut loader.vm, map, address);
        placed.map_err(|error| match error {
            CallError::Refused(refused) => refused.errno,
            CallError::Fault(fault) => panic!("{fault}"),
        })
    };
    assert_eq!(at(12), Err(EINVAL));
    assert_eq!(at(ARENA), Ok(()));
    assert_eq!(at(ARENA), Ok(()));
    assert_eq!(at(ARENA + 4096), Err(16));
    assert!(loader.call(load).is_ok());
}

#[cfg(all(target_os = "linux", not(feature = "compact")))]
mod shared {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    fn memory_file(len: u64) -> File {
        let file = rustix::fs::memfd_create("map", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let file = File::from(file);
        file.set_len(len).unwrap();
        file
    }

    /// Shares a map, and gives what the loader has of it.
    fn share(loader: &mut Loader, map: BpfId) -> File {
        let len = loader.door.mappable(&loader.vm, map).unwrap().len;
        let file = memory_file(len);
        let ours = file.try_clone().unwrap();
        loader.door.share(&mut loader.vm, map, ours).unwrap();
        file
    }

    fn word_of(file: &File, at: u64) -> u64 {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn a_shared_map_is_seen_and_changed_from_both_sides() {
        for backend in BACKENDS {
            let mut loader = Loader::new(backend);
            let map = loader.create(MapCreate {
                kind: MapKind::Array as u32,
                key_size: 4,
                value_size: 16,
                max_entries: 1,
                flags: 1 << 10,
                ..MapCreate::default()
            });
            let add = loader.syscall(&[&adder(map)]);
            loader.run(add, &7_u64.to_le_bytes()).unwrap();
            let file = share(&mut loader, map);
            assert_eq!(word_of(&file, 8), 7, "what was there");
            file.write_all_at(&40_u64.to_le_bytes(), 8).unwrap();
            assert_eq!(loader.run(add, &2_u64.to_le_bytes()).unwrap().0, 42);
            assert_eq!(word_of(&file, 8), 42);
            let value = loader.lookup(map, &[0; 4], false).unwrap();
            assert_eq!(value[8..], 42_u64.to_le_bytes());
            // Its pages are nobody else's when it is gone.
            for object in [add, map] {
                loader.errno(BpfCall::Close { object }).unwrap();
            }
            let map = loader.create(MapCreate {
                kind: MapKind::Array as u32,
                key_size: 4,
                value_size: 16,
                max_entries: 1,
                flags: 1 << 10,
                ..MapCreate::default()
            });
            assert_eq!(loader.lookup(map, &[0; 4], false), Ok(vec![0; 16]));
            loader.update(map, &[0; 4], &[3; 16]).unwrap();
            assert_eq!(word_of(&file, 8), 42);
        }
    }

    #[test]
    fn a_map_of_zeros_takes_no_memory_in_its_file() {
        let mut loader = Loader::new(Backend::Interpreter);
        // The variables of scx_layered.
        let map = loader.create(MapCreate {
            kind: MapKind::Array as u32,
            key_size: 4,
            value_size: 165_706_292,
            max_entries: 1,
            flags: 1 << 10,
            ..MapCreate::default()
        });
        let file = share(&mut loader, map);
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_blocks, 0);
    }

    #[test]
    fn a_page_of_the_arena_that_the_loader_touches_is_allocated() {
        let mut loader = Loader::new(Backend::Interpreter);
        let map = arena(&mut loader);
        let code = allocator(&loader, map);
        let alloc = loader.syscall(&[&code]);
        loader.run(alloc, &[0; 8]).unwrap();
        let file = share(&mut loader, map);
        // The loader's allocator takes pages 1 and 2.
        file.write_all_at(&[7; 8], 4096).unwrap();
        file.write_all_at(&[8; 8], 2 * 4096).unwrap();
        let (_, pointer) = loader.run(alloc, &55_u64.to_le_bytes()).unwrap();
        assert_eq!(pointer, (ARENA + 3 * 4096).to_le_bytes());
        assert_eq!(word_of(&file, 3 * 4096), 55);
        // Freeing them punches a hole, and they can be had again.
        let [a, b] = map_of(1, map, None);
        let free = loader.kernel("bpf_arena_free_pages") as i32;
        let [c, d] = map_of(2, map, Some(4096));
        let free = loader.syscall(&[&[
            a,
            b,
            c,
            d,
            insn::mov(3, 2),
            insn(0x85, 0, 2, 0, free),
            insn::mov(0, 0),
            insn::EXIT,
        ]]);
        let blocks = rustix::fs::fstat(&file).unwrap().st_blocks;
        loader.run(free, &[]).unwrap();
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_blocks, blocks - 16);
        assert_eq!(word_of(&file, 2 * 4096), 0);
        let (_, pointer) = loader.run(alloc, &[0; 8]).unwrap();
        assert_eq!(pointer, (ARENA + 4096).to_le_bytes());
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let mut loader = Loader::new(Backend::Interpreter);
        let map = ring(&mut loader, MapKind::Ringbuf);
        assert!(
            loader
                .door
                .share(&mut loader.vm, map, memory_file(4096))
                .is_err()
        );
        let map = loader.map(MapKind::Array, 4, 4, 1);
        assert!(
            loader
                .door
                .share(&mut loader.vm, map, memory_file(4096))
                .is_err()
        );
    }
}
