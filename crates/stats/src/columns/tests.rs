use std::fmt::Write as _;

use traces::testing::check_docs;

use super::*;

/// The name without its last part, if that is a figure of a distribution.
fn distribution(name: &str) -> Option<&str> {
    let (stem, figure) = name.rsplit_once('_')?;
    ["mean", "min", "p50", "p95", "p99", "max"]
        .contains(&figure)
        .then_some(stem)
}

/// A row for each column, and one for all columns of a distribution.
fn table<Row>(about: &str, columns: &[Column<Row>]) -> String {
    let mut text = format!("\n{about}:\n\n| column | in tables | meaning |\n| --- | --- | --- |\n");
    let mut rest = columns;
    while let [first, others @ ..] = rest {
        let stem = distribution(first.name);
        let is_of_it = |it: &&Column<Row>| stem.is_some() && distribution(it.name) == stem;
        let more = others.iter().take_while(is_of_it).count();
        let (mut name, mut title) = (format!("`{}`", first.name), first.title.to_owned());
        for column in &others[..more] {
            let figure = column.name.rsplit('_').next().unwrap();
            write!(name, ", `_{figure}`").unwrap();
            write!(title, ", {}", column.title.rsplit(' ').next().unwrap()).unwrap();
        }
        let about = match more {
            0 => first.about,
            _ => first.about.split(':').next().unwrap(),
        };
        writeln!(text, "| {name} | {title} | {about} |").unwrap();
        rest = &others[more..];
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
    let both = |value: ColumnValue| (value.to_string(), value.plain());
    let pair = |human: &str, plain: &str| (human.to_owned(), plain.to_owned());
    assert_eq!(
        both(ColumnValue::Nanos(Some(Nanos::new(3_416)))),
        pair("3.42 us", "3416")
    );
    assert_eq!(both(ColumnValue::Nanos(None)), pair("-", ""));
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
