//! What a policy asks of a kernel's configuration.

use bpf::{Image, MapKind};
use model::KernelConfig;

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
    for option in KernelConfig::OF_SCHED_EXT {
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
    use bpf::MemberValue;
    use model::Kernel;

    use super::*;

    #[test]
    fn callbacks_programs_and_functions_need_their_options_and_no_others_do() {
        let object = policies::find("fifo").unwrap().object;
        let object = bpf::Object::parse(object).unwrap();
        let mut image = crate::kernel::link(&object, Kernel::V6_18).unwrap();
        let options = |image: &Image| {
            let needs = needs(image).into_iter();
            needs.map(|it| it.option).collect::<Vec<_>>()
        };
        assert_eq!(options(&image), KernelConfig::OF_SCHED_EXT);
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
        assert_eq!(options(&image)[KernelConfig::OF_SCHED_EXT.len()..], more);
        image.programs[0].autoload = false;
        assert!(!options(&image).contains(&"CONFIG_FUNCTION_TRACER"));
    }
}
