//! What reading the statistics of a large machine costs: `make bench`.
//!
//! 512 CPUs with three domains each, version 17. The aims: decoding takes 1 ms at the most, and
//! what a recording at 1 Hz does besides the kernel's own printing 0.1 % of a CPU, which is 1 ms,
//! too.
//! Asserts nothing: a shared machine may be half as fast as yesterday.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read as _, Seek as _, Write as _};

use model::Nanos;
use stats::schedstat::{Layout, SchedstatReader, Snapshot};

const CPUS: u32 = 512;
const ROUNDS: u32 = 2_000;

/// CPU time that this thread has used, from the kernel's own scheduler statistics. They are brought
/// up to date at ticks, so that only the sum over many calls tells something.
fn cpu_time() -> Nanos {
    let path = "/proc/thread-self/schedstat";
    let text = fs::read_to_string(path).expect("a kernel with CONFIG_SCHED_INFO");
    let ran = text.split(' ').next().and_then(|field| field.parse().ok());
    Nanos::new(ran.expect("the first field is the time on a CPU in nanoseconds"))
}

/// A machine that has been up for a while: numbers of many digits.
fn file() -> Vec<u8> {
    let layout = Layout::of(17).expect("version 17 has a table");
    let mut snapshot = Snapshot::new(layout, 4_295_814_751);
    let numbers = |count: usize, by: u64| -> Vec<u64> {
        (0..count as u64).map(|n| (n + 1) * 7_919 * by).collect()
    };
    for cpu in 0..CPUS {
        let mut counters = numbers(layout.cpu.len(), 1_000_003);
        counters[1] = 0;
        snapshot.push_cpu(cpu, &counters);
        for (level, name) in ["SMT", "MC", "NUMA"].into_iter().enumerate() {
            let mask = ["ffffffff"; 16].join(",");
            let counters = numbers(layout.domain.len(), 1 + u64::from(cpu));
            snapshot.push_domain(level as u32, name, &mask, &counters);
        }
    }
    let mut text = Vec::new();
    snapshot
        .write(&mut text)
        .expect("a vector takes everything");
    text
}

/// The mean CPU time of a call.
fn measure(mut call: impl FnMut()) -> Nanos {
    call();
    let start = cpu_time();
    (0..ROUNDS).for_each(|_| call());
    Nanos::new((cpu_time() - start).get() / u64::from(ROUNDS))
}

fn main() {
    let text = file();
    println!(
        "version 17, {CPUS} CPUs with 3 domains: {} bytes",
        text.len()
    );
    let mut snapshot = Snapshot::default();
    let decode = measure(|| {
        let mut reader = SchedstatReader::new(black_box(text.as_slice()));
        assert!(
            reader
                .read_into(&mut snapshot)
                .expect("what was written is read")
        );
    });
    println!("decode: {decode}, aim 1 ms, mean of {ROUNDS}");

    let folder = std::env::temp_dir().join(format!("runslice-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    fs::write(folder.join("from"), &text).expect("it can be written");
    let mut from = File::open(folder.join("from")).expect("it was just written");
    let mut to = File::create(folder.join("to")).expect("it can be written");
    let mut buffer = Vec::new();
    let record = measure(|| {
        buffer.clear();
        from.rewind().expect("a file");
        from.read_to_end(&mut buffer).expect("a file");
        to.rewind().expect("a file");
        to.write_all(&buffer).expect("a file");
    });
    fs::remove_dir_all(folder).expect("it is ours");
    let share = |time: Nanos| time.get() as f64 / 1e9 * 100.0;
    println!(
        "record at 1 Hz: {record}, {:.4} % of a CPU, aim 0.1 %",
        share(record)
    );
}
