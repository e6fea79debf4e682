//! Files of `dist/` that other programs read: the workflows of GitHub, the image for students, and
//! Grafana's dashboard.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::root;

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).expect("it is there")
}

/// The workflow for the site publishes what the command makes, and the command knows all of it.
#[test]
fn the_site_that_is_published_is_the_one_that_is_made() {
    let (workflow, script) = (text("dist/github/site.yml"), text("scripts/site.sh"));
    assert!(workflow.contains("          make site\n"));
    assert!(text("Makefile").contains("\nsite: setup ##"));
    let folder = workflow.split_once("path: target/").expect("a folder").1;
    let folder = folder.lines().next().expect("a name");
    for part in ["mkdir -p", "cp -r", "node web/site.mjs"] {
        let line = script.lines().find(|it| it.starts_with(part)).expect(part);
        assert!(line.contains(&format!("\"$into/{folder}")), "{line}");
    }
    // Cargo's own files for the profile `web` lie in the folder of the page, 250 MB of them.
    assert!(!script.contains("\"$into/web\" "), "not the whole folder");
}

/// The image takes the package under the name that it is made with, and copies from where it is
/// laid out; the editor's file names the image's own.
#[test]
fn the_image_for_students_takes_what_the_package_has() {
    let image = text("dist/container/Containerfile");
    let (made, laid) = (text("scripts/dist.sh"), text("scripts/stage.sh"));
    assert!(made.contains("\"$out/runslice_${version}_$debian.deb\""));
    assert!(image.contains("\nCOPY runslice_*.deb /tmp/\n"));
    assert!(laid.contains("\nput 644 teach/* $doc/teach\n"));
    assert!(laid.contains("\ndoc=share/doc/runslice\n"));
    assert!(image.contains(" cp -r /usr/share/doc/runslice/teach "));
    let base = image.lines().find(|it| it.starts_with("FROM "));
    assert!(base.is_some_and(|it| !it.contains("slim")), "{base:?}");
    let editor = text("dist/container/devcontainer.json");
    assert!(editor.contains("\"dockerfile\": \"Containerfile\""));
    assert!(editor.contains("\"remoteUser\": \"student\"") && image.contains("\nUSER student\n"));
}

/// The commands of the workflow's step with this name.
fn step(name: &str) -> String {
    let workflow = text("dist/github/simulate.yml");
    let mut steps = workflow.split("\n      - ").skip(1);
    let step = steps.find(|it| it.starts_with(&format!("name: {name}\n")));
    let (_, commands) = step
        .and_then(|it| it.split_once("run: |\n"))
        .expect("a step");
    let own = commands
        .lines()
        .take_while(|it| it.starts_with("          "));
    own.map(|it| format!("{}\n", &it[10..])).collect()
}

const ANSWER: &str = r#"{"limits": [
    {"limit": "fault", "words": "50 % lost,\nall", "advice": "Mend it.",
     "capsule": "gate/fault-1.bundle", "finding": {"file": "./a,b.bpf.c", "line": 74}},
    {"limit": "share", "words": "w", "advice": "a", "capsule": null, "finding": null},
    {"limit": "idle", "words": "w", "advice": "a", "capsule": null,
     "finding": {"file": "src/inc/x.h", "line": 3}}
]}"#;

#[test]
fn the_workflow_names_file_and_line_as_github_reads_them() {
    let folder = std::env::temp_dir().join(format!("runslice-annotate-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the test's own folder");
    fs::write(folder.join("gate.json"), ANSWER).expect("its own");
    let mut shell = Command::new("sh")
        .args(["-e", "-s"])
        .current_dir(&folder)
        .env("POLICY", "src/mine.bpf.c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut to = shell.stdin.take().expect("a pipe");
    to.write_all(step("Annotate").as_bytes()).expect("it reads");
    drop(to);
    let output = shell.wait_with_output().expect("it ends");
    fs::remove_dir_all(&folder).expect("the test's own");
    assert!(output.status.success(), "jq is needed: make setup");
    let said = String::from_utf8(output.stdout).expect("text");
    let want = "::error file=src/a%2Cb.bpf.c,line=74::fault: 50 %25 lost,%0Aall. Mend it. \
                gate/fault-1.bundle\n::error::share: w. a \n\
                ::error file=src/inc/x.h,line=3::idle: w. a \n";
    assert_eq!(said, want);
}

#[test]
fn the_dashboard_draws_metrics_that_are_exported() {
    let dashboard = text("dist/grafana.json");
    let sources = ["export.rs", "export/kernel.rs"]
        .map(|it| text(&format!("crates/runslice/src/verb/stat/{it}")))
        .concat();
    let expressions = dashboard.lines().filter(|it| it.contains("\"expr\": "));
    let words = expressions
        .flat_map(|line| line.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_')));
    let names: BTreeSet<&str> = words
        .filter(|it| it.starts_with("node_") || it.starts_with("runslice_"))
        .collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        // The name of a thread's metric is put together.
        let part = name.strip_prefix("runslice_process_").unwrap_or(name);
        let part = part
            .strip_suffix("_total")
            .filter(|_| part != name)
            .unwrap_or(part);
        assert!(sources.contains(part), "{name}");
    }
}
