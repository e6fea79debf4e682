//! Results of many runs as this program lays them out: one run a line. They are read line by line,
//! each for its metrics alone.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use stats::compare::Reported;

use super::own::{self, Line};
use super::{Entry, Gathered};
use crate::services::Services;

/// The line before the first run.
const BEGIN: &str = "\"runs\": [";
/// Most bytes before the first run, and of one run.
const PART: u64 = 64 << 20;

/// The sets of the file. `None` if it is laid out in another way, or is none of ours: then it must
/// be read whole.
///
/// # Errors
/// When it cannot be read, a run in it is none, or is there twice.
pub(super) fn read(services: &Services<'_>, path: &Path) -> anyhow::Result<Option<Gathered>> {
    // Nobody can read a pipe again.
    if !services.is_file(path) {
        return Ok(None);
    }
    let cannot = model::CannotRead::at(path.display());
    let file = services.open(path).map_err(&cannot)?;
    let mut file = BufReader::with_capacity(1 << 18, file.content);
    let Some(head) = head(&mut file).map_err(&cannot)? else {
        return Ok(None);
    };
    let mut sets = Gathered::default();
    let mut line = Vec::new();
    let mut at = 1;
    loop {
        line.clear();
        let read = file.by_ref().take(PART).read_until(b'\n', &mut line);
        read.map_err(&cannot)?;
        let text = line.trim_ascii_end();
        let run = text.strip_suffix(b",").unwrap_or(text).trim_ascii_start();
        if run == b"]" {
            break;
        }
        let Ok(run) = serde_json::from_slice(run) else {
            return Ok(None);
        };
        let place = || format!("{}: document 1: run {at}", path.display());
        let entry = entry(&head, run).with_context(place)?;
        sets.add(entry)
            .with_context(|| path.display().to_string())?;
        at += 1;
    }
    line.clear();
    let rest = file.take(PART).read_to_end(&mut line);
    rest.map_err(&cannot)?;
    Ok((line.trim_ascii() == b"}").then_some(sets))
}

/// What stands before the runs, if it is a document whose runs stand in lines.
fn head(file: &mut impl BufRead) -> std::io::Result<Option<Value>> {
    let mut head = Vec::new();
    let mut most = file.take(PART);
    loop {
        let begin = head.len();
        if most.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
        if head[begin..].trim_ascii() == BEGIN.as_bytes() {
            break;
        }
    }
    head.extend_from_slice(b"]}");
    let head: Option<Value> = serde_json::from_slice(&head).ok();
    Ok(head.filter(own::is_of_lines))
}

/// A run as it stands in its line; everything else in it is skipped.
#[derive(Deserialize)]
struct Run {
    policy: Option<Value>,
    #[serde(default)]
    knobs: Value,
    exit: Option<Value>,
    report: Option<Reported>,
    #[serde(default)]
    workload: Value,
    #[serde(default)]
    machine: Value,
    #[serde(default)]
    scale: Value,
    #[serde(default)]
    starved: Value,
}

fn entry(head: &Value, run: Run) -> anyhow::Result<Entry> {
    let policy = run.policy.as_ref().and_then(Value::as_str);
    let policy = policy.context("it is none: it lacks `policy`")?;
    let exit = run.exit.filter(Value::is_object);
    let exit = exit.context("it is none: it lacks `exit`")?;
    let report = run.report.context("it is none: it lacks `report`")?;
    let line = Line {
        policy,
        knobs: &run.knobs,
        exit: &exit,
        seed: report.seed(),
        workload: &run.workload,
        machine: &run.machine,
        scale: &run.scale,
        starved: &run.starved,
    };
    Ok(own::entry(head, &line, report))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{documents, of_document};
    use super::*;
    use crate::services::tests::FILES;

    fn run(seed: u64, elapsed: u64) -> Value {
        json!({
            "policy": "fifo", "knobs": {"slice_ns": "5"}, "exit": {"kind": 64},
            "report": {
                "seed": seed,
                "machine": {"elapsed_ns": elapsed, "cpus": [{"idle_ns": 3}]},
                "all": {"delay_ns_p99": 9, "wakeup_ns_p99": null, "new_figure": {"a": [1]}},
                "deadlines": [{"group": "ui", "deadline": "frame", "met": 3, "missed": 1}],
                "groups": [{"group": "ui", "migrations": 2, "name": 7}, 5],
                "tasks": [{"name": "\"]}\\"}],
            },
            "notes": ["]"], "starved": 1, "printed": "{\n",
        })
    }

    fn document(mark: &str, runs: &[String]) -> String {
        let head = json!({
            mark: 2, "world": "simulated", "workload": "desk", "machine": {"cpus": 4},
        });
        let head = head.to_string();
        let head = head.strip_suffix('}').unwrap();
        let runs = runs.join(",\n  ");
        format!("{head},\n\"runs\": [\n  {runs}\n]\n}}\n")
    }

    /// Writes `text` to a file and reads it by lines; `None` where it must be read whole.
    fn by_lines(name: &str, text: &str) -> anyhow::Result<Option<Vec<stats::compare::Set>>> {
        let name = format!("runslice-lines-{}-{name}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let sets = read(&FILES, &path).map(|sets| sets.map(|it| it.sets));
        // Whatever the layout, the document is one of JSON.
        let whole = documents(&FILES, &path).and_then(|all| {
            let mut sets = Gathered::default();
            let entries = of_document(all.first().context("nothing")?)?;
            entries.into_iter().try_for_each(|entry| sets.add(entry))?;
            Ok(sets.sets)
        });
        std::fs::remove_file(&path).unwrap();
        if let (Ok(Some(sets)), Ok(whole)) = (&sets, whole) {
            assert_eq!(*sets, whole);
        }
        sets
    }

    #[test]
    fn runs_in_lines_give_the_sets_of_the_whole_document() {
        let runs = [run(1, 5), run(2, 6)].map(|it| it.to_string());
        for mark in ["runslice_results", "runslice_sweep"] {
            let sets = by_lines(mark, &document(mark, &runs)).unwrap().unwrap();
            assert_eq!((sets.len(), sets[0].runs), (1, 2), "{mark}");
            assert_eq!(sets[0].starved, 2, "{mark}");
            assert_eq!(sets[0].arm, "fifo slice_ns=5");
            let names: Vec<_> = sets[0].series.iter().map(|it| it.name.as_str()).collect();
            let want = [
                "machine.elapsed_ns",
                "all.delay_ns_p99",
                "deadline.ui.frame.met",
                "deadline.ui.frame.missed",
                "deadline.ui.frame.missed_ppm",
                "ui.migrations",
            ];
            assert_eq!(names, want, "{mark}");
            assert_eq!(sets[0].series[4].values, [250_000.0; 2]);
        }
    }

    #[test]
    fn what_is_laid_out_otherwise_is_read_whole() {
        let runs = [run(1, 5), run(2, 6)].map(|it| it.to_string());
        let whole = document("runslice_results", &runs);
        for (name, text) in [
            ("pretty", whole.replace("\"report\"", "\n\"report\"")),
            (
                "first-version",
                whole.replace("_results\":2", "_results\":1"),
            ),
            ("foreign", whole.replace("runslice_results", "results")),
            ("torn", whole[..whole.len() - 9].to_owned()),
            ("two", format!("{whole}{whole}")),
            ("empty", String::new()),
        ] {
            assert_eq!(by_lines(name, &text).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn what_is_no_run_or_is_there_twice_is_refused_with_its_place() {
        let error = |name: &str, runs: [Value; 2]| {
            let runs = runs.map(|it| it.to_string());
            let error = by_lines(name, &document("runslice_results", &runs)).unwrap_err();
            crate::error::in_full(&error)
        };
        let twice = error("twice", [run(1, 5), run(1, 5)]);
        let want = "a run of fifo slice_ns=5 with seed 1 is in it twice; leave one out";
        assert!(twice.ends_with(want), "{twice}");
        let none = error("none", [run(1, 5), json!({"policy": "fifo", "exit": {}})]);
        assert!(
            none.ends_with("run 2: it is none: it lacks `report`"),
            "{none}"
        );
    }
}
