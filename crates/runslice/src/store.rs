//! Results of runs that are kept by the key of what they depend on, in a folder.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use model::PolicySpec;
use serde_json::Value;
use workload::RunSpec;

use crate::exit::UsageError;
use crate::output::{Whole, make_folder, write_whole};
use crate::{input, interrupt};

/// Number of the format of a stored run; it grows when a field is removed or changes its meaning.
const FORMAT: u32 = 1;
/// The folder of single runs, below that of the results.
const RUNS: &str = "runs";

/// A folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A number of everything that a run is a function of: the whole request, the policy's bytes, and
/// the sources of the program that simulates. A version number in the place of the sources would
/// serve old results whenever somebody forgets to raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

/// What the keys of runs have in common that differ in their seeds alone. Objects are long, and
/// there may be a million seeds: hashing an object takes as long as a short run.
#[derive(Clone, Copy, Debug)]
pub struct Front(u128);

/// FNV-1a with 128 bits. It tells accidents apart, not forgeries.
///
/// Source of the constants: the FNV reference, <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub fn fingerprint(bytes: impl IntoIterator<Item = u8>) -> u128 {
    continued(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, bytes)
}

/// The fingerprint of bytes that follow others.
fn continued(before: u128, bytes: impl IntoIterator<Item = u8>) -> u128 {
    bytes.into_iter().fold(before, |state, byte| {
        (state ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

impl Key {
    /// The key of what these bytes describe and this program runs on a kernel.
    pub fn of_real(bytes: impl IntoIterator<Item = u8>) -> Self {
        let version = concat!(env!("CARGO_PKG_VERSION"), env!("RUNSLICE_REAL_SOURCES"));
        Self(of_version(version, bytes))
    }

    fn file(self) -> String {
        format!("{self}.json")
    }
}

impl Front {
    /// Of runs whose workload was given these parameters. `more` is what else their results depend
    /// on.
    pub fn of(spec: &RunSpec, scale: &[(String, i64)], more: &str) -> Self {
        Self(of_version(VERSION, bytes_of(spec, scale, more)))
    }

    /// The key of the run with this seed.
    pub fn key(self, seed: u64) -> Key {
        Key(continued(self.0, seed.to_le_bytes()))
    }
}

/// This program, as its sources have it.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("RUNSLICE_SOURCES"));

fn of_version(version: &str, bytes: impl IntoIterator<Item = u8>) -> u128 {
    let begin = format!("{FORMAT} {version} ").into_bytes();
    fingerprint(begin.into_iter().chain(bytes))
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

/// Everything that is asked of a simulated run but its seed, as bytes.
fn bytes_of(spec: &RunSpec, scale: &[(String, i64)], more: &str) -> Vec<u8> {
    // All fields of the request as they are, those of later versions too; long bytes stand behind.
    let mut rest = RunSpec {
        policy: PolicySpec {
            object: [].into(),
            ..spec.policy.clone()
        },
        seed: 0,
        ..spec.clone()
    };
    // Messages name the file, and no result does: it may lie elsewhere.
    Arc::make_mut(&mut rest.workload).file.clear();
    let recorded = rest
        .policy
        .program
        .as_mut()
        .and_then(|it| it.recorded.as_mut());
    let recording = recorded.map(|it| std::mem::replace(&mut it.bytes, [].into()));
    let mut bytes = format!("{rest:?} {scale:?}{more}\0").into_bytes();
    bytes.extend_from_slice(&spec.policy.object);
    bytes.extend_from_slice(&recording.unwrap_or_default());
    bytes
}

impl Store {
    /// The store in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let runs = folder.join(RUNS);
        make_folder(&runs)?;
        interrupt::keeps("runs", folder);
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// The store that is in `folder`, or would be; nothing is made.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(RUNS).join(key.file())
    }

    /// The stored run as one line; `None` if there is none, or none that is whole.
    pub fn get(&self, key: Key) -> Option<String> {
        read(&self.path(key))
    }

    /// Takes over the run from another store. Whether it was there.
    ///
    /// # Errors
    /// When it cannot be written here.
    pub fn take_over(&self, key: Key, other: &Path) -> anyhow::Result<bool> {
        match read(&other.join(RUNS).join(key.file())) {
            Some(line) => self.put(key, &line).map(|()| true),
            None => Ok(false),
        }
    }

    /// Keeps a run. Whoever reads sees the whole or nothing, whenever this ends.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, key: Key, line: &str) -> anyhow::Result<()> {
        write_whole(&self.path(key), format!("{line}\n").as_bytes())?;
        interrupt::made(1);
        Ok(())
    }

    /// Writes the results of all runs, in the order of the sweep, as they come.
    ///
    /// # Errors
    /// When it cannot be written; and the first error of `lines`.
    pub fn finish(
        &self,
        name: &str,
        lines: impl IntoIterator<Item = anyhow::Result<String>>,
    ) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        let mut to = Whole::create(&path);
        // Without the command line, parts of a sweep that are put together give the same bytes.
        let version = env!("CARGO_PKG_VERSION");
        let head = format!("\"runslice_sweep\": 2,\n\"version\": \"{version}\"");
        to.write(format!("{{\n{head},\n\"runs\": [\n").as_bytes())?;
        for (at, line) in lines.into_iter().enumerate() {
            to.write(if at == 0 { b"" } else { b",\n" })?;
            to.write(line?.as_bytes())?;
        }
        to.write(b"\n]\n}\n")?;
        to.put()?;
        Ok(path)
    }
}

/// A file of one line of JSON.
fn read(path: &Path) -> Option<String> {
    let mut line = input::text(path, input::OBJECT).ok()?;
    if line.pop() != Some('\n') {
        return None;
    }
    let value: Value = serde_json::from_str(&line).ok()?;
    value.get("report")?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::Nanos;

    use super::*;

    fn planned() -> RunSpec {
        let load = crate::workload_arg::find("desk", &[]).unwrap();
        RunSpec {
            policy: crate::policy::find("fifo").unwrap(),
            machine: load.machine.clone(),
            workload: Arc::new(load),
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: None,
        }
    }

    fn key(spec: &RunSpec) -> Key {
        Front::of(spec, &[], "").key(spec.seed)
    }

    fn scratch(name: &str) -> PathBuf {
        let name = format!("runslice-store-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_cannot_be_put_in_its_place_leaves_nothing_beside_it() {
        let folder = scratch("taken");
        let path = folder.join("taken");
        // A folder that is not empty stands where the file should.
        fs::create_dir_all(path.join("inside")).unwrap();
        write_whole(&path, b"x").unwrap_err();
        let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_to_what_has_no_end_is_replaced_and_not_read() {
        let folder = scratch("endless");
        let path = folder.join("results");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        write_whole(&path, b"x").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&path).unwrap(), b"x");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_there_already_is_not_written_again() {
        let folder = scratch("same");
        let path = folder.join("same");
        write_whole(&path, b"x").unwrap();
        let before = fs::metadata(&path).unwrap();
        write_whole(&path, b"x").unwrap();
        let inode = |facts: &fs::Metadata| std::os::unix::fs::MetadataExt::ino(facts);
        assert_eq!(inode(&before), inode(&fs::metadata(&path).unwrap()));
        write_whole(&path, b"y").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"y");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn results_are_written_as_they_come_and_not_when_all_are_in_memory() {
        let folder = scratch("finish");
        let store = Store::open(&folder).unwrap();
        let line = format!("{{\"report\":\"{}\"}}", "x".repeat(100_000));
        let on_disk = || -> u64 {
            let files = fs::read_dir(&folder).unwrap().flatten();
            files
                .filter(|it| it.path().is_file())
                .map(|it| it.metadata().unwrap().len())
                .sum()
        };
        let lines = (0..20).map(|count| {
            assert!(
                on_disk() >= count * 100_000,
                "line {count} came before the others left"
            );
            Ok(line.clone())
        });
        let path = store.finish("all.json", lines).unwrap();
        let document: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(document["runs"].as_array().map(Vec::len), Some(20));
        let error = store.finish("all.json", [Ok(line), Err(anyhow::anyhow!("gone"))]);
        assert_eq!(error.unwrap_err().to_string(), "gone");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_part_of_a_run_changes_its_key() {
        let run = planned();
        assert_eq!(key(&run), key(&planned()));
        let scale = [("hogs".to_owned(), 4)];
        let mut keys = vec![
            key(&run),
            Front(of_version("another", bytes_of(&run, &[], ""))).key(run.seed),
            Front::of(&run, &scale, "").key(run.seed),
            Front::of(&run, &[], "with a probe").key(run.seed),
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
            let load = crate::workload_arg::find("chat", &[]).unwrap();
            spec.workload = Arc::new(load);
        });
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
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

    #[test]
    fn a_torn_or_foreign_file_is_no_result() {
        let name = format!("runslice-sweep-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let store = Store::open(&folder).unwrap();
        let key = key(&planned());
        assert_eq!(store.get(key), None);
        store.put(key, "{\"report\":{}}").unwrap();
        assert_eq!(store.get(key).as_deref(), Some("{\"report\":{}}"));
        for torn in ["{\"report\":{}}", "{\"report\"\n", "[]\n", ""] {
            fs::write(store.path(key), torn).unwrap();
            assert_eq!(store.get(key), None, "{torn}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
