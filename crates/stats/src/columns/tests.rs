use super::*;

fn names<Row>(columns: &[Column<Row>]) -> Vec<&'static str> {
    columns.iter().map(|column| column.name).collect()
}

#[test]
fn names_in_a_table_are_unique_and_say_their_unit() {
    let tables: [(Vec<&str>, Vec<Unit>); 4] = [
        (
            names(columns()),
            columns().iter().map(|column| column.unit).collect(),
        ),
        (
            names(task_columns()),
            task_columns().iter().map(|column| column.unit).collect(),
        ),
        (
            names(machine_columns()),
            machine_columns().iter().map(|column| column.unit).collect(),
        ),
        (
            names(hardware_columns()),
            hardware_columns()
                .iter()
                .map(|column| column.unit)
                .collect(),
        ),
    ];
    for (names, units) in tables {
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
        for (name, unit) in names.iter().zip(units) {
            assert_eq!(name.contains("_ns"), unit == Unit::Nanos, "{name}");
            assert_eq!(name.ends_with("_ppm"), unit == Unit::Millionths, "{name}");
            assert_eq!(
                name.ends_with("_milli"),
                unit == Unit::Thousandths,
                "{name}"
            );
            assert_eq!(name.ends_with("_uj"), unit == Unit::Microjoules, "{name}");
        }
    }
}

#[test]
fn values_print_for_people_and_for_programs() {
    let both = |value: ColumnValue| (value.to_string(), value.plain());
    let pair = |human: &str, plain: &str| (human.to_owned(), plain.to_owned());
    assert_eq!(
        both(ColumnValue::Nanos(Some(Nanos::new(3_416)))),
        pair("3.42 us", "3416")
    );
    assert_eq!(both(ColumnValue::Nanos(None)), pair("-", ""));
    assert_eq!(both(ColumnValue::Energy(None)), pair("-", ""));
    for (energy, shown) in [
        (999, "999 uJ"),
        (1_234, "1.23 mJ"),
        (12_345, "12.3 mJ"),
        (812_999, "812 mJ"),
        (1_234_567, "1.23 J"),
        (98_765_432, "98.7 J"),
        (u64::MAX, "18446744073709 J"),
    ] {
        assert_eq!(
            both(ColumnValue::Energy(Some(energy))),
            pair(shown, &energy.to_string())
        );
    }
    assert_eq!(
        both(ColumnValue::Share(Millionths(123_456))),
        pair("12.3 %", "123456")
    );
    assert_eq!(
        both(ColumnValue::Share(Millionths(999_950))),
        pair("100.0 %", "999950")
    );
    assert_eq!(
        both(ColumnValue::Average(Thousandths(2_995))),
        pair("3.00", "2995")
    );
    assert_eq!(both(ColumnValue::Signed(-5)), pair("-5", "-5"));
    assert_eq!(format!("[{:>6}]", ColumnValue::Count(42)), "[    42]");
}
