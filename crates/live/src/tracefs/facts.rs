//! What stands in the way of a recording through tracefs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::preflight::{PreflightFinding, Severity};

/// Where trace files are, the newer place first.
const PLACES: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// The folder of trace files, where it can be used.
    pub tracefs: Option<PathBuf>,
    /// This process is root.
    pub is_root: bool,
    /// The kernel has such files at all.
    pub is_built_in: bool,
    /// A folder of trace files is there, and this process may not look into it.
    pub is_closed: bool,
    /// It is there, and nothing can be made in it.
    pub is_read_only: bool,
    /// The kernel hides itself from programs (lockdown mode `confidentiality`).
    pub is_locked_down: bool,
    /// This process is in a container, as far as that can be seen.
    pub is_contained: bool,
}

impl TraceFacts {
    /// Looks at the machine through the files below `root`, which is `/` but in tests.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        let mut facts = Self {
            is_root: crate::process::is_root(),
            is_built_in: read("proc/filesystems")
                .lines()
                .any(|it| it.ends_with("\ttracefs")),
            is_locked_down: read("sys/kernel/security/lockdown").contains("[confidentiality]"),
            is_contained: ["run/.containerenv", ".dockerenv", "run/systemd/container"]
                .iter()
                .any(|name| root.join(name).exists()),
            ..Self::default()
        };
        for place in PLACES.map(|place| root.join(place)) {
            match usable(&place) {
                Ok(()) => {
                    facts.tracefs = Some(place);
                    break;
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::PermissionDenied => facts.is_closed = true,
                    io::ErrorKind::ReadOnlyFilesystem => facts.is_read_only = true,
                    _ => {}
                },
            }
        }
        facts
    }
}

/// Whether buffers can be made there, as far as that shows without making one.
fn usable(place: &Path) -> io::Result<()> {
    fs::File::open(place.join("events/header_page"))?;
    let instances = place.join("instances");
    fs::read_dir(&instances)?;
    rustix::fs::access(&instances, rustix::fs::Access::WRITE_OK)?;
    Ok(())
}

/// What keeps a recording from using tracefs, and what to do; empty if nothing does.
#[must_use]
pub fn obstacles(facts: &TraceFacts) -> Vec<PreflightFinding> {
    if facts.tracefs.is_some() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut find = |what: &str, way_out: &str| {
        findings.push(PreflightFinding {
            severity: Severity::Blocks,
            what: what.to_owned(),
            way_out: way_out.to_owned(),
        });
    };
    if facts.is_locked_down {
        find(
            "the kernel is locked down (confidentiality) and shows no traces",
            "boot without lockdown=confidentiality",
        );
    } else if !facts.is_built_in {
        find(
            "the kernel has no trace files (tracefs)",
            "boot a kernel with CONFIG_FTRACE=y and CONFIG_SCHED_TRACER=y or \
             CONFIG_ENABLE_DEFAULT_TRACERS=y",
        );
    } else if !facts.is_root {
        find(
            "the trace files belong to root",
            "run it as root: sudo runslice record",
        );
    } else if facts.is_read_only {
        find(
            "the trace files cannot be written: they are mounted for reading only",
            "start the container with them for writing, such as docker run --privileged -v \
             /sys/kernel/tracing:/sys/kernel/tracing, or record on the host",
        );
    } else if facts.is_contained {
        find(
            "this container does not have the trace files (tracefs)",
            "mount them if it may (mount -t tracefs nodev /sys/kernel/tracing), start it with them \
             (docker run --privileged -v /sys/kernel/tracing:/sys/kernel/tracing), or record on \
             the host",
        );
    } else if facts.is_closed {
        find(
            "the kernel does not let this process use the trace files",
            "give it the capability CAP_SYS_ADMIN, or record outside of what confines it",
        );
    } else {
        find(
            "the trace files (tracefs) are not mounted",
            "mount them: mount -t tracefs nodev /sys/kernel/tracing",
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_obstacle_is_said_with_a_way_out() {
        let root = TraceFacts {
            is_root: true,
            is_built_in: true,
            ..TraceFacts::default()
        };
        let cases = [
            (
                TraceFacts {
                    is_locked_down: true,
                    ..root.clone()
                },
                "locked down",
                "lockdown=",
            ),
            (
                TraceFacts {
                    is_built_in: false,
                    ..root.clone()
                },
                "has no trace",
                "CONFIG_FTRACE",
            ),
            (
                TraceFacts {
                    is_root: false,
                    ..root.clone()
                },
                "belong to root",
                "sudo",
            ),
            (
                TraceFacts {
                    is_read_only: true,
                    ..root.clone()
                },
                "reading only",
                "docker",
            ),
            (
                TraceFacts {
                    is_contained: true,
                    ..root.clone()
                },
                "container",
                "docker",
            ),
            (
                TraceFacts {
                    is_closed: true,
                    ..root.clone()
                },
                "does not let",
                "CAP_SYS_ADMIN",
            ),
            (root.clone(), "not mounted", "mount -t tracefs"),
        ];
        for (facts, what, way_out) in cases {
            let found = obstacles(&facts);
            assert_eq!(found.len(), 1, "{facts:?}");
            assert!(found[0].what.contains(what), "{found:?}");
            assert!(found[0].way_out.contains(way_out), "{found:?}");
        }
        let tracefs = Some(PathBuf::from("/sys/kernel/tracing"));
        assert!(obstacles(&TraceFacts { tracefs, ..root }).is_empty());
    }

    #[test]
    fn the_newer_place_is_taken_and_an_empty_one_is_none() {
        let root = folder::OwnFolder::new().unwrap();
        for place in PLACES {
            fs::create_dir_all(root.join(place)).unwrap();
        }
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(
            root.join("proc/filesystems"),
            "nodev\tsysfs\nnodev\ttracefs\n",
        )
        .unwrap();
        let facts = TraceFacts::below(root.path());
        assert_eq!((facts.tracefs, facts.is_built_in), (None, true));
        for place in PLACES.into_iter().rev() {
            let place = root.join(place);
            fs::create_dir_all(place.join("events")).unwrap();
            fs::write(place.join("events/header_page"), "").unwrap();
            fs::create_dir_all(place.join("instances")).unwrap();
            assert_eq!(TraceFacts::below(root.path()).tracefs, Some(place));
        }
    }
}
