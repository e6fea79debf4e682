//! The workloads in workloads/.

use model::EventKind;

use super::toy::Toy;
use crate::work::*;

fn shipped(text: &str, scale: &[(&str, i64)]) -> Workload {
    let scale: Vec<_> = scale
        .iter()
        .map(|&(name, value)| (name.to_owned(), value))
        .collect();
    Workload::parse_with(text, "shipped.toml", &scale).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn hackbench_moves_forty_thousand_messages_a_group() {
    let text = include_str!("../../../../../workloads/hackbench.toml");
    let mut toy = Toy::with(shipped(text, &[("groups", 2)]), 1);
    toy.run().unwrap();
    assert_eq!(
        (toy.counted("sent"), toy.counted("received")),
        (80_000, 80_000)
    );
    assert!(toy.all_dead() && toy.born == 80);
}

#[test]
fn chat_takes_turns_and_delivers_nineteen_copies_of_each_message() {
    let text = include_str!("../../../../../workloads/chat.toml");
    let mut toy = Toy::with(shipped(text, &[("rooms", 2), ("msgs", 5)]), 1);
    toy.run().unwrap();
    assert_eq!(
        (toy.counted("sent"), toy.counted("delivered")),
        (2 * 100, 2 * 1900)
    );
    assert!(toy.all_dead() && toy.born == 160);
    // In each room user k sends the messages number k, k + 20, ...
    let group = toy
        .workload
        .groups
        .iter()
        .position(|group| group.name == "client_writer");
    let sent = toy
        .workload
        .counters
        .iter()
        .position(|counter| counter == "sent")
        .unwrap() as u64;
    let writers = &toy.work.groups[group.unwrap()].tasks;
    let index_of = |task| {
        writers
            .iter()
            .position(|&writer| writer == Some(task))
            .unwrap()
    };
    for room in 0..2 {
        let speakers = (toy.events.iter())
            .filter(|(_, _, event)| event.kind == EventKind::Count && event.a == sent)
            .map(|(_, task, _)| index_of(*task))
            .filter(|index| index / 20 == room)
            .map(|index| index % 20);
        assert!(
            speakers.eq((0..100).map(|message| message % 20)),
            "room {room}"
        );
    }
    // Each writer yields once for each time that it drained its queue.
    let yields = toy.times(|action| *action == Action::Yield).len();
    assert!((2 * 100..=2 * 2000).contains(&yields), "{yields}");
}

#[test]
fn make_compiles_every_file_and_then_links() {
    let text = include_str!("../../../../../workloads/make.toml");
    let mut toy = Toy::with(shipped(text, &[("files", 30), ("jobs", 3)]), 1);
    toy.run().unwrap();
    assert_eq!(toy.counted("compiled"), 30);
    assert_eq!(toy.born, 1 + 3 * 30 + 1);
    assert!(toy.all_dead());
    let phases = toy
        .recorded()
        .into_iter()
        .filter(|event| event.0 == EventKind::Phase);
    assert_eq!(phases.map(|event| event.1).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn the_desk_runs_its_ten_seconds_and_reports_its_deadlines() {
    let text = include_str!("../../../../../workloads/desk.toml");
    // Without hogs the machine is free for the rest: only those that the toy serves late miss.
    let mut toy = Toy::with(shipped(text, &[("hogs", 0), ("jobs", 1)]), 1);
    toy.run().unwrap();
    assert!(toy.now >= SimTime::ZERO + Nanos::from_secs(10));
    let served = |deadline: u64| {
        let is_it = |e: &&(EventKind, u64, u64)| e.0 == EventKind::Deadline && e.1 == deadline;
        toy.recorded().iter().filter(is_it).count()
    };
    // One move every 8 ms, whatever the delay: moves queue up.
    assert!((1200..=1250).contains(&served(0)), "{}", served(0));
    assert!(served(1) > 200 && served(2) > 100 && served(3) > 50);
}

#[test]
fn the_ten_traced_scenarios_come_to_their_end() {
    let scenarios = [
        (include_str!("../../../../../workloads/traces/t1.toml"), 2),
        (include_str!("../../../../../workloads/traces/t2.toml"), 2),
        (include_str!("../../../../../workloads/traces/t3.toml"), 3),
        (include_str!("../../../../../workloads/traces/t4.toml"), 2),
        (include_str!("../../../../../workloads/traces/t5.toml"), 3),
        (include_str!("../../../../../workloads/traces/t6.toml"), 2),
        (include_str!("../../../../../workloads/traces/t7.toml"), 3),
        (include_str!("../../../../../workloads/traces/t8.toml"), 3),
        (include_str!("../../../../../workloads/traces/t9.toml"), 3),
        (include_str!("../../../../../workloads/traces/t10.toml"), 3),
    ];
    for (text, tasks) in scenarios {
        let mut toy = Toy::with(shipped(text, &[]), 1);
        toy.run().unwrap();
        assert!(toy.all_dead(), "{}", toy.workload.name);
        assert_eq!(toy.born, tasks, "{}", toy.workload.name);
        assert_eq!(toy.workload.machine.cpus, 2);
    }
}

#[test]
fn the_same_seed_does_the_same_and_another_seed_something_else() {
    let text = include_str!("../../../../../workloads/make.toml");
    let actions = |seed| {
        let mut toy = Toy::with(shipped(text, &[("files", 10)]), seed);
        toy.run().unwrap();
        toy.actions
    };
    assert_eq!(actions(7), actions(7));
    assert_ne!(actions(7), actions(8));
}
