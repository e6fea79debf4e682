//! `evaluate` and `gate`: what a search and a release get, and what they cannot get.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use runslice_tests::command;
use serde_json::Value;

struct Folder(PathBuf);

/// One load that a clock ends.
const SPEC: &str = "baseline = \"fifo\"\ndraws = 6\nduration = \"500ms\"\n\
                    [[load]]\nload = \"desk\"\n[held-out]\ngenerated = 4\n";

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("evaluate-{name}");
        let folder = Self(command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &name));
        folder.write("e.toml", SPEC);
        folder.write("key", "a key of more than sixteen bytes\n");
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("writable");
    }

    /// The object of a test policy, in this folder.
    fn object(&self, name: &str) -> String {
        let object = runslice_tests::policy::object(name).expect("a test policy");
        let file = format!("{name}.bpf.o");
        fs::write(self.0.join(&file), &*object).expect("writable");
        file
    }

    /// What a shell's line comes to, in which `runslice` is the program.
    fn shell(&self, line: &str) -> Output {
        let mut shell = Command::new("sh");
        let line = line.replace("runslice ", &format!("{} ", env!("CARGO_BIN_EXE_runslice")));
        shell.args(["-euc", &line]).current_dir(&self.0);
        shell.output().expect("a shell")
    }

    fn said(&self, line: &str, status: i32) -> (String, String) {
        let output = self.shell(line);
        let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert_eq!(output.status.code(), Some(status), "{line}: {out}{err}");
        (out, err)
    }

    fn json(&self, line: &str, status: i32) -> Value {
        let (out, err) = self.said(line, status);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
    }
}

#[test]
fn an_answer_is_kept_and_is_the_same_again_in_any_folder() {
    let folder = Folder::new("kept");
    let line = "runslice evaluate e.toml fifo eevdf --format json --jobs";
    let (first, _) = folder.said(&format!("{line} 1"), 0);
    let (again, _) = folder.said(&format!("{line} 2"), 0);
    let (other, _) = folder.said(&format!("{line} 2 -d other"), 0);
    assert!(first == again && first == other);
    let document: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document["held_out"], false);
    let [base, eevdf] = [0, 1].map(|at| &document["candidates"][at]);
    assert_eq!(
        (base["combined_score"].as_f64(), &base["status"]),
        (Some(0.0), &"scored".into())
    );
    assert!(eevdf["combined_score"].as_f64().unwrap() > 0.1, "{eevdf}");
    let metric = &eevdf["metrics"][0];
    assert!(
        metric["interval"][0].is_number() && metric["gain"].is_number(),
        "{metric}"
    );
    let artifact = eevdf["artifacts"]["advice"].as_str().unwrap();
    assert!(
        artifact.starts_with("Score ") && artifact.len() <= 4096,
        "{artifact}"
    );
}

/// Somebody builds the baseline anew: what was kept is an answer to another question.
#[test]
fn a_kept_answer_knows_the_objects_that_the_file_names() {
    let folder = Folder::new("objects");
    folder.write("e.toml", &SPEC.replace("\"fifo\"", "\"base.bpf.o\""));
    let becomes = |name: &str| {
        let object = runslice_tests::policy::object(name).expect("a policy");
        fs::write(folder.0.join("base.bpf.o"), &*object).expect("writable");
    };
    becomes("fifo");
    let (first, _) = folder.said("runslice evaluate e.toml eevdf --format json", 0);
    becomes("eevdf");
    let (_, said) = folder.said("runslice evaluate e.toml eevdf", 2);
    assert!(said.contains("by another file, object or key"), "{said}");
    let same = folder.json("runslice evaluate e.toml eevdf --format json -d other", 0);
    assert_eq!(same["candidates"][0]["combined_score"], 0.0, "{same}");
    becomes("fifo");
    let (again, _) = folder.said("runslice evaluate e.toml eevdf --format json", 0);
    assert_eq!(first, again);
}

/// Candidates stand above others in a load whose cgroups have schedulers.
#[test]
fn a_candidate_is_judged_with_what_stands_below_it() {
    let folder = Folder::new("below");
    let object = folder.object("sub");
    folder.write(
        "load.toml",
        "[workload]\nname = \"load\"\nstop = \"duration:500ms\"\n[machine]\ncpus = 2\n\
         [cgroup.app]\n[task.in]\ncgroup = \"/app\"\ncount = 2\n\
         do = \"loop(inf)[ run(5ms), sleep(5ms) ]\"\n",
    );
    let spec = format!(
        "baseline = \"{object}\"\ndraws = 6\nduration = \"500ms\"\n\
         [machine]\nkernel = [\"7.3\"]\n[[goal]]\ngoal = \"p99 wait\"\n\
         [[load]]\nload = \"load.toml\"\n"
    );
    folder.write("alone.toml", &spec);
    folder.write("below.toml", &format!("{spec}sub = [\"app={object}\"]\n"));
    let scores = |file: &str, status| {
        let line = format!("runslice evaluate {file} {object} {object}:hands_down=0");
        let document = folder.json(&format!("{line} --format json"), status);
        [0, 1].map(|at| document["candidates"][at].clone())
    };
    // The knob is code, and code takes time: nanoseconds, of waits of milliseconds.
    for candidate in scores("alone.toml", 0) {
        let score = candidate["combined_score"].as_f64().expect("a number");
        assert!(score.abs() < 1e-6, "{candidate}");
    }
    // One that hands no CPU down lets the tasks of the one below it wait for ever.
    let [same, other] = scores("below.toml", 3);
    assert_eq!(same["combined_score"], 0.0, "{same}");
    assert_eq!(other["combined_score"], -1.0, "{other}");
    let all = other["limits"].as_array().expect("a list");
    let of_load = all.iter().filter(|it| it["load"] == "load");
    assert!(of_load.count() > 0, "{other}");
    // Of the default, which can stand above nobody, the error says that it is the baseline.
    let spec = spec.replace(&format!("baseline = \"{object}\"\n"), "");
    folder.write("eevdf.toml", &format!("{spec}sub = [\"app={object}\"]\n"));
    let (_, error) = folder.said(&format!("runslice evaluate eevdf.toml {object}"), 1);
    assert!(
        error.contains("the baseline `eevdf` under load: "),
        "{error}"
    );
}

/// Programs hold on to these: a key that goes or changes its meaning raises the version.
#[test]
fn the_keys_of_a_document_are_those_of_its_version() {
    let folder = Folder::new("keys");
    let object = folder.object("faulty-drops");
    let line = format!("runslice evaluate e.toml eevdf {object} --format json");
    let document = folder.json(&line, 3);
    let keys = |value: &Value| -> String {
        let all = value.as_object().expect("an object").keys();
        all.cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(document["runslice_evaluation"], 1);
    let frame = "baseline candidates held_out key_sha256 runslice_evaluation spec version";
    assert_eq!(keys(&document), frame);
    let [scored, refused] = [0, 1].map(|at| &document["candidates"][at]);
    let candidate = "artifacts candidate combined_score cost epoch interval limits loads metrics \
                     object stage status worst_load";
    assert_eq!(
        (keys(scored), keys(refused)),
        (candidate.to_owned(), candidate.to_owned())
    );
    let metric = "baseline better candidate gain goal interval load measure shown weight";
    assert_eq!(keys(&scored["metrics"][0]), metric);
    assert_eq!(keys(&scored["loads"][0]), "interval load score shown_worse");
    assert_eq!(keys(&scored["cost"]), "instructions runs simulated_ns");
    let limit = &refused["limits"][0];
    assert_eq!(keys(limit), "advice capsule finding limit load runs words");
    assert_eq!(
        keys(&limit["finding"]),
        "fault file function line sentence victim"
    );
}

#[test]
fn a_source_that_does_not_compile_is_refused_with_what_the_compiler_says() {
    let folder = Folder::new("source");
    folder.write(
        "bad.bpf.c",
        "#include <scx.h>\nint f(void) { return nothing; }\n",
    );
    let document = folder.json("runslice evaluate e.toml bad.bpf.c --format json", 3);
    let candidate = &document["candidates"][0];
    assert_eq!(candidate["stage"], "compile");
    assert_eq!(candidate["combined_score"], -1.0);
    let words = candidate["limits"][0]["words"].as_str().unwrap();
    assert!(words.contains("bad.bpf.c:2:"), "{words}");
    folder.said("runslice list --copy fifo -o good.bpf.c", 0);
    folder.said("runslice evaluate e.toml good.bpf.c", 0);
}

#[test]
fn who_starves_is_refused_with_the_line_and_a_file_that_explain_reads() {
    let folder = Folder::new("starves");
    let object = folder.object("faulty-drops");
    let document = folder.json(
        &format!("runslice evaluate e.toml {object} --format json"),
        3,
    );
    let limit = &document["candidates"][0]["limits"][0];
    assert_eq!(
        (&limit["limit"], &limit["finding"]["fault"]),
        (&"fault".into(), &"lost".into())
    );
    assert!(limit["finding"]["line"].as_u64().unwrap() > 1, "{limit}");
    let capsule = limit["capsule"].as_str().expect("a capsule");
    folder.said(&format!("runslice explain {capsule}"), 3);
    let (text, _) = folder.said(&format!("runslice evaluate e.toml {object}"), 3);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_search_with_a_key_ends_with_sealed_draws_and_spends_the_key() {
    let folder = Folder::new("seal");
    folder.write("e.toml", &SPEC.replace("draws = 6", "draws = 8"));
    let key = "--secret 3 3< key";
    let line = format!("runslice evaluate e.toml eevdf mlfq --gate --format json {key}");
    let first = folder.json(&line, 0);
    let hash = first["key_sha256"].as_str().unwrap();
    let (sum, _) = folder.said("head -c -1 key | sha256sum", 0);
    assert!(sum.starts_with(hash), "{sum} {hash}");
    assert_eq!(first["candidates"][0]["stage"], "gate");
    assert_eq!(
        first["candidates"][1]["stage"], "open",
        "the gate answers once in 20"
    );
    let open = folder.json("runslice evaluate e.toml eevdf --format json -d open", 0);
    let metrics = |document: &Value| document["candidates"][0]["metrics"].clone();
    assert_ne!(metrics(&open), metrics(&first), "the key draws other runs");
    let (text, _) = folder.said("runslice evaluate e.toml fifo --gate -d known", 0);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("no limit is broken in the gate's draws. "),
        "{flat}"
    );
    let sealed = folder.json(
        &format!("runslice evaluate e.toml --seal --format json {key}"),
        0,
    );
    let nominees = sealed["nominees"].as_array().unwrap();
    assert_eq!(
        (nominees.len(), &nominees[0]["shown_better"]),
        (2, &true.into())
    );
    assert!(
        nominees
            .iter()
            .all(|it| it["open_score"].is_number() && it["sealed_score"].is_number())
    );
    let bytes = "a key of more than sixteen bytes".bytes();
    let hex: String = bytes.map(|it| format!("{it:02x}")).collect();
    assert_eq!(sealed["key_hex"], hex.as_str());
    let (_, said) = folder.said(&format!("runslice evaluate e.toml fifo {key}"), 2);
    assert!(
        said.contains("is spent") && said.contains("a new key"),
        "{said}"
    );
}

/// Lines, the status that they end with, and words that they say.
const WRONG: &[(&str, i32, &str)] = &[
    (
        "runslice evaluate e.toml nobody",
        2,
        "no policy is called `nobody`",
    ),
    ("runslice evaluate no.toml fifo", 1, "cannot read no.toml"),
    (
        "runslice evaluate empty.toml fifo",
        2,
        "there is no `[[load]]`",
    ),
    (
        "runslice evaluate goal.toml fifo",
        2,
        "this load has no group `nobody`",
    ),
    (
        "runslice evaluate e.toml fifo --secret 9",
        2,
        "no such file descriptor",
    ),
    (
        "runslice evaluate e.toml fifo --secret 3 3< short",
        2,
        "the key has 1 bytes",
    ),
    ("runslice evaluate e.toml --seal", 2, "--secret"),
    (
        "runslice evaluate e.toml fifo eevdf --seal -d sealed --secret 3 3< key",
        2,
        "6 draws cannot show any of 2 nominees better, only of 1",
    ),
    (
        "runslice evaluate e.toml --gate --seal --secret 3 3< short",
        2,
        "cannot be used with",
    ),
    (
        "runslice evaluate poor.toml fifo mlfq",
        1,
        "the baseline fails under desk",
    ),
    (
        "runslice evaluate twice.toml fifo",
        2,
        "twice.toml:5:19: 6.18 stands twice",
    ),
    (
        "runslice gate fifo:slice_ns=5 --against fifo -w desk",
        2,
        "slice_ns",
    ),
    (
        "runslice gate fifo --against fifo:nope=1 -w desk",
        2,
        "nope",
    ),
    (
        "runslice gate fifo --against none.bpf.c -w desk",
        2,
        "the old version, none: no policy",
    ),
    ("runslice gate fifo", 2, "--against"),
    (
        "runslice gate fifo --against mlfq --by x.bundle",
        2,
        "cannot be used with",
    ),
    (
        "runslice gate fifo --against mlfq -- make",
        2,
        "cannot be used with",
    ),
    (
        "runslice lab mlfq --property weights",
        2,
        "cannot be used with",
    ),
    ("runslice lab mlfq --loads 4", 2, "cannot be used with"),
    (
        "runslice gate fifo --against nobody",
        2,
        "no policy is called `nobody`",
    ),
];

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let folder = Folder::new("wrong");
    folder.write("short", "x\n");
    folder.write("empty.toml", "draws = 10\n");
    let goal = "[[goal]]\ngoal = \"p99 wait of nobody\"\n[[load]]\nload = \"desk\"\n";
    folder.write("goal.toml", goal);
    folder.write("none.bpf.c", "int x;\n");
    folder.write("poor.toml", &format!("{SPEC}[budget]\ninstructions = 1\n"));
    let twice = "[machine]\nkernel = [\"6.18\", \"6.18\"]\n";
    folder.write(
        "twice.toml",
        &format!("draws = 6\n[[load]]\nload = \"desk\"\n{twice}"),
    );
    for (line, status, words) in WRONG {
        let (_, said) = folder.said(line, *status);
        assert!(said.contains(words), "{line}: {said}");
    }
    // Nobody wrote a file in which the name of the load stands.
    let (_, said) = folder.said("runslice gate fifo --against mlfq -w dsk", 2);
    assert!(
        said.contains("no workload is called `dsk`") && !said.contains("gate:3:"),
        "{said}"
    );
    // The way through /proc would open the other end of this pipe, and wait for ever.
    let written = "runslice evaluate e.toml fifo --secret 1 2>said | cat; cat said >&2";
    let (_, said) = folder.said(written, 0);
    assert!(said.contains("no such file descriptor"), "{said}");
    folder.said("runslice evaluate e.toml fifo", 0);
    // A mark of the encoding and line ends of another system are the same text.
    folder.write("e.toml", &format!("\u{feff}{}", SPEC.replace('\n', "\r\n")));
    folder.said("runslice evaluate e.toml fifo", 0);
    folder.write("e.toml", &SPEC.replace("draws = 6", "draws = 7"));
    let (_, said) = folder.said("runslice evaluate e.toml fifo", 2);
    assert!(
        said.contains("is of another search") && said.contains("--folder"),
        "{said}"
    );
}

#[test]
fn no_version_is_refused_against_itself() {
    let folder = Folder::new("itself");
    for policy in policies::ALL {
        let name = policy.name;
        let line = format!("runslice gate {name} --against {name} -w desk --trials 8");
        let (text, _) = folder.said(&line, 0);
        assert!(text.starts_with("passed: "), "{text}");
        assert!(text.contains("cannot see"), "{text}");
    }
}

#[test]
fn faulty_versions_are_refused_with_a_file_that_shows_it() {
    let folder = Folder::new("mutants");
    for name in [
        "drops",
        "unread",
        "stops",
        "stream",
        "no-kick",
        "endless-slice",
    ] {
        let object = folder.object(&format!("faulty-{name}"));
        let line = format!("runslice gate {object} --against fifo -w desk --format json");
        let document = folder.json(&line, 3);
        assert_eq!(document["answer"], "refused");
        let limits = document["limits"].as_array().unwrap();
        let capsule = limits.iter().find_map(|it| it["capsule"].as_str());
        let capsule = capsule.unwrap_or_else(|| panic!("{name}: {limits:?}"));
        assert!(folder.0.join(capsule).exists());
    }
}

/// The history of a policy: two good commits, one that does not compile, one that only changes a
/// comment, the bad one, and two behind it.
#[test]
fn bisect_finds_the_commit_passes_over_what_does_not_build_and_runs_equal_objects_once() {
    let folder = Folder::new("bisect");
    folder.said("runslice list --copy fifo -o mine.bpf.c", 0);
    let good = fs::read_to_string(folder.0.join("mine.bpf.c")).unwrap();
    let takes = "scx_bpf_dsq_move_to_local(QUEUE);";
    let bad = good.replace(takes, &format!("if (cpu & 1) {takes}"));
    assert_ne!(good, bad);
    let repository = "mkdir repo && git -C repo init -q -b main && \
                      git -C repo config user.name t && git -C repo config user.email t@t";
    folder.said(repository, 0);
    let broken = good.replace("POLICY(", "NO_SUCH_MACRO(");
    // Without line information two sources that differ in a comment have one object.
    let build = "runslice build mine.bpf.c -o mine.bpf.o";
    for (at, text) in [
        &good,
        &good.replace("slice_ns, 20000000", "slice_ns, 19000000"),
        &broken,
        &format!("{good}/* A word more. */\n"),
        &bad,
        &format!("{bad}/* A word more. */\n"),
        &format!("{bad}/* And another. */\n"),
    ]
    .into_iter()
    .enumerate()
    {
        folder.write("repo/mine.bpf.c", text);
        folder.said(
            &format!("cd repo && git add . && git commit -q -m 'commit {at}'"),
            0,
        );
    }
    let line = format!(
        "cd repo && runslice gate mine.bpf.o --bisect HEAD~6 HEAD -w desk --trials 0 \
         --format json -- {build}"
    );
    let document = folder.json(&line, 0);
    let first = document["first_bad"]
        .as_str()
        .unwrap_or_else(|| panic!("{document}"));
    assert!(first.ends_with("commit 4"), "{document}");
    let number = |name: &str| document[name].as_u64().unwrap();
    assert!(number("runs") < number("built"), "{document}");
    let (status, _) = folder.said("git -C repo status --porcelain --ignored", 0);
    assert_eq!(status, "", "the working tree stays as it was");
    let (_, said) = folder.said(
        "cd repo && runslice gate mine.bpf.c --bisect HEAD HEAD~2",
        2,
    );
    assert!(said.contains("does not come after"), "{said}");
    bisect_by_one_run(&folder, build);
}

/// A run that shows the fault names the same commit, without the gate.
fn bisect_by_one_run(folder: &Folder, build: &str) {
    folder.write(
        "one.toml",
        "[workload]\nname = \"one\"\nstop = \"duration:3s\"\n[machine]\ncpus = 1\n\
         [task.t]\ncount = 2\ndo = \"run(inf)\"\n",
    );
    folder.said(
        "runslice explain repo/mine.bpf.c -w one.toml --shrink bad.bundle",
        3,
    );
    let line = |bad: &str| {
        format!(
            "cd repo && runslice gate mine.bpf.o --bisect HEAD~6 {bad} --by ../bad.bundle \
             --format json -- {build}"
        )
    };
    let document = folder.json(&line("HEAD"), 0);
    let first = document["first_bad"].as_str().unwrap_or_default();
    assert!(first.ends_with("commit 4"), "{document}");
    let (_, said) = folder.said(&line("HEAD~5"), 2);
    assert!(
        said.contains("shows no fault under the bad commit"),
        "{said}"
    );
}
