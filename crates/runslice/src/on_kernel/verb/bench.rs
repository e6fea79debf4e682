//! `runslice bench POLICY,POLICY -- COMMAND`.

mod folder;
mod machine;
mod plan;
mod played;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};

use ask::compare::{Family, is_decided};
use ask::sets::{File, own};
use clap::Args;
use live::process;
use model::Nanos;
use serde_json::{Value, json};
use show::format::COMPARISONS;
use stats::compare::{Choice, CommandFigures, MetricRow, Settings, compare};

use crate::comparison::{Compared, Judging, form_of, page, status, write};
use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::look::WidthOptions;
use crate::report::{Format, format_of};
use crate::scheduler::number_of_file;
use crate::{interrupt, output};

use folder::Folder;
use machine::{BenchMachine, Host};
use plan::{AGAIN, BenchArm, BenchTurn};
use played::Beside;

/// Version of the plan and of its runs; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 1;
/// A scheduler under which so many runs in a row are void gets no more.
const VOID_MAX: usize = 3;
/// How often the runs of `--until-decided` are looked at. With more looks each had less of the
/// probability, with fewer a bench would end later.
const LOOKS: u32 = 4;
/// The fewest runs that have so many looks: fewer than 5 runs a look decide little.
const LOOKED_AT_MIN: u32 = 5 * LOOKS;
/// How the reason begins when the kernel has ejected the policy.
const EJECTED: &str = "ejected";

/// Arguments of `runslice bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// Policies, with spaces or commas between them, and knobs after a colon:
    /// `mlfq,staircase:compute=1`.
    ///
    /// The kernel's own scheduler, `default`, is always measured as two more arms. The difference
    /// between these two is noise.
    #[arg(value_name = "POLICIES", required_unless_present = "schedulers")]
    policies: Vec<String>,

    /// Also measure a scheduler's own program, for example `--scheduler 'scx_lavd --performance'`.
    /// May be repeated.
    ///
    /// Each of its runs starts the program, waits until its policy is attached, and interrupts it
    /// afterwards. What it prints goes into the folder. It runs as root.
    #[arg(long = "scheduler", value_name = "COMMAND")]
    schedulers: Vec<String>,

    /// Runs under each scheduler. docs/comparing.md says how many you need.
    #[arg(long, value_name = "NUMBER", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,

    /// Stop as soon as every goal is decided, and at the latest after `--runs`, which must be 20 or
    /// more.
    ///
    /// Checks the goals after a quarter, half, three quarters and all of the runs. The error of 5 %
    /// is divided among these four checks. So a decision needs larger differences or more runs than
    /// one check at the end.
    #[arg(long)]
    until_decided: bool,

    /// Runs under each scheduler before the measured ones. They fill caches and do not count.
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    warmup: u32,

    /// Seed for the order of the schedulers in each block of runs.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Folder for the runs and the output of the command, for `compare`. An interrupted bench
    /// continues if you name its folder again.
    #[arg(short = 'd', long, value_name = "DIR", default_value = "bench-results")]
    folder: PathBuf,

    /// Run this workload beside each run of the command, and compare its missed deadlines, too: a
    /// built-in name such as `screen`, or a file.
    #[arg(long, value_name = "WORKLOAD")]
    play: Option<String>,

    /// Set a parameter of that workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "play",
        value_parser = crate::workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    #[command(flatten)]
    judging: Judging,

    /// Output format of the verdict. Default: what the ending of the output file stands for (.html,
    /// .json, .csv, .parquet), else `human`.
    #[arg(long, value_parser = format_of(COMPARISONS))]
    format: Option<Format>,

    /// Write the verdict to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    look: WidthOptions,

    /// Attach even if control groups have CPU quotas. A policy does not enforce these quotas.
    #[arg(long)]
    ignore_cgroups: bool,

    /// Read the system files below this folder instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,

    /// Command to measure. Its output goes into the folder.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// What came of one run of the command.
#[derive(Clone, Debug, Default)]
struct Measured {
    /// `None` when a signal ended it or it was cut short.
    status: Option<i32>,
    /// Why the run does not count.
    void: Option<String>,
    figures: CommandFigures,
    /// What the workload beside it met and missed, if there was one.
    played: Option<Value>,
}

/// Whoever runs the command.
trait Runner {
    /// Runs it once under `arm`, number `at` of all; what it prints goes to `log`.
    fn run(&mut self, arm: &BenchArm, at: usize, log: &Path) -> anyhow::Result<Measured>;

    /// Whether somebody wants it to end.
    fn is_interrupted(&self) -> bool;

    /// Says how far it is.
    fn tell(&mut self, text: &str) {
        say(text);
    }
}

/// Runs the command under each scheduler in turn and says what differs.
///
/// # Errors
/// When the computer is unsuitable, the command does not even warm up, or a file cannot be written.
pub fn run(request: &Bench) -> anyhow::Result<Status> {
    let form = request.form()?;
    output::can_write(&[("--output", request.output.as_deref())])?;
    let arms = plan::arms(&request.policies, &request.schedulers)?;
    let looks = request.looks()?;
    let beside = request.beside()?;
    process::catch_signals();
    let mut machine = BenchMachine::check(request, &arms, beside.as_ref())?;
    if let Err(error) = process::lock_memory() {
        say(&format!(
            "cannot keep its memory from being swapped: {error}"
        ));
    }
    let host = Host::below(&request.root);
    let plan = request.plan(&arms, &host, beside.as_ref());
    let mut folder = Folder::open(&request.folder, &plan)?;
    interrupt::keeps("runs", &request.folder);
    let turns = plan::turns(arms.len(), request.warmup, request.runs, request.seed);
    say(&format!(
        "{} runs: {} of each scheduler, order of seed {}, results in {}",
        turns.len(),
        request.runs,
        request.seed,
        request.folder.display()
    ));
    let Some(runs) = request.watch(&mut machine, &arms, &looks, &mut folder)? else {
        return Ok(Status::Interrupted);
    };
    let mut to = output::open_form(form.export(), request.output.as_deref())?;
    let status = request.conclude(&arms, &host, runs, &mut to)?;
    to.flush()?;
    match folder.ejected() {
        0 => Ok(status),
        _ => Ok(Status::Ejected),
    }
}

/// Every run that is not there yet; false when somebody interrupts.
fn all(
    runner: &mut dyn Runner,
    arms: &[BenchArm],
    turns: &[BenchTurn],
    folder: &mut Folder,
) -> anyhow::Result<bool> {
    let mut in_a_row = vec![0; arms.len()];
    for turn in turns {
        let arm = &arms[turn.arm];
        if let Some(void) = folder.done.get(&turn.number) {
            in_a_row[turn.arm] = void.as_ref().map_or(0, |_| in_a_row[turn.arm] + 1);
            continue;
        }
        if runner.is_interrupted() {
            return Ok(false);
        }
        let run = match in_a_row[turn.arm] {
            VOID_MAX.. => Measured {
                void: Some(format!("given up after {VOID_MAX} void runs in a row")),
                ..Measured::default()
            },
            _ => runner.run(arm, turn.arm, &folder.log(*turn))?,
        };
        if runner.is_interrupted() {
            return Ok(false);
        }
        runner.tell(&in_words(*turn, turns.len(), arm, &run));
        check_warm(*turn, arm, &run, &folder.log(*turn))?;
        in_a_row[turn.arm] = match run.void {
            Some(_) => in_a_row[turn.arm] + 1,
            None => 0,
        };
        folder.add(*turn, arm, &run)?;
        interrupt::made(1);
    }
    Ok(true)
}

/// A command that fails already under the kernel's own scheduler is no load.
fn check_warm(turn: BenchTurn, arm: &BenchArm, run: &Measured, log: &Path) -> anyhow::Result<()> {
    match &run.void {
        Some(void) if turn.block == 0 && arm.policy.is_none() => {
            anyhow::bail!(
                "{void}, under the kernel's own scheduler; see {}",
                log.display()
            )
        }
        _ => Ok(()),
    }
}

fn in_words(turn: BenchTurn, all: usize, arm: &BenchArm, run: &Measured) -> String {
    let what = match (&run.void, run.figures.time_ns) {
        (Some(void), _) => format!("void, {void}"),
        (None, Some(time)) => Nanos::new(time).to_string(),
        (None, None) => "no time".to_owned(),
    };
    let kind = if turn.block == 0 { ", warm-up" } else { "" };
    format!("{} of {all}, {}{kind}: {what}", turn.number, arm.name)
}

impl Bench {
    /// The workload that is played beside the command.
    fn beside(&self) -> anyhow::Result<Option<Beside>> {
        let name = self.play.as_deref();
        name.map(|name| Beside::find(name, &self.scale)).transpose()
    }

    /// After how many runs of each scheduler the runs are looked at.
    ///
    /// # Errors
    /// When there are too few runs for the looks.
    fn looks(&self) -> Result<Vec<u32>, UsageError> {
        if !self.until_decided {
            Ok(vec![self.runs])
        } else if self.runs < LOOKED_AT_MIN {
            Err(UsageError::new(format!(
                "--until-decided checks {LOOKS} times and needs --runs {LOOKED_AT_MIN} or more"
            )))
        } else {
            Ok((1..=LOOKS)
                .map(|at| (self.runs * at).div_ceil(LOOKS))
                .collect())
        }
    }

    /// Makes runs until a look finds every goal decided, or the last look. Returns how many there
    /// are of each scheduler, or `None` when somebody interrupts.
    ///
    /// # Errors
    /// When a file cannot be written or read.
    fn watch(
        &self,
        runner: &mut dyn Runner,
        arms: &[BenchArm],
        looks: &[u32],
        folder: &mut Folder,
    ) -> anyhow::Result<Option<u32>> {
        let turns = plan::turns(arms.len(), self.warmup, self.runs, self.seed);
        for &runs in looks {
            let until = turns.partition_point(|turn| turn.block <= runs);
            if !all(runner, arms, &turns[..until], folder)? {
                return Ok(None);
            }
            if runs < self.runs && self.is_all_decided()? {
                runner.tell(&format!("every goal is decided after {runs} runs of each"));
                return Ok(Some(runs));
            }
        }
        Ok(Some(self.runs))
    }

    /// Whether nothing that can be compared is undecided.
    fn is_all_decided(&self) -> anyhow::Result<bool> {
        let (_, rows, _) = self.judge()?;
        let mut goals = rows
            .iter()
            .filter(|row| row.is_goal && row.result.is_ok())
            .peekable();
        Ok(goals.peek().is_some() && goals.all(is_decided))
    }

    /// All runs of the folder, compared.
    fn judge(&self) -> anyhow::Result<(Family, Vec<MetricRow>, Settings)> {
        let file = File::read(&COMPUTER, &self.folder)?;
        let settings = self.judging.settings(file.looks);
        let family = Family::of(vec![file], None, None)?;
        let rows = compare(&family.questions(), Choice::Stated, &settings);
        Ok((family, rows, settings))
    }

    /// Everything that must be the same for runs to be of one kind.
    fn plan(&self, arms: &[BenchArm], host: &Host, beside: Option<&Beside>) -> Value {
        let object = |arm: &BenchArm| {
            let policy = arm.policy.as_ref()?;
            Some(match &policy.program {
                Some(program) => format!("{:032x}", number_of_file(&program.command)),
                None => format!("{:016x}", model::Fnv1a::of(policy.object.iter().copied())),
            })
        };
        let arms: Vec<Value> = arms
            .iter()
            .map(|arm| json!({"name": arm.name, "object": object(arm)}))
            .collect();
        let mut plan = json!({
            "runslice_bench": VERSION,
            "command": self.command,
            "arms": arms,
            "again": AGAIN,
            "runs": self.runs,
            "warmup": self.warmup,
            "seed": self.seed,
            "kernel": host.kernel,
            "cpu": host.cpu,
            "counts": host.counts,
            "cpus": live::record::cpus(),
        });
        if self.until_decided {
            plan["looks"] = json!(LOOKS);
        }
        if let Some(beside) = beside {
            plan["play"] = beside.plan();
        }
        plan
    }

    /// In which form the verdict is wanted.
    fn form(&self) -> Result<Format, UsageError> {
        form_of(self.format, self.output.as_deref())
    }

    /// The verdict on all runs of the folder, `runs` of each scheduler.
    fn conclude(
        &self,
        arms: &[BenchArm],
        host: &Host,
        runs: u32,
        to: &mut dyn Write,
    ) -> anyhow::Result<Status> {
        let (family, rows, settings) = self.judge()?;
        let form = self.form()?;
        let heading = format!(
            "kernel {}: {runs} runs of each scheduler in blocks of random order, seed {}",
            host.kernel, self.seed
        );
        let compared = Compared {
            family: &family,
            rows: &rows,
            settings: &settings,
        };
        if form == Format::Html {
            let mut page = page(&compared);
            page.title = format!("{}, {heading}", page.title);
            if self.play.is_some() {
                let runs = own::lines(&COMPUTER, &self.folder.join(own::RUNS))?;
                page.fold(
                    "played",
                    "The workload beside the command",
                    &played::table(arms, &runs),
                );
            }
            page.write(to)?;
            to.flush()?;
            output::announce(&page.verdict, self.output.as_deref())?;
            return Ok(status(&rows, None));
        }
        if form == Format::Human {
            writeln!(to, "{heading}\n")?;
        }
        write(&compared, form, self.look.width(), to)?;
        if form == Format::Human && self.play.is_some() {
            let runs = own::lines(&COMPUTER, &self.folder.join(own::RUNS))?;
            write!(to, "\n{}", played::table(arms, &runs))?;
        }
        Ok(status(&rows, None))
    }
}

fn say(text: &str) {
    crate::say::say("bench", text);
}
