//! A probe of our own: which wakers tell the kernel that they are about to sleep.
//!
//! Pipes and sockets wake so (`WF_SYNC`), and schedulers place and credit such a task otherwise. No
//! tracepoint has the flag. The function that does all wakeups gets it, before `sched_waking`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use libbpf_rs::btf::Btf;

use super::events::Event;
use super::instance::Process;
use super::read_up_to;
use crate::variables::member;

/// Its name, by which the import knows it.
const NAME: &str = "sched_waking_sync";
/// Where it is set: `try_to_wake_up(task, state, flags)`, kernel/sched/core.c, 4.19 to 7.3.
const FUNCTION: &str = "try_to_wake_up";
/// `WF_SYNC` (kernel/sched/sched.h): 1 up to 5.10, 16 from 5.11 on, where 1 is not used.
const SYNC: &str = "flags & 17";
/// Most bytes of the kernel's list of probes.
const LIST: u64 = 1 << 20;

/// The probe; goes away with this value. What records through it has to end before.
#[derive(Debug)]
pub struct KernelProbe {
    list: PathBuf,
    system: String,
}

impl KernelProbe {
    /// Sets it in the kernel whose trace files are below `tracefs`. `root` is `/` but in tests.
    ///
    /// # Errors
    /// When the kernel has no probes, no function of this name or no description of its types.
    pub fn set(root: &Path, tracefs: &Path) -> io::Result<Self> {
        let types = Btf::from_path(root.join("sys/kernel/btf/vmlinux"));
        let types = types.map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        let pid = member(&types, "task_struct", "pid").ok_or(io::ErrorKind::NotFound)?;
        let probe = Self {
            list: tracefs.join("kprobe_events"),
            system: Process::this(root).name().replace('-', "_"),
        };
        probe.put(&format!(
            "p:{}/{NAME} {FUNCTION} pid=+{pid}($arg1):s32 flags=$arg3:u32",
            probe.system
        ))?;
        Ok(probe)
    }

    /// What the kernel lacks if it cannot be set.
    pub fn absent() -> String {
        format!("probe of {FUNCTION}")
    }

    /// Its event.
    pub fn event(&self) -> Event {
        Event {
            system: self.system.clone(),
            name: NAME.to_owned(),
            filter: SYNC,
        }
    }

    fn put(&self, line: &str) -> io::Result<()> {
        // Truncating the list would remove everybody's probes.
        let mut list = OpenOptions::new().append(true).open(&self.list)?;
        list.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for KernelProbe {
    fn drop(&mut self) {
        // The next recording finds what could not be removed, and tries again.
        let _ = self.put(&format!("-:{}/{NAME}", self.system));
    }
}

/// Removes the probes of recordings whose process is gone.
pub fn remove_left(root: &Path, tracefs: &Path) {
    let list = tracefs.join("kprobe_events");
    let text = read_up_to(&list, LIST).unwrap_or_default();
    for line in String::from_utf8_lossy(&text).lines() {
        let system = line
            .strip_prefix("p:")
            .and_then(|line| line.split_once('/'))
            .filter(|(_, rest)| rest.split(' ').next() == Some(NAME))
            .map(|(system, _)| system);
        if let Some(system) = system
            && Process::is_left(&system.replace('_', "-"), root)
        {
            drop(KernelProbe {
                list: list.clone(),
                system: system.to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::record::OBJECT;

    #[test]
    fn a_probe_is_added_to_those_that_are_there_and_taken_away_alone() {
        let root = folder::OwnFolder::new().unwrap();
        let list = root.join("kprobe_events");
        let own = "p:mine/own do_exit\n";
        fs::write(&list, own).unwrap();
        assert!(
            KernelProbe::set(root.path(), root.path()).is_err(),
            "no types"
        );
        // Types of a kernel, as far as our own recorder asks for them.
        fs::create_dir_all(root.join("sys/kernel/btf")).unwrap();
        fs::write(root.join("sys/kernel/btf/vmlinux"), OBJECT).unwrap();
        let btf = Btf::from_raw("recorder", OBJECT).unwrap().unwrap();
        let at = member(&btf, "task_struct", "pid").unwrap();
        let probe = KernelProbe::set(root.path(), root.path()).unwrap();
        let system = probe.event().system;
        drop(probe);
        assert_eq!(
            fs::read_to_string(&list).unwrap(),
            format!(
                "{own}p:{system}/{NAME} {FUNCTION} pid=+{at}($arg1):s32 flags=$arg3:u32\n\
                 -:{system}/{NAME}\n"
            )
        );
    }

    #[test]
    fn only_probes_of_processes_that_are_gone_are_removed() {
        let folder = folder::OwnFolder::new().unwrap();
        let list = folder.join("kprobe_events");
        let own = Process::this(Path::new("/")).name().replace('-', "_");
        let gone = "runslice_4194999_7";
        let there = format!(
            "p:{own}/{NAME} {FUNCTION} pid=+1($arg1):s32\np:{gone}/{NAME} {FUNCTION}\n\
             p:{gone}/other do_exit\nr:{gone}/{NAME} x\np:kprobes/{NAME} y\n"
        );
        fs::write(&list, &there).unwrap();
        remove_left(Path::new("/"), folder.path());
        let text = fs::read_to_string(&list).unwrap();
        assert_eq!(
            text.strip_prefix(&there),
            Some("-:runslice_4194999_7/sched_waking_sync\n")
        );
        remove_left(Path::new("/"), &folder.join("nowhere"));
    }
}
