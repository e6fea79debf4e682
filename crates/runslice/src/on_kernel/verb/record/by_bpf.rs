//! Recording with tracing programs, into a file of events.

use std::fs;
use std::io::BufWriter;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use live::preflight::Finding;
use live::process;
use live::record::{Cost, Depth, Others, Recorder};
use model::snapshot::cpus_of;
use model::{Header, Sink as _, Snapshot};
use rustix::time::{ClockId, clock_gettime};
use stats::JsonLines;

use super::file::ResultFile;
use super::outcome::Outcome;
use super::{Record, blocking, say};
use crate::exit::Status;

/// What keeps the recorder's programs out; empty if nothing is seen that does.
pub fn obstacles(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !root.join("sys/kernel/btf/vmlinux").is_file() {
        findings.push(blocking(
            "the kernel does not describe its types (/sys/kernel/btf/vmlinux), which recording \
             with BPF takes",
            "boot a kernel of 6.18 or newer with CONFIG_DEBUG_INFO_BTF=y",
        ));
    }
    if !process::is_root() {
        findings.push(blocking(
            "recording with BPF loads tracing programs, which takes root",
            "run it as root: sudo runslice record",
        ));
    }
    let lockdown = fs::read_to_string(root.join("sys/kernel/security/lockdown"));
    if lockdown.is_ok_and(|text| text.contains("[confidentiality]")) {
        findings.push(blocking(
            "the kernel is locked down (confidentiality) and lets no program read its memory",
            "boot without lockdown=confidentiality",
        ));
    }
    findings
}

/// Records, and writes the events with what the snapshot knows of the machine and its threads.
pub fn record(request: &Record, file: ResultFile, snapshot: &Snapshot) -> anyhow::Result<Status> {
    let policy = snapshot.scheduler.clone();
    let began_with = own_time();
    // Where the kernel does not measure its programs, their cost stays unknown.
    let measured = Cost::measure().ok();
    let recorder = Recorder::start(Depth::Events, policy.is_some())
        .context("the running kernel cannot be recorded with BPF; --with tracefs may do it")?;
    let began = Instant::now();
    let waited = request.wait(&|| false)?;
    let length = began.elapsed();
    let costs = recorder.cost();
    drop(measured);
    let recording = recorder.stop()?;
    let recorder_time = own_time().saturating_sub(began_with);
    let converted = recording.events(&[], Others::ByName);
    let (runs, ns) = costs.iter().fold((0_u64, 0_u64), |(runs, ns), cost| {
        (runs.saturating_add(cost.runs), ns.saturating_add(cost.ns))
    });
    let mut outcome = Outcome {
        with: "bpf",
        length,
        cpus: cpus_of(&snapshot.online).len().max(1),
        events: recording.records.raws.len() as u64,
        lost: recording.totals.lost,
        file_bytes: 0,
        recorder: recorder_time,
        event_cost: ns
            .checked_div(runs)
            .filter(|ns| *ns > 0)
            .map(Duration::from_nanos),
        threads: snapshot.begin.threads.len(),
    };
    if outcome.lost > 0 {
        say(&format!("{} events were lost", outcome.lost));
    }
    say("a file of events has nice values and no affinities; --with tracefs keeps both");
    let (machine, lacks) = snapshot.machine();
    for lack in lacks {
        say(&lack);
    }
    let header = Header {
        policy: policy.unwrap_or_else(|| "the kernel's own scheduler".to_owned()),
        workload: "recorded".to_owned(),
        machine,
        seed: 1,
        duration: request.length,
        groups: converted.groups.clone(),
        spans: Vec::new(),
        deadlines: Vec::new(),
        counters: Vec::new(),
        phases: Vec::new(),
    };
    let path = file.path().to_owned();
    outcome.file_bytes = file.write(|to| {
        let mut lines = JsonLines::new(BufWriter::new(&mut *to));
        lines.begin(&header);
        lines.events(&converted.events);
        lines.finish(converted.end);
        lines.close()?.into_inner()?;
        Ok(to.metadata()?.len())
    })?;
    request.finish(&outcome, &path, waited)
}

/// CPU time that this process has used.
fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_types_is_said_to_lack_them() {
        let root = folder::OwnFolder::new().unwrap();
        let told = |findings: &[Finding]| {
            let all = findings.iter().map(|finding| finding.what.as_str());
            all.collect::<Vec<_>>().join("\n")
        };
        assert!(told(&obstacles(root.path())).contains("describe its types"));
        fs::create_dir_all(root.join("sys/kernel/btf")).unwrap();
        fs::write(root.join("sys/kernel/btf/vmlinux"), "").unwrap();
        fs::create_dir_all(root.join("sys/kernel/security")).unwrap();
        let lockdown = root.join("sys/kernel/security/lockdown");
        fs::write(lockdown, "none integrity [confidentiality]\n").unwrap();
        let said = told(&obstacles(root.path()));
        assert!(
            said.contains("locked down") && !said.contains("types"),
            "{said}"
        );
    }
}
