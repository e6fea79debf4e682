//! Workloads on the simplest machine that there can be: one CPU, first come first served, no
//! preemption.

use std::collections::{BTreeMap, VecDeque};

use model::EventKind;

use super::*;

/// The machine, and what it has seen.
struct Toy {
    work: Work,
    workload: Arc<Workload>,
    now: SimTime,
    ready: VecDeque<TaskId>,
    /// What is to happen, by time and then by number.
    later: BTreeMap<(SimTime, u64), Later>,
    scheduled: u64,
    born: u32,
    state: Vec<State>,
    events: Vec<(SimTime, TaskId, WorkEvent)>,
    actions: Vec<(SimTime, TaskId, Action)>,
    /// Forks that fail: the number of each, counted from zero.
    failing_forks: Vec<u32>,
    forks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runnable,
    Asleep,
    Dead,
}

#[derive(Debug)]
enum Later {
    Start(Birth),
    Wake(TaskId),
    Interrupt(usize),
}

impl Toy {
    fn new(text: &str, seed: u64) -> Self {
        let workload = Workload::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        Self::with(workload, seed)
    }

    fn with(workload: Workload, seed: u64) -> Self {
        let workload = Arc::new(workload);
        let mut work = Work::new(Arc::clone(&workload), 2, seed).expect("the workload fits");
        let births = work.initial();
        let interrupts = work.interrupts();
        let mut toy = Self {
            work,
            workload,
            now: SimTime::ZERO,
            ready: VecDeque::new(),
            later: BTreeMap::new(),
            scheduled: 0,
            born: 0,
            state: Vec::new(),
            events: Vec::new(),
            actions: Vec::new(),
            failing_forks: Vec::new(),
            forks: 0,
        };
        for birth in births {
            toy.at(birth.start, Later::Start(birth));
        }
        for (source, _, time) in interrupts {
            toy.at(time, Later::Interrupt(source));
        }
        toy
    }

    fn at(&mut self, time: SimTime, later: Later) {
        self.later.insert((time, self.scheduled), later);
        self.scheduled += 1;
    }

    fn bear(&mut self, birth: &Birth, parent: Option<TaskId>) -> TaskId {
        let task = TaskId(self.born);
        self.born += 1;
        self.state.push(State::Runnable);
        self.work.born(task, birth, parent);
        self.ready.push_back(task);
        task
    }

    fn wake(&mut self, task: TaskId) {
        assert_eq!(
            self.state[task.index()],
            State::Asleep,
            "only sleepers are woken"
        );
        self.state[task.index()] = State::Runnable;
        self.ready.push_back(task);
    }

    /// Everything that is due happens.
    fn catch_up(&mut self) -> Result<(), WorkError> {
        while let Some(entry) = self.later.first_entry() {
            let time = entry.key().0;
            if time > self.now {
                break;
            }
            match entry.remove() {
                Later::Start(birth) => drop(self.bear(&birth, None)),
                Later::Wake(task) => self.wake(task),
                Later::Interrupt(source) => {
                    let interrupt = self.work.interrupt(source, time)?;
                    interrupt.wakes.into_iter().for_each(|task| self.wake(task));
                    if let Some(next) = interrupt.next {
                        assert!(next > time, "interrupts come one after the other");
                        self.at(next, Later::Interrupt(source));
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs until the workload is over, or nothing happens any more.
    fn run(&mut self) -> Result<(), WorkError> {
        self.catch_up()?;
        while !self.work.finished(self.now) {
            if let Some(task) = self.ready.pop_front() {
                self.run_task(task)?;
            } else if let Some((&(time, _), _)) = self.later.first_key_value() {
                self.now = time;
            } else {
                break;
            }
            self.catch_up()?;
        }
        Ok(())
    }

    /// Runs `task` until it leaves the CPU.
    fn run_task(&mut self, task: TaskId) -> Result<(), WorkError> {
        loop {
            let mut out = Vec::new();
            let action = self.work.step(task, self.now, &mut out)?;
            self.events
                .extend(out.into_iter().map(|event| (self.now, task, event)));
            self.actions.push((self.now, task, action.clone()));
            match action {
                Action::Run(span) => {
                    assert!(!span.is_zero(), "no work is no action");
                    self.now = self.now + span;
                    if self.work.finished(self.now) {
                        return Ok(());
                    }
                    self.catch_up()?;
                }
                Action::SleepUntil(time) => {
                    assert!(time > self.now, "a sleep takes time");
                    self.state[task.index()] = State::Asleep;
                    self.at(time, Later::Wake(task));
                    return Ok(());
                }
                Action::Block => {
                    self.state[task.index()] = State::Asleep;
                    return Ok(());
                }
                Action::Yield => {
                    self.ready.push_back(task);
                    return Ok(());
                }
                Action::Exit => {
                    self.state[task.index()] = State::Dead;
                    self.work.exited(task);
                    return Ok(());
                }
                Action::Wake { task, .. } => self.wake(task),
                Action::Fork(birth) => {
                    let fails = self.failing_forks.contains(&self.forks);
                    self.forks += 1;
                    let child = (!fails).then(|| self.bear(&birth, Some(task)));
                    self.work.forked(task, child);
                }
                Action::SetNice { .. } | Action::SetAffinity { .. } | Action::SetPolicy { .. } => {}
            }
        }
    }

    /// The sum of a counter.
    fn counted(&self, name: &str) -> u64 {
        let counter = self
            .workload
            .counters
            .iter()
            .position(|counter| counter == name);
        let counter = counter.expect("the workload has this counter") as u64;
        let is_it = |event: &&WorkEvent| event.kind == EventKind::Count && event.a == counter;
        self.events
            .iter()
            .map(|(_, _, event)| event)
            .filter(is_it)
            .map(|event| event.b)
            .sum()
    }

    /// Time in microseconds, and task, of each action that `choose` takes.
    fn times(&self, choose: impl Fn(&Action) -> bool) -> Vec<(u64, u32)> {
        let chosen = self.actions.iter().filter(|(_, _, action)| choose(action));
        chosen
            .map(|(time, task, _)| (time.as_nanos() / 1_000, task.0))
            .collect()
    }

    /// Kind and words of each event.
    fn recorded(&self) -> Vec<(EventKind, u64, u64)> {
        self.events
            .iter()
            .map(|(_, _, event)| (event.kind, event.a, event.b))
            .collect()
    }

    fn all_dead(&self) -> bool {
        self.state.iter().all(|&state| state == State::Dead)
    }
}

/// Runs `tables` as a workload with a seed of 1.
fn run(tables: &str) -> Toy {
    let mut toy = Toy::new(&format!("[workload]\nname = \"test\"\n{tables}"), 1);
    toy.run().unwrap_or_else(|error| panic!("{error}"));
    toy
}

/// The error that `tables` end in.
fn error(tables: &str) -> String {
    let mut toy = Toy::new(&format!("[workload]\nname = \"test\"\n{tables}"), 1);
    toy.run()
        .expect_err("the workload breaks a rule")
        .to_string()
}

fn shipped(text: &str, scale: &[(&str, i64)]) -> Workload {
    let scale: Vec<_> = scale
        .iter()
        .map(|&(name, value)| (name.to_owned(), value))
        .collect();
    Workload::parse_with(text, "shipped.toml", &scale).unwrap_or_else(|error| panic!("{error}"))
}

/// Messages of `bytes` that a channel takes before its writer blocks.
fn capacity(kind: &str, bytes: u64) -> u64 {
    let toy = run(&format!(
        "[chan.c]\nkind = \"{kind}\"\nmsg = {bytes}\n\
         [task.w]\ndo = \"loop(100000)[ send(c), count(sent) ]\"\n"
    ));
    toy.counted("sent")
}

#[test]
fn a_channel_takes_as_many_messages_as_the_kernel_does() {
    assert_eq!([capacity("unix", 100), capacity("unix", 1024)], [278, 93]);
    assert_eq!([capacity("pipe", 100), capacity("pipe", 1024)], [640, 64]);
    assert_eq!([capacity("pipe", 1), capacity("pipe", 4096)], [65_536, 16]);
    assert_eq!(capacity("tcp", 100), 39_482);
}

#[test]
fn a_reader_is_woken_once_and_drains_what_is_queued_without_sleeping() {
    let toy = run("[chan.c]\nkind = \"unix\"\n\
                   [task.r]\ndo = \"loop(5)[ recv(c), count(got) ]\"\n\
                   [task.w]\ndo = \"run(1ms), loop(5)[ send(c) ]\"\n");
    assert_eq!(toy.counted("got"), 5);
    assert_eq!(
        toy.times(|a| matches!(a, Action::Wake { sync: true, .. })),
        [(1000, 1)]
    );
    assert_eq!(toy.times(|a| *a == Action::Block), [(0, 0)]);
}

#[test]
fn only_pipes_and_sockets_are_woken_synchronously() {
    for (kind, is_sync) in [
        ("unix", true),
        ("pipe", true),
        ("tcp", true),
        ("queue", false),
    ] {
        let toy = run(&format!(
            "[chan.c]\nkind = \"{kind}\"\n[task.r]\ndo = \"recv(c)\"\n[task.w]\ndo = \"send(c)\"\n"
        ));
        let wakes = toy.times(|a| matches!(a, Action::Wake { sync, .. } if *sync == is_sync));
        assert_eq!(wakes, [(0, 1)], "{kind}");
    }
}

/// How many messages a reader takes from a full channel before its sleeping writer is woken.
fn taken_before_the_writer_wakes(kind: &str) -> usize {
    let toy = run(&format!(
        "[chan.c]\nkind = \"{kind}\"\n\
         [task.w]\ndo = \"loop(1000000)[ send(c) ]\"\n\
         [task.r]\ndo = \"run(1us), loop(inf)[ recv(c), run(1us) ]\"\n"
    ));
    let is_wake = |(_, _, action): &&(_, _, Action)| matches!(action, Action::Wake { .. });
    let first = toy
        .actions
        .iter()
        .find(is_wake)
        .expect("the writer is woken");
    assert_eq!(first.1, TaskId(1), "the reader wakes it");
    usize::try_from(first.0.as_nanos() / 1_000).unwrap()
}

#[test]
fn a_writer_is_woken_when_the_kernel_would_wake_it() {
    // A quarter of 212,992 bytes is 69 messages of 768.
    assert_eq!(taken_before_the_writer_wakes("unix"), 278 - 69);
    // A page holds 40 messages of 100 bytes.
    assert_eq!(taken_before_the_writer_wakes("pipe"), 40);
    // Two thirds of 39,482 messages, rounded down.
    assert_eq!(taken_before_the_writer_wakes("tcp"), 39_482 - 26_321);
}

#[test]
fn a_channel_with_a_cap_of_messages_holds_that_many() {
    let toy = run("[chan.c]\nkind = \"queue\"\ncap = \"3msg\"\n\
                   [task.w]\ndo = \"loop(10)[ send(c), count(sent) ]\"\n");
    assert_eq!(toy.counted("sent"), 3);
    assert_eq!(
        toy.work.waits_for(TaskId(0)).as_deref(),
        Some("room in c[0]")
    );
}

#[test]
fn a_fifo_lock_is_handed_over_in_the_order_of_arrival() {
    let toy = run("[lock.l]\n[task.t]\ncount = 3\n\
                   do = \"lock(l), sleep(1ms), count(held), unlock(l), lock(l), unlock(l)\"\n");
    let held: Vec<_> = (toy.events.iter())
        .filter(|(_, _, event)| event.kind == EventKind::Count)
        .map(|(time, task, _)| (time.as_nanos() / 1_000_000, task.0))
        .collect();
    assert_eq!(held, [(1, 0), (2, 1), (3, 2)]);
    assert!(toy.all_dead());
}

#[test]
fn a_barging_lock_goes_to_whoever_runs_first() {
    let turns = |handoff: &str| {
        let toy = run(&format!(
            "[lock.l]\nhandoff = \"{handoff}\"\n[task.t]\ncount = 2\n\
             do = \"loop(2)[ lock(l), sleep(1ms), run(1us), unlock(l) ], exit\"\n"
        ));
        toy.times(|a| matches!(a, Action::Run(_)))
            .into_iter()
            .map(|(_, task)| task)
            .collect()
    };
    let (fifo, barge): (Vec<u32>, Vec<u32>) = (turns("fifo"), turns("barge"));
    assert_eq!(fifo, [0, 1, 0, 1]);
    assert_eq!(
        barge,
        [0, 0, 1, 1],
        "the unlocker still runs and takes it again"
    );
}

#[test]
fn a_barrier_opens_for_all_when_the_last_party_comes() {
    let toy = run("[barrier.b]\nparties = 3\n[task.t]\ncount = 3\n\
                   do = \"sleep(1ms * (self + 1)), barrier(b), count(through), barrier(b)\"\n");
    let through = toy
        .events
        .iter()
        .map(|(time, _, _)| time.as_nanos() / 1_000_000);
    assert_eq!(through.collect::<Vec<_>>(), [3, 3, 3]);
    assert!(toy.all_dead(), "the barrier closes and opens again");
}

#[test]
fn a_resume_that_comes_first_is_remembered_once() {
    let toy = run(
        "[task.t]\ndo = \"sleep(1ms), suspend, count(first), suspend, count(second)\"\n\
                   [task.u]\ndo = \"resume(t), resume(t)\"\n",
    );
    assert_eq!((toy.counted("first"), toy.counted("second")), (1, 0));
    assert_eq!(
        toy.work.waits_for(TaskId(0)).as_deref(),
        Some("somebody to resume it")
    );
}

#[test]
fn a_process_wakes_its_waiting_parent_before_it_is_gone() {
    let toy = run("[task.p]\ndo = \"fork(c), waitpid(all), count(done)\"\n\
                   [task.c]\nkind = \"process\"\ndo = \"run(1ms)\"\n");
    let child: Vec<_> = (toy.actions.iter().filter(|(_, task, _)| *task == TaskId(1)))
        .map(|(_, _, action)| action.clone())
        .collect();
    let run = Action::Run(Nanos::from_millis(1));
    assert_eq!(
        child,
        [
            run,
            Action::Wake {
                task: TaskId(0),
                sync: true
            },
            Action::Exit
        ]
    );
    assert_eq!(toy.counted("done"), 1);
}

#[test]
fn waiting_for_any_takes_one_child_and_waiting_without_children_takes_none() {
    let toy = run("[task.p]\n\
        do = \"waitpid(any), fork(c), fork(c), waitpid(any), count(one), waitpid(all), count(two)\"\n\
        [task.c]\ndo = \"sleep(1ms * self)\"\n");
    let times: Vec<_> = toy
        .events
        .iter()
        .map(|(time, _, _)| time.as_nanos() / 1_000)
        .collect();
    assert_eq!(times, [0, 1000]);
    assert!(toy.all_dead());
}

#[test]
fn a_pool_keeps_its_width_and_starts_its_total() {
    let toy = run("[task.make]\ndo = \"pool(job, 3, 10), count(done)\"\n\
                   [task.job]\nkind = \"process\"\ndo = \"sleep(1ms), count(jobs)\"\n");
    assert_eq!((toy.counted("jobs"), toy.counted("done")), (10, 1));
    let forks = toy.times(|a| matches!(a, Action::Fork(_)));
    let at: Vec<u64> = forks.into_iter().map(|(time, _)| time).collect();
    assert_eq!(at, [0, 0, 0, 1000, 1000, 1000, 2000, 2000, 2000, 3000]);
}

#[test]
fn a_pool_goes_on_when_a_fork_fails() {
    let text = "[workload]\nname = \"t\"\n[task.make]\ndo = \"pool(job, 2, 5), count(done)\"\n\
                [task.job]\ndo = \"sleep(1ms), count(jobs)\"\n";
    let mut toy = Toy::new(text, 1);
    toy.failing_forks = vec![0, 3];
    toy.run().unwrap();
    assert_eq!((toy.counted("jobs"), toy.counted("done")), (3, 1));
}

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
fn control_flow_counts_as_written() {
    let toy = run("[task.t]\ndo = [\n\
        \"let x = 0, for(i, 4)[ for(j, i)[ x = x + 10 * i + j ] ], count(nested, x)\",\n\
        \"let n = 3, loop(n)[ n = n - 1, count(turns) ], count(rest, n)\",\n\
        \"while(x > 100)[ x = x - 7 ], count(left, x)\",\n\
        \"if(not x == 98 or 1 > 2)[ count(yes) ] else [ count(no) ]\"]\n");
    let sum: i64 = (0..4).flat_map(|i| (0..i).map(move |j| 10 * i + j)).sum();
    assert_eq!(toy.counted("nested"), sum.unsigned_abs());
    assert_eq!(
        (toy.counted("turns"), toy.counted("rest")),
        (3, 0),
        "n is evaluated once"
    );
    assert_eq!(
        toy.counted("left"),
        (sum - 7 * ((sum - 100) as u64).div_ceil(7) as i64) as u64
    );
    assert_eq!(toy.counted("yes") + toy.counted("no"), 1);
}

#[test]
fn choices_follow_their_weights() {
    let toy = run("[task.t]\ndo = \"loop(4000)[ choose(3: count(a), 1: [count(b)], 0: exit) ]\"\n");
    let (a, b) = (toy.counted("a"), toy.counted("b"));
    assert_eq!(a + b, 4000);
    // Five standard deviations around 3000.
    assert!((2863..=3137).contains(&a), "{a}");
}

#[test]
fn changes_reach_the_machine_with_their_target() {
    let toy = run("[task.a]\ndo = \"sleep(1ms)\"\n[task.b]\n\
        do = \"setnice(a, -3), setaffinity(self, {1}), setaffinity(a, all), setpolicy(a, rr:7), \
        sleep(2ms), setnice(a, 5)\"\n");
    let of_b: Vec<_> = (toy.actions.iter().filter(|(_, task, _)| *task == TaskId(1)))
        .map(|(_, _, action)| action.clone())
        .take(4)
        .collect();
    let (a, b) = (TaskId(0), TaskId(1));
    let want = [
        Action::SetNice { task: a, nice: -3 },
        Action::SetAffinity {
            task: b,
            cpus: model::workload::CpuSet::parse("1").unwrap(),
        },
        Action::SetAffinity {
            task: a,
            cpus: model::workload::CpuSet::all(2),
        },
        Action::SetPolicy {
            task: a,
            policy: model::workload::SchedPolicy::RoundRobin(7),
        },
    ];
    assert_eq!(of_b, want);
    assert_eq!(
        toy.times(|action| matches!(action, Action::SetNice { .. }))
            .len(),
        1
    );
}

#[test]
fn a_task_that_goes_round_without_time_passing_is_stopped() {
    for body in [
        "loop(inf)[ yield ]",
        "loop(inf)[ ]",
        "while(1)[ count(n) ]",
        "loop(inf)[ fork(c) ]",
    ] {
        let text = format!("[task.t]\ndo = \"{body}\"\n[task.c]\ncount = 0\ndo = \"exit\"\n");
        let message = error(&text);
        let expected = ["without any time passing", "more than 100000 tasks"];
        assert!(
            expected.iter().any(|part| message.contains(part)),
            "{body}: {message}"
        );
        assert!(message.starts_with("test.toml:4: t: "), "{message}");
    }
}

#[test]
fn a_chain_of_forks_that_takes_no_time_is_stopped() {
    let message = error("[task.t]\ncount = 1\ndo = \"fork(t), exit\"\n");
    assert!(message.contains("without any time passing"), "{message}");
}

#[test]
fn broken_rules_are_named_with_their_place() {
    let cases = [
        (
            "recv(c[2])",
            "test.toml:8: t: index 2 of `c` is outside 0..2",
        ),
        (
            "recv(c[0 - 1])",
            "test.toml:8: t: index -1 of `c` is outside 0..2",
        ),
        ("count(n, 1 / self)", "test.toml:8: t: division by zero"),
        (
            "unlock(l)",
            "test.toml:8: t: gives back a lock that it does not hold",
        ),
        (
            "lock(l), lock(l)",
            "test.toml:8: t: takes a lock that it holds",
        ),
        (
            "setnice(self, 20)",
            "test.toml:8: t: the nice value is 20; expected -20 to 19",
        ),
        (
            "setnice(t[1], 2)",
            "test.toml:8: t: index 1 of `t` is outside 0..1",
        ),
        (
            "span_end(s)",
            "test.toml:8: t: `s` ends without a `span_begin(s)` before it",
        ),
        (
            "pool(t, 0, 1)",
            "test.toml:8: t: the pool's width is 0; expected 1 to 9223372036854775807",
        ),
        (
            "send(c[0], 0)",
            "test.toml:8: t: the message's size is 0; expected 1 to 2147483647",
        ),
    ];
    for (body, want) in cases {
        let channel = "[chan.c]\nkind = \"queue\"\ncount = 2\n";
        let message = error(&format!(
            "[lock.l]\n{channel}[task.t]\ndo = \"{body}\"\ncount = 1\n"
        ));
        assert_eq!(message, want, "{body}");
    }
}

#[test]
fn what_the_machine_lacks_is_refused_before_the_run() {
    let refusal = |tables: &str| {
        let text = format!("[workload]\nname = \"t\"\n{tables}");
        let workload = Workload::parse(&text, "test.toml").unwrap();
        Work::new(Arc::new(workload), 4, 1)
            .err()
            .expect("the machine lacks it")
            .to_string()
    };
    let set = refusal("[task.t]\ndo = [\n\"run(1ms)\",\n\"setaffinity(self, {4-7})\"]\n");
    assert_eq!(
        set,
        "test.toml:6: t: no CPU of 4-7 exists; the machine has CPUs 0 to 3"
    );
    let born = refusal("[task.t]\ncpus = \"9\"\ndo = \"run(1ms)\"\n");
    assert_eq!(
        born,
        "test.toml:5: t: no CPU of 9 exists; the machine has CPUs 0 to 3"
    );
    let irq = refusal("[irq.i]\ncpu = 4\nonce = true\n[task.t]\ndo = \"run(1ms)\"\n");
    assert!(irq.starts_with("test.toml:3: i: no CPU"), "{irq}");
    let many = refusal("[task.t]\ncount = 100001\ndo = \"run(1ms)\"\n");
    assert_eq!(many, "test.toml: more than 100000 tasks exist at once");
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
        now = interrupt.next.expect("a periodic source goes on");
    }
    assert!(jittered > 400, "jitter is drawn");
    let (start, mut now) = (first[1].2, first[1].2);
    for _ in 0..2000 {
        now = work
            .interrupt(1, now)
            .unwrap()
            .next
            .expect("a Poisson source goes on");
    }
    let mean = now.since(start).get() / 2000;
    // The mean of 2000 exponential gaps strays by a tenth with a chance below 1 in 10^5.
    assert!((1_800_000..2_200_000).contains(&mean), "{mean}");
    assert_eq!(work.interrupt(2, first[2].2).unwrap().next, None);
}

#[test]
fn hackbench_moves_forty_thousand_messages_a_group() {
    let text = include_str!("../../../../workloads/hackbench.toml");
    let mut toy = Toy::with(shipped(text, &[("groups", 2)]), 1);
    toy.run().unwrap();
    assert_eq!(
        (toy.counted("sent"), toy.counted("received")),
        (80_000, 80_000)
    );
    assert!(toy.all_dead() && toy.born == 80);
}

#[test]
fn chat_takes_turns_and_delivers_nineteen_copies_of_each_message() {
    let text = include_str!("../../../../workloads/chat.toml");
    let mut toy = Toy::with(shipped(text, &[("rooms", 2), ("msgs", 5)]), 1);
    toy.run().unwrap();
    assert_eq!(
        (toy.counted("sent"), toy.counted("delivered")),
        (2 * 100, 2 * 1900)
    );
    assert!(toy.all_dead() && toy.born == 160);
    // In each room user k sends the messages number k, k + 20, ...
    let group = toy
        .workload
        .groups
        .iter()
        .position(|group| group.name == "client_writer");
    let sent = toy
        .workload
        .counters
        .iter()
        .position(|counter| counter == "sent")
        .unwrap() as u64;
    let writers = &toy.work.groups[group.unwrap()].tasks;
    let index_of = |task| {
        writers
            .iter()
            .position(|&writer| writer == Some(task))
            .unwrap()
    };
    for room in 0..2 {
        let speakers = (toy.events.iter())
            .filter(|(_, _, event)| event.kind == EventKind::Count && event.a == sent)
            .map(|(_, task, _)| index_of(*task))
            .filter(|index| index / 20 == room)
            .map(|index| index % 20);
        assert!(
            speakers.eq((0..100).map(|message| message % 20)),
            "room {room}"
        );
    }
    // Each writer yields once for each time that it drained its queue.
    let yields = toy.times(|action| *action == Action::Yield).len();
    assert!((2 * 100..=2 * 2000).contains(&yields), "{yields}");
}

#[test]
fn make_compiles_every_file_and_then_links() {
    let text = include_str!("../../../../workloads/make.toml");
    let mut toy = Toy::with(shipped(text, &[("files", 30), ("jobs", 3)]), 1);
    toy.run().unwrap();
    assert_eq!(toy.counted("compiled"), 30);
    assert_eq!(toy.born, 1 + 3 * 30 + 1);
    assert!(toy.all_dead());
    let phases = toy
        .recorded()
        .into_iter()
        .filter(|event| event.0 == EventKind::Phase);
    assert_eq!(phases.map(|event| event.1).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn the_desk_runs_its_ten_seconds_and_reports_its_deadlines() {
    let text = include_str!("../../../../workloads/desk.toml");
    // Without hogs the machine is free for the rest: only those that the toy serves late miss.
    let mut toy = Toy::with(shipped(text, &[("hogs", 0), ("jobs", 1)]), 1);
    toy.run().unwrap();
    assert!(toy.now >= SimTime::ZERO + Nanos::from_secs(10));
    let served = |deadline: u64| {
        let is_it = |e: &&(EventKind, u64, u64)| e.0 == EventKind::Deadline && e.1 == deadline;
        toy.recorded().iter().filter(is_it).count()
    };
    // One move every 8 ms, whatever the delay: moves queue up.
    assert!((1200..=1250).contains(&served(0)), "{}", served(0));
    assert!(served(1) > 200 && served(2) > 100 && served(3) > 50);
}

#[test]
fn the_ten_traced_scenarios_come_to_their_end() {
    let scenarios = [
        (include_str!("../../../../workloads/traces/t1.toml"), 2),
        (include_str!("../../../../workloads/traces/t2.toml"), 2),
        (include_str!("../../../../workloads/traces/t3.toml"), 3),
        (include_str!("../../../../workloads/traces/t4.toml"), 2),
        (include_str!("../../../../workloads/traces/t5.toml"), 3),
        (include_str!("../../../../workloads/traces/t6.toml"), 2),
        (include_str!("../../../../workloads/traces/t7.toml"), 3),
        (include_str!("../../../../workloads/traces/t8.toml"), 3),
        (include_str!("../../../../workloads/traces/t9.toml"), 3),
        (include_str!("../../../../workloads/traces/t10.toml"), 3),
    ];
    for (text, tasks) in scenarios {
        let mut toy = Toy::with(shipped(text, &[]), 1);
        toy.run().unwrap();
        assert!(toy.all_dead(), "{}", toy.workload.name);
        assert_eq!(toy.born, tasks, "{}", toy.workload.name);
        assert_eq!(toy.workload.machine.cpus, 2);
    }
}

#[test]
fn the_same_seed_does_the_same_and_another_seed_something_else() {
    let text = include_str!("../../../../workloads/make.toml");
    let actions = |seed| {
        let mut toy = Toy::with(shipped(text, &[("files", 10)]), seed);
        toy.run().unwrap();
        toy.actions
    };
    assert_eq!(actions(7), actions(7));
    assert_ne!(actions(7), actions(8));
}

#[test]
fn what_a_task_draws_does_not_depend_on_the_others() {
    let draws = |others: &str| {
        let toy = run(&format!(
            "[task.t]\ndo = \"loop(20)[ run(exp(1ms)) ]\"\n[task.u]\ndo = \"{others}\"\n"
        ));
        let of_t = toy
            .actions
            .into_iter()
            .filter(|(_, task, _)| *task == TaskId(0));
        of_t.map(|(_, _, action)| action).collect::<Vec<_>>()
    };
    assert_eq!(draws("exit"), draws("loop(30)[ run(exp(2ms)), yield ]"));
}

/// A workload of random pairs over random channels, and how many messages they exchange.
fn random_workload(seed: u64) -> (String, u64) {
    let mut rng = Rng::new(seed, 0);
    let mut text = "[workload]\nname = \"random\"\n[lock.l]\nhandoff = \"HANDOFF\"\n"
        .replace("HANDOFF", ["fifo", "barge"][rng.below(2) as usize]);
    let mut total = 0;
    for pair in 0..1 + rng.below(5) {
        let kind = ["unix", "pipe", "tcp", "queue"][rng.below(4) as usize];
        let cap = ["", "cap = \"1msg\"", "cap = \"7msg\"", "cap = \"300B\""][rng.below(4) as usize];
        let (writers, readers) = (1 + rng.below(3), 1 + rng.below(3));
        let each = rng.below(300) * readers;
        let (pace, size) = (rng.below(3), 1 + rng.below(3000));
        total += writers * each;
        text += &format!(
            "[chan.c{pair}]\nkind = \"{kind}\"\nmsg = {size}\n{cap}\n\
             [task.w{pair}]\ncount = {writers}\nstart = \"uniform(0ns, 1ms)\"\n\
             do = \"loop({each})[ run(exp({pace}us)), send(c{pair}), count(sent), \
                    if(rand(20) == 0)[ lock(l), sleep(exp(50us)), unlock(l) ] ]\"\n\
             [task.r{pair}]\ncount = {readers}\n\
             do = \"loop({writers} * {each} / {readers})[ recv(c{pair}), count(got), \
                    choose(9: run(exp(1us)), 1: yield, 1: sleep(exp(20us))) ]\"\n"
        );
    }
    (text, total)
}

#[test]
fn random_pairs_lose_no_message_and_come_to_their_end() {
    for seed in 0..200 {
        let (text, total) = random_workload(seed);
        let mut toy = Toy::new(&text, seed);
        toy.run()
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let waiting: Vec<_> = (0..toy.born)
            .filter_map(|t| toy.work.waits_for(TaskId(t)))
            .collect();
        assert!(
            toy.all_dead(),
            "seed {seed}: still waiting for {waiting:?}\n{text}"
        );
        assert_eq!(
            (toy.counted("sent"), toy.counted("got")),
            (total, total),
            "seed {seed}"
        );
    }
}
