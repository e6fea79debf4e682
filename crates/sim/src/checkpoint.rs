//! A run at a moment, from which any number of runs go on.
//!
//! Trials, and a search for the moment at which something goes wrong, make the same run again and
//! again up to a moment. A copy of the machine at that moment takes less time than that.
//!
//! The law: a run that goes on from here has the events and the summary of the run that was never
//! stopped.

use model::{EventMask, Nanos, SimTime, Sink};
use workload::RunSpec;

use crate::deed::Intervention;
use crate::machine::{Machine, Vm};
use crate::runs::{Finished, complete};
use crate::view::Audience;
use crate::{Error, PolicyError};

/// A run that has come to a moment: see [`crate::Simulation::checkpoint`].
pub struct Checkpoint {
    spec: RunSpec,
    machine: Machine,
    vm: Vm,
    time: SimTime,
}

impl Checkpoint {
    pub(crate) const fn new(spec: RunSpec, machine: Machine, vm: Vm, time: SimTime) -> Self {
        Self {
            spec,
            machine,
            vm,
            time,
        }
    }

    /// The moment; what happens at it has happened.
    #[must_use]
    pub const fn time(&self) -> SimTime {
        self.time
    }

    /// A run that goes on from here.
    pub const fn resume<'a>(&'a self) -> ResumedRun<'a> {
        ResumedRun {
            from: self,
            sink: None,
            interventions: Vec::new(),
            until: None,
        }
    }
}

/// A run that goes on from a [`Checkpoint`].
#[must_use = "nothing runs before `start`"]
pub struct ResumedRun<'a> {
    from: &'a Checkpoint,
    sink: Option<&'a mut dyn Sink>,
    interventions: Vec<Intervention>,
    until: Option<Nanos>,
}

impl<'a> ResumedRun<'a> {
    /// Events from the checkpoint on go to `sink`, which gets no header: it goes on listening, or
    /// is a copy of one that has listened up to the checkpoint.
    pub fn with_sink(mut self, sink: &'a mut dyn Sink) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Does `interventions` to the run, behind the checkpoint.
    pub fn with_interventions(mut self, interventions: Vec<Intervention>) -> Self {
        self.interventions = interventions;
        self
    }

    /// Ends the run at `time` at the latest.
    pub const fn until(mut self, time: Nanos) -> Self {
        self.until = Some(time);
        self
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// The errors of [`crate::Simulation::start`].
    ///
    /// # Panics
    /// If the sink wants events that nobody wanted before the checkpoint, or an intervention or the
    /// end does not lie behind it.
    pub fn start(self) -> Result<Finished, Error> {
        let Checkpoint {
            spec, machine, vm, ..
        } = self.from;
        let time = self.from.time;
        let is_behind = |at: SimTime| assert!(at > time, "{at} does not lie behind {time}");
        self.interventions.iter().for_each(|it| is_behind(it.at));
        let wanted = self.sink.as_ref().map_or(EventMask::NONE, |it| it.wants());
        assert!(
            machine.wants_all(wanted),
            "a sink wants what was not recorded before the checkpoint"
        );
        let copied = vm.copy().map_err(bpf::InstanceError::Reserve);
        let copied = copied.map_err(Box::new);
        let mut vm = copied.map_err(PolicyError::of(&spec.policy))?;
        let mut machine = machine.clone();
        if let Some(until) = self.until {
            is_behind(SimTime::ZERO + until);
            machine.end_at(until);
        }
        machine.plan_interventions(self.interventions);
        let mut audience = Audience {
            sink: self.sink,
            ..Audience::default()
        };
        complete(spec, (&mut machine, &mut vm), &mut audience)
    }
}
