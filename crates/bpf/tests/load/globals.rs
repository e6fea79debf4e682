//! Knobs, and setting globals from text.

use super::{Image, linked, object, target};
use bpf::SetError;
use model::Advice as _;

fn value(image: &Image, name: &str) -> Vec<u8> {
    let symbol = image
        .symbols
        .iter()
        .find(|symbol| symbol.name == name)
        .unwrap();
    let bytes = image.maps[symbol.map as usize].initial.as_ref().unwrap();
    bytes[symbol.offset as usize..][..symbol.size as usize].to_vec()
}

#[test]
fn a_knob_has_unit_text_and_range() {
    let image = linked("whole.bpf.c");
    let knobs: Vec<_> = image
        .knobs
        .iter()
        .map(|knob| {
            (
                &*knob.name,
                &*knob.unit,
                &*knob.doc,
                knob.default,
                knob.min,
                knob.max,
            )
        })
        .collect();
    let greatest = i64::from(i32::MAX);
    assert_eq!(knobs.len(), 3);
    assert!(knobs.contains(&(
        "KNOB_slice",
        "ns",
        "time on the CPU",
        20_000,
        1000,
        1_000_000
    )));
    assert!(knobs.contains(&("KNOB_eager", "bool", "take idle CPUs", 1, 0, 1)));
    assert!(knobs.contains(&("KNOB_bias", "levels", "", -2, -5, greatest)));
    for knob in &image.knobs {
        assert_eq!(image.symbols[knob.symbol as usize].name, knob.name);
    }
}

#[test]
fn a_kernel_has_values_of_its_own_for_some_knobs() {
    let mut image = linked("whole.bpf.c");
    let on_kernel = |knob: &bpf::Knob| (knob.name.clone(), knob.on_kernel);
    let mut knobs: Vec<_> = image.knobs.iter().map(on_kernel).collect();
    knobs.sort();
    let none = |name: &str| (name.to_owned(), None);
    let slice = ("KNOB_slice".to_owned(), Some(50_000));
    assert_eq!(knobs, [none("KNOB_bias"), none("KNOB_eager"), slice]);
    assert_eq!(value(&image, "KNOB_slice"), 20_000u64.to_le_bytes());
    let eager = value(&image, "KNOB_eager");
    assert_eq!(image.set_for_kernel().unwrap(), ["KNOB_slice"]);
    assert_eq!(value(&image, "KNOB_slice"), 50_000u64.to_le_bytes());
    assert_eq!(value(&image, "KNOB_eager"), eager);
}

#[test]
fn globals_are_set_in_decimal_hexadecimal_and_negative() {
    let mut image = linked("whole.bpf.c");
    image.set_global("KNOB_slice", "0x1000").unwrap();
    image.set_global("KNOB_bias", "-5").unwrap();
    image.set_global("KNOB_eager", "false").unwrap();
    image.set_global("tuned", "4294967295").unwrap();
    assert_eq!(value(&image, "KNOB_slice"), 4096u64.to_le_bytes());
    assert_eq!(value(&image, "KNOB_bias"), (-5i32).to_le_bytes());
    assert_eq!(value(&image, "KNOB_eager"), [0]);
    assert_eq!(value(&image, "tuned"), [0xff; 4]);
}

#[test]
fn a_value_out_of_range_changes_nothing_and_the_error_gives_the_range() {
    let mut image = linked("whole.bpf.c");
    for text in ["999", "1000001", "-1"] {
        let error = image.set_global("KNOB_slice", text).unwrap_err();
        let expected = format!("{text} is out of range for `KNOB_slice`; give 1000 to 1000000 ns");
        assert_eq!(error.in_full(), expected);
    }
    assert!(matches!(
        image.set_global("tuned", "4294967296"),
        Err(SetError::OutOfRange { .. })
    ));
    assert_eq!(value(&image, "KNOB_slice"), 20_000u64.to_le_bytes());
}

#[test]
fn text_that_is_no_number_is_refused() {
    let mut image = linked("whole.bpf.c");
    for text in [
        "",
        "x",
        "1ms",
        "--1",
        "0x",
        "0x-1",
        "+1",
        "1.5",
        "true",
        "99999999999999999999999999999999999999999",
    ] {
        let error = image.set_global("tuned", text).unwrap_err();
        assert!(
            matches!(error, SetError::BadValue { .. }),
            "{text}: {error}"
        );
    }
    assert!(image.set_global("KNOB_eager", "2").is_err());
}

#[test]
fn an_unknown_name_gets_the_nearest_and_all_knobs() {
    let error = linked("whole.bpf.c")
        .set_global("KNOB_slcie", "1")
        .unwrap_err();
    let text = error.in_full();
    let nearest = "did you mean `KNOB_slice` (1000 to 1000000 ns)?";
    assert!(text.contains(nearest), "{text}");
    let far = linked("whole.bpf.c").set_global("zzz", "1").unwrap_err();
    assert!(far.in_full().contains("KNOB_eager"), "{far}");
    assert!(!far.in_full().contains("did you mean"), "{far}");
}

#[test]
fn constants_are_weak_variables_with_the_names_of_enumerators() {
    let object = object("whole.bpf.c");
    let target = target();
    let mut constants: Vec<_> = object.constants(&target).collect();
    constants.sort_unstable();
    let value = |name| target.enumerator(name).expect("an enumerator");
    let expected = [("__RED", value("RED")), ("__WIDE_TOP", value("WIDE_TOP"))];
    assert_eq!(constants, expected);
}
