//! What an object wants from the kernel, and what becomes of it when the kernel differs.

use super::{Insn, code, linked, object, target};
use bpf::{ExternKind, LoadError};

#[test]
fn everything_missing_is_reported_at_once() {
    let error = object("needy.bpf.c").link(&target()).unwrap_err();
    let LoadError::Missing { missing, .. } = &error else {
        panic!("{error}")
    };
    let mut names: Vec<_> = missing
        .iter()
        .map(|lack| (&*lack.name, lack.kind))
        .collect();
    names.sort_by_key(|(name, _)| *name);
    let expected = [
        ("CONFIG_HZ", ExternKind::Kconfig),
        ("CONFIG_NONE", ExternKind::Kconfig),
        ("kernel_entity", ExternKind::Variable),
        ("kernel_none", ExternKind::Variable),
        ("kfunc_grown", ExternKind::Function),
        ("kfunc_none", ExternKind::Function),
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_missing_function_is_named_with_prototype_and_users() {
    let error = object("needy.bpf.c").link(&target()).unwrap_err();
    let text = error.to_string();
    let absent = "function `kfunc_none` as `void(ptr,u64)`, used by first, second";
    let other = "function `kfunc_grown` as `s32(ptr,u64)` (it has `s32(ptr)`), used by first";
    assert!(text.contains(absent), "{text}");
    assert!(text.contains(other), "{text}");
}

#[test]
fn weak_externs_are_listed_but_do_not_stop_the_link() {
    let missing = object("whole.bpf.c").missing(&target());
    assert!(missing.iter().all(|lack| lack.weak));
    let mut names: Vec<_> = missing.iter().map(|lack| &*lack.name).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "CONFIG_NONE",
            "kernel_none",
            "kfunc_grown___v2",
            "kfunc_none"
        ]
    );
    linked("whole.bpf.c");
}

#[test]
fn a_flavour_with_another_prototype_does_not_bind_to_the_plain_function() {
    let image = linked("whole.bpf.c");
    let import = image
        .imports
        .iter()
        .find(|import| import.name == "kfunc_grown")
        .unwrap();
    assert_eq!(import.prototype, "s32(ptr)");
    let traps: Vec<_> = code(&image, "on_start")
        .iter()
        .filter(|insn| (insn.code, insn.src) == (0x85, Insn::POISON))
        .map(|insn| &*image.poisons[insn.imm as usize])
        .collect();
    assert_eq!(traps.len(), 2, "{traps:?}");
    assert!(traps[0].contains("kfunc_grown___v2") && traps[1].contains("kfunc_none"));
}

#[test]
fn only_an_absent_weak_function_has_address_zero() {
    let image = linked("whole.bpf.c");
    let mut addresses = Vec::new();
    for pair in code(&image, "on_start").windows(2) {
        if (pair[0].code, pair[0].src) == (0x18, 0) {
            addresses.push((pair[0].imm, pair[1].imm) != (0, 0));
        }
    }
    // kfunc_grown___v2, kfunc_grown, kfunc_none.
    assert_eq!(addresses, [false, true, false]);
}

#[test]
fn imports_know_their_kernel_prototype_and_live_callers() {
    let image = linked("whole.bpf.c");
    let calls: Vec<_> = image
        .imports
        .iter()
        .map(|import| {
            (
                &*import.name,
                &*import.prototype,
                import.helper,
                &import.callers[..],
            )
        })
        .collect();
    let find = |name: &str| calls.iter().find(|call| call.0 == name).copied().unwrap();
    assert_eq!(find("kfunc_plain").1, "void(ptr)");
    assert_eq!(find("bpf_map_lookup_elem").2, Some(1));
    assert_eq!(find("bpf_map_lookup_elem").3, ["on_start", "on_stop"]);
    assert_eq!(find("kfunc_grown").3, ["callback", "on_start"]);
}

#[test]
fn programs_that_are_not_loaded_import_nothing_until_they_are() {
    let image = linked("whole.bpf.c");
    assert!(
        image
            .imports
            .iter()
            .all(|import| import.name != "kfunc_unused")
    );
    let insn = code(&image, "optional")[0];
    assert_eq!(insn.src, Insn::POISON);

    let mut object = object("whole.bpf.c");
    object.set_autoload("optional", true).unwrap();
    let image = object.link(&target()).unwrap();
    let insn = code(&image, "optional")[0];
    assert_eq!(insn.src, 0);
    assert_eq!(image.imports[insn.imm as usize].name, "kfunc_unused");
}

#[test]
fn an_unknown_program_cannot_be_loaded() {
    let error = object("whole.bpf.c")
        .set_autoload("on_strat", true)
        .unwrap_err();
    assert!(
        model::Advice::in_full(&error).contains("on_start"),
        "{error}"
    );
}

#[test]
fn kernel_variables_and_settings_become_variables_of_the_image() {
    let image = linked("whole.bpf.c");
    let find = |name: &str| {
        image
            .variables
            .iter()
            .find(|variable| variable.name == name)
    };
    let bytes = |name| find(name).unwrap().initial.clone();
    assert_eq!(bytes("LINUX_KERNEL_VERSION"), [3, 18, 6, 0]);
    assert_eq!(bytes("CONFIG_HZ"), [250, 0, 0, 0]);
    assert_eq!(bytes("CONFIG_ON"), [1]);
    assert_eq!(bytes("CONFIG_TEXT"), *b"abc\0\0\0\0\0");
    assert_eq!(find("CONFIG_NONE"), None);
    let counter = find("kernel_counter").unwrap();
    assert_eq!((counter.size, counter.percpu), (4, false));
    let percpu = find("kernel_percpu").unwrap();
    assert_eq!((percpu.size, percpu.percpu), (8, true));
}

#[test]
fn prototypes_have_one_normal_form() {
    let target = target();
    let prototype = |name| target.prototype(name).unwrap();
    assert_eq!(prototype("kfunc_plain"), "void(ptr)");
    assert_eq!(prototype("kfunc_many"), "bool(ptr,u64,s32,u32,ptr)");
    assert_eq!(prototype("kfunc_unused"), "u32()");
    assert_eq!(target.prototype("kernel_counter"), None);
    let names: Vec<_> = target.functions().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["kfunc_grown", "kfunc_many", "kfunc_plain", "kfunc_unused"]
    );
}
