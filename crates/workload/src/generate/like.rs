//! Loads that have what a kernel's dump shows of a task that waited.

use std::fmt::Write as _;

use model::{MachineSpec, Rng};

use super::trials::intrusion;
use super::{Load, Trial, pick, trial_on};

/// Streams of what is added are apart from all others of a seed.
const STREAM: u64 = 15 << 60;
/// Names that are added to a trial begin with this number.
const NAMES: usize = 1_000_000;
/// Words that name something else in an operation.
const TAKEN: [&str; 5] = ["all", "inf", "parent", "root", "self"];
/// Bytes of a task's name (kernel 6.18, `TASK_COMM_LEN` without its end).
const NAME: usize = 15;

/// What a load has besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedTask {
    /// The name of the task that waited.
    pub name: String,
    /// CPUs that it may use; any if empty.
    pub cpus: Vec<u16>,
    /// It is in sections in which it may not migrate.
    pub is_pinned: bool,
    /// A task of a class above the policy's has a CPU.
    pub has_above: bool,
    /// Runnable tasks of the machine.
    pub runnable: u64,
}

/// As [`trial_on`], with such a task and its neighbours. The rest of the load stays as it is.
#[must_use]
pub fn trial_like(
    seed: u64,
    number: u64,
    has_hotplug: bool,
    machine: MachineSpec,
    wanted: &WantedTask,
) -> Trial {
    let trial = trial_on(seed, number, has_hotplug, machine);
    let mut load = Load {
        text: trial.text,
        cpus: trial.machine.cpus.into(),
        groups: Vec::new(),
        names: NAMES,
        has_cgroups: false,
        rng: Rng::new(seed, STREAM + number),
    };
    load.fill_like(wanted);
    Trial {
        text: load.text,
        ..trial
    }
}

impl Load {
    fn fill_like(&mut self, wanted: &WantedTask) {
        self.wanted_tasks(wanted);
        if wanted.has_above {
            intrusion(self);
        }
        let is_crowd = wanted.runnable > 2 * self.cpus;
        if is_crowd && self.below(2) == 0 {
            let count = wanted.runnable.min(8 * self.cpus).min(400);
            let (at, run, sleep) = (self.next(), self.span(100, 8_000), self.span(100, 8_000));
            let _ = write!(
                self.text,
                "[task.crowd{at}]\ncount = {count}\n\
                 do = \"loop(inf)[ run({run}), sleep(exp({sleep})) ]\"\n"
            );
        }
    }

    /// The task that waited, or a few of them, bound from the start or later.
    fn wanted_tasks(&mut self, wanted: &WantedTask) {
        let name = self.free_name(&wanted.name);
        let place = self.place_of(&wanted.cpus);
        let is_later = place.is_some() && self.below(2) == 0;
        let keys = match &place {
            Some(cpus) if !is_later => format!("cpus = \"{cpus}\"\n"),
            _ => String::new(),
        };
        let count = 1 + self.below(3);
        let turn = self.turn(wanted.is_pinned);
        let _ = write!(
            self.text,
            "[task.{name}]\ncount = {count}\n{keys}do = \"loop(inf)[ {turn} ]\"\n"
        );
        if let Some(cpus) = place.filter(|_| is_later) {
            let (pause, other) = (self.span(2_000, 1_000_000), self.span(2_000, 1_000_000));
            let bind = format!("setaffinity({name}[0], {{{cpus}}})");
            let free = format!("setaffinity({name}[0], all)");
            self.disturber(&format!(
                "loop(inf)[ sleep({pause}), {bind}, sleep({other}), {free} ]"
            ));
        }
    }

    /// What it does again and again.
    fn turn(&mut self, is_pinned: bool) -> String {
        let (run, sleep) = (self.span(50, 50_000), self.span(200, 50_000));
        if !is_pinned {
            return match self.below(3) {
                0 => format!("run({run})"),
                _ => format!("run({run}), sleep(exp({sleep}))"),
            };
        }
        let inner = match self.below(3) {
            0 => format!(
                "sleep({}), run({})",
                self.span(10, 5_000),
                self.span(10, 5_000)
            ),
            1 => "yield".to_owned(),
            _ => format!("run({})", self.span(1_000, 50_000)),
        };
        format!("run({run}), migrate_disable, {inner}, migrate_enable, sleep(exp({sleep}))")
    }

    /// Some of `cpus` that this machine has, as in a list of CPUs; `None` if that is no limit.
    fn place_of(&mut self, cpus: &[u16]) -> Option<String> {
        let here: Vec<u64> = cpus.iter().map(|cpu| u64::from(*cpu)).collect();
        let here: Vec<u64> = here.into_iter().filter(|cpu| *cpu < self.cpus).collect();
        if cpus.is_empty() || here.len() as u64 == self.cpus {
            return None;
        }
        if here.is_empty() {
            return Some(self.below(self.cpus).to_string());
        }
        let one = pick(&mut self.rng, &here).to_string();
        let all: Vec<_> = here.iter().map(u64::to_string).collect();
        Some(if self.below(2) == 0 {
            one
        } else {
            all.join(",")
        })
    }

    /// `name` as far as a group can be called so, and no other group is.
    fn free_name(&mut self, name: &str) -> String {
        let letters = name.chars().map(|it| match it {
            it if it.is_ascii_alphanumeric() => it,
            _ => '_',
        });
        let name: String = letters.take(NAME).collect();
        let is_word = name.starts_with(|it: char| it.is_ascii_alphabetic());
        let is_free = |name: &str| !self.text.contains(&format!("[task.{name}]"));
        if is_word && !TAKEN.contains(&name.as_str()) && is_free(&name) {
            name
        } else {
            format!("victim{}", self.next())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{machine_of, trial};
    use super::*;
    use crate::Workload;

    #[test]
    fn a_trial_gets_the_task_that_is_wanted_and_stays_what_it_is_without_it() {
        for name in [
            "db",
            "self",
            "7z",
            "kworker/u8:3-ev",
            "",
            "\u{e9}",
            "t0",
            "a\"]\n[x",
        ] {
            for number in 0..60 {
                let wanted = WantedTask {
                    name: name.to_owned(),
                    cpus: vec![0, 5],
                    is_pinned: number % 2 == 0,
                    has_above: number % 3 == 0,
                    runnable: 100,
                };
                let machine = machine_of(1, number);
                let made = trial_like(1, number, true, machine.clone(), &wanted);
                assert_eq!(made, trial_like(1, number, true, machine, &wanted));
                let plain = trial(1, number, true);
                assert!(made.text.starts_with(&plain.text), "{}", made.text);
                let added = &made.text[plain.text.len()..];
                assert_eq!(
                    added.contains("migrate_disable"),
                    wanted.is_pinned,
                    "{added}"
                );
                assert_eq!(
                    added.contains("[task.intruder"),
                    wanted.has_above,
                    "{added}"
                );
                let read = Workload::parse(&made.text, "like.toml");
                read.unwrap_or_else(|error| panic!("{error}\n{}", made.text));
            }
        }
    }
}
