//! Why a task of a dump waits.

use model::{CpuId, Nanos, SimTime};

use super::ending::Ending;
use super::read::{Cpu, Dump, Task};
use super::{Dumped, blank, missing, victim};
use crate::why::OVERLONG;
use crate::why::finding::{Fault, Holder, IdleCpu, QueueView, Standing, Victim};

/// The bit of built-in queues, and their ids (kernel 6.18, include/linux/sched/ext.h).
const BUILTIN: u64 = 1 << 63;
const LOCAL: u64 = BUILTIN | 2;
/// `SCX_OPSS_QUEUED`: the policy has the task (kernel 6.18).
const QUEUED: u64 = 2;
/// Who was not ejected is not blamed for a shorter wait.
const LONG_MS: u64 = 1000;

/// Who waits, and why.
pub fn stall(dump: &Dump) -> Dumped {
    let of = Waits { dump };
    let victim = of.victim();
    let mut dumped = blank(Fault::Unknown);
    dumped.before = of.before(victim);
    dumped.missing = missing::of_moment(dump, victim);
    dumped.finding.holders = of.holders(None);
    dumped.finding.waiting = of.waiting().count();
    if let Some(task) = victim {
        of.explain(task, &mut dumped);
    }
    dumped
}

/// What the message of the watchdog about itself means.
pub fn of_watchdog(ending: &Ending, worker: Option<&Task>) -> Option<String> {
    if !ending.is_of_watchdog() {
        return None;
    }
    let who = match worker {
        Some(task) if is_unbound(task) => {
            format!(". {}[{}] has waited longest of these", task.name, task.pid)
        }
        _ => String::new(),
    };
    Some(format!(
        "the message means: the watchdog is work of an unbound kworker (`kworker/u...`), and that \
         did not run. So nobody looked for other tasks that wait either{who}"
    ))
}

fn is_unbound(task: &Task) -> bool {
    task.name.starts_with("kworker/u")
}

/// Where the task is.
pub fn standing(task: &Task) -> Standing {
    match task.dsq {
        Some(LOCAL) => Standing::Local(CpuId(task.cpu)),
        Some(id) if id & BUILTIN != 0 => Standing::Global,
        Some(id) => Standing::Queue(id),
        None if task.state == QUEUED => Standing::Nowhere,
        None => Standing::Unknown,
    }
}

struct Waits<'a> {
    dump: &'a Dump,
}

impl<'a> Waits<'a> {
    fn waiting(&self) -> impl Iterator<Item = &'a Task> + use<'a> {
        self.dump.tasks.iter().filter(|task| !task.is_current)
    }

    /// The task that the message names, else the one that has waited longest. Who has not waited
    /// is not one.
    fn victim(&self) -> Option<&'a Task> {
        let ending = self.dump.ending.as_ref();
        let named = ending.and_then(Ending::task);
        let is_named = |task: &&Task| named.is_some_and(|(_, pid)| task.pid == pid);
        let is_worker = |task: &&Task| {
            ending.is_some_and(Ending::is_of_watchdog) && is_unbound(task) && task.waited_ms > 0
        };
        let longest =
            |tasks: &mut dyn Iterator<Item = &'a Task>| tasks.max_by_key(|task| task.waited_ms);
        self.waiting()
            .find(is_named)
            .or_else(|| longest(&mut self.waiting().filter(is_worker)))
            .or_else(|| longest(&mut self.waiting().filter(|task| task.waited_ms > 0)))
    }

    /// What must be said first: the message is about somebody else.
    fn before(&self, victim: Option<&Task>) -> Vec<String> {
        let Some(ending) = &self.dump.ending else {
            return Vec::new();
        };
        let mut before: Vec<_> = of_watchdog(ending, victim).into_iter().collect();
        if let Some((name, pid)) = ending.task() {
            let instead = victim.filter(|task| task.pid != pid);
            let instead = instead.map(|task| {
                format!(
                    ". It explains {}[{}] instead, another task",
                    task.name, task.pid
                )
            });
            if !self.dump.tasks.iter().any(|task| task.pid == pid) {
                before.push(format!(
                    "the kernel names {name}[{pid}], which no line of this text shows{}",
                    instead.unwrap_or_default()
                ));
            }
        }
        before
    }

    fn explain(&self, task: &'a Task, dumped: &mut Dumped) {
        let standing = standing(task);
        let finding = &mut dumped.finding;
        (finding.fault, dumped.is_likely) = self.fault(task, &standing);
        if let Standing::Local(cpu) = standing {
            finding.holders = self.holders(Some(cpu.0));
        }
        let needed = |cpu: &&Cpu| match standing {
            Standing::Local(local) => local.0 == cpu.number,
            _ => task.may_run(cpu.number),
        };
        let idle = self.dump.cpus.values().filter(needed);
        finding
            .idle
            .extend(idle.filter(|cpu| cpu.idles()).map(|cpu| IdleCpu {
                cpu: CpuId(cpu.number),
                since: SimTime::ZERO,
                kicked: None,
                claimed: None,
            }));
        finding.queue = task.dsq.map(|id| self.queue(id));
        finding.victim = Some(Victim {
            waited: Nanos::from_millis(task.waited_ms.min(u64::MAX / 1_000_000)),
            ..victim(&task.name, task.pid, standing)
        });
        if !dumped.before.is_empty() {
            // The kernel ended the policy for another task.
            dumped.is_likely |= dumped.finding.fault != Fault::Waited;
        }
        self.note_place(task, dumped);
        self.note_cpus(task, dumped);
    }

    /// A policy's queue shows tasks of all CPUs; a local queue is that of one.
    fn queue(&self, id: u64) -> QueueView {
        let in_it = self.dump.tasks.iter().filter(|task| task.dsq == Some(id));
        QueueView {
            id,
            of: None,
            is_passed_by: false,
            depth: u32::try_from(in_it.count()).unwrap_or(u32::MAX),
            last_look: None,
            looks: (0, 0),
            overtaken: 0,
            readers: Vec::new(),
            empty_dispatch: None,
            other_look: None,
        }
    }

    /// The class, and whether it is only likely.
    fn fault(&self, task: &Task, standing: &Standing) -> (Fault, bool) {
        let is_short = self.dump.ending.is_none() && task.waited_ms < LONG_MS;
        match standing {
            _ if is_short => (Fault::Waited, false),
            // Whoever has it could not run it either.
            _ if self.is_held_above(task) => (Fault::Outranked, false),
            Standing::Nowhere => (Fault::Lost, false),
            _ if self.elsewhere(task).is_some() => (Fault::UnreachableQueue, true),
            Standing::Local(cpu) => match self.dump.cpu(cpu.0) {
                Some(cpu) if cpu.idles() => (Fault::ForgottenKick, false),
                Some(_) => (Fault::CpuHeld, false),
                None => (Fault::StuckInQueue, false),
            },
            Standing::Queue(_) | Standing::Global if self.is_held(task) => (Fault::CpuHeld, false),
            Standing::Queue(_) | Standing::Global => (Fault::StuckInQueue, false),
            _ => (Fault::Unknown, false),
        }
    }

    /// The CPU for which the task was put where it is, if it may not run there: its local queue,
    /// or by the policy's own words (`scpu:` of `scx_lavd`).
    fn elsewhere(&self, task: &Task) -> Option<u16> {
        let local = match standing(task) {
            Standing::Local(cpu) => Some(cpu.0),
            _ => task.chosen,
        };
        task.allowed()?;
        local.filter(|cpu| !task.may_run(*cpu))
    }

    fn note_place(&self, task: &Task, dumped: &mut Dumped) {
        let Some(cpu) = self.elsewhere(task) else {
            return;
        };
        let allowed = task.allowed().unwrap_or_default();
        dumped.seen.push(format!(
            "it was put there for CPU {cpu}, and it may only use CPU {}",
            missing::numbers(&allowed)
        ));
        dumped.missing.push(
            "which CPUs look at that queue: not in a dump, so the class is only likely".to_owned(),
        );
    }

    /// What the CPUs of the task do beside holding it up.
    fn note_cpus(&self, task: &Task, dumped: &mut Dumped) {
        let usable: Vec<_> = self.usable(task).collect();
        for cpu in usable.iter().filter(|cpu| cpu.class == "stop_sched_class") {
            dumped.missing.push(format!(
                "who has CPU {} mostly: {} of the stop class has it in this moment, which takes \
                 microseconds",
                cpu.number, cpu.curr
            ));
        }
        for cpu in usable.iter().filter(|cpu| cpu.class.starts_with("0x")) {
            dumped.missing.push(format!(
                "of which class {} on CPU {} is: this kernel printed an address",
                cpu.curr, cpu.number
            ));
        }
        self.note_refilled(task, &usable, dumped);
    }

    /// A CPU calls `dispatch` only while its local queue is empty.
    fn note_refilled(&self, task: &Task, usable: &[&Cpu], dumped: &mut Dumped) {
        if dumped.finding.fault != Fault::StuckInQueue
            || !matches!(standing(task), Standing::Queue(_))
            || usable.is_empty()
            || !self.is_whole(task)
        {
            return;
        }
        let filler = |cpu: &&Cpu| {
            let mut here = self.waiting().filter(|it| it.cpu == cpu.number);
            here.find(|it| it.dsq == Some(LOCAL))
        };
        let fillers: Option<Vec<_>> = usable.iter().map(|cpu| Some((cpu, filler(cpu)?))).collect();
        let Some(fillers) = fillers else { return };
        for (cpu, filler) in fillers.iter().take(8) {
            dumped.seen.push(format!(
                "CPU {} has {}[{}] in its local queue: it does not call `dispatch` before that has \
                 run",
                cpu.number, filler.name, filler.pid
            ));
        }
        dumped.advice = Some(
            "Look for inserts into the local queue that refill it: while it has a task, its CPU \
             does not call `dispatch` and takes nobody from other queues.",
        );
    }

    fn usable(&self, task: &Task) -> impl Iterator<Item = &'a Cpu> {
        self.dump
            .cpus
            .values()
            .filter(|cpu| task.may_run(cpu.number))
    }

    /// Whether every CPU that `task` may use, if there is any, has a task with much of its slice
    /// left, or one of a class above.
    fn is_held(&self, task: &Task) -> bool {
        let holders = self.holders(None);
        self.all_usable(task, |cpu| {
            let mut here = holders.iter().filter(|holder| holder.cpu.0 == cpu.number);
            cpu.is_above() || here.any(|holder| holder.slice.is_some_and(|left| left > OVERLONG))
        })
    }

    /// Whether tasks of a class above have every CPU that `task` may use.
    fn is_held_above(&self, task: &Task) -> bool {
        task.waited_ms > 0 && self.all_usable(task, Cpu::is_above)
    }

    fn all_usable(&self, task: &Task, is_so: impl Fn(&Cpu) -> bool) -> bool {
        let mut usable = self.usable(task);
        self.is_whole(task) && usable.all(is_so)
    }

    /// Whether all CPUs that `task` may use are in the dump, which leaves out those where nobody
    /// is runnable.
    fn is_whole(&self, task: &Task) -> bool {
        let known = self.usable(task).count();
        known > 0 && known >= task.allowed().map_or(1, |all| all.len())
    }

    fn holders(&self, only: Option<u16>) -> Vec<Holder> {
        let cpus = self.dump.cpus.values();
        let cpus = cpus.filter(|cpu| only.is_none_or(|only| only == cpu.number));
        let busy = cpus.filter(|cpu| !cpu.curr.is_empty() && !cpu.idles());
        let currents = self.dump.tasks.iter().filter(|task| task.is_current);
        let slices: std::collections::BTreeMap<_, _> =
            currents.map(|task| (task.cpu, task.slice)).collect();
        busy.map(|cpu| {
            let of = if cpu.is_above() {
                format!(", of {}", cpu.class)
            } else {
                String::new()
            };
            Holder {
                cpu: CpuId(cpu.number),
                name: cpu.curr.clone() + &of,
                since: SimTime::ZERO,
                slice: slices.get(&cpu.number).copied().flatten(),
                given: None,
            }
        })
        .collect()
    }
}
