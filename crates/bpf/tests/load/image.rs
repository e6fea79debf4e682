//! Maps, globals, functions, tables and lines of a linked object.

use super::{Image, bytes, code, linked, object, target};
use bpf::{LoadError, MapDef, MapKind, MemberValue, Object, ObjectLimits, StructOpsProblem};
use model::Advice as _;

fn map<'a>(image: &'a Image, name: &str) -> &'a MapDef {
    image
        .maps
        .iter()
        .find(|map| map.name == name)
        .expect("the image has the map")
}

#[test]
fn a_map_has_what_its_declaration_says() {
    let image = linked("whole.bpf.c");
    let hash = map(&image, "hash");
    assert_eq!(
        (hash.kind, hash.max_entries, hash.flags),
        (MapKind::Hash, 128, 1)
    );
    assert_eq!((hash.key_size, hash.value_size), (4, 48));
    assert_eq!((hash.lock_at, hash.timer_at), (Some(8), Some(16)));
    assert_eq!(hash.kptrs_at, [32, 40]);
}

#[test]
fn a_map_of_maps_knows_its_inner_map_and_first_entries() {
    let image = linked("whole.bpf.c");
    let (inner, entries) = map(&image, "outer").inner.clone().unwrap();
    let inner = &image.maps[inner as usize];
    assert_eq!(
        (inner.kind, inner.value_size, inner.max_entries),
        (MapKind::Array, 8, 4)
    );
    let named: Vec<_> = entries
        .iter()
        .map(|&(key, map)| (key, &*image.maps[map as usize].name))
        .collect();
    assert_eq!(named, [(0, "inner_two"), (2, "inner_one")]);
}

#[test]
fn data_sections_are_maps_of_one_value() {
    let image = linked("whole.bpf.c");
    let rodata = map(&image, ".rodata");
    assert!(rodata.frozen && rodata.max_entries == 1);
    assert_eq!(
        rodata.initial.as_ref().unwrap().len(),
        rodata.value_size as usize
    );
    let bss = map(&image, ".bss");
    assert!(!bss.frozen && bss.initial.as_ref().unwrap().iter().all(|&byte| byte == 0));
    assert_eq!(map(&image, ".data.knobs").kind, MapKind::Array);
}

#[test]
fn many_zeroed_variables_take_no_bytes_of_the_image_and_count_apart() {
    let file = bytes("large.bpf.c");
    let limits = ObjectLimits {
        file_bytes: 1 << 20,
        ..ObjectLimits::default()
    };
    let object = Object::parse_within(&file, &limits).expect("zeros do not count as bytes");
    let mut image = object.link(&target()).expect("the fixture links");
    let bss = map(&image, ".bss");
    assert_eq!(
        (bss.value_size, bss.initial.as_deref()),
        (165_706_292, Some(&[][..]))
    );
    assert_eq!(bss.initial_bytes(165_706_290, 2), Some(vec![0, 0]));
    assert_eq!(bss.initial_bytes(165_706_290, 3), None);
    image
        .set_global("large[3]", "5")
        .expect("it is an array of numbers");
    assert_eq!(
        map(&image, ".bss").initial.as_deref(),
        Some(&[0, 0, 0, 5][..])
    );

    let limits = ObjectLimits {
        zero_bytes: 165_706_291,
        ..ObjectLimits::default()
    };
    let refused = Object::parse_within(&file, &limits).expect_err("one byte too many");
    let message = "object too large: it has more than 165706291 bytes of zeroed variables";
    assert_eq!(refused.to_string(), message);
}

#[test]
fn arena_variables_lie_in_the_arena() {
    let image = linked("whole.bpf.c");
    let arena = map(&image, "arena");
    assert_eq!((arena.kind, arena.max_entries), (MapKind::Arena, 16));
    assert_eq!(arena.initial.as_ref().unwrap()[..4], [1, 2, 3, 0]);
    let load = code(&image, "on_stop")[0];
    assert_eq!((load.code, load.src), (0x18, 2));
    assert_eq!(image.maps[load.imm as usize].name, "arena");
}

fn global(image: &Image, name: &str) -> u64 {
    let symbol = image
        .symbols
        .iter()
        .find(|symbol| symbol.name == name)
        .unwrap();
    let bytes = image.maps[symbol.map as usize].initial.as_ref().unwrap();
    let start = symbol.offset as usize;
    u64::from_le_bytes(bytes[start..start + 8].try_into().unwrap())
}

#[test]
fn weak_constants_named_like_enumerators_get_the_kernels_values() {
    let image = linked("whole.bpf.c");
    assert_eq!(global(&image, "__RED"), 5);
    assert_eq!(global(&image, "__WIDE_TOP"), 0x8000_0000_0000_0001);
    assert_eq!(global(&image, "__NO_SUCH"), 0);
    assert_eq!(global(&image, "__GREEN"), 99, "it is not weak");
}

#[test]
fn calls_reach_functions_of_other_sections_and_their_own() {
    let image = linked("whole.bpf.c");
    let callees = |name| {
        let calls = code(&image, name)
            .iter()
            .filter(|insn| (insn.code, insn.src) == (0x85, 1));
        calls
            .map(|insn| &*image.functions[insn.imm as usize].name)
            .collect::<Vec<_>>()
    };
    assert_eq!(callees("on_start"), ["global_in_text", "weak_in_text"]);
    assert_eq!(callees("global_in_text"), ["in_text", "in_text"]);
    let callback = code(&image, "on_start")
        .iter()
        .find(|insn| (insn.code, insn.src) == (0x18, 4));
    assert_eq!(
        image.functions[callback.unwrap().imm as usize].name,
        "callback"
    );
}

#[test]
fn programs_know_their_section_and_whether_they_are_loaded() {
    let image = linked("whole.bpf.c");
    let programs: Vec<_> = image
        .programs
        .iter()
        .map(|program| (&*program.name, &*program.section, program.autoload))
        .collect();
    let expected = [
        ("on_start", "struct_ops/start", true),
        ("on_stop", "struct_ops.s/stop", true),
        ("optional", "?struct_ops/stop", false),
        ("variables", "syscall", true),
    ];
    assert_eq!(programs, expected);
    assert_eq!(image.license, "Dual MIT/GPL");
}

#[test]
fn a_table_holds_callbacks_and_settings_and_drops_unset_members() {
    let image = linked("whole.bpf.c");
    let [table] = &image.struct_ops[..] else {
        panic!("one table")
    };
    assert_eq!(
        (&*table.name, &*table.type_name, table.autoload),
        ("table", "table", true)
    );
    let expected = [
        ("start".to_owned(), MemberValue::Program(0)),
        ("stop".to_owned(), MemberValue::Program(1)),
        ("flags".to_owned(), MemberValue::Int(6)),
        ("name".to_owned(), MemberValue::Bytes(b"whole".to_vec())),
    ];
    assert_eq!(table.members, expected);
}

#[test]
fn a_set_member_that_the_kernel_lacks_is_named() {
    let error = object("newer.bpf.c").link(&target()).unwrap_err();
    let expected = LoadError::StructOps {
        table: "table".to_owned(),
        member: "newer".to_owned(),
        problem: StructOpsProblem::AbsentMember,
    };
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "struct_ops table `table`, member `newer`: it is set, but the target kernel has no such \
         member"
    );
    let whole = LoadError::StructOps {
        table: "table".to_owned(),
        member: String::new(),
        problem: StructOpsProblem::UnknownType("newest_ops".to_owned()),
    };
    assert_eq!(
        whole.to_string(),
        "struct_ops table `table`: the target kernel has no type `newest_ops`"
    );
}

#[test]
fn lines_lead_back_to_the_source() {
    let image = linked("whole.bpf.c");
    let function = image
        .functions
        .iter()
        .find(|function| function.name == "on_stop")
        .unwrap();
    let line = image
        .lines
        .iter()
        .find(|line| line.insn == function.start)
        .unwrap();
    assert!(line.file.ends_with("whole.bpf.c"), "{}", line.file);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/whole.bpf.c");
    let source = std::fs::read_to_string(folder).unwrap();
    let text = source.lines().nth(line.line as usize - 1).unwrap();
    assert!(text.contains("in_arena[0] = 1"), "{text}");
    assert!(image.lines.is_sorted_by_key(|line| line.insn));
}

#[test]
fn the_same_bytes_link_to_the_same_image() {
    let file = bytes("whole.bpf.c");
    let [first, second] = [(); 2].map(|()| {
        let image = Object::parse(&file).unwrap().link(&target()).unwrap();
        format!("{image:?}")
    });
    assert_eq!(first, second);
}

#[test]
fn what_is_no_bpf_object_is_refused_with_advice() {
    for file in [&b""[..], b"#!/bin/sh", &bytes("whole.bpf.c")[..40]] {
        let error = Object::parse(file).unwrap_err();
        assert!(error.in_full().contains("runslice build"), "{error}");
    }
    let mut other_machine = bytes("newer.bpf.c");
    other_machine[18] = 62;
    let error = Object::parse(&other_machine).unwrap_err();
    assert!(error.in_full().contains("another machine"), "{error}");
}

#[test]
fn declarations_that_cannot_be_honoured_are_refused_by_name() {
    let cases = [
        ("badmap.bpf.c", "map `painted`: unknown attribute `colour`"),
        (
            "sockmap.bpf.c",
            "map `sockets`: map type 15 is not supported",
        ),
        (
            "badknob.bpf.c",
            "knob `levels`: its value 9 lies outside 2..=8",
        ),
        (
            "unlinked.bpf.c",
            "map `.addr_space.1`: the object has arena variables but no map of type \
             BPF_MAP_TYPE_ARENA; link it with the object that declares one (`bpftool gen object`)",
        ),
    ];
    for (name, message) in cases {
        let error = object(name).link(&target()).unwrap_err();
        assert_eq!(error.in_full(), message);
    }
}
