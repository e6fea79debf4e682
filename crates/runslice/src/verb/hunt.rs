//! `runslice hunt POLICY`: random machines and loads, until one shows a fault.

mod asked;
mod races;
mod state;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ask::hunt::Hunt as Question;
use ask::shrink::{Case, Shrunk, Size};
use clap::Args;
use explain::why::{Finding, Right};
use model::PolicySpec;
use serde_json::json;

use crate::bundle::Bundle;
use crate::computer::COMPUTER;
use crate::confirm::Confirm;
use crate::exit::Status;
use crate::explanation::{Explanation, text};
use crate::machine_options::MachineOptions;
use crate::prepare::Prepare;
use crate::say::say;
use crate::scheduler::Schedulers;
use crate::shrink::{LONGEST, shrink};
use crate::violation::{self, Property, Signature};
use crate::{input, interrupt, look, output, wall_time, workload_arg};

use races::HuntedRaces;
use state::{HuntState, Hunted};

/// Arguments of `runslice hunt`.
#[derive(Debug, Args)]
pub struct Hunt {
    /// Policy to search: a built-in name or a BPF object, with knobs after a colon, or a bundle.
    #[arg(required_unless_present = "commands")]
    policy: Option<String>,

    #[command(flatten)]
    schedulers: Schedulers,

    /// Earlier version of the policy: report only faults that it does not show in the same run.
    #[arg(long, value_name = "POLICY")]
    against: Option<String>,

    /// Search for runs that end as this kernel's debug dump tells: of the same class, with the task
    /// in the same kind of queue. Every second trial has as many CPUs as the dump, and each load
    /// has a task like the one that waited. `-` is standard input.
    #[arg(long, value_name = "DUMP")]
    like: Option<PathBuf>,

    /// Workload of all trials: a built-in name or a TOML file. Only its seed, and of the machine
    /// the kernel, HZ and profile are drawn. Default: each trial has a random load.
    #[arg(short, long)]
    workload: Option<String>,

    /// Set a parameter of the workload. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale,
        requires = "workload")]
    scale: Vec<(String, i64)>,

    #[command(flatten)]
    machine: MachineOptions,

    /// Also search for runs that break this property. May be repeated. `wait < 100ms`: no task
    /// waits so long for a CPU. `weights`: of two tasks that always want the CPU, the one of more
    /// weight gets no less of it. `share`: no task lags behind by more than a round, also if the
    /// policy declares no right.
    ///
    /// Without it, only a task that starves and an ejection count.
    #[arg(long, value_name = "PROPERTY", value_parser = Property::parse)]
    property: Vec<Property>,

    /// Also look for races between callbacks in the first 50 ms of each trial, as `check --races`
    /// does, and tell each variable once. No race ends the search. See docs/races.md.
    #[arg(long, conflicts_with = "like")]
    races: bool,

    /// Right by which shares of the CPUs are judged: weight, cgroup, rank, deadline or none.
    /// Default: the one that the policy declares in its section `right`.
    #[arg(long, value_name = "RIGHT", value_parser = ask::right::parse)]
    right: Option<Right>,

    /// Seed of the trials. The same seed tries the same machines and loads.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Number of trials in all, those of an earlier search in the same folder included.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    trials: u64,

    /// Begin no trial after this time, such as 5m or 90s. Default: no limit.
    #[arg(long = "for", value_name = "TIME", value_parser = wall_time::parse)]
    length: Option<Duration>,

    /// Go on after the first fault, and report each fault once.
    #[arg(long)]
    all: bool,

    /// Leave the runs that show faults as they are. Default: make them as small as possible.
    #[arg(long)]
    no_shrink: bool,

    /// Folder for what was found and how far the search is. The same command goes on there.
    /// Default: `hunt-POLICY`.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    #[command(flatten)]
    confirm: Confirm,

    /// Options that prepare the policy.
    #[command(flatten)]
    prepare: Prepare,

    /// Threads. The number does not change what is found. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Trials that are made before the state is written again.
const ROUND: u64 = 16;

/// Searches, and writes what it finds.
///
/// # Errors
/// When the policy or the folder is bad.
pub fn run(request: &Hunt) -> anyhow::Result<Status> {
    let question = request.question()?;
    let folder = request.folder(&question.policy);
    output::make_folder(&folder)?;
    let asked = question.key();
    let mut state = HuntState::open(&folder, &asked)?;
    let mut hunter = Hunter {
        request,
        question,
        folder,
        until: request.length.map(|length| Instant::now() + length),
        reports: Vec::new(),
        races: request.races.then(HuntedRaces::default),
    };
    if let Some(like) = &hunter.question.range.like {
        say("hunt", &format!("looks for {}", like.text()));
    }
    interrupt::keeps("trials", &hunter.folder);
    hunter.finish_last(&mut state)?;
    let before = state.hunted.len();
    hunter.search(&mut state)?;
    hunter.report(&state, before)?;
    let has_race = hunter.races.as_ref().is_some_and(HuntedRaces::has_shown);
    Ok(if state.hunted.is_empty() && !has_race {
        Status::Done
    } else {
        Status::Ejected
    })
}

impl Hunt {
    fn folder(&self, policy: &PolicySpec) -> PathBuf {
        let name: String = policy.name.chars().map(plain).collect();
        let folder = || PathBuf::from(format!("hunt-{name}"));
        self.output.clone().unwrap_or_else(folder)
    }

    /// What a run is judged by.
    fn properties(&self) -> Vec<Property> {
        let own = self.property.iter().copied();
        own.chain(self.right.map(Property::Right)).collect()
    }

    fn jobs(&self) -> NonZeroUsize {
        COMPUTER.jobs(self.jobs)
    }
}

/// What of a policy's name can stand in that of a file.
fn plain(letter: char) -> char {
    match letter {
        '-' | '_' | '.' | '=' | ',' => letter,
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    }
}

/// A fault that this search has found.
struct Report {
    /// With what trials say of it, and the command that shows it.
    explanation: Explanation,
    trial: u64,
    size: Size,
    /// What making it smaller took.
    shrunk: Option<(Size, usize, bool)>,
}

/// What is found in the run of `case`, with what trials say of it.
fn tried(case: &Case, finding: Finding) -> anyhow::Result<Explanation> {
    let explanation = Explanation {
        finding: Some(finding),
        ..Explanation::default()
    };
    let spec = case.spec(&COMPUTER)?;
    explanation.tried(&COMPUTER, &spec, sim::Options::default())
}

struct Hunter<'a> {
    request: &'a Hunt,
    question: Question,
    folder: PathBuf,
    until: Option<Instant>,
    reports: Vec<Report>,
    races: Option<HuntedRaces>,
}

impl Hunter<'_> {
    fn is_over(&self, state: &HuntState) -> bool {
        let is_found = !self.request.all && !state.hunted.is_empty();
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        is_found || is_late || state.next >= self.request.trials
    }

    /// Goes on with a run that an earlier search has found and not made smaller.
    fn finish_last(&mut self, state: &mut HuntState) -> anyhow::Result<()> {
        let Some(last) = state.hunted.last().filter(|it| it.is_whole) else {
            return Ok(());
        };
        let file = self.folder.join(&last.file);
        let named = || file.display().to_string();
        let bundle = Bundle::read(&COMPUTER, &input::bytes(&COMPUTER, &file, input::OBJECT)?)
            .with_context(named)?;
        let mut case = Case::of_bundle(bundle).with_context(named)?;
        if case.policy.program.is_some() {
            // A recording fits no smaller run.
            case.policy.clone_from(&self.question.policy);
        }
        let spec = case.spec(&COMPUTER).with_context(named)?;
        let found = self.question.judge(&COMPUTER, &spec)?;
        if let Some(finding) = found {
            self.report_last(state, &case, finding)?;
            state.write(&self.folder)?;
        }
        Ok(())
    }

    fn search(&mut self, state: &mut HuntState) -> anyhow::Result<()> {
        while !self.is_over(state) {
            let begin = state.next;
            let numbers: Vec<u64> = (begin..(begin + ROUND).min(self.request.trials)).collect();
            let known = self.races.as_ref().map(HuntedRaces::known);
            let question = &self.question;
            let trial = |number: &u64| {
                let found = question.trial(&COMPUTER, *number);
                let found = found.map_err(ask::Error::into_cause)?;
                let races = known.as_deref().map_or(Ok(Vec::new()), |known| {
                    question.races(&COMPUTER, *number, known)
                });
                anyhow::Ok((found, races.map_err(ask::Error::into_cause)?))
            };
            let results = COMPUTER.map(&numbers, self.request.jobs(), "trials", trial)?;
            for (number, (result, races)) in numbers.into_iter().zip(results) {
                state.next = number + 1;
                if let Some(all) = &mut self.races {
                    all.take(number, races, &self.folder)?;
                }
                if let Some((case, finding)) = result {
                    self.take(state, number, &case, finding)?;
                    if !self.request.all {
                        break;
                    }
                }
            }
            state.write(&self.folder)?;
            interrupt::made(state.next - begin);
        }
        Ok(())
    }

    /// Makes a new fault's run small and writes it.
    fn take(
        &mut self,
        state: &mut HuntState,
        number: u64,
        case: &Case,
        finding: Finding,
    ) -> anyhow::Result<()> {
        let signature = Signature::of(&finding).text();
        if state.hunted.iter().any(|it| it.fault == signature) {
            return Ok(());
        }
        let name = format!("{}-{}.bundle", finding.fault.word(), state.hunted.len() + 1);
        output::write_whole(&self.folder.join(&name), &case.capsule(&COMPUTER)?.write())?;
        state.hunted.push(Hunted {
            fault: signature,
            trial: number,
            file: name,
            is_whole: !self.request.no_shrink,
        });
        // Whoever interrupts the search from here on has the run as it was found.
        state.write(&self.folder)?;
        self.report_last(state, case, finding)
    }

    /// Makes the run of the fault that was found last smaller, if that is wanted, and notes what is
    /// reported of it.
    fn report_last(
        &mut self,
        state: &mut HuntState,
        case: &Case,
        finding: Finding,
    ) -> anyhow::Result<()> {
        let Some(hunted) = state.hunted.last_mut() else {
            return Ok(());
        };
        let file = self.folder.join(&hunted.file);
        let size = case.size(&COMPUTER)?;
        let (explanation, shrunk) = if hunted.is_whole {
            say(
                "hunt",
                &format!(
                    "trial {} shows {}: {size}. {} has the run as it was found; it is made \
                     smaller now, for at most {} min",
                    hunted.trial,
                    finding.fault.word(),
                    file.display(),
                    LONGEST.as_secs() / 60
                ),
            );
            let jobs = self.request.jobs();
            let small = shrink(
                (case.clone(), finding.clone()),
                (&self.question.properties, self.question.range.like.as_ref()),
                jobs,
            )?;
            let Shrunk {
                case: smaller,
                finding: same,
                runs,
                is_cut,
            } = small;
            let (tried, small_tried) = (tried(case, finding)?, tried(&smaller, same)?);
            hunted.is_whole = false;
            // A run that shows the same and proves it no more says less.
            if tried.accuses() && !small_tried.accuses() {
                (self.confirmed(case, tried)?, None)
            } else {
                output::write_whole(&file, &smaller.capsule(&COMPUTER)?.write())?;
                let size = smaller.size(&COMPUTER)?;
                let small = self.confirmed(&smaller, small_tried)?;
                (small, Some((size, runs, is_cut)))
            }
        } else {
            (self.confirmed(case, tried(case, finding)?)?, None)
        };
        let trial = hunted.trial;
        let again = violation::explains(&file, &self.question.properties);
        self.reports.push(Report {
            explanation: Explanation {
                again: Some(again),
                ..explanation
            },
            trial,
            size,
            shrunk,
        });
        Ok(())
    }

    /// As `explanation`, with what plays on a kernel say, if that was asked for.
    fn confirmed(&self, case: &Case, explanation: Explanation) -> anyhow::Result<Explanation> {
        let played = match &explanation.finding {
            Some(finding) => self.request.confirm.of(case, finding)?,
            None => None,
        };
        Ok(Explanation {
            played,
            ..explanation
        })
    }

    fn report(&self, state: &HuntState, before: usize) -> anyhow::Result<()> {
        let mut to = output::open(None)?;
        if self.request.json {
            let all = state.hunted.iter().map(|it| {
                let file = self.folder.join(&it.file);
                json!({ "fault": it.fault, "trial": it.trial, "capsule": file })
            });
            let found: Vec<_> = all.collect();
            let mut document = json!({
                "policy": self.question.policy.name,
                "like": self.request.like,
                "seed": self.request.seed,
                "trials": state.next,
                "found": found,
            });
            if let Some(races) = &self.races {
                document["races"] = races.document();
            }
            writeln!(to, "{document:#}")?;
            return Ok(to.flush()?);
        }
        for (at, report) in self.reports.iter().enumerate() {
            if at > 0 {
                writeln!(to)?;
            }
            report.write(&mut to)?;
        }
        if before > 0 {
            for hunted in &state.hunted[..before] {
                let file = self.folder.join(&hunted.file);
                writeln!(to, "Found before: {}, {}", hunted.fault, file.display())?;
            }
        }
        if state.hunted.is_empty() {
            let name = &self.question.policy.name;
            let fault = match &self.request.like {
                Some(dump) => format!("nothing like {}", dump.display()),
                None => "no fault".to_owned(),
            };
            let trials = crate::report::counted(state.next, "trial");
            writeln!(to, "{name}: {fault} in {trials}.")?;
        }
        if let Some(races) = &self.races {
            races.write(&mut to, &self.question.policy.name)?;
        }
        to.flush()?;
        if self
            .reports
            .iter()
            .any(|it| it.shrunk.is_some_and(|(_, _, is_cut)| is_cut))
        {
            say("hunt", "the time for making the run smaller was over");
        }
        Ok(())
    }
}

impl Report {
    fn write(&self, to: &mut dyn std::io::Write) -> anyhow::Result<()> {
        writeln!(to, "Trial {}: {}", self.trial, self.size)?;
        if let Some((size, runs, _)) = &self.shrunk {
            writeln!(to, "Smallest run that shows it: {size} (after {runs} runs)")?;
        }
        writeln!(to)?;
        Ok(write!(
            to,
            "{}",
            text::of(&self.explanation, look::width())
        )?)
    }
}
