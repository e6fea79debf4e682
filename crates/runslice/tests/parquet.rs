//! Tables as Parquet files: the same cells as CSV has, with types.

#![cfg(feature = "parquet")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Output};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use runslice_tests::folder;

fn runslice(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(arguments)
        .output()
        .expect("runslice starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    output
}

/// The cells of a CSV table, its titles first (RFC 4180, without line breaks in cells).
fn csv(text: &str) -> Vec<Vec<String>> {
    let row = |line: &str| {
        let (mut cells, mut is_quoted) = (vec![String::new()], false);
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            let cell = cells.last_mut().expect("it is never empty");
            match letter {
                '"' if is_quoted && letters.peek() == Some(&'"') => {
                    cell.push('"');
                    letters.next();
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cells.push(String::new()),
                _ => cell.push(letter),
            }
        }
        cells
    };
    text.lines().map(row).collect()
}

/// The columns and rows of a Parquet file.
fn rows(path: &PathBuf) -> Vec<Vec<(String, Field)>> {
    let file = File::open(path).expect("the file was written");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").into_columns()).collect()
}

/// Whether a field holds what CSV says.
fn is_same(field: &Field, cell: &str) -> bool {
    match field {
        Field::Null => cell.is_empty(),
        Field::Str(text) => text == cell,
        Field::ULong(number) => number.to_string() == cell,
        Field::Long(number) => number.to_string() == cell,
        Field::Double(number) => cell.parse() == Ok(*number),
        Field::Bool(truth) => truth.to_string() == cell,
        _ => false,
    }
}

/// Writes a table in both forms, compares every cell, and returns the fields.
fn same_in_both(name: &str, arguments: &[&str]) -> Vec<Vec<(String, Field)>> {
    let path = folder!(&format!("parquet-{name}")).join("table.parquet");
    let text = runslice(&[arguments, &["--format", "csv"]].concat()).stdout;
    let file = path.to_str().expect("UTF-8");
    runslice(&[arguments, &["--format", "parquet", "--output", file]].concat());
    let lines = csv(std::str::from_utf8(&text).expect("UTF-8"));
    let (titles, cells) = lines.split_first().expect("titles");
    let rows = rows(&path);
    assert!(!cells.is_empty(), "{name}: the table is empty");
    assert_eq!(rows.len(), cells.len(), "{name}");
    for (row, cells) in rows.iter().zip(cells) {
        assert_eq!(row.len(), titles.len(), "{name}");
        for (((column, field), title), cell) in row.iter().zip(titles).zip(cells) {
            assert_eq!(column, title, "{name}");
            if column == "command" {
                // Two commands made them.
                continue;
            }
            assert!(
                is_same(field, cell),
                "{name}, {column}: {field:?} and `{cell}`"
            );
        }
    }
    rows
}

const RUN: [&str; 6] = ["fifo", "mlfq:up=1", "-w", "desk", "--duration", "300ms"];

#[test]
fn every_table_of_a_simulation_is_the_same_as_in_csv() {
    for table in [
        "groups",
        "tasks",
        "deadlines",
        "counters",
        "nice",
        "machine",
        "cpus",
    ] {
        let arguments = [&["sim"], RUN.as_slice(), &["--table", table]].concat();
        let rows = same_in_both(table, &arguments);
        let numbers = rows[0].iter().filter(|it| matches!(it.1, Field::ULong(_)));
        assert!(numbers.count() > 0, "{table}: {:?}", rows[0]);
        assert!(rows.iter().flatten().any(|(name, value)| {
            name == "policy" && *value == Field::Str("mlfq:up=1".to_owned())
        }));
    }
}

#[test]
fn runs_with_seeds_and_their_comparison_are_the_same_as_in_csv() {
    let many = [&["sim"], RUN.as_slice(), &["--runs", "5"]].concat();
    same_in_both("runs", &many);
    let file = folder!("parquet-of-runs").join("runs.json");
    let file = file.to_str().expect("UTF-8");
    runslice(&[many.as_slice(), &["--format", "json", "--output", file]].concat());
    let path = folder!("parquet-compare").join("table.parquet");
    let to = path.to_str().expect("UTF-8");
    // Whether five runs decide anything does not matter here.
    let status = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(["compare", file, "--format", "parquet", "--output", to])
        .status()
        .expect("runslice starts");
    assert!(matches!(status.code(), Some(0 | 6)), "{status}");
    let rows = rows(&path);
    let field = |name: &str| rows[0].iter().find(|it| it.0 == name).map(|it| &it.1);
    assert!(
        matches!(field("baseline_median"), Some(Field::Double(_))),
        "{:?}",
        rows[0]
    );
    assert_eq!(field("baseline_runs"), Some(&Field::ULong(5)));
}

#[test]
fn traces_are_the_same_as_in_csv() {
    for call in ["pid", "status", "queue"] {
        let run = [
            "trace", call, "shell", "--sim", "mlfq", "-w", "desk", "--for", "500ms",
        ];
        same_in_both(call, &run);
    }
}

#[test]
fn scheduler_statistics_are_the_same_as_in_csv() {
    let log = folder!("parquet-of-statistics").join("o1.stat");
    let log = log.to_str().expect("UTF-8");
    let run = ["sim", "o1", "-w", "desk", "--duration", "2s"];
    runslice(&[run.as_slice(), &["--schedstat", log]].concat());
    let report = ["stat", "report", log, "--each", "--by", "cpu"];
    let rows = same_in_both("stat", &report);
    let restarted = rows[0].iter().find(|it| it.0 == "restarted");
    assert_eq!(restarted.map(|it| &it.1), Some(&Field::Bool(false)));
}
