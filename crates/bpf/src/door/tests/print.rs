//! What programs print for their loader, and where they fail.

use super::*;

/// Text in a map's value, and its address in a register.
fn text(loader: &mut Loader, dst: u8, text: &[u8]) -> [Insn; 2] {
    let map = loader.map(MapKind::Array, 4, text.len() as u32, 1);
    loader.update(map, &[0; 4], text).unwrap();
    map_of(dst, map, Some(0))
}

#[test]
fn each_program_has_streams_of_its_own() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let print = loader.kernel("bpf_stream_vprintk_impl") as i32;
        let [a, b] = text(&mut loader, 2, b"hello\n\0");
        let mut say = |stream| {
            loader.syscall(&[&[
                insn::mov(1, stream),
                a,
                b,
                insn::mov(3, 0),
                insn::mov(4, 0),
                insn::mov(5, 0),
                insn(0x85, 0, 2, 0, print),
                insn::EXIT,
            ]])
        };
        let (first, second, none) = (say(1), say(2), say(3));
        for program in [first, second, second] {
            assert_eq!(loader.run(program, &[]).unwrap().0, 0);
        }
        assert_eq!(loader.run(none, &[]).unwrap().0.cast_signed(), -2);
        let mut read = |program, stream, len| {
            loader.errno(BpfCall::StreamRead {
                program,
                stream,
                len,
            })
        };
        let text = |text: &[u8]| Ok(BpfAnswer::Bytes(text.to_vec()));
        assert_eq!(read(first, 1, 4), text(b"hell"));
        assert_eq!(read(first, 1, 100), text(b"o\n"));
        assert_eq!(read(first, 1, 100), text(b""));
        assert_eq!(read(first, 2, 100), text(b""));
        assert_eq!(read(second, 2, 100), text(b"hello\nhello\n"));
        assert_eq!(read(second, 3, 100), Err(2));
        assert_eq!(loader.world.printed, "", "it is the loader's");
    }
}

#[test]
fn an_iterator_gives_its_reader_what_its_program_writes() {
    let mut loader = Loader::new(Backend::Interpreter);
    loader.world.visited = vec![0x1000, 0x2000];
    let [a, b] = text(&mut loader, 2, b"task\n");
    let iterator = ProgLoad {
        attach_type: 28,
        attach_to: loader.kernel("bpf_iter_task"),
        ..program(
            26,
            &[&[
                insn::load(3, 1, 8), // the task
                insn(0x55, 3, 0, 2, 0),
                insn::mov(0, 0),
                insn::EXIT,
                insn::load(1, 1, 0), // meta
                insn::load(1, 1, 0), // its file
                a,
                b,
                insn::mov(3, 5),
                insn::call(127), // bpf_seq_write
                insn::mov(0, 0),
                insn::EXIT,
            ]],
        )
    };
    let target = loader.load(iterator);
    let link = loader.errno(BpfCall::LinkCreate {
        target,
        attach_type: 28,
        name: String::new(),
        flags: 0,
    });
    let Ok(BpfAnswer::Created(link)) = link else {
        panic!("{link:?}");
    };
    let text = loader.errno(BpfCall::IterRead { link });
    assert_eq!(text, Ok(BpfAnswer::Bytes(b"task\ntask\n".to_vec())));
}

#[test]
fn a_fault_names_the_line_that_the_loader_gave() {
    let mut loader = Loader::new(Backend::Interpreter);
    let types = loader.door.target.btf().to_vec();
    let Ok(BpfAnswer::Created(btf)) = loader.errno(BpfCall::BtfLoad { bytes: types }) else {
        panic!("the kernel's types are types");
    };
    // Any text of the types will do for a file, and any function for the program.
    let function = loader.kernel("scx_tick");
    let file = 1_u32;
    let name = loader.door.target.btf.text_at(file).unwrap().to_owned();
    let record = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let load = ProgLoad {
        btf: Some(btf),
        functions: (record(&[0, function]), 8),
        lines: (record(&[0, file, 0, 7 << 10, 1, file, 0, 9 << 10 | 3]), 16),
        ..program(
            31,
            &[&[
                insn::mov(1, 1),
                insn::store(1, 0, 1),
                insn::mov(0, 0),
                insn::EXIT,
            ]],
        )
    };
    let program = loader.load(load.clone());
    let Err(CallError::Fault(fault)) = loader.run(program, &[]) else {
        panic!("it stores to address 1");
    };
    assert_eq!(
        (&*fault.program, fault.insn, fault.line),
        ("scx_tick", 1, 9)
    );
    assert_eq!(fault.file, Some(name));
    let backwards = ProgLoad {
        lines: (record(&[1, file, 0, 7 << 10, 0, file, 0, 9 << 10]), 16),
        ..load
    };
    assert_eq!(
        refused(loader.call(BpfCall::ProgLoad(Box::new(backwards)))).0,
        EINVAL
    );
}

#[test]
fn a_kernel_variable_is_found_by_its_number_on_each_cpu() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let queues = loader.kernel("runqueues") as i32;
        let on_cpu = loader
            .vm
            .variable_address("runqueues", 2)
            .expect("it is there");
        loader.vm.memory().poke_u64(on_cpu, 99);
        let program = loader.syscall(&[&[
            insn(0x18, 1, 3, 0, queues),
            insn(0, 0, 0, 0, 0),
            insn::mov(2, 2),
            insn::call(153), // bpf_per_cpu_ptr
            insn::load(0, 0, 0),
            insn::EXIT,
        ]]);
        assert_eq!(loader.run(program, &[]).unwrap().0, 99);
    }
}

#[test]
fn values_have_timers_where_the_loaders_types_say_it() {
    let mut loader = Loader::new(Backend::Interpreter);
    let types = loader.door.target.btf().to_vec();
    let Ok(BpfAnswer::Created(btf)) = loader.errno(BpfCall::BtfLoad { bytes: types }) else {
        panic!("the kernel's types are types");
    };
    let asked = MapCreate {
        kind: MapKind::Hash as u32,
        key_size: 4,
        value_size: 16,
        max_entries: 4,
        btf: Some(btf),
        key_type: loader.kernel("u32"),
        value_type: loader.kernel("bpf_timer"),
        ..MapCreate::default()
    };
    let map = loader.create(asked.clone());
    loader.update(map, &[1; 4], &[0xff; 16]).unwrap();
    assert_eq!(
        loader.lookup(map, &[1; 4], false),
        Ok(vec![0; 16]),
        "it is the kernel's"
    );
    assert_eq!(loader.errno(BpfCall::Freeze { map }), Err(524));
    let other = MapCreate {
        value_size: 24,
        ..asked
    };
    assert_eq!(loader.errno(BpfCall::MapCreate(other)), Err(EINVAL));
    let bytes = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    assert_eq!(loader.errno(BpfCall::BtfLoad { bytes }), Err(EINVAL));
}
