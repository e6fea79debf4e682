//! The supervisor with programs that mean harm to the user's files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use model::{Hardware, Nanos};

use crate::support::{BOOT, Driven, settings};

const LONG: Nanos = Nanos::from_secs(4000);

/// All files below a folder with what is in them, by their paths from there.
fn all(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).expect("a folder").flatten() {
            let kind = entry.file_type().expect("known");
            if kind.is_dir() {
                folders.push(entry.path());
            }
            let below = entry.path().strip_prefix(folder).expect("below").to_owned();
            found.push((below, fs::read(entry.path()).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

fn has(out: &str, lines: &[&str]) {
    for line in lines {
        assert!(out.lines().any(|it| it == *line), "{line}\n{out}");
    }
}

#[test]
fn links_at_each_path_of_the_tree_lead_the_supervisor_nowhere() {
    let victim = tempfile::tempdir().expect("a folder");
    let mut driven = Driven::subject(&["plants", victim.path().to_str().unwrap()], settings(1));
    // What would be written over if a link were followed, whatever it stands for.
    let root = driven.user.root().to_owned();
    for (path, _) in all(&root) {
        let at = victim.path().join(&path);
        if root.join(&path).is_dir() {
            fs::create_dir_all(&at).expect("made");
        } else {
            fs::create_dir_all(at.parent().expect("above")).expect("made");
            fs::write(&at, "kept").expect("written");
        }
    }
    let ops = victim.path().join("sys/kernel/sched_ext/root/ops");
    fs::create_dir_all(ops.parent().expect("above")).expect("made");
    fs::write(ops, "kept").expect("written");
    let before = all(victim.path());
    let end = driven.run(LONG).expect("it ends");
    let out = driven.out();
    assert_eq!(end.status, 0, "{out}{}", driven.err());
    let planted = out.lines().find_map(|it| it.strip_prefix("planted "));
    let planted: usize = planted.expect("said").parse().expect("a number");
    // Below `/proc/self` the host's files show where the tree has none.
    let stays = out.lines().filter_map(|it| it.strip_prefix("stays "));
    assert!(
        stays.clone().all(|it| it.starts_with("/proc/self")),
        "{out}"
    );
    assert!(planted > 100, "{out}");
    assert_eq!(all(victim.path()), before);
    drop(driven);
    assert!(!root.exists());
    assert_eq!(all(victim.path()), before);
}

#[test]
fn the_given_folder_stays_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let given = folder.path().join("given");
    fs::create_dir_all(given.join("below")).expect("made");
    fs::write(given.join("below/kept"), "kept").expect("written");
    fs::set_permissions(&given, fs::Permissions::from_mode(0o750)).expect("changed");
    let mut settings = settings(1);
    settings.folder = Some(given.clone());
    let null = fs::metadata("/dev/null").expect("there").permissions();
    let mut driven = Driven::subject(&["takes", given.to_str().unwrap()], settings);
    let end = driven.run(LONG).expect("it ends");
    let out = driven.out();
    assert_eq!(end.status, 0, "{out}{}", driven.err());
    let refused = [
        "chmod 13",
        "fchmod 13",
        "rename 13",
        "rename below 13",
        "rename over 13",
        "rmdir 13",
        "unlink 13",
        "dots 13",
        "null 13",
        "null mode 13",
        "write 0",
    ];
    has(&out, &refused);
    drop(driven);
    let mode = fs::metadata(&given).expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
    let left: Vec<_> = all(folder.path()).into_iter().map(|it| it.0).collect();
    let left: Vec<_> = left.iter().map(|it| it.to_str().unwrap()).collect();
    assert_eq!(
        left,
        ["given", "given/below", "given/below/kept", "given/file"]
    );
    assert_eq!(
        fs::metadata("/dev/null").expect("there").permissions(),
        null
    );
}

/// A file of the host that a test puts there, and takes away.
struct Planted(PathBuf);

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn the_file_that_was_looked_at_is_the_one_that_runs() {
    let helper = PathBuf::from(format!("/tmp/runslice-helper-{}", std::process::id()));
    let canary = tempfile::tempdir().expect("a folder");
    let canary = canary.path().join("canary");
    let mut driven = Driven::subject(&["executes", helper.to_str().unwrap()], settings(1));
    assert_eq!(driven.run(BOOT + Nanos::from_millis(500)), None);
    let planted = Planted(helper.clone());
    fs::write(
        &helper,
        format!("#!/bin/sh\necho attack > {}\n", canary.display()),
    )
    .expect("written");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("changed");
    let end = driven.run(LONG).expect("it ends");
    drop(planted);
    let out = driven.out();
    assert_eq!(end.status, 0, "{out}{}", driven.err());
    assert!(!canary.exists(), "{out}");
    let expected = [
        format!("{}: Ok(\"linked\\n\")", helper.display()),
        "/tmp/script: Ok(\"/tmp/script says one\\n\")".into(),
        "/tmp/nested: Ok(\"/tmp/script says nested\\n\")".into(),
        "./script: Ok(\"./script says four\\n\")".into(),
        "\"/tmp/text\" 8".into(),
        "\"/tmp\" 13".into(),
        "\"/etc/passwd\" 13".into(),
        "\"/tmp/missing\" 2".into(),
        "by descriptor".into(),
    ];
    let lines: Vec<_> = out
        .lines()
        .filter(|it| !it.starts_with("descriptors"))
        .collect();
    assert_eq!(lines, expected);
    // What was handed over for a program that was refused is closed again.
    has(&out, &["descriptors 4"]);
}

#[test]
fn a_program_that_goes_by_energy_is_told_that_there_is_no_model_of_it() {
    let told = |args: &[&str], hardware: Option<&str>| {
        let mut settings = settings(4);
        if let Some(hardware) = hardware.and_then(Hardware::find) {
            settings.shown.machine = settings.shown.machine.with_hardware(hardware);
        }
        let mut driven = Driven::subject(args, settings);
        let end = driven.run(LONG).expect("it ends");
        assert_eq!(end.status, 0, "{}", driven.err());
        (driven.out(), driven.user.summary().join("\n"))
    };
    let (out, notes) = told(&["joules", "--powersave"], None);
    assert_eq!(out, "Some(false)\n");
    assert!(
        notes.contains("it looked for an energy model; this machine has none"),
        "{notes}"
    );
    let (_, notes) = told(&["joules", "--performance"], None);
    assert_eq!(notes, "");
    let has_one = told(&["joules", "--powersave"], Some("pixel6"));
    assert_eq!(has_one, ("Some(true)\n".to_owned(), String::new()));
}

#[test]
fn files_have_a_limit_however_they_grow() {
    let mut driven = Driven::subject(&["grows"], settings(1));
    let end = driven.run(LONG).expect("it ends");
    let out = driven.out();
    assert_eq!(end.status, 0, "{out}");
    let lines = [
        "ftruncate 27",
        "fallocate 27",
        "fallocate beyond 27",
        "memory 27",
        "sendfile 22",
        "copy_file_range 22",
        "splice 22",
        "far 27",
        "long 27",
        "truncate 27",
        "files 10",
        "few true 28",
        "link 28",
        "new 28",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), lines);
    let kept = driven.err().len();
    assert_eq!(kept, 16 << 20);
    let told = driven.user.summary().join("\n");
    let many = "its files may grow by 1 GiB in a run; the program was told ENOSPC (";
    for words in [
        "a file may have 1 GiB; the program was told EFBIG (4 times)",
        many,
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
}
