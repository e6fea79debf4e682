//! A workload that is played beside the command.

use std::collections::BTreeMap;

use ask::outcome::mark_growing;
use live::record::{self, Others, Records};
use load::play::{self, Played, Player};
use model::{Advised, MachineSpec, Sink as _};
use serde_json::{Value, json};
use stats::{Metrics, Millionths};
use workload::Workload;

use super::plan::BenchArm;
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::table::Table;
use crate::workload_arg;

/// The workload.
#[derive(Debug)]
pub struct Beside {
    name: String,
    scale: Vec<(String, i64)>,
    load: Workload,
}

impl Beside {
    /// The workload that the user named. How long it lasts by itself does not matter: the command
    /// decides.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be played here.
    pub fn find(name: &str, scale: &[(String, i64)]) -> anyhow::Result<Self> {
        let load = workload_arg::find(&COMPUTER, name, scale)?;
        let refusals = play::refusals(&load, record::cpus());
        if !refusals.is_empty() {
            let list = refusals.join("\n");
            let message = format!("the workload `{name}` cannot be played:\n{list}");
            return Err(UsageError::new(message).into());
        }
        if load.deadlines.is_empty() && load.spans.is_empty() {
            let message = Advised::new(
                format!(
                    "the workload `{name}` has neither deadlines nor spans, so that there would be \
                     nothing to compare"
                ),
                "`screen` has some",
            );
            return Err(UsageError::new(message).into());
        }
        Ok(Self {
            name: name.to_owned(),
            scale: scale.to_vec(),
            load,
        })
    }

    /// Properties that all runs of one kind share.
    pub fn plan(&self) -> Value {
        let scale: BTreeMap<_, _> = self.scale.iter().cloned().collect();
        json!({"name": self.name, "scale": scale, "seed": self.load.seed})
    }

    /// Creates its tasks, which then wait. This process must have one thread.
    ///
    /// # Errors
    /// When the system refuses them.
    pub fn prepare(&self) -> anyhow::Result<Player> {
        let seed = self.load.seed;
        Ok(Player::prepare(&self.load, seed, record::cpus(), false)?)
    }

    /// What its tasks said, as a report has it: deadlines and spans.
    pub fn document(&self, played: &Played) -> Value {
        let machine = MachineSpec {
            cpus: record::cpus(),
            ..MachineSpec::default()
        };
        let mut header = self.load.header("", &machine, self.load.seed, None);
        let records = Records {
            raws: played.said.clone(),
            began: played.began,
            ended: played.ended,
            cpus: record::cpus(),
            ..Records::default()
        };
        let converted = record::convert(&records, &header.groups, Others::Together);
        header.groups = converted.groups;
        let mut metrics = Metrics::of_every_turn();
        metrics.begin(&header);
        metrics.events(&converted.events);
        metrics.finish(converted.end);
        let mut report = metrics.report();
        mark_growing(&self.load, &played.growing, (&mut report, &mut []));
        json!({"deadlines": report.deadlines, "spans": report.spans, "lost": played.lost})
    }
}

/// What was met and missed of each deadline under each of the schedulers `arms`, in all runs that
/// count together.
pub fn table(arms: &[BenchArm], runs: &[Value]) -> Table {
    let mut table = Table::default()
        .names("deadline")
        .names("scheduler")
        .numbers("met")
        .numbers("missed")
        .numbers("share")
        .names("a miss is");
    let mut names: Vec<[&str; 3]> = Vec::new();
    let mut sums: BTreeMap<(usize, usize), [u64; 2]> = BTreeMap::new();
    for run in counting(runs) {
        let Some(arm) = arms.iter().position(|arm| run["arm"] == *arm.name) else {
            continue;
        };
        for row in run["played"]["deadlines"].as_array().into_iter().flatten() {
            let name = ["group", "deadline", "word"].map(|key| text(row, key));
            let known = names.iter().position(|it| *it == name);
            let at = known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            let sum = sums.entry((at, arm)).or_default();
            for (sum, key) in sum.iter_mut().zip(["met", "missed"]) {
                *sum += row[key].as_u64().unwrap_or(0);
            }
        }
    }
    let mut last = None;
    for ((name, arm), [met, missed]) in sums {
        let [group, deadline, word] = names[name];
        let title = if last == Some(name) {
            String::new()
        } else if group == deadline {
            deadline.to_owned()
        } else {
            format!("{group}: {deadline}")
        };
        last = Some(name);
        let share = Millionths::of(missed.into(), (met + missed).into());
        table.row([
            title,
            arms[arm].name.clone(),
            met.to_string(),
            missed.to_string(),
            stats::ColumnValue::Share(share).to_string(),
            word.to_owned(),
        ]);
    }
    table
}

/// The runs that count.
fn counting(runs: &[Value]) -> impl Iterator<Item = &Value> {
    let counts = |run: &&Value| run["void"].is_null() && run["warmup"] != true;
    runs.iter().filter(counts)
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use live::record::{Raw, RecordKind};
    use model::EventKind;
    use stats::compare::played_measures;
    use workload::{Code, ResourceInstance, growing_queues};

    use super::*;

    #[test]
    fn misses_are_summed_over_the_runs_that_count() {
        let run = |arm: &str, warmup: bool, void: Option<&str>, missed: u64| {
            json!({
                "arm": arm, "warmup": warmup, "void": void,
                "played": {"deadlines": [
                    {"group": "window", "deadline": "frame", "word": "missed frame",
                     "met": 100 - missed, "missed": missed},
                    {"group": "audio", "deadline": "audio", "word": "underrun",
                     "met": 10, "missed": 0},
                ]},
            })
        };
        let runs = [
            run("mlfq", true, None, 50),
            run("default", false, None, 10),
            run("mlfq", false, None, 2),
            run("default", false, None, 20),
            run("mlfq", false, Some("ejected: stall"), 100),
        ];
        let want = "\
deadline       scheduler  met  missed   share  a miss is
window: frame  default    170      30  15.0 %  missed frame
               mlfq        98       2   2.0 %  missed frame
audio          default     20       0   0.0 %  underrun
               mlfq        10       0   0.0 %  underrun
";
        let arms = ["default", "mlfq"].map(|name| BenchArm {
            name: name.to_owned(),
            policy: None,
        });
        assert_eq!(table(&arms, &runs).to_string(), want);
    }

    #[test]
    fn a_share_of_misses_behind_a_queue_that_grows_is_said_to_grow() {
        let text = "[workload]\nname = \"keys\"\n[chan.key]\nkind = \"queue\"\n\
                    [deadline.answer]\nslack = \"20ms\"\n\
                    [irq.keys]\nevery = \"1ms\"\nsend = \"key\"\n\
                    [task.worker]\ndo = \"loop(inf)[ recv(key), release(answer), run(2ms), \
                    complete(answer) ]\"\n";
        let beside = Beside {
            name: "keys".to_owned(),
            scale: Vec::new(),
            load: Workload::parse(text, "keys.toml").expect("a workload"),
        };
        let raw = |kind, b, c| Raw {
            time: 7,
            pid: 41,
            cpu: 0,
            kind,
            flags: 0,
            c,
            a: 0,
            b,
        };
        let late = EventKind::Deadline as u32;
        let is_said = |grown: &[ResourceInstance]| {
            let group = &beside.load.groups[0];
            let codes = [Code::new(&group.body, group.variables)];
            let played = Played {
                said: vec![
                    raw(RecordKind::Born, 0, 0),
                    raw(RecordKind::Mark, late, 5_000_000),
                ],
                ended: 9,
                growing: growing_queues(&beside.load, &codes, grown),
                ..Played::default()
            };
            let found = played_measures(&beside.document(&played));
            let grows = found
                .iter()
                .find(|it| it.name == "deadline.worker.answer.grows");
            grows.expect("a number").value > 0.0
        };
        assert!(is_said(&[ResourceInstance { of: 0, index: 0 }]));
        assert!(!is_said(&[]));
    }

    #[test]
    fn a_workload_without_anything_to_compare_is_refused() {
        let error = Beside::find("hackbench", &[]).unwrap_err();
        assert!(
            crate::exit::in_full(&error).contains("`screen` has some"),
            "{error}"
        );
        let screen = Beside::find("screen", &[]).unwrap();
        assert_eq!(screen.plan()["name"], "screen");
    }
}
