//! Trials for a search without an end: each is a function of its number, and says what is broken.
//!
//! `tests/examples/soak.rs` makes as many as there is time for (`make soak`); a few of each kind
//! are a test.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, LazyLock};

use model::{
    Event, EventKind, EventMask, ExitKind, Fnv1a, Header, MachineSpec, Nanos, PolicySpec, Profile,
    Rng, SimTime, Sink, Summary,
};
use sim::Backend;
use stats::Conservation;
use traces::{JsonLines, Tee, TraceHash};
use workload::{CostScale, RecordedLoad, RunSpec, Workload, generate};

use crate::affinity::AffinityCheck;
use crate::choices::Choices;
use crate::hostile::Breaker;
use crate::policy::{self, TESTED};
use crate::random::RandomRun;
use crate::{both, door, program, scripted, simulate};

/// What a trial tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Test policies that use every function of the kernel, under loads with every operation.
    Random,
    /// Shipped policies under the loads of `runslice hunt`, hotplug among them.
    Shipped,
    /// Policies with a known fault under such loads.
    Faulty,
    /// A recording that is written, read and rerun.
    Replay,
    /// Loads that compute for ever, on a machine and on one twice as large.
    Twice,
    /// Objects that somebody damaged.
    Damaged,
    /// Random calls of the kernel's functions from random callbacks.
    Script,
    /// Random programs on both back ends.
    Program,
    /// Random calls of bpf(2).
    Door,
}

impl Kind {
    /// All kinds. Trial n is of kind n modulo their number.
    pub const ALL: [Self; 9] = [
        Self::Random,
        Self::Shipped,
        Self::Faulty,
        Self::Replay,
        Self::Twice,
        Self::Damaged,
        Self::Script,
        Self::Program,
        Self::Door,
    ];

    /// The kind of trial `number`.
    #[must_use]
    pub const fn of(number: u64) -> Self {
        Self::ALL[(number % Self::ALL.len() as u64) as usize]
    }
}

/// Longest simulated time of a trial under a shipped or a faulty policy.
const LONGEST: Nanos = Nanos::from_millis(1_000);
/// Simulated time that is recorded and rerun.
const RECORDED: Nanos = Nanos::from_millis(150);
/// Every so many of these trials are made on each back end: two translations take longer than
/// most runs.
const BOTH: u64 = 8;

/// Makes a trial. Gives a hash of what happened, which is the same whenever and wherever it is
/// made.
///
/// # Errors
/// What is broken: a rule of ARCHITECTURE.md's invariants, the equality of the back ends, or an
/// assertion.
pub fn trial(number: u64) -> Result<u64, String> {
    let seed = number / Kind::ALL.len() as u64;
    let made = panic::catch_unwind(AssertUnwindSafe(|| match Kind::of(number) {
        Kind::Random => random(seed),
        Kind::Shipped => shipped(seed),
        Kind::Faulty => faulty(seed),
        Kind::Replay => replay(seed),
        Kind::Twice => twice(seed),
        Kind::Damaged => damaged(seed),
        Kind::Script => script(seed),
        Kind::Program => compared(seed),
        Kind::Door => Ok(calls(seed)),
    }));
    made.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&it| it.to_owned()));
        Err(text.unwrap_or_else(|| "a panic without words".to_owned()))
    })
}

/// Who has exited, and what happened how often.
#[derive(Default)]
struct Deeds {
    groups: Vec<usize>,
    exited: Vec<usize>,
    seen: Vec<u64>,
}

impl Sink for Deeds {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, _: &Header) {
        self.seen = vec![0; EventKind::Change as usize + 1];
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.seen[event.kind as usize] += 1;
            match event.kind {
                EventKind::New => self.groups.push((event.words().a & 0xffff_ffff) as usize),
                EventKind::Exit => self.exited.push(event.task.index()),
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

/// A random run in which nothing was broken.
#[derive(Clone, Debug)]
pub struct Sound {
    /// How often each kind of event came, by its number.
    pub seen: Vec<u64>,
    /// Tasks that ran where they were no longer allowed to, for the moment that the kernel needs.
    pub evictions: u64,
    /// Hash and number of all events.
    pub hash: (u64, u64),
    /// The summary.
    pub summary: Summary,
}

/// Makes the run, and checks that time is conserved, that tasks run where they may, and that each
/// has had exactly the work of its operations.
///
/// # Errors
/// What is broken.
pub fn sound(run: &RandomRun) -> Result<Sound, String> {
    let (mut conservation, mut deeds) = (Conservation::new(), Deeds::default());
    let (mut affinity, mut hash) = (AffinityCheck::new(&run.groups), TraceHash::new());
    let mut tee = Tee::new(vec![
        &mut conservation,
        &mut affinity,
        &mut deeds,
        &mut hash,
    ]);
    let summary = sim::run(&run.spec, &mut tee).map_err(|error| error.to_string())?;
    conserved(&conservation, &summary)?;
    if let Some(violation) = affinity.violation {
        return Err(violation);
    }
    if summary.exit.message.contains("[_ON]") || summary.exit.fault.is_some() {
        return Err(format!("the policy was ejected: {:?}", summary.exit));
    }
    for task in &deeds.exited {
        let (did, had) = (
            summary.tasks[*task].run,
            run.groups[deeds.groups[*task]].work,
        );
        if did != had {
            return Err(format!("task {task} ran {did:?} for work of {had:?}"));
        }
    }
    Ok(Sound {
        seen: deeds.seen,
        evictions: affinity.evictions,
        hash: (hash.value(), hash.count()),
        summary,
    })
}

/// Time is conserved by the events, and by the tables at the end.
fn conserved(conservation: &Conservation, summary: &Summary) -> Result<(), String> {
    let checked = conservation.check(summary);
    checked.map_err(|violation| violation.to_string())?;
    let ran: Nanos = summary.tasks.iter().map(|task| task.run).sum();
    let given: Nanos = summary.cpus.iter().map(|cpu| cpu.run).sum();
    if ran == given {
        Ok(())
    } else {
        Err(format!("tasks ran {ran:?}, CPUs ran {given:?}"))
    }
}

/// A random run: sound; the same on both back ends, with other names, and beside a task that
/// never begins.
fn random(seed: u64) -> Result<u64, String> {
    let run = RandomRun::new(seed);
    let as_text = |what: String| {
        format!(
            "{what}\n{:?} on {:?}\n{}",
            run.spec.policy.set, run.spec.machine, run.text
        )
    };
    let made = sound(&run).map_err(as_text)?;
    for backend in [Backend::Interpreter, Backend::Jit] {
        let left = simulate::on(&run.spec, backend, None).map_err(|error| error.to_string())?;
        if (left.0, left.1) != made.hash || left.2 != made.summary {
            return Err(as_text(format!("{backend:?} makes other events")));
        }
    }
    let mut knobs = run.spec.policy.set.iter();
    if !knobs.any(|(knob, _)| knob == "head_letter") {
        let renamed = run.text.replace("[task.g", "[task.other_g");
        let renamed = renamed.replace("cgroup_move(g0", "cgroup_move(other_g0");
        let left = changed(&run.spec, &renamed)?;
        if (left.0, left.1) != made.hash {
            return Err(as_text("other names make other events".to_owned()));
        }
    }
    let more = format!(
        "{}[task.never]\nstart = \"3600s\"\ndo = \"run(1ms)\"\n",
        run.text
    );
    let left = changed(&run.spec, &more)?;
    if left.2.end == made.summary.end && left.2.cpus != made.summary.cpus {
        return Err(as_text(
            "a task that never begins changes the CPUs' time".to_owned(),
        ));
    }
    Ok(made.hash.0)
}

/// The run with another text of its load.
fn changed(spec: &RunSpec, text: &str) -> Result<simulate::Left, String> {
    let workload = Workload::parse(text, "changed").map_err(|error| error.to_string())?;
    let spec = RunSpec {
        workload: Arc::new(workload),
        ..spec.clone()
    };
    simulate::on(&spec, Backend::Interpreter, None).map_err(|error| error.to_string())
}

/// Names of the policies that are shipped, lessons among them.
fn shipped_names() -> Vec<&'static str> {
    let all = policies::ALL.iter().chain(policies::LESSONS);
    all.map(|policy| policy.name).collect()
}

/// Trial `seed` of `hunt`, cut short, under this policy.
fn hunted(name: &str, seed: u64, has_hotplug: bool) -> Result<RunSpec, String> {
    let trial = generate::trial(seed, seed, has_hotplug);
    let workload = Workload::parse(&trial.text, "trial").map_err(|error| error.to_string())?;
    Ok(RunSpec {
        policy: PolicySpec::of_object(name, policy::object(name)?),
        workload: Arc::new(workload),
        machine: trial.machine,
        seed: trial.seed,
        tie_seed: seed.is_multiple_of(3).then_some(seed),
        attach_after: Nanos::ZERO,
        duration: Some(trial.duration.min(LONGEST)),
    })
}

/// Makes a run whose policy may do what it likes: time is conserved all the same.
fn checked(spec: &RunSpec, on_both: bool) -> Result<(u64, Summary), String> {
    let (mut conservation, mut hash) = (Conservation::new(), TraceHash::new());
    let mut tee = Tee::new(vec![&mut conservation, &mut hash]);
    let summary = if on_both {
        simulate::on_both(spec, &mut tee)
    } else {
        sim::run(spec, &mut tee)
    };
    let summary = summary.map_err(|error| error.to_string())?;
    conserved(&conservation, &summary)?;
    Ok((hash.value(), summary))
}

fn shipped(seed: u64) -> Result<u64, String> {
    let names = shipped_names();
    let name = names[(seed % names.len() as u64) as usize];
    let on_both = (seed / names.len() as u64).is_multiple_of(BOTH);
    let spec = hunted(name, seed, true)?;
    let (mut hash, mut summary) = checked(&spec, on_both)?;
    // A policy without callbacks for CPUs that come and go leaves when one does, as it should.
    if summary.exit.kind == ExitKind::UnregKern {
        (hash, summary) = checked(&hunted(name, seed, false)?, on_both)?;
    }
    if summary.exit.kind.is_error() {
        Err(format!("{name} was ejected: {:?}", summary.exit))
    } else {
        Ok(hash)
    }
}

fn faulty(seed: u64) -> Result<u64, String> {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let names = TESTED.iter().map(|(name, _)| *name);
        names.filter(|name| name.starts_with("faulty-")).collect()
    });
    let name = NAMES[(seed % NAMES.len() as u64) as usize];
    let on_both = (seed / NAMES.len() as u64).is_multiple_of(BOTH);
    let (hash, _) = checked(&hunted(name, seed, true)?, on_both)?;
    Ok(hash)
}

/// What is written of a run is read as the same, and the load that is made of it asks for no more
/// CPU time than the tasks had.
fn replay(seed: u64) -> Result<u64, String> {
    let names = shipped_names();
    let name = names[(seed % names.len() as u64) as usize];
    let mut spec = hunted(name, seed, false)?;
    spec.duration = Some(RECORDED);
    let (mut hash, mut load, mut written) = (TraceHash::new(), RecordedLoad::new(), Vec::new());
    let mut lines = JsonLines::new(&mut written);
    let mut tee = Tee::new(vec![&mut hash, &mut load, &mut lines]);
    let recorded = sim::run(&spec, &mut tee).map_err(|error| error.to_string())?;
    lines.close().map_err(|error| error.to_string())?;
    let mut read = TraceHash::new();
    traces::replay(&*written, &mut read).map_err(|error| error.to_string())?;
    if (read.value(), read.count()) != (hash.value(), hash.count()) {
        return Err(format!("{name}: other events were read than written"));
    }
    let Some(workload) = load.into_workload("rerun", CostScale::ONE) else {
        return Ok(hash.value());
    };
    spec.workload = Arc::new(workload);
    spec.duration = Some(Nanos::new(2 * RECORDED.get()));
    let (again, rerun) = checked(&spec, false)?;
    let [had, asked] =
        [&recorded, &rerun].map(|it| it.cpus.iter().map(|cpu| cpu.run).sum::<Nanos>());
    // Where the machine's own work takes a task's time, the rerun has it twice.
    if asked <= had || spec.machine.profile != Profile::Ideal {
        Ok(again)
    } else {
        Err(format!("{name}: the rerun took {asked:?}, the run {had:?}"))
    }
}

/// Tasks that never sleep use all of a machine, and twice as much of one twice as large.
fn twice(seed: u64) -> Result<u64, String> {
    let mut rng = Rng::new(seed, 0x2c0);
    let names = shipped_names();
    let name = names[rng.below(names.len() as u64) as usize];
    let cpus = 1 + rng.below(6);
    let hogs = cpus + rng.below(3 * cpus);
    let nice = rng.below(2) * rng.below(20);
    let length = Nanos::from_millis(20 + rng.below(400));
    let mut hash = Fnv1a::new();
    let mut used = Vec::new();
    for times in [1, 2] {
        let text = format!(
            "[workload]\nname = \"twice\"\n[task.hog]\ncount = {}\nnice = {nice}\n\
             do = \"run(inf)\"\n",
            hogs * times
        );
        let mut spec = hunted(name, seed, false)?;
        let workload = Workload::parse(&text, "twice").map_err(|error| error.to_string())?;
        spec.workload = Arc::new(workload);
        spec.machine = MachineSpec {
            cpus: (cpus * times) as u16,
            hz: spec.machine.hz,
            ..MachineSpec::default()
        };
        spec.duration = Some(length);
        let (one, summary) = checked(&spec, false)?;
        hash.write(&one.to_le_bytes());
        used.push(summary.cpus.iter().map(|cpu| cpu.run).sum::<Nanos>());
    }
    let whole = Nanos::new(length.get() * cpus);
    if used == [whole, Nanos::new(whole.get() * 2)] {
        Ok(hash.value())
    } else {
        Err(format!(
            "{name}: {hogs} hogs used {used:?} of {whole:?} on {cpus} CPUs, and on twice as many"
        ))
    }
}

fn damaged(seed: u64) -> Result<u64, String> {
    static BREAKER: LazyLock<Breaker> = LazyLock::new(Breaker::new);
    let [interpreted, native] =
        [Backend::Interpreter, Backend::Jit].map(|backend| BREAKER.run(seed, backend));
    if interpreted == native {
        Ok(native.1)
    } else {
        Err(format!("interpreted {interpreted:?}, native {native:?}"))
    }
}

fn script(seed: u64) -> Result<u64, String> {
    Ok(scripted::check(&scripted::random(seed))?.0)
}

fn compared(seed: u64) -> Result<u64, String> {
    let image = Arc::new(program::generate(seed));
    image.check().map_err(|error| error.to_string())?;
    let seen = both::compare(&image, 2_000)?;
    Ok(Fnv1a::of(format!("{seen:?}").into_bytes()))
}

fn calls(seed: u64) -> u64 {
    let play = || door::play(&mut Choices::Random(Rng::new(seed, 0xd008)));
    let answers = play();
    assert_eq!(answers, play(), "the same calls had other answers");
    Fnv1a::of(format!("{answers:?}").into_bytes())
}
