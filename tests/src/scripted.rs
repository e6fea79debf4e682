//! The test policy `scripted`, whose callbacks call what bytes say, on a small simulated machine.

use std::sync::{Arc, LazyLock};

use model::{MachineSpec, Nanos, PolicySpec, Rng};
use sim::{Backend, Options, Simulation};
use stats::Conservation;
use traces::{Tee, TraceHash};
use workload::{RunSpec, Workload};

use crate::choices::Choices;
use crate::policy;
use crate::simulate::Left;

/// What stands in the object where the script belongs.
const MARKER: &[u8] = b"the script is to be written here";

/// Bytes of a group, and of a script of 24 groups (policies/scripted.bpf.c).
const GROUP_BYTES: usize = 48;
const SCRIPT_BYTES: usize = 24 * GROUP_BYTES;

/// The groups of two callbacks.
pub const ENQUEUE: usize = 1;
/// See [`ENQUEUE`].
pub const CPU_RELEASE: usize = 14;

/// The tables of the object.
const TABLES: [&str; 3] = ["scripted", "scripted_plain", "scripted_partial"];

/// Tasks of every kind: some that sleep, yield, fork, move, wait for each other, and a real-time
/// one that takes the CPU away.
const WORKLOADS: [&str; 3] = [
    "[chan.pipe]\nkind = \"pipe\"\n[lock.lock]\n[task.a]\ncount = 3\n\
     do = \"loop(9)[ run(300us), sleep(200us), yield, setnice(self, 3) ]\"\n\
     [task.b]\ncount = 2\ncpus = \"0\"\n\
     do = \"loop(6)[ lock(lock), run(700us), unlock(lock), send(pipe), fork(child) ]\"\n\
     [task.c]\ncount = 1\npolicy = \"fifo:50\"\ndo = \"loop(9)[ run(150us), sleep(900us) ]\"\n\
     [task.child]\nkind = \"process\"\ncount = 0\ndo = \"run(100us), yield, run(50us)\"\n",
    "[task.a]\ncount = 5\ndo = \"loop(8)[ run(2ms), setaffinity(self, {0}), yield, \
     setaffinity(self, {0-3}), sleep(10us) ]\"\n[task.b]\npolicy = \"rr:9\"\n\
     do = \"loop(5)[ sleep(3ms), run(100us) ]\"\n",
    "[chan.queue]\nkind = \"queue\"\n[task.reader]\ncount = 2\n\
     do = \"loop(9)[ recv(queue), run(40us) ]\"\n[task.writer]\npolicy = \"batch\"\n\
     do = \"loop(18)[ run(90us), send(queue) ]\"\n[task.hog]\npolicy = \"idle\"\n\
     do = \"loop(9)[ run(5ms), setnice(self, -5) ]\"\n",
];

static PARSED: LazyLock<Vec<Arc<Workload>>> = LazyLock::new(|| {
    let parse = |text: &&str| {
        let text = format!("[workload]\nname = \"scripted\"\n{text}");
        Arc::new(Workload::parse(&text, "scripted").unwrap_or_else(|error| panic!("{error}")))
    };
    WORKLOADS.iter().map(parse).collect()
});

/// The run that `bytes` decide: the first few the machine and the workload, the others the script.
///
/// # Panics
/// If the policy is not there, or has no place for a script.
#[must_use]
pub fn spec(bytes: &[u8]) -> RunSpec {
    let (head, script) = bytes.split_at(bytes.len().min(4));
    let choices = &mut Choices::Bytes(head);
    let table = choices.pick(&TABLES);
    let workload = choices.below(PARSED.len() as u64) as usize;
    let (cpus, smt) = choices.pick(&[(1, 1), (2, 1), (4, 2), (4, 1)]);
    let more = choices.below(256);
    RunSpec {
        policy: PolicySpec {
            name: "scripted".to_owned(),
            object: object(script),
            table: Some(table.to_owned()),
            set: Vec::new(),
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        },
        workload: Arc::clone(&PARSED[workload]),
        machine: MachineSpec {
            cpus,
            smt,
            ..MachineSpec::default()
        },
        seed: 1,
        tie_seed: (more & 3 == 3).then_some(more),
        attach_after: Nanos::new(more / 4 % 4 * 700_000),
        duration: Some(Nanos::from_millis(15)),
    }
}

/// The script in which `group` repeats `pattern`, and all others say nothing, on one CPU with a
/// real-time task. The groups are numbered in policies/scripted.bpf.c.
#[must_use]
pub fn repeating(groups: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; 4 + SCRIPT_BYTES];
    for (group, pattern) in groups {
        let part = &mut bytes[4 + group * GROUP_BYTES..][..GROUP_BYTES];
        part.iter_mut()
            .zip(pattern.iter().cycle())
            .for_each(|(byte, said)| *byte = *said);
    }
    bytes
}

/// A random script with its head. Half of the bytes are zero, with which most arguments are usual
/// ones, so that not every run ends at once.
#[must_use]
pub fn random(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed, 0x5c21);
    let mut byte = |_| match rng.below(2) {
        0 => 0,
        _ => rng.next_u64() as u8,
    };
    (0..4 + SCRIPT_BYTES).map(&mut byte).collect()
}

/// The object with `script` written into it; what the script is too short for is zero.
fn object(script: &[u8]) -> Arc<[u8]> {
    let mut object = policy::object("scripted").expect("a test policy").to_vec();
    let at = object.windows(MARKER.len()).position(|at| at == MARKER);
    let at = at.expect("a place for the script");
    let place = &mut object[at..at + SCRIPT_BYTES];
    assert!(place[MARKER.len()..].iter().all(|&byte| byte == 0));
    place.fill(0);
    let len = script.len().min(SCRIPT_BYTES);
    place[..len].copy_from_slice(&script[..len]);
    object.into()
}

/// What is left of a run; `Err` is the text of an error.
pub type Outcome = Result<Left, String>;

/// Makes the run, and checks that no time was lost or invented.
///
/// # Errors
/// If the run cannot be made.
///
/// # Panics
/// If some was, or the machine breaks.
pub fn run(spec: &RunSpec, backend: Backend) -> Outcome {
    let options = Options {
        backend,
        budget: Some(20_000),
        ..Options::default()
    };
    let (mut hash, mut conservation) = (TraceHash::new(), Conservation::new());
    let mut tee = Tee::new(vec![&mut hash, &mut conservation]);
    let summary = Simulation::new(spec)
        .with_options(options)
        .with_sink(&mut tee)
        .start()
        .map(|it| it.summary);
    let summary = summary.map_err(|error| format!("{error:?}"))?;
    if let Err(violation) = conservation.check(&summary) {
        panic!("{violation}; the run ended with {:?}", summary.exit);
    }
    Ok((hash.value(), hash.count(), summary))
}

/// Makes the run of `bytes` on both back ends.
///
/// # Errors
/// If the run cannot be made, on neither.
///
/// # Panics
/// If they differ.
pub fn check(bytes: &[u8]) -> Outcome {
    let spec = spec(bytes);
    let interpreted = run(&spec, Backend::Interpreter);
    assert_eq!(interpreted, run(&spec, Backend::Jit));
    interpreted
}
