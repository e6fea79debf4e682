//! An exercise: what students' policies must have, and the points for it.

use model::MachineSpec;
use model::file::Source;
use serde::Deserialize;
use toml::Spanned;

use super::{LabLoad, Taught, WantedValue};
use crate::error::Error;

/// Most points for one property.
const POINTS_MAX: u32 = 1_000;

/// An exercise, as its file says.
#[derive(Clone, Debug)]
pub struct Exercise {
    /// Its title.
    pub title: String,
    /// The properties, each with its points.
    pub wanted: Vec<(WantedValue, u32)>,
    /// The loads that all policies run under.
    pub loads: Vec<LabLoad>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExerciseDraft {
    exercise: ExerciseTable,
    #[serde(default)]
    property: Vec<PropertyTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExerciseTable {
    title: String,
    #[serde(default)]
    key: String,
    loads: Option<Spanned<i64>>,
    machine: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PropertyTable {
    is: Spanned<String>,
    points: Spanned<u32>,
}

impl Exercise {
    /// Reads an exercise, and draws its loads and the names of their tasks from its key.
    ///
    /// # Errors
    /// When the file is bad, with the place.
    pub fn read(text: &str, file: &str) -> Result<Self, Error> {
        Ok(Self::read_in(&Taught(Source { text, file }))?)
    }

    fn read_in(source: &Taught<'_>) -> anyhow::Result<Self> {
        let draft = model::file::read::<ExerciseDraft>(&source.0)?;
        let wrong = |at, what, expected: &str| source.wrong(at, what, expected);
        let mut wanted = Vec::new();
        for PropertyTable { is, points } in &draft.property {
            let value = WantedValue::parse(is.get_ref())
                .map_err(|why| wrong(is.span().start, format!("`{}`", is.get_ref()), &why))?;
            if *points.get_ref() > POINTS_MAX {
                let what = points.get_ref().to_string();
                let expected = format!("0 to {POINTS_MAX}");
                return Err(wrong(points.span().start, what, &expected).into());
            }
            wanted.push((value, *points.get_ref()));
        }
        let table = &draft.exercise;
        let loads = source.number(table.loads.as_ref(), 3, 100)? as u64;
        let machine = source.order(table.machine.as_ref())?;
        let machine = machine.map(MachineSpec::by_the_book);
        let first = model::Fnv1a::of(table.key.bytes());
        let seeds = (0..loads).map(|load| model::seeds::of_run(first, load));
        let loads = seeds.map(|seed| Ok(LabLoad::jobs(seed)?.on(machine.clone()).renamed(true)));
        Ok(Self {
            title: draft.exercise.title.clone(),
            wanted,
            loads: loads.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Points for all properties.
    #[must_use]
    pub fn points(&self) -> u32 {
        self.wanted.iter().map(|(_, points)| points).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exercise_is_properties_with_points() {
        let text = "[exercise]\ntitle = \"RR\"\nkey = \"k\"\nloads = 2\nmachine = \"textbook\"\n\
                    [[property]]\nis = \"like rr:slice_ns=10ms\"\npoints = 4\n\
                    [[property]]\nis = \"wait < 1s\"\npoints = 2\n";
        let exercise = Exercise::read(text, "e.toml").unwrap();
        assert_eq!((exercise.points(), exercise.loads.len()), (6, 2));
        let said = |text: &str| Exercise::read(text, "e.toml").unwrap_err().to_string();
        let bad = text.replace("like rr", "like nothing");
        assert!(said(&bad).starts_with("e.toml:7:6: "), "{}", said(&bad));
        assert!(said(&text.replace("loads = 2", "loads = 0")).starts_with("e.toml:4:9: "));
        assert!(said(&text.replace("points = 2", "marks = 2")).contains("marks"));
    }
}
