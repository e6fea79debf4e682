//! Looks at what no event says: the machine, and what each thread may do.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::Snapshot;
use model::snapshot::{CpuFacts, GroupFacts, Moment, SNAPSHOT_VERSION, ThreadFacts};

use crate::SchedExt;

/// Most bytes of a file that is looked at.
const FILE: u64 = 1 << 16;
/// Most threads that are looked at; the numbers of a kernel end at 4 million.
const THREADS: usize = 1 << 20;
/// Most CPUs that are looked at.
const CPUS: usize = 1024;
/// Most groups that are looked at.
const GROUPS: usize = 1 << 16;
/// The inode of the first pid namespace (`PROC_PID_INIT_INO`, `include/linux/proc_ns.h`, 6.18).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// A kernel thread (`PF_KTHREAD`, include/linux/sched.h, 6.18).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Looks at the machine and at all threads, through the files below `root`, which is `/` but in
/// tests. The end is empty: [`end`] adds it.
///
/// Inside of a pid namespace the threads are left out: the kernel's events have other numbers.
#[must_use]
pub fn begin(root: &Path, hz: Option<u32>) -> Snapshot {
    Snapshot {
        runslice_snapshot: SNAPSHOT_VERSION,
        kernel: text(root, "proc/sys/kernel/osrelease"),
        scheduler: SchedExt::below(root).policy(),
        hz,
        autogroup: text(root, "proc/sys/kernel/sched_autogroup_enabled") == "1",
        online: text(root, "sys/devices/system/cpu/online"),
        cpus: cpus(root),
        recorder: std::process::id(),
        switch_ns: None,
        begin: moment(root),
        end: Moment::default(),
    }
}

/// Looks again, and adds what differs from the begin.
pub fn end(snapshot: &mut Snapshot, root: &Path) {
    let mut now = moment(root);
    let before: HashSet<_> = snapshot.begin.threads.iter().map(key).collect();
    now.threads.retain(|thread| !before.contains(&key(thread)));
    now.groups
        .retain(|group| !snapshot.begin.groups.contains(group));
    snapshot.end = now;
}

/// All that is known of a thread, to find those that changed.
fn key(thread: &ThreadFacts) -> (u32, u32, &str, (i8, u32, u8), &str, &str) {
    let ThreadFacts {
        pid,
        process,
        comm,
        nice,
        policy,
        realtime,
        cpus,
        group,
        ..
    } = thread;
    (
        *pid,
        *process,
        comm,
        (*nice, *policy, *realtime),
        cpus,
        group,
    )
}

/// Whether this process sees the numbers of threads that the kernel's events have.
#[must_use]
pub fn sees_all(root: &Path) -> bool {
    let namespace = fs::read_link(root.join("proc/self/ns/pid"));
    namespace.is_ok_and(|name| name.to_string_lossy() == FIRST_NAMESPACE)
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;

    // At once, as these files are written.
    let mut bytes = Vec::with_capacity(1 << 12);
    fs::File::open(path)?.take(FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file's text, without its end of line; empty when there is none.
fn text(root: &Path, name: &str) -> String {
    let bytes = bytes(&root.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// The numbers that entries of a folder have behind `prefix`, the least first.
fn numbers(folder: &Path, prefix: &str, most: usize) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut numbers: Vec<u32> = names
        .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
        .take(most)
        .collect();
    numbers.sort_unstable();
    numbers
}

fn cpus(root: &Path) -> Vec<CpuFacts> {
    let folder = root.join("sys/devices/system/cpu");
    let nodes = root.join("sys/devices/system/node");
    let mut node_of = HashMap::new();
    for node in numbers(&nodes, "node", CPUS) {
        let list = text(&nodes, &format!("node{node}/cpulist"));
        for cpu in model::snapshot::cpus_of(&list) {
            node_of.insert(u32::from(cpu), node);
        }
    }
    let facts = |cpu: u32| {
        let own = folder.join(format!("cpu{cpu}"));
        CpuFacts {
            cpu,
            core: text(&own, "topology/thread_siblings_list"),
            llc: last_cache(&own.join("cache")),
            node: node_of.get(&cpu).copied(),
            capacity: text(&own, "cpu_capacity").parse().ok(),
        }
    };
    let all = numbers(&folder, "cpu", CPUS).into_iter().map(facts);
    // One that is offline has no place.
    all.filter(|facts| !facts.core.is_empty()).collect()
}

/// The CPUs that share the cache of the highest level.
fn last_cache(folder: &Path) -> String {
    let caches = numbers(folder, "index", 16)
        .into_iter()
        .filter_map(|index| {
            let level: u32 = text(folder, &format!("index{index}/level")).parse().ok()?;
            Some((
                level,
                text(folder, &format!("index{index}/shared_cpu_list")),
            ))
        });
    let last = caches.max_by_key(|(level, _)| *level);
    last.map(|(_, list)| list).unwrap_or_default()
}

fn moment(root: &Path) -> Moment {
    if !sees_all(root) {
        return Moment::default();
    }
    let proc = root.join("proc");
    let mut threads = Vec::new();
    let mut paths = BTreeMap::new();
    for process in numbers(&proc, "", THREADS) {
        let own = proc.join(process.to_string());
        let group = group_of(&text(&own, "cgroup"));
        for pid in numbers(&own.join("task"), "", THREADS - threads.len()) {
            // It may have ended meanwhile.
            let Some(mut thread) = thread(&own.join(format!("task/{pid}")), pid) else {
                continue;
            };
            thread.process = if pid == process { 0 } else { process };
            if let Some((_, path)) = &group {
                thread.group.clone_from(path);
            }
            threads.push(thread);
        }
        if let Some((is_old, path)) = group {
            paths.insert(path, is_old);
        }
    }
    threads.sort_by_key(|thread| thread.pid);
    Moment {
        groups: groups(root, paths),
        threads,
    }
}

/// One thread; `None` if it is gone.
fn thread(folder: &Path, pid: u32) -> Option<ThreadFacts> {
    let stat = text(folder, "stat");
    // The name stands in brackets and may have any in it.
    let (_, rest) = stat.split_once('(')?;
    let (comm, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // From the third field on (man 5 proc_pid_stat).
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    let status = text(folder, "status");
    let cpus = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Some(ThreadFacts {
        pid,
        process: 0,
        comm: comm.chars().take(64).collect(),
        nice: i8::try_from(number(19)?).ok()?,
        policy: number(41).and_then(|it| it.try_into().ok()).unwrap_or(0),
        realtime: number(40).and_then(|it| it.try_into().ok()).unwrap_or(0),
        kernel: number(9).is_some_and(|flags| flags.cast_unsigned() & PF_KTHREAD != 0),
        cpus: cpus.unwrap_or_default().trim().to_owned(),
        group: String::new(),
    })
}

/// The group of a process by its `/proc/PID/cgroup`, and whether it is one of version 1.
fn group_of(text: &str) -> Option<(bool, String)> {
    let mut newer = None;
    for line in text.lines() {
        // number:controllers:path
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_path = path.starts_with('/') && !path.split('/').any(|part| part == "..");
        if !is_path {
            continue;
        }
        if controllers.split(',').any(|it| it == "cpu") {
            return Some((true, path.to_owned()));
        }
        if controllers.is_empty() {
            newer = Some((false, path.to_owned()));
        }
    }
    newer
}

/// What the groups at these paths set, and those above them. The root sets nothing.
fn groups(root: &Path, paths: BTreeMap<String, bool>) -> Vec<GroupFacts> {
    let mut all = BTreeMap::new();
    for (path, is_old) in paths {
        for (at, _) in path.match_indices('/').skip(1) {
            all.insert(path[..at].to_owned(), is_old);
        }
        all.insert(path, is_old);
    }
    all.remove("/");
    let facts = all.into_iter().take(GROUPS).map(|(path, is_old)| {
        let facts = if is_old { old_group } else { new_group };
        facts(&place(root, is_old, &path), path)
    });
    facts.collect()
}

fn place(root: &Path, is_old: bool, path: &str) -> PathBuf {
    let mounts = root.join("sys/fs/cgroup");
    let candidates: &[&str] = if is_old {
        &["cpu", "cpu,cpuacct", "cpuacct,cpu"]
    } else {
        &["", "unified"]
    };
    let below = path.trim_start_matches('/');
    let mut places = candidates
        .iter()
        .map(|mount| mounts.join(mount).join(below));
    places.find(|place| place.is_dir()).unwrap_or(mounts)
}

fn new_group(place: &Path, path: String) -> GroupFacts {
    let max = text(place, "cpu.max");
    let (quota, period) = max.split_once(' ').unwrap_or_default();
    let quota_us = quota.parse().ok();
    GroupFacts {
        path,
        weight: text(place, "cpu.weight").parse().ok(),
        quota_us,
        period_us: quota_us.and(period.parse().ok()),
        idle: text(place, "cpu.idle") == "1",
    }
}

/// Version 1 has shares, of which 1024 are what a weight of 100 is.
fn old_group(place: &Path, path: String) -> GroupFacts {
    let shares = text(place, "cpu.shares").parse::<u64>().ok();
    let weight = shares.map(|shares| (shares.min(1 << 20) * 100 / 1024).clamp(1, 10_000));
    let quota_us = text(place, "cpu.cfs_quota_us").parse().ok();
    GroupFacts {
        path,
        weight: weight.and_then(|weight| u32::try_from(weight).ok()),
        quota_us,
        period_us: quota_us.and(text(place, "cpu.cfs_period_us").parse().ok()),
        idle: text(place, "cpu.idle") == "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A system of files.
    fn system(files: &[(&str, &str)]) -> folder::OwnFolder {
        let root = folder::OwnFolder::new().unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(root.join("proc/self/ns")).unwrap();
        symlink(FIRST_NAMESPACE, root.join("proc/self/ns/pid")).unwrap();
        root
    }

    /// `/proc/PID/stat`: nice, real-time priority and policy are the 19th, 40th and 41st field.
    fn stat(comm: &str, nice: i8, realtime: u8, policy: u32) -> String {
        format!(
            "7 ({comm}) S 1 7 7 0 -1 2097152 0 0 0 0 0 0 0 0 20 {nice} 1 0 500 0 0 0 0 0 0 0 0 0 0 \
             0 0 0 0 0 17 3 {realtime} {policy} 0\n"
        )
    }

    #[test]
    fn threads_have_what_was_set_for_them_whatever_their_name() {
        let root = system(&[
            ("proc/7/cgroup", "0::/a/b\n"),
            ("proc/7/task/7/stat", &stat("x) (y) 1 2", -5, 0, 0)),
            (
                "proc/7/task/7/status",
                "Name:\tx\nCpus_allowed_list:\t0-1,3\n",
            ),
            ("proc/7/task/9/stat", &stat("rt\u{1b}[2J", 0, 42, 1)),
            ("proc/7/task/11/stat", "no stat"),
            ("proc/8/task/8/stat", &stat("lonely", 19, 0, 3)),
            ("sys/fs/cgroup/a/cpu.weight", "300\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "20000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.idle", "1\n"),
        ]);
        let mut snapshot = begin(root.path(), Some(250));
        let threads = &snapshot.begin.threads;
        let numbers: Vec<_> = threads.iter().map(|it| (it.pid, it.process)).collect();
        assert_eq!(numbers, [(7, 0), (8, 0), (9, 7)]);
        assert_eq!(threads[0].comm, "x) (y) 1 2");
        assert_eq!((threads[0].nice, &*threads[0].cpus), (-5, "0-1,3"));
        assert_eq!((threads[2].policy, threads[2].realtime), (1, 42));
        assert!(threads[0].kernel, "the flags have PF_KTHREAD");
        assert_eq!((threads[1].policy, &*threads[1].group), (3, ""));
        assert_eq!(threads[2].group, "/a/b");
        let groups = &snapshot.begin.groups;
        assert_eq!((&*groups[0].path, groups[0].weight), ("/a", Some(300)));
        assert_eq!(
            (groups[1].quota_us, groups[1].period_us),
            (Some(20_000), Some(100_000))
        );
        assert!(groups[1].idle);
        // Afterwards: one has another nice value, and nothing else is told again.
        fs::write(root.join("proc/8/task/8/stat"), stat("lonely", 3, 0, 0)).unwrap();
        end(&mut snapshot, root.path());
        let changed: Vec<_> = snapshot
            .end
            .threads
            .iter()
            .map(|it| (it.pid, it.nice))
            .collect();
        assert_eq!(changed, [(8, 3)]);
        assert!(snapshot.end.groups.is_empty());
    }

    #[test]
    fn groups_of_version_1_have_a_weight_too() {
        let root = system(&[
            (
                "proc/7/cgroup",
                "12:cpu,cpuacct:/old\n1:name=systemd:/x\n0::/y\n",
            ),
            ("proc/7/task/7/stat", &stat("a", 0, 0, 0)),
            ("sys/fs/cgroup/cpu,cpuacct/old/cpu.shares", "2048\n"),
            ("sys/fs/cgroup/cpu,cpuacct/old/cpu.cfs_quota_us", "-1\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/old/cpu.cfs_period_us",
                "100000\n",
            ),
        ]);
        let groups = begin(root.path(), None).begin.groups;
        assert_eq!(groups.len(), 1);
        assert_eq!((&*groups[0].path, groups[0].weight), ("/old", Some(200)));
        assert_eq!((groups[0].quota_us, groups[0].period_us), (None, None));
        assert_eq!(
            group_of("0::/../../etc\n"),
            None,
            "it leads out of the tree"
        );
    }

    #[test]
    fn in_a_namespace_of_its_own_no_threads_are_told_and_the_machine_is() {
        let root = system(&[
            ("proc/7/task/7/stat", &stat("a", 0, 0, 0)),
            ("proc/sys/kernel/osrelease", "4.19.0-27-amd64\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            (
                "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
                "0-1\n",
            ),
            ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
            (
                "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
                "0\n",
            ),
            ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
            (
                "sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
                "0-1\n",
            ),
            ("sys/devices/system/cpu/cpu9/online", "0\n"),
            ("sys/devices/system/node/node1/cpulist", "0-1\n"),
        ]);
        fs::remove_file(root.join("proc/self/ns/pid")).unwrap();
        symlink("pid:[4026532001]", root.join("proc/self/ns/pid")).unwrap();
        let snapshot = begin(root.path(), None);
        assert!(snapshot.begin.threads.is_empty());
        assert_eq!(
            (&*snapshot.kernel, &*snapshot.online),
            ("4.19.0-27-amd64", "0-1")
        );
        let want = CpuFacts {
            cpu: 0,
            core: "0-1".to_owned(),
            llc: "0-1".to_owned(),
            node: Some(1),
            capacity: None,
        };
        assert_eq!(snapshot.cpus, [want]);
    }

    #[test]
    fn this_machine_has_this_thread() {
        let snapshot = begin(Path::new("/"), None);
        if sees_all(Path::new("/")) {
            let own = std::process::id();
            let found = snapshot
                .begin
                .threads
                .iter()
                .find(|thread| thread.pid == own);
            assert!(
                found.is_some_and(|thread| !thread.cpus.is_empty()),
                "{found:?}"
            );
        }
        assert!(!snapshot.online.is_empty() && !snapshot.cpus.is_empty());
    }
}
