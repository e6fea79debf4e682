//! `runslice check OBJECT`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bpf::{Image, LoadError, MemberValue, MissingFunction, Object};
use clap::Args;
use model::{Kernel, MachineSpec};
use sim::PolicyError;

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::scheduler::LoaderOptions;
use crate::table::Table;
use crate::{kernel, on_kernel, output, policy, source};
use ask::error::of_run;

mod config;
mod costs;
mod needs;
mod orders;
mod program;
mod races;
mod repeat;

/// Arguments of `runslice check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Object to check: a built-in policy's name or a file. You may add knobs after a colon.
    #[arg(required_unless_present = "scheduler")]
    object: Option<String>,

    /// Run a scheduler's own program until it has attached its policy, and check what it has
    /// loaded, for example `--scheduler 'scx_lavd --performance'`. The program has your rights.
    #[arg(long, value_name = "COMMAND",
        conflicts_with_all = ["object", "set", "costs", "vm", "here"])]
    scheduler: Option<String>,

    #[command(flatten)]
    loader: LoaderOptions,

    /// Set a knob or a global variable, as `sim` does, before the object is looked at. May be
    /// repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = policy::setting)]
    set: Vec<(String, String)>,

    /// Measure the cost of the policy's callbacks instead. Runs 10, 100, 1,000 and 10,000 CPU hogs
    /// on one simulated CPU.
    ///
    /// Prints instructions, tasks visited in queues, and calls of kernel functions. Costs in time
    /// come from the machine profile default-v0.
    #[arg(long)]
    costs: bool,

    /// Load the programs in a VM for each kernel, without attaching them, to ask its verifier. If a
    /// verifier refuses the object, print its last lines and exit with status 1.
    #[arg(long, conflicts_with = "costs")]
    vm: bool,

    /// Kernel for --vm: 6.16 to 7.3, or the path of a vmlinuz. May be repeated. Default: 6.18 and
    /// 7.2.
    #[arg(long, value_name = "KERNEL", requires = "vm")]
    kernel: Vec<String>,

    /// Ask the verifier of the running kernel (needs root).
    #[arg(long, conflicts_with_all = ["vm", "costs"])]
    here: bool,

    /// Kernel's configuration: name the options that the policy needs there and that are not set,
    /// with status 1. It is /boot/config-VERSION, a .config or /proc/config.gz.
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["vm", "here", "costs", "scheduler", "races", "orders"])]
    config: Option<PathBuf>,

    #[command(flatten)]
    races: races::RaceOptions,
}

/// Prints what the object has and needs.
///
/// # Errors
/// When the file cannot be read or is no object.
pub fn run(request: &Check) -> anyhow::Result<Status> {
    if let Some(command) = &request.scheduler {
        return program::check(command, &request.loader);
    }
    let name = request.object.as_deref().unwrap_or_default();
    if request.costs {
        return costs::print(name);
    }
    if request.races.asked()? {
        return races::print(name, &request.set, &request.races);
    }
    let mut policy = policy::find(&COMPUTER, name)?;
    policy.set.extend(request.set.iter().cloned());
    let file = Arc::clone(&policy.object);
    let object = Object::parse(&file).with_context(|| name.to_owned())?;
    let mut to = output::open(None)?;
    if let Some(file) = &request.config {
        return config::print(file, (name, &policy, &object), &mut to);
    }
    if request.here {
        return on_kernel::ask_here(name, &file, &mut to);
    }
    if request.vm {
        // There is no compiler in a guest.
        let built = policy::file_of(&COMPUTER, name).filter(|path| source::is_source(path));
        let Some(path) = built else {
            return on_kernel::ask(name, &request.kernel, &mut to);
        };
        let folder = folder::OwnFolder::new()?;
        let object = folder
            .path()
            .join(path.with_extension("o").file_name().unwrap_or_default());
        std::fs::write(&object, &*file)?;
        return on_kernel::ask(&object.to_string_lossy(), &request.kernel, &mut to);
    }
    write!(to, "{}", programs(&object))?;
    let mut status = Status::Done;
    let mut described = false;
    for kernel in kernel::checked(&object) {
        let machine = MachineSpec {
            kernel,
            ..MachineSpec::default()
        };
        match sim::image(&policy, &machine) {
            Ok(image) => {
                // What the object has is the same for every kernel.
                if !std::mem::replace(&mut described, true) {
                    describe(&image, &mut to)?;
                }
                if !write_verdict(&image, kernel, true, &mut to)? {
                    status = Status::Failure;
                }
            }
            Err(sim::Error::Policy {
                source: PolicyError::Load(source),
                ..
            }) if is_missing(&source) => {
                writeln!(to, "\n{source}")?;
                status = Status::Failure;
            }
            Err(sim::Error::Policy {
                source: PolicyError::Load(source),
                ..
            }) => {
                return Err(source).with_context(|| name.to_owned());
            }
            Err(error) => return Err(of_run(error)),
        }
    }
    to.flush()?;
    Ok(status)
}

fn is_missing(error: &LoadError) -> bool {
    matches!(error, LoadError::Missing { .. })
}

fn programs(object: &Object) -> Table {
    let mut table = Table::default()
        .names("program")
        .names("section")
        .names("loaded");
    for (name, section, autoload) in object.programs() {
        let loaded = if autoload { "yes" } else { "on request" };
        table.row([name, section, loaded].map(str::to_owned));
    }
    table
}

fn describe(image: &Image, to: &mut dyn Write) -> anyhow::Result<()> {
    let tables = [maps(image), callbacks(image), knobs(image)];
    for table in tables.iter().filter(|table| !table.is_empty()) {
        write!(to, "\n{table}")?;
    }
    Ok(())
}

fn maps(image: &Image) -> Table {
    let mut table = Table::default()
        .names("map")
        .names("kind")
        .numbers("key bytes")
        .numbers("value bytes")
        .numbers("entries");
    for map in &image.maps {
        table.row([
            map.name.clone(),
            format!("{:?}", map.kind),
            map.key_size.to_string(),
            map.value_size.to_string(),
            map.max_entries.to_string(),
        ]);
    }
    table
}

/// The members of the `struct_ops` tables that are set.
fn callbacks(image: &Image) -> Table {
    let mut table = Table::default().names("table").names("member").names("is");
    for ops in &image.struct_ops {
        let mut name = format!("{} ({})", ops.name, ops.type_name);
        for (member, value) in &ops.members {
            let value = match value {
                MemberValue::Program(at) => image.programs[*at as usize].name.clone(),
                MemberValue::Int(number) => number.to_string(),
                MemberValue::Bytes(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            };
            table.row([std::mem::take(&mut name), member.clone(), value]);
        }
    }
    table
}

fn knobs(image: &Image) -> Table {
    let mut table = Table::default()
        .names("knob")
        .numbers("default")
        .numbers("from")
        .numbers("to")
        .names("unit")
        .prose("what it does");
    for knob in &image.knobs {
        let numbers = [knob.default, knob.min, knob.max].map(|value| value.to_string());
        let words = [knob.unit.clone(), knob.doc.clone()];
        table.row([knob.name.clone()].into_iter().chain(numbers).chain(words));
    }
    table
}

/// Asks for a speed of a CPU.
const SETS_SPEED: &str = "scx_bpf_cpuperf_set";

/// The host functions that the object calls, and what calls them. What a loader has loaded to try
/// the kernel, and closed again, calls nothing any more.
fn called(image: &Image) -> impl Iterator<Item = (&str, &[String])> {
    let imports = image.imports.iter();
    let named = imports.map(|it| (it.name.as_str(), it.callers.as_slice()));
    named.filter(|(_, callers)| !callers.is_empty())
}

/// The host functions that the object calls, those that are `missing` included.
fn functions(image: &Image, missing: &[MissingFunction]) -> Table {
    let mut table = Table::default()
        .names("host function")
        .names("simulated")
        .prose("called by");
    for (name, callers) in called(image) {
        let lacks = missing.iter().any(|lack| lack.name == name);
        let answer = match name {
            _ if lacks => "no",
            SETS_SPEED => "target kept",
            _ => "yes",
        };
        table.row([name.to_owned(), answer.to_owned(), callers.join(", ")]);
    }
    table
}

/// Says what of frequencies is not there as on a kernel.
fn write_frequencies(image: &Image, sets_speed: bool, to: &mut dyn Write) -> anyhow::Result<()> {
    if sets_speed {
        writeln!(
            to,
            "\nCPUs follow the target with --hardware NAME --governor schedutil alone"
        )?;
    }
    if sim::reads_frequency_limits(image) {
        writeln!(
            to,
            "\nreads limits of frequencies, which no simulated CPU has"
        )?;
    }
    Ok(())
}

/// Lists the host functions that the object calls, and says what stands in the way of a run.
/// Returns whether nothing does.
fn write_verdict(
    image: &Image,
    kernel: Kernel,
    has_no_loader: bool,
    to: &mut dyn Write,
) -> anyhow::Result<bool> {
    let is_called = |name: &str| called(image).any(|(it, _)| it == name);
    let mut missing = kernel::missing(image)?;
    missing.retain(|lack| is_called(&lack.name));
    let table = functions(image, &missing);
    write!(to, "\n{table}")?;
    write_frequencies(image, is_called(SETS_SPEED), to)?;
    let kernel = kernel.name();
    let reached = image.reached();
    let (ends, idle) = needs::sort(image, &reached);
    list(to, &ends, |count| {
        format!("kernel {kernel}: the callbacks can reach {count}, which ends the policy")
    })?;
    list(to, &idle, |count| {
        format!("kernel {kernel}: on branches that are not taken there, {count}")
    })?;
    if has_no_loader {
        needs::warn(image, &reached, to)?;
    }
    let lacks: Vec<String> = missing.iter().map(ToString::to_string).collect();
    list(to, &lacks, |count| {
        format!("kernel {kernel}: {count} missing")
    })?;
    let uncast = image.uncast_accesses();
    let uncast: Vec<String> = uncast.iter().map(ToString::to_string).collect();
    list(to, &uncast, |count| {
        format!(
            "kernel {kernel}: its verifier refuses {count} of its instructions: they lack the \
             cast that clang 22 makes"
        )
    })?;
    if !uncast.is_empty() && ends.is_empty() && lacks.is_empty() {
        writeln!(
            to,
            "\nkernel {kernel}: a simulated run is possible, a real one is not"
        )?;
    } else if ends.is_empty() && lacks.is_empty() {
        writeln!(
            to,
            "\nkernel {kernel}: nothing missing; the verifier was not asked{}",
            if has_no_loader { " (--vm asks it)" } else { "" }
        )?;
    } else {
        writeln!(to, "\nkernel {kernel}: no run of it would last")?;
    }
    Ok(ends.is_empty() && lacks.is_empty() && uncast.is_empty())
}

/// Writes what there is below a line that says how many it is.
fn list(
    to: &mut dyn Write,
    what: &[String],
    head: impl FnOnce(usize) -> String,
) -> anyhow::Result<()> {
    if !what.is_empty() {
        writeln!(to, "\n{}", head(what.len()))?;
    }
    what.iter().try_for_each(|it| writeln!(to, "  {it}"))?;
    Ok(())
}
