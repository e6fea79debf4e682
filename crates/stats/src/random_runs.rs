//! Random runs that keep the rules, with an account of every single nanosecond to compare with.

use model::{
    CpuTimes, Event, EventWords, Exit, ExitKind, Nanos, PrevState, Rng, SimTime, Sink, Summary,
    TaskId, TaskTimes,
};

use crate::{Conservation, Metrics, Report};
use traces::testing::StreamWriter;

#[derive(Clone, Copy, PartialEq, Eq)]
enum RandomState {
    Unstarted,
    Asleep,
    Runnable,
    Running,
    Exited,
}

struct RandomTask {
    state: RandomState,
    place: u16,
}

#[derive(Clone, Default)]
struct Cpu {
    task: Option<u32>,
    /// Nanoseconds of the kernel that are to pass: overhead first.
    overhead: u64,
    stolen: u64,
}

/// A machine that does anything that the rules allow, at random, and counts nanosecond by
/// nanosecond where the time goes.
struct Machine {
    rng: Rng,
    now: u64,
    cpus: Vec<Cpu>,
    tasks: Vec<RandomTask>,
    stream: StreamWriter,
    cpu_times: Vec<CpuTimes>,
    task_times: Vec<TaskTimes>,
    /// Sums over nanoseconds: runnable or running tasks, waiting tasks, longest queue less the
    /// shortest, CPUs that idle while a task waits.
    queues: [u64; 4],
}

const MOST_TASKS: usize = 6;

impl Machine {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0);
        let cpus = 1 + rng.below(4) as usize;
        Self {
            rng,
            now: 0,
            cpus: vec![Cpu::default(); cpus],
            tasks: Vec::new(),
            stream: StreamWriter::new(),
            cpu_times: vec![CpuTimes::default(); cpus],
            task_times: Vec::new(),
            queues: [0; 4],
        }
    }

    fn run(mut self, steps: u32) -> Self {
        for _ in 0..steps {
            for _ in 0..self.rng.below(12) {
                self.pass_nanosecond();
            }
            match self.rng.below(8) {
                0 => self.bear(),
                1 | 2 => self.wake(),
                3 => self.steal(),
                4 => self.migrate(),
                _ => self.switch(),
            }
        }
        self
    }

    fn pass_nanosecond(&mut self) {
        let one = Nanos::new(1);
        self.now += 1;
        for (cpu, times) in self.cpus.iter_mut().zip(&mut self.cpu_times) {
            let task = cpu.task.map(|task| &mut self.task_times[task as usize]);
            let (of_cpu, of_task) = if cpu.overhead > 0 {
                cpu.overhead -= 1;
                (&mut times.overhead, task.map(|task| &mut task.stolen))
            } else if cpu.stolen > 0 {
                cpu.stolen -= 1;
                (&mut times.stolen, task.map(|task| &mut task.stolen))
            } else if let Some(task) = task {
                (&mut times.run, Some(&mut task.run))
            } else {
                (&mut times.idle, None)
            };
            *of_cpu += one;
            of_task.into_iter().for_each(|span| *span += one);
        }
        for (task, times) in self.tasks.iter().zip(&mut self.task_times) {
            match task.state {
                RandomState::Unstarted | RandomState::Asleep => times.sleep += one,
                RandomState::Runnable => times.wait += one,
                RandomState::Running | RandomState::Exited => {}
            }
        }
        self.count_queues();
    }

    fn count_queues(&mut self) {
        let is_queued =
            |task: &&RandomTask| matches!(task.state, RandomState::Runnable | RandomState::Running);
        let mut lengths = vec![0_u64; self.cpus.len()];
        let queued = self.tasks.iter().filter(is_queued);
        queued.for_each(|task| lengths[usize::from(task.place)] += 1);
        let idle = self.cpus.iter().filter(|cpu| cpu.task.is_none()).count() as u64;
        let runnable: u64 = lengths.iter().sum();
        let waiting = runnable - (self.cpus.len() as u64 - idle);
        let spread = lengths.iter().max().unwrap() - lengths.iter().min().unwrap();
        let now = [runnable, waiting, spread, waiting.min(idle)];
        self.queues
            .iter_mut()
            .zip(now)
            .for_each(|(sum, now)| *sum += now);
    }

    fn tell(&mut self, add: impl FnOnce(StreamWriter) -> StreamWriter) {
        self.stream = add(std::mem::take(&mut self.stream));
    }

    /// A random task in one of `states`.
    fn pick(&mut self, states: &[RandomState]) -> Option<u32> {
        let fitting = self
            .tasks
            .iter()
            .zip(0..)
            .filter(|(task, _)| states.contains(&task.state));
        let fitting: Vec<u32> = fitting.map(|(_, number)| number).collect();
        fitting
            .get(self.rng.below(fitting.len() as u64) as usize)
            .copied()
    }

    fn some_cpu(&mut self) -> u16 {
        self.rng.below(self.cpus.len() as u64) as u16
    }

    fn bear(&mut self) {
        let (now, number) = (self.now, self.tasks.len() as u32);
        if self.tasks.len() < MOST_TASKS {
            self.tasks.push(RandomTask {
                state: RandomState::Unstarted,
                place: 0,
            });
            self.task_times.push(TaskTimes::default());
            self.tell(|stream| stream.born(now, number, number.min(1), number));
        }
    }

    fn wake(&mut self) {
        let (now, cpu) = (self.now, self.some_cpu());
        let Some(number) = self.pick(&[RandomState::Unstarted, RandomState::Asleep]) else {
            return;
        };
        let task = &mut self.tasks[number as usize];
        let (new, from) = (task.state == RandomState::Unstarted, task.place);
        (task.state, task.place) = (RandomState::Runnable, cpu);
        self.tell(|stream| match (new, cpu == from) {
            (true, _) => stream.start(now, number, cpu),
            (false, true) => stream.wakeup(now, number, cpu),
            (false, false) => stream
                .migrate(now, number, from, cpu)
                .wakeup(now, number, cpu),
        });
    }

    fn steal(&mut self) {
        let (now, cpu, span) = (self.now, self.some_cpu(), self.rng.below(9));
        let state = &mut self.cpus[usize::from(cpu)];
        state.stolen += span;
        let task = state.task;
        self.tell(|stream| stream.steal(now, cpu, task, span));
    }

    fn migrate(&mut self) {
        let (now, to) = (self.now, self.some_cpu());
        let Some(number) = self.pick(&[RandomState::Runnable]) else {
            return;
        };
        let from = std::mem::replace(&mut self.tasks[number as usize].place, to);
        if from != to {
            self.tell(|stream| stream.migrate(now, number, from, to));
        }
    }

    fn switch(&mut self) {
        let (now, cpu) = (self.now, self.some_cpu());
        let at = usize::from(cpu);
        if self.cpus[at].overhead + self.cpus[at].stolen > 0 {
            return;
        }
        let next = self.pick(&[RandomState::Runnable]);
        let next = next.filter(|next| self.tasks[*next as usize].place == cpu);
        let prev = self.cpus[at].task;
        if prev.is_none() && next.is_none() {
            return;
        }
        let (state, detail) = match self.rng.below(8) {
            0 => (RandomState::Exited, PrevState::Dead),
            1..4 => (RandomState::Asleep, PrevState::Sleeping),
            _ => (RandomState::Runnable, PrevState::Runnable),
        };
        prev.into_iter()
            .for_each(|prev| self.tasks[prev as usize].state = state);
        next.into_iter()
            .for_each(|next| self.tasks[next as usize].state = RandomState::Running);
        let overhead = self.rng.below(5);
        self.cpus[at] = Cpu {
            task: next,
            overhead,
            stolen: 0,
        };
        self.cpu_times[at].switches += 1;
        self.tell(|stream| {
            let named = prev.map(|prev| (prev, detail));
            stream.switch(now, cpu, named, next).overhead(overhead)
        });
        if let (Some(prev), RandomState::Exited) = (prev, state) {
            self.tell(|stream| stream.exit(now, prev, cpu));
        }
    }

    fn summary(&self) -> Summary {
        let end = SimTime::from_nanos(self.now);
        let (message, printed) = (String::new(), String::new());
        Summary {
            end,
            exit: Exit {
                kind: ExitKind::Unreg,
                code: 0,
                message,
                time: end,
                fault: None,
            },
            cpus: self.cpu_times.clone(),
            tasks: self.task_times.clone(),
            counters: Vec::new(),
            spent: Vec::new(),
            policy_counters: Vec::new(),
            printed,
            instructions: 0,
            callbacks: 0,
            starved: Vec::new(),
            excused: None,
            hardware: None,
            growing: Vec::new(),
            blocked: Vec::new(),
            watchdog: None,
            subs: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn report(&self) -> Report {
        let mut metrics = Metrics::new();
        self.stream
            .feed(&mut metrics, self.cpus.len() as u16, self.now);
        metrics.report()
    }
}

/// Feeds the random run of a seed to `sink`.
pub fn feed(seed: u64, sink: &mut dyn Sink) {
    let machine = Machine::new(seed).run(150);
    let cpus = machine.cpus.len() as u16;
    machine.stream.feed(sink, cpus, machine.now);
}

#[test]
fn the_account_of_every_nanosecond_agrees_with_the_events() {
    for seed in 0..500 {
        let machine = Machine::new(seed).run(150);
        let mut check = Conservation::new();
        machine
            .stream
            .feed(&mut check, machine.cpus.len() as u16, machine.now);
        let checked = check.check(&machine.summary());
        assert_eq!(checked, Ok(()), "seed {seed}");
    }
}

#[test]
fn metrics_book_every_nanosecond_where_it_was_spent() {
    for seed in 0..500 {
        let machine = Machine::new(seed).run(150);
        let report = machine.report();
        for (task, want) in report.tasks.iter().zip(&machine.task_times) {
            let times = task.times;
            let got = TaskTimes {
                run: times.run,
                stolen: times.stolen,
                wait: times.wait,
                sleep: times.sleep,
            };
            assert_eq!(got, *want, "seed {seed}, task {}", task.task);
        }
        for (cpu, want) in report.cpus.iter().zip(&machine.cpu_times) {
            let (run, stolen) = (cpu.run, cpu.stolen);
            let (idle, overhead, switches) = (cpu.idle, cpu.overhead, cpu.switches);
            let got = CpuTimes {
                run,
                stolen,
                idle,
                overhead,
                switches,
            };
            assert_eq!(got, *want, "seed {seed}, CPU {}", cpu.cpu);
        }
    }
}

#[test]
fn averages_over_time_are_those_of_every_nanosecond() {
    for seed in 0..500 {
        let machine = Machine::new(seed).run(150);
        let report = machine.report().machine;
        let [runnable, waiting, imbalance, idle_while_waiting] = machine.queues.map(u128::from);
        let elapsed = u128::from(machine.now);
        let capacity = elapsed * machine.cpus.len() as u128;
        let mean = crate::Thousandths::of;
        assert_eq!(report.queue_mean, mean(runnable, capacity), "seed {seed}");
        assert_eq!(report.waiting_mean, mean(waiting, elapsed), "seed {seed}");
        assert_eq!(
            report.imbalance_mean,
            mean(imbalance, elapsed),
            "seed {seed}"
        );
        let idle = u128::from(report.idle_while_waiting.get());
        assert_eq!(idle, idle_while_waiting, "seed {seed}");
    }
}

#[test]
fn distributions_add_up_to_the_totals() {
    let (mut turns, mut empty) = (0, 0);
    for seed in 0..200 {
        let report = Machine::new(seed).run(150).report();
        for group in report.groups.iter().chain([&report.all]) {
            let parts = group.wakeup.count + group.start.count + group.preempt.count;
            assert_eq!(group.delay.count, parts, "seed {seed}");
            assert!(
                group.runs >= parts,
                "seed {seed}: every turn follows a wait"
            );
            let unfinished = parts - group.runslice.count;
            assert!(unfinished <= report.machine.cpus.into(), "seed {seed}");
            (turns, empty) = (turns + group.runs, empty + group.runs - parts);
        }
        let runs: u64 = report.groups.iter().map(|group| group.runs).sum();
        assert_eq!(runs, report.all.runs, "seed {seed}");
    }
    // Only turns without work are left out, and here few are.
    assert!(empty > 0 && empty * 50 < turns, "{empty} of {turns}");
}

#[test]
fn a_lost_event_is_found() {
    for seed in 0..100 {
        let mut machine = Machine::new(seed).run(150);
        let scheduling = |event: &Event| event.kind == model::EventKind::Switch;
        let switches: Vec<usize> = (0..machine.stream.events.len())
            .filter(|at| scheduling(&machine.stream.events[*at]))
            .collect();
        let at = switches[machine.rng.below(switches.len() as u64) as usize];
        machine.stream.events.remove(at);
        let mut check = Conservation::new();
        machine
            .stream
            .feed(&mut check, machine.cpus.len() as u16, machine.now);
        assert!(
            check.check(&machine.summary()).is_err(),
            "seed {seed}: event {at} is not missed"
        );
    }
}

#[test]
fn no_stream_makes_a_sink_panic() {
    for seed in 0..500 {
        let mut machine = Machine::new(seed).run(100);
        let known = machine.tasks.len() as u64;
        for event in &mut machine.stream.events {
            // Another task, another CPU, other words: none of the events fit.
            if event.kind == model::EventKind::New || known == 0 || machine.rng.below(3) > 0 {
                continue;
            }
            event.task = TaskId(machine.rng.below(known) as u32);
            event.cpu.0 = machine.rng.below(machine.cpus.len() as u64) as u16;
            let mut number = || machine.rng.next_u64() >> machine.rng.below(64);
            let words = EventWords {
                detail: number() as u8 % 5,
                a: number(),
                b: number(),
            };
            let at = (event.time, event.cpu, event.task);
            *event = Event::from_words(at, event.kind, words).unwrap_or(*event);
        }
        let births = machine
            .stream
            .events
            .iter()
            .filter(|e| e.kind == model::EventKind::New);
        let births: Vec<_> = births
            .map(|birth| Event::new(SimTime::ZERO, birth.cpu, birth.task, birth.what()))
            .collect();
        let rest = machine
            .stream
            .events
            .iter()
            .filter(|e| e.kind != model::EventKind::New);
        let events = births.into_iter().chain(rest.copied()).collect();
        let stream = StreamWriter { events };
        let cpus = machine.cpus.len() as u16;
        let mut metrics = Metrics::new();
        stream.feed(&mut metrics, cpus, machine.now);
        let _ = metrics.report();
        let sinks: [&mut dyn Sink; 2] = [
            &mut Conservation::new(),
            &mut traces::Perfetto::new(Vec::new()),
        ];
        for sink in sinks {
            stream.feed(sink, cpus, machine.now);
        }
    }
}
