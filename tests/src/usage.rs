//! What this process takes of the computer, as the kernel tells it.

use std::fs;
use std::time::Duration;

/// A number of bytes from this process's status: `VmRSS`, the memory that it has, or `VmHWM`, the
/// most that it had.
///
/// # Panics
/// If the kernel does not tell it.
#[must_use]
pub fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    1024 * number.expect("a kernel that tells it")
}

/// CPU time that this thread has used.
///
/// The kernel brings the figure up to date at its ticks and when it schedules, so it is made to
/// schedule first: without that a round is up to a tick too short, and the least round always is.
///
/// # Panics
/// If the kernel does not tell it.
#[must_use]
pub fn cpu_time() -> Duration {
    std::thread::yield_now();
    let path = "/proc/thread-self/schedstat";
    let text = fs::read_to_string(path).expect("a kernel with CONFIG_SCHED_INFO");
    let ran = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(ran.expect("the first field is the time on a CPU in nanoseconds"))
}
