//! What may end a wait, and what may not: cures and placebos.

use explain::why::{Fault, Finding, QueueName, Situation, Standing};
use model::{CpuId, Nanos, TaskId};
use sim::{Deed, Rule};

/// CPUs, queues and tasks that are tried, of each kind of deed: the others are like them.
const MOST: usize = 8;
/// The slice of a task whose policy gives it none (`SCX_SLICE_DFL`, kernel 6.18).
const SLICE: Nanos = Nanos::from_millis(20);

/// What may end a wait, in the order in which it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cure {
    /// The task goes to the local queue of this CPU; `None`: of an idle one, else of its own.
    Put(Option<CpuId>),
    /// The task goes to this queue of the policy's.
    Insert(u64),
    /// This CPU is kicked.
    Kick(CpuId),
    /// An idle CPU is kicked after each insert from then on.
    KickIdle,
    /// The next `dispatch` of this CPU takes the task; one that idles is kicked for that.
    Take(CpuId, bool),
    /// The slice of who has this CPU is over.
    EndSlice(CpuId),
    /// No slice is longer from then on.
    SliceAtMost(Nanos),
    /// What is inserted directly goes into this queue from then on.
    NoDirect(u64),
    /// Queues are in the order of arrival from then on.
    InOrder,
    /// Queues are in the order of time by weight from then on.
    ByWeight,
}

impl Cure {
    /// The cures that fit a situation, the one that is tried first first.
    pub(super) fn of(it: &Situation) -> Vec<Self> {
        let mut all = Vec::new();
        let (idle, held): (Vec<CpuId>, Vec<CpuId>) = match it.standing {
            Standing::Local(cpu) => {
                let only = |cpus: &[CpuId]| cpus.iter().copied().filter(|it| *it == cpu).collect();
                (only(&it.idle), only(&it.held))
            }
            _ => (
                it.idle.iter().copied().take(MOST).collect(),
                it.held.iter().copied().take(MOST).collect(),
            ),
        };
        match it.standing {
            Standing::Nowhere => all.push(Self::Put(None)),
            Standing::Queue(id) if !it.read.contains(&id) => {
                all.extend(it.read.iter().take(MOST).map(|queue| Self::Insert(*queue)));
                all.extend(it.read.is_empty().then_some(Self::Put(None)));
            }
            Standing::Local(cpu) => {
                let others = it.usable.iter().filter(|other| **other != cpu).take(MOST);
                all.extend(others.map(|other| Self::Put(Some(*other))));
            }
            _ => {}
        }
        all.extend(idle.iter().map(|cpu| Self::Kick(*cpu)));
        all.extend((!idle.is_empty()).then_some(Self::KickIdle));
        if matches!(it.standing, Standing::Queue(_) | Standing::Global) {
            all.extend(idle.iter().map(|cpu| Self::Take(*cpu, true)));
            all.extend(held.iter().map(|cpu| Self::Take(*cpu, false)));
        }
        all.extend(held.iter().map(|cpu| Self::EndSlice(*cpu)));
        all.extend((!held.is_empty()).then_some(Self::SliceAtMost(SLICE)));
        if let Standing::Queue(id) = it.standing {
            all.extend([Self::NoDirect(id), Self::InOrder, Self::ByWeight]);
        }
        all.sort_by_key(|cure| cure.rank());
        all
    }

    /// What is done for `task`.
    pub(super) fn deeds(self, task: TaskId) -> Vec<Deed> {
        match self {
            Self::Put(cpu) => vec![Deed::Put { task, cpu }],
            Self::Insert(queue) => vec![Deed::Insert { task, queue }],
            Self::Kick(cpu) => vec![Deed::Kick(cpu)],
            Self::KickIdle => vec![Deed::Rule(Rule::KickIdle)],
            Self::Take(cpu, false) => vec![Deed::Take { task, cpu }],
            Self::Take(cpu, true) => vec![Deed::Take { task, cpu }, Deed::Kick(cpu)],
            Self::EndSlice(cpu) => vec![Deed::EndSlice(cpu)],
            Self::SliceAtMost(most) => vec![Deed::Rule(Rule::SliceAtMost(most))],
            Self::NoDirect(queue) => vec![Deed::Rule(Rule::NoDirect(queue))],
            Self::InOrder => vec![Deed::Rule(Rule::InOrder)],
            Self::ByWeight => vec![Deed::Rule(Rule::ByWeight)],
        }
    }

    /// The same done elsewhere, where it should not help `task`.
    pub(super) fn elsewhere(self, task: TaskId, it: &Situation, fault: Fault) -> Vec<Vec<Deed>> {
        let all = || (0..it.cpus).map(CpuId);
        let others = it.others.iter().copied().take(MOST);
        // Whoever is taken out of a queue that nobody reads shows that it is read.
        let is_of_queue = matches!(fault, Fault::UnreadQueue | Fault::UnreachableQueue);
        match self {
            Self::Put(_) | Self::Insert(_) => others.map(|other| self.deeds(other)).collect(),
            Self::Take(..) => {
                let others = others.filter(|_| !is_of_queue);
                let to_others = others.map(|other| self.deeds(other));
                let not_usable = all().filter(|cpu| !it.usable.contains(cpu)).take(MOST);
                let elsewhere = not_usable.map(|cpu| Self::Take(cpu, true).deeds(task));
                to_others.chain(elsewhere).collect()
            }
            Self::Kick(_) => {
                let named = all().filter(|cpu| !it.idle.contains(cpu)).take(MOST);
                named.map(|cpu| vec![Deed::Kick(cpu)]).collect()
            }
            Self::EndSlice(_) => {
                let named = all().filter(|cpu| !it.held.contains(cpu)).take(MOST);
                named.map(|cpu| vec![Deed::EndSlice(cpu)]).collect()
            }
            Self::KickIdle
            | Self::SliceAtMost(_)
            | Self::NoDirect(_)
            | Self::InOrder
            | Self::ByWeight => Vec::new(),
        }
    }

    /// The classes of faults that it cures, the one first that it tells of a wait of which nothing
    /// else is known.
    const fn faults(self) -> &'static [Fault] {
        match self {
            Self::Put(None) => &[Fault::Lost, Fault::InsertIgnored, Fault::UnreadQueue],
            Self::Insert(_) => &[
                Fault::UnreachableQueue,
                Fault::UnreadQueue,
                Fault::LocalRefilled,
            ],
            // A task in a local queue is there because the policy chose that CPU.
            Self::Put(Some(_)) => &[
                Fault::UnreachableQueue,
                Fault::UnreadQueue,
                Fault::CpuHeld,
                Fault::ForgottenKick,
            ],
            Self::Kick(_) | Self::KickIdle => &[Fault::ForgottenKick],
            Self::Take(_, true) => &[
                Fault::Skipped,
                Fault::UnreadQueue,
                Fault::UnreachableQueue,
                Fault::PassedOver,
            ],
            // Who asks for work and keeps what runs holds the CPU, too.
            Self::Take(_, false) => &[
                Fault::PassedOver,
                Fault::CpuHeld,
                Fault::UnreadQueue,
                Fault::UnreachableQueue,
                Fault::LocalRefilled,
                Fault::LockHeld,
            ],
            Self::EndSlice(_) | Self::SliceAtMost(_) => &[Fault::CpuHeld, Fault::LockHeld],
            Self::NoDirect(_) => &[Fault::LocalRefilled, Fault::PassedOver, Fault::LockHeld],
            Self::InOrder | Self::ByWeight => {
                &[Fault::PassedOver, Fault::UnfairShare, Fault::LockHeld]
            }
        }
    }

    /// The class of a fault that it cures, where nothing else is known.
    pub(super) const fn fault(self) -> Fault {
        self.faults()[0]
    }

    /// Whether a fault of the class of `finding` ends by it. A kick makes a CPU ask once more: that
    /// also ends a fault of one that has asked since the task came, and passed it by.
    pub(super) fn is_of(self, finding: &Finding) -> bool {
        let has_asked = || {
            let queue = finding.queue.as_ref();
            queue.is_some_and(|queue| queue.empty_dispatch.is_some())
        };
        let asks_again = matches!(self, Self::Kick(_) | Self::KickIdle)
            && matches!(finding.fault, Fault::UnreadQueue | Fault::Skipped);
        self.faults().contains(&finding.fault) || asks_again && has_asked()
    }

    /// A word for scripts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Put(_) => "put",
            Self::Insert(_) => "insert",
            Self::Kick(_) => "kick",
            Self::KickIdle => "kick-idle",
            Self::Take(..) => "take",
            Self::EndSlice(_) => "end-slice",
            Self::SliceAtMost(_) => "slice-at-most",
            Self::NoDirect(_) => "no-direct-insert",
            Self::InOrder => "in-order",
            Self::ByWeight => "by-weight",
        }
    }

    /// The CPU that it is done to.
    #[must_use]
    pub const fn cpu(self) -> Option<CpuId> {
        match self {
            Self::Kick(cpu) | Self::Take(cpu, _) | Self::EndSlice(cpu) => Some(cpu),
            Self::Put(cpu) => cpu,
            _ => None,
        }
    }

    /// For people, as the beginning of a sentence, and whether it holds from a moment on.
    #[must_use]
    pub fn text(self, victim: &str) -> (String, bool) {
        let queue = |id| QueueName { of: None, id };
        let text = match self {
            Self::Put(Some(cpu)) => format!("With {victim} in the local queue of CPU {cpu}"),
            Self::Put(None) => format!("With {victim} in a local queue"),
            Self::Insert(id) => format!("With {victim} in the queue {}", queue(id)),
            Self::Kick(cpu) => format!("With a kick of CPU {cpu}"),
            Self::Take(cpu, _) => format!("With {victim} taken by `dispatch` of CPU {cpu}"),
            Self::EndSlice(cpu) => format!("With the slice on CPU {cpu} ended"),
            Self::KickIdle => "With a kick of an idle CPU after each insert".to_owned(),
            Self::SliceAtMost(most) => format!("With slices of at most {most}"),
            Self::NoDirect(id) => {
                let queue = queue(id);
                format!("With direct inserts sent to the queue {queue}")
            }
            Self::InOrder => "With queues in the order of arrival".to_owned(),
            Self::ByWeight => "With queues in the order of time divided by weight".to_owned(),
        };
        (text, self.is_rule())
    }

    /// Its step, whether it is a rule, and what breaks ties: docs/explain.md.
    pub(super) fn rank(self) -> (u8, bool, u64) {
        let cpu = |cpu: CpuId| u64::from(cpu.0);
        let (step, tie) = match self {
            Self::Put(None) => (1, 0),
            Self::Put(Some(to)) => (2, cpu(to)),
            Self::Insert(queue) => (2, queue),
            Self::Kick(to) => (3, cpu(to)),
            Self::KickIdle => (3, 0),
            Self::Take(by, _) => (4, cpu(by)),
            Self::EndSlice(on) => (5, cpu(on)),
            Self::SliceAtMost(_) => (5, 0),
            Self::NoDirect(_) => (6, 0),
            Self::InOrder => (6, 1),
            Self::ByWeight => (6, 2),
        };
        (step, self.is_rule(), tie)
    }

    const fn is_rule(self) -> bool {
        matches!(
            self,
            Self::KickIdle
                | Self::SliceAtMost(_)
                | Self::NoDirect(_)
                | Self::InOrder
                | Self::ByWeight
        )
    }
}
