//! `runslice stat`, and the files of statistics that other verbs write for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn runslice(arguments: &[&str]) -> Output {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(arguments)
        .current_dir(golden)
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts")
}

/// What a call that must succeed prints.
fn good(arguments: &[&str]) -> String {
    let output = runslice(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

/// An empty folder of the test `name`.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    folder
}

#[test]
fn statistics_of_a_simulated_run_are_read_as_those_of_a_kernel() {
    let file = folder("simulated").join("books.stat");
    let name = file.to_str().expect("a plain name");
    let sim = [
        "sim",
        "o1",
        "fifo",
        "-w",
        "two_hogs.toml",
        "--schedstat",
        name,
    ];
    good(&[&sim[..], &["--schedstat-every", "250ms"]].concat());
    let mut runslices = Vec::new();
    for policy in ["o1", "fifo"] {
        let file = file.with_file_name(format!("books.{policy}.stat"));
        let text = std::fs::read_to_string(&file).expect("one file a policy");
        // At zero, 250, 500, 750 and 1000 ms.
        assert_eq!(text.matches("version 4\ntimestamp ").count(), 5, "{text}");
        let report = good(&["stat", "report", file.to_str().unwrap(), "--format", "csv"]);
        let row = report.lines().nth(1).expect("a row").split(',');
        let row: Vec<&str> = row.collect();
        assert_eq!(
            (row[0], row[2], row[5].is_empty()),
            ("1.000", "all", false),
            "{report}"
        );
        runslices.push(row[6].parse::<u64>().expect("an average runslice"));
    }
    assert_ne!(runslices[0], runslices[1], "each file is its own policy's");
}

#[test]
fn statistics_of_a_simulated_run_have_a_clock_of_milliseconds() {
    let sim = [
        "sim",
        "o1",
        "-w",
        "two_hogs.toml",
        "--schedstat",
        "/dev/null",
    ];
    let output = runslice(&[&sim[..], &["--schedstat-every", "10us"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("1ms at least"), "{stderr}");
    let output = runslice(&[&sim[..], &["--schedstat-version", "5"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let output = runslice(&[
        "sim",
        "o1",
        "-w",
        "two_hogs.toml",
        "--schedstat-rules",
        "full",
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("--schedstat <FILE>"), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
}
