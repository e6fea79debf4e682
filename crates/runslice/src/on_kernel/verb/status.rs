//! `runslice status`.

mod clock;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use live::pins::Section;
use live::preflight::{self, MachineFacts};
use live::{Holder, SchedExt};
use serde::Serialize;
use show::format::MEASURED;

use crate::computer::COMPUTER;
use crate::exit::{Status, UnsupportedError};
use crate::on_kernel::attach::left_said;
use crate::on_kernel::session::{RunningProcess, SessionPaths, SessionRecord};
use crate::on_kernel::tunables::Tunables;
use crate::report::{Format, format_of};
use crate::say::say;
use crate::table::Table;
use crate::{output, policy};

/// Version of the document; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 1;

/// Arguments of `runslice status`.
#[derive(Debug, Args)]
pub struct StatusOf {
    /// Output format.
    #[arg(long, value_parser = format_of(MEASURED), default_value_t = Format::Human)]
    format: Format,

    /// Read the system files below this folder instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// All that is known of the machine's scheduler.
#[derive(Debug, Serialize)]
struct Situation {
    runslice_status: u32,
    kernel: String,
    /// Phase of the kernel's sched_ext.
    state: String,
    /// As the kernel calls the policy; none is attached without it.
    policy: Option<String>,
    /// False when only tasks that ask for it have the policy.
    has_all_tasks: Option<bool>,
    /// Policies that were attached since the kernel booted.
    attached_so_far: Option<u64>,
    /// Tasks that the policy refused.
    rejected: Option<u64>,
    run_by: Option<Process>,
    /// What only runslice knows of its own policies.
    runslice: Option<Own>,
    kernel_counters: Vec<Counter>,
}

#[derive(Debug, Serialize)]
struct Process {
    pid: u32,
    name: String,
    service: Option<String>,
}

#[derive(Debug, Serialize)]
struct Own {
    policy: String,
    pid: u32,
    since_unix_s: u64,
    for_s: u64,
    restarts: u32,
    replaced: Option<String>,
    knobs: Vec<Tunable>,
    counters: Vec<Counter>,
    /// What could not be read, and why.
    notes: Vec<String>,
}

/// A variable that can be set. A variable without declaration has no default and no range.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Tunable {
    name: String,
    value: Option<i128>,
    default: Option<i64>,
    min: Option<i64>,
    max: Option<i64>,
    unit: String,
}

#[derive(Debug, Serialize)]
struct Counter {
    name: String,
    total: u64,
}

/// Prints what schedules, ours or somebody else's.
///
/// # Errors
/// When the kernel has no sched_ext, or standard output is closed.
pub fn run(request: &StatusOf) -> anyhow::Result<Status> {
    let place = SessionPaths::below(&request.root);
    // First, for it waits for one that is attaching: what the kernel says must not be older.
    let found = place.find()?;
    let facts = MachineFacts::below(&request.root);
    if facts.state.is_none()
        && let Some(finding) = preflight::judge(&facts).first()
    {
        let text = format!("{}\n  {}", finding.what, finding.way_out);
        return Err(UnsupportedError::new(text).into());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.map_or(0, |now| now.as_secs());
    if let RunningProcess::Left(record) = &found {
        say("status", &left_said(record.as_deref()));
    }
    let own = match found {
        RunningProcess::Running(record) => Some(Own::of(&record, &place, now_s)),
        RunningProcess::Nobody | RunningProcess::Left(_) => None,
    };
    let situation = Situation::of(facts, &SchedExt::below(&request.root), own);
    let mut to = output::open(None)?;
    situation.write(request.format, &mut to)?;
    to.flush()?;
    Ok(Status::Done)
}

impl Situation {
    fn of(facts: MachineFacts, kernel: &SchedExt, runslice: Option<Own>) -> Self {
        let state = facts
            .state
            .map_or_else(String::new, |state| state.to_string());
        Self {
            runslice_status: VERSION,
            kernel: facts.release,
            state,
            policy: facts.attached,
            has_all_tasks: kernel.has_all_tasks(),
            attached_so_far: kernel.enable_seq(),
            rejected: kernel.rejected(),
            run_by: facts.holder.map(Process::from),
            runslice,
            kernel_counters: named(kernel.events()),
        }
    }

    fn write(&self, form: Format, to: &mut dyn Write) -> io::Result<()> {
        if form == Format::Json {
            serde_json::to_writer_pretty(&mut *to, self).map_err(io::Error::from)?;
            return writeln!(to);
        }
        for (name, value) in self.lines() {
            writeln!(to, "{name:<9}  {value}")?;
        }
        let mut tables = Vec::new();
        if let Some(own) = &self.runslice {
            tables.push(own.knob_table());
            tables.push(counter_table("policy counter", &own.counters));
        }
        tables.push(counter_table("kernel counter", &self.kernel_counters));
        for table in tables.iter().filter(|table| !table.is_empty()) {
            write!(to, "\n{table}")?;
        }
        let notes = self.runslice.iter().flat_map(|own| &own.notes);
        for note in notes {
            writeln!(to, "\nnote: {note}")?;
        }
        Ok(())
    }

    /// What stands above the tables: names and values.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let Some(policy) = &self.policy else {
            let none = match self.state.as_str() {
                "disabled" => "none: the kernel's own scheduler has all tasks".to_owned(),
                state => format!("{state}, by the kernel's words"),
            };
            return vec![("policy", none), ("kernel", self.kernel.clone())];
        };
        let own = self.runslice.as_ref();
        let ops_name = policy;
        let policy = own.map_or(policy, |own| &own.policy);
        let by = match (&self.run_by, own) {
            (Some(process), _) => process.to_string(),
            (None, Some(own)) => format!("runslice, process {}", own.pid),
            (None, None) => "a process that only the administrator sees, or none".to_owned(),
        };
        let since = own.map_or_else(
            || "not known: not attached by runslice".to_owned(),
            |own| format!("{}, for {} s", clock::utc(own.since_unix_s), own.for_s),
        );
        let tasks = match self.has_all_tasks {
            Some(false) => "those that ask for SCHED_EXT; they run when no other wants the CPU",
            _ => "all that have no real-time priority or deadline",
        };
        let mut lines = vec![("policy", policy.clone())];
        if policy.split(':').next() != Some(ops_name) {
            lines.push(("ops name", ops_name.clone()));
        }
        lines.extend([
            ("run by", by),
            ("since", since),
            ("tasks", tasks.to_owned()),
        ]);
        match own {
            None => lines.push(("tunables", "not known: not attached by runslice".to_owned())),
            Some(own) => {
                if own.restarts > 0 {
                    lines.push(("restarts", own.restarts.to_string()));
                }
                if let Some(unit) = &own.replaced {
                    lines.push((
                        "instead of",
                        format!("{unit}, which is started again afterwards"),
                    ));
                }
            }
        }
        if let Some(rejected) = self.rejected.filter(|rejected| *rejected > 0) {
            lines.push(("rejected", format!("{rejected} tasks")));
        }
        lines.push(("kernel", self.kernel.clone()));
        lines
    }
}

impl Own {
    /// What the record and the pinned maps tell.
    fn of(record: &SessionRecord, place: &SessionPaths, now_s: u64) -> Self {
        let mut notes = Vec::new();
        let mut note = |error: String| {
            if !notes.contains(&error) {
                notes.push(error);
            }
        };
        // A scheduler's own program has none that runslice knows.
        let object = if place.object().exists() {
            policy::read(&COMPUTER, &place.object()).map(Some)
        } else {
            Ok(None)
        };
        let knobs = object
            .and_then(|object| match object {
                Some(object) => Tunables::of(&record.policy, &object).map(Some),
                None => Ok(None),
            })
            .map(|tunables| match tunables {
                Some(tunables) => tunables_of(&tunables, record, place, &mut note),
                None => Vec::new(),
            })
            .unwrap_or_else(|error| {
                note(crate::exit::in_full(&error));
                Vec::new()
            });
        let counters = record.counted(place).unwrap_or_else(|error| {
            note(error.to_string());
            Vec::new()
        });
        Self {
            policy: record.policy.clone(),
            pid: record.pid,
            since_unix_s: record.since_unix_s,
            for_s: now_s.saturating_sub(record.since_unix_s),
            restarts: record.restarts,
            replaced: record.replaced.clone(),
            knobs,
            counters: named(counters),
            notes,
        }
    }

    fn knob_table(&self) -> Table {
        let mut table = Table::default()
            .names("knob")
            .numbers("value")
            .numbers("default")
            .numbers("from")
            .numbers("to")
            .names("unit");
        let said = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |it| it.to_string());
        for knob in &self.knobs {
            let value = knob.value.map(|value| value.to_string());
            table.row([
                knob.name.clone(),
                value.unwrap_or_else(|| "?".to_owned()),
                said(knob.default),
                said(knob.min),
                said(knob.max),
                knob.unit.clone(),
            ]);
        }
        table
    }
}

/// The tunables that the object declares, and the variables that were set without a declaration,
/// with their values of this moment.
fn tunables_of(
    tunables: &Tunables,
    record: &SessionRecord,
    place: &SessionPaths,
    note: &mut dyn FnMut(String),
) -> Vec<Tunable> {
    let mut found: Vec<Tunable> = tunables
        .knobs()
        .iter()
        .map(|knob| Tunable {
            name: knob.name.clone(),
            value: None,
            default: Some(knob.on_kernel.unwrap_or(knob.default)),
            min: Some(knob.min),
            max: Some(knob.max),
            unit: knob.unit.clone(),
        })
        .collect();
    for (name, _) in &record.set {
        if !found.iter().any(|knob| knob.name == *name) {
            found.push(Tunable {
                name: name.clone(),
                value: None,
                default: None,
                min: None,
                max: None,
                unit: String::new(),
            });
        }
    }
    for knob in &mut found {
        let Some(at) = tunables.place(&knob.name) else {
            continue;
        };
        let size = usize::from(at.scalar.size());
        let read = Section::open(&place.pins(), &at.section)
            .and_then(|section| section.read(at.offset, size));
        match read {
            Ok(bytes) => knob.value = Some(at.value(&bytes)),
            Err(error) => note(error.to_string()),
        }
    }
    found
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.service {
            Some(unit) => write!(f, "{} of {unit}, process {}", self.name, self.pid),
            None => write!(f, "{}, process {}", self.name, self.pid),
        }
    }
}

impl From<Holder> for Process {
    fn from(holder: Holder) -> Self {
        Self {
            pid: holder.pid,
            name: holder.name,
            service: holder.service,
        }
    }
}

fn named(counters: Vec<(String, u64)>) -> Vec<Counter> {
    let named = counters
        .into_iter()
        .map(|(name, total)| Counter { name, total });
    named.collect()
}

fn counter_table(title: &'static str, counters: &[Counter]) -> Table {
    let mut table = Table::default().names(title).numbers("total");
    for Counter { name, total } in counters {
        table.row([name.clone(), total.to_string()]);
    }
    table
}

#[cfg(test)]
mod tests;
