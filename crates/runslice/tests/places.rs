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
         [task.t]\ndo = \"loop(inf)[ run(100us), sleep(100us) ]\"\n",
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
}
