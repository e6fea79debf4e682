//! What a probe finds in the slices that `runslice load levels --slices` tells of.

use model::{
    CpuId, Event, EventKind, Header, MachineSpec, Nanos, PrevState, SimTime, Sink as _, TaskGroup,
    TaskId,
};
use serde_json::Value;
use stats::probe::{Probe, Wanted};

use experiments::cells::{Sample, Sequence};

/// A row of the table: a task's time on a CPU.
struct Slice {
    task: usize,
    at: u64,
    ran: u64,
    prio: u64,
    level: u64,
    flags: u64,
}

/// Puts what `wanted` finds in the table `slices` into `sample`; nothing where there is none.
pub fn look(wanted: &Wanted, slices: &Value, sample: &mut Sample) {
    let Some((names, slices)) = read(slices) else {
        return;
    };
    // One of whom no slice was seen has gone through no levels.
    if !names.contains(&wanted.who) {
        return;
    }
    let mut probe = Probe::new(wanted.clone());
    probe.begin(&header(&names));
    for event in events(names.len(), &slices) {
        probe.events(&[event]);
    }
    let found = probe.found();
    for (name, value) in found.values {
        sample
            .numbers
            .insert(format!("probe.{}.{name}", wanted.name), value);
    }
    let sequence = Sequence {
        rounded: found.trace,
        exact: found.exact,
    };
    sample.traces.insert(wanted.name.clone(), sequence);
    sample.points.insert(wanted.name.clone(), found.points);
}

/// The tasks' names and the slices, in the order of the rows. `None` if it is no such table.
fn read(table: &Value) -> Option<(Vec<String>, Vec<Slice>)> {
    let columns = table["columns"].as_array()?;
    let column = |name: &str| columns.iter().position(|column| column == name);
    let places = ["task", "at_ns", "run_ns", "prio", "level", "flags"].map(column);
    let mut names: Vec<String> = Vec::new();
    let mut slices = Vec::new();
    for row in table["rows"].as_array()? {
        let number = |place: usize| row[places[place]?].as_u64();
        let name = row[places[0]?].as_str()?;
        let task = names.iter().position(|it| it == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        slices.push(Slice {
            task,
            at: number(1)?,
            ran: number(2)?,
            prio: number(3)?,
            level: number(4)?,
            flags: number(5)?,
        });
    }
    Some((names, slices))
}

fn header(names: &[String]) -> Header {
    let group = |name: &String| TaskGroup {
        name: name.clone(),
        nice: 0,
        count: 1,
    };
    Header {
        policy: String::new(),
        workload: String::new(),
        machine: MachineSpec {
            // One for each task: on which they were is of no matter here.
            cpus: u16::try_from(names.len()).unwrap_or(u16::MAX),
            ..MachineSpec::default()
        },
        seed: 0,
        duration: None,
        groups: names.iter().map(group).collect(),
        spans: Vec::new(),
        deadlines: Vec::new(),
        counters: Vec::new(),
        phases: Vec::new(),
    }
}

/// The story that the slices tell.
fn events(tasks: usize, slices: &[Slice]) -> Vec<Event> {
    let event = |task: usize, at: u64, kind: EventKind| Event {
        time: SimTime::ZERO + Nanos::new(at),
        task: TaskId(u32::try_from(task).unwrap_or(u32::MAX)),
        cpu: CpuId(u16::try_from(task).unwrap_or(u16::MAX)),
        kind,
        detail: PrevState::Idle as u8,
        a: 0,
        b: 0,
    };
    let born = (0..tasks).map(|task| Event {
        a: task as u64,
        ..event(task, 0, EventKind::New)
    });
    let mut events: Vec<Event> = born.collect();
    for slice in slices {
        let (task, end) = (slice.task, slice.at + slice.ran);
        events.push(Event {
            a: slice.prio | slice.level << 32,
            b: slice.flags,
            ..event(task, slice.at, EventKind::Report)
        });
        events.push(event(task, slice.at, EventKind::Switch));
        events.push(Event {
            task: TaskId::NONE,
            detail: PrevState::Runnable as u8,
            ..event(task, end, EventKind::Switch)
        });
    }
    events.sort_by_key(|event| event.time);
    events
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stats::probe::{Form, Steps};

    use super::*;

    fn wanted(who: &str, steps: Steps) -> Wanted {
        Wanted {
            name: "place".to_owned(),
            who: who.to_owned(),
            after: Nanos::ZERO,
            form: Form::Levels {
                priority: false,
                flags: false,
                steps,
            },
        }
    }

    #[test]
    fn levels_and_the_time_at_each_are_found_in_the_slices() {
        let table = json!({
            "columns": ["task", "at_ns", "run_ns", "prio", "level", "flags", "forced"],
            "rows": [
                ["hog", 0, 10_000_000, 100, 0, 0, 1],
                ["other", 10_000_000, 5_000_000, 119, 19, 1, 1],
                ["hog", 15_000_000, 5_000_000, 101, 1, 0, 1],
                ["hog", 21_000_000, 15_000_000, 101, 1, 0, 1],
                ["hog", 40_000_000, 1_000_000, 102, 2, 0, 1],
            ],
        });
        let mut sample = Sample::default();
        look(&wanted("hog", Steps::Changes), &table, &mut sample);
        assert_eq!(sample.traces["place"].rounded, "0 1 2");
        assert_eq!(sample.traces["place"].exact, "");
        let ten = Nanos::from_millis(10);
        look(&wanted("hog", Steps::Times(ten)), &table, &mut sample);
        assert_eq!(sample.traces["place"].rounded, "0:1 1:2");
        assert_eq!(sample.traces["place"].exact, "0:10000000 1:20000000");
        look(&wanted("other", Steps::Runs), &table, &mut sample);
        assert_eq!(sample.traces["place"].rounded, "19");
        assert_eq!(sample.numbers["probe.place.interactive"], 1.0);
    }

    #[test]
    fn a_load_without_slices_has_nothing_to_find() {
        let mut sample = Sample::default();
        look(&wanted("hog", Steps::Runs), &Value::Null, &mut sample);
        let columns = ["task", "at_ns", "run_ns", "prio", "level", "flags"];
        let none = json!({ "columns": columns, "rows": [] });
        look(&wanted("hog", Steps::Runs), &none, &mut sample);
        assert!(sample.traces.is_empty() && sample.numbers.is_empty());
    }
}
