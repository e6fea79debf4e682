//! Test bodies that hold on both machines, the simulated one and a real kernel.
//!
//! A body is a [`Scenario`] and a look at what a machine yields that ran it. It compares orders,
//! counts, levels, shares and kinds of exits, never durations to the nanosecond: on a kernel the
//! scenario's tasks share their CPUs with kernel threads and with the player. Both halves make
//! their tests of the same list, [`every_body`](crate::every_body).

#![expect(
    clippy::missing_panics_doc,
    reason = "a body is the inside of a test; how it fails is its business"
)]

use explain::trace::{Scope, Selection, TraceTurn, TracedTasks, Tracer};
use model::{CpuId, Event, EventKind, EventMask, Header, PrevState, SimTime, Sink, TaskId};
use stats::{Metrics, Report};

mod groups;
mod wakeups;

pub use groups::*;
pub use wakeups::*;

/// What to run. The machine has 2 CPUs and a tick of 4 ms.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name, which files are called by.
    pub name: &'static str,
    /// A shipped policy or a test policy.
    pub policy: &'static str,
    /// Its knobs, as `NAME=VALUE,...`.
    pub knobs: &'static str,
    /// When it ends at the latest, milliseconds.
    pub until_ms: u64,
    /// Tables of a workload, without `[workload]`.
    pub tables: &'static str,
}

impl Scenario {
    /// The workload as a file.
    #[must_use]
    pub fn workload(&self) -> String {
        let Self {
            name,
            until_ms,
            tables,
            ..
        } = self;
        format!(
            "[workload]\nname = \"{name}\"\nstop = [\"all-exit\", \"duration:{until_ms}ms\"]\n\
             [machine]\ncpus = 2\nhz = 250\n{tables}"
        )
    }
}

/// What a machine yields.
#[derive(Clone, Debug)]
pub struct Yield {
    /// Names.
    pub header: Header,
    /// The events.
    pub events: Vec<Event>,
    /// The end of the run.
    pub end: SimTime,
    /// Kind and message of the policy's exit.
    pub exit: (u32, String),
}

/// Takes the events of a run.
#[derive(Clone, Debug, Default)]
pub struct Taker {
    /// The header, once the run has begun.
    pub header: Option<Header>,
    /// The events.
    pub events: Vec<Event>,
    /// The end of the run.
    pub end: SimTime,
}

impl Sink for Taker {
    fn wants(&self) -> EventMask {
        EventMask::SCHED
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        self.events.extend_from_slice(events);
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end;
    }
}

impl Taker {
    /// What was yielded, with the policy's exit.
    ///
    /// # Panics
    /// If the run never began.
    #[must_use]
    pub fn with(self, exit: (u32, String)) -> Yield {
        Yield {
            header: self.header.expect("a run begins with its header"),
            events: self.events,
            end: self.end,
            exit,
        }
    }
}

/// A test: what to run, and what must be true of it on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// What to run.
    pub scenario: Scenario,
    /// Looks at what a machine yielded, and panics if it is wrong.
    pub check: fn(&Yield),
}

/// Every body.
#[must_use]
pub fn all() -> Vec<Body> {
    vec![
        hogs_take_turns(),
        equal_hogs_get_equal_shares(),
        sleepers_run_in_the_order_of_their_wakeups(),
        a_wakeup_does_not_preempt_an_equal(),
        hogs_sink_one_level_at_a_time(),
        short_bursts_stay_on_top(),
        a_better_level_preempts_at_once(),
        a_reformed_hog_climbs_one_level_at_a_wakeup(),
        nice_shares_of_staircase(),
        nice_shares_of_o1(),
        a_task_runs_where_it_may(),
        children_come_and_go_before_their_parent(),
        a_child_of_a_sunken_parent_runs_first(),
        a_thread_is_no_child_of_its_maker(),
        yielders_alternate(),
        a_real_time_task_comes_first(),
        a_real_time_waker_hides_no_equal(),
        a_pipe_loses_nothing(),
        an_unknown_queue_ends_the_policy(),
        an_invalid_cpu_ends_the_policy(),
        an_invalid_kick_ends_the_policy(),
        callbacks_about_cgroups_come_in_order(),
        all_threads_of_a_process_move_together(),
        a_deadline_task_has_one_turn_a_period(),
    ]
}

impl Yield {
    /// The run up to its planned end: on a kernel its tasks go on until the player has ended them.
    #[must_use]
    pub fn until(mut self, end_ms: u64) -> Self {
        let end = SimTime::from_nanos(ms(end_ms));
        self.events.retain(|event| event.time <= end);
        self.end = self.end.min(end);
        self
    }

    fn feed(&self, sink: &mut dyn Sink) {
        sink.begin(&self.header);
        sink.events(&self.events);
        sink.finish(self.end);
    }

    fn report(&self) -> Report {
        let mut metrics = Metrics::new();
        self.feed(&mut metrics);
        metrics.report()
    }

    /// The trace of a group of the workload.
    fn trace(&self, name: &str) -> Tracer {
        let mut tracer = Tracer::new(Selection {
            which: TracedTasks::Name(name.to_owned()),
            children: false,
            queues: Some(Scope::Cpu),
        });
        self.feed(&mut tracer);
        let found = tracer.traced().next();
        assert!(found.is_some(), "nobody was called {name}");
        tracer
    }

    fn turns(&self, name: &str) -> Vec<TraceTurn> {
        self.trace(name).turns().to_vec()
    }

    /// Run time of a group, nanoseconds.
    fn run_ns(&self, name: &str) -> u64 {
        let report = self.report();
        let group = report.groups.iter().find(|group| group.name == name);
        group.expect("a group of the workload").times.run.get()
    }

    /// Who of `names` got a CPU, in order; the same one twice in a row is one.
    fn order(&self, names: &[&str]) -> Vec<String> {
        let mut runs: Vec<(SimTime, String)> = Vec::new();
        for name in names {
            let turns = self.turns(name);
            let ran = turns.iter().filter_map(|turn| turn.ran);
            runs.extend(ran.map(|at| (at, (*name).to_owned())));
        }
        runs.sort();
        let mut order: Vec<String> = runs.into_iter().map(|(_, name)| name).collect();
        order.dedup();
        order
    }

    /// Levels at each run of `name`; the same one twice in a row is one.
    fn levels(&self, name: &str) -> Vec<u32> {
        let turns = self.turns(name);
        let standings = turns.iter().filter_map(|turn| turn.standing);
        let mut levels: Vec<u32> = standings.map(|standing| standing.level).collect();
        levels.dedup();
        levels
    }
}

fn assert_survived(run: &Yield) {
    assert_eq!(run.exit.0, 64, "{:?}", run.exit);
}

/// `A, B, A, B, ...`, at least `least` of them.
fn assert_alternates(order: &[String], least: usize) {
    assert!(order.len() >= least, "{order:?}");
    let distinct = order.windows(3).all(|three| three[0] == three[2]);
    assert!(distinct, "{order:?}");
}

/// `parts` of a whole that are `want` times as much as `others`, within `percent`.
fn assert_ratio(parts: u64, others: u64, want: f64, percent: f64) {
    let got = parts as f64 / others as f64;
    let off = (got / want - 1.0).abs() * 100.0;
    assert!(off <= percent, "{parts} : {others} is {got}, not {want}");
}

/// The 64-bit number of nanoseconds in so many milliseconds.
const fn ms(count: u64) -> u64 {
    count * 1_000_000
}

const TWO_HOGS: &str = "\
    [task.A]\ncpus = \"1\"\ndo = \"run(150ms)\"\n\
    [task.B]\ncpus = \"1\"\nstart = \"1ms\"\ndo = \"run(150ms)\"\n";

/// Two hogs on one CPU take turns.
#[must_use]
pub fn hogs_take_turns() -> Body {
    let scenario = Scenario {
        name: "hogs_take_turns",
        policy: "fifo",
        knobs: "",
        until_ms: 2_000,
        tables: TWO_HOGS,
    };
    let check = |run: &Yield| {
        assert_survived(run);
        assert_alternates(&run.order(&["A", "B"]), 8);
    };
    Body { scenario, check }
}

/// Equal hogs get equal shares.
#[must_use]
pub fn equal_hogs_get_equal_shares() -> Body {
    let scenario = Scenario {
        name: "equal_hogs_get_equal_shares",
        policy: "fifo",
        knobs: "",
        until_ms: 1_000,
        tables: "[task.A]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
                 [task.B]\ncpus = \"1\"\ndo = \"run(inf)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        assert_ratio(run.run_ns("A"), run.run_ns("B"), 1.0, 10.0);
    };
    Body { scenario, check }
}

/// Tasks that wake while a hog computes run in the order in which they woke.
#[must_use]
pub fn sleepers_run_in_the_order_of_their_wakeups() -> Body {
    let scenario = Scenario {
        name: "sleepers_run_in_the_order_of_their_wakeups",
        policy: "fifo",
        knobs: "slice_ns=60000000",
        until_ms: 1_000,
        tables: "[task.A]\ncpus = \"1\"\nstart = \"40ms\"\ndo = \"run(100ms)\"\n\
                 [task.D]\ncpus = \"1\"\nstart = \"70ms\"\ndo = \"run(2ms)\"\n\
                 [task.B]\ncpus = \"1\"\nstart = \"50ms\"\ndo = \"run(2ms)\"\n\
                 [task.C]\ncpus = \"1\"\nstart = \"60ms\"\ndo = \"run(2ms)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        // On a kernel they run a moment before, too: they are there, and sleep until they start,
        // for which they need the CPU before A has it for a slice.
        let first = |name: &str| {
            let turns = run.turns(name).into_iter();
            let started = turns.filter(|turn| turn.ready.as_nanos() > ms(45));
            started.filter_map(|turn| turn.ran).min().expect("it ran")
        };
        assert!(first("B") < first("C") && first("C") < first("D"));
    };
    Body { scenario, check }
}

/// Within one queue a wakeup does not preempt: who wakes behind a hog waits for its slice's end.
#[must_use]
pub fn a_wakeup_does_not_preempt_an_equal() -> Body {
    let scenario = Scenario {
        name: "a_wakeup_does_not_preempt_an_equal",
        policy: "fifo",
        knobs: "",
        until_ms: 600,
        tables: "[task.hog]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
                 [task.short]\ncpus = \"1\"\nstart = \"5ms\"\n\
                 do = \"loop(inf)[ run(1ms), sleep(33ms) ]\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let hog = run.turns("hog")[0].task;
        let short = run.turns("short").into_iter();
        let behind: Vec<TraceTurn> = short.filter(|turn| turn.behind == Some(hog)).collect();
        assert!(behind.len() >= 8, "{behind:?}");
        let waited = behind.iter().filter_map(TraceTurn::wait);
        let long = waited.filter(|wait| wait.get() >= ms(1)).count();
        // The hog's slice may end by chance when the other one wakes.
        assert!(long * 10 >= behind.len() * 7, "{behind:?}");
    };
    Body { scenario, check }
}

const DESCENT: &str = "\
    [task.A]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
    [task.B]\ncpus = \"1\"\ndo = \"run(inf)\"\n";

/// Under MLFQ hogs sink level by level and leave none out.
#[must_use]
pub fn hogs_sink_one_level_at_a_time() -> Body {
    let scenario = Scenario {
        name: "hogs_sink_one_level_at_a_time",
        policy: "mlfq",
        knobs: "",
        until_ms: 900,
        tables: DESCENT,
    };
    let check = |run: &Yield| {
        assert_survived(run);
        for name in ["A", "B"] {
            let levels = run.levels(name);
            // On a kernel a fork has given it what was left of its parent's quantum, and creating
            // it may have used that up.
            let first = levels.first().copied().unwrap_or_default();
            assert!(first <= 1, "{name}: {levels:?}");
            let want: Vec<u32> = (first..first + levels.len() as u32).collect();
            assert_eq!(levels, want, "{name}");
            assert!(levels.len() >= 6, "{name}: {levels:?}");
        }
    };
    Body { scenario, check }
}

/// Under MLFQ a task with short bursts stays in the best queue, whatever hogs there are.
#[must_use]
pub fn short_bursts_stay_on_top() -> Body {
    let scenario = EDITOR;
    let check = |run: &Yield| {
        assert_survived(run);
        // On a kernel the rest of a parent's quantum may be used up when it begins.
        let levels = run.levels("editor");
        let (begin, rest) = levels.split_at(levels.len().saturating_sub(1));
        assert_eq!(rest, [0], "{levels:?}");
        assert!(begin.is_empty() || begin == [1], "{levels:?}");
        assert!(run.turns("editor").len() >= 8);
    };
    Body { scenario, check }
}

/// Under MLFQ a task of a better queue preempts: nobody runs between its wakeup and its run.
#[must_use]
pub fn a_better_level_preempts_at_once() -> Body {
    let scenario = Scenario {
        name: "a_better_level_preempts_at_once",
        ..EDITOR
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let hog = run.turns("hog");
        let hog_task = hog[0].task;
        let woken: Vec<TraceTurn> = run
            .turns("editor")
            .into_iter()
            // Behind the hog's first quantum it waits: that is the best queue, too.
            .filter(|turn| turn.ready.as_nanos() > ms(60))
            .filter(|turn| turn.behind == Some(hog_task))
            .collect();
        assert!(woken.len() >= 4, "{woken:?}");
        let at_once = woken.iter().filter(|turn| turn.overtaken == 0).count();
        // A kernel thread may be in the best queue before it, now and then.
        assert!(at_once * 10 >= woken.len() * 8, "{woken:?}");
    };
    Body { scenario, check }
}

const EDITOR: Scenario = Scenario {
    name: "short_bursts_stay_on_top",
    policy: "mlfq",
    knobs: "",
    until_ms: 700,
    tables: "[task.hog]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
             [task.editor]\ncpus = \"1\"\nstart = \"20ms\"\n\
             do = \"loop(inf)[ run(2ms), sleep(50ms) ]\"\n",
};

/// Under MLFQ a task that computes long and then sleeps often climbs one level at a wakeup.
#[must_use]
pub fn a_reformed_hog_climbs_one_level_at_a_wakeup() -> Body {
    let scenario = Scenario {
        name: "a_reformed_hog_climbs_one_level_at_a_wakeup",
        policy: "mlfq",
        knobs: "",
        until_ms: 1_500,
        tables: "[task.A]\ncpus = \"1\"\n\
                 do = \"run(250ms), loop(8)[ sleep(20ms), run(1ms) ]\"\n\
                 [task.B]\ncpus = \"1\"\ndo = \"loop(20)[ run(8ms), sleep(5ms) ]\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let levels = run.levels("A");
        let top = levels.iter().max().copied().unwrap_or(0);
        let highest = levels.iter().position(|level| *level == top).unwrap_or(0);
        assert!(top >= 3, "{levels:?}");
        // Down step by step, up step by step.
        let climb: Vec<u32> = levels[highest..].to_vec();
        let want: Vec<u32> = (0..=top).rev().collect();
        assert_eq!(climb, want, "{levels:?}");
    };
    Body { scenario, check }
}

/// Under Staircase a hog of nice 0 gets twice as much as one of nice 10.
#[must_use]
pub fn nice_shares_of_staircase() -> Body {
    let scenario = Scenario {
        name: "nice_shares_of_staircase",
        policy: "staircase",
        knobs: "",
        until_ms: 3_200,
        tables: "[task.A]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
                 [task.B]\ncpus = \"1\"\nnice = 10\ndo = \"run(inf)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        assert_ratio(run.run_ns("A"), run.run_ns("B"), 2.0, 20.0);
    };
    Body { scenario, check }
}

/// Under O(1) slices of nice 0 and nice 19 are 102 and 10 ms.
#[must_use]
pub fn nice_shares_of_o1() -> Body {
    let scenario = Scenario {
        name: "nice_shares_of_o1",
        policy: "o1",
        knobs: "",
        until_ms: 3_000,
        tables: "[task.A]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
                 [task.B]\ncpus = \"1\"\nnice = 19\ndo = \"run(inf)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        // Slices end at ticks of 4 ms, and the overrun is carried: 8 to 12 of the short one.
        assert_ratio(run.run_ns("A"), run.run_ns("B"), 10.2, 25.0);
    };
    Body { scenario, check }
}

/// A task runs only where it may, also after it has changed that.
#[must_use]
pub fn a_task_runs_where_it_may() -> Body {
    let scenario = Scenario {
        name: "a_task_runs_where_it_may",
        policy: "fifo",
        knobs: "",
        until_ms: 1_000,
        tables: "[task.A]\ncpus = \"1\"\ndo = \"loop(10)[ run(3ms), sleep(2ms) ], \
                 setaffinity(self, {0}), loop(10)[ run(3ms), sleep(2ms) ]\"\n\
                 [task.B]\ncpus = \"0-1\"\ndo = \"run(60ms)\"\n\
                 [task.C]\ncpus = \"0-1\"\ndo = \"run(60ms)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let turns = run.turns("A");
        let mut cpus: Vec<CpuId> = turns
            .iter()
            .filter(|turn| turn.ran.is_some())
            .map(|turn| turn.cpu)
            .collect();
        assert!(cpus.len() >= 20, "{cpus:?}");
        cpus.dedup();
        assert_eq!(cpus, [CpuId(1), CpuId(0)]);
    };
    Body { scenario, check }
}

/// A parent that waits sees every child come and go, and goes last.
#[must_use]
pub fn children_come_and_go_before_their_parent() -> Body {
    let scenario = Scenario {
        name: "children_come_and_go_before_their_parent",
        policy: "fifo",
        knobs: "",
        until_ms: 1_000,
        tables: "[task.parent]\nkind = \"process\"\n\
                 do = \"loop(5)[ fork(child), run(1ms) ], waitpid(all)\"\n\
                 [task.child]\nkind = \"process\"\ndo = \"run(4ms)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let child = run.header.groups.iter().position(|it| it.name == "child");
        let child = child.expect("a group of the workload") as u64;
        let born = run.events.iter();
        let born: Vec<TaskId> = born
            .filter(|event| event.kind == EventKind::New && event.words().a & 0xffff_ffff == child)
            .map(|event| event.task)
            .collect();
        assert_eq!(born.len(), 5);
        let parent = run.turns("parent")[0].task;
        let exits = run.events.iter();
        let exits: Vec<TaskId> = exits
            .filter(|event| event.kind == EventKind::Exit)
            .map(|event| event.task)
            .filter(|task| *task == parent || born.contains(task))
            .collect();
        // The run is over with the parent's end, which need not be told.
        assert!(exits.len() >= 5, "{exits:?}");
        assert!(exits[..5].iter().all(|task| *task != parent), "{exits:?}");
    };
    Body { scenario, check }
}

/// Under MLFQ a child of a parent that has sunk runs before its parent goes on.
#[must_use]
pub fn a_child_of_a_sunken_parent_runs_first() -> Body {
    let scenario = Scenario {
        name: "a_child_of_a_sunken_parent_runs_first",
        policy: "mlfq",
        knobs: "",
        until_ms: 1_000,
        tables: "[task.parent]\ncpus = \"1\"\nkind = \"process\"\n\
                 do = \"run(70ms), fork(child), run(40ms), waitpid(all)\"\n\
                 [task.child]\ncpus = \"1\"\nkind = \"process\"\ndo = \"run(3ms)\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let child = run.turns("child");
        let first = child.first().and_then(|turn| turn.ran).expect("it ran");
        assert_eq!(child[0].standing.map(|it| it.level), Some(0));
        let parent = run.turns("parent");
        // The parent lost its CPU to the child, and had it back afterwards.
        let lost = parent.iter().filter_map(|turn| turn.left);
        let lost = lost.filter(|(left, state)| *state == PrevState::Runnable && *left <= first);
        assert!(lost.count() >= 1, "{parent:?}");
        let after = parent.iter().filter_map(|turn| turn.ran);
        assert!(after.filter(|ran| *ran > first).count() >= 1, "{parent:?}");
    };
    Body { scenario, check }
}

/// Who yields lets the other one run.
#[must_use]
pub fn yielders_alternate() -> Body {
    let scenario = Scenario {
        name: "yielders_alternate",
        policy: "fifo",
        knobs: "",
        until_ms: 1_000,
        tables: "[task.A]\ncpus = \"1\"\ndo = \"loop(12)[ run(1ms), yield ]\"\n\
                 [task.B]\ncpus = \"1\"\nstart = \"1ms\"\ndo = \"loop(12)[ run(1ms), yield ]\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        assert_alternates(&run.order(&["A", "B"]), 16);
    };
    Body { scenario, check }
}

/// A real-time task takes the CPU from a policy's task at once, and holds it until it sleeps.
#[must_use]
pub fn a_real_time_task_comes_first() -> Body {
    let scenario = Scenario {
        name: "a_real_time_task_comes_first",
        policy: "fifo",
        knobs: "",
        until_ms: 700,
        tables: "[task.A]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
                 [task.R]\ncpus = \"1\"\npolicy = \"fifo:50\"\nstart = \"10ms\"\n\
                 do = \"loop(6)[ run(10ms), sleep(50ms) ]\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let real_time = run.turns("R");
        let woken = real_time.iter().filter(|turn| turn.ran.is_some());
        let woken: Vec<&TraceTurn> = woken.collect();
        assert!(woken.len() >= 6, "{woken:?}");
        assert!(woken.iter().all(|turn| turn.overtaken == 0), "{woken:?}");
        let states = woken.iter().filter_map(|turn| turn.left);
        assert!(states.clone().count() >= 6);
        assert!(
            states
                .clone()
                .all(|(_, state)| state != PrevState::Runnable),
            "{woken:?}"
        );
    };
    Body { scenario, check }
}

/// Messages through a pipe: both ends see as many as were sent, and both exit.
#[must_use]
pub fn a_pipe_loses_nothing() -> Body {
    let scenario = Scenario {
        name: "a_pipe_loses_nothing",
        policy: "mlfq",
        knobs: "",
        until_ms: 2_000,
        tables: "[chan.ping]\nkind = \"pipe\"\n[chan.pong]\nkind = \"pipe\"\n\
                 [task.A]\ncpus = \"1\"\n\
                 do = \"loop(40)[ run(100us), send(ping), recv(pong), count(answers) ]\"\n\
                 [task.B]\ncpus = \"1\"\n\
                 do = \"loop(40)[ recv(ping), run(100us), count(questions), send(pong) ]\"\n",
    };
    let check = |run: &Yield| {
        assert_survived(run);
        let report = run.report();
        let total = |name: &str| {
            let counters = report.counters.iter();
            let own = counters.filter(|counter| counter.name == name);
            own.map(|counter| counter.total).sum::<u64>()
        };
        assert_eq!((total("answers"), total("questions")), (40, 40));
        // Each message finds the other asleep on the one CPU: they take turns.
        assert_alternates(&run.order(&["A", "B"]), 70);
    };
    Body { scenario, check }
}

/// A task that a policy puts into a queue that does not exist ends that policy.
#[must_use]
pub fn an_unknown_queue_ends_the_policy() -> Body {
    let scenario = Scenario {
        name: "an_unknown_queue_ends_the_policy",
        policy: "misuse",
        knobs: "misuse_case=1",
        until_ms: 300,
        tables: SHORT,
    };
    let check = |run: &Yield| {
        assert_eq!(run.exit.0, 1024, "{:?}", run.exit);
        assert!(
            run.exit.1.starts_with("non-existent DSQ 0xdead"),
            "{:?}",
            run.exit
        );
    };
    Body { scenario, check }
}

/// A CPU that does not exist ends the policy that chooses it.
#[must_use]
pub fn an_invalid_cpu_ends_the_policy() -> Body {
    let scenario = Scenario {
        name: "an_invalid_cpu_ends_the_policy",
        policy: "misuse",
        knobs: "misuse_case=20",
        until_ms: 300,
        tables: SHORT,
    };
    let check = |run: &Yield| {
        let want = "invalid CPU 9999 from ops.select_cpu()".to_owned();
        assert_eq!(run.exit, (1024, want));
    };
    Body { scenario, check }
}

/// Kicking a CPU that does not exist ends the policy, too.
#[must_use]
pub fn an_invalid_kick_ends_the_policy() -> Body {
    let scenario = Scenario {
        name: "an_invalid_kick_ends_the_policy",
        policy: "misuse",
        knobs: "misuse_case=21",
        until_ms: 300,
        tables: SHORT,
    };
    let check = |run: &Yield| {
        assert_eq!(run.exit, (1024, "invalid CPU 777".to_owned()));
    };
    Body { scenario, check }
}

/// Tasks that wake, run and may move.
const SHORT: &str = "[task.A]\ndo = \"loop(20)[ run(1ms), sleep(5ms) ]\"\n\
    [task.B]\ndo = \"loop(20)[ run(1ms), sleep(5ms) ]\"\n";

/// Makes a test of every body: `every_body!(machine)`, and with attributes for each test
/// `every_body!(machine, #[ignore = "..."])`.
#[macro_export]
macro_rules! every_body {
    ($machine:expr $(, #[$attribute:meta])*) => {
        $crate::every_body! { @ $machine, [$(#[$attribute])*],
            hogs_take_turns
            equal_hogs_get_equal_shares
            sleepers_run_in_the_order_of_their_wakeups
            a_wakeup_does_not_preempt_an_equal
            hogs_sink_one_level_at_a_time
            short_bursts_stay_on_top
            a_better_level_preempts_at_once
            a_reformed_hog_climbs_one_level_at_a_wakeup
            nice_shares_of_staircase
            nice_shares_of_o1
            a_task_runs_where_it_may
            children_come_and_go_before_their_parent
            a_child_of_a_sunken_parent_runs_first
            a_thread_is_no_child_of_its_maker
            yielders_alternate
            a_real_time_task_comes_first
            a_real_time_waker_hides_no_equal
            a_pipe_loses_nothing
            an_unknown_queue_ends_the_policy
            an_invalid_cpu_ends_the_policy
            an_invalid_kick_ends_the_policy
            callbacks_about_cgroups_come_in_order
            all_threads_of_a_process_move_together
            a_deadline_task_has_one_turn_a_period
        }
    };
    (@ $machine:expr, $attributes:tt, $($name:ident)*) => {
        $($crate::every_body! { % $machine, $attributes, $name })*
    };
    (% $machine:expr, [$(#[$attribute:meta])*], $name:ident) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            let body = $crate::two_machines::$name();
            let run = $machine(&body.scenario);
            (body.check)(&run.until(body.scenario.until_ms));
        }
    };
}
