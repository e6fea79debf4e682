//! What recording costs: how often the kernel ran each program, and for how long.

use std::fs;
use std::path::Path;

use libbpf_rs::ProgramType;
use libbpf_rs::query::ProgInfoIter;

use crate::Error;

/// Switches the kernel's own measuring of BPF programs on.
const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// What one program cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// How long it ran, in nanoseconds. Where the clock counts instructions: so many of them.
    pub ns: u64,
}

/// Measures while it lives; puts the kernel's switch back when dropped.
#[derive(Debug)]
pub struct Cost {
    before: Vec<u8>,
}

impl Cost {
    /// Lets the kernel measure every BPF program from now on.
    ///
    /// # Errors
    /// When the kernel does not let itself be asked: it takes root.
    pub fn measure() -> Result<Self, Error> {
        let path = Path::new(SWITCH);
        let before = fs::read(path).map_err(Error::file(path))?;
        fs::write(path, "1\n").map_err(Error::file(path))?;
        Ok(Self { before })
    }
}

impl ProgramCost {
    /// Costs of all callbacks of the attached policies so far, while a [`Cost`] lets the kernel
    /// measure. None of them has run without one.
    #[must_use]
    pub fn of_callbacks() -> Self {
        let mut sum = Self {
            name: "callbacks".to_owned(),
            runs: 0,
            ns: 0,
        };
        for info in ProgInfoIter::default().filter(|info| info.ty == ProgramType::StructOps) {
            sum.runs += info.run_cnt;
            sum.ns += info.run_time_ns;
        }
        sum
    }
}

impl Drop for Cost {
    fn drop(&mut self) {
        // It was writable before; nobody could be told at this point.
        let _ = fs::write(SWITCH, &self.before);
    }
}
