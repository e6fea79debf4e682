//! Cgroups: what the policy hears of them.
//!
//! Source: `scx_cgroup_init()`, `scx_cgroup_exit()`, `scx_cgroup_can_attach()`,
//! `scx_cgroup_move_task()`, `scx_group_set_weight()` and its like, `sched_move_task()`, and the
//! order in which `cgroup_migrate_execute()` calls them, kernel 6.18. All cgroups exist from the
//! begin of a run to its end, and all have the controller `cpu`.

use model::{Op, TaskId};
use workload::{Bandwidth, Cgroup, ROOT_CGROUP};

use crate::flags::deq;
use crate::machine::{Machine, Vm};
use crate::ops::{Call, CallOwner};
use crate::schedulers::SchedId;
use crate::task::RunState;

/// A cgroup as the kernel's scheduler knows it (`struct task_group`).
#[derive(Clone, Debug)]
struct Group {
    parent: u32,
    children: Vec<u32>,
    weight: u32,
    max: Bandwidth,
    idle: bool,
    /// The policy knows it (`SCX_TG_INITED`).
    told: bool,
    /// The scheduler of the tasks in it.
    owner: SchedId,
}

/// All cgroups, by number; 0 is the root.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    groups: Vec<Group>,
    /// The policy is told of changes (`scx_cgroup_enabled`).
    enabled: bool,
}

impl Cgroups {
    /// The root, and those that the workload declares.
    pub fn new(declared: &[Cgroup]) -> Self {
        let root = Group {
            parent: ROOT_CGROUP,
            children: Vec::new(),
            weight: 100,
            max: Bandwidth::default(),
            idle: false,
            told: false,
            owner: SchedId::ROOT,
        };
        let mut groups = vec![root];
        for (number, cgroup) in (1..).zip(declared) {
            groups[cgroup.parent as usize].children.push(number);
            groups.push(Group {
                parent: cgroup.parent,
                children: Vec::new(),
                weight: cgroup.weight,
                max: cgroup.max,
                idle: cgroup.idle,
                told: false,
                owner: SchedId::ROOT,
            });
        }
        Self {
            groups,
            enabled: false,
        }
    }

    /// The scheduler of the tasks in a cgroup.
    pub fn owner(&self, number: u32) -> SchedId {
        self.groups[number as usize].owner
    }

    /// The cgroup `start` and all below it get another scheduler.
    pub fn set_owner(&mut self, start: u32, owner: SchedId) {
        let mut next = Some(start);
        while let Some(number) = next {
            self.groups[number as usize].owner = owner;
            next = self.next_pre(number, start);
        }
    }

    /// The scheduler that hears of changes of a cgroup: its parent's.
    fn told_of_changes(&self, number: u32) -> SchedId {
        self.owner(self.parent(number).unwrap_or(number))
    }

    /// Whether there is a cgroup with this number.
    pub fn has(&self, number: u32) -> bool {
        (number as usize) < self.groups.len()
    }

    /// The parent of a cgroup; the root has none.
    pub fn parent(&self, number: u32) -> Option<u32> {
        (number != ROOT_CGROUP).then(|| self.groups[number as usize].parent)
    }

    /// How many steps a cgroup is below the root.
    pub fn level(&self, number: u32) -> usize {
        self.ancestors(number).count() - 1
    }

    /// A cgroup, its parent, and so on up to the root.
    pub fn ancestors(&self, number: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(number), |&number| self.parent(number))
    }

    /// The one that a walk in pre-order below `start` visits after `number`: its first child, else
    /// the next sibling of it or of an ancestor.
    pub fn next_pre(&self, number: u32, start: u32) -> Option<u32> {
        if let Some(&child) = self.groups[number as usize].children.first() {
            return Some(child);
        }
        self.ancestors(number)
            .take_while(|&at| at != start)
            .find_map(|at| self.next_sibling(at))
    }

    /// The one that a walk in post-order begins with: the first child of a first child, and so on.
    pub fn first_post(&self, start: u32) -> u32 {
        let first = |&number: &u32| self.groups[number as usize].children.first().copied();
        let down = std::iter::successors(Some(start), first);
        down.last().expect("there is a first")
    }

    /// The one that a walk in post-order below `start` visits after `number`.
    pub fn next_post(&self, number: u32, start: u32) -> Option<u32> {
        if number == start {
            return None;
        }
        let next = self.next_sibling(number).map(|next| self.first_post(next));
        next.or_else(|| self.parent(number))
    }

    fn next_sibling(&self, number: u32) -> Option<u32> {
        let parent = self.parent(number)?;
        let siblings = &self.groups[parent as usize].children;
        let at = siblings.iter().position(|&sibling| sibling == number)?;
        siblings.get(at + 1).copied()
    }
}

/// The number of a cgroup as programs and events see it: the root's is 1.
pub(crate) fn id_of(number: u32) -> u64 {
    u64::from(number) + 1
}

impl Machine {
    /// Tells the policy of every cgroup, parents first. False if the policy refused one.
    pub(crate) fn init_cgroups(&mut self, vm: &mut Vm) -> bool {
        let mut next = Some(ROOT_CGROUP);
        while let Some(number) = next {
            let error = self.call_cgroup_init(vm, number, self.cgroups.owner(number));
            if error != 0 {
                self.error(format!("ops.cgroup_init() failed ({error})"));
            }
            if self.scheds.root.attachment.has_ended() {
                return false;
            }
            self.cgroups.groups[number as usize].told = true;
            next = self.cgroups.next_pre(number, ROOT_CGROUP);
        }
        self.cgroups.enabled = true;
        true
    }

    /// Tells `who` of a cgroup. What it answers: 0, or an error number.
    pub(crate) fn call_cgroup_init(&mut self, vm: &mut Vm, number: u32, who: SchedId) -> i32 {
        let group = &self.cgroups.groups[number as usize];
        self.mirror.write_cgroup_weight(vm, number, group.weight);
        let args = self.mirror.cgroup_args(vm, group.weight, group.max);
        let call = Call {
            op: Op::CgroupInit,
            locked: None,
            asked: CallOwner::The(who),
            subject: None,
            args: [self.mirror.cgroup(number), args],
            words: (id_of(number), 0),
        };
        self.call(vm, &call).unwrap_or(0) as u32 as i32
    }

    /// Tells `who` that a cgroup is its own no more.
    pub(crate) fn call_cgroup_exit(&mut self, vm: &mut Vm, number: u32, who: SchedId) {
        let call = Call {
            op: Op::CgroupExit,
            locked: None,
            asked: CallOwner::The(who),
            subject: None,
            args: [self.mirror.cgroup(number)],
            words: (id_of(number), 0),
        };
        self.call(vm, &call);
    }

    /// Takes leave of every cgroup that the policy knows, children first; it comes before the
    /// tasks leave.
    pub(crate) fn exit_cgroups(&mut self, vm: &mut Vm) {
        self.cgroups.enabled = false;
        let mut next = Some(self.cgroups.first_post(ROOT_CGROUP));
        while let Some(number) = next {
            if std::mem::take(&mut self.cgroups.groups[number as usize].told) {
                self.call_cgroup_exit(vm, number, self.cgroups.owner(number));
            }
            next = self.cgroups.next_post(number, ROOT_CGROUP);
        }
    }

    /// Moves a task, or all that share its address space, to a cgroup. Those that are there are
    /// left alone, and so are those that exit.
    pub(crate) fn move_to_cgroup(&mut self, vm: &mut Vm, id: TaskId, to: u32, process: bool) {
        let tasks = self.movable(id, to, process);
        if !self.prepare_moves(vm, &tasks, to) {
            return;
        }
        for &id in &tasks {
            self.task_mut(id).css_set = to;
            self.mirror_cgroup(vm, id);
        }
        for &id in &tasks {
            let running = self.is_running(id);
            if self.owner(id) == self.cgroups.owner(to) {
                self.move_within_owner(vm, id, to);
            } else {
                self.move_to_owner(vm, id, to);
            }
            if running {
                let cpu = self.task(id).cpu;
                self.resched(cpu);
            }
        }
        if self.hooked.any() {
            self.trace_cgroup_attach(vm, id, to, process);
        }
    }

    fn move_within_owner(&mut self, vm: &mut Vm, id: TaskId, to: u32) {
        let from = std::mem::replace(&mut self.task_mut(id).cgroup, to);
        self.change(vm, id, deq::CYCLE, |machine, vm| {
            machine.mirror_cgroup(vm, id);
            if machine.cgroups.enabled {
                machine.call_cgroup_move(vm, id, from, to);
            }
        });
    }

    /// The tasks that a move concerns, in the order in which the kernel takes them: by the cgroup
    /// that they come from, then by age.
    fn movable(&self, id: TaskId, to: u32, process: bool) -> Vec<TaskId> {
        let mm = self.task(id).mm;
        let all = 0..self.tasks.len() as u32;
        let mut tasks: Vec<TaskId> = if process && mm != 0 {
            (all.map(TaskId))
                .filter(|&other| self.task(other).mm == mm)
                .collect()
        } else {
            vec![id]
        };
        tasks.retain(|&id| {
            let task = self.task(id);
            task.state != RunState::Dead && !task.exiting && task.cgroup != to
        });
        let mut sources: Vec<u32> = Vec::new();
        for &id in &tasks {
            let from = self.task(id).cgroup;
            if !sources.contains(&from) {
                sources.push(from);
            }
        }
        tasks.sort_by_key(|&id| {
            let from = self.task(id).cgroup;
            sources.iter().position(|&source| source == from)
        });
        tasks
    }

    /// Asks the policy for each task; whether it agrees to all of them.
    fn prepare_moves(&mut self, vm: &mut Vm, tasks: &[TaskId], to: u32) -> bool {
        if !self.cgroups.enabled {
            return true;
        }
        for (number, &id) in tasks.iter().enumerate() {
            let owner = self.cgroups.owner(to);
            let stays = self.owner(id) == owner;
            // What it returns is sanitized behind the cancellations.
            let result = if stays {
                self.call_about_move(vm, Op::CgroupPrepMove, id, to)
            } else {
                u64::from(
                    self.init_task_by(vm, owner, (id, false), to)
                        .cast_unsigned(),
                )
            };
            if result as u32 == 0 {
                continue;
            }
            for &prepared in &tasks[..number] {
                if self.owner(prepared) == owner {
                    self.call_about_move(vm, Op::CgroupCancelMove, prepared, to);
                } else {
                    self.cancel_task(vm, owner, prepared);
                }
            }
            let error = if stays {
                self.errno_of_by(owner, Op::CgroupPrepMove, result)
            } else {
                result as i32
            };
            let name = self.name(id);
            self.note(format!(
                "the policy refused to move {name} to another cgroup: error {error}"
            ));
            return false;
        }
        true
    }

    /// `cgroup_prep_move` and `cgroup_cancel_move`, which are called without any lock.
    fn call_about_move(&mut self, vm: &mut Vm, op: Op, id: TaskId, to: u32) -> u64 {
        let task = self.task(id);
        let (address, from) = (task.address, task.cgroup);
        let call = Call {
            op,
            locked: None,
            asked: CallOwner::Owner,
            subject: Some(id),
            args: [address, self.mirror.cgroup(from), self.mirror.cgroup(to)],
            words: (id_of(to), id_of(from)),
        };
        self.call(vm, &call).unwrap_or(0)
    }

    fn call_cgroup_move(&mut self, vm: &mut Vm, id: TaskId, from: u32, to: u32) {
        let task = self.task(id);
        let (cpu, address) = (task.cpu, task.address);
        let call = Call {
            op: Op::CgroupMove,
            // The kernel holds the lock, but 6.18 calls it as if none were held.
            locked: self.rules.cgroup_move_is_locked.then_some(cpu),
            asked: CallOwner::Owner,
            subject: Some(id),
            args: [address, self.mirror.cgroup(from), self.mirror.cgroup(to)],
            words: (id_of(to), id_of(from)),
        };
        self.call(vm, &call);
    }

    /// Writes `cpu.weight`. A cgroup that idles has no weight: the kernel refuses.
    pub(crate) fn set_cgroup_weight(&mut self, vm: &mut Vm, number: u32, weight: u32) {
        let group = &mut self.cgroups.groups[number as usize];
        if group.idle {
            self.note("cpu.weight of a cgroup with cpu.idle: the kernel refuses it".to_owned());
            return;
        }
        let before = std::mem::replace(&mut group.weight, weight);
        if self.cgroups.enabled && before != weight {
            let args = [self.mirror.cgroup(number), u64::from(weight)];
            let words = (id_of(number), u64::from(weight));
            self.call_about_cgroup(vm, (Op::CgroupSetWeight, number), args, words);
        }
        self.mirror.write_cgroup_weight(vm, number, weight);
    }

    /// Writes `cpu.max`; the burst stays.
    pub(crate) fn set_cgroup_max(&mut self, vm: &mut Vm, number: u32, max: Bandwidth) {
        let group = &mut self.cgroups.groups[number as usize];
        let burst_us = group.max.burst_us;
        if max.quota_us.is_some_and(|quota| burst_us > quota) {
            let text = "cpu.max below cpu.max.burst: the kernel refuses it";
            self.note(text.to_owned());
            return;
        }
        let max = Bandwidth { burst_us, ..max };
        let before = std::mem::replace(&mut group.max, max);
        if self.cgroups.enabled && before != max {
            let quota = max.quota_us.unwrap_or(u64::MAX);
            let args = [self.mirror.cgroup(number), max.period_us, quota, burst_us];
            let words = (id_of(number), quota);
            self.call_about_cgroup(vm, (Op::CgroupSetBandwidth, number), args, words);
        }
    }

    /// Writes `cpu.idle`, of which policies may be told, whether or not it changes.
    pub(crate) fn set_cgroup_idle(&mut self, vm: &mut Vm, number: u32, idle: bool) {
        self.cgroups.groups[number as usize].idle = idle;
        if self.cgroups.enabled && self.rules.has_cgroup_set_idle {
            let args = [self.mirror.cgroup(number), u64::from(idle)];
            let words = (id_of(number), u64::from(idle));
            self.call_about_cgroup(vm, (Op::CgroupSetIdle, number), args, words);
        }
    }

    fn call_about_cgroup<const N: usize>(
        &mut self,
        vm: &mut Vm,
        (op, number): (Op, u32),
        args: [u64; N],
        words: (u64, u64),
    ) {
        let call = Call {
            op,
            locked: None,
            asked: CallOwner::The(self.cgroups.told_of_changes(number)),
            subject: None,
            args,
            words,
        };
        self.call(vm, &call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root (0), a (1) with aa (2) and ab (3), b (4), and ac (5), which came last.
    fn tree() -> Cgroups {
        let declared = [("a", 0), ("aa", 1), ("ab", 1), ("b", 0), ("ac", 1)];
        let declared = declared.map(|(name, parent)| Cgroup {
            name: name.to_owned(),
            path: String::new(),
            parent,
            weight: 100,
            max: Bandwidth::default(),
            idle: false,
        });
        Cgroups::new(&declared)
    }

    fn pre(tree: &Cgroups, start: u32) -> Vec<u32> {
        std::iter::successors(Some(start), |&at| tree.next_pre(at, start)).collect()
    }

    fn post(tree: &Cgroups, start: u32) -> Vec<u32> {
        let first = tree.first_post(start);
        std::iter::successors(Some(first), |&at| tree.next_post(at, start)).collect()
    }

    #[test]
    fn walks_visit_children_in_the_order_of_their_making() {
        let tree = tree();
        assert_eq!(pre(&tree, 0), [0, 1, 2, 3, 5, 4]);
        assert_eq!(post(&tree, 0), [2, 3, 5, 1, 4, 0]);
    }

    #[test]
    fn a_walk_stays_below_its_start() {
        let tree = tree();
        assert_eq!(
            (pre(&tree, 1), post(&tree, 1)),
            (vec![1, 2, 3, 5], vec![2, 3, 5, 1])
        );
        assert_eq!((pre(&tree, 3), post(&tree, 3)), (vec![3], vec![3]));
    }

    #[test]
    fn ancestors_lead_up_to_the_root() {
        let tree = tree();
        assert_eq!(tree.ancestors(5).collect::<Vec<_>>(), [5, 1, 0]);
        assert_eq!([0, 4, 2].map(|number| tree.level(number)), [0, 1, 2]);
    }
}
