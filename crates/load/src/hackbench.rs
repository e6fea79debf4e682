//! hackbench, of the package rt-tests: groups of 20 senders and 20 receivers.

use std::process::{Command, Stdio};

use super::processes;
use super::{Error, LoadOutcome, count};

/// Senders of a group, and receivers, each with a socket of its own (hackbench of rt-tests 2.4).
const SIDE: u64 = 20;

/// A run of hackbench.
#[derive(Clone, Debug)]
pub struct Hackbench {
    /// Groups, at least 1.
    pub groups: u32,
    /// Messages of each sender to each receiver of its group, at least 1.
    pub messages: u32,
    /// Pipes instead of sockets.
    pub pipes: bool,
    /// Threads instead of processes.
    pub threads: bool,
}

impl Hackbench {
    /// Runs it.
    ///
    /// # Errors
    /// When it is not there, fails, or does not say its time.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.groups == 0 || self.messages == 0 {
            let wrong = "hackbench has at least one group and one message";
            return Err(Error::Size(wrong.to_owned()));
        }
        let mut command = Command::new("hackbench");
        command.args([
            "-g",
            &self.groups.to_string(),
            "-l",
            &self.messages.to_string(),
        ]);
        command.args(self.pipes.then_some("-p"));
        command.args(self.threads.then_some("-T"));
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let (usage, said) = processes::output("hackbench", "rt-tests", &mut command)?;
        let time = time(&said).ok_or_else(|| Error::Tool {
            program: "hackbench".to_owned(),
            words: format!("it does not say its time but: {}", said.trim()),
        })?;
        let messages = u64::from(self.groups) * SIDE * SIDE * u64::from(self.messages);
        let mut outcome = LoadOutcome::default();
        outcome.add("time", "s", time);
        outcome.add("messages", "", count(messages));
        let per_s = if time > 0.0 {
            count(messages) / time
        } else {
            0.0
        };
        outcome.add("messages_per_s", "1/s", per_s);
        outcome.add_usage(usage);
        Ok(outcome)
    }
}

/// The seconds behind `Time:`.
fn time(said: &str) -> Option<f64> {
    let time = said.lines().find_map(|line| line.strip_prefix("Time:"))?;
    time.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_time_is_read() {
        let said = "Running in process mode with 2 groups\nTime: 0.045\n";
        assert_eq!(time(said), Some(0.045));
        assert_eq!(time("Creating fdpair (error: Too many open files)\n"), None);
    }

    #[test]
    fn nothing_is_no_load() {
        let none = Hackbench {
            groups: 0,
            messages: 1,
            pipes: false,
            threads: false,
        };
        assert!(none.run().is_err());
    }
}
