//! A scheduler's own repository, in a fresh folder, whose tests are those of `runslice-test`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Runs `cargo test` there. What is built is kept, so that only the first call takes minutes.
fn cargo_test(repository: &Path) -> Output {
    let built = std::env::current_exe().expect("a test has a file");
    let profile = built.parent().and_then(Path::parent).expect("target/debug");
    Command::new(env!("CARGO"))
        .args(["test", "--offline", "--quiet"])
        .current_dir(repository)
        .env("CARGO_TARGET_DIR", profile.with_file_name("foreign"))
        .output()
        .expect("cargo starts")
}

#[test]
#[ignore = "builds a simulator for another repository, which takes minutes: make test-long"]
fn the_tests_of_another_repository_pass_and_fail_with_its_policy() {
    let folder = tempfile::tempdir().expect("a folder of the test");
    let repository = folder.path();
    let fixture = root().join("tests/foreign");
    for file in ["src/lib.rs", "tests/scheduler.rs"] {
        let to = repository.join(file);
        fs::create_dir_all(to.parent().expect("a folder")).expect("ours");
        fs::copy(fixture.join(file), to).expect("the fixture is there");
    }
    let manifest = fs::read_to_string(fixture.join("manifest.toml")).expect("so is this");
    let testing = root().join("crates/testing").canonicalize().expect("there");
    let manifest = manifest.replace("RUNSLICE", &testing.display().to_string());
    fs::write(repository.join("Cargo.toml"), manifest).expect("ours");
    // The same versions of libraries: a test takes none from the network.
    fs::copy(root().join("Cargo.lock"), repository.join("Cargo.lock")).expect("ours");

    let policy = repository.join("src/mine.bpf.c");
    let good = fs::read_to_string(root().join("policies/mlfq.bpf.c")).expect("it is there");
    fs::write(&policy, good).expect("ours");
    let passed = cargo_test(repository);
    assert!(
        passed.status.success(),
        "{}",
        String::from_utf8_lossy(&passed.stderr)
    );

    let sources = root().join("tests/policies");
    fs::copy(sources.join("faulty.h"), repository.join("src/faulty.h")).expect("ours");
    fs::copy(sources.join("faulty-drops.bpf.c"), &policy).expect("ours");
    let failed = cargo_test(repository);
    assert_eq!(failed.status.code(), Some(101));
    let said = String::from_utf8_lossy(&failed.stdout);
    for part in [
        "src/mine.bpf.c under desk breaks a limit\n  limit: ",
        "\n  value: ",
        "\n  line:  ./mine.bpf.c:",
        "\n  again: runslice explain src/mine.bpf.c -w desk --cpus 4 ",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}
