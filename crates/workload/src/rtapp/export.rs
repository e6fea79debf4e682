//! Writes a workload as a configuration of rt-app, if all of it can be said there.

use std::fmt::Write as _;

use super::super::{
    CgroupOp, CpuSet, DeviceOp, Dist, Expr, Group, IndexedResource, LockKind, Operation,
    ROOT_CGROUP, SchedPolicy, Step, Target, TaskKind, Workload,
};
use model::Nanos;

/// A workload as a configuration of rt-app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The text of the file.
    pub json: String,
    /// What is a little different there.
    pub lost: Vec<String>,
}

/// One second, of which `run(inf)` becomes a loop.
const PIECE_US: u64 = 1_000_000;

/// Writes `workload` as a configuration of rt-app.
///
/// # Errors
/// Everything that has no counterpart there, each with its line.
pub fn export(workload: &Workload) -> Result<Exported, Vec<String>> {
    let mut exporter = Exporter {
        workload,
        lost: Vec::new(),
        refused: Vec::new(),
        users: vec![0; workload.barriers.len()],
    };
    exporter.refuse_tables();
    let tasks: Vec<String> = (workload.groups.iter())
        .map(|group| exporter.task(group))
        .collect();
    exporter.check_barriers();
    let mut global = vec!["\"default_policy\": \"SCHED_OTHER\"".to_owned()];
    if let Some(after) = workload.stop.after {
        let seconds = after.get().div_ceil(1_000_000_000);
        if seconds * 1_000_000_000 != after.get() {
            exporter
                .lost
                .push(format!("the duration is rounded up to {seconds} s"));
        }
        global.push(format!("\"duration\": {seconds}"));
    }
    if !exporter.refused.is_empty() {
        return Err(exporter.refused);
    }
    let json = format!(
        "{{\n\t\"tasks\": {{\n{}\n\t}},\n\t\"global\": {{ {} }}\n}}\n",
        tasks.join(",\n"),
        global.join(", ")
    );
    Ok(Exported {
        json,
        lost: exporter.lost,
    })
}

struct Exporter<'w> {
    workload: &'w Workload,
    lost: Vec<String>,
    refused: Vec<String>,
    /// How many tasks come to each barrier, as rt-app counts.
    users: Vec<u32>,
}

/// Events of one phase, and what it says about its task.
#[derive(Default)]
struct Phase {
    count: i64,
    properties: Vec<String>,
    events: Vec<String>,
}

impl Exporter<'_> {
    fn refuse(&mut self, line: u32, what: &str) {
        let text = format!("{}:{line}: {what}", self.workload.file);
        if !self.refused.contains(&text) {
            self.refused.push(text);
        }
    }

    fn lose(&mut self, what: &str) {
        if !self.lost.iter().any(|lost| lost == what) {
            self.lost.push(what.to_owned());
        }
    }

    fn refuse_tables(&mut self) {
        let workload = self.workload;
        let stops = &workload.stop;
        if !stops.groups.is_empty() || !stops.requests.is_empty() {
            self.refuse(
                1,
                "a stop by tasks or requests has no counterpart in rt-app",
            );
        }
        for irq in &workload.interrupts {
            self.refuse(irq.line, "interrupts have no counterpart in rt-app");
        }
        for requests in &workload.requests {
            self.refuse(requests.irq.line, "requests have no counterpart in rt-app");
        }
        for hotplug in &workload.hotplugs {
            self.refuse(hotplug.line, "hotplug has no counterpart in rt-app");
        }
        if workload
            .semaphores
            .iter()
            .any(|semaphore| semaphore.value > 0)
        {
            self.refuse(1, "a semaphore with tokens has no counterpart in rt-app");
        }
    }

    fn check_barriers(&mut self) {
        for (barrier, users) in self.workload.barriers.iter().zip(self.users.clone()) {
            if users != barrier.parties {
                let what = format!(
                    "barrier `{}` has {} parties, but rt-app would count {users}",
                    barrier.name, barrier.parties
                );
                self.refuse(1, &what);
            }
        }
    }

    fn task(&mut self, group: &Group) -> String {
        let line = group.body.first().map_or(1, |step| step.line);
        let mut properties = vec![format!("\"instance\": {}", group.count)];
        let class = self.class(group.policy, group.nice);
        properties.extend(class);
        let clamps = [
            ("util_min", group.clamps.min),
            ("util_max", group.clamps.max),
        ];
        for (name, clamp) in clamps {
            properties.extend(clamp.map(|clamp| format!("\"{name}\": {clamp}")));
        }
        if let Some(number) = group.cgroup.filter(|&number| number != ROOT_CGROUP) {
            properties.extend(self.taskgroup(number, group.policy, line));
        }
        if let Some(cpus) = &group.cpus {
            properties.push(list(cpus));
        }
        match group.start {
            Dist::Const(span) if span.is_zero() => {}
            Dist::Const(span) => properties.push(format!("\"delay\": {}", self.micros(span))),
            _ => self.refuse(line, "a drawn start has no counterpart in rt-app"),
        }
        if group.kind == TaskKind::Process {
            self.lose("processes become threads");
        }
        let (count, body) = match &group.body[..] {
            [
                Step {
                    op: Operation::Loop { count, body, .. },
                    line,
                },
            ] if !body.iter().any(|step| matches!(step.op, Operation::Exit)) => {
                (self.repeat(count.as_ref(), *line), body.as_slice())
            }
            body => (1, body),
        };
        properties.push(format!("\"loop\": {count}"));
        let mut phases = Vec::new();
        let mut cpus = group.cpus.clone();
        for step in body {
            self.step(step, group, &mut phases, &mut cpus);
        }
        // What a task changes before it exits is of no consequence.
        phases.pop_if(|phase| phase.events.is_empty());
        let phases = phases.iter().enumerate().map(|(number, phase)| {
            let mut members = vec![format!("\"loop\": {}", phase.count)];
            members.extend(phase.properties.iter().cloned());
            members.extend(phase.events.iter().cloned());
            format!("\t\t\t\t\"p{number}\": {{ {} }}", members.join(", "))
        });
        let phases: Vec<String> = phases.collect();
        let mut text = String::new();
        let _ = write!(
            text,
            "\t\t\"{}\": {{\n\t\t\t{},\n\t\t\t\"phases\": {{\n{}\n\t\t\t}}\n\t\t}}",
            group.name,
            properties.join(", "),
            phases.join(",\n")
        );
        text
    }

    /// One step of a task: an event of the last phase, or a phase of its own.
    fn step(
        &mut self,
        step: &Step,
        group: &Group,
        phases: &mut Vec<Phase>,
        cpus: &mut Option<CpuSet>,
    ) {
        let line = step.line;
        match &step.op {
            Operation::Exit => {}
            Operation::Loop { count, body, .. } => {
                let count = self.repeat(count.as_ref(), line);
                let mut phase = self.phase(count, group, cpus, phases);
                for inner in body {
                    self.event(inner, group, &mut phase);
                }
                phases.push(phase);
            }
            Operation::Run(None) => {
                let mut phase = self.phase(-1, group, cpus, phases);
                phase.events.push(format!("\"run0\": {PIECE_US}"));
                phases.push(phase);
            }
            Operation::SetAffinity {
                target: Target::Me,
                cpus: set,
            } => {
                cpus.clone_from(set);
                let phase = self.phase(1, group, cpus, phases);
                phases.push(phase);
            }
            Operation::SetPolicy {
                target: Target::Me,
                policy,
            } => {
                let mut phase = self.phase(1, group, cpus, phases);
                phase.properties.extend(self.class(*policy, group.nice));
                phases.push(phase);
            }
            Operation::Device(DeviceOp::Cgroup(CgroupOp::Move {
                target: Target::Me,
                to,
                process: false,
            })) => {
                let mut phase = self.phase(1, group, cpus, phases);
                phase
                    .properties
                    .extend(self.taskgroup(*to, group.policy, line));
                phases.push(phase);
            }
            _ => {
                let open = phases.last().is_some_and(|phase| phase.count == 1);
                if !open {
                    let phase = self.phase(1, group, cpus, phases);
                    phases.push(phase);
                }
                let phase = phases.last_mut().expect("one was pushed");
                self.event(step, group, phase);
            }
        }
    }

    /// A phase, with what a phase before it says that has no events yet. A task goes back to its
    /// own CPUs in a phase that names none.
    fn phase(
        &mut self,
        count: i64,
        group: &Group,
        cpus: &Option<CpuSet>,
        phases: &mut Vec<Phase>,
    ) -> Phase {
        let before = phases.pop_if(|phase| phase.events.is_empty());
        let mut properties = before.map_or_else(Vec::new, |phase| phase.properties);
        properties.retain(|property| !property.starts_with("\"cpus\""));
        let mut phase = Phase {
            count,
            properties,
            events: Vec::new(),
        };
        match cpus {
            Some(cpus) if group.cpus.as_ref() != Some(cpus) => phase.properties.push(list(cpus)),
            None if group.cpus.is_some() => {
                self.refuse(
                    1,
                    "setaffinity(self, all) of a bound task has no counterpart",
                );
            }
            _ => {}
        }
        phase
    }

    fn repeat(&mut self, count: Option<&Expr>, line: u32) -> i64 {
        match count {
            None => -1,
            Some(Expr::Number(count)) if *count >= 0 => *count,
            Some(_) => {
                self.refuse(line, "a computed count has no counterpart in rt-app");
                0
            }
        }
    }

    fn event(&mut self, step: &Step, group: &Group, phase: &mut Phase) {
        let line = step.line;
        let number = phase.events.len();
        let found = match &step.op {
            Operation::Run(Some(amount)) => self.amount("run", amount, line),
            Operation::Exec(amount) => {
                self.lose("`exec` becomes `run`");
                self.amount("run", amount, line)
            }
            Operation::Sleep(amount) => self.amount("sleep", amount, line),
            // rt-app measures the slack of every timer.
            Operation::Timer {
                period, grid, slot, ..
            } => {
                if !grid.from_start {
                    self.lose("the grid of a timer begins with its task");
                }
                let mode = if grid.moves { "relative" } else { "absolute" };
                let period = self.micros(*period);
                Some((
                    "timer",
                    format!(
                        "{{ \"ref\": \"unique{slot}\", \"period\": {period}, \"mode\": \
                         \"{mode}\" }}"
                    ),
                ))
            }
            Operation::Lock(lock) => self.named("lock", lock, line),
            Operation::Unlock(lock) => self.named("unlock", lock, line),
            Operation::Barrier(barrier) => {
                self.users[barrier.of as usize] += group.count;
                let name = &self.workload.barriers[barrier.of as usize].name;
                self.place(barrier, name, line)
                    .map(|name| ("barrier", name))
            }
            Operation::Yield => Some(("yield", "\"\"".to_owned())),
            Operation::Fork(child) => {
                let name = &self.workload.groups[*child as usize].name;
                Some(("fork", format!("\"{name}\"")))
            }
            Operation::Device(op) => self.device(op, line),
            _ => None,
        };
        match found {
            Some((event, value)) => phase.events.push(format!("\"{event}{number}\": {value}")),
            None => self.refuse(
                line,
                "an operation, or a nested loop, has no counterpart in rt-app",
            ),
        }
    }

    fn device(&mut self, op: &DeviceOp, line: u32) -> Option<(&'static str, String)> {
        let workload = self.workload;
        let semaphore = |place: &IndexedResource| &workload.semaphores[place.of as usize].name;
        let condition = |place: &IndexedResource| &workload.conditions[place.of as usize].name;
        let mut place = |event, place: &IndexedResource, name: &str| {
            self.place(place, name, line).map(|name| (event, name))
        };
        match op {
            DeviceOp::SemWait(at) => place("sem_wait", at, semaphore(at)),
            DeviceOp::SemPost(at) => place("sem_post", at, semaphore(at)),
            DeviceOp::Signal(at) => place("signal", at, condition(at)),
            DeviceOp::Broadcast(at) => place("broad", at, condition(at)),
            DeviceOp::CondWait { cond, lock } => {
                let (_, cond) = place("wait", cond, condition(cond))?;
                let (_, lock) = self.named("lock", lock, line)?;
                Some(("wait", format!("{{ \"ref\": {cond}, \"mutex\": {lock} }}")))
            }
            _ => None,
        }
    }

    fn named(
        &mut self,
        event: &'static str,
        lock: &IndexedResource,
        line: u32,
    ) -> Option<(&'static str, String)> {
        let declared = &self.workload.locks[lock.of as usize];
        if declared.kind != LockKind::Mutex {
            return None;
        }
        self.place(lock, &declared.name, line)
            .map(|name| (event, name))
    }

    /// The name of an instance, in quotes.
    fn place(&mut self, place: &IndexedResource, name: &str, line: u32) -> Option<String> {
        match place.index {
            Expr::Number(0) => Some(format!("\"{name}\"")),
            Expr::Number(index) => Some(format!("\"{name}_{index}\"")),
            _ => {
                self.refuse(line, "a computed index has no counterpart in rt-app");
                None
            }
        }
    }

    fn amount(
        &mut self,
        event: &'static str,
        amount: &super::super::Amount,
        line: u32,
    ) -> Option<(&'static str, String)> {
        let (Dist::Const(span), Expr::Number(times)) = (&amount.dist, &amount.times) else {
            self.refuse(
                line,
                "a drawn or computed span has no counterpart in rt-app",
            );
            return None;
        };
        let span = Nanos::new(span.get().saturating_mul(times.unsigned_abs()));
        Some((event, self.micros(span).to_string()))
    }

    /// Policy, and priority or budget.
    fn class(&mut self, policy: SchedPolicy, nice: i8) -> Vec<String> {
        let (name, priority) = match policy {
            SchedPolicy::Normal => ("OTHER", i64::from(nice)),
            SchedPolicy::Batch => ("BATCH", i64::from(nice)),
            SchedPolicy::Idle => ("IDLE", i64::from(nice)),
            SchedPolicy::Fifo(priority) => ("FIFO", i64::from(priority)),
            SchedPolicy::RoundRobin(priority) => ("RR", i64::from(priority)),
            SchedPolicy::Deadline(budget) => {
                let (runtime, deadline) =
                    (self.micros(budget.runtime), self.micros(budget.deadline));
                let period = self.micros(budget.period);
                return vec![
                    "\"policy\": \"SCHED_DEADLINE\"".to_owned(),
                    format!("\"dl-runtime\": {runtime}"),
                    format!("\"dl-deadline\": {deadline}"),
                    format!("\"dl-period\": {period}"),
                ];
            }
        };
        vec![
            format!("\"policy\": \"SCHED_{name}\""),
            format!("\"priority\": {priority}"),
        ]
    }

    /// The cgroup with this number as rt-app names it, for a task of that policy.
    fn taskgroup(&mut self, number: u32, policy: SchedPolicy, line: u32) -> Option<String> {
        use SchedPolicy::{Deadline, Fifo, RoundRobin};
        let Some(index) = (number as usize).checked_sub(1) else {
            return Some("\"taskgroup\": \"/\"".to_owned());
        };
        if matches!(policy, Deadline(_) | Fifo(_) | RoundRobin(_)) {
            self.refuse(
                line,
                "rt-app has real-time and deadline tasks in the root cgroup only",
            );
        }
        let cgroup = &self.workload.cgroups[index];
        let usual = cgroup.weight == 100 && cgroup.max.quota_us.is_none() && !cgroup.idle;
        let text = format!("\"taskgroup\": \"{}\"", cgroup.path);
        if !usual {
            self.lose("weights and limits of cgroups");
        }
        Some(text)
    }

    /// Whole microseconds, rounded up.
    fn micros(&mut self, span: Nanos) -> u64 {
        if !span.get().is_multiple_of(1_000) {
            self.lose("spans are rounded up to whole microseconds");
        }
        span.get().div_ceil(1_000)
    }
}

/// CPUs as rt-app lists them.
fn list(cpus: &CpuSet) -> String {
    let numbers: Vec<String> = cpus.iter().map(|cpu| cpu.to_string()).collect();
    format!("\"cpus\": [{}]", numbers.join(", "))
}
