//! The operations of the language: one table of them, and how operations are read.

mod read;

use super::names::intern;
use super::parser::{Failure, Parser};
use super::{CgroupOp, DeviceOp, Operation};

use Read::{Arguments, Whole};

/// Description of an operation for readers, parsers and manuals.
#[derive(Debug)]
pub struct Info {
    /// Its name; what tells a form of it apart follows behind a space.
    pub name: &'static str,
    /// How a file writes it. The letters are those of docs/workload.md: D a distribution, P a
    /// span, e and n expressions, t a task, T a group of tasks, others something declared.
    pub forms: &'static [&'static str],
    /// What it does.
    pub meaning: &'static str,
    /// Whether real processes can do it.
    pub played: Played,
    /// How it is read.
    read: Read,
}

/// Whether `runslice play` performs an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    /// It does.
    Yes,
    /// It refuses the workload, for this reason.
    No(&'static str),
}

/// How an operation is read, when its name has been taken.
#[derive(Debug)]
enum Read {
    /// What stands between its parentheses.
    Arguments(fn(&mut Parser<'_>) -> Result<Operation, Failure>),
    /// All that follows its name.
    Whole(fn(&mut Parser<'_>, LineOf<'_>) -> Result<Operation, Failure>),
}

impl Info {
    /// The name as a file writes it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.name.split(' ').next().unwrap_or(self.name)
    }

    /// Description of an operation.
    ///
    /// # Panics
    /// If the table lacks it.
    #[must_use]
    pub fn of(op: &Operation) -> &'static Self {
        let name = op.name();
        let found = OPERATIONS.iter().find(|info| info.name == name);
        found.unwrap_or_else(|| panic!("`{name}` has no row"))
    }
}

/// Every operation, in the order of docs/workload.md.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method's path fits one lifetime of the parser, and these must fit every one"
)]
pub const OPERATIONS: &[Info] = &[
    Info {
        name: "run",
        forms: &["run(D)", "run(inf)"],
        meaning: "computes for a span drawn from D; for ever",
        played: Played::Yes,
        read: Arguments(|p| {
            Ok(Operation::Run(if p.accept("inf") {
                None
            } else {
                Some(p.amount()?)
            }))
        }),
    },
    Info {
        name: "exec",
        forms: &["exec(D)"],
        meaning: "starts another program, which then does as `run`; the kernel's part is the \
                  profile's `exec`",
        played: Played::Yes,
        read: Arguments(|p| p.amount().map(Operation::Exec)),
    },
    Info {
        name: "poll",
        forms: &["poll(D, P)"],
        meaning: "computes in steps of P and looks at the clock after each, until a span drawn \
                  from D has passed since its begin; the last step is not cut. Unlike `run` it \
                  does not make up for time without the CPU. For threads that wait by \
                  spinning, as in DPDK, io_uring's SQPOLL and adaptive mutexes",
        played: Played::Yes,
        read: Arguments(|p| p.poll()),
    },
    Info {
        name: "sleep",
        forms: &["sleep(D)"],
        meaning: "leaves the CPU for that span; nothing at all if it is zero",
        played: Played::Yes,
        read: Arguments(|p| p.amount().map(Operation::Sleep)),
    },
    Info {
        name: "sleepuntil",
        forms: &["sleepuntil(D)"],
        meaning: "leaves the CPU until that span after the begin of the run; goes on at once if it \
                  has passed",
        played: Played::Yes,
        read: Arguments(|p| p.amount().map(Operation::SleepUntil)),
    },
    Info {
        name: "timer",
        forms: &[
            "timer(P)",
            "timer(P, start)",
            "timer(P, move)",
            "timer(P, as(name))",
            "timer(P, deadline(D))",
        ],
        meaning: "sleeps until the next point of a grid of distance P that begins at the \
                  operation's first turn; goes on at once if that point has passed. With \
                  `start` the grid begins with the task; with `move` it begins anew when a \
                  point is found to have passed; with `as` all timers of that name in the \
                  task share it. With `deadline` the work since the last point is recorded as \
                  late from that point plus the deadline's `slack` on. In any combination",
        played: Played::Yes,
        read: Arguments(|p| p.timer()),
    },
    Info {
        name: "send",
        forms: &["send(c[i])", "send(c[i], bytes)", "send(c[i], bytes, e)"],
        meaning: "puts a message into a channel; blocks while it is full. The receiver sees \
                  the value `e`, else the sender's index, as `got`",
        played: Played::Yes,
        read: Arguments(|p| p.send()),
    },
    Info {
        name: "recv",
        forms: &["recv(c[i])"],
        meaning: "takes a message out; blocks while there is none",
        played: Played::Yes,
        read: Arguments(|p| p.channel().map(Operation::Recv)),
    },
    Info {
        name: "bcast",
        forms: &["bcast(c, first, end)", "bcast(c, first, end, except)"],
        meaning: "`send` to each instance in `first..end` but `except`",
        played: Played::Yes,
        read: Arguments(|p| p.broadcast()),
    },
    Info {
        name: "lock",
        forms: &["lock(L[i])"],
        meaning: "takes a lock. The index of a keyed lock is its key",
        played: Played::Yes,
        read: Whole(|p, line| p.lock(line)),
    },
    Info {
        name: "lock ... else",
        forms: &["lock(L[i]) else [ops]"],
        meaning: "unless tasks would then wait for each other in a circle: the lock is not \
                  taken, and `ops` are done",
        played: Played::No("only the simulated machine knows who waits for whom"),
        read: Whole(|p, line| p.lock(line)),
    },
    Info {
        name: "unlock",
        forms: &["unlock(L[i])"],
        meaning: "gives a lock back",
        played: Played::Yes,
        read: Arguments(|p| p.lock_place().map(Operation::Unlock)),
    },
    Info {
        name: "lock_shared",
        forms: &["lock_shared(L[i])"],
        meaning: "takes a read-write lock for reading",
        played: Played::Yes,
        read: Arguments(|p| {
            p.lock_place()
                .map(|lock| device(DeviceOp::LockShared(lock)))
        }),
    },
    Info {
        name: "unlock_all",
        forms: &["unlock_all(L)"],
        meaning: "gives back every key of a keyed lock that the task has",
        played: Played::No("there are no keyed locks to play with"),
        read: Arguments(|p| p.keyed_lock().map(|of| device(DeviceOp::UnlockAll(of)))),
    },
    Info {
        name: "sem_wait",
        forms: &["sem_wait(S[i])"],
        meaning: "takes a token",
        played: Played::Yes,
        read: Arguments(|p| p.semaphore().map(|at| device(DeviceOp::SemWait(at)))),
    },
    Info {
        name: "sem_post",
        forms: &["sem_post(S[i])"],
        meaning: "gives a token",
        played: Played::Yes,
        read: Arguments(|p| p.semaphore().map(|at| device(DeviceOp::SemPost(at)))),
    },
    Info {
        name: "wait",
        forms: &["wait(C[i], L[j])"],
        meaning: "gives the lock back, sleeps until signalled, takes the lock again",
        played: Played::Yes,
        read: Arguments(|p| p.condition_wait().map(device)),
    },
    Info {
        name: "signal",
        forms: &["signal(C[i])"],
        meaning: "wakes the task that has waited longest",
        played: Played::Yes,
        read: Arguments(|p| p.condition().map(|at| device(DeviceOp::Signal(at)))),
    },
    Info {
        name: "broadcast",
        forms: &["broadcast(C[i])"],
        meaning: "wakes all that wait",
        played: Played::Yes,
        read: Arguments(|p| p.condition().map(|at| device(DeviceOp::Broadcast(at)))),
    },
    Info {
        name: "connect",
        forms: &["connect(A[i])", "connect(A[i], e)"],
        meaning: "connects to a listening socket; goes on when the connection waits there. The \
                  accepting task sees `e`, else the client's index, as `got`",
        played: Played::Yes,
        read: Arguments(|p| p.connect().map(device)),
    },
    Info {
        name: "accept",
        forms: &["accept(A[i])"],
        meaning: "takes the connection that has waited longest; blocks while there is none",
        played: Played::Yes,
        read: Arguments(|p| p.listener().map(|at| device(DeviceOp::Accept(at)))),
    },
    Info {
        name: "done",
        forms: &["done(A)", "done(A, e)"],
        meaning: "request `e`, else `got`, is done: its span ends, its user begins to think",
        played: Played::No("requests from outside are played by a task that sends them"),
        read: Arguments(|p| p.done().map(device)),
    },
    Info {
        name: "read",
        forms: &[
            "read(D, bytes)",
            "read(D, bytes, seq)",
            "read(D, bytes, rand)",
            "read(D, bytes, at(e))",
        ],
        meaning: "reads on where the task's last such operation on that disk ended, first at a \
                  place that is drawn; with `rand` at a place that is drawn, a whole page; \
                  with `at` at byte `e`. Waits for what is not cached",
        played: Played::No("a disk like the file's cannot be borrowed from the machine"),
        read: Arguments(|p| {
            let (disk, bytes, at) = p.transfer()?;
            Ok(device(DeviceOp::Read { disk, bytes, at }))
        }),
    },
    Info {
        name: "write",
        forms: &["write(D, ...)"],
        meaning: "writes likewise: into the cache, or to the disk and waits",
        played: Played::No("a disk like the file's cannot be borrowed from the machine"),
        read: Arguments(|p| {
            let (disk, bytes, at) = p.transfer()?;
            Ok(device(DeviceOp::Write { disk, bytes, at }))
        }),
    },
    Info {
        name: "fsync",
        forms: &["fsync(D)"],
        meaning: "waits until what was written is on the disk, what is under way included",
        played: Played::No("a disk like the file's cannot be borrowed from the machine"),
        read: Arguments(|p| p.disk().map(|disk| device(DeviceOp::Sync(disk)))),
    },
    Info {
        name: "writeback",
        forms: &["writeback(D)"],
        meaning: "writes all dirty pages and waits, as a flusher does",
        played: Played::No("a disk like the file's cannot be borrowed from the machine"),
        read: Arguments(|p| p.disk().map(|disk| device(DeviceOp::WriteBack(disk)))),
    },
    Info {
        name: "touch",
        forms: &["touch(bytes)", "touch(bytes, of)"],
        meaning: "uses so much of the task's memory, from its begin on, page by page; or as \
                  many pages, drawn from the first `of` bytes. A page that was swapped out is \
                  fetched",
        played: Played::No("memory like the file's cannot be borrowed from the machine"),
        read: Arguments(|p| p.touch().map(device)),
    },
    Info {
        name: "reclaim",
        forms: &["reclaim"],
        meaning: "sleeps until memory is short, then makes room, as kswapd does",
        played: Played::No("memory like the file's cannot be borrowed from the machine"),
        read: Whole(|p, _| {
            p.need_memory("reclaim")?;
            Ok(device(DeviceOp::Reclaim))
        }),
    },
    Info {
        name: "barrier",
        forms: &["barrier(B[i])"],
        meaning: "waits for the other parties",
        played: Played::Yes,
        read: Arguments(|p| {
            p.place("barrier", |names| &names.barriers)
                .map(Operation::Barrier)
        }),
    },
    Info {
        name: "yield",
        forms: &["yield"],
        meaning: "`sched_yield()`",
        played: Played::Yes,
        read: Whole(|_, _| Ok(Operation::Yield)),
    },
    Info {
        name: "migrate_disable",
        forms: &["migrate_disable"],
        meaning: "`migrate_disable()`: until as many `migrate_enable` the task stays on its CPU",
        played: Played::No("only the kernel disables the migration of a task"),
        read: Whole(|_, _| Ok(Operation::MigrateDisable)),
    },
    Info {
        name: "migrate_enable",
        forms: &["migrate_enable"],
        meaning: "`migrate_enable()`: ends such a section",
        played: Played::No("only the kernel disables the migration of a task"),
        read: Whole(|_, _| Ok(Operation::MigrateEnable)),
    },
    Info {
        name: "suspend",
        forms: &["suspend"],
        meaning: "sleeps until resumed. One `resume` that comes before its `suspend` is \
                  remembered",
        played: Played::Yes,
        read: Whole(|_, _| Ok(Operation::Suspend)),
    },
    Info {
        name: "resume",
        forms: &["resume(t)"],
        meaning: "resumes a task",
        played: Played::Yes,
        read: Arguments(|p| p.target().map(Operation::Resume)),
    },
    Info {
        name: "fork",
        forms: &["fork(T)"],
        meaning: "creates one task of group T, a child of this one",
        played: Played::Yes,
        read: Arguments(|p| p.forked().map(Operation::Fork)),
    },
    Info {
        name: "exit",
        forms: &["exit"],
        meaning: "ends the task",
        played: Played::Yes,
        read: Whole(|_, _| Ok(Operation::Exit)),
    },
    Info {
        name: "waitpid",
        forms: &["waitpid(any)", "waitpid(all)"],
        meaning: "waits for one child to exit, or for all; nothing without children. `all` \
                  waits for one after the other, as a loop around `wait4()`",
        played: Played::Yes,
        read: Arguments(|p| {
            let all = p.word(&["any", "all"])? == "all";
            Ok(Operation::Wait { all })
        }),
    },
    Info {
        name: "pool",
        forms: &["pool(T, width, total)"],
        meaning: "`make -j width`: forks `total` tasks of group T, at most `width` at a time, \
                  and waits for all. Both numbers are evaluated once",
        played: Played::Yes,
        read: Arguments(|p| p.pool()),
    },
    Info {
        name: "choose",
        forms: &["choose(w: op, w: [ops], ...)"],
        meaning: "does one of these, drawn by integer weight",
        played: Played::Yes,
        read: Whole(|p, line| p.choose(line)),
    },
    Info {
        name: "if",
        forms: &["if(e)[ops]", "if(e)[ops] else [ops]"],
        meaning: "a condition holds when it is not zero",
        played: Played::Yes,
        read: Whole(|p, line| p.condition_with(line)),
    },
    Info {
        name: "loop",
        forms: &["loop(n)[ops]", "loop(inf)[ops]"],
        meaning: "repeats; `n` is evaluated once",
        played: Played::Yes,
        read: Whole(|p, line| p.repeat(line)),
    },
    Info {
        name: "for",
        forms: &["for(i, n)[ops]"],
        meaning: "repeats with `i` from 0 to n - 1",
        played: Played::Yes,
        read: Whole(|p, line| p.repeat_for(line)),
    },
    Info {
        name: "while",
        forms: &["while(e)[ops]"],
        meaning: "repeats while the condition holds",
        played: Played::Yes,
        read: Whole(|p, line| p.repeat_while(line)),
    },
    Info {
        name: "let",
        forms: &["let x = e", "x = e"],
        meaning: "declares and changes a variable of the task. It is seen from its declaration \
                  to the end of the `[]`",
        played: Played::Yes,
        read: Whole(|p, _| p.declaration()),
    },
    Info {
        name: "setnice",
        forms: &["setnice(t, n)"],
        meaning: "changes a task's nice value, from this one's context; nothing if it has \
                  exited",
        played: Played::Yes,
        read: Arguments(|p| {
            let (target, nice) = (p.first_target()?, p.expr()?);
            Ok(Operation::SetNice { target, nice })
        }),
    },
    Info {
        name: "setaffinity",
        forms: &["setaffinity(t, {0-3,5})", "setaffinity(t, all)"],
        meaning: "likewise the CPUs that it may run on",
        played: Played::Yes,
        read: Arguments(|p| p.affinity()),
    },
    Info {
        name: "setpolicy",
        forms: &["setpolicy(t, fifo:50)"],
        meaning: "likewise its scheduling policy",
        played: Played::Yes,
        read: Arguments(|p| {
            let (target, policy) = (p.first_target()?, p.policy()?);
            Ok(Operation::SetPolicy { target, policy })
        }),
    },
    Info {
        name: "cgroup_move",
        forms: &["cgroup_move(t, G)", "cgroup_move(t, G, process)"],
        meaning: "moves a task to a cgroup, by its table's name or `root`, as writing it to \
                  `cgroup.threads`: nothing if it is there. With `process` it moves all tasks \
                  that share its address space, as `cgroup.procs`; if the policy refuses one \
                  of them, none is moved",
        played: Played::Yes,
        read: Arguments(|p| p.cgroup_move().map(cgroup)),
    },
    Info {
        name: "cgroup_weight",
        forms: &["cgroup_weight(G, n)"],
        meaning: "writes `cpu.weight`",
        played: Played::Yes,
        read: Arguments(|p| {
            let (of, weight) = (p.limited_cgroup()?, p.expr()?);
            Ok(cgroup(CgroupOp::Weight { of, weight }))
        }),
    },
    Info {
        name: "cgroup_max",
        forms: &["cgroup_max(G, 20ms/100ms)", "cgroup_max(G, inf)"],
        meaning: "writes `cpu.max`",
        played: Played::Yes,
        read: Arguments(|p| {
            let (of, max) = (p.limited_cgroup()?, p.bandwidth()?);
            Ok(cgroup(CgroupOp::Max { of, max }))
        }),
    },
    Info {
        name: "cgroup_idle",
        forms: &["cgroup_idle(G, n)"],
        meaning: "writes `cpu.idle` (0 or 1)",
        played: Played::Yes,
        read: Arguments(|p| {
            let (of, idle) = (p.limited_cgroup()?, p.expr()?);
            Ok(cgroup(CgroupOp::Idle { of, idle }))
        }),
    },
    Info {
        name: "phase",
        forms: &["phase(name)"],
        meaning: "enters a phase",
        played: Played::Yes,
        read: Arguments(|p| Ok(Operation::Phase(intern(&p.label()?, &mut p.names.phases)))),
    },
    Info {
        name: "span_begin",
        forms: &["span_begin(name)"],
        meaning: "begins to measure a span of time within the task",
        played: Played::Yes,
        read: Arguments(|p| p.span_edge("span_begin")),
    },
    Info {
        name: "span_end",
        forms: &["span_end(name)"],
        meaning: "ends it",
        played: Played::Yes,
        read: Arguments(|p| p.span_edge("span_end")),
    },
    Info {
        name: "span_begin with a key",
        forms: &["span_begin(name, e)"],
        meaning: "begins to measure span number `e`, which another task may end",
        played: Played::No("only it measures spans across tasks"),
        read: Arguments(|p| p.span_edge("span_begin")),
    },
    Info {
        name: "span_end with a key",
        forms: &["span_end(name, e)"],
        meaning: "ends span number `e`",
        played: Played::No("only it measures spans across tasks"),
        read: Arguments(|p| p.span_edge("span_end")),
    },
    Info {
        name: "count",
        forms: &["count(name)", "count(name, n)"],
        meaning: "raises a counter",
        played: Played::Yes,
        read: Arguments(|p| p.count()),
    },
    Info {
        name: "release",
        forms: &["release(D)"],
        meaning: "waits for the deadline's next release. With a period: the first release of a \
                  task is its first such call; then one every period",
        played: Played::Yes,
        read: Arguments(|p| p.deadline().map(Operation::Release)),
    },
    Info {
        name: "complete",
        forms: &["complete(D)"],
        meaning: "the work that was released is done; records by how much the deadline was \
                  missed",
        played: Played::Yes,
        read: Arguments(|p| p.deadline().map(Operation::Complete)),
    },
];

const fn device(op: DeviceOp) -> Operation {
    Operation::Device(op)
}

const fn cgroup(op: CgroupOp) -> Operation {
    Operation::Device(DeviceOp::Cgroup(op))
}

/// Operations of the language that nothing executes yet.
const NOT_SIMULATED: [&str; 1] = ["mem"];

/// Finds the line of an offset in the text that is read.
pub(super) type LineOf<'a> = &'a dyn Fn(usize) -> u32;
