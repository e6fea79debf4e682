//! Traces the tasks of the running kernel.

use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use explain::trace::Tracer;
use live::process;
use live::record::{self, Depth, Others, Recorder};
use model::{Advised, Header, MachineSpec, Nanos, Sink as _};

use crate::exit::UnsupportedError;
use crate::interrupt;
use crate::on_kernel::running;
use crate::on_kernel::session::SessionPaths;

/// Between two looks for a signal.
const PAUSE: Duration = Duration::from_millis(20);

/// Records every event of the scheduler until `length` has passed or a signal comes, and gives
/// them to `tracer`. The events call what runs `load`.
///
/// # Errors
/// When the kernel refuses the tracing programs, which take root.
pub fn record(load: &str, length: Option<Nanos>, tracer: &mut Tracer) -> anyhow::Result<()> {
    if !process::is_root() {
        let way = "tracing the running kernel loads tracing programs, which takes root: try sudo, \
                   or give --sim or --from";
        return Err(UnsupportedError::new(way).into());
    }
    process::catch_signals();
    let policy = SessionPaths::below(Path::new("/")).scheduler();
    let recorder = Recorder::start(Depth::Events, policy.is_some()).map_err(|error| {
        let error = Advised::of(&error).at("the running kernel cannot be traced");
        anyhow::anyhow!(error.or("kernels 6.18 and 7.2 can"))
    })?;
    let before = (record::schedstat(), Instant::now());
    let end = length.map(|length| before.1 + Duration::from_nanos(length.get()));
    while process::signal().is_none() && end.is_none_or(|end| Instant::now() < end) {
        thread::sleep(PAUSE);
    }
    interrupt::keeps_results();
    let hz = record::hz_between(&before.0, &record::schedstat(), before.1.elapsed());
    let recording = recorder.stop()?;
    let lost = recording.totals.lost;
    if lost > 0 {
        let text = format!("runslice: {lost} events were lost: queues and waits have holes");
        writeln!(io::stderr(), "{text}")?;
    }
    let converted = recording.events(&[], Others::ByName);
    let default = MachineSpec::default();
    tracer.begin(&Header {
        policy: policy.unwrap_or_else(|| "the kernel's own scheduler".to_owned()),
        workload: load.to_owned(),
        machine: MachineSpec {
            cpus: record::cpus(),
            hz: hz.unwrap_or(default.hz),
            kernel: running::kernel(),
            ..default
        },
        seed: 0,
        duration: length,
        groups: converted.groups,
        spans: Vec::new(),
        deadlines: Vec::new(),
        counters: Vec::new(),
        phases: Vec::new(),
    });
    tracer.events(&converted.events);
    tracer.finish(converted.end);
    Ok(())
}
