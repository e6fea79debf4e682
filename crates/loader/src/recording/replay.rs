//! Playing back.

use std::collections::BTreeSet;

use model::Nanos;
use model::user_space::{
    BpfCall, ProgramEnd, Refused, ThreadId, ThreadKernel, ThreadTurn, TurnEnd, UserSpace,
    UserSpaceError,
};

use super::code::Recording;
use super::{Act, After, Record, hash, hash_done, hash_numbers};

/// Threads that a program may have had in all.
const THREADS_MAX: u32 = 4096;

/// A recording in place of the program.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
    next: usize,
    asked: u64,
    after: After,
    /// Threads so far, and those of them that live.
    begun: u32,
    lives: BTreeSet<ThreadId>,
    /// Nothing happens after the last record.
    setup_only: bool,
    difference: Option<String>,
}

impl Replay {
    /// Plays a recording from its beginning.
    #[must_use]
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            next: 0,
            asked: 0,
            after: After::default(),
            begun: 1,
            lives: BTreeSet::from([ThreadId(0)]),
            setup_only: false,
            difference: None,
        }
    }

    /// Plays a recording that ends with the turn in which the program attached its policy. From
    /// then on the program does nothing, until it is asked to end. What it asked after it had
    /// attached may be answered otherwise than when it was recorded: another load runs then.
    #[must_use]
    pub fn setup_only(recording: Recording) -> Self {
        Self {
            setup_only: true,
            ..Self::new(recording)
        }
    }

    /// Where the recording did not fit the simulated machine, if it did not.
    #[must_use]
    pub fn difference(&self) -> Option<&str> {
        self.difference.as_deref()
    }

    /// The next record, done with.
    fn step(&mut self, after: After) {
        self.next += 1;
        self.asked = 0;
        self.after = after;
    }

    fn differs(&mut self, now: Option<Nanos>, what: &str) -> UserSpaceError {
        let tenths = |now: Nanos| (now.get() / 1_000_000_000, now.get() / 100_000_000 % 10);
        let at = now.map(tenths);
        let at = at.map_or_else(String::new, |(seconds, tenth)| {
            format!(" at {seconds}.{tenth} s")
        });
        let text = format!("replay: record {}{at}: {what}", self.next);
        self.difference.get_or_insert_with(|| text.clone());
        UserSpaceError::from(text)
    }

    /// Threads that a recording names must be there.
    fn known(&self, threads: &[ThreadId]) -> bool {
        threads.iter().all(|it| it.0 < self.begun)
    }

    /// Does the acts of a turn again: what differs first, if anything.
    fn act(&mut self, acts: &[Act], by: ThreadId, kernel: &mut dyn ThreadKernel) -> Option<String> {
        let mut attached = false;
        for it in acts {
            if let Act::Spawn(thread, ..) = it {
                let is_next = thread.0 == self.begun && self.begun < THREADS_MAX;
                if !is_next && !self.known(&[*thread]) {
                    return Some(format!("thread {} cannot begin", thread.0));
                }
                self.begun = self.begun.max(thread.0 + 1);
                self.lives.insert(*thread);
            }
            let difference = act(it, by, kernel);
            if difference.is_some() && !attached {
                return difference;
            }
            attached |= self.setup_only && is_attaching(it);
        }
        None
    }
}

/// Whether it attaches a table of callbacks (`BPF_STRUCT_OPS`, Linux 6.18,
/// include/uapi/linux/bpf.h).
const fn is_attaching(act: &Act) -> bool {
    const STRUCT_OPS: u32 = 44;
    matches!(
        act,
        Act::Bpf(
            BpfCall::LinkCreate {
                attach_type: STRUCT_OPS,
                ..
            },
            _
        )
    )
}

/// What a call is, for messages.
fn name(call: &BpfCall) -> &'static str {
    match call {
        BpfCall::BtfLoad { .. } => "BTF_LOAD",
        BpfCall::MapCreate(_) => "MAP_CREATE",
        BpfCall::Lookup { .. } => "MAP_LOOKUP_ELEM",
        BpfCall::Update { .. } => "MAP_UPDATE_ELEM",
        BpfCall::Delete { .. } => "MAP_DELETE_ELEM",
        BpfCall::NextKey { .. } => "MAP_GET_NEXT_KEY",
        BpfCall::Freeze { .. } => "MAP_FREEZE",
        BpfCall::ProgLoad(_) => "PROG_LOAD",
        BpfCall::LinkCreate { .. } => "LINK_CREATE",
        BpfCall::LinkDetach { .. } => "LINK_DETACH",
        BpfCall::TestRun { .. } => "PROG_TEST_RUN",
        BpfCall::IterRead { .. } => "read() of an iterator",
        BpfCall::StreamRead { .. } => "PROG_STREAM_READ",
        BpfCall::Close { .. } => "close()",
    }
}

/// Does an act again: what differs, if anything.
fn act(act: &Act, thread: ThreadId, kernel: &mut dyn ThreadKernel) -> Option<String> {
    let told = |what: &str, is_same: bool| {
        let text = format!("{what} was answered otherwise than when it was recorded");
        (!is_same).then_some(text)
    };
    let errno = |it: Result<(), Refused>| it.err().map(|it| it.errno);
    match act {
        Act::Bpf(call, recorded) => {
            let answer = kernel.bpf(thread, call.clone());
            let is_same = hash(&answer) == *recorded;
            match (&answer, is_same) {
                (Err(refused), false) => {
                    let what = name(call);
                    Some(format!(
                        "{what} was refused (errno {}), unlike then",
                        refused.errno
                    ))
                }
                _ => told(name(call), is_same),
            }
        }
        Act::Spawn(thread, name, recorded) => {
            let numbers = kernel.spawn(*thread, name);
            told("a new thread", hash_numbers(numbers) == *recorded)
        }
        Act::SetSched(thread, change, recorded) => {
            let answer = kernel.set_sched(*thread, change.clone());
            told("a change of scheduling", hash_done(&answer) == *recorded)
        }
        Act::ArenaAt(map, address, recorded) => {
            let answer = kernel.arena_at(*map, *address);
            told("mmap() of an arena", hash_done(&answer) == *recorded)
        }
        Act::Store(map, offset, bytes) => {
            let errno = errno(kernel.store(*map, *offset, bytes))?;
            let map = map.0;
            Some(format!(
                "a store into map {map} at {offset} was refused (errno {errno})"
            ))
        }
    }
}

impl UserSpace for Replay {
    fn turn(
        &mut self,
        thread: ThreadId,
        now: Nanos,
        kernel: &mut dyn ThreadKernel,
    ) -> Result<ThreadTurn, UserSpaceError> {
        let nothing = ThreadTurn {
            stop: TurnEnd::Wait { until: None },
            cost: Nanos::new(1),
            woken: Vec::new(),
        };
        let is_last = self.next + 1 == self.recording.records.len();
        // Every record is played once.
        let record = self
            .recording
            .records
            .get_mut(self.next)
            .map(std::mem::take);
        let (acts, turn, after) = match record {
            Some(Record::Turn {
                thread: recorded,
                now: then,
                acts,
                turn,
                after,
            }) if (recorded, then) == (thread, now) => (acts, turn, after),
            Some(Record::Turn {
                thread: recorded,
                now: then,
                ..
            }) => {
                let (number, recorded) = (thread.0, recorded.0);
                let text =
                    format!("thread {number} has a turn; recorded is thread {recorded} at {then}");
                return Err(self.differs(Some(now), &text));
            }
            Some(_) => return Err(self.differs(Some(now), "a turn where none was recorded")),
            None if self.setup_only => return Ok(nothing),
            None => return Err(self.differs(Some(now), "the recording ends before the run")),
        };
        if let Some(text) = self.act(&acts, thread, kernel) {
            return Err(self.differs(Some(now), &text));
        }
        if !self.known(&turn.woken) {
            return Err(self.differs(Some(now), "a thread is woken that has not begun"));
        }
        if turn.stop == TurnEnd::Exit {
            self.lives.remove(&thread);
        }
        self.step(after);
        if self.setup_only && is_last {
            Ok(nothing)
        } else {
            Ok(turn)
        }
    }

    fn woken(&mut self, _kernel: &dyn ThreadKernel) -> Result<Vec<ThreadId>, UserSpaceError> {
        if let Some(Record::Woken(asked, woken, after)) = self.recording.records.get(self.next)
            && *asked == self.asked
        {
            let (woken, after) = (woken.clone(), after.clone());
            if !self.known(&woken) {
                return Err(self.differs(None, "a thread is woken that has not begun"));
            }
            self.step(after);
            return Ok(woken);
        }
        self.asked += 1;
        Ok(Vec::new())
    }

    fn is_waiting_for_files(&self) -> bool {
        self.after.waits_for_files
    }

    fn interrupt(&mut self) -> Result<Vec<ThreadId>, UserSpaceError> {
        if self.setup_only {
            self.after.end = Some(ProgramEnd {
                status: 0,
                last_lines: String::new(),
            });
            return Ok(Vec::new());
        }
        let Some(Record::Interrupt(woken, after)) = self.recording.records.get(self.next) else {
            return Err(self.differs(None, "an interrupt where none was recorded"));
        };
        let (woken, after) = (woken.clone(), after.clone());
        if !self.known(&woken) {
            return Err(self.differs(None, "a thread is woken that has not begun"));
        }
        self.step(after);
        Ok(woken)
    }

    fn waits(&self) -> Vec<String> {
        let each = self.lives.iter();
        each.map(|it| format!("thread {} of the recording waits", it.0))
            .collect()
    }

    fn end(&self) -> Option<ProgramEnd> {
        self.after.end.clone()
    }
}
