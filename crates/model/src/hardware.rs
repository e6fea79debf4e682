//! How the CPUs of a machine differ: kinds of CPU, their speeds, and threads that share a core.

use serde::{Deserialize, Serialize};

use crate::{Advised, CPUS_MAX};

/// A rate of one: a CPU of capacity 1024 at its highest frequency does so many parts of a
/// nanosecond's work in each nanosecond.
pub const RATE_ONE: u64 = 1 << 20;

/// Capacity of the biggest CPU, and the whole of a share.
pub const CAPACITY_ONE: u16 = 1024;

/// How the CPUs of a machine differ. A machine without it has CPUs of one speed, whose hardware
/// threads do not slow each other down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The name of its file's `[hardware]`; empty where a workload's `capacity` and `smt_share`
    /// alone say how CPUs differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Kinds of CPU, one or more.
    pub classes: Vec<CpuClass>,
    /// The class of each CPU, as an index into `classes`.
    pub cpus: Vec<u16>,
    /// What a task keeps of its rate while the other thread of its core executes, too; `None`: all
    /// of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<SmtShare>,
}

/// A kind of CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuClass {
    /// Its name in the hardware's file.
    pub name: String,
    /// Work that it does at its highest frequency, against 1024 of the machine's biggest CPU.
    pub capacity: u16,
    /// What the kernel says instead (`arch_scale_cpu_capacity()`); `None`: the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<u16>,
}

/// What a task keeps of its rate while the other thread of its core executes, in 1/1024. The first
/// letter is the task itself, the second the other thread: `c` computes, `m` waits for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtShare {
    /// Computes beside one that computes.
    pub cc: u16,
    /// Computes beside one that waits for memory.
    pub cm: u16,
    /// Waits for memory beside one that computes.
    pub mc: u16,
    /// Both wait for memory.
    pub mm: u16,
}

impl SmtShare {
    /// The named shares. Sources: both threads 10 to 30 % more than one (`VMware` KB 326271); 36 %
    /// on average, 60 % at most (Zen 1, looncraz 2017); none for integers alone (many-cores.com).
    pub const NAMED: [(&'static str, u16); 3] = [("low", 512), ("typical", 614), ("high", 696)];

    /// Reads `low`, `typical`, `high` or a number of 0.1 to 1.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        let share = named.map(|(_, share)| *share);
        share.or_else(|| share_of(text)).map(Self::all)
    }

    /// The same share for all pairs.
    #[must_use]
    pub const fn all(share: u16) -> Self {
        Self {
            cc: share,
            cm: share,
            mc: share,
            mm: share,
        }
    }

    /// The share of a task of which `own` waits for memory, beside one of which `other` does; all
    /// in 1/1024.
    #[must_use]
    pub fn of(&self, own: u16, other: u16) -> u64 {
        let (a, b) = (u64::from(own), u64::from(other));
        let (not_a, not_b) = (1024 - a, 1024 - b);
        let sum = not_a * not_b * u64::from(self.cc)
            + not_a * b * u64::from(self.cm)
            + a * not_b * u64::from(self.mc)
            + a * b * u64::from(self.mm);
        sum >> 20
    }

    const fn each(&self) -> [u16; 4] {
        [self.cc, self.cm, self.mc, self.mm]
    }
}

/// A share of 0.1 to 1 with at most six decimals, in 1/1024.
fn share_of(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
        return None;
    }
    let millionths: u64 = format!("{decimals:0<6}").parse().ok()?;
    let all = whole.parse::<u64>().ok()?.checked_mul(1_000_000)? + millionths;
    let allowed = (100_000..=1_000_000).contains(&all);
    allowed.then(|| (all * 1024 / 1_000_000) as u16)
}

impl CpuClass {
    /// The capacity that the kernel tells.
    #[must_use]
    pub fn told(&self) -> u16 {
        self.shown.unwrap_or(self.capacity)
    }
}

impl Hardware {
    /// CPUs of these capacities that are alike else.
    #[must_use]
    pub fn of_capacities(capacities: &[u16]) -> Self {
        let mut kinds = capacities.to_vec();
        kinds.sort_unstable_by(|a, b| b.cmp(a));
        kinds.dedup();
        let class = |capacity: &u16| CpuClass {
            name: format!("capacity-{capacity}"),
            capacity: *capacity,
            shown: None,
        };
        let index = |capacity: &u16| kinds.iter().position(|kind| kind == capacity);
        Self {
            classes: kinds.iter().map(class).collect(),
            cpus: capacities
                .iter()
                .filter_map(index)
                .map(|at| at as u16)
                .collect(),
            ..Self::default()
        }
    }

    /// The class of a CPU.
    ///
    /// # Panics
    /// If it has no such CPU, or has not passed [`Hardware::check`].
    #[must_use]
    pub fn class(&self, cpu: u16) -> &CpuClass {
        &self.classes[usize::from(self.cpus[usize::from(cpu)])]
    }

    /// Whether the kernel tells different capacities of CPUs.
    #[must_use]
    pub fn is_told_apart(&self) -> bool {
        let mut told = self.classes.iter().map(CpuClass::told);
        let first = told.next();
        told.any(|other| Some(other) != first)
    }

    /// Refuses hardware that cannot be, for a machine of `cpus`: it may come from a bundle that
    /// somebody else wrote.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, cpus: u16) -> Result<(), Advised> {
        let wrong = |what: String, expected: &str| Err(Advised::new(what, expected.to_owned()));
        if self.cpus.len() != usize::from(cpus) {
            let what = format!(
                "the hardware has {} CPUs, the machine {cpus}",
                self.cpus.len()
            );
            return wrong(what, "let both have the same number");
        }
        if self.classes.len() > usize::from(CPUS_MAX) {
            return wrong("more classes than CPUs".to_owned(), "leave unused ones out");
        }
        let capacities = 1..=CAPACITY_ONE;
        for class in &self.classes {
            if !capacities.contains(&class.capacity) || !capacities.contains(&class.told()) {
                let what = format!("class `{}` has no capacity of 1 to 1024", class.name);
                return wrong(
                    what,
                    "give 1024 to the biggest CPU, and others their share of it",
                );
            }
        }
        let is_class = |class: &u16| usize::from(*class) < self.classes.len();
        if !self.cpus.iter().all(is_class) {
            return wrong("a CPU is of no class".to_owned(), "name one that is there");
        }
        let biggest = |class: &u16| self.classes[usize::from(*class)].capacity == CAPACITY_ONE;
        if !self.cpus.iter().any(biggest) {
            let what = "no CPU has the capacity 1024".to_owned();
            return wrong(
                what,
                "give 1024 to the biggest CPU, and others their share of it",
            );
        }
        let shares = self.smt.iter().flat_map(SmtShare::each);
        if shares
            .into_iter()
            .any(|share| !(102..=1024).contains(&share))
        {
            return wrong(
                "a share of a core is not 0.1 to 1".to_owned(),
                "correct `smt`",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_from_the_capacities_that_there_are() {
        let hardware = Hardware::of_capacities(&[400, 1024, 400]);
        let capacities: Vec<_> = hardware.classes.iter().map(|it| it.capacity).collect();
        assert_eq!(
            (capacities, &hardware.cpus[..]),
            (vec![1024, 400], &[1, 0, 1][..])
        );
        assert_eq!(hardware.class(2).told(), 400);
        assert!(hardware.is_told_apart() && hardware.check(3).is_ok());
        assert!(hardware.check(2).is_err());
    }

    #[test]
    fn hardware_that_cannot_be_is_refused() {
        let good = Hardware::of_capacities(&[1024, 512]);
        let refused = |change: fn(&mut Hardware)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad.check(2).unwrap_err().to_string()
        };
        assert!(refused(|it| it.classes[0].capacity = 1000).contains("1024"));
        assert!(refused(|it| it.classes[1].capacity = 0).contains("capacity-512"));
        assert!(refused(|it| it.classes[1].shown = Some(2000)).contains("capacity-512"));
        assert!(refused(|it| it.cpus[1] = 2).contains("no class"));
        assert!(refused(|it| it.smt = Some(SmtShare::all(0))).contains("share"));
    }

    #[test]
    fn a_share_lies_between_those_of_the_pure_kinds() {
        let share = SmtShare {
            cc: 512,
            cm: 1024,
            mc: 256,
            mm: 512,
        };
        assert_eq!(share.of(0, 0), 512);
        assert_eq!(share.of(0, 1024), 1024);
        assert_eq!(share.of(1024, 0), 256);
        assert_eq!(share.of(0, 512), 768);
        assert_eq!(SmtShare::all(614).of(512, 300), 614);
    }

    #[test]
    fn a_share_is_a_name_or_a_number() {
        for (text, want) in [("low", 512), ("typical", 614), ("0.60", 614), ("1", 1024)] {
            assert_eq!(SmtShare::parse(text), Some(SmtShare::all(want)), "{text}");
        }
        for bad in ["", "0.05", "1.1", "-1", "0.", ".5", "1e-1", "0.1234567"] {
            assert_eq!(SmtShare::parse(bad), None, "{bad}");
        }
    }
}
