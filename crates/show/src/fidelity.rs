//! How far the simulated machine is from a kernel: tables for people, as Markdown and as JSON.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::fidelity::asked::AskedPlays;
use ask::fidelity::{JudgedPlays, WorstFigure};
use serde_json::{Value, json};
use stats::compare::machines::{MachineMeasure, MachinesScore};

use crate::origin::Origin;
use crate::table::Table;

/// A title and a table below it.
type Titled = (&'static str, Table);

/// Writes the tables for people.
///
/// # Errors
/// When `to` does not take them.
pub fn human(judged: &JudgedPlays, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "{}", judged.headline)?;
    writeln!(to, "{LEGEND}")?;
    for (title, table) in tables(judged) {
        writeln!(to, "\n{title}")?;
        write!(to, "{table}")?;
    }
    for (at, worst) in judged.worst.iter().enumerate() {
        writeln!(to, "\n{}. {}", at + 1, name(worst))?;
        for line in behind(worst) {
            writeln!(to, "   {line}")?;
        }
    }
    if !judged.missing.is_empty() {
        writeln!(to, "\nNot compared:")?;
    }
    judged
        .missing
        .iter()
        .try_for_each(|line| writeln!(to, "{line}"))
}

/// Writes the tables in Markdown.
///
/// # Errors
/// The errors of [`human`].
pub fn markdown(judged: &JudgedPlays, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "{}\n{LEGEND}", judged.headline)?;
    for (title, table) in tables(judged) {
        writeln!(to, "\n{title}\n")?;
        write_markdown(&table, to)?;
    }
    for (at, worst) in judged.worst.iter().enumerate() {
        writeln!(to, "\n{}. {}\n", at + 1, name(worst))?;
        for line in behind(worst) {
            writeln!(to, "       {line}")?;
        }
    }
    if !judged.missing.is_empty() {
        writeln!(to, "\nNot compared:\n")?;
    }
    judged
        .missing
        .iter()
        .try_for_each(|line| writeln!(to, "- {line}"))
}

/// What the numbers are.
const LEGEND: &str = "\
Median factors between played and simulated; 1.00 is exact. Order: pairs of policies at least 20 %
apart on the kernel that the other orders alike. Clear: the same of those pairs that the kernel
itself orders alike with another seed. Ceiling: the kernel against itself, other seeds.";

fn write_markdown(table: &Table, to: &mut dyn Write) -> io::Result<()> {
    let heads: Vec<_> = table.heads().collect();
    let titles: Vec<&str> = heads.iter().map(|(_, title, _)| *title).collect();
    writeln!(to, "| {} |", titles.join(" | "))?;
    let rules: Vec<&str> = heads
        .iter()
        .map(|(.., is_left)| if *is_left { "---" } else { "--:" })
        .collect();
    writeln!(to, "| {} |", rules.join(" | "))?;
    for row in table.cells() {
        let cells: Vec<String> = row.map(|(text, _)| text.replace('|', "\\|")).collect();
        writeln!(to, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn tables(judged: &JudgedPlays) -> Vec<Titled> {
    let mut all = scored([""; 0]);
    for (row, score) in &judged.compared {
        all.row(cells(&[row], score));
    }
    let of = |kind: &'static str, parts: &[(String, Vec<(String, MachinesScore)>)]| {
        let mut table = scored([kind]);
        for (part, rows) in parts {
            for (at, (row, score)) in rows.iter().enumerate() {
                let front = if at == 0 { part.as_str() } else { "" };
                table.row(cells(&[front, row], score));
            }
        }
        table
    };
    let mut tables = vec![
        ("All", all),
        ("By policy", of("policy", &judged.policies)),
        ("By workload", of("workload", &judged.workloads)),
    ];
    if !judged.worst.is_empty() {
        tables.push(("Farthest apart", farthest(&judged.worst)));
    }
    tables
}

/// A table with the columns of scores, behind columns of names.
fn scored<'a>(names: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::default();
    for name in names {
        table = table.names(name);
    }
    table = table.names("compared");
    for part in ["order", "of", "clear", "of"] {
        table = table.numbers(part);
    }
    for measure in MachineMeasure::SCORED {
        table = table.numbers(measure.name());
    }
    table.numbers("figures").numbers("on one side")
}

fn cells(names: &[&str], score: &MachinesScore) -> Vec<String> {
    let mut cells: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    for order in [score.order, score.clear] {
        let part = order.part();
        cells.push(part.map_or_else(|| "-".to_owned(), |part| format!("{:.0} %", part * 100.0)));
        cells.push(order.pairs.to_string());
    }
    cells.extend(score.medians.iter().map(|factor| shown(*factor)));
    cells.extend([score.cells, score.lacking].map(|count| count.to_string()));
    cells
}

fn shown(factor: Option<f64>) -> String {
    factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}"))
}

fn farthest(worst: &[WorstFigure]) -> Table {
    let mut table = Table::default()
        .numbers("")
        .names("workload")
        .names("policy")
        .names("task")
        .names("figure")
        .numbers("played")
        .numbers("simulated")
        .numbers("factor")
        .numbers("ceiling")
        .names("compared");
    for (at, it) in worst.iter().enumerate() {
        let measure = it.cell.measure;
        let value = |value: Option<u64>| {
            value.map_or_else(|| "-".to_owned(), |value| measure.shown(value).to_string())
        };
        table.row([
            (at + 1).to_string(),
            it.workload.clone(),
            it.policy.clone(),
            it.cell.group.clone(),
            measure.name().to_owned(),
            value(it.cell.reference),
            value(it.cell.other),
            shown(it.cell.factor),
            shown(it.ceiling),
            it.row.clone(),
        ]);
    }
    table
}

fn name(worst: &WorstFigure) -> String {
    let WorstFigure {
        workload,
        policy,
        seed,
        row,
        ..
    } = worst;
    format!("{workload} under {policy}, seed {seed}, {row}")
}

/// What stands behind a figure: commands, and where the runs part.
fn behind(worst: &WorstFigure) -> Vec<String> {
    let mut lines = vec![worst.again.clone(), worst.simulate.clone()];
    lines.extend(
        worst
            .first
            .as_ref()
            .map(|first| format!("first difference: {first}")),
    );
    lines
}

/// Writes everything as one JSON document.
///
/// # Errors
/// The errors of [`human`].
pub fn json(
    judged: &JudgedPlays,
    asked: &AskedPlays,
    origin: &Origin,
    to: &mut dyn Write,
) -> io::Result<()> {
    let rows = |rows: &[(String, MachinesScore)]| -> Vec<Value> {
        rows.iter()
            .map(|(name, score)| of_score(name, score))
            .collect()
    };
    let parts = |parts: &[(String, Vec<(String, MachinesScore)>)]| -> Vec<Value> {
        let part = |(name, of): &(String, Vec<_>)| json!({ "name": name, "rows": rows(of) });
        parts.iter().map(part).collect()
    };
    let document = json!({
        AnswerKind::Fidelity.key(): AnswerKind::Fidelity.version(),
        "version": crate::VERSION,
        "command": origin.words(),
        "asked": asked,
        "rows": rows(&judged.compared),
        "policies": parts(&judged.policies),
        "workloads": parts(&judged.workloads),
        "worst": judged.worst.iter().map(of_worst).collect::<Vec<_>>(),
        "missing": judged.missing,
        "missed": judged.missed,
    });
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

fn of_score(name: &str, score: &MachinesScore) -> Value {
    let mut row = json!({
        "name": name,
        "order": score.order.part(),
        "order_pairs": score.order.pairs,
        "order_alike": score.order.alike,
        "clear": score.clear.part(),
        "clear_pairs": score.clear.pairs,
        "clear_alike": score.clear.alike,
        "figures": score.cells,
        "figures_on_one_side": score.lacking,
    });
    for (measure, factor) in MachineMeasure::SCORED.iter().zip(score.medians) {
        // The name of the measure as the document has it.
        if let Ok(Value::String(key)) = serde_json::to_value(measure) {
            row[key] = json!(factor);
        }
    }
    row
}

fn of_worst(worst: &WorstFigure) -> Value {
    json!({
        "compared": worst.row,
        "workload": worst.workload,
        "policy": worst.policy,
        "seed": worst.seed,
        "figure": worst.cell,
        "ceiling": worst.ceiling,
        "again": worst.again,
        "simulate": worst.simulate,
        "first_difference": worst.first,
    })
}
