//! The three numbers that the kernel keeps for each task.

use crate::Advice;

/// Time on a CPU, time waiting for one, and how often the task got one. The times are in the unit
/// of the kernel's version: see `stats::schedstat::Layout::time_unit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounters {
    /// Time on a CPU.
    pub cpu_time: u64,
    /// Time runnable without a CPU.
    pub run_delay: u64,
    /// How often it was given a CPU.
    pub pcnt: u64,
}

/// Why a task's numbers could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskCountersError {
    /// `/proc/PID/stat` has no command in parentheses.
    #[error("not a line of /proc/PID/stat: it has no command in parentheses")]
    NotStat,
    /// There are fewer fields than expected.
    #[error("{file} has {found} fields, and {expected} are expected")]
    Fields {
        /// The file.
        file: &'static str,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: &'static str,
    },
    /// A field is no number.
    #[error("`{0}` is not a counter")]
    NotANumber(String),
}

impl Advice for TaskCountersError {
    fn advice(&self) -> Option<String> {
        None
    }
}

impl TaskCounters {
    /// From a line of `/proc/PID/stat` of a kernel with one of the patches for versions 4 to 9:
    /// fields 42 to 44, counted from 1. On later kernels these fields mean other things.
    ///
    /// # Errors
    /// When the line has no such fields.
    pub fn from_stat(line: &str) -> Result<Self, TaskCountersError> {
        // A command may hold blanks and parentheses; the last one ends it.
        let command_end = line.rfind(')').ok_or(TaskCountersError::NotStat)?;
        let fields: Vec<&str> = line[command_end + 1..].split_ascii_whitespace().collect();
        // What follows the command begins with field 3.
        let Some(&[cpu_time, run_delay, pcnt]) = fields.get(39..42) else {
            return Err(TaskCountersError::Fields {
                file: "/proc/PID/stat",
                found: fields.len() + 2,
                expected: "at least 44",
            });
        };
        Self::from_words(cpu_time, run_delay, pcnt)
    }

    /// From `/proc/PID/schedstat`, which kernels have since version 10.
    ///
    /// # Errors
    /// When there are not exactly three numbers.
    pub fn from_schedstat(line: &str) -> Result<Self, TaskCountersError> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[cpu_time, run_delay, pcnt] = fields.as_slice() else {
            return Err(TaskCountersError::Fields {
                file: "/proc/PID/schedstat",
                found: fields.len(),
                expected: "3",
            });
        };
        Self::from_words(cpu_time, run_delay, pcnt)
    }

    fn from_words(cpu_time: &str, run_delay: &str, pcnt: &str) -> Result<Self, TaskCountersError> {
        let number = |word: &str| {
            word.parse()
                .map_err(|_| TaskCountersError::NotANumber(word.to_owned()))
        };
        Ok(Self {
            cpu_time: number(cpu_time)?,
            run_delay: number(run_delay)?,
            pcnt: number(pcnt)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(cpu_time: u64, run_delay: u64, pcnt: u64) -> TaskCounters {
        TaskCounters {
            cpu_time,
            run_delay,
            pcnt,
        }
    }

    #[test]
    fn a_command_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let between: Vec<String> = (4..=41).map(|field| field.to_string()).collect();
        let line = format!("77 (a) b (c) S {} 120 340 9\n", between.join(" "));
        assert_eq!(TaskCounters::from_stat(&line), Ok(counters(120, 340, 9)));
    }

    #[test]
    fn a_stat_line_without_the_patch_is_refused() {
        let between: Vec<String> = (4..=41).map(|field| field.to_string()).collect();
        let line = format!("77 (cc1) R {}", between.join(" "));
        let error = TaskCounters::from_stat(&line).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/proc/PID/stat has 41 fields, and at least 44 are expected"
        );
        assert_eq!(
            TaskCounters::from_stat("1 2 3"),
            Err(TaskCountersError::NotStat)
        );
    }

    #[test]
    fn a_task_of_today_has_three_numbers() {
        let read = TaskCounters::from_schedstat("1500000 300 7\n");
        assert_eq!(read, Ok(counters(1_500_000, 300, 7)));
        assert!(TaskCounters::from_schedstat("1 2\n").is_err());
        assert!(TaskCounters::from_schedstat("1 2 -3\n").is_err());
    }
}
