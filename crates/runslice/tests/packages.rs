//! The package in a bare system, files that belong to it, and a program for another processor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runslice_tests::{debian, folder};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The .deb that `make dist` has made.
fn package() -> Option<PathBuf> {
    let places = ["RUNSLICE_DIST"].into_iter().filter_map(std::env::var_os);
    let places = places
        .map(PathBuf::from)
        .chain([root().join("target/dist")]);
    let files = places
        .filter_map(|place| fs::read_dir(place).ok())
        .flatten()
        .flatten();
    files
        .map(|file| file.path())
        .find(|path| path.extension().is_some_and(|it| it == "deb"))
}

/// What users do first, with the package alone.
const SCRIPT: &str = r#"
set -e
dpkg -i /runslice.deb
runslice --version
cd "$(mktemp -d)"
runslice list | head -3
runslice sim fifo mlfq -w desk --duration 2s
runslice list mlfq | head -5
runslice list --copy desk
runslice sim mlfq:base_ns=5ms -w desk.toml --duration 1s --audit
runslice explain fifo -w desk --duration 1s
runslice sim fifo mlfq -w desk --duration 500ms --runs 5 --format json -o runs.json
runslice compare runs.json || test $? -eq 6
runslice report /dev/null -o page.html && exit 9
runslice-reproduce --version
runslice-mcp --version
runslice reproduce 000-rules --quick | tail -1
runslice stat export --once >metrics 2>message || grep CONFIG_SCHEDSTATS message
test -e /usr/share/man/man1/runslice-sim.1.gz
test -e /usr/lib/systemd/system/runslice@.service
grep -q '^ExecStart=/usr/bin/runslice ' /usr/lib/systemd/system/runslice@.service
. /usr/share/bash-completion/completions/runslice
ls /usr/share/doc/runslice/examples/policies/fifo.bpf.c
runslice build /usr/share/doc/runslice/examples/policies/fifo.bpf.c 2>message && exit 9
grep 'clang-19' message
ls /usr/share/doc/runslice/docs/workload.md /usr/share/doc/runslice/docs/guide/src/README.md
cd /
dpkg --purge runslice
left=$(find / -xdev -name '*runslice*' ! -path /runslice.deb ! -path '/tmp/*')
test -z "$left" || { echo "left behind: $left"; exit 9; }
echo all is well
"#;

#[test]
#[ignore = "takes minutes, `make dist`, root, mmdebstrap and a network: make test-long"]
fn the_package_installs_and_runs_in_a_bare_debian() {
    let package = package().expect("no .deb: run `make dist`, or name its folder in RUNSLICE_DIST");
    for suite in ["bookworm", "trixie"] {
        let place = folder!(&format!("root-{suite}"));
        debian::make(suite, &place, &["--variant=minbase"]);
        fs::copy(&package, place.join("runslice.deb")).expect("writable");
        let output = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "sh", "-c"])
            .arg("mount -t proc proc \"$0/proc\" && exec chroot \"$0\" bash -c \"$1\"")
            .arg(&place)
            .arg(SCRIPT)
            .env("LC_ALL", "C")
            .output()
            .expect("unshare is there");
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        println!("== {suite}\n{said}{wrong}");
        assert!(said.ends_with("all is well\n"), "{suite}: {said}\n{wrong}");
        fs::remove_dir_all(&place).expect("it is ours");
    }
}

/// The files below `folder` that end in `.md`, also those behind links.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|it| it == "md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_is_installed_links_to_nothing_that_is_not() {
    let place = folder!("installed");
    let output = Command::new(root().join("scripts/stage.sh"))
        .arg(env!("CARGO_BIN_EXE_runslice"))
        .arg(&place)
        .arg("/usr")
        .output()
        .expect("the script is there");
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
    let (mut links, mut wrong) = (0, String::new());
    for path in documents(&place.join("usr/share/doc/runslice")) {
        let text = fs::read_to_string(&path).expect("readable");
        let targets = text.split("](").skip(1);
        let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
        for target in targets.filter(|it| !it.contains("://") && !it.starts_with('#')) {
            links += 1;
            let file = target.split('#').next().unwrap_or(target);
            if !path.with_file_name(file).exists() {
                wrong += &format!("{}: there is no {target}\n", path.display());
            }
        }
    }
    assert!(links > 100, "{links} links");
    assert!(wrong.is_empty(), "{wrong}");
    // A program with its debug information is large.
    fs::remove_dir_all(&place).expect("it is ours");
}

/// What a program that `emulator` runs says, which must be without a fault.
fn said(emulator: &[&str], program: &Path, words: &[&str]) -> String {
    let mut command = match emulator {
        [] => Command::new(program),
        [name, options @ ..] => {
            let mut command = Command::new(name);
            command.args(options).arg(program);
            command
        }
    };
    let output = command.args(words).env_remove("COLUMNS").output();
    let output = output.expect("it starts");
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {wrong}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "needs a program for aarch64 and qemu-user, which `make test-long` makes it with"]
fn another_processor_makes_the_same_events() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("");
    let made = target.join("aarch64-unknown-linux-gnu/release/runslice");
    let other = std::env::var_os("RUNSLICE_AARCH64").map_or(made, PathBuf::from);
    let emulator = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"];
    let own = Path::new(env!("CARGO_BIN_EXE_runslice"));
    let kind = fs::read(&other).expect("scripts/aarch64.sh makes it, RUNSLICE_AARCH64 names it");
    // Linux's <elf-em.h>: EM_AARCH64.
    assert_eq!(kind[18..20], 183_u16.to_le_bytes(), "for another processor");
    let both = |words: &[&str]| {
        let here = said(&[], own, words);
        assert_eq!(said(&emulator, &other, words), here, "{words:?}");
        here
    };
    // Costs are products of fractions, and pages of a table are drawn by their rank: what a
    // processor could round in another way.
    let loads: [&[&str]; 2] = [
        &["-w", "desk", "--duration", "2s", "--audit"],
        &[
            "-w",
            "oltp",
            "--duration",
            "500ms",
            "--profile",
            "default-v0",
            "--audit",
        ],
    ];
    for policy in policies::ALL.iter().chain(policies::LESSONS) {
        for load in loads {
            let line = both(&[&["sim", policy.name], load].concat());
            let is_audited = line.contains(" interpreted and native, every account adds up");
            assert!(is_audited, "{line}");
        }
    }
    both(&[
        "sim",
        "fifo",
        "mlfq",
        "-w",
        "desk",
        "--duration",
        "2s",
        "--wide",
    ]);
}

/// The schema, and every file that it must accept.
fn accepted(kind: &str, files: &[PathBuf]) {
    let path = root().join(format!("schemas/{kind}.schema.json"));
    let text = fs::read_to_string(&path).expect("the schema is there");
    let schema: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert!(files.len() > 1, "{kind}: files to check");
    for file in files {
        let text = fs::read_to_string(file).expect("readable");
        let value: serde_json::Value = toml::from_str(&text).expect("it is TOML");
        let errors = check(&schema, &value);
        assert!(errors.is_empty(), "{}: {errors:?}", file.display());
    }
}

/// What is wrong with `value`, for the words of JSON Schema that the schemas here use.
fn check(schema: &serde_json::Value, value: &serde_json::Value) -> Vec<String> {
    use serde_json::Value;
    let mut wrong = Vec::new();
    if let Some(ways) = schema["anyOf"].as_array()
        && !ways.iter().any(|way| check(way, value).is_empty())
    {
        wrong.push(format!("{value} is none of {ways:?}"));
    }
    if let Some(known) = schema["enum"].as_array()
        && !known.contains(value)
    {
        wrong.push(format!("{value} is none of {known:?}"));
    }
    let is_type = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("a type {other}"),
        None => true,
    };
    if !is_type {
        wrong.push(format!("{value} is no {}", schema["type"]));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_i64(), value.as_i64())
        && (number < least || number > schema["maximum"].as_i64().unwrap_or(i64::MAX))
    {
        wrong.push(format!("{number} is out of range"));
    }
    for item in value.as_array().into_iter().flatten() {
        wrong.extend(check(&schema["items"], item));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.is_object() && value.get(name.as_str().unwrap_or_default()).is_none() {
            wrong.push(format!("{name} is missing"));
        }
    }
    for (name, item) in value.as_object().into_iter().flatten() {
        match (
            schema["properties"].get(name),
            &schema["additionalProperties"],
        ) {
            (Some(schema), _) => wrong.extend(check(schema, item)),
            (None, Value::Bool(false)) => wrong.push(format!("`{name}` is unknown")),
            (None, schema) => wrong.extend(check(schema, item)),
        }
    }
    wrong
}

fn below(folder: &str, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut files = bpf_build::files_below(&root().join(folder));
    files.retain(|path| path.extension().is_some_and(|it| it == "toml") && wanted(path));
    files
}

#[test]
fn editors_accept_every_file_of_the_project() {
    let is = |name: &'static str| move |path: &Path| path.file_name().is_some_and(|it| it == name);
    let is_load = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| line == "[workload]")
    };
    let mut loads = below("workloads", |_| true);
    loads.extend(below("experiments", is_load));
    accepted("workload", &loads);
    accepted("experiment", &below("experiments", is("experiment.toml")));
    accepted("vm", &below("experiments", is("vm.toml")));
}

#[test]
fn editors_refuse_what_the_program_refuses() {
    let read = |kind: &str| -> serde_json::Value {
        let path = root().join(format!("schemas/{kind}.schema.json"));
        serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
    };
    let bad = [
        ("workload", "[task.t]\ndo = \"run(1ms)\"\n"),
        (
            "workload",
            "[workload]\nname = \"x\"\n[task.t]\ndo = \"\"\nnicee = 3\n",
        ),
        (
            "workload",
            "[workload]\nname = \"x\"\n[machine]\nhz = 123\n",
        ),
        ("sweep", "policy = \"fifo\"\nworkload = [\"desk\"]\n"),
        ("sweep", "policy = [\"fifo\"]\n"),
        ("sweep", "workload = [\"desk\"]\ncpus = [5000]\n"),
        ("experiment", "[experiment]\ntitle = \"x\"\n"),
        (
            "vm",
            "[experiment]\ndocument = \"0\"\ntitle = \"x\"\nsource = \"x\"\n\
             [runs.a]\nworkload = \"a.toml\"\n",
        ),
    ];
    for (kind, text) in bad {
        let value: serde_json::Value = toml::from_str(text).expect("TOML");
        assert!(!check(&read(kind), &value).is_empty(), "{kind}: {text}");
    }
    let good = "policy = [\"fifo\"]\nworkload = [\"desk\"]\nseeds = [1, 2]\n[knobs.fifo]\n\
                slice_ns = [1, \"5ms\"]\n[[exclude]]\ncpus = 4\n";
    let value: serde_json::Value = toml::from_str(good).expect("TOML");
    assert_eq!(check(&read("sweep"), &value), Vec::<String>::new());
}

/// Every option that the workflow's commands use is one that the program knows.
#[test]
fn the_workflow_s_commands_are_the_program_s() {
    let text = fs::read_to_string(root().join("dist/github/simulate.yml")).expect("there");
    let mut verbs = 0;
    for line in text.lines().filter(|line| line.contains("runslice ")) {
        let Some((_, command)) = line.split_once("runslice ") else {
            continue;
        };
        let verb = command.split(' ').next().unwrap_or_default();
        if !["sim", "check", "explain", "gate"].contains(&verb) {
            continue;
        }
        verbs += 1;
        let help = Command::new(env!("CARGO_BIN_EXE_runslice"))
            .args(["help", verb])
            .output();
        let help = String::from_utf8_lossy(&help.expect("it starts").stdout).into_owned();
        for option in command.split(' ').filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{verb} {option}");
        }
    }
    assert!(verbs >= 4, "{verbs} commands");
}
