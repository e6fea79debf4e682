//! Jobs and questions, made from a seed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use model::{Rng, SimTime};
use serde::Serialize;

use super::run::{Course, LabTask};

/// Streams of the jobs and of the questions.
const JOBS: u64 = 9 << 60;
const QUESTIONS: u64 = 10 << 60;

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabQuestion {
    /// The question.
    pub text: String,
    /// The answer, from the run.
    pub answer: String,
}

/// A few jobs on one CPU, as a workload. A job's name ends in its length in milliseconds.
pub fn jobs(seed: u64) -> String {
    let mut rng = Rng::new(seed, JOBS);
    let mut text = "[workload]\nname = \"jobs\"\n[machine]\ncpus = 1\nhz = 1000\n".to_owned();
    let count = 3 + rng.below(3);
    let mut starts = BTreeSet::new();
    for job in 0..count {
        let name = char::from(b'A' + job as u8);
        let length = 10 * (1 + rng.below(12));
        let mut start = 1 + 5 * rng.below(12);
        // Who comes first of two that come together, nobody can know.
        while !starts.insert(start) {
            start += 5;
        }
        let nice = match rng.below(3) {
            // What a policy sees as its weight (`sched_prio_to_weight`, kernel 6.18), of 100.
            0 => "nice = 5 # weight 33; 100 without it\n",
            _ => "",
        };
        let _ = write!(
            text,
            "\n[task.{name}_{length}]\n{nice}start = \"{start}ms\"\ndo = \"run({length}ms)\"\n"
        );
    }
    text
}

/// Up to `count` questions about a run.
pub fn ask(course: &Course, seed: u64, count: usize) -> Vec<LabQuestion> {
    let mut rng = Rng::new(seed, QUESTIONS);
    let mut all = every(course);
    let mut asked = Vec::new();
    while asked.len() < count && !all.is_empty() {
        let at = rng.below(all.len() as u64) as usize;
        asked.push(all.swap_remove(at));
    }
    asked
}

/// All that can be asked.
fn every(course: &Course) -> Vec<LabQuestion> {
    let mut all = Vec::new();
    let done = course.tasks.iter().filter(|task| task.ended.is_some());
    for task in done.clone().take(26) {
        all.extend(about(task));
    }
    for pair in course.turns.windows(2).take(200) {
        let [(_, cpu, Some(before)), (time, next_cpu, after)] = pair else {
            continue;
        };
        let names = |who: usize| course.tasks.get(who).map(|task| task.name.clone());
        // Before it is ready it only comes to life.
        let has_begun = |who: usize| {
            let ready = course.tasks.get(who).and_then(|task| task.ready);
            ready.is_some_and(|ready| *time > ready)
        };
        if cpu != next_cpu || Some(*before) == *after || !has_begun(*before) {
            continue;
        }
        let Some(left) = names(*before) else { continue };
        let next = after.and_then(names);
        all.push(LabQuestion {
            text: format!(
                "{left} leaves CPU {cpu} at {}. Who runs next there?",
                ms(*time)
            ),
            answer: next.unwrap_or_else(|| "nobody".to_owned()),
        });
    }
    let turnarounds: Vec<u64> = done.filter_map(turnaround).collect();
    if turnarounds.len() > 1 {
        let mean = turnarounds.iter().sum::<u64>() / turnarounds.len() as u64;
        all.push(LabQuestion {
            text: "What is the mean turnaround of all tasks that end?".to_owned(),
            answer: ms(SimTime::from_nanos(mean)),
        });
    }
    all
}

fn turnaround(task: &LabTask) -> Option<u64> {
    Some(task.ended?.since(task.ready?).get())
}

fn about(task: &LabTask) -> Vec<LabQuestion> {
    let (Some(ready), Some(started), Some(ended)) = (task.ready, task.started, task.ended) else {
        return Vec::new();
    };
    let name = &task.name;
    let question = |text: String, ns: u64| LabQuestion {
        text,
        answer: ms(SimTime::from_nanos(ns)),
    };
    vec![
        question(format!("When does {name} end?"), ended.as_nanos()),
        question(
            format!("What is the response time of {name}, from its arrival to its first run?"),
            started.since(ready).get(),
        ),
        question(
            format!("What is the turnaround of {name}, from its arrival to its end?"),
            ended.since(ready).get(),
        ),
    ]
}

/// Milliseconds, exactly.
pub(super) fn ms(time: SimTime) -> String {
    let ns = time.as_nanos();
    let text = format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} ms")
}

#[cfg(test)]
mod tests {
    use workload::Workload;

    use super::*;

    fn at(ms: u64) -> SimTime {
        SimTime::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn jobs_are_a_workload_and_depend_on_the_seed() {
        let texts: Vec<_> = (0..50).map(jobs).collect();
        for text in &texts {
            Workload::parse(text, "jobs").unwrap();
        }
        // A student can tell who comes first.
        for text in &texts {
            let starts: Vec<_> = text.split("start = \"").skip(1).collect();
            let starts: Vec<_> = starts.iter().map(|it| it.split("ms").next()).collect();
            let apart: BTreeSet<_> = starts.iter().collect();
            assert_eq!(apart.len(), starts.len(), "{text}");
            // A job that slept first would have a second, empty turn.
            assert!(starts.len() >= 3 && !text.contains("sleep("), "{text}");
        }
        assert_ne!(texts[0], texts[1]);
        assert_eq!(jobs(3), texts[3]);
    }

    #[test]
    fn answers_are_what_the_run_was() {
        let task = |name: &str, ready, started, ended| LabTask {
            name: name.to_owned(),
            ready: Some(at(ready)),
            started: Some(at(started)),
            ended: Some(at(ended)),
        };
        let course = Course {
            tasks: vec![task("A", 1, 1, 11), task("B", 2, 11, 16)],
            turns: vec![(at(1), 0, Some(0)), (at(11), 0, Some(1)), (at(16), 0, None)],
            ..Course::default()
        };
        let all = every(&course);
        let answer = |part: &str| {
            let found = all.iter().find(|it| it.text.contains(part));
            found.map(|it| it.answer.as_str())
        };
        assert_eq!(answer("When does B end"), Some("16 ms"));
        assert_eq!(answer("response time of B"), Some("9 ms"));
        assert_eq!(answer("turnaround of A"), Some("10 ms"));
        assert_eq!(answer("A leaves CPU 0 at 11 ms"), Some("B"));
        assert_eq!(answer("B leaves CPU 0 at 16 ms"), Some("nobody"));
        assert_eq!(answer("mean turnaround"), Some("12 ms"));
        assert_eq!(ask(&course, 1, 3).len(), 3);
        assert_eq!(ask(&course, 1, 3), ask(&course, 1, 3));
    }
}
