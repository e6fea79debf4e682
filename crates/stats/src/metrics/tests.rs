use model::EventKind;

use super::*;
use crate::report::{GroupReport, Millionths, Thousandths};
use traces::testing::StreamWriter;

const RUNNABLE: PrevState = PrevState::Runnable;
const SLEEPING: PrevState = PrevState::Sleeping;
const DEAD: PrevState = PrevState::Dead;

fn report(stream: &StreamWriter, cpus: u16, end: u64) -> Report {
    let mut metrics = Metrics::new();
    stream.feed(&mut metrics, cpus, end);
    metrics.report()
}

fn ns(span: Option<Nanos>) -> Option<u64> {
    span.map(Nanos::get)
}

fn times(group: &GroupReport) -> [u64; 4] {
    let times = group.times;
    [times.run, times.stolen, times.wait, times.sleep].map(Nanos::get)
}

/// One task that starts, sleeps, wakes behind another, is preempted, and exits.
///
/// ```text
/// ns    0   10        40   50      70   80        100  110   120  130
/// solo  new run       sleep                wake ... run  wait  run  exit
/// pair            start    run ........................  |  run |
/// ```
fn two_tasks_on_one_cpu() -> StreamWriter {
    StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .switch(10, 0, None, Some(0))
        .born(20, 1, 1, 0)
        .start(25, 1, 0)
        .switch(40, 0, Some((0, SLEEPING)), Some(1))
        .wakeup(80, 0, 0)
        .switch(100, 0, Some((1, RUNNABLE)), Some(0))
        .switch(110, 0, Some((0, RUNNABLE)), Some(1))
        .switch(120, 0, Some((1, SLEEPING)), Some(0))
        .switch(130, 0, Some((0, DEAD)), None)
        .exit(130, 0, 0)
}

#[test]
fn waits_are_those_after_wakeups_and_preemptions() {
    let mut metrics = Metrics::new();
    two_tasks_on_one_cpu().feed(&mut metrics, 1, 150);
    let waits = metrics.waits();
    let solo = metrics.report().groups[0].name.clone();
    let values: Vec<_> = waits.find(&solo).unwrap().values().collect();
    // After its wakeup 20, after its preemption 10; its start's 10 are left out.
    assert_eq!(values, [(10, 1), (20, 1)]);
    assert_eq!(metrics.tails().find(&solo).unwrap().count(), 3);
}

#[test]
fn each_wait_starts_and_stops_where_its_definition_says() {
    let report = report(&two_tasks_on_one_cpu(), 1, 150);
    let [solo, pair] = &report.groups[..] else {
        panic!("two groups")
    };
    // solo: started at 0, ran at 10; woken at 80, ran at 100; preempted at 110, ran at 120.
    assert_eq!((solo.start.count, ns(solo.start.max)), (1, Some(10)));
    assert_eq!((solo.wakeup.count, ns(solo.wakeup.p50)), (1, Some(20)));
    assert_eq!((solo.preempt.count, ns(solo.preempt.max)), (1, Some(10)));
    assert_eq!(
        (solo.delay.count, ns(solo.delay.p50), ns(solo.delay.max)),
        (3, Some(10), Some(20))
    );
    assert_eq!((solo.sleep.count, ns(solo.sleep.max)), (1, Some(40)));
    // Turns 10..40, 100..110 and 120..130.
    assert_eq!((solo.runs, solo.runslice.count), (3, 3));
    assert_eq!(
        (ns(solo.runslice.p50), ns(solo.runslice.max)),
        (Some(10), Some(30))
    );
    // pair: started at 25, ran at 40; preempted at 100, ran at 110; asleep since 120.
    assert_eq!((pair.start.count, ns(pair.start.max)), (1, Some(15)));
    assert_eq!((pair.preempt.count, ns(pair.preempt.max)), (1, Some(10)));
    assert_eq!((pair.wakeup.count, pair.wakeup.p50), (0, None));
}

#[test]
fn a_kernels_histograms_are_compared_with_every_turn() {
    let stream = job_that_sleeps_first().switch(60, 0, Some((0, DEAD)), None);
    let mut metrics = Metrics::of_every_turn();
    stream.exit(60, 0, 0).feed(&mut metrics, 1, 100);
    let job = &metrics.report().groups[0];
    assert_eq!((job.wakeup.count, job.runslice.count), (2, 2));
}

/// A job that comes by a sleep: it has the CPU for no time, sleeps, and then works.
fn job_that_sleeps_first() -> StreamWriter {
    StreamWriter::new()
        .born(0, 0, 0, 0)
        .wakeup(0, 0, 0)
        .switch(4, 0, None, Some(0))
        .switch(4, 0, Some((0, SLEEPING)), None)
        .wakeup(10, 0, 0)
        .switch(40, 0, None, Some(0))
}

#[test]
fn a_turn_without_work_is_in_no_distribution() {
    let stream = job_that_sleeps_first().switch(60, 0, Some((0, DEAD)), None);
    let job = &report(&stream.exit(60, 0, 0), 1, 100).groups[0];
    assert_eq!((job.wakeup.count, ns(job.wakeup.mean)), (1, Some(30)));
    assert_eq!((job.delay.count, ns(job.delay.mean)), (1, Some(30)));
    assert_eq!((job.runslice.count, ns(job.runslice.mean)), (1, Some(20)));
    // The totals have it.
    assert_eq!((job.runs, job.times.wait.get()), (2, 34));
    let mut metrics = Metrics::new();
    let stream = job_that_sleeps_first().switch(60, 0, Some((0, DEAD)), None);
    stream.exit(60, 0, 0).feed(&mut metrics, 1, 100);
    let as_a_kernel = metrics.waits();
    assert_eq!(as_a_kernel.find("solo").unwrap().count(), 2);
    // A job that has only slept so far has waited for nothing, and nor has one at its end.
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .wakeup(0, 0, 0)
        .switch(4, 0, None, Some(0))
        .switch(4, 0, Some((0, DEAD)), None);
    assert_eq!(report(&stream.exit(4, 0, 0), 1, 100).all.delay.count, 0);
}

#[test]
fn a_turn_in_which_a_task_wakes_another_or_that_follows_a_preemption_is_not_empty() {
    let stream = job_that_sleeps_first()
        .born(40, 1, 1, 0)
        .on(40, EventKind::Wakeup, 1, 0, 0)
        .switch(40, 0, Some((0, SLEEPING)), Some(1))
        .switch(50, 0, Some((1, RUNNABLE)), None)
        .switch(70, 0, None, Some(1))
        .switch(70, 0, Some((1, SLEEPING)), None);
    let report = report(&stream, 1, 100);
    let [waker, woken] = &report.groups[..] else {
        panic!("two groups")
    };
    assert_eq!((waker.wakeup.count, ns(waker.wakeup.max)), (1, Some(30)));
    assert_eq!((woken.preempt.count, ns(woken.preempt.max)), (1, Some(20)));
    assert_eq!(woken.runslice.count, 2);
}

#[test]
fn tasks_that_only_wake_and_sleep_have_waits() {
    let mut stream = StreamWriter::new().born(0, 0, 0, 0);
    for turn in 0..3 {
        stream = stream
            .wakeup(10 * turn, 0, 0)
            .switch(10 * turn + 2, 0, None, Some(0))
            .switch(10 * turn + 2, 0, Some((0, SLEEPING)), None);
    }
    let group = &report(&stream, 1, 100).groups[0];
    assert_eq!((group.wakeup.count, ns(group.wakeup.mean)), (3, Some(2)));
    assert_eq!((group.runslice.count, ns(group.runslice.max)), (3, Some(0)));
}

#[test]
fn a_span_that_another_task_ends_has_a_queue_that_may_grow_and_a_tasks_own_has_none() {
    let grows = |ends: u32| {
        let mut stream = StreamWriter::new().born(0, 0, 0, 0).born(0, 1, 1, 0);
        for n in 0..200 {
            let (now, length) = (n * 1_000_000, n * 10_000);
            stream = stream.on(now, EventKind::SpanBegin, 0, 0, 0).on(
                now,
                EventKind::SpanEnd,
                ends,
                0,
                length,
            );
        }
        let report = report(&stream, 1, 200_000_000);
        let waits = report.groups.iter().map(|it| it.grows).collect::<Vec<_>>();
        (report.spans[0].grows, waits, report.all.grows)
    };
    // The waits of who answers are a part of the answers.
    assert_eq!(grows(1), (true, vec![false, true], true), "of task 1");
    assert_eq!(grows(0), (false, vec![false, false], false), "its own");
}

#[test]
fn a_deadline_whose_lateness_still_grows_at_the_end_says_so() {
    let grows = |late: fn(u64) -> u64| {
        let mut stream = StreamWriter::new().born(0, 0, 0, 0);
        for n in 0..200 {
            stream = stream.on(n * 1_000_000, EventKind::Deadline, 0, 0, late(n));
        }
        report(&stream, 1, 200_000_000).deadlines[0].grows
    };
    assert!(grows(|n| n * 10_000), "passed periods queue up");
    assert!(!grows(|n| n % 7 * 10_000), "a busy machine");
    assert!(!grows(|_| 0), "all met");
}

#[test]
fn the_four_times_of_a_task_sum_to_its_lifetime() {
    let report = report(&two_tasks_on_one_cpu(), 1, 150);
    assert_eq!(times(&report.groups[0]), [50, 0, 40, 40]); // 130 from birth to exit.
    assert_eq!(times(&report.groups[1]), [70, 0, 25, 35]); // 130 from birth to the end.
    assert_eq!(times(&report.all), [120, 0, 65, 75]);
    let solo = &report.tasks[0];
    assert_eq!(
        (solo.born, solo.exited, solo.runs, solo.wakeups),
        (0, Some(130), 3, 2)
    );
    assert_eq!(
        (solo.name.as_str(), solo.pid, solo.wait_max.get()),
        ("solo", 1000, 20)
    );
    assert_eq!(
        (report.tasks[1].name.as_str(), report.tasks[1].exited),
        ("pair.0", None)
    );
}

#[test]
fn the_machine_has_switches_shares_and_queues() {
    let report = report(&two_tasks_on_one_cpu(), 1, 150);
    let machine = report.machine;
    assert_eq!(
        (machine.switches, machine.wakeups, machine.migrations),
        (6, 3, 0)
    );
    assert_eq!(machine.run, Millionths(800_000)); // 120 of 150.
    assert_eq!(machine.idle, Millionths(200_000));
    assert_eq!(report.groups[0].share, Millionths(333_333)); // 50 of 150.
    // One task at the CPU in 0..25, 40..80 and 120..130; two in 25..40 and 80..120.
    assert_eq!(
        machine.queue_mean,
        Thousandths::of(25 + 40 + 10 + 2 * (15 + 40), 150)
    );
    assert_eq!(machine.queue_max, 2);
    // One waits in 0..10, 25..40, 80..120; in the first of these the CPU idles.
    assert_eq!(machine.waiting_mean, Thousandths::of(10 + 15 + 40, 150));
    assert_eq!(machine.idle_while_waiting.get(), 10);
}

#[test]
fn kernel_time_is_no_part_of_a_runslice() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .switch(0, 0, None, Some(0))
        .overhead(5)
        .steal(20, 0, Some(0), 10)
        .switch(50, 0, Some((0, SLEEPING)), None)
        .overhead(7)
        .steal(60, 0, None, 3);
    let report = report(&stream, 1, 100);
    assert_eq!(ns(report.groups[0].runslice.max), Some(35));
    assert_eq!(times(&report.groups[0]), [35, 15, 0, 50]);
    let cpu = report.cpus[0];
    let cpu = [cpu.run, cpu.stolen, cpu.idle, cpu.overhead].map(Nanos::get);
    assert_eq!(cpu, [35, 13, 40, 12]);
}

#[test]
fn stolen_time_queues_behind_what_was_announced_before_and_ends_with_the_run() {
    let stream = StreamWriter::new()
        .steal(10, 0, None, 10)
        .steal(15, 0, None, 10)
        .steal(90, 0, None, 50);
    let cpu = report(&stream, 1, 100).cpus[0];
    assert_eq!((cpu.stolen.get(), cpu.idle.get()), (30, 70));
}

#[test]
fn a_task_that_starves_shows_although_its_wait_never_ends() {
    let stream = StreamWriter::new()
        .born(0, 0, 1, 0)
        .born(0, 1, 1, 1)
        .start(0, 0, 0)
        .start(0, 1, 0)
        .switch(0, 0, None, Some(0));
    let report = report(&stream, 1, 900);
    let pair = &report.groups[1];
    assert_eq!(
        (pair.waiting_at_end, ns(pair.waiting_at_end_max)),
        (1, Some(900))
    );
    assert_eq!((pair.delay.count, ns(pair.delay.max)), (1, Some(0)));
    assert_eq!(pair.times.wait.get(), 900);
    assert_eq!(report.tasks[1].wait_max.get(), 900);
    // The turn that did not end is a run and no runslice.
    assert_eq!(
        (pair.runs, pair.runslice.count, pair.times.run.get()),
        (1, 0, 900)
    );
}

#[test]
fn a_migration_moves_the_load_and_a_first_placement_is_none() {
    let stream = StreamWriter::new()
        .born(0, 0, 1, 0)
        .born(0, 1, 1, 1)
        .migrate(0, 0, 0, 1)
        .start(0, 0, 1)
        .start(0, 1, 1)
        .switch(0, 1, None, Some(0))
        .migrate(40, 1, 1, 0)
        .switch(40, 0, None, Some(1));
    let report = report(&stream, 2, 100);
    assert_eq!(
        (report.groups[1].migrations, report.tasks[1].migrations),
        (1, 1)
    );
    assert_eq!(report.machine.migrations, 1);
    // Two tasks at CPU 1 and none at CPU 0 for 40 of 100.
    assert_eq!(report.machine.imbalance_mean, Thousandths(800));
    assert_eq!(report.machine.idle_while_waiting.get(), 40);
    assert_eq!(ns(report.groups[1].start.max), Some(40));
}

/// As setpriority(2) takes them.
#[test]
fn nice_values_beyond_the_last_are_the_last() {
    for (said, want) in [(i64::MAX, 19), (20, 19), (19, 19), (-20, -20), (-21, -20)] {
        let stream = StreamWriter::new()
            .born(0, 0, 0, 0)
            .start(0, 0, 0)
            .switch(0, 0, None, Some(0))
            .on(0, EventKind::Change, 0, 0, said.cast_unsigned());
        let report = report(&stream, 1, 100);
        assert_eq!(report.tasks[0].nice, want, "{said}");
        let nice: Vec<_> = report
            .nice
            .iter()
            .map(|row| (row.nice, row.run.get()))
            .collect();
        assert_eq!(nice, [(want, 100)], "{said}");
    }
}

#[test]
fn run_time_counts_for_the_nice_value_that_the_task_had_then() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .switch(0, 0, None, Some(0))
        .on(30, EventKind::Change, 0, 0, (-5_i64).cast_unsigned())
        .on(60, EventKind::Change, 0, 1, 1)
        .switch(100, 0, Some((0, SLEEPING)), None);
    let report = report(&stream, 1, 100);
    let nice: Vec<_> = report
        .nice
        .iter()
        .map(|row| (row.nice, row.run.get()))
        .collect();
    assert_eq!(nice, [(-5, 70), (0, 30)]);
    assert_eq!(report.nice[0].share, Millionths(700_000));
    assert_eq!((report.tasks[0].nice, report.groups[0].nice), (-5, 0));
    // A change of a running task does not split its runslice.
    assert_eq!(
        (report.groups[0].runslice.count, report.groups[0].runs),
        (1, 1)
    );
}

#[test]
fn deadlines_count_met_late_and_skipped() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .on(10, EventKind::Deadline, 0, 0, 0)
        .on(20, EventKind::Deadline, 0, 0, 400)
        .on(30, EventKind::Deadline, 0, 0, 100)
        .on(40, EventKind::Skipped, 0, 0, 3);
    let report = report(&stream, 1, 50);
    let [frame] = &report.deadlines[..] else {
        panic!("one deadline")
    };
    assert_eq!(
        (frame.group.as_str(), frame.name.as_str()),
        ("solo", "frame")
    );
    assert_eq!(frame.word, "missed frame");
    assert_eq!(
        (frame.met, frame.late, frame.skipped, frame.missed),
        (1, 2, 3, 5)
    );
    assert_eq!(
        (ns(frame.lateness.p50), ns(frame.lateness.max)),
        (Some(100), Some(400))
    );
    assert_eq!((report.groups[0].met, report.groups[0].missed), (1, 5));
    assert_eq!((report.groups[1].missed, report.all.missed), (0, 5));
}

#[test]
fn spans_counters_and_phases_have_their_own_tables() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .on(0, EventKind::SpanBegin, 0, 0, 0)
        .on(0, EventKind::Phase, 0, 1, 0)
        .switch(10, 0, None, Some(0))
        .on(40, EventKind::Phase, 0, 0, 0)
        .on(40, EventKind::Count, 0, 0, 2)
        .on(50, EventKind::Count, 0, 0, 3)
        .on(60, EventKind::SpanEnd, 0, 0, 60)
        .on(65, EventKind::SpanEnd, 0, 0, 5)
        .on(70, EventKind::Phase, 0, 1, 0);
    let report = report(&stream, 1, 100);
    assert_eq!(report.spans[0].name, "request");
    let length = &report.spans[0].length;
    assert_eq!(
        (length.count, ns(length.max), ns(length.min)),
        (2, Some(60), Some(5))
    );
    assert_eq!(
        (report.counters[0].name.as_str(), report.counters[0].total),
        ("messages", 5)
    );
    let phases: Vec<_> = report
        .phases
        .iter()
        .map(|phase| {
            (
                phase.name.as_str(),
                phase.entries,
                phase.time.get(),
                phase.run.get(),
            )
        })
        .collect();
    // work: 0..40, of which 30 ran, and 70..100; think: 40..70.
    assert_eq!(phases, [("think", 1, 30, 30), ("work", 2, 70, 60)]);
}

#[test]
fn what_an_interrupt_did_belongs_to_no_group() {
    let none = TaskId::NONE.0;
    let stream = StreamWriter::new().on(10, EventKind::Count, none, 0, 4).on(
        10,
        EventKind::Deadline,
        none,
        0,
        9,
    );
    let report = report(&stream, 1, 50);
    assert_eq!(
        (report.counters[0].group.as_str(), report.counters[0].total),
        ("-", 4)
    );
    assert_eq!(
        (report.deadlines[0].group.as_str(), report.all.missed),
        ("-", 1)
    );
}

#[test]
fn a_wakeup_of_a_task_that_is_awake_starts_no_new_wait() {
    let stream = StreamWriter::new()
        .born(0, 0, 0, 0)
        .start(0, 0, 0)
        .wakeup(30, 0, 0)
        .switch(50, 0, None, Some(0))
        .wakeup(60, 0, 0);
    let report = report(&stream, 1, 100);
    assert_eq!(
        (
            report.groups[0].wakeup.count,
            ns(report.groups[0].start.max)
        ),
        (0, Some(50))
    );
    assert_eq!(report.tasks[0].wakeups, 1);
}

#[test]
#[should_panic(expected = "a report needs a run that is over")]
fn a_report_before_the_end_is_a_bug() {
    let mut metrics = Metrics::new();
    metrics.begin(&traces::testing::header(1));
    let _ = metrics.report();
}

#[test]
fn spans_of_several_groups_are_put_together_by_kind() {
    let mut metrics = Metrics::new();
    two_tasks_on_one_cpu().feed(&mut metrics, 1, 150);
    let of = |kind, wanted: &dyn Fn(&str) -> bool| {
        let pooled = metrics.pooled(kind, wanted);
        (pooled.count(), pooled.sum())
    };
    let report = metrics.report();
    let [solo, pair] = &report.groups[..] else {
        panic!("two groups")
    };
    assert_eq!(of(SpanKind::Wakeup, &|_| true), (1, 20));
    assert_eq!(of(SpanKind::Wakeup, &|name| name == pair.name), (0, 0));
    let both = solo.delay.count + pair.delay.count;
    assert_eq!(of(SpanKind::Delay, &|_| true).0, both);
    assert_eq!(
        of(SpanKind::Runslice, &|name| name == solo.name).0,
        solo.runs
    );
    assert_eq!(of(SpanKind::Sleep, &|name| name == solo.name), (1, 40));
    assert_eq!(of(SpanKind::Span("none"), &|_| true), (0, 0));
}

#[test]
fn a_job_comes_when_it_has_work_and_not_when_it_only_sleeps_first() {
    let stream = job_that_sleeps_first().switch(60, 0, Some((0, DEAD)), None);
    let report_of = report(&stream.exit(60, 0, 0), 1, 100);
    let job = &report_of.tasks[0];
    // Woken for its work at 10, ran at 40, exited at 60.
    assert_eq!((ns(job.turnaround), ns(job.response)), (Some(50), Some(30)));
    // solo: runnable at 0, ran at 10, exited at 130. pair never exits and is no job.
    let report = report(&two_tasks_on_one_cpu(), 1, 150);
    let jobs = report.tasks.iter();
    let jobs: Vec<_> = jobs
        .map(|it| (ns(it.turnaround), ns(it.response)))
        .collect();
    assert_eq!(jobs, [(Some(130), Some(10)), (None, None)]);
    let all = &report.all;
    assert_eq!(
        (ns(all.turnaround), ns(all.response)),
        (Some(130), Some(10))
    );
    assert_eq!(report.groups[1].turnaround, None);
}
