//! A build against each of several other loads: how long it takes, and what the other one gets.
//!
//! Source: the method of contest 0.61 (Kolivas): a load is sustained while a kernel is built, and
//! both are told, the build's time and the load's finished turns. Builds and loads are ours.
//!
//! Whoever reads the figures looks at both columns: a scheduler may speed the build up by letting
//! the load wait.

use std::fs::{self, File};
use std::hint::{black_box, spin_loop};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::kernbench::{Builder, Jobs, Prepared, sync};
use super::processes::Processes;
use super::{Error, LoadCell, LoadOutcome, LoadTable, Usage, count, own_folder, percent};
use crate::play::shared::MemoryPlan;
use folder::OwnFolder;

/// Bytes of a write or a read of the loads that stream.
const BLOCK: usize = 64 << 10;
/// Chunks that go round in the ring of processes.
const CHUNKS: usize = 4;
/// Bytes of such a chunk; far less than a pipe holds.
const CHUNK: usize = 1 << 10;

/// A build against loads.
#[derive(Clone, Debug)]
pub struct Contest {
    /// What is built.
    pub builder: Builder,
    /// Jobs of the build, and how many processes a load of several has.
    pub cpus: u32,
    /// The rows, in order.
    pub rows: Vec<ContestRow>,
    /// Bytes that loads stream or touch: the original takes the memory's size, and 110 percent
    /// of it for [`ContestRow::Mem`].
    pub bytes: u64,
    /// The folder below which loads write, in a folder of their own.
    pub folder: PathBuf,
    /// The same for [`ContestRow::IoOther`]; the original takes another disk. `None`: as the
    /// others.
    pub other_folder: Option<PathBuf>,
    /// What [`ContestRow::List`] walks through.
    pub listed: PathBuf,
    /// How long a load runs before the build begins.
    pub lead: Duration,
}

/// What runs beside the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContestRow {
    /// Nothing; the first build.
    NoLoad,
    /// Nothing; all files were read just now.
    CacheRun,
    /// Four processes for each CPU in a ring of pipes, and a few chunks that go round.
    Process,
    /// Archives of the tree are made.
    Ctar,
    /// Files of an archive are written.
    Xtar,
    /// A large file is written again and again.
    Io,
    /// The same elsewhere.
    IoOther,
    /// A large file is read again and again.
    Read,
    /// A tree of folders is listed.
    List,
    /// Memory is touched in an order that no cache likes.
    Mem,
}

impl ContestRow {
    /// All, in the order in which contest prints them.
    pub const ALL: [Self; 10] = [
        Self::NoLoad,
        Self::CacheRun,
        Self::Process,
        Self::Ctar,
        Self::Xtar,
        Self::Io,
        Self::IoOther,
        Self::Read,
        Self::List,
        Self::Mem,
    ];

    /// As contest calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoLoad => "no_load",
            Self::CacheRun => "cacherun",
            Self::Process => "process_load",
            Self::Ctar => "ctar_load",
            Self::Xtar => "xtar_load",
            Self::Io => "io_load",
            Self::IoOther => "io_other",
            Self::Read => "read_load",
            Self::List => "list_load",
            Self::Mem => "mem_load",
        }
    }
}

/// How a row came out.
#[derive(Clone, Copy, Debug)]
struct Finished {
    time: Duration,
    build: Usage,
    /// Turns of the load during the build.
    loads: u64,
    /// CPU time of the load, all of it, and how long it ran.
    load: (Duration, Duration),
}

impl Contest {
    /// Builds once for each row.
    ///
    /// # Errors
    /// When a program is missing or fails, or a load cannot run.
    pub fn run(&self) -> Result<LoadOutcome, Error> {
        if self.bytes < CHUNK as u64 || self.cpus == 0 {
            let wrong = "loads have at least 1024 bytes and one CPU";
            return Err(Error::Size(wrong.to_owned()));
        }
        let sources = self.builder.prepare()?;
        let mut outcome = LoadOutcome::default();
        let mut table = LoadTable {
            name: "rows".to_owned(),
            columns: vec!["row", "time_us", "build_cpu_us", "loads", "load_cpu_us"],
            rows: Vec::new(),
        };
        let mut reference = None;
        let mut sum = Usage::default();
        for row in &self.rows {
            let finished = self.finish(*row, &sources)?;
            sum += finished.build;
            let name = row.name();
            let time = finished.time.as_secs_f64();
            let reference = *reference.get_or_insert(time);
            outcome.add(format!("{name}_time"), "s", time);
            let share = percent(finished.build.cpu(), finished.time);
            outcome.add(format!("{name}_cpu"), "%", share);
            outcome.add(format!("{name}_ratio"), "", time / reference);
            if !matches!(row, ContestRow::NoLoad | ContestRow::CacheRun) {
                let loads = count(finished.loads);
                outcome.add(format!("{name}_loads"), "", loads);
                outcome.add(format!("{name}_loads_per_s"), "1/s", loads / time);
                let share = percent(finished.load.0, finished.load.1);
                outcome.add(format!("{name}_load_cpu"), "%", share);
            }
            let micros = |span: Duration| {
                LoadCell::Number(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
            };
            table.rows.push(vec![
                LoadCell::Word(name.to_owned()),
                micros(finished.time),
                micros(finished.build.cpu()),
                LoadCell::Number(finished.loads),
                micros(finished.load.0),
            ]);
        }
        outcome.add_usage(sum);
        outcome.tables.push(table);
        outcome.notes.push(format!(
            "loads stream and touch {} MiB, not the whole memory; ratios are to the first row",
            self.bytes >> 20
        ));
        Ok(outcome)
    }

    fn finish(&self, row: ContestRow, sources: &Prepared) -> Result<Finished, Error> {
        let jobs = Jobs::AtMost(4 * self.cpus);
        if let ContestRow::NoLoad | ContestRow::CacheRun = row {
            let (build, time) = sources.build(jobs)?;
            return Ok(Finished {
                time,
                build,
                loads: 0,
                load: (Duration::ZERO, Duration::ZERO),
            });
        }
        let place = self.place(row, sources)?;
        let mut plan = MemoryPlan::default();
        plan.longs(1);
        let turns = &plan.build()?.longs[0];
        let mut processes = Processes::new()?;
        self.begin(row, &place, &mut processes, turns)?;
        let began = processes.open(processes.len())?;
        thread::sleep(self.lead);
        let before = turns.load(Ordering::Relaxed);
        let (build, time) = sources.build(jobs)?;
        let loads = turns.load(Ordering::Relaxed) - before;
        // A load that has failed would have been none.
        processes.check()?;
        let ran = began.elapsed();
        let used = processes.end();
        drop(place);
        sync();
        Ok(Finished {
            time,
            build,
            loads,
            load: (used.cpu(), ran),
        })
    }

    /// The place of a row's load: a folder of its own.
    fn place<'a>(
        &self,
        row: ContestRow,
        sources: &'a Prepared,
    ) -> Result<SourceFolders<'a>, Error> {
        let parent = match (row, &self.other_folder) {
            (ContestRow::IoOther, Some(other)) => other,
            _ => &self.folder,
        };
        Ok(SourceFolders {
            sources,
            folder: own_folder(parent)?,
        })
    }

    /// Forks what makes the load.
    fn begin(
        &self,
        row: ContestRow,
        place: &SourceFolders<'_>,
        processes: &mut Processes,
        turns: &'static AtomicU64,
    ) -> Result<(), Error> {
        let name = row.name();
        if row == ContestRow::Process {
            return self.begin_ring(processes, turns);
        }
        let (sources, bytes, listed) = (place.sources.sources(), self.bytes, &self.listed);
        let path = &place.folder.join("load");
        if row == ContestRow::Read {
            write_file(path, bytes, |_| {}).map_err(Error::file("write", path))?;
        }
        if row == ContestRow::Xtar {
            archive(&sources, path).map_err(Error::file("write", path))?;
        }
        let turn = move || {
            turns.fetch_add(1, Ordering::Relaxed);
        };
        let mebibyte = (1_u64 << 20).min(bytes);
        processes.spawn(name, move |gate| {
            gate.pass();
            loop {
                match row {
                    ContestRow::Ctar => archive(&sources, path).map(|()| turn())?,
                    ContestRow::Xtar => extract(path).map(|()| turn())?,
                    // A turn of those that stream is a mebibyte.
                    ContestRow::Io | ContestRow::IoOther => {
                        write_file(path, bytes, every(mebibyte, turn))?;
                    }
                    ContestRow::Read => read_file(path, every(mebibyte, turn))?,
                    ContestRow::List => list(listed).map(|()| turn())?,
                    ContestRow::Mem => touch(bytes, every(mebibyte, turn)),
                    ContestRow::NoLoad | ContestRow::CacheRun | ContestRow::Process => {
                        return Ok(());
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Processes in a ring, each with a pipe to the next.
    fn begin_ring(
        &self,
        processes: &mut Processes,
        turns: &'static AtomicU64,
    ) -> Result<(), Error> {
        let number = 4 * self.cpus as usize;
        let pipes: io::Result<Vec<_>> = (0..number).map(|_| io::pipe()).collect();
        let pipes = pipes.map_err(Error::doing("make a ring of pipes"))?;
        for at in 0..number {
            let (mut from, mut to) = (&pipes[at].0, &pipes[(at + 1) % number].1);
            processes.spawn(ContestRow::Process.name(), move |gate| {
                gate.pass();
                let mut chunk = [0; CHUNK];
                if at == 0 {
                    (0..CHUNKS).try_for_each(|_| to.write_all(&chunk))?;
                }
                loop {
                    from.read_exact(&mut chunk)?;
                    to.write_all(&chunk)?;
                    if at == 0 {
                        turns.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })?;
        }
        Ok(())
    }
}

/// What a load reads, and the folder that it writes into.
#[derive(Debug)]
struct SourceFolders<'a> {
    sources: &'a Prepared,
    folder: OwnFolder,
}

/// Calls `turn` each time that so many more bytes have been done.
fn every(step: u64, turn: impl Fn()) -> impl FnMut(u64) {
    let mut left = step;
    move |mut bytes| {
        while bytes >= left {
            bytes -= left;
            left = step;
            turn();
        }
        left -= bytes;
    }
}

fn write_file(path: &Path, bytes: u64, mut done: impl FnMut(u64)) -> io::Result<()> {
    let mut file = File::create(path)?;
    let block = vec![0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(BLOCK as u64);
        file.write_all(&block[..usize::try_from(now).expect("a block fits")])?;
        left -= now;
        done(now);
    }
    Ok(())
}

fn read_file(path: &Path, mut done: impl FnMut(u64)) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(()),
            bytes => done(bytes as u64),
        }
    }
}

/// One file of many: the length of each, and its bytes.
fn archive(sources: &[PathBuf], to: &Path) -> io::Result<()> {
    let mut archive = io::BufWriter::new(File::create(to)?);
    for path in sources {
        let bytes = fs::read(path)?;
        archive.write_all(&(bytes.len() as u64).to_le_bytes())?;
        archive.write_all(&bytes)?;
    }
    archive.flush()
}

/// The files of an archive in a new folder, which is removed again.
fn extract(archive: &Path) -> io::Result<()> {
    let folder = extracted(archive);
    fs::create_dir_all(&folder)?;
    let mut from = File::open(archive)?;
    let end = from.seek(io::SeekFrom::End(0))?;
    from.rewind()?;
    let mut number = 0;
    while from.stream_position()? < end {
        let mut length = [0; 8];
        from.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        let mut to = File::create(folder.join(number.to_string()))?;
        io::copy(&mut (&mut from).take(length), &mut to)?;
        number += 1;
    }
    fs::remove_dir_all(&folder)
}

fn extracted(archive: &Path) -> PathBuf {
    archive.with_extension("files")
}

/// Looks at every file below a folder, as `ls -lR` does. What cannot be read is left out.
fn list(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let Ok(entry) = entry else { continue };
        let Ok(facts) = entry.metadata() else {
            continue;
        };
        black_box(facts.len());
        if facts.is_dir() {
            // Others may remove it meanwhile, and some nobody may read.
            let _ = list(&entry.path());
        }
    }
    Ok(())
}

/// Touches every cache line of the memory once, a page further each time.
fn touch(bytes: u64, mut done: impl FnMut(u64)) {
    const PAGE: usize = 4096;
    const LINE: usize = 64;
    let mut memory = vec![0_u8; usize::try_from(bytes).unwrap_or(usize::MAX)];
    for line in 0..PAGE / LINE {
        for at in (line * LINE..memory.len()).step_by(PAGE) {
            memory[at] = memory[at].wrapping_add(1);
            done(LINE as u64);
        }
        // An emulated CPU lets the others run at this.
        spin_loop();
    }
    black_box(memory);
}

#[cfg(test)]
mod tests {
    use super::super::tree::SourceTree;
    use super::*;

    fn contest(folder: &OwnFolder, rows: &[ContestRow]) -> Contest {
        Contest {
            builder: Builder {
                parent: folder.path().to_owned(),
                tree: SourceTree {
                    files: 4,
                    functions: 2,
                    seed: 1,
                },
                cc: "cc".to_owned(),
                cflags: "-O0".to_owned(),
            },
            cpus: 1,
            rows: rows.to_vec(),
            bytes: 2 << 20,
            listed: "/proc/self".into(),
            lead: Duration::ZERO,
            folder: folder.path().to_owned(),
            other_folder: Some(folder.join("other")),
        }
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_turn_is_told_for_each_step_however_it_is_cut() {
        let told = std::cell::Cell::new(0);
        let mut done = every(100, || told.set(told.get() + 1));
        for bytes in [99, 1, 250, 50, 99] {
            done(bytes);
        }
        drop(done);
        assert_eq!(told.get(), 4);
    }

    #[test]
    fn an_archive_has_all_files_and_gives_them_back() {
        let folder = OwnFolder::new().unwrap();
        let path = folder.join("archive");
        let prepared = contest(&folder, &[]).builder.prepare().unwrap();
        let sources = prepared.sources();
        archive(&sources, &path).unwrap();
        let bytes: u64 = sources
            .iter()
            .map(|it| fs::metadata(it).unwrap().len() + 8)
            .sum();
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        extract(&path).unwrap();
        assert!(!extracted(&path).exists());
    }

    #[test]
    fn every_load_makes_turns_until_it_is_ended_and_leaves_no_file() {
        let folder = OwnFolder::new().unwrap();
        let contest = contest(&folder, &[]);
        let sources = contest.builder.prepare().unwrap();
        for row in &ContestRow::ALL[2..] {
            let mut plan = MemoryPlan::default();
            plan.longs(1);
            let turns = &plan.build().unwrap().longs[0];
            let place = contest.place(*row, &sources).unwrap();
            let mut processes = Processes::new().unwrap();
            contest.begin(*row, &place, &mut processes, turns).unwrap();
            processes.open(processes.len()).unwrap();
            while turns.load(Ordering::Relaxed) < 3 {
                processes
                    .check()
                    .unwrap_or_else(|error| panic!("{row:?}: {error}"));
                thread::yield_now();
            }
            processes.end();
        }
        drop(sources);
        assert_eq!(files(folder.path()), 1, "only the other folder is left");
        assert_eq!(files(&folder.join("other")), 0);
    }

    #[test]
    fn both_columns_are_told_and_the_first_row_is_the_reference() {
        let folder = OwnFolder::new().unwrap();
        let contest = contest(
            &folder,
            &[
                ContestRow::NoLoad,
                ContestRow::CacheRun,
                ContestRow::Process,
            ],
        );
        let outcome = contest.run().unwrap();
        assert_eq!(outcome.value("no_load_ratio"), Some(1.0));
        let time = |row: &str| outcome.value(&format!("{row}_time")).unwrap();
        let ratio = outcome.value("process_load_ratio").unwrap();
        assert!(
            (ratio - time("process_load") / time("no_load")).abs() < 1e-9,
            "{outcome:?}"
        );
        let loads = outcome.value("process_load_loads").unwrap();
        let per_s = outcome.value("process_load_loads_per_s").unwrap();
        assert!(
            (per_s * time("process_load") - loads).abs() < 1e-6,
            "{outcome:?}"
        );
        assert_eq!(outcome.value("no_load_loads"), None);
        assert_eq!(outcome.tables[0].rows.len(), 3);
    }
}
