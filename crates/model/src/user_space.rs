//! A scheduler's own program and the simulated kernel: what each asks of the other.
//!
//! The program (a *loader*) is one process with threads. [`UserSpace`] runs one of them at a time,
//! for one [`ThreadTurn`]: from when it gets a CPU to when it waits, yields or ends. No simulated
//! time passes within a turn; what it cost is charged afterwards. What the thread asks of bpf(2)
//! and of the scheduler within its turn, it asks of [`ThreadKernel`]. Two implement [`UserSpace`]:
//! the supervisor of a real process, and a recording. The simulated machine implements
//! [`ThreadKernel`].
//!
//! Everything that comes from the program is untrusted, its sizes and numbers included.

use std::fs::File;

use crate::{Advice, Advised, CpuTimes, Nanos, SimTime};

/// Threads that a program may have had in all.
pub const THREADS_MAX: usize = 4096;

/// A thread of the program, by order of creation; the first is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// A map, program, BTF or link: one numbering for all, from 1, never used again. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BpfId(pub u32);

/// A refused call: the number of `errno.h` (positive, as x86-64 has it), and for `PROG_LOAD` and
/// `BTF_LOAD` what their log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// `EINVAL` is 22.
    pub errno: i32,
    /// Empty, or lines that the program may print.
    pub log: String,
}

/// Which file descriptors of the program are which object: file descriptors that stand inside of
/// instructions, of `fd_array`, and of values of maps are found here.
pub type Fds = Vec<(u32, BpfId)>;

/// A call of bpf(2), decoded. Flags and numbers are those of Linux 6.18's include/uapi/linux/bpf.h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BpfCall {
    /// `BPF_BTF_LOAD`.
    BtfLoad {
        /// The types.
        bytes: Vec<u8>,
    },
    /// `BPF_MAP_CREATE`.
    MapCreate(MapCreate),
    /// `BPF_MAP_LOOKUP_ELEM`, and with `delete` `BPF_MAP_LOOKUP_AND_DELETE_ELEM`. The value of a
    /// per-CPU map is one for each possible CPU, each rounded up to 8 bytes.
    Lookup {
        /// The map.
        map: BpfId,
        /// Empty for queues and stacks.
        key: Vec<u8>,
        /// `BPF_F_*`.
        flags: u64,
        /// Whether the element leaves the map.
        delete: bool,
    },
    /// `BPF_MAP_UPDATE_ELEM`.
    Update {
        /// The map.
        map: BpfId,
        /// Empty for queues and stacks.
        key: Vec<u8>,
        /// The value; per CPU as above. Of `struct_ops` maps and maps of maps it holds file
        /// descriptors.
        value: Vec<u8>,
        /// `BPF_ANY`, `BPF_NOEXIST`, `BPF_EXIST`, `BPF_F_LOCK`.
        flags: u64,
        /// What the file descriptors in `value` are.
        fds: Fds,
    },
    /// `BPF_MAP_DELETE_ELEM`.
    Delete {
        /// The map.
        map: BpfId,
        /// The key.
        key: Vec<u8>,
    },
    /// `BPF_MAP_GET_NEXT_KEY`; without a key: the first.
    NextKey {
        /// The map.
        map: BpfId,
        /// The key before.
        key: Option<Vec<u8>>,
    },
    /// `BPF_MAP_FREEZE`: user space writes it no more.
    Freeze {
        /// The map.
        map: BpfId,
    },
    /// `BPF_PROG_LOAD`.
    ProgLoad(Box<ProgLoad>),
    /// `BPF_LINK_CREATE` and `BPF_RAW_TRACEPOINT_OPEN`.
    LinkCreate {
        /// The program; for `BPF_STRUCT_OPS` (44) the map.
        target: BpfId,
        /// `enum bpf_attach_type`; `BPF_TRACE_RAW_TP` (23) of a raw tracepoint.
        attach_type: u32,
        /// The raw tracepoint's name, or empty.
        name: String,
        /// `BPF_F_*`.
        flags: u32,
    },
    /// `BPF_LINK_DETACH`.
    LinkDetach {
        /// The link.
        link: BpfId,
    },
    /// `BPF_PROG_TEST_RUN`.
    TestRun {
        /// The program.
        program: BpfId,
        /// `ctx_in`.
        context: Vec<u8>,
        /// `BPF_F_TEST_RUN_ON_CPU` and others.
        flags: u32,
        /// The CPU, if the flags ask for one.
        cpu: u32,
    },
    /// read(2) of what `BPF_ITER_CREATE` made of a link.
    IterRead {
        /// The link.
        link: BpfId,
    },
    /// `BPF_PROG_STREAM_READ_BY_FD`.
    StreamRead {
        /// The program.
        program: BpfId,
        /// 1 is the standard output, 2 the error output.
        stream: u32,
        /// At most so many bytes.
        len: u32,
    },
    /// The last file descriptor of an object was closed. A link's end calls the policy's `exit`
    /// before this returns.
    Close {
        /// The object.
        object: BpfId,
    },
}

/// `BPF_MAP_CREATE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapCreate {
    /// `enum bpf_map_type`.
    pub kind: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Capacity.
    pub max_entries: u32,
    /// `BPF_F_*`.
    pub flags: u32,
    /// At most 15 bytes.
    pub name: String,
    /// A template of the maps inside.
    pub inner: Option<BpfId>,
    /// The types of key and value.
    pub btf: Option<BpfId>,
    /// Number of the key's type in `btf`.
    pub key_type: u32,
    /// Number of the value's type in `btf`.
    pub value_type: u32,
    /// Number of a `struct_ops` value's type in the kernel's BTF.
    pub kernel_value_type: u32,
    /// `map_extra`: of an arena the address at which the program sees it.
    pub extra: u64,
}

/// `BPF_PROG_LOAD`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgLoad {
    /// `enum bpf_prog_type`.
    pub kind: u32,
    /// `enum bpf_attach_type`.
    pub attach_type: u32,
    /// At most 15 bytes.
    pub name: String,
    /// Instructions, 8 bytes each, as libbpf has relocated them.
    pub code: Vec<u8>,
    /// The licence.
    pub license: String,
    /// `BPF_F_*`.
    pub flags: u32,
    /// Types of the program.
    pub btf: Option<BpfId>,
    /// Records of `func_info`, and bytes of one.
    pub functions: (Vec<u8>, u32),
    /// Records of `line_info`, and bytes of one.
    pub lines: (Vec<u8>, u32),
    /// Number in the kernel's BTF of what it attaches to: a member's type, a function, a
    /// tracepoint's typedef.
    pub attach_to: u32,
    /// What the file descriptors in `code` are.
    pub fds: Fds,
}

/// Answer of a call of bpf(2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BpfAnswer {
    /// Done.
    Done,
    /// A new object.
    Created(BpfId),
    /// A value, a key, text of an iterator or of a stream.
    Bytes(Vec<u8>),
    /// A program ran.
    Ran {
        /// What it returned.
        result: u32,
        /// The context as it left it; a kernel writes it back to `ctx_in`.
        context: Vec<u8>,
    },
}

/// Bytes of a map that the program may map into its memory, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mappable {
    /// Bytes that the file must have, whole pages.
    pub len: u64,
    /// Address at which the program must map an arena; `None`: anywhere.
    pub address: Option<u64>,
}

/// What a thread asks of the scheduler about a thread of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetSched {
    /// `sched_setscheduler()`: the kernel's number (`SCHED_EXT` is 7) and a priority.
    Policy(u32, i32),
    /// `setpriority()`, `-20..=19`.
    Nice(i8),
    /// `sched_setaffinity()`: CPU numbers, ascending.
    Affinity(Vec<u16>),
    /// `prctl(PR_SET_NAME)` and `execve()`: at most 15 bytes.
    Name(String),
}

/// The simulated machine, as a thread of the program meets it within its turn.
pub trait ThreadKernel {
    /// A call of bpf(2).
    ///
    /// # Errors
    /// As a kernel refuses it.
    fn bpf(&mut self, thread: ThreadId, call: BpfCall) -> Result<BpfAnswer, Refused>;

    /// What of a map can be mapped by the program; `None` if nothing can.
    fn mappable(&self, map: BpfId) -> Option<Mappable>;

    /// From now on the map's bytes are those of `pages`, an open file in memory of
    /// [`Mappable::len`] bytes, into which what the map holds is copied first. A recording never
    /// calls it.
    ///
    /// # Errors
    /// If the pages cannot be mapped.
    fn share(&mut self, map: BpfId, pages: File) -> std::io::Result<()>;

    /// A recording tells what the program wrote into the map's pages, from the byte `offset` on:
    /// one byte at least, and pages of an arena count as touched.
    ///
    /// # Errors
    /// If the map has no such bytes, or is frozen.
    fn store(&mut self, map: BpfId, offset: u64, bytes: &[u8]) -> Result<(), Refused>;

    /// An arena was given the address at which the program maps it.
    ///
    /// # Errors
    /// As `mmap()` refuses it.
    fn arena_at(&mut self, map: BpfId, address: u64) -> Result<(), Refused>;

    /// Whether `poll()` on a ring buffer finds something to read (of a user ring buffer: room).
    fn is_ready(&self, map: BpfId) -> bool;

    /// A thread begins: its process number and its own. It is runnable from now on.
    fn spawn(&mut self, thread: ThreadId, name: &str) -> (u32, u32);

    /// A change of a thread's scheduling.
    ///
    /// # Errors
    /// As a kernel refuses it.
    fn set_sched(&mut self, thread: ThreadId, change: SetSched) -> Result<(), Refused>;

    /// The CPU on which the thread whose turn it is runs; `None` if it is no task of the machine.
    fn cpu(&self) -> Option<u16> {
        None
    }

    /// How long the run has lasted; `None` before its policy is attached, and after its end.
    fn run_time(&self) -> Option<SimTime>;

    /// How each CPU has spent its time so far: what /proc/stat tells.
    fn cpu_times(&self) -> Vec<CpuTimes>;

    /// The frequency of each CPU now, kHz: what `scaling_cur_freq` tells. Empty if it never
    /// changes.
    fn cpu_frequencies(&self) -> Vec<u32>;

    /// What the files of `/sys/kernel/sched_ext` say: whether a policy is attached, its name, how
    /// often CPUs came or went.
    fn sched_ext(&self) -> SchedExt;
}

/// State of sched_ext, from `/sys/kernel/sched_ext`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedExt {
    /// The name of the policy that is attached.
    pub attached: Option<String>,
    /// `hotplug_seq`.
    pub hotplug: u64,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The thread waits: until that moment, or for ever, unless [`UserSpace::woken`] names it.
    Wait {
        /// On the clock of [`UserSpace::turn`].
        until: Option<Nanos>,
    },
    /// `sched_yield()`.
    Yield,
    /// The thread has ended.
    Exit,
    /// It has made as many calls as a turn may have, and goes on at once.
    Again,
}

/// A turn of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTurn {
    /// How it ended.
    pub stop: TurnEnd,
    /// Its cost on a CPU; never zero.
    pub cost: Nanos,
    /// Other threads whose wait it ended, in that order.
    pub woken: Vec<ThreadId>,
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Its exit status, or 128 and the signal's number.
    pub status: i32,
    /// The last lines that it wrote.
    pub last_lines: String,
}

/// Why the program cannot go on; the run ends. What the program itself does wrong is no error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UserSpaceError(pub Advised);

impl From<String> for UserSpaceError {
    fn from(what: String) -> Self {
        Self(what.into())
    }
}

impl Advice for UserSpaceError {
    fn advice(&self) -> Option<String> {
        self.0.advice()
    }
}

/// The program, as the simulated machine drives it. Times are the machine's uptime.
pub trait UserSpace {
    /// Lets `thread`, whose task has a CPU and whose wait is over, run from `now` until it stops.
    ///
    /// # Errors
    /// [`UserSpaceError`], to be shown to the user.
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError>;

    /// Threads whose wait is over because something that they wait for has happened, in the order
    /// in which they began to wait. Asked after policies' programs wrote to a map that is waited
    /// for, and before time moves on if [`UserSpace::is_waiting_for_files`].
    ///
    /// # Errors
    /// The errors of [`UserSpace::turn`].
    fn woken(&mut self, kernel: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError>;

    /// Whether a thread waits for what no simulated clock tells: a socket, a file of the host.
    fn is_waiting_for_files(&self) -> bool;

    /// Sends the program `SIGINT`: threads whose wait ends by it.
    ///
    /// # Errors
    /// The errors of [`UserSpace::turn`].
    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError>;

    /// What each thread that lives waits for, a line each: for messages.
    fn waits(&self) -> Vec<String>;

    /// System calls that were answered so far.
    fn calls(&self) -> u64 {
        0
    }

    /// How the program ended, if it has.
    fn end(&self) -> Option<ProgramEnd>;
}
