//! Where two versions of a policy part, for people and as JSON.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::diff::{Difference, Side};
use ask::words::counted;
use explain::why::Scene;
use model::Nanos;
use serde_json::{Value, json};
use stats::GroupReport;

use crate::explanation::json::act as act_json;
use crate::explanation::text::{at, by};

/// CPUs that are named one by one.
const NAMED: usize = 16;

/// Writes it for people.
///
/// # Errors
/// When `to` does not take it.
pub fn text(difference: &Difference, to: &mut dyn Write) -> io::Result<()> {
    let [old, new] = &difference.sides;
    if !difference.differs {
        return writeln!(
            to,
            "{} and {} decide alike: {} decisions.",
            old.policy, new.policy, difference.alike
        );
    }
    writeln!(
        to,
        "{} decisions are alike. Then {} and {} differ.\n",
        difference.alike, old.policy, new.policy
    )?;
    for (name, side) in [("old", old), ("new", new)] {
        writeln!(to, "{name}: {}", side.policy)?;
        if side.told.is_empty() {
            writeln!(to, "  decides nothing any more: its run is over")?;
        }
        for (number, (words, act)) in side.told.iter().enumerate() {
            let mark = if number == 0 { ">" } else { " " };
            writeln!(to, "{mark} {} s  {words}", at(act.time))?;
            writeln!(to, "    {}", by(act))?;
        }
        writeln!(to)?;
    }
    if old.scene == new.scene {
        writeln!(to, "Both saw")?;
        scene(&old.scene, to)?;
    } else {
        writeln!(to, "The old one saw")?;
        scene(&old.scene, to)?;
        writeln!(to, "The new one saw")?;
        scene(&new.scene, to)?;
    }
    writeln!(to, "\nWhat it led to")?;
    led_to(old, new, to)
}

fn scene(scene: &Scene, to: &mut dyn Write) -> io::Result<()> {
    let cpus = scene.cpus.iter().enumerate().take(NAMED);
    let cpus = cpus.map(|(cpu, task)| {
        let task = task.as_deref().unwrap_or("nobody");
        format!("CPU {cpu} has {task}")
    });
    let cpus: Vec<_> = cpus.collect();
    let waiting = match scene.waiting {
        1 => "1 task waits".to_owned(),
        many => format!("{many} tasks wait"),
    };
    writeln!(to, "  {}; {waiting}", cpus.join(", "))?;
    for (queue, depth, first) in &scene.queues {
        let more = if first.len() < *depth { ", ..." } else { "" };
        let depth = counted(*depth as u64, "task");
        writeln!(to, "  {queue}: {depth}, {}{more}", first.join(", "))?;
    }
    Ok(())
}

fn led_to(old: &Side, new: &Side, to: &mut dyn Write) -> io::Result<()> {
    for side in [old, new] {
        if let Some(ejection) = &side.ejection {
            writeln!(to, "  {ejection}")?;
        }
    }
    let groups = old.report.groups.iter().zip(&new.report.groups);
    let mut has_any = false;
    for (one, other) in groups.filter(|(one, other)| figures(one) != figures(other)) {
        has_any = true;
        writeln!(
            to,
            "  {}: ran {} and {}, longest wait {} and {}",
            one.name,
            one.times.run,
            other.times.run,
            longest(one),
            longest(other)
        )?;
    }
    if !has_any {
        writeln!(to, "  no group ran or waited longer in one of them")?;
    }
    Ok(())
}

/// What is compared of a group.
fn figures(group: &GroupReport) -> (Nanos, Option<Nanos>) {
    (
        group.times.run,
        group.delay.max.max(group.waiting_at_end_max),
    )
}

fn longest(group: &GroupReport) -> String {
    let longest = group.delay.max.max(group.waiting_at_end_max);
    longest.map_or_else(|| "-".to_owned(), |wait| wait.to_string())
}

/// One object.
#[must_use]
pub fn json(difference: &Difference) -> Value {
    let [old, new] = difference.sides.each_ref().map(side);
    json!({
        AnswerKind::Difference.key(): AnswerKind::Difference.version(),
        "differs": difference.differs,
        "alike": difference.alike,
        "old": old,
        "new": new,
    })
}

fn side(side: &Side) -> Value {
    let decisions = side.told.iter().map(|(words, act)| {
        let mut decision = act_json(act);
        decision["what"] = json!(words);
        decision
    });
    let groups = side.report.groups.iter().map(|group| {
        let longest = group.delay.max.max(group.waiting_at_end_max);
        json!({
            "group": group.name,
            "run_ns": group.times.run.get(),
            "wait_ns_max": longest.map(Nanos::get),
        })
    });
    let queues = side.scene.queues.iter();
    let queues = queues
        .map(|(queue, depth, first)| json!({ "queue": queue, "depth": depth, "first": first }));
    json!({
        "policy": side.policy,
        "decisions": decisions.collect::<Vec<_>>(),
        "running": side.scene.cpus,
        "queues": queues.collect::<Vec<_>>(),
        "waiting": side.scene.waiting,
        "ejected": side.ejection,
        "groups": groups.collect::<Vec<_>>(),
    })
}
