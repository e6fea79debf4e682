//! `runslice list`.

use std::io::Write as _;

use anyhow::Context as _;
use bpf::{Knob, Object};
use clap::Args;
use model::Kernel;

use crate::exit::Status;
use crate::table::Table;
use crate::{kernel, output, workload_arg};

/// Arguments of `runslice list`.
#[derive(Debug, Args)]
pub struct List {
    /// List the knobs of the policies, with default, range, unit and effect.
    #[arg(long)]
    knobs: bool,

    /// List the workloads instead of the policies.
    #[arg(long, conflicts_with = "knobs")]
    workloads: bool,
}

/// Prints what is built in.
///
/// # Errors
/// When standard output is closed.
pub fn run(request: &List) -> anyhow::Result<Status> {
    let table = match request {
        List {
            workloads: true, ..
        } => workloads(),
        List { knobs: true, .. } => knobs()?,
        List { .. } => policies(),
    };
    let mut to = output::open(None)?;
    write!(to, "{table}")?;
    to.flush()?;
    Ok(Status::Done)
}

fn policies() -> Table {
    let mut table = Table::default().names("policy").prose("what it is");
    for policy in policies::ALL {
        table.row([policy.name, policy.summary].map(str::to_owned));
    }
    table
}

fn workloads() -> Table {
    let mut table = Table::default().names("workload").prose("what it is");
    for shipped in workload_arg::SHIPPED {
        table.row([shipped.name.to_owned(), shipped.summary()]);
    }
    table
}

fn knobs() -> anyhow::Result<Table> {
    let mut table = Table::default()
        .names("policy")
        .names("knob")
        .numbers("default")
        .numbers("on a kernel")
        .numbers("from")
        .numbers("to")
        .names("unit")
        .prose("what it does");
    for policy in policies::ALL {
        let object = Object::parse(policy.object).context(policy.name)?;
        let image = kernel::link(&object, Kernel::default()).context(policy.name)?;
        let mut name = policy.name.to_owned();
        for knob in &image.knobs {
            table.row(row(std::mem::take(&mut name), knob));
        }
    }
    Ok(table)
}

fn row(policy: String, knob: &Knob) -> [String; 8] {
    let [default, min, max] = [knob.default, knob.min, knob.max].map(|value| value.to_string());
    let on_kernel = knob
        .on_kernel
        .map_or_else(String::new, |value| value.to_string());
    [
        policy,
        knob.name.clone(),
        default,
        on_kernel,
        min,
        max,
        knob.unit.clone(),
        knob.doc.clone(),
    ]
}
