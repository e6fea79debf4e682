//! A run, from what is asked to what is left of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bpf::{Door, Image, TurnStacks};
use model::user_space::UserSpace;
use model::{Advised, CpuId, EventMask, Interleave, Nanos, Sampler, SimTime, Sink, Stall, Summary};
use workload::RunSpec;

use crate::checkpoint::Checkpoint;
use crate::deed::Intervention;
use crate::interleave::races::FoundRace;
use crate::machine::{Machine, Parts, Vm};
use crate::mirror::{Layouts, Mirror};
use crate::ops::Ops;
use crate::pending::Pending;
use crate::prepare::{Noted, configure, prepare};
use crate::program::{ProgramReport, with_program};
use crate::sample::{Samples, policy_counters};
use crate::subs::refused_sub;
use crate::tally::Tally;
use crate::target::target;
use crate::view::{Audience, Watcher};
use crate::work::Work;
use crate::{
    Error, MOST_WITHOUT_END, MirrorError, Options, PolicyError, check_machine, disturber,
    latest_end, setup, task,
};

/// Runs a policy on a workload. The events go to `sink`, what else is left is the summary.
///
/// The result is a function of `spec` alone. [`Simulation`] is the same with more to ask for.
///
/// # Errors
/// The errors of [`Simulation::start`].
pub fn run(spec: &RunSpec, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let finished = Simulation::new(spec).with_sink(sink).start()?;
    Ok(finished.summary)
}

/// A run that is being asked for. What is asked beside `spec` changes nothing of the events, but
/// for a program, which is itself a part of the run.
///
/// A sink, a watcher and a sampler may be given together. Each gets every event, and the run ends
/// early only when none of them wants to know more.
#[must_use = "nothing runs before `start`"]
pub struct Simulation<'a> {
    spec: &'a RunSpec,
    audience: Audience<'a>,
    options: Options,
    tally: bool,
    user: Option<User>,
    interventions: Vec<Intervention>,
    races: bool,
}

/// A scheduler's own program, and whether its threads are no tasks and take no CPU.
type User = (Box<dyn UserSpace>, bool);

/// Results of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// How it went.
    pub summary: Summary,
    /// Counts of the callbacks, each under its kernel's name; empty unless [`Simulation::tallied`]
    /// asked for them.
    pub tally: BTreeMap<&'static str, Tally>,
    /// How the scheduler's own program ended, if the run had one.
    pub program: Option<ProgramReport>,
    /// Where CPUs came in between, if they could.
    pub interleaved: Option<Interleaved>,
}

/// Where CPUs came in between in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interleaved {
    /// Accesses of programs before which others could have come in between.
    pub points: u64,
    /// Stalls, in the order of their points, a million at most; none of a run in which programs
    /// take time.
    pub stalls: Vec<Stall>,
    /// Races, the worst first, if [`Simulation::looking_for_races`] asked for them.
    pub races: Vec<FoundRace>,
    /// Numbers of the accesses before which it matters whether another CPU comes in between; as
    /// `races`.
    pub conflicts: Vec<u64>,
    /// Callbacks that were called under other locks than the simulator's table of locks says; as
    /// `races`. Each is an error of the simulator.
    pub unlisted: Vec<String>,
}

impl<'a> Simulation<'a> {
    /// A run of `spec` to which nobody listens.
    pub fn new(spec: &'a RunSpec) -> Self {
        Self {
            spec,
            audience: Audience::default(),
            options: Options::default(),
            tally: false,
            user: None,
            interventions: Vec::new(),
            races: false,
        }
    }

    /// Events go to `sink`.
    pub fn with_sink(mut self, sink: &'a mut dyn Sink) -> Self {
        self.audience.sink = Some(sink);
        self
    }

    /// `watcher` looks into the machine between events.
    pub fn watched(mut self, watcher: &'a mut dyn Watcher) -> Self {
        self.audience.watcher = Some(watcher);
        self
    }

    /// `sampler` is shown the counters every `every`, first at time zero and last at the end.
    ///
    /// # Panics
    /// If `every` is zero.
    pub fn sampled(mut self, sampler: &'a mut dyn Sampler, every: Nanos) -> Self {
        self.audience.samples = Some(Samples::new(sampler, every));
        self
    }

    /// The run is computed as `options` say.
    pub const fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Counts what the callbacks do.
    pub const fn tallied(mut self) -> Self {
        self.tally = true;
        self
    }

    /// Looks for races between callbacks, if CPUs can come in between. The order of the run is not
    /// changed by that.
    pub const fn looking_for_races(mut self) -> Self {
        self.races = true;
        self
    }

    /// Does `interventions` to the run, which is another one from the first of them on. Only who
    /// listens to decisions gets the whole effect of [`crate::Deed::Take`], [`crate::Deed::Keep`]
    /// and [`crate::Deed::Rule`].
    pub fn with_interventions(mut self, interventions: Vec<Intervention>) -> Self {
        self.interventions = interventions;
        self
    }

    /// The policy is the one that a scheduler's own `program` attaches; that of the `spec` is a
    /// name only. The program's threads are tasks that are called as the policy is. If they are
    /// `free`, they are none and take no CPU.
    pub fn with_program(mut self, program: Box<dyn UserSpace>, free: bool) -> Self {
        self.user = Some((program, free));
        self
    }

    /// Runs to the end. A policy that misbehaves ends the run with an [`model::Exit`] in the
    /// summary.
    ///
    /// # Errors
    /// If the object, the workload or the machine is no good, if a back end is demanded that cannot
    /// execute the policy, or if a program attaches none.
    pub fn start(mut self) -> Result<Finished, Error> {
        check_machine(&self.spec.machine)?;
        check_interleaving(self.spec, self.user.is_some())?;
        let user = self.user.take();
        let spec = &*with_threads(self.spec.with_background(), user.as_ref());
        let (mut machine, mut vm) = match user {
            None => self.begin_policy(spec)?,
            Some(user) => self.begin_program(spec, user)?,
        };
        machine.plan_interventions(std::mem::take(&mut self.interventions));
        if let Some(all) = machine.interleaving.as_deref_mut().filter(|_| self.races) {
            all.look_for_races();
            // Each call says which it is.
            machine.turn.contexts.note_all();
        }
        begin_run(spec, &mut machine, &mut self.audience);
        complete(spec, (&mut machine, &mut vm), &mut self.audience)
    }

    /// Runs up to `time`, so that several runs can go on from there: what happens at `time` has
    /// happened. `None` if the run is over by then, has a program of its own, of whose
    /// process there is no copy, or is one in which CPUs come in between.
    ///
    /// Whoever listens has heard all of it then, and listens on if it is given to
    /// [`Checkpoint::resume`].
    ///
    /// # Errors
    /// The errors of [`Simulation::start`].
    ///
    /// # Panics
    /// If the run is watched or sampled: who looks into the machine sees whole runs.
    pub fn checkpoint(mut self, time: SimTime) -> Result<Option<Checkpoint>, Error> {
        let is_plain = self.audience.watcher.is_none() && !self.audience.samples();
        assert!(is_plain, "a run that is looked into has no checkpoint");
        check_machine(&self.spec.machine)?;
        check_interleaving(self.spec, self.user.is_some())?;
        // Of stacks there is no copy either.
        if self.user.is_some() || self.spec.machine.interleave.is_some() {
            return Ok(None);
        }
        let spec = self.spec.with_background().into_owned();
        let (mut machine, mut vm) = self.begin_policy(&spec)?;
        machine.plan_interventions(std::mem::take(&mut self.interventions));
        begin_run(&spec, &mut machine, &mut self.audience);
        let goes_on = machine.run_to(&mut vm, &mut self.audience, time)?;
        machine.hand_over(&vm, &mut self.audience);
        Ok(goes_on.then(|| Checkpoint::new(spec, machine, vm, time)))
    }

    /// Lets the program attach its policy, and no more: what it has loaded by then. A policy
    /// without a program is loaded.
    ///
    /// # Errors
    /// The errors of [`Simulation::start`].
    pub fn attach(mut self) -> Result<Image, Error> {
        check_machine(&self.spec.machine)?;
        let user = self.user.take();
        let spec = &*with_threads(Cow::Borrowed(self.spec), user.as_ref());
        let (_, vm) = match user {
            None => self.begin_policy(spec)?,
            Some(user) => self.begin_program(spec, user)?,
        };
        Ok(vm.image_of_now())
    }

    /// A machine that has its tasks and will attach the policy of `spec`.
    fn begin_policy(&self, spec: &RunSpec) -> Result<(Machine, Vm), Error> {
        let policy = &spec.policy;
        let ready = prepare(policy, &spec.machine, self.options, self.noted())?;
        let mut vm = ready.instance(policy)?;
        let cgroups = &spec.workload.cgroups;
        let mirror = Mirror::new(ready.layouts, &spec.machine, cgroups, &mut vm)?;
        let mut machine = self.machine_of(spec, (ready.ops.clone(), ready.plan(), mirror))?;
        machine.populate(&mut vm)?;
        let at = SimTime::ZERO + spec.attach_after;
        machine.queue.push(at, CpuId(0), Pending::Attach);
        machine.plan_subs(spec, &ready.subs)?;
        machine.plan_changes();
        Ok((machine, vm))
    }

    /// A machine on which a program has attached its policy.
    fn begin_program(&self, spec: &RunSpec, (user, free): User) -> Result<(Machine, Vm), Error> {
        refuse_subs(spec)?;
        let target = target(&spec.machine);
        let (functions, config) = configure(&spec.machine, self.options, self.noted());
        let opened = Door::open(target.clone(), functions, config);
        let opened = opened
            .map_err(Box::new)
            .map_err(PolicyError::of(&spec.policy));
        let (door, mut vm) = opened?;
        let layouts = Layouts::of(&target, &vm.image().reads).map_err(MirrorError::from)?;
        let mirror = Mirror::new(layouts, &spec.machine, &spec.workload.cgroups, &mut vm)?;
        let plan = setup::SetupPlan::new(Vec::new(), Vec::new(), Vec::new());
        let mut machine = self.machine_of(spec, (Ops::none(), plan, mirror))?;
        machine.start_program(&mut vm, (user, door), (&spec.policy.name, free))?;
        Ok((machine, vm))
    }

    /// The machine that `spec` asks for, with a policy made ready.
    fn machine_of(
        &self,
        spec: &RunSpec,
        (ops, setup, mirror): (Ops, setup::SetupPlan, Mirror),
    ) -> Result<Machine, Error> {
        let work = Work::new(Arc::clone(&spec.workload), spec.machine.cpus, spec.seed)?;
        Ok(Machine::new(Parts {
            spec: spec.machine.clone(),
            workload: Arc::clone(&spec.workload),
            seed: spec.seed,
            tie_seed: spec.tie_seed,
            ops,
            setup,
            mirror,
            work,
            wants: self.wants(),
            tally: self.tally,
        }))
    }

    fn wants(&self) -> EventMask {
        self.audience.wants()
    }

    fn noted(&self) -> Noted {
        Noted::new(self.wants(), self.tally)
    }
}

/// No scheduler is attached below one that its own program attaches.
fn refuse_subs(spec: &RunSpec) -> Result<(), Error> {
    let Some(sub) = spec.policy.subs.first() else {
        return Ok(());
    };
    let problem = Advised::new(
        "no scheduler is attached below one that its own program attaches",
        "give the root's object, with `--set` and `--run` for what its program does",
    );
    Err(refused_sub(sub, problem))
}

/// Whether CPUs can come in between in a run of `spec`, and a program can take part in it, if that
/// is asked.
fn check_interleaving(spec: &RunSpec, has_program: bool) -> Result<(), Error> {
    let no = |why, advice| Err(Error::Interleave { why, advice });
    let machine = &spec.machine;
    if machine.textbook.is_some() && has_program {
        return Err(Error::Textbook(Advised::new(
            "a textbook machine has no scheduler with a program of its own",
            "leave out the textbook",
        )));
    }
    match &machine.interleave {
        None => Ok(()),
        Some(_) if !TurnStacks::<Machine>::EXIST => no(
            "this build of runslice, for WebAssembly, has one stack",
            "use the program for the command line",
        ),
        Some(_) if has_program => no(
            "the scheduler's own program runs at the same time",
            "give its object, with `--set` and `--setup` for what its program does",
        ),
        Some(Interleave::Timed) if machine.profile.costs().is_none() => no(
            "nothing takes time under the profile `ideal`",
            "choose a profile with costs, such as `--profile default-v0`",
        ),
        Some(_) => Ok(()),
    }
}

/// `spec` with a group for the program's threads, if they are tasks.
fn with_threads<'a>(spec: Cow<'a, RunSpec>, user: Option<&User>) -> Cow<'a, RunSpec> {
    match user {
        Some((_, false)) => Cow::Owned(with_program(&spec)),
        _ => spec,
    }
}

/// Says to those who listen what is to come, and when it ends.
fn begin_run(spec: &RunSpec, machine: &mut Machine, audience: &mut Audience<'_>) {
    let duration = duration_of(spec, machine);
    let workload = Arc::clone(&machine.workload);
    let header = workload.header(&spec.policy.name, &spec.machine, spec.seed, duration);
    audience.begin(&header);
    machine.tell_frequencies();
    let disturber = disturber(spec).filter(|_| duration.is_none());
    if let Some(end) = duration.or(disturber.map(|_| MOST_WITHOUT_END)) {
        machine.end_at(end);
    }
}

/// Lets a run that has begun go on to its end, and says what is left of it.
pub(crate) fn complete(
    spec: &RunSpec,
    (machine, vm): (&mut Machine, &mut Vm),
    audience: &mut Audience<'_>,
) -> Result<Finished, Error> {
    run_machine(spec, machine, vm, audience)?;
    // Detaching calls the policy, too, and that is no part of the run.
    let tally = machine.calls.take_tally();
    let summary = finish(machine, vm, audience);
    let has_program = machine.program.is_some();
    let interleaved = machine.interleaving.as_deref().map(|all| Interleaved {
        points: all.points(),
        stalls: all.stalls().to_vec(),
        races: all.races_at(|op| vm.place(op)),
        conflicts: all.conflicts(),
        unlisted: all.unlisted(),
    });
    Ok(Finished {
        interleaved,
        summary,
        tally,
        program: has_program.then(|| machine.program_report()),
    })
}

/// Lets the machine run to its end, whose tasks exist.
fn run_machine(
    spec: &RunSpec,
    machine: &mut Machine,
    vm: &mut Vm,
    audience: &mut Audience<'_>,
) -> Result<(), Error> {
    machine.run(vm, audience)?;
    let has_end = latest_end(spec).0.is_some();
    let disturber = disturber(spec).filter(|_| !has_end);
    if let Some(name) = disturber.filter(|_| machine.now >= SimTime::ZERO + MOST_WITHOUT_END) {
        machine.note(format!(
            "nothing says when the run ends, and `{name}` goes on for ever: it was ended after \
             {MOST_WITHOUT_END}; a duration or the workload's `stop` can say otherwise"
        ));
    }
    let missed = machine.interleaving.as_deref().and_then(|all| {
        let missed = all.missed()?;
        Some((missed, all.points()))
    });
    if let Some((missed, all)) = missed {
        machine.note(format!(
            "no CPU stops before access {missed}, as `at=` asks for: the run has {all} accesses"
        ));
    }
    if let Some(error) = machine.take_program_failure() {
        return Err(error.into());
    }
    if let Some(error) = machine.take_work_error() {
        return Err(error.into());
    }
    if let Some(failure) = machine.subs.failure.take() {
        return Err(Error::Sub(failure));
    }
    if let Some(failure) = machine.setup.take_failure() {
        return Err(failure.of(&spec.policy.name));
    }
    Ok(())
}

fn duration_of(spec: &RunSpec, machine: &mut Machine) -> Option<Nanos> {
    let (end, note) = latest_end(spec);
    if let Some(note) = note {
        machine.note(note);
    }
    end
}

/// Detaches the policy, closes the books and hands the last events over.
fn finish(machine: &mut Machine, vm: &mut Vm, sink: &mut dyn Sink) -> Summary {
    machine.note_idle_cpus();
    machine.note_changes();
    machine.note_never_attached();
    let starved = machine.starved_at_end();
    let growing = machine.work.growing(machine.now);
    machine.note_frequencies(vm.image());
    machine.close_books();
    machine.give_up_deadlines();
    machine.hand_over(vm, sink);
    // What happens from here on, the end of a program included, is no decision of the policy's.
    machine.turn.decisions.end();
    if machine.program.is_some() {
        machine.end_program(vm);
    }
    let exit = machine.detach(vm);
    machine.hand_over(vm, sink);
    machine.tell_exit(&exit, sink);
    let end = machine.now;
    sink.finish(end);
    machine.note_arena(vm);
    let (printed, mut notes) = machine.log.take();
    notes.extend(machine.work.notes());
    Summary {
        end,
        exit,
        cpus: machine.cpus.iter().map(|cpu| cpu.times).collect(),
        tasks: machine.tasks.iter().map(task::Task::times).collect(),
        counters: machine.scheds.root.counters.named(&machine.rules),
        spent: machine.spent_by_kind(),
        policy_counters: sums(policy_counters(vm, machine.spec.cpus.into())),
        printed,
        starved,
        excused: None,
        hardware: machine.hardware_use(),
        growing,
        blocked: machine.work.blocked(),
        watchdog: machine.watchdog_timeout(),
        subs: machine.subs_at_end(),
        instructions: vm.retired_by_all(),
        callbacks: machine.calls.count(),
        notes,
    }
}

/// Counters over all CPUs.
fn sums(counters: Vec<(String, Vec<u64>)>) -> Vec<(String, u64)> {
    let sum = |values: Vec<u64>| values.into_iter().fold(0, u64::wrapping_add);
    let counters = counters.into_iter();
    counters.map(|(name, values)| (name, sum(values))).collect()
}
