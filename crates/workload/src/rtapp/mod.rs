//! Imports rt-app's configurations, JSON in, the text of a workload file out, and exports to them.
//!
//! Source of what rt-app does: `src/rt-app.c` and `src/rt-app_parse_config.c` of the project
//! scheduler-tools/rt-app, as of 2026. docs/workload.md lists what an import loses.

use std::fmt::Write as _;

use json::{Json, Value};
use model::file::Source;
use model::file::{FileError, Problem};

mod events;
mod export;
mod json;
#[cfg(test)]
mod tests;

pub use export::{Exported, export};

/// A configuration as a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The text of a workload file.
    pub toml: String,
    /// Parts of the configuration without a counterpart, each with its line; also in the text.
    pub lost: Vec<String>,
}

/// What gives a deadline task its budget.
const BUDGET: [&str; 3] = ["dl-runtime", "dl-deadline", "dl-period"];
/// Priority of a real-time task that gives none (`DEFAULT_THREAD_PRIORITY`).
const RT_PRIORITY: i64 = 10;

/// Turns the text of an rt-app configuration into a workload file. `file` is what messages call
/// it, and without its folder and ending the workload's name.
///
/// # Errors
/// If it is no such configuration: the first mistake, with its place.
pub fn import(text: &str, file: &str) -> Result<Imported, FileError> {
    let source = Source { text, file };
    let root = Json::parse(&source)?;
    let mut importer = Importer {
        source: &source,
        names: Vec::new(),
        cgroups: Vec::new(),
        mutexes: Vec::new(),
        conditions: Vec::new(),
        semaphores: Vec::new(),
        barriers: Vec::new(),
        deadlines: Vec::new(),
        lost: Vec::new(),
    };
    let toml = importer.workload(&root)?;
    Ok(Imported {
        toml,
        lost: importer.lost,
    })
}

struct Importer<'a> {
    source: &'a Source<'a>,
    /// Names of tasks: rt-app's, and the workload's.
    names: Vec<(String, String)>,
    /// Paths of cgroups, a parent before its children.
    cgroups: Vec<String>,
    mutexes: Vec<String>,
    conditions: Vec<String>,
    semaphores: Vec<String>,
    /// Names, and how many tasks come to each.
    barriers: Vec<(String, i64)>,
    /// Names of deadlines, each with its timer and period in microseconds.
    deadlines: Vec<(String, (String, i64))>,
    lost: Vec<String>,
}

/// Limits on the speed of a task's CPU.
const CLAMPS: [&str; 2] = ["util_min", "util_max"];

/// What a task inherits where a phase says nothing.
struct Defaults<'j> {
    cpus: Option<&'j Json>,
    policy: String,
    /// Whether a phase has changed the CPUs.
    moved: bool,
}

impl Importer<'_> {
    fn fail<T>(&self, at: &Json, expected: &str) -> Result<T, FileError> {
        let problem = Problem::unexpected(at.describe(), expected);
        Err(self.source.error(at.at, problem))
    }

    fn lose(&mut self, at: &Json, what: &str) {
        let line = self.source.line(at.at);
        self.lost.push(format!("line {line}: {what}"));
    }

    fn members<'j>(&self, json: &'j Json, what: &str) -> Result<&'j [(String, Json)], FileError> {
        match &json.value {
            Value::Object(members) => Ok(members),
            _ => self.fail(json, what),
        }
    }

    /// A whole number.
    fn integer(&self, json: &Json) -> Result<i64, FileError> {
        const MOST: f64 = 9e15;
        match json.value {
            Value::Number(number) if number.fract() == 0.0 && number.abs() < MOST => {
                Ok(number as i64)
            }
            _ => self.fail(json, "a whole number"),
        }
    }

    fn integer_of(&self, json: &Json, name: &str, usual: i64) -> Result<i64, FileError> {
        json.get(name)
            .map_or(Ok(usual), |value| self.integer(value))
    }

    /// A span in microseconds, at least `least`.
    fn micros(&self, json: &Json, least: i64) -> Result<i64, FileError> {
        let micros = self.integer(json)?;
        if micros < least {
            return self.fail(json, &format!("microseconds, {least} or more"));
        }
        Ok(micros)
    }

    fn text<'j>(&self, json: &'j Json) -> Result<&'j str, FileError> {
        match &json.value {
            Value::Text(text) => Ok(text),
            _ => self.fail(json, "a string"),
        }
    }

    fn workload(&mut self, root: &Json) -> Result<String, FileError> {
        let Some(tasks) = root.get("tasks") else {
            return self.fail(root, "an rt-app configuration with `tasks`");
        };
        let tasks = self.members(tasks, "an object with one member a task")?;
        if tasks.is_empty() {
            return self.fail(root, "at least one task in `tasks`");
        }
        for (name, _) in tasks {
            let own = self.identifier(name);
            self.names.push((name.clone(), own));
        }
        let global = root.get("global");
        let policy = match global.and_then(|global| global.get("default_policy")) {
            Some(policy) => self.text(policy)?,
            None => "SCHED_OTHER",
        };
        let mut groups = String::new();
        for (number, (_, task)) in tasks.iter().enumerate() {
            groups += &self.task(number, task, policy)?;
        }
        let mut stop = String::new();
        if let Some(duration) = global.and_then(|global| global.get("duration")) {
            let seconds = self.integer(duration)?;
            if seconds >= 0 {
                stop = format!("stop = \"duration:{seconds}s\"\n");
            }
        }
        let name = self.source.file.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".json").unwrap_or(name);
        let mut toml = format!("# Imported from rt-app's {name}.json.\n");
        for lost in &self.lost {
            let _ = writeln!(toml, "# Lost: {lost}");
        }
        let quoted = name.replace(['\\', '"'], "");
        let _ = writeln!(toml, "\n[workload]\nname = \"{quoted}\"\n{stop}");
        toml += &self.tables();
        Ok(toml + &groups)
    }

    /// The tables of what tasks share.
    fn tables(&self) -> String {
        let mut toml = String::new();
        for path in &self.cgroups {
            let name = cgroup_name(path);
            let _ = writeln!(toml, "[cgroup.{name}]\npath = \"{path}\"\n");
        }
        for name in &self.mutexes {
            let _ = writeln!(toml, "[lock.{name}]\nhandoff = \"barge\"\n");
        }
        for name in &self.conditions {
            let _ = writeln!(toml, "[cond.{name}]\n");
        }
        for name in &self.semaphores {
            let _ = writeln!(toml, "[sem.{name}]\n");
        }
        for (name, parties) in &self.barriers {
            let _ = writeln!(toml, "[barrier.{name}]\nparties = {parties}\n");
        }
        for (name, (_, period)) in &self.deadlines {
            let _ = writeln!(toml, "[deadline.{name}]\nperiod = \"{period}us\"\n");
        }
        toml
    }

    /// A name of the workload's language that no task has yet.
    fn identifier(&self, name: &str) -> String {
        let mut own = word(name);
        if super::parser::KEYWORDS.contains(&own.as_str()) {
            own += "_";
        }
        while self.names.iter().any(|(_, taken)| *taken == own) {
            own += "_";
        }
        own
    }

    fn task(&mut self, number: usize, task: &Json, policy: &str) -> Result<String, FileError> {
        let (theirs, own) = self.names[number].clone();
        self.members(task, "an object with the task's events")?;
        if let Some(old) = task.get("lock_order") {
            return self.fail(
                old,
                "the grammar of rt-app 1.0 and later, which has no `lock_order`",
            );
        }
        let policy = match task.get("policy") {
            Some(policy) => self.text(policy)?.to_owned(),
            None => policy.to_owned(),
        };
        let instances = self.integer_of(task, "instance", 1)?;
        if !(0..=100_000).contains(&instances) {
            return self.fail(task, "an `instance` of 0 to 100000");
        }
        let mut head = format!("[task.{own}]\ncount = {instances}\n");
        head += &self.class(task, &policy)?;
        head += &self.clamps(task)?;
        if let Some(group) = task.get("taskgroup")
            && let Some(path) = self.cgroup(group)?
        {
            let _ = writeln!(head, "cgroup = \"{path}\"");
        }
        if let Some(cpus) = task.get("cpus") {
            let _ = writeln!(head, "cpus = \"{}\"", self.cpus(cpus)?);
        }
        let delay = task
            .get("delay")
            .map_or(Ok(0), |delay| self.micros(delay, 0))?;
        if delay > 0 {
            let _ = writeln!(head, "start = \"{delay}us\"");
        }
        self.note_unknown(task, policy == "SCHED_DEADLINE");
        let mut defaults = Defaults {
            cpus: task.get("cpus"),
            policy,
            moved: false,
        };
        let body = match task.get("phases") {
            Some(phases) => {
                let mut body = Vec::new();
                for (_, phase) in self.members(phases, "an object with one member a phase")? {
                    let changes = self.changes(phase, &mut defaults)?;
                    self.note_unknown(phase, defaults.policy == "SCHED_DEADLINE");
                    self.lose_clamps(phase);
                    let events = self.events(phase, &theirs, instances)?;
                    let count = self.integer_of(phase, "loop", 1)?;
                    body.extend(changes);
                    body.push(repeat(count, &events));
                }
                // Where phases change CPUs, the next round begins with the task's own again.
                repeat(self.integer_of(task, "loop", -1)?, &body)
            }
            None => {
                let events = self.events(task, &theirs, instances)?;
                repeat(self.integer_of(task, "loop", -1)?, &events)
            }
        };
        let _ = writeln!(head, "do = \"\"\"{body}\"\"\"\n");
        Ok(head)
    }

    /// Nice value and policy at birth.
    fn class(&mut self, task: &Json, policy: &str) -> Result<String, FileError> {
        let at = task.get("policy").unwrap_or(task);
        let priority = task.get("priority");
        let number = priority
            .map(|priority| self.integer(priority))
            .transpose()?;
        let mut text = String::new();
        match policy {
            "SCHED_OTHER" | "SCHED_BATCH" | "SCHED_IDLE" => {
                if let Some(nice) = number {
                    if !(-20..=19).contains(&nice) {
                        return self.fail(priority.unwrap_or(task), "a nice value, -20 to 19");
                    }
                    let _ = writeln!(text, "nice = {nice}");
                }
                let own = ["normal", "batch", "idle"];
                let theirs = ["SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE"];
                let at = theirs.iter().position(|name| *name == policy).unwrap_or(0);
                let _ = writeln!(text, "policy = \"{}\"", own[at]);
            }
            "SCHED_FIFO" | "SCHED_RR" => {
                let number = number.unwrap_or(RT_PRIORITY);
                if !(1..=99).contains(&number) {
                    return self.fail(priority.unwrap_or(task), "a priority, 1 to 99");
                }
                let own = if policy == "SCHED_RR" { "rr" } else { "fifo" };
                let _ = writeln!(text, "policy = \"{own}:{number}\"");
            }
            "SCHED_DEADLINE" => {
                let [runtime, deadline, period] = self.budget(task)?;
                let _ = writeln!(
                    text,
                    "policy = \"deadline:{runtime}us/{deadline}us/{period}us\""
                );
            }
            _ => {
                let known = "SCHED_OTHER, _BATCH, _IDLE, _FIFO, _RR or _DEADLINE";
                return self.fail(at, known);
            }
        }
        Ok(text)
    }

    /// Limits on the speed of its CPU; -1 is none.
    fn clamps(&self, task: &Json) -> Result<String, FileError> {
        let mut text = String::new();
        for name in CLAMPS {
            let Some(value) = task.get(name) else {
                continue;
            };
            let clamp = self.integer(value)?;
            if !(-1..=1024).contains(&clamp) {
                return self.fail(value, "a utilisation, 0 to 1024, or -1");
            }
            if clamp >= 0 {
                let _ = writeln!(text, "{name} = {clamp}");
            }
        }
        Ok(text)
    }

    fn lose_clamps(&mut self, phase: &Json) {
        for name in CLAMPS {
            if let Some(value) = phase.get(name) {
                self.lose(value, &format!("`{name}`: utilisation clamps of a phase"));
            }
        }
    }

    /// What a phase changes about its task, as operations.
    fn changes<'j>(
        &mut self,
        phase: &'j Json,
        defaults: &mut Defaults<'j>,
    ) -> Result<Vec<String>, FileError> {
        let mut changes = Vec::new();
        match (phase.get("cpus"), defaults.moved) {
            (Some(cpus), _) => {
                changes.push(format!("setaffinity(self, {{{}}})", self.cpus(cpus)?));
                defaults.moved = true;
            }
            (None, true) => {
                changes.push(match defaults.cpus {
                    Some(cpus) => format!("setaffinity(self, {{{}}})", self.cpus(cpus)?),
                    None => "setaffinity(self, all)".to_owned(),
                });
                defaults.moved = false;
            }
            (None, false) => {}
        }
        if let Some(group) = phase.get("taskgroup") {
            let name = self.cgroup(group)?.map(|path| cgroup_name(&path));
            changes.extend(name.map(|name| format!("cgroup_move(self, {name})")));
        }
        let policy = phase.get("policy");
        let is_deadline = defaults.policy == "SCHED_DEADLINE";
        let budget = is_deadline && BUDGET.iter().any(|key| phase.get(key).is_some());
        if policy.is_none() && phase.get("priority").is_none() && !budget {
            return Ok(changes);
        }
        if let Some(policy) = policy {
            defaults.policy = self.text(policy)?.to_owned();
        }
        for line in self.class(phase, &defaults.policy.clone())?.lines() {
            let (key, value) = line.split_once(" = ").expect("class() writes such lines");
            let operation = if key == "nice" {
                "setnice"
            } else {
                "setpolicy"
            };
            changes.push(format!("{operation}(self, {})", value.trim_matches('"')));
        }
        Ok(changes)
    }

    /// Runtime, deadline and period of a deadline task, in microseconds: rt-app takes one that is
    /// not given for the next shorter one, and in a task also looks for the old names.
    fn budget(&self, task: &Json) -> Result<[i64; 3], FileError> {
        let value = |new: &str, old: &str, usual: i64| -> Result<i64, FileError> {
            let found = task.get(new).or_else(|| task.get(old));
            found.map_or(Ok(usual), |value| self.integer(value))
        };
        let runtime = value("dl-runtime", "runtime", 0)?;
        let period = value("dl-period", "period", runtime)?;
        let deadline = value("dl-deadline", "deadline", period)?;
        let is_ordered = 2 <= runtime && runtime <= deadline && deadline <= period;
        if !is_ordered || !(100..=1 << 22).contains(&period) {
            let expected = "a deadline task that the kernel accepts: 2 <= dl-runtime <= \
                            dl-deadline <= dl-period, and a dl-period of 100 to 4194304";
            return self.fail(task, expected);
        }
        Ok([runtime, deadline, period])
    }

    /// The path of a task group, which is declared if it is new; `None` for the empty one.
    fn cgroup(&mut self, group: &Json) -> Result<Option<String>, FileError> {
        let path = self.text(group)?;
        if path.is_empty() {
            return Ok(None);
        }
        if path == "/" {
            return Ok(Some(path.to_owned()));
        }
        let path = path.trim_end_matches('/');
        let parts = path.strip_prefix('/').map(|path| path.split('/'));
        let expected = "a task group as \"/a/b\"";
        let Some(parts) = parts else {
            return self.fail(group, expected);
        };
        let mut here = String::new();
        for part in parts {
            if ["", ".", ".."].contains(&part) || part.contains(['"', '\\']) {
                return self.fail(group, expected);
            }
            here = format!("{here}/{part}");
            if !self.cgroups.contains(&here) {
                self.cgroups.push(here.clone());
            }
        }
        Ok(Some(here))
    }

    fn cpus(&self, cpus: &Json) -> Result<String, FileError> {
        let Value::List(list) = &cpus.value else {
            return self.fail(cpus, "a list of CPUs");
        };
        let mut numbers = Vec::new();
        for cpu in list {
            let number = self.integer(cpu)?;
            if !(0..1024).contains(&number) {
                return self.fail(cpu, "a CPU, 0 to 1023");
            }
            numbers.push(number.to_string());
        }
        if numbers.is_empty() {
            return self.fail(cpus, "at least one CPU");
        }
        Ok(numbers.join(","))
    }

    /// Notes properties that have no counterpart.
    fn note_unknown(&mut self, object: &Json, is_deadline: bool) {
        const LOST: [(&str, &str); 1] = [("nodes_membind", "memory is on no node")];
        const KEPT: [&str; 10] = [
            "instance",
            "loop",
            "policy",
            "priority",
            "cpus",
            "delay",
            "phases",
            "taskgroup",
            "util_min",
            "util_max",
        ];
        let Value::Object(members) = &object.value else {
            return;
        };
        for (name, value) in members.clone() {
            if BUDGET.contains(&name.as_str()) {
                if !is_deadline {
                    self.lose(&value, &format!("`{name}`: a slice of its own"));
                }
                continue;
            }
            let known = LOST.iter().find(|(own, _)| *own == name);
            if let Some((_, what)) = known {
                self.lose(&value, &format!("`{name}`: {what}"));
            } else if !KEPT.contains(&name.as_str()) && !events::is_event(&name) {
                self.lose(
                    &value,
                    &format!("`{name}` is no event that rt-app documents"),
                );
            }
        }
    }
}

/// How the table of the cgroup at a path is called: no two paths are called alike.
fn cgroup_name(path: &str) -> String {
    if path == "/" {
        return "root".to_owned();
    }
    let mut name = String::from("g");
    for c in path.chars() {
        match c {
            '/' => name.push('_'),
            c if c.is_ascii_alphanumeric() => name.push(c),
            c => {
                let _ = write!(name, "_x{:x}_", u32::from(c));
            }
        }
    }
    name
}

/// A word of the workload's language: letters, digits and `_`, a letter first.
fn word(name: &str) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let word: String = name.chars().map(part).collect();
    if word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        word
    } else {
        format!("t{word}")
    }
}

/// Operations, repeated; below zero for ever.
fn repeat(count: i64, operations: &[String]) -> String {
    let body = operations.join(",\n    ");
    match count {
        ..=-1 => format!("loop(inf)[\n    {body}\n]"),
        1 => body,
        _ => format!("loop({count})[\n    {body}\n]"),
    }
}
