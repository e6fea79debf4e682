//! How far do recordings of the same moments agree? For scripts/agreement.sh.
//!
//!     agreement LABEL FILE FILE... [--tasks]
//!
//! The files are traces that several programs recorded at once. Only what happened between two
//! moments is compared: the death of a task called `markbegin`, and the first turn of one called
//! `markend`. Both are in every file, whatever its clock and its begin. The first file is what the
//! others are compared with.
//!
//! Prints a line of a table in Markdown for each other file, and on standard error what the files
//! have. `--tasks` also prints, on standard error, each task that two files have differently.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::ControlFlow;
use std::process::ExitCode;

use model::{Event, EventKind, PrevState, TaskId, WakeCause, What};
use traces::foreign::{Imported, Window};

/// The tasks that stand before and behind what is compared.
const MARKS: [&str; 2] = ["markbegin", "markend"];

/// Who or what ends a sleep.
const CAUSES: [&str; 5] = ["task", "clock", "device", "outside", "unknown"];

/// A task on both sides: its thread's number, and which task of that number it is.
type Key = (u32, usize);

/// What a task did between the marks.
#[derive(Clone, Debug, Default)]
struct Did {
    name: String,
    run_ns: u64,
    runs: u64,
    /// Sleeps that ended, by cause.
    sleeps: [u64; CAUSES.len()],
    /// Wakeups by a task, by who it was; of forks, too.
    wakers: BTreeMap<Key, u64>,
}

/// What a file has between the marks.
#[derive(Debug, Default)]
struct Recorded {
    file: String,
    /// Since the file's begin.
    from_ns: u64,
    until_ns: u64,
    tasks: BTreeMap<Key, Did>,
    /// The last word of the import on each matter.
    said: Vec<String>,
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let is_long = words.iter().any(|word| word == "--tasks");
    words.retain(|word| word != "--tasks");
    let [label, files @ ..] = &*words else {
        eprintln!("usage: agreement LABEL FILE FILE... [--tasks]");
        return ExitCode::from(2);
    };
    let mut all = Vec::new();
    for file in files {
        match read(file) {
            Ok(recorded) => all.push(recorded),
            Err(why) => {
                eprintln!("agreement: {file}: {why}");
                return ExitCode::FAILURE;
            }
        }
    }
    for recorded in &all {
        eprintln!("{}", recorded.told());
    }
    let [first, others @ ..] = &*all else {
        return ExitCode::FAILURE;
    };
    for other in others {
        println!("{}", row(label, first, other));
        if is_long {
            tell_tasks(first, other);
        }
    }
    ExitCode::SUCCESS
}

/// Reads a trace: first the names, which come last, then what is between the marks.
fn read(file: &str) -> Result<Recorded, String> {
    let mut events: Vec<Event> = Vec::new();
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let imported = traces::foreign::read(opened, "agreement", Window::default(), &mut |more| {
        events.extend(more);
        ControlFlow::Continue(())
    });
    let imported = imported.map_err(|error| error.to_string())?;
    let marks = MARKS.map(|mark| {
        let is_mark = |named: &traces::foreign::Named| named.comm.to_string() == mark;
        imported.tasks.iter().position(is_mark)
    });
    let [Some(begin), Some(end)] = marks else {
        return Err(format!("it lacks a task of {MARKS:?}"));
    };
    let time_of = |found: Option<&Event>, what: &str| {
        let found = found.ok_or_else(|| format!("it does not see {what}"))?;
        Ok::<u64, String>(found.time.as_nanos())
    };
    let is_death = |event: &&Event| {
        matches!(event.what(), What::Switch { prev, state: PrevState::Dead, .. }
            if prev.index() == begin)
    };
    let is_turn = |event: &&Event| event.kind == EventKind::Switch && event.task.index() == end;
    let from_ns = time_of(events.iter().find(is_death), "the first mark's death")?;
    let until_ns = time_of(events.iter().find(is_turn), "the second mark's first turn")?;
    let mut recorded = Recorded {
        file: file.to_owned(),
        from_ns,
        until_ns,
        tasks: BTreeMap::new(),
        said: imported.findings.sentences(),
    };
    recorded.count(&imported, &events);
    Ok(recorded)
}

impl Recorded {
    fn count(&mut self, imported: &Imported, events: &[Event]) {
        let keys = keys(imported);
        let mut since = vec![0_u64; events.iter().map(|it| it.cpu.0.into()).max().unwrap_or(0) + 1];
        for event in events {
            let now = event.time.as_nanos();
            let is_inside = (self.from_ns..self.until_ns).contains(&now);
            match event.what() {
                What::Switch { prev, .. } => {
                    let cpu = usize::from(event.cpu.0);
                    let begin = since[cpu].max(self.from_ns);
                    let ran = now.min(self.until_ns).saturating_sub(begin);
                    since[cpu] = now;
                    if let (Some(key), true) = (key(&keys, prev.0.into()), ran > 0) {
                        self.did(imported, key).run_ns += ran;
                    }
                    if let (Some(key), true) = (key(&keys, event.task.0.into()), is_inside) {
                        self.did(imported, key).runs += 1;
                    }
                }
                What::Wakeup(wakeup) if is_inside => {
                    let by = key(&keys, wakeup.waker.0.into());
                    let Some(own) = key(&keys, event.task.0.into()) else {
                        continue;
                    };
                    let did = self.did(imported, own);
                    if let Some(by) = by {
                        *did.wakers.entry(by).or_default() += 1;
                    }
                    if !wakeup.new {
                        did.sleeps[cause(wakeup.cause as u8, by.is_some())] += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn did(&mut self, imported: &Imported, key: Key) -> &mut Did {
        self.tasks.entry(key).or_insert_with(|| {
            let mut of_number = imported.tasks.iter().filter(|it| it.pid == key.0);
            let named = of_number.nth(key.1).expect("it was counted");
            Did {
                name: named.comm.to_string(),
                ..Did::default()
            }
        })
    }

    fn sum(&self, of: impl Fn(&Did) -> u64) -> u64 {
        self.tasks.values().map(of).sum()
    }

    fn sleeps(&self) -> [u64; CAUSES.len()] {
        std::array::from_fn(|cause| self.sum(|did| did.sleeps[cause]))
    }

    /// CPU time of the tasks whose names differ in numbers only.
    fn families(&self) -> BTreeMap<String, u64> {
        let mut families = BTreeMap::new();
        for did in self.tasks.values() {
            let name = did.name.trim_end_matches(|c: char| c.is_ascii_digit());
            *families.entry(name.to_owned()).or_default() += did.run_ns;
        }
        families
    }

    fn told(&self) -> String {
        let sleeps = CAUSES.iter().zip(self.sleeps());
        let sleeps: Vec<String> = sleeps.map(|(of, many)| format!("{many} {of}")).collect();
        let mut families: Vec<(String, u64)> = self.families().into_iter().collect();
        families.sort_by_key(|(_, run)| std::cmp::Reverse(*run));
        let most = families.iter().take(6);
        let most: Vec<String> = most
            .map(|(name, run)| format!("{name} {:.1} ms", *run as f64 / 1e6))
            .collect();
        format!(
            "{}: --window {}us..{}us: {} tasks, {:.1} ms of CPU time, {} runs, sleeps: {}\n  \
             {}\n  {}",
            self.file,
            self.from_ns / 1000,
            self.until_ns / 1000,
            self.tasks.len(),
            self.sum(|did| did.run_ns) as f64 / 1e6,
            self.sum(|did| did.runs),
            sleeps.join(", "),
            most.join(", "),
            self.said.join("\n  ")
        )
    }
}

/// By task number: the thread's number, and how many had it before.
fn keys(imported: &Imported) -> Vec<Key> {
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let key = |named: &traces::foreign::Named| {
        let before = seen.entry(named.pid).or_default();
        *before += 1;
        (named.pid, *before - 1)
    };
    imported.tasks.iter().map(key).collect()
}

fn key(keys: &[Key], task: u64) -> Option<Key> {
    let is_task = task != u64::from(TaskId::NONE.0);
    let index = usize::try_from(task).ok().filter(|_| is_task)?;
    keys.get(index).copied()
}

fn cause(detail: u8, has_waker: bool) -> usize {
    let is = |cause: WakeCause| detail == cause as u8;
    match () {
        () if is(WakeCause::Clock) => 1,
        () if is(WakeCause::Device) => 2,
        () if is(WakeCause::Outside) => 3,
        () if has_waker => 0,
        () => 4,
    }
}

/// The sum of what both have.
fn in_both<K: Ord>(a: &BTreeMap<K, u64>, b: &BTreeMap<K, u64>) -> u64 {
    let both = a
        .iter()
        .filter_map(|(it, many)| Some((*b.get(it)?).min(*many)));
    both.sum()
}

/// The larger sum, at least 1.
fn of_most<K: Ord>(a: &BTreeMap<K, u64>, b: &BTreeMap<K, u64>) -> u64 {
    a.values().sum::<u64>().max(b.values().sum()).max(1)
}

/// In per cent of the larger sum: by how much numbers differ, one by one.
fn apart<K: Ord>(a: &BTreeMap<K, u64>, b: &BTreeMap<K, u64>) -> f64 {
    let names: BTreeSet<&K> = a.keys().chain(b.keys()).collect();
    let of = |map: &BTreeMap<K, u64>, name: &K| map.get(name).copied().unwrap_or(0);
    let apart: u64 = names
        .into_iter()
        .map(|it| of(a, it).abs_diff(of(b, it)))
        .sum();
    100.0 * apart as f64 / of_most(a, b) as f64
}

/// A line of the table.
fn row(label: &str, first: &Recorded, other: &Recorded) -> String {
    let both = first.tasks.keys().filter(|it| other.tasks.contains_key(it));
    let both = both.count();
    let alone = first.tasks.len() + other.tasks.len() - 2 * both;
    let per_task = |of: &dyn Fn(&Did) -> u64| {
        let by = |all: &Recorded| -> BTreeMap<Key, u64> {
            all.tasks.iter().map(|(key, did)| (*key, of(did))).collect()
        };
        apart(&by(first), &by(other))
    };
    let runs = per_task(&|did| did.runs);
    let cpu = per_task(&|did| did.run_ns);
    let family = apart(&first.families(), &other.families());
    let wakers = |all: &Recorded| -> BTreeMap<(Key, Key), u64> {
        let of = |(key, did): (&Key, &Did)| {
            let key = *key;
            let each = did.wakers.iter().map(move |(by, many)| ((key, *by), *many));
            each.collect::<Vec<_>>()
        };
        all.tasks.iter().flat_map(of).collect()
    };
    let (a, b) = (wakers(first), wakers(other));
    let (same, of) = (in_both(&a, &b), of_most(&a, &b));
    let reasons = |all: &Recorded| -> BTreeMap<(Key, usize), u64> {
        let of = |(key, did): (&Key, &Did)| {
            let key = *key;
            let each = did.sleeps.into_iter().enumerate();
            each.map(move |(cause, many)| ((key, cause), many))
                .collect::<Vec<_>>()
        };
        all.tasks.iter().flat_map(of).collect()
    };
    let (a_sleeps, b_sleeps) = (reasons(first), reasons(other));
    let sleeps: u64 = a_sleeps.values().sum();
    let run_ms = first.sum(|did| did.run_ns) as f64 / 1e6;
    let all_runs = first.sum(|did| did.runs);
    let same_reason = in_both(&a_sleeps, &b_sleeps) as f64;
    let other_reason = 100.0 * (1.0 - same_reason / of_most(&a_sleeps, &b_sleeps) as f64);
    format!(
        "| {label} | {both} | {alone} | {run_ms:.1} | {cpu:.2} % | {family:.2} % | {all_runs} \
         | {runs:.2} % | {same}/{of} | {sleeps} | {other_reason:.2} % |"
    )
}

/// Each task that two files have differently.
fn tell_tasks(first: &Recorded, other: &Recorded) {
    let keys: BTreeSet<Key> = first
        .tasks
        .keys()
        .chain(other.tasks.keys())
        .copied()
        .collect();
    let none = Did::default();
    for key in keys {
        let (a, b) = (first.tasks.get(&key), other.tasks.get(&key));
        let (a, b) = (a.unwrap_or(&none), b.unwrap_or(&none));
        let is_same = a.runs == b.runs && a.sleeps == b.sleeps && a.wakers == b.wakers;
        let far = a.run_ns.abs_diff(b.run_ns) > 200_000;
        if is_same && !far {
            continue;
        }
        eprintln!(
            "  {} {:?}/{:?}: run {:.3}/{:.3} ms, runs {}/{}, sleeps {:?}/{:?}, wakers {:?}/{:?}",
            key.0,
            a.name,
            b.name,
            a.run_ns as f64 / 1e6,
            b.run_ns as f64 / 1e6,
            a.runs,
            b.runs,
            a.sleeps,
            b.sleeps,
            a.wakers,
            b.wakers
        );
    }
}
