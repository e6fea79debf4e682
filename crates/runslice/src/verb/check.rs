//! `runslice check OBJECT`.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use bpf::{Image, LoadError, Member, Object};
use clap::Args;
use model::Kernel;

use crate::exit::Status;
use crate::table::Table;
use crate::{kernel, on_kernel, output, policy};

mod costs;

/// Arguments of `runslice check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Object to check: a built-in policy's name or a file. With --costs, you may add knobs after a
    /// colon.
    object: String,

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

    /// Kernel for --vm: 6.18, 7.2, or the path of a vmlinuz. May be repeated. Default: both
    /// versions.
    #[arg(long, value_name = "KERNEL", requires = "vm")]
    kernel: Vec<String>,

    /// Ask the verifier of the running kernel (needs root).
    #[arg(long, conflicts_with_all = ["vm", "costs"])]
    here: bool,
}

/// Prints what the object has and needs.
///
/// # Errors
/// When the file cannot be read or is no object.
pub fn run(request: &Check) -> anyhow::Result<Status> {
    if request.costs {
        return costs::print(&request.object);
    }
    let file = match policies::find(&request.object) {
        Some(policy) => Arc::from(policy.object),
        None => policy::object(&request.object)?,
    };
    let object = Object::parse(&file).with_context(|| request.object.clone())?;
    let mut to = output::open(None)?;
    if request.here {
        return on_kernel::ask_here(&request.object, &file, &mut to);
    }
    if request.vm {
        return on_kernel::ask(&request.object, &request.kernel, &mut to);
    }
    write!(to, "{}", programs(&object))?;
    let mut status = Status::Done;
    let mut described = false;
    for kernel in kernel::ALL {
        match kernel::link(&object, kernel) {
            Ok(image) => {
                // What the object has is the same for every kernel.
                if !std::mem::replace(&mut described, true) {
                    describe(&image, &mut to)?;
                }
                if !write_verdict(&image, kernel, &mut to)? {
                    status = Status::Failure;
                }
            }
            Err(error @ LoadError::Missing { .. }) => {
                writeln!(to, "\n{error}")?;
                status = Status::Failure;
            }
            Err(error) => return Err(error).with_context(|| request.object.clone()),
        }
    }
    to.flush()?;
    Ok(status)
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
                Member::Program(at) => image.programs[*at as usize].name.clone(),
                Member::Int(number) => number.to_string(),
                Member::Bytes(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
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

/// Lists the host functions that the object calls. Returns whether all of them are there.
fn write_verdict(image: &Image, kernel: Kernel, to: &mut dyn Write) -> anyhow::Result<bool> {
    let missing = kernel::missing(image)?;
    let mut table = Table::default()
        .names("host function")
        .names("simulated")
        .prose("called by");
    for import in &image.imports {
        let lacks = missing.iter().any(|lack| lack.name == import.name);
        let answer = if lacks { "no" } else { "yes" };
        table.row([
            import.name.clone(),
            answer.to_owned(),
            import.callers.join(", "),
        ]);
    }
    write!(to, "\n{table}")?;
    let kernel = kernel.name();
    if !image.poisons.is_empty() {
        writeln!(to, "\nkernel {kernel}: ends the policy if it is reached")?;
        image
            .poisons
            .iter()
            .try_for_each(|poison| writeln!(to, "  {poison}"))?;
    }
    if missing.is_empty() {
        writeln!(
            to,
            "\nkernel {kernel}: nothing missing; the verifier was not asked (--vm asks it)"
        )?;
    } else {
        writeln!(to, "\nkernel {kernel}: {} missing", missing.len())?;
        missing
            .iter()
            .try_for_each(|lack| writeln!(to, "  {lack}"))?;
    }
    Ok(missing.is_empty())
}
