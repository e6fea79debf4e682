//! Each rule of the structural check, with code that breaks it and code that just keeps it.

use super::*;
use crate::Function;

const EXIT_WORD: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

/// An image of one function; it has no maps, imports or other tables.
fn image(words: &[[u8; 8]]) -> Image {
    let code: Vec<_> = words.iter().copied().map(Insn::decode).collect();
    let function = Function {
        name: "raw".to_owned(),
        start: 0,
        len: code.len() as u32,
    };
    Image {
        code,
        functions: vec![function],
        programs: Vec::new(),
        maps: Vec::new(),
        imports: Vec::new(),
        variables: Vec::new(),
        poisons: Vec::new(),
        reads: Vec::new(),
        struct_ops: Vec::new(),
        symbols: Vec::new(),
        knobs: Vec::new(),
        types: Vec::new(),
        lines: Vec::new(),
        license: String::new(),
    }
}

fn check(words: &[[u8; 8]]) -> Result<(), (u32, Violation)> {
    image(words).check().map_err(|error| match error {
        LoadError::Structure {
            function,
            insn,
            violation,
        } => {
            assert_eq!(function, "raw");
            (insn, violation)
        }
        other => panic!("{other}"),
    })
}

/// The verdict on one instruction followed by an exit.
fn alone(word: [u8; 8]) -> Option<Violation> {
    check(&[word, EXIT_WORD]).err().map(|(insn, violation)| {
        assert_eq!(insn, 0);
        violation
    })
}

#[test]
fn a_field_that_an_operation_does_not_use_must_be_zero() {
    let cases: &[(u8, &[&str])] = &[
        (0x04, &["src", "off"]),        // add32 by immediate
        (0x07, &["src", "off"]),        // add64 by immediate
        (0x0c, &["off", "imm"]),        // add32 by register
        (0x0f, &["off", "imm"]),        // add64 by register
        (0xb4, &["src", "off"]),        // mov32 of immediate
        (0xb7, &["src", "off"]),        // mov64 of immediate
        (0xbc, &["imm"]),               // mov32 of register
        (0xbf, &["imm"]),               // mov64 of register
        (0x84, &["src", "off", "imm"]), // neg32
        (0x87, &["src", "off", "imm"]), // neg64
        (0x05, &["dst", "src", "imm"]), // ja
        (0x06, &["dst", "src", "off"]), // gotol
        (0xe5, &["dst", "src", "imm"]), // may_goto
        (0x15, &["src"]),               // jeq by immediate
        (0x1d, &["imm"]),               // jeq by register
        (0x25, &["src"]),               // jgt by immediate
        (0x2d, &["imm"]),               // jgt by register
        (0x61, &["imm"]),               // load of 4 bytes
        (0x79, &["imm"]),               // load of 8 bytes
        (0x81, &["imm"]),               // sign-extending load of 4 bytes
        (0x62, &["src"]),               // store of an immediate, 4 bytes
        (0x7a, &["src"]),               // the same, 8 bytes
        (0x63, &["imm"]),               // store of a register, 4 bytes
        (0x7b, &["imm"]),               // the same, 8 bytes
        (0x95, &["dst", "src", "off", "imm"]),
    ];
    for &(code, fields) in cases {
        assert_eq!(
            alone([code, 0, 0, 0, 0, 0, 0, 0]),
            None,
            "{code:#x} with all fields zero"
        );
        for &field in fields {
            let mut word = [code, 0, 0, 0, 0, 0, 0, 0];
            match field {
                "dst" => word[1] = 0x01,
                "src" => word[1] = 0x10,
                "off" => word[2] = 1,
                _ => word[4] = 1,
            }
            assert_eq!(alone(word), Some(ReservedField { code, field }));
        }
    }
}

#[test]
fn byte_swaps_and_calls_refuse_fields_that_they_do_not_use() {
    for code in [0xd4, 0xdc, 0xd7] {
        assert_eq!(alone([code, 0, 0, 0, 16, 0, 0, 0]), None);
        let source = alone([code, 0x10, 0, 0, 16, 0, 0, 0]);
        assert_eq!(source, Some(ReservedField { code, field: "src" }));
        let offset = alone([code, 0, 1, 0, 16, 0, 0, 0]);
        assert_eq!(offset, Some(ReservedField { code, field: "off" }));
        let width = alone([code, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(
            width,
            Some(UndefinedField {
                code,
                field: "imm",
                value: 8
            })
        );
    }
    let code = 0x85;
    let call = |word| alone(word).unwrap();
    assert_eq!(
        call([code, 0x01, 0, 0, 0, 0, 0, 0]),
        ReservedField { code, field: "dst" }
    );
    assert_eq!(
        call([code, 0, 1, 0, 0, 0, 0, 0]),
        ReservedField { code, field: "off" }
    );
    let kind = call([code, 0x20, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        kind,
        UndefinedField {
            code,
            field: "src",
            value: 2
        }
    );
}

#[test]
fn offsets_give_moves_and_divisions_a_second_meaning() {
    for (code, offsets) in [
        (0xbf, &[8, 16, 32][..]),
        (0xbc, &[8, 16]),
        (0x3f, &[1]),
        (0x94, &[1]),
    ] {
        for &offset in offsets {
            assert_eq!(
                alone([code, 0, offset, 0, 0, 0, 0, 0]),
                None,
                "{code:#x} off {offset}"
            );
        }
    }
    for (code, value) in [(0xbf, 24), (0xbc, 32), (0xbc, 1), (0x3f, 2)] {
        let verdict = alone([code, 0, value as u8, 0, 0, 0, 0, 0]);
        assert_eq!(
            verdict,
            Some(UndefinedField {
                code,
                field: "off",
                value
            })
        );
    }
    // A cast between address spaces names both: 1 to 0, or 0 to 1.
    assert_eq!(alone([0xbf, 0, 1, 0, 1, 0, 0, 0]), None);
    assert_eq!(alone([0xbf, 0, 1, 0, 0, 0, 1, 0]), None);
    assert!(alone([0xbf, 0, 1, 0, 2, 0, 0, 0]).is_some());
}

#[test]
fn every_operation_of_the_instruction_set_is_known_and_no_other() {
    // RFC 9669, section 5, and the two conditional extensions of kernel 6.9; LD_IMM64 has two
    // slots and is tested apart.
    let mut known: Vec<u8> = vec![0x05, 0x06, 0x85, 0x95, 0xe5, 0xd4, 0xdc, 0xd7, 0x84, 0x87];
    for class in [0x04, 0x07] {
        let operations = (0x00..=0xc0)
            .step_by(0x10)
            .filter(|operation| *operation != 0x80);
        known.extend(operations.flat_map(|operation| [operation | class, operation | class | 8]));
    }
    for class in [0x05, 0x06] {
        let operations = [
            0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0,
        ];
        known.extend(
            operations
                .iter()
                .flat_map(|operation| [operation | class, operation | class | 8]),
        );
    }
    for size in [0x00, 0x08, 0x10, 0x18] {
        known.extend([0x61 | size, 0x62 | size, 0x63 | size]);
    }
    known.extend([0x81, 0x89, 0x91]);
    known.extend([0xc3, 0xdb]);
    for code in 0..=255 {
        let is_swap = matches!(code, 0xd4 | 0xdc | 0xd7);
        let verdict = alone([code, 0, 0, 0, if is_swap { 16 } else { 0 }, 0, 0, 0]);
        let is_known = !matches!(verdict, Some(UnknownOperation(_) | LegacyPacketAccess(_)));
        if code != LD_IMM64 {
            assert_eq!(is_known, known.contains(&code), "{code:#04x}: {verdict:?}");
        }
    }
}

#[test]
fn atomics_are_of_4_or_8_bytes_and_acquire_and_release_of_any_size() {
    let atomic = |code: u8, operation: u16| {
        let [low, high] = operation.to_le_bytes();
        alone([code, 0x12, 0, 0, low, high, 0, 0])
    };
    for operation in [0x00, 0x01, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1] {
        assert_eq!(atomic(0xc3, operation), None, "{operation:#x}");
        assert_eq!(atomic(0xdb, operation), None, "{operation:#x}");
        assert_eq!(atomic(0xcb, operation), Some(UnknownOperation(0xcb)));
    }
    for code in [0xc3, 0xcb, 0xd3, 0xdb] {
        assert_eq!(atomic(code, 0x100), None);
        assert_eq!(atomic(code, 0x110), None);
    }
    let unknown = UndefinedField {
        code: 0xdb,
        field: "imm",
        value: 0xe0,
    };
    assert_eq!(atomic(0xdb, 0xe0), Some(unknown));
}

#[test]
fn there_are_eleven_registers_and_the_last_is_read_only() {
    assert_eq!(alone([0xbf, 0x0b, 0, 0, 0, 0, 0, 0]), Some(NoRegister(11)));
    assert_eq!(alone([0xbf, 0xb0, 0, 0, 0, 0, 0, 0]), Some(NoRegister(11)));
    assert_eq!(alone([0x1d, 0xf0, 0, 0, 0, 0, 0, 0]), Some(NoRegister(15)));
    let writes_r10 = [
        [0xb7, 0x0a, 0, 0, 0, 0, 0, 0],    // move
        [0x07, 0x0a, 0, 0, 8, 0, 0, 0],    // add
        [0x79, 0x1a, 0, 0, 0, 0, 0, 0],    // load
        [0xdb, 0xa1, 0, 0, 0x01, 0, 0, 0], // fetch into the source
        [0xdb, 0x1a, 0, 0, 0, 1, 0, 0],    // load-acquire
    ];
    for word in writes_r10 {
        assert_eq!(alone(word), Some(FramePointerWritten), "{word:x?}");
    }
    assert_eq!(
        alone([0x7b, 0x1a, 0xf8, 0xff, 0, 0, 0, 0]),
        None,
        "a store through r10"
    );
    assert_eq!(alone([0xbf, 0xa1, 0, 0, 0, 0, 0, 0]), None, "a copy of r10");
}

#[test]
fn a_jump_stays_in_its_function() {
    let jump = |code, off: i16| {
        let [low, high] = off.to_le_bytes();
        [code, 0, low, high, 0, 0, 0, 0]
    };
    for code in [0x05, 0x15, 0x16, 0xe5] {
        assert_eq!(alone(jump(code, 0)), None);
        assert_eq!(alone(jump(code, -1)), None, "to itself");
        assert_eq!(alone(jump(code, 1)), Some(JumpOutside(2)));
        assert_eq!(alone(jump(code, -2)), Some(JumpOutside(-1)));
        assert_eq!(alone(jump(code, i16::MAX)), Some(JumpOutside(32768)));
    }
    let far = [0x06, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f];
    assert_eq!(alone(far), Some(JumpOutside(0x8000_0000)));
    assert_eq!(alone([0x06, 0, 0, 0, 0, 0, 0, 0]), None);
}

#[test]
fn a_64_bit_load_is_one_instruction_of_two_slots() {
    let load = [0x18, 0, 0, 0, 1, 0, 0, 0];
    let second = [0, 0, 0, 0, 2, 0, 0, 0];
    assert_eq!(check(&[load, second, EXIT_WORD]), Ok(()));
    assert_eq!(check(&[load, EXIT_WORD]), Err((0, BrokenLoad)));
    assert_eq!(check(&[load]), Err((0, BrokenLoad)));
    assert_eq!(
        check(&[load, [0, 1, 0, 0, 0, 0, 0, 0], EXIT_WORD]),
        Err((0, BrokenLoad))
    );
    let into = [0x05, 0, 1, 0, 0, 0, 0, 0];
    assert_eq!(
        check(&[into, load, second, EXIT_WORD]),
        Err((0, JumpIntoLoad(2)))
    );
    // The second slot is no exit, whatever its immediate says.
    assert_eq!(check(&[EXIT_WORD, load, second]), Err((2, NoEnd)));
}

#[test]
fn a_function_ends_in_an_exit_or_a_jump() {
    let back = [0x05, 0, 0xfe, 0xff, 0, 0, 0, 0];
    assert_eq!(check(&[EXIT_WORD, back]), Ok(()));
    let conditional = [0x15, 0, 0xfe, 0xff, 0, 0, 0, 0];
    assert_eq!(check(&[EXIT_WORD, conditional]), Err((1, NoEnd)));
    assert_eq!(check(&[[0xb7, 0, 0, 0, 0, 0, 0, 0]]), Err((0, NoEnd)));
    assert_eq!(check(&[]), Err((0, NoCode)));
    let mut outside = image(&[EXIT_WORD]);
    outside.functions[0].start = u32::MAX;
    assert!(outside.check().is_err());
}

#[test]
fn indices_stay_within_the_images_tables() {
    let cases = [
        (CALL, 0, "imports"),
        (CALL, CALL_LOCAL, "functions"),
        (CALL, Insn::POISON, "poisons"),
        (LD_IMM64, ld_imm64::MAP, "maps"),
        (LD_IMM64, ld_imm64::MAP_VALUE, "maps"),
        (LD_IMM64, ld_imm64::VARIABLE, "variables"),
        (LD_IMM64, ld_imm64::FUNCTION, "functions"),
    ];
    for (code, src, table) in cases {
        for index in [1, -1] {
            let mut image = image(&[[code, src << 4, 0, 0, 0, 0, 0, 0], [0; 8], EXIT_WORD]);
            if code == CALL {
                image.code[1] = image.code[2];
            }
            image.code[0].imm = index;
            let Err(LoadError::Structure { violation, .. }) = image.check() else {
                panic!("{table} {index}")
            };
            assert_eq!(violation, NoSuchEntry { table, index });
        }
    }
}

#[test]
fn legacy_packet_access_is_called_by_its_name() {
    for code in [0x20, 0x28, 0x30, 0x40, 0x48, 0x50] {
        assert_eq!(
            alone([code, 0, 0, 0, 0, 0, 0, 0]),
            Some(LegacyPacketAccess(code))
        );
    }
}
