//! What of a stream of callbacks must be the same on a kernel and in the simulator.

use std::collections::{BTreeMap, BTreeSet};

use model::Op;

use crate::call::{Call, Who};
use crate::exchange::exchanges;

/// `SCX_ENQ_LAST` (kernel 6.18): nothing else is there to run.
pub const ENQ_LAST: u64 = 1 << 41;
/// `DEQUEUE_SAVE | DEQUEUE_MOVE | DEQUEUE_NOCLOCK` (kernel 6.18): a move between task groups.
const MOVED: u64 = 0xe;
/// The flags of `quiescent` at a task's last switch (kernel 6.18).
const DEAD: u64 = 0x19;
/// `SCX_CPU_PREEMPT_RT` (kernel 6.18).
const PREEMPT_RT: u64 = 0;

/// The part of a stream of callbacks that does not depend on the speed of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparable {
    /// What happened to each task of the scenario, in order.
    pub sequences: BTreeMap<String, Vec<String>>,
    /// The orders in which a CPU's callbacks come when it changes its task; see
    /// [`exchanges`].
    pub exchanges: BTreeSet<String>,
}

/// **The filter**: makes the callbacks of a kernel and those of the simulator comparable.
///
/// *Kept*, for each task whose name begins with `tv`, in order: `select_cpu`, `enqueue`,
/// `dequeue`, `runnable`, `running`, `stopping`, `quiescent`, `yield`, `set_weight`,
/// `set_cpumask`, `init_task` and `enable`, with flags, runnable bit, weight, mask, previous CPU,
/// the CPU of the task (`enqueue`) and the executing CPU (`running`). Restarts by a change of
/// nice value, affinity or class stay.
///
/// *Left out*, because a kernel's figure depends on emulation speed or on tasks that are not part
/// of the scenario:
///
/// 1. everything about other tasks, and all times and slices;
/// 2. `tick`, `disable` and `exit_task` (6.18 calls the last two when RCU frees the task);
/// 3. `dispatch` and `update_idle` in the sequences: they belong to a CPU, and are compared as
///    [`exchanges`] of CPU `whole_cpu`, where dispatches that keep the previous task are
///    left out;
/// 4. a task's first steps until it first runs, because a recording knows a task from the moment
///    when it has its name. The sequence of a task that a task of the scenario forked is whole;
/// 5. the restart by which autogroup moves an exiting task (`stopping 0`, `quiescent 0xe`,
///    `runnable 0xe`, `running`) right before its end;
/// 6. *turns*: `stopping 1`, `enqueue 0`, `running`, one after the other in the task's sequence
///    and all at one CPU; the middle is missing when a task exits. If a task of the scenario ran
///    there in between, the turn is written as `turn`, and repetitions count once: how many there
///    are depends on how fast the task computed. If none did, or if the task had neither used up
///    its slice nor yielded nor seen another task of the scenario enqueued, then an unknown task
///    had a hand in it, and the turn is dropped. `stopping 1`, `enqueue LAST`, `running` is
///    likewise written as `last turn`; the CPU must have gone idle in between, and must not have
///    gone idle in a turn without the flag;
/// 7. the turn right behind a `yield`: whether anybody waited at that moment depends on times;
/// 8. `stopping 1`, `running` around a `cpu_release` to anything but a real-time task of the
///    scenario, such as the migration stopper serving others.
///
/// A turn or an autogroup restart that deviates from its form in one place is none, and stays in
/// the sequence word by word: so what is left out is checked all the same.
#[must_use]
pub fn comparable(calls: &[Call], whole_cpu: u16) -> Comparable {
    let names: BTreeSet<&str> = calls.iter().filter_map(|call| call.task.name()).collect();
    let sequences = names
        .into_iter()
        .map(|name| (name.to_owned(), sequence(calls, name)));
    let sequences = sequences
        .filter(|(_, sequence)| !sequence.is_empty())
        .collect();
    Comparable {
        sequences,
        exchanges: exchanges(calls, whole_cpu),
    }
}

/// Whether the callback is part of its task's sequence.
#[must_use]
pub fn is_kept(call: &Call) -> bool {
    call.task.name().is_some()
        && matches!(
            call.op,
            Op::SelectCpu
                | Op::Enqueue
                | Op::Dequeue
                | Op::Runnable
                | Op::Running
                | Op::Stopping
                | Op::Quiescent
                | Op::Yield
                | Op::SetWeight
                | Op::SetCpumask
                | Op::InitTask
                | Op::Enable
        )
}

/// One entry of a sequence while it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Plain {
        text: String,
        cpu: u16,
    },
    Turn,
    LastTurn,
    /// A turn that an unknown task took, or a preemption by one.
    Noise,
}

/// Indexes of the callbacks that are kept of a task.
pub(crate) fn kept_of(calls: &[Call], name: &str) -> Vec<usize> {
    let of_task = |at: &usize| is_kept(&calls[*at]) && calls[*at].task.name() == Some(name);
    (0..calls.len()).filter(of_task).collect()
}

fn sequence(calls: &[Call], name: &str) -> Vec<String> {
    let own = kept_of(calls, name);
    let begin = unseen_steps(calls, &own);
    let mut steps = fold_turns(calls, &own[begin..]);
    drop_yielded_turns(&mut steps);
    steps.retain(|step| *step != Step::Noise);
    drop_autogroup_restart(&mut steps);
    steps.dedup_by(|next, step| next == step && matches!(step, Step::Turn | Step::LastTurn));
    steps.into_iter().map(Step::into_text).collect()
}

impl Step {
    fn plain(call: &Call) -> Self {
        Self::Plain {
            text: call.words(),
            cpu: call.cpu,
        }
    }

    fn is(&self, text: &str) -> bool {
        matches!(self, Self::Plain { text: own, .. } if own == text)
    }

    fn into_text(self) -> String {
        match self {
            Self::Plain { text, .. } => text,
            Self::Turn => "turn".to_owned(),
            Self::LastTurn => "last turn".to_owned(),
            Self::Noise => unreachable!("noise was taken out"),
        }
    }
}

/// How many callbacks lie before the moment from which a recording would know the task.
pub(crate) fn unseen_steps(calls: &[Call], own: &[usize]) -> usize {
    let Some(first) = own.first().map(|&at| &calls[at]) else {
        return 0;
    };
    let forked_in_sight = first.op == Op::InitTask && first.current.name().is_some();
    if forked_in_sight || first.op == Op::Stopping {
        return 0;
    }
    let ran = own.iter().position(|&at| calls[at].op == Op::Running);
    ran.map_or(own.len(), |at| at + 1)
}

fn fold_turns(calls: &[Call], own: &[usize]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = 0;
    while at < own.len() {
        let changes = own[..at].iter().rev().map(|&at| calls[at].op);
        let last_change = changes
            .into_iter()
            .find(|op| matches!(op, Op::Running | Op::Stopping));
        let runs = last_change != Some(Op::Stopping);
        let turn = turn(calls, &own[at..], is_caused(calls, own, at)).filter(|_| runs);
        let (step, length) = turn.unwrap_or_else(|| (Step::plain(&calls[own[at]]), 1));
        steps.push(step);
        at += length;
    }
    steps
}

/// The turn that `own` begins with, if it does, and how many callbacks of the task make it.
fn turn(calls: &[Call], own: &[usize], caused: bool) -> Option<(Step, usize)> {
    let stopping = *own.first()?;
    let (stop, second) = (&calls[stopping], *own.get(1)?);
    let enqueued = calls[second].op == Op::Enqueue;
    let running = if enqueued { *own.get(2)? } else { second };
    let back = &calls[running];
    let in_form = stop.op == Op::Stopping
        && stop.a == 1
        && back.op == Op::Running
        && back.cpu == stop.cpu
        && (!enqueued || calls[second].b == u64::from(stop.cpu));
    if !in_form {
        return None;
    }
    let between: Vec<&Call> = calls[stopping + 1..running]
        .iter()
        .filter(|call| call.cpu == stop.cpu)
        .collect();
    if enqueued {
        let last = ends_idle(calls, &between, &calls[second], back)?;
        let step = if last {
            Step::LastTurn
        } else {
            taken(&between, stop, caused)
        };
        return Some((step, 3));
    }
    let release = between.iter().find(|call| call.op == Op::CpuRelease);
    match release {
        Some(call) if call.b == PREEMPT_RT && call.task.name().is_some() => None,
        Some(_) => Some((Step::Noise, 2)),
        None => Some((taken(&between, stop, caused), 2)),
    }
}

/// Whether the turn left the CPU idle; `None` when flags and idleness contradict each other.
/// Where `update_idle` was not recorded, the task that ran before `back` tells.
fn ends_idle(calls: &[Call], between: &[&Call], enqueue: &Call, back: &Call) -> Option<bool> {
    let on_cpu = |call: &Call| call.op == Op::UpdateIdle && call.b == u64::from(back.cpu);
    let idled = if calls.iter().any(on_cpu) {
        between
            .iter()
            .any(|call| call.op == Op::UpdateIdle && call.a == 1)
    } else {
        back.current == Who::Idle
    };
    let flags = if idled { ENQ_LAST } else { 0 };
    (enqueue.a == flags).then_some(idled)
}

/// Whether the scenario itself explains why the task stops at `own[at]`: its slice is used up, it
/// yielded, or another task of the scenario was just enqueued and may have preempted it.
fn is_caused(calls: &[Call], own: &[usize], at: usize) -> bool {
    let stopping = own[at];
    let stop = &calls[stopping];
    let before = own[..at].last().map(|&at| calls[at].op);
    let started = own[..at]
        .iter()
        .rev()
        .map(|&at| &calls[at])
        .find(|call| call.op == Op::Running);
    let used_up = started.is_none_or(|run| stop.time.since(run.time).get() >= run.a);
    let mut earlier = calls[..stopping].iter().rev();
    let last = earlier.find(|call| call.cpu == stop.cpu && is_kept(call));
    let woke = last.is_some_and(|call| matches!(call.op, Op::Enqueue | Op::Runnable));
    used_up || before == Some(Op::Yield) || woke
}

/// A turn if the scenario caused it and another task of it ran in between.
fn taken(between: &[&Call], stop: &Call, caused: bool) -> Step {
    let ran = |call: &&Call| call.current.name().is_some() && call.current != stop.task;
    if caused && between.iter().any(ran) {
        Step::Turn
    } else {
        Step::Noise
    }
}

fn is_turn(step: &Step) -> bool {
    matches!(step, Step::Turn | Step::LastTurn)
}

fn drop_yielded_turns(steps: &mut Vec<Step>) {
    let mut behind_yield = false;
    steps.retain(|step| {
        let dropped = behind_yield && is_turn(step);
        behind_yield = step.is(Op::Yield.name());
        !dropped
    });
}

/// Takes out `stopping 0`, `quiescent 0xe`, `runnable 0xe`, `running` before the task's end.
fn drop_autogroup_restart(steps: &mut Vec<Step>) {
    let [before @ .., stop, end] = steps.as_slice() else {
        return;
    };
    if !stop.is("stopping 0") || !end.is(&format!("quiescent {DEAD:#x}")) {
        return;
    }
    let turns = before.iter().rev().take_while(|step| is_turn(step)).count();
    let Some(first) = (before.len() - turns).checked_sub(4) else {
        return;
    };
    let cpu = |step: &Step| match step {
        Step::Plain { cpu, .. } => Some(*cpu),
        _ => None,
    };
    let [stop, quiescent, runnable, running] = &before[first..first + 4] else {
        return;
    };
    let Some(here) = cpu(stop) else { return };
    if stop.is("stopping 0")
        && quiescent.is(&format!("quiescent {MOVED:#x}"))
        && runnable.is(&format!("runnable {MOVED:#x}"))
        && running.is(&format!("running cpu{here}"))
    {
        steps.drain(first..first + 4);
    }
}

/// The first sequence that differs, in words; `None` if all are the same. Exchanges are compared
/// over all scenarios of a policy, because noise leaves few of them clean in a single one.
#[must_use]
pub fn difference(recorded: &Comparable, simulated: &Comparable) -> Option<String> {
    for (name, want) in &recorded.sequences {
        let Some(got) = simulated.sequences.get(name) else {
            return Some(format!("{name}: not in the simulation"));
        };
        if want != got {
            return Some(format!("{name}:\n{}", beside(want, got)));
        }
    }
    let extra = simulated
        .sequences
        .keys()
        .find(|name| !recorded.sequences.contains_key(*name));
    extra.map(|name| format!("{name}: not in the recording"))
}

/// Two sequences side by side, marked from the first step in which they differ.
fn beside(want: &[String], got: &[String]) -> String {
    let same = want
        .iter()
        .zip(got)
        .take_while(|(want, got)| want == got)
        .count();
    let lines = (0..want.len().max(got.len())).map(|at| {
        let step = |sequence: &[String]| sequence.get(at).cloned().unwrap_or_default();
        let mark = if at == same { "differs" } else { "" };
        format!("    {:<28} {:<28} {mark}\n", step(want), step(got))
    });
    format!(
        "    {:<28} simulated\n{}",
        "recorded",
        lines.collect::<String>()
    )
}
