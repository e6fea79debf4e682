//! The balancer of Linux 2.6.3 over the queues of [`O1`], from its description alone: who looks
//! when, which CPU is the busiest, and which tasks move. A sink that follows a run on several CPUs.

use model::{Event, EventKind, EventMask, Header, Op, SimTime, Sink, TaskId};

use super::Scheduler as _;
use super::o1::O1;

const MS: u64 = 1_000_000;

/// How often a busy CPU looks, ns: `BUSY_REBALANCE_TICK` at 1000 ticks a second.
const BUSY: u64 = 200 * MS;

/// A busy CPU leaves tasks alone that ran so recently, ns: `cache_decay_ticks` of a small cache.
const HOT: u64 = MS;

/// How often an idle CPU looks at the nodes, ns: `IDLE_NODE_REBALANCE_TICK` at 1000 ticks.
const IDLE_NODE: u64 = 5 * MS;

/// How often a busy one does: `BUSY_NODE_REBALANCE_TICK`.
const BUSY_NODE: u64 = 2 * BUSY;

/// Why a CPU looks for work elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It was idle.
    Idle,
    /// Its task has just left.
    Leaving,
    /// It is time.
    Busy,
}

/// What the balancer did, under the names of the policy's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// Looks of idle CPUs.
    pub lb_idle: u64,
    /// Looks of busy CPUs.
    pub lb_busy: u64,
    /// Looks of CPUs whose task had left.
    pub lb_resched: u64,
    /// Sum of the differences found.
    pub lb_imbalance: u64,
    /// Looks that found nobody to take from.
    pub lb_not_found: u64,
    /// Tasks moved.
    pub pulled: u64,
    /// Looks at the CPUs of another node; they are none of those above.
    pub lb_node: u64,
    /// Tasks moved between nodes.
    pub pulled_node: u64,
    /// Looks at the nodes.
    pub node_looks: u64,
    /// Those of idle CPUs.
    pub node_looks_idle: u64,
}

/// Queues of a CPU, and what it remembers of the others.
#[derive(Debug)]
struct Cpu {
    queue: O1,
    /// `prev_cpu_load`.
    seen: Vec<i64>,
    next_look: u64,
    /// `prev_node_load`, and when it was brought up to date.
    seen_nodes: Vec<i64>,
    looked_at_nodes: u64,
    running: Option<TaskId>,
    expected: Option<TaskId>,
}

#[derive(Clone, Debug)]
struct Place {
    cpu: usize,
    /// When it last ran or woke.
    left: u64,
    mask: Vec<bool>,
}

/// The machine.
#[derive(Debug)]
pub struct Balance {
    /// What was done so far.
    pub looks: Looks,
    /// Decisions that were compared.
    pub decisions: u64,
    /// The first thing that differed.
    pub differs: Option<String>,
    /// Whether a difference of 1 pulls everything, as in the source.
    faithful_underflow: bool,
    /// CPUs of one node.
    node_cpus: usize,
    /// CPUs that tasks of a group may use.
    masks: Vec<Vec<bool>>,
    nice: Vec<i8>,
    cpus: Vec<Cpu>,
    tasks: Vec<Place>,
    now: SimTime,
}

impl Balance {
    /// Compares a run in which tasks of a group may use the CPUs of its mask.
    #[must_use]
    pub const fn new(masks: Vec<Vec<bool>>, faithful_underflow: bool) -> Self {
        Self {
            looks: Looks {
                lb_idle: 0,
                lb_busy: 0,
                lb_resched: 0,
                lb_imbalance: 0,
                lb_not_found: 0,
                pulled: 0,
                lb_node: 0,
                pulled_node: 0,
                node_looks: 0,
                node_looks_idle: 0,
            },
            decisions: 0,
            differs: None,
            faithful_underflow,
            node_cpus: usize::MAX,
            masks,
            nice: Vec::new(),
            cpus: Vec::new(),
            tasks: Vec::new(),
            now: SimTime::ZERO,
        }
    }

    /// With nodes of so many CPUs.
    #[must_use]
    pub const fn with_nodes(mut self, cpus: usize) -> Self {
        self.node_cpus = cpus;
        self
    }

    fn differ(&mut self, what: impl FnOnce() -> String) {
        if self.differs.is_none() {
            self.differs = Some(format!("{} ns: {}", self.now.as_nanos(), what()));
        }
    }

    fn instant_ends(&mut self) {
        for at in 0..self.cpus.len() {
            let Cpu {
                running, expected, ..
            } = self.cpus[at];
            if running != expected {
                self.differ(|| format!("CPU {at} runs {running:?}, the model {expected:?}"));
            }
            if self.cpus[at].queue.must_decide() {
                self.differ(|| format!("CPU {at} goes on with {running:?}, the model decides"));
            }
        }
    }

    /// `find_busiest_node()`: the node with the most tasks a CPU, half of what was seen before
    /// added, if it has over a quarter more than the own one.
    fn busiest_node(&mut self, this: usize) -> Option<usize> {
        let nodes = self.cpus.chunks(self.node_cpus);
        let loads: Vec<i64> = nodes
            .zip(&self.cpus[this].seen_nodes)
            .map(|(cpus, seen)| {
                let running: i64 = cpus.iter().map(|cpu| cpu.queue.running()).sum();
                seen / 2 + 10 * running / cpus.len() as i64
            })
            .collect();
        self.cpus[this].seen_nodes.clone_from(&loads);
        let own = loads[this / self.node_cpus];
        let mut busiest = (None, own);
        for (node, load) in loads.into_iter().enumerate() {
            if load > busiest.1 && 100 * load > 125 * own {
                busiest = (Some(node), load);
            }
        }
        busiest.0
    }

    /// `balance_node()`, once in each period.
    fn look_at_nodes(&mut self, this: usize, period: u64, why: Why) {
        let now = self.now.as_nanos();
        let before = std::mem::replace(&mut self.cpus[this].looked_at_nodes, now);
        if before / period == now / period {
            self.cpus[this].looked_at_nodes = before;
            return;
        }
        self.looks.node_looks += 1;
        self.looks.node_looks_idle += u64::from(why == Why::Idle);
        if let Some(node) = self.busiest_node(this) {
            self.look(this, node, why);
        }
    }

    /// `find_busiest_queue()`: the CPU of the node, and by how much it has more.
    fn busiest(&mut self, this: usize, node: usize, why: Why) -> Option<(usize, i64)> {
        let idle = why != Why::Busy;
        let loads: Vec<i64> = self.cpus.iter().map(|cpu| cpu.queue.running()).collect();
        let seen = self.cpus[this].seen.clone();
        let looked_at = |at: usize| at == this || at / self.node_cpus == node;
        for at in (0..loads.len()).filter(|at| looked_at(*at)) {
            self.cpus[this].seen[at] = loads[at];
        }
        let mine = if idle {
            loads[this]
        } else {
            loads[this].max(seen[this])
        };
        let mut busiest: Option<(usize, i64)> = None;
        for (at, load) in loads.iter().enumerate() {
            let load = if idle { *load } else { (*load).min(seen[at]) };
            if at != this && looked_at(at) && load > busiest.map_or(1, |(_, most)| most) {
                busiest = Some((at, load));
            }
        }
        let (at, most) = busiest?;
        let imbalance = most - mine;
        let quarter = idle || imbalance * 4 >= most;
        (imbalance > 0 && quarter && loads[at] > loads[this]).then_some((at, imbalance))
    }

    /// `load_balance()`
    fn look(&mut self, this: usize, node: usize, why: Why) {
        let is_own = this / self.node_cpus == node;
        match why {
            _ if !is_own => self.looks.lb_node += 1,
            Why::Idle => self.looks.lb_idle += 1,
            Why::Leaving => self.looks.lb_resched += 1,
            Why::Busy => self.looks.lb_busy += 1,
        }
        let Some((from, imbalance)) = self.busiest(this, node, why) else {
            self.looks.lb_not_found += 1;
            return;
        };
        self.looks.lb_imbalance += imbalance as u64;
        let most = match (why, imbalance / 2) {
            (Why::Idle | Why::Leaving, _) => 1,
            (Why::Busy, 0) if self.faithful_underflow => usize::MAX,
            (Why::Busy, half) => half.max(1) as usize,
        };
        let now = self.now.as_nanos();
        let may = |place: &Place| place.mask[this] && (why != Why::Busy || now - place.left > HOT);
        let tasks = self.cpus[from].queue.takeable();
        let tasks = tasks
            .into_iter()
            .filter(|task| may(&self.tasks[task.index()]));
        for task in tasks.take(most).collect::<Vec<_>>() {
            let state = self.cpus[from].queue.detach(task);
            self.cpus[this].queue.attach(task, state, true);
            self.tasks[task.index()].cpu = this;
            self.looks.pulled += 1;
            self.looks.pulled_node += u64::from(!is_own);
        }
    }

    /// `schedule()` on a CPU.
    fn decide(&mut self, at: usize, was_idle: bool) {
        let now = self.now.as_nanos();
        let own = at / self.node_cpus;
        self.decisions += 1;
        if self.cpus[at].queue.current().is_some() {
            if now >= self.cpus[at].next_look {
                self.cpus[at].next_look = (now / BUSY + 1) * BUSY;
                if self.node_cpus < self.cpus.len() {
                    self.look_at_nodes(at, BUSY_NODE, Why::Busy);
                }
                self.look(at, own, Why::Busy);
            }
        } else if self.cpus[at].queue.running() == 0 && was_idle {
            if self.node_cpus < self.cpus.len() {
                self.look_at_nodes(at, IDLE_NODE, Why::Idle);
            }
            self.look(at, own, Why::Idle);
        } else if self.cpus[at].queue.running() == 0 {
            self.look(at, own, Why::Leaving);
        }
        self.cpus[at].expected = self.cpus[at].queue.schedule(self.now);
    }

    fn called(&mut self, event: &Event) {
        let at = event.cpu.index();
        match Op::ALL[usize::from(event.words().detail)] {
            Op::Tick => self.cpus[at].queue.tick(self.now),
            Op::Dispatch => self.decide(event.words().a as usize, event.task == TaskId::NONE),
            // SCX_DEQ_SLEEP
            Op::Quiescent if event.words().a & 1 == 1 => {
                let home = self.tasks[event.task.index()].cpu;
                self.cpus[home]
                    .queue
                    .leave(event.task, event.words().a & 0x10 != 0, self.now);
            }
            _ => {}
        }
    }

    fn born(&mut self, event: &Event) {
        let group = (event.words().a & 0xffff_ffff) as usize;
        for cpu in &mut self.cpus {
            cpu.queue.born(event.task, self.nice[group], None, self.now);
        }
        self.tasks.push(Place {
            cpu: event.cpu.index(),
            left: 0,
            mask: self.masks[group].clone(),
        });
    }

    fn woken(&mut self, event: &Event) {
        let (task, to) = (event.task, event.cpu.index());
        let home = self.tasks[task.index()].cpu;
        if home != to {
            let state = self.cpus[home].queue.detach(task);
            self.cpus[to].queue.attach(task, state, false);
        }
        let waker = (event.words().a >> 32 & 0xffff) as usize;
        let interrupt = self.cpus[waker].queue.current().is_none();
        self.tasks[task.index()].cpu = to;
        self.tasks[task.index()].left = self.now.as_nanos();
        self.cpus[to]
            .queue
            .wake_by(task, event.words().b == 1, interrupt, self.now);
    }

    fn switched(&mut self, event: &Event) {
        let at = event.cpu.index();
        let next = (event.task != TaskId::NONE).then_some(event.task);
        if let Some(before) = self.cpus[at].running {
            self.tasks[before.index()].left = self.now.as_nanos();
        }
        self.cpus[at].running = next;
        let expected = self.cpus[at].expected;
        if next != expected {
            self.differ(|| format!("{next:?} came to CPU {at}, the model picks {expected:?}"));
        }
    }
}

impl Sink for Balance {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Wakeup)
            .with(EventKind::Switch)
            .with(EventKind::Callback)
    }

    fn begin(&mut self, header: &Header) {
        let cpus = header.machine.cpus;
        self.nice = header.groups.iter().map(|group| group.nice).collect();
        self.cpus = (0..cpus)
            .map(|_| Cpu {
                queue: O1::one_of(cpus),
                seen: vec![0; cpus.into()],
                next_look: 0,
                seen_nodes: vec![0; usize::from(cpus)],
                // Its first look is no repetition: the clock of a kernel does not begin at 0.
                looked_at_nodes: u64::MAX,
                running: None,
                expected: None,
            })
            .collect();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if event.time != self.now {
                self.instant_ends();
                self.now = event.time;
            }
            if self.differs.is_some() {
                return;
            }
            match event.kind {
                EventKind::New => self.born(event),
                EventKind::Wakeup => self.woken(event),
                EventKind::Switch => self.switched(event),
                EventKind::Callback => self.called(event),
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}
