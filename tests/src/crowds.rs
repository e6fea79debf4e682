//! Loads for whoever counts what is wrong with sound policies: crowds, forks and real-time tasks,
//! and what `hunt` draws.

use std::sync::Arc;

use model::{MachineSpec, Nanos, PolicySpec, Rng};
use workload::{RunSpec, Workload, generate};

use crate::policy;

/// A machine and a load, without a policy.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// The machine.
    pub machine: MachineSpec,
    /// The load, as text.
    pub text: String,
    /// Its seed.
    pub seed: u64,
    /// How long it runs.
    pub duration: Nanos,
}

impl Crowd {
    /// Load `number` of `seed`. One of four is what `hunt` draws, the others are a crowd of up to
    /// 400 tasks a CPU, a crowd of tasks that fork, and a crowd beside real-time tasks.
    #[must_use]
    pub fn draw(seed: u64, number: u64) -> Self {
        let mut rng = Rng::new(seed, number);
        if number.is_multiple_of(4) {
            let trial = generate::trial(seed, number, false);
            return Self {
                machine: trial.machine,
                text: trial.text,
                seed: trial.seed,
                duration: Nanos::from_secs(3).min(trial.duration),
            };
        }
        let cpus = 1 + rng.below(4);
        let machine = MachineSpec {
            cpus: cpus as u16,
            ..MachineSpec::default()
        };
        let text = match number % 4 {
            1 => crowd(&mut rng, cpus),
            2 => forks(&mut rng, cpus),
            _ => beside_real_time(&mut rng, cpus),
        };
        Self {
            machine,
            text: format!("[workload]\nname = \"crowd-{number}\"\n{text}"),
            seed: number,
            duration: Nanos::from_millis(1_500 + 500 * rng.below(4)),
        }
    }

    /// The run under a policy of this name and these bytes.
    ///
    /// # Panics
    /// If the load is none.
    #[must_use]
    pub fn under(&self, name: &str, object: Arc<[u8]>) -> RunSpec {
        let workload = Workload::parse(&self.text, "crowd");
        let workload = workload.unwrap_or_else(|error| panic!("{error}:\n{}", self.text));
        RunSpec {
            policy: PolicySpec::of_object(name, object),
            workload: Arc::new(workload),
            machine: self.machine.clone(),
            seed: self.seed,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: Some(self.duration),
        }
    }

    /// The run under a test policy or a shipped one.
    ///
    /// # Panics
    /// If there is no such policy.
    #[must_use]
    pub fn under_known(&self, name: &str) -> RunSpec {
        let object = policy::object(name).unwrap_or_else(|error| panic!("{error}"));
        self.under(name, object)
    }
}

/// Tasks that compute for ever, and tasks that sleep now and then; some have other weights.
fn crowd(rng: &mut Rng, cpus: u64) -> String {
    let most = [4, 20, 80, 400][rng.below(4) as usize] * cpus;
    let hogs = 1 + rng.below(most);
    let nice = [0, 0, 0, 5, -5, 10][rng.below(6) as usize];
    let (run, sleep) = (1 + rng.below(20), 1 + rng.below(40));
    format!(
        "[task.hog]\ncount = {hogs}\nnice = {nice}\ndo = \"run(inf)\"\n\
         [task.shell]\ncount = {}\ndo = \"loop(inf)[ run({run}ms), sleep({sleep}ms) ]\"\n",
        1 + rng.below(10)
    )
}

/// Tasks that make others without end, which work and leave.
fn forks(rng: &mut Rng, cpus: u64) -> String {
    let (work, pause) = (1 + rng.below(30), 1 + rng.below(10));
    format!(
        "[task.child]\ncount = 0\ndo = \"run({work}ms)\"\n\
         [task.parent]\ncount = {}\ndo = \"loop(inf)[ pool(child, 6, 3), run(200us), \
         sleep({pause}ms) ]\"\n[task.hog]\ncount = {}\ndo = \"run(inf)\"\n",
        1 + rng.below(4 * cpus),
        rng.below(3 * cpus) + 1
    )
}

/// Tasks that real-time tasks interrupt, on some CPUs or on all.
fn beside_real_time(rng: &mut Rng, cpus: u64) -> String {
    let (run, sleep) = (1 + rng.below(8), 5 + rng.below(40));
    let place = match rng.below(2) {
        0 => String::new(),
        _ => format!("cpus = \"{}\"\n", rng.below(cpus)),
    };
    format!(
        "[task.rt]\npolicy = \"fifo:50\"\n{place}do = \"loop(inf)[ sleep({sleep}ms), run({run}ms) \
         ]\"\n[task.hog]\ncount = {}\ndo = \"run(inf)\"\n\
         [task.shell]\ncount = {}\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n",
        1 + rng.below(6 * cpus),
        1 + rng.below(6)
    )
}
