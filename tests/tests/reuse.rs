//! Runs of one process share linked objects, code and mappings. None of them can tell.

use std::collections::BTreeMap;
use std::env;
use std::process::Command;

use model::{EventMask, Nanos, Rng, SimTime};
use runslice_tests::faulty;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use sim::{Backend, Finished, Options, Simulation};
use traces::TraceHash;
use workload::RunSpec;

/// Names to a child process the one run that it makes.
const CHILD: &str = "RUNSLICE_ONE_FRESH_RUN";

/// A run, and how it is computed.
pub struct Varied {
    /// What tells it from the others.
    pub name: String,
    /// The run.
    pub spec: RunSpec,
    /// How it is computed.
    pub options: Options,
    /// Whether somebody listens to decisions, for whom other code is executed.
    pub decides: bool,
}

impl Varied {
    /// A run as usual.
    pub fn new(name: String, spec: RunSpec) -> Self {
        Self {
            name,
            spec,
            options: Options::default(),
            decides: false,
        }
    }
}

/// Tasks that wake each other, sleep and use the CPU.
const LOAD: &str = "[task.shell]\ncount = 9\ndo = \"loop(inf)[ run(1ms), sleep(2ms) ]\"\n\
    [task.hog]\ncount = 3\ndo = \"run(inf)\"\n";

/// Policies of which a run leaves much in memory: maps, timers, objects, masks, an arena's pages.
const BUSY: &[&str] = &[
    "births",
    "cgroups",
    "differs",
    "family",
    "hands-over",
    "hooks",
    "memory",
    "mirrors",
    "misuse",
    "nested",
    "nodes",
    "queuer",
    "scripted",
    "setup",
    "sound-compact",
    "sound-purse",
    "vtime",
];

/// Runs of many policies, sound and faulty ones, on several machines, each computed in four ways.
pub fn varied_runs() -> Vec<Varied> {
    let mut all = Vec::new();
    let mut add = |name: String, spec: RunSpec| {
        for (what, options, decides) in ways() {
            all.push(Varied {
                name: format!("{name}/{what}"),
                spec: spec.clone(),
                options,
                decides,
            });
        }
    };
    let shipped = policies::ALL.iter().map(|policy| policy.name);
    for policy in shipped.chain(BUSY.iter().copied()) {
        for cpus in [1, 4] {
            let run = Run {
                cpus,
                until: Nanos::from_millis(60),
                ..Run::new(policy, LOAD)
            };
            add(format!("{policy}/{cpus}"), run.spec());
        }
    }
    for case in faulty::CASES {
        let policy = format!("faulty-{}", case.policy);
        let run = Run {
            cpus: case.cpus,
            until: Nanos::from_millis(80),
            ..Run::new(&policy, case.workload)
        };
        add(policy.clone(), run.spec());
    }
    for seed in [3, 14, 15, 92, 653] {
        add(format!("random/{seed}"), RandomRun::new(seed).spec);
    }
    all
}

/// In the middle of a run some of these stop it: memory or instructions are too few.
fn ways() -> [(&'static str, Options, bool); 4] {
    let usual = Options::default();
    [
        ("usual", usual, false),
        (
            "native, decisions",
            Options {
                backend: Backend::Jit,
                ..usual
            },
            true,
        ),
        (
            "little memory",
            Options {
                memory_bytes: Some(120 << 10),
                ..usual
            },
            false,
        ),
        (
            "few instructions",
            Options {
                total_budget: Some(20_000),
                ..usual
            },
            false,
        ),
    ]
}

/// Listens to all events, or to all but decisions.
#[derive(Clone)]
pub struct Hash(TraceHash, bool);

impl Hash {
    /// Of no event.
    pub fn new(decides: bool) -> Self {
        Self(TraceHash::new(), decides)
    }
}

impl model::Sink for Hash {
    fn wants(&self) -> EventMask {
        if self.1 {
            self.0.wants().union(EventMask::DECISIONS)
        } else {
            self.0.wants()
        }
    }

    fn begin(&mut self, header: &model::Header) {
        self.0.begin(header);
    }

    fn events(&mut self, events: &[model::Event]) {
        self.0.events(events);
    }

    fn finish(&mut self, end: SimTime) {
        self.0.finish(end);
    }
}

/// All that a run leaves, in one line. A run that cannot be made leaves an error.
fn result(run: &Varied) -> String {
    let mut hash = Hash::new(run.decides);
    let finished = Simulation::new(&run.spec)
        .with_options(run.options)
        .with_sink(&mut hash)
        .start();
    line_of(finished, &hash)
}

/// What a run has left, in one line.
pub fn line_of(finished: Result<Finished, sim::Error>, hash: &Hash) -> String {
    let left = finished.map_or_else(
        |error| format!("{error}: {:?}", std::error::Error::source(&error)),
        |finished| format!("{:?}", finished.summary),
    );
    let text = model::Fnv1a::of(left.bytes());
    format!("{:016x} {} {text:016x}", hash.0.value(), hash.0.count())
}

/// Not a test of its own: another process makes one run with it, the first of that process.
#[test]
fn one_fresh_run_of_another_process() {
    let Ok(name) = env::var(CHILD) else { return };
    let run = varied_runs().into_iter().find(|run| run.name == name);
    print!("\nresult {}\n", result(&run.expect("a run of this name")));
}

fn fresh(name: &str) -> String {
    let output = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "reuse::one_fresh_run_of_another_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHILD, name)
        .output()
        .expect("another process");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("result "));
    line.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
}

/// Each run is made several times, between others that are drawn, and comes to the same as in a
/// process of its own.
#[test]
fn any_sequence_of_runs_comes_to_what_each_is_alone() {
    let all = varied_runs();
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    let mut rng = Rng::new(56, 0);
    let mut order: Vec<&Varied> = all.iter().chain(&all).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, rng.below(at as u64 + 1) as usize);
    }
    for run in order {
        let first = known.entry(&run.name);
        let here = result(run);
        let known = first.or_insert_with(|| here.clone());
        assert_eq!(*known, here, "{} in a sequence", run.name);
    }
    // A process takes longer than a run, so every seventh is compared with a fresh one, and all
    // ways of computing are among them.
    for (name, here) in known.iter().step_by(7) {
        assert_eq!(fresh(name), *here, "{name} alone");
    }
    let results: std::collections::BTreeSet<&String> = known.values().collect();
    assert!(results.len() > all.len() / 3, "the runs differ");
}
