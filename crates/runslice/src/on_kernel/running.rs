//! What the running kernel is.

use live::process;
use model::{Advised, Kernel};

use crate::exit::UnsupportedError;

/// The simulated kernel that the running one counts as; the default when it does not say what it
/// is.
pub fn kernel() -> Kernel {
    Kernel::of_release(&release()).unwrap_or_default()
}

/// What the running kernel calls itself, such as `6.18.15+deb13-amd64`; empty if it does not say.
#[must_use]
pub fn release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim_end().to_owned()
}

/// Jiffies a second: the kernel's coarse clocks go on with each jiffy. `None` where they do not.
pub fn hz() -> Option<u32> {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    hz_of_tick(tick.tv_sec, tick.tv_nsec)
}

/// Jiffies a second whose length is `seconds` and `nanoseconds`; kernels have 100 to 1000.
fn hz_of_tick(seconds: i64, nanoseconds: i64) -> Option<u32> {
    let tick = u32::try_from(nanoseconds).ok().filter(|_| seconds == 0)?;
    let hz = 1_000_000_000_u32.checked_add(tick / 2)?.checked_div(tick)?;
    (100..=1_000).contains(&hz).then_some(hz)
}

/// Whether this computer's kernel can run anything under a policy.
///
/// # Errors
/// What is missing, with the way out.
pub fn check_host() -> Result<(), UnsupportedError> {
    let lacks = if !process::is_root() {
        "it takes root"
    } else if live::SchedExt::of_this_kernel().policy().is_some() {
        "another policy is attached"
    } else {
        return Ok(());
    };
    Err(UnsupportedError::new(Advised::new(
        format!("--machine host: {lacks}"),
        WAY,
    )))
}

/// What somebody does whose computer lacks something.
pub const WAY: &str =
    "`runslice doctor` says more; `--machine vm` needs neither root nor another kernel";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_tells_how_many_there_are_in_a_second() {
        let ticks = [10_000_000, 4_000_000, 3_333_333, 1_000_000, 1, 0];
        let hz = ticks.map(|tick| hz_of_tick(0, tick));
        assert_eq!(
            hz,
            [Some(100), Some(250), Some(300), Some(1_000), None, None]
        );
        assert_eq!(hz_of_tick(1, 4_000_000), None);
    }
}
