//! A policy that decides in user space: its program must run so that others can, and it runs under
//! its own policy.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use bpf::MemberValue;
use model::user_space::{
    BpfAnswer, BpfCall, Fds, MapCreate, ProgLoad, ProgramEnd, Refused, ThreadId, ThreadKernel,
    ThreadTurn, TurnEnd, UserSpace, UserSpaceError,
};
use model::{ExitKind, Kernel, Nanos, Op, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::in_process::{self, Step, Within};
use runslice_tests::library::Library;
use runslice_tests::run::Run;
use sim::Simulation;
use traces::TraceHash;

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
    let mut hash = TraceHash::new();
    let (summary, counts, _) = feed(turns, &mut hash);
    (summary, hash.value(), counts)
}

/// CPUs on which a program was told that it runs; `None`: on none yet.
type Cpus = BTreeSet<Option<u16>>;

/// As [`run`]; the events go to `sink`. Also where the program ran.
fn feed(turns: u64, sink: &mut dyn model::Sink) -> (Summary, [u64; 3], Cpus) {
    let run = Run {
        cpus: 2,
        until: Nanos::from_secs(20),
        ..Run::new("distant", LOAD)
    };
    let counts = Rc::new(RefCell::new(Vec::new()));
    let left = Rc::clone(&counts);
    let cpus = Rc::new(RefCell::new(Cpus::new()));
    let seen = Rc::clone(&cpus);
    let mut rings: Option<[Ring; 2]> = None;
    let mut turn = 0;
    let step = move |within: &mut Within<'_>| {
        let map = || ["queued", "chosen"].map(|name| Ring::map(within, name));
        let [queued, chosen] = rings.get_or_insert_with(map);
        turn += 1;
        seen.borrow_mut().insert(within.kernel.cpu());
        if within.interrupted {
            *left.borrow_mut() = within.read(".bss");
            return (TurnEnd::Exit, Vec::new());
        }
        if turn <= turns {
            // The last that came is the first that goes, so that the order is user space's.
            let all: Vec<_> = std::iter::from_fn(|| queued.take()).collect();
            all.iter().rev().for_each(|pid| chosen.add(*pid));
        }
        (TurnEnd::Wait { until: None }, Vec::new())
    };
    let how = (false, Box::new(step) as Step);
    let ran = in_process::run(&run.spec(), sink, Some("queued"), how);
    let (summary, report) = ran.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        report.end.map(|end| end.status),
        Some(0),
        "{:?}",
        report.waits
    );
    let bytes = counts.take();
    let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
    (summary, [0, 1, 2].map(word), cpus.take())
}

/// The program attaches its policy; the event that attaches others at a run's begin does not again.
#[test]
fn a_policy_that_its_program_has_attached_is_set_up_once_and_the_program_knows_its_cpu() {
    let mut collector = Collector::default();
    let (summary, _, cpus) = feed(20, &mut collector);
    // In its first turn it is no task of the machine yet; later it goes where there is room.
    assert_eq!(cpus, Cpus::from([None, Some(0), Some(1)]));
    assert!(summary.tasks.len() > 6);
    let begun = collector.calls.iter().filter(|call| call.op == Op::Init);
    assert_eq!(begun.count(), 1);
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

/// A program that attaches nothing: what it does in each turn, and whether it has ended.
struct Unattached(fn(&mut dyn ThreadKernel) -> TurnEnd, bool);

impl UserSpace for Unattached {
    fn turn(
        &mut self,
        _: ThreadId,
        _: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError> {
        let stop = self.0(kernel);
        self.1 |= stop == TurnEnd::Exit;
        Ok(ThreadTurn {
            stop,
            cost: in_process::TURN,
            woken: Vec::new(),
        })
    }

    fn woken(&mut self, _: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError> {
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
        self.1.then(|| ProgramEnd {
            status: 1,
            last_lines: "no stack\n".to_owned(),
        })
    }
}

/// Why a program that does `step` in each turn cannot be run.
fn error_of(step: fn(&mut dyn ThreadKernel) -> TurnEnd) -> String {
    let spec = Run::new("distant", LOAD).spec();
    let ran = Simulation::new(&spec)
        .with_program(Box::new(Unattached(step, false)), false)
        .start();
    ran.expect_err("it attaches nothing").to_string()
}

#[test]
fn a_program_that_is_busy_for_ever_and_attaches_nothing_is_an_error() {
    let error = error_of(|_| TurnEnd::Again);
    assert!(error.contains("within 100 ms of CPU time"), "{error}");
}

/// A table at the door that names a cgroup: no root is there, below which it could come.
#[test]
fn a_root_that_names_a_cgroup_is_refused_at_the_door_too() {
    let mut spec = Run::new("fifo", LOAD).spec();
    spec.machine.kernel = Kernel::V7_3;
    let ran = Simulation::new(&spec)
        .with_program(Box::new(Unattached(attach_placed, false)), false)
        .start();
    let error = ran.expect_err("it attaches nothing").to_string();
    assert!(error.contains("sub_cgroup_id` is 5"), "{error}");
}

/// Attaches `fifo` with a cgroup in its table, and ends.
fn attach_placed(kernel: &mut dyn ThreadKernel) -> TurnEnd {
    let mut spec = Run::new("fifo", LOAD).spec();
    spec.machine.kernel = Kernel::V7_3;
    let image = sim::image(&spec.policy, &spec.machine).expect("it links");
    let target = sim::target(&spec.machine);
    let mut call = |call| {
        let answer = kernel.bpf(ThreadId(0), call);
        answer.map_err(|refused| refused.errno.to_string())
    };
    let library = Library::load(&spec.policy.object, image, &target, &mut call);
    let mut table = library.image().struct_ops[0].clone();
    let cgroup = ("sub_cgroup_id".to_owned(), MemberValue::Int(5));
    table.members.push(cgroup);
    let link = library.link(&mut call, &table);
    assert_eq!(call(link), Err("19".to_owned()));
    TurnEnd::Exit
}

/// Loads and runs a set-up program of these instructions.
fn set_up(
    kernel: &mut dyn ThreadKernel,
    insns: &[[u8; 8]],
    fds: Fds,
) -> Result<BpfAnswer, Refused> {
    let first = ThreadId(0);
    let asked = ProgLoad {
        kind: 31,
        name: "set_up".into(),
        code: insns.concat(),
        license: "GPL".into(),
        fds,
        ..ProgLoad::default()
    };
    let loaded = kernel.bpf(first, BpfCall::ProgLoad(Box::new(asked)))?;
    let BpfAnswer::Created(program) = loaded else {
        panic!("{loaded:?}");
    };
    let run = BpfCall::TestRun {
        program,
        context: Vec::new(),
        flags: 0,
        cpu: 0,
    };
    kernel.bpf(first, run)
}

#[test]
fn a_program_that_ends_before_it_attaches_is_told_with_all_that_was_said_until_then() {
    let error = error_of(|kernel| {
        let arena = MapCreate {
            kind: 33,
            max_entries: 4,
            flags: 1 << 10,
            extra: 1 << 44,
            ..MapCreate::default()
        };
        let created = kernel.bpf(ThreadId(0), BpfCall::MapCreate(arena));
        let Ok(BpfAnswer::Created(arena)) = created else {
            panic!("{created:?}");
        };
        // Prints, and loads from the arena's first page, which nobody has.
        let fds = Fds::from([(7, arena)]);
        let quiet = [
            [0x18, 0x01, 0, 0, b'h', b'e', b'l', b'l'],
            [0, 0, 0, 0, b'o', b'\n', 0, 0],
            [0x7b, 0x1a, 0xf8, 0xff, 0, 0, 0, 0],
            [0xbf, 0xa1, 0, 0, 0, 0, 0, 0],
            [0x07, 0x01, 0, 0, 0xf8, 0xff, 0xff, 0xff],
            [0xb7, 0x02, 0, 0, 8, 0, 0, 0],
            [0x85, 0, 0, 0, 6, 0, 0, 0],
            [0x18, 0x11, 0, 0, 7, 0, 0, 0],
            [0; 8],
            [0xb7, 0x01, 0, 0, 0, 0, 0, 0],
            [0xbf, 0x11, 1, 0, 1, 0, 0, 0],
            [0x79, 0x10, 16, 0, 0, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        let ran = set_up(kernel, &quiet, fds);
        assert!(
            matches!(ran, Ok(BpfAnswer::Ran { result: 0, .. })),
            "{ran:?}"
        );
        // Stores through a null pointer, which no verifier lets through.
        let wild = [
            [0xb7, 0, 0, 0, 0, 0, 0, 0],
            [0x7b, 0x00, 8, 0, 0, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        let refused = set_up(kernel, &wild, Fds::new()).expect_err("it faults");
        assert_eq!(refused.errno, 14, "EFAULT");
        TurnEnd::Exit
    });
    let expected = "distant ended (status 1) before it attached a policy; its last lines:\n\
        no stack\n\
        its BPF programs printed last:\n\
        hello\n\
        note: a program that the loader ran failed: set_up+1: store of 8 bytes outside writable \
        memory, at 0x8\n\
        note: set_up+11 loaded from a page of the arena that is not allocated, once, first at \
        0x100000000010: it gets 0, as in a kernel";
    assert_eq!(error, expected);
}
