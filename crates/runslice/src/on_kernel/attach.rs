//! What every verb does that attaches a policy: looks at the machine before, sets the knobs, and
//! lets others know what it has attached.

mod constants;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use live::pins::Pins;
use live::preflight::{self, MachineFacts, PreflightFinding, Severity, function_faults};
use live::{Attached, ClassState, Holder, Policy, PolicyEnding, SchedExt, process};
use model::{Advised, PolicySpec};

use crate::exit::{UnsupportedError, UsageError};
use crate::on_kernel::session::{RunningProcess, Session, SessionPaths, SessionRecord};
use crate::on_kernel::tunables::Tunables;
use crate::say::say;

/// How long a policy that is not shipped may leave a task waiting; the kernel's own limit is 30 s.
const WATCHDOG: Duration = Duration::from_secs(5);

/// Options of all verbs that attach a policy.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Attach even if control groups have CPU quotas. A policy does not enforce these quotas.
    #[arg(long)]
    pub ignore_cgroups: bool,

    /// Attach even if runslice was never tested with this kernel, or if the kernel describes its
    /// functions wrongly.
    #[arg(long)]
    pub untested: bool,

    /// Folder for the kernel's debug dump if the policy is ejected.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dumps: PathBuf,

    /// Read the system files below this folder instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
}

impl AttachArgs {
    /// What `verb` does with these answers.
    pub fn attaching(&self, verb: &'static str, replace: bool) -> Attaching<'_> {
        Attaching {
            verb,
            root: &self.root,
            untested: self.untested,
            ignore_cgroups: self.ignore_cgroups,
            replace,
        }
    }
}

/// How somebody attaches a policy.
#[derive(Clone, Copy, Debug)]
pub struct Attaching<'a> {
    /// The verb, which messages begin with.
    pub verb: &'static str,
    /// `/` but in tests.
    pub root: &'a Path,
    /// Also to a kernel that nobody has tried.
    pub untested: bool,
    /// Also where quotas would stop to hold.
    pub ignore_cgroups: bool,
    /// In place of another policy that has a service.
    pub replace: bool,
}

/// A finding and what to do, on two lines.
pub fn in_words(finding: &PreflightFinding) -> String {
    let mark = match finding.severity {
        Severity::Blocks => "blocks",
        Severity::Untested => "untested",
        Severity::Breaks => "breaks",
        Severity::Changes => "note",
    };
    format!("{mark}: {}\n  {}", finding.what, finding.way_out)
}

impl Attaching<'_> {
    /// Says something on standard error.
    pub fn say(&self, text: &str) {
        say(self.verb, text);
    }

    /// Says what would change, and refuses what cannot work. Returns whoever must go first.
    ///
    /// # Errors
    /// When something stands in the way; with the ways out.
    pub fn preflight(&self, spec: &PolicySpec) -> anyhow::Result<Option<Holder>> {
        let mut facts = MachineFacts::below(self.root);
        let holder = facts
            .holder
            .clone()
            .filter(|holder| self.replace && holder.can_be_replaced());
        if holder.is_some() {
            facts.state = Some(ClassState::Disabled);
        }
        let mut findings = preflight::judge(&facts);
        if facts.state.is_some() {
            let faults = function_faults(self.root, &spec.object);
            findings.extend(faults.iter().map(|fault| fault.finding(&facts.release)));
        }
        let (refused, notes): (Vec<_>, Vec<_>) =
            findings.iter().partition(|finding| self.refuses(finding));
        for finding in notes {
            self.say(&in_words(finding));
        }
        refuse(&refused)?;
        Ok(holder)
    }

    /// Whether a finding stands in the way, and is not only said.
    pub fn refuses(&self, finding: &PreflightFinding) -> bool {
        match finding.severity {
            Severity::Blocks => true,
            Severity::Untested => !self.untested,
            Severity::Breaks => !self.ignore_cgroups,
            Severity::Changes => false,
        }
    }

    /// Keeps this process from waiting for a disk whose tasks the policy may starve.
    pub fn stay_in_memory(&self) {
        if let Err(error) = process::lock_memory() {
            self.say(&format!(
                "cannot keep its memory from being swapped: {error}"
            ));
        }
    }

    /// Removes what a killed one left, and says so.
    ///
    /// # Errors
    /// The errors of [`SessionPaths::find`].
    pub fn clean(&self, place: &SessionPaths) -> anyhow::Result<()> {
        if let RunningProcess::Left(record) = place.find()? {
            self.say(&left_said(record.as_deref()));
        }
        Ok(())
    }

    /// The knobs' values as they lie in memory, checked against type and limits: those that the
    /// user set, and those for kernels of the others.
    ///
    /// # Errors
    /// When a knob is unknown or its value out of range.
    pub fn knobs(&self, spec: &PolicySpec) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let mut tunables = match Tunables::of(&spec.name, &spec.object) {
            Ok(tunables) => tunables,
            // A kernel may know what this program does not; only values need the latter.
            Err(error) if spec.set.is_empty() => {
                self.say(&format!(
                    "its knobs are not known here: {}",
                    crate::exit::in_full(&error)
                ));
                return Ok(constants::constants(spec));
            }
            Err(error) => return Err(error),
        };
        let usage = |error| UsageError::new(Advised::of(&error).at(&spec.name));
        let mut values = tunables.set_for_kernel().map_err(usage)?;
        values.extend(constants::constants(spec));
        for (name, text) in &spec.set {
            if name.contains('@') {
                let message = Advised::new(
                    format!(
                        "{}: `{name}={text}` names a time, which is for simulated runs",
                        spec.name
                    ),
                    "`runslice set` changes a policy that is attached",
                );
                return Err(UsageError::new(message).into());
            }
            let (_, bytes) = tunables.set(name, text).map_err(usage)?;
            values.retain(|(known, _)| known != name);
            values.push((name.clone(), bytes));
        }
        Ok(values)
    }

    /// Makes the policy's data reachable for `set`, `status` and `stop`. What cannot be shared is
    /// no reason to detach.
    pub fn share(
        &self,
        attached: &mut Attached,
        session: &Session,
        record: &mut SessionRecord,
        spec: &PolicySpec,
    ) -> Option<Pins> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        record.since_unix_s = now.map_or(0, |now| now.as_secs());
        record.sequence = attached.sequence();
        record.counters = attached.counter_names().unwrap_or_default();
        if let Err(error) = session.write(record, Some(&spec.object)) {
            self.say(&format!(
                "runslice status and stop will not know it: {}",
                crate::exit::in_full(&error)
            ));
        }
        match attached.pin(&SessionPaths::below(self.root).pins()) {
            Ok(pins) => Some(pins),
            Err(error) => {
                self.say(&format!("runslice set will not reach it: {error}"));
                None
            }
        }
    }
}

impl Attaching<'_> {
    /// Says to others that a scheduler's own program has attached its policy: `status` and `stop`
    /// know it, `set` has no variables of it. `None` if the program is a runslice that has said so
    /// itself, or nothing can be written.
    pub fn share_program(&self, mut record: SessionRecord) -> Option<Session> {
        let place = SessionPaths::below(self.root);
        if place.is_held() {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        record.since_unix_s = now.map_or(0, |now| now.as_secs());
        record.sequence = SchedExt::below(self.root).enable_seq();
        let session = Session::begin(&place).and_then(|session| {
            session.write(&record, None)?;
            Ok(session)
        });
        session
            .inspect_err(|error| {
                self.say(&format!(
                    "runslice status and stop will not know it: {}",
                    crate::exit::in_full(error)
                ));
            })
            .ok()
    }
}

/// Whether the object is one of those that are built in.
fn is_shipped(spec: &PolicySpec) -> bool {
    let mut built_in = policies::ALL.iter().chain(policies::LESSONS);
    built_in.any(|policy| policy.object == &*spec.object)
}

/// An error with what stands in the way and the ways out, if anything does.
pub fn refuse(refused: &[&PreflightFinding]) -> Result<(), UnsupportedError> {
    if refused.is_empty() {
        return Ok(());
    }
    let words: Vec<_> = refused
        .iter()
        .map(|it| format!("{}\n  {}", it.what, it.way_out))
        .collect();
    Err(UnsupportedError::new(words.join("\n")))
}

/// Opens the object and sets its variables; one that is not shipped gets a short watchdog.
///
/// # Errors
/// When libbpf does not understand the object, or it has no such variable.
pub fn open(spec: &PolicySpec, knobs: &[(String, Vec<u8>)]) -> anyhow::Result<Policy> {
    let mut policy = Policy::open(&spec.name, &spec.object, spec.table.as_deref())?;
    for (name, value) in knobs {
        policy.set_global(name, value)?;
    }
    if !is_shipped(spec) {
        policy.limit_watchdog(WATCHDOG)?;
    }
    Ok(policy)
}

/// Why the kernel ended a policy, in one line.
pub fn cause(ending: Option<&PolicyEnding>) -> String {
    match ending {
        Some(PolicyEnding {
            reason,
            message,
            kind,
            ..
        }) if message.is_empty() => format!("{reason} (kind {kind})"),
        Some(PolicyEnding {
            reason,
            message,
            kind,
            ..
        }) => format!("{reason}: {message} (kind {kind})"),
        None => "the policy does not say why; the kernel's log does".to_owned(),
    }
}

/// What is known of one that was killed.
pub fn left_said(record: Option<&SessionRecord>) -> String {
    let Some(SessionRecord {
        policy,
        pid,
        replaced,
        ..
    }) = record
    else {
        return "removed what a killed runslice had left".to_owned();
    };
    let service = replaced.as_ref().map_or_else(String::new, |unit| {
        format!("; it had stopped {unit}: systemctl start {unit} brings that back")
    });
    format!("removed what process {pid} with {policy} had left, which was killed{service}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computer::COMPUTER;
    use crate::policy;

    fn knobs(spec: &PolicySpec) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let attaching = Attaching {
            verb: "test",
            root: Path::new("/"),
            untested: false,
            ignore_cgroups: false,
            replace: false,
        };
        attaching.knobs(spec)
    }

    #[test]
    fn a_kernel_gets_the_values_for_kernels_unless_the_user_says_otherwise() {
        let read = |text: &str| {
            let mut values = knobs(&policy::find(&COMPUTER, text).unwrap()).unwrap();
            values.sort();
            values
        };
        let guard = |limit: u32| ("guard_ms".to_owned(), limit.to_le_bytes().to_vec());
        let fast = |on: u8| ("kthreads_fast".to_owned(), vec![on]);
        assert_eq!(read("mlfq"), [guard(8000), fast(1)]);
        assert_eq!(read("mlfq:guard_ms=0"), [guard(0), fast(1)]);
        let set = read("mlfq:kthreads_fast=0,queues=3");
        let queues = ("queues".to_owned(), 3_u32.to_le_bytes().to_vec());
        assert_eq!(set, [guard(8000), fast(0), queues]);
    }

    #[test]
    fn knobs_are_checked_before_a_kernel_sees_them() {
        let read = |text: &str| knobs(&policy::find(&COMPUTER, text).unwrap());
        let want = vec![("slice_ns".to_owned(), 5_000_000_u64.to_le_bytes().to_vec())];
        assert_eq!(read("fifo:slice_ns=5000000").unwrap(), want);
        for bad in [
            "fifo:slice_ns=1",
            "fifo:slices=5",
            "fifo:slice_ns=x",
            "fifo:slice_ns@5s=5ms",
        ] {
            assert!(read(bad).unwrap_err().is::<UsageError>(), "{bad}");
        }
    }

    #[test]
    fn an_object_that_only_a_kernel_knows_is_refused_only_when_a_value_is_to_be_set() {
        let mut spec = policy::find(&COMPUTER, "fifo").unwrap();
        spec.object = std::sync::Arc::from(&b"nothing"[..]);
        assert_eq!(knobs(&spec).unwrap(), []);
        spec.set = vec![("slice_ns".to_owned(), "5000".to_owned())];
        knobs(&spec).unwrap_err();
    }

    #[test]
    fn whoever_was_killed_is_named_with_the_service_that_it_had_stopped() {
        let record = SessionRecord {
            pid: 31,
            replaced: Some("scx.service".to_owned()),
            ..SessionRecord::of_this_process("mlfq")
        };
        let said = left_said(Some(&record));
        let want = "removed what process 31 with mlfq had left, which was killed; it had stopped \
                    scx.service: systemctl start scx.service brings that back";
        assert_eq!(said, want);
        assert!(left_said(None).contains("a killed runslice"));
    }
}
