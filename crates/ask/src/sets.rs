//! Files with sets of runs: what this program wrote, and what hyperfine and schbench write.

mod foreign;
mod lines;
pub mod own;

use model::Advised;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use model::Fnv1a;
use serde_json::Value;
use stats::compare::{MeasuredNumber, Reported, Set};

use crate::error::UsageError;
use crate::input;
use crate::kind::WordKind;
use crate::services::{FileKind, Services};

pub use own::SWEEP;

/// The sets of one file.
#[derive(Debug)]
pub struct File {
    /// What it is called in tables: its name without folders and ending, or its path if another
    /// file has that name.
    pub stem: String,
    /// The sets, in the order in which their first runs came.
    pub sets: Vec<Set>,
    /// The arm that is the baseline, if the file knows one.
    pub baseline: Option<String>,
    /// The arm that is the baseline a second time, if the file knows one.
    pub again: Option<String>,
    /// How often the runs were looked at while they were made.
    pub looks: u32,
    /// The runs that no other run can equal by chance, as text: those of real machines.
    pub unique: BTreeSet<String>,
}

/// Where one run belongs, and what was measured in it.
#[derive(Debug)]
struct Entry {
    world: &'static str,
    arm: String,
    place: String,
    /// What alone makes the run differ from others of its set, in simulation.
    seed: Option<u64>,
    /// `None` for a run that does not count.
    run: Option<Figures>,
    /// Whether a task starved to its end, in simulation.
    starved: bool,
}

/// What was measured in a run.
#[derive(Debug)]
enum Figures {
    /// In a run of the simulated machine or of `play`.
    Report(Box<Reported>),
    /// By whatever else.
    Measured(Vec<MeasuredNumber>),
}

impl File {
    /// Reads a file, or a folder that `bench` or `sweep` wrote.
    ///
    /// # Errors
    /// When it cannot be read, or holds nothing that is known; the message names file and place.
    pub fn read(services: &Services<'_>, path: &Path) -> anyhow::Result<Self> {
        if let Some(mistaken) = services.misplaced_file(path, WordKind::Results) {
            return Err(UsageError::new(mistaken).into());
        }
        let stem = path.file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy().into_owned();
        let name = path.display().to_string();
        let mut plan = own::FolderPlan::default();
        let mut sets = Gathered::default();
        if services.kind(path) == Some(FileKind::Folder) {
            plan = own::folder(services, path, &mut sets).with_context(|| name.clone())?;
        } else {
            sets = of_file(services, path)?;
        }
        sets.finish(&name, stem, plan)
    }

    /// Reads a document that is in no file and would be called `name`.
    ///
    /// # Errors
    /// The errors of [`File::read`].
    pub fn of_document(name: &str, document: &Value) -> anyhow::Result<Self> {
        let stem = Path::new(name).file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy().into_owned();
        let mut sets = Gathered::default();
        for entry in of_documents(name, std::slice::from_ref(document))? {
            sets.add(entry).with_context(|| name.to_owned())?;
        }
        sets.finish(name, stem, own::FolderPlan::default())
    }
}

/// The sets of a file of results. What this program wrote of many runs is never whole in memory.
fn of_file(services: &Services<'_>, path: &Path) -> anyhow::Result<Gathered> {
    if let Some(sets) = lines::read(services, path)? {
        return Ok(sets);
    }
    let name = path.display().to_string();
    let mut sets = Gathered::default();
    for entry in of_documents(&name, &documents(services, path)?)? {
        sets.add(entry).with_context(|| name.clone())?;
    }
    Ok(sets)
}

/// Runs as they come, each in its set: runs of one arm in one place are a set.
#[derive(Debug, Default)]
struct Gathered {
    sets: Vec<Set>,
    /// Where each set stands, by a hash of what it is called: a file may have a set for each run.
    places: HashMap<u64, Vec<usize>>,
    /// Hashes of the runs that came.
    seen: HashSet<u64>,
    /// Those of real machines, as text.
    unique: BTreeSet<String>,
    /// Whether a run came, if only one that does not count.
    is_any: bool,
}

impl Gathered {
    /// Adds a run.
    ///
    /// # Errors
    /// When it is there already, to the last figure: it would count as two.
    fn add(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.is_any = true;
        let at = self.place(&entry);
        let Some(run) = &entry.run else {
            self.sets[at].void += 1;
            return Ok(());
        };
        if !self.is_new(at, &entry, run) {
            let seed = entry.seed.map(|seed| format!(" with seed {seed}"));
            let seed = seed.unwrap_or_default();
            bail!(Advised::new(
                format!("a run of {}{seed} is in it twice", entry.arm),
                "leave one out"
            ));
        }
        self.sets[at].starved += usize::from(entry.starved);
        match entry.run {
            Some(Figures::Report(report)) => self.sets[at].add_report(&report, entry.seed),
            Some(Figures::Measured(run)) => self.sets[at].add(run, entry.seed),
            None => (),
        }
        Ok(())
    }

    /// Where the set of a run stands, which is made if it is not there.
    fn place(&mut self, entry: &Entry) -> usize {
        let mut hash = Fnv1a::new();
        for text in [&*entry.arm, &*entry.place, entry.world] {
            hash.write(&(text.len() as u64).to_le_bytes());
            hash.write(text.as_bytes());
        }
        let likely = self.places.entry(hash.value()).or_default();
        let is_its = |at: &usize| {
            let set = &self.sets[*at];
            set.arm == entry.arm && set.place == entry.place && set.world == entry.world
        };
        if let Some(at) = likely.iter().copied().find(is_its) {
            return at;
        }
        likely.push(self.sets.len());
        let set = Set::new(&entry.arm, &entry.place, entry.world);
        self.sets.push(set);
        self.sets.len() - 1
    }

    /// Notes a run of the set at `at`; whether it was not there.
    fn is_new(&mut self, at: usize, entry: &Entry, run: &Figures) -> bool {
        let values = run.values();
        // One rounded figure alone may well come twice.
        if values.is_empty() || entry.seed.is_none() && values.len() == 1 {
            return true;
        }
        let mut hash = Fnv1a::new();
        hash.write(&(at as u64).to_le_bytes());
        if let Some(seed) = entry.seed {
            hash.write(&seed.to_le_bytes());
            for value in values {
                hash.write(&value.to_bits().to_le_bytes());
            }
        } else {
            // What is simulated again has the same figures again; a real machine never has.
            let run = format!("{} {:?}", entry.place, run.named());
            hash.write(run.as_bytes());
            self.unique.insert(run);
        }
        self.seen.insert(hash.value())
    }

    fn finish(self, name: &str, stem: String, plan: own::FolderPlan) -> anyhow::Result<File> {
        if !self.is_any {
            bail!(Advised::new(
                format!("{name}: there are no runs in it"),
                "name what `sim --runs 10 -o runs.json` made"
            ));
        }
        Ok(File {
            stem,
            sets: self.sets,
            baseline: plan.baseline,
            again: plan.again,
            looks: plan.looks.max(1),
            unique: self.unique,
        })
    }
}

impl Figures {
    fn values(&self) -> Vec<f64> {
        match self {
            Self::Measured(run) => run.iter().map(|it| it.value).collect(),
            Self::Report(report) => {
                let mut values = Vec::new();
                report.each(|it| values.push(it.value));
                values
            }
        }
    }

    /// Each metric's name with its value.
    fn named(&self) -> Vec<(String, f64)> {
        match self {
            Self::Measured(run) => run.iter().map(|it| (it.name.clone(), it.value)).collect(),
            Self::Report(report) => {
                let mut named = Vec::new();
                report.each(|it| named.push((it.name(), it.value)));
                named
            }
        }
    }
}

/// The runs of all documents of one file.
fn of_documents(name: &str, documents: &[Value]) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        let place = || format!("{name}: document {}", at + 1);
        entries.extend(of_document(document).with_context(place)?);
    }
    Ok(entries)
}

/// The JSON documents of a file; there may be several, one after the other.
fn documents(services: &Services<'_>, path: &Path) -> anyhow::Result<Vec<Value>> {
    // A pipe is opened once.
    let is_long = || {
        services
            .open(path)
            .is_ok_and(|it| it.bytes > Some(input::RESULTS))
    };
    if services.is_file(path) && is_long() {
        bail!(Advised::new(
            format!(
                "{}: longer than {} MiB, and cut off or not laid out with one run in each \
                 line, as `sim --runs 10 -o runs.json` writes them",
                path.display(),
                input::RESULTS >> 20
            ),
            "write it again, or split it"
        ));
    }
    let text = input::text(services, path, input::RESULTS)?;
    let documents = serde_json::Deserializer::from_str(&text).into_iter();
    documents.collect::<Result<_, _>>().map_err(|error| {
        anyhow!(Advised::new(
            format!("{}: no JSON: {error}", path.display()),
            "name a file that `--format json` made, or a folder"
        ))
    })
}

/// The runs of one document, whoever wrote it.
fn of_document(document: &Value) -> anyhow::Result<Vec<Entry>> {
    for (mark, versions, read) in own::KINDS {
        if let Some(found) = document.get(mark) {
            if !found.as_u64().is_some_and(|it| versions.contains(&it)) {
                let known: Vec<String> = versions.iter().map(u64::to_string).collect();
                let known = known.join(" and ");
                bail!(Advised::new(
                    format!("`{mark}` is {found}"),
                    format!("this program reads version {known}")
                ));
            }
            if mark == own::ONE_RUN {
                return Ok(read(document));
            }
            check_runs(document)?;
            if found.as_u64() == Some(1) {
                let mut document = document.clone();
                for run in document["runs"].as_array_mut().into_iter().flatten() {
                    run["report"] = own::modern(&run["report"]);
                    run["knobs"] = run["set"].take();
                }
                return Ok(read(&document));
            }
            return Ok(read(document));
        }
    }
    if document["results"].is_array() {
        return foreign::hyperfine(document);
    }
    if document["normal"].is_object() && document["int"].is_object() {
        return Ok(foreign::schbench(document));
    }
    bail!(Advised::new(
        "neither results of runslice sim, sweep, play, run or bench, nor of hyperfine or schbench",
        "name what `sim --runs 10 -o runs.json` made"
    ))
}

/// Refuses a document whose runs are not what this program wrote: what is not there would count as
/// not measured.
fn check_runs(document: &Value) -> anyhow::Result<()> {
    let Some(runs) = document["runs"].as_array() else {
        bail!("it has no list `runs`");
    };
    for (at, run) in runs.iter().enumerate() {
        for (key, is_right) in [
            ("policy", run["policy"].is_string()),
            ("report", run["report"].is_object()),
            ("exit", run["exit"].is_object()),
        ] {
            if !is_right {
                bail!("run {} is none: it lacks `{key}`", at + 1);
            }
        }
    }
    Ok(())
}

/// Reads one file after the other.
///
/// # Errors
/// Those of [`File::read`], and when two files have one run of a real machine.
pub fn read_all(services: &Services<'_>, paths: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    let mut files: Vec<(String, File)> = Vec::new();
    for path in paths {
        files.push((path.display().to_string(), File::read(services, path)?));
        refuse_shared(&files)?;
    }
    tell_apart(&mut files);
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// Calls files that have the same name in different folders by their whole paths.
pub fn tell_apart(files: &mut [(String, File)]) {
    let stems: Vec<String> = files.iter().map(|(_, file)| file.stem.clone()).collect();
    for (path, file) in files {
        if stems.iter().filter(|it| **it == file.stem).count() > 1 {
            file.stem.clone_from(path);
        }
    }
}

/// Refuses a last file that has a run of a real machine which an earlier one has, too.
///
/// # Errors
/// Names both files.
pub fn refuse_shared(files: &[(String, File)]) -> anyhow::Result<()> {
    let Some(((path, file), before)) = files.split_last() else {
        return Ok(());
    };
    for (name, other) in before {
        let both = file.unique.intersection(&other.unique).count();
        if both > 0 {
            bail!(Advised::new(
                format!(
                    "{path}: {both} of its {} runs are in {name}, too",
                    file.unique.len()
                ),
                "a run cannot be compared with itself"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::services::tests::FILES;

    fn gathered(entries: Vec<Entry>) -> anyhow::Result<Vec<Set>> {
        let mut sets = Gathered::default();
        entries.into_iter().try_for_each(|entry| sets.add(entry))?;
        Ok(sets.sets)
    }

    #[test]
    fn a_document_of_a_later_version_is_refused_by_name() {
        let error = of_document(&json!({"runslice_results": 9})).unwrap_err();
        let want = "`runslice_results` is 9; this program reads version 1 and 2";
        assert_eq!(crate::error::in_full(&error), want);
        let error = of_document(&json!({"x": 1})).unwrap_err().to_string();
        assert!(error.starts_with("neither results"), "{error}");
    }

    #[test]
    fn what_must_be_read_whole_is_at_most_256_mib() {
        let name = format!("runslice-whole-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(input::RESULTS + 1).unwrap();
        let error = documents(&FILES, &path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(
            error.contains("longer than 256 MiB, and cut off or not"),
            "{error}"
        );
    }

    #[test]
    fn a_document_of_the_first_version_has_its_figures_under_their_new_names() {
        let run = json!({
            "policy": "mlfq", "set": {"queues": "3"}, "exit": {"kind": 64},
            "report": {
                "seed": 1, "machine": {"elapsed_ns": 5},
                "all": {"name": "all", "wakeup": {"count": 4, "p99_ns": 9}, "migrations": 2},
                "groups": [{"name": "ui", "delay": {"count": 1, "mean_ns": 8}}],
                "deadlines": [{"group": "ui", "name": "frame", "missed": 3,
                               "lateness": {"count": 3, "max_ns": 7}}],
                "spans": [{"group": "ui", "name": "draw", "length": {"count": 2, "p99_ns": 6}}],
            },
        });
        let of = |version: u32| {
            let runs = [run.clone()];
            json!({"runslice_results": version, "workload": "desk", "runs": runs})
        };
        let entries = of_document(&of(1)).unwrap();
        assert_eq!(entries[0].arm, "mlfq queues=3");
        let found = entries[0].run.as_ref().unwrap().named();
        for (name, value) in [
            ("all.wakeup_ns_p99", 9.0),
            ("all.migrations", 2.0),
            ("ui.delay_ns_mean", 8.0),
            ("deadline.ui.frame.missed", 3.0),
            ("deadline.ui.frame.late_ns_max", 7.0),
            ("span.ui.draw.length_ns_p99", 6.0),
        ] {
            let value_of = found.iter().find(|it| it.0 == name).map(|it| it.1);
            assert_eq!(value_of, Some(value), "{name}");
        }
        // What this version writes is read as it is.
        assert_eq!(
            own::modern(&own::modern(&run["report"])),
            own::modern(&run["report"])
        );
    }

    #[test]
    fn what_is_no_run_and_what_is_there_twice_is_refused() {
        let run = |seed: u64| {
            json!({
                "policy": "fifo", "set": {}, "exit": {"kind": 64},
                "report": {"seed": seed, "machine": {"elapsed_ns": 5}},
            })
        };
        let document = |runs: &[Value]| {
            json!({
                "runslice_results": 1, "world": "simulated", "workload": "desk", "runs": runs,
            })
        };
        let read = |runs: &[Value]| -> anyhow::Result<()> {
            gathered(of_document(&document(runs))?).map(drop)
        };
        read(&[run(1), run(2)]).unwrap();
        let error = crate::error::in_full(&read(&[run(1), run(2), run(1)]).unwrap_err());
        assert_eq!(
            error,
            "a run of fifo with seed 1 is in it twice; leave one out"
        );
        let error = read(&[run(1), json!({"policy": "fifo"})]).unwrap_err();
        assert_eq!(error.to_string(), "run 2 is none: it lacks `report`");
        let error = of_document(&json!({"runslice_sweep": 1})).unwrap_err();
        assert_eq!(error.to_string(), "it has no list `runs`");
    }

    #[test]
    fn a_run_of_a_real_machine_is_in_one_file_only_and_a_simulated_one_may_be_in_two() {
        let folder = std::env::temp_dir().join(format!("runslice-sets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, world: &str, elapsed: &[u64]| {
            let run = |elapsed: &u64| {
                json!({
                    "policy": "fifo", "set": {}, "exit": {"kind": 64},
                    "report": {
                        "seed": 1, "machine": {"elapsed_ns": elapsed},
                        "all": {"delay": {"p99_ns": elapsed}},
                    },
                })
            };
            let runs: Vec<Value> = elapsed.iter().map(run).collect();
            let path = folder.join(name);
            let document = json!({
                "runslice_results": 1, "world": world, "workload": "desk", "runs": runs,
                "machine": {"cpus": 4, "hz": 250, "kernel": "6.18", "smt": 1, "llc": 0},
            });
            std::fs::write(&path, document.to_string()).unwrap();
            path
        };
        let before = write("before", "played", &[5, 6]);
        let after = write("after", "played", &[7, 8]);
        let copy = write("copy", "played", &[9, 6]);
        read_all(&FILES, &[before.clone(), after]).unwrap();
        let error = read_all(&FILES, &[before.clone(), copy.clone()]).unwrap_err();
        let want = format!(
            "{}: 1 of its 2 runs are in {}, too; a run cannot be compared with itself",
            copy.display(),
            before.display()
        );
        assert_eq!(crate::error::in_full(&error), want);
        let once = write("once", "simulated", &[5]);
        let again = write("again", "simulated", &[5]);
        let files = read_all(&FILES, &[once.clone(), again]).unwrap();
        let stems: Vec<_> = files.iter().map(|it| it.stem.as_str()).collect();
        assert_eq!(stems, ["once", "again"]);
        // Two of one name are called by their paths.
        std::fs::create_dir_all(folder.join("new")).unwrap();
        let new = write("new/once", "simulated", &[5]);
        let files = read_all(&FILES, &[once.clone(), new.clone()]).unwrap();
        let stems: Vec<_> = files.iter().map(|it| it.stem.clone()).collect();
        assert_eq!(stems, [once, new].map(|it| it.display().to_string()));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn runs_of_one_policy_on_one_machine_are_a_set_and_ejected_ones_are_void() {
        let run = |policy: &str, kind: u32, elapsed: u64| {
            json!({
                "policy": policy, "set": {}, "exit": {"kind": kind},
                "report": {"seed": elapsed, "machine": {"elapsed_ns": elapsed}},
            })
        };
        let document = json!({
            "runslice_results": 1, "world": "simulated", "workload": "desk", "seed": 1,
            "machine": {"cpus": 4, "hz": 250, "kernel": "6.18", "smt": 1, "llc": 0},
            "runs": [
                run("fifo", 64, 5), run("mlfq", 64, 6), run("fifo", 1024, 1), run("fifo", 64, 7),
            ],
        });
        let sets = gathered(of_document(&document).unwrap()).unwrap();
        assert_eq!(sets.len(), 2);
        assert_eq!((sets[0].runs, sets[0].void), (2, 1));
        let series = sets[0].find("machine.elapsed_ns").unwrap();
        assert_eq!(series.values, [5.0, 7.0]);
        assert_eq!(
            series.seeds,
            [Some(5), Some(7)],
            "simulated runs have seeds"
        );
        assert_eq!(sets[0].place, "desk: 4 CPUs, HZ 250, kernel 6.18");
        assert_eq!(sets[1].arm, "mlfq");
        let mut played = document;
        played["world"] = json!("played");
        let sets = gathered(of_document(&played).unwrap()).unwrap();
        let series = sets[0].find("machine.elapsed_ns").unwrap();
        assert_eq!(
            series.seeds,
            [None, None],
            "a real machine has more than one chance"
        );
    }
}
