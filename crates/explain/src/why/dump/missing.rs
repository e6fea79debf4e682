//! What a dump does not tell.

use super::read::{Dump, Task};

/// CPUs that are named one by one.
const NAMED: usize = 8;

/// What no dump of a moment has.
pub fn of_moment(dump: &Dump, victim: Option<&Task>) -> Vec<String> {
    let mut missing = vec![
        "which line put the task there: not in a dump".to_owned(),
        "who looked at the queue, and when: not in a dump".to_owned(),
        "which idle CPUs were kicked, and since when they idle: not in a dump".to_owned(),
    ];
    let unlisted = victim.map(|task| unlisted(dump, task)).unwrap_or_default();
    if !unlisted.is_empty() && !dump.is_cut {
        missing.push(format!(
            "what CPU {} does: the task may use it, and a dump leaves out CPUs that idle without a \
             task, or are offline",
            numbers(&unlisted)
        ));
    }
    missing
}

/// What is not there because the text is a part.
pub fn cut(dump: &Dump) -> Option<String> {
    let words = if dump.is_log {
        "who had the CPUs, and where tasks waited: this is a log without a dump. The scheduler's \
         program prints the dump below a line `DEBUG DUMP`"
    } else if dump.is_cut {
        "the dump was cut: tasks and CPUs behind the cut are missing. A larger `exit_dump_len` in \
         the policy's table keeps more"
    } else if dump.tasks.is_empty() {
        "who waits, and where: no line of the text shows a task"
    } else {
        return None;
    };
    Some(words.to_owned())
}

/// CPUs that `task` may use and that are not in the dump.
fn unlisted(dump: &Dump, task: &Task) -> Vec<u16> {
    let all = task.allowed().unwrap_or_default();
    all.into_iter()
        .filter(|cpu| dump.cpu(*cpu).is_none())
        .collect()
}

/// The first of these CPUs, and how many more there are.
pub fn numbers(cpus: &[u16]) -> String {
    let first: Vec<_> = cpus.iter().take(NAMED).map(ToString::to_string).collect();
    match cpus.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
