//! How fast long traces are read, in megabytes a second of CPU time, and how much memory that
//! takes. Asserts nothing; compare figures of one run only.
//!
//! A trace is made as it is read. What making it takes is measured alone first, and taken off.
//! `-- BYTES [FORMAT...]` says how long each trace is, 1 GB without it, and which formats are read.

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

/// The generator is that of the tests, where these names are those of the crate.
mod foreign {
    pub(crate) use traces::foreign::{Window, read, record};
}

#[path = "../src/foreign/tests/long.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod long;
#[path = "../src/foreign/tests/messages.rs"]
mod messages;
#[path = "../src/foreign/tests/story.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod story;
#[path = "../src/foreign/tests/trace_files.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod trace_files;
#[path = "../src/foreign/tests/written.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod written;

/// CPU time that this thread has used.
///
/// The kernel brings the figure up to date at its ticks and when it schedules, so it is made to
/// schedule first.
fn cpu_time() -> Duration {
    std::thread::yield_now();
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).expect("a kernel with CONFIG_SCHED_INFO");
    let ran = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(ran.expect("the first field is the time on a CPU in nanoseconds"))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let bytes = words.iter().find_map(|word| word.parse().ok());
    let bytes = bytes.unwrap_or(1_000_000_000);
    let named = |format: &&str| words.iter().any(|word| word == format);
    let all = !long::LONG.iter().any(named);
    println!("format         bytes     records   MB/s  Mrecords/s  memory at most");
    for format in long::LONG.into_iter().filter(|format| all || named(format)) {
        let start = cpu_time();
        let (mut file, _) = long::long(format, bytes);
        let long = io::copy(&mut file, &mut io::sink()).expect("it is made");
        let making = cpu_time() - start;
        let start = cpu_time();
        let (file, records) = long::long(format, bytes);
        let mut events = 0;
        let imported = foreign::read(file, "long", foreign::Window::default(), &mut |more| {
            events += more.len() as u64;
            ControlFlow::Continue(())
        });
        imported.expect("it is a trace");
        let reading = (cpu_time() - start).saturating_sub(making).as_secs_f64();
        println!(
            "{format:<9} {long:>10}  {records:>10}  {:>5.0}  {:>10.2}  {:>10} MiB",
            long as f64 / 1e6 / reading,
            records as f64 / 1e6 / reading,
            long::most_kib() / 1024
        );
    }
}
