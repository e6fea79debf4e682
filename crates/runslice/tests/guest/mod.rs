//! Scripts on real kernels, in virtual machines, one at a time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Held while a guest runs: two would starve each other on a small computer.
static ONE: Mutex<()> = Mutex::new(());

/// The kernels that policies are tested on.
pub const KERNELS: [&str; 2] = ["6.18", "7.2"];

/// What a script of shell printed, and how it ended.
pub struct Said {
    pub text: String,
    pub status: Option<i32>,
}

/// Runs a shell script on `kernel`. `runslice` and the programs `with` are at hand; words that
/// name files, such as objects, come as `$1`, `$2` and so on.
pub fn script(kernel: &str, script: &str, with: &[&str], files: &[&Path]) -> Said {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(env!("CARGO_BIN_EXE_runslice"));
    command.args(["vm", "--kernel", kernel, "--timeout", "120s"]);
    for program in ["runslice"].iter().chain(with) {
        command.args(["--with", program]);
    }
    command.args(["--", "sh", "-c", script, "sh"]).args(files);
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts");
    Said {
        text: all_of(&output),
        status: output.status.code(),
    }
}

/// Runs a script that must end well, and returns all that it printed.
pub fn good(kernel: &str, text: &str, files: &[&Path]) -> String {
    let said = script(kernel, text, &[], files);
    assert_eq!(said.status, Some(0), "{kernel}: {}", said.text);
    said.text
}

fn all_of(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
    format!("{stdout}{stderr}")
}

/// The object of a test policy, compiled anew.
pub fn object(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("tests/objects").join(format!("{name}.bpf.c"));
    let include = root.join("../../policies/include");
    let bytes = bpf_build::compile(&source, &[&include]).unwrap_or_else(|error| panic!("{error}"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("verbs-{name}.bpf.o"));
    std::fs::write(&path, bytes).expect("the folder for tests is writable");
    path
}
