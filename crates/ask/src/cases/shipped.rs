//! The cases of the project, and the loads beside them.

use super::case::PublicCase;
use super::read;
use crate::services::Services;
use crate::workload_arg::Written;

/// A file: its name without the ending, and what it says.
type ShippedFile = (&'static str, &'static str);

macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../cases/", $folder, $name, ".toml")))),*]
    };
}

/// Every file of cases/.
pub(super) const CASES: &[ShippedFile] = files!["":
    "beerland-one-waits",
    "bpfland-affinity",
    "bpfland-config",
    "bpfland-local-refilled",
    "bpfland-no-smt",
    "bpfland-node-queue",
    "bpfland-primary",
    "bpfland-rt",
    "bpfland-weight",
    "chaos-no-cpu",
    "chaos-quiet-cpu",
    "cosmos-deferred",
    "cosmos-sleeper-lag",
    "cosmos-slice",
    "cosmos-suspend",
    "flash-auto-dispatch",
    "flash-forgotten-kick",
    "flash-migrate-disabled",
    "flash-overtaking",
    "flash-primary",
    "flash-rr",
    "flash-rt",
    "flash-tickless",
    "flash-weight",
    "kernel-nohz-full",
    "lavd-capacity",
    "lavd-cpu-bw",
    "lavd-desktop-latency",
    "lavd-fork-race",
    "lavd-hackbench",
    "lavd-idle-total",
    "lavd-lost-update",
    "lavd-migrate-disabled",
    "lavd-reenq",
    "layered-affinity",
    "mitosis-bound",
    "mitosis-cpuset",
    "mitosis-empty-cell",
    "mitosis-local",
    "mitosis-long-run",
    "mitosis-outside",
    "mitosis-vtime",
    "p2dq-612",
    "p2dq-affinity",
    "p2dq-affinity-window",
    "p2dq-idle-bit",
    "p2dq-migrate-disabled",
    "p2dq-stale-mask",
    "p2dq-vtime",
    "p2dq-weight",
    "rustland-kick",
    "rusty-hotplug",
    "rusty-ksoftirqd",
    "tickless-spread",
];

/// Every file of cases/loads/.
pub(super) const LOADS: &[ShippedFile] = files!["loads/":
    "bound-beside-hogs",
    "bound-kworkers",
    "bound-outside",
    "desktop-rt",
    "flash-overtaking",
    "hogs-beside-workers",
    "idle-delayed",
    "lavd-reenq",
    "local-refilled",
    "low-weight-alone",
    "migrate-disabled",
    "nearly-full",
    "nice-gap",
    "node-queue",
    "outside-primary",
    "pinned-hogs",
    "rt-takes-cpu",
    "sections-rt",
    "tick-spare",
    "tickless-rt",
];

/// Reads a case that is built in.
///
/// # Errors
/// When it is wrong.
pub(super) fn read((name, text): &ShippedFile) -> anyhow::Result<PublicCase> {
    let file = format!("cases/{name}.toml");
    read::case((name, text), &file, &load)
}

/// The load that a case names: one beside the cases, or one that is built in.
fn load(file: &str) -> anyhow::Result<Written> {
    let named = file.strip_prefix("loads/");
    let named = named.and_then(|it| it.strip_suffix(".toml"));
    match LOADS.iter().find(|(name, _)| named == Some(name)) {
        Some((_, text)) => Ok(Written {
            file: format!("cases/{file}"),
            text: (*text).to_owned(),
        }),
        None => Written::find(&Services::default(), file),
    }
}
