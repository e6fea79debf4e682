//! The simplest machine that there can be: one CPU, first come first served, no preemption.

use std::collections::{BTreeMap, VecDeque};

use model::EventKind;

use crate::work::*;

/// The machine, and what it has seen.
pub(super) struct Toy {
    pub(super) work: Work,
    pub(super) workload: Arc<Workload>,
    pub(super) now: SimTime,
    pub(super) ready: VecDeque<TaskId>,
    /// What is to happen, by time and then by number.
    pub(super) later: BTreeMap<(SimTime, u64), Later>,
    pub(super) scheduled: u64,
    pub(super) born: u32,
    pub(super) state: Vec<State>,
    pub(super) events: Vec<(SimTime, TaskId, WorkEvent)>,
    pub(super) actions: Vec<(SimTime, TaskId, Action)>,
    /// Forks that fail: the number of each, counted from zero.
    pub(super) failing_forks: Vec<u32>,
    pub(super) forks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runnable,
    Asleep,
    Dead,
}

#[derive(Debug)]
pub(super) enum Later {
    Start(Birth),
    Wake(TaskId),
    Interrupt(usize),
}

impl Toy {
    pub(super) fn new(text: &str, seed: u64) -> Self {
        let workload = Workload::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        Self::with(workload, seed)
    }

    pub(super) fn with(workload: Workload, seed: u64) -> Self {
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

    pub(super) fn at(&mut self, time: SimTime, later: Later) {
        self.later.insert((time, self.scheduled), later);
        self.scheduled += 1;
    }

    pub(super) fn bear(&mut self, birth: &Birth, parent: Option<TaskId>) -> TaskId {
        let task = TaskId(self.born);
        self.born += 1;
        self.state.push(State::Runnable);
        self.work.born(task, birth, parent);
        self.ready.push_back(task);
        task
    }

    pub(super) fn wake(&mut self, task: TaskId) {
        assert_eq!(
            self.state[task.index()],
            State::Asleep,
            "only sleepers are woken"
        );
        self.state[task.index()] = State::Runnable;
        self.ready.push_back(task);
    }

    /// Everything that is due happens.
    pub(super) fn catch_up(&mut self) -> Result<(), WorkError> {
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
                    for next in interrupt.next {
                        assert!(next > time, "interrupts come one after the other");
                        self.at(next, Later::Interrupt(source));
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs until the workload is over, or nothing happens any more.
    pub(super) fn run(&mut self) -> Result<(), WorkError> {
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
    pub(super) fn run_task(&mut self, task: TaskId) -> Result<(), WorkError> {
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
                Action::Exec(span) => {
                    self.now = self.now + span;
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
                Action::Interrupt { source, at, .. } => self.at(at, Later::Interrupt(source)),
                Action::SetNice { .. }
                | Action::SetAffinity { .. }
                | Action::SetPolicy { .. }
                | Action::MoveCgroup { .. }
                | Action::SetCgroup { .. }
                | Action::MigrateDisable
                | Action::MigrateEnable => {}
            }
        }
    }

    /// The sum of a counter.
    pub(super) fn counted(&self, name: &str) -> u64 {
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
    pub(super) fn times(&self, choose: impl Fn(&Action) -> bool) -> Vec<(u64, u32)> {
        let chosen = self.actions.iter().filter(|(_, _, action)| choose(action));
        chosen
            .map(|(time, task, _)| (time.as_nanos() / 1_000, task.0))
            .collect()
    }

    /// Kind and words of each event.
    pub(super) fn recorded(&self) -> Vec<(EventKind, u64, u64)> {
        self.events
            .iter()
            .map(|(_, _, event)| (event.kind, event.a, event.b))
            .collect()
    }

    pub(super) fn all_dead(&self) -> bool {
        self.state.iter().all(|&state| state == State::Dead)
    }
}

/// Runs `tables` as a workload with a seed of 1.
pub(super) fn run(tables: &str) -> Toy {
    let mut toy = Toy::new(&format!("[workload]\nname = \"test\"\n{tables}"), 1);
    toy.run().unwrap_or_else(|error| panic!("{error}"));
    toy
}
