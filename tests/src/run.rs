//! A run in a few words.

use std::sync::Arc;

use model::{MachineSpec, Nanos, PolicySpec, Sink, Summary};
use workload::{RunSpec, Workload};

use crate::collect::Collector;
use crate::policy;

/// What to run. [`Run::new`] gives a policy on one CPU with a tick of 1 ms for ten seconds.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// A test policy or a shipped one.
    pub policy: &'a str,
    /// Its knobs.
    pub set: &'a [(&'a str, &'a str)],
    /// CPUs of the machine.
    pub cpus: u16,
    /// Ticks a second.
    pub hz: u32,
    /// End of the run.
    pub until: Nanos,
    /// Tables of a workload, without `[workload]`.
    pub workload: &'a str,
}

impl<'a> Run<'a> {
    /// `policy` under the tables of `workload`.
    #[must_use]
    pub const fn new(policy: &'a str, workload: &'a str) -> Self {
        Self {
            policy,
            set: &[],
            cpus: 1,
            hz: 1000,
            until: Nanos::from_secs(10),
            workload,
        }
    }

    /// What the simulator takes.
    ///
    /// # Panics
    /// If the workload is none or the policy is not there.
    #[must_use]
    pub fn spec(&self) -> RunSpec {
        let text = format!("[workload]\nname = \"test\"\n{}", self.workload);
        let workload = Workload::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"));
        let set = self
            .set
            .iter()
            .map(|(knob, value)| ((*knob).to_owned(), (*value).to_owned()));
        RunSpec {
            policy: PolicySpec {
                name: self.policy.to_owned(),
                object: policy::object(self.policy).unwrap_or_else(|error| panic!("{error}")),
                table: None,
                set: set.collect(),
                setup: Vec::new(),
                program: None,
                subs: Vec::new(),
            },
            workload: Arc::new(workload),
            machine: MachineSpec {
                cpus: self.cpus,
                hz: self.hz,
                ..MachineSpec::default()
            },
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: Some(self.until),
        }
    }

    /// Runs it, and sends the events to `sink`.
    ///
    /// # Panics
    /// If the run cannot be made.
    #[must_use]
    pub fn feed(&self, sink: &mut dyn Sink) -> Summary {
        sim::run(&self.spec(), sink).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs it to its end, under the policy.
    ///
    /// # Panics
    /// If the run cannot be made, or the policy is ejected.
    #[must_use]
    pub fn execute(&self) -> (Collector, Summary) {
        let mut collector = Collector::default();
        let summary = self.feed(&mut collector);
        assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
        (collector, summary)
    }
}
