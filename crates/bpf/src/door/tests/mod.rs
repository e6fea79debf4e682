//! Every test runs on both back ends.

use std::path::Path;
use std::sync::OnceLock;

use model::user_space::{BpfAnswer, BpfCall, BpfId, Fds, MapCreate, ProgLoad};

use super::{Attachment, CallError, Door};
use crate::scene::{SceneWorld, insn};
use crate::{Backend, Config, Insn, Instance, MapKind, Target};

/// The kernel of our simulator, which has all that loaders look up.
fn types() -> &'static [u8] {
    static TYPES: OnceLock<Vec<u8>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/kernel/6.18.h");
        bpf_build::compile(&header, &[]).expect("the kernel's header compiles")
    })
}

fn target() -> Target {
    Target::new("6.18", (6, 18, 0), types()).expect("the kernel's types parse")
}

/// A loader of two lines: what it makes has the file descriptor 100 and its number.
struct Loader {
    door: Door<SceneWorld>,
    vm: Instance<SceneWorld>,
    world: SceneWorld,
}

const BACKENDS: [Backend; 2] = [
    Backend::Interpreter,
    if cfg!(feature = "jit") {
        Backend::Jit
    } else {
        Backend::Interpreter
    },
];

fn fd(id: BpfId) -> i32 {
    id.0 as i32 + 100
}

/// File descriptors of the first objects.
fn fds() -> Fds {
    (1..50).map(|id| (id + 100, BpfId(id))).collect()
}

impl Loader {
    fn new(backend: Backend) -> Self {
        let config = Config {
            cpus: 3,
            backend,
            ..Config::default()
        };
        let (door, vm) = Door::open(target(), Vec::new(), config).expect("an empty kernel");
        let world = SceneWorld::default();
        Self { door, vm, world }
    }

    fn call(&mut self, call: BpfCall) -> Result<BpfAnswer, CallError> {
        self.door.call(&mut self.vm, &mut self.world, call)
    }

    /// The number of the error that a call gives, or what it answers.
    fn errno(&mut self, call: BpfCall) -> Result<BpfAnswer, i32> {
        self.call(call).map_err(|error| match error {
            CallError::Refused(refused) => refused.errno,
            CallError::Fault(fault) => panic!("{fault}"),
        })
    }

    fn create(&mut self, asked: MapCreate) -> BpfId {
        match self.call(BpfCall::MapCreate(asked)) {
            Ok(BpfAnswer::Created(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    fn map(&mut self, kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> BpfId {
        self.create(MapCreate {
            kind: kind as u32,
            key_size,
            value_size,
            max_entries,
            ..MapCreate::default()
        })
    }

    fn update(&mut self, map: BpfId, key: &[u8], value: &[u8]) -> Result<BpfAnswer, i32> {
        self.update_with(map, key, value, 0)
    }

    fn update_with(
        &mut self,
        map: BpfId,
        key: &[u8],
        value: &[u8],
        flags: u64,
    ) -> Result<BpfAnswer, i32> {
        self.errno(BpfCall::Update {
            map,
            key: key.to_vec(),
            value: value.to_vec(),
            flags,
            fds: fds(),
        })
    }

    fn lookup(&mut self, map: BpfId, key: &[u8], delete: bool) -> Result<Vec<u8>, i32> {
        let answer = self.errno(BpfCall::Lookup {
            map,
            key: key.to_vec(),
            flags: 0,
            delete,
        });
        answer.map(bytes)
    }

    fn next(&mut self, map: BpfId, key: Option<&[u8]>) -> Result<Vec<u8>, i32> {
        let key = key.map(<[u8]>::to_vec);
        self.errno(BpfCall::NextKey { map, key }).map(bytes)
    }

    fn load(&mut self, asked: ProgLoad) -> BpfId {
        match self.call(BpfCall::ProgLoad(Box::new(asked))) {
            Ok(BpfAnswer::Created(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    fn syscall(&mut self, parts: &[&[Insn]]) -> BpfId {
        self.load(program(31, parts))
    }

    fn run(&mut self, program: BpfId, context: &[u8]) -> Result<(u32, Vec<u8>), CallError> {
        let answer = self.call(BpfCall::TestRun {
            program,
            context: context.to_vec(),
            flags: 0,
            cpu: 0,
        })?;
        match answer {
            BpfAnswer::Ran { result, context } => Ok((result, context)),
            other => panic!("{other:?}"),
        }
    }

    fn kernel(&self, name: &str) -> u32 {
        let named = |(id, _): (crate::btf::TypeId, &crate::btf::Type)| {
            (self.door.target.btf.name(id) == name).then_some(id.0)
        };
        let found = self.door.target.btf.iter().find_map(named);
        found.unwrap_or_else(|| panic!("the kernel has a `{name}`"))
    }
}

fn bytes(answer: BpfAnswer) -> Vec<u8> {
    match answer {
        BpfAnswer::Bytes(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

fn encode(parts: &[&[Insn]]) -> Vec<u8> {
    let encode = |insn: &Insn| {
        let [a, b] = insn.off.to_le_bytes();
        let [c, d, e, f] = insn.imm.to_le_bytes();
        [insn.code, insn.dst | insn.src << 4, a, b, c, d, e, f]
    };
    parts.concat().iter().flat_map(encode).collect()
}

fn program(kind: u32, parts: &[&[Insn]]) -> ProgLoad {
    ProgLoad {
        kind,
        name: "tried".into(),
        code: encode(parts),
        license: "GPL".into(),
        fds: fds(),
        ..ProgLoad::default()
    }
}

fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Insn {
    Insn {
        code,
        dst,
        src,
        off,
        imm,
    }
}

/// `r[dst]` becomes the address of a map, or of a byte in its value.
fn map_of(dst: u8, map: BpfId, offset: Option<i32>) -> [Insn; 2] {
    let src = if offset.is_some() { 2 } else { 1 };
    [
        insn(0x18, dst, src, 0, fd(map)),
        insn(0, 0, 0, 0, offset.unwrap_or(0)),
    ]
}

const EINVAL: i32 = 22;

#[test]
fn arrays_are_read_and_set_as_a_kernel_has_it() {
    let mut loader = Loader::new(Backend::Interpreter);
    let map = loader.map(MapKind::Array, 4, 5, 3);
    assert_eq!(loader.lookup(map, &[2, 0, 0, 0], false), Ok(vec![0; 5]));
    assert_eq!(
        loader.update(map, &[2, 0, 0, 0], b"abcde"),
        Ok(BpfAnswer::Done)
    );
    assert_eq!(
        loader.lookup(map, &[2, 0, 0, 0], false),
        Ok(b"abcde".to_vec())
    );
    assert_eq!(loader.lookup(map, &[3, 0, 0, 0], false), Err(2));
    assert_eq!(loader.update(map, &[3, 0, 0, 0], b"abcde"), Err(7));
    assert_eq!(loader.update_with(map, &[1, 0, 0, 0], b"abcde", 1), Err(17));
    assert_eq!(loader.update(map, &[1, 0, 0, 0], b"abcdef"), Err(EINVAL));
    assert_eq!(loader.update(map, &[1, 0, 0], b"abcde"), Err(EINVAL));
    assert_eq!(loader.lookup(map, &[1, 0, 0, 0], true), Err(524));
    assert_eq!(loader.next(map, None), Ok(vec![0; 4]));
    assert_eq!(loader.next(map, Some(&[1, 0, 0, 0])), Ok(vec![2, 0, 0, 0]));
    assert_eq!(loader.next(map, Some(&[2, 0, 0, 0])), Err(2));
    assert_eq!(loader.next(map, Some(&[9, 0, 0, 0])), Ok(vec![0; 4]));
    let key = vec![0; 4];
    assert_eq!(loader.errno(BpfCall::Delete { map, key }), Err(EINVAL));
}

#[test]
fn a_value_of_a_per_cpu_map_is_one_for_each_cpu_padded_to_8_bytes() {
    for kind in [MapKind::PercpuArray, MapKind::PercpuHash] {
        let mut loader = Loader::new(Backend::Interpreter);
        let map = loader.map(kind, 4, 3, 4);
        let value: Vec<u8> = (1..=24).collect();
        assert_eq!(
            loader.update(map, &[1, 0, 0, 0], &value),
            Ok(BpfAnswer::Done)
        );
        let mut read = value.clone();
        for (at, byte) in read.iter_mut().enumerate() {
            *byte *= u8::from(at % 8 < 3);
        }
        assert_eq!(loader.lookup(map, &[1, 0, 0, 0], false), Ok(read));
        assert_eq!(loader.update(map, &[1, 0, 0, 0], &value[..3]), Err(EINVAL));
        let map = loader.door.objects.map(map).unwrap().index.unwrap();
        assert_eq!(
            loader.vm.map_value(map, &[1, 0, 0, 0], 2),
            Some(&[17, 18, 19][..])
        );
    }
}

#[test]
fn hash_maps_grow_shrink_and_are_walked() {
    let mut loader = Loader::new(Backend::Interpreter);
    let map = loader.map(MapKind::Hash, 1, 2, 2);
    assert_eq!(loader.next(map, None), Err(2), "nothing is there");
    assert_eq!(loader.update_with(map, b"a", b"aa", 2), Err(2));
    loader.update(map, b"a", b"aa").unwrap();
    loader.update(map, b"b", b"bb").unwrap();
    assert_eq!(loader.update(map, b"c", b"cc"), Err(7));
    assert_eq!(loader.update_with(map, b"a", b"aa", 1), Err(17));
    assert_eq!(
        loader.update_with(map, b"a", b"aa", 4),
        Err(EINVAL),
        "no lock"
    );
    assert_eq!(loader.next(map, None), Ok(b"a".to_vec()));
    assert_eq!(loader.next(map, Some(b"a")), Ok(b"b".to_vec()));
    assert_eq!(loader.next(map, Some(b"b")), Err(2));
    assert_eq!(
        loader.next(map, Some(b"x")),
        Ok(b"a".to_vec()),
        "begins anew"
    );
    assert_eq!(loader.lookup(map, b"a", true), Ok(b"aa".to_vec()));
    assert_eq!(loader.lookup(map, b"a", false), Err(2));
    let delete = |key: &[u8]| BpfCall::Delete {
        map,
        key: key.to_vec(),
    };
    assert_eq!(loader.errno(delete(b"b")), Ok(BpfAnswer::Done));
    assert_eq!(loader.errno(delete(b"b")), Err(2));
}

#[test]
fn queues_and_maps_of_maps_are_set_by_user_space() {
    let mut loader = Loader::new(Backend::Interpreter);
    let queue = loader.map(MapKind::Queue, 0, 1, 2);
    assert_eq!(loader.lookup(queue, &[], true), Err(2));
    loader.update(queue, &[], b"x").unwrap();
    loader.update(queue, &[], b"y").unwrap();
    assert_eq!(loader.update(queue, &[], b"z"), Err(7));
    assert_eq!(loader.lookup(queue, &[], false), Ok(b"x".to_vec()));
    assert_eq!(loader.lookup(queue, &[], true), Ok(b"x".to_vec()));
    assert_eq!(loader.lookup(queue, &[], true), Ok(b"y".to_vec()));
    let outer = loader.create(MapCreate {
        kind: MapKind::ArrayOfMaps as u32,
        key_size: 4,
        value_size: 4,
        max_entries: 2,
        inner: Some(queue),
        ..MapCreate::default()
    });
    let other = loader.map(MapKind::Stack, 0, 1, 2);
    assert_eq!(
        loader.update(outer, &[1, 0, 0, 0], &fd(other).to_le_bytes()),
        Err(EINVAL)
    );
    assert_eq!(
        loader.update(outer, &[1, 0, 0, 0], &7_u32.to_le_bytes()),
        Err(9)
    );
    loader
        .update(outer, &[1, 0, 0, 0], &fd(queue).to_le_bytes())
        .unwrap();
    assert_eq!(
        loader.lookup(outer, &[1, 0, 0, 0], false),
        Ok(queue.0.to_le_bytes().to_vec())
    );
    assert_eq!(loader.lookup(outer, &[0, 0, 0, 0], false), Err(2));
}

#[test]
fn maps_that_no_kernel_would_create_are_refused() {
    let mut loader = Loader::new(Backend::Interpreter);
    let mut create = |kind: u32, sizes: [u32; 3], flags: u32, extra: u64| {
        loader.errno(BpfCall::MapCreate(MapCreate {
            kind,
            key_size: sizes[0],
            value_size: sizes[1],
            max_entries: sizes[2],
            flags,
            extra,
            ..MapCreate::default()
        }))
    };
    assert_eq!(create(2, [8, 4, 1], 0, 0), Err(EINVAL));
    assert_eq!(create(2, [4, 0, 1], 0, 0), Err(EINVAL));
    assert_eq!(create(2, [4, 4, 0], 0, 0), Err(EINVAL));
    assert_eq!(create(2, [4, 4, 1], 1, 0), Err(EINVAL), "an unknown flag");
    assert_eq!(create(2, [4, u32::MAX, 1], 0, 0), Err(7));
    assert_eq!(create(2, [4, 1 << 30, 1 << 30], 0, 0), Err(12));
    assert_eq!(create(1, [4, 4 << 20, 1], 0, 0), Err(7));
    assert_eq!(create(9, [4, 4, 1], 1, 0), Err(524));
    assert_eq!(
        create(27, [0, 0, 3 << 12], 0, 0),
        Err(EINVAL),
        "no power of two"
    );
    assert_eq!(
        create(27, [0, 0, 1 << 11], 0, 0),
        Err(EINVAL),
        "no whole page"
    );
    assert_eq!(create(29, [4, 4, 0], 1, 0), Err(EINVAL), "it has no types");
    assert_eq!(create(33, [0, 0, 10], 1 << 10, 12), Err(EINVAL));
    assert_eq!(
        create(33, [0, 0, 10], 1 << 10, 0xffff_f000),
        Err(34),
        "it crosses 4 GiB"
    );
    assert_eq!(create(33, [0, 0, u32::MAX], 1 << 10, 0), Err(7));
    assert_eq!(create(26, [4, 512, 1], 1 << 13, 0), Err(EINVAL), "no type");
    assert_eq!(create(77, [4, 4, 1], 0, 0), Err(EINVAL));
}

/// A program that adds its context's word to a counter of the map and returns the sum.
fn adder(map: BpfId) -> Vec<Insn> {
    let [a, b] = map_of(2, map, Some(8));
    vec![
        insn::load(3, 1, 0),
        a,
        b,
        insn::load(0, 2, 0),
        insn::add_register(0, 3),
        insn::store(2, 0, 0),
        insn::store(1, 0, 0),
        insn::EXIT,
    ]
}

#[test]
fn programs_are_loaded_and_run_one_after_another() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let map = loader.map(MapKind::Array, 4, 16, 1);
        let first = loader.syscall(&[&adder(map)]);
        assert_eq!(loader.run(first, &7_u64.to_le_bytes()).unwrap().0, 7);
        // A second object of the same loader, after the first has run.
        let second = loader.syscall(&[&adder(map)]);
        let ran = loader.run(second, &5_u64.to_le_bytes()).unwrap();
        assert_eq!(
            ran,
            (12, 12_u64.to_le_bytes().to_vec()),
            "the context comes back"
        );
        assert_eq!(loader.run(first, &1_u64.to_le_bytes()).unwrap().0, 13);
        let value = loader.lookup(map, &[0; 4], false).unwrap();
        assert_eq!(value[8..], 13_u64.to_le_bytes());
    }
}

#[test]
fn functions_are_called_named_as_callbacks_and_kept_once() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        // Calls `triple` twice, once through `bpf_loop`, which passes the turn and the context.
        let parts: [&[Insn]; 2] = [
            &[
                insn::mov(1, 5),
                insn(0x85, 0, 1, 0, 9), // triple(5)
                insn::copy(6, 0),
                insn::mov(1, 3),
                insn(0x18, 2, 4, 0, 6), // &triple
                insn(0, 0, 0, 0, 0),
                insn::mov(3, 0),
                insn::mov(4, 0),
                insn::call(181), // bpf_loop
                insn::add_register(0, 6),
                insn::EXIT,
            ],
            &[
                insn::mov(0, 0),
                insn::add_register(0, 1),
                insn::add_register(0, 1),
                insn::add_register(0, 1),
                insn::EXIT,
            ],
        ];
        let first = loader.syscall(&parts);
        let functions = loader.vm.image().functions.len();
        let second = loader.syscall(&parts);
        assert_eq!(
            loader.vm.image().functions.len(),
            functions + 1,
            "only the program is new"
        );
        // The callback answers 0, then 3: the loop stops behind the second turn.
        for program in [first, second] {
            assert_eq!(loader.run(program, &[]).unwrap().0, 15 + 2);
        }
    }
}

#[test]
fn calls_of_what_the_kernel_lacks_load_and_end_the_program_that_reaches_them() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        for (number, says) in [
            (2_002_000_003, "lacks the function"),
            (2_001_000_000, "was not created"),
            (195_896_080, "lacks a type"),
            (9999, "helper number 9999"),
        ] {
            let program = loader.syscall(&[&[
                insn::load(2, 1, 0),
                insn(0x15, 2, 0, 1, 0), // if r2 == 0 skip
                insn::call(number),
                insn::mov(0, 1),
                insn::EXIT,
            ]]);
            assert_eq!(loader.run(program, &[0; 8]).unwrap().0, 1);
            match loader.run(program, &[1; 8]) {
                Err(CallError::Fault(fault)) => {
                    assert!(fault.to_string().contains(says), "{fault}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn refused(result: Result<BpfAnswer, CallError>) -> (i32, String) {
    match result {
        Err(CallError::Refused(refused)) => (refused.errno, refused.log),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_that_no_kernel_would_load_is_refused_with_a_log() {
    let mut loader = Loader::new(Backend::Interpreter);
    let map = loader.map(MapKind::Array, 4, 16, 1);
    let two = loader.map(MapKind::Array, 4, 16, 2);
    let [a, b] = map_of(1, map, Some(1 << 30));
    let end = [insn::mov(0, 0), insn::EXIT];
    let mut load =
        |parts: &[&[Insn]]| refused(loader.call(BpfCall::ProgLoad(Box::new(program(1, parts)))));
    // What libbpf asks to find out whether the offset is checked.
    let (errno, log) = load(&[&[a, b], &end]);
    assert_eq!(errno, EINVAL);
    assert!(
        log.contains("direct value offset of 1073741824 is not allowed"),
        "{log}"
    );
    assert!(
        load(&[&map_of(1, map, Some(16)), &end])
            .1
            .contains("value_size=16 off=16")
    );
    assert!(
        load(&[&map_of(1, two, Some(0)), &end])
            .1
            .contains("no direct value access")
    );
    assert_eq!(load(&[&map_of(1, BpfId(40), None), &end]).0, 9);
    assert_eq!(
        load(&[
            &[insn(0x18, 1, 3, 0, 0x7fff_ffff), insn(0, 0, 0, 0, 0)],
            &end
        ])
        .0,
        2
    );
    assert_eq!(load(&[&[insn(0x85, 0, 2, 0, 1)], &end]).0, EINVAL);
    assert_eq!(
        load(&[&[insn(0x85, 0, 15, 0, 0)], &end]).0,
        EINVAL,
        "ours alone"
    );
    assert_eq!(load(&[&[insn(0x85, 0, 1, 0, 100)], &end]).0, EINVAL);
    assert_eq!(load(&[&[insn(0x85, 0, 1, 0, -7)], &end]).0, EINVAL);
    assert_eq!(load(&[&[insn::mov(0, 0)]]).0, EINVAL, "no end");
    assert_eq!(load(&[]).0, 7);
    let reg = loader.kernel("bpf_scx_reg") as i32;
    let call = program(31, &[&[insn(0x85, 0, 2, 0, reg)], &end]);
    assert_eq!(
        refused(loader.call(BpfCall::ProgLoad(Box::new(call)))).0,
        13
    );
    let unknown = ProgLoad {
        kind: 99,
        ..program(31, &[&end])
    };
    assert_eq!(
        refused(loader.call(BpfCall::ProgLoad(Box::new(unknown)))).0,
        EINVAL
    );
    assert_eq!(loader.vm.image().functions.len(), 0, "nothing was kept");
}

#[test]
fn a_frozen_map_is_set_by_nobody_and_read_by_all() {
    for backend in BACKENDS {
        let mut loader = Loader::new(backend);
        let map = loader.create(MapCreate {
            kind: MapKind::Array as u32,
            key_size: 4,
            value_size: 16,
            max_entries: 1,
            flags: 1 << 7 | 1 << 10,
            name: "bpf_bpf.rodata".into(),
            ..MapCreate::default()
        });
        loader.update(map, &[0; 4], &[9; 16]).unwrap();
        assert_eq!(loader.errno(BpfCall::Freeze { map }), Ok(BpfAnswer::Done));
        assert_eq!(loader.errno(BpfCall::Freeze { map }), Err(16));
        assert_eq!(loader.update(map, &[0; 4], &[8; 16]), Err(1));
        assert_eq!(loader.lookup(map, &[0; 4], false), Ok(vec![9; 16]));
        let [a, b] = map_of(1, map, Some(8));
        let read = loader.syscall(&[&[a, b, insn::load(0, 1, 0), insn::EXIT]]);
        assert_eq!(loader.run(read, &[]).unwrap().0, 0x0909_0909);
        let store = [
            a,
            b,
            insn::mov(2, 1),
            insn::store(1, 0, 2),
            insn::mov(0, 0),
            insn::EXIT,
        ];
        let write = loader.syscall(&[&store]);
        assert!(matches!(loader.run(write, &[]), Err(CallError::Fault(_))));
        assert_eq!(loader.lookup(map, &[0; 4], false), Ok(vec![9; 16]));
    }
}

/// The value of a table of callbacks: `init` is a program, the name is given.
fn table_value(loader: &Loader, name: &[u8], init: i32) -> (Vec<u8>, u32) {
    let field = |path| {
        let field = loader
            .door
            .target
            .field("bpf_struct_ops_sched_ext_ops", path);
        field.unwrap().offset as usize
    };
    let size = loader
        .door
        .target
        .size_of("bpf_struct_ops_sched_ext_ops")
        .unwrap();
    let mut value = vec![0; size as usize];
    let init_at = field("data.init");
    value[init_at..init_at + 4].copy_from_slice(&init.to_le_bytes());
    let name_at = field("data.name");
    value[name_at..name_at + name.len()].copy_from_slice(name);
    let timeout = field("data.timeout_ms");
    value[timeout..timeout + 4].copy_from_slice(&5000_u32.to_le_bytes());
    let member = (init_at - field("data")) / 8;
    (value, member as u32)
}

#[test]
fn a_table_holds_programs_by_file_descriptor_and_is_attached_by_a_link() {
    let mut loader = Loader::new(Backend::Interpreter);
    let (mut value, member) = table_value(&loader, b"tried", 0);
    assert_eq!(value.len(), 512);
    let table = loader.create(MapCreate {
        kind: 26,
        key_size: 4,
        value_size: 512,
        max_entries: 1,
        flags: 1 << 13,
        name: "tried_ops".into(),
        kernel_value_type: loader.kernel("bpf_struct_ops_sched_ext_ops"),
        ..MapCreate::default()
    });
    let callback = |attach_type| ProgLoad {
        attach_type,
        attach_to: loader.kernel("sched_ext_ops"),
        flags: 1 << 4,
        ..program(27, &[&[insn::mov(0, 0), insn::EXIT]])
    };
    let (fits, other) = (callback(member), callback(member + 1));
    let (fits, other) = (loader.load(fits), loader.load(other));
    let link = BpfCall::LinkCreate {
        target: table,
        attach_type: 44,
        name: String::new(),
        flags: 0,
    };
    assert_eq!(loader.errno(link.clone()), Err(EINVAL), "nothing is set");
    (value, _) = table_value(&loader, b"tried", fd(other));
    assert_eq!(
        loader.update(table, &[0; 4], &value),
        Err(EINVAL),
        "another callback"
    );
    (value, _) = table_value(&loader, b"tried", 7);
    assert_eq!(loader.update(table, &[0; 4], &value), Err(9));
    (value, _) = table_value(&loader, b"tried", fd(fits));
    loader.update(table, &[0; 4], &value).unwrap();
    assert_eq!(loader.update(table, &[0; 4], &value), Err(16));
    assert!(loader.vm.image().struct_ops.is_empty(), "not attached yet");
    let Ok(BpfAnswer::Created(link)) = loader.errno(link) else {
        panic!("it can be attached");
    };
    let ops = &loader.vm.image().struct_ops[0];
    assert_eq!(
        (&*ops.name, &*ops.type_name),
        ("tried_ops", "sched_ext_ops")
    );
    let program = &loader.vm.image().programs[0];
    assert_eq!(program.section, "struct_ops.s/tried");
    let expected = [
        ("init".to_owned(), crate::MemberValue::Program(0)),
        ("timeout_ms".to_owned(), crate::MemberValue::Int(5000)),
        (
            "name".to_owned(),
            crate::MemberValue::Bytes(b"tried".to_vec()),
        ),
    ];
    assert_eq!(ops.members, expected);
    // The program lives as long as the table, and the table as long as the link.
    for object in [fits, table] {
        loader.errno(BpfCall::Close { object }).unwrap();
    }
    assert!(loader.vm.image().programs[0].autoload);
    loader.errno(BpfCall::Close { object: link }).unwrap();
    assert!(loader.vm.image().struct_ops.is_empty());
    assert!(!loader.vm.image().programs[0].autoload);
}

#[test]
fn tracing_programs_are_attached_by_the_kernels_name() {
    let mut loader = Loader::new(Backend::Interpreter);
    let cases = [
        (
            "btf_trace_sched_switch",
            23,
            Attachment::Tracepoint("sched_switch".into()),
        ),
        ("bpf_scx_reg", 24, Attachment::Entry("bpf_scx_reg".into())),
        ("bpf_iter_task", 28, Attachment::Iterator("task".into())),
    ];
    for (name, attach_type, to) in cases {
        let load = ProgLoad {
            attach_type,
            attach_to: loader.kernel(name),
            ..program(26, &[&[insn::mov(0, 0), insn::EXIT]])
        };
        let target = loader.load(load);
        let link = loader.errno(BpfCall::LinkCreate {
            target,
            attach_type,
            name: String::new(),
            flags: 0,
        });
        assert!(link.is_ok(), "{name}");
        let attached = loader.door.attached().last().map(|it| it.to.clone());
        assert_eq!(attached, Some(to));
    }
    let wrong = ProgLoad {
        attach_type: 24,
        attach_to: loader.kernel("btf_trace_sched_switch"),
        ..program(26, &[&[insn::mov(0, 0), insn::EXIT]])
    };
    assert_eq!(
        refused(loader.call(BpfCall::ProgLoad(Box::new(wrong)))).0,
        EINVAL
    );
}

#[test]
fn what_is_closed_is_freed_and_a_loader_may_begin_again() {
    let mut loader = Loader::new(Backend::Interpreter);
    // Three of these would not fit.
    for _ in 0..5 {
        let map = loader.map(MapKind::Array, 4, 200 << 20, 1);
        let [a, b] = map_of(1, map, Some(8));
        let program = loader.syscall(&[&[a, b, insn::load(0, 1, 0), insn::EXIT]]);
        loader.errno(BpfCall::Close { object: map }).unwrap();
        assert_eq!(
            loader.run(program, &[]).unwrap().0,
            0,
            "the program still has the map"
        );
        loader.errno(BpfCall::Close { object: program }).unwrap();
    }
    assert_eq!(loader.vm.image().maps.len(), 1, "its index is used again");
}

mod hostile;
mod pages;
mod print;
