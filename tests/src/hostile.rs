//! Objects that somebody damaged: real ones with bytes changed, in the code as often as elsewhere.

use std::ops::Range;
use std::sync::Arc;

use model::{MachineSpec, Nanos, PolicySpec, Rng};
use sim::{Backend, Options, Simulation};
use traces::TraceHash;
use workload::{RunSpec, Workload};

use crate::policy;

/// Real objects to begin with.
const ORIGINALS: [&str; 4] = ["fifo", "mlfq", "probe", "misuse"];

/// What became of a damaged object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It cannot be loaded.
    Refused,
    /// It ran, and was ejected.
    Ejected,
    /// It ran to the end.
    Ran,
}

/// A real object, and where its code lies.
type Original = (Arc<[u8]>, Vec<Range<usize>>);

/// Loads and runs damaged objects.
#[derive(Debug)]
pub struct Breaker {
    originals: Vec<Original>,
    workload: Arc<Workload>,
}

const WORKLOAD: &str = "[workload]\nname = \"hostile\"\n[task.a]\ncount = 3\n\
    do = \"loop(20)[ run(300us), sleep(200us), yield, setnice(self, 3) ]\"\n";

impl Default for Breaker {
    fn default() -> Self {
        Self::new()
    }
}

impl Breaker {
    /// # Panics
    /// If a real object is not there.
    #[must_use]
    pub fn new() -> Self {
        let original = |name: &&str| {
            let object = policy::object(name).unwrap_or_else(|error| panic!("{error}"));
            let code = code_of(&object);
            (object, code)
        };
        let workload = Workload::parse(WORKLOAD, "hostile").expect("the workload is right");
        Self {
            originals: ORIGINALS.iter().map(original).collect(),
            workload: Arc::new(workload),
        }
    }

    /// The damaged object number `seed`.
    #[must_use]
    pub fn damaged(&self, seed: u64) -> Vec<u8> {
        let mut rng = Rng::new(seed, 0xbad);
        let (object, code) = &self.originals[rng.below(self.originals.len() as u64) as usize];
        let mut bytes = object.to_vec();
        for _ in 0..1 + rng.below(3) {
            let place = match rng.below(4) {
                0 => 0..bytes.len(),
                _ => code[rng.below(code.len() as u64) as usize].clone(),
            };
            damage(&mut bytes, place, &mut rng);
        }
        bytes
    }

    /// Runs the damaged object number `seed` on the simulated machine. Gives its fate, and a hash
    /// of all that happened.
    ///
    /// # Panics
    /// If the object machine or the simulated one breaks.
    #[must_use]
    pub fn run(&self, seed: u64, backend: Backend) -> (Fate, u64) {
        let spec = RunSpec {
            policy: PolicySpec::of_object("hostile", Arc::from(self.damaged(seed))),
            workload: Arc::clone(&self.workload),
            machine: MachineSpec {
                cpus: 2,
                ..MachineSpec::default()
            },
            seed,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: Some(Nanos::from_millis(30)),
        };
        let options = Options {
            backend,
            budget: Some(200_000),
            ..Options::default()
        };
        let mut hash = TraceHash::new();
        let ran = Simulation::new(&spec)
            .with_options(options)
            .with_sink(&mut hash)
            .start();
        match ran.map(|it| it.summary) {
            Err(_) => (Fate::Refused, 0),
            Ok(summary) if summary.exit.kind.is_error() => (Fate::Ejected, hash.value()),
            Ok(_) => (Fate::Ran, hash.value()),
        }
    }
}

/// Changes something in `place`: a bit, a byte, a word, or a copy from elsewhere in it.
fn damage(bytes: &mut [u8], place: Range<usize>, rng: &mut Rng) {
    let len = place.len() as u64;
    let at = place.start + rng.below(len) as usize;
    match rng.below(6) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.next_u64() as u8,
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 0x85][rng.below(6) as usize],
        3 => {
            let end = (at + 4).min(place.end);
            let word = [0, 1, u32::MAX, 1 << 31, rng.next_u64() as u32][rng.below(5) as usize];
            bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
        }
        4 => {
            // A whole instruction from elsewhere.
            let slots = len / 8;
            if slots > 0 {
                let from = place.start + 8 * rng.below(slots) as usize;
                let to = place.start + 8 * rng.below(slots) as usize;
                bytes.copy_within(from..from + 8, to);
            }
        }
        _ => {
            // Another operation or other registers of some instruction.
            let slots = len / 8;
            if slots > 0 {
                let slot = place.start + 8 * rng.below(slots) as usize;
                bytes[slot + rng.below(2) as usize] = rng.next_u64() as u8;
            }
        }
    }
}

/// Changes something in a section of `object`, or in its headers; what has none is left alone.
pub fn damage_a_section(object: &mut [u8], rng: &mut Rng) {
    let Some(sections) = sections(object, |_| true).filter(|sections| !sections.is_empty()) else {
        return;
    };
    let place = match rng.below(8) {
        0 => 0..64,
        // Behind the last section are their headers.
        1 => {
            sections
                .iter()
                .map(|section| section.end)
                .max()
                .unwrap_or(0)..object.len()
        }
        _ => sections[rng.below(sections.len() as u64) as usize].clone(),
    };
    if !place.is_empty() {
        damage(object, place, rng);
    }
}

/// Where the executable sections lie.
fn code_of(object: &[u8]) -> Vec<Range<usize>> {
    const EXECUTABLE: u64 = 4;
    sections(object, |flags| flags & EXECUTABLE != 0).expect("a whole object")
}

/// Where the sections with such flags lie in an ELF file of 64 bits, little endian: those that are
/// neither empty nor partly outside the file. `None` if there are no headers.
fn sections(object: &[u8], wanted: impl Fn(u64) -> bool) -> Option<Vec<Range<usize>>> {
    let number = |at: usize, len: usize| {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(object.get(at..at.checked_add(len)?)?);
        Some(u64::from_le_bytes(bytes))
    };
    let (headers, size, count) = (number(0x28, 8)?, number(0x3a, 2)?, number(0x3c, 2)?);
    let range = |section: u64| {
        let at = usize::try_from(headers.checked_add(section * size)?).ok()?;
        let start = usize::try_from(number(at.checked_add(0x18)?, 8)?).ok()?;
        let len = usize::try_from(number(at.checked_add(0x20)?, 8)?).ok()?;
        let range = start..start.checked_add(len)?;
        let is_wanted = wanted(number(at.checked_add(8)?, 8)?);
        (is_wanted && len > 0 && range.end <= object.len()).then_some(range)
    };
    Some((0..count).filter_map(range).collect())
}
