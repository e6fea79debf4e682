use super::*;

impl EventQueue {
    fn pop(&mut self) -> Option<QueueEntry> {
        let entry = self.advance()?;
        assert_eq!((entry.time(), entry.depth()), (self.now, self.depth));
        Some(entry)
    }
}

fn order(queue: &mut EventQueue) -> Vec<(u64, u16, Pending)> {
    std::iter::from_fn(|| queue.pop())
        .map(|entry| (entry.when.time, entry.cpu().0, entry.what.unpacked()))
        .collect()
}

#[test]
fn events_of_one_moment_leave_by_class_then_cpu_then_order_of_entry() {
    let mut queue = EventQueue::new(None);
    let at = SimTime::from_nanos;
    queue.push(at(5), CpuId(1), Pending::Tick);
    queue.push(at(5), CpuId(0), Pending::Tick);
    queue.push(at(5), CpuId(3), Pending::WorkDone);
    queue.push(at(1), CpuId(9), Pending::Watchdog);
    assert_eq!(
        order(&mut queue),
        [
            (1, 9, Pending::Watchdog),
            (5, 3, Pending::WorkDone),
            (5, 0, Pending::Tick),
            (5, 1, Pending::Tick),
        ]
    );
}

#[test]
fn an_effect_comes_after_everything_that_did_not_depend_on_its_cause() {
    let mut queue = EventQueue::new(None);
    let at = SimTime::from_nanos;
    queue.push(at(5), CpuId(0), Pending::WorkDone);
    queue.push(at(5), CpuId(0), Pending::Tick);
    queue.pop();
    queue.push(at(5), CpuId(1), Pending::Resume);
    assert_eq!(
        order(&mut queue),
        [(5, 0, Pending::Tick), (5, 1, Pending::Resume)]
    );
}

#[test]
fn a_tie_seed_permutes_only_what_the_kernel_leaves_open() {
    let run = |seed| {
        let mut queue = EventQueue::new(seed);
        for cpu in 0..8 {
            queue.push(SimTime::from_nanos(4), CpuId(cpu), Pending::Tick);
            queue.push(SimTime::from_nanos(4), CpuId(cpu), Pending::Resume);
        }
        order(&mut queue)
    };
    let (plain, drawn) = (run(None), run(Some(3)));
    assert_ne!(plain, drawn);
    assert_eq!(drawn, run(Some(3)));
    assert_eq!(plain[..8], drawn[..8], "reschedules keep their order");
}

/// Against a sorted list as the model: times near and far, many of them equal, also now.
#[test]
fn events_leave_in_the_order_of_their_keys() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed, 7);
        let mut queue = EventQueue::new(None);
        // Time, class and CPU, and order of entry; all with depth 0.
        let mut model: Vec<(u64, u8, u16, u32)> = Vec::new();
        let (mut now, mut entered) = (0, 0);
        for _ in 0..3_000 {
            if rng.below(5) < 3 {
                let ahead = 1 + (rng.next_u64() >> (1 + rng.below(63)));
                // Every other event shares its moment with others.
                let mask = if rng.below(2) == 0 { !0 } else { !0xfff };
                let time = (now + ahead.min(1 << 40)) & mask;
                let time = if time > now { time } else { now + 4096 };
                entered += 1;
                let task = TaskId(entered);
                let generation = 0;
                let (class, what) = match rng.below(2) {
                    0 => (3, Pending::Timer { task, generation }),
                    _ => (7, Pending::Reap { task }),
                };
                let cpu = rng.below(4) as u16;
                queue.push(SimTime::from_nanos(time), CpuId(cpu), what);
                model.push((time, class, cpu, entered));
            } else if let Some(first) = model.iter().min().copied() {
                model.retain(|entry| *entry != first);
                let entry = queue.pop().expect("the model has one");
                let (Pending::Timer { task, .. } | Pending::Reap { task }) = entry.what.unpacked()
                else {
                    panic!("{entry:?}")
                };
                let (class, cpu) = (entry.what.unpacked().class(), entry.cpu().0);
                let got = (entry.when.time, class, cpu, task.0);
                assert_eq!(got, first, "seed {seed}");
                now = first.0;
            }
            assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
}

/// Some of a crowd stand at the front, and others come while it has room again.
#[test]
fn equal_events_leave_in_the_order_of_entry_wherever_they_stand() {
    let mut queue = EventQueue::new(None);
    let at = |ns| SimTime::from_nanos(70_000 + ns);
    for early in 0..FRONT as u64 {
        queue.push(at(early), CpuId(0), Pending::Tick);
    }
    let mut entered = 0;
    for _ in 0..FRONT {
        assert_eq!(
            queue.pop().map(|entry| entry.what.unpacked()),
            Some(Pending::Tick)
        );
        for _ in 0..3 {
            let task = TaskId(entered);
            queue.push(at(2_000), CpuId(0), Pending::Reap { task });
            entered += 1;
        }
    }
    let left = order(&mut queue);
    let wanted = (0..entered).map(|task| (at(2_000).as_nanos(), 0, TaskId(task)));
    let wanted = wanted.map(|(time, cpu, task)| (time, cpu, Pending::Reap { task }));
    assert_eq!(left, wanted.collect::<Vec<_>>());
}

/// More events of one moment than the front has room for, and more that they cause.
#[test]
fn a_crowd_of_one_moment_leaves_in_order() {
    let mut queue = EventQueue::new(None);
    let crowd = 10 * FRONT as u64;
    for place in 0..crowd {
        let cpu = CpuId((place * 7 % crowd) as u16);
        queue.push(SimTime::from_nanos(1_000), cpu, Pending::Tick);
    }
    let mut left = Vec::new();
    while let Some(entry) = queue.pop() {
        left.push((entry.depth(), entry.cpu().0));
        if entry.depth() == 0 {
            queue.push(entry.time(), entry.cpu(), Pending::Resume);
        }
    }
    let wanted = (0..2).flat_map(|depth| (0..crowd as u16).map(move |cpu| (depth, cpu)));
    assert_eq!(left, wanted.collect::<Vec<_>>());
    assert!(queue.is_empty());
}

/// A livelock of two CPUs: depths are counted up to a limit, and from there on CPU 0 comes before
/// CPU 1, which was taken last.
#[test]
fn an_event_that_comes_before_the_last_one_that_was_taken_finds_its_place() {
    let mut queue = EventQueue::new(None);
    queue.push(SimTime::ZERO, CpuId(0), Pending::Resume);
    for place in 1..=u32::from(u16::MAX) + 200 {
        let entry = queue.pop().expect("one event leads to the next");
        assert_eq!(u32::from(entry.cpu().0), (place - 1) % 2);
        queue.push(entry.time(), CpuId((place % 2) as u16), Pending::Resume);
    }
    assert_eq!(order(&mut queue).len(), 1);
}

#[test]
fn a_queue_of_timers_of_the_policy_is_known_wherever_they_stand() {
    let timer = Pending::BpfTimer { generation: 1 };
    let at = |times: &[u64], what| {
        let mut queue = EventQueue::new(None);
        queue.push(SimTime::ZERO, CpuId(0), Pending::Tick);
        queue.pop();
        for time in times {
            queue.push(SimTime::from_nanos(*time), CpuId(0), timer);
        }
        queue.push(SimTime::from_nanos(7), CpuId(0), what);
        // Some at the front, some later, and more than the front has room for.
        queue.pop();
        queue
    };
    let crowd: Vec<u64> = (1..10 * FRONT as u64).chain([1 << 40]).collect();
    assert!(at(&crowd, timer).has_only_bpf_timers());
    assert!(at(&crowd, Pending::Resume).has_only_bpf_timers());
    assert!(!at(&crowd, Pending::Tick).has_only_bpf_timers());
    assert!(!at(&[], Pending::Resume).has_only_bpf_timers());
    assert!(!at(&[1], Pending::End).has_only_bpf_timers());
}

#[test]
fn whose_timers_come_and_on_which_cpu_is_told_before_they_do() {
    let mut queue = EventQueue::new(None);
    queue.tell_soon(true, true);
    for task in 0..1_000 {
        let what = Pending::Timer {
            task: TaskId(task),
            generation: 0,
        };
        queue.push(
            SimTime::from_nanos(50_000 * u64::from(task) + 1),
            CpuId(task as u16),
            what,
        );
    }
    let mut told = std::collections::BTreeSet::new();
    let mut cpus = std::collections::BTreeSet::new();
    while let Some(entry) = queue.pop() {
        told.extend(queue.soon().tasks.drain(..).map(|task| task.0));
        cpus.extend(queue.soon().cpus.drain(..).map(|cpu| cpu.0));
        assert!(cpus.contains(&entry.cpu().0), "{entry:?}");
        let Pending::Timer { task, .. } = entry.what.unpacked() else {
            panic!("{entry:?}")
        };
        assert!(told.contains(&task.0), "{task:?}");
    }
    assert_eq!(told.len(), 1_000);
}

#[test]
fn slots_keep_their_memory() {
    let mut queue = EventQueue::new(None);
    let memory = |queue: &EventQueue| {
        let slots = queue.later.slots.iter();
        let slots = slots.chain([&queue.later.spare, &queue.front]);
        slots.map(Vec::capacity).sum::<usize>()
    };
    let mut first = 0;
    for round in 0..200_000 {
        queue.push(SimTime::from_nanos(round * 7 + 1), CpuId(0), Pending::Tick);
        queue.push(SimTime::from_nanos(round * 7 + 3), CpuId(0), Pending::Tick);
        queue.pop();
        queue.pop();
        if round == 100_000 {
            first = memory(&queue);
        }
    }
    assert!(
        memory(&queue) <= first * 3 / 2,
        "{} of {first}",
        memory(&queue)
    );
}
