//! What a kernel's debug dump tells.
//!
//! Source: `scx_dump_state()` and `scx_dump_task()`, kernels 6.18 and 7.2, kernel/sched/ext.c. A
//! dump shows one moment: where each runnable task is and who has each CPU. It has no history, and
//! a kernel cuts it at the length that the policy asks for, 32 KiB by default.

use model::{Advice, CpuId, Nanos, SimTime, TaskId};

use super::OVERLONG;
use super::finding::{Fault, Finding, Holder, IdleCpu, QueueView, Standing, Victim};
use super::log;

/// Bytes of a dump that are read; kernels write far less.
const MOST: usize = 16 << 20;
/// The bit of built-in queues, and their ids (kernel 6.18, include/linux/sched/ext.h).
const BUILTIN: u64 = 1 << 63;
const LOCAL: u64 = BUILTIN | 2;
/// CPUs that a task's mask tells of here.
const MASKED: u16 = 64;
/// What an idle CPU's own task is called.
const IDLE: &str = "swapper";
/// `SCX_OPSS_QUEUED`: the policy has the task (kernel 6.18).
const QUEUED: u64 = 2;

/// Why a text cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// Neither the head nor a CPU nor a task was found.
    #[error(
        "not a dump of sched_ext: no line says `triggered exit kind`, and none shows a CPU or a \
         task"
    )]
    NotADump,
    /// What the kernel's log says of an ejection.
    #[error(
        "the kernel's log only says that a scheduler was ejected: `{0}`. The dump is not in it: \
         the scheduler's program prints that below a line `DEBUG DUMP`"
    )]
    LogOnly(String),
    /// More than any kernel writes.
    #[error("the dump has more than 16 MiB")]
    TooLong,
}

impl Advice for DumpError {
    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::NotADump => {
                "give the text below the line `DEBUG DUMP` that the scheduler's program printed"
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

#[derive(Debug, Default)]
struct Task {
    name: String,
    pid: u32,
    cpu: u16,
    is_current: bool,
    waited_ms: u64,
    state: u64,
    dsq: Option<u64>,
    slice: Option<u64>,
    /// The CPUs that it may use, the lowest 64.
    mask: Option<u64>,
}

impl Task {
    fn may_run(&self, cpu: u16) -> bool {
        let is_in = |mask: u64| cpu >= MASKED || mask >> cpu & 1 != 0;
        self.mask.is_none_or(is_in)
    }
}

#[derive(Debug, Default)]
struct Cpu {
    number: u16,
    curr: String,
    /// The scheduling class of that task, as the kernel calls its variable.
    class: String,
}

impl Cpu {
    fn idles(&self) -> bool {
        self.curr.starts_with(IDLE)
    }

    /// A task of a class above the policy's has it: no slice of the policy's ends that.
    fn is_above(&self) -> bool {
        let classes = ["", "ext_sched_class", "idle_sched_class"];
        !self.idles() && !classes.contains(&self.class.as_str())
    }
}

#[derive(Debug, Default)]
struct Dump {
    head: Option<String>,
    reason: Option<String>,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    is_cut: bool,
}

/// Explains a dump, and says what is not in it.
///
/// # Errors
/// If the text is no dump.
pub fn explain_dump(text: &str) -> Result<(Finding, Vec<String>), DumpError> {
    if text.len() > MOST {
        return Err(DumpError::TooLong);
    }
    let dump = read(text);
    if dump.head.is_none() && dump.cpus.is_empty() && dump.tasks.is_empty() {
        return Err(log_only(text).unwrap_or(DumpError::NotADump));
    }
    let finding = dump.finding();
    Ok((finding, dump.missing()))
}

/// The line of a kernel's log that tells of an ejection (kernel 6.18, kernel/sched/ext.c).
fn log_only(text: &str) -> Option<DumpError> {
    let ended = |line: &&str| line.contains("sched_ext: ") && line.contains(" disabled (");
    let line = log::lines(text).into_iter().find(ended)?;
    Some(DumpError::LogOnly(line.trim().chars().take(200).collect()))
}

fn read(text: &str) -> Dump {
    let mut dump = Dump::default();
    let mut lines = log::lines(text).into_iter().peekable();
    while let Some(line) = lines.next() {
        let words = line.trim();
        if line.contains("triggered exit kind") && dump.head.is_none() {
            dump.head = Some(words.to_owned());
            dump.reason = lines.peek().map(|next| next.trim().to_owned());
        } else if words.contains("TRUNCATED") || line.contains("[LOST") {
            dump.is_cut = true;
        } else if let Some(cpu) = cpu_of(words) {
            dump.cpus.push(cpu);
        } else if let (Some(rest), Some(cpu)) = (words.strip_prefix("curr="), dump.cpus.last_mut())
        {
            let (curr, class) = rest.split_once(" class=").unwrap_or((rest, ""));
            curr.clone_into(&mut cpu.curr);
            class.clone_into(&mut cpu.class);
        } else if let Some(task) = task_of(line, dump.cpus.last().map_or(0, |cpu| cpu.number)) {
            dump.tasks.push(task);
        } else if let Some(task) = dump.tasks.last_mut() {
            fields(words, task);
        }
    }
    dump
}

/// `CPU 3   : nr_run=1 flags=...`
fn cpu_of(words: &str) -> Option<Cpu> {
    let (number, rest) = words.strip_prefix("CPU ")?.split_once(':')?;
    let number = number.trim().parse().ok()?;
    rest.contains("nr_run=").then(|| Cpu {
        number,
        ..Cpu::default()
    })
}

/// ` *R stress[123] -40ms`: a mark at the current task, a letter for the state, the name, and how
/// long ago it became runnable. Kernel 7.2 says before that which scheduler has the task: `*root`.
fn task_of(line: &str, cpu: u16) -> Option<Task> {
    let words = line.trim();
    let (is_current, words) = match words.strip_prefix('*') {
        Some(rest) => (true, rest),
        None => (false, words),
    };
    let (state, rest) = words.split_once(' ')?;
    if state.len() != 1 || !state.chars().all(|letter| letter.is_ascii_uppercase()) {
        return None;
    }
    let (name, since) = rest.trim_end().rsplit_once(' ')?;
    let since = since.strip_suffix("ms")?;
    let since: i64 = since.trim_start_matches('+').parse().ok()?;
    let (name, pid) = name_of(name)?;
    Some(Task {
        name: name.to_owned(),
        pid,
        cpu,
        is_current,
        waited_ms: since.unsigned_abs(),
        ..Task::default()
    })
}

/// A name, which may have spaces and brackets, and the number behind it.
fn name_of(words: &str) -> Option<(&str, u32)> {
    let named = |words: &'_ str| -> Option<(usize, u32)> {
        let (name, pid) = words.strip_suffix(']')?.rsplit_once('[')?;
        Some((name.len(), pid.parse().ok()?))
    };
    let without = || named(words.rsplit_once(' ')?.0);
    let (length, pid) = named(words).or_else(without)?;
    Some((&words[..length], pid))
}

/// The lines below a task's first one: words of `name=value`.
fn fields(words: &str, task: &mut Task) {
    for word in words.split_whitespace() {
        match word.split_once('=') {
            Some(("ops_state/qseq", value)) => {
                let state = value.split('/').next().unwrap_or_default();
                task.state = state.parse().unwrap_or(0);
            }
            Some(("dsq_id", value)) => {
                let hex = value.strip_prefix("0x");
                task.dsq = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok());
            }
            Some(("slice", value)) => task.slice = value.parse().ok(),
            Some(("cpus", value)) => task.mask = mask_of(value),
            _ => {}
        }
    }
}

/// The lowest 64 bits of a mask as the kernel prints it (`%*pb`): words of 32 bits, the highest
/// first.
fn mask_of(text: &str) -> Option<u64> {
    let mut words = text.rsplit(',');
    let word = |words: &mut std::str::RSplit<'_, char>| match words.next() {
        Some(word) => u32::from_str_radix(word, 16).ok().map(u64::from),
        None => Some(0),
    };
    let low = word(&mut words)?;
    Some(word(&mut words)? << 32 | low)
}

impl Dump {
    fn finding(&self) -> Finding {
        let victim = self.victim();
        let mut finding = Finding {
            fault: Fault::Unknown,
            time: SimTime::ZERO,
            message: self.reason.clone().or_else(|| self.head.clone()),
            stopped: None,
            victim: None,
            culprit: None,
            queue: None,
            idle: Vec::new(),
            holders: self.holders(None),
            waiting: self.tasks.iter().filter(|task| !task.is_current).count(),
        };
        let Some(victim) = victim else { return finding };
        let standing = standing(victim);
        finding.fault = self.fault(victim, &standing);
        if let Standing::Local(cpu) = standing {
            finding.holders = self.holders(Some(cpu.0));
        }
        let needed = |cpu: &&Cpu| match standing {
            Standing::Local(local) => local.0 == cpu.number,
            _ => victim.may_run(cpu.number),
        };
        let idle = self.cpus.iter().filter(needed);
        let idle = idle.filter(|cpu| cpu.idles());
        finding.idle.extend(idle.map(|cpu| IdleCpu {
            cpu: CpuId(cpu.number),
            since: SimTime::ZERO,
            kicked: None,
            claimed: None,
        }));
        if let Some(id) = victim.dsq {
            let depth = self
                .tasks
                .iter()
                .filter(|task| task.dsq == Some(id))
                .count();
            finding.queue = Some(QueueView {
                id,
                depth: u32::try_from(depth).unwrap_or(u32::MAX),
                last_look: None,
                looks: (0, 0),
                overtaken: 0,
                readers: Vec::new(),
                empty_dispatch: None,
                other_look: None,
            });
        }
        finding.victim = Some(Victim {
            task: TaskId::NONE,
            name: victim.name.clone(),
            pid: victim.pid,
            since: None,
            waited: Nanos::from_millis(victim.waited_ms.min(u64::MAX / 1_000_000)),
            standing,
            put: None,
            trigger: None,
        });
        finding
    }

    /// The task that the reason names, else the one that has waited longest.
    fn victim(&self) -> Option<&Task> {
        let named = |task: &&Task| {
            let name = format!("{}[{}] failed to run", task.name, task.pid);
            self.reason
                .as_ref()
                .is_some_and(|reason| reason.contains(&name))
        };
        let waits = || self.tasks.iter().filter(|task| !task.is_current);
        waits()
            .find(named)
            .or_else(|| waits().max_by_key(|task| task.waited_ms))
    }

    fn cpu(&self, number: u16) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.number == number)
    }

    fn fault(&self, victim: &Task, standing: &Standing) -> Fault {
        match standing {
            // Whoever has it could not run it either.
            _ if self.is_held_above(victim) && victim.waited_ms > 0 => Fault::Outranked,
            Standing::Nowhere => Fault::Lost,
            Standing::Local(cpu) => match self.cpu(cpu.0) {
                Some(cpu) if cpu.idles() => Fault::ForgottenKick,
                Some(_) => Fault::CpuHeld,
                None => Fault::StuckInQueue,
            },
            Standing::Queue(_) | Standing::Global if self.is_held(victim) => Fault::CpuHeld,
            Standing::Queue(_) | Standing::Global => Fault::StuckInQueue,
            _ if victim.waited_ms == 0 => Fault::Waited,
            _ => Fault::Unknown,
        }
    }

    /// Whether every CPU that `victim` may use, if there is any, has a task with much of its slice
    /// left, or one of a class above.
    fn is_held(&self, victim: &Task) -> bool {
        let holders = self.holders(None);
        self.all_usable(victim, |cpu| {
            let mut here = holders.iter().filter(|holder| holder.cpu.0 == cpu.number);
            cpu.is_above() || here.any(|holder| holder.slice.is_some_and(|left| left > OVERLONG))
        })
    }

    /// Whether tasks of a class above have every CPU that `victim` may use.
    fn is_held_above(&self, victim: &Task) -> bool {
        self.all_usable(victim, Cpu::is_above)
    }

    /// Whether all CPUs that `victim` may use are as asked, and are in the dump, which leaves out
    /// those where nobody is runnable.
    fn all_usable(&self, victim: &Task, is_so: impl Fn(&Cpu) -> bool) -> bool {
        let mut usable = self.cpus.iter().filter(|cpu| victim.may_run(cpu.number));
        let known = usable.clone().filter(|cpu| cpu.number < MASKED).count();
        let all = victim.mask.map_or(1, u64::count_ones) as usize;
        known > 0 && known >= all && usable.all(is_so)
    }

    /// CPUs that `victim` may use and that are not in the dump.
    fn unlisted(&self, victim: &Task) -> Vec<u16> {
        let listed = |cpu: u16| self.cpus.iter().any(|it| it.number == cpu);
        let all = (0..MASKED).filter(|cpu| victim.mask.is_some() && victim.may_run(*cpu));
        all.filter(|cpu| !listed(*cpu)).collect()
    }

    /// What is not to be read out of it.
    fn missing(&self) -> Vec<String> {
        let mut missing = vec![
            "which line put the task there: not in a dump".to_owned(),
            "who looked at the queue, and when: not in a dump".to_owned(),
            "which idle CPUs were kicked, and since when they idle: not in a dump".to_owned(),
        ];
        if self.is_cut {
            missing.push(
                "the dump was cut: tasks and CPUs behind the cut are missing. A larger \
                 `exit_dump_len` in the policy's table keeps more"
                    .to_owned(),
            );
        } else if self.tasks.is_empty() {
            missing.push("who waits, and where: no line of the text shows a task".to_owned());
        }
        let unlisted = self.victim().map(|victim| self.unlisted(victim));
        if let Some(unlisted) = unlisted.filter(|it| !it.is_empty() && !self.is_cut) {
            let first: Vec<_> = unlisted.iter().take(8).map(ToString::to_string).collect();
            let more = match unlisted.len() - first.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            missing.push(format!(
                "what CPU {}{more} does: the task may use it, and a dump leaves out CPUs that \
                 idle without a task, or are offline",
                first.join(", ")
            ));
        }
        missing
    }

    fn holders(&self, only: Option<u16>) -> Vec<Holder> {
        let cpus = self.cpus.iter();
        let cpus = cpus.filter(|cpu| only.is_none_or(|only| only == cpu.number));
        let busy = cpus.filter(|cpu| !cpu.curr.is_empty() && !cpu.idles());
        busy.map(|cpu| {
            let current = |task: &&Task| task.is_current && task.cpu == cpu.number;
            let of = if cpu.is_above() {
                format!(", of {}", cpu.class)
            } else {
                String::new()
            };
            Holder {
                cpu: CpuId(cpu.number),
                name: cpu.curr.clone() + &of,
                since: SimTime::ZERO,
                slice: self.tasks.iter().find(current).and_then(|task| task.slice),
                given: None,
            }
        })
        .collect()
    }
}

fn standing(task: &Task) -> Standing {
    match task.dsq {
        Some(LOCAL) => Standing::Local(CpuId(task.cpu)),
        Some(id) if id & BUILTIN != 0 => Standing::Global,
        Some(id) => Standing::Queue(id),
        None if task.state == QUEUED => Standing::Nowhere,
        None => Standing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
kworker/u8:0[12] triggered exit kind 1026:
  runnable task stall (hog[77] failed to run for 30.004s)

CPU states
----------

CPU 0   : nr_run=3 flags=0x1 cpu_rel=0 ops_qseq=57 pnt_seq=120
          curr=busy[70] class=ext_sched_class

 *R busy[70] -3ms
      scx_state/flags=3/0x1 dsq_flags=0x0 ops_state/qseq=0/0
      sticky/holding_cpu=-1/-1 dsq_id=(n/a)
      dsq_vtime=0 slice=18446744073709551615 weight=100
      cpus=3 no_mig=0

  R hog[77] -30004ms
      scx_state/flags=3/0x9 dsq_flags=0x0 ops_state/qseq=2/56
      sticky/holding_cpu=-1/-1 dsq_id=(n/a)
      dsq_vtime=0 slice=20000000 weight=100

  R hog two[78] -100ms
      scx_state/flags=3/0x9 dsq_flags=0x0 ops_state/qseq=0/0
      sticky/holding_cpu=-1/-1 dsq_id=0x7
      dsq_vtime=0 slice=20000000 weight=100
";

    #[test]
    fn a_dump_says_where_the_stalled_task_is_and_what_it_does_not_tell() {
        let (finding, missing) = explain_dump(DUMP).unwrap();
        assert_eq!(finding.fault, Fault::Lost);
        let victim = finding.victim.unwrap();
        assert_eq!((victim.name.as_str(), victim.pid), ("hog", 77));
        assert_eq!(victim.waited, Nanos::from_millis(30_004));
        assert_eq!(victim.standing, Standing::Nowhere);
        assert_eq!(finding.holders[0].slice, Some(u64::MAX));
        assert_eq!((finding.waiting, missing.len()), (2, 3));
    }

    #[test]
    fn a_dump_that_was_cut_is_read_up_to_there() {
        let lines: Vec<_> = DUMP.lines().collect();
        let head = lines[..13].join("\n") + "\n\n~~~~ TRUNCATED ~~~~\n";
        let (finding, missing) = explain_dump(&head).unwrap();
        assert_eq!((finding.fault, finding.victim), (Fault::Unknown, None));
        assert!(missing[3].contains("cut"), "{missing:?}");
    }

    /// A real-time task has the only CPU that the task may use: no policy could run it.
    #[test]
    fn a_cpu_that_a_higher_class_has_is_held_and_the_class_is_named() {
        let above = DUMP
            .replace(
                "curr=busy[70] class=ext_sched_class",
                "curr=rt[70] class=rt_sched_class",
            )
            .replace(" *R busy[70] -3ms\n", "")
            .replace(
                "slice=20000000 weight=100\n\n",
                "slice=20000000 weight=100\n      cpus=1\n\n",
            );
        let (finding, missing) = explain_dump(&above).unwrap();
        assert_eq!(finding.fault, Fault::Outranked);
        assert_eq!(finding.holders[0].name, "rt[70], of rt_sched_class");
        assert_eq!(missing.len(), 3, "{missing:?}");
        // Where it may use a second one, of which the dump says nothing, that one may idle.
        let (finding, missing) = explain_dump(&above.replace("cpus=1", "cpus=3")).unwrap();
        assert_eq!(finding.fault, Fault::Lost);
        assert!(missing[3].starts_with("what CPU 1 does: "), "{missing:?}");
    }

    #[test]
    fn a_log_that_has_the_ejection_and_no_dump_is_told_apart() {
        let log = "Sep 23 13:02:57 host kernel: sched_ext: BPF scheduler \"x\" disabled (runnable \
                   task stall)\nSep 23 13:02:57 host kernel: sched_ext: x: a[1] failed to run\n";
        let error = explain_dump(log).unwrap_err().to_string();
        assert!(
            error.contains("`sched_ext: BPF scheduler \"x\" disabled"),
            "{error}"
        );
        assert!(error.contains("DEBUG DUMP"), "{error}");
    }

    #[test]
    fn what_is_no_dump_is_refused_and_a_hostile_one_does_no_harm() {
        for text in ["", "hello", "R x[1] -5", "CPU x: nr_run=", "\u{0}\u{fffd}="] {
            assert_eq!(explain_dump(text), Err(DumpError::NotADump), "{text:?}");
        }
        let hostile = "x triggered exit kind 99999999999:\n  (](] failed to run\n\
            CPU 65535 : nr_run=9\n R ][4294967295] -9223372036854775808ms\n\
            dsq_id=0xfffffffffffffffff\n\
            dsq_id=0x8000000000000002 slice=-1 ops_state/qseq=/\n";
        let (finding, _) = explain_dump(hostile).unwrap();
        assert_eq!(
            finding.victim.unwrap().standing,
            Standing::Local(CpuId(65_535))
        );
    }
}
