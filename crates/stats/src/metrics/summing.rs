//! The report of a run that is over.

use std::collections::BTreeMap;

use model::growth::Course;
use model::{Nanos, SimTime, TaskTimes};

use super::tasks::{Ended, Group, TaskMetrics};
use super::{MeasuredRun, NICE_LEVELS, NICE_MIN, SpanKind};
use crate::Histogram;
use crate::report::{
    CounterReport, CpuReport, DeadlineReport, GroupReport, Lengths, MachineReport, Millionths,
    NiceReport, PhaseReport, Report, SpanReport, Spread, TaskReport, Thousandths, Times,
};
use crate::tails::Tails;
use traces::task_name;

/// Stands for the group where an interrupt did something.
const NOBODY: &str = "-";

impl MeasuredRun {
    pub(super) fn report(&self) -> Report {
        Report {
            policy: self.header.policy.clone(),
            workload: self.header.workload.clone(),
            seed: self.header.seed,
            machine: self.machine(),
            cpus: self.cpu_reports(),
            all: self.all_report(),
            groups: self.group_reports(),
            deadlines: self.deadline_reports(),
            spans: self.span_reports(),
            counters: self.counter_reports(),
            phases: self.phase_reports(),
            nice: self.nice_reports(),
            tasks: self.task_reports(),
            hardware: Vec::new(),
            classes: Vec::new(),
            frequencies: Vec::new(),
            wait_p999: delay(&self.whole()).quantile(999),
            siblings_busy: self.siblings.as_ref().map_or(Nanos::ZERO, |siblings| {
                siblings.both(self.end.unwrap_or(SimTime::ZERO))
            }),
        }
    }

    /// The waits of each group.
    pub(super) fn tails(&self) -> Tails {
        let groups = self.header.groups.iter().zip(&self.groups);
        let waits = groups.map(|(named, group)| {
            let mut waits = group.wakeup.clone();
            for more in [&group.start, &group.preempt, &group.waiting] {
                waits.merge(more);
            }
            (named.name.clone(), waits)
        });
        Tails::new(waits.collect())
    }

    /// The waits of each group after wakeups and preemptions.
    pub(super) fn waits(&self) -> Tails {
        let groups = self.header.groups.iter().zip(&self.groups);
        let waits = groups.map(|(named, group)| {
            let mut waits = group.wakeup.clone();
            waits.merge(&group.preempt);
            // A kernel cannot tell: there no turn takes no time.
            if let Some(empty) = &group.empty {
                waits.merge(&empty.wakeup);
            }
            (named.name.clone(), waits)
        });
        Tails::new(waits.collect())
    }

    /// The spans of one kind of all groups whose name is `wanted`.
    pub(super) fn pooled(&self, kind: SpanKind<'_>, wanted: &dyn Fn(&str) -> bool) -> Histogram {
        let mut pooled = Histogram::new();
        let groups = self.header.groups.iter().zip(&self.groups);
        for (_, group) in groups.filter(|(named, _)| wanted(&named.name)) {
            match kind {
                SpanKind::Wakeup => pooled.merge(&group.wakeup),
                SpanKind::Delay => pooled.merge(&delay(group)),
                SpanKind::Runslice => pooled.merge(&group.runslice),
                SpanKind::Sleep => pooled.merge(&group.sleep),
                SpanKind::Span(name) => {
                    let is_it = |at: u32| {
                        self.header
                            .spans
                            .get(at as usize)
                            .is_some_and(|it| it == name)
                    };
                    let spans = group.spans.iter().filter(|(at, _)| is_it(**at));
                    spans.for_each(|(_, ended)| pooled.merge(&ended.lengths));
                }
            }
        }
        pooled
    }

    /// Length of the run in nanoseconds.
    fn elapsed(&self) -> u128 {
        u128::from(self.end.unwrap_or(SimTime::ZERO).as_nanos())
    }

    /// All CPU time of the machine in nanoseconds.
    fn capacity(&self) -> u128 {
        self.elapsed() * self.cpus.len() as u128
    }

    fn share(&self, part: impl Into<u128>) -> Millionths {
        Millionths::of(part.into(), self.capacity())
    }

    fn machine(&self) -> MachineReport {
        let times = |part: fn(&CpuReport) -> Nanos| -> Millionths {
            let sum: u128 = self
                .cpu_reports()
                .iter()
                .map(|cpu| u128::from(part(cpu).get()))
                .sum();
            self.share(sum)
        };
        let queues = self.queues.sums();
        MachineReport {
            cpus: self.header.machine.cpus,
            elapsed: span(self.elapsed()),
            switches: self.cpus.iter().map(|cpu| cpu.times().switches).sum(),
            wakeups: self.tasks.iter().map(|task| task.wakeups).sum(),
            migrations: self.tasks.iter().map(|task| task.migrations).sum(),
            kicks: self.kicks,
            run: times(|cpu| cpu.run),
            stolen: times(|cpu| cpu.stolen),
            idle: times(|cpu| cpu.idle),
            overhead: times(|cpu| cpu.overhead),
            queue_mean: Thousandths::of(queues.runnable, self.capacity()),
            queue_max: queues.longest,
            waiting_mean: Thousandths::of(queues.waiting, self.elapsed()),
            imbalance_mean: Thousandths::of(queues.imbalance, self.elapsed()),
            idle_while_waiting: span(queues.idle_while_waiting),
        }
    }

    fn cpu_reports(&self) -> Vec<CpuReport> {
        let report = |(cpu, times): (u16, model::CpuTimes)| CpuReport {
            cpu,
            run: times.run,
            stolen: times.stolen,
            idle: times.idle,
            overhead: times.overhead,
            switches: times.switches,
        };
        (0..)
            .zip(self.cpus.iter().map(crate::ledger::CpuLedger::times))
            .map(report)
            .collect()
    }

    fn group_reports(&self) -> Vec<GroupReport> {
        let mut members = vec![Members::default(); self.groups.len()];
        self.tasks
            .iter()
            .for_each(|task| members[task.group as usize].add(task));
        let rows = self.header.groups.iter().zip(&self.groups).zip(&members);
        rows.map(|((named, group), members)| {
            let report = self.group_report(named.name.clone(), named.nice, group, members);
            self.with_answers(report, [group])
        })
        .collect()
    }

    /// The groups by what `family` makes of their names.
    pub(super) fn families(&self, family: &dyn Fn(&str) -> &str) -> Vec<GroupReport> {
        struct Family<'a> {
            name: &'a str,
            nice: i8,
            groups: Vec<&'a Group>,
            group: Group,
            members: Members,
        }
        let mut families: Vec<Family<'_>> = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let mut of_group = Vec::with_capacity(self.groups.len());
        for (named, group) in self.header.groups.iter().zip(&self.groups) {
            let name = family(&named.name);
            let at = *known.entry(name).or_insert_with(|| {
                families.push(Family {
                    name,
                    nice: named.nice,
                    groups: Vec::new(),
                    group: Group::default(),
                    members: Members::default(),
                });
                families.len() - 1
            });
            families[at].groups.push(group);
            families[at].group.merge(group);
            of_group.push(at);
        }
        for task in &self.tasks {
            families[of_group[task.group as usize]].members.add(task);
        }
        let report = |it: &Family<'_>| {
            let name = match it.groups.len() {
                1 => it.name.to_owned(),
                groups => format!("{} ({groups})", it.name),
            };
            let report = self.group_report(name, it.nice, &it.group, &it.members);
            self.with_answers(report, it.groups.iter().copied())
        };
        families.iter().map(report).collect()
    }

    fn all_report(&self) -> GroupReport {
        let mut members = Members::default();
        self.tasks.iter().for_each(|task| members.add(task));
        let whole = self.whole();
        let nice = self.header.groups.first().map_or(0, |group| group.nice);
        let report = self.group_report("all".to_owned(), nice, &whole, &members);
        self.with_answers(report, &self.groups)
    }

    /// All tasks, and what happened to none.
    fn whole(&self) -> Group {
        let mut whole = Group::default();
        let groups = self.groups.iter().chain([&self.nobody]);
        groups.for_each(|group| whole.merge(group));
        whole
    }

    fn group_report(
        &self,
        name: String,
        nice: i8,
        group: &Group,
        members: &Members,
    ) -> GroupReport {
        GroupReport {
            name,
            nice,
            tasks: members.tasks,
            exited: members.exited,
            runs: members.runs,
            wakeup: Spread::from(&group.wakeup),
            start: Spread::from(&group.start),
            preempt: Spread::from(&group.preempt),
            delay: Spread::from(&delay(group)),
            runslice: Spread::from(&group.runslice),
            sleep: Spread::from(&group.sleep),
            turnaround: members.mean_of_jobs(members.turnaround),
            response: members.mean_of_jobs(members.response),
            times: members.times(),
            share: self.share(members.run),
            migrations: members.migrations,
            waiting_at_end: group.waiting.count(),
            waiting_at_end_max: group.waiting.max(),
            met: group.deadlines.values().map(|deadline| deadline.met).sum(),
            missed: group
                .deadlines
                .values()
                .map(super::tasks::Deadline::missed)
                .sum(),
            grows: group.has_forked && self.forks_pile_up(),
        }
    }

    /// The report of these groups, whose waits grow too where requests pile up that they answer:
    /// a wait for the CPU is then a part of an answer whose length is the run's.
    fn with_answers<'a>(
        &self,
        report: GroupReport,
        groups: impl IntoIterator<Item = &'a Group>,
    ) -> GroupReport {
        let mut spans = groups.into_iter().flat_map(|it| it.spans.values());
        GroupReport {
            grows: report.grows || spans.any(|it| self.answers_grow(it)),
            ..report
        }
    }

    fn answers_grow(&self, ended: &Ended) -> bool {
        ended.has_queue && self.still_grew(&ended.course)
    }

    fn still_grew(&self, course: &Course) -> bool {
        let end = self.end.unwrap_or(SimTime::ZERO);
        course.grown_to(end).is_some()
    }

    /// Whether the queue of all CPUs still grew, and is longer than tasks that nobody forked can
    /// make it: where tasks begin one after the other as the load says, it is not their number
    /// that tells a scheduler from another.
    fn forks_pile_up(&self) -> bool {
        let grown = self.queues.grown_to(self.end.unwrap_or(SimTime::ZERO));
        grown.is_some_and(|it| it > self.roots)
    }

    fn deadline_reports(&self) -> Vec<DeadlineReport> {
        self.named(
            |group| &group.deadlines,
            |group, index, deadline| {
                let (name, word) = &self.header.deadlines[index];
                DeadlineReport {
                    group,
                    name: name.clone(),
                    word: word.clone(),
                    met: deadline.met,
                    late: deadline.lateness.count(),
                    skipped: deadline.skipped,
                    missed: deadline.missed(),
                    lateness: Spread::from(&deadline.lateness),
                    // No event tells of messages that wait: the machine does.
                    grows: self.still_grew(&deadline.course),
                }
            },
        )
    }

    fn span_reports(&self) -> Vec<SpanReport> {
        self.named(
            |group| &group.spans,
            |group, index, ended| SpanReport {
                group,
                name: self.header.spans[index].clone(),
                length: Lengths::from(&ended.lengths),
                grows: self.answers_grow(ended),
            },
        )
    }

    fn counter_reports(&self) -> Vec<CounterReport> {
        self.named(
            |group| &group.counters,
            |group, index, &total| CounterReport {
                group,
                name: self.header.counters[index].clone(),
                total,
            },
        )
    }

    fn phase_reports(&self) -> Vec<PhaseReport> {
        self.named(
            |group| &group.phases,
            |group, index, phase| PhaseReport {
                group,
                name: self.header.phases[index].clone(),
                entries: phase.entries,
                time: phase.time,
                run: phase.run,
            },
        )
    }

    /// One row for each entry of one map of each group.
    fn named<T, Row>(
        &self,
        map: impl Fn(&Group) -> &BTreeMap<u32, T>,
        row: impl Fn(String, usize, &T) -> Row,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        let names = self.header.groups.iter().map(|group| group.name.as_str());
        let groups = self.groups.iter().chain([&self.nobody]);
        for (name, group) in names.chain([NOBODY]).zip(groups) {
            let entries = map(group).iter();
            rows.extend(entries.map(|(&at, value)| row(name.to_owned(), at as usize, value)));
        }
        rows
    }

    /// What all tasks ran with each nice value.
    fn run_by_nice(&self) -> [Nanos; NICE_LEVELS] {
        let mut run_by_nice = self.nice_run;
        for (level, run) in self.tasks.iter().map(TaskMetrics::run_with_nice) {
            run_by_nice[level] += run;
        }
        run_by_nice
    }

    fn nice_reports(&self) -> Vec<NiceReport> {
        let levels = (NICE_MIN as i8..).zip(self.run_by_nice());
        levels
            .filter(|(_, run)| !run.is_zero())
            .map(|(nice, run)| NiceReport {
                nice,
                run,
                share: self.share(run.get()),
            })
            .collect()
    }

    fn task_reports(&self) -> Vec<TaskReport> {
        let report = |(number, task): (u32, &TaskMetrics)| TaskReport {
            task: number,
            name: task_name(&self.header, task.group, task.index),
            pid: task.pid,
            nice: task.nice(),
            born: task.born.as_nanos(),
            exited: task.exited.map(SimTime::as_nanos),
            turnaround: task.turnaround().map(|[turnaround, _]| turnaround),
            response: task.turnaround().map(|[_, response]| response),
            runs: task.runs,
            wakeups: task.wakeups,
            times: times(task.times),
            wait_max: task.wait_max,
            share: self.share(task.times.run.get()),
            migrations: task.migrations,
        };
        (0..).zip(&self.tasks).map(report).collect()
    }
}

/// Sums over some tasks. In 128 bits, because many tasks sleep at the same time.
#[derive(Clone, Debug, Default)]
struct Members {
    tasks: u64,
    exited: u64,
    /// Those of them that came to work, and how long that took.
    jobs: u64,
    turnaround: u128,
    response: u128,
    runs: u64,
    migrations: u64,
    run: u128,
    stolen: u128,
    wait: u128,
    sleep: u128,
}

impl Members {
    fn add(&mut self, task: &TaskMetrics) {
        self.tasks += 1;
        self.exited += u64::from(task.exited.is_some());
        if let Some([turnaround, response]) = task.turnaround() {
            self.jobs += 1;
            self.turnaround += u128::from(turnaround.get());
            self.response += u128::from(response.get());
        }
        self.runs += task.runs;
        self.migrations += task.migrations;
        self.run += u128::from(task.times.run.get());
        self.stolen += u128::from(task.times.stolen.get());
        self.wait += u128::from(task.times.wait.get());
        self.sleep += u128::from(task.times.sleep.get());
    }

    /// `sum` divided by the number of tasks that exited, rounded down.
    fn mean_of_jobs(&self, sum: u128) -> Option<Nanos> {
        sum.checked_div(self.jobs.into()).map(span)
    }

    fn times(&self) -> Times {
        Times {
            run: span(self.run),
            stolen: span(self.stolen),
            wait: span(self.wait),
            sleep: span(self.sleep),
        }
    }
}

const fn times(times: TaskTimes) -> Times {
    Times {
        run: times.run,
        stolen: times.stolen,
        wait: times.wait,
        sleep: times.sleep,
    }
}

/// The span of `ns` nanoseconds, or the longest that there is.
fn span(ns: u128) -> Nanos {
    Nanos::new(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// How long tasks of `group` waited for a CPU, whyever they did.
fn delay(group: &Group) -> Histogram {
    let mut delay = group.wakeup.clone();
    delay.merge(&group.start);
    delay.merge(&group.preempt);
    delay
}
