//! What a policy asks of a kernel's configuration.

use std::collections::BTreeMap;
use std::io::Read as _;

use bpf::{Image, MapKind};
use flate2::bufread::GzDecoder;
use model::Advice;

/// Bytes of a configuration that are read; kernels have about 300 KiB.
const MOST: u64 = 16 << 20;
/// How a file that gzip packed begins, as `/proc/config.gz` does (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A kernel's configuration: `/boot/config-VERSION`, `.config` or `/proc/config.gz`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelConfig {
    /// By name, with `CONFIG_`.
    options: BTreeMap<String, String>,
}

/// Why bytes are no configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No line of one was found.
    #[error("not a kernel's configuration: no line sets an option such as `CONFIG_BPF=y`")]
    NotAConfig,
    /// More than any kernel has.
    #[error("the configuration has more than 16 MiB")]
    TooLong,
    /// What gzip packed cannot be unpacked.
    #[error("the packed configuration is cut or changed")]
    Damaged,
}

impl Advice for ConfigError {
    fn advice(&self) -> Option<String> {
        Some("give /boot/config-VERSION, a kernel's .config or /proc/config.gz".to_owned())
    }
}

impl KernelConfig {
    /// Reads a configuration, packed by gzip or not. Lines that set nothing are passed over, and of
    /// an option that is set twice the last line counts, as in Kconfig.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, ConfigError> {
        let mut plain = Vec::new();
        let bytes = if bytes.starts_with(&GZIP) {
            let unpacked = GzDecoder::new(bytes).take(MOST + 1).read_to_end(&mut plain);
            unpacked.map_err(|_| ConfigError::Damaged)?;
            &plain
        } else {
            bytes
        };
        if bytes.len() as u64 > MOST {
            return Err(ConfigError::TooLong);
        }
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter_map(setting);
        let options: BTreeMap<_, _> = lines.collect();
        if options.is_empty() {
            return Err(ConfigError::NotAConfig);
        }
        Ok(Self { options })
    }

    /// The value of an option, as written; `None` if it is not set.
    #[must_use]
    pub fn value(&self, option: &str) -> Option<&str> {
        let value = self.options.get(option).map(String::as_str);
        value.filter(|value| *value != "n")
    }

    /// Ticks a second.
    #[must_use]
    pub fn hz(&self) -> Option<u32> {
        self.value("CONFIG_HZ")?.parse().ok()
    }
}

/// `CONFIG_HZ=250` or `# CONFIG_X is not set`.
fn setting(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let unset = line.strip_prefix("# ");
    let unset = unset.and_then(|line| line.strip_suffix(" is not set"));
    let (name, value) = unset
        .map(|name| (name, "n"))
        .or_else(|| line.split_once('='))?;
    let letters = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_name = name.starts_with("CONFIG_") && name.chars().all(letters);
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// An option that a policy needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigNeed {
    /// With `CONFIG_`.
    pub option: &'static str,
    /// What of the policy needs it.
    pub by: String,
}

/// The options without which a kernel does not load or attach the policy: sched_ext's own
/// (kernel/Kconfig.preempt, 6.18), and those of its callbacks, programs, functions and maps.
#[must_use]
pub fn needs(image: &Image) -> Vec<ConfigNeed> {
    let mut needs = Vec::new();
    let mut add = |option, by: &str| {
        if !needs.iter().any(|it: &ConfigNeed| it.option == option) {
            let by = by.to_owned();
            needs.push(ConfigNeed { option, by });
        }
    };
    for option in OF_SCHED_EXT {
        add(option, "sched_ext");
    }
    let members = image.struct_ops.iter().flat_map(|table| &table.members);
    for (member, _) in members {
        for (beginning, option) in OF_MEMBERS {
            if member.starts_with(beginning) {
                add(option, &format!("the callback `{member}`"));
            }
        }
    }
    for program in image.programs.iter().filter(|program| program.autoload) {
        let kind = program.section.split(['/', '.']).next().unwrap_or_default();
        for (section, options) in OF_SECTIONS {
            if *section == kind {
                for option in *options {
                    add(option, &format!("the program `{}`", program.name));
                }
            }
        }
    }
    for import in image.imports.iter().filter(|it| !it.callers.is_empty()) {
        for (beginning, option) in OF_FUNCTIONS {
            if import.name.starts_with(beginning) {
                add(option, &format!("the function `{}`", import.name));
            }
        }
    }
    for map in &image.maps {
        if map.kind == MapKind::CgrpStorage {
            add("CONFIG_CGROUPS", &format!("the map `{}`", map.name));
        }
    }
    needs
}

/// `SCHED_CLASS_EXT` depends on the others.
const OF_SCHED_EXT: [&str; 4] = [
    "CONFIG_SCHED_CLASS_EXT",
    "CONFIG_BPF_SYSCALL",
    "CONFIG_BPF_JIT",
    "CONFIG_DEBUG_INFO_BTF",
];

/// By the beginning of a callback's name: the kernel has the member with the option alone
/// (`struct sched_ext_ops`, 6.18 and 7.3).
const OF_MEMBERS: &[(&str, &str)] = &[
    ("cgroup_", "CONFIG_EXT_GROUP_SCHED"),
    ("cpuctl_", "CONFIG_EXT_GROUP_SCHED"),
    ("sub_", "CONFIG_EXT_SUB_SCHED"),
];

/// By the first word of a program's section (libbpf's table of sections): what attaches it.
const OF_SECTIONS: &[(&str, &[&str])] = &[
    ("fentry", FTRACE),
    ("fexit", FTRACE),
    ("fmod_ret", FTRACE),
    ("kprobe", KPROBES),
    ("kretprobe", KPROBES),
    ("uprobe", UPROBES),
    ("uretprobe", UPROBES),
    ("usdt", UPROBES),
    ("tp", EVENTS),
    ("tracepoint", EVENTS),
    ("tp_btf", &["CONFIG_TRACEPOINTS"]),
    ("raw_tp", &["CONFIG_TRACEPOINTS"]),
    ("raw_tracepoint", &["CONFIG_TRACEPOINTS"]),
    ("perf_event", &["CONFIG_PERF_EVENTS"]),
    ("lsm", &["CONFIG_BPF_LSM"]),
];
const FTRACE: &[&str] = &[
    "CONFIG_FUNCTION_TRACER",
    "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
];
const KPROBES: &[&str] = &["CONFIG_KPROBES", "CONFIG_KPROBE_EVENTS"];
const UPROBES: &[&str] = &["CONFIG_UPROBES", "CONFIG_UPROBE_EVENTS"];
const EVENTS: &[&str] = &["CONFIG_EVENT_TRACING", "CONFIG_PERF_EVENTS"];

/// By the beginning of a kernel function's name: the kernel has it with the option alone.
const OF_FUNCTIONS: &[(&str, &str)] = &[
    ("scx_bpf_task_cgroup", "CONFIG_CGROUP_SCHED"),
    ("bpf_cgroup_", "CONFIG_CGROUPS"),
    ("bpf_iter_css_", "CONFIG_CGROUPS"),
    ("bpf_task_get_cgroup", "CONFIG_CGROUPS"),
    ("bpf_task_under_cgroup", "CONFIG_CGROUPS"),
    ("scx_bpf_sub_", "CONFIG_EXT_SUB_SCHED"),
];

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bpf::MemberValue;
    use model::Kernel;

    use super::*;

    const TEXT: &str = "#\n# Automatically generated\n#\nCONFIG_HZ=1000\n\
        # CONFIG_SCHED_CLASS_EXT is not set\nCONFIG_BPF_SYSCALL=y\nCONFIG_KPROBES=m\n\
        CONFIG_CC_VERSION_TEXT=\"gcc = 14\"\n";

    #[test]
    fn a_configuration_is_read_as_text_and_packed() {
        let config = KernelConfig::read(TEXT.as_bytes()).unwrap();
        assert_eq!(config.hz(), Some(1000));
        assert_eq!(config.value("CONFIG_SCHED_CLASS_EXT"), None);
        assert_eq!(config.value("CONFIG_KPROBES"), Some("m"));
        assert_eq!(config.value("CONFIG_CC_VERSION_TEXT"), Some("\"gcc = 14\""));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(TEXT.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(KernelConfig::read(&packed), Ok(config));
        let cut = KernelConfig::read(&packed[..packed.len() / 2]);
        assert_eq!(cut, Err(ConfigError::Damaged));
    }

    #[test]
    fn what_is_no_configuration_or_a_bomb_is_refused() {
        for bytes in [
            &b""[..],
            b"hello\n",
            b"# CONFIG_ is",
            b"X=y\n",
            b"\xff\xfe=",
        ] {
            assert_eq!(KernelConfig::read(bytes), Err(ConfigError::NotAConfig));
        }
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&vec![b'\n'; MOST as usize + 5]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(KernelConfig::read(&packed), Err(ConfigError::TooLong));
    }

    #[test]
    fn callbacks_programs_and_functions_need_their_options_and_no_others_do() {
        let object = policies::find("fifo").unwrap().object;
        let object = bpf::Object::parse(object).unwrap();
        let mut image = crate::kernel::link(&object, Kernel::V6_18).unwrap();
        let options = |image: &Image| {
            let needs = needs(image).into_iter();
            needs.map(|it| it.option).collect::<Vec<_>>()
        };
        assert_eq!(options(&image), OF_SCHED_EXT);
        let member = ("cgroup_init".to_owned(), MemberValue::Program(0));
        image.struct_ops[0].members.push(member);
        image.programs[0].section = "fentry.s/do_exit".to_owned();
        image.imports[0].name = "scx_bpf_task_cgroup".to_owned();
        let more = [
            "CONFIG_EXT_GROUP_SCHED",
            "CONFIG_FUNCTION_TRACER",
            "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
            "CONFIG_CGROUP_SCHED",
        ];
        assert_eq!(options(&image)[OF_SCHED_EXT.len()..], more);
        image.programs[0].autoload = false;
        assert!(!options(&image).contains(&"CONFIG_FUNCTION_TRACER"));
    }
}
