//! Tables from what the kernel has measured itself, without events.

use live::record::{Distribution, MeasuredTask};
use load::play::{OfKernel, name_stem};
use model::Nanos;
use stats::{GroupReport, Histogram, Millionths, Report, Spread, Tails};
use workload::Workload;

/// Fills in what only the kernel's histograms know. `report` has what the tasks said.
pub fn fill(report: &mut Report, load: &Workload, take: &OfKernel) {
    let time = u128::from(report.machine.elapsed.get()) * u128::from(report.machine.cpus);
    let mut all = MeasuredTask::default();
    let mut others = MeasuredTask::default();
    let mut own = vec![MeasuredTask::default(); load.groups.len()];
    for (name, measured) in &take.measured {
        all.merge(measured);
        match group_of(load, name) {
            Some(group) => own[group].merge(measured),
            None => others.merge(measured),
        }
    }
    for (row, measured) in report.groups.iter_mut().zip(&own) {
        put(row, measured, time);
    }
    put(&mut report.all, &all, time);
    let mut rest = GroupReport {
        name: "others".to_owned(),
        nice: 0,
        tasks: 0,
        exited: 0,
        met: 0,
        missed: 0,
        ..report.all.clone()
    };
    put(&mut rest, &others, time);
    report.groups.push(rest);
    for &(group, counter, total) in &take.sums {
        report.counters.push(stats::CounterReport {
            group: load.groups[group as usize].name.clone(),
            name: load.counters[counter as usize].clone(),
            total,
        });
    }
    let totals = &take.totals;
    let machine = &mut report.machine;
    machine.switches = totals.switches;
    machine.wakeups = totals.wakeups + totals.starts;
    machine.migrations = totals.migrations;
    machine.run = report.all.share;
    machine.idle = Millionths(1_000_000_u64.saturating_sub(report.all.share.0));
    // What no histogram knows: the turns of single CPUs and tasks.
    report.cpus.clear();
    report.nice.clear();
    report.tasks.clear();
}

/// The group whose tasks the kernel calls so.
fn group_of(load: &Workload, name: &str) -> Option<usize> {
    let mut groups = (0..).zip(&load.groups);
    groups.position(|(at, _)| name_stem(load, at) == name)
}

/// The waits of each group after wakeups and preemptions.
pub fn waits(load: &Workload, take: &OfKernel) -> Tails {
    let mut groups: Vec<(String, Histogram)> = load
        .groups
        .iter()
        .map(|group| (group.name.clone(), Histogram::new()))
        .collect();
    for (name, measured) in &take.measured {
        let Some(group) = group_of(load, name) else {
            continue;
        };
        for (wait, times) in measured.delay().values() {
            groups[group].1.record_times(wait, times);
        }
    }
    Tails::new(groups)
}

fn put(row: &mut GroupReport, measured: &MeasuredTask, time: u128) {
    row.wakeup = spread(&measured.wakeup);
    row.preempt = spread(&measured.preempt);
    row.delay = spread(&measured.delay());
    row.runslice = spread(&measured.runslice);
    row.start.count = measured.starts;
    row.runs = measured.runslice.count;
    row.migrations = measured.migrations;
    row.times.run = sum(&measured.runslice);
    row.times.wait = sum(&measured.delay());
    row.share = Millionths::of(measured.runslice.sum, time);
}

fn sum(distribution: &Distribution) -> Nanos {
    Nanos::new(u64::try_from(distribution.sum).unwrap_or(u64::MAX))
}

fn spread(distribution: &Distribution) -> Spread {
    Spread {
        count: distribution.count,
        mean: distribution.mean(),
        p50: distribution.quantile(500),
        p99: distribution.quantile(990),
        max: distribution.max(),
    }
}
