//! Points of students' policies: a table, CSV, and what each student reads.

use std::io::{self, Write};

use ask::lab::{GradedPolicy, LabParting};
use explain::timeline::Timeline;

use crate::explanation::text::{at, by};
use crate::export::{ColumnKind, ExportTable, Form};
use crate::table::Table;
use crate::tone::Tone;

/// What a policy that was handed in came to.
#[derive(Clone, Debug)]
pub struct MarkedPolicy {
    /// The properties, `no fault` first.
    pub graded: GradedPolicy,
    /// Points for each property.
    pub points: Vec<u32>,
    /// Points that there are for each.
    pub of: Vec<u32>,
    /// Policies that have the same code.
    pub same_as: Vec<String>,
}

impl MarkedPolicy {
    /// Points in all.
    #[must_use]
    pub fn sum(&self) -> u32 {
        self.points.iter().sum()
    }

    /// Points that there are in all.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.of.iter().sum()
    }
}

/// Writes the table for people.
///
/// # Errors
/// When `to` does not take it.
pub fn table(all: &[MarkedPolicy], to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default()
        .names("policy")
        .numbers("points")
        .prose("lacks, or has the code of");
    for it in all {
        let lacks = it.graded.properties.iter().filter(|it| !it.holds);
        let mut said: Vec<String> = lacks.map(|it| it.property.clone()).collect();
        said.extend(it.same_as.iter().map(|name| format!("code of {name}")));
        let points = format!("{} of {}", it.sum(), it.most());
        table.row([it.graded.object.clone(), points, said.join("; ")]);
    }
    table.write(to)
}

/// Writes the points as CSV, with a column for each property.
///
/// # Errors
/// When `to` does not take it.
pub fn csv(all: &[MarkedPolicy], to: &mut dyn Write) -> io::Result<()> {
    let columns = [
        "policy",
        "property",
        "holds",
        "points",
        "of",
        "why",
        "same_code_as",
    ];
    let mut table = ExportTable::new(columns.map(|name| (name, ColumnKind::Text)));
    for it in all {
        let total = (it.sum().to_string(), it.most().to_string());
        table.row([
            it.graded.object.clone(),
            "all".to_owned(),
            it.graded.passed.to_string(),
            total.0,
            total.1,
            String::new(),
            it.same_as.join(" "),
        ]);
        for (property, (points, of)) in it
            .graded
            .properties
            .iter()
            .zip(it.points.iter().zip(&it.of))
        {
            table.row([
                it.graded.object.clone(),
                property.property.clone(),
                property.holds.to_string(),
                points.to_string(),
                of.to_string(),
                property.why.clone().unwrap_or_default(),
                String::new(),
            ]);
        }
    }
    table.write(Form::Csv, to)
}

/// Writes what a student reads. `parting`: the wanted policy, and where this one leaves it.
///
/// # Errors
/// When `to` does not take it.
pub fn feedback(
    title: &str,
    it: &MarkedPolicy,
    parting: Option<(&str, &LabParting)>,
    to: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        to,
        "{title}\n{}: {} of {} points\n",
        it.graded.object,
        it.sum(),
        it.most()
    )?;
    for (property, (points, of)) in it
        .graded
        .properties
        .iter()
        .zip(it.points.iter().zip(&it.of))
    {
        let mark = if property.holds { "yes" } else { "NO " };
        write!(to, "{mark}  {}", property.property)?;
        if *of > 0 {
            write!(to, "  ({points} of {of})")?;
        }
        writeln!(to)?;
        if let Some(why) = &property.why {
            writeln!(to, "     {}", why.replace('\n', "\n     "))?;
        }
    }
    let Some((wanted, parting)) = parting else {
        return Ok(());
    };
    let [own, theirs] = &parting.got;
    let name = |task: &Option<String>| task.clone().unwrap_or_else(|| "nobody".to_owned());
    writeln!(
        to,
        "\nAt {} s yours gives the CPU to {}, {wanted} to {}.",
        at(parting.time),
        name(own),
        name(theirs)
    )?;
    if !parting.told.is_empty() {
        writeln!(to, "Yours decided last:")?;
    }
    for (words, act) in &parting.told {
        writeln!(to, "  {} s  {words}\n    {}", at(act.time), by(act))?;
    }
    writeln!(to)?;
    chart("yours", &parting.charts[0], to)?;
    writeln!(to)?;
    chart(wanted, &parting.charts[1], to)
}

/// A chart as a file has it: without the marks of which a terminal makes colors.
fn chart(policy: &str, timeline: &Timeline, to: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    crate::timeline::write(policy, timeline, &mut bytes)?;
    bytes.retain(|byte| Tone::of_mark(*byte).is_none());
    to.write_all(&bytes)
}
