//! What the kernel says of a policy in its own log. Every ejection is there, also that of a policy
//! that does not report its end itself.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::ending::PolicyEnding;

/// The log from some moment on.
#[derive(Debug)]
pub struct KernelLog {
    /// `None`: the log cannot be read here, and nothing is said.
    file: Option<File>,
}

impl KernelLog {
    /// The log from now on.
    pub fn from_now() -> Self {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg");
        let mut file = file.ok();
        // A device that cannot seek would give old messages: better none.
        if file
            .as_mut()
            .is_some_and(|file| file.seek(SeekFrom::End(0)).is_err())
        {
            file = None;
        }
        Self { file }
    }

    /// How the log says that a policy ended; `None` when it says nothing of it.
    pub fn ending(&mut self) -> Option<PolicyEnding> {
        parse(&self.messages())
    }

    /// The messages that have come. Each read gives one record (Documentation/ABI/testing/dev-kmsg,
    /// kernel 6.18): numbers, a semicolon, the message, and further lines that begin with a space.
    fn messages(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        let Some(file) = &mut self.file else {
            return messages;
        };
        let mut record = [0; 8192];
        loop {
            match file.read(&mut record) {
                Ok(size) if size > 0 => {
                    let text = String::from_utf8_lossy(&record[..size]);
                    let message = text.split_once(';').map_or("", |(_, message)| message);
                    messages.extend(message.lines().next().map(str::to_owned));
                }
                // Records were overwritten before they were read; the next one is there.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                _ => return messages,
            }
        }
    }
}

/// Reads `sched_ext: BPF scheduler "NAME" disabled (REASON)` and, behind it, `sched_ext: NAME:
/// MESSAGE` (`scx_disable_workfn()` in kernel/sched/ext.c, 6.18).
fn parse(messages: &[String]) -> Option<PolicyEnding> {
    let (at, name, reason) = messages.iter().enumerate().find_map(|(at, message)| {
        let rest = message.strip_prefix("sched_ext: BPF scheduler \"")?;
        let (name, reason) = rest.split_once("\" disabled (")?;
        Some((at, name, reason.strip_suffix(')')?))
    })?;
    let begin = format!("sched_ext: {name}: ");
    let message = messages[at + 1..]
        .iter()
        .find_map(|message| message.strip_prefix(&begin));
    let mut kinds = model::ExitKind::ALL.into_iter();
    let kind = kinds.find(|kind| kind.reason() == reason);
    Some(PolicyEnding {
        kind: kind.unwrap_or(model::ExitKind::Error) as i64,
        code: 0,
        reason: reason.to_owned(),
        message: message.unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &[&str]) -> Option<(i64, String, String)> {
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        parse(&lines).map(|ending| (ending.kind, ending.reason, ending.message))
    }

    #[test]
    fn an_ejection_is_read_with_its_message() {
        let lines = [
            "sched_ext: BPF scheduler \"loser\" enabled",
            "random: crng init done",
            "sched_ext: BPF scheduler \"loser\" disabled (runnable task stall)",
            "sched_ext: loser: sh[478] failed to run for 1.024s",
            "   scx_watchdog_workfn+0x120/0x180",
        ];
        let want = (
            1026,
            "runnable task stall".to_owned(),
            "sh[478] failed to run for 1.024s".to_owned(),
        );
        assert_eq!(parsed(&lines), Some(want));
        assert_eq!(parsed(&lines[..2]), None);
    }

    #[test]
    fn a_normal_end_has_no_message() {
        let line = "sched_ext: BPF scheduler \"fifo\" disabled (unregistered from user space)";
        let want = (64, "unregistered from user space".to_owned(), String::new());
        assert_eq!(parsed(&[line]), Some(want));
    }
}
