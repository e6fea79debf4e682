//! The files of experiments/: those that are built in, or those of a folder.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use crate::experiments::error::{Error, Result};

// `EMBEDDED: &[(&str, &str)]`: path below experiments/ and text, in the order of the paths.
include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Text files by their path below experiments/, with `/` between its parts.
#[derive(Clone, Debug)]
pub struct Files {
    texts: BTreeMap<String, String>,
    /// What stands before a path in messages.
    root: String,
}

/// Endings of the files that experiments are made of.
const ENDINGS: [&str; 5] = ["toml", "csv", "txt", "md", "json"];

impl Files {
    /// Those that the program was built with.
    pub fn embedded() -> Self {
        let texts = EMBEDDED.iter();
        Self {
            texts: texts
                .map(|(path, text)| ((*path).into(), (*text).into()))
                .collect(),
            root: "experiments".to_owned(),
        }
    }

    /// These, which messages call `e`.
    #[cfg(test)]
    pub fn of_texts(texts: &[(&str, &str)]) -> Self {
        let texts = texts.iter();
        Self {
            texts: texts
                .map(|(path, text)| ((*path).into(), (*text).into()))
                .collect(),
            root: "e".to_owned(),
        }
    }

    /// Those of a folder, which has the same parts.
    ///
    /// # Errors
    /// When it cannot be read, or has more in it than experiments have: 100,000 files and folders,
    /// 64 MiB, or 16 folders below one another.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        let mut found = Found::default();
        found.collect(folder, "", DEPTH_MAX)?;
        let texts = found.texts;
        if !texts.contains_key("statements.toml") {
            return Err(Error::NoStatements(folder.to_owned()));
        }
        Ok(Self {
            texts,
            root: folder.display().to_string(),
        })
    }

    /// The text of a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// How messages call a file.
    pub fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    /// Names of all experiments, in their order.
    pub fn experiments(&self) -> Vec<&str> {
        let ending = "/experiment.toml";
        let names = self
            .texts
            .keys()
            .filter_map(|path| path.strip_suffix(ending));
        names.filter(|name| !name.contains('/')).collect()
    }

    /// Names of those that can be run on kernels.
    pub fn on_kernels(&self) -> Vec<&str> {
        self.with("/vm.toml")
    }

    /// Names of those that can be run anywhere.
    pub fn everywhere(&self) -> Vec<&str> {
        let mut names = [self.experiments(), self.on_kernels()].concat();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Folders with a file of that name.
    fn with(&self, ending: &str) -> Vec<&str> {
        let keys = self.texts.keys();
        let names = keys.filter_map(|path| path.strip_suffix(ending));
        names.filter(|name| !name.contains('/')).collect()
    }

    /// The calibration, as bytes to take a fingerprint of: calibration.toml and the machine
    /// profiles, with their names.
    pub fn calibration(&self) -> impl Iterator<Item = u8> {
        let is_part = |path: &str| path == "calibration.toml" || path.starts_with("machines/");
        let parts = self.texts.iter().filter(move |(path, _)| is_part(path));
        let bytes = parts.flat_map(|(path, text)| [path, "\0", text, "\0"].map(str::as_bytes));
        bytes.flatten().copied()
    }

    /// Names of the machine profiles in machines/.
    pub fn machines(&self) -> Vec<&str> {
        let names = self
            .texts
            .keys()
            .filter_map(|path| path.strip_prefix("machines/"));
        names
            .filter_map(|name| name.strip_suffix(".toml"))
            .collect()
    }

    /// The path that `wanted` means in a file of `folder`, which may lead through `..`.
    pub fn resolve(folder: &str, wanted: &str) -> String {
        let mut parts: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
        for part in wanted.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        parts.join("/")
    }
}

/// Entries of all folders together. Links of a folder to itself make far more.
const ENTRIES_MAX: u32 = 100_000;
/// Bytes of all files together.
const BYTES_MAX: u64 = 64 << 20;
/// Folders below one another.
const DEPTH_MAX: u32 = 16;

/// What was found in a folder so far.
#[derive(Default)]
struct Found {
    texts: BTreeMap<String, String>,
    entries: u32,
    bytes: u64,
}

impl Found {
    /// Reads what is in a folder, and in those below it down to a depth.
    fn collect(&mut self, folder: &Path, before: &str, depth: u32) -> Result<()> {
        let cannot = |path: &Path| {
            let path = path.to_owned();
            |source| Error::Unreadable { path, source }
        };
        let too_much = |what: String| cannot(folder)(std::io::Error::other(what));
        if depth == 0 {
            return Err(too_much(format!(
                "more than {DEPTH_MAX} folders below one another"
            )));
        }
        for entry in std::fs::read_dir(folder).map_err(cannot(folder))? {
            let entry = entry.map_err(cannot(folder))?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(too_much(format!(
                    "more than {ENTRIES_MAX} files and folders"
                )));
            }
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else { continue };
            let below = format!("{before}{name}");
            let ending = path.extension();
            if path.is_dir() {
                self.collect(&path, &format!("{below}/"), depth - 1)?;
            } else if ending.is_some_and(|it| ENDINGS.iter().any(|known| it == *known)) {
                let text = self.read(&path).map_err(cannot(&path))?;
                self.texts.insert(below, text);
            }
        }
        Ok(())
    }

    /// Reads a file: neither a pipe, which may be waited for without an end, nor a device.
    fn read(&mut self, path: &Path) -> std::io::Result<String> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(std::io::Error::other("is no file"));
        }
        let room = BYTES_MAX - self.bytes;
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        let read = file.take(room + 1).read_to_string(&mut text)? as u64;
        if read > room {
            let most = BYTES_MAX >> 20;
            let what = format!("all files together are longer than {most} MiB");
            return Err(std::io::Error::other(what));
        }
        self.bytes += read;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_through_folders_and_never_above_the_experiments() {
        let of = |wanted| Files::resolve("002-response", wanted);
        assert_eq!(of("load.toml"), "002-response/load.toml");
        assert_eq!(of("../001-x/load.toml"), "001-x/load.toml");
        assert_eq!(of("../../../etc/passwd"), "etc/passwd");
        assert_eq!(of("./a/../b.toml"), "002-response/b.toml");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_holds_itself_a_pipe_or_too_much_is_an_error() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let error = || Files::of_folder(folder.path()).unwrap_err();
        let said = || match error() {
            Error::Unreadable { source, .. } => source.to_string(),
            error => error.to_string(),
        };
        // Each way through them is another one: 2 to the power of the depth.
        for name in ["one", "two"] {
            symlink(".", folder.path().join(name)).unwrap();
        }
        assert_eq!(said(), "more than 16 folders below one another");
        for name in ["one", "two"] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join("statements.toml"))
            .status();
        assert!(made.unwrap().success());
        assert_eq!(said(), "is no file");
        std::fs::remove_file(folder.path().join("statements.toml")).unwrap();
        for name in ["a.md", "b.md", "c.md"] {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_len(30 << 20).unwrap();
        }
        assert_eq!(said(), "all files together are longer than 64 MiB");
    }

    #[test]
    fn the_folder_of_the_project_is_what_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let (folder, embedded) = (Files::of_folder(&folder).unwrap(), Files::embedded());
        assert_eq!(folder.texts, embedded.texts);
        assert!(!embedded.experiments().is_empty());
    }

    #[test]
    fn a_folder_without_statements_is_none_of_experiments() {
        let error = Files::of_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("it has no statements.toml"), "{error}");
    }
}
