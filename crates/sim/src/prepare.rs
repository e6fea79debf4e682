//! How a policy's object becomes one that can run.
//!
//! A batch makes the same policy run a thousand times, and to link an object takes longer than a
//! short run. So what never changes is made once in a process: the linked object, by its bytes and
//! its kernel, and what is made of that for some settings. A run shares it and changes nothing of
//! it; its maps and its memory are its own.

use std::sync::{Arc, Mutex, PoisonError};

use bpf::{Backend, Config, Image, Object, Prices, Target, Template};
use model::{Advised, Costs, EventMask, Kernel, MachineSpec, PolicySpec, SetUp, SubSpec};

use crate::entries::Entries;
use crate::kernels::rules_of;
use crate::machine::{Machine, Vm};
use crate::mirror::Layouts;
use crate::ops::Ops;
use crate::setup::{SetupPlan, SetupRun, VariableChange};
use crate::subs::refused_sub;
use crate::target::target;
use crate::{Error, Options, PolicyError, kfunc, profile};

/// What is noted of programs beside their results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// What each callback does.
    tally: bool,
    /// Where programs are.
    places: bool,
}

impl Noted {
    pub(crate) fn new(wants: EventMask, tally: bool) -> Self {
        Self {
            tally,
            places: wants.intersection(EventMask::DECISIONS) != EventMask::NONE,
        }
    }
}

/// A policy made ready, but for the machine around it.
pub(crate) struct ReadyPolicy {
    pub(crate) ops: Ops,
    pub(crate) layouts: Layouts,
    entries: Vec<Entries>,
    setup: Vec<SetupRun>,
    changes: Vec<VariableChange>,
    template: Template<Machine>,
    /// Those that will be attached below it.
    pub(crate) subs: Vec<ReadySub>,
}

/// A policy that will be attached below the root, made ready: its object is part of the root's.
pub(crate) struct ReadySub {
    pub(crate) ops: Ops,
    /// The first map of its object.
    pub(crate) first_map: u32,
    /// Its first function.
    pub(crate) first_function: u32,
    entries: Vec<Entries>,
    setup: Vec<SetupRun>,
    changes: Vec<VariableChange>,
}

impl ReadySub {
    /// Nothing of what its loader does is done.
    pub(crate) fn plan(&self) -> SetupPlan {
        SetupPlan::new(
            self.entries.clone(),
            self.setup.clone(),
            self.changes.clone(),
        )
    }
}

impl ReadyPolicy {
    /// Nothing of what its loader does is done.
    pub(crate) fn plan(&self) -> SetupPlan {
        SetupPlan::new(
            self.entries.clone(),
            self.setup.clone(),
            self.changes.clone(),
        )
    }

    /// An object machine for one run.
    pub(crate) fn instance(&self, spec: &PolicySpec) -> Result<Vm, Error> {
        let vm = self.template.instance();
        vm.map_err(Box::new).map_err(PolicyError::of(spec))
    }
}

/// All that makes a difference to a [`ReadyPolicy`].
#[derive(PartialEq)]
struct ReadyKey {
    root: ObjectKey,
    /// Those below it, with their cgroups.
    below: Vec<(String, ObjectKey)>,
    cpus: u16,
    costs: Option<Costs>,
    options: Options,
    noted: Noted,
    interleaves: bool,
}

impl ReadyKey {
    fn new(spec: &PolicySpec, machine: &MachineSpec, options: Options, noted: Noted) -> Self {
        Self {
            root: ObjectKey::new(spec, machine),
            below: (spec.subs.iter())
                .map(|sub| (sub.cgroup.clone(), ObjectKey::new(&sub.policy, machine)))
                .collect(),
            cpus: machine.cpus,
            costs: machine.profile.costs().copied(),
            options,
            noted,
            interleaves: machine.interleave.is_some(),
        }
    }
}

/// All that makes a difference to an object with its settings.
#[derive(PartialEq)]
struct ObjectKey {
    linked: LinkKey,
    table: Option<String>,
    set: Vec<(String, String)>,
    setup: Vec<SetUp>,
}

impl ObjectKey {
    fn new(spec: &PolicySpec, machine: &MachineSpec) -> Self {
        Self {
            linked: LinkKey::new(spec, machine),
            table: spec.table.clone(),
            set: spec.set.clone(),
            setup: spec.setup.clone(),
        }
    }
}

/// All that makes a difference to a linked object.
#[derive(PartialEq)]
struct LinkKey {
    object: Arc<[u8]>,
    kernel: Kernel,
    hz: u32,
}

impl LinkKey {
    fn new(spec: &PolicySpec, machine: &MachineSpec) -> Self {
        Self {
            object: Arc::clone(&spec.object),
            kernel: machine.kernel,
            hz: machine.hz,
        }
    }
}

/// Makes a policy ready to run on `machine`, or takes what was made of it for another run.
pub(crate) fn prepare(
    spec: &PolicySpec,
    machine: &MachineSpec,
    options: Options,
    noted: Noted,
) -> Result<Arc<ReadyPolicy>, Error> {
    static READY: Recent<ReadyKey, ReadyPolicy> = Recent::new();
    check_subs(spec, machine)?;
    let key = ReadyKey::new(spec, machine, options, noted);
    let is_kept = |ready: &ReadyPolicy| is_little(spec, ready.template.image());
    READY.get_or_make(key, is_kept, || make_ready(spec, machine, options, noted))
}

fn make_ready(
    spec: &PolicySpec,
    machine: &MachineSpec,
    options: Options,
    noted: Noted,
) -> Result<ReadyPolicy, Error> {
    let (target, rules) = (target(machine), rules_of(machine.kernel));
    let (mut image, entries, changes) = load(spec, machine, &target)?;
    let ops = Ops::of(&image, spec.table.as_deref(), rules);
    let ops = ops.map_err(PolicyError::of(spec))?;
    let setup = setup_of(spec, &image)?;
    let mut subs = Vec::new();
    for sub in &spec.subs {
        check_sub(sub, (machine, ops.is_cid_form()))?;
        subs.push(add_sub(sub, machine, Arc::make_mut(&mut image))?);
    }
    let layouts = Layouts::of(&target, &image.reads).map_err(crate::MirrorError::from)?;
    let (functions, config) = configure(machine, options, noted);
    let template = Template::new(image, &functions, config);
    let template = template.map_err(Box::new).map_err(PolicyError::of(spec))?;
    Ok(ReadyPolicy {
        ops,
        layouts,
        entries,
        setup,
        changes,
        template,
        subs,
    })
}

fn setup_of(spec: &PolicySpec, image: &Image) -> Result<Vec<SetupRun>, Error> {
    let found = spec.setup.iter().map(|run| {
        let found = SetupRun::find(image, run);
        found.map_err(Box::new).map_err(PolicyError::of(spec))
    });
    found.collect()
}

/// Refuses schedulers where a kernel has none, before anything of theirs is looked at, and more
/// than a run may have: each takes memory for every CPU, and what has a number for each counts to
/// 255.
fn check_subs(spec: &PolicySpec, machine: &MachineSpec) -> Result<(), Error> {
    let Some(sub) = spec.subs.last() else {
        return Ok(());
    };
    let problem = if !rules_of(machine.kernel).has_sub_caps {
        let kernel = machine.kernel.name();
        let what = format!("no scheduler is attached below another one on a simulated {kernel}");
        Advised::new(what, "use `--kernel 7.3`")
    } else if spec.subs.len() > SubSpec::MOST {
        let what = format!("{} schedulers are below the root", spec.subs.len());
        Advised::new(what, format!("attach {} at most", SubSpec::MOST))
    } else {
        return Ok(());
    };
    Err(refused_sub(sub, problem))
}

/// Bytes of a cgroup's name or path, as it is asked for.
const CGROUP_NAME_MOST: usize = 255;

/// Refuses what cannot be attached below another scheduler.
fn check_sub(sub: &SubSpec, (machine, root_is_cid): (&MachineSpec, bool)) -> Result<(), Error> {
    let refuse = |what: &str, advice: &str| {
        let problem = Advised::new(what, advice);
        Err(refused_sub(sub, problem))
    };
    if !root_is_cid {
        return refuse(
            "the kernel answers EOPNOTSUPP: the policy above it is not in cid form",
            "give a root with a table `struct sched_ext_ops_cid` that has sub_attach",
        );
    }
    if machine.interleave.is_some() {
        return refuse(
            "CPUs cannot come in between where there are several schedulers",
            "leave one of the two out",
        );
    }
    if sub.policy.program.is_some() {
        return refuse(
            "a scheduler's own program is not attached below another one",
            "give its object, with `set` and `setup` for what its program does",
        );
    }
    if !sub.policy.subs.is_empty() {
        return refuse(
            "it has schedulers below it by itself",
            "list all of them beside each other: cgroups say who is above whom",
        );
    }
    // It stands in front of the name of everything that the object has.
    if sub.cgroup.len() > CGROUP_NAME_MOST {
        let what = format!("its cgroup has more than {CGROUP_NAME_MOST} bytes");
        return refuse(&what, "give the cgroup a shorter name in the workload");
    }
    Ok(())
}

/// Adds the object of `sub` to `whole`, under names that begin with its cgroup.
fn add_sub(sub: &SubSpec, machine: &MachineSpec, whole: &mut Image) -> Result<ReadySub, Error> {
    let (spec, target) = (&sub.policy, target(machine));
    let (image, mut entries, mut changes) = load(spec, machine, &target)?;
    let rules = rules_of(machine.kernel);
    let ops = Ops::of_sub(&image, spec.table.as_deref(), rules);
    let mut ops = ops.map_err(PolicyError::of(spec))?;
    let refused = if !ops.is_cid_form() {
        Some((
            "sub-sched requires cid-form struct_ops",
            "give a policy with a table `struct sched_ext_ops_cid`",
        ))
    } else if !image.types.is_empty() {
        Some((
            "it allocates objects of its own types (bpf_obj_new), which only the root can here",
            "attach it as the root",
        ))
    } else {
        None
    };
    if let Some((what, advice)) = refused {
        let problem = Advised::new(what, advice);
        return Err(refused_sub(sub, problem));
    }
    let mut setup = setup_of(spec, &image)?;
    let at = whole.join(&image, &format!("{}/", sub.cgroup.trim_matches('/')));
    ops.move_functions(at.function);
    setup.iter_mut().for_each(|run| run.move_by(at.function));
    entries
        .iter_mut()
        .for_each(|entries| entries.move_by(at.map));
    changes.iter_mut().for_each(|change| change.move_by(at.map));
    Ok(ReadySub {
        ops,
        first_map: at.map,
        first_function: at.function,
        entries,
        setup,
        changes,
    })
}

/// The functions that the simulated kernel offers on `machine`, and how programs are executed.
pub(crate) fn configure(
    machine: &MachineSpec,
    options: Options,
    noted: Noted,
) -> (Vec<bpf::HostFunction<Machine>>, Config) {
    let usual = Config::default();
    let costs = machine.profile.costs().copied();
    let mut functions = kfunc::table();
    let prices = costs.map(|costs| Prices::new(move |name| profile::of_function(&costs, name)));
    let prices = prices.unwrap_or_default();
    for function in &mut functions {
        function.cost_ps = prices.of(function.name);
    }
    let config = Config {
        cpus: u32::from(machine.cpus),
        // Between two accesses of native code nobody can come.
        backend: if machine.interleave.is_some() {
            Backend::Interpreter
        } else {
            options.backend
        },
        interleave: machine.interleave.is_some(),
        moving_clock: options.moving_clock,
        tally: noted.tally,
        places: noted.places,
        builtin_cost_ps: prices,
        budget: options.budget.unwrap_or(usual.budget),
        total_budget: options.total_budget,
        memory_bytes: options.memory_bytes.unwrap_or(usual.memory_bytes),
        ..usual
    };
    (functions, config)
}

/// The object of `spec` as `machine` would run it.
pub(crate) fn image(spec: &PolicySpec, machine: &MachineSpec) -> Result<Image, Error> {
    let (image, ..) = load(spec, machine, &target(machine))?;
    Ok(Arc::unwrap_or_clone(image))
}

/// An object that is bound, what is to be put into its maps, and which variables change later.
type Loaded = (Arc<Image>, Vec<Entries>, Vec<VariableChange>);

/// The object, bound to `target` and with its variables set.
fn load(spec: &PolicySpec, machine: &MachineSpec, target: &Target) -> Result<Loaded, Error> {
    let mut image = linked(spec, machine, target)?;
    let (mut entries, mut changes) = (Vec::new(), Vec::new());
    for (name, value) in &spec.set {
        let value = number_of(target, value);
        let change = VariableChange::find(&image, name, &value);
        if let Some(change) = change.map_err(PolicyError::of(spec))? {
            changes.push(change);
            continue;
        }
        let found = Entries::find(&image, name, &value).map_err(PolicyError::of(spec))?;
        if let Some(found) = found {
            entries.push(found);
            continue;
        }
        let set = Arc::make_mut(&mut image).set_global(name, &value);
        set.map_err(Box::new).map_err(PolicyError::of(spec))?;
    }
    Ok((image, entries, changes))
}

/// The object, bound to `target`, the kernel of `machine`.
fn linked(spec: &PolicySpec, machine: &MachineSpec, target: &Target) -> Result<Arc<Image>, Error> {
    static LINKED: Recent<LinkKey, Image> = Recent::new();
    let link = || {
        let object = Object::parse(&spec.object).map_err(Box::new);
        let object = object.map_err(PolicyError::of(spec))?;
        let image = object.link(target).map_err(Box::new);
        image.map_err(PolicyError::of(spec))
    };
    let is_kept = |image: &Image| is_little(spec, image);
    LINKED.get_or_make(LinkKey::new(spec, machine), is_kept, link)
}

/// Bytes of an object that is kept, and of what is made of it. Published schedulers have half a
/// megabyte; nobody makes short runs of what is larger than this.
const LITTLE: usize = 8 << 20;

/// Whether the object of `spec` and the `image` of it may be kept.
fn is_little(spec: &PolicySpec, image: &Image) -> bool {
    let initial = image.maps.iter().filter_map(|map| map.initial.as_ref());
    let initial: usize = initial.map(|bytes| bytes.len()).sum();
    let below = spec.subs.iter().map(|sub| sub.policy.object.len());
    let objects = spec.object.len() + below.sum::<usize>();
    objects.max(initial) <= LITTLE
}

/// The kernel's constants in `text` as their number: `SCX_OPS_ENQ_LAST|SCX_OPS_ENQ_EXITING`. Text
/// with any other word in it is left as it is.
fn number_of(target: &Target, text: &str) -> String {
    let words = text.split('|').map(|word| target.enumerator(word.trim()));
    let mask = words.collect::<Option<Vec<i64>>>();
    mask.map_or_else(
        || text.to_owned(),
        |words| {
            let mask = words.into_iter().fold(0, std::ops::BitOr::bitor);
            mask.cast_unsigned().to_string()
        },
    )
}

/// Values that this process has made of some keys, the one used last at the end.
struct Recent<K, V>(Mutex<Vec<(K, Arc<V>)>>);

impl<K: PartialEq, V> Recent<K, V> {
    /// Values that are kept when nobody uses them.
    const MOST: usize = 16;

    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The value of `key`, if there is one, else what `make` makes, which others get if `is_kept`
    /// says so. A failure is not kept, so that it is told with the words of whoever asks.
    fn get_or_make<E>(
        &self,
        key: K,
        is_kept: impl FnOnce(&V) -> bool,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if let Some(known) = self.get(&key) {
            return Ok(known);
        }
        // Others need not wait meanwhile. Two of them may make the same, of which one is kept.
        let value = Arc::new(make()?);
        if !is_kept(&value) {
            return Ok(value);
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= Self::MOST {
            all.remove(0);
        }
        all.push((key, Arc::clone(&value)));
        Ok(value)
    }

    fn get(&self, key: &K) -> Option<Arc<V>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().rposition(|(known, _)| known == key)?;
        all[at..].rotate_left(1);
        all.last().map(|(_, value)| Arc::clone(value))
    }
}
