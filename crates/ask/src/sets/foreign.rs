//! Results that other programs wrote.

use anyhow::bail;
use serde_json::Value;
use stats::compare::{Better, Measure, MeasuredNumber, Role};

use super::{Entry, Figures};

const NANOS_PER_SECOND: f64 = 1e9;

/// A number of hyperfine 2: its key, its name here, the unit that it must have, what it is.
const NUMBERS: [(&str, &str, &str, Measure); 4] = [
    ("time_wall_clock", "time_ns", "second", Measure::Nanos),
    ("time_user", "user_ns", "second", Measure::Nanos),
    ("time_system", "system_ns", "second", Measure::Nanos),
    (
        "memory_peak_resident",
        "memory_bytes",
        "byte",
        Measure::Bytes,
    ),
];

fn measured(
    name: &str,
    measure: Measure,
    better: Better,
    is_goal: bool,
    value: f64,
) -> MeasuredNumber {
    MeasuredNumber {
        name: name.to_owned(),
        measure,
        better,
        role: if is_goal { Role::Goal } else { Role::Other },
        value,
    }
}

/// Of `hyperfine --export-json`, versions 1 (a list of times) and 2 (a list of measurements). Each
/// command is an arm. Runs that failed do not count.
///
/// # Errors
/// When a command has no single runs, as when they were left out of the export.
pub fn hyperfine(document: &Value) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for result in document["results"].as_array().into_iter().flatten() {
        let name = result["name"].as_str().or(result["command"].as_str());
        let arm = name.unwrap_or_default().to_owned();
        let runs = match (&result["times"], &result["measurements"]) {
            (Value::Array(times), _) => of_times(times, &result["exit_codes"]),
            (_, Value::Array(runs)) => runs.iter().map(of_measurement).collect(),
            _ => bail!("`{arm}` has no list of its runs, only their mean"),
        };
        entries.extend(runs.into_iter().map(|run| Entry {
            world: "hyperfine",
            arm: arm.clone(),
            place: String::new(),
            seed: None,
            run: run.map(Figures::Measured),
            starved: false,
        }));
    }
    Ok(entries)
}

fn of_times(times: &[Value], codes: &Value) -> Vec<Option<Vec<MeasuredNumber>>> {
    let runs = times.iter().enumerate().map(|(at, time)| {
        let failed = codes.get(at).is_some_and(|code| *code != 0);
        let time = time.as_f64().filter(|_| !failed)? * NANOS_PER_SECOND;
        Some(vec![measured(
            "time_ns",
            Measure::Nanos,
            Better::Lower,
            true,
            time,
        )])
    });
    runs.collect()
}

fn of_measurement(run: &Value) -> Option<Vec<MeasuredNumber>> {
    if run.get("exit_code").is_some_and(|code| *code != 0) {
        return None;
    }
    let numbers = NUMBERS.iter().filter_map(|(key, name, unit, measure)| {
        let number = &run[*key];
        let value = number["value"]
            .as_f64()
            .filter(|_| number["unit"] == *unit)?;
        let value = match measure {
            Measure::Nanos => value * NANOS_PER_SECOND,
            _ => value,
        };
        let is_goal = *name == "time_ns";
        Some(measured(name, *measure, Better::Lower, is_goal, value))
    });
    Some(numbers.collect())
}

/// Of `schbench --json`: one run. The scheduler that was attached is the arm. Latencies are in
/// microseconds there; the percentiles of requests a second are over its intervals.
pub fn schbench(document: &Value) -> Vec<Entry> {
    let (head, numbers) = (&document["normal"], &document["int"]);
    let arm = match head["sched_ext"].as_str() {
        None | Some("disabled") => "default",
        Some(policy) => policy,
    };
    let mut run = Vec::new();
    for (key, value) in numbers.as_object().into_iter().flatten() {
        let Some(value) = value.as_f64() else {
            continue;
        };
        if let Some(which) = key.strip_prefix("rps_") {
            let is_goal = which == "pct50.0";
            let name = format!("rps.{which}");
            run.push(measured(
                &name,
                Measure::Rate,
                Better::Higher,
                is_goal,
                value,
            ));
        } else if let Some((kind, which)) = key.split_once("_latency_") {
            let is_goal = which == "pct99.0";
            let name = format!("{kind}.{which}_ns");
            let value = value * 1_000.0;
            run.push(measured(
                &name,
                Measure::Nanos,
                Better::Lower,
                is_goal,
                value,
            ));
        }
    }
    vec![Entry {
        world: "schbench",
        arm: arm.to_owned(),
        place: head["cmdline"].as_str().unwrap_or_default().to_owned(),
        seed: None,
        run: Some(Figures::Measured(run)),
        starved: false,
    }]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured_of(run: &Figures) -> &[MeasuredNumber] {
        match run {
            Figures::Measured(run) => run,
            Figures::Report(_) => panic!("not of another program"),
        }
    }

    fn times(entries: &[Entry]) -> Vec<Option<f64>> {
        let first = |run: &Figures| {
            let goal = measured_of(run).iter().find(|it| it.role == Role::Goal);
            goal.map(|it| it.value)
        };
        entries
            .iter()
            .map(|entry| entry.run.as_ref().and_then(first))
            .collect()
    }

    #[test]
    fn hyperfine_1_has_times_in_seconds_and_failed_runs_do_not_count() {
        let document = json!({"results": [
            {"command": "sleep 1", "mean": 1.0, "times": [1.0, 1.5], "exit_codes": [0, 1]},
        ]});
        let entries = hyperfine(&document).unwrap();
        assert_eq!(times(&entries), [Some(1e9), None]);
        assert_eq!(entries[0].arm, "sleep 1");
    }

    #[test]
    fn hyperfine_2_has_measurements_with_units() {
        let run = |seconds: f64| {
            json!({
                "time_wall_clock": {"value": seconds, "unit": "second"},
                "memory_peak_resident": {"value": 4096.0, "unit": "byte"},
                "exit_code": 0,
            })
        };
        let document = json!({"schema_version": 2, "results": [
            {"command": "sleep 1", "name": "one", "measurements": [run(1.0), run(2.0)]},
        ]});
        let entries = hyperfine(&document).unwrap();
        assert_eq!(times(&entries), [Some(1e9), Some(2e9)]);
        assert_eq!(entries[0].arm, "one");
        let memory = &measured_of(entries[0].run.as_ref().unwrap())[1];
        assert_eq!(
            (memory.name.as_str(), memory.value),
            ("memory_bytes", 4096.0)
        );
    }

    #[test]
    fn an_export_without_single_runs_is_refused() {
        let document = json!({"results": [{"command": "sleep 1", "mean": 1.0}]});
        let error = hyperfine(&document).unwrap_err().to_string();
        assert_eq!(error, "`sleep 1` has no list of its runs, only their mean");
    }

    #[test]
    fn schbench_names_its_scheduler_and_has_microseconds() {
        let document = json!({
            "normal": {"version": "6.18", "sched_ext": "mlfq", "cmdline": "schbench -m2 "},
            "int": {"time": 5, "wakeup_latency_pct99.0": 30, "request_latency_max": 9,
                    "rps_pct50.0": 606, "runtime": 10},
        });
        let entry = &schbench(&document)[0];
        assert_eq!(entry.arm, "mlfq");
        let run = measured_of(entry.run.as_ref().unwrap());
        let list: Vec<_> = run.iter().map(|it| (it.name.as_str(), it.value)).collect();
        let want = [
            ("request.max_ns", 9_000.0),
            ("rps.pct50.0", 606.0),
            ("wakeup.pct99.0_ns", 30_000.0),
        ];
        assert_eq!(list, want);
    }
}
