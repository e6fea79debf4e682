//! The order of callbacks while a CPU changes its task.

use std::collections::{BTreeMap, BTreeSet};

use model::Op;

use crate::call::{Call, Who};
use crate::comparable::{kept_of, unseen_steps};

/// The exchanges of one CPU: what it calls, in which order, from one `running` (or from going
/// idle) to the next. Tasks are called `p`, `q`, ... in the order of their appearance, so that a
/// wakeup reads the same whoever wakes.
///
/// Only an exchange with a task of the scenario is taken in which no unknown task had a part:
/// none ran on the CPU, was the previous task of a dispatch, or was the stopper. Left out are
/// ticks, dispatches that keep the previous task, autogroup's restart of an exiting task, and
/// whatever lies before the moment from which a recording knows a task. A wakeup or fork while
/// another task of the scenario runs is an exchange of its own: it may come at any time.
///
/// A set, not a sequence: how often each occurs depends on the speed of the machine.
#[must_use]
pub fn exchanges(calls: &[Call], cpu: u16) -> BTreeSet<String> {
    let begins = begins(calls);
    let own: Vec<(usize, &Call)> = calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call.cpu == cpu && !is_unplaced(call))
        .collect();
    let mut exchange = Exchange::default();
    let mut found = BTreeSet::new();
    let mut at = 0;
    while let Some(&(index, call)) = own.get(at) {
        if is_autogroup_restart(&own[at..]) {
            at += 4;
            continue;
        }
        let next = own.get(at + 1).map(|(_, next)| *next);
        at += 1;
        let keeps = keeps_previous(call, next);
        if !keeps {
            exchange.push(
                call,
                begins.get(&call.task).is_some_and(|begin| index < *begin),
            );
        }
        if keeps || completes(call, next) {
            found.extend(std::mem::take(&mut exchange).shape());
        }
    }
    found
}

/// Callbacks that come at no fixed place among a CPU's others, or that a recording does not have.
fn is_unplaced(call: &Call) -> bool {
    let anywhere = matches!(call.op, Op::Tick | Op::Disable | Op::ExitTask | Op::Init);
    let told = matches!(call.op, Op::Dispatch | Op::CpuRelease);
    anywhere || (call.task == Who::Other && !told)
}

/// For each task, the index of the first callback from which a recording would know it.
fn begins(calls: &[Call]) -> BTreeMap<Who, usize> {
    let tasks: BTreeSet<&Who> = calls.iter().map(|call| &call.task).collect();
    let named = tasks
        .into_iter()
        .filter_map(|task| Some((task, task.name()?)));
    let begin = named.map(|(task, name)| {
        let own = kept_of(calls, name);
        let unseen = unseen_steps(calls, &own);
        let first_is_stopping = own.first().is_some_and(|at| calls[*at].op == Op::Stopping);
        // The end of a turn whose begin was not seen is no exchange either.
        let skipped = if first_is_stopping { 2 } else { unseen };
        (
            task.clone(),
            own.get(skipped).copied().unwrap_or(calls.len()),
        )
    });
    begin.collect()
}

fn is_autogroup_restart(own: &[(usize, &Call)]) -> bool {
    let form = [(Op::Stopping, 0), (Op::Quiescent, 0xe), (Op::Runnable, 0xe)];
    let Some(restart) = own.get(..4) else {
        return false;
    };
    let task = &restart[0].1.task;
    restart.iter().all(|(_, call)| call.task == *task)
        && restart
            .iter()
            .zip(form)
            .all(|((_, call), (op, a))| call.op == op && call.a == a)
        && restart[3].1.op == Op::Running
}

fn keeps_previous(call: &Call, next: Option<&Call>) -> bool {
    call.op == Op::Dispatch
        && call.b == 1
        && !next.is_some_and(|next| next.is_stop_of_runnable(&call.task))
}

fn completes(call: &Call, next: Option<&Call>) -> bool {
    let of_other = call.task.name().is_some()
        && call.current.name().is_some()
        && call.task != call.current
        && call.op != Op::Dispatch
        && call.op != Op::CpuRelease;
    call.op == Op::Running
        || (call.op == Op::UpdateIdle && call.a == 1)
        || (of_other && next.is_none_or(|next| next.task != call.task))
}

#[derive(Default)]
struct Exchange<'a> {
    calls: Vec<&'a Call>,
    dirty: bool,
}

impl<'a> Exchange<'a> {
    fn push(&mut self, call: &'a Call, unseen: bool) {
        const STOPPER: u64 = 2;
        self.dirty |= unseen
            || call.current == Who::Other
            || (call.op == Op::Dispatch && call.task == Who::Other)
            || (call.op == Op::CpuRelease && call.b == STOPPER);
        self.calls.push(call);
    }

    fn shape(self) -> Option<String> {
        if self.dirty || self.calls.is_empty() {
            return None;
        }
        let mut roles: Vec<&Who> = Vec::new();
        let mut words = Vec::new();
        for call in self.calls {
            if call.task.name().is_none() || call.op == Op::CpuRelease {
                words.push(call.words());
                continue;
            }
            let role = roles
                .iter()
                .position(|task| **task == call.task)
                .unwrap_or(roles.len());
            if role == roles.len() {
                roles.push(&call.task);
            }
            let letter = char::from(b'p' + u8::try_from(role).unwrap_or(9));
            words.push(format!("{letter}: {}", call.words()));
        }
        // Without a task of the scenario it was about one that is not named yet.
        (!roles.is_empty()).then(|| words.join(", "))
    }
}
