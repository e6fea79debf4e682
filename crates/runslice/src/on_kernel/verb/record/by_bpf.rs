//! Recording with tracing programs, into a file of events.

use std::fs;
use std::io::BufWriter;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use live::preflight::PreflightFinding;
use live::process;
use live::record::{
    Converted, Cost, DecisionRecorder, Depth, Others, ProgramCost, Recorder, Records,
};
use model::snapshot::cpus_of;
use model::{Advised, Exit, Header, Nanos, SimTime, Sink, Snapshot, Text};
use rustix::time::{ClockId, clock_gettime};
use traces::JsonLines;

use super::file::ResultFile;
use super::outcome::RecordOutcome;
use super::{Record, blocking, say};
use crate::exit::Status;

/// What keeps the recorder's programs out; empty if nothing is seen that does.
pub fn obstacles(root: &Path) -> Vec<PreflightFinding> {
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

/// The attached policy, without which there are no decisions to record.
fn policy_of(request: &Record, snapshot: &Snapshot) -> anyhow::Result<Option<String>> {
    if request.decisions && snapshot.scheduler.is_none() {
        bail!(Advised::new(
            "no policy is attached, so nothing tells which of its lines decides",
            "attach it first (`runslice run POLICY`), or record without --decisions"
        ));
    }
    Ok(snapshot.scheduler.clone())
}

/// What one run of the recorder's programs costs, if the kernel measured it.
fn each(costs: &[ProgramCost]) -> Option<Duration> {
    let (runs, ns) = costs.iter().fold((0_u64, 0_u64), |(runs, ns), cost| {
        (runs.saturating_add(cost.runs), ns.saturating_add(cost.ns))
    });
    let ns = ns.checked_div(runs).filter(|ns| *ns > 0);
    ns.map(Duration::from_nanos)
}

/// Records, and writes the events with what the snapshot knows of the machine and its threads.
pub fn record(request: &Record, file: ResultFile, snapshot: &Snapshot) -> anyhow::Result<Status> {
    let policy = policy_of(request, snapshot)?;
    let began_with = own_time();
    // Where the kernel does not measure its programs, their cost stays unknown.
    let measured = Cost::measure().ok();
    let recorder = Recorder::start(Depth::Events, policy.is_some()).map_err(|error| {
        let error = Advised::of(&error).at("the running kernel cannot be recorded with BPF");
        anyhow::anyhow!(error.or("--with tracefs may do it"))
    })?;
    let decisions = request.decisions.then(DecisionRecorder::start).transpose();
    let decisions = decisions.context("the policy's decisions cannot be recorded")?;
    let began = Instant::now();
    let waited = request.wait(&|| false)?;
    let length = began.elapsed();
    let costs = recorder.cost();
    drop(measured);
    let mut recording = recorder.stop()?;
    if let Some(decisions) = decisions {
        recording.records.decisions = decisions.stop()?;
        recording.totals.lost += recording.records.decisions.lost;
    }
    let end = end_at_ejection(&mut recording.records);
    let recorder_time = own_time().saturating_sub(began_with);
    let converted = recording.events(&[], Others::ByName);
    let mut outcome = RecordOutcome {
        with: "bpf",
        length,
        cpus: cpus_of(&snapshot.online).len().max(1),
        events: (recording.records.raws.len() + recording.records.decisions.records.len()) as u64,
        lost: recording.totals.lost,
        file_bytes: 0,
        recorder: recorder_time,
        event_cost: each(&costs),
        switch_cost: None,
        threads: snapshot.begin.threads.len(),
    };
    if outcome.lost > 0 {
        say(&format!("{} events were lost", outcome.lost));
    }
    say_of_decisions(request, &recording.records);
    let (mut machine, lacks) = snapshot.machine();
    // One that was offline at first may have come.
    machine.cpus = machine.cpus.max(converted.cpus);
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
        let to_file = BufWriter::new(&mut *to);
        let mut lines = if request.decisions {
            JsonLines::with_decisions(to_file)
        } else {
            JsonLines::new(to_file)
        };
        write(&mut lines, &header, &converted, end.as_ref());
        lines.close()?.into_inner()?;
        Ok(to.metadata()?.len())
    })?;
    request.finish(&outcome, &path, waited)
}

fn write(to: &mut impl Sink, header: &Header, converted: &Converted, end: Option<&Exit>) {
    to.begin(header);
    converted.places.iter().for_each(|place| to.text(place));
    to.events(&converted.events);
    if let Some(exit) = end {
        to.text(&Text::Exit(exit.clone()));
    }
    to.finish(converted.end);
}

/// What comes after an ejection is another scheduler's: the events end with it.
fn end_at_ejection(records: &mut Records) -> Option<Exit> {
    let (time, kind, code) = records.decisions.ejection()?;
    records.ended = time.clamp(records.began, records.ended);
    Some(Exit {
        kind,
        code,
        message: "the kernel's message is in its log, and not in a recording".to_owned(),
        time: SimTime::from_nanos(records.ended - records.began),
        fault: None,
    })
}

fn say_of_decisions(request: &Record, records: &Records) {
    if !request.decisions {
        return say(
            "of affinities (which CPUs a task may use) a file of events has only those to one \
             CPU; --with tracefs keeps all",
        );
    }
    let decisions = &records.decisions;
    for missing in &decisions.missing {
        say(&format!("this kernel does not let see: {missing}"));
    }
    if let Some((time, ..)) = decisions.ejection() {
        let after = Nanos::new(time.saturating_sub(records.began));
        say(&format!(
            "the policy was ejected after {after}; the recording ends there"
        ));
    }
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
        let told = |findings: &[PreflightFinding]| {
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
