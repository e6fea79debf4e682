//! What a policy's user space does: the programs that its loader runs in the kernel before and
//! after it attaches, and the variables that get another value while it runs.
//!
//! Source: `bpf_prog_test_run_syscall()`, kernel 6.18, `net/bpf/test_run.c`: a program gets a copy
//! of the caller's context, runs on the caller's CPU and gives its result back. What it does is
//! outside every callback.

use bpf::Image;
use model::{Advised, CpuId, Nanos, SetUp, SetUpTime, SimTime, span};

use crate::entries::Entries;
use crate::machine::{Machine, Vm};
use crate::ops::Ops;
use crate::pending::Pending;
use crate::schedulers::SchedId;
use crate::{Error, PolicyError};

/// A program to run, found in the object.
#[derive(Clone, Debug)]
pub(crate) struct SetupRun {
    name: String,
    function: u32,
    context: Vec<u8>,
    when: SetUpTime,
}

impl SetupRun {
    /// The functions of its object lie so far behind where the object has them.
    pub(crate) const fn move_by(&mut self, functions: u32) {
        self.function += functions;
    }

    /// Finds what `wanted` names.
    pub(crate) fn find(image: &Image, wanted: &SetUp) -> Result<Self, bpf::SetUpError> {
        let (function, context) = image.context(&wanted.program, &wanted.args)?;
        Ok(Self {
            name: wanted.program.clone(),
            function,
            context,
            when: wanted.when,
        })
    }
}

/// A variable that gets another value while the policy runs, as user space stores into the memory
/// that it shares with the policy: no CPU is stopped, and no callback knows of it.
#[derive(Clone, Debug)]
pub(crate) struct VariableChange {
    /// The variable and the time, as the user wrote them, and the value.
    text: String,
    when: SimTime,
    value: bpf::GlobalValue,
    is_made: bool,
}

impl VariableChange {
    /// The maps of its object lie so far behind where the object has them.
    pub(crate) const fn move_by(&mut self, maps: u32) {
        self.value.map += maps;
    }

    /// Finds what `name` with a time behind it, `interactive@5s`, sets to `value`. `None` when it
    /// has none.
    pub(crate) fn find(
        image: &Image,
        name: &str,
        value: &str,
    ) -> Result<Option<Self>, PolicyError> {
        let Some((variable, when)) = name.rsplit_once('@') else {
            return Ok(None);
        };
        let wrong = |why| PolicyError::When {
            name: name.to_owned(),
            why,
        };
        let when = span::parse(when).map_err(wrong)?;
        if when > LATEST {
            return Err(wrong("a run is shorter than 292 years".to_owned()));
        }
        Ok(Some(Self {
            text: format!("{name}={value}"),
            when: SimTime::ZERO + when,
            value: image.later_value(variable, value).map_err(Box::new)?,
            is_made: false,
        }))
    }
}

/// No run lasts as long.
const LATEST: Nanos = Nanos::new(i64::MAX.cast_unsigned());

/// What a loader does that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    what: String,
    why: String,
}

impl Failure {
    /// As an error of the run of `policy`.
    pub(crate) fn of(self, policy: &str) -> Error {
        Error::SetUpFailed {
            policy: policy.to_owned(),
            what: self.what,
            why: self.why,
        }
    }
}

/// What the policy's loader puts into maps and runs, and which of it failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetupPlan {
    entries: Vec<Entries>,
    runs: Vec<SetupRun>,
    changes: Vec<VariableChange>,
    failure: Option<Failure>,
}

impl SetupPlan {
    /// Nothing of it has been done.
    pub(crate) fn new(
        entries: Vec<Entries>,
        runs: Vec<SetupRun>,
        changes: Vec<VariableChange>,
    ) -> Self {
        Self {
            entries,
            runs,
            changes,
            failure: None,
        }
    }

    /// Takes the changes of another policy, whose plan so has none.
    pub(crate) fn take_changes(&mut self, other: &mut Self) {
        self.changes.append(&mut other.changes);
    }

    /// What failed, if anything did.
    pub(crate) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

/// A scheduler that will be attached below another one.
#[derive(Clone, Debug)]
pub(crate) struct PlannedSub {
    /// How tables call it.
    pub name: String,
    /// Number of its cgroup.
    pub cgroup: u32,
    /// The cgroup as it was asked for.
    pub asked: String,
    pub ops: Ops,
    /// What its loader does.
    pub setup: SetupPlan,
    /// The first map of its object, and its first function.
    pub first_map: u32,
    pub first_function: u32,
    /// Its first place; [`model::NOWHERE`] before it is attached.
    pub first_place: u32,
    /// Which scheduler it has become.
    pub sched: Option<SchedId>,
}

impl Machine {
    /// Fills maps and runs the set-up programs whose time is `when`. False if something failed,
    /// which ends the run: a loader would give up too.
    pub(crate) fn set_up(&mut self, vm: &mut Vm, when: SetUpTime) -> bool {
        let mut plan = std::mem::take(&mut self.setup);
        plan.failure = self
            .try_to_set_up(vm, (&mut plan, SchedId::ROOT), when)
            .err();
        let failed = plan.failure.is_some();
        self.setup = plan;
        self.halt_if(failed);
        !failed
    }

    /// The same for a scheduler below the root: `who`, the planned one of this index.
    pub(crate) fn set_up_sub(
        &mut self,
        vm: &mut Vm,
        (index, who): (usize, SchedId),
        when: SetUpTime,
    ) -> bool {
        let mut plan = std::mem::take(&mut self.planned[index].setup);
        let failure = self.try_to_set_up(vm, (&mut plan, who), when).err();
        self.planned[index].setup = plan;
        let Some(Failure { what, why }) = failure else {
            return true;
        };
        let why = format!("{what} failed: {why}");
        self.refuse_sub(index, Advised::new(why, "its loader gives up, too"));
        false
    }

    /// Puts what is to be changed into the queue.
    pub(crate) fn plan_changes(&mut self) {
        for (index, change) in self.setup.changes.iter().enumerate() {
            let what = Pending::Change { index };
            self.queue.push(change.when, CpuId(0), what);
        }
    }

    /// Gives a variable another value.
    pub(crate) fn make_change(&mut self, vm: &mut Vm, index: usize) {
        let change = &mut self.setup.changes[index];
        change.is_made = true;
        let start = vm.map_value_addr(change.value.map, &0_u32.to_le_bytes(), 0);
        let start = start.expect("a data section has one value");
        for at in &change.value.offsets {
            vm.memory().write(start + *at as u64, &change.value.bytes);
        }
    }

    /// Says which changes the run was too short for.
    pub(crate) fn note_changes(&mut self) {
        let missing = self.setup.changes.iter().filter(|it| !it.is_made);
        let texts: Vec<String> = missing
            .map(|it| format!("`{}` was not set: the run had ended before", it.text))
            .collect();
        texts.into_iter().for_each(|text| self.note(text));
    }

    fn try_to_set_up(
        &mut self,
        vm: &mut Vm,
        (plan, who): (&mut SetupPlan, SchedId),
        when: SetUpTime,
    ) -> Result<(), Failure> {
        for entries in std::mem::take(&mut plan.entries) {
            entries.put(vm, self).map_err(|errno| Failure {
                what: format!("map entry `{}`", entries.name()),
                why: errno.to_string(),
            })?;
        }
        let mut due = plan.runs.iter().filter(|run| run.when == when);
        due.try_for_each(|run| self.set_up_with(vm, run, who))
    }

    fn set_up_with(&mut self, vm: &mut Vm, run: &SetupRun, who: SchedId) -> Result<(), Failure> {
        let mut context = run.context.clone();
        let result = self.outside_callbacks_of(vm, who, |vm, machine| {
            vm.run_syscall(run.function, &mut context, machine)
        });
        let why = match result {
            // A program's result is an `int`.
            Ok(result) if result as u32 == 0 => return Ok(()),
            Ok(result) => format!("it returned {}", result as u32 as i32),
            Err(fault) => fault.to_string(),
        };
        let what = format!("set-up program `{}`", run.name);
        Err(Failure { what, why })
    }
}
