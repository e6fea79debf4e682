use std::sync::Arc;

use crate::scene::insn::{EXIT, add_register, address, call, call_local, copy, load, mov};
use crate::scene::{SceneObject, SceneWorld};
use crate::{Backend, Config, FieldRead, Image, Instance, MapKind, Scalar, Type};

/// Function 0 asks for random bits, function 1 adds them to the first word of the only map.
fn object(word: u64) -> Arc<Image> {
    SceneObject::default()
        .map(MapKind::Array, 4, 8, 1)
        .last_map(|map| {
            map.initial = Some(Arc::from(&word.to_le_bytes()[..]));
        })
        .map(MapKind::Arena, 0, 0, 10)
        .import("bpf_get_prandom_u32", "")
        .function(&[&[call(0), EXIT]])
        .function(&[
            &[call_local(0), copy(6, 0)],
            &address(1, 2, 0),
            &[load(0, 1, 0), add_register(0, 6), EXIT],
        ])
        .image()
}

fn joined() -> Arc<Image> {
    let mut image = object(10);
    let mut other = object(30);
    Arc::make_mut(&mut other).poisons.push("why".to_owned());
    let whole = Arc::make_mut(&mut image);
    let places = whole.join(&other, "app/");
    assert_eq!((places.function, places.map), (2, 2));
    image
}

#[test]
fn each_object_finds_its_own_code_and_data() {
    let image = joined();
    let mut vm = Instance::new(image, &[], Config::default()).expect("a good image");
    let host = &mut SceneWorld::default();
    let random = vm.call_program(0, &[], host).unwrap();
    assert_eq!(vm.call_program(1, &[], host).unwrap(), 10 + random);
    assert_eq!(vm.call_program(3, &[], host).unwrap(), 30 + random);
}

#[test]
fn what_both_import_is_there_once_and_each_name_too() {
    let image = joined();
    assert_eq!(image.imports.len(), 1);
    assert_eq!(image.imports[0].callers.len(), 2);
    assert_eq!(image.poisons, ["why"]);
    let names: Vec<_> = image.functions.iter().map(|it| &*it.name).collect();
    assert_eq!(
        names,
        ["function0", "function1", "app/function0", "app/function1"]
    );
    assert_eq!(image.maps[2].name, "app/map0");
    assert_eq!(image.functions[3].start, 2 + image.functions[2].start);
}

#[test]
fn arenas_share_a_window_that_has_room_for_both() {
    let config = Config {
        backend: Backend::Interpreter,
        ..Config::default()
    };
    let mut vm = Instance::<SceneWorld>::new(joined(), &[], config).expect("a good image");
    let memory = vm.memory();
    assert!(memory.alloc_arena(None, 20).is_some());
    assert_eq!(memory.alloc_arena(None, 1), None);
}

#[test]
fn who_says_nothing_of_what_it_reads_lets_the_whole_read_all() {
    let read = |at| FieldRead {
        structure: "task_struct".to_owned(),
        at,
        len: 4,
    };
    let whole = |parts: &[&[FieldRead]]| {
        let mut images = parts.iter().map(|reads| {
            let mut image = object(0);
            Arc::make_mut(&mut image).reads = reads.to_vec();
            image
        });
        let mut whole = images.next().expect("there is a first");
        for other in images {
            Arc::make_mut(&mut whole).join(&other, "b/");
        }
        whole.reads.clone()
    };
    let (one, other) = ([read(0)], [read(8)]);
    assert_eq!(whole(&[&one, &other]), [read(0), read(8)]);
    let silent: [[&[FieldRead]; 3]; 3] = [
        [&one, &[], &other],
        [&[], &one, &other],
        [&one, &other, &[]],
    ];
    for parts in silent {
        assert!(whole(&parts).is_empty(), "{parts:?}");
    }
}

#[test]
fn a_map_keeps_the_type_of_its_values() {
    let word = |bytes| Some(Arc::new(Type::Scalar(Scalar::Unsigned(bytes))));
    let (mut image, mut other) = (object(0), object(0));
    Arc::make_mut(&mut image).maps[0].value = word(8);
    Arc::make_mut(&mut other).maps[0].value = word(4);
    Arc::make_mut(&mut image).join(&other, "b/");
    let types: Vec<_> = image.maps.iter().map(|map| map.value.clone()).collect();
    assert_eq!(types, [word(8), None, word(4), None]);
}

#[test]
fn a_constant_that_looks_like_an_index_stays() {
    let wide = [address(0, 0, 5).as_slice(), &[mov(1, 0), EXIT]].concat();
    let mut image = object(0);
    let other = SceneObject::default().function(&[&wide]).image();
    Arc::make_mut(&mut image).join(&other, "b/");
    let code = &image.code[image.functions[2].start as usize..];
    assert_eq!(code, wide);
}
