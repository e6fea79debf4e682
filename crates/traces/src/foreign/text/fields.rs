//! The fields of an event's line, as kernels print them, and as libtraceevent's plugins do.

use crate::foreign::record::{Comm, InterruptSource, Left, RecordWhat, Who};

/// Events that are understood.
pub fn is_known(event: &[u8]) -> bool {
    event.starts_with(b"sched_") || event.starts_with(b"irq_") || event.starts_with(b"softirq_")
}

/// Events that are of use and have a thread's name, which may have a newline.
pub fn has_name(event: &[u8]) -> bool {
    matches!(
        event,
        b"sched_switch"
            | b"sched_waking"
            | b"sched_wakeup"
            | b"sched_wakeup_new"
            | b"sched_migrate_task"
            | b"sched_process_fork"
            | b"sched_process_exit"
            | b"signal_generate"
            | b"task_rename"
    )
}

/// Whether the text has the name of an event of use or of a field of one, as a record has them.
pub fn has_words(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 12] = [
        b"sched_switch:",
        b"sched_waking:",
        b"sched_wakeup:",
        b"sched_wakeup_new:",
        b"sched_migrate_task:",
        b"sched_process_fork:",
        b"sched_process_exit:",
        b"prev_pid=",
        b"next_pid=",
        b"target_cpu=",
        b"orig_cpu=",
        b"child_pid=",
    ];
    let has = |word: &&[u8]| after(text, word).is_some();
    WORDS.iter().any(has)
}

/// What an event's line reports; `None` if it is of no use here.
pub fn what(event: &[u8], text: &[u8]) -> Option<RecordWhat> {
    let text = text.trim_ascii();
    // libtraceevent writes so where it does not understand how the kernel prints an event, and the
    // raw fields behind it.
    let text = text.strip_prefix(b"[FAILED TO PARSE]").unwrap_or(text);
    let text = text.trim_ascii_start();
    Some(match event {
        b"sched_switch" => switch(text)?,
        b"sched_waking" => {
            let (who, cpu) = woken(text)?;
            RecordWhat::Waking(who, cpu)
        }
        b"sched_waking_sync" => {
            let pid = narrow(value(text, b"pid=")?)?;
            let flags = narrow(value(text, b"flags=")?)?;
            waking_sync(pid, flags)?
        }
        b"sched_wakeup" | b"sched_wakeup_new" => {
            let (who, cpu) = woken(text)?;
            let new = event.ends_with(b"_new");
            RecordWhat::Wakeup { who, cpu, new }
        }
        b"sched_migrate_task" => RecordWhat::Migrate {
            who: by_names(text, b"comm=", b" pid=", b"prio=")?,
            from: narrow(value(text, b"orig_cpu=")?)?,
            to: narrow(value(text, b"dest_cpu=")?)?,
        },
        b"sched_process_fork" => fork(text)?,
        b"sched_process_exec" => RecordWhat::Exec {
            pid: narrow(last_value(text, b" pid=")?)?,
            old: narrow(last_value(text, b"old_pid=")?)?,
        },
        b"sched_process_exit" => RecordWhat::Exit(narrow(last_value(text, b" pid=")?)?),
        b"signal_generate" => {
            let code = after(text, b"code=")?;
            let code = if let Some(code) = code.strip_prefix(b"-") {
                -i64::from(narrow(digits(code)?)?)
            } else {
                i64::from(narrow(digits(code)?)?)
            };
            let signal = i64::from(narrow(value(text, b"sig=")?)?);
            alarm((signal, code), narrow(last_value(text, b" pid=")?)?)?
        }
        b"task_rename" => rename(text)?,
        b"irq_handler_entry" => RecordWhat::Enter(InterruptSource::Device {
            clock: after(text, b"name=").is_some_and(is_timer),
        }),
        b"irq_handler_exit" => RecordWhat::Leave(InterruptSource::Device { clock: false }),
        b"softirq_entry" => RecordWhat::Enter(softirq(text)?),
        b"softirq_exit" => RecordWhat::Leave(softirq(text)?),
        b"hrtimer_expire_entry" | b"timer_expire_entry" | b"local_timer_entry" => {
            RecordWhat::Enter(InterruptSource::Timer)
        }
        b"hrtimer_expire_exit" | b"timer_expire_exit" | b"local_timer_exit" => {
            RecordWhat::Leave(InterruptSource::Timer)
        }
        _ => return None,
    })
}

/// The record of the probe of wakers for a wakeup with these flags: `WF_SYNC` is 1 up to Linux
/// 5.10, and 16 from 5.11 on, where 1 is not used. The probe has a filter, which may have been
/// refused.
pub fn waking_sync(pid: u32, flags: u32) -> Option<RecordWhat> {
    (flags & 17 != 0).then_some(RecordWhat::WakingSync(pid))
}

/// The record of a signal, if it is the alarm clock that thread `pid` has set: `SIGALRM`, sent by
/// the kernel for `alarm()` and `setitimer()`, or for `timer_create()` (6.18,
/// include/uapi/asm-generic/siginfo.h: `SI_KERNEL`, `SI_TIMER`). Another program's is none.
pub const fn alarm((signal, code): (i64, i64), pid: u32) -> Option<RecordWhat> {
    const SIGALRM: i64 = 14;
    const SI_KERNEL: i64 = 0x80;
    const SI_TIMER: i64 = -2;
    if signal == SIGALRM && (code == SI_KERNEL || code == SI_TIMER) {
        Some(RecordWhat::Alarm(pid))
    } else {
        None
    }
}

/// Whether a device's interrupt is a timer's, by its name.
pub fn is_timer(name: &[u8]) -> bool {
    name.to_ascii_lowercase()
        .windows(5)
        .any(|part| part == b"timer")
}

/// A softirq by its number (kernel 6.18, `include/linux/interrupt.h`): 1 is `TIMER`, 8 `HRTIMER`.
pub const fn softirq_of(vector: u64) -> InterruptSource {
    InterruptSource::Soft {
        clock: matches!(vector, 1 | 8),
    }
}

fn softirq(text: &[u8]) -> Option<InterruptSource> {
    Some(softirq_of(value(text, b"vec=")?))
}

fn switch(text: &[u8]) -> Option<RecordWhat> {
    /// The names have room for three each.
    const ARROWS_MAX: usize = 7;
    const ARROW: &[u8] = b" ==> ";
    let parts = text.windows(ARROW.len()).enumerate();
    let arrows = parts.filter(|it| it.1 == ARROW).map(|it| it.0);
    let mut arrows = arrows.take(ARROWS_MAX).peekable();
    if arrows.peek().is_none() {
        // Raw fields, as of `trace-cmd report -R`.
        let (left, right) = text.split_at(last(text, b" next_comm=")?);
        return sides(left, right);
    }
    arrows.find_map(|at| sides(&text[..at], &text[at + ARROW.len()..]))
}

/// Who leaves a CPU, and who gets it.
fn sides(left: &[u8], right: &[u8]) -> Option<RecordWhat> {
    if let Some(state) = after_last(left, b" prev_state=") {
        return Some(RecordWhat::Switch {
            prev: by_names(left, b"prev_comm=", b" prev_pid=", b"prev_prio=")?,
            left: left_by(word(state).0),
            next: by_names(right, b"next_comm=", b" next_pid=", b"next_prio=")?,
        });
    }
    let (prev, state) = by_colon(left)?;
    Some(RecordWhat::Switch {
        prev,
        left: Left::of_letters(word(state).0),
        next: by_colon(right)?.0,
    })
}

/// The state as letters, or as the number that raw fields have.
fn left_by(state: &[u8]) -> Left {
    match raw(state) {
        Some(bits) => Left::of_bits(bits),
        None => Left::of_letters(state),
    }
}

/// A number of raw fields: `4096` or `0x1000`.
fn raw(text: &[u8]) -> Option<u64> {
    let Some(digits) = text.strip_prefix(b"0x") else {
        return number(text);
    };
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

fn woken(text: &[u8]) -> Option<(Who, Option<u32>)> {
    if text.starts_with(b"comm=") {
        let who = by_names(text, b"comm=", b" pid=", b"prio=")?;
        let cpu = last_value(text, b"target_cpu=").and_then(narrow);
        return Some((who, cpu));
    }
    let (who, rest) = by_colon(text)?;
    Some((who, last_value(rest, b"CPU:").and_then(narrow)))
}

fn fork(text: &[u8]) -> Option<RecordWhat> {
    let at = last(text, b" child_comm=")?;
    let (parent, child) = (&text[..at], &text[at..]);
    Some(RecordWhat::Fork {
        parent: narrow(
            last_value(parent, b" pid=").or_else(|| last_value(parent, b" parent_pid="))?,
        )?,
        child: Who {
            prio: None,
            ..by_names(child, b"child_comm=", b" child_pid=", b"")?
        },
    })
}

fn rename(text: &[u8]) -> Option<RecordWhat> {
    let at = last(text, b" newcomm=")?;
    let end = last(text, b" oom_score_adj=").filter(|end| *end > at);
    let name = &text[at + b" newcomm=".len()..end.unwrap_or(text.len())];
    Some(RecordWhat::Rename(Who {
        // Some kernels leave out whom.
        pid: match value(&text[..at], b"pid=") {
            Some(pid) => narrow(pid)?,
            None => 0,
        },
        comm: Comm::new(name),
        prio: None,
    }))
}

/// `comm=NAME pid=1 prio=120`.
fn by_names(text: &[u8], comm: &[u8], pid: &[u8], prio: &[u8]) -> Option<Who> {
    let rest = after(text, comm)?;
    let end = last(rest, pid)?;
    let numbers = &rest[end..];
    let prio = (!prio.is_empty()).then(|| after(numbers, prio)).flatten();
    Some(Who {
        pid: narrow(value(numbers, pid)?)?,
        comm: Comm::new(&rest[..end]),
        prio: prio.and_then(|prio| priority(word(prio).0)),
    })
}

/// `NAME:1 [120] REST`.
fn by_colon(text: &[u8]) -> Option<(Who, &[u8])> {
    // The name may have brackets, what follows it has not.
    let open = last(text, b" [")?;
    let close = open + text[open..].iter().position(|byte| *byte == b']')?;
    let colon = text[..open].iter().rposition(|byte| *byte == b':')?;
    let who = Who {
        pid: narrow(number(&text[colon + 1..open])?)?,
        comm: Comm::new(&text[..colon]),
        prio: priority(&text[open + 2..close]),
    };
    Some((who, &text[close + 1..]))
}

fn priority(text: &[u8]) -> Option<i16> {
    match text.strip_prefix(b"-") {
        Some(text) => number(text)?.try_into().map(|prio: i16| -prio).ok(),
        None => number(text)?.try_into().ok(),
    }
}

fn narrow(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// Where the last `key` begins.
fn last(text: &[u8], key: &[u8]) -> Option<usize> {
    text.windows(key.len()).rposition(|part| part == key)
}

fn after<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(key.len()).position(|part| part == key)?;
    Some(&text[at + key.len()..])
}

fn after_last<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    Some(&text[last(text, key)? + key.len()..])
}

fn digits(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    number(&text[..end.unwrap_or(text.len())])
}

fn value(text: &[u8], key: &[u8]) -> Option<u64> {
    digits(after(text, key)?)
}

fn last_value(text: &[u8], key: &[u8]) -> Option<u64> {
    digits(after_last(text, key)?)
}

/// A decimal number of digits alone.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The first word, and what follows it.
pub fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace);
    text.split_at(end.unwrap_or(text.len()))
}
