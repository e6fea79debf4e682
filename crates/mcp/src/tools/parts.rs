//! Arguments that several tools have. They have the names of the options of the command line.

use std::collections::BTreeMap;
use std::path::Path;

use ask::error::UsageError;
use ask::kernel;
use ask::load_source::LoadSource;
use ask::machine::{CPUS_MAX, MachineChange, SMT_MAX, parse_governor, parse_hz, parse_smt_share};
use ask::policy::{self, FoundPolicy, Preparation};
use ask::recording::Wanted;
use ask::simulate::Simulate;
use ask::sub;
use ask::workload_arg::parse_duration;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{Arguments, all_parsed, parsed, usage, within};
use crate::desk::Desk;

/// Files that are on no disk.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct FilesPart {
    /// Files of this call by name, such as {"mine.bpf.c": "...", "load.toml": "..."}. Where another
    /// argument names one of them, its text is taken, and no file of this computer.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// What policies are to schedule.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct LoadPart {
    /// The load: a built-in name (see `list`), a TOML file, or another program's trace.
    pub workload: Option<String>,
    /// A recording to rerun instead of a workload: a file of events, or another program's trace.
    pub from: Option<String>,
    /// Parameters of the workload, by name, such as {"hogs": 4}.
    #[serde(default)]
    pub scale: BTreeMap<String, i64>,
    /// Seed of every random choice. Default: the seed of the workload.
    pub seed: Option<u64>,
    /// Longest simulated time, such as 10s or 1.5ms. Default: until the workload ends.
    pub duration: Option<String>,
}

/// The simulated machine. What is left out is as the workload says.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct MachinePart {
    /// Number of CPUs, 1 to 1024.
    pub cpus: Option<u64>,
    /// Hardware threads of each core, 1 or 2.
    pub smt: Option<u64>,
    /// CPUs that share a last-level cache; 0: all of a node.
    pub llc: Option<u64>,
    /// CPUs of each NUMA node; 0: all.
    pub node: Option<u64>,
    /// Timer ticks a second: 100, 250, 300 or 1000.
    pub hz: Option<u32>,
    /// Version of the simulated kernel, such as 6.18.
    pub kernel: Option<String>,
    /// Profile that says what takes time on the machine: a name or a file.
    pub profile: Option<String>,
    /// Part of its speed that a task keeps while the other thread of its core executes: low,
    /// typical, high, or 0.1 to 1.
    pub smt_share: Option<String>,
    /// When CPUs come in between while a program runs on another one.
    pub interleave: Option<String>,
    /// Hardware with unequal CPUs or frequencies: a name (see `list`) or a file.
    pub hardware: Option<String>,
    /// Who chooses frequencies: performance, powersave, schedutil or hwp.
    pub governor: Option<String>,
    /// A machine as textbooks have it, in place of all this: textbook or textbook:arrivals=last.
    pub machine: Option<String>,
}

/// What a policy's loader would do before it attaches.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PreparePart {
    /// Variables of the policy to set, each as NAME=VALUE.
    #[serde(default)]
    pub set: Vec<String>,
    /// Programs of the object to run before it is attached, each as PROGRAM or PROGRAM=ARGUMENTS.
    #[serde(default)]
    pub run: Vec<String>,
    /// Programs of the object to run as soon as it is attached.
    #[serde(default)]
    pub run_attached: Vec<String>,
    /// Which table of callbacks of the object to attach, if it has several.
    pub ops: Option<String>,
    /// Schedulers to attach below every policy, on kernel 7.3: each as CGROUP=POLICY, with a time
    /// CGROUP@TIME=POLICY or CGROUP@TIME..TIME=POLICY. The cgroup is one of the load.
    #[serde(default)]
    pub sub: Vec<String>,
}

impl LoadPart {
    /// Where the load comes from, if one is given.
    ///
    /// # Errors
    /// When two are given.
    pub fn source(&self) -> Result<Option<LoadSource>, UsageError> {
        match (&self.workload, &self.from) {
            (Some(_), Some(_)) => Err(usage(
                "`workload` and `from` are two loads",
                "leave one out",
            )),
            (Some(name), None) => Ok(Some(LoadSource::Named(name.as_str().into()))),
            (None, Some(path)) => {
                let path = Path::new(path).into();
                Ok(Some(LoadSource::Recorded(path, Wanted::default())))
            }
            (None, None) => Ok(None),
        }
    }

    /// Parameters of the load.
    pub fn scale(&self) -> Vec<(String, i64)> {
        let all = self
            .scale
            .iter()
            .map(|(name, value)| (name.clone(), *value));
        all.collect()
    }
}

impl MachinePart {
    /// As a question has it.
    ///
    /// # Errors
    /// When a value is none.
    pub fn change(&self) -> anyhow::Result<MachineChange> {
        let most = u64::from(CPUS_MAX);
        let hz = self.hz.map(|it| it.to_string());
        Ok(MachineChange {
            cpus: within("cpus", self.cpus, 1..=most)?,
            smt: within("smt", self.smt, 1..=SMT_MAX.into())?,
            llc: within("llc", self.llc, 0..=most)?,
            node: within("node", self.node, 0..=most)?,
            hz: parsed("hz", hz.as_deref(), parse_hz)?,
            kernel: parsed("kernel", self.kernel.as_deref(), kernel::parse)?,
            profile: self.profile.clone(),
            smt_share: parsed("smt_share", self.smt_share.as_deref(), parse_smt_share)?,
            interleave: parsed("interleave", self.interleave.as_deref(), str::parse)?,
            hardware: self.hardware.clone(),
            corner: None,
            governor: parsed("governor", self.governor.as_deref(), parse_governor)?,
            textbook: parsed("machine", self.machine.as_deref(), str::parse)?,
        })
    }
}

impl PreparePart {
    /// The policy of this word, prepared.
    ///
    /// # Errors
    /// When there is no such policy, or something cannot be set.
    pub fn policy(&self, desk: &Desk<'_>, word: &str) -> anyhow::Result<FoundPolicy> {
        let preparation = Preparation {
            set: all_parsed("set", &self.set, policy::setting)?,
            run: all_parsed("run", &self.run, policy::setup)?,
            run_attached: all_parsed("run_attached", &self.run_attached, policy::setup)?,
            ops: self.ops.clone(),
        };
        let mut found = policy::open(&desk.services, word)?;
        preparation.apply(&mut found.policy)?;
        let below = sub::find_all(&desk.services, &self.sub)?;
        found.policy.subs.extend(below);
        Ok(found)
    }
}

/// The runs of `policies` that the other parts of the call describe.
///
/// # Errors
/// When there is no policy, or an argument is wrong.
pub fn simulate(
    policies: &[String],
    arguments: &mut Arguments,
    desk: &Desk<'_>,
) -> anyhow::Result<Simulate> {
    if policies.is_empty() {
        return Err(usage("`policies` is empty", "name one or more, such as fifo").into());
    }
    let load: LoadPart = arguments.take()?;
    let machine: MachinePart = arguments.take()?;
    let prepare: PreparePart = arguments.take()?;
    let found = policies.iter().map(|word| prepare.policy(desk, word));
    Ok(Simulate {
        schedulers: found.collect::<anyhow::Result<_>>()?,
        load: load.source()?,
        machine: machine.change()?,
        scale: load.scale(),
        seed: load.seed,
        duration: parsed("duration", load.duration.as_deref(), parse_duration)?,
        jobs: desk.jobs(),
        ..Simulate::default()
    })
}

/// A document that `show` writes, read again.
///
/// # Errors
/// When it is not written.
pub fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> anyhow::Result<Value> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}
