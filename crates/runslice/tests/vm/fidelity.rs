//! `fidelity`: plays that a kernel made are compared with simulations of the same.
//!
//! `tests/fidelity/` has plays of a real 6.18.15 in a counting VM, made once by
//!
//! ```text
//! runslice fidelity fifo,mlfq --generate 2 --for 1s --cpus 2 --events -d tests/fidelity
//! ```
//!
//! The files of events are left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runslice_tests::command;
use serde_json::Value;

struct Folder(PathBuf);

impl Folder {
    /// A folder with the recorded plays in `plays`.
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fidelity-{name}"));
        let _ = fs::remove_dir_all(&path);
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fidelity");
        copy(&recorded, &path.join("plays"));
        Self(path)
    }

    /// What a command that ends with `status` prints on standard output and standard error.
    fn said(&self, arguments: &[&str], status: i32) -> (String, String) {
        command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, arguments, status)
    }

    /// The JSON of the recorded plays, compared with these options more.
    fn json(&self, more: &[&str]) -> Value {
        self.json_and(more, 0)
    }

    fn json_and(&self, more: &[&str], status: i32) -> Value {
        let words = ["fidelity", "--from", "plays", "--format", "json"];
        let (out, _) = self.said(&[&words, more].concat(), status);
        serde_json::from_str(&out).expect("JSON")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("writable");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("writable");
    for entry in fs::read_dir(from).expect("recorded plays") {
        let (path, name) = entry
            .map(|it| (it.path(), it.file_name()))
            .expect("readable");
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).expect("writable");
        }
    }
}

fn names(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| row["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn recorded_plays_are_compared_without_a_kernel_by_profile_policy_and_workload() {
    let folder = Folder::new("from");
    let found = folder.json(&["--profile", "default-v0", "--worst", "3"]);
    assert_eq!(names(&found["rows"]), ["ideal", "default-v0", "ceiling"]);
    assert_eq!(names(&found["policies"]), ["fifo", "mlfq"]);
    assert_eq!(names(&found["workloads"]), ["generated-1", "generated-2"]);
    assert_eq!(found["missing"], Value::Array(Vec::new()));
    for row in found["rows"].as_array().unwrap() {
        for key in [
            "share",
            "runs",
            "wakeup_p50",
            "wakeup_p99",
            "waits",
            "switches",
        ] {
            let factor = row[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{row}: no {key}"));
            assert!((1.0..1e6).contains(&factor), "{key} is {factor}");
        }
        let [alike, pairs] = ["order_alike", "order_pairs"].map(|key| row[key].as_u64().unwrap());
        assert!(alike <= pairs && pairs > 0, "{row}");
        // What is clear is known of what is compared with the kernel, not of the kernel itself.
        let clear = row["clear_pairs"].as_u64().unwrap();
        assert!(clear <= pairs && (clear > 0) == (row["name"] != "ceiling"));
        assert!(row["clear_alike"].as_u64().unwrap() <= clear, "{row}");
    }
    // The ceiling, too, is of the workloads' own tasks: five figures a group and one a machine, of
    // one pair of plays for each of two policies.
    let figures = |at: usize| {
        let row = &found["rows"][at];
        row["figures"].as_u64().unwrap() + row["figures_on_one_side"].as_u64().unwrap()
    };
    let groups = ["generated-1", "generated-2"].map(|name| {
        let file = folder.0.join(format!("plays/loads/{name}.toml"));
        fs::read_to_string(file).unwrap().matches("[task.").count() as u64
    });
    let most = groups
        .map(|groups| 2 * (5 * groups + 1))
        .iter()
        .sum::<u64>();
    assert!(
        (most / 2..=most).contains(&figures(2)),
        "{} of {most}",
        figures(2)
    );
    assert!(
        figures(0) > figures(2),
        "both plays of a pair are simulated"
    );
    let worst = found["worst"].as_array().unwrap();
    let factors: Vec<f64> = worst
        .iter()
        .map(|it| it["figure"]["factor"].as_f64().unwrap())
        .collect();
    assert_eq!(factors.len(), 3);
    assert!(factors.is_sorted_by(|a, b| a >= b), "{factors:?}");
}

#[test]
fn the_scores_of_the_recorded_plays_do_not_fall() {
    let folder = Folder::new("scores");
    let words = ["fidelity", "--from", "plays", "--profile", "default-v0"];
    folder.said(&[&words[..], &["--least", "plays/least.toml"]].concat(), 0);
}

#[test]
fn the_row_of_the_kept_plays_in_the_document_is_what_the_script_writes() {
    let folder = Folder::new("document");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/fidelity.md")).expect("the document");
    let kept = |text: &str| {
        let mut rows = text.lines().filter(|line| line.starts_with("| kept |"));
        rows.next().map(str::to_owned)
    };
    // A row that says nothing, so that the script must write it.
    let written = kept(&text).expect("a row of the kept plays");
    folder.write("fidelity.md", &text.replace(&written, "| kept |"));
    let status = Command::new(root.join("scripts/scores.sh"))
        .arg("kept")
        .env("RUNSLICE", env!("CARGO_BIN_EXE_runslice"))
        .env("DOCUMENT", folder.0.join("fidelity.md"))
        .status()
        .expect("a shell");
    assert!(status.success(), "{status}");
    let again = fs::read_to_string(folder.0.join("fidelity.md")).expect("the copy");
    assert_eq!(again, text, "run `scripts/scores.sh kept`");
}

#[test]
fn the_command_behind_a_figure_gives_that_figure() {
    let folder = Folder::new("again");
    assert!(command_behind_a_figure(&folder).contains(" --as-played "));
}

#[test]
fn the_command_behind_a_figure_of_tasks_that_had_not_slept_gives_that_figure() {
    let folder = Folder::new("new");
    for play in fs::read_dir(folder.0.join("plays/plays")).unwrap() {
        let path = play.unwrap().path();
        let mut kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        // The first versions did not say how long the tasks had slept.
        let run = kept["run"].as_object_mut().unwrap();
        assert!(run.remove("before_ns").is_some());
        fs::write(path, kept.to_string()).unwrap();
    }
    assert!(!command_behind_a_figure(&folder).contains("--as-played"));
}

/// The command that simulates the worst share, which is looked up in what it prints.
fn command_behind_a_figure(folder: &Folder) -> String {
    let found = folder.json(&["--worst", "40"]);
    let worst = found["worst"].as_array().unwrap();
    let is_share = |it: &&Value| it["figure"]["measure"] == "share";
    let its = worst
        .iter()
        .find(is_share)
        .expect("a share that is not exact");
    let words = shlex::split(its["simulate"].as_str().unwrap()).expect("a shell's words");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(words[0], "runslice");
    let (out, _) = folder.said(&[&words[1..], &["--format", "json"]].concat(), 0);
    let run: Value = serde_json::from_str(&out).unwrap();
    let groups = run["runs"][0]["report"]["groups"].as_array().unwrap();
    let group = groups
        .iter()
        .find(|it| it["group"] == its["figure"]["group"])
        .unwrap();
    assert_eq!(group["share_ppm"], its["figure"]["other"], "{its}");
    let again = its["again"].as_str().unwrap();
    assert!(
        again.starts_with("runslice vm --det --kernel 6.18 --cpus 2 -- runslice play "),
        "{again}"
    );
    assert!(again.ends_with(" --against-sim"), "{again}");
    its["simulate"].as_str().unwrap().to_owned()
}

#[test]
fn the_result_is_the_same_on_any_number_of_threads_and_the_file_decides_its_form() {
    let folder = Folder::new("form");
    let of = |jobs: &str| {
        folder
            .said(&["fidelity", "--from", "plays", "--jobs", jobs], 0)
            .0
    };
    let text = of("1");
    assert_eq!(text, of("3"));
    assert!(
        text.contains("\nBy policy\n") && text.contains("\nFarthest apart\n"),
        "{text}"
    );
    for name in ["out.md", "out.json", "out.html"] {
        let status = if name == "out.html" { 2 } else { 0 };
        folder.said(&["fidelity", "--from", "plays", "-o", name], status);
    }
    let read = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap();
    assert!(
        read("out.md").contains("\n| compared | order | of | clear | of | share |"),
        "{}",
        read("out.md")
    );
    serde_json::from_str::<Value>(&read("out.json")).unwrap();
}

#[test]
fn a_score_below_the_regression_file_ends_in_a_status_of_its_own() {
    let folder = Folder::new("least");
    // A limit may be read with another last digit than it was written.
    let share = folder.json(&[])["rows"][0]["share"].as_f64().unwrap() + 1e-9;
    let command = ["fidelity", "--from", "plays", "--least", "least.toml"];
    folder.write(
        "least.toml",
        &format!("[ideal]\nshare = {share}\norder = 0.0\n"),
    );
    folder.said(&command, 0);
    folder.write("least.toml", "[ideal]\nshare = 1.0\n");
    let (out, err) = folder.said(&command, 5);
    assert!(out.contains("ideal"), "the table is printed all the same");
    assert!(
        err.contains("ideal: share is ") && err.contains("at most 1"),
        "{err}"
    );
    folder.write("least.toml", "[default-v0]\nshare = 9.0\n");
    folder.said(&command, 2);
    folder.said(&[&command[..], &["--profile", "default-v0"]].concat(), 0);
}

#[test]
fn plays_that_are_missing_are_named_and_damaged_ones_are_refused() {
    let folder = Folder::new("missing");
    let plays = folder.0.join("plays/plays");
    let mut files: Vec<PathBuf> = fs::read_dir(&plays)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    let text = fs::read_to_string(&files[0]).unwrap();
    fs::remove_file(&files[0]).unwrap();
    let found = folder.json_and(&[], 6);
    assert_eq!(found["missing"].as_array().unwrap().len(), 1);
    for bad in [
        "",
        "{}",
        &text[..text.len() / 2],
        &text.replace("\"seed\":", "\"seed\":9"),
    ] {
        fs::write(&files[0], bad).unwrap();
        let (_, err) = folder.said(&["fidelity", "--from", "plays"], 1);
        let name = files[0].file_name().unwrap().to_str().unwrap();
        assert!(err.contains(name), "{err}");
    }
    fs::remove_dir_all(&plays).unwrap();
    let (_, err) = folder.said(&["fidelity", "--from", "plays"], 6);
    assert!(err.contains("no play to compare"), "{err}");
    folder.said(&["fidelity", "--from", "plays", "--cpus", "4"], 2);
    folder.said(&["fidelity", "--from", "nowhere"], 1);
}

#[test]
fn with_the_events_of_a_play_the_first_turn_that_differs_is_named() {
    let folder = Folder::new("first");
    let found = folder.json(&["--worst", "1"]);
    let worst = &found["worst"][0];
    assert_eq!(worst["first_difference"], Value::Null, "no events are kept");
    fs::create_dir_all(folder.0.join("plays/events")).unwrap();
    let [load, policy] = ["workload", "policy"].map(|key| worst[key].as_str().unwrap());
    let seed = worst["seed"].as_u64().unwrap();
    let events = format!("plays/events/{load}.{policy}.{seed}.jsonl");
    // What the simulation itself wrote does not differ from it; with another seed it does.
    let simulate = worst["simulate"].as_str().unwrap().to_owned();
    let with = |command: &str| {
        let split = shlex::split(command).expect("a shell's words");
        let words = split.iter().map(String::as_str);
        let words: Vec<&str> = words.skip(1).chain(["--events", &events]).collect();
        folder.said(&words, 0);
        folder.json(&["--worst", "1"])["worst"][0]["first_difference"].clone()
    };
    assert_eq!(with(&simulate), Value::Null);
    let other = match policy {
        "fifo" => "mlfq",
        _ => "fifo",
    };
    let mut words = shlex::split(&simulate).expect("a shell's words");
    assert_eq!(&words[..2], ["runslice", "sim"]);
    other.clone_into(&mut words[2]);
    let other = shlex::try_join(words.iter().map(String::as_str)).unwrap();
    assert_ne!(other, simulate);
    let first = with(&other);
    assert!(
        first["turn"].as_u64().is_some_and(|turn| turn > 0),
        "{first}"
    );
    assert_ne!(first["played"], first["simulated"]);
}

/// Plays one workload for real, and goes on where it was without another boot.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_kernel_plays_what_is_compared_and_nothing_twice() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fidelity-real");
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    let folder = Folder(path);
    let command = "fidelity fifo,mlfq --generate 1 --for 500ms --events -d new --format json";
    let words: Vec<&str> = command.split(' ').collect();
    let (out, err) = folder.said(&words, 0);
    assert!(err.contains("plays 1 to 4 of 4"), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["missing"], Value::Array(Vec::new()), "{err}");
    assert_eq!(names(&found["rows"]), ["ideal", "ceiling"]);
    let first = &found["worst"][0]["first_difference"];
    assert!(first["turn"].as_u64().is_some(), "{first}");
    // A recorder takes a while to load, and meanwhile the tasks sleep.
    for play in fs::read_dir(folder.0.join("new/plays")).unwrap() {
        let kept = fs::read_to_string(play.unwrap().path()).unwrap();
        let kept: Value = serde_json::from_str(&kept).unwrap();
        let before = kept["run"]["before_ns"].as_u64().unwrap();
        assert!((1_000_000..2_000_000_000).contains(&before), "{before}");
    }
    let (again, err) = folder.said(&words, 0);
    assert!(!err.contains("plays 1"), "{err}");
    assert_eq!(again, out);
}

/// mlfq has other values on a kernel than in a simulation of its own (docs/live.md).
#[test]
fn a_policy_is_simulated_with_the_values_that_the_kernel_had() {
    let folder = Folder::new("knobs");
    let found = folder.json(&["--worst", "1000"]);
    let worst = found["worst"].as_array().unwrap();
    let commands = worst.iter().map(|it| it["simulate"].as_str().unwrap());
    let of_mlfq: Vec<&str> = commands.filter(|it| it.contains("mlfq")).collect();
    assert!(!of_mlfq.is_empty());
    for command in of_mlfq {
        assert!(command.contains("guard_ms=8000"), "{command}");
    }
}

/// What a recording has in it comes out: 30 us from a call to its arrival.
#[test]
fn the_flight_of_a_call_is_measured_in_a_recording_whose_cpus_idle() {
    let folder = Folder::new("flight");
    folder.write(
        "slow.toml",
        "[profile]\nname = \"slow\"\nbase = \"ideal\"\n[costs]\nipi_flight = \"30us\"\n",
    );
    folder.write(
        "idle.toml",
        "[workload]\nname = \"idle\"\n[machine]\ncpus = 2\n[chan.go]\nkind = \"pipe\"\n\
         [task.waker]\ncpus = \"0\"\n\
         do = \"loop(inf)[ run(300us), send(go), run(200us), sleep(3ms) ]\"\n\
         [task.woken]\ncpus = \"1\"\ndo = \"loop(inf)[ recv(go), run(400us) ]\"\n\
         [task.alone]\ncpus = \"1\"\ndo = \"loop(inf)[ sleep(7ms), run(10us) ]\"\n\
         [task.busy]\ncpus = \"0\"\ndo = \"loop(inf)[ run(1ms) ]\"\n",
    );
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        folder.said(&words, 0);
    };
    let sim = "sim fifo --duration 2s --profile slow.toml --events";
    run(&format!("{sim} idle.jsonl -w idle.toml -o /dev/null"));
    run(&format!("{sim} desk.jsonl -w desk -o /dev/null"));
    let measured = |files: &str| {
        run(&format!("calibrate {files} -o measured.toml"));
        fs::read_to_string(folder.0.join("measured.toml")).expect("it was written")
    };
    let flight = "ipi_flight = \"30000ns\"";
    let own = measured("idle.jsonl --group woken");
    assert!(
        own.contains(flight) && own.contains("[background.woken-1]\non = 1\n"),
        "{own}"
    );
    let other = measured("desk.jsonl --group pointer --costs idle.jsonl");
    assert!(
        other.contains(flight) && other.contains("[background.pointer-1]"),
        "{other}"
    );
}
