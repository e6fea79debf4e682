//! What is drawn for the runs of an evaluation: loads, machines, seeds, names of tasks, their
//! order and numbers, and when they begin.
//!
//! All of it comes from a key and an epoch, and nothing from a candidate: every candidate and the
//! baseline get the same draws, so that their runs are pairs. Who does not know the key cannot
//! write a policy for the draws.

use std::sync::Arc;

use model::{MachineSpec, Nanos, PolicySpec, Profile, Rng, SubSpec};
use workload::{RunSpec, generate};

use super::probe::{LENGTH, probe};
use super::spec::{Spec, SpecLoad};
use crate::services::Services;
use crate::shrink::{Case, Tables};
use crate::workload_arg::Written;

/// A task may begin by up to so much later, unless its load says more.
const JITTER: Nanos = Nanos::from_millis(4);
/// So many tasks that end at once are born first at most: they take the lowest numbers.
const DECOYS: u64 = 40;
/// Loads of the gate that nobody has written run for up to this time.
const LONGEST: Nanos = Nanos::from_secs(20);
/// One generated load of so many runs longer than was drawn for it, up to that.
const LONG_ONES: u32 = 4;

/// Loads of each pool that have somebody of every kind whom a policy may starve.
const PROBES: u32 = 4;

/// Which draws, and who may know what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pool {
    /// Every figure is told.
    Open,
    /// One bit is told: whether a limit is broken.
    Gate,
    /// Drawn once a search, for at most five nominees.
    Sealed,
}

impl Pool {
    /// In documents and options.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Gate => "gate",
            Self::Sealed => "sealed",
        }
    }
}

/// What draws depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    /// Whoever logs a question does not log the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Of a key that somebody keeps.
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        Self(*blake3::hash(key).as_bytes())
    }

    /// What a load of this name gets in a run of this number.
    #[must_use]
    pub fn rng(&self, (pool, epoch): (Pool, u64), load: &str, number: u32) -> Rng {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        let words = format!("{}\0{epoch}\0{load}\0{number}", pool.word());
        hasher.update(words.as_bytes());
        let hash = hasher.finalize();
        let seed = std::array::from_fn(|at| hash.as_bytes()[at]);
        Rng::new(u64::from_le_bytes(seed), 0)
    }
}

/// A run that is drawn, before it has a policy.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Number of its load in the file; `None` of a load that nobody has written.
    pub load: Option<usize>,
    /// The load, for people.
    pub name: String,
    /// The run, with the tasks in the order in which they are born, under their own names.
    pub case: Case,
    /// What is attached below whichever policy the run gets.
    pub subs: Vec<SubSpec>,
    /// What each group of tasks is called in the run, beside its own name.
    pub names: Vec<(String, String)>,
    /// Groups that only take numbers.
    pub decoys: Vec<String>,
}

/// A draw with a policy.
#[derive(Clone, Debug)]
pub struct Disguised {
    /// The run, with the drawn names.
    pub spec: RunSpec,
    /// By group, its own name.
    pub own: Vec<String>,
}

impl Draw {
    /// The run of `policy`.
    ///
    /// # Errors
    /// When the load is bad.
    pub fn run(&self, services: &Services<'_>, policy: &PolicySpec) -> anyhow::Result<Disguised> {
        let mut spec = self.case_of(policy).spec(services)?;
        let own = spec.workload.groups.iter().map(|it| it.name.clone());
        let own: Vec<String> = own.collect();
        let groups = &mut Arc::make_mut(&mut spec.workload).groups;
        for group in groups {
            let drawn = self.names.iter().find(|(own, _)| *own == group.name);
            if let Some((_, drawn)) = drawn {
                group.name.clone_from(drawn);
            }
        }
        Ok(Disguised { spec, own })
    }

    /// The same run under the tasks' own names, which can be written down.
    #[must_use]
    pub fn case_of(&self, policy: &PolicySpec) -> Case {
        let mut case = Case {
            policy: policy.clone(),
            ..self.case.clone()
        };
        case.policy.subs.extend(self.subs.iter().cloned());
        case
    }

    /// The same, which ends sooner.
    #[must_use]
    pub fn shorter(&self, most: Nanos) -> Self {
        let mut same = self.clone();
        let length = same.case.duration.map_or(most, |it| it.min(most));
        same.case.duration = Some(length);
        same
    }
}

/// All draws of a pool, load by load.
///
/// # Errors
/// When a load does not fit a machine of the file.
pub fn draws(
    services: &Services<'_>,
    spec: &Spec,
    secret: &Secret,
    (pool, epoch): (Pool, u64),
) -> anyhow::Result<Vec<Draw>> {
    let mut all = Vec::new();
    let is_held_out = pool != Pool::Open;
    for (at, load) in spec.loads.iter().enumerate() {
        if load.is_held_out && !is_held_out {
            continue;
        }
        for number in 0..spec.draws {
            let mut rng = secret.rng((pool, epoch), &format!("{at} {}", load.name), number);
            all.push(of_load(services, spec, (at, load), &mut rng)?);
        }
    }
    for number in 0..PROBES {
        let mut rng = secret.rng((pool, epoch), "probe", number);
        // A policy that only knows small machines is good in the open draws.
        let is_large = is_held_out && number == PROBES - 1;
        all.push(probed(services, spec, (number, is_large), &mut rng)?);
    }
    if is_held_out {
        for number in 0..spec.generated {
            let mut rng = secret.rng((pool, epoch), "", number);
            all.push(generated(services, spec, number, &mut rng)?);
        }
    }
    Ok(all)
}

fn of_load(
    services: &Services<'_>,
    spec: &Spec,
    (at, load): (usize, &SpecLoad),
    rng: &mut Rng,
) -> anyhow::Result<Draw> {
    let mut machine = load.machine.clone();
    let lists = &spec.machine;
    machine.cpus = one_of(rng, &lists.cpus).unwrap_or(machine.cpus);
    machine.hz = one_of(rng, &lists.hz).unwrap_or(machine.hz);
    machine.kernel = one_of(rng, &lists.kernels).unwrap_or(machine.kernel);
    charge(&mut machine, spec);
    let case = Case {
        policy: spec.baseline.policy.clone(),
        machine,
        workload: load.written.clone(),
        scale: load.scale.clone(),
        seed: rng.next_u64() >> 11,
        duration: Some(spec.length(load)),
    };
    let drawn = disguised(services, (Some(at), load.name.clone()), case, rng)?;
    Ok(Draw {
        subs: load.subs.clone(),
        ..drawn
    })
}

/// Lets things take time where the load does not say it, in draws of every kind alike: a policy
/// that measures its own code could tell them apart.
fn charge(machine: &mut MachineSpec, spec: &Spec) {
    if machine.profile == Profile::Ideal && machine.textbook.is_none() {
        machine.profile = spec.machine.profile.clone();
    }
}

/// A load that nobody has written, on a machine that nobody has chosen.
fn generated(
    services: &Services<'_>,
    spec: &Spec,
    number: u32,
    rng: &mut Rng,
) -> anyhow::Result<Draw> {
    let mut trial = generate::trial(rng.next_u64() >> 11, 0, false);
    charge(&mut trial.machine, spec);
    let name = format!("generated-{number}");
    // How long a run lasts is nothing that a policy may count on.
    let longer = LONGEST.get() - trial.duration.get().min(LONGEST.get());
    let longer = if number % LONG_ONES == LONG_ONES - 1 {
        rng.below(longer + 1)
    } else {
        0
    };
    let case = Case {
        policy: empty_policy(),
        machine: trial.machine,
        workload: Written {
            file: format!("{name}.toml"),
            text: trial.text,
        },
        scale: Vec::new(),
        seed: trial.seed,
        duration: Some(Nanos::new(trial.duration.get() + longer)),
    };
    disguised(services, (None, name), case, rng)
}

/// A load that has somebody of every kind.
fn probed(
    services: &Services<'_>,
    spec: &Spec,
    (number, is_large): (u32, bool),
    rng: &mut Rng,
) -> anyhow::Result<Draw> {
    let name = format!("probe-{number}");
    let (mut machine, text) = probe(&name, &spec.machine.kernels, is_large, rng);
    charge(&mut machine, spec);
    let case = Case {
        policy: empty_policy(),
        machine,
        workload: Written {
            file: format!("{name}.toml"),
            text,
        },
        scale: Vec::new(),
        seed: rng.next_u64() >> 11,
        duration: Some(LENGTH),
    };
    disguised(services, (None, name), case, rng)
}

fn empty_policy() -> PolicySpec {
    PolicySpec::of_object("", Arc::from([]))
}

/// The case with its tasks in another order, behind some that only take numbers, later by a little,
/// and under other names.
fn disguised(
    services: &Services<'_>,
    (load, name): (Option<usize>, String),
    case: Case,
    rng: &mut Rng,
) -> anyhow::Result<Draw> {
    let mut draw = Draw {
        load,
        name,
        case,
        subs: Vec::new(),
        names: Vec::new(),
        decoys: Vec::new(),
    };
    let decoy = word(rng);
    let count = rng.below(DECOYS + 1);
    let tables = Tables::read(&draw.case.workload.text);
    if let Some(tables) = tables.filter(|_| !draw.case.workload.is_import()) {
        let mut mixed = tables.with_tasks_in_order(&mut |count| order(rng, count));
        mixed.set_start_jitter(JITTER);
        if count > 0 {
            mixed.add_first_task(&decoy, count);
        }
        let text = mixed.text();
        let changed = Case {
            workload: Written {
                text,
                ..draw.case.workload.clone()
            },
            ..draw.case.clone()
        };
        // A text that is only good as somebody has written it stays so.
        if changed.spec(services).is_ok() {
            draw.case = changed;
            draw.decoys = vec![decoy];
        }
    }
    let spec = draw.case.spec(services)?;
    let own: Vec<String> = spec
        .workload
        .groups
        .iter()
        .map(|it| it.name.clone())
        .collect();
    draw.names = renamed(own, rng);
    Ok(draw)
}

/// A permutation of so many.
fn order(rng: &mut Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

/// In one of four draws the tasks keep their names, in one they get those of each other, and in
/// the others new ones.
fn renamed(own: Vec<String>, rng: &mut Rng) -> Vec<(String, String)> {
    let drawn = match rng.below(4) {
        0 => own.clone(),
        1 => {
            let order = order(rng, own.len());
            order.into_iter().map(|at| own[at].clone()).collect()
        }
        _ => own.iter().map(|_| word(rng)).collect(),
    };
    own.into_iter().zip(drawn).collect()
}

/// A name that says nothing, of as many letters as a kernel keeps at most.
fn word(rng: &mut Rng) -> String {
    let letter = |rng: &mut Rng| char::from(b'a' + rng.below(26) as u8);
    let length = 6 + rng.below(9);
    (0..length).map(|_| letter(rng)).collect()
}

fn one_of<T: Copy>(rng: &mut Rng, list: &[T]) -> Option<T> {
    // Also where nothing is listed, so that one list does not change what others get.
    let number = rng.next_u64();
    let count = list.len() as u64;
    (count > 0).then(|| list[(number % count) as usize])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn spec(text: &str) -> Spec {
        let services = Services::default();
        Spec::of_text(&services, "e.toml", Path::new(""), text.to_owned()).unwrap()
    }

    const DESK: &str = "[[load]]\nload = \"desk\"\n[[load]]\nload = \"chat\"\n\
                        [held-out]\nload = [{ load = \"web\" }]\ngenerated = 8\n\
                        [machine]\nhz = [250, 1000]\n";

    fn drawn(key: &[u8], pool: Pool, epoch: u64) -> Vec<Draw> {
        let services = Services::default();
        draws(&services, &spec(DESK), &Secret::of(key), (pool, epoch)).unwrap()
    }

    fn said(all: &[Draw]) -> Vec<String> {
        all.iter().map(|it| format!("{it:?}")).collect()
    }

    #[test]
    fn draws_are_a_function_of_key_pool_and_epoch() {
        let one = said(&drawn(b"k", Pool::Open, 0));
        assert_eq!(one, said(&drawn(b"k", Pool::Open, 0)));
        for other in [
            drawn(b"j", Pool::Open, 0),
            drawn(b"k", Pool::Open, 1),
            drawn(b"k", Pool::Gate, 0),
            drawn(b"k", Pool::Sealed, 0),
        ] {
            let same = said(&other).into_iter().filter(|it| one.contains(it));
            assert_eq!(same.count(), 0);
        }
    }

    #[test]
    fn only_the_held_out_pools_have_the_loads_that_are_held_out_and_random_ones() {
        let names = |pool| -> BTreeSet<String> {
            drawn(b"k", pool, 0).into_iter().map(|it| it.name).collect()
        };
        assert_eq!(
            names(Pool::Open).into_iter().collect::<Vec<_>>(),
            ["chat", "desk", "probe-0", "probe-1", "probe-2", "probe-3"]
        );
        for pool in [Pool::Gate, Pool::Sealed] {
            assert_eq!(names(pool).len(), 3 + 4 + 8, "{pool:?}");
        }
    }

    #[test]
    fn names_numbers_and_machines_differ_from_draw_to_draw() {
        let services = Services::default();
        let all = drawn(b"k", Pool::Open, 0);
        let policy = crate::policy::find(&services, "fifo").unwrap();
        let (mut firsts, mut hogs, mut ticks) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for draw in all.iter().filter(|it| it.name == "desk") {
            let run = draw.run(&services, &policy).unwrap();
            let at = run.own.iter().position(|it| it == "hog").unwrap();
            firsts.insert(at);
            hogs.insert(run.spec.workload.groups[at].name.clone());
            ticks.insert(run.spec.machine.hz);
            assert_eq!(run.spec.machine.profile, Profile::DefaultV0);
            let names: BTreeSet<_> = run.spec.workload.groups.iter().map(|it| &it.name).collect();
            assert_eq!(names.len(), run.own.len(), "no two groups have one name");
        }
        assert!(firsts.len() > 3, "{firsts:?}");
        assert!(hogs.len() > 3 && hogs.contains("hog"), "{hogs:?}");
        assert_eq!(ticks.into_iter().collect::<Vec<_>>(), [250, 1000]);
    }

    #[test]
    fn no_draw_is_told_from_others_by_what_takes_time() {
        for pool in [Pool::Open, Pool::Gate, Pool::Sealed] {
            for draw in drawn(b"k", pool, 0) {
                assert_eq!(
                    draw.case.machine.profile,
                    Profile::DefaultV0,
                    "{}",
                    draw.name
                );
            }
        }
    }

    #[test]
    fn a_key_is_not_in_what_is_logged() {
        assert_eq!(format!("{:?}", Secret::of(b"k")), "Secret");
    }
}
