//! `runslice@.service` in systems whose first process is systemd: `make test-vm`.
//!
//! A bare Debian with systemd in memory, on the kernel 6.18 of the other guests, and a package of
//! this program in it. It counts instructions, so that minutes in which nothing happens take
//! nearly no time here, and a busy computer does not matter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runslice_tests::guest::complaint;
use runslice_tests::{debian, folder, object};

const SUITE: &str = "trixie";

/// What is brought along: a system as small as it goes, with what this program is linked with.
const OPTIONS: [&str; 5] = [
    "--variant=essential",
    "--include=systemd,libelf1t64",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
];

/// Units that have nothing to do here: no network, and no modules.
const MASKED: [&str; 2] = ["systemd-modules-load.service", "systemd-timesyncd.service"];

/// As of `runslice vm --det --mips 250`. What the guest says comes over the second line.
const QEMU: &str = "-nodefaults -no-user-config -display none -no-reboot -smp 2 -m 1024M \
    -serial file:console -serial file:result -initrd root.cpio -M pc -cpu max,-rdrand,-rdseed \
    -accel tcg,thread=single -icount shift=2,sleep=off -seed 1 \
    -rtc base=2026-01-01T00:00:00,clock=vm";
const KERNEL: &str = "console=ttyS0 loglevel=7 panic=-1 cryptomgr.notests \
    rdinit=/lib/systemd/systemd systemd.show_status=no nokaslr norandmaps random.trust_cpu=off \
    random.trust_bootloader=on";

/// What the first boot must say, up to the restart of all but the kernel and after it. The fourth
/// restart, 60 s after the last ejection, is refused.
const FIRST: &str = "\
pid 1: systemd
start: active, success, status 0, restarts 0, enabled
process: SCHED_RR 1 -900 locked
killed: activating, disabled
killed and back: active, success, status 0, restarts 1, enabled
stop: inactive, success, status 0, restarts 0, disabled
left:
runslice stop: inactive, success, status 0, restarts 0, disabled
bad knob: failed, exit-code, status 2, restarts 0, disabled
knob: 5000
second unit: failed, exit-code, status 4, restarts 0, enabled
first unit: active, success, status 0, restarts 0, enabled
beside scx: failed, exit-code, status 4, restarts 0, enabled
scx: active, success, status 0, restarts 0, enabled
scx again: active, success, status 0, restarts 0, enabled
ejected: failed, exit-code, status 3, restarts 4, disabled
dumps: runslice-loser-1.dump runslice-loser-2.dump runslice-loser-3.dump runslice-loser-4.dump
ejections: 4, after pauses of 5 11 26 60 s
at once: refused
later: started
stopped in between: inactive, success, status 0, restarts 0, disabled
package: 0.1.1
old: /usr/bin/runslice (deleted)
knob: 6000
old goes on: active, success, status 0, restarts 0, enabled
new: active, success, status 0, restarts 0, enabled
new: /usr/bin/runslice
replaced and stopped: inactive, success, status 0, restarts 0, disabled
left:
enabled unit: active, mlfq, restarts 0
system: running
";

/// What a boot of a system with the enabled unit must say.
const SECOND: &str = "enabled unit: active, mlfq, restarts 0\nsystem: running\n";

/// Sentences that the first boot must have.
const WORDS: [&str; 5] = [
    "the scheduler fifo is attached already by runslice of runslice@fifo.service (process ",
    "  --replace stops runslice@fifo.service for the time; systemctl stop runslice@fifo.service \
     for good\n",
    "the scheduler fifo is attached already by scx_other of scx.service (process ",
    "  --replace stops scx.service for the time; systemctl stop scx.service for good\n",
    "run: scx.service runs again; fifo is the scheduler\n",
];

/// What came of a boot.
struct Boot {
    /// What the guest said over its second line.
    said: String,
    /// What the kernel logged.
    log: String,
}

impl Boot {
    /// The results among what was said.
    fn results(&self) -> String {
        let lines = self.said.lines();
        let results = lines.filter_map(|line| line.strip_prefix("= "));
        results
            .map(|line| format!("{}\n", line.trim_end()))
            .collect()
    }

    /// What the kernel said last of a policy.
    fn last_of_policies(&self) -> &str {
        let lines = self.log.lines().rev();
        let mut lines = lines.filter(|line| line.contains("sched_ext: BPF scheduler"));
        lines.next().unwrap_or_default()
    }
}

/// Runs a program that must end well.
fn run(program: &str, words: &[&str], folder: &Path) {
    let output = Command::new(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {wrong}");
}

/// The bare system. It is kept, because it takes a network.
fn bare() -> PathBuf {
    let archive = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{SUITE}-systemd.tar"));
    if !archive.is_file() {
        let half = archive.with_extension("half.tar");
        debian::make(SUITE, &half, &OPTIONS);
        fs::rename(&half, &archive).expect("it can be named");
    }
    archive
}

/// A package of this program, as `version`, at `path`. A later version is another file.
fn package(folder: &Path, version: &str, path: &Path) {
    let program = folder.join("runslice");
    let own = env!("CARGO_BIN_EXE_runslice");
    run("strip", &["-o", "runslice", own], folder);
    let mut bytes = fs::read(&program).expect("it was made");
    bytes.extend(version.as_bytes());
    fs::write(&program, bytes).expect("it is ours");
    // The package has the program of the experiments, too, which no unit runs.
    fs::write(folder.join("runslice-reproduce"), "#!/bin/sh\n").expect("it is ours");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stage = sources.join("scripts/stage.sh");
    let stage = stage.to_str().expect("plain text");
    let staged = folder.join("staged");
    let to = staged.to_str().expect("plain text");
    run(stage, &["runslice", to, "/usr"], folder);
    let control = fs::read_to_string(sources.join("dist/control")).expect("it is there");
    let control = control
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", "all")
        .replace("@SIZE@", "1");
    fs::create_dir_all(staged.join("DEBIAN")).expect("it is ours");
    fs::write(staged.join("DEBIAN/control"), control).expect("it is ours");
    let to = path.to_str().expect("plain text");
    let words = ["-Znone", "--root-owner-group", "--build", "staged", to];
    run("dpkg-deb", &words, folder);
    fs::remove_dir_all(staged).expect("it is ours");
}

/// A system in `folder/root` that takes `step` when it has started.
fn system(folder: &Path, step: u32) {
    let root = folder.join("root");
    fs::create_dir_all(&root).expect("writable");
    let archive = bare();
    let archive = archive.to_str().expect("plain text");
    run("tar", &["xf", archive, "-C", "root"], folder);
    package(folder, "0.1.0", &root.join("old.deb"));
    package(folder, "0.1.1", &root.join("new.deb"));
    run("chroot", &["root", "dpkg", "--install", "/old.deb"], folder);
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        let parent = path.parent().expect("below the root");
        fs::create_dir_all(parent).expect("writable");
        fs::write(path, text).expect("writable");
    };
    write("first", include_str!("first.sh"));
    write("second", include_str!("second.sh"));
    write("scenario", include_str!("scenario"));
    write("step", &step.to_string());
    let unit = include_str!("scenario.service");
    write("etc/systemd/system/scenario.service", unit);
    fs::create_dir_all(root.join("etc/runslice")).expect("writable");
    fs::copy(object!("loser"), root.join("etc/runslice/loser.bpf.o")).expect("writable");
    let systemctl = |words: &[&str]| {
        let words = [&["root", "systemctl"], words].concat();
        run("chroot", &words, folder);
    };
    systemctl(&["enable", "scenario"]);
    systemctl(&[&["mask"], &MASKED[..]].concat());
    if step > 1 {
        systemctl(&["enable", "runslice@mlfq"]);
    }
}

/// Boots a system that begins with `step`, and waits until it turns itself off.
fn boot(name: &str, step: u32) -> Boot {
    let folder = folder!(name);
    system(&folder, step);
    let pack = "cd root && rm -rf var/lib/apt/lists var/cache/apt && find . | LC_ALL=C sort | \
                busybox cpio -o -H newc >../root.cpio";
    run("sh", &["-c", pack], &folder);
    let kernel = vm::find_kernel("6.18", &mut |_| {}).expect("a kernel");
    let image = kernel.image.to_str().expect("plain text");
    let words = QEMU.split_whitespace();
    // A guest that hangs does so in its own time, which passes fast.
    let words = ["3000", "qemu-system-x86_64"].into_iter().chain(words);
    let words: Vec<&str> = words.chain(["-kernel", image, "-append", KERNEL]).collect();
    run("timeout", &words, &folder);
    let read = |name: &str| {
        let bytes = fs::read(folder.join(name)).expect("QEMU has made it");
        String::from_utf8_lossy(&bytes).replace('\r', "")
    };
    let boot = Boot {
        said: read("result"),
        log: read("console"),
    };
    fs::remove_dir_all(&folder).expect("it is ours");
    let last = boot.last_of_policies();
    assert!(
        last.ends_with("disabled (unregistered from user space)"),
        "{last}\n{}",
        boot.said
    );
    assert_eq!(complaint(&boot.log), None, "{}", boot.said);
    boot
}

#[test]
#[ignore = "boots a kernel, takes root, mmdebstrap and a network once: make test-vm"]
fn a_unit_fails_starts_again_gives_up_is_upgraded_and_outlives_a_restart() {
    let boot = boot("systemd-first", 1);
    assert_eq!(boot.results(), FIRST, "{}", boot.said);
    for words in WORDS {
        assert!(boot.said.contains(words), "no `{words}` in: {}", boot.said);
    }
    assert!(
        !boot.said.contains("runslice@mlfq.service:"),
        "{}",
        boot.said
    );
}

#[test]
#[ignore = "boots a kernel, takes root, mmdebstrap and a network once: make test-vm"]
fn an_enabled_unit_runs_after_a_boot_and_goes_before_the_power() {
    let boot = boot("systemd-second", 3);
    assert_eq!(boot.results(), SECOND, "{}", boot.said);
}
