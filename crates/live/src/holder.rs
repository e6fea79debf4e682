//! Which process holds the policy that is attached, ours or somebody else's.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use libbpf_rs::MapHandle;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::btf::{Btf, BtfType};

/// A process that has the link of an attached policy open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its name, as `/proc/PID/comm` tells.
    pub name: String,
    /// The service of the system that it belongs to, such as `scx.service`.
    pub service: Option<String>,
}

/// Services that run policies and nothing else, so that stopping them stops a policy only.
const SERVICES: [&str; 2] = ["scx.service", "scx_loader.service"];

impl Holder {
    /// Whether it is a service that may be stopped for another policy and started again.
    #[must_use]
    pub fn can_be_replaced(&self) -> bool {
        self.service
            .as_deref()
            .is_some_and(|unit| SERVICES.contains(&unit) || unit.starts_with("runslice@"))
    }

    /// The holder, as the files below `root` tell, which is `/` but in tests. `None` when there
    /// is none, or this process may not look into others.
    #[must_use]
    pub fn below(root: &Path) -> Option<Self> {
        let is_real = root == Path::new("/");
        // Maps of another system cannot be asked.
        Self::find(&root.join("proc"), |map| !is_real || is_policy(map))
    }

    /// Looks for a process with a link to a map that `is_policy`.
    fn find(proc: &Path, is_policy: impl Fn(u32) -> bool) -> Option<Self> {
        let mut pids: Vec<u32> = fs::read_dir(proc)
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        pids.sort_unstable();
        let pid = pids.into_iter().find(|pid| {
            let maps = linked_maps(&proc.join(pid.to_string()).join("fdinfo"));
            maps.into_iter().any(&is_policy)
        })?;
        let folder = proc.join(pid.to_string());
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        Some(Self {
            pid,
            name: read("comm").trim_end().to_owned(),
            service: service(&read("cgroup")),
        })
    }
}

/// The maps that a process has links to, from the texts of its open files
/// (`bpf_struct_ops_map_link_show_fdinfo()` in `kernel/bpf/bpf_struct_ops.c`, 6.18).
fn linked_maps(fdinfo: &Path) -> Vec<u32> {
    let entries = fs::read_dir(fdinfo).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let maps = texts.filter_map(|text| {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        (value("link_type:")? == "struct_ops").then_some(())?;
        value("map_id:")?.parse().ok()
    });
    maps.collect()
}

/// The unit in the path of a process's group, where the last part is a service of the system.
fn service(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    if parts.next()? != "system.slice" {
        return None;
    }
    let unit = parts.rfind(|part| part.ends_with(".service"))?;
    Some(unit.to_owned())
}

/// Whether the map with this id is a table of callbacks for sched_ext.
fn is_policy(map: u32) -> bool {
    /// As the kernel wraps `struct sched_ext_ops` (`kernel/bpf/bpf_struct_ops.c`, 6.18).
    const TABLE: &str = "bpf_struct_ops_sched_ext_ops";
    let info = MapHandle::from_map_id(map).and_then(|map| {
        use libbpf_rs::MapCore as _;
        Ok(map.info()?.info.btf_vmlinux_value_type_id)
    });
    let (Ok(id), Ok(btf)) = (info, Btf::from_vmlinux()) else {
        return false;
    };
    let ty: Option<Struct<'_>> = btf
        .type_by_id::<BtfType<'_>>(id.into())
        .and_then(|ty| ty.try_into().ok());
    ty.is_some_and(|ty| ty.name() == Some(OsStr::new(TABLE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_among_processes_with_other_files_and_links() {
        let root = std::env::temp_dir().join(format!("runslice-holder-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = root.join("proc").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("7/fdinfo/3", "pos:\t0\nflags:\t02\n");
        write("7/comm", "sh\n");
        write(
            "12/fdinfo/4",
            "pos:\t0\nlink_type:\tstruct_ops\nlink_id:\t1\nmap_id:\t5\n",
        );
        write(
            "31/fdinfo/9",
            "pos:\t0\nlink_type:\tstruct_ops\nlink_id:\t2\nmap_id:\t6\n",
        );
        write("31/comm", "scx_lavd\n");
        write("31/cgroup", "0::/system.slice/scx.service\n");
        write("sched/x", "");
        let want = Holder {
            pid: 31,
            name: "scx_lavd".to_owned(),
            service: Some("scx.service".to_owned()),
        };
        let proc = root.join("proc");
        assert_eq!(Holder::find(&proc, |map| map == 6), Some(want));
        assert_eq!(Holder::find(&proc, |_| false), None);
        assert_eq!(Holder::below(&root).map(|holder| holder.pid), Some(12));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn only_a_service_of_the_system_counts() {
        let read = |path: &str| service(&format!("1:name=systemd:/\n0::{path}\n"));
        assert_eq!(
            read("/system.slice/scx_loader.service").as_deref(),
            Some("scx_loader.service")
        );
        assert_eq!(
            read("/system.slice/system-runslice.slice/runslice@fifo.service").as_deref(),
            Some("runslice@fifo.service")
        );
        assert_eq!(read("/user.slice/user-0.slice/session-1.scope"), None);
        assert_eq!(read("/user.slice/user@1.service/app.slice/x.service"), None);
        assert_eq!(read("/"), None);
        assert_eq!(service(""), None);
    }
}
