//! A policy that decides in user space: its program must run so that others can, and it runs under
//! its own policy.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use model::user_space::{Kernel, ProgramEnd, Stop, ThreadId, Turn, UserSpace, UserSpaceError};
use model::{ExitKind, Nanos, Summary};
use runslice_tests::in_process::{self, Step, Within};
use runslice_tests::run::Run;
use stats::TraceHash;

/// Tasks that are forked after the program came, hogs, and sleepers.
const LOAD: &str = r#"
    [task.maker]
    kind = "process"
    do = ["loop(5)[ run(1ms), fork(job), sleep(2ms) ]"]
    [task.job]
    kind = "process"
    do = ["run(3ms)"]
    [task.hog]
    count = 3
    do = ["run(100ms)"]
    [task.sleeper]
    do = ["loop(20)[ run(200us), sleep(3ms) ]"]
"#;

/// Pages of a ring buffer: the consumer's position, the producer's, and twice the data.
const PAGE: u64 = 4096;
const DATA: u64 = 65536;
const HEADER: u64 = 8;

/// A ring buffer that the program has mapped.
struct Ring(File);

impl Ring {
    fn map(within: &mut Within<'_>, name: &str) -> Self {
        let map = within.library.map_called(name);
        let pages = within.kernel.mappable(map).expect("a ring is mapped");
        assert_eq!(pages.len, 2 * PAGE + 2 * DATA);
        let file = tempfile::tempfile().expect("a file");
        file.set_len(pages.len).expect("it grows");
        let copy = file.try_clone().expect("a descriptor");
        within.kernel.share(map, copy).expect("it is shared");
        Self(file)
    }

    fn word<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, at).expect("in the file");
        bytes
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, at).expect("in the file");
    }

    /// The next record, which is a process number.
    fn take(&self) -> Option<[u8; 4]> {
        let consumed = u64::from_le_bytes(self.word(0));
        if consumed >= u64::from_le_bytes(self.word(PAGE)) {
            return None;
        }
        let at = 2 * PAGE + consumed % DATA;
        assert_eq!(u32::from_le_bytes(self.word(at)), 4, "finished, 4 bytes");
        let pid = self.word(at + HEADER);
        self.put(0, &(consumed + 2 * HEADER).to_le_bytes());
        Some(pid)
    }

    /// Adds a record.
    fn add(&self, pid: [u8; 4]) {
        let produced = u64::from_le_bytes(self.word(PAGE));
        let at = 2 * PAGE + produced % DATA;
        self.put(at + HEADER, &pid);
        self.put(at, &4_u32.to_le_bytes());
        self.put(PAGE, &(produced + 2 * HEADER).to_le_bytes());
    }
}

/// The load under a program that works for so many turns, and then waits for ever. Also what the
/// policy has counted: queued, chosen, lost.
fn run(turns: u64) -> (Summary, u64, [u64; 3]) {
    let run = Run {
        cpus: 2,
        until: Nanos::from_secs(20),
        ..Run::new("distant", LOAD)
    };
    let counts = Rc::new(RefCell::new(Vec::new()));
    let left = Rc::clone(&counts);
    let mut rings: Option<[Ring; 2]> = None;
    let mut turn = 0;
    let step = move |within: &mut Within<'_>| {
        let map = || ["queued", "chosen"].map(|name| Ring::map(within, name));
        let [queued, chosen] = rings.get_or_insert_with(map);
        turn += 1;
        if within.interrupted {
            *left.borrow_mut() = within.read(".bss");
            return (Stop::Exit, Vec::new());
        }
        if turn <= turns {
            // The last that came is the first that goes, so that the order is user space's.
            let all: Vec<_> = std::iter::from_fn(|| queued.take()).collect();
            all.iter().rev().for_each(|pid| chosen.add(*pid));
        }
        (Stop::Wait { until: None }, Vec::new())
    };
    let how = (false, Box::new(step) as Step);
    let mut hash = TraceHash::new();
    let ran = in_process::run(&run.spec(), &mut hash, Some("queued"), how);
    let (summary, report) = ran.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        report.end.map(|end| end.status),
        Some(0),
        "{:?}",
        report.waits
    );
    let bytes = counts.take();
    let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
    (summary, hash.value(), [0, 1, 2].map(word))
}

#[test]
fn a_user_space_scheduler_runs_under_its_own_policy_and_lets_others_run() {
    let (summary, hash, [queued, chosen, lost]) = run(u64::MAX);
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    assert!(summary.starved.is_empty(), "{:?}", summary.starved);
    assert_eq!((queued - chosen, lost), (0, 0), "none is left over");
    assert!(queued > 20, "{queued}");
    let worked: u64 = summary.tasks.iter().map(|task| task.run.get()).sum();
    let asked = 5 * 1_000_000 + 5 * 3_000_000 + 3 * 100_000_000 + 20 * 200_000;
    assert!(
        worked > asked,
        "everything was done, and the program's turns: {worked}"
    );
    assert_eq!(run(u64::MAX).1, hash, "the same again");
}

#[test]
fn a_user_space_scheduler_that_stops_is_ejected_by_the_watchdog() {
    let (summary, _, [queued, chosen, _]) = run(10);
    assert_eq!(
        summary.exit.kind,
        ExitKind::ErrorStall,
        "{:?}",
        summary.exit
    );
    assert!(
        summary.exit.message.contains("failed to run for"),
        "{:?}",
        summary.exit
    );
    assert!(chosen < queued);
}

/// A program that makes calls for ever and attaches nothing.
struct Busy;

impl UserSpace for Busy {
    fn turn(&mut self, _: ThreadId, _: Nanos, _: &mut dyn Kernel) -> Result<Turn, UserSpaceError> {
        Ok(Turn {
            stop: Stop::Again,
            cost: in_process::TURN,
            woken: Vec::new(),
        })
    }

    fn woken(&mut self, _: &dyn Kernel) -> Result<Vec<ThreadId>, UserSpaceError> {
        Ok(Vec::new())
    }

    fn is_waiting_for_files(&self) -> bool {
        false
    }

    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
        Ok(Vec::new())
    }

    fn waits(&self) -> Vec<String> {
        Vec::new()
    }

    fn end(&self) -> Option<ProgramEnd> {
        None
    }
}

#[test]
fn a_program_that_is_busy_for_ever_and_attaches_nothing_is_an_error() {
    let spec = Run::new("distant", LOAD).spec();
    let user = (Box::new(Busy) as Box<dyn UserSpace>, false);
    let ran = sim::run_program(&spec, &mut TraceHash::new(), sim::Options::default(), user);
    let error = ran.expect_err("it attaches nothing").to_string();
    assert!(error.contains("within 1 s of CPU time"), "{error}");
}
