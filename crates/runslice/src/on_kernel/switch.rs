//! `kernel.sched_schedstats`: most counters stand still unless it is on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Where the kernel has it, below the root of the system.
const PLACE: &str = "proc/sys/kernel/sched_schedstats";

/// Whether the kernel counts all that it can; `None` if it cannot be told.
pub fn is_on(root: &Path) -> Option<bool> {
    let text = fs::read_to_string(root.join(PLACE)).ok()?;
    Some(text.trim() != "0")
}

/// The counters are on as long as this value lives, and are then as they were.
#[derive(Debug)]
pub struct SwitchedOn {
    /// What to write at the end; nothing if they were on before.
    was: Option<(PathBuf, String)>,
}

impl SwitchedOn {
    /// Switches the counters on.
    ///
    /// # Errors
    /// When this kernel has no such switch or this process may not.
    pub fn now(root: &Path) -> anyhow::Result<Self> {
        let path = root.join(PLACE);
        let named = || format!("cannot switch {} on", path.display());
        let was = fs::read_to_string(&path).with_context(named)?;
        if was.trim() != "0" {
            return Ok(Self { was: None });
        }
        fs::write(&path, "1\n").with_context(named)?;
        Ok(Self {
            was: Some((path, was)),
        })
    }
}

impl Drop for SwitchedOn {
    fn drop(&mut self) {
        if let Some((path, was)) = &self.was {
            // Who could switch it on can switch it off; there is nobody else to tell.
            let _ = fs::write(path, was);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(name: &str, value: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("runslice-{name}-{}", std::process::id()));
        let path = root.join(PLACE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
        root
    }

    #[test]
    fn the_switch_is_put_back() {
        let root = system("switch", "0\n");
        let on = SwitchedOn::now(&root).unwrap();
        assert_eq!(is_on(&root), Some(true));
        drop(on);
        assert_eq!(is_on(&root), Some(false));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_was_on_stays_on() {
        let root = system("on", "1\n");
        drop(SwitchedOn::now(&root).unwrap());
        assert_eq!(is_on(&root), Some(true));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_kernel_without_the_switch_is_named() {
        let root = Path::new("/no/such/system");
        let error = format!("{:#}", SwitchedOn::now(root).unwrap_err());
        assert!(
            error.contains("/no/such/system/proc/sys/kernel/sched_schedstats"),
            "{error}"
        );
        assert_eq!(is_on(root), None);
    }
}
