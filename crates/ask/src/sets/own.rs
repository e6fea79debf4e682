//! Results that this program wrote.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};
use model::{Advised, ExitKind};
use serde_json::Value;
use stats::compare::{CommandFigures, Reported, command_measures, played_measures};

use super::{Entry, Figures, Gathered, documents, input};
use crate::outcome::World;
use crate::services::Services;
use crate::words::counted;

/// What `sweep` calls its results in its folder.
pub const SWEEP: &str = "results.json";
/// What `bench` calls its plan in its folder.
pub const BENCH: &str = "bench.json";
/// What `bench` calls its runs in its folder, one a line.
pub const RUNS: &str = "runs.jsonl";

type Reader = fn(&Value) -> Vec<Entry>;

/// The key that names a document's kind, the versions of it, and who reads them. The readers know
/// the last version; [`modern`] makes it of the first.
pub(super) const KINDS: [(&str, &[u64], Reader); 3] = [
    ("runslice_results", &[1, 2], results),
    ("runslice_sweep", &[1, 2], results),
    (ONE_RUN, &[1], run),
];

/// A report of the first version under the names of the second: figures that stood in objects of
/// their own have one name, and rows are named for what they are.
pub(super) fn modern(report: &Value) -> Value {
    let lists = ["deadline", "span", "counter", "phase"];
    let lists = lists.map(|name| (format!("{name}s"), name));
    let mut report = report.clone();
    report["all"] = modern_row(&report["all"], "group");
    let lists = lists.iter().map(|(list, name)| (list.as_str(), *name));
    for (list, name) in lists.chain([("groups", "group"), ("tasks", "name")]) {
        for row in report[list].as_array_mut().into_iter().flatten() {
            *row = modern_row(row, name);
        }
    }
    report
}

fn modern_row(row: &Value, name: &str) -> Value {
    let mut modern = serde_json::Map::new();
    for (key, value) in row.as_object().into_iter().flatten() {
        let Some(figures) = value.as_object() else {
            let key = match key.as_str() {
                "name" => name,
                "wait_max_ns" => "wait_ns_max",
                "waiting_at_end_max_ns" => "waiting_at_end_ns_max",
                key => key,
            };
            modern.insert(key.to_owned(), value.clone());
            continue;
        };
        for (figure, value) in figures {
            let stem = if key == "lateness" { "late" } else { key };
            let key = match (figure.as_str(), stem) {
                ("count", "length") => "count".to_owned(),
                ("count", stem) => format!("{stem}s"),
                (figure, stem) => format!("{stem}_ns_{}", figure.trim_end_matches("_ns")),
            };
            modern.insert(key, value.clone());
        }
    }
    Value::Object(modern)
}

/// The mark of a document that is one run.
pub const ONE_RUN: &str = "runslice_run";

/// A scheduler as tables call it: with what was set in it besides.
fn arm(policy: &str, set: &Value) -> String {
    let mut name = policy.to_owned();
    for (knob, value) in set.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let setting = format!("{knob}={value}");
        if !policy.contains(&setting) {
            name += &format!(" {setting}");
        }
    }
    name
}

/// Load and machine in one line.
fn place(workload: &Value, machine: &Value) -> String {
    let number = |key: &str| machine[key].as_u64().unwrap_or(0);
    let mut place = format!(
        "{}: {}, HZ {}, kernel {}",
        model::plain::shown(workload.as_str().unwrap_or_default()),
        counted(number("cpus"), "CPU"),
        number("hz"),
        machine["kernel"].as_str().unwrap_or_default(),
    );
    for (key, usual) in [("smt", 1), ("llc", 0), ("node", 0)] {
        if number(key) != usual {
            place += &format!(", {key} {}", number(key));
        }
    }
    place
}

/// Load, parameters and machine of a run of a sweep, in one line.
#[must_use]
pub fn place_of(run: &Value) -> String {
    place_at(&run["workload"], &run["machine"], &run["scale"])
}

fn place_at(workload: &Value, machine: &Value, scale: &Value) -> String {
    let mut place = place(workload, machine);
    for (name, value) in scale.as_object().into_iter().flatten() {
        place += &format!(", {name} {value}");
    }
    place
}

/// Whether the number of an exit's kind stands for an ejection.
fn is_ejection(exit: &Value) -> bool {
    exit["kind"].as_u64() >= Some(u64::from(ExitKind::Error as u32))
}

/// A run of `sim`, `play` or `sweep`, without its figures.
pub(super) struct Line<'a> {
    pub policy: &'a str,
    pub knobs: &'a Value,
    pub exit: &'a Value,
    pub seed: Option<u64>,
    /// These three only in results of `sweep`, where every run has its own.
    pub workload: &'a Value,
    pub machine: &'a Value,
    pub scale: &'a Value,
    /// How many tasks starved to its end.
    pub starved: &'a Value,
}

/// A run of the document that `head` begins.
pub(super) fn entry(head: &Value, line: &Line<'_>, report: Reported) -> Entry {
    let is_sweep = head.get("runslice_sweep").is_some();
    let world = if is_sweep {
        World::Simulated
    } else {
        World::of(head["world"].as_str())
    };
    Entry {
        world: world.name(),
        arm: arm(line.policy, line.knobs),
        place: if is_sweep {
            place_at(line.workload, line.machine, line.scale)
        } else {
            place(&head["workload"], &head["machine"])
        },
        seed: line.seed.filter(|_| world == World::Simulated),
        run: (!is_ejection(line.exit)).then(|| Figures::Report(Box::new(report))),
        starved: line.starved.as_u64().is_some_and(|count| count > 0),
    }
}

/// Whether the document that begins so may have its runs read one by one.
pub(super) fn is_of_lines(head: &Value) -> bool {
    let version = |mark: &str| head[mark].as_u64();
    version("runslice_results") == Some(2) || version("runslice_sweep") == Some(2)
}

/// Of `sim`, `play` and `sweep`.
fn results(document: &Value) -> Vec<Entry> {
    let of = |run: &Value| {
        let report = Reported::of(&run["report"]);
        let line = Line {
            policy: run["policy"].as_str().unwrap_or_default(),
            knobs: &run["knobs"],
            exit: &run["exit"],
            seed: report.seed(),
            workload: &run["workload"],
            machine: &run["machine"],
            scale: &run["scale"],
            starved: &run["starved"],
        };
        entry(document, &line, report)
    };
    let runs = document["runs"].as_array();
    runs.into_iter().flatten().map(of).collect()
}

/// Of `run`, whose documents of many runs stand one after the other.
fn run(document: &Value) -> Vec<Entry> {
    let command = &document["command"];
    let words = command["words"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let counts = document["ejection"].is_null() && command["status"].as_i64() == Some(0);
    vec![Entry {
        world: "run",
        arm: arm(
            document["policy"].as_str().unwrap_or_default(),
            &document["set"],
        ),
        place: words.join(" "),
        seed: None,
        run: counts.then(|| Figures::Measured(command_measures(&figures(command)))),
        starved: false,
    }]
}

/// The figures of a command by their names in documents.
fn figures(command: &Value) -> CommandFigures {
    let number = |key: &str| command[key].as_u64();
    CommandFigures {
        time_ns: number("time_ns"),
        run_ns: number("run_ns"),
        wait_ns: number("wait_ns"),
        slices: number("slices"),
        migrations: number("migrations"),
        voluntary: number("voluntary"),
        involuntary: number("involuntary"),
        user_ns: number("user_ns"),
        system_ns: number("system_ns"),
        memory_bytes: number("memory_bytes"),
    }
}

/// What a folder says of its runs.
#[derive(Debug, Default)]
pub struct FolderPlan {
    /// The arm that is the baseline.
    pub baseline: Option<String>,
    /// The one that is it a second time.
    pub again: Option<String>,
    /// How often the runs were looked at while they were made, if that was planned.
    pub looks: u32,
}

/// A folder of `sweep` or `bench`. Returns what the latter says of its arms.
///
/// # Errors
/// When it is neither, or a file in it is broken.
pub(super) fn folder(
    services: &Services<'_>,
    path: &Path,
    sets: &mut Gathered,
) -> anyhow::Result<FolderPlan> {
    let sweep = path.join(SWEEP);
    if services.is_file(&sweep) {
        *sets = super::of_file(services, &sweep)?;
        return Ok(FolderPlan::default());
    }
    if !services.is_file(&path.join(BENCH)) {
        let path = path.display();
        let what = format!(
            "{path} is no folder of `bench` or of a complete `sweep`: it has neither {BENCH} nor \
             {SWEEP}"
        );
        bail!(Advised::new(
            what,
            "name the folder of one of these, or files of results"
        ));
    }
    bench(services, path, sets)
}

/// The runs of a bench's folder: one document a line. A last line without an end is of a bench that
/// was killed.
///
/// # Errors
/// When the file cannot be read or a whole line is no JSON.
pub fn lines(services: &Services<'_>, path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = input::text(services, path, input::RESULTS)?;
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let lines = text[..whole].lines().enumerate().map(|(at, line)| {
        let name = || format!("{}:{}: no JSON", path.display(), at + 1);
        serde_json::from_str(line).with_context(name)
    });
    lines.collect()
}

fn bench(services: &Services<'_>, path: &Path, sets: &mut Gathered) -> anyhow::Result<FolderPlan> {
    let plans = documents(services, &path.join(BENCH))?;
    let plan = plans.first().context("an empty bench.json")?;
    if plan["runslice_bench"].as_u64() != Some(1) {
        bail!(Advised::new(
            format!("{}: has another version", path.join(BENCH).display()),
            "this program reads version 1"
        ));
    }
    let words = plan["command"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let cpus = counted(plan["cpus"].as_u64().unwrap_or(0), "CPU");
    let cpu = plan["cpu"].as_str().unwrap_or_default();
    let beside = match plan["play"]["name"].as_str() {
        Some(name) => format!(" beside {name}"),
        None => String::new(),
    };
    let place = format!("{}{beside}: {cpus}, {cpu}", words.join(" "));
    let world = match plan["counts"].as_bool() {
        Some(true) => "bench in a guest that counts instructions",
        _ => "bench",
    };
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    for run in lines(services, &path.join(RUNS))? {
        let number = run["number"].as_u64();
        if run["warmup"] == true || !seen.insert(number) {
            continue;
        }
        entries.push(Entry {
            world,
            arm: run["arm"].as_str().unwrap_or_default().to_owned(),
            place: place.clone(),
            seed: None,
            run: run["void"].is_null().then(|| {
                let mut found = command_measures(&figures(&run));
                found.extend(played_measures(&modern(&run["played"])));
                Figures::Measured(found)
            }),
            starved: false,
        });
    }
    // Tables have the arms in the order of the plan, not in that of the first block.
    let arms: Vec<&Value> = plan["arms"].as_array().into_iter().flatten().collect();
    let rank = |entry: &Entry| arms.iter().position(|arm| arm["name"] == *entry.arm);
    entries.sort_by_key(rank);
    entries.into_iter().try_for_each(|entry| sets.add(entry))?;
    let name = |value: &Value| value.as_str().map(str::to_owned);
    let baseline = arms.first().and_then(|arm| name(&arm["name"]));
    let looks = plan["looks"].as_u64().and_then(|it| it.try_into().ok());
    Ok(FolderPlan {
        baseline,
        again: name(&plan["again"]),
        looks: looks.unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_set_besides_the_name_belongs_to_the_arm() {
        assert_eq!(arm("mlfq:nq=3", &json!({"nq": "3"})), "mlfq:nq=3");
        assert_eq!(arm("mlfq", &json!({"nq": "3"})), "mlfq nq=3");
    }

    #[test]
    fn a_live_run_counts_if_neither_policy_nor_command_failed() {
        let document = |ejection: Value, status: i32| {
            json!({
                "runslice_run": 1, "policy": "fifo", "set": {}, "ejection": ejection,
                "command": {"words": ["make", "-j"], "status": status, "time_ns": 5},
            })
        };
        let entry = &run(&document(Value::Null, 0))[0];
        assert_eq!(entry.place, "make -j");
        assert_eq!(entry.run.as_ref().map(|it| it.named().len()), Some(1));
        assert!(run(&document(json!("stall"), 0))[0].run.is_none());
        assert!(run(&document(Value::Null, 2))[0].run.is_none());
    }
}
