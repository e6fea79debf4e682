//! `runslice check --scheduler COMMAND`.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use bpf::Image;
use model::{MachineSpec, Nanos};
use workload::RunSpec;

use super::{describe, write_verdict};
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::scheduler::{self, LoaderOptions};
use crate::table::Table;
use crate::{kernel, output, workload_arg};

/// Lets the program attach its policy to a machine of each kernel, and prints what it has loaded.
///
/// # Errors
/// When it cannot be started, or attaches no policy.
pub fn check(command: &str, options: &LoaderOptions) -> anyhow::Result<Status> {
    let policy = scheduler::policy_of(command, options)?;
    let program = policy.program.clone().unwrap_or_default();
    let workload = Arc::new(workload_arg::find(&COMPUTER, "desk", &[])?);
    let mut to = output::open(None)?;
    let mut status = Status::Done;
    for kernel in kernel::CHECKED {
        let spec = RunSpec {
            policy: policy.clone(),
            workload: Arc::clone(&workload),
            machine: MachineSpec {
                kernel,
                ..MachineSpec::default()
            },
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: None,
        };
        let image = scheduler::load(&COMPUTER, &program, &spec);
        let image = image.with_context(|| format!("kernel {}", kernel.name()))?;
        if kernel == kernel::CHECKED[0] {
            write!(to, "{}", programs(&image))?;
            describe(&image, &mut to)?;
        }
        if !write_verdict(&image, kernel, false, &mut to)? {
            status = Status::Failure;
        }
    }
    to.flush()?;
    Ok(status)
}

/// The programs, without those by which a loader finds out what a kernel can.
fn programs(image: &Image) -> Table {
    let mut table = Table::default().names("program").names("section");
    let programs = image.programs.iter();
    for program in programs.filter(|program| !program.section.starts_with("probe/")) {
        table.row([program.name.clone(), program.section.clone()]);
    }
    table
}
