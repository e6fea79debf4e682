//! Events in the kernel's binary form, read by the descriptions that the file itself has: nothing
//! is assumed of where a field stands.

use std::collections::HashMap;

use crate::foreign::cursor::Endian;
use crate::foreign::error::Error;
use crate::foreign::record::{Comm, CpuContext, InterruptSource, Left, RecordWhat, Who};
use crate::foreign::text::{alarm, is_timer, softirq_of, waking_sync};

/// The descriptions of a file.
#[derive(Debug, Default)]
pub struct Formats {
    events: HashMap<u64, Event>,
    common: Option<Common>,
    endian: Endian,
}

/// What every event has.
#[derive(Clone, Copy, Debug)]
struct Common {
    kind: Field,
    flags: Option<Field>,
    pid: Field,
}

#[derive(Debug)]
struct Event {
    kind: FieldKind,
    fields: Vec<Option<Field>>,
    states: Vec<(u64, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Signed,
    Unsigned,
    /// The number says where the bytes are: seen from the begin of the event.
    Far,
    /// Likewise, seen from the end of the field.
    Near,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Switch,
    Waking,
    WakingSync,
    Wakeup,
    WakeupNew,
    Migrate,
    Fork,
    Exec,
    Exit,
    Signal,
    Rename,
    IrqEntry,
    IrqExit,
    SoftirqEntry,
    SoftirqExit,
    TimerEntry,
    TimerExit,
}

/// Fields that an event has at least, and fields that it may have.
type Fields = (&'static [&'static str], &'static [&'static str]);

impl FieldKind {
    fn of(name: &str) -> Option<(Self, &'static str, Fields)> {
        const WOKEN: Fields = (&["comm", "pid"], &["prio", "target_cpu"]);
        let all: &[(&'static str, Self, Fields)] = &[
            (
                "sched_switch",
                Self::Switch,
                (
                    &[
                        "prev_comm",
                        "prev_pid",
                        "prev_state",
                        "next_comm",
                        "next_pid",
                    ],
                    &["prev_prio", "next_prio"],
                ),
            ),
            ("sched_waking", Self::Waking, WOKEN),
            (
                "sched_waking_sync",
                Self::WakingSync,
                (&["pid", "flags"], &[]),
            ),
            ("sched_wakeup", Self::Wakeup, WOKEN),
            ("sched_wakeup_new", Self::WakeupNew, WOKEN),
            (
                "sched_migrate_task",
                Self::Migrate,
                (&["comm", "pid", "orig_cpu", "dest_cpu"], &["prio"]),
            ),
            (
                "sched_process_fork",
                Self::Fork,
                (&["parent_pid", "child_comm", "child_pid"], &[]),
            ),
            ("sched_process_exec", Self::Exec, (&["pid", "old_pid"], &[])),
            ("sched_process_exit", Self::Exit, (&["pid"], &[])),
            (
                "signal_generate",
                Self::Signal,
                (&["sig", "code", "pid"], &[]),
            ),
            // Some kernels (6.18.15) leave out whom: the thread that renames itself.
            ("task_rename", Self::Rename, (&["newcomm"], &["pid"])),
            ("irq_handler_entry", Self::IrqEntry, (&[], &["name"])),
            ("irq_handler_exit", Self::IrqExit, (&[], &[])),
            ("softirq_entry", Self::SoftirqEntry, (&["vec"], &[])),
            ("softirq_exit", Self::SoftirqExit, (&["vec"], &[])),
            ("hrtimer_expire_entry", Self::TimerEntry, (&[], &[])),
            ("hrtimer_expire_exit", Self::TimerExit, (&[], &[])),
            ("timer_expire_entry", Self::TimerEntry, (&[], &[])),
            ("timer_expire_exit", Self::TimerExit, (&[], &[])),
            ("local_timer_entry", Self::TimerEntry, (&[], &[])),
            ("local_timer_exit", Self::TimerExit, (&[], &[])),
        ];
        let found = all.iter().find(|(known, ..)| *known == name);
        found.map(|(name, kind, fields)| (*kind, *name, *fields))
    }
}

impl Formats {
    pub fn new(endian: Endian) -> Self {
        Self {
            endian,
            ..Self::default()
        }
    }

    /// Takes the description of an event, which stands at `offset`. Events that are of no use are
    /// passed over.
    pub fn add(&mut self, text: &[u8], offset: u64) -> Result<(), Error> {
        let text = String::from_utf8_lossy(text);
        let after = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::trim)
        };
        let (Some(name), Some(id)) = (after("name:"), after("ID:")) else {
            let what = "the description of an event has no name or no ID";
            return Err(Error::Malformed { offset, what });
        };
        let Some((kind, event, (needed, possible))) = FieldKind::of(name) else {
            return Ok(());
        };
        let Ok(id) = id.parse() else {
            let what = "the description of an event has an ID that is no number";
            return Err(Error::Malformed { offset, what });
        };
        let declared: HashMap<&str, Field> = text.lines().filter_map(field).collect();
        let find = |field: &'static str| {
            let found = declared.get(field).copied();
            found.ok_or(Error::Field {
                offset,
                event,
                field,
            })
        };
        if self.common.is_none() {
            self.common = Some(Common {
                kind: find("common_type")?,
                flags: declared.get("common_flags").copied(),
                pid: find("common_pid")?,
            });
        }
        let mut fields = Vec::new();
        for name in needed {
            fields.push(Some(find(name)?));
        }
        fields.extend(possible.iter().map(|name| declared.get(name).copied()));
        let states = states(after("print fmt:").unwrap_or(""));
        self.events.insert(
            id,
            Event {
                kind,
                fields,
                states,
            },
        );
        Ok(())
    }

    /// Decodes an event: the thread that ran, the context, and what happened. `None` for events of
    /// no use, and for those that are too short.
    pub fn decode(&self, data: &[u8]) -> Option<(u32, CpuContext, RecordWhat)> {
        let common = self.common?;
        let number = |field: Field| self.number(data, field);
        let event = self.events.get(&number(common.kind)?.cast_unsigned())?;
        let flags = common.flags.and_then(number);
        let context = flags.map_or(CpuContext::Unsaid, |it| {
            CpuContext::of_flags(it.cast_unsigned())
        });
        let pid = u32::try_from(number(common.pid)?).ok()?;
        Some((pid, context, self.what(event, data, pid)?))
    }

    fn what(&self, event: &Event, data: &[u8], current: u32) -> Option<RecordWhat> {
        let field = |index: usize| event.fields.get(index).copied().flatten();
        let number = |index: usize| self.number(data, field(index)?);
        let small = |index: usize| u32::try_from(number(index)?).ok();
        let prio = |index: usize| number(index).and_then(|prio| prio.try_into().ok());
        let comm = |index: usize| field(index).and_then(|field| self.comm(data, field));
        let who = |comm_at: usize, pid_at: usize, prio_at: usize| {
            Some(Who {
                pid: small(pid_at)?,
                comm: comm(comm_at)?,
                prio: prio(prio_at),
            })
        };
        Some(match event.kind {
            FieldKind::Switch => RecordWhat::Switch {
                prev: who(0, 1, 5)?,
                left: left(number(2)?.cast_unsigned(), &event.states),
                next: who(3, 4, 6)?,
            },
            FieldKind::Waking => RecordWhat::Waking(who(0, 1, 2)?, small(3)),
            FieldKind::WakingSync => waking_sync(small(0)?, small(1)?)?,
            FieldKind::Wakeup | FieldKind::WakeupNew => RecordWhat::Wakeup {
                who: who(0, 1, 2)?,
                cpu: small(3),
                new: event.kind == FieldKind::WakeupNew,
            },
            FieldKind::Migrate => RecordWhat::Migrate {
                who: who(0, 1, 4)?,
                from: small(2)?,
                to: small(3)?,
            },
            FieldKind::Fork => RecordWhat::Fork {
                parent: small(0)?,
                child: who(1, 2, usize::MAX)?,
            },
            FieldKind::Exec => RecordWhat::Exec {
                pid: small(0)?,
                old: small(1)?,
            },
            FieldKind::Exit => RecordWhat::Exit(small(0)?),
            FieldKind::Signal => alarm((number(0)?, number(1)?), small(2)?)?,
            FieldKind::Rename => RecordWhat::Rename(Who {
                pid: small(1).unwrap_or(current),
                comm: comm(0)?,
                prio: None,
            }),
            FieldKind::IrqEntry => RecordWhat::Enter(InterruptSource::Device {
                clock: field(0).is_some_and(|field| {
                    let name = self.bytes(data, field);
                    name.is_some_and(is_timer)
                }),
            }),
            FieldKind::IrqExit => RecordWhat::Leave(InterruptSource::Device { clock: false }),
            FieldKind::SoftirqEntry => RecordWhat::Enter(softirq_of(small(0)?.into())),
            FieldKind::SoftirqExit => RecordWhat::Leave(softirq_of(small(0)?.into())),
            FieldKind::TimerEntry => RecordWhat::Enter(InterruptSource::Timer),
            FieldKind::TimerExit => RecordWhat::Leave(InterruptSource::Timer),
        })
    }

    /// A field's number, with its sign.
    fn number(&self, data: &[u8], field: Field) -> Option<i64> {
        let bytes = data.get(field.offset..field.offset.checked_add(field.size)?)?;
        if bytes.len() > 8 {
            return None;
        }
        let number = self.endian.number(bytes);
        let unused = 64 - 8 * u32::try_from(bytes.len()).ok()?;
        Some(match field.form {
            Form::Signed if unused < 64 => (number << unused).cast_signed() >> unused,
            _ => number.cast_signed(),
        })
    }

    fn comm(&self, data: &[u8], field: Field) -> Option<Comm> {
        self.bytes(data, field).map(Comm::new)
    }

    fn bytes<'a>(&self, data: &'a [u8], field: Field) -> Option<&'a [u8]> {
        let (begin, size) = match field.form {
            Form::Signed | Form::Unsigned => (field.offset, field.size),
            Form::Far | Form::Near => {
                let word = self.number(data, field)?.cast_unsigned();
                let (at, size) = (word & 0xffff, word >> 16 & 0xffff);
                let base = match field.form {
                    Form::Near => field.offset + field.size,
                    _ => 0,
                };
                (
                    base + usize::try_from(at).ok()?,
                    usize::try_from(size).ok()?,
                )
            }
        };
        data.get(begin..begin.checked_add(size)?)
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`
fn field(line: &str) -> Option<(&str, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            Some(("signed", number)) => signed = number == "1",
            _ => {}
        }
    }
    let name = declaration.rsplit([' ', '*']).next()?;
    let name = name.split('[').next()?;
    let form = if declaration.starts_with("__data_loc") {
        Form::Far
    } else if declaration.starts_with("__rel_loc") {
        Form::Near
    } else if signed {
        Form::Signed
    } else {
        Form::Unsigned
    };
    // Records are far smaller; greater numbers could not be added.
    let small = |number: &usize| *number < 1 << 20;
    let field = Field {
        offset: offset.filter(small)?,
        size: size.filter(small)?,
        form,
    };
    Some((name, field))
}

/// A field's name, where it is, and how long it is.
pub fn place_of(line: &str) -> Option<(&str, usize, usize)> {
    field(line).map(|(name, field)| (name, field.offset, field.size))
}

/// The states that `print fmt` has names for: pairs as `{ 0x02, "D" }`.
fn states(print: &str) -> Vec<(u64, u8)> {
    let pairs = print.split('{').skip(1).filter_map(|part| {
        let (number, rest) = part.split_once(',')?;
        let number = number.trim();
        let number = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        let letter = rest.trim_start().strip_prefix('"')?.bytes().next()?;
        Some((number, letter))
    });
    pairs.collect()
}

fn left(bits: u64, states: &[(u64, u8)]) -> Left {
    if states.is_empty() {
        return Left::of_bits(bits);
    }
    let set = states.iter().filter(|(bit, _)| bits & bit != 0);
    let letters: Vec<u8> = set.map(|(_, letter)| *letter).collect();
    if letters.is_empty() {
        Left::Runnable
    } else {
        Left::of_letters(&letters)
    }
}

#[cfg(test)]
mod tests;
