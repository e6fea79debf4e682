//! The events that a run of `runslice load levels` writes, and what probes find in them.

use crate::experiments::probe::{Probe, WantedProbe};
use serde_json::{Value, json};
use traces::Tee;

use crate::machines::found;

/// The name of the file that run number `run` writes its events to.
pub fn file(run: usize) -> String {
    format!("events-{run}.jsonl")
}

/// Whether the run that `command` starts follows its tasks, so that it can write events.
pub fn has_events(command: &[String]) -> bool {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    words.starts_with(&["runslice", "load", "levels"]) && words.contains(&"--slices")
}

/// What `probes` find in a file of events, or why they cannot, as `failure`.
pub fn look(probes: &[WantedProbe], events: Option<&[u8]>) -> Value {
    let Some(events) = events else {
        return json!({ "failure": "it wrote no events" });
    };
    let mut looking: Vec<Probe> = probes.iter().cloned().map(Probe::new).collect();
    let sinks = looking.iter_mut().map(|probe| probe as _).collect();
    if let Err(error) = traces::replay(events, &mut Tee::new(sinks)) {
        return json!({ "failure": format!("its events: {error}") });
    }
    let mut all = found(probes, &looking);
    // One whom no policy has put on a level has gone through none.
    if let Some(all) = all.as_object_mut() {
        all.retain(|_, probe| probe["values"]["runs"].as_f64() != Some(0.0));
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::experiments::cells::RunSample;
    use crate::experiments::probe::{ProbeForm, Steps};
    use model::{
        CpuId, Event, Header, MachineSpec, Nanos, PrevState, SimTime, Sink as _, TaskGroup, TaskId,
        What,
    };
    use traces::JsonLines;

    use super::*;

    fn wanted(who: &str, steps: Steps) -> WantedProbe {
        WantedProbe {
            name: "place".to_owned(),
            who: who.to_owned(),
            after: Nanos::ZERO,
            form: ProbeForm::Levels {
                priority: false,
                flags: false,
                steps,
            },
        }
    }

    /// A file of events of `hog` and `other` on one CPU.
    fn written(events: &[Event]) -> Vec<u8> {
        let group = |name: &str| TaskGroup {
            name: name.to_owned(),
            nice: 0,
            count: 1,
        };
        let mut sink = JsonLines::new(Vec::new());
        sink.begin(&Header {
            policy: String::new(),
            workload: "levels".to_owned(),
            machine: MachineSpec {
                cpus: 1,
                ..MachineSpec::default()
            },
            seed: 0,
            duration: None,
            groups: ["hog", "other"].map(group).to_vec(),
            spans: Vec::new(),
            deadlines: Vec::new(),
            counters: Vec::new(),
            phases: Vec::new(),
        });
        sink.events(events);
        sink.finish(SimTime::ZERO + Nanos::from_millis(50));
        sink.close().unwrap()
    }

    fn event(ms: u64, task: u32, what: What) -> Event {
        let time = SimTime::ZERO + Nanos::from_millis(ms);
        Event::new(time, CpuId(0), TaskId(task), what)
    }

    /// A policy puts `hog` on levels 0, 1, 1 and 2; of `other` it says nothing.
    fn slices() -> Vec<u8> {
        let new = |group| What::New {
            group,
            index: 0,
            pid: 0,
            parent: TaskId::NONE,
        };
        let mut events: Vec<Event> = (0..2).map(|task| event(0, task, new(task))).collect();
        let switch = |state| What::Switch {
            prev: TaskId(0),
            state,
            overhead: Nanos::ZERO,
        };
        for (ms, ran, level) in [(0, 10, 0), (15, 5, 1), (21, 15, 1), (40, 1, 2)] {
            let report = What::Report {
                priority: 0,
                level,
                flags: 0,
            };
            events.push(event(ms, 0, report));
            events.push(event(ms, 0, switch(PrevState::Idle)));
            events.push(event(ms + ran, 1, switch(PrevState::Runnable)));
        }
        written(&events)
    }

    fn sample(probes: &[WantedProbe]) -> RunSample {
        let found = look(probes, Some(&slices()));
        assert_eq!(found["failure"], Value::Null);
        RunSample::of(&json!({ "probes": found }))
    }

    #[test]
    fn levels_and_the_time_at_each_are_found_in_the_events() {
        let changes = sample(&[wanted("hog", Steps::Changes)]);
        assert_eq!(changes.traces["place"].rounded, "0 1 2");
        let ten = Nanos::from_millis(10);
        let times = sample(&[wanted("hog", Steps::Times(ten))]);
        assert_eq!(times.traces["place"].rounded, "0:1 1:2");
        assert_eq!(times.traces["place"].exact, "0:10000000 1:20000000");
        assert_eq!(times.numbers["probe.place.interactive"], 0.0);
    }

    #[test]
    fn a_task_of_which_no_policy_speaks_has_gone_through_no_levels() {
        let none = sample(&[wanted("other", Steps::Runs)]);
        assert!(none.traces.is_empty() && none.numbers.is_empty());
    }

    #[test]
    fn events_that_are_missing_or_torn_are_no_result() {
        let probes = [wanted("hog", Steps::Runs)];
        assert_eq!(look(&probes, None)["failure"], "it wrote no events");
        let torn = look(&probes, Some(b"{\"runslice_events\":"));
        let why = torn["failure"].as_str().unwrap_or_default();
        assert!(why.starts_with("its events: "), "{torn}");
    }

    #[test]
    fn only_a_load_that_follows_its_tasks_has_events() {
        let of = |text: &str| {
            let words = text.split(' ').map(str::to_owned);
            has_events(&words.collect::<Vec<_>>())
        };
        assert!(of("runslice load levels --task hog --slices --format json"));
        assert!(!of("runslice load levels --task hog --format json"));
        assert!(!of("runslice load echo --slices"));
    }
}
