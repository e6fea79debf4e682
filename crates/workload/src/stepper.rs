//! The one place that says what a task does next.
//!
//! [`Stepper::next`] walks through a group's [`Code`] and stops at the first operation that a
//! machine must perform: a [`Command`], in which everything is resolved. Loops, conditions,
//! variables, random draws, timer grids, pools, spans and deadlines end here. The stepper has no
//! clock, performs nothing and knows nothing of scheduling; what it must know of the machine it
//! asks a [`World`]. The simulated machine and the real processes of `runslice play` perform the
//! same commands, so both draw the same numbers.

use crate::release::Releases;
use crate::{Code, Instr, Workload};
use model::file::EvalError;
use model::{Advice, Nanos, Rng, SimTime};

mod quick;
mod resolve;

pub(crate) use quick::Placed;
pub use quick::Quick;
use resolve::StepperTurn;
pub use resolve::{CgroupChange, Command, FOREVER, ResourceInstance, TaskRef};

/// No run lasts longer: 292 years.
pub const TIME_MAX: SimTime = SimTime::from_nanos(i64::MAX as u64);

/// The machine as a task's operations see it.
pub trait World {
    /// The time since the begin of the run.
    fn now(&self) -> SimTime;

    /// CPUs of the machine.
    fn cpus(&self) -> u16;

    /// Messages that wait in a channel.
    fn queued(&self, channel: ResourceInstance) -> u64;

    /// The task's children that have not exited. Those that have exited count as waited for.
    fn children(&mut self) -> u32;

    /// Work with a deadline was asked for at `release`, or with `None` it is done. For who must
    /// know what is not done when the task can no longer be asked ([`Stepper::overdue`]).
    fn released(&mut self, _deadline: u32, _release: Option<SimTime>) {}

    /// Called before each instruction.
    ///
    /// # Errors
    /// Why the task may not go on: it has executed too many instructions without a pause.
    fn count_instruction(&mut self) -> Result<(), TaskFault> {
        Ok(())
    }
}

/// Why a task cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskFault {
    /// An expression has no value.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// An index names no instance.
    #[error("index {index} of `{name}` is outside 0..{count}")]
    Index {
        /// The resource or group.
        name: String,
        /// The index.
        index: i64,
        /// How many there are.
        count: u64,
    },
    /// A number is outside what the operation takes.
    #[error("{what} is {value}")]
    Range {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The least that is allowed.
        low: i64,
        /// The most that is allowed.
        high: i64,
    },
    /// A span or a deadline's work ended that had not begun.
    #[error("`{name}` ends without a `{what}({name})` before it")]
    NotBegun {
        /// The span or the deadline.
        name: String,
        /// The operation that should have come first.
        what: &'static str,
    },
    /// A task goes round without any time passing.
    #[error("{steps} operations without any time passing")]
    NoProgress {
        /// How many operations.
        steps: u32,
    },
    /// The task asks for a time that no run reaches.
    #[error("the run would last longer than 292 years")]
    TooLate,
}

impl Advice for TaskFault {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Eval(error) => error.advice(),
            Self::Range { low, high, .. } => Some(format!("expected {low} to {high}")),
            Self::NoProgress { .. } => Some("put a run() or a sleep() into the loop".to_owned()),
            _ => None,
        }
    }
}

impl TaskFault {
    /// `name` ends, but no `what(name)` was before it.
    #[must_use]
    pub fn not_begun(name: &str, what: &'static str) -> Self {
        Self::NotBegun {
            name: name.to_owned(),
            what,
        }
    }
}

/// One task's place in its work, its variables, and its stream of random numbers.
// What a quick step needs stands first, so that the machine's own part can share a line of the
// cache with it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Stepper {
    /// Number of the next instruction.
    at: u32,
    /// Number of the instruction that was taken last.
    taken: u32,
    group: u32,
    /// Whether `began` is known.
    has_begun: bool,
    index: u32,
    began: SimTime,
    variables: Vec<i64>,
    rng: Rng,
    /// When the message that it received last was sent, and what came with it.
    message_sent: SimTime,
    got: i64,
    /// What few tasks keep, so that the others are small.
    kept: Option<Box<Kept>>,
}

/// What a task keeps that has deadlines, measures spans or uses disks.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// Spans that have begun.
    spans: Vec<(u32, SimTime)>,
    releases: Releases,
    /// For each disk that it reads or writes on: the next page.
    streams: Vec<(u32, u64)>,
}

impl Stepper {
    /// Member `index` of `group` at the begin of its `code`, in a run with this seed.
    #[must_use]
    pub fn new(code: &Code, seed: u64, group: u32, index: u32) -> Self {
        Self {
            at: 0,
            taken: 0,
            group,
            has_begun: false,
            index,
            began: SimTime::ZERO,
            variables: vec![0; code.variables as usize],
            rng: Rng::of_task(seed, group, index),
            message_sent: SimTime::ZERO,
            got: 0,
            kept: None,
        }
    }

    /// Makes room for all that this task will ever keep, so that no step allocates.
    pub fn reserve(&mut self, workload: &Workload) {
        let (spans, deadlines) = (workload.spans.len(), workload.deadlines.len());
        if spans > 0 || deadlines > 0 {
            let kept = self.kept();
            kept.spans.reserve(spans);
            kept.releases.reserve(deadlines);
        }
    }

    fn kept(&mut self) -> &mut Kept {
        self.kept.get_or_insert_default()
    }

    /// Gives back the memory of a task that has no next command.
    pub fn shrink(&mut self) {
        self.variables = Vec::new();
        self.kept = None;
    }

    /// Deadlines of releases that are open at `end` and were due before: deadline and how many.
    /// `of` gives the period and the slack of a deadline.
    #[must_use]
    pub fn overdue(
        &self,
        end: SimTime,
        of: impl Fn(u32) -> (Option<Nanos>, Nanos),
    ) -> Vec<(u32, u64)> {
        let kept = self.kept.as_ref();
        kept.map_or_else(Vec::new, |kept| kept.releases.overdue(end, of))
    }

    /// The next command of the task. The last one is [`Command::Exit`].
    ///
    /// # Errors
    /// If the workload's own rules are broken. The task has no next command then.
    ///
    /// # Panics
    /// If `code` is not its group's, or the task has exited.
    #[inline]
    pub fn next<W: World>(
        &mut self,
        code: &Code,
        workload: &Workload,
        world: &mut W,
    ) -> Result<Command, TaskFault> {
        if !self.has_begun {
            self.has_begun = true;
            self.began = world.now();
        }
        loop {
            world.count_instruction()?;
            self.taken = self.at;
            self.at += 1;
            let mut turn = StepperTurn {
                task: self,
                workload,
                world,
            };
            let Some(instr) = code.instrs.get(turn.task.taken as usize) else {
                if let Some(command) = turn.scripted(code)? {
                    return Ok(command);
                }
                continue;
            };
            match instr {
                Instr::Do(op) => {
                    if let Some(command) = turn.operation(op)? {
                        return Ok(command);
                    }
                }
                Instr::Jump(to) => self.at = *to,
                Instr::Unless { cond, to } => {
                    if turn.eval(cond)? == 0 {
                        self.at = *to;
                    }
                }
                Instr::Choose(arms) => self.at = self.choose(arms),
            }
        }
    }

    /// Which group the task belongs to.
    #[must_use]
    #[inline]
    pub const fn group(&self) -> u32 {
        self.group
    }

    /// The task's index within its group.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The line of the instruction that was taken last.
    #[must_use]
    pub fn line(&self, code: &Code) -> u32 {
        let line = code.lines.get(self.taken as usize);
        line.or(code.lines.last()).copied().unwrap_or(0)
    }

    /// The task has received a message or a connection: when it was sent, and what came with it.
    #[inline]
    pub const fn received(&mut self, sent: SimTime, value: i64) {
        (self.message_sent, self.got) = (sent, value);
    }

    /// Sets a variable, as a command asked for.
    pub fn answer(&mut self, slot: u32, value: i64) {
        self.variables[slot as usize] = value;
    }

    /// A number in `0..bound` from the task's stream: what a machine draws for a command.
    pub const fn random(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Takes the same instruction again next time.
    const fn repeat(&mut self) {
        self.at = self.taken;
    }

    fn choose(&mut self, arms: &[(u64, u32)]) -> u32 {
        let sum = arms.iter().map(|(weight, _)| weight).sum();
        let mut draw = self.rng.below(sum);
        for &(weight, to) in arms {
            if draw < weight {
                return to;
            }
            draw -= weight;
        }
        unreachable!("a draw below the sum of the weights falls into an arm")
    }

    /// Where a task goes on; what does not fit the disk's end begins at its start.
    fn next_page(&mut self, disk: u32, pages: u64, size: u64) -> u64 {
        let known = |stream: &(u32, u64)| stream.0 == disk;
        let at = match self.kept().streams.iter().position(known) {
            Some(at) => at,
            None => {
                let next = self.rng.below(size - pages + 1);
                let streams = &mut self.kept().streams;
                streams.push((disk, next));
                streams.len() - 1
            }
        };
        let (_, next) = &mut self.kept().streams[at];
        let page = if *next + pages > size { 0 } else { *next };
        *next = page + pages;
        page
    }
}
