//! What tasks share: channels, locks, barriers.

use model::EventKind;

use super::toy::{Toy, run};
use crate::work::*;

/// Messages of `bytes` that a channel takes before its writer blocks.
fn capacity(kind: &str, bytes: u64) -> u64 {
    let toy = run(&format!(
        "[chan.c]\nkind = \"{kind}\"\nmsg = {bytes}\n\
         [task.w]\ndo = \"loop(100000)[ send(c), count(sent) ]\"\n"
    ));
    toy.counted("sent")
}

#[test]
fn a_channel_takes_as_many_messages_as_the_kernel_does() {
    assert_eq!([capacity("unix", 100), capacity("unix", 1024)], [278, 93]);
    assert_eq!([capacity("pipe", 100), capacity("pipe", 1024)], [640, 64]);
    assert_eq!([capacity("pipe", 1), capacity("pipe", 4096)], [65_536, 16]);
    assert_eq!(capacity("tcp", 100), 39_482);
}

#[test]
fn a_reader_is_woken_once_and_drains_what_is_queued_without_sleeping() {
    let toy = run("[chan.c]\nkind = \"unix\"\n\
                   [task.r]\ndo = \"loop(5)[ recv(c), count(got) ]\"\n\
                   [task.w]\ndo = \"run(1ms), loop(5)[ send(c) ]\"\n");
    assert_eq!(toy.counted("got"), 5);
    assert_eq!(
        toy.times(|a| matches!(a, Action::Wake { sync: true, .. })),
        [(1000, 1)]
    );
    assert_eq!(toy.times(|a| *a == Action::Block), [(0, 0)]);
}

#[test]
fn only_pipes_and_sockets_are_woken_synchronously() {
    for (kind, is_sync) in [
        ("unix", true),
        ("pipe", true),
        ("tcp", true),
        ("queue", false),
    ] {
        let toy = run(&format!(
            "[chan.c]\nkind = \"{kind}\"\n[task.r]\ndo = \"recv(c)\"\n[task.w]\ndo = \"send(c)\"\n"
        ));
        let wakes = toy.times(|a| matches!(a, Action::Wake { sync, .. } if *sync == is_sync));
        assert_eq!(wakes, [(0, 1)], "{kind}");
    }
}

/// How many messages a reader takes from a full channel before its sleeping writer is woken.
fn taken_before_the_writer_wakes(kind: &str) -> usize {
    let toy = run(&format!(
        "[chan.c]\nkind = \"{kind}\"\n\
         [task.w]\ndo = \"loop(1000000)[ send(c) ]\"\n\
         [task.r]\ndo = \"run(1us), loop(inf)[ recv(c), run(1us) ]\"\n"
    ));
    let is_wake = |(_, _, action): &&(_, _, Action)| matches!(action, Action::Wake { .. });
    let first = toy
        .actions
        .iter()
        .find(is_wake)
        .expect("the writer is woken");
    assert_eq!(first.1, TaskId(1), "the reader wakes it");
    usize::try_from(first.0.as_nanos() / 1_000).unwrap()
}

#[test]
fn a_writer_is_woken_when_the_kernel_would_wake_it() {
    // A quarter of 212,992 bytes is 69 messages of 768.
    assert_eq!(taken_before_the_writer_wakes("unix"), 278 - 69);
    // A page holds 40 messages of 100 bytes.
    assert_eq!(taken_before_the_writer_wakes("pipe"), 40);
    // Two thirds of 39,482 messages, rounded down.
    assert_eq!(taken_before_the_writer_wakes("tcp"), 39_482 - 26_321);
}

#[test]
fn a_channel_with_a_cap_of_messages_holds_that_many() {
    let toy = run("[chan.c]\nkind = \"queue\"\ncap = \"3msg\"\n\
                   [task.w]\ndo = \"loop(10)[ send(c), count(sent) ]\"\n");
    assert_eq!(toy.counted("sent"), 3);
    assert_eq!(
        toy.work.waits_for(TaskId(0)).as_deref(),
        Some("room in c[0]")
    );
}

#[test]
fn a_fifo_lock_is_handed_over_in_the_order_of_arrival() {
    let toy = run("[lock.l]\n[task.t]\ncount = 3\n\
                   do = \"lock(l), sleep(1ms), count(held), unlock(l), lock(l), unlock(l)\"\n");
    let held: Vec<_> = (toy.events.iter())
        .filter(|(_, _, event)| event.kind == EventKind::Count)
        .map(|(time, task, _)| (time.as_nanos() / 1_000_000, task.0))
        .collect();
    assert_eq!(held, [(1, 0), (2, 1), (3, 2)]);
    assert!(toy.all_dead());
}

#[test]
fn a_barging_lock_goes_to_whoever_runs_first() {
    let turns = |handoff: &str| {
        let toy = run(&format!(
            "[lock.l]\nhandoff = \"{handoff}\"\n[task.t]\ncount = 2\n\
             do = \"loop(2)[ lock(l), sleep(1ms), run(1us), unlock(l) ], exit\"\n"
        ));
        toy.times(|a| matches!(a, Action::Run(_)))
            .into_iter()
            .map(|(_, task)| task)
            .collect()
    };
    let (fifo, barge): (Vec<u32>, Vec<u32>) = (turns("fifo"), turns("barge"));
    assert_eq!(fifo, [0, 1, 0, 1]);
    assert_eq!(
        barge,
        [0, 0, 1, 1],
        "the unlocker still runs and takes it again"
    );
}

#[test]
fn a_barrier_opens_for_all_when_the_last_party_comes() {
    let toy = run("[barrier.b]\nparties = 3\n[task.t]\ncount = 3\n\
                   do = \"sleep(1ms * (self + 1)), barrier(b), count(through), barrier(b)\"\n");
    let through = toy
        .events
        .iter()
        .map(|(time, _, _)| time.as_nanos() / 1_000_000);
    assert_eq!(through.collect::<Vec<_>>(), [3, 3, 3]);
    assert!(toy.all_dead(), "the barrier closes and opens again");
}

#[test]
fn a_resume_that_comes_first_is_remembered_once() {
    let toy = run(
        "[task.t]\ndo = \"sleep(1ms), suspend, count(first), suspend, count(second)\"\n\
                   [task.u]\ndo = \"resume(t), resume(t)\"\n",
    );
    assert_eq!((toy.counted("first"), toy.counted("second")), (1, 0));
    assert_eq!(
        toy.work.waits_for(TaskId(0)).as_deref(),
        Some("somebody to resume it")
    );
}

/// A workload of random pairs over random channels, and how many messages they exchange.
fn random_workload(seed: u64) -> (String, u64) {
    let mut rng = Rng::new(seed, 0);
    let mut text = "[workload]\nname = \"random\"\n[lock.l]\nhandoff = \"HANDOFF\"\n"
        .replace("HANDOFF", ["fifo", "barge"][rng.below(2) as usize]);
    let mut total = 0;
    for pair in 0..1 + rng.below(5) {
        let kind = ["unix", "pipe", "tcp", "queue"][rng.below(4) as usize];
        let cap = ["", "cap = \"1msg\"", "cap = \"7msg\"", "cap = \"300B\""][rng.below(4) as usize];
        let (writers, readers) = (1 + rng.below(3), 1 + rng.below(3));
        let each = rng.below(300) * readers;
        let (pace, size) = (rng.below(3), 1 + rng.below(3000));
        total += writers * each;
        text += &format!(
            "[chan.c{pair}]\nkind = \"{kind}\"\nmsg = {size}\n{cap}\n\
             [task.w{pair}]\ncount = {writers}\nstart = \"uniform(0ns, 1ms)\"\n\
             do = \"loop({each})[ run(exp({pace}us)), send(c{pair}), count(sent), \
                    if(rand(20) == 0)[ lock(l), sleep(exp(50us)), unlock(l) ] ]\"\n\
             [task.r{pair}]\ncount = {readers}\n\
             do = \"loop({writers} * {each} / {readers})[ recv(c{pair}), count(got), \
                    choose(9: run(exp(1us)), 1: yield, 1: sleep(exp(20us))) ]\"\n"
        );
    }
    (text, total)
}

#[test]
fn random_pairs_lose_no_message_and_come_to_their_end() {
    for seed in 0..200 {
        let (text, total) = random_workload(seed);
        let mut toy = Toy::new(&text, seed);
        toy.run()
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let waiting: Vec<_> = (0..toy.born)
            .filter_map(|t| toy.work.waits_for(TaskId(t)))
            .collect();
        assert!(
            toy.all_dead(),
            "seed {seed}: still waiting for {waiting:?}\n{text}"
        );
        assert_eq!(
            (toy.counted("sent"), toy.counted("got")),
            (total, total),
            "seed {seed}"
        );
    }
}
