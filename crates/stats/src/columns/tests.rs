use std::fmt::Write as _;

use traces::testing::check_docs;

use super::*;

fn table<Row>(about: &str, columns: &[Column<Row>]) -> String {
    let mut text = format!("\n{about}:\n\n| column | in tables | unit | meaning |\n");
    text.push_str("| --- | --- | --- | --- |\n");
    for column in columns {
        let unit = match column.unit {
            Unit::Text => "",
            Unit::Count | Unit::Signed => "count",
            Unit::Nanos => "ns",
            Unit::Millionths => "10^-6",
            Unit::Thousandths => "10^-3",
        };
        let Column {
            name, title, about, ..
        } = column;
        writeln!(text, "| `{name}` | {title} | {unit} | {about} |").unwrap();
    }
    text
}

fn names<Row>(columns: &[Column<Row>]) -> Vec<&'static str> {
    columns.iter().map(|column| column.name).collect()
}

#[test]
fn the_documentation_lists_every_column() {
    let want = [
        table("Task groups", columns()),
        table("Deadlines", deadline_columns()),
        table("Spans", span_columns()),
        table("Counters", counter_columns()),
        table("Phases", phase_columns()),
        table("Nice values", nice_columns()),
        table("The machine", machine_columns()),
        table("CPUs", cpu_columns()),
        table("Tasks", task_columns()),
    ];
    check_docs("columns", &(want.concat() + "\n"));
}

#[test]
fn names_in_a_table_are_unique_and_say_their_unit() {
    let tables: [(Vec<&str>, Vec<Unit>); 3] = [
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
        }
    }
}

#[test]
fn values_print_for_people_and_for_programs() {
    let both = |value: Value| (value.to_string(), value.plain());
    let pair = |human: &str, plain: &str| (human.to_owned(), plain.to_owned());
    assert_eq!(
        both(Value::Nanos(Some(Nanos::new(3_416)))),
        pair("3.42 us", "3416")
    );
    assert_eq!(both(Value::Nanos(None)), pair("-", ""));
    assert_eq!(
        both(Value::Share(Millionths(123_456))),
        pair("12.3 %", "123456")
    );
    assert_eq!(
        both(Value::Share(Millionths(999_950))),
        pair("100.0 %", "999950")
    );
    assert_eq!(
        both(Value::Average(Thousandths(2_995))),
        pair("3.00", "2995")
    );
    assert_eq!(both(Value::Signed(-5)), pair("-5", "-5"));
    assert_eq!(format!("[{:>6}]", Value::Count(42)), "[    42]");
}
