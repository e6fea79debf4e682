//! The balancer of 2.6.3 on a machine with two NUMA nodes.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::loads::{LOADS, line_of};
use crate::{KERNELS, complaints, said, vm_with_path};

/// Two nodes of two CPUs and 768 MiB each, for QEMU. A kernel complains of a processor that has
/// cores in both.
const NODES: &str = "-smp sockets=2,cores=2 \
    -object memory-backend-ram,id=m0,size=768M \
    -object memory-backend-ram,id=m1,size=768M \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1";

/// A PATH on which QEMU is one that adds [`NODES`] to what it is told.
fn path_with_nodes() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let qemu = env::split_paths(&path)
        .map(|folder| folder.join("qemu-system-x86_64"))
        .find(|file| file.is_file());
    let qemu = qemu.expect("QEMU is there; `scripts/setup.sh vm` installs it");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vm-nodes");
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let file = folder.join("qemu-system-x86_64");
    let text = format!("#!/bin/sh\nexec '{}' \"$@\" {NODES}\n", qemu.display());
    std::fs::write(&file, text).expect("the folder for tests is writable");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&file, mode).expect("the file was just written");
    let folders = [folder].into_iter().chain(env::split_paths(&path));
    env::join_paths(folders).expect("no folder of the PATH has a colon in its name")
}

/// What load `nodes` says of a policy: how many of the eight hogs were on the other node while
/// both nodes had the same to do, and after it had less.
fn far(text: &str, policy: &str) -> (u32, u32) {
    let ending = line_of(text, "result", policy, "nodes");
    let numbers = ending.and_then(|ending| ending.strip_prefix("0 disabled 0-1 "));
    let numbers = numbers.unwrap_or_else(|| panic!("{policy}: {ending:?}\n{text}"));
    let (before, after) = numbers.split_once(' ').expect("two numbers");
    (before.parse().unwrap(), after.parse().unwrap())
}

/// A CPU with five tasks takes from one with eight, unless that is on a node which has no more to
/// do than its own. With a knob the machine is one node, and then it does.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn o1_sees_the_nodes_of_a_machine_and_pulls_between_them_when_one_has_more() {
    let path = path_with_nodes();
    let (own, flat) = ("o1", "o1:node_cpus=1024");
    let script = format!("{LOADS}\nfor policy in {own} {flat}; do nodes $policy; done");
    for kernel in KERNELS {
        let mut words = vec!["--kernel", kernel, "--det", "--mips", "125", "--cpus", "4"];
        words.extend(["--memory", "1536", "--timeout", "400s", "--kernel-log"]);
        words.extend(["--with", "runslice", "--", "sh", "-c", &script]);
        let text = said(&vm_with_path(&path, &words));
        let (equal, less) = far(&text, own);
        assert_eq!(equal, 0, "{kernel}: both nodes have the same to do\n{text}");
        assert!(less > 0, "{kernel}: node 1 has less to do\n{text}");
        let (equal, _) = far(&text, flat);
        assert!(equal > 0, "{kernel}: it is one node\n{text}");
        assert_eq!(complaints(&text), [""; 0], "{kernel}: {text}");
    }
}
