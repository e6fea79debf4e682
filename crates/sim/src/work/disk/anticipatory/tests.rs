//! Vectors that were derived by hand from the rules of `as-iosched.c`.

use super::super::Then;
use super::*;

/// An elevator with a disk that serves one request at a time. Times are in milliseconds.
#[derive(Default)]
struct Bench {
    elevator: Anticipation,
    waiting: Waiting,
    served: Option<Request>,
    numbers: u64,
}

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + Nanos::from_millis(ms)
}

impl Bench {
    fn comes(&mut self, task: u32, page: u64, is_sync: bool, ms: u64) {
        let request = Request {
            page,
            pages: 1,
            writes: !is_sync,
            is_sync,
            then: Then::Nothing,
            by: TaskId(task),
            waiters: Vec::new(),
        };
        self.numbers += 1;
        self.elevator.note(&request, at(ms));
        let kind = kind(&request);
        self.waiting.insert(self.numbers, kind, request, at(ms));
    }

    fn read(&mut self, task: u32, page: u64, ms: u64) {
        self.comes(task, page, true, ms);
    }

    fn write(&mut self, task: u32, page: u64, ms: u64) {
        self.comes(task, page, false, ms);
    }

    /// The page that is served next.
    fn next(&mut self, ms: u64) -> Option<u64> {
        let is_busy = self.served.is_some();
        let number = self.elevator.next(&self.waiting, is_busy, at(ms))?;
        let request = self.waiting.remove(number);
        let page = request.page;
        assert!(self.served.replace(request).is_none());
        Some(page)
    }

    /// What is served ends; the page that is served next.
    fn ends(&mut self, ms: u64) -> Option<u64> {
        let request = self.served.take().expect("something is served");
        self.elevator.ended(&request, at(ms));
        self.next(ms)
    }

    /// A task reads two pages one after the other, with a pause between, and ends at `end`.
    fn read_twice(task: u32, pause: u64) -> Self {
        let mut bench = Self::default();
        bench.read(task, 100, 0);
        assert_eq!(bench.next(0), Some(100));
        assert_eq!(bench.ends(1), None);
        bench.read(task, 101, 1 + pause);
        assert_eq!(bench.next(1 + pause), Some(101));
        bench
    }
}

#[test]
fn the_disk_waits_six_milliseconds_for_the_next_read_of_the_same_task() {
    let mut bench = Bench::default();
    bench.read(1, 100, 0);
    assert_eq!(bench.next(0), Some(100));
    bench.read(2, 100_000, 3);
    assert_eq!(bench.ends(5), None, "the other task's read waits");
    assert_eq!(bench.elevator.arm(), Some(at(11)));
    bench.read(1, 101, 7);
    assert_eq!(bench.next(7), Some(101));
    assert_eq!(bench.ends(10), None, "it waits again");
    assert_eq!(bench.elevator.arm(), None, "one timer is under way");
    bench.elevator.time_is_up(at(11));
    assert_eq!(
        bench.next(11),
        None,
        "the timer was that of the wait before"
    );
    assert_eq!(bench.elevator.arm(), Some(at(16)));
    bench.elevator.time_is_up(at(16));
    assert_eq!(bench.next(16), Some(100_000));
}

#[test]
fn the_rest_of_the_six_milliseconds_holds_back_a_read_that_comes_to_an_idle_disk() {
    let mut bench = Bench::default();
    bench.read(1, 100, 0);
    assert_eq!(bench.next(0), Some(100));
    assert_eq!(bench.ends(5), None);
    assert_eq!(bench.elevator.arm(), None, "nothing waits for it");
    bench.read(2, 100_000, 9);
    assert_eq!(bench.next(9), None);
    assert_eq!(bench.elevator.arm(), Some(at(11)));
    let mut later = Bench::default();
    later.read(1, 100, 0);
    assert_eq!(later.next(0), Some(100));
    assert_eq!(later.ends(5), None);
    later.read(2, 100_000, 11);
    assert_eq!(later.next(11), Some(100_000));
}

#[test]
fn writes_wait_like_reads_of_other_tasks() {
    let mut bench = Bench::default();
    bench.read(1, 100, 0);
    assert_eq!(bench.next(0), Some(100));
    bench.write(2, 50_000, 2);
    assert_eq!(bench.ends(5), None);
    bench.elevator.time_is_up(at(11));
    assert_eq!(bench.next(11), Some(50_000));
    // After a write nothing is awaited.
    bench.read(3, 90_000, 12);
    assert_eq!(bench.ends(14), Some(90_000));
}

#[test]
fn a_task_that_thinks_for_too_long_is_not_awaited() {
    // Samples 32 of 256, so the mean of one pause of n is (32 n + 128) / 32 = n + 4.
    for (pause, is_awaited) in [(0, true), (2, true), (3, false), (40, false)] {
        let mut bench = Bench::read_twice(1, pause);
        bench.read(2, 100_000, 50);
        let next = bench.ends(51);
        assert_eq!(next.is_none(), is_awaited, "a pause of {pause} ms");
    }
    // One of 40 ms counts as 19: 608 / 256 in all.
    let bench = Bench::read_twice(1, 40);
    let habits = &bench.elevator.tasks[&TaskId(1)];
    assert_eq!((habits.think.total, habits.think.mean), (608, 23));
    // The first pause of any new task is 2 on the mean of new ones: 608 / 256.
    assert_eq!(bench.elevator.new_think, [608, 2]);
}

#[test]
fn pauses_are_forgotten_by_an_eighth() {
    let mut mean = Mean::default();
    mean.add_time(19);
    mean.add_time(0);
    // Samples (7 * 32 + 256) / 8, total 7 * 608 / 8, mean (532 + 128) / 60.
    assert_eq!((mean.samples, mean.total, mean.mean), (60, 532, 11));
    mean.add_time(0);
    // (7 * 60 + 256) / 8 = 84, 7 * 532 / 8 = 465, (465 + 128) / 84 = 7.
    assert_eq!((mean.samples, mean.total, mean.mean), (84, 465, 7));
    mean.add_time(0);
    // (588 + 256) / 8 = 105, 3255 / 8 = 406, 534 / 105 = 5: awaited again.
    assert_eq!((mean.samples, mean.total, mean.mean), (105, 406, 5));
}

#[test]
fn one_far_place_does_not_spoil_the_mean_distance() {
    let mut mean = Mean::default();
    mean.add_distance(10_000_000);
    // Cut to 2 Mi: 32 * 2 Mi / 32, rounded up by half a sample.
    assert_eq!((mean.samples, mean.mean), (32, 2 << 20));
    for _ in 0..2 {
        mean.add_distance(0);
    }
    // Total 7/8 * 7/8 of 32 * 2 Mi, 84 samples.
    assert_eq!(mean.mean, ((32u64 << 21) * 49 / 64 + 42) / 84);
    let before = mean;
    mean.add_distance(u64::MAX / 512);
    let value = before.mean * 4 + (2 << 16);
    assert_eq!(mean.total, (7 * before.total + 256 * value) / 8);
}

#[test]
fn a_near_read_of_another_task_is_as_good_and_the_longer_it_waits_the_farther_is_near() {
    // After page 100 the head is at sector 808; near is 32 sectors below to 64 above.
    let ends = |other: u64| {
        let mut bench = Bench::default();
        bench.read(1, 100, 0);
        assert_eq!(bench.next(0), Some(100));
        bench.read(2, other, 1);
        bench.ends(5)
    };
    assert_eq!(ends(109), Some(109));
    assert_eq!(ends(110), None);
    assert_eq!(ends(97), Some(97));
    assert_eq!(ends(96), None);
    // After 3 ms of waiting: 256 sectors above.
    for (page, is_near) in [(133, true), (134, false)] {
        let mut bench = Bench::default();
        bench.read(1, 100, 0);
        assert_eq!(bench.next(0), Some(100));
        bench.write(3, 9_000, 2);
        assert_eq!(bench.ends(5), None);
        bench.read(2, page, 8);
        assert_eq!(bench.next(8), is_near.then_some(page));
    }
}

#[test]
fn a_read_nearer_than_the_tasks_usual_distance_is_taken() {
    // Task 1 reads pages 100 and 1000: its mean distance is 899 pages.
    let mut bench = Bench::default();
    bench.read(1, 100, 0);
    assert_eq!(bench.next(0), Some(100));
    assert_eq!(bench.ends(1), None);
    bench.read(1, 1000, 1);
    assert_eq!(bench.next(1), Some(1000));
    assert_eq!(bench.elevator.tasks[&TaskId(1)].seek.mean, 899 * 8);
    bench.read(2, 1001 + 899, 2);
    assert_eq!(bench.ends(3), None);
    bench.read(3, 1001 + 898, 4);
    assert_eq!(bench.next(4), Some(1001 + 898));
}

#[test]
fn new_tasks_are_not_awaited_when_most_of_them_exit_after_a_read() {
    let mut bench = Bench::default();
    let mut chances = Vec::new();
    for task in 1..=6 {
        let page = u64::from(task) * 10_000;
        bench.read(task, page, 10 * u64::from(task));
        assert_eq!(bench.next(10 * u64::from(task)), Some(page));
        bench.read(9, 900_000, 10 * u64::from(task));
        bench.elevator.leave(TaskId(task));
        assert_eq!(bench.ends(10 * u64::from(task) + 2), Some(900_000));
        bench.elevator.awaited = None;
        bench.served = None;
        chances.push(bench.elevator.exits);
        bench.elevator.tasks.clear();
    }
    // c becomes (7 c + 256) / 8, rounded down.
    assert_eq!(chances, [32, 60, 84, 105, 123, 139]);
    bench.read(7, 70_000, 90);
    assert_eq!(bench.next(90), Some(70_000));
    bench.read(9, 900_000, 90);
    assert_eq!(bench.ends(92), Some(900_000), "139 is above a half");
    assert_eq!(bench.ends(93), None);
    bench.read(7, 70_001, 94);
    // A second read of a new task: 7 * 139 / 8.
    assert_eq!(bench.elevator.exits, 121);
}

#[test]
fn nothing_is_kept_of_a_task_that_has_exited() {
    let mut bench = Bench::default();
    bench.read(1, 100, 0);
    assert_eq!(bench.next(0), Some(100));
    bench.elevator.leave(TaskId(1));
    assert_eq!(bench.ends(5), None);
    assert!(
        bench.elevator.tasks.contains_key(&TaskId(1)),
        "it is awaited"
    );
    bench.read(2, 9_000, 6);
    assert_eq!(bench.next(6), Some(9_000));
    assert_eq!(bench.elevator.tasks.len(), 1);
}

#[test]
fn reads_have_half_a_second_then_a_dozen_writes_follow() {
    let mut bench = Bench::default();
    (0..20).for_each(|page| bench.write(2, 50_000 + page, 0));
    let mut page = 0;
    bench.read(1, page, 0);
    assert_eq!(bench.next(0), Some(0));
    let mut ms = 0;
    while bench.served.as_ref().is_some_and(|request| request.is_sync) {
        ms += 10;
        page += 1;
        bench.read(1, page, ms - 1);
        bench.ends(ms);
    }
    assert_eq!(ms, 510, "500 is not after 500");
    let writes = (0..).take_while(|_| bench.ends(ms).is_some_and(|page| page > 50_000));
    assert_eq!(writes.count(), 11, "125 / 10 in all");
    let oldest = bench.served.as_ref().map(|request| request.page);
    assert_eq!(oldest, Some(page));
}

#[test]
fn a_batch_of_writes_grows_or_shrinks_with_its_time() {
    // The time from its begin to the end of the first read after it, and writes of the next one.
    for (time, count) in [
        (17, 24),
        (41, 24),
        (42, 13),
        (125, 12),
        (126, 11),
        (375, 11),
        (376, 6),
    ] {
        let mut elevator = Anticipation {
            batch_until: 1_000 + BATCH[ASYNC],
            ..Anticipation::default()
        };
        elevator.adapt_writes(1_000 + time);
        assert_eq!(elevator.write_count, count, "{time} ms");
    }
    // One that had no reads to hurry for says nothing if it was long.
    let mut elevator = Anticipation {
        has_idled: true,
        ..Anticipation::default()
    };
    elevator.adapt_writes(1_000);
    assert_eq!(elevator.write_count, 12);
}

#[test]
fn a_read_that_has_waited_for_an_eighth_of_a_second_goes_out_of_turn_once_in_that_time() {
    let mut bench = Bench::default();
    bench.read(1, 1_000, 0);
    assert_eq!(bench.next(0), Some(1_000));
    bench.read(2, 90_000, 1);
    bench.read(3, 5_000_000, 1);
    let (mut page, mut ms) = (1_000, 0);
    let mut others = Vec::new();
    while ms < 400 {
        ms += 5;
        page += 1;
        bench.read(1, page, ms - 1);
        bench.elevator.time_is_up(at(ms));
        let next = if bench.served.is_some() {
            bench.ends(ms)
        } else {
            bench.next(ms)
        };
        others.extend(next.filter(|&page| page >= 90_000).map(|page| (page, ms)));
    }
    // Looked at after 125 ms, when they have waited for 124, then at 250 and at 375.
    assert_eq!(others, [(90_000, 250), (5_000_000, 375)]);
}

#[test]
fn the_head_goes_back_for_less_than_half_the_way_forwards() {
    // The head is behind page 999.
    let next = |pages: &[u64]| {
        let mut bench = Bench::default();
        bench.read(1, 999, 0);
        assert_eq!(bench.next(0), Some(999));
        pages.iter().for_each(|&page| bench.read(1, page, 1));
        bench.ends(2)
    };
    assert_eq!(next(&[900, 1_199]), Some(1_199));
    assert_eq!(next(&[900, 1_200]), Some(1_200), "as far: forwards");
    assert_eq!(next(&[900, 1_201]), Some(900));
    assert_eq!(next(&[5, 10]), Some(10));
    // 1 Mi sectors are 131,072 pages.
    let far = |pages: &[u64]| {
        let mut bench = Bench::default();
        bench.read(1, 199_999, 0);
        assert_eq!(bench.next(0), Some(199_999));
        pages.iter().for_each(|&page| bench.read(1, page, 1));
        bench.ends(2)
    };
    assert_eq!(far(&[10, 200_000 - 131_072]), Some(200_000 - 131_072));
    assert_eq!(
        far(&[10, 200_000 - 131_073]),
        Some(10),
        "from the lowest again"
    );
}

#[test]
fn a_batch_of_the_other_kind_begins_when_nothing_is_served() {
    let mut bench = Bench::default();
    bench.read(1, 100, 0);
    assert_eq!(bench.next(0), Some(100));
    bench.write(1, 9_000, 1);
    assert_eq!(bench.elevator.next(&bench.waiting, true, at(1)), None);
    assert_eq!(bench.ends(2), Some(9_000), "the awaited task's own write");
}
