//! A message has two lines: what is wrong, with names and other programs' words whole, and what to
//! do. Nothing that stands in a message decides where it ends.

use std::fs;
use std::process::Command;

use runslice_tests::folder;

/// The lines of standard error.
fn told(folder: &std::path::Path, words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(words)
        .current_dir(folder)
        .output()
        .expect("it starts");
    assert!(!output.status.success(), "{words:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_name_of_a_file_is_never_cut() {
    let folder = folder!("advice-names");
    fs::create_dir_all(folder.join("we; ird")).expect("writable");
    let names = [
        "a; b.toml",
        "a: unknown b.toml",
        "we; ird/x.toml",
        "a, expected b.toml",
        "a: did you mean `b`.toml",
    ];
    for name in names {
        fs::write(folder.join(name), "x").expect("writable");
        let said = told(&folder, &["sim", "fifo", "-w", &format!("./{name}")]);
        let begin = format!("runslice: ./{name}:1:2: not TOML: ");
        assert!(said[0].starts_with(&begin), "{said:?}");
        assert!(
            said.len() == 2 && said[1].starts_with("  write TOML"),
            "{said:?}"
        );
        let missing = format!("./no {name}");
        let said = told(&folder, &["sim", "fifo", "-w", &missing]);
        let begin = format!("runslice: cannot read {missing}: ");
        assert!(said[0].starts_with(&begin), "{said:?}");
        assert_eq!(said[1], "  check the name, and the folder that you are in");
    }
}

#[test]
fn a_file_that_the_system_lets_nobody_write_has_advice_for_writers() {
    let folder = folder!("advice-writers");
    let said = told(
        &folder,
        &[
            "sim",
            "fifo",
            "-w",
            "desk",
            "--duration",
            "1ms",
            "-o",
            "cannot read/x.json",
        ],
    );
    assert!(
        said[0].starts_with("runslice: cannot write cannot read/x.json: "),
        "{said:?}"
    );
    assert_eq!(said[1], "  make its folder first, or name another file");
}

#[test]
fn a_sweep_points_at_the_list_with_the_impossible_machine() {
    let folder = folder!("advice-sweep");
    let lists = [
        ("cpus = [0]", "3:9", "expected 1 to 1024"),
        ("hz = [3]", "3:7", "expected 100, 250, 300 or 1000"),
        ("smt = [3]", "3:8", "expected 1 or 2"),
        (
            "cpus = [4]\nhz = [250]\nsmt = [2]\nllc = [3]",
            "6:8",
            "expected a multiple of the CPUs that share a cache (llc)",
        ),
        ("cpus = [2, 4]\nllc = [2000]", "4:8", "give at most 4"),
    ];
    for (list, place, advice) in lists {
        let head = "policy = [\"fifo\"]\nworkload = [\"desk\"]\n";
        let text = format!("{head}{list}\nduration = \"10ms\"\nseeds = 1\n");
        fs::write(folder.join("s.toml"), text).expect("writable");
        let said = told(&folder, &["sweep", "s.toml", "-d", "out"]);
        assert!(
            said[0].starts_with(&format!("runslice: s.toml:{place}: ")),
            "{said:?}"
        );
        assert_eq!(said[1], format!("  {advice}"));
    }
}

/// Everyday mistakes in TOML, where they are, and the parser's sentence.
const MISTAKES: [(&str, &str, &str); 7] = [
    (
        "[workload]\nname = desk\n",
        "2:8",
        "string values must be quoted, expected literal string",
    ),
    (
        "[workload\nname = \"x\"\n",
        "1:10",
        "unclosed table, expected `]`",
    ),
    (
        "[workload]\nname = \"x\n",
        "2:10",
        "invalid basic string, expected `\"`",
    ),
    (
        "[workload]\nname: \"x\"\n",
        "2:7",
        "key with no value, expected `=`",
    ),
    (
        "[workload]\nname = \"x\"\nname = \"y\"\n",
        "3:1",
        "duplicate key",
    ),
    (
        "[workload]\nname = \"x\"\n[task.a]\ndo = [\"run(1ms)\"\n",
        "4:17",
        "unclosed array, expected `]`",
    ),
    ("{\"a\": 1}", "1:1", "invalid key-value pair, expected key"),
];

#[test]
fn the_sentence_of_the_parser_of_toml_is_never_cut() {
    let folder = folder!("advice-toml");
    for (text, place, sentence) in MISTAKES {
        fs::write(folder.join("x.toml"), text).expect("writable");
        let said = told(&folder, &["sim", "fifo", "-w", "x.toml"]);
        assert_eq!(
            said[0],
            format!("runslice: x.toml:{place}: not TOML: {sentence}")
        );
        assert_eq!(
            said[1],
            "  write TOML: `[table]`, `key = \"text\"`, `key = 5`"
        );
    }
}

#[test]
fn shares_of_threads_are_written_from_timings_that_say_something_of_them() {
    let folder = folder!("advice-smt");
    let write = |is_virtual: bool| {
        let windows = ["[50000, 30000, 3400, 3400]"; 5].join(", ");
        let pairs = ["cc", "cm", "mc", "mm"].map(|pair| format!("{pair} = [{windows}]\n"));
        let head = "[timings]\nhost = \"h\"\ndate = \"d\"\n";
        let text = format!("{head}virtual = {is_virtual}\n{}", pairs.concat());
        fs::write(folder.join("t.toml"), text).expect("writable");
    };
    write(false);
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(["calibrate", "--smt", "t.toml"])
        .current_dir(&folder)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let want = "[smt]\ncc = 0.600 # 0.600 to 0.600\n";
    assert!(output.status.success() && text.contains(want), "{text}");
    write(true);
    let said = told(&folder, &["calibrate", "--smt", "t.toml"]);
    assert!(
        said[0].contains("a virtual machine does not know"),
        "{said:?}"
    );
    assert_eq!(said[1], "  measure on the computer itself");
}

#[test]
fn what_the_cpus_of_a_machine_lack_is_told() {
    let folder = folder!("advice-hardware");
    let sim = |machine: &[&str]| {
        let words = ["sim", "eevdf", "-w", "desk", "--duration", "300ms"];
        let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
            .args([&words[..], machine].concat())
            .current_dir(&folder)
            .output()
            .expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (free, baseline) = ("threads of a core do not slow", "it knows no capacities");
    let said = sim(&["--smt", "2"]);
    assert!(said.contains(free) && !said.contains(baseline), "{said}");
    let said = sim(&["--hardware", "pixel6"]);
    assert!(said.contains(baseline) && !said.contains(free), "{said}");
    assert!(said.contains("lost to capacity"), "{said}");
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );
    let choose = ["choose", "fifo", "-w", "desk", "--duration", "300ms"];
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(choose)
        .args(["--runs", "2", "--hardware", "pixel6", "--goal", "energy"])
        .current_dir(&folder)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
    assert!(said.contains("eevdf knows no capacities"), "{said}");
    assert!(said.contains("This holds for pixel6 with 8 CPUs"), "{said}");
    let energy = ["--hardware", "i7-13700h", "--goal", "energy"];
    let said = told(&folder, &[&choose[..], &energy].concat());
    assert!(said.concat().contains("power"), "{said:?}");
}

#[test]
fn a_hardware_file_is_listed_as_the_machines_that_come_with_the_program() {
    let folder = folder!("advice-list-file");
    let file = include_str!("../../../hardware/pixel6.toml");
    fs::write(folder.join("mine.toml"), file).expect("writable");
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(["list", "mine.toml"])
        .current_dir(&folder)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), file);
    let wrong = file.replace("capacity = 160", "capacity = \"much\"");
    assert_ne!(wrong, file);
    fs::write(folder.join("wrong.toml"), wrong).expect("writable");
    let said = told(&folder, &["list", "wrong.toml"]);
    assert!(said[0].starts_with("runslice: wrong.toml:"), "{said:?}");
}
