//! Every question that CO-RE can ask, against a kernel whose answers differ from the object's.

use bpf::FieldRead;

use super::{Image, Insn, code, linked, target};

const MOV_R0: u8 = 0xb7;
const MOV_W0: u8 = 0xb4;
const LOAD_64: u8 = 0x18;

/// What a program of one move returns.
fn answer(image: &Image, program: &str) -> u64 {
    let insns = code(image, program);
    let immediate = insns[0].imm;
    match insns[0].code {
        MOV_R0 => i64::from(immediate).cast_unsigned(),
        MOV_W0 => u64::from(immediate.cast_unsigned()),
        LOAD_64 => {
            u64::from(insns[1].imm.cast_unsigned()) << 32 | u64::from(immediate.cast_unsigned())
        }
        other => panic!("{program} does not begin with a move but with {other:#x}"),
    }
}

fn poison<'a>(image: &'a Image, program: &str) -> &'a str {
    let insn = code(image, program)[0];
    assert_eq!(
        (insn.code, insn.src),
        (0x85, Insn::POISON),
        "{program} is not poisoned"
    );
    &image.poisons[insn.imm as usize]
}

#[test]
fn a_field_is_found_by_its_name_wherever_the_kernel_keeps_it() {
    let (image, kernel) = (linked("core.bpf.c"), target());
    let offset = |path| u64::from(kernel.field("task", path).unwrap().offset);
    assert_eq!(answer(&image, "offset_pid"), 24);
    assert_eq!(answer(&image, "offset_pid"), offset("pid"));
    assert_eq!(
        answer(&image, "offset_hidden"),
        offset("hidden"),
        "through anonymous members"
    );
    let entity = u64::from(kernel.size_of("entity").unwrap());
    assert_eq!(
        answer(&image, "offset_element"),
        offset("entities") + 2 * entity + 8
    );
    assert_eq!(
        answer(&image, "offset_tail"),
        offset("tail") + 3,
        "of a flexible array"
    );
}

/// Of a number its own bytes, of an element of an array all that follows, and all of a structure
/// whose size the object asks for.
#[test]
fn what_programs_may_read_is_told_in_the_kernels_places() {
    let (image, kernel) = (linked("core.bpf.c"), target());
    let reads = |structure: &str, at: u32, len: u32| {
        let same = |read: &&FieldRead| (read.at, read.len) == (at, len);
        let mut reads = image.reads.iter();
        reads.any(|read| read.structure == structure && same(&read))
    };
    let offset = |path| kernel.field("task", path).unwrap().offset;
    assert!(reads("task", offset("pid"), 4));
    assert!(reads("task", offset("hidden"), 8), "{:?}", image.reads);
    let tail = offset("tail") + 3;
    assert!(reads("task", tail, u32::MAX), "an array has neighbours");
    let size = reads("only_in_kernel", 0, u32::MAX);
    assert!(size, "who asks for a size may copy the whole");
    // `parent` has a place, which nobody asks for.
    let parent = offset("parent");
    assert!(!reads("task", parent, 8), "{:?}", image.reads);
}

#[test]
fn sizes_and_signs_are_the_kernels() {
    let image = linked("core.bpf.c");
    assert_eq!(answer(&image, "size_narrowed"), 2);
    assert_eq!(answer(&image, "size_entities"), 4 * 16);
    assert_eq!(answer(&image, "signed_pid"), 1);
    assert_eq!(answer(&image, "signed_hidden"), 0);
    assert_eq!(answer(&image, "signed_high"), 1);
}

#[test]
fn a_bit_field_is_read_from_the_integer_that_holds_all_of_it() {
    let (image, kernel) = (linked("core.bpf.c"), target());
    let start = u64::from(kernel.field("task", "bits").unwrap().offset);
    // `low` has 3 bits after 30 skipped ones, which do not fit: it begins the second word.
    assert_eq!(answer(&image, "offset_low"), start + 4);
    assert_eq!(answer(&image, "size_low"), 4);
    assert_eq!(answer(&image, "lshift_low"), 64 - 3);
    assert_eq!(answer(&image, "rshift_low"), 64 - 3);
}

#[test]
fn existence_is_answered_for_fields_types_and_enumerators() {
    let image = linked("core.bpf.c");
    let yes = ["exists_pid", "type_exists", "type_matches", "enum_exists"];
    let no = [
        "exists_absent",
        "exists_other_type",
        "type_exists_absent",
        "type_matches_wrong",
        "enum_exists_absent",
    ];
    for program in yes {
        assert_eq!(answer(&image, program), 1, "{program}");
    }
    for program in no {
        assert_eq!(answer(&image, program), 0, "{program}");
    }
}

#[test]
fn values_of_enumerators_are_the_kernels_up_to_64_bits() {
    let image = linked("core.bpf.c");
    assert_eq!(answer(&image, "enum_value"), 7);
    assert_eq!(answer(&image, "enum_value_flavour"), 40);
    assert_eq!(answer(&image, "enum_value_wide"), 0x8000_0000_0000_0001);
}

#[test]
fn a_type_has_the_kernels_size_and_both_numbers() {
    let image = linked("core.bpf.c");
    assert_eq!(answer(&image, "type_size"), 16);
    assert_eq!(answer(&image, "type_size_absent"), 0);
    assert_eq!(answer(&image, "type_id_absent"), 0);
    assert_ne!(answer(&image, "type_id_local"), 0);
    assert_ne!(answer(&image, "type_id_target"), 0);
}

#[test]
fn what_the_kernel_lacks_is_poisoned_with_its_name() {
    let image = linked("core.bpf.c");
    let cases = [
        ("offset_absent", "`task.absent`"),
        ("enum_value_absent", "`colour::BLUE`"),
    ];
    for (program, name) in cases {
        let reason = poison(&image, program);
        assert!(reason.contains(name) && reason.contains("toy"), "{reason}");
    }
}

#[test]
fn a_poisoned_64_bit_load_is_poisoned_in_both_halves() {
    let image = linked("core.bpf.c");
    let insns = code(&image, "enum_value_absent");
    let traps = insns
        .iter()
        .filter(|insn| (insn.code, insn.src) == (0x85, Insn::POISON));
    assert_eq!(traps.count(), if insns.len() == 3 { 2 } else { 1 });
}

#[test]
fn loads_move_to_the_kernels_offset_and_size() {
    let (image, kernel) = (linked("core.bpf.c"), target());
    let offset = |path| kernel.field("task", path).unwrap().offset;
    let load = |program| {
        let insn = code(&image, program)[0];
        (insn.code, u32::from(insn.off.cast_unsigned()))
    };
    assert_eq!(
        load("load_narrowed"),
        (0x69, offset("narrowed")),
        "two bytes"
    );
    assert_eq!(
        load("load_widened"),
        (0x79, offset("widened")),
        "eight bytes"
    );
    assert_eq!(
        load("load_turned_signed"),
        (0x61, offset("turned_signed")),
        "four bytes"
    );
    assert_eq!(load("load_pid").1, offset("pid"));
    assert_eq!(load("load_element").1, offset("entities") + 16 + 8);
}
