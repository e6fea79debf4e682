//! Which scheduler for many machines: counts of machines, and never a mean over them.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::choose::fleet::{COUNTED, Fleet, FleetCandidate, FleetMachine, Tally};
use ask::choose::rank::Standing;
use ask::words::counted;
use serde_json::{Value, json};
use stats::compare::{Answered, MetricRow, RatioAnswer};

use super::words::{change, paragraph, short};
use crate::Origin;
use crate::comparison::{self, Comparison};
use crate::export::ExportTable;
use crate::page::Page;
use crate::table::Table;

/// Candidates of which each machine is told.
const TOLD: usize = 8;

/// The answer as sentences, in their order.
#[must_use]
pub fn answer(fleet: &Fleet) -> Vec<String> {
    let mut sentences = vec![verdict(fleet)];
    for (at, candidate) in fleet.candidates.iter().enumerate() {
        let all = fleet.machines.iter();
        let failed: Vec<_> = all
            .filter_map(|it| Some((&it.name, it.candidates[at].failure.as_ref()?)))
            .collect();
        if let Some((machine, why)) = failed.first() {
            sentences.push(format!(
                "{candidate} failed on {}, first on {machine}: {why}.",
                counted(failed.len() as u64, "machine")
            ));
        }
    }
    for (file, why) in &fleet.unread {
        sentences.push(format!("Nothing is known of {file}: {why}."));
    }
    if let Some(&first) = fleet.order().first() {
        let (name, bound) = (&fleet.candidates[first], at_least(&fleet.tally(first)));
        sentences.push(format!(
            "Of such machines {name} is not worse on at least {bound}, with a probability of \
             95 %, if these were drawn by chance; 59 without a worse one show 95 %."
        ));
    }
    sentences
}

/// Stay or change, in one sentence, with the counts of machines.
fn verdict(fleet: &Fleet) -> String {
    let base = &fleet.baseline;
    let machines = counted(fleet.machines.len() as u64, "machine");
    let Some(&first) = fleet.order().first() else {
        return format!("Stay with {base} on {machines}.");
    };
    let name = &fleet.candidates[first];
    let Tally {
        better,
        alike,
        worse,
        cannot_tell,
        ..
    } = fleet.tally(first);
    let counts = format!("alike on {alike}, worse on {worse}, cannot tell on {cannot_tell}");
    let strength = strength(fleet, first);
    if fleet.winner().is_some() {
        format!(
            "Change from {base} to {name} on {machines}: {strength}better on {better}, {counts}."
        )
    } else {
        format!(
            "Stay with {base} on {machines} as a whole: {name} is {strength}better on {better}, \
             {counts}."
        )
    }
}

/// Whether what is better is shown on every machine that counts for it, or only likely on one of
/// them; nothing where nothing is better.
fn strength(fleet: &Fleet, at: usize) -> &'static str {
    let all = fleet.machines.iter().map(|it| &it.candidates[at]);
    let better = all.filter(|it| it.standing == Standing::Better);
    let better: Vec<bool> = better
        .flat_map(|it| &it.said)
        .filter(|(_, it)| it.answer == RatioAnswer::Better)
        .map(|(_, it)| it.is_shown)
        .collect();
    match better.as_slice() {
        [] => "",
        all if all.iter().all(|is_shown| *is_shown) => "shown ",
        _ => "likely ",
    }
}

fn at_least(tally: &Tally) -> String {
    format!("{:.0} %", (tally.not_worse_at_least() * 100.0).floor())
}

/// Writes all of it, sentences in lines of at most `width` columns.
///
/// # Errors
/// When `to` does not take it.
pub fn write(fleet: &Fleet, width: usize, to: &mut dyn Write) -> io::Result<()> {
    for sentence in answer(fleet) {
        paragraph(&sentence, width, to)?;
    }
    for (title, table) in tables(fleet) {
        writeln!(to, "\n{title}")?;
        write!(to, "{table}")?;
    }
    Ok(())
}

/// How many machines are how, under each candidate; then a line for each machine, or if there are
/// many the kinds of machines and those where it does worst.
fn tables(fleet: &Fleet) -> Vec<(String, Table)> {
    let order = fleet.order();
    let mut counts = tally_table("candidate");
    for &at in &order {
        counts.row(tally_row(&short(&fleet.candidates[at]), &fleet.tally(at)));
    }
    let n = fleet.machines.len();
    let rule = "better: at a goal, and surely not worse at others";
    let title = format!("Against {}, {n} in all; {rule}", fleet.baseline);
    let mut all = vec![(title, counts)];
    for at in order.into_iter().take(TOLD) {
        let name = &fleet.candidates[at];
        if n < COUNTED {
            let machines: Vec<&FleetMachine> = fleet.machines.iter().collect();
            all.extend(lines(name, &machines, (at, "", FleetCandidate::deciding)));
            continue;
        }
        let mut kinds = tally_table("machines");
        for ((cpus, kernel), tally) in fleet.by_kind(at) {
            let kind = format!("{}, {kernel}", counted(cpus.into(), "CPU"));
            kinds.row(tally_row(&kind, &tally));
        }
        all.push((format!("{name} by number of CPUs and kernel"), kinds));
        let whose = ", on the tenth of the machines where it does worst";
        let machines = fleet.worst_tenth(at);
        all.extend(lines(name, &machines, (at, whose, FleetCandidate::worst)));
    }
    all
}

fn tally_table(first: &str) -> Table {
    Table::default()
        .names(first)
        .numbers("better")
        .numbers("alike")
        .numbers("worse")
        .numbers("cannot tell")
        .numbers_of("not worse", "at least")
}

fn tally_row(name: &str, tally: &Tally) -> Vec<String> {
    let counts = [tally.better, tally.alike, tally.worse, tally.cannot_tell];
    let counts = counts.into_iter().map(|it| it.to_string());
    let ends = [at_least(tally)];
    [name.to_owned()]
        .into_iter()
        .chain(counts)
        .chain(ends)
        .collect()
}

/// The goal of a machine that is told.
type ToldGoal = fn(&FleetCandidate) -> Option<&(MetricRow, Answered)>;

/// A line for each of these machines, in a table for each goal; those of which nothing was compared
/// stand in the last one.
fn lines(
    name: &str,
    machines: &[&FleetMachine],
    (at, whose, told): (usize, &str, ToldGoal),
) -> Vec<(String, Table)> {
    let mut goals: Vec<Option<&str>> = Vec::new();
    for machine in machines {
        let goal = goal_of(machine, (at, told));
        if !goals.contains(&goal) {
            goals.push(goal);
        }
    }
    goals.sort_by_key(Option::is_none);
    let tables = goals.into_iter().map(|goal| {
        let title = match goal {
            Some(goal) => format!("{name} at {goal}{whose}"),
            None => format!("{name}, of which nothing was compared{whose}"),
        };
        let mut table = machine_table();
        let its = machines.iter().copied();
        for machine in its.filter(|it| goal_of(it, (at, told)) == goal) {
            table.row(machine_row(machine, (at, told)));
        }
        (title, table)
    });
    tables.collect()
}

fn goal_of(machine: &FleetMachine, (at, told): (usize, ToldGoal)) -> Option<&str> {
    let (row, _) = told(&machine.candidates[at])?;
    Some(&row.metric)
}

fn machine_table() -> Table {
    Table::default()
        .names("machine")
        .numbers("CPUs")
        .names("kernel")
        .numbers("change")
        .numbers_of("interval", "from")
        .numbers_of("interval", "to")
        .names("answer")
}

fn machine_row(machine: &FleetMachine, (at, told): (usize, ToldGoal)) -> [String; 7] {
    let of = &machine.candidates[at];
    let it = told(of);
    let changes = it.and_then(|(row, said)| {
        let effect = &row.result.as_ref().ok()?.effect;
        Some(said.shift?.map(|it| change(effect, row.measure, it)))
    });
    let [shift, low, high] = changes.unwrap_or_default();
    let answer = it.map_or_else(|| words(of.standing), |(_, said)| short_words(said));
    [
        short(&machine.name),
        machine.cpus.to_string(),
        machine.kernel.clone(),
        shift,
        low,
        high,
        answer.to_owned(),
    ]
}

/// An answer in as many columns as a line has room for.
const fn short_words(said: &Answered) -> &'static str {
    match said.answer {
        RatioAnswer::NotMeasured => "not measured",
        _ => said.words(),
    }
}

/// The answer of a machine of which nothing was compared.
const fn words(standing: Standing) -> &'static str {
    match standing {
        Standing::Failed => "failed",
        _ => "cannot tell",
    }
}

/// The page.
#[must_use]
pub fn page(fleet: &Fleet, origin: &Origin) -> Page {
    let mut page = Page {
        title: "Which scheduler for these machines?".to_owned(),
        verdict: answer(fleet),
        about: vec![
            ("Command".to_owned(), origin.command()),
            ("Program".to_owned(), format!("runslice {}", crate::VERSION)),
        ],
        ..Page::default()
    };
    for (number, (title, table)) in tables(fleet).iter().enumerate() {
        page.fold(&format!("tables{}", number + 1), title, table);
    }
    page
}

/// A row for each machine, candidate and goal; the machine is the place.
#[must_use]
pub fn table(fleet: &Fleet, origin: &Origin) -> ExportTable {
    let candidates = fleet.machines.iter().flat_map(|it| &it.candidates);
    let said = candidates.flat_map(|it| &it.said);
    let (rows, words): (Vec<_>, Vec<_>) = said.map(|(row, it)| (row.clone(), it.words())).unzip();
    comparison::table_saying(&rows, &|at| Some(words[at]), origin)
}

/// Writes one document.
///
/// # Errors
/// When `to` does not take it.
pub fn json(fleet: &Fleet, origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let candidates = fleet.order().into_iter().map(|at| {
        let worst = fleet.worst_tenth(at);
        json!({
            "name": fleet.candidates[at],
            "machines": counts(&fleet.tally(at)),
            "by_kind": fleet.by_kind(at).iter().map(|((cpus, kernel), tally)| {
                json!({ "cpus": cpus, "kernel": kernel, "machines": counts(tally) })
            }).collect::<Vec<_>>(),
            "worst_tenth": worst.iter().map(|it| &it.name).collect::<Vec<_>>(),
        })
    });
    let machines = fleet.machines.iter().map(|machine| {
        let candidates = machine.candidates.iter().zip(&fleet.candidates);
        let candidates = candidates.map(|(of, name)| {
            let goals = of.said.iter().map(|(row, said)| {
                json!({ "goal": row.metric, "answer": said.answer, "said": said.words(),
                    "not_worse": said.is_not_worse, "comparison": Comparison::from(row) })
            });
            let decided_by = of.deciding().map(|(row, _)| &row.metric);
            json!({ "name": name, "standing": of.standing.word(), "failure": of.failure,
                "not_worse": of.is_not_worse, "decided_by": decided_by,
                "goals": goals.collect::<Vec<_>>() })
        });
        json!({ "name": machine.name, "cpus": machine.cpus, "kernel": machine.kernel,
            "candidates": candidates.collect::<Vec<_>>() })
    });
    let unread = fleet.unread.iter();
    let document = json!({
        AnswerKind::Fleet.key(): AnswerKind::Fleet.version(),
        "version": crate::VERSION,
        "command": origin.words(),
        "answer": answer(fleet),
        "baseline": fleet.baseline,
        "winner": fleet.winner().map(|at| &fleet.candidates[at]),
        "candidates": candidates.collect::<Vec<_>>(),
        "machines": machines.collect::<Vec<_>>(),
        "unread": unread.map(|(file, why)| json!({ "file": file, "why": why }))
            .collect::<Vec<_>>(),
        "objects": super::json::objects(&fleet.objects),
        "inputs": fleet.inputs,
        "ratio_errors": super::json::ratio_errors(),
    });
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

fn counts(tally: &Tally) -> Value {
    json!({
        "all": tally.all(),
        "better": tally.better,
        "alike": tally.alike,
        "worse": tally.worse,
        "cannot_tell": tally.cannot_tell,
        "not_worse": tally.not_worse,
        "not_worse_at_least": tally.not_worse_at_least(),
    })
}
