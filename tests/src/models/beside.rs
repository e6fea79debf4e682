//! ELSC with goodness beside it: at each choice of ELSC, what would goodness have chosen among the
//! same tasks, and if another one, which of ELSC's rules is the reason?

use std::collections::BTreeMap;

use model::TaskId;

use super::elsc::Elsc;
use super::goodness::Goodness;
use super::ticked::Model;

/// Why ELSC chooses another task than goodness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A bonus lifts a task over one of a higher list, but ELSC looks into that list only.
    OneList,
    /// A better task stands further behind in the same list than ELSC looks, or behind the first
    /// one that shares the address space.
    EarlyEnd,
    /// A yielder, alone, runs again with the ticks that it has; goodness recalculates first.
    NoRecalculation,
    /// A yielder, alone in the highest list, runs before all lower ones.
    BeforeLowerLists,
    /// A yielder gives way to its list; the goodness kernel for one CPU meets it twice and lets it
    /// win if it is better.
    YielderYields,
    /// Equals, of which one went to the front of its list when it lost the CPU, or when its nice
    /// value changed while it waited.
    PutFirst,
    /// Equals, of which one went to the end of its list when its ticks were used up, or had none
    /// when its nice value changed.
    PutLast,
}

/// The two.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Decides.
    pub elsc: Elsc,
    /// Every difference, by reason.
    pub differences: BTreeMap<Reason, u32>,
    /// Choices with somebody to choose from.
    pub choices: u32,
    /// Differences without a reason, in words.
    pub unexplained: Vec<String>,
    /// Runnable tasks in the order in which goodness would have them.
    order: Vec<TaskId>,
    /// Tasks that lost the CPU or were given another nice value since they woke, and whether they
    /// had ticks left.
    put_back: BTreeMap<TaskId, bool>,
}

impl Beside {
    /// No tasks yet.
    #[must_use]
    pub fn new(smp: bool) -> Self {
        Self {
            elsc: Elsc::new(smp),
            differences: BTreeMap::new(),
            choices: 0,
            unexplained: Vec::new(),
            order: Vec::new(),
            put_back: BTreeMap::new(),
        }
    }

    /// What goodness chooses now, and whether it recalculates before.
    fn goodness(&self) -> (Option<TaskId>, bool) {
        let mut goodness = Goodness::new(self.elsc.tasks.kernel);
        goodness.tasks = self.elsc.tasks.clone();
        goodness.list.clone_from(&self.order);
        goodness.mm = self.elsc.mm;
        let next = goodness.choose(self.elsc.prev());
        let recalculations = self.elsc.tasks.recalculations;
        (next, goodness.tasks.recalculations > recalculations)
    }

    /// A difference in words.
    fn told(&self, before: &Elsc, ours: TaskId, theirs: TaskId) -> String {
        let task = |id: TaskId| {
            let (task, list) = (self.elsc.tasks.get(id), self.elsc.list_for(id));
            let goodness = self.elsc.tasks.goodness(id, before.mm);
            format!("{id:?} {task:?} list {list} goodness {goodness}")
        };
        format!(
            "{}; goodness would run {}; before them {:?}",
            task(ours),
            task(theirs),
            before.prev().map(task)
        )
    }

    /// Why ELSC runs `ours` and goodness `theirs`, judged by what both saw: `before`.
    fn reason(&self, before: &Elsc, ours: TaskId, theirs: TaskId) -> Option<Reason> {
        let mut seen = before.clone();
        if self.elsc.tasks.recalculations > before.tasks.recalculations {
            seen.tasks.recalculate();
        }
        let worth = |task| seen.tasks.goodness(task, before.mm);
        let list = |task| seen.list_for(task);
        let yielder = before
            .prev()
            .filter(|prev| before.tasks.get(*prev).yielding);
        if yielder == Some(ours) {
            let alone = self
                .order
                .iter()
                .all(|task| *task == ours || list(*task) != list(ours) || worth(*task) == 0);
            return alone.then_some(Reason::BeforeLowerLists);
        }
        if yielder == Some(theirs) && list(theirs) == list(ours) {
            return (worth(theirs) > worth(ours)).then_some(Reason::YielderYields);
        }
        if list(theirs) < list(ours) {
            return (worth(theirs) >= worth(ours)).then_some(Reason::OneList);
        }
        if list(theirs) > list(ours) {
            return None;
        }
        if worth(theirs) > worth(ours) {
            return Some(Reason::EarlyEnd);
        }
        if worth(theirs) < worth(ours) {
            return None;
        }
        // Ours stands before theirs here, and behind it in the old order.
        let [ours, theirs] = [ours, theirs].map(|task| self.put_back.get(&task).copied());
        match (ours, theirs) {
            (Some(true), _) => Some(Reason::PutFirst),
            (Some(false), _) | (_, Some(false)) => Some(Reason::PutLast),
            (None, _) => None,
        }
    }
}

impl Model for Beside {
    fn born(&mut self, task: TaskId, nice: i32, mm: u32, parent: Option<TaskId>) {
        self.elsc.born(task, nice, mm, parent);
    }

    fn woken(&mut self, task: TaskId) {
        self.order.insert(0, task);
        self.put_back.remove(&task);
        self.elsc.woken(task);
    }

    fn slept(&mut self, task: TaskId) {
        self.order.retain(|own| *own != task);
        self.elsc.slept(task);
    }

    fn exited(&mut self, task: TaskId) {
        self.elsc.exited(task);
    }

    fn yielded(&mut self, task: TaskId) {
        self.order.retain(|own| *own != task);
        self.order.push(task);
        self.elsc.yielded(task);
    }

    fn reniced(&mut self, task: TaskId, nice: i32) {
        self.elsc.reniced(task, nice);
        if self.order.contains(&task) && self.elsc.current() != Some(task) {
            let has_ticks = self.elsc.tasks.get(task).counter != 0;
            self.put_back.insert(task, has_ticks);
        }
    }

    fn tick(&mut self) -> bool {
        self.elsc.tick()
    }

    fn schedule(&mut self) -> Option<TaskId> {
        let before = self.elsc.clone();
        let (theirs, recalculates) = self.goodness();
        let next = self.elsc.schedule();
        let recalculated = self.elsc.tasks.recalculations > before.tasks.recalculations;
        if let (Some(ours), Some(theirs)) = (next, theirs) {
            self.choices += 1;
            let reason = if ours != theirs {
                self.reason(&before, ours, theirs)
            } else if recalculated == recalculates {
                None
            } else {
                // The same task, but only one of them gave out new ticks.
                let yielder = before.tasks.get(ours).yielding && before.prev() == Some(ours);
                (yielder && recalculates).then_some(Reason::NoRecalculation)
            };
            match reason {
                Some(reason) => *self.differences.entry(reason).or_default() += 1,
                None if ours == theirs && recalculated == recalculates => {}
                None => self.unexplained.push(self.told(&before, ours, theirs)),
            }
        } else if next != theirs {
            self.unexplained
                .push(format!("{next:?}, goodness {theirs:?}"));
        }
        if let Some(prev) = before.prev().filter(|prev| next != Some(*prev)) {
            let has_ticks = before.tasks.get(prev).counter > 0;
            self.put_back.insert(prev, has_ticks);
        }
        next
    }

    fn wants_schedule(&self) -> bool {
        self.elsc.wants_schedule()
    }

    fn current(&self) -> Option<TaskId> {
        self.elsc.current()
    }
}
