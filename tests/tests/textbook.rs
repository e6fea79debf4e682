//! On a textbook machine the policies of textbooks schedule to the unit as the books' rules say.
//!
//! The rules are written down once more here, in units of a millisecond, after Arpaci-Dusseau,
//! "Operating Systems: Three Easy Pieces", chapters 7 and 8. They leave these ties open, which the
//! models and the policies settle alike:
//!
//! - Of jobs that arrive together the first of the file comes first.
//! - Of equally long jobs the one that came first runs first; a job is displaced by a shorter one
//!   only.
//! - A job that sleeps just as its quantum ends has used it up.
//! - A job that a better one displaces stays at the head of its queue with the rest of its quantum.
//! - A boost comes first in its instant. Those who wait keep their order; the job that runs ends
//!   its quantum, and is in the best queue then.

use std::collections::VecDeque;
use std::fmt::Write as _;

use model::{EventKind, MachineSpec, Nanos, Rng, Textbook};
use runslice_tests::collect::{Collector, Kept};
use runslice_tests::run::Run;

const UNIT: u64 = 1_000_000;
const ORDERS: [Textbook; 2] = [Textbook::ArrivalsFirst, Textbook::ArrivalsLast];
const SEEDS: u64 = 200;

/// A job, in units.
#[derive(Clone, Copy, Debug)]
struct Job {
    arrives: u64,
    length: u64,
    /// It sleeps whenever it has run so long; 0: never.
    io_every: u64,
    io_for: u64,
}

/// Who has the CPU in each unit.
type Chart = Vec<Option<usize>>;

// ---- What the machine does ----

fn workload(jobs: &[Job]) -> String {
    let mut text = String::new();
    for (at, job) in jobs.iter().enumerate() {
        let name = char::from(b'a' + at as u8);
        let sleeps = match job.io_every {
            0 => 0,
            every => (job.length - 1) / every,
        };
        let rest = job.length - sleeps * job.io_every;
        let _ = write!(
            text,
            "[task.{name}_{}]\nstart = \"{}ms\"\n",
            job.length, job.arrives
        );
        let _ = match sleeps {
            0 => writeln!(text, "do = \"run({rest}ms)\""),
            _ => writeln!(
                text,
                "do = \"loop({sleeps})[ run({}ms), sleep({}ms) ], run({rest}ms)\"",
                job.io_every, job.io_for
            ),
        };
    }
    text
}

fn simulated(policy: &str, set: &[(&str, &str)], order: Textbook, jobs: &[Job]) -> Chart {
    let text = workload(jobs);
    let run = Run {
        set,
        until: Nanos::from_secs(1000),
        ..Run::new(policy, &text)
    };
    let mut spec = run.spec();
    spec.machine = MachineSpec::by_the_book(order);
    let mut seen = Collector::default();
    let summary = sim::run(&spec, &mut seen).unwrap_or_else(|error| panic!("{error}"));
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    let mut chart = Chart::new();
    let mut running = None;
    let mut last = None;
    for switch in &seen.switches {
        let now = switch.time.as_nanos();
        assert_eq!(now % UNIT, 0, "between two units");
        assert_ne!(last.replace(now), Some(now), "nobody runs for no time");
        chart.resize((now / UNIT) as usize, running);
        running = (switch.task != model::TaskId::NONE).then(|| switch.task.index());
    }
    chart
}

// ---- Chapter 7 ----

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    FirstIn,
    ShortestJob,
    ShortestToCompletion,
    RoundRobin(u64),
}

fn by_rule(rule: Rule, order: Textbook, jobs: &[Job]) -> Chart {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.length).collect();
    let mut queue: VecDeque<usize> = VecDeque::new();
    let (mut chart, mut running, mut used) = (Chart::new(), None, 0);
    while left.iter().any(|left| *left > 0) {
        let now = chart.len() as u64;
        let arrivals = (0..jobs.len()).filter(|job| jobs[*job].arrives == now);
        let ends = matches!(rule, Rule::RoundRobin(quantum) if used == quantum);
        let back = running.filter(|_| ends);
        if ends {
            running = None;
        }
        if order == Textbook::ArrivalsLast {
            queue.extend(back);
        }
        queue.extend(arrivals);
        if order == Textbook::ArrivalsFirst {
            queue.extend(back);
        }
        let shortest = queue.iter().enumerate().min_by_key(|(_, job)| left[**job]);
        let shortest = shortest.map(|(at, job)| (at, left[*job]));
        if let (Rule::ShortestToCompletion, Some(job), Some((_, least))) = (rule, running, shortest)
            && least < left[job]
        {
            queue.push_back(job);
            running = None;
        }
        if running.is_none() {
            let at = match rule {
                Rule::FirstIn | Rule::RoundRobin(_) => 0,
                Rule::ShortestJob | Rule::ShortestToCompletion => shortest.map_or(0, |it| it.0),
            };
            (running, used) = (queue.remove(at), 0);
        }
        chart.push(running);
        used += 1;
        if let Some(job) = running {
            left[job] -= 1;
            running = running.filter(|_| left[job] > 0);
        }
    }
    chart
}

fn some_jobs(rng: &mut Rng, together: bool) -> Vec<Job> {
    let count = 2 + rng.below(6);
    let jobs = (0..count).map(|_| Job {
        arrives: if together { 0 } else { rng.below(20) },
        length: 1 + rng.below(10),
        io_every: 0,
        io_for: 0,
    });
    jobs.collect()
}

fn compare_rule(policy: &str, rule_of: impl Fn(&mut Rng) -> Rule) {
    for seed in 0..SEEDS {
        for together in [true, false] {
            let mut rng = Rng::new(seed, u64::from(together));
            let jobs = some_jobs(&mut rng, together);
            let rule = rule_of(&mut rng);
            let quantum = match rule {
                Rule::RoundRobin(quantum) => (quantum * UNIT).to_string(),
                _ => String::new(),
            };
            let set = [("slice_ns", quantum.as_str())];
            let set = if quantum.is_empty() {
                &set[1..]
            } else {
                &set[..]
            };
            for order in ORDERS {
                let (own, book) = (
                    simulated(policy, set, order, &jobs),
                    by_rule(rule, order, &jobs),
                );
                assert_eq!(own, book, "seed {seed}, {order}, {rule:?}, {jobs:#?}");
            }
        }
    }
}

#[test]
fn fcfs_is_first_in_first_out() {
    compare_rule("fcfs", |_| Rule::FirstIn);
}

#[test]
fn sjf_is_shortest_job_first() {
    compare_rule("sjf", |_| Rule::ShortestJob);
}

#[test]
fn srtf_is_shortest_time_to_completion_first() {
    compare_rule("srtf", |_| Rule::ShortestToCompletion);
}

#[test]
fn rr_is_round_robin() {
    compare_rule("fifo", |rng| Rule::RoundRobin(1 + rng.below(5)));
}

#[test]
fn the_order_within_an_instant_is_seen() {
    let job = |arrives, length| Job {
        arrives,
        length,
        io_every: 0,
        io_for: 0,
    };
    let jobs = [job(0, 4), job(2, 2)];
    let [first, last] = ORDERS.map(|it| simulated("fifo", &[("slice_ns", "2000000")], it, &jobs));
    let chart = |who: [usize; 6]| who.map(Some).to_vec();
    assert_eq!(first, chart([0, 0, 1, 1, 0, 0]));
    assert_eq!(last, chart([0, 0, 0, 0, 1, 1]));
}

// ---- Chapter 8 ----

#[derive(Clone, Copy, Debug)]
struct Feedback {
    queues: usize,
    quantum: u64,
    factor: u64,
    allotment: u64,
    /// 0: never.
    boost: u64,
    stay: bool,
}

impl Feedback {
    fn quantum(&self, level: usize) -> u64 {
        self.quantum * self.factor.pow(level as u32)
    }
}

/// A job in the feedback queue.
#[derive(Clone, Copy, Debug)]
struct Standing {
    left: u64,
    level: usize,
    quantum: u64,
    allotment: u64,
    wakes: Option<u64>,
    /// There was a boost since its quantum began.
    boosted: bool,
}

fn by_feedback(rules: Feedback, order: Textbook, jobs: &[Job]) -> Chart {
    let mut all: Vec<Standing> = jobs
        .iter()
        .map(|job| Standing {
            left: job.length,
            level: 0,
            quantum: rules.quantum(0),
            allotment: rules.allotment,
            wakes: Some(job.arrives),
            boosted: false,
        })
        .collect();
    let mut queues: Vec<VecDeque<usize>> = vec![VecDeque::new(); rules.queues];
    let mut chart = Chart::new();
    let mut running: Option<usize> = None;
    while all.iter().any(|job| job.left > 0) {
        let now = chart.len() as u64;
        if rules.boost > 0 && now > 0 && now.is_multiple_of(rules.boost) {
            boost(&mut queues, running, &mut all, rules);
        }
        if order == Textbook::ArrivalsLast {
            end_quantum(&mut queues, &mut running, &mut all, rules);
        }
        // The first arrive before those who wake.
        let come = (0..jobs.len()).filter(|at| all[*at].wakes == Some(now));
        let mut come: Vec<usize> = come.collect();
        come.sort_by_key(|at| jobs[*at].arrives != now);
        for job in come {
            all[job].wakes = None;
            queues[all[job].level].push_back(job);
        }
        if order == Textbook::ArrivalsFirst {
            end_quantum(&mut queues, &mut running, &mut all, rules);
        }
        let best = queues.iter().position(|queue| !queue.is_empty());
        if let (Some(best), Some(job)) = (best, running)
            && best < all[job].level
        {
            queues[all[job].level].push_front(job);
            running = None;
        }
        if running.is_none() {
            running = best.and_then(|best| queues[best].pop_front());
        }
        chart.push(running);
        let Some(job) = running else { continue };
        let state = &mut all[job];
        (state.left, state.quantum) = (state.left - 1, state.quantum - 1);
        let (every, done) = (jobs[job].io_every, jobs[job].length - state.left);
        if state.left == 0 {
            running = None;
        } else if every > 0 && done % every == 0 {
            state.wakes = Some(now + 1 + jobs[job].io_for);
            running = None;
            if rules.stay {
                state.quantum = rules.quantum(state.level);
                state.allotment = rules.allotment;
            }
            spend(state, rules);
            if std::mem::take(&mut state.boosted) {
                rise(state, rules);
            }
        }
    }
    chart
}

/// Puts the job that runs back, if its quantum is used up.
fn end_quantum(
    queues: &mut [VecDeque<usize>],
    running: &mut Option<usize>,
    all: &mut [Standing],
    rules: Feedback,
) {
    if let Some(job) = *running
        && let Some(level) = spend(&mut all[job], rules)
    {
        *running = None;
        queues[level].push_back(job);
    }
}

/// If the quantum is used up, the level at which the job goes on with the next one.
fn spend(job: &mut Standing, rules: Feedback) -> Option<usize> {
    if job.quantum > 0 {
        return None;
    }
    if std::mem::take(&mut job.boosted) {
        rise(job, rules);
        return Some(0);
    }
    job.allotment -= 1;
    if job.allotment == 0 {
        job.level = (job.level + 1).min(rules.queues - 1);
        job.allotment = rules.allotment;
    }
    job.quantum = rules.quantum(job.level);
    Some(job.level)
}

fn rise(job: &mut Standing, rules: Feedback) {
    (job.level, job.quantum, job.allotment) = (0, rules.quantum(0), rules.allotment);
}

fn boost(
    queues: &mut [VecDeque<usize>],
    running: Option<usize>,
    all: &mut [Standing],
    rules: Feedback,
) {
    let (best, others) = queues.split_first_mut().expect("there is one");
    for queue in others {
        best.append(queue);
    }
    for (at, job) in all.iter_mut().enumerate() {
        if running == Some(at) {
            (job.boosted, job.level) = (true, 0);
        } else {
            rise(job, rules);
        }
    }
}

fn compare_feedback(rules_of: impl Fn(&mut Rng) -> Feedback, arrive_at_once: bool) {
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed, 2);
        let jobs: Vec<Job> = (0..3 + rng.below(2))
            .map(|_| Job {
                arrives: if arrive_at_once { 0 } else { rng.below(60) },
                length: 1 + rng.below(99),
                io_every: 1 + rng.below(if arrive_at_once { 9 } else { 30 }),
                io_for: 5,
            })
            .collect();
        let rules = rules_of(&mut rng);
        let numbers = [
            rules.queues as u64,
            rules.quantum * UNIT,
            rules.factor,
            rules.allotment,
            rules.boost * UNIT,
            rules.stay.into(),
        ]
        .map(|it| it.to_string());
        let names = [
            "queues",
            "quantum_ns",
            "factor",
            "allotment",
            "boost_ns",
            "stay",
        ];
        let set: Vec<_> = names
            .into_iter()
            .zip(numbers.iter().map(String::as_str))
            .collect();
        for order in ORDERS {
            let own = simulated("feedback", &set, order, &jobs);
            let book = by_feedback(rules, order, &jobs);
            assert_eq!(own, book, "seed {seed}, {order}, {rules:?}, {jobs:#?}");
        }
    }
}

const USUAL: Feedback = Feedback {
    queues: 3,
    quantum: 10,
    factor: 1,
    allotment: 1,
    boost: 0,
    stay: false,
};

#[test]
fn feedback_is_the_multi_level_feedback_queue() {
    compare_feedback(|_| USUAL, true);
}

#[test]
fn feedback_with_other_rules_is_so_too() {
    let rules = |rng: &mut Rng| Feedback {
        queues: 1 + rng.below(4) as usize,
        quantum: 1 + rng.below(12),
        factor: 1 + rng.below(2),
        allotment: 1 + rng.below(3),
        boost: [0, 37, 50, 100][rng.below(4) as usize],
        stay: rng.below(3) == 0,
    };
    compare_feedback(rules, false);
}

// ---- Limits ----

#[test]
fn a_slice_of_no_length_does_not_stop_time() {
    let jobs = "[task.a]\ndo = \"run(1ms)\"\n[task.b]\ndo = \"run(1ms)\"\n";
    let run = Run {
        set: &[("slice_ns", "1000")],
        ..Run::new("fifo", jobs)
    };
    let mut spec = run.spec();
    spec.machine = MachineSpec::by_the_book(Textbook::ArrivalsFirst);
    let mut ends = Kept::of(EventKind::Exit);
    sim::run(&spec, &mut ends).expect("a run");
    let ends: Vec<u64> = ends.events.iter().map(|it| it.time.as_nanos()).collect();
    assert_eq!(ends, [2 * UNIT - 1_000, 2 * UNIT]);
}

#[test]
fn a_textbook_machine_has_one_cpu_and_no_costs() {
    let job = "[task.a]\ndo = \"run(1ms)\"\n";
    let mut spec = Run::new("fifo", job).spec();
    spec.machine = MachineSpec {
        cpus: 2,
        ..MachineSpec::by_the_book(Textbook::ArrivalsFirst)
    };
    let said = sim::run(&spec, &mut Collector::default())
        .unwrap_err()
        .to_string();
    assert_eq!(said, "a textbook machine has one CPU");
}
