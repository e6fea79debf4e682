//! Loads the tracing programs, reads what they write, and takes them away again.

use std::fs;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Typedef};
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use libbpf_rs::{
    Iter, Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, Program,
};

use super::convert::{Converted, Others, Records, convert};
use super::measured::{MeasuredTask, Totals};
use super::pace::drain;
use super::raw::{self, READER, Raw, RecordFacts};
use super::{ProgramCost, clock};
use crate::variables::{self, Variable};
use crate::{Error, libbpf_log};
use model::{Nanos, TaskGroup};

/// The tracing programs, compiled from record.bpf.c.
pub(crate) const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/record.bpf.o"));
/// How messages call it.
const NAME: &str = "the recorder";
/// Events that the ring buffer holds (`events` in record.bpf.c).
const ROOM: u64 = 400_000;
/// Records that are kept at most, 1 GiB; more are counted as lost.
const KEPT_MAX: usize = 1 << 25;
/// After the end an event may still be under way on another CPU.
const LATE: Duration = Duration::from_millis(20);
/// The map in which policies say what they think of a task (report.bpf.h).
const REPORT: &str = "runslice_report";

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Numbers of switches, wakeups and so on.
    Counters,
    /// Those, and histograms of latencies and runslices for each task name.
    Histograms,
    /// Every event.
    Events,
}

/// What not every kernel lets itself be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Wakeups by interrupts are told from those by the task that was interrupted.
    pub interrupts: bool,
    /// Changes of nice values and affinities are recorded, and which wakeups are synchronous.
    pub changes: bool,
}

/// Programs that record until they are stopped; dropping it discards what was recorded.
#[derive(Debug)]
pub struct Recorder {
    depth: Depth,
    object: Object,
    /// Dropped before the object is.
    links: Vec<Link>,
    recording: Variable,
    extras: Extras,
    began: u64,
    /// The moment before it was paused.
    ended: Option<u64>,
    snapshot: Vec<u8>,
    reader: Option<RingReader>,
}

/// The thread that empties the ring buffer.
#[derive(Debug)]
struct RingReader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Spool, libbpf_rs::Error>>,
}

/// What came out of the ring buffer.
#[derive(Debug, Default)]
struct Spool {
    raws: Vec<Raw>,
    facts: Vec<RecordFacts>,
    /// Records that were not kept or not understood.
    dropped: u64,
}

/// What was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Every event; empty unless these were asked for.
    pub records: Records,
    /// By task name, up to a dot, slash or colon; empty unless histograms were asked for. The
    /// name is empty for tasks that came after all names were given away.
    pub measured: Vec<(String, MeasuredTask)>,
    /// Numbers; of events only how many were lost.
    pub totals: Totals,
    /// What the records of events have beyond the least.
    pub extras: Extras,
}

impl Recorder {
    /// Begins to record. With `report` the records of [`Depth::Events`] have what the attached
    /// policy says of each task, if it says something.
    ///
    /// # Errors
    /// When the kernel refuses the programs: they need root and a kernel of 6.18 or newer.
    pub fn start(depth: Depth, report: bool) -> Result<Self, Error> {
        let (object, recording, extras) = load_what_works(depth, report)?;
        let (links, snapshots) = attach(&object)?;
        let mut recorder = Self {
            depth,
            reader: (depth == Depth::Events)
                .then(|| read_events(&object))
                .transpose()?,
            object,
            links,
            recording,
            extras,
            began: 0,
            ended: None,
            snapshot: Vec::new(),
        };
        // Histograms begin with every name known. Events begin before the snapshot, so that no
        // task falls between the two.
        if depth == Depth::Events {
            recorder.began = recorder.set_recording(true)?;
        }
        for link in &snapshots {
            let mut iter = Iter::new(link).map_err(|source| attach_error(source, ""))?;
            let read = iter.read_to_end(&mut recorder.snapshot);
            read.map_err(Error::file("the list of tasks"))?;
        }
        if depth != Depth::Events {
            recorder.began = recorder.set_recording(true)?;
        }
        Ok(recorder)
    }

    /// When it began to record: `CLOCK_MONOTONIC`, nanoseconds.
    #[must_use]
    pub const fn began(&self) -> u64 {
        self.began
    }

    /// Returns the moment before it took effect.
    fn set_recording(&self, on: bool) -> Result<u64, Error> {
        let section = self.recording.section.clone();
        let map = (self.object.maps())
            .find(|map| variables::is_section_map(&map.name().to_string_lossy(), &section))
            .ok_or_else(|| missing("recording"))?;
        let mut value = vec![0; map.value_size() as usize];
        let place = self.recording.offset..self.recording.offset + self.recording.size;
        value[place].copy_from_slice(&u32::from(on).to_ne_bytes());
        let now = clock();
        map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(|source| map_error(&section, source))?;
        Ok(now)
    }

    /// Records nothing more; [`stop`](Self::stop) then gives what was recorded so far.
    ///
    /// # Errors
    /// When the map that says so cannot be written.
    pub fn pause(&mut self) -> Result<(), Error> {
        if self.ended.is_none() {
            self.ended = Some(self.set_recording(false)?);
        }
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// When a map or the ring buffer cannot be read.
    ///
    /// # Panics
    /// If the thread that reads has panicked.
    pub fn stop(mut self) -> Result<Recording, Error> {
        self.pause()?;
        let ended = self.ended.expect("it is paused");
        thread::sleep(LATE);
        self.links.clear();
        let mut spool = Spool::default();
        if let Some(reader) = self.reader.take() {
            reader.stop.store(true, Ordering::Relaxed);
            let read = reader.thread.join().expect("the reader does not panic");
            spool = read.map_err(|source| map_error("events", source))?;
        }
        if self.depth == Depth::Events {
            let snapshot = self.snapshot.chunks_exact(raw::TASK_SIZE);
            snapshot.for_each(|bytes| spool.keep(bytes));
        }
        let mut totals = Totals::sum(&self.lookup("totals", 0)?);
        totals.lost += spool.dropped;
        let measured = match self.depth {
            Depth::Histograms => self.measured()?,
            _ => Vec::new(),
        };
        Ok(Recording {
            records: Records {
                raws: spool.raws,
                facts: spool.facts,
                began: self.began,
                ended,
                cpus: cpus(),
                ..Records::default()
            },
            measured,
            totals,
            extras: self.extras,
        })
    }

    fn lookup(&self, name: &str, key: u32) -> Result<Vec<Vec<u8>>, Error> {
        let map = self.object.maps().find(|map| *map.name() == *name);
        let map = map.ok_or_else(|| missing(name))?;
        let values = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY);
        let values = values.map_err(|source| map_error(name, source))?;
        Ok(values.unwrap_or_default())
    }

    fn measured(&self) -> Result<Vec<(String, MeasuredTask)>, Error> {
        let names = self.object.maps().find(|map| *map.name() == *"slots");
        let names = names.ok_or_else(|| missing("slots"))?;
        let mut slots = vec![(String::new(), 0)];
        for key in names.keys() {
            let slot = names.lookup(&key, MapFlags::ANY);
            let slot = slot.map_err(|source| map_error("slots", source))?;
            let Some(slot) = slot.and_then(|it| Some(u32::from_ne_bytes(it.try_into().ok()?)))
            else {
                continue;
            };
            let end = key.iter().position(|byte| *byte == 0).unwrap_or(key.len());
            slots.push((String::from_utf8_lossy(&key[..end]).into_owned(), slot));
        }
        let mut measured = Vec::new();
        for (name, slot) in slots {
            let sum = MeasuredTask::sum(&self.lookup("measured", slot)?);
            if !sum.is_empty() {
                measured.push((name, sum));
            }
        }
        measured.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(measured)
    }

    /// What the programs have cost so far, while a [`Cost`](super::Cost) lets the kernel measure.
    #[must_use]
    pub fn cost(&self) -> Vec<ProgramCost> {
        let ours: Vec<u32> = (self.object.progs())
            .filter_map(|program| Program::id_from_fd(program.as_fd()).ok())
            .collect();
        ProgInfoIter::default()
            .filter(|info| ours.contains(&info.id))
            .map(|info| ProgramCost {
                name: info.name.to_string_lossy().into_owned(),
                runs: info.run_cnt,
                ns: info.run_time_ns,
            })
            .collect()
    }
}

impl Recording {
    /// The events, with the groups of the player's workload and those of all `others`.
    #[must_use]
    pub fn events(&self, groups: &[TaskGroup], others: Others) -> Converted {
        convert(&self.records, groups, others)
    }
}

impl Spool {
    fn keep(&mut self, bytes: &[u8]) {
        let full = self.raws.len() >= KEPT_MAX;
        match raw::parse(bytes, &mut self.facts).filter(|_| !full) {
            Some(raw) => self.raws.push(raw),
            None => self.dropped += 1,
        }
    }
}

/// Loads with as many extras as the kernel accepts.
fn load_what_works(depth: Depth, report: bool) -> Result<(Object, Variable, Extras), Error> {
    let extras = |interrupts, changes| Extras {
        interrupts,
        changes,
    };
    let mut refusal = None;
    for extras in [
        extras(true, true),
        extras(false, true),
        extras(true, false),
        extras(false, false),
    ] {
        match load(depth, report, extras) {
            Ok((object, recording)) => return Ok((object, recording, extras)),
            Err(error @ Error::Refused { .. }) => refusal = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refusal.expect("four attempts failed"))
}

/// The loaded programs, and the variable that lets them record.
fn load(depth: Depth, report: bool, extras: Extras) -> Result<(Object, Variable), Error> {
    let mut object = open()?;
    let report = report && depth == Depth::Events;
    choose(&mut object, depth, report, extras)?;
    let btf = Btf::from_raw("runslice", OBJECT).ok().flatten();
    let variable = |name| btf.as_ref().and_then(|btf| variables::find(btf, name));
    let recording = variable("recording").ok_or_else(|| missing("recording"))?;
    if report {
        let flag = variable("has_report").ok_or_else(|| missing("has_report"))?;
        adopt_report(&mut object, &flag)?;
    }
    let (object, log) = libbpf_log::listen(|| object.load());
    let object = object.map_err(|source| Error::Refused {
        policy: NAME.to_owned(),
        source,
        log,
    })?;
    Ok((object, recording))
}

fn open() -> Result<OpenObject, Error> {
    let read = || ObjectBuilder::default().name("record")?.open_memory(OBJECT);
    let (object, log) = libbpf_log::listen(read);
    object.map_err(|source| Error::Open {
        policy: NAME.to_owned(),
        source,
        log,
    })
}

/// Loads what the depth needs, and what the kernel has.
fn choose(
    object: &mut OpenObject,
    depth: Depth,
    report: bool,
    extras: Extras,
) -> Result<(), Error> {
    let prefix = match depth {
        Depth::Counters => "count_",
        Depth::Histograms => "measure_",
        Depth::Events => "event_",
    };
    let kernel = Btf::from_vmlinux().map_err(|source| attach_error(source, ""))?;
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        // Functions are not an interface: a kernel may lack them, and then what they tell.
        let function = ["fexit/", "fentry/"]
            .into_iter()
            .find_map(|hook| section.strip_prefix(hook));
        let there =
            function.is_none_or(|function| kernel.type_by_name::<Func<'_>>(function).is_some());
        let name = program.name().to_string_lossy().into_owned();
        let wanted = match name.as_str() {
            "event_waking" => depth == Depth::Events && extras.interrupts,
            "plain_waking" => depth == Depth::Events && !extras.interrupts,
            // Since Linux 6.17. `sched_switch` says nothing of a task that keeps its CPU, so a lone
            // hog's change of level would be missing.
            "event_goes_on" => {
                let tracepoint = kernel.type_by_name::<Typedef<'_>>("btf_trace_sched_exit_tp");
                report && tracepoint.is_some()
            }
            name => name.starts_with(prefix),
        };
        let allowed = extras.changes || function.is_none();
        program.set_autoload(there && wanted && allowed);
    }
    let unused: &[&str] = match depth {
        Depth::Counters => &["measured", "slots", "tasks", "events", "told", REPORT],
        Depth::Histograms => &["events", "told", REPORT],
        Depth::Events => &["measured", "slots", "tasks"],
    };
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if unused.contains(&name.as_str()) {
            let set = map.set_autocreate(false);
            set.map_err(|source| map_error(&name, source))?;
        }
    }
    Ok(())
}

/// Lets the programs read the attached policy's reports, if there are any.
fn adopt_report(object: &mut OpenObject, flag: &Variable) -> Result<(), Error> {
    let found = MapInfoIter::default().find(|info| info.name.to_string_lossy() == REPORT);
    let Some(found) = found else { return Ok(()) };
    let theirs = MapHandle::from_map_id(found.id).map_err(|source| map_error(REPORT, source))?;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name == REPORT {
            let reuse = map.reuse_fd(theirs.as_fd());
            reuse.map_err(|source| map_error(REPORT, source))?;
        } else if variables::is_section_map(&name, &flag.section) {
            let byte = map
                .initial_value_mut()
                .and_then(|it| it.get_mut(flag.offset));
            *byte.ok_or_else(|| missing("has_report"))? = 1;
        }
    }
    Ok(())
}

/// The links of the tracing programs, and those of the programs that list tasks.
fn attach(object: &Object) -> Result<(Vec<Link>, Vec<Link>), Error> {
    let (mut links, mut snapshots) = (Vec::new(), Vec::new());
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let (link, log) = libbpf_log::listen(|| program.attach());
        let link = link.map_err(|source| attach_error(source, &log))?;
        if program.section().to_string_lossy().starts_with("iter/") {
            snapshots.push(link);
        } else {
            links.push(link);
        }
    }
    Ok((links, snapshots))
}

fn read_events(object: &Object) -> Result<RingReader, Error> {
    let map = object.maps().find(|map| *map.name() == *"events");
    let map = map.ok_or_else(|| missing("events"))?;
    let handle = MapHandle::try_from(&map).map_err(|source| map_error("events", source))?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::Builder::new().name(READER.to_owned());
    let thread = thread.spawn(move || {
        let mut spool = Spool::default();
        drain(&handle, ROOM, &stopped, |bytes| spool.keep(bytes))?;
        Ok(spool)
    });
    let thread = thread.map_err(|source| map_error("events", source.into()))?;
    Ok(RingReader { stop, thread })
}

/// Ticks a second of this kernel, from how far jiffies come in the time `passed` between two
/// readings of `/proc/schedstat`; `None` when they are not there or say nothing.
#[must_use]
pub fn hz_between(before: &str, after: &str, passed: Duration) -> Option<u32> {
    let jiffies = |text: &str| -> Option<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("timestamp "))?;
        line.trim().parse().ok()
    };
    let ticks = jiffies(after)?.checked_sub(jiffies(before)?)?;
    let ns = u64::try_from(passed.as_nanos()).ok().filter(|ns| *ns > 0)?;
    let rate = ticks.checked_mul(1_000_000_000)? / ns;
    // The rates that a kernel can be configured with (kernel 6.18, kernel/Kconfig.hz).
    let near = |hz: &&u32| rate.abs_diff(u64::from(**hz)) * 10 <= u64::from(**hz);
    [100, 250, 300, 1000].iter().find(near).copied()
}

/// CPU time that tasks have used between two readings of `/proc/schedstat`; zero when they are not
/// there.
#[must_use]
pub fn busy_between(before: &str, after: &str) -> Nanos {
    let sum = |text: &str| text.lines().filter_map(busy_of).sum::<u64>();
    Nanos::new(sum(after).saturating_sub(sum(before)))
}

/// CPU time that tasks have used on one CPU, in nanoseconds, from its line of `/proc/schedstat`:
/// the seventh number (versions 15 to 17). `None`: it is no CPU's line.
#[must_use]
pub fn busy_of(line: &str) -> Option<u64> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    words.nth(7)?.parse().ok()
}

/// CPUs of this machine: one more than the number of the last one that is online.
#[must_use]
pub fn cpus() -> u16 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let last = online.trim().rsplit([',', '-']).next();
    last.and_then(|last| last.parse::<u16>().ok())
        .map_or(1, |last| last.saturating_add(1))
}

/// A snapshot of `/proc/schedstat`.
#[must_use]
pub fn schedstat() -> String {
    fs::read_to_string("/proc/schedstat").unwrap_or_default()
}

fn missing(name: &str) -> Error {
    Error::Variable {
        policy: NAME.to_owned(),
        name: name.to_owned(),
        size: size_of::<u32>(),
    }
}

fn map_error(map: &str, source: libbpf_rs::Error) -> Error {
    Error::Map {
        policy: NAME.to_owned(),
        map: map.to_owned(),
        source,
    }
}

fn attach_error(source: libbpf_rs::Error, log: &str) -> Error {
    Error::Attach {
        policy: NAME.to_owned(),
        source,
        log: log.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_the_seventh_number_of_all_cpus() {
        let at = |one: u64, two: u64| {
            format!(
                "version 17\ntimestamp 5\ncpu0 1 0 3 4 5 6 {one} 8 9\ndomain0 MC 3 1 1 1 1 1 1 1\n\
                 cpu1 1 0 3 4 5 6 {two} 8 9\n"
            )
        };
        assert_eq!(busy_between(&at(100, 50), &at(700, 60)), Nanos::new(610));
        assert_eq!(busy_between("", &at(1, 2)), Nanos::new(3));
    }

    #[test]
    fn the_tick_rate_is_found_from_jiffies() {
        let at = |jiffies: u64| format!("version 17\ntimestamp {jiffies}\ncpu0 0 0\n");
        let second = Duration::from_secs(1);
        assert_eq!(hz_between(&at(1000), &at(1251), second), Some(250));
        assert_eq!(hz_between(&at(1000), &at(1100), second), Some(100));
        assert_eq!(hz_between(&at(0), &at(1995), 2 * second), Some(1000));
        assert_eq!(hz_between(&at(0), &at(600), second), None);
        assert_eq!(hz_between("", &at(600), second), None);
        assert_eq!(hz_between(&at(5), &at(5), Duration::ZERO), None);
    }

    /// Two threads that pass a token back and forth.
    fn ping_pong(rounds: u32) {
        let (to, from) = std::sync::mpsc::channel();
        let (back, again) = std::sync::mpsc::channel();
        let partner = thread::Builder::new().name("pong.1".to_owned());
        let partner = partner.spawn(move || {
            for token in from {
                back.send(token).unwrap();
            }
        });
        let partner = partner.unwrap();
        for round in 0..rounds {
            to.send(round).unwrap();
            assert_eq!(again.recv().unwrap(), round);
        }
        drop(to);
        partner.join().unwrap();
    }

    #[test]
    #[ignore = "needs root on a kernel of 6.18 or newer: make test-vm"]
    fn every_depth_records_what_happens() {
        const ROUNDS: u32 = 500;
        for depth in [Depth::Counters, Depth::Histograms, Depth::Events] {
            let cost = super::super::Cost::measure().unwrap();
            let recorder = Recorder::start(depth, false).unwrap();
            ping_pong(ROUNDS);
            let costs = recorder.cost();
            drop(cost);
            let recording = recorder.stop().unwrap();
            let runs: u64 = costs.iter().map(|cost| cost.runs).sum();
            assert!(runs > u64::from(ROUNDS), "{depth:?}: {costs:?}");
            assert_eq!(recording.totals.lost, 0, "{depth:?}");
            if depth != Depth::Events {
                assert!(
                    recording.totals.wakeups >= u64::from(ROUNDS),
                    "{recording:?}"
                );
                assert!(
                    recording.totals.switches >= u64::from(ROUNDS),
                    "{recording:?}"
                );
                assert!(recording.totals.forks >= 1 && recording.totals.exits >= 1);
            }
            let named = |name: &str| recording.measured.iter().find(|it| it.0 == name);
            if depth == Depth::Histograms {
                let (_, pong) = named("pong").unwrap();
                assert!(pong.wakeup.count >= u64::from(ROUNDS) / 2, "{pong:?}");
                assert!(pong.runslice.count >= u64::from(ROUNDS) / 2, "{pong:?}");
                assert_eq!(recording.totals.unknown, 0);
            }
            if depth == Depth::Events {
                let converted = recording.events(&[], Others::ByName);
                let pong = converted
                    .groups
                    .iter()
                    .position(|group| group.name == "pong");
                let pong = pong.expect("a group of the thread's name") as u32;
                let is_pong = |event: &&model::Event| {
                    let what = event.what();
                    matches!(what, model::What::New { group, .. } if group == pong)
                };
                let pong = converted.events.iter().find(is_pong).unwrap().task;
                let woken = |event: &&model::Event| {
                    event.kind == model::EventKind::Wakeup && event.task == pong
                };
                let wakeups: Vec<_> = converted.events.iter().filter(woken).collect();
                assert!(wakeups.len() >= ROUNDS as usize / 2, "{}", wakeups.len());
                let by_task = |event: &&&model::Event| match event.what() {
                    model::What::Wakeup(wakeup) => wakeup.waker != model::TaskId::NONE,
                    _ => false,
                };
                let by_task = wakeups.iter().filter(by_task).count();
                assert!(by_task * 10 > wakeups.len() * 9, "{by_task}");
                assert_eq!(converted.mended, super::super::Mended::default());
            }
            println!("{depth:?}: {:?}, {costs:?}", recording.totals);
        }
    }

    #[test]
    fn the_object_is_read_and_each_depth_has_its_programs() {
        let object = open().unwrap();
        for prefix in ["count_", "measure_", "event_"] {
            let named = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(prefix);
            let programs = object
                .progs()
                .filter(|program| named(program.name()))
                .count();
            assert!(programs >= 6, "{prefix}: {programs}");
        }
    }
}
