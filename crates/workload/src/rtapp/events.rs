//! What the events of a phase become.

use super::json::Json;
use super::{Importer, word};
use model::file::FileError;

/// Names that an event's name may begin with, in rt-app's order: the first that fits counts.
const EVENTS: [&str; 20] = [
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer",
    "suspend", "resume", "memrun", "mem", "iorun", "yield", "barrier", "fork", "sem_post",
    "sem_wait",
];

/// Which event `name` is.
fn kind(name: &str) -> Option<&'static str> {
    EVENTS.into_iter().find(|event| name.starts_with(event))
}

/// Whether `name` names an event.
pub(super) fn is_event(name: &str) -> bool {
    kind(name).is_some()
}

impl Importer<'_> {
    /// The operations of a phase of the task that rt-app calls `task`.
    pub(super) fn events(
        &mut self,
        phase: &Json,
        task: &str,
        instances: i64,
    ) -> Result<Vec<String>, FileError> {
        let members = self.members(phase, "an object with events")?.to_vec();
        let mut operations = Vec::new();
        for (name, value) in &members {
            let Some(kind) = kind(name) else { continue };
            let operation = self.event(kind, value, (task, instances))?;
            operations.extend(operation);
        }
        if operations.is_empty() && !members.iter().any(|(name, _)| is_event(name)) {
            return self.fail(phase, "at least one event");
        }
        Ok(operations)
    }

    fn event(
        &mut self,
        kind: &str,
        value: &Json,
        (task, instances): (&str, i64),
    ) -> Result<Option<String>, FileError> {
        Ok(Some(match kind {
            "run" => format!("run({}us)", self.micros(value, 0)?),
            "runtime" => {
                self.lose(
                    value,
                    "`runtime` counts elapsed time; imported as CPU time, `run`",
                );
                format!("run({}us)", self.micros(value, 0)?)
            }
            "sleep" => format!("sleep({}us)", self.micros(value, 0)?),
            "timer" => self.timer(value)?,
            "lock" | "unlock" => {
                let mutex = self.mutex(value, "mutex_")?;
                format!("{kind}({mutex})")
            }
            "wait" | "sync" => self.wait(kind, value)?,
            "signal" | "broad" => {
                let condition = self.text(value)?.to_owned();
                let condition = self.condition(&condition);
                let operation = if kind == "signal" {
                    "signal"
                } else {
                    "broadcast"
                };
                format!("{operation}({condition})")
            }
            // Both go by a condition variable and a mutex of one name. A resume that nobody waits
            // for is forgotten.
            "suspend" | "resume" => {
                let name = match &value.value {
                    super::Value::Text(name) if !name.is_empty() => name.clone(),
                    _ if kind == "suspend" => task.to_owned(),
                    _ => return self.fail(value, "the name of a task"),
                };
                let mutex = remember(&mut self.mutexes, format!("suspend_{}", word(&name)));
                let condition = remember(&mut self.conditions, format!("resume_{}", word(&name)));
                let inner = match kind {
                    "suspend" => format!("wait({condition}, {mutex})"),
                    _ => format!("broadcast({condition})"),
                };
                format!("lock({mutex}), {inner}, unlock({mutex})")
            }
            "barrier" => {
                let name = format!("barrier_{}", word(self.text(value)?));
                match self.barriers.iter_mut().find(|(own, _)| *own == name) {
                    Some((_, parties)) => *parties += instances,
                    None => self.barriers.push((name.clone(), instances)),
                }
                format!("barrier({name})")
            }
            "sem_wait" | "sem_post" => {
                let name = format!("sem_{}", word(self.text(value)?));
                let name = remember(&mut self.semaphores, name);
                format!("{kind}({name})")
            }
            "yield" => "yield".to_owned(),
            "fork" => {
                let name = self.text(value)?;
                let known = self.names.iter().find(|(theirs, _)| theirs == name);
                match known {
                    Some((_, own)) => format!("fork({own})"),
                    None => return self.fail(value, "the name of a task in `tasks`"),
                }
            }
            _ => {
                let what = format!("`{kind}`: its time depends on the machine's memory or device");
                self.lose(value, &what);
                return Ok(None);
            }
        }))
    }

    /// A timer of the task's own. rt-app shares one between tasks unless its name begins with
    /// `unique`.
    fn timer(&mut self, value: &Json) -> Result<String, FileError> {
        let name = match value.get("ref") {
            Some(name) => self.text(name)?.to_owned(),
            None => "unknown".to_owned(),
        };
        let Some(period) = value.get("period") else {
            return self.fail(value, "a timer with a `period`");
        };
        let period = self.micros(period, 1)?;
        let moves = match value.get("mode") {
            Some(mode) => !self.text(mode)?.starts_with("absolute"),
            None => true,
        };
        if !name.starts_with("unique") {
            let what = format!("timer `{name}`: every task has a grid of its own");
            if !self.lost.iter().any(|lost| lost.ends_with(&what)) {
                self.lose(value, &what);
            }
        }
        let moves = if moves { ", move" } else { "" };
        let name = word(&name);
        let deadline = self.deadline(&name, period);
        Ok(format!(
            "timer({period}us, start{moves}, as({name}), deadline({deadline}))"
        ))
    }

    /// The deadline of a timer's period: rt-app's slack is below zero where it is missed.
    fn deadline(&mut self, timer: &str, period: i64) -> String {
        let of_timer = (timer.to_owned(), period);
        if let Some((name, _)) = self.deadlines.iter().find(|(_, own)| *own == of_timer) {
            return name.clone();
        }
        let is_taken = |name: &str| self.deadlines.iter().any(|(own, _)| own == name);
        let mut name = timer.to_owned();
        if super::super::parser::KEYWORDS.contains(&name.as_str()) || is_taken(&name) {
            name += &format!("_{period}us");
        }
        while is_taken(&name) {
            name += "_";
        }
        self.deadlines.push((name.clone(), of_timer));
        name
    }

    fn wait(&mut self, kind: &str, value: &Json) -> Result<String, FileError> {
        let (Some(condition), Some(mutex)) = (value.get("ref"), value.get("mutex")) else {
            return self.fail(value, "an object with `ref` and `mutex`");
        };
        let condition = self.text(condition)?.to_owned();
        let condition = self.condition(&condition);
        let mutex = self.mutex(mutex, "mutex_")?;
        Ok(match kind {
            "sync" => format!("signal({condition}), wait({condition}, {mutex})"),
            _ => format!("wait({condition}, {mutex})"),
        })
    }

    fn mutex(&mut self, value: &Json, prefix: &str) -> Result<String, FileError> {
        let name = format!("{prefix}{}", word(self.text(value)?));
        Ok(remember(&mut self.mutexes, name))
    }

    fn condition(&mut self, name: &str) -> String {
        remember(&mut self.conditions, format!("cond_{}", word(name)))
    }
}

/// Adds `name` if it is new.
fn remember(names: &mut Vec<String>, name: String) -> String {
    if !names.contains(&name) {
        names.push(name.clone());
    }
    name
}
