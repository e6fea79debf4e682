//! Scenario files: a policy, a machine, a workload, and what must happen, in one text.
//!
//! `golden/vectors/README.md` describes the format.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{Kernel, Nanos, Op, PolicySpec, SimTime, Summary};
use workload::{RunSpec, Workload};

use crate::call::{Call, Who};
use crate::collect::Collector;
use crate::policy;

/// A scenario file, read.
#[derive(Clone, Debug)]
pub struct Scenario {
    run: Vec<(String, String)>,
    workload: String,
    /// Everything before the first expected part, as it stands in the file.
    given: String,
    /// The expected parts, in their order: name and lines.
    pub expected: Vec<(String, Vec<String>)>,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut scenario = Self {
            run: Vec::new(),
            workload: String::new(),
            given: String::new(),
            expected: Vec::new(),
        };
        let mut section = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("-- ") {
                section = name.trim();
                if !matches!(section, "run" | "workload") {
                    scenario.expected.push((section.to_owned(), Vec::new()));
                }
            }
            match scenario.expected.last_mut() {
                Some((_, lines)) => {
                    if !line.starts_with("-- ") && !line.trim().is_empty() {
                        lines.push(squeeze(line));
                    }
                }
                None => {
                    scenario.given += line;
                    scenario.given.push('\n');
                    scenario.take(section, line)?;
                }
            }
        }
        if scenario.expected.is_empty() {
            return Err("nothing is expected".to_owned());
        }
        Ok(scenario)
    }

    fn take(&mut self, section: &str, line: &str) -> Result<(), String> {
        if line.starts_with("-- ") || line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        match section {
            "run" => {
                let (key, value) = line.split_once('=').ok_or("a run needs `key = value`")?;
                self.run
                    .push((key.trim().to_owned(), value.trim().to_owned()));
            }
            "workload" => {
                self.workload += line;
                self.workload.push('\n');
            }
            _ => return Err(format!("text before the first section: {line}")),
        }
        Ok(())
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.run
            .iter()
            .find(|(own, _)| own == key)
            .map(|(_, value)| value.as_str())
    }

    /// What to run.
    ///
    /// # Errors
    /// A policy that is not there, a workload that is none, a number that is none.
    pub fn spec(&self) -> Result<RunSpec, String> {
        let known = [
            "policy", "set", "cpus", "hz", "until", "tasks", "cpu", "from", "show", "attach",
            "kernel",
        ];
        if let Some((key, _)) = self
            .run
            .iter()
            .find(|(key, _)| !known.contains(&key.as_str()))
        {
            return Err(format!("unknown key `{key}`; known are {known:?}"));
        }
        let workload = format!("[workload]\nname = \"scenario\"\n{}", self.workload);
        let workload = Workload::parse(&workload, "scenario").map_err(|error| error.to_string())?;
        let mut machine = workload.machine.clone();
        machine.cpus = self.number("cpus")?.unwrap_or(2);
        machine.hz = self.number("hz")?.unwrap_or(250).into();
        if let Some(version) = self.value("kernel") {
            let known = Kernel::ALL
                .into_iter()
                .find(|kernel| kernel.name() == version);
            machine.kernel = known.ok_or_else(|| format!("no kernel {version} is simulated"))?;
        }
        let name = self.value("policy").ok_or("a run needs a policy")?;
        let mut set = Vec::new();
        for word in self
            .value("set")
            .unwrap_or_default()
            .split_ascii_whitespace()
        {
            let (knob, value) = word.split_once('=').ok_or("set needs `knob=value`")?;
            set.push((knob.to_owned(), value.to_owned()));
        }
        Ok(RunSpec {
            policy: PolicySpec {
                name: name.to_owned(),
                object: policy::object(name)?,
                table: None,
                set,
                setup: Vec::new(),
                program: None,
                subs: Vec::new(),
            },
            workload: Arc::new(workload),
            machine,
            seed: 1,
            tie_seed: None,
            attach_after: self.span("attach")?.unwrap_or(Nanos::ZERO),
            duration: self.span("until")?,
        })
    }

    fn number(&self, key: &str) -> Result<Option<u16>, String> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| format!("{key} = {text}: not a number"))
        };
        self.value(key).map(parse).transpose()
    }

    fn span(&self, key: &str) -> Result<Option<Nanos>, String> {
        self.value(key).map(parse_span).transpose()
    }

    fn says(&self, key: &str, word: &str) -> bool {
        self.value(key)
            .unwrap_or_default()
            .split_ascii_whitespace()
            .any(|own| own == word)
    }

    /// Whether the callback is one of those that the file lists.
    fn shows(&self, call: &Call, exit: SimTime) -> Result<bool, String> {
        let by_cpu = self.says("cpu", &call.cpu.to_string());
        let by_task = call
            .task
            .name()
            .is_some_and(|name| self.says("tasks", name));
        let shown = match call.op {
            Op::Init | Op::ExitPolicy => self.says("show", "policy"),
            Op::Tick => by_task && self.says("show", "ticks"),
            Op::Dispatch | Op::UpdateIdle | Op::CpuAcquire | Op::CpuRelease => by_cpu,
            // A task whose fork fails never gets a number.
            Op::InitTask if call.task == Who::Idle => self.says("show", "unborn"),
            _ => by_task,
        };
        let from = SimTime::ZERO + self.span("from")?.unwrap_or(Nanos::ZERO);
        let unloading = call.time >= exit && !self.says("show", "unload");
        Ok(shown && call.time >= from && !unloading)
    }

    /// What happened in a run, in the form of the parts that the file expects.
    ///
    /// # Errors
    /// An expected part of unknown name.
    pub fn actual(
        &self,
        collected: &Collector,
        summary: &Summary,
    ) -> Result<Vec<(String, Vec<String>)>, String> {
        let slices = self.says("show", "slices");
        let mut parts = Vec::new();
        for (name, expected) in &self.expected {
            let lines = match name.as_str() {
                "calls" => {
                    let mut lines = Vec::new();
                    for call in &collected.calls {
                        if self.shows(call, summary.exit.time)? {
                            lines.push(line(call, slices));
                        }
                    }
                    lines
                }
                "exit" => vec![exit_line(summary)],
                "counters" => counter_lines(summary, expected),
                "printed" => summary.printed.lines().map(squeeze).collect(),
                _ => return Err(format!("unknown part `{name}`")),
            };
            parts.push((name.clone(), lines));
        }
        Ok(parts)
    }

    /// The file with other expected parts.
    #[must_use]
    pub fn with_expected(&self, parts: &[(String, Vec<String>)]) -> String {
        let mut text = self.given.clone();
        for (name, lines) in parts {
            let _ = writeln!(text, "-- {name}");
            for line in lines {
                let mut columns = line.splitn(3, ' ');
                let (time, cpu) = (columns.next().unwrap_or(""), columns.next().unwrap_or(""));
                let _ = match (name.as_str(), columns.next()) {
                    ("calls", Some(rest)) => writeln!(text, "{time:>10} {cpu} {rest}"),
                    _ => writeln!(text, "{line}"),
                };
            }
        }
        text
    }
}

fn squeeze(line: &str) -> String {
    line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// A span such as `5ms` or `9.96ms`.
fn parse_span(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("{text}: not a span such as 5ms");
    let digits = text.strip_suffix("ms").ok_or_else(wrong)?;
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = format!("{rest:0<6}");
    let nanos = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
    if fraction.len() == 6 {
        Ok(Nanos::new(nanos))
    } else {
        Err(wrong())
    }
}

/// Nanoseconds as milliseconds without trailing zeros.
fn ms(nanos: u64) -> String {
    let text = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
    format!("{}ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// One callback as a line of the part `calls`.
fn line(call: &Call, slices: bool) -> String {
    let Call {
        time,
        cpu,
        op,
        task,
        a,
        b,
        ..
    } = call;
    let name = op.name();
    let slice = |left: u64| match left {
        _ if !slices => String::new(),
        u64::MAX => " slice=inf".to_owned(),
        _ => format!(" slice={}", ms(left)),
    };
    let task = match task {
        Who::Idle => "-",
        other => other.name().unwrap_or("other"),
    };
    let words = match op {
        Op::Enqueue => format!("{task} {a:#x} cpu{b}"),
        Op::Runnable | Op::Quiescent | Op::Dequeue => format!("{task} {a:#x}"),
        Op::SelectCpu => format!("{task} {a:#x} prev{b}"),
        Op::Running => format!("{task}{}", slice(*a)),
        Op::Tick => format!("{task}{}", slice(*a)),
        Op::Stopping => format!("{task} {a}{}", slice(*b)),
        Op::Dispatch => format!("{task}{}", if *b == 1 { " queued" } else { "" }),
        Op::SetCpumask => format!("{task} {a} {b:#x}"),
        Op::UpdateIdle => a.to_string(),
        Op::CpuRelease => format!("reason={b}"),
        Op::CpuAcquire | Op::Init => String::new(),
        Op::Yield | Op::Disable => task.to_owned(),
        Op::ExitPolicy => a.to_string(),
        _ => format!("{task} {a}"),
    };
    squeeze(&format!("{} cpu{cpu} {name} {words}", ms(time.as_nanos())))
}

fn exit_line(summary: &Summary) -> String {
    let exit = &summary.exit;
    let time = ms(exit.time.as_nanos());
    let message = without_pids(&exit.message);
    squeeze(&format!(
        "{time} {} {} {message}",
        exit.kind as u32, exit.code
    ))
}

/// The text with `pid` in place of every number in brackets: a kernel gives others.
fn without_pids(text: &str) -> String {
    let mut parts = text.split('[');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out += if rest.len() < part.len() && rest.starts_with(']') {
            "[pid"
        } else {
            "["
        };
        out += if rest.starts_with(']') { rest } else { part };
    }
    out
}

/// The counters that the file names.
fn counter_lines(summary: &Summary, expected: &[String]) -> Vec<String> {
    let named = |line: &String| line.split(' ').next().unwrap_or("").to_owned();
    let names = expected.iter().map(named);
    let all = || {
        let kernel = summary
            .counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        kernel.chain(summary.policy_counters.iter().cloned())
    };
    names
        .map(|name| match all().find(|(own, _)| *own == name) {
            Some((_, value)) => format!("{name} {value}"),
            None => format!("{name} is no counter"),
        })
        .collect()
}
