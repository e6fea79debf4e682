//! Everything that is read as text: workloads, event files, CPU lists, knobs, spans of time.
#![no_main]

use std::sync::{Arc, LazyLock};

use bpf::{Image, Object};
use libfuzzer_sys::fuzz_target;
use model::{MachineSpec, Nanos, PolicySpec};
use runslice_tests::policy;
use show::figure::{self, Collector};
use stats::{Conservation, Metrics};
use traces::{EventReader, JsonLines, Perfetto, Tee, TraceHash};
use workload::RunSpec;
use workload::{CpuSet, Workload};

static FIFO: LazyLock<Arc<[u8]>> = LazyLock::new(|| policy::object("fifo").expect("shipped"));

static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let object = policy::object("mlfq").expect("shipped");
    let object = Object::parse(&object).expect("a good object");
    object
        .link(&sim::target(&MachineSpec::default()))
        .expect("a good object")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((form, bytes)) = bytes.split_first() else {
        return;
    };
    if *form == b'e' {
        return events(bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match form {
        b'w' => workload(text),
        b'x' => workload(&format!(
            "[workload]\nname = \"x\"\n[chan.c]\nkind = \"queue\"\n[lock.l]\n[task.a]\n\
             do = '''{text}'''\n"
        )),
        b'c' => cpu_set(text),
        b'k' => knobs(text),
        b's' => drop(model::span::parse(text)),
        _ => {}
    }
});

/// Reads a workload, and runs it for a short time if few tasks are in it.
fn workload(text: &str) {
    const MOST_TASKS: u64 = 50;
    let workload = match Workload::parse(text, "text") {
        Ok(workload) => workload,
        Err(error) => return drop(error.to_string()),
    };
    let tasks: u64 = workload
        .groups
        .iter()
        .map(|group| u64::from(group.count))
        .sum();
    if tasks > MOST_TASKS {
        return;
    }
    let spec = RunSpec {
        policy: PolicySpec::of_object("fifo", Arc::clone(&FIFO)),
        workload: Arc::new(workload),
        machine: MachineSpec {
            cpus: 2,
            ..MachineSpec::default()
        },
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(Nanos::from_millis(2)),
    };
    let mut conservation = Conservation::new();
    match sim::run(&spec, &mut conservation) {
        Ok(summary) => conservation
            .check(&summary)
            .unwrap_or_else(|e| panic!("{e}")),
        Err(error) => drop(error.to_string()),
    }
}

/// Reads a file of events into everything that takes events. What was read and written again is
/// read as the same.
fn events(bytes: &[u8]) {
    let mut again = Vec::new();
    let (mut hash, mut metrics) = (TraceHash::new(), Metrics::new());
    let (mut conservation, mut perfetto) = (Conservation::new(), Perfetto::new(std::io::sink()));
    let mut lines = JsonLines::new(&mut again);
    let mut figures = Collector::new(None);
    let sinks: [&mut dyn model::Sink; 6] = [
        &mut hash,
        &mut metrics,
        &mut conservation,
        &mut perfetto,
        &mut figures,
        &mut lines,
    ];
    let mut tee = Tee::new(sinks.into());
    let read = traces::replay(bytes, &mut tee);
    lines.close().expect("a vector takes everything");
    match read {
        Ok(()) => {
            for chart in figures
                .charts()
                .iter()
                .chain(&figure::comparison(&[&figures]))
            {
                let _ = figure::svg(chart, true);
            }
            let mut second = TraceHash::new();
            traces::replay(&*again, &mut second).expect("what was written can be read");
            assert_eq!(hash.value(), second.value());
        }
        Err(error) => drop(error.to_string()),
    }
    if let Ok(reader) = EventReader::new(bytes) {
        assert!(reader.count() <= bytes.len());
    }
}

fn cpu_set(text: &str) {
    if let Some(set) = CpuSet::parse(text) {
        let cpus: Vec<_> = set.iter().collect();
        assert!(cpus.is_sorted());
    }
}

/// Lines of `NAME=VALUE`.
fn knobs(text: &str) {
    let mut image = IMAGE.clone();
    for line in text.lines() {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        if let Err(error) = image.set_global(name, value) {
            let _ = error.to_string();
        }
    }
}
