//! Where results go, and what limits a policy: what is refused by name.

use std::fs;
use std::path::PathBuf;

use runslice_tests::{command, object};

/// A folder of one test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("places-{name}");
        Self(command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("writable");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("readable")
    }

    /// What a command that ends with `status` prints.
    fn said(&self, arguments: &str, status: i32) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (out, err) = command::said(env!("CARGO_BIN_EXE_runslice"), &self.0, &words, status);
        out + &err
    }
}

/// Each enqueue takes more than 4 KiB, so that 8 MiB last for less than 2048 of them.
#[test]
fn a_policy_whose_maps_reach_the_limit_of_memory_is_ejected_by_name() {
    let folder = Folder::new("memory");
    fs::copy(object!("grows"), folder.0.join("grows.bpf.o")).expect("writable");
    folder.write(
        "load.toml",
        "[workload]\nname = \"load\"\nstop = \"duration:1s\"\n\
         [machine]\ncpus = 1\n[task.t]\ncount = 4\n\
         do = \"loop(inf)[ run(100us), sleep(100us) ]\"\n",
    );
    let sim = "sim ./grows.bpf.o -w load.toml --memory";
    folder.said(&format!("{sim} 64"), 0);
    let limit = "out of memory: the object may use 8388608 bytes";
    for how in ["", " --runs 2"] {
        let text = folder.said(&format!("{sim} 8{how}"), 3);
        assert!(text.contains(limit), "{how}: {text}");
    }
    let text = folder.said(&format!("{sim} 8"), 3);
    assert!(text.contains("grows.bpf.c:24"), "where: {text}");
    folder.said(&format!("{sim} 8 --format json -o run.json"), 3);
    let text = folder.read("run.json");
    assert!(text.contains(limit), "{text}");
    let explain = "explain ./grows.bpf.o -w load.toml --memory 8";
    let text = folder.said(explain, 3);
    assert!(text.starts_with("over-limit: "), "{text}");
    assert!(text.contains("at: grows_enqueue+"), "{text}");
    folder.said(&format!("{explain} --shrink small.bundle"), 2);
}

/// Root goes on with no results that another user prepared, and writes where no link of another
/// user leads. Without root there is no other user here.
#[test]
fn root_takes_no_folder_and_follows_no_link_of_another_user() {
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    let folder = Folder::new("of-others");
    let open = folder.0.join("open");
    fs::create_dir(&open).expect("writable");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).expect("ours");
    folder.write("victim", "kept");
    symlink("../victim", open.join("link")).expect("writable");
    fs::create_dir(folder.0.join("target")).expect("writable");
    symlink("../target", open.join("way")).expect("writable");
    fs::create_dir(open.join("results")).expect("writable");
    let stranger = |name: &str| lchown(open.join(name), Some(12345), None);
    if ["link", "way", "results"]
        .map(stranger)
        .iter()
        .any(Result::is_err)
    {
        return;
    }
    let sim = "sim fifo -w desk --duration 1ms";
    for output in ["-o", "--events"] {
        let text = folder.said(&format!("{sim} {output} open/link"), 1);
        assert!(
            text.contains("`link` is a link of user 12345"),
            "{output}: {text}"
        );
    }
    assert_eq!(folder.read("victim"), "kept");
    folder.said(&format!("{sim} -o open/mine"), 0);
    folder.write("mine.bpf.c", "int x;\n");
    let text = folder.said("build mine.bpf.c -o open/link", 1);
    let why = "cannot write open/link: `link` is a link of user 12345";
    assert!(text.contains(why), "{text}");

    folder.write(
        "sweep.toml",
        "policy = [\"fifo\"]\nworkload = [\"desk\"]\nduration = \"1ms\"\n",
    );
    folder.said(&format!("{sim} --events events.jsonl"), 0);
    for verb in [
        "sweep sweep.toml --folder",
        "hunt fifo --trials 1 -o",
        "report events.jsonl --svg",
        "build --headers",
        "man",
    ] {
        for (way, why) in [
            ("open/results", "belongs to user 12345"),
            ("open/results/new", "belongs to user 12345"),
            ("open/way", "`way` is a link of user 12345"),
            ("open/way/new/below", "`way` is a link of user 12345"),
        ] {
            let text = folder.said(&format!("{verb} {way}"), 1);
            assert!(text.contains(why), "{verb} {way}: {text}");
        }
        folder.said(&format!("{verb} open/mine-{}", &verb[..3]), 0);
    }
    for untouched in [open.join("results"), folder.0.join("target")] {
        assert_eq!(fs::read_dir(untouched).expect("there").count(), 0);
    }
}

#[test]
fn results_go_into_no_pipe_and_no_disk() {
    let folder = Folder::new("no-files");
    let sim = "sim fifo -w desk --duration 1ms -o";
    let _listens = std::os::unix::net::UnixListener::bind(folder.0.join("socket"));
    let made = std::process::Command::new("mkfifo")
        .arg(folder.0.join("pipe"))
        .status();
    assert!(made.expect("it is everywhere").success());
    let text = folder.said(&format!("{sim} pipe"), 1);
    assert!(text.contains("cannot write pipe: is a pipe"), "{text}");
    let text = folder.said(&format!("{sim} socket"), 1);
    assert!(text.contains("cannot write socket: is a socket"), "{text}");
    let text = folder.said(&format!("{sim} /dev/stdout"), 0);
    assert!(text.contains("fifo"), "{text}");
}
