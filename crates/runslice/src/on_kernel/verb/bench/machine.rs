//! The command on this computer, under the kernel's own scheduler or a policy.

use std::cell::RefCell;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use live::preflight::{self, MachineFacts, function_faults};
use live::{Attached, ProcessTree, SchedExt, Timed, TimedEnd, TreeCounts, process};
use load::play::Player;
use stats::compare::CommandFigures;

use super::plan::BenchArm;
use super::played::Beside;
use super::{Bench, EJECTED, Measured, Runner};
use crate::exit::UnsupportedError;
use crate::on_kernel::attach::{self, Attaching, cause};
use crate::on_kernel::command;
use crate::on_kernel::loader::Loader;
use crate::scheduler;

/// From one look at policy and signals to the next; the command's end is seen at once.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// What a computer is, as far as its runs may be held against those of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The release of its kernel.
    pub kernel: String,
    /// How its CPUs call themselves.
    pub cpu: String,
    /// A guest whose clock counts instructions (`runslice vm --det`): fewer instructions on CPUs
    /// without caches that take turns, not less time.
    pub counts: bool,
}

impl Host {
    /// The computer whose files are below `root`.
    pub fn below(root: &Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
        let cpu = read("proc/cpuinfo");
        let cpu = cpu.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "model name").then(|| value.trim().to_owned())
        });
        let cpu = cpu.unwrap_or_default();
        // What `vm` boots such a guest with, and nobody a computer that is in use.
        let words = read("proc/cmdline");
        let counts = words.split_whitespace().any(|word| word == "norandmaps");
        Self {
            kernel: MachineFacts::below(root).release,
            counts: counts && cpu.starts_with("QEMU"),
            cpu,
        }
    }
}

/// This computer.
#[derive(Debug)]
pub struct BenchMachine<'a> {
    command: &'a [String],
    beside: Option<&'a Beside>,
    /// The values of the policies' knobs as they lie in memory, by arm.
    knobs: Vec<Vec<(String, Vec<u8>)>>,
}

impl<'a> BenchMachine<'a> {
    /// Checks that this computer can run all of `arms`.
    ///
    /// # Errors
    /// When it cannot, with the way out, or when a knob is wrong.
    pub fn check(
        request: &'a Bench,
        arms: &[BenchArm],
        beside: Option<&'a Beside>,
    ) -> anyhow::Result<Self> {
        let root = request.root.as_path();
        if !process::is_root() {
            let way = "bench attaches policies and follows the command's processes, which takes \
                       root: try sudo, or `runslice vm -- runslice bench ...`";
            return Err(UnsupportedError::new(way).into());
        }
        let facts = MachineFacts::below(root);
        let mut findings = preflight::judge(&facts);
        for policy in arms.iter().filter_map(|arm| arm.policy.as_ref()) {
            if let Some(program) = &policy.program {
                // Not only after the runs of other schedulers.
                scheduler::find(&program.command)?;
                continue;
            }
            let faults = function_faults(root, &policy.object);
            findings.extend(faults.iter().map(|fault| fault.finding(&facts.release)));
        }
        let attaching = Attaching {
            verb: "bench",
            root,
            // An untested kernel is `run`'s to try.
            untested: false,
            ignore_cgroups: request.ignore_cgroups,
            replace: false,
        };
        let refused: Vec<_> = (findings.iter())
            .filter(|finding| attaching.refuses(finding))
            .collect();
        attach::refuse(&refused)?;
        let knobs = arms.iter().map(|arm| match &arm.policy {
            Some(policy) if policy.program.is_none() => attaching.knobs(policy),
            _ => Ok(Vec::new()),
        });
        Ok(Self {
            command: &request.command,
            beside,
            knobs: knobs.collect::<Result<_, _>>()?,
        })
    }

    /// Attaches the policy of an arm, or lets its program do so, which prints beside `log`.
    fn attach(&self, arm: &BenchArm, at: usize, log: &Path) -> anyhow::Result<Under> {
        let Some(policy) = &arm.policy else {
            return Ok(Under::Own);
        };
        if let Some(program) = &policy.program {
            let mut output = log.as_os_str().to_owned();
            output.push(".scheduler");
            let loader = Loader::start(&arm.name, &program.command, Path::new(&output))?;
            return Ok(Under::Program(RefCell::new(loader)));
        }
        let policy = attach::open(policy, &self.knobs[at])?;
        Ok(Under::Policy(policy.load()?.attach()?))
    }

    fn start(&self, log: &Path) -> anyhow::Result<Timed> {
        let cannot = model::CannotWrite::at(log.display());
        let file = folder::create(log).map_err(&cannot)?;
        let same = file.try_clone().map_err(&cannot)?;
        let words = command::of(self.command);
        let (program, mut command) = words.context("there is no command")?;
        command.stdin(Stdio::null()).stdout(file).stderr(same);
        Timed::start(&mut command).with_context(|| format!("cannot start {program}"))
    }
}

/// What schedules during a run.
enum Under {
    /// The kernel's own scheduler.
    Own,
    /// A policy that this process has attached.
    Policy(Attached),
    /// A scheduler's own program.
    Program(RefCell<Loader>),
}

impl Under {
    fn is_alive(&self) -> bool {
        match self {
            Self::Own => true,
            Self::Policy(attached) => attached.is_alive(),
            // What cannot be watched is told at its end.
            Self::Program(loader) => matches!(loader.borrow_mut().death(), Ok(None)),
        }
    }

    /// Brings the kernel's own scheduler back. Why the policy did not stay or go as it should.
    fn end(self, alive: bool) -> anyhow::Result<Option<String>> {
        match self {
            Self::Own => Ok(None),
            Self::Policy(attached) => {
                let ending = attached.detach()?;
                let normal = alive && ending.as_ref().is_none_or(live::PolicyEnding::is_normal);
                Ok((!normal).then(|| cause(ending.as_ref())))
            }
            Self::Program(loader) => {
                let wrong = loader.into_inner().stop()?;
                Ok(wrong.map(|why| format!("its program {why}")))
            }
        }
    }
}

/// Waits for the command while `is_alive`. `None`: it was cut short.
fn wait(
    timed: &mut Timed,
    mut player: Option<&mut Player>,
    is_alive: impl Fn() -> bool,
) -> anyhow::Result<Option<TimedEnd>> {
    let broken = "the command cannot be waited for";
    loop {
        // A workload's tasks have room for so many words only.
        let pause = player.as_mut().map_or(PAUSE, |player| player.listen());
        if let Some(end) = timed.wait(pause).context(broken)? {
            return Ok(Some(end));
        }
        if process::signal().is_some() || !is_alive() {
            break;
        }
    }
    // Dropped, it is ended at once; this is the polite part.
    timed.ask_to_end();
    let limit = Instant::now() + GRACE;
    while timed.wait(PAUSE).context(broken)?.is_none() && Instant::now() < limit {}
    Ok(None)
}

impl Runner for BenchMachine<'_> {
    fn run(&mut self, arm: &BenchArm, at: usize, log: &Path) -> anyhow::Result<Measured> {
        let kernel = SchedExt::of_this_kernel();
        let under = self.attach(arm, at, log)?;
        let mut player = self.beside.map(Beside::prepare).transpose()?;
        // The workload's tasks are there before, so that the sums are of the command's alone.
        let tree = ProcessTree::of_this_process()?;
        let sequence = kernel.enable_seq();
        if let Some(player) = &player {
            player.start();
        }
        let mut timed = self.start(log)?;
        let is_alive = || under.is_alive();
        let end = wait(&mut timed, player.as_mut(), is_alive)?;
        let played = player.map(Player::stop);
        drop(timed);
        let alive = is_alive();
        let moved = kernel.enable_seq() != sequence;
        let ejection = under.end(alive)?;
        let void = if process::signal().is_some() {
            Some("interrupted".to_owned())
        } else if let Some(ejection) = ejection {
            Some(format!("{EJECTED}: {ejection}"))
        } else if moved {
            Some("another policy was attached meanwhile".to_owned())
        } else {
            None
        };
        let failed = end.filter(|end| !end.status.success());
        let failed = failed.map(|end| format!("the command ended with {}", end.status));
        let broken = played.as_ref().and_then(|played| played.failure.clone());
        let broken = broken.map(|why| format!("the workload beside it: {why}"));
        let told = self.beside.zip(played.as_ref());
        Ok(Measured {
            status: end.and_then(|end| end.status.code()),
            void: void.or(failed).or(broken),
            figures: figures(end, tree.counts()?),
            played: told.map(|(beside, played)| beside.document(played)),
        })
    }

    fn is_interrupted(&self) -> bool {
        process::signal().is_some()
    }
}

fn figures(end: Option<TimedEnd>, tree: TreeCounts) -> CommandFigures {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).ok();
    // Sums that lack tasks would make a scheduler look good.
    let counts = Some(tree.counts).filter(|_| tree.unseen == 0);
    CommandFigures {
        time_ns: end.and_then(|end| nanos(end.took)),
        run_ns: counts.map(|it| it.run_ns),
        wait_ns: counts.map(|it| it.wait_ns),
        slices: counts.map(|it| it.slices),
        migrations: counts.map(|it| it.migrations),
        voluntary: counts.map(|it| it.voluntary),
        involuntary: counts.map(|it| it.involuntary),
        user_ns: end.and_then(|end| nanos(end.user)),
        system_ns: end.and_then(|end| nanos(end.system)),
        memory_bytes: end.map(|end| end.memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_counts_is_told_from_other_computers() {
        let name = format!("runslice-host-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir_all(root.join("proc")).unwrap();
        let host = |cpu: &str, words: &str| {
            let cpu = format!("processor\t: 0\nmodel name\t: {cpu}\n");
            std::fs::write(root.join("proc/cpuinfo"), cpu).unwrap();
            std::fs::write(root.join("proc/cmdline"), words).unwrap();
            Host::below(&root)
        };
        let tcg = "QEMU TCG CPU version 2.5+";
        let counting = host(tcg, "console=ttyS0 nokaslr norandmaps panic=-1\n");
        assert!(counting.counts);
        assert_eq!(counting.cpu, tcg);
        assert!(!host(tcg, "console=ttyS0 panic=-1\n").counts);
        assert!(!host("Xeon", "norandmaps\n").counts);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn sums_that_lack_tasks_are_left_out() {
        let mut tree = TreeCounts::default();
        assert_eq!(figures(None, tree).slices, Some(0));
        tree.unseen = 1;
        assert_eq!(figures(None, tree), CommandFigures::default());
    }
}
