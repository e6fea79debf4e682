//! Whether the emulator breaks a guest while it runs.

use std::time::{Duration, Instant};

use folder::OwnFolder;

use crate::follow::read_on;
use crate::outcome::is_emulators_fault;
use crate::qemu::CONSOLE;

/// How long a guest may go on when its kernel has told of a fault of the emulator. Most die of it
/// at once; one went on for two hours and did nothing.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes of a line of the console that are looked at, at most.
const LINE: usize = 4096;

/// Looks at a guest's console for faults of the emulator while the guest runs.
#[derive(Debug, Default)]
pub struct Watch {
    read: u64,
    /// What has come of a line.
    line: Vec<u8>,
    /// When a fault was seen.
    seen: Option<Instant>,
}

impl Watch {
    /// Whether the guest of `scratch` should be ended, at the moment `now`.
    pub fn is_broken(&mut self, scratch: &OwnFolder, now: Instant) -> bool {
        if self.seen.is_none() && self.sees_fault(scratch) {
            self.seen = Some(now);
        }
        self.seen
            .is_some_and(|seen| now.duration_since(seen) > GRACE)
    }

    fn sees_fault(&mut self, scratch: &OwnFolder) -> bool {
        let Self { read, line, .. } = self;
        let mut found = false;
        read_on(&scratch.join(CONSOLE), read, |piece| {
            for byte in piece {
                if *byte == b'\n' {
                    found |= is_emulators_fault(&String::from_utf8_lossy(line));
                    line.clear();
                } else if line.len() < LINE {
                    line.push(*byte);
                }
            }
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_guest_whose_kernel_tells_of_a_fault_of_the_emulator_is_ended_after_a_while() {
        let scratch = OwnFolder::new().unwrap();
        let (mut watch, began) = (Watch::default(), Instant::now());
        let mut after = |seconds, console: &str| {
            fs::write(scratch.join(CONSOLE), console).unwrap();
            watch.is_broken(&scratch, began + Duration::from_secs(seconds))
        };
        let healthy = "[ 1.0] RSP: 002b:00007fffffffbd48 EFLAGS: 00000246 ORIG_RAX: 38\n";
        assert!(!after(0, healthy));
        assert!(!after(50, healthy));
        // A line is looked at when it is whole.
        let part = format!("{healthy}[ 8.0] RSP: 0018:ffa00000004d3a10 EFLAGS: 05a6");
        assert!(!after(51, &part));
        assert!(!after(99, &part));
        let whole = format!("{part}a37a\r\n");
        assert!(!after(100, &whole));
        assert!(!after(109, &whole));
        assert!(after(111, &whole));
    }
}
