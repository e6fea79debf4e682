//! Time: timers, deadlines, spans, interrupts.

use model::EventKind;

use super::toy::run;
use crate::work::*;

#[test]
fn a_timer_keeps_its_grid_when_the_work_takes_long() {
    let toy =
        run("[task.t]\ndo = \"loop(4)[ timer(10ms), run(1ms), if(self == 0)[ run(3ms) ] ]\"\n");
    let runs = toy.times(|a| *a == Action::Run(Nanos::from_millis(1)));
    assert_eq!(runs, [(10_000, 0), (20_000, 0), (30_000, 0), (40_000, 0)]);
    let toy = run("[task.t]\ndo = \"loop(4)[ timer(10ms), run(15ms) ]\"\n");
    let runs = toy.times(|a| matches!(a, Action::Run(_)));
    assert_eq!(runs, [(10_000, 0), (25_000, 0), (40_000, 0), (55_000, 0)]);
}

const DEADLINE: &str = "[task.t]\n\
    do = \"loop(2)[ release(d), run(25ms), complete(d) ], release(d), run(5ms), complete(d)\"\n\
    [deadline.d]\nperiod = \"10ms\"\n";

#[test]
fn skipped_releases_are_given_up_and_said() {
    let toy = run(DEADLINE);
    // Released at 0 and done at 25; 10 is given up for 20; done at 50. 30 and 40 for 50.
    let want = [
        (EventKind::Deadline, 0, 15_000_000),
        (EventKind::Skipped, 0, 1),
        (EventKind::Deadline, 0, 20_000_000),
        (EventKind::Skipped, 0, 2),
        (EventKind::Deadline, 0, 0),
    ];
    assert_eq!(toy.recorded(), want);
}

#[test]
fn queued_releases_are_made_up_for() {
    let toy = run(&format!("{DEADLINE}passed = \"queue\"\nslack = \"12ms\"\n"));
    // Due at 12, 22 and 32; done at 25, 50 and 55.
    let late = [13, 28, 23].map(|ms| (EventKind::Deadline, 0, ms * 1_000_000));
    assert_eq!(toy.recorded(), late);
}

fn ms(ms: u64) -> SimTime {
    SimTime::ZERO + Nanos::from_millis(ms)
}

#[test]
fn what_is_not_done_at_the_end_is_overdue_with_the_periods_after_it() {
    let toy = run(
        "[task.t]\ndo = \"release(d), run(1ms), complete(d), release(d), suspend\"\n\
                   [deadline.d]\nperiod = \"10ms\"\n",
    );
    // Released at 10 and never done: due at 20, 30, 40.
    assert_eq!(toy.work.overdue(ms(20)), []);
    assert_eq!(toy.work.overdue(ms(45)), [(TaskId(0), 0, 3)]);
    // An exited task owes nothing.
    assert_eq!(run(DEADLINE).work.overdue(ms(1000)), []);
}

#[test]
fn messages_that_nobody_took_are_overdue_when_their_slack_has_passed() {
    let toy = run(
        "[chan.c]\nkind = \"unix\"\n[deadline.d]\nslack = \"16ms\"\n\
                   [irq.i]\nonce = true\nstart = \"8ms\"\nsend = \"c\"\n\
                   [task.t]\ndo = \"suspend, recv(c), release(d), complete(d)\"\n",
    );
    assert_eq!(toy.work.overdue(ms(24)), []);
    assert_eq!(toy.work.overdue(ms(25)), [(TaskId(0), 0, 1)]);
}

#[test]
fn a_deadline_without_a_period_counts_from_the_message() {
    let toy = run(
        "[chan.c]\nkind = \"unix\"\n[deadline.d]\nslack = \"16ms\"\n\
                   [irq.i]\nonce = true\nstart = \"8ms\"\nsend = \"c\"\n\
                   [task.hog]\ndo = \"run(20ms)\"\n\
                   [task.t]\ndo = \"recv(c), release(d), run(5ms), complete(d)\"\n",
    );
    // Sent at 8 while the hog runs; begun at 20, done at 25, due at 24.
    assert_eq!(toy.recorded(), [(EventKind::Deadline, 0, 1_000_000)]);
}

#[test]
fn spans_counters_and_phases_are_recorded_with_their_words() {
    let toy = run("[task.t]\n\
        do = \"phase(a), phase(b), span_begin(s), sleep(2ms), span_end(s), count(n, 3 + self)\"\n");
    let want = [
        (EventKind::Phase, 0, 0),
        (EventKind::Phase, 1, 0),
        (EventKind::SpanBegin, 0, 0),
        (EventKind::SpanEnd, 0, 2_000_000),
        (EventKind::Count, 0, 3),
    ];
    assert_eq!(toy.recorded(), want);
}

#[test]
fn interrupts_keep_their_grid_whatever_their_jitter() {
    let text = "[workload]\nname = \"t\"\n[task.t]\ndo = \"run(1ms)\"\n\
        [irq.i]\nevery = \"8ms\"\nstart = \"1ms\"\njitter = \"exp(4ms)\"\ncost = \"5us\"\n\
        [irq.p]\npoisson = \"2ms\"\ncpu = 1\n[irq.o]\nonce = true\nstart = \"7ms\"\n";
    let workload = Arc::new(Workload::parse(text, "t.toml").unwrap());
    let mut work = Work::new(workload, 2, 3).unwrap();
    let first = work.interrupts();
    assert_eq!(
        first.iter().map(|(_, cpu, _)| cpu.0).collect::<Vec<_>>(),
        [0, 1, 0]
    );
    let (mut now, mut jittered) = (first[0].2, 0);
    for turn in 0..500_u64 {
        let late = now.as_nanos() - (1_000_000 + turn * 8_000_000);
        assert!(late < 8_000_000, "arrival {turn} is {late} ns late");
        jittered += u32::from(late > 0);
        let interrupt = work.interrupt(0, now).unwrap();
        assert_eq!(interrupt.steal, Nanos::from_micros(5));
        now = *interrupt.next.first().expect("a periodic source goes on");
    }
    assert!(jittered > 400, "jitter is drawn");
    let (start, mut now) = (first[1].2, first[1].2);
    for _ in 0..2000 {
        let next = work.interrupt(1, now).unwrap().next;
        now = *next.first().expect("a Poisson source goes on");
    }
    let mean = now.since(start).get() / 2000;
    // The mean of 2000 exponential gaps strays by a tenth with a chance below 1 in 10^5.
    assert!((1_800_000..2_200_000).contains(&mean), "{mean}");
    assert_eq!(work.interrupt(2, first[2].2).unwrap().next, []);
}

#[test]
fn an_interrupt_sends_what_fits_and_resumes_whom_it_names() {
    let toy = run("[chan.c]\nkind = \"queue\"\ncount = 2\ncap = \"3msg\"\n\
                   [irq.i]\nevery = \"1ms\"\nsend = \"c[1]\"\n\
                   [irq.j]\nonce = true\nstart = \"7ms\"\nresume = \"t\"\n\
                   [task.t]\ndo = \"suspend, count(none, len(c[0])), count(some, len(c[1]))\"\n");
    assert_eq!((toy.counted("none"), toy.counted("some")), (0, 3));
    let at: Vec<_> = (toy.events.iter())
        .map(|(time, _, _)| time.as_nanos())
        .collect();
    assert_eq!(at, [7_000_000; 2]);
}

#[test]
fn a_late_timer_of_the_fifth_scenario_is_that_late() {
    let text = include_str!("../../../../../workloads/traces/t5.toml");
    let late = ("late".to_owned(), 2_700);
    let workload = Workload::parse_with(text, "t5.toml", &[late]).unwrap();
    let mut toy = super::toy::Toy::with(workload, 1);
    toy.run().unwrap();
    let sleeps: Vec<_> = (toy.actions.iter())
        .filter_map(|(_, _, action)| match action {
            Action::SleepUntil(time) => Some(time.as_nanos() / 1_000),
            _ => None,
        })
        .collect();
    assert_eq!(sleeps, [5_000, 7_700]);
}
