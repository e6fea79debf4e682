//! Version 4 of the scheduler statistics, written from simulated runs: what "The Cursor Wiggles
//! Faster" (2004) and its patch say of the counters holds for ours.

use model::Nanos;
use runslice_tests::models::runs;
use runslice_tests::run::Run;
use sim::Simulation;
use stats::schedstat::{Bookkeeper, Bookkeeping, CpuCounters, SchedstatReader, Snapshot};
use traces::TraceHash;
use workload::RunSpec;

/// Tasks that leave CPUs idle now and then, yield, fork, sleep and compute, on a few CPUs.
const MIXED: &str = r#"
[task.hog]
do = "loop(inf)[ run(400ms), sleep(150ms) ]"
count = 3
[task.sleeper]
do = "loop(inf)[ sleep(uniform(1ms, 30ms)), run(exp(4ms)) ]"
count = 6
[task.polite]
do = "loop(inf)[ run(700us), yield, sleep(exp(3ms)) ]"
count = 2
[task.parent]
do = "loop(inf)[ run(1ms), fork(child), waitpid(any), sleep(90ms) ]"
[task.child]
count = 0
do = "run(25ms)"
[task.nice]
nice = 19
do = "loop(inf)[ run(3ms), sleep(2ms) ]"
"#;

fn mixed(policy: &'static str, cpus: u16) -> RunSpec {
    Run {
        cpus,
        until: Nanos::from_secs(20),
        ..Run::new(policy, MIXED)
    }
    .spec()
}

fn snapshots(spec: &RunSpec, bookkeeping: Bookkeeping) -> Vec<Snapshot> {
    let mut books = Bookkeeper::new(bookkeeping, Vec::new());
    let every = Nanos::from_millis(250);
    let sampled = Simulation::new(spec).sampled(&mut books, every);
    sampled.start().expect("a run");
    let text = books.close().expect("memory takes every write");
    let mut reader = SchedstatReader::new(text.as_slice());
    let mut snapshots = Vec::new();
    while let Some(snapshot) = reader.next_snapshot().expect("what we write is read") {
        snapshots.push(snapshot);
    }
    snapshots
}

fn of(cpu: CpuCounters<'_>, name: &str) -> u64 {
    cpu.get(name).expect("a counter of version 4")
}

fn sum(snapshot: &Snapshot, name: &str) -> u64 {
    snapshot.cpus().map(|cpu| of(cpu, name)).sum()
}

/// The invariants of the counters, by the patch's increment points.
fn check(snapshot: &Snapshot, what: &str) {
    for cpu in snapshot.cpus() {
        let f = |name| of(cpu, name);
        let what = format!("{what}, {} ms, cpu{}", snapshot.timestamp(), cpu.number());
        assert_eq!(
            f("lb_cnt"),
            f("lb_idle") + f("lb_busy") + f("lb_resched") + f("lb_bnode"),
            "{what}"
        );
        assert!(f("pt_node_gained") <= f("pt_gained"), "{what}");
        assert!(f("pt_node_lost") <= f("pt_lost"), "{what}");
        assert!(f("bn_idle") <= f("bn_cnt"), "{what}");
        assert!(f("lb_bnode") <= f("bn_cnt"), "{what}");
        assert!(f("lb_nobusy") <= f("lb_cnt"), "{what}");
        assert_eq!(f("pcnt"), f("sched_noswitch"), "{what}");
        assert!(f("sched_switch") <= f("sched_noswitch"), "{what}");
        assert!(f("sched_noswitch") <= f("sched_cnt"), "{what}");
        assert!(f("yld_both_empty") <= f("yld_act_empty"), "{what}");
        assert!(
            f("yld_act_empty") + f("yld_exp_empty") <= f("yld_cnt"),
            "{what}"
        );
        assert!(f("cpu_time") <= snapshot.timestamp(), "{what}");
    }
    assert_eq!(
        sum(snapshot, "pt_gained"),
        sum(snapshot, "pt_lost"),
        "{what}"
    );
    let totals = snapshot.totals().expect("version 4 has totals");
    let names = snapshot.layout().cpu.iter().map(|field| field.name);
    for (total, name) in totals.iter().zip(names) {
        assert_eq!(*total, sum(snapshot, name), "{what}: totals of {name}");
    }
}

#[test]
fn the_counters_of_o1_keep_the_invariants_of_version_4() {
    for bookkeeping in [Bookkeeping::V4, Bookkeeping::Full] {
        let snapshots = snapshots(&mixed("o1", 4), bookkeeping);
        assert_eq!(snapshots.len(), 81, "at zero and every 250 ms of 20 s");
        let mut before = vec![0; 23];
        for snapshot in &snapshots {
            check(snapshot, "o1");
            let now = snapshot.cpu(1).expect("CPU 1").values();
            assert!(
                before.iter().zip(now).all(|(a, b)| a <= b),
                "{before:?} {now:?}"
            );
            before = now.to_vec();
        }
        let last = snapshots.last().expect("snapshots");
        let names = [
            "yld_cnt",
            "sched_switch",
            "lb_busy",
            "lb_resched",
            "lb_imbalance",
            "pt_gained",
        ];
        for name in names {
            assert!(
                sum(last, name) > 0,
                "{name} never moved: the run shows nothing"
            );
        }
    }
}

#[test]
fn what_moves_between_nodes_is_counted_where_it_comes_and_where_it_goes() {
    for policy in ["o1", "mlfq", "staircase", "staircase5"] {
        let mut spec = mixed(policy, 4);
        let one = snapshots(&spec, Bookkeeping::Full);
        spec.machine.node = 2;
        let two = snapshots(&spec, Bookkeeping::Full);
        let [one, two] = [&one, &two].map(|it| it.last().expect("snapshots"));
        for name in [
            "lb_bnode",
            "pt_node_gained",
            "pt_node_lost",
            "bn_cnt",
            "bn_idle",
        ] {
            assert_eq!(sum(one, name), 0, "{policy}: {name} of one node");
            assert!(sum(two, name) > 0, "{policy}: {name} never moved");
        }
        check(two, policy);
        assert_eq!(
            sum(two, "pt_node_gained"),
            sum(two, "pt_node_lost"),
            "{policy}"
        );
    }
}

#[test]
fn an_idle_cpu_balances_once_a_millisecond_and_a_busy_one_five_times_a_second() {
    let derived = mixed("o1", 4);
    let mut counted = derived.clone();
    let idle_ns = ("idle_ns".to_owned(), "1000000".to_owned());
    counted.policy.set.push(idle_ns);
    for spec in [derived, counted] {
        balances_once_a_millisecond_or_five_times_a_second(&spec);
    }
}

fn balances_once_a_millisecond_or_five_times_a_second(spec: &RunSpec) {
    let snapshots = snapshots(spec, Bookkeeping::Full);
    let last = snapshots.last().expect("snapshots");
    for cpu in last.cpus() {
        let uptime = last.timestamp();
        let covered = of(cpu, "lb_idle") + of(cpu, "cpu_time");
        // As in the paper's sample: within 0.3 % of the time that the machine was up. A look that
        // finds work is one look more, because the millisecond it begins is busy then.
        let found = of(cpu, "lb_cnt") - of(cpu, "lb_nobusy");
        assert!(
            covered * 1000 >= uptime * 997 && covered * 1000 <= uptime * 1003 + found * 1000,
            "cpu{}: {covered} ms of {uptime}",
            cpu.number()
        );
        assert!(of(cpu, "lb_idle") > 100, "the run has too little idle time");
        let busy = of(cpu, "lb_busy");
        assert!(busy <= uptime / 200, "cpu{}: {busy}", cpu.number());
    }
}

#[test]
fn waits_of_preempted_tasks_count_in_the_full_books_only() {
    let [v4, full] = [Bookkeeping::V4, Bookkeeping::Full].map(|bookkeeping| {
        let snapshots = snapshots(&mixed("o1", 2), bookkeeping);
        sum(snapshots.last().expect("snapshots"), "run_delay")
    });
    assert!(v4 < full, "{v4} and {full} ms");
    assert!(v4 > 0);
}

#[test]
fn the_full_books_say_what_the_metrics_say() {
    for policy in [
        "fifo",
        "goodness",
        "elsc",
        "o1",
        "staircase",
        "staircase5",
        "mlfq",
        "cfs",
        "eevdf",
    ] {
        let spec = mixed(policy, 2);
        let snapshots = snapshots(&spec, Bookkeeping::Full);
        let last = snapshots.last().expect("snapshots");
        check(last, policy);
        let mut metrics = stats::Metrics::new();
        sim::run(&spec, &mut metrics).expect("a run");
        let report = metrics.report();
        let ms = |time: Nanos| time.get() / 1_000_000;
        let run: u64 = report.cpus.iter().map(|cpu| ms(cpu.run)).sum();
        assert!(
            sum(last, "cpu_time").abs_diff(run) <= 2,
            "{policy}: {run} ms"
        );
        let wait = report
            .tasks
            .iter()
            .map(|task| task.times.wait.get())
            .sum::<u64>()
            / 1_000_000;
        // Waits that are open at the end are in the metrics only.
        let open = report.tasks.len() as u64 * 1_000;
        let counted = sum(last, "run_delay");
        assert!(
            counted <= wait && counted + open >= wait,
            "{policy}: {counted} of {wait} ms"
        );
    }
}

#[test]
fn random_runs_keep_the_invariants_and_sampling_changes_no_event() {
    for seed in 0..40 {
        let spec = runs::one_cpu("o1", Vec::new(), seed);
        for snapshot in snapshots(&spec, Bookkeeping::V4) {
            check(&snapshot, &format!("seed {seed}"));
        }
        if seed % 8 == 0 {
            let mut alone = TraceHash::new();
            sim::run(&spec, &mut alone).expect("a run");
            let mut sampled = Sampled(TraceHash::new(), 0);
            Simulation::new(&spec)
                .sampled(&mut sampled, Nanos::from_millis(1))
                .start()
                .expect("a run");
            assert_eq!(alone.value(), sampled.0.value(), "seed {seed}");
            assert_eq!(sampled.1, 2001, "seed {seed}: samples in 2 s");
        }
    }
}

/// Events, and how often it was shown the machine.
struct Watched(TraceHash, u64);

impl model::Sink for Watched {
    fn wants(&self) -> model::EventMask {
        self.0.wants()
    }

    fn begin(&mut self, header: &model::Header) {
        self.0.begin(header);
    }

    fn events(&mut self, events: &[model::Event]) {
        self.0.events(events);
    }

    fn finish(&mut self, end: model::SimTime) {
        self.0.finish(end);
    }
}

impl sim::Watcher for Watched {
    fn look(&mut self, _: &sim::View<'_>) {
        self.1 += 1;
    }
}

#[test]
fn a_sink_a_watcher_and_a_sampler_share_one_run_within_limits() {
    let spec = runs::one_cpu("o1", Vec::new(), 1);
    let mut alone = TraceHash::new();
    let summary = sim::run(&spec, &mut alone).expect("a run");
    let (mut heard, mut sampled) = (TraceHash::new(), Sampled(TraceHash::new(), 0));
    let mut watched = Watched(TraceHash::new(), 0);
    let limited = |total| sim::Options {
        total_budget: Some(total),
        ..sim::Options::default()
    };
    let finished = Simulation::new(&spec)
        .with_sink(&mut heard)
        .watched(&mut watched)
        .sampled(&mut sampled, Nanos::from_millis(1))
        .with_options(limited(summary.instructions + 1_000_000))
        .tallied()
        .start()
        .expect("a run");
    let hashes = [heard, watched.0, sampled.0].map(|it| it.value());
    assert_eq!(hashes, [alone.value(); 3]);
    assert_eq!(finished.summary, summary);
    assert!(finished.tally.contains_key("dispatch"));
    assert_eq!(sampled.1, 2001, "samples in 2 s");
    assert!(watched.1 > 2001, "shown after each moment: {}", watched.1);
    let mut sampled = Sampled(TraceHash::new(), 0);
    let stopped = Simulation::new(&spec)
        .sampled(&mut sampled, Nanos::from_millis(1))
        .with_options(limited(1_000))
        .start()
        .expect("a run");
    assert!(
        stopped.summary.exit.kind.is_error(),
        "{:?}",
        stopped.summary.exit
    );
}

/// What CPU 0 has counted at the end, and how many switches to a task there were.
#[derive(Default)]
struct Counted {
    last: model::CpuCounts,
    switches: u64,
}

impl model::Sink for Counted {
    fn wants(&self) -> model::EventMask {
        model::EventMask::NONE.with(model::EventKind::Switch)
    }

    fn begin(&mut self, _: &model::Header) {}

    fn events(&mut self, events: &[model::Event]) {
        let switches = events
            .iter()
            .filter(|it| it.kind == model::EventKind::Switch && it.task != model::TaskId::NONE);
        self.switches += switches.count() as u64;
    }

    fn finish(&mut self, _: model::SimTime) {}
}

impl model::Sampler for Counted {
    fn sample(&mut self, sample: &model::Sample) {
        self.last = sample.cpus[0];
    }
}

fn counted(workload: &str) -> Counted {
    let run = Run {
        until: Nanos::from_millis(200),
        ..Run::new("fifo", workload)
    };
    let mut counted = Counted::default();
    let every = Nanos::from_millis(100);
    let spec = run.spec();
    let sampled = Simulation::new(&spec).sampled(&mut counted, every);
    sampled.start().expect("a run");
    counted
}

#[test]
fn each_call_of_the_scheduler_that_ends_with_a_task_switches_to_it_or_keeps_it() {
    let alone = counted("[task.A]\ndo = \"loop(10)[ run(1ms), yield ], run(1ms)\"");
    assert!(alone.last.kept >= 10, "{:?}", alone.last);
    let two = counted("[task.A]\ncount = 2\ndo = \"loop(10)[ run(1ms), yield ], run(1ms)\"");
    for Counted { last, switches } in [alone, two] {
        assert_eq!(last.picks, last.kept + switches, "{last:?}");
        assert!(last.schedules > last.picks, "the last one idles: {last:?}");
    }
}

/// Source: `wakeup_preempt_rt()`, kernel 6.18.
#[test]
fn a_real_time_task_that_is_not_more_urgent_does_not_call_the_scheduler() {
    let calls = |second: &str| {
        let workload = format!(
            "[task.A]\npolicy = \"fifo:10\"\ndo = \"run(50ms)\"\n\
             [task.B]\n{second}\ndo = \"run(10ms)\""
        );
        counted(&workload).last.schedules
    };
    let less = calls("policy = \"fifo:5\"\nstart = \"5ms\"");
    let same = calls("policy = \"fifo:10\"\nstart = \"5ms\"");
    let more = calls("policy = \"fifo:15\"\nstart = \"5ms\"");
    // Who preempts gives the CPU back, which is one call more.
    assert_eq!((same, more), (less, less + 1));
}

/// A hash that counts samples, too.
struct Sampled(TraceHash, u32);

impl model::Sink for Sampled {
    fn wants(&self) -> model::EventMask {
        self.0.wants()
    }

    fn begin(&mut self, header: &model::Header) {
        self.0.begin(header);
    }

    fn events(&mut self, events: &[model::Event]) {
        self.0.events(events);
    }

    fn finish(&mut self, end: model::SimTime) {
        self.0.finish(end);
    }
}

impl model::Sampler for Sampled {
    fn sample(&mut self, _: &model::Sample) {
        self.1 += 1;
    }
}
