//! The object is taken out of a scheduler's own program: a real executable, as the loaders that
//! are written in Rust are built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use runslice_tests::folder;

/// The compiler that belongs to the cargo that built this test.
fn rustc() -> PathBuf {
    let beside = Path::new(env!("CARGO")).with_file_name("rustc");
    if beside.exists() {
        beside
    } else {
        "rustc".into()
    }
}

/// A program that has the objects of these policies in it and uses them.
fn program(folder: &Path, name: &str, policies: &[&str], options: &[&str]) -> PathBuf {
    let mut source = String::from("fn main() {\n");
    for policy in policies {
        let object = policies::find(policy).expect("a policy").object;
        let file = folder.join(format!("{policy}.bpf.o"));
        fs::write(&file, object).expect("writable");
        source += &format!("    println!(\"{{:?}}\", include_bytes!({file:?}).as_slice());\n");
    }
    source += "}\n";
    let (main, made) = (folder.join(format!("{name}.rs")), folder.join(name));
    fs::write(&main, source).expect("writable");
    let built = Command::new(rustc())
        .args(options)
        .arg("-o")
        .args([&made, &main])
        .output()
        .expect("rustc is there: cargo has built this test");
    assert!(built.status.success(), "{}", text(&built.stderr));
    made
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn simulate(policy: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args([
            "sim",
            policy,
            "--workload",
            "desk",
            "--duration",
            "100ms",
            "--audit",
        ])
        .output()
        .expect("runslice is there")
}

/// What the audit says of the events, without the policy's name.
fn events(output: &Output) -> String {
    let all = text(&output.stdout) + &text(&output.stderr);
    let line = all
        .lines()
        .find(|line| line.contains("every account adds up"));
    let line = line.unwrap_or_else(|| panic!("no audit: {all}"));
    line.split_once(": ").expect("NAME: EVENTS").1.to_owned()
}

#[test]
fn the_objects_of_an_executable_run_as_the_objects_do() {
    let folder = folder!("binary");
    for (name, options) in [
        ("debug", &[][..]),
        ("stripped", &["-O", "-C", "strip=symbols"][..]),
    ] {
        let made = program(&folder, name, &["fifo", "mlfq"], options);
        for policy in ["fifo", "mlfq"] {
            let table = format!("{}@{policy}_ops", made.display());
            let inside = simulate(&table);
            let object = simulate(policy);
            assert_eq!(events(&inside), events(&object), "{name} {policy}");
        }
    }
}

#[test]
fn an_executable_with_several_policies_asks_for_one_and_names_them() {
    let folder = folder!("binary-choice");
    let made = program(&folder, "two", &["fifo", "mlfq"], &[]);
    let path = made.display().to_string();
    let said = simulate(&path);
    assert_eq!(said.status.code(), Some(2), "{}", text(&said.stderr));
    let message = text(&said.stderr);
    assert!(
        message.contains("it has several policies\n  choose one"),
        "{message}"
    );
    assert!(message.contains("fifo_ops, mlfq_ops"), "{message}");
    let said = simulate(&format!("{path}@nobody"));
    assert!(text(&said.stderr).contains("no object in it has a table `nobody`"));
}

#[test]
fn one_policy_in_an_executable_needs_no_name() {
    let folder = folder!("binary-one");
    let made = program(&folder, "one", &["fifo"], &["-C", "strip=symbols"]);
    let inside = simulate(&made.display().to_string());
    assert_eq!(events(&inside), events(&simulate("fifo")));
}
