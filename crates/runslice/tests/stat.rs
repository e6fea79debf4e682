//! `runslice stat`, and the files of statistics that other verbs write for it.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

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

/// Records two seconds of the desk under O(1) in the file `name`.
fn record(name: &str) {
    let desk = ["sim", "o1", "-w", "desk", "--duration", "2s"];
    good(&[&desk[..], &["--schedstat", name]].concat());
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

/// A child that does not outlive its test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a server answers to `text`.
fn ask(address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(text.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("it answers and closes");
    answer
}

/// A file with the second snapshot of the paper's sample.
fn snapshot(name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schedstat-v4.out");
    let text = std::fs::read_to_string(golden).expect("the sample");
    let second = text.rfind("version 4").expect("two snapshots");
    let file = folder(name).join("now");
    std::fs::write(&file, &text[second..]).expect("the folder for tests is writable");
    file
}

/// The families of a text in `OpenMetrics` 1.0.0, each of whose lines must hold its rules.
///
/// Source: `OpenMetrics` 1.0.0, sections 4.1 (names, labels) and 5.1 (counters, gauges).
fn families_of_openmetrics(text: &str) -> usize {
    let body = text.strip_suffix("# EOF\n").expect("it has an end");
    assert!(!body.contains("# EOF") && !body.contains("\n\n"));
    let (mut families, mut samples) = (Vec::<(&str, &str)>::new(), HashSet::new());
    let mut helped = "";
    for line in body.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').expect("a text").0;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert_eq!(name, helped, "help and type stand together");
            assert!(
                ["counter", "gauge"].contains(&kind) && !name.ends_with("_total"),
                "{line}"
            );
            assert!(
                families.iter().all(|it| it.0 != name),
                "{name} is begun twice"
            );
            families.push((name, kind));
        } else {
            let (family, kind) = families.last().expect("a family is begun");
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let ending = if *kind == "counter" { "_total" } else { "" };
            assert_eq!(name, format!("{family}{ending}"), "{line}");
            check_labels(labels);
            assert!(value.parse::<f64>().is_ok_and(|it| it >= 0.0), "{line}");
            assert!(samples.insert(series), "{series} stands there twice");
        }
    }
    families.len()
}

/// Checks `a="b",c="d"}`: each label once, its value with escapes.
fn check_labels(labels: &str) {
    let mut rest = labels.strip_suffix('}').expect("an end");
    let mut known = HashSet::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").expect("a value in quotes");
        assert!(
            name.chars().all(|it| it.is_ascii_lowercase() || it == '_'),
            "{labels}"
        );
        assert!(known.insert(name), "{labels}");
        let mut end = 0;
        while value.as_bytes()[end] != b'"' {
            end += if value.as_bytes()[end] == b'\\' { 2 } else { 1 };
        }
        rest = value[end + 1..]
            .strip_prefix(',')
            .unwrap_or(&value[end + 1..]);
    }
}

#[test]
fn openmetrics_has_every_thread_and_a_form_that_holds_its_rules() {
    let file = snapshot("openmetrics");
    let file = file.to_str().expect("text");
    let words = ["stat", "export", "--once", "--processes", "--from", file];
    let text = good(&[&words[..], &["--format", "openmetrics"]].concat());
    assert!(families_of_openmetrics(&text) > 20, "{text}");
    assert!(text.contains("\n# TYPE runslice_process_timeslices counter\n"));
    let wrong = runslice(&["stat", "export", "--format", "json"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn prometheus_is_answered_on_this_machine_only() {
    let file = snapshot("export");
    let mut child = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(["stat", "export", "--listen", "127.0.0.1:0", "--from"])
        .arg(file)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runslice starts");
    let stderr = child.stderr.take().expect("piped");
    let _served = Served(child);
    let line = BufReader::new(stderr)
        .lines()
        .map(|line| line.expect("text"))
        .find(|line| line.contains("http://"))
        .expect("it says where");
    let address = line
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.expect("an address");
    let metrics = ask(
        address,
        "GET /metrics HTTP/1.1\r\nHost: localhost:9437\r\n\r\n",
    );
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    let body = metrics.split("\r\n\r\n").nth(1).expect("a body");
    assert!(metrics.contains(&format!("Content-Length: {}\r\n", body.len())));
    assert!(
        body.contains("node_schedstat_timeslices_total{cpu=\"0\"} 264615\n"),
        "{body}"
    );
    assert!(body.contains("node_schedstat_running_seconds_total{cpu=\"0\"} 82.278000000\n"));
    let asked = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\
                 Accept: application/openmetrics-text;version=1.0.0;q=0.6,*/*;q=0.2\r\n\r\n";
    let metrics = ask(address, asked);
    assert!(metrics.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0;"));
    let body = metrics.split("\r\n\r\n").nth(1).expect("a body");
    assert!(families_of_openmetrics(body) > 20, "{body}");
    assert!(body.contains("node_schedstat_running_seconds_total{cpu=\"0\"} 82.278\n"));
    let cases = [
        (
            "GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            "HTTP/1.1 404 ",
        ),
        (
            "POST /metrics HTTP/1.1\r\nHost: [::1]:9\r\n\r\n",
            "HTTP/1.1 405 ",
        ),
        // A page that has led its name to this machine, and one that names nobody.
        (
            "GET /metrics HTTP/1.1\r\nHost: page.example:9437\r\n\r\n",
            "HTTP/1.1 403 ",
        ),
        ("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 403 "),
        ("GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 "),
    ];
    for (request, answer) in cases {
        assert!(ask(address, request).starts_with(answer), "{request}");
    }
    // A request without end is dropped, and the next one is answered.
    let endless = "A".repeat(20_000);
    let mut stream = TcpStream::connect(address).expect("it listens");
    let _ = stream.write_all(endless.as_bytes());
    drop(stream);
    assert!(ask(address, "GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
    // One that has not asked to the end holds nobody up, and is answered when it has.
    let mut slow = TcpStream::connect(address).expect("it listens");
    slow.write_all(b"GET /metrics HTTP/1.0\r\n")
        .expect("it reads");
    assert!(ask(address, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
    slow.write_all(b"\r\n").expect("it still listens");
    let mut answer = String::new();
    slow.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn prometheus_is_not_answered_on_addresses_of_other_machines() {
    let output = runslice(&["stat", "export", "--listen", "0.0.0.0:0"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("only addresses of this machine"),
        "{stderr}"
    );
}

/// Jiffies, and of each CPU its number, calls, time in ms and turns.
type Moment<'a> = (u64, &'a [(u32, [u64; 3])]);

/// A log of version 17 with one line for each CPU and moment.
fn version_17(moments: &[Moment<'_>]) -> String {
    let mut log = String::new();
    for (timestamp, cpus) in moments {
        log += &format!("version 17\ntimestamp {timestamp}\n");
        for (cpu, [calls, ms, turns]) in *cpus {
            log += &format!("cpu{cpu} 0 0 {calls} 0 0 0 {ms}000000 0 {turns}\n");
        }
    }
    log
}

/// What `stat report` says of `log`: status, standard output and standard error.
fn report(name: &str, log: &str, options: &[&str]) -> (Option<i32>, String, String) {
    let file = folder(name).join("log");
    std::fs::write(&file, log).expect("the folder for tests is writable");
    let file = file.to_str().expect("a plain name");
    let output = runslice(&[&["stat", "report", file][..], options].concat());
    (
        output.status.code(),
        String::from_utf8(output.stdout).expect("text"),
        String::from_utf8(output.stderr).expect("text"),
    )
}

/// The first column of a table.
fn until(table: &str) -> Vec<&str> {
    let rows = table.lines().skip_while(|line| !line.contains(" s "));
    rows.filter_map(|row| row.split(" s").next().map(str::trim))
        .collect()
}

#[test]
fn intervals_over_the_end_of_32_bits_are_added_up() {
    // A kernel of 32 bits with HZ=1000: 5 s before the wrap, and 5 and 15 s behind it.
    let log = version_17(&[
        ((1 << 32) - 5_000, &[(0, [10, 1_000, 10])]),
        (5_000, &[(0, [20, 2_000, 20])]),
        (15_000, &[(0, [30, 3_000, 30])]),
    ]);
    let (status, table, said) = report("wrap", &log, &["--each", "--hz", "1000"]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(until(&table), ["10.0", "20.0"], "{table}");
}

#[test]
fn a_reboot_ends_a_report_and_is_said() {
    let boot = (1 << 32) - 75_000;
    let log = version_17(&[
        (boot + 2_500, &[(0, [10, 1_000, 10])]),
        (boot + 5_000, &[(0, [20, 2_000, 20])]),
        (boot + 1_000, &[(0, [5, 500, 5])]),
        // Later than the first snapshot, so that the whole would hide it.
        (boot + 9_000, &[(0, [30, 3_000, 30])]),
    ]);
    for options in [&["--each"][..], &[]] {
        let (status, table, said) = report("reboot", &log, options);
        assert_eq!(status, Some(1), "{table}{said}");
        assert_eq!(until(&table), ["10.0"], "{table}");
        assert!(
            said.contains("snapshot 3 and those behind it") && said.contains("started anew"),
            "{said}"
        );
    }
}

/// The clock goes on, as the second boot was longer; only the counters show it.
#[test]
fn a_reboot_that_the_clock_does_not_show_is_said() {
    let boot = (1 << 32) - 75_000;
    let log = version_17(&[
        (boot + 1_000, &[(0, [10, 1_000, 10])]),
        (boot + 2_000, &[(0, [50, 5_000, 50])]),
        (boot + 9_000, &[(0, [20, 2_000, 20])]),
    ]);
    let (status, table, said) = report("reboot-later", &log, &[]);
    assert_eq!(status, Some(0), "{table}{said}");
    assert!(
        said.contains("perhaps the machine was started anew: CPUs: 0\n"),
        "{said}"
    );
}

#[test]
fn what_a_report_leaves_out_is_said() {
    let log = version_17(&[
        (1 << 40, &[(0, [10, 1_000, 10]), (1, [10, 1_000, 10])]),
        ((1 << 40) + 2_500, &[(0, [10, 2_000, 60]), (2, [0, 9, 9])]),
    ]);
    let (status, table, said) = report("left-out", &log, &["--by", "cpu"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("CPUs that came: 2\n"), "{said}");
    assert!(said.contains("CPUs that went: 1\n"), "{said}");
    // No call of schedule(), although tasks were given the CPU.
    assert!(said.contains("kernel.sched_schedstats was 0"), "{said}");
    assert!(said.contains("stat record --enable"), "{said}");
    let row = table.lines().last().expect("a row");
    assert!(
        !row.contains("0.0 ") || row.starts_with("10.0 s"),
        "{table}"
    );
    assert_eq!(
        row.split_whitespace().rev().take(3).collect::<Vec<_>>(),
        ["-"; 3]
    );
}

#[test]
fn a_log_without_an_end_is_refused_by_name() {
    for (arguments, want) in [
        (
            &["stat", "task", "--from", "/dev/zero"][..],
            "/dev/zero, line 1: longer than 4096 bytes",
        ),
        (
            &["stat", "record", "/dev/null", "--from", "/dev/zero"],
            "/dev/zero: longer than 64 MiB",
        ),
        (
            &["load", "series", "/dev/zero"],
            "/dev/zero: longer than 64 MiB",
        ),
    ] {
        let output = runslice(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(want), "{arguments:?}: {said}");
    }
}

#[test]
fn ten_seconds_are_ten_seconds_whatever_the_kernels_hz() {
    for hz in [250, 1_000] {
        let log = version_17(&[
            (1 << 40, &[(0, [0, 0, 0])]),
            ((1 << 40) + 10 * hz + 2, &[(0, [60, 200, 50])]),
        ]);
        let (_, table, said) = report("hz", &log, &[]);
        assert_eq!(until(&table), ["10.0"], "{table}{said}");
        assert!(
            said.contains(&format!("counts {hz} jiffies as a second; ")),
            "{said}"
        );
        // What the recording says is not guessed at.
        let (_, table, said) = report("hz", &format!("{log}# HZ=100\n"), &[]);
        let seconds = format!("{}.0", hz / 10);
        assert_eq!((until(&table), said.as_str()), (vec![seconds.as_str()], ""));
    }
}

#[test]
fn a_later_version_is_read_by_its_cpu_lines() {
    let log = version_17(&[
        (1 << 40, &[(0, [0, 0, 0])]),
        ((1 << 40) + 2_500, &[(0, [60, 200, 50])]),
    ]);
    let log = log.replace("version 17", "version 18");
    let log = format!("{log}domain0 NEW f 1 2 3\n");
    let (status, _, said) = report("later", &log, &[]);
    assert_eq!(status, Some(1));
    assert!(said.contains("--cpu-lines"), "{said}");
    let (status, table, said) = report("later", &log, &["--cpu-lines", "--hz", "250"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(table.contains("4.00 ms"), "{table}");
}

#[test]
fn top_prints_each_interval_of_a_recording_where_there_is_no_terminal() {
    let folder = folder("top");
    let file = folder.join("o1.stat");
    let name = file.to_str().expect("a plain name");
    record(name);
    let text = good(&["stat", "top", name, "--hz", "1000", "--sort", "slices"]);
    assert_eq!(text.matches(": 4 CPUs ").count(), 2, "{text}");
    assert!(text.contains(", until 1.00 s: 4 CPUs") && text.contains(", until 2.00 s: 4 CPUs"));
    assert!(text.contains("slices/s\u{2193}"), "{text}");
    let first = text.split("\n\n").next().expect("an interval");
    let rates = first.lines().skip(2).map(|line| {
        let rate = line.split_whitespace().nth(9).expect("a rate");
        rate.parse::<f64>()
            .unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let rates: Vec<f64> = rates.collect();
    assert_eq!(rates.len(), 4);
    assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
}

#[test]
fn top_looks_at_the_running_kernel() {
    let text = good(&["stat", "top", "--every", "100ms", "--for", "250ms"]);
    let looks = text.matches(" ran or waited").count();
    assert!((1..=2).contains(&looks), "{text}");
    assert!(text.contains("runslice\n"), "it sees itself: {text}");
    let cpus = [
        "stat", "top", "--every", "50ms", "--for", "60ms", "--show", "cpus",
    ];
    let output = runslice(&cpus);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if Path::new("/proc/schedstat").exists() {
        assert!(said.contains(" cpu0 "), "{said}");
    } else {
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("CONFIG_SCHEDSTATS"), "{said}");
    }
}

#[test]
fn top_on_a_terminal_follows_keys_and_puts_the_terminal_back() {
    let version = Command::new("tmux").arg("-V").output();
    let version = version.expect("this test needs tmux: apt install tmux");
    assert!(version.status.success());
    let folder = folder("terminal");
    let file = folder.join("o1.stat");
    let name = file.to_str().expect("a plain name");
    record(name);
    let socket = folder.join("socket");
    let tmux = |arguments: &[&str]| {
        let output = Command::new("tmux")
            .env("LC_ALL", "C.UTF-8")
            .args(["-u", "-S"])
            .arg(&socket)
            .args(arguments)
            .output()
            .expect("tmux starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // Waits for what comes in the end, however slow the machine; a test that hangs is a failure.
    let until = |what: &str| loop {
        let screen = tmux(&["capture-pane", "-p"]);
        if screen.contains(what) {
            return screen;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let program = env!("CARGO_BIN_EXE_runslice");
    tmux(&[
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-x",
        "90",
        "-y",
        "12",
        "env PS1='ready> ' sh",
    ]);
    // What is typed before the shell has read its first line is echoed twice, or before the prompt.
    until("ready>");
    let command =
        format!("stty -a | md5sum; {program} stat top {name} --hz 1000; stty -a | md5sum");
    tmux(&["send-keys", &command, "Enter"]);
    let screen = until("until 1.00 s: 4 CPUs");
    assert!(
        screen.contains("busy\u{2193}") && screen.contains("q quit"),
        "{screen}"
    );
    tmux(&["send-keys", "n"]);
    until("until 2.00 s: 4 CPUs");
    tmux(&["send-keys", ">", "r"]);
    let screen = until("waiting\u{2191}");
    let rows = screen.lines().filter(|line| line.contains(" cpu"));
    assert_eq!(rows.count(), 4, "{screen}");
    tmux(&["send-keys", "q"]);
    let screen = loop {
        let screen = until("  -");
        if screen.matches("  -").count() >= 2 && !screen.contains("waiting\u{2191}") {
            break screen;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let sums: Vec<&str> = screen
        .lines()
        .filter(|line| line.ends_with("  -"))
        .collect();
    assert_eq!(sums[0], sums[1], "the terminal is as it was: {screen}");
    tmux(&["kill-server"]);
}

#[test]
fn the_numbers_of_a_task_are_read_from_a_log_of_any_age() {
    let folder = folder("task");
    let between: Vec<String> = (4..=41).map(|field| field.to_string()).collect();
    let stat = |numbers: &str| format!("77 (a b) S {} {numbers}\n", between.join(" "));
    let logs = [
        (
            "old",
            format!("{}\n{}", stat("100 40 10"), stat("300 50 20")),
        ),
        (
            "new",
            "100000000 40000000 10\n300000000 50000000 20\n".to_owned(),
        ),
    ];
    for (name, log) in logs {
        let file = folder.join(name);
        std::fs::write(&file, log).expect("the folder for tests is writable");
        let text = good(&["stat", "task", "--from", file.to_str().expect("plain")]);
        let row: Vec<&str> = text
            .lines()
            .nth(1)
            .expect("a row")
            .split_whitespace()
            .collect();
        assert_eq!(row, ["2", "10", "1.00", "ms", "20.0", "ms"], "{name}");
    }
    let torn = folder.join("torn");
    std::fs::write(&torn, "1 2 3\n1 2\n").expect("the folder for tests is writable");
    let output = runslice(&["stat", "task", "--from", torn.to_str().expect("plain")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr.contains("torn, line 2: /proc/PID/schedstat has 2 fields"),
        "{stderr}"
    );
}
