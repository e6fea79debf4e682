//! One play, from a request to events and a result.

use std::thread;
use std::time::Duration;

use live::PolicyEnding;
use live::record::{
    self, Cost, Depth, Extras, MeasuredTask, Mended, Others, ProgramCost, Recorder, Records, Totals,
};
use model::{Exit, ExitKind, MachineSpec, Nanos, SimTime, Sink, Summary};
use workload::RunSpec;

use super::{Played, Player, Sum};
use crate::Error;

/// Between the recorder's start and that of the tasks. Its thread maps a large buffer, and the
/// kernel puts away what it needed to load programs; by a recording, the first kept a CPU of a
/// counting VM for 11 ms.
const SETTLE: Duration = Duration::from_millis(100);

/// How a workload is played, besides what its [`RunSpec`] says.
pub struct PlayOptions<'a> {
    /// How much is recorded.
    pub depth: Depth,
    /// Also measures what recording costs.
    pub measure_cost: bool,
    /// The scheduler under which it is played.
    pub scheduler: &'a mut dyn PlayScheduler,
    /// Asked every few milliseconds whether to end the play.
    pub stop: &'a mut dyn FnMut() -> bool,
}

/// The scheduler of a play. Whoever attaches policies implements it.
pub trait PlayScheduler {
    /// Attaches it, when all tasks exist and sleep. Tasks that were forked under it would be
    /// children of whoever started the play, and begin with what such a parent leaves to them,
    /// which is another thing in each play. These begin as those of a simulated machine do.
    ///
    /// # Errors
    /// When the kernel refuses it.
    fn attach(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the kernel still has it; a play ends with its scheduler.
    fn is_alive(&self) -> bool {
        true
    }

    /// Detaches it, when the tasks have gone.
    ///
    /// # Errors
    /// When the kernel's own scheduler does not come back, or what the policy has counted cannot
    /// be read.
    fn detach(&mut self) -> Result<Detached, Error> {
        Ok(Detached::default())
    }
}

/// The scheduler that is there, whichever it is: nothing was attached for the play.
#[derive(Clone, Copy, Debug)]
pub struct AsItIs;

impl PlayScheduler for AsItIs {}

/// What is left of a scheduler.
#[derive(Clone, Debug, Default)]
pub struct Detached {
    /// How the kernel says that it ended; `None` if it did not say.
    pub ending: Option<PolicyEnding>,
    /// What it counted.
    pub counters: Vec<(String, u64)>,
}

/// What only a real machine has to tell of a run.
#[derive(Clone, Debug, Default)]
pub struct OfKernel {
    /// The machine, with the tick that was measured.
    pub machine: MachineSpec,
    /// By task name, what the kernel measured itself; empty unless histograms were asked for.
    pub measured: Vec<(String, MeasuredTask)>,
    /// Numbers of the whole machine; of [`Depth::Events`] only how many were lost.
    pub totals: Totals,
    /// What the records of events have beyond the least; `None` without them.
    pub extras: Option<Extras>,
    /// Sums of counters; empty if each count is an event.
    pub sums: Vec<Sum>,
    /// Spans, deadlines and counts for which there was no room.
    pub lost: u64,
    /// What had to be inferred.
    pub mended: Mended,
    /// How often each tracing program ran, and what it took if that was asked for.
    pub costs: Vec<ProgramCost>,
    /// CPU time that all tasks of the machine used meanwhile.
    pub busy: Nanos,
    /// How long the tasks had slept under their scheduler before it began.
    pub before: Nanos,
    /// How the policy ended.
    pub ending: Option<PolicyEnding>,
    /// Whether it ended before the play did.
    pub ejected: bool,
}

/// What the tracing said, and when.
struct Traced {
    recording: record::Recording,
    costs: Vec<ProgramCost>,
    busy: Nanos,
    hz: Option<u32>,
}

/// Plays the workload of `spec` with real processes: the counterpart of `sim::run`. The policy of
/// `spec` is what [`PlayOptions::scheduler`] attaches; without an object it only has the name of
/// the scheduler that is there. Events go to `sink` when the play is over: with
/// [`Depth::Histograms`] those of the tasks only.
///
/// The calling process must have one thread, because tasks are forked from it.
///
/// # Errors
/// When the system refuses files, memory, processes, the policy or tracing, which take root, and
/// when a task cannot go on. A policy that the kernel ejects is no error.
pub fn play(
    spec: &RunSpec,
    how: PlayOptions<'_>,
    sink: &mut dyn Sink,
) -> Result<(Summary, OfKernel), Error> {
    let limit = [spec.duration, spec.workload.stop.after];
    let limit = limit.into_iter().flatten().min();
    let PlayOptions {
        depth,
        measure_cost,
        scheduler,
        stop: asked,
    } = how;
    let cost = measure_cost.then(Cost::measure).transpose()?;
    let tell_counts = depth == Depth::Events;
    // Tasks are forked before anything makes a second thread.
    let player = Player::prepare(&spec.workload, spec.seed, spec.machine.cpus, tell_counts)?;
    scheduler.attach()?;
    let prepared = record::clock();
    // The tasks exist; from here on nobody may keep the player from ending them in time.
    record::be_urgent();
    // Which CPU a thread takes from the tasks every 50 ms is no matter of chance.
    let bound = record::Bound::to_first_cpu();
    let recorder = Recorder::start(depth, !spec.policy.object.is_empty())?;
    thread::sleep(SETTLE);
    let mut stop = || asked() || !scheduler.is_alive();
    let (played, traced) = trace(player, recorder, limit, &mut stop)?;
    drop((cost, bound));
    let ejected = !scheduler.is_alive();
    let Detached { ending, counters } = scheduler.detach()?;
    if let Some(why) = played.failure {
        return Err(Error::Play { why: why.into() });
    }
    let machine = MachineSpec {
        hz: traced.hz.unwrap_or(spec.machine.hz),
        ..spec.machine.clone()
    };
    let is_whole = depth == Depth::Events;
    let mut header = (spec.workload).header(&spec.policy.name, &machine, spec.seed, limit);
    let mut records = Records {
        began: played.began,
        ended: played.ended,
        cpus: spec.machine.cpus,
        ..traced.recording.records
    };
    records.raws.extend(&played.said);
    let events = record::convert(&records, &header.groups, Others::Together);
    header.groups = events.groups;
    sink.begin(&header);
    sink.events(&events.events);
    sink.finish(events.end);
    let mut summary = summary(ending.clone().unwrap_or_default(), counters, events.end);
    summary.growing = played.growing;
    let of_kernel = OfKernel {
        machine,
        measured: traced.recording.measured,
        totals: traced.recording.totals,
        extras: is_whole.then_some(traced.recording.extras),
        sums: played.sums,
        lost: played.lost,
        mended: events.mended,
        costs: traced.costs,
        busy: traced.busy,
        before: Nanos::new(played.began.saturating_sub(prepared)),
        ending,
        ejected,
    };
    Ok((summary, of_kernel))
}

/// Lets the tasks go, and records until the play is over.
fn trace(
    mut player: Player,
    mut recorder: Recorder,
    limit: Option<Nanos>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<(Played, Traced), Error> {
    let before = (record::schedstat(), record::clock());
    player.start();
    player.wait(limit, stop);
    // Ending a recording takes a while, in which tasks would go on.
    recorder.pause()?;
    let after = (record::schedstat(), record::clock());
    let costs = recorder.cost();
    let played = player.stop();
    let passed = Duration::from_nanos(after.1.saturating_sub(before.1));
    let traced = Traced {
        recording: recorder.stop()?,
        costs,
        busy: record::busy_between(&before.0, &after.0),
        hz: record::hz_between(&before.0, &after.0, passed),
    };
    Ok((played, traced))
}

/// The result in the words of the simulated machine; what the kernel does not count is empty.
fn summary(ending: PolicyEnding, counters: Vec<(String, u64)>, end: SimTime) -> Summary {
    let kind = u32::try_from(ending.kind).ok().and_then(ExitKind::of);
    Summary {
        end,
        exit: Exit {
            kind: kind.unwrap_or(ExitKind::Unreg),
            code: ending.code,
            message: ending.message,
            time: end,
            fault: None,
        },
        cpus: Vec::new(),
        tasks: Vec::new(),
        counters: Vec::new(),
        spent: Vec::new(),
        policy_counters: counters,
        printed: String::new(),
        instructions: 0,
        callbacks: 0,
        starved: Vec::new(),
        excused: None,
        hardware: None,
        growing: Vec::new(),
        blocked: Vec::new(),
        watchdog: None,
        subs: Vec::new(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_the_kernels_kind_and_message() {
        let ending = PolicyEnding {
            kind: 1026,
            code: 7,
            reason: "runnable task stall".to_owned(),
            message: "a stalled".to_owned(),
        };
        let counters = vec![("boosts".to_owned(), 3)];
        let summary = summary(ending, counters.clone(), SimTime::from_nanos(9));
        assert_eq!(summary.exit.kind, ExitKind::ErrorStall);
        assert_eq!(
            (summary.exit.code, &*summary.exit.message),
            (7, "a stalled")
        );
        assert_eq!(
            (summary.end, summary.policy_counters),
            (SimTime::from_nanos(9), counters)
        );
        // Without a word of the kernel it was detached as everybody is.
        let quiet = super::summary(PolicyEnding::default(), Vec::new(), SimTime::ZERO);
        assert_eq!(quiet.exit.kind, ExitKind::Unreg);
    }
}
