//! Machines with two NUMA nodes, with and without two hardware threads a core.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::loads::{LOADS, line_of};
use super::{KERNELS, complaints, said, vm_with_path};

/// Two nodes of two CPUs, for QEMU. A kernel complains of a processor that has cores in both.
const CORES: &str = "-smp sockets=2,cores=2";

/// Two nodes of one core with two hardware threads.
const THREADS: &str = "-smp sockets=2,cores=1,threads=2";

/// 768 MiB and two CPUs in each of two nodes.
const NODES: &str = "-object memory-backend-ram,id=m0,size=768M \
    -object memory-backend-ram,id=m1,size=768M \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1";

/// A PATH on which QEMU is one that adds [`NODES`] and `cpus` to what it is told; `name` is its
/// folder.
fn path_with(name: &str, cpus: &str) -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let qemu = env::split_paths(&path)
        .map(|folder| folder.join("qemu-system-x86_64"))
        .find(|file| file.is_file());
    let qemu = qemu.expect("QEMU is there; `scripts/setup.sh vm` installs it");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let file = folder.join("qemu-system-x86_64");
    let text = format!(
        "#!/bin/sh\nexec '{}' \"$@\" {cpus} {NODES}\n",
        qemu.display()
    );
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
    let path = path_with("vm-nodes", CORES);
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

/// Every policy under hogs that may run anywhere and 80 tasks that talk to each other, and what a
/// recording says of the machine: which CPUs share a core, and a node.
#[test]
#[ignore = "boots a kernel: make test-vm"]
fn every_shipped_policy_runs_on_two_nodes_of_cores_with_two_threads() {
    let path = path_with("vm-threads", THREADS);
    let policies: Vec<&str> = policies::ALL.iter().map(|policy| policy.name).collect();
    let names = policies.join(" ");
    let script = format!(
        "{LOADS}
        runslice record --for 100ms -o /tmp/recorded.dat
        grep -o '{{\"cpu\":[^}}]*}}' /tmp/recorded.dat
        for policy in {names}; do threads $policy; done"
    );
    for kernel in KERNELS {
        let mut words = vec!["--kernel", kernel, "--det", "--mips", "125", "--cpus", "4"];
        words.extend(["--memory", "1536", "--timeout", "900s", "--kernel-log"]);
        words.extend(["--with", "runslice", "--with", "hackbench", "--"]);
        words.extend(["sh", "-c", &script]);
        let text = said(&vm_with_path(&path, &words));
        for (cpu, core, node) in [(0, "0-1", 0), (1, "0-1", 0), (2, "2-3", 1), (3, "2-3", 1)] {
            let begin = format!("{{\"cpu\":{cpu},\"core\":\"{core}\"");
            let facts = text.split_once(&begin).map(|(_, rest)| rest);
            let facts = facts.and_then(|rest| rest.split('}').next());
            let node = format!("\"node\":{node}");
            assert!(
                facts.is_some_and(|facts| facts.contains(&node)),
                "{kernel}: CPU {cpu}: {facts:?}\n{text}"
            );
        }
        for policy in &policies {
            let ending = line_of(&text, "result", policy, "threads");
            let idle = ending.and_then(|ending| ending.strip_prefix("0 disabled "));
            let idle = idle.and_then(|idle| idle.parse::<u32>().ok());
            // Each CPU has a hog, whichever share a core.
            assert!(
                idle.is_some_and(|idle| idle < 10),
                "{kernel} {policy}: {text}"
            );
        }
        assert_eq!(complaints(&text), [""; 0], "{kernel}: {text}");
    }
}
