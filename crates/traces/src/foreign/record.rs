//! One record of a trace, the same for every format.

use std::fmt;

/// A record: something that the kernel reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds on the trace's clock.
    pub time: u64,
    /// The CPU that reported it.
    pub cpu: u32,
    /// The thread that ran there, or was interrupted there; 0 is the idle task, [`CURRENT`] whoever
    /// runs.
    pub pid: u32,
    /// In what context the CPU was.
    pub context: CpuContext,
    /// What was reported.
    pub what: RecordWhat,
}

/// As a record's `pid`: whoever runs on the CPU.
pub const CURRENT: u32 = u32::MAX;

/// In what context a CPU was when it reported something (`common_flags`, kernel 6.18,
/// `kernel/trace/trace.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuContext {
    /// The trace does not say.
    #[default]
    Unsaid,
    /// The current thread's own.
    Task,
    /// An interrupt.
    Hard,
    /// A softirq.
    Soft,
}

impl CpuContext {
    /// From the flags of a record.
    #[must_use]
    pub const fn of_flags(flags: u64) -> Self {
        const HARD: u64 = 0x08;
        const SOFT: u64 = 0x10;
        const NMI: u64 = 0x40;
        if flags & (HARD | NMI) != 0 {
            Self::Hard
        } else if flags & SOFT != 0 {
            Self::Soft
        } else {
            Self::Task
        }
    }
}

/// The name of a thread, at most 16 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The first 16 bytes of `name`, up to a NUL.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let end = name.iter().position(|byte| *byte == 0);
        let name = &name[..end.unwrap_or(name.len()).min(16)];
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name);
        Self(bytes)
    }

    /// Whether it is that of a thread of the kernel that serves softirqs.
    ///
    /// Its waker is the outside, not the interrupted task: the kernel wakes it at the end of
    /// `handle_softirqs()` (6.18, kernel/softirq.c), when the softirq's own record has ended.
    #[must_use]
    pub fn serves_softirqs(&self) -> bool {
        self.0.starts_with(b"ksoftirqd/")
    }

    /// The name, without the NULs behind it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        &self.0[..end.unwrap_or(self.0.len())]
    }

    /// Whether there is no name.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

/// As [`model::plain::shown`]: a name may have any byte but NUL.
impl fmt::Display for Comm {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&model::plain::shown(self.bytes()))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{self}`")
    }
}

/// A thread as a record names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Its number in the trace's pid namespace.
    pub pid: u32,
    /// Its name; empty if the record has none.
    pub comm: Comm,
    /// The kernel's priority, with what inheritance made of it: 0 to 99 real-time, 120 is nice 0.
    /// -1 a deadline task; `None` if the record does not say.
    pub prio: Option<i16>,
}

/// In what state a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Runnable. A yield, a preemption and a throttling look alike.
    Runnable,
    /// It sleeps.
    Sleeping,
    /// It sleeps uninterruptibly (D): mostly for a device.
    Blocked,
    /// It has exited.
    Dead,
}

impl Left {
    /// From the letters with which kernels print it, such as `S`, `R+` or `D|K`.
    #[must_use]
    pub fn of_letters(letters: &[u8]) -> Self {
        let has = |wanted: &[u8]| letters.iter().any(|letter| wanted.contains(letter));
        if has(b"XZx") {
            Self::Dead
        } else if has(b"R") {
            Self::Runnable
        } else if has(b"D") {
            Self::Blocked
        } else {
            Self::Sleeping
        }
    }

    /// From the bits that kernels from 4.14 on report (6.18, `include/linux/sched.h`).
    #[must_use]
    pub const fn of_bits(bits: u64) -> Self {
        match bits & 0xff {
            0 => Self::Runnable,
            bits if bits & 0x30 != 0 => Self::Dead,
            bits if bits & 0x02 != 0 => Self::Blocked,
            _ => Self::Sleeping,
        }
    }
}

/// Source of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptSource {
    /// A device's interrupt; `clock` if its name says that it is a timer's.
    Device {
        /// Whether it is the clock's.
        clock: bool,
    },
    /// A softirq; `clock` if it is the one of timers.
    Soft {
        /// Whether it is the clock's.
        clock: bool,
    },
    /// A timer that expires.
    Timer,
}

/// What a record reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordWhat {
    /// `sched_switch`.
    Switch {
        /// Who leaves the CPU.
        prev: Who,
        /// How.
        left: Left,
        /// Who gets it.
        next: Who,
    },
    /// A switch of which the previous thread is not named: whoever ran.
    SwitchTo {
        /// How the previous thread leaves the CPU.
        left: Left,
        /// Who gets it.
        next: Who,
    },
    /// `sched_waking`: in the context of who wakes. Its `target_cpu` is where the thread last was.
    Waking(Who, Option<u32>),
    /// Of a probe that `runslice record` sets: the [`RecordWhat::Waking`] of this thread that
    /// follows on the same CPU is by one that is about to sleep.
    WakingSync(u32),
    /// `sched_wakeup`, or `sched_wakeup_new` if `new`: maybe on another CPU than the waker's.
    Wakeup {
        /// Who became runnable.
        who: Who,
        /// Where.
        cpu: Option<u32>,
        /// Whether it is the start of a new thread.
        new: bool,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// Who moved.
        who: Who,
        /// From where.
        from: u32,
        /// To where.
        to: u32,
    },
    /// `sched_process_fork`.
    Fork {
        /// Who forked.
        parent: u32,
        /// The new thread.
        child: Who,
    },
    /// `sched_process_exec`: a thread that is not the first of its process takes that one's number.
    Exec {
        /// The number from now on.
        pid: u32,
        /// The number before.
        old: u32,
    },
    /// `sched_process_exit`: the thread still runs for a moment.
    Exit(u32),
    /// `signal_generate`: this thread's own alarm clock is sent to it.
    Alarm(u32),
    /// `task_rename`.
    Rename(Who),
    /// An interrupt begins.
    Enter(InterruptSource),
    /// An interrupt ends.
    Leave(InterruptSource),
    /// So many records were lost before this one; 0 if it is not known how many.
    Lost(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits_say_the_same_of_a_state() {
        let cases: [(&[u8], u64, Left); 8] = [
            (b"R", 0, Left::Runnable),
            (b"R+", 0x100, Left::Runnable),
            (b"S", 1, Left::Sleeping),
            (b"D", 2, Left::Blocked),
            (b"X", 0x10, Left::Dead),
            (b"Z", 0x20, Left::Dead),
            (b"I", 0x80, Left::Sleeping),
            (b"D|K", 0x802, Left::Blocked),
        ];
        for (letters, bits, want) in cases {
            assert_eq!(Left::of_letters(letters), want);
            assert_eq!(Left::of_bits(bits), want);
        }
    }

    #[test]
    fn a_name_is_shown_whatever_its_bytes() {
        assert_eq!(Comm::new(b"a b:[c]\0junk").to_string(), "a b:[c]");
        assert_eq!(Comm::new(b"a\xff\x01b").to_string(), "a\\xff\\u0001b");
        assert_eq!(
            Comm::new(b"0123456789abcdefg").to_string(),
            "0123456789abcdef"
        );
    }
}
