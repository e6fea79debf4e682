//! Keys of results that are kept: a number of everything that a run is a function of.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use model::PolicySpec;
use workload::RunSpec;

use crate::error::UsageError;

/// Number of the format of a stored run; it grows when a field is removed or changes its meaning.
const FORMAT: u32 = 1;

/// A number of everything that a run is a function of: the whole request, the policy's bytes, and
/// the sources of the program that simulates. A version number in the place of the sources would
/// serve old results whenever somebody forgets to raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

/// What the keys of runs have in common that differ in their seeds alone. Objects are long, and
/// there may be a million seeds: hashing an object takes as long as a short run.
#[derive(Clone, Debug)]
pub struct Front(blake3::Hasher);

/// The first 128 bits of the bytes' BLAKE3. Kept runs go from one computer to another, so that a
/// key must not be that of other bytes even where somebody has looked for such bytes.
pub fn fingerprint(bytes: impl AsRef<[u8]>) -> u128 {
    first(&blake3::hash(bytes.as_ref()))
}

fn first(hash: &blake3::Hash) -> u128 {
    let (first, _) = hash.as_bytes().split_first_chunk().expect("32 bytes");
    u128::from_be_bytes(*first)
}

impl Key {
    /// The key of what these bytes describe, of a program of this version.
    pub fn of(version: &str, bytes: impl AsRef<[u8]>) -> Self {
        Self(first(&of_version(version, bytes.as_ref()).finalize()))
    }
}

impl Front {
    /// Of runs whose workload was given these parameters, simulated by a program of this version.
    /// `more` is what else their results depend on.
    #[must_use]
    pub fn of(version: &str, (spec, scale): (&RunSpec, &[(String, i64)]), more: &str) -> Self {
        Self(of_version(version, &bytes_of(spec, scale, more)))
    }

    /// The key of the run with this seed.
    #[must_use]
    pub fn key(&self, seed: u64) -> Key {
        let mut hasher = self.0.clone();
        Key(first(&hasher.update(&seed.to_le_bytes()).finalize()))
    }
}

fn of_version(version: &str, bytes: &[u8]) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(format!("{FORMAT} {version} ").as_bytes())
        .update(bytes);
    hasher
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Key {
    type Err = UsageError;

    /// Reads what is displayed.
    fn from_str(text: &str) -> Result<Self, UsageError> {
        let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let number = u128::from_str_radix(text, 16).ok();
        let number = number.filter(|_| text.len() == 32 && text.chars().all(is_digit));
        let wrong = || UsageError::new(format!("`{text}` is no key of 32 hexadecimal digits"));
        number.map(Self).ok_or_else(wrong)
    }
}

/// All that a policy is, as bytes: its name, what is set in it, its object, and the same of what
/// is attached below it.
#[must_use]
pub fn bytes_of_policy(policy: &PolicySpec) -> Vec<u8> {
    let (mut rest, mut long) = (policy.clone(), Vec::new());
    take_long(&mut rest, &mut long);
    let mut bytes = format!("{rest:?}\0").into_bytes();
    bytes.append(&mut long);
    bytes
}

/// Everything that is asked of a simulated run but its seed, as bytes.
fn bytes_of(spec: &RunSpec, scale: &[(String, i64)], more: &str) -> Vec<u8> {
    // All fields of the request as they are, those of later versions too; long bytes stand behind.
    let mut rest = RunSpec {
        seed: 0,
        ..spec.clone()
    };
    // Messages name the file, and no result does: it may lie elsewhere.
    Arc::make_mut(&mut rest.workload).file.clear();
    let mut long = Vec::new();
    take_long(&mut rest.policy, &mut long);
    let mut bytes = format!("{rest:?} {scale:?}{more}\0").into_bytes();
    bytes.append(&mut long);
    bytes
}

/// Takes the objects and the recordings out of a policy and those below it, and puts them behind
/// `to`, each behind its length: where one ends and the next begins makes a difference, too.
fn take_long(policy: &mut PolicySpec, to: &mut Vec<u8>) {
    let recorded = policy.program.as_mut().and_then(|it| it.recorded.as_mut());
    let recording = recorded.map(|it| std::mem::replace(&mut it.bytes, [].into()));
    let object = std::mem::replace(&mut policy.object, [].into());
    for part in [object, recording.unwrap_or_default()] {
        to.extend_from_slice(&part.len().to_le_bytes());
        to.extend_from_slice(&part);
    }
    for sub in &mut policy.subs {
        take_long(&mut sub.policy, to);
    }
}

#[cfg(test)]
mod tests {
    use model::Nanos;

    use super::*;
    use crate::services::tests::FILES;

    fn planned() -> RunSpec {
        let load = crate::workload_arg::find(&FILES, "desk", &[]).unwrap();
        RunSpec {
            policy: crate::policy::find(&FILES, "fifo").unwrap(),
            machine: load.machine.clone(),
            workload: Arc::new(load),
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: None,
        }
    }

    fn key(spec: &RunSpec) -> Key {
        Front::of("v", (spec, &[]), "").key(spec.seed)
    }

    #[test]
    fn every_part_of_a_run_changes_its_key() {
        let run = planned();
        assert_eq!(key(&run), key(&planned()));
        let scale = [("hogs".to_owned(), 4)];
        let mut keys = vec![
            key(&run),
            Front(of_version("another", &bytes_of(&run, &[], ""))).key(run.seed),
            Front::of("v", (&run, &scale), "").key(run.seed),
            Front::of("v", (&run, &[]), "with a probe").key(run.seed),
        ];
        let mut with = |change: fn(&mut RunSpec)| {
            let mut run = planned();
            change(&mut run);
            keys.push(key(&run));
        };
        with(|spec| spec.seed = 2);
        with(|spec| spec.tie_seed = Some(1));
        with(|spec| spec.duration = Some(Nanos::from_secs(1)));
        with(|spec| spec.attach_after = Nanos::from_secs(1));
        with(|spec| spec.machine.cpus = 9);
        with(|spec| spec.machine.kernel = model::Kernel::V7_2);
        with(|spec| spec.policy.set = vec![("slice_ns".to_owned(), "5".to_owned())]);
        let sub = |spec: &RunSpec, cgroup: &str| model::SubSpec {
            cgroup: cgroup.to_owned(),
            policy: spec.policy.clone(),
            attach_at: Nanos::ZERO,
            detach_at: None,
        };
        for cgroup in ["a", "b"] {
            let mut run = planned();
            run.policy.subs.push(sub(&run, cgroup));
            keys.push(key(&run));
            Arc::make_mut(&mut run.policy.subs[0].policy.object)[100] ^= 1;
            keys.push(key(&run));
        }
        let mut with = |change: fn(&mut RunSpec)| {
            let mut run = planned();
            change(&mut run);
            keys.push(key(&run));
        };
        with(|spec| {
            let mut object = spec.policy.object.to_vec();
            object[100] ^= 1;
            spec.policy.object = object.into();
        });
        let program = |file, bytes: &[u8]| model::Program {
            file,
            recorded: Some(model::Recorded {
                bytes: bytes.into(),
                setup_only: true,
            }),
            ..model::Program::default()
        };
        for (file, bytes) in [(1, &b"a"[..]), (2, b"a"), (1, b"b")] {
            let mut run = planned();
            run.policy.program = Some(program(file, bytes));
            keys.push(key(&run));
        }
        let mut with = |change: fn(&mut RunSpec)| {
            let mut run = planned();
            change(&mut run);
            keys.push(key(&run));
        };
        with(|spec| {
            let load = crate::workload_arg::find(&FILES, "chat", &[]).unwrap();
            spec.workload = Arc::new(load);
        });
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn every_part_of_a_policy_and_of_those_below_it_changes_its_bytes() {
        let plain = || planned().policy;
        let mut all = vec![bytes_of_policy(&plain())];
        assert_eq!(all[0], bytes_of_policy(&plain()));
        let mut with = |change: fn(&mut PolicySpec)| {
            let mut policy = plain();
            let sub = model::SubSpec {
                cgroup: "a".to_owned(),
                policy: plain(),
                attach_at: Nanos::ZERO,
                detach_at: None,
            };
            policy.subs.push(sub);
            change(&mut policy);
            all.push(bytes_of_policy(&policy));
        };
        with(|_| ());
        with(|it| it.name.push('2'));
        with(|it| it.set = vec![("slice_ns".to_owned(), "5".to_owned())]);
        with(|it| it.table = Some("other".to_owned()));
        with(|it| Arc::make_mut(&mut it.object)[100] ^= 1);
        with(|it| it.subs[0].cgroup.push('b'));
        with(|it| it.subs[0].attach_at = Nanos::from_secs(1));
        with(|it| it.subs[0].detach_at = Some(Nanos::from_secs(1)));
        with(|it| Arc::make_mut(&mut it.subs[0].policy.object)[100] ^= 1);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_workload_has_one_key_wherever_its_file_lies() {
        let mut elsewhere = planned();
        Arc::make_mut(&mut elsewhere.workload).file = "/else/where.toml".to_owned();
        assert_eq!(key(&elsewhere), key(&planned()));
        Arc::make_mut(&mut elsewhere.workload).name = "another".to_owned();
        assert_ne!(key(&elsewhere), key(&planned()));
    }

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        let key = key(&planned());
        assert_eq!(key.to_string().parse::<Key>().unwrap(), key);
        for bad in [
            "",
            "12",
            "+123456789012345678901234567890ab",
            &"g".repeat(32),
        ] {
            assert!(bad.parse::<Key>().is_err(), "{bad}");
        }
    }
}
