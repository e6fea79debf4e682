//! Dispatch queues.
//!
//! One local queue a CPU, one global queue a node, and the policy's own. A queue is
//! first-in-first-out or ordered by vtime, by its content; an empty one can change. Source: spec
//! of 6.18's
//! `kernel/sched/ext.c`, `dispatch_enqueue()` and `bpf_iter_scx_dsq_*()`.

mod names;

use std::num::NonZero;

use model::{CpuId, TaskId};

use crate::flags;
use crate::schedulers::{PerSched, SchedId};
use crate::sorted::{QueueKey, Sorted};
use names::Names;

/// A queue's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsqIndex(pub u32);

/// Nothing follows.
const NIL: u32 = u32::MAX;
/// List nodes from here on are cursors.
const CURSOR: u32 = 1 << 31;
/// Iterations that may be open at a time. A kernel's verifier sees to it that each is closed before
/// its program ends, and a program's stack has room for ten.
const MOST_CURSORS: usize = 64;

/// A queue. What inserts and removals of a short one need stands in the first line of a cache.
#[repr(C, align(64))]
#[derive(Clone)]
struct Dsq {
    id: u64,
    /// First and last node of the list; nodes are tasks and cursors.
    head: u32,
    tail: u32,
    /// Tasks in the list.
    listed: u32,
    /// Counts inserts.
    sequence: u32,
    /// The vtime that keys count from, so that they compare as the kernel compares, by the sign
    /// of the difference. Set when the first task enters.
    base: u64,
    /// Counts vtime inserts: equal vtimes keep their order of entry.
    entries: u64,
    /// Vtime-ordered tasks.
    sorted: Sorted,
}

const _: () = assert!(
    size_of::<Dsq>() == 128,
    "a power of two finds a queue by a shift"
);

/// Links of a list node.
#[derive(Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
}

impl Links {
    /// Those of a node that is alone.
    const NONE: Self = Self {
        prev: NIL,
        next: NIL,
    };
}

/// Where one task stands in its queue: half a line of a cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Place {
    links: Links,
    key: Option<QueueKey>,
    /// The queue's insert counter at its insert.
    sequence: u32,
}

/// An open iteration over a queue.
#[derive(Clone)]
struct Cursor {
    dsq: DsqIndex,
    reverse: bool,
    /// Tasks inserted after this count are not seen.
    sequence: u32,
    links: Links,
    /// Whether its node is in the list.
    listed: bool,
    /// Last key returned, when the queue was ordered by vtime.
    key: Option<QueueKey>,
    open: bool,
}

/// Kind of content that an insert found and did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixed {
    /// A vtime insert met a FIFO queue.
    Fifo,
    /// A FIFO insert met a vtime queue.
    Priq,
}

/// All queues of the machine. Queues `0..cpus` are the CPUs' local ones, behind them comes one
/// global queue for each node.
#[derive(Clone)]
pub struct Dsqs {
    queues: Vec<Dsq>,
    places: Vec<Place>,
    cursors: Vec<Cursor>,
    /// Numbers of the schedulers' own queues.
    names: PerSched<Names>,
    cpus: u32,
    /// The first of the policy's queues: behind the global ones.
    first_user: u32,
    /// Tasks in global queues, which most policies leave empty.
    in_globals: u32,
}

impl Dsq {
    /// An empty queue.
    const fn new(id: u64) -> Self {
        Self {
            id,
            head: NIL,
            tail: NIL,
            listed: 0,
            sequence: 0,
            base: 0,
            entries: 0,
            sorted: Sorted::new(),
        }
    }
}

impl Dsqs {
    /// The built-in queues of a machine of `cpus` CPUs in `nodes` nodes.
    pub fn new(cpus: u16, nodes: u16) -> Self {
        let mut queues: Vec<Dsq> = (0..cpus).map(|_| Dsq::new(flags::dsq::LOCAL)).collect();
        queues.extend((0..nodes).map(|_| Dsq::new(flags::dsq::GLOBAL)));
        Self {
            queues,
            places: Vec::new(),
            cursors: Vec::new(),
            names: PerSched::new(Names::new()),
            cpus: u32::from(cpus),
            first_user: u32::from(cpus) + u32::from(nodes),
            in_globals: 0,
        }
    }

    /// The local queue of `cpu`.
    #[inline]
    pub fn local(&self, cpu: CpuId) -> DsqIndex {
        DsqIndex(u32::from(cpu.0))
    }

    /// The global queue of a node.
    #[inline]
    pub fn global(&self, node: u16) -> DsqIndex {
        DsqIndex(self.cpus + u32::from(node))
    }

    /// Whether any global queue holds a task.
    #[inline]
    pub const fn any_in_globals(&self) -> bool {
        self.in_globals > 0
    }

    #[inline]
    fn is_global(&self, dsq: DsqIndex) -> bool {
        (self.cpus..self.first_user).contains(&dsq.0)
    }

    /// The CPU whose local queue this is.
    #[inline]
    pub fn owner(&self, dsq: DsqIndex) -> Option<CpuId> {
        (dsq.0 < self.cpus).then_some(CpuId(dsq.0 as u16))
    }

    /// The queue number `id` of the scheduler `sched`.
    #[inline(always)]
    pub fn user(&self, sched: SchedId, id: u64) -> Option<DsqIndex> {
        if sched != SchedId::ROOT {
            return self.user_of_another(sched, id);
        }
        self.names.root.find(id)
    }

    #[cold]
    fn user_of_another(&self, sched: SchedId, id: u64) -> Option<DsqIndex> {
        self.names[sched].find(id)
    }

    /// Every queue, the destroyed ones included.
    pub fn indexes(&self) -> impl Iterator<Item = DsqIndex> + use<> {
        (0..self.queues.len() as u32).map(DsqIndex)
    }

    /// How many queues there are, the destroyed ones included.
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// The queue's number.
    pub fn id(&self, dsq: DsqIndex) -> u64 {
        self.queue(dsq).id
    }

    /// Bytes that a queue takes, also after it was destroyed: itself, its place in the table of
    /// numbers, and as much again, since both grow by doubling.
    pub const BYTES: u64 = 2 * (size_of::<Dsq>() + 32) as u64;

    /// Creates the queue `id` of `sched`; `None` if it has one.
    pub fn create(&mut self, sched: SchedId, id: u64) -> Option<DsqIndex> {
        if self.names[sched].find(id).is_some() {
            return None;
        }
        let dsq = DsqIndex(u32::try_from(self.queues.len()).expect("fewer than 2^32 queues"));
        self.queues.push(Dsq::new(id));
        self.names[sched].add(id, dsq);
        Some(dsq)
    }

    /// Makes room for the queues of one more scheduler.
    pub fn add_scheduler(&mut self) {
        self.names.add(Names::new());
    }

    /// A queue of the kernel's with this number, which no program finds by it.
    pub fn add_built_in(&mut self, id: u64) -> DsqIndex {
        let dsq = DsqIndex(u32::try_from(self.queues.len()).expect("fewer than 2^32 queues"));
        self.queues.push(Dsq::new(id));
        dsq
    }

    /// Destroys an empty queue of `sched`.
    ///
    /// # Panics
    /// If the queue is not empty.
    pub fn destroy(&mut self, sched: SchedId, dsq: DsqIndex) {
        assert_eq!(self.len(dsq), 0, "destroyed queue holds tasks");
        let id = self.queue(dsq).id;
        self.names[sched].remove(id);
    }

    /// Makes room for task number `task`.
    pub fn add_task(&mut self, task: TaskId) {
        assert_eq!(task.index(), self.places.len(), "tasks are added in order");
        self.places.push(Place {
            links: Links::NONE,
            key: None,
            sequence: 0,
        });
    }

    /// Takes back the room of the newest task.
    pub fn remove_newest(&mut self) {
        self.places.pop();
    }

    /// Asks the processor for the place of a task.
    #[inline]
    pub fn prefetch(&self, task: TaskId) {
        if let Some(place) = self.places.get(task.index()) {
            allocator::prefetch(place);
        }
    }

    /// Asks the processor for the local queue of `cpu`.
    #[inline]
    pub fn prefetch_local(&self, cpu: CpuId) {
        allocator::prefetch(self.queue(self.local(cpu)));
    }

    /// How many tasks the queue holds.
    #[inline]
    pub fn len(&self, dsq: DsqIndex) -> u32 {
        let queue = self.queue(dsq);
        queue.listed + queue.sorted.len()
    }

    /// Whether the queue holds no task.
    #[inline]
    pub fn is_empty(&self, dsq: DsqIndex) -> bool {
        self.len(dsq) == 0
    }

    /// Whether a task can be inserted so: by vtime or not.
    #[inline]
    pub fn takes(&self, dsq: DsqIndex, by_vtime: bool) -> bool {
        let is_built_in = self.queue(dsq).id & flags::dsq::BUILTIN != 0;
        !(by_vtime && is_built_in) && self.clash(dsq, by_vtime).is_none()
    }

    /// Whether inserts into the queue are ordered by vtime, as far as it tells: tasks are in it in
    /// that order, or it is empty and some were.
    #[cold]
    pub fn is_by_vtime(&self, dsq: DsqIndex) -> bool {
        let queue = self.queue(dsq);
        queue.listed == 0 && queue.entries > 0
    }

    /// Content of the queue with which an insert would clash.
    #[inline]
    pub fn clash(&self, dsq: DsqIndex, by_vtime: bool) -> Option<Mixed> {
        let queue = self.queue(dsq);
        if by_vtime && queue.listed > 0 {
            Some(Mixed::Fifo)
        } else if !by_vtime && !queue.sorted.is_empty() {
            Some(Mixed::Priq)
        } else {
            None
        }
    }

    /// Inserts at the front or the back of any queue.
    pub fn push_shared(&mut self, dsq: DsqIndex, task: TaskId, front: bool) {
        self.in_globals += u32::from(self.is_global(dsq));
        self.push(dsq, task, front);
    }

    /// Inserts at the front or the back of a queue that is not a global one.
    #[inline(always)]
    pub fn push(&mut self, dsq: DsqIndex, task: TaskId, front: bool) {
        let queue = &mut self.queues[dsq.0 as usize];
        queue.sequence = queue.sequence.wrapping_add(1);
        queue.listed += 1;
        let place = &mut self.places[task.index()];
        place.sequence = queue.sequence;
        place.links = Links::NONE;
        if queue.head == NIL {
            (queue.head, queue.tail) = (task.0, task.0);
        } else if front {
            let next = std::mem::replace(&mut queue.head, task.0);
            place.links.next = next;
            self.links_mut(next).prev = task.0;
        } else {
            let prev = std::mem::replace(&mut queue.tail, task.0);
            place.links.prev = prev;
            self.links_mut(prev).next = task.0;
        }
    }

    /// Inserts by vtime; equal ones keep their order of entry.
    #[inline(always)]
    pub fn insert(&mut self, dsq: DsqIndex, task: TaskId, vtime: u64) {
        let queue = &mut self.queues[dsq.0 as usize];
        queue.sequence = queue.sequence.wrapping_add(1);
        if queue.sorted.is_empty() {
            queue.base = vtime;
        }
        queue.entries += 1;
        let entry = NonZero::new(queue.entries).expect("fewer than 2^64 inserts");
        let key = (vtime.wrapping_sub(queue.base).cast_signed(), entry);
        queue.sorted.insert(key, task);
        let place = &mut self.places[task.index()];
        (place.key, place.sequence) = (Some(key), queue.sequence);
    }

    /// Puts `task`, which is in `dsq` by its vtime, behind all others there.
    #[cold]
    pub fn put_last(&mut self, dsq: DsqIndex, task: TaskId) {
        self.remove_sorted(dsq, task);
        let last = self.queue(dsq).sorted.last();
        let last = last.and_then(|last| self.places[last.index()].key);
        let base = self.queue(dsq).base;
        let vtime = last.map_or(base, |(key, _)| base.wrapping_add_signed(key));
        self.insert(dsq, task, vtime);
    }

    /// Takes `task` out of the queue it is in.
    #[inline(always)]
    pub fn remove(&mut self, dsq: DsqIndex, task: TaskId) {
        let place = &self.places[task.index()];
        if place.key.is_some() {
            return self.remove_sorted(dsq, task);
        }
        let Links { prev, next } = place.links;
        if dsq.0 >= self.cpus {
            self.in_globals -= u32::from(self.is_global(dsq));
        }
        let queue = &mut self.queues[dsq.0 as usize];
        queue.listed -= 1;
        if prev == NIL && next == NIL {
            // It was alone.
            (queue.head, queue.tail) = (NIL, NIL);
        } else {
            self.unlink(dsq, task.0);
        }
    }

    #[inline]
    fn remove_sorted(&mut self, dsq: DsqIndex, task: TaskId) {
        if let Some(key) = self.places[task.index()].key.take() {
            let removed = self.queue_mut(dsq).sorted.remove(key);
            debug_assert_eq!(removed, Some(task), "queue and task disagree");
        }
    }

    /// The first task.
    #[inline]
    pub fn first(&self, dsq: DsqIndex) -> Option<TaskId> {
        let queue = self.queue(dsq);
        if queue.sorted.is_empty() {
            return self.skip_cursors(queue.head, false).map(TaskId);
        }
        queue.sorted.first()
    }

    /// The first task of the local queue of `cpu`, which is always in the order of arrival.
    #[inline(always)]
    pub fn first_local(&self, cpu: CpuId) -> Option<TaskId> {
        let queue = self.queue(self.local(cpu));
        debug_assert!(queue.sorted.is_empty(), "a local queue in order of keys");
        self.skip_cursors(queue.head, false).map(TaskId)
    }

    /// The task behind `task` in its queue.
    pub fn after(&self, dsq: DsqIndex, task: TaskId) -> Option<TaskId> {
        let place = &self.places[task.index()];
        match place.key {
            Some(key) => self.queue(dsq).sorted.after(key),
            None => self.skip_cursors(place.links.next, false).map(TaskId),
        }
    }

    /// The tasks of the queue, first to last.
    pub fn tasks(&self, dsq: DsqIndex) -> impl Iterator<Item = TaskId> {
        let mut next = self.first(dsq);
        std::iter::from_fn(move || {
            let task = next?;
            next = self.after(dsq, task);
            Some(task)
        })
    }

    /// Opens an iteration over the tasks that are in the queue now; `None`: too many are open.
    pub fn open(&mut self, dsq: DsqIndex, reverse: bool) -> Option<u32> {
        let cursor = Cursor {
            dsq,
            reverse,
            sequence: self.queue(dsq).sequence,
            links: Links::NONE,
            listed: false,
            key: None,
            open: true,
        };
        match self.cursors.iter().position(|cursor| !cursor.open) {
            Some(free) => {
                self.cursors[free] = cursor;
                Some(free as u32)
            }
            None if self.cursors.len() >= MOST_CURSORS => None,
            None => {
                self.cursors.push(cursor);
                Some(self.cursors.len() as u32 - 1)
            }
        }
    }

    /// The queue of an open iteration.
    pub fn iterated(&self, cursor: u32) -> Option<DsqIndex> {
        let cursor = self.cursors.get(cursor as usize)?;
        cursor.open.then_some(cursor.dsq)
    }

    /// The next task of the iteration that was in the queue when it was opened, and how many that
    /// were not were passed over.
    pub fn next(&mut self, cursor: u32) -> (Option<TaskId>, u64) {
        let mut passed = 0;
        let next = self.next_seen(cursor, &mut passed);
        (next, passed)
    }

    fn next_seen(&mut self, cursor: u32, passed: &mut u64) -> Option<TaskId> {
        let state = self
            .cursors
            .get(cursor as usize)
            .filter(|cursor| cursor.open)?;
        let seen = state.sequence;
        let is_new = |place: &Place| place.sequence.wrapping_sub(seen).cast_signed() > 0;
        let mut next = self.step(cursor);
        while let Some(task) = next {
            self.place_cursor(cursor, task);
            if !is_new(&self.places[task.index()]) {
                return Some(task);
            }
            *passed += 1;
            next = self.step(cursor);
        }
        None
    }

    /// Whether `task` is in the iteration's queue since before it was opened.
    pub fn covers(&self, cursor: u32, task: TaskId, dsq: Option<DsqIndex>) -> bool {
        self.cursors.get(cursor as usize).is_some_and(|cursor| {
            let age = self.places[task.index()]
                .sequence
                .wrapping_sub(cursor.sequence);
            cursor.open && dsq == Some(cursor.dsq) && age.cast_signed() <= 0
        })
    }

    /// Ends the iteration.
    pub fn close(&mut self, cursor: u32) {
        let Some(state) = self
            .cursors
            .get(cursor as usize)
            .filter(|cursor| cursor.open)
        else {
            return;
        };
        if state.listed {
            self.unlink(state.dsq, CURSOR | cursor);
        }
        self.cursors[cursor as usize].open = false;
    }

    /// The task behind the cursor in the direction of its walk.
    fn step(&self, cursor: u32) -> Option<TaskId> {
        let state = &self.cursors[cursor as usize];
        let queue = self.queue(state.dsq);
        if queue.sorted.is_empty() {
            let from = match (state.listed, state.reverse) {
                (true, false) => state.links.next,
                (true, true) => state.links.prev,
                (false, false) => queue.head,
                (false, true) => queue.tail,
            };
            // A walk that began in vtime order does not start over in a FIFO queue.
            return match state.key {
                Some(_) => None,
                None => self.skip_cursors(from, state.reverse).map(TaskId),
            };
        }
        if state.listed {
            return None;
        }
        let sorted = &queue.sorted;
        match (state.key, state.reverse) {
            (None, false) => sorted.first(),
            (None, true) => sorted.last(),
            (Some(key), false) => sorted.after(key),
            (Some(key), true) => sorted.before(key),
        }
    }

    /// Puts the cursor at `task`, so that later removals do not lose its place.
    fn place_cursor(&mut self, cursor: u32, task: TaskId) {
        let state = &self.cursors[cursor as usize];
        let (dsq, listed, reverse) = (state.dsq, state.listed, state.reverse);
        let place = self.places[task.index()];
        if place.key.is_some() {
            self.cursors[cursor as usize].key = place.key;
            return;
        }
        if listed {
            self.unlink(dsq, CURSOR | cursor);
        }
        let links = self.places[task.index()].links;
        let (prev, next) = if reverse {
            (links.prev, task.0)
        } else {
            (task.0, links.next)
        };
        self.link(dsq, CURSOR | cursor, prev, next);
        self.cursors[cursor as usize].listed = true;
    }

    /// The task at `node`, or the next one in the direction of a walk if a cursor stands there.
    #[inline]
    fn skip_cursors(&self, node: u32, reverse: bool) -> Option<u32> {
        match node {
            task if task < CURSOR => Some(task),
            NIL => None,
            cursor => self.behind_cursor(cursor, reverse),
        }
    }

    #[cold]
    fn behind_cursor(&self, cursor: u32, reverse: bool) -> Option<u32> {
        let links = self.cursors[(cursor & !CURSOR) as usize].links;
        self.skip_cursors(if reverse { links.prev } else { links.next }, reverse)
    }

    #[inline(always)]
    fn link(&mut self, dsq: DsqIndex, node: u32, prev: u32, next: u32) {
        *self.links_mut(node) = Links { prev, next };
        match prev {
            NIL => self.queue_mut(dsq).head = node,
            prev => self.links_mut(prev).next = node,
        }
        match next {
            NIL => self.queue_mut(dsq).tail = node,
            next => self.links_mut(next).prev = node,
        }
    }

    #[inline(always)]
    fn unlink(&mut self, dsq: DsqIndex, node: u32) {
        let Links { prev, next } = *self.links_mut(node);
        match prev {
            NIL => self.queue_mut(dsq).head = next,
            prev => self.links_mut(prev).next = next,
        }
        match next {
            NIL => self.queue_mut(dsq).tail = prev,
            next => self.links_mut(next).prev = prev,
        }
    }

    #[inline]
    fn links_mut(&mut self, node: u32) -> &mut Links {
        if node & CURSOR != 0 {
            &mut self.cursors[(node & !CURSOR) as usize].links
        } else {
            &mut self.places[node as usize].links
        }
    }

    #[inline]
    fn queue(&self, dsq: DsqIndex) -> &Dsq {
        &self.queues[dsq.0 as usize]
    }

    #[inline]
    fn queue_mut(&mut self, dsq: DsqIndex) -> &mut Dsq {
        &mut self.queues[dsq.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_of(tasks: u32) -> (Dsqs, DsqIndex) {
        let mut dsqs = Dsqs::new(2, 1);
        (0..tasks).for_each(|task| dsqs.add_task(TaskId(task)));
        let dsq = dsqs.create(SchedId::ROOT, 7).unwrap();
        (dsqs, dsq)
    }

    fn ids(dsqs: &Dsqs, dsq: DsqIndex) -> Vec<u32> {
        dsqs.tasks(dsq).map(|task| task.0).collect()
    }

    #[test]
    fn vtimes_order_by_the_sign_of_their_difference() {
        let (mut dsqs, dsq) = queue_of(3);
        for (task, vtime) in [(0, u64::MAX - 4), (1, 3), (2, u64::MAX)] {
            dsqs.insert(dsq, TaskId(task), vtime);
        }
        assert_eq!(ids(&dsqs, dsq), [0, 2, 1]);
    }

    #[test]
    fn equal_vtimes_keep_their_order_of_entry() {
        let (mut dsqs, dsq) = queue_of(3);
        (0..3).for_each(|task| dsqs.insert(dsq, TaskId(task), 5));
        assert_eq!(ids(&dsqs, dsq), [0, 1, 2]);
    }

    #[test]
    fn a_queue_shows_what_an_insert_would_clash_with() {
        let (mut dsqs, dsq) = queue_of(1);
        dsqs.push(dsq, TaskId(0), false);
        assert_eq!(dsqs.clash(dsq, true), Some(Mixed::Fifo));
        dsqs.remove(dsq, TaskId(0));
        dsqs.insert(dsq, TaskId(0), 1);
        assert_eq!(dsqs.clash(dsq, false), Some(Mixed::Priq));
        dsqs.remove(dsq, TaskId(0));
        assert_eq!(dsqs.clash(dsq, false), None);
    }

    #[test]
    fn an_iteration_sees_neither_what_comes_nor_what_goes() {
        for by_vtime in [false, true] {
            let (mut dsqs, dsq) = queue_of(5);
            let add = |dsqs: &mut Dsqs, task: u32| {
                if by_vtime {
                    dsqs.insert(dsq, TaskId(task), u64::from(task));
                } else {
                    dsqs.push(dsq, TaskId(task), false);
                }
            };
            (0..4).for_each(|task| add(&mut dsqs, task));
            let cursor = dsqs.open(dsq, false).unwrap();
            assert_eq!(dsqs.next(cursor).0, Some(TaskId(0)));
            dsqs.remove(dsq, TaskId(0));
            dsqs.remove(dsq, TaskId(1));
            add(&mut dsqs, 4);
            assert_eq!(dsqs.next(cursor).0, Some(TaskId(2)));
            assert!(dsqs.covers(cursor, TaskId(3), Some(dsq)));
            assert!(!dsqs.covers(cursor, TaskId(4), Some(dsq)));
            assert_eq!(dsqs.next(cursor).0, Some(TaskId(3)));
            assert_eq!(dsqs.next(cursor).0, None);
            dsqs.close(cursor);
            assert_eq!(ids(&dsqs, dsq), [2, 3, 4]);
        }
    }

    #[test]
    fn a_reverse_iteration_walks_from_the_back() {
        for by_vtime in [false, true] {
            let (mut dsqs, dsq) = queue_of(3);
            for task in 0..3 {
                if by_vtime {
                    dsqs.insert(dsq, TaskId(task), u64::from(task));
                } else {
                    dsqs.push(dsq, TaskId(task), false);
                }
            }
            let cursor = dsqs.open(dsq, true).unwrap();
            let walk: Vec<_> = std::iter::from_fn(|| dsqs.next(cursor).0)
                .map(|t| t.0)
                .collect();
            assert_eq!(walk, [2, 1, 0]);
            dsqs.close(cursor);
        }
    }

    /// Against a vector as the model: random pushes, removals and walks.
    #[test]
    fn a_queue_behaves_as_a_list_does() {
        let mut rng = model::Rng::new(1, 0);
        let (mut dsqs, dsq) = queue_of(20);
        let mut model: Vec<u32> = Vec::new();
        for _ in 0..5_000 {
            let task = rng.below(20) as u32;
            match model.iter().position(|&known| known == task) {
                Some(at) => {
                    dsqs.remove(dsq, TaskId(task));
                    model.remove(at);
                }
                None => {
                    let front = rng.below(2) == 0;
                    dsqs.push(dsq, TaskId(task), front);
                    model.insert(if front { 0 } else { model.len() }, task);
                }
            }
            assert_eq!(ids(&dsqs, dsq), model);
            assert_eq!(dsqs.len(dsq) as usize, model.len());
        }
    }
}
