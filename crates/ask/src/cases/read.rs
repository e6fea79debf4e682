//! Reads the file of a case. docs/cases.md says what its keys mean.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::anyhow;
use explain::why::Fault;
use model::file::{self, Source};
use model::{Advised, Interleave, Kernel, Nanos};
use serde::Deserialize;
use toml::Spanned;

use super::case::{CaseLoad, CaseRun, CaseStatus, PublicCase};
use super::signature::CaseSignature;
use crate::goal::Goal;
use crate::machine::{CPUS_MAX, MachineChange, SMT_MAX, parse_hz};
use crate::policy::{self, Preparation};
use crate::workload_arg::{Written, parse_duration};
use crate::{kernel, program};

/// Finds the load that a file names.
type FindLoad<'a> = &'a dyn Fn(&str) -> anyhow::Result<Written>;

/// Most bytes of a version and of a scheduler's name: they are parts of a file's name.
const NAME_MAX: usize = 64;

/// The file as it stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Draft {
    scheduler: Spanned<String>,
    title: String,
    source: Vec<String>,
    seen: String,
    trigger: String,
    #[serde(default)]
    bad: Vec<Spanned<String>>,
    #[serde(default)]
    good: Vec<Spanned<String>>,
    broken_by: Option<String>,
    fixed_by: Option<String>,
    dated: Option<Spanned<String>>,
    added: Spanned<String>,
    clang: Option<String>,
    #[serde(default)]
    config: Vec<String>,
    status: Spanned<String>,
    reason: Option<String>,
    seen_on_kernel: Option<Spanned<String>>,
    run: Option<Spanned<RunDraft>>,
    shows: Option<Spanned<ShowsDraft>>,
    #[serde(default)]
    near: Vec<Spanned<NearDraft>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RunDraft {
    command: Option<Spanned<String>>,
    #[serde(default)]
    set: Vec<Spanned<String>>,
    #[serde(default)]
    run: Vec<Spanned<String>>,
    #[serde(default)]
    run_attached: Vec<Spanned<String>>,
    ops: Option<String>,
    load: Spanned<String>,
    #[serde(default)]
    scale: BTreeMap<String, i64>,
    duration: Option<Spanned<String>>,
    #[serde(default)]
    machine: MachineDraft,
}

/// What differs from the load or the machine of `[run]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NearDraft {
    load: Option<Spanned<String>>,
    #[serde(default)]
    scale: BTreeMap<String, i64>,
    duration: Option<Spanned<String>>,
    #[serde(default)]
    machine: MachineDraft,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineDraft {
    cpus: Option<Spanned<u16>>,
    smt: Option<Spanned<u16>>,
    llc: Option<u16>,
    node: Option<u16>,
    hz: Option<Spanned<u32>>,
    kernel: Option<Spanned<String>>,
    profile: Option<String>,
    interleave: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowsDraft {
    #[serde(default)]
    class: Vec<Spanned<String>>,
    #[serde(default)]
    never: Vec<Spanned<String>>,
    task: Option<String>,
    message: Option<String>,
    worse: Option<Spanned<String>>,
    by: Option<Spanned<f64>>,
}

/// Reads the case `name`, whose file says `text`. `load` finds its load.
///
/// # Errors
/// When it is wrong; the message names file, line and column.
pub(super) fn case(
    (name, text): (&str, &str),
    file: &str,
    load: FindLoad<'_>,
) -> anyhow::Result<PublicCase> {
    let source = &Source { text, file };
    let draft: Draft = file::read(source)?;
    let reader = Reader { source, load };
    let bad = reader.names(&draft.bad)?;
    let good = reader.names(&draft.good)?;
    let status = reader.status(&draft)?;
    Ok(PublicCase {
        name: name.to_owned(),
        scheduler: reader.name(&draft.scheduler)?,
        status,
        run: reader.run(&draft)?,
        dated: draft.dated.as_ref().map(|it| reader.of(it)).transpose()?,
        added: reader.of(&draft.added)?,
        seen_on_kernel: reader.kernel_seen(draft.seen_on_kernel.as_ref())?,
        title: draft.title,
        source: draft.source,
        seen: draft.seen,
        trigger: draft.trigger,
        bad,
        good,
        broken_by: draft.broken_by,
        fixed_by: draft.fixed_by,
        clang: draft.clang,
        config: draft.config,
        reason: draft.reason,
    })
}

struct Reader<'a> {
    source: &'a Source<'a>,
    load: FindLoad<'a>,
}

impl Reader<'_> {
    /// `what` is wrong with the value at `at`.
    fn wrong<T>(&self, at: &Spanned<T>, what: impl Into<Advised>) -> anyhow::Error {
        anyhow!(what.into().at(self.source.place(at.span().start)))
    }

    /// Reads a value of one line.
    fn of<T: FromStr>(&self, text: &Spanned<String>) -> anyhow::Result<T>
    where
        T::Err: Into<Advised>,
    {
        let value = text.get_ref().parse();
        value.map_err(|error: T::Err| self.wrong(text, error))
    }

    /// A name that can be a part of a file's.
    fn name(&self, text: &Spanned<String>) -> anyhow::Result<String> {
        let name = text.get_ref();
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "._+~-".contains(it);
        let begins = name.starts_with(|it: char| it.is_ascii_alphanumeric());
        if begins && name.len() <= NAME_MAX && name.chars().all(is_plain) {
            return Ok(name.clone());
        }
        let advice = "expected letters, digits and . _ + ~ -, such as 1.1.3 or git-9cb277956~1";
        let what = format!("`{}` is no name of a version", name.escape_debug());
        Err(self.wrong(text, Advised::new(what, advice)))
    }

    fn names(&self, all: &[Spanned<String>]) -> anyhow::Result<Vec<String>> {
        let names = all.iter().map(|it| self.name(it));
        names.collect()
    }

    fn status(&self, draft: &Draft) -> anyhow::Result<CaseStatus> {
        let text = &draft.status;
        let mut all = CaseStatus::ALL.into_iter();
        let Some(status) = all.find(|it| it.word() == text.get_ref()) else {
            let words = CaseStatus::ALL.map(CaseStatus::word).join(", ");
            let what = format!("`{}` is no status", text.get_ref());
            let advice = format!("write one of {words}");
            return Err(self.wrong(text, Advised::new(what, advice)));
        };
        if status.is_claim() && draft.run.is_none() {
            let what = "a case that is shown says how: it lacks `[run]`";
            return Err(self.wrong(text, what));
        }
        if !status.is_claim() && draft.reason.is_none() {
            let what = "a case that is not shown says why: it lacks `reason`";
            return Err(self.wrong(text, what));
        }
        Ok(status)
    }

    fn kernel_seen(&self, text: Option<&Spanned<String>>) -> anyhow::Result<Option<String>> {
        text.map(|it| Ok(self.kernel(it)?.name().to_owned()))
            .transpose()
    }

    fn kernel(&self, text: &Spanned<String>) -> anyhow::Result<Kernel> {
        let found = kernel::parse(text.get_ref());
        found.map_err(|all| self.wrong(text, Advised::new("no such kernel", all)))
    }

    fn run(&self, draft: &Draft) -> anyhow::Result<Option<CaseRun>> {
        let Some(run) = &draft.run else {
            let rest = draft.shows.as_ref().map(Spanned::span);
            let rest = rest.or_else(|| draft.near.first().map(Spanned::span));
            return match rest {
                None => Ok(None),
                Some(span) => Err(anyhow!(
                    Advised::new(
                        "it lacks `[run]`",
                        "say how the case is shown, or leave this out"
                    )
                    .at(self.source.place(span.start))
                )),
            };
        };
        let Some(shows) = &draft.shows else {
            return Err(self.wrong(run, "it lacks `[shows]`: what must be seen"));
        };
        if draft.bad.is_empty() || draft.good.is_empty() {
            return Err(self.wrong(run, "a run needs `bad` and `good` versions"));
        }
        if draft.near.is_empty() {
            let what =
                "it lacks `[[near]]`: a load like this one under which good versions run, too";
            return Err(self.wrong(run, what));
        }
        let of_run = run.get_ref();
        let load = CaseLoad {
            written: self.written(&of_run.load)?,
            scale: of_run.scale.clone().into_iter().collect(),
            duration: self.duration(of_run.duration.as_ref())?,
            machine: self.machine(&of_run.machine)?,
        };
        let near = draft.near.iter();
        let near = near.map(|it| self.near(it.get_ref(), &load));
        Ok(Some(CaseRun {
            near: near.collect::<anyhow::Result<_>>()?,
            arguments: self.arguments(draft.scheduler.get_ref(), of_run)?,
            preparation: self.preparation(of_run)?,
            load,
            shows: self.shows(shows)?,
        }))
    }

    /// The words behind the program's name.
    fn arguments(&self, scheduler: &str, run: &RunDraft) -> anyhow::Result<Vec<String>> {
        let Some(text) = &run.command else {
            return Ok(Vec::new());
        };
        let words = program::words(text.get_ref());
        let words = words.map_err(|error| self.wrong(text, Advised::of(&error)))?;
        if words[0] == scheduler {
            return Ok(words[1..].to_vec());
        }
        let what = format!("`{}` is not the scheduler", words[0]);
        let advice = format!("begin with {scheduler}: its version is put in this place");
        Err(self.wrong(text, Advised::new(what, advice)))
    }

    fn preparation(&self, run: &RunDraft) -> anyhow::Result<Preparation> {
        let pairs = |list: &[Spanned<String>]| {
            let pair = |it: &Spanned<String>| {
                policy::setting(it.get_ref()).map_err(|error| self.wrong(it, error))
            };
            list.iter().map(pair).collect::<anyhow::Result<Vec<_>>>()
        };
        let programs = |list: &[Spanned<String>]| {
            let pair = |it: &Spanned<String>| {
                policy::setup(it.get_ref()).map_err(|error| self.wrong(it, error))
            };
            list.iter().map(pair).collect::<anyhow::Result<Vec<_>>>()
        };
        Ok(Preparation {
            set: pairs(&run.set)?,
            run: programs(&run.run)?,
            run_attached: programs(&run.run_attached)?,
            ops: run.ops.clone(),
        })
    }

    fn written(&self, name: &Spanned<String>) -> anyhow::Result<Written> {
        let place = self.source.place(name.span().start);
        (self.load)(name.get_ref()).map_err(|error| error.context(place.to_string()))
    }

    fn duration(&self, text: Option<&Spanned<String>>) -> anyhow::Result<Option<Nanos>> {
        text.map(|it| parse_duration(it.get_ref()).map_err(|error| self.wrong(it, error)))
            .transpose()
    }

    fn near(&self, near: &NearDraft, first: &CaseLoad) -> anyhow::Result<CaseLoad> {
        let own = near.load.as_ref().map(|it| self.written(it)).transpose()?;
        let mut scale: BTreeMap<String, i64> = match own {
            Some(_) => BTreeMap::new(),
            None => first.scale.iter().cloned().collect(),
        };
        scale.extend(near.scale.clone());
        let (own_machine, usual) = (self.machine(&near.machine)?, &first.machine);
        let duration = self.duration(near.duration.as_ref())?;
        Ok(CaseLoad {
            written: own.unwrap_or_else(|| first.written.clone()),
            scale: scale.into_iter().collect(),
            duration: duration.or(first.duration),
            machine: MachineChange {
                cpus: own_machine.cpus.or(usual.cpus),
                smt: own_machine.smt.or(usual.smt),
                llc: own_machine.llc.or(usual.llc),
                node: own_machine.node.or(usual.node),
                hz: own_machine.hz.or(usual.hz),
                kernel: own_machine.kernel.or(usual.kernel),
                profile: own_machine.profile.or_else(|| usual.profile.clone()),
                interleave: own_machine.interleave.or_else(|| usual.interleave.clone()),
                ..usual.clone()
            },
        })
    }

    fn machine(&self, draft: &MachineDraft) -> anyhow::Result<MachineChange> {
        let within = |value: &Option<Spanned<u16>>, most: u16| match value {
            Some(it) if !(1..=most).contains(it.get_ref()) => {
                let what = format!("found {}", it.get_ref());
                let advice = format!("expected 1 to {most}");
                Err(self.wrong(it, Advised::new(what, advice)))
            }
            value => Ok(value.as_ref().map(|it| *it.get_ref())),
        };
        let hz = draft.hz.as_ref().map(|it| {
            let rate = parse_hz(&it.get_ref().to_string());
            rate.map_err(|error| self.wrong(it, error))
        });
        let kernel = draft.kernel.as_ref().map(|it| self.kernel(it));
        let interleave = draft.interleave.as_ref();
        let interleave = interleave.map(|it| self.of::<Interleave>(it));
        Ok(MachineChange {
            cpus: within(&draft.cpus, CPUS_MAX)?,
            smt: within(&draft.smt, SMT_MAX)?,
            llc: draft.llc,
            node: draft.node,
            hz: hz.transpose()?,
            kernel: kernel.transpose()?,
            profile: draft.profile.clone(),
            interleave: interleave.transpose()?,
            ..MachineChange::default()
        })
    }

    fn shows(&self, draft: &Spanned<ShowsDraft>) -> anyhow::Result<CaseSignature> {
        let classes = |list: &[Spanned<String>]| {
            let class = |it: &Spanned<String>| {
                let found = Fault::of_word(it.get_ref());
                found.ok_or_else(|| {
                    let words = Fault::ALL.map(Fault::word).join(", ");
                    let what = format!("`{}` is no class of faults", it.get_ref());
                    self.wrong(it, Advised::new(what, format!("write one of {words}")))
                })
            };
            list.iter().map(class).collect::<anyhow::Result<Vec<_>>>()
        };
        let shows = draft.get_ref();
        let worse = match (&shows.worse, &shows.by) {
            (None, None) => None,
            (Some(goal), Some(factor)) => Some((self.of::<Goal>(goal)?, self.factor(factor)?)),
            _ => return Err(self.wrong(draft, "`worse` and `by` are given together")),
        };
        let signature = CaseSignature {
            classes: classes(&shows.class)?,
            never: classes(&shows.never)?,
            task: shows.task.clone(),
            message: shows.message.clone(),
            worse,
        };
        if signature.is_empty() {
            let what = "it asks for nothing: every run would show it";
            let advice = "give `class`, `message`, or `worse` and `by`";
            return Err(self.wrong(draft, Advised::new(what, advice)));
        }
        Ok(signature)
    }

    fn factor(&self, factor: &Spanned<f64>) -> anyhow::Result<f64> {
        let value = *factor.get_ref();
        if value > 1.0 && value.is_finite() {
            return Ok(value);
        }
        let advice = "expected a factor above 1, such as 1.25";
        Err(self.wrong(factor, Advised::new(format!("found {value}"), advice)))
    }
}
