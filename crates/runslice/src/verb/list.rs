//! `runslice list`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ask::input;
use bpf::{Knob, Object};
use clap::{Args, ValueHint};
use model::{Advised, Hardware, suggest};
use policies::Policy;

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::report::{TableName, counted};
use crate::table::Table;
use crate::workload_arg::{SHIPPED, Shipped};
use crate::{kernel, output, workload_arg};

/// Arguments of `runslice list`.
#[derive(Debug, Args)]
pub struct List {
    /// Show all of this policy, workload or machine: what it is for, its source, its knobs or
    /// parameters. A hardware file is checked first.
    #[arg(value_hint = ValueHint::Other)]
    name: Option<String>,

    /// List the knobs of the policies and lessons, with default, range, unit and effect.
    #[arg(long, conflicts_with = "name")]
    knobs: bool,

    /// List the workloads instead of the policies.
    #[arg(long, conflicts_with_all = ["knobs", "name"])]
    workloads: bool,

    /// List the machines that `--hardware` knows.
    #[arg(long, conflicts_with_all = ["knobs", "workloads", "name"])]
    machines: bool,

    /// List the columns of the tables of runs: their names in CSV, Parquet and JSON, their titles
    /// in other tables, and what they mean.
    #[arg(long, conflicts_with_all = ["knobs", "workloads", "machines", "name"])]
    columns: bool,

    /// Write the file of NAME, to change it: NAME.bpf.c of a policy, NAME.toml of a workload or a
    /// machine. A file that is there is never written over.
    #[arg(long, requires = "name")]
    copy: bool,

    /// File to write with --copy. Default: as the file is called in the project, in this folder.
    #[arg(short, long, value_name = "FILE", requires = "copy")]
    output: Option<PathBuf>,
}

/// Something that is built in.
enum BuiltIn {
    Policy(&'static Policy),
    Workload(&'static Shipped),
    /// Name and file of a machine.
    Machine(&'static str, &'static str),
}

/// Prints what is built in.
///
/// # Errors
/// When nothing has the name, a file is there already, or standard output is closed.
pub fn run(request: &List) -> anyhow::Result<Status> {
    let text = match (&request.name, request.copy) {
        (Some(name), true) => copy(name, request.output.as_deref())?,
        (Some(name), false) => in_full(name)?,
        (None, _) if request.workloads => workloads().to_string(),
        (None, _) if request.machines => machines().to_string(),
        (None, _) if request.knobs => knobs()?.to_string(),
        (None, _) if request.columns => columns().to_string(),
        (None, _) => format!(
            "{}\n{}\n{}",
            named("policy", policies::ALL),
            named("lesson", policies::LESSONS),
            named("with --kernel 7.3", policies::CID_LESSONS)
        ),
    };
    let mut to = output::open(None)?;
    write!(to, "{text}")?;
    to.flush()?;
    Ok(Status::Done)
}

/// All of what is built in under this name, or of a hardware file.
fn in_full(name: &str) -> anyhow::Result<String> {
    let path = Path::new(name);
    let found = find(name);
    if found.is_err() && path.is_file() {
        let text = input::text(&COMPUTER, path, input::WRITTEN)?;
        Hardware::parse(&text, name)?;
        return Ok(text);
    }
    match found? {
        BuiltIn::Policy(policy) => policy_in_full(policy),
        BuiltIn::Workload(workload) => workload_in_full(workload),
        BuiltIn::Machine(_, text) => Ok(text.to_owned()),
    }
}

fn find(name: &str) -> Result<BuiltIn, UsageError> {
    if let Some(policy) = policies::find(name) {
        return Ok(BuiltIn::Policy(policy));
    }
    if let Some(workload) = SHIPPED.iter().find(|workload| workload.name == name) {
        return Ok(BuiltIn::Workload(workload));
    }
    if let Some((name, text)) = Hardware::shipped().iter().find(|(known, _)| *known == name) {
        return Ok(BuiltIn::Machine(name, text));
    }
    let known = policies::names().chain(SHIPPED.iter().map(|workload| workload.name));
    let known = known.chain(Hardware::shipped().iter().map(|(name, _)| *name));
    let hint = suggest::hint(name, known);
    Err(UsageError::new(Advised::new(
        format!("nothing built in is called `{name}`"),
        hint,
    )))
}

/// Writes the file of `name`, and says where it is and what to do with it.
fn copy(name: &str, to: Option<&Path>) -> anyhow::Result<String> {
    let (usual, text, next) = match find(name)? {
        BuiltIn::Policy(policy) => {
            let next = "runslice sim FILE -w desk";
            (format!("{name}.bpf.c"), policy.text, next)
        }
        BuiltIn::Workload(workload) => {
            let next = "runslice sim fifo mlfq -w FILE";
            (format!("{name}.toml"), workload.text, next)
        }
        BuiltIn::Machine(name, text) => {
            let next = "runslice sim fifo mlfq -w desk --hardware FILE";
            (format!("{name}.toml"), text, next)
        }
    };
    let path = to.map_or_else(|| PathBuf::from(usual), Path::to_owned);
    if output::is_standard(&path) {
        return Ok(text.to_owned());
    }
    let shown = path.display().to_string();
    output::write_new(&path, text.as_bytes(), "name another file with -o")?;
    let next = next.replace("FILE", &ask::words::quoted(&shown));
    Ok(format!("{shown}: change it, then run it: {next}\n"))
}

fn named(kind: &str, policies: &[Policy]) -> Table {
    let mut table = Table::default().names(kind).prose("what it is");
    for policy in policies {
        table.row([policy.name, policy.summary].map(str::to_owned));
        for (alias, _) in policies::ALIASES
            .iter()
            .filter(|(_, of)| *of == policy.name)
        {
            table.row([
                (*alias).to_owned(),
                format!("another name of {}", policy.name),
            ]);
        }
    }
    table
}

fn workloads() -> Table {
    let mut table = Table::default().names("workload").prose("what it is");
    for shipped in SHIPPED {
        table.row([shipped.name.to_owned(), shipped.summary()]);
    }
    table
}

fn machines() -> Table {
    let mut table = Table::default().names("machine").prose("what it is");
    for (name, text) in Hardware::shipped() {
        let first = text.lines().next().unwrap_or_default();
        let summary = first.trim_start_matches(['#', ' ']).trim_end_matches('.');
        table.row([(*name).to_owned(), summary.to_owned()]);
    }
    table
}

fn columns() -> Table {
    let mut table = Table::default()
        .names("table")
        .names("column")
        .names("title")
        .prose("meaning");
    for (of, mut name, _) in TableName::ALL {
        for [column, title, about] in of.columns() {
            table.row([std::mem::take(&mut name), column, title, about].map(str::to_owned));
        }
    }
    table
}

fn policy_in_full(policy: &Policy) -> anyhow::Result<String> {
    let mut text = format!("{}: {}\n\n", policy.name, policy.summary);
    for part in [
        policy.promise,
        &format!("Source: {}", policy.source),
        &format!("Differs from the source: {}", policy.differs),
    ] {
        for paragraph in part.split("\n\n").filter(|it| !it.is_empty()) {
            text += &wrapped(paragraph);
            text.push('\n');
        }
    }
    let mut table = Table::default()
        .names("knob")
        .numbers("default")
        .numbers("from")
        .numbers("to")
        .names("unit")
        .prose("what it does");
    for knob in knobs_of(policy)? {
        let [_, name, default, _, min, max, unit, doc] = row(String::new(), &knob);
        table.row([name, default, min, max, unit, doc]);
    }
    let _ = write!(text, "{table}");
    let name = policy.name;
    text += &format!("\nIts source: runslice list --copy {name}\n");
    Ok(text)
}

fn workload_in_full(shipped: &Shipped) -> anyhow::Result<String> {
    let name = shipped.name;
    let workload = workload_arg::find(&COMPUTER, name, &[])?;
    let mut text = wrapped(&format!("{name}: {}", shipped.summary()));
    let machine = &workload.machine;
    let end = workload.stop.after.map(|after| format!(", {after} long"));
    let _ = writeln!(
        text,
        "\n{}, HZ {}, kernel {}, seed {}{}\n",
        counted(machine.cpus.into(), "CPU"),
        machine.hz,
        machine.kernel.name(),
        workload.seed,
        end.unwrap_or_default()
    );
    let mut table = Table::default()
        .names("tasks")
        .numbers("count")
        .numbers("nice");
    for group in &workload.groups {
        let [count, nice] = [group.count.to_string(), group.nice.to_string()];
        table.row([group.name.clone(), count, nice]);
    }
    let _ = write!(text, "{table}");
    if !workload.scale.is_empty() {
        let mut table = Table::default().names("parameter").numbers("default");
        for (parameter, value) in &workload.scale {
            table.row([parameter.clone(), value.to_string()]);
        }
        let (first, value) = &workload.scale[0];
        let _ = write!(
            text,
            "\n{table}\nChange one: --scale {first}={}\n",
            value * 2
        );
    }
    text += &format!("Its file: runslice list --copy {name}\n");
    Ok(text)
}

/// One paragraph, in lines of at most 80 columns.
fn wrapped(paragraph: &str) -> String {
    const COLUMNS: usize = 80;
    let mut text = String::new();
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let len = word.chars().count();
        if width > 0 && width + 1 + len > COLUMNS {
            text.push('\n');
            width = 0;
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text += word;
        width += len;
    }
    text + "\n"
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
    let lessons = policies::LESSONS.iter().chain(policies::CID_LESSONS);
    for policy in policies::ALL.iter().chain(lessons) {
        let mut name = policy.name.to_owned();
        for knob in &knobs_of(policy)? {
            table.row(row(std::mem::take(&mut name), knob));
        }
    }
    Ok(table)
}

fn knobs_of(policy: &Policy) -> anyhow::Result<Vec<Knob>> {
    let object = Object::parse(policy.object).context(policy.name)?;
    let kernel = kernel::checked(&object)[0];
    Ok(kernel::link(&object, kernel).context(policy.name)?.knobs)
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
