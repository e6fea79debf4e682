//! The shipped workloads run to their end under every policy, and what they do is exact: messages,
//! forks, commits, requests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use model::{Event, EventKind, EventMask, Header, MachineSpec, Nanos, PolicySpec, Sink};
use model::{SimTime, Summary};
use stats::Conservation;
use traces::Tee;
use workload::{RunSpec, Workload};

/// Sums of counters by name, ends of spans by name, and tasks by group.
#[derive(Default)]
struct Sums {
    header: Option<Header>,
    counted: BTreeMap<String, u64>,
    spans: BTreeMap<String, Vec<u64>>,
    born: BTreeMap<String, u64>,
    exited: u64,
}

impl Sink for Sums {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        let header = self.header.as_ref().expect("a header comes first");
        for event in events {
            let index = (event.words().a & 0xffff_ffff) as usize;
            match event.kind {
                EventKind::Count => {
                    *self
                        .counted
                        .entry(header.counters[index].clone())
                        .or_default() += event.words().b;
                }
                EventKind::SpanEnd => {
                    let lengths = self.spans.entry(header.spans[index].clone()).or_default();
                    lengths.push(event.words().b);
                }
                EventKind::New => {
                    *self
                        .born
                        .entry(header.groups[index].name.clone())
                        .or_default() += 1;
                }
                EventKind::Exit => self.exited += 1,
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

impl Sums {
    fn of(&self, name: &str) -> u64 {
        self.counted.get(name).copied().unwrap_or(0)
    }

    fn spans(&self, name: &str) -> &[u64] {
        self.spans.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Runs `workload` to its end under each shipped policy and looks at what it did.
fn under_every_policy(
    workload: &str,
    scale: &[(&str, i64)],
    machine: impl Fn(&mut MachineSpec),
    look: impl Fn(&str, &Sums, &Summary),
) {
    let file = format!("workloads/{workload}.toml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&file);
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let scale: Vec<_> = (scale.iter())
        .map(|&(name, value)| (name.to_owned(), value))
        .collect();
    let workload = Workload::parse_with(&text, &file, &scale);
    let workload = Arc::new(workload.unwrap_or_else(|error| panic!("{error}")));
    for policy in policies::ALL {
        let mut spec = RunSpec {
            policy: PolicySpec::of_object(policy.name, policy.object.into()),
            machine: workload.machine.clone(),
            seed: workload.seed,
            workload: Arc::clone(&workload),
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: Some(Nanos::from_secs(3_000)),
        };
        machine(&mut spec.machine);
        let (mut sums, mut conservation) = (Sums::default(), Conservation::new());
        let summary = sim::run(&spec, &mut Tee::new(vec![&mut sums, &mut conservation]));
        let summary = summary.unwrap_or_else(|error| panic!("{}: {error}", policy.name));
        let name = policy.name;
        assert!(!summary.exit.kind.is_error(), "{name}: {:?}", summary.exit);
        assert_eq!(conservation.check(&summary), Ok(()), "{name}");
        let early = summary
            .notes
            .iter()
            .find(|note| note.contains("ends early"));
        assert_eq!(early, None, "{name}");
        assert!(
            summary.end < SimTime::ZERO + Nanos::from_secs(3_000),
            "{name}"
        );
        look(name, &sums, &summary);
    }
}

const fn as_shipped(_: &mut MachineSpec) {}

#[test]
fn hackbench_sends_forty_thousand_messages_a_group_and_receives_them() {
    let scale = [("groups", 1), ("loops", 100)];
    under_every_policy("hackbench", &scale, as_shipped, |policy, sums, _| {
        assert_eq!(
            (sums.of("sent"), sums.of("received")),
            (40_000, 40_000),
            "{policy}"
        );
        assert_eq!(
            (sums.born["sender"], sums.born["receiver"]),
            (20, 20),
            "{policy}"
        );
        assert_eq!(sums.exited, 40, "{policy}");
    });
}

#[test]
fn chat_delivers_nineteen_copies_of_each_message() {
    let scale = [("rooms", 2), ("msgs", 10)];
    under_every_policy("chat", &scale, as_shipped, |policy, sums, _| {
        assert_eq!(
            (sums.of("sent"), sums.of("delivered")),
            (400, 7_600),
            "{policy}"
        );
        assert_eq!(sums.exited, 160, "{policy}");
    });
}

#[test]
fn make_forks_three_processes_a_file_and_links_once() {
    let scale = [("jobs", 4), ("files", 40)];
    under_every_policy("make", &scale, as_shipped, |policy, sums, summary| {
        assert_eq!(sums.of("compiled"), 40, "{policy}");
        let born = ["make", "job", "cc", "as", "ld"].map(|group| sums.born[group]);
        assert_eq!(born, [1, 40, 40, 40, 1], "{policy}");
        assert_eq!(sums.exited, 122, "{policy}");
        // The critical path: no build is shorter than its CPU time on four CPUs.
        let work: Nanos = summary.tasks.iter().map(|task| task.run).sum();
        assert!(sums.spans("build")[0] >= work.get() / 4, "{policy}");
    });
}

#[test]
fn oltp_commits_every_transaction_and_rolls_back_no_other() {
    let scale = [("clients", 8), ("transactions", 200), ("rows", 2_000)];
    let mut rolled_back = 0;
    let seen = std::cell::RefCell::new(&mut rolled_back);
    under_every_policy("oltp", &scale, as_shipped, |policy, sums, summary| {
        assert_eq!(
            (sums.of("committed"), sums.of("commits")),
            (200, 200),
            "{policy}"
        );
        assert_eq!(sums.of("begun_again"), sums.of("rolled_back"), "{policy}");
        assert_eq!(sums.spans("transaction").len(), 200, "{policy}");
        // 19 queries each, and up to 18 of each that is begun again.
        let extra = sums.of("queries") - 200 * 19;
        assert!(extra <= sums.of("rolled_back") * 18, "{policy}: {extra}");
        assert!(extra >= sums.of("rolled_back") * 16, "{policy}: {extra}");
        // A commit waits for a write of the log, and one write may serve several.
        let writes = sums.of("log_writes");
        assert!((200 / 8..=200).contains(&writes), "{policy}: {writes}");
        // Closed loop: throughput times latency is the number of clients, but for the ends.
        let busy: u64 = sums.spans("transaction").iter().sum();
        let clients = busy as f64 / summary.end.as_nanos() as f64;
        assert!((7.0..=8.0).contains(&clients), "{policy}: {clients}");
        **seen.borrow_mut() += sums.of("rolled_back");
    });
    assert!(
        rolled_back > 0,
        "somewhere two transactions wait for each other"
    );
}

#[test]
fn web_answers_every_request_once_and_keeps_littles_law() {
    let scale = [("users", 60), ("requests", 600), ("workers", 20)];
    under_every_policy("web", &scale, as_shipped, |policy, sums, summary| {
        assert_eq!(
            (sums.of("answered"), sums.of("served")),
            (600, 600),
            "{policy}"
        );
        assert_eq!(
            sums.of("http_retries"),
            0,
            "{policy}: 512 connections may wait"
        );
        let lengths = sums.spans("request");
        assert_eq!(lengths.len(), 600, "{policy}");
        let total: u64 = lengths.iter().sum();
        let users = total as f64 / summary.end.as_nanos() as f64;
        assert!((50.0..=60.0).contains(&users), "{policy}: {users}");
    });
}

#[test]
fn web_clients_that_find_no_room_come_back_after_three_seconds() {
    let scale = [("users", 600), ("requests", 700), ("workers", 2)];
    under_every_policy("web", &scale, as_shipped, |policy, sums, _| {
        assert_eq!(sums.of("answered"), 700, "{policy}");
        assert!(sums.of("http_retries") > 0, "{policy}");
        let longest = sums.spans("request").iter().max();
        assert!(
            longest.is_some_and(|&ns| ns > 3_000_000_000),
            "{policy}: {longest:?}"
        );
    });
}
