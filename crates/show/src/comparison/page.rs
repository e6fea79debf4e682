//! A comparison as a page: every run as a dot, and each difference with its interval.

use ask::compare::Family;
use ask::words::counted;
use maud::{Markup, html};
use stats::compare::{MetricRow, Set, Settings};

use super::headline::verdict;
use super::human;
use super::matrix::{CONDITIONS, matrix};
use super::words::{certainty, difference, distinct, end, is_alike, median, ratio, tone};
use crate::Origin;
use crate::figure::{Chart, Shown, changes, every_run};
use crate::page::{Fold, Page, small_figure, table};
use crate::report::runs::shown_value;
use crate::table::{Cell, Table};

/// Loads and machines at most whose tables have everything; a page with more would open slowly.
const PLACES_IN_FULL: usize = 8;

/// A comparison that was made.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// What was held against what.
    pub family: &'a Family,
    /// Its outcome.
    pub rows: &'a [MetricRow],
    /// How it was judged.
    pub settings: &'a Settings,
}

impl Compared<'_> {
    /// What is to be known of the runs.
    pub(super) fn notes(&self) -> Vec<String> {
        [self.family.voids(), self.family.notes.clone()].concat()
    }

    /// Who was ejected or let tasks starve, and then what the differences come to: a scheduler
    /// that was ended is in no ranking.
    #[must_use]
    pub fn verdict(&self) -> Vec<String> {
        [self.family.voids(), verdict(self.rows)].concat()
    }
}

/// The page of a comparison: the headline, the table of all differences, pictures; of several
/// loads or machines the pictures stand in what the table opens.
#[must_use]
pub fn page(compared: &Compared<'_>, origin: &Origin) -> Page {
    let Compared { family, rows, .. } = *compared;
    let sets = family.sets();
    let shown = shown(rows);
    let places = distinct(sets.iter().map(|set| set.place.as_str()));
    let (tables, pictures) = if places.len() > 1 {
        (vec![matrix(rows, &sets)], Vec::new())
    } else {
        (vec![differences(rows)], pictures(&sets, compared, &shown))
    };
    let mut page = Page {
        title: title(&sets, &places),
        verdict: compared.verdict(),
        tables,
        pictures,
        ..Page::default()
    };
    let each = places.iter().take(CONDITIONS).enumerate();
    let each = each.map(|(at, place)| fold(compared, (at, place, places.len()), &shown));
    page.folds.extend(each);
    let notes: Vec<String> = human::notes_of(rows, compared.settings)
        .into_iter()
        .chain(family.notes.clone())
        .collect();
    page.folds.push(Fold {
        id: "method".to_owned(),
        title: "How it was compared, and what to know".to_owned(),
        body: html! { ul .t { @for line in &notes { li { (line) } } } },
    });
    page.about = vec![
        ("program".to_owned(), format!("runslice {}", crate::VERSION)),
        ("command".to_owned(), origin.command()),
        ("loads and machines".to_owned(), places.join("; ")),
    ];
    page
}

/// What a cell opens: the tables of a load and machine, and its pictures if there are several.
fn fold(
    compared: &Compared<'_>,
    (at, place, places): (usize, &str, usize),
    shown: &[Shown],
) -> Fold {
    let several = places > 1;
    let rows = compared.rows.iter().filter(|row| row.place == place);
    let (goals, rest): (Vec<&MetricRow>, Vec<&MetricRow>) = rows.partition(|row| row.is_goal);
    let own: Vec<MetricRow> = goals.iter().map(|row| (*row).clone()).collect();
    let runs = several.then(|| {
        let sets = compared.family.sets().into_iter();
        let here: Vec<&Set> = sets.filter(|set| set.place == place).collect();
        Chart {
            id: format!("runs-{}", at + 1),
            ..every_run(&here, shown, &own, shown_value)
        }
    });
    let is_light = places > PLACES_IN_FULL;
    Fold {
        id: format!("tables{}", at + 1),
        title: if several {
            place.to_owned()
        } else {
            "Tables".to_owned()
        },
        body: html! {
            @if let Some(runs) = runs.filter(|it| !it.body.is_empty()) { (small_figure(&runs)) }
            @if is_light {
                (differences(&own))
            } @else {
                (table("Goals, with a verdict", &human::table(&goals)))
                (table("What describes it, without a verdict", &human::table(&rest)))
            }
        },
    }
}

/// Each goal with its difference, interval and verdict, in short.
fn differences(rows: &[MetricRow]) -> Markup {
    let goals = rows.iter().filter(|row| row.is_goal && !is_alike(row));
    let mut shown = Table::default()
        .names("goal")
        .names("scheduler")
        .numbers("difference")
        .names("verdict")
        .numbers("ratio")
        .numbers("from")
        .numbers("to")
        .numbers("median")
        .names("baseline");
    for row in goals {
        let Ok(judged) = &row.result else { continue };
        let (effect, tone) = (&judged.effect, tone(judged.verdict));
        let end = |shift| Cell::from(end(row, effect, shift));
        let needed = judged.runs_needed.map_or_else(String::new, |runs| {
            format!("; {} might", counted(runs as u64, "run"))
        });
        shown.row([
            Cell::from(row.named.title.clone()),
            Cell::from(row.arm.clone()),
            // First what a telephone shows of a row.
            Cell::from(difference(row, effect, effect.shift)).toned(tone),
            Cell::from(format!("{}{needed}", certainty(judged))).toned(tone),
            Cell::from(ratio(effect, effect.shift)),
            end(effect.low),
            end(effect.high),
            Cell::from(median(row, row.arm_extent)),
            Cell::from(format!("{} {}", row.base, median(row, row.base_extent))),
        ]);
    }
    table(
        "Goals: the difference from the baseline, and its interval",
        &shown,
    )
}

fn title(sets: &[&Set], places: &[&str]) -> String {
    let arms = distinct(sets.iter().map(|set| set.arm.as_str()));
    let places = match places {
        [] | [""] => String::new(),
        [place] => format!(", {place}"),
        several => format!(", {} loads or machines", several.len()),
    };
    format!("{}{places}", arms.join(", "))
}

/// The goals that are drawn: those in which any run differs from any other, unless there are none.
fn shown(rows: &[MetricRow]) -> Vec<Shown> {
    let goals = || rows.iter().filter(|row| row.is_goal);
    let differing = goals().filter(|row| !is_alike(row));
    let mut metrics = distinct(differing.map(|row| row.metric.as_str()));
    if metrics.is_empty() {
        metrics = distinct(goals().map(|row| row.metric.as_str()));
    }
    let named = |metric: &str| {
        let row = rows.iter().find(|row| row.metric == metric);
        row.map_or_else(|| metric.to_owned(), |row| row.named.title.clone())
    };
    let shown = metrics.into_iter().map(|metric| Shown {
        metric: metric.to_owned(),
        title: named(metric),
    });
    shown.collect()
}

fn pictures(sets: &[&Set], compared: &Compared<'_>, shown: &[Shown]) -> Vec<Chart> {
    let Compared { rows, settings, .. } = *compared;
    let drawn = |row: &&MetricRow| shown.iter().any(|it| it.metric == row.metric);
    let drawn: Vec<MetricRow> = rows.iter().filter(drawn).cloned().collect();
    let mut charts = vec![
        every_run(sets, shown, rows, shown_value),
        changes(&drawn, settings, shown),
    ];
    charts.retain(|chart| !chart.body.is_empty());
    charts
}
