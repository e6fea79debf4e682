//! What else of scheduling the kernel tells, for the export: switches and queues under the names
//! that the node exporter gives them, and sched_ext's state and events.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::exposition::{Exposition, Kind, Value};

/// Most bytes of a file of the kernel that are read: /proc/stat of a thousand CPUs has 150 kB.
const MOST: u64 = 4 << 20;

/// Lines of /proc/stat, and what the node exporter calls them.
const STAT: [(&str, &str, Kind, &str); 4] = [
    (
        "ctxt",
        "node_context_switches_total",
        Kind::Counter,
        "Context switches.",
    ),
    (
        "processes",
        "node_forks_total",
        Kind::Counter,
        "Tasks that were forked.",
    ),
    (
        "procs_running",
        "node_procs_running",
        Kind::Gauge,
        "Tasks that run or are runnable.",
    ),
    (
        "procs_blocked",
        "node_procs_blocked",
        Kind::Gauge,
        "Tasks that wait for a disk.",
    ),
];

/// The columns of /proc/loadavg.
const LOAD: [(&str, &str); 3] = [
    ("node_load1", "Load average of a minute."),
    ("node_load5", "Load average of five minutes."),
    ("node_load15", "Load average of fifteen minutes."),
];

/// Adds everything below `root` that is there: the folder that has `proc` and `sys`.
pub fn add(out: &mut Exposition, root: &Path) {
    if let Some(text) = read(&root.join("proc/stat")) {
        for (key, name, kind, help) in STAT {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(first, _)| *first == key);
            if let Some(value) = found.and_then(|(_, rest)| rest.trim().parse::<u64>().ok()) {
                out.family(name, kind, help);
                out.value(&[], Value::Whole(value));
            }
        }
    }
    if let Some(text) = read(&root.join("proc/loadavg")) {
        for ((name, help), value) in LOAD.into_iter().zip(text.split(' ')) {
            // What the kernel prints there has two digits behind the point.
            if let Some(value) = value.parse().ok().filter(|it: &f64| it.is_finite()) {
                out.family(name, Kind::Gauge, help);
                out.value(&[], Value::Number(value, 2));
            }
        }
    }
    if let Some(micros) = read(&root.join("proc/pressure/cpu")).and_then(|text| waited(&text)) {
        let name = "node_pressure_cpu_waiting_seconds_total";
        let help = "Time in which some task waited for a CPU.";
        out.family(name, Kind::Counter, help);
        out.value(&[], Value::Micros(micros));
    }
    add_sched_ext(out, &root.join("sys/kernel/sched_ext"));
}

fn read(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path)
        .ok()?
        .take(MOST)
        .read_to_end(&mut text)
        .ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The microseconds of the line `some`.
fn waited(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_once("total=")?.1.trim().parse().ok()
}

/// The state of sched_ext (Documentation/scheduler/sched-ext.rst, kernel 6.18).
fn add_sched_ext(out: &mut Exposition, folder: &Path) {
    let Some(state) = read(&folder.join("state")) else {
        return;
    };
    let name = "runslice_sched_ext_enabled";
    let help = "Whether a policy is attached, and which.";
    out.family(name, Kind::Gauge, help);
    let ops = read(&folder.join("root/ops")).unwrap_or_default();
    let is_on = u64::from(state.trim() == "enabled");
    out.value(&[("ops", ops.trim())], Value::Whole(is_on));
    for (file, name, help) in [
        ("enable_seq", "enables", "How often a policy was attached."),
        ("nr_rejected", "rejected", "Tasks that a policy refused."),
        ("hotplug_seq", "hotplugs", "How often a CPU came or went."),
    ] {
        let value = read(&folder.join(file)).and_then(|it| it.trim().parse::<u64>().ok());
        if let Some(value) = value {
            let name = format!("runslice_sched_ext_{name}_total");
            out.family(name, Kind::Counter, help);
            out.value(&[], Value::Whole(value));
        }
    }
    let Some(events) = read(&folder.join("root/events")) else {
        return;
    };
    let name = "runslice_sched_ext_events_total";
    let help = "Events of the attached policy, by the kernel's name.";
    out.family(name, Kind::Counter, help);
    for line in events.lines() {
        let Some((event, value)) = line.split_once(' ') else {
            continue;
        };
        // A counter of the kernel is signed, and never negative.
        if let Ok(value) = value.trim().parse::<u64>() {
            let event = event.strip_prefix("SCX_EV_").unwrap_or(event);
            out.value(&[("event", event)], Value::Whole(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_has_its_name_and_what_it_does_not_is_left_out() {
        let root = folder::OwnFolder::new().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "proc/stat",
            "cpu  1 2 3\nctxt 77\nprocesses 5\nprocs_running 2\n",
        );
        write("proc/loadavg", "0.25 1.50 nan 1/2 3\n");
        write(
            "proc/pressure/cpu",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n",
        );
        write("sys/kernel/sched_ext/state", "enabled\n");
        write("sys/kernel/sched_ext/root/ops", "mi\"ne\n");
        write("sys/kernel/sched_ext/enable_seq", "3\n");
        write(
            "sys/kernel/sched_ext/root/events",
            "SCX_EV_DISPATCH_KEEP_LAST 9\nSCX_EV_BYPASS_DURATION -1\ntorn\n",
        );
        let mut out = Exposition::default();
        add(&mut out, root.path());
        let out = out.prometheus();
        let values: Vec<&str> = out.lines().filter(|line| !line.starts_with('#')).collect();
        let want = [
            "node_context_switches_total 77",
            "node_forks_total 5",
            "node_procs_running 2",
            "node_load1 0.25",
            "node_load5 1.50",
            "node_pressure_cpu_waiting_seconds_total 1.500000",
            "runslice_sched_ext_enabled{ops=\"mi\\\"ne\"} 1",
            "runslice_sched_ext_enables_total 3",
            "runslice_sched_ext_events_total{event=\"DISPATCH_KEEP_LAST\"} 9",
        ];
        assert_eq!(values, want);
    }

    #[test]
    fn a_machine_that_tells_nothing_exports_nothing() {
        let root = folder::OwnFolder::new().unwrap();
        let mut out = Exposition::default();
        add(&mut out, root.path());
        assert_eq!(out.prometheus(), "");
    }
}
