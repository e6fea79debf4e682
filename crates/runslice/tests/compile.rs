//! C sources where a policy may stand, and those of the sched_ext tools, unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runslice_tests::folder;

const MINE: &str = "#include <scx.h>\n#include <knobs.bpf.h>\n\nBPF_LICENSE();\n\n\
    KNOB(u64, slice_ns, 20000000, \"ns\", \"Slice.\", 1000, 10000000000);\n\n\
    void OP(mine_enqueue, struct task_struct *p, u64 enq_flags)\n\
    {\n\tscx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);\n}\n\n\
    POLICY(mine_ops, .enqueue = (void *)mine_enqueue, .name = \"mine\");\n";

fn run(folder: &Path, words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(words.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts")
}

/// What a run that ends well prints.
fn good(folder: &Path, words: &str) -> String {
    let output = run(folder, words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn own(name: &str) -> PathBuf {
    let folder = folder!(name);
    fs::write(folder.join("mine.bpf.c"), MINE).expect("writable");
    folder
}

#[test]
fn a_source_stands_wherever_a_policy_does_and_is_its_object() {
    let folder = own("source");
    let built = good(&folder, "build mine.bpf.c");
    assert!(built.starts_with("mine.bpf.o: mine_ops (clang "), "{built}");
    let run = "-w desk --duration 200ms --audit";
    let of_source = good(&folder, &format!("sim mine.bpf.c {run}"));
    assert_eq!(of_source, good(&folder, &format!("sim mine.bpf.o {run}")));
    assert!(of_source.starts_with("mine: "), "{of_source}");
    let check = good(&folder, "check mine.bpf.c");
    assert!(check.contains("slice_ns"), "{check}");
    let explain = good(&folder, "explain mine.bpf.c -w desk --duration 200ms");
    assert!(explain.contains("mine"), "{explain}");
    let sweep = "policy = [\"mine.bpf.c\"]\nworkload = [\"desk\"]\nduration = \"10ms\"\n\
                 [knobs.\"mine.bpf.c\"]\nslice_ns = [1000000, 2000000]\n";
    fs::write(folder.join("s.toml"), sweep).expect("writable");
    let told = good(&folder, "sweep s.toml --dry-run");
    assert!(told.starts_with("2 runs, 2 of them to be made"), "{told}");
    assert!(!folder.join("s.results").exists(), "nothing is made");
    good(&folder, "sweep s.toml");
    let told = good(&folder, "sweep s.toml --dry-run");
    assert!(told.starts_with("2 runs, 0 of them to be made"), "{told}");
}

#[test]
fn a_knob_takes_a_span_of_time() {
    let folder = own("span");
    let hash = |knob: &str| {
        let line = good(
            &folder,
            &format!("sim mine.bpf.c:slice_ns={knob} -w desk --audit"),
        );
        line.split_once(": ")
            .expect("a name and a hash")
            .1
            .to_owned()
    };
    assert_eq!(hash("5ms"), hash("5000000"));
    assert_ne!(hash("5ms"), hash("6ms"));
}

#[test]
fn no_file_of_another_kind_is_written_over() {
    let folder = own("over");
    fs::write(folder.join("notes.txt"), "mine").expect("writable");
    for words in [
        "build mine.bpf.c -o notes.txt",
        "build mine.bpf.c -o mine.bpf.c",
        "list --copy mlfq -o notes.txt",
    ] {
        assert!(!run(&folder, words).status.success(), "{words}");
    }
    let read = |name| fs::read_to_string(folder.join(name)).expect("readable");
    assert_eq!(
        (read("notes.txt").as_str(), read("mine.bpf.c").as_str()),
        ("mine", MINE)
    );
}

#[test]
fn a_copy_is_what_was_built_in_and_runs() {
    let folder = own("copy");
    let said = good(&folder, "list --copy mlfq");
    assert!(said.starts_with("mlfq.bpf.c: "), "{said}");
    good(&folder, "list --copy desk");
    let said = good(&folder, "list --copy fifo -o my(1).bpf.c");
    assert!(
        said.ends_with("runslice sim 'my(1).bpf.c' -w desk\n"),
        "{said}"
    );
    let hash = |policy: &str, load: &str| {
        let words = format!("sim {policy} -w {load} --duration 500ms --audit");
        good(&folder, &words)
    };
    assert_eq!(hash("mlfq", "desk"), hash("mlfq.bpf.c", "desk.toml"));
    good(&folder, "convert desk --to toml -o again.toml");
    let read = |name| fs::read_to_string(folder.join(name)).expect("readable");
    assert_eq!(read("again.toml"), read("desk.toml"));
}

#[test]
fn the_headers_are_written_for_an_editor() {
    let folder = own("headers");
    good(&folder, "build --headers include");
    assert!(folder.join("include/scx/common.bpf.h").exists());
    assert!(
        !run(&folder, "build --headers include").status.success(),
        "not twice"
    );
}

/// What a run that does not end well says, and its status.
fn bad(folder: &Path, words: &str) -> (String, Option<i32>) {
    let output = run(folder, words);
    assert!(!output.status.success(), "{words}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (stderr, output.status.code())
}

/// A lecturer's folder: his solution, and what was handed in.
fn lecture(name: &str) -> PathBuf {
    let folder = own(name);
    for made in ["sol", "handed"] {
        fs::create_dir_all(folder.join(made)).expect("writable");
    }
    fs::write(folder.join("sol/solution.bpf.c"), MINE).expect("writable");
    let mallory = "#include \"../sol/solution.bpf.c\"\n";
    fs::write(folder.join("handed/mallory.bpf.c"), mallory).expect("writable");
    folder
}

#[test]
fn a_source_reads_its_own_folder_and_those_that_are_named() {
    let folder = lecture("reads");
    let including = "#include \"mine.h\"\n";
    fs::write(folder.join("handed/near.bpf.c"), including).expect("writable");
    fs::write(folder.join("handed/mine.h"), MINE).expect("writable");
    good(&folder, "build handed/near.bpf.c");
    good(&folder, "sim handed/near.bpf.c -w desk --duration 10ms");
    for verb in ["build", "check", "sim -w desk"] {
        let (said, status) = bad(&folder, &format!("{verb} handed/mallory.bpf.c"));
        let want = "handed/mallory.bpf.c:1: cannot include ../sol/solution.bpf.c: it lies outside \
                    of the source's folder";
        assert!(said.contains(want), "{verb}: {said}");
        assert_eq!(status, Some(1), "{verb}");
    }
    good(&folder, "build -I sol handed/mallory.bpf.c");
    let (said, _) = bad(&folder, "build --alone handed/near.bpf.c");
    assert!(
        said.contains("near.bpf.c:1: cannot include mine.h: "),
        "{said}"
    );
    good(&folder, "build --alone mine.bpf.c");
}

#[test]
fn nobody_passes_with_the_lecturers_solution() {
    let folder = lecture("grade");
    fs::write(folder.join("handed/alice.bpf.c"), MINE).expect("writable");
    good(&folder, "build mine.bpf.c -o handed/bob.bpf.o");
    good(&folder, "build sol/solution.bpf.c -o sol/solution.bpf.o");
    for ending in ["c", "o"] {
        let link = folder.join(format!("handed/link.bpf.{ending}"));
        let _ = fs::remove_file(&link);
        let target = format!("../sol/solution.bpf.{ending}");
        std::os::unix::fs::symlink(target, link).expect("writable");
    }
    let report = good(&folder, "lab --grade handed --loads 1");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let results = report["results"].as_array().expect("a list");
    let of = |name: &str| {
        let found = results.iter().find(|it| it["object"] == name);
        found.unwrap_or_else(|| panic!("{name}: {report:#}"))
    };
    assert_eq!(
        (&report["objects"], &report["passed"]),
        (&5.into(), &2.into())
    );
    assert_eq!(of("alice.bpf.c")["passed"], true);
    assert_eq!(of("bob.bpf.o")["passed"], true);
    let why = |name: &str| of(name)["properties"][0]["why"].as_str().expect("a text");
    let mallory = why("mallory.bpf.c");
    let want =
        "mallory.bpf.c:1: cannot include ../sol/solution.bpf.c: the source is compiled alone";
    assert!(mallory.contains(want), "{mallory}");
    for ending in ["c", "o"] {
        let said = why(&format!("link.bpf.{ending}"));
        assert!(said.starts_with("it is a link"), "{said}");
    }
}

/// A policy with the names of 6.12, and no header but vmlinux.h and those of libbpf.
const OLD: &str = "#include \"vmlinux.h\"\n#include <bpf/bpf_helpers.h>\n\
    #include <bpf/bpf_tracing.h>\nchar _license[] SEC(\"license\") = \"GPL\";\n\
    SEC(\"struct_ops.s/old_init\")\n\
    s32 BPF_PROG(old_init)\n{\n\treturn scx_bpf_create_dsq(0, -1);\n}\n\
    SEC(\"struct_ops/old_enqueue\")\n\
    void BPF_PROG(old_enqueue, struct task_struct *p, u64 enq_flags)\n\
    {\n\tscx_bpf_dispatch(p, 0, 5000000, enq_flags);\n}\n\
    SEC(\"struct_ops/old_dispatch\")\n\
    void BPF_PROG(old_dispatch, s32 cpu, struct task_struct *prev)\n\
    {\n\tscx_bpf_consume(0);\n}\n\
    SEC(\".struct_ops.link\") struct sched_ext_ops old_ops = {\n\
    \t.enqueue = (void *)old_enqueue, .dispatch = (void *)old_dispatch,\n\
    \t.init = (void *)old_init, .name = \"old\" };\n";

#[test]
fn a_source_with_the_names_of_6_12_compiles_and_runs_on_that_kernel_alone() {
    let folder = own("old-names");
    fs::write(folder.join("old.bpf.c"), OLD).expect("writable");
    good(&folder, "build old.bpf.c");
    good(
        &folder,
        "sim old.bpf.o -w desk --duration 10ms --kernel 6.12",
    );
    // A policy that asks for more than this kernel has, and does without, runs well beside it.
    let output = run(&folder, "sim old.bpf.o mlfq -w desk --kernel 6.18");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("the target kernel 6.18 lacks the function `scx_bpf_"),
        "{said}"
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let want = "kernel 6.18 lacks what it calls, try --kernel 6.1";
    assert!(
        said.contains(want) && said.contains("(it runs on 6.12"),
        "{said}"
    );
    assert!(!said.contains("mlfq: kernel"), "{said}");
}

#[test]
fn a_schedulers_program_is_no_object_and_the_message_names_the_option() {
    let folder = own("program");
    fs::copy("/bin/true", folder.join("scx_true")).expect("writable");
    let (said, status) = bad(&folder, "sim ./scx_true -w desk");
    assert!(said.contains("`--scheduler './scx_true'`"), "{said}");
    assert_eq!(status, Some(2));
}

/// The sources that must compile unchanged: those of the sched_ext tools.
const TOOLS: [&str; 7] = [
    "simple", "qmap", "central", "flatcg", "pair", "userland", "sdt",
];

#[test]
#[ignore = "RUNSLICE_SCX_SOURCES names folders with scx_simple.bpf.c and others, by colons"]
fn the_tools_sources_compile_unchanged_and_run() {
    let folders = std::env::var_os("RUNSLICE_SCX_SOURCES").expect("the variable names folders");
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let work = own("tools");
    for name in TOOLS {
        let file = format!("scx_{name}.bpf.c");
        let source = folders
            .iter()
            .map(|it| it.join(&file))
            .find(|it| it.exists());
        let source = source.unwrap_or_else(|| panic!("{file} is in none of {folders:?}"));
        let source = source.canonicalize().expect("it exists");
        good(&work, &format!("build {}", source.display()));
        for kernel in ["6.18", "7.2"] {
            let words = format!("sim scx_{name}.bpf.o -w desk --duration 300ms --kernel {kernel}");
            let output = run(&work, &words);
            // Without its loader scx_userland serves nobody; what counts is that it is attached.
            let stderr = String::from_utf8_lossy(&output.stderr);
            let status = output.status.code();
            assert!(
                matches!(status, Some(0 | 3)),
                "{words}: {status:?} {stderr}"
            );
        }
    }
}
