//! `runslice doctor`.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use live::preflight::{self, MachineFacts, PreflightFinding, Severity, function_faults};
use live::tracefs::{self, TraceFacts};

use crate::exit::Status;
use crate::on_kernel::attach::in_words;
use crate::output;

/// Arguments of `runslice doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Read the system files below this folder instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Prints what was looked at, what was found and what to do.
///
/// # Errors
/// When standard output is closed.
pub fn run(request: &Doctor) -> anyhow::Result<Status> {
    let facts = MachineFacts::below(&request.root);
    let mut findings = preflight::judge(&facts);
    if facts.state.is_some() {
        findings.extend(faults(&request.root, &facts.release));
    }
    let mut to = output::open(None)?;
    writeln!(to, "kernel     {}", facts.release)?;
    writeln!(to, "sched_ext  {}", scheduler(&facts))?;
    writeln!(to, "recording  {}", recording(&request.root))?;
    for finding in &findings {
        writeln!(to, "\n{}", in_words(finding))?;
    }
    let can = !findings
        .iter()
        .any(|finding| finding.severity == Severity::Blocks);
    let asks = |severity| findings.iter().any(|finding| finding.severity == severity);
    let verdict = if can {
        let mut command = "policies can be attached: runslice run POLICY".to_owned();
        for (severity, option) in [
            (Severity::Untested, " --untested"),
            (Severity::Breaks, " --ignore-cgroups"),
        ] {
            if asks(severity) {
                command += option;
            }
        }
        command
    } else {
        "policies cannot be attached".to_owned()
    };
    writeln!(to, "\n{verdict}")?;
    to.flush()?;
    Ok(if can {
        Status::Done
    } else {
        Status::Unsupported
    })
}

/// The kernel's functions that do not fit a shipped policy's calls, each once.
fn faults(root: &Path, release: &str) -> Vec<PreflightFinding> {
    let all = policies::ALL.iter();
    let faults: BTreeSet<_> = all
        .flat_map(|policy| function_faults(root, policy.object))
        .collect();
    faults.iter().map(|fault| fault.finding(release)).collect()
}

/// Whether `record` can record, and what to do if not.
fn recording(root: &Path) -> String {
    let found = tracefs::obstacles(&TraceFacts::below(root));
    match found.first() {
        None => "through tracefs".to_owned(),
        Some(PreflightFinding { what, way_out, .. }) => {
            format!("not through tracefs: {what}; {way_out}")
        }
    }
}

fn scheduler(facts: &MachineFacts) -> String {
    match (facts.state, &facts.attached) {
        (None, _) => "not in this kernel".to_owned(),
        (Some(live::ClassState::Disabled), _) => "there, no policy attached".to_owned(),
        (Some(_), Some(name)) => format!("{name} is attached"),
        (Some(state), None) => format!("{state:?}").to_lowercase(),
    }
}
