//! A recording as a workload: the file that `--events` wrote, or a trace of another program.

pub mod halves;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Seek as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use model::{
    Advised, Change, Event, EventMask, Header, Nanos, Profile, SimTime, Sink, TaskClass, TaskId,
    What, span,
};
use traces::foreign::{Imported, Window};
use workload::{
    AsFile, CostScale, CpuSet, Grouped, INTERRUPT_PRIORITY, KnownTask, RecordedCosts,
    RecordedCourse, RecordedLoad, SchedPolicy, Wakeups, Workload,
};

use crate::error::UsageError;
use crate::input;
use crate::kind::WordKind;
use crate::note::Topic;
use crate::score_file;
use crate::services::{Content, Services};
use crate::words::counted;

/// Operations of a load that is made of a foreign trace, at most.
const MOST_OPERATIONS: u64 = 5_000_000;

/// Longest recording that becomes a load: a hundred days, as a span in a workload. Each tick is
/// simulated, so that a damaged time would have a load of two records go on for ever.
const LONGEST: Nanos = Nanos::from_secs(100 * 24 * 3600);

/// What is made of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The factor for the CPU time that its tasks need.
    pub scale: CostScale,
    /// Which part of it is used.
    pub window: Window,
    /// What is taken off the CPU time of a trace, because the machine charges for it anew; `None`:
    /// what was measured where it was recorded, if that is known. Files of events have it beside
    /// the CPU time.
    pub costs: Option<RecordedCosts>,
}

/// A recording in the place of a workload.
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// The recording; without it there is a workload.
    pub from: Option<PathBuf>,
    /// The factor for the CPU time that its tasks need.
    pub cost_scale: Option<CostScale>,
    /// Which part of it is used.
    pub window: Option<Window>,
}

impl Rerun {
    /// What is made of the recording.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted {
            scale: self.cost_scale.unwrap_or(CostScale::ONE),
            window: self.window.unwrap_or_default(),
            costs: None,
        }
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            scale: CostScale::ONE,
            window: Window::default(),
            costs: None,
        }
    }
}

/// Checks that the recording called `name` can be simulated.
///
/// # Errors
/// When it lasts too long for that.
fn check_length(recorded: &RecordedLoad, name: &str) -> anyhow::Result<()> {
    let lasted = recorded.lasted();
    anyhow::ensure!(
        lasted <= LONGEST,
        Advised::new(
            format!("{name}: it lasts {lasted}, and a load at most 100 days"),
            "its times are damaged; else take a part with --window"
        )
    );
    Ok(())
}

/// Says how far the load that is made of this recording can be trusted, as far as that is known.
pub fn say_score(services: &Services<'_>, path: &Path) {
    if let Some(note) = score_file::note(services, path) {
        services.note(Topic::Recording, note);
    }
}

const CHARGED_ANEW: &str = "what the profile charges for a switch and a wakeup is taken off the \
                            recorded CPU time: each scheduler pays for its own";

const ONLY_OF_TRACES: &str = "--window is for traces of other programs, not for a file of --events";

/// Reads the recording at `path`, and says what became of its wakeups.
///
/// # Errors
/// When the file cannot be read, or is no recording; the message names the file and the place in
/// it.
pub fn load(services: &Services<'_>, path: &Path, wanted: Wanted) -> anyhow::Result<Workload> {
    Ok(with_course(services, path, wanted)?.load)
}

/// A recording as a load, and what the load does not say of it.
#[derive(Debug)]
pub struct Recorded {
    /// The load.
    pub load: Workload,
    /// Where its tasks stand in the recording after so much CPU time.
    pub course: RecordedCourse,
    /// Whose end is the end of the load.
    pub ends_with: EndsWith,
    /// The kernel that it was recorded on, if it says so.
    pub kernel: Option<String>,
}

/// Whose end is the end of a recorded load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsWith {
    /// All tasks: it is a recording of a load and of nothing else.
    All,
    /// What the tasks of this group forked: the command that `record` started.
    ChildrenOf(u32),
    /// It is not known: the recording is of everything on a computer.
    Unknown,
}

/// The recording at `path` as [`load()`] reads it.
///
/// # Errors
/// The errors of [`load()`].
pub fn with_course(
    services: &Services<'_>,
    path: &Path,
    wanted: Wanted,
) -> anyhow::Result<Recorded> {
    let name = input::shown(path);
    let mut recorded = RecordedLoad::new();
    let ReadBeside {
        ends_with,
        kernel,
        profile,
    } = read(services, path, wanted, &mut recorded)?;
    let wakeups = recorded.wakeups();
    check_length(&recorded, &name)?;
    let found = recorded.with_course(&name, wanted.scale);
    let found = found.filter(|(workload, _)| !workload.groups.is_empty());
    let (mut load, course) = found.with_context(|| {
        if wanted.window == Window::default() {
            format!("{name}: no task ran in this recording")
        } else {
            format!("{name}: no task ran in this part of it; give another --window")
        }
    })?;
    if let Some(profile) = profile {
        load.machine.profile = profile;
    }
    services.note(Topic::Recording, in_words(wakeups));
    Ok(Recorded {
        load,
        course,
        ends_with,
        kernel,
    })
}

/// What was read of a recording beside its events.
struct ReadBeside {
    ends_with: EndsWith,
    kernel: Option<String>,
    /// The profile that was measured where it was recorded, if nobody names another one.
    profile: Option<Profile>,
}

fn read(
    services: &Services<'_>,
    path: &Path,
    wanted: Wanted,
    to: &mut RecordedLoad,
) -> anyhow::Result<ReadBeside> {
    let window = wanted.window;
    let cannot = model::CannotRead::at(input::shown(path));
    let name = || input::shown(path);
    if let Some(mistaken) = services.misplaced_file(path, WordKind::Recording) {
        return Err(UsageError::new(mistaken).into());
    }
    let file = services.open(path).map_err(&cannot)?;
    let mut file = BufReader::new(file.content);
    let begin = file.fill_buf().map_err(&cannot)?;
    if traces::foreign::is_foreign(begin) {
        // A pipe stays where it is: text and Perfetto's traces are read from there.
        let measured = wanted.costs.is_none();
        let measured = measured.then(|| traces::foreign::snapshot(&mut file));
        let measured = measured.flatten().and_then(|it| it.switch_ns);
        let _ = file.rewind();
        let profile = measured.and_then(Profile::measured);
        let costs = wanted.costs.or(profile.as_ref().map(RecordedCosts::of));
        let costs = costs.unwrap_or_default();
        to.set_costs(costs);
        if costs != RecordedCosts::default() {
            services.note(Topic::Recording, CHARGED_ANEW.to_owned());
        }
        let found = foreign(services, (file, path), (window, costs), to);
        let (ends_with, kernel) = found.with_context(name)?;
        return Ok(ReadBeside {
            ends_with,
            kernel,
            profile,
        });
    }
    if window != Window::default() {
        anyhow::bail!("{}: {ONLY_OF_TRACES}", name());
    }
    traces::replay(file, to).with_context(name)?;
    Ok(ReadBeside {
        ends_with: EndsWith::All,
        kernel: None,
        profile: None,
    })
}

/// Whether the file at `path` is a trace of another program, by its content.
#[must_use]
pub fn is_trace(services: &Services<'_>, path: &Path) -> bool {
    begins(services, path, traces::foreign::is_trace)
}

/// Whether the file at `path` can be read and begins with what `is` wants.
fn begins(services: &Services<'_>, path: &Path, is: impl FnOnce(&[u8]) -> bool) -> bool {
    let opened = services.open(path);
    opened.is_ok_and(|it| BufReader::new(it.content).fill_buf().is_ok_and(is))
}

/// Whether the file at `path` is a recording, by its content: a trace of another program, or what
/// `--events` wrote.
#[must_use]
pub fn is_recording(services: &Services<'_>, path: &Path) -> bool {
    begins(services, path, |it| {
        it.starts_with(br#"{"runslice_events":"#) || traces::foreign::is_trace(it)
    })
}

/// Whether the file at `path` may have been a recording that cannot be read as it is: it is empty
/// or packed, and not hidden.
#[must_use]
pub fn is_lost(services: &Services<'_>, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let is_hidden = name.as_encoded_bytes().starts_with(b".");
    let is_packed = |it: &[u8]| matches!(it, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]);
    !is_hidden && begins(services, path, |it| it.is_empty() || is_packed(it))
}

/// A recording of our own, by tasks of the same behaviour.
#[derive(Debug, Default)]
struct Own {
    header: Option<Header>,
    grouped: Grouped,
    /// Real-time tasks.
    realtime: HashSet<TaskId>,
    end: SimTime,
}

impl Sink for Own {
    fn wants(&self) -> EventMask {
        EventMask::SCHED
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        self.grouped.events(events);
        let is_realtime = |event: &&Event| match event.what() {
            What::Change(Change::Class { class, .. }) => class == TaskClass::RealTime,
            _ => false,
        };
        let realtime = events.iter().filter(is_realtime);
        self.realtime.extend(realtime.map(|event| event.task));
    }

    fn finish(&mut self, end: SimTime) {
        self.grouped.finish(end);
        self.end = end;
    }
}

/// The recording at `path` as a workload file whose groups are tasks of the same behaviour.
///
/// # Errors
/// When the file cannot be read, or is no recording; the message names the file and the place in
/// it.
pub fn to_toml(
    services: &Services<'_>,
    path: &Path,
    window: Window,
    anonymous: bool,
) -> anyhow::Result<String> {
    let name = input::shown(path);
    let file = services.open(path).map_err(model::CannotRead::at(&name))?;
    let file = file.content;
    let mut grouped = Grouped::new();
    let stem = stem(path);
    if !is_trace(services, path) {
        anyhow::ensure!(window == Window::default(), ONLY_OF_TRACES);
        let mut own = Own::default();
        traces::replay(BufReader::new(file), &mut own).with_context(|| name.clone())?;
        let header = own
            .header
            .with_context(|| format!("{name}: it has no header"))?;
        let file = AsFile {
            name: &stem,
            groups: &header.groups,
            machine: &header.machine,
            length: own.end.since(SimTime::ZERO),
            anonymous,
        };
        let known = |task: usize| KnownTask {
            realtime: own
                .realtime
                .contains(&task_of(task))
                .then_some(INTERRUPT_PRIORITY),
            cpus: None,
        };
        return Ok(own.grouped.to_toml(&file, &known));
    }
    let imported = traces::foreign::read(file, &stem, window, &mut |events| {
        grouped.events(events);
        ControlFlow::Continue(())
    });
    let imported = imported.with_context(|| name.clone())?;
    grouped.finish(imported.end);
    for sentence in imported.findings.sentences() {
        services.note(Topic::Recording, sentence);
    }
    let file = AsFile {
        name: &stem,
        groups: &imported.header.groups,
        machine: &imported.header.machine,
        length: imported.end.since(SimTime::ZERO),
        anonymous,
    };
    let known = |task: usize| {
        let task = task_of(task);
        KnownTask {
            realtime: imported.mostly_realtime(task),
            cpus: affinity(&imported, task),
        }
    };
    Ok(grouped.to_toml(&file, &known))
}

fn task_of(number: usize) -> TaskId {
    TaskId(u32::try_from(number).expect("a task's number"))
}

fn stem(path: &Path) -> String {
    let shown = input::shown(path);
    let stem = Path::new(&shown).file_stem().unwrap_or(shown.as_ref());
    stem.to_string_lossy().into_owned()
}

/// What was read of a trace.
struct Taken {
    imported: Imported,
    /// There was more of it than a load may have.
    is_full: bool,
    alarms: Alarms,
}

/// Tasks that ended after their alarm clocks had rung.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Alarms {
    /// That compute until then, and so stop by the clock.
    by_clock: u64,
    /// That do something else, too.
    others: u64,
}

/// Reads a trace of another program into `to`.
fn take(
    file: BufReader<Box<dyn Content>>,
    path: &Path,
    window: Window,
    to: &mut RecordedLoad,
) -> anyhow::Result<Taken> {
    let mut is_full = false;
    let imported = traces::foreign::read(file, &stem(path), window, &mut |events| {
        to.events(events);
        is_full = to.operations() > MOST_OPERATIONS;
        if is_full {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    to.begin(&imported.header);
    to.finish(imported.end);
    set_policies(&imported, to);
    let alarms = set_alarms(&imported, to);
    Ok(Taken {
        imported,
        is_full,
        alarms,
    })
}

/// Reads a trace of another program, and says what was found in it.
fn foreign(
    services: &Services<'_>,
    (file, path): (BufReader<Box<dyn Content>>, &Path),
    (window, costs): (Window, RecordedCosts),
    to: &mut RecordedLoad,
) -> anyhow::Result<(EndsWith, Option<String>)> {
    let Taken {
        imported,
        is_full,
        alarms,
    } = take(file, path, window, to)?;
    let tick = imported.header.machine.tick();
    let stops = stops_in_words(alarms, to.end_together(tick), tick);
    let snapshot = imported.snapshot.as_ref();
    let switch = snapshot.and_then(|it| cost_in_words(it.switch_ns?, costs));
    let found = imported.findings.sentences().into_iter();
    for sentence in found.chain(stops).chain(switch) {
        services.note(Topic::Recording, sentence);
    }
    if is_full {
        let used = imported.end.as_nanos() / 1_000_000;
        let from = window.from.get() / 1_000_000;
        services.note(
            Topic::Recording,
            format!(
                "the load is full: only {used} ms after the first {from} ms are used; choose \
                 another part with --window, or make distributions of the whole with \
                 `runslice convert`"
            ),
        );
    }
    let recorder = snapshot.map(|it| it.recorder);
    let recorder = recorder.and_then(|pid| {
        let at = imported.tasks.iter().position(|it| it.pid == pid)?;
        to.group_of(task_of(at))
    });
    let ends_with = recorder.map_or(EndsWith::Unknown, EndsWith::ChildrenOf);
    Ok((ends_with, imported.findings.kernel))
}

fn set_policies(imported: &Imported, to: &mut RecordedLoad) {
    for (id, _) in (0..).zip(&imported.tasks) {
        let task = TaskId(id);
        if let Some(priority) = imported.realtime(task) {
            to.set_policy(task, SchedPolicy::Fifo(priority));
        }
        if let Some(cpus) = affinity(imported, task) {
            to.set_cpus(task, cpus);
        }
    }
}

/// Has tasks that only computed until their alarm clocks rang stop by the clock.
fn set_alarms(imported: &Imported, to: &mut RecordedLoad) -> Alarms {
    let mut alarms = Alarms::default();
    for (id, task) in (0..).zip(&imported.tasks) {
        if let Some(alarm) = task.alarm.filter(|_| task.ended) {
            let is_by_clock = to.set_alarm(TaskId(id), alarm);
            alarms.by_clock += u64::from(is_by_clock);
            alarms.others += u64::from(!is_by_clock);
        }
    }
    alarms
}

/// What a switch with its wakeup took where it was recorded, and what of it is charged for; or that
/// it cannot have taken so long. `None` if no profile has such costs.
fn cost_in_words(switch_ns: u64, charged: RecordedCosts) -> Option<String> {
    let took = Nanos::new(switch_ns);
    if Profile::measured(switch_ns).is_none() {
        return Some(format!(
            "a switch with its wakeup cannot have taken {took}, as the recording says: that is not \
             used"
        ));
    }
    let charged = charged.switch + charged.wakeup;
    if !charged.is_zero() {
        return Some(format!(
            "a switch with its wakeup took {took} there, and takes {charged} under this profile"
        ));
    }
    let usual = Profile::DefaultV0.costs()?;
    let scale = switch_ns as f64 * 1e3 / (usual.switch + usual.wakeup) as f64;
    Some(format!(
        "a switch with its wakeup took {took} there, and takes nothing here: a profile with `base \
         = \"default-v0\"` and `scale = {scale:.2}` charges each scheduler for it"
    ))
}

/// Who stops by the clock, and who may: `together` ended within a `tick` after unlike work.
fn stops_in_words(
    alarms: Alarms,
    together: Option<(usize, SimTime)>,
    tick: Nanos,
) -> Option<String> {
    let Alarms { by_clock, others } = alarms;
    if by_clock + others > 0 {
        let stop = if by_clock == 1 { "stops" } else { "stop" };
        let mut said = format!("{} {stop} by an alarm clock", counted(by_clock, "task"));
        if others > 0 {
            said += &format!(
                "; {} ended after one and did more than compute: their work stays as recorded",
                counted(others, "task")
            );
        }
        return Some(said);
    }
    let (tasks, end) = together?;
    Some(format!(
        "{tasks} tasks that only computed ended within {tick} of each other, at {}, after unlike \
         CPU time: they may stop by the clock. They get their recorded CPU time; a recording with \
         `signal:signal_generate` tells",
        end.since(SimTime::ZERO)
    ))
}

/// The CPUs that a task is bound to; `None`: all, or it is not known.
fn affinity(imported: &Imported, task: TaskId) -> Option<CpuSet> {
    let facts = imported.facts_of(task)?;
    let cpus = CpuSet::parse(&facts.cpus)?.within(imported.header.machine.cpus);
    (!cpus.is_empty()).then_some(cpus)
}

/// A part of a trace, such as `2s..5s`, `2s..` or `..5s`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_window(text: &str) -> Result<Window, String> {
    let wrong = || format!("`{text}` is no part of a trace, such as 2s..5s or 2s..");
    let (from, until) = text.split_once("..").ok_or_else(wrong)?;
    let bound = |text: &str| match text {
        "" => Ok(None),
        text => span::parse(text).map(Some),
    };
    let from = bound(from)?.unwrap_or(Nanos::ZERO);
    let until = bound(until)?;
    if until.is_some_and(|until| until <= from) {
        return Err(wrong());
    }
    Ok(Window { from, until })
}

fn in_words(wakeups: Wakeups) -> String {
    let Wakeups {
        by_tasks,
        by_timers,
        from_outside,
    } = wakeups;
    let all = by_tasks + by_timers + from_outside;
    let share = stats::ColumnValue::Share(stats::Millionths::of(by_timers.into(), all.into()));
    let mut text = format!(
        "{all} wakeups: {by_tasks} wait for the task that woke, {by_timers} stay timers ({share})"
    );
    if from_outside > 0 {
        text += &format!(", {from_outside} come from outside when they came");
    }
    text
}

/// A factor such as `0.5`, up to 1000 and to a millionth.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_scale(text: &str) -> Result<CostScale, String> {
    let wrong = || format!("`{text}` is no number from 0.000001 to 1000, such as 0.5");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let whole: u32 = whole.parse().map_err(|_| wrong())?;
    let part: u32 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let millionths = whole
        .checked_mul(1_000_000)
        .and_then(|whole| whole.checked_add(part));
    match millionths {
        Some(millionths @ 1..=1_000_000_000) => Ok(CostScale::millionths(millionths)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use model::Advice as _;

    use super::*;

    #[test]
    fn a_recording_of_centuries_is_refused_before_it_is_simulated() {
        let load = |days: u64| {
            let mut recorded = RecordedLoad::new();
            let end = SimTime::ZERO + Nanos::from_secs(days * 24 * 3600);
            recorded.finish(end);
            check_length(&recorded, "t.txt")
        };
        assert!(load(100).is_ok());
        let said = crate::Error::from(load(101).unwrap_err()).in_full();
        assert!(said.starts_with("t.txt: it lasts 8726400 s"), "{said}");
        assert!(said.contains("--window"), "{said}");
    }

    #[test]
    fn a_factor_is_a_decimal_number() {
        let cases = [("0.5", 500_000), ("1", 1_000_000), ("2.000001", 2_000_001)];
        for (text, want) in cases {
            assert_eq!(parse_scale(text), Ok(CostScale::millionths(want)), "{text}");
        }
        for bad in [
            "",
            "0",
            "-1",
            ".5",
            "1e3",
            "1001",
            "0.0000001",
            "1.2.3",
            "99999999999",
        ] {
            assert!(
                parse_scale(bad).unwrap_err().contains("such as 0.5"),
                "{bad}"
            );
        }
    }

    #[test]
    fn who_stops_by_the_clock_is_said_and_who_may_is_not_guessed() {
        let tick = Nanos::from_millis(4);
        let of = |by_clock, others, together| {
            stops_in_words(Alarms { by_clock, others }, together, tick)
        };
        assert_eq!(of(0, 0, None), None);
        assert_eq!(of(2, 0, None).unwrap(), "2 tasks stop by an alarm clock");
        assert_eq!(
            of(1, 3, None).unwrap(),
            "1 task stops by an alarm clock; 3 tasks ended after one and did more than compute: \
             their work stays as recorded"
        );
        let said = of(0, 0, Some((2, SimTime::from_nanos(2_330_000_000)))).unwrap();
        assert!(
            said.starts_with(
                "2 tasks that only computed ended within 4.00 ms of each other, at 2.33 s"
            ),
            "{said}"
        );
    }

    #[test]
    fn it_is_said_what_a_switch_took_and_how_it_is_charged_for() {
        let of = |charged| cost_in_words(3480, charged).unwrap();
        let want = "a switch with its wakeup took 3.48 us there, and takes nothing here: a profile \
                    with `base = \"default-v0\"` and `scale = 2.00` charges each scheduler for it";
        assert_eq!(of(RecordedCosts::default()), want);
        let charged = RecordedCosts {
            switch: Nanos::new(1140),
            switch_idle: Nanos::new(700),
            wakeup: Nanos::new(600),
        };
        let want =
            "a switch with its wakeup took 3.48 us there, and takes 1.74 us under this profile";
        assert_eq!(of(charged), want);
        for no_machine in [0, 10_000_000_000] {
            for charged in [RecordedCosts::default(), charged] {
                let said = cost_in_words(no_machine, charged).unwrap();
                assert!(said.ends_with("recording says: that is not used"), "{said}");
            }
        }
    }

    #[test]
    fn the_share_of_timers_is_said() {
        let wakeups = Wakeups {
            by_tasks: 3,
            by_timers: 1,
            from_outside: 0,
        };
        let want = "4 wakeups: 3 wait for the task that woke, 1 stay timers (25.0 %)";
        assert_eq!(in_words(wakeups), want);
        let wakeups = Wakeups {
            from_outside: 4,
            ..wakeups
        };
        let want = "8 wakeups: 3 wait for the task that woke, 1 stay timers (12.5 %), \
                    4 come from outside when they came";
        assert_eq!(in_words(wakeups), want);
    }

    #[test]
    fn a_part_of_a_trace_has_a_begin_or_an_end() {
        let window = |from, until: Option<u64>| Window {
            from: Nanos::from_secs(from),
            until: until.map(Nanos::from_secs),
        };
        assert_eq!(parse_window("2s..5s"), Ok(window(2, Some(5))));
        assert_eq!(parse_window("2s.."), Ok(window(2, None)));
        assert_eq!(parse_window("..5s"), Ok(window(0, Some(5))));
        for bad in ["", "2s", "5s..2s", "2s..2s", "a..b"] {
            assert!(parse_window(bad).is_err(), "{bad}");
        }
    }
}
