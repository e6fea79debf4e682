//! Records of decisions as `decisions.bpf.c` writes them, and who records them.

use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto};
use libbpf_rs::{Iter, Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use model::{Caller, ExitKind, NOWHERE, Text};

use super::code::KernelCode;
use super::pace::drain;
use crate::variables;
use crate::{Error, libbpf_log};

/// The tracing programs, compiled from decisions.bpf.c.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decisions.bpf.o"));
/// How messages call it.
const NAME: &str = "the recorder of decisions";
/// Records that the ring buffer holds at least (`decisions` in decisions.bpf.c).
const ROOM: u64 = 200_000;
/// Records that are kept at most; more are counted as lost.
const KEPT_MAX: usize = 1 << 24;
/// After the end a decision may still be under way on another CPU.
const LATE: Duration = Duration::from_millis(20);
/// Bytes of a record, and of one with a stack.
const SIZE: usize = 32;
const TRACED: usize = SIZE + 12 * 8;

/// What a record is about: `enum kind` in decisions.bpf.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Decision {
    /// `ops.dispatch` begins, and ends.
    Dispatch,
    /// See [`Self::Dispatch`].
    Dispatched,
    /// The policy inserts a task. `a`: queue; `b`: slice.
    Request,
    /// A task comes into a queue. `a`: queue; `b`: depth, the task's CPU, flags.
    Insert,
    /// The policy keeps a task.
    Kept,
    /// A CPU looks at a queue. `a`: queue; `b`: depth.
    Consume,
    /// The look is over. `b`: whether it took a task.
    Consumed,
    /// The policy moves a task by name. `a`: the queue that it is in; `b`: depth.
    Move,
    /// The move is over. `b`: whether it was carried out.
    Moved,
    /// An iterator begins. `a`: queue.
    Iterate,
    /// A task leaves its queue. `a`: queue; `b`: depth before, the task's CPU, whether it runs.
    Remove,
    /// A CPU is kicked. `a`: which; `b`: flags.
    Kick,
    /// An idle CPU is claimed. `a`: which.
    Claim,
    /// The CPU begins to idle, or ends. `a`: whether it idles.
    Idle,
    /// The policy gives a task a slice. `a`: nanoseconds.
    Slice,
    /// The CPUs that a task may use. `a`: the lowest 64 of the mask; `b`: how many.
    Allowed,
    /// A queue is destroyed. `a`: which.
    Destroy,
    /// The policy's time ends. `a`: the kind of its exit; `b`: its code.
    Exit,
}

impl Decision {
    const ALL: [Self; 18] = [
        Self::Dispatch,
        Self::Dispatched,
        Self::Request,
        Self::Insert,
        Self::Kept,
        Self::Consume,
        Self::Consumed,
        Self::Move,
        Self::Moved,
        Self::Iterate,
        Self::Remove,
        Self::Kick,
        Self::Claim,
        Self::Idle,
        Self::Slice,
        Self::Allowed,
        Self::Destroy,
        Self::Exit,
    ];
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time: u64,
    /// Task that it is about, or 0.
    pub pid: u32,
    /// Where it happened.
    pub cpu: u16,
    /// What happened.
    pub what: Decision,
    /// First word.
    pub a: u64,
    /// Second word.
    pub b: u64,
    /// Where in the policy's source, or [`NOWHERE`].
    pub place: u32,
    /// Whose program decided.
    pub caller: Caller,
}

/// Decisions in any order, and the places that they name.
#[derive(Clone, Debug, Default)]
pub struct RecordedDecisions {
    /// The records.
    pub records: Vec<Decided>,
    /// [`Text::Place`]s by number.
    pub places: Vec<Text>,
    /// Records that were lost.
    pub lost: u64,
    /// What this kernel does not let see, in words.
    pub missing: Vec<&'static str>,
}

impl RecordedDecisions {
    /// The end of the policy's time, if an error brought it.
    #[must_use]
    pub fn ejection(&self) -> Option<(u64, ExitKind, i64)> {
        let ends = self.records.iter().filter(|it| it.what == Decision::Exit);
        let errors = ends.filter_map(|end| {
            let kind = ExitKind::of(u32::try_from(end.a).ok()?)?;
            kind.is_error()
                .then_some((end.time, kind, end.b.cast_signed()))
        });
        errors.min_by_key(|(time, ..)| *time)
    }
}

/// Reads one record; `None` if the bytes are no record.
fn parse(bytes: &[u8], code: &KernelCode) -> Option<Decided> {
    let long = |at: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let frames = (SIZE..TRACED).step_by(8).map_while(long);
    let (place, caller) = match bytes.len() {
        ..TRACED => (NOWHERE, Caller::Kernel),
        _ => code.find(frames.take_while(|frame| *frame != 0)),
    };
    Some(Decided {
        time: long(0)?,
        pid: u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?),
        cpu: u16::from_ne_bytes(bytes.get(12..14)?.try_into().ok()?),
        what: *Decision::ALL.get(usize::from(*bytes.get(14)?))?,
        a: long(16)?,
        b: long(24)?,
        place,
        caller,
    })
}

/// Records the decisions of the attached policy; dropping it discards them.
#[derive(Debug)]
pub struct DecisionRecorder {
    object: Object,
    /// Dropped before the object is.
    links: Vec<Link>,
    missing: Vec<&'static str>,
    stop: Arc<AtomicBool>,
    reader: JoinHandle<Result<RecordedDecisions, libbpf_rs::Error>>,
}

/// Programs whose decisions are missing where the kernel lacks their function, with what they
/// tell.
const TELLS: [(&str, &str); 15] = [
    (
        "policy_dispatch",
        "when `dispatch` begins and ends without a task",
    ),
    ("decide_request", "which line inserts a task"),
    ("decide_insert", "inserts into queues that are no CPU's own"),
    ("decide_local", "inserts into the CPUs' own queues"),
    ("decide_kept", "tasks that the policy keeps"),
    ("decide_consume", "looks at queues"),
    ("decide_move", "tasks that the policy moves by name"),
    ("decide_iterate", "iterators over queues"),
    ("decide_remove", "tasks that leave a queue"),
    ("decide_kick", "kicks"),
    ("decide_claim", "claims of idle CPUs"),
    ("decide_idle", "CPUs that go idle"),
    (
        "decide_slice",
        "slices that the policy sets without an insert",
    ),
    ("decide_allowed", "changes of affinity"),
    ("decide_exit", "the policy's end"),
];

impl DecisionRecorder {
    /// Begins to record. It also begins with the CPUs that each task may use.
    ///
    /// # Errors
    /// When the kernel refuses the programs: they need root and a kernel with sched_ext.
    pub fn start() -> Result<Self, Error> {
        let code = KernelCode::read();
        let (object, missing) = load_what_works(&code)?;
        let mut snapshot = Vec::new();
        let mut links = Vec::new();
        for program in object.progs_mut().filter(|program| program.autoload()) {
            let (link, log) = libbpf_log::listen(|| program.attach());
            let link = link.map_err(|source| Error::Attach {
                policy: NAME.to_owned(),
                source,
                log,
            })?;
            if program.section().to_string_lossy().starts_with("iter/") {
                let mut iter = Iter::new(&link).map_err(|source| map_error("tasks", source))?;
                let read = iter.read_to_end(&mut snapshot);
                read.map_err(Error::file("the list of tasks"))?;
            } else {
                links.push(link);
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let reader = read(&object, code, snapshot, Arc::clone(&stop))?;
        let recorder = Self {
            object,
            links,
            missing,
            stop,
            reader,
        };
        recorder.set_recording(true)?;
        Ok(recorder)
    }

    fn set_recording(&self, on: bool) -> Result<(), Error> {
        let value = u32::from(on).to_ne_bytes();
        let (map, offset) = variable(&self.object, "recording")?;
        let mut bytes = vec![0; map.value_size() as usize];
        bytes[offset..offset + value.len()].copy_from_slice(&value);
        map.update(&0_u32.to_ne_bytes(), &bytes, MapFlags::ANY)
            .map_err(|source| map_error("recording", source))
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// When a map or the ring buffer cannot be read.
    ///
    /// # Panics
    /// If the thread that reads has panicked.
    pub fn stop(mut self) -> Result<RecordedDecisions, Error> {
        let lost = {
            let (map, offset) = variable(&self.object, "lost")?;
            let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
            let value = value.map_err(|source| map_error("lost", source))?;
            let word = value
                .as_ref()
                .and_then(|value| value.get(offset..offset + 8));
            word.and_then(|word| word.try_into().ok())
                .map_or(0, u64::from_ne_bytes)
        };
        self.links.clear();
        thread::sleep(LATE);
        self.stop.store(true, Ordering::Relaxed);
        let decisions = self.reader.join().expect("the reader does not panic");
        let mut decisions = decisions.map_err(|source| map_error("decisions", source))?;
        decisions.lost = decisions.lost.saturating_add(lost);
        decisions.missing = self.missing;
        Ok(decisions)
    }
}

/// The map of a global variable, and where in its value the variable is.
fn variable(object: &Object, name: &str) -> Result<(MapHandle, usize), Error> {
    let missing = || Error::Variable {
        policy: NAME.to_owned(),
        name: name.to_owned(),
        size: size_of::<u32>(),
    };
    let btf = Btf::from_raw("runslice", OBJECT).ok().flatten();
    let place = btf.as_ref().and_then(|btf| variables::find(btf, name));
    let place = place.ok_or_else(missing)?;
    let is_it = |name: &str| variables::is_section_map(name, &place.section);
    let mut maps = object.maps();
    let map = maps.find(|map| is_it(&map.name().to_string_lossy()));
    let map = MapHandle::try_from(&map.ok_or_else(missing)?);
    Ok((map.map_err(|source| map_error(name, source))?, place.offset))
}

/// The thread that empties the ring buffer.
fn read(
    object: &Object,
    code: KernelCode,
    snapshot: Vec<u8>,
    stop: Arc<AtomicBool>,
) -> Result<JoinHandle<Result<RecordedDecisions, libbpf_rs::Error>>, Error> {
    let map = object.maps().find(|map| *map.name() == *"decisions");
    let map = map.expect("the object has the map");
    let handle = MapHandle::try_from(&map).map_err(|source| map_error("decisions", source))?;
    Ok(thread::spawn(move || {
        let mut decisions = RecordedDecisions::default();
        let mut keep = |bytes: &[u8]| {
            let is_full = decisions.records.len() >= KEPT_MAX;
            match parse(bytes, &code).filter(|_| !is_full) {
                Some(record) => decisions.records.push(record),
                None => decisions.lost += 1,
            }
        };
        snapshot.chunks_exact(SIZE).for_each(&mut keep);
        drain(&handle, ROOM, &stop, keep)?;
        decisions.places = code.into_places();
        Ok(decisions)
    }))
}

/// Loads; without the programs at the policy's own if the kernel refuses those.
fn load_what_works(code: &KernelCode) -> Result<(Object, Vec<&'static str>), Error> {
    let dispatch = code.dispatch();
    match load(dispatch.as_ref()) {
        Err(Error::Refused { .. }) if dispatch.is_some() => load(None),
        result => result,
    }
}

fn load(dispatch: Option<&(OwnedFd, String)>) -> Result<(Object, Vec<&'static str>), Error> {
    let open = || {
        ObjectBuilder::default()
            .name("decisions")?
            .open_memory(OBJECT)
    };
    let (object, log) = libbpf_log::listen(open);
    let mut object = object.map_err(|source| Error::Open {
        policy: NAME.to_owned(),
        source,
        log,
    })?;
    let missing = choose(&mut object, dispatch)?;
    let (object, log) = libbpf_log::listen(|| object.load());
    let object = object.map_err(|source| Error::Refused {
        policy: NAME.to_owned(),
        source,
        log,
    })?;
    Ok((object, missing))
}

/// Leaves out the programs whose functions this kernel lacks or declares otherwise. Returns what
/// is not told then.
fn choose(
    object: &mut OpenObject,
    dispatch: Option<&(OwnedFd, String)>,
) -> Result<Vec<&'static str>, Error> {
    let kernel = Btf::from_vmlinux().map_err(|source| map_error("types", source))?;
    let mut loaded = Vec::new();
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let section = program.section().to_string_lossy().into_owned();
        let is_there = match (section.split_once('/'), dispatch) {
            (Some(("fentry" | "fexit", function)), _) => fits(&kernel, function, &name),
            (None, Some((program_fd, function))) => {
                let target = (program_fd.as_raw_fd(), Some(function.clone()));
                program.set_attach_target(target.0, target.1).is_ok()
            }
            (None, None) => false,
            (Some(_), _) => true,
        };
        program.set_autoload(is_there);
        if is_there {
            loaded.push(name);
        }
    }
    let tells = TELLS.iter().filter(|(program, _)| {
        let is_it = |name: &String| name.starts_with(program);
        !loaded.iter().any(is_it)
    });
    Ok(tells.map(|(_, what)| *what).collect())
}

/// Whether the kernel has `function`, with its queue, or the end, where `program` looks for it: a
/// number at the end of a program's name is that of the argument.
fn fits(kernel: &Btf<'_>, function: &str, program: &str) -> bool {
    let Some(found) = kernel.type_by_name::<Func<'_>>(function) else {
        return false;
    };
    let number = program.rsplit('_').next().and_then(|end| end.parse().ok());
    let Some(number): Option<usize> = number else {
        return true;
    };
    let prototype = found.next_type();
    let prototype = prototype.and_then(|it| FuncProto::try_from(it).ok());
    let Some(prototype) = prototype else {
        return false;
    };
    let wanted = if program.starts_with("decide_exit") {
        "ei"
    } else {
        "dsq"
    };
    let argument = prototype
        .iter()
        .nth(number)
        .and_then(|argument| argument.name);
    argument.is_some_and(|name| name == wanted)
}

fn map_error(map: &str, source: libbpf_rs::Error) -> Error {
    Error::Map {
        policy: NAME.to_owned(),
        map: map.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_the_kernel_side_lays_it_out() {
        let mut bytes = Vec::new();
        bytes.extend(7_u64.to_ne_bytes());
        bytes.extend(42_u32.to_ne_bytes());
        bytes.extend(3_u16.to_ne_bytes());
        bytes.extend([Decision::Kick as u8, 0]);
        bytes.extend(5_u64.to_ne_bytes());
        bytes.extend(1_u64.to_ne_bytes());
        let read = parse(&bytes, &KernelCode::default()).unwrap();
        let want = Decided {
            time: 7,
            pid: 42,
            cpu: 3,
            what: Decision::Kick,
            a: 5,
            b: 1,
            place: NOWHERE,
            caller: Caller::Kernel,
        };
        assert_eq!(read, want);
        assert_eq!(parse(&bytes[..20], &KernelCode::default()), None);
        bytes[14] = Decision::ALL.len() as u8;
        assert_eq!(parse(&bytes, &KernelCode::default()), None);
    }

    #[test]
    fn kinds_and_fields_lie_where_the_object_has_them() {
        let btf = Btf::from_raw(NAME, OBJECT).unwrap().unwrap();
        let name = |it: &Decision| format!("{it:?}").to_lowercase();
        let ours = Decision::ALL.iter().map(|it| (name(it), *it as i64));
        assert_eq!(
            variables::enumerators(&btf, "kind"),
            ours.collect::<Vec<_>>()
        );
        let at = |field| variables::member(&btf, "decision", field);
        let fields = ["time", "pid", "cpu", "kind", "a", "b"].map(at);
        assert_eq!(fields, [0, 8, 12, 14, 16, 24].map(Some));
        assert_eq!(variables::member(&btf, "traced", "frames"), Some(SIZE));
    }

    #[test]
    fn the_object_is_read_and_every_program_tells_something() {
        let object = ObjectBuilder::default().open_memory(OBJECT).unwrap();
        let names: Vec<_> = (object.progs())
            .map(|program| program.name().to_string_lossy().into_owned())
            .collect();
        for (program, what) in TELLS {
            let is_it = |name: &String| name.starts_with(program);
            assert!(names.iter().any(is_it), "{program}: {what}");
        }
    }
}
