//! `runslice stop`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use live::preflight::{self, MachineFacts};
use live::{ClassState, SchedExt, process};
use model::Advised;

use crate::exit::{Status, UnsupportedError};
use crate::on_kernel::attach::left_said;
use crate::on_kernel::session::{RunningProcess, SessionPaths, SessionRecord};
use crate::output;

/// Detaching may take 30 s on a loaded machine, and a command some more to end.
const PATIENCE: Duration = Duration::from_secs(45);
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `runslice stop`.
#[derive(Debug, Args)]
pub struct Stop {
    /// Read the system files below this folder instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Ends the runslice that runs a policy, or attaches one, and waits until the kernel says that its
/// policy is gone.
///
/// # Errors
/// When the policy is somebody else's, the process may not be asked, or it does not end.
pub fn run(request: &Stop) -> anyhow::Result<Status> {
    let place = SessionPaths::below(&request.root);
    let kernel = SchedExt::below(&request.root);
    let mut to = output::open(None)?;
    if let Some(pid) = place.attaching() {
        end(pid, "is attaching a policy", &place)?;
        refuse_foreign(&MachineFacts::below(&request.root))?;
        writeln!(to, "process {pid} was attaching a policy and has ended")?;
        to.flush()?;
        return Ok(Status::Done);
    }
    match place.find()? {
        RunningProcess::Running(record) => {
            end(record.pid, &format!("runs {}", record.policy), &place)?;
            writeln!(to, "{}", gone(&record, &kernel)?)?;
        }
        found => {
            if let RunningProcess::Left(record) = found {
                writeln!(to, "{}", left_said(record.as_deref()))?;
            }
            refuse_foreign(&MachineFacts::below(&request.root))?;
            writeln!(to, "no policy is attached")?;
        }
    }
    to.flush()?;
    Ok(Status::Done)
}

/// Asks the process to end, and waits until it has.
fn end(pid: u32, does: &str, place: &SessionPaths) -> anyhow::Result<()> {
    match process::ask_pid_to_end(pid) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let way = format!(
                "process {pid} {does} and belongs to somebody else: try sudo runslice stop"
            );
            return Err(UnsupportedError::new(way).into());
        }
        asked => asked.with_context(|| format!("cannot end process {pid}"))?,
    }
    let limit = Instant::now() + PATIENCE;
    while place.is_held() {
        if Instant::now() > limit {
            bail!(Advised::new(
                format!("process {pid} did not end within {} s", PATIENCE.as_secs()),
                "SysRq-S detaches its policy"
            ));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// What the kernel says once the process is gone.
fn gone(record: &SessionRecord, kernel: &SchedExt) -> anyhow::Result<String> {
    let name = &record.policy;
    match kernel.state() {
        Some(ClassState::Disabled) => Ok(format!(
            "{name} is detached: the kernel's own scheduler has all tasks"
        )),
        _ if kernel.enable_seq() != record.sequence => Ok(format!(
            "{name} is detached: {} is the scheduler",
            kernel.policy().unwrap_or_else(|| "another".to_owned())
        )),
        state => Err(anyhow!(Advised::new(
            format!(
                "{name}: its process is gone, but the kernel says {}",
                state.map_or_else(|| "nothing".to_owned(), |state| state.to_string())
            ),
            "SysRq-S detaches the policy"
        ))),
    }
}

/// A policy that is attached is somebody else's here.
fn refuse_foreign(facts: &MachineFacts) -> anyhow::Result<()> {
    let findings = preflight::judge(facts);
    match facts.state {
        None => {
            let Some(finding) = findings.first() else {
                return Ok(());
            };
            Err(UnsupportedError::new(format!("{}\n  {}", finding.what, finding.way_out)).into())
        }
        Some(ClassState::Disabled) => Ok(()),
        Some(_) => Err(anyhow!(
            "{}, which is not runslice's\n  {}",
            preflight::occupied(facts),
            preflight::way_past(facts.holder.as_ref())
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What `gone` says when the kernel's files have these contents.
    fn said(name: &str, files: &[(&str, &str)]) -> Result<String, String> {
        let root =
            std::env::temp_dir().join(format!("runslice-stop-{}-{name}", std::process::id()));
        for (file, text) in files {
            let path = root.join("sys/kernel/sched_ext").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let record = SessionRecord {
            sequence: Some(3),
            ..SessionRecord::of_this_process("mlfq")
        };
        let said = gone(&record, &SchedExt::below(&root));
        fs::remove_dir_all(root).unwrap();
        said.map_err(|error| error.to_string())
    }

    #[test]
    fn the_kernel_has_the_last_word() {
        let disabled = said(
            "disabled",
            &[("state", "disabled\n"), ("enable_seq", "3\n")],
        );
        let want = "mlfq is detached: the kernel's own scheduler has all tasks";
        assert_eq!(disabled.as_deref(), Ok(want));
        let other = [
            ("state", "enabled\n"),
            ("enable_seq", "4\n"),
            ("root/ops", "lavd\n"),
        ];
        let want = "mlfq is detached: lavd is the scheduler";
        assert_eq!(said("other", &other).as_deref(), Ok(want));
        let still = said("still", &[("state", "enabled\n"), ("enable_seq", "3\n")]);
        assert!(still.unwrap_err().contains("the kernel says enabled"));
    }
}
