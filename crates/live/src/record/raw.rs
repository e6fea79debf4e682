//! Records as `record.bpf.c` writes them.

/// What a record is about: `enum kind` in record.bpf.c, and behind it what the player says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// A CPU changed its task. `pid`: the next, 0 for idle; `a`: the previous; `b`: the state in
    /// which that left (`prev_state` of the tracepoint).
    Switch,
    /// A wakeup begins. `b`: the waker's pid; `flags`: whether in an interrupt, and whether the
    /// waker is about to sleep.
    Waking,
    /// A task became runnable. `a`: the CPU that took it.
    Wakeup,
    /// A new task became runnable. `a`: the CPU that took it.
    Start,
    /// A task's CPU changed. `a`: the new one; `b`: the old one.
    Migrate,
    /// A task was forked. `a`: the parent's pid; `c`: index of its [`RecordFacts`].
    Fork,
    /// A task has another name. `c`: index of its [`RecordFacts`].
    Rename,
    /// A task that was there when the recording began. `cpu`: its CPU; `c`: index of its
    /// [`RecordFacts`].
    Snapshot,
    /// Nice value or affinity changed. `a`: 0 nice, 1 affinity; `b`: the value.
    Change,
    /// What the policy says of a task. `a`: priority; `b`: level; `c`: flags.
    Report,
    /// Not of the kernel: the player created the task. `a`: group; `b`: index in the group.
    Born,
    /// Not of the kernel: a task of the player says something. `b`: the
    /// [`EventKind`](model::EventKind) as a number; `a`: the event's word `a`; `c`: its word `b`.
    Mark,
}

/// A record. 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time: u64,
    /// Whom it is about.
    pub pid: u32,
    /// Where it happened.
    pub cpu: u16,
    /// What happened; fixes the meaning of the words below.
    pub kind: RecordKind,
    /// `FLAG_*`.
    pub flags: u8,
    /// Third word.
    pub c: u64,
    /// First word.
    pub a: u32,
    /// Second word.
    pub b: u32,
}

/// What a record of a task says besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFacts {
    /// Its thread group.
    pub tgid: u32,
    /// Its nice value.
    pub nice: i8,
    /// `SCHED_*`.
    pub policy: u32,
    /// `PF_*`.
    pub flags: u32,
    /// CPUs that it may run on.
    pub cpus_allowed: u32,
    /// Its name.
    pub comm: String,
}

/// The waker was an interrupt.
pub const FLAG_HARDIRQ: u8 = 2;
/// The waker was a softirq: the interrupt's second half, on whatever task was there.
pub const FLAG_SOFTIRQ: u8 = 4;
/// The task was runnable.
pub const FLAG_QUEUED: u8 = 8;
/// The task was on a CPU.
pub const FLAG_ON_CPU: u8 = 16;
/// The waker told the kernel that it is about to sleep.
pub const FLAG_SYNC: u8 = 32;

/// What the thread is called that reads these records.
pub const READER: &str = "runslice-reader";

/// A task that has begun to exit (`PF_EXITING`, linux/sched.h, 6.18).
pub const PF_EXITING: u32 = 0x4;
/// A kernel thread (`PF_KTHREAD`, linux/sched.h, 6.18).
pub const PF_KTHREAD: u32 = 0x0020_0000;
/// Real-time, first in, first out (linux/sched.h, 6.18).
pub const SCHED_FIFO: u32 = 1;
/// Real-time, in turn (linux/sched.h, 6.18).
pub const SCHED_RR: u32 = 2;
/// By deadlines (linux/sched.h, 6.18).
pub const SCHED_DEADLINE: u32 = 6;
/// Subject of a [`RecordKind::Change`], in [`Raw::a`], if it is not the affinity (`CHANGE_NICE` of
/// `record.bpf.c`).
pub const CHANGE_NICE: u32 = 0;
/// `prev_state` of a task that left its CPU for the last time (`TASK_DEAD`, 6.18).
pub const TASK_DEAD: u32 = 0x80;

const EVENT_SIZE: usize = 32;
/// Bytes of a record with facts.
pub const TASK_SIZE: usize = EVENT_SIZE + 32;
/// `static_prio` of nice 0 (`DEFAULT_PRIO`, linux/sched/prio.h, 6.18).
const NICE_0_PRIO: i64 = 120;

impl RecordKind {
    /// Those that the kernel's side writes.
    const WRITTEN: [Self; 10] = [
        Self::Switch,
        Self::Waking,
        Self::Wakeup,
        Self::Start,
        Self::Migrate,
        Self::Fork,
        Self::Rename,
        Self::Snapshot,
        Self::Change,
        Self::Report,
    ];

    fn has_facts(self) -> bool {
        matches!(self, Self::Fork | Self::Rename | Self::Snapshot)
    }
}

/// Reads one record; one with facts appends them to `facts`. `None` if the bytes are no record.
pub fn parse(bytes: &[u8], facts: &mut Vec<RecordFacts>) -> Option<Raw> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let long = |at: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let kind = *RecordKind::WRITTEN.get(usize::from(*bytes.get(14)?))?;
    let mut raw = Raw {
        time: long(0)?,
        pid: word(8)?,
        cpu: u16::from_ne_bytes([*bytes.get(12)?, *bytes.get(13)?]),
        kind,
        flags: *bytes.get(15)?,
        c: long(16)?,
        a: word(24)?,
        b: word(28)?,
    };
    if kind.has_facts() {
        let text = bytes.get(EVENT_SIZE + 16..TASK_SIZE)?;
        let length = text
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(text.len());
        let nice = i64::from(word(EVENT_SIZE)?) - NICE_0_PRIO;
        raw.c = facts.len() as u64;
        facts.push(RecordFacts {
            tgid: raw.b,
            // A real-time task keeps the nice value that it had before.
            nice: i8::try_from(nice.clamp(-20, 19)).expect("clamped to a nice value"),
            policy: word(EVENT_SIZE + 4)?,
            flags: word(EVENT_SIZE + 8)?,
            cpus_allowed: word(EVENT_SIZE + 12)?,
            comm: String::from_utf8_lossy(&text[..length]).into_owned(),
        });
    }
    Some(raw)
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::Btf;

    use super::*;
    use crate::record::OBJECT;
    use crate::variables;

    #[test]
    fn a_record_is_read_as_the_kernel_side_lays_it_out() {
        let mut bytes = Vec::new();
        bytes.extend(7_u64.to_ne_bytes());
        bytes.extend(42_u32.to_ne_bytes());
        bytes.extend(3_u16.to_ne_bytes());
        bytes.extend([RecordKind::Fork as u8, 0]);
        bytes.extend(0_u64.to_ne_bytes());
        bytes.extend(41_u32.to_ne_bytes());
        bytes.extend(40_u32.to_ne_bytes());
        for word in [125_u32, 0, PF_KTHREAD, 2] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(b"hog.1\0\0\0\0\0\0\0\0\0\0\0");
        let mut facts = vec![RecordFacts::default()];
        let raw = parse(&bytes, &mut facts).unwrap();
        assert_eq!(
            (raw.time, raw.pid, raw.cpu, raw.a, raw.c),
            (7, 42, 3, 41, 1)
        );
        assert_eq!(raw.kind, RecordKind::Fork);
        let want = RecordFacts {
            tgid: 40,
            nice: 5,
            policy: 0,
            flags: PF_KTHREAD,
            cpus_allowed: 2,
            comm: "hog.1".to_owned(),
        };
        assert_eq!(facts[1], want);
        assert_eq!(parse(&bytes[..60], &mut facts), None);
        bytes[14] = 200;
        assert_eq!(parse(&bytes, &mut facts), None);
    }

    #[test]
    fn kinds_and_fields_lie_where_the_object_has_them() {
        let btf = Btf::from_raw("record", OBJECT).unwrap().unwrap();
        let name = |it: &RecordKind| format!("{it:?}").to_lowercase();
        let ours = RecordKind::WRITTEN.iter().map(|it| (name(it), *it as i64));
        assert_eq!(
            variables::enumerators(&btf, "kind"),
            ours.collect::<Vec<_>>()
        );
        let at = |field| variables::member(&btf, "event", field);
        let fields = ["time", "pid", "cpu", "kind", "flags", "c", "a", "b"].map(at);
        assert_eq!(fields, [0, 8, 12, 14, 15, 16, 24, 28].map(Some));
        let at = |field| variables::member(&btf, "task_event", field);
        let fields = ["static_prio", "policy", "flags", "nr_cpus_allowed", "comm"].map(at);
        assert_eq!(fields, [0, 4, 8, 12, 16].map(|at| Some(EVENT_SIZE + at)));
    }
}
