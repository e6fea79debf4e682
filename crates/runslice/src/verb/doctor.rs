//! `runslice doctor`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use live::preflight::{self, Facts, Finding, Severity};

use crate::cli::Status;
use crate::output;

/// What `runslice doctor` is asked.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Looks at the files of another system below this folder.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Prints what was looked at, what was found and what to do.
///
/// # Errors
/// When standard output is closed.
pub fn run(request: &Doctor) -> anyhow::Result<Status> {
    let facts = Facts::below(&request.root);
    let findings = preflight::judge(&facts);
    let mut to = output::open(None)?;
    writeln!(to, "kernel     {}", facts.release)?;
    writeln!(to, "sched_ext  {}", scheduler(&facts))?;
    for finding in &findings {
        writeln!(to, "\n{}", told(finding))?;
    }
    let can = !findings
        .iter()
        .any(|finding| finding.severity == Severity::Blocks);
    let verdict = match can {
        true => "policies can be attached: runslice run POLICY",
        false => "policies cannot be attached",
    };
    writeln!(to, "\n{verdict}")?;
    to.flush()?;
    Ok(if can {
        Status::Done
    } else {
        Status::Unsupported
    })
}

/// A finding and what to do, on two lines.
pub fn told(finding: &Finding) -> String {
    let mark = match finding.severity {
        Severity::Blocks => "blocks",
        Severity::Breaks => "breaks",
        Severity::Changes => "note",
    };
    format!("{mark}: {}\n  {}", finding.what, finding.way_out)
}

fn scheduler(facts: &Facts) -> String {
    match (facts.state, &facts.attached) {
        (None, _) => "not in this kernel".to_owned(),
        (Some(live::State::Disabled), _) => "there, no policy attached".to_owned(),
        (Some(_), Some(name)) => format!("{name} is attached"),
        (Some(state), None) => format!("{state:?}").to_lowercase(),
    }
}
