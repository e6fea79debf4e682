//! Makes trials for as long as there is time: `make soak HOURS=8 PART=1/2`.
//!
//! usage: soak HOURS PART/PARTS FILE
//!
//! Part K of N makes the trials whose number is K - 1 modulo N, so that several computers share
//! them. FILE holds how far it came, the hash of each thousand trials, and what was found. The
//! same command goes on there. Status 1: something is broken.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, panic, process, thread};

use model::Fnv1a;
use runslice_tests::soak::{Kind, trial};
use runslice_tests::usage::memory;

/// Trials that have a hash together, and after which the file is written.
const BLOCK: u64 = 1_000;

/// What the command line asks for.
struct Asked {
    time: Duration,
    part: u64,
    parts: u64,
    file: String,
}

fn main() {
    let Some(asked) = asked() else {
        eprintln!("usage: soak HOURS PART/PARTS FILE, such as: soak 0.5 1/1 soak.txt");
        process::exit(2);
    };
    // What is broken stands in the file; a trial that panics is one of several.
    panic::set_hook(Box::new(|_| {}));
    let mut broken = 0;
    let mut kinds = BTreeMap::new();
    let (begin, mut block) = (Instant::now(), next_block(&asked.file));
    let mut first = None;
    while begin.elapsed() < asked.time {
        let made = make(&asked, block);
        let mut lines = String::new();
        for (number, message) in &made.broken {
            lines += &format!("broken {number} {:?}: {message:?}\n", Kind::of(*number));
        }
        lines += &format!("block {block} {:016x}\n", made.hash);
        append(&asked.file, &lines);
        eprint!("{lines}");
        broken += made.broken.len();
        for number in made.numbers {
            *kinds
                .entry(format!("{:?}", Kind::of(number)))
                .or_insert(0_u64) += 1;
        }
        first.get_or_insert_with(|| memory("VmRSS:"));
        block += 1;
    }
    println!(
        "{broken} broken in {:.0} s: {kinds:?}",
        begin.elapsed().as_secs_f64()
    );
    if let Some(first) = first {
        let [first, last] = [first, memory("VmRSS:")].map(|bytes| bytes >> 10);
        println!("memory after the first block {first} kB, at the end {last} kB");
    }
    process::exit(i32::from(broken > 0));
}

fn asked() -> Option<Asked> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [hours, part, file] = &*words else {
        return None;
    };
    let (part, parts) = part.split_once('/')?;
    let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
    let hours: f64 = hours.parse().ok()?;
    let time = Duration::try_from_secs_f64(hours * 3600.0).ok()?;
    (1..=parts).contains(&part).then(|| Asked {
        time,
        part,
        parts,
        file: file.clone(),
    })
}

/// The block after the last one in the file.
fn next_block(file: &str) -> u64 {
    if !Path::new(file).exists() {
        return 0;
    }
    let text = fs::read_to_string(file).unwrap_or_else(|error| give_up(file, &error));
    let blocks = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("block ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    });
    blocks.max().map_or(0, |last| last + 1)
}

fn append(file: &str, lines: &str) {
    let to = OpenOptions::new().create(true).append(true).open(file);
    let written = to.and_then(|mut to| to.write_all(lines.as_bytes()));
    written.unwrap_or_else(|error| give_up(file, &error));
}

fn give_up(file: &str, error: &dyn std::error::Error) -> ! {
    eprintln!("soak: {file}: {error}");
    process::exit(2)
}

/// What came of a block of trials.
struct Made {
    numbers: Vec<u64>,
    hash: u64,
    broken: Vec<(u64, String)>,
}

/// Makes a block on all CPUs. The hash does not depend on who made which trial.
fn make(asked: &Asked, block: u64) -> Made {
    let numbers: Vec<u64> = (0..BLOCK)
        .map(|at| (block * BLOCK + at) * asked.parts + asked.part - 1)
        .collect();
    let (next, results) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(number) = numbers.get(at) else {
                break;
            };
            let result = trial(*number);
            results
                .lock()
                .expect("no thread panics")
                .insert(*number, result);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (mut hash, mut broken) = (Fnv1a::new(), Vec::new());
    for (number, result) in results.into_inner().expect("no thread panics") {
        match result {
            Ok(value) => hash.write(&value.to_le_bytes()),
            Err(message) => broken.push((number, message)),
        }
    }
    Made {
        numbers,
        hash: hash.value(),
        broken,
    }
}
