//! An explanation for scripts.

use ask::AnswerKind;
use ask::races::MetRace;
use ask::trial::{CureTrial, Trials, Unproven};
use explain::why::{
    Act, Dumped, Finding, Holder, Idling, Measured, QueueView, Share, Standing, Victim,
};
use serde_json::{Value, json};

use super::Explanation;

/// The text, one object.
#[must_use]
pub fn of(explanation: &Explanation) -> String {
    let waits = explanation.waits.iter().enumerate().map(|(at, wait)| {
        let mut one = json!({ "waited_ns": wait.span.get(), "finding": finding(&wait.finding) });
        of_trials(&mut one, explanation.wait_trials.get(at));
        one
    });
    let last = explanation.dumps.last();
    let large = explanation.large.iter().map(|it| it.fault().word());
    let mut all = json!({
        AnswerKind::Explanation.key(): AnswerKind::Explanation.version(),
        "finding": explanation.finding.as_ref().map(finding),
        "measured": explanation.measured.as_ref().map(measured),
        "large": large.collect::<Vec<_>>(),
        "races": explanation.races.iter().map(race).collect::<Vec<_>>(),
        "waits": waits.collect::<Vec<_>>(),
        "not_known": last.map_or(&explanation.missing, |last| &last.missing),
        "played": explanation.played,
        "again": explanation.again,
    });
    of_trials(&mut all, explanation.trials.as_ref());
    if last.is_some() {
        all["dumps"] = explanation.dumps.iter().map(dump).collect();
        all["dumps_left_out"] = explanation.dumps_left_out.into();
    }
    format!("{all:#}")
}

/// Puts what trials say into an object.
fn of_trials(of: &mut Value, trials: Option<&Trials>) {
    let tried = trials.into_iter().flat_map(|it| &it.tried).map(trial);
    of["trials"] = tried.collect();
    of["is_contract"] = trials.is_some_and(|it| it.is_contract).into();
    of["is_proven"] = trials.is_some_and(|it| it.unproven.is_none()).into();
    let why = trials.and_then(|it| it.unproven.as_ref());
    of["not_proven"] = why.map(Unproven::text).into();
}

fn race(race: &MetRace) -> Value {
    json!({
        "variable": race.variable,
        "reads": race.reads,
        "writes": race.writes,
        "other": race.other,
        "stopped_cpu": race.met.stopped.0,
        "other_cpu": race.met.wrote.0,
        "time_ns": race.met.time.as_nanos(),
    })
}

fn dump(dumped: &Dumped) -> Value {
    json!({
        "first": dumped.before,
        "finding": finding(&dumped.finding),
        "likely": dumped.is_likely,
        "seen": dumped.seen,
        "what_to_do": dumped.advice.unwrap_or_else(|| dumped.finding.fault.advice()),
        "not_known": dumped.missing,
    })
}

fn trial(trial: &CureTrial) -> Value {
    json!({
        "intervention": trial.cure.word(),
        "cpu": trial.cure.cpu().map(|cpu| cpu.0),
        "time_ns": trial.at.as_nanos(),
        "ran_after_ns": trial.after.map(model::Nanos::get),
        "tried": trial.tried,
        "helped": trial.helped,
        "placebos": trial.placebos,
        "placebos_helped": trial.placebos_helped,
        "is_proof": trial.proves(),
    })
}

/// A finding, as the document of an explanation has it.
#[must_use]
pub fn finding(finding: &Finding) -> Value {
    let idle = finding.idle.iter().map(|idle| {
        json!({
            "cpu": idle.cpu.0,
            "since_ns": idle.since.as_nanos(),
            "kicked_ns": idle.kicked.map(model::SimTime::as_nanos),
            "claimed": idle.claimed.as_ref().map(act),
        })
    });
    let longest = finding.longest.as_ref().map(|(turn, span)| {
        let mut longest = holder(turn);
        longest["in_wait_ns"] = span.get().into();
        longest
    });
    let mut told = json!({
        "fault": finding.fault.word(),
        "what": finding.fault.sentence(),
        "tier": finding.tier().map(explain::why::Tier::word),
        "is_fault": finding.is_fault(),
        "lock": finding.verdict.lock.as_ref().map(|lock| json!({
            "name": lock.name,
            "holder": lock.holder,
            "since_ns": lock.since.map(model::SimTime::as_nanos),
            "runs": lock.runs,
        })),
        "missing": finding.verdict.missing.as_ref().map(|missing| json!({
            "cpu": missing.cpu.0,
            "rights": missing.rights,
        })),
        "share": finding.verdict.share.as_ref().map(share),
        "time_ns": finding.time.as_nanos(),
        "message": finding.message,
        "stopped_at": finding.stopped,
        "victim": finding.victim.as_ref().map(victim),
        "culprit": finding.culprit.as_ref().map(act),
        "also": finding.also.as_ref().map(act),
        "queue": finding.queue.as_ref().map(queue),
        "idle": idle.collect::<Vec<_>>(),
        "running": finding.holders.iter().map(holder).collect::<Vec<_>>(),
        "before": longest,
        "waiting": finding.waiting,
        "advice": finding.fault.advice(),
    });
    if let Some(scheduler) = &finding.scheduler {
        told["scheduler"] = json!(scheduler);
    }
    told
}

fn holder(holder: &Holder) -> Value {
    json!({
        "cpu": holder.cpu.0,
        "task": holder.name,
        "since_ns": holder.since.as_nanos(),
        "slice_ns": holder.slice,
        "given": holder.given.as_ref().map(act),
    })
}

fn measured(measured: &Measured) -> Value {
    let idle = Idling::ALL.iter().zip(&measured.idle);
    let idle = idle.map(|(cause, time)| (cause.words().to_owned(), json!(time.get())));
    let [cache, node, far] = measured.migrations;
    json!({
        "cpu_ns": measured.whole.get(),
        "idle_beside_waiting_ns": idle.collect::<serde_json::Map<_, _>>(),
        "preemptions": measured.preemptions,
        "migrations": { "in_cache": cache, "in_node": node, "to_other_node": far },
    })
}

fn share(share: &Share) -> Value {
    json!({
        "right": share.right.map(explain::why::Right::word),
        "lag_ns": share.lag.get(),
        "lag_by_cgroup_ns": share.lag_by_cgroup.map(model::Nanos::get),
        "bound_ns": share.bound.get(),
    })
}

fn victim(victim: &Victim) -> Value {
    let (place, id) = match &victim.standing {
        Standing::Nowhere => ("nowhere", None),
        Standing::Queue(id) => ("queue", Some(*id)),
        Standing::Global => ("global", None),
        Standing::Local(cpu) => ("local", Some(cpu.0.into())),
        Standing::Elsewhere => ("another class", None),
        Standing::Unknown => ("unknown", None),
    };
    json!({
        "name": victim.name,
        "pid": victim.pid,
        "since_ns": victim.since.map(model::SimTime::as_nanos),
        "waited_ns": victim.waited.get(),
        "place": place,
        "place_number": id,
        "put": victim.put.as_ref().map(act),
        "trigger": victim.trigger,
    })
}

fn queue(queue: &QueueView) -> Value {
    let readers: Vec<_> = queue.readers.iter().map(|cpu| cpu.0).collect();
    let other = queue.other_look.as_ref();
    let mut told = json!({
        "id": queue.id,
        "depth": queue.depth,
        "last_look": queue.last_look.as_ref().map(act),
        "looks": queue.looks.0,
        "taken": queue.looks.1,
        "overtaken": queue.overtaken,
        "readers": readers,
        "empty_dispatch": queue.empty_dispatch.as_ref().map(act),
        "other_look": other.map(|(look, queue)| json!({ "queue": queue.id, "look": act(look) })),
    });
    if let Some(of) = &queue.of {
        told["scheduler"] = json!(of);
        told["is_handed_down"] = json!(!queue.is_passed_by);
    }
    told
}

/// Who did something, where and when.
pub(crate) fn act(act: &Act) -> Value {
    let place = act.place.as_ref();
    json!({
        "time_ns": act.time.as_nanos(),
        "cpu": act.cpu.0,
        "callback": act.callback,
        "function": place.map(|place| &place.function),
        "file": place.and_then(|place| place.file.as_ref()),
        "line": place.map(|place| place.line).filter(|line| *line > 0),
    })
}
