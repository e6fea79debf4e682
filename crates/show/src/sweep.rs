//! What a sweep came to: a page, tables for people and programs, a document.

use std::collections::BTreeSet;
use std::io::{self, Write};

use ask::AnswerKind;
use ask::compare::Family;
use ask::key::Key;
use ask::plan::Planned;
use ask::sets::File;
use ask::sets::own::place_of;
use ask::sweep::Forecast;
use ask::words::counted;
use model::Nanos;
use serde_json::{Value, json};
use stats::compare::{Choice, Extent, Role, Set, Settings, compare, measures, title_of};

use crate::comparison::{self, Compared};
use crate::export::{ColumnKind, ExportTable, MACHINE, machine_cells};
use crate::figure::{Shown, every_run};
use crate::page::Page;
use crate::report::runs;
use crate::{Origin, VERSION};

/// The page: under each load, every scheduler against the first that it was run with.
#[must_use]
pub fn page(file: File, name: &str, origin: &Origin) -> Page {
    let sets = file.sets.clone();
    let settings = Settings::default();
    let places: BTreeSet<&str> = sets.iter().map(|set| set.place.as_str()).collect();
    let arms: BTreeSet<&str> = sets.iter().map(|set| set.arm.as_str()).collect();
    let spread = runs::table(&sets);
    let mut page = match Family::of(vec![file], None, None) {
        Ok(family) => {
            let rows = compare(&family.questions(), Choice::Stated, &settings);
            let compared = Compared {
                family: &family,
                rows: &rows,
                settings: &settings,
            };
            comparison::page(&compared, origin)
        }
        // One scheduler, or none that two loads have in common.
        Err(_) => alone(&sets, origin),
    };
    page.title = format!(
        "Sweep of {name}: {}, {}",
        counted(arms.len() as u64, "scheduler"),
        match places.len() {
            1 => "one load and machine".to_owned(),
            count => format!("{count} loads or machines"),
        },
    );
    if places.len() == 1 {
        page.fold("spread", "Median, least and most of each figure", &spread);
    }
    page
}

/// Sets of which none can be held against another.
fn alone(sets: &[Set], origin: &Origin) -> Page {
    let goals = sets.iter().flat_map(|set| &set.series);
    let goals = goals.filter(|it| it.role == Role::Goal);
    let mut shown: Vec<Shown> = Vec::new();
    for goal in goals {
        let one = Shown {
            metric: goal.name.clone(),
            title: title_of(&goal.name),
        };
        if !shown.contains(&one) {
            shown.push(one);
        }
    }
    let sets: Vec<&Set> = sets.iter().collect();
    Page {
        verdict: vec!["There are no two schedulers under one load to compare.".to_owned()],
        pictures: vec![every_run(&sets, &shown, &[], runs::shown_value)],
        about: vec![
            ("program".to_owned(), format!("runslice {VERSION}")),
            ("command".to_owned(), origin.command()),
        ],
        ..Page::default()
    }
}

/// Writes one JSON document.
///
/// # Errors
/// When `to` does not take it.
pub fn json(sets: &[Set], origin: &Origin, to: &mut dyn Write) -> io::Result<()> {
    let sets: Vec<_> = sets
        .iter()
        .map(|set| {
            json!({
                "place": set.place,
                "policy": set.arm,
                "runs": set.runs,
                "void": set.void,
                "starved": set.starved,
                "spread": runs::spreads(std::slice::from_ref(set)),
            })
        })
        .collect();
    let document = json!({
        AnswerKind::Spread.key(): AnswerKind::Spread.version(),
        "version": VERSION,
        "command": origin.words(),
        "sets": sets,
    });
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

/// Writes a table for each load and machine.
///
/// # Errors
/// When `to` does not take it.
pub fn text(sets: &[Set], to: &mut dyn Write) -> io::Result<()> {
    let mut places: Vec<&str> = Vec::new();
    for set in sets {
        if !places.contains(&set.place.as_str()) {
            places.push(&set.place);
        }
    }
    for (at, place) in places.into_iter().enumerate() {
        let here = sets.iter().filter(|set| set.place == place);
        let here: Vec<Set> = here.cloned().collect();
        writeln!(to, "{}{place}", if at == 0 { "" } else { "\n" })?;
        runs::write_sets(&here, to)?;
    }
    Ok(())
}

/// Writes which runs would be made, whose results are to be in `folder`.
///
/// # Errors
/// When `to` does not take it.
pub fn forecast(forecast: &Forecast, folder: &str, to: &mut dyn Write) -> io::Result<()> {
    let Forecast { runs, missing, .. } = forecast;
    let time = forecast.longest.map_or_else(
        || "nothing says how long all of them last".to_owned(),
        |longest| format!("at most {longest} of simulated time"),
    );
    writeln!(
        to,
        "{runs} runs, {missing} of them to be made: {time}; results in {folder}"
    )?;
    writeln!(to, "policies: {}", forecast.policies.join("  "))?;
    writeln!(to, "workloads: {}", forecast.workloads.join("  "))?;
    writeln!(to, "machines: {}", forecast.machines.join("; "))?;
    writeln!(to, "seeds: {}", forecast.seeds)
}

/// A row for each metric of each set.
#[must_use]
pub fn table(sets: &[Set], origin: &Origin) -> ExportTable {
    let names = ["schema", "version", "command", "place", "policy", "metric"];
    let names = names.map(|name| (name, ColumnKind::Text));
    let numbers = ["median", "min", "max"].map(|name| (name, ColumnKind::Real));
    let columns = names.into_iter().chain([("runs", ColumnKind::Whole)]);
    let mut table = ExportTable::new(columns.chain(numbers));
    for set in sets {
        for series in &set.series {
            let Some(extent) = Extent::of(&series.values) else {
                continue;
            };
            let names = [&set.place, &set.arm, &series.name].map(Clone::clone);
            let numbers = [extent.median, extent.min, extent.max].map(|it| it.to_string());
            let cells = names.into_iter().chain([extent.runs.to_string()]);
            let front = origin.cells("sweep_spread", 1);
            table.row(front.into_iter().chain(cells).chain(numbers));
        }
    }
    table
}

/// The columns of a part: which run it is, its machine, and what was measured.
const RUN: [(&str, ColumnKind); 9] = [
    ("schema", ColumnKind::Text),
    ("version", ColumnKind::Text),
    ("run", ColumnKind::Whole),
    ("key", ColumnKind::Text),
    ("place", ColumnKind::Text),
    ("policy", ColumnKind::Text),
    ("knobs", ColumnKind::Text),
    ("workload", ColumnKind::Text),
    ("scale", ColumnKind::Text),
];
const MEASURED: [(&str, ColumnKind); 7] = [
    ("seed", ColumnKind::Whole),
    ("duration_ns", ColumnKind::Whole),
    ("exit", ColumnKind::Text),
    ("metric", ColumnKind::Text),
    ("measure", ColumnKind::Text),
    ("better", ColumnKind::Text),
    ("value", ColumnKind::Real),
];

/// Version of these columns; it grows when one is removed or changes its meaning.
const METRICS: u32 = 1;

/// A table of every metric of every run. Runs are added one by one.
#[must_use]
pub fn metrics() -> ExportTable {
    ExportTable::new(RUN.into_iter().chain(MACHINE).chain(MEASURED))
}

/// Adds a row to [`metrics`] for each metric of run number `index` of a plan, of which `line` is
/// kept.
pub fn add_metrics(
    (index, run): (usize, &Planned),
    (key, line): (Key, &Value),
    to: &mut ExportTable,
) {
    let spec = &run.spec;
    let set = spec.policy.set.iter();
    let knobs = set.map(|(name, value)| format!("{name}={value}"));
    let scale = run.scale.iter();
    let scale = scale.map(|(name, value)| format!("{name}={value}"));
    let exit = line["exit"]["reason"].as_str().unwrap_or_default();
    let begin = [
        format!("runslice_sweep_metrics/{METRICS}"),
        VERSION.to_owned(),
        index.to_string(),
        key.to_string(),
        place_of(line),
        spec.policy.name.clone(),
        knobs.collect::<Vec<_>>().join(","),
        spec.workload.name.clone(),
        scale.collect::<Vec<_>>().join(","),
    ];
    let end = [
        spec.seed.to_string(),
        spec.duration
            .map_or_else(String::new, |it: Nanos| it.get().to_string()),
        exit.to_owned(),
    ];
    let machine = machine_cells(&spec.machine);
    let front = begin.iter().chain(&machine).chain(&end).cloned();
    for measured in measures(&line["report"]) {
        let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let value = measured.value;
        let row = [
            measured.name.clone(),
            word(serde_json::to_value(measured.measure).unwrap_or_default()),
            word(serde_json::to_value(measured.better).unwrap_or_default()),
            if value.is_finite() {
                value.to_string()
            } else {
                String::new()
            },
        ];
        to.row(front.clone().chain(row));
    }
}
