//! The files of the simulated machine, as its programs find them below `/sys`, `/proc`, `/boot`
//! and `/run`: a real folder, since programs list and stat what they read.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use folder::OwnFolder;
use model::user_space::SchedExt;
use model::{CpuGroups, CpuId, CpuTimes, MachineSpec, Nanos, CpuPlaces};
use rustix::fs::AtFlags;

use crate::anchor::Anchor;

mod hardware;

/// Facts of the simulated machine that programs can see.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// CPUs, cores, caches and nodes, and the kernel's version.
    pub machine: MachineSpec,
    /// The kernel's own types: `/sys/kernel/btf/vmlinux`.
    pub btf: Vec<u8>,
    /// Lines of the kernel's configuration, besides those that every simulated kernel has.
    pub config: String,
    /// Control groups below the root: their paths without a leading `/`, and their ids, which
    /// programs read as inode numbers.
    pub cgroups: Vec<(String, u64)>,
    /// More files, or others in place of those made here: absolute paths and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Folders of which programs see the tree's alone.
pub const OWN: &[&str] = &["sys", "proc", "boot", "run"];
/// Folders into which programs may write; what is not there is looked for on the host.
pub const SCRATCH: &[&str] = &["tmp", "var/tmp", "dev/shm"];

/// Frequency of each CPU in kHz: no simulated CPU changes it.
const KHZ: u32 = 3_000_000;

/// The folder. The program may rename what is in it and put links there, so nothing is read or
/// written by a path from the host's root: see [`Anchor`].
#[derive(Debug)]
pub struct FolderTree {
    folder: OwnFolder,
    root: PathBuf,
    anchor: Anchor,
    cgroups: Vec<(String, u64)>,
}

impl FolderTree {
    /// Makes the folder and all files.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(shown: &Shown) -> io::Result<Self> {
        let folder = OwnFolder::new()?;
        let root = folder.path().canonicalize()?.join("r");
        fs::create_dir(&root)?;
        let tree = Self {
            folder,
            anchor: Anchor::at(&root)?,
            root,
            cgroups: shown.cgroups.clone(),
        };
        for name in OWN.iter().chain(SCRATCH) {
            tree.anchor.make_folders(Path::new(name))?;
        }
        // A machine without a network card has this device.
        let loopback = "sys/class/net/lo";
        for name in ["sys/fs/bpf", "run/scx", "proc/self", "sys/fs/cgroup", loopback] {
            tree.anchor.make_folders(Path::new(name))?;
        }
        let places = shown.machine.places();
        for cpu in (0..shown.machine.cpus).map(CpuId) {
            tree.cpu(&shown.machine, &places, cpu)?;
        }
        tree.cpus(&shown.machine)?;
        tree.nodes(&shown.machine, &places)?;
        if let Some(hardware) = &shown.machine.hardware {
            tree.energy_model(hardware)?;
        }
        tree.kernel(shown)?;
        tree.proc(&shown.machine, &places)?;
        for (path, _) in &shown.cgroups {
            tree.cgroup(path)?;
        }
        tree.cgroup("")?;
        for (path, content) in &shown.files {
            tree.put(path, content)?;
        }
        tree.show_sched_ext(&SchedExt::default())?;
        tree.show_times(&vec![CpuTimes::default(); shown.machine.cpus.into()], Nanos::new(0))?;
        Ok(tree)
    }

    /// The folder that stands for `/`, where it was made.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that stands for `/`.
    #[must_use]
    pub const fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// The folder in which the tree is. No path of the program leads into it.
    #[must_use]
    pub const fn folder(&self) -> &OwnFolder {
        &self.folder
    }

    /// The inode number that a program sees of the folder of a control group; `below` is its path
    /// below the root.
    #[must_use]
    pub fn cgroup_id(&self, below: &Path) -> Option<u64> {
        let path = below.strip_prefix("sys/fs/cgroup").ok()?.to_str()?;
        if path.is_empty() {
            return Some(1);
        }
        let found = self.cgroups.iter().find(|(name, _)| name == path)?;
        Some(found.1)
    }

    /// Writes a file of the tree; nothing else here writes one.
    fn put(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let parts = path.split('/').filter(|it| !it.is_empty() && *it != "..");
        self.anchor.write(&parts.collect::<PathBuf>(), content)
    }

    fn line(&self, path: &str, text: impl std::fmt::Display) -> io::Result<()> {
        self.put(path, format!("{text}\n").as_bytes())
    }

    fn cpu(&self, machine: &MachineSpec, places: &CpuPlaces, cpu: CpuId) -> io::Result<()> {
        let base = format!("sys/devices/system/cpu/cpu{cpu}");
        let node = places.nodes.of(cpu);
        let (core, cluster) = hardware::core_and_cluster(machine, places, cpu);
        let siblings = group(&places.cores, cpu);
        let in_node = group(&places.nodes, cpu);
        self.line(&format!("{base}/online"), 1)?;
        self.capacity(machine, cpu, &base)?;
        self.line(&format!("{base}/power/pm_qos_resume_latency_us"), 0)?;
        let of_node = format!("sys/devices/system/node/node{node}");
        self.anchor.make_folders(Path::new(&of_node))?;
        for (target, link) in [
            (format!("../../node/node{node}"), format!("{base}/node{node}")),
            (format!("../../cpu/cpu{cpu}"), format!("{of_node}/cpu{cpu}")),
        ] {
            let (folder, name) = self.anchor.folder_of(Path::new(&link))?;
            rustix::fs::symlinkat(target, folder, name)?;
        }
        for (name, value) in [
            ("core_id", core.to_string()),
            ("physical_package_id", node.to_string()),
            ("cluster_id", cluster.to_string()),
            ("die_id", "0".into()),
            ("thread_siblings_list", siblings.clone()),
            ("core_cpus_list", siblings.clone()),
            ("core_siblings_list", in_node.clone()),
            ("package_cpus_list", in_node.clone()),
        ] {
            self.line(&format!("{base}/topology/{name}"), value)?;
        }
        let hardware = machine.hardware.as_deref();
        let l2 = hardware.map_or(0, |it| it.class(cpu.0).core_bytes >> 10);
        let llc = usize::from(places.llcs.of(cpu));
        let llc = hardware.and_then(|it| it.llc_bytes.get(llc)).map_or(0, |size| size >> 10);
        let or = |size: u64, usual: u64| if size == 0 { usual } else { size };
        for (index, level, kind, size, shared) in [
            (0, 1, "Data", 32, &places.cores),
            (1, 1, "Instruction", 32, &places.cores),
            (2, 2, "Unified", or(l2, 1024), &places.l2s),
            (3, 3, "Unified", or(llc, 32768), &places.llcs),
        ] {
            let base = format!("{base}/cache/index{index}");
            self.line(&format!("{base}/id"), shared.of(cpu))?;
            self.line(&format!("{base}/level"), level)?;
            self.line(&format!("{base}/type"), kind)?;
            self.line(&format!("{base}/size"), format!("{size}K"))?;
            self.line(&format!("{base}/coherency_line_size"), 64)?;
            self.line(&format!("{base}/shared_cpu_list"), group(shared, cpu))?;
        }
        self.frequencies(machine, cpu, &base)
    }

    fn cpus(&self, machine: &MachineSpec) -> io::Result<()> {
        let base = "sys/devices/system/cpu";
        let all = list(0, machine.cpus);
        for name in ["online", "possible", "present"] {
            self.line(&format!("{base}/{name}"), &all)?;
        }
        self.line(&format!("{base}/offline"), "")?;
        self.line(&format!("{base}/isolated"), "")?;
        self.line(&format!("{base}/kernel_max"), 8191)?;
        self.line(&format!("{base}/smt/active"), u8::from(machine.smt > 1))?;
        let control = if machine.smt > 1 { "on" } else { "notsupported" };
        self.line(&format!("{base}/smt/control"), control)?;
        let policy = format!("{base}/cpufreq/policy0");
        self.line(&format!("{policy}/scaling_governor"), "performance")?;
        self.line(&format!("{policy}/energy_performance_preference"), "performance")
    }

    fn nodes(&self, machine: &MachineSpec, places: &CpuPlaces) -> io::Result<()> {
        let base = "sys/devices/system/node";
        let nodes = places.nodes.count();
        for name in ["online", "possible", "has_cpu", "has_memory"] {
            self.line(&format!("{base}/{name}"), list(0, nodes))?;
        }
        for (node, cpus) in (0..nodes).zip(places.nodes.iter()) {
            let hardware = machine.hardware.as_ref();
            let told = hardware.and_then(|it| it.places.as_ref()?.distances.get(usize::from(node)));
            let usual = |other| if other == node { 10 } else { 20 };
            let distance = told.cloned().unwrap_or_else(|| (0..nodes).map(usual).collect());
            let distance: Vec<_> = distance.iter().map(u16::to_string).collect();
            self.line(&format!("{base}/node{node}/cpulist"), ranges(cpus))?;
            self.line(&format!("{base}/node{node}/distance"), distance.join(" "))?;
        }
        Ok(())
    }

    fn kernel(&self, shown: &Shown) -> io::Result<()> {
        let release = release(&shown.machine);
        self.put("sys/kernel/btf/vmlinux", &shown.btf)?;
        // What `CONFIG_FUNCTION_TRACER` gives: loaders look for it, since `fentry` needs it.
        self.line("sys/kernel/tracing/available_tracers", "function_graph function nop")?;
        let events = "sched:sched_switch\nsched:sched_wakeup\nsched:sched_wakeup_new";
        self.line("sys/kernel/tracing/available_events", events)?;
        self.line("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")?;
        let config = "CONFIG_BPF=y\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\n\
                      CONFIG_DEBUG_INFO_BTF=y\nCONFIG_FUNCTION_TRACER=y\n\
                      CONFIG_SCHED_CLASS_EXT=y";
        let (hz, more) = (shown.machine.hz, &shown.config);
        let config = format!("{more}{config}\nCONFIG_HZ_{hz}=y");
        self.line(&format!("boot/config-{release}"), config)
    }

    fn proc(&self, machine: &MachineSpec, places: &CpuPlaces) -> io::Result<()> {
        let release = release(machine);
        for (name, value) in [
            ("kernel/osrelease", release.as_str()),
            ("kernel/ostype", "Linux"),
            ("kernel/hostname", "runslice"),
            ("kernel/pid_max", "4194304"),
            ("kernel/threads-max", "100000"),
            ("kernel/cap_last_cap", "40"),
            ("kernel/ftrace_enabled", "1"),
            ("kernel/perf_event_paranoid", "2"),
            ("kernel/unprivileged_bpf_disabled", "2"),
            ("kernel/random/boot_id", "00000000-0000-4000-8000-000000000000"),
            ("vm/compact_unevictable_allowed", "1"),
            ("vm/overcommit_memory", "0"),
            ("vm/max_map_count", "65530"),
            ("net/core/bpf_jit_enable", "1"),
        ] {
            self.line(&format!("proc/sys/{name}"), value)?;
        }
        let mounts = "sysfs /sys sysfs rw 0 0\nproc /proc proc rw 0 0\n\
                      bpf /sys/fs/bpf bpf rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n\
                      tracefs /sys/kernel/tracing tracefs rw 0 0";
        let has_debugfs = machine.hardware.as_ref().is_some_and(|it| it.sysfs.is_some());
        let debugfs = if has_debugfs { "\ndebugfs /sys/kernel/debug debugfs rw 0 0" } else { "" };
        let mounts = &format!("{mounts}{debugfs}");
        self.line("proc/mounts", mounts)?;
        self.line("proc/self/mounts", mounts)?;
        let info = "1 0 0:1 / / rw - ext4 none rw\n2 1 0:2 / /sys rw - sysfs sysfs rw\n\
                    3 1 0:3 / /proc rw - proc proc rw\n\
                    4 2 0:4 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
                    5 2 0:5 / /sys/fs/bpf rw - bpf bpf rw";
        self.line("proc/self/mountinfo", info)?;
        self.line("proc/self/cgroup", "0::/")?;
        self.line("proc/self/oom_score_adj", 0)?;
        self.line("proc/filesystems", "nodev\tsysfs\nnodev\tproc\nnodev\tcgroup2\nnodev\tbpf")?;
        self.line("proc/version", format!("Linux version {release} (runslice)"))?;
        self.line("proc/loadavg", "0.00 0.00 0.00 1/100 100")?;
        self.line("proc/cmdline", "runslice")?;
        // Addresses are hidden, as from users who are not root.
        self.line("proc/kallsyms", "0000000000000000 T bpf_scx_reg")?;
        let memory = "MemTotal:       16777216 kB\nMemFree:        12582912 kB\n\
                      MemAvailable:   12582912 kB\nSwapTotal:             0 kB\n\
                      SwapFree:              0 kB";
        self.line("proc/meminfo", memory)?;
        let mut cpus = String::new();
        for cpu in (0..machine.cpus).map(CpuId) {
            let node = places.nodes.of(cpu);
            let _ = writeln!(
                cpus,
                "processor\t: {cpu}\nvendor_id\t: runslice\ncpu family\t: 6\nmodel\t\t: 1\n\
                 model name\t: simulated\ncpu MHz\t\t: {}.000\nphysical id\t: {node}\n\
                 core id\t\t: {}\nflags\t\t: fpu tsc\n",
                KHZ / 1000,
                places.cores.of(cpu),
            );
        }
        self.put("proc/cpuinfo", cpus.as_bytes())
    }

    fn cgroup(&self, path: &str) -> io::Result<()> {
        let base = format!("sys/fs/cgroup/{path}");
        self.line(&format!("{base}/cgroup.controllers"), "cpuset cpu memory pids")?;
        self.line(&format!("{base}/cgroup.subtree_control"), "cpuset cpu")?;
        self.put(&format!("{base}/cgroup.procs"), b"")?;
        self.put(&format!("{base}/cgroup.threads"), b"")?;
        if path.is_empty() {
            return Ok(());
        }
        self.line(&format!("{base}/cpu.weight"), 100)?;
        self.line(&format!("{base}/cpu.max"), "max 100000")
    }

    /// Writes what `/sys/kernel/sched_ext` tells now.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn show_sched_ext(&self, now: &SchedExt) -> io::Result<()> {
        let base = "sys/kernel/sched_ext";
        let state = if now.attached.is_some() { "enabled" } else { "disabled" };
        self.line(&format!("{base}/state"), state)?;
        self.line(&format!("{base}/hotplug_seq"), now.hotplug)?;
        self.line(&format!("{base}/enable_seq"), u8::from(now.attached.is_some()))?;
        self.line(&format!("{base}/nr_rejected"), 0)?;
        self.line(&format!("{base}/switch_all"), u8::from(now.attached.is_some()))?;
        match &now.attached {
            Some(name) => self.line(&format!("{base}/root/ops"), name),
            None => {
                let ops = format!("{base}/root/ops");
                self.anchor.remove(Path::new(&ops), AtFlags::empty())?;
                // What the program has put there keeps the folder.
                let root = format!("{base}/root");
                Ok(self.anchor.remove(Path::new(&root), AtFlags::REMOVEDIR)?)
            }
        }
    }

    /// Writes `/proc/stat` and `/proc/uptime` as they are now.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn show_times(&self, cpus: &[CpuTimes], now: Nanos) -> io::Result<()> {
        let idle: u64 = cpus.iter().map(|it| it.idle.get()).sum();
        let seconds = |nanos: u64| {
            let cents = nanos / 10_000_000;
            format!("{}.{:02}", cents / 100, cents % 100)
        };
        let uptime = format!("{} {}", seconds(now.get()), seconds(idle));
        self.line("proc/uptime", uptime)?;
        self.put("proc/stat", stat(cpus).as_bytes())
    }
}

/// The text of `/proc/stat`, in hundredths of a second: user is work, system the scheduler's, irq
/// what was stolen. Linux 6.18, fs/proc/stat.c.
fn stat(cpus: &[CpuTimes]) -> String {
    let fields = |times: &CpuTimes| {
        let ticks = |time: Nanos| time.get() / 10_000_000;
        let (user, system) = (ticks(times.run), ticks(times.overhead));
        let (idle, irq) = (ticks(times.idle), ticks(times.stolen));
        format!("{user} 0 {system} {idle} 0 {irq} 0 0 0 0")
    };
    let mut all = CpuTimes::default();
    let mut lines = String::new();
    for (cpu, times) in cpus.iter().enumerate() {
        let _ = writeln!(lines, "cpu{cpu} {}", fields(times));
        all.run += times.run;
        all.stolen += times.stolen;
        all.idle += times.idle;
        all.overhead += times.overhead;
        all.switches += times.switches;
    }
    format!(
        "cpu  {}\n{lines}intr 0\nctxt {}\nbtime {}\nprocesses 1\nprocs_running 1\n\
         procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
        fields(&all),
        all.switches,
        crate::clock::EPOCH.get() / 1_000_000_000,
    )
}

/// The release that `uname` tells.
#[must_use]
pub fn release(machine: &MachineSpec) -> String {
    let code = machine.kernel.version_code();
    format!("{}.{}.{}", code >> 16, code >> 8 & 0xff, code & 0xff)
}

fn list(first: u16, count: u16) -> String {
    match count {
        0 => String::new(),
        1 => first.to_string(),
        _ => format!("{first}-{}", first + count - 1),
    }
}

/// The CPUs of a group, lowest first, as the kernel lists them: `0-3,8`.
fn ranges(cpus: &[CpuId]) -> String {
    let follows = |a: &CpuId, b: &CpuId| a.0 + 1 == b.0;
    let ranges: Vec<_> = cpus
        .chunk_by(follows)
        .map(|part| list(part[0].0, part.len() as u16))
        .collect();
    ranges.join(",")
}

/// The CPUs that are in a group with `cpu`.
fn group(groups: &CpuGroups, cpu: CpuId) -> String {
    ranges(groups.with(cpu))
}

#[cfg(test)]
mod tests;
