//! How much memory the processes of a program have together.
//!
//! No limit of the kernel's counts all of them, and what they share once. So it is looked at by
//! real time, like a program that makes no call.

use std::fs;
use std::time::{Duration, Instant};

/// How often it is looked at. Meanwhile a computer fills less than a gibibyte.
const EVERY: Duration = Duration::from_millis(100);
/// Bytes of a page (x86-64).
const PAGE: u64 = 4096;

/// When memory was looked at.
#[derive(Debug)]
pub struct MemoryWatch {
    looked: Instant,
}

impl Default for MemoryWatch {
    fn default() -> Self {
        Self {
            looked: Instant::now(),
        }
    }
}

impl MemoryWatch {
    /// Whether it is time to look; it counts as looked at then.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.looked.elapsed() >= EVERY;
        if is_due {
            self.looked = Instant::now();
        }
        is_due
    }
}

/// Whether these processes of the host have more than so many bytes of memory together.
pub fn exceeds(processes: &[i32], most: u64) -> bool {
    let sum = |of: fn(i32) -> Option<u64>| -> u64 {
        processes.iter().filter_map(|it| of(*it)).sum()
    };
    // Cheap, but what is shared counts for each of them.
    sum(resident) > most && sum(|it| proportional(it).or_else(|| resident(it))) > most
}

/// Bytes that a process has in memory.
fn resident(process: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

/// The same, where a page that several have counts for its share. Not readable of a process that
/// has forbidden it.
fn proportional(process: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_this_process_is_read_and_shared_pages_count_once() {
        let own = std::process::id().cast_signed();
        assert!(exceeds(&[own], 1 << 20) && !exceeds(&[own], 1 << 40));
        let (all, share) = (resident(own).unwrap(), proportional(own).unwrap());
        assert!(share <= all && share > 0, "{share} of {all}");
        assert!(!exceeds(&[], 0), "nobody has none");
    }
}
