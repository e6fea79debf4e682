//! Both front doors give the same: what the linker makes of an object, and what a loader's calls
//! make of it that were made by hand here, as its library makes them.

use std::path::Path;

use bpf::{Config, Door, Image, Insn, MemberValue, Object, Target};
use runslice_tests::library::{Library, code};
use runslice_tests::nobody::Nobody;

/// What an instruction is, whatever the indices of its image are.
fn meaning(image: &Image, insn: Insn) -> String {
    let Insn {
        code,
        dst,
        off,
        imm,
        src,
    } = insn;
    let at = imm as usize;
    let what = match (code, src) {
        (0x18, 1 | 2) => format!("map {:.15}", image.maps[at].name),
        (0x18, 3) => format!("variable {}", image.variables[at].name),
        (0x18, 4) | (0x85, 1) => format!("function {}", image.functions[at].name),
        (0x85, 0) => format!(
            "import {} {}",
            image.imports[at].name, image.imports[at].prototype
        ),
        (0x85, 15) => "nothing".to_owned(),
        _ => imm.to_string(),
    };
    format!("{code:#x} {dst} {src} {off} {what}")
}

/// Compares two functions and what they need; gives how many there are.
fn compare(one: &Image, other: &Image, pair: (u32, u32), seen: &mut Vec<(u32, u32)>) {
    if seen.contains(&pair) {
        return;
    }
    seen.push(pair);
    let name = &one.functions[pair.0 as usize].name;
    let (ours, theirs) = (code(one, pair.0), code(other, pair.1));
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (slot, (a, b)) in ours.iter().zip(theirs).enumerate() {
        if slot > 0 && ours[slot - 1].code == 0x18 {
            assert_eq!(a, b, "{name}+{slot}");
            continue;
        }
        assert_eq!(meaning(one, *a), meaning(other, *b), "{name}+{slot}");
        if matches!((a.code, a.src), (0x85, 1) | (0x18, 4)) {
            compare(one, other, (a.imm as u32, b.imm as u32), seen);
        }
    }
}

#[test]
fn every_shipped_policy_is_the_same_through_both_doors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = root.join("../crates/sim/kernel/6.18.h");
    let types = bpf_build::compile(&header, &[]).expect("the kernel's header compiles");
    let target = Target::new("6.18", (6, 18, 0), &types).unwrap();
    let policies = root.join("../policies");
    let mut compared = 0;
    for entry in std::fs::read_dir(&policies).expect("the policies") {
        let path = entry.expect("a policy").path();
        if !path.to_string_lossy().ends_with(".bpf.c") {
            continue;
        }
        let file = bpf_build::compile(&path, &[&policies.join("include")]).expect("it compiles");
        let image = Object::parse(&file).unwrap().link(&target).unwrap();
        let opened = Door::open(target.clone(), Vec::new(), Config::default());
        let (mut door, mut vm) = opened.expect("there is memory");
        let mut call = |call| {
            let answer = door.call(&mut vm, &mut Nobody::default(), call);
            answer.map_err(|error| format!("{error:?}"))
        };
        let library = Library::load(&file, image.clone(), &target, &mut call);
        for table in &image.struct_ops {
            library.attach(&mut call, table);
        }
        let loaded = vm.image();
        let mut seen = Vec::new();
        for (ours, theirs) in image.programs.iter().zip(&loaded.programs) {
            assert_eq!(ours.name, theirs.name);
            compare(&image, loaded, (ours.function, theirs.function), &mut seen);
        }
        assert!(
            loaded.functions.len() <= image.functions.len(),
            "functions are kept once"
        );
        assert_eq!(loaded.struct_ops.len(), image.struct_ops.len());
        for (ours, theirs) in image.struct_ops.iter().zip(&loaded.struct_ops) {
            let sorted = |members: &[(String, MemberValue)]| {
                let mut members = members.to_vec();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                members
            };
            assert_eq!(
                sorted(&ours.members),
                sorted(&theirs.members),
                "{}",
                path.display()
            );
        }
        for (map, def) in (0..).zip(&image.maps) {
            if let Some(bytes) = def.initial_bytes(0, def.value_size as usize) {
                assert_eq!(vm.map_value(map, &[0; 4], 0), Some(&*bytes), "{}", def.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 8, "data sections of all policies");
}
