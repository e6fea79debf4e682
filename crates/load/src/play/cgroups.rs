//! The cgroups of a played workload: threaded ones below a cgroup of the player's own, which stands
//! for the root.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, kernel 6.18: only in threaded cgroups threads
//! of one process may be in different places.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use model::Advised;
use workload::{Bandwidth, ROOT_CGROUP, Workload};

use crate::Error;

/// How often an attempt to remove a cgroup is repeated: those in it may not be quite gone.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Cgroups that exist until this value is dropped. Nobody may be in them by then.
#[derive(Debug)]
pub struct Cgroups {
    /// By number; the first is the one that stands for the root.
    folders: Vec<PathBuf>,
}

impl Cgroups {
    /// Makes what `workload` declares, below the place where cgroups are mounted.
    ///
    /// # Errors
    /// When no cgroup v2 is mounted, or the system refuses a step, which takes root.
    pub fn create(workload: &Workload) -> Result<Self, Error> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let place = mounted(&mounts).ok_or_else(|| Error::Play {
            why: Advised::new(
                "the workload has cgroups, and no cgroup v2 is mounted",
                "`mount -t cgroup2 cgroup /sys/fs/cgroup` does it",
            ),
        })?;
        let base = place.join(format!("runslice-{}", std::process::id()));
        let mut made = Self {
            folders: Vec::new(),
        };
        write(&place, "cgroup.subtree_control", "+cpu")?;
        made.make(base.clone())?;
        for cgroup in &workload.cgroups {
            let folder = base.join(&cgroup.path[1..]);
            made.make(folder.clone())?;
            write(&folder, "cgroup.type", "threaded")?;
        }
        // Now that the first is the root of threaded ones, it may have processes and controllers.
        let has_children = |number: u32| {
            let mut others = workload.cgroups.iter();
            others.any(|cgroup| cgroup.parent == number)
        };
        for (number, folder) in (ROOT_CGROUP..).zip(&made.folders) {
            if has_children(number) {
                write(folder, "cgroup.subtree_control", "+cpu")?;
            }
        }
        for (cgroup, folder) in workload.cgroups.iter().zip(&made.folders[1..]) {
            if cgroup.weight != 100 {
                write(folder, "cpu.weight", &cgroup.weight.to_string())?;
            }
            if cgroup.max.quota_us.is_some() {
                write(folder, "cpu.max", &max(cgroup.max))?;
            }
            if cgroup.max.burst_us > 0 {
                write(folder, "cpu.max.burst", &cgroup.max.burst_us.to_string())?;
            }
            if cgroup.idle {
                write(folder, "cpu.idle", "1")?;
            }
        }
        Ok(made)
    }

    fn make(&mut self, folder: PathBuf) -> Result<(), Error> {
        fs::create_dir(&folder).map_err(Error::file("make the cgroup", &folder))?;
        self.folders.push(folder);
        Ok(())
    }

    /// Where each is, by number.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for folder in self.folders.iter().rev() {
            for _ in 0..ATTEMPTS {
                let Err(error) = fs::remove_dir(folder) else {
                    break;
                };
                if error.kind() != io::ErrorKind::ResourceBusy {
                    break;
                }
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Where cgroup v2 is mounted, of the lines of /proc/self/mounts.
fn mounted(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    })
}

fn write(folder: &Path, file: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(file);
    fs::write(&path, text).map_err(Error::file("write", &path))
}

/// As `cpu.max` takes it.
pub fn max(max: Bandwidth) -> String {
    match max.quota_us {
        Some(quota) => format!("{quota} {}", max.period_us),
        None => format!("max {}", max.period_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_that_of_the_second_version() {
        let mounts = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let place = mounted(mounts);
        assert_eq!(place, Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mounted("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let limit = |quota_us| Bandwidth {
            quota_us,
            period_us: 50_000,
            burst_us: 7,
        };
        assert_eq!(max(limit(Some(20_000))), "20000 50000");
        assert_eq!(max(limit(None)), "max 50000");
    }
}
