//! The page: everything in one file. Its own policy forbids that anything is fetched or executed.

use std::io::{self, Write};

use stats::figure::{escape, svg};
use stats::{Column, Value};

use super::Section;
use crate::page::head;

/// Columns of the table of task groups; docs/events.md has their definitions.
const GROUPS: &[&str] = &[
    "group",
    "tasks",
    "runs",
    "wakeup_ns_p50",
    "wakeup_ns_p99",
    "wakeup_ns_max",
    "preempt_ns_p99",
    "delay_ns_p99",
    "runslice_ns_p50",
    "share_ppm",
    "migrations",
];
const DEADLINES: &[&str] = &[
    "group",
    "deadline",
    "met",
    "missed",
    "skipped",
    "late_ns_p50",
    "late_ns_p99",
    "late_ns_max",
];

/// Writes the page.
///
/// # Errors
/// When `to` does not take it.
pub fn write(sections: &[Section<'_>], to: &mut impl Write) -> io::Result<()> {
    let names: Vec<&str> = sections
        .iter()
        .map(|section| section.heading.as_str())
        .collect();
    let title = escape(&format!("runslice: {}", names.join(", ")));
    head(&title, "", "What tasks experienced", to)?;
    contents(sections, to)?;
    for (index, section) in sections.iter().enumerate() {
        write_section(index, section, to)?;
    }
    write!(
        to,
        "<footer><p>Made by runslice {}. docs/events.md defines every number.</p></footer>\n\
         </body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn contents(sections: &[Section<'_>], to: &mut impl Write) -> io::Result<()> {
    if sections.len() < 2 {
        return Ok(());
    }
    writeln!(to, "<nav aria-label=\"Contents\"><ul>")?;
    for (index, section) in sections.iter().enumerate() {
        let place = section.of.map(|run| run.collected.described());
        let text = match place {
            Some(place) => format!("<a href=\"#s{index}\">{}</a>", escape(&place)),
            None => format!("<a href=\"#s{index}\">{}</a>", escape(&section.heading)),
        };
        writeln!(to, "<li>{text}</li>")?;
    }
    writeln!(to, "</ul></nav>")
}

fn write_section(index: usize, section: &Section<'_>, to: &mut impl Write) -> io::Result<()> {
    writeln!(
        to,
        "<section aria-labelledby=\"s{index}\">\n<h2 id=\"s{index}\">{}</h2>",
        escape(&section.heading)
    )?;
    if let Some(run) = section.of {
        let machine = &run.report.machine;
        writeln!(
            to,
            "<p class=\"where\">{}. {} long, {} switches, {} busy.</p>",
            escape(&run.collected.described()),
            machine.elapsed,
            machine.switches,
            Value::Share(machine.run)
        )?;
        let groups: Vec<_> = run.report.groups.iter().chain([&run.report.all]).collect();
        table("Task groups", stats::columns(), GROUPS, &groups, to)?;
        let deadlines: Vec<_> = run.report.deadlines.iter().collect();
        table(
            "Deadlines",
            stats::deadline_columns(),
            DEADLINES,
            &deadlines,
            to,
        )?;
    }
    for chart in &section.charts {
        write!(
            to,
            "<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n",
            svg(chart, false),
            escape(&chart.description)
        )?;
    }
    writeln!(to, "</section>")
}

fn table<Row>(
    name: &str,
    columns: &[Column<Row>],
    shown: &[&str],
    rows: &[&Row],
    to: &mut impl Write,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let columns: Vec<&Column<Row>> = shown
        .iter()
        .filter_map(|name| columns.iter().find(|column| column.name == *name))
        .collect();
    writeln!(
        to,
        "<div class=\"scroll\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\">\n\
         <table><caption>{name}</caption>\n<thead><tr>"
    )?;
    for column in &columns {
        let (title, about) = (escape(column.title), escape(column.about));
        writeln!(to, "<th scope=\"col\" title=\"{about}\">{title}</th>")?;
    }
    writeln!(to, "</tr></thead>\n<tbody>")?;
    for row in rows {
        write!(to, "<tr>")?;
        for column in &columns {
            let value = escape(&(column.value)(row).to_string());
            write!(to, "<td>{value}</td>")?;
        }
        writeln!(to, "</tr>")?;
    }
    writeln!(to, "</tbody></table></div>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_the_page_exists() {
        let exists = |names: &[&str], known: Vec<&str>| {
            for name in names {
                assert!(known.contains(name), "{name}");
            }
        };
        exists(GROUPS, stats::columns().iter().map(|c| c.name).collect());
        exists(
            DEADLINES,
            stats::deadline_columns().iter().map(|c| c.name).collect(),
        );
    }
}
