//! Many runs: `sim --runs`, `sweep` and `compare`, from files to exit statuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use runslice_tests::{command, object};

/// A folder of one test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("many-runs-{name}");
        Self(command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("writable");
    }

    fn read(&self, name: &str) -> String {
        let path = self.0.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn run(&self, arguments: &str) -> Output {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        command::run(env!("CARGO_BIN_EXE_runslice"), &self.0, &words)
    }

    /// What a command that ends with `status` prints.
    fn said(&self, arguments: &str, status: i32) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (out, err) = command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status);
        out + &err
    }

    fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }
}

const DESK: &str = "sim fifo mlfq -w desk --duration 500ms --runs 6";

#[test]
fn the_number_of_threads_changes_no_byte_and_the_first_run_is_the_single_one() {
    let folder = Folder::new("threads");
    for format in ["human", "json", "csv"] {
        // But for the number in the command line, which results for programs have.
        let said = |jobs: u32| {
            let text = folder.said(&format!("{DESK} --format {format} --jobs {jobs}"), 0);
            let text = text.replace(&format!("--jobs {jobs}"), "--jobs");
            text.replace(&format!("\"--jobs\",\n    \"{jobs}\""), "\"--jobs\"")
        };
        let one = said(1);
        for jobs in [2, 5] {
            assert_eq!(one, said(jobs), "{format}, {jobs}");
        }
    }
    folder.said(&format!("{DESK} --format json -o many.json"), 0);
    folder.said(
        "sim fifo -w desk --duration 500ms --format json -o one.json",
        0,
    );
    let (many, one) = (folder.json("many.json"), folder.json("one.json"));
    assert_eq!(many["runs"].as_array().map(Vec::len), Some(12));
    assert_eq!(many["runs"][0], one["runs"][0]);
    let seed = |at: usize| many["runs"][at]["report"]["seed"].as_u64();
    assert!(
        (0..6).all(|at| seed(at) == seed(at + 6)),
        "policies share seeds"
    );
    assert_ne!(seed(0), seed(1));
    let spread = many["spread"].as_array().expect("a list");
    let wakeup = spread.iter().find(|it| it["metric"] == "all.wakeup_ns_p99");
    let wakeup = wakeup.expect("the metric");
    assert_eq!(
        (&wakeup["policy"], &wakeup["runs"]),
        (&"fifo".into(), &6.into())
    );
    assert!(wakeup["min"].as_f64() < wakeup["max"].as_f64());
}

#[test]
fn one_run_of_many_can_neither_be_traced_nor_threads_given_without_runs() {
    let folder = Folder::new("usage");
    folder.said("sim fifo -w desk --runs 2 --trace x.json", 2);
    folder.said("sim fifo -w desk --jobs 2", 2);
    folder.said("sim fifo -w desk --runs 0", 2);
    folder.said("sim fifo:no_such=1 -w desk --runs 2 --jobs 2", 2);
}

#[test]
fn an_ejected_policy_ends_with_3_and_its_runs_are_void() {
    let folder = Folder::new("ejected");
    fs::copy(object!("loser"), folder.0.join("loser.bpf.o")).expect("writable");
    let sim = "sim fifo ./loser.bpf.o -w desk --duration 3s --runs 5";
    let text = folder.said(sim, 3);
    assert!(
        text.contains("\nloser: ejected in 5 of 5 runs, which are left out\n"),
        "{text}"
    );
    assert_eq!(
        text.matches("loser was ejected at ").count(),
        1,
        "the first is told: {text}"
    );
    folder.said(&format!("{sim} --format json -o a.json"), 3);
    let text = folder.said("compare a.json --metric all.wakeup_ns_p99", 1);
    assert!(
        text.contains("loser: ejected in 5 of 5 runs, which are left out"),
        "{text}"
    );
    assert!(text.contains("nothing can be compared"), "{text}");
    let sim = sim.replace("fifo", "fifo eevdf");
    folder.said(&format!("{sim} --format json -o b.json"), 3);
    for command in ["compare b.json", "compare b.json -o p.html"] {
        let text = folder.said(command, 0);
        let first = "loser: ejected in 5 of 5 runs, which are left out\n";
        assert!(
            text.contains(first) && !text.contains("alike in all"),
            "{text}"
        );
        let others = text.find("eevdf against fifo").expect("they are compared");
        assert!(text.find(first).is_some_and(|at| at < others), "{text}");
    }
    let page = folder.read("p.html");
    assert!(
        page.contains("<p class=\"first\">loser: ejected in 5 of 5"),
        "{page}"
    );
    folder.write(
        "s.toml",
        "policy = ['loser.bpf.o']\nworkload = ['desk']\nduration = '3s'\nseeds = 2",
    );
    let text = folder.said("sweep s.toml", 3);
    assert!(text.contains("loser: ejected in 2 of 2 runs"), "{text}");
}

#[test]
fn a_difference_is_found_and_fails_a_build_that_asks_for_it() {
    let folder = Folder::new("verdict");
    // Five metrics take eight pairs.
    let sim = DESK.replace("--runs 6", "--runs 8");
    folder.said(&format!("{sim} --format json -o a.json"), 0);
    let text = folder.said("compare a.json --metric all.*_ns_p99", 0);
    assert!(
        text.contains("mlfq against fifo: better at wakeup p99"),
        "{text}"
    );
    assert_eq!(text, folder.said("compare a.json --metric all.*_ns_p99", 0));
    folder.said(
        "compare a.json --metric all.wakeup_ns_p99 --fail-if slower",
        0,
    );
    folder.said(
        "compare a.json --metric all.wakeup_ns_p99 --fail-if different",
        5,
    );
    let back = "compare a.json --baseline mlfq --metric all.wakeup_ns_p99 --fail-if";
    folder.said(&format!("{back} slower"), 5);
    folder.said(&format!("{back} slower=10"), 5);
    folder.said(&format!("{back} slower=1000"), 0);
    let unknown = folder.said("compare a.json --metric all.wakeup.p98_ns", 2);
    assert!(
        unknown.contains("no metric is called `all.wakeup.p98_ns`"),
        "{unknown}"
    );
}

#[test]
fn late_moves_of_a_desk_under_fifo_against_none_are_decided() {
    let folder = Folder::new("late-moves");
    let sim = "sim fifo mlfq -w desk --duration 1s --runs 10 --format json -o a.json";
    folder.said(sim, 0);
    folder.said("compare a.json --format json -o verdict.json", 0);
    let document = folder.json("verdict.json");
    let rows = document["comparisons"].as_array().expect("a list");
    let of = |metric: &str| {
        rows.iter()
            .find(|row| row["metric"] == metric)
            .expect(metric)
    };
    let late = of("deadline.pointer.pointer.missed");
    assert_eq!(
        (&late["verdict"], &late["paired"]),
        (&"faster".into(), &true.into())
    );
    // What is no goal has numbers and no verdict.
    let delay = of("all.delay_ns_p99");
    assert_eq!(
        (&delay["goal"], &delay["verdict"]),
        (&false.into(), &serde_json::Value::Null)
    );
    assert!(
        delay["ratio_low"].as_f64() < delay["ratio_high"].as_f64(),
        "{delay}"
    );
    assert!(
        late["p_outliers"].is_f64() && late["trimmed_low"].is_f64(),
        "{late}"
    );
}

#[test]
fn a_missed_deadline_is_the_same_in_tables_pages_and_comparisons() {
    let folder = Folder::new("missed");
    // Whoever has the CPU keeps it, so the window's frames of the last second are never done.
    folder.write(
        "starve.toml",
        "[workload]\nname = \"starve\"\nstop = \"duration:2s\"\n[machine]\ncpus = 1\n\
         [deadline.frame]\nperiod = \"10ms\"\n\
         [task.window]\ndo = \"loop(inf)[ release(frame), run(1ms), complete(frame) ]\"\n\
         [task.hog]\nstart = \"1s\"\npolicy = \"fifo:50\"\ndo = \"run(inf)\"\n",
    );
    let sim = "sim fifo -w starve.toml";
    let text = folder.said(&format!("{sim} --table deadlines --format csv"), 0);
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (titles, cells) = (lines.next().expect("titles"), lines.next().expect("a row"));
    let cell = |title: &str| -> u64 {
        let at = titles.iter().position(|it| *it == title).expect(title);
        cells[at].parse().expect("a number")
    };
    assert!(cell("missed") >= 98, "{text}");
    // Every period that was due is met or missed.
    assert!(
        (198..=200).contains(&(cell("met") + cell("missed"))),
        "{text}"
    );
    folder.said(&format!("{sim} --runs 2 --format json -o a.json"), 0);
    let report = &folder.json("a.json")["runs"][0]["report"]["deadlines"][0];
    assert_eq!(report["missed"].as_u64(), Some(cell("missed")));
    folder.said(&format!("{sim} --events e.jsonl -o t.txt"), 0);
    folder.said("report e.jsonl -o page.html", 0);
    let page = folder.read("page.html");
    assert!(
        page.contains(&format!("<td>{}</td>", cell("missed"))),
        "no missed"
    );
}

#[test]
fn a_task_that_starves_to_the_end_gives_the_status_of_an_ejection() {
    let folder = Folder::new("starved");
    for (name, policy) in [("starved", "policy = \"fifo:50\"\n"), ("fed", "")] {
        let file = format!(
            "[workload]\nname = \"{name}\"\nstop = \"duration:5s\"\n[machine]\ncpus = 1\n\
             [task.a]\ndo = \"run(inf)\"\n[task.hog]\n{policy}do = \"run(inf)\"\n"
        );
        folder.write(&format!("{name}.toml"), &file);
    }
    folder.said("sim fifo -w fed.toml", 0);
    for how in ["", " -o t.txt", " --runs 2", " --format json"] {
        let text = folder.said(&format!("sim fcfs --right weight -w fed.toml{how}"), 3);
        assert!(text.contains("STARVED"), "{how}: {text}");
        assert!(!text.contains("1 tasks"), "{how}: {text}");
    }
    // `explain` blames no policy for what a higher class takes, and neither does `sim`.
    let text = folder.said("sim fifo -w starved.toml", 0);
    assert!(text.contains("no fault of the policy ("), "{text}");
    assert!(!text.contains("STARVED"), "{text}");
}

#[test]
fn a_policy_that_needs_more_than_it_is_allowed_is_ejected() {
    let folder = Folder::new("limits");
    let sim = "sim fifo -w desk --duration 1s";
    folder.said(&format!("{sim} --budget 1000000000 --memory 64"), 0);
    for how in ["", " --runs 2", " --schedstat books.txt"] {
        let text = folder.said(&format!("{sim} --budget 1000{how}"), 3);
        assert!(text.contains("1000 instructions"), "{how}: {text}");
    }
    let books = folder.read("books.txt");
    assert!(books.starts_with("version 4\n"), "{books}");
    let within = format!("{sim} --budget 1000000000 --memory 64 --schedstat whole.txt");
    folder.said(&within, 0);
    assert!(folder.read("whole.txt").len() > books.len());
    let audit = folder.said(&format!("{sim} --audit --budget 1000"), 0);
    assert!(audit.contains("was ejected"), "{audit}");
    folder.said(&format!("{sim} --budget 0"), 2);
}

#[test]
fn the_same_policy_with_other_seeds_is_not_called_different() {
    let folder = Folder::new("same");
    let sim = "sim mlfq -w desk --duration 500ms --runs 12 --format json";
    folder.said(&format!("{sim} -o a.json --seed 1"), 0);
    folder.said(&format!("{sim} -o b.json --seed 2"), 0);
    let metric = "--metric all.delay_ns_mean --margin 20";
    let text = folder.said(
        &format!("compare a.json b.json {metric} --fail-if different"),
        0,
    );
    assert!(
        text.contains("mlfq (b) against mlfq (a): no difference"),
        "{text}"
    );
    // With less of interest the runs do not say.
    let narrow = "compare a.json b.json --metric all.delay_ns_mean --margin 0";
    folder.said(&format!("{narrow} --fail-if different"), 6);
    folder.said(narrow, 6);
}

#[test]
fn a_run_that_is_only_repeated_has_no_spread_and_is_refused() {
    let folder = Folder::new("repeated");
    folder.said(
        "sim fifo mlfq -w desk --duration 200ms --format json -o one.json",
        0,
    );
    let one = folder.read("one.json");
    folder.write("six.json", &one.repeat(6));
    let text = folder.said("compare six.json", 1);
    assert!(
        text.contains("a run of fifo with seed 1 is in it twice"),
        "{text}"
    );
    let text = folder.said("compare one.json", 1);
    assert!(text.contains("1 run; it takes 6"), "{text}");
}

#[test]
fn hyperfine_is_read_and_files_of_different_kinds_are_not_mixed() {
    let folder = Folder::new("foreign");
    let times = |scale: f64| {
        let times = [1.00, 1.01, 0.99, 1.02, 0.98, 1.0].map(|time| (time * scale).to_string());
        format!(
            "{{\"results\":[{{\"command\":\"x\",\"times\":[{}]}}]}}",
            times.join(",")
        )
    };
    folder.write("before.json", &times(1.0));
    folder.write("after.json", &times(1.1));
    let text = folder.said("compare before.json after.json --fail-if slower=5", 5);
    assert!(
        text.contains("x (after) against x (before): worse at time of the command"),
        "{text}"
    );
    folder.said(
        "sim fifo -w desk --duration 100ms --runs 5 --format json -o sim.json",
        0,
    );
    let text = folder.said("compare before.json sim.json", 2);
    assert!(
        text.contains("not compared: hyperfine, simulated"),
        "{text}"
    );
    folder.write("broken.json", "{\"results\": [");
    let text = folder.said("compare broken.json after.json", 1);
    assert!(
        text.contains("broken.json: no JSON: EOF while parsing"),
        "{text}"
    );
    folder.write("other.json", "[1]");
    let text = folder.said("compare other.json", 1);
    assert!(
        text.contains("other.json: document 1: neither results of"),
        "{text}"
    );
    folder.said("compare no_such.json", 1);
}

const SWEEP: &str = "
policy = ['fifo', 'mlfq']
workload = ['desk']
cpus = [1, 2]
seeds = 3
duration = '100ms'
[knobs.mlfq]
queues = [4, 8]
";

#[test]
fn an_interrupted_sweep_goes_on_to_the_same_bytes() {
    let folder = Folder::new("resume");
    folder.write("s.toml", SWEEP);
    let whole = folder.said("sweep s.toml --folder whole --format csv --jobs 2", 0);
    assert!(
        whole.contains("desk: 2 CPUs, HZ 250, kernel 6.18"),
        "{whole}"
    );
    let runs = |name: &str| {
        let entries = fs::read_dir(folder.0.join(name).join("runs")).expect("a folder");
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.expect("readable").path())
            .collect();
        paths.sort();
        paths
    };
    assert_eq!(runs("whole").len(), 18);
    folder.said("sweep s.toml --folder part --shard 1/3", 0);
    assert!(
        !folder.0.join("part/results.json").exists(),
        "a part is no whole"
    );
    // One of them is torn, as no crash of ours would leave it, and one is missing.
    let stored = runs("part");
    assert_eq!(stored.len(), 6);
    fs::remove_file(&stored[0]).expect("removed");
    fs::write(&stored[1], "{\"report\"").expect("written");
    let text = folder.said("sweep s.toml --folder part", 0);
    assert!(
        text.contains("sweep: 4 of 18 runs are there already\n"),
        "{text}"
    );
    assert_eq!(
        folder.read("whole/results.json"),
        folder.read("part/results.json")
    );
    let text = folder.said("sweep s.toml --folder part", 0);
    assert!(
        text.contains("sweep: 18 of 18 runs are there already\n"),
        "{text}"
    );
}

#[test]
fn parts_merge_to_the_bytes_of_the_whole_and_missing_ones_are_told() {
    let folder = Folder::new("shards");
    folder.write("s.toml", SWEEP);
    folder.said("sweep s.toml --folder whole", 0);
    folder.said("sweep s.toml --folder one --shard 1/2", 0);
    let text = folder.said("sweep s.toml --folder merged --merge one", 1);
    assert!(
        text.contains("9 of 18 runs are in none of the folders"),
        "{text}"
    );
    let text = folder.said("sweep s.toml --folder two --shard 2/2", 0);
    assert!(
        text.contains("part 2 of 2: 9 of 18 runs are in two\n"),
        "{text}"
    );
    folder.said("sweep s.toml --folder merged --merge one --merge two", 0);
    assert_eq!(
        folder.read("whole/results.json"),
        folder.read("merged/results.json")
    );
    // Another sweep does not take them for its own.
    folder.write("t.toml", &SWEEP.replace("100ms", "50ms"));
    folder.said("sweep t.toml --folder other --merge one --merge two", 1);
}

#[test]
fn a_sweep_is_compared_load_by_load() {
    let folder = Folder::new("sweep-compare");
    // Four comparisons take eight pairs.
    folder.write("s.toml", &SWEEP.replace("seeds = 3", "seeds = 8"));
    folder.said("sweep s.toml", 0);
    let text = folder.said(
        "compare s.results --metric all.wakeup_ns_p99 --format csv",
        0,
    );
    let rows: Vec<&str> = text.lines().skip(1).collect();
    // Two arms against fifo on each of two machines.
    assert_eq!(rows.len(), 4, "{text}");
    assert!(
        rows[0].contains(",\"desk: 1 CPU, HZ 250, kernel 6.18\","),
        "{text}"
    );
    assert!(
        rows.iter().all(|row| row.contains(",fifo,mlfq:queues=")),
        "{text}"
    );
}

#[test]
fn a_wrong_knob_is_told_with_its_place_before_anything_runs() {
    let folder = Folder::new("wrong-knob");
    folder.write(
        "s.toml",
        &SWEEP.replace("queues = [4, 8]", "queues = [4]\nno_such = [1]"),
    );
    let text = folder.said("sweep s.toml", 2);
    assert!(text.contains("s.toml:2:19: "), "{text}");
    assert!(text.contains("no_such"), "{text}");
    let runs = fs::read_dir(folder.0.join("s.results/runs")).expect("a folder");
    assert_eq!(runs.count(), 0);
}

/// docs/comparing.md: commands behind `$`, and below each what it prints.
#[test]
fn the_verdicts_of_the_document_are_what_is_printed() {
    let document = include_str!("../../../docs/comparing.md");
    let folder = Folder::new("document");
    let blocks = document.split("```console\n").skip(1);
    let blocks = blocks.map(|it| it.split("```").next().expect("an end"));
    let mut commands = 0;
    for block in blocks {
        for step in block.split("$ runslice ").skip(1) {
            let (command, want) = step.split_once('\n').expect("a line");
            let output = folder.run(command);
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{command}");
            // A line `...` stands for any lines.
            let (begin, end) = want.split_once("...\n").unwrap_or((want, ""));
            let is_whole = end.is_empty() && said != want;
            let has_ends = said.starts_with(begin) && said.ends_with(end);
            assert!(has_ends && !is_whole, "{command}:\n{said}");
            commands += 1;
        }
    }
    assert_eq!(commands, 2);
}

/// Five seconds end before the watchdog looks, so that nothing is ejected.
#[test]
fn a_task_that_starves_is_told_by_sweeps_and_comparisons_too() {
    let folder = Folder::new("starved-sweep");
    let object = runslice_tests::policy::object("faulty-unread").expect("a test policy");
    fs::write(folder.0.join("unread.bpf.o"), object).expect("writable");
    folder.write(
        "load.toml",
        "[workload]\nname = \"x\"\n[machine]\ncpus = 2\n[task.a]\ncount = 4\n\
         do = \"loop(20)[run(exp(1ms)), sleep(1ms)]\"\n[task.h]\ncount = 2\ndo = \"run(3s)\"\n",
    );
    folder.write(
        "s.toml",
        "policy = [\"fifo\", \"unread.bpf.o\"]\nworkload = [\"load.toml\"]\nseeds = 3\n\
         duration = \"5s\"\n",
    );
    let want = "unread: in 3 of 3 runs that count a task starved to the end\n";
    for options in ["", " -o s.csv", " -o s.json"] {
        let text = folder.said(&format!("sweep s.toml{options}"), 3);
        assert!(text.contains(want) && !text.contains("fifo: in "), "{text}");
    }
    assert_eq!(folder.json("s.json")["sets"][1]["starved"], 3);
    let text = folder.said("compare s.results", 6);
    assert!(text.contains(want), "{text}");
    let sim = "sim fifo unread.bpf.o -w load.toml --duration 5s --runs 3";
    let text = folder.said(sim, 3);
    assert!(text.contains(want), "{text}");
}

/// A disk that is full in the middle of a file: a limit of 512 bytes a file stands for it, since
/// nobody needs root for that.
#[test]
fn a_disk_that_fills_up_leaves_no_partial_file() {
    let folder = Folder::new("filling");
    for (verb, file) in [
        ("list --copy mlfq -o copied.bpf.c", "copied.bpf.c"),
        ("list --copy desk -o copied.wl", "copied.wl"),
        ("build --headers include", "include/"),
        ("man pages", "pages/"),
        ("sim fifo -w desk --duration 1ms -o page.html", "page.html"),
        (
            "sim fifo -w desk --duration 100ms --events events",
            "events",
        ),
    ] {
        fs::create_dir_all(folder.0.join("pages")).expect("writable");
        let script = format!("trap '' XFSZ; ulimit -f 1; exec \"$0\" {verb}");
        let program = env!("CARGO_BIN_EXE_runslice");
        let (out, err) = command::said("sh", &folder.0, &["-c", &script, program], 1);
        let said = format!("{out}{err}");
        assert!(said.contains("File too large"), "{verb}: {said}");
        assert!(
            said.contains(&format!("cannot write {file}")),
            "{verb}: {said}"
        );
        let left = files_below(&folder.0);
        assert!(left.iter().all(|it| it.1 < 512), "{verb}: {left:?}");
        assert!(
            left.iter().all(|it| !it.0.ends_with(".new")),
            "{verb}: {left:?}"
        );
        fs::remove_dir_all(&folder.0).expect("it is ours");
        fs::create_dir_all(&folder.0).expect("writable");
    }
}

/// Names and lengths of all files below a folder.
fn files_below(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("readable");
        let facts = entry.metadata().expect("readable");
        if facts.is_dir() {
            found.append(&mut files_below(&entry.path()));
        } else {
            found.push((
                entry.file_name().to_string_lossy().into_owned(),
                facts.len(),
            ));
        }
    }
    found
}

/// As `runslice set` does on a kernel, at a time that the command names.
#[test]
fn a_knob_that_is_set_in_the_middle_of_a_run_changes_what_comes_after_it() {
    let folder = Folder::new("later");
    let events = |policy: &str| {
        let sim = "-w desk --duration 2s -o report --events events";
        folder.said(&format!("sim {policy} {sim}"), 0);
        let lines = folder.read("events");
        let times = lines.lines().skip(1).map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).expect("an event");
            (event["time_ns"].as_u64().expect("a time"), line.to_owned())
        });
        times.collect::<Vec<_>>()
    };
    const AT: u64 = 1_000_000_000;
    let before = |events: &[(u64, String)]| {
        let until = events.partition_point(|(time, _)| *time < AT);
        events[..until].to_vec()
    };
    let (plain, other) = (events("staircase"), events("staircase:interactive=0"));
    let set = events("staircase:interactive@1s=0");
    let back = events("staircase:interactive=0,interactive@1s=1");
    assert_ne!(
        before(&plain),
        before(&other),
        "the knob makes a difference"
    );
    assert!(before(&set) == before(&plain) && set != plain);
    assert!(before(&back) == before(&other) && back != other && back != set);
    // What it is already, and what comes after the end, changes nothing.
    assert!(events("staircase:interactive@1s=1") == plain);
    assert!(events("staircase:interactive@1s=0,interactive@1s=1") == plain);
    let late = folder.said("sim staircase:interactive@5s=0 -w desk --duration 1s", 0);
    assert!(late.contains("`interactive@5s=0` was not set"), "{late}");

    for (knob, why) in [
        ("interactive@1s=2", "2 is out of range"),
        ("interactive@1=0", "write NAME@TIME=VALUE"),
        ("interactive@10000000000s=0", "shorter than 292 years"),
        ("interactif@1s=0", "did you mean `interactive`"),
        ("RUNSLICE_VERSION@1s=0", "no knob or variable"),
        (
            "staircase_ops.flags@1s=0",
            "cannot change while the policy runs",
        ),
        (
            "runslice_counter_names[0][0]@1s=3",
            "it is a constant of its programs",
        ),
    ] {
        let text = folder.said(&format!("sim staircase:{knob} -w desk"), 2);
        assert!(text.contains(why), "{knob}: {text}");
    }
    // What a policy reads once would change nothing, and nobody would know.
    let text = folder.said("sim goodness:smp@1s=1 -w desk", 2);
    assert!(
        text.contains("the policy reads it when it is loaded"),
        "{text}"
    );
}

/// As a shell's redirection does: `-o /dev/null` must not make a file of the device.
#[test]
fn a_file_that_a_user_names_is_written_where_its_link_leads() {
    let folder = Folder::new("links");
    folder.said(
        "sim fifo -w desk --duration 2s --events events -o report",
        0,
    );
    std::os::unix::fs::symlink("named", folder.0.join("link")).expect("writable");
    for verb in [
        "calibrate events --group pointer",
        "report events",
        "convert desk --to toml",
        "sim fifo -w desk --duration 1ms",
    ] {
        folder.write("named", "what was there");
        folder.said(&format!("{verb} -o link"), 0);
        assert!(folder.0.join("link").is_symlink(), "{verb}");
        assert_ne!(folder.read("named"), "what was there", "{verb}");
    }
}

#[test]
fn files_that_are_full_torn_or_given_twice_are_named() {
    let folder = Folder::new("files");
    let sim = "sim fifo -w desk --duration 100ms";
    let text = folder.said(&format!("{sim} -o /dev/full"), 1);
    assert_eq!(
        text,
        "runslice: cannot write /dev/full: No space left on device (os error 28)\n  \
         free room on the disk, or name another place\n"
    );
    folder.said(&format!("{sim} --events e.jsonl -o /dev/null"), 0);
    let events = folder.read("e.jsonl");
    folder.write("torn.jsonl", &events[..events.len() / 2]);
    let last = events[..events.len() / 2].lines().count();
    for verb in ["report torn.jsonl", "sim fifo --from torn.jsonl"] {
        let text = folder.said(&format!("{verb} -o /dev/null"), 1);
        assert!(text.contains(&format!("cut off at line {last}")), "{text}");
    }
    fs::hard_link(folder.0.join("e.jsonl"), folder.0.join("hard.jsonl")).expect("one disk");
    for twice in [
        "sim fifo -w desk --events x -o x",
        "sim fifo --from e.jsonl --events e.jsonl",
        "report e.jsonl -o e.jsonl",
        "sim fifo mlfq -w desk --events x.jsonl -o x.fifo.jsonl",
        "report e.jsonl -o hard.jsonl",
    ] {
        let text = folder.said(twice, 2);
        assert!(text.contains("name two files"), "{text}");
    }
    assert_eq!(folder.read("e.jsonl"), events);
    for verb in [
        "sim fifo -w /dev/zero",
        "sim /dev/urandom -w desk",
        "compare /dev/zero",
    ] {
        let text = folder.said(verb, 1);
        assert!(text.contains("longer than 64 MiB"), "{verb}: {text}");
    }
}

/// Commands whose result would be written over what they read, and how that is said.
const TAKEN: &[(&str, &str)] = &[
    (
        "convert load.toml -o ./load.toml",
        "the workload and for --output",
    ),
    (
        "bundle fifo.bundle:slice_ns=9000000 -o fifo.bundle",
        "the policy and for --output",
    ),
    (
        "sim fifo.bundle -w desk --events fifo.bundle",
        "a policy and for --events",
    ),
    (
        "sim fifo -w load.toml -o load.toml",
        "--workload and for --output",
    ),
    (
        "play load.toml --events load.toml",
        "the workload and for --events",
    ),
    (
        "sim fifo -w load.toml --profile p.toml -o p.toml",
        "--profile and for --output",
    ),
    (
        "bundle fifo --profile p.toml -o p.toml",
        "--profile and for --output",
    ),
    (
        "trace pid a --sim fifo -w load.toml -o load.toml",
        "--workload and for --output",
    ),
    (
        "explain fifo -w load.toml -o load.toml",
        "--workload and for --output",
    ),
    (
        "explain --dump fifo.bundle -o fifo.bundle",
        "--dump and for --output",
    ),
    ("sweep load.toml -o load.toml", "the sweep and for --output"),
    (
        "stat report load.toml -o load.toml",
        "the recording and for --output",
    ),
    (
        "stat diff p.toml load.toml -o load.toml",
        "the recording and for --output",
    ),
    (
        "stat record load.toml --from load.toml",
        "--from and for the recording",
    ),
    (
        "load series load.toml -o load.toml",
        "the plan and for --output",
    ),
];

#[test]
fn no_result_takes_the_place_of_its_source() {
    let folder = Folder::new("sources");
    let load = "[workload]\nname = \"x\"\n[task.a]\ndo = [\"run(1ms)\"]\n";
    folder.write("load.toml", load);
    folder.write("p.toml", "[profile]\nname = \"p\"\n");
    folder.said("bundle fifo -o fifo.bundle", 0);
    let bundle = fs::read(folder.0.join("fifo.bundle")).expect("written");
    for (refused, options) in TAKEN {
        let text = folder.said(refused, 2);
        assert!(
            text.contains(&format!("is given for {options}\n  name two files")),
            "{text}"
        );
    }
    assert_eq!(folder.read("load.toml"), load);
    assert_eq!(
        fs::read(folder.0.join("fifo.bundle")).expect("there"),
        bundle
    );
    // A file that is called as something built in is in nobody's way.
    folder.said("convert load.toml -o desk", 0);
    folder.said(
        "sim fifo fifo.bundle fifo.bundle -w desk --duration 10ms -o desk",
        0,
    );
}
