//! Locks of other kinds, semaphores, condition variables, sockets that listen, and requests from
//! outside.

use model::EventKind;

use super::toy::{Toy, run};
use crate::work::*;

/// Milliseconds and task of each event of the counter `name`.
fn when(toy: &Toy, name: &str) -> Vec<(u64, u32)> {
    let counters = &toy.workload.counters;
    let counter = counters.iter().position(|counter| counter == name).unwrap() as u64;
    (toy.events.iter())
        .filter(|(_, _, event)| event.kind == EventKind::Count && event.a == counter)
        .map(|(time, task, _)| (time.as_nanos() / 1_000_000, task.0))
        .collect()
}

/// Lengths in microseconds of the spans called `name`.
fn lengths(toy: &Toy, name: &str) -> Vec<u64> {
    let span = toy
        .workload
        .spans
        .iter()
        .position(|span| span == name)
        .unwrap() as u64;
    let ended = |event: &&(EventKind, u64, u64)| event.0 == EventKind::SpanEnd && event.1 == span;
    toy.recorded()
        .iter()
        .filter(ended)
        .map(|event| event.2 / 1_000)
        .collect()
}

fn deadlock(toy: &Toy, task: u32) -> Option<String> {
    toy.work.waits_for(TaskId(task))
}

#[test]
fn readers_share_and_a_writer_that_waits_stops_those_who_come_later() {
    // Readers 0 and 1 at 0 ms; the writer at 1 ms; reader 2 comes at 2 ms and waits behind it.
    let toy = run("[lock.l]\nkind = \"rw\"\n\
         [task.r]\ncount = 2\ndo = \"lock_shared(l), count(read), sleep(5ms), unlock(l)\"\n\
         [task.w]\nstart = \"1ms\"\ndo = \"lock(l), count(wrote), sleep(3ms), unlock(l)\"\n\
         [task.late]\nstart = \"2ms\"\ndo = \"lock_shared(l), count(late), unlock(l)\"\n");
    assert_eq!(when(&toy, "read"), [(0, 0), (0, 1)]);
    assert_eq!(when(&toy, "wrote"), [(5, 2)]);
    assert_eq!(when(&toy, "late"), [(8, 3)]);
    assert!(toy.all_dead());
}

#[test]
fn all_readers_at_the_front_get_a_lock_together() {
    let toy = run("[lock.l]\nkind = \"rw\"\n\
         [task.w]\ndo = \"lock(l), sleep(2ms), unlock(l)\"\n\
         [task.r]\ncount = 3\ndo = \"lock_shared(l), count(read), sleep(1ms), unlock(l)\"\n");
    assert_eq!(when(&toy, "read"), [(2, 1), (2, 2), (2, 3)]);
}

#[test]
fn a_reader_may_not_take_a_lock_twice() {
    let text = "[workload]\nname = \"t\"\n[lock.l]\nkind = \"rw\"\n\
                [task.r]\ndo = \"lock_shared(l), lock_shared(l)\"\n";
    let error = Toy::new(text, 1).run().unwrap_err().to_string();
    assert_eq!(error, "test.toml:6: r: takes a lock that it holds");
}

#[test]
fn keys_are_locked_apart_taken_again_for_nothing_and_given_back_together() {
    let toy = run("[lock.row]\nkind = \"keyed\"\nkeys = 1000000\n\
         [task.a]\ndo = \"lock(row[7]), lock(row[9]), lock(row[7]), sleep(2ms), unlock_all(row)\"\n\
         [task.b]\ndo = \"lock(row[8]), count(other), unlock(row[8]), lock(row[9]), \
         count(same)\"\n");
    assert_eq!(when(&toy, "other"), [(0, 1)]);
    assert_eq!(when(&toy, "same"), [(2, 1)]);
}

#[test]
fn a_circle_of_waits_is_refused_to_the_last_who_comes() {
    let toy = run("[lock.row]\nkind = \"keyed\"\nkeys = 3\n\
         [task.t]\ncount = 3\n\
         do = \"lock(row[self]), sleep(1ms * (self + 1)), \
                lock(row[(self + 1) % 3]) else [ count(victim), unlock_all(row), exit ], \
                count(won), unlock_all(row)\"\n");
    // Task 2 would close the circle; its row goes to task 1, whose rows go to task 0.
    assert_eq!(when(&toy, "victim"), [(3, 2)]);
    assert_eq!(when(&toy, "won"), [(3, 1), (3, 0)]);
    assert!(toy.all_dead());
}

#[test]
fn without_an_else_a_circle_of_waits_stands_still() {
    let toy = run(
        "[lock.row]\nkind = \"keyed\"\nkeys = 2\n[task.t]\ncount = 2\n\
                   do = \"lock(row[self]), sleep(1ms), lock(row[1 - self])\"\n",
    );
    assert_eq!(deadlock(&toy, 0).as_deref(), Some("the lock row[1]"));
    assert_eq!(deadlock(&toy, 1).as_deref(), Some("the lock row[0]"));
}

#[test]
fn hot_keys_are_drawn_as_often_as_the_file_says() {
    let toy = run(
        "[lock.row]\nkind = \"keyed\"\nkeys = 1000000\nhot = 10000\nhot_percent = 75\n\
         [task.t]\ndo = \"loop(20000)[ let k = randkey(row), count(all), if(k < 10000)[ \
         count(hot) ] ]\"\n",
    );
    // 75 % and one hundredth of the other 25 %, 15,050 of 20,000; five deviations are 306.
    let hot = toy.counted("hot");
    assert!((14_744..=15_356).contains(&hot), "{hot}");
}

/// Found while keyed locks were written: who had waited for `c[rand(9)]` drew anew when it was
/// woken, and took another instance.
#[test]
fn an_index_is_drawn_once_however_often_its_operation_waits() {
    for seed in 0..20 {
        let text = "[workload]\nname = \"t\"\n[chan.c]\nkind = \"queue\"\ncount = 50\n\
                    [task.r]\ndo = \"recv(c[rand(50)])\"\n\
                    [task.w]\ndo = \"for(i, 50)[ sleep(1ms), send(c[i]) ]\"\n";
        let mut toy = Toy::new(text, seed);
        toy.run().unwrap();
        let blocks = toy.times(|action| *action == Action::Block);
        assert_eq!(
            blocks.len(),
            1,
            "seed {seed}: the reader waits for one channel"
        );
        assert!(toy.all_dead());
    }
}

/// Found while keyed locks were written: a wait that is over counted for the next operation, and
/// a pipe then passed on a wakeup that had never come.
#[test]
fn a_wait_counts_only_for_the_operation_that_waited() {
    let toy = run("[barrier.b]\nparties = 2\n[chan.p]\nkind = \"pipe\"\n\
         [task.first]\ndo = \"barrier(b), send(p), sleep(9ms)\"\n\
         [task.r]\ncount = 2\ndo = \"recv(p)\"\n\
         [task.second]\nstart = \"1ms\"\ndo = \"send(p), send(p), barrier(b)\"\n");
    // The second writer wakes one reader, who passes the wakeup on for the second message.
    let wakes = toy.times(|action| matches!(action, Action::Wake { .. }));
    assert_eq!(wakes, [(1000, 3), (1000, 3), (1000, 1)]);
}

#[test]
fn a_semaphore_gives_its_tokens_in_the_order_of_coming() {
    let toy = run("[sem.s]\nvalue = 1\n\
         [task.t]\ncount = 3\ndo = \"sem_wait(s), count(got_it), sleep(1ms), sem_post(s)\"\n");
    assert_eq!(when(&toy, "got_it"), [(0, 0), (1, 1), (2, 2)]);
    let kept = run(
        "[sem.s]\n[task.t]\ndo = \"sem_post(s), sem_post(s), sem_wait(s), sem_wait(s), \
                    count(both), sem_wait(s)\"\n",
    );
    assert_eq!(kept.counted("both"), 1);
    assert_eq!(deadlock(&kept, 0).as_deref(), Some("the semaphore s[0]"));
}

#[test]
fn a_signal_wakes_one_a_broadcast_all_and_each_takes_the_lock_again() {
    for handoff in ["fifo", "barge"] {
        let toy = run(&format!(
            "[lock.l]\nhandoff = \"{handoff}\"\n[cond.c]\n\
             [task.t]\ncount = 3\ndo = \"lock(l), wait(c, l), count(woken), sleep(1ms), \
             unlock(l)\"\n\
             [task.s]\nstart = \"1ms\"\ndo = \"lock(l), signal(c), sleep(1ms), unlock(l), \
             sleep(8ms), lock(l), broadcast(c), unlock(l), signal(c)\"\n"
        ));
        assert_eq!(when(&toy, "woken"), [(2, 0), (10, 1), (11, 2)], "{handoff}");
        assert!(toy.all_dead(), "{handoff}");
    }
}

#[test]
fn waiting_without_the_lock_is_an_error() {
    let text = "[workload]\nname = \"t\"\n[lock.l]\n[cond.c]\n[task.t]\ndo = \"wait(c, l)\"\n";
    let error = Toy::new(text, 1).run().unwrap_err().to_string();
    assert_eq!(
        error,
        "test.toml:6: t: gives back a lock that it does not hold"
    );
}

#[test]
fn a_backlog_holds_one_more_and_who_finds_no_room_comes_back_later() {
    let toy = run("[listen.l]\nbacklog = 1\nretry = \"100ms\"\n\
         [task.c]\ncount = 4\ndo = \"connect(l), count(connected)\"\n\
         [task.s]\nstart = \"250ms\"\ndo = \"loop(4)[ accept(l), count(accepted) ]\"\n");
    // Two fit. The others try at 0, 100 and 300 ms: there is room at the third time.
    assert_eq!(
        when(&toy, "connected"),
        [(0, 0), (0, 1), (300, 2), (300, 3)]
    );
    assert_eq!(toy.counted("l_retries"), 4);
    assert_eq!(toy.counted("accepted"), 4);
    assert!(toy.all_dead());
}

#[test]
fn a_connection_wakes_the_first_or_the_last_who_waits_and_carries_a_value() {
    for (wake, order) in [("fifo", [0, 1, 2]), ("lifo", [2, 1, 0])] {
        let toy = run(&format!(
            "[listen.l]\nwake = \"{wake}\"\n\
             [task.s]\ncount = 3\ndo = \"accept(l), count(sum, got), run(1us)\"\n\
             [task.c]\ncount = 3\nstart = \"1ms\"\ndo = \"connect(l, self + 10)\"\n"
        ));
        let who: Vec<u32> = when(&toy, "sum")
            .into_iter()
            .map(|(_, task)| task)
            .collect();
        assert_eq!(who, order, "{wake}");
        assert_eq!(toy.counted("sum"), 10 + 11 + 12);
    }
}

#[test]
fn a_message_carries_the_senders_index_or_what_it_says() {
    let toy = run("[chan.c]\nkind = \"queue\"\n\
         [task.w]\ncount = 3\ndo = \"send(c), send(c, 8, 100 + self)\"\n\
         [task.r]\ndo = \"loop(6)[ recv(c), count(sum, got) ]\"\n");
    assert_eq!(toy.counted("sum"), 3 + 303);
}

#[test]
fn a_span_with_a_key_may_end_in_another_task() {
    let toy = run("[chan.c]\nkind = \"queue\"\n\
         [task.w]\ndo = \"for(i, 3)[ span_begin(request, i), send(c, 8, i), run(1ms) ]\"\n\
         [task.r]\ndo = \"loop(3)[ recv(c), let i = got, run(500us), span_end(request, i) ]\"\n");
    let mut found = lengths(&toy, "request");
    found.sort_unstable();
    // One CPU: the writer runs 3 ms on end, then the reader, half a millisecond for each.
    assert_eq!(found, [2500, 3000, 3500]);
    let text = "[workload]\nname = \"t\"\n[task.t]\ndo = \"span_begin(s, 1), span_end(s, 2)\"\n";
    let error = Toy::new(text, 1).run().unwrap_err().to_string();
    assert_eq!(
        error,
        "test.toml:4: t: `s, 2` ends without a `span_begin(s, 2)` before it"
    );
}

#[test]
fn periodic_requests_come_on_their_grid_and_their_latency_counts_from_there() {
    let toy = run("stop = \"arrival:page\"\n[chan.c]\nkind = \"queue\"\n\
         [arrival.page]\nkind = \"periodic\"\nrate = 100\nstart = \"5ms\"\nlimit = 3\nsend = \
         \"c\"\n\
         [task.s]\ndo = \"loop(inf)[ recv(c), count(served), run(25ms), done(page) ]\"\n");
    assert_eq!(when(&toy, "served"), [(5, 0), (30, 0), (55, 0)]);
    // At 5, 15 and 25 ms; done at 30, 55 and 80.
    assert_eq!(lengths(&toy, "page"), [25_000, 40_000, 55_000]);
    assert_eq!(
        toy.now,
        SimTime::ZERO + Nanos::from_millis(80),
        "the last one ends the run"
    );
}

#[test]
fn a_queue_that_still_grows_is_named_with_its_takers_and_their_deadlines() {
    let growing = |kind: &str, every: &str| {
        let mut toy = run(&format!(
            "stop = \"duration:2s\"\n[chan.key]\nkind = \"{kind}\"\ncount = 2\n\
             [deadline.d]\nslack = \"5ms\"\n\
             [irq.i]\nevery = \"{every}\"\nsend = \"key[1]\"\n\
             [task.other]\ndo = \"suspend\"\n\
             [task.t]\ndo = \"loop(inf)[ recv(key[1]), release(d), run(1ms), complete(d) ]\"\n"
        ));
        toy.work.growing(toy.now)
    };
    let grown = [model::GrowingQueue {
        name: "key[1]".to_owned(),
        takers: vec![1],
        deadlines: vec![(1, 0)],
    }];
    for kind in ["queue", "pipe"] {
        assert_eq!(growing(kind, "800us"), grown, "{kind}");
        assert_eq!(growing(kind, "2ms"), [], "{kind}");
    }
    // A full pipe takes no more.
    assert_eq!(growing("pipe", "200us"), []);
}

#[test]
fn poisson_requests_have_the_mean_gap_of_their_rate() {
    let toy = run("stop = \"arrival:a\"\n[chan.c]\nkind = \"queue\"\n\
         [arrival.a]\nkind = \"poisson\"\nrate = 1000\nlimit = 10000\nsend = \"c\"\n\
         [task.s]\ndo = \"loop(inf)[ recv(c), done(a) ]\"\n");
    // The sum of 10,000 gaps of 1 ms has a deviation of 100 ms.
    let end = toy.now.as_nanos() / 1_000_000;
    assert!((9_500..=10_500).contains(&end), "{end}");
    assert!(lengths(&toy, "a").iter().all(|&us| us == 0));
}

#[test]
fn users_wait_for_their_answer_and_think() {
    // One server of 10 ms, three users who think 5 ms: the server is busy for ever after.
    let toy = run("stop = \"arrival:a\"\n[listen.l]\n\
         [arrival.a]\nkind = \"closed\"\nusers = 3\nthink = \"5ms\"\nlimit = 30\nconnect = \"l\"\n\
         [task.s]\ndo = \"loop(inf)[ accept(l), run(10ms), done(a) ]\"\n");
    assert_eq!(toy.now, SimTime::ZERO + Nanos::from_millis(5 + 30 * 10));
    // N = X (R + Z): in the steady state each cycle of 30 ms has 5 ms of thinking.
    assert!(lengths(&toy, "a").iter().skip(3).all(|&us| us == 25_000));
    assert_eq!(lengths(&toy, "a").len(), 30);
}

#[test]
fn requests_that_find_no_room_are_lost_or_come_again_and_are_counted() {
    let lost = run(
        "stop = \"arrival:a\"\n[chan.c]\nkind = \"queue\"\ncap = \"1msg\"\n\
         [arrival.a]\nkind = \"periodic\"\nevery = \"1ms\"\nlimit = 10\nsend = \"c\"\n\
         [task.s]\ndo = \"loop(inf)[ recv(c), run(3500us), done(a) ]\"\n",
    );
    let done = lengths(&lost, "a").len() as u64;
    assert_eq!(done + lost.counted("a_lost"), 10);
    assert!(done >= 3, "{done}");
    let again = run(
        "stop = \"arrival:a\"\n[listen.l]\nbacklog = 0\nretry = \"20ms\"\n\
         [arrival.a]\nkind = \"periodic\"\nevery = \"1ms\"\nlimit = 10\nconnect = \"l\"\n\
         [task.s]\ndo = \"loop(inf)[ accept(l), run(3500us), done(a) ]\"\n",
    );
    assert_eq!(lengths(&again, "a").len(), 10, "nobody gives up");
    assert!(
        again.counted("a_retries") >= 6,
        "{}",
        again.counted("a_retries")
    );
    assert!(lengths(&again, "a").iter().any(|&us| us > 20_000));
}

#[test]
fn a_request_is_done_once() {
    let text = "[workload]\nname = \"t\"\n[chan.c]\nkind = \"queue\"\n[arrival.a]\n\
                kind = \"periodic\"\nevery = \"1ms\"\nsend = \"c\"\n\
                [task.s]\ndo = \"recv(c), done(a), done(a)\"\n";
    let error = Toy::new(text, 1).run().unwrap_err().to_string();
    assert_eq!(error, "test.toml:10: s: request 0 of `a` is not under way");
}

#[test]
fn what_nobody_was_told_of_is_said_at_the_end() {
    let text = "[workload]\nname = \"t\"\nstop = \"duration:10ms\"\n[chan.c]\nkind = \"queue\"\n\
                cap = \"2msg\"\n[arrival.a]\nkind = \"periodic\"\nevery = \"1ms\"\nsend = \"c\"\n\
                [task.s]\ndo = \"run(1s)\"\n";
    let mut toy = Toy::new(text, 1);
    toy.run().unwrap();
    // The toy looks at its clock again only after a second.
    let note = toy.work.notes().join("\n");
    assert!(note.starts_with("arrival a: of "), "{note}");
    assert!(
        note.contains("0 are done") && note.contains("2 under way"),
        "{note}"
    );
}

/// Clients, servers and locks in a random order, all of which come to their end.
#[test]
fn random_services_serve_every_request_and_hold_no_lock_at_the_end() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed, 0xdef);
        let below = |rng: &mut Rng, bound| rng.below(bound);
        let (workers, users) = (1 + below(&mut rng, 6), 1 + below(&mut rng, 12));
        let (keys, limit) = (2 + below(&mut rng, 5), 5 + below(&mut rng, 80));
        let backlog = below(&mut rng, 4);
        let handoff = ["fifo", "barge"][below(&mut rng, 2) as usize];
        let wake = ["fifo", "lifo"][below(&mut rng, 2) as usize];
        let text = format!(
            "[workload]\nname = \"random\"\nstop = \"arrival:a\"\n\
             [listen.l]\nbacklog = {backlog}\nretry = \"3ms\"\nwake = \"{wake}\"\n\
             [lock.row]\nkind = \"keyed\"\nkeys = {keys}\nhandoff = \"{handoff}\"\n\
             [lock.rw]\nkind = \"rw\"\nhandoff = \"{handoff}\"\n[sem.s]\nvalue = 2\n\
             [arrival.a]\nkind = \"closed\"\nusers = {users}\nthink = \"exp(1ms)\"\n\
             limit = {limit}\nconnect = \"l\"\ncost = \"2us\"\n\
             [task.w]\ncount = {workers}\n\
             do = \"loop(inf)[ accept(l), let id = got, let ok = 0, while(not ok)[ ok = 1, \
                    lock(row[randkey(row)]), run(exp(20us)), if(rand(2))[ sleep(exp(50us)) ], \
                    lock(row[randkey(row)]) else [ ok = 0, count(victims) ], \
                    run(exp(20us)), unlock_all(row) ], \
                    choose(3: [ lock_shared(rw), sleep(10us), unlock(rw) ], \
                           1: [ lock(rw), sleep(10us), unlock(rw) ]), \
                    sem_wait(s), sleep(5us), sem_post(s), done(a, id), count(served) ]\"\n"
        );
        let mut toy = Toy::new(&text, seed);
        toy.run()
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let waiting: Vec<_> = (0..toy.born).filter_map(|t| deadlock(&toy, t)).collect();
        assert_eq!(
            lengths(&toy, "a").len() as u64,
            limit,
            "seed {seed}: waiting for {waiting:?}\n{text}"
        );
    }
}
