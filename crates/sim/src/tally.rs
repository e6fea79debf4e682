//! What the calls of one callback did.

use std::collections::BTreeMap;

use model::{Costs, Profile};

use crate::machine::Vm;
use crate::profile::of_function;

/// Counts of one callback's calls, those that it led to while it ran included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was called.
    pub calls: u64,
    /// BPF instructions.
    pub instructions: u64,
    /// Calls of kernel functions and helpers, by name; none of those that were not called.
    pub functions: BTreeMap<String, u64>,
    /// The call that cost most by [`Tally::charged_ps`]; the first of equals.
    pub dearest: Option<Box<Self>>,
}

impl Tally {
    /// All that the object has done so far.
    pub(crate) fn of(vm: &Vm) -> Self {
        let functions = vm.calls().map(|(name, calls)| (name.to_owned(), calls));
        Self {
            calls: 0,
            instructions: vm.retired(),
            functions: functions.collect(),
            dearest: None,
        }
    }

    /// One call more; `before` was [`Tally::of`] when it began.
    pub(crate) fn add(&mut self, vm: &Vm, before: &Self) {
        let one = Self {
            calls: 1,
            ..Self::of(vm).since(before)
        };
        self.calls += 1;
        self.instructions += one.instructions;
        for (name, calls) in &one.functions {
            *self.functions.entry(name.clone()).or_default() += calls;
        }
        let dearest = self.dearest.as_ref();
        if dearest.is_none_or(|dearest| one.charged_ps() > dearest.charged_ps()) {
            self.dearest = Some(Box::new(one));
        }
    }

    /// Tasks that were looked at in queues.
    #[must_use]
    pub fn visits(&self) -> u64 {
        let calls = self.functions.get("bpf_iter_scx_dsq_next");
        calls.copied().unwrap_or_default()
    }

    /// Sum of the costs under the profile `default-v0`, ps.
    ///
    /// # Panics
    /// If that profile costs nothing.
    #[must_use]
    pub fn charged_ps(&self) -> u64 {
        let costs: &Costs = Profile::DefaultV0.costs().expect("a profile with costs");
        let functions = self.functions.iter();
        let functions = functions.map(|(name, calls)| calls * of_function(costs, name));
        self.calls * costs.callback + self.instructions * costs.instruction + functions.sum::<u64>()
    }

    /// Counts since `earlier`; the dearest call stays the one of the whole time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let more = |name: &String, calls: u64| {
            calls - earlier.functions.get(name).copied().unwrap_or_default()
        };
        let functions = self.functions.iter();
        Self {
            calls: self.calls - earlier.calls,
            instructions: self.instructions - earlier.instructions,
            functions: functions
                .map(|(name, calls)| (name.clone(), more(name, *calls)))
                .filter(|(_, calls)| *calls > 0)
                .collect(),
            dearest: self.dearest.clone(),
        }
    }
}
