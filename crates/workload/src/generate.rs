//! Random machines and loads, for `hunt`, and loads for real processes, for `fidelity`.
//!
//! A load is a text, so that whoever gets one can read and change it. It is made of stretches of
//! work as they occur: tasks that wake often, that compute for ever, that are bound to a CPU, that
//! wait for each other, that come late, fork or yield; and of what disturbs them: changes of
//! affinity, nice value and class, real-time tasks. `trials` has what only `hunt` draws.

mod like;
mod trials;

use std::fmt::Write as _;

use model::{Kernel, MachineSpec, Nanos, Profile, Rng};

pub use like::{WantedTask, trial_like};

/// Another number draws other trials from a seed.
pub const VERSION: u32 = 2;

/// Streams of trials are apart from all others of a seed.
const STREAM: u64 = 7 << 60;
/// Those of loads that are played, too.
const PLAYED: u64 = 9 << 60;

/// A machine and a load for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The machine.
    pub machine: MachineSpec,
    /// The load.
    pub text: String,
    /// Seed of the load's own choices.
    pub seed: u64,
    /// How long it runs.
    pub duration: Nanos,
}

/// Trial `number` of `seed`; without CPUs that go if the policy ends itself then.
#[must_use]
pub fn trial(seed: u64, number: u64, has_hotplug: bool) -> Trial {
    trial_on(seed, number, has_hotplug, machine_of(seed, number))
}

/// The machine of trial `number` of `seed`.
#[must_use]
pub fn machine_of(seed: u64, number: u64) -> MachineSpec {
    machine(&mut Rng::new(seed, STREAM + number))
}

/// As [`trial`], with a load for `machine`.
#[must_use]
pub fn trial_on(seed: u64, number: u64, has_hotplug: bool, machine: MachineSpec) -> Trial {
    let mut rng = Rng::new(seed, STREAM + number);
    // What is drawn next does not depend on whose machine it is.
    let _ = self::machine(&mut rng);
    let millis = [1_500, 2_000, 4_000, 4_000, 8_000, 16_000];
    let duration = Nanos::from_millis(pick(&mut rng, &millis));
    let seed = rng.next_u64() >> 11;
    let mut load = Load::new(&format!("trial-{number}"), machine.cpus, rng);
    load.fill_trial(duration, has_hotplug);
    Trial {
        machine,
        text: load.text,
        seed,
        duration,
    }
}

/// Load `number` of `seed` for real processes on `cpus` CPUs: it has no end of its own, and
/// nothing in it that only a simulated machine has.
#[must_use]
pub fn playable(seed: u64, number: u64, cpus: u16) -> String {
    let rng = Rng::new(seed, PLAYED + number);
    let mut load = Load::new(&format!("generated-{number}"), cpus, rng);
    load.fill();
    load.text
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

fn machine(rng: &mut Rng) -> MachineSpec {
    let cpus = pick(rng, &[1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 5, 6, 8, 8, 16]);
    let can_share = u16::is_multiple_of(cpus, 2);
    let smt = if can_share && rng.below(6) == 0 { 2 } else { 1 };
    // Threads of a core share a cache.
    let can_split = cpus >= 4 && u16::is_multiple_of(cpus, 2 * smt);
    let llc = if can_split && rng.below(4) == 0 {
        cpus / 2
    } else {
        0
    };
    MachineSpec {
        cpus,
        smt,
        llc,
        hz: pick(rng, &[250, 250, 1000, 100]),
        kernel: pick(rng, &[Kernel::V6_18, Kernel::V7_2]),
        // Where work takes time, callbacks of two CPUs overlap.
        profile: match rng.below(4) {
            0 => Profile::DefaultV0,
            _ => Profile::Ideal,
        },
        ..MachineSpec::default()
    }
}

struct Load {
    text: String,
    cpus: u64,
    /// Groups that can be disturbed, with how many tasks they have.
    groups: Vec<(String, u64)>,
    /// Names that trials have given so far.
    names: usize,
    has_cgroups: bool,
    rng: Rng,
}

impl Load {
    fn new(name: &str, cpus: u16, rng: Rng) -> Self {
        Self {
            text: format!("[workload]\nname = \"{name}\"\n"),
            cpus: cpus.into(),
            groups: Vec::new(),
            names: 0,
            has_cgroups: false,
            rng,
        }
    }

    /// Adds groups of tasks and what disturbs them.
    fn fill(&mut self) {
        let groups = 1 + self.below(5);
        for _ in 0..groups {
            self.group();
        }
        // What disturbs needs somebody to disturb.
        let disturbances = self.below(4);
        for _ in 0..disturbances {
            self.disturbance();
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// A span of `from` to `to` microseconds, short ones as often as long ones.
    fn span(&mut self, from: u64, to: u64) -> String {
        let doublings = (to / from).max(1).ilog2() + 1;
        let low = from << self.below(doublings.into());
        format!("{}us", low + self.below(low))
    }

    /// A CPU or all of them.
    fn place(&mut self) -> String {
        match self.below(4) {
            0 => format!("cpus = \"{}\"\n", self.below(self.cpus)),
            1 if self.cpus > 2 => format!("cpus = \"0-{}\"\n", self.below(self.cpus - 1)),
            _ => String::new(),
        }
    }

    fn nice(&mut self) -> String {
        match pick(&mut self.rng, &[0, 0, 0, -10, -5, 5, 10, 19]) {
            0 => String::new(),
            nice => format!("nice = {nice}\n"),
        }
    }

    fn add(&mut self, count: u64, keys: &str, operations: &str) {
        let name = format!("t{}", self.groups.len());
        let _ = write!(
            self.text,
            "[task.{name}]\ncount = {count}\n{keys}do = \"{operations}\"\n"
        );
        self.groups.push((name, count));
    }

    fn group(&mut self) {
        let keys = self.nice() + &self.place();
        match self.below(8) {
            0 | 1 => self.sleepers(&keys),
            2 | 3 => self.hogs(&keys),
            4 => self.late(&keys),
            5 => self.yielders(&keys),
            6 => self.pair(&keys),
            _ => self.family(&keys),
        }
    }

    fn hogs(&mut self, keys: &str) {
        let count = 1 + self.below(self.cpus + 2);
        self.add(count, keys, "run(inf)");
    }

    fn late(&mut self, keys: &str) {
        let (late, count) = (self.span(100_000, 2_000_000), 1 + self.below(2));
        self.add(count, keys, &format!("sleep({late}), run(inf)"));
    }

    fn yielders(&mut self, keys: &str) {
        let (run, count) = (self.span(100, 10_000), 1 + self.below(self.cpus + 2));
        self.add(count, keys, &format!("loop(inf)[ run({run}), yield ]"));
    }

    fn sleepers(&mut self, keys: &str) {
        let (run, sleep) = (self.span(200, 8_000), self.span(500, 20_000));
        let count = 1 + self.below(self.cpus * 4);
        let operations = match self.below(2) {
            0 => format!("loop(inf)[ run({run}), sleep({sleep}) ]"),
            _ => format!("loop(inf)[ run(exp({run})), sleep(exp({sleep})) ]"),
        };
        self.add(count, keys, &operations);
    }

    /// Two groups that wake each other.
    fn pair(&mut self, keys: &str) {
        let at = self.groups.len();
        let (run, sleep) = (self.span(100, 4_000), self.span(500, 8_000));
        let count = 1 + self.below(3);
        let _ = write!(
            self.text,
            "[chan.c{at}]\nkind = \"pipe\"\ncount = {count}\n"
        );
        let send = format!("loop(inf)[ run({run}), send(c{at}[self]), sleep({sleep}) ]");
        self.add(count, keys, &send);
        let receive = format!("loop(inf)[ recv(c{at}[self]), run({run}) ]");
        self.add(count, "", &receive);
    }

    /// A parent whose children come and go.
    fn family(&mut self, keys: &str) {
        let at = self.groups.len();
        let (run, sleep) = (self.span(500, 20_000), self.span(1_000, 20_000));
        let _ = write!(self.text, "[task.child{at}]\n{keys}do = \"run({run})\"\n");
        let width = 1 + self.below(self.cpus * 2);
        let parent = format!("loop(inf)[ pool(child{at}, {width}, {width}), sleep({sleep}) ]");
        self.add(1, "", &parent);
    }

    fn disturbance(&mut self) {
        let (group, count) = pick_clone(&mut self.rng, &self.groups);
        let target = format!("{group}[{}]", self.below(count));
        let (pause, other) = (self.span(5_000, 100_000), self.span(5_000, 100_000));
        let at = self.groups.len();
        let operations = match self.below(4) {
            0 => {
                let cpu = self.below(self.cpus);
                format!(
                    "loop(inf)[ sleep({pause}), setaffinity({target}, {{{cpu}}}), \
                     sleep({other}), setaffinity({target}, all) ]"
                )
            }
            1 => format!(
                "loop(inf)[ sleep({pause}), setnice({target}, 10), sleep({other}), \
                 setnice({target}, 0) ]"
            ),
            2 => format!(
                "loop(inf)[ sleep({pause}), setpolicy({target}, batch), sleep({other}), \
                 setpolicy({target}, normal) ]"
            ),
            _ => return self.real_time(),
        };
        let _ = write!(self.text, "[task.disturber{at}]\ndo = \"{operations}\"\n");
        self.groups.push((format!("disturber{at}"), 1));
    }

    /// A real-time task that takes a CPU for at most a tenth of the time.
    fn real_time(&mut self) {
        let at = self.groups.len();
        let (run, sleep) = (self.span(100, 2_000), self.span(20_000, 80_000));
        let cpu = match self.below(2) {
            0 => String::new(),
            _ => format!("cpus = \"{}\"\n", self.below(self.cpus)),
        };
        let _ = write!(
            self.text,
            "[task.rt{at}]\npolicy = \"fifo:50\"\n{cpu}\
             do = \"loop(inf)[ sleep({sleep}), run({run}) ]\"\n"
        );
        self.groups.push((format!("rt{at}"), 1));
    }
}

fn pick_clone(rng: &mut Rng, from: &[(String, u64)]) -> (String, u64) {
    from[rng.below(from.len() as u64) as usize].clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Info, Instr, Played, Workload};

    #[test]
    fn every_trial_is_a_load_and_is_the_same_again() {
        let mut texts = std::collections::BTreeSet::new();
        for number in 0..500 {
            let made = trial(3, number, true);
            assert_eq!(made, trial(3, number, true));
            let workload = Workload::parse(&made.text, "trial.toml");
            let workload = workload.unwrap_or_else(|error| panic!("{error}\n{}", made.text));
            assert!(!workload.groups.is_empty());
            texts.insert(made.text);
        }
        assert_eq!(texts.len(), 500, "each has its number in its name");
    }

    /// Numbers of trials stand in reports and are repeated: who changes what is drawn for a number
    /// raises [`VERSION`] with it, and writes down the new hashes.
    #[test]
    fn what_a_number_draws_stays_the_same_as_long_as_the_version_does() {
        let hash = |texts: &mut dyn Iterator<Item = String>| {
            let bytes = texts.flat_map(String::into_bytes);
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        let drawn = |number| {
            let it = trial(1, number, true);
            let machine = &it.machine;
            format!(
                "{} {} {} {} {} {:?} {} {}\n{}",
                machine.cpus,
                machine.smt,
                machine.llc,
                machine.hz,
                machine.kernel.name(),
                machine.profile,
                it.seed,
                it.duration.get(),
                it.text
            )
        };
        let trials = hash(&mut (0..1_000).map(drawn));
        let played = hash(&mut (0..1_000).map(|number| playable(1, number, 4)));
        assert_eq!(
            (VERSION, trials, played),
            (2, 481_210_458_472_299_224, 9_371_958_282_615_408_666)
        );
    }

    #[test]
    fn a_load_for_real_processes_has_only_operations_that_they_can_do() {
        for number in 0..300 {
            let text = playable(1, number, 2);
            assert_eq!(text, playable(1, number, 2));
            assert!(!text.contains("[hotplug"), "{text}");
            let workload = Workload::parse(&text, "load.toml");
            let workload = workload.unwrap_or_else(|error| panic!("{error}\n{text}"));
            for group in &workload.groups {
                let code = Code::new(&group.body, group.variables);
                for instr in &code.instrs {
                    if let Instr::Do(operation) = instr {
                        let info = Info::of(operation);
                        assert_eq!(info.played, Played::Yes, "{}: {text}", info.name);
                    }
                }
            }
        }
        assert_ne!(playable(1, 0, 2), playable(2, 0, 2));
    }
}
