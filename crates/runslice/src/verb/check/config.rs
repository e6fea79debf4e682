//! `runslice check OBJECT --config FILE`.

use std::io::Write;
use std::path::Path;

use anyhow::Context as _;
use ask::config::{ConfigNeed, needs};
use ask::error::of_run;
use bpf::Object;
use model::{KernelConfig, MachineSpec, PolicySpec};

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::table::Table;
use crate::{input, kernel};

/// Says which options the policy needs, and which of them the configuration in `file` lacks.
///
/// # Errors
/// When the file is no configuration, or no simulated kernel loads the policy.
pub fn print(
    file: &Path,
    (name, policy, object): (&str, &PolicySpec, &Object),
    to: &mut dyn Write,
) -> anyhow::Result<Status> {
    let bytes = input::bytes(&COMPUTER, file, input::OBJECT)?;
    let config = KernelConfig::read(&bytes).with_context(|| file.display().to_string())?;
    // What it needs is the same for every kernel that has its interface.
    let machine = MachineSpec {
        kernel: kernel::checked(object)[0],
        ..MachineSpec::default()
    };
    let image = sim::image(policy, &machine).map_err(of_run)?;
    let needs = needs(&image);
    write!(to, "{}", table(&needs, &config))?;
    let is_missing = |need: &&ConfigNeed| config.value(need.option).is_none();
    let missing = needs.iter().filter(is_missing).count();
    let shown = file.display();
    if missing > 0 {
        let options = if missing == 1 {
            "option is"
        } else {
            "options are"
        };
        writeln!(
            to,
            "\n{shown}: {missing} {options} not set: {name} cannot run there"
        )?;
    } else {
        let hz = config.hz().map_or_else(String::new, |hz| {
            format!("; it ticks {hz} times a second (--hz {hz})")
        });
        writeln!(to, "\n{shown}: all that {name} needs is set{hz}")?;
    }
    to.flush()?;
    Ok(if missing > 0 {
        Status::Failure
    } else {
        Status::Done
    })
}

fn table(needs: &[ConfigNeed], config: &KernelConfig) -> Table {
    let mut table = Table::default()
        .names("option")
        .names("set")
        .prose("needed by");
    for need in needs {
        let value = config.value(need.option).unwrap_or("no");
        let value = if value == "y" { "yes" } else { value };
        table.row([need.option, value, &need.by].map(str::to_owned));
    }
    table
}
