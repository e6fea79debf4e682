//! What the kernel was built with, where it tells.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use model::KernelConfig;

/// Without these a policy runs, and something else does not.
pub const USEFUL: [(&str, &str); 2] = [
    (
        "CONFIG_BPF_EVENTS",
        "play and trace cannot record, and run cannot count a command's tasks",
    ),
    (
        "CONFIG_SCHEDSTATS",
        "the kernel keeps no counters for each CPU and domain in /proc/schedstat",
    ),
];

/// No configuration is longer; those of distributions have 300 kB.
const LONGEST: u64 = 8 << 20;

/// The options of sched_ext and among [`USEFUL`] that the kernel was built without. Empty also
/// where nothing tells.
pub fn lacking(root: &Path, release: &str) -> Vec<&'static str> {
    // The kernel itself knows best; else where distributions put it.
    let files = [
        "proc/config.gz".to_owned(),
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
    ];
    // What is cut off or no configuration tells nothing.
    let Some(config) = files.iter().find_map(|name| read(&root.join(name))) else {
        return Vec::new();
    };
    let useful = USEFUL.iter().map(|(option, _)| *option);
    let all = KernelConfig::OF_SCHED_EXT.into_iter().chain(useful);
    all.filter(|option| config.value(option) != Some("y"))
        .collect()
}

fn read(path: &Path) -> Option<KernelConfig> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    KernelConfig::read(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::PathBuf;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const TEXT: &str = "# Linux/x86 6.18.0 Kernel Configuration\nCONFIG_BPF_SYSCALL=y\n\
        # CONFIG_SCHED_CLASS_EXT is not set\nCONFIG_BPF_JIT=y\nCONFIG_BPF_JIT_ALWAYS_ON=y\n\
        CONFIG_DEBUG_INFO_BTF_MODULES=y\nCONFIG_SCHEDSTATS=y\n";

    const LACKING: [&str; 3] = [
        "CONFIG_SCHED_CLASS_EXT",
        "CONFIG_DEBUG_INFO_BTF",
        "CONFIG_BPF_EVENTS",
    ];

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("runslice-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::create_dir_all(root.join("boot")).unwrap();
        root
    }

    #[test]
    fn options_are_found_where_kernels_and_distributions_put_them() {
        let root = root("config");
        assert_eq!(lacking(&root, "6.18.0"), [""; 0]);
        fs::write(root.join("boot/config-6.18.0"), TEXT).unwrap();
        assert_eq!(lacking(&root, "6.18.0"), LACKING);
        assert_eq!(lacking(&root, "6.18.1"), [""; 0], "of another kernel");
        // The kernel itself knows best.
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        let all = KernelConfig::OF_SCHED_EXT
            .map(|option| format!("\n{option}=y"))
            .concat();
        packed.write_all(all.as_bytes()).unwrap();
        fs::write(root.join("proc/config.gz"), packed.finish().unwrap()).unwrap();
        let useful = USEFUL.map(|(option, _)| option);
        assert_eq!(lacking(&root, "6.18.0"), useful);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_broken_configuration_tells_nothing() {
        let root = root("broken-config");
        fs::write(root.join("proc/config.gz"), b"\x1f\x8bnot packed").unwrap();
        assert_eq!(lacking(&root, "6.18.0"), [""; 0]);
        fs::write(root.join("boot/config-6.18.0"), "").unwrap();
        assert_eq!(lacking(&root, "6.18.0"), [""; 0]);
        fs::remove_dir_all(root).unwrap();
    }
}
