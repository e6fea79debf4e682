//! What a candidate is evaluated by, as a TOML file says it.

use std::path::Path;

use anyhow::anyhow;
use model::file::{self, Source};
use model::{Advised, Kernel, MachineSpec, Nanos, Profile, SubSpec, span};
use serde::Deserialize;
use toml::Spanned;

use crate::choose::BASELINE;
use crate::error::UsageError;
use crate::goal::Goal;
use crate::key::bytes_of_policy;
use crate::machine::parse_hz;
use crate::policy::{self, FoundPolicy};
use crate::services::Services;
use crate::workload_arg::Written;
use crate::{input, kernel, limit, machine_file, right, sub};

/// Runs of each load under each scheduler, unless the file says another number.
const DRAWS: u32 = 10;
/// Fewer decide nothing: five pairs that all agree are a chance of one in sixteen.
const DRAWS_MIN: u32 = 6;
/// More are a mistake.
const DRAWS_MAX: u32 = 1_000;
/// Longest run of a load that ends by the clock, unless the file says another time.
const DURATION: Nanos = Nanos::from_secs(2);
/// The same of a load that ends with its work.
const WORK: Nanos = Nanos::from_secs(60);
/// Random loads of the gate's pool, unless the file says another number.
const GENERATED: u32 = 12;
/// BPF instructions of a run, unless the file says another number: no shipped policy needs a tenth
/// of it for the shipped loads.
const INSTRUCTIONS: u64 = 2_000_000_000;
/// Loads, goals and the entries of each list of a machine.
const ENTRIES_MAX: usize = 100;

/// What candidates are evaluated by.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The file's name, for messages.
    pub file: String,
    /// What it says.
    pub text: String,
    /// What candidates are held against.
    pub baseline: FoundPolicy,
    /// What is to become better; empty: the goals that each load states.
    pub goals: Vec<WeightedGoal>,
    /// The loads, those that are held out among them.
    pub loads: Vec<SpecLoad>,
    /// The machines that are drawn.
    pub machine: Machines,
    /// The limits.
    pub limits: Limits,
    /// Runs of each load.
    pub draws: u32,
    /// When a run ends at the latest; `None`: after two seconds if the load has no end of its own,
    /// and after a minute if its work has one.
    pub duration: Option<Nanos>,
    /// Random loads in the gate's and the sealed pool.
    pub generated: u32,
    /// BPF instructions that a run may retire.
    pub instructions: u64,
}

/// A goal with what it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedGoal {
    /// The goal.
    pub goal: Goal,
    /// How much it counts.
    pub weight: f64,
    /// What the mean of a candidate's runs may not pass, in the unit of the goal.
    pub limit: Option<f64>,
}

/// A load with what it counts.
#[derive(Clone, Debug)]
pub struct SpecLoad {
    /// The load, as the file calls it.
    pub name: String,
    /// Its text.
    pub written: Written,
    /// Parameters of it.
    pub scale: Vec<(String, i64)>,
    /// What is attached at its cgroups, below the baseline and below each candidate.
    pub subs: Vec<SubSpec>,
    /// The machine that it asks for.
    pub machine: MachineSpec,
    /// Whether a clock ends it, and not its work.
    pub ends_by_clock: bool,
    /// How much it counts.
    pub weight: f64,
    /// Whether only the gate and the sealed pool have it.
    pub is_held_out: bool,
}

/// Lists of which each draw takes one; an empty one leaves it to the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    /// CPUs.
    pub cpus: Vec<u16>,
    /// Timer ticks a second.
    pub hz: Vec<u32>,
    /// Kernels.
    pub kernels: Vec<Kernel>,
    /// What takes time, where a load does not say it. Where nothing did, a candidate would be good
    /// by switches and computations that a kernel pays for.
    pub profile: Profile,
}

/// What no candidate may do, however good it is otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// A task that waits for so long starves, unless one waits for a quarter of that under the
    /// baseline.
    pub starvation: Nanos,
    /// By how many parts of all CPU time more may idle beside waiting tasks than under the
    /// baseline: 0.02.
    pub idle: f64,
    /// The part of its CPU time under the baseline that each group of tasks gets at least: 0.25.
    pub share: f64,
    /// The right by which shares are judged; `None`: what the candidate declares, or else the
    /// baseline.
    pub right: Option<explain::why::Right>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            starvation: Nanos::from_secs(1),
            idle: 0.02,
            share: 0.25,
            right: None,
        }
    }
}

/// The file as it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    baseline: Option<Spanned<String>>,
    draws: Option<Spanned<u32>>,
    duration: Option<Spanned<String>>,
    #[serde(default)]
    goal: Vec<GoalDraft>,
    #[serde(default)]
    load: Vec<LoadDraft>,
    #[serde(default)]
    machine: MachineDraft,
    #[serde(default)]
    limits: LimitsDraft,
    #[serde(default, rename = "held-out")]
    held_out: HeldOutDraft,
    #[serde(default)]
    budget: BudgetDraft,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GoalDraft {
    goal: Spanned<String>,
    weight: Option<Spanned<f64>>,
    limit: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadDraft {
    load: Spanned<String>,
    weight: Option<Spanned<f64>>,
    #[serde(default)]
    scale: std::collections::BTreeMap<String, i64>,
    #[serde(default)]
    sub: Vec<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineDraft {
    #[serde(default)]
    cpus: Vec<Spanned<u16>>,
    #[serde(default)]
    hz: Vec<Spanned<u32>>,
    #[serde(default)]
    kernel: Vec<Spanned<String>>,
    profile: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsDraft {
    starvation: Option<Spanned<String>>,
    idle: Option<Spanned<f64>>,
    share: Option<Spanned<f64>>,
    right: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeldOutDraft {
    #[serde(default)]
    load: Vec<LoadDraft>,
    generated: Option<Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetDraft {
    instructions: Option<Spanned<u64>>,
}

impl Spec {
    /// Reads the file at `path`, and what it names.
    ///
    /// # Errors
    /// What is wrong, with the file's name, line and column.
    pub fn read(services: &Services<'_>, path: &Path) -> anyhow::Result<Self> {
        let text = plain(&input::text(services, path, input::WRITTEN)?);
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of_text(services, &input::shown(path), folder, text)
    }

    /// Reads a text that would be called `file` and lie in `folder`.
    ///
    /// # Errors
    /// The errors of [`Spec::read`].
    pub fn of_text(
        services: &Services<'_>,
        file: &str,
        folder: &Path,
        text: String,
    ) -> anyhow::Result<Self> {
        let draft: Draft = file::read(&Source { text: &text, file })?;
        let reader = Reader {
            services,
            source: Source { text: &text, file },
            folder,
        };
        let read = reader.spec(&draft)?;
        Ok(Self {
            file: file.to_owned(),
            text,
            ..read
        })
    }
}

impl Spec {
    /// What is asked, as bytes: the text, and what the files that it names have in them, wherever
    /// they lie. An answer to other bytes is one to another question.
    #[must_use]
    pub fn asked(&self) -> Vec<u8> {
        let mut all = vec![
            self.text.clone().into_bytes(),
            bytes_of_policy(&self.baseline.policy),
            format!("{:?}", self.machine.profile).into_bytes(),
        ];
        for load in &self.loads {
            all.push(load.written.text.clone().into_bytes());
            all.push(format!("{:?}", load.machine).into_bytes());
            all.extend(load.subs.iter().map(|it| bytes_of_policy(&it.policy)));
        }
        let mut bytes = Vec::new();
        for part in all {
            bytes.extend_from_slice(&part.len().to_le_bytes());
            bytes.extend_from_slice(&part);
        }
        bytes
    }

    /// When a run of `load` ends at the latest.
    #[must_use]
    pub fn length(&self, load: &SpecLoad) -> Nanos {
        let usual = if load.ends_by_clock { DURATION } else { WORK };
        self.duration.unwrap_or(usual)
    }
}

/// The text as every editor means it: without a mark of its encoding, and with one kind of line
/// ends. Without a key the draws come from it.
fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.replace("\r\n", "\n")
}

struct Reader<'a> {
    services: &'a Services<'a>,
    source: Source<'a>,
    folder: &'a Path,
}

impl Reader<'_> {
    fn spec(&self, draft: &Draft) -> anyhow::Result<Spec> {
        let baseline = match &draft.baseline {
            Some(word) => self.at(word, policy::open(self.services, &self.resolve(word))),
            None => policy::open(self.services, BASELINE),
        }?;
        let mut loads = Vec::new();
        for (drafts, is_held_out) in [(&draft.load, false), (&draft.held_out.load, true)] {
            for load in drafts {
                loads.push(self.load(load, is_held_out)?);
            }
        }
        if draft.load.is_empty() {
            return Err(UsageError::new(Advised::new(
                format!("{}: there is no `[[load]]`", self.source.file),
                "name one, as in: [[load]] load = \"desk\"",
            ))
            .into());
        }
        let goals = draft.goal.iter().map(|it| self.goal(it));
        let goals = goals.collect::<anyhow::Result<Vec<_>>>()?;
        for (what, count) in [("loads", loads.len()), ("goals", goals.len())] {
            if count > ENTRIES_MAX {
                let file = self.source.file;
                return Err(anyhow!(
                    "{file}: {count} {what} are more than {ENTRIES_MAX}"
                ));
            }
        }
        let generated = draft.held_out.generated.as_ref();
        Ok(Spec {
            file: String::new(),
            text: String::new(),
            baseline,
            goals,
            loads,
            machine: self.machines(&draft.machine)?,
            limits: self.limits(&draft.limits)?,
            draws: self.number(draft.draws.as_ref(), DRAWS, DRAWS_MIN..=DRAWS_MAX)?,
            duration: draft
                .duration
                .as_ref()
                .map(|it| self.time(it))
                .transpose()?,
            generated: self.number(generated, GENERATED, 0..=DRAWS_MAX)?,
            instructions: match &draft.budget.instructions {
                Some(number) => *number.get_ref(),
                None => INSTRUCTIONS,
            },
        })
    }

    /// What is wrong with `value`.
    fn wrong<T>(&self, value: &Spanned<T>, what: impl Into<Advised>) -> anyhow::Error {
        let place = self.source.place(value.span().start).to_string();
        UsageError::new(what.into().at(place)).into()
    }

    /// The same of an error that somebody else has found.
    fn at<T, U>(&self, value: &Spanned<T>, found: anyhow::Result<U>) -> anyhow::Result<U> {
        let place = || self.source.place(value.span().start).to_string();
        found.map_err(|error| error.context(place()))
    }

    /// A path in the file is relative to the file.
    fn resolve(&self, word: &Spanned<String>) -> String {
        self.beside(word.get_ref())
    }

    fn beside(&self, word: &str) -> String {
        let name = word.split(':').next().unwrap_or(word);
        let is_path = name.contains('/') || Path::new(name).extension().is_some();
        if is_path && Path::new(name).is_relative() {
            self.folder.join(word).display().to_string()
        } else {
            word.to_owned()
        }
    }

    /// What stands below a policy under a load: `CGROUP=POLICY`.
    fn sub(&self, word: &Spanned<String>) -> anyhow::Result<SubSpec> {
        let text = match word.get_ref().split_once('=') {
            Some((place, policy)) => format!("{place}={}", self.beside(policy)),
            None => word.get_ref().clone(),
        };
        self.at(word, sub::find(self.services, &text))
    }

    fn load(&self, draft: &LoadDraft, is_held_out: bool) -> anyhow::Result<SpecLoad> {
        let name = self.resolve(&draft.load);
        let scale: Vec<_> = draft.scale.clone().into_iter().collect();
        let read = || {
            let written = Written::find(self.services, &name)?;
            let folder = Path::new(&name).parent().unwrap_or(Path::new(""));
            let load = written.parse_beside(self.services, &scale, folder)?;
            anyhow::Ok((written, load))
        };
        let (written, load) = self.at(&draft.load, read())?;
        Ok(SpecLoad {
            ends_by_clock: load.stop.after.is_some(),
            name: load.name.clone(),
            machine: load.machine.clone(),
            written,
            scale,
            subs: draft
                .sub
                .iter()
                .map(|it| self.sub(it))
                .collect::<anyhow::Result<_>>()?,
            weight: self.weight(draft.weight.as_ref())?,
            is_held_out,
        })
    }

    fn goal(&self, draft: &GoalDraft) -> anyhow::Result<WeightedGoal> {
        let goal: Goal = draft
            .goal
            .get_ref()
            .parse()
            .map_err(|error: Advised| self.wrong(&draft.goal, error))?;
        let limit = draft.limit.as_ref();
        let limit = limit.map(|text| {
            let wrong = |what| self.wrong(text, what);
            limit::value_of(goal.measure(), text.get_ref()).map_err(wrong)
        });
        Ok(WeightedGoal {
            limit: limit.transpose()?,
            weight: self.weight(draft.weight.as_ref())?,
            goal,
        })
    }

    fn weight(&self, weight: Option<&Spanned<f64>>) -> anyhow::Result<f64> {
        match weight {
            None => Ok(1.0),
            Some(it) if (1e-6..=1e6).contains(it.get_ref()) => Ok(*it.get_ref()),
            Some(it) => Err(self.wrong(it, "a weight is a number from 0.000001 to 1000000")),
        }
    }

    fn number(
        &self,
        number: Option<&Spanned<u32>>,
        usual: u32,
        range: std::ops::RangeInclusive<u32>,
    ) -> anyhow::Result<u32> {
        match number {
            None => Ok(usual),
            Some(it) if range.contains(it.get_ref()) => Ok(*it.get_ref()),
            Some(it) => {
                let (least, most) = range.into_inner();
                Err(self.wrong(it, format!("it is a number from {least} to {most}")))
            }
        }
    }

    fn time(&self, text: &Spanned<String>) -> anyhow::Result<Nanos> {
        let time = span::parse(text.get_ref()).map_err(|error| self.wrong(text, error))?;
        if time < Nanos::from_millis(100) {
            return Err(self.wrong(text, "it is at least 100ms"));
        }
        Ok(time)
    }

    fn machines(&self, draft: &MachineDraft) -> anyhow::Result<Machines> {
        let hz = draft
            .hz
            .iter()
            .map(|it| parse_hz(&it.get_ref().to_string()).map_err(|error| self.wrong(it, error)));
        let kernels = draft.kernel.iter().map(|it| {
            let found = kernel::parse(it.get_ref());
            found.map_err(|known| self.wrong(it, format!("no such kernel: {known}")))
        });
        let cpus = draft.cpus.iter().map(|it| match it.get_ref() {
            cpus @ 1..=crate::machine::CPUS_MAX => Ok(*cpus),
            _ => Err(self.wrong(it, "a machine has 1 to 1024 CPUs")),
        });
        let profile = draft.profile.as_ref();
        let profile = profile.map(|it| {
            let found = machine_file::find(self.services, &self.resolve(it));
            self.at(it, found)
        });
        self.each_once(&draft.cpus)?;
        self.each_once(&draft.hz)?;
        self.each_once(&draft.kernel)?;
        Ok(Machines {
            cpus: cpus.collect::<anyhow::Result<_>>()?,
            hz: hz.collect::<anyhow::Result<_>>()?,
            kernels: kernels.collect::<anyhow::Result<_>>()?,
            profile: profile.transpose()?.unwrap_or(Profile::DefaultV0),
        })
    }

    /// One that stands twice would be drawn twice as often.
    fn each_once<T: PartialEq + std::fmt::Display>(
        &self,
        list: &[Spanned<T>],
    ) -> anyhow::Result<()> {
        for (at, it) in list.iter().enumerate() {
            if list[..at]
                .iter()
                .any(|before| before.get_ref() == it.get_ref())
            {
                return Err(self.wrong(it, format!("{} stands twice", it.get_ref())));
            }
        }
        Ok(())
    }

    fn limits(&self, draft: &LimitsDraft) -> anyhow::Result<Limits> {
        let usual = Limits::default();
        let right = draft
            .right
            .as_ref()
            .map(|word| right::parse(word.get_ref()).map_err(|error| self.wrong(word, error)));
        Ok(Limits {
            starvation: match &draft.starvation {
                Some(text) => self.time(text)?,
                None => usual.starvation,
            },
            idle: self.part(draft.idle.as_ref(), usual.idle)?,
            share: self.part(draft.share.as_ref(), usual.share)?,
            right: right.transpose()?,
        })
    }

    fn part(&self, part: Option<&Spanned<f64>>, usual: f64) -> anyhow::Result<f64> {
        match part {
            None => Ok(usual),
            Some(it) if (0.0..=1.0).contains(it.get_ref()) => Ok(*it.get_ref()),
            Some(it) => Err(self.wrong(it, "it is a part, from 0 to 1")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Advice as _;

    use super::*;

    fn read(text: &str) -> Result<Spec, crate::Error> {
        let services = Services::default();
        Ok(Spec::of_text(
            &services,
            "e.toml",
            Path::new(""),
            text.to_owned(),
        )?)
    }

    #[test]
    fn a_file_with_one_load_is_enough() {
        let spec = read("[[load]]\nload = \"desk\"\n").unwrap();
        assert_eq!(spec.baseline.policy.name, "eevdf");
        assert_eq!((spec.loads[0].name.as_str(), spec.draws), ("desk", 10));
        assert_eq!(spec.limits, Limits::default());
        assert!(spec.goals.is_empty() && !spec.loads[0].is_held_out);
        assert_eq!(spec.machine.profile, Profile::DefaultV0);
    }

    #[test]
    fn goals_have_weights_and_limits_in_their_own_unit() {
        let text = "baseline = \"o1\"\n[[goal]]\ngoal = \"p99 wait\"\nweight = 2.5\n\
                    limit = \"5ms\"\n[[goal]]\ngoal = \"late\"\nlimit = \"2%\"\n\
                    [[load]]\nload = \"desk\"\nscale = { hogs = 2 }\n\
                    [held-out]\ngenerated = 3\nload = [{ load = \"web\" }]\n\
                    [machine]\ncpus = [2, 8]\nkernel = [\"7.2\"]\nprofile = \"ideal\"\n";
        let spec = read(text).unwrap();
        let limits: Vec<_> = spec.goals.iter().map(|it| (it.weight, it.limit)).collect();
        assert_eq!(limits, [(2.5, Some(5e6)), (1.0, Some(20_000.0))]);
        assert_eq!(spec.loads[0].scale, [("hogs".to_owned(), 2)]);
        assert!(spec.loads[1].is_held_out && spec.generated == 3);
        assert_eq!(spec.machine.cpus, [2, 8]);
        assert_eq!(spec.machine.profile, Profile::Ideal);
    }

    #[test]
    fn schedulers_below_are_of_one_load() {
        let text = "[[load]]\nload = \"desk\"\nsub = [\"app@1s=fifo\"]\n\
                    [[load]]\nload = \"web\"\n";
        let spec = read(text).unwrap();
        let [sub] = &spec.loads[0].subs[..] else {
            panic!("{:?}", spec.loads[0].subs)
        };
        assert_eq!((&*sub.cgroup, &*sub.policy.name), ("app", "fifo"));
        assert_eq!(sub.attach_at, Nanos::from_secs(1));
        assert!(spec.loads[1].subs.is_empty());
    }

    /// The text stays as it is while somebody builds anew what it names.
    #[test]
    fn what_the_file_names_belongs_to_what_is_asked() {
        let plain = || read("[[load]]\nload = \"desk\"\nsub = [\"app=fifo\"]\n").unwrap();
        let mut all = vec![plain().asked()];
        assert_eq!(all[0], plain().asked());
        let mut with = |change: fn(&mut Spec)| {
            let mut spec = plain();
            change(&mut spec);
            all.push(spec.asked());
        };
        with(|it| it.text.push('\n'));
        with(|it| Arc::make_mut(&mut it.baseline.policy.object)[100] ^= 1);
        with(|it| Arc::make_mut(&mut it.loads[0].subs[0].policy.object)[100] ^= 1);
        with(|it| it.loads[0].written.text.push('\n'));
        with(|it| it.loads[0].machine.smt = 2);
        with(|it| it.machine.profile = Profile::Ideal);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        let mut elsewhere = plain();
        elsewhere.loads[0].written.file = "/else/where.toml".to_owned();
        assert_eq!(elsewhere.asked(), plain().asked());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_what_to_do() {
        for (text, want) in [
            ("draws = 10\n", "e.toml: there is no `[[load]]`"),
            (
                "draws = 2\n[[load]]\nload = \"desk\"\n",
                "e.toml:1:9: it is a number from 6",
            ),
            (
                "[[load]]\nload = \"dask\"\n",
                "e.toml:2:8: no workload is called `dask`",
            ),
            (
                "[[load]]\nlod = \"desk\"\n",
                "e.toml:2:1: unknown field `lod`",
            ),
            (
                "[[goal]]\ngoal = \"late\"\nlimit = \"5ms\"\n[[load]]\nload = \"desk\"\n",
                "e.toml:3:9: `5ms` is no limit of this goal",
            ),
            (
                "[machine]\nhz = [123]\n[[load]]\nload = \"desk\"\n",
                "e.toml:2:7: a kernel ticks 100",
            ),
            (
                "[machine]\nprofile = \"fast\"\n[[load]]\nload = \"desk\"\n",
                "e.toml:2:11: no profile is called `fast`",
            ),
            (
                "[limits]\nshare = 25\n[[load]]\nload = \"desk\"\n",
                "e.toml:2:9: it is a part, from 0 to 1",
            ),
            (
                "[[load]]\nload = \"desk\"\nsub = [\"app\"]\n",
                "e.toml:3:8: --sub `app` is no cgroup and policy",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().starts_with(want), "{error}");
        }
        let advice = read("draws = 10\n").unwrap_err().advice().unwrap();
        assert!(advice.starts_with("name one"), "{advice}");
    }
}
