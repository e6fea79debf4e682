//! What the supervisor knows of the program: its processes, its threads, what each waits for, and
//! which of its descriptors are objects of bpf(2).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::Nanos;
use model::user_space::{BpfId, ThreadKernel, MapCreate, ThreadId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::anchor::Anchor;
use crate::clock::{Clock, Prices};
use crate::executable::Executable;
use crate::output::Printed;
use crate::sys::{self, InterceptedCall, FilterListener};
use crate::tree::{Shown, FolderTree};
use crate::watcher::Watcher;
use crate::work::{self, ProgramLimits, WorkDone};

/// A number of `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Self {
        Self(error.raw_os_error())
    }
}

/// Answer to a call.
#[derive(Debug)]
pub enum Reply {
    /// Its result.
    Value(i64),
    /// The kernel does it. Never with a path: it could change.
    Continue,
    /// A new descriptor, closed at exec or not.
    Fd(OwnedFd, bool),
    /// It waits, until that uptime.
    Park(Then, Option<Nanos>),
    /// `sched_yield()`.
    Yield,
    /// The kernel does it, and a thread or a process comes of it.
    Clone,
    /// The thread executes that program.
    Exec(Box<Executable>),
    /// The thread ends.
    Exit,
    /// The process ends.
    ExitGroup,
    /// The kernel does the `mmap()`, at this address.
    Place(u64),
}

/// Next step of a call that is not answered yet.
#[derive(Debug)]
pub enum Then {
    /// It is looked at, maybe a second time.
    Handle,
    /// It has this result.
    Answer(i64),
    /// It waits at a futex: the process, the address, and the bits of `FUTEX_WAIT_BITSET`.
    Futex(usize, u64, u32),
    /// It sleeps.
    Sleep,
    /// It is looked at again when one of these is ready.
    Files(Vec<Watch>),
    /// It is looked at again when a child has ended.
    Child,
    /// The kernel does it when there is a signal.
    Signal,
    /// It goes on by itself when this thread executes another program, or ends.
    Vfork(usize),
    /// It has gone on by itself, and was not heard of since.
    Freed,
}

/// Event that a thread waits for.
#[derive(Debug)]
pub enum Watch {
    /// An open file of its own, and what `poll()` should tell.
    File(OwnedFd, PollFlags),
    /// A ring buffer.
    Map(BpfId),
}

/// A call that is not answered yet.
#[derive(Debug)]
pub struct Parked {
    /// The call.
    pub call: InterceptedCall,
    /// What becomes of it.
    pub then: Then,
    /// When its wait is over.
    pub until: Option<Nanos>,
    /// Whether it has waited: then `until` is the end of its wait.
    pub waited: bool,
    /// The order of parking.
    pub order: u64,
}

impl Parked {
    /// Whether something must happen before the thread can go on.
    pub const fn waits(&self) -> bool {
        !matches!(self.then, Then::Handle | Then::Answer(_) | Then::Freed)
    }
}

/// A process of the program.
#[derive(Debug)]
pub struct Process {
    /// The host's number.
    pub real: i32,
    /// The simulated machine's.
    pub shown: u32,
    /// To take descriptors from it, and to see its end. Those that have ended share one.
    pub fd: Arc<OwnedFd>,
    /// The current folder, as the program knows it.
    pub cwd: PathBuf,
    /// Its parent.
    pub parent: Option<usize>,
    /// Whether it lives.
    pub lives: bool,
    /// CPU time of its threads.
    pub charged: Nanos,
}

/// A thread of the program.
#[derive(Debug)]
pub struct Thread {
    /// The host's number.
    pub tid: i32,
    /// The simulated machine's.
    pub shown: u32,
    /// Its process.
    pub process: usize,
    /// At most 15 bytes.
    pub name: String,
    /// The call at which it stands; `None` while it runs, and when it has ended.
    pub parked: Option<Parked>,
    /// Whether it lives.
    pub lives: bool,
    /// The word that is cleared when it ends, and whether the host's kernel clears it.
    pub clear: Option<(u64, bool)>,
    /// `sched_setscheduler()`'s number and priority.
    pub policy: (u32, i32),
    /// -20 to 19.
    pub nice: i8,
    /// CPUs, ascending.
    pub affinity: Vec<u16>,
    /// CPU time.
    pub charged: Nanos,
    /// Signals that it gets at its next turn, each once.
    pub signals: Vec<i32>,
}

/// Kind of an object of bpf(2).
#[derive(Clone, Debug)]
pub enum ObjectKind {
    /// A map, and whether user space writes it no more.
    Map(Box<MapCreate>, bool),
    /// A program: its type, name, types, and bytes of code.
    Program(u32, String, Option<BpfId>, u32),
    /// Types.
    Btf(Vec<u8>),
    /// A link: its program or map, and `enum bpf_attach_type`.
    Link(BpfId, u32),
    /// What `BPF_ITER_CREATE` made of a link, and whether its text is there.
    Iter(BpfId, bool),
}

/// An object of bpf(2).
#[derive(Debug)]
pub struct BpfObject {
    /// Its number; 0 of an iterator.
    pub id: BpfId,
    /// File that the program's descriptors refer to.
    pub file: File,
    /// What it is.
    pub kind: ObjectKind,
}

/// Settings of the supervisor.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Costs of calls and turns.
    pub prices: Prices,
    /// The machine that the program finds itself on.
    pub shown: Shown,
    /// A folder of the host in which the program may write.
    pub folder: Option<PathBuf>,
    /// Whether the program may reach the internet.
    pub net: bool,
    /// Whether others reach into the program's sockets: then waits for them are looked at before
    /// time moves.
    pub reached: bool,
    /// What it may have its supervisor do.
    pub limits: ProgramLimits,
    /// Environment beside `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, String)>,
}

/// All of it.
#[derive(Debug)]
pub struct LoaderState {
    /// As it was told.
    pub settings: Settings,
    /// The files of the simulated machine.
    pub tree: FolderTree,
    /// The root of the host, to read.
    pub host: Anchor,
    /// The folder of the host in which the program may write, with its path.
    pub given: Option<(PathBuf, Anchor)>,
    /// The supervisor's own files.
    pub beside: Anchor,
    /// Bytes by which the program has made files grow, so far.
    pub grown: u64,
    /// What the supervisor has done for it.
    pub work: WorkDone,
    /// Where calls come in.
    pub listener: FilterListener,
    /// The first is the program itself.
    pub processes: Vec<Process>,
    /// By [`ThreadId`].
    pub threads: Vec<Thread>,
    /// By device and inode of their files.
    pub objects: BTreeMap<(u64, u64), BpfObject>,
    /// Objects that have a name: by the device and inode of the name, those of the object.
    pub pins: BTreeMap<(u64, u64), (u64, u64)>,
    /// Descriptors that stand for ring buffers in the program's epoll sets, and their levels.
    pub rings: BTreeMap<BpfId, (OwnedFd, bool)>,
    /// Sockets that the program has bound, by device and inode. The descriptors keep the inodes
    /// from being those of other files.
    pub sockets: BTreeMap<(u64, u64), OwnedFd>,
    /// The turn's time.
    pub clock: Clock,
    /// Threads whose wait this turn has ended.
    pub woken: Vec<usize>,
    /// Notes for the user, and how often each came up.
    pub notes: BTreeMap<String, u64>,
    /// An option of the program asks for something that goes by the power of CPUs.
    pub asks_energy: bool,
    /// The state of `getrandom()`.
    pub random: u64,
    /// The next [`Parked::order`].
    pub order: u64,
    /// Where its output goes.
    pub output: [Printed; 2],
    /// Ends all of it if nobody here can any more.
    pub _watcher: Watcher,
}

/// A call of a thread, and all that its answer may need.
pub struct CallContext<'a> {
    /// What is known.
    pub state: &'a mut LoaderState,
    /// The thread that calls.
    pub at: usize,
    /// The call.
    pub call: InterceptedCall,
    /// The simulated machine.
    pub kernel: &'a mut dyn ThreadKernel,
    /// The end of its wait, if the call has waited before.
    pub waited: Option<Option<Nanos>>,
}

/// No call of the program copies more than this at once.
const COPY_MAX: u64 = 256 << 20;

impl CallContext<'_> {
    /// An argument.
    pub const fn arg(&self, n: usize) -> u64 {
        self.call.args[n]
    }

    /// An argument of 32 bits.
    pub const fn int(&self, n: usize) -> i32 {
        self.call.args[n] as i32
    }

    /// The number of the thread that calls.
    pub fn id(&self) -> ThreadId {
        thread_id(self.at)
    }

    /// The thread that calls.
    pub fn thread(&mut self) -> &mut Thread {
        &mut self.state.threads[self.at]
    }

    /// The process that calls.
    pub fn process(&mut self) -> &mut Process {
        let process = self.state.threads[self.at].process;
        &mut self.state.processes[process]
    }

    /// Bytes of the program.
    pub fn read(&self, at: u64, len: u64) -> Result<Vec<u8>, Errno> {
        self.state.work.copy(len);
        read(self.call.tid, at, len)
    }

    /// A number of the program.
    pub fn read_u32(&self, at: u64) -> Result<u32, Errno> {
        let bytes = self.read(at, 4)?;
        Ok(u32_at(&bytes, 0))
    }

    /// A number of the program.
    pub fn read_u64(&self, at: u64) -> Result<u64, Errno> {
        let bytes = self.read(at, 8)?;
        Ok(u64_at(&bytes, 0))
    }

    /// A string of the program, of less than `max` bytes.
    pub fn read_string(&self, at: u64, max: usize) -> Result<Vec<u8>, Errno> {
        read_string(self.call.tid, at, max)
    }

    /// Writes into the program's memory.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.state.work.copy(bytes.len() as u64);
        sys::write_memory(self.call.tid, at, bytes).map_err(|_| Errno(libc::EFAULT))
    }

    /// A second descriptor for one of the program's.
    pub fn duplicate(&mut self, fd: i32) -> Result<OwnedFd, Errno> {
        Ok(sys::pidfd_getfd(&self.process().fd, fd)?)
    }

    /// The object behind a descriptor of the program's.
    pub fn object(&self, fd: i32) -> Option<&BpfObject> {
        self.state.object(self.call.tid, fd)
    }

    /// The number of the object behind a descriptor.
    pub fn object_id(&self, fd: u32) -> Result<BpfId, Errno> {
        let found = self.object(fd.cast_signed()).map(|it| it.id);
        found.ok_or(Errno(libc::EBADF))
    }

    /// The uptime now.
    pub fn now(&self) -> Nanos {
        self.state.clock.now()
    }
}

/// The number of a thread by its index.
pub fn thread_id(at: usize) -> ThreadId {
    ThreadId(u32::try_from(at).unwrap_or(u32::MAX))
}

/// Bytes of a process.
pub fn read(tid: i32, at: u64, len: u64) -> Result<Vec<u8>, Errno> {
    if len > COPY_MAX {
        return Err(Errno(libc::E2BIG));
    }
    let mut bytes = vec![0; len as usize];
    if bytes.is_empty() {
        return Ok(bytes);
    }
    match sys::read_memory(tid, at, &mut bytes) {
        Ok(got) if got == bytes.len() => Ok(bytes),
        _ => Err(Errno(libc::EFAULT)),
    }
}

/// A string of a process, of less than `max` bytes.
pub fn read_string(tid: i32, at: u64, max: usize) -> Result<Vec<u8>, Errno> {
    let mut found = Vec::new();
    while found.len() < max {
        let from = at.wrapping_add(found.len() as u64);
        // Up to the end of a page: the next one may not be there.
        let len = (4096 - (from & 4095) as usize).min(max - found.len());
        let mut bytes = vec![0; len];
        let got =
            sys::read_memory(tid, from, &mut bytes).map_err(|_| Errno(libc::EFAULT))?;
        match bytes[..got].iter().position(|it| *it == 0) {
            Some(end) => {
                found.extend_from_slice(&bytes[..end]);
                return Ok(found);
            }
            None if got < len => return Err(Errno(libc::EFAULT)),
            None => found.extend_from_slice(&bytes),
        }
    }
    Err(Errno(libc::ENAMETOOLONG))
}

/// A number within bytes; 0 beyond their end.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4).and_then(|it| it.try_into().ok());
    found.map_or(0, u32::from_le_bytes)
}

/// A number within bytes; 0 beyond their end.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|it| it.try_into().ok());
    found.map_or(0, u64::from_le_bytes)
}

impl LoaderState {
    /// The object behind a descriptor of a thread.
    pub fn object(&self, tid: i32, fd: i32) -> Option<&BpfObject> {
        self.objects.get(&inode(tid, fd)?)
    }

    /// The object with that number.
    pub fn object_by_id(&self, id: BpfId) -> Option<&BpfObject> {
        self.objects.values().find(|it| it.id == id)
    }

    /// All descriptors of a thread that are objects.
    pub fn object_fds(&self, tid: i32) -> Vec<(u32, BpfId)> {
        let Ok(entries) = fs::read_dir(format!("/proc/{tid}/fd")) else {
            return Vec::new();
        };
        let numbers = entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
        let numbers = numbers.inspect(|_| self.work.add(work::LOOK));
        let mut fds: Vec<(u32, BpfId)> = numbers
            .filter_map(|fd: u32| Some((fd, self.object(tid, fd.cast_signed())?.id)))
            .collect();
        fds.sort_unstable();
        fds
    }

    /// Objects without a name that no living process has a descriptor of any more, by their
    /// numbers.
    pub fn orphans(&self) -> Vec<(u64, u64)> {
        let mut held: std::collections::BTreeSet<_> = self.pins.values().copied().collect();
        for process in self.processes.iter().filter(|it| it.lives) {
            let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", process.real)) else {
                continue;
            };
            let numbers = entries.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
            let numbers = numbers.inspect(|_| self.work.add(work::LOOK));
            held.extend(numbers.filter_map(|fd: i32| inode(process.real, fd)));
        }
        let gone = self.objects.iter().filter(|(key, _)| !held.contains(key));
        let mut gone: Vec<_> = gone.map(|(key, object)| (object.id, *key)).collect();
        gone.sort_unstable();
        gone.into_iter().map(|(_, key)| key).collect()
    }

    /// A living thread by a number that the program may know it by.
    pub fn find_thread(&self, number: i32) -> Option<usize> {
        let shown = |it: &Thread| u32::try_from(number) == Ok(it.shown);
        let each = || self.threads.iter().enumerate().filter(|(_, it)| it.lives);
        let found = each().find(|(_, it)| shown(it));
        let found = found.or_else(|| each().find(|(_, it)| it.tid == number));
        found.map(|it| it.0)
    }

    /// Ends the wait of a thread: its call will have that result.
    pub fn wake(&mut self, at: usize, then: Then) {
        if let Some(parked) = &mut self.threads[at].parked {
            parked.then = then;
            self.woken.push(at);
        }
    }

    /// Wakes up to `max` threads that wait at a futex, in the order in which they began to.
    pub fn wake_futex(&mut self, process: usize, address: u64, mask: u32, max: u64) -> u64 {
        let waits = |it: &Parked| match it.then {
            Then::Futex(by, at, bits) => by == process && at == address && bits & mask != 0,
            _ => false,
        };
        let mut found = self.parked(waits);
        found.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        for at in &found {
            self.wake(*at, Then::Answer(0));
        }
        found.len() as u64
    }

    /// Threads that stand at such calls, in the order of parking.
    pub fn parked(&self, which: impl Fn(&Parked) -> bool) -> Vec<usize> {
        let each = self.threads.iter().enumerate();
        let each = each.filter_map(|(at, it)| Some((it.parked.as_ref()?, at)));
        let mut found: Vec<_> = each
            .filter(|(parked, _)| which(parked))
            .map(|(parked, at)| (parked.order, at))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|it| it.1).collect()
    }

    /// Whether one of these is ready.
    pub fn is_ready(&self, watches: &[Watch], kernel: &dyn ThreadKernel) -> bool {
        self.work.add(watches.len() as u64);
        let map = |it: &Watch| matches!(it, Watch::Map(map) if kernel.is_ready(*map));
        if watches.iter().any(map) {
            return true;
        }
        let mut polled: Vec<_> = watches
            .iter()
            .filter_map(|it| match it {
                Watch::File(fd, flags) => Some(PollFd::new(fd, *flags)),
                Watch::Map(_) => None,
            })
            .collect();
        let none = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        !polled.is_empty() && poll(&mut polled, Some(&none)).is_ok_and(|found| found > 0)
    }

    /// Makes the descriptors of ring buffers readable, or not, as the ring buffers are.
    pub fn set_levels(&mut self, kernel: &dyn ThreadKernel) {
        for (map, (fd, level)) in &mut self.rings {
            let ready = kernel.is_ready(*map);
            if ready == *level {
                continue;
            }
            let done = if ready {
                rustix::io::write(fd.as_fd(), &1_u64.to_ne_bytes())
            } else {
                rustix::io::read(fd.as_fd(), &mut [0; 8])
            };
            if done.is_ok() {
                *level = ready;
            }
        }
    }

    /// Ends the waits of threads one of whose files is ready.
    pub fn look_at_files(&mut self, kernel: &dyn ThreadKernel) {
        self.set_levels(kernel);
        let files = self.parked(|it| match &it.then {
            Then::Files(watches) => self.is_ready(watches, kernel),
            _ => false,
        });
        for at in files {
            self.wake(at, Then::Handle);
        }
    }

    /// Whether a file is one that the program's output goes to.
    pub fn is_output(&self, stat: &rustix::fs::Stat) -> bool {
        self.output.iter().any(|it| it.inode == (stat.st_dev, stat.st_ino))
    }

    /// The living thread of that number.
    pub fn living(&self, tid: i32) -> Option<usize> {
        self.threads.iter().position(|it| it.lives && it.tid == tid)
    }

    /// The living process of that number of the host.
    pub fn known(&self, real: i32) -> Option<usize> {
        self.processes.iter().position(|it| it.lives && it.real == real)
    }

    /// The threads of a process, also those that have ended.
    pub fn threads_of(&self, process: usize) -> Vec<usize> {
        let each = self.threads.iter().enumerate();
        each.filter(|(_, it)| it.process == process).map(|(at, _)| at).collect()
    }

    /// A call that was interrupted and is made again. Whether its thread is known.
    pub fn take_again(&mut self, call: InterceptedCall) -> bool {
        let Some(known) = self.living(call.tid) else {
            return false;
        };
        match &mut self.threads[known].parked {
            // Its child has died before anybody has noticed: it goes on.
            Some(parked) if matches!(parked.then, Then::Vfork(_) | Then::Freed) => {
                self.park(known, call, Then::Handle, None);
                self.woken.push(known);
            }
            Some(parked) => parked.call = call,
            None => self.park(known, call, Then::Handle, None),
        }
        true
    }

    /// Kills every process of the program, also those that nobody knows: none can leave the group
    /// of the first one.
    pub fn kill_all(&self) {
        use std::os::fd::AsRawFd as _;
        let first = &self.processes[0];
        sys::kill_group(first.fd.as_raw_fd(), first.real);
    }

    /// Waits until nobody is left who could call, for a time in which the kernel ends what was
    /// killed.
    pub fn wait_for_nobody(&self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let mut polled = [PollFd::new(self.listener.fd(), PollFlags::IN)];
            let short = Timespec {
                tv_sec: 0,
                tv_nsec: 50_000_000,
            };
            let _ = poll(&mut polled, Some(&short));
            if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                return;
            }
            // What was announced is not called any more.
            if polled[0].revents().contains(PollFlags::IN) {
                let _ = self.listener.receive();
            }
        }
    }

    /// A thread stands at a call.
    pub fn park(&mut self, at: usize, call: InterceptedCall, then: Then, until: Option<Nanos>) {
        let waited = !matches!(then, Then::Handle | Then::Answer(_));
        self.order += 1;
        self.threads[at].parked = Some(Parked {
            call,
            then,
            until,
            waited,
            order: self.order,
        });
    }

    /// Remembers something to tell the user.
    pub fn note(&mut self, text: String) {
        // The texts come of numbers that the program chooses.
        if self.notes.len() < 100 || self.notes.contains_key(&text) {
            *self.notes.entry(text).or_default() += 1;
        }
    }

    /// A path as the program knows it, of one of the host.
    pub fn shown_path(&self, host: &Path) -> PathBuf {
        match self.below_tree(host) {
            Some(below) => Path::new("/").join(below),
            None => host.to_owned(),
        }
    }

    /// The path below the tree's root of one of the host.
    pub fn below_tree(&self, host: &Path) -> Option<PathBuf> {
        // Whoever may write where the tree is can have renamed it.
        let below = host.strip_prefix(self.tree.anchor().path());
        below.ok().map(Path::to_owned)
    }
}

fn inode(tid: i32, fd: i32) -> Option<(u64, u64)> {
    let found = rustix::fs::stat(format!("/proc/{tid}/fd/{fd}")).ok()?;
    Some((found.st_dev, found.st_ino))
}
