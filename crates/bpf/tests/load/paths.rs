//! Setting what lies inside variables, tables and the arguments of set-up programs.

use super::{Image, linked};
use bpf::{MemberValue, PathError, SetError, SetUpError};
use model::Advice as _;

fn paths() -> Image {
    linked("paths.bpf.c")
}

fn bytes(image: &Image, name: &str) -> Vec<u8> {
    let symbol = image.symbols.iter().find(|symbol| symbol.name == name);
    let symbol = symbol.expect("a variable");
    let map = &image.maps[symbol.map as usize];
    let bytes = map.initial_bytes(symbol.offset as usize, symbol.size as usize);
    bytes.expect("a variable lies in its section")
}

fn words(image: &Image, name: &str) -> Vec<u64> {
    let bytes = bytes(image, name);
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Bytes of a `struct mode`.
const MODE: usize = 48;

#[test]
fn one_element_a_range_and_all_of_them_are_set() {
    let mut image = paths();
    image.set_global("grid[1][2]", "7").unwrap();
    assert_eq!(words(&image, "grid"), [0, 0, 0, 0, 0, 7]);
    image.set_global("grid[*][1]", "0x10").unwrap();
    assert_eq!(words(&image, "grid"), [0, 16, 0, 0, 16, 7]);
    image.set_global("grid[0][0-1]", "3").unwrap();
    assert_eq!(words(&image, "grid"), [3, 3, 0, 0, 16, 7]);
    image.set_global("grid[*][*]", "1").unwrap();
    assert_eq!(words(&image, "grid"), [1; 6]);
}

#[test]
fn a_field_is_found_through_arrays_and_anonymous_unions() {
    let mut image = paths();
    image.set_global("modes[1].bias[2]", "-2").unwrap();
    image.set_global("modes[2].on", "true").unwrap();
    image.set_global("modes[3].narrow", "0x01020304").unwrap();
    image.set_global("modes[0-1].pair[*].high", "9").unwrap();
    let modes = bytes(&image, "modes");
    let mode = |index: usize| &modes[index * MODE..][..MODE];
    assert_eq!(modes.len(), 4 * MODE);
    assert_eq!(mode(1)[8..10], (-2_i16).to_le_bytes());
    assert_eq!(mode(2)[10], 1);
    assert_eq!(mode(3)[16..24], 0x0102_0304_u64.to_le_bytes());
    for (index, high) in [9, 9, 0, 0].into_iter().enumerate() {
        assert_eq!(mode(index)[24..28], [0, high, 0, high], "mode {index}");
    }
    let others: usize = modes.iter().filter(|byte| **byte != 0).count();
    assert_eq!(others, 2 + 1 + 4 + 4, "nothing else has changed");
}

#[test]
fn a_path_that_leads_nowhere_says_what_there_is_and_changes_nothing() {
    let mut image = paths();
    let before = (bytes(&image, "grid"), bytes(&image, "modes"));
    for (path, expected) in [
        (
            "modes[1].levle",
            "`modes[1]` has no field `levle`; it has `level`, `bias`, `on`, `wide`, `narrow`, \
             `pair`",
        ),
        (
            "modes[4].level",
            "`modes` has 4 elements, 0 to 3, and none with number 4",
        ),
        (
            "modes[0-4].level",
            "`modes` has 4 elements, 0 to 3, and none with number 4",
        ),
        (
            "grid",
            "`grid` is an array of 2; set one element with `grid[0]`, all with `grid[*]`",
        ),
        (
            "grid[1]",
            "`grid[1]` is an array of 3; set one element with `grid[1][0]`, all with `grid[1][*]`",
        ),
        (
            "grid[1][x]",
            "`[x]` is no index; write a number, a range such as 0-3, or * for all",
        ),
        (
            "grid[1][2-1]",
            "`[2-1]` is no index; write a number, a range such as 0-3, or * for all",
        ),
        (
            "grid[1][2][3]",
            "`grid[1][2]` has nothing inside that `[3]` could name",
        ),
        ("grid.x", "`grid` has nothing inside that `.x` could name"),
        ("grid[1", "`grid` has nothing inside that `[1` could name"),
        (
            "modes[0]",
            "`modes[0]` is a structure; set a field, one of `level`, `bias`, `on`, `wide`, \
             `narrow`, `pair`",
        ),
    ] {
        let error = image.set_global(path, "1").unwrap_err();
        assert_eq!(error.in_full(), expected, "{path}");
    }
    assert_eq!((bytes(&image, "grid"), bytes(&image, "modes")), before);
}

#[test]
fn a_value_inside_has_the_range_of_its_own_type() {
    let mut image = paths();
    for (path, text) in [
        ("modes[0].bias[0]", "32768"),
        ("modes[0].on", "2"),
        ("modes[0].pair[0].low", "-1"),
        ("modes[*].level", "4294967296"),
    ] {
        let error = image.set_global(path, text).unwrap_err();
        assert!(
            matches!(error, SetError::OutOfRange { .. }),
            "{path}: {error}"
        );
    }
    assert!(bytes(&image, "modes").iter().all(|byte| *byte == 0));
}

#[test]
fn numbers_of_a_table_are_set_before_it_is_loaded() {
    let mut image = paths();
    let member = |image: &Image, name: &str| {
        let all = image.struct_ops[0].members.clone().into_iter();
        let mut found = all.filter(|(known, _)| known == name);
        (found.next().map(|(_, value)| value), found.count())
    };
    assert_eq!(member(&image, "flags"), (None, 0));
    for flags in [6, 9] {
        image.set_global("paths.flags", &flags.to_string()).unwrap();
        assert_eq!(member(&image, "flags"), (Some(MemberValue::Int(flags)), 0));
    }
    let error = image.set_global("paths.begin", "1").unwrap_err();
    assert!(
        matches!(&error, SetError::Path(PathError::NoField { fields, .. })
            if fields.ends_with(&["timeout_ns".to_owned(), "flags".to_owned()])
                || fields.starts_with(&["timeout_ns".to_owned(), "flags".to_owned()])),
        "{error}"
    );
    let error = image.set_global("paths.flags", "4294967296").unwrap_err();
    assert!(matches!(error, SetError::OutOfRange { .. }), "{error}");
}

#[test]
fn the_argument_of_a_program_is_made_of_values_and_names() {
    let image = paths();
    let context = |text| image.context("configure", text).map(|(_, bytes)| bytes);
    let expect = |cpu: i32, mask: u64, list: [u32; 2], clear: u8| {
        let mut bytes = vec![0; 32];
        bytes[..4].copy_from_slice(&cpu.to_le_bytes());
        bytes[8..16].copy_from_slice(&mask.to_le_bytes());
        bytes[16..20].copy_from_slice(&list[0].to_le_bytes());
        bytes[20..24].copy_from_slice(&list[1].to_le_bytes());
        bytes[24] = clear;
        bytes
    };
    assert_eq!(context(""), Ok(expect(0, 0, [0, 0], 0)));
    assert_eq!(context("-1"), Ok(expect(-1, 0, [0, 0], 0)));
    assert_eq!(context("1,0xff,true"), Ok(expect(1, 255, [0, 0], 1)));
    assert_eq!(context("2,list[1]=5,clear=1"), Ok(expect(2, 0, [0, 5], 1)));
    let (function, _) = image.context("configure", "").unwrap();
    assert_eq!(image.functions[function as usize].name, "configure");
}

#[test]
fn a_bad_argument_says_what_the_program_takes() {
    let image = paths();
    let error = |program, text| image.context(program, text).unwrap_err().in_full();
    assert_eq!(
        error("configure", "1,2,0,4"),
        "`configure` takes 3 values: cpu, mask, clear"
    );
    assert_eq!(
        error("configure", "mode=1"),
        "`configure` has no field `mode`; it has `cpu`, `mask`, `list`, `clear`"
    );
    assert_eq!(
        error("configure", "2147483648"),
        "2147483648 is out of range for `cpu`; give -2147483648 to 2147483647"
    );
    assert_eq!(error("plain", "1"), "`plain` takes no values");
    assert_eq!(
        error("on_start", ""),
        "no program `on_start` in a section `syscall`; the object has configure, plain"
    );
    assert!(matches!(
        image.context("configure", "x"),
        Err(SetUpError::Value(SetError::BadValue { .. }))
    ));
    assert_eq!(image.context("plain", "").unwrap().1, [0; 0]);
}

#[test]
fn an_array_at_the_end_of_its_section_gets_more_elements() {
    let mut image = paths();
    image.set_global("each[0]", "4").unwrap();
    image.set_global("each[]", "3").unwrap();
    assert_eq!(words(&image, "each"), [4, 0, 0]);
    image.set_global("each[2]", "9").unwrap();
    assert_eq!(words(&image, "each"), [4, 0, 9]);
    let map = image.maps.iter().find(|map| map.name == ".data.each");
    assert_eq!(map.map(|map| map.value_size), Some(24));
    image.set_global("each[]", "1").unwrap();
    assert_eq!(words(&image, "each"), [4]);
    assert!(image.set_global("each[1]", "9").is_err());
}

#[test]
fn what_cannot_be_resized_says_why() {
    let mut image = paths();
    for (name, value, why) in [
        (
            "inner[]",
            "2",
            "another variable of its section lies behind it",
        ),
        ("outer[]", "2", "it is no array"),
        ("nobody[]", "2", "there is no such variable and no such map"),
        ("each[]", "0", "1 or more that fits"),
        ("each[]", "99999999", "1 or more that fits"),
        ("each[]", "x", "1 or more that fits"),
    ] {
        let error = image.set_global(name, value).unwrap_err();
        assert!(matches!(error, SetError::Resize { .. }), "{error:?}");
        assert!(error.in_full().contains(why), "{error}");
    }
}

#[test]
fn a_map_gets_another_capacity_and_an_array_of_maps_new_maps() {
    let mut image = linked("whole.bpf.c");
    let of = |image: &Image, name: &str| {
        let found = image.maps.iter().find(|map| map.name == name);
        found.expect("a map").clone()
    };
    image.set_global("hash[]", "7").unwrap();
    assert_eq!(of(&image, "hash").max_entries, 7);
    let before = image.maps.len();
    image.set_global("outer[1-2]", "new").unwrap();
    let (_, entries) = of(&image, "outer").inner.expect("maps inside");
    // Key 0 is as the object has it; 2 has got another one.
    let keys: Vec<u32> = entries.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [0, 1, 2]);
    for (key, map) in &entries[1..] {
        let map = &image.maps[*map as usize];
        assert_eq!(map.name, format!("outer[{key}]"));
        assert_eq!((map.max_entries, map.value_size), (4, 8));
    }
    assert_eq!(image.maps.len(), before + 2);
    for (name, value, why) in [
        ("outer[1-3]", "new", "with keys that it has"),
        ("outer[1]", "5", "with keys that it has"),
        ("hash[]", "0", "a number of 1 or more"),
    ] {
        let error = image.set_global(name, value).unwrap_err();
        assert!(error.in_full().contains(why), "{name}: {error}");
    }
}
