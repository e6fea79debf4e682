//! What a user wants of a load, in words: `p99 wait of nginx`. Read once, then measured in runs.

mod words;

use std::fmt;

use model::{Advised, SimTime, suggest};
use stats::compare::series::CellStatistic;
use stats::compare::{Better, Measure, MeasuredNumber, Role};
use stats::{HardwareReport, LastWork, Metrics, Millionths, Report, SpanKind};
use workload::Group;

pub use words::{matches, wait_limit};

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// One number of a run that is to become better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A statistic of spans of time.
    Time {
        /// Which of them.
        stat: Stat,
        /// Spans of what.
        spans: Spans,
        /// Of which tasks.
        whose: Whose,
        /// Which way is good.
        better: Better,
    },
    /// The share of deadlines that were missed.
    Late {
        /// Only the deadline of this name.
        deadline: Option<String>,
        /// Of which tasks.
        whose: Whose,
    },
    /// What the load counted, by second.
    Work {
        /// Only the counter of this name.
        counter: Option<String>,
        /// Of which tasks.
        whose: Whose,
    },
    /// Share of the machine's CPU time.
    Cpu {
        /// Of which tasks.
        whose: Whose,
    },
    /// Energy in microjoules, of the machine, or while these tasks executed.
    Energy {
        /// Of which tasks.
        whose: Whose,
    },
    /// Work done with a millijoule, nanoseconds.
    Efficiency {
        /// Of which tasks.
        whose: Whose,
    },
    /// How long it took until the load was done, or until these tasks and those that they forked
    /// had done their work.
    End {
        /// Of which tasks.
        whose: Whose,
    },
}

/// A statistic of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// The mean.
    Mean,
    /// The value that so many thousandths do not exceed.
    Permille(u16),
    /// The largest value.
    Max,
}

/// Spans of time of tasks, as docs/events.md defines them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spans {
    /// From a wakeup to a CPU.
    Wait,
    /// All waits for a CPU.
    Delay,
    /// Time on a CPU in one turn.
    Slice,
    /// From falling asleep to a wakeup.
    Sleep,
    /// A span that the load names.
    Named(String),
}

/// The tasks that a goal is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All of them.
    All,
    /// Those of the groups of this name; `*` stands for any text.
    Groups(String),
}

impl Stat {
    /// As the user writes it.
    #[must_use]
    pub fn word(self) -> String {
        match self {
            Self::Mean => "mean".to_owned(),
            Self::Max => "max".to_owned(),
            Self::Permille(permille) if permille % 10 == 0 => format!("p{}", permille / 10),
            Self::Permille(permille) => format!("p{}.{}", permille / 10, permille % 10),
        }
    }
}

impl Spans {
    fn word(&self) -> String {
        match self {
            Self::Wait => "wait".to_owned(),
            Self::Delay => "delay".to_owned(),
            Self::Slice => "slice".to_owned(),
            Self::Sleep => "sleep".to_owned(),
            Self::Named(name) => format!("span {name}"),
        }
    }

    fn kind(&self) -> SpanKind<'_> {
        match self {
            Self::Wait => SpanKind::Wakeup,
            Self::Delay => SpanKind::Delay,
            Self::Slice => SpanKind::Runslice,
            Self::Sleep => SpanKind::Sleep,
            Self::Named(name) => SpanKind::Span(name),
        }
    }

    /// Long turns are few switches; of all other spans short ones are good.
    const fn better(&self) -> Better {
        match self {
            Self::Slice => Better::Higher,
            _ => Better::Lower,
        }
    }
}

impl Whose {
    /// Whether the group `name` is meant: by its name, or by what it has in common with its
    /// siblings. A trace's thread `web-71` is one of `web`, a recording's `cc.3` one of `cc`.
    fn holds(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Groups(pattern) => matches(pattern, name) || matches(pattern, family(name)),
        }
    }

    fn suffix(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::Groups(name) => format!(" of {name}"),
        }
    }
}

/// A group's name without the number of the thread or of the task.
#[must_use]
pub fn family(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_numbered = stem.len() < name.len();
    let front = stem.strip_suffix(['-', '.']).filter(|it| !it.is_empty());
    front.filter(|_| is_numbered).unwrap_or(name)
}

impl fmt::Display for Goal {
    /// As the user writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |name: &Option<String>| match name {
            Some(name) => format!(" {name}"),
            None => String::new(),
        };
        match self {
            Self::Time {
                stat,
                spans,
                whose,
                better,
            } => {
                let way = match better {
                    _ if *better == spans.better() => "",
                    Better::Higher => "higher ",
                    _ => "lower ",
                };
                let (stat, spans) = (stat.word(), spans.word());
                write!(f, "{way}{stat} {spans}{}", whose.suffix())
            }
            Self::Late { deadline, whose } => {
                write!(f, "late{}{}", named(deadline), whose.suffix())
            }
            Self::Work {
                counter: None,
                whose: Whose::All,
            } => write!(f, "throughput"),
            Self::Work { counter, whose } => {
                write!(f, "work{}{}", named(counter), whose.suffix())
            }
            Self::Cpu { whose } => write!(f, "cpu{}", whose.suffix()),
            Self::End { whose } => write!(f, "time{}", whose.suffix()),
            Self::Energy { whose } => write!(f, "energy{}", whose.suffix()),
            Self::Efficiency { whose } => write!(f, "work per joule{}", whose.suffix()),
        }
    }
}

/// Work and energy of these tasks; `None` where no powers are known.
fn energy(whose: &Whose, report: &Report) -> Option<HardwareReport> {
    let (all, groups) = report.hardware.split_last()?;
    if *whose == Whose::All {
        return Some(all.clone());
    }
    let mut sum = HardwareReport::default();
    for it in groups.iter().filter(|it| whose.holds(&it.group)) {
        sum.work += it.work;
        sum.energy_uj = Some(sum.energy_uj.unwrap_or(0) + it.energy_uj?);
    }
    Some(sum)
}

impl Goal {
    /// What a metric of a load's own goals is as a goal; `None` for any other metric.
    #[must_use]
    pub fn of_metric(metric: &str, report: &Report) -> Option<Self> {
        let groups = |name: &str| Whose::Groups(name.to_owned());
        let late = report.deadlines.iter();
        let mut late =
            late.filter(|it| metric == format!("deadline.{}.{}.missed", it.group, it.name));
        if let Some(it) = late.next() {
            return Some(Self::Late {
                deadline: Some(it.name.clone()),
                whose: groups(&it.group),
            });
        }
        for it in &report.spans {
            let stem = format!("span.{}.{}.length_ns_", it.group, it.name);
            let stat = match metric.strip_prefix(&stem) {
                Some("p99") => Stat::Permille(990),
                Some("mean") => Stat::Mean,
                _ => continue,
            };
            let spans = Spans::Named(it.name.clone());
            return Some(Self::time(stat, spans, groups(&it.group)));
        }
        match metric {
            "machine.elapsed_ns" => Some(Self::End { whose: Whose::All }),
            "all.wakeup_ns_p99" => Some(Self::time(Stat::Permille(990), Spans::Wait, Whose::All)),
            "all.delay_ns_mean" => Some(Self::time(Stat::Mean, Spans::Delay, Whose::All)),
            _ => None,
        }
    }

    /// Spans of time of which short ones are good, or long ones of turns.
    #[must_use]
    pub const fn time(stat: Stat, spans: Spans, whose: Whose) -> Self {
        let better = spans.better();
        Self::Time {
            stat,
            spans,
            whose,
            better,
        }
    }

    /// What its values are.
    #[must_use]
    pub const fn measure(&self) -> Measure {
        match self {
            Self::Time { .. } | Self::End { .. } => Measure::Nanos,
            Self::Late { .. } | Self::Cpu { .. } => Measure::Millionths,
            Self::Work { .. } => Measure::Rate,
            Self::Energy { .. } => Measure::Microjoules,
            Self::Efficiency { .. } => Measure::Nanos,
        }
    }

    /// Which way is good.
    #[must_use]
    pub const fn better(&self) -> Better {
        match self {
            Self::Time { better, .. } => *better,
            Self::Late { .. } | Self::End { .. } | Self::Energy { .. } => Better::Lower,
            Self::Work { .. } | Self::Cpu { .. } | Self::Efficiency { .. } => Better::Higher,
        }
    }

    /// Its value in a run that is over; `None` if the run has none.
    #[must_use]
    pub fn value(&self, metrics: &Metrics, report: &Report) -> Option<f64> {
        match self {
            Self::Time {
                stat, spans, whose, ..
            } => {
                let pooled = metrics.pooled(spans.kind(), &|name| whose.holds(name));
                let value = match stat {
                    Stat::Mean => pooled.mean(),
                    Stat::Permille(permille) => pooled.quantile((*permille).into()),
                    Stat::Max => pooled.max(),
                };
                value.map(|value| value.get() as f64)
            }
            Self::Late { deadline, whose } => {
                let its = report.deadlines.iter().filter(|it| {
                    whose.holds(&it.group) && deadline.as_ref().is_none_or(|name| *name == it.name)
                });
                let (met, missed) = its.fold((0_u128, 0_u128), |(met, missed), it| {
                    (met + u128::from(it.met), missed + u128::from(it.missed))
                });
                let all = met + missed;
                (all > 0).then(|| Millionths::of(missed, all).0 as f64)
            }
            Self::Work { counter, whose } => {
                let its = report.counters.iter().filter(|it| {
                    whose.holds(&it.group) && counter.as_ref().is_none_or(|name| *name == it.name)
                });
                let total = its.fold(0.0, |all, it| all + it.total as f64);
                let seconds = report.machine.elapsed.get() as f64 / SECOND;
                (seconds > 0.0).then(|| total / seconds)
            }
            Self::Cpu { whose } => {
                let its = report.groups.iter().filter(|it| whose.holds(&it.name));
                // The empty sum of `sum` is -0.
                Some(its.fold(0.0, |all, it| all + it.share.0 as f64))
            }
            Self::Energy { whose } => Some(energy(whose, report)?.energy_uj? as f64),
            Self::Efficiency { whose } => {
                let work = energy(whose, report)?.work_per_millijoule()?;
                Some(work.get() as f64)
            }
            Self::End { whose: Whose::All } => Some(report.machine.elapsed.get() as f64),
            // `Goal::end` knows it.
            Self::End { .. } => None,
        }
    }

    /// The spans that it is about; `None` if it is about none.
    #[must_use]
    pub fn spans(&self) -> Option<SpanKind<'_>> {
        match self {
            Self::Time { spans, .. } => Some(spans.kind()),
            _ => None,
        }
    }

    /// The statistic of spans that it is, where these are drawn block by block.
    #[must_use]
    pub const fn statistic(&self) -> Option<CellStatistic> {
        match self {
            Self::Time { stat, .. } => Some(match stat {
                Stat::Mean => CellStatistic::Mean,
                Stat::Permille(permille) => CellStatistic::Permille(*permille),
                Stat::Max => CellStatistic::Permille(1000),
            }),
            _ => None,
        }
    }

    /// Whether the group `name` is one of those that it is about.
    #[must_use]
    pub fn is_of(&self, name: &str) -> bool {
        self.whose().holds(name)
    }

    /// The tasks that it is about.
    const fn whose(&self) -> &Whose {
        match self {
            Self::Time { whose, .. }
            | Self::Late { whose, .. }
            | Self::Work { whose, .. }
            | Self::Cpu { whose }
            | Self::Energy { whose }
            | Self::Efficiency { whose }
            | Self::End { whose } => whose,
        }
    }

    /// When the tasks of a load with these groups that it names had done their work, they and those
    /// that they forked, in nanoseconds; `None` of any other goal.
    #[must_use]
    pub fn end(&self, work: &LastWork, groups: &[Group]) -> Option<f64> {
        let Self::End {
            whose: Whose::Groups(_),
        } = self
        else {
            return None;
        };
        let is_its = |group: u32| {
            let named = groups.get(group as usize);
            named.is_some_and(|it| self.is_of(&it.name))
        };
        let end = work.of(&|group, _| is_its(group))?;
        Some(end.since(SimTime::ZERO).get() as f64)
    }

    /// Whether it is about waits for a queue that still grew when the run ended.
    #[must_use]
    pub fn grows(&self, report: &Report) -> bool {
        let (spans, whose) = match self {
            Self::Time { spans, whose, .. } => (spans, whose),
            Self::Late { deadline, whose } => {
                let is_it = |name: &String| deadline.as_ref().is_none_or(|it| it == name);
                let mut its = report.deadlines.iter();
                return its.any(|it| it.grows && is_it(&it.name) && whose.holds(&it.group));
            }
            Self::Work { .. }
            | Self::Cpu { .. }
            | Self::End { .. }
            | Self::Energy { .. }
            | Self::Efficiency { .. } => return false,
        };
        match spans {
            Spans::Wait | Spans::Delay => match whose {
                Whose::All => report.all.grows,
                Whose::Groups(_) => {
                    let mut groups = report.groups.iter();
                    groups.any(|it| it.grows && whose.holds(&it.name))
                }
            },
            Spans::Named(name) => {
                let mut spans = report.spans.iter();
                spans.any(|it| it.grows && it.name == *name && whose.holds(&it.group))
            }
            Spans::Slice | Spans::Sleep => false,
        }
    }

    /// The number beside its value that says that it grew in this run, if it did.
    /// [`stats::compare::Set::grows`] reads it, so that a comparison makes no verdict of it.
    #[must_use]
    pub fn growth(&self, report: &Report) -> Option<MeasuredNumber> {
        self.grows(report).then(|| MeasuredNumber {
            name: format!("{self}.grows"),
            measure: Measure::Count,
            better: Better::Neither,
            role: Role::Other,
            value: 1.0,
        })
    }

    /// Its value as a comparison takes it.
    #[must_use]
    pub fn measured(
        &self,
        role: Role,
        metrics: &Metrics,
        report: &Report,
    ) -> Option<MeasuredNumber> {
        Some(MeasuredNumber {
            name: self.to_string(),
            measure: self.measure(),
            better: self.better(),
            role,
            value: self.value(metrics, report)?,
        })
    }

    /// Refuses a name that the load does not have.
    ///
    /// # Errors
    /// What is unknown, what was probably meant, and what there is.
    pub fn check(&self, report: &Report) -> Result<(), Advised> {
        let groups = || report.groups.iter().map(|it| it.name.as_str());
        let unknown = |kind: &str, name: &str, known: Vec<&str>| {
            if let Some(at) = name.find(['<', '>', '=']) {
                let limit = &name[at..];
                return Err(Advised::new(
                    format!("`{self}`: a goal has no limit, since the best policy is looked for"),
                    format!("leave out `{limit}`; `sim --fail-on wait=TIME` checks a limit"),
                ));
            }
            let hint = suggest::hint(name, distinct(known));
            Err(Advised::new(
                format!("`{self}`: this load has no {kind} `{name}`"),
                hint,
            ))
        };
        let whose = self.whose();
        let is_of_energy = matches!(self, Self::Energy { .. } | Self::Efficiency { .. });
        if is_of_energy && report.hardware.iter().all(|it| it.energy_uj.is_none()) {
            return Err(Advised::new(
                format!("`{self}`: the power of this machine's CPUs is not known"),
                "give --hardware with powers, such as pixel6 (docs/hardware.md)",
            ));
        }
        if let Whose::Groups(name) = whose
            && !groups().any(|group| whose.holds(group))
        {
            return unknown("group", name, groups().map(family).collect());
        }
        let (kind, name, named): (_, _, Vec<(&str, &str)>) = match self {
            Self::Late { deadline, .. } => {
                let all = report.deadlines.iter();
                let all = all.map(|it| (it.group.as_str(), it.name.as_str()));
                ("deadline", deadline.as_ref(), all.collect())
            }
            Self::Work { counter, .. } => {
                let all = report.counters.iter();
                let all = all.map(|it| (it.group.as_str(), it.name.as_str()));
                ("counter", counter.as_ref(), all.collect())
            }
            Self::Time {
                spans: Spans::Named(name),
                ..
            } => {
                let all = report.spans.iter();
                let all = all.map(|it| (it.group.as_str(), it.name.as_str()));
                ("span", Some(name), all.collect())
            }
            _ => return Ok(()),
        };
        let its = named.iter().filter(|(group, _)| whose.holds(group));
        let its: Vec<&str> = its.map(|(_, name)| *name).collect();
        match name {
            Some(name) if !its.contains(&name.as_str()) => {
                let all = named.iter().map(|(_, name)| *name);
                unknown(kind, name, all.collect())
            }
            None if its.is_empty() => Err(Advised::new(
                format!("`{self}`: these tasks have no {kind}"),
                format!("this load offers: {}", offered(report).join(", ")),
            )),
            _ => Ok(()),
        }
    }
}

/// Names, each once.
fn distinct(names: Vec<&str>) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Goals that a load offers, as the user may write them; of many groups the first.
#[must_use]
pub fn offered(report: &Report) -> Vec<String> {
    /// Groups that are named one by one.
    const GROUPS: usize = 12;
    let of = |name: &str| Whose::Groups(name.to_owned());
    let late = report.deadlines.iter().map(|it| Goal::Late {
        deadline: Some(it.name.clone()),
        whose: of(&it.group),
    });
    let spans = report.spans.iter().map(|it| {
        let spans = Spans::Named(it.name.clone());
        Goal::time(Stat::Permille(990), spans, of(&it.group))
    });
    let work = report.counters.iter().map(|it| Goal::Work {
        counter: Some(it.name.clone()),
        whose: of(&it.group),
    });
    let groups = report.groups.iter().map(|it| family(&it.name)).collect();
    let waits = distinct(groups).into_iter().take(GROUPS);
    let waits = waits.map(|it| Goal::time(Stat::Permille(990), Spans::Wait, of(it)));
    let all = late
        .chain(spans)
        .chain(work)
        .chain(waits)
        .chain([Goal::End { whose: Whose::All }]);
    all.map(|goal| goal.to_string()).collect()
}

#[cfg(test)]
mod tests;
