//! Disks, caches, memory.

use super::toy::{Toy, run};
use crate::work::*;
use model::Advice as _;

/// Microseconds at which each task counted `name`, by task.
fn when(toy: &Toy, name: &str) -> Vec<(u64, u32)> {
    let counters = &toy.workload.counters;
    let counter = counters.iter().position(|counter| counter == name).unwrap() as u64;
    (toy.events.iter())
        .filter(|(_, _, event)| event.kind == model::EventKind::Count && event.a == counter)
        .map(|(time, task, _)| (time.as_nanos() / 1_000, task.0))
        .collect()
}

/// A disk that moves a page a millisecond and needs 4 ms besides.
const SLOW: &str = "[disk.d]\nbase = \"4ms\"\nbandwidth = 4096000\n";

#[test]
fn a_request_takes_its_base_and_its_transfer_and_the_next_one_waits() {
    let two = "[task.t]\ncount = 2\ndo = \"read(d, 8KiB, at(0)), count(done)\"\n";
    let toy = run(&format!("{SLOW}{two}"));
    assert_eq!(when(&toy, "done"), [(6_000, 0), (12_000, 1)]);
    let wide = run(&format!("{SLOW}width = 2\n{two}"));
    assert_eq!(when(&wide, "done"), [(6_000, 0), (6_000, 1)]);
    assert_eq!(toy.counted("d_reads"), 2);
}

#[test]
fn a_long_transfer_is_several_requests_of_a_mebibyte() {
    let toy = run(&format!(
        "{SLOW}[task.t]\ndo = \"read(d, 2560KiB, at(0)), count(done)\"\n"
    ));
    // 640 pages of 1 ms in three requests.
    assert_eq!(when(&toy, "done"), [(640_000 + 3 * 4_000, 0)]);
    assert_eq!(toy.counted("d_reads"), 3);
}

#[test]
fn part_of_a_page_is_a_page_and_an_odd_begin_may_take_two() {
    let toy = run(&format!(
        "{SLOW}[task.t]\ndo = \"read(d, 1, at(4095)), count(one), read(d, 2, at(4095)), \
         count(two)\"\n"
    ));
    assert_eq!(when(&toy, "one"), [(5_000, 0)]);
    assert_eq!(when(&toy, "two"), [(5_000 + 6_000, 0)]);
}

#[test]
fn a_seek_takes_the_square_root_of_its_share_and_none_to_the_next_page() {
    let toy = run("[disk.d]\nseek = \"10ms\"\nsize = \"4096 * 10000\"\n\
         [task.t]\ndo = \"read(d, 4KiB, at(4096 * 2500)), count(far), \
         read(d, 4KiB, at(4096 * 2501)), count(near), \
         read(d, 4KiB, at(4096 * 102)), count(back)\"\n");
    assert_eq!(when(&toy, "far"), [(5_000, 0)]);
    assert_eq!(when(&toy, "near"), [(5_000, 0)]);
    // 2400 of 10,000 pages: the root of 0.24 is 0.48990.
    assert_eq!(when(&toy, "back"), [(5_000 + 4_898, 0)]);
}

#[test]
fn sequential_operations_of_a_task_go_on_where_it_was() {
    let toy = run("[disk.d]\nseek = \"1s\"\nsize = \"1GiB\"\n\
         [task.t]\ndo = \"read(d, 64KiB), count(first), loop(9)[ read(d, 64KiB, seq) ], \
         count(last)\"\n");
    assert_eq!(
        when(&toy, "first"),
        when(&toy, "last"),
        "only the first one seeks"
    );
}

/// The order in which one disk serves pages 50, 10, 90 and 20, which come while it reads page 40.
fn served(elevator: &str) -> Vec<u32> {
    let toy = run(&format!(
        "[disk.d]\nbase = \"5ms\"\nelevator = \"{elevator}\"\n\
         [task.first]\ndo = \"read(d, 4KiB, at(4096 * 40))\"\n\
         [task.p50]\nstart = \"1ms\"\ndo = \"read(d, 4KiB, at(4096 * 50)), count(done)\"\n\
         [task.p10]\nstart = \"2ms\"\ndo = \"read(d, 4KiB, at(4096 * 10)), count(done)\"\n\
         [task.p90]\nstart = \"3ms\"\ndo = \"read(d, 4KiB, at(4096 * 90)), count(done)\"\n\
         [task.p20]\nstart = \"4ms\"\ndo = \"read(d, 4KiB, at(4096 * 20)), count(done)\"\n"
    ));
    let page = [0, 50, 10, 90, 20];
    when(&toy, "done")
        .into_iter()
        .map(|(_, task)| page[task as usize])
        .collect()
}

#[test]
fn elevators_serve_by_age_or_upwards_and_round() {
    assert_eq!(served("fifo"), [50, 10, 90, 20]);
    assert_eq!(served("scan"), [50, 90, 10, 20]);
    assert_eq!(served("deadline"), [50, 90, 10, 20]);
}

#[test]
fn a_deadline_elevator_serves_a_read_after_half_a_second() {
    // A stream at pages above keeps a scanning disk away from page 0.
    let load = |elevator: &str| {
        let toy = run(&format!(
            "stop = \"duration:2s\"\n[disk.d]\nbase = \"10ms\"\nelevator = \"{elevator}\"\n\
             [task.s]\ncount = 3\ndo = \"let n = self + 10, loop(inf)[ read(d, 4KiB, at(4096 * \
             n)), n = n + 3 ]\"\n\
             [task.low]\nstart = \"25ms\"\ndo = \"read(d, 4KiB, at(0)), count(done)\"\n"
        ));
        when(&toy, "done")
    };
    assert_eq!(load("scan"), []);
    let [(served, 3)] = load("deadline")[..] else {
        panic!("{:?}", load("deadline"))
    };
    // A row of 16 requests is not broken off.
    assert!((525_000..=700_000).contains(&served), "{served}");
}

#[test]
fn a_deadline_elevator_serves_reads_before_writes() {
    // All wait while the disk reads page 40; the read comes last and lies below.
    let toy = run("[disk.d]\nbase = \"5ms\"\n\
         [task.first]\ndo = \"read(d, 4KiB, at(4096 * 40))\"\n\
         [task.a]\nstart = \"1ms\"\ndo = \"write(d, 4KiB, at(4096 * 60)), count(done)\"\n\
         [task.b]\nstart = \"2ms\"\ndo = \"write(d, 4KiB, at(4096 * 50)), count(done)\"\n\
         [task.c]\nstart = \"3ms\"\ndo = \"read(d, 4KiB, at(4096 * 10)), count(done)\"\n");
    assert_eq!(when(&toy, "done"), [(10_000, 3), (15_000, 2), (20_000, 1)]);
}

#[test]
fn a_write_waits_for_two_rows_of_reads_besides_the_one_under_way() {
    // Reads always wait, each above the last one; a request takes 1 ms.
    let toy = run("stop = \"task:w\"\n[disk.d]\nbase = \"1ms\"\n\
         [task.r]\ncount = 3\ndo = \"let n = self, loop(inf)[ read(d, 4KiB, at(4096 * n)), \
         n = n + 3 ]\"\n\
         [task.w]\nstart = \"500us\"\ndo = \"write(d, 4KiB, at(0)), count(done)\"\n");
    assert_eq!(when(&toy, "done"), [(3 * 16_000 + 1_000, 3)]);
}

#[test]
fn a_disk_may_have_shorter_requests() {
    let toy = run(&format!(
        "{SLOW}request = \"512KiB\"\n[task.t]\ndo = \"read(d, 2560KiB, at(0)), count(done)\"\n"
    ));
    assert_eq!(when(&toy, "done"), [(640_000 + 5 * 4_000, 0)]);
    assert_eq!(toy.counted("d_reads"), 5);
}

#[test]
fn pages_ahead_of_a_sequential_reader_are_read_while_it_computes() {
    // 16 pages are 20 ms of disk; the task computes 20 ms after each.
    let times = |ahead: &str, place: &str| {
        let toy = run(&format!(
            "{SLOW}cache = \"lru:4MiB\"\nahead = {ahead}\n\
             [task.t]\ndo = \"for(n, 10)[ read(d, 64KiB, {place}), run(20ms) ], count(done)\"\n"
        ));
        (when(&toy, "done")[0].0, toy.counted("d_reads"))
    };
    let forwards = "at(65536 * n)";
    assert_eq!(times("4096", "at(65536 * (20 - n))"), (400_000, 10));
    // The first two are waited for; the last window is read for nobody.
    let (time, reads) = times("\"64KiB\"", forwards);
    assert_eq!((time, reads), (240_000, 11));
}

#[test]
fn nothing_is_read_ahead_where_memory_would_have_to_be_written() {
    // The task's memory fills all. The first read swaps 32 pages of it out; 64 pages ahead would
    // take another swap.
    let toy = run(
        "[disk.d]\nbase = \"1ms\"\ncache = \"lru\"\nahead = \"256KiB\"\n\
         [disk.s]\nbase = \"1ms\"\n[mem]\nram = \"4MiB\"\nswap = \"s\"\n\
         [task.t]\ndo = \"touch(4MiB), loop(2)[ read(d, 4KiB, seq) ]\"\n",
    );
    assert_eq!((toy.counted("d_reads"), toy.counted("s_writes")), (2, 1));
}

#[test]
fn what_was_read_is_cached_until_other_pages_push_it_out() {
    // 256 pages of cache; 1 ms a request.
    let toy = run("[disk.d]\nbase = \"1ms\"\ncache = \"lru:1MiB\"\n\
         [task.t]\ndo = \"read(d, 512KiB, at(0)), count(a), read(d, 512KiB, at(0)), count(b), \
         read(d, 768KiB, at(1MiB)), count(c), read(d, 256KiB, at(256KiB)), count(d), \
         read(d, 4KiB, at(0)), count(e)\"\n");
    // The last read of the first half comes after the second half pushed its oldest part out.
    let times: Vec<u64> = ["a", "b", "c", "d", "e"]
        .map(|name| when(&toy, name)[0].0)
        .into();
    assert_eq!(times, [1_000, 1_000, 2_000, 2_000, 3_000]);
}

#[test]
fn a_cache_of_percent_hits_as_often_as_it_says() {
    let toy = run("[disk.d]\nbase = \"1us\"\ncache = \"percent:90\"\n\
         [task.t]\ndo = \"loop(20000)[ read(d, 4KiB, rand) ]\"\n");
    // 2,000 of 20,000; five deviations are 212.
    let missed = toy.counted("d_reads");
    assert!((1_788..=2_212).contains(&missed), "{missed}");
}

#[test]
fn writes_go_to_the_cache_until_it_is_too_dirty() {
    // A tenth of 1 MiB may be dirty: 25 pages; a row is one request of 10 ms.
    let toy = run(
        "[disk.d]\nbase = \"10ms\"\ncache = \"lru:1MiB\"\ndirty = \"100KiB\"\n\
         [task.t]\ndo = \"loop(25)[ write(d, 4KiB) ], count(free), write(d, 4KiB), count(held)\"\n",
    );
    assert_eq!(when(&toy, "free"), [(0, 0)]);
    assert_eq!(when(&toy, "held"), [(10_000, 0)]);
    assert_eq!(toy.counted("d_writes"), 1);
}

#[test]
fn fsync_waits_for_the_tasks_own_pages_or_for_all() {
    let tables = |sync: &str| {
        format!(
            "[disk.d]\nbase = \"10ms\"\ncache = \"lru:1MiB\"\nsync = \"{sync}\"\n\
             [task.a]\ndo = \"write(d, 4KiB, at(0)), write(d, 4KiB, at(40960)), sleep(1ms), \
             fsync(d), count(done), fsync(d), count(again)\"\n\
             [task.b]\ndo = \"write(d, 4KiB, at(20480))\"\n"
        )
    };
    let own = run(&tables("task"));
    assert_eq!(when(&own, "done"), [(21_000, 0)], "two rows of its own");
    assert_eq!(when(&own, "again"), [(21_000, 0)]);
    assert_eq!(when(&run(&tables("disk")), "done"), [(31_000, 0)]);
}

#[test]
fn who_syncs_a_shared_log_waits_for_the_write_that_is_under_way() {
    // The second one finds its page in the first one's write and waits for that only.
    let toy = run(
        "[disk.log]\nbase = \"10ms\"\ncache = \"lru:1MiB\"\nsync = \"disk\"\n\
         [task.t]\ncount = 2\n\
         do = \"write(log, 4KiB, at(4096 * self)), sleep(1ms), fsync(log), count(done)\"\n",
    );
    assert_eq!(when(&toy, "done"), [(11_000, 0), (11_000, 1)]);
    assert_eq!(toy.counted("log_writes"), 1, "one write serves both");
}

#[test]
fn a_daemon_writes_back_what_others_have_written() {
    let toy = run(
        "stop = \"task:w\"\n[disk.d]\nbase = \"10ms\"\ncache = \"lru:1MiB\"\n\
         [task.w]\ndo = \"loop(9)[ write(d, 4KiB, seq), sleep(10ms) ], count(done)\"\n\
         [task.flusher]\ndo = \"loop(inf)[ timer(30ms), writeback(d), count(turns) ]\"\n",
    );
    assert_eq!(when(&toy, "done"), [(90_000, 0)], "the writer never waits");
    assert!(toy.counted("d_writes") >= 2 && toy.counted("turns") >= 2);
}

#[test]
fn memory_that_is_used_again_and_fits_costs_nothing() {
    let toy = run(
        "[disk.s]\nbase = \"1ms\"\n[mem]\nram = \"4MiB\"\nswap = \"s\"\n\
         [task.t]\ndo = \"loop(5)[ touch(3MiB) ], count(done)\"\n",
    );
    assert_eq!(when(&toy, "done"), [(0, 0)]);
    assert_eq!((toy.counted("s_reads"), toy.counted("s_writes")), (0, 0));
}

#[test]
fn memory_that_does_not_fit_is_swapped_page_by_page() {
    // 1024 pages, of which 1280 are used in turn: from the second round on every use misses.
    let toy = run(
        "[disk.s]\nbase = \"1ms\"\n[mem]\nram = \"4MiB\"\nswap = \"s\"\n\
         [task.t]\ndo = \"touch(5MiB), count(once), touch(5MiB), count(twice)\"\n",
    );
    // 256 pages leave in rows of 32.
    assert_eq!(when(&toy, "once"), [(8_000, 0)]);
    assert_eq!(toy.counted("s_reads"), 1280);
    assert_eq!(toy.counted("s_writes"), 8 + 40);
    assert_eq!(when(&toy, "twice"), [(8_000 + 1_280_000 + 40_000, 0)]);
}

#[test]
fn an_exit_gives_memory_back() {
    let toy = run(
        "[disk.s]\nbase = \"1ms\"\n[mem]\nram = \"4MiB\"\nswap = \"s\"\n\
         [task.a]\ndo = \"touch(4MiB), sleep(5ms)\"\n\
         [task.b]\nstart = \"10ms\"\ndo = \"touch(4MiB), count(done)\"\n",
    );
    assert_eq!(when(&toy, "done"), [(10_000, 1)]);
    assert_eq!(toy.counted("s_writes"), 0);
}

#[test]
fn the_cache_gives_way_to_tasks_before_anything_is_swapped_and_tasks_to_a_stream() {
    let toy = run(
        "[disk.d]\nbase = \"1ms\"\ncache = \"lru\"\n[disk.s]\nbase = \"1ms\"\n\
         [mem]\nram = \"4MiB\"\nswap = \"s\"\n\
         [task.t]\ndo = \"read(d, 2MiB, at(0)), touch(3MiB), count(fits), touch(3MiB), \
         read(d, 4MiB, at(2MiB)), count(streamed), touch(1MiB), count(back)\"\n",
    );
    assert_eq!(when(&toy, "fits"), [(2_000, 0)], "the cache shrank");
    // The stream is newer than the task's pages, which are swapped out.
    assert!(toy.counted("s_writes") >= 24, "{}", toy.counted("s_writes"));
    assert_eq!(toy.counted("s_reads"), 256);
}

#[test]
fn a_daemon_makes_room_before_memory_is_gone() {
    let toy = run("stop = \"task:t\"\n[disk.s]\nbase = \"1ms\"\n\
         [mem]\nram = \"4MiB\"\nswap = \"s\"\nlow = \"256KiB\"\nhigh = \"512KiB\"\n\
         [task.kswapd]\ndo = \"loop(inf)[ reclaim, count(turns) ]\"\n\
         [task.t]\ndo = \"for(i, 40)[ touch(4096 * 32 * (i + 1)), sleep(5ms) ], count(done)\"\n");
    assert!(toy.counted("turns") >= 2, "{}", toy.counted("turns"));
    assert!(toy.counted("s_writes") >= 4);
    assert_eq!(toy.counted("done"), 1);
}

#[test]
fn what_does_not_fit_a_disk_or_needs_memory_is_refused() {
    let error = |text: &str| {
        let text = format!("[workload]\nname = \"t\"\n{text}");
        match Workload::parse(&text, "test.toml") {
            Err(error) => error.in_full(),
            Ok(workload) => Toy::with(workload, 1).run().unwrap_err().in_full(),
        }
    };
    let cases = [
        (
            "[disk.d]\nsize = 8192\n[task.t]\ndo = \"read(d, 1, at(8192))\"\n",
            "test.toml:6: t: the place on the disk is 8192; expected 0 to 8191",
        ),
        (
            "[disk.d]\n[task.t]\ndo = \"read(d, 0)\"\n",
            "test.toml:5: t: the number of bytes is 0; expected 1 to 1073741824",
        ),
        (
            "[task.t]\ndo = \"touch(1MiB)\"\n",
            "expected a table [mem] that limits memory",
        ),
        (
            "[mem]\nram = \"1MiB\"\nswap = \"d\"\n[task.t]\ndo = \"exit\"\n",
            "ram is 1048576; expected 4194304 to",
        ),
        (
            "[mem]\nram = \"8MiB\"\nswap = \"d\"\n[task.t]\ndo = \"exit\"\n",
            "unknown disk `d`",
        ),
        (
            "[disk.d]\n[mem]\nram = \"8MiB\"\nswap = \"d\"\nhigh = \"5MiB\"\n[task.t]\ndo = \
             \"exit\"\n",
            "high is 5120 KiB; expected 128 to 4096 KiB",
        ),
        (
            "[disk.d]\ncache = \"percent:101\"\n[task.t]\ndo = \"exit\"\n",
            "the cache is 101; expected 0 to 100",
        ),
        (
            "[disk.d]\nelevator = \"anticpatory\"\n[task.t]\ndo = \"exit\"\n",
            "test.toml:4:13: found \"anticpatory\"",
        ),
        (
            "[disk.d]\n[task.t]\ndo = \"read(d, 1, first)\"\n",
            "found `first`; expected `seq` or `rand` or `at`",
        ),
    ];
    for (text, want) in cases {
        let message = error(text);
        assert!(message.contains(want), "{text}{message}");
    }
}

/// Readers, writers, syncers and users of memory in a random order; all come to their end, and
/// every page is accounted for.
#[test]
fn random_storage_comes_to_its_end_with_every_page_accounted_for() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed, 0xd15c);
        let pick = |rng: &mut Rng, words: &[&str]| {
            words[rng.below(words.len() as u64) as usize].to_owned()
        };
        let elevator = pick(&mut rng, &["fifo", "scan", "deadline", "anticipatory"]);
        let cache = pick(
            &mut rng,
            &["none", "percent:50", "lru:1MiB", "lru", "lru:3MiB"],
        );
        let sync = pick(&mut rng, &["task", "disk"]);
        let lists = pick(&mut rng, &["one", "two"]);
        let width = 1 + rng.below(3);
        let request = pick(&mut rng, &["4KiB", "64KiB", "1MiB"]);
        let ahead = pick(&mut rng, &["4KiB", "100KiB", "1MiB"]);
        let mut text = format!(
            "[workload]\nname = \"random\"\n[disk.d]\nbase = \"exp(200us)\"\nseek = \"2ms\"\n\
             bandwidth = \"200MiB\"\nsize = \"64MiB\"\nelevator = \"{elevator}\"\ncache = \
             \"{cache}\"\n\
             sync = \"{sync}\"\nwidth = {width}\ndirty = \"256KiB\"\ncost = \"3us\"\n\
             request = \"{request}\"\nahead = \"{ahead}\"\n\
             [disk.swap]\nbase = \"exp(100us)\"\n\
             [mem]\nram = \"5MiB\"\nswap = \"swap\"\nlists = \"{lists}\"\n\
             [task.kswapd]\ndo = \"loop(inf)[ reclaim, run(5us) ]\"\n\
             [task.flusher]\ndo = \"loop(inf)[ timer(20ms), writeback(d) ]\"\n"
        );
        let groups = 1 + rng.below(4);
        let mut stop = String::from("stop = [");
        for group in 0..groups {
            let mut ops = String::new();
            for _ in 0..1 + rng.below(6) {
                let bytes = 1 + rng.below(700_000);
                let place = pick(&mut rng, &["seq", "rand", "at(rand(60000000))"]);
                ops += &match rng.below(6) {
                    0 | 1 => format!("read(d, {bytes}, {place}), "),
                    2 => format!("write(d, {bytes}, {place}), "),
                    3 => "fsync(d), ".to_owned(),
                    4 => format!("touch({}), ", rng.below(3_000_000)),
                    _ => format!("touch({bytes}, 6MiB), run(exp(50us)), "),
                };
            }
            let (count, turns) = (1 + rng.below(3), 1 + rng.below(6));
            text += &format!(
                "[task.g{group}]\ncount = {count}\ndo = \"loop({turns})[ {ops} ], count(done), \
                 barrier(end)\"\n"
            );
            stop += &format!("\"task:g{group}\", ");
        }
        text = text.replace(
            "[disk.d]",
            &format!("{stop}]\n[barrier.end]\nparties = TOTAL\n[disk.d]"),
        );
        let workload = Workload::parse(&text.replace("TOTAL", "1"), "r")
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        let total: u32 = workload.groups[2..].iter().map(|group| group.count).sum();
        let mut toy = Toy::new(&text.replace("TOTAL", &total.to_string()), seed);
        toy.run()
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let waiting: Vec<_> = (0..toy.born)
            .filter_map(|t| toy.work.waits_for(TaskId(t)))
            .collect();
        assert_eq!(
            toy.counted("done"),
            total.into(),
            "seed {seed}: {waiting:?}\n{text}"
        );
        if let Err(message) = toy.work.storage.check() {
            panic!("seed {seed}: {message}\n{text}");
        }
    }
}

#[test]
fn with_the_anticipatory_elevator_streams_take_turns_of_an_eighth_of_a_second() {
    // Two tasks read on, each at its place. A seek takes 10 ms, a request 1 ms.
    let order = |elevator: &str| {
        let toy = run(&format!(
            "stop = \"duration:2s\"\n[disk.d]\nbase = \"1ms\"\nseek = \"20ms\"\nsize = \"4GiB\"\n\
             elevator = \"{elevator}\"\n[task.t]\ncount = 2\ndo = \"let n = 0, loop(inf)[ \
             read(d, 4KiB, at(self * 1073741824 + n * 4096)), n = n + 1, count(done) ]\"\n"
        ));
        when(&toy, "done")
    };
    let runs = |order: &[(u64, u32)]| {
        let changes = order.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        changes.count() + 1
    };
    let deadline = order("deadline");
    assert!(runs(&deadline) > deadline.len() - 10, "each read seeks");
    let waits = order("anticipatory");
    // Late reads are looked at every 125 ms: at most 16 changes in 2 s, each with a seek.
    assert!((8..=17).contains(&runs(&waits)), "{}", runs(&waits));
    assert!(waits.len() > 1_700, "{}", waits.len());
    assert!(deadline.len() < 200, "{}", deadline.len());
}

#[test]
fn with_the_anticipatory_elevator_writes_of_fsync_count_as_reads() {
    // Reads go on without end; other writes wait for half a second.
    let done = |wait: &str| {
        let toy = run(&format!(
            "stop = \"task:w\"\n[disk.d]\nbase = \"1ms\"\ncache = \"lru:64MiB\"\n\
             elevator = \"anticipatory\"\n[task.r]\ncount = 2\ndo = \"let n = self, loop(inf)[ \
             read(d, 4KiB, at(4096 * n)), n = n + 2 ]\"\n\
             [task.w]\nstart = \"1500us\"\ndo = \"write(d, 4KiB, at(8388608)), {wait}, \
             count(done)\"\n"
        ));
        when(&toy, "done")[0].0
    };
    assert!(done("fsync(d)") < 300_000, "{}", done("fsync(d)"));
    assert!(done("writeback(d)") > 500_000, "{}", done("writeback(d)"));
}

#[test]
fn with_two_lists_a_page_that_was_used_again_stays_while_a_stream_passes() {
    // 1,024 pages of memory; 64 are read twice, then 1,500 once, then the 64 again.
    let reads = |lists: &str| {
        let toy = run(&format!(
            "[disk.d]\nbase = \"1us\"\ncache = \"lru\"\n\
             [mem]\nram = \"4MiB\"\nswap = \"d\"\nlists = \"{lists}\"\n\
             [task.t]\ndo = \"loop(2)[ for(p, 64)[ read(d, 4KiB, at(4096 * p)) ] ], \
             for(p, 1500)[ read(d, 4KiB, at(4096 * (1000 + p))) ], \
             for(p, 64)[ read(d, 4KiB, at(4096 * p)) ]\"\n"
        ));
        toy.counted("d_reads")
    };
    assert_eq!(reads("one"), 64 + 1_500 + 64);
    assert_eq!(reads("two"), 64 + 1_500);
}

#[test]
fn with_two_lists_tasks_keep_their_memory_until_it_is_four_fifths_of_all() {
    // A stream of 3,000 pages beside a task that has used its own pages once: 700 or 900 of 1,024.
    let written = |kib: u32| {
        let toy = run(&format!(
            "[disk.d]\nbase = \"1us\"\ncache = \"lru\"\n[disk.swap]\nbase = \"1us\"\n\
             [mem]\nram = \"4MiB\"\nswap = \"swap\"\nlists = \"two\"\n\
             [task.t]\ndo = \"touch({kib}KiB), \
             for(p, 3000)[ read(d, 4KiB, at(4096 * p)) ]\"\n"
        ));
        toy.counted("swap_writes")
    };
    assert_eq!(written(700 * 4), 0);
    assert!(written(900 * 4) > 0);
}
