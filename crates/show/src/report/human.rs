//! Tables for people: every task group, deadline and figure once under each policy, so that the
//! eye compares neighbours.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ask::outcome::{Outcome, ROWS, Results};
use ask::words::counted;
use model::{HardwareUse, MachineSpec, Nanos, Profile, SubSummary};
use stats::{ColumnValue, CounterReport, DeadlineReport, GroupReport, Millionths, SpanReport};
use stats::{Report, TaskReport};

use super::goals;
use crate::Look;
use crate::table::Table;

/// Writes the tables that have something to say.
///
/// # Errors
/// When `to` does not take them.
pub fn write(results: &Results, look: Look, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "{}\n", heading(results))?;
    let answer = goals::answer(results, false);
    goals::write(&answer, look.width, to)?;
    let mut has_lost = false;
    let (shown, more) = if look.is_wide {
        (None, 0)
    } else {
        first_names(results)
    };
    let shown = shown.as_deref();
    for (name, table) in tables(results, shown) {
        if name == HARDWARE && !look.is_wide {
            continue;
        }
        let (table, lost) = table.fit(look.width);
        has_lost |= lost > 0;
        writeln!(to)?;
        table.write(to)?;
        if more > 0 && name == GROUPS {
            writeln!(
                to,
                "and {more} more names, which waited less; --wide shows every task's row"
            )?;
        }
    }
    if has_lost {
        writeln!(to, "\n--wide shows all columns.")?;
    }
    remarks(results, look.is_verbose, to)?;
    goals::again(&answer, look.width, to)
}

/// What the table of groups is called.
const GROUPS: &str = "Groups of tasks";

/// Of a run with many groups the names that waited longest, the longest first, because waits are
/// what a recording is judged by; and how many names there are besides. `None`: each group has a
/// row.
fn first_names(results: &Results) -> (Option<Vec<String>>, usize) {
    let mut waited: Vec<(String, u128)> = Vec::new();
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    for group in results.outcomes.iter().flat_map(|it| &it.families) {
        let place = *at.entry(&group.name).or_insert_with(|| {
            waited.push((group.name.clone(), 0));
            waited.len() - 1
        });
        waited[place].1 += u128::from(group.times.wait.get());
    }
    if waited.is_empty() {
        return (None, 0);
    }
    waited.sort_by_key(|(_, wait)| std::cmp::Reverse(*wait));
    let more = waited.len().saturating_sub(ROWS);
    waited.truncate(ROWS);
    let names = waited.into_iter().map(|(name, _)| name);
    (Some(names.collect()), more)
}

/// The tables that have something to say, with what is in them. Of groups only those of the
/// families that `shown` names, if it is given.
pub fn tables<'a>(
    results: &'a Results,
    shown: Option<&[String]>,
) -> impl Iterator<Item = (&'static str, Table)> + use<'a> {
    let tables = [
        (GROUPS, groups(results, shown)),
        ("Jobs", jobs(results)),
        ("Deadlines", deadlines(results)),
        ("Spans", spans(results)),
        ("Counters", counters(results)),
        (HARDWARE, hardware(results)),
        ("The machine", machine(results)),
    ];
    tables.into_iter().filter(|(_, table)| !table.is_empty())
}

/// What ran where, in one line.
#[must_use]
pub fn heading(results: &Results) -> String {
    let elapsed = results
        .outcomes
        .iter()
        .map(|outcome| outcome.report.machine.elapsed)
        .max();
    let done = results.world.name();
    format!(
        "{}: {}, seed {}, {} {done}",
        model::plain::shown(&results.workload),
        machine_words(&results.machine),
        results.seed,
        elapsed.unwrap_or(Nanos::ZERO),
    )
}

/// What a run took place on, in the words of a heading.
pub(super) fn machine_words(machine: &MachineSpec) -> String {
    let kernel = machine.kernel.name();
    if let Some(order) = machine.textbook {
        return format!("machine {order}, kernel {kernel}");
    }
    format!(
        "{}, HZ {}, kernel {kernel}{}",
        counted(machine.cpus.into(), "CPU"),
        machine.hz,
        profile(machine)
    )
}

/// The profile of a machine on which something costs time.
#[must_use]
pub fn profile(machine: &MachineSpec) -> String {
    match machine.profile {
        Profile::Ideal => String::new(),
        ref other => format!(", profile {}", other.name()),
    }
}

/// Adds to `table` everything that `of` finds in the reports: what has the same name stands
/// together, a row for each policy, with the name in front of the first only.
fn compare<T>(
    results: &Results,
    mut table: Table,
    of: impl for<'a> Fn(&'a Outcome) -> Vec<&'a T>,
    name: impl Fn(&T) -> String,
    cells: impl Fn(&T) -> Vec<String>,
) -> Table {
    // Each outcome's rows by name: a recording has thousands.
    let mut names: Vec<String> = Vec::new();
    let mut known: BTreeMap<String, Vec<Option<&T>>> = BTreeMap::new();
    for (at, outcome) in results.outcomes.iter().enumerate() {
        for found in of(outcome) {
            // A policy that was ejected early may lack what another one has.
            let rows = known.entry(name(found)).or_insert_with_key(|name| {
                names.push(name.clone());
                vec![None; results.outcomes.len()]
            });
            rows[at].get_or_insert(found);
        }
    }
    for wanted in names {
        let mut shown = wanted.clone();
        let rows = known.get(&wanted).into_iter().flatten();
        for (outcome, found) in results.outcomes.iter().zip(rows) {
            let Some(found) = found else { continue };
            let front = [std::mem::take(&mut shown), outcome.policy.clone()];
            table.row(front.into_iter().chain(cells(found)));
        }
    }
    table
}

fn span(value: Option<Nanos>) -> String {
    ColumnValue::Nanos(value).to_string()
}

fn share(value: Millionths) -> String {
    ColumnValue::Share(value).to_string()
}

/// What a group's deadline, span or counter is called.
fn owned(group: &str, name: &str) -> String {
    if group == name {
        name.to_owned()
    } else {
        format!("{group}: {name}")
    }
}

fn groups(results: &Results, shown: Option<&[String]>) -> Table {
    let table = Table::default()
        .names("task")
        .names("policy")
        .numbers("tasks")
        .rank(6)
        .numbers("runs")
        .rank(4)
        .numbers_of("wakeup latency", "p50")
        .rank(3)
        .numbers_of("wakeup latency", "p99")
        .numbers_of("wakeup latency", "max")
        .rank(8)
        .numbers_of("preempt", "p99")
        .rank(7)
        .numbers_of("delay", "p99")
        .rank(1)
        .numbers_of("runslice", "p50")
        .rank(2)
        .numbers_of("CPU", "share")
        .numbers("migr")
        .rank(5);
    let name = |group: &GroupReport| group.name.clone();
    compare(
        results,
        table,
        |outcome| match shown {
            Some(shown) => {
                let of = |name: &String| outcome.families.iter().find(|it| it.name == *name);
                shown.iter().filter_map(of).collect()
            }
            None => outcome.report.groups.iter().collect(),
        },
        name,
        |group| {
            vec![
                group.tasks.to_string(),
                group.runs.to_string(),
                span(group.wakeup.p50),
                span(group.wakeup.p99),
                span(group.wakeup.max),
                span(group.preempt.p99),
                span(group.delay.p99),
                span(group.runslice.p50),
                share(group.share),
                group.migrations.to_string(),
            ]
        },
    )
}

/// Most jobs that have a row each.
const JOBS: usize = 20;

/// Where each task comes, works and exits: how long that took, as textbooks have it, and the means
/// of all. Of many tasks only the means.
#[must_use]
pub fn jobs(results: &Results) -> Table {
    let mut table = Table::default()
        .names("job")
        .names("policy")
        .numbers("turnaround")
        .numbers("response")
        .numbers("waiting")
        .numbers("work")
        .rank(1);
    let reports = || results.outcomes.iter().map(|it| &it.report);
    let ends = |report: &Report| report.all.tasks > 1 && report.all.exited == report.all.tasks;
    if !reports().all(ends) {
        return table;
    }
    if reports().all(|report| report.tasks.len() <= JOBS) {
        table = compare(
            results,
            table,
            |outcome| outcome.report.tasks.iter().collect(),
            |task: &TaskReport| task.name.clone(),
            |task| {
                let waited = Some(task.times.wait);
                let worked = Some(task.times.run);
                [task.turnaround, task.response, waited, worked]
                    .map(span)
                    .into()
            },
        );
    }
    compare(
        results,
        table,
        |outcome| vec![&outcome.report.all],
        |_| "mean".to_owned(),
        |all: &GroupReport| {
            let mean = |sum: Nanos| sum.get().checked_div(all.tasks).map(Nanos::new);
            let waited = mean(all.times.wait);
            let worked = mean(all.times.run);
            [all.turnaround, all.response, waited, worked]
                .map(span)
                .into()
        },
    )
}

fn deadlines(results: &Results) -> Table {
    let table = Table::default()
        .names("deadline")
        .names("policy")
        .numbers("met")
        .rank(3)
        .numbers("missed")
        .rank(2)
        .numbers("share")
        .names("a miss is")
        .rank(1)
        .numbers("skipped")
        .rank(4)
        .numbers_of("lateness of the late", "p50")
        .rank(6)
        .numbers_of("lateness of the late", "p99")
        .numbers_of("lateness of the late", "max")
        .rank(5);
    let name = |deadline: &DeadlineReport| owned(&deadline.group, &deadline.name);
    compare(
        results,
        table,
        |outcome| outcome.report.deadlines.iter().collect(),
        name,
        |deadline| {
            let all = deadline.met + deadline.missed;
            vec![
                deadline.met.to_string(),
                deadline.missed.to_string(),
                share(Millionths::of(deadline.missed.into(), all.into())),
                deadline.word.clone(),
                deadline.skipped.to_string(),
                span(deadline.lateness.p50),
                span(deadline.lateness.p99),
                span(deadline.lateness.max),
            ]
        },
    )
}

fn spans(results: &Results) -> Table {
    let table = Table::default()
        .names("span")
        .names("policy")
        .numbers("count")
        .numbers_of("length", "mean")
        .numbers_of("length", "p50")
        .numbers_of("length", "p99")
        .numbers_of("length", "max");
    let name = |span: &SpanReport| owned(&span.group, &span.name);
    compare(
        results,
        table,
        |outcome| outcome.report.spans.iter().collect(),
        name,
        |found| {
            let length = &found.length;
            let figures = [length.mean, length.p50, length.p99, length.max].map(span);
            [length.count.to_string()]
                .into_iter()
                .chain(figures)
                .collect()
        },
    )
}

fn counters(results: &Results) -> Table {
    let table = Table::default()
        .names("counter")
        .names("policy")
        .numbers("total");
    let name = |counter: &CounterReport| owned(&counter.group, &counter.name);
    compare(
        results,
        table,
        |outcome| outcome.report.counters.iter().collect(),
        name,
        |counter| vec![counter.total.to_string()],
    )
}

fn machine(results: &Results) -> Table {
    let mut table = Table::default()
        .names("machine")
        .names("policy")
        .numbers("switches")
        .rank(1)
        .numbers_of("share of CPU time", "run")
        .numbers_of("share of CPU time", "idle")
        .numbers_of("share of CPU time", "stolen")
        .rank(3)
        .numbers_of("share of CPU time", "overhead")
        .rank(2)
        .numbers_of("idle while", "waiting")
        .numbers("callbacks")
        .rank(4);
    for (
        at,
        Outcome {
            policy,
            report,
            summary,
            ..
        },
    ) in results.outcomes.iter().enumerate()
    {
        let machine = &report.machine;
        table.row([
            if at == 0 {
                counted(machine.cpus.into(), "CPU")
            } else {
                String::new()
            },
            policy.clone(),
            machine.switches.to_string(),
            share(machine.run),
            share(machine.idle),
            share(machine.stolen),
            share(machine.overhead),
            span(Some(machine.idle_while_waiting)),
            summary.callbacks.to_string(),
        ]);
    }
    table
}

/// What is to be said besides the figures: tasks that still waited at the end, the policy's own
/// counters and words, hints of the machine, ejections.
fn remarks(results: &Results, is_verbose: bool, to: &mut dyn Write) -> io::Result<()> {
    let lines = remarked(results, is_verbose);
    if !lines.is_empty() {
        writeln!(to)?;
    }
    lines.iter().try_for_each(|line| writeln!(to, "{line}"))
}

/// The classes of CPUs, each with its share of the work of `group`.
fn classes(report: &Report, group: &str) -> Vec<String> {
    let of_group = report.classes.iter().filter(|it| it.group == group);
    let shares = of_group.map(|it| format!("{} {}", it.class, share(it.share)));
    shares.collect()
}

/// Work that CPUs did which differ: energy, work, classes, what was lost.
fn of_hardware(policy: &str, used: &HardwareUse, report: &Report) -> Option<String> {
    let all = report.hardware.last()?;
    let mut parts = Vec::new();
    if let (Some(energy), Some(work)) = (all.energy_uj, all.work_per_millijoule()) {
        let energy = ColumnValue::Energy(Some(energy));
        parts.push(format!("{energy} ({}), {work} of work per mJ", used.parts));
    }
    let shares = classes(report, &all.group);
    let classes = match shares.len() {
        0 | 1 => String::new(),
        _ => format!(" ({})", shares.join(", ")),
    };
    parts.push(format!("{} of work{classes}", all.work));
    let rate = all.rate().0;
    parts.push(format!("mean rate {}.{:03}", rate / 1000, rate % 1000));
    let shared = Millionths::of(all.sibling.get().into(), all.executed.get().into());
    if !all.sibling.is_zero() {
        parts.push(format!("core shared for {} of the time", share(shared)));
    }
    let [capacity, frequency, threads, memory] = all.lost;
    for (what, span) in [
        ("lost to capacity", capacity),
        ("lost to frequency", frequency),
        ("lost to the other thread", threads),
        ("lost to memory", memory),
        ("misfit", all.misfit),
        ("misplaced", all.misplaced),
        ("away from its memory", all.remote),
        ("half a core while one idled", all.shared_core),
    ] {
        if !span.is_zero() {
            parts.push(format!("{what} {span}"));
        }
    }
    Some(listed(&format!("{policy} hardware:"), &parts))
}

/// `parts` behind `head`, with commas, in lines of at most 80 columns that end between parts.
fn listed(head: &str, parts: &[String]) -> String {
    const COLUMNS: usize = 80;
    let mut text = head.to_owned();
    let mut width = head.chars().count();
    for (at, part) in parts.iter().enumerate() {
        let comma = if at + 1 < parts.len() { "," } else { "" };
        let more = 1 + part.chars().count() + comma.len();
        if width + more > COLUMNS {
            text.push_str("\n ");
            width = 1;
        }
        text = text + " " + part + comma;
        width += more;
    }
    text
}

/// What the table of work and energy is called.
const HARDWARE: &str = "Work on CPUs that differ";

fn hardware(results: &Results) -> Table {
    let mut table = Table::default()
        .names("task")
        .names("policy")
        .numbers("work")
        .numbers("rate")
        .numbers("energy")
        .rank(1)
        .numbers("work/mJ")
        .rank(2)
        .numbers("misfit")
        .rank(3)
        .numbers_of("core", "shared")
        .rank(5)
        .numbers_of("core", "half")
        .rank(4)
        .names("classes")
        .rank(6)
        .numbers("misplaced")
        .rank(7)
        .numbers("remote")
        .rank(8);
    let most = results
        .outcomes
        .iter()
        .map(|it| it.report.hardware.len())
        .max();
    for at in 0..most.unwrap_or(0) {
        let mut named = false;
        for outcome in &results.outcomes {
            let Some(row) = outcome.report.hardware.get(at) else {
                continue;
            };
            let name = if named {
                String::new()
            } else {
                row.group.clone()
            };
            named = true;
            table.row([
                name,
                outcome.policy.clone(),
                row.work.to_string(),
                ColumnValue::Average(row.rate()).to_string(),
                ColumnValue::Energy(row.energy_uj).to_string(),
                span(row.work_per_millijoule()),
                row.misfit.to_string(),
                row.sibling.to_string(),
                row.shared_core.to_string(),
                classes(&outcome.report, &row.group).join(", "),
                row.misplaced.to_string(),
                row.remote.to_string(),
            ]);
        }
    }
    table
}

/// What became of a scheduler below `policy`.
fn of_sub(policy: &str, sub: &SubSummary) -> String {
    let tasks = counted(sub.tasks, "task");
    let counts = sub.counters.iter().filter(|(_, count)| *count > 0);
    let counts =
        counts.map(|(name, count)| format!(", {} {count}", name.trim_start_matches("SCX_EV_")));
    format!(
        "{policy}: {} at {} had {tasks} and {} of CPU time until {} s ({}){}",
        sub.policy,
        sub.cgroup,
        sub.ran,
        sub.exit.time,
        sub.exit.kind.reason(),
        counts.collect::<String>(),
    )
}

/// The same as lines; with `is_verbose` all of them.
#[must_use]
pub fn remarked(results: &Results, is_verbose: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for Outcome {
        policy,
        report,
        summary,
        ..
    } in &results.outcomes
    {
        if let Some(longest) = report.all.waiting_at_end_max
            && is_verbose
        {
            let tasks = report.all.waiting_at_end;
            lines.push(format!(
                "{policy}: {} waited for a CPU at the end, the longest for {longest}",
                counted(tasks, "task"),
            ));
        }
        let counters = summary
            .policy_counters
            .iter()
            .filter(|(_, count)| *count > 0);
        let counters: Vec<String> = counters.map(|(name, n)| format!("{name} {n}")).collect();
        if is_verbose && !counters.is_empty() {
            lines.push(format!("{policy} counted: {}", counters.join(", ")));
        }
        let spent: Vec<String> = (summary.spent.iter())
            .filter(|(_, span)| !span.is_zero())
            .map(|(kind, span)| format!("{kind} {span}"))
            .collect();
        if is_verbose && !spent.is_empty() {
            lines.push(format!("{policy} overhead: {}", spent.join(", ")));
        }
        let hardware = summary.hardware.as_ref();
        lines.extend(hardware.and_then(|it| of_hardware(policy, it, report)));
        lines.extend(summary.subs.iter().map(|it| of_sub(policy, it)));
        let grown = report.spans.iter().filter(|it| it.grows);
        lines.extend(grown.map(|it| {
            format!(
                "{policy}: {} grows with the duration: requests came faster than they were \
                 answered",
                owned(&it.group, &it.name)
            )
        }));
        let late = report.deadlines.iter().filter(|it| it.grows);
        lines.extend(late.filter(|_| summary.growing.is_empty()).map(|it| {
            format!(
                "{policy}: {} grows with the duration: periods came faster than they were done",
                owned(&it.group, &it.name)
            )
        }));
        let is_told = report.spans.iter().any(|it| it.grows) || !summary.growing.is_empty();
        if report.all.grows && !is_told {
            lines.push(format!(
                "{policy}: all waits grow with the duration: tasks were forked faster than they \
                 ended"
            ));
        }
        let told = summary.told().into_iter();
        lines.extend(told.map(|note| format!("{policy}: {note}")));
        let printed = summary.printed.lines();
        let printed = printed.map(|line| format!("{policy} printed: {line}"));
        lines.extend(printed.filter(|_| is_verbose));
    }
    lines.extend(results.ejections());
    lines
}
