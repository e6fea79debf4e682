//! Results of runs that are kept by the key of what they depend on, in a folder.

use std::path::{Path, PathBuf};

use ask::evaluate::Breach;
pub use ask::key::Key;
use ask::sweep::KeptRuns;
use serde_json::Value;

use crate::computer::COMPUTER;
use crate::output::{Whole, make_folder, write_whole};
use crate::{input, interrupt};

/// The folder of single runs, below that of the results.
const RUNS: &str = "runs";

/// A folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

/// This program where it simulates, as its sources have it. A version number in the place of the
/// sources would serve old results whenever somebody forgets to raise it.
pub const SIMULATES: &str = concat!(env!("CARGO_PKG_VERSION"), env!("RUNSLICE_SOURCES"));
/// This program where it runs on a kernel.
pub const RUNS_REAL: &str = concat!(env!("CARGO_PKG_VERSION"), env!("RUNSLICE_REAL_SOURCES"));

fn file_of(key: Key) -> String {
    format!("{key}.json")
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
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(RUNS).join(file_of(key))
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

impl KeptRuns for Store {
    fn get(&self, key: Key) -> Option<String> {
        read(&self.path(key))
    }

    /// Whoever reads sees the whole or nothing, whenever this ends.
    fn put(&self, key: Key, line: &str) -> anyhow::Result<()> {
        write_whole(&self.path(key), format!("{line}\n").as_bytes())?;
        interrupt::made(1);
        Ok(())
    }

    fn place(&self) -> String {
        self.folder.display().to_string()
    }
}

/// A file of one line of JSON.
fn read(path: &Path) -> Option<String> {
    let mut line = input::text(&COMPUTER, path, input::OBJECT).ok()?;
    if line.pop() != Some('\n') {
        return None;
    }
    let value: Value = serde_json::from_str(&line).ok()?;
    value.get("report")?;
    Some(line)
}

/// Writes each run that breaks a limit into a file of `folder` for `explain`, which `name` calls by
/// the run's number and the limit. The files' names, of those that have a run.
///
/// # Errors
/// When the folder takes no file.
pub fn keep_breaches(
    folder: &Path,
    breaches: &[Breach],
    name: impl Fn(usize, &str) -> String,
) -> anyhow::Result<Vec<Option<String>>> {
    let keep = |(at, breach): (usize, &Breach)| {
        let Some(case) = &breach.case else {
            return Ok(None);
        };
        make_folder(folder)?;
        let path = folder.join(name(at, breach.limit.word()));
        write_whole(&path, &case.bundle().write())?;
        Ok(Some(path.display().to_string()))
    };
    breaches.iter().enumerate().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
    fn a_torn_or_foreign_file_is_no_result() {
        let name = format!("runslice-sweep-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let store = Store::open(&folder).unwrap();
        let key = Key::of("v", *b"a run");
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
