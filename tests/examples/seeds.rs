//! Writes what a fuzz target begins with into a folder: `seeds TARGET FOLDER`.
//!
//! Nothing of it is kept in the repository: objects, workloads and events come from what this
//! very build ships and simulates.

use std::path::Path;
use std::sync::Arc;
use std::{env, fs, process};

use model::{Nanos, Rng};
use runslice_tests::policy::{self, TESTED};
use runslice_tests::run::Run;
use runslice_tests::scripted;
use sim::Simulation;
use stats::schedstat::{Bookkeeper, Bookkeeping, Layout, Snapshot, VERSIONS};
use traces::JsonLines;

/// Names of shipped policies whose objects are small enough to learn from.
const SHIPPED: [&str; 3] = ["fifo", "mlfq", "elsc"];

/// A file: its name, and what is in it.
type Seed = (String, Vec<u8>);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [target, folder] = &*arguments else {
        eprintln!("usage: seeds TARGET FOLDER");
        process::exit(2);
    };
    let seeds = match &**target {
        "object" => objects(),
        "program" | "door" => noise(),
        "host" => (0..100)
            .map(|seed| (format!("script{seed}"), scripted::random(seed)))
            .collect(),
        "text" => texts(),
        "schedstat" => statistics(),
        other => {
            eprintln!(
                "seeds: no target is called `{other}`; there are object, program, host, text, \
                 schedstat, door"
            );
            process::exit(2);
        }
    };
    let folder = Path::new(folder);
    let written = fs::create_dir_all(folder).and_then(|()| {
        seeds
            .iter()
            .try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
    });
    if let Err(error) = written {
        eprintln!("seeds: cannot write into {}: {error}", folder.display());
        process::exit(1);
    }
}

fn objects() -> Vec<Seed> {
    let object = |name: &str| {
        let object: Arc<[u8]> = policy::object(name).expect("it is built in");
        (format!("{name}.bpf.o"), object.to_vec())
    };
    let tested = TESTED.iter().map(|(name, _)| *name);
    tested.chain(SHIPPED).map(object).collect()
}

/// Random bytes, so that the first programs are not all of one kind.
fn noise() -> Vec<Seed> {
    let file = |seed| {
        let mut rng = Rng::new(seed, 0xf022);
        let len = 16 + rng.below(700);
        let bytes = (0..len).map(|_| rng.next_u64() as u8).collect();
        (format!("noise{seed}"), bytes)
    };
    (0..200).map(file).collect()
}

/// Every form of text, each behind the letter that tells the target which it is.
fn texts() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut add = |form: char, text: &str| {
        let name = format!("{form}{}", seeds.len());
        seeds.push((name, format!("{form}{text}").into_bytes()));
    };
    for text in [
        include_str!("../../workloads/chat.toml"),
        include_str!("../../workloads/desk.toml"),
        include_str!("../../workloads/hackbench.toml"),
        include_str!("../../workloads/make.toml"),
    ] {
        add('w', text);
    }
    for body in [
        "loop(9)[ run(uniform(1us, 3us)), sleep(exp(2us)), yield ]",
        "n = 3, loop(n)[ send(c), run(n * 2us), if(len(c) > 1)[ recv(c) ] ]",
        "lock(l), run(10us), unlock(l), setnice(self, -3), setaffinity(self, {0-1})",
    ] {
        add('x', body);
    }
    add('c', "0-3,5,1023");
    add('k', "quantum_ns=5000000\nnq=8\ncumulative=true\nx=0xff\n");
    add('s', "1.5ms");
    let mut events = Vec::new();
    let mut lines = JsonLines::new(&mut events);
    let workload = "[task.a]\ncount = 2\ndo = \"loop(4)[ run(2ms), sleep(1ms), yield ]\"\n";
    let run = Run {
        until: Nanos::from_millis(12),
        ..Run::new("mlfq", workload)
    };
    let _ = run.feed(&mut lines);
    lines.close().expect("a vector takes everything");
    add('e', &String::from_utf8(events).expect("JSON"));
    seeds
}

/// A log of each version, one of a simulated run, and the numbers of a task in each form.
fn statistics() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for version in VERSIONS {
        let layout = Layout::of(version).expect("it has a table");
        let mut rng = Rng::new(version.into(), 0x57a7);
        let mut text = b"l".to_vec();
        for timestamp in [1000, 2000] {
            let mut snapshot = Snapshot::new(layout, timestamp);
            for cpu in 0..2 {
                let mut numbers = |count: usize| -> Vec<u64> {
                    (0..count).map(|_| timestamp * (1 + rng.below(9))).collect()
                };
                snapshot.push_cpu(cpu, &numbers(layout.cpu.len()));
                if !layout.domain.is_empty() {
                    snapshot.push_domain(0, "MC", "3", &numbers(layout.domain.len()));
                }
            }
            snapshot.sum_totals();
            snapshot
                .write(&mut text)
                .expect("a vector takes everything");
        }
        seeds.push((format!("version{version}"), text));
    }
    let mut books = Bookkeeper::new(Bookkeeping::V4, b"l".to_vec());
    let run = Run {
        until: Nanos::from_millis(40),
        ..Run::new(
            "o1",
            "[task.a]\ncount = 3\ndo = \"loop(9)[ run(2ms), sleep(1ms) ]\"\n",
        )
    };
    let spec = run.spec();
    let sampled = Simulation::new(&spec).sampled(&mut books, Nanos::from_millis(10));
    sampled.start().expect("a run");
    let text = books.close().expect("a vector takes everything");
    seeds.push(("simulated".to_owned(), text));
    let fields: Vec<String> = (4..=44).map(|field| field.to_string()).collect();
    let stat = format!("t77 (a) b (c) S {}\n", fields.join(" "));
    seeds.push(("stat".to_owned(), stat.into_bytes()));
    seeds.push(("task".to_owned(), b"t1500000 300 7\n".to_vec()));
    seeds
}
