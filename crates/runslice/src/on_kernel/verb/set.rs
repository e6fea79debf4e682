//! `runslice set POLICY NAME=VALUE...`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use bpf::Knob;
use clap::Args;
use live::pins::Section;
use live::preflight::{self, MachineFacts};
use live::process;
use model::Advised;

use crate::computer::COMPUTER;
use crate::exit::{Status, UnsupportedError, UsageError};
use crate::on_kernel::session::{RunningProcess, SessionPaths, SessionRecord};
use crate::on_kernel::tunables::{self, Tunables};
use crate::{output, policy};

/// Arguments of `runslice set`.
#[derive(Debug, Args)]
pub struct Set {
    /// Attached policy, by the name that `runslice status` prints.
    #[arg(value_name = "POLICY")]
    policy: String,

    /// Knob to change, such as `interactive=0`. `runslice list --knobs` prints names and ranges.
    #[arg(value_name = "NAME=VALUE", required = true, value_parser = policy::setting)]
    settings: Vec<(String, String)>,

    /// Read the system files below this folder instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// A value that was checked, and where it goes.
struct Change<'a> {
    name: &'a str,
    place: tunables::VariablePlace,
    bytes: Vec<u8>,
    unit: String,
}

/// Checks all values, then changes them in the attached policy.
///
/// # Errors
/// When another policy is attached or none, a value is not allowed, or the policy's variables
/// cannot be reached.
pub fn run(request: &Set) -> anyhow::Result<Status> {
    let place = SessionPaths::below(&request.root);
    let record = running(request, &place)?;
    if !place.object().exists() {
        let name = record.name();
        bail!("{name} is a scheduler's own program: give it its own options when it is started");
    }
    let object = policy::read(&COMPUTER, &place.object())?;
    let mut tunables = Tunables::of(&record.policy, &object)?;
    let changes = request.settings.iter().map(|(name, text)| {
        check(&mut tunables, record.name(), name, text)
            .map_err(|error| UsageError::new(error.at(record.name())))
    });
    let changes: Vec<_> = changes.collect::<Result<_, _>>()?;
    if !process::is_root() {
        let way = "changing a policy that runs takes root: try sudo runslice set";
        return Err(UnsupportedError::new(way).into());
    }
    let mut to = output::open(None)?;
    for Change {
        name,
        place: at,
        bytes,
        unit,
    } in changes
    {
        let section = Section::open(&place.pins(), &at.section)?;
        let before = at.value(&section.read(at.offset, bytes.len())?);
        section.write(at.offset, &bytes)?;
        let now = at.value(&section.read(at.offset, bytes.len())?);
        writeln!(to, "{name} {before} -> {now}{unit}")?;
    }
    to.flush()?;
    Ok(Status::Done)
}

/// The record of the policy that the user means.
fn running(request: &Set, place: &SessionPaths) -> anyhow::Result<SessionRecord> {
    let wanted = policy::label(&COMPUTER, &request.policy);
    match place.find()? {
        RunningProcess::Running(record) if record.name() == wanted => Ok(*record),
        RunningProcess::Running(record) => {
            Err(UsageError::new(format!("{} is attached, not {wanted}", record.name())).into())
        }
        RunningProcess::Nobody | RunningProcess::Left(_) => {
            let facts = MachineFacts::below(&request.root);
            if facts.state.is_none()
                && let Some(finding) = preflight::judge(&facts).first()
            {
                let text = format!("{}\n  {}", finding.what, finding.way_out);
                return Err(UnsupportedError::new(text).into());
            }
            match facts.attached {
                Some(name) => {
                    bail!("{name} was not attached by runslice, so its knobs cannot be set")
                }
                None => Err(anyhow!(Advised::new(
                    "no policy is attached",
                    format!(
                        "give the value when it is: runslice run {wanted}:{}",
                        settings_said(&request.settings)
                    )
                ))),
            }
        }
    }
}

fn settings_said(settings: &[(String, String)]) -> String {
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    settings.join(",")
}

/// Checks one value.
fn check<'a>(
    tunables: &mut Tunables,
    policy: &str,
    name: &'a str,
    text: &str,
) -> Result<Change<'a>, Advised> {
    let (place, bytes) = tunables
        .set(name, text)
        .map_err(|error| Advised::of(&error))?;
    if !place.can_change() {
        return Err(Advised::new(
            format!("`{name}` is a constant of the loaded programs"),
            format!("give it when they are loaded: runslice run {policy}:{name}={text}"),
        ));
    }
    let knob = tunables.knobs().iter().find(|knob| knob.name == name);
    if knob.is_some_and(|knob| knob.at_load) {
        return Err(Advised::new(
            format!("`{name}` is read when the policy is loaded"),
            format!("give it then: runslice run {policy}:{name}={text}"),
        ));
    }
    Ok(Change {
        name,
        place,
        bytes,
        unit: knob.map_or_else(String::new, unit),
    })
}

fn unit(knob: &Knob) -> String {
    match knob.unit.as_str() {
        "" | "bool" => String::new(),
        unit => format!(" {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::on_kernel::session::Session;

    fn request(root: &std::path::Path, policy: &str, settings: &[&str]) -> Set {
        let settings = settings.iter().map(|text| policy::setting(text).unwrap());
        Set {
            policy: policy.to_owned(),
            settings: settings.collect(),
            root: root.to_path_buf(),
        }
    }

    /// A root where fifo is attached, as far as files can say.
    fn with_fifo(name: &str, check: impl FnOnce(&std::path::Path)) {
        let root = std::env::temp_dir().join(format!("runslice-set-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("sys/kernel/sched_ext")).unwrap();
        fs::write(root.join("sys/kernel/sched_ext/state"), "enabled\n").unwrap();
        let session = Session::begin(&SessionPaths::below(&root)).unwrap();
        let object = policies::find("fifo").unwrap().object;
        let record = SessionRecord::of_this_process("fifo:slice_ns=5000000");
        session.write(&record, Some(object)).unwrap();
        check(&root);
        drop(session);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_schedulers_own_program_has_no_knobs_to_set() {
        with_fifo("program", |root| {
            fs::remove_file(SessionPaths::below(root).object()).unwrap();
            let error = run(&request(root, "fifo", &["slice_ns=5000"])).unwrap_err();
            assert!(
                crate::exit::in_full(&error).contains("its own options"),
                "{error}"
            );
        });
    }

    #[test]
    fn values_are_checked_as_everywhere_before_any_is_written() {
        with_fifo("checked", |root| {
            for (settings, words) in [
                (
                    &["slice_ns=1"][..],
                    "out of range for `slice_ns`; give 1000 to 10000000000 ns",
                ),
                (
                    &["slices=5000"],
                    "did you mean `slice_ns` (1000 to 10000000000 ns)?",
                ),
                (&["slice_ns=x"], "invalid value `x` for `slice_ns`"),
                (
                    &["slice_ns=5000", "slice_ns=x"],
                    "invalid value `x` for `slice_ns`",
                ),
            ] {
                let error = run(&request(root, "fifo", settings)).unwrap_err();
                assert!(error.is::<UsageError>(), "{error}");
                assert!(crate::exit::in_full(&error).contains(words), "{error}");
            }
        });
    }

    #[test]
    fn a_good_value_fails_only_for_want_of_the_map() {
        with_fifo("map", |root| {
            let error = run(&request(root, "fifo", &["slice_ns=5000"])).unwrap_err();
            let words = "sys/fs/bpf/runslice/data_knobs";
            assert!(crate::exit::in_full(&error).contains(words), "{error}");
        });
    }

    #[test]
    fn another_policy_is_named() {
        with_fifo("other", |root| {
            let error = run(&request(root, "mlfq", &["nq=5"])).unwrap_err();
            assert!(error.is::<UsageError>());
            assert_eq!(error.to_string(), "fifo is attached, not mlfq");
        });
    }

    #[test]
    fn without_a_policy_the_way_is_said() {
        let root = std::env::temp_dir().join(format!("runslice-set-{}-none", std::process::id()));
        fs::create_dir_all(root.join("sys/kernel/sched_ext/root")).unwrap();
        fs::write(root.join("sys/kernel/sched_ext/state"), "disabled\n").unwrap();
        let request = request(&root, "mlfq", &["nq=5", "cumulative=1"]);
        let error = crate::exit::in_full(&run(&request).unwrap_err());
        assert!(
            error.ends_with("runslice run mlfq:nq=5,cumulative=1"),
            "{error}"
        );
        fs::write(root.join("sys/kernel/sched_ext/root/ops"), "lavd\n").unwrap();
        let error = crate::exit::in_full(&run(&request).unwrap_err());
        assert!(
            error.starts_with("lavd was not attached by runslice"),
            "{error}"
        );
        fs::remove_dir_all(root).unwrap();
    }
}
