use super::*;

fn tree(machine: MachineSpec) -> FolderTree {
    FolderTree::new(&Shown {
        machine,
        btf: b"types".to_vec(),
        config: "CONFIG_PREEMPT_RCU=y\n".into(),
        cgroups: vec![("work".into(), 77)],
        files: vec![("/../proc/extra".into(), b"x".to_vec())],
    })
    .unwrap()
}

#[test]
fn the_configuration_is_that_of_the_simulated_kernel() {
    let machine = MachineSpec::default();
    let path = format!("boot/config-{}", release(&machine));
    let config = read(&tree(machine), &path);
    for line in ["CONFIG_PREEMPT_RCU=y", "CONFIG_BPF=y", "CONFIG_HZ_250=y"] {
        assert_eq!(config.lines().filter(|it| *it == line).count(), 1, "{line}: {config}");
    }
}

fn read(tree: &FolderTree, path: &str) -> String {
    fs::read_to_string(tree.root().join(path)).unwrap()
}

#[test]
fn two_nodes_of_two_caches_of_two_cores_of_two_threads() {
    let machine = MachineSpec {
        cpus: 16,
        smt: 2,
        llc: 4,
        node: 8,
        ..MachineSpec::default()
    };
    let tree = tree(machine);
    let cpu = |path: &str| read(&tree, &format!("sys/devices/system/cpu/{path}"));
    assert_eq!(cpu("online"), "0-15\n");
    assert_eq!(cpu("smt/active"), "1\n");
    assert_eq!(cpu("cpu13/topology/core_id"), "6\n");
    assert_eq!(cpu("cpu13/topology/physical_package_id"), "1\n");
    assert_eq!(cpu("cpu13/topology/thread_siblings_list"), "12-13\n");
    assert_eq!(cpu("cpu13/cache/index3/shared_cpu_list"), "12-15\n");
    assert_eq!(cpu("cpu13/cache/index3/id"), "3\n");
    assert_eq!(cpu("cpu7/cache/index3/id"), "1\n");
    let node = |path: &str| read(&tree, &format!("sys/devices/system/node/{path}"));
    assert_eq!(node("node1/cpulist"), "8-15\n");
    assert_eq!(node("node1/distance"), "20 10\n");
    let devices = fs::read_dir(tree.root().join("sys/class/net")).unwrap();
    let devices: Vec<_> = devices.flatten().map(|it| it.file_name()).collect();
    assert_eq!(devices, ["lo"]);
}

#[test]
fn groups_end_where_their_node_ends() {
    let machine = MachineSpec {
        cpus: 7,
        llc: 2,
        node: 5,
        ..MachineSpec::default()
    };
    let places = machine.places();
    assert_eq!(group(&places.llcs, CpuId(4)), "4");
    assert_eq!(group(&places.llcs, CpuId(5)), "5-6");
    assert_eq!(group(&places.nodes, CpuId(6)), "5-6");
}

#[test]
fn a_program_finds_the_capacity_of_each_cpu() {
    let tree = tree(MachineSpec {
        cpus: 2,
        hardware: Some(Box::new(model::Hardware::of_capacities(&[400, 1024]))),
        ..MachineSpec::default()
    });
    let of = |cpu| read(&tree, &format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"));
    assert_eq!((of(0), of(1)), ("400\n".into(), "1024\n".into()));
}

fn of_hardware(name: &str) -> FolderTree {
    let hardware = model::Hardware::find(name).unwrap();
    tree(MachineSpec::default().with_hardware(hardware))
}

fn of_cpu(tree: &FolderTree, cpu: u16, file: &str) -> Option<String> {
    let path = format!("sys/devices/system/cpu/cpu{cpu}/{file}");
    let text = fs::read_to_string(tree.root().join(path)).ok()?;
    Some(text.trim_end().to_owned())
}

#[test]
fn each_kind_of_computer_has_its_own_files() {
    let arm = of_hardware("pixel6");
    assert_eq!(of_cpu(&arm, 5, "cpu_capacity").as_deref(), Some("498"));
    assert_eq!(of_cpu(&arm, 5, "acpi_cppc/highest_perf"), None);
    assert_eq!(of_cpu(&arm, 5, "cpufreq/base_frequency"), None);
    assert_eq!(of_cpu(&arm, 5, "cpufreq/related_cpus").as_deref(), Some("4-5"));
    assert_eq!(of_cpu(&arm, 5, "cpufreq/cpuinfo_max_freq").as_deref(), Some("2253000"));
    assert_eq!(of_cpu(&arm, 5, "cpufreq/scaling_governor").as_deref(), Some("schedutil"));
    let model = "sys/kernel/debug/energy_model/cpu4";
    assert_eq!(read(&arm, &format!("{model}/cpus")), "4-5\n");
    assert_eq!(read(&arm, &format!("{model}/ps:2253000/power")), "599600\n");
    assert!(read(&arm, "proc/mounts").contains("debugfs /sys/kernel/debug"));
    arm.show_frequencies(&[300_000, 300_000]).unwrap();
    let now = |cpu| of_cpu(&arm, cpu, "cpufreq/scaling_cur_freq");
    assert_eq!((now(1).as_deref(), now(5).as_deref()), (Some("300000"), Some("2253000")));
    let intel = of_hardware("i7-13700h");
    assert_eq!(of_cpu(&intel, 12, "cpu_capacity"), None);
    assert_eq!(of_cpu(&intel, 12, "cpufreq/cpuinfo_max_freq").as_deref(), Some("3700000"));
    assert_eq!(of_cpu(&intel, 0, "cpufreq/cpuinfo_max_freq").as_deref(), Some("5000000"));
    assert_eq!(of_cpu(&intel, 1, "topology/thread_siblings_list").as_deref(), Some("0-1"));
    assert_eq!(of_cpu(&intel, 13, "topology/thread_siblings_list").as_deref(), Some("13"));
    assert_eq!(of_cpu(&intel, 13, "cache/index2/shared_cpu_list").as_deref(), Some("12-15"));
    assert!(!intel.root().join("sys/kernel/debug/energy_model").exists());
    let amd = of_hardware("epyc-9654-2p");
    assert_eq!(of_cpu(&amd, 7, "topology/core_cpus_list").as_deref(), Some("7,199"));
    assert_eq!(read(&amd, "sys/devices/system/node/node1/distance"), "32 10\n");
    let x3d = of_hardware("ryzen-7950x3d");
    let rank = "cpufreq/amd_pstate_prefcore_ranking";
    assert_eq!(of_cpu(&x3d, 0, rank).as_deref(), Some("166"));
    assert_eq!(of_cpu(&x3d, 16, rank).as_deref(), Some("236"));
    assert_eq!(of_cpu(&x3d, 0, "cache/index3/size").as_deref(), Some("98304K"));
}

/// What programs take for the capacity of each CPU: the first of these files of which CPUs have
/// different ones.
///
/// Source: `scx_utils`, topology.rs.
fn capacities(tree: &FolderTree, cpus: u16) -> Vec<u64> {
    let files = [
        "cpufreq/amd_pstate_prefcore_ranking",
        "cpufreq/amd_pstate_highest_perf",
        "acpi_cppc/highest_perf",
        "cpu_capacity",
        "cpufreq/cpuinfo_max_freq",
    ];
    let of_all = |file: &&str| -> Option<Vec<u64>> {
        (0..cpus).map(|cpu| of_cpu(tree, cpu, file)?.parse().ok()).collect()
    };
    let differs = |all: &Vec<u64>| all.iter().any(|it| *it != all[0]);
    files.iter().filter_map(of_all).find(differs).unwrap_or_default()
}

/// The CPUs below the mean, which programs call little if the biggest has so many tenths of the
/// smallest one's capacity.
fn little(name: &str, cpus: u16, tenths: u64) -> Vec<usize> {
    let all = capacities(&of_hardware(name), cpus);
    let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
    let is_wide = most * 10 >= least * tenths;
    let (sum, count): (u64, u64) = (all.iter().sum(), cpus.into());
    let is_little = |cpu: &usize| is_wide && all[*cpu] * count < sum;
    (0..all.len()).filter(is_little).collect()
}

/// O10: E cores of 3.7 GHz beside 5.0 GHz are little for programs from scx 2137 on, and for none
/// with its earlier threshold. A phone has the kinds that a user's log of scx 1991 has. By the
/// ranks of its cores the die with the large cache is little, too.
#[test]
fn programs_find_little_cpus_where_reports_have_them() {
    assert_eq!(little("i7-13700h", 20, 15), Vec::<usize>::new());
    assert_eq!(little("i7-13700h", 20, 13), (12..20).collect::<Vec<_>>());
    assert_eq!(little("pixel6", 8, 13), [0, 1, 2, 3]);
    assert_eq!(little("ryzen-7950x3d", 32, 13), (0..16).collect::<Vec<_>>());
}

/// A CPU as programs sort it: its place in the core and how many threads that seems to have, by
/// numbers of cores that come several times on arm, and its capacity.
fn sorted(by: impl Fn([i64; 3]) -> [i64; 3]) -> Vec<u16> {
    let tree = of_hardware("pixel6");
    let core = |cpu: &u16| of_cpu(&tree, *cpu, "topology/core_id").unwrap();
    let capacities = capacities(&tree, 8);
    let key = |cpu: &u16| {
        let with = (0..8).filter(|other| core(other) == core(cpu));
        let place = with.clone().filter(|other| other < cpu).count();
        let number = |count: usize| i64::try_from(count).unwrap();
        let capacity = i64::try_from(capacities[usize::from(*cpu)]).unwrap();
        by([number(place), number(with.count()), capacity])
    };
    let mut all: Vec<u16> = (0..8).collect();
    all.sort_by_key(key);
    all
}

/// O5, scx 1991: the orders that lavd logs on a Pixel 6 up to 1.0.12, which the numbers of cores
/// explain, and the one from 1.0.13 on. The report expected 0 and 1 before 2 and 3 there.
#[test]
fn lavd_sorts_the_cpus_of_a_phone_as_reported() {
    let performance = sorted(|[place, threads, capacity]| [place, -capacity, threads]);
    assert_eq!(performance, [2, 3, 0, 1, 4, 5, 6, 7]);
    let powersave = sorted(|[place, threads, capacity]| [capacity, -threads, place]);
    assert_eq!(powersave, [0, 1, 2, 3, 4, 5, 6, 7]);
    let mended = sorted(|[place, threads, capacity]| [-capacity, place, threads]);
    assert_eq!(mended, [6, 7, 4, 5, 2, 3, 0, 1]);
    let cluster = |cpu| of_cpu(&of_hardware("pixel6"), cpu, "topology/cluster_id");
    assert_eq!(cluster(5).as_deref(), Some("1"));
    let server = of_cpu(&of_hardware("graviton3"), 63, "topology/core_id");
    assert_eq!(server.as_deref(), Some("63"));
}

#[test]
fn a_group_that_is_no_block_is_listed_as_the_kernel_does() {
    let halves = [0, 1, 4, 5, 6, 9].map(CpuId);
    assert_eq!(ranges(&halves), "0-1,4-6,9");
    assert_eq!(ranges(&[]), "");
}

#[test]
fn the_kernel_tells_its_types_its_times_and_its_policy() {
    let tree = tree(MachineSpec::default());
    assert_eq!(read(&tree, "sys/kernel/btf/vmlinux"), "types");
    assert_eq!(read(&tree, "proc/sys/kernel/osrelease"), "6.18.15\n");
    assert_eq!(read(&tree, "proc/extra"), "x");
    let work = Path::new("sys/fs/cgroup/work");
    assert_eq!(tree.cgroup_id(work), Some(77));
    assert_eq!(tree.cgroup_id(&work.join("cpu.weight")), None);
    let times = CpuTimes {
        run: Nanos::new(1_230_000_000),
        idle: Nanos::new(2_000_000_000),
        stolen: Nanos::new(50_000_000),
        switches: 9,
        ..CpuTimes::default()
    };
    tree.show_times(&[times, times], Nanos::new(3_610_000_000)).unwrap();
    let text = read(&tree, "proc/stat");
    assert!(text.starts_with("cpu  246 0 0 400 0 10 0 0 0 0\ncpu0 123 0 0 200 0 5"), "{text}");
    assert!(text.contains("ctxt 18\n"), "{text}");
    assert_eq!(read(&tree, "proc/uptime"), "3.61 4.00\n");
    let on = SchedExt {
        attached: Some("bpfland".into()),
        hotplug: 2,
    };
    tree.show_sched_ext(&on).unwrap();
    assert_eq!(read(&tree, "sys/kernel/sched_ext/root/ops"), "bpfland\n");
    assert_eq!(read(&tree, "sys/kernel/sched_ext/hotplug_seq"), "2\n");
    tree.show_sched_ext(&SchedExt::default()).unwrap();
    assert!(!tree.root().join("sys/kernel/sched_ext/root").exists());
}

/// Every file and folder below a folder of the tree, by the paths below the root.
fn all(tree: &FolderTree, below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(tree.root().join(below)).unwrap().flatten() {
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            all(tree, &path, found);
        }
        found.push(path);
    }
}

/// Writes what changes, and files that are made once.
fn write_all(tree: &FolderTree, files: &[&PathBuf]) {
    for attached in [None, Some("late".into()), None] {
        let now = SchedExt {
            attached,
            hotplug: 7,
        };
        let _ = tree.show_sched_ext(&now);
        let _ = tree.show_times(&[CpuTimes::default()], Nanos::new(1));
    }
    for file in files {
        let _ = tree.put(file.to_str().unwrap(), b"written by the supervisor");
    }
}

/// What lies outside and must stay: a file at the path of each file of the tree.
struct Victim(OwnFolder);

impl Victim {
    fn new(files: &[PathBuf]) -> Self {
        let folder = OwnFolder::new().unwrap();
        for file in files {
            let at = folder.path().join(file);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, "kept").unwrap();
        }
        Self(folder)
    }

    fn facts(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
                found.push((entry.path(), fs::read(entry.path()).unwrap_or_default()));
            }
        }
        found.sort();
        found
    }
}

/// Puts a link in the place of one path after the other, each leading outside.
fn plant(which: impl Fn(&Path) -> bool) -> usize {
    let spec = MachineSpec {
        cpus: 1,
        ..MachineSpec::default()
    };
    let attached = SchedExt {
        attached: Some("early".into()),
        hotplug: 1,
    };
    let make = || {
        let tree = tree(spec.clone());
        tree.show_sched_ext(&attached).unwrap();
        tree
    };
    let tree = make();
    let mut paths = Vec::new();
    all(&tree, Path::new(""), &mut paths);
    let is_file = |it: &&PathBuf| tree.root().join(it).is_file();
    let files: Vec<_> = paths.iter().filter(is_file).cloned().collect();
    let victim = Victim::new(&files);
    let before = victim.facts();
    let planted: Vec<_> = paths.iter().filter(|it| which(&tree.root().join(it))).collect();
    for path in &planted {
        tree.show_sched_ext(&attached).unwrap();
        let at = tree.root().join(path);
        let aside = tree.root().join("aside");
        fs::rename(&at, &aside).unwrap();
        std::os::unix::fs::symlink(victim.0.path().join(path), &at).unwrap();
        let below: Vec<_> = files.iter().filter(|it| it.starts_with(path)).collect();
        write_all(&tree, &below);
        assert_eq!(victim.facts(), before, "{}", path.display());
        // The file stands there again, or the link does, which leads nowhere else.
        if at.is_symlink() || at.is_file() {
            fs::remove_file(&at).unwrap();
        }
        fs::rename(&aside, &at).unwrap();
    }
    // Deleting follows none of them either.
    let tree = make();
    for (n, path) in planted.iter().enumerate() {
        let at = tree.root().join(path);
        // Some are gone with the folder above them.
        if fs::rename(&at, tree.folder().join(&n.to_string())).is_ok() {
            std::os::unix::fs::symlink(victim.0.path(), &at).unwrap();
        }
    }
    let root = tree.root().to_owned();
    drop(tree);
    assert!(!root.exists());
    assert_eq!(victim.facts(), before);
    planted.len()
}

#[test]
fn no_link_at_a_file_that_is_written_leads_outside() {
    assert!(plant(Path::is_file) > 50);
}

#[test]
fn no_link_at_a_folder_above_a_file_that_is_written_leads_outside() {
    assert!(plant(|path| path.is_dir() && !path.is_symlink()) > 20);
}

#[test]
fn a_file_is_written_anew_where_something_else_was_put() {
    let tree = tree(MachineSpec::default());
    let times = |seconds| {
        tree.show_times(&[CpuTimes::default()], Nanos::from_secs(seconds)).unwrap();
    };
    let uptime = tree.root().join("proc/uptime");
    fs::remove_file(&uptime).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &uptime).unwrap();
    times(5);
    assert!(!uptime.is_symlink());
    assert_eq!(read(&tree, "proc/uptime"), "5.00 0.00\n");
    fs::remove_file(&uptime).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&uptime).unwrap();
    times(6);
    assert_eq!(read(&tree, "proc/uptime"), "6.00 0.00\n");
    // Without its folder, which the program has renamed.
    fs::rename(tree.root().join("proc"), tree.root().join("run/proc")).unwrap();
    times(7);
    assert_eq!(read(&tree, "proc/uptime"), "7.00 0.00\n");
}
